"""Files cut into chunks of whole rows: one thread can parse a chunk while another parses the next."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, final

from ftprl._core import whole_rows
from ftprl.data.files import ErrorWithoutLine, SharedFile, Stream, unreadable
from ftprl.errors import BadFormat, FtprlError

if TYPE_CHECKING:
    from ftprl.data.plan import Plan
    from ftprl.data.source import Place
    from ftprl.data.tables import Dialect

Started = tuple[Stream, bytes] | None  # the first file, of which some bytes were read already
_NO_BLOCK = bytearray()


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
    lines before have to be counted first.
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
    part: int = 0

    def where(self, line: int) -> str:
        """Return where a line is, for messages."""
        return f"{self.origin}:{line}"


def chunks(
    files: Sequence[str], plan: Plan, start: Place, pool: BufferPool, started: Started = None
) -> Generator[Chunk]:
    """The text of the files from a position on; a file that cannot be read ends it with the error."""
    for number in range(start.file, len(files)):
        offset, line = (start.offset, start.line) if number == start.file else (0, 1)
        try:
            opened = started if number == 0 and started else (Stream(files[number]), b"")
            yield from _chunks_of(opened, number, plan, offset, line, pool)
        except (FtprlError, ErrorWithoutLine) as error:
            yield Chunk(number, error=error)
            return


def _chunks_of(
    opened: tuple[Stream, bytes], number: int, plan: Plan, offset: int, line: int, pool: BufferPool
) -> Iterator[Chunk]:
    stream, data = opened
    dialect, columns, base, at = plan.dialect, None, 0, 0
    first_line: int | None = 1
    try_in_place = plan.dialect is None
    try:
        if plan.dialect is not None:
            from ftprl.data import tables

            header, dialect = tables.header_of(stream, plan, data)
            data, at, first_line = header.data, header.offset, header.line
            columns = tables.arrange(header.names, plan.kinds or {}, plan.optional_kinds, stream.name)
        stream.look_ahead(plan.block_size)
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
                )
                first_line = None
            if last:
                return
            if len(rest) > plan.max_row:
                raise _too_long(plan, stream.name)
            base, at = base + end, 0
            if try_in_place and stream.can_jump():
                try_in_place = False
                base = yield from _in_place(stream, number, base, len(rest), plan)
                rest = bytearray()
            block = pool.take(len(rest) + plan.block_size)
            block[: len(rest)] = rest
            count = stream.read_into(memoryview(block)[len(rest) : len(rest) + plan.block_size])
            size, last = len(rest) + count, count == 0
    finally:
        stream.close()


def _in_place(stream: Stream, number: int, base: int, back: int, plan: Plan) -> Generator[Chunk, None, int]:
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
        end = stream.row_end(start, min(size, start + plan.block_size))
        if end == start:
            break
        yield Chunk(number, stream.name, start - shift, start=start, end=end, shared_file=shared)
        start = end
    stream.jump(start)
    return start - shift


def _too_long(plan: Plan, name: str) -> ErrorWithoutLine:
    """A row whose end was not found within `max_row` bytes."""
    hint = " (is a quote not closed?)" if plan.dialect and plan.dialect.quote else ""
    what = f"expected a row of at most {plan.max_row} bytes, got a longer one{hint}; raise max_row="
    return ErrorWithoutLine(BadFormat, name, what, option="max_row")


def _end_of_rows(dialect: Dialect | None, block: bytearray, at: int, size: int) -> int:
    """Where the last whole row of block[at:size] ends."""
    if dialect is not None and dialect.quote and block.find(dialect.quote.encode(), at, size) >= 0:
        return whole_rows(memoryview(block)[:size], at, *dialect.codes)
    return max(block.rfind(b"\n", at, size) + 1, at)
