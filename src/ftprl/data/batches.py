"""Files of batches, `.batches`: rows that were parsed and hashed before, read back without parsing (docs/convert.md).

A file has blocks of arrays, one block per batch, and behind them a footer in JSON: how the data was read, and where
each block is, with its fingerprint. Blocks are read into memory of their own, not mapped: another process that writes
to the file meanwhile can then change nothing that was checked.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from itertools import accumulate
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import HASH_VERSION, BlockReader, NewNames, text_fingerprint
from ftprl.atomic import replacing
from ftprl.data.batch import Batch, RowNames, Vector
from ftprl.data.files import shown
from ftprl.data.fingerprints import check_same_files, ends_of
from ftprl.data.memory import RowPosition
from ftprl.data.ngrams import NAMES
from ftprl.data.ngrams import parse as parse_grams
from ftprl.data.options import ReadingOptions, column_names
from ftprl.data.parsing import LeftOut
from ftprl.data.prefetch import prefetched, usual_threads
from ftprl.data.protocol import Description, Position, Source
from ftprl.errors import BadFormat, InvalidInput

VERSION = 1
_MAGIC = b"FTPRLBAT"
_TAIL = 32  # bytes: the length of the footer, its fingerprint, the version, and the magic
_LARGEST_FOOTER = 1 << 30
_BLOCK_ROWS, _BLOCK_ENTRIES = 16384, 1 << 19
_INT64, _UINT32, _FLOAT64 = np.dtype(np.int64), np.dtype(np.uint32), np.dtype(np.float64)
_KINDS = ("label", "weight", "ignore", "categorical", "numeric", "text")


class _Block(NamedTuple):
    """Where a batch is, how many rows and entries it has, and what is left out because it is 1 everywhere."""

    offset: int
    size: int
    rows: int
    entries: int
    has_weights: bool
    has_values: bool
    fingerprint: int


# ---- writing ----


def write_batches(path: str | os.PathLike[str], source: Source, data: Any = None, *, threads: int | None = None) -> int:
    """Write all rows of a source; returns how many. `data` is what a later run recognises the data by."""
    with replacing(path) as out:
        out.write(_MAGIC)
        blocks, offset, rows = list[_Block](), len(_MAGIC), 0
        left_out, texts = Counter[int](), dict[float, str]()
        with closing(source.read(threads=threads, digest=False)) as reading:
            for batch, _ in reading:
                texts |= batch.label_texts
                for part in _parts(batch):
                    content, block = _packed(part, offset)
                    out.write(content)
                    offset, rows = offset + len(content), rows + len(part)
                    blocks.append(block)
                left_out.update(source.take_left_out())
        left_out.update(source.take_left_out())
        described = source.describe()
        footer = {
            "hash_version": HASH_VERSION,
            "reading": source.to_dict(),
            "labels": described.labels,
            "rows": rows,
            "left_out": sorted(left_out.items()),
            "first_bad": source.first_bad,
            "data": data,
            "blocks": [list(block) for block in blocks],
            **({"label_texts": sorted(texts.items())} if texts else {}),
        }
        text = json.dumps(footer, ensure_ascii=True, separators=(",", ":")).encode()
        tail = np.array([len(text), text_fingerprint(text, 0, len(text), 0), VERSION], "<u8").tobytes()
        out.write(text + tail + _MAGIC)
    return rows


def _parts(batch: Batch) -> Iterator[Batch]:
    """The rows of a batch in parts that stay in the cache between reading and learning.

    Each part is learned by a call of its own: the parts have much the same number of entries, and a batch with a few
    entries more than a part should have stays one.
    """
    entries = int(batch.indptr[-1] - batch.indptr[0])
    most = max(1, math.ceil(entries / max(1, math.ceil(entries / (1.25 * _BLOCK_ENTRIES)))))
    start = 0
    while start < len(batch):
        stop = int(np.searchsorted(batch.indptr, batch.indptr[start] + most))  # at least so many, and no few at the end
        stop = max(start + 1, min(stop, start + _BLOCK_ROWS, len(batch)))
        yield batch[start:stop]
        start = stop


def _packed(batch: Batch, offset: int) -> tuple[bytes, _Block]:
    has_weights, has_values = bool((batch.weight != 1.0).any()), bool((batch.values != 1.0).any())
    arrays: list[NDArray[Any]] = [batch.indptr, batch.y]
    arrays += [batch.weight] if has_weights else []
    arrays += [batch.values] if has_values else []
    parts = [np.ascontiguousarray(a, a.dtype.newbyteorder("<")).tobytes() for a in [*arrays, batch.indices]]
    tags = b"" if batch.tags is None else json.dumps(batch.tags).encode()
    names = b"" if batch.names is None else batch.names.new.pack(batch.names.first, batch.names.last)
    more = len(tags).to_bytes(8, "little") + tags + names if tags or names else b""
    content = b"".join([*parts, more])
    fingerprint = text_fingerprint(content, 0, len(content), 0)
    return content, _Block(offset, len(content), len(batch), len(batch.indices), has_weights, has_values, fingerprint)


# ---- reading ----


def open_files(files: tuple[str, ...], options: ReadingOptions) -> BatchesSource:
    """A file of batches as a source, if it was made with these options."""
    if len(files) != 1:
        raise InvalidInput(f"data needs one .batches file, got {len(files)}; convert the data into one.")
    source = BatchesSource(files[0], on_bad_row=options.on_bad_row, names=options.names)
    _check_options(files[0], source.to_dict(), options)
    return source


def _check_options(file: str, reading: Mapping[str, Any], options: ReadingOptions) -> None:
    """Refuse options that differ from those the batches were made with."""
    wanted = {name: getattr(options, name) for name in ("dim", "seed", "loss", "dtype", "intercept", "sep", "quote")}
    wanted |= {"format": options.format if options.format != "batches" else None, "positive": options.positive_label}
    grams = parse_grams(options.ngrams, options.skips, options.char_ngrams).to_dict()
    wanted |= {name: grams.get(name) for name in NAMES}
    wanted |= {"columns": options.columns and dict(options.columns), "header": None if options.header else False}
    for name, value in wanted.items():
        if value is not None and (name in reading or name in NAMES) and reading.get(name) != value:
            raise _other(file, name, reading[name], value)
    columns = reading.get("columns") or {}
    for kind in _KINDS:
        columns_named = getattr(options, kind)
        for name in () if columns_named is None or columns_named == () else column_names(columns_named):
            if columns.get(name) != kind:
                raise _other(file, kind, next((n for n, k in columns.items() if k == kind), None), name)


def _other(file: str, name: str, made: Any, wanted: Any) -> InvalidInput:
    return InvalidInput(
        f"{shown(file)}: expected batches made with {name}={wanted!r:.60}, got {name}={made!r:.60}; pass that, or"
        " convert the data again.",
        option=name,
    )


@final
class BatchesSource(Source):
    """A file of batches; `files` and what `describe` shows may be those of the data it was made from."""

    def __init__(
        self, path: str, *, on_bad_row: str = "raise", files: tuple[str, ...] | None = None, names: bool | str = False
    ) -> None:
        self._wants_names = bool(names)
        self._path, self._files = path, (path,) if files is None else files
        self._footer, self._tail = _footer_of(path)
        self._blocks = [_Block(*block) for block in self._footer["blocks"]]
        self._numbers = np.array(self._footer["blocks"], np.uint64).reshape(-1, len(_Block._fields))
        self._is_float64 = self._footer["reading"]["dtype"] == "float64"
        self._values: np.dtype[Any] = _FLOAT64 if self._is_float64 else np.dtype(np.float32)
        self._origin = shown(path)
        self._starts = [0, *accumulate(block.rows for block in self._blocks)]
        self._left_out_rows = {int(row): int(count) for row, count in self._footer["left_out"]}
        self._label_texts = {float(code): str(text) for code, text in self._footer.get("label_texts", ())}
        self._skip = on_bad_row == "skip"
        if self._left_out_rows and not self._skip:
            raise InvalidInput(
                f"{shown(path)}: expected all rows, got {sum(self._left_out_rows.values())} bad rows left out when it"
                f" was made, the first {shown(str(self._footer['first_bad']))[:200]}; pass on_bad_row=skip.",
                option="on_bad_row",
            )
        self._left_out, self._bad_rows = LeftOut(), 0

    @property
    def made_from(self) -> Any:
        """What the data that it was made from is recognised by."""
        return self._footer["data"]

    @property
    def files(self) -> tuple[str, ...]:
        """The file, or those it was made from."""
        return self._files

    @property
    def can_be_read_again(self) -> bool:
        """True: it is a file."""
        return True

    @property
    def start(self) -> RowPosition:
        """The position of the first row."""
        return RowPosition()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self._starts[-1]

    def position(self, saved: Mapping[str, Any]) -> RowPosition:
        """The position that `RowPosition.to_dict` saved."""
        rows = saved.get("rows")
        if type(rows) is not int or not 0 <= rows <= self.rows or set(saved) != {"rows"}:
            raise InvalidInput(f"a position needs a row from 0 to {self.rows}, got {saved!r:.200}; start anew.")
        return RowPosition(rows)

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, RowPosition]]:
        """Batches from a position on, each with the position of its first row; threads read and check in advance."""
        if not isinstance(start, RowPosition | None):
            raise InvalidInput(f"start needs a position of this file, got {type(start).__name__}; pass one.")
        return self._read(0 if start is None else start.rows, usual_threads() if threads is None else threads)

    def _read(self, start: int, threads: int) -> Generator[tuple[Batch, RowPosition]]:
        self._left_out, self._bad_rows = LeftOut(), 0
        left_out = deque(sorted(self._left_out_rows.items()))
        first = max(0, bisect_right(self._starts, start) - 1)
        with closing(self._batches_from(first, threads)) as batches:
            for batch in batches:
                skipped = max(0, start - batch.first_row)
                self._leave_out(left_out, batch.first_row + len(batch))
                if skipped < len(batch):
                    yield batch[skipped:], RowPosition(batch.first_row + skipped)
                del batch  # its memory serves the next one
        self._leave_out(left_out, self.rows)

    def _batches_from(self, first: int, threads: int) -> Generator[Batch]:
        """The batches from block number `first` on."""
        handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            reader = BlockReader(handle, self._numbers, first, self._is_float64, self._wants_names, threads)
            try:
                blocks = ((number, *self._next_block(reader, number)) for number in range(first, len(self._blocks)))
                if threads and self._has_tags(handle):
                    yield from prefetched(blocks, self._batch, threads)
                else:
                    yield from map(self._batch, blocks)
            finally:
                reader.close()
        finally:
            os.close(handle)

    def _next_block(self, reader: BlockReader, number: int) -> tuple[NDArray[np.uint8], NewNames | None]:
        try:
            return reader.take()
        except ValueError:
            raise self._broken(number) from None

    def _has_tags(self, handle: int) -> bool:
        """Whether rows have tags, which take long enough to be read by another thread."""
        for block in self._blocks:
            if (at := self._array_bytes(block)) < block.size:
                return any(os.pread(handle, 8, block.offset + at))
        return False

    def _array_bytes(self, block: _Block) -> int:
        return _array_bytes(block, self._values.itemsize)

    def _batch(self, block_read: tuple[int, NDArray[np.uint8], NewNames | None]) -> Batch:
        """The rows of a block whose bytes were checked: views of its memory."""
        number, content, new_names = block_read
        block, at = self._blocks[number], 0

        def take(count: int, kind: np.dtype[Any]) -> NDArray[Any]:
            nonlocal at
            start, at = at, at + count * kind.itemsize
            return content[start:at].view(kind)

        rows = block.rows
        indptr, y = take(rows + 1, _INT64), take(rows, _FLOAT64)
        unit_weights, unit_values = self._units
        weight = take(rows, _FLOAT64) if block.has_weights else unit_weights[:rows]
        values = take(block.entries, self._values) if block.has_values else unit_values[: block.entries]
        indices = take(block.entries, _UINT32)
        tags = self._tags(content[at:], number) if at < block.size else None
        names = None if new_names is None else RowNames(new_names, 0, rows)
        first_row, origin = self._starts[number], self._origin
        return Batch.trusted(
            indptr, indices, values, y, weight, first_row, origin, tags, True, names, self._label_texts
        )

    def _tags(self, content: NDArray[np.uint8], number: int) -> tuple[str, ...] | None:
        """The tags of the rows of a block, which follow their size; None if it has only names."""
        end = 8 + int.from_bytes(content[:8].tobytes(), "little")
        if end == 8:
            return None
        try:
            tags = tuple(json.loads(content[8:end].tobytes()))
        except (TypeError, ValueError):
            raise self._broken(number) from None
        if len(tags) != self._blocks[number].rows:
            raise self._broken(number)
        return tags

    @cached_property
    def _units(self) -> tuple[Vector, NDArray[Any]]:
        """Weights and values that are all 1, which blocks do not have: as many as the largest of these needs."""
        rows = max((block.rows for block in self._blocks), default=0)
        entries = max((block.entries for block in self._blocks if not block.has_values), default=0)
        return np.ones(rows), np.ones(entries, self._values)

    def _broken(self, number: int) -> BadFormat:
        first, last = self._starts[number], self._starts[number + 1] - 1
        return BadFormat(
            f"{shown(self._path)}: rows {first} to {last}: expected them as they were written, got others; convert"
            " the data again."
        )

    def _leave_out(self, left_out: deque[tuple[int, int]], stop: int) -> None:
        """Count the rows that were left out up to row number `stop`."""
        some = {}
        while left_out and left_out[0][0] <= stop:
            row, count = left_out.popleft()
            some[row] = count
        self._bad_rows += sum(some.values())
        self._left_out.add(0, some)

    def take_left_out(self) -> dict[int, int]:
        """How many rows were left out since the last call, by the number of good rows that come before them."""
        return self._left_out.take()

    def locate(self, position: Position) -> str:
        """The number of the row behind a position, counted from 0."""
        return f"{shown(self._path)}: row {position.rows}"

    @property
    def skips_bad_rows(self) -> bool:
        """Whether rows that cannot be learned are left out and counted."""
        return self._skip

    @property
    def bad_rows(self) -> int:
        """How many rows were left out when the batches were made, up to where the last reading has come."""
        return self._bad_rows

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""
        first = self._footer["first_bad"]
        return None if first is None or not self._bad_rows else shown(str(first))

    def fingerprint(self) -> list[tuple[int, str]]:
        """The size of the file and a digest of its first and last bytes, which have the fingerprint of the footer."""
        return [ends_of(self._path)]

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse another file than that of a fingerprint taken before."""
        check_same_files([self._path], self.fingerprint(), fingerprint)

    def check_before(self, position: Position) -> None:
        """Read all blocks before a position and compare their fingerprints."""
        for batch, _ in self._read(0, 0):
            if batch.first_row >= position.rows:
                break

    def digest(self) -> list[int]:
        """The fingerprint of the footer, which has those of all blocks."""
        return [self._tail, self.rows]

    def describe(self) -> Description:
        """What is read."""
        reading, names = self.to_dict(), tuple(shown(file) for file in self._files)
        return Description(
            reading["format"],
            names,
            reading.get("columns"),
            self._footer["labels"],
            reading["dim"],
            reading["intercept"],
        )

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read the data it was made from."""
        return dict(self._footer["reading"])


def _footer_of(path: str) -> tuple[dict[str, Any], int]:
    """The footer of a file, checked, and its fingerprint."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(len(_MAGIC))
            file.seek(max(0, size - _TAIL))
            tail = file.read(_TAIL)
            if head != _MAGIC or size < len(_MAGIC) + _TAIL or tail[24:] != _MAGIC:
                raise _not_batches(path, "another file, or a part of one")
            length, fingerprint, version = np.frombuffer(tail[:24], "<u8").tolist()
            if version != VERSION:
                raise _not_batches(path, f"format {version} instead of {VERSION}")
            if length > min(size - len(_MAGIC) - _TAIL, _LARGEST_FOOTER):
                raise _not_batches(path, "a footer that is cut")
            file.seek(size - _TAIL - length)
            text = file.read(length)
    except OSError as error:
        raise InvalidInput(f"{shown(path)}: {error.strerror}; check the path.") from None
    if len(text) != length or text_fingerprint(text, 0, len(text), 0) != fingerprint:
        raise _not_batches(path, "a footer with other bytes")
    footer = json.loads(text)
    if footer["hash_version"] != HASH_VERSION:
        raise _not_batches(path, f"feature hash {footer['hash_version']} instead of {HASH_VERSION}")
    _check_blocks(path, footer, size - _TAIL - length)
    return footer, fingerprint


def _check_blocks(path: str, footer: Mapping[str, Any], end: int) -> None:
    """Refuse a footer whose blocks are not behind one another, or not as long as their arrays."""
    width, at = 8 if footer["reading"]["dtype"] == "float64" else 4, len(_MAGIC)
    for values in footer["blocks"]:
        block = _Block(*values)
        if (
            block.offset != at
            or block.size < _array_bytes(block, width)
            or not all(0 <= number < 2**64 for number in block)
        ):
            raise _not_batches(path, "blocks that do not fit")
        at += block.size
    if at != end:
        raise _not_batches(path, "blocks that do not fit")


def _array_bytes(block: _Block, value_bytes: int) -> int:
    """How long the arrays of a block are; tags and names follow them."""
    in_rows = 8 * (block.rows + 1) + 8 * block.rows * (2 if block.has_weights else 1)
    return in_rows + block.entries * (4 + (value_bytes if block.has_values else 0))


def _not_batches(path: str, got: str) -> BadFormat:
    return BadFormat(f"{shown(path)}: expected a whole file of batches, got {got}; convert the data again.")
