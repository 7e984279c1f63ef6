"""Uncertainty: how far one more row could move a prediction (docs/calibration.md)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftprl
from ftprl.cli.app import run
from ftprl.data import Batch
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.experts import uncertainty
from ftprl.losses import SCALAR_LOSSES
from ftprl.training.predict_files import predict_files
from laws.strategies import SEEDS, law

LOSSES = tuple(SCALAR_LOSSES)
SMOOTH = tuple(name for name in LOSSES if name not in ("absolute", "quantile", "huber"))  # a label moves their units


def rows_of(n: int, seed: int, loss: str = "logistic") -> Batch:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1, 10, 0.1, 1, 3] * (rng.random((n, 5)) < 0.7)
    s = 0.4 * X @ rng.normal(size=5) + rng.normal(size=n)
    y = {
        "signs": np.where(s > 0, 1.0, -1.0),
        "nonnegative": rng.poisson(np.exp(np.clip(s, -2, 2))).astype(float),
        "positive": np.exp(np.clip(s, -2, 2)) + 0.1,
    }.get(SCALAR_LOSSES[loss].labels, 30.0 + 4.0 * s)
    rows = [{i: float(v) for i, v in enumerate(x) if v} for x in X]
    return Batch.from_rows(rows, y.tolist())


def range_of_labels(loss: str, batch: Batch) -> tuple[float, float]:
    return (-1.0, 1.0) if SCALAR_LOSSES[loss].labels == "signs" else (float(batch.y.min()), float(batch.y.max()))


@law(60)
@given(SEEDS, st.sampled_from(SMOOTH), st.sampled_from([0.05, 0.5, 5.0]), st.booleans())
def test_no_label_moves_the_score_further(seed: int, loss: str, scale: float, l2: bool) -> None:
    batch = rows_of(60, seed, loss)
    known = batch[seed % 60 : seed % 60 + 1]  # a larger value would change the unit of its feature, and so its weight
    row = Batch.from_rows([{**dict(zip(known.indices.tolist(), known.values.tolist(), strict=True)), 7: 0.5}])
    engine = Engine(Spec(loss=loss, dim=8, scale=scale, float64=True, l2=0.3 if l2 else 0.0))
    engine.learn(batch)
    bound = float(uncertainty(engine, row)[0])
    moves = []
    for label in range_of_labels(loss, batch):
        twin = engine.copy()
        before = score_of(twin, row, label, learns=False)
        moves.append(abs(score_of(twin, row, label, learns=True) - before))
    assert max(moves) <= bound * (1 + 1e-9) + 1e-12
    if loss == "logistic":  # the slope of one of the labels is at least 1/2
        assert max(moves) >= 0.5 * bound * (1 - 1e-9)


def score_of(engine: Engine, row: Batch, label: float, *, learns: bool) -> float:
    """Return the unclipped score by the row's weights, measured from the offset, which a label moves too."""
    if learns:
        engine.learn(row.replaced(y=np.array([label])))
    return float(engine.weights()[row.indices] @ row.values.astype(float)) + engine.bias()


def expected(engine: Engine, row: dict[int, float]) -> np.ndarray:
    """Return the moves of each scale and class with the log loss, computed from the cells in NumPy."""
    spec, outputs = engine.spec, max(1, engine.classes)
    h, K = np.array(spec.scales), len(spec.scales)
    intercept = engine.intercept.reshape(outputs, 4, K)
    total = h / (spec.beta + np.sqrt(intercept[:, 1] ** 2 + 1.0))
    for slot, v in row.items():
        parts = engine.parts_at(np.array([slot]))
        R = np.asarray(parts["R"], float).reshape(-1)[: outputs * K].reshape(outputs, K)
        s = float(np.asarray(parts["unit"]).reshape(-1)[0])
        if abs(v) > s and spec.several:
            count = float(np.asarray(parts["count"]).reshape(-1)[0]) + 1
            s = max(s, np.sqrt(s * s + (v * v - s * s) / count), abs(v) / 16)
        s = max(s, abs(v)) if not spec.several else s
        total = total + v * v * h / (s * (spec.beta * s + np.sqrt(R**2 + v * v)))
    return total


def shares_of(engine: Engine) -> np.ndarray:
    """Return what a prediction has of each scale: by itself, and in the Newton experts that predictions mix."""
    mixture, count = engine.mixture, len(engine.spec.scales)
    assert mixture is not None
    w = dict(zip(mixture.names, mixture.weights, strict=True))
    shares = np.array(mixture.weights[:count])
    total = shares.sum()
    for name, array in (("scores", "newton_A.u"), ("columns", "newton_B.u")):
        if name in w:
            shares = shares + w[name] * abs(engine.saved_arrays[array][:count])
            total += w[name]
    return np.asarray(shares / total)


@pytest.mark.parametrize("scale", [0.3, (0.1, 1.0, 3.0), "auto"])
@pytest.mark.parametrize("float64", [False, True])
def test_it_is_that_of_the_cells(scale: Any, float64: bool) -> None:
    batch, some = rows_of(300, 1), rows_of(40, 2)
    engine = Engine(Spec(dim=8, scale=scale, float64=float64, dense=scale == "auto", coin=scale == "auto"))
    engine.learn(batch)
    actual = engine.moves(some)
    rows = [{int(i): float(v) for i, v in zip(some[r : r + 1].indices, some[r : r + 1].values, strict=True)}
            for r in range(len(some))]  # fmt: skip
    np.testing.assert_allclose(actual, [expected(engine, row)[0] for row in rows], rtol=1e-6)
    own = uncertainty(engine, some)
    if engine.mixture is None:
        np.testing.assert_array_equal(own, actual[:, 0])
        return
    np.testing.assert_allclose(own, actual @ shares_of(engine), rtol=1e-12)


