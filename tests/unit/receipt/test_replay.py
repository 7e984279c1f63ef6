"""The compiled replay of verify against the learner, to the bit, against small twins, and with planted faults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl._core import CompiledReplay
from ftprl.cli.app import run
from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.receipt import certify_model, make_receipt, replay, verify_receipt, write_receipt
from ftprl.receipt.replay import Replay, settings_of
from laws.learner_arrays import arrays_of, assert_arrays
from laws.streams import LOSSES, OPTIONS, SIGNS, spec, stream
from oracles.learner_twin import LearnerTwin

SCALES: dict[str, Any] = {"one": None, "three": (0.05, 0.4, 2.0), "six": (0.02, 0.1, 0.3, 1.0, 3.0, 9.0)}


def assert_learned(engine: Engine, own: Replay) -> None:
    """Check that all numbers behind a certificate, and the state of a mixture, agree to the bit."""
    slots = engine.touched()
    np.testing.assert_array_equal(slots, own.touched())
    theirs, ours = engine.parts_at(slots), own.parts_at(slots)
    for name in ours:
        np.testing.assert_array_equal(theirs[name], ours[name], err_msg=name)
    np.testing.assert_array_equal(engine.intercept_columns, own.intercept_columns)
    progress = engine.progress
    assert (progress.loss, progress.weight, progress.rows) == tuple(own.tallies.tolist())
    for k in range(len(own.spec.scales)):
        assert engine.sums_of(k) == own.sums_of(k)
        assert engine.rounding_sums(k) == own.rounding_sums(k)
        assert engine.row_sums(k) == own.row_sums(k)
    if own.calibration is not None:
        np.testing.assert_array_equal(engine.calibration, own.calibration)
    assert_arrays(engine, own)


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_has_the_bits_of_the_learner(loss: str, scale: str, float64: bool) -> None:
    for options in OPTIONS.values():
        more = {**options, "float64": float64} | ({} if SCALES[scale] is None else {"scale": SCALES[scale]})
        own = spec(loss, **more)
        engine, replayed = Engine(own, receipt=True), Replay(own, retire=False)
        for seed in (1, 2):
            batch = stream(seed, loss, rows=60, float64=float64)
            engine.learn(batch)
            for part in batch.cut(7):
                replayed.learn(part)
        assert_learned(engine, replayed)


@pytest.mark.parametrize("size", [1e-20, 1.0, 1e9])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "logistic"])
def test_labels_of_any_size(loss: str, size: float) -> None:
    """Labels leave their range again and again."""
    own = spec(loss, scale=(0.05, 0.4, 2.0), tau=0.8)
    engine, replayed = Engine(own, receipt=True), Replay(own, retire=False)
    batch = stream(8, loss, rows=200, float64=False)
    if loss not in SIGNS:
        y = batch.y * size * np.exp(np.arange(200) / 40)
        batch = Batch(batch.indptr, batch.indices, batch.values, y, batch.weight)
    engine.learn(batch)
    for part in batch.cut(9):
        replayed.learn(part)
    assert_learned(engine, replayed)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_scales_are_dropped_at_the_same_rows(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    own = spec(loss, scale="auto")
    replayed, engine = Replay(own, retire=True), Engine(own, receipt=True)
    batch = stream(6, loss, rows=2600, float64=False)
    replayed.learn(batch)
    engine.learn(batch)
    assert engine.spec == replayed.spec
    assert_learned(engine, replayed)


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("more", [{"coin": True}, {"dense": True}, {"coin": True, "dense": True}], ids=str)
def test_coin_and_columns_are_replayed(loss: str, float64: bool, more: dict[str, bool]) -> None:
    """Dense columns appear, disappear and return; the bits equal the learner's."""
    for options in [{}, {"intercept": False}]:
        own = spec(loss, scale=(0.05, 0.4, 2.0), dim=64, float64=float64, **more, **options)
        replayed, engine = Replay(own, retire=True), Engine(own, receipt=True)
        batch = numbers(300, loss, float64=float64)
        for part in batch.cut(37):
            replayed.learn(part)
        engine.learn(batch)
        assert_learned(engine, replayed)
        if "dense" in more:
            assert len(arrays_of(engine)["columns.facts"]) >= 4


