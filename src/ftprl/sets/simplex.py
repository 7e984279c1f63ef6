"""The probability simplex, and the simplex with an upper limit on each coordinate."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.sets import multiplier
from ftprl.sets.base import MixedSet, Quantity, scaled_tolerance
from ftprl.sets.hindsight import ROOT2, PostHoc
from ftprl.solver import Conic, Solution

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


class Shares(MixedSet):
    """The set {0 <= x <= cap, sum x = total}, base class of both simplices."""

    total: float
    cap: float

    def __init__(self, dim: int, cap: float, total: float) -> None:
        self._dim = check.dimension("dim", dim)
        self.total = check.positive("total", total)
        self.cap = cap
        # Rounding may put a cap below equal shares; this must not make the set empty.
        self._low, self._high = np.zeros(self._dim), np.full(self._dim, max(cap, self.total / self._dim))

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return self._dim

    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        lam = H if H.ndim else np.broadcast_to(H, z.shape)
        if self.cap == math.inf and psd.positive(H):
            return multiplier.simplex(lam, z, self.total, near)
        return multiplier.with_sum(lam, z, self._low, self._high, self.total, near)

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x: |x|₁ is equal at all points of the set, so the penalty changes nothing."""
        return self.minimise(H, z, near)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the range of a share, which is equal for all coordinates."""
        rest = (self.dim - 1) * min(self.cap, self.total)
        return np.full(self.dim, max(0.0, self.total - rest)), np.full(self.dim, min(self.cap, self.total))

    def widths(self) -> Vector:
        """Return min(cap, s) - max(0, s - (n-1) cap) for every coordinate, with s the total."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        low, high = self.bounds()
        return check.frozen(np.maximum(high - low, 0.0))

    def start(self) -> Vector:
        """Return equal shares."""
        return np.full(self.dim, self.total / self.dim)

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if 0 <= x <= cap and sum x = total up to the tolerance."""
        tol = scaled_tolerance(atol, self.total)
        return bool(x.min() >= -tol and x.max() <= self.cap + tol and abs(float(x.sum()) - self.total) <= tol)

    def violation(self, x: Vector) -> float:
        """Return the largest error of a share or of the sum, relative to the total."""
        beyond = max(-float(x.min()), float(x.max()) - float(self._high[0]), 0.0)
        return max(beyond, abs(float(x.sum()) - self.total)) / self.total

    def tangent(self, g: Vector) -> Vector:
        """Return g minus its mean: all points have an equal sum, so a constant does not distinguish them."""
        return g - float(g.mean())

    def conic(self) -> Conic:
        """Return the limits as rows and the sum as one equality."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        eye = np.eye(self.dim)
        C, d = -eye, np.zeros(self.dim)
        if math.isfinite(self.cap):
            C, d = np.vstack((C, eye)), np.concatenate((d, self._high))
        return Conic.polyhedron(self.dim, (C, d), (np.ones((1, self.dim)), np.array([self.total])))


@final
class Simplex(Shares):
    """The simplex {x >= 0, sum x = total}: portfolios, allocations, probabilities.

    >>> Simplex(3).vertex(np.array([2.0, 1.0, 3.0]))
    array([0., 1., 0.])
    """

    def __init__(self, dim: int, total: float = 1.0) -> None:
        super().__init__(dim, math.inf, total)

    def __repr__(self) -> str:
        return f"Simplex(dim={self.dim}, total={self.total:g})"

    def vertex(self, g: Vector) -> Vector:
        """Return the minimiser of g·x: the whole total on the coordinate with the smallest g."""
        out = np.zeros(self.dim)
        out[int(g.argmin())] = self.total
        return out

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return the gap (slope - min slope)·x.

        >>> Simplex(2).gap(np.array(0.0), np.array([1.0, 3.0]), np.array([0.5, 0.5]))
        1.0
        """
        slope = psd.apply(H, x) + z
        slope -= slope.item(slope.argmin())
        return float(slope.dot(x))

    def diameter(self) -> float:
        """Return sqrt(2) total."""
        return math.sqrt(2) * self.total if self.dim > 1 else 0.0

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym, which is exact.

        With s the total: s² times the sum of the two largest weights for a diagonal, s² max (Q_ii + Q_jj - 2 Q_ij) for
        a full Q.
        """
        if self.dim == 1:
            return 0.0
        if Q.ndim == 0:
            return 2 * float(Q) * self.total**2
        if Q.ndim == 1:
            return self.total**2 * two_largest(Q)
        d = np.diagonal(Q)
        return self.total**2 * float((d[:, None] + d - 2 * Q).max())

    def is_exact(self, what: Quantity) -> bool:
        """Return True: every quantity of this set is exact."""
        return True

    def gamma(self) -> float:
        """Return n/2, at least 1."""
        return max(self.dim / 2, 1.0)

    def diagonal_optimum(self, G: Vector) -> PostHoc:
        """Return the best diagonal.

        With s the total, its bound is 2 s sqrt(G), unless one coordinate has more than half of G: then it is s sqrt 2
        (sqrt(max) + sqrt(rest)).
        """
        s = self.total
        if self.dim == 1:
            return PostHoc(0.0, np.zeros(1), True)
        total, top = float(G.sum()), float(G.max())
        rest = max(total - top, 0.0)
        value = s * 2 * math.sqrt(total) if 2 * top <= total else s * ROOT2 * (math.sqrt(top) + math.sqrt(rest))
        return PostHoc(value, np.sqrt(np.maximum(2 * G, min(total, 2 * rest))) / s, True)

    def extreme_differences(self) -> Vector:
        """Return the vertices of Fsym, s (e_i - e_j) with s the total."""
        i, j = np.triu_indices(self.dim, 1)
        eye = self.total * np.eye(self.dim)
        return eye[i] - eye[j]

    def penalty_growth(self) -> float:
        """Return 3/2."""
        return 1.5


