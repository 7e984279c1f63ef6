"""`JobSource`: a source whose rows come from jobs, read in order and parsed ahead by threads or by workers.

Sources differ in what a job is (`Chunk` of text, `TableRows`, `ArrayRows`, `CachedRows`) and in the parser that reads
it. A job has its `file`, `part` and `offset` there, the `line` of its first row (None where lines have to be counted
first), its `origin` for messages, what ended the reading behind it (`error`), and `where(line)` if a row can be bad.
"""

from __future__ import annotations

import atexit
import os
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, final, runtime_checkable
from weakref import WeakSet

from ftprl._core import Parser
from ftprl.data.batch import Batch, RowNames
from ftprl.data.files import ErrorWithoutLine, is_uri, shown, unreadable
from ftprl.data.parts import ORIGIN
from ftprl.data.plan import Plan
from ftprl.data.source import (
    BatchDigest,
    Description,
    Place,
    Position,
    RowDigest,
    Source,
    State,
    check_same_files,
    check_same_rows,
    ends_of,
)
from ftprl.errors import BadFormat, FtprlError, InvalidInput

J = TypeVar("J")
R = TypeVar("R")
J_contra = TypeVar("J_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


# ---- parsing ----
@final
@dataclass(slots=True)
class Parsed:
    """The rows of a job as batches.

    Lines (of text) or rows (of tables) are counted from 0 at the line of the job: it has `lines` of them, the first bad
    row is at `first_bad`, the one that ended the parsing at `problem`, with the option that may help. `negative` is the
    label that counts as -1 in these rows, 1 when none occurred. `left_out` counts bad rows by the number of good rows
    before them; `records` has the text of every row, good or bad, where it is kept.
    """

    job: Any
    batches: Sequence[Batch]
    lines: int = 0
    bad: int = 0
    first_bad: tuple[int, str] | None = None
    problem: tuple[int, str, str] | None = None
    negative: float = 1.0
    left_out: Mapping[int, int] = field(default_factory=dict)
    records: Sequence[bytes] = ()
    failure: ErrorWithoutLine | None = None  # of the file, while it was parsed

    def error(self, line: int) -> FtprlError | None:
        """Return what ended the reading in this job or behind it, given the line of its first row."""
        if self.problem is not None:
            at, what, option = self.problem
            return BadFormat(f"{self.job.where(line + at)}: {what}", option=(option, "on_bad_row", "loss"))
        error = self.failure or self.job.error
        return error.at(line + self.lines) if isinstance(error, ErrorWithoutLine) else error


class JobParser(ABC):
    """What turns a job into rows: a parser of the core, or what makes batches of data that needs none."""

    @abstractmethod
    def parse(self, job: Any, negative: float = 1.0) -> Parsed:
        """Return the rows of a job, up to the first bad one unless those are left out."""

    def join(self, other: Any) -> None:  # noqa: B027 - most have no names
        """Stop recording names together with another parser of the same data."""


class CoreParser(JobParser):
    """A parser of the core that reads jobs."""

    def __init__(self, parser: Parser) -> None:
        self.core = parser
        self._last_start = (0, 0, 0)  # of the last job

    def join(self, other: CoreParser) -> None:
        """Stop recording names together with another parser of the same data."""
        self.core.join_names(other.core)

    @abstractmethod
    def _feed(self, job: Any) -> Iterator[None]:
        """Parse a job, with a stop whenever a batch is full and at the end."""

    def _lines(self) -> int:
        """Return how many lines of the job were parsed, where the next job needs to know."""
        return 0

    def parse(self, job: Any, negative: float = 1.0) -> Parsed:
        """Return the rows of a job, up to the first bad one unless those are left out."""
        core, failure = self.core, None
        start = (job.file, job.part, job.offset)
        if start < self._last_start:  # threads may take a parser in another order than jobs
            core.forget_names()
        self._last_start, bad_before = start, core.bad
        taking = _Taking(core, job.origin)
        core.negative = negative
        try:
            for _ in self._feed(job):
                taking.take()
                if core.problem is not None:
                    break
        except (OSError, EOFError) as error:
            failure = unreadable(job.origin, error)
            taking.take()
        bad, first, problem = core.bad - bad_before, core.first_bad, None
        if core.problem is not None:
            at, what, *remedy = core.problem
            problem = at - 1, _with_remedy(shown(what), *remedy), remedy[1]
        return Parsed(
            job=job,
            batches=taking.batches,
            lines=self._lines(),
            bad=bad,
            first_bad=None if first is None or not bad else (first[0] - 1, shown(first[1])),
            problem=problem,
            negative=core.negative,
            left_out=taking.left_out,
            records=taking.records,
            failure=failure,
        )


def _with_remedy(what: str, remedy: str, option: str) -> str:
    """Return what is wrong with a row, and what to do: a remedy, another kind of column, or to fix the row itself."""
    if remedy:
        return f"{what}; {remedy} {option}="
    if "; rescale the" in what:
        return what
    other = f" pass {option}= with the column," if option else ""
    if what.startswith("expected a number as the label") and " in column " in what:
        other = " pass loss=softmax for classes,"
    return f"{what}; fix the row,{other} or pass on_bad_row=skip"


@final
class _Taking:
    """What a parser of the core has read so far: batches, where rows were left out, and the text if it is kept."""

    def __init__(self, parser: Parser, origin: str) -> None:
        self._parser, self._origin, self._rows, self._bad = parser, origin, 0, parser.bad
        self.batches: list[Batch] = []
        self.records: list[bytes] = []
        self.left_out = Counter[int]()  # bad rows, by how many good rows come before them

    def take(self) -> None:
        """Take what was read since the last call."""
        if self._parser.bad != self._bad:
            self._bad = self._parser.bad
            self.left_out.update(self._rows + rows for rows in self._parser.take_left_out())
        if self._parser.rows:
            self.batches.append(taken(self._parser, self._origin))
            self._rows += len(self.batches[-1])
        if self._parser.keeps_records:
            self.records += self._parser.take_records()


def taken(parser: Parser, origin: str) -> Batch:
    """Return the rows that a parser holds."""
    indptr, indices, values, y, weight, tags_by_row = parser.take()
    tags: list[str] | None = None
    if tags_by_row:
        tags = [""] * len(y)
        for row, tag in tags_by_row:
            tags[row] = tag.decode("utf-8", "backslashreplace")
    new = parser.take_names()
    names = None if new is None else RowNames(new, 0, len(y))
    tagged = None if tags is None else tuple(tags)
    texts = {code: text.decode("utf-8", "backslashreplace") for code, text in parser.take_label_texts()}
    return Batch.trusted(indptr, indices, values, y, weight, 0, origin, tagged, True, names, texts)


# ---- threads that parse ahead ----


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 2


def usual_threads() -> int:
    """How many threads parse beside the caller's own: one on two processors, two where there are more."""
    return 1 if processors() <= 2 else 2


@final
class Prefetch(Generic[J, R]):
    """`work(job)` for each job, begun at once by `threads` threads; `close` ends them, also when nothing was taken.

    At most 2 `threads` + 2 results wait for the caller; one more thread fetches the jobs. A caller that stops early
    waits for that thread, so that what it reads is closed; with `wait` off it does not, since a thread that waits for
    standard input may wait for ever.
    """

    def __init__(self, jobs: Iterable[J], work: Callable[[J], R], threads: int, *, wait: bool = True) -> None:
        self._jobs, self._work, self._wait, self._limit = jobs, work, wait, 2 * threads + 2
        self._queue: deque[Future[R]] = deque()  # results, in the order of the jobs
        self._open: deque[tuple[Future[R], J]] = deque()  # jobs that nobody has begun
        self._changed = threading.Condition()
        self._is_fetched = self._is_closed = False
        self._fetcher = threading.Thread(target=self._fetch, name="ftprl-reader", daemon=True)
        self._workers: list[threading.Thread] = []
        self._has_fetcher = _has_started(self._fetcher)
        for _ in range(threads if self._has_fetcher else 0):
            worker = threading.Thread(target=self._serve, name="ftprl-parser", daemon=True)
            if not _has_started(worker):
                break  # the caller's own thread does their work
            self._workers.append(worker)
        _begun.add(self)

    def _fetch(self) -> None:
        """Queue all jobs, as fast as their results are taken."""
        try:
            for job in self._jobs:
                if not self._put(Future(), [job]):
                    return
        except BaseException as error:
            failed: Future[R] = Future()
            failed.set_exception(error)
            self._put(failed, [])
        finally:
            with self._changed:
                self._is_fetched = True
                self._changed.notify_all()

    def _put(self, future: Future[R], jobs: Iterable[J]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) < self._limit or self._is_closed)
            self._queue.append(future)
            self._open.extend((future, job) for job in jobs)
            self._changed.notify_all()
            return not self._is_closed

    def _serve(self) -> None:
        """Do jobs until there are no more."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._open or self._is_fetched or self._is_closed)
                if self._is_closed or not self._open:
                    return
                mine = self._open.popleft()
            self._do(*mine)

    def _do(self, future: Future[R], job: J) -> None:
        try:
            future.set_result(self._work(job))
        except Exception as error:
            future.set_exception(error)
        with self._changed:
            self._changed.notify_all()

    def results(self) -> Generator[R]:
        """Yield the results in order. Whoever takes them does jobs, too, rather than wait for one under way."""
        if not self._has_fetcher:
            yield from map(self._work, self._jobs)
            return
        while True:
            mine: tuple[Future[R], J] | None = None
            with self._changed:
                self._changed.wait_for(self._is_ready)
                if not self._queue:
                    return
                is_done = self._queue[0].done()
                if not is_done:
                    mine = self._open.popleft()
                done = self._queue.popleft() if is_done else None
                self._changed.notify_all()
            if mine is not None:
                self._do(*mine)
            elif done is not None:
                yield done.result()

    def _is_ready(self) -> bool:
        """Whether a job can be done, or a result taken, or there are no more."""
        return bool(self._open) or (self._queue[0].done() if self._queue else self._is_fetched)

    def close(self) -> None:
        """End all threads."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._workers:
            thread.join()
        if self._wait and self._has_fetcher:
            self._fetcher.join()


