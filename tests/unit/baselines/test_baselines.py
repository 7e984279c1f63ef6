"""Baselines: other algorithms that people would use instead of FTPRL."""

import math

import numpy as np
import pytest

from ftprl import FTPRL, play
from ftprl.baselines import AdaGrad, GradientDescent
from ftprl.errors import InvalidInput, Unsupported
from ftprl.schemes import Diagonal
from ftprl.sets import Box, L2Ball, Simplex

CUBE = Box(-1, 1, dim=2)


@pytest.mark.parametrize("rate", [0.1, lambda t: 0.5 / t, None])
@pytest.mark.parametrize("F", [CUBE, L2Ball(2), Simplex(2)], ids=repr)
def test_gradient_descent_by_its_definition(F: Box, rate, rng: np.random.Generator) -> None:  # type: ignore[no-untyped-def]
    learner = GradientDescent(F, rate)
    state, x, G = learner.init(), F.start(), 0.0
    projections = {
        Box: lambda u: np.clip(u, -1, 1),
        L2Ball: lambda u: u / max(1.0, np.linalg.norm(u)),
        Simplex: lambda u: np.array([v := np.clip((1 + u[0] - u[1]) / 2, 0, 1), 1 - v]),
    }
    for t, g in enumerate(rng.normal(size=(10, 2)), start=1):
        np.testing.assert_allclose(state.x, x, atol=1e-12)
        G += float(g @ g)
        eta = F.diameter() / math.sqrt(2 * G) if rate is None else rate(t) if callable(rate) else rate
        x = projections[type(F)](x - eta * g)
        state = learner.update(state, g)
        assert state.t == t


def test_adagrad_by_its_definition(rng: np.random.Generator) -> None:
    for rate in (0.3, [0.2, 0.4], None):
        learner = AdaGrad(CUBE, rate)
        state, x, G = learner.init(), np.zeros(2), np.zeros(2)
        eta = 2 / math.sqrt(2) if rate is None else np.asarray(rate)
        for g in rng.normal(size=(10, 2)):
            G += g * g
            x = np.clip(x - eta * g / np.sqrt(G), -1, 1)
            state = learner.update(state, g)
            np.testing.assert_allclose(state.x, x, atol=1e-12)


def test_adagrad_inside_the_box_is_the_diagonal_scheme(rng: np.random.Generator) -> None:
    """While no clip happens, FTPRL-Diag and AdaGrad with rate D/c take the same steps."""
    wide = Box(-1000, 1000, dim=2)
    a, d = AdaGrad(wide, rate=2000 / 2.0), FTPRL(wide, Diagonal())
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]] * 4) * rng.uniform(0.5, 1.0, size=(8, 2))
    sa, sd = a.init(), d.init()
    for g in signs:
        sa, sd = a.update(sa, 1e-3 * g), d.update(sd, 1e-3 * g)
        if np.abs(sa.x).max() >= 1000:
            break
        np.testing.assert_allclose(sa.x, sd.x, rtol=1e-9, atol=1e-9)


def test_untouched_coordinates_of_adagrad_stay() -> None:
    learner = AdaGrad(CUBE, start=[0.3, -0.4])
    state = learner.update(learner.init(), [1.0, 0.0])
    assert state.x[1] == -0.4
    state = learner.update(learner.init(), [0.0, 0.0])
    np.testing.assert_array_equal(state.x, [0.3, -0.4])


@pytest.mark.parametrize("kind", [GradientDescent, AdaGrad])
def test_they_play_and_learn(kind: type, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(400, 2)) + np.array([0.5, -0.5])
    c = play(kind(CUBE), rows).certificate()
    assert 0 < c.regret < 0.15 * 400
    assert c.bound is None


@pytest.mark.parametrize("kind", [GradientDescent, AdaGrad])
def test_they_are_pure(kind: type) -> None:
    learner = kind(CUBE)
    state = learner.update(learner.init(), [1.0, 0.2])
    x = state.x.copy()
    learner.update(state, [5.0, 5.0])
    np.testing.assert_array_equal(state.x, x)


@pytest.mark.parametrize("kind", [GradientDescent, AdaGrad])
def test_refusals(kind: type) -> None:
    name = kind.__name__
    learner = kind(CUBE)
    with pytest.raises(Unsupported, match=f"{name} takes no hint; use FTPRL"):
        learner.update(learner.init(), [1.0, 1.0], hint=[0.0, 0.0])
    with pytest.raises(InvalidInput, match=f"{name} needs a bounded set or a rate.*; pass rate="):
        kind(Box(-math.inf, math.inf))
    kind(Box(-math.inf, math.inf), rate=0.1)
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(InvalidInput, match=r"rate needs.*; "):
            kind(CUBE, rate=bad)
    with pytest.raises(InvalidInput, match=r"start needs a point.*; "):
        kind(CUBE, start=[2.0, 0.0]).init()


def test_a_bad_rate_of_a_function_is_found() -> None:
    learner = GradientDescent(CUBE, rate=lambda t: -1.0)
    with pytest.raises(InvalidInput, match=r"rate needs.*got -1\.0; "):
        learner.update(learner.init(), [1.0, 1.0])
