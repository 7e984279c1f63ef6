"""Sets described by a linear oracle alone, which returns the best point for a slope."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.sets.base import ConvexSet, scaled_tolerance
from ftprl.solver import Solution, minimise_by_vertices

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


class OracleSet(ConvexSet):
    """A bounded set that needs only `dim` and `vertex`; its steps are taken by Frank-Wolfe.

    Every step is a mixture of points that `vertex` returned, so it lies in the set; its gap is measured and part of the
    certificate. On a polytope a step ends at the minimum, on a curved set after at most `max_steps` vertices.

    >>> class Triangle(OracleSet):
    ...     dim = 2
    ...
    ...     def vertex(self, g):
    ...         return np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])[np.argmin([0.0, g[0], g[1]])]
    >>> Triangle().argmin(np.array(1.0), np.array([-1.0, -0.6]), np.zeros(2))
    array([0.7, 0.3])
    """

    max_steps: int = 200

    @abstractmethod
    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser over F of g·x, exact up to rounding."""

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x, up to the gap that `minimise` measures."""
        return self.minimise(H, z, near).x

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x: one vertex for H = 0, else a closed form if the set has one, or Frank-Wolfe from
        `near`.
        """
        if H.any():
            x = self._closed(H, z, near)
            if x is not None:
                return Solution(x, self.gap(H, z, x))
            return minimise_by_vertices(self.vertex, H, z, near, self._size(H, z, near), self.max_steps)
        corner = self.vertex(z)
        won = float(z.dot(near - corner))
        return Solution(corner, 0.0) if won > 0 else Solution(near.copy(), 0.0)

    def _closed(self, H: PSD, z: Vector, near: Vector) -> Vector | None:
        """Return the minimiser by a formula, or None if there is no formula for such an H."""
        return None

    def _size(self, H: PSD, z: Vector, near: Vector) -> float:
        """Return the size of the objective over F, measured from `near`, with the rounding at `near` added."""
        D, weights = self.widths(), np.abs(H)
        slope = np.abs(psd.apply(H, near) + z)
        return float(D @ (slope + psd.apply(weights, D) + 1e-2 * (np.abs(z) + psd.apply(weights, np.abs(near)))))

    @cached_property
    def _widths(self) -> Vector:
        low, high = self.bounds()
        return check.frozen(np.maximum(high - low, 0.0))

    def widths(self) -> Vector:
        """Return the range of each coordinate, by 2n calls of `vertex`."""
        return self._widths

    def distance(self, x: Vector) -> float:
        """Return a proved lower bound on the distance of x from F.

        Frank-Wolfe finds a point y of F near x; with d = y - x, no point u of F has d·u below d·x + |d|² - gap.
        """
        y = minimise_by_vertices(self.vertex, np.array(1.0), -x, self.start(), self._scale**2, self.max_steps)
        away = float(np.linalg.norm(y.x - x))
        return max(away - y.gap / away, 0.0) if away else 0.0

    @cached_property
    def _scale(self) -> float:
        low, high = self.bounds()
        return float(np.maximum(np.abs(low), np.abs(high)).max())

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return False only if x is proved to be outside by more than atol·(1 + scale)."""
        return self.distance(x) <= scaled_tolerance(atol, self._scale)

    def violation(self, x: Vector) -> float:
        """Return the proved distance to F, relative to the largest number in F."""
        return self.distance(x) / (self._scale or 1.0)
