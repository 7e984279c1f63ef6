"""Points with a lower bound on the minimum that their multipliers prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

Span = tuple[Vector, Vector]  # the smallest and the largest value of each variable on the set

TIGHT = 1e-12  # relative feasibility of its rows that a solver's answer must have
ROUNDING = 1e-15  # relative feasibility of every play


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A point x of F and its gap.

    The gap is an upper bound on slope·(x - u) over u in F, so on the distance of x from the minimum.
    """

    x: Vector
    gap: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """A primal point (feasible or not) with multipliers of all rows and cones."""

    w: Vector
    dual: Vector


def value(H: PSD, z: Vector, x: Vector) -> float:
    """Return ½ xᵀHx + z·x.

    >>> value(np.array(2.0), np.array([1.0]), np.array([3.0]))
    12.0
    """
    return 0.5 * psd.quad(H, x) + float(z.dot(x))


def dual_gap(H: PSD, z: Vector, G: Vector, h: Vector, w: Vector, dual: Vector, span: Span) -> float:
    """Return an upper bound on slope·(w - u) with slope = Hw + z, over every u of the set; w may be any point.

    By weak duality dual·(h - Gu) >= 0 on the set; the part of the slope that the multipliers do not explain counts at
    the worse end of each variable's range.
    """
    residual = psd.apply(H, w)
    residual += z
    residual += dual @ G
    low, high = span
    left = np.maximum(residual * (w - low), residual * (w - high))
    return float(dual.dot(h - G @ w)) + float(left.sum())
