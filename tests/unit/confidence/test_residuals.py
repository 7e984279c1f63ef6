"""The residuals of a regression run: bins against an independent form, summaries against NumPy, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftprl
from ftprl._core import Monitor
from ftprl.confidence import ResidualSummary, RunMonitor
from ftprl.report import page
from oracles.residuals_twin import PREDICTION_BINS, RESIDUAL_BINS, binned

HEAD = 10


def monitored(scores: Any, y: Any, weight: Any, loss: str = "squared", parts: int = 1) -> Monitor:
    scores, y, weight = (np.asarray(a, np.float64) for a in (scores, y, weight))
    monitor = Monitor(loss, 0.05, 0.01)
    for own, label, w in zip(*(np.array_split(a, parts) for a in (scores, y, weight)), strict=True):
        zeros = np.zeros(len(own))
        monitor.add(zeros, np.zeros((len(own), 2)), own, label, w)
    return monitor


def assert_as_binned(numbers: list[float], expected: dict[str, Any]) -> None:
    _, _, _, _, _, width, first, last, top, near_zero = numbers[:HEAD]
    assert (width, first, top) == (expected["width"], expected["first"], expected["top"])
    assert last - first + 1 == len(expected["table"])
    assert near_zero == pytest.approx(expected["near_zero"], rel=1e-12)
    rest = np.array(numbers[HEAD:])
    table = rest[: 4 * PREDICTION_BINS].reshape(-1, 4)
    np.testing.assert_allclose(table[: len(expected["table"])], expected["table"], rtol=1e-9, atol=1e-9)
    assert not table[len(expected["table"]) :].any()
    for name, part in zip(("below", "above"), rest[4 * PREDICTION_BINS :].reshape(2, RESIDUAL_BINS), strict=True):
        np.testing.assert_allclose(part, expected[name], rtol=1e-12)


FLOATS = st.floats(-1e6, 1e6).map(lambda v: 0.0 if abs(v) < 1e-6 else v)


@given(rows=st.lists(st.tuples(FLOATS, FLOATS, st.floats(0.1, 9.0)), min_size=1, max_size=60), parts=st.integers(1, 5))
def test_bins_do_not_depend_on_the_order_of_growing(rows: list[tuple[float, float, float]], parts: int) -> None:
    scores, y, weight = map(list, zip(*rows, strict=True))
    numbers = monitored(scores, y, weight, parts=parts).residuals
    assert numbers == monitored(scores, y, weight).residuals
    assert_as_binned(numbers, binned(scores, scores, y, weight))
    backwards = monitored(scores[::-1], y[::-1], weight[::-1]).residuals
    assert_as_binned(backwards, binned(scores, scores, y, weight))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_summary_is_that_of_numpy(unit: float, offset: float) -> None:
    rng = np.random.default_rng(1)
    scores = unit * (offset + 3.0 * rng.normal(size=20_000))
    r = unit * rng.standard_t(3, size=20_000)
    y, weight = scores + r, rng.uniform(0.5, 2.0, size=20_000)
    monitor = RunMonitor("squared")
    monitor.add(np.zeros(20_000), np.zeros((20_000, 2)), scores, y, weight)
    summary = monitor.residuals()
    assert summary is not None
    r = y - scores
    assert summary.rows == 20_000
    assert summary.weight == pytest.approx(weight.sum())
    assert summary.rmse == pytest.approx(np.sqrt(np.average(r**2, weights=weight)))
    assert summary.mae == pytest.approx(np.average(np.abs(r), weights=weight))
    assert summary.mean == pytest.approx(np.average(r, weights=weight), abs=1e-9 * unit)
    deviation = np.sqrt(np.cov(y, aweights=weight, ddof=0))
    assert summary.label_deviation == pytest.approx(deviation)
    assert summary.r2 == pytest.approx(1.0 - (summary.rmse / float(deviation)) ** 2)
    order = np.argsort(r)
    sums = np.cumsum(weight[order]) / weight.sum()
    for share, value in zip((0.05, 0.25, 0.5, 0.75, 0.95), summary.quantiles, strict=True):
        exact = float(r[order][np.searchsorted(sums, share)])
        assert value == pytest.approx(exact, rel=0.07, abs=0.02 * unit)
    assert sum(summary.bars) + sum(summary.beyond) == pytest.approx(weight.sum())
    counted, _ = np.histogram(r, bins=np.array(summary.edges), weights=weight)
    assert np.abs(counted - summary.bars).sum() < 0.05 * weight.sum()
    assert sum(group.weight for group in summary.groups) == pytest.approx(weight.sum())
    predictions = [group.prediction for group in summary.groups]
    assert predictions == sorted(predictions)
    assert 10 <= len(predictions) <= 30
    assert ResidualSummary.from_dict(json.loads(json.dumps(summary.to_dict()))) == summary


def test_a_log_link_has_bins_of_its_scores() -> None:
    rng = np.random.default_rng(2)
    scores = rng.normal(size=500)
    y = rng.poisson(np.exp(scores)).astype(np.float64)
    numbers = monitored(scores, y, np.ones(500), "poisson").residuals
    assert_as_binned(numbers, binned(scores.tolist(), np.exp(scores).tolist(), y.tolist(), [1.0] * 500))


def test_rows_that_are_not_learned_and_classes_have_none() -> None:
    some = monitored([1.0, 2.0, 3.0], [1.0, np.nan, 5.0], [1.0, 1.0, 0.0])
    assert some.residuals[0] == 1.0
    assert not Monitor("hinge", 0.05, 0.01).has_residuals
    assert RunMonitor("logistic").residuals() is None
    assert RunMonitor("squared").residuals() is None


def test_numbers_that_no_monitor_saved_are_refused() -> None:
    monitor = monitored([1.0, 2.0], [1.0, 5.0], [1.0, 1.0])
    right = monitor.residuals
    for place, value in ((7, 1e9), (6, 1e300), (5, float("nan")), (8, -1.0)):
        wrong = [*right]
        wrong[place] = value
        with pytest.raises(ValueError, match="that a monitor saved"):
            monitor.residuals = wrong
    assert monitor.residuals == right


@pytest.mark.parametrize(
    "wrong", [{}, {"rows": 3}, {"edges": [0.0]}, {"groups": [[1.0]]}, {"rmse": float("inf")}, {"bars": "x"}]
)
def test_events_of_another_version_have_no_summary(wrong: dict[str, Any]) -> None:
    monitor = RunMonitor("squared")
    monitor.add(np.zeros(9), np.zeros((9, 2)), np.arange(9.0), np.ones(9), np.ones(9))
    summary = monitor.residuals()
    assert summary is not None
    assert ResidualSummary.from_dict({**summary.to_dict(), **wrong} if wrong else {}) is None or wrong == {"rows": 3}


def rows(path: Path, count: int = 3000) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=count), rng.integers(0, 3, count)
    y = 100.0 + 5.0 * a + 3.0 * b + rng.normal(size=count)
    path.write_text("y,a,b\n" + "".join(f"{y[i]:.3f},{a[i]:.3f},c{b[i]}\n" for i in range(count)))


def test_a_regression_report_has_residuals_instead_of_calibration(tmp_path: Path) -> None:
    rows(tmp_path / "d.csv")
    result = ftprl.train(tmp_path / "d.csv", label="y", loss="squared", bits=8, receipt=True)
    summary = result.residuals
    assert summary is not None
    assert result.rmse == pytest.approx(summary.rmse)
    assert ResidualSummary.from_dict(result.events[-1]["residuals"]) == summary
    html = page(result.events, "d")
    for name in ("predicted", "residuals", "residual-distribution"):
        assert f'id="{name}"' in html
    assert '<figure id="calibration"' not in html
    assert "Calibration" not in html
    assert ">RMSE<" in html
    assert summary.r2 is not None
    assert summary.r2 > 0.8
    assert f"R² is {summary.r2:.3f}" in html


def test_a_classification_report_has_none(tmp_path: Path) -> None:
    ftprl.data.clicks.generate(500, seed=1, path=tmp_path / "c.vw")
    result = ftprl.train(tmp_path / "c.vw", bits=10, receipt=True)
    html = page(result.events, "c")
    assert result.residuals is None
    assert 'id="predicted"' not in html
    assert 'id="calibration"' in html
    assert all("residuals" not in event for event in result.events)


def test_a_resumed_run_has_the_residuals_of_an_uninterrupted_one(tmp_path: Path) -> None:
    rows(tmp_path / "d.csv")
    options: dict[str, Any] = {"label": "y", "loss": "squared", "bits": 8}
    whole = ftprl.train(tmp_path / "d.csv", **options)
    ftprl.train(tmp_path / "d.csv", checkpoint=tmp_path / "part", every=1300, **options)
    resumed = ftprl.train(tmp_path / "d.csv", resume=tmp_path / "part", output=tmp_path / "m")
    assert resumed.events[0]["event"] == "resume"
    assert resumed.events[0]["rows"] == 2600
    assert resumed.residuals == whole.residuals
