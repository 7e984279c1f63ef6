"""Data frames and dicts as a source of batches, with the features of a CSV file of the same rows."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, final

from ftprl._core import RecordParser, parser
from ftprl.data.batch import Batch
from ftprl.data.blocks import Block
from ftprl.data.columns import ColumnPlan
from ftprl.data.digests import BatchDigest, RowDigest, whole_numbers
from ftprl.data.files import shown
from ftprl.data.interactions import Interactions, as_bytes, as_lists
from ftprl.data.labels import LabelRule
from ftprl.data.memory import check_same_rows
from ftprl.data.ngrams import NO_GRAMS, Grams
from ftprl.data.options import RECORDS
from ftprl.data.parsing import LeftOut, Taking, with_remedy
from ftprl.data.parts import ORIGIN
from ftprl.data.prefetch import Prefetch, usual_threads
from ftprl.data.protocol import KINDS, Description, Position, Source, batches_behind
from ftprl.data.text_settings import BATCH_ROWS, BATCH_VALUES
from ftprl.errors import BadFormat, InvalidInput
from ftprl.light import dataclass

if TYPE_CHECKING:
    from ftprl.data.remote import Work, Workers

Job = tuple[Block, int, int]  # a block, and which of its rows


@final
@dataclass(frozen=True, slots=True)
class FramePosition:
    """A place between two rows: `skip` good rows behind row number `record` of the data.

    In files, `record` is counted from the begin of part number `group` of file number `file`. `rows` rows come before
    it; `bad` rows were left out before `record`, the first as `first_bad` says; `negative` is the label that counts as
    -1 in the rows before, 1 when there was none. `digest` is that of the rows before `record`, None where a reading
    made none, and `end` that of all rows up to the end of those that were read together with it.
    """

    file: int = 0
    group: int = 0
    record: int = 0
    skip: int = 0
    rows: int = 0
    bad: int = 0
    negative: float = 1.0
    first_bad: str | None = None
    digest: RowDigest | None = None
    end: RowDigest | None = None

    def after(self, rows: int) -> FramePosition:
        """The position that many rows further on."""
        return replace(self, skip=self.skip + rows, rows=self.rows + rows)

    def without_digest(self) -> FramePosition:
        """The same position for a reading that makes no digest."""
        return replace(self, digest=None, end=None)

    def to_dict(self) -> dict[str, Any]:
        """The position as JSON values."""
        values = {name: getattr(self, name) for name in (*_COUNTS, "negative", "first_bad")}
        digests = {name: getattr(self, name) for name in ("digest", "end")}
        return {**values, **{name: None if value is None else value.to_list() for name, value in digests.items()}}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> FramePosition:
        """The position that `to_dict` saved."""
        counts = {name: saved.get(name) for name in _COUNTS}
        good = all(type(count) is int and count >= 0 for count in counts.values())
        first = saved.get("first_bad")
        if not good or saved.get("negative") not in (-1.0, 0.0, 1.0) or not isinstance(first, str | None):
            raise InvalidInput(f"a position needs counts of at least 0, got {saved!r:.200}; start anew.")
        kept = {name: saved.get(name) for name in ("digest", "end")}
        digests = {name: None if one is None else RowDigest(*whole_numbers(one, 3)) for name, one in kept.items()}
        return cls(**counts, **digests, negative=float(saved["negative"]), first_bad=first)  # type: ignore[arg-type]


_COUNTS = ("file", "group", "record", "skip", "rows", "bad")


@final
@dataclass(frozen=True, slots=True)
class FrameSettings:
    """All that decides what a row becomes."""

    format: str
    dim: int
    seed: int
    intercept: bool
    dtype: str
    loss: str
    positive: str | None
    labels: LabelRule
    plan: ColumnPlan
    skip_bad_rows: bool
    batch_rows: int = BATCH_ROWS
    names: bool | str = False  # "all": none may be missed
    interactions: Interactions = ()
    grams: Grams = NO_GRAMS

    def parser(self) -> RecordParser:
        """A parser of the core with these settings."""
        made = parser(
            "records",
            dim=self.dim,
            seed=self.seed,
            intercept=self.intercept,
            wide=self.dtype == "float64",
            skip=self.skip_bad_rows,
            max_row=1,
            batch_rows=self.batch_rows,
            batch_values=BATCH_VALUES,
            labels=self.labels.kind,
            positive=self.labels.positive.encode(),
            words=[(word.encode(), y) for word, y in self.labels.words],
            separator=0,
            quote=-1,
            names=bool(self.names),
            all_names=self.names == "all",
            interactions=as_bytes(self.interactions),
            grams=self.grams.rules(self.plan.kinds),
        )
        assert isinstance(made, RecordParser)
        made.set_rules(*self.plan.core_rules)
        kinds = self.plan.kinds
        names = [(KINDS.index(kind), name.encode("utf-8", "backslashreplace")) for name, kind in kinds.items()]
        made.set_names(names, self.format == RECORDS)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The options of `ftprl.data.open` that read other data in the same way."""
        return {
            "format": self.format,
            "dim": self.dim,
            "seed": self.seed,
            "intercept": self.intercept,
            "dtype": self.dtype,
            "loss": self.loss,
            "positive": self.positive,
            **self.plan.to_dict(),
            **as_lists(self.interactions),
            **self.grams.to_dict(),
        }


