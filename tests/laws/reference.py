"""Slow reference solutions by methods independent of the library: CVXPY, enumeration and ascent."""

import itertools
import warnings

import cvxpy as cp
import numpy as np
from scipy.optimize import linprog

from ftprl import psd
from ftprl.sets import ConvexSet
from laws.strategies import PSD, Rng, Vector
from oracles.cvx import constraints


def minimum(F: ConvexSet, H: PSD, z: Vector, l1: float = 0.0) -> float:
    """Return the minimum over F of ½ xᵀHx + z·x + l1·|x|₁, to about 1e-8 of the objective's size."""
    size = max(float(np.abs(H).max(initial=0.0)), float(np.abs(z).max()), l1) or 1.0
    x = cp.Variable(F.dim)
    w, V = np.linalg.eigh(psd.dense(H, F.dim) / size)
    half = np.sqrt(np.maximum(w, 0.0))[:, None] * V.T
    objective = 0.5 * cp.sum_squares(half @ x) + (z / size) @ x + (l1 / size) * cp.norm(x, 1)
    problem = cp.Problem(cp.Minimize(objective), constraints(F, x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "may be inaccurate": the solver stalls short of such a tolerance
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(problem.value) * size


def corners(C: Vector, d: Vector, A: Vector | None = None, b: Vector | None = None) -> Vector:
    """Return the vertices of {Cx <= d, Ax = b} by trying every choice of active rows."""
    n = C.shape[1]
    A = np.zeros((0, n)) if A is None else A
    b = np.zeros(0) if b is None else b
    actual = []
    for chosen in itertools.combinations(range(len(d)), n - len(b)):
        rows = np.vstack((A, C[list(chosen)]))
        if np.linalg.matrix_rank(rows) == n:
            x = np.linalg.solve(rows, np.concatenate((b, d[list(chosen)])))
            if np.all(C @ x <= d + 1e-9 * (1 + np.abs(d))):
                actual.append(x)
    return np.unique(np.round(actual, 10), axis=0)


def ascent(F: ConvexSet, Q: PSD, rng: Rng, starts: int = 12) -> float:
    """Return a lower bound on max yᵀQy over Fsym, mostly the maximum, by ascent from random directions."""
    best = 0.0
    for _ in range(starts):
        y, value = rng.normal(size=F.dim), -1.0
        for _ in range(100):
            slope = psd.apply(Q, y)
            y = F.vertex(-slope) - F.vertex(slope)
            value, last = psd.quad(Q, y), value
            if value <= last * (1 + 1e-9):
                break
        best = max(best, value)
    return best


def gamma(differences: Vector) -> float:
    """min { sum w : w >= 0, sum w_k v_k² >= D² } over the vertices v of Fsym."""
    squares = differences**2
    D2 = squares.max(axis=0)
    return float(linprog(np.ones(len(squares)), A_ub=-squares.T, b_ub=-D2, bounds=(0, None)).fun)


def assert_geometry(F: ConvexSet, extreme: Vector, rng: Rng, rtol: float = 1e-9) -> None:
    """Check every geometric quantity of F against its extreme points, all of them up to `rtol`."""
    n = F.dim
    size = rtol * (1 + float(np.abs(extreme).max()))
    assert all(F.contains(v) for v in extreme)
    assert F.contains(F.start())
    D = np.ptp(extreme, axis=0)
    np.testing.assert_allclose(F.widths(), D, rtol=rtol, atol=size)
    low, high = F.bounds()
    np.testing.assert_allclose(low, extreme.min(axis=0), rtol=rtol, atol=size)
    np.testing.assert_allclose(high, extreme.max(axis=0), rtol=rtol, atol=size)
    Y = (extreme[:, None] - extreme).reshape(-1, n)
    assert_maximum(F.diameter() ** 2, float((Y * Y).sum(axis=1).max()), F.is_exact("diameter"), rtol)
    B = rng.normal(size=(n, n))
    for Q, what in ((np.array(1.7), "diameter"), (rng.random(n), "diagonal"), (B @ B.T, "full")):
        true = float(((Y @ psd.dense(Q, n)) * Y).sum(axis=1).max())
        assert_maximum(F.sq_diameter(Q), true, F.is_exact(what), rtol)
    assert F.gamma() >= gamma(Y[np.any(Y, axis=1)]) * (1 - max(rtol, 1e-9)) if D.all() else True
    for g in rng.normal(size=(20, n)):
        v = F.vertex(g)
        assert F.contains(v)
        assert g @ v <= (extreme @ g).min() + size * np.abs(g).sum()
        np.testing.assert_allclose(Y @ F.tangent(g), Y @ g, atol=1e-9 * (1 + np.abs(Y).max()))
    assert_boxes(F, extreme, rtol)


def assert_maximum(reported: float, true: float, exact: bool, rtol: float) -> None:
    """Check that `told` is at least the maximum, and equal to it if it claims to be exact."""
    assert reported >= true * (1 - rtol) - 1e-12
    if exact:
        assert reported <= true * (1 + rtol) + 1e-12


def assert_boxes(F: ConvexSet, extreme: Vector, rtol: float) -> None:
    """Check that the outer box contains F, F contains the inner box, and beta is the ratio of their widths."""
    outer, inner, beta = F.outer_box(), F.inner_box(), F.beta()
    assert all(outer.contains(v, 1e-9) for v in extreme)
    assert np.all(outer.widths() <= F.widths() * (1 + rtol) + 1e-9)
    if F.is_exact("widths"):
        np.testing.assert_allclose(outer.widths(), F.widths(), rtol=rtol, atol=1e-9)
    assert (inner is None) == (beta is None)
    if inner is not None and beta is not None:
        ends = np.array([inner.lower, inner.upper])
        for pick in itertools.product((0, 1), repeat=F.dim):
            assert F.contains(ends[list(pick), np.arange(F.dim)])
        np.testing.assert_allclose(inner.widths() * beta, F.widths(), rtol=max(rtol, 1e-9), atol=1e-12)
        assert F.gamma() <= beta**2 * (1 + 1e-9)
    assert 1 - 1e-9 <= F.gamma() <= F.dim + 1e-9
