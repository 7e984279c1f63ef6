"""The table of scalar losses: all formulas, and one entry per loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from ftprl.errors import InvalidInput
from ftprl.losses.scalar import CLAMP, Arrays, ScalarLoss, Vector, clamp


def _sign(d: float) -> float:
    """Return the sign of a number, 0 for 0."""
    return 1.0 if d > 0 else (-1.0 if d < 0 else 0.0)


def _softplus(v: float) -> float:
    """Return ln(1 + e^v) without overflow."""
    return max(v, 0.0) + math.log1p(math.exp(-abs(v)))


def _sigmoid(v: float) -> float:
    """Return 1/(1 + e^-v) without overflow."""
    if v >= 0:
        return 1.0 / (1.0 + math.exp(-v))
    e = math.exp(v)
    return e / (1.0 + e)


def _half_square(d: float) -> float:
    """Return d²/2."""
    return 0.5 * (d * d)  # a product is correctly rounded; a power may not be


def _logistic(s: Vector, y: Vector) -> Arrays:
    """Return losses, slopes and curvatures of the logistic loss."""
    wrong = 0.5 * (1.0 + np.tanh(-0.5 * y * s))  # the probability of the other label
    return np.logaddexp(0.0, -y * s), -y * wrong, wrong * (1.0 - wrong)


def _hinge(s: Vector, y: Vector) -> Arrays:
    """Return losses and slopes of the hinge loss."""
    short = 1.0 - y * s
    return np.maximum(short, 0.0), np.where(short > 0, -y, 0.0), None


def _squared_hinge(s: Vector, y: Vector) -> Arrays:
    """Return losses, slopes and curvatures of the squared hinge loss."""
    short = np.maximum(1.0 - y * s, 0.0)
    return 0.5 * short * short, -y * short, (short > 0).astype(np.float64)


def _squared(s: Vector, y: Vector) -> Arrays:
    """Return losses, slopes and curvatures of the squared loss."""
    return 0.5 * (s - y) ** 2, s - y, np.ones_like(s)


def _absolute(s: Vector, y: Vector) -> Arrays:
    """Return losses and slopes of the absolute loss."""
    return np.abs(s - y), np.sign(s - y), None


def _huber(s: Vector, y: Vector) -> Arrays:
    """Return losses, slopes and curvatures of the Huber loss."""
    d = s - y
    near = np.abs(d) <= 1.0
    return np.where(near, 0.5 * d * d, np.abs(d) - 0.5), np.clip(d, -1.0, 1.0), near.astype(np.float64)


def _poisson(s: Vector, y: Vector) -> Arrays:
    """Return losses, slopes and curvatures of the Poisson loss."""
    c = np.clip(s, -CLAMP, CLAMP)
    mean = np.exp(c)
    return mean - y * c, mean - y, mean


def _gamma(s: Vector, y: Vector) -> Arrays:
    """Return losses, slopes and curvatures of the gamma loss."""
    c = np.clip(s, -CLAMP, CLAMP)
    ratio = y * np.exp(-c)
    return ratio + c, 1.0 - ratio, ratio


def quantile(tau: float) -> ScalarLoss:
    """Return the pinball loss `tau (y-s)_+ + (1-tau)(s-y)_+` for the quantile `tau`.

    >>> quantile(0.9).value(1.0, 2.0)
    0.9
    """
    if not 0.0 < tau < 1.0:
        raise InvalidInput(f"tau needs a number above 0 and below 1, got {tau!r}; 0.5 estimates the median.")

    def slope(s: float, y: float) -> float:
        """Return the slope in the score."""
        return 0.0 if s == y else (1.0 - tau if s > y else -tau)

    def value(s: float, y: float) -> float:
        """Return the loss of one score."""
        return tau * max(y - s, 0.0) + (1.0 - tau) * max(s - y, 0.0)

    def arrays(s: Vector, y: Vector) -> Arrays:
        """Return losses and slopes of many scores."""
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
        value=lambda s, y: math.exp(clamp(s)) - y * clamp(s),
        slope=lambda s, y: math.exp(clamp(s)) - y,
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
        value=lambda s, y: y * math.exp(-clamp(s)) + clamp(s),
        slope=lambda s, y: 1.0 - y * math.exp(-clamp(s)),
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
    """Return a loss for several classes, a function of the log probability of the label."""
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


# The losses for several classes: see docs/classes.md.
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
    """Return True if the loss of this name predicts the probability of the label 1; False for an unknown name.

    >>> predicts_probabilities("logistic"), predicts_probabilities("hinge"), predicts_probabilities("x")
    (True, False, False)
    """
    return name in LOSSES and LOSSES[name].is_probabilistic


# Names that other libraries use for the losses, to suggest ours.
_OTHER_NAMES = {
    "squared": ("mse", "rmse", "l2", "regression", "squarederror", "squaredloss", "meansquarederror", "leastsquares"),
    "absolute": ("mae", "l1", "absoluteerror", "meanabsoluteerror"),
    "logistic": ("log", "logloss", "binary", "binarylogistic", "binarycrossentropy", "bce"),
    "logistic or, for several classes, softmax": ("crossentropy", "classification"),
    "softmax": ("multiclass", "multinomial", "categoricalcrossentropy"),
    "ovr": ("onevsrest", "ova", "oaa"),
    "quantile": ("pinball",),
}


def check_loss(name: object) -> None:
    """Raise InvalidInput for an unknown name of a loss, and suggest the one that was probably meant.

    >>> check_loss("mse")
    Traceback (most recent call last):
    ftprl.errors.InvalidInput: loss= needs a known name, got 'mse'; did you mean squared?
    """
    if isinstance(name, str) and name in LOSSES:
        return
    from difflib import get_close_matches

    plain = "".join(letter for letter in str(name).lower() if letter.isalnum())
    meant = next((known for known, others in _OTHER_NAMES.items() if plain in others), "")
    meant = meant or next(iter(get_close_matches(plain, LOSSES, 1)), "")
    remedy = f"did you mean {meant}?" if meant else f"use one of {', '.join(LOSSES)}."
    raise InvalidInput(f"loss= needs a known name, got {name!r:.60}; {remedy}")


def check_tau(tau: object, loss: str) -> None:
    """Raise InvalidInput if `tau` is passed with a loss that estimates no quantile."""
    if loss in LOSSES and LOSSES[loss].tau is None:
        raise InvalidInput(
            f"tau= needs loss=quantile, got tau={tau} and loss={loss}; drop it, or pass loss=quantile.",
            option=("tau", "loss"),
        )


def scalar_loss(name: str, tau: float = 0.5) -> ScalarLoss:
    """Return the loss of this name; `tau` is the quantile that the quantile loss estimates.

    >>> scalar_loss("quantile", 0.9).tau
    0.9
    """
    loss = LOSSES[name]
    return loss if loss.tau is None else quantile(tau)
