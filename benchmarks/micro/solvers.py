"""Time convex QP solvers on the steps of an online learner: min 1/2 x'Hx + z'x over a fixed polyhedron.

Each round H grows a little and z moves by one gradient. Every solver is set up once, then updated; all are
timed in turn each round, in rotating order, and checked against a reference: a tight Clarabel solve, then the
KKT system of its active set. H and z are divided by max|z|, so that tolerances mean the same to all.
    python benchmarks/micro/solvers.py [--rounds 200] [--tol 1e-10] [--strength 4] [--seed 0]
Columns: median and 95th percentile of a round (ms); claimed: rounds the solver calls solved; within: rounds
with |objective - reference| <= tol * max(1, |reference|) and violation <= tol; the worst of these two errors;
import time on top of numpy and scipy.sparse (ms); size without dependencies (MB). A dash: not installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from importlib.util import find_spec
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # before numpy loads

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]
Steps = tuple[Callable[[Array, Array], Any], Callable[[], Any], Callable[[Any, Array, Array], Any]]
# What each factory returns: update(H, z), solve() -> out, read(out, H, z) -> (x, does it call it solved)


@dataclass
class Case:
    """The set {G x <= h, A x = b, lo <= x <= hi}; gradients are scale * (x - target + noise)."""

    name: str
    full: bool  # H full, or diagonal
    scale: Array
    target: Array
    lo: Array
    hi: Array
    G: Array
    h: Array
    A: Array
    b: Array

    def __post_init__(self) -> None:  # rows, rhs: G, h and the finite bounds, for solvers that know no bounds
        eye, low, high = np.eye(len(self.lo)), np.isfinite(self.lo), np.isfinite(self.hi)
        self.rows = np.vstack([self.G, -eye[low], eye[high]])
        self.rhs = np.concatenate([self.h, -self.lo[low], self.hi[high]])


def cases(rng: np.random.Generator) -> list[Case]:
    """Build the polytope, the box, the simplex, and the polytope again with a singular H."""
    n, one = 50, np.ones
    G = rng.standard_normal((100, n))
    G /= np.linalg.norm(G, axis=1, keepdims=True)
    s, t, h = rng.permutation(np.logspace(-4, 0, n)), rng.standard_normal(n), rng.uniform(0.3, 1.0, 100)
    poly = (-one(n), one(n), G, h, np.zeros((0, n)), one(0))
    box = (-one(20), one(20), np.zeros((0, 20)), one(0), np.zeros((0, 20)), one(0))
    simplex = (0 * one(30), np.inf * one(30), np.zeros((0, 30)), one(0), one((1, 30)), one(1))
    return [
        Case("a polytope 50d diag", False, s, t, *poly),
        Case("b box 20d full", True, np.logspace(-2, 0, 20), 1.5 * rng.standard_normal(20), *box),
        Case("c simplex 30d full", True, np.logspace(-2, 0, 30), 0.1 * rng.standard_normal(30), *simplex),
        Case("d as a, H half zero", False, s * (np.arange(n) % 2), t, *poly),
    ]


def mat(H: Array) -> Array:  # a diagonal H is kept as a vector
    return np.diag(H) if H.ndim == 1 else H


def tri(H: Array) -> Array:  # the upper triangle, column after column
    return H if H.ndim == 1 else H[np.tril_indices(len(H))]


def upper(H: Array) -> sp.csc_matrix:
    """Return H's upper triangle with its zeros stored: the pattern must hold for all rounds to come."""
    n, diagonal = len(H), H.ndim == 1
    at = np.arange(n) if diagonal else np.tril_indices(n)[1]
    return sp.csc_matrix((tri(H), at, np.arange(n + 1) if diagonal else np.cumsum(np.arange(n + 1))), (n, n))


def polish(c: Case, H: Array, z: Array, x: Array, on: NDArray[np.bool_]) -> tuple[Array, bool]:
    """Solve the KKT system of the active rows, mending that set; return x and whether it was certified."""
    for _ in range(20):
        B, n, e, k = np.vstack([c.A, c.rows[on]]), len(x), len(c.b), len(c.b) + on.sum()
        K, rhs = np.block([[mat(H), B.T], [B, np.zeros((k, k))]]), np.concatenate([-z, c.b, c.rhs[on]])
        lu, w = sl.lu_factor(K + np.diag([1e-9] * n + [-1e-9] * k)), np.concatenate([x, np.zeros(k)])
        for _ in range(6):  # proximal steps, which bear a singular H and dependent rows
            w = w + sl.lu_solve(lu, rhs - K @ w)
        y, over = w[n + e :], c.rows @ w[:n] - c.rhs
        if max(np.abs(K @ w - rhs).max(), over.max(), -y.min(initial=0.0)) <= 1e-13:
            return w[:n], True
        on[np.flatnonzero(on)[y < -1e-14]] = False
        on[over > 1e-14] = True
    return x, False  # never the uncertified point, which may be far off


