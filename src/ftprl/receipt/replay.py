"""A run learned again, row by row, by the compiled replay (src/core/replay), which shares no code with the learner.

What is here is bookkeeping: where cells are stored, which rows can be learned at once, and when scales or other
experts are dropped and classes join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import CompiledReplay
from ftprl.data import Batch
from ftprl.linear.mixture import experts_of, leader_of, next_review
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums
from ftprl.receipt.bounds_replay import BoundChange, BoundReplay
from ftprl.receipt.coordinates import AT_ONCE, Coordinates, played
from ftprl.receipt.replay_arrays import LABELS, WINDOW, ReplayArrays
from ftprl.receipt.replay_drops import dropped_experts, kept_scales

Vector = NDArray[np.float64]
_SETTINGS = ("loss", "tau", "beta", "l1", "l2", "lower", "upper", "intercept", "float64")


def settings_of(spec: Spec) -> dict[str, Any]:
    """Return the settings of a model as the compiled replay takes them."""
    experts = {"scales": list(spec.scales), "experts": list(experts_of(spec)), "coin_input": True}
    return {name: getattr(spec, name) for name in _SETTINGS} | experts


@final
class Replay:
    """A learner for `verify`, whose state has the names that it has in an `Engine`.

    With several classes `known` of them have a column from the start; any other loss has one column, its score. With
    `retire` scales and other experts are dropped where the learner drops them. Only tests switch `coin_input` off,
    and then the Newton experts do not see the score of the coin.
    """

    receipt = True

    def __init__(self, spec: Spec, *, retire: bool, known: int = 0, coin_input: bool = True) -> None:
        self.spec, self.retire, self.known, self._coin_input = spec, retire, known, coin_input
        self.loss = spec.scalar_loss()
        # Where a slot's cell is stored; 0 means nowhere yet.
        self._cell_number, self._met = np.zeros(spec.dim, np.int32), 1
        self._bounds = BoundReplay(spec) if spec.bounds else None
        self._has_met = False  # names are met before rows are learned
        self.arrays = ReplayArrays(spec, len(self.copies), coin_input=coin_input)

    # ---- the state that a certificate is computed from ----

    @property
    def copies(self) -> Vector:
        """How many classes each column stands for: one that is known, or all that may come."""
        if not self.loss.has_classes:
            return np.ones(1)
        return np.array([1.0] * self.known + ([float(self.classes_to_come)] if self.classes_to_come else []))

    @property
    def classes_to_come(self) -> int:
        """How many classes there may be that no row had and nobody has named: the last column stands for them."""
        return self.spec.classes - self.known if self.loss.has_classes else 0

    @property
    def counts_rows(self) -> bool:
        """Whether it is counted how many rows had each cell."""
        return self.spec.several or self.loss.has_classes

    @property
    def state(self) -> Mapping[str, Vector]:
        """The mixture, by name; one scale is its only expert."""
        mixture = {name[8:]: array for name, array in self.arrays.all.items() if name.startswith("mixture.")}
        return mixture or {"w": np.ones(1), "totals": self.tallies[:1]}

    @property
    def tallies(self) -> Vector:
        """Total loss, weight and number of the rows."""
        return self.arrays["tallies"]

    @property
    def calibration(self) -> Vector | None:
        """Rows, predicted probabilities and labels 1, in 20 bins of the probability."""
        return self.arrays.all.get("calibration")

    @property
    def intercept_columns(self) -> Vector:
        """z, R, S and kappa of the intercept, an array per column of classes with a number for each scale."""
        return self.arrays["base"].transpose(1, 0, 2)

    @property
    def progress(self) -> LossTotals:
        return LossTotals(float(self.tallies[0]), float(self.tallies[1]), int(self.tallies[2]))

    @property
    def leader(self) -> int:
        return leader_of(self.state, len(self.spec.scales))

    @property
    def label_unit(self) -> float:
        return float(self.arrays["labels"][LABELS.index("unit")]) if self.loss.has_units else 1.0

    def sums_of(self, scale: int | None = None) -> RegretSums:
        return RegretSums(*self.arrays["sums"][:3, self.leader if scale is None else scale].tolist())

    def rounding_sums(self, scale: int) -> RoundingSums:
        return RoundingSums(*[*self.arrays["sums"][3:, scale].tolist(), float(self.arrays["slopes"][scale])])

    def row_sums(self, scale: int) -> RowSums:
        if self.loss.has_units:
            return RowSums(*self.arrays["row_sums"][:, scale].tolist())
        own, loss = float(self.state["totals"][scale]), float(self.tallies[0])
        return RowSums(0.0, own, loss, float(self.tallies[1]), abs(own) + abs(loss))

    def touched(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._cell_number)

    def parts_at(self, slots: NDArray[np.integer[Any]]) -> Mapping[str, Any]:
        """The parts of some cells by name, those of all columns and scales in one row per cell."""
        at, names = self._cell_number[slots], ["z", "R", "S", "unit"]
        names += ["count"] if self.counts_rows else []
        names += ["kappa"] if self.loss.has_kink or (self.loss.has_units and not self.spec.several) else []
        parts = self.arrays.named([*names, "coin"])
        flat = {name: part.reshape(len(part), -1) if part.ndim > 1 else part for name, part in parts.items()}
        return {name: part[at] for name, part in flat.items()}  # in this order: there may be no cell at all

    def limits_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """Between which numbers the weights of some cells have to be."""
        if self._bounds is None:
            return np.full(len(slots), self.spec.lower), np.full(len(slots), self.spec.upper)
        at = self._cell_number[slots]
        return self.arrays["lower"][at], self.arrays["upper"][at]

    def weights(self, slots: NDArray[np.intp], scale: int) -> Vector:
        """The weights of some cells by the scale of this number: one row per class that is known, or one."""
        limits = tuple(np.repeat(ends, len(self.copies))[:, None] for ends in self.limits_at(slots))
        x = played(self._coordinates_at(slots), self.spec, limits[0], limits[1])
        return x[:, scale].reshape(-1, len(self.copies))[:, : self.known or 1].T

    def _coordinates_at(self, slots: NDArray[np.intp]) -> Coordinates:
        """The coordinates of some cells: one for each column of classes."""
        parts = {name: np.asarray(part, np.float64) for name, part in self.parts_at(slots).items()}
        copies, n = self.copies[:, None], len(slots)
        z, R, S = (parts[name].reshape(-1, len(self.spec.scales)) for name in "zRS")
        unit, kappa = (np.repeat(parts.get(name, np.ones(n)), len(copies))[:, None] for name in ("unit", "kappa"))
        rows = np.repeat(parts["count"], len(copies)) if self.counts_rows else None
        return Coordinates(np.repeat(slots, len(copies)), z, R, S, unit, kappa, rows, np.tile(copies, (n, 1)))

    def coordinates(self) -> Iterator[Coordinates]:
        """The coordinates that were learned, the intercept last."""
        slots, copies = self.touched(), self.copies[:, None]
        learned = self.arrays["count" if self.counts_rows else "unit"][self._cell_number[slots]] > 0
        slots, at_once = slots[learned], max(1, AT_ONCE // len(copies))
        for at in range(0, len(slots), at_once):
            yield self._coordinates_at(slots[at : at + at_once])
        if self.spec.intercept:
            z, R, S, kappa = self.arrays["base"]
            yield Coordinates(None, z, R, S, np.ones_like(copies), kappa[:, :1], None, copies)

    # ---- rows ----

    def learn(self, batch: Batch) -> tuple[Vector, Vector]:
        """Predict and then learn each row that has a label and a weight above 0; returns their losses and predictions.

        A label of several classes is the number of one, and so is a prediction, NaN before a class is known. With the
        log loss, where a loss reveals the prediction, the second is empty of meaning.
        """
        numbers = self._learn_bounded(batch)
        return numbers[0], numbers[1]

    def learn_offsets(self, batch: Batch) -> tuple[Vector, Vector]:
        """As `learn`; returns what the scores of each row are counted from, and what its weight is multiplied by.

        >>> replay = Replay(Spec(loss="squared", dim=2), retire=True)
        >>> replay.learn_offsets(Batch.from_rows([{0: 1.0}, {0: 1.0}], y=[3.0, 5.0]))[0].tolist()
        [0.0, 3.0]
        """
        numbers = self._learn_bounded(batch)
        return numbers[2], numbers[3]

    def _learn_bounded(self, batch: Batch) -> Vector:
        """Learn rows, each with the bounds of its time; returns four numbers for each that is learned."""
        learned = (batch.weight > 0) & (batch.y == batch.y)
        out = np.zeros((4, len(batch)))
        if self._bounds is None:
            self._learn(batch, out)
            return np.compress(learned, out, axis=1)
        changes = [] if self._has_met else self._bounds.changes(batch)
        cells, first = np.unique(batch.indices, return_index=True)
        begins = dict(zip(cells.tolist(), first.tolist(), strict=True))
        done = 0
        for change in changes:
            if begins.get(change.cell, len(batch.indices)) < batch.indptr[change.row]:  # an earlier row goes without
                self._learn(batch[done : change.row], out[:, done : change.row])
                done = max(done, change.row)
            self._bound(change)
        self._learn(batch[done:], out[:, done:])
        return np.compress(learned, out, axis=1)

    def meet_names(self, batch: Batch) -> None:
        """Note the names of rows that are learned later, in another order, which may bound weights."""
        self._has_met = True
        for change in [] if self._bounds is None else self._bounds.changes(batch):
            self._bound(change)

    def _bound(self, change: BoundChange) -> None:
        self._number_cells(np.array([change.cell], np.uint32))
        at = self._cell_number[change.cell]
        self.arrays["lower"][at], self.arrays["upper"][at] = change.lower, change.upper

    def score(self, batch: Batch) -> Vector:
        """Return the losses of rows that are predicted and not learned, all with a label and a weight."""
        out = np.zeros((4, len(batch)))
        cells, values = self._cell_number[batch.indices], batch.values.astype(np.float64)
        y = np.minimum(batch.y, len(self.copies) - 1.0) if self.loss.has_classes else batch.y
        self._core(self.known).pass_rows(False, *(batch.indptr, cells, values, y, batch.weight), *out)
        losses: Vector = out[0]
        return losses

    def _core(self, known_before: int) -> CompiledReplay:
        settings: dict[str, Any] = {"copies": self.copies.tolist(), "known_before": known_before, "known": self.known}
        settings |= {} if self._coin_input else {"coin_input": False}
        return CompiledReplay(settings_of(self.spec) | settings, self.arrays.all)

    def _learn(self, batch: Batch, out: Vector) -> None:
        learned = (batch.weight > 0) & (batch.y == batch.y)
        # The cells of rows that are not learned may have no place, and are not read.
        self._number_cells(np.unique(batch.indices[np.repeat(learned, np.diff(batch.indptr))]))
        at, values, done = self._cell_number[batch.indices], batch.values.astype(np.float64), 0
        while done < len(batch):
            known = self.known
            if self.loss.has_classes and learned[done] and batch.y[done] >= known:
                self._add_classes(int(batch.y[done]) + 1)
            end = done + self._rows_at_once(batch.y[done:], learned[done:])
            ends = batch.indptr[done : end + 1]
            entries, rows = slice(ends[0], ends[-1]), slice(done, end)
            self._core(known).pass_rows(
                True,
                *(ends - ends[0], at[entries], values[entries], batch.y[rows], batch.weight[rows]),
                *out[:, rows],
            )
            done = end
            self._review()

    def _rows_at_once(self, y: Vector, learned: NDArray[np.bool_]) -> int:
        """How many of some rows can be learned before a class joins, or something may be dropped."""
        count = len(y)
        if self.loss.has_classes:
            new = np.flatnonzero(learned & (y >= self.known))
            count = int(new[0]) if len(new) else count
        if self.retire and self.spec.several:
            rows = int(self.tallies[2])
            missing = next_review(rows, self.spec) - rows
            ends = np.flatnonzero(learned[:count])[:missing]
            count = int(ends[-1]) + 1 if len(ends) == missing else count
        return count

    def _add_classes(self, known: int) -> None:
        """Let so many classes be known; a new one starts as those that were not."""
        before, self.known = len(self.copies), known
        self.arrays.add_classes(len(self.copies) - before)

    def _number_cells(self, slots: NDArray[np.uint32]) -> None:
        """Give a place to cells that have none; `slots` are distinct."""
        new = slots[self._cell_number[slots] == 0]
        self._cell_number[new] = np.arange(self._met, self._met + len(new))
        self._met += len(new)
        while self._met > len(self.arrays["unit"]):
            self.arrays.double_cells()

    def _review(self) -> None:
        """Drop experts and scales, at the numbers of rows at which that is decided."""
        if not self.retire or not self.spec.several:
            return
        rows, names = int(self.tallies[2]), experts_of(self.spec)
        for name in dropped_experts(self.state, names, rows):
            self.arrays.drop_expert(name, experts_of(self.spec).index(name), len(self.spec.scales))
            dropped = (*self.spec.dropped_experts, name)
            self.spec = replace(self.spec, coin=self.spec.coin and name != "coin", dropped_experts=dropped)
        first = kept_scales(self.state, len(self.spec.scales), rows)
        if first is not None:
            self._drop_scales(first, rows)

    def _drop_scales(self, first: int, rows: int) -> None:
        """Drop all scales but four neighbours, from number `first` on."""
        scales = self.spec.scales
        kept = scales[first : first + WINDOW]
        retired = tuple(sorted({*self.spec.retired, *scales} - {*kept}))
        self.spec = replace(self.spec, scale=kept, retired=retired, retired_row=rows)
        self.arrays.drop_scales(len(scales), first)
