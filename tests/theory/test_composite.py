"""Composite terms: l1 and l2 penalties, once or in every round, from any start, with and without hints."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import FTPRL, Certificate, Composite, Game
from ftprl.schemes import CoordinateConstant, Diagonal, Full
from ftprl.sets import Box, ConvexSet, L2Ball
from oracles.naive import Naive
from oracles.zoo import ROOT2, SETS, random_point

NAMES = ("box", "l2", "l1", "lp3", "ellipsoid", "simplex", "polytope", "product", "l2 box")
COMPOSITES = {"l1": (0.3, 0.0), "l2": (0.0, 0.7), "both": (0.2, 1.5), "strong": (2.0, 4.0)}


def assert_covered(game: Game, rng: np.random.Generator, tol: float = 1e-8) -> None:
    """Check the chain from regret to worst_case, against the best point and against others."""
    F: ConvexSet = game.learner.feasible
    for x in (None, F.start(), random_point(F, rng), random_point(F, rng)):
        made: Certificate = game.certificate(comparator=x)
        slack = tol * (1 + abs(made.worst_case))
        assert made.regret <= made.tight + slack
        assert made.regret <= made.bound + slack
        assert made.tight <= made.bound + slack
        assert made.bound <= made.theorem + slack
        assert made.theorem <= made.worst_case + slack


def start_of(F: ConvexSet, where: str, psi: Composite, rng: np.random.Generator) -> np.ndarray:
    """Return the point that Psi prefers, or any point of F."""
    if where == "anywhere":
        return random_point(F, rng)
    return psi.minimise(F, np.zeros(()), np.zeros(F.dim), F.start(), 1).x


@pytest.mark.parametrize(("per_round", "where"), [(False, "least"), (True, "anywhere")], ids=["once", "per round"])
@pytest.mark.parametrize("psi", COMPOSITES)
@pytest.mark.parametrize("name", NAMES)
def test_composite_is_covered(name: str, psi: str, per_round: bool, where: str) -> None:
    """Composite terms: Regret(f + Psi) <= r(x) + ½ sum g'Q⁺g, g without Psi, from any start."""
    F = SETS[name]
    term = Composite(*COMPOSITES[psi], per_round)
    for seed, scheme in enumerate((Diagonal(), CoordinateConstant(ROOT2), Full(delta=0.2))):
        rng = np.random.default_rng(seed)
        game = Game(FTPRL(F, scheme, start_of(F, where, term, rng), term))
        for t in range(6):
            game.observe(rng.normal(size=F.dim))
            if t in (0, 5):
                assert_covered(game, rng)


@pytest.mark.parametrize("where", ["least", "anywhere"])
@pytest.mark.parametrize("first", [False, True], ids=["later", "first too"])
@pytest.mark.parametrize("per_round", [False, True], ids=["once", "per round"])
@pytest.mark.parametrize("psi", COMPOSITES)
def test_composite_with_hints_is_covered(psi: str, per_round: bool, first: bool, where: str) -> None:
    """Composite terms and hints together: the bounds count errors of the hints and still cover the regret."""
    term = Composite(*COMPOSITES[psi], per_round)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        F = (Box(-1, 1, dim=2), L2Ball(2))[seed % 2]
        hint = rng.normal(size=2) if first else None
        game = Game(FTPRL(F, Diagonal(), start_of(F, where, term, rng), term), hint=hint)
        for _ in range(8):
            game.observe(rng.normal(size=2), hint=rng.normal(size=2))
            assert_covered(game, rng)


def test_composite_from_the_far_end() -> None:
    """Composite terms: in the first round x_1 minimises r_1 but not Psi, so l2 must not shorten its gradient."""
    game = Game(FTPRL(Box(-1, 1), Diagonal(), start=[1.0], composite=Composite(l2=1.0)))
    game.observe([1.0])
    game.observe([-1.0])
    made = game.certificate()
    assert made.regret == pytest.approx(1.0)
    assert made.regret <= made.bound


def test_first_hint_and_a_penalty_once() -> None:
    """Composite terms and hints: what Psi cost at first is Psi(x_1), where x_1 has followed its hint."""
    game = Game(FTPRL(Box(-1, 1), Diagonal(), start=[-1.0], composite=Composite(2.0, 0.5)), hint=[0.0])
    game.observe([-2.0])
    made = game.certificate()
    assert made.regret <= made.tight + 1e-12