_begun: WeakSet[Prefetch[Any, Any]] = WeakSet()


@atexit.register
def _close_all() -> None:
    """End the threads of readings that are not closed: one that parses when the interpreter ends aborts the process."""
    for prefetch in list(_begun):
        prefetch.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begun.clear)  # the threads are not there


def _has_started(thread: threading.Thread) -> bool:
    """Start a thread; False where the system has no memory or no number left for one."""
    try:
        thread.start()
    except (MemoryError, RuntimeError):
        return False
    return True


# ---- workers in other processes ----
class Work(Protocol[J_contra, R_co]):
    """What a worker does with a job: it reads and parses, and yields results; all of them can be pickled."""

    def __call__(self, job: J_contra, /) -> Iterator[R_co]:
        """Yield the results of one job, in order; they are the same whenever it is done."""

    def size(self, result: Any, /) -> tuple[int, int]:
        """Return the rows of a result, and about how many bytes it has."""

    def describe(self, job: J_contra, /) -> str:
        """Return what the job reads, for messages."""


@runtime_checkable
class Workers(Protocol):
    """Processes that do jobs, on this machine or on others."""

    def results(self, jobs: Iterator[J], work: Work[J, R]) -> Generator[R]:
        """Yield the results of all jobs, in the order of the jobs; a job whose worker dies is done again."""


