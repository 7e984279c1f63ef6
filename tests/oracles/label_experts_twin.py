"""Labels in any unit with the coin-betting expert and the dense columns, row by row in NumPy (docs/experts.md)."""

from __future__ import annotations

import math

import numpy as np

from oracles.any_label_twin import HEAVY, AnyLabel, Vector
from oracles.experts_twin import Coin, Columns, regrown
from oracles.labels_twin import LOG_LINK, MARGIN, cut, stack_slope


class AnyLabelWith(AnyLabel):
    """`AnyLabel` of several scales with the coin and the dense columns."""

    def with_additions(self, coin: bool, dense: bool) -> AnyLabelWith:
        self.coin, self.dense = Coin() if coin else None, Columns() if dense else None
        self.started = False
        self.n += coin
        self.w = np.full(self.n, 1 / self.n)
        return self

    def learn(self, slots: list[int], values: Vector, y: float, c: float = 1.0) -> float:
        L = self.labels
        first, old = L.rows == 0, (L.lo, L.hi)
        self.bet = math.nan if self.coin is None else L.m + self._unit() * self.coin.score(slots, values)
        self.x = np.zeros(0) if self.dense is None else self.dense.read(slots, values)
        prediction = super().learn(slots, values, y, c)
        teaches = L.U > 0 and not (first and self.loss not in MARGIN)
        if self.coin is not None:
            hull = (min(old[0], L.lo), max(old[1], L.hi))
            self.coin.learn(c * self._coin_slope(cut(self.bet, *hull), self.taught) if teaches else 0.0)
        if self.dense is not None:
            stay, joined = self.dense.review()
            self.u, self.P = regrown(self.u, self.P, self.K, stay, joined, self.started)
            self.started = self.started or joined > 0
            self.columns = len(self.u)
        return prediction

    def _coin_slope(self, s: float, y: float) -> float:
        if self.loss == "hinge":
            return -y if y * s < 1 else 0.0
        return stack_slope(self.labels, s, y, 1.0)[0]

    def _predict(self, scores: Vector) -> tuple[float, Vector, float]:
        w, self.w = self.w, self.w[: self.n - (self.coin is not None)]
        u, self.u = self.u, self.u[: self.K]
        _, experts, f = super()._predict(scores)
        self.w, self.u, L = w, u, self.labels
        if self.started:
            f = f + self._unit() * float(self.u[self.K :] @ self.x)
            gain = 4.0 if self.loss == "hinge" else 1.0
            experts[self.K] = cut(gain * f, L.lo, L.hi)
        if self.coin is not None:
            experts = np.append(experts, cut(self.bet, L.lo, L.hi))
        return self._mixed(experts), experts, f

    def _newton(self, seen: Vector, old: tuple[float, ...], f: float, y: float, c: float) -> None:
        """Take the Newton step with columns, whose values follow the scores, in the unit from before the row."""
        if not self.started:
            return super()._newton(seen, old, f, y, c)
        m, U0, lo, hi = old
        ratio = 1.0 if self.loss in MARGIN or self.loss in LOG_LINK else U0 / self.labels.U
        return self._step_stack(np.append((seen - m) / self._unit(), ratio * self.x), f, (lo, hi), y, min(c, HEAVY))
