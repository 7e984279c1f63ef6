"""Minimise a convex function over a set by its tangents, with a lower bound that does not rely on the solver."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.extras import extra_imports
from ftprl.sets import ConvexSet
from ftprl.solver import Scaled, call_clarabel

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def level_bundle(
    feasible: ConvexSet, f: Callable[[Vector], tuple[float, Vector]], tol: float, steps: int
) -> tuple[Vector, float, float]:
    """Return (x, f(x), lower bound) by a level bundle method.

    The graph of f is cut by tangents; each step goes to the nearest point where the model of all tangents is at most a
    level. Tangents are stored in the coordinates y of `Scaled`, relative to the middle of the set: f >= slope·y -
    offset.

    >>> from ftprl.sets import Box
    >>> x, value, lower = level_bundle(Box(-1, 1), lambda x: (float(x @ x), 2 * x), 1e-6, 50)
    >>> lower <= value < 1e-5
    True
    """
    scaled = Scaled.of(feasible, feasible.start())
    model = _Model(feasible, scaled)
    x = best = feasible.start()
    upper, lower, first = math.inf, -math.inf, 0.0
    for _ in range(steps):
        value, slope = f(x)
        first = max(first, abs(value))
        if value < upper:
            upper, best = value, x
        model.add(x, value, slope)
        lower = max(lower, model.lower(upper))
        if upper - lower <= tol * max(abs(upper), abs(lower), tol * first):
            break
        step = model.nearest(best, lower + 0.3 * (upper - lower))
        if step is None or not np.isfinite(step).all():
            break
        x = step
    return best, upper, min(lower, upper)


class _Model:
    """The maximum of the tangents so far, a lower model of the function."""

    def __init__(self, feasible: ConvexSet, scaled: Scaled) -> None:
        self.feasible, self.scaled, self.conic = feasible, scaled, scaled.conic()
        self.slopes: list[Vector] = []
        self.offsets: list[float] = []

    def add(self, x: Vector, value: float, slope: Vector) -> None:
        """Add the tangent at x."""
        inner = self.scaled.unit * slope
        self.slopes.append(inner)
        self.offsets.append(float(inner @ self.scaled.inward(x)) - value)

    def _wide(self) -> Vector:
        """Return the slopes with zeros for auxiliary variables."""
        return np.hstack((np.array(self.slopes), np.zeros((len(self.slopes), self.conic.size - self.conic.dim))))

    def lower(self, upper: float) -> float:
        """Return a proved lower bound: the minimum over F of a mixture of tangents, with mixing weights from a
        solver.
        """
        with extra_imports:
            import clarabel
            from scipy.sparse import csc_matrix, hstack, vstack

        G, h, cones = self.conic.stacked
        k, size = len(self.slopes), self.conic.size
        base, scale = self._units(upper)
        cuts = np.hstack((self._wide() / scale, -np.ones((k, 1))))
        rows = vstack((hstack((G, csc_matrix((len(h), 1)))), csc_matrix(cuts))).tocsc()
        right = np.concatenate((h, (np.array(self.offsets) + base) / scale))
        q = np.zeros(size + 1)
        q[-1] = 1.0
        every: list[Any] = [*cones, clarabel.NonnegativeConeT(k)]
        answer = call_clarabel(np.zeros((size + 1, size + 1)), q, rows, right, every, 1e-10)
        mix = np.maximum(np.array(answer.z)[len(h) :], 0.0)
        if not np.isfinite(mix).all() or not mix.any():
            mix = np.ones(k)
        mix /= mix.sum()
        return max(self._mixture(mix), self._mixture(np.eye(k)[-1]))

    def _mixture(self, mix: Vector) -> float:
        """Return min over F of the mixed tangent, minus the gap of that minimum and its possible rounding error."""
        slope, offset = mix @ np.array(self.slopes), float(mix @ np.array(self.offsets))
        outer = slope / self.scaled.unit
        best = self.feasible.minimise(psd.zero(), outer, self.feasible.start())
        y = self.scaled.inward(best.x)
        size = float(mix @ np.abs(self.slopes).sum(axis=1)) + float(mix @ np.abs(self.offsets))
        return float(slope @ y) - offset - best.gap - (len(y) + len(mix) + 8) * _EPS * size

    def _units(self, upper: float) -> tuple[float, float]:
        """Return (base, scale) such that (f - base)/scale is near 1 for the solver."""
        steep = float(np.abs(self.slopes[0]).max(initial=0.0))
        return upper, steep or 1.0

    def nearest(self, best: Vector, level: float) -> Vector | None:
        """Return the point of F nearest to `best` at which no tangent exceeds the level, or None."""
        with extra_imports:
            import clarabel
            from scipy.sparse import csc_matrix, vstack

        G, h, cones = self.conic.stacked
        n, size = self.conic.dim, self.conic.size
        wide = self._wide()
        steep = np.maximum(np.linalg.norm(wide, axis=1), 1e-300)
        P = np.zeros((size, size))
        P[:n, :n] = np.eye(n)
        q = np.zeros(size)
        q[:n] = -self.scaled.inward(best)
        rows = vstack((G, csc_matrix(wide / steep[:, None]))).tocsc()
        right = np.concatenate((h, (np.array(self.offsets) + level) / steep))
        every: list[Any] = [*cones, clarabel.NonnegativeConeT(len(wide))]
        answer = call_clarabel(P, q, rows, right, every, 1e-10)
        y = np.array(answer.x)[:n]
        return self.scaled.outward(y) if np.isfinite(y).all() else None
