"""Beyond the paper: every number of a certificate, recomputed from the rounds in extended precision."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.bounds import Certificate
from ftprl.draw import Panel, Series
from ftprl.game import Game
from ftprl.learner import FTPRL, State
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import KINDS, ROUNDING, balls, in_order, sets, stream
from ftprl.schemes import BestBound, BlockConstant, CoordinateConstant, Diagonal, Fixed, Full, Scheme, Sketch
from ftprl.sets import Box, CappedSimplex, ConvexSet, L2Ball, Preimage, Product, Simplex

Vector = NDArray[np.float64]
Long = NDArray[Any]  # of numpy's longdouble

_TURN = np.array([[1.0, 0.5], [-0.2, 0.8]])


def every_set() -> dict[str, ConvexSet]:
    """Return the sets of the other experiments, and sets built from sets."""
    more: dict[str, ConvexSet] = {
        "capped simplex": CappedSimplex(4, 0.5),
        "product": Product(L2Ball(2, 0.5), Simplex(2)),
        "preimage": Preimage(_TURN, Box(-1, 1, dim=2)),
    }
    return {**sets(), **balls(), **more}


def every_scheme(F: ConvexSet) -> dict[str, Scheme]:
    """Return the schemes that play on F."""
    out: dict[str, Scheme] = {
        "constant": CoordinateConstant(),
        "constant, centred": CoordinateConstant(c=math.sqrt(2), center=True),
        "diagonal": Diagonal(),
        "diagonal, centred": Diagonal(center=True),
        "full": Full(delta=0.1),
        "sketch": Sketch(2),
        "fixed": Fixed(lambda t, g: np.ones(F.dim) / math.sqrt(t)),
        "best bound, constant": BestBound("const"),
    }
    if F.penalty_growth() is not None:
        out["best bound"] = BestBound()
    if F.block_optimum(np.ones(F.dim)) is not None:
        out["block"] = BlockConstant()
    return out


@final
@dataclass(eq=False)
class Rounds:
    """The recorded rounds of a game, in extended precision."""

    x: list[Long] = field(default_factory=list)
    g: list[Long] = field(default_factory=list)  # the gradients themselves
    seen: list[Long] = field(default_factory=list)  # the effective gradients, which the bounds count
    Q: list[Vector] = field(default_factory=list)

    def quad(self, t: int, y: Long) -> Any:
        """Return yᵀQ_t y."""
        Q = self.Q[t].astype(np.longdouble)
        return (y * (Q @ y if Q.ndim == 2 else Q * y)).sum()

    def r(self, u: Long) -> Any:
        """Return r_{1:T}(u)."""
        return sum((self.quad(t, u - self.x[t]) for t in range(len(self.g))), np.longdouble(0)) / 2

    def deltas(self) -> Any:
        """Return the sum over t of H_t(x_t) - H_t(x_{t+1}), each evaluated as it is written."""
        out = np.longdouble(0)
        for t in range(len(self.g)):
            here, there = self.x[t], self.x[t + 1]
            out += sum((g * (here - there)).sum() for g in self.seen[: t + 1])
            out += sum(self.quad(s, here - self.x[s]) - self.quad(s, there - self.x[s]) for s in range(t + 1)) / 2
        return out

    def stability(self) -> float:
        """Return sum g_tᵀ Q_{1:t}⁺ g_t."""
        total, out = np.zeros(()), 0.0
        for Q, g in zip(self.Q, self.seen, strict=True):
            total = total + (Q if Q.ndim == 2 or total.ndim < 2 else np.diag(np.broadcast_to(Q, g.shape)))
            v = g.astype(np.float64)
            if total.ndim == 2:
                out += float(v @ np.linalg.lstsq(total, v, rcond=1e-11)[0])
            else:
                out += float(v @ np.divide(v, total, out=np.zeros_like(v), where=np.broadcast_to(total > 0, v.shape)))
        return out

    def penalty(self, F: ConvexSet, rng: np.random.Generator) -> tuple[float, float]:
        """Return sum N(Q_t) from below, by differences of extreme points, and from above, by the set's own bound."""
        known = F.extreme_differences()
        if known is None:
            ends = np.array([F.vertex(rng.normal(size=F.dim)) for _ in range(60)])
            known = (ends[:, None] - ends[None]).reshape(-1, F.dim)
        low = sum(float((known * (known @ Q if Q.ndim == 2 else known * Q)).sum(axis=1).max()) for Q in self.Q)
        return low / 2, sum(F.sq_diameter(Q) for Q in self.Q) / 2


def play(F: ConvexSet, scheme: Scheme, oracles: Any) -> tuple[Rounds, Certificate]:
    """Play a game, record every round, and return both with the certificate."""
    game, rounds = Game(FTPRL(F, scheme)), Rounds()
    for oracle in oracles:
        x = game.x
        g = oracle(x)
        game.observe(g)
        state = game.state
        assert isinstance(state, State)
        rounds.x.append(x.astype(np.longdouble))
        rounds.g.append(g.astype(np.longdouble))
        rounds.seen.append(state.seen.astype(np.longdouble))
        rounds.Q.append(psd.array(state.Q))
    rounds.x.append(game.x.astype(np.longdouble))
    return rounds, game.certificate()


