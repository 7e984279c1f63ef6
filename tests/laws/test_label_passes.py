"""Several passes follow the unit and origin of labels as one pass does: number of passes, weights, predictions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.training import Run, train
from laws.label_streams import linear_stream

UNIT_FREE = ("squared", "absolute", "quantile")  # Huber loss has a unit of its own
SCALES: dict[str, dict[str, Any]] = {"one": {"scale": 0.3}, "eight": {}}


def stream(seed: int, loss: str) -> Batch:
    """Return rows with dense numbers for the stack, some of which are held out in several passes."""
    sparse = linear_stream(seed, loss, rows=400)
    rng = np.random.default_rng(seed)
    rows: list[list[tuple[int, float]]] = []
    for r in range(len(sparse)):
        own = slice(sparse.indptr[r], sparse.indptr[r + 1])
        rows.append(
            [*zip(sparse.indices[own].tolist(), sparse.values[own].tolist(), strict=True), (12, 5.0 + rng.normal())]
        )
    return Batch.from_rows(rows, sparse.y, sparse.weight, float64=True)


def trained(
    batch: Batch, loss: str, passes: int, options: dict[str, Any], *, float64: bool = True
) -> tuple[Run, np.ndarray]:
    more = {"tau": 0.7} if loss == "quantile" else {}
    run = train(batch, loss=loss, bits=4, passes=passes, float64=float64, **options, **more)
    return run, run.model.engine.score(batch)


@pytest.mark.parametrize(("receipt", "float64"), [(False, False), (True, True)])
@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("loss", UNIT_FREE)
def test_labels_times_a_power_of_two_multiply_the_scores_of_several_passes_to_the_bit(
    loss: str, scales: str, receipt: bool, float64: bool
) -> None:
    """Labels times a power of two, with held-out rows, which choose the number of passes, and with a receipt."""
    options = {**SCALES[scales], "receipt": receipt}
    for seed, power in ((1, -37), (2, 10), (3, 60)):
        batch, factor = stream(seed, loss), 2.0**power
        one, scores = trained(batch, loss, 4, options, float64=float64)
        other, scaled = trained(replace(batch, y=factor * batch.y), loss, 4, options, float64=float64)
        np.testing.assert_array_equal(factor * scores, scaled)
        assert one.best_pass == other.best_pass
        assert (one.best_pass is None) == receipt
        by_unit = factor * factor if loss == "squared" else factor
        assert [by_unit * held.loss for held in one.reviews] == [held.loss for held in other.reviews]
        _, once = trained(batch, loss, 1, options, float64=float64)
        assert (once != scores).any()


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(("factor", "spreads"), [(1.0, 1000.0), (3.0, 0.0), (1.0 / 3.0, -20.0)])
@pytest.mark.parametrize("loss", UNIT_FREE)
def test_the_scores_of_several_passes_follow_origin_and_unit(
    loss: str, factor: float, spreads: float, scales: str
) -> None:
    """Scores of several passes follow the origin within 1e-6 of the spread of the labels."""
    batch = stream(4, loss)
    spread = float(batch.y.std())
    one, scores = trained(batch, loss, 3, SCALES[scales])
    other, moved = trained(replace(batch, y=factor * batch.y + spreads * spread), loss, 3, SCALES[scales])
    assert one.best_pass == other.best_pass
    np.testing.assert_allclose(moved, factor * scores + spreads * spread, rtol=0, atol=1e-6 * factor * spread)


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("factor", [1024.0, 3.0, 1e-3])
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_the_scores_of_several_passes_over_counts_shift_by_the_logarithm(loss: str, factor: float, scales: str) -> None:
    batch = stream(5, loss)
    y = np.where(np.arange(len(batch)) == np.flatnonzero(batch.weight > 0)[0], 2.0, batch.y)  # no unit before it
    one, scores = trained(replace(batch, y=y), loss, 3, SCALES[scales])
    other, moved = trained(replace(batch, y=factor * y), loss, 3, SCALES[scales])
    assert one.best_pass == other.best_pass
    np.testing.assert_allclose(moved, scores + math.log(factor), rtol=0, atol=1e-6)
