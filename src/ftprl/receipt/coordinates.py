"""Learned coordinates of a replay, some at a time: what `audit` sums over, whether there are classes or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.spec import Spec

Vector = NDArray[np.float64]
AT_ONCE = 1 << 14  # coordinates


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Some learned coordinates, one per row with one column per scale; `slots` is None for the intercept."""

    slots: NDArray[np.intp] | None
    z: Vector
    R: Vector
    S: Vector
    unit: Vector
    kappa: Vector
    rows: Vector | None  # how many rows had each; None where they are not counted
    copies: Vector  # how many coordinates each stands for: 1, or how many classes may still come

    def penalties(self, spec: Spec) -> tuple[Vector, Vector]:
        """l1 and l2 of each weight, which are in units of the features; the intercept has none."""
        free = self.slots is None
        return (0.0 if free else spec.l1) * self.unit, (0.0 if free else spec.l2) * self.unit**2


def hold_of(c: Coordinates, spec: Spec) -> Vector:
    """Q + l2 of each scale, 0 where nothing was met."""
    h = np.array(spec.scales)
    with np.errstate(divide="ignore", invalid="ignore"):
        own = np.where(c.kappa > 0, c.unit * (spec.beta * c.unit + c.R) / (h * c.kappa), 0.0)
    return np.asarray(own + c.penalties(spec)[1])


def played(c: Coordinates, spec: Spec, low: Vector, high: Vector) -> Vector:
    """The minimiser of ½ hold v² + z v + l1 |v| from low to high; the point nearest 0 where hold is 0."""
    hold, l1 = hold_of(c, spec), c.penalties(spec)[0]
    shrunk = np.where(c.z > 0, np.minimum(l1 - c.z, 0.0), np.maximum(-c.z - l1, 0.0))
    x = np.divide(shrunk, hold, out=np.zeros_like(shrunk), where=hold > 0)
    return np.asarray(np.minimum(np.maximum(x, low), high))
