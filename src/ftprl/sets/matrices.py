"""Sets of matrices, played as vectors: entry (i, j) of a matrix is coordinate i·columns + j."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.extras import extra_imports
from ftprl.sets import multiplier
from ftprl.sets.base import Frozen, Quantity, scaled_tolerance
from ftprl.sets.hindsight import PostHoc, const_optimum
from ftprl.sets.oracle import OracleSet
from ftprl.solver import Conic, Solution

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


class MatrixSet(Frozen, OracleSet):
    """Base class of sets of matrices, with their shape."""

    rows: int
    columns: int

    @property
    def dim(self) -> int:
        """Return the number of entries."""
        return self.rows * self.columns

    def matrix(self, x: Vector) -> Vector:
        """Return the matrix with the entries of the vector x."""
        return check.vector("x", x, self.dim).reshape(self.rows, self.columns)

    def vector(self, M: Vector) -> Vector:
        """Return the entries of a matrix as a vector, row by row.

        Raises InvalidInput if the shape is not (rows, columns).

        >>> Birkhoff(2).vector([[1, 0], [0, 1]])
        array([1., 0., 0., 1.])
        """
        clean = check.matrix("M", M, self.columns)
        if len(clean) != self.rows:
            raise InvalidInput(f"M needs {self.rows} rows, got {len(clean)}; pass one of shape {self.shape}.")
        return clean.ravel()

    @property
    def shape(self) -> tuple[int, int]:
        """Return (rows, columns)."""
        return self.rows, self.columns

    def _square(self, x: Vector) -> Vector:
        return x.reshape(self.rows, self.columns)


class SpectralSet(MatrixSet):
    """Base class of sets that constrain singular values or eigenvalues.

    A step has a closed form if every entry has an equal weight.
    """

    def _closed(self, H: PSD, z: Vector, near: Vector) -> Vector | None:
        if H.ndim == 2 or (H.ndim and float(np.ptp(H))):
            return None
        return self._project(-z / float(H.max())).ravel()

    @abstractmethod
    def _project(self, x: Vector) -> Vector:
        """Return the matrix of the set nearest to x in the Euclidean norm of the entries."""


@final
class NuclearBall(SpectralSet):
    """The matrices with singular values that sum to at most `radius`: low rank, for recommendations.

    With one weight for all entries (`CoordinateConstant`) a step is one singular value decomposition.

    >>> F = NuclearBall(2, 3, radius=2.0)
    >>> F.matrix(F.vertex(np.array([0.0, 0.0, 0.0, 0.0, 5.0, 0.0])))
    array([[ 0.,  0.,  0.],
           [ 0., -2.,  0.]])
    """

    def __init__(self, rows: int, columns: int, radius: float = 1.0) -> None:
        self.rows, self.columns = check.dimension("rows", rows), check.dimension("columns", columns)
        self.radius = check.positive("radius", radius)

    def __repr__(self) -> str:
        return f"NuclearBall(rows={self.rows}, columns={self.columns}, radius={self.radius:g})"

    def vertex(self, g: Vector) -> Vector:
        """Return the minimiser of g·x: -radius u vᵀ with the first singular vectors of g."""
        size = float(np.abs(g).max())
        if not size:
            return np.zeros(self.dim)
        U, _, Vt = np.linalg.svd(self._square(g) / size, full_matrices=False)
        return np.outer(-self.radius * U[:, 0], Vt[0]).ravel() + 0.0

    def _project(self, x: Vector) -> Vector:
        U, s, Vt = np.linalg.svd(self._square(x), full_matrices=False)
        if float(s.sum()) > self.radius:
            s = multiplier.simplex(np.ones(len(s)), -s, self.radius, s)
        return np.asarray((U * s) @ Vt)

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return slope·x + radius times the largest singular value of the slope."""
        slope = psd.apply(H, x) + z
        return max(float(slope.dot(x)) + self.radius * float(np.linalg.norm(self._square(slope), 2)), 0.0)

    def widths(self) -> Vector:
        """Return 2 radius for every entry."""
        return np.full(self.dim, 2 * self.radius)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return -radius and radius for every entry."""
        return np.full(self.dim, -self.radius), np.full(self.dim, self.radius)

    def start(self) -> Vector:
        """Return the zero matrix."""
        return np.zeros(self.dim)

    def diameter(self) -> float:
        """Return 2 radius: the Euclidean norm never exceeds the sum of the singular values."""
        return 2 * self.radius

    def sq_diameter(self, Q: PSD) -> float:
        """Return 4 r² times the largest weight; for a full Q, times its largest eigenvalue, an upper bound."""
        return 4 * self.radius**2 * psd.largest(Q)

    def is_exact(self, what: Quantity) -> bool:
        """Return True except for `sq_diameter` of a full matrix; matrices with a single entry attain the other
        quantities.
        """
        return what != "full"

    def diagonal_optimum(self, G: Vector) -> PostHoc:
        """Return the best multiple of the identity: only the largest weight counts in N, so all others can be raised to
        it.
        """
        return const_optimum(self, float(G.sum()))

    def penalty_growth(self) -> float:
        """Return 1."""
        return 1.0

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if the singular values sum to at most the radius."""
        return self._over(x) <= scaled_tolerance(atol, self.radius)

    def violation(self, x: Vector) -> float:
        """Return by how much the sum of the singular values exceeds the radius, relative to the radius.

        >>> NuclearBall(2, 2).violation(np.array([2.0, 0.0, 0.0, 0.0]))
        1.0
        """
        return max(self._over(x), 0.0) / self.radius

    def _over(self, x: Vector) -> float:
        return float(np.linalg.svd(self._square(x), compute_uv=False).sum()) - self.radius


