"""Batches, NumPy arrays and SciPy matrices in memory: features have numbers and are not hashed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import csr_rows, dense_rows
from ftprl.data.batch import Batch, Vector, combine
from ftprl.data.files import shown
from ftprl.data.jobs import JobParser, Parsed, PlannedSource
from ftprl.data.labels import LabelRule, coded, of_array, of_numbers, signed
from ftprl.data.options import ARRAYS, OF_TABLES, ReadingOptions
from ftprl.data.parts import ORIGIN, Parts, split
from ftprl.data.plan import Plan, plan_of
from ftprl.data.source import Place
from ftprl.errors import BadFormat, InvalidInput
from ftprl.losses import CLASS_LOSSES

_OF_FILES = tuple(name for name in OF_TABLES if name != "weight")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ArrayRows:
    """A batch of data in memory as a job, whose first row is number `offset` of the data."""

    batch: Batch
    offset: int
    file: int = 0
    part: int = 0
    line: int = 1
    origin: str = ORIGIN
    error: None = None


@final
class LabelReader(JobParser):
    """What reads the labels of batches, which are otherwise taken as they are."""

    def __init__(self, rule: LabelRule) -> None:
        self._rule = rule

    def parse(self, job: ArrayRows, negative: float = 1.0) -> Parsed:
        """Return the rows of a job."""
        return Parsed(job, [job.batch.replaced(y=signed(self._rule, job.batch.y))])


@final
class MemorySource(PlannedSource):
    """Rows in memory; `ftprl.data.open` makes one of a CSR matrix or of `Batch` objects.

    `make_batches` makes the batches from a row on, numbered from that row, whenever they are read, so that a large
    matrix need not be copied as a whole. `can_be_read_again` is false for an iterator.
    """

    suits_threads = suits_workers = False

    def __init__(self, make_batches: Callable[[int], Iterable[Batch]], plan: Plan, *, lasts: bool = True) -> None:
        super().__init__(plan)
        self._make_batches, self._lasts = make_batches, lasts

    @property
    def can_be_read_again(self) -> bool:
        """Whether the data stays in memory; an iterator can be read once."""
        return self._lasts

    def jobs(self, start: Place, threads: int) -> Generator[ArrayRows]:
        """Yield the batches from a place on, which is where one begins."""
        for batch in self._make_batches(start.offset):
            yield ArrayRows(batch, batch.first_row)

    def parser(self) -> LabelReader:
        """Return what reads the labels."""
        return LabelReader(self.settings.labels)


def array_plan(options: ReadingOptions, dim: int, rule: LabelRule) -> Plan:
    """Return the plan of data in memory whose features have numbers."""
    plan = plan_of(options._replace(dim=dim), options.format or ARRAYS, rule)
    return plan._replace(features=options.features)


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

    return MemorySource(make, array_plan(options, checked_dim(dim, options), rule))


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
    plan = array_plan(options, dim, label_rule([y], options))
    return MemorySource(lambda start: _batches_of(matrix, y, weight, options.dtype, 0, start, texts), plan)


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
        return MemorySource(
            make, array_plan(options, dim, of_numbers(options.loss, options.positive_label)), lasts=False
        )
    return MemorySource(make, array_plan(options, dim, label_rule([y for _, y, _, _ in parts()], options)))


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
