"""The compiled learner behind a typed door: batches in, scores and progress out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl._core import Baseline, Learner, ScaleLearner
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear.mixture import (
    WINDOW,
    Cells,
    Mixture,
    columns_of,
    is_review,
    leader_of,
    mixture_of,
    move,
    next_review,
    parts_of,
    window_of,
)
from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class LossTotals:
    """The loss of some rows, each before it was learned: the weighted sum, the total weight, the number of rows.

    `baseline` is the loss of the same rows when each is predicted from the labels before it alone (NaN when it is not
    known), and `least` the least loss that any predictions could have: 0 but for the losses of counts.
    """

    loss: float
    weight: float
    rows: int
    baseline: float = field(default=float("nan"), compare=False)
    least: float = field(default=0.0, compare=False)

    @property
    def mean(self) -> float:
        """The loss per unit of weight; NaN before the first row."""
        return self.loss / self.weight if self.weight else float("nan")

    def __add__(self, other: LossTotals) -> LossTotals:
        """Of these rows and others."""
        return LossTotals(
            self.loss + other.loss,
            self.weight + other.weight,
            self.rows + other.rows,
            self.baseline + other.baseline,
            self.least + other.least,
        )

    @property
    def baseline_mean(self) -> float:
        """The loss of the baseline per unit of weight; NaN when it is not known."""
        return self.baseline / self.weight if self.weight else float("nan")

    @property
    def improvement(self) -> float:
        """How much better than the baseline, in percent: 100 (baseline - loss) / (baseline - least).

        0 is as good as the baseline, 100 as good as possible; NaN when there is no baseline.
        """
        return improvement(self.loss, self.baseline, self.least)

    def to_dict(self) -> dict[str, float]:
        """The loss, weight and rows, and the mean."""
        return {"loss": self.loss, "weight": self.weight, "rows": self.rows, "mean": self.mean}


def improvement(loss: float, baseline: float, least: float = 0.0) -> float:
    """How much less a loss is than that of the baseline, in percent of what can be gained at all.

    >>> improvement(1.5, 2.0)
    25.0
    """
    possible = baseline - least
    return 100.0 * ((baseline - loss) / possible) if possible > 0.0 else float("nan")


@final
@dataclass(frozen=True, slots=True)
class RegretSums:
    """What a receipt adds up over all rows: g·x, sigma x² and g² / (Q + l2), each over every coordinate."""

    linear: float
    proximal: float
    stability: float


@final
class RowRefused(InvalidInput):
    """A row that cannot be learned; `row` is its number in the stream."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@final
