"""SOLO FTRL and coin betting against computations by hand, and their errors."""

import numpy as np
import pytest

from ftprl import CoinBetting, Game, SoloFTRL, play
from ftprl.errors import InvalidInput, Unsupported
from ftprl.sets import Box, Simplex

OPEN = Box(-np.inf, np.inf, dim=2)


def test_solo_by_hand() -> None:
    game = play(SoloFTRL(OPEN, scale=2.0), [[3.0, 4.0]])
    np.testing.assert_allclose(game.x, [-1.2, -1.6])
    c = game.certificate(comparator=[1.0, 0.0])
    assert c.regret == -3.0
    # r = 5/2 · 1/2, the loss is 0, the minimum of 3x + 4y + (5/2)/2 |x|² is -5
    assert c.tight == pytest.approx(1.25 + 5.0)
    assert c.bound == pytest.approx(5 * (1 / 4 + 5.5))
    apart = play(SoloFTRL(OPEN, per_coordinate=True), [[3.0, 0.0]])
    np.testing.assert_array_equal(apart.x, [-1.0, 0.0])
    assert apart.certificate(comparator=[0.0, 9.0]).bound == pytest.approx(2.75 * 3)


def test_without_a_comparator_nothing_is_bounded() -> None:
    for learner in (SoloFTRL(OPEN), CoinBetting(2)):
        c = play(learner, [[0.5, 0.5]]).certificate()
        assert c.to_dict()["regret"] is None
        assert c.to_dict()["bound"] is None
        assert "certificate(comparator=x)" in str(c)


def test_coin_betting_by_hand() -> None:
    game = Game(CoinBetting(1, limit=2.0, wealth=3.0, start=[1.0]))
    game.observe([-2.0])  # the first bet is nothing
    np.testing.assert_allclose(game.x, [1 + 0.5 * 3.0 / 2.0])
    game.observe([-2.0])  # wins 2 · 0.75
    np.testing.assert_allclose(game.x, [1 + (2 / 3) * 4.5 / 2.0])
    c = game.certificate(comparator=[1.0])
    assert c.regret == pytest.approx(-1.5)
    assert c.bound == pytest.approx(3.0)
    assert c.tight == pytest.approx(-1.5), "coins of size 1: the wealth is the potential"


def test_the_mean_play_finds_a_far_minimum() -> None:
    """With |x - 300| as loss and no range given, the mean of the plays approaches 300."""
    game, total = Game(CoinBetting(1)), 0.0
    for _ in range(3000):
        total += game.x[0] / 3000
        game.observe(np.sign(game.x - 300.0))
    assert abs(total - 300) < 30


@pytest.mark.parametrize("learner", [SoloFTRL(OPEN), CoinBetting(2)], ids=["solo", "betting"])
def test_hints_are_refused(learner: SoloFTRL | CoinBetting) -> None:
    with pytest.raises(Unsupported, match="without hints"):
        Game(learner, hint=[1.0, 0.0])
    game = Game(learner)
    with pytest.raises(Unsupported, match="without hints"):
        game.observe([1.0, 0.0], hint=[1.0, 0.0])
    assert game.rounds == 0


def test_what_is_refused() -> None:
    game = Game(CoinBetting(2))
    with pytest.raises(InvalidInput, match=r"limit=1, got 1\.5; raise"):
        game.observe([0.0, -1.5])
    assert game.rounds == 0
    with pytest.raises(Unsupported, match="Box"):
        SoloFTRL(Simplex(2), per_coordinate=True)
    for bad in (lambda: SoloFTRL(OPEN, scale=0.0), lambda: CoinBetting(0), lambda: CoinBetting(1, limit=-1.0)):
        with pytest.raises(InvalidInput):
            bad()


def test_a_wealth_beyond_floats_is_refused() -> None:
    learner = CoinBetting(1)
    with pytest.raises(InvalidInput, match="below 1e200"):
        play(learner, np.full((3000, 1), -1.0))
