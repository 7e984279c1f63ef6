"""A run learned again with NumPy alone, row by row, all scales of a row at once.

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

from ftprl.data import Batch
from ftprl.linear.engine import LossTotals, RegretSums, RoundingSums
from ftprl.linear.mixture import WINDOW, is_review, leader_of, move, window_of
from ftprl.linear.spec import Spec
from ftprl.receipt.mixture_replay import Mixing

Vector = NDArray[np.float64]
_BINS = 20
_FIRST_CELLS = 1 << 12
_CUT = {np.float32: 2.0**96, np.float64: 2.0**400}


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

    def __init__(self, spec: Spec, *, retire: bool) -> None:
        self.spec, self.retire = spec, retire
        self.kind: type[np.floating[Any]] = np.float64 if spec.float64 else np.float32
        self.loss = spec.scalar_loss()
        self.tallies = np.zeros(3)
        self.calibration = np.zeros((_BINS, 3)) if self.loss.is_probabilistic else None
        K = len(spec.scales)
        # Where a slot's cell is stored; 0 means nowhere yet.
        self._place, self._met = np.zeros(spec.dim, np.int32), 1
        self._table = {name: np.zeros((_FIRST_CELLS, K), self.kind) for name in "zR"}
        self._table["S"] = np.zeros((_FIRST_CELLS, K))
        self._unit, self._count = np.zeros(_FIRST_CELLS, self.kind), np.zeros(_FIRST_CELLS, self.kind)
        self._base = np.zeros((3, K))
        self._sums = np.zeros((6, K))  # RegretSums, and the first three of RoundingSums
        self._slopes = np.zeros(K)
        self.mixing = Mixing(spec) if K > 1 else None
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
        return {name: _Column(array, self._place) for name, array in {**self._table, **units}.items()}

    def parts_at(self, slots: NDArray[np.integer[Any]]) -> Mapping[str, Any]:
        return {name: column[slots] for name, column in self.parts.items()}

    @property
    def intercept(self) -> Vector:
        """z, R and S of the intercept, one row each with one column per scale."""
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

    def sums_of(self, scale: int | None = None) -> RegretSums:
        return RegretSums(*self._sums[:3, self.leader if scale is None else scale].tolist())

    def rounding_sums(self, scale: int) -> RoundingSums:
        return RoundingSums(*[*self._sums[3:, scale].tolist(), float(self._slopes[scale])])

    def touched(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._place)

    def weights(self, slots: NDArray[np.intp], scale: int) -> Vector:
        """The weights of some cells, by the scale of this number."""
        parts = {name: column[slots].astype(np.float64) for name, column in self.parts.items()}
        unit = parts["unit"][:, None]
        return np.asarray(self._played(parts["z"], parts["R"], unit)[:, scale])

    # ---- rows ----

    def learn(self, batch: Batch) -> None:
        """Predict and then learn each row that has a label and a weight above 0."""
        ends, values = batch.indptr.tolist(), batch.values.astype(np.float64)
        learned = np.flatnonzero((batch.weight > 0) & (batch.y == batch.y))
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
                self._table = {name: _doubled(table) for name, table in self._table.items()}
            at = self._place[slots]
        return at

    def _row(self, at: NDArray[np.int32], v: Vector, y: float, weight: float) -> None:
        unit = self._raised(at, np.abs(v))[:, None]
        z, R = self._table["z"][at].astype(np.float64), self._table["R"][at].astype(np.float64)
        x, column = self._played(z, R, unit), v[:, None]
        scores = _total(x * column)
        base = None
        if self.spec.intercept:
            held = self._free(self._base[1])
            base = np.divide(self._base[0] * -self._h, held, out=np.zeros_like(held), where=held > 0)
            scores = scores + base
        self.tallies[2] += 1.0
        value = self._mixed_loss(scores.tolist(), y, weight)
        slopes = np.array([weight * self.loss.slope(s, y) for s in scores.tolist()])
        terms = self._stepped(at, z, R, unit, x, slopes * column, column != 0.0)
        sums = [_total(a) for a in terms]
        if base is not None:
            own = self._stepped_base(base, slopes)
            sums = [a + b for a, b in zip(sums, own, strict=True)]
        self._sums += sums
        self._slopes += np.abs(slopes)
        self.tallies[:2] += [weight * value, weight]
        if self.calibration is not None:
            chance = math.exp(-value)
            p = chance if y > 0 else 1.0 - chance
            self.calibration[min(int(p * _BINS), _BINS - 1)] += [weight, weight * p, weight if y > 0 else 0.0]

    def _mixed_loss(self, scores: list[float], y: float, weight: float) -> float:
        if self.mixing is None:
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

    def _hold(self, R: Vector, unit: Vector) -> Vector:
        held: Vector = unit * (self.spec.beta * unit + R)
        return held if self._unconstrained else held + self._hl2

    def _played(self, z: Vector, R: Vector, unit: Vector) -> Vector:
        held, spec = self._hold(R, unit), self.spec
        pull = z * -self._h if self._unconstrained else np.copysign(np.maximum(np.abs(z) - spec.l1, 0.0), -z) * self._h
        x = np.divide(pull, held, out=np.zeros_like(pull), where=held > 0)
        return x if self._unconstrained else np.asarray(np.clip(x, spec.lower, spec.upper))

    def _stepped(
        self, at: NDArray[np.int32], z: Vector, R: Vector, unit: Vector, x: Vector, g: Vector, met: NDArray[np.bool_]
    ) -> tuple[Vector, ...]:
        top, most = _CUT[self.kind], float(np.finfo(self.kind).max)
        g = np.clip(g, -top, top)
        new = np.maximum(np.sqrt(R * R + g * g).astype(self.kind), R)
        sigma = unit * (new - R) * self._inverse
        moved = z + (g - sigma * x)
        kept = (moved if self._unconstrained else np.clip(moved, -most, most)).astype(self.kind)
        self._table["z"][at] = kept
        self._table["R"][at] = new
        self._table["S"][at] += g
        return self._sum_terms(g, x, sigma, self._hold(new, unit), moved, kept, met)

    def _sum_terms(
        self,
        g: Vector,
        x: Vector,
        sigma: Vector,
        held: Vector,
        moved: Vector,
        kept: NDArray[Any],
        met: NDArray[np.bool_] | bool = True,
    ) -> tuple[Vector, ...]:
        """What a step adds to the sums.

        `kept` is z as its cell holds it, `moved` before it was rounded; a value of 0 is not `met`.
        """
        stability = np.divide(g * g * self._h, held, out=np.zeros_like(g), where=held > 0)
        with np.errstate(over="ignore"):
            inverse = np.divide(self._h, held, out=np.zeros_like(g), where=held > 0)
        inverse = np.minimum(inverse, np.finfo(np.float64).max)
        z = kept.astype(np.float64)
        lost = z - moved
        lost_at_most = np.abs(lost) if kept.dtype == np.float32 else 2.0**-52 * np.abs(z) * met
        drift = lost * ((g + 0.5 * lost) * inverse - x)
        step_size = (np.abs(g) + np.abs(z) + lost_at_most) * (np.abs(x) + (np.abs(g) + lost_at_most) * inverse)
        return g * x, sigma * x * x, stability, drift, np.abs(g) * np.abs(x), step_size

    def _stepped_base(self, x: Vector, g: Vector) -> tuple[Vector, ...]:
        z, R, S = self._base
        g = np.clip(g, -_CUT[np.float64], _CUT[np.float64])
        new = np.maximum(np.sqrt(R * R + g * g), R)
        sigma = (new - R) * self._inverse
        moved = z + (g - sigma * x)
        self._base[:] = moved, new, S + g
        return self._sum_terms(g, x, sigma, self._free(new), moved, moved)

    def _retire(self, rows: int) -> None:
        """Drop all but four neighbouring scales, if these do as well as all of them."""
        count = len(self.spec.scales)
        first = window_of(self.state, count, rows) if count > WINDOW else None
        if first is None or self.mixing is None:
            return
        scales, kept = self.spec.scales, slice(first, first + WINDOW)
        retired = tuple(sorted({*self.spec.retired, *scales} - {*scales[kept]}))
        self.spec = replace(self.spec, scale=scales[kept], retired=retired)
        fewer = Mixing(self.spec)
        move(self.mixing.state, fewer.state, first, self.spec.stacked)
        self.mixing = fewer
        self._table = {name: np.ascontiguousarray(table[:, kept]) for name, table in self._table.items()}
        self._base, self._sums = self._base[:, kept].copy(), self._sums[:, kept].copy()
        self._slopes = self._slopes[kept].copy()
        self._set_constants()
