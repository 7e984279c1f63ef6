"""Several classes, row by row: what docs/classes.md describes, out of the twins of its parts.

Columns of cells are the classes that were seen and then, while others may come, one for all of those together.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ftprl.linear.spec import Spec
from oracles.cells_twin import Cells, Vector, in_fours, upwards
from oracles.experts_twin import HEAVY, expert_names
from oracles.losses_twin import LEAST_CURVE
from oracles.mixture_twin import Mixture, mixed
from oracles.newton_twin import DRIFT, RIDGE, Columns, Newton

LOWEST = -8.0  # the Newton experts see logarithms of probabilities from here on


class ClassesTwin:
    """A learner of at most `spec.classes` classes, of which `seen` are known from the start."""

    def __init__(self, spec: Spec, seen: int = 0) -> None:
        self.spec, self.most, self.seen, self.ovr = spec, spec.classes, seen, spec.loss == "ovr"
        K, self.cells = len(spec.scales), Cells(spec, (self.width,))
        names = expert_names(spec) if spec.several else ["only"]
        self.mixture = Mixture(spec.loss, 0.5, names, spec.scales)
        self.newtons = {name: Newton(K, K) for name in names[K:]}  # weights of scales, shared by the classes
        self.table = Columns() if spec.dense else None
        self.classes = [Newton(0, 1, constant=0) for _ in range(self.width)]  # weights of 1 and columns
        self.bias, self.var = np.zeros(self.width), np.full(self.width, RIDGE)
        self.t, self.loss = 0, 0.0

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.seen + (self.seen < self.most)

    @property
    def copies(self) -> Vector:
        """How many classes a column stands for."""
        return np.array([1.0] * self.seen + [float(self.most - self.seen)] * (self.seen < self.most))

    def grow(self, seen: int) -> None:
        """Give the next classes copies of the column of those not seen."""
        before, self.seen = self.width, seen
        more, cells = self.width - before, self.cells
        for name in ("z", "R", "S", "own_z", "own_R", "own_S", "sums"):
            a = getattr(cells, name)
            setattr(cells, name, np.concatenate([a, *[a[..., -1:, :]] * more], axis=-2))
        self.bias, self.var = (np.concatenate([a, *[a[-1:]] * more]) for a in (self.bias, self.var))
        last = self.classes[-1]
        for _ in range(more):
            self.classes.append(Newton(0, len(last.u), constant=0))
            self.classes[-1].u, self.classes[-1].P = last.u.copy(), last.P.copy()

    # ---- before the label ----

    def scores(self, slots: Vector, v: Vector, *, learns: bool = False) -> tuple[Vector, Any]:
        """Return the scores, a row per column and a number per scale, and the plays."""
        if learns:
            self.cells.raise_units(slots, v)
        plays = self.cells.plays(slots)
        return self.cells.scores(v, *plays, fours=False), plays

    def _normal(self, f: Vector) -> Vector:
        t = f - f.max(axis=0)
        return t - np.log(self.copies @ np.exp(t))

    def say(self, slots: Vector, v: Vector, scores: Vector) -> tuple[Vector, list[float]]:
        """Return the logarithms of the probabilities of one class of each column, by each expert, and 1 and columns."""
        t = np.minimum(scores, 0.0) - np.log1p(np.exp(-np.abs(scores))) if self.ovr else scores
        logs = self._normal(t)
        inputs = self.table.inputs(slots, v) if self.table else [1.0]
        seen, experts = np.maximum(logs, LOWEST), [logs]
        for name, e in self.newtons.items():
            f = upwards(seen[:, k] * e.u[k] for k in range(len(e.u)))
            if name == "columns":
                f = f + [in_fours((own.u * inputs).tolist()) for own in self.classes]
            experts.append(self._normal(f + self.bias if name == "drift" else f)[:, None])
        return np.column_stack(experts), inputs

    def predict(self, row: dict[int, float]) -> Vector:
        """Return the probability of one class of each column, without drift."""
        slots, v = _entries(row)
        return np.exp(self.say(slots, v, self.scores(slots, v)[0])[0]) @ self.mixture.awake()

    def losses(self, row: dict[int, float], y: int) -> Vector:
        """Return the loss of each expert on a row that is not learned; a class that is not known is one to come."""
        slots, v = _entries(row)
        return -self.say(slots, v, self.scores(slots, v)[0])[0][min(y, self.width - 1)]

    # ---- after it ----

    def learn(self, row: dict[int, float], y: int, c: float = 1.0, late: Vector | None = None) -> float:
        """Return the loss of a row that is learned; `late` are the losses of experts when it came without its label."""
        slots, v = _entries(row)
        if y >= self.seen:
            self.grow(y + 1)
        scores, plays = self.scores(slots, v, learns=True)
        logs, inputs = self.say(slots, v, scores)
        self.t += 1
        losses = (-logs[y] if late is None else late).tolist()
        self.mixture.admit(c)
        if late is not None and "drift" in self.mixture.names:
            losses[self.mixture.names.index("drift")] = mixed(self.mixture.awake(), losses)
        loss = self._mix(losses, c)
        self.loss += c * loss
        for k, name in enumerate(self.newtons, len(self.spec.scales)):
            self._newton(name, logs, logs[:, k], inputs, y, min(c, HEAVY))
        K = len(self.spec.scales)
        slope = 0.5 * (1.0 + np.tanh(0.5 * scores)) if self.ovr else np.exp(logs[:, :K])
        slope[y] -= 1.0
        self.cells.learn(slots, v, *plays, c * slope)
        if self.table is not None:
            self.table.learn(slots, v, self.t, self.classes)
        for name in self.mixture.octaves.leaving(self.t):
            self.drop(name)
        return loss

    def _mix(self, losses: list[float], c: float) -> float:
        if len(losses) == 1:
            return losses[0]
        return self.mixture.learn_chances(losses, [math.exp(-a) for a in losses], c, self.t)

    def _newton(self, name: str, logs: Vector, own: Vector, inputs: list[float], y: int, c: float) -> None:
        """Step along the exact Hessian of the softmax, one class after the other; then what each class has alone."""
        e, v, one = self.newtons[name], np.maximum(logs[:, : len(self.spec.scales)], LOWEST), np.exp(own)
        p = self.copies * one
        p = p / p.sum()
        middle = p @ v
        for d, b in zip(v - middle, c * np.maximum(p, LEAST_CURVE), strict=True):
            Pd = e.P @ d
            e.P = e.P - (b / (1.0 + b * max(float(d @ Pd), 0.0))) * np.outer(Pd, Pd)
        e.u = e.u - c * (e.P @ (middle - v[y]))
        for i in range(self.width):
            g, b = one[i] - (i == y), max(one[i] * (1.0 - one[i]), LEAST_CURVE)
            if name == "columns":
                self.classes[i].learn(inputs, c, g, b)
            if name == "drift":
                held = 1.0 + c * b * self.var[i]
                self.bias[i] -= ((c * g) * self.var[i]) / held
                self.var[i] /= held
                self.var[i] += DRIFT * (self.var[i] < RIDGE)

    def drop(self, name: str) -> None:
        """Drop a Newton expert."""
        names = self.mixture.names
        self.mixture.keep([j for j, other in enumerate(names) if other != name], len(self.spec.scales))
        del self.newtons[name]
        self.table = None if name == "columns" else self.table


def _entries(row: dict[int, float]) -> tuple[Vector, Vector]:
    return np.array(list(row), np.intp), np.array(list(row.values()), np.float64)
