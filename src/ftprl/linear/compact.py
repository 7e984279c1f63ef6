"""A smaller engine that predicts the same: only cells whose weight differs from that of a cell nobody has touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.engine import Engine


def compacted(engine: Engine) -> Engine:
    """The engine without the cells that no prediction needs, and without the sums of a receipt.

    It scores every row to the bit as before. What a dropped cell had learned is lost, so learning from here on would
    give another model.
    """
    new = Engine(engine.spec, classes=engine.classes)
    with engine.unchanged():
        arrays, slots = engine.saved_arrays, needed(engine)
        if engine.spec.dense:
            new.expect_columns(*engine.columns_of(arrays))
        for name, target in new.saved_arrays.items():
            target[...] = arrays[name][: len(target)]  # the intercept of several classes without its S
        for name, target in new.baseline_arrays.items():
            target[...] = engine.baseline_arrays[name]
        new.expect_cells(len(slots))
        new.put(slots, engine.take(slots))
        if engine.bounds is not None:
            new.put_bounds(*engine.bounds.cells())
    return new


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
    columns: Any = engine.saved_arrays.get("dense.columns")
    if columns is not None:  # the stack reads these rows by their cells
        used |= np.isin(slots, columns[:, 0].astype(np.uint32))
    return slots[used]
