"""The state of an engine as the tensors of a model file, and back: nothing comes in that learning could not make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.linear.engine import Engine
from ftprl.linear.mixture import WINDOW
from ftprl.linear.model_file import Picked, Tensors

BASELINE = "baseline"
MIXTURE = "mixture."  # before the names of the mixture's arrays
_NONE = np.empty(0, np.uint32)
_CELLS = 1 << 14  # put together at a time
_LARGEST_STACK = 1e30  # no weight of a stack gets near it
_LARGEST_P = 0.25 * (1 + 1e-9)  # the diagonal begins at 1/4 and only falls, and what it loses bounds the others


def tensors_of(engine: Engine) -> dict[str, NDArray[Any] | Picked]:
    """All that resuming needs. Only touched cells are kept when they are under half of the table."""
    tensors: dict[str, NDArray[Any] | Picked] = {"tallies": engine.tallies, **_small(engine)}
    if np.isfinite(engine.baseline_state).all():  # not so for a model that was once saved without it
        tensors[BASELINE] = engine.baseline_state
    slots = engine.touched()
    if 2 * len(slots) < engine.spec.dim:
        return tensors | _picked(engine, slots) | {"slots": slots}
    return tensors | _picked(engine, np.arange(engine.spec.dim, dtype=np.uint32))


def _picked(engine: Engine, slots: NDArray[np.uint32]) -> dict[str, Picked]:
    """What a cell has, by name; of several scales without what fills up their lanes."""
    return {name: Picked(engine.take, slots, columns) for name, columns in engine.columns.items()}


def restore(engine: Engine, tensors: Tensors) -> None:
    """Put tensors into a fresh engine; refuses what is not there, has another shape, or was never learned."""
    small, table = _small(engine) | {"tallies": engine.tallies}, _picked(engine, _NONE)
    slots = tensors.get("slots")
    if engine.spec.several and tensors.keys() - {"slots", BASELINE} != small.keys() | table.keys():
        raise InvalidInput(f"other tensors than {', '.join(sorted(small.keys() | table.keys()))}")
    if slots is not None:
        _check_slots(slots, engine.spec.dim)
    for name, target in small.items():
        _check_shape(name, tensors[name], target.shape, target.dtype)
    for name, picked in table.items():
        rows = engine.spec.dim if slots is None else len(slots)
        _check_shape(name, tensors[name], (rows, *picked.shape[1:]), picked.dtype)
    if engine.calibration is not None:
        _check_calibration(tensors["calibration"])
    if engine.spec.several:
        _check_several(engine, tensors, sparse=slots is not None)
    else:
        _check_cells(tensors["intercept"][None, :])
        _check_cells(tensors["cells"])
    if BASELINE in tensors:
        _check_baseline(tensors[BASELINE], engine)
    for name, target in small.items():
        target[...] = tensors[name]
    engine.baseline_state[...] = tensors.get(BASELINE, np.nan)  # an older file has none, and then none is shown
    _put(engine, slots, tensors)


def _put(engine: Engine, slots: NDArray[np.uint32] | None, tensors: Tensors) -> None:
    """Fill the cells at the slots, or all of them; of several scales some at a time, since they are put together."""
    if not engine.spec.several:
        engine.put(np.arange(engine.spec.dim, dtype=np.uint32) if slots is None else slots, tensors["cells"])
        return
    N = tensors["N"]
    for at in range(0, len(N), _CELLS):
        met = np.flatnonzero(N[at : at + _CELLS]) + at  # what was never met needs no memory
        own = met if slots is None else slots[met]
        cells = np.zeros_like(engine.take(own))
        for name, columns in engine.columns.items():
            cells[:, columns] = tensors[name][met]
        engine.put(own, cells)


def _small(engine: Engine) -> Tensors:
    """Views of the intercept and, by their names, of the arrays of a mixture that are in use."""
    seen = {} if engine.calibration is None else {"calibration": engine.calibration}
    if not engine.spec.several:
        return {"intercept": engine.intercept, **seen}
    spec, state = engine.spec, engine.state
    experts = len(spec.scales) + spec.stacked
    used = {name: state[name][:experts] for name in ("w", "totals", "seen")} | {"facts": state["facts"]}
    if spec.stacked:
        used |= {name: state[name] for name in ("P", "u")}
    if len(spec.scales) > WINDOW:
        used |= {name: state[name] for name in ("block", "windows")}
    if engine.receipt:
        used["sums"] = state["sums"]
    return {"intercept": engine.intercept, **seen, **{MIXTURE + name: a for name, a in used.items()}}


def _check_shape(name: str, found: NDArray[Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if found.shape != shape or found.dtype != dtype:
        raise InvalidInput(f"{name} of shape {found.shape}")


def _check_slots(slots: NDArray[Any], dim: int) -> None:
    if slots.ndim != 1 or slots.dtype != np.uint32 or (len(slots) and int(slots.max()) >= dim):
        raise InvalidInput("slots outside the table")
    if (slots[1:] <= slots[:-1]).any():
        raise InvalidInput("slots that do not rise")


def _check_cells(cells: NDArray[Any]) -> None:
    """Learning makes finite numbers only, and no negative root of G or largest value."""
    # One number that is not finite makes the sum so; no sum of finite ones leaves the range of these types.
    wide = np.longdouble if cells.dtype == np.float64 else np.float64
    finite = bool(np.isfinite(cells.sum(dtype=wide))) or bool(np.isfinite(cells).all())
    if not (finite and (not cells.size or cells[:, 1:3].min() >= 0)):
        raise InvalidInput("cells that no learning makes")


def _check_calibration(bins: NDArray[Any]) -> None:
    """Finite numbers of at least 0, and no more probability or positives in a bin than weight."""
    if not (np.isfinite(bins).all() and (bins >= 0).all() and (bins[:, 1:] <= bins[:, :1] * (1 + 1e-9)).all()):
        raise InvalidInput("a calibration that no learning makes")


def _check_baseline(numbers: NDArray[Any], engine: Engine) -> None:
    """Finite numbers, weights and counts of at least 0, a product of probabilities, a quantile within its labels."""
    _check_shape(BASELINE, numbers, engine.baseline_state.shape, engine.baseline_state.dtype)
    _, product, _, rows, weight, negative, positive, _, quantile, pinball, since, lowest, highest = numbers.tolist()
    sound = bool(np.isfinite(numbers).all()) and 0.0 < product <= 1.0 and lowest <= quantile <= highest
    if not (sound and min(rows, weight, negative, positive, pinball, since) >= 0.0):
        raise InvalidInput("a baseline that no learning makes")


def _check_several(engine: Engine, tensors: Tensors, *, sparse: bool) -> None:
    """Finite numbers; roots, units and counts from 0 on, and nothing in a cell that was never met."""
    for name, a in tensors.items():
        if not np.isfinite(a).all():
            raise InvalidInput(f"{name} with a number that is not finite")
    R, s, N = tensors["R"], tensors["s"], tensors["N"]
    sound = bool((R >= 0).all() and (s >= 0).all() and (N >= 0).all() and not (sparse and (N == 0).any()))
    sound = sound and bool((tensors["intercept"][1] >= 0).all())
    for name in ("z", "R", "S", "s"):
        sound = sound and (name not in tensors or not tensors[name][N == 0].any())
    if not sound:
        raise InvalidInput("cells that no learning makes")
    w, facts = tensors[MIXTURE + "w"], tensors[MIXTURE + "facts"]
    sound = bool((w >= 0).all()) and abs(float(w.sum()) - 1.0) < 1e-6
    sound = sound and bool((facts >= (1.0, 0.0, 0.0)).all())
    if engine.spec.stacked:
        P, u = tensors[MIXTURE + "P"], tensors[MIXTURE + "u"]
        sound = sound and bool((P == P.T).all() and (np.diag(P) > 0).all() and (np.abs(P) <= _LARGEST_P).all())
        sound = sound and bool((np.abs(u) <= _LARGEST_STACK).all())
    if not sound:
        raise InvalidInput("a mixture that no learning makes")