@final
class Spectrahedron(SpectralSet):
    """The symmetric, positive semidefinite matrices of a fixed trace: covariances, density matrices, mixtures of
    subspaces.

    All size² entries are coordinates, so (i, j) and (j, i) are equal; only the symmetric part of a gradient matters.
    With one weight for all entries a step is one eigendecomposition.

    >>> F = Spectrahedron(2)
    >>> F.matrix(F.vertex(np.array([1.0, 0.0, 0.0, 3.0])))
    array([[1., 0.],
           [0., 0.]])
    """

    def __init__(self, size: int, trace: float = 1.0) -> None:
        self.rows = self.columns = check.dimension("size", size)
        self.trace = check.positive("trace", trace)

    def __repr__(self) -> str:
        return f"Spectrahedron(size={self.rows}, trace={self.trace:g})"

    def _symmetric(self, x: Vector) -> Vector:
        M = self._square(x)
        return (M + M.T) / 2

    def vertex(self, g: Vector) -> Vector:
        """Return the minimiser of g·x: trace u uᵀ with u an eigenvector of the smallest eigenvalue of g."""
        size = float(np.abs(g).max())
        u = np.linalg.eigh(self._symmetric(g) / size)[1][:, 0] if size else np.eye(self.rows)[0]
        return np.outer(self.trace * u, u).ravel()

    def _project(self, x: Vector) -> Vector:
        w, V = np.linalg.eigh(self._symmetric(x))
        w = multiplier.simplex(np.ones(len(w)), -w, self.trace, np.ones(len(w)))
        X = (V * w) @ V.T
        return np.asarray((X + X.T) / 2)

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return slope·x - trace times the smallest eigenvalue of the slope."""
        slope = psd.apply(H, x) + z
        return max(float(slope.dot(x)) - self.trace * float(np.linalg.eigvalsh(self._symmetric(slope))[0]), 0.0)

    def widths(self) -> Vector:
        """Return the trace for every entry: from 0 to it on the diagonal, from -trace/2 to trace/2 elsewhere."""
        return np.full(self.dim, self.trace if self.rows > 1 else 0.0)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the range of each entry: 0 to trace on the diagonal, -trace/2 to trace/2 elsewhere."""
        if self.rows == 1:
            return np.full(1, self.trace), np.full(1, self.trace)
        eye = np.eye(self.rows).ravel()
        return -self.trace / 2 * (1 - eye), self.trace / 2 * (1 + eye)

    def start(self) -> Vector:
        """Return trace / size times the identity.

        >>> Spectrahedron(2).matrix(Spectrahedron(2).start())
        array([[0.5, 0. ],
               [0. , 0.5]])
        """
        return (np.eye(self.rows) * (self.trace / self.rows)).ravel()

    def tangent(self, g: Vector) -> Vector:
        """Return the symmetric part of g, with the mean of its diagonal subtracted on the diagonal."""
        M = self._symmetric(g)
        return (M - np.eye(self.rows) * (float(np.trace(M)) / self.rows)).ravel()

    def diameter(self) -> float:
        """Return sqrt 2 trace."""
        return math.sqrt(2.0) * self.trace if self.rows > 1 else 0.0

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym: 2 trace² q for Q = q I, an upper bound for other weights.

        Only the part of Q that acts on symmetric matrices counts.
        """
        if self.rows == 1:
            return 0.0
        if Q.ndim == 2:
            Q = np.array([self.tangent(row) for row in Q])
            Q = np.array([self.tangent(row) for row in Q.T])
        return min(2 * self.trace**2 * psd.largest(Q), super().sq_diameter(Q) if Q.ndim else math.inf)

    def is_exact(self, what: Quantity) -> bool:
        """Return True for the widths and the diameter."""
        return what in ("widths", "diameter")

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if x is symmetric, has no negative eigenvalue, and has the trace of the set."""
        return self._miss(x) <= scaled_tolerance(atol, self.trace)

    def violation(self, x: Vector) -> float:
        """Return the largest of the three errors (symmetry, eigenvalues, trace), relative to the trace."""
        return self._miss(x) / self.trace

    def _miss(self, x: Vector) -> float:
        M = self._square(x)
        low = float(np.linalg.eigvalsh(self._symmetric(x))[0])
        return max(-low, abs(float(np.trace(M)) - self.trace), float(np.abs(M - M.T).max()))