class Engine:
    """A table of cells that learns row by row: predict, pay, learn.

    >>> engine = Engine(Spec(loss="squared", dim=4))
    >>> batch = Batch.from_rows([{0: 1.0}, {0: 1.0}], y=[1, 1])
    >>> engine.learn(batch).rows
    2
    """

    def __init__(self, spec: Spec, *, receipt: bool = False, retire: bool = True) -> None:
        check.instance("spec", spec, Spec)
        self._spec = spec
        self._receipt = receipt
        self.retire = retire  # whether scales that no longer contribute are dropped
        self._core = _core(spec, receipt)
        self._baseline = Baseline(spec.loss, spec.tau)

    @property
    def spec(self) -> Spec:
        """The settings; once scales have been dropped, those that are left, with the others in `spec.retired`."""
        return self._spec

    @property
    def receipt(self) -> bool:
        """Whether the sums of a receipt are kept."""
        return self._receipt

    @property
    def cells(self) -> Cells:
        """The state, a row a cell, which cannot be written to: z, sqrt(G), M, g_{1:t}. A copy with several scales.

        With several scales: z and sqrt(G) of each, filled up to a multiple of four, the unit s and the count N, and
        with a receipt g_{1:t}; `parts` gives them by name. `take` copies some cells only, `put` overwrites them.
        """
        if isinstance(self._core, ScaleLearner):
            cells = self.take(np.arange(self._spec.dim, dtype=np.uint32))
        else:
            cells = self._core.cells
        cells.flags.writeable = False
        return cells

    @property
    def parts(self) -> dict[str, Cells]:
        """The cells by name: z, R = sqrt(G), S = g_{1:t}, and M. A copy with several scales.

        With several scales s and N instead of M, and S with a receipt only.
        """
        return self._parts(self.cells)

    def parts_at(self, slots: NDArray[np.integer[Any]]) -> dict[str, Cells]:
        """The same of some cells, a copy."""
        return self._parts(self.take(slots))

    def _parts(self, cells: Cells) -> dict[str, Cells]:
        if isinstance(self._core, ScaleLearner):
            return parts_of(cells, self._core.lanes, len(self._spec.scales), self._receipt)
        return {name: cells[:, i] for i, name in enumerate("zRMS")}

    def take(self, slots: NDArray[np.integer[Any]]) -> Cells:
        """A copy of some cells, a row each."""
        some = self._checked(slots)
        if not isinstance(self._core, ScaleLearner):
            return self._core.cells.take(some, axis=0)
        shape = (len(some), self._core.width)
        out: Cells = np.empty(shape, np.float64) if self._spec.float64 else np.empty(shape, np.float32)
        self._core.take(some, out)
        return out

    def put(self, slots: NDArray[np.integer[Any]], cells: Cells) -> None:
        """Overwrite some cells with rows as `take` gives them; each slot once."""
        some = self._checked(slots)
        rows: Any = np.ascontiguousarray(cells, self._kind)
        width = self._core.width if isinstance(self._core, ScaleLearner) else 4
        if rows.shape != (len(some), width):
            raise InvalidInput(f"cells need the shape ({len(some)}, {width}), got {rows.shape}; pass a row a slot.")
        if isinstance(self._core, ScaleLearner):
            self._core.put(some, rows)
        elif len(some):  # whole rows at once, which is quicker
            row = np.dtype(f"V{width * rows.itemsize}")
            self._core.cells.view(row)[:, 0][some] = rows.view(row)[:, 0]

    @property
    def _kind(self) -> type[np.float32] | type[np.float64]:
        return np.float64 if self._spec.float64 else np.float32

    def _checked(self, slots: NDArray[np.integer[Any]]) -> NDArray[np.uint32]:
        """Slots of this table, or none."""
        some = np.asarray(slots)
        whole = some.ndim == 1 and (some.dtype.kind in "iu" or some.size == 0)
        if not whole or (some.size and not 0 <= int(some.min()) <= int(some.max()) < self._spec.dim):
            raise InvalidInput(
                f"slots need a list of whole numbers from 0 to {self._spec.dim - 1}, got {slots!r:.80}; pass those."
            )
        return np.ascontiguousarray(some, np.uint32)

    @property
    def columns(self) -> dict[str, slice | int]:
        """The columns of `cells` as a model file has them: by name with several scales, otherwise all as one."""
        if isinstance(self._core, ScaleLearner):
            return columns_of(self._core.lanes, len(self._spec.scales), self._receipt)
        return {"cells": slice(None)}

    @property
    def intercept(self) -> Vector:
        """The same four numbers for the intercept, always float64. A view.

        With several scales: z, sqrt(G) and g_{1:t}, a row each and a column a scale.
        """
        return self._core.intercept

    @property
    def state(self) -> dict[str, Vector]:
        """Views of what the mixture of several scales remembers, by name (docs/model-file.md); empty with one scale."""
        return self._core.mixture if isinstance(self._core, ScaleLearner) else {}

    @property
    def mixture(self) -> Mixture | None:
        """The weights and total losses of the scales and the stack; None with one scale."""
        return mixture_of(self.state, self._spec.scales, self._spec.stacked) if self._spec.several else None

    @property
    def leader(self) -> int:
        """The number of the scale with the largest weight in the mixture; the stack does not count."""
        return leader_of(self.state, len(self._spec.scales)) if self._spec.several else 0

    @property
    def tallies(self) -> Vector:
        """The numbers behind `progress` and `sums`, in their order. A view."""
        return self._core.tallies

    @property
    def calibration(self) -> Vector | None:
        """Weight, probabilities and positives of each twentieth of [0, 1]: log loss with a receipt. A view."""
        return self._core.calibration if self._receipt and self._spec.scalar_loss().is_probabilistic else None

    @property
    def progress(self) -> LossTotals:
        """Of all rows so far; the same bits however they were cut into batches."""
        loss, weight, rows = self._core.tallies[:3].tolist()
        return LossTotals(loss, weight, int(rows), self._baseline.total, float(self._baseline.numbers[2]))

    @property
    def baseline(self) -> LossTotals:
        """The loss of predicting each row from the labels before it alone, of the same rows as `progress`.

        The prediction is the base rate (n1 + 1/2) / (n + 1) for log loss, the mean for squared and Huber loss, its
        logarithm for Poisson loss, a running median or quantile for absolute and quantile loss, and the majority class
        for the hinge losses. NaN for a model that was saved without it.
        """
        now = self.progress
        return LossTotals(now.baseline, now.weight, now.rows, now.baseline, now.least)

    @property
    def baseline_state(self) -> Vector:
        """The numbers behind `baseline` (docs/model-file.md). A view."""
        return self._baseline.numbers

    @property
    def sums(self) -> RegretSums:
        """What a receipt needs besides the cells, of the leading scale; zeros without one."""
        return self.sums_of()

    def sums_of(self, scale: int | None = None) -> RegretSums:
        """The sums of one scale; of the leading one if none is named."""
        k = self._number(scale)
        return RegretSums(*(self.state["sums"][:, k] if self._spec.several else self._core.tallies[3:]).tolist())

    def own_sums(self, slots: NDArray[np.integer[Any]] | None = None) -> Vector:
        """The sums of `ledger.read` against the leading scale's weights, intercept left out; of some cells, or all."""
        out = np.empty((7, len(self._spec.scales)))
        cells = None if slots is None else self._checked(slots).astype(np.int64)
        if isinstance(self._core, ScaleLearner):
            self._core.ledger(out, self.leader, cells)
        else:
            self._core.ledger(out, cells)
        return out

    def own_groups(self, scale: int) -> Vector:
        """Number, -S·u, penalty and D·R of cells by how often they were seen, in powers of two from 2^-20 on."""
        out = np.empty((128, 4))
        if isinstance(self._core, ScaleLearner):
            self._core.groups(out, self.leader, scale)
        else:
            self._core.groups(out)
        return out

    def touched(self) -> NDArray[np.uint32]:
        """Which cells have been touched."""
        found = np.empty(self._spec.dim, dtype=np.uint32)  # its pages are taken up only where something is written
        return found[: self._core.touched(found)]

    def learn(
        self, batch: Batch, *, scores: Vector | None = None, losses: Vector | None = None, held: Vector | None = None
    ) -> LossTotals:
        """Predict and then learn each row that has a label and a weight above 0; the others are only scored.

        `scores` and `losses` are filled with a number a row when they are given: the prediction before the row was
        learned, and its loss without the weight (NaN without a label). A row at fault is refused with its number, and
        then no row of the batch has been learned. `held` gets two numbers per row: the baseline's loss on a row with
        a label that is not learned, and the least loss any prediction of it could have; NaN for other rows.

        With more than four scales, those that no longer contribute are dropped, unless `retire` is off. It is decided
        after row 2^17 and at each later power of two of the rows learned, however they are cut into batches.
        """
        check.instance("batch", batch, Batch)
        start = self._rows_until_review(batch)
        totals = self._learn(batch[:start], scores, losses, held, slice(0, start))
        self._review_scales()
        while start < len(batch):
            stop = start + self._rows_until_review(batch[start:])
            totals = totals + self._learn(batch[start:stop], scores, losses, held, slice(start, stop))
            self._review_scales()
            start = stop
        return totals

    def _learn(
        self, batch: Batch, scores: Vector | None, losses: Vector | None, held: Vector | None, rows: slice
    ) -> LossTotals:
        """Learn some rows, whose numbers in `scores`, `losses` and `held` are `rows`."""
        if scores is not None and rows != slice(0, len(scores)):
            scores = scores[rows]
        if losses is not None and rows != slice(0, len(losses)):
            losses = losses[rows]
        arrays = (batch.indptr, batch.indices, batch.values, batch.y, batch.weight)
        try:
            totals = LossTotals(*self._core.learn(*arrays, scores, losses, batch.first_row))
        except ValueError as wrong:
            raise _named(batch, wrong) from None
        self._baseline.learn(batch.y, batch.weight, None if held is None else held[rows])
        return totals

    def score(self, batch: Batch) -> Vector:
        """x·v for each row, with the weights as they are: what `weights()` and the intercept say.

        With several scales the mixture's score: its log-odds with log loss, otherwise the mixed prediction.
        """
        check.instance("batch", batch, Batch)
        scores = np.empty(len(batch))
        try:
            self._core.score(batch.indptr, batch.indices, batch.values, scores, batch.first_row)
        except ValueError as wrong:
            raise _named(batch, wrong) from None
        return scores

    def weights(self, scale: int | None = None) -> Vector:
        """The point x played in each cell, by the scale of this number; by the leading one if none is named."""
        k = self._number(scale)
        x = np.empty(self._spec.dim)
        if isinstance(self._core, ScaleLearner):
            self._core.weights(x, k)
        else:
            self._core.weights(x)
        return x

    def bias(self, scale: int | None = None) -> float:
        """The point played for the intercept, as in `weights`; 0 without one."""
        k = self._number(scale)
        if not self._spec.several:
            return float(self.score(Batch.from_rows([()]))[0])
        z, R, _ = self._core.intercept[:, k].tolist()
        hold = self._spec.beta + R
        return -z * self._spec.scales[k] / hold if self._spec.intercept and hold > 0 else 0.0

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
        missing = next_review(learned) - learned
        if len(batch) < missing:
            return len(batch)
        counted = np.flatnonzero((batch.weight > 0.0) & (batch.y == batch.y))
        return len(batch) if len(counted) < missing else int(counted[missing - 1]) + 1

    def _may_drop_scales(self) -> bool:
        return self.retire and len(self._spec.scales) > WINDOW

    def _review_scales(self) -> None:
        """Drop scales if this is a row number at which it is decided and four neighbours do as well as all."""
        if not self._may_drop_scales():
            return
        rows = self.progress.rows
        first = window_of(self.state, len(self._spec.scales), rows) if is_review(rows) else None
        if first is not None:
            self.keep_scales(first)

    def keep_scales(self, first: int) -> None:
        """Drop all scales but the four neighbours from number `first` on; what these have learned stays as it is."""
        scales = self._spec.scales
        if not 0 <= self._number(first) <= len(scales) - WINDOW:
            raise InvalidInput(
                f"first needs a number from 0 to {len(scales) - WINDOW}, got {first!r}; {WINDOW} scales are kept."
            )
        kept = scales[first : first + WINDOW]
        retired = tuple(sorted({*self._spec.retired, *scales} - {*kept}))
        fewer = Engine(replace(self._spec, scale=kept, retired=retired), receipt=self._receipt, retire=self.retire)
        assert isinstance(self._core, ScaleLearner)
        assert isinstance(fewer._core, ScaleLearner)
        fewer._core.take_lanes(self._core, first, True)
        fewer.intercept[...] = self.intercept[:, first : first + WINDOW]
        fewer.tallies[...] = self.tallies
        fewer._core.calibration[...] = self._core.calibration
        move(self.state, fewer.state, first, self._spec.stacked)
        self._spec, self._core = fewer._spec, fewer._core

    def copy(self) -> Engine:
        """A second engine in the same state."""
        twin = object.__new__(Engine)
        twin._spec, twin._receipt, twin.retire = self._spec, self._receipt, self.retire
        twin._core = self._core.copy()
        twin._baseline = self._baseline.copy()
        return twin


def _core(spec: Spec, receipt: bool) -> Learner | ScaleLearner:
    if not spec.several:
        return Learner(
            spec.dim,
            float64=spec.float64,
            receipt=receipt,
            loss=spec.loss,
            scale=spec.scales[0],
            beta=spec.beta,
            l1=spec.l1,
            l2=spec.l2,
            lower=spec.lower,
            upper=spec.upper,
            intercept=spec.intercept,
            tau=spec.tau,
        )
    return ScaleLearner(
        spec.dim,
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
    )


def _named(batch: Batch, wrong: ValueError) -> InvalidInput:
    where = f"{batch.origin}: " if batch.origin else ""
    found = re.match(r"row (\d+): ", str(wrong))
    message = f"{where}{wrong}."
    return RowRefused(message, int(found[1])) if found else InvalidInput(message)
