"""Text files as a source of batches: VW text, libsvm, CSV and TSV, compressed or not."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, final

from ftprl.data.batch import Batch
from ftprl.data.chunks import BufferPool, Chunk, Started, TextPosition, chunks
from ftprl.data.digests import TextDigest
from ftprl.data.files import STDIN, Stream, lasts, shown
from ftprl.data.fingerprints import check_same_files, check_same_text, ends_of
from ftprl.data.parsing import ChunkParser, LeftOut, ParsedChunk
from ftprl.data.prefetch import Prefetch, usual_threads
from ftprl.data.protocol import Description, Position, Source, batches_behind
from ftprl.data.text_settings import TextSettings
from ftprl.errors import InvalidInput

if TYPE_CHECKING:
    from ftprl.data.remote import Workers
    from ftprl.data.tables import Dialect

_START = TextPosition()


@final
class TextSource(Source):
    """Text files as batches, in constant memory; `ftprl.data.open` makes one."""

    def __init__(self, files: tuple[str, ...], settings: TextSettings, started: Started = None) -> None:
        self._files, self._settings, self._started = files, settings, started
        self._read_once = False
        self._bad_rows = 0  # left out by the last reading
        self._digest: TextDigest | None = TextDigest()  # of the last reading
        self._first_bad: tuple[int, int, str] | None = None
        self._left_out = LeftOut()
        self._keeps_records = False
        self._records: list[bytes] = []
        self._record_columns: tuple[str, ...] | None = None
        self._record_separator = -1
        self._workers: Workers | None = None
        self._begun: tuple[int, _Reading] | None = None

    def use_workers(self, workers: Workers | None) -> None:
        """Have all text parsed by these workers, in other processes; None for threads of this one."""
        self._workers = workers

    @property
    def files(self) -> tuple[str, ...]:
        """The files, in the order in which they are read."""
        return self._files

    @property
    def can_be_read_again(self) -> bool:
        """Whether all of it is in files; standard input and pipes can be read once."""
        return all(lasts(file) for file in self._files)

    @property
    def skips_bad_rows(self) -> bool:
        """Whether bad rows are left out rather than ending the reading."""
        return self._settings.skip_bad_rows

    @property
    def bad_rows(self) -> int:
        """How many rows were left out, up to where the last reading has come."""
        return self._bad_rows

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""
        if self._first_bad is None:
            return None
        file, line, why = self._first_bad
        return f"{self._name_of(file)}:{line}: {why}"

    def take_left_out(self) -> dict[int, int]:
        """How many rows were left out since the last call, by the number of good rows that come before them."""
        return self._left_out.take()

    def keep_records(self) -> None:
        """From the next reading on, keep the text of all rows, good or left out, for `take_records`."""
        self._keeps_records = True

    def take_records(self) -> list[bytes]:
        """The text of all rows since the last call, without line ends; it may be ahead of the batch that was read."""
        records, self._records = self._records, []
        return records

    @property
    def record_columns(self) -> tuple[str, ...] | None:
        """The names of the columns in the order of the files; None before the first row, or where there are none."""
        return self._record_columns

    @property
    def dialect(self) -> Dialect | None:
        """How the fields of a table are separated and quoted."""
        return self._settings.dialect

    def dialect_of(self, file: str) -> Dialect | None:
        """The same for one of the files, whose separator may be its own."""
        if self._settings.dialect is None:
            return None
        from ftprl.data.separators import header_of

        stream = Stream(file)
        try:
            return header_of(stream, self._settings)[1]
        finally:
            stream.close()

    @property
    def dim(self) -> int:
        """The number of cells of the table."""
        return self._settings.dim

    @property
    def intercept_slot(self) -> int | None:
        """The cell that belongs to the intercept alone: the last."""
        return self._settings.dim - 1 if self._settings.intercept else None

    @property
    def start(self) -> TextPosition:
        """The position of the first row."""
        return _START

    def position(self, saved: Mapping[str, Any]) -> TextPosition:
        """The position that `TextPosition.to_dict` saved."""
        return TextPosition.from_dict(saved)

    def fingerprint(self) -> list[tuple[int, str]] | None:
        """The size of each file and a digest of its first and last bytes; None for what cannot be read again."""
        return [ends_of(file) for file in self._files] if self.can_be_read_again else None

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse files that are not those of a fingerprint taken before."""
        check_same_files(self._files, self.fingerprint(), fingerprint)

    def check_before(self, position: Position) -> None:
        """Read all text before a position again and refuse it unless it is the same."""
        check_same_text(self._files, self._own(position))

    def digest(self) -> list[int] | None:
        """The digest of all text, from the first byte to where the last reading has come; None if that makes none."""
        return None if self._digest is None else self._digest.to_list()

    def describe(self) -> Description:
        """What is read: the files, their format, what each column is for, what the labels become."""
        settings, names = self._settings, tuple(shown(file) for file in self._files)
        return Description(
            settings.format, names, None, str(settings.labels), settings.dim, settings.intercept
        ).with_plan(settings.plan)

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other files in the same way."""
        return self._settings.to_dict()

    def _claim(self) -> None:
        if not self.can_be_read_again:
            if self._read_once:
                raise InvalidInput(
                    "standard input or a pipe can be read once, got a second reading; save it to a file first."
                )
            self._read_once = True

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, TextPosition]]:
        """Batches from a position on, each with the position of its first row, parsed ahead by that many threads.

        The rows and how they are cut into batches are the same for any number of threads; with 0 the caller's thread
        does everything, with None there are as many as the processors are good for. Without `digest` no digest of the
        text is made, which takes some time, and no position can be saved.
        """
        position = _START if start is None else self._own(start)
        self._claim()
        return self._read(position, usual_threads() if threads is None else threads, digest)

    def locate(self, position: Position) -> str:
        """The file and the line of the row behind a position; of standard input or a pipe the number of the row."""
        own = self._own(position)
        if not self.can_be_read_again:
            return f"{self._name_of(own.file)}: row {own.rows}"
        with closing(chunks(self._files, self._settings, own, BufferPool())) as text:
            skip, line = own.skip, own.line
            for chunk in text:
                line = line if chunk.line is None else chunk.line
                parser = ChunkParser(self._settings._replace(batch_rows=1).parser())
                rows = list(parser.row_lines(chunk, own.negative, skip + 1))
                if len(rows) > skip:
                    return f"{chunk.origin}:{line + rows[skip]}"
                skip -= len(rows)
                line += parser.lines
        return f"{self._name_of(own.file)}: row {own.rows}"

    def _name_of(self, file: int) -> str:
        return "<stdin>" if self._files[file] == STDIN else shown(self._files[file])

    def _own(self, position: Position) -> TextPosition:
        if not isinstance(position, TextPosition) or position.file >= len(self._files):
            raise InvalidInput(f"a position in these files is needed, got {position!r:.100}; pass one of this source.")
        return position

    def begin(self, *, threads: int | None = None, digest: bool = True) -> None:
        """Start to parse ahead now: the next `read` from the first row on, with the same options, goes on from there.

        Nothing happens without threads, and for standard input and pipes, which nobody else may read meanwhile.
        Whoever calls this calls `cancel` in the end.
        """
        self.cancel()
        count = usual_threads() if threads is None else threads
        if count and self._workers is None and self.can_be_read_again:
            start = _START if digest else _START._replace(digest=None)
            self._begun = (count, _Reading(self, start, count))

    def cancel(self) -> None:
        """End what `begin` has started, unless `read` has taken it over."""
        if self._begun is not None:
            self._begun[1].close()
        self._begun = None

    def _read(self, start: TextPosition, threads: int, digest: bool) -> Generator[tuple[Batch, TextPosition]]:
        start = start if digest else start._replace(digest=None)
        self._bad_rows, self._first_bad, self._digest = start.bad, start.first_bad, start.digest
        self._left_out, self._records = LeftOut(), []
        reading = self._begun_reading(start, threads) or _Reading(self, start, threads)
        with closing(reading):
            state = reading.state
            for result in reading.results():
                parsed = self._agreeing(result, state.negative, digest)
                yield from self._batches_of(parsed, state)
                reading.give_back(parsed.chunk)
                error = parsed.error(state.line)
                if error is not None:
                    raise error
                state.line += parsed.lines
                self._digest = state.add(parsed.fingerprint)

    def _begun_reading(self, start: TextPosition, threads: int) -> _Reading | None:
        """What `begin` has started, if it is what is to be read now."""
        if self._begun is None:
            return None
        (count, reading), self._begun = self._begun, None
        if (count, reading.start) == (threads, start) and self._workers is None and not self._keeps_records:
            return reading
        reading.close()
        return None

    def _agreeing(self, parsed: ParsedChunk, negative: float, digest: bool) -> ParsedChunk:
        """The chunk, parsed again if its labels settled what counts as -1 before those in front of it were known."""
        if negative in (1.0, parsed.negative) or parsed.negative == 1.0:
            return parsed
        chunk = parsed.chunk
        if self._workers is not None:
            from ftprl.data.remote_text import text_again

            chunk = text_again(self._files, self._settings, chunk)
        return self._parser(digest).parse(chunk, negative)

    def _parser(self, digest: bool) -> ChunkParser:
        parser = self._settings.parser()
        return ChunkParser(parser, wants_fingerprint=digest, keeps_records=self._keeps_records)

    def _batches_of(self, parsed: ParsedChunk, state: _ReadingState) -> Iterator[tuple[Batch, TextPosition]]:
        """The rows of a chunk behind those to be skipped, with their positions."""
        chunk = parsed.chunk
        state.line = state.line if chunk.line is None else chunk.line
        here = TextPosition(
            file=chunk.file,
            offset=chunk.offset,
            line=state.line,
            rows=state.rows,
            bad=self._bad_rows,
            negative=state.negative,
            first_bad=self._first_bad,
            digest=state.begin(chunk),
            chunk_bytes=chunk.end - chunk.start,
            chunk_fingerprint=parsed.fingerprint,
        )
        self._bad_rows += parsed.bad
        self._left_out.add(here.rows, parsed.left_out)
        if self._keeps_records:
            self._add_records(parsed)
        if self._first_bad is None and parsed.first_bad is not None:
            self._first_bad = (chunk.file, state.line + parsed.first_bad[0], parsed.first_bad[1])
        if parsed.negative != 1.0:
            state.negative = parsed.negative
        yield from batches_behind(parsed.batches, here, state)

    def _add_records(self, parsed: ParsedChunk) -> None:
        """Keep the text of a chunk; all files need the same columns in the same order."""
        names = None if parsed.chunk.columns is None else tuple(name.decode() for _, name in parsed.chunk.columns)
        if self._record_columns is None:
            self._record_columns, self._record_separator = names, parsed.chunk.separator
        elif names is not None and (names, parsed.chunk.separator) != (self._record_columns, self._record_separator):
            is_other = "columns of the first file in their order, got others"
            if names == self._record_columns:
                is_other = f"separator of the first file, got {chr(parsed.chunk.separator)!r}"
            raise InvalidInput(f"{parsed.chunk.origin}:1: expected the {is_other}; predict the files one by one.")
        self._records += parsed.records


@final
class _Reading:
    """A reading of all text from a position on: chunks, parsed ahead by threads or by workers."""

    def __init__(self, source: TextSource, start: TextPosition, threads: int) -> None:
        self.start, self.state, self._pool = start, _ReadingState(start), BufferPool()
        self._is_local = source._workers is None
        self._waits = source.can_be_read_again
        self._prefetch: Prefetch[Chunk, ParsedChunk] | None = None
        digest = start.digest is not None
        if source._workers is None:
            self._jobs: Generator[Any] = chunks(source._files, source._settings, start, self._pool, source._started)
            work = self._work(source, digest)
            if threads:
                self._prefetch = Prefetch(self._jobs, work, threads, wait=self._waits)
                self._done = self._prefetch.results()
            else:
                self._done = (work(chunk) for chunk in self._jobs)
        else:
            from ftprl.data.remote_text import TextWork, text_jobs

            self._jobs = text_jobs(source._files, source._settings, start)
            remote = TextWork(source._files, source._settings, digest=digest, keeps_records=source._keeps_records)
            self._done = source._workers.results(self._jobs, remote)

    def _work(self, source: TextSource, digest: bool) -> Callable[[Chunk], ParsedChunk]:
        first = source._parser(digest)
        parsers = [first]

        def work(chunk: Chunk) -> ParsedChunk:
            try:
                parser = parsers.pop()
            except IndexError:
                parser = source._parser(digest)
                parser.join(first)
            parsed = parser.parse(chunk, self.state.negative)
            if parsed.problem is None:
                parsers.append(parser)
            return parsed

        return work

    def results(self) -> Generator[ParsedChunk]:
        """The chunks in their order."""
        return self._done

    def give_back(self, chunk: Chunk) -> None:
        """The text of a chunk is not needed any more."""
        if self._is_local and chunk.shared_file is None:
            self._pool.give(chunk.block)

    def close(self) -> None:
        """Whatever ends it, no thread and no file stays behind, unless a thread waits for standard input."""
        self._done.close()
        if self._prefetch is not None:
            self._prefetch.close()
        if self._waits:
            self._jobs.close()


@final
class _ReadingState:
    """How far a reading has come: rows still to be skipped, rows given, the line, the label that counts as -1."""

    def __init__(self, start: TextPosition) -> None:
        self.skip, self.rows, self.line, self.negative = start.skip, start.rows - start.skip, start.line, start.negative
        self.digest, self._file, self._end = start.digest, start.file, start.offset

    def begin(self, chunk: Chunk) -> TextDigest | None:
        """The digest of all text before a chunk; None if none is made."""
        if self.digest is None:
            return None
        while self._file < chunk.file:
            self.digest = self.digest.next_file(self._end)
            self._file, self._end = self._file + 1, 0
        self._end = chunk.offset + chunk.end - chunk.start
        return self.add(chunk.header)

    def add(self, fingerprint: int) -> TextDigest | None:
        """The digest with one more part of the present file."""
        self.digest = None if self.digest is None else self.digest.plus(fingerprint)
        return self.digest