@final
class CappedSimplex(Shares):
    """The simplex with an upper limit {0 <= x <= cap, sum x = total}: allocations with a limit on each share.

    >>> CappedSimplex(3, cap=0.5).vertex(np.array([2.0, 1.0, 3.0]))
    array([0.5, 0.5, 0. ])
    """

    def __init__(self, dim: int, cap: float, total: float = 1.0) -> None:
        super().__init__(dim, check.positive("cap", cap), total)
        if self.cap * self.dim < self.total * (1 - 1e-12):
            raise InvalidInput(
                f"CappedSimplex needs cap * dim >= total, got {self.cap:g} * {self.dim} < {self.total:g};"
                " raise the cap or lower the total."
            )

    def __repr__(self) -> str:
        return f"CappedSimplex(dim={self.dim}, cap={self.cap:g}, total={self.total:g})"

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return the gap: the sum of |slope - t| times the room that x leaves, minimised over two levels t.

        The sum is a bound for any level t and sharp at one: coordinates with a slope below t could grow up to the cap,
        those above it fall to 0. If full shares alone make up the total, t may be the slope of the last full share or
        of the next one, and the smaller sum is returned.
        """
        slope = psd.apply(H, x) + z
        k = min(int(self.total / self._high.item(0)), self.dim - 1)
        before = max(k - 1, 0)
        ordered = np.partition(slope, (before, k))
        return min(self._largest_decrease(slope - ordered.item(j), x) for j in (before, k))

    def _largest_decrease(self, slope: Vector, x: Vector) -> float:
        return float(np.maximum(slope * x, slope * (x - self._high)).sum())

    @cached_property
    def _moves(self) -> tuple[int, float, bool]:
        """Return how many coordinates can move by the full cap at once, the movement left over, and whether that is
        exact.
        """
        k = min(self.cap, self.total)
        moved = 2 * min(self.total, max(self.dim * k - self.total, 0.0))
        ratio = self.total / k
        # No coordinate can move by more than its width, which is below the cap if the others cannot compensate.
        k = float(self.widths()[0])
        full = min(math.floor(moved / k + 1e-12), self.dim) if k else 0
        return full, max(moved - full * k, 0.0), abs(ratio - round(ratio)) < 1e-12

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym, greedily over the largest weights.

        It is exact if total/cap is an integer and Q is diagonal, an upper bound otherwise.
        """
        if Q.ndim == 2:
            centred = Q - Q.mean(axis=0) - Q.mean(axis=1)[:, None] + Q.mean()
            return min(super().sq_diameter(Q), psd.largest(centred) * self.diameter() ** 2)
        lam = np.sort(np.broadcast_to(Q, (self.dim,)))[::-1]
        full, left, _ = self._moves
        k = float(self.widths()[0])
        tail = left**2 * lam[full] if full < self.dim else 0.0
        return float(k**2 * lam[:full].sum() + tail)

    def diameter(self) -> float:
        """Return the square root of `sq_diameter` of the identity."""
        return math.sqrt(self.sq_diameter(np.array(1.0)))

    def is_exact(self, what: Quantity) -> bool:
        """Return True for widths; for other quantities, except of full matrices, if total/cap is an integer."""
        return what == "widths" or (what != "full" and self._moves[2])


def two_largest(q: Vector) -> float:
    """Return the sum of the two largest entries; two searches are faster than a partition.

    >>> two_largest(np.array([1.0, 5.0, 3.0]))
    8.0
    """
    i = int(q.argmax())
    rest = max(float(part[part.argmax()]) for part in (q[:i], q[i + 1 :]) if part.size)
    return float(q[i]) + rest
