"""A sequence of linear programs over one polyhedron, each started at the best corner found so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.extras import extra_imports
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
Index = NDArray[np.intp]
Goal = tuple[int, float]  # (i, sign): minimise sign·x_i
End = tuple[Vector, Vector]  # a corner, and the multipliers of all rows that prove it

_TINY = 1e-11  # smaller prices and slopes count as 0, because rows have length 1
_NONE = 1e-200  # replaces a slack of 0 in divisions
_FRESH = 400  # pivots after which the basis is inverted again
_STALLED = 200  # pivots without a move after which a walk is abandoned
_PIVOTS = 50  # per dimension


class Corners:
    """The corners found so far for coordinates' ends, and walks from the best of them along edges, steepest first.

    A walk ends with multipliers that prove how far its corner is from the minimum, so that callers can check it.
    """

    def __init__(self, conic: Conic) -> None:
        self.rows, self.right = conic.rows
        self.equalities = len(conic.b)
        self.known_corners: list[tuple[Vector, Index]] = []  # corners and the rows that meet there

    def add(self, x: Vector) -> bool:
        """Add a point as a corner; return False if fewer than n independent rows meet there."""
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
        if self.equalities:  # project the other rows on the equalities' null space
            basis = np.linalg.qr(self.rows[first].T)[0]
            left = self.rows[rest] - (self.rows[rest] @ basis) @ basis.T
        else:
            left = self.rows[rest]
        _, R, order = qr(left.T, pivoting=True, mode="economic")
        want = n - self.equalities
        if want and (len(order) < want or abs(R[want - 1, want - 1]) <= 1e-9):
            return False
        on = np.concatenate((first, rest[order[:want]]))
        inverse = self._inverse(on)
        if inverse is None:
            return False
        self.known_corners.append((inverse @ self.right[on], on))
        return True

    def _independent(self, rows: Index) -> Index:
        """Return the rows if they are linearly independent, else none of them."""
        return rows if np.linalg.matrix_rank(self.rows[rows]) == len(rows) else rows[:0]

    def _inverse(self, on: Index) -> Vector | None:
        """Return the inverse of the rows that meet in a corner; None where the rows are dependent."""
        try:
            return np.asarray(np.linalg.inv(self.rows[on]), dtype=np.float64)
        except np.linalg.LinAlgError:
            return None

    def minimise(self, goal: Goal) -> End | None:
        """Walk from the best corner so far to the end of a coordinate; return None if the walk does not arrive."""
        i, sign = goal
        if not self.known_corners:
            return None
        on = min(self.known_corners, key=lambda corner: sign * corner[0].item(i))[1].copy()
        edges, slack, still = np.zeros((0, 0)), np.zeros(0), 0
        for pivot in range(_PIVOTS * len(on)):
            if pivot % _FRESH == 0:
                inverse = self._inverse(on)
                if inverse is None:
                    return None
                edges = np.ascontiguousarray(-inverse.T)
                slack = np.maximum(self.right - self.rows @ (inverse @ self.right[on]), _NONE)
                slack[on] = np.inf  # these rows cannot be met again
            prices, squares = sign * edges[:, i], np.einsum("ij,ij->i", edges, edges)
            squares[: self.equalities] = np.inf  # no edge leaves an equality
            leave = int((prices * np.abs(prices) / squares).argmin())  # the steepest descent
            if prices[leave] >= -_TINY or leave < self.equalities:
                return self.solve_end(goal, on)
            slope = self.rows @ edges[leave]
            enter = int(((slope - _TINY) / slack).argmax())  # the row that is met first
            if not slope[enter] > _TINY:
                return None
            step = slack[enter] / slope[enter]
            still = still + 1 if step <= 1e-15 else 0
            if still > _STALLED:
                return None
            slack = np.maximum(slack - step * slope, _NONE)
            slack[on[leave]], slack[enter] = max(step, _NONE), np.inf
            on[leave] = enter
            turn = edges @ self.rows[enter]
            edge = edges[leave] / turn[leave]
            turn[leave] += 1.0
            edges -= np.multiply.outer(turn, edge)
        return None

    def solve_end(self, goal: Goal, on: Index) -> End | None:
        """Return the corner and its multipliers recomputed from the rows that meet there, at full precision."""
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
        dual[on] = prices
        dual[self.equalities :] = np.maximum(dual[self.equalities :], 0.0)
        return x, dual
