"""The receipt: running sums while a game is played, and the certificate they add up to at any moment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import posthoc, psd
from ftprl.errors import InvalidInput
from ftprl.learner import FTPRL, Composite, Learner, LearnerState, State
from ftprl.posthoc import PostHoc
from ftprl.sets import FeasibleSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Ledger:
    """Running sums over the rounds, no history: enough for every number of a certificate.

    Sums in which points appear are kept relative to the first play, so that a set far from 0 costs no digits.
    """

    t: int
    loss: float  # sum g_t·x_t
    S: Vector  # g_{1:t}
    G: Vector  # sum of squares of what the bounds count
    GG: Vector | None  # sum of outer products, when full matrices are asked about
    origin: Vector  # x_1
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
        return Ledger(0, 0.0, zero, zero, np.zeros((dim, dim)) if full else None, zero, 0.0, zero, zero)

    def record(self, learner: Learner[Any], before: LearnerState, g: Vector, after: LearnerState) -> Ledger:
        """One round of a core learner: `g` was seen at `before.x`, and `after` is what it made of it."""
        origin = self.origin if self.t else before.x
        x = before.x - origin
        seen = after.seen if isinstance(after, State) else g
        generic = replace(
            self,
            t=self.t + 1,
            loss=self.loss + float(g @ before.x),
            gain=self.gain + float(g @ x),
            S=self.S + g,
            G=self.G + seen * seen,
            GG=None if self.GG is None else self.GG + np.outer(seen, seen),
            origin=origin,
        )
        if not isinstance(learner, FTPRL):
            return generic
        assert isinstance(before, State)
        assert isinstance(after, State)
        return generic._regularised(learner, before, g, after, x)

    def _regularised(self, learner: FTPRL, before: State, g: Vector, after: State, x: Vector) -> Ledger:
        """The sums that only a regularised learner has; `x` is the play relative to the first."""
        total, leader = after.total, after.leader - self.origin
        Qx = psd.apply(after.Q, x)
        counted = after.seen if before.hint is None else learner.scheme.effective(learner.feasible, g)
        z = self.z + counted - Qx
        d = x - leader
        delta = float(d @ z) + 0.5 * float(d @ psd.apply(total, x + leader))
        psi = _psi_sums(learner.composite, self, before.x, after)
        weights = total
        if learner.composite is not None and not learner.composite.per_round and self.t > 1:
            # x_1 need not minimise Psi, so its curvature counts from the second round on.
            weights = psd.add(total, np.array(learner.composite.l2))
        length = psd.dual_quad(weights, after.seen)
        hinted = self.hinted or before.hint is not None
        return replace(
            self,
            z=z,
            q=self.q + Qx,
            k=self.k + float(x @ Qx),
            stability=self.stability + length,
            delta=self.delta + delta + psi.delta,
            penalty=self.penalty + learner.scheme.penalty(after.scheme, after.Q),
            solver_slack=self.solver_slack + _slack(learner, before, length),
            leader_slack=self.leader_slack + after.leader_gap if hinted else after.leader_gap,
            psi=psi.total,
            psi_first=psi.first,
            psi_drift=psi.drift,
            worst_gap=max(self.worst_gap, after.gap),
            hinted=hinted,
            out_of_range=self.t if self.out_of_range is None and math.isinf(length) else self.out_of_range,
        )

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


def _psi_sums(composite: Composite | None, sums: Ledger, x: Vector, after: State) -> _Psi:
    if composite is None:
        return _Psi(0.0, 0.0, 0.0, 0.0)
    here, there = composite.value(x), composite.value(after.leader)
    first = here if sums.t == 1 else sums.psi_first
    delta = composite.times(after.t) * (here - there)
    if not composite.per_round:
        return _Psi(delta, 0.0, first, 0.0)
    return _Psi(delta, sums.psi + here, first, sums.psi_drift + here - there)


def _slack(learner: FTPRL, before: State, length: float) -> float:
    """What the gap of the step before can add to this round's share of the bounds.

    |g_t| sqrt(2 gap); and the gap itself where it does not cancel: under hints, and with a penalty in every round.
    """
    if not before.gap:
        return 0.0
    whole = before.hint is not None or (learner.composite is not None and learner.composite.per_round)
    lost = math.sqrt(2 * before.gap * length) if math.isfinite(length) else 0.0
    return lost + (before.gap if whole else 0.0)


@final
@dataclass(frozen=True, eq=False)
class History:
    """A certificate's numbers as they were at the end of chosen rounds."""

    rounds: tuple[int, ...] = ()
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@final
@dataclass(frozen=True, eq=False)
class Certificate:
    """How far the plays are, at most, from the best fixed point in hindsight; every number is proved, not estimated.

    regret <= tight <= bound <= theorem <= worst_case <= closed_form, and bound <= closed_form_strong.
    """

    rounds: int
    regret: float  # linearised: sum g_t·x_t - min over F of g_{1:t}·x
    true_regret: float | None
    tight: float | None  # r + sum delta
    bound: float | None  # r + ½ stability
    theorem: float | None  # r + stability
    worst_case: float | None  # B_R = sum N(Q_t) + stability
    closed_form: float | None
    closed_form_strong: float | None
    post_hoc: Mapping[str, float | None]
    family: str | None
    ratio: float | None
    proven_ratio: float | None
    proven_regret_ratio: float | None
    comparator: Vector | None
    solver_gap: float
    caveats: tuple[str, ...] = ()
    history: History | None = None

    def __repr__(self) -> str:
        return f"Certificate(rounds={self.rounds}, regret={self.regret:.6g}, bound={_short(self.bound)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, ready for JSON; what is infinite or unknown is None."""
        names = [
            "rounds",
            "regret",
            "true_regret",
            "tight",
            "bound",
            "theorem",
            "worst_case",
            "closed_form",
            "closed_form_strong",
            "family",
            "ratio",
            "proven_ratio",
            "proven_regret_ratio",
            "solver_gap",
        ]
        out: dict[str, Any] = {name: _plain(getattr(self, name)) for name in names}
        out["post_hoc"] = {k: _plain(v) for k, v in self.post_hoc.items()}
        out["comparator"] = None if self.comparator is None else [float(v) for v in self.comparator]
        out["caveats"] = list(self.caveats)
        return out

    def __str__(self) -> str:
        rows = [
            ("regret (linearised)", self.regret, "what was lost to the best fixed point"),
            ("true regret", self.true_regret, "with the losses themselves"),
            ("tight bound", self.tight, "r + sum of deltas"),
            ("bound", self.bound, "r + half the stability"),
            ("theorem's bound", self.theorem, "r + stability"),
            ("worst case B_R", self.worst_case, "what could be promised"),
            ("closed form", self.closed_form, "the paper's constants"),
            ("closed form, strong", self.closed_form_strong, "half the stability"),
            *((f"best in hindsight, {k}", v, "smallest B_R of a fixed Q") for k, v in self.post_hoc.items()),
            (f"ratio to {self.family}" if self.family else "ratio", self.ratio, _proved(self.proven_ratio)),
        ]
        shown = [(name, _short(value), note) for name, value, note in rows if value is not None or name[:4] != "true"]
        width = max(len(name) for name, _, _ in shown)
        digits = max(len(value) for _, value, _ in shown)
        lines = [f"after {self.rounds} round{'s' if self.rounds != 1 else ''}"]
        lines += [f"  {name:<{width}}  {value:>{digits}}  {note}".rstrip() for name, value, note in shown]
        lines += [f"  note: {caveat}" for caveat in self.caveats]
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Regret against its bounds over the rounds; needs a game that keeps its history."""
        if self.history is None or not self.history.rounds:
            raise InvalidInput("plot needs a history, got none; play with Game(learner, history=True).")
        from ftprl import draw

        lines = [
            draw.Series(name, self.history.rounds, values, dashed=name != "regret")
            for name, values in self.history.series.items()
            if any(math.isfinite(v) for v in values)
        ]
        if not lines:
            raise InvalidInput("plot needs finite numbers, got none: the set is unbounded; bound it.")
        return draw.figure([draw.Panel("Regret and its bounds", "round", "loss units", lines)])


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _proved(ratio: float | None) -> str:
    return "" if ratio is None else f"proved: at most {ratio:.4g}"


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
