"""Which character separates the columns of a CSV file whose header has no comma outside quotes."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ftprl._core import first_row
from ftprl.data.files import Stream
from ftprl.data.options import SEPARATORS
from ftprl.data.tables import Dialect, Header, read_header

if TYPE_CHECKING:
    from ftprl.data.text_settings import TextSettings

_ROWS = 100
_BYTES = 64_000


def recognised(dialect: Dialect, stream: Stream, block_size: int) -> tuple[Dialect, bytes]:
    """The dialect of a CSV file, and the bytes read to see it.

    A comma, unless the header has none outside quotes. Then another separator is taken if it is the only one that
    cuts the header and each of the first rows into the same number of fields, two or more: a file of one column has
    no feature beside its label.
    """
    data = block = stream.read(block_size)
    while block and len(data) < _BYTES:
        block = stream.read(block_size)
        data += block
    is_all = not block
    row = first_row(data, is_all, *dialect.codes) if data else None
    if row is None or len(row[0]) > 1:
        return dialect, data
    others = [sep for sep in SEPARATORS if sep not in (dialect.sep, dialect.quote)]
    fitting = [sep for sep in others if _fits(dialect._replace(sep=sep), data, is_all)]
    return (dialect._replace(sep=fitting[0]) if len(fitting) == 1 else dialect), data


def header_of(stream: Stream, settings: TextSettings, data: bytes = b"") -> tuple[Header, Dialect]:
    """The header of a table whose columns are known, and its dialect: each CSV file may have another separator."""
    dialect = settings.dialect
    assert dialect is not None
    header = read_header(stream, dialect, settings.block_size, settings.max_row, data)
    if not settings.recognises_separator:
        return header, dialect
    optional = settings.optional_kinds
    needed = [name for name, kind in (settings.columns or {}).items() if kind not in optional]
    fitting = with_columns(dialect, header.data[: header.offset], needed)
    if fitting == dialect:
        return header, dialect
    return read_header(stream, fitting, settings.block_size, settings.max_row, header.data), fitting


def with_columns(dialect: Dialect, data: bytes, names: Collection[str]) -> Dialect:
    """The dialect in which the header has these columns, if another separator than that of the dialect gives them.

    For files that a model reads: their columns are known, so that the header decides.
    """
    for sep in (dialect.sep, *SEPARATORS):
        row = None if sep == dialect.quote else first_row(data, True, ord(sep), dialect.codes[1])
        if row is not None and {field.decode("utf-8", "replace").strip() for field in row[0]}.issuperset(names):
            return dialect._replace(sep=sep)
    return dialect


def _fits(dialect: Dialect, data: bytes, is_all: bool) -> bool:
    """Whether the first whole rows all have as many fields as the header, and more than one."""
    fields, at = 0, 0
    for number in range(_ROWS):
        is_last = is_all and at + _BYTES >= len(data)
        row = first_row(data[at : at + _BYTES], is_last, *dialect.codes) if at < len(data) else None
        if row is None:
            break
        if number == 0:
            fields = len(row[0])
        elif row[0] != [b""] and len(row[0]) != fields:
            return False
        at += row[1]
    return fields > 1
