"""Files cut into chunks of whole rows: one thread can parse a chunk while another parses the next."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import text_fingerprint, whole_rows
from ftprl.data.digests import TextDigest, whole_numbers
from ftprl.data.files import ErrorWithoutLine, SharedFile, Stream, unreadable
from ftprl.errors import BadFormat, FtprlError, InvalidInput

if TYPE_CHECKING:
    from ftprl.data.tables import Dialect
    from ftprl.data.text_settings import TextSettings

Started = tuple[Stream, bytes] | None  # the first file, of which some bytes were read already
_NO_BLOCK = bytearray()


@final
class TextPosition(NamedTuple):
    """A place between two rows: `skip` rows behind byte `offset` of the decompressed text of file number `file`.

    `rows` rows come before it. `bad` rows were left out before `offset`, the first at `first_bad` (file, line,
    reason); `negative` is the label that counts as -1 in the rows before, 1 when there was none. `digest` is that of
    all text before `offset`, None where a reading made none; `chunk_bytes` with `chunk_fingerprint` are of the chunk
    that was read from there.
    """

    file: int = 0
    offset: int = 0
    line: int = 1
    skip: int = 0
    rows: int = 0
    bad: int = 0
    negative: float = 1.0
    first_bad: tuple[int, int, str] | None = None
    digest: TextDigest | None = TextDigest()
    chunk_bytes: int = 0
    chunk_fingerprint: int = 0

    def after(self, rows: int) -> TextPosition:
        """The position that many rows further on, in the same chunk."""
        return self._replace(skip=self.skip + rows, rows=self.rows + rows)

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values; only of a reading with digests."""
        assert self.digest is not None
        values = {name: getattr(self, name) for name in ("file", "offset", "line", "skip", "rows", "bad", "negative")}
        first_bad = None if self.first_bad is None else list(self.first_bad)
        digest = [*self.digest.to_list(), self.chunk_bytes, self.chunk_fingerprint]
        return {**values, "first_bad": first_bad, "digest": digest}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TextPosition:
        """The position that `to_dict` saved."""
        counts = {name: saved[name] for name in ("file", "offset", "line", "skip", "rows", "bad")}
        if not all(type(n) is int and n >= 0 for n in counts.values()) or saved["negative"] not in (-1.0, 0.0, 1.0):
            raise InvalidInput(f"a position needs counts of at least 0, got {saved!r:.200}; start anew.")
        first = saved["first_bad"]
        bad = None if first is None else (int(first[0]), int(first[1]), str(first[2]))
        if "digest" not in saved:
            raise InvalidInput("a position without the digest of the text before it")
        earlier, present, chunk_bytes, chunk_fingerprint = whole_numbers(saved["digest"], 4)
        return cls(
            **counts,
            negative=float(saved["negative"]),
            first_bad=bad,
            digest=TextDigest(earlier, present),
            chunk_bytes=chunk_bytes,
            chunk_fingerprint=chunk_fingerprint,
        )


@final
class BufferPool:
    """Blocks of memory that are used again: new pages from the system cost more than reading a file."""

    def __init__(self) -> None:
        self._free: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        """A block of at least `size` bytes."""
        block = self._free.pop() if self._free else bytearray()
        return block if len(block) >= size else bytearray(size)

    def give(self, block: bytearray) -> None:
        """Take back a block that nobody reads any more."""
        self._free.append(block)


@final
class Chunk(NamedTuple):
    """Whole rows of one file, `block[start:end]`, at byte `offset` of its text.

    `error` is what ended the reading behind them. With `shared_file` the rows are still in the file, from byte `start`
    to `end`: whoever parses them reads them. `line` is known at the begin of a file or of a reading; elsewhere the
    lines before have to be counted first. `header` is the fingerprint of the row of column names before it.
    """

    file: int
    origin: str = ""
    offset: int = 0
    line: int | None = None
    columns: Sequence[tuple[int, bytes]] | None = None
    separator: int = -1  # of the columns
    block: bytearray = _NO_BLOCK
    start: int = 0
    end: int = 0
    error: FtprlError | ErrorWithoutLine | None = None
    shared_file: SharedFile | None = None
    header: int = 0


