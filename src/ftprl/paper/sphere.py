"""On a sphere one number suffices: the constant scheme against every matrix, and FTPRL-Scale on ellipsoids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.game import play
from ftprl.learner import FTPRL, Preconditioned
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROOT2, ROUNDING, certificate, kinds, slope
from ftprl.posthoc import best_bound
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Ellipsoid, L2Ball, LpBall

Vector = NDArray[np.float64]

CONDITIONS = (1.0, 10.0, 100.0, 1000.0)
SIZES = (2, 3, 4, 6, 8)


def root(M: Vector) -> Vector:
    """Return M^{1/2} of a PSD matrix.

    >>> root(np.diag([4.0, 9.0])).round(9)
    array([[2., 0.],
           [0., 3.]])
    """
    w, V = np.linalg.eigh(M)
    return np.asarray((V * np.sqrt(np.maximum(w, 0.0))) @ V.T)


def dual_bound(A: Vector, GG: Vector) -> float:
    """Return a lower bound on every full matrix's B_R on |Ax|₂ <= 1, by weak duality.

    It is sqrt2 tr (Y^{1/2} GG Y^{1/2})^{1/2} at one Y of the convex hull of yyᵀ, |Ay| <= 2: Y = 4 W GG W / tr(W GG), W
    = (AᵀA)^{-1}.
    """
    W = np.linalg.inv(A.T @ A)
    Y = 4 * W @ GG @ W / float(np.trace(W @ GG))
    half = root((Y + Y.T) / 2)
    return ROOT2 * float(np.trace(root(half @ GG @ half)))


def stretched(n: int, condition: float, rng: np.random.Generator) -> Vector:
    """Return a positive definite A with axes that differ by a factor `condition`."""
    R = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return np.asarray((R * np.geomspace(1.0, condition, n)) @ R.T)


def played(A: Vector, gs: Vector) -> tuple[float, float]:
    """Return (B_R, best full bound) of FTPRL-Scale on |Ax|₂ <= 1."""
    n = len(A)
    made = certificate(Preconditioned(A, FTPRL(L2Ball(n), CoordinateConstant())), gs)
    best = best_bound(Ellipsoid(A), "full", (gs**2).sum(axis=0), gs.T @ gs)
    assert best is not None
    assert made.worst_case is not None
    return made.worst_case, best.value


def run(full: bool, step: Step) -> Outcome:
    """Measure ratios on ellipsoids of growing condition against full matrices, and on L_p balls against diagonals."""
    n, T, seeds = (8, 400, 4) if full else (5, 60, 1)
    over, gap = 0.0, 0.0
    for condition in CONDITIONS:
        step(f"ellipsoid of condition {condition:g}")
        for seed in range(seeds):
            A = stretched(n, condition, np.random.default_rng(seed))
            for _, gs in kinds(n, T, seed):
                for rows in (gs, gs @ A):  # unchanged, and with equal weight along every axis of the set
                    B_R, best = played(A, rows)
                    over = max(over, B_R / best)
                    gap = max(gap, abs(dual_bound(A, rows.T @ rows) / best - 1))
    step("L_p balls, p < 2")
    low = max(
        _against(p, gs, "diagonal")
        for p in (1.0, 1.25, 1.5, 1.75)
        for seed in range(seeds)
        for _, gs in kinds(n, T, seed)
    )
    ones = {m: (_against(1.0, np.ones((40, m)), "diagonal"), _against(1.0, np.ones((40, m)), "full")) for m in SIZES}
    return Outcome(
        stated=[
            Check("p = 2, |Ax|₂ <= 1: B_R over the best full matrix, largest", over, "<=", ROOT2 * (1 + ROUNDING)),
            Check("the best full matrix against a dual bound, relative gap", gap, "<=", 10 * ROUNDING),
            Check("p < 2: B_R over the best diagonal, largest", low, "<=", ROOT2 * (1 + ROUNDING)),
        ],
        panels=[_over_rounds(2000 if full else 300), _over_sizes(ones)],
        numbers=[
            (
                f"With every gradient (1, .., 1) on the L1 ball B_R is {ones[2][1]:.3g}, {ones[4][1]:.3g} and"
                f" {ones[8][1]:.3g} times the best full matrix for n = 2, 4 and 8: for p < 2 the claim is about"
                " diagonals only."
            )
        ],
    )


def _against(p: float, gs: Vector, family: str) -> float:
    """Return B_R of the constant scheme on the unit L_p ball over the best bound of a family."""
    made = certificate(FTPRL(LpBall(gs.shape[1], p), CoordinateConstant()), gs, full=family == "full")
    best = made.post_hoc[family]
    assert made.worst_case is not None
    assert best is not None
    return made.worst_case / best


def _over_rounds(T: int) -> Panel:
    """Return B_R over the best full matrix during two games, on an ellipsoid of condition 100."""
    A = stretched(4, 100.0, np.random.default_rng(3))
    lines = [Series("sqrt 2", [1, T], [ROOT2, ROOT2], dashed=True, colour=6)]
    for name, gs in list(kinds(4, T, 3))[::3]:
        made = play(Preconditioned(A, FTPRL(L2Ball(4), CoordinateConstant())), gs @ A, history=True).certificate()
        assert made.history is not None
        t, series = np.array(made.history.rounds), made.history.series
        # On a sphere, the best multiple of I for the image is the best of all matrices on the ellipsoid.
        some = np.unique(np.geomspace(1, T, 18).astype(int)) - 1
        for what in ("worst case B_R", "regret"):
            ratio = np.array(series[what]) / np.array(series["best in hindsight"])
            lines.append(Series(f"{what.split()[-1]}, {name}", t[some], ratio[some], points=True))
    where = "FTPRL-Scale, axes that differ by 100"
    return Panel(where, "round", "ratio to the best of all matrices", lines, log="x")


def _over_sizes(ones: dict[int, tuple[float, float]]) -> Panel:
    """Return the ratios over the dimension."""
    sizes, both = list(ones), np.array(list(ones.values()))
    return Panel(
        "One number on the L1 ball, gradients (1, .., 1)",
        "n",
        "B_R / best in hindsight",
        [
            Series(f"against full matrices, slope {slope(sizes, both[:, 1]):.2f}", sizes, both[:, 1], points=True),
            Series("against diagonals", sizes, both[:, 0], points=True),
            Series("sqrt 2", [sizes[0], sizes[-1]], [ROOT2, ROOT2], dashed=True, colour=6),
        ],
        log=True,
    )


STATEMENT = Statement(
    name="sphere",
    title="On a sphere a global rate is enough; FTPRL-Scale extends that to ellipsoids",
    place="Theorem 6, Section 3.4",
    claim="On the unit sphere the coordinate-constant scheme is sqrt(2)-competitive with all positive semidefinite"
    " matrices, on the L_p balls with p < 2 with all diagonal ones; FTPRL-Scale extends the first to ellipsoids.",
    instance="Turned ellipsoids whose axes differ by 1 to 1000, and L_p balls with 1 <= p < 2, under normal, sparse,"
    " badly scaled and nearly one-dimensional gradients.",
    measured="B_R over the best bound in hindsight, at most sqrt(2) up to 1e-7; that best bound must meet a dual bound"
    " to 1e-6, so that no matrix can be better.",
    code="ftprl.schemes.CoordinateConstant, ftprl.Preconditioned",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
