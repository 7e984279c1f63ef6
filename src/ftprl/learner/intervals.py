"""Small regret on every interval: copies of a learner that start again and again, and their mixture."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.bounds import Bounds, Ledger
from ftprl.errors import InvalidInput, Unsupported
from ftprl.learner.base import Learner, LearnerState
from ftprl.learner.solo import refuse_hint
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@final
@dataclass(frozen=True, slots=True)
class Interval:
    """The regret and its bounds on the rounds from `start` to `end`, both included; the first round is 1.

    On an interval of one copy the regret is exact, against the best fixed point of these rounds. On other intervals it
    is the sum over the copies' intervals that make them up, an upper bound (`exact` is False).
    """

    start: int
    end: int
    regret: float
    tight: float | None
    bound: float | None
    theorem: float | None
    exact: bool = True


@final
@dataclass(frozen=True, slots=True, eq=False)
class Copy:
    """A copy of the learner, its ledger since `start`, and its weight in the mixture."""

    start: int
    end: int
    state: LearnerState
    ledger: Ledger
    log_weight: float = 0.0
    won: float = 0.0  # total loss of the mixture minus total loss of the copy
    squares: float = 0.0  # sum of squares of these differences per round, over limit²
    turnover: float = 0.0  # sum |g|·|x - the copy's x|, against which rounding is measured

    @property
    def rate(self) -> float:
        """Return the learning rate min(½, 1/sqrt(length)) of this copy's weight."""
        return min(0.5, 1.0 / math.sqrt(self.end - self.start + 1))


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveState(LearnerState):
    """The state of `StronglyAdaptive`.

    It has the copies that play now, the total initial mass of all copies so far, and a linked list of the copies that
    have ended.
    """

    copies: tuple[Copy, ...]
    mass: float
    ended: tuple[Interval, Any] | None


