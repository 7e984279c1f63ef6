"""Follow the perturbed leader (Kalai and Vempala): the best point for the past gradients plus noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import refuse_hint
from ftprl.errors import InvalidInput
from ftprl.learner import Learner, LearnerState
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PerturbedState(LearnerState):
    """The state of `PerturbedLeader`: `S` = g_{1:t}."""

    S: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class PerturbedLeader(Learner[PerturbedState]):
    """Follow the perturbed leader: x_t is the vertex of F best against g_{1:t-1} + p, with fresh noise p in every
    round.

    p is uniform on [0, 1/epsilon]^n. Expected regret <= epsilon R A T + D₁/epsilon, with |g_t|₁ <= A, |g_t·x| <= R and
    D₁ the L1 diameter of F. With `draws` above 1 the mean of several such vertices is played: the expectation is equal
    for linear losses, with less noise.

    >>> from ftprl.sets import Box
    >>> learner = PerturbedLeader(Box(-1, 1), epsilon=0.5)
    >>> learner.update(learner.init(), [-9.0]).x
    array([1.])
    """

    feasible: ConvexSet
    epsilon: float
    seed: int = 0
    draws: int = 1

    def __post_init__(self) -> None:
        check.positive("epsilon", self.epsilon)
        check.dimension("draws", self.draws)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InvalidInput(f"seed needs a whole number of at least 0, got {self.seed!r}; pass one.")
        if not np.isfinite(self.feasible.widths()).all():
            raise InvalidInput(f"PerturbedLeader needs a bounded set, got {self.feasible!r}; bound it, as by a Box.")

    def init(self, hint: ArrayLike | None = None) -> PerturbedState:
        """Return the state whose play is the vertex that the first noise picks."""
        refuse_hint(hint, "PerturbedLeader")
        S = np.zeros(self.feasible.dim)
        return PerturbedState(self.play(S, 0), 0, S)

    def advance(self, state: PerturbedState, g: Vector, hint: Vector | None) -> PerturbedState:
        """Add the gradient and draw new noise."""
        refuse_hint(hint, "PerturbedLeader")
        S, t = state.S + g, state.t + 1
        return PerturbedState(self.play(S, t), t, S)

    def play(self, S: Vector, t: int) -> Vector:
        """Return the play after t rounds with the sum S of gradients: the mean over the draws of noise."""
        # The noise is a function of seed and round, so that a game can be continued from its state alone.
        noise = np.random.default_rng((self.seed, t)).random((self.draws, len(S))) / self.epsilon
        points = [self.feasible.vertex(S + p) for p in noise]
        return points[0] if self.draws == 1 else np.asarray(np.mean(points, axis=0))