def closed_form(F: ConvexSet, scheme: Scheme, rounds: Rounds) -> float | None:
    """Return the paper's bound with its printed constants, 2 D sqrt G or 2 sum D_i sqrt G_i; None for other schemes."""
    G = np.sum([g.astype(np.float64) ** 2 for g in rounds.seen], axis=0)
    if type(scheme) is CoordinateConstant and scheme.c == 2.0:
        return 2 * F.diameter() * math.sqrt(float(G.sum()))
    return 2 * float(F.widths() @ np.sqrt(G)) if type(scheme) is Diagonal else None


def deviations(F: ConvexSet, scheme: Scheme, rounds: Rounds, c: Certificate, seed: int) -> dict[str, float]:
    """Return how far each number of the certificate is from its definition, relative to B_R."""
    assert c.comparator is not None
    rng = np.random.default_rng(seed)
    u = c.comparator.astype(np.longdouble)
    S = np.sum(rounds.g, axis=0)
    others = [F.vertex(S.astype(np.float64)), *(F.vertex(rng.normal(size=F.dim)) for _ in range(20))]
    best = min(float((S * v).sum()) for v in [u, *others])
    regret = float(sum((g * x).sum() for g, x in zip(rounds.g, rounds.x, strict=False))) - best
    r, stability, delta = float(rounds.r(u)), rounds.stability(), float(rounds.deltas())
    low, high = rounds.penalty(F, rng)
    size = high + stability or 1.0
    own = closed_form(F, scheme, rounds)
    move = rng.normal(size=F.dim)
    apart = others[1] - others[2]
    numbers = {
        "regret": (c.regret, regret),
        "tight": (c.tight, r + delta),
        "bound": (c.bound, r + stability / 2),
        "theorem": (c.theorem, r + stability),
        "worst case": (c.worst_case, high + stability),
        "closed form": (c.closed_form, own) if own is not None else (0.0, 0.0),
        "part of g that matters": (float(F.tangent(move) @ apart), float(move @ apart)),
    }
    out = {name: abs((value or 0.0) - want) / size for name, (value, want) in numbers.items()}
    once = F.tangent(move)
    out["that part, taken twice"] = float(np.abs(F.tangent(once) - once).max())
    out["N from below"] = max(low - high, 0.0) / size
    out["N from above"] = (
        max(high - low, 0.0) / size if F.is_exact("full") and F.extreme_differences() is not None else 0.0
    )
    return out


def run(full: bool, step: Step) -> Outcome:
    """Compare certificates with the sums, for every set with every scheme."""
    worst: dict[str, float] = {}
    each: list[float] = []
    broken = 0.0
    for i, (name, F) in enumerate(every_set().items()):
        step(f"certificates on the {name}")
        for j, scheme in enumerate(every_scheme(F).values()):
            for kind in KINDS if full else (KINDS[(i + j) % len(KINDS)],):
                seed = 10 * i + j
                rounds, c = play(F, scheme, stream(kind, F, 25 if full else 10, seed))
                off = deviations(F, scheme, rounds, c, seed)
                worst = {key: max(worst.get(key, 0.0), value) for key, value in off.items()}
                each.append(max(off.values()))
                chain = [c.regret, c.tight, c.bound, c.theorem, c.worst_case]
                steps = itertools.pairwise(chain)
                broken = max([broken, *((a or 0.0) - (b or 0.0) for a, b in steps)])
    return Outcome(
        [
            *(Check(f"{key}: largest distance, over B_R", value, "<=", 100 * ROUNDING) for key, value in worst.items()),
            Check("the chain of bounds: largest step downwards", broken, "<=", 0.0),
        ],
        panels=[
            Panel(
                "Numbers of a certificate against their definitions",
                "game, from the smallest distance to the largest",
                "largest distance, over B_R",
                [
                    Series("games", *in_order([max(e, 1e-18) for e in each]), points=len(each) < 150),
                    Series("allowed", [1, len(each)], [100 * ROUNDING] * 2, dashed=True, colour=6),
                ],
                log=True,
            )
        ],
        numbers=[f"{len(each)} games: every set with every scheme that plays on it."],
    )


STATEMENT = Statement(
    name="certificate",
    title="The numbers of a certificate are those of their definitions",
    place="beyond the paper",
    claim="Regret, r(x*) plus the deltas, r(x*) plus half and all of the stability, B_R and the closed forms, kept as"
    " running sums by the ledger, equal what the rounds give, and regret <= tight <= bound <= theorem <= B_R.",
    instance="Twelve sets with up to ten schemes each, six kinds of gradients.",
    measured="The distance of each number from its definition, evaluated over all rounds in extended precision,"
    " relative to B_R: at most 1e-7. N(Q) is bounded from below by differences of extreme points, and from above where"
    " these are all.",
    code="ftprl.Certificate",
    run=run,
    tests="tests/theory/test_exactness.py",
)
