"""CentredBestBound: its plays, its bounds, and its errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import FTPRL, Composite, Game, InvalidInput, Unsupported, best_bound
from ftprl.schemes import CentredBestBound
from ftprl.sets import Box, ConvexSet, Ellipsoid, L2Ball, LpBall, Simplex

SETS: dict[str, ConvexSet] = {
    "box": Box([-1.0, 2.0, -3.0], [1.0, 5.0, 3.0]),
    "l2": L2Ball(3, 2.0, [1.0, 0.0, -1.0]),
    "l4": LpBall(3, 4),
    "l1.5": LpBall(3, 1.5, 0.1),
    "ellipsoid": Ellipsoid(np.diag([1.0, 2.0, 5.0])),
}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(SETS)), st.floats(-8, 8))
def test_the_chain_and_the_closed_form(seed: int, name: str, decades: float) -> None:
    """regret <= tight <= bound <= theorem <= worst case, and bound <= 2^{1/4}/2 OPT(G + limits²)."""
    F, rng = SETS[name], np.random.default_rng(seed)
    limits = 10.0**decades * rng.uniform(0.5, 2, 3)
    game, rows = Game(FTPRL(F, CentredBestBound(limits))), []
    for _ in range(25):
        rows.append(np.clip(10.0**decades * (rng.normal(size=3) + 0.4), -limits, limits))
        game.observe(rows[-1])
        assert F.contains(game.x, 1e-14)
    c = game.certificate()
    links = [c.regret, c.tight, c.bound, c.theorem, c.worst_case]
    assert all(a is not None and b is not None and a <= b * (1 + 1e-13) for a, b in itertools.pairwise(links))
    best = best_bound(F, "diagonal", np.square(rows).sum(axis=0) + limits**2)
    assert best is not None
    assert c.bound is not None
    assert c.bound <= 2**0.25 / 2 * best.value * (1 + 1e-9)
    assert c.closed_form_strong == pytest.approx(2**0.25 / 2 * best.value, rel=1e-9)


def test_plays_are_those_of_dual_averaging() -> None:
    """clip(x_1 - g_{1:t}/P_t) on a box: intermediate plays do not matter."""
    F = SETS["box"]
    assert isinstance(F, Box)
    rows = np.clip(np.random.default_rng(0).normal(size=(20, 3)), -2, 2)
    game = Game(FTPRL(F, CentredBestBound(2.0)))
    for t, g in enumerate(rows):
        game.observe(g)
        G = np.square(rows[: t + 1]).sum(axis=0) + 4.0
        want = F.start() - rows[: t + 1].sum(axis=0) * F.widths() / (2 * 2**0.25 * np.sqrt(2 * G))
        np.testing.assert_allclose(game.x, np.clip(want, F.lower, F.upper), atol=1e-12)


def test_what_it_refuses() -> None:
    """It refuses asymmetric sets, other centres, hints, penalties, and gradients beyond the limits."""
    with pytest.raises(Unsupported, match="symmetric about its start"):
        FTPRL(Simplex(3), CentredBestBound(1.0)).init()
    for wrong in ({"start": [0.0, 0.0, 0.0]}, {"composite": Composite(l2=1.0)}):
        with pytest.raises(Unsupported, match="centred at the set's own start"):
            FTPRL(LpBall(3, 4), CentredBestBound(1.0), **wrong)
    learner = FTPRL(LpBall(3, 4), CentredBestBound(1.0))
    with pytest.raises(Unsupported, match="takes no hints"):
        learner.update(learner.init(), np.zeros(3), hint=np.ones(3))
    with pytest.raises(InvalidInput, match="limits needs at least 2 for coordinate 1, got 1"):
        learner.update(learner.init(), [0.0, 2.0, 0.0])
    with pytest.raises(InvalidInput, match="limits needs numbers above 0"):
        CentredBestBound([1.0, 0.0])
