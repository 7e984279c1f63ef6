"""The base class of the L_p balls."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.sets.base import MixedSet, Quantity, checked_center, scaled_tolerance
from ftprl.sets.box import Box, inscribed
from ftprl.sets.hindsight import ROOT2, PostHoc
from ftprl.sets.lp import lp_ball, p_norm
from ftprl.solver import Conic, Solution, minimise_conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


def dual_exponent(p: float) -> float:
    """Return p* = p/(p-1), with 1 and inf exchanged.

    >>> dual_exponent(2.0), dual_exponent(1.0), dual_exponent(4.0)
    (2.0, inf, 1.3333333333333333)
    """
    if p == 1.0:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1.0)


def lp_vertex(p: float, g: Vector) -> Vector:
    """Return the minimiser of g·x over the unit L_p ball; 0 for g = 0.

    >>> lp_vertex(2.0, np.array([3.0, 4.0]))
    array([-0.6, -0.8])
    """
    size = np.abs(g)
    top = float(size.max(initial=0.0))
    if top == 0.0:
        return np.zeros_like(g)
    if p == 1.0:
        k = int(size.argmax())
        out = np.zeros_like(g)
        out[k] = -np.sign(g[k])
        return out
    if math.isinf(p):
        return -np.sign(g)
    y = (size / top) ** (dual_exponent(p) - 1.0)
    return np.asarray(-np.sign(g) * y / np.linalg.norm(y, p))


class NormBall(MixedSet):
    """The ball {x : |x - center|_p <= radius}; subclasses set p and add closed forms."""

    p: float
    radius: float
    center: Vector

    def __init__(self, dim: int, radius: float, center: ArrayLike | None) -> None:
        n = check.dimension("dim", dim)
        self.radius = check.positive("radius", radius)
        self.center = checked_center(center, n)
        self._moved = bool(np.any(self.center))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(dim={self.dim}, radius={self.radius:g})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return len(self.center)

    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        if not self._moved:
            return self._around_origin(H, z, near)
        return self.center + self._around_origin(H, z + H * self.center, near - self.center)

    def _around_origin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Minimise over the ball around 0 for scalar or diagonal H."""
        lam = np.broadcast_to(H, z.shape)
        return lp_ball(self.p, lam, z, self.radius, None, None, near)

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x + l1·|x|₁: exact for diagonal H around 0, where the penalty only shortens z."""
        if H.ndim == 2 or self._moved:
            return minimise_conic(self, H, z, near, l1)
        soft = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0)
        # z·u + l1 |u| >= soft·u for every u, with equality at x: the gap for the shortened z holds with the penalty.
        x = self._around_origin(H, soft, np.zeros_like(near) if l1 else near)
        return Solution(x, self.gap(H, soft, x))

    def vertex(self, g: Vector) -> Vector:
        """Return the minimiser of g·x: center - radius times the dual direction of g."""
        return self.center + self.radius * lp_vertex(self.p, g)

    def widths(self) -> Vector:
        """Return 2 radius for every axis."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(np.full(self.dim, 2 * self.radius))

    def diameter(self) -> float:
        """Return the Euclidean diameter: 2 r for p <= 2, 2 r n^{1/2-1/p} for p > 2."""
        return 2 * self.radius * float(self.dim ** max(0.0, 0.5 - 1.0 / self.p))

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the centre minus and plus the radius."""
        return self.center - self.radius, self.center + self.radius

    def start(self) -> Vector:
        """Return the centre."""
        return self.center.copy()

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if |x - center|_p <= radius up to the tolerance."""
        reach = float(np.abs(self.center).max())
        return p_norm(x - self.center, self.p) <= self.radius + scaled_tolerance(atol, self.radius + reach)

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return slope·(x - center) + r |slope|_{p*}."""
        slope = psd.apply(H, x) + z
        reach = math.sqrt(slope.dot(slope)) if self.p == 2.0 else p_norm(slope, dual_exponent(self.p))
        return max(float(slope.dot(x - self.center if self._moved else x)) + self.radius * reach, 0.0)

    def violation(self, x: Vector) -> float:
        """Return by how much |x - center|_p exceeds the radius, relative to radius and centre."""
        over = p_norm(x - self.center, self.p) - self.radius
        return max(over, 0.0) / (self.radius + p_norm(self.center, self.p))

    def gamma(self) -> float:
        """Return gamma: n^{2/p} for p >= 2, n for p < 2."""
        return float(self.dim ** min(1.0, 2.0 / self.p))

    def beta(self) -> float:
        """Return n^{1/p}."""
        return float(self.dim ** (1.0 / self.p))

    def inner_box(self) -> Box:
        """Return the cube of half-width r n^{-1/p}."""
        return inscribed(self.center, self, self.beta())

    def is_exact(self, what: Quantity) -> bool:
        """Return True for every quantity except `sq_diameter` of a full matrix."""
        return what != "full"

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym: exact for diagonal Q, an upper bound for a full Q.

        For a diagonal it is 4 r² |diag|_q with q = p/(p-2) for p > 2, and 4 r² max diag for p <= 2.
        """
        four = 4 * self.radius**2
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        if self.p <= 2:
            return four * psd.largest(Q)
        q = self.p / (self.p - 2.0) if math.isfinite(self.p) else 1.0
        if Q.ndim == 1:
            return four * p_norm(Q, q)
        # A diagonal that dominates Q, or the Euclidean ball around F: both give upper bounds.
        rows = four * p_norm(np.abs(Q).sum(axis=1), q)
        return min(rows, psd.largest(Q) * self.diameter() ** 2)

    def diagonal_optimum(self, G: Vector) -> PostHoc:
        """Return the best diagonal, with the bound 2 sqrt 2 r |sqrt G|_{p*}; p* counts as 2 for p <= 2."""
        return ball_optimum(self.p, self.radius, G)

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """Return the best full matrix: for p = 2 a multiple of the identity, else by a program."""
        return ball_optimum(2.0, self.radius, G) if self.p == 2.0 else super().full_optimum(G, GG, program)

    def extreme_differences(self) -> Vector | None:
        """Return the vertices of Fsym, 2 r e_i, for p = 1."""
        return 2 * self.radius * np.eye(self.dim) if self.p == 1.0 else super().extreme_differences()

    def quadratically_convex(self) -> bool:
        """Return True for p >= 2."""
        return self.p >= 2

    def penalty_growth(self) -> float:
        """Return 1 for p <= 2, n^{2/p} for p > 2."""
        return 1.0 if self.p <= 2 else float(self.dim) ** (2 / self.p)

    def conic(self) -> Conic:
        """Return the ball for a conic solver."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return lp_conic(self.dim, self.p, self.radius).substitute(np.eye(self.dim), self.center)


def ball_optimum(p: float, r: float, G: Vector) -> PostHoc:
    """Return the best diagonal on the L_p ball of radius r; it is a multiple of the identity for p <= 2."""
    total = float(G.sum())
    if p <= 2:
        return PostHoc(2 * ROOT2 * r * math.sqrt(total), np.full_like(G, math.sqrt(total / 2) / r), True)
    q = p / (p - 2) if math.isfinite(p) else 1.0
    S = float((G ** (q / (q + 1))).sum())
    Q = G ** (1 / (q + 1)) * (S ** ((q - 1) / (2 * q)) / (ROOT2 * r)) if S else np.zeros_like(G)
    return PostHoc(2 * ROOT2 * r * p_norm(np.sqrt(G), dual_exponent(p)), Q, True)


def lp_conic(n: int, p: float, radius: float) -> Conic:
    """Return |x|_p <= radius as rows for p = 1 and inf, a second-order cone for p = 2, n power cones otherwise."""
    none: tuple[Vector, Vector] = (np.zeros((0, n)), np.zeros(0))
    eye = np.eye(n)
    if math.isinf(p):
        return Conic.polyhedron(n, (np.vstack((eye, -eye)), np.full(2 * n, radius)))
    if p == 2.0:
        cone = (np.vstack((np.zeros((1, n)), -eye)), np.concatenate(([radius], np.zeros(n))))
        return Conic(n, *none, *none, soc=(cone,))
    C = np.zeros((1, 2 * n))
    C[0, n:] = 1.0
    wide = np.zeros((0, 2 * n))
    reach = np.full(n, radius)
    if p == 1.0:  # |x_i| <= y_i, sum y <= radius
        rows = np.vstack((np.hstack((eye, -eye)), np.hstack((-eye, -eye)), C))
        return Conic(n, rows, np.concatenate((np.zeros(2 * n), [radius])), wide, np.zeros(0), reach=reach)
    power = []
    for i in range(n):  # y_i^{1/p} radius^{1-1/p} >= |x_i|, sum y <= radius
        G = np.zeros((3, 2 * n))
        G[0, n + i], G[2, i] = -1.0, -1.0
        power.append((G, np.array([0.0, radius, 0.0]), 1.0 / p))
    return Conic(n, C, np.array([radius]), wide, np.zeros(0), power=tuple(power), reach=reach)
