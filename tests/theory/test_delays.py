"""Delayed feedback: regret, bounds and counts of games in which gradients come late and out of order."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ftprl import FTPRL, Game, Preconditioned, psd
from ftprl.baselines import GradientDescent
from ftprl.learner import Learner
from ftprl.schemes import CentredBestBound, CoordinateConstant, Diagonal, Full, Scheme, Sketch
from ftprl.sets import Box, ConvexSet, L2Ball, Permutahedron, Simplex
from laws.strategies import SEEDS, law

Vector = NDArray[np.float64]
SETS: dict[str, ConvexSet] = {
    "box": Box([-1.0, 0.2, -3.0], [1.0, 0.8, 2.0]),
    "ball": L2Ball(3, 1.5, [0.3, 0.0, 0.0]),
    "simplex": Simplex(3),
    "ranks": Permutahedron(3),
}
SCHEMES: dict[str, Scheme] = {
    "constant": CoordinateConstant(2**0.5),
    "centred": CoordinateConstant(center=True),
    "diagonal": Diagonal(),
    "full": Full(),
    "sketch": Sketch(2),
}


@dataclass
class Diary:
    """The record of a delayed game."""

    game: Game
    points: list[Vector] = field(default_factory=list)  # by ticket
    gradients: dict[int, Vector] = field(default_factory=dict)
    arrivals: list[int] = field(default_factory=list)  # tickets
    played_after: list[int] = field(default_factory=list)  # how many gradients had arrived at each play
    totals: list[Vector] = field(default_factory=list)  # Q_{1:k} after k gradients


def run(learner: Learner[object], rng: np.random.Generator, plays: int, longest: int) -> Diary:
    """Play a game in which each gradient comes up to `longest` plays later, in any order."""
    diary = Diary(Game(learner))  # type: ignore[arg-type]
    core = learner.core_state
    diary.totals.append(np.zeros(()))
    waiting: list[tuple[int, int]] = []
    for t in range(plays):
        ticket, x = diary.game.play()
        diary.points.append(x)
        diary.played_after.append(len(diary.arrivals))
        waiting.append((t + int(rng.integers(0, longest + 1)), ticket))
        for due, back in sorted(waiting, key=lambda w: rng.random()):
            if due <= t:
                g = rng.normal(size=learner.feasible.dim) + np.sin(back / 7)
                diary.game.observe(g, loss=float(g @ diary.points[back]), ticket=back)
                diary.gradients[back] = g
                diary.arrivals.append(back)
                diary.totals.append(getattr(core(diary.game.state), "total", np.zeros(())))
        waiting = [(due, back) for due, back in waiting if due > t]
    return diary


def literal_shares(diary: Diary, learner: FTPRL) -> float:
    """Return the sum over observed plays of min(½ |e|², |g| |e|), by definition."""
    total, F, scheme = 0.0, learner.feasible, learner.scheme
    place = {ticket: k for k, ticket in enumerate(diary.arrivals)}
    for s, g in diary.gradients.items():
        j = diary.played_after[s]
        missing = sum((diary.gradients[r] for r in range(s) if r in place and place[r] >= j), start=np.zeros(F.dim))
        P = psd.dense(diary.totals[min(j + 1, len(diary.totals) - 1)], F.dim)
        e, own = scheme.effective(F, g + missing), scheme.effective(F, g)
        inverse = np.linalg.pinv(P, rcond=1e-12, hermitian=True)
        away, off = (float(np.linalg.norm(v - P @ (inverse @ v)) / np.linalg.norm(v)) for v in (e, own))
        square, mine = float(e @ inverse @ e), float(own @ inverse @ own)
        if away > 1e-7:
            total += float(e @ (diary.points[s] - F.vertex(e)))
        else:
            total += 0.5 * square if off > 1e-7 else min(0.5 * square, math.sqrt(square * mine))
    return total


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", SETS)
@law(6)
@given(st.integers(1, 40), st.integers(0, 9), SEEDS)
def test_the_chain_holds_with_delays(name: str, scheme: str, plays: int, longest: int, seed: int) -> None:
    rng, F = np.random.default_rng(seed), SETS[name]
    learner = FTPRL(F, SCHEMES[scheme])
    diary = run(learner, rng, plays, longest)
    c = diary.game.certificate(best_loss=0.0)
    assert c.delays is not None
    S = sum(diary.gradients.values(), start=np.zeros(3))
    regret = sum(float(g @ diary.points[s]) for s, g in diary.gradients.items()) - float(S @ F.vertex(S))
    assert c.rounds == len(diary.gradients)
    assert c.regret == pytest.approx(regret, abs=1e-10)
    for low, high in itertools.pairwise((c.regret, c.tight, c.bound, c.theorem, c.worst_case)):
        assert low is not None
        assert high is not None
        assert low <= high * (1 + 1e-12)
    assert c.delays.open == plays - len(diary.gradients)
    assert c.true_regret == pytest.approx(regret + float(S @ F.vertex(S)), abs=1e-9)


@pytest.mark.parametrize("scheme", ["constant", "diagonal", "full"])
@law(12)
@given(st.sampled_from(sorted(SETS)), st.integers(2, 30), st.integers(1, 9), SEEDS)
def test_the_bound_is_that_of_the_theory(scheme: str, name: str, plays: int, longest: int, seed: int) -> None:
    """`delays.bound` is r + the sum of shares, never below the tight bound, and `bound` is the smaller of two
    bounds.
    """
    learner = FTPRL(SETS[name], SCHEMES[scheme])
    diary = run(learner, np.random.default_rng(seed), plays, longest)
    c, game = diary.game.certificate(), diary.game
    assert c.delays is not None
    if not c.rounds or c.delays.bound is None:
        return
    r = game.ledger.regularisation(game.state.total, c.comparator)  # type: ignore[attr-defined]
    want = r + literal_shares(diary, learner)
    assert c.delays.bound == pytest.approx(want, rel=1e-6, abs=1e-6 * (1 + want))
    assert c.tight is not None
    assert c.tight <= c.delays.bound * (1 + 1e-9)
    assert c.bound is not None
    assert c.bound <= c.delays.bound * (1 + 1e-12)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_without_delay_nothing_changes(scheme: str) -> None:
    """A ticket used at once gives equal plays and equal numbers to the last bit."""
    rows = np.random.default_rng(1).normal(size=(30, 3))
    plain, ticketed = Game(FTPRL(SETS["box"], SCHEMES[scheme])), Game(FTPRL(SETS["box"], SCHEMES[scheme]))
    for g in rows:
        plain.observe(g)
        ticket, x = ticketed.play()
        np.testing.assert_array_equal(x, ticketed.x)
        ticketed.observe(g, ticket=ticket)
        np.testing.assert_array_equal(plain.x, ticketed.x)
    a, b = plain.certificate(), ticketed.certificate()
    assert (a.regret, a.tight, a.theorem, a.ratio) == (b.regret, b.tight, b.theorem, b.ratio)
    assert a.delays is None
    assert b.delays is not None
    assert (b.delays.late, b.delays.open, b.delays.cost) == (0, 0, 0.0)
    assert b.delays.bound == pytest.approx(a.bound)


def test_other_learners_and_coordinates() -> None:
    """Any learner takes late gradients; the regret is that of the points played. Coordinates change nothing."""
    rng = np.random.default_rng(5)
    descent = run(GradientDescent(L2Ball(3)), rng, 30, 5)
    c = descent.game.certificate()
    S = sum(descent.gradients.values(), start=np.zeros(3))
    loss = sum(float(g @ descent.points[s]) for s, g in descent.gradients.items())
    assert c.regret == pytest.approx(loss + float(np.linalg.norm(S)))
    assert c.bound is None
    assert c.delays is not None
    assert c.delays.bound is None
    A = np.diag([1.0, 2.0, 0.5])
    turned = run(Preconditioned(A, FTPRL(L2Ball(3), CoordinateConstant())), np.random.default_rng(6), 30, 5)
    made = turned.game.certificate()
    assert made.regret <= made.tight <= made.bound <= made.theorem  # type: ignore[operator]


def test_a_scheme_with_a_fixed_centre() -> None:
    """The proof of a centred scheme has no missing gradients: the bound is the learner's own plus the measured cost."""
    learner = FTPRL(Box(-1, 1, dim=3), CentredBestBound(limits=9.0))
    made = run(learner, np.random.default_rng(8), 40, 6).game.certificate()
    assert made.delays is not None
    assert made.delays.late > 5
    assert made.delays.bound is None
    assert made.regret <= made.tight <= made.bound  # type: ignore[operator]


def test_the_rate_follows_the_delay() -> None:
    """With a fixed delay d the bound grows like sqrt(d T), not d sqrt(T): late rounds weigh more."""
    bounds = {}
    for d in (0, 15):
        game, queue = Game(FTPRL(Box(-1, 1), CoordinateConstant(2**0.5))), []
        rng = np.random.default_rng(2)
        for _ in range(4000):
            queue.append(game.play()[0])
            if len(queue) > d:
                game.observe(rng.choice([-1.0, 1.0], size=1), ticket=queue.pop(0))
        c = game.certificate()
        assert c.delays is not None
        assert c.delays.longest == d
        bounds[d] = c.delays.bound
    assert bounds[15] / bounds[0] < 2 * math.sqrt(16)
