"""Batches, NumPy arrays and SciPy matrices in memory: features have numbers and are not hashed."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import csr_rows, dense_rows
from ftprl.data.batch import Batch, Vector, combine
from ftprl.data.files import shown
from ftprl.data.labels import LabelRule, coded, of_array, of_numbers, signed
from ftprl.data.options import ARRAYS, OF_TABLES, ReadingOptions
from ftprl.data.parts import ORIGIN, Parts, split
from ftprl.data.source import BatchDigest, Description, Position, Source
from ftprl.errors import BadFormat, InvalidInput
from ftprl.losses import CLASS_LOSSES

_OF_FILES = tuple(name for name in OF_TABLES if name != "weight")


@final
@dataclass(frozen=True, slots=True)
class RowPosition:
    """The position behind the first `rows` rows."""

    rows: int = 0

    def after(self, rows: int) -> RowPosition:
        """The position that many rows further on."""
        return RowPosition(self.rows + rows)

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values."""
        return {"rows": self.rows}


class RowSource(Source):
    """Rows that need no parsing, whose positions are the numbers of rows; `rows` is None for an iterator."""

    def __init__(self, rows: int | None) -> None:
        self._rows = rows
        self._rows_read = 0  # by the last reading

    @abstractmethod
    def _read(self, start: int) -> Generator[tuple[Batch, RowPosition]]:
        """Yield batches from a row on, each with the position behind it."""

    @property
    def files(self) -> tuple[str, ...]:
        """None: the data is in memory."""
        return ()

    @property
    def can_be_read_again(self) -> bool:
        """Whether the data stays in memory; an iterator can be read once."""
        return self._rows is not None

    @property
    def start(self) -> RowPosition:
        """The position of the first row."""
        return RowPosition()

    def position(self, saved: Mapping[str, Any]) -> RowPosition:
        """The position that `RowPosition.to_dict` saved."""
        rows = saved.get("rows")
        most = sys.maxsize if self._rows is None else self._rows
        if type(rows) is not int or not 0 <= rows <= most or set(saved) != {"rows"}:
            raise InvalidInput(f"a position needs a row from 0 to {most}, got {saved!r:.200}; start anew.")
        return RowPosition(rows)

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, RowPosition]]:
        """Batches from a position on, each with the position of its first row; no threads are needed."""
        if not isinstance(start, RowPosition | None):
            raise InvalidInput(
                f"start needs a row of this data, got {type(start).__name__}; pass one of its positions."
            )
        return self._read(0 if start is None else start.rows)

    def locate(self, position: Position) -> str:
        """The number of the row behind a position, counted from 0."""
        return f"{ORIGIN}: row {position.rows}"

    @property
    def bad_rows(self) -> int:
        """0: every row can be read."""
        return 0

    @property
    def first_bad(self) -> str | None:
        """None: every row can be read."""
        return None

    def check_before(self, position: Position) -> None:
        """Do nothing: `check_unchanged` compares all rows."""


@final
class MemorySource(RowSource):
    """Rows in memory; `ftprl.data.open` makes one of a CSR matrix or of `Batch` objects.

    `make_batches` makes the batches from a row on, numbered from that row, whenever they are read, so that a large
    matrix need not be copied as a whole.
    """

    def __init__(
        self,
        make_batches: Callable[[int], Iterable[Batch]],
        rows: int | None,
        dim: int,
        labels: LabelRule,
        options: ReadingOptions,
    ) -> None:
        super().__init__(rows)
        self._make_batches, self._dim, self._labels, self._options = make_batches, dim, labels, options

    def _read(self, start: int) -> Generator[tuple[Batch, RowPosition]]:
        for batch in self._make_batches(start):
            yield batch.replaced(y=signed(self._labels, batch.y)), RowPosition(batch.first_row)

    @property
    def skips_bad_rows(self) -> bool:
        """Whether rows that cannot be learned are left out and counted."""
        return self._options.on_bad_row == "skip"

    def fingerprint(self) -> dict[str, Any] | None:
        """The number of rows and the SHA-256 of all of them; None for an iterator."""
        if not self.can_be_read_again:
            return None
        digest = BatchDigest()
        for batch, _ in self.read():
            digest.update(batch)
        return digest.result()

    def digest(self) -> None:
        """None: no digest is kept of rows as they are read."""
        return

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse rows that are not those of a fingerprint taken before."""
        if isinstance(fingerprint, Mapping) and fingerprint.get("rows") != self._rows:
            check_same_rows(fingerprint, {"rows": self._rows})  # no need to read them
        check_same_rows(fingerprint, self.fingerprint())

    def describe(self) -> Description:
        """What is read."""
        return Description(self._options.format or ARRAYS, (ORIGIN,), None, str(self._labels), self._dim, False)

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other data in memory in the same way."""
        options = self._options
        return {
            "format": options.format or ARRAYS,
            "dim": self._dim,
            "seed": options.seed,
            "intercept": False,
            "dtype": options.dtype,
            "loss": options.loss,
            "positive": options.positive_label,
            **({} if options.features is None else {"features": options.features}),
        }


