"""Boxes, on which the diagonal scheme is exactly the algorithm of the paper."""

from __future__ import annotations

import math
from functools import cached_property, lru_cache
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.sets import multiplier
from ftprl.sets.base import ConvexSet, MixedSet, Quantity, worst_excess
from ftprl.sets.hindsight import ROOT2, PostHoc, axis_sum
from ftprl.solver import Conic, Solution, is_definite, keep_near, minimise_between

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_GOOD = 1e-13  # a gap below this share of all terms' possible gains needs no solver
_ENUMERATE = 12  # up to this dimension the 2^(n-1) corners of Fsym are tried one by one


@lru_cache(maxsize=4)
def _corners(n: int) -> Vector:
    """Return half of the corners of [-1,1]^n, one a row; the other half are their negatives."""
    bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n)) & 1
    return check.frozen(np.asarray(1.0 - 2.0 * bits, dtype=np.float64))


def _ends(lower: ArrayLike, upper: ArrayLike, dim: int | None) -> tuple[Vector, Vector]:
    """Return both bounds as vectors of one length.

    Raises InvalidInput if the bounds and `dim` do not agree.
    """
    lo, hi = check.array("lower", lower), check.array("upper", upper)
    shape = np.broadcast_shapes(lo.shape, hi.shape) if lo.ndim < 2 and hi.ndim < 2 else (-1, -1)
    if len(shape) > 1 or (shape and dim not in (None, *shape)):
        raise InvalidInput(
            f"Box needs a number or a vector for each bound, got shapes {lo.shape} and {hi.shape} with dim={dim};"
            " make the lengths agree."
        )
    n = check.dimension("dim", dim if dim is not None else (shape[0] if shape else 1))
    return np.broadcast_to(lo, (n,)).copy(), np.broadcast_to(hi, (n,)).copy()


