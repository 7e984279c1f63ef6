"""Labels that arrive late: rows are predicted when they arrive, learned when their labels would have (docs/delay.md).

The rows of a batch and those that are due meanwhile are put in one order: row t is predicted, then every row whose
label arrives with row t is learned, the earliest first. A row that is only predicted has weight 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput
from ftprl.training.passes import rows_of

PREFIX = "waiting."  # of the tensors of a checkpoint
_PARTS = ("entries", "indices", "values", "y", "weight", "row", "expert_scores")
_SMALL = 4096  # rows: a smaller group is put together with the next
_AT_ONCE = 1 << 16  # rows that are learned at once at the end of the data

Rows = NDArray[np.int64]
Numbers = NDArray[np.float64]


@final
class _Group(NamedTuple):
    """Rows in the order in which their labels arrive, which is their own: their numbers, and the experts' scores."""

    batch: Batch
    row: Rows
    expert_scores: Numbers  # when the row arrived, as `Engine.learn_late` keeps them

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.row)

    def split(self, count: int) -> tuple[_Group, _Group]:
        """The first rows and the others."""
        rest = self.batch[count:] if 2 * count < self.rows else rows_of(self.batch, np.arange(count, self.rows))
        return self.at(self.batch[:count], slice(count)), self.at(rest, slice(count, None))

    def at(self, batch: Batch, rows: slice | NDArray[Any]) -> _Group:
        """Some rows, of which `batch` has the features."""
        return _Group(batch, self.row[rows].copy(), self.expert_scores[rows].copy())


@final
class Order(NamedTuple):
    """Rows in the order in which they are predicted and learned; those at `arrivals` are predicted, with weight 0.

    The experts' scores of row r are kept in row `expert_row[r]` of `expert_scores` (`Engine.learn_late`).
    """

    rows: Batch
    arrivals: NDArray[np.intp]
    expert_scores: Numbers
    expert_row: Rows
    later: _Group | None  # of those that arrive, what waits afterwards; `Waiting.keep` fills in its experts


