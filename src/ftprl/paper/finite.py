"""Losses and regularisers as tables: arbitrary functions on a set of finitely many points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.paper.instances import GameRecord

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]
Sides = tuple[float, float, float]  # left side, right side, and the size of the sums


@final
@dataclass(frozen=True, eq=False)
class Table:
    """Tables of f[t, x], the loss of point x in round t, and r[t, x] >= 0, its regularisation."""

    f: Vector
    r: Vector

    @property
    def rounds(self) -> Indices:
        """Return the round numbers 0 .. T-1."""
        return np.arange(len(self.f))

    @property
    def size(self) -> float:
        """Return the sum of all absolute values that are added up, to measure rounding against."""
        return float(np.abs(self.f).max(axis=1).sum() + self.r.max(axis=1).sum())

    @property
    def best(self) -> int:
        """Return x*, the best fixed point."""
        return int(self.f.sum(axis=0).argmin())

    def after(self) -> Indices:
        """Return x_2 .. x_{T+1}, the leaders of f + r."""
        return np.asarray((self.f + self.r).cumsum(axis=0).argmin(axis=1))


def tables(count: int, seed: int) -> list[Table]:
    """Return random tables, some of which change little from round to round and some much."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        shape = (int(rng.integers(1, 30)), int(rng.integers(2, 12)))
        f = rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 2, size=(shape[0], 1))
        made.append(Table(f + rng.normal(size=shape[1]), rng.exponential(size=shape) * 10.0 ** rng.uniform(-2, 2)))
    return made


def size(history: GameRecord) -> float:
    """Return the total size of gradients and regularisers of a game, to measure rounding against."""
    return sum(float(np.abs(g) @ history.feasible.widths()) for g in history.g) + history.penalty()


def excess(both: list[Sides]) -> float:
    """Return the largest excess of a left side over its right side, relative to the size of the sums.

    >>> excess([(1.0, 2.0, 4.0), (3.0, 2.0, 4.0)])
    0.25
    """
    return max((left - right) / scale for left, right, scale in both)
