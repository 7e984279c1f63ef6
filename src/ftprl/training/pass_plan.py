"""How many passes a run makes: all that were asked for, or as many as held-out rows find best (docs/passes.md)."""

from __future__ import annotations

from typing import final

from ftprl.linear.derived import forgetful
from ftprl.linear.model import Model
from ftprl.training.context import RunContext
from ftprl.training.passes import HOLDOUT, best_pass, is_over, review
from ftprl.training.progress import ProgressMeter, loss_fields
from ftprl.training.run_state import ExpertWeights
from ftprl.training.signals import SignalHold


@final
class PassPlan:
    """Decides, at the end of each pass of a run, whether another one follows and what it does."""

    def __init__(self, run: RunContext, meter: ProgressMeter, signals: SignalHold) -> None:
        self._run, self._meter, self._signals = run, meter, signals

    @property
    def best(self) -> int | None:
        """The pass with the smallest held-out loss so far; None where passes are not compared."""
        return best_pass(self._run.state.reviews)

    def is_complete(self) -> bool:
        """Whether no pass is left."""
        state = self._run.state
        if state.relearn_passes:
            return state.passes_done >= len(state.reviews) + state.relearn_passes
        return self._is_compared() and self.best is None

    def _is_compared(self) -> bool:
        """Whether all passes are done that are to be compared."""
        state = self._run.state
        return state.passes_done >= self._run.options.passes or is_over(state.reviews)

    def end_pass(self) -> None:
        """After the last row of a pass: the held-out rows, and what comes next."""
        run, state = self._run, self._run.state
        if state.relearn_passes:
            state.end_pass(run.model.progress, run.source)
        else:
            weights = self._review() if run.compares_passes else None
            run.emit("pass", **self._meter.pass_loss(), **loss_fields(run.holdout, "holdout"))
            state.end_pass(state.totals(run.model.engine), run.source)
            if weights is not None:
                self._compare(weights)
        if not self.is_complete():
            state.start_another_pass(state.holdout if state.relearn_passes else run.before.holdout)

    def _review(self) -> ExpertWeights:
        """The weights of the experts by the held-out rows at the end of a pass; the state keeps the rows' loss."""
        run = self._run
        held, weights = review(
            run.model,
            run.source,
            run.options.holdout or HOLDOUT,
            run.before.rows,
            threads=run.options.threads,
            signals=self._signals,
        )
        run.state.holdout = run.before.holdout + held
        run.state.reviews.append(held)
        return weights

    def _compare(self, weights: ExpertWeights) -> None:
        """Keep the weights of the experts if the pass is the best so far; after the last one, start to relearn."""
        if self.best == self._run.state.passes_done:
            self._run.state.chosen = weights
        if self._is_compared() and self.best is not None:
            self._start_relearning(self.best)

    def _start_relearning(self, passes: int) -> None:
        """Forget what the scales have learned: they learn all rows in the best number of passes, mixed as was best."""
        run, model, state = self._run, self._run.model, self._run.state
        start = None if model.start is None else Model.from_bytes(model.start).engine
        model.engine, model.start = forgetful(model.engine, start), None
        assert state.chosen is not None
        model.engine.expert_weights = state.chosen
        state.relearn_passes, state.pass_start = passes, model.progress
        state.holdout = run.before.holdout + state.reviews[passes - 1]
        run.emit("relearn", passes=passes, compared=state.passes_done)
