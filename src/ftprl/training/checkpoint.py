"""Checkpoints: a model file that also has the state of the run, from which the run can be resumed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, final

from numpy.typing import NDArray

from ftprl.confidence import RunMonitor
from ftprl.data import Source
from ftprl.errors import BadModel, FtprlError, Interrupted, InvalidInput
from ftprl.linear.model import Model
from ftprl.training.predictions import Predictions
from ftprl.training.run_settings import RunSettings
from ftprl.training.run_state import RunState


@final
class Checkpoints:
    """Writes the checkpoints of one run, and reads the one that it is resumed from."""

    def __init__(self, source: Source, options: RunSettings) -> None:
        self._source, self._options = source, options
        self._fingerprint = source.fingerprint() if options.checkpoint is not None else None
        self._written = time.monotonic()
        self.saved_rows = 0  # that a file has: a checkpoint, or the model that is resumed
        self.failed = 0
        self.first_error: str | None = None

    def is_due(self) -> bool:
        """Whether enough time has passed, where the clock decides."""
        seconds = self._options.every.seconds
        if self._options.checkpoint is None or seconds is None:
            return False
        return time.monotonic() - self._written >= seconds

    def save(
        self, model: Model, state: RunState, predictions: Predictions | None, tensors: Mapping[str, NDArray[Any]]
    ) -> tuple[str, dict[str, Any]]:
        """Write a checkpoint; if that fails the last one stays. Returns the event to log: its kind and its fields."""
        try:
            lines = None if predictions is None else predictions.save(state)
            path = self.write(model, state, lines, tensors)
        except (OSError, FtprlError) as error:
            return "checkpoint_failed", {"path": self._options.checkpoint, "message": self._failure(error, state.rows)}
        self.saved_rows = state.rows
        return "checkpoint", {"path": path}

    def _failure(self, error: OSError | FtprlError, rows: int) -> str:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"{self._options.checkpoint}: the checkpoint after {rows} rows could not be written: {reason}"
        message += f"; the last one, after {self.saved_rows} rows, is kept" if self.saved_rows else ""
        self.failed += 1
        self.first_error = self.first_error or message
        return message

    def interruption(self, rows: int, signal: int) -> Interrupted:
        """The error of a run that was interrupted after so many rows, which says what is kept."""
        path = self._options.checkpoint if 0 < self.saved_rows == rows else None
        lost = rows - self.saved_rows
        return Interrupted(
            _what_is_kept(rows, lost, path, self.first_error),
            signal=signal,
            rows=rows,
            lost=lost,
            checkpoint=path,
            option=("checkpoint", "resume"),
        )

    def write(
        self,
        model: Model,
        state: RunState,
        predictions: Mapping[str, Any] | None,
        tensors: Mapping[str, NDArray[Any]],
    ) -> str:
        """Save the model with the state of the run, of its predictions and the rows it keeps; returns the path."""
        options = self._options
        assert options.checkpoint is not None
        model.checkpoint = {
            "holdout": options.holdout,
            "passes": options.passes,
            "delay": options.delay,
            "order": options.order,
            "waiting": options.waiting,
            "order_seed": options.order_seed,
            "fingerprint": self._fingerprint,
            "on_bad_row": "skip" if self._source.skips_bad_rows else "raise",
            "predictions": predictions,
            "state": state.to_dict(),
        }
        model.waiting = dict(tensors)
        try:
            model.save(options.checkpoint)
        finally:
            model.checkpoint, model.waiting = None, {}
        self._written = time.monotonic()
        return options.checkpoint

    def resume(self, saved: Mapping[str, Any], monitor: RunMonitor) -> RunState:
        """The state of a checkpoint, if the options and the files are those it was made with."""
        if (self._options.predictions is None) != (saved.get("predictions") is None):
            had = "with" if saved.get("predictions") else "without"
            raise InvalidInput(
                f"predictions= has every row of a run or none, got a checkpoint {had} it;"
                f" {'name the same file again' if had == 'with' else 'drop it'}.",
                option="predictions",
            )
        for name in ("passes", "holdout", "delay", "order", "waiting", "order_seed"):
            now = getattr(self._options, name)
            then = saved.get(name, now if name in ("waiting", "order_seed") else "given" if name == "order" else None)
            if now != then:
                raise InvalidInput(
                    f"{name}= needs to be what the checkpoint was made with, got {now} instead of {then}; keep it."
                )
        self._source.check_unchanged(saved["fingerprint"])
        try:
            state = RunState.from_dict(saved["state"], self._source, monitor)
        except BadModel:
            raise
        except (KeyError, TypeError, ValueError) as wrong:
            raise BadModel(f"a checkpoint needs a position in the data, got {wrong}; start anew.") from None
        self._source.check_before(state.position)
        self.saved_rows = state.rows
        return state


def _what_is_kept(rows: int, lost: int, path: str | None, checkpoint_error: str | None) -> str:
    """One line about a run that was interrupted."""
    text = f"interrupted after {rows} rows"
    if rows == 0:
        return f"{text}; nothing was learned or written"
    if path is not None and not lost:
        return f"{text}, all of them saved; continue with resume={path}"
    if not lost:
        return f"{text}; no row was learned since it was resumed"
    if checkpoint_error is not None:
        return f"{text}, of which {lost} are lost: {checkpoint_error}"
    return f"{text}, of which {lost} are lost; pass checkpoint= to save them the next time"
