"""Streams made to break the claims of a receipt: each claim against losses of fixed weights computed in NumPy."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import ftprl
from ftprl.receipt import StreamCertificate, certify_model, make_receipt, verify_receipt, write_receipt
from ftprl.receipt.ledger import coordinate_blocks
from oracles.learner_twin import LearnerTwin

Vector = np.ndarray
LOSSES = (
    "logistic",
    "squared",
    "absolute",
    "quantile",
    "huber",
    "poisson",
    "gamma",
    "hinge",
    "squared_hinge",
    "softmax",
)
KINDS = (
    *("change point", "heavy tails", "weights of any size", "sorted labels", "duplicate features"),
    *("signed values", "one label", "passes", "rare features", "outliers"),
)
TAU, CLASSES = 0.3, 4


@dataclass
class Stream:
    """Rows of a stream as a dense matrix, and the options to train on them."""

    loss: str
    kind: str
    X: Vector
    y: Vector
    weight: Vector
    options: dict[str, Any]

    @property
    def passes(self) -> int:
        return int(self.options.get("passes", 1))

    def write(self, path: str) -> None:
        """Write VW lines; a feature may be repeated within a line, each time with half of its value."""
        lines = []
        for row, label, weight in zip(self.X.tolist(), self.y.tolist(), self.weight.tolist(), strict=True):
            parts = 2 if self.kind == "duplicate features" else 1
            features = " ".join(f"f{i}:{v / parts!r}" for i, v in enumerate(row) if v for _ in range(parts))
            lines.append(f"{label!r} {weight!r} | {features}\n")
        Path(path).write_text("".join(lines))


def stream_of(loss: str, kind: str, seed: int) -> Stream:
    rng = np.random.default_rng([seed, LOSSES.index(loss), KINDS.index(kind)])
    n, d = int(rng.integers(40, 130)), int(rng.integers(2, 7))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7) * 10.0 ** rng.integers(-2, 3, size=d)
    if kind == "heavy tails":
        X = np.clip(rng.standard_cauchy(size=(n, d)) ** 3, -1e9, 1e9)
    if kind == "signed values":
        X = np.sign(X)
    if kind == "rare features":
        X *= rng.random((n, d)) < 0.05
    X = X.astype(np.float32).astype(np.float64)
    score = X @ (2.0 * rng.normal(size=d) / np.maximum(np.abs(X).max(axis=0), 1e-30))
    if kind == "change point":
        score[n // 2 :] *= -1.0
    score += 0.3 * rng.normal(size=n)
    if kind == "one label":
        score[:] = 1.0
    y = labels_of(loss, score, rng)
    if kind == "outliers":
        far = rng.random(n) < 0.05
        y = np.where(far, np.abs(y) * 1e6 if loss in ("poisson", "gamma") else -1e5 * y, y) if is_number(loss) else y
        X[far] *= 1e3
    if kind == "sorted labels":
        order = np.argsort(y, kind="stable")
        X, y = X[order], y[order]
    weight = 10.0 ** rng.uniform(-5, 5, n) if kind == "weights of any size" else np.ones(n)
    scale: Any = 0.1 if rng.random() < 0.5 else "auto"
    options: dict[str, Any] = {"loss": loss, "scale": scale, "order": "given", "receipt": True, "bits": 18}
    options |= {"float64": scale == "auto" and loss not in ("logistic", "softmax")}
    options |= {"passes": 3} if kind == "passes" else {}
    options |= {"tau": TAU} if loss == "quantile" else {"classes": CLASSES} if loss == "softmax" else {}
    return Stream(loss, kind, X.astype(np.float32).astype(np.float64), y, weight, options)


def is_number(loss: str) -> bool:
    return loss in ("squared", "absolute", "quantile", "huber", "poisson", "gamma")


def labels_of(loss: str, score: Vector, rng: np.random.Generator) -> Vector:
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(score, -3.0, 3.0))).astype(np.float64)
    if loss == "gamma":
        return np.exp(np.clip(score, -3.0, 3.0)) * rng.gamma(2.0, size=len(score))
    if loss == "softmax":
        return np.clip(np.floor(score + 2.0), 0.0, CLASSES - 1.0)
    return np.where(score > 0, 1.0, -1.0) if not is_number(loss) else 50.0 + 10.0 * score


def value_and_slope(loss: str, s: Vector, y: Vector) -> tuple[Vector, Vector]:
    """Return the loss of each score and its slope; with several classes, of each row of scores."""
    if loss == "softmax":
        high = s.max(axis=1, keepdims=True)
        powers = np.exp(s - high)
        total, own = powers.sum(axis=1, keepdims=True), (np.arange(len(y)), y.astype(int))
        slope = powers / total
        slope[own] -= 1.0
        return (np.log(total) + high)[:, 0] - s[own], slope
    d, e = s - y, np.exp(np.clip(s, -60.0, 60.0))
    margin = 1.0 - y * s
    table = {
        "logistic": lambda: (np.logaddexp(0.0, -y * s), -y * np.exp(-np.logaddexp(0.0, y * s))),
        "squared": lambda: (0.5 * d**2, d),
        "absolute": lambda: (np.abs(d), np.sign(d)),
        "quantile": lambda: (np.where(d > 0, (1 - TAU) * d, -TAU * d), np.where(d > 0, 1 - TAU, -TAU)),
        "huber": lambda: (np.where(np.abs(d) <= 1, 0.5 * d**2, np.abs(d) - 0.5), np.clip(d, -1.0, 1.0)),
        "poisson": lambda: (e - y * np.clip(s, -60.0, 60.0), e - y),
        "gamma": lambda: (y / e + np.clip(s, -60.0, 60.0), 1.0 - y / e),
        "hinge": lambda: (np.maximum(margin, 0.0), np.where(margin > 0, -y, 0.0)),
        "squared_hinge": lambda: (0.5 * np.maximum(margin, 0.0) ** 2, -y * np.maximum(margin, 0.0)),
    }
    values, slopes = table[loss]()
    return values, slopes


@dataclass
class Truth:
    """The total loss of any fixed weights t, each times the unit of its feature, computed from the rows alone."""

    loss: str
    V: Vector  # values in units, and a column of ones
    y: Vector
    weight: Vector
    offset: Vector

    def __call__(self, t: Vector) -> tuple[float, Vector]:
        scores = self.V @ t.reshape(self.V.shape[1], -1)
        scores = scores if self.loss == "softmax" else scores[:, 0] + self.offset
        values, slopes = value_and_slope(self.loss, scores, self.y)
        pull = (self.weight * slopes.T).T
        return float(self.weight @ values), (self.V.T @ pull).reshape(-1)

    @property
    def size(self) -> int:
        return self.V.shape[1] * (CLASSES if self.loss == "softmax" else 1)

    def candidates(self) -> list[Vector]:
        """Return weights that are hard to beat: near the best of several lengths, and far along the first slope."""
        t, found = np.zeros(self.size), [np.zeros(self.size)]
        slope = self(t)[1]
        norm = float(np.linalg.norm(slope))
        if norm > 0.0:
            found += [-length / norm * slope for length in (0.1, 1.0, 10.0)]
        for penalty in norm / 3.0 ** np.arange(-1, 8) if norm > 0.0 else ():

            def goal(a: Vector, penalty: float = penalty) -> tuple[float, Vector]:
                value, own = self(a)
                return value + 0.5 * penalty * float(a @ a), own + penalty * a

            t = minimize(goal, t, jac=True, method="L-BFGS-B", options={"maxiter": 200}).x
            found.append(t)
        return found


def units_of(model: ftprl.Model, features: int) -> Vector:
    """Return the unit of each feature, in which lengths are measured; 0 if the feature was not learned."""
    Path("names.vw").write_text("".join(f"1 | f{i}:1\n" for i in range(features)))
    slots = next(iter(ftprl.data.open("names.vw", dim=2**18).batches())).indices.tolist()
    blocks = [b for b in coordinate_blocks(model.engine) if b.slots is not None]
    copies = len(model.engine.copies)
    known = {
        slot: unit for b in blocks for slot, unit in zip(b.slots[::copies].tolist(), b.unit[::copies, 0], strict=True)
    }
    return np.array([known.get(slot, 0.0) for slot in slots])


def learned_twin(stream: Stream, spec: Any) -> tuple[Vector, Vector, float, float]:
    """By a twin: the offsets of the rows of all passes, factors of their weights, the total loss, the best scale's."""
    twin = LearnerTwin(replace(spec, dim=stream.X.shape[1], retired=(), float64=True))
    offsets, shares, total, experts = [], [], 0.0, np.zeros(len(spec.scales))
    for _ in range(stream.passes):
        for x, y, weight in zip(stream.X, stream.y.tolist(), stream.weight.tolist(), strict=True):
            offsets.append(twin.labels.m)
            slots = np.flatnonzero(x)
            prediction, _ = twin.learn_row(slots, x[slots], y, weight)
            unit = twin.labels.U
            shares.append(1.0 if stream.loss != "poisson" else 1.0 / unit if unit > 0 else 0.0)
            lost = value_and_slope(stream.loss, np.array([prediction]), np.array([y]))[0][0]
            total += weight * shares[-1] * float(lost)
            scores = np.array(twin.said.experts[: len(experts)])  # type: ignore[union-attr]
            experts += weight * value_and_slope(stream.loss, scores, np.full(len(experts), y))[0]
    return np.array(offsets), np.array(shares), total, float(experts.min())


