"""The numbers of a row that are summed, and the metrics of these sums, for two classes or numeric labels."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np

from ftprl.evaluation.moments import Metric, Moments
from ftprl.evaluation.predictions import Vector
from ftprl.losses import ScalarLoss

WEIGHT, LOSS, LABEL, PREDICTION, SQUARED_ERROR = range(5)
_CLASSES = 5  # then two numbers per threshold
ABSOLUTE_ERROR, SQUARED_LABEL, LEAST = 5, 6, 7


class Measures(ABC):
    """The metrics of a kind of loss, computed from sums of `width` numbers per row.

    `has_calibration` is True if predictions are means that can be compared with the labels, and labels are measured
    from `origin`.
    """

    def __init__(self, loss: ScalarLoss, width: int, has_calibration: bool) -> None:
        self.loss, self.width, self.has_calibration = loss, width, has_calibration
        self.origin = 0.0

    def of_rows(self, scores: Vector, y: Vector, weight: Vector) -> Vector:
        """Return the numbers of some rows, one row of the array each."""
        predicted, label = self.loss.mean(scores), self.label(y)
        numbers = np.zeros((len(y), self.width))
        numbers[:, WEIGHT] = 1.0
        numbers[:, LOSS] = self.loss.arrays(scores, y)[0]
        numbers[:, LABEL] = label - self.origin
        numbers[:, PREDICTION] = predicted - self.origin
        numbers[:, SQUARED_ERROR] = (predicted - label) ** 2
        self.add_columns(numbers, predicted, label)
        return np.asarray(numbers * weight[:, None])

    @abstractmethod
    def label(self, y: Vector) -> Vector:
        """Return the labels that predictions are compared with."""

    @abstractmethod
    def add_columns(self, numbers: Vector, predicted: Vector, label: Vector) -> None:
        """Write the numbers of some rows that only this kind of loss has."""

    @abstractmethod
    def metrics(self, moments: Moments, baseline: float, deviation: float = math.nan) -> dict[str, Metric]:
        """Return the metrics, given the mean loss and the mean absolute error of predicting from the labels alone."""

    def at_thresholds(self, moments: Moments) -> dict[float, dict[str, Metric]]:
        """Return the metrics of decisions at each threshold; none for labels that are numbers."""
        return {}

    @abstractmethod
    def main(self, moments: Moments) -> dict[str, Metric]:
        """Return a few metrics, for a slice."""

    def base_rate(self, sums: Vector) -> float:
        """Return the mean label; of two classes the share of positives."""
        return float(sums[LABEL] / sums[WEIGHT]) + self.origin


def measures_for(loss: ScalarLoss, thresholds: tuple[float, ...]) -> Measures:
    """Return the measures for a loss."""
    return _ClassMeasures(loss, thresholds) if loss.binary else _NumberMeasures(loss)


def _mean(k: int) -> Callable[[Vector], float]:
    """Return a function of the sums: the mean of column k."""
    return lambda s: float(s[k] / s[WEIGHT])


def _loss_name(loss: ScalarLoss) -> str:
    """Return the name of the loss in a table."""
    return "log loss" if loss.is_probabilistic else f"mean {loss.unit}"


@final
class _ClassMeasures(Measures):
    """The measures of two classes; a threshold is a probability, or a score for hinge losses."""

    def __init__(self, loss: ScalarLoss, thresholds: tuple[float, ...]) -> None:
        super().__init__(loss, _CLASSES + 2 * len(thresholds), loss.is_probabilistic)
        self._thresholds = thresholds

    def label(self, y: Vector) -> Vector:
        return (y > 0.0).astype(np.float64)

    def add_columns(self, numbers: Vector, predicted: Vector, label: Vector) -> None:
        for k, at in enumerate(self._thresholds):
            chosen = (predicted >= at).astype(np.float64)
            numbers[:, _CLASSES + 2 * k] = chosen * label
            numbers[:, _CLASSES + 2 * k + 1] = chosen

    def metrics(self, moments: Moments, baseline: float, deviation: float = math.nan) -> dict[str, Metric]:
        p = self.base_rate(moments.sums)
        results = {
            _loss_name(self.loss): moments.metric(_mean(LOSS), baseline),
            "share of positives": moments.metric(_mean(LABEL), None, low=0.0, high=1.0),
        }
        if self.has_calibration:
            results["Brier score"] = moments.metric(_mean(SQUARED_ERROR), p * (1.0 - p), low=0.0)
            results["mean prediction minus mean label"] = moments.metric(_bias, 0.0)
        return results

    def at_thresholds(self, moments: Moments) -> dict[float, dict[str, Metric]]:
        p, results = self.base_rate(moments.sums), {}
        for k, at in enumerate(self._thresholds):
            hit, chosen = _CLASSES + 2 * k, _CLASSES + 2 * k + 1
            chance = float(moments.sums[chosen] / moments.sums[WEIGHT])  # the recall of choosing as many at random
            everyone = 2.0 * p / (1.0 + p)  # the F score of calling every row positive
            results[at] = {
                "accuracy": moments.metric(
                    lambda s, h=hit, c=chosen: 1.0 - (s[c] + s[LABEL] - 2.0 * s[h]) / s[WEIGHT],  # type: ignore[misc]
                    max(p, 1.0 - p),
                    low=0.0,
                    high=1.0,
                ),
                "precision": moments.metric(lambda s, h=hit, c=chosen: s[h] / s[c], p, low=0.0, high=1.0),  # type: ignore[misc]
                "recall": moments.metric(lambda s, h=hit: s[h] / s[LABEL], chance, low=0.0, high=1.0),  # type: ignore[misc]
                "F score": moments.metric(
                    lambda s, h=hit, c=chosen: 2.0 * s[h] / (s[c] + s[LABEL]),  # type: ignore[misc]
                    everyone,
                    low=0.0,
                    high=1.0,
                ),
            }
        return results

    def main(self, moments: Moments) -> dict[str, Metric]:
        results = self.metrics(moments, math.nan)
        results.pop("Brier score", None)
        return results


@final
class _NumberMeasures(Measures):
    """The measures of numeric labels, which are measured from the first label so that large ones keep their digits."""

    def __init__(self, loss: ScalarLoss) -> None:
        super().__init__(loss, 8, has_calibration=True)
        self._is_first = True

    def label(self, y: Vector) -> Vector:
        if self._is_first and len(y):
            self.origin, self._is_first = float(y[0]), False
        return y

    def add_columns(self, numbers: Vector, predicted: Vector, label: Vector) -> None:
        numbers[:, ABSOLUTE_ERROR] = np.abs(predicted - label)
        numbers[:, SQUARED_LABEL] = (label - self.origin) ** 2
        numbers[:, LEAST] = self._least(label)

    def _least(self, y: Vector) -> Vector:
        """Return the loss of predicting each label itself, which is not 0 for likelihoods up to a constant."""
        if self.loss.link != "log":
            return np.zeros(len(y))
        positive = np.where(y > 0.0, y, 1.0)
        return np.where(y > 0.0, self.loss.arrays(np.log(positive), positive)[0], 0.0)

    def metrics(self, moments: Moments, baseline: float, deviation: float = math.nan) -> dict[str, Metric]:
        spread = _variance(moments.sums)
        results = {_loss_name(self.loss): moments.metric(_mean(LOSS), baseline)}
        if self.loss.link == "log":
            least = float(moments.sums[LEAST] / moments.sums[WEIGHT])
            name = f"mean {self.loss.unit.removesuffix(' loss')} deviance"
            deviance = moments.metric(
                lambda s: 2.0 * (s[LOSS] - s[LEAST]) / s[WEIGHT], 2.0 * (baseline - least), low=0.0
            )
            results[name] = deviance
        results["RMSE"] = moments.metric(
            lambda s: math.sqrt(max(s[SQUARED_ERROR] / s[WEIGHT], 0.0)), math.sqrt(spread), low=0.0
        )
        results["MAE"] = moments.metric(_mean(ABSOLUTE_ERROR), deviation, low=0.0)
        results["R²"] = moments.metric(lambda s: 1.0 - s[SQUARED_ERROR] / s[WEIGHT] / _variance(s), 0.0, high=1.0)
        results["mean prediction minus mean label"] = moments.metric(_bias, 0.0)
        return results

    def main(self, moments: Moments) -> dict[str, Metric]:
        results = self.metrics(moments, math.nan)
        return {name: results[name] for name in (_loss_name(self.loss), "RMSE", "mean prediction minus mean label")}


def _bias(s: Vector) -> float:
    """Return the mean prediction minus the mean label."""
    return float((s[PREDICTION] - s[LABEL]) / s[WEIGHT])


def _variance(s: Vector) -> float:
    """Return the variance of the labels."""
    mean = s[LABEL] / s[WEIGHT]
    return max(float(s[SQUARED_LABEL] / s[WEIGHT] - mean * mean), 1e-300)
