"""Laws of related work: equal algorithms, invariances, and the regret bounds of their papers."""

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.baselines import (
    AdaGrad,
    AdaGradDual,
    AdaptiveDescent,
    DualAveraging,
    ExponentiatedGradient,
    Fobos,
    GradientDescent,
    LazyDescent,
    OnlineNewtonStep,
    Pegasos,
    PerCoordinateDescent,
    PerturbedLeader,
    ProximalDescent,
    RestartedDescent,
)
from ftprl.learner import Learner
from ftprl.sets import Box, L2Ball, Simplex

CUBE = Box(-1, 1, dim=2)


def plays(learner: Learner[Any], rows: Any) -> list[np.ndarray]:
    """x_1, ..., x_{T+1}."""
    state = learner.init()
    points = [state.x]
    for g in rows:
        state = learner.update(state, g)
        points.append(state.x)
    return points


STREAMS = st.lists(
    st.tuples(*(2 * [st.floats(-3, 3).map(lambda v: 0.0 if abs(v) < 1e-6 else v)])), min_size=1, max_size=40
).map(np.array)


@settings(max_examples=40, deadline=None)
@given(STREAMS)
def test_equalities_between_them(rows: np.ndarray) -> None:
    """Algorithms that their papers state to be equal, or special cases of each other."""
    same = np.testing.assert_allclose
    same(plays(Fobos(CUBE, 0.3), rows), plays(GradientDescent(CUBE, 0.3), rows), atol=1e-12)
    # A box: the rates of Streeter and McMahan are AdaGrad's with a rate of each width.
    box = Box([-1, -0.25], [1, 0.25])
    rates = np.array([2.0, 0.5]) / math.sqrt(2)
    same(plays(PerCoordinateDescent(box), rows), plays(AdaGrad(box, rates), rows), atol=1e-9)
    # Lazy projection with a fixed rate is the leader with a fixed square at the start.
    state, u = LazyDescent(L2Ball(2), 0.3).init(), -0.3 * np.cumsum(rows, axis=0)
    for g, target in zip(rows, u, strict=True):
        state = LazyDescent(L2Ball(2), 0.3).update(state, g)
        same(state.x, target / max(1.0, np.linalg.norm(target)), atol=1e-9)
    # A diagonal stream: full AdaGrad is the diagonal one.
    axis = rows * np.array([[1, 0], [0, 1]])[np.arange(len(rows)) % 2]
    same(plays(AdaGrad(CUBE, 0.4, full=True), axis), plays(AdaGrad(CUBE, 0.4), axis), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(STREAMS, st.floats(0.01, 100))
def test_scale_of_the_losses_is_immaterial(rows: np.ndarray, s: float) -> None:
    """The untuned rates of these algorithms do not depend on the unit of the loss."""
    for make in (LazyDescent, AdaptiveDescent, ProximalDescent, PerCoordinateDescent, AdaGradDual):
        np.testing.assert_allclose(plays(make(CUBE), s * rows), plays(make(CUBE), rows), atol=1e-9)
    simplex = Simplex(2)
    np.testing.assert_allclose(
        plays(ExponentiatedGradient(simplex), s * rows), plays(ExponentiatedGradient(simplex), rows), atol=1e-9
    )


@settings(max_examples=60, deadline=None)
@given(STREAMS)
def test_regret_bounds_of_their_papers(rows: np.ndarray) -> None:
    T, norms = len(rows), np.linalg.norm(rows, axis=1)
    slack = 1e-9 * (1 + norms.sum())

    def regret(learner: Learner[Any], rows: np.ndarray = rows) -> float:
        points = np.array(plays(learner, rows)[:-1])
        S = rows.sum(axis=0)
        return float((points * rows).sum() - S @ learner.feasible.vertex(S))

    D = CUBE.diameter()
    eta, half = 0.2, 0.5 * D * D / 4  # ½ |x - x_1|² with x_1 in the middle
    assert regret(LazyDescent(CUBE, eta)) <= half / eta + eta * float(norms @ norms) + slack
    adaptive = AdaptiveDescent(CUBE)
    state = adaptive.init()
    for g in rows:
        state = adaptive.update(state, g)
    assert regret(adaptive) <= 3 * D * D * state.weight + slack
    proximal = ProximalDescent(CUBE)
    weights = [proximal.init()]
    for g in rows:
        weights.append(proximal.update(weights[-1], g))
    held = np.array([state.weight for state in weights[1:]])
    least = float(np.linalg.norm(norms))
    assert regret(proximal) <= D * D * held[-1] + slack
    assert D * D * held[-1] <= math.sqrt(2) * D * least + slack
    for own in (np.full(T, least / D), np.sqrt(2 * np.cumsum(norms**2)) / D, np.linspace(0.1, 3, T) * least / D):
        price = np.divide(norms**2, own, out=np.zeros(T), where=norms > 0).sum()
        assert D * D * held[-1] <= 2 * (D * D * own[-1] + price) / 2 + slack  # any tau_1, ..., tau_T with these sums
    assert regret(RestartedDescent(CUBE)) <= 2 / (math.sqrt(2) - 1) * D * least + slack
    G = np.sqrt((rows**2).sum(axis=0))
    assert regret(PerCoordinateDescent(CUBE)) <= math.sqrt(2) * 2 * G.sum() + slack
    gamma, most = 1.3, float(norms.max())
    assert regret(DualAveraging(CUBE, gamma)) <= (gamma * half + most**2 / gamma) * math.sqrt(T) + slack
    delta = float(np.abs(rows).max())
    dual = regret(AdaGradDual(CUBE, 0.7, delta=delta))
    assert dual <= (delta * 2 + G.sum()) / (2 * 0.7) + 0.7 * G.sum() + slack
    spread = float((np.ptp(rows, axis=1) ** 2).sum())
    share = regret(ExponentiatedGradient(Simplex(2), 0.4))
    assert share <= math.log(2) / 0.4 + 0.4 / 8 * spread + slack
    assert regret(ExponentiatedGradient(Simplex(2))) <= math.sqrt(2 * math.log(2) * spread) + math.sqrt(spread) + slack


@settings(max_examples=40, deadline=None)
@given(STREAMS)
def test_pegasos_is_logarithmic_with_its_penalty(rows: np.ndarray) -> None:
    l2, T = 0.5, len(rows)
    points = np.array(plays(Pegasos(CUBE, l2), rows)[:-1])
    S = rows.sum(axis=0)
    best = np.clip(-S / (l2 * T), -1, 1)
    total = float((points * rows).sum() + 0.5 * l2 * (points**2).sum())
    most = float(np.linalg.norm(rows + l2 * points, axis=1).max())
    least = float(S @ best) + 0.5 * l2 * T * float(best @ best)
    assert total - least <= most**2 * (1 + math.log(T)) / (2 * l2) + 1e-9


def test_newton_is_logarithmic_on_portfolios() -> None:
    """Losses -log(x·r) with r in [1/2, 2]: 1-exp-concave, and |g| <= 2 sqrt 3/0.5 on the simplex."""
    rng = np.random.default_rng(20100)
    F, T = Simplex(3), 300
    R = rng.uniform(0.5, 2.0, size=(T, 3)) * np.array([1.0, 1.1, 0.9])
    D, most = F.diameter(), 2 * math.sqrt(3) / 0.5
    learner = OnlineNewtonStep(F, 0.5 * min(1 / (4 * most * D), 1.0))
    state, total = learner.init(), 0.0
    for r in R:
        w = float(r @ state.x)
        total -= math.log(w)
        state = learner.update(state, -r / w)
    x = np.full(3, 1 / 3)
    for _ in range(2000):
        x = x * (R / (R @ x)[:, None]).mean(axis=0)
    assert total + np.log(R @ x).sum() <= 5 * (1 + most * D) * 3 * math.log(T)


def test_perturbed_leader_keeps_its_expected_regret() -> None:
    """epsilon R A T + D₁/epsilon on [-1, 1]², with 80 seeds for the expectation."""
    rows = np.sign(np.random.default_rng(20100).normal(size=(60, 2)) + 0.2)
    S, eps = rows.sum(axis=0), 0.15
    costs = []
    for seed in range(80):
        points = np.array(plays(PerturbedLeader(CUBE, eps, seed=seed), rows)[:-1])
        costs.append(float((points * rows).sum() + np.abs(S).sum()))
    assert np.mean(costs) <= eps * 2 * 2 * 60 + 4 / eps
    apart = plays(PerturbedLeader(CUBE, eps, seed=1), rows)
    assert not np.array_equal(apart, plays(PerturbedLeader(CUBE, eps, seed=2), rows))
