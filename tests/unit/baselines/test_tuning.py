"""The best constant: it is found, the grid is widened, and an edge is reported."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import play
from ftprl.baselines import GradientDescent, best_constant
from ftprl.errors import InvalidInput
from ftprl.sets import Box


@given(st.floats(-9, 9), st.floats(1.5, 4))
def test_it_is_the_least_of_all_that_were_tried_and_inside(target: float, ratio: float) -> None:
    grid = [ratio**k for k in range(-2, 3)]
    best = best_constant(float, grid, lambda c: (math.log(c) - target) ** 2, widen=60)
    assert not best.at_edge
    assert best.cost == min(best.tried.values()) == best.tried[best.constant]
    assert abs(math.log(best.constant) - target) <= math.log(ratio) / 2 + 1e-9
    assert list(best.tried) == sorted(best.tried)


def test_an_edge_that_cannot_be_left_is_reported() -> None:
    down = best_constant(float, [1.0, 10.0], lambda c: c, widen=3)
    assert down.at_edge
    assert down.constant == pytest.approx(1e-3)
    assert len(down.tried) == 5
    assert "at the edge of the grid" in str(down)
    assert "edge" not in str(best_constant(float, [1.0, 2.0, 4.0], lambda c: (c - 2) ** 2))
    still = best_constant(float, [1.0, 2.0], lambda c: -c, widen=0)
    assert still.at_edge
    assert still.constant == 2.0


def test_what_is_not_a_number_never_wins() -> None:
    best = best_constant(float, [1.0, 2.0, 4.0], lambda c: math.nan if c != 2.0 else 5.0)
    assert best.constant == 2.0
    assert best.tried[1.0] == math.inf


def test_it_runs_a_learner() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 1)) + 0.1
    box = Box(-1, 1, dim=1)
    best = best_constant(
        lambda rate: GradientDescent(box, rate),
        [0.01, 0.1, 1.0],
        lambda learner: play(learner, rows).certificate().regret,
    )
    assert not best.at_edge
    assert best.cost < play(GradientDescent(box, 10.0), rows).certificate().regret


@pytest.mark.parametrize("grid", [[], [1.0], [1.0, 1.0], [1.0, 2.0, 2.0]])
def test_a_grid_needs_two_constants(grid: list[float]) -> None:
    with pytest.raises(InvalidInput, match=r"grid needs at least two different constants, got .*; "):
        best_constant(float, grid, float)


def test_constants_are_above_zero() -> None:
    with pytest.raises(InvalidInput, match=r"grid\[1\] needs a finite number above 0, got -2.0; "):
        best_constant(float, [1.0, -2.0], float)


def test_refining_looks_between_the_neighbours() -> None:
    coarse = best_constant(float, [1.0, 4.0, 16.0], lambda c: abs(math.log(c / 7.0)))
    assert coarse.constant == 4.0
    fine = best_constant(float, [1.0, 4.0, 16.0], lambda c: abs(math.log(c / 7.0)), refine=2)
    assert list(fine.tried) == pytest.approx([1.0, 2.0, 4.0, 32**0.5, 8.0, 128**0.5, 16.0])
    assert fine.constant == pytest.approx(8.0)
    assert not fine.at_edge
    edge = best_constant(float, [1.0, 2.0], lambda c: c, widen=1, refine=3)
    assert list(edge.tried) == [0.5, 1.0, 2.0]