@final
@dataclass(frozen=True, slots=True)
class RemoteJob:
    """Jobs of one file that a worker reads: `jobs` whose rows it finds in the file, or all from a place on."""

    file: int
    name: str  # of the file, for messages
    start: Place
    jobs: tuple[Any, ...] | None = None


class RemoteReader(Protocol):
    """What finds the jobs of a source, on the machine that learns and on those of the workers."""

    def remote_jobs(self, start: Place) -> Generator[RemoteJob]:
        """Yield what workers are to read, from a place on."""

    def jobs_of(self, remote: RemoteJob, /) -> Generator[Any]:
        """Yield the jobs of a remote job, with their rows."""

    def without_rows(self, job: Any, /) -> Any:
        """Return a job without its rows: where they are in the file."""

    def parser(self) -> JobParser:
        """Return a parser of the jobs."""


@final
@dataclass(frozen=True, slots=True)
class ReadAndParse:
    """The work of a worker: it reads and parses the rows of a remote job; jobs come back without their rows."""

    reader: RemoteReader

    def __call__(self, remote: RemoteJob, /) -> Iterator[Parsed]:
        """Yield the rows of each job."""
        parser = self.reader.parser()
        with closing(self.reader.jobs_of(remote)) as jobs:
            for job in jobs:
                parsed = parser.parse(job, remote.start.negative)
                parsed.job = self.reader.without_rows(job)
                yield parsed
                if parsed.problem is not None:
                    return

    def size(self, result: Parsed, /) -> tuple[int, int]:
        """Return the rows of a result and the bytes of its arrays."""
        arrays = [(b.indptr, b.indices, b.values, b.y, b.weight) for b in result.batches]
        return sum(map(len, result.batches)), sum(array.nbytes for batch in arrays for array in batch)

    def describe(self, job: RemoteJob, /) -> str:
        """Return the file of a job, and which part of it."""
        return job.name


