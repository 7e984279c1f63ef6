"""What happens to the rows of a batch: rare features are removed, held-out rows scored, all others learned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch, Position
from ftprl.data.order import Due, Stage
from ftprl.linear.frozen import FrozenCheck
from ftprl.linear.model import Vector
from ftprl.linear.refusal import RowRefused
from ftprl.linear.spec import Spec
from ftprl.training.context import RunContext
from ftprl.training.delay import Waiting
from ftprl.training.holdout import add_losses, held_out, numbers_of, only_scored
from ftprl.training.predictions import Predictions
from ftprl.training.progress import ProgressMeter
from ftprl.training.refused import around_refused, located

Rows = NDArray[np.int64]


@final
class _Outcome(NamedTuple):
    """How rows were predicted before they were learned: losses, the numbers of the baseline, scores (or the last)."""

    losses: Vector
    baselines: Vector
    scores: Vector


@final
class RowLearner:
    """Passes the rows of a run to the engine, and how each was predicted to the monitor, the meter and the file."""

    def __init__(self, run: RunContext, predictions: Predictions | None, meter: ProgressMeter) -> None:
        self._run, self._predictions, self._meter = run, predictions, meter
        self._numbers: Vector = np.empty(0)  # for `_arrays`

    # ---- rows that arrive ----

    def arrived(self, batch: Batch, position: Position, known: int) -> Iterator[Batch]:
        """Yield rows that will be learned in another order, without those that are refused.

        Classes are numbered, names and their bounds kept in the order of the data. The names and refusals of the first
        `known` rows of the pass were kept before the run was interrupted.
        """
        run = self._run
        new = batch[max(0, known - batch.first_row) :]
        if len(new):
            self._add_names(new, run.before.rows + run.state.pass_rows + new.first_row)

        def refuse(refusal: RowRefused) -> None:
            if refusal.row >= known:
                self._refuse(refusal, position)

        def check(rows: Batch) -> Batch:
            rows = run.model.numbered(rows)
            run.model.engine.check_rows(rows)
            run.model.engine.meet_names(rows)
            return rows

        try:
            skips = run.source.skips_bad_rows
            yield from around_refused(batch, check, refuse if skips else None, run.model.engine.meet_names)
        except RowRefused as refusal:
            raise located(refusal, run.source, position) from None

    def _refuse(self, refusal: RowRefused, position: Position) -> None:
        """Count a row that cannot be learned, and keep the place of the first one."""
        state = self._run.state
        state.refuse(located(refusal, self._run.source, position) if state.first_refusal is None else refusal)

    def _add_names(self, rows: Batch, rows_before: int) -> None:
        """Keep the names of the features of rows; a thread adds them while rows are learned."""
        names = self._run.model.names
        if names is not None:
            names.add(rows, rows_before, background=self._run.options.threads != 0)

    # ---- rows that are due ----

    def learn(self, due: Due, position: Position, *, is_shown: bool) -> None:
        """Learn rows; those that are refused are named by their places in the data, which begin at `position`.

        `is_shown` is True if the last row will be part of a progress event.
        """
        if self._run.is_random:
            self._learn(self._admitted(due.batch, due.numbers), due.numbers, due.stage, is_shown=is_shown)
            return
        run = self._run
        self._add_names(due.batch, run.before.rows + run.state.rows)
        rows = self._admitted(due.batch, due.numbers)
        try:
            self._learn_in_order(rows, is_shown=is_shown)
        except RowRefused as refusal:
            if not run.source.skips_bad_rows:
                raise located(refusal, run.source, position) from None
            self._learn_around_refused(rows, position, is_shown=is_shown)

    def _learn_around_refused(self, batch: Batch, position: Position, *, is_shown: bool) -> None:
        """Learn all rows of a batch but those that are refused, of which there is at least one."""
        run = self._run

        def refuse(refusal: RowRefused) -> None:
            self._refuse(refusal, position)

        def learn(rows: Batch) -> None:
            self._learn_in_order(rows, is_shown=is_shown)

        for _ in around_refused(batch, learn, refuse, run.model.engine.meet_names):
            pass

    def learn_waiting(self) -> None:
        """At the end of a pass, learn the rows whose labels have not arrived."""
        if self._run.waiting is None:
            return
        for rows, expert_scores in self._run.waiting.rest():
            before = self._run.model.engine.spec
            self._run.model.engine.learn_late(rows, expert_scores, np.arange(len(rows)))
            self._log_dropped(before)

    # ---- rows that are only predicted ----

    def predicted(self, batch: Batch) -> tuple[Vector, Vector]:
        """Return the losses of rows and the numbers of the baseline, without learning them."""
        rows = only_scored(batch, np.arange(len(batch)))
        losses, baselines, _ = self._arrays(len(rows))
        self._run.model.engine.learn(rows, losses=losses, baselines=baselines, has_met=True)
        return losses.copy(), baselines.copy()

    def check_last_rows(self, batches: list[Batch]) -> FrozenCheck | None:
        """Predict the last rows of the data, none of which is learned, and compare them with those learned before."""
        run = self._run
        if math.isnan(run.state.compared.mean):  # all of those were held out
            return None
        parts = []
        for batch in batches:
            admission = run.model.admission
            rows = only_scored(batch, np.arange(len(batch)))
            rows = rows if admission is None else admission.admitted(rows, is_fixed=False)
            parts.append((*self.predicted(rows), batch.weight))
        losses, baselines, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
        return FrozenCheck.of_last_rows(losses, baselines, weight, run.state.compared)

    # ---- one batch ----

    def _admitted(self, batch: Batch, numbers: Rows) -> Batch:
        """The rows without the features that are too rare so far; later passes admit no others."""
        admission, every = self._run.model.admission, self._run.options.holdout
        if admission is None:
            return batch
        rows = batch if every is None else only_scored(batch, held_out(numbers, every, self._run.before.rows))
        chosen = admission.admitted(rows, is_fixed=self._run.state.passes_done > 0)
        return chosen.replaced(weight=batch.weight)

    def _learn_in_order(self, batch: Batch, *, is_shown: bool) -> None:
        """Learn rows in the order of the data, or none if one is refused."""
        self._learn(self._run.model.numbered(batch), numbers_of(batch), Stage.PASSING, is_shown=is_shown)

    def _learn(self, batch: Batch, numbers: Rows, stage: Stage, *, is_shown: bool) -> None:
        """Learn the rows that are not held out, or none if one is refused."""
        state = self._run.state
        held = self._run.held_out(numbers)
        rows = batch if held is None else only_scored(batch, held)
        before = self._run.model.engine.spec
        outcome = self._learned(rows, is_shown=is_shown)
        self._log_dropped(before)
        if held is not None:
            losses, baselines = outcome.losses[held], outcome.baselines[held]
            state.holdout = add_losses(state.holdout, losses, baselines, batch.weight[held])
        state.see_labels(batch.y)
        if len(outcome.scores):
            self._meter.see(batch, float(outcome.scores[-1]))
        if self._written is not None:
            self._written.add(batch, outcome.scores)
        if state.passes_done > 0:
            return
        if stage is Stage.COMPARED:
            met = rows.weight > 0.0
            state.compared.add((outcome.losses - outcome.baselines[:, 1])[met], rows.weight[met])
        if self._run.sample is not None:
            self._run.sample.see(rows, outcome.losses, outcome.baselines)

    def _log_dropped(self, before: Spec) -> None:
        """Log scales that were dropped since the settings were those of `before`."""
        spec = self._run.model.engine.spec
        if spec is not before and spec.scales != before.scales:
            self._run.emit("retire", kept=list(spec.scales), retired=list(spec.retired))

    @property
    def _written(self) -> Predictions | None:
        """The file of predictions, which is written in the first pass."""
        return self._predictions if self._run.state.passes_done == 0 else None

    def _learned(self, rows: Batch, *, is_shown: bool) -> _Outcome:
        """Learn rows, and pass to the monitor of the first pass how each was predicted."""
        run = self._run
        if run.waiting is not None:
            return self._learned_late(rows, run.waiting)
        monitor, engine, is_first_pass = run.state.monitor, run.model.engine, run.state.passes_done == 0
        losses, baselines, scores = self._arrays(len(rows))
        # Several scales need much less time for a loss than for a score: then that of the last row is enough, where
        # it is shown. A row that is refused is not shown: any row could be the last one before it.
        scores_all = monitor.needs_scores or self._written is not None or not engine.spec.several
        scores_last = not scores_all and (is_shown or (run.source.skips_bad_rows and not run.is_random))
        scores = scores[: len(rows) if scores_all else int(scores_last)]
        engine.learn(
            rows,
            scores=scores if scores_all else None,
            last_score=scores if scores_last else None,
            losses=losses,
            baselines=baselines,
            seen=run.keeps_mixture and not is_first_pass,
            has_met=run.is_random,
        )
        if is_first_pass:
            monitor.add(losses, baselines, scores if monitor.needs_scores else None, rows.y, rows.weight)
        return _Outcome(losses, baselines, scores)

    def _arrays(self, rows: int) -> _Outcome:
        """Arrays for the outcome of so many rows: the same memory for every batch, so that it is allocated once."""
        if len(self._numbers) < 4 * rows:
            self._numbers = np.empty(4 * rows)
        numbers = self._numbers
        losses, baselines, scores = numbers[:rows], numbers[rows : 3 * rows], numbers[3 * rows : 4 * rows]
        return _Outcome(losses, baselines.reshape(rows, 2), scores)

    def _learned_late(self, rows: Batch, waiting: Waiting) -> _Outcome:
        """Predict rows, and learn those whose labels arrive meanwhile; the losses are those of the predictions."""
        state, engine = self._run.state, self._run.model.engine
        engine.check_rows(rows)
        order = waiting.order(rows)
        count, arrivals = len(order.rows), order.arrivals
        losses, baselines, scores = np.empty(count), np.empty((count, 2)), np.empty(count)
        numbers = {"scores": scores, "losses": losses, "baselines": baselines}
        engine.learn_late(order.rows, order.expert_scores, order.expert_row, **numbers)
        waiting.keep(order, rows.first_row)
        outcome = _Outcome(losses[arrivals], baselines[arrivals], scores[arrivals])
        state.arrived = add_losses(state.totals(engine), outcome.losses, outcome.baselines, rows.weight)
        own_scores = outcome.scores if state.monitor.needs_scores else None
        state.monitor.add(outcome.losses, outcome.baselines, own_scores, rows.y, rows.weight)
        return outcome
