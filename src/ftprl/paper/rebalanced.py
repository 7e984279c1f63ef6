"""The best constant-rebalanced portfolio by Newton steps on the simplex, with a proved gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.sets import Simplex

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Rebalanced:
    """Shares kept constant from day to day, their total log growth, and its proved distance from the best."""

    x: Vector
    log_wealth: float
    gap: float


def best_rebalanced(R: Vector, tol: float = 1e-9, steps: int = 100) -> Rebalanced:
    """Maximise sum log(x·r_t) over the simplex.

    By concavity the best value exceeds that of x by at most sum_t max_i (r_{t,i} / x·r_t) - 1, summed over t before the
    maximum: the gap.

    >>> best_rebalanced(np.array([[2.0, 0.5], [0.5, 2.0]])).x.round(6)
    array([0.5, 0.5])
    """
    T, n = R.shape
    simplex = Simplex(n)
    x = simplex.start()
    for _ in range(steps):
        growth = R @ x
        scaled = R / growth[:, None]
        slope = scaled.sum(axis=0)
        gap = float(slope.max()) - T
        if gap <= tol * T:
            break
        H = scaled.T @ scaled
        towards = simplex.argmin(H, -slope - H @ x, x) - x
        x = x + _length(R, x, towards) * towards
    growth = R @ x
    gap = max(float((R / growth[:, None]).sum(axis=0).max()) - T, 0.0)
    return Rebalanced(x, float(np.log(growth).sum()), gap)


def _length(R: Vector, x: Vector, towards: Vector) -> float:
    """Return a step length, halved until the logarithm gains a tenth of what its slope predicts."""
    before, along = R @ x, R @ towards
    promised, size = float((along / before).sum()), 1.0
    while size > 1e-12:
        after = before + size * along
        if after.min() > 0 and float(np.log(after / before).sum()) >= 0.1 * size * promised:
            return size
        size /= 2
    return 0.0
