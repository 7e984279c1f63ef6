"""A simple twin of the compiled baseline: each label is predicted from all labels before it, by definition."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ftprl.losses import ScalarLoss


@dataclass
class BaselineTwin:
    """The learned labels with their weights, and the totals of their loss."""

    loss: ScalarLoss
    tau: float = 0.5
    y: list[float] = field(default_factory=list)
    weight: list[float] = field(default_factory=list)
    total: float = 0.0
    least: float = 0.0
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.tau if self.loss.baseline == "quantile" else 0.5)

    def learn(self, y: float, weight: float) -> None:
        """Add the loss of predicting a label, then store the label."""
        self.total += weight * self.loss.value(self.score(), y)
        self.least += weight * self.least_of(y)
        self.y.append(y)
        self.weight.append(weight)
        self.steps.learn(y, weight)

    def score(self) -> float:
        """Return the prediction of the next label, as a score."""
        n = math.fsum(self.weight)
        positive = math.fsum(c for y, c in zip(self.y, self.weight, strict=True) if y > 0)
        mean = math.fsum(c * y for y, c in zip(self.y, self.weight, strict=True)) / n if n else 0.0
        match self.loss.baseline:
            case "base_rate":
                p = (positive + 0.5) / (n + 1.0)
                return math.log(p) - math.log((n - positive + 0.5) / (n + 1.0))
            case "majority":
                return math.copysign(1.0, 2.0 * positive - n) if 2.0 * positive != n else 0.0
            case "mean":
                return mean
            case "log_mean":
                return math.log(mean) if mean > 0.0 else -math.log(len(self.y) + 1.0)
            case _:
                return self.steps.q

    def least_of(self, y: float) -> float:
        """Return the least loss of this label over all scores."""
        if self.loss.baseline != "log_mean" or y == 0.0:
            return 0.0
        return self.loss.value(math.log(y), y)


@dataclass
class Steps:
    """A running quantile: q <- cut(q + (2 pin / (tau (1 - tau))) (c / W) (tau or tau - 1); lowest, highest label)."""

    tau: float
    q: float = 0.0
    pin: float = 0.0
    W: float = 0.0
    since: float = 0.0
    lowest: float = 0.0
    highest: float = 0.0

    def learn(self, y: float, c: float) -> None:
        """Move the quantile towards a label."""
        self.W += c
        if c == self.W:
            self.q = self.lowest = self.highest = y
            return
        self.lowest, self.highest = min(self.lowest, y), max(self.highest, y)
        self.since += c
        d, tau = y - self.q, self.tau
        self.pin += (c / self.since) * (max(tau * d, (tau - 1.0) * d) - self.pin)
        step = 2.0 * self.pin / (tau * (1.0 - tau)) * (c / self.W)
        move = tau * step if d > 0 else (tau - 1.0) * step if d < 0 else 0.0
        self.q = min(max(self.q + move, self.lowest), self.highest)
