"""Sets, minimisers and best bounds in hindsight, as CVXPY programs and by brute force over points."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ftprl.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    Intersection,
    L1Ball,
    L2Ball,
    LpBall,
    Polytope,
    Preimage,
    Product,
    Simplex,
)
from oracles.cvx import constraints

Vector = NDArray[np.float64]


def solve(problem: cp.Problem) -> float:
    """Return the optimal value, as precise as Clarabel can make it; tests compare with their own tolerance."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return float(problem.value)


def minimum(F: ConvexSet, Q: Vector, h: Vector) -> tuple[float, Vector]:
    """min over F of ½ x'Qx + h·x."""
    x = cp.Variable(F.dim)
    w, V = np.linalg.eigh(Q)
    root = (V * np.sqrt(np.maximum(w, 0.0))).T
    value = solve(cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root @ x) + h @ x), constraints(F, x)))
    return value, np.array(x.value)


def corners(F: ConvexSet) -> Vector | None:
    """Return the vertices of F from its definition; None for a curved set."""
    n = F.dim
    if isinstance(F, Box):
        return np.array(list(itertools.product(*zip(F.lower, F.upper, strict=True))))
    if isinstance(F, LpBall) and math.isinf(F.p):
        return F.center + F.radius * np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
    if isinstance(F, L1Ball):
        return F.center + F.radius * np.vstack((np.eye(n), -np.eye(n)))
    if isinstance(F, Simplex):
        return F.total * np.eye(n)
    if isinstance(F, Polytope | CappedSimplex | Intersection):
        return _basic_points(F)
    if isinstance(F, Preimage):
        inner = corners(F.inner)
        return None if inner is None else np.linalg.solve(F.A, inner.T).T
    if isinstance(F, Product):
        parts = [corners(s) for s in F.sets]
        if any(p is None for p in parts):
            return None
        return np.array([np.concatenate(t) for t in itertools.product(*[p for p in parts if p is not None])])
    return None


def _basic_points(F: ConvexSet) -> Vector | None:
    """Return every point where n independent rows hold with equality and all others are met."""
    conic = F.conic()
    if not conic.polyhedral:
        return None
    n, e = F.dim, len(conic.b)
    actual = []
    for rows in itertools.combinations(range(len(conic.d)), n - e):
        M = np.vstack((conic.A, conic.C[list(rows)]))
        if np.linalg.matrix_rank(M) < n:
            continue
        v = np.linalg.solve(M, np.concatenate((conic.b, conic.d[list(rows)])))
        if np.all(conic.C @ v <= conic.d + 1e-9):
            actual.append(v)
    return np.unique(np.round(actual, 11), axis=0)


def differences(V: Vector) -> Vector:
    """Return v - w for all pairs."""
    return np.array([v - w for v, w in itertools.combinations(V, 2)])


def N_brute(F: ConvexSet, Q: Vector) -> float:
    """Return max of ½ y'Qy over differences of vertices, which is exact on a polytope."""
    V = corners(F)
    assert V is not None
    Y = differences(V)
    return 0.5 * float(np.einsum("ij,jk,ik->i", Y, Q, Y).max())


def N_climb(F: ConvexSet, Q: Vector, rng: np.random.Generator, tries: int = 12) -> float:
    """Return a lower bound on N by ascent: the linearised maximum of a convex function, from random starts."""
    V = corners(F)

    def extreme(g: Vector) -> Vector:
        return F.vertex(g) if V is None else V[(V @ g).argmin()]

    best = 0.0
    for _ in range(tries):
        y, value = rng.normal(size=F.dim), -1.0
        for _ in range(60):
            slope = Q @ y
            y = extreme(-slope) - extreme(slope)
            before, value = value, 0.5 * float(y @ Q @ y)
            if value <= before * (1 + 1e-12):
                break
        best = max(best, value)
    return best


def N_diagonal(F: ConvexSet, lam: Any) -> Any:
    """Return N(diag(lam)) as a convex expression."""
    if isinstance(F, Box):
        return 0.5 * (F.widths() ** 2) @ lam
    if isinstance(F, L1Ball | L2Ball | LpBall):
        if F.p <= 2:
            return 2 * F.radius**2 * cp.max(lam)
        q = 1.0 if math.isinf(F.p) else F.p / (F.p - 2)
        return 2 * F.radius**2 * cp.norm(lam, q)
    if isinstance(F, Ellipsoid):
        B = np.linalg.inv(F.A)
        return 2 * cp.lambda_max(B.T @ cp.diag(lam) @ B)
    if isinstance(F, Product):
        return sum(N_diagonal(s, lam[b]) for s, b in zip(F.sets, F.blocks, strict=True))
    V = corners(F)
    assert V is not None
    return cp.max(0.5 * (differences(V) ** 2) @ lam)


def opt_diagonal(F: ConvexSet, G: Vector) -> tuple[float, Vector]:
    """Return the infimum over diagonals of N + sum G_i/l_i, G > 0."""
    lam = cp.Variable(F.dim, pos=True)
    value = solve(cp.Problem(cp.Minimize(N_diagonal(F, lam) + G @ cp.inv_pos(lam))))
    return value, np.array(lam.value)


def opt_full(F: ConvexSet, gs: Vector) -> float:
    """Return the infimum over positive definite Q of N(Q) + sum g'Q⁻¹g, within the span of Fsym."""
    V = corners(F)
    Y = None
    if V is not None:
        _, sizes, axes = np.linalg.svd(differences(V), full_matrices=False)
        span = axes[sizes > 1e-9 * sizes[0]]
        Y, gs = differences(V) @ span.T, gs @ span.T
    n = gs.shape[1]
    Q = cp.Variable((n, n), PSD=True)
    if isinstance(F, L2Ball):
        N: Any = 2 * F.radius**2 * cp.lambda_max(Q)
    elif isinstance(F, Ellipsoid):
        B = np.linalg.inv(F.A)
        N = 2 * cp.lambda_max(B.T @ Q @ B)
    else:
        assert Y is not None
        N = cp.max(cp.hstack([0.5 * cp.sum(cp.multiply(np.outer(y, y), Q)) for y in Y]))
    return solve(cp.Problem(cp.Minimize(N + sum(cp.matrix_frac(g, Q) for g in gs))))


def dual_diagonal(V: Vector, G: Vector) -> float:
    """max over Z of sum sqrt(z_i G_i), Z the convex hull of the squares of the rows of V."""
    w = cp.Variable(len(V), nonneg=True)
    gain = np.sqrt(G) @ cp.sqrt((V**2).T @ w)
    return solve(cp.Problem(cp.Maximize(gain), [cp.sum(w) == 1]))


def dual_full(V: Vector, GG: Vector) -> float:
    """max over Y in conv{vv'} of tr(Y^{1/2} GG Y^{1/2})^{1/2}, as the fidelity program of Y and GG."""
    n = len(GG)
    w = cp.Variable(len(V), nonneg=True)
    X = cp.Variable((n, n))
    Y = V.T @ cp.diag(w) @ V
    block = cp.bmat([[Y, X], [X.T, GG]])
    return solve(cp.Problem(cp.Maximize(cp.trace(X)), [cp.sum(w) == 1, (block + block.T) / 2 >> 0]))


def gamma_lp(V: Vector, D: Vector) -> float:
    """min sum w with w >= 0 and sum w_k v_k² >= D², over the vertices of Fsym."""
    Y = differences(V) ** 2
    w = cp.Variable(len(Y), nonneg=True)
    return solve(cp.Problem(cp.Minimize(cp.sum(w)), [Y.T @ w >= D**2]))