@final
@dataclass(frozen=True, slots=True, eq=False)
class StronglyAdaptive(Learner[AdaptiveState]):
    """A mixture of copies of `learner` that begin at rounds k 2^i and play 2^i rounds: low regret on every interval.

    Daniely, Gonen and Shalev-Shwartz (2015). `limit` is at least |g·(x - y)| in every round, for points x, y that the
    copies play. On each interval I of a copy the mixture's loss exceeds the copy's by at most limit (ln(M/eta)/eta +
    eta |I|), with eta = min(½, |I|^-½) and M the sum of eta over the copies so far; the copy's own certificate bounds
    the rest. Every interval is made of few of these, at most two of each length.

    >>> from ftprl import FTPRL
    >>> from ftprl.sets import Box
    >>> from ftprl.schemes import Diagonal
    >>> learner = StronglyAdaptive(FTPRL(Box(-1, 1), Diagonal()), limit=2.0)
    >>> state = learner.init()
    >>> for g in (1.0, 1.0, -1.0, -1.0):
    ...     state = learner.update(state, [g])
    >>> piece = learner.interval(state, 3, 4)
    >>> piece.regret <= piece.tight <= piece.bound
    True
    """

    learner: Learner[Any]
    limit: float
    feasible: ConvexSet = field(init=False)

    def __post_init__(self) -> None:
        check.instance("the learner inside StronglyAdaptive", self.learner, Learner)
        check.positive("limit", self.limit)
        if self.learner.core().adds_to_losses:
            raise Unsupported("StronglyAdaptive needs losses without a per-round Composite; use per_round=False.")
        object.__setattr__(self, "feasible", self.learner.feasible)

    def init(self, hint: ArrayLike | None = None) -> AdaptiveState:
        """Return the state in which the first copy starts."""
        refuse_hint(hint, "StronglyAdaptive")
        return self._mix(0, (), 0.0, None)

    def _mix(self, t: int, copies: tuple[Copy, ...], mass: float, ended: tuple[Interval, Any] | None) -> AdaptiveState:
        """Return the state before round t + 1: copies that begin there join, and all are mixed by their weights."""
        first, new, length = t + 1, [], 1
        while first % length == 0:
            dim = self.learner.core().feasible.dim
            new.append(Copy(first, first + length - 1, self.learner.init(), Ledger.empty(dim)))
            length *= 2
        copies, mass = (*copies, *new), mass + sum(copy.rate for copy in new)
        score = np.array([copy.log_weight + math.log(copy.rate) for copy in copies])
        share = np.exp(score - score.max())
        x = (share / share.sum()) @ np.array([copy.state.x for copy in copies])
        return AdaptiveState(x, t, copies, mass, ended)

    def advance(self, state: AdaptiveState, g: Vector, hint: Vector | None) -> AdaptiveState:
        """Play one round of every copy; copies at their end move to the list of ended ones."""
        refuse_hint(hint, "StronglyAdaptive")
        t, going, ended = state.t + 1, [], state.ended
        for copy in [self._advance(copy, state.x, g) for copy in state.copies]:
            if copy.end == t:
                ended = (self._certify(copy, t, state.mass), ended)
            else:
                going.append(copy)
        return self._mix(t, tuple(going), state.mass, ended)

    def _advance(self, copy: Copy, x: Vector, g: Vector) -> Copy:
        """Return the copy after a round; raise InvalidInput if the round exceeds `limit`."""
        away = x - copy.state.x
        won = float(g.dot(away))
        if abs(won) > self.limit * (1 + 1e-9):
            raise InvalidInput(
                f"StronglyAdaptive needs |g·(x - y)| <= limit={self.limit:g}, got {abs(won):g}; raise the limit."
            )
        learner, core = self.learner, self.learner.core()
        after = learner.advance(copy.state, g, None)
        ledger = core.record(
            copy.ledger, learner.core_state(copy.state), learner.gradient_to_core(g), learner.core_state(after)
        )
        r = won / self.limit
        return replace(
            copy,
            state=after,
            ledger=ledger,
            log_weight=copy.log_weight + math.log1p(copy.rate * r),
            won=copy.won + won,
            squares=copy.squares + r * r,
            turnover=copy.turnover + float(np.abs(g).dot(np.abs(away))),
        )

    def _certify(self, copy: Copy, now: int, mass: float) -> Interval:
        """Return the copy's certificate plus the mixture's excess loss: measured in `tight`, proved in the other
        bounds.
        """
        learner, eta = self.learner, copy.rate
        made = learner.core().certificate(learner.core_state(copy.state), copy.ledger)
        rounds = now - copy.start + 1
        noise = 4 * _EPS * rounds * (len(copy.state.x) + 8) * (copy.turnover + self.limit)
        start = math.log(mass / eta) / eta
        extra = self.limit * (start + eta * copy.squares), self.limit * (start + eta * rounds)

        def plus(value: float | None, more: float) -> float | None:
            """Return value + more + rounding, or None if the bound is unknown."""
            return None if value is None else value + more + noise

        return Interval(
            copy.start,
            now,
            made.regret + copy.won,
            plus(made.tight, copy.won),
            plus(made.bound, extra[0]),
            plus(made.theorem, max(extra)),
        )

    def intervals(self, state: AdaptiveState) -> list[Interval]:
        """Return every interval on which a copy has played, running ones included, in the order of their ends."""
        out, chain = [], state.ended
        while chain is not None:
            out.append(chain[0])
            chain = chain[1]
        running = [self._certify(copy, state.t, state.mass) for copy in state.copies if copy.start <= state.t]
        return [*reversed(out), *running]

    def interval(self, state: AdaptiveState, start: int, end: int) -> Interval:
        """Return regret and bounds on the rounds from `start` to `end`, both included.

        Raises InvalidInput if these rounds have not been played.
        """
        if not 1 <= start <= end <= state.t:
            raise InvalidInput(
                f"interval needs rounds 1 <= start <= end <= {state.t}, got {start!r} to {end!r}; pass rounds played."
            )
        known = {(part.start, part.end): part for part in self._ended_since(state, start)}
        parts, at = [], start
        while at <= end:
            length = at & -at  # the longest copy that begins at this round
            while at + length - 1 > end:
                length //= 2
            parts.append(known[at, at + length - 1])
            at += length
        return _join(parts)

    def _ended_since(self, state: AdaptiveState, start: int) -> list[Interval]:
        """Return the intervals of the copies that ended at `start` or later, the latest first."""
        out, chain = [], state.ended
        while chain is not None and chain[0].end >= start:
            out.append(chain[0])
            chain = chain[1]
        return out

    def bounds(self, state: AdaptiveState, ledger: Ledger, x: Vector | None, gap: float) -> Bounds:
        """Return the sums of the bounds over the intervals that make up the rounds so far."""
        if not state.t:
            return Bounds(tight=0.0, bound=0.0, theorem=0.0)
        whole = self.interval(state, 1, state.t)
        size = float(self.feasible.widths() @ np.sqrt(ledger.t * ledger.G))
        noise = _EPS * ledger.t * (len(state.x) + 8) * size + gap
        tight, bound, theorem = (None if v is None else v + noise for v in (whole.tight, whole.bound, whole.theorem))
        note = "the bounds add up those of the copies; see StronglyAdaptive.interval"
        return Bounds(tight=tight, bound=bound, theorem=theorem, caveats=(note,))


def _join(parts: list[Interval]) -> Interval:
    """Return consecutive intervals as one."""

    def total(values: list[float | None]) -> float | None:
        """Return the sum, or None if some value is unknown."""
        return None if any(v is None for v in values) else float(sum(v for v in values if v is not None))

    if len(parts) == 1:
        return parts[0]
    return Interval(
        parts[0].start,
        parts[-1].end,
        sum(part.regret for part in parts),
        total([part.tight for part in parts]),
        total([part.bound for part in parts]),
        total([part.theorem for part in parts]),
        exact=False,
    )
