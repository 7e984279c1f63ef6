"""What the parts of a run share: the model, the data, the options, how far the run has come, and where events go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.confidence import RunMonitor
from ftprl.data import Source
from ftprl.data.files import STDIN, shown
from ftprl.errors import InvalidInput
from ftprl.linear.model import Model
from ftprl.linear.totals import ENOUGH_ROWS, LossTotals
from ftprl.runlog.rows import Caution
from ftprl.training import cautions
from ftprl.training.delay import Waiting
from ftprl.training.holdout import held_out
from ftprl.training.passes import check_chosen
from ftprl.training.run_settings import RunSettings
from ftprl.training.run_state import RunState, TrainingHistory
from ftprl.training.sample import LearnedSample

if TYPE_CHECKING:
    from ftprl.training.checkpoint import Checkpoints


@final
@dataclass(slots=True, eq=False)
class RunContext:
    """One run: `before` is what the model had read when it began, `emit(kind, **fields)` logs an event."""

    model: Model
    source: Source
    options: RunSettings
    before: TrainingHistory
    state: RunState
    waiting: Waiting | None
    emit: Callable[..., None]
    sample: LearnedSample | None = None

    @classmethod
    def start(
        cls,
        model: Model,
        source: Source,
        options: RunSettings,
        waiting: Waiting | None,
        checkpoints: Checkpoints,
        emit: Callable[..., None],
    ) -> RunContext:
        """A new run, or the one that the model is a checkpoint of."""
        before = TrainingHistory.from_dict(model.history)
        if (before.order or {}).get("order", options.order) != options.order:
            before = before._replace(monitor=())  # intervals of rows in one order say nothing of the other
        monitor = RunMonitor(model.spec.loss, before.monitor)
        saved, model.checkpoint = model.checkpoint, None
        if saved is not None:
            state = checkpoints.resume(saved, monitor)
            check_chosen(state.chosen, model.engine)
            run = cls(model, source, options, before, state, waiting, emit, _sample(options))
            for rows in (waiting, run.sample):
                if rows is not None:
                    rows.restore(model.waiting, model.spec.dim, state.rows)
            model.waiting = {}
            return run
        totals = model.progress
        is_partial = before.rows > 0 and not model.history.get("monitor")
        state = RunState(totals, totals, before.holdout, source.start, monitor, is_partial)
        state.arrived = None if waiting is None else totals
        state.data_cautions = cautions.kept({}, cautions.of_columns(source.describe().to_dict()), judges=True)
        run = cls(model, source, options, before, state, waiting, emit, _sample(options))
        if run.compares_passes and totals.rows:  # in the end, the run begins once more from here
            model.start = model.to_bytes(names=False)
        return run

    @property
    def is_random(self) -> bool:
        """Whether rows are learned in random order."""
        return self.options.order == "random"

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the rows that a checkpoint keeps."""
        parts = [rows.tensors() for rows in (self.waiting, self.sample) if rows is not None]
        return {name: array for part in parts for name, array in part.items()}

    @property
    def keeps_mixture(self) -> bool:
        """Whether the mixture learns from no row after the first pass.

        With a receipt all passes are one stream, in which the mixture learns from every row: so its bound holds.
        """
        return self.options.passes > 1 and not self.model.receipt

    @property
    def compares_passes(self) -> bool:
        """Whether held-out rows decide how many passes are best."""
        return self.keeps_mixture and self.options.holdout is not None

    def held_out(self, numbers: NDArray[np.int64]) -> NDArray[np.intp] | None:
        """Which rows, by their numbers in the data, are held out; None where all rows are learned."""
        every = None if self.state.relearn_passes else self.options.holdout
        return None if every is None else held_out(numbers, every, self.before.rows, compares=self.compares_passes)

    # ---- results ----

    @property
    def bad_rows(self) -> int:
        """How many rows of the present pass were left out: by the reader, or because they cannot be learned."""
        return self.source.bad_rows + self.state.refused_rows

    @property
    def progressive(self) -> LossTotals:
        """The loss of the first pass of this run, each row before it was learned."""
        return (self.state.first_pass or self.state.totals(self.model.engine)) - self.state.run_start

    @property
    def holdout(self) -> LossTotals:
        """The loss of the rows held out in the present pass."""
        return self.state.holdout - self.before.holdout

    def history(self) -> TrainingHistory:
        """What the model has read, with this run; refuses a run that learned nothing."""
        state, before, progressive = self.state, self.before, self.progressive
        if progressive.rows == 0 and state.holdout == before.holdout:
            remedy = "check label=" if self.source.describe().columns else "give each row a label"
            if not state.rows and self.source.files:
                name = "<stdin>" if self.source.files[0] == STDIN else shown(self.source.files[0])
                found = f"{self.bad_rows} that cannot be read" if self.bad_rows else "none"
                raise InvalidInput(f"{name}: expected rows with a label, got {found}; check the file.")
            remedy = remedy if state.rows else "pass some"
            raise InvalidInput(
                f"data needs rows with a label and a weight above 0, got none in {state.rows} rows; {remedy}.",
                option="label",
            )
        positive = self.model.reading.get("positive")
        if state.only_class == -1 and positive is not None:
            labels = [column for column in self.source.describe().profile if column.kind == "label"]
            first = f"; the first row has {labels[0].example!r}" if labels else "; pass one that is there"
            raise InvalidInput(f"positive= needs a label of the data, got {positive!r}, which no row has{first}.")
        # What continues the totals of the runs before is taken as it is: the sum could differ in the last bit.
        continues = before.progressive == state.run_start and state.first_pass is not None
        total = state.first_pass if continues else None
        rows = before.rows + state.rows // max(1, state.passes_done)
        delay = before.delay if self.options.delay is None else self.options.delay
        judges = progressive.rows >= ENOUGH_ROWS
        return TrainingHistory(
            rows,
            before.bad_rows + self.bad_rows,
            total or before.progressive + progressive,
            state.holdout,
            () if state.is_partial else tuple(state.monitor.numbers),
            delay,
            self.options.order_of_rows,
            state.check,
            self.last_drawn,
            cautions.kept(before.cautions, self.cautions(), judges=judges),
        )

    @property
    def last_drawn(self) -> LossTotals | None:
        """The loss of the rows learned last, where these are a random draw from more rows than may wait."""
        state = self.state
        if state.quarter is None or not state.has_overflowed:
            return None
        drawn = (state.first_pass or state.totals(self.model.engine)) - state.quarter
        return drawn if drawn.rows > 0 else None

    def cautions(self) -> list[Caution]:
        """The warnings of the run, which is over."""
        known = self.state.data_cautions.items()
        return [*(Caution(kind, text, tuple(options)) for kind, (text, *options) in known), *cautions.of_run(self)]


def _sample(options: RunSettings) -> LearnedSample | None:
    """What keeps some of the rows that are learned in the order of the data, to predict them again."""
    return LearnedSample(options.order_seed) if options.order == "given" else None
