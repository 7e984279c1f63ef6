"""The terms that a round of FTPRL adds to its ledger, and the bounds that the ledger's sums prove."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.bounds import Bounds, Ledger
from ftprl.learner.composite import Composite
from ftprl.learner.state import State
from ftprl.schemes import Scheme
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def record(
    feasible: ConvexSet,
    scheme: Scheme,
    composite: Composite | None,
    ledger: Ledger,
    before: State,
    g: Vector,
    after: State,
) -> Ledger:
    """Return the ledger after one more round.

    `g` is the gradient at `before.x`, and `after` is the state that it led to.
    """
    origin, moved = ledger.first_play(before.x)
    x = before.x - origin if moved else before.x
    seen, total, leader = after.seen, after.scheme.total, after.leader - origin if moved else after.leader
    G, GG = seen * seen, None if ledger.GG is None else ledger.GG + np.outer(seen, seen)
    G += ledger.G
    # Centred at the first play x_1, Q_t is already relative to its centre, but x_t pays for r_t itself.
    Qx = np.zeros_like(x) if scheme.anchored else psd.apply(after.Q, x)
    own = 0.5 * psd.quad(after.Q, x) if scheme.anchored else 0.0
    if moved or before.t != ledger.t:
        z = ledger.z + (seen if before.hint is None else scheme.effective(feasible, g))
        z -= Qx
    else:
        z = after.z  # equal sums, since x_1 = 0
    d = x - leader
    psi = None if composite is None else _psi(composite, ledger, before.x, after)
    length = scheme.stability(after.scheme, seen, d, 0.0 if composite is None else _l2(composite, ledger.t))
    hinted = ledger.hinted or before.hint is not None
    return Ledger(
        ledger.t + 1,
        ledger.S + g,
        G,
        GG,
        origin,
        moved,
        ledger.gain + float(g.dot(x)),
        z,
        ledger.q + Qx,
        ledger.k + float(x.dot(Qx)),
        ledger.stability + length,
        ledger.delta + float(d.dot(z)) + 0.5 * psd.between(total, d, x + leader) - own + (psi.delta if psi else 0.0),
        ledger.penalty + scheme.penalty(after.scheme, after.Q),
        ledger.solver_slack + before.gap,
        ledger.leader_slack + after.leader_gap if hinted else after.leader_gap,
        psi.total if psi else 0.0,
        psi.first if psi else 0.0,
        psi.drift if psi else 0.0,
        max(ledger.worst_gap, after.gap),
        hinted,
        ledger.t + 1 if ledger.out_of_range is None and math.isinf(length) else ledger.out_of_range,
        ledger.hints if before.hint is None else ledger.hints + np.abs(before.hint),
    )


def _l2(composite: Composite, t: int) -> float:
    """Return the curvature that Psi adds in a round; a penalty added once counts from round 2 on.

    In round 1 it need not count: x_1 may be any point, not only a minimiser of Psi.
    """
    return 0.0 if composite.per_round or not t else composite.l2


@final
@dataclass(frozen=True, slots=True)
class _Psi:
    """The changes of a round to the sums of a composite term."""

    delta: float
    total: float
    first: float
    drift: float


def _psi(composite: Composite, ledger: Ledger, x: Vector, after: State) -> _Psi:
    """Return the round's changes to the sums of Psi."""
    here, there = composite.value(x), composite.value(after.leader)
    first = ledger.psi_first if ledger.t else here
    delta = composite.times(after.t) * (here - there)
    if not composite.per_round:
        return _Psi(delta, 0.0, first, 0.0)
    return _Psi(delta, ledger.psi + here, first, ledger.psi_drift + here - there)


