"""Positive semidefinite matrices as arrays: ndim 0 is q·I, ndim 1 is diag(q), ndim 2 is a full matrix.

`LowRank`, used by `Full` and `Sketch`, is a multiple of I plus a matrix of low rank, in O(n rank) numbers. The
functions here take both forms; a set receives arrays, unless it has methods for a `LowRank`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# A gradient with less than this share outside range(Q) counts as inside: a root of a rank-deficient matrix is known
# only to about the square root of the machine's precision.
_RANGE_TOL = 1e-7


_LANCZOS_DIM, _LANCZOS_STEPS = 40, 40  # dimension from which Lanczos finds the largest eigenvalue, and its steps


@final
@dataclass(frozen=True, eq=False)
class LowRank:
    """The matrix shift·I + B M Bᵀ, with orthonormal columns of B; an M of ndim 1 is diagonal and not negative.

    An increment may name the two totals between which it lies: written out, it is then their difference.

    >>> Q = LowRank(1.0, np.array([[0.6], [0.8]]), np.array([2.0]))
    >>> Q.dense()
    array([[1.72, 0.96],
           [0.96, 2.28]])
    """

    shift: float
    B: Vector
    M: Vector
    between: tuple[LowRank, LowRank] | None = None

    @property
    def ndim(self) -> int:
        """Return 2, because the object represents a full matrix."""
        return 2

    @property
    def dim(self) -> int:
        """Return the number of rows."""
        return int(self.B.shape[0])

    @property
    def trace(self) -> float:
        """Return the sum of the eigenvalues."""
        core = self.M if self.M.ndim == 1 else np.diagonal(self.M)
        return self.dim * self.shift + float(core.sum())

    def apply(self, x: Vector) -> Vector:
        """Return this matrix times x, in O(n rank)."""
        h = self.B.T @ x
        out = self.B @ (self.M * h if self.M.ndim == 1 else self.M @ h)
        if self.shift:
            out += self.shift * x
        return np.asarray(out)

    def size(self, x: Vector) -> Vector:
        """Return an upper bound, entry by entry, on the sum of the products' absolute values in `apply`, for x >= 0."""
        B, M = np.abs(self.B), np.abs(self.M)
        h = B.T @ x
        return np.asarray(B @ (M * h if M.ndim == 1 else M @ h) + abs(self.shift) * x)

    def dense(self) -> PSD:
        """Return all n x n entries, symmetric to the last bit."""
        return self._dense

    @cached_property
    def _dense(self) -> PSD:
        if self.between is not None:
            before, after = self.between
            return after.dense() - before.dense()
        if self.M.ndim == 1:
            half = self.B * np.sqrt(np.maximum(self.M, 0.0))
            out = half @ half.T
        else:
            out = self.B @ self.M @ self.B.T
            out = (out + out.T) / 2
        np.einsum("ii->i", out)[...] += self.shift
        out.flags.writeable = False
        return np.asarray(out)

    def outside(self, x: Vector) -> Vector:
        """Return the part of x orthogonal to the columns of B."""
        return np.asarray(x - self.B @ (self.B.T @ x))

    def largest(self) -> float:
        """Return the largest eigenvalue."""
        if not self.M.size:
            return max(self.shift, 0.0)
        core = float(self.M.max()) if self.M.ndim == 1 else largest(self.M)
        return max(self.shift + core, 0.0)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Vector:
        return self.dense().astype(np.float64 if dtype is None else dtype, copy=copy is not False)

    def __mul__(self, factor: float) -> LowRank:
        return LowRank(self.shift * factor, self.B, self.M * factor)

    __rmul__ = __mul__

    def __truediv__(self, factor: float) -> LowRank:
        return LowRank(self.shift / factor, self.B, self.M / factor)


Matrix: TypeAlias = PSD | LowRank


def as_psd(Q: ArrayLike, dim: int, name: str = "Q") -> PSD:
    """Return `Q` as an array; raise InvalidInput unless it is symmetric positive semidefinite of dimension `dim`.

    >>> as_psd([2.0, 0.0], dim=2)
    array([2., 0.])
    """
    a = check.finite(name, check.array(name, Q))
    if a.ndim > 2 or any(s != dim for s in a.shape):
        raise InvalidInput(
            f"{name} needs a number, {dim} numbers or a {dim} x {dim} matrix, got shape {a.shape}; reshape it."
        )
    scale = float(np.abs(a).max(initial=0.0))
    if a.ndim == 2:
        skew = float(np.abs(a - a.T).max(initial=0.0))
        if skew > 1e-10 * scale:
            raise InvalidInput(
                f"{name} needs a symmetric matrix, got one with |{name} - {name}'| up to {skew:.3g};"
                f" pass ({name} + {name}.T) / 2."
            )
        a = (a + a.T) / 2
        low = float(np.linalg.eigvalsh(a)[0]) if dim else 0.0
    else:
        low = float(a.min(initial=0.0))
    # A matrix computed as a sum of outer products is PSD up to rounding; a number or a diagonal is exact.
    if low < (-1e-10 * scale if a.ndim == 2 else 0.0):
        raise InvalidInput(
            f"{name} needs a positive semidefinite matrix, got smallest eigenvalue {low:.3g};"
            " clip its eigenvalues at 0."
        )
    return a


