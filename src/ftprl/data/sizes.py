"""Bytes of the rows of record batches and of the pages of Parquet, known before cells are decompressed or converted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


_ROWS = 1 << 20  # that are looked at together
_SHORT = 1024  # so many short rows are few bytes
Widths = NDArray[np.int64] | int  # of each cell; a number if all have it


def row_bytes(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the bytes of each row, with the text of entries of dictionaries in each cell that has them.

    >>> import pyarrow as pa
    >>> texts = pa.array(["ab", None, "ab", "c"])
    >>> row_bytes(pa.record_batch({"x": texts.dictionary_encode(), "y": pa.array([1, 2, 3, 4])})).tolist()
    [10, 8, 10, 9]
    """
    sizes = np.zeros(batch.num_rows, np.int64)
    for cells in batch.columns:
        sizes += _widths(cells)
    return sizes


def pieces(
    batch: pa.RecordBatch, most: int, longest: int | None = None
) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64] | None]]:
    """Yield the rows of a batch in slices of at most `most` bytes or of one row, and the bytes of their rows.

    Where no row can have more than `longest` bytes, and all are short, they are not counted one by one.
    """
    for first in range(0, batch.num_rows, _ROWS):
        part = batch.slice(first, _ROWS)
        reserve, bound, sizes = _reserve(part), sum(map(_longest, part.columns)), None
        if bound <= most // _SHORT and (longest is None or bound <= longest):
            ends = np.arange(1, len(part) + 1) * (bound + reserve)
        else:
            sizes = row_bytes(part)
            ends = np.cumsum(sizes + reserve)
        start, before = 0, 0
        while start < len(ends):
            stop = max(start + 1, int(np.searchsorted(ends, before + most, "right")))
            piece = part.slice(start, stop - start)
            whole = piece if len(piece) == batch.num_rows else _compact(piece)
            yield whole, None if sizes is None else sizes[start:stop]
            start, before = stop, int(ends[stop - 1])


def _longest(cells: Any) -> int:
    """Return the bytes of the longest cell or entry of a dictionary."""
    from pyarrow import types

    return int(np.max(_widths(cells.dictionary if types.is_dictionary(cells.type) else cells), initial=0))


def _reserve(batch: pa.RecordBatch) -> int:
    """Return the bytes of a mean entry of each dictionary: pyarrow reserves as much for each cell that it decodes."""
    from pyarrow import types

    entries = [cells.dictionary for cells in batch.columns if types.is_dictionary(cells.type)]
    return sum(int(np.mean(_widths(one))) for one in entries if len(one))


def _compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a slice with nothing but its own elements of lists: conversions go over all that a column has."""
    import pyarrow as pa
    from pyarrow import types

    columns = [pa.concat_arrays([cells]) if types.is_nested(cells.type) else cells for cells in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _widths(cells: Any) -> Widths:
    import pyarrow as pa
    from pyarrow import compute, types

    type = cells.type
    if isinstance(cells, pa.ExtensionArray):
        return _widths(cells.storage)
    if types.is_run_end_encoded(type):
        runs = np.searchsorted(cells.run_ends.to_numpy(), cells.offset + np.arange(len(cells)), "right")
        return np.asarray(np.broadcast_to(_widths(cells.values), len(cells.values))[runs])
    if types.is_dictionary(type):
        entries = np.broadcast_to(_widths(cells.dictionary), len(cells.dictionary))
        at = cells.indices.fill_null(0).to_numpy(zero_copy_only=False)
        there = cells.indices.is_valid().to_numpy(zero_copy_only=False)
        return np.where(there, entries[at], 0) if len(entries) else 0
    if str(type) in ("string_view", "binary_view"):  # each is 16 bytes, which begin with the length
        views = np.frombuffer(cells.buffers()[1] or b"", np.int32).reshape(-1, 4)
        return views[cells.offset : cells.offset + len(cells), 0].astype(np.int64)
    if types.is_struct(type):
        return sum((_widths(inner) for inner in cells.flatten()), 0)
    if types.is_list(type) or types.is_large_list(type) or types.is_map(type):
        offsets = cells.offsets.to_numpy().astype(np.int64)
        first, count = offsets[0], offsets[-1] - offsets[0]
        own = [cells.keys, cells.items] if types.is_map(type) else [cells.values]
        return _sums(sum((_widths(one.slice(first, count)) for one in own), 0), offsets - first)
    if types.is_nested(type) and not types.is_union(type):  # lists of a fixed size, and views of lists
        lengths = compute.fill_null(compute.list_value_length(cells), 0).to_numpy(zero_copy_only=False)
        return _sums(_widths(cells.flatten()), np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))
    try:
        return int(type.bit_width) // 8
    except ValueError:
        has_text = types.is_binary(type) or types.is_string(type) or str(type).startswith("large_")
        lengths = compute.fill_null(compute.binary_length(cells), 0) if has_text else None
        return 0 if lengths is None else lengths.to_numpy(zero_copy_only=False).astype(np.int64)


def _sums(widths: Widths, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of widths between offsets."""
    if isinstance(widths, int):
        return np.diff(offsets) * widths
    return np.diff(np.concatenate(([0], np.cumsum(widths)))[offsets])


