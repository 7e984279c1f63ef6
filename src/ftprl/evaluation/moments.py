"""Sums over rows, and intervals of functions of them by the central limit theorem and the delta method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from ftprl.evaluation.predictions import Vector

NORMAL_95 = 1.959963984540054  # the 97.5 % quantile of the normal distribution


@final
class Metric(NamedTuple):
    """A number with its 95 % interval, for independent rows, and the value of the base rate alone."""

    value: float
    lower: float
    upper: float
    baseline: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the metric as JSON values."""
        return {name: _finite(value) for name, value in self._asdict().items()}


def _finite(value: float | None) -> float | None:
    """Return the value, or None if it is not finite."""
    return None if value is None or not math.isfinite(value) else value


@final
class Moments:
    """The sums of several numbers per row, and the sums of their products.

    >>> moments = Moments(2)
    >>> moments.add(np.array([[1.0, 1.0], [0.0, 1.0]]))
    >>> moments.metric(lambda s: s[0] / s[1]).value
    0.5
    """

    def __init__(self, width: int) -> None:
        self.rows = 0
        self.sums = np.zeros(width)
        self._products = np.zeros((width, width))

    def add(self, numbers: Vector) -> None:
        """Add rows, one per row of the array."""
        self.rows += len(numbers)
        self.sums += numbers.sum(axis=0)
        self._products += numbers.T @ numbers

    def metric(self, function: Callable[[Vector], float], baseline: float | None = None, **cut: float) -> Metric:
        """Return a smooth function of the sums with its interval, cut to [`low`, `high`]."""
        value = _safe(function, self.sums)
        if not math.isfinite(value):
            return Metric(math.nan, math.nan, math.nan, baseline)
        mean = self.sums / max(1, self.rows)
        spread = self._products - self.rows * np.outer(mean, mean)
        slope = np.array([self._slope(function, k) for k in range(len(self.sums))])
        far = NORMAL_95 * math.sqrt(max(0.0, float(slope @ spread @ slope)))
        lower, upper = max(value - far, cut.get("low", -math.inf)), min(value + far, cut.get("high", math.inf))
        return Metric(value, lower, upper, baseline)

    def _slope(self, function: Callable[[Vector], float], k: int) -> float:
        """Return the derivative in the k-th sum."""
        step = 1e-6 * max(abs(float(self.sums[k])), math.sqrt(float(self._products[k, k])), 1e-300)
        up, down = self.sums.copy(), self.sums.copy()
        up[k] += step
        down[k] -= step
        return (_safe(function, up) - _safe(function, down)) / (2.0 * step)


def _safe(function: Callable[[Vector], float], sums: Vector) -> float:
    """Return the function's value, NaN if it has none, such as the precision when nothing was predicted positive."""
    with np.errstate(all="ignore"):
        return float(function(sums))
