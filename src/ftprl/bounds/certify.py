"""Compute a certificate from the sums of a game and a learner's own bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import posthoc
from ftprl.bounds.certificate import Certificate
from ftprl.bounds.ledger import Ledger
from ftprl.posthoc import Family, PostHoc
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Bounds:
    """A learner's upper bounds on its regret, named as in `Certificate`; None where it has no such bound."""

    tight: float | None = None
    bound: float | None = None
    theorem: float | None = None
    worst_case: float | None = None
    worst_case_exact: bool = True  # True if every N(Q_t) in it is exact, not an upper bound
    closed_form: float | None = None
    closed_form_strong: float | None = None
    family: Family | None = None
    proven_ratio: float | None = None
    proven_regret_ratio: float | None = None
    caveats: tuple[str, ...] = ()


def certify(
    feasible: ConvexSet, ledger: Ledger, x: Vector | None, regret: float, bounds: Bounds, program: bool = False
) -> Certificate:
    """Return the certificate against the fixed point x: regret, the learner's bounds, and the best bounds in
    hindsight.
    """
    unbounded = "F is unbounded, so no fixed point is best; name one with certificate(comparator=x)"
    caveats = [unbounded] if x is None else []
    post, exact = _post_hoc(feasible, bounds.family, ledger, program, caveats)
    best, promised = post.get(bounds.family) if bounds.family else None, bounds.worst_case
    competes = bounds.family in exact
    # A quotient of two upper bounds bounds nothing; if only one of the two is a bound, so is the ratio.
    known = competes or bounds.worst_case_exact
    finite = best and promised is not None and math.isfinite(best) and math.isfinite(promised)
    loose = tuple(name for name, value in post.items() if value is not None and name not in exact)
    if promised is not None and not bounds.worst_case_exact:
        loose = ("worst_case", *loose)
    return Certificate(
        rounds=ledger.t,
        regret=regret,
        true_regret=None,
        tight=bounds.tight,
        bound=bounds.bound,
        theorem=bounds.theorem,
        worst_case=bounds.worst_case,
        closed_form=bounds.closed_form,
        closed_form_strong=bounds.closed_form_strong,
        post_hoc=post,
        family=bounds.family,
        ratio=promised / best if known and finite and best and promised is not None else None,
        proven_ratio=bounds.proven_ratio if competes else None,
        proven_regret_ratio=bounds.proven_regret_ratio if competes else None,
        comparator=x,
        solver_gap=ledger.worst_gap,
        caveats=(*caveats, *bounds.caveats),
        loose=loose,
    )


def _post_hoc(
    feasible: ConvexSet, family: Family | None, ledger: Ledger, program: bool, caveats: list[str]
) -> tuple[dict[str, float | None], set[str]]:
    """Return the best bounds in hindsight by family, and the set of families for which they are exact."""
    names: tuple[Family, ...] = ("const", "diagonal", "full")
    if family == "block":
        names = (*names, "block")
    optima: dict[str, PostHoc | None] = {
        name: posthoc.best_bound(feasible, name, ledger.G, ledger.GG, program=program) for name in names
    }
    for name, best in optima.items():
        if best is not None and not best.exact:
            caveats.append(f"best in hindsight over {name} is an upper bound on this set")
    if optima["full"] is None:
        caveats.append(_why_no_full(feasible, ledger, optima["diagonal"]))
    values = {name: None if best is None else best.value for name, best in optima.items()}
    return values, {name for name, best in optima.items() if best is not None and best.exact}


def _why_no_full(feasible: ConvexSet, ledger: Ledger, diagonal: PostHoc | None) -> str:
    """Return the reason why the best bound over full matrices is unknown."""
    if diagonal is not None and not math.isfinite(diagonal.value):
        return "best in hindsight over full matrices is infinite, or unknown, on an unbounded set"
    if diagonal is not None and diagonal.exact and feasible.quadratically_convex():
        low = diagonal.value / math.sqrt(math.pi / 2)
        return f"best in hindsight over full matrices is hard here; it lies in [{low:.6g}, {diagonal.value:.6g}]"
    if ledger.GG is None:
        return "best in hindsight over full matrices needs the outer products; play with Game(..., full=True)"
    return "best in hindsight over full matrices has no closed form here; ask with certificate(program=True)"
