"""At which row numbers of a run something happens besides learning: progress, a receipt entry, a checkpoint.

Row numbers decide, never batches or threads, so that a run logs and keeps the same things however its data is cut.
Only checkpoints may also go by the clock, and they leave no trace in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final


def next_progress(rows: int) -> int:
    """The next row number at which progress is logged: the integer parts of 2^(k/4), four for each doubling.

    >>> [next_progress(rows) for rows in (0, 1, 4, 8, 1024)]
    [1, 2, 5, 9, 1217]
    """
    k = max(0, 4 * (rows.bit_length() - 1) - 1) if rows else 0
    while (stop := int(2.0 ** (k / 4))) <= rows:
        k += 1
    return stop


@final
class Stop(NamedTuple):
    """What happens once `row` rows of a run have been read."""

    row: int
    progress: bool
    receipt: bool
    checkpoint: bool

    @property
    def doubled(self) -> bool:
        """Whether the row is a power of two."""
        return self.row & (self.row - 1) == 0


@final
class Schedule(NamedTuple):
    """The stops of a run: progress always, a checkpoint each `checkpoint` rows, a receipt entry where `receipt` says.

    A receipt entry is part of a progress event: `receipt` is only asked at those rows.

    >>> Schedule(checkpoint=10).after(9)
    Stop(row=10, progress=False, receipt=False, checkpoint=True)
    """

    checkpoint: int | None = None
    receipt: Callable[[int], bool] | None = None

    def after(self, rows: int) -> Stop:
        """The first stop after so many rows."""
        progress = next_progress(rows)
        checkpoint = None if self.checkpoint is None else (rows // self.checkpoint + 1) * self.checkpoint
        row = progress if checkpoint is None else min(progress, checkpoint)
        is_progress = row == progress
        return Stop(
            row,
            progress=is_progress,
            receipt=is_progress and self.receipt is not None and self.receipt(row),
            checkpoint=row == checkpoint,
        )
