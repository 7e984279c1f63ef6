"""The scalar losses of a linear model, one entry each for the whole package, and losses of a point x."""

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
Arrays = tuple[Vector, Vector, Vector | None]
_CLAMP = 60.0  # of scores with a log link: their mean is e^score
_LARGEST_LABEL = 1e30


def _same(scores: Vector) -> Vector:
    return scores


def _probability(scores: Vector) -> Vector:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))


def _exponential(scores: Vector) -> Vector:
    return np.asarray(np.exp(np.clip(scores, -_CLAMP, _CLAMP)))


@final
@dataclass(frozen=True, slots=True)
class ScalarLoss:
    """A convex loss of a score `s` with label `y`, and all that the package needs to know about it.

    `value(s, y)` is the loss and `slope(s, y)` a subgradient, 0 at kinks, with the bits of the compiled core; `many`
    gives value, slope and curvature (None with kinks) of arrays. The entry of the same name in
    src/core/learners/losses.cpp is compared with this one by a test.

    >>> SCALAR_LOSSES["squared"].value(1.0, 3.0)
    2.0
    """

    name: str
    value: Callable[[float, float], float]
    slope: Callable[[float, float], float]
    many: Callable[[Vector, Vector], Arrays]
    labels: str = "numbers"  # signs (-1 and 1), nonnegative, positive, or numbers
    mixing: str = "hedge"  # how the predictions of several scales are combined: log_loss, squared or hedge
    clip: float = math.inf  # scores are mixed within [-clip, clip]
    mean: Callable[[Vector], Vector] = _same  # from scores to predictions
    with_tau: Callable[[float], ScalarLoss] | None = None  # the loss of another tau, for one that has it
    rmse: bool = False  # whether sqrt(2 mean) is the root mean squared error
    baseline: str = "mean"  # what predicts a label from those before it: base_rate, mean, log_mean, median, ...
    title: str = ""  # what the loss is called in a sentence; the name unless it is given
    unit: str = ""  # of the loss, on an axis
    note: str = ""  # what the mean loss is, in a report

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return self.labels == "signs"

    @property
    def predicts_probability(self) -> bool:
        """Whether a prediction is the probability of the label 1, so that it can be calibrated."""
        return self.mixing == "log_loss"

    @property
    def words(self) -> str:
        """The loss in a sentence.

        >>> SCALAR_LOSSES["logistic"].words, SCALAR_LOSSES["squared_hinge"].words
        ('log loss', 'squared hinge loss')
        """
        return self.title or f"{self.name.replace('_', ' ')} loss"

    @property
    def axis(self) -> str:
        """The loss as the label of an axis, with its unit."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    def fits(self, y: Vector) -> NDArray[np.bool_]:
        """Which labels the loss takes; none of them is missing.

        >>> SCALAR_LOSSES["poisson"].fits(np.array([-1.0, 0.0, 2.5])).tolist()
        [False, True, True]
        """
        if self.labels == "signs":
            return np.asarray(np.abs(y) == 1)
        low = {"nonnegative": y >= 0, "positive": y > 0, "numbers": y >= -_LARGEST_LABEL}[self.labels]
        return np.asarray(low & (y <= _LARGEST_LABEL))


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
    return min(max(s, -_CLAMP), _CLAMP)


def _half_square(d: float) -> float:
    return 0.5 * (d * d)  # a product is correctly rounded; a power may not be


def _logistic(s: Vector, y: Vector) -> Arrays:
    wrong = 0.5 * (1.0 + np.tanh(-0.5 * y * s))  # the probability of the other label
    return np.logaddexp(0.0, -y * s), -y * wrong, wrong * (1.0 - wrong)


def _hinge(s: Vector, y: Vector) -> Arrays:
    short = 1.0 - y * s
    return np.maximum(short, 0.0), np.where(short > 0, -y, 0.0), None


def _squared_hinge(s: Vector, y: Vector) -> Arrays:
    short = np.maximum(1.0 - y * s, 0.0)
    return 0.5 * short * short, -y * short, (short > 0).astype(np.float64)


def _squared(s: Vector, y: Vector) -> Arrays:
    return 0.5 * (s - y) ** 2, s - y, np.ones_like(s)


def _absolute(s: Vector, y: Vector) -> Arrays:
    return np.abs(s - y), np.sign(s - y), None


def _huber(s: Vector, y: Vector) -> Arrays:
    d = s - y
    near = np.abs(d) <= 1.0
    return np.where(near, 0.5 * d * d, np.abs(d) - 0.5), np.clip(d, -1.0, 1.0), near.astype(np.float64)


def _poisson(s: Vector, y: Vector) -> Arrays:
    c, mean = np.clip(s, -_CLAMP, _CLAMP), _exponential(s)
    return mean - y * c, mean - y, mean


def _gamma(s: Vector, y: Vector) -> Arrays:
    part = y / _exponential(s)
    return part + np.clip(s, -_CLAMP, _CLAMP), 1.0 - part, part


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

    def many(s: Vector, y: Vector) -> Arrays:
        losses = tau * np.maximum(y - s, 0.0) + (1.0 - tau) * np.maximum(s - y, 0.0)
        return losses, np.where(s > y, 1.0 - tau, np.where(s < y, -tau, 0.0)), None

    return ScalarLoss("quantile", value, slope, many, with_tau=quantile, baseline="quantile")


_TABLE = (
    ScalarLoss(
        "logistic",
        lambda s, y: _softplus(-y * s),
        lambda s, y: -y * _sigmoid(-y * s),
        _logistic,
        labels="signs",
        mixing="log_loss",
        mean=_probability,
        baseline="base_rate",
        title="log loss",
        unit="nats",
    ),
    ScalarLoss(
        "hinge",
        lambda s, y: max(1.0 - y * s, 0.0),
        lambda s, y: -y if y * s < 1.0 else 0.0,
        _hinge,
        labels="signs",
        baseline="majority",
    ),
    ScalarLoss(
        "squared_hinge",
        lambda s, y: _half_square(max(1.0 - y * s, 0.0)),
        lambda s, y: -y * max(1.0 - y * s, 0.0),
        _squared_hinge,
        labels="signs",
        baseline="majority",
    ),
    ScalarLoss(
        "squared",
        lambda s, y: _half_square(s - y),
        lambda s, y: s - y,
        _squared,
        mixing="squared",
        rmse=True,
    ),
    ScalarLoss(
        "absolute",
        lambda s, y: abs(s - y),
        lambda s, y: _sign(s - y),
        _absolute,
        baseline="median",
        note="the mean absolute error",
    ),
    quantile(0.5),
    ScalarLoss(
        "huber",
        lambda s, y: _half_square(s - y) if abs(s - y) <= 1.0 else abs(s - y) - 0.5,
        lambda s, y: min(max(s - y, -1.0), 1.0),
        _huber,
    ),
    ScalarLoss(
        "poisson",
        lambda s, y: math.exp(_clamp(s)) - y * _clamp(s),
        lambda s, y: math.exp(_clamp(s)) - y,
        _poisson,
        labels="nonnegative",
        clip=_CLAMP,
        mean=_exponential,
        baseline="log_mean",
        note="up to a constant",
    ),
    ScalarLoss(
        "gamma",
        lambda s, y: y * math.exp(-_clamp(s)) + _clamp(s),
        lambda s, y: 1.0 - y * math.exp(-_clamp(s)),
        _gamma,
        labels="positive",
        clip=_CLAMP,
        mean=_exponential,
        baseline="log_mean",
        note="up to a constant",
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
        if not self.loss.fits(np.array(self.y)):
            domains = {"signs": "= -1 or 1", "nonnegative": ">= 0", "positive": "> 0", "numbers": "within 1e30"}
            domain = domains[self.loss.labels]
            raise InvalidInput(f"{self.loss.name} needs y {domain}, got {self.y!r}; map the labels first.")

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
