"""Balls of the L_p norms, those of L_1 and L_2 with more closed forms."""

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
        """True: there is a closed form for every H."""
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
        """True: every quantity is exact."""
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
        """True: every quantity is exact."""
        return True


def l1_separable(lam: Vector, z: Vector, radius: float, lo: Vector, hi: Vector, near: Vector) -> Vector:
    """|x|₁ <= radius and lo <= x <= hi: in y = |x| it is a knapsack, for each sign is known beforehand."""
    sign = np.where(lo > 0, 1.0, np.where(hi < 0, -1.0, np.where(z != 0, -np.sign(z), np.where(near < 0, -1.0, 1.0))))
    low = np.maximum(np.where(sign > 0, lo, -hi), 0.0)
    high = np.where(sign > 0, hi, -lo)
    return sign * multiplier.knapsack(lam, sign * z, np.ones_like(z), low, high, radius, np.abs(near), equality=False)
