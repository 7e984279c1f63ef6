"""A SciPy CSR matrix with labels and weights as a source: the features of a row are its columns, not hashed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl.data.batch import Batch, Vector
from ftprl.data.memory import ORIGIN, MemorySource, checked_dim, label_rule
from ftprl.data.options import ReadingOptions
from ftprl.errors import InvalidInput

_BATCH_ROWS = 16384


def accepts(data: Any) -> bool:
    """Whether data is a sparse matrix or array of SciPy."""
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(data))


def open_object(data: Any, options: ReadingOptions) -> MemorySource:
    """A CSR matrix as a source, with one label and one weight per row (by default none, and 1)."""
    if data.format != "csr" or data.ndim != 2:
        raise InvalidInput(f"data needs a CSR matrix with two dimensions, got {data.format}; call .tocsr() on it.")
    rows, columns = data.shape
    dim = checked_dim(max(2, columns), options)
    y = np.full(rows, np.nan) if options.y is None else _column("y", options.y, rows)
    weight = np.ones(rows) if options.weight is None else _column("weight", options.weight, rows)
    is_canonical = bool(data.has_canonical_format)

    def make(start: int) -> Iterator[Batch]:
        for first in range(start, rows, _BATCH_ROWS):
            last = min(rows, first + _BATCH_ROWS)
            yield _batch(data, first, last, y[first:last], weight[first:last], options.dtype, is_canonical)

    return MemorySource(make, rows, dim, label_rule([y], options), options)


def _column(name: str, value: Any, rows: int) -> Vector:
    column = check.array(name, value)
    if column.shape != (rows,):
        raise InvalidInput(
            f"{name}= needs one entry for each of the {rows} rows, got shape {column.shape}; match them."
        )
    return column


def _batch(matrix: Any, first: int, last: int, y: Vector, weight: Vector, dtype: str, is_canonical: bool) -> Batch:
    """Rows [first, last) of a matrix, without zeros, as text files are read."""
    begin, end = int(matrix.indptr[first]), int(matrix.indptr[last])
    indptr = matrix.indptr[first : last + 1].astype(np.int64) - begin
    indices = matrix.indices[begin:end].astype(np.uint32)
    values = check.array("data", matrix.data[begin:end])
    if not is_canonical:
        summed = Batch.from_csr(_Part(indptr, indices, values), float64=True)
        indptr, indices, values = summed.indptr, summed.indices, summed.values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, and the learner refuses that
        stored = values.astype(dtype)
    if not stored.all():
        kept = stored != 0
        indptr = np.concatenate(([0], np.cumsum(kept)))[indptr].astype(np.int64)
        indices, stored = indices[kept], stored[kept]
    return Batch(indptr, indices, stored, y, weight, first, ORIGIN).replaced(is_private=True)


class _Part:
    """Rows of a matrix that may have a column twice."""

    def __init__(self, indptr: NDArray[np.int64], indices: NDArray[np.uint32], data: Vector) -> None:
        self.indptr, self.indices, self.data = indptr, indices, data
