"""How many threads learn in a run."""

from __future__ import annotations

from ftprl.data import Source
from ftprl.data.batches import BatchesSource
from ftprl.data.memory import MemorySource
from ftprl.data.prefetch import processors


def learning_threads(threads: int | None, source: Source) -> int:
    """`threads` if it is given; otherwise one for each processor, unless there is text or a table to parse.

    Parsing keeps a processor busy by itself, so there one thread learns.
    """
    if threads is not None:
        return max(1, threads)
    return processors() if isinstance(source, BatchesSource | MemorySource) else 1