def zero() -> PSD:
    """Return the matrix 0, of any dimension."""
    return np.zeros(())


def apply(Q: Matrix, x: Vector) -> Vector:
    """Return `Q x`."""
    if isinstance(Q, LowRank):
        return Q.apply(x)
    return Q @ x if Q.ndim == 2 else Q * x


def sizes(Q: Matrix, x: Vector) -> Vector:
    """Return `|Q| x` for x >= 0 or an upper bound on it, the size that rounding in `apply` is measured against."""
    return Q.size(x) if isinstance(Q, LowRank) else apply(np.abs(Q), x)


def quad(Q: Matrix, x: Vector) -> float:
    """Return `xᵀ Q x`.

    >>> quad(np.array([1.0, 2.0]), np.array([3.0, 1.0]))
    11.0
    """
    return between(Q, x, x)


def between(Q: Matrix, x: Vector, y: Vector) -> float:
    """Return `xᵀ Q y`."""
    return float(x.dot(apply(Q, y)))


def add_scalar(P: Matrix, q: float) -> Matrix:
    """Return `P + q I`."""
    return LowRank(P.shift + q, P.B, P.M) if isinstance(P, LowRank) else add(P, np.asarray(q))


def add(P: PSD, Q: PSD) -> PSD:
    """Return `P + Q` as the simplest array that can hold both.

    >>> add(np.array(2.0), np.array([1.0, 3.0]))
    array([3., 5.])
    """
    if P.ndim == Q.ndim or max(P.ndim, Q.ndim) < 2:
        return np.asarray(P + Q)
    small, big = (P, Q) if P.ndim < Q.ndim else (Q, P)
    out = big.copy()
    np.einsum("ii->i", out)[...] += small
    return out


def array(Q: Matrix) -> PSD:
    """Return `Q` as an array, with a matrix of low rank written out."""
    return Q.dense() if isinstance(Q, LowRank) else Q


def dense(Q: Matrix, dim: int) -> PSD:
    """Return `Q` written out as a `dim` x `dim` matrix."""
    if isinstance(Q, LowRank):
        return Q.dense()
    if Q.ndim == 2:
        return Q
    return np.diag(np.broadcast_to(Q, (dim,)).astype(np.float64))


def diagonal(Q: PSD, dim: int) -> Vector:
    """Return the diagonal of `Q` as a vector of length `dim`."""
    return np.diagonal(Q) if Q.ndim == 2 else np.broadcast_to(Q, (dim,))


def congruence(Q: PSD, B: Vector) -> PSD:
    """Return `Bᵀ Q B`, symmetric to the last bit; a diagonal `B` may have ndim 1.

    >>> congruence(np.array(2.0), np.array([1.0, 3.0]))
    array([ 2., 18.])
    """
    if B.ndim == 1:
        return Q * B * B if Q.ndim < 2 else Q * np.outer(B, B)
    inner = B.T @ (Q @ B) if Q.ndim == 2 else B.T @ (B if Q.ndim == 0 else Q[:, None] * B)
    out = inner * Q if Q.ndim == 0 else inner
    return np.asarray((out + out.T) / 2)


def eigh(Q: PSD) -> tuple[Vector, Vector]:
    """Return the eigenvalues of a full `Q`, with those that are zero up to rounding set to 0, and its eigenvectors."""
    w, V = np.linalg.eigh(Q)
    return np.where(w > 8 * len(w) * _EPS * max(float(w[-1]), 0.0), w, 0.0), V


def root(M: PSD) -> PSD:
    """Return the PSD square root of a full matrix; eigenvalues that rounding made negative count as 0.

    >>> root(np.diag([4.0, 9.0])).round(12)
    array([[2., 0.],
           [0., 3.]])
    """
    w, V = np.linalg.eigh(M)
    half = V * np.sqrt(np.maximum(w, 0.0))
    out = half @ V.T
    return np.asarray((out + out.T) / 2)


