"""Play a learner against losses, keep its ledger, and find the best point in hindsight."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.bounds import Certificate, History, Ledger, count_delays
from ftprl.errors import InvalidInput, Unsupported
from ftprl.hindsight import level_bundle
from ftprl.learner import Learner, LearnerState, Tickets, gradient
from ftprl.losses import Linear
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
LossLike = Callable[[Vector], tuple[float, ArrayLike]] | ArrayLike


@final
class Game:
    """A game in progress: play `game.x`, call `game.observe(g)`, and ask for a `certificate()` at any time.

    If gradients come later, use `ticket, x = game.play()` and `game.observe(g, ticket=ticket)`, in any order.

    >>> from ftprl import FTPRL
    >>> from ftprl.sets import Box
    >>> from ftprl.schemes import Diagonal
    >>> game = Game(FTPRL(Box(-1, 1, dim=2), Diagonal()))
    >>> game.observe([1.0, -0.5])
    >>> game.certificate().regret
    1.5
    """

    def __init__(
        self,
        learner: Learner[Any],
        *,
        full: bool = False,
        history: bool | int = False,
        hint: ArrayLike | None = None,
    ) -> None:
        if not isinstance(history, int | np.integer) or (history is not False and history < 1):
            raise InvalidInput(f"history needs True or a number of rounds of at least 1, got {history!r}; pass one.")
        check.instance("Game", learner, Learner)
        self.learner = learner
        self.state: LearnerState = learner.init(hint)
        self.ledger = Ledger.empty(learner.feasible.dim, full)
        self._core = learner.core()
        self._tickets = Tickets(learner)
        self._hinted = hint is not None
        self._every = int(history)
        self._recorded_rounds: list[int] = []
        self._series: dict[str, list[float]] = {}
        self._loss: float | None = 0.0
        self._best_loss: float | None = None

    def __repr__(self) -> str:
        return f"Game({type(self.learner).__name__} on {self.learner.feasible!r}, rounds={self.rounds})"

    @property
    def x(self) -> Vector:
        """Return a copy of the point to play now."""
        return self.state.x.copy()

    @property
    def rounds(self) -> int:
        """Return the number of observed rounds."""
        return self.ledger.t

    def play(self) -> tuple[int, Vector]:
        """Return a ticket and the point to play, for a gradient that comes later: pass both to `observe`, in any
        order.

        >>> from ftprl import FTPRL
        >>> from ftprl.sets import Box
        >>> from ftprl.schemes import Diagonal
        >>> game = Game(FTPRL(Box(-1, 1), Diagonal()))
        >>> first, x = game.play()
        >>> second, y = game.play()
        >>> game.observe([0.5], ticket=second)
        >>> game.observe([1.0], ticket=first)
        >>> game.certificate().delays.late
        1
        """
        self._refuse_delays()
        return self._tickets.hand_out(self.state).ticket, self.x

    def drop(self, ticket: int) -> None:
        """Remove a play whose gradient will never come; it does not count in the certificate."""
        self._tickets.drop(self._tickets.find(ticket))

    def _refuse_delays(self, hint: Vector | None = None) -> None:
        """Raise an error for options that delayed feedback does not support: hints and per-round penalties."""
        if self._core.adds_to_losses:
            raise Unsupported("delayed feedback needs losses without a per-round Composite; use per_round=False.")
        if hint is not None or self._hinted:
            raise InvalidInput("delayed feedback needs a game without hints, got one; leave the hints out.")

    def observe(
        self, g: ArrayLike, loss: float | None = None, hint: ArrayLike | None = None, *, ticket: int | None = None
    ) -> None:
        """Record a subgradient of the loss at `x`, with the loss itself and a guess of the next gradient if known.

        With a `ticket`, the gradient is at the point that `play` returned with it. Bad input raises InvalidInput and
        changes nothing.
        """
        n = self.learner.feasible.dim
        clean = gradient("g", g, n)
        guess = None if hint is None else gradient("hint", hint, n)
        own_loss = None if loss is None else check.number("loss", loss)
        if ticket is None and not self._tickets:
            self._advance(self.learner.advance(self.state, clean, guess), clean)
        else:
            self._observe_play(ticket, clean, guess)
        self._hinted = guess is not None
        self._loss = None if own_loss is None or self._loss is None else self._loss + own_loss
        self._best_loss = None  # it belongs to the previous rounds
        if self._every and self.rounds % self._every == 0:
            self._recorded_rounds.append(self.rounds)
            for name, value in _history_row(self._certify()).items():
                self._series.setdefault(name, []).append(value)

    def _advance(self, after: LearnerState, g: Vector) -> None:
        """Record the round in the ledger and move on to the state after it."""
        core = self.learner.core_state
        self.ledger = self._core.record(self.ledger, core(self.state), self.learner.gradient_to_core(g), core(after))
        self.state = after

    def _observe_play(self, ticket: int | None, g: Vector, guess: Vector | None) -> None:
        """Record a gradient while others are open; without a ticket it belongs to the current play."""
        self._refuse_delays(guess)
        tickets, now, before = self._tickets, self.state, self.ledger.stability
        play = tickets.hand_out(now) if ticket is None else tickets.find(ticket)
        try:
            late = play.delay > 0
            after = self.learner.advance_late(now, g, play.passed) if late else self.learner.advance(now, g, None)
            self._advance(after, g)
        except Exception:
            if ticket is None:
                tickets.take_back(play)
            raise
        tickets.arrive(play, g, now, after, self.ledger.stability - before)

    def compare(self, best_loss: float) -> None:
        """Set the total loss of the best fixed point so far, valid until the next round is observed."""
        self._best_loss = check.number("best_loss", best_loss)

    def _certify(self, program: bool = False, comparator: Vector | None = None) -> Certificate:
        """Return the core learner's certificate, corrected for delays."""
        state = self.learner.core_state(self.state)
        made = self._core.certificate(state, self.ledger, program=program, comparator=comparator)
        tickets = self._tickets
        if not tickets.handed:
            return made
        return count_delays(made, tickets.delays(), tickets.share(self.ledger), tickets.noise)

    def certificate(
        self, *, program: bool = False, comparator: ArrayLike | None = None, best_loss: float | None = None
    ) -> Certificate:
        """Return the certificate so far.

        `program` computes best bounds in hindsight that have no closed form; `comparator` compares with a given point
        instead of the best; `best_loss`, the total loss of the best fixed point, adds the true regret if every loss was
        observed.
        """
        point = None
        if comparator is not None:
            outer = check.vector("comparator", comparator, self.learner.feasible.dim)
            if not self.learner.feasible.contains(outer):
                shown = np.array2string(outer, precision=4, threshold=6).replace("\n", "")
                raise InvalidInput(
                    f"comparator needs a point of {self.learner.feasible!r}, got {shown} outside; project it first."
                )
            point = self.learner.to_core(outer)
        made = self._certify(program, point)
        best = self._best_loss if best_loss is None else check.number("best_loss", best_loss)
        true = None if best is None or self._loss is None else self._loss - best
        caveats = made.caveats
        if self._core.adds_to_losses and true is not None:
            true, caveats = None, (*caveats, "the true regret is not known with a composite term in every round")
        if best_loss is not None and self._loss is None:
            caveats = (*caveats, "the true regret needs the loss of every round; pass loss= to observe()")
        if self._core is not self.learner:
            caveats = (*caveats, "the families are those of the preconditioned coordinates")
        kept = {name: tuple(values) for name, values in self._series.items()}
        history = History(tuple(self._recorded_rounds), kept) if self._every else None
        point = None if made.comparator is None else self.learner.from_core(made.comparator)
        own_loss = self._loss if made.rounds else None
        return replace(made, loss=own_loss, true_regret=true, comparator=point, history=history, caveats=caveats)


