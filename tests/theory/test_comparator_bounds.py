"""Bounds that depend on the comparator (SOLO FTRL, coin betting), and regret on every interval."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ftprl import FTPRL, CoinBetting, Game, Preconditioned, SoloFTRL, StronglyAdaptive, play
from ftprl.baselines import GradientDescent
from ftprl.schemes import CoordinateConstant, Diagonal, Full
from ftprl.sets import Box, ConvexSet, L2Ball, NuclearBall, Permutahedron, Simplex
from laws.strategies import SEEDS, law

Vector = NDArray[np.float64]
OPEN = Box(-np.inf, np.inf, dim=3)
SETS: dict[str, ConvexSet] = {
    "everywhere": OPEN,
    "half open": Box([0.0, -np.inf, -1.0], np.inf),
    "box": Box([-1.0, 0.5, -0.1], [1.0, 2.5, 0.3]),
    "ball": L2Ball(3, 2.0, [1.0, 0.0, 0.0]),
    "simplex": Simplex(3),
    "ranks": Permutahedron(3),
}


def stream(rng: np.random.Generator, kind: str, rounds: int, n: int) -> Vector:
    if kind == "drift":
        return np.tile(rng.normal(size=n), (rounds, 1))
    rows = rng.normal(size=(rounds, n)) + 0.3 * rng.normal(size=n)
    return rows * 10.0 ** rng.uniform(-4, 4, size=(rounds, 1)) if kind == "wild" else rows


def assert_chain(*links: float | None) -> None:
    for low, high in itertools.pairwise(links):
        assert low is not None
        assert high is not None
        assert low <= high + 1e-12 * abs(high)


@pytest.mark.parametrize("name", SETS)
@law(12)
@given(st.sampled_from(("plain", "drift", "wild")), st.integers(1, 60), st.floats(-2, 2), SEEDS)
def test_solo(name: str, kind: str, rounds: int, decade: float, seed: int) -> None:
    """regret(u) <= tight <= the published bound, for comparators near and far, at every scale of the gradients."""
    rng, F = np.random.default_rng(seed), SETS[name]
    rows = stream(rng, kind, rounds, 3) * 10.0 ** rng.uniform(-9, 9)
    for apart in (False, True) if isinstance(F, Box) else (False,):
        game = play(SoloFTRL(F, 10.0**decade, per_coordinate=apart), rows)
        comparators = [
            F.start(),
            F.minimise(np.array(1.0), -rng.normal(size=3) * 10.0 ** rng.uniform(-2, 2), F.start()).x,
        ]
        for u in comparators:
            c = game.certificate(comparator=u)
            assert_chain(c.regret, c.tight, c.bound, c.theorem)
        best = game.certificate()
        assert_chain(best.regret, best.tight, best.bound)


def test_solo_does_not_see_the_unit_of_the_losses() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 3))
    plays = [play(SoloFTRL(OPEN), 2.0**k * rows).x for k in (-40, 0, 40)]
    np.testing.assert_array_equal(plays[0], plays[1])
    np.testing.assert_array_equal(plays[1], plays[2])


def test_solo_counts_inexact_steps() -> None:
    """On a curved oracle set with few vertices a step, the bounds still hold."""

    class Hasty(NuclearBall):  # type: ignore[misc]
        max_steps = 1

        def _closed(self, H: Vector, z: Vector, near: Vector) -> None:
            return None

    rows = np.random.default_rng(1).normal(size=(60, 4))
    c = play(SoloFTRL(Hasty(2, 2)), rows).certificate()
    assert_chain(c.regret, c.tight, c.bound)


@law(40)
@given(st.booleans(), st.sampled_from(("plain", "drift")), st.integers(1, 80), SEEDS)
def test_coin_betting(apart: bool, kind: str, rounds: int, seed: int) -> None:
    """regret(u) <= tight <= bound for every u; against x_1 never more than the wealth."""
    rng = np.random.default_rng(seed)
    limit, wealth = 10.0 ** rng.uniform(-6, 6, size=2)
    rows = stream(rng, kind, rounds, 3)
    size = np.abs(rows) if apart else np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / size.max() * limit * rng.choice([1.0, 0.3])
    start = rng.normal(size=3)
    game = play(CoinBetting(3, limit, wealth, per_coordinate=apart, start=start), rows)
    for far in (0.0, 1e-3, 1.0, 1e3):
        u = start + far * wealth / limit * rng.normal(size=3)
        c = game.certificate(comparator=u)
        assert_chain(c.regret, c.tight, c.bound, c.theorem)
    assert game.certificate(comparator=start).regret <= wealth * (1 + 1e-9)


def test_coin_betting_beats_every_fixed_radius() -> None:
    """A far comparator on a steady stream: betting has far less regret than SOLO with a wrong guess."""
    rows = np.full((400, 1), -0.5)
    u = [1000.0]
    betting = play(CoinBetting(1), rows).certificate(comparator=u)
    solo = play(SoloFTRL(Box(-np.inf, np.inf)), rows).certificate(comparator=u)
    assert betting.bound < 0.2 * solo.bound
    assert betting.regret < solo.regret


BASES = {
    "diagonal": FTPRL(Box(-1, [1.0, 2.0, 0.5]), Diagonal(2**0.5)),
    "ball": FTPRL(L2Ball(3), CoordinateConstant(2**0.5)),
    "full": FTPRL(Simplex(3), Full()),
    "turned": Preconditioned(np.diag([1.0, 2.0, 0.5]), FTPRL(L2Ball(3), CoordinateConstant())),
    "solo": SoloFTRL(L2Ball(3)),
}


def spread(F: ConvexSet, rows: Vector) -> float:
    return max(float(g @ (F.vertex(-g) - F.vertex(g))) for g in rows)


@pytest.mark.parametrize("name", BASES)
@law(6)
@given(st.integers(1, 40), SEEDS)
def test_every_interval(name: str, rounds: int, seed: int) -> None:
    """On every interval the regret, written out, is at most the reported one, and the chain holds."""
    rng, base = np.random.default_rng(seed), BASES[name]
    F = base.feasible
    rows = np.where(np.arange(rounds)[:, None] < rounds / 2, 1.0, -1.0) + rng.normal(size=(rounds, 3))
    learner = StronglyAdaptive(base, spread(F, rows) * 1.01)
    game, plays = Game(learner), []
    for g in rows:
        plays.append(game.x)
        assert F.contains(game.x)
        game.observe(g)
    c = game.certificate()
    assert_chain(c.regret, c.tight, c.bound, c.theorem)
    X = np.array(plays)
    for a, b in itertools.combinations_with_replacement(range(1, rounds + 1), 2):
        if rng.random() > 0.2 and (a, b) != (1, rounds):
            continue
        part, S = learner.interval(game.state, a, b), rows[a - 1 : b].sum(axis=0)  # type: ignore[arg-type]
        regret = float((rows[a - 1 : b] * X[a - 1 : b]).sum() - S @ F.vertex(S))
        assert (part.start, part.end) == (a, b)
        assert regret <= part.regret + 1e-9
        if part.exact:
            assert regret == pytest.approx(part.regret, abs=1e-9)
        assert_chain(part.regret, part.tight, part.bound, part.theorem)
    for part in learner.intervals(game.state):  # type: ignore[arg-type]
        assert_chain(part.regret, part.tight, part.bound, part.theorem)


def test_intervals_after_a_change() -> None:
    """When the best point changes, the mixture follows; the learner alone does not."""
    rows = np.concatenate((np.full((700, 1), 1.0), np.full((700, 1), -1.0)))
    base = FTPRL(Box(-1, 1), Diagonal(2**0.5))
    learner = StronglyAdaptive(base, limit=2.0)
    game = play(learner, rows)
    part = learner.interval(game.state, 701, 1400)  # type: ignore[arg-type]
    alone, x = 0.0, Game(base)
    for t, g in enumerate(rows):
        alone += float(g @ x.x) * (t >= 700)
        x.observe(g)
    assert part.regret < (alone + 700) / 2
    assert part.regret < 300
    assert part.theorem is not None
    assert part.theorem < 40 * math.log(1400) * math.sqrt(700)


def test_any_learner_can_be_copied() -> None:
    """A baseline has no bounds, but the regret of its mixture is still reported."""
    rows = np.random.default_rng(0).normal(size=(20, 3))
    c = play(StronglyAdaptive(GradientDescent(L2Ball(3)), limit=20.0), rows).certificate()
    assert c.regret > 0
    assert c.bound is None
