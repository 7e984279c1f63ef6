"""Linear programs over one polyhedron, one after another: each starts at the best corner found for those before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

_TINY = 1e-11  # a price or a slope below this is none: rows have length 1
_NONE = 1e-200  # a slack of 0 by which one may divide
_FRESH = 250  # pivots after which the basis is inverted anew
_STALLED = 200  # pivots without a move after which the start is given up
_PIVOTS = 50  # per dimension


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
        self.rows, self.right = conic.rows
        self.equalities = len(conic.b)
        self.found: list[tuple[Vector, Index]] = []  # corners and the rows that meet there

    def add(self, x: Vector) -> bool:
        """Take a point as a corner; refused where fewer than n independent rows meet."""
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
        corner = self._fresh(np.concatenate((first, rest[order[:want]])))
        if corner is None:
            return False
        self.found.append((corner.x, corner.on))
        return True

    def _independent(self, rows: Index) -> Index:
        return rows if np.linalg.matrix_rank(self.rows[rows]) == len(rows) else rows[:0]

    def _fresh(self, on: Index) -> Corner | None:
        try:
            inverse = np.asfortranarray(np.linalg.inv(self.rows[on]))
        except np.linalg.LinAlgError:
            return None
        x = inverse @ self.right[on]
        slack = np.maximum(self.right - self.rows @ x, _NONE)
        slack[on] = np.inf  # these rows cannot be met again
        return Corner(on.copy(), inverse, x, slack)

    def minimise(self, i: int, sign: float) -> tuple[Vector, Vector] | None:
        """(corner, multipliers of all rows) where sign·x_i is least; None where the walk does not end."""
        if not self.found:
            return None
        start = self._fresh(min(self.found, key=lambda c: sign * c[0].item(i))[1])
        walked = None if start is None else self._walk(i, sign, start)
        if walked is None:
            return None
        corner, prices = walked
        self.found.append((corner.x, corner.on))
        dual = np.zeros(len(self.right))
        dual[corner.on] = prices
        dual[self.equalities :] = np.maximum(dual[self.equalities :], 0.0)
        return corner.x, dual

    def _walk(self, i: int, sign: float, corner: Corner) -> tuple[Corner, Vector] | None:
        """Along edges of steepest descent of sign·x_i."""
        from scipy.linalg.blas import dger

        rows, n, e = self.rows, len(corner.x), self.equalities
        on, B, x, slack = corner.on, corner.inverse, corner.x, corner.slack
        prices, squares = -sign * B[i], self._squares(B)
        inverse_step, still = np.empty(len(slack)), 0
        for pivot in range(1, _PIVOTS * n + 1):
            k = int((prices * np.abs(prices) / squares).argmin())
            if prices[k] >= -_TINY or k < e:
                return Corner(on, B, x, slack), prices
            edge = -B[:, k]
            slope = rows @ edge
            np.subtract(slope, _TINY, out=inverse_step)
            inverse_step /= slack
            enter = int(inverse_step.argmax())
            if not slope[enter] > _TINY:
                return None
            step = float(slack[enter] / slope[enter])
            still = still + 1 if step <= 1e-15 else 0
            if still > _STALLED:
                return None
            leave, on[k] = on[k], enter
            if pivot % _FRESH == 0:
                fresh = self._fresh(on)
                if fresh is None:
                    return None
                on, B, x, slack = fresh.on, fresh.inverse, fresh.x, fresh.slack
                prices, squares = -sign * B[i], self._squares(B)
                continue
            x = x + step * edge
            slope *= step
            slack -= slope
            np.maximum(slack, _NONE, out=slack)
            slack[leave], slack[enter] = max(step, _NONE), np.inf
            row = rows[enter] @ B
            col = B[:, k] / row[k]
            share = prices[k] / row[k]
            row[k] -= 1.0
            prices -= share * row
            squares += row * (row * float(col @ col) - 2.0 * (col @ B))
            np.maximum(squares, 1e-30, out=squares)
            B = dger(-1.0, col, row, a=B, overwrite_a=1)
        return None

    def _squares(self, B: Vector) -> Vector:
        """The squares of the lengths of the edges; no edge leaves an equality."""
        out = np.einsum("ij,ij->j", B, B)
        out[: self.equalities] = np.inf
        return np.asarray(out)
