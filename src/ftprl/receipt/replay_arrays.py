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

from ftprl.linear.mixture import WINDOW, experts_of
from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]

RIDGE = 4.0  # the Hessian of the stack begins at this times the identity
CAUTION = 24.0  # two classes: the odds of the majority while the mixture has no lead
USUAL_SCALE, USUAL_WIDTH = 0.2, 1.5  # scales near it begin with more weight; the width is in the logarithm of a scale
STACK_INPUTS = 88  # space for those of a stack with dense columns
ACTIVE, OWN = 0, 2  # of column_counts: columns of the stack; its inputs before them, 0 before there were any
# The numbers about labels, as in src/core/replay/replay.hpp.
LABELS = (
    *("rows", "weight", "mean", "squares", "least", "most", "quantile", "since", "pinball", "deviation"),
    *("offset", "unit", "low", "high", "psi", "kappa", "outliers"),
)
MIXTURE = ("P", "u", "w", "totals", "facts", "hedge", "block", "windows")
_FIRST_CELLS = 1 << 10


@final
@dataclass(frozen=True, slots=True)
class Part:
    """One array; an axis is a size, or the name of one that depends on the model or changes while it learns."""

    name: str
    axes: tuple[str | int, ...]
    first: float = 0.0
    narrow: bool = False  # in the type of the cells, float32 or float64


def parts_of(spec: Spec) -> tuple[Part, ...]:
    """The arrays that the replay of a model needs."""
    loss = spec.scalar_loss()
    lanes = ("columns", "scales")
    parts = [
        *(Part(name, ("cells", *lanes), narrow=True) for name in "zR"),
        Part("S", ("cells", *lanes)),
        *(Part(name, ("cells",), narrow=True) for name in ("unit", "count", "kappa")),
        Part("base", (4, *lanes)),  # z, R, S and kappa of the intercept
        Part("sums", (6, "scales")),  # RegretSums, and the first three of RoundingSums
        Part("slopes", ("scales",)),
        Part("row_sums", (5, "scales")),
        Part("tallies", (3,)),  # loss, weight, rows
        Part("labels", (len(LABELS),)),
    ]
    if spec.bounds:
        parts += [Part("lower", ("cells",), spec.lower), Part("upper", ("cells",), spec.upper)]
    if loss.is_probabilistic:
        parts.append(Part("calibration", (20, 3)))
    if spec.several or loss.has_classes:
        of_losses = Part("hedge", (10,)) if loss.has_units else Part("facts", (1,), 1.0)
        parts += [Part("P", ("scales", "scales")), Part("u", ("scales",)), Part("w", ("experts",)), of_losses]
        parts += [Part("totals", ("experts",)), Part("block", ("scales",)), Part("windows", (3, "windows"))]
    if spec.coin:
        parts += [Part("coin", ("cells", 4), narrow=True), Part("coin_base", (7,))]
    if spec.dense:
        parts += [Part("columns", (64, 8)), Part("column_counts", (4,))]
        parts += [Part("dense_u", ("columns", STACK_INPUTS))]
        parts += [Part("dense_P", ("columns", STACK_INPUTS, STACK_INPUTS))]
    return tuple(parts)


def first_labels(rule: str) -> Vector:
    """The numbers about labels before the first one.

    >>> first_labels("mean").sum()
    np.float64(2.0)
    """
    known = {"psi": 1.0, "kappa": 1.0} | ({"unit": 1.0, "low": -1.0, "high": 1.0} if rule == "classes" else {})
    return np.array([known.get(name, 0.0) for name in LABELS])


