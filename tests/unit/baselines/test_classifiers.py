"""Confidence-weighted learning and AROW against their papers' updates, and learners as classifiers."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import ndtri

from ftprl import FTPRL
from ftprl.baselines import Arow, Classifier, ConfidenceWeighted, GradientDescent, LearnerClassifier, Pegasos
from ftprl.errors import InvalidInput
from ftprl.schemes import Diagonal
from ftprl.sets import Box, L2Ball

ALL: dict[str, Classifier[Any]] = {
    "variance": ConfidenceWeighted(3),
    "deviation": ConfidenceWeighted(3, rule="deviation"),
    "arow": Arow(3),
    "full arow": Arow(3, full=True),
    "pegasos": LearnerClassifier(Pegasos.svm(3, 0.05), "hinge"),
    "ftprl": LearnerClassifier(FTPRL(Box(-5, 5, dim=3), Diagonal())),
}


def normal_with_probability(p: float) -> float:
    return float(ndtri(p))


def test_confidence_by_variance_by_hand() -> None:
    # phi = 1 (confidence = the normal probability of 1), mean 0, Sigma = I, v = (1, 0), y = +1: M = 0, V = 1;
    # alpha = (-1 + sqrt(1 + 8))/4 = 1/2; mean (1/2, 0); 1/Sigma_1 = 1 + 2·1/2·1 = 2. Indeed M' = 1/2 = V'.
    phi_is_1 = 0.8413447460685429
    c = ConfidenceWeighted(2, phi_is_1)
    state = c.learn(c.init(), [1.0, 0.0], +1)
    np.testing.assert_allclose(state.mean, [0.5, 0], rtol=1e-9)
    np.testing.assert_allclose(state.variance, [0.5, 1], rtol=1e-9)
    # v = (2, 1), y = -1: M = -1, V = 4/2 + 1 = 3; b = 1 - 2 = -1, alpha = (1 + sqrt(1 + 8·4))/12.
    alpha = (1 + math.sqrt(33)) / 12
    state = c.learn(state, [2.0, 1.0], -1)
    np.testing.assert_allclose(state.mean, [0.5 - alpha, -alpha], rtol=1e-9)
    np.testing.assert_allclose(1 / state.variance, [2 + 8 * alpha, 1 + 2 * alpha], rtol=1e-9)


def test_confidence_by_deviation_by_hand() -> None:
    # phi = 1, M = 0, V = 1: psi = 3/2, zeta = 2: alpha = sqrt(2)/2; sqrt u = (sqrt(1/2 + 4) - sqrt(1/2))/2 = 1/sqrt 2,
    # so mean 1/sqrt 2 and 1/Sigma = 1 + (1/sqrt 2)·sqrt 2 = 2: M' = sqrt(1/2) = sqrt V'.
    c = ConfidenceWeighted(1, 0.8413447460685429, rule="deviation")
    state = c.learn(c.init(), [1.0], -1)
    np.testing.assert_allclose(state.mean, [-math.sqrt(0.5)], rtol=1e-9)
    np.testing.assert_allclose(state.variance, [0.5], rtol=1e-9)


@pytest.mark.parametrize("rule", ["variance", "deviation"])
@pytest.mark.parametrize("y", [-1, 1])
def test_confidence_is_the_nearest_belief(rule: Any, y: int) -> None:
    """In one dimension the update equals a general solver's minimum of the relative entropy under the constraint."""
    c = ConfidenceWeighted(1, 0.9, variance=2.0, rule=rule)
    state = c.learn(c.learn(c.init(), [1.5], 1), [0.5], -1)
    m0, s0, v = float(state.mean[0]), float(state.variance[0]), 0.8
    after = c.learn(state, [v], y)
    phi = normal_with_probability(0.9)

    def entropy(p: Any) -> float:
        return float(0.5 * (math.log(s0 / p[1]) + p[1] / s0 + (p[0] - m0) ** 2 / s0))

    def met(p: Any) -> float:
        spread = p[1] * v * v
        return float(y * v * p[0] - phi * (spread if rule == "variance" else math.sqrt(spread)))

    box = [(-9, 9), (1e-6, 9)]
    actual = minimize(entropy, [y * 2.0, 0.5], bounds=box, constraints={"type": "ineq", "fun": met}, tol=1e-12)
    np.testing.assert_allclose([after.mean[0], after.variance[0]], actual.x, atol=2e-5)


def test_arow_by_hand() -> None:
    # r = 1, v = (1, 2), y = +1: V = 5, beta = 1/6, mean = (1, 2)/6, Sigma = I - v vᵀ/6 (diagonal: 5/6 and 1/3).
    # v = (1, 0), y = -1: margin -1/6; full: Sigma v = (5/6, -1/3), V = 5/6, beta = 6/11, mean -= 7/6·6/11 (5/6, -1/3).
    full, part = Arow(2, full=True), Arow(2)
    a, b = (c.learn(c.init(), [1.0, 2.0], 1) for c in (full, part))
    np.testing.assert_allclose(a.mean, [1 / 6, 1 / 3])
    np.testing.assert_allclose(a.variance, [[5 / 6, -1 / 3], [-1 / 3, 1 / 3]])
    np.testing.assert_allclose(b.mean, a.mean)
    np.testing.assert_allclose(b.variance, [5 / 6, 1 / 3])
    a, b = full.learn(a, [1.0, 0.0], -1), part.learn(b, [1.0, 0.0], -1)
    np.testing.assert_allclose(a.mean, [1 / 6 - 7 / 11 * 5 / 6, 1 / 3 + 7 / 11 / 3])
    np.testing.assert_allclose(b.mean, [1 / 6 - 7 / 11 * 5 / 6, 1 / 3])
    np.testing.assert_allclose(b.variance, [5 / 6 - 6 / 11 * 25 / 36, 1 / 3])
    # A margin of 1 or more changes nothing.
    assert part.learn(b, -10 * b.mean, -1) is b


