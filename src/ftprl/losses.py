"""The scalar losses of a linear model, one table for both halves, and losses of a point x."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]
LARGEST_LABEL = 1e30  # no label, weight or value is larger: no product of them leaves the range of a float
_CLAMP = 60.0  # scores with a log link are cut to ±60: e^60 is beyond any count, and nothing overflows

# -1 and 1; y >= 0; y > 0; any y; the number of a class, from 0 on
Labels = Literal["signs", "nonnegative", "positive", "numbers", "classes"]
Link = Literal["identity", "logit", "log", "classes"]  # what a score is to the mean of the label
# Which offset, unit and range of the scores follow from the labels so far: docs/labels.md.
LabelRule = Literal["none", "classes", "mean", "quantile", "median_of_unit", "log_mean", "log_ratio"]
Arrays = tuple[Vector, Vector, Vector | None]  # losses, slopes and curvatures of many scores; None with kinks


_RULES: Mapping[Labels, str] = {
    "signs": "y = -1 or 1",
    "nonnegative": "y >= 0",
    "positive": "y > 0",
    "numbers": "|y| <= 1e30",
    "classes": "y = 0, 1, 2, ...",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarLoss:
    """A convex loss of a score `s` with label `y`, and all that the rest of ftprl needs to know of it.

    `value(s, y)` and a subgradient `slope(s, y)` (0 at kinks) are those of the compiled core, in the same order of
    operations; `arrays(s, y)` gives losses, slopes and curvatures of many rows at once. `labels` says which labels it
    takes, `link` what a score means, `rule` how scores follow the unit and the range of the labels, and `baseline`
    which prediction from earlier labels it is compared with. `unit` labels an axis, `explanation` follows a mean loss.

    >>> SCALAR_LOSSES["poisson"].link, SCALAR_LOSSES["poisson"].labels
    ('log', 'nonnegative')
    """

    name: str
    value: Callable[[float, float], float]
    slope: Callable[[float, float], float]
    arrays: Callable[[Vector, Vector], Arrays]
    labels: Labels = "numbers"
    link: Link = "identity"
    rule: LabelRule = "none"
    baseline: str = "mean"  # base_rate, mean, log_mean, median, quantile, majority or class_rates
    rmse: bool = False  # whether sqrt(2 mean) is the root mean squared error
    tau: float | None = None  # of the quantile loss
    learns_in_rounds: bool = False  # whether `round_rows` may be above 1 (docs/rounds.md)
    one_vs_rest: bool = False  # whether each class is learned against all others
    stack_gain: float = 1.0  # of the coefficients of a stack, as in src/core/learners/losses.cpp
    unit: str = ""
    explanation: str = ""

    @property
    def binary(self) -> bool:
        """Whether labels are -1 and 1."""
        return self.labels == "signs"

    @property
    def is_classification(self) -> bool:
        """Whether labels are classes, two or more; losses are then of the order of 1."""
        return self.binary or self.has_classes

    @property
    def has_classes(self) -> bool:
        """Whether labels are numbers of classes, each of which has a score of its own (docs/classes.md)."""
        return self.labels == "classes"

    @property
    def has_units(self) -> bool:
        """Whether scores follow the labels: every loss but the log losses, whose scores have no unit."""
        return self.rule != "none"

    @property
    def has_offset(self) -> bool:
        """Whether scores are counted from an offset that follows the labels."""
        return self.rule not in ("none", "classes")

    @property
    def predicts_labels(self) -> bool:
        """Whether scores are in the unit of the labels."""
        return self.has_offset and self.link != "log"

    @property
    def has_kink(self) -> bool:
        """Whether weights are in a unit of their own, kappa."""
        return self.rule in ("quantile", "median_of_unit")

    @property
    def divides_rows(self) -> bool:
        """Whether a receipt divides each row by the mean of the labels up to it: counts (docs/receipt-reference.md)."""
        return self.rule == "log_mean"

    @property
    def is_probabilistic(self) -> bool:
        """Whether a prediction is the probability of the label 1."""
        return self.link == "logit"

    @property
    def has_deviance(self) -> bool:
        """Whether it is half a deviance, up to a constant of the labels: the losses with a log link."""
        return self.link == "log"

    def mean(self, scores: Vector) -> Vector:
        """What scores predict: a probability with a logit link, e^score with a log link, otherwise the score itself."""
        if self.link == "logit":
            return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))
        return np.asarray(np.exp(np.clip(scores, -_CLAMP, _CLAMP))) if self.link == "log" else scores

    def mean_of(self, score: float) -> float:
        """The same of one score, to the bit."""
        if self.link == "logit":
            return 0.5 * (1.0 + float(np.tanh(0.5 * score)))
        return float(np.exp(_clamp(score))) if self.link == "log" else score

    def accepts(self, y: Vector) -> NDArray[np.bool_]:
        """Which labels it takes; a missing one (NaN) is fine.

        >>> SCALAR_LOSSES["poisson"].accepts(np.array([2.0, -1.0, np.nan])).tolist()
        [True, False, True]
        """
        if self.labels == "signs":
            fits = np.abs(y) == 1.0
        elif self.labels == "classes":
            fits = (y >= 0.0) & (y == np.floor(y))
        else:
            fits = np.abs(y) <= LARGEST_LABEL
            if self.labels == "nonnegative":
                fits &= y >= 0.0
            elif self.labels == "positive":
                fits &= y > 0.0
        return np.asarray(fits | (y != y))


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
    c = np.clip(s, -_CLAMP, _CLAMP)
    mean = np.exp(c)
    return mean - y * c, mean - y, mean


def _gamma(s: Vector, y: Vector) -> Arrays:
    c = np.clip(s, -_CLAMP, _CLAMP)
    ratio = y * np.exp(-c)
    return ratio + c, 1.0 - ratio, ratio


def quantile(tau: float) -> ScalarLoss:
    """The pinball loss `tau (y-s)_+ + (1-tau)(s-y)_+`.

    >>> quantile(0.9).value(1.0, 2.0)
    0.9
    """
    if not 0.0 < tau < 1.0:
        raise InvalidInput(f"tau needs a number above 0 and below 1, got {tau!r}; 0.5 estimates the median.")

    def slope(s: float, y: float) -> float:
        return 0.0 if s == y else (1.0 - tau if s > y else -tau)

    def value(s: float, y: float) -> float:
        return tau * max(y - s, 0.0) + (1.0 - tau) * max(s - y, 0.0)

    def arrays(s: Vector, y: Vector) -> Arrays:
        losses = tau * np.maximum(y - s, 0.0) + (1.0 - tau) * np.maximum(s - y, 0.0)
        return losses, np.where(s > y, 1.0 - tau, np.where(s < y, -tau, 0.0)), None

    return ScalarLoss(
        name="quantile",
        rule="quantile",
        value=value,
        slope=slope,
        arrays=arrays,
        baseline="quantile",
        tau=tau,
        unit="quantile loss",
        explanation="the mean pinball loss, in the unit of the label",
    )


_TABLE = (
    ScalarLoss(
        name="logistic",
        value=lambda s, y: _softplus(-y * s),
        slope=lambda s, y: -y * _sigmoid(-y * s),
        arrays=_logistic,
        labels="signs",
        link="logit",
        baseline="base_rate",
        learns_in_rounds=True,
        unit="log loss (nats)",
    ),
    ScalarLoss(
        name="hinge",
        rule="classes",
        value=lambda s, y: max(1.0 - y * s, 0.0),
        slope=lambda s, y: -y if y * s < 1.0 else 0.0,
        arrays=_hinge,
        labels="signs",
        baseline="majority",
        stack_gain=4.0,
        unit="hinge loss",
    ),
    ScalarLoss(
        name="squared_hinge",
        rule="classes",
        value=lambda s, y: _half_square(max(1.0 - y * s, 0.0)),
        slope=lambda s, y: -y * max(1.0 - y * s, 0.0),
        arrays=_squared_hinge,
        labels="signs",
        baseline="majority",
        unit="squared hinge loss",
    ),
    ScalarLoss(
        name="squared",
        value=lambda s, y: _half_square(s - y),
        slope=lambda s, y: s - y,
        arrays=_squared,
        rule="mean",
        rmse=True,
        unit="squared loss",
    ),
    ScalarLoss(
        name="absolute",
        rule="quantile",
        value=lambda s, y: abs(s - y),
        slope=lambda s, y: _sign(s - y),
        arrays=_absolute,
        baseline="median",
        unit="absolute loss",
        explanation="the mean absolute error",
    ),
    quantile(0.5),
    ScalarLoss(
        name="huber",
        rule="median_of_unit",
        value=lambda s, y: _half_square(s - y) if abs(s - y) <= 1.0 else abs(s - y) - 0.5,
        slope=lambda s, y: min(max(s - y, -1.0), 1.0),
        arrays=_huber,
        unit="Huber loss",
    ),
    ScalarLoss(
        name="poisson",
        rule="log_mean",
        value=lambda s, y: math.exp(_clamp(s)) - y * _clamp(s),
        slope=lambda s, y: math.exp(_clamp(s)) - y,
        arrays=_poisson,
        labels="nonnegative",
        link="log",
        baseline="log_mean",
        unit="Poisson loss",
        explanation="the negative Poisson log likelihood, up to a constant of the labels",
    ),
    ScalarLoss(
        name="gamma",
        rule="log_ratio",
        value=lambda s, y: y * math.exp(-_clamp(s)) + _clamp(s),
        slope=lambda s, y: 1.0 - y * math.exp(-_clamp(s)),
        arrays=_gamma,
        labels="positive",
        link="log",
        baseline="log_mean",
        unit="gamma loss",
        explanation="the negative gamma log likelihood of shape 1, up to a constant of the labels",
    ),
)
SCALAR_LOSSES: Mapping[str, ScalarLoss] = MappingProxyType({loss.name: loss for loss in _TABLE})


def _of_classes(name: str, explanation: str, *, one_vs_rest: bool = False) -> ScalarLoss:
    """A loss of several classes, as a function of the logarithm of the probability of the label."""
    return ScalarLoss(
        name=name,
        one_vs_rest=one_vs_rest,
        value=lambda s, y: -s,
        slope=lambda s, y: -1.0,
        arrays=lambda s, y: (-s, np.full_like(s, -1.0), np.zeros_like(s)),
        labels="classes",
        link="classes",
        baseline="class_rates",
        unit="log loss (nats)",
        explanation=explanation,
    )


# The losses of several classes: docs/classes.md.
CLASS_LOSSES: Mapping[str, ScalarLoss] = MappingProxyType(
    {
        "softmax": _of_classes("softmax", "minus the log of the probability of the class, classes learned together"),
        "ovr": _of_classes(
            "ovr",
            "minus the log of the probability of the class, each class learned against the rest",
            one_vs_rest=True,
        ),
    }
)
LOSSES: Mapping[str, ScalarLoss] = MappingProxyType({**SCALAR_LOSSES, **CLASS_LOSSES})


def predicts_probabilities(name: str) -> bool:
    """Whether the loss of this name predicts the probability of the label 1; False for a name that is not known.

    >>> predicts_probabilities("logistic"), predicts_probabilities("hinge"), predicts_probabilities("x")
    (True, False, False)
    """
    return name in LOSSES and LOSSES[name].is_probabilistic


def scalar_loss(name: str, tau: float = 0.5) -> ScalarLoss:
    """The loss of a name; `tau` is which quantile the quantile loss estimates.

    >>> scalar_loss("quantile", 0.9).tau
    0.9
    """
    loss = LOSSES[name]
    return loss if loss.tau is None else quantile(tau)


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
        if not self.loss.accepts(np.array(self.y)):
            rule = _RULES[self.loss.labels]
            raise InvalidInput(f"{self.loss.name} needs {rule}, got {self.y!r}; map the labels first.")

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
