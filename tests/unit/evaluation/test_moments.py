"""Sums over rows, and the interval of functions of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ftprl.evaluation.moments import Metric, Moments


def test_the_interval_of_a_mean_is_that_of_the_central_limit() -> None:
    x = np.random.default_rng(0).exponential(2.0, 1000)
    moments = Moments(2)
    for part in np.array_split(np.column_stack([x, np.ones(1000)]), 7):
        moments.add(part)
    actual = moments.metric(lambda s: s[0] / s[1], baseline=3.0)
    assert actual.value == pytest.approx(x.mean())
    assert actual.upper - actual.value == pytest.approx(1.959964 * x.std() / math.sqrt(1000), rel=1e-6)
    assert actual.value - actual.lower == pytest.approx(actual.upper - actual.value)
    assert actual.baseline == 3.0
    assert moments.metric(lambda s: s[0] / s[1], high=actual.value).upper == actual.value


def test_a_function_without_a_value_has_no_interval() -> None:
    moments = Moments(1)
    moments.add(np.zeros((3, 1)))
    actual = moments.metric(lambda s: s[0] / s[0])
    assert math.isnan(actual.value)
    assert actual.to_dict() == {"value": None, "lower": None, "upper": None, "baseline": None}
    assert Metric(1.0, 0.5, 1.5, 0.0).to_dict() == {"value": 1.0, "lower": 0.5, "upper": 1.5, "baseline": 0.0}
