"""Penalties on the weights themselves, added to the losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.sets import ConvexSet, Solution

Vector = NDArray[np.float64]
Matrix = psd.Matrix

_LARGE, _SMALL = 1e60, 1e-60


@final
@dataclass(frozen=True, slots=True)
class Composite:
    """The penalty Psi(x) = l1 |x|₁ + ½ l2 |x|₂², added once, as in FTRL-Proximal, or to every round's loss
    (`per_round`).

    >>> Composite(l1=1.0, l2=2.0).value(np.array([1.0, -2.0]))
    8.0
    """

    l1: float = 0.0
    l2: float = 0.0
    per_round: bool = False

    def __post_init__(self) -> None:
        check.positive("l1", self.l1, zero=True)
        check.positive("l2", self.l2, zero=True)
        check.instance("per_round", self.per_round, bool)

    def times(self, t: int) -> float:
        """Return how often Psi counts in the objective after t rounds."""
        return float(t) if self.per_round else 1.0

    def value(self, x: Vector) -> float:
        """Return Psi(x)."""
        return self.l1 * float(np.abs(x).sum()) + 0.5 * self.l2 * float(x @ x)

    def minimise(self, feasible: ConvexSet, H: Matrix, z: Vector, near: Vector, t: int) -> Solution:
        """Minimise ½ xᵀHx + z·x + Psi over F; with `per_round`, Psi counts t times."""
        k = self.times(t)
        if self.l2 * k:
            H = psd.add_scalar(H, self.l2 * k)
        if not self.l1 * k:
            return minimise_over(feasible, H, z, near)
        return minimise_over(feasible, H, z, near, self.l1 * k)


def minimise_over(feasible: ConvexSet, H: Matrix, z: Vector, near: Vector, l1: float = 0.0) -> Solution:
    """Minimise ½ xᵀHx + z·x + l1 |x|₁ over F, for any form of matrix and gradients of any size.

    An objective of extreme size is divided by a power of two first: its minimiser does not change, and no square
    overflows.
    """
    unit = _unit(feasible, H, z)
    if unit != 1.0:
        H, z, l1 = H / unit, z / unit, l1 / unit
    if l1:
        found = feasible.minimise_l1(psd.array(H), z, l1, near)
    elif isinstance(H, psd.LowRank):
        found = feasible.minimise_low_rank(H, z, near)
    else:
        found = feasible.minimise(H, z, near)
    return found if unit == 1.0 else Solution(found.x, found.gap * unit)


def _unit(feasible: ConvexSet, H: Matrix, z: Vector) -> float:
    """Return 1, or for objectives beyond 1e±60 the power of two near the largest slope."""
    size, wide = float(np.abs(z).max(initial=0.0)), float(feasible.widths().max(initial=0.0))
    wide = wide if 0.0 < wide < math.inf else 1.0
    if _SMALL < size < _LARGE and _SMALL < size * wide < _LARGE:
        return 1.0
    weight = max(abs(H.shift), float(np.abs(H.M).max(initial=0.0))) if isinstance(H, psd.LowRank) else float(np.max(H))
    size = max(size, weight * wide)
    return math.ldexp(0.5, math.frexp(size)[1]) if size else 1.0
