"""The bounds of single weights once more, from the names of a batch, without the compiled table that training uses."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np

from ftprl.data import Batch
from ftprl.linear.bounds import Bound, fits
from ftprl.linear.spec import Spec

_NAME = struct.Struct("<QII")
_PRODUCT = 1 << 31
_COUNT = (1 << 63) - 1


@final
class BoundChange(NamedTuple):
    """Bounds that a cell has from a row of a batch on."""

    row: int
    cell: int
    lower: float
    upper: float


def slot_of(key: int, dim: int) -> int:
    """The cell of a name by its hash.

    >>> slot_of(2**63 + 5, 2**22), slot_of(2**63, 10)
    (5, 5)
    """
    return key & (dim - 1) if dim & (dim - 1) == 0 else key * dim >> 64


@final
class BoundReplay:
    """Which cells have bounds of their own, by all names met so far."""

    def __init__(self, spec: Spec) -> None:
        self._bounds: tuple[Bound, ...] = spec.bounds
        self._dim, self._all = spec.dim, (spec.lower, spec.upper)
        self._cells: dict[int, tuple[float, float]] = {}
        self._known: set[int] = set()  # hashes, or numbers of cells where features have no names

    def changes(self, batch: Batch) -> list[BoundChange]:
        """What changes with the names of a batch, in the order of its rows."""
        changes = []
        for row, key, cell, name, is_product in self._names(batch):
            if key in self._known:
                continue
            self._known.add(key)
            before = self._cells.get(cell, self._all)
            lower, upper = before
            for pattern, low, high in self._bounds:
                if fits(pattern, name, is_product):
                    lower, upper = max(lower, low), min(upper, high)
            if (lower, upper) != before:
                self._cells[cell] = lower, upper
                changes.append(BoundChange(row, cell, lower, upper))
        return changes

    def _names(self, batch: Batch) -> Iterator[tuple[int, int, int, str, bool]]:
        """Row, hash, cell and name of features that may be new, and whether each is an interaction."""
        if batch.names is None or not batch.names.new.is_complete:
            for number in np.unique(batch.indices).tolist():
                yield 0, number, number, str(number), False
            return
        packed = batch.names.new.pack(batch.names.first, batch.names.last)
        count = int.from_bytes(packed[:8], "little") & _COUNT
        text = 8 + count * _NAME.size
        for key, row, size in _NAME.iter_unpack(packed[8:text]):
            length = size & ~_PRODUCT
            name = packed[text : text + length].decode("utf-8", "surrogateescape")
            text += length
            yield row, key, slot_of(key, self._dim), name, bool(size & _PRODUCT)
