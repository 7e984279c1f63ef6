"""What is known of labels in any unit, as docs/labels.md has it, and the base rate of the log loss.

Everything that is learned follows the unit and the origin of the label: an offset m (mean, quantile, log mean) from
which scores are measured, a unit U of gradients, and a range [lo, hi] to which scores are clipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from oracles.losses_twin import KINKED, LOG_LINK, MARGIN, cut

LOG_RANGE = 8.0  # Poisson: scores reach this far below the offset
SURE, FAR = 16, 4.0  # labels before one is cut; units beyond the range within which none is


@dataclass
class Labels:
    """The state of the labels so far: offset, unit and range of the scores, and the sums they follow from."""

    loss: str
    tau: float
    weight: float = 0.0
    rows: int = 0
    mean: float = 0.0
    squares: float = 0.0
    least: float = 0.0
    most: float = 0.0
    q: float = 0.0
    since: float = 0.0
    pinball: float = 0.0
    deviation: float = 0.0
    m: float = 0.0
    U: float = 0.0
    lo: float = 0.0
    hi: float = 0.0
    psi: float = 1.0
    kappa: float = 1.0
    outliers: int = 0
    odds: list[float] = field(default_factory=lambda: [0.0, 0.0, 1.0])  # log loss: L-, L+, the largest weight

    def __post_init__(self) -> None:
        if self.loss in MARGIN:
            self.U, self.lo, self.hi = 1.0, -1.0, 1.0
        if self.loss == "logistic":
            self.U, self.lo, self.hi = 1.0, -math.inf, math.inf

    @property
    def unit(self) -> float:
        """U', the unit of scores: 1 where they have none."""
        return 1.0 if self.loss in (*MARGIN, *LOG_LINK, "logistic") else self.U

    @property
    def base(self) -> float:
        """The prediction from the labels alone; with the hinge losses the class of the majority."""
        if self.loss == "logistic":
            half = 0.5 * self.odds[2]
            return math.log((self.odds[1] + half) / (self.odds[0] + half))
        return float((self.mean > 0.0) - (self.mean < 0.0)) if self.loss in MARGIN else self.m

    def known_label(self, y: float) -> float:
        """Return the label within the range that was known before it."""
        if self.loss == "poisson":
            return min(y, math.exp(self.hi))
        if self.loss == "gamma":
            return cut(y, math.exp(self.lo), math.exp(self.hi))
        return y if self.loss in MARGIN else cut(y, self.lo, self.hi)

    def believed(self, y: float) -> float:
        """Return the label that is learned: cut if it is far beyond the range, less so the more come in a row."""
        if self.loss in (*MARGIN, *LOG_LINK, "logistic") or self.rows < SURE or self.U == 0.0:
            return y
        far = max(self.most - self.least, FAR * self.U) * 2.0 ** (2 ** min(self.outliers, 9) - 1)
        learned = cut(y, self.least - far, self.most + far)
        self.outliers = self.outliers + 1 if learned != y else 0
        return learned

    def learn(self, y: float, c: float) -> None:
        """Learn a label of weight c; facts of the ranges before and after it are in `lo` and `hi`."""
        self.rows += 1
        if self.loss == "logistic":
            self.odds[int(y > 0)] += c
            self.odds[2] = max(self.odds[2], c)
            return
        self.weight += c
        d = y - self.mean
        self.mean += (c / self.weight) * d
        if self.loss in MARGIN:
            return
        first = self.rows == 1
        self.squares += c * d * (y - self.mean)
        self.least, self.most = (y, y) if first else (min(self.least, y), max(self.most, y))
        self.mean = cut(self.mean, self.least, self.most)  # rounding may leave it outside
        if self.loss in KINKED:
            self._follow_quantile(y, c, first)
        others = {"squared": self._squared, "poisson": self._poisson, "gamma": self._gamma}
        others.get(self.loss, self._kinked)()

    def _follow_quantile(self, y: float, c: float, first: bool) -> None:
        if first:
            self.q = y
            return
        self.since += c
        tau = self.tau if self.loss == "quantile" else 0.5
        d, part = y - self.q, c / self.since
        pin = (tau if d > 0 else tau - 1.0) * d
        self.pinball += part * (pin - self.pinball)
        self.deviation += part * (abs(d) - self.deviation)
        side = tau if d > 0 else tau - 1.0 if d < 0 else 0.0
        step = (2.0 * self.pinball / (tau * (1.0 - tau))) * (c / self.weight) * side
        self.q = cut(self.q + step, self.least, self.most)

    def _squared(self) -> None:
        self.m, self.lo, self.hi = self.mean, self.least, self.most
        self.U = self.psi = math.sqrt(max(self.squares / self.weight, 0.0))

    def _kinked(self) -> None:
        self.m, self.lo, self.hi, self.U = self.q, self.least, self.most, self.deviation
        huber = self.loss == "huber"
        self.psi, self.kappa = (min(1.0, self.U), max(1.0, self.U)) if huber else (1.0, self.U)

    def _poisson(self) -> None:
        self.m = math.log(self.mean) if self.mean > 0 else -math.log(self.rows + 1.0)
        self.U = self.mean
        self.lo = self.m - LOG_RANGE
        self.hi = max(self.m, math.log(self.most)) if self.most > 0 else self.m

    def _gamma(self) -> None:
        self.m, self.U = math.log(self.mean), 1.0
        self.lo, self.hi = math.log(self.least), math.log(self.most)