def largest(Q: Matrix) -> float:
    """Return the largest eigenvalue of `Q`; for a large full matrix, a proved upper bound within 1e-13 of it."""
    if isinstance(Q, LowRank):
        return Q.largest()
    if Q.ndim < 2:
        return float(Q.max(initial=0.0))
    top = _by_lanczos(Q) if len(Q) >= _LANCZOS_DIM else None
    return max(float(np.linalg.eigvalsh(Q)[-1]), 0.0) if top is None else top


def _by_lanczos(Q: PSD) -> float | None:
    """Return an upper bound on the largest eigenvalue of a PSD matrix from a few products; None if they do not
    suffice.

    In the basis of the products and any completion of it Q is [[T, b], [bᵀ, C]], with b of length beta and C of trace
    tr Q - tr T: its largest eigenvalue is at most that of [[top(T), beta], [beta, tr C]], because no eigenvalue is
    negative. Increments of `Full` have rapidly falling eigenvalues, for which this is sharp after a dozen products.
    """
    diag = np.diagonal(Q)
    trace, noise = float(diag.sum()), 8 * len(Q) * _EPS
    size = float(np.linalg.norm(Q[k := int(diag.argmax())]))
    if not trace > 0.0 or not math.isfinite(size) or size < 1e-290:
        return None
    basis = np.zeros((_LANCZOS_STEPS, len(Q)))
    v = Q[k] / size
    alphas: list[float] = []
    betas: list[float] = []
    for j in range(_LANCZOS_STEPS):
        basis[j] = v
        u = Q @ v
        alphas.append(float(v @ u))
        for _ in range(2):
            u -= basis[: j + 1].T @ (basis[: j + 1] @ u)
        beta = float(np.linalg.norm(u))
        if j % 4 == 3 or beta <= noise * trace:
            T = np.diag(alphas) + np.diag(betas, 1) + np.diag(betas, -1)
            top, rest = float(np.linalg.eigvalsh(T)[-1]), max(trace - sum(alphas), 0.0) + noise * trace
            half = (top - rest) / 2
            more = math.hypot(half, beta) - half  # the larger eigenvalue of the two by two matrix is top + more
            if half > 0 and more <= 1e-13 * top:
                return top + more
            if beta <= noise * trace:
                return None
        betas.append(beta)
        v = u / beta
    return None


def definite(Q: PSD) -> bool:
    """Return True if every direction has weight."""
    w = eigh(Q)[0] if Q.ndim == 2 else Q
    return positive(w)


def positive(w: Vector) -> bool:
    """Return True if no weight of a number or a diagonal is 0."""
    return w.item(w.argmin()) > 0.0  # far faster than all(), and called several times a round


def solve(Q: PSD, g: Vector) -> Vector:
    """Return `Q⁺ g`, by the pseudo-inverse: the part of `g` outside the range of `Q` is dropped.

    >>> solve(np.array([4.0, 0.0]), np.array([2.0, 5.0]))
    array([0.5, 0. ])
    """
    if Q.ndim == 2:
        w, V = eigh(Q)
        return np.asarray(V @ solve(w, V.T @ g))
    if definite(Q):
        return g / Q
    return np.divide(g, Q, out=np.zeros_like(g), where=Q > 0)


def dual_quad(Q: Matrix, g: Vector, move: Vector | None = None) -> float:
    """Return `gᵀ Q⁺ g`, or infinity if `g` is not in the range of `Q`, as the theory requires.

    The range of a full Q is known only up to rounding: if less than 1e-7 of g seems to lie outside it, that part is not
    dropped but counted, by twice its length times that of `move` = x_t - x_{t+1}, which bounds its contribution to a
    round's regret.

    >>> dual_quad(np.array([4.0, 0.0]), np.array([2.0, 0.0])), dual_quad(np.array([4.0, 0.0]), np.array([0.0, 1.0]))
    (1.0, inf)
    """
    if isinstance(Q, LowRank):
        Q = Q.dense()
    if Q.ndim == 2:
        w, V = eigh(Q)
        h = V.T @ g
        outside = float(np.linalg.norm(h[w == 0]))
        if outside > _RANGE_TOL * float(np.linalg.norm(g)):
            return math.inf
        h[w == 0] = 0.0
        extra = 0.0 if move is None else 2.0 * outside * float(np.linalg.norm(move))
        return dual_quad(w, h) + extra
    if positive(Q):
        return float(g.dot(g / Q))
    if np.any((Q == 0) & (g != 0)):
        return math.inf
    return float(g @ solve(Q, g))