@final
class Waiting:
    """The rows of a run that were predicted and are not yet learned.

    `delay` is after how many rows each label arrives, `width` how many numbers are kept of the experts of each.

    >>> waiting = Waiting(delay=1)
    >>> batch = Batch.from_rows([{0: 1.0}, {1: 1.0}, {2: 1.0}], y=[1, 1, 1])
    >>> order = waiting.order(batch)
    >>> order.rows.indices.tolist(), order.arrivals.tolist(), order.rows.weight.tolist()
    ([0, 1, 0, 2, 1], [0, 1, 3], [0.0, 0.0, 1.0, 0.0, 1.0])
    """

    def __init__(self, delay: int, width: int = 0) -> None:
        self._delay, self._width = delay, width
        self._groups: list[_Group] = []

    def __len__(self) -> int:
        return sum(group.rows for group in self._groups)

    def order(self, batch: Batch) -> Order:
        """The rows of a batch, to be predicted, among those that are learned meanwhile.

        Rows without a label or a weight are only predicted. Call `keep` when all is learned.
        """
        count, first = len(batch), batch.first_row
        number = first + np.arange(count, dtype=np.int64)
        is_learned = (batch.weight > 0.0) & (batch.y == batch.y)
        is_now = is_learned & (number + self._delay < first + count)
        now, later = np.flatnonzero(is_now), np.flatnonzero(is_learned & ~is_now)
        earlier = self._take(first + count)
        every = joined([batch, *(group.batch for group in earlier)])
        learned = np.concatenate([number[now], *(group.row for group in earlier)])
        times = np.concatenate([number, learned + self._delay])
        sources = np.concatenate([np.arange(count), now, np.arange(count, len(every))])
        is_arrival = np.arange(len(times)) < count
        order = np.lexsort((~is_arrival, times))
        rows = rows_of(every, sources[order])
        arrivals = np.flatnonzero(is_arrival[order])
        weight = rows.weight.copy()
        weight[arrivals] = 0.0
        scores = np.concatenate([np.zeros((count, self._width)), *(group.expert_scores for group in earlier)])
        waits = _Group(rows_of(batch, later), number[later], scores[later]) if len(later) else None
        return Order(rows.replaced(weight=weight, first_row=first), arrivals, scores, sources[order], waits)

    def keep(self, order: Order, first_row: int) -> None:
        """Let those rows of an order wait that are not due; the first that arrived was row `first_row`."""
        if order.later is None:
            return
        group = order.later._replace(expert_scores=order.expert_scores[order.later.row - first_row])
        if self._groups and self._groups[-1].rows < _SMALL:
            group = _merged([self._groups.pop(), group])
        self._groups.append(group)

    def rest(self) -> Iterator[tuple[Batch, Numbers]]:
        """The rows that wait at the end of the data, in the order of their labels, and their experts' scores."""
        groups, self._groups = self._groups, []
        for group in groups:
            for start in range(0, group.rows, _AT_ONCE):
                some = slice(start, start + _AT_ONCE)
                yield group.batch[some], group.expert_scores[some]

    def _take(self, end: int) -> list[_Group]:
        """The rows whose labels arrive before row `end`; they wait no longer."""
        taken = list[_Group]()
        while self._groups:
            group = self._groups.pop(0)
            count = int(np.searchsorted(group.row, end - self._delay))
            if count == group.rows:
                taken.append(group)
                continue
            first, rest = group.split(count) if count else (None, group)
            taken += [] if first is None else [first]
            self._groups.insert(0, rest)
            break
        return taken

    # ---- checkpoints ----

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The rows that wait as tensors of a model file, in the order of their numbers."""
        if not self._groups:
            return {}
        batch, row, scores = _merged(self._groups)
        arrays = (np.diff(batch.indptr).astype(np.uint32), batch.indices, batch.values, batch.y, batch.weight)
        numbers = row.astype(np.float64), scores
        return dict(zip((PREFIX + part for part in _PARTS), (*arrays, *numbers), strict=True))

    def restore(self, tensors: Mapping[str, NDArray[Any]], dim: int, rows: int) -> None:
        """Take back what `tensors` gave, `rows` rows after the start of the data; refuses anything else."""
        own = {name: tensors[PREFIX + name] for name in _PARTS if PREFIX + name in tensors}
        if not own:
            return
        try:
            entries, indices, values, y, weight, row, scores = (own[part] for part in _PARTS)
            indptr = np.concatenate(([0], np.cumsum(entries, dtype=np.int64)))
            batch = Batch(indptr, indices, values, y, weight).replaced(is_private=True)
            is_rising = bool((np.diff(row) > 0).all()) and len(row) > 0 and row[0] >= 0 and row[-1] < rows
            is_waiting = len(row) == len(batch) and row[0] + self._delay >= rows
            is_whole = bool((row == np.floor(row)).all())
            has_labels = bool((weight > 0.0).all() and (y == y).all())
            has_scores = scores.shape == (len(batch), self._width) and scores.dtype == np.float64
            if not (is_rising and is_waiting and is_whole and has_labels and has_scores) or (
                len(indices) and int(indices.max()) >= dim
            ):
                raise ValueError("rows that no run has left waiting")
        except (KeyError, ValueError, InvalidInput) as wrong:
            raise BadModel(
                f"a checkpoint needs the rows that wait for their labels, got {wrong}; start anew."
            ) from None
        self._groups = [_Group(batch, row.astype(np.int64), scores)]


def _arrays(batch: Batch) -> tuple[NDArray[Any], ...]:
    return batch.indptr, batch.indices, batch.values, batch.y, batch.weight


def _merged(groups: Sequence[_Group]) -> _Group:
    """The rows of all groups, one group behind the other."""
    row, scores = (np.concatenate(arrays) for arrays in zip(*(group[1:] for group in groups), strict=True))
    return _Group(joined([group.batch for group in groups]), row, scores)


def joined(batches: Sequence[Batch]) -> Batch:
    """The rows of all batches, one behind the other."""
    if len(batches) == 1:
        return batches[0]
    starts = np.cumsum([0, *(len(batch.indices) for batch in batches)])
    indptr = [batch.indptr[:-1] + start for batch, start in zip(batches, starts, strict=False)]
    arrays = [np.concatenate([_arrays(batch)[k] for batch in batches]) for k in range(1, 5)]
    return Batch.trusted(np.concatenate([*indptr, starts[-1:]]), *arrays, 0, batches[0].origin, None, True)
