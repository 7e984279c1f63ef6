"""Rows whose entries stay in the process that parsed them, or on its machine: what is known of them here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data.batch import Batch

NO_SLOTS, NO_VALUES = np.empty(0, np.uint32), np.empty(0, np.float32)
Entries = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[Any]]  # indptr, indices, values of a batch
Fault = tuple[int, str]  # the number of a row that no learner takes, and why


@final
class RemoteSlice(NamedTuple):
    """Rows `first` to `last` of batch `number` of a result; `handle` is what the process that has it is asked with.

    `node` is the machine that has it. `has_units` says that every |value| of the batch is 0 or 1, `faults` are its rows
    that no learner takes. `row_bytes` are those that were sent of each row.
    """

    handle: Any
    number: int
    first: int
    last: int
    node: str = ""
    has_units: bool = False
    faults: tuple[Fault, ...] = ()
    row_bytes: float = 0.0


@final
class RemoteRows:
    """Where the entries of some rows are: slices of batches, in the order of the rows."""

    def __init__(self, slices: Sequence[RemoteSlice]) -> None:
        self.slices = tuple(one for one in slices if one.first < one.last)

    def __len__(self) -> int:
        return sum(one.last - one.first for one in self.slices)

    def __getitem__(self, rows: slice) -> RemoteRows:
        """The rows of a slice of step 1."""
        start, stop, _ = rows.indices(len(self))
        kept, at = [], 0
        for one in self.slices:
            first = one.first + max(0, start - at)
            last = min(one.last, one.first + stop - at)
            at += one.last - one.first
            if first < last:
                kept.append(one._replace(first=first, last=last))
        return RemoteRows(kept)

    def __add__(self, other: RemoteRows) -> RemoteRows:
        return RemoteRows((*self.slices, *other.slices))

    @property
    def has_units(self) -> bool:
        """Whether every |value| is 0 or 1."""
        return all(one.has_units for one in self.slices)

    @property
    def sent_bytes(self) -> float:
        """How many bytes were sent of these rows."""
        return sum(one.row_bytes * (one.last - one.first) for one in self.slices)

    def faults(self) -> Iterator[Fault]:
        """The rows that no learner takes, counted from 0 here."""
        at = 0
        for one in self.slices:
            for row, reason in one.faults:
                if one.first <= row < one.last:
                    yield at + row - one.first, reason
            at += one.last - one.first


@final
class PackedRows(NamedTuple):
    """What is sent of a batch whose entries stay where they are: how long its rows are, labels and weights.

    Labels take a byte each where they are -1, 1 or missing (0 here); weights that are all 1 are not sent.
    """

    lengths: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    rest: tuple[Any, ...]  # the other parts of the batch
    has_units: bool
    faults: tuple[Fault, ...]

    @classmethod
    def of(cls, batch: Batch, faults: Sequence[Fault]) -> PackedRows:
        """A batch without its entries."""
        from ftprl._core import has_units

        lengths = np.diff(batch.indptr)
        kind = np.uint16 if int(lengths.max(initial=0)) < 2**16 else np.int64
        labels: NDArray[Any] = np.where(np.isnan(batch.y), 0.0, batch.y).astype(np.int8, casting="unsafe")
        back = _labels(labels)
        is_small = bool(((back == batch.y) | (np.isnan(back) & np.isnan(batch.y))).all())
        rest = (batch.first_row, batch.origin, batch.tags, True, batch.names, batch.delay, batch.label_texts)
        return cls(
            lengths.astype(kind),
            labels if is_small else batch.y,
            None if bool((batch.weight == 1.0).all()) else batch.weight,
            rest,
            bool(has_units(batch.values)),
            tuple(faults),
        )

    @property
    def nbytes(self) -> int:
        """The bytes of its arrays."""
        return int(self.lengths.nbytes + self.y.nbytes + (0 if self.weight is None else self.weight.nbytes))

    def batch(self, handle: Any, number: int, node: str) -> Batch:
        """The batch, with its entries as `number` of what `handle` stands for."""
        count = len(self.lengths)
        indptr = np.concatenate(([0], np.cumsum(self.lengths, dtype=np.int64))).astype(np.int64)
        y = _labels(self.y) if self.y.dtype == np.int8 else self.y
        weight = np.ones(count) if self.weight is None else self.weight
        row_bytes = self.nbytes / max(1, count)
        remote = RemoteRows([RemoteSlice(handle, number, 0, count, node, self.has_units, self.faults, row_bytes)])
        return Batch.trusted(indptr, NO_SLOTS, NO_VALUES, y, weight, *self.rest, remote)


def _labels(small: NDArray[Any]) -> NDArray[np.float64]:
    """Labels of a byte each as they are learned."""
    y = small.astype(np.float64)
    y[small == 0] = np.nan
    return y


def entries_of(batch: Batch) -> Entries:
    """The entries of a batch that is here."""
    return batch.indptr, batch.indices, batch.values


def nbytes_of(entries: Entries, one: RemoteSlice) -> int:
    """The bytes of the rows of a slice in the entries of its batch: its other rows belong to other blocks.

    >>> indptr, indices, values = np.array([0, 2, 3]), np.zeros(3, np.uint32), np.zeros(3, np.float32)
    >>> nbytes_of((indptr, indices, values), RemoteSlice(None, 0, 0, 1))
    24
    """
    indptr, indices, values = entries
    count = int(indptr[one.last]) - int(indptr[one.first])
    rows = one.last - one.first
    return rows * indptr.itemsize + count * (indices.itemsize + values.itemsize)


def entries_in(slices: Sequence[RemoteSlice], results: Sequence[Sequence[Entries]]) -> Entries:
    """The entries of some slices, one after the other; `results` has what the handle of each stands for."""
    lengths, indices, values = [np.empty(0, np.int64)], [NO_SLOTS], []
    for one, result in zip(slices, results, strict=True):
        indptr, slots, numbers = result[one.number]
        start, stop = int(indptr[one.first]), int(indptr[one.last])
        lengths.append(np.diff(indptr[one.first : one.last + 1]))
        indices.append(slots[start:stop])
        values.append(numbers[start:stop])
    if len(values) == 1:
        slots, numbers = indices[1], values[0]
    else:
        slots = np.concatenate(indices)
        numbers = np.concatenate(values) if values else NO_VALUES
    return np.concatenate(([0], np.cumsum(np.concatenate(lengths)))).astype(np.int64), slots, numbers
