"""Parquet files that are damaged, against pyarrow: never a crash, one line or rows, and the rows that pyarrow reads.

A file is written by pyarrow with random types, encodings, codecs and sizes of pages, and then left as it is, or bits
are flipped, bytes cut or inserted, in its pages, its index or both, or numbers of its index replaced.
"""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

from forged_targets import check_message

TEXTS = ("", "a", "Rome", "São Paulo", "x" * 70, "a,b", "10", "true")
CODECS = ("none", "snappy", "snappy", "gzip", "zstd", "brotli", "lz4")
OTHER_ENCODINGS = {
    "i64": "DELTA_BINARY_PACKED",
    "f64": "BYTE_STREAM_SPLIT",
    "many": "DELTA_LENGTH_BYTE_ARRAY",
    "words": "DELTA_BYTE_ARRAY",
}


def table_of(rng: random.Random, rows: int) -> Any:
    """Columns of many types, those of them that chance takes; some have no value in some rows."""
    import pyarrow as pa

    missing = rng.choice((0.0, 0.02, 0.5))
    few = rng.choice((1, 3, 300))
    day, moment = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)
    makers: dict[str, tuple[Any, Any]] = {
        "i64": (pa.int64(), lambda: rng.randrange(-(2**60), 2**60)),
        "few": (pa.int64(), lambda: rng.randrange(few)),
        "u32": (pa.uint32(), lambda: rng.randrange(2**32)),
        "f32": (pa.float32(), rng.random),
        "f64": (pa.float64(), lambda: round(rng.gauss(0, 10), rng.choice((0, 1, 9)))),
        "yes": (pa.bool_(), lambda: rng.random() < 0.5),
        "day": (pa.date32(), lambda: day + dt.timedelta(rng.randrange(-9999, 9999))),
        "us": (pa.timestamp("us"), lambda: moment + dt.timedelta(seconds=rng.randrange(10**9))),
        "words": (pa.string(), lambda: rng.choice(TEXTS)),
        "many": (pa.string(), lambda: f"name-{rng.randrange(few * 99)}"),
        "bytes": (pa.binary(), lambda: rng.randbytes(rng.randrange(4))),
        "price": (pa.decimal128(9, 2), lambda: round(rng.random(), 2).__str__()),
    }
    names = [name for name in makers if rng.random() < 0.5] or ["words"]
    if rng.random() < 0.8 and "price" in names and len(names) > 1:
        names.remove("price")  # which only pyarrow reads
    columns = {}
    for name in names:
        type, make = makers[name]
        cells = [None if rng.random() < missing else make() for _ in range(rows)]
        if name == "price":
            import decimal

            cells = [
                None if cell is None else decimal.Decimal(cell).quantize(decimal.Decimal("0.01")) for cell in cells
            ]
        columns[name] = pa.array(cells, type)
    columns["y"] = pa.array([rng.randrange(2) for _ in range(rows)])
    return pa.table(columns)


def written(path: Path, rng: random.Random) -> None:
    """A whole file."""
    import pyarrow.parquet as pq

    table = table_of(rng, rng.choice((1, 9, 200, 1000)))
    options: dict[str, Any] = {"use_dictionary": rng.random() < 0.7}
    if rng.random() < 0.15:
        own = {name: OTHER_ENCODINGS[name] for name in table.column_names if name in OTHER_ENCODINGS}
        options = {"use_dictionary": False, "column_encoding": own} if own else options
    if rng.random() < 0.05:
        options["use_deprecated_int96_timestamps"] = True
    pq.write_table(
        table,
        path,
        compression=rng.choice(CODECS),
        data_page_version=rng.choice(("1.0", "2.0")),
        data_page_size=rng.choice((1, 300, 2**20)),
        write_batch_size=rng.choice((1, 10, 1024)),
        dictionary_pagesize_limit=rng.choice((40, 400, 2**20)),
        row_group_size=rng.choice((7, 150, 2000)),
        store_schema=rng.random() < 0.5,
        **options,
    )


