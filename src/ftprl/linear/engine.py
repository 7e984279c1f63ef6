"""The compiled learner with typed arguments that are checked: batches in, scores and losses out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import NameTable, OneRow, RecordParser, state_lock
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear.core_learner import table_bytes
from ftprl.linear.mixture import is_review, losers_of, may_drop, next_review, window_of
from ftprl.linear.refusal import RowRefused, refusal
from ftprl.linear.spec import Spec
from ftprl.linear.state import LearnerState
from ftprl.linear.table import reads
from ftprl.linear.totals import LossTotals

__all__ = ["Engine", "RowRefused", "table_bytes"]

Vector = NDArray[np.float64]
_COPIED_ROWS = 1 << 16  # of a batch that others may write to, so many are copied at a time


class Engine(LearnerState):
    """A table of cells that learns row by row: predict, pay, learn.

    Several threads may use one engine. `learn`, `put` and `keep_scales` run one at a time; `score` and everything else
    that reads the state runs beside other readers, waits while a batch is learned, and sees the state between two
    calls of `learn`, never within one. `unchanged` keeps it so for several reads. What is called a view below is
    memory that learning writes to: read views within `unchanged` if another thread learns.

    >>> engine = Engine(Spec(loss="squared", dim=4))
    >>> batch = Batch.from_rows([{0: 1.0}, {0: 1.0}], y=[1, 1])
    >>> engine.learn(batch).rows
    2
    """

    def __init__(self, spec: Spec, *, receipt: bool = False, classes: int = 0) -> None:
        super().__init__(spec, receipt=receipt, classes=classes)
        self._seen = False  # whether the rows that are being learned were learned in an earlier pass
        self._arrivals: tuple[Vector, NDArray[np.int64]] | None = None  # of the rows that are being learned, if late

    def learn(
        self,
        batch: Batch,
        *,
        scores: Vector | None = None,
        losses: Vector | None = None,
        baselines: Vector | None = None,
        last_score: Vector | None = None,
        seen: bool = False,
        has_met: bool = False,
    ) -> LossTotals:
        """Predict and then learn each row that has a label and a weight above 0; the others are only scored.

        `scores` and `losses` are filled with a number a row when they are given: the prediction before the row was
        learned, and its loss without the weight (NaN without a label). `last_score`, an array of one number, gets the
        prediction of the last row alone, in place of `scores`: several scales need much less time for a loss than for
        a prediction. A row at fault is refused with its number, and then no row of the batch has been learned.
        `baselines` gets two numbers per row: the baseline's loss, and the least loss any prediction of it could have;
        NaN for a row without a label. With several classes labels are the numbers of classes, and a score is the number
        of the most probable one (NaN before any is known).

        Rows that were `seen` in an earlier pass move the weights of every scale, but not the mixture of the scales,
        which would favour those that memorise; and no scale is dropped because of them. With `has_met` the bounds of
        their features are set already, by `meet_names`.

        With more than four scales, those that no longer contribute are dropped. It is decided after row 2^17 and at
        each later power of two of the rows learned, however they are cut into batches.

        Other threads that learn, save or predict wait meanwhile. They may write to the arrays of a batch that is not
        `is_private`, which is copied before it is checked and learned, some rows at a time.
        """
        check.instance("batch", batch, Batch)
        with self._changing:
            self._seen = seen
            if self._bounds is None or has_met:
                return self._learn_part(batch, scores, losses, baselines, last_score)
            totals = LossTotals(0.0, 0.0, 0)
            for rows in self._bounded_parts(batch):
                out, lost, base = (None if array is None else array[rows] for array in (scores, losses, baselines))
                is_last = rows.stop == len(batch)
                totals = totals + self._learn_part(batch[rows], out, lost, base, last_score if is_last else None)
            return totals

    def _learn_part(
        self,
        batch: Batch,
        scores: Vector | None,
        losses: Vector | None,
        baselines: Vector | None,
        last_score: Vector | None,
    ) -> LossTotals:
        if last_score is None or len(batch) < 2:
            return self._learn_all(batch, scores if last_score is None else last_score[: len(batch)], losses, baselines)
        return self._learn_and_score_last(batch, last_score, losses, baselines)

    def _bounded_parts(self, batch: Batch) -> Iterator[slice]:
        """The rows of a batch in parts; before each, the bounds are set that hold from its first row on."""
        assert self._bounds is not None
        self._check(batch)  # before a name is taken note of
        steps = self._bounds.steps(batch)
        for number, step in enumerate(steps):
            self._put_bounds(step.cells, step.ends)
            yield slice(step.row, steps[number + 1].row if number + 1 < len(steps) else len(batch))

    def meet_names(self, batch: Batch) -> None:
        """Set the bounds of the features of rows that are left out, as if the rows had been learned."""
        if self._bounds is not None:
            with self._changing:
                for step in self._bounds.steps(batch):
                    self._put_bounds(step.cells, step.ends)

    @property
    def arrival_numbers(self) -> int:
        """How many numbers `learn_late` keeps for each row: none with one scale, which has no mixture."""
        return len(self._all_scales) + 1 if self._spec.several else 0

    @property
    def _all_scales(self) -> tuple[float, ...]:
        """The scales of today and those that were dropped."""
        return tuple(sorted((*self._spec.scales, *self._spec.retired)))

    def learn_late(
        self,
        batch: Batch,
        arrivals: Vector,
        arrival_of: NDArray[np.int64],
        *,
        scores: Vector | None = None,
        losses: Vector | None = None,
        baselines: Vector | None = None,
    ) -> LossTotals:
        """As `learn`, for rows that are predicted first, with weight 0, and learned when their labels arrive.

        Row r keeps in row `arrival_of[r]` of `arrivals`, of `arrival_numbers` each, what its experts say when it is
        predicted. When it is learned, every scale takes its gradient at the weights of then; the mixture judges the
        experts by their scores.
        """
        check.instance("batch", batch, Batch)
        if self._spec.calibrate != "none":
            raise InvalidInput(
                f"learn_late does not calibrate, got a model with calibrate={self._spec.calibrate}; call learn."
            )
        with self._changing:
            self._seen = False
            self._arrivals = (arrivals, arrival_of) if self._spec.several else None
            try:
                return self._learn_and_review(batch.private(), scores, losses, baselines)
            finally:
                self._arrivals = None

    def _core_arrivals(self, rows: slice) -> tuple[Vector, NDArray[np.int64], list[int]]:
        """The arrivals of some rows as the core takes them, with the scales of today, and their columns."""
        assert self._arrivals is not None
        arrivals, arrival_of = self._arrivals
        every = self._all_scales
        columns = [*(every.index(scale) for scale in self._spec.scales), len(every)]
        return np.ascontiguousarray(arrivals[:, columns]), np.ascontiguousarray(arrival_of[rows]), columns

    def _learn_and_score_last(
        self, batch: Batch, last_score: Vector, losses: Vector | None, baselines: Vector | None
    ) -> LossTotals:
        """Learn all rows, or none if one is refused, and predict the last one."""
        last = batch[len(batch) - 1 :].private()
        try:
            self._check(last)
        except RowRefused:
            self._check(batch.replaced(indptr=batch.indptr.copy()))  # a row before it may be refused, too
            raise
        earlier, final_row = slice(0, len(batch) - 1), slice(len(batch) - 1, len(batch))
        parts = [
            [None if array is None else array[rows] for array in (losses, baselines)] for rows in (earlier, final_row)
        ]
        return self._learn_all(batch[earlier], None, *parts[0]) + self._learn_all(last, last_score, *parts[1])

    def _learn_all(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, baselines: Vector | None
    ) -> LossTotals:
        if batch.is_private or len(batch) <= _COPIED_ROWS:
            return self._learn_and_review(batch.private(), scores, losses, baselines)
        return self._learn_copies(batch, scores, losses, baselines)

    def one_row(self, learning: RecordParser, scoring: RecordParser, names: NameTable | None) -> OneRow:
        """What learns and scores one dict at a time, as the parsers read it: `ftprl.linear.one_row` makes the parsers.

        It learns as `learn` does, but for the decision about scales, which is left to `review_one_row`.
        """
        bounds = None if self._bounds is None else self._bounds.table
        row = OneRow(self._core, self._baseline, learning, scoring, self._reading, self._changing, names, bounds)
        row.review_row = self.next_review
        return row

    @property
    def next_review(self) -> float:
        """The number of the row after which scales may be dropped next."""
        return float(next_review(self.progress.rows, self._spec))

    def review_one_row(self, row: OneRow) -> None:
        """Drop scales if this is a row number at which it is decided, and note the next one."""
        with self._changing:
            self._seen = False
            self._review_scales()
            row.review_row = self.next_review

    def weigh(self, batch: Batch, *, losses: Vector, baselines: Vector) -> None:
        """Predict held-out rows and let nothing but the weights of the mixture learn from each, by Bayes' rule.

        `losses` gets the loss of each row before it was weighed, `baselines` the numbers of the baseline as in `learn`.
        """
        check.instance("batch", batch, Batch)
        rows = batch.private()
        unlearned = np.zeros(len(rows))
        with self._changing:
            try:
                self._core.learn(*_labelled(rows), None, losses, first_row=rows.first_row, scales=False)
            except ValueError as error:
                raise refusal(rows, error) from None
            self._baseline.learn(rows.y, unlearned, baselines)

    def _learn_copies(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, baselines: Vector | None
    ) -> LossTotals:
        """Learn a long batch that others may write to: checked as a whole, then copied and learned in parts."""
        batch = batch.replaced(indptr=batch.indptr.copy())  # which decides what is read
        self._check(batch)
        totals = LossTotals(0.0, 0.0, 0)
        for start in range(0, len(batch), _COPIED_ROWS):
            rows = slice(start, min(start + _COPIED_ROWS, len(batch)))
            targets = (None if array is None else array[rows] for array in (scores, losses, baselines))
            totals = totals + self._learn_and_review(batch[rows].private(), *targets)
        return totals

    def _learn_and_review(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, baselines: Vector | None
    ) -> LossTotals:
        """Learn a batch and drop scales at the row numbers at which that is decided."""
        start = self._rows_until_review(batch)
        if start == len(batch):  # nearly always: the shortest way is for this
            totals = self._learn(batch, scores, losses, baselines, slice(0, start))
            self._review_scales()
            return totals
        self._check(batch)
        totals = self._learn(batch[:start], scores, losses, baselines, slice(0, start))
        self._review_scales()
        while start < len(batch):
            stop = start + self._rows_until_review(batch[start:])
            totals = totals + self._learn(batch[start:stop], scores, losses, baselines, slice(start, stop))
            self._review_scales()
            start = stop
        return totals

    def _learn(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, baselines: Vector | None, rows: slice
    ) -> LossTotals:
        """Learn some rows, whose numbers in `scores`, `losses` and `baselines` are `rows`."""
        if scores is not None and rows != slice(0, len(scores)):
            scores = scores[rows]
        if losses is not None and rows != slice(0, len(losses)):
            losses = losses[rows]
        arrivals, arrival_of, columns = (None, None, []) if self._arrivals is None else self._core_arrivals(rows)
        try:
            loss, weight, count = self._core.learn(
                batch.indptr,
                batch.indices,
                batch.values,
                batch.y,
                batch.weight,
                None if scores is None else _column(scores),
                losses,
                batch.first_row,
                True,
                not self._seen,
                self._baseline,
                None if baselines is None else baselines[rows],
                arrivals,
                arrival_of,
            )  # by position, which takes less time
        except ValueError as error:
            raise refusal(batch, error) from None
        if self._arrivals is not None:
            self._arrivals[0][:, columns] = arrivals
        return LossTotals(loss, weight, count)

    def _check(self, batch: Batch) -> None:
        """Refuse a batch with a bad row before some of its rows are learned."""
        try:
            self._core.check(*_labelled(batch), first_row=batch.first_row)
        except ValueError as error:
            raise refusal(batch, error) from None

    def check_rows(self, batch: Batch) -> None:
        """Refuse a batch with a row that cannot be learned, as `learn` does; nothing is learned."""
        check.instance("batch", batch, Batch)
        self._check(batch.private())

    def score(self, batch: Batch, *, calibrated: bool = True) -> Vector:
        """x·v for each row, with the weights as they are: what `weights()` and the intercept say.

        With other losses than the log loss, the offset of the labels is added and the score is cut to their range
        (docs/labels.md). With several scales the mixture's score: its log-odds with log loss, otherwise the mixed
        prediction. While
        another thread learns, all rows are scored with the state between two of its calls of `learn`.

        With several classes an array with one row per row and one column per class that is known: the logarithms of
        their probabilities. Where other classes may still come, something is left for those.

        A model with a calibrator gives calibrated log-odds, or with `calibrated=False` those before.
        """
        check.instance("batch", batch, Batch)
        with self._reading:
            scores = np.empty((len(batch), self._core.outputs) if self._spec.classes else len(batch))
            if batch.is_private:
                self._score(batch, scores, calibrated)
            else:
                for start in range(0, len(batch), _COPIED_ROWS):
                    rows = slice(start, start + _COPIED_ROWS)
                    self._score(batch[rows].private(), scores[rows], calibrated)
        return scores

    def _score(self, batch: Batch, scores: Vector, calibrated: bool) -> None:
        try:
            target = scores if self._spec.classes else _column(scores)
            self._core.score(batch.indptr, batch.indices, batch.values, target, batch.first_row, calibrated)
        except ValueError as error:
            raise refusal(batch, error) from None

    def moves(self, batch: Batch) -> Vector:
        """How far one more row like each could move the score of each scale, whatever its label; nothing is learned.

        One row per row and one column per scale; with several classes one such block of columns per class, in order.
        With other losses than those of probabilities the label is within the range of the labels so far.
        """
        check.instance("batch", batch, Batch)
        rows = batch.private()
        with self._reading:
            out = np.empty((len(rows), self._core.outputs * len(self._spec.scales)))
            try:
                self._core.moves(rows.indptr, rows.indices, rows.values, out, rows.first_row)
            except ValueError as error:
                raise refusal(rows, error) from None
        return out

    def _rows_until_review(self, batch: Batch) -> int:
        """How many rows of a batch come before the next decision about its scales; all when it is further off."""
        if not self._may_drop_scales():
            return len(batch)
        learned = self.progress.rows
        missing = next_review(learned, self._spec) - learned
        if len(batch) < missing:
            return len(batch)
        counted = np.flatnonzero((batch.weight > 0.0) & (batch.y == batch.y))
        return len(batch) if len(counted) < missing else int(counted[missing - 1]) + 1

    def _may_drop_scales(self) -> bool:
        return not self._seen and may_drop(self._spec)

    def _review_scales(self) -> None:
        """Drop scales if this is a row number at which it is decided and four neighbours do as well as all."""
        if not self._may_drop_scales():
            return
        rows = self.progress.rows
        for name in losers_of(self.state, self._spec, rows):
            self.drop_expert(name)
        first = window_of(self.state, len(self._spec.scales), rows) if is_review(rows) else None
        if first is not None:
            self.keep_scales(first)

    @reads
    def copy(self) -> Engine:
        """A second engine in the same state."""
        twin = object.__new__(Engine)
        twin._spec, twin._receipt = self._spec, self._receipt
        twin._core = self._core.copy()
        twin._baseline = self._baseline.copy()
        twin._bounds = None if self._bounds is None else self._bounds.copy()
        twin._seen = False
        twin._arrivals = None
        twin._reading, twin._changing = state_lock()
        return twin


def _labelled(batch: Batch) -> tuple[Any, Any, Any, Any, Any]:
    return batch.indptr, batch.indices, batch.values, batch.y, batch.weight


def _column(scores: Vector) -> Any:
    """One score per row as the only column of an array with one column per output."""
    return scores[:, np.newaxis]
