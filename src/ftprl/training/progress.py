"""What a progress event reports: mean losses, and the last row with its prediction before it was learned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

from ftprl.data import Batch
from ftprl.linear.model import Model
from ftprl.linear.totals import LossTotals
from ftprl.training.run_state import RunState

if TYPE_CHECKING:
    from ftprl.confidence import RunMonitor
    from ftprl.training.context import RunContext


def loss_fields(totals: LossTotals, name: str = "loss") -> dict[str, float]:
    """The mean loss, the baseline's, and the improvement in percent, as an event has them.

    >>> list(loss_fields(LossTotals(1.0, 2.0, 2, 4.0))), list(loss_fields(LossTotals(1.0, 2.0, 2, 4.0), "holdout"))
    (['loss', 'baseline', 'improvement'], ['holdout', 'holdout_baseline', 'holdout_improvement'])
    """
    prefix = "" if name == "loss" else f"{name}_"
    return {
        name: totals.mean,
        f"{prefix}baseline": totals.baseline_mean,
        f"{prefix}improvement": totals.improvement,
    }


def monitored_fields(monitor: RunMonitor, *, is_random: bool) -> dict[str, Any]:
    """Return what to expect of rows to come, null before the first row, and the residuals of a regression run."""
    confidence, residuals = monitor.confidence(is_random=is_random), monitor.residuals()
    fields = {"confidence": None if confidence is None else confidence.to_dict()}
    return fields if residuals is None else {**fields, "residuals": residuals.to_dict()}


def rows_fields(run: RunContext) -> dict[str, Any]:
    """Return the order of the rows of a run that is over, what is known of its saved model, and its warnings."""
    drawn, check = run.last_drawn, run.state.check
    goes_on = bool(run.before.monitor) and not (run.is_random or run.state.is_partial)
    rows = run.before.rows + run.state.rows // max(1, run.state.passes_done)
    return {
        **({"rows_of_runs": rows} if goes_on else {}),
        "order": run.options.order_of_rows,
        "sample": None if drawn is None else {"rows": drawn.rows, **loss_fields(drawn)},
        "check": None if check is None else check.to_dict(),
        "warnings": [one.text for one in run.cautions()],
    }


@final
class ProgressMeter:
    """Measures the loss of a model since the start of a pass and since the last progress event."""

    def __init__(self, model: Model, state: RunState) -> None:
        self._model, self._state = model, state
        self._last = state.totals(model.engine)
        self._row: tuple[float, int] | None = None  # label and number of features of the last row
        self._score = math.nan

    def see(self, rows: Batch, score: float) -> None:
        """Rows were met, of which the last had this score before it was learned."""
        self._row, self._score = (float(rows.y[-1]), int(rows.indptr[-1] - rows.indptr[-2])), score

    def pass_loss(self) -> dict[str, float]:
        """The mean loss of this pass and its baseline."""
        return loss_fields(self._state.totals(self._model.engine) - self._state.pass_start)

    def mean_losses(self) -> dict[str, float]:
        """The mean loss of this pass, and that of the rows since the last progress, with their baselines."""
        return self._mean_losses(self._state.totals(self._model.engine))

    def _mean_losses(self, now: LossTotals) -> dict[str, float]:
        in_pass, since = now - self._state.pass_start, now - self._last
        return {**loss_fields(in_pass), **loss_fields(since, "since")}

    def losses(self) -> dict[str, float]:
        """The mean losses and the weights they are means of; from here on `since` starts anew."""
        now = self._state.totals(self._model.engine)
        fields, self._last = self._mean_losses(now), now
        fields["weight"] = now.weight - self._state.run_start.weight
        fields["pass_weight"] = now.weight - self._state.pass_start.weight
        return fields

    def _shown(self, value: float, *, is_score: bool = False) -> float | str:
        """A label or a score as an event has it: with several classes both are the number of a class."""
        if self._model.class_table is not None:
            return self._model.class_table.label(value)
        return self._model.spec.scalar_loss().mean_of(value) if is_score else value

    def example(self) -> dict[str, Any]:
        """The last row that was learned or held out, and the mixture behind its prediction."""
        fields: dict[str, Any] = {}
        if self._row is not None:
            label, count = self._row
            fields["label"] = self._shown(label)
            fields["prediction"] = self._shown(self._score, is_score=True)
            fields["features"] = count
        mixture = self._model.mixture
        return fields if mixture is None else {**fields, "mixture": mixture.to_dict()}
