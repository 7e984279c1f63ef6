"""The Newton experts: a quadratic for the scores of the scales, a constant and frequent features as columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from oracles.cells_twin import Vector, in_fours, upwards

RIDGE, DRIFT = 0.25, 2.0**-4
CAP, DEVIATIONS, FAR, TABLE, KEPT = 64, 8.0, 16.0, 1024, 512


class Newton:
    """Weights u of inputs, and P, the inverse of the curvature so far. Inputs from `constant` on are 1 and columns."""

    def __init__(self, scales: int, inputs: int, constant: int | None = None, drifts: bool = False) -> None:
        self.u = np.array([1.0 / max(scales, 1)] * scales + [0.0] * (inputs - scales))
        self.P = np.eye(inputs) * RIDGE
        self.constant, self.drifts = constant, drifts
        self.steps = self.mean_loss = 0.0  # of losses with a kink

    def score(self, x: list[float]) -> tuple[float, float]:
        """Return the sum over scores of experts, in order, and that over the constant and the columns, in fours."""
        at = len(x) if self.constant is None else self.constant
        products = (self.u * x).tolist()
        return upwards(products[:at]), in_fours(products[at:])

    def learn(self, x: list[float], c: float, g: float, b: float, kink: tuple[float, ...] = ()) -> None:
        """Take the step of a row of weight c at slope g and curvature b.

        `kink` has what a slope after the step needs: f - y, the unit of the labels, and the slopes of both sides.
        """
        b = c * b
        Px = self._times(x)
        q = max(in_fours((np.array(x) * Px).tolist()), 0.0)
        d = 1.0 + b * q
        if kink:
            gap, unit, up, down = kink
            reach = ((c * q) / d) * unit
            g = min(max(gap / reach, -up), down) if reach > 0.0 else g
        self.u = self.u - ((c * g) / d) * Px
        half = np.triu(self.P - np.outer((b / d) * Px, Px))  # P is symmetric to the bit
        self.P = half + np.triu(half, 1).T
        if self.drifts and self.P[self.constant, self.constant] < 1.0:
            self.P[self.constant, self.constant] += DRIFT
        if not (np.diag(self.P) > 0.0).all():
            self.P = np.eye(len(x)) * RIDGE

    def _times(self, x: list[float]) -> Vector:
        """Return P x: entry i adds the columns up to the end of its group of four upwards, and the others in fours."""
        first, lanes = np.zeros(len(x)), np.zeros((4, len(x)))
        for j, a in enumerate(x):
            at = j - j % 4
            first[at:] += self.P[j, at:] * a
            lanes[j % 4, :at] += self.P[:at, j] * a
        return first + ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3]))

    def drop(self, i: int, count: int = 1) -> None:
        """Drop `count` inputs from number i on."""
        gone = range(i, i + count)
        self.u = np.delete(self.u, gone)
        self.P = np.delete(np.delete(self.P, gone, 0), gone, 1)
        self.constant = None if self.constant is None else self.constant - count * (i < self.constant)

    # ---- what the table of columns asks for; j counts columns ----

    def grow(self) -> None:
        self.u, P = np.append(self.u, 0.0), np.zeros((len(self.u) + 1, len(self.u) + 1))
        P[:-1, :-1] = self.P
        self.P = P

    def begin(self, j: int, p: float) -> None:
        """Forget what P knows of a column."""
        at = self.constant + 1 + j
        self.P[at, :] = self.P[:, at] = 0.0
        self.P[at, at] = p

    def leave(self, j: int) -> None:
        self.u[self.constant + 1 + j] = 0.0
        self.begin(j, RIDGE)

    def move(self, j: int, shift: float, ratio: float) -> None:
        """Follow a column to another mean and deviation."""
        c, at = self.constant, self.constant + 1 + j
        self.u[c] += self.u[at] * shift
        self.u[at] *= ratio
        self.P[c, :] += shift * self.P[at, :]
        self.P[:, c] += shift * self.P[:, at]
        self.begin(j, RIDGE)


class Columns:
    """Frequent features in deviations from their mean, at most 64, and the statistics of at most 1,024 features."""

    def __init__(self) -> None:
        self.feature: list[int | None] = []  # by column; None where it is empty
        self.mean: list[float] = []
        self.dev: list[float] = []
        self.table: dict[int, list[float]] = {}  # count, sums of deviations from `first` and of their squares, first
        self.rows = 0

    def inputs(self, slots: Vector, v: Vector) -> list[float]:
        """Return 1 and the columns of a row: features that it lacks are 0."""
        row = dict(zip(slots.tolist(), v.tolist(), strict=True))
        columns = zip(self.feature, self.mean, self.dev, strict=True)
        return [1.0, *(0.0 if i is None else _within((row.get(i, 0.0) - m) / d, DEVIATIONS) for i, m, d in columns)]

    def learn(self, slots: Vector, v: Vector, t: int, experts: list[Any]) -> None:
        """Count the row t; after rows 8, 16, 32, .. choose the columns anew, and tell experts about it."""
        self.rows += 1
        for i, value in zip(slots.tolist(), v.tolist(), strict=True):
            self._count(i, value)
        if t >= 8 and t & (t - 1) == 0:
            self._choose(t, experts)
            self.table, self.rows = {}, 0

    def _count(self, i: int, value: float) -> None:
        j = self.feature.index(i) if i in self.feature else None
        if j is not None:
            value = min(max(value, self.mean[j] - FAR * self.dev[j]), self.mean[j] + FAR * self.dev[j])
        if i not in self.table:
            self._make_room()
            self.table[i] = [0.0, 0.0, 0.0, value if j is None else self.mean[j]]
        seen = self.table[i]
        d = value - seen[3]
        seen[0], seen[1], seen[2] = seen[0] + 1.0, seen[1] + d, seen[2] + d * d

    def _make_room(self) -> None:
        limit = 1
        while len(self.table) >= TABLE or (limit > 1 and len(self.table) > KEPT):
            self.table = {i: a for i, a in self.table.items() if i in self.feature or a[0] > limit}
            limit *= 2

    def _choose(self, t: int, experts: list[Any]) -> None:
        r, new = self.rows, []
        for j, i in enumerate(self.feature):
            if i is not None and self.table.get(i, [0.0])[0] < r / 16.0:
                self.feature[j], self.mean[j], self.dev[j] = None, 0.0, 0.0
                for e in experts:
                    e.leave(j)
        often = sorted(self.table.items(), key=lambda one: -one[1][0])
        for i, (n, a, b, first) in often if t > 8 else []:
            if n < max(r / 8.0, 5.0):
                break
            mean = (a + n * first) / r
            square = b / r - (a / r) * (a / r)
            if n < r:
                square = (b + (2.0 * first) * a + (n * first) * first) / r - mean * mean
            dev = math.sqrt(max(square, 0.0))
            if dev <= 2.0**-20 * abs(mean):
                continue
            if i not in self.feature:
                new += self._join(i, mean, dev, experts)
            elif dev < self.dev[j := self.feature.index(i)] / 4.0:
                for e in experts:
                    e.move(j, (mean - self.mean[j]) / self.dev[j], dev / self.dev[j])
                self.mean[j], self.dev[j] = mean, dev
        for j in new:
            for e in experts:
                e.begin(j, min(RIDGE, 10.0 / (len(self.feature) - self.feature.count(None))))

    def _join(self, i: int, mean: float, dev: float, experts: list[Any]) -> list[int]:
        if None not in self.feature:
            if len(self.feature) == CAP:
                return []
            self.feature, self.mean, self.dev = [*self.feature, None], [*self.mean, 0.0], [*self.dev, 0.0]
            for e in experts:
                e.grow()
        j = self.feature.index(None)
        self.feature[j], self.mean[j], self.dev[j] = i, mean, dev
        return [j]

    @property
    def facts(self) -> Vector:
        """What a model file has of the columns: slot + 1 (0 where empty), mean and deviation."""
        slots = [0.0 if i is None else i + 1.0 for i in self.feature]
        return np.array([slots, self.mean, self.dev]).T.reshape(-1, 3)


def _within(a: float, most: float) -> float:
    return min(max(a, -most), most)
