"""An engine that learns its rows once more: the mixture of the scales stays, and what each scale learned is forgotten.

The mixture needs rows that no scale has learned to be weighed on; once it is settled, the scales learn those as well.
"""

from __future__ import annotations

import numpy as np

from ftprl.linear.engine import Engine

_OF_THE_MIXTURE = ("mixture.", "dense.")  # how the names of its arrays begin


def forgetful(engine: Engine, start: Engine | None = None) -> Engine:
    """A new engine with the mixture of this one, and weights as before any row, or as those of `start`.

    `start` is an earlier state of the engine, which may have had more scales; it is used up.
    """
    new = Engine(engine.spec, classes=engine.classes)
    if start is not None:
        _take_over(new, start)
    arrays = engine.saved_arrays
    slots = _dense_slots(engine)
    if engine.spec.dense:
        new.expect_columns(*engine.columns_of(arrays))
    targets = new.saved_arrays
    for name in arrays:
        if name.startswith(_OF_THE_MIXTURE):
            targets[name][...] = arrays[name]
    if engine.bounds is not None:
        new.put_bounds(*engine.bounds.cells())
    new.put(slots, new.take(slots))  # columns of the stack are known by their cells, which must be there
    return new


def _take_over(new: Engine, start: Engine) -> None:
    """Copy what the scales have learned, and how many rows; scales that were dropped since are dropped first."""
    spec = new.spec
    if spec.classes:
        start.know_classes(new.classes)
    for name in spec.dropped_experts[len(start.spec.dropped_experts) :]:
        start.drop_expert(name)
    if len(start.spec.scales) > len(spec.scales):
        start.keep_scales(start.spec.scales.index(spec.scales[0]))
    targets = new.saved_arrays
    for name, array in start.saved_arrays.items():
        if not name.startswith(_OF_THE_MIXTURE):
            targets[name][...] = array
    for name, target in new.baseline_arrays.items():
        target[...] = start.baseline_arrays[name]
    slots = start.touched()
    new.expect_cells(len(slots))
    new.put(slots, start.take(slots))


def _dense_slots(engine: Engine) -> np.ndarray:
    columns = engine.saved_arrays.get("dense.columns")
    return np.empty(0, np.uint32) if columns is None else columns[:, 0].astype(np.uint32)
