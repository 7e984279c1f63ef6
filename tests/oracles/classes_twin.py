"""Several classes in plain NumPy, row by row: what docs/classes.md describes, for comparison with the compiled learner.

A cell of a feature is an array z and one R of shape (columns, K), a unit s and a count N. Columns are the classes that
were seen and then, while others may come, one for all of those together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from oracles.experts_twin import Columns, newton, regrown

STACK_CUT = 8.0


@dataclass
class Cell:
    z: np.ndarray
    R: np.ndarray
    s: float = 0.0
    N: float = 0.0


@dataclass
class ClassesTwin:
    """A learner of at most `most` classes, of which `seen` are known from the start; `ovr` learns one against the
    rest.
    """

    most: int
    scales: tuple[float, ...]
    seen: int = 0
    beta: float = 0.3
    l1: float = 0.0
    l2: float = 0.0
    lower: float = -math.inf
    upper: float = math.inf
    intercept: bool = True
    ovr: bool = False
    stack: bool = True
    dense: bool = False
    float64: bool = True
    cells: dict[int, Cell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        K = len(self.scales)
        self.h = np.array(self.scales)
        self.stack = self.stack and K > 1
        self.is_free = self.l1 == self.l2 == 0 and math.isinf(self.lower) and math.isinf(self.upper)
        n = K + self.stack
        self.bias = Cell(np.zeros((self.columns, K)), np.zeros((self.columns, K)), 1.0)
        self.w, self.totals, self.largest = np.full(n, 1.0 / n), np.zeros(n), 1.0
        self.u, self.P = np.full(K, 1.0 / K), np.eye(K) / 4.0
        self.rows, self.loss = 0, 0.0
        self.read_columns = Columns() if self.dense and self.stack else None
        self.class_u, self.class_P = np.zeros((self.columns, 0)), np.zeros((self.columns, 0, 0))
        self.inputs = np.zeros(0)  # a constant and the dense columns of a row, from the first column on

    @property
    def columns(self) -> int:
        return self.seen + (self.seen < self.most)

    @property
    def copies(self) -> np.ndarray:
        """Return the number of classes that a column represents."""
        return np.array([1.0] * self.seen + [float(self.most - self.seen)] * (self.seen < self.most))

    def grow(self, seen: int) -> None:
        """Add columns for new classes, as copies of the column of unseen ones."""
        before, self.seen = self.columns, seen

        def grown(a: np.ndarray) -> np.ndarray:
            return np.concatenate([a, np.repeat(a[-1:], self.columns - before, axis=0)])

        for cell in (*self.cells.values(), self.bias):
            cell.z, cell.R = grown(cell.z), grown(cell.R)
        self.class_u, self.class_P = grown(self.class_u), grown(self.class_P)

    def _stored(self, a):
        return a if self.float64 else np.asarray(a, np.float32).astype(np.float64)

    def _play(self, cell: Cell, free: bool) -> np.ndarray:
        s = cell.s
        den = s * (self.beta * s + cell.R)
        size = np.abs(cell.z)
        if not free:
            den = den + self.h * self.l2 * (s * s)
            size = np.maximum(size - self.l1 * s, 0.0)
        x = np.divide(np.copysign(size, cell.z) * -self.h, den, out=np.zeros_like(size), where=den > 0)
        return x if free else np.clip(x, self.lower, self.upper)

    def _empty(self) -> Cell:
        return Cell(np.zeros((self.columns, len(self.h))), np.zeros((self.columns, len(self.h))))

    def scores(self, row: dict[int, float], raise_units: bool = False):
        """Return the scores, one row per column and one number per scale, and the plays."""
        total, plays = np.zeros((self.columns, len(self.h))), []
        for i, v in row.items():
            cell = self.cells.setdefault(i, self._empty()) if raise_units else self.cells.get(i, self._empty())
            if raise_units:
                cell.N = float(self._stored(cell.N + 1.0))
                a, s = abs(v), cell.s
                if a > s:
                    cell.s = float(self._stored(max(s, math.sqrt(s * s + (a * a - s * s) / cell.N), a * 0.0625)))
            x = self._play(cell, self.is_free)
            plays.append(x)
            total = total + x * v
        return (total + self._play(self.bias, True) if self.intercept else total), plays

    def log_chances(self, scores: np.ndarray) -> np.ndarray:
        """Return the log probability of one class of each column, by each scale."""
        t = np.minimum(scores, 0.0) - np.log1p(np.exp(-np.abs(scores))) if self.ovr else scores
        logs = t - t.max(axis=0)
        return logs - np.log(self.copies @ np.exp(logs))

    def experts(self, scores: np.ndarray) -> np.ndarray:
        """Return the experts' log probabilities, with the stack, if there is one, in the last column."""
        logs = self.log_chances(scores)
        if not self.stack:
            return logs
        f = np.maximum(logs, -STACK_CUT) @ self.u + self.class_u @ self.inputs
        own = f - f.max()
        return np.column_stack([logs, own - math.log(float(self.copies @ np.exp(own)))])

    def predict(self, row: dict[int, float]) -> np.ndarray:
        """Return the probability of one class of each column."""
        if self.class_u.shape[1]:
            known = self.read_columns
            values = [(row.get(i, 0.0) - known.scaling[i][0]) / known.scaling[i][1] for i in known.active]
            self.inputs = np.array([1.0, *np.clip(values, -8.0, 8.0)])
        return np.exp(self.experts(self.scores(row)[0])) @ self.w

    def losses(self, row: dict[int, float], y: int) -> np.ndarray:
        """Return the loss of each expert on a row without learning it; an unknown class counts as an unseen one."""
        self.predict(row)  # reads its dense columns
        return -self.experts(self.scores(row)[0])[min(y, self.columns - 1)]

    def learn(self, row: dict[int, float], y: int, c: float = 1.0, arrival: np.ndarray | None = None) -> float:
        """Learn a row; `arrival` are the experts' losses when the row arrived, if its label was late."""
        if y >= self.seen:
            self.grow(y + 1)
        scores, plays = self.scores(row, raise_units=True)
        if self.read_columns is not None:
            inputs = self.read_columns.read(list(row), np.array(list(row.values())))
            self.inputs = inputs if self.class_u.shape[1] else np.zeros(0)
        logs = self.experts(scores)
        losses = -logs[y] if arrival is None else arrival
        if c > self.largest:
            self.w = self.w ** (self.largest / c)
            self.w /= self.w.sum()
            self.largest = c
        low = losses.min()
        loss = low - math.log(float(self.w @ np.exp(low - losses)))
        self.rows, self.loss = self.rows + 1, self.loss + c * loss
        self.totals += c * losses
        n = len(self.w)
        if n > 1:
            self.w = self.w * np.exp((c / self.largest) * (low - losses))
            a = min(2.0**-10, 1.0 / (self.rows + 1.0))
            self.w = (1.0 - a) * (self.w / self.w.sum()) + a / n
        if self.stack:
            self._newton(logs, y, min(c, 1024.0))
        slope = 0.5 * (1.0 + np.tanh(0.5 * scores)) if self.ovr else np.exp(logs[:, : len(self.h)])
        slope[y] -= 1.0
        slope *= c
        for (i, v), x in zip(row.items(), plays, strict=True):
            self._step(self.cells[i], slope * v, x, self._stored)
        if self.intercept:
            self._step(self.bias, slope, self._play(self.bias, True), lambda a: a)
        if self.read_columns is not None:
            self._review()
        return loss

    def _review(self) -> None:
        started, (stay, joined) = self.class_u.shape[1] > 0, self.read_columns.review()
        made = [regrown(u, P, 0, stay, joined, started) for u, P in zip(self.class_u, self.class_P, strict=True)]
        self.class_u, self.class_P = (np.array(parts) for parts in zip(*made, strict=True))

    def _step(self, cell: Cell, g: np.ndarray, x: np.ndarray, stored) -> None:
        after = np.maximum(stored(np.sqrt(cell.R * cell.R + g * g)), cell.R)
        sigma = cell.s * (after - cell.R) * (1.0 / self.h)
        cell.z, cell.R = stored(cell.z + (g - sigma * x)), after

    def _newton(self, logs: np.ndarray, y: int, c: float) -> None:
        """Take a Newton step of the stack with the Hessian of its softmax, one class after the other."""
        v = np.maximum(logs[:, : len(self.h)], -STACK_CUT)
        p = self.copies * np.exp(logs[:, -1])
        p = p / p.sum()
        mean = p @ v
        for j in range(self.columns):
            d = v[j] - mean
            b = c * max(p[j], 2.0**-13)
            Pd = self.P @ d
            self.P = self.P - (b / (1.0 + b * max(float(d @ Pd), 0.0))) * np.outer(Pd, Pd)
        self.u = self.u - c * (self.P @ (mean - v[y]))
        for j in range(self.columns if len(self.inputs) else 0):
            p_j = math.exp(logs[j, -1])
            a, b = c * (p_j - (j == y)), c * max(p_j * (1.0 - p_j), 2.0**-13)
            self.class_u[j], self.class_P[j] = newton(self.class_u[j], self.class_P[j], self.inputs, a, b)
