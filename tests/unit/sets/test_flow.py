"""Flows through networks without cycles."""

import numpy as np
import pytest

from ftprl import FTPRL, Composite, play
from ftprl.schemes import Diagonal
from ftprl.sets import FlowPolytope

DIAMOND = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t")]


def test_by_hand() -> None:
    F = FlowPolytope(DIAMOND, "s", "t")
    assert F.dim == 5
    np.testing.assert_array_equal(F.vertex(np.array([1.0, 5.0, -2.0, 1.0, 1.0])), [1, 0, 1, 0, 1])
    np.testing.assert_allclose(F.start(), [2 / 3, 1 / 3, 1 / 3, 1 / 3, 2 / 3])
    np.testing.assert_array_equal(F.widths(), np.ones(5))
    assert F.diameter() == 2.0  # s-a-t and s-b-t share nothing


def test_edges_of_no_path_and_of_all_paths() -> None:
    F = FlowPolytope([*DIAMOND, ("t", "u"), ("a", "dead"), ("x", "a"), ("u", "v")], "s", "u")
    np.testing.assert_array_equal(F.widths(), [1, 1, 1, 1, 1, 0, 0, 0, 0])
    low, high = F.bounds()
    np.testing.assert_array_equal(low, [0, 0, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(high, [1, 1, 1, 1, 1, 1, 0, 0, 0])
    assert F.contains(F.start(), 1e-15)
    leaking = F.start()
    leaking[6] = 0.1
    assert not F.contains(leaking)
    c = play(FTPRL(F, Diagonal(center=True)), np.random.default_rng(0).normal(size=(30, 9))).certificate()
    assert c.regret <= c.tight <= c.bound <= c.theorem


def test_one_path_and_parallel_edges() -> None:
    alone = FlowPolytope([(0, 1), (1, 2)], 0, 2)
    assert alone.diameter() == 0.0
    np.testing.assert_array_equal(alone.start(), [1.0, 1.0])
    assert play(FTPRL(alone, Diagonal()), [[1.0, 2.0]]).certificate().regret == 0.0
    double = FlowPolytope([(0, 1), (0, 1)], 0, 1)
    np.testing.assert_array_equal(double.vertex(np.array([2.0, 1.0])), [0.0, 1.0])
    assert double.diameter() == pytest.approx(2**0.5)


def test_paths_beyond_the_range_of_floats() -> None:
    """2^2000 paths are counted as integers."""
    edges = [(k, k + 1) for k in range(2000) for _ in range(2)]
    F = FlowPolytope(edges, 0, 2000)
    np.testing.assert_array_equal(F.start(), np.full(4000, 0.5))
    assert F.vertex(np.ones(4000)).sum() == 2000


def test_an_l1_term_is_a_cost_of_every_edge() -> None:
    F, z = FlowPolytope(DIAMOND, "s", "t"), np.array([0.0, 1.0, 0.0, 0.3, 0.0])
    actual = F.minimise_l1(np.array(0.1), z, 5.0, F.start())
    np.testing.assert_allclose(actual.x, F.argmin(np.array(0.1), z + 5.0, F.start()))
    learner = FTPRL(F, Diagonal(), composite=Composite(l1=10.0))
    assert play(learner, np.full((5, 5), 0.01)).x[2] == 0.0, "the path of three edges is not used"


def test_a_drawn_path_follows_the_flow() -> None:
    F = FlowPolytope(DIAMOND, "s", "t")
    x = F.vertex(np.array([1.0, 5.0, -2.0, 1.0, 1.0]))
    assert F.sample(x, np.random.default_rng(0)) == [0, 2, 4]
