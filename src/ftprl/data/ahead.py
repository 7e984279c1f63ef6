"""Work done ahead by other threads, its results in the order of the jobs."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")

_PATIENCE = 0.05  # seconds between two looks at whether anybody still wants the work


def ahead(jobs: Iterable[J], work: Callable[[J], R], threads: int, *, wait: bool = True) -> Generator[R]:
    """`work(job)` for each job, at most 2 `threads` + 2 of them ahead; one more thread fetches the jobs.

    A caller that stops early waits for that thread, so that what it reads is closed; with `wait` off it does not, since
    a thread that waits for standard input may wait for ever.
    """
    ready: queue.Queue[Future[R] | None] = queue.Queue(2 * threads + 2)
    stop = threading.Event()
    pool = ThreadPoolExecutor(threads)

    def put(item: Future[R] | None) -> None:
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                ready.put(item, timeout=_PATIENCE)
                return

    def fetch() -> None:
        try:
            for job in jobs:
                if stop.is_set():
                    break
                put(pool.submit(work, job))
        except BaseException as error:
            failed: Future[R] = Future()
            failed.set_exception(error)
            put(failed)
        finally:
            put(None)

    fetcher = threading.Thread(target=fetch, name="ftprl-reader", daemon=True)
    fetcher.start()
    try:
        while (future := ready.get()) is not None:
            yield future.result()
    finally:
        stop.set()
        if wait:
            fetcher.join()
        pool.shutdown(wait=wait, cancel_futures=True)
