"""The names of a model's features: kept while it is trained, as long as they fit into a budget, and saved with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import NameTable
from ftprl.data import Batch
from ftprl.errors import BadModel
from ftprl.linear.model_file import Tensor, joined_bytes, unpack_bytes
from ftprl.linear.name_budget import BUDGET

if TYPE_CHECKING:
    from ftprl.data.batch import RowNames

HASHES, SIZES, TEXT = TENSORS = ("names.hashes", "names.sizes", "names.text")


@final
class Names:
    """The names of features in the order of their first rows; each counts with 12 bytes more than its own.

    Each of the table's `dim` cells has one name: that of the feature that landed there first.

    The first name that does not fit into the budget ends it: none is added afterwards, and `full_row` is the number of
    the row that had it, from 1. Names of interactions, of which there may be more than of all else, take at most a
    quarter of the budget: of these none is added after the first that does not fit, in row `products_full_row`.
    """

    def __init__(self, dim: int, budget: int = BUDGET) -> None:
        self._dim = dim
        self._adder = _Adder(NameTable(budget, dim))
        self._by_cell: tuple[NDArray[np.uint32], NDArray[np.intp]] | None = None  # cells, rising, and their names

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"Names({len(self)} names, {self.bytes} of {self.budget} bytes)"

    @property
    def table(self) -> NameTable:
        """The table of the core."""
        return self._adder.settled().table

    @property
    def full_row(self) -> int | None:
        """The row whose name did not fit, from 1; None while names fit."""
        return self._adder.settled().full_row

    @full_row.setter
    def full_row(self, row: int | None) -> None:
        self._adder.settled().full_row = row

    @property
    def products_full_row(self) -> int | None:
        """The row with the first interaction whose name did not fit, from 1; None while names fit."""
        return self._adder.settled().products_full_row

    @products_full_row.setter
    def products_full_row(self, row: int | None) -> None:
        self._adder.settled().products_full_row = row

    @property
    def has_all(self) -> bool:
        """Whether every name did fit."""
        return self.full_row is None and self.products_full_row is None

    @property
    def budget(self) -> int:
        """How many bytes the names may take."""
        return self.table.budget

    @property
    def bytes(self) -> int:
        """How many bytes they take."""
        return self.table.bytes

    def add(self, batch: Batch, rows_before: int, *, background: bool = False) -> None:
        """Add the names of a batch; `rows_before` rows came before it.

        With `background` a thread may add them while the caller does something else, in the same order: whoever looks
        at the names waits for it.
        """
        if batch.names is not None:
            self._adder.add(batch.names, rows_before, background=background)

    def all(self) -> list[str]:
        """Every name, in the order of their first rows."""
        return [_text(self.table.name(i)) for i in range(len(self))]

    def cells(self) -> NDArray[np.uint32]:
        """Return the cell of each name, in the order of `all`."""
        return self.table.slots(self._dim)

    def of_cells(self, cells: NDArray[np.integer[Any]]) -> list[str | None]:
        """Return the names of some cells, None where none is known."""
        if not len(self):
            return [None] * len(cells)
        if self._by_cell is None or len(self._by_cell[0]) != len(self):
            slots = self.cells()
            order = np.argsort(slots, kind="stable")
            self._by_cell = slots[order], order
        named, order = self._by_cell
        at = np.minimum(np.searchsorted(named, cells), len(named) - 1)
        numbers = np.where(named[at] == cells, order[at], -1)
        return [None if number < 0 else _text(self.table.name(number)) for number in numbers.tolist()]

    def content(self) -> dict[str, Any]:
        """What the JSON part of a model file has of the names."""
        products = {"bytes": self.table.product_bytes, "full_row": self.products_full_row}
        return {"budget": self.budget, "full_row": self.full_row, "products": products}

    def tensors(self) -> dict[str, Tensor]:
        """The names as tensors of a model file."""
        hashes = np.asarray(self.table.hashes, "<u8").view("<u4").reshape(-1, 2)
        return {HASHES: hashes, SIZES: self.table.sizes, TEXT: joined_bytes(self.table.text)}

    @classmethod
    def restored(cls, content: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]], dim: int) -> Names:
        """The names that `content` and `tensors` were made of; refuses anything else."""
        names, (hashes, sizes) = cls(dim, content["budget"]), (tensors[HASHES], tensors[SIZES])
        is_whole = hashes.dtype == sizes.dtype == np.uint32 and hashes.shape == (len(sizes), 2) and sizes.ndim == 1
        names.full_row = content["full_row"]
        products = content["products"]
        names.products_full_row = products["full_row"]
        if is_whole:
            keys = np.ascontiguousarray(hashes, "<u4").view("<u8").reshape(-1).astype(np.uint64)
            text = unpack_bytes(tensors[TEXT])
            is_whole = names.table.load(
                keys,
                np.ascontiguousarray(sizes),
                text,
                names.full_row is not None,
                products["bytes"],
                names.products_full_row is not None,
            )
        if not is_whole:
            raise BadModel("expected the names of features, got something else; train it again.")
        return names


@final
class _Adder:
    """Adds names to a table, many of them in a thread of its own.

    The thread ends when somebody looks at the table, or when it has had nothing to do for a moment: nobody needs to
    end it, and the end of the process waits for that moment at most.
    """

    _FEW = 2048  # names of a batch: for fewer it is not worth waking a thread
    _MOST_WAITING = 500_000  # names, whose batches stay in memory until they are added, unless one batch has more
    _IDLE = 0.02  # seconds

    def __init__(self, table: NameTable) -> None:
        self.table = table
        self.full_row: int | None = None
        self.products_full_row: int | None = None
        self._waiting: deque[tuple[RowNames, int]] = deque()  # the first may be worked on
        self._changed = Condition()
        self._thread: Thread | None = None
        self._is_ending = False
        self._error: BaseException | None = None

    def settled(self) -> _Adder:
        """This object when nothing is waiting, for whoever wants to see the table."""
        if self._thread is not None:
            with self._changed:
                self._is_ending = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._thread is None)
                self._is_ending = False
        if self._error is not None:
            raise self._error
        return self

    def add(self, names: RowNames, rows_before: int, *, background: bool) -> None:
        """Add the names of some rows, now or behind those that wait."""
        count = len(names.new)
        is_worth_it = background and count >= self._FEW and self.full_row is None
        if not is_worth_it and not self._waiting:
            self.settled()._add(names, rows_before)
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting or self._count() + count <= self._MOST_WAITING)
            self._waiting.append((names, rows_before))
            if self._thread is None:
                self._thread = Thread(target=self._work, name="ftprl-names")
                self._thread.start()
            self._changed.notify_all()

    def _count(self) -> int:
        return sum(len(names.new) for names, _ in self._waiting)

    def _add(self, names: RowNames, rows_before: int) -> None:
        row, product_row = names.add_to(self.table) if self.full_row is None else (None, None)
        if row is not None:
            self.full_row = rows_before + row + 1
        if product_row is not None:
            self.products_full_row = rows_before + product_row + 1
        if self.full_row is not None:
            names.new.stop()
        if self.products_full_row is not None:
            names.new.stop_products()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_ending, self._IDLE)
                if not self._waiting:
                    self._thread = None
                    self._changed.notify_all()
                    return
                names, rows_before = self._waiting[0]
            try:
                if self._error is None:
                    self._add(names, rows_before)
            except BaseException as error:
                self._error = error
            with self._changed:
                self._waiting.popleft()
                self._changed.notify_all()


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
