"""Helpers of the experiments, each against an independent computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import FTPRL, Game, best_bound
from ftprl.paper.algorithm_1 import algorithm
from ftprl.paper.coordinate_constant import best_constant
from ftprl.paper.diagonal import best_diagonal, worst_case
from ftprl.paper.diagonal_tightness import game, measured, regret_over_products, searched
from ftprl.paper.finite import Table
from ftprl.paper.instances import KINDS, Kind, answers, metric, play, ratio, sets, slope, spread_rounds, stream
from ftprl.paper.lemma_contraction import shrink
from ftprl.paper.lemma_projection import nearest
from ftprl.paper.shapes import shapes
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box

SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_history_is_the_certificate(kind: Kind) -> None:
    """Recorded rounds, added up again, equal the ledger's running sums."""
    for name, F in sets().items():
        for scheme in (Diagonal(), CoordinateConstant()):
            history = play(FTPRL(F, scheme), stream(kind, F, 15, 3))
            kept = Game(FTPRL(F, scheme))
            for oracle in stream(kind, F, 15, 3):
                kept.observe(oracle(kept.x))
            made = kept.certificate(comparator=history.best())
            stability = sum(history.lengths())
            gaps = kept.ledger.solver_slack  # the certificate also counts what inexact steps may cost
            slack = 1e-9 * (1 + made.worst_case)
            assert history.regret() == pytest.approx(made.regret, abs=slack), name
            assert history.r(history.best()) + stability == pytest.approx(made.theorem - gaps, abs=slack)
            assert history.penalty() + stability == pytest.approx(made.worst_case - gaps, abs=slack)
            assert history.until(15).regret() == history.regret()


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_the_search_writes_the_learner_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gs, start = rng.normal(size=int(rng.integers(1, 9))), float(rng.uniform(-0.5, 0.5))
    history = game(gs, start)
    assert history.regret() / history.products() == pytest.approx(regret_over_products(gs, start), abs=1e-9)
    assert best_diagonal(history) == pytest.approx(math.sqrt(2) * history.products(), rel=1e-9)


@pytest.mark.parametrize("T", [2, 5, 17])
def test_the_search_improves_on_neighbours(T: int) -> None:
    """No small change of the found gradients has a larger ratio."""
    gs, rng = searched(T), np.random.default_rng(T)
    best = measured(gs)
    for _ in range(10):
        assert measured(gs * np.exp(0.05 * rng.normal(size=T))) <= best + 1e-9


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(1e-6, 1e6))
def test_best_constant_is_the_formula(D: float, G: float) -> None:
    assert best_constant(D, G) == pytest.approx(D * math.sqrt(2 * G), rel=1e-9)


def test_best_diagonal_is_the_post_hoc_optimum() -> None:
    F = Box([-1.0, 0.0, 2.0], [1.0, 0.5, 2.0])
    history = play(FTPRL(F, Diagonal()), stream("leaning", F, 20, 1))
    G = np.square(history.g).sum(axis=0)
    best = best_bound(F, "diagonal", G)
    assert best_diagonal(history) == pytest.approx(best.value, rel=1e-9)
    assert worst_case(history) <= math.sqrt(2) * best.value


def test_printed_and_corrected_differ_by_a_sign() -> None:
    gs, half = np.array([[1.0], [1.0]]), np.array([0.5])
    assert algorithm(gs, half, sign=1.0, careful=False).x[1] == 0.5
    assert algorithm(gs, half, sign=-1.0, careful=True).x[1] == -0.5


def test_nearest_is_the_clip_on_a_box() -> None:
    F, u = Box([-1.0, -0.5], [1.0, 0.5]), np.array([2.0, -0.2])
    np.testing.assert_allclose(nearest(F, np.array([1.0, 5.0]), u), [1.0, -0.2], atol=1e-7)


def test_gammas_lie_between_one_and_their_limits() -> None:
    for shape in shapes(False):
        assert 1 - 1e-9 <= shape.gamma <= min(shape.feasible.dim, shape.beta**2) * (1 + 1e-9)
        assert shape.ratio(np.ones(shape.feasible.dim)) <= math.sqrt(2 * shape.gamma) * (1 + 1e-6)


def test_metrics_are_positive_definite_of_each_kind() -> None:
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(30):
        Q = metric(3, rng)
        seen.add(Q.ndim)
        assert np.all((np.linalg.eigvalsh(Q) if Q.ndim == 2 else Q) > 0)
    assert seen == {0, 1, 2}


def test_small_helpers() -> None:
    assert slope([1, 10, 100], [2, 20, 200]) == pytest.approx(1.0)
    assert spread_rounds(100)[0] == 1
    assert spread_rounds(100)[-1] == 100
    assert ratio(1.0, 2.0) == 0.5
    assert ratio(-1.0, 0.0) == 0.0
    assert ratio(1.0, 0.0) == math.inf
    assert shrink(np.array(2.0), np.array([2.0]), np.array([1.0])) == pytest.approx(0.5)
    table = Table(np.array([[3.0, 1.0], [0.0, 1.0]]), np.zeros((2, 2)))
    assert table.best == 1
    assert table.after().tolist() == [1, 1]
    assert [oracle(np.zeros(1))[0] for oracle in answers([[1.0], [2.0]])] == [1.0, 2.0]
