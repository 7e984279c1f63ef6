"""The metrics of each loss."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl.evaluation.measures import measures_for
from ftprl.evaluation.moments import Moments
from ftprl.losses import SCALAR_LOSSES


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
def test_every_loss_has_its_metrics(loss: str) -> None:
    kind = SCALAR_LOSSES[loss]
    measures = measures_for(kind, (0.5,))
    y = np.array([1.0, -1.0, 1.0]) if kind.binary else np.array([1.0, 2.0, 4.0])
    moments = Moments(measures.width)
    moments.add(measures.of_rows(np.array([0.5, -0.5, 0.1]), y, np.ones(3)))
    metrics = measures.metrics(moments, 9.0, 8.0)
    first = next(iter(metrics))
    assert first == ("log loss" if loss == "logistic" else f"mean {kind.unit}")
    assert metrics[first].baseline == 9.0
    assert ("RMSE" in metrics) == (not kind.binary)
    assert ("MAE" in metrics and metrics["MAE"].baseline == 8.0) == (not kind.binary)
    assert bool(measures.at_thresholds(moments)) == kind.binary
    assert measures.base_rate(moments.sums) == pytest.approx((y > 0).mean() if kind.binary else y.mean())
    assert set(measures.main(moments)) <= set(metrics)
    assert measures.has_calibration == (not kind.binary or loss == "logistic")


def test_large_labels_keep_their_digits() -> None:
    measures = measures_for(SCALAR_LOSSES["squared"], ())
    y = 1e9 + np.arange(4.0)
    moments = Moments(measures.width)
    moments.add(measures.of_rows(y + 0.5, y, np.ones(4)))
    assert measures.metrics(moments, 1.0, 1.0)["R²"].value == pytest.approx(1.0 - 0.25 / 1.25)