def chunks(
    files: Sequence[str], settings: TextSettings, start: TextPosition, pool: BufferPool, started: Started = None
) -> Generator[Chunk]:
    """The text of the files from a position on; a file that cannot be read ends it with the error."""
    for number in range(start.file, len(files)):
        offset, line = (start.offset, start.line) if number == start.file else (0, 1)
        try:
            opened = started if number == 0 and started else (Stream(files[number]), b"")
            yield from _chunks_of(opened, number, settings, offset, line, pool)
        except (FtprlError, ErrorWithoutLine) as error:
            yield Chunk(number, error=error)
            return


def _chunks_of(
    opened: tuple[Stream, bytes], number: int, settings: TextSettings, offset: int, line: int, pool: BufferPool
) -> Iterator[Chunk]:
    stream, data = opened
    dialect, columns, base, at, header_fingerprint = settings.dialect, None, 0, 0, 0
    first_line: int | None = 1
    try_in_place = settings.dialect is None
    try:
        if settings.dialect is not None:
            from ftprl.data import separators, tables

            header, dialect = separators.header_of(stream, settings, data)
            data, at, first_line = header.data, header.offset, header.line
            header_fingerprint = text_fingerprint(data, 0, at, 0) if offset < at else 0
            columns = tables.arrange(header.names, settings.columns or {}, settings.optional_kinds, stream.name)
        stream.look_ahead(settings.block_size)
        if offset > at:
            data, base, at, first_line = stream.from_offset(offset, data, line), offset, 0, line
        block, size, last = bytearray(data), len(data), False
        while True:
            end = size if last else _end_of_rows(dialect, block, at, size)
            rest = block[end:size]  # before the block is handed on: another one may soon be read into it
            if end > at or first_line is not None:
                yield Chunk(
                    number,
                    stream.name,
                    base + at,
                    first_line,
                    columns,
                    -1 if dialect is None else ord(dialect.sep),
                    block,
                    at,
                    end,
                    header=header_fingerprint,
                )
                first_line, header_fingerprint = None, 0
            if last:
                return
            if len(rest) > settings.max_row:
                raise _too_long(settings, stream.name)
            base, at = base + end, 0
            if try_in_place and stream.can_jump():
                try_in_place = False
                base = yield from _in_place(stream, number, base, len(rest), settings)
                rest = bytearray()
            block = pool.take(len(rest) + settings.block_size)
            block[: len(rest)] = rest
            count = stream.read_into(memoryview(block)[len(rest) : len(rest) + settings.block_size])
            size, last = len(rest) + count, count == 0
    finally:
        stream.close()


def _in_place(stream: Stream, number: int, base: int, back: int, settings: TextSettings) -> Generator[Chunk, None, int]:
    """Chunks of a file that are not read here, from `back` bytes before what was read.

    Returns how far it came, where the stream goes on: to the end, to a last row without an end, which may still be
    written, or to a row that is longer than a block.
    """
    shared, start = stream.shared(), stream.offset(back)
    shift, before = start - base, stream.first_size
    while start < (size := stream.size()) or size < before:
        if size < before:
            raise unreadable(stream.name, EOFError(f"{size} bytes instead of {before}"))
        before = size
        end = stream.row_end(start, min(size, start + settings.block_size))
        if end == start:
            break
        yield Chunk(number, stream.name, start - shift, start=start, end=end, shared_file=shared)
        start = end
    stream.jump(start)
    return start - shift


def _too_long(settings: TextSettings, name: str) -> ErrorWithoutLine:
    """A row whose end was not found within `max_row` bytes."""
    hint = " (is a quote not closed?)" if settings.dialect and settings.dialect.quote else ""
    what = f"expected a row of at most {settings.max_row} bytes, got a longer one{hint}; raise max_row="
    return ErrorWithoutLine(BadFormat, name, what, option="max_row")


def _end_of_rows(dialect: Dialect | None, block: bytearray, at: int, size: int) -> int:
    """Where the last whole row of block[at:size] ends."""
    if dialect is not None and dialect.quote and block.find(dialect.quote.encode(), at, size) >= 0:
        return whole_rows(memoryview(block)[:size], at, *dialect.codes)
    return max(block.rfind(b"\n", at, size) + 1, at)
