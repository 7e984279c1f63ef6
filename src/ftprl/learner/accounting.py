"""What a round of FTPRL adds to its ledger, and the bounds that the ledger's sums prove."""

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
PSD = NDArray[np.float64]


def record(
    feasible: ConvexSet,
    scheme: Scheme,
    composite: Composite | None,
    ledger: Ledger,
    before: State,
    g: Vector,
    after: State,
) -> Ledger:
    """The ledger after one more round: `g` was seen at `before.x`, and `after` is the state it led to."""
    origin, moved = ledger.first_play(before.x)
    x = before.x - origin if moved else before.x
    seen, total, leader = after.seen, after.scheme.total, after.leader - origin if moved else after.leader
    G, GG = seen * seen, None if ledger.GG is None else ledger.GG + np.outer(seen, seen)
    G += ledger.G
    Qx = psd.apply(after.Q, x)
    if moved or before.t != ledger.t:
        z = ledger.z + (seen if before.hint is None else scheme.effective(feasible, g))
        z -= Qx
    else:
        z = after.z  # the same sum, since x_1 = 0
    d = x - leader
    psi = None if composite is None else _psi(composite, ledger, before.x, after)
    length = psd.dual_quad(total if composite is None else _weights(composite, ledger.t, total), seen)
    hinted = ledger.hinted or before.hint is not None
    whole = before.hint is not None or (composite is not None and composite.per_round)
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
        ledger.delta + float(d.dot(z)) + 0.5 * psd.between(total, d, x + leader) + (psi.delta if psi else 0.0),
        ledger.penalty + scheme.penalty(after.scheme, after.Q),
        ledger.solver_slack + (_slack(before.gap, length, whole) if before.gap else 0.0),
        ledger.leader_slack + after.leader_gap if hinted else after.leader_gap,
        psi.total if psi else 0.0,
        psi.first if psi else 0.0,
        psi.drift if psi else 0.0,
        max(ledger.worst_gap, after.gap),
        hinted,
        ledger.t + 1 if ledger.out_of_range is None and math.isinf(length) else ledger.out_of_range,
    )


def _weights(composite: Composite, t: int, total: PSD) -> PSD:
    """The curvature that a round's gradient meets: a penalty added once counts from the second round on.

    In the first it need not, since x_1 may be any point, not only one that minimises Psi.
    """
    return total if composite.per_round or not t else psd.add(total, np.array(composite.l2))


@final
@dataclass(frozen=True, slots=True)
class _Psi:
    """What a round does to the sums of a composite term."""

    delta: float
    total: float
    first: float
    drift: float


def _psi(composite: Composite, ledger: Ledger, x: Vector, after: State) -> _Psi:
    here, there = composite.value(x), composite.value(after.leader)
    first = ledger.psi_first if ledger.t else here
    delta = composite.times(after.t) * (here - there)
    if not composite.per_round:
        return _Psi(delta, 0.0, first, 0.0)
    return _Psi(delta, ledger.psi + here, first, ledger.psi_drift + here - there)


def _slack(gap: float, length: float, whole: bool) -> float:
    """What the gap of the step before can add to this round's share of the bounds.

    |g_t| sqrt(2 gap); and the gap itself where it does not cancel: under hints, and with a penalty in every round.
    """
    return (math.sqrt(2 * gap * length) if math.isfinite(length) else 0.0) + (gap if whole else 0.0)


def bounds(
    feasible: ConvexSet, scheme: Scheme, composite: Composite | None, ledger: Ledger, state: State, x: Vector | None
) -> Bounds:
    """The chain of bounds against x, with what inexact steps and composite terms add to it."""
    caveats: list[str] = []
    r = math.inf if x is None else ledger.regularisation(state.total, x)
    slack, tight_extra, extra = ledger.solver_slack, ledger.leader_slack, 0.0
    if composite is not None and x is not None:
        if composite.per_round:
            extra = max(ledger.psi_drift, 0.0)
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
    if slack or (tight_extra > 0 and ledger.worst_gap):
        caveats.append(f"steps were solved to a gap of at most {ledger.worst_gap:.2g}; the bounds include it")
    caveats.extend(scheme.caveats())
    closed = scheme.closed_form(state.scheme)
    return Bounds(
        tight=r + ledger.delta + tight_extra,
        bound=r + 0.5 * ledger.stability + slack + extra,
        theorem=r + ledger.stability + slack + extra,
        worst_case=ledger.penalty + ledger.stability + slack + extra,
        closed_form=None if closed is None else closed.paper + slack + extra,
        closed_form_strong=None if closed is None else closed.strong + slack + extra,
        family=scheme.family,
        proven_ratio=None if composite is not None else scheme.proven_ratio(feasible),
        proven_regret_ratio=None if composite is not None else scheme.proven_regret_ratio(feasible),
        caveats=tuple(caveats),
    )
