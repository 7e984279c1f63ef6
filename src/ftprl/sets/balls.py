"""Balls of the L_p norms, with closed forms for p = 1 and p = 2."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import psd
from ftprl.errors import InvalidInput
from ftprl.sets import multiplier
from ftprl.sets.base import Quantity
from ftprl.sets.lp import shrink
from ftprl.sets.norm_ball import NormBall
from ftprl.solver import Solution

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class LpBall(NormBall):
    """The ball {x : |x - center|_p <= radius} for 1 <= p <= inf.

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
        """Return True for scalar and diagonal H, and for every H when p = 2."""
        return H.ndim < 2 or self.p == 2.0

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x in closed form where there is one; solve a program with power cones for other full
        matrices.
        """
        return self._twin.minimise(H, z, near) if self._twin is not None else super().minimise(H, z, near)

    def minimise_low_rank(self, H: psd.LowRank, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x for a low-rank H; p = 2 has a closed form."""
        twin = self._twin
        return super().minimise_low_rank(H, z, near) if twin is None else twin.minimise_low_rank(H, z, near)

    def sq_diameter_low_rank(self, Q: psd.LowRank) -> float:
        """Return max xᵀQx over Fsym for a low-rank Q; exact for p = 2."""
        return super().sq_diameter_low_rank(Q) if self._twin is None else self._twin.sq_diameter_low_rank(Q)

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym: exact for diagonal Q and for p = 1 and 2, else an upper bound."""
        return self._twin.sq_diameter(Q) if self._twin is not None else super().sq_diameter(Q)

    def is_exact(self, what: Quantity) -> bool:
        """Return True for every quantity except `sq_diameter` of a full matrix when p is neither 1 nor 2."""
        return what != "full" or self._twin is not None


@final
class L2Ball(NormBall):
    """The Euclidean ball {x : |x - center|₂ <= radius}.

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
        """Return True: there is a closed form for every H."""
        return True

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x in closed form; a full H is diagonal in the basis of its eigenvectors."""
        if H.ndim < 2:
            return super().minimise(H, z, near)
        w, V = psd.eigh(H)
        c = self.center
        turned = multiplier.l2_ball(w, _clean(w, V.T @ (z + H @ c), z), self.radius, V.T @ (near - c))
        x = c + shrink(V @ turned, self.radius, 2.0)
        return Solution(x, self.gap(H, z, x))

    def minimise_low_rank(self, H: psd.LowRank, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x for H = B M Bᵀ plus a multiple of I, without writing H out.

        The step separates into the directions of B and the part of z orthogonal to them, on which H acts as one number.
        """
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
        """Return 4 r² lmax(Q), which is exact."""
        return 4 * self.radius**2 * psd.largest(Q)

    def sq_diameter_low_rank(self, Q: psd.LowRank) -> float:
        """Return 4 r² lmax(Q), which is exact."""
        return 4 * self.radius**2 * Q.largest()

    def is_exact(self, what: Quantity) -> bool:
        """Return True: every quantity of this set is exact."""
        return True


def _split(B: Vector, W: Vector | None, v: Vector) -> tuple[Vector, Vector]:
    """Return the coordinates of v in the basis B (turned by W), and the part of v orthogonal to B."""
    h = B.T @ v
    rest = v - B @ h
    if B.shape[1] < len(v):
        again = B.T @ rest
        rest -= B @ again
        h += again
    else:
        rest[:] = 0.0  # g lies in the span of the columns
    return h if W is None else W.T @ h, rest


def _direction(v: Vector) -> Vector:
    """Return v scaled to length 1, or v itself if it is 0."""
    size = float(np.linalg.norm(v))
    return v / size if size else v


def _clean(w: Vector, z: Vector, raw: Vector) -> Vector:
    """Return z in the basis of eigenvectors, with entries that are only rounding set to 0 where the eigenvalue is 0."""
    noise = 64 * len(w) * np.finfo(float).eps * max(float(np.linalg.norm(raw)), float(np.linalg.norm(z)))
    return np.where((w == 0) & (np.abs(z) <= noise), 0.0, z)


@final
class L1Ball(NormBall):
    """The L_1 ball {x : |x - center|₁ <= radius}.

    >>> L1Ball(2).vertex(np.array([3.0, -4.0]))
    array([0., 1.])
    """

    p = 1.0

    def __init__(self, dim: int, radius: float = 1.0, center: ArrayLike | None = None) -> None:
        super().__init__(dim, radius, center)

    def _around_origin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        infinite = np.full(self.dim, np.inf)
        return l1_separable(np.broadcast_to(H, z.shape), z, self.radius, -infinite, infinite, near)

    def sq_diameter(self, Q: PSD) -> float:
        """Return 4 r² max Q_ii, which is exact."""
        return 4 * self.radius**2 * float(psd.diagonal(Q, self.dim).max())

    def is_exact(self, what: Quantity) -> bool:
        """Return True: every quantity of this set is exact."""
        return True


def l1_separable(lam: Vector, z: Vector, radius: float, lo: Vector, hi: Vector, near: Vector) -> Vector:
    """Minimise ½ sum lam_i x_i² + z·x subject to |x|₁ <= radius and lo <= x <= hi.

    The sign of each x_i is known beforehand, so the problem in y = |x| is a continuous knapsack.

    >>> inf = np.full(2, np.inf)
    >>> l1_separable(np.ones(2), np.array([-3.0, -1.0]), 2.0, -inf, inf, np.zeros(2))
    array([2., 0.])
    """
    sign = np.where(lo > 0, 1.0, np.where(hi < 0, -1.0, np.where(z != 0, -np.sign(z), np.where(near < 0, -1.0, 1.0))))
    low = np.maximum(np.where(sign > 0, lo, -hi), 0.0)
    high = np.where(sign > 0, hi, -lo)
    return sign * multiplier.knapsack(lam, sign * z, np.ones_like(z), low, high, radius, np.abs(near), equality=False)
