"""Run jobs on the workers of a Ray cluster and return their results in the order of the jobs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Generic, TypeVar, final

from ftprl.data.jobs import Work
from ftprl.errors import FtprlError, Unsupported

J = TypeVar("J")
R = TypeVar("R")

_WAITING = 8  # results of a job that may wait for the learner before its worker pauses
_LAST_SECONDS = 10  # to wait for the thread that fetches results
_MOST_DEATHS = 5  # deaths of workers in a row, without a result between them


@dataclass
class ReadingTotals:
    """Statistics of the workers: rows, bytes moved, seconds of reading, and seconds that the learner waited."""

    rows: int = 0
    bytes: int = 0
    reading_seconds: float = 0.0
    waiting_seconds: float = 0.0
    deaths: int = 0
    start: float = field(default_factory=time.perf_counter)

    def to_dict(self) -> dict[str, float]:
        """Return JSON values, with rows per second of a worker while it reads and of the learner while it has rows."""
        learning = time.perf_counter() - self.start - self.waiting_seconds
        return {
            **{name: value for name, value in vars(self).items() if name != "start"},
            "rows_per_second_of_a_worker": _rate(self.rows, self.reading_seconds),
            "rows_per_second_of_the_learner": _rate(self.rows, learning),
        }


def _rate(rows: int, seconds: float) -> float:
    """Return rows per second, 0 without rows or time."""
    return rows / seconds if rows and seconds > 0.0 else 0.0


def _do(work: Work[Any, Any], job: Any, skip: int) -> Iterator[tuple[Any, float] | None]:
    """Yield the results of a job after the first `skip`, each with the seconds it took; None at the end."""
    clock = time.perf_counter()
    for number, result in enumerate(work(job)):
        if number >= skip:
            yield result, time.perf_counter() - clock
        clock = time.perf_counter()
    yield None


@final
class _Running(Generic[J]):
    """A running job; if its worker dies, another worker continues from the first missing result."""

    def __init__(self, ray: Any, work: Work[J, Any], sent: Any, job: J, totals: ReadingTotals) -> None:
        self._ray, self._sent, self._job, self._totals = ray, sent, job, totals
        self._what, self._taken = work.describe(job), 0
        self._generator = self._started(1)

    def _started(self, processors: int) -> Any:
        """Start the job, skipping results that were taken already; return references to the results."""
        streaming = {"num_returns": "streaming", "_generator_backpressure_num_objects": _WAITING, "max_retries": 0}
        do = self._ray.remote(num_cpus=processors, **streaming)(_do)
        return do.remote(self._sent, self._job, self._taken)

    def results(self) -> Iterator[tuple[Any, float]]:
        """Yield the results, each with the seconds that its worker took."""
        deaths = 0
        while True:
            try:
                outcome = self._ray.get(next(self._generator))
            except self._ray.exceptions.RayTaskError as error:  # raise the job's own error here
                cause = error.cause
                raise (cause if isinstance(cause, FtprlError | OSError | MemoryError) else error) from None
            except (StopIteration, self._ray.exceptions.RayError) as error:
                # A worker or a node died, or an object was lost with one. Results that end without the None of a
                # complete job also come from a worker that failed: Ray reports both in one way.
                deaths += 1
                self._totals.deaths += 1
                if deaths >= _MOST_DEATHS:
                    reason = (str(error).strip() or "its results ended early").splitlines()[0][:160]
                    raise Unsupported(
                        f"{self._what}: {deaths} workers of the cluster died at the same rows"
                        f" ({reason}); give them more memory, or read fewer files at once with threads=.",
                        option="threads",
                    ) from None
                # All other jobs wait until the results of this one are taken, so it requests no processor, which they
                # may hold.
                self._generator = self._started(0)
                continue
            if outcome is None:
                return
            self._taken, deaths = self._taken + 1, 0
            yield outcome


def ordered_results(ray: Any, work: Work[J, R], workers: int, totals: ReadingTotals, jobs: Iterator[J]) -> Generator[R]:
    """Yield the results of all jobs in order; `workers` jobs run at a time, each on its own worker."""
    outcomes = _outcomes(ray, work, workers, totals, jobs)
    thread = ThreadPoolExecutor(1, "ftprl-results")  # fetches the next result to this node while one is learned
    pending = thread.submit(next, outcomes, None)
    try:
        while True:
            clock = time.perf_counter()
            outcome = pending.result()
            totals.waiting_seconds += time.perf_counter() - clock
            if outcome is None:
                return
            pending = thread.submit(next, outcomes, None)
            result, seconds = outcome
            rows, size = work.size(result)
            totals.rows += rows
            totals.bytes += size
            totals.reading_seconds += seconds
            yield result
    except ray.exceptions.RayTaskError:
        raise
    except ray.exceptions.RayError as error:
        raise FtprlError(
            f"engine=ray lost its cluster ({' '.join(str(error).split())[:160]}); start the run again, or continue it"
            " with resume= and its last checkpoint.",
            option=("engine", "resume"),
        ) from None
    finally:
        thread.shutdown(wait=False, cancel_futures=True)
        wait([pending], _LAST_SECONDS)  # a worker may be slow


def _outcomes(
    ray: Any, work: Work[J, Any], workers: int, totals: ReadingTotals, jobs: Iterator[J]
) -> Iterator[tuple[Any, float]]:
    """Yield the results of all jobs; the next job starts as soon as all results of the first one are taken."""
    sent = ray.put(work)
    started = (_Running(ray, work, sent, job, totals) for job in jobs)
    running = deque(islice(started, workers))
    while running:
        yield from running[0].results()
        running.popleft()
        running.extend(islice(started, 1))
