"""The mixture of scales with labels in any unit: from scores of experts to new weights, as docs/labels.md has it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from oracles.labels_twin import KINKED, MARGIN, Labels, cut, value

Vector = NDArray[np.float64]
SHARE = 2.0**-10
FIRST_REVIEW, LAST_REVIEW = 16, 256  # rows, and their doublings between
CAUTION, SURE_GAP = 24.0, 4.0  # two classes: the odds of the majority without a lead; when a lead begins to count less


class LabelMixture:
    """The weights of the experts, the scales first, and the state that they follow from."""

    loss: str
    tau: float
    labels: Labels
    K: int
    rows: int

    def begin(self, experts: int) -> None:
        """Start with equal weights."""
        self.n = experts
        self.w = np.full(self.n, 1.0 / self.n)  # within the mixture
        self.C = self.D = self.recent_loss = 0.0
        self.stretch, self.stretch_loss, self.longest = 0, 0.0, 0
        self.lead = self.lead_gap = 0.0

    @property
    def _offset_at(self) -> int:
        return self.K + 1

    def _mixed(self, experts: Vector) -> float:
        """Return the prediction; for two classes the majority's share is added to the mixture."""
        mean = float(self.w @ experts)
        if self.loss not in MARGIN:
            return mean
        v = self._trust()
        return v * mean + (1.0 - v) * float(experts[self._offset_at])

    @property
    def weights(self) -> Vector:
        """Return the weights with which the experts predict."""
        if self.loss not in MARGIN or self.K == 1:
            return self.w
        v = self._trust()
        rest = np.zeros(self.n)
        rest[self._offset_at] = 1.0 - v
        return v * self.w + rest

    def _trust(self) -> float:
        rate = 1.0 / max(1.0, self.lead_gap / SURE_GAP)
        return 1.0 / (1.0 + CAUTION * math.exp(-rate * self.lead))

    def _follow_lead(self, advantage: float) -> None:
        v, rate = self._trust(), 1.0 / max(1.0, self.lead_gap / SURE_GAP)
        x = cut(rate * advantage, -32.0, 32.0)
        self.lead_gap += max(math.log1p(v * math.expm1(x)) - v * x, 0.0) / rate
        self.lead = max(self.lead + advantage, 0.0)

    def mix(self, p: float, experts: Vector, y: float, c: float) -> None:
        if self.loss in MARGIN:
            p = float(self.w @ experts)
            majority = float(experts[self._offset_at])
            self._follow_lead(c * (value(self.loss, majority, y, self.tau) - value(self.loss, p, y, self.tau)))
        loss, ln, label = self.loss, math.log(self.n), self.known_label(y)
        losses = np.array([c * value(loss, s, label, self.tau) for s in experts.tolist()])
        mixture_loss, low = c * value(loss, p, label, self.tau), float(losses.min())
        self.recent_loss += c * abs(value(loss, p, y, self.tau))
        self.stretch_loss += float(losses[self._offset_at])
        if self.D == 0.0:
            if mixture_loss - low > 2.0**-30 * self.recent_loss:
                self.C = self.D = mixture_loss - low
            return
        logs = np.log(self.w) + ((low - losses) / self.D) * ln
        S = float(np.exp(logs).sum())
        self.C = max(self.C + (mixture_loss - (low - math.log(S) * self.D / ln)), 0.0)
        if self.C > self.D:
            logs *= self.D / self.C
            self.D = self.C
        w = np.exp(logs - logs.max())
        w /= w.sum()
        a = min(SHARE, 1.0 / (self.rows + 1.0))
        self.w = (1.0 - a) * w + a / self.n

    def known_label(self, y: float) -> float:
        """Return the label clipped to the range that was known before it."""
        L = self.labels
        if self.loss == "poisson":
            return min(y, math.exp(L.hi))
        if self.loss == "gamma":
            return cut(y, math.exp(L.lo), math.exp(L.hi))
        return y if self.loss in MARGIN else cut(y, L.lo, L.hi)

    def _review(self, y: float, c: float) -> None:
        """Restart the rate if D comes from old labels: see docs/labels.md."""
        if self.loss not in KINKED and self.loss != "squared":
            return
        self.stretch += 1
        if self.D == 0.0 or self.stretch_loss >= self.D / 16.0:
            self.longest = max(self.longest, self.stretch) if self.D > 0 else self.longest
            self.stretch, self.stretch_loss = 0, 0.0
        elif (
            self.stretch >= 4 * max(self.longest, 4) and self.rows % max(16, 2 ** int(math.log2(self.rows)) // 64) == 0
        ):
            self.longest, self.stretch, self.stretch_loss = self.stretch, 0, 0.0
            self._begin_anew(y, c)
        if self.rows >= FIRST_REVIEW and self.rows & (self.rows - 1) == 0:
            if self.rows <= LAST_REVIEW and self.recent_loss < self.D:
                self._begin_anew(y, c)
            self.recent_loss = 0.0

    def _begin_anew(self, y: float, c: float) -> None:
        self.C = self.D = self.recent_loss = 0.0
        L = self.labels
        L.squares *= c / L.weight
        L.weight, L.since = c, min(L.since, c)
        L.mean = L.least = L.most = L.q = L.m = L.lo = L.hi = y
