"""Online portfolios on the simplex: FTPRL's certificates, and the wealth of other learners."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.baselines import Best, ExponentiatedGradient, GradientDescent, NewtonLeader, OnlineNewtonStep, best_constant
from ftprl.bounds import Certificate
from ftprl.draw import Panel, Series
from ftprl.game import Game
from ftprl.learner import FTPRL, Learner
from ftprl.paper import real
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.rebalanced import Rebalanced, best_rebalanced
from ftprl.schemes import BestBound, CoordinateConstant, Diagonal, Full, Scheme
from ftprl.sets import Simplex

Vector = NDArray[np.float64]

# Each scheme at a constant c; follow-the-best-bound has b = c/sqrt 2, so that c = 2 is the paper's in all of them.
SCHEMES: dict[str, Callable[[float], Scheme]] = {
    "FTPRL, global rate": lambda c: CoordinateConstant(c, center=True),
    "FTPRL-Diag": lambda c: Diagonal(c, center=True),
    "FTPRL, full": lambda c: Full(c, center=True),
    "FTPRL, best bound": lambda c: BestBound(b=c / math.sqrt(2), center=True),
}
OTHERS: dict[str, Callable[[Simplex, float], Learner[Any]]] = {
    "exponentiated gradient": ExponentiatedGradient,
    "gradient descent": GradientDescent,
    "online Newton step": lambda F, gamma: OnlineNewtonStep(F, gamma, epsilon=1.0),
    "Newton leader": NewtonLeader,
}
# The untuned constants: the paper's c, and the constants of the other learners' papers for portfolios.
OWN = {
    **dict.fromkeys(SCHEMES, 2.0),
    "exponentiated gradient": 0.05,
    "gradient descent": 0.05,
    "online Newton step": 1.0,
    "Newton leader": 0.25,
}
GRIDS = {
    **dict.fromkeys(SCHEMES, (2.0, 8.0, 32.0)),
    "exponentiated gradient": (0.0125, 0.05, 0.2, 0.8),
    "gradient descent": (0.0125, 0.05, 0.2),
    "online Newton step": (1.0, 4.0, 16.0),
    "Newton leader": (0.0625, 0.25, 1.0),
}

# The best bound's line coincides with the global rate's, gradient descent's nearly with exponentiated gradient's.
DRAWN = tuple(who for who in (*SCHEMES, *OTHERS) if who not in ("FTPRL, best bound", "gradient descent"))


@final
@dataclass(frozen=True, eq=False)
class Played:
    """One learner: the logarithm of its growth, day by day, at its best constant and untuned."""

    best: Best
    growth: Vector
    own: Vector


@final
@dataclass(frozen=True, eq=False)
class Market:
    """The results on one market; `certificates` are FTPRL's at the paper's c = 2 and at the best constant."""

    name: str
    R: Vector
    rebalanced: Rebalanced
    played: Mapping[str, Played]
    certificates: Mapping[str, tuple[Certificate, Certificate]]

    def regret(self, name: str) -> Vector:
        """Return the lead of the best constant-rebalanced portfolio over the untuned learner, after each day."""
        return np.cumsum(np.log(self.R @ self.rebalanced.x) - self.played[name].own)


def grow(learner: Learner[Any], R: Vector) -> Vector:
    """Return the logarithm of each day's growth."""
    state, out = learner.init(), np.empty(len(R))
    for t, r in enumerate(R):
        out[t] = r @ state.x
        state = learner.advance(state, -r / out[t], None)
    return np.log(out)


def certificate(learner: Learner[Any], R: Vector, best: Rebalanced) -> Certificate:
    """Return the certificate with the true regret; the best portfolio is at most its proved gap ahead."""
    game = Game(learner)
    for r in R:
        growth = float(r @ game.state.x)
        game.observe(-r / growth, loss=-math.log(growth))
    return game.certificate(best_loss=-best.log_wealth - best.gap)


def study(R: Vector, name: str, step: Step) -> Market:
    """Run every learner on one market."""
    F = Simplex(R.shape[1])
    step(f"{name}: the best constant-rebalanced portfolio")
    best = best_rebalanced(R)
    makers: dict[str, Callable[[float], Learner[Any]]] = {}
    for who, scheme in SCHEMES.items():
        makers[who] = lambda c, scheme=scheme: FTPRL(F, scheme(c))  # type: ignore[misc]
    for who, make in OTHERS.items():
        makers[who] = lambda c, make=make: make(F, c)  # type: ignore[misc]
    played, certificates = {}, {}
    for who, maker in makers.items():
        step(f"{name}: {who}")
        runs: dict[float, Vector] = {}

        def cost(c: float, maker: Any = maker, runs: dict[float, Vector] = runs) -> float:
            """Return the negative log wealth at a constant, and remember the run."""
            runs[c] = grow(maker(c), R)
            return -float(runs[c].sum())

        tuned = best_constant(float, GRIDS[who], cost, widen=2)
        played[who] = Played(tuned, runs[tuned.constant], runs[OWN[who]])
        if who in SCHEMES:
            certificates[who] = certificate(maker(2.0), R, best), certificate(maker(tuned.constant), R, best)
    return Market(name, R, best, played, certificates)


