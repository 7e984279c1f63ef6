"""Work done in advance by other threads, with its results in the order of the jobs."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar, final
from weakref import WeakSet

J = TypeVar("J")
R = TypeVar("R")


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
