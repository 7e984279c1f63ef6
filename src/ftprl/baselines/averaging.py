"""Regularised dual averaging (Xiao 2009): the mean gradient, an l1 term, and a quadratic term that shrinks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import refuse_hint
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AveragingState(LearnerState):
    """The state of `DualAveraging`: `S` = g_{1:t} and the centre of the quadratic term."""

    S: Vector
    centre: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualAveraging(Learner[AveragingState]):
    """Dual averaging: x_{t+1} = argmin over F of g_{1:t}·x + (t l1 + rho gamma sqrt t)|x|₁ + ½ gamma sqrt t |x -
    x_1|².

    Xiao's l1-RDA, with `rho` > 0 its enhanced form. With ½|x* - x_1|² <= B² and |g| <= G the regret, l1 included, is at
    most (gamma B² + G²/gamma) sqrt T: `gamma` = G/B is the best choice.

    >>> from ftprl.sets import Box
    >>> learner = DualAveraging(Box(-5, 5), gamma=2.0, l1=0.5)
    >>> learner.update(learner.init(), [3.0]).x
    array([-1.25])
    """

    feasible: ConvexSet
    gamma: float = 1.0
    l1: float = 0.0
    rho: float = 0.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("gamma", self.gamma)
        check.positive("l1", self.l1, zero=True)
        check.positive("rho", self.rho, zero=True)

    def init(self, hint: ArrayLike | None = None) -> AveragingState:
        """Return the state before the first round; the start is also the centre."""
        refuse_hint(hint, "DualAveraging")
        x = starting_point(self.feasible, self.start)
        return AveragingState(x, 0, np.zeros(self.feasible.dim), x)

    def advance(self, state: AveragingState, g: Vector, hint: Vector | None) -> AveragingState:
        """Play the leader of all gradients so far, regularised towards the centre and towards 0."""
        refuse_hint(hint, "DualAveraging")
        S, t = state.S + g, state.t + 1
        hold = self.gamma * math.sqrt(t)
        l1 = t * self.l1 + self.rho * hold
        z = S - hold * state.centre
        H = np.array(hold)
        x = self.feasible.minimise_l1(H, z, l1, state.x).x if l1 else self.feasible.argmin(H, z, state.x)
        return AveragingState(x, t, S, state.centre)
