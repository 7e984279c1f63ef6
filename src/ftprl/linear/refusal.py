"""Rows that the learner refuses: one line that names the row and the reason."""

from __future__ import annotations

from typing import final

from ftprl._core import RowError
from ftprl.data import Batch
from ftprl.errors import InvalidInput


@final
class RowRefused(InvalidInput):
    """A row that cannot be learned, for a `reason`; `row` is its number in the stream."""

    def __init__(self, where: str, reason: str, row: int) -> None:
        super().__init__(f"{where}: {reason}.", option="classes")
        self.reason, self.row = reason, row


def refusal(batch: Batch, error: ValueError) -> InvalidInput:
    """What to raise for an error of the core in a batch."""
    where = f"{batch.origin}: " if batch.origin else ""
    if isinstance(error, RowError):
        return RowRefused(f"{where}row {error.row}", str(error), error.row)
    return InvalidInput(f"{where}{error}.")
