"""Online gradient descent with one rate for all coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput, Unsupported
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import FeasibleSet

Vector = NDArray[np.float64]


def refuse_hint(hint: ArrayLike | None, who: str) -> None:
    """The baselines have no use for a guess of the next gradient, and say so."""
    if hint is not None:
        raise Unsupported(f"{who} takes no hint; use FTPRL, or leave the hint out.")


@final
@dataclass(frozen=True, slots=True, eq=False)
class DescentState(LearnerState):
    """`G` = the sum of |g|²."""

    G: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class GradientDescent(Learner[DescentState]):
    """x_{t+1} = the point of F nearest to x_t - rate·g_t (Zinkevich).

    `rate` is a number, a function of t = 1, 2, ..., or None for D / sqrt(2 sum |g_s|²), which needs no tuning.
    """

    feasible: FeasibleSet
    rate: float | Callable[[int], float] | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.rate is None and not math.isfinite(self.feasible.diameter()):
            raise InvalidInput(
                f"GradientDescent needs a bounded set or a rate, got {self.feasible!r} and none; pass rate=0.1."
            )
        if self.rate is not None and not callable(self.rate):
            check.positive("rate", self.rate)

    def init(self, hint: ArrayLike | None = None) -> DescentState:
        """The start."""
        refuse_hint(hint, "GradientDescent")
        return DescentState(starting_point(self.feasible, self.start), 0, 0.0)

    def advance(self, state: DescentState, g: Vector, hint: Vector | None) -> DescentState:
        """One step against the gradient, and back into F."""
        refuse_hint(hint, "GradientDescent")
        G, t = state.G + float(g @ g), state.t + 1
        if self.rate is None:
            eta = self.feasible.diameter() / math.sqrt(2 * G) if G else 0.0
        else:
            eta = check.positive("rate", self.rate(t)) if callable(self.rate) else self.rate
        target = state.x - eta * g
        return DescentState(self.feasible.argmin(np.array(1.0), -target, state.x), t, G)
