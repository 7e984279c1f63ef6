"""A penalty on the weights themselves, beside the losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.sets import ConvexSet, Solution

Vector = NDArray[np.float64]
Matrix = psd.Matrix


@final
@dataclass(frozen=True, slots=True)
class Composite:
    """Psi(x) = l1 |x|₁ + ½ l2 |x|₂²: added once, as in FTRL-Proximal, or to every round's loss (`per_round`)."""

    l1: float = 0.0
    l2: float = 0.0
    per_round: bool = False

    def __post_init__(self) -> None:
        check.positive("l1", self.l1, zero=True)
        check.positive("l2", self.l2, zero=True)
        check.instance("per_round", self.per_round, bool)

    def times(self, t: int) -> float:
        """How often Psi stands in the objective after t rounds."""
        return float(t) if self.per_round else 1.0

    def value(self, x: Vector) -> float:
        """Psi(x)."""
        return self.l1 * float(np.abs(x).sum()) + 0.5 * self.l2 * float(x @ x)

    def minimise(self, feasible: ConvexSet, H: Matrix, z: Vector, near: Vector, t: int) -> Solution:
        """Minimise ½ xᵀHx + z·x + Psi (t times when per round) over F."""
        k = self.times(t)
        if self.l2 * k:
            H = psd.add_scalar(H, self.l2 * k)
        if not self.l1 * k:
            return minimise_over(feasible, H, z, near)
        return feasible.minimise_l1(psd.array(H), z, self.l1 * k, near)


def minimise_over(feasible: ConvexSet, H: Matrix, z: Vector, near: Vector) -> Solution:
    """The minimiser over F of ½ xᵀHx + z·x for a matrix of any form."""
    if isinstance(H, psd.LowRank):
        return feasible.minimise_low_rank(H, z, near)
    return feasible.minimise(H, z, near)
