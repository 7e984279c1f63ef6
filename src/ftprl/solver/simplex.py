"""Linear programs over one polyhedron, many at a time: each starts at the best corner found for those before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.extras import extra_imports
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
Index = NDArray[np.intp]
Goal = tuple[int, float]  # (i, sign): where sign·x_i is least
End = tuple[Vector, Vector]  # a corner, and the multipliers of all rows that prove it

_TINY = 1e-11  # a price or a slope below this is none: rows have length 1
_NONE = 1e-200  # a slack of 0 by which one may divide
_FRESH = 400  # pivots after which the basis is inverted anew
_STALLED = 200  # pivots without a move after which a walk is given up
_PIVOTS = 50  # per dimension
WALKS_TOGETHER = 32  # walks at a time: one product of matrices then takes a third of the time of so many with vectors
_NUMBERS = 4_000_000  # in the inverses of all of them


@final
@dataclass(frozen=True, slots=True, eq=False)
class Corner:
    """A corner of {Gx <= h}: the rows that meet there, the inverse of their matrix, the point and the other slacks."""

    on: Index
    inverse: Vector
    x: Vector
    slack: Vector


class Corners:
    """The ends of coordinates found so far, and walks from the best of them to the next: along edges, steepest first.

    A walk ends with multipliers that prove how far its corner is from the minimum; whoever uses them need not trust it.
    """

    def __init__(self, conic: Conic) -> None:
        rows, right = conic.rows
        self.equalities = len(conic.b)
        self.order, self.pairs = opposite_rows_last(rows, self.equalities)
        self.rows, self.right = rows[self.order], right[self.order]
        self.known_corners: list[tuple[Vector, Index]] = []  # corners and the rows that meet there

    def add(self, x: Vector) -> bool:
        """Take a point as a corner; refused where fewer than n independent rows meet."""
        with extra_imports:
            from scipy.linalg import qr

        slack = self.right - self.rows @ x
        near = np.flatnonzero(np.abs(slack) <= 1e-8 * (1.0 + np.abs(self.right)))
        near = np.concatenate((np.arange(self.equalities), near[near >= self.equalities]))
        n = len(x)
        if len(near) < n:
            return False
        first = self._independent(near[: self.equalities])
        if len(first) < self.equalities:
            return False
        rest = near[self.equalities :]
        if self.equalities:  # what the equalities leave of the other rows
            basis = np.linalg.qr(self.rows[first].T)[0]
            left = self.rows[rest] - (self.rows[rest] @ basis) @ basis.T
        else:
            left = self.rows[rest]
        _, R, order = qr(left.T, pivoting=True, mode="economic")
        want = n - self.equalities
        if want and (len(order) < want or abs(R[want - 1, want - 1]) <= 1e-9):
            return False
        corner = self.fresh(np.concatenate((first, rest[order[:want]])))
        if corner is None:
            return False
        self.known_corners.append((corner.x, corner.on))
        return True

    def _independent(self, rows: Index) -> Index:
        return rows if np.linalg.matrix_rank(self.rows[rows]) == len(rows) else rows[:0]

    def fresh(self, on: Index) -> Corner | None:
        """The corner where these rows meet, from nothing else; None where they are dependent."""
        try:
            inverse = np.asarray(np.linalg.inv(self.rows[on]), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None
        x = inverse @ self.right[on]
        slack = np.maximum(self.right - self.rows @ x, _NONE)
        slack[on] = np.inf  # these rows cannot be met again
        return Corner(on.copy(), inverse, x, slack)

    def minimise(self, goals: Sequence[Goal]) -> Iterator[tuple[int, End | None]]:
        """(number of the goal, its end) as they are found; None for a walk that does not end.

        Several walks are under way at any time: their products with the rows are one product of matrices.
        """
        walks = _Walks(self, min(WALKS_TOGETHER, max(_NUMBERS // self.rows.shape[1] ** 2, 1), len(goals)))
        waiting = iter(range(len(goals)))
        while True:
            while walks.vacant and (k := next(waiting, None)) is not None:
                if not walks.begin(k, goals[k], self.start(goals[k])):
                    yield k, None
            if not walks.count:
                return
            for k, on in walks.step():
                yield k, None if on is None else self.solve_end(goals[k], on)

    def start(self, goal: Goal) -> Corner | None:
        """The best corner so far."""
        i, sign = goal
        return self.fresh(min(self.known_corners, key=lambda c: sign * c[0].item(i))[1]) if self.known_corners else None

    def solve_end(self, goal: Goal, on: Index) -> End | None:
        """The corner and its multipliers from the rows that meet there: digits that the walk lost are back."""
        with extra_imports:
            from scipy.linalg.lapack import dgetrf, dgetrs

        i, sign = goal
        slope = np.zeros(len(on))
        slope[i] = -sign
        lu, pivots, failed = dgetrf(self.rows[on])
        if failed:
            return None
        x, prices = dgetrs(lu, pivots, self.right[on])[0], dgetrs(lu, pivots, slope, trans=1)[0]
        self.known_corners.append((x, on))
        dual = np.zeros(len(self.right))
        dual[self.order[on]] = prices
        dual[self.equalities :] = np.maximum(dual[self.equalities :], 0.0)
        return x, dual


def opposite_rows_last(rows: Vector, equalities: int) -> tuple[Index, int]:
    """An order of the rows that ends with p of them and then their p opposites, and p: as in -1 <= a·x <= 1.

    Products with the opposites cost nothing.
    """
    single: dict[bytes, int] = {}
    pairs: list[tuple[int, int]] = []
    for j in range(equalities, len(rows)):
        other = single.pop((0.0 - rows[j]).tobytes(), None)  # 0.0 - x is never -0.0
        if other is None:
            single[(0.0 + rows[j]).tobytes()] = j
        else:
            pairs.append((other, j))
    first, second = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    rest = np.setdiff1d(np.arange(len(rows)), np.concatenate((first, second)))
    return np.concatenate((rest, first, second)), len(pairs)


class _Walks:
    """Walks under way, one in each of the first `count` entries of every array."""

    def __init__(self, corners: Corners, capacity: int) -> None:
        with extra_imports:
            from scipy.linalg.blas import dger

        rows, n = corners.rows, corners.rows.shape[1]
        self.corners, self.count, self._add_outer_product = corners, 0, dger
        self.columns = np.ascontiguousarray(rows[: len(rows) - corners.pairs].T)
        self.number, self.axis = np.zeros(capacity, dtype=np.intp), np.zeros(capacity, dtype=np.intp)
        self.sign = np.zeros(capacity)
        self.pivots, self.still = np.zeros(capacity, np.intp), np.zeros(capacity, np.intp)
        self.on = np.zeros((capacity, n), dtype=np.intp)
        # The inverses of the rows `on`, transposed: minus the edges of the corner.
        self.edges = np.zeros((capacity, n, n))
        self.inverses = [inverse.T for inverse in self.edges]
        self.prices, self.squares = np.zeros((capacity, n)), np.zeros((capacity, n))
        self.slack, self.slope, self.ratio = (np.zeros((capacity, len(rows))) for _ in range(3))
        self._kept: list[NDArray[Any]] = [self.number, self.axis, self.sign, self.pivots, self.still, self.on]
        self._kept += [self.edges, self.prices, self.squares, self.slack]

    @property
    def vacant(self) -> bool:
        """Whether another walk can begin."""
        return self.count < len(self.number)

    def begin(self, number: int, goal: Goal, corner: Corner | None) -> bool:
        """Begin a walk at the corner; refused where there is none."""
        if corner is None:
            return False
        w = self.count
        self.number[w], (self.axis[w], self.sign[w]) = number, goal
        self.pivots[w] = self.still[w] = 0
        self._put(w, corner)
        self.count += 1
        return True

    def _put(self, w: int, corner: Corner) -> None:
        self.on[w], self.edges[w], self.slack[w] = corner.on, corner.inverse.T, corner.slack
        self.prices[w] = -self.sign[w] * corner.inverse[self.axis[w]]
        self.squares[w] = np.einsum("ij,ij->j", corner.inverse, corner.inverse)
        self.squares[w, : self.corners.equalities] = np.inf  # no edge leaves an equality

    def step(self) -> list[tuple[int, Index | None]]:
        """One pivot of every walk, or the end of some: with the rows that meet there, or None if given up."""
        each = np.arange(self.count)
        prices = self.prices[: self.count]
        leave = (prices * np.abs(prices) / self.squares[: self.count]).argmin(axis=1)  # the steepest descent
        done = (prices[each, leave] >= -_TINY) | (leave < self.corners.equalities)
        if done.any():
            return self._take_out(np.flatnonzero(done), arrived=True)
        edge = -self.edges[each, leave]
        enter = self._first_row_met(edge)
        steep = self.slope[each, enter]
        open_ended = ~(steep > _TINY)
        if open_ended.any():
            return self._take_out(np.flatnonzero(open_ended), arrived=False)
        step = self.slack[each, enter] / steep
        self._move(each, leave, enter, step)
        self._turn(each, leave, enter, edge)
        return self._look_after(step)

    def _first_row_met(self, edge: Vector) -> Index:
        """The row that each walk meets first along its edge; leaves how fast all rows are approached in `slope`."""
        slope, ratio = self.slope[: self.count], self.ratio[: self.count]
        known, pairs = self.columns.shape[1], self.corners.pairs
        np.matmul(edge, self.columns, out=slope[:, :known])
        np.negative(slope[:, known - pairs : known], out=slope[:, known:])
        np.subtract(slope, _TINY, out=ratio)
        ratio /= self.slack[: self.count]
        return np.asarray(ratio.argmax(axis=1))

    def _move(self, each: Index, leave: Index, enter: Index, step: Vector) -> None:
        """The rows that meet at the next corner, and the slacks of the others."""
        slope, slack = self.slope[: self.count], self.slack[: self.count]
        slope *= step[:, None]
        slack -= slope
        np.maximum(slack, _NONE, out=slack)
        slack[each, self.on[each, leave]] = np.maximum(step, _NONE)
        slack[each, enter] = np.inf
        self.on[each, leave] = enter

    def _turn(self, each: Index, leave: Index, enter: Index, edge: Vector) -> None:
        """The edges of the next corner, the squares of their lengths, and the prices."""
        edges = self.edges[: self.count]
        row = np.matmul(edges, self.corners.rows[enter][:, :, None])[:, :, 0]
        pivot = row[each, leave]
        col = edge / -pivot[:, None]
        beside = np.matmul(edges, col[:, :, None])[:, :, 0]
        share = self.prices[each, leave] / pivot
        row[each, leave] -= 1.0
        self.prices[: self.count] -= share[:, None] * row
        squares = self.squares[: self.count]
        squares += row * (row * np.einsum("ij,ij->i", col, col)[:, None] - 2.0 * beside)
        np.maximum(squares, 1e-30, out=squares)
        for w in range(self.count):
            self._add_outer_product(-1.0, col[w], row[w], a=self.inverses[w], overwrite_a=1)

    def _look_after(self, step: Vector) -> list[tuple[int, Index | None]]:
        """Give up walks that go on without an end, and invert anew what many pivots have changed."""
        count = self.count
        self.pivots[:count] += 1
        self.still[:count] = np.where(step <= 1e-15, self.still[:count] + 1, 0)
        lost = (self.still[:count] > _STALLED) | (self.pivots[:count] > _PIVOTS * self.on.shape[1])
        for w in np.flatnonzero(self.pivots[:count] % _FRESH == 0):
            corner = self.corners.fresh(self.on[w])
            if corner is None:
                lost[w] = True
            else:
                self._put(int(w), corner)
        return self._take_out(np.flatnonzero(lost), arrived=False) if lost.any() else []

    def _take_out(self, ended: Index, arrived: bool) -> list[tuple[int, Index | None]]:
        """The numbers of these walks, and the rows where they arrived; the last walks take their places."""
        out: list[tuple[int, Index | None]] = []
        for w in ended[::-1]:
            out.append((int(self.number[w]), self.on[w].copy() if arrived else None))
            self.count -= 1
            for kept in self._kept:
                kept[w] = kept[self.count]
        return out
