"""Losses of a point x, for games on a convex set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ftprl import check
from ftprl.errors import InvalidInput
from ftprl.losses.scalar import Labels, ScalarLoss, Vector
from ftprl.losses.table import SCALAR_LOSSES

_RULES: Mapping[Labels, str] = {
    "signs": "y = -1 or 1",
    "nonnegative": "y >= 0",
    "positive": "y > 0",
    "numbers": "|y| <= 1e30",
    "classes": "y = 0, 1, 2, ...",
}


@runtime_checkable
class Loss(Protocol):
    """A convex function of the point played, which returns its value and one subgradient."""

    def __call__(self, x: Vector) -> tuple[float, Vector]: ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """The linear loss `f(x) = g·x`.

    >>> Linear([1.0, 2.0])(np.array([3.0, 0.0]))
    (3.0, array([1., 2.]))
    """

    g: Vector

    def __post_init__(self) -> None:
        object.__setattr__(self, "g", check.vector("g", self.g))

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        return float(self.g @ x), self.g


@final
@dataclass(frozen=True, slots=True, eq=False)
class OfScore:
    """A scalar loss of a linear score: `f(x) = weight · loss(v·x, y)`."""

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
    """Return the loss `f(x) = g·x`."""
    return Linear(check.array("g", g))


def absolute(v: ArrayLike, y: float) -> OfScore:
    """Return the loss `f(x) = |v·x - y|`.

    >>> absolute([1.0, 0.0], 2.0)(np.array([0.5, 0.0]))
    (1.5, array([-1., -0.]))
    """
    return OfScore(SCALAR_LOSSES["absolute"], check.array("v", v), y)


def squared(v: ArrayLike, y: float) -> OfScore:
    """Return the loss `f(x) = ½ (v·x - y)²`.

    >>> squared([2.0], 1.0)(np.array([1.0]))
    (0.5, array([2.]))
    """
    return OfScore(SCALAR_LOSSES["squared"], check.array("v", v), y)


def logistic(v: ArrayLike, y: float) -> OfScore:
    """Return the loss `f(x) = ln(1 + exp(-y v·x))` for a label y = ±1.

    >>> round(logistic([1.0], +1)(np.array([0.0]))[0], 4)
    0.6931
    """
    return OfScore(SCALAR_LOSSES["logistic"], check.array("v", v), y)


def hinge(v: ArrayLike, y: float) -> OfScore:
    """Return the loss `f(x) = max(1 - y v·x, 0)` for a label y = ±1.

    >>> hinge([1.0], +1)(np.array([0.25]))
    (0.75, array([-1.]))
    """
    return OfScore(SCALAR_LOSSES["hinge"], check.array("v", v), y)
