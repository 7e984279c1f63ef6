"""One run over the data: each row is predicted, then learned, with progress, held-out rows, passes and checkpoints.

Everything a run logs or keeps happens at row numbers (`Schedule`), so that neither the cutting into batches nor the
number of threads can be seen in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

import numpy as np

from ftprl._core import trim
from ftprl.data import Batch, Position, Source
from ftprl.errors import InvalidInput
from ftprl.linear.engine import LossTotals, RowRefused
from ftprl.linear.model import Model
from ftprl.runlog.events import Event
from ftprl.training.checkpoint import Checkpoints
from ftprl.training.holdout import add_losses, held_out, only_scored
from ftprl.training.options import RunOptions
from ftprl.training.progress import ProgressMeter, loss_fields
from ftprl.training.refused import around_refused, located
from ftprl.training.run_state import RunState, TrainingHistory, minus, plus
from ftprl.training.schedule import Schedule, Stop

if TYPE_CHECKING:
    from ftprl.receipt.recorder import ReceiptRecorder

Listener = Callable[[Event], None]


def _recorder(model: Model, source: Source) -> tuple[ReceiptRecorder | None, Callable[[int], bool] | None]:
    """What keeps the receipt, and at which rows it has an entry; nothing is imported for a run without one."""
    if not model.engine.receipt:
        return None, None
    from ftprl.receipt.provenance import is_milestone
    from ftprl.receipt.recorder import ReceiptRecorder

    return ReceiptRecorder(model, source), is_milestone


@final
class Trainer:
    """Takes a model through a source: `run` to the end of the data, then `end` once the model is saved."""

    def __init__(self, model: Model, source: Source, options: RunOptions, listener: Listener) -> None:
        self.model, self.source, self.options = model, source, options
        self._listener = listener
        model.engine.retire = options.retire
        self._before = TrainingHistory.from_dict(model.history)
        self._checkpoints = Checkpoints(source, options)
        if model.checkpoint is None:
            totals = model.engine.progress
            self.state = RunState(totals, totals, self._before.holdout, source.start)
        else:
            self.state, model.checkpoint = self._checkpoints.resume(model.checkpoint), None
        self._meter = ProgressMeter(model, self.state)
        self._recorder, receipt_rows = _recorder(model, source)
        self._schedule = Schedule(options.checkpoint_rows, receipt_rows)
        self._clock = time.monotonic()

    # ---- results ----

    @property
    def bad_rows(self) -> int:
        """How many rows of the present pass were left out: by the reader, or because they cannot be learned."""
        return self.source.bad_rows + self.state.refused_rows

    @property
    def progressive(self) -> LossTotals:
        """The loss of the first pass of this run, each row before it was learned."""
        return minus(self.state.first_pass or self.model.engine.progress, self.state.run_start)

    @property
    def holdout(self) -> LossTotals:
        """The loss of the rows held out in the present pass."""
        return minus(self.state.holdout, self._before.holdout)

    # ---- the run ----

    def run(self) -> None:
        """Learn all that is left, and store in the model what it has read."""
        self._emit("resume" if self.state.rows else "start")
        try:
            if self._recorder is not None:
                self._recorder.start(self.options.passes)
            while self.state.passes_done < self.options.passes:
                self._pass()
            trim()  # saving needs memory of its own
            self.model.history = self._history().to_dict()
        except BaseException:
            if self._recorder is not None:
                self._recorder.close()
            raise
        if self._recorder is not None:
            o = self.options
            counts = {"rows": self.state.rows, "bad_rows": self.bad_rows}
            self._recorder.finish(passes=o.passes, holdout=o.holdout, retire=o.retire, **counts)

    def end(self) -> None:
        """Log that the run is complete."""
        held = loss_fields(self.holdout, "holdout") if self.options.holdout else {}
        entry = {} if self._recorder is None else self._recorder.summary()
        self._emit("end", **loss_fields(self.progressive), **held, bad_rows=self.bad_rows, **entry)

    def _pass(self) -> None:
        for batch, position in self.source.read(self.state.position, threads=self.options.threads):
            if self._recorder is not None:
                self._recorder.observe(batch, self.state.rows)
            self._learn_to_stops(batch, position)
            self._emit("tick", **self._meter.mean_losses())
            if self._checkpoints.is_due():
                self._save_checkpoint()
        self._emit("pass", **self._meter.pass_loss(), **loss_fields(self.holdout, "holdout"))
        self.state.end_pass(self.model.engine.progress, self.source)
        if self.state.passes_done < self.options.passes:
            self.state.start_another_pass(self._before.holdout)

    def _learn_to_stops(self, batch: Batch, position: Position) -> None:
        """Learn a batch, cut at the stops of the schedule."""
        at = 0
        while at < len(batch):
            stop = self._schedule.after(self.state.rows)
            end = min(len(batch), at + stop.row - self.state.rows)
            self._learn_accepted(batch[at:end], position)
            self.state.advance(end - at, position.after(end))
            if self.state.rows == stop.row:
                self._at_stop(stop)
            at = end

    def _learn_accepted(self, batch: Batch, position: Position) -> None:
        """Learn the rows that are not refused; the first that is refused is named by its place in the data."""

        def refuse(refusal: RowRefused) -> None:
            is_first = self.state.first_refusal is None
            self.state.refuse(located(refusal, self.source, position) if is_first else refusal)

        try:
            for _ in around_refused(batch, self._learn, refuse if self.source.skips_bad_rows else None):
                pass
        except RowRefused as refusal:
            raise located(refusal, self.source, position) from None

    def _at_stop(self, stop: Stop) -> None:
        if stop.progress:
            self._emit_progress(stop.receipt)
        if stop.checkpoint:
            self._save_checkpoint()

    def _learn(self, batch: Batch) -> None:
        """Learn the rows that are not held out, or none if one is refused."""
        scores, losses = np.empty((2, len(batch)))
        scales = self.model.engine.spec.scales
        if self.options.holdout is None:
            self.model.engine.learn(batch, scores=scores)
        else:
            held = held_out(batch, self.options.holdout, self._before.rows)
            baselines = np.empty((len(batch), 2))
            self.model.engine.learn(only_scored(batch, held), scores=scores, losses=losses, held=baselines)
            self.state.holdout = add_losses(self.state.holdout, losses[held], baselines[held], batch.weight[held])
        spec = self.model.engine.spec
        if spec.scales != scales:
            self._emit("retire", kept=list(spec.scales), retired=list(spec.retired))
        self.state.see_labels(batch.y)
        self._meter.see(batch[-1:], scores[-1])

    def _history(self) -> TrainingHistory:
        """What the model has read, with this run; refuses a run that learned nothing."""
        state, before, progressive = self.state, self._before, self.progressive
        if progressive.rows == 0 and state.holdout == before.holdout:
            raise InvalidInput(
                f"train needs rows with a label and a weight above 0, got none in {state.rows} rows; check label=.",
                option="label",
            )
        positive = self.model.reading.get("positive")
        if state.only_class == -1 and positive is not None:
            raise InvalidInput(f"positive= needs a label of the data, got {positive!r}, which no row has; fix it.")
        # What follows on the totals of the runs before is taken as it is: the sum could differ in the last bit.
        goes_on = before.progressive == state.run_start and state.first_pass is not None
        total = state.first_pass if goes_on else None
        rows = before.rows + state.rows // self.options.passes
        return TrainingHistory(
            rows, before.bad_rows + self.bad_rows, total or plus(before.progressive, progressive), state.holdout
        )

    def _save_checkpoint(self) -> None:
        if self._recorder is not None:
            self.model.provenance = self._recorder.provenance.to_dict()
        self._emit("checkpoint", path=self._checkpoints.write(self.model, self.state))

    # ---- events ----

    def _emit_progress(self, with_receipt: bool) -> None:
        held = loss_fields(self.holdout, "holdout") if self.options.holdout else {"holdout": None}
        entry = self._recorder.milestone(self.state.rows) if with_receipt and self._recorder is not None else {}
        self._emit("progress", **self._meter.losses(), **held, **entry, **self._meter.example())

    def _emit(self, kind: str, **fields: Any) -> None:
        number = min(self.state.passes_done + 1, self.options.passes)
        seconds = time.monotonic() - self._clock
        self._listener({"event": kind, "rows": self.state.rows, "pass": number, "seconds": seconds, **fields})
