"""The arrays of a model, declared once: what may be in each, and how they become the tensors of a file and back.

Names and shapes come from the compiled learner (`Engine.saved_arrays`, `Engine.saved_columns`); `ARRAYS` says by name
which numbers learning can make. An array without an entry has to be finite. Nothing else lists the arrays: the model
file, checkpoints, checks at load, copies of engines and the digests of receipts iterate over them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.linear.engine import LABEL_NUMBERS, Engine
from ftprl.linear.model_file import Picked, Tensor, Tensors
from ftprl.linear.spec import Spec
from ftprl.schema import MOST_ROWS

PROVENANCE = "provenance"  # of a model with a receipt, packed
GRADIENTS = "S"  # g_{1:t}, of a model with a receipt
LABELS = "labels"  # what is known of them, with other losses than the log loss
BOUNDS = ("bounds.cells", "bounds.ends")  # of a model with bounds by name
_NONE = np.empty(0, np.uint32)
_FEW = 4  # times as many cells in a table make a list of cells worth it
_CELLS = 1 << 14  # put together at a time
_LARGEST = 1e200  # of any number; rows within their limits make none above 1e130
_LARGEST_WEIGHT = 1e30  # no weight of a Newton expert with the log loss gets near it
_LENT = 0.3  # to each coordinate of the coin


def tensors_of(engine: Engine, part: float = 0.5) -> dict[str, Tensor]:
    """All that resuming needs. Only touched cells are kept when they are under this part of the table."""
    arrays: dict[str, Tensor] = {**engine.saved_arrays, **engine.baseline_arrays}
    if engine.bounds is not None:
        arrays |= dict(zip(BOUNDS, engine.bounds.cells(), strict=True))
    slots = engine.touched()
    if len(slots) < part * engine.spec.dim:
        return arrays | _picked(engine, slots) | {"slots": slots}
    return arrays | _picked(engine, np.arange(engine.spec.dim, dtype=np.uint32))


def _picked(engine: Engine, slots: NDArray[np.uint32]) -> dict[str, Picked]:
    """The parts of cells that a file holds, by name, without the numbers that only fill a cell up."""
    parts = {name: Picked(engine.take, slots, columns) for name, columns in engine.saved_columns.items()}
    return parts | ({GRADIENTS: Picked(engine.take_gradients, slots, slice(None))} if engine.receipt else {})


def few_cells(spec: Spec, tensors: Tensors) -> NDArray[np.uint32] | None:
    """Return the cells that a model of one scale needs to predict, if they are few; None if all should be there.

    A table of one scale has a place for every cell; others have a list of those in use anyway.
    """
    if spec.several or spec.classes or "slots" not in tensors:
        return None
    parts = [tensors[name] for name in ("slots", BOUNDS[0]) if name in tensors]
    for part in parts:
        _check_slots(part, spec.dim)
    few = np.unique(np.concatenate(parts))
    return few if len(few) * _FEW < spec.dim else None


def restore(engine: Engine, tensors: Tensors) -> None:
    """Put tensors into a fresh engine; refuses what is not there, has another shape, or was never learned."""
    if engine.spec.dense:
        engine.expect_columns(*engine.columns_of(tensors))
    arrays, table = {**engine.saved_arrays, **engine.baseline_arrays}, _picked(engine, _NONE)
    slots = tensors.get("slots")
    known = arrays.keys() | table.keys() | set(() if engine.bounds is None else BOUNDS)
    if tensors.keys() - {"slots"} != known:
        raise InvalidInput(f"other tensors than {', '.join(sorted(known))}")
    if engine.bounds is not None:
        _check_bounds(engine, tensors[BOUNDS[0]], tensors[BOUNDS[1]])
    if slots is not None:
        _check_slots(slots, engine.spec.dim)
    for name, target in arrays.items():
        _check_shape(name, tensors[name], target.shape, target.dtype)
    for name, picked in table.items():
        rows = engine.spec.dim if slots is None else len(slots)
        _check_shape(name, tensors[name], (rows, *picked.shape[1:]), picked.dtype)
    for name in (*arrays, *table):
        if not rule_of(name)(tensors[name], tensors):
            raise InvalidInput(f"{name} that no learning makes")
    engine.expect_cells(engine.spec.dim if slots is None else len(slots))
    for name, target in arrays.items():
        target[...] = tensors[name]
    _put(engine, slots, tensors)
    if engine.bounds is not None:
        engine.put_bounds(*(tensors[name] for name in BOUNDS))


def _put(engine: Engine, slots: NDArray[np.uint32] | None, tensors: Tensors) -> None:
    """Fill the cells at the slots, or all of them, some at a time: their parts are put together first."""
    columns = engine.saved_columns
    count = engine.spec.dim if slots is None else len(slots)
    empty = engine.take(_NONE)
    for at in range(0, count, _CELLS):
        some = slice(at, min(at + _CELLS, count))
        own = np.arange(some.start, some.stop, dtype=np.uint32) if slots is None else slots[some]
        cells = _cells(empty, columns, {name: tensors[name][some] for name in columns})
        if slots is None:  # cells that were never touched need no memory
            touched = np.bitwise_or.reduce(cells.view(np.uint64), axis=1) != 0
            own, cells = own[touched], cells[touched]
        engine.put(own, cells)
        if GRADIENTS in tensors:
            gradients = tensors[GRADIENTS][some]
            engine.put_gradients(own, gradients if slots is not None else gradients[touched])


def _cells(empty: NDArray[Any], columns: Mapping[str, slice | int], parts: Tensors) -> NDArray[Any]:
    """Whole cells of their parts; what no part holds is 0."""
    first = next(iter(parts.values()))
    if first.shape[1:] == empty.shape[1:]:  # one part is the whole cell
        return first
    cells = np.zeros((len(first), *empty.shape[1:]), empty.dtype)
    for name, where in columns.items():
        cells[:, where] = parts[name]
    return cells


def _check_shape(name: str, tensor: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if tensor.shape != shape or tensor.dtype != dtype:
        raise InvalidInput(f"{name} of shape {tensor.shape}")


def _check_slots(slots: NDArray[Any], dim: int) -> None:
    if slots.ndim != 1 or slots.dtype != np.uint32 or (len(slots) and int(slots.max()) >= dim):
        raise InvalidInput("slots outside the table")
    if (slots[1:] <= slots[:-1]).any():
        raise InvalidInput("slots that do not rise")


def _check_bounds(engine: Engine, cells: NDArray[Any], ends: NDArray[Any]) -> None:
    """Cells of the table, each once, with ranges within that of all weights."""
    _check_slots(cells, engine.spec.dim)
    _check_shape(BOUNDS[1], ends, (len(cells), 2), np.dtype(np.float64))
    lower, upper = ends.T
    if not ((engine.spec.lower <= lower) & (lower <= upper) & (upper <= engine.spec.upper)).all():
        raise InvalidInput(f"{BOUNDS[1]} that no learning makes")


# ---- the declaration ----

Rule = Callable[[NDArray[Any], Tensors], bool]  # of an array, beside all others of its file


def rule_of(name: str) -> Rule:
    """Return the entry of `ARRAYS` for an array: that of its name, or the first pattern that fits."""
    return ARRAYS.get(name) or next(rule for pattern, rule in ARRAYS.items() if fnmatchcase(name, pattern))


def _finite(a: NDArray[Any], _: Tensors) -> bool:
    # One number that is not finite makes the sum so; no sum of finite ones leaves the range of these types.
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    with np.errstate(invalid="ignore"):
        total = a.sum(dtype=wide)
    return bool(np.isfinite(total)) or bool(np.isfinite(a).all())


def _moderate(a: NDArray[Any], t: Tensors) -> bool:
    """Finite, and not so large that no rows within their limits could have made it: sums of them stay finite too."""
    if not _finite(a, t):
        return False
    return a.dtype == np.float32 or not a.size or max(-float(a.min()), float(a.max())) <= _LARGEST


def _nonnegative(a: NDArray[Any], t: Tensors) -> bool:
    """Moderate numbers of at least 0."""
    return _moderate(a, t) and (not a.size or bool(a.min() >= 0))


def _shares(a: NDArray[Any], t: Tensors) -> bool:
    """Weights of experts, which sum to 1."""
    return _nonnegative(a, t) and abs(float(a.sum()) - 1.0) < 1e-6


def _coefficients(a: NDArray[Any], t: Tensors) -> bool:
    """The weights of a Newton expert, of any size: a slope is in units of the labels, which may be 1e-150."""
    return bool((np.abs(a) <= (_LARGEST if LABELS in t else _LARGEST_WEIGHT)).all())


def _inverse(a: NDArray[Any], t: Tensors) -> bool:
    """Symmetric matrices with a positive diagonal, one or one for each class."""
    P = a if a.ndim == 3 else a[np.newaxis]
    diagonal = np.diagonal(P, axis1=1, axis2=2)
    return _moderate(a, t) and bool((P.transpose(0, 2, 1) == P).all() and (diagonal > 0).all())


def _tallies(a: NDArray[Any], t: Tensors) -> bool:
    """A loss, a weight and a number of rows, and the sums of a receipt."""
    _, weight, rows = a[:3].tolist()
    return _finite(a, t) and weight >= 0.0 and 0.0 <= rows <= MOST_ROWS and rows.is_integer()


def _baseline(a: NDArray[Any], t: Tensors) -> bool:
    """Finite numbers, weights and counts of at least 0, a product of probabilities, a quantile within its labels."""
    _, product, _, rows, weight, negative, positive, _, quantile, pinball, since, lowest, highest = a.tolist()
    sound = _finite(a, t) and 0.0 < product <= 1.0 and lowest <= quantile <= highest
    return sound and min(rows, weight, negative, positive, pinball, since) >= 0.0


def _labels(a: NDArray[Any], t: Tensors) -> bool:
    """Finite numbers; weights, counts and units of at least 0; a range that is one."""
    names = dict(zip(LABEL_NUMBERS, a.tolist(), strict=True))
    positive = ("rows", "weight", "squares", "since", "pinball", "deviation", "unit", "psi", "kappa", "outliers")
    sound = _moderate(a, t) and all(names[name] >= 0.0 for name in positive)
    return sound and names["lowest"] <= names["highest"] and names["least"] <= names["most"]


def _calibration(a: NDArray[Any], t: Tensors) -> bool:
    """No more probability or positives in a bin than weight."""
    return _nonnegative(a, t) and bool((a[:, 1:] <= a[:, :1] * (1 + 1e-9)).all())


def _bins(a: NDArray[Any], t: Tensors) -> bool:
    """Weight, positives and scores of each bin: no more positives than weight, and scores near the bin."""
    weight, positive, scores = a.T
    middle = 0.5 * np.arange(len(a)) - 8.0
    near = np.abs(scores - middle * weight) <= 0.25 * weight * (1 + 1e-9) + 1e-9
    sound = _nonnegative(a[:, :2], t) and _moderate(scores, t)
    return sound and bool((positive <= weight * (1 + 1e-9)).all() and near.all())


def _intercept(a: NDArray[Any], t: Tensors) -> bool:
    """z, R, the unit, (kappa) and S of one scale, or z, R and S of each of several; z and S may be negative."""
    return _moderate(a, t) and _nonnegative(a[1 : len(a) - 1] if a.ndim == 1 else a[1:2], t)


def _table(a: NDArray[Any], t: Tensors) -> bool:
    """Rows z, R, unit and S (kappa where labels are in any unit) of moderate numbers; z and S may be negative."""
    return _moderate(a, t) and (not a.size or bool(a[..., 1 : 4 if LABELS in t else 3].min() >= 0))


def _counts(a: NDArray[Any], t: Tensors) -> bool:
    """Every cell of a list was met at least once; in a whole table one that was not is empty."""
    never = a == 0
    if not _nonnegative(a, t) or ("slots" in t and never.any()):
        return False
    return not any(t[name][never].any() for name in ("z", "R", "S", "s", "kappa") if name in t)


def _coin(a: NDArray[Any], t: Tensors) -> bool:
    """Theta, sizes, what was won and the largest value: theta is within the sizes, and no more was lost than lent."""
    theta, sizes, won, largest = a.T
    within = bool((np.abs(theta) <= sizes * (1 + 1e-3)).all())
    return _moderate(a, t) and within and bool((won >= -_LENT * 1.01).all() and (largest >= 0).all())


def _own_coin(a: NDArray[Any], t: Tensors) -> bool:
    """The coin of the intercept, and a largest slope of at least 1."""
    return _coin(a[np.newaxis, :4], t) and bool(a[4] >= 1.0) and _moderate(a, t)


def _columns(a: NDArray[Any], t: Tensors) -> bool:
    """Columns: a slot plus one, each once, a mean and a deviation above 0; 0 where there is no column."""
    slots = a[a[:, 0] > 0, 0]
    return _moderate(a, t) and _each_once(slots) and bool(((a[:, 2] > 0) == (a[:, 0] > 0)).all())


def _watched(a: NDArray[Any], t: Tensors) -> bool:
    """Features that are counted: a slot, each once, and at least one row; sums of squares of at least 0."""
    return _moderate(a, t) and _each_once(a[:, 0]) and bool((a[:, 1] >= 1).all() and (a[:, 3] >= 0).all())


def _each_once(slots: NDArray[Any]) -> bool:
    return bool((slots >= 0).all() and (slots <= 2.0**32).all()) and len(np.unique(slots)) == len(slots)


def _facts(a: NDArray[Any], t: Tensors) -> bool:
    """AdaHedge's gaps, a loss, the largest weight of a row, which is at least 1, and the lead over the majority."""
    return _nonnegative(a, t) and bool(a[3] >= 1.0)