def damaged(body: bytes, rng: random.Random) -> bytes:
    """A few changes, mostly where the metadata is."""
    changed = bytearray(body)
    index = len(changed) - 8 - int.from_bytes(changed[-8:-4], "little")
    for _ in range(rng.choice((1, 1, 2, 5))):
        in_pages = rng.random() < 0.6
        at = rng.randrange(4, index) if in_pages else rng.randrange(index, len(changed))
        match rng.randrange(9):
            case 0 | 1 | 2:
                changed[at] ^= 1 << rng.randrange(8)
            case 3:
                changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 4:  # a number of many bytes
                changed[at : at + 5] = rng.choice((b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x10", b"\xff" * 5))
            case 5:
                del changed[rng.randrange(len(changed)) :]
            case 6:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 7:
                changed[-8:-4] = rng.choice((0, 1, index, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
            case _:
                changed[at : at + 64] = b"\x1c" * 64  # structures within structures
        if len(changed) < 20:
            break
        index = min(index, len(changed) - 9)
    return bytes(changed)


class ParquetFiles:
    """The core's own decoder and `data.open` on whole and on damaged files."""

    name, suffix = "parquet", ".parquet"

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, rng: random.Random) -> tuple[bytes, str]:
        path = self.folder / "whole.parquet"
        written(path, rng)
        body = path.read_bytes()
        return (body if rng.random() < 0.2 else damaged(body, rng)), ""

    def run(self, path: Path, rng: random.Random) -> None:
        is_whole = path.read_bytes() == (self.folder / "whole.parquet").read_bytes()
        theirs = _table(path)
        assert theirs is not None or not is_whole, "pyarrow does not read what it wrote"
        ours = _cells(path, rng.choice(("categorical", "text")))
        if is_whole:
            expected = {name: _decoded(theirs.column(name)) for name in theirs.column_names}
            assert ours is None or ours == expected, f"other cells than pyarrow's: {_differing(ours, expected)}"
        rows = _rows(path, rng)
        if is_whole:
            assert rows == _rows(theirs, rng), "other rows than those of the table"


def _table(path: Path) -> Any:
    """The file as pyarrow reads it; None where it does not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError, ValueError, TypeError):
        return None


def _decoded(column: Any) -> list[Any]:
    import pyarrow as pa

    cells = column.combine_chunks()
    cells = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
    return [_plain(cell) for cell in cells.to_pylist()]


def _plain(cell: Any) -> Any:
    """A cell as the core gives it: text as bytes, dates as numbers."""
    if isinstance(cell, str):
        return cell.encode()
    if isinstance(cell, dt.datetime):
        return (cell.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    return (cell - dt.date(1970, 1, 1)).days if isinstance(cell, dt.date) else cell


def _cells(path: Path, kind: str) -> dict[str, list[Any]] | None:
    """The cells of all columns, as the core decodes them; None where it does not."""
    from ftprl.data.parquet import open_pages
    from ftprl.errors import FtprlError

    pages = open_pages(str(path), {})
    if pages is None:
        return None
    kinds = {leaf.name: kind if leaf.type == "text" else leaf.kind for leaf in pages.leaves}
    cells: dict[str, list[Any]] = {name: [] for name in pages.names}
    try:
        for group in range(pages.groups):
            for batch in pages.batches(group, kinds):
                for place, name in enumerate(pages.names):
                    cells[name] += batch.values(place)
    except FtprlError as error:
        check_message(str(error))
        return None
    finally:
        pages.close()
    return cells


def _rows(data: Any, rng: random.Random) -> list[bytes] | None:
    """The rows of data as bytes; None where it is refused."""
    import ftprl
    from ftprl.errors import FtprlError

    rows: list[bytes] = []
    try:
        source = ftprl.data.open(data, label="y", dim=2**20)
        for batch, _ in source.read(threads=rng.choice((0, 1))):
            for row in range(len(batch)):
                one = batch[row : row + 1]
                rows.append(b"".join(a.tobytes() for a in (one.indices, one.values, one.y, one.weight)))
    except FtprlError as error:
        check_message(str(error))
        return None
    return rows


def _differing(ours: dict[str, list[Any]], theirs: dict[str, list[Any]]) -> list[str]:
    return [name for name in theirs if ours.get(name) != theirs[name]]