def check_same_rows(saved: Any, now: Mapping[str, Any] | None) -> None:
    """Refuse rows whose fingerprint is not the one that was taken before."""
    if not isinstance(saved, Mapping) or now is None:
        raise InvalidInput(
            "resume= needs the data of the checkpoint, its files without a cache, got data in memory or a cache; pass"
            " the same files."
        )
    rows = saved.get("rows")
    if rows != now["rows"]:
        raise InvalidInput(
            f"resume= needs the data of the checkpoint, expected {rows!r:.20} rows, got {now['rows']}; pass it."
        )
    if dict(saved) != dict(now):
        raise InvalidInput(
            f"resume= needs the data of the checkpoint, expected the same {rows} rows, got others; pass them."
        )


def are_batches(data: Any) -> bool:
    """Whether data is a `Batch` or a list of batches."""
    if isinstance(data, Batch):
        return True
    return isinstance(data, Sequence) and len(data) > 0 and all(isinstance(batch, Batch) for batch in data)


def open_batches(data: Batch | Sequence[Batch], options: ReadingOptions) -> MemorySource:
    """A `Batch`, or several, as a source; their own row numbers and origins are replaced."""
    batches = (data,) if isinstance(data, Batch) else tuple(data)
    options.refuse(("y", "weight"), " is for a matrix, got Batch objects, which have their own; drop it.")
    dim = max(2, 1 + max((int(batch.indices.max()) for batch in batches if len(batch.indices)), default=0))
    rule = label_rule([batch.y for batch in batches], options)

    def make(start: int) -> Iterator[Batch]:
        first = 0
        for batch in batches:
            skipped = min(max(0, start - first), len(batch))
            if skipped < len(batch):
                yield _as_read(batch, first, options.dtype)[skipped:]
            first += len(batch)

    return MemorySource(make, sum(len(batch) for batch in batches), checked_dim(dim, options), rule, options)


def _as_read(batch: Batch, first_row: int, dtype: str) -> Batch:
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and the learner refuses that
        values = batch.values.astype(dtype, copy=False)
    return batch.replaced(values=values, first_row=first_row, origin=batch.origin or ORIGIN)


def label_rule(labels: Sequence[Vector], options: ReadingOptions) -> LabelRule:
    """How labels in memory are read for a loss."""
    return of_array(options.loss, options.positive_label, labels)


def checked_dim(needed: int, options: ReadingOptions) -> int:
    """The number of cells: that of the options if it suffices, else as many as are needed."""
    options.refuse(_OF_FILES, " needs a table with named columns, got data in memory; drop it.")
    if options.intercept:
        raise InvalidInput("intercept= is for files, got data in memory; add a column of ones.")
    if options.dim is not None and options.dim < needed:
        raise InvalidInput(f"dim= needs to be at least {needed}, the number of columns, got {options.dim}; raise it.")
    return needed if options.dim is None else int(options.dim)


_BATCH_ROWS = 16384


def are_matrices(data: Any) -> bool:
    """Whether data is an array or a sparse matrix, or has parts of which the first is one."""
    return _is_matrix(data.sample if isinstance(data, Parts) else data)


def _is_matrix(data: Any) -> bool:
    module = sys.modules.get("scipy.sparse")
    return isinstance(data, np.ndarray) or (module is not None and bool(module.issparse(data)))


