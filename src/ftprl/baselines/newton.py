"""The online Newton step for exp-concave losses, and its form for portfolios."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import refuse_hint
from ftprl.errors import InvalidInput
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class NewtonState(LearnerState):
    """The state of `OnlineNewtonStep`: `A` = epsilon I + the sum of g gᵀ."""

    A: PSD


@final
@dataclass(frozen=True, slots=True, eq=False)
class OnlineNewtonStep(Learner[NewtonState]):
    """Online Newton step: x_{t+1} = argmin over F of |x - (x_t - A_t⁻¹ g_t / gamma)| in the norm of A_t.

    A_t = epsilon I + sum g gᵀ. Hazan, Agarwal and Kale (2007): for alpha-exp-concave losses, |g| <= G and gamma = ½
    min(1/(4GD), alpha) the regret is O(n log T). `epsilon=None` takes 1/(gamma D)², the choice of that bound.

    >>> from ftprl.sets import Box
    >>> learner = OnlineNewtonStep(Box(-5, 5), gamma=0.5, epsilon=1.0)
    >>> learner.update(learner.init(), [1.0]).x
    array([-1.])
    """

    feasible: ConvexSet
    gamma: float
    epsilon: float | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("gamma", self.gamma)
        if self.epsilon is not None:
            check.positive("epsilon", self.epsilon)
        elif not 0 < self.feasible.diameter() < math.inf:
            raise InvalidInput(
                f"OnlineNewtonStep needs epsilon or a bounded set, got {self.feasible!r} and none; pass epsilon=1."
            )

    def init(self, hint: ArrayLike | None = None) -> NewtonState:
        """Return the state before the first round, with A = epsilon I."""
        refuse_hint(hint, "OnlineNewtonStep")
        epsilon = 1 / (self.gamma * self.feasible.diameter()) ** 2 if self.epsilon is None else self.epsilon
        return NewtonState(starting_point(self.feasible, self.start), 0, epsilon * np.eye(self.feasible.dim))

    def advance(self, state: NewtonState, g: Vector, hint: Vector | None) -> NewtonState:
        """Take a Newton step and project onto F in the norm of A."""
        refuse_hint(hint, "OnlineNewtonStep")
        A = state.A + np.outer(g, g)
        x = self.feasible.argmin(A, g / self.gamma - A @ state.x, state.x)
        return NewtonState(x, state.t + 1, A)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeaderState(LearnerState):
    """The state of `NewtonLeader`: `A` = epsilon I + the sum of g gᵀ, and `S` = g_{1:t}."""

    A: PSD
    S: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class NewtonLeader(Learner[LeaderState]):
    """Newton's method for portfolios: x_{t+1} = argmin over F of weight·g_{1:t}·x + ½ xᵀA_t x.

    A_t = epsilon I + sum g gᵀ. The first form of the online Newton step (Agarwal, Hazan, Kale and Schapire 2006): the
    leader of all rounds, each replaced by its parabola. In that paper weight = (1 + 1/beta) delta = 1/4.

    >>> from ftprl.sets import Box
    >>> learner = NewtonLeader(Box(-5, 5), weight=0.5)
    >>> learner.update(learner.init(), [2.0]).x
    array([-0.2])
    """

    feasible: ConvexSet
    weight: float = 0.25
    epsilon: float = 1.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("weight", self.weight)
        check.positive("epsilon", self.epsilon)

    def init(self, hint: ArrayLike | None = None) -> LeaderState:
        """Return the state before the first round, with A = epsilon I."""
        refuse_hint(hint, "NewtonLeader")
        n = self.feasible.dim
        return LeaderState(starting_point(self.feasible, self.start), 0, self.epsilon * np.eye(n), np.zeros(n))

    def advance(self, state: LeaderState, g: Vector, hint: Vector | None) -> LeaderState:
        """Add the parabola of this round and play the leader."""
        refuse_hint(hint, "NewtonLeader")
        A, S = state.A + np.outer(g, g), state.S + g
        return LeaderState(self.feasible.argmin(A, self.weight * S, state.x), state.t + 1, A, S)
