"""Follow the best bound from a fixed centre: competitive on every L_p ball if bounds on the gradients are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.bounds import Certificate
from ftprl.draw import Panel, Series
from ftprl.game import Game, play
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROUNDING, kinds
from ftprl.posthoc import best_bound
from ftprl.schemes import BestBound, CentredBestBound, Scheme
from ftprl.sets import Box, ConvexSet, Ellipsoid, L2Ball, LpBall

Vector = NDArray[np.float64]

FACTOR = 2.0**0.25
REGRET, PROMISE = FACTOR / 2, (FACTOR / 2 + 2**0.5 / FACTOR) / 2  # of OPT: for the regret, and for B_R


def sets(n: int) -> dict[str, ConvexSet]:
    """Return symmetric sets on which the best diagonal never falls."""
    return {
        "box": Box(-np.linspace(0.5, 2, n), np.linspace(0.5, 2, n)),
        "L2 ball away from 0": L2Ball(n, 1.5, np.ones(n)),
        "L1.5 ball": LpBall(n, 1.5),
        "L4 ball": LpBall(n, 4),
        "ellipsoid": Ellipsoid(np.diag(np.linspace(0.5, 2, n))),
    }


def one_after_another(n: int, times: int) -> Vector:
    """Return each coordinate `times` rounds in a row, for which matrices centred at the plays add up too much."""
    return np.repeat(np.eye(n), times, axis=0)


def shares(F: ConvexSet, gs: Vector, scheme: Scheme) -> tuple[float, float, Certificate]:
    """Return regret and B_R over OPT(G + limits²), and the certificate; the limits are the largest |g_i|."""
    made = play(FTPRL(F, scheme), gs).certificate()
    best = best_bound(F, "diagonal", np.square(gs).sum(axis=0) + np.square(gs).max(axis=0).max())
    assert best is not None
    assert made.bound is not None
    assert made.worst_case is not None
    return made.bound / best.value, made.worst_case / best.value, made


def literal(F: Box, gs: Vector, limit: float) -> float:
    """Return the distance of plays on a box from clip(x_1 - g_{1:t}/P_t), P_t = 2^{1/4}·2 sqrt(2 (G + limit²))/D."""
    game, S, G, apart = Game(FTPRL(F, CentredBestBound(limit))), np.zeros(F.dim), np.zeros(F.dim), 0.0
    for g in gs:
        game.observe(g)
        S, G = S + g, G + g * g
        weight = 2 * FACTOR * np.sqrt(2 * (G + limit**2)) / F.widths()
        apart = max(apart, float(np.abs(game.x - np.clip(F.start() - S / weight, F.lower, F.upper)).max()))
    return apart


def run(full: bool, step: Step) -> Outcome:
    """Measure shares of the best bound on symmetric sets, and coordinates one after another on growing L4 balls."""
    n, T = (8, 400) if full else (4, 60)
    regret = promise = over = 0.0
    for name, F in sets(n).items():
        step(name)
        for _, rows in (*kinds(n, T, 0), ("one after another", one_after_another(n, T // n))):
            gs = rows / np.abs(rows).max()
            a, b, made = shares(F, gs, CentredBestBound(1.0))
            regret, promise = max(regret, a), max(promise, b)
            assert made.tight is not None
            over = max(over, made.regret / made.tight)
    step("the plays themselves")
    box = Box([-1.0, 2.0], [1.0, 5.0])
    apart = literal(box, np.clip(np.random.default_rng(1).normal([0.3, -0.2], 1.0, size=(100, 2)), -2, 2), 2.0)
    sizes = (4, 16, 64, *((256,) if full else ()))
    curves: dict[str, list[float]] = {"centred at the first play": [], "centred at the plays (BestBound)": []}
    for m in sizes:
        step(f"L4 ball, n = {m}")
        gs = one_after_another(m, 4)
        for kept, scheme in zip(curves.values(), (CentredBestBound(1.0), BestBound()), strict=True):
            kept.append(shares(LpBall(m, 4), gs, scheme)[1])
    return Outcome(
        [
            Check("r + half the stability over OPT(G + limits²), largest", regret, "<=", REGRET * (1 + ROUNDING)),
            Check(
                "B_R over OPT(G + limits²), largest", max(promise, *curves["centred at the first play"]), "<=", PROMISE
            ),
            Check("regret over the tight bound, largest", over, "<=", 1 + ROUNDING),
            Check("plays on a box against the formula, largest distance", apart, "<=", 1e-9),
            Check(
                "one after another on L4 balls: B_R centred at the plays over centred at the first, largest n",
                curves["centred at the plays (BestBound)"][-1] / curves["centred at the first play"][-1],
                ">=",
                1.5,
            ),
        ],
        panels=[
            Panel(
                "Coordinates one after another on L4 balls",
                "n",
                "B_R / best diagonal, limits added",
                [
                    *(Series(name, sizes, values, points=True) for name, values in curves.items()),
                    Series("proved for the first play", [sizes[0], sizes[-1]], [PROMISE] * 2, dashed=True, colour=6),
                ],
                log="x",
            )
        ],
        numbers=["It needs a bound on every |g_i| beforehand, which counts in the bound as one more round."],
    )


STATEMENT = Statement(
    name="centred-best-bound",
    title="The best bound from a fixed centre: within 0.6 of the best diagonal, on every L_p ball",
    place="beyond the paper",
    claim="With bounds on |g_i| known, dual averaging with 2^(1/4) times the best diagonal so far, the bounds counted"
    " as one round, has a regret of at most 2^(1/4)/2 = 0.595 times the best diagonal bound in hindsight: also on L_p"
    " balls with 2 < p < inf, where nothing centred at the plays is competitive.",
    instance="A box, balls and an ellipsoid under four kinds of gradients and one coordinate after another; L4 balls of"
    " growing dimension; the plays on a box against the formula.",
    measured="r + half the stability over OPT(G + limits²), at most 0.595; B_R over it, at most 0.892; regret over the"
    " tight bound, at most 1; plays to 1e-9.",
    code="ftprl.schemes.CentredBestBound",
    run=run,
    tests="tests/paper/test_missing_statements.py",
)
