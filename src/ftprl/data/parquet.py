"""Parquet files that the core reads itself: flat columns of numbers, booleans, dates and text, usually encoded.

Everything else in Parquet (lists, structures, decimals, other encodings, remote files) is read through pyarrow, which
takes several times as long: `open_pages` returns None then.
"""

from __future__ import annotations

import binascii
import struct
import sys
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, NamedTuple, final

from ftprl._core import ParquetBatch, ParquetFile, has_zstd, sample_cells
from ftprl.data import partitions
from ftprl.data.columns import ColumnHead, ColumnSample
from ftprl.data.files import STDIN, is_uri, shown
from ftprl.data.text_settings import BATCH_ROWS
from ftprl.errors import BadFormat

PART = "row group"
_BOOLEAN, _INT32, _INT64, _FLOAT, _DOUBLE, _BYTES = 0, 1, 2, 4, 5, 6  # physical types
_UTF8, _DATE, _MILLISECONDS, _MICROSECONDS = 0, 6, 9, 10  # converted types
_SMALL_NUMBERS, _LARGE_NUMBERS = {11, 12, 13, 15, 16, 17}, {14, 18}
_STRING, _DATE_TYPE, _TIMESTAMP, _INTEGER = 1, 6, 8, 10  # logical types
_NONE = -1
_ENCODINGS = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8  # plain, dictionaries and runs
_OWN_CODECS = 1 << 0 | 1 << 1  # none and Snappy
_ZSTD = 1 << 6  # by the library of the system if there is one
_CODECS = {1 << 2: "gzip", 1 << 4: "brotli", _ZSTD: "zstd", 1 << 7: "lz4_raw"}  # decompressed by pyarrow
_ARROW_TYPES = {2, 3, 4, 5, 6, 8, 10, 19, 20, 23, 24}  # numbers, text, booleans, dates, times
_ARROW_TEXTS = {5, 20, 24}
_LEAST_ROWS, _MOST_CELLS = 1 << 10, 1 << 20  # of a batch


@final
class Leaf(NamedTuple):
    """A column of a file. `type` is "number", "boolean", "date" or "text"; `is_category` is a dictionary of texts."""

    name: str
    type: str
    codecs: int
    is_category: bool = False

    @property
    def kind(self) -> str:
        """The kind of the column unless an option names another."""
        kinds = {"number": "numeric", "text": "categorical"}
        return kinds.get(self.type, self.type)

    def can_be(self, kind: str) -> bool:
        """Whether the core reads it as a column of that kind; a date as text is written by pyarrow."""
        return kind == "ignore" or self.type != "date" or kind in ("date", "timestamp")


@final
class _Begun(NamedTuple):
    """A row group of which some batches were read, and the rest."""

    columns: list[tuple[int, bool]]
    batches: deque[ParquetBatch]
    rest: Generator[ParquetBatch]


