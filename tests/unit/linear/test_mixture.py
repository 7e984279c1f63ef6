"""Several scales through the public API: the engine and the model file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from ftprl._core import Learner
from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear import Engine, Spec, model_file
from ftprl.linear.model import Model
from ftprl.linear.spec import AUTO
from ftprl.training import train
from ftprl.training.summary import summary
from laws.learner_arrays import arrays_of
from laws.streams import stream

FOUR = (0.1, 0.2, 0.4, 0.8)


def learned(loss: str = "logistic", dim: int = 64, rows: int = 30, receipt: bool = False, **more: Any) -> Engine:
    engine = Engine(Spec(**{"loss": loss, "dim": dim, "scale": AUTO, **more}), receipt=receipt)
    engine.learn(stream(0, loss, rows=rows))
    return engine


def test_what_a_mixture_tells() -> None:
    engine = learned()
    mixture = engine.mixture
    assert mixture is not None
    assert mixture.names == ("0.02", "0.057", "0.16", "0.45", "1.28", "3.6", "10", "29", "scores", "drift", "offset")
    assert sum(mixture.weights) == pytest.approx(1.0)
    assert len(mixture.losses) == 11
    assert mixture.to_dict()["names"] == mixture.names
    with pytest.raises(AttributeError):
        mixture.names = ()  # type: ignore[misc]
    np.testing.assert_array_equal(engine.weights(), engine.weights(engine.leader))
    assert engine.bias() == engine.bias(engine.leader)
    assert Engine(Spec(dim=2)).mixture is None
    assert Engine(Spec(dim=2)).leader == 0
    one = Engine(Spec(dim=2), receipt=True)
    assert set(one.parts) == {"z", "R", "unit", "S"}
    one.learn(Batch.from_rows([{0: 1.0}], [1]))
    assert {name: a.tolist() for name, a in one.state.items()} == {
        "w": [1.0],
        "totals": [one.progress.loss],
        "sums": [[one.sums.linear], [one.sums.proximal], [one.sums.stability]],
    }


@pytest.mark.parametrize("scale", [-1, 8, 1.0, "0.02", True])
def test_a_scale_that_is_not_there(scale: Any) -> None:
    engine = learned()
    for ask in (engine.weights, engine.bias, engine.sums_of, Model(engine).weights):
        with pytest.raises(InvalidInput, match=r"scale needs a number from 0 to 7, got .*; "):
            ask(scale)
    with pytest.raises(InvalidInput, match="from 0 to 0, got 1; "):
        Engine(Spec(dim=2)).weights(1)


@pytest.mark.parametrize("receipt", [False, True])
@pytest.mark.parametrize("count", [2, 4, 5, 8, 12, 16])
@pytest.mark.parametrize("float64", [False, True])
def test_how_cells_lie_in_memory(count: int, float64: bool, receipt: bool) -> None:
    """Cells lie in a single cache line, or as close together as possible."""
    engine = Engine(Spec(dim=4, scale=tuple(range(1, count + 1)), float64=float64), receipt=receipt)
    lanes, size = next(lanes for lanes in (4, 8, 16) if count <= lanes), 8 if float64 else 4
    needed = (2 * lanes + 2) * size  # S, of a receipt, stands apart
    assert engine.cells.strides[0] == (64 if needed <= 64 else needed)
    assert ("S" in engine.parts) == receipt
    assert engine.parts["z"].shape == (4, count)


def without_drift(engine: Engine) -> np.ndarray:
    """Return the weights of all experts but drift, which a prediction leaves out."""
    mixture = engine.mixture
    assert mixture is not None
    w = np.array(mixture.weights)
    w[mixture.names.index("drift")] = 0.0
    return w / w.sum()


def test_a_mean_is_the_mixed_probability() -> None:
    """sigma(score) = sum_j w_j p_j, over all experts but drift."""
    engine = learned(rows=100)
    rows = stream(9, complete=True)
    scores = np.stack([_scores(engine, k, rows) for k in range(8)])
    arrays = arrays_of(engine)
    negative, positive, largest = arrays["labels.odds"].tolist()
    base = math.log((positive + 0.5 * largest) / (negative + 0.5 * largest))
    others = [arrays["newton_A.u"] @ np.clip(scores, -8, 8), np.zeros(len(rows)), np.full(len(rows), base)]
    expected = without_drift(engine) @ (0.5 * (1 + np.tanh(0.5 * np.vstack((scores, *others)))))
    np.testing.assert_allclose(Model(engine).predict(rows), expected, rtol=1e-12)


def _scores(engine: Engine, k: int, rows: Batch) -> np.ndarray:
    x = engine.weights(k)[rows.indices] * rows.values
    return np.array([x[a:b].sum() for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]) + engine.bias(k)


def test_squared_scores_are_the_mean_of_cut_scores() -> None:
    engine = learned("squared", rows=100)
    rows = stream(9, complete=True)
    facts, u, w = engine.label_state, arrays_of(engine)["newton_A.u"], without_drift(engine)
    assert facts is not None
    low, high, offset = facts["lowest"], facts["highest"], facts["offset"]
    scores = np.clip([offset + _scores(engine, k, rows) for k in range(8)], low, high)
    newton = np.clip(offset + u @ (scores - offset), low, high)
    expected = w[:8] @ scores + w[8] * newton + w[10] * offset
    np.testing.assert_allclose(engine.score(rows), expected, rtol=1e-9, atol=1e-12)
    assert engine.mixture.names[8:] == ("scores", "drift", "offset")  # type: ignore[union-attr]
    assert sum(w) == pytest.approx(1.0)


def test_a_score_far_out_is_finite() -> None:
    engine = Engine(Spec(dim=1, scale=(1.0, 2.0), bounds={"none": (0, None)}))  # whose inputs are cut to 8
    engine.learn(Batch.from_rows([{0: 1e-3}] * 50, [1.0] * 50))
    score = engine.score(Batch.from_rows([{0: 1e6}, {0: -1e6}]))
    assert np.isfinite(score).all()  # the base rate, an expert, keeps both labels possible
    assert score[0] > 0.0 > score[1] - score[0]


def test_a_copy_is_apart() -> None:
    engine = learned(receipt=True)
    other = engine.copy()
    rows = stream(4)
    np.testing.assert_array_equal(other.score(rows), engine.score(rows))
    other.learn(rows)
    assert engine.progress.rows < other.progress.rows
    assert not np.array_equal(arrays_of(engine)["mixture.w"], arrays_of(other)["mixture.w"])


@pytest.mark.parametrize("rows", [0, 3, 200], ids=["empty", "sparse", "dense"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute"])
@pytest.mark.parametrize(("grid", "more"), [(AUTO, {}), (FOUR, {"coin": True}), (AUTO[:3], {"l1": 0.1})])
@pytest.mark.parametrize("receipt", [False, True])
def test_resuming_is_never_having_stopped(
    rows: int, loss: str, grid: tuple[float, ...], more: dict[str, Any], receipt: bool, tmp_path: Path
) -> None:
    whole = Model(learned(loss, dim=23, rows=rows, receipt=receipt, scale=grid, float64=receipt, **more))
    whole.save(tmp_path / "m")
    back = Model.load(tmp_path / "m")
    assert back.engine.spec == whole.engine.spec
    for seed in (1, 2):
        batch = stream(seed, loss)
        np.testing.assert_array_equal(whole.predict(batch), back.predict(batch))
        whole.engine.learn(batch)
        back.engine.learn(batch)
    whole.save(tmp_path / "a")
    back.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_retired_model_goes_on_from_its_file(tmp_path: Path) -> None:
    engine = learned(receipt=True)
    engine.keep_scales(3)
    Model(engine).save(tmp_path / "m")
    back = Model.load(tmp_path / "m").engine
    assert back.spec.retired == AUTO[:3] + AUTO[7:]
    engine.learn(stream(3))
    back.learn(stream(3))
    for name, array in engine.saved_arrays.items():
        np.testing.assert_array_equal(array, back.saved_arrays[name], err_msg=name)


def test_what_the_file_holds(tmp_path: Path) -> None:
    engine = learned(dim=4096)
    Model(engine).save(tmp_path / "m")
    with safe_open(tmp_path / "m", framework="numpy") as other:
        names = set(other.keys())
        slots, z = other.get_tensor("slots"), other.get_tensor("z")
    mixture = ("block", "facts", "octave", "octave_loss", "totals", "w", "windows", "without")
    small = {f"mixture.{name}" for name in mixture} | {"labels.odds"}
    small |= {f"newton_{letter}.{name}" for letter in "AD" for name in "uP"}
    assert names == small | {"N", "R", "baseline", "intercept", "s", "slots", "tallies", "z"}
    np.testing.assert_array_equal(z, engine.parts["z"][slots])
    assert Model(engine).occupied == len(slots) == np.count_nonzero(engine.parts["count"])


def rewritten(path: Path, change: dict[str, Any]) -> None:
    content, tensors = model_file.read(path)
    model_file.write(path, content, {name: a for name, a in {**tensors, **change}.items() if a is not None})


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("z", (0, 0), math.nan),
        ("R", (1, 2), -1.0),
        ("s", 0, -1e-20),
        ("N", 0, 0.0),
        ("N", 0, math.inf),
        ("intercept", (1, 0), -1.0),
        ("intercept", (0, 0), math.inf),
        ("mixture.w", 0, -0.1),
        ("mixture.w", 0, 0.9),
        ("mixture.w", 8, math.nan),
        ("newton_A.u", 0, 1e31),
        ("newton_A.P", (0, 1), 0.2),
        ("newton_A.P", (0, 0), -0.1),
        ("newton_D.P", (8, 8), -0.1),
        ("mixture.facts", 3, 0.5),
        ("mixture.facts", 2, -1.0),
        ("mixture.octave", (0, 3), math.inf),
        ("mixture.without", (1, 0), math.nan),
        ("labels.odds", 1, -1.0),
        ("labels.odds", 2, 0.5),
        ("mixture.totals", 3, math.inf),
        ("mixture.windows", (2, 1), math.nan),
        ("mixture.sums", (1, 1), math.nan),
        ("tallies", 0, math.nan),
    ],
)
@pytest.mark.parametrize("dim", [24, 4096], ids=["dense", "sparse"])
def test_numbers_that_no_learning_makes(name: str, at: Any, value: float, dim: int, tmp_path: Path) -> None:
    path = tmp_path / "m"
    Model(learned(dim=dim, rows=60, receipt=True)).save(path)
    array = model_file.read(path)[1][name].copy()
    array[at] = value
    rewritten(path, {name: array})
    with pytest.raises(BadModel, match=r"^[ -~]{1,400}$"):
        Model.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"z": np.zeros((3, 7), np.float32)},
        {"z": np.zeros(8, np.float32)},
        {"R": None},
        {"S": np.zeros((3, 8), np.float32)},
        {"s": np.zeros(3)},
        {"cells": np.zeros((3, 4), np.float32)},
        {"slots": None},
        {"slots": np.zeros((1, 1), np.uint32)},
        {"mixture.w": np.full(8, 0.125)},
        {"newton_A.P": np.eye(7) / 4},
        {"mixture.windows": np.zeros((3, 5))},
        {"newton_A.u": None},
        {"more": np.zeros(3)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_tensors_of_another_shape(change: dict[str, Any], tmp_path: Path) -> None:
    Model(learned(dim=4096)).save(tmp_path / "m")
    rewritten(tmp_path / "m", change)
    with pytest.raises(BadModel, match=r"^[ -~]{1,400}$"):
        Model.load(tmp_path / "m")


def test_the_core_checks_by_itself() -> None:
    def make(**more: Any) -> Learner:
        plain: dict[str, Any] = {
            "float64": True,
            "receipt": False,
            "loss": "squared",
            "scales": [0.1, 1.0],
            "beta": 1.0,
        }
        plain |= {"l1": 0.0, "l2": 0.0, "lower": -math.inf, "upper": math.inf, "intercept": True, "tau": 0.5}
        return Learner(**{"dim": 4, **plain, **more})

    core = make()
    with pytest.raises(ValueError, match="a number for each output and cell"):
        core.weights(np.empty((1, 3)), 0)
    with pytest.raises(ValueError, match="a scale needs a number"):
        core.weights(np.empty((1, 4)), 2)
    for first, count in ((0, 1), (-1, 2), (1, 2), (0, 3)):
        with pytest.raises(ValueError, match="at least two of the scales need to stay"):
            core.keep_scales(first, count)
    with pytest.raises(ValueError, match="z, R, S and kappa of each output and scale"):
        core.intercept(np.empty((1, 3, 3)))
    with pytest.raises(ValueError, match="with a receipt"):
        core.ledger(np.empty((1, 9, 2)), 0)
    kept = make(receipt=True)
    with pytest.raises(ValueError, match="ten sums for each output and scale"):
        kept.ledger(np.empty((1, 9, 3)), 0)
    with pytest.raises(ValueError, match="128 groups of four numbers"):
        kept.groups(np.empty((1, 127, 4)), 0, 0)
    slots = np.array([0, 4], np.uint32)
    with pytest.raises(ValueError, match="outside the table"):
        core.take(slots, np.empty((2, core.width)))
    with pytest.raises(ValueError, match="outside the table"):
        core.put(slots, np.empty((2, core.width)))
    for shape in ((1, core.width), (2, core.width - 1)):
        with pytest.raises(ValueError, match="a row for each slot"):
            core.take(slots, np.empty(shape))
    with pytest.raises(ValueError, match="a row for each slot"):
        core.put(slots, np.empty((2, core.width), np.float32))
    with pytest.raises(ValueError, match="with a receipt"):
        core.take_gradients(slots, np.empty((2, 2)))
    with pytest.raises(ValueError, match="outside the table"):
        kept.take_gradients(slots, np.empty((2, 2)))
    with pytest.raises(ValueError, match="outside the table"):
        kept.put_gradients(slots, np.empty((2, 2)))
    for shape in ((1, 2), (2, 3)):
        with pytest.raises(ValueError, match="a row for each slot and a column for each scale"):
            kept.put_gradients(slots, np.empty(shape))
    with pytest.raises(ValueError, match="a number for each cell"):
        core.touched(np.empty(3, np.uint32))
    with pytest.raises(ValueError, match="1 to 16"):
        make(scales=[])
    with pytest.raises(ValueError, match="outputs needs to be 1"):
        make(outputs=2)
    with pytest.raises(ValueError, match="1 to 16"):
        make(scales=[1.0] * 17)
    with pytest.raises(ValueError, match="loss is not known"):
        make(loss="log")
    with pytest.raises(ValueError, match="dim needs"):
        make(dim=0)


def test_a_bad_row_changes_nothing() -> None:
    engine = learned()
    before = engine.copy()
    for rows in (Batch.from_rows([{0: 1.0}, {64: 1.0}], [1, 1]), Batch.from_rows([{0: 1.0}, {1: 1.0}], [1, 2])):
        with pytest.raises(InvalidInput, match="row 1: "):
            engine.learn(rows)
    np.testing.assert_array_equal(engine.cells, before.cells)
    assert engine.progress == before.progress


def test_training_with_several_scales_can_be_taken_up_again(tmp_path: Path) -> None:
    lines = [f"{1 if i % 3 else -1} | a:{i % 7} b{i % 5} c{i % 11}:0.5" for i in range(300)]
    (tmp_path / "one.vw").write_text("\n".join(lines[:200]) + "\n")
    (tmp_path / "two.vw").write_text("\n".join(lines[200:]) + "\n")
    paths = [str(tmp_path / "one.vw"), str(tmp_path / "two.vw")]
    whole = train(paths, bits=8, scale="auto", order="given", output=tmp_path / "whole").model
    train(paths[0], bits=8, scale="auto", order="given", output=tmp_path / "half")
    rest = train(paths[1], resume=tmp_path / "half", scale="auto").model
    for name, array in whole.engine.saved_arrays.items():
        np.testing.assert_array_equal(array, rest.engine.saved_arrays[name], err_msg=name)
    np.testing.assert_array_equal(whole.engine.cells, rest.engine.cells)
    assert summary(tmp_path / "whole")["spec"]["scale"] == AUTO
    np.testing.assert_array_equal(whole.predict(paths), Model.load(tmp_path / "whole").predict(paths))
    whole.engine.keep_scales(1)
    small = Model(whole.engine, whole.reading)
    small.save(tmp_path / "small")
    assert train(paths[0], resume=tmp_path / "small", scale="auto").model.engine.spec.scales == AUTO[1:5]
    with pytest.raises(InvalidInput, match="scale= needs to be what the model was trained with"):
        train(paths[0], resume=tmp_path / "small", scale=AUTO[:4])
