"""Rows on their way into rounds of several: batches that end where rounds do, made of what a source reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch, Position
from ftprl.data.remote_rows import RemoteRows
from ftprl.linear.rounds import round_end, round_ends


@final
class JoinedPosition:
    """The position of a batch that was joined of parts of others, which have their own."""

    def __init__(self, parts: list[tuple[Batch, Position, int]]) -> None:
        self._parts = parts  # rows, the position of the batch they are from, and how many of its rows come before
        self._starts = np.cumsum([0, *(len(rows) for rows, _, _ in parts)]).tolist()

    @property
    def rows(self) -> int:
        """How many rows of the source come before it."""
        return self._parts[0][1].rows + self._parts[0][2]

    def after(self, rows: int) -> Position:
        """The position that many rows further on, in the part that has the row before it."""
        number = max(0, int(np.searchsorted(self._starts, rows)) - 1)
        _, position, skipped = self._parts[min(number, len(self._parts) - 1)]
        return position.after(skipped + rows - self._starts[number])

    def parts(self, first: int, last: int) -> Iterator[Batch]:
        """The rows from number `first` up to `last`, in their parts."""
        for (rows, _, _), start in zip(self._parts, self._starts, strict=False):
            some = slice(max(first - start, 0), min(last - start, len(rows)))
            if some.start < some.stop:
                yield rows[some]

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values."""
        return self.after(0).to_dict()


def joined(parts: list[Batch]) -> Batch:
    """Batches that follow each other as one, without the names of features."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    tags = None if any(part.tags is None for part in parts) else tuple(tag for part in parts for tag in part.tags or ())
    joined = Batch.trusted(
        np.concatenate(([0], np.cumsum(lengths))).astype(np.int64),
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("indices", "values", "y", "weight")),
        first.first_row,
        first.origin,
        tags,
        True,
    )
    if first.remote is None:
        return joined
    return joined.replaced(
        remote=RemoteRows([one for part in parts if part.remote is not None for one in part.remote.slices])
    )


@final
class RoundBuffer:
    """Keeps rows until their round is whole.

    `learned` is how many rows were learned so far, `learns` which rows of a batch will be. A row that the learner
    refuses ends its round; `refused` are the numbers of those in a batch.
    """

    def __init__(
        self,
        round_rows: int,
        learned: Callable[[], int],
        learns: Callable[[Batch], NDArray[np.bool_]],
        refused: Callable[[Batch], list[int]],
    ) -> None:
        self._round_rows, self._learned, self._learns, self._refused = round_rows, learned, learns, refused

    def ends(self, batch: Batch) -> list[int]:
        """Behind which rows of a batch rounds end when it is learned next."""
        rows, learned, start = self._learns(batch), self._learned(), 0
        ends: list[int] = []
        for number in self._refused(batch):
            rows[number] = False
            ends += [start + end for end in round_ends(rows[start:number], learned, self._round_rows)]
            learned += int(rows[start:number].sum())
            start = number + 1
            ends.append(start)
        return ends + [start + end for end in round_ends(rows[start:], learned, self._round_rows)]

    def whole(self, reading: Iterable[tuple[Batch, Position]]) -> Iterator[tuple[Batch, Position]]:
        """The same rows in batches of whole rounds; what is left at the end ends its round."""
        parts: list[tuple[Batch, Position, int]] = []
        waiting = 0
        for batch, position in reading:
            parts.append((batch, position, 0))
            waiting += int(self._learns(batch).sum())
            learned = self._learned()
            if learned + waiting < round_end(learned, self._round_rows) and not self._refused(batch):
                continue
            rows = joined([part for part, _, _ in parts])
            ends = self.ends(rows)
            if not ends:
                continue
            cut = ends[-1]
            yield rows[:cut], JoinedPosition(parts)
            left = len(rows) - cut
            parts = [(batch[len(batch) - left :], position, len(batch) - left)] if left else []
            waiting = int(self._learns(parts[0][0]).sum()) if parts else 0
        if parts:
            yield joined([part for part, _, _ in parts]), JoinedPosition(parts)