@final
class Birkhoff(MatrixSet):
    """The doubly stochastic matrices {X >= 0, every row and column sums to 1}: mixtures of assignments.

    Entry (i, j) is the share of assignments that give task j to worker i; there are `size` workers and `size` tasks.

    >>> Birkhoff(2).vertex(np.array([3.0, 1.0, 1.0, 2.0]))
    array([0., 1., 1., 0.])
    """

    def __init__(self, size: int) -> None:
        self.rows = self.columns = check.dimension("size", size)

    def __repr__(self) -> str:
        return f"Birkhoff(size={self.rows})"

    def vertex(self, g: Vector) -> Vector:
        """Return the cheapest assignment (SciPy's `linear_sum_assignment`)."""
        with extra_imports:
            from scipy.optimize import linear_sum_assignment

        X = np.zeros(self.shape)
        X[linear_sum_assignment(self._square(g))] = 1.0
        return X.ravel()

    def widths(self) -> Vector:
        """Return 1 for every entry."""
        return np.full(self.dim, 1.0 if self.rows > 1 else 0.0)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return 0 and 1 for every entry."""
        return np.full(self.dim, 0.0 if self.rows > 1 else 1.0), np.ones(self.dim)

    def start(self) -> Vector:
        """Return the matrix with 1 / size everywhere."""
        return np.full(self.dim, 1.0 / self.rows)

    def tangent(self, g: Vector) -> Vector:
        """Return g without the means of its rows and columns."""
        M = self._square(g)
        return np.asarray(M - M.mean(axis=0) - M.mean(axis=1)[:, None] + M.mean()).ravel()

    def diameter(self) -> float:
        """Return sqrt(2 size), the distance of two assignments without a common pair."""
        return math.sqrt(2.0 * self.rows) if self.rows > 1 else 0.0

    def sq_diameter(self, Q: PSD) -> float:
        """Return max xᵀQx over Fsym: 2 size q for Q = q I, an upper bound for other weights.

        The bound is twice the most expensive assignment, or comes from the largest eigenvalue, whichever is smaller.
        """
        if self.rows == 1:
            return 0.0
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        if Q.ndim == 1:
            return min(float(Q.sum()), 2 * float(Q @ self.vertex(-Q)))
        seen = np.array([self.tangent(row) for row in Q])
        seen = np.array([self.tangent(row) for row in seen.T])
        return min(super().sq_diameter(Q), psd.largest(seen) * self.diameter() ** 2)

    def is_exact(self, what: Quantity) -> bool:
        """Return True for the widths and the diameter."""
        return what in ("widths", "diameter")

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x: |x|₁ is equal at all points of the set, so the penalty changes nothing."""
        return self.minimise(H, z, near)

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if no entry is negative and every row and column sums to 1."""
        return self.violation(x) <= 2 * atol

    def violation(self, x: Vector) -> float:
        """Return the size of the most negative entry or of the largest error of a sum."""
        M = self._square(x)
        off = max(float(np.abs(M.sum(axis=axis) - 1).max()) for axis in (0, 1))
        return max(-float(x.min()), off)

    def conic(self) -> Conic:
        """Return a row for each entry and an equality for each sum but one, which follows from the others."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        n, eye = self.rows, np.eye(self.rows)
        A = np.vstack((np.kron(eye, np.ones(n)), np.kron(np.ones(n), eye)))[:-1]
        return Conic.polyhedron(self.dim, (-np.eye(self.dim), np.zeros(self.dim)), (A, np.ones(2 * n - 1)))
