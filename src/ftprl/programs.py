"""The convex programs for the best bound in hindsight, in Clarabel's form."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import Unsupported
from ftprl.extras import extra_imports
from ftprl.solver import call_clarabel

Vector = NDArray[np.float64]


def _svec(M: Vector) -> Vector:
    """Return the upper triangle, column by column, with off-diagonal entries times sqrt 2: an isometry."""
    j, i = np.tril_indices(len(M))
    return M[i, j] * np.where(i == j, 1.0, math.sqrt(2.0))


def _units(n: int) -> list[Vector]:
    """Return the symmetric matrices whose coefficients are the entries of an upper triangle."""
    out = []
    for j in range(n):
        for i in range(j + 1):
            E = np.zeros((n, n))
            E[i, j] = E[j, i] = 1.0
            out.append(E)
    return out


def _solve(q: Vector, blocks: list[tuple[Vector, Vector, Any]]) -> Vector:
    """Minimise q·w subject to blocks of conic rows; raise Unsupported if Clarabel does not converge."""
    with extra_imports:
        from scipy.sparse import csc_matrix

    G = np.vstack([g for g, _, _ in blocks])
    h = np.concatenate([h for _, h, _ in blocks])
    answer = call_clarabel(np.zeros((len(q), len(q))), q, csc_matrix(G), h, [c for _, _, c in blocks], 1e-10)
    if "Solved" not in str(answer.status):
        raise Unsupported(f"the post-hoc program did not converge ({answer.status}); use the closed-form families.")
    return np.array(answer.x)


def _inverse_sum(n: int, root: Vector) -> list[tuple[Vector, Vector, Any]]:
    """Return cones on (tau, l, u) for u_i l_i >= root_i², as |(2 root_i, l_i - u_i)| <= l_i + u_i."""
    with extra_imports:
        import clarabel

    out = []
    for i in range(n):
        G = np.zeros((3, 1 + 2 * n))
        G[0, [1 + i, 1 + n + i]] = -1.0
        G[2, 1 + i], G[2, 1 + n + i] = -1.0, 1.0
        out.append((G, np.array([0.0, 2 * root[i], 0.0]), clarabel.SecondOrderConeT(3)))
    return out


def diagonal_on_vertices(V: Vector, G: Vector) -> tuple[float, Vector]:
    """Return min tau + sum G_i/l_i with ½ (V²) l <= tau, and the minimiser l."""
    with extra_imports:
        import clarabel

    n, scale = len(G), float(G.max())
    rows = np.hstack((-np.ones((len(V), 1)), 0.5 * V**2, np.zeros((len(V), n))))
    q = np.concatenate(([1.0], np.zeros(n), np.ones(n)))
    cones = [
        (rows, np.zeros(len(V)), clarabel.NonnegativeConeT(len(V))),
        *_inverse_sum(n, np.sqrt(G / scale)),
    ]
    w = _solve(q, cones)
    return float(q @ w) * math.sqrt(scale), w[1 : 1 + n] * math.sqrt(scale)


def diagonal_on_ellipsoid(M: Vector, G: Vector) -> tuple[float, Vector]:
    """Return min 2 tau + sum G_i/l_i with diag(l) <= tau M, where Fsym/2 = {y : y'My <= 1}, and the minimiser l."""
    with extra_imports:
        import clarabel

    n, scale = len(G), float(G.max())
    G_psd = np.zeros((n * (n + 1) // 2, 1 + 2 * n))
    G_psd[:, 0] = -_svec(M)
    for i, e in enumerate(np.eye(n)):
        G_psd[:, 1 + i] = _svec(np.outer(e, e))
    q = np.concatenate(([2.0], np.zeros(n), np.ones(n)))
    cones = [
        (G_psd, np.zeros(len(G_psd)), clarabel.PSDTriangleConeT(n)),
        *_inverse_sum(n, np.sqrt(G / scale)),
    ]
    w = _solve(q, cones)
    return float(q @ w) * math.sqrt(scale), w[1 : 1 + n] * math.sqrt(scale)


def full_on_vertices(V: Vector, GG: Vector) -> tuple[float, Vector]:
    """Return the best full matrix and its bound for the vertices V.

    It solves min tau + tr W with [[W, R], [R, Q]] >= 0, R = GG^{1/2}, and ½ v'Qv <= tau for every vertex v.
    """
    with extra_imports:
        import clarabel

    from ftprl.psd import root

    n = len(GG)
    scale = float(np.abs(GG).max())
    R = root(GG / scale)
    units = _units(n)
    k = len(units)
    zero = np.zeros((n, n))
    columns = [np.zeros(2 * n * (2 * n + 1) // 2)]
    columns += [-_svec(np.block([[E, zero], [zero, zero]])) for E in units]
    columns += [-_svec(np.block([[zero, zero], [zero, E]])) for E in units]
    h = _svec(np.block([[zero, R], [R, zero]]))
    rows = np.zeros((len(V), 1 + 2 * k))
    rows[:, 0] = -1.0
    for c, E in enumerate(units):
        rows[:, 1 + k + c] = 0.5 * ((V @ E) * V).sum(axis=1)
    q = np.concatenate(([1.0], [float(np.trace(E)) for E in units], np.zeros(k)))
    cones = [
        (rows, np.zeros(len(V)), clarabel.NonnegativeConeT(len(V))),
        (np.array(columns).T, h, clarabel.PSDTriangleConeT(2 * n)),
    ]
    w = _solve(q, cones)
    Q = sum((w[1 + k + c] * E for c, E in enumerate(units)), start=np.zeros((n, n)))
    return float(q @ w) * math.sqrt(scale), Q * math.sqrt(scale)


def inscribed_ellipsoid(C: Vector, d: Vector) -> tuple[Vector, Vector]:
    """Return (B, c) of the maximum-volume ellipsoid {Bu + c : |u| <= 1} inside {Cx <= d}.

    B is symmetric, and the rows are |B c_i| + c_i·c <= d_i.

    >>> B, c = inscribed_ellipsoid(np.vstack((np.eye(2), -np.eye(2))), np.ones(4))
    >>> B.round(4) + 0.0
    array([[1., 0.],
           [0., 1.]])
    """
    with extra_imports:
        import clarabel

    n = C.shape[1]
    units = _units(n)
    k = len(units)
    low = [(i, j) for j in range(n) for i in range(j, n)]
    size = k + n + len(low) + n  # B, c, a lower triangular L, t with t_i <= ln L_ii
    L_at, t_at = k + n, k + n + len(low)
    blocks: list[tuple[Vector, Vector, Any]] = []
    for row, right in zip(C, d, strict=True):
        G = np.zeros((1 + n, size))
        G[0, k : k + n] = row
        for c, E in enumerate(units):
            G[1:, c] = -(E @ row)
        blocks.append((G, np.concatenate(([right], np.zeros(n))), clarabel.SecondOrderConeT(1 + n)))
    # det B >= prod L_ii follows from [[diag L, L'], [L, B]] >= 0.
    zero = np.zeros((n, n))
    G = np.zeros((2 * n * (2 * n + 1) // 2, size))
    for c, E in enumerate(units):
        G[:, c] = -_svec(np.block([[zero, zero], [zero, E]]))
    for c, (i, j) in enumerate(low):
        L = np.zeros((n, n))
        L[i, j] = 1.0
        G[:, L_at + c] = -_svec(np.block([[np.diag(np.diagonal(L)), L.T], [L, zero]]))
    blocks.append((G, np.zeros(len(G)), clarabel.PSDTriangleConeT(2 * n)))
    for i in range(n):  # (t, 1, L_ii) in the exponential cone: e^t <= L_ii
        G = np.zeros((3, size))
        G[0, t_at + i] = -1.0
        G[2, L_at + low.index((i, i))] = -1.0
        blocks.append((G, np.array([0.0, 1.0, 0.0]), clarabel.ExponentialConeT()))
    q = np.zeros(size)
    q[t_at:] = -1.0
    w = _solve(q, blocks)
    B = sum((w[c] * E for c, E in enumerate(units)), start=np.zeros((n, n)))
    return B, w[k : k + n]
