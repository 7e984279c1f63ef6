"""A positive semidefinite matrix is an array: ndim 0 means q·I, 1 means diag(q), 2 means a full matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
# A gradient whose share outside range(Q) is below this is taken to be inside: a root of a rank-deficient
# matrix is known to about the square root of the machine's precision.
_RANGE_TOL = 1e-7


def as_psd(Q: ArrayLike, dim: int, name: str = "Q") -> PSD:
    """Check that `Q` is symmetric positive semidefinite of dimension `dim`.

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
    """The matrix 0, of any dimension."""
    return np.zeros(())


def apply(Q: PSD, x: Vector) -> Vector:
    """`Q x`."""
    return Q @ x if Q.ndim == 2 else Q * x


def quad(Q: PSD, x: Vector) -> float:
    """`xᵀ Q x`."""
    return between(Q, x, x)


def between(Q: PSD, x: Vector, y: Vector) -> float:
    """`xᵀ Q y`."""
    return float(x.dot(apply(Q, y)))


def add(P: PSD, Q: PSD) -> PSD:
    """`P + Q`, as structured as the less structured of the two."""
    if P.ndim == Q.ndim or max(P.ndim, Q.ndim) < 2:
        return np.asarray(P + Q)
    small, big = (P, Q) if P.ndim < Q.ndim else (Q, P)
    out = big.copy()
    np.einsum("ii->i", out)[...] += small
    return out


def dense(Q: PSD, dim: int) -> PSD:
    """`Q` written out as a `dim` x `dim` matrix."""
    if Q.ndim == 2:
        return Q
    return np.diag(np.broadcast_to(Q, (dim,)).astype(np.float64))


def diagonal(Q: PSD, dim: int) -> Vector:
    """The diagonal of `Q` as a vector of length `dim`."""
    return np.diagonal(Q) if Q.ndim == 2 else np.broadcast_to(Q, (dim,))


def congruence(Q: PSD, B: Vector) -> PSD:
    """`Bᵀ Q B`, symmetric to the last bit; `B` may be given as a diagonal (ndim 1)."""
    if B.ndim == 1:
        return Q * B * B if Q.ndim < 2 else Q * np.outer(B, B)
    inner = B.T @ (Q @ B) if Q.ndim == 2 else B.T @ (B if Q.ndim == 0 else Q[:, None] * B)
    out = inner * Q if Q.ndim == 0 else inner
    return np.asarray((out + out.T) / 2)


def eigh(Q: PSD) -> tuple[Vector, Vector]:
    """Eigenvalues of a full `Q`, cleaned (what is zero up to rounding is zero), and eigenvectors."""
    w, V = np.linalg.eigh(Q)
    return np.where(w > 8 * len(w) * _EPS * max(float(w[-1]), 0.0), w, 0.0), V


def root(M: PSD) -> PSD:
    """The PSD square root of a full matrix; eigenvalues below zero by rounding count as zero."""
    w, V = np.linalg.eigh(M)
    half = V * np.sqrt(np.maximum(w, 0.0))
    out = half @ V.T
    return np.asarray((out + out.T) / 2)


def largest(Q: PSD) -> float:
    """The largest eigenvalue of `Q`."""
    return max(float(np.linalg.eigvalsh(Q)[-1]), 0.0) if Q.ndim == 2 else float(Q.max(initial=0.0))


def definite(Q: PSD) -> bool:
    """Whether every direction has weight."""
    w = eigh(Q)[0] if Q.ndim == 2 else Q
    return positive(w)


def positive(w: Vector) -> bool:
    """Whether no weight of a number or a diagonal is 0."""
    return w.item(w.argmin()) > 0.0  # far quicker than all(), and this is asked several times a round


def solve(Q: PSD, g: Vector) -> Vector:
    """`Q⁺ g`: the pseudo-inverse, so the part of `g` outside the range of `Q` is dropped.

    >>> solve(np.array([4.0, 0.0]), np.array([2.0, 5.0]))
    array([0.5, 0. ])
    """
    if Q.ndim == 2:
        w, V = eigh(Q)
        return np.asarray(V @ solve(w, V.T @ g))
    if definite(Q):
        return g / Q
    return np.divide(g, Q, out=np.zeros_like(g), where=Q > 0)


def dual_quad(Q: PSD, g: Vector, move: Vector | None = None) -> float:
    """`gᵀ Q⁺ g`, or infinity when `g` is not in the range of `Q` (theory: 3.2 needs it there).

    A full Q has no exact range: a part of g below 1e-7 of it that seems to lie outside is not dropped but paid for, by
    twice its length times that of `move` = x_t - x_{t+1}, which bounds what it can add to a round's regret.
    """
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
