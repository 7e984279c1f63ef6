"""A run in rounds of several rows learned again (docs/rounds.md), with NumPy: what is vectors there is arrays here.

The arithmetic is that of the compiled kernels, in the same order, so that the numbers are theirs to the bit.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.spec import Spec
from ftprl.receipt.replay import CUT, Replay, total

Vector = NDArray[np.float64]
_BLOCK = 4096  # learned rows whose gradients are added up together
_GROWTH = 64  # a round is at most this part of the rows so far
_SHARDS = 64
_HALF_UNIT = 2.0**-24  # of the last place of a float32
_LEAST = 2.0**-149


@final
class RoundReplay(Replay):
    """A replay in rounds of `spec.round_rows` at most; the last round ends with the rows that `learn` is given."""

    def __init__(self, spec: Spec, *, retire: bool, numpy: bool = False) -> None:
        super().__init__(spec, retire=retire, numpy=numpy)
        self._hot: NDArray[np.uint32] = np.empty(0, np.uint32)

    def _learn(self, batch: Batch, out: Vector) -> None:
        """Rounds of one row as without rounds; the others as below."""
        learned = np.flatnonzero((batch.weight > 0) & (batch.y == batch.y))
        at = 0
        while at < len(learned):
            rows = learned[at : at + self._missing()]
            first, last = int(rows[0]), int(rows[-1]) + 1
            if len(rows) == 1:
                super()._learn(batch[first:last], out[:, first:last])
                self._hot = np.unique(batch[first:last].indices)
            else:
                self._round(batch, rows, out)
                self._review()
            at += len(rows)

    def _missing(self) -> int:
        """How many rows the next round has."""
        t = int(self.tallies[2])
        most = min(self.spec.round_rows, t // _GROWTH)
        size = 1 << (most.bit_length() - 1) if most > 1 else 1
        return size - t % size

    def _round(self, batch: Batch, rows: NDArray[np.intp], out: Vector) -> None:
        by_row = [np.arange(batch.indptr[r], batch.indptr[r + 1]) for r in rows.tolist()]
        entries = np.concatenate(by_row)
        values = batch.values[entries].astype(np.float64)
        lengths = np.array([len(one) for one in by_row])
        ends = np.concatenate(([0], np.cumsum(lengths))).tolist()
        slots, numbers = _in_order(batch.indices[entries])
        count = np.bincount(numbers, minlength=len(slots)).astype(np.float64)
        largest = np.zeros(len(slots))
        np.maximum.at(largest, numbers, np.abs(values))
        is_hot = np.isin(slots, self._hot)
        cold = np.flatnonzero(~is_hot)
        cells = self._cell_numbers(slots)
        blocks = [slice(a, min(a + _BLOCK, len(rows))) for a in range(0, len(rows), _BLOCK)]
        squares = np.zeros(len(slots))
        for block in blocks:
            some, own = slice(ends[block.start], ends[block.stop]), np.zeros(len(slots))
            np.add.at(own, numbers[some], values[some] * values[some])
            squares += own
        self._raise_all(cells[cold], count[cold], largest[cold], squares[cold])
        x = np.zeros((len(slots), len(self.spec.scales)))
        x[cold] = self._rounded_plays(cells[cold])
        g = np.zeros_like(x)
        for block in blocks:
            slopes = np.zeros((len(rows), x.shape[1]))
            for i in range(block.start, block.stop):
                row = slice(ends[i], ends[i + 1])
                which, hot = numbers[row], is_hot[numbers[row]]
                scores = total(x[which] * values[row][:, None])
                y, weight = float(batch.y[rows[i]]), float(batch.weight[rows[i]])
                slopes[i], value = self._chained(scores, cells[which[hot]], values[row][hot], y, weight)
                out[0, rows[i]] = value
            some = slice(ends[block.start], ends[block.stop])
            row_of = np.repeat(np.arange(block.start, block.stop), lengths[block])
            top, part = CUT[self.kind], np.zeros_like(x)
            np.add.at(part, numbers[some], np.clip(slopes[row_of] * values[some][:, None], -top, top))
            g += part
        heaviest = float(batch.weight[rows].max())
        gradients = count[cold] * largest[cold] * heaviest
        self._step_all(slots[cold], cells[cold], x[cold], g[cold], gradients[:, None])
        self._hot = np.sort(slots[2.0 * count >= len(rows)])

    # ---- the coordinates of a round at once ----

    def _raise_all(self, at: NDArray[np.int32], rows: Vector, largest: Vector, squares: Vector) -> None:
        """The units of coordinates that `rows` entries have."""
        if not self.counts_rows:
            self._unit[at] = np.maximum(self._unit[at], largest.astype(self.kind))
            return
        unit = self._unit[at].astype(np.float64)
        count = (self._count[at].astype(np.float64) + rows).astype(self.kind)
        self._count[at] = count
        mean = unit * unit + (squares - rows * (unit * unit)) / count.astype(np.float64)
        higher = np.maximum(np.maximum(unit, np.sqrt(np.maximum(mean, 0.0))), largest / 16.0).astype(self.kind)
        self._unit[at] = np.where(largest > unit, higher, unit)

    def _rounded_plays(self, at: NDArray[np.int32]) -> Vector:
        """What is played in a whole round: a number of the cells' type, then put within the bounds."""
        z, R, unit = self._read(at)
        without = np.full(1, np.inf)
        x = self._cells.played(z, R, unit, np.ones_like(unit), -without, without)
        most = float(np.finfo(self.kind).max)
        x = np.clip(x, -most, most).astype(self.kind).astype(np.float64)
        if self._cells.unconstrained:
            return x
        return np.asarray(np.clip(x, self._lower[at][:, None], self._upper[at][:, None]))

    def _read(self, at: NDArray[np.int32]) -> tuple[Vector, Vector, Vector]:
        z, R = (self._table[name][at].astype(np.float64) for name in "zR")
        return z, R, self._unit[at].astype(np.float64)[:, None]

    def _step_all(
        self, slots: NDArray[np.uint32], at: NDArray[np.int32], x: Vector, g: Vector, gradients: Vector
    ) -> None:
        """One step each; the sums in the order of the shards. `gradients` are at least the sizes that g is made of."""
        z, R, unit = self._read(at)
        everywhere = np.ones((len(at), 1), np.bool_)
        terms = list(self._stepped(at, z, R, unit, np.ones_like(unit), x, g, everywhere))
        if self.kind is np.float32:
            own = np.abs(np.clip(g, -CUT[self.kind], CUT[self.kind]))
            terms[3] = terms[3] + (_HALF_UNIT * np.abs(terms[0]) + _LEAST * own)
        terms[4] = np.abs(x) * gradients
        shard = (slots.astype(np.uint64) * np.uint64(0x9E3779B1) & np.uint64(2**32 - 1)) >> np.uint64(26)
        for j, term in enumerate(terms):
            by_shard = np.zeros((_SHARDS, x.shape[1]))
            np.add.at(by_shard, shard.astype(np.intp), term)
            whole = np.zeros(x.shape[1])
            for own in by_shard:
                whole = whole + own
            self._sums[j] += whole

    # ---- rows ----

    def _chained(
        self, scores: Vector, hot: NDArray[np.int32], values: Vector, y: float, weight: float
    ) -> tuple[Vector, float]:
        """What goes row by row: hot coordinates, intercept, loss and mixture. The slopes of the row, and its loss."""
        played = []
        for i, v in enumerate(values.tolist()):
            own = hot[i : i + 1]
            self._raised(own, np.array([abs(v)]))
            z, R, unit = self._read(own)
            limits = self._lower[own][:, None], self._upper[own][:, None]
            played.append(self._cells.played(z, R, unit, np.ones_like(unit), *limits))
            scores = scores + played[-1][0] * v
        base = self._cells.played_base(*self._base[[0, 1, 3]]) if self.spec.intercept else None
        scores = scores if base is None else scores + base
        self.tallies[2] += 1.0
        value = self._mixed_loss(scores.tolist(), y, weight)
        slopes = weight * np.array([self.loss.slope(score, y) for score in scores.tolist()])
        sums: list[Any] = [np.zeros(len(scores))] * 6
        for i, v in enumerate(values.tolist()):
            own = hot[i : i + 1]
            z, R, unit = self._read(own)
            met = np.full((1, 1), v != 0.0)
            terms = self._stepped(own, z, R, unit, np.ones_like(unit), played[i], (slopes * v)[None, :], met)
            sums = [a + b[0] for a, b in zip(sums, terms, strict=True)]
        if base is not None:
            sums = [a + b for a, b in zip(sums, self._stepped_base(base, slopes), strict=True)]
        self._sums += sums
        self._slopes += np.abs(slopes)
        self._settle(value, y, weight)
        return slopes, value


def _in_order(slots: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.intp]]:
    """Different slots in the order of their first entry, and the number of each entry's."""
    unique, first, which = np.unique(slots, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty(len(unique), np.intp)
    number[order] = np.arange(len(unique))
    return unique[order], number[which]
