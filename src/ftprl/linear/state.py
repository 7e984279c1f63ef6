"""What a learner knows besides its cells: losses, mixture, baseline, labels and the sums of a receipt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl._core import Baseline
from ftprl.errors import InvalidInput
from ftprl.linear.mixture import WINDOW, Mixture, mixture_of, restart
from ftprl.linear.spec import Spec
from ftprl.linear.table import CellTable, reads
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums

Vector = NDArray[np.float64]
MOST_DENSE = 64  # columns that the stack sees
LABEL_NUMBERS = (
    *("rows", "weight", "mean", "squares", "least", "most", "quantile", "since", "pinball", "deviation"),
    *("offset", "unit", "lowest", "highest", "psi", "kappa", "outliers"),
)  # as in src/core/learners/labels.hpp


class LearnerState(CellTable):
    """A table of cells with its mixture of scales, and what was added up over the rows so far."""

    def __init__(self, spec: Spec, *, receipt: bool = False, classes: int = 0) -> None:
        super().__init__(spec, receipt=receipt, classes=classes)
        self._baseline = Baseline(spec.loss, spec.tau, spec.classes)

    @property
    @reads
    def mixture(self) -> Mixture | None:
        """The weights and total losses of the experts; None with one scale, which mixes nothing."""
        return mixture_of(self.state, self._spec) if self._spec.several or self._spec.coin else None

    @property
    @reads
    def calibration_knots(self) -> Vector | None:
        """Log-odds before and after isotonic calibration, one row per bin; None without it.

        Between two rows the calibrated log-odds are interpolated, beyond the first and the last a constant is added.
        """
        if self._spec.calibrate != "isotonic":
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
        is_log_loss = not self._spec.scalar_loss().has_units
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
        return arrays | ({"baseline.classes": self._class_weights} if self._spec.classes else {})

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

    @reads
    def own_sums(self, slots: NDArray[np.integer[Any]] | None = None) -> Vector:
        """The sums of `StreamLedger` against the leading scale's weights, intercept left out; of some cells, or all."""
        out = np.empty((1, 10, len(self._spec.scales)))
        cells = None if slots is None else self._checked(slots).astype(np.int64)
        self._core.ledger(out, self.leader, cells)
        return np.asarray(out[0])

    @reads
    def own_groups(self, scale: int) -> Vector:
        """Number, -S·u, penalty and D·R of cells by how often they were seen, in powers of two from 2^-20 on."""
        out = np.empty((1, 128, 4))
        self._core.groups(out, self.leader, scale)
        return np.asarray(out[0])

    def expect_columns(self, columns: int, inputs: int) -> None:
        """Before `saved_arrays` are filled: so many dense columns, and so many inputs of a stack that sees them."""
        own = 1 if self._spec.classes else len(self._spec.scales) + 1
        if not 0 <= columns <= MOST_DENSE or not (inputs == 0 or own <= inputs <= own + columns):
            raise InvalidInput(f"dense.u of {inputs} numbers for {columns} columns")
        self._core.expect_columns(columns, inputs)

    @staticmethod
    def columns_of(arrays: Mapping[str, NDArray[Any]]) -> tuple[int, int]:
        """What `expect_columns` needs for these arrays of a file, or of another engine."""
        inputs = arrays["dense.class_u"].shape[-1] if "dense.class_u" in arrays else len(arrays.get("dense.u", ()))
        return len(arrays.get("dense.columns", ())), inputs

    def drop_expert(self, name: str) -> None:
        """Drop an expert that is no scale; the others share its weight."""
        with self._changing:
            self._core.drop_expert(name)
            dropped = (*self._spec.dropped_experts, name)
            self._spec = replace(self._spec, coin=self._spec.coin and name != "coin", dropped_experts=dropped)

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
            rows = self.progress.rows
            self._spec = replace(self._spec, scale=kept, retired=retired, retired_row=rows)
