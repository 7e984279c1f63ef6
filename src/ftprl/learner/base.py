"""The interface of a learner: it plays points of a set, learns from gradients, and gives a certificate."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.bounds import Bounds, Certificate, Ledger, certify
from ftprl.errors import InvalidInput
from ftprl.learner.composite import minimise_over
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]

_LARGE, _SMALL = 1e150, 1e-150  # squares of gradients beyond these leave the range of a float
_SMALLEST, _LARGEST = 1e-151, 1e151  # squares of widths beyond these leave it, too


@dataclass(frozen=True, slots=True, eq=False)
class LearnerState:
    """Base class of learners' states: the point to play and the number of rounds played."""

    x: Vector
    t: int


S = TypeVar("S", bound=LearnerState)


class Learner(ABC, Generic[S]):
    """Base class of learners, which play points of `feasible`.

    `init()` returns a state; play `state.x`, then `update(state, g)` returns the next state.
    """

    feasible: ConvexSet

    @abstractmethod
    def init(self, hint: ArrayLike | None = None) -> S:
        """Return the state before the first round; `hint` is a guess of the first gradient."""

    @abstractmethod
    def advance(self, state: S, g: Vector, hint: Vector | None) -> S:
        """Run `update` without its checks: the arguments are clean vectors of the right length."""

    def advance_late(self, state: S, g: Vector, passed: Vector) -> S:
        """Return the state after the gradient `g` of an earlier play.

        `passed` is the sum of the gradients that arrived since that play. By default `g` counts as a gradient at
        `state.x`; a game measures the cost of that.
        """
        return self.advance(state, g, None)

    def delayed_share(self, played: S, after: S, g: Vector, missing: Vector) -> float:
        """Return an upper bound on a round's share of the bounds if gradients of earlier plays were missing at its
        play.

        `missing` is the sum of these gradients, `played` the state whose point was played, and `after` the state after
        the next gradient of any play. The default is infinity: no such bound is known.
        """
        return math.inf

    def update(self, state: S, g: ArrayLike, hint: ArrayLike | None = None) -> S:
        """Return the state after the gradient `g` at `state.x`; `state` itself is unchanged.

        `hint` is a guess of the next gradient, used only to choose the next point. Raises InvalidInput if `g` is not
        finite or has the wrong length.
        """
        n = self.feasible.dim
        guess = None if hint is None else gradient("hint", hint, n)
        return self.advance(state, gradient("g", g, n), guess)

    @property
    def adds_to_losses(self) -> bool:
        """Return True if a term of the learner's own, such as a per-round penalty, counts in every round's loss."""
        return False

    def record(self, ledger: Ledger, before: S, g: Vector, after: S) -> Ledger:
        """Return the ledger with one more round: `g` is the gradient at `before.x`, `after` the state that it led
        to.
        """
        return ledger.add_round(before.x, g)

    def certificate(
        self, state: S, ledger: Ledger, *, program: bool = False, comparator: Vector | None = None
    ) -> Certificate:
        """Return the certificate of the rounds in `ledger`, against the best point of F or a given comparator."""
        x, gap = (comparator, 0.0) if comparator is not None else self.best_fixed(state, ledger)
        bounds = self.bounds(state, ledger, x, gap)
        return certify(self.feasible, ledger, x, self.regret(ledger, x) + gap, bounds, program)

    def best_fixed(self, state: S, ledger: Ledger) -> tuple[Vector | None, float]:
        """Return a best fixed point, near the current play if there are several, and its gap; None on an unbounded
        set.

        The gap bounds how far its total loss may be from the smallest. It is added to the regret, which is then never
        underestimated.
        """
        feasible = self.feasible
        if not ledger.t:
            return state.x, 0.0
        if not np.isfinite(feasible.widths()).all() and ledger.S.any():
            return None, 0.0
        solution = minimise_over(feasible, psd.zero(), ledger.S, state.x)
        if solution.gap > 1e-12 * float(np.abs(ledger.S) @ feasible.widths()):
            corner = feasible.vertex(ledger.S)
            won = float(ledger.S @ (solution.x - corner))
            if won > 0:
                return corner, max(solution.gap - won, 0.0)
        return solution.x, solution.gap

    def regret(self, ledger: Ledger, x: Vector | None) -> float:
        """Return the linearised regret against x; infinite if there is no x to compare with."""
        return math.inf if x is None else ledger.linear_regret(x)

    def bounds(self, state: S, ledger: Ledger, x: Vector | None, gap: float) -> Bounds:
        """Return upper bounds on the regret against a best fixed point, known as x up to `gap`; none by default."""
        return Bounds()

    def core(self) -> Learner[Any]:
        """Return the learner to which regret and bounds refer: this one, unless it plays in other coordinates."""
        return self

    def core_state(self, state: S) -> LearnerState:
        """Return the state of the core learner."""
        return state

    def to_core(self, x: Vector) -> Vector:
        """Return a point in the core learner's coordinates."""
        return x

    def from_core(self, x: Vector) -> Vector:
        """Return a point of the core learner in this learner's coordinates."""
        return x

    def gradient_to_core(self, g: Vector) -> Vector:
        """Return a gradient in the core learner's coordinates."""
        return g


def gradient(name: str, value: ArrayLike, dim: int) -> Vector:
    """Return a checked copy of a gradient: finite, of the right length, with entries whose squares underflow set to
    0.
    """
    # The state keeps a copy, so that the caller may change the array afterwards.
    g = check.array(name, value)
    if g.shape != (dim,):
        check.vector(name, g, dim)
    size = np.abs(g)
    i = size.argmax()  # of a NaN if there is one; with argmin far quicker than max() and min()
    if not size[i] < _LARGE:
        check.finite(name, g)
        raise InvalidInput(f"{name} needs entries below 1e150, got {name}[{i}]={g[i]:g}; rescale the losses.")
    return g if size[size.argmin()] >= _SMALL else np.where(size < _SMALL, 0.0, g)


def in_range(feasible: ConvexSet) -> None:
    """Raise InvalidInput for a set so small or so large that the squares of its widths leave the range of a float."""
    D = feasible.widths()
    bad = np.flatnonzero((D > 0) & (D < _SMALLEST) | (D > _LARGEST) & np.isfinite(D))
    if bad.size:
        i = int(bad[0])
        raise InvalidInput(
            f"feasible needs widths of 0 or from 1e-151 to 1e151, got D[{i}]={D[i]:g} for {feasible!r};"
            " measure the points in another unit."
        )


def starting_point(feasible: ConvexSet, start: ArrayLike | None) -> Vector:
    """Return x_1: the given point, which must lie in F, or the set's own start."""
    if start is None:
        return feasible.start()
    x = check.vector("start", start, feasible.dim)
    if not feasible.contains(x):
        shown = np.array2string(x, precision=4, threshold=6).replace("\n", "")
        raise InvalidInput(f"start needs a point of {feasible!r}, got {shown} outside; pass a point inside or None.")
    return x
