"""docs/coming-from.md: each translation reproduces another library's FTRL, or the documented difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear import Engine, Spec

Vector = NDArray[np.float64]
ALPHA, BETA, L1, L2 = 0.3, 0.7, 0.5, 0.2
DIM = 12


def stream(rows: int = 300) -> tuple[list[list[int]], Vector]:
    """Return rows of one to four features with value 1, and labels that follow fixed weights."""
    rng = np.random.default_rng(0)
    features = [sorted(rng.choice(DIM, rng.integers(1, 5), replace=False).tolist()) for _ in range(rows)]
    weights = rng.normal(size=DIM)
    chances = np.array([1.0 / (1.0 + math.exp(-weights[row].sum())) for row in features])
    return features, np.where(rng.random(rows) < chances, 1.0, -1.0)


def ftprl_scores(features: list[list[int]], y: Vector, dim: int = DIM, **options: Any) -> Vector:
    """Return ftprl's scores, each from before its row is learned."""
    settings = {"scale": ALPHA, "beta": BETA, "l1": L1, "l2": L2, "intercept": False, "float64": True, **options}
    engine, scores = Engine(Spec(dim=dim, **settings)), np.empty(len(y))
    engine.learn(Batch.from_rows([dict.fromkeys(row, 1.0) for row in features], y, float64=True), scores=scores)
    return scores


def chances(scores: Vector) -> Vector:
    return np.asarray(1.0 / (1.0 + np.exp(-scores)))


Step = Callable[[Vector, list[int], float], None]


def numpy_scores(features: list[list[int]], y: Vector, step: Step) -> Vector:
    """Return scores of a rule that updates weights w in place from the row's features and the slope of its log loss."""
    w, scores = np.zeros(DIM), []
    for row, label in zip(features, y.tolist(), strict=True):
        scores.append(float(w[row].sum()))
        step(w, row, -label / (1.0 + math.exp(label * scores[-1])))
    return np.array(scores)


def ftrl(alpha: float, beta: float, l1: float, l2: float, start: float = 0.0) -> Step:
    """Return FTRL-Proximal as in McMahan et al. (2013); `start` is the initial sum of squared gradients."""
    z, n = np.zeros(DIM), np.full(DIM, start)

    def step(w: Vector, row: list[int], g: float) -> None:
        for i in row:
            sigma = (math.sqrt(n[i] + g * g) - math.sqrt(n[i])) / alpha
            z[i] += g - sigma * w[i]
            n[i] += g * g
            pull = math.copysign(max(abs(z[i]) - l1, 0.0), -z[i])
            w[i] = pull / ((beta + math.sqrt(n[i])) / alpha + l2)

    return step


def test_the_published_algorithm() -> None:
    """With values of 1, alpha, beta, lambda1 and lambda2 equal scale, beta, l1 and l2."""
    features, y = stream()
    np.testing.assert_allclose(
        numpy_scores(features, y, ftrl(ALPHA, BETA, L1, L2)), ftprl_scores(features, y), rtol=0, atol=1e-12
    )


def test_vowpal_wabbit() -> None:
    vw = pytest.importorskip("vowpalwabbit", reason="vowpalwabbit is not installed")
    features, y = stream()
    options = f"--ftrl --ftrl_alpha {ALPHA} --ftrl_beta {BETA} --l1 {L1} --l2 {L2} --loss_function logistic"
    learner = vw.Workspace(f"{options} --noconstant --quiet")
    scores = []
    for row, label in zip(features, y, strict=True):
        text = "| " + " ".join(f"f{i}" for i in row)
        scores.append(learner.predict(text))
        learner.learn(f"{label:g} {text}")
    learner.finish()
    np.testing.assert_allclose(scores, ftprl_scores(features, y), rtol=0, atol=1e-5)  # its weights are float32


def test_datatable() -> None:
    dt = pytest.importorskip("datatable", reason="datatable is not installed")
    from datatable.models import Ftrl

    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, size=(150, 5))
    y = np.where(rng.random(150) < chances(X @ rng.normal(size=5)), 1.0, -1.0)
    learner = Ftrl(alpha=ALPHA, beta=BETA, lambda1=0.1, lambda2=L2, nepochs=1, double_precision=True)
    actual = [0.5]
    for i, (row, label) in enumerate(zip(X.tolist(), y, strict=True)):
        frame = dt.Frame({f"c{k}": [value] for k, value in enumerate(row)})
        if i:
            actual.append(learner.predict(frame)[0, "True"])
        learner.fit(frame, dt.Frame([bool(label > 0)]))
    features = [[2 * k + value for k, value in enumerate(row)] for row in X.tolist()]  # a feature for each value
    np.testing.assert_allclose(actual, chances(ftprl_scores(features, y, l1=0.1)), rtol=0, atol=1e-12)


def river_rule(z: Vector, n: Vector) -> Step:
    """Return River's FTRLProximal: weights are set before the gradient is added, and l1 never makes one 0."""

    def step(w: Vector, row: list[int], g: float) -> None:
        for i in row:
            if abs(z[i]) > L1:
                w[i] = -(z[i] - math.copysign(L1, z[i])) / ((BETA + math.sqrt(n[i])) / ALPHA + L2)
        for i in row:
            z[i] += g - (math.sqrt(n[i] + g * g) - math.sqrt(n[i])) / ALPHA * w[i]
            n[i] += g * g

    return step