@pytest.mark.parametrize("loss", ["softmax", "ovr"])
def test_of_several_classes_the_one_that_could_move_most(loss: str) -> None:
    rng = np.random.default_rng(0)
    rows = [{int(i): float(v) for i, v in enumerate(x)} for x in rng.normal(size=(200, 3))]
    y = [float(np.argmax([row[0], row[1], row[2]])) for row in rows]
    engine = Engine(Spec(loss=loss, dim=4, scale=(0.1, 1.0), classes=3))
    engine.learn(Batch.from_rows(rows, y))
    some = Batch.from_rows(rows[:20])
    actual = engine.moves(some).reshape(20, 3, 2)
    np.testing.assert_allclose(actual, [expected(engine, row) for row in rows[:20]], rtol=1e-5)
    np.testing.assert_allclose(uncertainty(engine, some), (actual @ shares_of(engine)).max(axis=1), rtol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_falls_with_rows_and_rises_with_the_unknown(loss: str) -> None:
    engine, row = Engine(Spec(loss=loss, dim=16, scale=(0.1, 1.0))), Batch.from_rows([{0: 1.0}, {9: 1.0}])
    values = []
    for seed in range(3):
        engine.learn(rows_of(200, seed, loss))
        values.append(uncertainty(engine, row))
    assert loss != "logistic" or values[0][0] > values[2][0]  # with others the range of the labels grows
    assert values[2][0] > 0.0
    assert values[2][1] > values[2][0]


def test_no_cut_changes_a_bit_and_calibration_none_either() -> None:
    batch = rows_of(500, 3)
    plain, own = Engine(Spec(dim=8)), Engine(Spec(dim=8, calibrate="isotonic"))
    for engine in (plain, own):
        engine.learn(batch)
    whole = uncertainty(plain, batch)
    parts = [uncertainty(plain, batch[a : a + 77]) for a in range(0, 500, 77)]
    assert whole.tobytes() == np.concatenate(parts).tobytes() == uncertainty(own, batch).tobytes()
    assert uncertainty(plain, batch[:0]).shape == (0,)


# ---- predict ----


def test_a_column_of_predict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.vw").write_text("".join(f"{1 if i % 3 else -1} 't{i} | a{i % 5} b:{i}\n" for i in range(200)))
    assert run(["train", "d.vw", "-o", "m", "-q", "--bits", "10"]) == 0
    model = Model.load("m")
    Path("new.vw").write_text("| a1 b:3\n'tag | a1 c\n| b:x\n| z\n")
    assert run(["predict", "m", "new.vw", "--uncertainty", "--on-bad-row", "skip"]) == 0
    first, second, bad, last, end = capsys.readouterr().out.split("\n")
    assert (bad, end) == ("", "")
    assert second.endswith(" tag")
    source = model.open("new.vw", on_bad_row="skip")
    u, p = model.uncertainty(source), model.predict(model.open("new.vw", on_bad_row="skip"))
    assert np.isnan(u[2])
    for line, k in ((first, 0), (second.removesuffix(" tag"), 1), (last, 3)):
        assert [float(field) for field in line.split(",")] == [p[k], u[k]]
    capsys.readouterr()
    Path("d.csv").write_text("y,x\n" + "".join(f"{i % 3},{i % 7}\n" for i in range(60)))
    ftprl.train("d.csv", label="y", loss="softmax", bits=8, output="c")
    assert run(["predict", "c", "d.csv", "--uncertainty", "--probabilities", "-o", "p.txt"]) == 0
    table = np.loadtxt("p.txt", delimiter=",")
    own = Model.load("c")
    np.testing.assert_array_equal(table, np.column_stack([own.predict("d.csv"), own.uncertainty("d.csv")]))
    assert run(["predict", "m", "d.vw", "--uncertainty", "--append", "-o", "a.csv"]) == 2
    assert "--append writes one column" in capsys.readouterr().err


def test_files_that_workers_write_have_the_same_columns(tmp_path: Path) -> None:
    class Here:
        """Workers that run in this process."""

        def results(self, jobs: Any, work: Any, /) -> Any:
            for job in jobs:
                yield from work(job)

    (tmp_path / "d.csv").write_text("y,x\n" + "".join(f"{i % 3},{i % 7}\n" for i in range(60)))
    model = ftprl.train(tmp_path / "d.csv", label="y", loss="softmax", bits=8).model
    (tmp_path / "out").mkdir()
    columns = {"probabilities": True, "uncertainty": True}
    workers: Any = Here()
    (made,) = predict_files(model, [str(tmp_path / "d.csv")], tmp_path / "out", workers, **columns)
    expected = np.column_stack([model.predict(tmp_path / "d.csv"), model.uncertainty(tmp_path / "d.csv")])
    np.testing.assert_array_equal(np.loadtxt(made.output, delimiter=","), expected)