def markets(full: bool, step: Step) -> list[Market]:
    """Run the real markets that are available, or else a synthetic one."""
    days = {"NYSE": 5651 if full else 300, "DJIA": 507 if full else 200}
    there = [name for name in real.MARKETS if real.available(name)]
    if not there:
        return [study(real.synthetic_market(1500 if full else 300), "synthetic market", step)]
    return [study(real.read_market(name, days[name]), name, step) for name in there]


def chain(studied: list[Market]) -> float:
    """Return the largest ratio of neighbours in true regret <= regret <= tight <= bound <= theorem <= B_R <= closed
    form.
    """
    worst = 0.0
    for market in studied:
        for c in itertools.chain(*market.certificates.values()):
            links = [c.true_regret, c.regret, c.tight, c.bound, c.theorem, c.worst_case, c.closed_form]
            pairs = itertools.pairwise(links)
            worst = max(worst, *(math.inf if a is None or b is None else a / b for a, b in pairs))
    return worst


def steady(days: int = 200) -> float:
    """Return the largest true regret over its bound, at c = 2, on a market with one steady winner and one steady
    loser.

    On real markets of some hundred days even a learner that moves the wrong way may keep its bound; here it cannot.
    """
    R = np.array([1.03, 1.0, 0.97]) * np.exp(np.random.default_rng(0).normal(0, 0.002, size=(days, 3)))
    best = best_rebalanced(R)
    certificates = [certificate(FTPRL(Simplex(3), scheme(2.0)), R, best) for scheme in SCHEMES.values()]
    return max(math.inf if c.true_regret is None or c.bound is None else c.true_regret / c.bound for c in certificates)


def promised(studied: list[Market]) -> float:
    """Return the largest ratio of B_R to the best in hindsight, relative to the proved ratio."""
    certificates = [c for m in studied for pair in m.certificates.values() for c in pair]
    return max(c.ratio / c.proven_ratio for c in certificates if c.ratio is not None and c.proven_ratio is not None)


def judged(studied: list[Market]) -> Outcome:
    """Return the outcome: certificates decide, wealth is reported but not judged, since the paper makes no claim on
    it.
    """
    stale = max(m.rebalanced.gap for m in studied)
    checks = [
        Check(
            "true regret <= regret <= ... <= closed form, largest ratio of neighbours", chain(studied), "<=", 1 + 1e-9
        ),
        Check("B_R over best in hindsight, over what is proved, largest", promised(studied), "<=", 1 + 1e-9),
        Check("a market with one steady winner: true regret over bound, largest", steady(), "<=", 1.0),
        Check("log wealth that the best constant-rebalanced portfolio may lack", stale, "<=", 1e-4),
    ]
    remark = "" if any(m.name in real.MARKETS for m in studied) else real.SYNTHETIC
    return Outcome(checks, panels=[curves(m) for m in studied], numbers=sentences(studied), remark=remark)


def sentences(studied: list[Market]) -> list[str]:
    """Return sentences on the wealth of each learner, and on markets that were not run."""
    return [sentence(m) for m in studied] + real.missing(real.MARKETS, (m.name for m in studied))


def sentence(m: Market) -> str:
    """Return the final wealth of each learner, the largest first."""
    order = sorted(m.played, key=lambda who: -m.played[who].growth.sum())
    listed = "; ".join(
        f"{who} {math.exp(m.played[who].growth.sum()):.4g}{' (edge of its grid)' if m.played[who].best.at_edge else ''}"
        for who in order
    )
    even = math.exp(float(np.log(m.R.mean(axis=1)).sum()))
    return (
        f"{m.name}, {len(m.R)} days, {m.R.shape[1]} assets, wealth from 1: best constant-rebalanced portfolio "
        f"{math.exp(m.rebalanced.log_wealth):.4g}, best asset {float(m.R.prod(axis=0).max()):.4g}, equal "
        f"shares {even:.4g}; learners at their best constants: {listed}."
    )


def curves(m: Market) -> Panel:
    """Return the lead of the best constant-rebalanced portfolio over each learner."""
    days = np.unique(np.linspace(1, len(m.R), 25).astype(int))
    lines = [Series(who, days, m.regret(who)[days - 1], points=True, dashed="FTPRL" not in who) for who in DRAWN]
    title = f"{m.name}: behind the best fixed shares, untuned"
    return Panel(title, "day", "regret in log wealth", lines)


def _run(full: bool, step: Step) -> Outcome:
    """Run all markets and judge them."""
    return judged(markets(full, step))


STATEMENT = Statement(
    name="portfolios",
    title="Online portfolios: the certificates hold on the simplex, and what others earn",
    place="beyond the paper",
    claim=(
        "With losses -log(x·r) on the simplex, FTPRL's log wealth stays within its certificate of the best "
        "constant-rebalanced portfolio, with every scheme. Which learner has the largest wealth is shown, not claimed."
    ),
    instance=(
        "NYSE(O), 36 stocks, and DJIA, 30 stocks, where their files are at hand, otherwise a synthetic market. "
        "FTPRL with global, diagonal, full and best-bound schemes on centred gradients; exponentiated gradient, "
        "gradient descent, online Newton step; each at the best constant of a grid that is widened by up to two "
        "steps."
    ),
    measured=(
        "Each FTPRL run's chain from the true regret to the closed form, at c = 2 and at the best constant; the best "
        "constant-rebalanced portfolio to 1e-4 of its log wealth, by a proved gap."
    ),
    code="ftprl.FTPRL, ftprl.sets.Simplex",
    run=_run,
    tests="tests/unit/paper/test_paper_related.py",
)
