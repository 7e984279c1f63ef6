"""Jobs on the workers of a Ray cluster, and their results in the order of the jobs."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, final

from ftprl.data.source import Work
from ftprl.errors import FtprlError, Unsupported

J = TypeVar("J")
R = TypeVar("R")

_WAITING = 8  # results of a job that may wait for the learner; then its worker waits
_PREFETCHED = 2  # results that are on this node before they are learned
_LAST_SECONDS = 10  # for threads to end
_MOST_DEATHS = 5  # of workers, one after the other, without a result between them


@dataclass
class ReadingTotals:
    """What the workers did: rows, bytes of them that were moved, seconds; and how many seconds learning waited."""

    rows: int = 0
    bytes: int = 0
    reading_seconds: float = 0.0
    waiting_seconds: float = 0.0
    deaths: int = 0
    start: float = field(default_factory=time.perf_counter)

    def to_dict(self) -> dict[str, float]:
        """As JSON values, with rows per second: of one worker while it reads, and of the learner while it has rows."""
        learning = time.perf_counter() - self.start - self.waiting_seconds
        return {
            **{name: value for name, value in vars(self).items() if name != "start"},
            "rows_per_second_of_a_worker": _rate(self.rows, self.reading_seconds),
            "rows_per_second_of_the_learner": _rate(self.rows, learning),
        }


def _rate(rows: int, seconds: float) -> float:
    return rows / seconds if rows and seconds > 0.0 else 0.0


def _do(work: Work[Any, Any], job: Any, skip: int) -> Iterator[tuple[Any, float]]:
    """The results of a job behind the first `skip`, each with the seconds it took."""
    clock = time.perf_counter()
    for number, result in enumerate(work(job)):
        if number >= skip:
            yield result, time.perf_counter() - clock
        clock = time.perf_counter()


@final
class _Running(Generic[J]):
    """A job under way; if its worker dies, another one does it again from the first result that is missing."""

    def __init__(self, pool: OrderedResults[J, Any], job: J) -> None:
        self._pool, self._job, self._taken, self._deaths = pool, job, 0, 0
        self._generator = pool.start(job)

    def results(self) -> Iterator[tuple[Any, float]]:
        exceptions = self._pool.ray.exceptions
        while True:
            try:
                outcome = self._pool.ray.get(next(self._generator))
            except StopIteration:
                return
            except exceptions.RayTaskError as error:
                raise self._raised(error) from None
            except exceptions.RayError as error:  # a worker or a node died, or an object was lost with one
                self._restart(error)
                continue
            self._taken, self._deaths = self._taken + 1, 0
            yield outcome

    def _raised(self, error: Any) -> BaseException:
        """What a job raised on its worker, as if it had been raised here."""
        cause = error.cause
        return cause if isinstance(cause, FtprlError | OSError | MemoryError) else error

    def _restart(self, error: BaseException) -> None:
        self._deaths += 1
        self._pool.totals.deaths += 1
        if self._deaths >= _MOST_DEATHS:
            what = str(error).strip().splitlines()[0][:160]
            raise Unsupported(
                f"{self._pool.work.describe(self._job)}: {self._deaths} workers of the cluster died at the same rows"
                f" ({what}); give them more memory, or read fewer files at once with workers=.",
                option="workers",
            ) from None
        self._generator = self._pool.start(self._job, self._taken, again=True)


@final
class OrderedResults(Generic[J, R]):
    """As many jobs at a time as there are workers, and the next ones as soon as results are taken."""

    def __init__(self, ray: Any, work: Work[J, R], workers: int, totals: ReadingTotals) -> None:
        self.ray, self.work, self.totals, self._sent = ray, work, totals, ray.put(work)
        streaming = {"num_returns": "streaming", "_generator_backpressure_num_objects": _WAITING, "max_retries": 0}
        self._do, self._do_again = (ray.remote(num_cpus=count, **streaming)(_do) for count in (1, 0))
        self._queue: queue.SimpleQueue[_Running[J] | BaseException | None] = queue.SimpleQueue()
        self._free = threading.Semaphore(workers)
        self._ready: queue.Queue[tuple[R, float] | BaseException | None] = queue.Queue(_PREFETCHED)
        self._is_closed = False
        self._threads: list[threading.Thread] = []

    def start(self, job: J, skip: int = 0, *, again: bool = False) -> Any:
        """The results of a job, as references.

        One that is done again has to run at once, since all others wait until its results are taken: it asks for no
        processor, which the others may hold.
        """
        do = self._do_again if again else self._do
        return do.remote(self._sent, job, skip)

    def results(self, jobs: Iterator[J]) -> Generator[R]:
        """All results, in order."""
        # One thread finds the jobs, for which it may have to read the files; another one brings results to this node
        # while others are learned.
        for task, name in ((lambda: self._feed(jobs), "ftprl-jobs"), (self._bring, "ftprl-results")):
            self._threads.append(threading.Thread(target=task, name=name, daemon=True))
            self._threads[-1].start()
        while True:
            clock = time.perf_counter()
            outcome = self._ready.get()
            self.totals.waiting_seconds += time.perf_counter() - clock
            if outcome is None:
                return
            if isinstance(outcome, BaseException):
                raise outcome
            result, seconds = outcome
            rows, size = self.work.size(result)
            self.totals.rows += rows
            self.totals.bytes += size
            self.totals.reading_seconds += seconds
            yield result

    def _feed(self, jobs: Iterator[J]) -> None:
        last: BaseException | None = None
        try:
            for job in jobs:
                while not self._is_closed and not self._free.acquire(timeout=0.1):
                    pass
                if self._is_closed:
                    break
                self._queue.put(_Running(self, job))
        except BaseException as error:  # raised where the results are taken, behind those of the jobs before
            last = error
        self._queue.put(last)

    def _bring(self) -> None:
        last: BaseException | None = None
        try:
            while (running := self._queue.get()) is not None:
                if isinstance(running, BaseException):
                    raise running
                for outcome in running.results():
                    self._hand_over(outcome)
                    if self._is_closed:
                        return
                self._free.release()
        except BaseException as error:
            last = error
        self._hand_over(last)

    def _hand_over(self, outcome: tuple[R, float] | BaseException | None) -> None:
        """Wait until the learner has space for an outcome, or wants no more."""
        while not self._is_closed:
            with contextlib.suppress(queue.Full):
                self._ready.put(outcome, timeout=0.1)
                return

    def close(self) -> None:
        """Stop: no more results are wanted."""
        self._is_closed = True
        for thread in self._threads:
            thread.join(_LAST_SECONDS)  # one may wait for a worker that is slow
