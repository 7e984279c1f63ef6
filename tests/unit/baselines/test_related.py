"""Each algorithm of related work against its own paper's update, computed by hand, and a law for each."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ftprl import play
from ftprl.baselines import (
    AdaGrad,
    AdaGradDual,
    AdaptiveDescent,
    DualAveraging,
    ExponentiatedGradient,
    Fobos,
    GradientDescent,
    LazyDescent,
    NewtonLeader,
    OnlineNewtonStep,
    Pegasos,
    PerCoordinateDescent,
    PerturbedLeader,
    ProximalDescent,
    RestartedDescent,
)
from ftprl.errors import InvalidInput, Unsupported
from ftprl.learner import Learner
from ftprl.losses import hinge
from ftprl.sets import Box, L1Ball, L2Ball, Simplex

CUBE = Box(-1, 1, dim=2)
LINE = Box(-1, 1, dim=1)
FREE = Box(-math.inf, math.inf, dim=2)
Make = Callable[..., Learner[Any]]

# Every algorithm on the set it supports; two need a box.
ALL: dict[str, Make] = {
    "lazy": LazyDescent,
    "lazy, fixed rate": lambda F, start=None: LazyDescent(F, 0.3, start),
    "lazy, restarted": lambda F, start=None: RestartedDescent(F, start=start),
    "adaptive": AdaptiveDescent,
    "proximal": ProximalDescent,
    "adagrad, full": lambda F, start=None: AdaGrad(F, start=start, full=True),
    "adagrad dual": AdaGradDual,
    "adagrad dual, full": lambda F, start=None: AdaGradDual(F, start=start, full=True),
    "dual averaging": DualAveraging,
    "l1 dual averaging": lambda F, start=None: DualAveraging(F, l1=0.01, rho=0.1, start=start),
    "fobos": lambda F, start=None: Fobos(F, l1=0.01, l2=0.1, start=start),
    "pegasos": lambda F, start=None: Pegasos(F, 0.1, start),
    "newton": lambda F, start=None: OnlineNewtonStep(F, 0.5, start=start),
    "newton leader": lambda F, start=None: NewtonLeader(F, start=start),
}
NAMED: dict[str, Learner[Any]] = {
    **{name: make(CUBE) for name, make in ALL.items()},
    "per coordinate": PerCoordinateDescent(CUBE),
    "perturbed": PerturbedLeader(CUBE, 0.5),
    "exponentiated": ExponentiatedGradient(Simplex(2)),
}


def plays(learner: Learner[Any], rows: Any) -> list[np.ndarray]:
    """x_1, ..., x_{T+1}."""
    state = learner.init()
    points = [state.x]
    for g in rows:
        state = learner.update(state, g)
        points.append(state.x)
    return points


def expect(learner: Learner[Any], rows: Any, points: Any) -> None:
    np.testing.assert_allclose(plays(learner, rows), points, atol=1e-9)


# Updates by hand.


def test_lazy_descent_starts_from_where_it_went() -> None:
    # rate 1/2 on [-1, 1]: u = 0, -2, -1, 0; played clipped. Gradient descent, clipped at once, would play -1, 0, 1.
    expect(LazyDescent(LINE, 0.5), [[4.0], [-2.0], [-2.0]], [[0], [-1], [-1], [0]])
    expect(GradientDescent(LINE, 0.5), [[4.0], [-2.0], [-2.0]], [[0], [-1], [0], [1]])


def test_adaptive_descent() -> None:
    # [-1, 1], D = 2, g_1 = 3, H = 0: 3/2·4·lambda = 9/lambda, so lambda = sqrt(3/2); x_2 = -3/sqrt(3/2), clipped to -1.
    # g_2 = -2: 6 lambda (sqrt(3/2) + lambda) = 4, so lambda = (sqrt(3/2 + 8/3) - sqrt(3/2))/2;
    # x_3 = -1 + (2 + lambda)/(sqrt(3/2) + lambda), since lambda pulls x_2 = -1 back to x_1 = 0.
    first = math.sqrt(1.5)
    second = (math.sqrt(1.5 + 8 / 3) - first) / 2
    assert 6 * second * (first + second) == pytest.approx(4.0)
    third = min(-1 + (2 + second) / (first + second), 1.0)
    expect(AdaptiveDescent(LINE), [[3.0], [-2.0]], [[0], [-1], [third]])


def test_adaptive_descent_with_curvature() -> None:
    # H = 1 a round, g_1 = 1, D = 2: 6 lambda (1 + lambda) = 1, lambda = (sqrt(1 + 2/3) - 1)/2; x_2 = -1/(1 + lambda).
    weight = (math.sqrt(5 / 3) - 1) / 2
    expect(AdaptiveDescent(LINE, curvature=1.0), [[1.0]], [[0], [-1 / (1 + weight)]])


def test_proximal_descent() -> None:
    # D = 2, g_1 = 3: 4 tau = 9/tau, so tau = 3/2 and x_2 = -2, clipped. g_2 = -2: 4 tau (3/2 + tau) = 4, so tau = 1/2,
    # and x_3 = -1 + 2/2: the term centred at x_2 does not pull.
    expect(ProximalDescent(LINE), [[3.0], [-2.0]], [[0], [-1], [0]])
    # H = 1 a round, g_1 = 1: 4 tau (1 + tau) = 1.
    weight = (math.sqrt(2) - 1) / 2
    expect(ProximalDescent(LINE, curvature=1.0), [[1.0]], [[0], [-1 / (1 + weight)]])


def test_restarted_descent() -> None:
    # D = 2. g = 1: budget 1, rate 2, u = -2. g = 1 again exceeds it: budget 2, rate sqrt 2, from 0.
    expect(RestartedDescent(LINE), [[1.0], [1.0], [-0.5]], [[0], [-1], [-1], [-math.sqrt(0.5)]])
    # g = 3 does not fit into twice the budget of 1: it becomes 9, the rate 2/3.
    expect(RestartedDescent(LINE, start=[0.5]), [[0.0], [1.0], [3.0]], [[0.5], [0.5], [-1], [-1]])


def test_per_coordinate_descent() -> None:
    # widths 2 and 1, scale 1/4. g = (3, 0): x_1 -= 2/4·3/3; then g = (4, 1): G = (25, 1): -1/2 - 1/2·4/5, 0 - 1/4·1.
    box = Box([-1, -0.5], [1, 0.5])
    expect(PerCoordinateDescent(box, 0.25), [[3, 0], [4, 1]], [[0, 0], [-0.5, 0], [-0.9, -0.25]])


def test_full_adagrad() -> None:
    # g = (3, 4): the root of g gᵀ is g gᵀ/5, so x_2 = x_1 - rate g/5 (the rest of the plane has no weight and stays).
    # Then g = (4, -3), at a right angle: the root is diag(5, 5) in that frame, and x_3 = x_2 - rate (4, -3)/5.
    expect(AdaGrad(CUBE, 0.5, full=True), [[3, 4], [4, -3]], [[0, 0], [-0.3, -0.4], [-0.7, -0.1]])
    expect(AdaGradDual(CUBE, 0.5, full=True), [[3, 4], [4, -3]], [[0, 0], [-0.3, -0.4], [-0.7, -0.1]])


def test_adagrad_by_dual_averaging() -> None:
    # rate 1/2, delta 1: -1/2·3/(1+3) = -0.375; then S = (-1, 2), sqrt G = (5, 2): 1/2·1/6 and -1/2·2/3.
    expect(AdaGradDual(FREE, 0.5, delta=1.0), [[3, 0], [-4, 2]], [[0, 0], [-0.375, 0], [1 / 12, -1 / 3]])


def test_dual_averaging_with_l1() -> None:
    # Xiao's closed form: x = 0 where |mean g| <= l1, else -(sqrt t/gamma)(mean g - l1 sgn). gamma = 2, l1 = 1/2.
    # t = 1: g = (3, -0.4): -(1/2)(3 - 0.5) = -1.25 and 0. t = 2: mean (1, -1.2): -(sqrt2/2)(0.5), +(sqrt2/2)(0.7).
    r = math.sqrt(2) / 2
    expect(DualAveraging(FREE, 2.0, l1=0.5), [[3, -0.4], [-1, -2]], [[0, 0], [-1.25, 0], [-0.5 * r, 0.7 * r]])
    # rho = 1/4 adds gamma rho/sqrt t to l1: t = 1: l1 = 1, -(1/2)(3 - 1).
    expect(DualAveraging(FREE, 2.0, l1=0.5, rho=0.25), [[3, -0.4]], [[0, 0], [-1, 0]])


def test_fobos() -> None:
    # rate 1/2, l1 = 1: half a step to (-1.5, 0.2), then 1/2 nearer to 0: (-1, 0).
    # Then g = (-3, -4): (0.5, 2) and (0, 1.5).
    expect(Fobos(FREE, 0.5, l1=1.0), [[3, -0.4], [-3, -4]], [[0, 0], [-1, 0], [0, 1.5]])
    # l2 = 2: divided by 1 + 1/2·2.
    expect(Fobos(FREE, 0.5, l2=2.0), [[3, -0.4]], [[0, 0], [-0.75, 0.1]])


def test_pegasos() -> None:
    # l2 = 1/4, so the ball has radius 2. v = (3, 4), y = +1: x_2 = 0 + v/(1/4·1) = (12, 16), of norm 20, pulled to
    # norm 2: (1.2, 1.6). v = (1, 0), y = -1: the margin is -1.2, so x_3 = 1/2 x_2 - (1, 0)/(1/4·2) = (-1.4, 0.8).
    # v = (1, 1), y = -1: the margin 0.6 < 1: x_4 = 2/3 x_3 - (1, 1)·4/3 = (-34/15, -0.8), pulled to norm 2.
    # v = (1, 0), y = -1: the margin is above 1: x_5 = 3/4 x_4.
    learner = Pegasos.svm(2, 0.25)
    state, seen = learner.init(), []
    for v, y in (([3.0, 4.0], 1), ([1.0, 0.0], -1), ([1.0, 1.0], -1), ([1.0, 0.0], -1)):
        state = learner.update(state, hinge(v, y)(state.x)[1])
        seen.append(state.x)
    fourth = np.array([-34 / 15, -0.8])
    fourth *= 2 / np.linalg.norm(fourth)
    np.testing.assert_allclose(seen, [[1.2, 1.6], [-1.4, 0.8], fourth, 0.75 * fourth], atol=1e-12)


def test_perturbed_leader() -> None:
    # Without noise the leader of S: the noise lies in [0, 1/epsilon], so |S_i| beyond it decides.
    learner = PerturbedLeader(CUBE, epsilon=1.0)
    assert set(np.abs(learner.init().x)) == {1.0}
    np.testing.assert_array_equal(plays(learner, [[2.0, -2.0]])[1], [-1, 1])
    # n = 1, S = -u/epsilon: the vertex is +1 when the noise is below u, with probability u.
    noisy = PerturbedLeader(LINE, epsilon=0.5)
    share = np.mean([noisy.play(np.array([-0.6]), t)[0] > 0 for t in range(4000)])
    assert share == pytest.approx(0.3, abs=0.03)


def test_exponentiated_gradient() -> None:
    # rate ln 2: shares (1/4, 3/4) become (1/4·2⁻¹, 3/4·2⁻²) = (2, 3)/16, over their sum (2, 3)/5; then times 2 and 2⁻¹.
    learner = ExponentiatedGradient(Simplex(2), math.log(2), start=[0.25, 0.75])
    expect(learner, [[1, 2], [-1, 1]], [[0.25, 0.75], [0.4, 0.6], [8 / 11, 3 / 11]])


def test_online_newton_step() -> None:
    # epsilon 1, gamma 1/2, g = (1, 0): A = diag(2, 1), x = -(1/2)/(1/2) = -1 on the first axis. Then g = (0, 2):
    # A = diag(2, 5), x_2 = -(2/5)·2 = -0.8. A correlated g = (1, 1) on the plane: A = [[3,1],[1,6]], A⁻¹g = (5, 2)/17.
    learner = OnlineNewtonStep(Box(-9, 9, dim=2), 0.5, 1.0)
    points = [[0, 0], [-1, 0], [-1, -0.8], [-1 - 10 / 17, -0.8 - 4 / 17]]
    expect(learner, [[1, 0], [0, 2], [1, 1]], points)
    # On a set the way back is in the norm of A: at x_1 = 1/2 with A = [[2, 1], [1, 2]] (epsilon 1, g = (1, 1)) and
    # gamma 1 the target is (-1/3, -1/3); with x_1 >= 0 the best x_2 solves 2 (x_2 + 1/3) + 1/3 = 0, so -1/2, not -1/3.
    half = OnlineNewtonStep(Box([0.0, -1.0], [1.0, 1.0]), 1.0, 1.0, start=[0.0, 0.0])
    expect(half, [[1, 1]], [[0, 0], [0, -0.5]])


def test_newton_leader() -> None:
    # epsilon 1, weight 1/2. g = (2, 0): A = diag(5, 1), x = -(1/2)(2/5) = -0.2. Then g = (0, 1): A = diag(5, 2),
    # S = (2, 1): -(1/2)(2/5, 1/2). On the simplex, g = -(1, 2) at weight 1/4: minimise
    # ½(x² + y² + (x + 2y)²) - (x + 2y)/4 with x = 1 - y, that is ½(1 - 2y + 2y² + (1 + y)²) - (1 + y)/4, whose slope
    # 3y - 1/4 is 0 at y = 1/12.
    expect(NewtonLeader(CUBE, 0.5), [[2, 0], [0, 1]], [[0, 0], [-0.2, 0], [-0.2, -0.25]])
    expect(NewtonLeader(Simplex(2)), [[-1, -2]], [[0.5, 0.5], [11 / 12, 1 / 12]])


# Laws.


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("F", [CUBE, L2Ball(2, 1.5), Simplex(2), L1Ball(2)], ids=repr)
def test_plays_stay_in_the_set(name: str, F: Box, rng: np.random.Generator) -> None:
    learner = ALL[name](F)
    assert all(F.contains(x, 1e-7) for x in plays(learner, 3 * rng.normal(size=(25, 2))))


@pytest.mark.parametrize("F", [CUBE, L2Ball(2, 1.5), Simplex(2), L1Ball(2)], ids=repr)
def test_perturbed_plays_stay_in_the_set(F: Box, rng: np.random.Generator) -> None:
    for draws in (1, 5):
        points = plays(PerturbedLeader(F, 0.5, draws=draws), rng.normal(size=(25, 2)))
        assert all(F.contains(x, 1e-7) for x in points)


@pytest.mark.parametrize("name", sorted(set(NAMED) - {"perturbed", "pegasos", "fobos", "l1 dual averaging"}))
def test_without_gradients_nothing_moves(name: str) -> None:
    learner = NAMED[name]
    for x in plays(learner, np.zeros((4, 2))):
        np.testing.assert_allclose(x, learner.init().x, atol=1e-9)


def test_without_gradients_penalties_pull_to_zero() -> None:
    start = [0.5, -0.25]
    learners: list[Learner[Any]] = [
        Fobos(CUBE, 0.1, l1=0.01, l2=0.1, start=start),
        Pegasos(CUBE, 0.1, start),
        DualAveraging(CUBE, l1=0.01, rho=0.1, start=start),
    ]
    for learner in learners:
        sizes = [np.abs(x).sum() for x in plays(learner, np.zeros((6, 2)))]
        assert sizes[-1] < sizes[0]
        assert all(b <= a + 1e-12 for a, b in itertools.pairwise(sizes))


@pytest.mark.parametrize("name", NAMED)
def test_they_are_pure_and_count(name: str, rng: np.random.Generator) -> None:
    learner = NAMED[name]
    state = learner.update(learner.init(), [1.0, 0.2])
    x = state.x.copy()
    learner.update(state, [5.0, 5.0])
    np.testing.assert_array_equal(state.x, x)
    assert state.t == 1
    rows = rng.normal(size=(5, 2))
    np.testing.assert_array_equal(plays(learner, rows), plays(learner, rows))


@pytest.mark.parametrize("name", NAMED)
def test_they_learn(name: str, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(400, 2)) + np.array([0.5, -0.5])
    c = play(NAMED[name], rows).certificate()
    # Pegasos solves a problem with a penalty, the Newton leader one with parabolas: their best points lie elsewhere.
    assert c.regret < {"pegasos": 0.5, "newton leader": 0.9}.get(name, 0.15) * 400
    assert c.bound is None


@pytest.mark.parametrize("name", NAMED)
def test_refusals(name: str) -> None:
    learner = NAMED[name]
    who = type(learner).__name__
    with pytest.raises(Unsupported, match=f"{who} takes no hint; use FTPRL"):
        learner.update(learner.init(), [1.0, 1.0], hint=[0.0, 0.0])
    with pytest.raises(Unsupported, match=f"{who} takes no hint"):
        learner.init(hint=[0.0, 0.0])
    with pytest.raises(InvalidInput, match=r"g needs finite.*; "):
        learner.update(learner.init(), [math.nan, 1.0])


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: LazyDescent(FREE), "LazyDescent needs a bounded set or a rate"),
        (lambda: LazyDescent(CUBE, -1.0), "rate needs"),
        (lambda: AdaptiveDescent(FREE), "AdaptiveDescent needs a bounded set"),
        (lambda: AdaptiveDescent(CUBE, scale=0.0), "scale needs"),
        (lambda: ProximalDescent(FREE), "ProximalDescent needs a bounded set"),
        (lambda: ProximalDescent(CUBE, scale=0.0), "scale needs"),
        (lambda: ProximalDescent(CUBE, curvature=-1.0), "curvature needs"),
        (lambda: RestartedDescent(FREE), "RestartedDescent needs a bounded set"),
        (lambda: RestartedDescent(CUBE, scale=0.0), "scale needs"),
        (lambda: AdaptiveDescent(CUBE, curvature=-1.0), "curvature needs"),
        (lambda: PerCoordinateDescent(FREE), "PerCoordinateDescent needs a bounded box"),
        (lambda: PerCoordinateDescent(CUBE, 0.0), "scale needs"),
        (lambda: AdaGrad(CUBE, [1.0, 1.0], full=True), "rate needs one number"),
        (lambda: AdaGradDual(FREE), "AdaGradDual needs a bounded set or a rate"),
        (lambda: AdaGradDual(CUBE, delta=-1.0), "delta needs"),
        (lambda: DualAveraging(CUBE, 0.0), "gamma needs"),
        (lambda: DualAveraging(CUBE, l1=-1.0), "l1 needs"),
        (lambda: DualAveraging(CUBE, rho=-1.0), "rho needs"),
        (lambda: Fobos(FREE), "Fobos needs a bounded set or a rate"),
        (lambda: Fobos(CUBE, l1=-1.0), "l1 needs"),
        (lambda: Fobos(CUBE, l2=math.inf), "l2 needs"),
        (lambda: Pegasos(CUBE, 0.0), "l2 needs"),
        (lambda: Pegasos.svm(2, -1.0), "l2 needs"),
        (lambda: PerturbedLeader(FREE, 1.0), "PerturbedLeader needs a bounded set"),
        (lambda: PerturbedLeader(CUBE, 0.0), "epsilon needs"),
        (lambda: PerturbedLeader(CUBE, 1.0, seed=-1), "seed needs"),
        (lambda: PerturbedLeader(CUBE, 1.0, draws=0), "draws needs"),
        (lambda: ExponentiatedGradient(Simplex(2), 0.0), "rate needs"),
        (lambda: ExponentiatedGradient(Simplex(2), start=[1.0, 0.0]), "start needs shares above 0"),
        (lambda: OnlineNewtonStep(CUBE, 0.0), "gamma needs"),
        (lambda: OnlineNewtonStep(CUBE, 1.0, 0.0), "epsilon needs"),
        (lambda: NewtonLeader(CUBE, 0.0), "weight needs"),
        (lambda: NewtonLeader(CUBE, epsilon=-1.0), "epsilon needs"),
        (lambda: OnlineNewtonStep(FREE, 1.0), "OnlineNewtonStep needs epsilon or a bounded set"),
    ],
)
def test_bad_arguments(make: Callable[[], object], what: str) -> None:
    with pytest.raises(InvalidInput, match=f"{what}.*; "):
        make()


def test_sets_they_are_not_for() -> None:
    with pytest.raises(Unsupported, match=r"PerCoordinateDescent needs a Box, got .*; use AdaGrad there"):
        PerCoordinateDescent(L2Ball(2))
    with pytest.raises(Unsupported, match=r"ExponentiatedGradient needs a Simplex, got .*; use GradientDescent there"):
        ExponentiatedGradient(CUBE)


def test_a_rate_function_is_asked_each_round() -> None:
    for make in (LazyDescent, Fobos):
        expect(make(Box(-9, 9, dim=1), lambda t: 1 / t), [[1.0], [1.0]], [[0], [-1], [-1.5]])
    with pytest.raises(InvalidInput, match="rate needs"):
        plays(ExponentiatedGradient(Simplex(2), lambda t: -1.0), [[1.0, 0.0]])