def open_matrices(data: Any, options: ReadingOptions) -> MemorySource:
    """An array or a matrix as a source, with one label and one weight per row (by default none, and 1)."""
    if isinstance(data, Parts):
        return _open_parts(data, options)
    matrix = _rows_of(data)
    rows, columns = matrix.shape
    options = _with_columns(options, columns)
    dim = checked_dim(max(2, columns), options)
    y, texts = _labels_of(options, rows)
    weight = np.ones(rows) if options.weight is None else _column("weight", options.weight, rows)
    return MemorySource(
        lambda start: _batches_of(matrix, y, weight, options.dtype, 0, start, texts),
        rows,
        dim,
        label_rule([y], options),
        options,
    )


def _with_columns(options: ReadingOptions, columns: int) -> ReadingOptions:
    """The options with the number of columns, which has to be that of the training data."""
    if options.features not in (None, columns):
        raise InvalidInput(
            f"data needs {options.features} columns as in training, got {columns}; pass the same columns."
        )
    return options._replace(features=columns)


def _labels_of(options: ReadingOptions, rows: int) -> tuple[Vector, Mapping[float, str]]:
    """The labels of all rows, and those of classes that are text by their codes."""
    if options.y is None:
        return np.full(rows, np.nan), {}
    if options.loss not in CLASS_LOSSES:
        try:
            return _column("y", options.y, rows), {}
        except InvalidInput:
            text = next((one for one in options.y if isinstance(one, str)), None) if np.ndim(options.y) == 1 else None
            if text is None:
                raise
            label = repr(shown(text)[:40])
            raise InvalidInput(
                f"y= needs numbers, or True and False, beside an array or a matrix, got {label}; pass y == {label},"
                " loss=softmax for classes, or take FTPRLClassifier.",
                option="loss",
            ) from None
    if np.shape(options.y) != (rows,):
        raise _mismatch("y", rows, np.shape(options.y))
    return coded(options.y)


def _open_parts(data: Parts, options: ReadingOptions) -> MemorySource:
    """Arrays or matrices in parts; all of them have as many columns as the first."""
    columns = _rows_of(data.sample).shape[1]
    options = _with_columns(options, columns)
    dim = checked_dim(max(2, columns), options)
    whole = [None if value is None else check.array(name, value) for name, value in _beside(options)]

    def parts() -> Iterator[tuple[Any, Vector, Vector, int]]:
        first = 0
        for number, part in enumerate(data):
            matrix = _part_of(split(part)[0], number, columns)
            rows = matrix.shape[0]
            y, weight = _labels_of_part(split(part), whole, first, rows)
            yield matrix, y, weight, first
            first += rows
        for (name, _), value in zip(_beside(options), whole, strict=True):
            if value is not None and len(value) != first:
                raise _mismatch(name, first, value.shape)

    def make(start: int) -> Iterator[Batch]:
        seen = np.empty(0)
        for matrix, y, weight, first in parts():
            seen = np.unique(np.concatenate((seen, y[y == y])))[:200]
            of_array(options.loss, options.positive_label, [seen])  # the labels of an iterator are known only now
            if first + matrix.shape[0] > start:
                yield from _batches_of(matrix, y, weight, options.dtype, first, max(0, start - first))

    if data.is_one_shot:
        return MemorySource(make, None, dim, of_numbers(options.loss, options.positive_label), options)
    known = [(len(y), y) for _, y, _, _ in parts()]
    rule = label_rule([y for _, y in known], options)
    return MemorySource(make, sum(rows for rows, _ in known), dim, rule, options)


def _beside(options: ReadingOptions) -> tuple[tuple[str, Any], tuple[str, Any]]:
    return ("y", options.y), ("weight", options.weight)


def _labels_of_part(
    part: tuple[Any, Any, Any], whole: Iterable[Vector | None], first: int, rows: int
) -> tuple[Vector, Vector]:
    """The labels and weights of a part: its own, or its share of those of all rows."""
    vectors: list[Vector] = []
    for name, own, all_rows, usual in zip(("y", "weight"), part[1:], whole, (np.nan, 1.0), strict=True):
        if own is not None:
            vectors.append(_column(name, own, rows))
        elif all_rows is None:
            vectors.append(np.full(rows, usual))
        else:
            vectors.append(all_rows[first : first + rows])
            if len(vectors[-1]) < rows:
                raise _mismatch(name, first + rows, all_rows.shape)
    return vectors[0], vectors[1]


