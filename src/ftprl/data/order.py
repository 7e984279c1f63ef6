"""The order in which rows are learned: as they arrive, or at random (docs/order.md)."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import RowOrder
from ftprl.data.batch import Batch

WAITING = 1 << 17  # rows that wait at most, by default
WAITING_BYTES = 256 << 20  # that they take at most, 24 for a row and 8 for a feature (12 in double precision)
AT_ONCE = 1 << 14  # rows that leave together at most
Rows = NDArray[np.int64]


class Stage(IntEnum):
    """What a row is learned for; the numbers are those of src/core/order/row_order.hpp.

    In random order rows that do not wait are PASSING. Those that wait are learned last, in four quarters: the end of
    the first half is COMPARED with the rows that are checked then, and the LAST_QUARTER is a random draw from all rows.
    """

    PASSING = 0
    FIRST_HALF = 1
    COMPARED = 2
    THIRD_QUARTER = 3
    LAST_QUARTER = 4


@final
class Due(NamedTuple):
    """Rows to learn now, and their numbers in the data."""

    batch: Batch
    numbers: Rows
    stage: Stage


class Order(Protocol):
    """What rows are passed to when they arrive, and taken from when they are to be learned."""

    is_random: bool

    @property
    def has_overflowed(self) -> bool:
        """True if there were more rows than may wait, so that some were learned in their own order."""

    def add(self, batch: Batch) -> None:
        """Add rows that have arrived."""

    def finish(self) -> None:
        """Note that the data is over."""

    def take(self, most: int) -> Due | None:
        """Return the next rows to learn, at most `most`; None when more have to arrive."""

    def checked(self) -> list[Batch]:
        """Return the rows that are predicted once half of the last phase is learned; none of these is learned then."""


@final
class GivenOrder:
    """Rows as they arrive."""

    is_random = False
    has_overflowed = False

    def __init__(self) -> None:
        self._batch: Batch | None = None
        self._at = 0

    def add(self, batch: Batch) -> None:
        """Add rows, which are all to be learned at once."""
        self._batch, self._at = batch, 0

    def finish(self) -> None:
        """Do nothing: no row waits."""

    def take(self, most: int) -> Due | None:
        """Return the next rows of the batch."""
        if self._batch is None or self._at == len(self._batch):
            self._batch = None  # its memory serves the next one
            return None
        end = min(len(self._batch), self._at + most)
        rows, self._at = self._batch[self._at : end], end
        return Due(rows, rows.first_row + np.arange(len(rows)), Stage.PASSING)

    def checked(self) -> list[Batch]:
        """Return nothing."""
        return []


@final
class RandomOrder:
    """Rows in a random order that depends on the seed and on the numbers of the rows alone.

    A uniform sample of the rows waits in memory and is learned last, in random order; with fewer rows than may wait
    that is a full shuffle. Each row gets 64 random bits, and waits while they are below a limit that is halved whenever
    too many wait.

    >>> order = RandomOrder(seed=0, waiting=100, float64=False)
    """

    is_random = True

    def __init__(self, seed: int, waiting: int, *, float64: bool) -> None:
        self._core = RowOrder(seed, waiting, WAITING_BYTES, float64)
        self._kind = np.float64 if float64 else np.float32

    def add(self, batch: Batch) -> None:
        """Add rows; some are copied to wait, others are due."""
        values: NDArray[Any] = np.ascontiguousarray(batch.values, self._kind)
        indptr = np.ascontiguousarray(batch.indptr)
        self._core.add(indptr, batch.indices, values, batch.y, batch.weight, batch.first_row)

    def finish(self) -> None:
        """Put the rows that wait into the order of the last phase."""
        self._core.finish()

    def take(self, most: int) -> Due | None:
        """Return the next rows that are due, all of one stage."""
        taken = self._core.take(min(most, AT_ONCE))
        if taken is None:
            return None
        stage, arrays = taken
        return Due(_batch(*arrays), arrays[-1], Stage(stage))

    def checked(self) -> list[Batch]:
        """Return the last rows of the data, in their order."""
        batches: list[Batch] = []
        while (start := sum(map(len, batches))) < self._core.checked_rows:
            batches.append(_batch(*self._core.checked(start, AT_ONCE)))
        return batches

    @property
    def has_overflowed(self) -> bool:
        """True if there were more rows than may wait, so that some were learned in their own order."""
        return self._core.overflowed


def _batch(
    indptr: Rows,
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    y: NDArray[np.float64],
    weight: NDArray[np.float64],
    number: Rows,
) -> Batch:
    return Batch.trusted(indptr, indices, values, y, weight, 0, "", None, True)
