"""The learner of a model: a table of cells, a mixture of scales, and the sums of what was learned, behind one lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import Baseline, Hold, Learner, NameTable, OneRow, RecordParser, SlotIndex, state_lock
from ftprl.data import Batch
from ftprl.data.jobs import processors
from ftprl.errors import InvalidInput, OutOfMemory
from ftprl.linear.bounds import CellBounds, too_many_ranges
from ftprl.linear.mixture import (
    WINDOW,
    Cells,
    Mixture,
    is_review,
    leader_of,
    losers_of,
    may_drop,
    mixture_of,
    next_review,
    restart,
    window_of,
)
from ftprl.linear.refusal import RowRefused, refusal
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums
from ftprl.losses import LOSSES
from ftprl.options.checks import check_together

__all__ = ["Engine", "RowRefused", "table_bytes"]

Vector = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")
LABEL_NUMBERS = (
    *("rows", "weight", "mean", "squares", "least", "most", "quantile", "since", "pinball", "deviation"),
    *("offset", "unit", "lowest", "highest", "psi", "kappa", "outliers"),
)  # as in src/core/learn/labels.hpp
MOST_COLUMNS, MOST_WATCHED = 64, 1024  # of an expert, and features that may become columns
_CORE_OPTIONS = (
    *("loss", "beta", "l1", "l2", "lower", "upper", "intercept", "tau", "float64", "coin", "dense", "classes"),
    "calibrate",
)  # of a Spec, that the compiled learner takes by their names
_SMALL_PAGE = 4096  # bytes of memory that one cell takes up at least
_NOTHING = LossTotals(0.0, 0.0, 0)
_COPIED_ROWS = 1 << 16  # of a batch that others may write to, so many are copied at a time


def reads(method: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Engine, P], T]:
    """Decorate a method so that it sees one state of the engine: no thread can learn meanwhile."""

    @wraps(method)
    def locked(self: Engine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._reading:
            return method(self, *args, **kwargs)

    return locked


class Engine:
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

    def __init__(
        self, spec: Spec, *, receipt: bool = False, classes: int = 0, slots: NDArray[np.uint32] | None = None
    ) -> None:
        check.instance("spec", spec, Spec)
        if receipt and LOSSES[spec.loss].one_vs_rest:
            raise InvalidInput(
                "receipt= needs a loss that is convex in the weights, got loss=ovr; drop it, or pass loss=softmax.",
                option=("receipt", "loss"),
            )
        check_together({"receipt": receipt, "calibrate": spec.calibrate})
        self.spec = spec  # once scales have been dropped, those that are left, with the others in `spec.retired`
        self.loss = spec.scalar_loss()
        self.receipt = receipt  # whether its sums are kept
        # Of an engine that only predicts: the few cells that it has, rising, and the core's numbers for them.
        self._slots, self._index = slots, None if slots is None else SlotIndex(slots)
        self._core = learner_of(spec, receipt, classes, self._cell_count)
        self.threads = processors()
        self._baseline = Baseline(spec.loss, spec.tau, spec.classes)
        self.bounds = CellBounds(spec.bounds, spec.dim, spec.lower, spec.upper) if spec.bounds else None
        self._reading, self._changing = state_lock()

    # ---- rows ----

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
        out = _Outputs(scores if last_score is None else None, losses, baselines, seen=seen)
        with self._changing:
            if self.bounds is None or has_met:
                return self._learn_all(batch, out, last_score)
            totals = _NOTHING
            for rows in self._bounded_parts(batch):
                last = last_score if rows.stop == len(batch) else None
                totals = totals + self._learn_all(batch[rows], out.of(rows), last)
            return totals

    def _bounded_parts(self, batch: Batch) -> Iterator[slice]:
        """The rows of a batch in parts; before each, the bounds are set that hold from its first row on."""
        assert self.bounds is not None
        self._check(batch)  # before a name is taken note of
        steps = self.bounds.steps(batch)
        for number, step in enumerate(steps):
            self._put_bounds(step.cells, step.ends)
            yield slice(step.row, steps[number + 1].row if number + 1 < len(steps) else len(batch))

    def meet_names(self, batch: Batch) -> None:
        """Set the bounds of the features of rows that are left out, as if the rows had been learned."""
        if self.bounds is not None:
            with self._changing:
                for step in self.bounds.steps(batch):
                    self._put_bounds(step.cells, step.ends)

    @property
    def threads(self) -> int:
        """How many threads learn a batch of at least 1,024 rows; what is learned does not depend on it."""
        return self._core.threads

    @threads.setter
    def threads(self, threads: int) -> None:
        self._core.threads = threads

    @property
    def arrival_numbers(self) -> int:
        """How many numbers `learn_late` keeps for each row: none with one scale, which has no mixture."""
        return len(self._all_scales) + 2 if self.spec.several else 0

    @property
    def _all_scales(self) -> tuple[float, ...]:
        """The scales of today and those that were dropped."""
        return tuple(sorted((*self.spec.scales, *self.spec.retired)))

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
        if self.spec.calibrate != "none":
            raise InvalidInput(
                f"learn_late does not calibrate, got a model with calibrate={self.spec.calibrate}; call learn."
            )
        kept = (arrivals, arrival_of) if self.spec.several else (None, None)
        with self._changing:
            return self._learn_and_review(batch.private(), _Outputs(scores, losses, baselines, *kept))

    def _core_arrivals(self, out: _Outputs) -> tuple[Vector | None, NDArray[np.int64] | None, list[int]]:
        """The arrivals of some rows as the core takes them, with the scales of today, and their columns."""
        if out.arrivals is None or out.arrival_of is None:
            return None, None, []
        every = self._all_scales
        columns = [*(every.index(scale) for scale in self.spec.scales), len(every), len(every) + 1]
        return np.ascontiguousarray(out.arrivals[:, columns]), np.ascontiguousarray(out.arrival_of), columns

    def _learn_all(self, batch: Batch, out: _Outputs, last_score: Vector | None = None) -> LossTotals:
        """Learn all rows, or none if one is refused; a long batch that others may write to is copied in parts."""
        if last_score is not None and len(batch) > 1:
            return self._learn_and_score_last(batch, out, last_score)
        if last_score is not None:
            out = out._replace(scores=last_score[: len(batch)])
        if batch.is_private or len(batch) <= _COPIED_ROWS:
            return self._learn_and_review(batch.private(), out)
        batch = batch.replaced(indptr=batch.indptr.copy())  # which decides what is read
        self._check(batch)
        totals = _NOTHING
        for start in range(0, len(batch), _COPIED_ROWS):
            rows = slice(start, start + _COPIED_ROWS)
            totals = totals + self._learn_and_review(batch[rows].private(), out.of(rows))
        return totals

    def _learn_and_score_last(self, batch: Batch, out: _Outputs, last_score: Vector) -> LossTotals:
        """Learn all rows, or none if one is refused, and predict the last one."""
        earlier, final = slice(0, len(batch) - 1), slice(len(batch) - 1, len(batch))
        last = batch[final].private()
        try:
            self._check(last)
        except RowRefused:
            self._check(batch.replaced(indptr=batch.indptr.copy()))  # a row before it may be refused, too
            raise
        return self._learn_all(batch[earlier], out.of(earlier)) + self._learn_all(last, out.of(final), last_score)

    def one_row(self, learning: RecordParser, scoring: RecordParser, names: NameTable | None) -> OneRow:
        """What learns and scores one dict at a time, as the parsers read it: `ftprl.linear.one_row` makes the parsers.

        It learns as `learn` does, but for the decision about scales, which is left to `review_one_row`.
        """
        bounds = None if self.bounds is None else self.bounds.table
        row = OneRow(
            self._core, self._baseline, learning, scoring, self._reading, self._changing, names, bounds, self._index
        )
        row.review_row = self.next_review
        return row

    @property
    def next_review(self) -> float:
        """The number of the row after which scales may be dropped next."""
        return float(next_review(self.progress.rows, self.spec))

    def review_one_row(self, row: OneRow) -> None:
        """Drop scales if this is a row number at which it is decided, and note the next one."""
        with self._changing:
            self._review_experts()
            row.review_row = self.next_review

    def weigh(self, batch: Batch, *, losses: Vector, baselines: Vector) -> None:
        """Predict held-out rows and let nothing but the weights of the mixture learn from each, by Bayes' rule.

        `losses` gets the loss of each row before it was weighed, `baselines` the numbers of the baseline as in `learn`.
        """
        check.instance("batch", batch, Batch)
        self._check_complete()
        rows = batch.private()
        unlearned = np.zeros(len(rows))
        with self._changing:
            try:
                self._core.learn(*_labelled(rows), None, losses, first_row=rows.first_row, scales=False)
            except ValueError as error:
                raise refusal(rows, error) from None
            self._baseline.learn(rows.y, unlearned, baselines)

    def _learn_and_review(self, batch: Batch, out: _Outputs) -> LossTotals:
        """Learn a batch and drop scales at the row numbers at which that is decided."""
        if out.seen or not may_drop(self.spec):
            return self._learn(batch, out)
        start, stop, totals = 0, self._rows_until_review(batch), _NOTHING
        if stop < len(batch):
            self._check(batch)
        while True:
            rows = slice(start, stop)
            is_whole = stop - start == len(batch)  # nearly always
            totals = totals + self._learn(batch if is_whole else batch[rows], out if is_whole else out.of(rows))
            self._review_experts()
            if stop == len(batch):
                return totals
            start, stop = stop, stop + self._rows_until_review(batch[stop:])

    def _learn(self, batch: Batch, out: _Outputs) -> LossTotals:
        """Learn some rows, between two decisions about scales."""
        self._check_complete()
        arrivals, arrival_of, columns = self._core_arrivals(out)
        try:
            loss, weight, count = self._core.learn(
                batch.indptr,
                batch.indices,
                batch.values,
                batch.y,
                batch.weight,
                None if out.scores is None else out.scores[:, np.newaxis],
                out.losses,
                batch.first_row,
                True,
                not out.seen,
                self._baseline,
                out.baselines,
                arrivals,
                arrival_of,
            )  # by position, which takes less time
        except ValueError as error:
            raise refusal(batch, error) from None
        if out.arrivals is not None:
            out.arrivals[:, columns] = arrivals
        return LossTotals(loss, weight, count)

    def _check(self, batch: Batch) -> None:
        """Refuse a batch with a bad row before some of its rows are learned."""
        self._check_complete()
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
        if not isinstance(batch, Batch):
            check.instance("batch", batch, Batch)
        count = batch.y.size
        size = count if batch.is_private else _COPIED_ROWS  # scored at a time
        with self._reading:
            scores = np.empty((count, self._core.outputs))
            for start in range(0, count, max(size, 1)):
                part = batch if batch.is_private else batch[start : start + size].private()
                cells = part.indices if self._index is None else self._numbers_of(part.indices)
                out = scores[start : start + size]
                try:
                    self._core.score(part.indptr, cells, part.values, out, part.first_row, calibrated)
                except ValueError as error:
                    raise refusal(part, error) from None
        return scores if self.spec.classes else scores[:, 0]

    @reads
    def score_said(self, scores: Vector, coin: Vector | None, rows: Vector, out: Vector) -> None:
        """Mix the scores that the scales and the coin have for dense rows: `out` gets the scores of the mixture."""
        with self._reading:
            self._core.score_said(scores, coin, rows, out)

    def moves(self, batch: Batch) -> Vector:
        """How far one more row like each could move the score of each scale, whatever its label; nothing is learned.

        One row per row and one column per scale; with several classes one such block of columns per class, in order.
        With other losses than those of probabilities the label is within the range of the labels so far.
        """
        check.instance("batch", batch, Batch)
        rows = batch.private()
        with self._reading:
            out = np.empty((len(rows), self._core.outputs * len(self.spec.scales)))
            try:
                self._core.moves(rows.indptr, self._numbers_of(rows.indices), rows.values, out, rows.first_row)
            except ValueError as error:
                raise refusal(rows, error) from None
        return out

    def _rows_until_review(self, batch: Batch) -> int:
        """How many rows of a batch come before the next decision about its scales; all when it is further off."""
        if not may_drop(self.spec):
            return len(batch)
        learned = self.progress.rows
        missing = next_review(learned, self.spec) - learned
        if len(batch) < missing:
            return len(batch)
        counted = np.flatnonzero((batch.weight > 0.0) & (batch.y == batch.y))
        return len(batch) if len(counted) < missing else int(counted[missing - 1]) + 1

    def _review_experts(self) -> None:
        """Drop scales and other experts, if that is decided at this row and the mixture loses little without them."""
        if not may_drop(self.spec):
            return
        rows = self.progress.rows
        for name in losers_of(self.state, self.spec, rows):
            self.drop_expert(name)
        first = window_of(self.state, len(self.spec.scales), rows) if is_review(rows) else None
        if first is not None:
            self.keep_scales(first)

    @reads
    def copy(self) -> Engine:
        """A second engine in the same state."""
        twin = object.__new__(Engine)
        twin.spec, twin.loss, twin.receipt = self.spec, self.loss, self.receipt
        twin._core = self._core.copy()
        twin._slots, twin._index = self._slots, self._index
        twin._baseline = self._baseline.copy()
        twin.bounds = None if self.bounds is None else self.bounds.copy()
        twin._reading, twin._changing = state_lock()
        return twin

    # ---- cells ----

    def unchanged(self) -> Hold:
        """A context manager: while it is entered no thread can learn; all can predict.

        >>> from ftprl.linear import Engine
        >>> engine = Engine(Spec(dim=4))
        >>> with engine.unchanged():
        ...     state = engine.progress.rows, engine.bias()
        """
        return self._reading

    @property
    def classes(self) -> int:
        """How many classes are known; 0 with a loss of one score."""
        return self._core.outputs if self.spec.classes else 0

    def know_classes(self, classes: int) -> None:
        """Make so many classes known, at least those that are; a new one starts as all that were not seen yet."""
        if not self.classes <= classes <= self.spec.classes:
            raise InvalidInput(
                f"classes needs {self.classes} to {self.spec.classes}, got {classes!r}; pass a number in that range."
            )
        with self._changing:
            self._core.know_classes(classes)

    @property
    def cells(self) -> Cells:
        """A copy of the whole table, one row per cell; `parts` gives it by name, `take` copies some cells only."""
        return self.take(np.arange(self.spec.dim, dtype=np.uint32))

    @property
    def parts(self) -> dict[str, Cells]:
        """A copy of the cells by name: z, R = sqrt(G) and S = g_{1:t}, one column per scale, and the feature's unit.

        With several scales also `count`, the rows that had the feature, and S with a receipt only.
        """
        return self.parts_at(np.arange(self.spec.dim, dtype=np.uint32))

    @reads
    def parts_at(self, slots: NDArray[np.integer[Any]]) -> dict[str, Cells]:
        """The same of some cells, a copy; S is float64 with a receipt."""
        cells = self.take(slots)
        parts = {name: cells[:, columns] for name, columns in _columns(self._core.columns).items()}
        rounded = parts.pop("rounded_S", None)
        if self.receipt:
            return {**parts, "S": self.take_gradients(slots)}
        return parts if rounded is None else {**parts, "S": rounded}

    @property
    def columns(self) -> int:
        """Of classes, that a cell has: those known and one for all that may come; 1 with a loss of one score."""
        return self.classes + (self.classes_to_come > 0) if self.spec.classes else 1

    @property
    def classes_to_come(self) -> int:
        """How many classes there may be that no row had and nobody has named: the last column stands for them."""
        return self.spec.classes - self.classes if self.spec.classes else 0

    @property
    def copies(self) -> Vector:
        """How many classes each column stands for."""
        many = np.ones(self.columns)
        if self.classes_to_come:
            many[-1] = self.classes_to_come
        return many

    @property
    def _gradient_width(self) -> int:
        return self.columns * len(self.spec.scales)

    @property
    def counts_rows(self) -> bool:
        """Whether cells count the rows that had their feature."""
        return "count" in self._core.columns

    @reads
    def take(self, slots: NDArray[np.integer[Any]]) -> Cells:
        """A copy of some cells, a row each."""
        some = self._checked(slots)
        shape = (len(some), self._core.width)
        out: Cells = np.empty(shape, np.float64) if self.spec.float64 else np.empty(shape, np.float32)
        self._core.take(some, out)
        return out

    def put(self, slots: NDArray[np.integer[Any]], cells: Cells) -> None:
        """Overwrite some cells with rows as `take` gives them; each slot once."""
        some = self._checked(slots)
        rows: Any = np.ascontiguousarray(cells, self._kind)
        width = self._core.width
        if rows.shape != (len(some), width):
            raise InvalidInput(f"cells need the shape ({len(some)}, {width}), got {rows.shape}; pass one row per slot.")
        with self._changing:
            self._core.put(some, rows)

    @reads
    def take_gradients(self, slots: NDArray[np.integer[Any]]) -> Vector:
        """S = g_{1:t} of some cells, one row each and one column per scale; with a receipt only.

        With several classes the scales of each column of `columns`, one after the other.
        """
        some = self._checked(slots)
        out = np.empty((len(some), self._gradient_width))
        self._core.take_gradients(some, out)
        return out

    def put_gradients(self, slots: NDArray[np.integer[Any]], gradients: Vector) -> None:
        """Overwrite S of some cells that `put` has filled."""
        some, rows = self._checked(slots), np.ascontiguousarray(gradients, np.float64)
        if rows.shape != (len(some), self._gradient_width):
            raise InvalidInput(
                f"gradients need one row per slot and {self._gradient_width} columns, got {rows.shape}; pass those."
            )
        with self._changing:
            self._core.put_gradients(some, rows)

    @reads
    def touched(self) -> NDArray[np.uint32]:
        """Which cells have been touched."""
        slots = np.empty(self._cell_count, dtype=np.uint32)  # takes up memory only where something is written
        touched = slots[: self._core.touched(slots)]
        return touched if self._slots is None else self._slots[touched]

    @reads
    def class_weights_at(self, slots: NDArray[np.integer[Any]]) -> Vector:
        """The weights of some cells in every column of `columns` and every scale, of a model with several classes."""
        spec, parts = self.spec, self.parts_at(slots)
        h, shape = np.array(spec.scales), (len(parts["unit"]), self.columns, len(spec.scales))
        z, R = (parts[name].astype(np.float64).reshape(shape) for name in "zR")
        s = parts["unit"].astype(np.float64)[:, None, None]
        held = s * (spec.beta * s + R) + (h * spec.l2) * (s * s)
        pull = np.copysign(np.maximum(np.abs(z) - spec.l1 * s, 0.0), -z) * h
        x = np.divide(pull, held, out=np.zeros(shape), where=held > 0)
        return np.asarray(np.clip(x, spec.lower, spec.upper))

    def expect_cells(self, count: int) -> None:
        """Prepare an empty table for so many cells: few cells of a large one are spread over small pages of memory."""
        size = self._kind().itemsize * self._core.width * self._cell_count
        if count * _SMALL_PAGE * 4 < size:
            self._core.use_small_pages()

    @property
    def saved_columns(self) -> dict[str, slice | int]:
        """The columns of `cells` that a model file holds, by the names of its tensors."""
        return _columns(self._core.saved_columns)

    @property
    def saved_arrays(self) -> dict[str, Vector]:
        """Views of the arrays that a model file holds besides the cells, by the names of its tensors."""
        return self._core.saved_arrays

    @property
    @reads
    def intercept(self) -> Vector:
        """A copy of z, R, S = g_{1:t} and kappa of the intercept: one row each, one column per scale.

        With several classes one such array per class.
        """
        out = np.empty((self._core.outputs, 4, len(self.spec.scales)))
        self._core.intercept(out)
        return out if self.spec.classes else np.asarray(out[0])

    @property
    @reads
    def intercept_columns(self) -> Vector:
        """The same, one array per column of classes, as `columns` counts them; S with a receipt only."""
        if not self.spec.classes:
            return self.intercept[np.newaxis]
        K, saved = len(self.spec.scales), self._core.saved_arrays["intercept"]
        out = np.zeros((self.columns, 4, K))
        out[:, : len(saved)] = saved.reshape(len(saved), self.columns, K).transpose(1, 0, 2)
        out[:, 3] = 1.0
        return out

    @property
    def state(self) -> dict[str, Vector]:
        """Views of the state of the mixture, by name (docs/model-file.md); with one scale: w, totals and sums."""
        return {name: array[0] for name, array in self._core.mixture.items()}

    @property
    @reads
    def leader(self) -> int:
        """The number of the leading scale, the one with the smallest total loss."""
        return leader_of(self.state, len(self.spec.scales))

    @reads
    def weights(self, scale: int | None = None) -> Vector:
        """The point x played in each cell, by the scale of this number; by the leading one if none is named.

        With several classes one row per class.
        """
        k = self._number(scale)
        out = np.empty((self._core.outputs, self._cell_count))
        self._core.weights(out, k)
        if self._slots is not None:  # its last cell is that of all others
            out, own = np.repeat(out[:, -1:], self.spec.dim, axis=1), out
            out[:, self._slots] = own[:, :-1]
        return out if self.spec.classes else np.asarray(out[0])

    @reads
    def weights_at(self, slots: NDArray[np.integer[Any]], scale: int | None = None) -> Vector:
        """The same of some cells; takes memory for these alone, however large the table is."""
        cells, count = self.take(slots), len(slots)
        few = Engine(replace(self.spec, dim=max(1, count)), classes=self.classes)
        few.put(np.arange(count), cells)
        if self.bounds is not None:
            few.put_bounds(np.arange(count), np.column_stack(self.limits_at(slots)))
        return few.weights(self._number(scale))[..., :count]

    @reads
    def bias(self, scale: int | None = None) -> float:
        """The weight of the intercept, as in `weights`; 0 without one."""
        return self._bias(self.intercept, self._number(scale))

    @reads
    def biases(self, scale: int | None = None) -> Vector:
        """The same for each class that is known."""
        k = self._number(scale)
        return np.array([self._bias(own, k) for own in self.intercept])

    def _bias(self, intercept: Vector, k: int) -> float:
        z, R, _, kappa = intercept[:, k].tolist()
        strength = self.spec.beta + R  # h Q, whose unit is 1
        own = 0.0 - z * self.spec.scales[k] / strength if self.spec.intercept and strength > 0 else 0.0
        return float(own * kappa)

    def _number(self, scale: int | None) -> int:
        if scale is None:
            return self.leader
        count = len(self.spec.scales)
        if isinstance(scale, bool) or not isinstance(scale, int | np.integer) or not 0 <= scale < count:
            raise InvalidInput(
                f"scale needs a number from 0 to {count - 1}, got {scale!r}; leave it out for the leading."
            )
        return int(scale)

    def _checked(self, slots: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
        """Slots of this table, or none: a copy, which nobody changes once it was checked."""
        some = np.array(slots)
        whole = some.ndim == 1 and (some.dtype.kind in "iu" or some.size == 0)
        if not whole or (some.size and not 0 <= int(some.min()) <= int(some.max()) < self.spec.dim):
            raise InvalidInput(
                f"slots need a list of whole numbers from 0 to {self.spec.dim - 1}, got {slots!r:.80}; pass those."
            )
        return self._numbers_of(np.ascontiguousarray(some, np.uint32))

    def _numbers_of(self, slots: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the numbers of cells in the core: their own, unless the engine has few cells of a large table."""
        if self._index is None:
            return slots
        numbers = np.empty(len(slots), np.uint32)
        self._index.find(np.ascontiguousarray(slots), numbers)
        return numbers

    @property
    def _cell_count(self) -> int:
        """How many cells the core has: all, or those of an engine that only predicts and one for all others."""
        return self.spec.dim if self._slots is None else len(self._slots) + 1

    def _check_complete(self) -> None:
        if self._index is not None:
            raise InvalidInput("learn needs all cells, got a compact model, which only predicts; load the whole one.")

    @property
    def _kind(self) -> type[np.float32] | type[np.float64]:
        return np.float64 if self.spec.float64 else np.float32

    def put_bounds(self, cells: NDArray[np.integer[Any]], ends: Vector) -> None:
        """Set the bounds of some cells: a lower and an upper end each."""
        some = self._checked(cells)
        assert self.bounds is not None
        with self._changing:
            self.bounds.load(np.asarray(cells), ends)
            self._put_bounds(some, ends)

    def _put_bounds(self, cells: NDArray[np.uint32], ends: Vector) -> None:
        if len(cells) and not self._core.put_boxes(cells, np.ascontiguousarray(ends)):
            raise too_many_ranges()

    @reads
    def limits_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """Between which numbers the weights of some cells have to be."""
        some = self._checked(slots)
        ends = np.tile([self.spec.lower, self.spec.upper], (len(some), 1))
        if self.bounds is not None:
            self._core.take_boxes(some, ends)
        return ends[:, 0], ends[:, 1]

    # ---- what was learned besides the cells ----

    @property
    @reads
    def mixture(self) -> Mixture | None:
        """The weights and total losses of the experts; None with one scale, which mixes nothing."""
        return mixture_of(self.state, self.spec) if self.spec.several or self.spec.coin else None

    @property
    @reads
    def calibration_knots(self) -> Vector | None:
        """Log-odds before and after isotonic calibration, one row per bin; None without it.

        Between two rows the calibrated log-odds are interpolated, beyond the first and the last a constant is added.
        """
        if self.spec.calibrate != "isotonic":
            return None
        knots = np.empty((len(self._core.saved_arrays["calibrator.bins"]), 2))
        self._core.knots(knots)
        return knots

    @property
    @reads
    def expert_weights(self) -> list[float]:
        """The weights of the experts; the only scale has all of it."""
        return list(self.state["w"].tolist())

    @expert_weights.setter
    def expert_weights(self, weights: list[float]) -> None:
        with self._changing:
            self.state["w"][...] = weights

    def start_weighing(self, part: float) -> None:
        """Set the weights where `weigh` starts: half the mixture as it is, half by `part` of each expert's loss."""
        is_log_loss = not self.loss.has_units
        with self._changing:
            experts = len(self._core.saved_arrays.get("mixture.w", ()))
            restart(self.state, experts, part, is_log_loss=is_log_loss)

    @property
    def tallies(self) -> Vector:
        """The numbers behind `progress` and `sums`, in their order. A view."""
        return self._core.tallies

    @property
    def calibration(self) -> Vector | None:
        """Weight, probabilities and positives of each twentieth of [0, 1]: log loss with a receipt. A view."""
        return self._core.calibration

    @property
    def progress(self) -> LossTotals:
        """Of all rows so far; the same bits however they were cut into batches."""
        with self._reading:
            loss, weight, rows = self._core.loss_totals
            return LossTotals(loss, weight, int(rows), *self._baseline.loss_totals)

    @property
    def baseline(self) -> LossTotals:
        """The loss of predicting each row from the labels before it alone, of the same rows as `progress`.

        The prediction is the base rate (n1 + 1/2) / (n + 1) for log loss, the mean for squared and Huber loss, its
        logarithm for Poisson and gamma loss, a running median or quantile for absolute and quantile loss, the
        majority class for the hinge losses, and the rate of each class with several. NaN for a model without it.
        """
        now = self.progress
        return LossTotals(now.baseline, now.weight, now.rows, now.baseline, now.least)

    @property
    def baseline_state(self) -> Vector:
        """The numbers behind `baseline` (docs/model-file.md). A view."""
        return self._baseline.numbers

    @property
    def baseline_arrays(self) -> dict[str, Vector]:
        """The same with the weight of each class that is known, by the names of a model file. Views."""
        arrays = {"baseline": self._baseline.numbers}
        return arrays | ({"baseline.classes": self._class_weights} if self.spec.classes else {})

    @property
    def _class_weights(self) -> Vector:
        return self._baseline.class_weights[: self.classes]

    @property
    def sums(self) -> RegretSums:
        """What a receipt needs besides the cells, of the leading scale; zeros without one."""
        return self.sums_of()

    @reads
    def sums_of(self, scale: int | None = None) -> RegretSums:
        """The sums of one scale; of the leading one if none is named."""
        k = self._number(scale)
        return RegretSums(*self.state["sums"][:, k].tolist())

    @reads
    def rounding_sums(self, scale: int) -> RoundingSums:
        """What bounds the rounding of a receipt, of one scale."""
        return RoundingSums(*self._core.rounding[:, self._number(scale)].tolist())

    @reads
    def row_sums(self, scale: int) -> RowSums:
        """The sums over rows of a receipt, of one scale."""
        k = self._number(scale)
        if self.loss.has_units:
            return RowSums(*self._core.row_sums[:, k].tolist())
        own, now = float(self.state["totals"][k]), self.progress
        return RowSums(0.0, own, now.loss, now.weight, abs(own) + abs(now.loss))

    @property
    def label_state(self) -> dict[str, float] | None:
        """What is known of the labels so far, by name (docs/labels.md); None with the log loss."""
        if not self.loss.has_units:
            return None
        with self._reading:
            numbers = self._core.saved_arrays["labels"].tolist()
        return dict(zip(LABEL_NUMBERS, numbers, strict=True))

    @property
    def label_unit(self) -> float:
        """The unit of the labels so far (docs/labels.md); 1 with the log loss."""
        known = self.label_state
        return 1.0 if known is None else known["unit"]

    @reads
    def own_sums(self, slots: NDArray[np.integer[Any]] | None = None) -> Vector:
        """The sums of `StreamLedger` against the leading scale's weights, intercept left out; of some cells, or all."""
        out = np.empty((1, 10, len(self.spec.scales)))
        cells = None if slots is None else self._checked(slots).astype(np.int64)
        self._core.ledger(out, self.leader, cells)
        return np.asarray(out[0])

    @reads
    def own_groups(self, scale: int) -> Vector:
        """Number, -S·u, penalty and D·R of cells by how often they were seen, in powers of two from 2^-20 on."""
        out = np.empty((1, 128, 4))
        self._core.groups(out, self.leader, scale)
        return np.asarray(out[0])

    def expect_columns(self, columns: int, watched: int) -> None:
        """Make space for the arrays of so many columns, and of so many features that may become columns."""
        if columns > MOST_COLUMNS or watched > MOST_WATCHED:
            raise InvalidInput(f"columns.facts of {columns} columns and columns.table of {watched} features")
        self._core.expect_columns(columns, watched)

    @staticmethod
    def columns_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int]:
        """Return what `expect_columns` needs for these arrays of a file, or of another engine."""
        return len(arrays.get("columns.facts", ())), len(arrays.get("columns.table", ()))

    def drop_expert(self, name: str) -> None:
        """Drop an expert that is no scale; the others share its weight."""
        with self._changing:
            self._core.drop_expert(name)
            dropped = (*self.spec.dropped_experts, name)
            self.spec = replace(self.spec, coin=self.spec.coin and name != "coin", dropped_experts=dropped)

    def keep_scales(self, first: int) -> None:
        """Drop all scales but the four neighbours from number `first` on; what these have learned stays as it is."""
        with self._changing:
            scales = self.spec.scales
            if not 0 <= self._number(first) <= len(scales) - WINDOW:
                raise InvalidInput(
                    f"first needs a number from 0 to {len(scales) - WINDOW}, got {first!r}; {WINDOW} scales are kept."
                )
            kept = scales[first : first + WINDOW]
            retired = tuple(sorted({*self.spec.retired, *scales} - {*kept}))
            self._core.keep_scales(first, WINDOW)
            rows = self.progress.rows
            self.spec = replace(self.spec, scale=kept, retired=retired, retired_row=rows)


