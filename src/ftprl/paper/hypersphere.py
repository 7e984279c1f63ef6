"""Minimax play on a ball: the value of the game, two players who attain it, and FTPRL's bound beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl.baselines import GradientDescent
from ftprl.draw import Panel, Series
from ftprl.game import Game
from ftprl.learner import FTPRL, Learner, LearnerState
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROOT2, ROUNDING
from ftprl.schemes import CoordinateConstant
from ftprl.sets import L2Ball

Vector = NDArray[np.float64]

DIM, RADIUS, LIMIT = 4, 1.5, 2.0
MINIMAX = "minimax play"


@final
@dataclass(frozen=True, slots=True, eq=False)
class BallState(LearnerState):
    """The state of `MinimaxPlay`: `S` = the sum of the gradients."""

    S: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class MinimaxPlay(Learner[BallState]):
    """Minimax play on the ball of radius r around 0: x_t = -r S / sqrt(|S|² + (T - t + 1) M²) with S = g_{1:t-1}.

    It knows the number of rounds T and a bound M on every |g|, and its regret is never above r M sqrt T.
    """

    feasible: L2Ball
    rounds: int
    limit: float

    def init(self, hint: ArrayLike | None = None) -> BallState:
        """Return the state at the centre."""
        S = np.zeros(self.feasible.dim)
        return BallState(S, 0, S)

    def advance(self, state: BallState, g: Vector, hint: Vector | None) -> BallState:
        """Move away from the gradients so far, by their size relative to what may still come."""
        S, t = state.S + g, state.t + 1
        size = math.sqrt(float(S @ S) + max(self.rounds - t, 0) * self.limit**2)
        return BallState(S * (-self.feasible.radius / size) if size else S, t, S)


def across(x: Vector, S: Vector, rng: np.random.Generator) -> Vector:
    """Return a minimax gradient: of length M, orthogonal to the play and to the sum so far."""
    basis, _ = np.linalg.qr(np.column_stack((S, x, rng.normal(size=len(x)))))
    return np.asarray(LIMIT * basis[:, 2])


def against(x: Vector, S: Vector, rng: np.random.Generator) -> Vector:
    """Return a gradient along the play, which costs at once."""
    return x * (LIMIT / np.linalg.norm(x)) if x.any() else across(x, S, rng)


def anything(x: Vector, S: Vector, rng: np.random.Generator) -> Vector:
    """Return a gradient of random direction and length."""
    g = rng.normal(size=len(x))
    return np.asarray(g * (LIMIT * rng.random() / np.linalg.norm(g)))


def turning(x: Vector, S: Vector, rng: np.random.Generator) -> Vector:
    """Return a gradient half along the play, half orthogonal to it."""
    g = across(x, S, rng) + against(x, S, rng)
    return np.asarray(g * (LIMIT / np.linalg.norm(g)))


ADVERSARIES = {"across": across, "against the play": against, "both": turning, "random": anything}


def players(ball: L2Ball, T: int) -> dict[str, Learner[Any]]:
    """Return minimax play, FTPRL with two constants, and descent with the best rate for T."""
    return {
        MINIMAX: MinimaxPlay(ball, T, LIMIT),
        "FTPRL, c = 2": FTPRL(ball, CoordinateConstant()),
        "FTPRL, c = sqrt 2": FTPRL(ball, CoordinateConstant(ROOT2)),
        "gradient descent": GradientDescent(ball, RADIUS / (LIMIT * math.sqrt(T))),
    }


def lost(learner: Learner[Any], adversary: str, T: int) -> float:
    """Return the regret of a game against an adversary."""
    rng, game = np.random.default_rng(T), Game(learner)
    S = np.zeros(DIM)
    for _ in range(T):
        g = ADVERSARIES[adversary](game.x, S, rng)
        S = S + g
        game.observe(g)
    return game.certificate().regret


def potential_gain(count: int) -> float:
    """Return the largest increase of loss + r sqrt(|S|² + rounds left M²) in one round; the proof shows it is not
    positive.
    """
    rng, worst = np.random.default_rng(0), -math.inf
    for _ in range(count):
        left, S = int(rng.integers(1, 30)), rng.normal(size=DIM) * 10.0 ** rng.uniform(-2, 2)
        before = math.sqrt(float(S @ S) + left * LIMIT**2)
        g = ADVERSARIES[rng.choice(list(ADVERSARIES))](-S, S, rng)
        after = math.sqrt(float((S + g) @ (S + g)) + (left - 1) * LIMIT**2)
        worst = max(worst, (after - before - float(g @ S) / before) / before)
    return worst


def run(full: bool, step: Step) -> Outcome:
    """Play every player against every adversary and measure regrets over the value of the game, r M sqrt T."""
    ball, lengths = L2Ball(DIM, RADIUS), (4, 16, 64, 256, *((1024, 4096) if full else ()))
    shares: dict[str, dict[str, list[float]]] = {}
    for T in lengths:
        step(f"{T} rounds")
        for name, learner in players(ball, T).items():
            for adversary in ADVERSARIES:
                share = lost(learner, adversary, T) / (RADIUS * LIMIT * math.sqrt(T))
                shares.setdefault(name, {}).setdefault(adversary, []).append(share)
    worst = {
        name: [max(row[k] for row in games.values()) for k in range(len(lengths))] for name, games in shares.items()
    }
    forced = [share for games in shares.values() for share in games["across"]]
    ours = max(max(worst[name]) for name in worst if "FTPRL" in name)
    return Outcome(
        [
            Check("minimax adversary: regret of every player over r M sqrt T, least", min(forced), ">=", 1 - ROUNDING),
            Check("minimax play: regret over r M sqrt T, largest", max(worst[MINIMAX]), "<=", 1 + ROUNDING),
            Check("minimax play: rise of the potential in one round, largest", potential_gain(4000), "<=", ROUNDING),
            Check("FTPRL, global rate: regret over the value of the game, largest", ours, "<=", 2 * ROOT2 + ROUNDING),
        ],
        panels=[
            Panel(
                "Against the worst of four adversaries",
                "rounds T",
                "regret over r M sqrt T",
                [
                    *(Series(k, lengths, row, points=True, wide=k == MINIMAX) for k, row in worst.items()),
                    Series(
                        "FTPRL's bound, sqrt 2 D sqrt G", lengths, [2 * ROOT2] * len(lengths), dashed=True, colour=6
                    ),
                    Series("the value of the game", lengths, [1.0] * len(lengths), dashed=True, colour=1),
                ],
                log="x",
                ticks=[(T, f"{T:,}") for T in lengths],
                ylim=(0.0, 3.1),
                legend="below",
            )
        ],
        numbers=[
            (
                f"FTPRL does not know T or M; its bound sqrt 2 D sqrt G is {2 * ROOT2:.3f} times the value where"
                f" |g| = M in every round, and the largest regret found is {ours:.3f} times the value."
            )
        ],
    )


STATEMENT = Statement(
    name="hypersphere",
    title="On a ball the value of the game is D M sqrt T / 2, and FTPRL's bound is within 2 sqrt 2 of it",
    place="Section 1 (introduction)",
    claim="The bound O(D M sqrt T) is minimax optimal when the set is a ball: against |g| <= M every player can be made"
    " to have a regret of D M sqrt T / 2, from three dimensions on, and one who knows T and M never has more.",
    instance="A ball in four dimensions. Gradients at right angles to the play and to their sum so far (the minimax"
    " adversary of Abernethy, Bartlett, Rakhlin and Tewari 2008), along the play, both, and random ones; minimax play,"
    " FTPRL with one rate, and gradient descent with the best rate for T; up to 256 rounds (full: 4096).",
    measured="Regret over r M sqrt T, r = D/2: against the minimax adversary at least 1 for every player; of minimax"
    " play at most 1 always, and its potential never rises; of FTPRL at most 2 sqrt 2, all to 1e-7.",
    code="ftprl.schemes.CoordinateConstant",
    run=run,
    tests="tests/paper/test_missing_statements.py",
)
