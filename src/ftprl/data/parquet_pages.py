"""Headers of the pages of a Parquet file, in Thrift's compact protocol, with the decompressed bytes of each page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_USUAL_HEADER, _LONGEST_HEADER = 1 << 9, 1 << 20  # it has statistics, which may be texts
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_DECOMPRESSED, _COMPRESSED = 2, 3  # fields of a header


def page_sizes(file: Any, start: int, stop: int) -> Iterator[int]:
    """Yield the decompressed bytes of each page between two offsets of a file.

    Raise ValueError where there is no header.
    """
    most = _USUAL_HEADER
    while start < stop:
        file.seek(start)
        fields: dict[int, int] = {}
        try:
            length = _struct(file.read(min(most, stop - start)), 0, 1, fields)
            size, behind = fields[_DECOMPRESSED], start + length + fields[_COMPRESSED]
        except (IndexError, KeyError):
            if most == _LONGEST_HEADER:
                raise ValueError("a page without a header") from None
            most = _LONGEST_HEADER
            continue
        if behind <= start:
            raise ValueError("a page of a negative size")
        yield size
        start, most = behind, _USUAL_HEADER


def _struct(data: bytes, at: int, depth: int, fields: dict[int, int] | None = None) -> int:
    """Return where a structure ends, and put its whole numbers into `fields`."""
    if depth > 16:
        raise IndexError
    number = 0
    while head := data[at]:
        at += 1
        step, kind = head >> 4, head & 15
        if step == 0:
            step, at = _varint(data, at)
            step = (step >> 1) ^ -(step & 1)
            number = 0
        number += step
        if fields is not None and _BYTE < kind < _DOUBLE:
            value, at = _varint(data, at)
            fields[number] = (value >> 1) ^ -(value & 1)
        elif kind not in (_TRUE, _FALSE):  # which are in the head
            at = _skip(data, at, kind, depth)
    return at + 1


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Return where a value ends."""
    if kind in (_TRUE, _FALSE, _BYTE):
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    if kind in (_LIST, _SET, _MAP):
        raise IndexError  # no header has them
    value, at = _varint(data, at)
    return at + value if kind == _BINARY else at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        if data[at] < 128 or shift > 63:
            return value, at + 1
        at, shift = at + 1, shift + 7
