"""AdaGrad: gradient descent with a rate for each coordinate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import refuse_hint
from ftprl.errors import InvalidInput
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import FeasibleSet

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaGradState(LearnerState):
    """`G` = the sum of g_i²."""

    G: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaGrad(Learner[AdaGradState]):
    """x_{t+1} = argmin over F of |x - (x_t - rate g/sqrt G)| in the norm of diag(sqrt G) (Duchi, Hazan, Singer).

    `rate` is a number or one a coordinate; None takes max D_i / sqrt 2, the choice of its regret bound.
    """

    feasible: FeasibleSet
    rate: ArrayLike | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        if self.rate is None and not np.isfinite(self.feasible.widths()).all():
            raise InvalidInput(f"AdaGrad needs a bounded set or a rate, got {self.feasible!r} and none; pass rate=0.1.")
        if self.rate is not None:
            rate = check.finite("rate", check.array("rate", self.rate))
            if rate.ndim:
                check.vector("rate", rate, self.feasible.dim)
            if np.any(rate <= 0):
                raise InvalidInput(f"rate needs numbers above 0, got {rate.min():g}; pass positive rates.")

    def init(self, hint: ArrayLike | None = None) -> AdaGradState:
        """The start."""
        refuse_hint(hint, "AdaGrad")
        return AdaGradState(starting_point(self.feasible, self.start), 0, np.zeros(self.feasible.dim))

    def advance(self, state: AdaGradState, g: Vector, hint: Vector | None) -> AdaGradState:
        """One step; coordinates without a gradient so far stay where they are."""
        refuse_hint(hint, "AdaGrad")
        G = state.G + g * g
        rate = self.feasible.widths().max() / np.sqrt(2.0) if self.rate is None else np.asarray(self.rate, dtype=float)
        if not np.all(rate):  # a single point
            return AdaGradState(state.x, state.t + 1, G)
        # ½ sum (s_i/rate_i)(x_i - u_i)² with u = x - rate g / s: the gradient enters as it is.
        weights = np.sqrt(G) / rate
        x = self.feasible.argmin(weights, g - weights * state.x, state.x)
        return AdaGradState(x, state.t + 1, G)
