"""Section 4: lazy projection with restarts, on the instance on which its adaptive rates fail."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.baselines import LazyDescent, RestartedDescent
from ftprl.draw import Panel, Series
from ftprl.game import Game
from ftprl.learner import FTPRL, Learner
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.centring import HIGH, LOW, rows
from ftprl.paper.fits import certificate, kinds, slope
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Box, L2Ball

Vector = NDArray[np.float64]

FACTOR = 2 / (math.sqrt(2) - 1)
RESTARTS, ADAPTIVE, OURS = "lazy, with restarts", "lazy, adaptive rate", "FTPRL"


def ways(F: Box) -> dict[str, Learner[Any]]:
    """Return two lazy projections that do not know T, and FTPRL."""
    return {
        OURS: FTPRL(F, CoordinateConstant()),
        ADAPTIVE: LazyDescent(F),
        RESTARTS: RestartedDescent(F),
    }


def pushed_back(learner: Learner[Any], T: int) -> float:
    """Return the regret if every gradient pushes the play back towards the middle."""
    game, middle = Game(learner), (LOW + HIGH) / 2
    for _ in range(T):
        game.observe(np.where(game.x >= middle, 1.0, -1.0))
    return game.certificate().regret


def run(full: bool, step: Step) -> Outcome:
    """Measure regret as T grows if early learning must be undone, and over the bound on other gradients."""
    F = Box(LOW, HIGH)
    lengths = [int(T) // 4 * 4 for T in np.geomspace(100, 40_000 if full else 6400, 7)]
    curves: dict[str, list[float]] = {}
    for T in lengths:
        step(f"{T} rounds")
        for name, learner in ways(F).items():
            curves.setdefault(name, []).append(certificate(learner, rows(T)).regret / (F.diameter() * math.sqrt(T)))
    pushed = [pushed_back(RestartedDescent(F), T) for T in lengths]
    shares = [value / (F.diameter() * math.sqrt(T)) for value, T in zip(pushed, lengths, strict=True)]
    over = max(*curves[RESTARTS], *shares)
    ball = L2Ball(3)
    for seed in range(6 if full else 2):
        for _, gs in kinds(3, 200, seed):
            regret = certificate(RestartedDescent(ball), gs).regret
            over = max(over, regret / (ball.diameter() * math.sqrt(float((gs**2).sum()))))
    failing = 0.5 + slope(lengths, curves[ADAPTIVE])
    return Outcome(
        [
            Check("restarts: regret over D sqrt G on all gradients, largest", over, "<=", FACTOR),
            Check("restarts, pushed back: exponent of the regret", slope(lengths, pushed), "<=", 0.55),
            Check("adaptive rate without restarts: exponent of the regret", failing, ">=", 0.95),
        ],
        panels=[
            Panel(
                "A quarter of the rounds one way, then the other",
                "rounds T",
                "regret over D sqrt G",
                [
                    *(Series(name, lengths, values, points=True) for name, values in curves.items()),
                    Series("bound with restarts", lengths, [FACTOR] * len(lengths), dashed=True, colour=6),
                ],
                log="x",
            )
        ],
        numbers=[
            (
                "On this instance restarts have a negative regret: they forget the first quarter, and follow the change"
                " better than any fixed point can."
            )
        ],
    )


STATEMENT = Statement(
    name="lazy-restarts",
    title="Lazy projection has low regret with restarts, not with rates that adapt",
    place="Section 4 (related work)",
    claim="Lazily-projected gradient descent attains low regret only by a restarting mechanism, or by a constant rate"
    " chosen with knowledge of T.",
    instance="The interval [4, 6]: gradient +1 for a quarter of the rounds, then -1; gradients that push the play"
    " back; a ball and gradients of four kinds. Restarts: a fixed rate D / sqrt(budget), the budget of sum |g|² doubled"
    " each time.",
    measured="The regret with restarts at most 2 / (sqrt 2 - 1) D sqrt G on all gradients, between 100 and 6400 rounds"
    " (full: 40000), and its exponent at most 0.55 where gradients push the play back; with an adaptive rate instead"
    " the exponent on the first instance is at least 0.95. The constant rate is judged by the statement centring.",
    code="ftprl.baselines.RestartedDescent",
    run=run,
    tests="tests/laws/test_related_bounds.py",
)