def rounding(feasible: ConvexSet, composite: Composite | None, ledger: Ledger, state: State, x: Vector) -> float:
    """Return an upper bound on the rounding errors in the bounds, which is added to each of them.

    Every number in the sums of a round is at most D_i times |g_{1:t}|_i + (|Q_{1:t}| D)_i, where |g_{1:t}|_i <= sqrt(t
    G_i) by Cauchy-Schwarz (plus the hints, which G does not count); each sum over n coordinates loses at most n + 8
    units in its last place, a few times in each of t rounds. The learner's own z also holds Q_{1:t} x_1, coordinate by
    coordinate unless Q is full: 4 units in each round.
    """
    n, t = feasible.dim, ledger.t
    D = feasible.widths()
    if not np.isfinite(D).all():  # an infinite side: use the distance of the plays and x so far
        D = np.where(np.isfinite(D), D, 2 * (np.abs(x - ledger.origin) + np.abs(state.x - ledger.origin)))
    total = state.total
    size = float(D @ (np.sqrt(t * ledger.G) + ledger.hints + psd.sizes(total, D)))
    offset = float(D @ psd.sizes(total, np.abs(ledger.origin)))
    if composite is not None:
        size += composite.times(t) * composite.value(D + np.abs(ledger.origin))
    # A product with a low-rank matrix is three products: to its directions, between them, and back.
    units = n + 8 + (3 * total.B.shape[1] if isinstance(total, psd.LowRank) else 0)
    return _EPS * t * (units * size + (units if total.ndim == 2 else 4) * offset)


def _beyond(ledger: Ledger, state: State, x: Vector) -> float:
    """Return by how much x beats the leader beyond the leader's gap.

    It is positive only if rounding left x outside the set: on a long and thin ellipsoid the last digit of a long side
    is many digits of a short one.
    """
    leader = state.leader - ledger.origin
    slope = psd.apply(state.total, leader) + ledger.z
    return max(float(slope @ (state.leader - x)) - state.leader_gap, 0.0)


def bounds(
    feasible: ConvexSet,
    scheme: Scheme,
    composite: Composite | None,
    ledger: Ledger,
    state: State,
    x: Vector | None,
    gap: float,
) -> Bounds:
    """Return the chain of bounds against x, with the terms for inexact steps and composite penalties.

    A step of gap e (see `Solution`) adds e to the next round's share: with P = Q_{1:t}, for every u in F, (H_{t-1} +
    r_t)(u) >= H_{t-1}(x_t) - e + ½ (u-x_t)ᵀP(u-x_t), so delta_t <= ½ gᵀP⁺g + e. `gap` is the gap of x itself: how far
    its total may be from that of the best fixed point.
    """
    caveats: list[str] = []
    r = math.inf if x is None else ledger.regularisation(state.total, x)
    # Each number is rounded outwards by the rounding error of its own sums and of the numbers before it in the chain.
    noise = 0.0 if x is None else rounding(feasible, composite, ledger, state, x)
    leader_slack = ledger.leader_slack
    if x is not None and composite is None:
        leader_slack += _beyond(ledger, state, x)
    tight_extra = leader_slack + noise + gap
    slack, extra = ledger.solver_slack + leader_slack + gap + 2 * noise, 0.0
    if composite is not None and x is not None:
        if composite.per_round:
            extra = max(ledger.psi_drift, 0.0) + ledger.solver_slack
            caveats.append("regret counts the composite term in every round")
        else:
            least = composite.minimise(feasible, psd.zero(), np.zeros_like(x), x, 1)
            tight_extra += composite.value(x) - ledger.psi_first
            extra = max(composite.value(x) - composite.value(least.x) + least.gap, 0.0)
            caveats.append("the composite term is part of the bounds, not of the regret")
    if ledger.out_of_range is not None:
        caveats.append(
            f"the gradient of round {ledger.out_of_range} left the range of Q_(1:t): only the tight bound is finite"
        )
    if ledger.hinted:
        caveats.append("with hints, bounds and best-in-hindsight count the errors g - hint")
    if ledger.solver_slack > noise:  # below that it is only rounding
        caveats.append(f"steps were solved to a gap of at most {ledger.worst_gap:.2g}; the bounds include it")
    caveats.extend(scheme.caveats())
    closed = scheme.closed_form(state.scheme)
    return Bounds(
        tight=r + ledger.delta + tight_extra,
        bound=r + 0.5 * ledger.stability + slack + extra,
        theorem=r + ledger.stability + slack + extra,
        worst_case=ledger.penalty + ledger.stability + slack + extra + noise,
        worst_case_exact=scheme.penalty_is_exact(feasible),
        closed_form=None if closed is None else closed.paper + slack + extra + 2 * noise,
        closed_form_strong=None if closed is None else closed.strong + slack + extra + 2 * noise,
        family=scheme.family,
        proven_ratio=None if composite is not None else scheme.proven_ratio(feasible),
        proven_regret_ratio=None if composite is not None else scheme.proven_regret_ratio(feasible),
        caveats=tuple(caveats),
    )
