"""Follow the proximally regularised leader: the paper's algorithm, on any set and with any scheme."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.bounds import Bounds, Ledger
from ftprl.errors import Unsupported
from ftprl.learner import accounting
from ftprl.learner.base import Learner, gradient, in_range, starting_point
from ftprl.learner.composite import Composite, minimise_over
from ftprl.learner.state import State
from ftprl.schemes import Scheme
from ftprl.sets import ConvexSet, Solution

Vector = NDArray[np.float64]
Matrix = psd.Matrix


@final
@dataclass(frozen=True, slots=True, eq=False)
class FTPRL(Learner[State]):
    """The learner that plays x_{t+1} = argmin over F of g_{1:t}·x + sum_s ½ (x-x_s)ᵀQ_s(x-x_s).

    >>> from ftprl.sets import Box
    >>> from ftprl.schemes import Diagonal
    >>> learner = FTPRL(Box(-1, 1, dim=1), Diagonal())
    >>> learner.update(learner.init(), [0.5]).x
    array([-1.])
    """

    feasible: ConvexSet
    scheme: Scheme
    start: ArrayLike | None = None
    composite: Composite | None = None

    def __post_init__(self) -> None:
        check.instance("feasible", self.feasible, ConvexSet)
        check.instance("scheme", self.scheme, Scheme)
        if self.composite is not None:
            check.instance("composite", self.composite, Composite)
        if self.scheme.anchored and (self.composite is not None or self.start is not None):
            raise Unsupported(
                f"{type(self.scheme).__name__} is centred at the set's own start, without a penalty: drop start= and"
                " composite=, or use another scheme."
            )
        if self.start is not None:
            object.__setattr__(self, "start", check.frozen(starting_point(self.feasible, self.start)))

    def init(self, hint: ArrayLike | None = None) -> State:
        """Return the first state: x_1 is `start` or, with a hint, the best point against it."""
        in_range(self.feasible)
        x = starting_point(self.feasible, self.start)
        zero = np.zeros(self.feasible.dim)
        m = None if hint is None else gradient("hint", hint, self.feasible.dim)
        scheme = self.scheme.init(self.feasible)
        gap, leader = 0.0, x
        if m is not None:
            play = self.minimise(psd.zero(), m, x, 0)
            x, gap = play.x, play.gap
        return State(x, 0, zero, scheme, psd.zero(), zero, m, leader, gap, 0.0)

    def advance(self, state: State, g: Vector, hint: Vector | None) -> State:
        """Play one round: the scheme adapts to the gradient, z adds it up, and the set gives the leader."""
        if self.scheme.anchored and (hint is not None or state.hint is not None):
            raise Unsupported(f"{type(self.scheme).__name__} takes no hints; use a scheme centred at the plays.")
        error = g if state.hint is None else g - state.hint
        return self._advance(state, g, hint, error, error)

    def advance_late(self, state: State, g: Vector, passed: Vector) -> State:
        """Play a late round: the scheme counts g² + 2 |g|·|passed| instead of g², as AdaptiveRevision does."""
        if self.scheme.anchored:  # its weights depend on limits of g itself
            return self.advance(state, g, None)
        square = float(g.dot(g))
        more = 2 * float(np.abs(g).dot(np.abs(passed))) / square if square else 0.0
        return self._advance(state, g, None, g, g * math.sqrt(1.0 + more))

    def delayed_share(self, played: State, after: State, g: Vector, missing: Vector) -> float:
        """Return min(½ |e|², |g| |e|, e·(x - u) over u in F) plus the gap, for e = g + missing in the dual norm of
        Q_{1:t}.
        """
        if self.scheme.anchored:  # the proof needs r_t = 0 at x_t
            return math.inf
        scheme, reach = self.scheme, self.feasible.widths()
        e, own = (scheme.effective(self.feasible, v) for v in (g + missing, g))
        # The scheme's own norm is not used: it may depend on the latest gradient.
        square, mine = (psd.dual_quad(after.total, v, reach) for v in (e, own))
        least = min(0.5 * square, math.sqrt(mine) * math.sqrt(square) if mine else 0.0)
        if not math.isfinite(least) and np.isfinite(reach).all():
            least = max(float(e.dot(played.x - self.feasible.vertex(e))), 0.0)
        return least + played.gap

    def _advance(self, state: State, g: Vector, hint: Vector | None, error: Vector, weighed: Vector) -> State:
        """Play one round: the bounds count `error` of g, and the scheme adapts to `weighed`."""
        feasible = self.feasible
        Q, scheme = self.scheme.step(state.scheme, weighed)
        seen = self.scheme.effective(feasible, error)
        moved = seen if state.hint is None else self.scheme.effective(feasible, g)
        z = state.z + moved
        z -= psd.apply(Q, starting_point(feasible, self.start) if self.scheme.anchored else state.x)
        t = state.t + 1
        best = play = self.minimise(scheme.total, z, state.x, t)
        best.x.setflags(write=False)  # a state is a value
        if hint is not None:
            play = self.minimise(scheme.total, z + hint, state.x, t)
            play.x.setflags(write=False)
        return State(play.x, t, z, scheme, Q, seen, hint, best.x, play.gap, best.gap)

    def minimise(self, H: Matrix, z: Vector, near: Vector, t: int) -> Solution:
        """Return the minimiser over the set of ½ xᵀHx + z·x plus the composite term after t rounds."""
        if self.composite is None:
            return minimise_over(self.feasible, H, z, near)
        return self.composite.minimise(self.feasible, H, z, near, t)

    @property
    def adds_to_losses(self) -> bool:
        """Return True if Psi is added to every round's loss."""
        return self.composite is not None and self.composite.per_round

    def record(self, ledger: Ledger, before: State, g: Vector, after: State) -> Ledger:
        """Return the ledger with one more round and its share of every term of the bounds."""
        return accounting.record(self.feasible, self.scheme, self.composite, ledger, before, g, after)

    def best_fixed(self, state: State, ledger: Ledger) -> tuple[Vector | None, float]:
        """Return a best fixed point and its gap; with Psi in every round, it minimises losses and Psi together."""
        bounded = bool(np.isfinite(self.feasible.widths()).all()) or not ledger.S.any()
        if self.composite is None or not self.composite.per_round or not ledger.t or not bounded:
            return super(FTPRL, self).best_fixed(state, ledger)
        best = self.composite.minimise(self.feasible, psd.zero(), ledger.S, state.x, ledger.t)
        return best.x, best.gap

    def regret(self, ledger: Ledger, x: Vector | None) -> float:
        """Return the linearised regret against x, including Psi if it counts in every round."""
        linear = super(FTPRL, self).regret(ledger, x)
        if x is None or self.composite is None or not self.composite.per_round:
            return linear
        return linear + (ledger.psi - ledger.t * self.composite.value(x))

    def bounds(self, state: State, ledger: Ledger, x: Vector | None, gap: float) -> Bounds:
        """Return the chain of bounds, with the terms for inexact steps and composite penalties."""
        return accounting.bounds(self.feasible, self.scheme, self.composite, ledger, state, x, gap)
