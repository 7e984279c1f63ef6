"""The state of FTPRL between rounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.learner.base import LearnerState
from ftprl.psd import Matrix
from ftprl.schemes import SchemeState

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class State(LearnerState):
    """The state of FTPRL after t rounds: `z` = g_{1:t} - sum Q_s x_s, the scheme's state, and the last round's
    results.
    """

    z: Vector
    scheme: SchemeState
    Q: Matrix  # Q_t, the increment of the last round
    seen: Vector  # the effective part of the last gradient (minus its hint)
    hint: Vector | None  # m_{t+1}, the guess with which x was chosen
    leader: Vector  # the minimiser of H_t without the hint; x itself when there is none
    gap: float  # the gap of x to the exact minimum
    leader_gap: float

    @property
    def total(self) -> Matrix:
        """Return Q_{1:t}."""
        return self.scheme.total
