"""What a file of events says: sound for every order, cut and content."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.runlog.reader import number, numbers, tell
from oracles.events import any_events, finished


def progress(rows: Any, **more: Any) -> dict[str, Any]:
    return {"event": "progress", "rows": rows, "pass": 1, "seconds": rows / 100, "loss": 1.0 / rows, **more}


def test_a_finished_run() -> None:
    told = tell(finished())
    assert told.status == "finished"
    assert [p.rows for p in told.points] == sorted(p.rows for p in told.points)
    assert told.rows == 1000
    assert told.progressive == pytest.approx(0.5)
    assert told.receipt["bound"] == told.points[-1].receipt["bound"] + 1.0, "the end has the last word"
    assert told.receipt["shared.regret"] == -3.0
    assert told.keeps_receipt is True
    assert all(n > 0 for n, _, _ in told.calibration)


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ({"event": "end", "rows": 2}, "finished"),
        ({"event": "error", "rows": 2, "message": "no"}, "failed"),
        ({"event": "checkpoint", "rows": 2}, "running"),
    ],
)
def test_the_last_event_says_where_it_stands(last: dict[str, Any], status: str) -> None:
    told = tell([{"event": "start", "rows": 0}, progress(1), last])
    assert told.status == status
    assert told.message == ("no" if status == "failed" else None)


def test_nothing_is_waiting() -> None:
    told = tell([])
    assert (told.status, told.rows, told.speed, told.progressive) == ("waiting", 0, None, None)


def test_what_a_killed_run_told_behind_its_checkpoint_was_learned_again() -> None:
    events = [
        {"event": "start", "rows": 0, "seconds": 0.0},
        progress(100),
        progress(200, loss=9.0),
        {"event": "resume", "rows": 150, "seconds": 0.0},
        progress(200, loss=2.0),
        progress(300),
    ]
    told = tell(events)
    assert [(p.rows, p.stretch) for p in told.points] == [(100, 0), (200, 1), (300, 1)]
    assert told.points[1].loss == 2.0
    assert told.points[1].seconds == pytest.approx(4.0), "the clock goes on where the first stretch ended"


def test_of_two_runs_in_a_file_the_last_counts() -> None:
    told = tell([*finished(), {"event": "start", "rows": 0, "seconds": 0.0}, progress(7)])
    assert [p.rows for p in told.points] == [7]
    assert told.status == "running"
    assert not told.receipt


def test_progressive_is_that_of_the_first_pass() -> None:
    events = [progress(10), {"event": "pass", "rows": 12, "pass": 1, "loss": 0.3}, {**progress(20), "pass": 2}]
    assert tell(events).progressive == 0.3


@given(st.one_of(st.none(), st.booleans(), st.text(), st.integers(), st.floats(), st.lists(st.integers())))
def test_a_number_is_one_or_none(value: Any) -> None:
    found = number(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 1e-100 <= abs(value) <= 1e100:
        assert found == float(value)
    else:
        assert found in (None, 0.0)


def test_numbers_of_a_mapping_and_of_those_within() -> None:
    assert numbers({"a": 1, "b": {"c": 2.0, "d": "x"}, "e": None}) == {"a": 1.0, "b.c": 2.0}
    assert numbers([1, 2]) == {}


@given(any_events())
@settings(max_examples=60, deadline=None)
def test_any_events_are_read(events: list[dict[str, Any]]) -> None:
    told = tell(events)
    rows = [p.rows for p in told.points]
    assert rows == sorted(set(rows))
    assert all(p.rows > 0 for p in told.points)
    assert (told.status == "waiting") == (not events)