class _Outputs(NamedTuple):
    """Where the numbers of the rows of a batch go, and whether the rows were `seen` in an earlier pass."""

    scores: Vector | None
    losses: Vector | None
    baselines: Vector | None
    arrivals: Vector | None = None  # of all rows whose labels are late
    arrival_of: NDArray[np.int64] | None = None
    seen: bool = False

    def of(self, rows: slice) -> _Outputs:
        """Return the outputs of some of the rows."""
        names = ("scores", "losses", "baselines", "arrival_of")
        return self._replace(**{name: own[rows] for name in names if (own := getattr(self, name)) is not None})


def _labelled(batch: Batch) -> tuple[Any, Any, Any, Any, Any]:
    return batch.indptr, batch.indices, batch.values, batch.y, batch.weight


def _columns(ranges: Mapping[str, tuple[int, int]]) -> dict[str, slice | int]:
    """From the first number and how many there are to what indexes an array; a single one is no list."""
    return {name: slice(first, first + count) if count else first for name, (first, count) in ranges.items()}


def learner_of(spec: Spec, receipt: bool, classes: int, dim: int, *, coin_input: bool = True) -> Learner:
    """Make a learner that has seen no row; OutOfMemory says what to change where its table does not fit.

    `coin_input=False` hides the score of the coin from the Newton experts, to compare them with a reference.
    """
    try:
        learner = Learner(
            dim,
            classes if spec.classes else 1,
            receipt=receipt,
            scales=spec.scales,
            boxed=bool(spec.bounds),
            coin_input=coin_input,
            **{name: getattr(spec, name) for name in _CORE_OPTIONS},
        )
        for name in spec.dropped_experts:
            learner.drop_expert(name)
        return learner
    except MemoryError:
        needed = table_bytes(spec, receipt) / 1e9
        raise OutOfMemory(
            f"bits= needs memory for the whole table, {needed:.3g} GB for {spec.dim} cells, got less from the system;"
            " use fewer bits= (each halves it) or a single scale=, or raise the memory limit (ulimit -v).",
            option=("bits", "scale"),
        ) from None


def table_bytes(spec: Spec, receipt: bool) -> int:
    """Return how much memory the table of an engine needs at most; pages that are never touched take none.

    >>> table_bytes(Spec(dim=2**20, scale=0.1), receipt=False) == 2**20 * 16
    True
    """
    return spec.dim * learner_of(spec, receipt, 0, 1).slot_bytes
