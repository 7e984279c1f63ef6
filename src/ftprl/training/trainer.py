"""One run over the data: each row is predicted, then learned, with progress, held-out rows, passes and checkpoints.

Everything a run logs or keeps happens at row numbers (`Schedule`), so that neither the cutting into batches nor the
number of threads can be seen in it.
"""

from __future__ import annotations

import signal
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import trim
from ftprl.confidence import RunMonitor
from ftprl.data import Batch, Position, Source
from ftprl.errors import FtprlError, Interrupted, InvalidInput
from ftprl.linear import rounds
from ftprl.linear.model import Model, Vector
from ftprl.linear.refusal import RowRefused
from ftprl.linear.relearn import forgetful
from ftprl.linear.round_buffer import JoinedPosition, RoundBuffer
from ftprl.linear.totals import LossTotals
from ftprl.runlog.events import Event
from ftprl.training.checkpoint import Checkpoints
from ftprl.training.delay import Waiting, has_delay_column, waiting_of
from ftprl.training.holdout import add_losses, held_out, only_scored
from ftprl.training.options import RunOptions
from ftprl.training.passes import HOLDOUT, best_pass, check_chosen, is_over, review
from ftprl.training.predictions import Predictions
from ftprl.training.progress import ProgressMeter, confidence_fields, loss_fields, residual_fields
from ftprl.training.refused import around_refused, located
from ftprl.training.run_state import ExpertWeights, RunState, TrainingHistory, minus, plus
from ftprl.training.schedule import Schedule, Stop
from ftprl.training.signals import SignalHold

if TYPE_CHECKING:
    from ftprl.confidence import ResidualSummary, RunConfidence
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
class _Outcome(NamedTuple):
    """How rows were predicted before they were learned: losses, the numbers of the baseline, scores (or the last)."""

    losses: Vector
    baselines: Vector
    scores: Vector


