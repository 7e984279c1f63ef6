"""Text files as a source of batches: VW text, libsvm, CSV, TSV and JSON lines, in constant memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple, final

from ftprl._core import Parser, Window, whole_rows
from ftprl.data.batch import Batch
from ftprl.data.files import (
    STDIN,
    ErrorWithoutLine,
    SharedFile,
    Stream,
    is_compressed,
    is_uri,
    lasts,
    shown,
    unreadable,
)
from ftprl.data.jobs import CoreParser, Parsed, PlannedSource, RemoteJob, check_here
from ftprl.data.labels import of_numbers
from ftprl.data.options import GRAMS, OF_TABLES, ReadingOptions
from ftprl.data.parts import ORIGIN
from ftprl.data.plan import Plan, plan_of
from ftprl.data.source import Place
from ftprl.errors import BadFormat, FtprlError, InvalidInput

if TYPE_CHECKING:
    from ftprl.data.csv_files import Dialect
    from ftprl.data.plan import Plan
    from ftprl.data.source import Place


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
            from ftprl.data import csv_files

            header, dialect = csv_files.header_of(stream, plan, data)
            data, at, first_line = header.data, header.offset, header.line
            columns = csv_files.arrange(header.names, plan.kinds or {}, plan.optional_kinds, stream.name)
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


_PARTS = 8  # of a file in place, for one job of a worker: few enough that jobs end at about the same time


@final
class TextParser(CoreParser):
    """A parser of the core, and the window through which it reads files."""

    core: Parser

    def __init__(self, parser: Parser, *, keeps_records: bool = False) -> None:
        super().__init__(parser)
        self._window = Window()
        parser.keeps_records = keeps_records

    def _feed(self, job: Chunk) -> Iterator[None]:
        if job.columns is not None:
            self.core.set_columns(list(job.columns), job.separator)
        self.core.line = 1  # a parser's first line is 1: 0 is no line
        if job.shared_file is not None:
            self._window.open(job.shared_file.descriptor, job.start, job.end)
            while self._window.feed(self.core):
                yield
            yield
            return
        at, text = job.start, memoryview(job.block)[: job.end]
        while at < job.end:
            at = self.core.feed(text, at, True)
            yield

    def _lines(self) -> int:
        return self.core.line - 1

    def row_lines(self, chunk: Chunk, negative: float, count: int) -> tuple[list[int], int]:
        """Return the lines at which the first `count` rows of a chunk begin, from 0, and how many lines were read.

        The parser stops at each row.
        """
        self.core.negative, rows = negative, list[int]()
        for _ in self._feed(chunk):
            if self.core.rows:
                self.core.take()
                rows.append(self.core.row_line - 1)
            if self.core.problem is not None or len(rows) == count:
                break
        return rows, self._lines()


@final
class TextReader:
    """Finds the text of files for workers in other processes: which parts each of them reads and parses."""

    def __init__(self, files: tuple[str, ...], plan: Plan, *, keeps_records: bool = False) -> None:
        self._files, self._plan, self._keeps_records = files, plan, keeps_records

    def parser(self) -> TextParser:
        """Return a parser of the text."""
        return TextParser(self._plan.parser(), keeps_records=self._keeps_records)

    def remote_jobs(self, start: Place) -> Generator[RemoteJob]:
        """Yield the text of the files from a place on, as jobs.

        A compressed file, and one of another file system, is one job: its text can only be read from the begin. Of
        other files this process finds where rows end; in place if it can do so without reading all of it.
        """
        for number in range(start.file, len(self._files)):
            name = shown(self._files[number])
            here = start if number == start.file else Place(file=number, negative=start.negative)
            if is_uri(self._files[number]) or is_compressed(self._files[number]):
                yield RemoteJob(number, name, here)
                continue
            parts: list[Chunk] = []
            with closing(chunks(self._files[: number + 1], self._plan, here, BufferPool())) as text:
                for chunk in text:
                    if chunk.shared_file is None:  # a chunk with nothing but its own text
                        own = chunk._replace(block=chunk.block[chunk.start : chunk.end], start=0)
                        parts.append(own._replace(end=len(own.block)))
                    else:
                        parts.append(chunk._replace(shared_file=None))
                    if len(parts) == _PARTS or chunk.shared_file is None:
                        yield RemoteJob(number, name, here, tuple(parts))
                        parts = []
            if parts:
                yield RemoteJob(number, name, here, tuple(parts))

    def jobs_of(self, remote: RemoteJob) -> Generator[Chunk]:
        """Yield the chunks of a job, with their text."""
        file = self._files[remote.file]
        if remote.jobs is None:
            check_here(file)
            yield from chunks(self._files[: remote.file + 1], self._plan, remote.start, BufferPool())
            return
        shared: SharedFile | None = None
        for chunk in remote.jobs:
            if not chunk.block and chunk.end > chunk.start:
                if shared is None:
                    check_here(file)
                    with open(file, "rb", buffering=0) as raw:
                        shared = SharedFile(raw.fileno())
                chunk = chunk._replace(shared_file=shared)
            yield chunk

    def without_rows(self, job: Chunk) -> Chunk:
        """Return a chunk without its text."""
        return job._replace(block=bytearray(), shared_file=None)

    def again(self, chunk: Chunk) -> Chunk:
        """Return a chunk with its text, which is read again."""
        length, text = chunk.end - chunk.start, bytearray()
        start = Place(file=chunk.file, offset=chunk.offset)
        with closing(chunks(self._files[: chunk.file + 1], self._plan, start, BufferPool())) as rest:
            for part in rest:
                if part.shared_file is not None:
                    text += os.pread(part.shared_file.descriptor, part.end - part.start, part.start)
                else:
                    text += part.block[part.start : part.end]
                if len(text) >= length:
                    return chunk._replace(block=text[:length], start=0, end=length)
        raise FtprlError(f"{chunk.origin}: the file became shorter while it was read; do not change it.")


@final
class TextSource(PlannedSource):
    """Text files as batches; `ftprl.data.open` makes one."""

    def __init__(self, files: tuple[str, ...], plan: Plan, started: Started = None) -> None:
        super().__init__(plan, files)
        self._started = started
        self._read_once = False
        self._pool = BufferPool()
        self._keeps_records = False
        self._records: list[bytes] = []
        self._record_columns: tuple[str, ...] | None = None
        self._record_separator = -1

    @property
    def can_be_read_again(self) -> bool:
        """Whether all of it is in files; standard input and pipes can be read once."""
        return all(lasts(file) for file in self._files)

    @property
    def reader(self) -> TextReader:
        """What finds the text for workers in other processes."""
        return TextReader(self._files, self.settings, keeps_records=self._keeps_records)

    def jobs(self, start: Place, threads: int) -> Generator[Chunk]:
        """Yield the text from a place on."""
        self._pool, self._records = BufferPool(), []
        return chunks(self._files, self.settings, start, self._pool, self._started)

    def _claim(self) -> None:
        if not self.can_be_read_again:
            if self._read_once:
                raise InvalidInput(
                    "standard input or a pipe can be read once, got a second reading; save it to a file first."
                )
            self._read_once = True

    def parser(self) -> TextParser:
        """Return a parser of the text."""
        return self.reader.parser()

    def _give_back(self, job: Chunk) -> None:
        if self.workers is None and job.shared_file is None:
            self._pool.give(job.block)

    def _note(self, parsed: Parsed) -> None:
        """Keep the text of a chunk if it is wanted; all files need the same columns in the same order."""
        if not self._keeps_records:
            return
        chunk = parsed.job
        names = None if chunk.columns is None else tuple(name.decode() for _, name in chunk.columns)
        if self._record_columns is None:
            self._record_columns, self._record_separator = names, chunk.separator
        elif names is not None and (names, chunk.separator) != (self._record_columns, self._record_separator):
            is_other = "columns of the first file in their order, got others"
            if names == self._record_columns:
                is_other = f"separator of the first file, got {chr(chunk.separator)!r}"
            raise InvalidInput(f"{chunk.origin}:1: expected the {is_other}; predict the files one by one.")
        self._records += parsed.records

    def keep_records(self) -> None:
        """From the next reading on, keep the text of all rows, good or left out, for `take_records`."""
        self._keeps_records = True

    def take_records(self) -> list[bytes]:
        """Return the text of all rows since the last call, without line ends; it may be ahead of the batches."""
        records, self._records = self._records, []
        return records

    @property
    def record_columns(self) -> tuple[str, ...] | None:
        """The names of the columns in the order of the files; None before the first row, or where there are none."""
        return self._record_columns

    @property
    def dialect(self) -> Dialect | None:
        """How the fields of a table are separated and quoted."""
        return self.settings.dialect

    def dialect_of(self, file: str) -> Dialect | None:
        """Return the dialect of one of the files, whose separator may be its own."""
        if self.settings.dialect is None:
            return None
        from ftprl.data.csv_files import header_of

        stream = Stream(file)
        try:
            return header_of(stream, self.settings)[1]
        finally:
            stream.close()

    @property
    def dim(self) -> int:
        """The number of cells of the table."""
        return self.settings.dim

    @property
    def intercept_slot(self) -> int | None:
        """The cell that belongs to the intercept alone: the last."""
        return self.settings.dim - 1 if self.settings.intercept else None

    def locate(self, position: Any) -> str:
        """Return the file and line of the row behind a position; of standard input or a pipe the number of the row."""
        own = self._own(position)
        name = "<stdin>" if self._files[own.file] == STDIN else shown(self._files[own.file])
        if not self.can_be_read_again:
            return f"{name}: row {own.rows}"
        with closing(chunks(self._files, self.settings, own, BufferPool())) as text:
            skip, line = own.skip, own.line
            for chunk in text:
                line = line if chunk.line is None else chunk.line
                parser = TextParser(self.settings._replace(batch_rows=1).parser())
                rows, lines = parser.row_lines(chunk, own.negative, skip + 1)
                if len(rows) > skip:
                    return chunk.where(line + rows[skip])
                skip -= len(rows)
                line += lines
        return f"{name}: row {own.rows}"


def settled_source(files: tuple[str, ...], settle_by: Callable[[Stream], tuple[Plan, bytes]]) -> TextSource:
    """Return a source whose plan follows from the first rows of its first file.

    `settle_by` returns the plan and what it read. A file that can be read again is closed; of a pipe the reading goes
    on behind these rows.
    """
    stream = Stream(files[0])
    try:
        plan, data = settle_by(stream)
    except BaseException:
        stream.close()
        raise
    if lasts(files[0]):
        stream.close()
        return TextSource(files, plan, None)
    return TextSource(files, plan, (stream, data))


def batch_of_lines(lines: Sequence[str | bytes], options: ReadingOptions) -> Batch:
    """Return rows of VW text or libsvm in memory, a line each."""
    assert options.format is not None
    plan = plan_of(options, options.format, of_numbers(options.loss, options.positive_label))
    encoded = [line.encode("utf-8", "surrogateescape") if isinstance(line, str) else bytes(line) for line in lines]
    text = bytearray(b"".join(line.rstrip(b"\r\n") + b"\n" for line in encoded))
    plan = plan._replace(batch_rows=len(lines) + 1, skip_bad_rows=False)
    parsed = TextParser(plan.parser()).parse(Chunk(0, ORIGIN, block=text, end=len(text)))
    if (error := parsed.error(1)) is not None:
        raise type(error)(str(error).replace(", or pass on_bad_row=skip", ""), option=error.options)
    batches = [*parsed.batches, Batch.from_rows([])]
    if len(batches[0]) != len(lines):
        raise InvalidInput(
            f"rows need to be one line each, got {len(batches[0])} rows in {len(lines)} lines; split them."
        )
    return batches[0]


def open_files(files: tuple[str, ...], options: ReadingOptions) -> TextSource:
    """Open VW text or libsvm files, which have one row per line and no columns, as a source."""
    why = f" needs a table, got the format {options.format}; drop it, or pass format=csv."
    options.refuse(OF_TABLES, why, option="format")
    assert options.format is not None
    if options.format == "libsvm":
        options.refuse(
            ("interactions", *GRAMS), " is for features with names, got format libsvm; drop it.", option="format"
        )
    if not options.header:
        raise InvalidInput(f"header=False{why}", option=("header", "format"))
    return TextSource(files, plan_of(options, options.format, of_numbers(options.loss, options.positive_label)))
