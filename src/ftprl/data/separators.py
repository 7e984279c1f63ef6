"""Which character separates the columns of a CSV file whose header has no comma outside quotes."""

from __future__ import annotations

from ftprl._core import first_row
from ftprl.data.files import Stream
from ftprl.data.tables import Dialect

OTHERS = (";", "\t", "|")
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
    others = [sep for sep in OTHERS if sep != dialect.quote]
    fitting = [sep for sep in others if _fits(dialect._replace(sep=sep), data, is_all)]
    return (dialect._replace(sep=fitting[0]) if len(fitting) == 1 else dialect), data


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
