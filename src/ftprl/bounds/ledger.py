"""The running sums of a game from which a certificate is computed."""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd

Vector = NDArray[np.float64]


@final
class Ledger(NamedTuple):
    """Running sums over the rounds, without history: enough for every number of a certificate.

    Sums of points are kept relative to the first play, so that a set far from 0 loses no digits.
    """

    # A tuple, because one is made in every round: a frozen dataclass with as many fields takes five times as long.

    t: int
    S: Vector  # g_{1:t}
    G: Vector  # sum of squares of effective gradients
    GG: Vector | None  # sum of outer products, if full matrices are needed
    origin: Vector  # x_1
    moved: bool  # True if x_1 is not 0
    gain: float  # sum g_t·(x_t - x_1)
    z: Vector  # sum of effective gradients minus q
    q: Vector  # sum Q_s (x_s - x_1)
    k: float = 0.0  # sum (x_s - x_1)ᵀQ_s(x_s - x_1)
    stability: float = 0.0  # sum g_tᵀ Q_{1:t}⁺ g_t
    delta: float = 0.0  # sum H_t(x_t) - H_t(x_{t+1})
    penalty: float = 0.0  # sum N(Q_t)
    solver_slack: float = 0.0  # the most that inexact steps can add to the bounds
    leader_slack: float = 0.0  # the gap of the last leader; of all leaders when plays were hinted
    psi: float = 0.0  # sum Psi(x_t), for a per-round composite
    psi_first: float = 0.0  # Psi(x_1)
    psi_drift: float = 0.0  # sum Psi(x_t) - Psi(leader after round t), for a per-round composite
    worst_gap: float = 0.0
    hinted: bool = False
    out_of_range: int | None = None  # the first round whose gradient left the range of Q_{1:t}
    hints: Vector | float = 0.0  # sum |hint|, coordinate by coordinate

    @staticmethod
    def empty(dim: int, full: bool = False) -> Ledger:
        """Return the sums before the first round."""
        zero = np.zeros(dim)
        return Ledger(0, zero, zero, np.zeros((dim, dim)) if full else None, zero, False, 0.0, zero, zero)

    def add_round(self, x: Vector, g: Vector) -> Ledger:
        """Return the sums with one more round of any learner, with gradient `g` at `x`; the regret needs no others.

        >>> ledger = Ledger.empty(1).add_round(np.array([0.5]), np.array([2.0]))
        >>> ledger.loss, ledger.linear_regret(np.array([-1.0]))
        (1.0, 3.0)
        """
        origin, moved = self.first_play(x)
        gain = self.gain + float(g.dot(x - origin if moved else x))
        GG = None if self.GG is None else self.GG + np.outer(g, g)
        G = g * g
        G += self.G
        return Ledger(self.t + 1, self.S + g, G, GG, origin, moved, gain, self.z, self.q)

    def first_play(self, x: Vector) -> tuple[Vector, bool]:
        """Return x_1 and whether it is not 0, with x the point played now."""
        return (self.origin, self.moved) if self.t else (x, bool(x.any()))

    @property
    def loss(self) -> float:
        """Return the total linear loss sum g_t·x_t."""
        return self.gain + float(self.S @ self.origin)

    def regularisation(self, total: psd.Matrix, x: Vector) -> float:
        """Return r_{1:t}(x) = sum ½ (x - x_s)ᵀQ_s(x - x_s), from the sums."""
        y = x - self.origin
        return max(0.5 * (psd.quad(total, y) - 2 * float(self.q @ y) + self.k), 0.0)

    def linear_regret(self, x: Vector) -> float:
        """Return sum g_t·(x_t - x)."""
        return self.gain - float(self.S @ (x - self.origin))