def truth_of(stream: Stream, model: ftprl.Model) -> tuple[Any, ...]:
    """Return the losses of fixed weights, of the run and of its best scale, at full precision if a twin computes
    them.
    """
    units = units_of(model, stream.X.shape[1])
    largest = np.abs(stream.X).max(axis=0, initial=0.0)
    assert (units <= largest * (1 + 1e-6)).all()
    V = np.divide(stream.X, units, out=np.zeros_like(stream.X), where=units > 0)
    V = np.column_stack([V, np.ones(len(V))])
    y, weight = stream.y, stream.weight.copy()
    V, y, weight = (np.concatenate([a] * stream.passes) for a in (V, y, weight))
    offset, losses = np.zeros(len(y)), (None, None)
    if stream.loss not in ("logistic", "softmax"):
        offset, shares, *losses = learned_twin(stream, model.engine.spec)
        weight = weight * shares
    if not is_number(stream.loss):
        offset = np.zeros(len(y))
    return Truth(stream.loss, V, y, weight, offset), *(losses if model.engine.spec.float64 else (None, None))


def check_floor(c: StreamCertificate, truth: Truth, slack: float) -> None:
    """Check that no fixed weights beat the floor at their length, nor the run up to the beaten length."""
    for t in truth.candidates():
        value, length = truth(t)[0], float(np.linalg.norm(t)) / c.curve.unit
        assert value >= c.floor(length) * c.weight - slack, f"the floor at {length}"
        if c.beaten_length is not None and length <= c.beaten_length:
            assert value >= c.loss - slack, f"beaten at {length}"


