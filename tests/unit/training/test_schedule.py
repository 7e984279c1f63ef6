"""Rows at which an action is due, held-out and refused rows: by number, not by batch."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.linear.refusal import RowRefused
from ftprl.training.holdout import held_out, numbers_of, only_scored
from ftprl.training.refused import around_refused
from ftprl.training.schedule import Schedule, Stop, next_progress


def stops(schedule: Schedule, last: int) -> list[Stop]:
    actual = [schedule.after(0)]
    while actual[-1].row < last:
        actual.append(schedule.after(actual[-1].row))
    return actual


def test_progress_is_due_four_times_a_doubling() -> None:
    rows = [stop.row for stop in stops(Schedule(), 5000)]
    assert rows == sorted({int(2 ** (k / 4)) for k in range(60) if int(2 ** (k / 4)) <= rows[-1]})
    assert all(stop.progress and not stop.receipt and not stop.checkpoint for stop in stops(Schedule(), 5000))


def test_one_schedule_has_every_kind_of_stop() -> None:
    actual = stops(Schedule(checkpoint=16, receipt=lambda rows: rows in (4, 7, 64)), 100)
    assert [stop.row for stop in actual if stop.checkpoint] == [16, 32, 48, 64, 80, 96]
    assert [stop.row for stop in actual if stop.receipt] == [4, 64]  # 7 is no progress row
    assert Stop(48, progress=False, receipt=False, checkpoint=True) in actual
    assert Stop(64, progress=True, receipt=True, checkpoint=True) in actual
    for rows in range(100):
        assert Schedule(checkpoint=16).after(rows) == next(stop for stop in stops(Schedule(16), 128) if stop.row > rows)
        assert next_progress(rows) > rows


@pytest.mark.parametrize("cut", [1, 3, 7, 100])
def test_held_out_rows_do_not_depend_on_the_cut(cut: int) -> None:
    whole = Batch.from_rows([{0: 1.0}] * 50, y=[1.0] * 50)
    held = []
    for at in range(0, 50, cut):
        part = whole[at : at + cut]
        rows = held_out(numbers_of(part), every=6, rows_before=4)
        held += [part.first_row + int(row) for row in rows]
        assert np.flatnonzero(only_scored(part, rows).weight == 0.0).tolist() == rows.tolist()
        assert (part.weight == 1.0).all()
    assert held == [row for row in range(50) if (row + 4) % 6 == 5]


def test_refused_rows_are_left_out_and_counted() -> None:
    bad = {0, 3, 4, 9}

    def work(batch: Batch) -> list[int]:
        rows = list(range(batch.first_row, batch.first_row + len(batch)))
        for row in rows:
            if row in bad:
                raise RowRefused(f"row {row}", "it is odd", row)
        return rows

    batch, refused = Batch.from_rows([()] * 10), []
    assert list(around_refused(batch, work, lambda refusal: refused.append(refusal.row))) == [[1, 2], [5, 6, 7, 8]]
    assert refused == sorted(bad)
    with pytest.raises(RowRefused, match="row 0"):
        list(around_refused(batch, work, None))


def test_rows_before_a_refused_one_may_be_refused_as_well() -> None:
    """Some checks read all rows before others do; then the first refusal is not of the first bad row."""
    bad_labels, bad_values = [2, 8], [0, 5]

    def work(batch: Batch) -> list[int]:
        rows = list(range(batch.first_row, batch.first_row + len(batch)))
        for row in (*bad_values, *bad_labels):
            if row in rows:
                raise RowRefused(f"row {row}", "it is odd", row)
        return rows

    batch, refused, passed = Batch.from_rows([()] * 10), [], []
    parts = around_refused(batch, work, lambda e: refused.append(e.row), lambda rows: passed.append(rows.first_row))
    assert list(parts) == [[1], [3, 4], [6, 7], [9]]
    assert refused == passed == [0, 2, 5, 8]
