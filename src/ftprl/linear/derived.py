"""Engines made of another one: a smaller one that predicts the same, and one that learns its rows once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.engine import Engine
from ftprl.linear.state import BOUNDS, MIXED, few_cells


def compacted(engine: Engine) -> Engine:
    """Return the engine without the cells that no prediction needs, and without the sums of a receipt.

    It scores every row to the bit as before. What a dropped cell had learned is lost, so it cannot learn.
    """
    with engine.unchanged():
        slots = needed(engine)
        bounded = {} if engine.bounds is None else {BOUNDS[0]: engine.bounds.cells()[0]}
        new = _like(engine, few_cells(engine.spec, {"slots": slots, **bounded}))
        _fill(new.saved_arrays, engine.saved_arrays)
        _take_cells(new, engine, slots)
    return new


def forgetful(engine: Engine, start: Engine | None = None) -> Engine:
    """Return a new engine with the mixture of this one, and weights as before any row, or as those of `start`.

    The mixture needs rows that no scale has learned to be weighed on; once it is settled, the scales learn those rows
    as well. `start` is an earlier state of the engine, which may have had more scales; it is used up.
    """
    new = _like(engine)
    if start is not None:
        _drop_scales(start, engine)
        _fill(new.saved_arrays, {name: own for name, own in start.saved_arrays.items() if not name.startswith(MIXED)})
        _take_cells(new, start, start.touched())
    _fill(new.saved_arrays, {name: own for name, own in engine.saved_arrays.items() if name.startswith(MIXED)})
    return new


def _like(engine: Engine, slots: NDArray[np.uint32] | None = None) -> Engine:
    """Return an engine with the settings, columns and bounds of another one, which has learned nothing."""
    new = Engine(engine.spec, classes=engine.classes, slots=slots)
    if engine.spec.dense:
        new.expect_columns(*engine.columns_of(engine.saved_arrays))
    if engine.bounds is not None:
        new.put_bounds(*engine.bounds.cells())
    return new


def _fill(targets: Mapping[str, NDArray[Any]], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Copy arrays by name; the intercept of several classes has its S with a receipt only."""
    for name, target in targets.items():
        if name in arrays:
            target[...] = arrays[name][: len(target)]


def _take_cells(new: Engine, engine: Engine, slots: NDArray[np.uint32]) -> None:
    """Copy some cells, and the baseline."""
    _fill(new.baseline_arrays, engine.baseline_arrays)
    new.expect_cells(len(slots))
    new.put(slots, engine.take(slots))


def _drop_scales(start: Engine, engine: Engine) -> None:
    """Make an earlier state of an engine know its classes, and drop the scales that it has dropped since."""
    if engine.spec.classes:
        start.know_classes(engine.classes)
    for name in engine.spec.dropped_experts[len(start.spec.dropped_experts) :]:
        start.drop_expert(name)
    if len(start.spec.scales) > len(engine.spec.scales):
        start.keep_scales(start.spec.scales.index(engine.spec.scales[0]))


# ---- which cells count ----


def idle_weight(engine: Engine) -> float:
    """The weight of a cell that nothing was learned in: 0, or the bound nearest to it."""
    spec = engine.spec
    return max(spec.lower, 0.0) if spec.upper > 0.0 else spec.upper


def count_nonzero(engine: Engine, cells: NDArray[np.uint32] | None = None) -> int:
    """How many weights are not 0 in at least one scale; `cells` are those to look at, all in use by default.

    A weight that is 0 in one scale counts in the prediction if it is not 0 in another. Where bounds keep 0 out, cells
    that nothing was learned in count, too.
    """
    cells = engine.touched() if cells is None else cells
    used = np.zeros(len(cells), np.bool_)
    for k in range(len(engine.spec.scales)):
        used |= (engine.weights_at(cells, k) != 0.0).reshape(-1, len(cells)).any(axis=0)
    return int(np.count_nonzero(used)) + (engine.spec.dim - len(cells) if idle_weight(engine) else 0)


def needed(engine: Engine) -> NDArray[np.uint32]:
    """The cells that a prediction may need: those whose weight, in some scale, is not what an empty cell would play."""
    spec, slots = engine.spec, engine.touched()
    if spec.coin or not len(slots):  # it respects no penalty: hardly any of its weights is 0
        return slots
    idle = idle_weight(engine)
    used = np.zeros(len(slots), np.bool_)
    if spec.classes:  # those that may come have weights, too
        used |= (engine.class_weights_at(slots) != idle).reshape(len(slots), -1).any(axis=1)
    for k in range(0 if spec.classes else len(spec.scales)):
        used |= engine.weights_at(slots, k) != idle
    return slots[used]
