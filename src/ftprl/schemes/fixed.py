"""The scheme that plays with increments given by the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import psd
from ftprl.errors import InvalidInput
from ftprl.schemes.base import Scheme, SchemeState
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Rule = Sequence[ArrayLike] | Callable[[int, Vector], ArrayLike]


@final
@dataclass(frozen=True, slots=True, eq=False)
class FixedState(SchemeState):
    """The state of `Fixed`: the number of rounds played."""

    t: int


@final
@dataclass(frozen=True, eq=False)
class Fixed(Scheme):
    """Q_t from a sequence (0 after its end) or from a rule `rule(t, g_t)`, t = 1, 2, ...; each Q_t must be PSD.

    `Fixed([Q])` uses a single matrix from the first round on, as every best bound in hindsight does.

    >>> from ftprl.sets import Box
    >>> scheme = Fixed([2.0])
    >>> Q, state = scheme.step(scheme.init(Box(-1, 1)), np.array([3.0]))
    >>> float(Q), float(scheme.step(state, np.array([3.0]))[0])
    (2.0, 0.0)
    """

    rule: Rule

    def __post_init__(self) -> None:
        if not callable(self.rule) and (isinstance(self.rule, str) or not hasattr(self.rule, "__len__")):
            raise InvalidInput(
                f"Fixed needs a sequence of matrices or a function rule(t, g), got {self.rule!r}; wrap it in a list."
            )

    def init(self, feasible: ConvexSet) -> FixedState:
        """Return the state with Q_{1:0} = 0."""
        return FixedState(feasible, np.zeros(()), 0)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, FixedState]:
        """Return the next matrix of the sequence, or the value of the rule, and the next state.

        Raises InvalidInput if the matrix is not positive semidefinite.
        """
        assert isinstance(state, FixedState)
        t = state.t + 1
        raw = self.rule(t, g.copy()) if callable(self.rule) else (self.rule[t - 1] if t <= len(self.rule) else 0.0)
        Q = psd.as_psd(raw, state.feasible.dim, f"Q_{t}")
        return Q, FixedState(state.feasible, psd.add(psd.array(state.total), Q), t)

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """Return g with 0 at the coordinates that cannot move, so that they need no weight."""
        D = feasible.widths()
        return g if D.all() else np.where(D == 0, 0.0, g)
