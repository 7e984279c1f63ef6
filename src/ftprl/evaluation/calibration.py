"""Calibration: mean prediction against mean label, by size of the prediction."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np

from ftprl.evaluation.moments import NORMAL_95, Metric
from ftprl.evaluation.predictions import Vector
from ftprl.losses import ScalarLoss

BINS = 20


@final
class CalibrationBin(NamedTuple):
    """Rows with predictions between two edges: their weight, mean prediction, and mean label with its interval."""

    low: float
    high: float
    weight: float
    prediction: float
    label: float
    lower: float
    upper: float


@final
class CalibrationTable(NamedTuple):
    """The bins that have rows; `by_chance` is the calibration error to expect of perfect predictions."""

    bins: tuple[CalibrationBin, ...]
    by_chance: float

    def error(self) -> Metric:
        """Return the expected calibration error: the weighted mean distance between mean prediction and mean label.

        Its baseline is the error that perfect predictions would have by chance. The interval ignores that distances are
        biased upwards; its lower end is at least 0.
        """
        total = sum(one.weight for one in self.bins)
        value = sum(one.weight * abs(one.prediction - one.label) for one in self.bins) / total
        variance = sum((one.weight / total * (one.upper - one.lower) / (2.0 * NORMAL_95)) ** 2 for one in self.bins)
        far = NORMAL_95 * math.sqrt(variance)
        return Metric(value, max(0.0, value - far), value + far, self.by_chance)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        return {"bins": [one._asdict() for one in self.bins], "by_chance": self.by_chance}


@final
class CalibrationBins:
    """Sums of rows by size of their prediction, in twentieths of [0, 1] or of the first rows' range."""

    def __init__(self, loss: ScalarLoss) -> None:
        self._is_probability = loss.is_probabilistic
        self._edges: Vector | None = np.linspace(0.0, 1.0, BINS + 1)[1:-1] if self._is_probability else None
        self._sums = np.zeros((BINS, 6))  # weight, squared weight, prediction, label, squared residual, p (1 - p)
        self._ends = (math.inf, -math.inf)

    def add(self, predictions: Vector, y: Vector, weight: Vector) -> None:
        """Add rows."""
        if not len(y):
            return
        if self._edges is None:
            self._edges = np.unique(np.quantile(predictions, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
        label = (y > 0.0).astype(np.float64) if self._is_probability else y
        where = np.searchsorted(self._edges, predictions, side="left")
        columns = (weight, weight**2, weight * predictions, weight * label)
        spread = (weight**2 * (label - predictions) ** 2, weight**2 * predictions * (1.0 - predictions))
        for k, values in enumerate((*columns, *spread)):
            self._sums[:, k] += np.bincount(where, values, BINS)
        self._ends = min(self._ends[0], float(predictions.min())), max(self._ends[1], float(predictions.max()))

    def table(self) -> CalibrationTable | None:
        """Return the bins; None before the first row."""
        if self._edges is None:
            return None
        outer = (0.0, 1.0) if self._is_probability else self._ends
        edges = [outer[0], *self._edges.tolist(), outer[1]]
        bins, chance = [], 0.0
        for k, (weight, _, predicted, label, spread, noise) in enumerate(self._sums.tolist()):
            if weight > 0.0:
                half = NORMAL_95 * math.sqrt(spread) / weight
                mean = label / weight
                bins.append(
                    CalibrationBin(edges[k], edges[k + 1], weight, predicted / weight, mean, mean - half, mean + half)
                )
                chance += math.sqrt(2.0 / math.pi * max(noise, 0.0))
        return CalibrationTable(tuple(bins), chance / float(self._sums[:, 0].sum()))
