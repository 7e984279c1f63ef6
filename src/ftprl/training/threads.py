"""How many threads learn in a run."""

from __future__ import annotations

from ftprl.data import Source
from ftprl.data.prefetch import processors
from ftprl.linear.engine import Engine
from ftprl.linear.mixture import FIRST_ROW


def choose_threads(engine: Engine, threads: int | None, source: Source) -> None:
    """Before each batch: have the engine learn in as many threads as pay; `threads` is what was asked for.

    By default one thread learns until it is first decided whether scales are dropped: most streams keep four, which one
    thread learns, and it takes longer to split the cells and to join them again than a second thread saves until then.
    """
    is_early = threads is None and engine.retire and engine.progress.rows < FIRST_ROW
    chosen = 1 if is_early else learning_threads(threads, source)
    if chosen != engine.threads:
        engine.threads = chosen


def learning_threads(threads: int | None, source: Source) -> int:
    """How many threads may learn.

    Data that needs no parsing has all of them, by default one for each processor. Text and tables are parsed by
    `threads` threads: only the processors that these leave learn. By default one thread learns text, of which parsing
    keeps another processor busy; files of columns and frames are read in less time, and learned as data in memory is.
    """
    effort = getattr(source, "reading_effort", "text")  # not by class: text is read without the modules of the others
    if effort == "none":
        return max(1, processors() if threads is None else threads)
    if threads is None:
        return max(1, processors()) if effort == "columns" else 1
    return max(1, min(threads, processors() - threads))
