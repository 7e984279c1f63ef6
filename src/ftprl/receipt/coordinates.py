"""Learned coordinates of a replay, some at a time: what `audit` sums over, whether there are classes or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

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
    copies: Vector | None = None  # of several classes, how many each stands for

    @property
    def counts(self) -> Vector:
        """How many coordinates each stands for."""
        return np.ones(len(self.z)) if self.copies is None else self.copies[:, 0]
