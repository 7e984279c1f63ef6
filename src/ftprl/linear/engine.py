"""The compiled learner with typed arguments that are checked: batches in, scores and losses out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import (
    Baseline,
    Hold,
    Learner,
    NameTable,
    OneRow,
    RecordParser,
    RowError,
    hot_slots,
    set_hot_slots,
    state_lock,
)
from ftprl.data import Batch
from ftprl.errors import InvalidInput, OutOfMemory
from ftprl.linear.bounds import CellBounds
from ftprl.linear.mixture import (
    WINDOW,
    Cells,
    Mixture,
    has_lost,
    is_review,
    leader_of,
    mixture_of,
    next_review,
    restart,
    window_of,
)
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums

Vector = NDArray[np.float64]
P = ParamSpec("P")
T = TypeVar("T")
_NOTHING = np.empty(0)
MOST_DENSE = 64  # columns that the stack sees
_SMALL_PAGE = 4096  # bytes of memory that one cell takes up at least
LABEL_NUMBERS = (
    *("rows", "weight", "mean", "squares", "least", "most", "quantile", "since", "pinball", "deviation"),
    *("offset", "unit", "lowest", "highest", "psi", "kappa"),
)  # as in src/core/learners/labels.hpp
_COPIED_ROWS = 1 << 16  # of a batch that others may write to, so many are copied at a time


@final
class RowRefused(InvalidInput):
    """A row that cannot be learned, for a `reason`; `row` is its number in the stream."""

    def __init__(self, where: str, reason: str, row: int) -> None:
        super().__init__(f"{where}: {reason}.", option="classes")
        self.reason, self.row = reason, row


def _reads(method: Callable[Concatenate[Engine, P], T]) -> Callable[Concatenate[Engine, P], T]:
    """The same method, which sees one state of the engine: no thread can learn meanwhile."""

    @wraps(method)
    def locked(self: Engine, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._reading:
            return method(self, *args, **kwargs)

    return locked


@final
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

    def __init__(self, spec: Spec, *, receipt: bool = False, retire: bool = True, classes: int = 0) -> None:
        check.instance("spec", spec, Spec)
        if receipt and spec.classes:
            raise InvalidInput(
                f"receipt= does not support several classes yet, got loss={spec.loss}; drop one.",
                option=("receipt", "loss"),
            )
        self._spec = spec
        self._receipt = receipt
        self.retire = retire  # whether scales that no longer contribute are dropped
        self._core = _learner(spec, receipt, classes)
        self._bounds = CellBounds(spec.bounds, spec.dim, spec.lower, spec.upper) if spec.bounds else None
        self._baseline = Baseline(spec.loss, spec.tau, spec.classes)
        self._seen = False  # whether the rows that are being learned were learned in an earlier pass
        self._arrivals: tuple[Vector, NDArray[np.int64]] | None = None  # of the rows that are being learned, if late
        self._reading, self._changing = state_lock()

    def unchanged(self) -> Hold:
        """A context manager: while it is entered no thread can learn; all can predict.

        >>> engine = Engine(Spec(dim=4))
        >>> with engine.unchanged():
        ...     state = engine.progress.rows, engine.bias()
        """
        return self._reading

    @property
    def spec(self) -> Spec:
        """The settings; once scales have been dropped, those that are left, with the others in `spec.retired`."""
        return self._spec

    @property
    def receipt(self) -> bool:
        """Whether the sums of a receipt are kept."""
        return self._receipt

    @property
    def classes(self) -> int:
        """How many classes are known; 0 with a loss of one score."""
        return self._core.outputs if self._spec.classes else 0

    def know_classes(self, classes: int) -> None:
        """Make so many classes known, at least those that are; a new one starts as all that were not seen yet."""
        if not self.classes <= classes <= self._spec.classes:
            raise InvalidInput(f"classes needs {self.classes} to {self._spec.classes}, got {classes!r}; pass that.")
        with self._changing:
            self._core.know_classes(classes)

    @property
    def cells(self) -> Cells:
        """A copy of the whole table, one row per cell; `parts` gives it by name, `take` copies some cells only."""
        return self.take(np.arange(self._spec.dim, dtype=np.uint32))

    @property
    def parts(self) -> dict[str, Cells]:
        """A copy of the cells by name: z, R = sqrt(G) and S = g_{1:t}, one column per scale, and the feature's unit.

        With several scales also `count`, the rows that had the feature, and S with a receipt only.
        """
        return self.parts_at(np.arange(self._spec.dim, dtype=np.uint32))

    @_reads
    def parts_at(self, slots: NDArray[np.integer[Any]]) -> dict[str, Cells]:
        """The same of some cells, a copy; S is float64 with a receipt."""
        cells = self.take(slots)
        parts = {name: cells[:, columns] for name, columns in _columns(self._core.columns).items()}
        rounded = parts.pop("rounded_S", None)
        if self._receipt:
            return {**parts, "S": self.take_gradients(slots)}
        return parts if rounded is None else {**parts, "S": rounded}

    @_reads
    def take_gradients(self, slots: NDArray[np.integer[Any]]) -> Vector:
        """S = g_{1:t} of some cells, one row each and one column per scale; with a receipt only."""
        some = self._checked(slots)
        out = np.empty((len(some), len(self._spec.scales)))
        self._core.take_gradients(some, out)
        return out

    def put_gradients(self, slots: NDArray[np.integer[Any]], gradients: Vector) -> None:
        """Overwrite S of some cells that `put` has filled."""
        some, rows = self._checked(slots), np.ascontiguousarray(gradients, np.float64)
        if rows.shape != (len(some), len(self._spec.scales)):
            raise InvalidInput(
                f"gradients need one row per slot and one column per scale, got {rows.shape}; pass those."
            )
        with self._changing:
            self._core.put_gradients(some, rows)

    @property
    def counts_rows(self) -> bool:
        """Whether cells count the rows that had their feature."""
        return "count" in self._core.columns

    @_reads
    def take(self, slots: NDArray[np.integer[Any]]) -> Cells:
        """A copy of some cells, a row each."""
        some = self._checked(slots)
        shape = (len(some), self._core.width)
        out: Cells = np.empty(shape, np.float64) if self._spec.float64 else np.empty(shape, np.float32)
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

    @property
    def _kind(self) -> type[np.float32] | type[np.float64]:
        return np.float64 if self._spec.float64 else np.float32

    def _checked(self, slots: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
        """Slots of this table, or none: a copy, which nobody changes once it was checked."""
        some = np.array(slots)
        whole = some.ndim == 1 and (some.dtype.kind in "iu" or some.size == 0)
        if not whole or (some.size and not 0 <= int(some.min()) <= int(some.max()) < self._spec.dim):
            raise InvalidInput(
                f"slots need a list of whole numbers from 0 to {self._spec.dim - 1}, got {slots!r:.80}; pass those."
            )
        return np.ascontiguousarray(some, np.uint32)

    @property
    def saved_columns(self) -> dict[str, slice | int]:
        """The columns of `cells` that a model file holds, by the names of its tensors."""
        return _columns(self._core.saved_columns)

    @property
    def saved_arrays(self) -> dict[str, Vector]:
        """Views of the arrays that a model file holds besides the cells, by the names of its tensors."""
        return self._core.saved_arrays

    @property
    @_reads
    def intercept(self) -> Vector:
        """A copy of z, R, S = g_{1:t} and kappa of the intercept: one row each, one column per scale.

        With several classes one such array per class.
        """
        out = np.empty((self._core.outputs, 4, len(self._spec.scales)))
        self._core.intercept(out)
        return out if self._spec.classes else np.asarray(out[0])

    @property
    def state(self) -> dict[str, Vector]:
        """Views of the state of the mixture, by name (docs/model-file.md); with one scale: w, totals and sums."""
        return {name: array[0] for name, array in self._core.mixture.items()}

    @property
    @_reads
    def mixture(self) -> Mixture | None:
        """The weights and total losses of the experts; None with one scale, which mixes nothing."""
        return mixture_of(self.state, self._spec)

    @property
    @_reads
    def leader(self) -> int:
        """The number of the leading scale, the one with the smallest total loss."""
        return leader_of(self.state, len(self._spec.scales))

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
            loss, weight, rows = self._core.tallies[:3].tolist()
            return LossTotals(loss, weight, int(rows), self._baseline.total, float(self._baseline.numbers[2]))

    @property
    def baseline(self) -> LossTotals:
        """The loss of predicting each row from the labels before it alone, of the same rows as `progress`.

        The prediction is the base rate (n1 + 1/2) / (n + 1) for log loss, the mean for squared and Huber loss, its
        logarithm for Poisson and gamma loss, a running median or quantile for absolute and quantile loss, and the
        majority class for the hinge losses. NaN for a model that was saved without it.
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
        return arrays | ({"baseline.classes": self._class_weights} if self._spec.classes else {})

    @property
    def _class_weights(self) -> Vector:
        return self._baseline.class_weights[: self.classes]

    @property
    def sums(self) -> RegretSums:
        """What a receipt needs besides the cells, of the leading scale; zeros without one."""
        return self.sums_of()

    @_reads
    def sums_of(self, scale: int | None = None) -> RegretSums:
        """The sums of one scale; of the leading one if none is named."""
        k = self._number(scale)
        return RegretSums(*self.state["sums"][:, k].tolist())

    @_reads
    def rounding_sums(self, scale: int) -> RoundingSums:
        """What bounds the rounding of a receipt, of one scale."""
        return RoundingSums(*self._core.rounding[:, self._number(scale)].tolist())

    @_reads
    def row_sums(self, scale: int) -> RowSums:
        """The sums over rows of a receipt, of one scale."""
        k = self._number(scale)
        if self._spec.scalar_loss().has_units:
            return RowSums(*self._core.row_sums[:, k].tolist())
        own, now = float(self.state["totals"][k]), self.progress
        return RowSums(0.0, own, now.loss, now.weight, abs(own) + abs(now.loss))

    @property
    def label_state(self) -> dict[str, float] | None:
        """What is known of the labels so far, by name (docs/labels.md); None with the log loss."""
        if not self._spec.scalar_loss().has_units:
            return None
        with self._reading:
            numbers = self._core.saved_arrays["labels"].tolist()
        return dict(zip(LABEL_NUMBERS, numbers, strict=True))

    @property
    def label_unit(self) -> float:
        """The unit of the labels so far (docs/labels.md); 1 with the log loss."""
        known = self.label_state
        return 1.0 if known is None else known["unit"]

    @_reads
    def own_sums(self, slots: NDArray[np.integer[Any]] | None = None) -> Vector:
        """The sums of `StreamLedger` against the leading scale's weights, intercept left out; of some cells, or all."""
        out = np.empty((1, 10, len(self._spec.scales)))
        cells = None if slots is None else self._checked(slots).astype(np.int64)
        self._core.ledger(out, self.leader, cells)
        return np.asarray(out[0])

    @_reads
    def own_groups(self, scale: int) -> Vector:
        """Number, -S·u, penalty and D·R of cells by how often they were seen, in powers of two from 2^-20 on."""
        out = np.empty((1, 128, 4))
        self._core.groups(out, self.leader, scale)
        return np.asarray(out[0])

    @_reads
    def touched(self) -> NDArray[np.uint32]:
        """Which cells have been touched."""
        slots = np.empty(self._spec.dim, dtype=np.uint32)  # takes up memory only where something is written
        return slots[: self._core.touched(slots)]

    def learn(
        self,
        batch: Batch,
        *,
        scores: Vector | None = None,
        losses: Vector | None = None,
        baselines: Vector | None = None,
        last_score: Vector | None = None,
        seen: bool = False,
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
        which would favour those that memorise; and no scale is dropped because of them.

        With more than four scales, those that no longer contribute are dropped, unless `retire` is off. It is decided
        after row 2^17 and at each later power of two of the rows learned, however they are cut into batches.

        With `round_rows` above 1 rows are learned in rounds (docs/rounds.md), and the last round ends with the batch:
        cut a stream where `ftprl.linear.rounds.round_ends` says, and the model does not depend on the cuts.

        Other threads that learn, save or predict wait meanwhile. They may write to the arrays of a batch that is not
        `is_private`, which is copied before it is checked and learned, some rows at a time.
        """
        check.instance("batch", batch, Batch)
        with self._changing:
            self._seen = seen
            if self._bounds is None:
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
        if self._spec.round_rows > 1:
            return self._learn_rounds(batch, scores, losses, baselines, last_score)
        if last_score is None or len(batch) < 2:
            return self._learn_all(batch, scores if last_score is None else last_score[: len(batch)], losses, baselines)
        return self._learn_and_score_last(batch, last_score, losses, baselines)

    def _learn_rounds(
        self,
        batch: Batch,
        scores: Vector | None,
        losses: Vector | None,
        baselines: Vector | None,
        last_score: Vector | None,
    ) -> LossTotals:
        """Learn rows in rounds of several, which no cut within the batch may end."""
        if last_score is not None:
            scores = np.empty(len(batch))
        totals = self._learn_and_review(batch.private(), scores, losses, baselines)
        if last_score is not None and scores is not None and len(batch):
            last_score[0] = scores[-1]
        return totals

    @property
    @_reads
    def hot_slots(self) -> NDArray[np.uint32]:
        """The cells that are learned row by row in the next round of several rows, in order (docs/rounds.md)."""
        return hot_slots(self._core)

    @hot_slots.setter
    def hot_slots(self, slots: NDArray[np.integer[Any]]) -> None:
        some = self._checked(slots)
        with self._changing:
            set_hot_slots(self._core, some)

    # ---- bounds of single weights ----

    def _bounded_parts(self, batch: Batch) -> Iterator[slice]:
        """The rows of a batch in parts; before each, the bounds are set that hold from its first row on."""
        assert self._bounds is not None
        self._check(batch)  # before a name is taken note of
        steps = self._bounds.steps(batch)
        for number, step in enumerate(steps):
            self._put_bounds(step.cells, step.ends)
            yield slice(step.row, steps[number + 1].row if number + 1 < len(steps) else len(batch))

    def _put_bounds(self, cells: NDArray[np.uint32], ends: Vector) -> None:
        if len(cells) and not self._core.put_boxes(cells, np.ascontiguousarray(ends)):
            raise InvalidInput("bounds= needs at most 65535 different ranges of weights, got more; join some.")

    def meet_names(self, batch: Batch) -> None:
        """Set the bounds of the features of rows that are left out, as if the rows had been learned."""
        if self._bounds is not None:
            with self._changing:
                for step in self._bounds.steps(batch):
                    self._put_bounds(step.cells, step.ends)

    @property
    def bounds(self) -> CellBounds | None:
        """Which cells have bounds of their own; None where no weight can have them."""
        return self._bounds

    def put_bounds(self, cells: NDArray[np.integer[Any]], ends: Vector) -> None:
        """Set the bounds of some cells: a lower and an upper end each."""
        some = self._checked(cells)
        assert self._bounds is not None
        with self._changing:
            self._bounds.load(some, ends)
            self._put_bounds(some, ends)

    @_reads
    def limits_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """Between which numbers the weights of some cells have to be."""
        some = self._checked(slots)
        ends = np.tile([self._spec.lower, self._spec.upper], (len(some), 1))
        if self._bounds is not None:
            self._core.take_boxes(some, ends)
        return ends[:, 0], ends[:, 1]

    @property
    def arrival_numbers(self) -> int:
        """How many numbers `learn_late` keeps for each row: none with one scale, which has no mixture."""
        return len(self._all_scales) + 3 if self._spec.several else 0

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
        experts by what they said.
        """
        check.instance("batch", batch, Batch)
        if self._spec.classes:
            raise InvalidInput(f"learn_late does not support several classes, got loss={self._spec.loss}; call learn.")
        with self._changing:
            self._seen = False
            self._arrivals = (arrivals, arrival_of) if self._spec.several else None
            try:
                return self._learn_and_review(batch.private(), scores, losses, baselines)
            finally:
                self._arrivals = None

    def _core_arrivals(self, rows: slice) -> tuple[Vector | None, NDArray[np.int64] | None, list[int]]:
        """The arrivals of some rows as the core takes them, with the scales of today, and their columns."""
        if self._arrivals is None:
            return None, None, []
        arrivals, arrival_of = self._arrivals
        every = self._all_scales
        columns = [*(every.index(scale) for scale in self._spec.scales), *range(len(every), len(every) + 3)]
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
        row = OneRow(self._core, self._baseline, learning, scoring, self._reading, self._changing, names)
        row.review_row = float(next_review(self.progress.rows, coin=self._spec.coin))
        return row

    def review_one_row(self, row: OneRow) -> None:
        """Drop scales if this is a row number at which it is decided, and note the next one."""
        with self._changing:
            self._seen = False
            self._review_scales()
            row.review_row = float(next_review(self.progress.rows, coin=self._spec.coin))

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
                raise _refusal(rows, error) from None
            self._baseline.learn(rows.y, unlearned, baselines)

    def start_weighing(self, part: float) -> None:
        """Set the weights where `weigh` starts: half the mixture as it is, half by `part` of each expert's loss."""
        is_log_loss = not self._spec.scalar_loss().has_units
        with self._changing:
            experts = len(self._core.saved_arrays.get("mixture.w", _NOTHING))
            is_bayes = is_log_loss and self._spec.share == 0.0
            restart(self.state, experts, part, is_log_loss=is_log_loss, is_bayes=is_bayes)

    @property
    @_reads
    def expert_weights(self) -> tuple[list[float], list[float]]:
        """What decides how the experts are weighed: their weights, and the losses behind them where the share is 0."""
        return self.state["w"].tolist(), self.state.get("seen", _NOTHING).tolist()

    @expert_weights.setter
    def expert_weights(self, values: tuple[list[float], list[float]]) -> None:
        with self._changing:
            for name, numbers in zip(("w", "seen"), values, strict=True):
                if name in self.state:
                    self.state[name][...] = numbers

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
        if start < len(batch):
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
        arrivals, arrival_of, columns = self._core_arrivals(rows)
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
            raise _refusal(batch, error) from None
        if self._arrivals is not None:
            self._arrivals[0][:, columns] = arrivals
        return LossTotals(loss, weight, count)

    def _check(self, batch: Batch) -> None:
        """Refuse a batch with a bad row before some of its rows are learned."""
        try:
            self._core.check(*_labelled(batch), first_row=batch.first_row)
        except ValueError as error:
            raise _refusal(batch, error) from None

    def check_rows(self, batch: Batch) -> None:
        """Refuse a batch with a row that cannot be learned, as `learn` does; nothing is learned."""
        check.instance("batch", batch, Batch)
        self._check(batch.private())

    def score(self, batch: Batch) -> Vector:
        """x·v for each row, with the weights as they are: what `weights()` and the intercept say.

        With other losses than the log loss, the offset of the labels is added and the score is cut to their range
        (docs/labels.md). With several scales the mixture's score: its log-odds with log loss, otherwise the mixed
        prediction. While
        another thread learns, all rows are scored with the state between two of its calls of `learn`.

        With several classes an array with one row per row and one column per class that is known: the logarithms of
        their probabilities. Where other classes may still come, something is left for those.
        """
        check.instance("batch", batch, Batch)
        with self._reading:
            scores = np.empty((len(batch), self._core.outputs) if self._spec.classes else len(batch))
            if batch.is_private:
                self._score(batch, scores)
            else:
                for start in range(0, len(batch), _COPIED_ROWS):
                    rows = slice(start, start + _COPIED_ROWS)
                    self._score(batch[rows].private(), scores[rows])
        return scores

    def _score(self, batch: Batch, scores: Vector) -> None:
        try:
            target = scores if self._spec.classes else _column(scores)
            self._core.score(batch.indptr, batch.indices, batch.values, target, batch.first_row)
        except ValueError as error:
            raise _refusal(batch, error) from None

    @_reads
    def weights(self, scale: int | None = None) -> Vector:
        """The point x played in each cell, by the scale of this number; by the leading one if none is named.

        With several classes one row per class.
        """
        k = self._number(scale)
        out = np.empty((self._core.outputs, self._spec.dim))
        self._core.weights(out, k)
        return out if self._spec.classes else np.asarray(out[0])

    @_reads
    def weights_at(self, slots: NDArray[np.integer[Any]], scale: int | None = None) -> Vector:
        """The same of some cells; takes memory for these alone, however large the table is."""
        some = self._checked(slots)
        few = Engine(replace(self._spec, dim=max(1, len(some))), classes=self.classes)
        few.put(np.arange(len(some)), self.take(some))
        if self._bounds is not None:
            few.put_bounds(np.arange(len(some)), np.column_stack(self.limits_at(some)))
        return few.weights(self._number(scale))[..., : len(some)]

    def expect_cells(self, count: int) -> None:
        """Prepare an empty table for so many cells: few cells of a large one are spread over small pages of memory."""
        size = self._kind().itemsize * self._core.width * self._spec.dim
        if count * _SMALL_PAGE * 4 < size:
            self._core.use_small_pages()

    @_reads
    def bias(self, scale: int | None = None) -> float:
        """The weight of the intercept, as in `weights`; 0 without one."""
        return self._bias(self.intercept, self._number(scale))

    @_reads
    def biases(self, scale: int | None = None) -> Vector:
        """The same for each class that is known."""
        k = self._number(scale)
        return np.array([self._bias(own, k) for own in self.intercept])

    def _bias(self, intercept: Vector, k: int) -> float:
        z, R, _, kappa = intercept[:, k].tolist()
        strength = self._spec.beta + R  # h Q, whose unit is 1
        own = 0.0 - z * self._spec.scales[k] / strength if self._spec.intercept and strength > 0 else 0.0
        return float(own * kappa)

    def _number(self, scale: int | None) -> int:
        if scale is None:
            return self.leader
        count = len(self._spec.scales)
        if isinstance(scale, bool) or not isinstance(scale, int | np.integer) or not 0 <= scale < count:
            raise InvalidInput(
                f"scale needs a number from 0 to {count - 1}, got {scale!r}; leave it out for the leading."
            )
        return int(scale)

    def _rows_until_review(self, batch: Batch) -> int:
        """How many rows of a batch come before the next decision about its scales; all when it is further off."""
        if not self._may_drop_scales():
            return len(batch)
        learned = self.progress.rows
        missing = next_review(learned, coin=self._spec.coin) - learned
        if len(batch) < missing:
            return len(batch)
        counted = np.flatnonzero((batch.weight > 0.0) & (batch.y == batch.y))
        return len(batch) if len(counted) < missing else int(counted[missing - 1]) + 1

    def _may_drop_scales(self) -> bool:
        return self.retire and not self._seen and (self._spec.coin or len(self._spec.scales) > WINDOW)

    def _review_scales(self) -> None:
        """Drop scales if this is a row number at which it is decided and four neighbours do as well as all."""
        if not self._may_drop_scales():
            return
        rows = self.progress.rows
        if self._spec.coin and (mixture := self.mixture) is not None and has_lost(mixture, rows):
            self.drop_coin()
        first = window_of(self.state, len(self._spec.scales), rows) if is_review(rows) else None
        if first is not None:
            self.keep_scales(first)

    def expect_columns(self, columns: int, inputs: int) -> None:
        """Before `saved_arrays` are filled: so many dense columns, and so many inputs of a stack that sees them."""
        own = len(self._spec.scales) + (2 if self._spec.level else 0) + 1
        if not 0 <= columns <= MOST_DENSE or not (inputs == 0 or own <= inputs <= own + columns):
            raise InvalidInput(f"dense.u of {inputs} numbers for {columns} columns")
        self._core.expect_columns(columns, inputs)

    def drop_coin(self) -> None:
        """Drop the coin, if there is one; the others share its weight."""
        with self._changing:
            self._core.drop_coin()
            self._spec = replace(self._spec, coin=False, coin_retired=self._spec.coin or self._spec.coin_retired)

    def keep_scales(self, first: int) -> None:
        """Drop all scales but the four neighbours from number `first` on; what these have learned stays as it is."""
        with self._changing:
            scales = self._spec.scales
            if not 0 <= self._number(first) <= len(scales) - WINDOW:
                raise InvalidInput(
                    f"first needs a number from 0 to {len(scales) - WINDOW}, got {first!r}; {WINDOW} scales are kept."
                )
            kept = scales[first : first + WINDOW]
            retired = tuple(sorted({*self._spec.retired, *scales} - {*kept}))
            self._core.keep_scales(first, WINDOW)
            self._spec = replace(self._spec, scale=kept, retired=retired)

    @_reads
    def copy(self) -> Engine:
        """A second engine in the same state."""
        twin = object.__new__(Engine)
        twin._spec, twin._receipt, twin.retire = self._spec, self._receipt, self.retire
        twin._core = self._core.copy()
        twin._baseline = self._baseline.copy()
        twin._bounds = None if self._bounds is None else self._bounds.copy()
        twin._seen = False
        twin._arrivals = None
        twin._reading, twin._changing = state_lock()
        return twin


def _learner(spec: Spec, receipt: bool, classes: int) -> Learner:
    try:
        return _make_learner(spec, receipt, spec.dim, classes)
    except MemoryError:
        needed = table_bytes(spec, receipt) / 1e9
        raise OutOfMemory(
            f"bits= needs memory for the whole table, {needed:.3g} GB for {spec.dim} cells, got less from the system;"
            " use fewer bits= (each halves it) or a single scale=, or raise the memory limit (ulimit -v).",
            option=("bits", "scale"),
        ) from None


def table_bytes(spec: Spec, receipt: bool) -> int:
    """How much memory the table of an engine needs at most; pages that are never touched take none.

    >>> table_bytes(Spec(dim=2**20, scale=0.1), receipt=False) == 2**20 * 16
    True
    """
    return spec.dim * _make_learner(spec, receipt, 1).slot_bytes


def _make_learner(spec: Spec, receipt: bool, dim: int, classes: int = 0) -> Learner:
    return Learner(
        dim,
        classes if spec.classes else 1,
        float64=spec.float64,
        receipt=receipt,
        loss=spec.loss,
        scales=spec.scales,
        beta=spec.beta,
        l1=spec.l1,
        l2=spec.l2,
        lower=spec.lower,
        upper=spec.upper,
        intercept=spec.intercept,
        tau=spec.tau,
        share=None if isinstance(spec.share, str) else spec.share,
        capped=spec.share == "capped",
        stack=spec.stacked,
        levels=spec.level,
        coin=spec.coin,
        dense=spec.dense,
        classes=spec.classes,
        boxed=bool(spec.bounds),
        round_rows=spec.round_rows,
    )


def _columns(ranges: Mapping[str, tuple[int, int]]) -> dict[str, slice | int]:
    """From the first number and how many there are to what indexes an array; a single one is no list."""
    return {name: slice(first, first + count) if count else first for name, (first, count) in ranges.items()}


def _labelled(batch: Batch) -> tuple[Any, Any, Any, Any, Any]:
    return batch.indptr, batch.indices, batch.values, batch.y, batch.weight


def _column(scores: Vector) -> Any:
    """One score per row as the only column of an array with one column per output."""
    return scores[:, np.newaxis]


def _refusal(batch: Batch, error: ValueError) -> InvalidInput:
    where = f"{batch.origin}: " if batch.origin else ""
    if isinstance(error, RowError):
        return RowRefused(f"{where}row {error.row}", str(error), error.row)
    return InvalidInput(f"{where}{error}.")
