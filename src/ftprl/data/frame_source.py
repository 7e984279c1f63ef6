"""Data frames and dicts as a source of batches, with the features of a CSV file of the same rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, final

from ftprl.data.batch import Batch
from ftprl.data.blocks import Block
from ftprl.data.digests import BatchDigest
from ftprl.data.frame_blocks import BlockParser, FramePosition, FrameSettings, Job, ParsedBlock, jobs_of
from ftprl.data.memory import check_same_rows
from ftprl.data.parsing import LeftOut
from ftprl.data.parts import ORIGIN
from ftprl.data.prefetch import Prefetch, usual_threads
from ftprl.data.protocol import Description, Position, Source, batches_behind
from ftprl.data.text_settings import BATCH_ROWS
from ftprl.errors import BadFormat, InvalidInput

if TYPE_CHECKING:
    from ftprl.data.remote import Work, Workers


@final
class _Reading:
    """How far a reading has come."""

    def __init__(self, start: FramePosition) -> None:
        self.start, self.skip, self.rows = start, start.skip, start.rows - start.skip
        self.bad, self.first_bad, self.negative = start.bad, start.first_bad, start.negative
        self.left_out = LeftOut()
        self.digest = start.digest


@final
class _Parsing:
    """The blocks of a reading, parsed ahead by threads, by workers, or as they are taken."""

    def __init__(self, source: FrameSource, reading: _Reading, threads: int) -> None:
        settings, reader, workers = source._settings, source._reader, source._workers
        self._prefetch: Prefetch[Any, ParsedBlock] | None = None
        first = BlockParser(settings)
        parsers = [first]

        def work(job: Job) -> ParsedBlock:
            try:
                block_parser = parsers.pop()
            except IndexError:
                block_parser = BlockParser(settings)
                block_parser.join(first)
            parsed = block_parser.parse(job, reading.negative)
            if parsed.problem is None:
                parsers.append(block_parser)
            return parsed

        if workers is not None:
            self._jobs, remote = source._remote(reading.start)
            self.results: Generator[ParsedBlock] = workers.results(self._jobs, remote)
            return
        self._jobs = source._jobs(reading.start, threads)
        if threads and reader.suits_threads:
            self._prefetch = Prefetch(self._jobs, work, threads)
            self.results = self._prefetch.results()
        else:
            self.results = (work(job) for job in self._jobs)

    def close(self) -> None:
        """End all threads and close the files, whatever was taken."""
        self.results.close()
        if self._prefetch is not None:
            self._prefetch.close()
        self._jobs.close()


class Blocks(Protocol):
    """What a source needs of the data: its rows in blocks, from any part of a file on."""

    @property
    def can_be_read_again(self) -> bool:
        """Whether `blocks` may be called more than once."""

    @property
    def suits_threads(self) -> bool:
        """Whether other threads may read the blocks."""

    def blocks(self, file: int = 0, group: int = 0, *, threads: int = 0) -> Iterator[Block]:
        """The blocks, in order."""


class FrameSource(Source):
    """Data frames or dicts as batches; `ftprl.data.open` makes one."""

    def __init__(self, reader: Blocks, settings: FrameSettings) -> None:
        self._reader, self._settings = reader, settings
        self._reading = _Reading(FramePosition())  # the last one
        self._workers: Workers | None = None
        self._begun: tuple[int, _Reading, _Parsing] | None = None

    @property
    def settings(self) -> FrameSettings:
        """All that decides what a row becomes."""
        return self._settings

    @property
    def files(self) -> tuple[str, ...]:
        """None: the data is in memory."""
        return ()

    @property
    def can_be_read_again(self) -> bool:
        """Whether the data stays in memory or in files; an iterator can be read once."""
        return self._reader.can_be_read_again

    @property
    def start(self) -> FramePosition:
        """The position of the first row."""
        return FramePosition()

    def position(self, saved: Mapping[str, Any]) -> FramePosition:
        """The position that `FramePosition.to_dict` saved."""
        return FramePosition.from_dict(saved)

    @property
    def skips_bad_rows(self) -> bool:
        """Whether bad rows are left out rather than ending the reading."""
        return self._settings.skip_bad_rows

    @property
    def bad_rows(self) -> int:
        """How many rows were left out, up to where the last reading has come."""
        return self._reading.bad

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""
        return self._reading.first_bad

    def take_left_out(self) -> dict[int, int]:
        """How many rows were left out since the last call, by the number of good rows that come before them."""
        return self._reading.left_out.take()

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, FramePosition]]:
        """Batches from a position on, each with the position of its first row.

        The rows and how they are cut into batches are the same for any number of threads. Dicts, and what comes from an
        iterator, are read by the caller's own thread.
        """
        position = FramePosition() if start is None else self._own(start)
        self._reading = _Reading(position)
        return self._read(self._reading, usual_threads() if threads is None else threads)

    def begin(self, *, threads: int | None = None, digest: bool = True) -> None:
        """Start to parse ahead now: the next `read` from the first row on, with the same options, goes on from there.

        Nothing happens without threads, and for data that is not in files. Whoever calls this calls `cancel` in the
        end.
        """
        self.cancel()
        count = usual_threads() if threads is None else threads
        if count and self.files and self._workers is None and self._reader.suits_threads:
            reading = _Reading(self.start if digest else self.start.without_digest())
            self._begun = count, reading, _Parsing(self, reading, count)

    def cancel(self) -> None:
        """End what `begin` has started, unless `read` has taken it over."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun[2].close()

    def _own(self, position: Position) -> FramePosition:
        if not isinstance(position, FramePosition):
            raise InvalidInput(
                f"start needs a row of this data, got {type(position).__name__}; pass one of its positions."
            )
        return position

    def _jobs(self, start: FramePosition, threads: int, rows: int = BATCH_ROWS) -> Generator[Job]:
        """Blocks from a row on, cut where a reading from the first row would cut them."""
        for block in self._reader.blocks(start.file, start.group, threads=threads):
            yield from jobs_of(block, start, rows)

    def _remote(self, start: FramePosition) -> tuple[Generator[Any], Work[Any, ParsedBlock]]:
        """The jobs for workers in other processes, and what these do; files of columns have them."""
        raise AssertionError("data in memory is read by this process")

    def _read(self, reading: _Reading, threads: int) -> Generator[tuple[Batch, FramePosition]]:
        begun = self._begun
        if begun is not None and (begun[0], begun[1].start) == (threads, reading.start) and self._workers is None:
            self._begun = None
            _, reading, parsing = begun
            self._reading = reading
        else:
            self.cancel()
            parsing = _Parsing(self, reading, threads)
        with closing(parsing):
            for result in parsing.results:
                parsed = self._agreeing(result, reading.negative)
                yield from self._batches_of(parsed, reading)
                if parsed.problem is not None:
                    what, option = parsed.problem
                    raise BadFormat(what, option=(option, "on_bad_row", "loss"))

    def _agreeing(self, parsed: ParsedBlock, negative: float) -> ParsedBlock:
        """The rows, parsed again if their labels settled what counts as -1 before those in front were known."""
        if negative in (1.0, parsed.negative) or parsed.negative == 1.0:
            return parsed
        return BlockParser(self._settings).parse(self._job_again(parsed.job), negative)

    def _job_again(self, job: Job) -> Job:
        """A job with its rows, which a worker in another process does not send along."""
        return job

    def _batches_of(self, parsed: ParsedBlock, reading: _Reading) -> Iterator[tuple[Batch, FramePosition]]:
        block, at, _ = parsed.job
        before = reading.digest
        for batch in parsed.batches if before is not None else ():
            reading.digest = reading.digest.plus(batch) if reading.digest is not None else None
        here = FramePosition(
            file=block.file,
            group=block.group,
            record=block.first + at,
            rows=reading.rows,
            bad=reading.bad,
            negative=reading.negative,
            first_bad=reading.first_bad,
            digest=before,
            end=reading.digest,
        )
        reading.bad += parsed.bad
        reading.left_out.add(here.rows, parsed.left_out)
        reading.first_bad = reading.first_bad or parsed.first_bad
        if parsed.negative != 1.0:
            reading.negative = parsed.negative
        yield from batches_behind(parsed.batches, here, reading)

    def locate(self, position: Position) -> str:
        """The number of the row behind a position, counted from 0."""
        own = self._own(position)
        if self.can_be_read_again:
            return next(self._good_rows(own), f"{ORIGIN}: row {own.rows}")
        return f"{ORIGIN}: row {own.record + own.skip}"

    def _good_rows(self, position: FramePosition) -> Iterator[str]:
        """Where the good row behind a position is, found by reading row by row."""
        one, skip = BlockParser(self._settings), position.skip
        for block, at, stop in self._jobs(position, 0, 1):
            parsed = one.parse((block, at, stop), position.negative)
            skip -= len(parsed.batches)
            if skip < 0:
                yield block.where(at)
                return

    def fingerprint(self) -> dict[str, Any] | None:
        """The number of rows and the SHA-256 of all of them; None for an iterator."""
        if not self.can_be_read_again:
            return None
        digest = BatchDigest()
        for batch, _ in self._read(_Reading(FramePosition()), usual_threads()):
            digest.update(batch)
        return digest.result()

    def digest(self) -> Any:
        """None: no digest is kept of rows as they are read."""
        return None

    def check_before(self, position: Position) -> None:
        """Do nothing: `check_unchanged` compares all rows."""

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse rows that are not those of a fingerprint taken before."""
        check_same_rows(fingerprint, self.fingerprint())

    def describe(self) -> Description:
        """What is read: what each column is for, what the labels become."""
        settings = self._settings
        return Description(
            settings.format, (ORIGIN,), None, str(settings.labels), settings.dim, settings.intercept
        ).with_plan(settings.plan)

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other data in the same way."""
        return self._settings.to_dict()
