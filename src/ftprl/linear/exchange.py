"""`ExchangeTotals`: how many bytes servers and readers have sent to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass
class ExchangeTotals:
    """Bytes that were moved while rounds were learned over several servers, by what they were, and the rows of these.

    `expected` is what U (6 + 12 K) + 16 K + 12 bytes for each row come to, with U the coordinates of a block per row
    and K scales.
    """

    rows: int = 0
    rounds: int = 0
    announced: int = 0
    plays: int = 0
    scores: int = 0
    slopes: int = 0
    sums: int = 0
    cells: int = 0  # of hot coordinates, with sums of a receipt
    entries: int = 0  # of rows that came from other machines, or here
    expected: int = 0
    alone: int = 0  # of rows that one process learned alone, before; not counted otherwise
    spread: int = 0  # of cells that were given to the servers then; likewise

    @property
    def bytes(self) -> int:
        """All bytes that were sent."""
        return self.announced + self.plays + self.scores + self.slopes + self.sums + self.cells + self.entries

    def to_dict(self) -> dict[str, float]:
        """As JSON values, with bytes per row."""
        rows = max(1, self.rows)
        per_row = {"bytes_per_row": self.bytes / rows, "expected_bytes_per_row": self.expected / rows}
        return {**vars(self), "bytes": self.bytes, **per_row}
