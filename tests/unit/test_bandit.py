"""Two-point bandit feedback: points in the set, unbiased estimates, bounds in expectation."""

import json

import numpy as np
import pytest

from ftprl import FTPRL, Game, StronglyAdaptive, TwoPointGame
from ftprl.errors import FtprlError, InvalidInput
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Birkhoff, Box, ConvexSet, FlowPolytope, L2Ball, Preimage, Simplex

SETS: dict[str, tuple[ConvexSet, float | None]] = {
    "box": (Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.5]), None),
    "thin box": (Box([-1.0, 0.0, 2.0], [1.0, 3.0, 2.0]), None),
    "ball": (L2Ball(3, 2.0, [1.0, 0.0, 0.0]), 2.0),
    "ball, by its box": (L2Ball(3), None),
    "simplex": (Simplex(3), 1 / 6**0.5),
    "turned simplex": (Preimage([[1.0, 0.3, 0.0], [0.0, 1.0, 0.2], [0.0, 0.0, 1.0]], Simplex(3)), 0.2),
    "birkhoff": (Birkhoff(2), 0.9),
    "flow": (FlowPolytope([(0, 1), (0, 1), (1, 2), (0, 2)], 0, 2), 0.3),
}


@pytest.mark.parametrize("name", SETS)
def test_the_points_lie_in_the_set(name: str, rng: np.random.Generator) -> None:
    F, inner = SETS[name]
    game = TwoPointGame(FTPRL(F, CoordinateConstant()), step=0.05, lipschitz=10.0, inner=inner)
    g = rng.normal(size=F.dim)
    for _ in range(40):
        a, b = game.points
        assert F.contains(a, 1e-12)
        assert F.contains(b, 1e-12)
        np.testing.assert_allclose((a + b) / 2, game.x)
        assert np.linalg.norm(a - b) == pytest.approx(0.1)
        game.observe(float(g @ a), float(g @ b))
    assert game.rounds == 40
    c = game.certificate()
    assert c.regret <= c.tight <= c.bound <= c.theorem <= c.worst_case


@pytest.mark.parametrize("name", ["box", "thin box", "simplex", "turned simplex"])
def test_the_estimate_is_unbiased(name: str) -> None:
    """For a linear loss the mean of d (g·v) v is the part of g along the set."""
    F, inner = SETS[name]
    g, total, n = np.array([1.0, -2.0, 0.5]), np.zeros(3), 4000
    for seed in range(n):
        game = TwoPointGame(FTPRL(F, CoordinateConstant()), step=0.01, lipschitz=5.0, inner=inner, seed=seed)
        v = game.direction
        d = 2 if name != "box" else 3
        total += d * float(g @ v) * v / n
    corners = np.array([F.vertex(h) for h in np.random.default_rng(0).normal(size=(20, 3))])
    differences = corners - corners[0]
    np.testing.assert_allclose(differences @ total, differences @ g, atol=0.25)


def test_the_bounds_hold_in_expectation() -> None:
    """Absolute and quadratic losses: the mean true regret over many draws is below the mean bound, as marked."""
    F, T = Box(-1, 1, dim=2), 60
    targets = np.random.default_rng(3).uniform(-0.8, 0.8, size=(T, 2))
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 81)] * 2), axis=-1).reshape(-1, 2)
    best = min(float(np.abs(targets - u).sum()) for u in grid)
    regrets, bounds = [], []
    for seed in range(60):
        game = TwoPointGame(FTPRL(F, CoordinateConstant(2**0.5)), step=0.02, lipschitz=2**0.5, seed=seed)
        for target in targets:
            game.observe(*(float(np.abs(p - target).sum()) for p in game.points))
        c = game.certificate(best_loss=best)
        regrets.append(c.true_regret)
        bounds.append(c.tight)
    assert np.mean(regrets) < np.mean(bounds)
    assert c.in_expectation
    assert c.ratio is None


def test_the_receipt_says_in_expectation() -> None:
    game = TwoPointGame(FTPRL(Box(-1, 1), Diagonal()), step=0.1, lipschitz=1.0)
    a, b = game.points
    game.observe(float(a[0]), float(b[0]))
    c = game.certificate()
    assert "in expectation" in str(c)
    assert json.loads(json.dumps(c.to_dict()))["in_expectation"] is True
    plain = Game(FTPRL(Box(-1, 1), Diagonal()))
    plain.observe([0.9])  # the slope 1, for a play that is drawn to the centre by a tenth
    assert c.regret == pytest.approx(plain.certificate().regret)
    assert c.bound == pytest.approx(plain.certificate().bound + 0.3)  # T lipschitz step (2 + R/inner)
    assert "0.3 for the distance" in " ".join(str(c).split())
    assert c.true_regret is None
    assert game.certificate(best_loss=-1.0).true_regret == pytest.approx(game.total_loss + 1.0)


def test_the_same_seed_is_the_same_game() -> None:
    games = [TwoPointGame(FTPRL(L2Ball(2), CoordinateConstant()), step=0.1, lipschitz=9.0, seed=s) for s in (1, 1, 2)]
    for _ in range(5):
        for game in games:
            game.observe(*(float((p - 0.4) @ (p - 0.4)) for p in game.points))
    np.testing.assert_array_equal(games[0].x, games[1].x)
    assert np.abs(games[0].x - games[2].x).max() > 1e-6


def test_any_learner() -> None:
    base = FTPRL(Box(-1, 1), Diagonal())
    game = TwoPointGame(StronglyAdaptive(base, limit=4.0), step=0.1, lipschitz=1.0)
    for _ in range(9):
        game.observe(*(abs(float(p[0])) for p in game.points))
    c = game.certificate()
    assert c.regret <= c.tight <= c.bound


LEARNER = FTPRL(Box(-1, 1, dim=2), Diagonal())
REFUSED = {
    "step too long": ({"step": 1.0, "lipschitz": 1.0}, "below the inner radius 1"),
    "step 0": ({"step": 0.0, "lipschitz": 1.0}, "step needs"),
    "no slope": ({"step": 0.1, "lipschitz": -1.0}, "lipschitz needs"),
    "radius too large": ({"step": 0.1, "lipschitz": 1.0, "inner": 1.5}, "1.5 above 1"),
    "centre alone": ({"step": 0.1, "lipschitz": 1.0, "center": [0.0, 0.0]}, "inner="),
    "centre outside": ({"step": 0.1, "lipschitz": 1.0, "center": [3.0, 0.0], "inner": 0.5}, "outside"),
    "seed": ({"step": 0.1, "lipschitz": 1.0, "seed": -1}, "seed needs"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    options, result = REFUSED[name]
    with pytest.raises(FtprlError) as caught:
        TwoPointGame(LEARNER, **options)  # type: ignore[arg-type]
    assert result in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sets_and_losses_that_are_refused() -> None:
    for F in (Box(-np.inf, np.inf), Simplex(3), Box(1.0, 1.0)):
        with pytest.raises(InvalidInput, match="TwoPointGame needs"):
            TwoPointGame(FTPRL(F, Diagonal(widths=1.0)), step=0.1, lipschitz=1.0)
    game = TwoPointGame(LEARNER, step=0.1, lipschitz=1.0)
    for first, second, result in (
        (1.0, 0.0, "slope of at most lipschitz=1, got 5"),
        (np.nan, 0.0, "nan"),
        ("a", 0.0, "'a'"),
    ):
        with pytest.raises(InvalidInput) as caught:
            game.observe(first, second)  # type: ignore[arg-type]
        assert result in str(caught.value)
    assert game.rounds == 0