_USUAL_HEADER, _LONGEST_HEADER = 1 << 9, 1 << 20  # it has statistics, which may be texts


_DEEPEST = 16


# Types of Thrift's compact protocol, in which both are written.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


# Numbers of fields.
_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3


_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 3, 6, 7, 9, 11


_PAGE_UNCOMPRESSED, _PAGE_COMPRESSED = 2, 3


@final
class ColumnChunk(NamedTuple):
    """The cells of a column in a row group: `path` names it, and its pages are from `start` to `stop` in the file."""

    path: tuple[str, ...]
    uncompressed: int
    start: int
    stop: int


def column_chunks(file: Any) -> list[list[ColumnChunk]]:
    """Return the columns of each row group; raise ValueError if the footer is damaged."""
    file.seek(-8, 2)
    end = file.tell()
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(0, end - length))
    try:
        groups = _struct(file.read(length), 0, 1)[0][_ROW_GROUPS]
        return [[_chunk(column[_METADATA]) for column in group[_COLUMNS]] for group in groups]
    except (IndexError, KeyError, TypeError, AttributeError):
        raise ValueError("a damaged footer") from None


def _chunk(about: dict[int, Any]) -> ColumnChunk:
    start = min(about[_DATA_PAGE], about.get(_DICTIONARY_PAGE) or about[_DATA_PAGE])
    path = tuple(step.decode() for step in about[_PATH])
    return ColumnChunk(path, max(0, int(about[_UNCOMPRESSED])), start, start + about[_COMPRESSED])


def page_sizes(file: Any, chunk: ColumnChunk) -> Iterator[int]:
    """Yield the decompressed bytes of each page of a column; raise ValueError where there is no header."""
    at, most = chunk.start, _USUAL_HEADER
    while at < chunk.stop:
        try:
            file.seek(at)
            fields, length = _struct(file.read(min(most, chunk.stop - at)), 0, 1)
            size, behind = int(fields[_PAGE_UNCOMPRESSED]), at + length + int(fields[_PAGE_COMPRESSED])
        except (IndexError, KeyError, TypeError):
            if most == _LONGEST_HEADER:
                raise ValueError("a page without a header") from None
            most = _LONGEST_HEADER
            continue
        if behind <= at:
            raise ValueError("a page of a negative size")
        yield size
        at, most = behind, _USUAL_HEADER


# ---- Thrift's compact protocol: a value and where it ends; IndexError where data ends before it ----
def _struct(data: bytes, at: int, depth: int) -> tuple[dict[int, Any], int]:
    if depth > _DEEPEST:
        raise IndexError
    fields: dict[int, Any] = {}
    number = 0
    while head := data[at]:
        at += 1
        step, kind = head >> 4, head & 15
        if step:
            number += step
        else:
            number, at = _number(data, at)
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if _BYTE < kind < _DOUBLE:
        return _number(data, at)
    if kind == _BINARY:
        length, at = _varint(data, at)
        return data[at : at + length], at + length
    if kind in (_LIST, _SET):
        count, inner, values = data[at] >> 4, data[at] & 15, list[Any]()
        count, at = _varint(data, at + 1) if count == 15 else (count, at + 1)
        if depth > _DEEPEST:
            raise IndexError
        for _ in range(count):
            value, at = _value(data, at, inner, depth + 1)
            values.append(value)
        return values, at
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at + 7], at + 8
    raise IndexError  # there are no maps


def _number(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128 or shift > 63:
            return value, at
