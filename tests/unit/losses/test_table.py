"""The scalar losses against their definitions, and against the replay of `verify`."""

import math

import numpy as np
import pytest

from ftprl.errors import InvalidInput
from ftprl.losses import SCALAR_LOSSES, ScalarLoss, quantile

NAMES = ("logistic", "hinge", "squared_hinge", "squared", "absolute", "quantile", "huber", "poisson", "gamma")
SCORES = np.linspace(-4.03, 4.07, 41)
DEFINITIONS = {
    "logistic": lambda s, y: np.log(1 + np.exp(-y * s)),
    "hinge": lambda s, y: np.maximum(1 - y * s, 0),
    "squared_hinge": lambda s, y: 0.5 * np.maximum(1 - y * s, 0) ** 2,
    "squared": lambda s, y: 0.5 * (s - y) ** 2,
    "absolute": lambda s, y: np.abs(s - y),
    "quantile": lambda s, y: 0.5 * np.abs(s - y),
    "huber": lambda s, y: np.where(np.abs(s - y) <= 1, 0.5 * (s - y) ** 2, np.abs(s - y) - 0.5),
    "poisson": lambda s, y: np.exp(s) - y * s,
    "gamma": lambda s, y: y * np.exp(-s) + s,
}
KINKS = {"hinge": (1.0, 1.0), "absolute": (2.0, 2.0), "quantile": (-1.0, -1.0)}


def labels(loss: ScalarLoss) -> tuple[float, ...]:
    few = {"signs": (-1.0, 1.0), "nonnegative": (0.0, 3.0), "positive": (0.25, 3.0), "numbers": (-1.5, 0.0, 2.0)}
    return few[loss.labels]


def test_the_table() -> None:
    assert tuple(SCALAR_LOSSES) == NAMES
    assert {name for name, loss in SCALAR_LOSSES.items() if loss.binary} == {"logistic", "hinge", "squared_hinge"}
    assert all(name == loss.name for name, loss in SCALAR_LOSSES.items())
    with pytest.raises(TypeError):
        SCALAR_LOSSES["mine"] = quantile(0.1)  # type: ignore[index]


@pytest.mark.parametrize("name", NAMES)
def test_value_is_the_definition(name: str) -> None:
    loss = SCALAR_LOSSES[name]
    for y in labels(loss):
        values = [loss.value(float(s), y) for s in SCORES]
        np.testing.assert_allclose(values, DEFINITIONS[name](SCORES, y), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("loss", [*SCALAR_LOSSES.values(), quantile(0.9)], ids=lambda loss: loss.name)
def test_slope_is_the_derivative(loss: ScalarLoss) -> None:
    h = 1e-6
    for y in labels(loss):
        for s in SCORES:
            numeric = (loss.value(s + h, y) - loss.value(s - h, y)) / (2 * h)
            assert loss.slope(s, y) == pytest.approx(numeric, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("loss", [*SCALAR_LOSSES.values(), quantile(0.9)], ids=lambda loss: loss.name)
def test_slope_is_a_subgradient_everywhere(loss: ScalarLoss) -> None:
    """value(s) >= value(r) + slope(r)(s - r): convex, kinks included."""
    for y in labels(loss):
        grid = [*SCORES, y, 1.0, -1.0, y + 1, y - 1]
        for r in grid:
            for s in grid:
                tangent = loss.value(r, y) + loss.slope(r, y) * (s - r)
                assert loss.value(s, y) >= tangent - 1e-12 * (1 + abs(tangent))


@pytest.mark.parametrize("name", KINKS)
def test_slope_is_zero_at_kinks(name: str) -> None:
    s, y = KINKS[name]
    assert SCALAR_LOSSES[name].slope(s, y) == 0.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("s", [1e4, -1e4, 1e150, -1e150])
def test_huge_scores_stay_finite(name: str, s: float) -> None:
    loss = SCALAR_LOSSES[name]
    for y in labels(loss):
        assert math.isfinite(loss.value(s, y))
        assert math.isfinite(loss.slope(s, y))


def test_logistic_is_accurate_in_its_tails() -> None:
    loss = SCALAR_LOSSES["logistic"]
    assert loss.value(40.0, 1.0) == pytest.approx(math.exp(-40), rel=1e-12)
    assert loss.slope(40.0, 1.0) == pytest.approx(-math.exp(-40), rel=1e-12)
    assert loss.value(-800.0, 1.0) == 800.0
    assert loss.slope(-800.0, 1.0) == -1.0
    assert loss.value(800.0, 1.0) == 0.0


def test_gamma_is_clamped_at_60() -> None:
    loss = SCALAR_LOSSES["gamma"]
    assert loss.value(-61.0, 2.0) == loss.value(-60.0, 2.0) == 2.0 * math.exp(60) - 60.0
    assert loss.slope(1e9, 2.0) == 1.0 - 2.0 * math.exp(-60)
    assert loss.mean(np.array([0.0, 100.0])).tolist() == [1.0, math.exp(60)]


def test_poisson_is_clamped_at_60() -> None:
    loss = SCALAR_LOSSES["poisson"]
    assert loss.value(61.0, 2.0) == loss.value(60.0, 2.0) == math.exp(60) - 120
    assert loss.slope(-1e9, 2.0) == math.exp(-60) - 2.0


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, math.nan, 2])
def test_bad_quantile(tau: float) -> None:
    with pytest.raises(InvalidInput, match=rf"tau needs a number above 0 and below 1, got {tau!r}; "):
        quantile(tau)
