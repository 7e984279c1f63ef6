"""Norm balls and ellipsoids."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, programs, psd
from ftprl.errors import InvalidInput
from ftprl.sets import multiplier
from ftprl.sets.base import ConvexSet, Frozen, MixedSet, Quantity, checked_center, scaled_tolerance
from ftprl.sets.box import Box, inscribed
from ftprl.sets.hindsight import ROOT2, PostHoc, on_live_coordinates
from ftprl.sets.lp import lp_ball, p_norm, shrink
from ftprl.solver import Conic, Solution, keep_near, minimise_conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


def dual_exponent(p: float) -> float:
    """p* = p/(p-1), with 1 <-> inf."""
    if p == 1.0:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1.0)


def lp_vertex(p: float, g: Vector) -> Vector:
    """The minimiser of g·x over the unit L_p ball; 0 for g = 0."""
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
    """{x : |x - center|_p <= radius}: what the balls share."""

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
        """The number of coordinates."""
        return len(self.center)

    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        if not self._moved:
            return self._around_origin(H, z, near)
        return self.center + self._around_origin(H, z + H * self.center, near - self.center)

    def _around_origin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        lam = np.broadcast_to(H, z.shape)
        return lp_ball(self.p, lam, z, self.radius, None, None, near)

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Exact for diagonal H around the origin: the penalty only shortens z (signs are those of -z)."""
        if H.ndim == 2 or self._moved:
            return minimise_conic(self, H, z, near, l1)
        soft = np.sign(z) * np.maximum(np.abs(z) - l1, 0.0)
        # z·u + l1 |u| >= soft·u for every u, with equality at x: the gap of the shortened z is one of the whole.
        x = self._around_origin(H, soft, np.zeros_like(near) if l1 else near)
        return Solution(x, self.gap(H, soft, x))

    def vertex(self, g: Vector) -> Vector:
        """center - radius · (the dual direction of g)."""
        return self.center + self.radius * lp_vertex(self.p, g)

    def widths(self) -> Vector:
        """2 radius, on every axis."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(np.full(self.dim, 2 * self.radius))

    def diameter(self) -> float:
        """2 r, and 2 r n^{1/2-1/p} for p > 2."""
        return 2 * self.radius * float(self.dim ** max(0.0, 0.5 - 1.0 / self.p))

    def bounds(self) -> tuple[Vector, Vector]:
        """center ∓ radius."""
        return self.center - self.radius, self.center + self.radius

    def start(self) -> Vector:
        """The centre."""
        return self.center.copy()

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """|x - center|_p <= radius."""
        reach = float(np.abs(self.center).max())
        return p_norm(x - self.center, self.p) <= self.radius + scaled_tolerance(atol, self.radius + reach)

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """slope·(x - center) + r |slope|_{p*}."""
        slope = psd.apply(H, x) + z
        reach = math.sqrt(slope.dot(slope)) if self.p == 2.0 else p_norm(slope, dual_exponent(self.p))
        return max(float(slope.dot(x - self.center if self._moved else x)) + self.radius * reach, 0.0)

    def violation(self, x: Vector) -> float:
        """|x - center|_p beyond the radius, relative to both."""
        over = p_norm(x - self.center, self.p) - self.radius
        return max(over, 0.0) / (self.radius + p_norm(self.center, self.p))

    def gamma(self) -> float:
        """n^{2/p} for p >= 2, n below."""
        return float(self.dim ** min(1.0, 2.0 / self.p))

    def beta(self) -> float:
        """n^{1/p}."""
        return float(self.dim ** (1.0 / self.p))

    def inner_box(self) -> Box:
        """The cube of half-width r n^{-1/p}."""
        return inscribed(self.center, self, self.beta())

    def is_exact(self, what: Quantity) -> bool:
        """All but sq_diameter of a full matrix."""
        return what != "full"

    def sq_diameter(self, Q: PSD) -> float:
        """4 r² |diag|_q with q = p/(p-2) for p > 2, 4 r² max for p <= 2; for a full Q an upper bound."""
        four = 4 * self.radius**2
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        if self.p <= 2:
            return four * psd.largest(Q)
        q = self.p / (self.p - 2.0) if math.isfinite(self.p) else 1.0
        if Q.ndim == 1:
            return four * p_norm(Q, q)
        # A diagonal that dominates Q, or the ball around F: both are above the maximum.
        rows = four * p_norm(np.abs(Q).sum(axis=1), q)
        return min(rows, psd.largest(Q) * self.diameter() ** 2)

    def diagonal_optimum(self, G: Vector) -> PostHoc:
        """2 sqrt 2 r |sqrt G|_{p*}, with p* = 2 for p <= 2."""
        return ball_optimum(self.p, self.radius, G)

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """The best constant for p = 2, which no full matrix beats; else by program."""
        return ball_optimum(2.0, self.radius, G) if self.p == 2.0 else super().full_optimum(G, GG, program)

    def extreme_differences(self) -> Vector | None:
        """2 r e_i for p = 1."""
        return 2 * self.radius * np.eye(self.dim) if self.p == 1.0 else super().extreme_differences()

    def quadratically_convex(self) -> bool:
        """For p >= 2."""
        return self.p >= 2

    def penalty_growth(self) -> float:
        """1 for p <= 2, n^{2/p} above."""
        return 1.0 if self.p <= 2 else float(self.dim) ** (2 / self.p)

    def conic(self) -> Conic:
        """The ball for a conic solver."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return lp_conic(self.dim, self.p, self.radius).substitute(np.eye(self.dim), self.center)


