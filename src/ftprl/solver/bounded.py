"""Minimise a quadratic with a full matrix between bounds: principal pivoting, started from the previous play."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.extras import extra_imports

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

_TIE = 1e-10  # weight of the distance from the last point, relative to the largest curvature
_PIVOTS = 60
_PASSES = 8
_PATIENCE = 5  # block pivots without progress before single coordinates are moved


def minimise_between(H: Vector, z: Vector, low: Vector, high: Vector, near: Vector) -> tuple[Vector, float] | None:
    """Return (x, gap) for the minimum of ½ xᵀHx + z·x over finite bounds low <= x <= high; None if the pivots cycle.

    A full matrix of low rank has many minimisers: the distance from the last point is added with a tiny weight, and the
    point is moved until that no longer matters (proximal steps). `gap` is measured: the largest slope·(x - u).

    >>> x, gap = minimise_between(np.eye(2), np.array([-0.5, 3.0]), np.zeros(2), np.ones(2), np.zeros(2))
    >>> x
    array([0.5, 0. ])
    """
    unit = high - low
    unit = np.where(unit > 0, unit, 1.0)
    P, q, end = H * np.multiply.outer(unit, unit), unit * (z + H @ low), np.where(high > low, 1.0, 0.0)
    steep = max(float(np.abs(P).max(initial=0.0)), float(np.abs(q).max(initial=0.0)))
    top = float(np.diagonal(P).max(initial=0.0))
    if not (top > 0.0 and np.isfinite(steep)):
        return None
    y = np.clip((near - low) / unit, 0.0, end)
    side = _first_guess(P, q, end, y)
    best: tuple[float, Vector] | None = None
    solver = _Pivots(P, q, end, _TIE * top)
    for _ in range(_PASSES):
        pivoted = solver.run(y, side)
        if pivoted is None:
            break
        y, side = pivoted
        gap = _gap(P @ y + q, y, end)
        if best is not None and not gap < best[0]:
            break
        best = gap, y
        if gap <= 1e-15 * steep:
            break
    if best is None:
        return None
    x = np.minimum(np.maximum(low + unit * best[1], low), high)
    slope = H @ x + z
    return x, float(np.maximum(slope * (x - low), slope * (x - high)).sum())


def _gap(slope: Vector, y: Vector, end: Vector) -> float:
    """Return the largest slope·(y - u) over 0 <= u <= end."""
    return float(np.maximum(slope * y, slope * (y - end)).sum())


def _first_guess(P: Vector, q: Vector, end: Vector, y: Vector) -> NDArray[np.int8]:
    """Return a first guess of the active bounds: -1 at the lower end, 1 at the upper, 0 free.

    The guess is the bound where y lies, unless the slope leads away from it.
    """
    slope = P @ y + q
    side = np.zeros(y.shape, dtype=np.int8)
    side[(y <= 0.0) & (slope >= 0)] = -1
    side[(y >= end) & (slope <= 0)] = 1
    side[end == 0.0] = -1
    return side


class _Pivots:
    """Principal pivoting (Kostreva, Júdice) for one matrix; the last Cholesky factor is kept for the next pass."""

    def __init__(self, P: Vector, q: Vector, end: Vector, tie: float) -> None:
        self.P, self.q, self.end, self.tie = P, q, end, tie
        self.key, self.factor = b"", np.zeros((0, 0))

    def run(self, y0: Vector, side: NDArray[np.int8]) -> tuple[Vector, NDArray[np.int8]] | None:
        """Return the minimum with ½ tie |y - y0|² added and the bounds active there; None if the pivots cycle."""
        side, fewest, patience = side.copy(), len(y0) + 1, _PATIENCE
        movable = self.end > 0
        for _ in range(_PIVOTS):
            y = self._solve(y0, side)
            if y is None:
                return None
            slope = self.P @ y + self.q + self.tie * (y - y0)
            free = side == 0
            noise = 1e-14 * (1.0 + float(np.abs(self.q).max()))
            under, over = free & (y < -1e-14), free & (y > self.end + 1e-14)
            freed = movable & (((side < 0) & (slope < -noise)) | ((side > 0) & (slope > noise)))
            wrong = np.flatnonzero(under | over | freed)
            if not wrong.size:
                return np.clip(y, 0.0, self.end), side
            if wrong.size < fewest:
                fewest, patience = int(wrong.size), _PATIENCE
            else:
                patience -= 1
            moved = wrong if patience > 0 else wrong[-1:]
            side[moved] = np.where(under[moved], -1, np.where(over[moved], 1, 0))
        return None

    def _solve(self, y0: Vector, side: NDArray[np.int8]) -> Vector | None:
        """Solve for the free coordinates with the others at their bounds; None if the matrix is not positive
        definite.
        """
        with extra_imports:
            from scipy.linalg.lapack import dpotrf, dpotrs

        y = np.where(side > 0, self.end, 0.0)
        on = np.flatnonzero(side == 0)
        if not on.size:
            return y
        key = on.tobytes()
        if key != self.key:
            K = self.P[np.ix_(on, on)] if on.size < len(y0) else self.P.copy()
            np.einsum("ii->i", K)[...] += self.tie
            factor, failed = dpotrf(K, lower=1, clean=0)
            if failed:
                return None
            self.key, self.factor = key, factor
        right = self.tie * y0[on] - self.q[on] - self.P[on] @ y
        y[on] = dpotrs(self.factor, right, lower=1)[0]
        return y
