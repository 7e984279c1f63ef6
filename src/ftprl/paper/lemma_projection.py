"""Lemma 2: a constrained quadratic step is the projection of the unconstrained one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.draw import Panel, Series
from ftprl.extras import extra_imports
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import in_order, metric, sets
from ftprl.sets import Box, ConvexSet, Ellipsoid, L2Ball, Polytope, Simplex

Vector = NDArray[np.float64]
TOLERANCE = 1e-5  # SLSQP finds values to about 1e-12, hence points to about their root


def constraints(F: ConvexSet) -> dict[str, Any]:
    """Return F in the form of SciPy's SLSQP: bounds, or functions that are at least 0 or equal to 0 on F."""
    if isinstance(F, Box):
        return {"bounds": list(zip(F.lower, F.upper, strict=True))}
    if isinstance(F, L2Ball):
        return {"constraints": [{"type": "ineq", "fun": lambda x: F.radius**2 - (x - F.center) @ (x - F.center)}]}
    if isinstance(F, Ellipsoid):
        return {"constraints": [{"type": "ineq", "fun": lambda x: 1 - float(((F.A @ x) ** 2).sum())}]}
    if isinstance(F, Simplex):
        return {"bounds": [(0, None)] * F.dim, "constraints": [{"type": "eq", "fun": lambda x: x.sum() - F.total}]}
    assert isinstance(F, Polytope)
    return {"constraints": [{"type": "ineq", "fun": lambda x: F.d - F.C @ x, "jac": lambda x: -F.C}]}


def nearest(F: ConvexSet, Q: Vector, u: Vector) -> Vector:
    """Return the point of F nearest to u in the norm of Q, by a solver that shares no code with this library."""
    with extra_imports:
        from scipy.optimize import minimize

    dense = psd.dense(Q, F.dim)
    dense = dense / np.linalg.eigvalsh(dense)[-1]  # the solver's tolerance is absolute
    solution = minimize(
        lambda x: 0.5 * (x - u) @ dense @ (x - u),
        F.start(),
        jac=lambda x: dense @ (x - u),
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
        **constraints(F),
    )
    return np.asarray(solution.x)


def run(full: bool, step: Step) -> Outcome:
    """Measure the distance of the library's minimiser from the projected one, in the norm of Q, and their values."""
    rng = np.random.default_rng(2)
    apart: list[float] = []
    worse: list[float] = []
    for name, F in sets().items():
        step(name)
        for _ in range(400 if full else 25):
            Q, h = metric(F.dim, rng), rng.normal(size=F.dim) * 3
            top = psd.largest(Q)
            x = F.argmin(Q, h, F.start())
            y = nearest(F, Q, -psd.solve(Q, h))
            apart.append(float(np.sqrt(psd.quad(Q, x - y) / top)) / F.diameter())
            gap = 0.5 * psd.quad(Q, x) + h @ x - 0.5 * psd.quad(Q, y) - h @ y
            scale = top * F.diameter() ** 2 + float(np.abs(h) @ F.widths())
            worse.append(max(float(gap), 0.0) / scale if F.contains(y, 1e-12) else 0.0)
    return Outcome(
        [
            Check("largest distance of the two points over the diameter", max(apart), "<=", TOLERANCE),
            Check("largest excess of the library's value over the other's, relative", max(worse), "<=", 1e-10),
        ],
        panels=[
            Panel(
                "Minimiser of the program against the projected free minimiser",
                "instance, in order",
                "distance / diameter",
                [
                    Series("in the norm of Q", *in_order([max(v, 1e-17) for v in apart]), points=len(apart) < 300),
                    Series("tolerance", [1, len(apart)], [TOLERANCE] * 2, dashed=True, colour=6),
                ],
                log="y",
            )
        ],
        numbers=[f"{len(apart)} instances: number, diagonal or full Q with eigenvalues over four decades."],
    )


STATEMENT = Statement(
    name="lemma-projection",
    title="Minimising a quadratic over a set is projecting its free minimiser",
    place="Lemma 2",
    claim="The minimiser over F of h·x + ½ x'Qx is the point of F nearest to -Q^-1 h, the minimiser over the"
    " whole space, in the norm of Q: FTPRL is gradient descent with a lazy projection.",
    instance="Two boxes, a ball, an ellipsoid, a polytope and the simplex; random h and random Q of each kind. The"
    " projection is found by SciPy's SLSQP, which shares no code with the library's steps.",
    measured="The distance of the two points in the norm of Q (its largest eigenvalue scaled to 1) over the"
    " diameter: at most 1e-5, what SLSQP's accuracy allows; and that the library's value is never worse, to 1e-10.",
    code="ftprl.sets",
    run=run,
    tests="tests/theory/test_lemmas.py, tests/laws/test_argmin.py",
)