def numbers(rows: int, loss: str, *, float64: bool) -> Batch:
    """Return five numbers, one often missing and one present only in the middle, and a few names per row."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(rows, 5)) * [1, 10, 0.1, 1, 1] + [0, 100, 3, 0, 0]
    X[:, 3] *= rng.random(rows) < 0.7
    X[: rows // 16, 4] = X[rows // 3 :, 4] = 0.0
    score = X[:, 0] + (X[:, 1] - 100) / 10
    entries = []
    for x in X:
        names = rng.choice(12, size=3, replace=False) + 5
        entries.append({**{j: float(v) for j, v in enumerate(x) if v}, **{int(i): 1.0 for i in names}})
    y = np.sign(score) if loss in ("logistic", "hinge", "squared_hinge") else np.exp(score / 3).round() + 1.0
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], rows, p=[0.05, 0.2, 0.7, 0.05])
    return Batch.from_rows(entries, y.tolist(), weight=weight.tolist(), float64=float64)


def learned_rows(batch: Batch) -> Any:
    """Return slots, values, label and weight of the rows that are learned."""
    for r in np.flatnonzero((batch.weight > 0) & (batch.y == batch.y)).tolist():
        row = slice(batch.indptr[r], batch.indptr[r + 1])
        yield batch.indices[row].tolist(), batch.values[row].astype(float), float(batch.y[r]), float(batch.weight[r])


@pytest.mark.parametrize("more", [{}, {"coin": True}, {"dense": True}, {"coin": True, "dense": True}], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_it_predicts_as_its_twin(loss: str, more: dict[str, bool]) -> None:
    """With the log loss to the bit."""
    own = spec(loss, scale=(0.05, 0.4, 2.0), dim=64, float64=True, **more)
    batch = numbers(200, loss, float64=True)
    losses, predictions = Replay(own, retire=False).learn(batch)
    twin = LearnerTwin(own)
    expected = [twin.learn_row(*row) for row in learned_rows(batch)]
    if loss == "logistic":
        np.testing.assert_array_equal(losses, [lost for _, lost in expected])
    else:
        np.testing.assert_allclose(predictions, [score for score, _ in expected], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(losses, [lost for _, lost in expected], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "logistic"])
def test_one_scale_predicts_as_its_twin(loss: str) -> None:
    own, batch = spec(loss, scale=0.3, dim=64, float64=True), numbers(200, loss, float64=True)
    twin = LearnerTwin(own)
    expected = [twin.learn_row(*row)[0] for row in learned_rows(batch)]
    np.testing.assert_allclose(Replay(own, retire=False).learn(batch)[1], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_experts_leave_at_the_same_rows(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_DROP_ROW", 256)
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    own = spec(loss, scale="auto", dim=64, coin=True, dense=True)
    replayed, engine = Replay(own, retire=True), Engine(own, receipt=True)
    batch = numbers(2600, loss, float64=False)
    for part in batch.cut(700):
        for learner in (replayed, engine):
            learner.learn(part)
        assert engine.spec == replayed.spec
        assert_learned(engine, replayed)
    assert engine.mixture is not None
    assert "coin" not in engine.mixture.names


def test_bad_arrays_are_refused() -> None:
    own = Spec(dim=4)
    of_classes = {"copies": [1.0], "known_before": 0, "known": 0}
    settings, numbers = settings_of(own) | of_classes, np.zeros(64)
    with pytest.raises(ValueError, match="is missing"):
        CompiledReplay(settings, {"unit": np.zeros(4, np.float32)})
    cells = {name: np.zeros(4, np.float32) for name in ("z", "R", "unit", "count", "kappa")}
    names = ("S", "tallies", "sums", "slopes", "row_sums", "base", "labels")
    core = CompiledReplay(settings, {**cells, **dict.fromkeys(names, numbers)})
    one, out, ends = np.ones(1), np.zeros(1), np.array([0, 1])
    with pytest.raises(ValueError, match="predictions"):
        core.pass_rows(True, ends, np.array([1], np.int32), one, one, one, out, np.zeros(2), out, out)
    with pytest.raises(ValueError, match="outside the table"):
        core.pass_rows(True, ends, np.array([9], np.int32), one, one, one, out, out, out, out)
    with pytest.raises(ValueError, match="indptr"):
        core.pass_rows(True, np.array([0, 5]), np.array([1], np.int32), one, one, one, out, out, out, out)
    with pytest.raises(ValueError, match="numbers"):
        CompiledReplay(settings, {**cells, **dict.fromkeys(names, numbers[:1])})
    several = settings_of(Spec(dim=4, loss="squared", scale=(0.1, 1.0))) | of_classes
    more = {**cells, **dict.fromkeys(names, numbers), **{name: np.zeros(8, np.float32) for name in ("z", "R")}}
    with pytest.raises(ValueError, match=r"newton_A\.u is missing"):
        CompiledReplay(several, more)
    with pytest.raises(ValueError, match="loss of several classes"):
        CompiledReplay({**settings, "copies": [1.0, 3.0]}, {**cells, **dict.fromkeys(names, numbers)})


def test_labels_of_classes_that_are_not_known_are_refused() -> None:
    own = Spec(dim=4, loss="softmax", classes=3)
    known = Replay(own, retire=False, known=3)
    settings = settings_of(own) | {"copies": [1.0, 1.0, 1.0], "known_before": 3, "known": 3}
    core, one, out = CompiledReplay(settings, known.arrays.all), np.ones(1), np.zeros(1)
    for y in (3.0, -1.0):
        with pytest.raises(ValueError, match="number of a class"):
            core.pass_rows(True, np.array([0, 1]), np.array([1], np.int32), one, np.array([y]), one, out, out, out, out)
    for wrong in ({"known": 1}, {"known_before": 4}):
        with pytest.raises(ValueError, match="copies needs a number for each class"):
            CompiledReplay({**settings, **wrong}, known.arrays.all)


def log(path: Path, loss: str) -> None:
    rng = np.random.default_rng(3)
    labels = rng.choice([-1, 1], 60) if loss in ("logistic", "hinge") else rng.integers(1, 9, 60)
    path.write_text("".join(f"{y} | a{rng.integers(5)} b:{rng.normal():.3f}\n" for y in labels))


@pytest.mark.parametrize("scale", [0.1, (0.05, 0.4, 2.0)], ids=["one", "several"])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "absolute", "poisson"])
def test_verify_confirms(
    loss: str, scale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    log(Path("log.vw"), loss)
    model = ftprl.train("log.vw", loss=loss, bits=6, scale=scale, receipt=True, output="m").model
    write_receipt("r", make_receipt(model, certify_model(model)))
    assert run(["verify", "r", "log.vw", "--model", "m", "-q"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("change", [{"beta": 1.01}, {"l1": 1e-3}, {"scales": [0.11]}, {"tau": 0.4}])
def test_a_learner_that_learned_otherwise_is_refused(
    change: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay with another constant gives other numbers: none of them would be confirmed by accident."""
    monkeypatch.chdir(tmp_path)
    loss = "quantile" if "tau" in change else "squared"
    log(Path("log.vw"), loss)
    model = ftprl.train("log.vw", loss=loss, bits=6, scale=0.1, receipt=True).model
    write_receipt("r", make_receipt(model, certify_model(model)))
    right = replay.settings_of
    monkeypatch.setattr(replay, "settings_of", lambda spec: {**right(spec), **change})
    assert not verify_receipt("r", "log.vw").confirmed


def test_the_compiled_replay_shares_no_code_with_the_learner() -> None:
    """No file of the replay includes a file of the learner, directly or indirectly."""
    core = Path(__file__).parents[3] / "src" / "core"
    files = [path.relative_to(core).as_posix() for path in (core / "replay").iterdir()]
    included, left = set(files), files
    while left:
        own = re.findall(r'^ *# *include *["<]([^">]+)[">]', (core / left.pop()).read_text(), re.MULTILINE)
        new = {name for name in own if (core / name).exists()} - included
        included |= new
        left += new
    assert len(included) >= 10
    assert {name.split("/")[0] for name in included} == {"replay"}
