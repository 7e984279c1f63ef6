"""Ellipsoids, with or without axes along the coordinates."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, programs, psd
from ftprl.sets import multiplier
from ftprl.sets.balls import L2Ball
from ftprl.sets.base import ConvexSet, Frozen, Quantity, checked_center, scaled_tolerance
from ftprl.sets.box import Box, inscribed
from ftprl.sets.hindsight import ROOT2, PostHoc, in_units, on_live_coordinates
from ftprl.sets.lp import p_norm
from ftprl.sets.norm_ball import lp_conic, lp_vertex
from ftprl.solver import Conic, Solution, keep_near

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class Ellipsoid(Frozen, ConvexSet):
    """The ellipsoid {x : |A(x - center)|₂ <= 1} of a square, invertible A.

    >>> Ellipsoid(np.diag([1.0, 2.0])).widths()
    array([2., 1.])
    """

    def __init__(self, A: ArrayLike, center: ArrayLike | None = None) -> None:
        self.A, self._inverse = check.invertible("A", A)
        self.center = checked_center(center, len(self.A))
        self._ball = L2Ball(len(self.A))
        self.axis_aligned = bool(np.count_nonzero(self.A - np.diag(np.diagonal(self.A))) == 0)

    def __repr__(self) -> str:
        return f"Ellipsoid(dim={self.dim})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return len(self.center)

    def hat(self, Q: PSD) -> PSD:
        """Return A^{-T} Q A^{-1}, the matrix Q in the coordinates of the unit ball."""
        return psd.congruence(Q, np.diagonal(self._inverse) if self.axis_aligned else self._inverse)

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x, computed on the unit ball in the coordinates A(x - center)."""
        return self.minimise(H, z, near).x

    def _by_ball(self, H: PSD, z: Vector, near: Vector) -> Vector:
        pull = z + psd.apply(H, self.center)
        hat = self._ball.argmin(self.hat(H), self._inverse.T @ pull, self.A @ (near - self.center))
        x = self.center + self._inverse @ hat
        return self._inside(x if psd.definite(H) else keep_near(self, H, z, x, near))

    @cached_property
    def _axes(self) -> tuple[Vector, Vector]:
        """Return the axes of the ellipsoid, one per column, and half their lengths."""
        U, s, _ = np.linalg.svd(self._inverse)
        return U, s

    def _along_axes(self, q: float, z: Vector) -> Solution:
        """Minimise ½ q |x|² + z·x for q > 0 in O(n²), given the axes: along them the problem is separable.

        The gap costs O(n), since the slope is known along the axes; the rounding of the two rotations is added to it.
        """
        U, s = self._axes
        pull = z + q * self.center if self.center.any() else z
        turned = pull @ U
        u = multiplier.l2_ball(q * s * s, s * turned, 1.0, np.zeros_like(s))
        x = self._inside(self.center + U @ (s * u))
        away = x - self.center
        inner = float((q * away + pull) @ away)
        reach = float(np.linalg.norm(s * (q * s * u + turned)))
        lost = 1e-15 * float((q * np.abs(away) + np.abs(pull)) @ self._reach)
        return Solution(x, max(inner + reach, 0.0) + lost)

    def _inside(self, x: Vector) -> Vector:
        """Return x, moved towards the centre if rounding (of long axes beside short ones) left it outside."""
        for extra in (0.0, *10.0 ** np.arange(-15, -3)):  # the longer the axes, the larger the rounding of x itself
            size = float(np.linalg.norm(self.A @ (x - self.center)))
            if size <= 1.0:
                break
            x = self.center + (x - self.center) * ((1.0 - extra) / size)
        return x

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x in closed form and measure its gap."""
        if H.ndim == 0 and H > 0 and not self.axis_aligned:
            return self._along_axes(float(H), z)
        x = self._by_ball(H, z, near)
        return Solution(x, self.gap(H, z, x))

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return slope·(x - center) + |A^{-T} slope|₂, rounded up because long axes beside short ones lose digits.

        >>> Ellipsoid(np.eye(2)).gap(np.array(1.0), np.array([-2.0, 0.0]), np.array([1.0, 0.0])) < 1e-12
        True
        """
        slope = psd.apply(H, x) + z
        reach = float(np.linalg.norm(self._inverse.T @ slope))
        lost = 1e-15 * float(np.abs(slope) @ self._reach)
        return max(float(slope.dot(x - self.center)) + reach, 0.0) + lost

    @cached_property
    def _reach(self) -> Vector:
        """Return the largest value of each coordinate of A^{-1}u before terms cancel: the row sums of |A^{-1}|."""
        return np.asarray(np.abs(self._inverse).sum(axis=1))

    def violation(self, x: Vector) -> float:
        """Return by how much |A(x - center)|₂ exceeds 1, relative to the numbers it is computed from."""
        over = float(np.linalg.norm(self.A @ (x - self.center))) - 1.0
        return max(over, 0.0) / (1.0 + float(np.linalg.norm(np.abs(self.A) @ (np.abs(x) + np.abs(self.center)))))

    def vertex(self, g: Vector) -> Vector:
        """Return the minimiser of g·x: center - (A'A)^{-1} g / sqrt(g'(A'A)^{-1}g)."""
        return self.center + self._inverse @ lp_vertex(2.0, self._inverse.T @ g)

    def widths(self) -> Vector:
        """Return the widths: twice the square roots of the diagonal of (A'A)^{-1}."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(np.array([2 * p_norm(row, 2.0) for row in self._inverse]))

    def diameter(self) -> float:
        """Return 2 divided by the smallest singular value of A.

        >>> Ellipsoid(np.diag([1.0, 4.0])).diameter()
        2.0
        """
        return 2 * float(self._axes[1][0])

    def sq_diameter(self, Q: PSD) -> float:
        """Return 4 lmax(A^{-T} Q A^{-1}), which is exact."""
        return float(Q) * self.diameter() ** 2 if Q.ndim == 0 else 4 * psd.largest(self.hat(Q))

    def is_exact(self, what: Quantity) -> bool:
        """Return True: every quantity of this set is exact."""
        return True

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the centre minus and plus half the widths."""
        half = self.widths() / 2
        return self.center - half, self.center + half

    def start(self) -> Vector:
        """Return the centre."""
        return self.center.copy()

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if |A(x - center)|₂ <= 1 up to the tolerance."""
        return float(np.linalg.norm(self.A @ (x - self.center))) <= 1.0 + scaled_tolerance(atol, 1.0)

    def beta(self) -> float | None:
        """Return sqrt(n) if the axes lie along the coordinates, None otherwise."""
        return math.sqrt(self.dim) if self.axis_aligned else None

    def inner_box(self) -> Box | None:
        """Return the inscribed box if the axes lie along the coordinates, None otherwise."""
        return inscribed(self.center, self, math.sqrt(self.dim)) if self.axis_aligned else None

    def diagonal_optimum(self, G: Vector) -> PostHoc | None:
        """Return the best diagonal by formula if the axes lie along the coordinates, None otherwise.

        Its bound is 2 sqrt 2 sqrt(sum a_i² G_i), with a_i the half-axes.
        """
        if not self.axis_aligned:
            return None
        a = np.diagonal(self.A)
        size = p_norm(np.sqrt(G) / a, 2.0)
        return PostHoc(2 * ROOT2 * size, size / ROOT2 * a * a, True)

    def diagonal_program(self, G: Vector) -> PostHoc:
        """Return the best diagonal by a semidefinite program."""
        live = G > 0
        half = self.widths()[live] / 2  # in units of the half widths
        rows = self._inverse[live] / half[:, None]
        shape = np.asarray(np.linalg.inv(rows @ rows.T), dtype=np.float64)
        return on_live_coordinates(G, in_units(half, G[live], lambda H: programs.diagonal_on_ellipsoid(shape, H)))

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """Return the best full matrix, a multiple of A'A with the bound 2 sqrt 2 sqrt(tr A^{-T} GG A^{-1})."""
        if self.axis_aligned:
            return self.diagonal_optimum(G)
        if GG is None:
            return None
        top = float(np.abs(GG).max())  # squares of gradients and of lengths may both be near the end of the range
        size = math.sqrt(top) * math.sqrt(float(np.trace(self.hat(GG / top))))
        return PostHoc(2 * ROOT2 * size, size / ROOT2 * self.A.T @ self.A, True)

    def quadratically_convex(self) -> bool:
        """Return True if the axes lie along the coordinates."""
        return self.axis_aligned

    def penalty_growth(self) -> float | None:
        """Return 1 if the axes lie along the coordinates, None otherwise."""
        return 1.0 if self.axis_aligned else None

    def conic(self) -> Conic:
        """Return the ellipsoid as one second-order cone."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return lp_conic(self.dim, 2.0, 1.0).substitute(self.A, self.A @ self.center)