def _history_row(c: Certificate) -> dict[str, float]:
    """Return the numbers of a certificate that the history keeps."""
    best = c.post_hoc.get(c.family) if c.family else c.post_hoc["const"]
    rows = {"regret": c.regret, "bound": c.bound, "worst case B_R": c.worst_case, "best in hindsight": best}
    return {name: math.nan if value is None else value for name, value in rows.items()}


def _as_loss(loss: LossLike, dim: int, t: int) -> Callable[[Vector], tuple[float, ArrayLike]]:
    """Return a loss as a function; a vector is a linear loss."""
    return loss if callable(loss) else Linear(check.vector(f"losses[{t}]", loss, dim))


def _ask(f: Callable[[Vector], tuple[float, ArrayLike]], x: Vector) -> tuple[float, ArrayLike]:
    """Return the pair (value, subgradient) of a loss; raise InvalidInput for any other answer."""
    answer = f(x)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InvalidInput(f"a loss needs to return (value, subgradient), got {answer!r}; return both.")
    return answer


def play(
    learner: Learner[Any],
    losses: Iterable[LossLike],
    *,
    full: bool = False,
    history: bool | int = False,
    hindsight: bool = False,
) -> Game:
    """Play through `losses`: rows of gradients, loss objects, or functions x -> (value, subgradient).

    With `hindsight` the best fixed point against the losses themselves is computed afterwards, for the true regret.

    >>> from ftprl import FTPRL
    >>> from ftprl.sets import Box
    >>> from ftprl.schemes import Diagonal
    >>> play(FTPRL(Box(-1, 1, dim=1), Diagonal()), [[1.0], [1.0]]).certificate().regret
    1.0
    """
    game = Game(learner, full=full, history=history)
    if not isinstance(losses, Iterable):
        raise InvalidInput(f"losses needs rows, loss objects or functions in a sequence, got {losses!r}; pass a list.")
    dim = learner.feasible.dim
    kept: list[Callable[[Vector], tuple[float, ArrayLike]]] = []
    for t, loss in enumerate(losses):
        f = _as_loss(loss, dim, t)
        value, g = _ask(f, game.x)
        game.observe(g, loss=value)
        if hindsight:
            kept.append(f)
    if hindsight:
        game.compare(best_in_hindsight(learner.feasible, kept).lower)
    return game


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hindsight:
    """The best fixed point found, its total loss, and a proved lower bound on the smallest total loss."""

    x: Vector
    value: float
    lower: float


