"""The permutahedron: rankings, and mixtures of the orders of given values."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.extras import extra_imports
from ftprl.sets.base import Frozen, Quantity, scaled_tolerance
from ftprl.sets.oracle import OracleSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class Permutahedron(Frozen, OracleSet):
    """The mixtures of all orders of `values`; a number n means the ranks 1, ..., n.

    With one weight for all coordinates a step is one isotonic regression; otherwise it is Frank-Wolfe.

    >>> Permutahedron(3).vertex(np.array([0.5, -1.0, 2.0]))
    array([2., 3., 1.])
    """

    def __init__(self, values: int | ArrayLike) -> None:
        if np.ndim(values) == 0:
            values = np.arange(1.0, check.dimension("values", values) + 1)  # type: ignore[arg-type]
        clean = check.vector("values", values)
        check.dimension("the number of values", len(clean))
        self.values = check.frozen(np.sort(clean)[::-1].copy())

    def __repr__(self) -> str:
        return f"Permutahedron(dim={self.dim}, from={self.values[-1]:g}, to={self.values[0]:g})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return len(self.values)

    def vertex(self, g: Vector) -> Vector:
        """Return the minimiser of g·x: the largest value where g is smallest, and so on."""
        x = np.empty(self.dim)
        x[np.argsort(g, kind="stable")] = self.values
        return x

    def _closed(self, H: PSD, z: Vector, near: Vector) -> Vector | None:
        if H.ndim == 2 or (H.ndim and float(np.ptp(H))):
            return None
        return self.nearest(-z / float(H.max()))

    def nearest(self, x: Vector) -> Vector:
        """Return the projection of x: the sorted x minus the decreasing sequence that isotonic regression finds.

        >>> Permutahedron(3).nearest(np.array([9.0, 0.0, 5.0]))
        array([3., 1., 2.])
        """
        with extra_imports:
            from scipy.optimize import isotonic_regression

        order = np.argsort(-x, kind="stable")
        s = x[order]
        blocks = isotonic_regression(s - self.values, increasing=False).blocks
        out = np.empty(self.dim)
        for a, b in pairwise(blocks):
            # Within a block x keeps its differences around the mean of the values, so no large numbers cancel.
            part = s[a:b] - s[a]
            out[order[a:b]] = part - part.mean() + self.values[a:b].mean()
        return out

    @cached_property
    def _span(self) -> float:
        return float(self.values[0] - self.values[-1])

    def widths(self) -> Vector:
        """Return the largest value minus the smallest, for every coordinate."""
        return np.full(self.dim, self._span)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the smallest and the largest value, for every coordinate."""
        return np.full(self.dim, self.values[-1]), np.full(self.dim, self.values[0])

    def start(self) -> Vector:
        """Return the mean of the values, for every coordinate."""
        return np.full(self.dim, float(self.values.mean()))

    def tangent(self, g: Vector) -> Vector:
        """Return g minus its mean: all points have an equal sum, so a constant does not distinguish them."""
        return g - float(g.mean())

    @cached_property
    def _differences(self) -> Vector:
        """Return the sorted squares of the largest difference of two orders, the values of the permutahedron Fsym."""
        return check.frozen(np.sort((self.values - self.values[::-1]) ** 2))

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym: exact for diagonal Q, an upper bound for a full Q.

        For a diagonal the largest weight meets the largest difference, and so on.
        """
        if Q.ndim == 2:
            centred = Q - Q.mean(axis=0) - Q.mean(axis=1)[:, None] + Q.mean()
            return min(super().sq_diameter(Q), psd.largest(centred) * float(self._differences.sum()))
        return float(np.sort(np.broadcast_to(Q, (self.dim,))) @ self._differences)

    def diameter(self) -> float:
        """Return the distance from an order to its reverse."""
        return float(np.sqrt(self._differences.sum()))

    def is_exact(self, what: Quantity) -> bool:
        """Return True for every quantity except `sq_diameter` of a full matrix."""
        return what != "full"

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if, for every k, the k largest entries sum to at most the k largest values."""
        return self._excess(x) <= scaled_tolerance(atol, float(np.abs(self.values).max()))

    def violation(self, x: Vector) -> float:
        """Return the largest excess of a sum of k entries, relative to the largest value."""
        size = float(np.abs(self.values).max())
        return max(self._excess(x), 0.0) / size if size else float(np.abs(x).max() > 0)

    def _excess(self, x: Vector) -> float:
        over = np.cumsum(np.sort(x)[::-1] - self.values)
        return max(float(over.max()), abs(float(over[-1])))
