"""`ProgressBar`: how far a run of `train` has come, in a terminal or a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from ftprl.runlog.events import Event

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_LAST = ("end", "error", "interrupted")


@final
class ProgressBar:
    """A listener for `train` that shows rows, rows per second and the loss so far by rich; it leaves the last line.

    >>> from ftprl import train
    >>> run = train([{"a": 1.0}, {"b": 1.0}] * 50, [1, 0] * 50, listener=ProgressBar())  # doctest: +SKIP
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._task: Any = None

    def __call__(self, event: Event) -> None:
        """Show an event of the run."""
        kind = event["event"]
        if self._progress is None and kind not in _LAST:
            self._begin()
        if self._progress is None:
            return
        if "rows" in event:
            self._progress.update(self._task, completed=event["rows"], description=_described(event))
        if kind in _LAST:
            self._progress.stop()
            self._progress = None

    def _begin(self) -> None:
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.completed:,.0f} rows"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._progress = Progress(*columns, console=self._console, refresh_per_second=5)
        self._task = self._progress.add_task("", total=None)
        self._progress.start()


def _described(event: Event) -> str:
    loss, baseline = event.get("loss"), event.get("baseline")
    if loss is None:
        return ""
    known = "" if baseline is None else f", baseline {baseline:.5g}"
    number = f"pass {event['pass']}, " if event.get("pass", 1) > 1 else ""
    return f"{number}loss {loss:.5g}{known}"