@final
class ParquetPages:
    """A Parquet file that is open."""

    part = PART

    def __init__(self, path: str, file: ParquetFile, leaves: Sequence[Leaf]) -> None:
        self._path, self._file, self.leaves = path, file, leaves
        self.groups = file.groups
        self._begun: _Begun | None = None  # rows of the first row group that were read for a sample

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        return [leaf.name for leaf in self.leaves]

    @property
    def path(self) -> str:
        """The path of the file."""
        return self._path

    def suits(self, kinds: Mapping[str, str]) -> bool:
        """Whether the core reads all its columns as these kinds."""
        return bool(self.leaves) and all(leaf.can_be(kinds.get(leaf.name, leaf.kind)) for leaf in self.leaves)

    def batches(self, group: int, kinds: Mapping[str, str]) -> Generator[ParquetBatch]:
        """The rows of a row group; those columns that are used. Rows that a sample has read are not read again."""
        columns, begun = self._columns(kinds), self._begun
        if group == 0 and begun is not None and begun.columns == columns:
            self._begun = None
            while begun.batches:
                yield begun.batches.popleft()
            yield from begun.rest
        else:
            yield from self._read(group, columns)

    def _columns(self, kinds: Mapping[str, str]) -> list[tuple[int, bool]]:
        """Which columns are used, and whether they may come as dictionaries."""
        chosen = [i for i, leaf in enumerate(self.leaves) if kinds.get(leaf.name, "ignore") != "ignore"]
        return [(i, kinds[self.leaves[i].name] == "categorical") for i in chosen]

    def _read(self, group: int, columns: list[tuple[int, bool]]) -> Generator[ParquetBatch]:
        decompress = _decompressor([self.leaves[i] for i, _ in columns])
        where, most = f"{shown(self._path)}: {PART} {group}: ", rows_at_once(len(columns))
        rows = _careful(where, lambda: self._file.group(group, columns, decompress))
        while (batch := _careful(where, lambda: rows.read(most))) is not None:
            yield batch

    def first_rows(self, kinds: Mapping[str, str], most: int) -> list[ParquetBatch]:
        """The first rows of all row groups; what is damaged is reported when it is read."""
        batches_read, rows, columns = list[ParquetBatch](), 0, self._columns(kinds)
        for group in range(self.groups):
            batches, first = self._read(group, columns), len(batches_read)
            try:
                for batch in batches:
                    batches_read.append(batch)
                    rows += batch.num_rows
                    if rows >= most:
                        break
            except BadFormat:
                break
            if group == 0:
                self._begun = _Begun(columns, deque(batches_read[first:]), batches)
            if rows >= most:
                break
        return batches_read

    def heads(self, kinds: Mapping[str, str], most: int) -> list[ColumnHead]:
        """What is known of the columns by their types and first rows; `kinds` are those that are settled."""
        wanted = {leaf.name: kinds.get(leaf.name, leaf.kind) for leaf in self.leaves}
        used = [name for name, kind in wanted.items() if kind != "ignore"]
        first = [batch.__arrow_c_array__() for batch in self.first_rows(wanted, most)] if used else []
        positions = {name: position for position, name in enumerate(used)}

        def head(leaf: Leaf) -> ColumnHead:
            def sample(kind: str, cells: int | None) -> ColumnSample:
                rows = most if cells is None else min(most, cells)
                return ColumnSample(*sample_cells(first, positions[leaf.name], rows, kind == "bucket"))

            is_text = leaf.type == "text" and not leaf.is_category
            return ColumnHead(leaf.name, leaf.kind, is_text, sample if leaf.name in positions and first else None)

        return [head(leaf) for leaf in self.leaves]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@final
class HeldPages:
    """A file that was opened for a sample, for the first one who reads it."""

    def __init__(self, pages: ParquetPages | None = None) -> None:
        self._pages = pages

    def take(self, path: str, kinds: Mapping[str, str]) -> ParquetPages | None:
        """The file, if it is this one and can be read as these kinds; None from the second time on."""
        pages, self._pages = self._pages, None
        return pages if pages is not None and pages.path == path and pages.suits(kinds) else None

    def __reduce__(self) -> tuple[Any, ...]:
        """For another process: nothing."""
        return HeldPages, ()


def rows_at_once(columns: int) -> int:
    """How many rows are decoded at a time: fewer of many columns, so that they take as much memory."""
    rows = BATCH_ROWS
    while rows > _LEAST_ROWS and rows * columns > _MOST_CELLS:
        rows //= 2
    return rows


def _careful(where: str, step: Callable[[], Any]) -> Any:
    """What a step gives; what is wrong with the file becomes one line that names it."""
    try:
        return step()
    except (ValueError, OSError) as error:
        what = shown(" ".join(str(error).split()))[:160]
        raise BadFormat(f"{where}expected a Parquet file, got other bytes ({what}); check the file.") from None


def _decompressor(leaves: Sequence[Leaf]) -> Callable[[bytes, int], Any] | None:
    """What decompresses pages that the core does not; None where there are none."""
    others = _other_codecs(leaves)
    if not others:
        return None
    import pyarrow as pa

    codec = pa.Codec(_CODECS[others])
    return lambda page, size: codec.decompress(page, size)


def _other_codecs(leaves: Sequence[Leaf]) -> int:
    """The codecs of some columns that the core does not decompress."""
    codecs = 0
    for leaf in leaves:
        codecs |= leaf.codecs
    own = _OWN_CODECS | (_ZSTD if codecs & _ZSTD and has_zstd() else 0)
    return codecs & ~own


