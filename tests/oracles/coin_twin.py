"""The coin-betting expert: docs/scales.md, "Coin"."""

from __future__ import annotations

import numpy as np

from oracles.cells_twin import CUT, Vector, in_fours

WEALTH = 0.3  # lent to each coordinate
MOST_WON = 2.0**400


class Coin:
    """A bet for each feature and for the intercept; cells hold theta, sizes, winnings and the largest value."""

    def __init__(self, dim: int, kind: str, intercept: bool) -> None:
        self.cells, self.intercept = np.zeros((dim, 4), kind), intercept
        self.kind = self.cells.dtype.type
        self.theta = self.sizes = self.won = 0.0  # of the intercept
        self.bound = 1.0

    def bets(self, slots: Vector, v: Vector, *, learns: bool) -> float:
        """Return the score without offset, base rate and the intercept; a row that is learned raises largest values."""
        cells = self.cells[slots].astype(np.float64)
        if learns:
            cells[:, 3] = np.maximum(cells[:, 3], np.abs(v).astype(self.kind))
            self.cells[slots, 3] = cells[:, 3]
        self.row = slots, v, self._weights(cells)
        return float(in_fours((self.row[2] * v).tolist()))

    def _weights(self, cells: Vector) -> Vector:
        theta, sizes, won, largest = cells.T
        lost = largest * self.bound
        held = lost * (lost + sizes)
        return np.divide((WEALTH + won) * theta, held, out=np.zeros_like(held), where=held > 0)

    @property
    def own_bet(self) -> float:
        """The weight of the intercept, whose value is 1."""
        if not self.intercept:
            return 0.0
        return (WEALTH + self.won) * self.theta / (self.bound * (self.bound + self.sizes))

    def learn(self, slope: float) -> None:
        """Learn from the weighted slope of the row that was predicted last."""
        slots, v, x = self.row
        a, most = min(max(slope, -self.bound), self.bound), CUT[self.kind]
        g = np.clip(a * v, -most, most)
        theta, sizes, won, _ = self.cells[slots].astype(np.float64).T
        self.cells[slots, 0] = theta - g
        self.cells[slots, 1] = sizes + np.abs(g)
        self.cells[slots, 2] = np.clip(won - g * x, -most, most)
        if self.intercept:
            self.won = min(max(self.won - a * self.own_bet, -MOST_WON), MOST_WON)
            self.theta, self.sizes = self.theta - a, self.sizes + abs(a)
        self.bound = max(self.bound, abs(slope))