def ball_optimum(p: float, r: float, G: Vector) -> PostHoc:
    """The best diagonal on the L_p ball of radius r: constant for p <= 2."""
    total = float(G.sum())
    if p <= 2:
        return PostHoc(2 * ROOT2 * r * math.sqrt(total), np.full_like(G, math.sqrt(total / 2) / r), True)
    q = p / (p - 2) if math.isfinite(p) else 1.0
    S = float((G ** (q / (q + 1))).sum())
    Q = G ** (1 / (q + 1)) * (S ** ((q - 1) / (2 * q)) / (ROOT2 * r)) if S else np.zeros_like(G)
    return PostHoc(2 * ROOT2 * r * p_norm(np.sqrt(G), dual_exponent(p)), Q, True)


def lp_conic(n: int, p: float, radius: float) -> Conic:
    """|x|_p <= radius: rows for p = 1, inf; a second-order cone for 2; n power cones else."""
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


@final
class LpBall(NormBall):
    """{x : |x - center|_p <= radius} for 1 <= p <= inf.

    >>> LpBall(2, p=4).gamma() == 2 ** 0.5
    True
    """

    def __init__(self, dim: int, p: float, radius: float = 1.0, center: ArrayLike | None = None) -> None:
        if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating) or not p >= 1:
            raise InvalidInput(f"LpBall needs 1 <= p <= inf, got p={p!r}; below 1 the ball is not convex.")
        super().__init__(dim, radius, center)
        self.p = float(p)
        special: dict[float, NormBall] = {}
        if self.p in (1.0, 2.0):
            special = {1.0: L1Ball(dim, radius, center), 2.0: L2Ball(dim, radius, center)}
        self._twin = special.get(self.p)

    def __repr__(self) -> str:
        return f"LpBall(dim={self.dim}, p={self.p:g}, radius={self.radius:g})"

    def _around_origin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        if self._twin is not None:
            return self._twin._around_origin(H, z, near)
        if math.isinf(self.p):
            r = np.full(self.dim, self.radius)
            return multiplier.box(np.broadcast_to(H, z.shape), z, -r, r, near)
        return super()._around_origin(H, z, near)

    def closed_form(self, H: PSD) -> bool:
        """For scalar and diagonal H, and for every H when p = 2."""
        return H.ndim < 2 or self.p == 2.0

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """As L1Ball and L2Ball for p = 1 and 2; power cones for a full H otherwise."""
        return self._twin.minimise(H, z, near) if self._twin is not None else super().minimise(H, z, near)

    def minimise_low_rank(self, H: psd.LowRank, z: Vector, near: Vector) -> Solution:
        """As L2Ball for p = 2."""
        twin = self._twin
        return super().minimise_low_rank(H, z, near) if twin is None else twin.minimise_low_rank(H, z, near)

    def sq_diameter_low_rank(self, Q: psd.LowRank) -> float:
        """As L2Ball for p = 2."""
        return super().sq_diameter_low_rank(Q) if self._twin is None else self._twin.sq_diameter_low_rank(Q)

    def sq_diameter(self, Q: PSD) -> float:
        """Exact for diagonal Q; for a full Q exact for p = 1 and 2, an upper bound otherwise."""
        return self._twin.sq_diameter(Q) if self._twin is not None else super().sq_diameter(Q)

    def is_exact(self, what: Quantity) -> bool:
        """All but sq_diameter of a full matrix for p other than 1 and 2."""
        return what != "full" or self._twin is not None


