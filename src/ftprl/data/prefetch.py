"""Work done in advance by other threads, with its results in the order of the jobs."""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
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
class _Task(Generic[J, R]):
    """A job, and its result once it is done."""

    def __init__(self, job: J | None = None, error: BaseException | None = None) -> None:
        self.job, self.error, self.is_done = job, error, error is not None
        self.result: R | None = None

    def do(self, work: Callable[[J], R]) -> None:
        assert self.job is not None
        try:
            self.result = work(self.job)
        except Exception as error:
            self.error = error
        self.job = None

    def outcome(self) -> R:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


@final
class _TaskQueue(Generic[J, R]):
    """Tasks under way: `queue` in the order of the jobs, `open` those of them that nobody has begun."""

    def __init__(self, work: Callable[[J], R], limit: int) -> None:
        self._work, self._limit = work, limit
        self._queue: deque[_Task[J, R]] = deque()
        self._open: deque[_Task[J, R]] = deque()
        self._changed = threading.Condition()
        self._is_fetched = self._is_closed = False

    def fetch(self, jobs: Iterable[J]) -> None:
        """Queue all jobs, as fast as their results are taken."""
        try:
            for job in jobs:
                if not self._put(_Task(job)):
                    return
        except BaseException as error:
            self._put(_Task(error=error))
        finally:
            with self._changed:
                self._is_fetched = True
                self._changed.notify_all()

    def _put(self, task: _Task[J, R]) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._queue) < self._limit or self._is_closed)
            self._queue.append(task)
            if not task.is_done:
                self._open.append(task)
            self._changed.notify_all()
            return not self._is_closed

    def serve(self) -> None:
        """Do tasks until there are no more."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._open or self._is_fetched or self._is_closed)
                if self._is_closed or not self._open:
                    return
                task = self._open.popleft()
            self._do(task)

    def _do(self, task: _Task[J, R]) -> None:
        task.do(self._work)
        with self._changed:
            task.is_done = True
            self._changed.notify_all()

    def results(self) -> Generator[R]:
        """The results in order. Whoever takes them does tasks, too, rather than wait for one that another has begun."""
        while True:
            with self._changed:
                self._changed.wait_for(self._is_ready)
                if self._is_over():
                    return
                mine = None if self._queue[0].is_done else self._open.popleft()
                done = self._queue.popleft() if mine is None else None
                if done is not None:
                    self._changed.notify_all()
            if mine is not None:
                self._do(mine)
            elif done is not None:
                yield done.outcome()

    def _is_ready(self) -> bool:
        return bool(self._open) or self._is_over() or (bool(self._queue) and self._queue[0].is_done)

    def _is_over(self) -> bool:
        return self._is_fetched and not self._queue

    def close(self) -> None:
        """Stop: no more results are wanted."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


@final
class Prefetch(Generic[J, R]):
    """`work(job)` for each job, begun at once by `threads` threads; `close` ends them, also when nothing was taken.

    At most 2 `threads` + 2 results wait for the caller; one more thread fetches the jobs. A caller that stops early
    waits for that thread, so that what it reads is closed; with `wait` off it does not, since a thread that waits for
    standard input may wait for ever.
    """

    def __init__(self, jobs: Iterable[J], work: Callable[[J], R], threads: int, *, wait: bool = True) -> None:
        self._jobs, self._work, self._wait = jobs, work, wait
        self._queue = _TaskQueue(work, 2 * threads + 2)
        self._fetcher = threading.Thread(target=self._queue.fetch, args=(jobs,), name="ftprl-reader", daemon=True)
        self._workers: list[threading.Thread] = []
        self._has_fetcher = _has_started(self._fetcher)
        for _ in range(threads if self._has_fetcher else 0):
            worker = threading.Thread(target=self._queue.serve, name="ftprl-parser", daemon=True)
            if not _has_started(worker):
                break  # the caller's own thread does their work
            self._workers.append(worker)
        _begun.add(self)

    def results(self) -> Generator[R]:
        """The results in the order of the jobs; the caller's own thread takes part while it waits."""
        if self._has_fetcher:
            yield from self._queue.results()
        else:
            yield from map(self._work, self._jobs)

    def close(self) -> None:
        """End all threads."""
        self._queue.close()
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


def prefetched(jobs: Iterable[J], work: Callable[[J], R], threads: int, *, wait: bool = True) -> Generator[R]:
    """`work(job)` for each job, done by `threads` threads and by the caller's, which takes part while it waits."""
    with closing(Prefetch(jobs, work, threads, wait=wait)) as prefetch:
        yield from prefetch.results()


def _has_started(thread: threading.Thread) -> bool:
    """Start a thread; False where the system has no memory or no number left for one."""
    try:
        thread.start()
    except (MemoryError, RuntimeError):
        return False
    return True
