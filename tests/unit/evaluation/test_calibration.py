"""Calibration tables."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl.evaluation.calibration import CalibrationBins
from ftprl.losses import SCALAR_LOSSES


def test_probabilities_are_in_twentieths() -> None:
    bins = CalibrationBins(SCALAR_LOSSES["logistic"])
    bins.add(np.array([0.02, 0.03, 0.97]), np.array([-1.0, 1.0, 1.0]), np.array([1.0, 3.0, 2.0]))
    table = bins.table()
    assert table is not None
    low, high = table.bins
    assert (low.low, low.high, low.weight) == (0.0, pytest.approx(0.05), 4.0)
    assert (low.prediction, low.label) == (pytest.approx(0.0275), 0.75)
    assert (high.low, high.high, high.label) == (pytest.approx(0.95), 1.0, 1.0)
    assert table.error().value == pytest.approx((4 * (0.75 - 0.0275) + 2 * 0.03) / 6)
    assert low.lower < low.label < low.upper


def test_numbers_are_cut_where_the_first_rows_are() -> None:
    rng = np.random.default_rng(0)
    bins, x = CalibrationBins(SCALAR_LOSSES["squared"]), rng.normal(100, 10, 4000)
    for part in np.array_split(x, 4):
        bins.add(part, part + 1.0, np.ones(len(part)))
    table = bins.table()
    assert table is not None
    assert len(table.bins) == 20
    assert sum(one.weight for one in table.bins) == 4000
    assert all(one.label == pytest.approx(one.prediction + 1.0) for one in table.bins)
    assert (table.bins[0].low, table.bins[-1].high) == (x.min(), x.max())


def test_no_rows_no_table() -> None:
    bins = CalibrationBins(SCALAR_LOSSES["squared"])
    bins.add(np.empty(0), np.empty(0), np.empty(0))
    assert bins.table() is None
