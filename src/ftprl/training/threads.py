"""How many threads learn in a run."""

from __future__ import annotations

from ftprl.data import Source
from ftprl.data.batches import BatchesSource
from ftprl.data.memory import MemorySource
from ftprl.data.prefetch import processors


def learning_threads(threads: int | None, source: Source) -> int:
    """How many threads learn; `threads` is what was asked for.

    Data that needs no parsing has all of them, by default one for each processor. Text and tables are parsed by
    `threads` threads: only the processors that these leave learn, and one thread by default. On two processors, of
    which parsing keeps one busy, a second thread that learns made whole runs slower.
    """
    if isinstance(source, BatchesSource | MemorySource):
        return max(1, processors() if threads is None else threads)
    return 1 if threads is None else max(1, min(threads, processors() - threads))