@final
class Trainer:
    """Takes a model through a source: `run` to the end of the data, then `end` once the model is saved."""

    def __init__(self, model: Model, source: Source, options: RunOptions, listener: Listener) -> None:
        self.model, self.source, self.options = model, source, options
        self._listener = listener
        model.engine.retire = options.retire
        self._before = TrainingHistory.from_dict(model.history)
        self._checkpoints = Checkpoints(source, options)
        # With a receipt all passes are one stream, in which the mixture learns from every row: so its bound holds.
        self._is_mixture_kept = options.passes > 1 and not model.engine.receipt
        self._is_reviewed = self._is_mixture_kept and options.holdout is not None
        monitor = RunMonitor(model.engine.spec.loss, self._before.monitor)
        saved = model.checkpoint
        self._waiting = waiting_of(source, options.delay, options.delay_memory, model.engine.arrival_numbers)
        if model.checkpoint is None:
            totals = model.engine.progress
            is_partial = self._before.rows > 0 and not self._before.monitor
            self.state = RunState(totals, totals, self._before.holdout, source.start, monitor, is_partial)
            self.state.arrived = None if self._waiting is None else totals
            if self._is_reviewed and totals.rows:  # in the end, the run begins once more from here
                model.start = model.to_bytes(names=False)
        else:
            self.state, model.checkpoint = self._checkpoints.resume(model.checkpoint, monitor), None
            check_chosen(self.state.chosen, model.engine)
            if self._waiting is not None:
                self._waiting.restore(model.waiting, model.engine.spec.dim, self.state.rows)
            model.waiting = {}
        self._predictions = Predictions.of(options, model, source, self.state.rows, saved)
        self._meter = ProgressMeter(model, self.state)
        self._recorder, receipt_rows = _recorder(model, source)
        self._schedule = Schedule(options.checkpoint_rows, receipt_rows)
        self._rounds: RoundBuffer | None = None
        if model.engine.spec.round_rows > 1:
            self._rounds = RoundBuffer(
                model.engine.spec.round_rows, lambda: self.model.engine.progress.rows, self._learns, self._refused
            )
        self.signals = SignalHold()
        self.failed_checkpoints = 0
        self.checkpoint_error: str | None = None  # of the first that failed
        self.has_ended = False  # the model is saved
        self._numbers: Vector = np.empty(0)  # for `_arrays`
        self._is_shown = False  # whether the last of the rows that are being learned is shown in a progress event
        self._saved_rows = self.state.rows  # that a file has: a checkpoint, or the model that is resumed
        self._clock = time.monotonic()

    # ---- results ----

    @property
    def bad_rows(self) -> int:
        """How many rows of the present pass were left out: by the reader, or because they cannot be learned."""
        return self.source.bad_rows + self.state.refused_rows

    @property
    def progressive(self) -> LossTotals:
        """The loss of the first pass of this run, each row before it was learned."""
        return minus(self.state.first_pass or self.state.totals(self.model.engine), self.state.run_start)

    @property
    def holdout(self) -> LossTotals:
        """The loss of the rows held out in the present pass."""
        return minus(self.state.holdout, self._before.holdout)

    @property
    def confidence(self) -> RunConfidence | None:
        """What to expect of rows to come, from the first pass of this run and of those before; None before a row."""
        return self.state.monitor.confidence()

    @property
    def residuals(self) -> ResidualSummary | None:
        """How far labels were from their predictions in the first pass; None for two classes."""
        return self.state.monitor.residuals()

    # ---- the run ----

    def run(self) -> None:
        """Learn all that is left, and store in the model what it has read.

        A signal that arrives meanwhile stops it after a batch; one that arrives later waits until `signals` is left.
        """
        self._emit("resume" if self.state.rows else "start")
        try:
            if self._predictions is not None:
                self._predictions.open()
            if self._recorder is not None:
                self._recorder.start(self.options.passes)
            self.signals.hold()
            while not self._is_complete():
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
        self.has_ended = True
        best = {"best_pass": self._best} if self._is_reviewed else {}
        known = {**confidence_fields(self.confidence), **residual_fields(self.residuals)}
        self._emit("end", **loss_fields(self.progressive), **held, **known, bad_rows=self.bad_rows, **best, **entry)

    def complete_predictions(self) -> None:
        """Put the file of predictions, if there is one, in its place."""
        if self._predictions is not None:
            self._predictions.complete()

    def close(self) -> None:
        """Close the file of predictions; one that is not complete is not left in its place."""
        if self._predictions is not None:
            self._predictions.close()

    def _is_complete(self) -> bool:
        done, passes = self.state.passes_done, self.state.relearn_passes
        return done >= len(self.state.reviews) + passes if passes else self._is_compared() and self._best is None

    def _is_compared(self) -> bool:
        """Whether all passes are done that are to be compared."""
        return self.state.passes_done >= self.options.passes or is_over(self.state.reviews)

    @property
    def _best(self) -> int | None:
        return best_pass(self.state.reviews)

    def _pass(self) -> None:
        waits_for_data = not self.source.can_be_read_again  # perhaps for ever: a signal must not wait for it
        start, options = self.state.position, self.options
        with closing(self.source.read(start, threads=options.threads, digest=options.needs_digest)) as reading:
            if waits_for_data:
                self.signals.release()
            whole = reading if self._rounds is None else self._rounds.whole(self._received(reading))
            for batch, position in whole:
                self.signals.hold()
                self._learn_batch(batch, position)
                self.signals.deliver()
                if waits_for_data:
                    self.signals.release()
            self.signals.hold()
        if self._predictions is not None and self.state.passes_done == 0:
            self._predictions.end(self.state.rows)
        if self._waiting is not None:
            for rows, said in self._waiting.rest():
                with self._retirement():
                    self.model.engine.learn_late(rows, said, np.arange(len(rows)))
        self._end_pass()

    def _received(self, reading: Iterator[tuple[Batch, Position]]) -> Iterator[tuple[Batch, Position]]:
        """What a source reads, with the entries of rows where they are learned."""
        for batch, position in reading:
            yield self.model.engine.received(batch), position

    def _end_pass(self) -> None:
        """After the last row of a pass: the held-out rows, and what comes next."""
        if self.state.relearn_passes:
            self.state.end_pass(self.model.engine.progress, self.source)
        else:
            weights = self._review() if self._is_reviewed else None
            self._emit("pass", **self._meter.pass_loss(), **loss_fields(self.holdout, "holdout"))
            self.state.end_pass(self.state.totals(self.model.engine), self.source)
            if weights is not None:
                self._compare(weights)
        if not self._is_complete():
            self.state.start_another_pass(self.state.holdout if self.state.relearn_passes else self._before.holdout)

    def _review(self) -> ExpertWeights:
        """How the experts are weighed at the end of a pass, by the held-out rows, whose loss is kept in the state."""
        held, weights = review(
            self.model,
            self.source,
            self.options.holdout or HOLDOUT,
            self._before.rows,
            threads=self.options.threads,
            signals=self.signals,
        )
        self.state.holdout = plus(self._before.holdout, held)
        self.state.reviews.append(held)
        return weights

    def _compare(self, weights: ExpertWeights) -> None:
        """Take note of the weights of the experts if a pass is the best so far; after the last one, go to the end."""
        if self._best == self.state.passes_done:
            self.state.chosen = weights
        if self._is_compared() and self._best is not None:
            self._start_relearning(self._best)

    def _start_relearning(self, passes: int) -> None:
        """Forget what the scales have learned: they learn all rows in the best number of passes, mixed as was best."""
        model, state = self.model, self.state
        start = None if model.start is None else Model.from_bytes(model.start).engine
        model.engine, model.start = model.engine.renewed(forgetful(model.engine, start)), None
        assert state.chosen is not None
        model.engine.expert_weights = state.chosen
        state.relearn_passes, state.pass_start = passes, model.engine.progress
        state.holdout = plus(self._before.holdout, state.reviews[passes - 1])
        self._emit("relearn", passes=passes, compared=state.passes_done)

    def _learn_batch(self, batch: Batch, position: Position) -> None:
        if self._recorder is not None:
            engine = self.model.engine
            self._recorder.observe(engine.entries_here(batch) if engine.learns_here else batch, self.state.rows)
        self._learn_to_stops(batch, position)
        self._emit("tick", **self._meter.mean_losses())
        if self._checkpoints.is_due():
            self._save_checkpoint()

    def _learn_to_stops(self, batch: Batch, position: Position) -> None:
        """Learn a batch, cut at the stops of the schedule; a round of several rows with a stop is learned first."""
        at = 0
        ends = None if self._rounds is None else [*self._rounds.ends(batch), len(batch)]
        while at < len(batch):
            stop = self._schedule.after(self.state.rows)
            end = min(len(batch), at + stop.row - self.state.rows)
            if ends is not None:
                end = ends[bisect_left(ends, end)]
            self._is_shown = stop.progress and self.state.rows + end - at >= stop.row
            self._learn_accepted(self._admitted(batch[at:end]), position)
            self._add_names(batch, position, at, end)
            self.state.advance(end - at, position.after(end))
            reached = stop.row
            while reached < self.state.rows and (later := self._schedule.after(reached)).row <= self.state.rows:
                stop, reached = stop.merged(later), later.row
            if self.state.rows >= stop.row:
                self._at_stop(stop)
            at = end

    def _learns(self, batch: Batch) -> NDArray[np.bool_]:
        """Which rows are learned unless they are refused."""
        rows = rounds.learns(batch)
        every = None if self.state.relearn_passes else self.options.holdout
        if every is not None:
            rows[held_out(batch, every, self._before.rows, compares=self._is_reviewed)] = False
        return rows

    def _refused(self, batch: Batch) -> list[int]:
        """Which rows will be refused."""
        found, start = [], 0
        while start < len(batch):
            try:
                self.model.engine.check_rows(batch[start:])
                break
            except RowRefused as refusal:
                found.append(refusal.row - batch.first_row)
                start = found[-1] + 1
        return found

    def _add_names(self, batch: Batch, position: Position, first: int, last: int) -> None:
        """Keep the names of the features of some rows of a batch, which are about to be counted."""
        if self.model.names is None:
            return
        before = self._before.rows + self.state.rows
        parts = position.parts(first, last) if isinstance(position, JoinedPosition) else [batch[first:last]]
        for rows in parts:
            self.model.names.add(rows, before)
            before += len(rows)

    def _admitted(self, batch: Batch) -> Batch:
        """The rows without the features that are too rare so far; later passes admit no others."""
        admission, every = self.model.admission, self.options.holdout
        if admission is None:
            return batch
        rows = batch if every is None else only_scored(batch, held_out(batch, every, self._before.rows))
        first_row = self._before.rows + batch.first_row
        chosen = admission.admitted(rows, first_row, is_fixed=self.state.passes_done > 0)
        return chosen.replaced(weight=batch.weight)

    def _learn_accepted(self, batch: Batch, position: Position) -> None:
        """Learn the rows that are not refused; the first that is refused is named by its place in the data."""

        def refuse(refusal: RowRefused) -> None:
            is_first = self.state.first_refusal is None
            self.state.refuse(located(refusal, self.source, position) if is_first else refusal)

        try:
            for _ in around_refused(
                batch,
                self._learn,
                refuse if self.source.skips_bad_rows else None,
                self.model.engine.meet_names,
            ):
                pass
        except RowRefused as refusal:
            raise located(refusal, self.source, position) from None

    def _at_stop(self, stop: Stop) -> None:
        if stop.progress:
            self._emit_progress(stop)
        if stop.checkpoint:
            self._save_checkpoint()

    def _learn(self, batch: Batch) -> None:
        """Learn the rows that are not held out, or none if one is refused."""
        batch = self.model.numbered(batch)
        every = None if self.state.relearn_passes else self.options.holdout
        held = None if every is None else held_out(batch, every, self._before.rows, compares=self._is_reviewed)
        rows = batch if held is None else only_scored(batch, held)
        with self._retirement():
            outcome = self._learned(rows)
        if held is not None:
            losses, baselines = outcome.losses[held], outcome.baselines[held]
            self.state.holdout = add_losses(self.state.holdout, losses, baselines, batch.weight[held])
        self.state.see_labels(batch.y)
        if len(outcome.scores):
            self._meter.see(batch[-1:], float(outcome.scores[-1]))
        if self._written is not None:
            self._written.add(batch, outcome.scores)

    @contextmanager
    def _retirement(self) -> Iterator[None]:
        """Log scales that are dropped while rows are learned."""
        scales = self.model.engine.spec.scales
        yield
        spec = self.model.engine.spec
        if spec.scales != scales:
            self._emit("retire", kept=list(spec.scales), retired=list(spec.retired))

    @property
    def _written(self) -> Predictions | None:
        """The file of predictions, which is written in the first pass."""
        return self._predictions if self.state.passes_done == 0 else None

    def _learned(self, rows: Batch) -> _Outcome:
        """Learn rows, and let the monitor of the first pass see how each was predicted."""
        if self._waiting is not None:
            return self._learned_late(rows, self._waiting)
        monitor, is_first_pass = self.state.monitor, self.state.passes_done == 0
        losses, baselines, scores = self._arrays(len(rows))
        # Several scales need much less time for a loss than for a score: then that of the last row is enough, where
        # it is shown. A row that is refused is not shown: any row could be the last one before it.
        scores_all = monitor.needs_scores or self._written is not None or not self.model.engine.spec.several
        scores_last = not scores_all and (self._is_shown or self.source.skips_bad_rows)
        scores = scores[: len(rows) if scores_all else int(scores_last)]
        self.model.engine.learn(
            rows,
            scores=scores if scores_all else None,
            last_score=scores if scores_last else None,
            losses=losses,
            baselines=baselines,
            seen=self._is_mixture_kept and not is_first_pass,
        )
        if is_first_pass:
            monitor.add(losses, baselines, scores if monitor.needs_scores else None, rows.y, rows.weight)
        return _Outcome(losses, baselines, scores)

    def _arrays(self, rows: int) -> _Outcome:
        """Room for how so many rows are predicted: the same memory for every batch, which the system has given once."""
        if len(self._numbers) < 4 * rows:
            self._numbers = np.empty(4 * rows)
        losses, baselines, scores = np.split(self._numbers[: 4 * rows], [rows, 3 * rows])
        return _Outcome(losses, baselines.reshape(rows, 2), scores)

    def _learned_late(self, rows: Batch, waiting: Waiting) -> _Outcome:
        """Predict rows, and learn those whose labels arrive meanwhile; the losses are those of the predictions."""
        monitor = self.state.monitor
        self.model.engine.check_rows(rows)
        order = waiting.order(rows)
        count, arrivals = len(order.rows), order.arrivals
        losses, baselines, scores = np.empty(count), np.empty((count, 2)), np.empty(count)
        numbers = {"scores": scores, "losses": losses, "baselines": baselines}
        self.model.engine.learn_late(order.rows, order.said, order.said_by, **numbers)
        waiting.keep(order, rows.first_row)
        outcome = _Outcome(losses[arrivals], baselines[arrivals], scores[arrivals])
        totals = self.state.totals(self.model.engine)
        self.state.arrived = add_losses(totals, outcome.losses, outcome.baselines, rows.weight)
        own_scores = outcome.scores if monitor.needs_scores else None
        monitor.add(outcome.losses, outcome.baselines, own_scores, rows.y, rows.weight)
        return outcome

    def _history(self) -> TrainingHistory:
        """What the model has read, with this run; refuses a run that learned nothing."""
        state, before, progressive = self.state, self._before, self.progressive
        if progressive.rows == 0 and state.holdout == before.holdout:
            remedy = "check label=" if self.source.describe().columns else "give each row a label"
            remedy = remedy if state.rows else "check the file"
            raise InvalidInput(
                f"data needs rows with a label and a weight above 0, got none in {state.rows} rows; {remedy}.",
                option="label",
            )
        positive = self.model.reading.get("positive")
        if state.only_class == -1 and positive is not None:
            raise InvalidInput(
                f"positive= needs a label of the data, got {positive!r}, which no row has; pass one that is there."
            )
        # What follows on the totals of the runs before is taken as it is: the sum could differ in the last bit.
        goes_on = before.progressive == state.run_start and state.first_pass is not None
        total = state.first_pass if goes_on else None
        rows = before.rows + state.rows // max(1, state.passes_done)
        own_delay = "column" if has_delay_column(self.source) else self.options.delay
        delay = before.delay if own_delay is None else own_delay
        return TrainingHistory(
            rows,
            before.bad_rows + self.bad_rows,
            total or plus(before.progressive, progressive),
            state.holdout,
            () if state.is_partial else tuple(state.monitor.numbers),
            delay,
        )

    def _save_checkpoint(self) -> None:
        """Write a checkpoint; if that fails the last one stays, and the run goes on."""
        if self._recorder is not None:
            self.model.provenance = self._recorder.provenance.to_dict()
        try:
            lines = None if self._predictions is None else self._predictions.save(self.state)
            path = self._checkpoints.write(self.model, self.state, lines, self._waiting)
        except (OSError, FtprlError) as error:
            self._fail_checkpoint(error)
            return
        self._saved_rows = self.state.rows
        self._emit("checkpoint", path=path)

    def _fail_checkpoint(self, error: OSError | FtprlError) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        path = self.options.checkpoint
        message = f"{path}: the checkpoint after {self.state.rows} rows could not be written: {reason}"
        message += f"; the last one, after {self._saved_rows} rows, is kept" if self._saved_rows else ""
        self.failed_checkpoints += 1
        self.checkpoint_error = self.checkpoint_error or message
        self._emit("checkpoint_failed", path=path, message=message)

    # ---- interrupts ----

    def interrupted(self, interrupt: KeyboardInterrupt) -> Interrupted:
        """Save what was learned if that can be saved, and log it; returns the error to raise."""
        if self.options.checkpoint is not None and not (self.signals.is_on or self._is_complete()):
            self.signals.hold()
            if self.state.rows > self._saved_rows:
                self._save_checkpoint()
        path = self.options.checkpoint if 0 < self._saved_rows == self.state.rows else None
        lost = self.state.rows - self._saved_rows
        number = getattr(interrupt, "signal", None) or self.signals.received or 2
        error = Interrupted(
            _what_is_kept(self.state.rows, lost, path, self.checkpoint_error),
            signal=number,
            rows=self.state.rows,
            lost=lost,
            checkpoint=path,
            option=("checkpoint", "resume"),
        )
        self._emit("interrupted", signal=signal.Signals(number).name, path=path, lost=lost, message=str(error))
        return error

    # ---- events ----

    def _emit_progress(self, stop: Stop) -> None:
        held = loss_fields(self.holdout, "holdout") if self.options.holdout else {"holdout": None}
        entry = self._recorder.milestone(self.state.rows) if stop.receipt and self._recorder is not None else {}
        # At other rows it would take too much time.
        known = {**confidence_fields(self.confidence), **residual_fields(self.residuals)} if stop.doubled else {}
        self._emit("progress", **self._meter.losses(), **held, **known, **entry, **self._meter.example())

    def _emit(self, kind: str, **fields: Any) -> None:
        number = self.state.passes_done + (0 if self._is_complete() else 1)
        seconds = time.monotonic() - self._clock
        self._listener({"event": kind, "rows": self.state.rows, "pass": number, "seconds": seconds, **fields})


def _what_is_kept(rows: int, lost: int, path: str | None, checkpoint_error: str | None) -> str:
    """One line about a run that was interrupted."""
    text = f"interrupted after {rows} rows"
    if rows == 0:
        return f"{text}; nothing was learned or written"
    if path is not None and not lost:
        return f"{text}, all of them saved; go on with resume={path}"
    if not lost:
        return f"{text}; no row was learned since it was resumed"
    if checkpoint_error is not None:
        return f"{text}, of which {lost} are lost: {checkpoint_error}"
    return f"{text}, of which {lost} are lost; pass checkpoint= to save them the next time"
