"""Which numbers of a row are added up, and the metrics that follow from their sums: two classes, or numbers.

A loss with more classes would have a class of its own here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, final

import numpy as np

from ftprl.evaluation.moments import Metric, Moments
from ftprl.evaluation.predictions import Vector
from ftprl.losses import ScalarLoss

WEIGHT, LOSS, LABEL, PREDICTION, SQUARED_ERROR = range(5)
_CLASSES = 5  # then two numbers per threshold
ABSOLUTE_ERROR, SQUARED_LABEL, LEAST = 5, 6, 7


class Measures(Protocol):
    """What is measured for a kind of loss."""

    @property
    def width(self) -> int:
        """How many numbers a row has."""

    @property
    def has_calibration(self) -> bool:
        """Whether predictions are means, which can be compared with the labels."""

    def of_rows(self, scores: Vector, y: Vector, weight: Vector) -> Vector:
        """The numbers of some rows, one row of the array each."""

    def metrics(self, moments: Moments, baseline: float, deviation: float) -> dict[str, Metric]:
        """The metrics, given the mean loss and the mean absolute error of predicting from the labels alone."""

    def at_thresholds(self, moments: Moments) -> dict[float, dict[str, Metric]]:
        """The metrics of decisions."""

    def main(self, moments: Moments) -> dict[str, Metric]:
        """A few metrics, for a slice."""

    def base_rate(self, sums: Vector) -> float:
        """The mean label; of two classes the share of positives."""


def measures_for(loss: ScalarLoss, thresholds: tuple[float, ...]) -> Measures:
    """The measures that fit a loss."""
    return _ClassMeasures(loss, thresholds) if loss.binary else _NumberMeasures(loss)


def _mean(k: int) -> Callable[[Vector], float]:
    return lambda s: float(s[k] / s[WEIGHT])


def _loss_name(loss: ScalarLoss) -> str:
    return "log loss" if loss.is_probabilistic else f"mean {loss.unit}"


@final
class _ClassMeasures:
    """Two classes: a threshold is on the probability, or on the score of the hinge losses."""

    def __init__(self, loss: ScalarLoss, thresholds: tuple[float, ...]) -> None:
        self._loss = loss
        self._thresholds = thresholds
        self.width = _CLASSES + 2 * len(self._thresholds)
        self.has_calibration = loss.is_probabilistic

    def of_rows(self, scores: Vector, y: Vector, weight: Vector) -> Vector:
        predicted, positive = self._loss.mean(scores), (y > 0.0).astype(np.float64)
        numbers = np.empty((len(y), self.width))
        numbers[:, WEIGHT] = 1.0
        numbers[:, LOSS] = self._loss.arrays(scores, y)[0]
        numbers[:, LABEL] = positive
        numbers[:, PREDICTION] = predicted
        numbers[:, SQUARED_ERROR] = (predicted - positive) ** 2
        for k, at in enumerate(self._thresholds):
            chosen = (predicted >= at).astype(np.float64)
            numbers[:, _CLASSES + 2 * k] = chosen * positive
            numbers[:, _CLASSES + 2 * k + 1] = chosen
        return np.asarray(numbers * weight[:, None])

    def base_rate(self, sums: Vector) -> float:
        return float(sums[LABEL] / sums[WEIGHT])

    def metrics(self, moments: Moments, baseline: float, deviation: float = math.nan) -> dict[str, Metric]:
        p = self.base_rate(moments.sums)
        results = {
            _loss_name(self._loss): moments.metric(_mean(LOSS), baseline),
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
class _NumberMeasures:
    """Labels that are numbers; labels are counted from the first one, so that large ones keep their digits."""

    width = 8
    has_calibration = True

    def __init__(self, loss: ScalarLoss) -> None:
        self._loss = loss
        self._origin: float | None = None

    def of_rows(self, scores: Vector, y: Vector, weight: Vector) -> Vector:
        if self._origin is None and len(y):
            self._origin = float(y[0])
        origin = self._origin or 0.0
        predicted = self._loss.mean(scores)
        numbers = np.empty((len(y), self.width))
        numbers[:, WEIGHT] = 1.0
        numbers[:, LOSS] = self._loss.arrays(scores, y)[0]
        numbers[:, LABEL] = y - origin
        numbers[:, PREDICTION] = predicted - origin
        numbers[:, SQUARED_ERROR] = (predicted - y) ** 2
        numbers[:, ABSOLUTE_ERROR] = np.abs(predicted - y)
        numbers[:, SQUARED_LABEL] = (y - origin) ** 2
        numbers[:, LEAST] = self._least(y)
        return np.asarray(numbers * weight[:, None])

    def _least(self, y: Vector) -> Vector:
        """The loss of predicting each label itself: not 0 where a loss is a likelihood up to a constant."""
        if self._loss.link != "log":
            return np.zeros(len(y))
        positive = np.where(y > 0.0, y, 1.0)
        return np.where(y > 0.0, self._loss.arrays(np.log(positive), positive)[0], 0.0)

    def base_rate(self, sums: Vector) -> float:
        return float(sums[LABEL] / sums[WEIGHT]) + (self._origin or 0.0)

    def metrics(self, moments: Moments, baseline: float, deviation: float = math.nan) -> dict[str, Metric]:
        spread = _variance(moments.sums)
        results = {_loss_name(self._loss): moments.metric(_mean(LOSS), baseline)}
        if self._loss.link == "log":
            least = float(moments.sums[LEAST] / moments.sums[WEIGHT])
            name = f"mean {self._loss.unit.removesuffix(' loss')} deviance"
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

    def at_thresholds(self, moments: Moments) -> dict[float, dict[str, Metric]]:
        return {}

    def main(self, moments: Moments) -> dict[str, Metric]:
        results = self.metrics(moments, math.nan)
        return {name: results[name] for name in (_loss_name(self._loss), "RMSE", "mean prediction minus mean label")}


def _bias(s: Vector) -> float:
    return float((s[PREDICTION] - s[LABEL]) / s[WEIGHT])


def _variance(s: Vector) -> float:
    mean = s[LABEL] / s[WEIGHT]
    return max(float(s[SQUARED_LABEL] / s[WEIGHT] - mean * mean), 1e-300)