def _part_of(data: Any, number: int, columns: int) -> Any:
    if not _is_matrix(data):
        raise BadFormat(
            f"{ORIGIN}: element {number}: expected an array or a matrix as before, got {type(data).__name__};"
            " pass parts of one kind."
        )
    matrix = _rows_of(data)
    if matrix.shape[1] != columns:
        raise BadFormat(
            f"{ORIGIN}: element {number}: expected {columns} columns as before, got {matrix.shape[1]}; match them."
        )
    return matrix


def _rows_of(data: Any) -> Any:
    """Data by rows: an array of numbers, or a CSR matrix."""
    if isinstance(data, np.ndarray):
        if data.ndim != 2 or data.dtype.kind not in "biuf":
            raise InvalidInput(
                f"data needs an array of numbers with two dimensions, got {data.ndim}-d {str(data.dtype)[:40]};"
                " reshape it, or put it into a data frame."
            )
        if np.ma.is_masked(data):
            raise InvalidInput(
                "data needs an array without missing values, got a masked array; fill the masked entries with"
                " .filled(), or put it into a data frame."
            )
        return data
    if data.format not in ("csr", "csc") or data.ndim != 2:
        raise InvalidInput(f"data needs a CSR matrix with two dimensions, got {data.format}; call .tocsr() on it.")
    return data.tocsr() if data.format == "csc" else data


def _column(name: str, value: Any, rows: int) -> Vector:
    column = check.array(name, value)
    if column.shape != (rows,):
        raise _mismatch(name, rows, column.shape)
    return column


def _mismatch(name: str, rows: int, shape: tuple[int, ...]) -> InvalidInput:
    return InvalidInput(f"{name}= needs one entry for each of the {rows} rows, got shape {shape}; match them.")


def _batches_of(
    matrix: Any, y: Vector, weight: Vector, dtype: str, shift: int, start: int, texts: Mapping[float, str] | None = None
) -> Iterator[Batch]:
    """Yield the rows of a matrix from `start` on, without zeros; the first of all is number `shift` of the data."""
    for first in range(start, matrix.shape[0], _BATCH_ROWS):
        last = min(matrix.shape[0], first + _BATCH_ROWS)
        entries = (
            _dense(matrix, first, last, dtype)
            if isinstance(matrix, np.ndarray)
            else _sparse(matrix, first, last, dtype)
        )
        batch = Batch.trusted(*entries, y[first:last], weight[first:last], shift + first, ORIGIN, None, True)
        yield batch.replaced(label_texts=texts) if texts else batch


def _dense(matrix: NDArray[Any], first: int, last: int, dtype: str) -> tuple[Any, Any, Any]:
    """Return the entries of rows of an array; the core copies numbers of its types, NumPy converts others first."""
    if matrix.dtype in (np.float32, np.float64) and matrix.flags.c_contiguous:
        return dense_rows(matrix, first, last, dtype == "float64")
    return dense_rows(np.ascontiguousarray(matrix[first:last], np.float64), 0, last - first, dtype == "float64")


def _sparse(matrix: Any, first: int, last: int, dtype: str) -> tuple[Any, Any, Any]:
    """Return the entries of rows of a CSR matrix; those of a column that stands twice are summed."""
    arrays = indptr, indices, values = matrix.indptr, matrix.indices, matrix.data
    is_usual = indptr.dtype == indices.dtype in (np.int32, np.int64) and values.dtype in (np.float32, np.float64)
    if is_usual and matrix.has_canonical_format and all(array.flags.c_contiguous for array in arrays):
        return csr_rows(indptr, indices, values, first, last, dtype == "float64")
    begin, end = int(indptr[first]), int(indptr[last])
    starts = indptr[first : last + 1].astype(np.int64) - begin
    columns, numbers = indices[begin:end].astype(np.uint32), check.array("data", values[begin:end])
    if not matrix.has_canonical_format:
        starts, columns, numbers = combine(starts, columns, numbers)
    return csr_rows(starts, columns.astype(np.int64), numbers, 0, last - first, dtype == "float64")
