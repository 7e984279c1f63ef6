"""Labels that arrive late: rows are predicted when they arrive, learned when their labels would have (docs/delay.md).

The rows of a batch and those that are due meanwhile are put in one order: row t is predicted, then every row whose
label arrives with row t is learned, the earliest first. A row that is only predicted has weight 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch, Source
from ftprl.errors import BadModel, InvalidInput, OutOfMemory
from ftprl.linear.name_budget import parse_size
from ftprl.training.passes import rows_of

MEMORY = 1_000_000_000  # bytes of rows that wait, unless another limit is asked for
PREFIX = "waiting."  # of the tensors of a checkpoint
_PARTS = ("entries", "indices", "values", "y", "weight", "row", "due", "expert_scores")
_EARLIER_SCORES = PREFIX + "said"  # what earlier versions called "waiting.expert_scores"
_SMALL = 4096  # rows: a smaller group is put together with the next
_AT_ONCE = 1 << 16  # rows that are learned at once at the end of the data

Rows = NDArray[np.int64]
Numbers = NDArray[np.float64]


def parse_memory(value: object) -> int:
    """A number of bytes for rows that wait: 1000000000, "1GB"."""
    size = parse_size(value)
    if size is None or size == 0:
        raise InvalidInput(f"delay_memory= needs a size such as 1GB, got {value!r:.40}; pass one.")
    return size


@final
class _Group(NamedTuple):
    """Rows in the order in which their labels arrive: their numbers, the rows they are due with, experts' scores."""

    batch: Batch
    row: Rows
    due: Rows
    expert_scores: Numbers  # when the row arrived, as `Engine.learn_late` keeps them

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.row)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(array.nbytes for array in (*_arrays(self.batch), *self[1:]))

    def split(self, count: int) -> tuple[_Group, _Group]:
        """The first rows and the others."""
        rest = self.batch[count:] if 2 * count < self.rows else rows_of(self.batch, np.arange(count, self.rows))
        return self.at(self.batch[:count], slice(count)), self.at(rest, slice(count, None))

    def at(self, batch: Batch, rows: slice | NDArray[Any]) -> _Group:
        """Some rows, of which `batch` has the features."""
        return _Group(batch, self.row[rows].copy(), self.due[rows].copy(), self.expert_scores[rows].copy())


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

    `delay` is after how many rows each label arrives; None where a column says that. `memory` is how many bytes these
    rows may take, `width` how many numbers are kept of the experts of each.

    >>> waiting = Waiting(delay=1, memory=1000)
    >>> batch = Batch.from_rows([{0: 1.0}, {1: 1.0}, {2: 1.0}], y=[1, 1, 1])
    >>> order = waiting.order(batch)
    >>> order.rows.indices.tolist(), order.arrivals.tolist(), order.rows.weight.tolist()
    ([0, 1, 0, 2, 1], [0, 1, 3], [0.0, 0.0, 1.0, 0.0, 1.0])
    """

    def __init__(self, delay: int | None, memory: int = MEMORY, width: int = 0) -> None:
        self._delay, self._memory, self._width = delay, memory, width
        self._groups: list[_Group] = []

    def __len__(self) -> int:
        return sum(group.rows for group in self._groups)

    @property
    def nbytes(self) -> int:
        """The memory of the rows that wait."""
        return sum(group.nbytes for group in self._groups)

    def order(self, batch: Batch) -> Order:
        """The rows of a batch, to be predicted, among those that are learned meanwhile.

        Rows without a label or a weight are only predicted. Call `keep` when all is learned.
        """
        count, first = len(batch), batch.first_row
        number = first + np.arange(count, dtype=np.int64)
        due = number + self._delays(batch)
        is_learned = (batch.weight > 0.0) & (batch.y == batch.y)
        is_now = is_learned & (due < first + count)
        now, later = np.flatnonzero(is_now), np.flatnonzero(is_learned & ~is_now)
        earlier = self._take(first + count)
        every = _joined([batch, *(group.batch for group in earlier)])
        times = np.concatenate([number, due[now], *(group.due for group in earlier)])
        numbers = np.concatenate([number, number[now], *(group.row for group in earlier)])
        sources = np.concatenate([np.arange(count), now, np.arange(count, len(every))])
        is_arrival = np.arange(len(times)) < count
        order = np.lexsort((numbers, ~is_arrival, times))
        rows = rows_of(every, sources[order])
        arrivals = np.flatnonzero(is_arrival[order])
        weight = rows.weight.copy()
        weight[arrivals] = 0.0
        scores = np.concatenate([np.zeros((count, self._width)), *(group.expert_scores for group in earlier)])
        waits = _Group(rows_of(batch, later), number[later], due[later], scores[later]) if len(later) else None
        return Order(rows.replaced(weight=weight, first_row=first), arrivals, scores, sources[order], waits)

    def keep(self, order: Order, first_row: int) -> None:
        """Let those rows of an order wait that are not due; the first that arrived was row `first_row`."""
        if order.later is None:
            return
        group = _sorted(order.later._replace(expert_scores=order.expert_scores[order.later.row - first_row]))
        if self._groups and self._groups[-1].rows < _SMALL:
            group = _sorted(_merged([self._groups.pop(), group]))
        self._groups.append(group)
        if self.nbytes > self._memory:
            name = "delay" if self._delay is not None else "delay_column"
            raise OutOfMemory(
                f"{name}= needs memory for the rows that wait for their labels, {self.nbytes} bytes for {len(self)}"
                f" rows after row {int(order.later.row[-1]) + 1}, got delay_memory={self._memory};"
                " pass more, or shorter delays.",
                option=(name, "delay_memory"),
            )

    def rest(self) -> Iterator[tuple[Batch, Numbers]]:
        """The rows that wait at the end of the data, in the order of their labels, and their experts' scores."""
        due = np.sort(np.concatenate([np.empty(0, np.int64), *(group.due for group in self._groups)]))
        for last in range(_AT_ONCE, len(due) + _AT_ONCE, _AT_ONCE):
            taken = self._take(int(due[min(last, len(due)) - 1]) + 1)
            if taken:
                group = _sorted(_merged(taken))
                yield group.batch, group.expert_scores

    def _delays(self, batch: Batch) -> Rows:
        if batch.delay is not None:
            return batch.delay.astype(np.int64)
        if self._delay is None:
            raise InvalidInput(
                f"delay_column= needs a column of the data, got a batch without it: {batch!r}; pass delay= instead.",
                option=("delay_column", "delay"),
            )
        return np.full(len(batch), self._delay, np.int64)

    def _take(self, end: int) -> list[_Group]:
        """The rows that are due before row `end`; they wait no longer."""
        taken, kept = list[_Group](), list[_Group]()
        for group in self._groups:
            count = int(np.searchsorted(group.due, end))
            first, rest = group.split(count) if count else (None, group)
            taken += [] if first is None else [first]
            kept += [rest] if rest.rows else []
        self._groups = kept
        return taken

    # ---- checkpoints ----

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The rows that wait as tensors of a model file, in the order of their numbers."""
        if not self._groups:
            return {}
        every = _merged(self._groups)
        order = np.argsort(every.row)
        batch = rows_of(every.batch, order)
        arrays = (np.diff(batch.indptr).astype(np.uint32), batch.indices, batch.values, batch.y, batch.weight)
        numbers = every.row[order].astype(np.float64), every.due[order].astype(np.float64), every.expert_scores[order]
        return dict(zip((PREFIX + part for part in _PARTS), (*arrays, *numbers), strict=True))

    def restore(self, tensors: Mapping[str, NDArray[Any]], dim: int, rows: int) -> None:
        """Take back what `tensors` gave, `rows` rows after the start of the data; refuses anything else."""
        if not tensors:
            return
        if _EARLIER_SCORES in tensors:
            tensors = {PREFIX + "expert_scores": tensors[_EARLIER_SCORES], **tensors}
        try:
            entries, indices, values, y, weight, row, due, scores = (tensors[PREFIX + part] for part in _PARTS)
            indptr = np.concatenate(([0], np.cumsum(entries, dtype=np.int64)))
            batch = Batch(indptr, indices, values, y, weight).replaced(is_private=True)
            is_rising = bool((np.diff(row) > 0).all()) and len(row) > 0 and row[0] >= 0 and row[-1] < rows
            is_due = len(due) == len(row) == len(batch) and bool((due >= rows).all() and (due < 2.0**62).all())
            is_whole = bool((row == np.floor(row)).all() and (due == np.floor(due)).all())
            has_labels = bool((weight > 0.0).all() and (y == y).all())
            has_scores = scores.shape == (len(batch), self._width) and scores.dtype == np.float64
            if not (is_rising and is_due and is_whole and has_labels and has_scores) or (
                len(indices) and int(indices.max()) >= dim
            ):
                raise ValueError("rows that no run has left waiting")
        except (KeyError, ValueError, InvalidInput) as wrong:
            raise BadModel(
                f"a checkpoint needs the rows that wait for their labels, got {wrong}; start anew."
            ) from None
        every = _Group(batch, row.astype(np.int64), due.astype(np.int64), scores)
        for at in range(0, len(batch), _AT_ONCE):
            some = np.arange(at, min(at + _AT_ONCE, len(batch)))
            self._groups.append(_sorted(every.at(rows_of(batch, some), some)))


def has_delay_column(source: Source) -> bool:
    """Whether a column of the data says when labels arrive."""
    return "delay_column" in (source.describe().columns or {}).values()


def waiting_of(source: Source, delay: int | None, memory: int | None, width: int) -> Waiting | None:
    """What holds the rows of a run back, if labels arrive late."""
    has_column = has_delay_column(source)
    if delay is None and not has_column:
        if memory is not None:
            raise InvalidInput(
                "delay_memory= is for labels that arrive late, got it without delay= or delay_column=; drop it.",
                option=("delay_memory", "delay", "delay_column"),
            )
        return None
    if delay is not None and has_column:
        raise InvalidInput(
            f"delay= and delay_column= are two ways to set when labels arrive, got delay={delay} and a column;"
            " keep one.",
            option=("delay", "delay_column"),
        )
    if delay == 0:
        return None
    return Waiting(delay, MEMORY if memory is None else memory, width)


def _arrays(batch: Batch) -> tuple[NDArray[Any], ...]:
    return batch.indptr, batch.indices, batch.values, batch.y, batch.weight


def _merged(groups: Sequence[_Group]) -> _Group:
    """The rows of all groups, one group behind the other."""
    row, due, scores = (np.concatenate(arrays) for arrays in zip(*(group[1:] for group in groups), strict=True))
    return _Group(_joined([group.batch for group in groups]), row, due, scores)


def _sorted(group: _Group) -> _Group:
    """The rows in the order in which they are due, the earliest row first."""
    order = np.lexsort((group.row, group.due))
    if bool((order[1:] > order[:-1]).all()):
        return group
    return group.at(rows_of(group.batch, order), order)


def _joined(batches: Sequence[Batch]) -> Batch:
    """The rows of all batches, one behind the other."""
    if len(batches) == 1:
        return batches[0]
    starts = np.cumsum([0, *(len(batch.indices) for batch in batches)])
    indptr = [batch.indptr[:-1] + start for batch, start in zip(batches, starts, strict=False)]
    arrays = [np.concatenate([_arrays(batch)[k] for batch in batches]) for k in range(1, 5)]
    return Batch.trusted(np.concatenate([*indptr, starts[-1:]]), *arrays, 0, batches[0].origin, None, True)
