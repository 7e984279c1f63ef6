"""Intersections of a set and a box: a closed form where the set allows one, a solver elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.sets import multiplier, ranges
from ftprl.sets.balls import l1_separable
from ftprl.sets.base import ConvexSet, Frozen, Quantity, require_same_dim, require_sets
from ftprl.sets.box import Box
from ftprl.sets.lp import lp_ball
from ftprl.sets.norm_ball import NormBall
from ftprl.sets.polytope import Halfspace
from ftprl.sets.simplex import Shares
from ftprl.solver import Conic, Solution, furthest, interior_point, linear_program, minimise_conic, pull_inside

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class Intersection(Frozen, ConvexSet):
    """The intersection {x in inner : lower <= x <= upper}.

    Balls, simplices and half-spaces have closed forms for diagonal H; other sets need a solver.

    >>> from ftprl.sets import Simplex
    >>> Intersection(Simplex(2), Box(0.25, 1.0, dim=2)).vertex(np.array([1.0, 2.0]))
    array([0.75, 0.25])
    """

    def __init__(self, inner: ConvexSet, box: Box) -> None:
        require_sets("Intersection", inner)
        check.instance("the second part of an Intersection", box, Box)
        require_same_dim("Intersection", inner.dim, box.dim)
        self.inner, self.box = inner, box
        ranges = np.minimum(inner.widths(), box.widths())
        if not np.isfinite(ranges).all() or (isinstance(inner, Halfspace) and not np.isfinite(box.widths()).all()):
            raise InvalidInput(
                "Intersection needs a bounded set, got an infinite side on both parts; give the box finite bounds."
            )
        self._closed = self._closed_form()
        self._anchor = self._find_anchor()

    def __repr__(self) -> str:
        return f"Intersection({self.inner!r}, {self.box!r})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return self.box.dim

    def _closed_form(self) -> Callable[[Vector, Vector, Vector], Vector] | None:
        """Return the function that minimises with one Lagrange multiplier and a clip, or None if a solver is needed."""
        inner, lo, hi = self.inner, self.box.lower, self.box.upper
        if isinstance(inner, Shares):
            low, high = np.maximum(lo, 0.0), np.minimum(hi, inner.cap)
            ones = np.ones(self.dim)
            return lambda lam, z, near: multiplier.knapsack(lam, z, ones, low, high, inner.total, near, equality=True)
        if isinstance(inner, Halfspace):
            return lambda lam, z, near: multiplier.knapsack(lam, z, inner.a, lo, hi, inner.b, near, equality=False)
        if isinstance(inner, Box):
            low, high = np.maximum(lo, inner.lower), np.minimum(hi, inner.upper)
            return lambda lam, z, near: multiplier.box(lam, z, low, high, near)
        if isinstance(inner, NormBall):
            c, r, p = inner.center, inner.radius, inner.p
            low, high = lo - c, hi - c

            def ball(lam: Vector, z: Vector, near: Vector) -> Vector:
                z, near = z + lam * c, near - c
                if p == 1.0:
                    return c + l1_separable(lam, z, r, low, high, near)
                if math.isinf(p):
                    return c + multiplier.box(lam, z, np.maximum(low, -r), np.minimum(high, r), near)
                return c + lp_ball(p, lam, z, r, low, high, near)

            return ball
        return None

    def _find_anchor(self) -> Vector:
        """Return a point of F; raises InvalidInput if the intersection is empty."""
        inner, lo, hi = self.inner, self.box.lower, self.box.upper
        if self._closed is None:
            return self._inner_point()
        clipped = np.minimum(np.maximum(inner.start(), lo), hi)
        if inner.contains(clipped, 1e-12):
            return clipped
        x = clipped
        if isinstance(inner, Shares):
            low, high = np.maximum(lo, 0.0), np.minimum(hi, inner.cap)
            if (
                np.all(low <= high)
                and low.sum() <= inner.total * (1 + 1e-12)
                and high.sum() >= inner.total * (1 - 1e-12)
            ):
                x = multiplier.with_sum(np.ones(self.dim), -clipped, low, high, inner.total, clipped)
        elif isinstance(inner, Halfspace):
            x = self.box.vertex(inner.a)
        if not (inner.contains(x, 1e-8) and self.box.contains(x, 1e-8)):
            raise InvalidInput(
                f"Intersection needs a point in both sets, got none in {self.inner!r} and {self.box!r}; widen the box."
            )
        return x

    def _inner_point(self) -> Vector:
        """Return a point well inside F by a solver, in units of the sizes of both parts."""
        ends = zip(self.inner.bounds(), self.box.bounds(), strict=True)
        low, high = (pick(a, b) for pick, (a, b) in zip((np.maximum, np.minimum), ends, strict=True))
        wide = high - low
        if np.any(wide < 0):
            raise InvalidInput(
                f"Intersection needs a point in both sets, got none in {self.inner!r} and {self.box!r}; widen the box."
            )
        unit = np.where(wide > 0, wide, float(np.abs(wide).max()) or 1.0)
        return low + wide / 2 + unit * interior_point(self._conic.rescale(low + wide / 2, unit))

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x."""
        return self.minimise(H, z, near).x

    def closed_form(self, H: PSD) -> bool:
        """Return True for scalar and diagonal H if one Lagrange multiplier solves the set."""
        return self._closed is not None and H.ndim < 2

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x by one Lagrange multiplier where `closed_form` holds, by a conic solver elsewhere."""
        if self._closed is not None and self.closed_form(H):
            x = self._closed(np.broadcast_to(H, z.shape), z, near)
            if self.violation(x) > 1e-15:
                x = pull_inside(self, x)
            return Solution(x, self.gap(H, z, x))
        return minimise_conic(self, H, z, near)

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser over F of g·x: by one multiplier, a linear program, or a conic program."""
        if self._closed is not None:
            return self._closed(np.zeros(self.dim), g, self._anchor)
        conic = self._conic
        if conic.polyhedral:
            return linear_program(g, conic.C, conic.d, conic.A, conic.b)[1]
        return minimise_conic(self, psd.zero(), g, self._anchor).x

    @cached_property
    def _bounds(self) -> tuple[Vector, Vector]:
        if self._closed is not None:
            low, high = self._range()
        else:
            low, high = self.inner.bounds() if self._curved else super()._bounds
        return check.frozen(np.maximum(low, self.box.lower)), check.frozen(np.minimum(high, self.box.upper))

    def _range(self) -> tuple[Vector, Vector]:
        """Return the range of each coordinate by a formula, for sets that one Lagrange multiplier solves."""
        inner, lo, hi = self.inner, self.box.lower, self.box.upper
        if isinstance(inner, Shares):
            return ranges.with_sum(np.maximum(lo, 0.0), np.minimum(hi, inner.cap), inner.total)
        if isinstance(inner, Halfspace):
            return ranges.half_space(inner.a, inner.b, lo, hi)
        if isinstance(inner, NormBall):
            low, high = ranges.ball(inner.p, inner.radius, lo - inner.center, hi - inner.center)
            return inner.center + low, inner.center + high
        return inner.bounds()

    @cached_property
    def _start(self) -> Vector:
        """Return a point away from all sides, between a known point of F and the middle of the ranges."""
        if self._closed is None:
            return super()._start
        low, high = self._bounds
        middle = low + (high - low) / 2
        if isinstance(self.inner, Shares):
            width = float((high - low).sum())
            share = (self.inner.total - float(low.sum())) / width if width > 0 else 0.0
            return self._onto(low + min(max(share, 0.0), 1.0) * (high - low))
        if self.inner.contains(middle, 0.0):
            return middle
        share = furthest(lambda s: self.inner.contains(self._anchor + s * (middle - self._anchor), 0.0))
        return self._anchor + share / 2 * (middle - self._anchor)

    def _onto(self, x: Vector) -> Vector:
        """Return x moved so that its sum is the total up to rounding."""
        low, high = self._bounds
        assert isinstance(self.inner, Shares)
        return multiplier.with_sum(np.ones(self.dim), -x, low, high, self.inner.total, x)

    @cached_property
    def _curved(self) -> bool:
        """Return True if only a conic solver can minimise over F; the bounds are then those of the two parts."""
        return self._closed is None and not self._conic.polyhedral

    def widths(self) -> Vector:
        """Return the range of each coordinate: by a formula if one multiplier solves the set, else by 2n calls of
        `vertex`.
        """
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        low, high = self._bounds
        return check.frozen(np.maximum(high - low, 0.0))

    def start(self) -> Vector:
        """Return a point well inside: by a formula if one multiplier solves the set, else a mean of extreme points."""
        return self._anchor.copy() if self._curved else super().start()

    def diameter(self) -> float:
        """Return the smallest of three upper bounds: both parts' diameters and sqrt(sum D²)."""
        return min(self.inner.diameter(), self.box.diameter(), super().diameter())

    def sq_diameter(self, Q: PSD) -> float:
        """Return the smallest of the available upper bounds on max xᵀQx over Fsym."""
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        return min(self.inner.sq_diameter(Q), self.box.sq_diameter(Q), super().sq_diameter(Q))

    def is_exact(self, what: Quantity) -> bool:
        """Return True for widths if they come from vertices, False otherwise."""
        return what == "widths" and not self._curved

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if x lies in both parts."""
        return self.box.contains(x, atol) and self.inner.contains(x, atol)

    def violation(self, x: Vector) -> float:
        """Return the larger of the two parts' violations."""
        return max(self.box.violation(x), self.inner.violation(x))

    def tangent(self, g: Vector) -> Vector:
        """Return the part of g that distinguishes points of both parts."""
        return self.box.tangent(self.inner.tangent(g))

    def conic(self) -> Conic:
        """Return the rows and cones of both parts."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return Conic.join([self.inner.conic(), self.box.conic()], [0, 0], self.dim)
