"""The ellipsoid around Fsym that makes one adaptive number compete with every full matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl import check, programs
from ftprl.errors import Unsupported
from ftprl.sets import Box, ConvexSet, Ellipsoid, Polytope, Preimage, Product
from ftprl.sets.norm_ball import NormBall

Vector = NDArray[np.float64]

_DESIGN_STEPS, _FRESH = 100_000, 50


def john(feasible: ConvexSet) -> Vector:
    """Return A with |A(x - y)|₂ <= 1 for all x, y in F, as tight as John's ellipsoid where that is known.

    Play `Preconditioned(A, FTPRL(Preimage(inv(A), F), CoordinateConstant(diameter=1.0)))`: its bound is within a factor
    sqrt(2n) of the best that any fixed full matrix could have had (n instead of sqrt(2n) for large polytopes).

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
    B, _ = programs.inscribed_ellipsoid(conic.C * D, conic.d - conic.C @ feasible.start())  # in units of the widths
    return np.linalg.inv(B) / (2 * n) / D


def _has_interior(feasible: ConvexSet) -> bool:
    """Return True if F has interior: every direction distinguishes points of F."""
    if isinstance(feasible, Polytope) and feasible.inner_radius <= 1e-9 * float(feasible.widths().max()):
        return False
    probe = np.eye(feasible.dim)
    return all(float(np.abs(feasible.tangent(e) - e).max()) <= 1e-12 for e in probe)


def _product(feasible: Product) -> Vector:
    """Return the block-diagonal matrix of the factors' ellipsoids, scaled to contain the product."""
    out = np.zeros((feasible.dim, feasible.dim))
    for s, b in zip(feasible.sets, feasible.blocks, strict=True):
        out[b, b] = math.sqrt(s.dim / feasible.dim) * john(s)
    return out


def _around_points(V: Vector) -> Vector:
    """Return a D-optimal design on the points, scaled so that it contains all of them exactly.

    Frank-Wolfe with away steps (Todd and Yildirim): weight goes to the point furthest outside the current ellipsoid, or
    is taken from the point furthest inside; both have an exact step length, and one step costs O(points n). Points that
    cannot have weight in the end (Harman and Pronzato) are dropped on the way; the scaling counts all points.
    """
    n = V.shape[1]
    unit = np.abs(V).max(axis=0)
    differences = V
    V, s, W = np.linalg.svd(V / unit, full_matrices=False)  # any linear image will do: none of them is long
    every = V
    w = _spread_out(V)
    for step in range(_DESIGN_STEPS):
        if step % _FRESH == 0:
            inverse = np.linalg.inv(V.T @ (w[:, None] * V))
            lengths = np.einsum("ij,ij->i", V @ inverse, V)
            excess = float(lengths.max()) / n - 1
            shortest = n * (1 + excess / 2 - math.sqrt(max(excess * (4 + excess - 4 / n), 0.0)) / 2) * (1 - 1e-9)
            keep = (lengths >= shortest) | (w > 0)
            V, w, lengths = V[keep], w[keep], lengths[keep]
        out = int(lengths.argmax())
        used = np.flatnonzero(w)
        back = int(used[lengths[used].argmin()])
        far, near = float(lengths[out]) / n - 1, 1 - float(lengths[back]) / n
        if far <= 1e-6:
            break
        k, least = (out, 0.0) if far >= near else (back, -float(w[back]) / (1 - float(w[back])))
        size = float(lengths[k])
        move = max((size / n - 1) / (size - 1), least)
        w *= 1 - move
        w[k] = 0.0 if move == least and k == back else w[k] + move
        side = inverse @ V[k]
        share = move / (1 - move + move * size)
        inverse = (inverse - share * np.outer(side, side)) / (1 - move)
        lengths = (lengths - share * (V @ side) ** 2) / (1 - move)
    M = V.T @ (w[:, None] * V)
    reach = float(np.einsum("ij,ij->i", every @ np.linalg.inv(M), every).max())
    inverse = np.linalg.inv(reach * M)
    A = np.linalg.qr(np.linalg.cholesky((inverse + inverse.T) / 2).T @ (W / s[:, None]) / unit)[1]
    return np.asarray(A / np.linalg.norm(differences @ A.T, axis=1).max())


def _spread_out(V: Vector) -> Vector:
    """Return equal weights on n points, each the furthest in the directions orthogonal to those before it."""
    n = V.shape[1]
    chosen: list[int] = []
    rest = V.copy()
    for _ in range(n):
        k = int(np.einsum("ij,ij->i", rest, rest).argmax())
        chosen.append(k)
        line = rest[k] / np.linalg.norm(rest[k])
        rest = rest - np.outer(rest @ line, line)
    w = np.zeros(len(V))
    w[chosen] = 1 / n
    return w
