"""A run learned again, row by row: by compiled code of its own, or with NumPy alone, all scales of a row at once.

The arithmetic is that of the compiled kernels, in the same order, so that the numbers are theirs to the bit; nothing
here calls them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import CompiledReplay
from ftprl.data import Batch
from ftprl.linear.mixture import WINDOW, is_review, leader_of, move, next_review, window_of
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums
from ftprl.receipt.compiled_replay import compiled, label_numbers, set_label_numbers
from ftprl.receipt.label_mixture_replay import LabelMixing
from ftprl.receipt.label_replay import LabelFacts, LabelledRow, implicit_slope, learn_row_label, row_sums
from ftprl.receipt.mixture_replay import Mixing

Vector = NDArray[np.float64]
_BINS = 20
_FIRST_CELLS = 1 << 12
_CUT = {np.float32: 2.0**96, np.float64: 2.0**400}
_LARGEST = float(np.finfo(np.float64).max)
_LEAST_NORMAL = float(np.finfo(np.float32).tiny)


def _doubled(a: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([a, np.zeros_like(a)])


def _total(terms: Vector) -> Vector:
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

    def __init__(self, array: NDArray[Any], place: NDArray[np.int32]) -> None:
        self._array, self._place = array, place

    def __getitem__(self, slots: NDArray[np.intp]) -> NDArray[Any]:
        values: NDArray[Any] = self._array[self._place[slots]]
        return values


@final
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
        self._place, self._met = np.zeros(spec.dim, np.int32), 1
        self._table = {name: np.zeros((_FIRST_CELLS, K), self.kind) for name in "zR"}
        self._table["S"] = np.zeros((_FIRST_CELLS, K))
        self._unit, self._count, self._kappa = (np.zeros(_FIRST_CELLS, self.kind) for _ in range(3))
        self._base = np.zeros((4, K))  # z, R, S and kappa
        self._sums = np.zeros((6, K))  # RegretSums, and the first three of RoundingSums
        self._slopes = np.zeros(K)
        self._row_sums = np.zeros((5, K))
        self._labelled = self.loss.has_units
        self.mixing: Mixing | LabelMixing | None = None
        if K > 1:
            self.mixing = LabelMixing(spec) if self._labelled else Mixing(spec)
        self._own_facts = LabelFacts(self.loss)
        self._least_kappa = float(np.finfo(self.kind).tiny)
        if not self._labelled:
            self._base[3] = 1.0
        self._set_constants()

    def _set_constants(self) -> None:
        spec = self.spec
        self._h = np.array(spec.scales)
        self._inverse = np.array([1.0 / h for h in spec.scales])
        self._hl2 = self._h * spec.l2
        self._unconstrained = not (spec.l1 or spec.l2 or spec.bounded)

    # ---- the state that a certificate is computed from ----

    @property
    def parts(self) -> Mapping[str, Any]:
        units = {"unit": self._unit, "count": self._count} if self.counts_rows else {"unit": self._unit}
        if self._labelled and (self.loss.has_kink or self.mixing is None):
            units["kappa"] = self._kappa
        return {name: _Column(array, self._place) for name, array in {**self._table, **units}.items()}

    def parts_at(self, slots: NDArray[np.integer[Any]]) -> Mapping[str, Any]:
        return {name: column[slots] for name, column in self.parts.items()}

    @property
    def intercept(self) -> Vector:
        """z, R, S and kappa of the intercept, one row each with one column per scale."""
        return self._base

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
        return np.flatnonzero(self._place)

    def weights(self, slots: NDArray[np.intp], scale: int) -> Vector:
        """The weights of some cells, by the scale of this number."""
        parts = {name: column[slots].astype(np.float64) for name, column in self.parts.items()}
        unit = parts["unit"][:, None]
        kappa = parts["kappa"][:, None] if "kappa" in parts else np.ones_like(unit)
        return np.asarray(self._played(parts["z"], parts["R"], unit, kappa)[:, scale])

    # ---- rows ----

    def learn(self, batch: Batch) -> None:
        """Predict and then learn each row that has a label and a weight above 0."""
        learned = (batch.weight > 0) & (batch.y == batch.y)
        if self.numpy:
            return self._learn_with_numpy(batch, np.flatnonzero(learned))
        at, done = self._all_places(batch, learned), 0
        while done < len(batch):  # up to the next row after which scales may be dropped
            end = done + self._until_review(learned[done:])
            self._learn_compiled(batch[done:end], at[batch.indptr[done] : batch.indptr[end]])
            done = end
            rows = int(self.tallies[2])
            if self.retire and is_review(rows):
                self._retire(rows)
        return None

    def _until_review(self, learned: NDArray[np.bool_]) -> int:
        """How many of some rows may be learned at once."""
        if not self.retire or self.mixing is None:
            return len(learned)
        rows = int(self.tallies[2])
        ends = np.flatnonzero(learned)[: next_review(rows) - rows]
        return int(ends[-1]) + 1 if len(ends) == next_review(rows) - rows else len(learned)

    def _all_places(self, batch: Batch, learned: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Where the cells of all entries stand; those of rows that are not learned may have none, and are not read."""
        slots = batch.indices[np.repeat(learned, np.diff(batch.indptr))]
        self._places(np.unique(slots[self._place[slots] == 0]))
        return self._place[batch.indices]

    def _learn_compiled(self, batch: Batch, at: NDArray[np.int32]) -> None:
        values, labels = batch.values.astype(np.float64), label_numbers(self.facts)
        core = compiled(self.spec, self._arrays(labels))
        indptr = batch.indptr - batch.indptr[0]
        if not isinstance(self.mixing, LabelMixing):
            core.learn(indptr, at, values, batch.y, batch.weight)
            return set_label_numbers(self._own_facts, labels)
        ends = indptr.tolist()
        for r in np.flatnonzero((batch.weight > 0) & (batch.y == batch.y)).tolist():
            row = slice(ends[r], ends[r + 1])
            self._row_compiled(core, at[row], values[row], float(batch.y[r]), float(batch.weight[r]))
        return None

    def _row_compiled(self, core: CompiledReplay, at: NDArray[np.int32], v: Vector, y: float, weight: float) -> None:
        """A row of several scales with labels in any unit, whose mixture is computed here."""
        scores, reach = core.play(at, v, self.facts.offset)
        self.tallies[2] += 1.0
        value, unweighted = self._learn_label(scores, reach, y, weight)
        if unweighted is not None:
            core.step(at, v, (weight * unweighted).tolist(), self.facts.psi, self.facts.kappa)
        self.tallies[:2] += [weight * value, weight]

    def _arrays(self, labels: Vector) -> dict[str, Any]:
        """All that the compiled replay writes to."""
        own = {**self._table, "unit": self._unit, "count": self._count, "kappa": self._kappa, "labels": labels}
        own |= {"tallies": self.tallies, "sums": self._sums, "slopes": self._slopes, "row_sums": self._row_sums}
        own |= {"base": self._base} | ({} if self.calibration is None else {"calibration": self.calibration})
        return own if self.mixing is None else {**self.mixing.state, **own}

    def _learn_with_numpy(self, batch: Batch, learned: NDArray[np.intp]) -> None:
        ends, values = batch.indptr.tolist(), batch.values.astype(np.float64)
        for r in learned.tolist():
            row = slice(ends[r], ends[r + 1])
            self._row(self._places(batch.indices[row]), values[row], float(batch.y[r]), float(batch.weight[r]))
            rows = int(self.tallies[2])
            if self.retire and is_review(rows):
                self._retire(rows)

    def _places(self, slots: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Where the cells of a row stand; new ones get a place."""
        at: NDArray[np.int32] = self._place[slots]
        if not at.all():
            new = slots[at == 0]
            self._place[new] = np.arange(self._met, self._met + len(new))
            self._met += len(new)
            while self._met > len(self._unit):
                self._unit, self._count = _doubled(self._unit), _doubled(self._count)
                self._kappa = _doubled(self._kappa)
                self._table = {name: _doubled(table) for name, table in self._table.items()}
            at = self._place[slots]
        return at

    def _row(self, at: NDArray[np.int32], v: Vector, y: float, weight: float) -> None:
        before = self._unit[at]
        unit = self._raised(at, np.abs(v))[:, None]
        z, R = self._table["z"][at].astype(np.float64), self._table["R"][at].astype(np.float64)
        kappa = self._kappa[at].astype(np.float64)[:, None] if self.loss.has_kink else np.ones_like(unit)
        x, column = self._played(z, R, unit, kappa), v[:, None]
        scores = _total(x * column)
        if self._labelled:
            scores = scores + self.facts.offset
        base = self._played_base() if self.spec.intercept else None
        scores = scores if base is None else scores + base
        self.tallies[2] += 1.0
        if self._labelled:
            reach = _total((column * column) * self._rate(R, unit))
            if base is not None:
                reach = reach + self._rate(self._base[1], np.ones(1))
            value, unweighted = self._learn_label(scores.tolist(), reach.tolist(), y, weight)
        else:
            value = self._mixed_loss(scores.tolist(), y, weight)
            unweighted = np.array([self.loss.slope(s, y) for s in scores.tolist()])
        if unweighted is not None:
            slopes = weight * unweighted
            terms = self._stepped(at, z, R, unit, kappa, x, slopes * column, column != 0.0)
            sums = [_total(a) for a in terms]
            if base is not None:
                own = self._stepped_base(base, slopes)
                sums = [a + b for a, b in zip(sums, own, strict=True)]
            self._sums += sums
            self._slopes += np.abs(slopes)
        elif self.mixing is None:
            self._unit[at] = before  # one scale: such a row leaves its cells alone
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
    ) -> tuple[float, Vector | None]:
        """The loss of the prediction, and the slopes for a row of weight 1; None where only the label is learned."""
        if isinstance(self.mixing, LabelMixing):
            prediction, value, row = self.mixing.learn(scores, y, weight, int(self.tallies[2]))
        else:
            prediction = self._own_facts.cut(scores[0])
            value, row = self.loss.value(prediction, y), learn_row_label(self._own_facts, y, weight, self._least_kappa)
        slopes = [self._slope(row, s, r) for s, r in zip(scores, reach, strict=True)]
        for k, s in enumerate(scores):
            self._row_sums[:, k] += row_sums(self.facts, row, s, slopes[k], prediction, value)
        return value, np.array(slopes) if row.teaches else None

    def _slope(self, row: LabelledRow, score: float, reach: float) -> float:
        if not row.teaches:
            return 0.0
        return implicit_slope(self.facts, row.cut(score), row.y, row.weight * self.facts.kappa * reach)

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
            mean = np.sqrt(np.maximum(unit * unit + (a * a - unit * unit) / count.astype(np.float64), 0.0))
            higher = np.maximum(np.maximum(unit, mean), a / 16.0).astype(self.kind)
            unit = np.where(a > unit, higher, unit).astype(np.float64)
            self._unit[at] = unit
        return unit

    def _free(self, R: Vector) -> Vector:
        """h Q of the intercept, whose unit is 1."""
        return np.asarray(1.0 * (self.spec.beta * 1.0 + R))

    def _played_base(self) -> Vector:
        z, R, _, kappa = self._base
        if self._labelled:
            return np.asarray(-(z * self._rate(R, np.ones(1))) * kappa)
        held = self._free(R)
        return np.asarray(np.divide(z * -self._h, held, out=np.zeros_like(held), where=held > 0))

    def _rate(self, R: Vector, unit: Vector) -> Vector:
        """1 / Q without kappa; 0 where nothing was met."""
        held = unit * (self.spec.beta * unit + R)
        with np.errstate(over="ignore"):
            rate = np.divide(self._h, held, out=np.zeros_like(held), where=held > 0)
        return np.asarray(np.minimum(rate, _LARGEST))

    def _rate_with(self, rate: Vector, kappa: Vector | float, unit: Vector, *, free: bool = False) -> Vector:
        """1 / (Q + l2 unit²)"""
        with np.errstate(over="ignore"):
            own = rate * kappa
            if free or self._unconstrained:
                return own
            finite = np.minimum(own, _LARGEST)
            return np.asarray(finite / (1.0 + finite * (self._hl2 / self._h * (unit * unit))))

    def _hold(self, R: Vector, unit: Vector) -> Vector:
        held: Vector = unit * (self.spec.beta * unit + R)
        return held if self._unconstrained else held + self._hl2 * (unit * unit)

    def _played(self, z: Vector, R: Vector, unit: Vector, kappa: Vector) -> Vector:
        spec = self.spec
        if self._labelled:
            rate = self._rate(R, unit)
            if self._unconstrained:
                return np.asarray(-(z * rate) * kappa)
            pull = np.copysign(np.maximum(np.abs(z) - spec.l1 * unit, 0.0), -z)
            return np.asarray(np.clip(pull * self._rate_with(rate, kappa, unit), spec.lower, spec.upper))
        held = self._hold(R, unit)
        pull = (
            z * -self._h
            if self._unconstrained
            else np.copysign(np.maximum(np.abs(z) - spec.l1 * unit, 0.0), -z) * self._h
        )
        x = np.divide(pull, held, out=np.zeros_like(pull), where=held > 0)
        return x if self._unconstrained else np.asarray(np.clip(x, spec.lower, spec.upper))

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
        top, most = _CUT[self.kind], float(np.finfo(self.kind).max)
        g = np.clip(g, -top, top)
        per_psi = np.clip(g * (1.0 / self.facts.psi), -top, top) if self._labelled else g
        new = np.maximum(np.sqrt(R * R + per_psi * per_psi).astype(self.kind), R)
        new_kappa = float(self.kind(self.facts.kappa))
        sigma = unit * self._rise(R, new, unit, kappa, new_kappa) * self._inverse
        moved = z + (g - sigma * x)
        clamped = self._labelled or not self._unconstrained
        kept = (np.clip(moved, -most, most) if clamped else moved).astype(self.kind)
        self._table["z"][at] = kept
        self._table["R"][at] = new
        self._table["S"][at] += g
        if not self._labelled:
            free = self._unconstrained
            return self._sum_terms(g, x, sigma, self._hold(new, unit), z, moved, kept, met, free=free)
        self._kappa[at] = new_kappa
        rate = self._rate_with(self._rate(new.astype(np.float64), unit), new_kappa, unit)
        return self._label_sum_terms(g, x, sigma, rate, moved, kept, met)

    def _rise(self, R: Vector, new: Vector, unit: Vector, kappa: Vector, new_kappa: float) -> Vector:
        """What h Q / unit grows by; with a kink it may fall, as kappa does."""
        if not self.loss.has_kink:
            return new - R
        own = np.divide(1.0, kappa, out=np.zeros_like(kappa), where=kappa > 0)
        beta = self.spec.beta
        return np.asarray((beta * unit + new) * (1.0 / new_kappa) - (beta * unit + R) * own)

    def _label_sum_terms(
        self,
        g: Vector,
        x: Vector,
        sigma: Vector,
        rate: Vector,
        moved: Vector,
        kept: NDArray[Any],
        met: NDArray[np.bool_] | bool = True,
    ) -> tuple[Vector, ...]:
        """As `_sum_terms` for labels in any unit; `rate` is 1 / (Q + l2)."""
        rate, z = np.minimum(rate, _LARGEST), kept.astype(np.float64)
        lost, pulled, proximal = z - moved, np.abs(g) + np.abs(sigma * x), sigma * x * x
        lost_at_most = np.abs(lost) if kept.dtype == np.float32 else 2.0**-52 * (np.abs(z) + pulled) * met
        drift = lost * ((g + 0.5 * lost) * rate - x) if kept.dtype == np.float32 else np.zeros_like(g)
        linear_size = np.abs(g) * np.abs(x) + np.abs(proximal)
        step_size = (pulled + np.abs(z) + lost_at_most) * (np.abs(x) + (np.abs(g) + lost_at_most) * rate)
        return g * x, proximal, g * g * rate, drift, linear_size, step_size

    def _sum_terms(
        self,
        g: Vector,
        x: Vector,
        sigma: Vector,
        held: Vector,
        z: Vector,
        moved: Vector,
        kept: NDArray[Any],
        met: NDArray[np.bool_] | bool,
        *,
        free: bool,
    ) -> tuple[Vector, ...]:
        """What a step adds to the sums.

        `z` is that of the cell before the step, `kept` as it holds it after, `moved` the latter before it was rounded;
        a value of 0 is not `met`. Where x is `free`, -z / Q, the second order of the drift and most sizes of the step
        are bounded by other sums, unless `kept` is below the normal numbers of a float32.
        """
        stability = np.divide(g * g * self._h, held, out=np.zeros_like(g), where=held > 0)
        with np.errstate(over="ignore"):
            inverse = np.divide(self._h, held, out=np.zeros_like(g), where=held > 0)
        inverse = np.minimum(inverse, np.finfo(np.float64).max)
        after = kept.astype(np.float64)
        lost, narrow = after - moved, kept.dtype == np.float32
        lost_at_most = np.abs(lost) if narrow else 2.0**-52 * np.abs(after) * met
        step_size = (np.abs(g) + np.abs(after) + lost_at_most) * (np.abs(x) + (np.abs(g) + lost_at_most) * inverse)
        if not free:
            drift = lost * ((g + 0.5 * lost) * inverse - x)
        else:
            tiny = (np.abs(after) < _LEAST_NORMAL) & narrow
            pull = np.divide(g * self._h, held, out=np.zeros_like(g), where=held > 0)
            small = np.where(tiny, lost, 0.0)
            drift = lost * (pull - x) + 0.5 * small * small * inverse
            step_size = np.abs(z * x) + np.where(tiny, step_size, 0.0)
        return g * x, sigma * x * x, stability, drift, np.abs(g) * np.abs(x), step_size

    def _stepped_base(self, x: Vector, g: Vector) -> tuple[Vector, ...]:
        z, R, S, kappa = self._base
        g = np.clip(g, -_CUT[np.float64], _CUT[np.float64])
        per_psi = np.clip(g * (1.0 / self.facts.psi), -_CUT[np.float64], _CUT[np.float64]) if self._labelled else g
        new = np.maximum(np.sqrt(R * R + per_psi * per_psi), R)
        sigma = self._rise(R, new, np.ones(1), kappa, self.facts.kappa) * self._inverse
        moved = z + (g - sigma * x)
        self._base[:3] = moved, new, S + g
        if not self._labelled:
            return self._sum_terms(g, x, sigma, self._free(new), z, moved, moved, True, free=True)
        moved = np.clip(moved, -_LARGEST, _LARGEST)
        self._base[0], self._base[3] = moved, self.facts.kappa
        rate = self._rate_with(self._rate(new, np.ones(1)), self.facts.kappa, np.ones(1), free=True)
        return self._label_sum_terms(g, x, sigma, rate, moved, moved)

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
        self._table = {name: np.ascontiguousarray(table[:, kept]) for name, table in self._table.items()}
        self._base, self._sums = self._base[:, kept].copy(), self._sums[:, kept].copy()
        self._slopes, self._row_sums = self._slopes[kept].copy(), self._row_sums[:, kept].copy()
        self._set_constants()