def use_clarabel(c: Case, H: Array, z: Array, tol: float, kkt: bool = False) -> Steps:
    cl = import_module("clarabel")
    s, e = cl.DefaultSettings(), len(c.b)
    s.verbose, s.presolve_enable, s.max_threads = False, False, 1
    s.tol_gap_abs = s.tol_gap_rel = s.tol_feas = tol
    cones = [cl.ZeroConeT(e)] * (e > 0) + [cl.NonnegativeConeT(len(c.rhs))]
    A, b = sp.csc_matrix(np.vstack([c.A, c.rows])), np.concatenate([c.b, c.rhs])
    solver = cl.DefaultSolver(upper(H), z, A, b, cones, s)

    def read(out: Any, H: Array, z: Array) -> tuple[Array, bool]:
        if kkt:
            return polish(c, H, z, np.array(out.x), np.array(out.z)[e:] > np.array(out.s)[e:])
        return np.array(out.x), out.status == cl.SolverStatus.Solved

    return lambda H, z: solver.update(P=tri(H), q=z), solver.solve, read


def use_osqp(c: Case, H: Array, z: Array, tol: float, eps: float | None = None) -> Steps:
    solver, eps = import_module("osqp").OSQP(), eps or tol
    low, high = np.concatenate([c.b, np.full(len(c.h), -np.inf), c.lo]), np.concatenate([c.b, c.h, c.hi])
    con = sp.csc_matrix(np.vstack([c.A, c.G, np.eye(len(z))])), low, high
    more: dict[str, Any] = {"polishing": True, "polish_refine_iter": 10, "verbose": False}
    solver.setup(upper(H), z, *con, eps_abs=eps, eps_rel=eps, max_iter=100_000, warm_starting=True, **more)
    solve = partial(solver.solve, raise_error=False)
    return lambda H, z: solver.update(Px=tri(H), q=z), solve, lambda o, *_: (o.x, o.info.status == "solved")


def use_piqp(c: Case, H: Array, z: Array, tol: float, dense: bool) -> Steps:
    piqp = import_module("piqp")
    s = (solver := piqp.DenseSolver() if dense else piqp.SparseSolver()).settings
    s.eps_abs = s.eps_rel = s.eps_duality_gap_abs = s.eps_duality_gap_rel = tol
    s.preconditioner_reuse_on_update = True  # with False, the default, 0.6.4 fails after update(P=...)
    hess: Callable[[Array], Any] = (lambda H: np.asfortranarray(mat(H))) if dense else upper
    A, G = (None if not len(m) else np.asfortranarray(m) if dense else sp.csc_matrix(m) for m in (c.A, c.G))
    b, h = (v if len(v) else None for v in (c.b, c.h))
    solver.setup(hess(H), z, A, b, G, None, h, c.lo, c.hi)
    out, ok = solver.result, piqp.PIQP_SOLVED
    return lambda H, z: solver.update(P=hess(H), c=z), solver.solve, lambda o, *_: (out.x, o == ok)


def use_proxqp(c: Case, H: Array, z: Array, tol: float) -> Steps:
    px = import_module("proxsuite").proxqp
    kind = px.dense.HessianType.Diagonal if H.ndim == 1 else px.dense.HessianType.Dense
    qp = px.dense.QP(len(z), len(c.b), len(c.h), True, kind)
    s = qp.settings
    s.eps_abs, s.check_duality_gap, s.eps_duality_gap_abs, s.max_iter = tol, True, tol, 1000
    s.initial_guess = px.InitialGuess.WARM_START_WITH_PREVIOUS_RESULT
    A, b, G, h, low = (v if len(v) else None for v in (c.A, c.b, c.G, c.h, np.full(len(c.h), -1e20)))
    qp.init(mat(H), z, A, b, G, low, h, np.maximum(c.lo, -1e20), np.minimum(c.hi, 1e20))
    out, solved = qp.results, px.QPSolverOutput.PROXQP_SOLVED
    return lambda H, z: qp.update(H=mat(H), g=z), qp.solve, lambda *_: (out.x, out.info.status == solved)


def use_cvxpy(c: Case, H: Array, z: Array, tol: float, solver: str | None = None) -> Steps:
    cp, n = import_module("cvxpy"), len(z)
    x, q, R = cp.Variable(n), cp.Parameter(n), cp.Parameter(H.shape)
    root = cp.multiply(R, x) if H.ndim == 1 else R @ x  # H = R'R: a quadratic form in a Parameter is not DPP
    sides = [c.rows @ x <= c.rhs] + ([c.A @ x == c.b] if len(c.b) else [])
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(root) + q @ x), sides)

    def update(H: Array, z: Array) -> None:
        R.value, q.value = np.sqrt(H) if H.ndim == 1 else np.linalg.cholesky(H).T, z

    tols = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol} if solver else {}
    solve = partial(problem.solve, solver=solver, **tols)
    return update, solve, lambda *_: (x.value, problem.status == "optimal")


