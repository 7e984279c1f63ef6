"""Probabilities that are calibrated while rows are learned: docs/calibration.md."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

import ftprl
from ftprl._core import use_instruction_set
from ftprl.cli.app import run
from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.online import OnlineClassifier
from laws.strategies import SEEDS, law
from oracles.calibration_twin import Isotonic, Platt, calibrated
from oracles.forged import forge_model, forge_tensor

KINDS = ("platt", "isotonic")
Capture = pytest.CaptureFixture[str]


def rows_of(n: int, seed: int = 0) -> Batch:
    """Return rows with many rare names, so that a single large scale is overconfident; some rows have no label."""
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=60)
    rows, y = [], []
    for _ in range(n):
        names = rng.choice(60, size=6, replace=False, p=(w := 1.0 / np.arange(1, 61)) / w.sum())
        rows.append({int(i): 1.0 for i in names})
        y.append(1.0 if rng.random() < 1 / (1 + np.exp(1 - effects[names].sum())) else -1.0)
    y[n // 3] = float("nan")
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.05, 0.15, 0.7, 0.1])
    return Batch.from_rows(rows, y, weight=weight.tolist())


def learned(engine: Engine, batch: Batch, cuts: tuple[int, ...] = ()) -> tuple[np.ndarray, np.ndarray]:
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    for a, b in itertools.pairwise((0, *cuts, len(batch))):
        engine.learn(batch[a:b], scores=scores[a:b], losses=losses[a:b])
    return scores, losses


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [2.0, "auto", (0.1, 1.0)])
def test_scores_and_losses_are_those_of_the_twin_and_the_weights_as_without(kind: str, scale: Any) -> None:
    batch = rows_of(400)
    plain, own = Engine(Spec(dim=64, scale=scale)), Engine(Spec(dim=64, scale=scale, calibrate=kind))
    before, _ = learned(plain, batch)
    scores, losses = learned(own, batch)
    expected, lost = calibrated(kind, before.tolist(), batch.y.tolist(), batch.weight.tolist())
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(losses, lost, rtol=1e-9, atol=1e-9)
    counts = (batch.weight > 0) & (batch.y == batch.y)
    assert own.progress.loss == pytest.approx(float((batch.weight * losses)[counts].sum()))
    assert (own.progress.rows, own.progress.weight) == (plain.progress.rows, plain.progress.weight)
    assert own.cells.tobytes() == plain.cells.tobytes()
    np.testing.assert_array_equal(own.score(batch, calibrated=False), plain.score(batch))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_too_sure_gets_better(kind: str) -> None:
    batch = rows_of(3000)
    plain, own = Engine(Spec(dim=64, scale=5.0)), Engine(Spec(dim=64, scale=5.0, calibrate=kind))
    for engine in (plain, own):
        engine.learn(batch)
    assert own.progress.mean < 0.9 * plain.progress.mean


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_identity_before_the_first_row(kind: str) -> None:
    batch = rows_of(50)
    plain, own = Engine(Spec(dim=64)), Engine(Spec(dim=64, calibrate=kind))
    np.testing.assert_array_equal(own.score(batch), plain.score(batch))
    if kind == "isotonic":
        knots = own.calibration_knots
        assert knots is not None
        np.testing.assert_allclose(knots[:, 0], knots[:, 1], atol=1e-12)


@law(15)
@given(SEEDS, st.sampled_from(KINDS), st.lists(st.integers(1, 299), max_size=4))
def test_no_cut_into_batches_and_no_instruction_set_changes_a_bit(seed: int, kind: str, cuts: list[int]) -> None:
    batch = rows_of(300, seed)
    bodies = set()
    for name, edges in (("", ()), ("", tuple(sorted(set(cuts)))), ("portable", ())):
        use_instruction_set(name)
        engine = Engine(Spec(dim=64, scale=(0.1, 1.0, 5.0), calibrate=kind))
        scores, losses = learned(engine, batch, edges)
        bodies.add(Model(engine).to_bytes() + scores.tobytes() + losses.tobytes() + engine.score(batch).tobytes())
    use_instruction_set("")
    assert len(bodies) == 1


@law(30)
@given(SEEDS, st.sampled_from(KINDS), st.booleans())
def test_calibrated_scores_rise_with_scores(seed: int, kind: str, rare: bool) -> None:
    """Calibrated scores rise with scores whatever the labels, so the sign of a bounded weight is preserved."""
    rng = np.random.default_rng(seed)
    n = 300
    labels = np.where(rng.random(n) < (0.02 if rare else 0.5), 1.0, -1.0)
    x = -labels * rng.random(n) if rng.random() < 0.5 else rng.normal(size=n)
    engine = Engine(Spec(dim=2, scale=3.0, calibrate=kind))
    engine.learn(Batch.from_rows([{0: float(v)} for v in x], y=labels.tolist()))
    grid = Batch.from_rows([{0: float(v)} for v in np.linspace(-20, 20, 500)])
    before, after = engine.score(grid, calibrated=False), engine.score(grid)
    order = np.argsort(before)
    assert (np.diff(after[order]) >= -1e-12).all()
    one_by_one = [float(engine.score(grid[i : i + 1])[0]) for i in range(0, 500, 37)]
    np.testing.assert_array_equal(one_by_one, after[::37])


def test_a_huge_weight_leaves_isotonic_scores_finite() -> None:
    engine = Engine(Spec(dim=8, scale=1.0, calibrate="isotonic"))
    scores, losses = learned(engine, Batch.from_rows([{0: 1.0}] * 4, [1.0] * 4, weight=[1.0, 1e20, 1e30, 1.0]))
    assert np.isfinite(scores).all()
    assert np.isfinite(losses).all()


def test_rates_are_those_of_scikit_learn() -> None:
    batch = rows_of(2000)
    engine = Engine(Spec(dim=64, scale=1.0, calibrate="isotonic"))
    engine.learn(batch)
    empty, bins, knots = Isotonic(), engine.saved_arrays["calibrator.bins"], engine.calibration_knots
    assert knots is not None
    weight = np.array(empty.weight) + bins[:, 0]
    rates = (np.array(empty.positive) + bins[:, 1]) / weight
    fitted = IsotonicRegression(increasing=True).fit_transform(np.arange(33.0), rates, sample_weight=weight)
    np.testing.assert_allclose(1 / (1 + np.exp(-knots[:, 1])), fitted, rtol=1e-9)


def test_platt_starts_near_the_identity_and_stays_there_when_nothing_speaks_against_it() -> None:
    rng, twin = np.random.default_rng(0), Platt()
    for _ in range(4000):
        s = float(rng.normal())
        twin.learn(s, 1.0 if rng.random() < 1 / (1 + np.exp(-s)) else -1.0, 1.0)
    assert abs(twin.u - [1.0, 0.0, 0.0]).max() < 0.15


# ---- models ----


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    ftprl.data.clicks.generate(3000, seed=1, path="clicks.csv")
    return "clicks.csv"


@pytest.mark.parametrize("kind", KINDS)
def test_files_checkpoints_and_threads_give_the_same_bytes(clicks: str, kind: str) -> None:
    options: dict[str, Any] = {"label": "click", "bits": 12, "calibrate": kind}
    whole = ftprl.train(clicks, **options, output="whole", threads=1)
    ftprl.train(clicks, **options, output="threads", threads=3)
    ftprl.train(clicks, **options, checkpoint="c", every=1000)
    again = ftprl.train(clicks, resume="c", output="resumed")
    assert Path("whole").read_bytes() == Path("threads").read_bytes() == Path("resumed").read_bytes()
    assert again.progressive == whole.progressive
    given = ftprl.train(clicks, **options, predictions="p")
    assert given.model.state_digest() == ftprl.train(clicks, **options, order="given", threads=3).model.state_digest()
    lines, y = np.loadtxt("p"), np.loadtxt(clicks, delimiter=",", skiprows=1, usecols=0)
    own = -np.log(np.where(y > 0, lines, 1 - lines)).mean()
    assert own == pytest.approx(given.progressive_loss, abs=1e-9)
    model = Model.load("whole")
    assert model.engine.spec.calibrate == kind
    for same in (Model.from_bytes(model.to_bytes()), model.compact()):
        np.testing.assert_array_equal(same.predict(clicks), model.predict(clicks))
    assert "calibration" in model._repr_html_()
    more = ftprl.train(clicks, resume="whole")  # goes on calibrating
    assert more.model.engine.progress.rows == 6000


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_and_explanation(clicks: str, kind: str) -> None:
    model = ftprl.train(clicks, label="click", bits=12, scale=3.0, calibrate=kind).model
    source = model.open_labelled(clicks)
    (batch,) = source.batches()
    p = model.predict(batch)
    own = float(-np.log(np.where(batch.y > 0, p, 1 - p)).mean())
    assert model.evaluate(clicks).to_dict()["metrics"]["log_loss"]["value"] == pytest.approx(own)
    row = dict(zip(*(line.split(",") for line in Path(clicks).read_text().splitlines()[:2]), strict=True))
    result = model.explain({name: value for name, value in row.items() if name != "click"})
    assert result.prediction == p[0]
    assert result.score == pytest.approx(float(model.engine.score(batch[:1], calibrated=False)[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_one_row_at_a_time_is_the_same(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = [{"a": float(x), f"b{k}": 1.0} for x, k in zip(rng.normal(size=200), rng.integers(0, 9, 200), strict=True)]
    y = [bool(row["a"] > 0) for row in rows]
    online = OnlineClassifier(scale=4.0, calibrate=kind)
    for row, label in zip(rows, y, strict=True):
        online.learn_one(row, label)
    labels = [float(label) for label in y]
    run = ftprl.train(rows, labels, scale=4.0, calibrate=kind, missing="ignore", order="given")
    assert online.model.engine.progress.loss == run.model.engine.progress.loss
    assert online.predict_proba_one(rows[0])[True] == run.model.predict(rows[:1])[0]
    assert online.clone().calibrate == kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_no_learning_makes_is_refused(clicks: str, kind: str) -> None:
    ftprl.train(clicks, label="click", bits=12, calibrate=kind, output="m")
    body = Path("m").read_bytes()
    wrong: list[tuple[str, Any]] = {
        "platt": [
            ("calibrator.u", lambda a: a.__setitem__(0, np.nan)),
            ("calibrator.P", lambda a: a.__setitem__((0, 0), -1.0)),
            ("calibrator.P", lambda a: a.__setitem__((0, 1), 0.2)),
        ],
        "isotonic": [
            ("calibrator.bins", lambda a: a.__setitem__((3, 0), -1.0)),
            ("calibrator.bins", lambda a: a.__setitem__((16, 1), a[16, 0] + 1.0)),
            ("calibrator.bins", lambda a: a.__setitem__((16, 2), np.inf)),
            ("calibrator.bins", lambda a: a.__setitem__((16, 2), a[16, 0] + 1.0)),
        ],
    }[kind]
    for name, change in wrong:
        with pytest.raises(BadModel, match="that no learning makes"):
            Model.from_bytes(forge_tensor(body, name, change))
    other = "platt" if kind == "isotonic" else "isotonic"
    for value in (other, "none", "sigmoid", 1):
        with pytest.raises(BadModel):
            Model.from_bytes(forge_model(body, lambda content, v=value: content["spec"].__setitem__("calibrate", v)))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"calibrate": "sigmoid"}, "calibrate= needs one of none, platt, isotonic, got 'sigmoid'; pass one of them."),
        ({"calibrate": "platt", "loss": "hinge"}, "calibrate= needs loss=logistic, got calibrate=platt and loss=hinge"),
        ({"calibrate": "platt", "loss": "softmax"}, "calibrate= needs loss=logistic"),
        ({"calibrate": "isotonic", "receipt": True}, "receipt= covers predictions as they are before calibration"),
        ({"calibrate": "isotonic", "passes": 3}, "calibrate= learns from predictions of rows that are new"),
        ({"calibrate": "platt", "delay": 5}, "calibrate= does not support labels that arrive late yet, got delay="),
    ],
)
def test_what_cannot_be_calibrated_is_refused(options: dict[str, Any], line: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ftprl.train([{"a": 1.0}, {"a": 2.0}], [1, 0], **options)
    assert str(refused.value).startswith(line)


def test_the_command_refuses_in_the_words_of_the_command_line(clicks: str, capsys: Capture) -> None:
    base = ["train", clicks, "--label", "click", "-o", "m", "-q", "--bits", "10"]
    for more, line in (
        (["--calibrate", "platt", "--receipt"], "--receipt covers"),
        (["--calibrate", "platt", "--loss", "squared"], "--calibrate needs --loss logistic, got --calibrate platt"),
        (["--calibrate", "platt", "--passes", "2"], "got --passes 2; drop one."),
    ):
        assert run([*base, *more]) == 2
        out = capsys.readouterr().err
        assert line in out
        assert out.count("\n") == 1
    assert run([*base, "--calibrate", "isotonic"]) == 0
    assert run(["train", clicks, "--resume", "m", "--calibrate", "platt", "-o", "n"]) == 2
    assert "--calibrate needs to be what the model was trained with" in capsys.readouterr().err


def test_off_leaves_no_trace() -> None:
    assert "calibrate" not in Spec().to_dict()
    assert Model(Engine(Spec(dim=4))).to_bytes() == Model(Engine(Spec(dim=4, calibrate="none"))).to_bytes()
    with pytest.raises(InvalidInput, match="learn_late does not calibrate"):
        Engine(Spec(dim=4, calibrate="platt")).learn_late(rows_of(3), np.empty((3, 0)), np.arange(3))
