"""Losses of a point."""

import math

import numpy as np
import pytest

from ftprl import losses
from ftprl.errors import InvalidInput
from ftprl.losses import SCALAR_LOSSES, Linear, Loss, OfScore


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: losses.logistic([1.0], 0), "got 0.0;"),
        (lambda: losses.hinge([1.0], 2.0), "got 2.0;"),
        (lambda: OfScore(SCALAR_LOSSES["gamma"], [1.0], 0.0), "gamma needs y > 0, got 0.0;"),  # type: ignore[arg-type]
        (lambda: OfScore(SCALAR_LOSSES["poisson"], [1.0], -1), "poisson needs y >= 0, got -1.0;"),  # type: ignore[arg-type]
        (lambda: OfScore(SCALAR_LOSSES["squared_hinge"], [1.0], 0.5), "got 0.5;"),  # type: ignore[arg-type]
        (lambda: losses.squared([1.0], math.nan), "got y=nan;"),
        (lambda: losses.absolute([1.0], math.inf), "got y=inf;"),
        (lambda: losses.squared([[1.0]], 0.0), "(1, 1)"),
        (lambda: losses.squared([math.nan], 0.0), "nan"),
        (lambda: OfScore(SCALAR_LOSSES["squared"], [1.0], 0.0, -1.0), "got -1.0;"),  # type: ignore[arg-type]
        (lambda: losses.linear([math.inf]), "inf"),
        (lambda: losses.linear("abc"), "'abc'"),
        (lambda: losses.squared(["x"], 0.0), "'x'"),
        (lambda: losses.logistic([1.0], "1"), "'1'"),  # type: ignore[arg-type]
    ],
)
def test_bad_rows(make, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput) as caught:
        make()
    assert message in str(caught.value)
    assert ";" in str(caught.value)


@pytest.mark.parametrize("make", [losses.absolute, losses.squared, losses.logistic, losses.hinge])
def test_losses_of_a_point(make, rng: np.random.Generator) -> None:  # type: ignore[no-untyped-def]
    v, x = rng.normal(size=(2, 3))
    f = make(v, 1.0)
    value, g = f(x)
    h = 1e-6
    numeric = [(f(x + h * e)[0] - f(x - h * e)[0]) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(g, numeric, atol=1e-7)
    assert value == f.loss.value(float(v @ x), 1.0)
    assert isinstance(f, Loss)
    double = OfScore(f.loss, v, 1.0, 2.0)(x)
    assert double[0] == 2 * value
    np.testing.assert_array_equal(double[1], 2 * g)


def test_linear() -> None:
    f = losses.linear([1, -2])
    assert isinstance(f, Linear)
    value, g = f(np.array([3.0, 1.0]))
    assert value == 1.0
    np.testing.assert_array_equal(g, [1.0, -2.0])


def test_a_loss_keeps_its_own_copy() -> None:
    g = np.ones(2)
    f = losses.linear(g)
    g[:] = 7.0
    assert f(np.ones(2))[0] == 2.0
