"""The scalar losses: all formulas of a loss, and one entry each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ftprl.errors import InvalidInput
from ftprl.losses.scalar import CLAMP, Arrays, LabelUnits, ReplayFormulas, ScalarLoss, Vector, clamp

_FLAT = 0.125  # a loss with a kink is taken for this part of the density at its kink
_LEAST_LOSS = 2.0**-10  # in units of the labels
_LEAST_CURVATURE = 2.0**-13


def _sign(d: float) -> float:
    return 1.0 if d > 0 else (-1.0 if d < 0 else 0.0)


def _softplus(v: float) -> float:
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


def _sigmoid(v: float) -> float:
    if v >= 0:
        return 1.0 / (1.0 + math.exp(-v))
    e = math.exp(v)
    return e / (1.0 + e)


def _chance(v: float) -> float:
    e = math.exp(-abs(v))
    return (e if v < 0.0 else 1.0) / (1.0 + e)


def _cut(v: float, low: float, high: float) -> float:
    return low if v < low else min(v, high)


def _margin(s: float, y: float) -> float:
    return max(1.0 - y * s, 0.0)


def _twice(value: float) -> tuple[float, float]:
    """A term that is the difference of nothing larger than itself."""
    return value, value


def _near_level(base: float, y: float, units: LabelUnits) -> float:
    return _cut((y - base) / units.unit, -2.0, 2.0)


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
    c = np.clip(s, -CLAMP, CLAMP)
    mean = np.exp(c)
    return mean - y * c, mean - y, mean


def _gamma(s: Vector, y: Vector) -> Arrays:
    c = np.clip(s, -CLAMP, CLAMP)
    ratio = y * np.exp(-c)
    return ratio + c, 1.0 - ratio, ratio


def _hinge_stack(f: float, base: float, y: float, mean: float, units: LabelUnits) -> tuple[float, float, float]:
    right, wrong = _chance(y * f), _chance(-y * f)
    return -y * wrong, max(right * wrong, _LEAST_CURVATURE), y * _chance(-y * base)


_HINGE = ReplayFormulas(
    slope_after_step=lambda s, y, A, units: (
        (-y * (min(2.0 * _margin(s, y) / A, 1.0) if A > 0 else 1.0)) if _margin(s, y) > 0 else 0.0
    ),
    row_term=lambda s, y, a, units: _twice(_margin(s, y) * (1.0 + y * a)),
    stack=_hinge_stack,
)


def _squared_hinge_stack(f: float, base: float, y: float, mean: float, units: LabelUnits) -> tuple[float, float, float]:
    gap = _margin(f, y)
    return -y * gap, 1.0 if gap > 0 else 0.0, y * _margin(base, y)


_SQUARED_HINGE = ReplayFormulas(
    slope_after_step=lambda s, y, A, units: -y * _margin(s, y) / (1.0 + A),
    row_term=lambda s, y, a, units: _twice(_half_square(_margin(s, y) + y * a)),
    stack=_squared_hinge_stack,
)

_SQUARED = ReplayFormulas(
    slope_after_step=lambda s, y, A, units: (s - y) / (1.0 + A),
    row_term=lambda s, y, a, units: _twice(_half_square((s - y) - a)),
    stack=lambda f, base, y, mean, units: ((f - y) / units.unit, 1.0, (y - base) / units.unit),
)

_ABSOLUTE = ReplayFormulas(
    slope_after_step=lambda s, y, A, units: _cut((s - y) / A, -1.0, 1.0) if A > 0 else _sign(s - y),
    row_term=lambda s, y, a, units: _twice(abs(s - y) * (1.0 - abs(a))),
    stack=lambda f, base, y, mean, units: (
        _sign(f - y),
        _FLAT * units.unit / max(mean, _LEAST_LOSS * units.unit),
        _near_level(base, y, units),
    ),
)


def _huber_term(s: float, y: float, a: float, units: LabelUnits) -> tuple[float, float]:
    size, rest = abs(s - y), 1.0 - abs(a)
    return _twice(_half_square(size - abs(a)) if size <= 1.0 else (size - 1.0) * rest + _half_square(rest))


_HUBER = ReplayFormulas(
    slope_after_step=lambda s, y, A, units: _cut((s - y) / (1.0 + A), -1.0, 1.0),
    row_term=_huber_term,
    stack=lambda f, base, y, mean, units: (
        _cut(f - y, -1.0, 1.0) / units.psi,
        (units.unit / units.psi) * (1.0 if mean <= 1.0 else _FLAT / mean),
        _near_level(base, y, units),
    ),
)


def _log_link_size(mean: float, e: float, s: float, p: float) -> float:
    """The size of the numbers whose difference a row term is; p is the score at which the tangent touches."""
    return (mean + e) * (1.0 + abs(s - p)) * (1.0 + abs(s) + abs(p))


def _poisson_after_step(s: float, y: float, A: float, units: LabelUnits) -> float:
    e = math.exp(s)
    return ((e - y) / units.unit) / (1.0 + A * max(e, y) / units.unit)


def _poisson_term(s: float, y: float, a: float, units: LabelUnits) -> tuple[float, float]:
    e, mean = math.exp(s), y + a * units.unit
    if not mean > 0:
        return _twice(e / units.unit)
    p = math.log(mean)
    value = max(mean * (math.expm1(s - p) - (s - p)), 0.0)
    return value / units.unit, _log_link_size(mean, e, s, p) / units.unit


def _poisson_stack(f: float, base: float, y: float, mean: float, units: LabelUnits) -> tuple[float, float, float]:
    e = math.exp(f)
    return (e - y) / units.unit, max(e, y) / units.unit, (y - math.exp(base)) / units.unit


_POISSON = ReplayFormulas(
    slope_after_step=_poisson_after_step,
    row_term=_poisson_term,
    stack=_poisson_stack,
    least=lambda y: y - y * math.log(y) if y > 0 else 0.0,
    linear_part=lambda s, y: y * s,
)


def _gamma_after_step(s: float, y: float, A: float, units: LabelUnits) -> float:
    ratio = y * math.exp(-s)
    return (1.0 - ratio) / (1.0 + A * max(1.0, ratio))


def _gamma_term(s: float, y: float, a: float, units: LabelUnits) -> tuple[float, float]:
    mean, ratio = 1.0 - a, y * math.exp(-s)
    if not mean > 0:
        return _twice(ratio)
    p = math.log(y / mean)
    return max(mean * (math.expm1(-(s - p)) + (s - p)), 0.0), _log_link_size(mean, ratio, s, p)


def _gamma_stack(f: float, base: float, y: float, mean: float, units: LabelUnits) -> tuple[float, float, float]:
    ratio = y * math.exp(-f)
    return 1.0 - ratio, max(1.0, ratio), y * math.exp(-base) - 1.0


_GAMMA = ReplayFormulas(
    slope_after_step=_gamma_after_step,
    row_term=_gamma_term,
    stack=_gamma_stack,
    least=lambda y: 1.0 + math.log(y),
    linear_part=lambda s, y: s,
)


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

    def term(s: float, y: float, a: float, units: LabelUnits) -> tuple[float, float]:
        return _twice((s - y) * ((1.0 - tau) - a) if s - y > 0 else -(s - y) * (tau + a))

    def stack(f: float, base: float, y: float, mean: float, units: LabelUnits) -> tuple[float, float, float]:
        curvature = _FLAT * (tau * (1.0 - tau)) * units.unit / max(mean, _LEAST_LOSS * units.unit)
        return slope(f, y), curvature, _near_level(base, y, units)

    return ScalarLoss(
        name="quantile",
        rule="quantile",
        value=value,
        slope=slope,
        arrays=arrays,
        replay=ReplayFormulas(
            slope_after_step=lambda s, y, A, units: _cut((s - y) / A, -tau, 1.0 - tau) if A > 0 else slope(s, y),
            row_term=term,
            stack=stack,
        ),
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
        unit="log loss (nats)",
    ),
    ScalarLoss(
        name="hinge",
        rule="classes",
        value=lambda s, y: max(1.0 - y * s, 0.0),
        slope=lambda s, y: -y if y * s < 1.0 else 0.0,
        arrays=_hinge,
        replay=_HINGE,
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
        replay=_SQUARED_HINGE,
        labels="signs",
        baseline="majority",
        unit="squared hinge loss",
    ),
    ScalarLoss(
        name="squared",
        value=lambda s, y: _half_square(s - y),
        slope=lambda s, y: s - y,
        arrays=_squared,
        replay=_SQUARED,
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
        replay=_ABSOLUTE,
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
        replay=_HUBER,
        unit="Huber loss",
    ),
    ScalarLoss(
        name="poisson",
        rule="log_mean",
        value=lambda s, y: math.exp(clamp(s)) - y * clamp(s),
        slope=lambda s, y: math.exp(clamp(s)) - y,
        arrays=_poisson,
        replay=_POISSON,
        labels="nonnegative",
        link="log",
        baseline="log_mean",
        unit="Poisson loss",
        explanation="the negative Poisson log likelihood, up to a constant of the labels",
    ),
    ScalarLoss(
        name="gamma",
        rule="log_ratio",
        value=lambda s, y: y * math.exp(-clamp(s)) + clamp(s),
        slope=lambda s, y: 1.0 - y * math.exp(-clamp(s)),
        arrays=_gamma,
        replay=_GAMMA,
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


def check_tau(tau: object, loss: str) -> None:
    """Refuse a quantile for a loss that estimates none."""
    if loss in LOSSES and LOSSES[loss].tau is None:
        raise InvalidInput(
            f"tau= needs loss=quantile, got tau={tau} and loss={loss}; drop it, or pass loss=quantile.",
            option=("tau", "loss"),
        )


def scalar_loss(name: str, tau: float = 0.5) -> ScalarLoss:
    """The loss of a name; `tau` is which quantile the quantile loss estimates.

    >>> scalar_loss("quantile", 0.9).tau
    0.9
    """
    loss = LOSSES[name]
    return loss if loss.tau is None else quantile(tau)
