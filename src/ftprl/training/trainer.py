"""One run over the data: each row is predicted, then learned, with progress, held-out rows, passes and checkpoints.

Everything a run logs or keeps happens at row numbers (`Schedule`), so that neither the cutting into batches nor the
number of threads can be seen in it. What is done with the rows of a batch is in `RowLearner`, how many passes there are
in `PassPlan`, and what is written on the way in `Checkpoints`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any, final

from ftprl._core import trim
from ftprl.data import Batch, Position, Source
from ftprl.data.order import GivenOrder, Order, RandomOrder, Stage
from ftprl.errors import BadModel, Interrupted
from ftprl.linear.model import Model
from ftprl.runlog.events import Listener
from ftprl.training import cautions
from ftprl.training.checkpoint import Checkpoints
from ftprl.training.context import RunContext
from ftprl.training.delay import Waiting
from ftprl.training.pass_plan import PassPlan
from ftprl.training.predictions import Predictions
from ftprl.training.progress import ProgressMeter, loss_fields, monitored_fields, rows_fields
from ftprl.training.row_learner import RowLearner
from ftprl.training.run_settings import RunSettings
from ftprl.training.schedule import Schedule, Stop
from ftprl.training.signals import SignalHold

if TYPE_CHECKING:
    from ftprl.receipt.recorder import ReceiptRecorder


def _recorder(model: Model, source: Source) -> tuple[ReceiptRecorder | None, Callable[[int], bool] | None]:
    """What keeps the receipt, and at which rows it has an entry; nothing is imported for a run without one."""
    if not model.receipt:
        return None, None
    from ftprl.receipt.provenance import is_milestone
    from ftprl.receipt.recorder import ReceiptRecorder

    return ReceiptRecorder(model, source), is_milestone


@final
class Trainer:
    """Takes a model through a source: `learn` to the end of the data, then `end` once the model is saved."""

    def __init__(self, model: Model, source: Source, options: RunSettings, listener: Listener) -> None:
        self._listener, self._clock = listener, time.monotonic()
        if options.threads is not None and options.engine == "local":
            model.engine.threads = max(1, options.threads)
        saved = model.checkpoint
        self.checkpoints = Checkpoints(source, options)
        waiting = Waiting(options.delay, width=model.engine.arrival_numbers) if options.delay else None
        self.run = run = RunContext.start(model, source, options, waiting, self.checkpoints, self._emit)
        self.signals = SignalHold()
        self.has_ended = False  # the model is saved
        self._arrived = 0  # rows of the pass that were read
        self.predictions = Predictions.of(options, model, source, run.state.rows, saved)
        self._meter = ProgressMeter(model, run.state)
        self._plan = PassPlan(run, self._meter, self.signals)
        self._rows = RowLearner(run, self.predictions, self._meter)
        self._recorder, receipt_rows = _recorder(model, source)
        self._schedule = Schedule(options.checkpoint_rows, receipt_rows)

    def learn(self) -> None:
        """Learn all that is left, and store in the model what it has read.

        A signal that arrives meanwhile stops it after a batch; one that arrives later waits until `signals` is left.
        """
        run = self.run
        self._emit("resume" if run.state.rows else "start")
        try:
            if self.predictions is not None:
                self.predictions.open()
            if self._recorder is not None:
                self._recorder.start(run.options.passes)
            self.signals.hold()
            while not self._plan.is_complete():
                self._pass()
            self._check_sample()
            trim()  # saving needs memory of its own
            run.model.history = run.history().to_dict()
        except BaseException:
            if self._recorder is not None:
                self._recorder.close()
            raise
        if self._recorder is not None:
            self._recorder.finish(run.options, rows=run.state.rows, bad_rows=run.bad_rows)
            history = run.model.history
            if again := list(cautions.of_known_data(run.model.provenance, run.source.files)):
                more = cautions.kept(history.get("cautions", {}), again, judges=False)
                run.model.history = {**history, "cautions": more}

    def end(self) -> None:
        """Log that the run is complete."""
        run = self.run
        held = loss_fields(run.holdout, "holdout") if run.options.holdout else {}
        entry = {} if self._recorder is None else self._recorder.summary()
        self.has_ended = True
        best = {"best_pass": self._plan.best} if run.compares_passes else {}
        fields = {**loss_fields(run.progressive), **held, **self._monitored(), **rows_fields(run)}
        self._emit("end", **fields, bad_rows=run.bad_rows, **best, **entry)

    def interrupted(self, interrupt: KeyboardInterrupt) -> Interrupted:
        """Save what was learned if that can be saved, and log it; returns the error to raise."""
        rows = self.run.state.rows
        if self.run.options.checkpoint is not None and not (self.signals.is_on or self._plan.is_complete()):
            self.signals.hold()
            if rows > self.checkpoints.saved_rows:
                self._save_checkpoint()
        number = getattr(interrupt, "signal", None) or self.signals.received or 2
        error = self.checkpoints.interruption(rows, number)
        fields = {"path": error.checkpoint, "lost": error.lost, "message": str(error)}
        self._emit("interrupted", signal=signal.Signals(number).name, **fields)
        return error

    # ---- passes, batches, stops ----

    def _pass(self) -> None:
        run, source, options = self.run, self.run.source, self.run.options
        order, start = self._order_of_pass()
        waits_for_data = not source.can_be_read_again  # perhaps for ever: a signal must not wait for it
        with closing(source.read(start, threads=options.threads, digest=options.needs_digest)) as reading:
            if waits_for_data:
                self.signals.release()
            for batch, position in reading:
                self.signals.hold()
                self._arrive(order, batch, position)
                self._learn_due(order)
                del batch  # its memory serves the next one
                self.signals.deliver()
                if waits_for_data:
                    self.signals.release()
            self.signals.hold()
        order.finish()
        self._learn_due(order)
        if self._passed_over:
            raise BadModel("a checkpoint needs the data that it was written for, got fewer rows; start anew.")
        if self.predictions is not None and run.state.passes_done == 0:
            self.predictions.end(run.state.rows)
        self._rows.learn_waiting()
        self._plan.end_pass()

    def _check_sample(self) -> None:
        """Predict a sample of the learned rows again with the model that is saved."""
        run, state = self.run, self.run.state
        if run.sample is not None and state.check is None:
            state.check = run.sample.check(lambda rows: self._rows.predicted(rows)[0])
        if state.check is not None and state.monitor.is_heavy:
            state.check = state.check.without_upper_end()

    def _order_of_pass(self) -> tuple[Order, Position]:
        """Return what puts the rows of this pass into their order, and the position from which the data is read.

        Rows that wait are not in a checkpoint: a run in random order that is resumed reads the data of the pass again
        from its start, and passes over the rows that it has learned.
        """
        run, options, start = self.run, self.run.options, self.run.source.start
        self._passed_over, self._known = 0, 0
        if not run.is_random:
            return GivenOrder(), run.state.position
        self._passed_over, self._known = run.state.rows - run.state.pass_rows, run.state.position.rows
        float64 = run.model.spec.float64
        return RandomOrder(options.order_seed, options.waiting, float64=float64), start

    def _arrive(self, order: Order, batch: Batch, position: Position) -> None:
        """Note rows that have arrived, and pass them to the order in which they will be learned."""
        if self._recorder is not None:
            self._recorder.observe(batch, self.run.state.rows)
        self._position, self._first, self._arrived = position, batch.first_row, batch.first_row + len(batch)
        self._end = position.after(len(batch))
        if not self.run.is_random:
            order.add(batch)
            return
        for rows in self._rows.arrived(batch, position, self._known):
            order.add(rows)
        if self._arrived > self._known:  # what was refused among these rows is in a checkpoint from here on
            self.run.state.position = self._end

    def _learn_due(self, order: Order) -> None:
        """Learn the rows that are due, cut at the stops of the schedule."""
        state, is_random = self.run.state, self.run.is_random
        while self._passed_over and (passed := order.take(self._passed_over)) is not None:
            self._passed_over -= len(passed.batch)
        while not self._passed_over:
            stop = self._schedule.after(state.rows)
            due = order.take(stop.row - state.rows)
            if due is None:
                break
            self._begin_stage(order, due.stage)
            is_reached = state.rows + len(due.batch) == stop.row
            self._rows.learn(due, self._position, is_shown=stop.progress and is_reached)
            end = self._end if is_random else self._position.after(int(due.numbers[-1]) + 1 - self._first)
            state.advance(len(due.batch), end)
            if is_reached:
                self._at_stop(stop)
            if is_random:  # many more rows may be due than have just arrived
                self._after_rows()
                self.signals.deliver()
                self.signals.hold()
        self._after_rows()

    def _after_rows(self) -> None:
        """Report how far the run is, and write a checkpoint if it is time for one."""
        self._emit("tick", read=self._arrived, **self._meter.mean_losses())
        if self.checkpoints.is_due():
            self._save_checkpoint()

    def _begin_stage(self, order: Order, stage: Stage) -> None:
        """In the first pass, predict the last rows before any is learned, and begin the intervals anew at last."""
        state = self.run.state
        if stage is Stage.PASSING or state.passes_done > 0:
            return
        if stage >= Stage.THIRD_QUARTER and state.check is None and (last := order.checked()):
            state.check = self._rows.check_last_rows(last)
        if stage is Stage.LAST_QUARTER and state.quarter is None:
            state.quarter, state.has_overflowed = state.totals(self.run.model.engine), order.has_overflowed
            state.monitor.restart()

    def _at_stop(self, stop: Stop) -> None:
        if stop.progress:
            self._emit_progress(stop)
        if stop.checkpoint:
            self._save_checkpoint()

    def _save_checkpoint(self) -> None:
        if self._recorder is not None:
            self.run.model.provenance = self._recorder.provenance.to_dict()
        kind, fields = self.checkpoints.save(self.run.model, self.run.state, self.predictions, self.run.tensors())
        self._emit(kind, **fields)

    # ---- events ----

    def _emit_progress(self, stop: Stop) -> None:
        held = loss_fields(self.run.holdout, "holdout") if self.run.options.holdout else {"holdout": None}
        entry = self._recorder.milestone(self.run.state.rows) if stop.receipt and self._recorder is not None else {}
        monitored = self._monitored() if stop.doubled else {}  # takes too long for every stop
        self._emit("progress", **self._meter.losses(), **held, **monitored, **entry, **self._meter.example())

    def _monitored(self) -> dict[str, Any]:
        return monitored_fields(self.run.state.monitor, is_random=self.run.is_random)

    def _emit(self, kind: str, **fields: Any) -> None:
        rows, number = self.run.state.rows, self.run.state.passes_done + (not self._plan.is_complete())
        seconds = time.monotonic() - self._clock
        self._listener({"event": kind, "rows": rows, "pass": number, "seconds": seconds, **fields})
