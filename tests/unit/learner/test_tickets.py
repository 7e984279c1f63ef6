"""Tickets of a game: their counts and errors."""

import json

import numpy as np
import pytest

from ftprl import FTPRL, Composite, Game
from ftprl.errors import InvalidInput, Unsupported
from ftprl.schemes import Diagonal
from ftprl.sets import Box


def game() -> Game:
    return Game(FTPRL(Box(-1, 1, dim=2), Diagonal()))


def test_counts_by_hand() -> None:
    g = game()
    (a, x), (b, y), (c, _) = g.play(), g.play(), g.play()
    np.testing.assert_array_equal(x, y)
    g.observe([1.0, 0.0], ticket=b)
    g.observe([0.0, 1.0])  # a round of this moment, while two others are open
    g.observe([1.0, 1.0], ticket=a)
    g.drop(c)
    made = g.certificate().delays
    assert made is not None
    assert (made.open, made.dropped, made.late, made.total, made.longest) == (0, 1, 1, 2, 2)
    # b was played at 0, its gradient came at 0; the second play at (-1, 0) had its gradient at once; a was played at 0,
    # its gradient came at (-1, -1)
    assert made.cost == pytest.approx(2.0)
    assert g.rounds == 3


def test_the_receipt_shows_the_delays() -> None:
    g = game()
    (a, _), (b, _) = g.play(), g.play()
    g.observe([1.0, -1.0], ticket=b)
    assert "1 plays without a gradient" in str(g.certificate())
    g.observe([1.0, -1.0], ticket=a)
    made = g.certificate()
    assert "bound with delays" in str(made)
    assert "1 of 2 gradients arrived late" in str(made)
    assert json.loads(json.dumps(made.to_dict()))["delays"]["longest"] == 1
    assert made.ratio is None
    assert "delays" not in game().certificate().to_dict()


def test_memory_ends_with_the_oldest_play() -> None:
    """Plays are kept from the oldest open one on; dropping it releases them."""
    g = game()
    lost, _ = g.play()
    for _ in range(20):
        g.observe([0.5, -0.5])
    before = g.certificate()
    g.drop(lost)
    after = g.certificate()
    assert after.regret == before.regret
    assert after.bound == pytest.approx(before.bound)
    g.observe([1.0, 1.0])
    assert g.rounds == 21


def test_history_counts_delays() -> None:
    g = Game(FTPRL(Box(-1, 1), Diagonal()), history=True)
    a, _ = g.play()
    g.observe([1.0])
    g.observe([1.0], ticket=a)
    made = g.certificate()
    assert made.history is not None
    assert made.history.series["regret"][-1] == made.regret


@pytest.mark.parametrize("bad", [7, -1, "0", 0.5, True, None])
def test_unknown_tickets(bad: object) -> None:
    g = game()
    a, _ = g.play()
    g.observe([1.0, 0.0], ticket=a)
    if bad is None:
        bad = a  # used
    for call in (lambda: g.observe([1.0, 0.0], ticket=bad), lambda: g.drop(bad)):  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="ticket needs one") as caught:
            call()
        assert "\n" not in str(caught.value)
    assert g.rounds == 1


def test_a_refused_gradient_changes_nothing() -> None:
    g = game()
    a, _ = g.play()
    for ticket in (None, a):
        with pytest.raises(InvalidInput, match="nan"):
            g.observe([np.nan, 0.0], ticket=ticket)
    assert g.rounds == 0
    g.observe([1.0, 0.0], ticket=a)
    assert g.certificate().delays.open == 0  # type: ignore[union-attr]


def test_hints_and_composites_are_refused() -> None:
    g = game()
    g.play()
    with pytest.raises(InvalidInput, match="without hints"):
        g.observe([1.0, 0.0], hint=[1.0, 0.0])
    hinted = game()
    hinted.observe([1.0, 0.0], hint=[1.0, 0.0])
    with pytest.raises(InvalidInput, match="without hints"):
        hinted.play()
    penalised = Game(FTPRL(Box(-1, 1), Diagonal(), composite=Composite(l1=0.1, per_round=True)))
    with pytest.raises(Unsupported, match="per_round=False"):
        penalised.play()
    once = Game(FTPRL(Box(-1, 1), Diagonal(), composite=Composite(l1=0.1)))
    a, _ = once.play()
    once.observe([1.0])
    once.observe([1.0], ticket=a)
    made = once.certificate()
    assert made.regret <= made.tight <= made.bound
