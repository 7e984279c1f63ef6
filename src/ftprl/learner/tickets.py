"""Plays whose gradients come later, in any order: a game's bookkeeping of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.bounds import Delays, Ledger
from ftprl.errors import InvalidInput
from ftprl.learner.base import Learner, LearnerState

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


@dataclass(eq=False)
class Pending:
    """One play: its ticket, the state whose point was played, and the gradients that have arrived since."""

    ticket: int
    state: LearnerState
    passed: Vector  # the sum of the gradients that arrived since the play
    missing: Vector  # the sum of gradients of earlier plays that were missing, in the core's coordinates
    delay: int = 0
    after: LearnerState | None = None  # the core learner's state after the next gradient of any play
    g: Vector | None = None  # the play's own gradient, in the core learner's coordinates
    done: bool = False


@final
@dataclass(eq=False)
class Tickets:
    """The plays since the oldest open one, in their order, and sums over all earlier plays.

    A play is kept until every earlier play has its gradient or was dropped: only then is its share of the bound known.
    """

    learner: Learner[Any]
    handed: int = 0
    dropped: int = 0
    late: int = 0
    total: int = 0
    longest: int = 0
    cost: float = 0.0
    noise: float = 0.0
    stability: float = 0.0  # of rounds with a ticket, as the ledger counts it
    shares: float = 0.0  # of these rounds, including missing gradients
    tail: list[Pending] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Return True if a play waits for its gradient, or for the gradient of an earlier play."""
        return bool(self.tail)

    def hand_out(self, state: LearnerState) -> Pending:
        """Return a new ticket for the point of this state."""
        n = self.learner.feasible.dim
        play = Pending(self.handed, state, np.zeros(n), np.zeros(self.learner.core().feasible.dim))
        self.handed += 1
        self.tail.append(play)
        return play

    def take_back(self, play: Pending) -> None:
        """Delete a ticket whose round was refused."""
        self.tail.remove(play)
        self.handed -= 1

    def find(self, ticket: Any) -> Pending:
        """Return the open play of this ticket; raise InvalidInput if there is none."""
        for play in self.tail:
            if play.ticket == ticket and not play.done and not isinstance(ticket, bool):
                return play
        known = isinstance(ticket, int) and not isinstance(ticket, bool) and 0 <= ticket < self.handed
        what = f"{ticket!r}, which has its gradient already or was dropped" if known else repr(ticket)[:60]
        raise InvalidInput(f"ticket needs one that game.play() gave and that is open, got {what}; call play() first.")

    def drop(self, play: Pending) -> None:
        """Remove a play whose gradient will never come."""
        play.done = True
        self.dropped += 1
        self._settle()

    def arrive(self, play: Pending, g: Vector, now: LearnerState, after: LearnerState, grown: float) -> None:
        """Record the gradient of a play.

        The learner's state went from `now` to `after`, and its stability term grew by `grown`.
        """
        here, core = self.learner.core_state(after), self.learner.gradient_to_core(g)
        moved = play.state.x - now.x
        self.cost += float(g.dot(moved))
        self.noise += 4 * (len(g) + 4) * _EPS * (float(np.abs(g).dot(np.abs(moved))) + abs(self.cost))
        self.late += play.delay > 0
        self.total += play.delay
        self.longest = max(self.longest, play.delay)
        self.stability += grown
        play.g, play.done = core, True
        for other in self.tail:
            if other.after is None:
                other.after = here
            if not other.done:
                other.passed += g
                other.delay += 1
            if other.ticket > play.ticket:
                other.missing += core
        self._settle()

    def _settle(self) -> None:
        """Add up the plays whose shares of the bound are known."""
        while self.tail and self.tail[0].done:
            self.shares += self._share(self.tail.pop(0))

    def _share(self, play: Pending) -> float:
        """Return the play's share of the bound; 0 without a gradient."""
        if play.g is None or play.after is None:
            return 0.0
        played = self.learner.core_state(play.state)
        return self.learner.core().delayed_share(played, play.after, play.g, play.missing)

    def delays(self) -> Delays:
        """Return the counts so far."""
        waiting = sum(not play.done for play in self.tail)
        return Delays(waiting, self.dropped, self.late, self.total, self.longest, self.cost)

    def share(self, ledger: Ledger) -> float:
        """Return the delayed plays' share of the bound minus half their stability, with the rounding of both."""
        shares = self.shares + sum(self._share(play) for play in self.tail)
        return shares - 0.5 * self.stability + 4 * _EPS * ledger.t * (ledger.stability + shares)
