"""Each algorithm with its best constant, chosen in hindsight from a grid that is widened until the best is inside."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, final

from ftprl import check
from ftprl.errors import InvalidInput

L = TypeVar("L")


@final
@dataclass(frozen=True)
class Best:
    """The constant with the lowest cost, its cost, the cost of every constant tried, and whether the best is at the
    edge.
    """

    constant: float
    cost: float
    tried: Mapping[float, float]

    @property
    def at_edge(self) -> bool:
        """Return True if a constant beyond the tried ones might cost less still.

        >>> Best(2.0, 0.1, {1.0: 0.3, 2.0: 0.1}).at_edge
        True
        """
        return len(self.tried) < 2 or self.constant in (min(self.tried), max(self.tried))

    def __str__(self) -> str:
        where = ", at the edge of the grid" if self.at_edge else ""
        return f"{self.cost:.6g} at {self.constant:.4g}{where}"


def best_constant(
    make: Callable[[float], L], grid: Sequence[float], cost: Callable[[L], float], *, widen: int = 8, refine: int = 0
) -> Best:
    """Minimise `cost(make(c))` over a geometric grid, widened by up to `widen` steps while the best is at an end.

    Then, `refine` times, the best is compared with the two points half-way (in the logarithm) to its neighbours. A cost
    that is not a number counts as infinite. Among equals the first constant wins.

    >>> best = best_constant(float, [1.0, 2.0, 4.0], lambda c: (c - 20.0) ** 2)
    >>> best.constant, best.at_edge
    (16.0, False)
    """
    points = sorted(_constants(grid))
    ratio = (points[-1] / points[0]) ** (1 / (len(points) - 1))
    tried = {c: _cost(cost(make(c))) for c in points}
    for _ in range(widen):
        best = _pick(tried)
        low, high = min(tried), max(tried)
        further = high * ratio if best.constant == high else low / ratio
        if not best.at_edge or not 1e-150 < further < 1e150:
            break
        tried[further] = _cost(cost(make(further)))
    for _ in range(refine):
        tried |= {c: _cost(cost(make(c))) for c in _between(_pick(tried))}
    return _pick(tried)


def _between(best: Best) -> list[float]:
    """Return the points half-way from the best constant to its neighbours; none if the best is at an edge."""
    points = list(best.tried)
    i = points.index(best.constant)
    return [] if best.at_edge else [math.sqrt(points[i] * points[j]) for j in (i - 1, i + 1)]


def _constants(grid: Sequence[float]) -> list[float]:
    """Return the constants; raise InvalidInput unless there are at least two, all positive and different."""
    points = [check.positive(f"grid[{i}]", c) for i, c in enumerate(grid)]
    if len(set(points)) < 2 or len(set(points)) < len(points):
        raise InvalidInput(f"grid needs at least two different constants, got {list(grid)!r:.60}; pass 0.1, 1, 10.")
    return points


def _cost(value: float) -> float:
    """Return the cost as a float, infinite if it is not a number."""
    return math.inf if math.isnan(value) else float(value)


def _pick(tried: Mapping[float, float]) -> Best:
    """Return the best of the constants tried."""
    c = min(tried, key=lambda constant: tried[constant])
    return Best(c, tried[c], dict(sorted(tried.items())))
