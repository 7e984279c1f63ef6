"""Descent in two steps: a gradient step for the loss, then the exact step of the penalty."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import Rate, check_rate, nearest, rate_at, refuse_hint
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import ConvexSet, L2Ball

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FobosState(LearnerState):
    """The state of `Fobos`: `G` = the sum of |g|²."""

    G: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fobos(Learner[FobosState]):
    """Forward-backward splitting (FOBOS; Duchi and Singer 2009): a gradient step, then the penalty's own exact step.

    x_{t+1} = argmin over F of ½|x - (x_t - rate g_t)|² + rate·(l1 |x|₁ + ½ l2 |x|²). `rate` is as in `GradientDescent`,
    which is the special case without a penalty.

    >>> from ftprl.sets import Box
    >>> learner = Fobos(Box(-5, 5), rate=0.5, l1=1.0)
    >>> learner.update(learner.init(), [3.0]).x
    array([-1.])
    """

    feasible: ConvexSet
    rate: Rate | None = None
    l1: float = 0.0
    l2: float = 0.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check_rate(self.rate, self.feasible, "Fobos")
        check.positive("l1", self.l1, zero=True)
        check.positive("l2", self.l2, zero=True)

    def init(self, hint: ArrayLike | None = None) -> FobosState:
        """Return the state before the first round."""
        refuse_hint(hint, "Fobos")
        return FobosState(starting_point(self.feasible, self.start), 0, 0.0)

    def advance(self, state: FobosState, g: Vector, hint: Vector | None) -> FobosState:
        """Step along the gradient, then minimise with the penalty."""
        refuse_hint(hint, "Fobos")
        G, t = state.G + float(g @ g), state.t + 1
        eta = rate_at(self.rate, t, self.feasible, G)
        H, z = np.array(1.0 + eta * self.l2), eta * g - state.x
        l1 = eta * self.l1
        x = self.feasible.minimise_l1(H, z, l1, state.x).x if l1 else self.feasible.argmin(H, z, state.x)
        return FobosState(x, t, G)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pegasos(Learner[LearnerState]):
    """Pegasos: descent for losses plus ½ l2 |x|², x_{t+1} is the point of F nearest to (1 - 1/t) x_t - g_t / (l2 t).

    Shalev-Shwartz, Singer and Srebro (2007), where the loss is the hinge and F the ball of radius 1/sqrt l2 (`svm`).
    With |g + l2 x| <= B the regret, penalty included, is at most B² (1 + ln T) / (2 l2).

    >>> from ftprl.sets import Box
    >>> learner = Pegasos(Box(-5, 5), l2=0.5)
    >>> learner.update(learner.init(), [1.0]).x
    array([-2.])
    """

    feasible: ConvexSet
    l2: float
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("l2", self.l2)

    @staticmethod
    def svm(dim: int, l2: float) -> Pegasos:
        """Return Pegasos on the ball that contains the best weights of a support vector machine."""
        return Pegasos(L2Ball(dim, 1.0 / math.sqrt(check.positive("l2", l2))), l2)

    def init(self, hint: ArrayLike | None = None) -> LearnerState:
        """Return the state before the first round."""
        refuse_hint(hint, "Pegasos")
        return LearnerState(starting_point(self.feasible, self.start), 0)

    def advance(self, state: LearnerState, g: Vector, hint: Vector | None) -> LearnerState:
        """Step by 1/(l2 t) against the gradient of loss and penalty, and project onto F."""
        refuse_hint(hint, "Pegasos")
        t = state.t + 1
        target = (1.0 - 1.0 / t) * state.x - g / (self.l2 * t)
        return LearnerState(nearest(self.feasible, target, state.x), t)
