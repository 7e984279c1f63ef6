"""The state of an engine as the tensors of a model file, and back: nothing comes in that learning could not make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.linear.engine import Engine
from ftprl.linear.model_file import Picked, Tensor, Tensors
from ftprl.linear.state import LABEL_NUMBERS
from ftprl.schema import MOST_ROWS

BASELINE = "baseline"
PROVENANCE = "provenance"  # of a model with a receipt, packed
GRADIENTS = "S"  # g_{1:t}, of a model with a receipt
LABELS = "labels"  # what is known of them, with other losses than the log loss
BOUNDS = ("bounds.cells", "bounds.ends")  # of a model with bounds by name
_NONE = np.empty(0, np.uint32)
_CELLS = 1 << 14  # put together at a time
_LARGEST = 1e200  # of any number; rows within their limits make none above 1e130
_LARGEST_STACK = 1e30  # no weight of a stack with the log loss gets near it
_LENT = 0.3  # to each coordinate of the coin
_LARGEST_P = 0.25 * (1 + 1e-9)  # the diagonal begins at 1/4 and only falls, and what it loses bounds the others


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
    for name, check in _CHECKS.items():
        if name in tensors and not check(tensors):
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


def _is_tallies(a: NDArray[Any]) -> bool:
    """A loss, a weight and a number of rows, and the sums of a receipt."""
    _, weight, rows = a[:3].tolist()
    return _is_finite(a) and weight >= 0.0 and 0.0 <= rows <= MOST_ROWS and rows.is_integer()


def _is_moderate(a: NDArray[Any]) -> bool:
    """Finite, and not so large that no rows within their limits could have made it: sums of them stay finite too."""
    if not _is_finite(a):
        return False
    return a.dtype == np.float32 or not a.size or max(-float(a.min()), float(a.max())) <= _LARGEST


def _is_finite(a: NDArray[Any]) -> bool:
    # One number that is not finite makes the sum so; no sum of finite ones leaves the range of these types.
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    with np.errstate(invalid="ignore"):
        total = a.sum(dtype=wide)
    return bool(np.isfinite(total)) or bool(np.isfinite(a).all())


def _is_positive(a: NDArray[Any]) -> bool:
    """Moderate numbers of at least 0."""
    return _is_moderate(a) and (not a.size or bool(a.min() >= 0))


def _is_table(t: Tensors) -> bool:
    """Rows z, R, unit and S (kappa where labels are in any unit) of moderate numbers; z and S may be negative."""
    cells = t["cells"]
    return _is_moderate(cells) and (not cells.size or bool(cells[..., 1 : 4 if LABELS in t else 3].min() >= 0))


def _is_intercept(a: NDArray[Any]) -> bool:
    """z, R, the unit, (kappa) and S of one scale, or z, R and S of each of several; z and S may be negative."""
    return _is_moderate(a) and _is_positive(a[1 : len(a) - 1] if a.ndim == 1 else a[1:2])


def _counts_all(t: Tensors) -> bool:
    """Every cell of a list was met at least once; in a whole table one that was not is empty."""
    never = t["N"] == 0
    if not _is_positive(t["N"]) or ("slots" in t and never.any()):
        return False
    return not any(t[name][never].any() for name in ("z", "R", "S", "s", "kappa") if name in t)


def _is_calibration(bins: NDArray[Any]) -> bool:
    """No more probability or positives in a bin than weight."""
    return _is_positive(bins) and bool((bins[:, 1:] <= bins[:, :1] * (1 + 1e-9)).all())


def _is_weights(w: NDArray[Any]) -> bool:
    return _is_positive(w) and abs(float(w.sum()) - 1.0) < 1e-6


def _is_stack(P: NDArray[Any]) -> bool:
    return bool((P == P.T).all() and (np.diag(P) > 0).all() and (np.abs(P) <= _LARGEST_P).all())


def _is_stack_weights(t: Tensors, name: str) -> bool:
    """The weights of a stack. Counts of 0 and then of 1e-150 make them any size: a slope is in units of the labels."""
    return bool((np.abs(t[name]) <= (_LARGEST if LABELS in t else _LARGEST_STACK)).all())


def _is_labels(numbers: NDArray[Any]) -> bool:
    """Finite numbers; weights, counts and units of at least 0; a range that is one."""
    names = dict(zip(LABEL_NUMBERS, numbers.tolist(), strict=True))
    positive = ("rows", "weight", "squares", "since", "pinball", "deviation", "unit", "psi", "kappa", "outliers")
    sound = _is_moderate(numbers) and all(names[name] >= 0.0 for name in positive)
    return sound and names["lowest"] <= names["highest"] and names["least"] <= names["most"]


def _is_platt(u: NDArray[Any]) -> bool:
    return _is_finite(u) and bool((np.abs(u) <= _LARGEST_STACK).all())


def _is_bins(bins: NDArray[Any]) -> bool:
    """Weight, positives and scores of each bin: no more positives than weight, and scores near the bin."""
    weight, positive, scores = bins.T
    middle = 0.5 * np.arange(len(bins)) - 8.0
    near = np.abs(scores - middle * weight) <= 0.25 * weight * (1 + 1e-9) + 1e-9
    return (
        _is_positive(bins[:, :2])
        and _is_moderate(scores)
        and bool((positive <= weight * (1 + 1e-9)).all() and near.all())
    )


def _is_hedge(numbers: NDArray[Any]) -> bool:
    """Finite numbers of at least 0."""
    return _is_positive(numbers)


def _is_row_sums(sums: NDArray[Any]) -> bool:
    """Finite numbers; weights and sizes of at least 0."""
    return _is_finite(sums) and _is_positive(sums[[3, 4]])


def _is_baseline(numbers: NDArray[Any]) -> bool:
    """Finite numbers, weights and counts of at least 0, a product of probabilities, a quantile within its labels."""
    _, product, _, rows, weight, negative, positive, _, quantile, pinball, since, lowest, highest = numbers.tolist()
    sound = _is_finite(numbers) and 0.0 < product <= 1.0 and lowest <= quantile <= highest
    return sound and min(rows, weight, negative, positive, pinball, since) >= 0.0


def _is_coin(coins: NDArray[Any]) -> bool:
    """Theta, sizes, what was won and the largest value: theta is within the sizes, and no more was lost than lent."""
    theta, sizes, won, largest = coins.T
    within = bool((np.abs(theta) <= sizes * (1 + 1e-3)).all())
    return _is_moderate(coins) and within and bool((won >= -_LENT * 1.01).all() and (largest >= 0).all())


def _is_own_coin(own: NDArray[Any]) -> bool:
    """The same of the intercept, a largest slope of at least 1, and the weights of labels of both classes."""
    return _is_coin(own[np.newaxis, :4]) and bool(own[4] >= 1.0) and _is_positive(own[5:])


def _are_columns(t: Tensors) -> bool:
    """Dense columns: slots that were learned, each once; the first ones, which the stack sees, have a deviation."""
    columns, N = t["dense.columns"], t["N"]
    slots = columns[:, 0]
    if not _is_moderate(columns) or (columns[:, [2, 3, 5]] < 0).any() or len(np.unique(slots)) != len(slots):
        return False
    known = t["slots"] if "slots" in t else np.flatnonzero(N > 0)
    own = 1 if "dense.class_u" in t else len(t["mixture.u"]) + 1
    active = max(Engine.columns_of(t)[1] - own, 0)
    return bool(np.isin(slots, known).all() and (columns[:active, 2] > 0).all())


# What is true of the tensors that learning makes, each where a file has it.
_CHECKS: Mapping[str, Callable[[Tensors], bool]] = {
    "tallies": lambda t: _is_tallies(t["tallies"]),
    BASELINE: lambda t: _is_baseline(t[BASELINE]),
    "baseline.classes": lambda t: _is_positive(t["baseline.classes"]),
    "calibration": lambda t: _is_calibration(t["calibration"]),
    "intercept": lambda t: _is_intercept(t["intercept"]),
    "cells": _is_table,
    LABELS: lambda t: _is_labels(t[LABELS]),
    "kappa": lambda t: _is_positive(t["kappa"]),
    "intercept.kappa": lambda t: _is_positive(t["intercept.kappa"]),
    "row_sums": lambda t: _is_row_sums(t["row_sums"]),
    "mixture.hedge": lambda t: _is_hedge(t["mixture.hedge"]),
    "z": lambda t: _is_moderate(t["z"]),
    "R": lambda t: _is_positive(t["R"]),
    "S": lambda t: _is_moderate(t["S"]),
    "s": lambda t: _is_positive(t["s"]),
    "N": _counts_all,
    "rounding": lambda t: _is_finite(t["rounding"]) and _is_positive(t["rounding"][1:]),
    "mixture.w": lambda t: _is_weights(t["mixture.w"]),
    "mixture.totals": lambda t: _is_moderate(t["mixture.totals"]),
    "mixture.facts": lambda t: _is_finite(t["mixture.facts"]) and bool((t["mixture.facts"] >= (1.0, 0.0, 0.0)).all()),
    "mixture.P": lambda t: _is_stack(t["mixture.P"]),
    "mixture.u": lambda t: _is_stack_weights(t, "mixture.u"),
    "coin": lambda t: _is_coin(t["coin"]),
    "coin.intercept": lambda t: _is_own_coin(t["coin.intercept"]),
    "dense.rows": lambda t: _is_positive(t["dense.rows"]),
    "dense.columns": _are_columns,
    "dense.P": lambda t: _is_stack(t["dense.P"]),
    "dense.class_P": lambda t: all(map(_is_stack, np.split(t["dense.class_P"], len(t["dense.class_u"])))),
    "dense.class_u": lambda t: bool((np.abs(t["dense.class_u"]) <= _LARGEST_STACK).all()),
    "dense.u": lambda t: _is_stack_weights(t, "dense.u"),
    "calibrator.u": lambda t: _is_platt(t["calibrator.u"]),
    "calibrator.P": lambda t: _is_stack(t["calibrator.P"]),
    "calibrator.bins": lambda t: _is_bins(t["calibrator.bins"]),
    "mixture.block": lambda t: _is_moderate(t["mixture.block"]),
    "mixture.windows": lambda t: _is_moderate(t["mixture.windows"]),
    "mixture.sums": lambda t: _is_finite(t["mixture.sums"]),
}
