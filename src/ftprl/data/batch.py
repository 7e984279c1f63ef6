"""`Batch`: some rows of sparse features, with labels and weights; what every reader gives and every learner takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    from ftprl._core import NameTable, NewNames

Vector = NDArray[np.float64]
Values = NDArray[np.float32] | NDArray[np.float64]
_NO_TEXTS: Mapping[float, str] = {}  # of most batches; nobody changes it
_LAST_PARTS = (None, _NO_TEXTS)  # names and label_texts of most batches
Row = Mapping[int, float] | Iterable[tuple[int, float]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class RowNames:
    """The names that rows `first` to `last` of a batch of the reader have and earlier ones did not."""

    new: NewNames
    first: int
    last: int

    def __getitem__(self, rows: slice) -> RowNames:
        """The names of some of the rows."""
        return RowNames(self.new, self.first + rows.start, self.first + rows.stop)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked_names, (self.new.pack(self.first, self.last), self.last - self.first)

    def add_to(self, table: NameTable) -> tuple[int | None, int | None]:
        """Add the names to a table; returns the row of the first that does not fit, and of the first interaction.

        They are counted from 0 in the batch.
        """
        rows = table.add(self.new, self.first, self.last)
        row, product_row = (None if at == self.last else at - self.first for at in rows)
        return row, product_row


def _unpacked_names(packed: bytes, rows: int) -> RowNames:
    from ftprl._core import NewNames

    return RowNames(NewNames.unpack(packed), 0, rows)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of table slots and values: row r has entries `indptr[r]` to `indptr[r+1]`, whose indices are distinct.

    A label that is NaN is missing: the row is scored, never learned. `first_row` is the number of the first row in its
    stream, `origin` is where the stream comes from, `tags` are names of the rows.

    The arrays are taken as they are, not copied, and their types are exact: int64, uint32, float32 or float64, float64.
    Distinct indices within a row are the promise of whoever makes a batch; `from_rows` and `from_csr` see to it.
    `is_private` is whether nobody else can write to the arrays: true of what a parser, `from_rows` or `from_csr` makes.
    A model learns from a copy of other batches, since another thread could change an index after it was checked.
    `names` are the names of features that these rows have and earlier ones did not, where names are kept. `label_texts`
    are the labels of classes that are text, by the codes that stand for them in `y`.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: Values
    y: Vector
    weight: Vector
    first_row: int = 0
    origin: str = ""
    tags: tuple[str, ...] | None = None
    is_private: bool = field(default=False, init=False, repr=False)
    names: RowNames | None = field(default=None, init=False, repr=False)
    label_texts: Mapping[float, str] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            object.__setattr__(self, name, _column(name, getattr(self, name), kinds))
        _check_rows(self.indptr, len(self.indices), len(self.values))
        for name in ("y", "weight"):
            _check_length(name, len(getattr(self, name)), len(self))
        if isinstance(self.first_row, bool) or not isinstance(self.first_row, int) or self.first_row < 0:
            raise InvalidInput(f"first_row needs a whole number of at least 0, got {self.first_row!r}; pass one.")
        if self.tags is not None:
            object.__setattr__(self, "tags", tuple(self.tags))
            _check_length("tags", len(self.tags), len(self))

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        origin = f", origin={self.origin!r}" if self.origin else ""
        return f"Batch({len(self)} rows, {len(self.indices)} entries, first_row={self.first_row}{origin})"

    def __getitem__(self, rows: slice) -> Batch:
        """The rows of a slice of step 1, as views."""
        check.instance("rows", rows, slice)
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise InvalidInput(f"a batch needs a slice of step 1, got step {step}; take the rows in their order.")
        stop = max(start, stop)
        if stop - start == len(self):
            return self
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1]
        return Batch._of(
            _read_only(indptr - first) if first else indptr,  # views of arrays that cannot be written to cannot either
            self.indices[first:last],
            self.values[first:last],
            self.y[start:stop],
            self.weight[start:stop],
            self.first_row + start,
            self.origin,
            None if self.tags is None else self.tags[start:stop],
            self.is_private,
            None if self.names is None else self.names[start:stop],
            self.label_texts,
        )

    @classmethod
    def trusted(cls, *parts: Any) -> Batch:
        """A batch of arrays that are known to be right: those of a parser, or parts of another batch.

        The last parts are `is_private` and, where there are any, `names` and `label_texts`.
        """
        for part in parts:
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        return cls._of(*parts, *_LAST_PARTS[len(parts) - len(cls.__slots__) + len(_LAST_PARTS) :])

    @classmethod
    def _of(cls, *parts: Any) -> Batch:
        """A batch of all parts, whose arrays cannot be written to."""
        batch = object.__new__(cls)
        for put, part in zip(_PUT, parts, strict=True):
            put(batch, part)
        return batch

    def __reduce__(self) -> tuple[Any, ...]:
        return Batch.trusted, tuple(getattr(self, name) for name in Batch.__slots__)

    def numbered(self, first_row: int, start: int = 0) -> Batch:
        """The same rows from `start` on, counted so that the first of all is number `first_row`."""
        batch = self.replaced(first_row=first_row)
        return batch[start:] if start else batch

    def replaced(self, **parts: Any) -> Batch:
        """The same rows with some parts replaced; the new ones have to be right, and as private as the others."""
        for part in parts.values():
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        return Batch._of(*(parts[name] if name in parts else getattr(self, name) for name in Batch.__slots__))

    def private(self) -> Batch:
        """This batch if nobody else can write to its arrays, otherwise a copy."""
        if self.is_private:
            return self
        arrays = (self.indptr.copy(), self.indices.copy(), self.values.copy(), self.y.copy(), self.weight.copy())
        return Batch.trusted(*arrays, self.first_row, self.origin, self.tags, True, self.names)

    def cut(self, rows: int) -> Iterator[Batch]:
        """The same rows in pieces of at most `rows`."""
        check.dimension("rows", rows)
        for start in range(0, len(self), rows):
            yield self[start : start + rows]

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Row],
        y: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        *,
        float64: bool = False,
        **more: Any,
    ) -> Batch:
        """Rows as mappings or (index, value) pairs; the values of an index that repeats are added up in float64.

        >>> batch = Batch.from_rows([{3: 1.0}, [(0, 1.0), (0, 0.5)]], y=[1, -1])
        >>> batch.indices.tolist(), batch.values.tolist()
        ([3, 0], [1.0, 1.5])
        """
        pairs = [list(row.items() if isinstance(row, Mapping) else row) for row in rows]
        indptr = np.cumsum([0, *map(len, pairs)], dtype=np.int64)
        indices = _slots(np.array([index for row in pairs for index, _ in row], dtype=object))
        values = check.array("values", [value for row in pairs for _, value in row])
        return cls._combined(indptr, indices, values, y, weight, float64, more)

    @classmethod
    def from_csr(
        cls,
        matrix: Any,
        y: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        *,
        float64: bool = False,
        **more: Any,
    ) -> Batch:
        """The rows of a SciPy CSR matrix or array (anything with `indptr`, `indices`, `data`); repeats are added up."""
        missing = [name for name in ("indptr", "indices", "data") if not hasattr(matrix, name)]
        if missing or getattr(matrix, "format", "csr") != "csr":
            raise InvalidInput(f"from_csr needs a CSR matrix, got {type(matrix).__name__}; call .tocsr() on it.")
        indptr, indices = np.asarray(matrix.indptr).astype(np.int64), _slots(np.array(matrix.indices))
        return cls._combined(indptr, indices, check.array("values", matrix.data), y, weight, float64, more)

    @classmethod
    def _combined(
        cls,
        indptr: NDArray[np.int64],
        indices: NDArray[np.uint32],
        values: Vector,
        y: ArrayLike | None,
        weight: ArrayLike | None,
        float64: bool,
        more: Mapping[str, Any],
    ) -> Batch:
        indptr, indices, values = combine(indptr, indices, values)
        count = len(indptr) - 1
        labels = np.full(count, np.nan) if y is None else check.array("y", y)
        weights = np.ones(count) if weight is None else check.array("weight", weight)
        with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and the kernel refuses that
            stored = values if float64 else values.astype(np.float32)
        return cls(indptr, indices, stored, labels, weights, **more).replaced(is_private=True)


_PUT = tuple(getattr(Batch, name).__set__ for name in Batch.__slots__)  # each part of a new batch in its slot


def _read_only(array: NDArray[np.int64]) -> NDArray[np.int64]:
    array.flags.writeable = False
    return array


def combine(
    indptr: NDArray[np.int64], indices: NDArray[np.uint32], values: Vector
) -> tuple[NDArray[np.int64], NDArray[np.uint32], Vector]:
    """The same rows with distinct indices: repeats are added up, from left to right, where the first one stood."""
    _check_rows(indptr, len(indices), len(values))
    count = len(indptr) - 1
    row = np.repeat(np.arange(count, dtype=np.uint64), np.diff(indptr))
    _, first, which = np.unique(row << np.uint64(32) | indices, return_index=True, return_inverse=True)
    if len(first) == len(indices):
        return indptr, indices, values
    sums = np.zeros(len(first))
    np.add.at(sums, which, values)
    order = np.argsort(first, kind="stable")  # unique sorts by index; put the entries back in their order
    kept = first[order]
    lengths = np.bincount(row[kept].astype(np.int64), minlength=count)
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64), indices[kept], sums[order]


_KINDS: Mapping[str, tuple[np.dtype[Any], ...]] = {
    "indptr": (np.dtype(np.int64),),
    "indices": (np.dtype(np.uint32),),
    "values": (np.dtype(np.float32), np.dtype(np.float64)),
    "y": (np.dtype(np.float64),),
    "weight": (np.dtype(np.float64),),
}


def _column(name: str, value: object, kinds: tuple[np.dtype[Any], ...]) -> NDArray[Any]:
    """A read-only view of one array of the batch."""
    if not isinstance(value, np.ndarray) or value.dtype not in kinds or value.ndim != 1:
        want = " or ".join(kind.name for kind in kinds)
        got = f"{value.ndim}-d {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__
        raise InvalidInput(f"{name} needs a vector of {want}, got {got}; convert it or use Batch.from_rows.")
    view = np.ascontiguousarray(value).view()
    view.flags.writeable = False
    return view


def _check_length(name: str, got: int, rows: int) -> None:
    if got != rows:
        raise InvalidInput(f"{name} needs an entry for each of the {rows} rows, got {got}; match the lengths.")


def _check_rows(indptr: NDArray[np.int64], indices: int, values: int) -> None:
    if indices != values:
        raise InvalidInput(f"indices and values need one length, got {indices} and {values}; match them.")
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != indices:
        shown = f"{indptr[0]} to {indptr[-1]}" if len(indptr) else "nothing"
        raise InvalidInput(f"indptr needs to run from 0 to the {indices} entries, got {shown}; cut the arrays to it.")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if len(falls):
        r = int(falls[0])
        raise InvalidInput(f"indptr needs to be nondecreasing, got {indptr[r]} before {indptr[r + 1]}; sort the rows.")


def _slots(indices: NDArray[Any]) -> NDArray[np.uint32]:
    """Whole numbers from 0 to 2**32 - 1 as uint32."""
    if indices.dtype == np.uint32:
        return indices
    for k, index in enumerate(indices.tolist()) if indices.dtype.kind not in "iu" else ():
        if isinstance(index, bool) or not isinstance(index, int | np.integer):
            raise InvalidInput(f"indices need whole numbers, got {index!r} at entry {k}; hash names first.")
    if len(indices) and not (indices.min() >= 0 and indices.max() < 2**32):
        wrong = int(indices.min()) if indices.min() < 0 else int(indices.max())
        raise InvalidInput(f"indices need to be from 0 to 2**32 - 1, got {wrong}; hash into the table first.")
    return indices.astype(np.uint32)