def check_here(file: str) -> None:
    """Refuse a file that the process that learns has found and this one, on another machine, does not have."""
    if not is_uri(file) and not os.path.exists(file):
        import socket  # takes long, and most readings need none

        raise InvalidInput(
            f"{shown(file)}: not there on a worker of the cluster, on {socket.gethostname()}; put the data on a path"
            " that all nodes have."
        )


@final
class _Reading:
    """The jobs of a reading, parsed ahead by threads, by workers, or as they are taken."""

    def __init__(self, source: JobSource, state: State, threads: int) -> None:
        self._prefetch: Prefetch[Any, Parsed] | None = None
        self._waits = source.can_be_read_again or not source.files
        first = source.parser()
        parsers = [first]

        def work(job: Any) -> Parsed:
            try:
                parser = parsers.pop()
            except IndexError:
                parser = source.parser()
                parser.join(first)
            parsed = parser.parse(job, state.negative)
            if parsed.problem is None:
                parsers.append(parser)
            return parsed

        if source.workers is not None:
            self._jobs: Generator[Any] = source.reader.remote_jobs(state.start)
            self.results: Generator[Parsed] = source.workers.results(self._jobs, ReadAndParse(source.reader))
            return
        self._jobs = source.jobs(state.start, threads)
        if threads and source.suits_threads:
            self._prefetch = Prefetch(self._jobs, work, threads, wait=self._waits)
            self.results = self._prefetch.results()
        else:
            self.results = (work(job) for job in self._jobs)

    def close(self) -> None:
        """Leave no thread and no file behind, whatever ends the reading, unless a thread waits for standard input."""
        self.results.close()
        if self._prefetch is not None:
            self._prefetch.close()
        if self._waits:
            self._jobs.close()