def best_in_hindsight(
    feasible: ConvexSet, losses: Sequence[LossLike], tol: float = 1e-7, steps: int = 400
) -> Hindsight:
    """Minimise the sum of the losses over F: exactly if they are linear, by a level bundle method otherwise.

    The method stops when the proved lower bound is within `tol` of the value, relative to the value itself and (by
    `tol` squared) to the first value, or after `steps` tangents. Raises InvalidInput for an unbounded set.
    """
    check.instance("best_in_hindsight", feasible, ConvexSet)
    if not np.isfinite(feasible.widths()).all():
        raise InvalidInput(f"the best point in hindsight needs a bounded set, got width inf in {feasible!r}; bound it.")
    functions = [_as_loss(f, feasible.dim, t) for t, f in enumerate(losses)]
    if all(isinstance(f, Linear) for f in functions):
        S = np.sum([f.g for f in functions if isinstance(f, Linear)], axis=0) if functions else np.zeros(feasible.dim)
        best = feasible.minimise(psd.zero(), S, feasible.vertex(S))
        value = float(S @ best.x)
        return Hindsight(best.x, value, value - best.gap)

    def total(x: Vector) -> tuple[float, Vector]:
        """Return the sum of the losses and its subgradient."""
        value, slope = 0.0, np.zeros(feasible.dim)
        for f in functions:
            v, g = f(x)
            value += float(v)
            slope += np.asarray(g, dtype=np.float64)
        return value, slope

    x, value, lower = level_bundle(feasible, total, tol, steps)
    return Hindsight(x, value, lower)
