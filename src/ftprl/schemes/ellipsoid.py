"""The ellipsoid around Fsym that competes with every full matrix on every set with interior."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl import check, programs
from ftprl.errors import Unsupported
from ftprl.sets import Box, ConvexSet, Ellipsoid, Polytope, Preimage, Product
from ftprl.sets.balls import NormBall

Vector = NDArray[np.float64]


def john(feasible: ConvexSet) -> Vector:
    """A with |A(x - y)|₂ <= 1 for all x, y in F, as tight as John's ellipsoid where that is at hand.

    Play `Preconditioned(A, FTPRL(Preimage(inv(A), F), CoordinateConstant(diameter=1.0)))`: its bound is within
    sqrt(2n) of the best any fixed full matrix could have had (ratio n instead of sqrt n for large polytopes).

    >>> float(john(Box(-1, 1, dim=4))[0, 0])
    0.25
    """
    check.instance("john", feasible, ConvexSet)
    if isinstance(feasible, Preimage):
        return john(feasible.inner) @ feasible.A
    if isinstance(feasible, Product):
        return _product(feasible)
    D = feasible.widths()
    if not np.isfinite(D).all() or np.any(D == 0) or not _has_interior(feasible):
        raise Unsupported(f"john needs a bounded set with interior, got {feasible!r}; drop its flat directions.")
    n = feasible.dim
    if isinstance(feasible, Box):
        return np.diag(1 / (math.sqrt(n) * D))
    if isinstance(feasible, NormBall):
        return np.eye(n) / feasible.diameter()
    if isinstance(feasible, Ellipsoid):
        return feasible.A / 2
    V = feasible.extreme_differences()
    if V is not None and np.linalg.matrix_rank(V / D) == n:
        return _around_points(V)
    conic = feasible.conic()
    if not conic.polyhedral or len(conic.b):
        raise Unsupported(f"john needs a polytope, a ball, an ellipsoid, or a product of these, got {feasible!r}.")
    if V is not None:
        raise Unsupported(f"john needs a bounded set with interior, got {feasible!r}; drop its flat directions.")
    B, _ = programs.inscribed_ellipsoid(conic.C, conic.d)
    return np.linalg.inv(B) / (2 * n)


def _has_interior(feasible: ConvexSet) -> bool:
    if isinstance(feasible, Polytope) and feasible.inner_radius <= 1e-9 * float(feasible.widths().max()):
        return False
    probe = np.eye(feasible.dim)
    return all(float(np.abs(feasible.tangent(e) - e).max()) <= 1e-12 for e in probe)


def _product(feasible: Product) -> Vector:
    out = np.zeros((feasible.dim, feasible.dim))
    for s, b in zip(feasible.sets, feasible.blocks, strict=True):
        out[b, b] = math.sqrt(s.dim / feasible.dim) * john(s)
    return out


def _around_points(V: Vector) -> Vector:
    """Multiplicative updates of a D-optimal design, then a scaling that makes the containment exact."""
    n = V.shape[1]
    w = np.full(len(V), 1 / len(V))
    reach = math.inf
    for _ in range(20_000):
        M = V.T @ (w[:, None] * V)
        lengths = np.einsum("ij,ij->i", V, np.linalg.solve(M, V.T).T)
        reach = float(lengths.max())
        if reach <= n * (1 + 1e-6):
            break
        w = w * lengths / n
    inverse = np.linalg.inv(reach * M)
    return np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2).T)