class JobSource(Source):
    """Rows as batches, parsed job by job, whatever a job is."""

    suits_threads = True  # whether other threads may parse the jobs
    suits_workers = True  # whether workers in other processes may
    reader: Any  # a RemoteReader, where workers can read the data

    def __init__(self, files: tuple[str, ...] = ()) -> None:
        self._files = files
        self._state = State(Place())  # of the last reading
        self.workers: Workers | None = None

    @abstractmethod
    def jobs(self, start: Place, threads: int) -> Generator[Any]:
        """Yield the jobs from a place on."""

    @abstractmethod
    def parser(self) -> JobParser:
        """Return a parser of the jobs."""

    def _claim(self) -> None:
        """Refuse a second reading of data that can be read once."""

    def _give_back(self, job: Any) -> None:
        """Take back the memory of a job that was parsed."""

    def use_workers(self, workers: Workers | None) -> None:
        """Have all rows parsed by these workers, in other processes; None for threads of this one."""
        self.workers = workers

    @property
    def files(self) -> tuple[str, ...]:
        """The files, in the order in which they are read; none for data in memory."""
        return self._files

    @property
    def start(self) -> Place:
        """The position of the first row; no digest is made of data in memory."""
        return Place(digest=RowDigest() if self.files else None)

    def position(self, saved: Mapping[str, Any]) -> Place:
        """Return the position that `Place.to_dict` saved."""
        return Place.from_dict(saved)

    def _own(self, position: Position) -> Place:
        if not isinstance(position, Place) or (self.files and position.file >= len(self.files)):
            raise InvalidInput(f"start needs a row of this data, got {position!r:.100}; pass one of its positions.")
        return position

    @property
    def bad_rows(self) -> int:
        """How many rows were left out, up to where the last reading has come."""
        return self._state.bad

    @property
    def first_bad(self) -> str | None:
        """Where the first row was left out, and why."""
        return self._state.first_bad

    def take_left_out(self) -> dict[int, int]:
        """Return how many rows were left out since the last call, by the number of good rows that come before them."""
        return self._state.take_left_out()

    def read(
        self, start: Position | None = None, *, threads: int | None = None, digest: bool = True
    ) -> Generator[tuple[Batch, Place]]:
        """Batches from a position on, each with the position of its first row, parsed ahead by that many threads.

        The rows and how they are cut into batches are the same for any number of threads; with 0 the caller's thread
        does everything, with None there are as many as the processors are good for. Without `digest` no digest of the
        rows is made, and no position can be checked later.
        """
        place = self.start if start is None else self._own(start)
        self._claim()
        self._state = State(place if digest else replace(place, digest=None, end=None))
        return self._read(self._state, usual_threads() if threads is None else threads)

    def _read(self, state: State, threads: int) -> Generator[tuple[Batch, Place]]:
        with closing(_Reading(self, state, threads)) as reading:
            for result in reading.results:
                parsed = self._agreeing(result, state.negative)
                self._note(parsed)
                yield from state.batches_of(parsed)
                self._give_back(parsed.job)
                error = parsed.error(state.line)
                if error is not None:
                    raise error
                state.line += parsed.lines

    def _note(self, parsed: Parsed) -> None:
        """Note what was parsed, before its rows are passed on."""

    def _agreeing(self, parsed: Parsed, negative: float) -> Parsed:
        """Return the rows, parsed again if their labels settled what counts as -1 before those in front were known."""
        if negative in (1.0, parsed.negative) or parsed.negative == 1.0:
            return parsed
        return self.parser().parse(parsed.job if self.workers is None else self.reader.again(parsed.job), negative)

    def check_before(self, position: Position) -> None:
        """Read all rows before a position again and refuse them unless they are the same."""
        end = self._own(position).end
        if end is None:
            return  # nothing was read, or the data is in memory: `check_unchanged` compares all of it
        digest = RowDigest()
        with closing(self._read(State(Place()), usual_threads())) as rows:
            for batch, _ in rows if end.rows else ():
                digest = digest.plus(batch[: end.rows - digest.rows])
                if digest.rows == end.rows:
                    break
        if digest != end:
            raise InvalidInput(
                f"resume= needs the data of the checkpoint, expected {shown(self.files[self._own(position).file])} and"
                " the files before it as they were, got other rows; pass the same files."
            )

    def digest(self) -> list[int] | None:
        """Return the digest of all rows, from the first to where the last reading has come; None if it makes none."""
        return None if self._state.digest is None else self._state.digest.to_list()

    def locate(self, position: Position) -> str:
        """Return the number of the row behind a position, counted from 0."""
        return f"{ORIGIN}: row {self._own(position).rows}"

    def fingerprint(self) -> Any:
        """Return the sizes and ends of files, or a SHA-256 of all rows in memory; None for what can be read once."""
        if not self.can_be_read_again:
            return None
        if self.files:
            return [ends_of(file) for file in self.files]
        digest = BatchDigest()
        with closing(self._read(State(Place()), usual_threads())) as rows:
            for batch, _ in rows:
                digest.update(batch)
        return digest.result()

    def check_unchanged(self, fingerprint: Any) -> None:
        """Refuse data that is not that of a fingerprint taken before."""
        if self.files:
            check_same_files(self.files, self.fingerprint(), fingerprint)
        else:
            check_same_rows(fingerprint, self.fingerprint())


class PlannedSource(JobSource):
    """A source whose rows a plan decides; `ftprl.data.open` makes one."""

    def __init__(self, plan: Plan, files: tuple[str, ...] = ()) -> None:
        super().__init__(files)
        self.settings = plan

    @property
    def skips_bad_rows(self) -> bool:
        """Whether bad rows are left out rather than ending the reading."""
        return self.settings.skip_bad_rows

    def describe(self) -> Description:
        """Return what is read: the files, what each column is for, what the labels become."""
        return self.settings.describe(tuple(map(shown, self.files)) or (ORIGIN,))

    def to_dict(self) -> dict[str, Any]:
        """Return the options of `ftprl.data.open` that read other data in the same way."""
        return self.settings.to_dict()
