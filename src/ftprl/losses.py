"""The scalar losses of a linear model, one table for both halves, and losses of a point x."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]
_POISSON_CLAMP = 60.0


@final
@dataclass(frozen=True, slots=True)
class ScalarLoss:
    """A convex loss of a score `s` with label `y`: `value(s, y)` and a subgradient `slope(s, y)` (0 at kinks)."""

    name: str
    value: Callable[[float, float], float]
    slope: Callable[[float, float], float]
    binary: bool = False
    rmse: bool = False  # whether sqrt(2 mean) is the root mean squared error
    baseline: str = "mean"  # what predicts a label from those before it: base_rate, mean, log_mean, median, ...


def _sign(d: float) -> float:
    return 1.0 if d > 0 else (-1.0 if d < 0 else 0.0)


def _softplus(v: float) -> float:
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


def _sigmoid(v: float) -> float:
    if v >= 0:
        return 1.0 / (1.0 + math.exp(-v))
    e = math.exp(v)
    return e / (1.0 + e)


def _clamp(s: float) -> float:
    return min(max(s, -_POISSON_CLAMP), _POISSON_CLAMP)


def _half_square(d: float) -> float:
    return 0.5 * (d * d)  # a product is correctly rounded; a power may not be


def quantile(tau: float) -> ScalarLoss:
    """The pinball loss `tau (y-s)_+ + (1-tau)(s-y)_+`.

    >>> quantile(0.9).value(1.0, 2.0)
    0.9
    """
    if not 0.0 < tau < 1.0:
        raise InvalidInput(f"quantile needs 0 < tau < 1, got {tau!r}; tau=0.5 is half the absolute loss.")

    def slope(s: float, y: float) -> float:
        return 0.0 if s == y else (1.0 - tau if s > y else -tau)

    def value(s: float, y: float) -> float:
        return tau * max(y - s, 0.0) + (1.0 - tau) * max(s - y, 0.0)

    return ScalarLoss("quantile", value, slope, baseline="quantile")


_TABLE = (
    ScalarLoss(
        "logistic",
        lambda s, y: _softplus(-y * s),
        lambda s, y: -y * _sigmoid(-y * s),
        binary=True,
        baseline="base_rate",
    ),
    ScalarLoss(
        "hinge",
        lambda s, y: max(1.0 - y * s, 0.0),
        lambda s, y: -y if y * s < 1.0 else 0.0,
        binary=True,
        baseline="majority",
    ),
    ScalarLoss(
        "squared_hinge",
        lambda s, y: _half_square(max(1.0 - y * s, 0.0)),
        lambda s, y: -y * max(1.0 - y * s, 0.0),
        binary=True,
        baseline="majority",
    ),
    ScalarLoss("squared", lambda s, y: _half_square(s - y), lambda s, y: s - y, rmse=True),
    ScalarLoss("absolute", lambda s, y: abs(s - y), lambda s, y: _sign(s - y), baseline="median"),
    quantile(0.5),
    ScalarLoss(
        "huber",
        lambda s, y: _half_square(s - y) if abs(s - y) <= 1.0 else abs(s - y) - 0.5,
        lambda s, y: min(max(s - y, -1.0), 1.0),
    ),
    ScalarLoss(
        "poisson",
        lambda s, y: math.exp(_clamp(s)) - y * _clamp(s),
        lambda s, y: math.exp(_clamp(s)) - y,
        baseline="log_mean",
    ),
)
SCALAR_LOSSES: Mapping[str, ScalarLoss] = MappingProxyType({loss.name: loss for loss in _TABLE})


@runtime_checkable
class Loss(Protocol):
    """A convex function of the point played: its value and one subgradient."""

    def __call__(self, x: Vector) -> tuple[float, Vector]: ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """`f(x) = g·x`."""

    g: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "g", check.vector("g", self.g))

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        return float(self.g @ x), self.g


@final
@dataclass(frozen=True, slots=True, eq=False)
class OfScore:
    """`f(x) = weight · loss(v·x, y)`: a scalar loss of a linear score."""

    loss: ScalarLoss
    v: Vector
    y: float
    weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "v", check.vector("v", self.v))
        object.__setattr__(self, "weight", check.positive("weight", self.weight, zero=True))
        object.__setattr__(self, "y", check.number("y", self.y))
        if self.loss.binary and self.y not in (-1, 1):
            raise InvalidInput(f"{self.loss.name} needs y = -1 or 1, got {self.y!r}; map the labels first.")

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        if x.shape != self.v.shape:
            raise InvalidInput(f"v needs as many entries as x has, {len(x)}, got {len(self.v)}; make them agree.")
        s = float(self.v @ x)
        return self.weight * self.loss.value(s, self.y), (self.weight * self.loss.slope(s, self.y)) * self.v


def linear(g: ArrayLike) -> Linear:
    """`f(x) = g·x`."""
    return Linear(check.array("g", g))


def absolute(v: ArrayLike, y: float) -> OfScore:
    """`f(x) = |v·x - y|`."""
    return OfScore(SCALAR_LOSSES["absolute"], check.array("v", v), y)


def squared(v: ArrayLike, y: float) -> OfScore:
    """`f(x) = ½ (v·x - y)²`."""
    return OfScore(SCALAR_LOSSES["squared"], check.array("v", v), y)


def logistic(v: ArrayLike, y: float) -> OfScore:
    """`f(x) = ln(1 + exp(-y v·x))`, y = ±1."""
    return OfScore(SCALAR_LOSSES["logistic"], check.array("v", v), y)


def hinge(v: ArrayLike, y: float) -> OfScore:
    """`f(x) = (1 - y v·x)_+`, y = ±1."""
    return OfScore(SCALAR_LOSSES["hinge"], check.array("v", v), y)
