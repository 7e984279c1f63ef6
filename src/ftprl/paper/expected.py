"""The perturbed leader without its noise: its expected play, so that no random draw decides a comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl.learner import Learner, LearnerState
from ftprl.sets import Box, ConvexSet, Ellipsoid, Simplex

Vector = NDArray[np.float64]
NODES = 4096  # points that fill the cube evenly, if the mean has no formula


def nodes(dim: int, count: int = NODES) -> Vector:
    """Return points that fill the unit cube evenly: multiples of powers of a generalised golden ratio, modulo 1.

    >>> nodes(2, 1000).mean(axis=0).round(2)
    array([0.5, 0.5])
    """
    ratio = 2.0
    for _ in range(40):  # the root of r^{dim+1} = r + 1
        ratio = (1 + ratio) ** (1 / (dim + 1))
    return np.asarray((0.5 + np.arange(1, count + 1)[:, None] * ratio ** -np.arange(1.0, dim + 1)) % 1.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExpectedState(LearnerState):
    """The state of `ExpectedLeader`: `S` = the sum of the gradients."""

    S: Vector


@final
@dataclass(frozen=True, eq=False)
class ExpectedLeader(Learner[ExpectedState]):
    """Play the expectation of the vertex of F that is best against g_{1:t-1} + p, p uniform on [0, 1/epsilon]^n.

    For linear losses its loss is the perturbed leader's expected loss; for convex ones it is smaller, by Jensen's
    inequality.
    """

    feasible: ConvexSet
    epsilon: float
    count: int = NODES

    def __post_init__(self) -> None:
        object.__setattr__(self, "_noise", nodes(self.feasible.dim, self.count) / self.epsilon)

    def init(self, hint: ArrayLike | None = None) -> ExpectedState:
        """Return the state whose play is the mean over the first noise."""
        S = np.zeros(self.feasible.dim)
        return ExpectedState(self.mean(S), 0, S)

    def advance(self, state: ExpectedState, g: Vector, hint: Vector | None) -> ExpectedState:
        """Add the gradient and play the mean."""
        S = state.S + g
        return ExpectedState(self.mean(S), state.t + 1, S)

    def mean(self, S: Vector) -> Vector:
        """Return the mean of the best vertex: exact on boxes, over the nodes on other sets."""
        F = self.feasible
        if isinstance(F, Box):
            up = np.clip(-S * self.epsilon, 0.0, 1.0)  # the probability that S_i + p_i is negative
            low, high = F.vertex(np.ones(F.dim)), F.vertex(-np.ones(F.dim))
            return np.asarray(low + up * (high - low))
        P = S + self._noise  # type: ignore[attr-defined]
        if isinstance(F, Simplex):
            best = np.bincount(P.argmin(axis=1), minlength=F.dim) / len(P)
            return np.asarray(best * F.vertex(np.ones(F.dim)).sum())
        if isinstance(F, Ellipsoid):
            inverse = np.linalg.inv(F.A)
            hat = P @ inverse
            return np.asarray(-(hat / np.linalg.norm(hat, axis=1, keepdims=True)).mean(axis=0) @ inverse.T)
        return np.asarray(np.mean([F.vertex(p) for p in P], axis=0))
