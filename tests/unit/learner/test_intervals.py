"""Copies of a learner: the intervals that they play, and errors."""

import numpy as np
import pytest

from ftprl import FTPRL, Composite, Game, StronglyAdaptive, play
from ftprl.errors import InvalidInput, Unsupported
from ftprl.schemes import Diagonal
from ftprl.sets import Box

BASE = FTPRL(Box(-1, 1), Diagonal())


def test_copies_begin_and_end() -> None:
    learner = StronglyAdaptive(BASE, limit=2.0)
    state = learner.init()
    seen = []
    for _ in range(7):
        seen.append({(copy.start, copy.end) for copy in state.copies})
        state = learner.update(state, [1.0])
    assert seen[0] == {(1, 1)}
    assert seen[1] == {(2, 2), (2, 3)}
    assert seen[3] == {(4, 4), (4, 5), (4, 7)}
    assert seen[6] == {(7, 7), (6, 7), (4, 7)}
    ended = [(part.start, part.end) for part in learner.intervals(state)]
    assert ended[:3] == [(1, 1), (2, 2), (3, 3)] or set(ended[:4]) == {(1, 1), (2, 2), (2, 3), (3, 3)}
    assert {(4, 7), (6, 7), (7, 7)} <= set(ended)


def test_an_interval_is_made_of_few() -> None:
    learner = StronglyAdaptive(BASE, limit=2.0)
    game = play(learner, np.random.default_rng(0).normal(size=(100, 1)) * 0.3)
    part = learner.interval(game.state, 16, 31)  # type: ignore[arg-type]
    assert part.exact
    whole = learner.interval(game.state, 3, 97)  # type: ignore[arg-type]
    assert not whole.exact
    assert (whole.start, whole.end) == (3, 97)


def test_what_is_refused() -> None:
    game = Game(StronglyAdaptive(BASE, limit=0.1))
    game.observe([0.01])
    game.observe([0.01])
    with pytest.raises(InvalidInput, match=r"limit=0\.1, got .*; raise"):
        game.observe([5.0])
    assert game.rounds == 2
    learner = game.learner
    assert isinstance(learner, StronglyAdaptive)
    for a, b in ((0, 1), (2, 1), (1, 3)):
        with pytest.raises(InvalidInput, match="rounds 1 <= start"):
            learner.interval(game.state, a, b)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="limit"):
        StronglyAdaptive(BASE, limit=0.0)
    with pytest.raises(InvalidInput, match="Learner"):
        StronglyAdaptive(3, limit=1.0)  # type: ignore[arg-type]
    with pytest.raises(Unsupported, match="per_round=False"):
        StronglyAdaptive(FTPRL(Box(-1, 1), Diagonal(), composite=Composite(l1=1.0, per_round=True)), limit=1.0)
    with pytest.raises(Unsupported, match="hints"):
        Game(StronglyAdaptive(BASE, limit=1.0), hint=[1.0])


def test_nothing_played() -> None:
    c = Game(StronglyAdaptive(BASE, limit=1.0)).certificate()
    assert c.regret == c.tight == c.bound == 0.0
