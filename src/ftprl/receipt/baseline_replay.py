"""The baseline once more: each label predicted from those before it alone, in NumPy, some rows at a time."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.losses import ScalarLoss

Vector = NDArray[np.float64]


@final
class BaselineReplay:
    """The total loss of predicting each label from those before it, and the least loss there is (docs/events.md)."""

    def __init__(self, loss: ScalarLoss, classes: int = 0) -> None:
        self.loss = loss
        self.total = self.least = 0.0
        self._rows = 0
        self._weight = self._positive = self._sum = 0.0
        self._tau = loss.tau if loss.baseline == "quantile" and loss.tau is not None else 0.5
        self._classes = np.zeros(classes)  # the weight of each
        self._quantile = self._since = self._pinball = self._low = self._high = 0.0

    def learn(self, y: Vector, weight: Vector) -> Vector:
        """Predict and then learn labels, all of them with a weight; returns the loss of each."""
        losses = self.loss.arrays(self._scores(y, weight), y)[0]
        self.total += float(np.sum(weight * losses))
        if self.loss.baseline == "log_mean":
            some = y > 0
            own = y[some]
            self.least += float(np.sum(weight[some] * self.loss.arrays(np.log(own), own)[0]))
        self._rows += len(y)
        return losses

    def _scores(self, y: Vector, weight: Vector) -> Vector:
        kind = self.loss.baseline
        if kind == "class_rates":
            return np.array([self._count(int(a), c) for a, c in zip(y.tolist(), weight.tolist(), strict=True)])
        if kind in ("median", "quantile"):
            return np.array([self._follow(a, c) for a, c in zip(y.tolist(), weight.tolist(), strict=True)])
        n, self._weight = _before(self._weight, weight)
        if kind in ("base_rate", "majority"):
            positive, self._positive = _before(self._positive, np.where(y > 0, weight, 0.0))
            if kind == "majority":
                return np.sign(positive - (n - positive))
            return np.asarray(np.log((positive + 0.5) / (n - positive + 0.5)))
        sums, self._sum = _before(self._sum, weight * y)
        mean = np.divide(sums, n, out=np.zeros_like(sums), where=n > 0)
        if kind == "mean":
            return mean
        rows = self._rows + np.arange(len(y))
        return np.where(mean > 0, np.log(np.where(mean > 0, mean, 1.0)), -np.log(rows + 1.0))

    def _count(self, y: int, c: float) -> float:
        """The logarithm of the share of a class among those met, or of what is left for each of the others."""
        own, met, most = float(self._classes[y]), int(np.count_nonzero(self._classes)), len(self._classes)
        total = self._weight + 0.5 * (met + (met < most))
        self._classes[y] += c
        self._weight += c
        return math.log((own + 0.5) / total if own > 0.0 else 0.5 / total / (most - met))

    def _follow(self, y: float, c: float) -> float:
        """The running quantile before a label, and one step towards that."""
        before, tau = self._quantile, self._tau
        self._weight += c
        if self._weight == c:
            self._quantile = self._low = self._high = y
            return before
        self._low, self._high = min(self._low, y), max(self._high, y)
        self._since += c
        d = y - before
        self._pinball += (c / self._since) * (max(tau * d, (tau - 1.0) * d) - self._pinball)
        step = 2.0 * self._pinball / (tau * (1.0 - tau)) * (c / self._weight)
        moved = before + step * (tau if d > 0 else tau - 1.0 if d < 0 else 0.0)
        self._quantile = min(max(moved, self._low), self._high)
        return before

    def to_dict(self, loss: float, weight: float) -> dict[str, float | None]:
        """As a certificate states it."""
        known = math.isfinite(self.total)
        return {"loss": loss, "weight": weight, "baseline": self.total if known else None, "least": self.least}


def _before(start: float, terms: Vector) -> tuple[Vector, float]:
    """The running sum before each term, from `start` on, and after the last."""
    sums = np.cumsum(np.concatenate([[start], terms]))
    return sums[:-1], float(sums[-1])
