"""The random order of rows once more, from docs/order.md, without the compiled order that training uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch

Keys = NDArray[np.uint64]
BYTES = 256 << 20  # of the rows that wait
_PART, _LEAST_ROWS, _ROW_BYTES = 10, 1000, 24
_WORD = (1 << 64) - 1


def keys_of(seed: int, numbers: NDArray[np.int64]) -> Keys:
    """Return the random bits of rows by their numbers: splitmix64.

    >>> hex(keys_of(0, np.array([0]))[0])
    '0xe220a8397b1dcdaf'
    """
    with np.errstate(over="ignore"):
        z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(seed * 0xD1342543DE82EF95 & _WORD)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@final
@dataclass(frozen=True, slots=True)
class KeyedRows:
    """Rows with the random bits and the number in the data of each."""

    batch: Batch
    keys: Keys
    numbers: NDArray[np.int64]

    @classmethod
    def of(cls, batch: Batch) -> KeyedRows:
        """Return rows of a source, whose keys are not known yet."""
        return cls(batch, np.zeros(len(batch), np.uint64), batch.first_row + np.arange(len(batch)))

    def __len__(self) -> int:
        return len(self.keys)

    def at(self, places: NDArray[np.intp]) -> KeyedRows:
        """Return the rows at these places, in this order."""
        ends = self.batch.indptr
        sizes = np.diff(ends)[places]
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        entries = np.repeat(ends[places] - indptr[:-1], sizes) + np.arange(indptr[-1])
        arrays = (self.batch.indices[entries], self.batch.values[entries], self.batch.y[places])
        batch = Batch(indptr, *arrays, self.batch.weight[places])
        return KeyedRows(batch, self.keys[places], self.numbers[places])

    def between(self, start: int, end: int) -> KeyedRows:
        """Return the rows from one place up to another."""
        return self.at(np.arange(start, end))

    def where(self, chosen: NDArray[np.bool_]) -> KeyedRows:
        """Return some of the rows, in their order."""
        return self.at(np.flatnonzero(chosen))

    def in_order(self) -> KeyedRows:
        """Return the rows by their keys."""
        return self.at(np.lexsort((self.numbers, self.keys)))

    @classmethod
    def joined(cls, parts: Sequence[KeyedRows]) -> KeyedRows:
        """Return the rows of several parts, one part after the other."""
        parts = [part for part in parts if len(part)] or list(parts[:1])
        if len(parts) == 1:
            return parts[0]
        batches = [part.batch for part in parts]
        starts = np.cumsum([0, *(batch.indptr[-1] for batch in batches[:-1])])
        indptr = [[0], *(batch.indptr[1:] + start for batch, start in zip(batches, starts, strict=True))]
        arrays = ([getattr(batch, name) for batch in batches] for name in ("indices", "values", "y", "weight"))
        indices, values, y, weight = map(np.concatenate, arrays)
        whole = Batch(np.concatenate(indptr), indices, values, y, weight)
        return cls(whole, *(np.concatenate([getattr(part, name) for part in parts]) for name in ("keys", "numbers")))


@final
@dataclass(frozen=True, slots=True)
class LastPhase:
    """The rows that waited, in the order in which they are learned.

    The rows of `checked` are predicted when those up to `check_at` are learned; `compared_at` is the first of the rows
    they are compared with, and `last_at` that of the last quarter.
    """

    rows: KeyedRows
    checked: KeyedRows
    compared_at: int
    check_at: int
    last_at: int
    has_overflowed: bool  # there were more rows than may wait


@final
class ReplayedOrder:
    """Rows of one pass: those that are due at once, and in the end those that waited."""

    def __init__(self, seed: int, waiting: int, *, float64: bool) -> None:
        self._seed, self._most = seed, waiting
        self._entry = 12 if float64 else 8  # bytes
        self._kind = np.dtype(np.float64 if float64 else np.float32)
        self._latest_most = waiting // _PART, BYTES // _PART  # rows and bytes about which nothing is decided
        self._learnable = 0
        self._halvings = 0
        indices, values, numbers = np.zeros(0, np.uint32), np.zeros(0, self._kind), np.zeros(0)
        self._latest = [KeyedRows.of(Batch(np.zeros(1, np.int64), indices, values, numbers, numbers))]
        self._waiting: list[KeyedRows] = []
        self._wait = [0, 0]  # rows and bytes that wait

    def add(self, rows: KeyedRows) -> KeyedRows:
        """Add rows that have no keys yet; returns the rows that are due now, in their order."""
        batch = rows.batch
        is_learnable = (batch.weight > 0.0) & (batch.y == batch.y)
        keys = np.zeros(len(batch), np.uint64)
        count = int(is_learnable.sum())
        keys[is_learnable] = keys_of(self._seed, self._learnable + np.arange(count))
        self._learnable += count
        arrived = KeyedRows(batch.replaced(values=batch.values.astype(self._kind)), keys, rows.numbers)
        before = sum(map(len, self._latest))
        rows = KeyedRows.joined([*self._latest, arrived.where(is_learnable)])
        # A row is decided about when a later one makes the latest rows too many, or too large.
        ends = np.cumsum(self._bytes(rows))
        by_bytes = np.searchsorted(ends, ends - self._bytes(rows) + self._latest_most[1], side="right")
        decided = np.minimum(np.arange(len(rows)) + self._latest_most[0], by_bytes)
        settled = int((decided < len(rows)).sum())
        self._latest = [rows.between(settled, len(rows))]
        due, times = self._settle(rows.between(0, settled), decided[:settled].astype(float))
        # The others are due when they arrive.
        others = np.flatnonzero(~is_learnable)
        arrivals = before + np.cumsum(is_learnable)[others] - 0.5
        due, times = [*due, arrived.at(others)], [*times, arrivals]
        return KeyedRows.joined(due).at(np.argsort(np.concatenate(times), kind="stable"))

    def finish(self) -> tuple[KeyedRows, LastPhase]:
        """End the pass; returns the rows that are due before those that waited."""
        latest = KeyedRows.joined(self._latest)
        checked = min(self._learnable, self._most) // _PART if self._learnable >= _LEAST_ROWS else 0
        at = len(latest) - min(checked, len(latest))
        due, _ = self._settle(latest.between(0, at), np.zeros(at))
        late = latest.between(at, len(latest))
        half = np.uint64(1 << (63 - self._halvings))
        is_early = ~self._stays(late.keys) | (late.keys < half)
        spread = half + ((late.keys & (half - np.uint64(1))) >> np.uint64(1))
        moved = KeyedRows(late.batch, np.where(is_early, spread, late.keys), late.numbers)
        rows = KeyedRows.joined([*self._waiting, moved]).in_order()
        last_at = int((rows.keys < half + half // np.uint64(2)).sum())
        check_at = int((rows.keys < half).sum()) if len(late) else last_at
        compared_at = max(check_at - len(late), 0) if len(late) else last_at
        last = LastPhase(rows, late, compared_at, check_at, last_at, self._halvings > 0)
        return KeyedRows.joined(due or [rows.between(0, 0)]), last

    def _bytes(self, rows: KeyedRows) -> NDArray[np.int64]:
        return _ROW_BYTES + self._entry * np.diff(rows.batch.indptr)

    def _stays(self, keys: Keys) -> NDArray[np.bool_]:
        """Which rows wait, by the present limit."""
        return np.asarray(keys >> np.uint64(64 - self._halvings) == 0) if self._halvings else np.ones(len(keys), bool)

    def _is_too_much(self, rows: Any, size: Any) -> Any:
        return (rows > self._most - self._latest_most[0]) | (size > BYTES - self._latest_most[1])

    def _settle(self, rows: KeyedRows, times: NDArray[np.float64]) -> tuple[list[KeyedRows], list[NDArray[np.float64]]]:
        """Let rows wait or be due, each at its time; half of those that wait leave when they are too many."""
        due, due_times = [], []
        while len(rows):
            stays = self._stays(rows.keys)
            count, size = self._wait[0] + np.cumsum(stays), self._wait[1] + np.cumsum(stays * self._bytes(rows))
            too_many = np.flatnonzero(stays & self._is_too_much(count, size))
            end = int(too_many[0]) + 1 if len(too_many) and self._halvings < 63 else len(rows)
            some, own = rows.between(0, end), stays[:end]
            due.append(some.where(~own))
            due_times.append(times[:end][~own])
            self._waiting.append(some.where(own))
            self._wait = [int(count[end - 1]), int(size[end - 1])]
            while self._is_too_much(*self._wait) and self._halvings < 63:
                due.append(self._halve())
                due_times.append(np.full(len(due[-1]), times[end - 1]))
            rows, times = rows.between(end, len(rows)), times[end:]
        return due, due_times

    def _halve(self) -> KeyedRows:
        """Halve the limit; returns the rows that leave, by their keys."""
        self._halvings += 1
        rows = KeyedRows.joined(self._waiting)
        stays = self._stays(rows.keys)
        kept = rows.where(stays)
        self._waiting, self._wait = [kept], [len(kept), int(self._bytes(kept).sum())]
        return rows.where(~stays).in_order()


@final
class ReplayedSample:
    """The learned rows with the smallest keys, by the order in which they were learned, to be predicted once more."""

    MOST, MOST_ENTRIES = 2000, 1 << 22

    def __init__(self, seed: int) -> None:
        self._seed, self._rows = seed, 0
        self._beyond = np.uint64(_WORD)  # the smallest key for which there was no room
        self._kept: list[KeyedRows] = []
        self._numbers: list[NDArray[np.float64]] = []  # loss, baseline's loss and least loss of each

    def see(self, batch: Batch, numbers: NDArray[np.float64]) -> None:
        """Keep some of these learned rows, all with a label and a weight."""
        places = self._rows + np.arange(len(batch))
        self._rows += len(batch)
        rows = KeyedRows(batch, keys_of(self._seed, places), places)
        kept, known = KeyedRows.joined([*self._kept, rows]), np.concatenate([*self._numbers, numbers])
        by_key = np.lexsort((kept.numbers, kept.keys))
        by_key = by_key[kept.keys[by_key] < self._beyond]
        sizes = np.cumsum(np.diff(kept.batch.indptr)[by_key])
        count = min(self.MOST, max(int((sizes <= self.MOST_ENTRIES).sum()), 1))
        if count < len(by_key):
            self._beyond = kept.keys[by_key[count]]
        smallest = np.sort(by_key[:count])
        self._kept, self._numbers = [kept.at(smallest)], [known[smallest]]

    def result(self) -> tuple[Batch, NDArray[np.float64]] | None:
        """Return the sample and its numbers, if enough rows were learned."""
        return (self._kept[0].batch, self._numbers[0]) if self._rows >= _LEAST_ROWS else None