@final
@dataclass(frozen=True, slots=True)
class ParsedBlock:
    """Some rows as batches; rows are numbered within the block."""

    job: Job
    batches: list[Batch]
    bad: int
    first_bad: str | None
    problem: tuple[str, str] | None  # where and what is wrong, option of the remedy
    negative: float
    left_out: Mapping[int, int]


@final
class BlockParser:
    """A parser of the core and the block it reads."""

    def __init__(self, settings: FrameSettings) -> None:
        self._parser = settings.parser()
        self._block: Block | None = None
        self._last_start = (0, 0, 0)  # the first row of the last job

    def join(self, other: BlockParser) -> None:
        """Stop recording names together with another parser of the same data."""
        self._parser.join_names(other._parser)

    def parse(self, job: Job, negative: float) -> ParsedBlock:
        """The rows of a job, up to the first bad one unless those are left out."""
        block, at, stop = job
        start = (block.file, block.group, block.first + at)
        if start < self._last_start:  # threads may take a parser in another order than jobs
            self._parser.forget_names()
        self._last_start = start
        core, bad_before = self._bound(block), self._parser.bad
        core.negative, taking = negative, Taking(core, block.origin)
        while at < stop and core.problem is None:
            at = core.read(at, stop) if block.records is None else core.read_records(block.records, at, stop)
            taking.take()
        bad, first, problem = core.bad - bad_before, core.first_bad, core.problem
        first_bad = None if first is None or not bad else f"{block.where(first[0] - 1)}: {shown(first[1])}"
        wrong: tuple[str, str] | None = None
        if problem is not None:
            what = with_remedy(shown(problem[1]), *problem[2:])
            wrong = f"{block.where(problem[0] - 1)}: {what}", problem[3]
        return ParsedBlock(job, taking.batches, bad, first_bad, wrong, core.negative, taking.left_out)

    def _bound(self, block: Block) -> RecordParser:
        if self._block is not block:
            self._parser.set_batch(block.columns, *block.batch.__arrow_c_array__())
            self._block = block
        return self._parser


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


def jobs_of(block: Block, start: FramePosition, rows: int = BATCH_ROWS) -> Iterator[Job]:
    """The rows of a block from a position on, cut where a reading from the first row would cut them."""
    record = start.record if (block.file, block.group) == (start.file, start.group) else 0
    for at in range(0, block.rows, rows):
        stop = min(at + rows, block.rows)
        if block.first + stop > record:
            yield block, max(at, record - block.first), stop


class FrameSource(Source):
    """Data frames or dicts as batches; `ftprl.data.open` makes one."""

    reading_effort = "columns"  # how much time is left for learning: see training/threads.py

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
