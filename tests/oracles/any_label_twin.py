"""Learning with labels in any unit, row by row in NumPy: the oracle of the learner for all losses except the log
loss.

The formulas are those of docs/labels.md, in that order; `labels_twin` has the formulas of single labels and losses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oracles.label_mixture_twin import LabelMixture
from oracles.labels_twin import KINKED, LOG_LINK, MARGIN, Labels, cut, implicit, stack_slope, value

Vector = NDArray[np.float64]
RIDGE, HEAVY = 4.0, 2.0**10
STACK_CUT, SHARPENED = 8.0, 4.0  # hinge: of the scores the stack sees; of its log odds


@dataclass
class AnyLabel(LabelMixture):
    """A learner of several scales (K = 1: a single one) for one loss; `learn` returns the prediction before the row."""

    loss: str
    scales: tuple[float, ...]
    beta: float = 0.3
    tau: float = 0.5
    kind: type[np.floating[Any]] = np.float64
    cells: dict[int, list[Any]] = field(default_factory=dict)  # z[K], R[K], s, N, kappa

    def __post_init__(self) -> None:
        K = self.K = len(self.scales)
        if self.loss != "quantile":
            self.tau = 0.5
        self.h = np.array(self.scales)
        self.labels = Labels(self.loss, self.tau)
        self.z0, self.R0, self.kappa0 = np.zeros(K), np.zeros(K), 1.0
        self.columns = K
        self.u, self.P = np.full(K, 1.0 / K), np.eye(K) / RIDGE
        self.mean_loss = self.stack_weight = 0.0
        self.begin(1 if K == 1 else K + 2)
        self.taught = 0.0
        self.expert_scores = np.zeros(self.n)  # by the experts of the latest row
        self.rows = 0

    # ---- one row ----

    def learn(self, slots: list[int], values: Vector, y: float, c: float = 1.0) -> float:
        L = self.labels
        units = [self.cells[i][2] if i in self.cells else 0.0 for i in slots]
        self._raise(slots, np.abs(values))
        x, x0 = self._plays(slots)
        scores = L.m + (values @ x if len(slots) else 0.0) + x0
        prediction, experts, f = self._predict(scores)
        self.rows += 1
        if self.K > 1 and self.rows > 1:
            self.mix(prediction, experts, y, c)
        clipped = np.clip(scores, L.lo, L.hi)
        seen = np.clip(scores, -STACK_CUT, STACK_CUT) if self.loss in MARGIN else clipped
        old = (L.m, L.U, L.lo, L.hi)
        first = L.rows == 0
        y = self.taught = L.believed(y)
        L.learn(y, c)
        if self.K > 1 and self.rows > 1:
            self._review(y, c)
        if (first and self.loss not in MARGIN) or L.U == 0.0:
            if self.K == 1:  # nothing of the row is kept but its label
                for i, s in zip(slots, units, strict=True):
                    self.cells[i][2] = s
            return prediction
        hull = (min(old[2], L.lo), max(old[3], L.hi)) if not first else (L.lo, L.hi)
        if self.K > 1:
            self._newton(seen, (old[0], old[1], *hull), f, y, c)
        cut_scores = np.clip(scores, *hull)
        if self.loss in KINKED or self.loss == "squared":
            excess = scores - cut_scores  # what is more than the width of the range beyond it counts
            cut_scores += np.sign(excess) * np.maximum(np.abs(excess) - (hull[1] - hull[0]), 0.0)
        self.step_scales(slots, values, x, x0, cut_scores, y, c)
        return prediction

    def _raise(self, slots: list[int], sizes: Vector) -> None:
        for i, a in zip(slots, sizes.tolist(), strict=True):
            cell = self.cells.setdefault(i, [np.zeros(self.K), np.zeros(self.K), 0.0, 0.0, 1.0])
            cell[3] += 1.0
            s = cell[2]
            if self.K == 1:
                cell[2] = max(s, a)
            elif a > s:
                rms = math.sqrt(s * s + (a * a - s * s) / cell[3])
                cell[2] = float(self.kind(max(s, rms, a / 16.0)))

    def _plays(self, slots: list[int]) -> tuple[Vector, Vector]:
        x = np.zeros((len(slots), self.K))
        for row, i in enumerate(slots):
            z, R, s, _, kappa = self.cells[i]
            held = s * (self.beta * s + R)
            x[row] = np.divide(-z * self.h, held, out=np.zeros(self.K), where=held > 0) * kappa
        held = self.beta + self.R0
        return x, np.divide(-self.z0 * self.h, held, out=np.zeros(self.K), where=held > 0) * self.kappa0

    def _predict(self, scores: Vector) -> tuple[float, Vector, float]:
        L = self.labels
        clipped = np.clip(scores, L.lo, L.hi)
        if self.K == 1:
            return float(clipped[0]), clipped, 0.0
        margin = self.loss in MARGIN
        seen = np.clip(scores, -STACK_CUT, STACK_CUT) if margin else clipped
        f = L.m + float(self.u @ (seen - L.m))
        stack = cut(SHARPENED * f, -1.0, 1.0) if self.loss == "hinge" else cut(f, L.lo, L.hi)
        experts = np.append(clipped, [stack, float(np.sign(L.mean)) if margin else L.m])
        self.expert_scores = experts
        return self._mixed(experts), experts, f

    def _newton(self, seen: Vector, old: tuple[float, ...], f: float, y: float, c: float) -> None:
        m, _, lo, hi = old
        self._step_stack((seen - m) / self._unit(), f, (lo, hi), y, min(c, HEAVY))

    def _unit(self) -> float:
        return 1.0 if self.loss in MARGIN or self.loss in LOG_LINK else self.labels.U

    def _step_stack(self, v: Vector, f: float, hull: tuple[float, float], y: float, c: float) -> None:
        """A Newton step of the stack from its inputs v and its score f."""
        f = cut(f, *hull) if self.loss in LOG_LINK else f
        if self.loss in KINKED:
            self.stack_weight += c
            at = value(self.loss, cut(f, *hull), y, self.tau)
            self.mean_loss += (c / self.stack_weight) * (at - self.mean_loss)
        g, b = stack_slope(self.labels, f, y, self.mean_loss)
        Pv = self.P @ v
        d = 1.0 + c * b * max(float(v @ Pv), 0.0)
        self.u = self.u - (c * g / d) * Pv
        self.P = self.P - (c * b / d) * np.outer(Pv, Pv)
        if not (np.diag(self.P) > 0).all():
            self.P = np.eye(self.columns) / RIDGE

    def step_scales(self, slots: list[int], v: Vector, x: Vector, x0: Vector, s: Vector, y: float, c: float) -> None:
        L = self.labels
        psi, kappa = L.psi, L.kappa
        A = np.zeros(self.K)
        for j, i in enumerate(slots):
            _, R, unit, _, _ = self.cells[i]
            held = unit * (self.beta * unit + R)
            A += v[j] * v[j] * np.divide(self.h, held, out=np.zeros(self.K), where=held > 0)
        A = c * kappa * (A + self.h / (self.beta + self.R0))
        a = np.array([c * implicit(L, s[k], y, A[k]) for k in range(self.K)])
        for j, i in enumerate(slots):
            cell = self.cells[i]
            cell[0], cell[1] = self._stepped(cell[0], cell[1], cell[2], cell[4], x[j], a * v[j], psi, kappa)
            cell[4] = float(self.kind(kappa))
        self.z0, self.R0 = self._stepped(self.z0, self.R0, 1.0, self.kappa0, x0, a, psi, kappa, np.float64)
        self.kappa0 = kappa

    def _stepped(
        self,
        z: Vector,
        R: Vector,
        s: float,
        own: float,
        x: Vector,
        g: Vector,
        psi: float,
        kappa: float,
        kind: type[np.floating[Any]] | None = None,
    ) -> tuple[Vector, Vector]:
        kind = self.kind if kind is None else kind
        new = np.maximum(np.sqrt(R * R + (g / psi) ** 2).astype(kind).astype(np.float64), R)
        if self.loss in KINKED:
            sigma = s * ((self.beta * s + new) / kappa - (self.beta * s + R) / own) / self.h
        else:
            sigma = s * (new - R) / self.h
        return (z + (g - sigma * x)).astype(kind).astype(np.float64), new
