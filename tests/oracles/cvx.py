"""The update by CVXPY: the objective by definition over an independent description of each set."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ftprl import psd, sets
from ftprl.sets.norm_ball import NormBall
from ftprl.sets.simplex import Shares

Vector = NDArray[np.float64]


def constraints(feasible: sets.ConvexSet, x: cp.Expression) -> list[cp.Constraint]:
    """Return F in CVXPY's form, by definition and without its methods."""
    if isinstance(feasible, sets.Box):
        low, high = np.isfinite(feasible.lower), np.isfinite(feasible.upper)
        out = [x[low] >= feasible.lower[low]] if low.any() else []
        return [*out, x[high] <= feasible.upper[high]] if high.any() else out
    if isinstance(feasible, NormBall):
        p = "inf" if np.isinf(feasible.p) else feasible.p
        return [cp.norm(x - feasible.center, p) <= feasible.radius]
    if isinstance(feasible, sets.Ellipsoid):
        return [cp.norm(feasible.A @ (x - feasible.center), 2) <= 1]
    if isinstance(feasible, Shares):
        cap = [x <= feasible.cap] if np.isfinite(feasible.cap) else []
        return [x >= 0, cp.sum(x) == feasible.total, *cap]
    if isinstance(feasible, sets.Halfspace):
        return [feasible.a @ x <= feasible.b]
    if isinstance(feasible, sets.Polytope):
        flat = [feasible.A_eq @ x == feasible.b_eq] if len(feasible.b_eq) else []
        return [feasible.C @ x <= feasible.d, *flat]
    if isinstance(feasible, sets.Preimage):
        return constraints(feasible.inner, feasible.A @ x)
    if isinstance(feasible, sets.Product):
        pairs = zip(feasible.sets, feasible.blocks, strict=True)
        return [c for part, block in pairs for c in constraints(part, x[block])]
    if isinstance(feasible, sets.NuclearBall):
        return [cp.normNuc(cp.reshape(x, feasible.shape, order="C")) <= feasible.radius]
    if isinstance(feasible, sets.Spectrahedron):
        X = cp.reshape(x, feasible.shape, order="C")
        return [X == X.T, (X + X.T) / 2 >> 0, cp.trace(X) == feasible.trace]
    if isinstance(feasible, sets.Birkhoff):
        X = cp.reshape(x, feasible.shape, order="C")
        return [X >= 0, cp.sum(X, axis=0) == 1, cp.sum(X, axis=1) == 1]
    if isinstance(feasible, sets.Permutahedron):
        v = np.sort(feasible.values)[::-1]
        return [*(cp.sum_largest(x, k) <= v[:k].sum() for k in range(1, len(v))), cp.sum(x) == v.sum()]
    if isinstance(feasible, sets.FlowPolytope):
        ends = sorted({node for edge in feasible.edges for node in edge}, key=str)
        flow = {
            node: sum(x[k] * ((a == node) - (b == node)) for k, (a, b) in enumerate(feasible.edges)) for node in ends
        }
        wanted = {node: float(node == feasible.source) - float(node == feasible.target) for node in ends}
        return [x >= 0, *(flow[node] == wanted[node] for node in ends)]
    if isinstance(feasible, sets.Intersection):
        return [*constraints(feasible.inner, x), *constraints(feasible.box, x)]
    raise AssertionError(f"no description of {feasible!r}")


def literal(gs: Sequence[Vector], Qs: Sequence[Vector], xs: Sequence[Vector], x: Vector) -> float:
    """Return sum g_s·x + ½ (x - x_s)ᵀQ_s(x - x_s), term by term."""
    return sum(float(g @ x) + 0.5 * psd.quad(Q, x - y) for g, Q, y in zip(gs, Qs, xs, strict=True))


def leader(
    feasible: sets.ConvexSet, gs: Sequence[Vector], Qs: Sequence[Vector], xs: Sequence[Vector]
) -> tuple[Vector, bool]:
    """Return CVXPY's minimiser of the objective, and whether CVXPY reports it as accurate."""
    n = feasible.dim
    x = cp.Variable(n)
    total = sum((psd.dense(Q, n) for Q in Qs), start=np.zeros((n, n)))
    z = sum(gs, start=np.zeros(n)) - sum((psd.apply(Q, y) for Q, y in zip(Qs, xs, strict=True)), start=np.zeros(n))
    scale = max(float(np.abs(z).max()), float(np.abs(total).max())) or 1.0
    objective = 0.5 * cp.quad_form(x, cp.psd_wrap(total / scale)) + (z / scale) @ x
    problem = cp.Problem(cp.Minimize(objective), constraints(feasible, x))
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the comparison decides
        problem.solve(solver=cp.CLARABEL, **tight)
    assert x.value is not None, problem.status
    return np.asarray(x.value), problem.status == cp.OPTIMAL
