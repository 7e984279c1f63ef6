"""Reading files of events: robust for every order, cut and content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.errors import BadFormat
from ftprl.runlog.events import read_events
from ftprl.runlog.reader import RunLog, number, numbers
from oracles.events import any_events, finished


def progress(rows: Any, **more: Any) -> dict[str, Any]:
    return {"event": "progress", "rows": rows, "pass": 1, "seconds": rows / 100, "loss": 1.0 / rows, **more}


def test_a_finished_run() -> None:
    log = RunLog.from_events(finished())
    assert log.status == "finished"
    assert [p.rows for p in log.points] == sorted(p.rows for p in log.points)
    assert log.rows == 1000
    assert log.progressive == pytest.approx(0.5)
    assert log.receipt["bound"] == log.points[-1].receipt["bound"] + 1.0, "the end has the last word"
    assert log.receipt["shared.regret"] == -3.0
    assert log.keeps_receipt is True
    assert all(n > 0 for n, _, _ in log.calibration)


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ({"event": "end", "rows": 2}, "finished"),
        ({"event": "error", "rows": 2, "message": "no"}, "failed"),
        ({"event": "checkpoint", "rows": 2}, "running"),
    ],
)
def test_the_state_is_that_of_the_last_event(last: dict[str, Any], status: str) -> None:
    log = RunLog.from_events([{"event": "start", "rows": 0}, progress(1), last])
    assert log.status == status
    assert log.error == ("no" if status == "failed" else None)


def test_nothing_is_waiting() -> None:
    log = RunLog.from_events([])
    assert (log.status, log.rows, log.speed, log.progressive) == ("waiting", 0, None, None)


def test_events_behind_the_checkpoint_of_a_killed_run_were_learned_again() -> None:
    events = [
        {"event": "start", "rows": 0, "seconds": 0.0},
        progress(100),
        progress(200, loss=9.0),
        {"event": "resume", "rows": 150, "seconds": 0.0},
        progress(200, loss=2.0),
        progress(300),
    ]
    log = RunLog.from_events(events)
    assert [(p.rows, p.session) for p in log.points] == [(100, 0), (200, 1), (300, 1)]
    assert log.points[1].loss == 2.0
    assert log.points[1].seconds == pytest.approx(4.0), "the clock goes on where the first stretch ended"


def test_of_two_runs_in_a_file_the_last_counts() -> None:
    log = RunLog.from_events([*finished(), {"event": "start", "rows": 0, "seconds": 0.0}, progress(7)])
    assert [p.rows for p in log.points] == [7]
    assert log.status == "running"
    assert not log.receipt


def test_progressive_is_that_of_the_first_pass() -> None:
    events = [progress(10), {"event": "pass", "rows": 12, "pass": 1, "loss": 0.3}, {**progress(20), "pass": 2}]
    assert RunLog.from_events(events).progressive == 0.3


@given(st.one_of(st.none(), st.booleans(), st.text(), st.integers(), st.floats(), st.lists(st.integers())))
def test_a_number_is_one_or_none(value: Any) -> None:
    actual = number(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e-100 <= abs(value) <= 1e100:
        assert actual == float(value)
    else:
        assert actual in (None, 0.0)


def test_numbers_of_a_mapping_and_of_those_within() -> None:
    assert numbers({"a": 1, "b": {"c": 2.0, "d": "x"}, "e": None}) == {"a": 1.0, "b.c": 2.0}
    assert numbers([1, 2]) == {}


@given(any_events())
@settings(max_examples=60, deadline=None)
def test_any_events_are_read(events: list[dict[str, Any]]) -> None:
    log = RunLog.from_events(events)
    rows = [p.rows for p in log.points]
    assert rows == sorted(set(rows))
    assert all(p.rows > 0 for p in log.points)
    assert (log.status == "waiting") == (not events)


def test_of_very_many_events_some_are_kept() -> None:
    start = {"event": "start", "rows": 0, "seconds": 0.0}
    progress = [{"event": "progress", "rows": n, "loss": 0.5, "seconds": n / 100} for n in range(1, 100_001)]
    log = RunLog.from_events([start, *progress])
    rows = [point.rows for point in log.points]
    assert (len(rows), rows[:500], rows[-1], log.rows) == (1000, list(range(1, 501)), 100_000, 100_000)
    assert rows == sorted(set(rows))


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(BadFormat, match=r"/dev/zero:1: expected an event in a line of less than 16777216 characters"):
        read_events("/dev/zero")