@pytest.mark.parametrize("rule", ["variance", "deviation"])
def test_labels_that_contradict_each_other_do_no_harm(rule: Any) -> None:
    """One row with either label in turn: the variance shrinks to nothing, and all numbers stay finite."""
    for confidence in (0.51, 0.9, 0.9999):
        c = ConfidenceWeighted(1, confidence, rule=rule)
        state = c.init()
        for t in range(1500):
            state = c.learn(state, [1.0], 1 if t % 2 else -1)
            assert math.isfinite(state.mean[0])
            assert 0 <= state.variance[0] <= 1


ROWS = st.lists(
    st.tuples(st.lists(st.integers(-4, 4), min_size=3, max_size=3), st.sampled_from([-1, 1])), min_size=1, max_size=25
)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.floats(0.1, 10))
def test_full_arow_collects_precision(rows: list[tuple[list[int], int]], r: float) -> None:
    """Sigma⁻¹ = I + (sum of v vᵀ over the rows learned)/r, and rotating the coordinates rotates the result."""
    c = Arow(3, r, full=True)
    R = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    state = turned = c.init()
    precision = np.eye(3)
    for v, y in rows:
        w = np.array(v, dtype=float)
        before = state
        state, turned = c.learn(state, w, y), c.learn(turned, R @ w, y)
        if state is not before:
            precision += np.outer(w, w) / r
    np.testing.assert_allclose(state.variance @ precision, np.eye(3), atol=1e-8)
    if all(abs(1 - y * float(state.mean @ v)) > 1e-6 for v, y in rows):
        np.testing.assert_allclose(turned.mean, R @ state.mean, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(["variance", "deviation"]))
def test_confidence_meets_its_constraint_and_only_grows(rows: list[tuple[list[int], int]], rule: Any) -> None:
    """With a single feature per row the diagonal is exact, so the constraint holds after the update."""
    c, phi = ConfidenceWeighted(3, 0.9, rule=rule), normal_with_probability(0.9)
    state = c.init()
    for v, y in rows:
        w = np.array(v, dtype=float) * (np.arange(3) == v[0] % 3)
        after = c.learn(state, w, y)
        assert np.all(after.variance <= state.variance)
        assert np.all(after.variance > 0)
        V = float(after.variance @ (w * w))
        want = phi * (V if rule == "variance" else math.sqrt(V))
        assert y * float(after.mean @ w) >= want - 1e-8 * (1 + abs(want))
        state = after


@pytest.mark.parametrize("name", ALL)
def test_they_separate_what_can_be_separated(name: str, rng: np.random.Generator) -> None:
    c = ALL[name]
    rows = rng.normal(size=(600, 3))
    rows = rows[np.abs(rows @ [1.0, -2.0, 0.5]) > 0.4]
    labels = np.sign(rows @ [1.0, -2.0, 0.5])
    state, wrong = c.init(), []
    for v, y in zip(rows, labels, strict=True):
        wrong.append(y * c.score(state, v) <= 0)
        state = c.learn(state, v, float(y))
    assert np.mean(wrong[100:]) < 0.05


@pytest.mark.parametrize("name", ALL)
def test_they_are_pure_and_ignore_empty_rows(name: str) -> None:
    c = ALL[name]
    state = c.learn(c.init(), [1.0, 0.5, 0.0], 1)
    w = c.weights(state).copy()
    c.learn(state, [0.0, 1.0, -3.0], -1)
    np.testing.assert_array_equal(c.weights(state), w)
    if name != "pegasos":  # whose weights shrink in every round
        np.testing.assert_array_equal(c.weights(c.learn(state, [0.0, 0.0, 0.0], 1)), w)


@pytest.mark.parametrize("name", ALL)
def test_they_refuse_bad_rows(name: str) -> None:
    c = ALL[name]
    for y in (0, 2, math.nan):
        with pytest.raises(InvalidInput, match=r"y needs a label of \+1 or -1, got .*; code"):
            c.learn(c.init(), [1.0, 0.0, 0.0], y)
    with pytest.raises(InvalidInput, match=r"v needs a vector of length 3.*; "):
        c.learn(c.init(), [1.0], 1)
    with pytest.raises(InvalidInput, match=r"v needs finite.*; "):
        c.score(c.init(), [1.0, math.inf, 0.0])


def test_bad_settings() -> None:
    for bad in (0.5, 1.0, 0.0, math.nan):
        with pytest.raises(InvalidInput, match=r"confidence needs.*; "):
            ConfidenceWeighted(2, bad)
    with pytest.raises(InvalidInput, match=r"variance needs.*; "):
        ConfidenceWeighted(2, variance=0.0)
    with pytest.raises(InvalidInput, match=r"rule needs 'variance' or 'deviation', got 'mean'; "):
        ConfidenceWeighted(2, rule="mean")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"r needs.*; "):
        Arow(2, 0.0)
    with pytest.raises(InvalidInput, match=r"dim needs.*; "):
        Arow(0)
    with pytest.raises(InvalidInput, match=r"loss needs one for labels ±1, got 'squared'; use one of logistic"):
        LearnerClassifier(GradientDescent(L2Ball(2)), "squared")


def test_a_learner_sees_the_slope_of_its_loss() -> None:
    # logistic at score 0: slope -y/2, so a rate of 1 moves the weights by v/2.
    c = LearnerClassifier(GradientDescent(Box(-9, 9, dim=2), 1.0))
    np.testing.assert_allclose(c.weights(c.learn(c.init(), [2.0, -4.0], 1)), [1.0, -2.0])
