"""Theorem 2: the regret of FTPRL with any matrices."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import KINDS, ROUNDING, GameRecord, in_order, play, ratio, sets, spread_rounds, stream
from ftprl.schemes import Fixed

Vector = NDArray[np.float64]


def increments(n: int, seed: int) -> Fixed:
    """Return random matrices that add up to about sqrt(t): the first is definite, later ones have any rank, also 0."""
    rng = np.random.default_rng(seed)

    def rule(t: int, g: Vector) -> Vector:
        """Return Q_t for the gradient of round t."""
        if t == 1:
            return np.asarray(np.eye(n) + np.outer(v := rng.normal(size=n), v))
        weight = 1 / (2 * np.sqrt(t))
        kind = rng.integers(4)
        if kind == 0:
            return np.zeros(n)
        if kind == 1:
            return np.asarray(weight * rng.exponential(2.0, size=n))
        direction = rng.normal(size=n) if kind == 2 else g / (1e-9 + float(np.linalg.norm(g)))
        return np.asarray(2 * weight * np.outer(direction, direction))

    return Fixed(rule)


def histories(full: bool, step: Step) -> list[tuple[str, GameRecord]]:
    """Return games on every set under every kind of gradients, with random matrices."""
    games = []
    for name, F in sets().items():
        for i, kind in enumerate(KINDS):
            step(f"{name}, {kind} gradients")
            for seed in range(4 if full else 1):
                learner = FTPRL(F, increments(F.dim, 100 * seed + i))
                games.append((name, play(learner, stream(kind, F, 400 if full else 80, 10 * seed + i))))
    return games


def run(full: bool, step: Step) -> Outcome:
    """Measure the regret over its bound, and the bound over B_R, both from recorded plays."""
    regrets, bounds, coarse = [], [], []
    runs = histories(full, step)
    for _, history in runs:
        stability = sum(history.lengths())
        bounds.append(history.r(history.best()) + stability)
        coarse.append(history.penalty() + stability)
        regrets.append(history.regret())
    shares = [ratio(a, b) for a, b in zip(regrets, bounds, strict=True)]
    over = [ratio(a, b) for a, b in zip(bounds, coarse, strict=True)]
    return Outcome(
        [
            Check("largest regret / (r(x*) + stability)", max(shares), "<=", 1 + ROUNDING),
            Check("largest (r(x*) + stability) / B_R", max(over), "<=", 1 + ROUNDING),
        ],
        panels=[_over_time(runs[0][1]), _ranked(shares, over)],
        numbers=[
            f"{len(runs)} runs; median regret / bound {np.median(shares):.2f}, bound / B_R {np.median(over):.2f}.",
        ],
    )


def _over_time(history: GameRecord) -> Panel:
    """Return regret, bound and B_R over the rounds of one game."""
    at = spread_rounds(len(history.g))
    parts = [history.until(t) for t in at]
    stability = np.cumsum(history.lengths())[np.array(at) - 1]
    return Panel(
        "One run: leaning gradients on a box",
        "round t",
        "regret and its bounds (units of loss)",
        [
            Series("regret", at, [h.regret() for h in parts]),
            Series("r(x*) + stability", at, [h.r(h.best()) + s for h, s in zip(parts, stability, strict=True)], True),
            Series("B_R", at, [h.penalty() + s for h, s in zip(parts, stability, strict=True)], True, points=True),
        ],
        log=True,
    )


def _ranked(shares: list[float], over: list[float]) -> Panel:
    """Return the ratios of all games in rising order."""
    return Panel(
        "All runs, in order",
        "run, from the smallest ratio to the largest",
        "ratio",
        [
            Series("regret / bound", *in_order(shares), points=True),
            Series("bound / B_R", *in_order(over), points=True),
            Series("1: the claim", [1, len(shares)], [1, 1], dashed=True, colour=6),
        ],
    )


STATEMENT = Statement(
    name="regret-theorem",
    title="The regret of FTPRL for any sequence of matrices",
    place="Theorem 2",
    claim="With any positive semidefinite increments Q_t (the first one definite), the regret is at most"
    " r_{1:T}(x*), the regularisation at the best fixed point, plus the stability, the sum of g_t' Q_{1:t}^-1 g_t;"
    " and that is at most B_R, in which each r_t is replaced by its maximum over the set.",
    instance="Two boxes, a ball, an ellipsoid, a polytope and the simplex in three dimensions; six kinds of"
    " gradients, among them an adversary that answers the play; random increments of every rank.",
    measured="Regret over bound and bound over B_R, evaluated from the plays by the formulas as written; each at"
    " most 1, up to 1e-9 for rounding.",
    code="ftprl.FTPRL",
    run=run,
    tests="tests/theory/test_strong_theorem.py, tests/theory/test_certificates.py",
)