def _odds(a: NDArray[Any], t: Tensors) -> bool:
    """The weights of negative and positive labels, and the largest weight of a row, which is at least 1."""
    return _nonnegative(a, t) and bool(a[2] >= 1.0)


# By name, or by a pattern: the first that fits.
ARRAYS: Mapping[str, Rule] = {
    "tallies": _tallies,
    "baseline": _baseline,
    "baseline.*": _nonnegative,
    "labels": _labels,
    "calibration": _calibration,
    "calibrator.bins": _bins,
    "rounding": lambda a, t: _finite(a, t) and _nonnegative(a[1:], t),
    "row_sums": lambda a, t: _finite(a, t) and _nonnegative(a[[3, 4]], t),
    "intercept": _intercept,
    "intercept.kappa": _nonnegative,
    "coin.intercept": _own_coin,
    # Cells.
    "cells": _table,
    "N": _counts,
    "coin": _coin,
    **dict.fromkeys(("R", "s", "kappa"), _nonnegative),
    # The mixture.
    "mixture.w": _shares,
    "mixture.facts": _facts,
    "labels.odds": _odds,
    "mixture.sums": _finite,
    "columns.rows": _nonnegative,
    "columns.facts": _columns,
    "columns.table": _watched,
    # Newton experts: their weights, the inverse of the curvature, and the mean loss of those that need it.
    "newton_*.u": _coefficients,
    "columns.W": _coefficients,
    "newton_*.P": _inverse,
    "columns.Q": _inverse,
    "calibrator.P": _inverse,
    "newton_*.loss": _nonnegative,
    "newton_*.var": _nonnegative,
    "*": _moderate,
}
MIXED = ("mixture.", "newton_", "columns.")  # how the arrays begin that rows of an earlier pass leave as they are