def check_box(model: ftprl.Model, truth: Truth, radius: float, slack: float) -> None:
    """Check that the regret against a box is at least the regret against any weights in it, and that --exact
    brackets it.
    """
    c = certify_model(model, radius=radius, exact="s.vw")
    assert c.exact is not None
    for t in truth.candidates():
        value = truth(np.clip(t, -radius, radius))[0]
        assert c.loss - value <= c.regret + c.rounding + slack
        assert value >= c.exact["best_loss_at_least"] - slack
        assert c.loss - value <= c.exact["true_regret"] + slack
    assert c.exact["best_loss_at_least"] <= c.exact["best_loss"] + slack
    assert c.exact["true_regret_at_least"] <= c.regret + c.rounding + slack
    write_receipt("r.json", make_receipt(model, c))
    verdict = verify_receipt("r.json", "s.vw", model="m")
    assert verdict.confirmed, str(verdict)


def check_claims(stream: Stream) -> bool:
    """Check all claims of certify about a stream; return False if it refuses to certify."""
    stream.write("s.vw")
    predictions = {} if stream.passes > 1 else {"predictions": "p.txt"}
    model = ftprl.train("s.vw", output="m", **stream.options, **predictions).model
    try:
        c = certify_model(model)
    except ftprl.receipt.NotProved:
        return False
    truth, loss, best = truth_of(stream, model)
    slack = c.rounding + 1e-7 * (abs(c.loss) + abs(truth(np.zeros(truth.size))[0]))
    assert c.weight == pytest.approx(truth.weight.sum(), rel=1e-9)
    assert c.rounds == len(truth.y)
    if loss is not None:
        assert c.loss == pytest.approx(loss, rel=1e-5, abs=slack)
    if stream.loss == "logistic" and predictions:
        p = np.loadtxt("p.txt", ndmin=1)
        lost = -np.log(np.maximum(np.where(stream.y > 0, p, 1.0 - p), 1e-300))
        if lost.max() < 15.0:  # digits of 1 - p
            assert c.loss == pytest.approx(float(stream.weight @ lost), rel=1e-4)
    check_floor(c, truth, slack)
    for low, high in itertools.pairwise((c.regret, c.tight, c.bound, c.theorem)):
        assert low <= high + slack
    if c.rates is not None and c.rates["guaranteed"] is not None:
        assert c.rates["mixture"] <= c.rates["loss"] + c.rates["guaranteed"]
    if c.rates is not None:
        assert c.rates["mixture"] == c.baseline["loss"]
        if best is not None:
            assert c.rates["loss"] == pytest.approx(best, rel=1e-5, abs=slack)
    check_box(model, truth, 1.0, slack)
    return True


def check_streams(streams: list[tuple[str, str]], seed: int) -> None:
    said = [check_claims(stream_of(loss, kind, seed)) for loss, kind in streams]
    assert sum(said) >= 0.9 * len(said)


ALL = list(itertools.product(LOSSES, KINDS))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_claims_about_ten_adversarial_streams() -> None:
    """Every loss and every kind of stream occurs once."""
    check_streams([(loss, KINDS[(3 * i) % 10]) for i, loss in enumerate(LOSSES)], 1)


def test_a_floor_that_is_too_high_is_found() -> None:
    stream = stream_of("squared", "change point", 1)
    stream.write("s.vw")
    model = ftprl.train("s.vw", **stream.options).model
    c, (truth, *_) = certify_model(model), truth_of(stream, model)
    check_floor(c, truth, 0.0)
    above = truth(np.zeros(truth.size))[0] * 1.001 - c.floor(0.0) * c.weight
    lines = tuple(replace(line, start=line.start + above) for line in c.floors.lines)
    with pytest.raises(AssertionError, match="the floor at"):
        check_floor(replace(c, floors=replace(c.floors, lines=lines)), truth, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_claims_about_a_hundred_adversarial_streams(loss: str) -> None:
    check_streams([pair for pair in ALL if pair[0] == loss], 2)
