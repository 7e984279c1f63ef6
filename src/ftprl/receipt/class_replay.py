"""A run with several classes learned again, row by row, with NumPy alone: docs/classes.md, in the same order.

A column stands for a class that is known, the last one for all that may come. Arrays have a row per entry of a row or
per cell, then an axis of columns, then one of scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.mixture import WINDOW, is_review, leader_of, window_of
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums, RoundingSums, RowSums
from ftprl.receipt.bounds_replay import BoundChange, BoundReplay
from ftprl.receipt.cell_replay import CellArithmetic, raised_unit
from ftprl.receipt.class_mixture_replay import ClassMixing, in_order
from ftprl.receipt.coordinates import AT_ONCE, Coordinates

Vector = NDArray[np.float64]
_FIRST_CELLS = 1 << 10
_CUT = {np.float32: 2.0**96, np.float64: 2.0**400}


@final
class ClassReplay:
    """A learner of several classes; `known` of them have a column from the start."""

    receipt, counts_rows, label_unit, calibration = True, True, 1.0, None

    def __init__(self, spec: Spec, *, retire: bool, known: int = 0) -> None:
        self.spec, self.retire, self.known = spec, retire, known
        self.kind: type[np.floating[Any]] = np.float64 if spec.float64 else np.float32
        self.tallies = np.zeros(3)
        K = len(spec.scales)
        self._cell_number, self._met = np.zeros(spec.dim, np.int32), 1
        shape = (_FIRST_CELLS, self.columns, K)
        self._z: NDArray[Any] = np.zeros(shape, self.kind)
        self._R: NDArray[Any] = np.zeros(shape, self.kind)
        self._S: Vector = np.zeros(shape)
        self._unit, self._count = np.zeros(_FIRST_CELLS, self.kind), np.zeros(_FIRST_CELLS, self.kind)
        self._bounds = BoundReplay(spec) if spec.bounds else None
        bounded = spec.dim if spec.bounds else 0
        self._lower, self._upper = np.full(bounded, spec.lower), np.full(bounded, spec.upper)
        self.base: Vector = np.zeros((3, self.columns, K))  # z, R and S of the intercept
        self._sums, self._slopes = np.zeros((6, K)), np.zeros(K)
        self.mixing = ClassMixing(spec, self.columns)
        self._cells = CellArithmetic(spec)

    # ---- the state that a certificate is computed from ----

    @property
    def columns(self) -> int:
        """Of the classes that are known, and one for all that may come."""
        return self.known + (self.known < self.spec.classes)

    @property
    def copies(self) -> Vector:
        """How many classes each column stands for."""
        many = np.ones(self.columns)
        if self.known < self.spec.classes:
            many[-1] = self.spec.classes - self.known
        return many

    @property
    def state(self) -> Mapping[str, Vector]:
        return self.mixing.state

    @property
    def progress(self) -> LossTotals:
        return LossTotals(float(self.tallies[0]), float(self.tallies[1]), int(self.tallies[2]))

    @property
    def leader(self) -> int:
        return leader_of(self.state, len(self.spec.scales))

    def sums_of(self, scale: int | None = None) -> RegretSums:
        return RegretSums(*self._sums[:3, self.leader if scale is None else scale].tolist())

    def rounding_sums(self, scale: int) -> RoundingSums:
        return RoundingSums(*[*self._sums[3:, scale].tolist(), float(self._slopes[scale])])

    def row_sums(self, scale: int) -> RowSums:
        own, loss = float(self.state["totals"][scale]), float(self.tallies[0])
        return RowSums(0.0, own, loss, float(self.tallies[1]), abs(own) + abs(loss))

    def touched(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._cell_number)

    def cells_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector, Vector, Vector, Vector]:
        """z, R and S of some cells, their units, and how many rows had them."""
        at = self._cell_number[slots]
        z, R, unit, count = (a[at].astype(np.float64) for a in (self._z, self._R, self._unit, self._count))
        return z, R, self._S[at], unit, count

    def parts_at(self, slots: NDArray[np.integer[Any]]) -> Mapping[str, Any]:
        """The same by name, z, R and S of all columns in one row per cell."""
        named = dict(zip(("z", "R", "S", "unit", "count"), self.cells_at(slots), strict=True))
        return {name: array.reshape(len(slots), -1) if array.ndim > 1 else array for name, array in named.items()}

    @property
    def intercept_columns(self) -> Vector:
        """z, R, S and kappa of the intercept, one array per column of classes."""
        return np.stack([*self.base, np.ones_like(self.base[0])], axis=1)

    def coordinates(self) -> Iterator[Coordinates]:
        """A feature of one class is a coordinate; classes that may come are one that counts for each of them."""
        slots = self.touched()
        copies = self.copies[:, None]
        n = len(copies)
        for at in range(0, len(slots), max(1, AT_ONCE // n)):
            some = slots[at : at + max(1, AT_ONCE // n)]
            z, R, S, unit, rows = self.cells_at(some)
            z, R, S = (a.reshape(-1, a.shape[-1]) for a in (z, R, S))
            yield Coordinates(
                np.repeat(some, n),
                z,
                R,
                S,
                np.repeat(unit, n)[:, None],
                np.ones((len(some) * n, 1)),
                np.repeat(rows, n),
                np.tile(copies, (len(some), 1)),
            )
        if self.spec.intercept:
            one = np.ones((n, 1))
            z, R, S = self.base
            yield Coordinates(None, z, R, S, one, one, None, copies)

    def limits_at(self, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
        """Between which numbers the weights of some cells have to be."""
        if self._bounds is None:
            return np.full(len(slots), self.spec.lower), np.full(len(slots), self.spec.upper)
        return self._lower[slots], self._upper[slots]

    def weights(self, slots: NDArray[np.intp], scale: int) -> Vector:
        """The weights of some cells, one row per class that is known, by the scale of this number."""
        z, R, _, unit, _ = self.cells_at(slots)
        return np.asarray(self._played(slots, z, R, unit[:, None, None])[:, : self.known, scale].T)

    # ---- rows ----

    def learn(self, batch: Batch) -> tuple[Vector, Vector]:
        """Predict and then learn each row with a label, the number of its class, and a weight above 0.

        Returns their losses, and the classes that were predicted, NaN before one is known.
        """
        learned = np.flatnonzero((batch.weight > 0) & (batch.y == batch.y))
        ends, values = batch.indptr.tolist(), batch.values.astype(np.float64)
        out = np.zeros((2, len(learned)))
        changes = [] if self._bounds is None else self._bounds.changes(batch)
        for number, r in enumerate(learned.tolist()):
            changes = self._bounded(changes, r)
            row = slice(ends[r], ends[r + 1])
            out[:, number] = self._row(batch.indices[row], values[row], int(batch.y[r]), float(batch.weight[r]))
            if self.retire and is_review(int(self.tallies[2])):
                self._review()
        self._bounded(changes, len(batch))
        return out[0], out[1]

    def _bounded(self, changes: list[BoundChange], row: int) -> list[BoundChange]:
        """Set the bounds of the names that are met up to a row; returns those of later ones."""
        for change in changes:
            if change.row <= row:
                self._lower[change.cell], self._upper[change.cell] = change.lower, change.upper
        return [change for change in changes if change.row > row]

    def _row(self, slots: NDArray[np.uint32], v: Vector, y: int, weight: float) -> tuple[float, float]:
        before = self.known
        if y >= self.known:
            self._grow(y + 1)
        at = self._cell_numbers(slots)
        unit = self._raised(at, np.abs(v))[:, None, None]
        z, R, column = self._z[at].astype(np.float64), self._R[at].astype(np.float64), v[:, None, None]
        x = self._played(slots, z, R, unit)
        scores = in_order(x * column) if len(v) else np.zeros((self.columns, len(self.spec.scales)))
        base = self._cells.played_base(self.base[0], self.base[1], np.ones(1)) if self.spec.intercept else None
        scores = scores if base is None else scores + base
        self.tallies[2] += 1.0
        mixing, t = self.mixing, int(self.tallies[2])
        mixing.read(at, v, scores, self.copies)
        predicted = mixing.predicted(before)
        loss, slopes = mixing.learn(y, weight, t)
        terms = self._stepped(at, z, R, unit, x, slopes * column, column != 0.0)
        lanes = list(terms)
        if base is not None:
            own = self._stepped_base(base, slopes)
            lanes = [np.concatenate([a, b[None]]) for a, b in zip(terms, own, strict=True)]
        many = self.copies[:, None]
        self._sums += [in_order(many * in_order(a)) if len(a) else np.zeros(a.shape[-1]) for a in lanes]
        self._slopes += in_order(many * np.abs(slopes))
        units, seen = self._unit[at].astype(np.float64), self._count[at].astype(np.float64)
        mixing.review_columns(at, v, t, units, seen)
        self.tallies[:2] += [weight * loss, weight]
        return loss, predicted

    def _played(self, slots: NDArray[np.integer[Any]], z: Vector, R: Vector, unit: Vector) -> Vector:
        low, high = (ends[:, None, None] for ends in self.limits_at(slots))
        return self._cells.played(z, R, unit, np.ones(1), low, high)

    def _grow(self, known: int) -> None:
        """So many classes are known; a new one starts as those that were not."""
        add, self.known = -self.columns, known
        add += self.columns

        def grown(a: NDArray[Any], axis: int) -> NDArray[Any]:
            last = np.take(a, [-1], axis=axis)
            return np.concatenate([a, np.repeat(last, add, axis=axis)], axis=axis)

        self._z, self._R, self._S, self.base = (grown(a, 1) for a in (self._z, self._R, self._S, self.base))
        self.mixing.grow(add)

    def _cell_numbers(self, slots: NDArray[np.uint32]) -> NDArray[np.int32]:
        """Where the cells of a row stand; new ones get a place."""
        at: NDArray[np.int32] = self._cell_number[slots]
        if not at.all():
            new = slots[at == 0]
            self._cell_number[new] = np.arange(self._met, self._met + len(new))
            self._met += len(new)
            while self._met > len(self._unit):
                for name in ("_z", "_R", "_S", "_unit", "_count"):
                    old = getattr(self, name)
                    setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
            at = self._cell_number[slots]
        return at

    def _raised(self, at: NDArray[np.int32], a: Vector) -> Vector:
        """The units of a row's features, this row included."""
        count = (self._count[at].astype(np.float64) + 1.0).astype(self.kind)
        self._count[at] = count
        unit = raised_unit(self._unit[at].astype(np.float64), count, a)
        self._unit[at] = unit
        return unit

    def _stepped(
        self,
        at: NDArray[np.int32],
        z: Vector,
        R: Vector,
        unit: Vector,
        x: Vector,
        gradients: Vector,
        met: NDArray[np.bool_],
    ) -> tuple[Vector, ...]:
        cells, top, most = self._cells, _CUT[self.kind], float(np.finfo(self.kind).max)
        g = np.clip(gradients, -top, top)
        new = np.maximum(np.sqrt(R * R + g * g).astype(self.kind), R)
        sigma = unit * (new - R) * cells.inverse
        moved = z + (g - sigma * x)
        kept = (moved if cells.unconstrained else np.clip(moved, -most, most)).astype(self.kind)
        self._z[at], self._R[at] = kept, new
        self._S[at] += g
        return cells.sum_terms(g, x, sigma, cells.hold(new, unit), z, moved, kept, met, free=cells.unconstrained)

    def _stepped_base(self, x: Vector, slopes: Vector) -> tuple[Vector, ...]:
        z, R, S = self.base
        g = np.clip(slopes, -_CUT[np.float64], _CUT[np.float64])
        new = np.maximum(np.sqrt(R * R + g * g), R)
        sigma = (new - R) * self._cells.inverse
        moved = z + (g - sigma * x)
        self.base = np.stack([moved, new, S + g])
        return self._cells.sum_terms(g, x, sigma, self._cells.free(new), z, moved, moved, True, free=True)

    def _review(self) -> None:
        """Drop all but four neighbouring scales, if these do as well as all of them."""
        scales = self.spec.scales
        first = window_of(self.state, len(scales), int(self.tallies[2])) if len(scales) > WINDOW else None
        if first is None:
            return
        kept = slice(first, first + WINDOW)
        retired = tuple(sorted({*self.spec.retired, *scales} - {*scales[kept]}))
        self.spec = replace(self.spec, scale=scales[kept], retired=retired)
        self.mixing.keep(self.spec, first)
        self._z, self._R, self._S, self.base = (a[..., kept].copy() for a in (self._z, self._R, self._S, self.base))
        self._sums, self._slopes = self._sums[:, kept].copy(), self._slopes[kept].copy()
        self._cells = CellArithmetic(self.spec)
