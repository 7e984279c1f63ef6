"""Beyond the paper: guesses of the next gradient."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.game import Game
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import ROOT2, ROUNDING, balls, ratio, sets
from ftprl.schemes import Diagonal
from ftprl.sets import Box, ConvexSet

Vector = NDArray[np.float64]


def regret(F: ConvexSet, gs: Vector, guesses: Vector | None) -> float:
    """Return the regret against the best fixed point, with the loss added up from the plays."""
    game = Game(FTPRL(F, Diagonal(ROOT2)), hint=None if guesses is None else guesses[0])
    own_loss = 0.0
    for t, g in enumerate(gs):
        own_loss += float(g @ game.x)
        after = None if guesses is None or t + 1 == len(gs) else guesses[t + 1]
        game.observe(g, hint=after)
    S = gs.sum(axis=0)
    return own_loss - float(S @ F.vertex(S))


def bound(F: ConvexSet, errors: Vector) -> float:
    """Return the bound sqrt 2 sum D_i sqrt(sum of squared errors of the guesses)."""
    return ROOT2 * float(F.widths() @ np.linalg.norm(errors, axis=0))


def gradients(F: ConvexSet, T: int, seed: int) -> Vector:
    """Return a slow random walk of gradients, in which each is close to the one before."""
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(scale=0.1, size=(T, F.dim)), axis=0) + rng.normal(size=F.dim)


def run(full: bool, step: Step) -> Outcome:
    """Measure the regret over its bound for guesses of every quality, and how both fall as guesses improve."""
    rng = np.random.default_rng(8)
    shares: list[float] = []
    for name, F in {**sets(), **balls()}.items():
        step(name)
        for seed in range(10 if full else 2):
            gs = gradients(F, 300 if full else 40, seed)
            noise = rng.normal(size=gs.shape)
            yesterday = np.vstack((np.zeros(F.dim), gs[:-1]))
            kinds = (gs + 0.1 * noise, yesterday, 3 * noise, 0 * gs)
            shares += [ratio(regret(F, gs, guesses), bound(F, gs - guesses)) for guesses in kinds]
    F = Box(-1, 1, dim=5)
    gs = np.random.default_rng(3).normal(size=(4000 if full else 600, 5))
    noise = np.random.default_rng(4).normal(size=gs.shape)
    sizes = np.geomspace(0.01, 2, 9)
    falls: list[float] = []
    bounds: list[float] = []
    for size in sizes:
        step(f"guesses off by {size:.3g}")
        falls.append(regret(F, gs, gs + size * noise))
        bounds.append(bound(F, size * noise))
    blind = regret(F, gs, None)
    perfect = regret(F, gs, gs)
    return Outcome(
        [
            Check("largest regret / (sqrt 2 sum D_i sqrt(squared errors))", max(shares), "<=", 1 + ROUNDING),
            Check("regret / bound for guesses of every quality", max(map(ratio, falls, bounds)), "<=", 1 + ROUNDING),
            Check("perfect guesses: regret", perfect, "<=", ROUNDING),
        ],
        panels=[
            Panel(
                "Guesses of every quality: noise added to the true gradient",
                "size of the noise (the gradients have size 1)",
                "regret and bound (units of loss)",
                [
                    Series("regret with guesses", sizes, falls, points=True),
                    Series("bound with guesses", sizes, bounds, dashed=True, colour=0),
                    Series("regret without guesses", sizes[[0, -1]], [blind, blind], colour=2),
                    Series("bound without guesses", sizes[[0, -1]], [bound(F, gs)] * 2, dashed=True, colour=2),
                ],
                log="x",
                note=f"perfect guesses: regret {perfect:.4g}",
            )
        ],
        numbers=[
            f"With perfect guesses each play is the leader of all rounds so far and its own: regret {perfect:.4g}."
        ],
    )


STATEMENT = Statement(
    name="hints",
    title="Guesses of the next gradient: the bound counts their errors alone",
    place="beyond the paper",
    claim="If m_t guesses g_t, x_t minimises (g_{1:t-1} + m_t)·x + r_{1:t-1}(x) and the weights are made of the"
    " errors, then the regret is at most r(x*) + ½ sum |g_t - m_t|² in the norm of Q_{1:t}⁺; for the diagonal scheme"
    " with c = sqrt 2, at most sqrt 2 sum D_i sqrt(sum of (g_{t,i} - m_{t,i})²). No guess is so bad that this fails.",
    instance="Nine sets with slowly changing gradients: guesses near to the truth, yesterday's gradient, nonsense,"
    " 0. Then gradients without any pattern on a cube, with guesses that are off by 0.01 to 2.",
    measured="Regret, from plays and losses, over the bound: at most 1, up to 1e-9; with perfect guesses at most 0.",
    code="ftprl.FTPRL",
    run=run,
    tests="tests/theory/test_certificates.py",
)