def first_weights(spec: Spec) -> Vector:
    """The weights of the experts before the first row.

    With the log loss scales near 0.2 have more beside a coin; with the hinge losses the majority has nearly all.
    """
    experts, loss = experts_of(spec), spec.scalar_loss()
    n = len(experts)
    if "majority" in experts:
        part = 1.0 / (1.0 + CAUTION)
        w = np.full(n, part * (1.0 / n))
        w[experts.index("majority")] += 1.0 - part
        return w
    if not spec.coin or loss.has_units:
        return np.full(n, 1.0 / n)
    away = [math.log(h / USUAL_SCALE) / USUAL_WIDTH for h in spec.scales]
    own = np.array([2.0 / (1.0 + a * a) for a in away] + [1.0] * (n - len(away)))
    return np.asarray(own / np.add.accumulate(own)[-1])


@final
class ReplayArrays:
    """The arrays of one replay by name; `columns` of classes, one where there are none."""

    def __init__(self, spec: Spec, columns: int) -> None:
        K = len(spec.scales)
        sizes = {"cells": _FIRST_CELLS, "columns": columns, "scales": K, "experts": len(experts_of(spec))}
        sizes["windows"] = K - WINDOW + 2 if K > WINDOW else 0
        kind = np.float64 if spec.float64 else np.float32
        self._parts = {part.name: part for part in parts_of(spec)}
        self._arrays: dict[str, NDArray[Any]] = {}
        for name, part in self._parts.items():
            shape = [axis if isinstance(axis, int) else sizes[axis] for axis in part.axes]
            self._arrays[name] = np.full(shape, part.first, kind if part.narrow else np.float64)
        loss = spec.scalar_loss()
        self["labels"][:] = first_labels(loss.rule)
        if not loss.has_units:
            self["base"][3] = 1.0
        if "w" in self:
            self["P"][...] = np.eye(K) / RIDGE * spec.stacked
            self["u"][:] = spec.stacked / K
            self["w"][:] = first_weights(spec)
        if spec.coin:
            self["coin_base"][4] = 1.0  # the largest weighted slope so far

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._arrays[name]

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def named(self, names: Sequence[str]) -> Mapping[str, NDArray[Any]]:
        """The arrays of these names that there are."""
        return {name: self._arrays[name] for name in names if name in self._arrays}

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
        self._change("cells", lambda a, at, part: np.concatenate([a, np.full_like(a, part.first)], axis=at))

    def add_columns(self, count: int) -> None:
        """Add columns of classes, each a copy of the last one."""
        self._change("columns", lambda a, at, part: np.concatenate([a, *[a.take([-1], axis=at)] * count], axis=at))

    def drop_scales(self, first: int) -> None:
        """Drop all scales but four, from number `first` on."""
        count, kept = len(self["u"]), [*range(first, first + WINDOW)]
        if "column_counts" in self and self["column_counts"][OWN] > count:  # the stack with columns has them as inputs
            self._keep_inputs([*kept, *range(count, STACK_INPUTS)])
            self["column_counts"][OWN] -= count - WINDOW
        self._take("scales", kept)
        self._take("experts", [*kept, *range(count, len(self["w"]))])
        self._take("windows", [])
        self["block"][:] = 0.0
        self._settle_weights()

    def _take(self, axis: str, kept: list[int]) -> None:
        self._change(axis, lambda a, at, part: a.take(np.array(kept, np.intp), axis=at))

    def _keep_inputs(self, kept: list[int]) -> None:
        u, P, n = self["dense_u"], self["dense_P"], len(kept)
        own = u[:, kept], P[:, kept][:, :, kept]
        u[...], P[...] = 0.0, 0.0
        u[:, :n], P[:, :n, :n] = own

    def drop_coin(self) -> None:
        """Drop the coin, the last expert."""
        for name in ("coin", "coin_base"):
            del self._parts[name], self._arrays[name]
        self._change("experts", lambda a, at, part: a[:-1])
        self._settle_weights()

    def _settle_weights(self) -> None:
        """The experts that stay share the weights of all; equal weights if theirs had become 0."""
        w = self["w"]
        total = np.add.accumulate(w)[-1]
        w[:] = w / total if total > 0 else 1.0 / len(w)