@final
class L2Ball(NormBall):
    """{x : |x - center|₂ <= radius}.

    >>> L2Ball(2).argmin(np.array(1.0), np.array([-3.0, -4.0]), np.zeros(2))
    array([0.6, 0.8])
    """

    p = 2.0

    def __init__(self, dim: int, radius: float = 1.0, center: ArrayLike | None = None) -> None:
        super().__init__(dim, radius, center)

    def _around_origin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        if H.ndim == 1:
            return multiplier.l2_ball(H, z, self.radius, near)
        size = float(np.linalg.norm(z))
        if size > float(H) * self.radius:
            return z * (-self.radius / size)
        return -z / H if H else shrink(near, self.radius, 2.0)

    def closed_form(self, H: PSD) -> bool:
        """For every H."""
        return True

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Closed form for every H: a full one is diagonal in its eigenvectors."""
        if H.ndim < 2:
            return super().minimise(H, z, near)
        w, V = psd.eigh(H)
        c = self.center
        turned = multiplier.l2_ball(w, _clean(w, V.T @ (z + H @ c), z), self.radius, V.T @ (near - c))
        x = c + shrink(V @ turned, self.radius, 2.0)
        return Solution(x, self.gap(H, z, x))

    def minimise_low_rank(self, H: psd.LowRank, z: Vector, near: Vector) -> Solution:
        """The same along the directions of H and along what they leave of z, where its weight is one number."""
        c = self.center
        pull, away = z + H.apply(c) if self._moved else z, near - c if self._moved else near
        w, W = (H.M, None) if H.M.ndim == 1 else np.linalg.eigh(H.M)
        (h, rest), (there, beside) = (_split(H.B, W, v) for v in (pull, away))
        lam = np.append(np.maximum(w + H.shift, 0.0), H.shift)
        size = float(np.linalg.norm(rest))
        turned = _clean(lam, np.append(h, size), z)
        line = rest / size if turned[-1] else _direction(beside)
        x = multiplier.l2_ball(lam, turned, self.radius, np.append(there, line @ beside))
        y = H.B @ (x[:-1] if W is None else W @ x[:-1]) + x[-1] * line
        y = c + shrink(y, self.radius, 2.0)
        slope = H.apply(y) + z
        return Solution(y, max(float(slope @ (y - c)) + self.radius * float(np.linalg.norm(slope)), 0.0))

    def sq_diameter(self, Q: PSD) -> float:
        """4 r² lmax(Q), exact."""
        return 4 * self.radius**2 * psd.largest(Q)

    def sq_diameter_low_rank(self, Q: psd.LowRank) -> float:
        """4 r² lmax(Q), exact."""
        return 4 * self.radius**2 * Q.largest()

    def is_exact(self, what: Quantity) -> bool:
        """Everything is."""
        return True


def _split(B: Vector, W: Vector | None, v: Vector) -> tuple[Vector, Vector]:
    """v along the columns of B (turned by W), and what they leave of it."""
    h = B.T @ v
    rest = v - B @ h
    if B.shape[1] < len(v):
        again = B.T @ rest
        rest -= B @ again
        h += again
    else:
        rest[:] = 0.0  # all of it is along some column
    return h if W is None else W.T @ h, rest


def _direction(v: Vector) -> Vector:
    size = float(np.linalg.norm(v))
    return v / size if size else v


def _clean(w: Vector, z: Vector, raw: Vector) -> Vector:
    """z in the eigenbasis, with what is rounding dropped where there is no weight."""
    noise = 64 * len(w) * np.finfo(float).eps * max(float(np.linalg.norm(raw)), float(np.linalg.norm(z)))
    return np.where((w == 0) & (np.abs(z) <= noise), 0.0, z)


@final
class L1Ball(NormBall):
    """{x : |x - center|₁ <= radius}."""

    p = 1.0

    def __init__(self, dim: int, radius: float = 1.0, center: ArrayLike | None = None) -> None:
        super().__init__(dim, radius, center)

    def _around_origin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        infinite = np.full(self.dim, np.inf)
        return l1_separable(np.broadcast_to(H, z.shape), z, self.radius, -infinite, infinite, near)

    def sq_diameter(self, Q: PSD) -> float:
        """4 r² max Q_ii, exact."""
        return 4 * self.radius**2 * float(psd.diagonal(Q, self.dim).max())

    def is_exact(self, what: Quantity) -> bool:
        """Everything is."""
        return True


def l1_separable(lam: Vector, z: Vector, radius: float, lo: Vector, hi: Vector, near: Vector) -> Vector:
    """|x|₁ <= radius and lo <= x <= hi: in y = |x| it is a knapsack, for each sign is known beforehand."""
    sign = np.where(lo > 0, 1.0, np.where(hi < 0, -1.0, np.where(z != 0, -np.sign(z), np.where(near < 0, -1.0, 1.0))))
    low = np.maximum(np.where(sign > 0, lo, -hi), 0.0)
    high = np.where(sign > 0, hi, -lo)
    return sign * multiplier.knapsack(lam, sign * z, np.ones_like(z), low, high, radius, np.abs(near), equality=False)


@final
class Ellipsoid(Frozen, ConvexSet):
    """{x : |A(x - center)|₂ <= 1}, A square and invertible.

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
        """The number of coordinates."""
        return len(self.center)

    def hat(self, Q: PSD) -> PSD:
        """A^{-T} Q A^{-1}: the matrix seen from the unit ball."""
        return psd.congruence(Q, np.diagonal(self._inverse) if self.axis_aligned else self._inverse)

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """The unit ball's minimiser in the coordinates A(x - center)."""
        return self.minimise(H, z, near).x

    def _by_ball(self, H: PSD, z: Vector, near: Vector) -> Vector:
        pull = z + psd.apply(H, self.center)
        hat = self._ball.argmin(self.hat(H), self._inverse.T @ pull, self.A @ (near - self.center))
        x = self.center + self._inverse @ hat
        return self._inside(x if psd.definite(H) else keep_near(self, H, z, x, near))

    @cached_property
    def _axes(self) -> tuple[Vector, Vector]:
        """The axes of the ellipsoid, one a column, and half their lengths."""
        U, s, _ = np.linalg.svd(self._inverse)
        return U, s

    def _along_axes(self, q: float, z: Vector) -> Solution:
        """Minimise ½ q |x|² + z·x, q > 0: along the axes it is separable, O(n²) once these are known.

        The slope is known along the axes, so that its length there, and with it the gap, costs O(n); what the turns
        round is added.
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
        """x, pulled towards the centre where rounding (of long axes against short ones) left it outside."""
        for extra in (0.0, *10.0 ** np.arange(-15, -3)):  # the longer the axes, the coarser x itself is
            size = float(np.linalg.norm(self.A @ (x - self.center)))
            if size <= 1.0:
                break
            x = self.center + (x - self.center) * ((1.0 - extra) / size)
        return x

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """The closed form and its measured gap."""
        if H.ndim == 0 and H > 0 and not self.axis_aligned:
            return self._along_axes(float(H), z)
        x = self._by_ball(H, z, near)
        return Solution(x, self.gap(H, z, x))

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """slope·(x - center) + |A^{-T} slope|₂, rounded up: long axes beside short ones cost digits."""
        slope = psd.apply(H, x) + z
        reach = float(np.linalg.norm(self._inverse.T @ slope))
        lost = 1e-15 * float(np.abs(slope) @ self._reach)
        return max(float(slope.dot(x - self.center)) + reach, 0.0) + lost

    @cached_property
    def _reach(self) -> Vector:
        """The most that each coordinate's part of A^{-1}u can be, before parts cancel."""
        return np.asarray(np.abs(self._inverse).sum(axis=1))

    def violation(self, x: Vector) -> float:
        """|A(x - center)|₂ beyond 1, relative to the sizes that enter it."""
        over = float(np.linalg.norm(self.A @ (x - self.center))) - 1.0
        return max(over, 0.0) / (1.0 + float(np.linalg.norm(np.abs(self.A) @ (np.abs(x) + np.abs(self.center)))))

    def vertex(self, g: Vector) -> Vector:
        """center - (A'A)^{-1} g / sqrt(g'(A'A)^{-1}g)."""
        return self.center + self._inverse @ lp_vertex(2.0, self._inverse.T @ g)

    def widths(self) -> Vector:
        """2 sqrt of the diagonal of (A'A)^{-1}."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(2 * np.linalg.norm(self._inverse, axis=1))

    def diameter(self) -> float:
        """2 over the smallest singular value of A."""
        return 2 * float(self._axes[1][0])

    def sq_diameter(self, Q: PSD) -> float:
        """4 lmax(A^{-T} Q A^{-1}), exact."""
        return float(Q) * self.diameter() ** 2 if Q.ndim == 0 else 4 * psd.largest(self.hat(Q))

    def is_exact(self, what: Quantity) -> bool:
        """Everything is."""
        return True

    def bounds(self) -> tuple[Vector, Vector]:
        """center ∓ half the widths."""
        half = self.widths() / 2
        return self.center - half, self.center + half

    def start(self) -> Vector:
        """The centre."""
        return self.center.copy()

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """|A(x - center)|₂ <= 1."""
        return float(np.linalg.norm(self.A @ (x - self.center))) <= 1.0 + scaled_tolerance(atol, 1.0)

    def beta(self) -> float | None:
        """sqrt(n) when the axes are those of the coordinates; None otherwise."""
        return math.sqrt(self.dim) if self.axis_aligned else None

    def inner_box(self) -> Box | None:
        """The inscribed box when the axes are those of the coordinates."""
        return inscribed(self.center, self, math.sqrt(self.dim)) if self.axis_aligned else None

    def diagonal_optimum(self, G: Vector) -> PostHoc | None:
        """2 sqrt 2 sqrt(sum a_i² G_i), a_i the half-axes, when these are those of the coordinates."""
        if not self.axis_aligned:
            return None
        a2 = np.diagonal(self.A) ** 2
        total = float((G / a2).sum())
        return PostHoc(2 * ROOT2 * math.sqrt(total), math.sqrt(total / 2) * a2, True)

    def diagonal_program(self, G: Vector) -> PostHoc:
        """A semidefinite program."""
        live = G > 0
        shape = np.linalg.inv(self.A.T @ self.A)[np.ix_(live, live)]
        return on_live_coordinates(G, programs.diagonal_on_ellipsoid(np.linalg.inv(shape), G[live]))

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """2 sqrt 2 sqrt(tr A^{-T} GG A^{-1}), at a multiple of A'A."""
        if self.axis_aligned:
            return self.diagonal_optimum(G)
        if GG is None:
            return None
        total = float(np.trace(self.hat(GG)))
        return PostHoc(2 * ROOT2 * math.sqrt(total), math.sqrt(total / 2) * (self.A.T @ self.A), True)

    def quadratically_convex(self) -> bool:
        """When its axes are those of the coordinates."""
        return self.axis_aligned

    def penalty_growth(self) -> float | None:
        """1 when its axes are those of the coordinates."""
        return 1.0 if self.axis_aligned else None

    def conic(self) -> Conic:
        """One second-order cone."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return lp_conic(self.dim, 2.0, 1.0).substitute(self.A, self.A @ self.center)
