"""Rows that the learner refuses, such as a label outside the loss's domain: left out where bad rows are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from ftprl.data import Batch, Position, Source
from ftprl.linear.refusal import RowRefused

T = TypeVar("T")


def around_refused(
    batch: Batch,
    work: Callable[[Batch], T],
    on_refusal: Callable[[RowRefused], None] | None,
    pass_over: Callable[[Batch], None] | None = None,
) -> Iterator[T]:
    """`work` on all rows of a batch but those it refuses; without `on_refusal` the first of those is an error.

    `pass_over` gets each row that is refused, in its turn. A refusal need not name the first bad row: `work` may check
    one thing in all rows (labels that are classes) before another (values), so rows before it can be refused as well.
    """
    while len(batch):
        try:
            yield work(batch)
            return
        except RowRefused as error:
            if on_refusal is None:
                raise
            refusal = error
        at = refusal.row - batch.first_row
        yield from around_refused(batch[:at], work, on_refusal, pass_over)
        on_refusal(refusal)
        if pass_over is not None:
            pass_over(batch[at : at + 1])
        batch = batch[at + 1 :]


def located(refusal: RowRefused, source: Source, position: Position) -> RowRefused:
    """The same refusal with the place of its row in the data; `position` is that of the first row of its batch."""
    where = source.locate(position.after(refusal.row - position.rows))
    return RowRefused(where, refusal.reason, refusal.row)