SOLVERS: dict[str, tuple[str, Callable[..., Steps]]] = {
    "Clarabel": ("clarabel", use_clarabel),
    "Clarabel + KKT polish": ("clarabel", partial(use_clarabel, kkt=True)),
    "OSQP + polish": ("osqp", use_osqp),
    "OSQP at 1e-6 + polish": ("osqp", partial(use_osqp, eps=1e-6)),
    "PIQP dense": ("piqp", partial(use_piqp, dense=True)),
    "PIQP sparse": ("piqp", partial(use_piqp, dense=False)),
    "ProxQP dense": ("proxsuite", use_proxqp),
    "CVXPY, default solver": ("cvxpy", use_cvxpy),  # at its default tolerances
    "CVXPY, CLARABEL": ("cvxpy", partial(use_cvxpy, solver="CLARABEL")),
}
HEAD = ("median", "p95", "claimed", "within", "obj err", "violation", "import", "MB")


def footprint(package: str) -> list[str]:
    """Return the import time on top of numpy and scipy.sparse (ms), and the installed size (MB)."""
    code = f"import time, numpy, scipy.sparse; t = time.time(); import {package}; print(time.time() - t)"
    took = min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3))
    size = sum(f.size or 0 for f in metadata.files(package) or [])
    return [f"{1e3 * took:.0f}", f"{size / 1e6:.1f}"]


def play(c: Case, rounds: int, tol: float, strength: float, rng: np.random.Generator) -> dict[str, Array]:
    """Play the reference's points; return rows (time, claimed, error, violation) by solver."""
    x = z = np.zeros(len(c.target))
    S = 1e-6 * (np.diag(c.scale**2) if c.full else c.scale**2)
    H, rows, steps = 0 * S, {name: [] for name in (*SOLVERS, "reference")}, {}  # type: ignore[var-annotated]
    for t in range(rounds + 1):
        g = c.scale * (x - c.target + 0.5 * rng.standard_normal(len(x)))
        S = S + (np.outer(g, g) if c.full else g * g)
        old, H = H, strength / 2 * (sl.sqrtm(S).real if c.full else np.sqrt(S))  # 2: the set's width
        z = z + g - mat(H - old) @ x
        P, q = H / np.abs(z).max(), z / np.abs(z).max()
        _, solve, read = use_clarabel(c, P, q, 1e-12, kkt=True)
        last, (x, sure) = x, read(solve(), P, q)
        rows["reference"].append((np.abs(x - last).max(), sure))
        best = 0.5 * x @ mat(P) @ x + q @ x
        steps = steps or {n: make(c, P, q, tol) for n, (pkg, make) in SOLVERS.items() if find_spec(pkg)}
        for name in np.roll(list(steps), t):
            update, solve, read = steps[name]
            start = time.perf_counter()
            update(P, q)
            y, claimed = read(solve(), P, q)
            took = time.perf_counter() - start
            err = abs(0.5 * y @ mat(P) @ y + q @ y - best) / max(1.0, abs(best))
            off = max((c.rows @ y - c.rhs).max(), np.abs(c.A @ y - c.b).max(initial=0.0), 0.0)
            rows[name].append((took, claimed, err, off))
    return {name: np.array(row[1:], float) for name, row in rows.items()}  # the first round warms up


def main() -> None:
    parser = argparse.ArgumentParser()
    for flag, default in (("--rounds", 200), ("--tol", 1e-10), ("--strength", 4.0), ("--seed", 0)):
        parser.add_argument(flag, type=type(default), default=default)
    args = parser.parse_args()
    table = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # OSQP prints even when told not to
    prints = {p: footprint(p) for p in {p for p, _ in SOLVERS.values()} if find_spec(p)}
    print(f"{'case':20} {'solver':22}" + "".join(f"{h:>10}" for h in HEAD), file=table)
    for i, c in enumerate(cases(np.random.default_rng(args.seed))):
        got = play(c, args.rounds, args.tol, args.strength, np.random.default_rng([args.seed, i]))
        for name, (package, _) in SOLVERS.items():
            cells, v = ["-"] * len(HEAD), got[name]
            if len(v):
                cells = [f"{1e3 * s:.3f}" for s in np.percentile(v[:, 0], [50, 95])]
                cells += [f"{100 * np.mean(f):.1f}%" for f in (v[:, 1], v[:, 2:].max(axis=1) <= args.tol)]
                cells += [f"{w:.1e}" for w in v[:, 2:].max(axis=0)] + prints[package]
            print(f"{c.name:20} {name:22}" + "".join(f"{s:>10}" for s in cells), file=table)
        move, sure = got["reference"].T
        note = f"(reference certified {sure.mean():.1%}, x moves by {np.median(move):.2g})"
        print(f"{c.name:20} {note}", file=table)


if __name__ == "__main__":
    main()