def test_river_is_one_step_behind() -> None:
    pytest.importorskip("river", reason="river is not installed")
    from river import linear_model, optim

    features, y = stream()
    optimiser = optim.FTRLProximal(alpha=ALPHA, beta=BETA, l1=L1, l2=L2)
    learner = linear_model.LogisticRegression(optimizer=optimiser, intercept_lr=0.0, l2=0.0)
    actual = []
    for row, label in zip(features, y, strict=True):
        x = dict.fromkeys(row, 1.0)
        actual.append(learner.predict_proba_one(x)[True])
        learner.learn_one(x, bool(label > 0))
    rendition = chances(numpy_scores(features, y, river_rule(np.zeros(DIM), np.zeros(DIM))))
    np.testing.assert_allclose(actual, rendition, rtol=0, atol=1e-9)
    ours = chances(ftprl_scores(features, y))
    assert np.abs(actual - ours).max() > 0.05  # it predicts without the latest gradient of each feature


def adagrad(rate: float, eps: float) -> Step:
    """Return AdaGrad as in torch.optim.Adagrad and FBGEMM's EXACT_ADAGRAD."""
    n = np.zeros(DIM)

    def step(w: Vector, row: list[int], g: float) -> None:
        for i in row:
            n[i] += g * g
            w[i] -= rate * g / (math.sqrt(n[i]) + eps)

    return step


def test_adagrad_of_torchrec() -> None:
    """Without penalties and bounds the proximal form is AdaGrad: eps is beta."""
    features, y = stream()
    ours = ftprl_scores(features, y, l1=0.0, l2=0.0)
    np.testing.assert_allclose(numpy_scores(features, y, adagrad(ALPHA, BETA)), ours, rtol=0, atol=1e-12)


def keras(rate: float, beta: float, l1: float, l2: float, start: float) -> Step:
    """Return Keras' Ftrl with learning_rate_power=-0.5, as its documentation describes it."""
    linear, accumulator = np.zeros(DIM), np.full(DIM, start)

    def step(w: Vector, row: list[int], g: float) -> None:
        for i in row:
            new = accumulator[i] + g * g
            linear[i] += g - (math.sqrt(new) - math.sqrt(accumulator[i])) / rate * w[i]
            quadratic = math.sqrt(new) / rate + 2.0 * (l2 + beta / (2.0 * rate))
            w[i] = (min(max(linear[i], -l1), l1) - linear[i]) / quadratic
            accumulator[i] = new

    return step


def test_keras() -> None:
    """Keras counts l2 twice; an initial accumulator acts as a first gradient and is not beta."""
    features, y = stream()
    ours = ftprl_scores(features, y, l2=2.0 * L2)
    np.testing.assert_allclose(numpy_scores(features, y, keras(ALPHA, BETA, L1, L2, 0.0)), ours, rtol=0, atol=1e-12)
    started = numpy_scores(features, y, keras(ALPHA, 0.0, L1, L2, 0.1))
    assert np.abs(started - ftprl_scores(features, y, l2=2.0 * L2, beta=math.sqrt(0.1))).max() > 1e-3


def test_scikit_learn_has_another_rule() -> None:
    """SGD has a single learning rate: no setting of ours gives its numbers, and our losses are not worse."""
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    features, y = stream(1000)
    X = np.zeros((len(y), DIM))
    for i, row in enumerate(features):
        X[i, row] = 1.0

    def loss(rate: float) -> float:
        learner = linear.SGDClassifier(
            loss="log_loss", penalty=None, learning_rate="constant", eta0=rate, fit_intercept=False
        )
        scores = [0.0]
        learner.partial_fit(X[:1], y[:1], classes=[-1.0, 1.0])
        for i in range(1, len(y)):
            scores.append(float(learner.decision_function(X[i : i + 1])[0]))
            learner.partial_fit(X[i : i + 1], y[i : i + 1])
        return float(np.logaddexp(0.0, -y * np.array(scores)).mean())

    ours = np.logaddexp(0.0, -y * ftprl_scores(features, y, scale="auto", l1=0.0, l2=0.0)).mean()
    assert ours <= 1.01 * min(loss(rate) for rate in (0.01, 0.1, 1.0))


def rows_of_table() -> Iterator[str]:
    from pathlib import Path

    page = Path(__file__).parents[3] / "docs" / "coming-from.md"
    yield from (line for line in page.read_text().splitlines() if line.startswith("| `"))


def test_every_option_that_the_page_names_exists() -> None:
    """The right column of the page has existing options and commands."""
    import re

    from ftprl.cli.app import COMMANDS
    from ftprl.options import BY_NAME

    spelled = {entry.typed for entry in BY_NAME.values()} | {
        "--" + entry.name.replace("_", "-") for entry in BY_NAME.values()
    }
    named = [word for line in rows_of_table() for word in re.findall(r"`(--[a-z0-9-]+)", line.split("|")[2])]
    assert named
    assert set(named) <= spelled
    commands = {word for line in rows_of_table() for word in re.findall(r"`ftprl ([a-z]+)", line.split("|")[2])}
    assert commands <= set(COMMANDS)
