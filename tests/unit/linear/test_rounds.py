"""Rounds of several rows: where they end, their vectors, and the steps over several tables."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl import _core
from ftprl.data import Batch
from ftprl.linear import Engine, Model, Spec, rounds

VECTORS = Path(__file__).resolve().parents[4] / "shared" / "rounds_golden.json"
CASES = (
    "one_scale",
    "one_scale_hot",
    "one_scale_l1_l2_bounds_squared_float32",
    "eight_scales",
    "eight_scales_growing",
    "eight_scales_float32_weights_held_out",
    "eight_scales_hinge",
)


def test_rounds_grow_up_to_their_most_rows() -> None:
    ends, t = [], 0
    while t < 2048:
        t = rounds.round_end(t, 8)
        ends.append(t)
    sizes = np.diff([0, *ends])
    assert (sizes[: 2 * 64] == 1).all()
    assert [int(size) for size in np.unique(sizes)] == [1, 2, 4, 8]
    assert {2**k for k in range(12)} <= set(ends)
    assert rounds.round_ends(np.ones(2048, np.bool_), 0, 8) == ends


def test_rows_that_are_not_learned_belong_to_the_round_of_the_next_that_is() -> None:
    rows = np.array([False, True, False, False, True, True, False])
    assert rounds.round_ends(rows, 128, 2) == [5]
    assert rounds.round_ends(rows, 129, 2) == [2, 6]
    assert rounds.round_ends(rows, 0, 2) == [2, 5, 6]


def test_a_small_case_by_hand() -> None:
    """Two rows of one feature: both are scored with the weight 0; the step is that of the sum of their gradients."""
    engine = Engine(Spec(dim=1, scale=0.1, beta=1.0, float64=True, intercept=False), receipt=True)
    batch = Batch.from_rows([{0: 1.0}, {0: 3.0}], y=[1, -1], weight=[1, 2], float64=True)
    losses = np.empty(2)
    arrays = batch.indptr, batch.indices, batch.values, batch.y, batch.weight
    _core.learn_round(engine._core, *arrays, None, losses)
    g = -0.5 * 1.0 + 2 * 0.5 * 3.0
    parts = engine.parts
    assert losses.tolist() == [math.log(2.0)] * 2
    assert parts["unit"].tolist() == [3.0]
    assert parts["R"].tolist() == [[g]]
    assert parts["z"].tolist() == parts["S"].tolist() == [[g]]
    assert engine.weights().tolist() == [-g * 0.1 / (3.0 * (1.0 * 3.0 + g))]
    assert engine.hot_slots.tolist() == [0]
    # Now it is hot: the second of two rows is scored with what the first has taught.
    scores = np.empty(2)
    _core.learn_round(engine._core, *arrays, scores)
    assert scores[0] == pytest.approx(-0.1 * g / (3.0 * (3.0 + g)), rel=1e-15)
    slope = -1.0 / (1.0 + math.exp(scores[0]))
    R = math.hypot(g, slope)
    x = scores[0]
    z = g + slope - 3.0 * (R - g) / 0.1 * x
    assert scores[1] == pytest.approx(3.0 * -z * 0.1 / (3.0 * (3.0 + R)), rel=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_vectors(name: str) -> None:
    if not VECTORS.is_file():
        pytest.skip("the vectors rounds_golden.json are not there")
    case = json.loads(VECTORS.read_text())["cases"][name]
    settings = case["settings"]
    if settings["loss"] != "logistic":
        pytest.skip("these losses are learned otherwise since labels may be in any unit, and not in rounds")
    s = Spec(
        dim=settings["dim"],
        scale=tuple(settings["scales"]),
        beta=settings["beta"],
        intercept=settings["intercept"],
        float64=settings["cells"] == "float64",
    )
    engine, at = Engine(s, receipt=True), 0
    for expected in case["rounds"]:
        count = len(expected["rows"])
        rows, at = case["rows"][at : at + count], at + count
        learn(engine, rows, settings, expected)
        check(engine, expected)


def learn(engine: Engine, rows: list[dict[str, Any]], settings: dict[str, Any], expected: dict[str, Any]) -> None:
    labels = [math.nan if row["y"] is None else row["y"] for row in rows]
    entries = [[(int(slot), value) for slot, value in row["entries"]] for row in rows]
    batch = Batch.from_rows(entries, labels, [row["weight"] for row in rows], float64=True)
    arrays = batch.indptr, batch.indices, batch.values, batch.y, batch.weight
    scores, losses = np.empty(len(rows)), np.empty(len(rows))
    if not settings["hot"]:
        engine.hot_slots = np.empty(0, np.uint32)
    if len(expected["rows_learned"]) > 1:
        assert engine.hot_slots.tolist() == sorted(expected["hot"])
        _core.learn_round(engine._core, *arrays, scores, losses, settings["block"])
    else:
        engine.learn(batch, scores=scores, losses=losses)
        engine.hot_slots = np.unique(batch.indices)
    near = {"rtol": 1e-11, "atol": 1e-13}
    np.testing.assert_allclose(scores, [row["score"] for row in expected["rows"]], **near)
    shown = [math.nan if row["loss"] is None else row["loss"] for row in expected["rows"]]
    np.testing.assert_allclose(losses, shown, **near)
    assert not settings["hot"] or engine.hot_slots.tolist() == sorted(expected["next_hot"])


def check(engine: Engine, expected: dict[str, Any]) -> None:
    near, parts = {"rtol": 1e-11, "atol": 1e-13}, engine.parts
    for name in ("z", "R"):
        np.testing.assert_allclose(parts[name], expected[name], **near)
    rounded = {"rtol": 1e-6, "atol": 1e-7}  # theirs is that of a float32; here it is float64
    np.testing.assert_allclose(parts["S"], expected["S"], **(near if engine.spec.float64 else rounded))
    np.testing.assert_allclose(parts["unit"], expected["unit_after"], **near)
    if engine.spec.several:
        np.testing.assert_allclose(parts["count"], expected["N_after"], **near)
    for j, name in enumerate(("linear", "proximal", "stability")):
        sums = [tuple(engine.sums_of(k))[j] for k in range(len(engine.spec.scales))]
        np.testing.assert_allclose(sums, expected["sums"][name], rtol=1e-11, atol=1e-12)


def test_a_saved_model_knows_the_hot_slots(tmp_path: Path) -> None:
    engine = Engine(Spec(dim=8, scale="auto", round_rows=4))
    rows = [{0: 1.0, 1 + i % 7: 1.0} for i in range(600)]
    engine.learn(Batch.from_rows(rows, y=[1 if i % 3 else -1 for i in range(600)]))
    assert engine.hot_slots.tolist() == [0]
    Model(engine).save(tmp_path / "m")
    again = Model.load(tmp_path / "m").engine
    assert again.spec.round_rows == 4
    assert again.hot_slots.tolist() == [0]
    assert again.copy().hot_slots.tolist() == [0]


def test_steps_refuse_arrays_of_other_shapes() -> None:
    core = Engine(Spec(dim=8, scale=0.1))._core
    one, slots = np.ones(1), np.array([3], np.uint32)
    with pytest.raises(ValueError, match="slot is outside"):
        _core.play_round(core, np.array([8], np.uint32), one, one, one, np.empty((1, 1)))
    with pytest.raises(ValueError, match="x needs 1 rows of 1 numbers"):
        _core.play_round(core, slots, one, one, one, np.empty((1, 4)))
    numbers = np.array([1], np.uint32)
    with pytest.raises(ValueError, match="none of the round"):
        _core.score_round(core, np.array([0, 1]), numbers, one, np.empty((1, 1)), np.empty((1, 1)))
    with pytest.raises(ValueError, match=r"\(64, 6, 16\)"):
        _core.step_round(core, slots, one, one, 1.0, np.ones((1, 1)), np.ones((1, 1)), np.zeros((1, 6, 16)))
    squared = Engine(Spec(dim=8, loss="squared", scale=0.1))._core
    with pytest.raises(ValueError, match="log loss"):
        _core.play_round(squared, slots, one, one, one, np.empty((1, 1)))
