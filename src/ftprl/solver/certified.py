"""A point with a lower bound on the minimum that its multipliers prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

Span = tuple[Vector, Vector]  # the least and the largest value of each variable on the set

TIGHT = 1e-12  # relative feasibility that a play must have before it leaves the solver


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A point of F and an upper bound on how far its value is from the minimum."""

    x: Vector
    gap: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A primal point (feasible or not) with multipliers, and the lower bound on the minimum they prove."""

    w: Vector
    lower: float


def value(H: PSD, z: Vector, x: Vector) -> float:
    """½ xᵀHx + z·x."""
    return 0.5 * psd.quad(H, x) + float(z.dot(x))


def lower_bound(H: PSD, z: Vector, G: Vector, h: Vector, w: Vector, dual: Vector, span: Span) -> float:
    """A number below f everywhere on the set, whatever w is, by convexity and weak duality.

    For u in the set f(u) >= f(w) + slope·(u - w), and dual·(h - Gu) >= 0; what the multipliers leave of the slope is
    charged at the end of the variable's range that costs most.
    """
    residual = psd.apply(H, w)
    residual += z
    residual += dual @ G
    low, high = span
    left = np.minimum(residual * (low - w), residual * (high - w))
    return value(H, z, w) - float(dual.dot(h - G @ w)) + float(left.sum())
