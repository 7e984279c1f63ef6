"""Running sums while a game is played: all that a certificate needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.learner import FTPRL, Composite, Learner, LearnerState, State

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class Ledger(NamedTuple):
    """Running sums over the rounds, no history: enough for every number of a certificate.

    Sums in which points appear are kept relative to the first play, so that a set far from 0 costs no digits.
    """

    # A tuple, since one is made in every round: a frozen dataclass with as many fields takes five times as long.

    t: int
    S: Vector  # g_{1:t}
    G: Vector  # sum of squares of what the bounds count
    GG: Vector | None  # sum of outer products, when full matrices are asked about
    origin: Vector  # x_1
    moved: bool  # whether x_1 is not 0
    gain: float  # sum g_t·(x_t - x_1)
    z: Vector  # what counts of g_{1:t}, minus q
    q: Vector  # sum Q_s (x_s - x_1)
    k: float = 0.0  # sum (x_s - x_1)ᵀQ_s(x_s - x_1)
    stability: float = 0.0  # sum g_tᵀ Q_{1:t}⁺ g_t
    delta: float = 0.0  # sum H_t(x_t) - H_t(x_{t+1})
    penalty: float = 0.0  # sum N(Q_t)
    solver_slack: float = 0.0  # what inexact steps can add to the bounds
    leader_slack: float = 0.0  # the gap of the last leader; of all leaders when plays were hinted
    psi: float = 0.0  # sum Psi(x_t), for a per-round composite
    psi_first: float = 0.0  # Psi(x_1)
    psi_drift: float = 0.0  # sum Psi(x_t) - Psi(leader after round t), for a per-round composite
    worst_gap: float = 0.0
    hinted: bool = False
    out_of_range: int | None = None  # the first round whose gradient left the range of Q_{1:t}

    @staticmethod
    def empty(dim: int, full: bool = False) -> Ledger:
        """Nothing played."""
        zero = np.zeros(dim)
        return Ledger(0, zero, zero, np.zeros((dim, dim)) if full else None, zero, False, 0.0, zero, zero)

    def record(self, learner: Learner[Any], before: LearnerState, g: Vector, after: LearnerState) -> Ledger:
        """One round of a core learner: `g` was seen at `before.x`, and `after` is what it made of it."""
        origin, moved = (self.origin, self.moved) if self.t else (before.x, bool(before.x.any()))
        x = before.x - origin if moved else before.x
        gain, S = self.gain + float(g.dot(x)), self.S + g
        seen = after.seen if isinstance(after, State) else g
        G, GG = seen * seen, None if self.GG is None else self.GG + np.outer(seen, seen)
        G += self.G
        if not isinstance(learner, FTPRL):
            return Ledger(self.t + 1, S, G, GG, origin, moved, gain, self.z, self.q)
        assert isinstance(before, State)
        assert isinstance(after, State)
        total, leader = after.scheme.total, after.leader - origin if moved else after.leader
        Qx = psd.apply(after.Q, x)
        if moved or before.t != self.t:
            z = self.z + (seen if before.hint is None else learner.scheme.effective(learner.feasible, g))
            z -= Qx
        else:
            z = after.z  # the same sum, since x_1 = 0
        d = x - leader
        psi = None if learner.composite is None else _psi(learner.composite, self, before.x, after)
        length = psd.dual_quad(total if psi is None else self._weights(learner.composite, total), seen)
        hinted = self.hinted or before.hint is not None
        return Ledger(
            self.t + 1,
            S,
            G,
            GG,
            origin,
            moved,
            gain,
            z,
            self.q + Qx,
            self.k + float(x.dot(Qx)),
            self.stability + length,
            self.delta + float(d.dot(z)) + 0.5 * psd.between(total, d, x + leader) + (psi.delta if psi else 0.0),
            self.penalty + learner.scheme.penalty(after.scheme, after.Q),
            self.solver_slack + (_slack(learner, before, length) if before.gap else 0.0),
            self.leader_slack + after.leader_gap if hinted else after.leader_gap,
            psi.total if psi else 0.0,
            psi.first if psi else 0.0,
            psi.drift if psi else 0.0,
            max(self.worst_gap, after.gap),
            hinted,
            self.t + 1 if self.out_of_range is None and math.isinf(length) else self.out_of_range,
        )

    def _weights(self, composite: Composite | None, total: PSD) -> PSD:
        """The curvature that a round's gradient meets: a penalty added once counts from the second round on.

        In the first it need not, since x_1 may be any point, not only one that minimises Psi.
        """
        if composite is None or composite.per_round or not self.t:
            return total
        return psd.add(total, np.array(composite.l2))

    @property
    def loss(self) -> float:
        """sum g_t·x_t."""
        return self.gain + float(self.S @ self.origin)

    def regularisation(self, total: PSD, x: Vector) -> float:
        """r_{1:t}(x) = sum ½ (x - x_s)ᵀQ_s(x - x_s), from the sums."""
        y = x - self.origin
        return max(0.5 * (psd.quad(total, y) - 2 * float(self.q @ y) + self.k), 0.0)

    def linear_regret(self, x: Vector) -> float:
        """sum g_t·(x_t - x)."""
        return self.gain - float(self.S @ (x - self.origin))


@final
@dataclass(frozen=True, slots=True)
class _Psi:
    """What a round does to the sums of a composite term."""

    delta: float
    total: float
    first: float
    drift: float


def _psi(composite: Composite, sums: Ledger, x: Vector, after: State) -> _Psi:
    here, there = composite.value(x), composite.value(after.leader)
    first = sums.psi_first if sums.t else here
    delta = composite.times(after.t) * (here - there)
    if not composite.per_round:
        return _Psi(delta, 0.0, first, 0.0)
    return _Psi(delta, sums.psi + here, first, sums.psi_drift + here - there)


def _slack(learner: FTPRL, before: State, length: float) -> float:
    """What the gap of the step before can add to this round's share of the bounds.

    |g_t| sqrt(2 gap); and the gap itself where it does not cancel: under hints, and with a penalty in every round.
    """
    whole = before.hint is not None or (learner.composite is not None and learner.composite.per_round)
    lost = math.sqrt(2 * before.gap * length) if math.isfinite(length) else 0.0
    return lost + (before.gap if whole else 0.0)