def test_first_hint_and_a_penalty_per_round() -> None:
    """Composite terms and hints: Psi(x_1) is part of the regret, with x_1 chosen by its hint."""
    game = Game(FTPRL(Box(-1, 1), Diagonal(), composite=Composite(2.0, 0.5, per_round=True)), hint=[-1.0])
    game.observe([0.1])
    made = game.certificate()
    assert made.regret == pytest.approx(2.35)
    assert made.regret <= made.bound + 1e-12


def test_true_hints_and_a_penalty_per_round() -> None:
    """Composite terms and hints: a hinted play pays Psi(x_t), its leader Psi(y_t); the bound owes the difference."""
    game = Game(FTPRL(Box(-1, 1), Diagonal(), composite=Composite(1.0, per_round=True)))
    game.observe([0.0], hint=[1.5])
    game.observe([1.5])
    made = game.certificate()
    assert made.regret <= made.tight + 1e-12
    assert made.tight <= made.bound + 1e-12


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.floats(0, 3), st.floats(0, 3))
def test_box_step_is_soft_threshold_divide_clip(seed: int, per_round: bool, l1: float, l2: float) -> None:
    """Composite terms on a box: x = clip(-sgn(z)(|z| - l1)_+ / (lambda + l2)), 0 inside the box or not."""
    rng = np.random.default_rng(seed)
    lower = rng.normal(size=3)
    F = Box(lower, lower + rng.exponential(size=3))
    game = Game(FTPRL(F, Diagonal(), composite=Composite(l1, l2, per_round)))
    z, G, D = np.zeros(3), np.zeros(3), F.widths()
    for t in range(1, 9):
        x, g = game.x, rng.normal(size=3)
        new = G + g * g
        z = z + g - (2 / D) * (np.sqrt(new) - np.sqrt(G)) * x
        G = new
        game.observe(g)
        k = t if per_round else 1
        want = -np.sign(z) * np.maximum(np.abs(z) - k * l1, 0) / (2 * np.sqrt(G) / D + k * l2)
        np.testing.assert_allclose(game.x, np.clip(want, F.lower, F.upper), atol=1e-9)


@pytest.mark.parametrize("per_round", [False, True], ids=["once", "per round"])
def test_plays_minimise_the_literal_objective(per_round: bool) -> None:
    """Composite terms: the play beats every other point in sum g·x + r(x) + Psi(x) (t times when per round)."""
    rng = np.random.default_rng(1)
    term = Composite(0.4, 0.6, per_round)
    for name in NAMES:
        F = SETS[name]
        game, history = Game(FTPRL(F, Diagonal(), composite=term)), Naive(F.dim)
        for t in range(1, 5):
            x = game.x
            game.observe(rng.normal(size=F.dim))
            state = game.state
            history.add(state.seen, state.Q, x, state.x)  # type: ignore[attr-defined]
            k = t if per_round else 1
            value = history.H(game.x, t) + k * term.value(game.x)
            for _ in range(20):
                y = 0.5 * (random_point(F, rng) + game.x) if rng.random() < 0.5 else random_point(F, rng)
                assert value <= history.H(y, t) + k * term.value(y) + 1e-7 * (1 + abs(value))


def test_regret_counts_the_penalty_per_round() -> None:
    """Composite terms: with per_round the regret is that of g_t·x + Psi(x), from the definition."""
    rng = np.random.default_rng(3)
    F, term = L2Ball(2), Composite(0.3, 0.5, per_round=True)
    game = Game(FTPRL(F, Diagonal(), composite=term))
    total, S = 0.0, np.zeros(2)
    for _ in range(15):
        g = rng.normal(size=2)
        total += float(g @ game.x) + term.value(game.x)
        S += g
        game.observe(g)
    made = game.certificate()
    others = [random_point(F, rng) for _ in range(300)]
    best = min(float(S @ y) + 15 * term.value(y) for y in others)
    mine = float(S @ made.comparator) + 15 * term.value(made.comparator)
    assert mine <= best + 1e-9
    assert made.regret == pytest.approx(total - mine)