@final
class Box(MixedSet):
    """The box {x : lower <= x <= upper}.

    A bound may be infinite if the scheme does not need widths.

    >>> Box(-1.0, [1.0, 2.0]).widths()
    array([2., 3.])
    """

    def __init__(self, lower: ArrayLike, upper: ArrayLike, dim: int | None = None) -> None:
        try:
            lo, hi = _ends(lower, upper, dim)
        except ValueError as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput(
                f"Box needs bounds of equal length, got {np.shape(lower)} and {np.shape(upper)}; make them agree."
            ) from None
        bad = np.flatnonzero(~(lo <= hi) | (lo == np.inf) | (hi == -np.inf))
        if len(bad):
            i = int(bad[0])
            raise InvalidInput(
                f"Box needs lower <= upper, got lower[{i}]={lo[i]:g} and upper[{i}]={hi[i]:g};"
                " swap them or drop the coordinate."
            )
        self.lower, self.upper = check.frozen(lo), check.frozen(hi)

    def __repr__(self) -> str:
        if self._bounded and np.ptp(self.lower) == 0 and np.ptp(self.upper) == 0:
            return f"Box({self.lower[0]:g}, {self.upper[0]:g}, dim={self.dim})"
        return f"Box(dim={self.dim})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return len(self.lower)

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(self.upper - self.lower)

    @cached_property
    def _pinned(self) -> NDArray[np.bool_] | None:
        """Return a mask of the coordinates with lower = upper, or None if there are none."""
        pinned = self._widths == 0
        return pinned if pinned.any() else None

    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        lam = H if H.ndim else np.broadcast_to(H, (self.dim,))
        x = multiplier.box(lam, z, self.lower, self.upper, near)
        return x if self._bounded else self._inside(x)

    @cached_property
    def _bounded(self) -> bool:
        return bool(np.isfinite(self._widths).all())

    @cached_property
    def _square_widths(self) -> Vector:
        return self._widths**2

    def _inside(self, x: Vector) -> Vector:
        """Return x, or raise InvalidInput if an infinite side leaves some coordinate without a minimiser."""
        if not np.isfinite(x).all():
            i = int(np.flatnonzero(~np.isfinite(x))[0])
            raise InvalidInput(
                f"the minimum over a Box with an infinite side needs weight on coordinate {i}, got none; bound it."
            )
        return x

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x: a clip for diagonal H, pivots between the bounds for a full H.

        The gap of a clip is only the rounding of one division, so it is reported as 0 and not measured. If the pivots
        do not converge, the conic solver takes over.
        """
        if H.ndim < 2:
            return Solution(self._separable(H, z, near), 0.0)
        return self._between(H, H, z, near)

    def minimise_low_rank(self, H: psd.LowRank, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x for a low-rank H by pivots, keeping directions outside its range as H leaves them."""
        return self._between(H.dense(), H, z, near)

    def _between(self, full: PSD, H: psd.Matrix, z: Vector, near: Vector) -> Solution:
        """Minimise over the box by pivots for the matrix `full`; H is the same matrix, possibly in low-rank form."""
        solution = minimise_between(full, z, self.lower, self.upper, near) if self._bounded else None
        if solution is None:
            return super().minimise(full, z, near)
        x, gap = solution
        if isinstance(H, psd.LowRank) or not is_definite(full):
            kept = keep_near(self, H, z, x, near)
            x, gap = (x, gap) if kept is x else (kept, self.gap(full, z, kept))
        if gap <= _GOOD * float(self._widths @ (np.abs(z) + np.abs(full) @ np.abs(x))):
            return Solution(x, gap)
        other = super().minimise(full, z, near).x
        there = self.gap(full, z, other)
        return Solution(other, there) if there <= gap else Solution(x, gap)

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x + l1·|x|₁: for diagonal H soft-threshold, divide and clip, which is exact."""
        if H.ndim == 2:
            return super().minimise_l1(H, z, l1, near)
        lam = np.broadcast_to(H, (self.dim,))
        # Where a coordinate has no weight and |z| <= l1, every step away from 0 raises the objective.
        soft = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0)
        rest = near if l1 == 0 else np.minimum(np.maximum(0.0, self.lower), self.upper)
        return Solution(self._inside(multiplier.box(lam, soft, self.lower, self.upper, rest)), 0.0)

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser of g·x: the lower end where g > 0, the upper end elsewhere.

        Where g = 0 and the upper end is infinite, the coordinate stays at the start.
        """
        return np.where(g > 0, self.lower, np.where((g == 0) & np.isinf(self.upper), self.start(), self.upper))

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym: exact for diagonal Q and up to 12 dimensions, else an upper bound.

        The bound is min(sum |Q_ij| D_i D_j, n lmax(DQD)), with D the widths.
        """
        if not self._bounded:
            live = psd.diagonal(Q, self.dim) > 0
            return math.inf if np.isinf(self._widths[live]).any() else self._reduced(Q, live)
        if Q.ndim < 2:
            return float(Q.dot(self._square_widths)) if Q.ndim else float(Q) * float(self._square_widths.sum())
        scaled = psd.congruence(Q, self._widths)
        if self.dim <= _ENUMERATE:
            S = _corners(self.dim)
            return max(float(((S @ scaled) * S).sum(axis=1).max()), 0.0)
        return min(float(np.abs(scaled).sum()), self.dim * psd.largest(scaled))

    def _reduced(self, Q: PSD, live: NDArray[np.bool_]) -> float:
        """Return sq_diameter over the coordinates on which Q has weight, all of them bounded."""
        if not live.any():
            return 0.0
        part = Q if Q.ndim == 0 else (Q[live] if Q.ndim == 1 else Q[np.ix_(live, live)])
        return Box(self.lower[live], self.upper[live]).sq_diameter(part)

    def widths(self) -> Vector:
        """Return the widths upper - lower."""
        return self._widths

    def is_exact(self, what: Quantity) -> bool:
        """Return True except for `sq_diameter` of a full matrix beyond 12 dimensions, which is NP-hard to compute."""
        return what != "full" or self.dim <= _ENUMERATE

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the lower and the upper bounds."""
        return self.lower, self.upper

    def start(self) -> Vector:
        """Return the centre of the box; with an infinite side, 0 clipped into the box.

        >>> Box(0, np.inf, dim=2).start()
        array([0., 0.])
        """
        if self._bounded:
            return self.lower + self._widths / 2
        return np.minimum(np.maximum(np.zeros(self.dim), self.lower), self.upper)

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if lower <= x <= upper up to the tolerance."""
        tol = atol * self._sizes
        return bool(np.all(x >= self.lower - tol) and np.all(x <= self.upper + tol))

    def violation(self, x: Vector) -> float:
        """Return the largest step beyond a bound, relative to the size of that coordinate's bounds.

        >>> Box(0, 1).violation(np.array([1.5]))
        0.3333333333333333
        """
        size = np.maximum(np.where(np.isfinite(self.lower), np.abs(self.lower), 0.0), np.abs(x))
        size = np.maximum(size, np.where(np.isfinite(self.upper), np.abs(self.upper), 0.0))
        return worst_excess(np.maximum(self.lower - x, x - self.upper), size)

    @cached_property
    def _sizes(self) -> Vector:
        """Return 1 + the largest absolute value of each coordinate's finite bounds."""
        ends = np.abs([self.lower, self.upper])
        return np.asarray(1.0 + np.where(np.isfinite(ends), ends, 0.0).max(axis=0))

    def tangent(self, g: Vector) -> Vector:
        """Return g with 0 at the coordinates that cannot move."""
        return g if self._pinned is None else np.where(self._pinned, 0.0, g)

    def gamma(self) -> float:
        """Return 1."""
        return 1.0

    def diagonal_optimum(self, G: Vector) -> PostHoc:
        """Return the best diagonal, with the bound sqrt 2 sum D_i sqrt(G_i).

        >>> round(Box(0, 1, dim=2).diagonal_optimum(np.array([1.0, 4.0])).value, 4)
        4.2426
        """
        D = self._widths
        Q = np.divide(np.sqrt(2 * G), D, out=np.zeros_like(G), where=(D > 0) & np.isfinite(D))
        return PostHoc(ROOT2 * axis_sum(D, G), Q, True)

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """Return the best full matrix: the best diagonal if GG is diagonal, else by a program."""
        if GG is not None and not np.any(GG - np.diag(np.diagonal(GG))):
            return self.diagonal_optimum(G)
        return super().full_optimum(G, GG, program)

    def quadratically_convex(self) -> bool:
        """Return True: boxes are quadratically convex."""
        return True

    def penalty_growth(self) -> float:
        """Return 1: the penalties of a box add up over coordinates."""
        return 1.0

    def beta(self) -> float:
        """Return 1: a box is its own inner box."""
        return 1.0

    def inner_box(self) -> Box:
        """Return the box itself."""
        return self

    def outer_box(self) -> Box:
        """Return the box itself."""
        return self

    def conic(self) -> Conic:
        """Return the finite bounds as linear rows."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        eye = np.eye(self.dim)
        up, down = np.isfinite(self.upper), np.isfinite(self.lower)
        C = np.vstack((eye[up], -eye[down]))
        return Conic.polyhedron(self.dim, (C, np.concatenate((self.upper[up], -self.lower[down]))))


def inscribed(center: Vector, outer: ConvexSet, beta: float) -> Box:
    """Return the box around `center` with the widths of `outer` divided by beta.

    >>> inscribed(np.zeros(2), Box(-1, 1, dim=2), 2.0).widths()
    array([1., 1.])
    """
    half = outer.widths() / (2 * beta)
    return Box(center - half, center + half)
