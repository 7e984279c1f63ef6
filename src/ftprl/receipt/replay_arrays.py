"""The arrays that a replay learns into, as one table: a name, axes, a type and a first value for each.

The compiled replay (src/core/replay) writes into them, and a certificate is computed from them. What grows and what is
dropped follows from the names of the axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.mixture import experts_of
from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]

FIRST_VARIANCE = 0.25  # of a coefficient of a Newton expert
CAUTION = 24.0  # two classes: the odds of the majority while the mixture has no lead
USUAL_SCALE, USUAL_WIDTH = 0.2, 1.5  # scales near it begin with more weight; the width is in the logarithm of a scale
FIRST_WEIGHTS = {"drift": 0.25, "offset": 0.25, "majority": 0.25}  # of experts that are no scales; the others have 1
NEWTONS = {"scores": "newton_A", "columns": "newton_B", "drift": "newton_D"}
WINDOW = 4  # scales that stay
MOST_COLUMNS, MOST_ENTRIES = 64, 1024
# The numbers about labels, as in src/core/replay/labels.hpp.
LABELS = (
    *("rows", "weight", "mean", "squares", "least", "most", "quantile", "since", "pinball", "deviation"),
    *("offset", "unit", "low", "high", "psi", "kappa", "outliers"),
)
FACTS = ("gap", "largest_gap", "paid", "largest_weight", "lead", "lead_gap")
_FIRST_CELLS = 1 << 10


@final
@dataclass(frozen=True, slots=True)
class Part:
    """One array; an axis is a size, or the name of one that depends on the model or changes while it learns."""

    name: str
    axes: tuple[str | int, ...]
    first: float | Callable[[tuple[int, ...]], Vector] = 0.0  # a function gets the shape
    narrow: bool = False  # in the type of the cells, float32 or float64


def parts_of(spec: Spec, *, coin_input: bool = True) -> tuple[Part, ...]:
    """Return the arrays that the replay of a model needs; an axis of inputs ends with those of the columns."""
    loss, experts = spec.scalar_loss(), experts_of(spec)
    lanes = ("classes", "scales")
    parts = [
        *(Part(name, ("cells", *lanes), narrow=True) for name in "zR"),
        Part("S", ("cells", *lanes)),
        *(Part(name, ("cells",), narrow=True) for name in ("unit", "count", "kappa")),
        Part("base", (4, *lanes), lambda shape: _first_base(shape, 0.0 if loss.has_units else 1.0)),
        Part("sums", (6, "scales")),  # RegretSums, and the first three of RoundingSums
        Part("slopes", ("scales",)),
        Part("row_sums", (5, "scales")),
        Part("tallies", (3,)),  # loss, weight, rows
        Part("labels", (len(LABELS),), lambda shape: first_labels(loss.rule)),
    ]
    if spec.bounds:
        parts += [Part("lower", ("cells",), spec.lower), Part("upper", ("cells",), spec.upper)]
    if loss.is_probabilistic:
        parts.append(Part("calibration", (20, 3)))
    if not (spec.several or loss.has_classes):
        return tuple(parts)
    parts += [
        Part("mixture.w", ("experts",), lambda shape: first_weights(spec)),
        Part("mixture.totals", ("experts",)),
        Part("mixture.facts", (len(FACTS),), lambda shape: np.eye(len(FACTS))[FACTS.index("largest_weight")]),
        Part("mixture.octave", (2, "experts")),
        Part("mixture.without", (2, "experts")),
        Part("mixture.octave_loss", (2,)),
        Part("mixture.block", ("scales",)),
        Part("mixture.windows", (3, "windows")),
    ]
    if not (loss.has_units or loss.has_classes):
        parts.append(Part("labels.odds", (3,), lambda shape: np.array([0.0, 0.0, 1.0])))
    for expert in [name for name in NEWTONS if name in experts]:
        parts += _newton_parts(spec, expert, coin_input=coin_input)
    if "columns" in experts:
        parts += [Part("columns.facts", (MOST_COLUMNS, 3)), Part("columns.table", (MOST_ENTRIES, 5))]
        parts += [Part("columns.rows", (1,)), Part("columns.sizes", (2,))]  # columns.sizes: slots and entries in use
    if "coin" in experts:
        parts.append(Part("coin", ("cells", 4), narrow=True))
        parts.append(Part("coin.intercept", (5,), lambda shape: np.eye(5)[4]))  # last the largest weighted slope
    return tuple(parts)


def _newton_parts(spec: Spec, expert: str, *, coin_input: bool) -> list[Part]:
    """Return the arrays of one Newton expert: coefficients and a matrix of their variances."""
    name, loss, own = NEWTONS[expert], spec.scalar_loss(), 1 + MOST_COLUMNS
    if loss.has_classes:
        parts = [Part(f"{name}.u", ("scales",), _equal), Part(f"{name}.P", ("scales", "scales"), _variances)]
        if expert == "columns":
            parts += [Part("columns.W", ("classes", own)), Part("columns.Q", ("classes", own, own), _variances)]
        if expert == "drift":
            parts += [Part(f"{name}.bias", ("classes",)), Part(f"{name}.var", ("classes",), FIRST_VARIANCE)]
        return parts
    K, axis = len(spec.scales), f"inputs of {name}"
    parts = [Part(f"{name}.u", (axis,), lambda shape: np.repeat([1 / K, 0.0], [K, shape[0] - K]))]
    parts.append(Part(f"{name}.P", (axis, axis), _variances))
    return parts + ([Part(f"{name}.loss", (2,))] if loss.has_kink else [])


def _inputs(spec: Spec, expert: str, *, coin_input: bool) -> int:
    """Return how many inputs a Newton expert has at most."""
    coin = int(spec.coin and coin_input and expert != "drift")
    others = {"scores": 0, "columns": 1 + MOST_COLUMNS, "drift": 1}
    return len(spec.scales) + coin + others[expert]


def _equal(shape: tuple[int, ...]) -> Vector:
    return np.full(shape, 1.0 / shape[0])


def _variances(shape: tuple[int, ...]) -> Vector:
    return np.broadcast_to(np.eye(shape[-1]) * FIRST_VARIANCE, shape)


def _first_base(shape: tuple[int, ...], kappa: float) -> Vector:
    """Return z, R, S and kappa of the intercept before the first row."""
    base = np.zeros(shape)
    base[3] = kappa
    return base


def first_labels(rule: str) -> Vector:
    """The numbers about labels before the first one.

    >>> first_labels("mean").sum()
    np.float64(2.0)
    """
    known = {"psi": 1.0, "kappa": 1.0} | ({"unit": 1.0, "low": -1.0, "high": 1.0} if rule == "classes" else {})
    return np.array([known.get(name, 0.0) for name in LABELS])


def first_weights(spec: Spec) -> Vector:
    """Return the weights of the experts before the first row; with hinge losses the majority has nearly all."""
    experts = experts_of(spec)
    away = [math.log(h / USUAL_SCALE) / USUAL_WIDTH for h in spec.scales]
    own = [2.0 / (1.0 + a * a) for a in away] + [FIRST_WEIGHTS.get(name, 1.0) for name in experts[len(away) :]]
    w: Vector = np.array(own) / np.add.accumulate(own)[-1]
    if "majority" in experts:
        part = 1.0 / (1.0 + CAUTION)
        w *= part
        w[experts.index("majority")] += 1.0 - part
    return w


@final
class ReplayArrays:
    """The arrays of one replay by name; `classes` is the number of columns of classes, 1 where there are none."""

    def __init__(self, spec: Spec, classes: int, *, coin_input: bool = True) -> None:
        K, self._coin_input = len(spec.scales), coin_input
        sizes = {"cells": _FIRST_CELLS, "classes": classes, "scales": K, "experts": len(experts_of(spec))}
        sizes["windows"] = K - WINDOW + 2 if K > WINDOW else 0
        sizes |= {f"inputs of {own}": _inputs(spec, name, coin_input=coin_input) for name, own in NEWTONS.items()}
        kind = np.float64 if spec.float64 else np.float32
        self._parts = {part.name: part for part in parts_of(spec, coin_input=coin_input)}
        self._arrays: dict[str, NDArray[Any]] = {}
        for name, part in self._parts.items():
            shape = tuple(axis if isinstance(axis, int) else sizes[axis] for axis in part.axes)
            first = part.first(shape) if callable(part.first) else part.first
            self._arrays[name] = np.full(shape, first, kind if part.narrow else np.float64)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def named(self, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """The arrays of these names that there are."""
        return {name: self._arrays[name] for name in names if name in self._arrays}

    def in_use(self, name: str) -> NDArray[Any]:
        """Return the part of an array that is in use: without columns that there never were, and empty entries."""
        array = self[name]
        if "columns.sizes" not in self:
            return array
        used, entries = (int(size) for size in self["columns.sizes"])
        if name in ("columns.facts", "columns.table"):
            return array[: used if name == "columns.facts" else entries]
        for at, axis in enumerate(self._parts[name].axes):
            if axis in (1 + MOST_COLUMNS, "inputs of newton_B"):
                array = array.take(range(array.shape[at] - MOST_COLUMNS + used), axis=at)
        return array

    @property
    def all(self) -> dict[str, NDArray[Any]]:
        """All arrays by name."""
        return dict(self._arrays)

    def _change(self, axis: str, change: Callable[[NDArray[Any], int, Part], NDArray[Any]]) -> None:
        for name, part in self._parts.items():
            for at in [i for i, one in enumerate(part.axes) if one == axis]:
                self._arrays[name] = np.ascontiguousarray(change(self._arrays[name], at, part))

    def double_cells(self) -> None:
        """Make room for as many cells again."""

        def doubled(a: NDArray[Any], at: int, part: Part) -> NDArray[Any]:
            return np.concatenate([a, np.full_like(a, 0.0 if callable(part.first) else part.first)], axis=at)

        self._change("cells", doubled)

    def add_classes(self, count: int) -> None:
        """Add columns of classes, each a copy of the last one."""
        self._change("classes", lambda a, at, part: np.concatenate([a, *[a.take([-1], axis=at)] * count], axis=at))

    def drop_scales(self, scales: int, first: int) -> None:
        """Drop all of `scales` but four, from number `first` on."""
        out = [k for k in range(scales) if not first <= k < first + WINDOW]
        for axis in ("scales", "experts", *(f"inputs of {name}" for name in NEWTONS.values())):
            self._drop(axis, out)
        self._change("windows", lambda a, at, part: np.delete(a, slice(None), axis=at))
        self["mixture.block"][:] = 0.0
        self._share_weights()

    def drop_expert(self, name: str, number: int, scales: int) -> None:
        """Drop an expert that is no scale, and what it alone needs; the coin's score is the input after the scales."""
        owned = {"coin": ("coin", "coin.intercept"), "columns": ("newton_B.", "columns."), "drift": ("newton_D.",)}
        for part in [part for part in self._parts if part.startswith(owned[name])]:
            del self._parts[part], self._arrays[part]
        for own in ("newton_A", "newton_B") if name == "coin" and self._coin_input else ():
            self._drop(f"inputs of {own}", [scales])
        self._drop("experts", [number])
        self._share_weights()

    def _drop(self, axis: str, numbers: list[int]) -> None:
        self._change(axis, lambda a, at, part: np.delete(a, numbers, axis=at))

    def _share_weights(self) -> None:
        """Divide the weights that stay by their sum; equal weights if theirs had become 0."""
        w = self["mixture.w"]
        total = np.add.accumulate(w)[-1]
        w[:] = w / total if total > 0 else 1.0 / len(w)
