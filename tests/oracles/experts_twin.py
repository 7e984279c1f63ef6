"""The coin-betting expert and the stack that sees dense columns, row by row in NumPy (docs/scales.md).

`Coin` and `Columns` are the additions, and `LogLoss` is a whole learner with them; `label_experts_twin` has that of the
other losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from oracles.any_label_twin import RIDGE, Vector
from oracles.label_mixture_twin import SHARE
from oracles.labels_twin import cut

WEALTH = 0.3
MOST, DEVIATIONS, PART, FIRST = 64, 8.0, 0.625, 8


@dataclass
class Coin:
    """The coin-betting expert, per coordinate; None is the intercept.

    It has theta, the sums of gradient sizes, the wealth won and the largest value. `labels` are the weights of negative
    and positive labels; with the log loss scores are measured from their log-odds.
    """

    labels: list[float] = field(default_factory=lambda: [0.0, 0.0])
    cells: dict[int | None, list[float]] = field(default_factory=lambda: {None: [0.0, 0.0, 0.0, 1.0]})
    bound: float = 1.0

    def _weight(self, i: int | None) -> float:
        theta, sizes, won, largest = self.cells[i]
        L = largest * self.bound
        return (WEALTH + won) * theta / (L * (L + sizes)) if L > 0 else 0.0

    def score(self, slots: list[int], values: Vector) -> float:
        for i, v in zip(slots, values.tolist(), strict=True):
            cell = self.cells.setdefault(i, [0.0, 0.0, 0.0, 0.0])
            cell[3] = max(cell[3], abs(v))
        self.row = [(i, v, self._weight(i)) for i, v in [*zip(slots, values.tolist(), strict=True), (None, 1.0)]]
        return sum(x * v for _, v, x in self.row)

    def base_rate(self) -> float:
        """Return the log-odds of a positive label, as if half a row of each class had come first."""
        negative, positive = (weight + self.bound / 2 for weight in self.labels)
        return math.log(positive / negative)

    def learn(self, row_slope: float) -> None:
        a = cut(row_slope, -self.bound, self.bound)
        for i, v, x in self.row:
            cell = self.cells[i]
            cell[0] -= a * v
            cell[1] += abs(a * v)
            cell[2] -= a * v * x
        self.bound = max(self.bound, abs(row_slope))


@dataclass
class Columns:
    """The dense columns: counted between two powers of two of the rows, then used by the stack while they are
    present.
    """

    rows: int = 0
    since: int = 0
    counts: dict[int, int] = field(default_factory=dict)
    units: dict[int, float] = field(default_factory=dict)
    active: list[int] = field(default_factory=list)
    scaling: dict[int, tuple[float, float]] = field(default_factory=dict)
    watched: dict[int, list[float]] = field(default_factory=dict)  # all values of the octave, 0 where there was none
    met: dict[int, list[float]] = field(default_factory=dict)  # those that were there

    def read(self, slots: list[int], values: Vector) -> Vector:
        """Return 1 and the values of the active columns, and count the row."""
        row = dict(zip(slots, values.tolist(), strict=True))
        self.rows, self.since = self.rows + 1, self.since + 1
        for i in slots:
            N = self.counts[i] = self.counts.get(i, 0) + 1
            s, a = self.units.get(i, 0.0), abs(row[i])
            self.units[i] = max(s, math.sqrt(s * s + (a * a - s * s) / N), a / 16) if a > s else s
        self.row = row
        for i in [*self.active, *self.watched]:
            self.met[i] += [row[i]] if i in row else []
        for i, seen in self.watched.items():
            seen.append(row.get(i, 0.0))
        deviations = [(row.get(i, 0.0) - self.scaling[i][0]) / self.scaling[i][1] for i in self.active]
        return np.array([1.0, *(cut(d, -DEVIATIONS, DEVIATIONS) for d in deviations)])

    def review(self) -> tuple[list[int], int]:
        """Update the active columns after a row; return the numbers of those that stay, and how many join."""
        if self.rows < FIRST or self.rows & (self.rows - 1):
            return list(range(len(self.active))), 0
        stay = [j for j, i in enumerate(self.active) if len(self.met[i]) >= PART / 2 * self.since]
        self.active = [self.active[j] for j in stay]
        joined = 0
        for i, seen in self.watched.items():
            sd = float(np.std(seen)) if seen else 0.0
            enough = len(self.met[i]) >= PART * self.since and len(set(self.met[i])) > 1
            if enough and sd > 2.0**-20 * abs(float(np.mean(seen))):
                self.scaling[i] = (float(np.mean(seen)), sd)
                self.active.append(i)
                joined += 1
        self.watched = {}
        for i, v in self.row.items():
            number = self.counts[i] >= PART * self.rows and abs(v) != self.units[i]
            if number and i not in self.active and len(self.active) + len(self.watched) < MOST:
                self.watched[i] = []
        self.met = {i: [] for i in [*self.active, *self.watched]}
        self.since = 0
        return stay, joined


def regrown(u: Vector, P: Vector, own: int, stay: list[int], joined: int, started: bool) -> tuple[Vector, Vector]:
    """Return u and P of a stack after columns change: `own` inputs, a constant if it has `started`, and columns."""
    kept = list(range(own + started)) + [own + started + j for j in stay] if started else list(range(own))
    u, P = u[kept], P[np.ix_(kept, kept)]
    new = joined + (1 if joined and not started else 0)
    wide = np.eye(len(u) + new) / RIDGE
    wide[: len(u), : len(u)] = P
    return np.append(u, np.zeros(new)), wide


def newton(u: Vector, P: Vector, v: Vector, a: float, b: float) -> tuple[Vector, Vector]:
    """Return u and P of a stack after a Newton step with slope a and curvature b of its loss along the inputs v."""
    Pv = P @ v
    d = 1 + b * max(float(v @ Pv), 0)
    return u - a / d * Pv, P - b / d * np.outer(Pv, Pv)


class LogLoss:
    """Several scales with the log loss, float64 cells, share capped."""

    def __init__(self, scales: tuple[float, ...], coin: bool, dense: bool, beta: float = 0.3) -> None:
        self.h, self.beta, self.K = np.array(scales), beta, len(scales)
        self.coin, self.columns = Coin() if coin else None, Columns() if dense else None
        self.started = False
        self.cells: dict[int | None, list] = {None: [np.zeros(self.K), np.zeros(self.K), 1.0, 0.0]}
        self.u, self.P = np.full(self.K, 1 / self.K), np.eye(self.K) / RIDGE
        self.n = self.K + 1 + coin
        self.w = np.full(self.n, 1 / self.n)
        if coin:  # more for scales near 0.2
            self.w[: self.K], self.w[self.K :] = 2 / (1 + (np.log(self.h / 0.2) / 1.5) ** 2), 1.0
            self.w /= self.w.sum()
        self.rows, self.largest = 0, 1.0

    def learn(self, slots: list[int], values: Vector, y: float, c: float = 1.0) -> float:
        """Learn a row; return the probability of the label 1 from before."""
        x = np.array([self._play(i, abs(v)) for i, v in zip(slots, values.tolist(), strict=True)]).reshape(-1, self.K)
        x0 = self._play(None, 1.0)
        scores = values @ x + x0
        own = [] if self.coin is None else [self.coin.score(slots, values) + self.coin.base_rate()]
        dense = np.zeros(0) if self.columns is None else self.columns.read(slots, values)
        v = np.append(np.clip(scores, -8, 8), dense if self.started else [])
        f = float(self.u @ v)
        p = 1 / (1 + np.exp(-np.array([*scores, f, *own])))
        if c > self.largest:  # no row may count more than 1
            self.w = self.w ** (self.largest / c)
            self.w, self.largest = self.w / self.w.sum(), c
        chance = float(self.w @ p)
        self.rows += 1
        w = self.w * np.where(y > 0, p, 1 - p) ** (c / self.largest)
        a = min(SHARE, 1 / (self.rows + 1))
        self.w = (1 - a) * w / w.sum() + a / self.n
        slopes = c * (p - (y > 0))
        b = c * max(p[self.K] * (1 - p[self.K]), 2.0**-13)
        self.u, self.P = newton(self.u, self.P, v, slopes[self.K], b)
        for i, value_, play in [*zip(slots, values.tolist(), x, strict=True), (None, 1.0, x0)]:
            self.step_scales(i, slopes[: self.K] * value_, play)
        if self.coin is not None:
            self.coin.learn(float(slopes[-1]))
            self.coin.labels[int(y > 0)] += c
        if self.columns is not None:
            stay, joined = self.columns.review()
            self.u, self.P = regrown(self.u, self.P, self.K, stay, joined, self.started)
            self.started = self.started or joined > 0
        return chance

    def _play(self, i: int | None, a: float) -> Vector:
        cell = self.cells.setdefault(i, [np.zeros(self.K), np.zeros(self.K), 0.0, 0.0])
        z, R, s, N = cell
        if i is not None:
            cell[3] = N = N + 1
            if a > s:
                cell[2] = s = max(s, math.sqrt(s * s + (a * a - s * s) / N), a / 16)
        return -z * self.h / (s * (self.beta * s + R)) if s > 0 else np.zeros(self.K)

    def step_scales(self, i: int | None, g: Vector, x: Vector) -> None:
        cell = self.cells[i]
        R = np.sqrt(cell[1] ** 2 + g * g)
        cell[0] = cell[0] + g - cell[2] * (R - cell[1]) / self.h * x
        cell[1] = R
