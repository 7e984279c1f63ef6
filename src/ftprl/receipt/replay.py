"""A run learned again, row by row: by compiled code of its own, or with NumPy alone, all scales of a row at once.

The arithmetic is that of the compiled kernels, in the same order, so that the numbers are theirs to the bit; nothing
here calls them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.mixture import WINDOW, has_lost, is_review, leader_of, mixture_of, move, next_review, window_of
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums
from ftprl.receipt.bounds_replay import BoundReplay
from ftprl.receipt.cell_replay import LARGEST, CellArithmetic, raised_unit
from ftprl.receipt.compiled_replay import compiled, label_numbers, set_label_numbers
from ftprl.receipt.coordinates import AT_ONCE, Coordinates
from ftprl.receipt.expert_replay import Additions
from ftprl.receipt.label_mixture_replay import LabelMixing
from ftprl.receipt.label_replay import LabelFacts, LabelledRow, formulas_of, learn_row_label, row_sums
from ftprl.receipt.mixture_replay import Mixing

Vector = NDArray[np.float64]
_BINS = 20
_FIRST_CELLS = 1 << 12
CUT = {np.float32: 2.0**96, np.float64: 2.0**400}


def _doubled(a: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([a, np.zeros_like(a)])


def total(terms: Vector) -> Vector:
    """A sum over the entries of a row for each scale: every fourth term from the first, the second, ... on."""
    n, K = terms.shape
    whole = np.zeros((-(-n // 4) * 4, K))
    whole[:n] = terms
    a, b, c, d = np.add.reduce(whole.reshape(-1, 4, K), axis=0)
    total: Vector = (a + b) + (c + d)
    return total


@final
class _Column:
    """One part of all cells, by slot; only cells that were learned are stored."""

    def __init__(self, array: NDArray[Any], cell_number: NDArray[np.int32]) -> None:
        self._array, self._cell_number = array, cell_number

    def __getitem__(self, slots: NDArray[np.intp]) -> NDArray[Any]:
        values: NDArray[Any] = self._array[self._cell_number[slots]]
        return values


class Replay:
    """A learner with one scale or several, whose state has the names that it has in an `Engine`."""

    receipt = True

    def __init__(self, spec: Spec, *, retire: bool, numpy: bool = False) -> None:
        self.spec, self.retire, self.numpy = spec, retire, numpy
        self.kind: type[np.floating[Any]] = np.float64 if spec.float64 else np.float32
        self.loss = spec.scalar_loss()
        self.tallies = np.zeros(3)
        self.calibration = np.zeros((_BINS, 3)) if self.loss.is_probabilistic else None
        K = len(spec.scales)
        # Where a slot's cell is stored; 0 means nowhere yet.
        self._cell_number, self._met = np.zeros(spec.dim, np.int32), 1
        self._table = {name: np.zeros((_FIRST_CELLS, K), self.kind) for name in "zR"}
        self._table["S"] = np.zeros((_FIRST_CELLS, K))
        self._unit, self._count, self._kappa = (np.zeros(_FIRST_CELLS, self.kind) for _ in range(3))
        self._bounds = BoundReplay(spec) if spec.bounds else None
        self._lower, self._upper = np.full(_FIRST_CELLS, spec.lower), np.full(_FIRST_CELLS, spec.upper)
        self._base = np.zeros((4, K))  # z, R, S and kappa
        self._sums = np.zeros((6, K))  # RegretSums, and the first three of RoundingSums
        self._slopes = np.zeros(K)
        self._row_sums = np.zeros((5, K))
        self._labelled = self.loss.has_units
        self.additions = Additions.of(spec, self.kind, _FIRST_CELLS)
        self.mixing: Mixing | LabelMixing | None = None
        if K > 1:
            self.mixing = (LabelMixing if self._labelled else Mixing)(spec, self.additions)
        self._own_facts = LabelFacts(self.loss)
        self._least_kappa = float(np.finfo(self.kind).tiny)
        if not self._labelled:
            self._base[3] = 1.0
        self._cells = CellArithmetic(self.spec)

    # ---- the state that a certificate is computed from ----

    @property
    def parts(self) -> Mapping[str, Any]:
        units = {"unit": self._unit, "count": self._count} if self.counts_rows else {"unit": self._unit}
        if self._labelled and (self.loss.has_kink or self.mixing is None):
            units["kappa"] = self._kappa
        if self.additions.coin is not None:
            units["coin"] = self.additions.coin.cells
        return {name: _Column(array, self._cell_number) for name, array in {**self._table, **units}.items()}

    def parts_at(self, slots: NDArray[np.integer[Any]]) -> Mapping[str, Any]:
        return {name: column[slots] for name, column in self.parts.items()}

    @property
    def intercept(self) -> Vector:
        """z, R, S and kappa of the intercept, one row each with one column per scale."""
        return self._base

    @property
    def intercept_columns(self) -> Vector:
        """The same as the only one of an array with one per column of classes."""
        return self._base[np.newaxis]

    @property
    def copies(self) -> Vector:
        """How many classes each column stands for: there is one score."""
        return np.ones(1)

    @property
    def state(self) -> Mapping[str, Vector]:
        return {"w": np.ones(1), "totals": self.tallies[:1]} if self.mixing is None else self.mixing.state

    @property
    def progress(self) -> LossTotals:
        return LossTotals(float(self.tallies[0]), float(self.tallies[1]), int(self.tallies[2]))

    @property
    def leader(self) -> int:
        return leader_of(self.state, len(self.spec.scales))

    @property
    def counts_rows(self) -> bool:
        return self.mixing is not None

    @property
    def label_unit(self) -> float:
        return self.facts.unit if self._labelled else 1.0

    def sums_of(self, scale: int | None = None) -> RegretSums:
        return RegretSums(*self._sums[:3, self.leader if scale is None else scale].tolist())

    def rounding_sums(self, scale: int) -> RoundingSums:
        return RoundingSums(*[*self._sums[3:, scale].tolist(), float(self._slopes[scale])])

    def row_sums(self, scale: int) -> RowSums:
        if self._labelled:
            return RowSums(*self._row_sums[:, scale].tolist())
        own, loss = float(self.state["totals"][scale]), float(self.tallies[0])
        return RowSums(0.0, own, loss, float(self.tallies[1]), abs(own) + abs(loss))

    def touched(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._cell_number)

    def limits_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """Between which numbers the weights of some cells have to be."""
        at = self._cell_number[slots]
        return self._lower[at], self._upper[at]

    def weights(self, slots: NDArray[np.intp], scale: int) -> Vector:
        """The weights of some cells, by the scale of this number."""
        parts = {name: column[slots].astype(np.float64) for name, column in self.parts.items()}
        unit = parts["unit"][:, None]
        kappa = parts["kappa"][:, None] if "kappa" in parts else np.ones_like(unit)
        limits = (ends[:, None] for ends in self.limits_at(slots))
        return np.asarray(self._cells.played(parts["z"], parts["R"], unit, kappa, *limits)[:, scale])

    def coordinates(self) -> Iterator[Coordinates]:
        """The coordinates that were learned, the intercept last."""
        slots = self.touched()
        for at in range(0, len(slots), AT_ONCE):
            some = slots[at : at + AT_ONCE]
            parts = {name: np.asarray(part, np.float64) for name, part in self.parts_at(some).items()}
            rows, unit = parts.get("count"), parts["unit"]
            learned = (unit if rows is None else rows) > 0
            z, R, S = (parts[name][learned] for name in "zRS")
            kappa = parts.get("kappa", np.ones_like(unit))[learned][:, None]
            often = None if rows is None else rows[learned]
            yield Coordinates(some[learned], z, R, S, unit[learned][:, None], kappa, often)
        if self.spec.intercept:
            z, R, S, kappa = self.intercept
            yield Coordinates(None, z[None], R[None], S[None], np.ones((1, 1)), kappa[None, :1], None)

    # ---- rows ----

    def learn(self, batch: Batch) -> tuple[Vector, Vector]:
        """Predict and then learn each row that has a label and a weight above 0; returns their losses and predictions.

        With the log loss, where a loss tells the prediction, the second is empty of meaning.
        """
        learned = (batch.weight > 0) & (batch.y == batch.y)
        out = np.zeros((2, len(batch)))
        if self._bounds is None:
            self._learn(batch, out)
            return out[0, learned], out[1, learned]
        changes = self._bounds.changes(batch)
        cells, first = np.unique(batch.indices, return_index=True)
        begins = dict(zip(cells.tolist(), first.tolist(), strict=True))
        done = 0
        for change in changes:
            if begins.get(change.cell, len(batch.indices)) < batch.indptr[change.row]:  # an earlier row goes without
                self._learn(batch[done : change.row], out[:, done : change.row])
                done = max(done, change.row)
            at = self._cell_numbers(np.array([change.cell], np.uint32))
            self._lower[at], self._upper[at] = change.lower, change.upper
        self._learn(batch[done:], out[:, done:])
        return out[0, learned], out[1, learned]

    def _learn(self, batch: Batch, out: Vector) -> None:
        learned = (batch.weight > 0) & (batch.y == batch.y)
        if self.numpy:
            return self._learn_with_numpy(batch, np.flatnonzero(learned), out)
        at, done = self._all_cell_numbers(batch, learned), 0
        while done < len(batch):  # up to the next row after which scales may be dropped
            end = done + self._until_review(learned[done:])
            self._learn_compiled(batch[done:end], at[batch.indptr[done] : batch.indptr[end]], out[:, done:end])
            done = end
            self._review()
        return None

    def _until_review(self, learned: NDArray[np.bool_]) -> int:
        """How many of some rows may be learned at once."""
        if not self.retire or self.mixing is None:
            return len(learned)
        rows = int(self.tallies[2])
        missing = next_review(rows, coin=self.spec.coin) - rows
        ends = np.flatnonzero(learned)[:missing]
        return int(ends[-1]) + 1 if len(ends) == missing else len(learned)

    def _all_cell_numbers(self, batch: Batch, learned: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Where the cells of all entries stand; those of rows that are not learned may have none, and are not read."""
        slots = batch.indices[np.repeat(learned, np.diff(batch.indptr))]
        self._cell_numbers(np.unique(slots[self._cell_number[slots] == 0]))
        return self._cell_number[batch.indices]

    def _learn_compiled(self, batch: Batch, at: NDArray[np.int32], out: Vector) -> None:
        values, labels = batch.values.astype(np.float64), label_numbers(self.facts)
        core = compiled(self.spec, self._arrays(labels))
        core.learn(batch.indptr - batch.indptr[0], at, values, batch.y, batch.weight, out[0], out[1])
        set_label_numbers(self.facts, labels)

    def _arrays(self, labels: Vector) -> dict[str, Any]:
        """All that the compiled replay writes to."""
        own = {**self._table, "unit": self._unit, "count": self._count, "kappa": self._kappa, "labels": labels}
        own |= {"tallies": self.tallies, "sums": self._sums, "slopes": self._slopes, "row_sums": self._row_sums}
        own |= {} if self._bounds is None else {"lower": self._lower, "upper": self._upper}
        own |= {"base": self._base} | ({} if self.calibration is None else {"calibration": self.calibration})
        return own if self.mixing is None else {**self.mixing.state, **self.additions.arrays(), **own}

    def _learn_additions(self, at: NDArray[np.int32], v: Vector) -> None:
        if self.mixing is not None:
            units, seen = self._unit[at].astype(np.float64), self._count[at].astype(np.float64)
            self.additions.learn(at, v, int(self.tallies[2]), units, seen, self.mixing.state)

    def _learn_with_numpy(self, batch: Batch, learned: NDArray[np.intp], out: Vector) -> None:
        ends, values = batch.indptr.tolist(), batch.values.astype(np.float64)
        for r in learned.tolist():
            row = slice(ends[r], ends[r + 1])
            at = self._cell_numbers(batch.indices[row])
            out[:, r] = self._row(at, values[row], float(batch.y[r]), float(batch.weight[r]))
            self._review()

    def _cell_numbers(self, slots: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Where the cells of a row stand; new ones get a place."""
        at: NDArray[np.int32] = self._cell_number[slots]
        if not at.all():
            new = slots[at == 0]
            self._cell_number[new] = np.arange(self._met, self._met + len(new))
            self._met += len(new)
            while self._met > len(self._unit):
                self._unit, self._count = _doubled(self._unit), _doubled(self._count)
                self._kappa = _doubled(self._kappa)
                self._lower = np.concatenate([self._lower, np.full(len(self._lower), self.spec.lower)])
                self._upper = np.concatenate([self._upper, np.full(len(self._upper), self.spec.upper)])
                if self.additions.coin is not None:
                    self.additions.coin.cells = _doubled(self.additions.coin.cells)
                self._table = {name: _doubled(table) for name, table in self._table.items()}
            at = self._cell_number[slots]
        return at

    def _row(self, at: NDArray[np.int32], v: Vector, y: float, weight: float) -> tuple[float, float]:
        prediction = 0.0
        before = self._unit[at]
        unit = self._raised(at, np.abs(v))[:, None]
        z, R = self._table["z"][at].astype(np.float64), self._table["R"][at].astype(np.float64)
        kappa = self._kappa[at].astype(np.float64)[:, None] if self.loss.has_kink else np.ones_like(unit)
        limits = self._lower[at][:, None], self._upper[at][:, None]
        x, column = self._cells.played(z, R, unit, kappa, *limits), v[:, None]
        scores = total(x * column)
        if self._labelled:
            scores = scores + self.facts.offset
        base = self._cells.played_base(*self._base[[0, 1, 3]]) if self.spec.intercept else None
        scores = scores if base is None else scores + base
        self.additions.read(at, v)
        self.tallies[2] += 1.0
        if self._labelled:
            reach = total((column * column) * self._cells.rate(R, unit))
            if base is not None:
                reach = reach + self._cells.rate(self._base[1], np.ones(1))
            prediction, value, unweighted = self._learn_label(scores.tolist(), reach.tolist(), y, weight)
        else:
            value = self._mixed_loss(scores.tolist(), y, weight)
            unweighted = np.array([self.loss.slope(s, y) for s in scores.tolist()])
        if unweighted is not None:
            slopes = weight * unweighted
            terms = self._stepped(at, z, R, unit, kappa, x, slopes * column, column != 0.0)
            sums = [total(a) for a in terms]
            if base is not None:
                own = self._stepped_base(base, slopes)
                sums = [a + b for a, b in zip(sums, own, strict=True)]
            self._sums += sums
            self._slopes += np.abs(slopes)
        elif self.mixing is None:
            self._unit[at] = before  # one scale: such a row leaves its cells alone
        self._learn_additions(at, v)
        self._settle(value, y, weight)
        return value, prediction

    def _settle(self, value: float, y: float, weight: float) -> None:
        """Add up the loss of a row, and where its predicted probability was."""
        self.tallies[:2] += [weight * value, weight]
        if self.calibration is not None:
            chance = math.exp(-value)
            p = chance if y > 0 else 1.0 - chance
            self.calibration[min(int(p * _BINS), _BINS - 1)] += [weight, weight * p, weight if y > 0 else 0.0]

    @property
    def facts(self) -> LabelFacts:
        """What is known of the labels."""
        return self.mixing.facts if isinstance(self.mixing, LabelMixing) else self._own_facts

    def _learn_label(
        self, scores: list[float], reach: list[float], y: float, weight: float
    ) -> tuple[float, float, Vector | None]:
        """The prediction, its loss, and the slopes for a row of weight 1; None where only the label is learned."""
        if isinstance(self.mixing, LabelMixing):
            prediction, value, row = self.mixing.learn(scores, y, weight, int(self.tallies[2]))
        else:
            prediction = self._own_facts.cut(scores[0])
            value, row = self.loss.value(prediction, y), learn_row_label(self._own_facts, y, weight, self._least_kappa)
        slopes = [self._slope(row, s, r) for s, r in zip(scores, reach, strict=True)]
        for k, s in enumerate(scores):
            self._row_sums[:, k] += row_sums(self.facts, row, s, slopes[k], prediction, value)
        return prediction, value, np.array(slopes) if row.teaches else None

    def _slope(self, row: LabelledRow, score: float, reach: float) -> float:
        if not row.teaches:
            return 0.0
        moved = row.weight * self.facts.kappa * reach
        return formulas_of(self.loss).slope_after_step(row.start(self.loss, score), row.learned, moved, self.facts)

    def _mixed_loss(self, scores: list[float], y: float, weight: float) -> float:
        if not isinstance(self.mixing, Mixing):
            return float(self.loss.value(scores[0], y))
        return self.mixing.learn(scores, y, weight, int(self.tallies[2]))[1]

    def _raised(self, at: NDArray[np.int32], a: Vector) -> Vector:
        """The units of a row's features, this row included."""
        unit = self._unit[at].astype(np.float64)
        if not self.counts_rows:
            unit = np.maximum(self._unit[at], a.astype(self.kind))
            self._unit[at] = unit
            return unit.astype(np.float64)
        count = (self._count[at].astype(np.float64) + 1.0).astype(self.kind)
        self._count[at] = count
        if (a > unit).any():
            unit = raised_unit(unit, count, a)
            self._unit[at] = unit
        return unit

    def _stepped(
        self,
        at: NDArray[np.int32],
        z: Vector,
        R: Vector,
        unit: Vector,
        kappa: Vector,
        x: Vector,
        g: Vector,
        met: NDArray[np.bool_],
    ) -> tuple[Vector, ...]:
        top, most = CUT[self.kind], float(np.finfo(self.kind).max)
        g = np.clip(g, -top, top)
        per_psi = np.clip(g * (1.0 / self.facts.psi), -top, top) if self._labelled else g
        new = np.maximum(np.sqrt(R * R + per_psi * per_psi).astype(self.kind), R)
        new_kappa = float(self.kind(self.facts.kappa))
        sigma = unit * self._cells.rise(R, new, unit, kappa, new_kappa) * self._cells.inverse
        moved = z + (g - sigma * x)
        clamped = self._labelled or not self._cells.unconstrained
        kept = (np.clip(moved, -most, most) if clamped else moved).astype(self.kind)
        self._table["z"][at] = kept
        self._table["R"][at] = new
        self._table["S"][at] += g
        if not self._labelled:
            held, free = self._cells.hold(new, unit), self._cells.unconstrained
            return self._cells.sum_terms(g, x, sigma, held, z, moved, kept, met, free=free)
        self._kappa[at] = new_kappa
        rate = self._cells.rate_with(self._cells.rate(new.astype(np.float64), unit), new_kappa, unit)
        return self._cells.label_sum_terms(g, x, sigma, rate, moved, kept, met)

    def _stepped_base(self, x: Vector, g: Vector) -> tuple[Vector, ...]:
        z, R, S, kappa = self._base.copy()
        g = np.clip(g, -CUT[np.float64], CUT[np.float64])
        per_psi = np.clip(g * (1.0 / self.facts.psi), -CUT[np.float64], CUT[np.float64]) if self._labelled else g
        new = np.maximum(np.sqrt(R * R + per_psi * per_psi), R)
        sigma = self._cells.rise(R, new, np.ones(1), kappa, self.facts.kappa) * self._cells.inverse
        moved = z + (g - sigma * x)
        self._base[:3] = moved, new, S + g
        if not self._labelled:
            return self._cells.sum_terms(g, x, sigma, self._cells.free(new), z, moved, moved, True, free=True)
        moved = np.clip(moved, -LARGEST, LARGEST)
        self._base[0], self._base[3] = moved, self.facts.kappa
        rate = self._cells.rate_with(self._cells.rate(new, np.ones(1)), self.facts.kappa, np.ones(1), free=True)
        return self._cells.label_sum_terms(g, x, sigma, rate, moved, moved)

    def _review(self) -> None:
        """At some numbers of rows the coin or some scales may be dropped."""
        rows = int(self.tallies[2])
        if not self.retire:
            return
        if self.spec.coin and (mixture := mixture_of(self.state, self.spec)) is not None and has_lost(mixture, rows):
            self._drop_coin()
        if is_review(rows):
            self._retire(rows)

    def _drop_coin(self) -> None:
        assert self.mixing is not None
        self.spec = replace(self.spec, coin=False, coin_retired=True)
        self.additions.coin = self.additions.bet = None
        self.mixing = self.mixing.without_coin(self.spec)

    def _retire(self, rows: int) -> None:
        """Drop all but four neighbouring scales, if these do as well as all of them."""
        count = len(self.spec.scales)
        first = window_of(self.state, count, rows) if count > WINDOW else None
        if first is None or self.mixing is None:
            return
        scales, kept = self.spec.scales, slice(first, first + WINDOW)
        retired = tuple(sorted({*self.spec.retired, *scales} - {*scales[kept]}))
        self.spec = replace(self.spec, scale=scales[kept], retired=retired)
        fewer = self.mixing.fewer(self.spec)
        move(self.mixing.state, fewer.state, first, count, WINDOW)
        self.mixing = fewer
        if self.additions.columns is not None:
            self.additions.columns.keep(count, first, WINDOW)
        self._table = {name: np.ascontiguousarray(table[:, kept]) for name, table in self._table.items()}
        self._base, self._sums = self._base[:, kept].copy(), self._sums[:, kept].copy()
        self._slopes, self._row_sums = self._slopes[kept].copy(), self._row_sums[:, kept].copy()
        self._cells = CellArithmetic(self.spec)
