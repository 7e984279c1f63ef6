"""Problems on which global rates have regret T^{2/3} and the diagonal scheme sqrt T; heavy tails."""

import math
from functools import cache

import numpy as np
import pytest

from ftprl import FTPRL, play
from ftprl.adversaries import bad_class, heavy_tail_rows
from ftprl.baselines import GradientDescent
from ftprl.learner import Learner
from ftprl.schemes import CoordinateConstant, Diagonal, Fixed
from ftprl.sets import Box


def regret(T: int, learner: str, rate: float = 0.0) -> float:
    """Return the true regret on the class: the best fixed point has x_1 = 0 and -1/2 elsewhere."""
    instance = bad_class(T)
    F, start = instance.feasible, instance.start
    learners: dict[str, Learner] = {
        "const": FTPRL(F, CoordinateConstant(), start),
        "diagonal": FTPRL(F, Diagonal(), start),
        "fixed": FTPRL(F, Fixed([1 / rate]) if rate else Diagonal(), start),
        "descent": GradientDescent(F, rate or None, start),
    }
    m = F.dim - 1
    made = play(learners[learner], instance.losses()).certificate(best_loss=-m * m / 2)
    assert made.true_regret <= made.regret + 1e-9
    return made.true_regret


@cache
def measured(T: int, learner: str) -> float:
    """`regret`, played once."""
    return regret(T, learner)


def assert_lower_bound(T: int, value: float, eta: float) -> None:
    """Regret >= (T/2) min(eta, ½) + m sum_{s<k} (½ - s eta)_+ >= T^{2/3}/4."""
    m = round(T ** (1 / 3))
    stated = T / 2 * min(eta, 0.5) + m * sum(max(0.5 - s * eta, 0.0) for s in range(m))
    assert stated >= T ** (2 / 3) / 4
    assert value >= stated * (1 - 1e-9)


def test_the_class_itself() -> None:
    """Bad class: T rounds of |x_1|, then m coordinates of m linear rounds, on [-½, ½]^{1+m} from 0."""
    instance = bad_class(27)
    losses = list(instance.losses())
    assert instance.feasible.dim == 4
    assert len(losses) == instance.rounds == 27 + 9
    x = np.array([0.25, 0.1, 0.2, -0.3])
    assert losses[0](x)[0] == 0.25
    np.testing.assert_array_equal(losses[0](np.zeros(4))[1], [1, 0, 0, 0])
    np.testing.assert_array_equal(losses[0](-x)[1], [-1, 0, 0, 0])
    np.testing.assert_array_equal([losses[27 + i](x)[1].argmax() for i in (0, 3, 8)], [1, 2, 3])


@pytest.mark.parametrize(
    ("T", "const", "diagonal"),
    [
        pytest.param(1000, 76.9, 20.6),
        pytest.param(8000, None, 54.5),
        pytest.param(27_000, None, 96.9, marks=pytest.mark.slow),
    ],
)
def test_measured_regrets(T: int, const: float | None, diagonal: float) -> None:
    """Bad class: the measured regrets of the adaptive constant and of Diag, and their bounds."""
    actual = measured(T, "diagonal")
    assert actual == pytest.approx(diagonal, abs=0.06)
    m = round(T ** (1 / 3))
    assert actual <= 1.5 * (math.sqrt(T) + m * math.sqrt(m))
    one = measured(T, "const")
    assert one >= T ** (2 / 3) / 4
    if const is not None:
        assert one == pytest.approx(const, abs=0.06)


def test_slopes() -> None:
    """Bad class: from T = 1000 to 8000 the constant grows like T^{0.66}, Diag like T^{0.47}."""
    const, diagonal = (
        math.log(measured(8000, name) / measured(1000, name)) / math.log(8) for name in ("const", "diagonal")
    )
    assert const == pytest.approx(0.66, abs=0.02)
    assert diagonal == pytest.approx(0.47, abs=0.02)


@pytest.mark.parametrize("learner", ["descent", "fixed"])
@pytest.mark.parametrize("eta", [0.001, 0.01, 0.03, 0.05, 0.1, 0.3, 1.0, 10.0])
def test_every_constant_rate_pays(learner: str, eta: float) -> None:
    """Bad class: the lower bound for gradient descent and for FTPRL with a fixed multiple of I."""
    assert_lower_bound(1000, regret(1000, learner, eta), eta)


def test_falling_rates_pay_too() -> None:
    """Bad class: any non-increasing rates, such as D/sqrt(2G) and random ones, have regret T^{2/3}/4."""
    T = 512
    assert regret(T, "descent") >= T ** (2 / 3) / 4
    instance = bad_class(T)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        steps = rng.exponential(size=instance.rounds) * (rng.random(instance.rounds) < 0.1)
        steps[0] = 10.0 ** rng.uniform(-2, 1)
        learner = FTPRL(instance.feasible, Fixed(list(steps)), instance.start)
        made = play(learner, instance.losses()).certificate(best_loss=-64 / 2)
        eta = 1 / float(steps[:T].sum())
        stated = T / 2 * min(eta, 0.5)
        assert made.true_regret >= max(stated, T ** (2 / 3) / 4) * (1 - 1e-9)


@pytest.mark.parametrize(("T", "value"), [(1000, 50.25)])
def test_the_best_constant_rate(T: int, value: float) -> None:
    """Bad class: the best of many constant rates still has regret 50.25 at T = 1000."""
    actual = min(regret(T, "descent", eta) for eta in (0.02, 0.05, 0.1, 0.1001, 0.2, 0.25, 0.5, 0.500001, 0.75))
    assert actual >= T ** (2 / 3) / 4
    assert actual >= value * (1 - 0.02)


def spread(alpha: float, n: int, seed: int) -> tuple[float, float]:
    """Return (sum sqrt G_i, sqrt(n G)) after n rounds of the heavy-tailed class in n dimensions."""
    G = np.sum([g * g for g in heavy_tail_rows(n, n, alpha, 0.0, seed)], axis=0)
    return float(np.sqrt(G).sum()), math.sqrt(n * G.sum())


@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5])
def test_heavy_tail_exponents(alpha: float) -> None:
    """Heavy tails, n = T: Diag's bound grows like T^{(3-alpha)/2}, the constant's like T (times a logarithm at 1)."""
    small, large = 128, 1024
    diag, const = (
        np.array([np.mean([spread(alpha, n, s)[k] for s in range(3)]) for n in (small, large)]) for k in (0, 1)
    )
    slopes = [math.log(v[1] / v[0]) / math.log(large / small) for v in (diag, const)]
    assert slopes[0] == pytest.approx((3 - alpha) / 2, abs=0.12)
    assert slopes[1] == pytest.approx(1.0, abs=0.12)
    for n, value in zip((small, large), diag, strict=True):
        assert value <= math.sqrt(n) * (np.arange(1, n + 1) ** (-alpha / 2)).sum() * 1.1
        assert value <= math.sqrt(n) * n ** (1 - alpha / 2) / (1 - alpha / 2) * 1.1


def test_heavy_tail_without_signs_separates_nothing() -> None:
    """Heavy tails with g in {0, 1}: Diag's regret is exactly ½ for each coordinate seen."""
    n = 40
    rng = np.random.default_rng(0)
    rows = (rng.random((60, n)) < np.arange(1, n + 1) ** -1.2).astype(float)
    game = play(FTPRL(Box(-0.5, 0.5, dim=n), Diagonal()), rows)
    assert game.certificate().regret == pytest.approx(0.5 * np.count_nonzero(rows.any(axis=0)))
