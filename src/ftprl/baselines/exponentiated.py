"""Exponentiated gradient on the simplex (Kivinen and Warmuth; portfolios: Helmbold, Schapire, Singer and Warmuth)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import Rate, refuse_hint
from ftprl.errors import InvalidInput, Unsupported
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import ConvexSet, Simplex

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExponentiatedState(LearnerState):
    """The state of `ExponentiatedGradient`.

    `S` is g_{1:t}, `spread` the sum of (max g - min g)², and `prior` the logarithm of the first shares.
    """

    S: Vector
    spread: float
    prior: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExponentiatedGradient(Learner[ExponentiatedState]):
    """Exponentiated gradient on a simplex: x_{t+1,i} is proportional to x_{1,i} exp(-rate g_{1:t,i}).

    With a fixed rate this is proportional to x_{t,i} exp(-rate g_{t,i}), and on the simplex of total s the regret is at
    most s (ln n / rate + rate/8 · sum (max g - min g)²). `rate=None` takes sqrt(4 ln n / sum (max g - min g)²), which
    needs no tuning.

    >>> learner = ExponentiatedGradient(Simplex(2), rate=float(np.log(3.0)))
    >>> learner.update(learner.init(), [1.0, 0.0]).x.round(6)
    array([0.25, 0.75])
    """

    feasible: ConvexSet
    rate: Rate | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.feasible, Simplex):
            raise Unsupported(
                f"ExponentiatedGradient needs a Simplex, got {self.feasible!r}; use GradientDescent there."
            )
        if self.rate is not None and not callable(self.rate):
            check.positive("rate", self.rate)
        if self.start is not None and np.any(starting_point(self.feasible, self.start) <= 0):
            raise InvalidInput("start needs shares above 0, got one that is not: it could never grow; leave it out.")

    def init(self, hint: ArrayLike | None = None) -> ExponentiatedState:
        """Return the state before the first round: equal shares, or `start`."""
        refuse_hint(hint, "ExponentiatedGradient")
        x = starting_point(self.feasible, self.start)
        return ExponentiatedState(x, 0, np.zeros(self.feasible.dim), 0.0, np.log(x))

    def advance(self, state: ExponentiatedState, g: Vector, hint: Vector | None) -> ExponentiatedState:
        """Multiply each share by the exponential of its negative loss and restore the sum."""
        refuse_hint(hint, "ExponentiatedGradient")
        S, t = state.S + g, state.t + 1
        spread = state.spread + float(np.ptp(g)) ** 2
        score = state.prior - self._rate(t, spread) * S
        e = np.exp(score - score.max())  # the largest is 1: nothing overflows
        return ExponentiatedState(e * (state.x.sum() / e.sum()), t, S, spread, state.prior)

    def _rate(self, t: int, spread: float) -> float:
        if self.rate is None:
            return math.sqrt(4 * math.log(max(self.feasible.dim, 2)) / spread) if spread else 0.0
        return check.positive("rate", self.rate(t)) if callable(self.rate) else self.rate
