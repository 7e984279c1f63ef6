"""Direct calls of PIQP, Clarabel and HiGHS."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.extras import extra_imports
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


def call_clarabel(P: PSD, q: Vector, G: Any, h: Vector, cones: list[Any], tol: float = 1e-12) -> Any:
    """Return Clarabel's raw answer for min ½ w'Pw + q·w with h - Gw in the cones."""
    with extra_imports:
        import clarabel
        from scipy.sparse import csc_matrix

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.max_iter = 200
    return clarabel.DefaultSolver(csc_matrix(np.triu(P)), q, G, h, cones, settings).solve()


def call_piqp(P: PSD, q: Vector, conic: Conic, tol: float = 1e-12) -> tuple[Vector, Vector, Vector] | None:
    """Return PIQP's (point, multipliers, slacks) for min ½ w'Pw + q·w over linear rows; None if it gives up."""
    with extra_imports:
        import piqp

    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tol
    some, none = len(conic.b) > 0, (None, None)
    A, b = (conic.A, conic.b) if some else none
    solver.setup(P, q, A, b, conic.C, None, conic.d, None, None)
    status = solver.solve()
    result = solver.result
    w = np.array(result.x)
    if status not in (piqp.PIQP_SOLVED, piqp.PIQP_MAX_ITER_REACHED) or not np.isfinite(w).all():
        return None
    dual = np.concatenate((np.array(result.y), np.maximum(result.z_u, 0.0)))
    return w, dual, np.concatenate((np.zeros(len(conic.b)), result.s_u))


def solve_linear(
    g: Vector, C: Vector, d: Vector, A: Vector, b: Vector, bounds: Any = (None, None)
) -> tuple[str, Vector, Vector]:
    """Minimise g·x subject to Cx <= d, Ax = b by HiGHS.

    Returns ("optimal" | "infeasible" | "unbounded", x, multipliers of A, then of C); raises InvalidInput if HiGHS
    fails.
    """
    with extra_imports:
        from scipy.optimize import linprog

    # HiGHS has absolute tolerances: scale the set and the objective to size 1.
    size = max(float(np.abs(d).max(initial=0.0)), float(np.abs(b).max(initial=0.0))) or 1.0
    slope = float(np.abs(g).max(initial=0.0)) or 1.0
    answer = linprog(
        g / slope,
        A_ub=C if len(d) else None,
        b_ub=d / size if len(d) else None,
        A_eq=A if len(b) else None,
        b_eq=b / size if len(b) else None,
        bounds=bounds,
        method="highs",
    )
    if answer.status == 0:
        prices = np.maximum(-np.asarray(answer.ineqlin.marginals, dtype=np.float64), 0.0)
        dual = np.concatenate((-np.asarray(answer.eqlin.marginals, dtype=np.float64), prices))
        return "optimal", np.asarray(answer.x, dtype=np.float64) * size, dual * slope
    if answer.status in (2, 3):
        none = np.full(len(g), math.nan)
        return {2: "infeasible", 3: "unbounded"}[answer.status], none, np.zeros(len(b) + len(d))
    raise InvalidInput(f"the linear program could not be solved ({answer.message}); rescale the set.")


def linear_program(
    g: Vector, C: Vector, d: Vector, A: Vector, b: Vector, bounds: Any = (None, None)
) -> tuple[str, Vector]:
    """Minimise g·x subject to Cx <= d, Ax = b; return the status and x.

    >>> none = np.zeros((0, 1)), np.zeros(0)
    >>> linear_program(np.array([-1.0]), np.array([[1.0]]), np.array([2.0]), *none)
    ('optimal', array([2.]))
    """
    status, x, _ = solve_linear(g, C, d, A, b, bounds)
    return status, x


def interior_point(conic: Conic) -> Vector:
    """Return the x of a point with the largest distance (at most 1) from every row and cone of the set.

    Raises InvalidInput if the set is empty.
    """
    G, h, cones = conic.stacked
    G = G.toarray()
    margins = np.zeros(len(h))
    e, m = len(conic.b), len(conic.d)
    margins[e : e + m] = np.linalg.norm(conic.C, axis=1)
    at = e + m
    for _, right in conic.soc:
        margins[at] = 1.0
        at += len(right)
    for _ in conic.power:
        margins[at : at + 2] = 1.0
        at += 3
    with extra_imports:
        import clarabel
        from scipy.sparse import csc_matrix

    wide = np.vstack((np.hstack((G, margins[:, None])), np.eye(conic.size + 1)[-1:]))
    q = np.zeros(conic.size + 1)
    q[-1] = -1.0
    P = np.zeros((conic.size + 1, conic.size + 1))
    answer = call_clarabel(P, q, csc_matrix(wide), np.append(h, 1.0), [*cones, clarabel.NonnegativeConeT(1)], 1e-9)
    w = np.array(answer.x)
    if "Solved" not in str(answer.status) or w[-1] < -1e-7:
        raise InvalidInput("the set needs at least one point that meets every constraint, got none; relax one.")
    return w[: conic.dim]
