"""The events of a run on their way to a file, a listener and the result."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, final

from ftprl import data as readers
from ftprl.errors import warn
from ftprl.linear.model import Model
from ftprl.linear.totals import LossTotals
from ftprl.runlog.events import Event, Listener, Writer
from ftprl.training.run_settings import RunSettings
from ftprl.version import __version__


@final
class EventLog:
    """The events of a run: collected, written to a file, and passed on to the listener."""

    def __init__(
        self, path: str | os.PathLike[str] | None, listener: Listener | None, settings: dict[str, Any]
    ) -> None:
        self.events: list[Event] = []
        self._path, self._listener, self._settings = path, listener, settings
        self._writer: Writer | None = None
        self.progressive: Callable[[], LossTotals] | None = None  # of the first pass, once there is a trainer
        self.reading: Callable[[], dict[str, Any]] | None = None  # what the workers of a cluster did

    def open(self, *, append: bool) -> None:
        """Open the file, if one was asked for."""
        self._writer = None if self._path is None else Writer(self._path, append=append)

    def add(self, event: Event) -> None:
        """An event: the first also has the settings of the run, ticks are for the listener alone."""
        if event["event"] in ("start", "resume"):
            event = {**event, **self._settings}
        if event["event"] == "end" and self.progressive is not None:
            event = {**event, "above_baseline": self.progressive().above_baseline}
        if event["event"] in ("progress", "end") and self.reading is not None:
            event = {**event, "reading": self.reading()}
        if event["event"] != "tick":
            self.events.append(event)
            if self._writer is not None:
                self._writer.write(event)
        if self._listener is not None:
            self._listener(event)
        elif event["event"] == "checkpoint_failed":
            warn(event["message"])

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


def settings(model: Model, source: readers.Source, options: RunSettings) -> dict[str, Any]:
    """What decides the result of the run, for its first event."""
    return {
        "version": __version__,
        "spec": model.spec.to_dict(),
        **({} if model.classes is None else {"classes": list(model.classes)}),
        "data": source.describe().to_dict(),
        "passes": options.passes,
        "holdout_every": options.holdout,
        "keeps_best_pass": options.passes > 1 and options.holdout is not None and not model.receipt,
        "delay": options.delay,
        **options.order_of_rows,
        "admit": None if model.admission is None else model.admission.after,
        "receipt": model.receipt,
    }
