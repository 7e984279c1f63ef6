"""A point with a lower bound on the minimum that its multipliers prove."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

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
    return 0.5 * psd.quad(H, x) + float(z @ x)


def lower_bound(H: PSD, z: Vector, G: Vector, h: Vector, w: Vector, dual: Vector, reach: Vector) -> float:
    """f(w) - dual·(h - Gw) - |residual|·reach: below f everywhere on the set, by convexity and weak duality."""
    n = len(z)
    slope = np.zeros(n) if H.ndim == 0 and not H else psd.apply(H, w)
    residual = slope + z + G.T @ dual
    return value(H, z, w) - float(dual @ (h - G @ w)) - float(np.abs(residual) @ reach)
