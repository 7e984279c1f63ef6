"""A change of coordinates around any learner, which plays as if the set were another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import Unsupported
from ftprl.learner.base import Learner, LearnerState, S, gradient
from ftprl.sets import ConvexSet, Preimage

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class PreconditionedState(LearnerState, Generic[S]):
    """The state of `Preconditioned`: the inner learner's state, and its point in the outer coordinates."""

    inner: S


@final
@dataclass(frozen=True, slots=True, eq=False)
class Preconditioned(Learner[PreconditionedState[S]]):
    """Any learner in the coordinates x_hat = A x: it receives A^{-T} g, and A^{-1} x_hat is played.

    Losses, regret and bounds are those of the inner learner on its own set. With `FTPRL(L2Ball(n),
    CoordinateConstant())` inside it is FTPRL-Scale on the ellipsoid |Ax|₂ <= 1.

    >>> from ftprl.learner import FTPRL
    >>> from ftprl.schemes import CoordinateConstant
    >>> from ftprl.sets import L2Ball
    >>> learner = Preconditioned([[2.0]], FTPRL(L2Ball(1), CoordinateConstant()))
    >>> learner.update(learner.init(), [1.0]).x
    array([-0.5])
    """

    A: ArrayLike
    learner: Learner[S]
    feasible: ConvexSet = field(init=False)
    _inverse: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        A, inverse = check.invertible("A", self.A)
        inner = self.learner
        check.instance("the learner inside Preconditioned", inner, Learner)
        if inner.core().adds_to_losses:
            raise Unsupported(
                "Preconditioned needs losses that do not change with the coordinates, got a per-round Composite;"
                " use per_round=False."
            )
        object.__setattr__(self, "A", A)
        object.__setattr__(self, "_inverse", inverse)
        object.__setattr__(self, "feasible", Preimage(A, inner.feasible))

    def init(self, hint: ArrayLike | None = None) -> PreconditionedState[S]:
        """Return the state before the first round, with the inner learner's point mapped to outer coordinates."""
        guess = None if hint is None else self._inverse.T @ gradient("hint", hint, self.feasible.dim)
        return self._wrap(self.learner.init(guess))

    def advance(self, state: PreconditionedState[S], g: Vector, hint: Vector | None) -> PreconditionedState[S]:
        """Play one round of the inner learner with A^{-T} g."""
        guess = None if hint is None else self._inverse.T @ hint
        return self._wrap(self.learner.advance(state.inner, self._inverse.T @ g, guess))

    def advance_late(self, state: PreconditionedState[S], g: Vector, passed: Vector) -> PreconditionedState[S]:
        """Play one late round of the inner learner."""
        turn = self._inverse.T
        return self._wrap(self.learner.advance_late(state.inner, turn @ g, turn @ passed))

    def _wrap(self, inner: S) -> PreconditionedState[S]:
        return PreconditionedState(self._inverse @ inner.x, inner.t, inner)

    def core(self) -> Learner[Any]:
        """Return the inner learner's core."""
        return self.learner.core()

    def core_state(self, state: PreconditionedState[S]) -> LearnerState:
        """Return the inner learner's core state."""
        return self.learner.core_state(state.inner)

    def to_core(self, x: Vector) -> Vector:
        """Return A x in the inner learner's own core coordinates."""
        return self.learner.to_core(np.asarray(self.A) @ x)

    def from_core(self, x: Vector) -> Vector:
        """Return A^{-1} times the inner learner's point for x."""
        return self._inverse @ self.learner.from_core(x)

    def gradient_to_core(self, g: Vector) -> Vector:
        """Return A^{-T} g in the inner learner's own core coordinates."""
        return self.learner.gradient_to_core(self._inverse.T @ g)
