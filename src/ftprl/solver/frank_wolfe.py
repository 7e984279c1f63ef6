"""Minimise a quadratic over a set described by its best points along a slope: pairwise Frank-Wolfe with corrections.

A point is kept as a mixture of points of F (atoms), so that it never leaves F. Each step moves weight from the worst
atom to the best point along the slope (a pairwise step), and then solves for the best weights of all atoms (Wolfe's
method for the nearest point of a polytope): on a polytope the minimum itself is reached after finitely many steps. The
first atom is the previous play, a warm start that depends on nothing but the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.extras import extra_imports
from ftprl.solver.certified import Solution

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_GOOD = 1e-13  # a gap below this share of the objective's size is rounding
_PATIENCE = 12  # steps without a smaller gap before giving up


def minimise_by_vertices(
    vertex: Callable[[Vector], Vector], H: PSD, z: Vector, near: Vector, size: float, steps: int
) -> Solution:
    """Minimise ½ xᵀHx + z·x over a set whose best point along a slope `vertex` returns.

    `near` is a point of the set and `size` the size of the objective over the set. The gap of the answer is measured by
    `vertex`, whether or not the method converges within `steps`.
    """
    mixture = _Mixture(H, psd.apply(H, near) + z, near)
    best, waited = Solution(near, np.inf), 0
    for _ in range(steps + 1):
        x = mixture.point()
        slope = psd.apply(H, x) + z
        corner = vertex(slope)
        gap = max(float(slope.dot(x - corner)), 0.0)
        waited = 0 if gap < 0.9 * best.gap else waited + 1
        if gap < best.gap:
            best = Solution(x, gap)
        if gap <= _GOOD * size or waited > _PATIENCE:
            break
        mixture.step(corner - near)
    return best


@dataclass(eq=False)
class _Mixture:
    """A mixture x = near + sum w_k d_k of points near + d_k of F, with w >= 0 and sum w = 1; d_0 = 0 is `near`
    itself.
    """

    H: PSD
    slope: Vector  # of the objective at near
    near: Vector

    def __post_init__(self) -> None:
        self.d = np.zeros((1, len(self.near)))
        self.K = np.zeros((1, 1))  # d H dᵀ
        self.c = np.zeros(1)  # d·slope
        self.w = np.ones(1)

    def point(self) -> Vector:
        """Return the current point x."""
        return self.near + self.w @ self.d

    def _value(self, w: Vector) -> float:
        """Return the objective at the weights w, relative to `near`."""
        return 0.5 * float(w @ self.K @ w) + float(self.c @ w)

    def step(self, d: Vector) -> None:
        """Add near + d, the best point along the slope at x, as an atom and improve the weights."""
        same = np.flatnonzero((self.d == d).all(axis=1))
        k = int(same[0]) if same.size else self._add(d)
        slopes = self.K @ self.w + self.c
        used = np.flatnonzero(self.w > 0)
        worst = int(used[slopes[used].argmax()])
        if worst != k:
            curvature = self.K[k, k] + self.K[worst, worst] - 2 * self.K[k, worst]
            fall = slopes[worst] - slopes[k]
            share = self.w[worst]
            move = min(fall / curvature, share) if curvature > 0 else share
            self.w[k] += move
            self.w[worst] = share - move if move < share else 0.0
        self._correct()
        self._keep(self.w > 0)

    def _add(self, d: Vector) -> int:
        """Add an atom and return its index."""
        Hd = psd.apply(self.H, d)
        row = self.d @ Hd
        self.K = np.block([[self.K, row[:, None]], [row[None, :], np.array([[float(d @ Hd)]])]])
        self.d = np.vstack((self.d, d))
        self.c, self.w = np.append(self.c, float(d @ self.slope)), np.append(self.w, 0.0)
        return len(self.w) - 1

    def _keep(self, on: NDArray[np.bool_]) -> None:
        """Drop all atoms except those `on`."""
        if on.all():
            return
        self.d, self.c, self.w = self.d[on], self.c[on], self.w[on]
        self.K = self.K[np.ix_(on, on)]

    def _correct(self) -> None:
        """Move the weights towards the best affine ones (Wolfe's inner steps), dropping atoms whose weight reaches
        0.
        """
        w = self.w.copy()
        for _ in range(len(w)):
            on = np.flatnonzero(w > 0)
            if on.size < 2:
                break
            target = w[on] + self._towards_best(on, w[on])
            ratio = np.min(w[on][target < 0] / (w[on] - target)[target < 0], initial=1.0)
            w[on] = w[on] + ratio * (target - w[on])
            if ratio >= 1.0:
                break
            w[on[np.argmin(np.where(target < 0, w[on], np.inf))]] = 0.0
            w[w < 0] = 0.0
        total = float(w.sum())
        if total > 0 and np.isfinite(total):
            w /= total
            if self._value(w) <= self._value(self.w):
                self.w = w

    def _towards_best(self, on: NDArray[np.intp], w: Vector) -> Vector:
        """Return the change from the weights w of the atoms `on` to the best weights of sum 1, of any sign.

        Where atoms differ only along directions in which H is 0, the change is as long as floats allow; it is then cut
        where one of the weights reaches 0.
        """
        K, slopes = self.K[np.ix_(on, on)], self.K[on] @ self._spread(on, w) + self.c[on]
        # Differences to the first atom in use, each scaled to size 1: one row less, and no constraint on the sum.
        M = K[1:, 1:] - K[1:, :1] - K[:1, 1:] + K[0, 0]
        size = np.sqrt(np.maximum(np.diagonal(M), 0.0))
        size = np.where(size > 0, size, 1.0)
        M, right = M / np.multiply.outer(size, size), (slopes[0] - slopes[1:]) / size
        y = _solve(M, right) / size
        y = np.where(np.isfinite(y), y, 0.0)
        return np.concatenate(([-float(y.sum())], y))

    def _spread(self, on: NDArray[np.intp], w: Vector) -> Vector:
        """Return the weights w of the atoms `on`, with 0 for all other atoms."""
        out = np.zeros(len(self.w))
        out[on] = w
        return out


def _solve(M: Vector, right: Vector) -> Vector:
    """Solve M y = right; in directions in which M is 0 up to rounding, y is as long as right / 1e-15."""
    with extra_imports:
        from scipy.linalg.lapack import dpotrf, dpotrs

    factor, failed = dpotrf(M, clean=0)
    if not failed and float(np.diagonal(factor).min()) > 1e-6:  # the diagonal of M is 1, so no direction is lost
        return np.asarray(dpotrs(factor, right)[0])
    values, turn = np.linalg.eigh(M)
    values = np.maximum(values, 1e-15 * max(float(values[-1]), 1e-300))
    return np.asarray(turn @ ((turn.T @ right) / values))
