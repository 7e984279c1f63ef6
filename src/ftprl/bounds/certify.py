"""From the sums of a game to its certificate, at any moment."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import posthoc, psd
from ftprl.bounds.certificate import Certificate
from ftprl.bounds.ledger import Ledger
from ftprl.learner import FTPRL, Learner, LearnerState, State
from ftprl.posthoc import PostHoc
from ftprl.sets import FeasibleSet

Vector = NDArray[np.float64]


def certify(
    learner: Learner[Any],
    state: LearnerState,
    ledger: Ledger,
    *,
    program: bool = False,
    comparator: Vector | None = None,
) -> Certificate:
    """The certificate of a core learner after `ledger.t` rounds, against the best point of F or a given one."""
    feasible = learner.feasible
    caveats: list[str] = []
    x = comparator if comparator is not None else _best_fixed(learner, state, ledger, caveats)
    regret = _regret(learner, ledger, x)
    post, exact = _post_hoc(learner, feasible, ledger, program, caveats)
    bounds: dict[str, float | None] = dict.fromkeys(("tight", "bound", "theorem", "worst_case", "paper", "strong"))
    family = ratio = proven = proven_regret = None
    if isinstance(learner, FTPRL):
        assert isinstance(state, State)
        bounds = _bounds(learner, state, ledger, x, caveats)
        family = learner.scheme.family
        best, promised = post.get(family) if family else None, bounds["worst_case"]
        if best and promised is not None and math.isfinite(best) and math.isfinite(promised):
            ratio = promised / best
        if family in exact and learner.composite is None:
            proven = learner.scheme.proven_ratio(feasible)
            proven_regret = learner.scheme.proven_regret_ratio(feasible)
    return Certificate(
        ledger.t,
        regret,
        None,
        bounds["tight"],
        bounds["bound"],
        bounds["theorem"],
        bounds["worst_case"],
        bounds["paper"],
        bounds["strong"],
        post,
        family,
        ratio,
        proven,
        proven_regret,
        x,
        ledger.worst_gap,
        tuple(caveats),
    )


def _best_fixed(learner: Learner[Any], state: LearnerState, ledger: Ledger, caveats: list[str]) -> Vector | None:
    """A best fixed point; among several one near the learner's own, where the bounds are sharpest."""
    feasible = learner.feasible
    composite = learner.composite if isinstance(learner, FTPRL) else None
    if not ledger.t:
        return state.x
    if not np.isfinite(feasible.widths()).all() and ledger.S.any():
        caveats.append("F is unbounded, so no fixed point is best; name one with certificate(comparator=x)")
        return None
    if composite is not None and composite.per_round:
        return composite.minimise(feasible, psd.zero(), ledger.S, state.x, ledger.t).x
    found = feasible.minimise(psd.zero(), ledger.S, state.x)
    if found.gap > 1e-9 * (1 + abs(ledger.gain)):
        return min(found.x, feasible.vertex(ledger.S), key=lambda x: float(ledger.S @ x))
    return found.x


def _regret(learner: Learner[Any], ledger: Ledger, x: Vector | None) -> float:
    if x is None:
        return math.inf
    regret = ledger.linear_regret(x)
    composite = learner.composite if isinstance(learner, FTPRL) else None
    if composite is not None and composite.per_round:
        regret += ledger.psi - ledger.t * composite.value(x)
    return regret


def _bounds(
    learner: FTPRL, state: State, ledger: Ledger, x: Vector | None, caveats: list[str]
) -> dict[str, float | None]:
    """The chain of bounds, with what inexact steps and composite terms add to it."""
    r = math.inf if x is None else ledger.regularisation(state.total, x)
    slack, tight_extra, extra = ledger.solver_slack, ledger.leader_slack, 0.0
    composite = learner.composite
    if composite is not None and x is not None:
        if composite.per_round:
            extra = max(ledger.psi_drift, 0.0)
            caveats.append("regret counts the composite term in every round")
        else:
            least = composite.minimise(learner.feasible, psd.zero(), np.zeros_like(x), x, 1)
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
    caveats.extend(learner.scheme.caveats())
    closed = learner.scheme.closed_form(state.scheme)
    return {
        "tight": r + ledger.delta + tight_extra,
        "bound": r + 0.5 * ledger.stability + slack + extra,
        "theorem": r + ledger.stability + slack + extra,
        "worst_case": ledger.penalty + ledger.stability + slack + extra,
        "paper": None if closed is None else closed.paper + slack + extra,
        "strong": None if closed is None else closed.strong + slack + extra,
    }


def _post_hoc(
    learner: Learner[Any], feasible: FeasibleSet, ledger: Ledger, program: bool, caveats: list[str]
) -> tuple[dict[str, float | None], set[str]]:
    """The best bounds in hindsight, and the families for which they are exact."""
    names: tuple[posthoc.Family, ...] = ("const", "diagonal", "full")
    if isinstance(learner, FTPRL) and learner.scheme.family == "block":
        names = (*names, "block")
    found: dict[str, PostHoc | None] = {
        name: posthoc.best_bound(feasible, name, ledger.G, ledger.GG, program=program) for name in names
    }
    for name, best in found.items():
        if best is not None and not best.exact:
            caveats.append(f"best in hindsight over {name} is an upper bound on this set")
    if found["full"] is None:
        caveats.append(_why_no_full(feasible, ledger, found["diagonal"]))
    values = {name: None if best is None else best.value for name, best in found.items()}
    return values, {name for name, best in found.items() if best is not None and best.exact}


def _why_no_full(feasible: FeasibleSet, ledger: Ledger, diagonal: PostHoc | None) -> str:
    if diagonal is not None and not math.isfinite(diagonal.value):
        return "best in hindsight over full matrices is infinite, or unknown, on an unbounded set"
    if diagonal is not None and diagonal.exact and posthoc.quadratically_convex(feasible):
        low = diagonal.value / math.sqrt(math.pi / 2)
        return f"best in hindsight over full matrices is hard here; it lies in [{low:.6g}, {diagonal.value:.6g}]"
    if ledger.GG is None:
        return "best in hindsight over full matrices needs the outer products; play with Game(..., full=True)"
    return "best in hindsight over full matrices has no closed form here; ask with certificate(program=True)"