def open_pages(path: str, kinds: Mapping[str, str]) -> ParquetPages | None:
    """A file that the core reads itself, with columns of these kinds; None for any other, damaged ones too."""
    if sys.byteorder != "little" or path == STDIN or is_uri(path) or partitions.keys_of(path):
        return None
    try:
        file = ParquetFile(path)
        leaves = _leaves_of(file)
    except (ValueError, UnicodeError, struct.error, IndexError):
        return None
    others = _other_codecs(leaves)
    pages = ParquetPages(path, file, leaves)
    if not pages.suits(kinds) or (others and others not in _CODECS):
        file.close()
        return None
    return pages


def _leaves_of(file: ParquetFile) -> list[Leaf]:
    """The columns; none where the core cannot read one of them."""
    arrow = _arrow_fields(binascii.a2b_base64(file.arrow_schema)) if file.arrow_schema else None
    leaves: list[Leaf] = []
    for place, (name, *described, encodings, codecs) in enumerate(file.leaves if file.is_flat else ()):
        type, is_category = _type_of(*described), False
        if arrow is not None:
            own, is_category = arrow.get(name, (0, False)) if len(arrow) > place else (0, False)
            if own not in _ARROW_TYPES or (is_category and own not in _ARROW_TEXTS):
                return []
        if type is None or encodings & ~_ENCODINGS:
            return []
        leaves.append(Leaf(name.decode(), type, codecs, is_category))
    return leaves


def _type_of(physical: int, converted: int, logical: int, unit: int) -> str | None:
    """What a column holds; None for what the core does not read."""
    is_unannotated = (converted, logical) == (_NONE, _NONE)
    integer = logical in (_NONE, _INTEGER)
    if physical == _BOOLEAN:
        return "boolean" if is_unannotated else None
    if physical in (_FLOAT, _DOUBLE):
        return "number" if is_unannotated else None
    if physical == _BYTES:
        return "text" if converted in (_NONE, _UTF8) and logical in (_NONE, _STRING) else None
    if physical == _INT32:
        if (converted == _DATE or logical == _DATE_TYPE) and converted in (_NONE, _DATE):
            return "date" if logical in (_NONE, _DATE_TYPE) else None
        return "number" if is_unannotated or (converted in _SMALL_NUMBERS and integer) else None
    if physical == _INT64:
        times = converted in (_MILLISECONDS, _MICROSECONDS)
        if logical == _TIMESTAMP:
            return "date" if unit in (1, 2, 3) and (times or converted == _NONE) else None
        if times:
            return "date" if logical == _NONE else None
        return "number" if is_unannotated or (converted in _LARGE_NUMBERS and integer) else None
    return None


# ---- the types of Arrow, which a file keeps as a message of FlatBuffers (https://arrow.apache.org/docs/format) ----


def _arrow_fields(message: bytes) -> dict[bytes, tuple[int, bool]]:
    """The number of the type of each field, 0 for an extension, and whether it is a dictionary."""
    start = 8 if message[:4] == b"\xff\xff\xff\xff" else 4
    buffer = memoryview(message)[start:]
    schema = _table(buffer, _reference(buffer, 0), 2)
    fields: dict[bytes, tuple[int, bool]] = {}
    for field in _vector(buffer, _slot(buffer, schema, 1)):
        name, type = _slot(buffer, field, 0), _slot(buffer, field, 2)
        at = _reference(buffer, name)
        text = bytes(buffer[at + 4 : at + 4 + _u32(buffer, at)])
        has_metadata = bool(_vector(buffer, _slot(buffer, field, 6)))
        number = buffer[type] if type and not has_metadata else 0
        fields[text] = number, _slot(buffer, field, 4) != 0
    return fields


def _u32(buffer: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", buffer, at)[0])


def _reference(buffer: memoryview, at: int) -> int:
    return at + _u32(buffer, at)


def _slot(buffer: memoryview, table: int, number: int) -> int:
    """Where a field of a table is; 0 if it has none."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    size: int = struct.unpack_from("<H", buffer, vtable)[0]
    if 4 + 2 * number >= size:
        return 0
    offset: int = struct.unpack_from("<H", buffer, vtable + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _table(buffer: memoryview, table: int, number: int) -> int:
    return _reference(buffer, _slot(buffer, table, number))


def _vector(buffer: memoryview, slot: int) -> list[int]:
    """Where the tables of a vector are."""
    if slot == 0:
        return []
    at = _reference(buffer, slot)
    return [_reference(buffer, at + 4 + 4 * i) for i in range(_u32(buffer, at))]
