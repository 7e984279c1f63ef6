"""The curves of a run equal its logged numbers."""

from __future__ import annotations

import math

import numpy as np

from ftprl.draw import Series
from ftprl.runlog import plots
from ftprl.runlog.reader import RunLog
from oracles.events import finished, progress, receipt, start


def test_the_lines_of_the_regret_are_those_of_the_receipts_up_to_the_end() -> None:
    panel = plots.regret(RunLog.from_events(finished()))
    assert panel is not None
    assert panel.log is True
    rows = [2**k for k in range(10)] + [1000]
    log = [receipt(n) for n in rows[:-1]] + [receipt(512, 1.0)]
    assert [s.name for s in panel.series] == list(plots.LINES.values())
    for s, key in zip(panel.series, plots.LINES, strict=True):
        np.testing.assert_array_equal(s.x, rows)
        np.testing.assert_array_equal(s.y, [one[key] for one in log])


def test_a_regret_below_zero_is_not_put_on_a_logarithmic_axis() -> None:
    events = [start(), *(progress(2**k, receipt={"regret": -1.0 * k, "bound": 5.0}) for k in range(5, 10))]
    panel = plots.regret(RunLog.from_events(events))
    assert panel is not None
    assert panel.log == "x"
    assert [s.name for s in panel.series] == ["regret (linearised)", "proved bound"]


def test_no_receipt_no_curve() -> None:
    assert plots.regret(RunLog.from_events([start(), progress(3, receipt=None)])) is None
    assert plots.loss(RunLog.from_events([start()])) is None


def test_the_mean_begins_anew_with_each_pass() -> None:
    events = [
        progress(100),
        {"event": "pass", "rows": 120, "pass": 1, "loss": 0.4},
        progress(200, **{"pass": 2}),
        {"event": "pass", "rows": 240, "pass": 2, "loss": 0.3},
    ]
    panel = plots.loss(RunLog.from_events(events))
    assert panel is not None
    mean = next(series for series in panel.series if series.name == "mean of the pass")
    np.testing.assert_array_equal(mean.x, [100, 120, 200, 200, 240])
    np.testing.assert_array_equal(mean.y, [0.51, 0.4, math.nan, 0.505, 0.3])
    assert panel.vlines == [(120.0, "pass 2")]


def test_the_axis_shows_where_the_loss_settles() -> None:
    rows = [2**k for k in range(14)]
    events = [progress(n, loss=0.5, since=0.5 + (100.0 if n < 32 else 1.0 / n)) for n in rows]
    panel = plots.loss(RunLog.from_events(events))
    assert panel is not None
    assert panel.ylim is not None
    assert panel.xlim == (10.0, 8192.0)
    assert 0.4 < panel.ylim[0] < 0.5 < panel.ylim[1] < 1.0


def test_the_baseline_is_drawn_beside_the_loss() -> None:
    events = [progress(100), progress(200), {"event": "pass", "rows": 240, "pass": 1, "loss": 0.3, "baseline": 0.6}]
    panel = plots.loss(RunLog.from_events(events))
    assert panel is not None
    baseline = next(series for series in panel.series if series.name.startswith("baseline"))
    assert isinstance(baseline, Series)
    assert baseline.dashed
    np.testing.assert_array_equal(baseline.x, [100, 200, 240])
    np.testing.assert_array_equal(baseline.y, [0.625, 0.625, 0.6])
    older = [{k: v for k, v in event.items() if "baseline" not in k} for event in events]
    panel = plots.loss(RunLog.from_events(older))
    assert panel is not None
    assert not any("baseline" in series.name for series in panel.series)
