"""Losses and regularisers as tables: any functions at all on a set of finitely many points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.paper.instances import GameRecord

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]
Sides = tuple[float, float, float]  # left side, right side, and the size of what was added up


@final
@dataclass(frozen=True, eq=False)
class Table:
    """f[t, x], the loss of point x in round t, and r[t, x] >= 0, its regularisation."""

    f: Vector
    r: Vector

    @property
    def rounds(self) -> Indices:
        """0 .. T-1, to index with."""
        return np.arange(len(self.f))

    @property
    def size(self) -> float:
        """The sum of all that is added up, for the rounding."""
        return float(np.abs(self.f).max(axis=1).sum() + self.r.max(axis=1).sum())

    @property
    def best(self) -> int:
        """x*, the best fixed point."""
        return int(self.f.sum(axis=0).argmin())

    def after(self) -> Indices:
        """x_2 .. x_{T+1}: the leaders of f + r."""
        return np.asarray((self.f + self.r).cumsum(axis=0).argmin(axis=1))


def tables(count: int, seed: int) -> list[Table]:
    """Random functions, some of which change by little from round to round and some by much."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        shape = (int(rng.integers(1, 30)), int(rng.integers(2, 12)))
        f = rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 2, size=(shape[0], 1))
        made.append(Table(f + rng.normal(size=shape[1]), rng.exponential(size=shape) * 10.0 ** rng.uniform(-2, 2)))
    return made


def size(history: GameRecord) -> float:
    """The same for a game: what gradients and regularisers can add up to."""
    return sum(float(np.abs(g) @ history.feasible.widths()) for g in history.g) + history.penalty()


def excess(both: list[Sides]) -> float:
    """By how much a left side exceeds its right side at most, relative to the size of the sums."""
    return max((left - right) / scale for left, right, scale in both)
