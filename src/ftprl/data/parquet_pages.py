"""Sizes that Parquet's footer and page headers state, read here as pyarrow ends the process if some are damaged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, final

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
