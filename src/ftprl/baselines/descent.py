"""Online gradient descent with one learning rate for all coordinates, projected at once or lazily."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput, Unsupported
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
Rate = float | Callable[[int], float]


def refuse_hint(hint: ArrayLike | None, who: str) -> None:
    """Raise Unsupported if there is a hint, which baselines cannot use; `who` names the learner in the message."""
    if hint is not None:
        raise Unsupported(f"{who} takes no hint; use FTPRL, or leave the hint out.")


def check_rate(rate: Rate | None, feasible: ConvexSet, who: str) -> None:
    """Raise InvalidInput unless the rate is positive, or absent on a bounded set."""
    if rate is None and not math.isfinite(feasible.diameter()):
        raise InvalidInput(f"{who} needs a bounded set or a rate, got {feasible!r} and none; pass rate=0.1.")
    if rate is not None and not callable(rate):
        check.positive("rate", rate)


def rate_at(rate: Rate | None, t: int, feasible: ConvexSet, G: float) -> float:
    """Return the rate of round t; by default D / sqrt(2 sum |g|²), and 0 while all gradients are 0."""
    if rate is None:
        return feasible.diameter() / math.sqrt(2 * G) if G else 0.0
    return check.positive("rate", rate(t)) if callable(rate) else rate


def nearest(feasible: ConvexSet, target: Vector, near: Vector) -> Vector:
    """Return the point of F nearest to `target`.

    >>> from ftprl.sets import Box
    >>> nearest(Box(-1, 1), np.array([3.0]), np.zeros(1))
    array([1.])
    """
    return feasible.argmin(np.array(1.0), -target, near)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DescentState(LearnerState):
    """The state of `GradientDescent`: `G` = the sum of |g|²."""

    G: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class GradientDescent(Learner[DescentState]):
    """Online gradient descent (Zinkevich): x_{t+1} is the point of F nearest to x_t - rate·g_t.

    `rate` is a number, a function of t = 1, 2, ..., or None for D / sqrt(2 sum |g_s|²), which needs no tuning.

    >>> from ftprl.sets import Box
    >>> learner = GradientDescent(Box(-1, 1), rate=0.1)
    >>> learner.update(learner.init(), [2.0]).x
    array([-0.2])
    """

    feasible: ConvexSet
    rate: Rate | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check_rate(self.rate, self.feasible, "GradientDescent")

    def init(self, hint: ArrayLike | None = None) -> DescentState:
        """Return the state before the first round."""
        refuse_hint(hint, "GradientDescent")
        return DescentState(starting_point(self.feasible, self.start), 0, 0.0)

    def advance(self, state: DescentState, g: Vector, hint: Vector | None) -> DescentState:
        """Take one step against the gradient and project onto F."""
        refuse_hint(hint, "GradientDescent")
        G, t = state.G + float(g @ g), state.t + 1
        eta = rate_at(self.rate, t, self.feasible, G)
        return DescentState(nearest(self.feasible, state.x - eta * g, state.x), t, G)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LazyState(LearnerState):
    """The state of `LazyDescent`: `u`, the point before projection, and `G` = the sum of |g|²."""

    u: Vector
    G: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class LazyDescent(Learner[LazyState]):
    """Lazy projection (Zinkevich): u_{t+1} = u_t - rate·g_t, and the point of F nearest to u is played.

    Each step starts where the last one ended, even outside F. With a fixed rate it has the regret of gradient descent;
    with a falling rate it may not return in time.

    >>> from ftprl.sets import Box
    >>> learner = LazyDescent(Box(-1, 1), rate=1.0)
    >>> state = learner.update(learner.init(), [2.0])
    >>> state.x, state.u
    (array([-1.]), array([-2.]))
    """

    feasible: ConvexSet
    rate: Rate | None = None
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check_rate(self.rate, self.feasible, "LazyDescent")

    def init(self, hint: ArrayLike | None = None) -> LazyState:
        """Return the state before the first round."""
        refuse_hint(hint, "LazyDescent")
        x = starting_point(self.feasible, self.start)
        return LazyState(x, 0, x, 0.0)

    def advance(self, state: LazyState, g: Vector, hint: Vector | None) -> LazyState:
        """Take one step of u; project it only to play."""
        refuse_hint(hint, "LazyDescent")
        G, t = state.G + float(g @ g), state.t + 1
        u = state.u - rate_at(self.rate, t, self.feasible, G) * g
        return LazyState(nearest(self.feasible, u, state.x), t, u, G)


@final
@dataclass(frozen=True, slots=True, eq=False)
class RestartedState(LearnerState):
    """The state of `RestartedDescent`.

    `u` is the point before projection, `G` the sum of |g|² since the last restart, and `budget` the limit of `G`.
    """

    u: Vector
    G: float
    budget: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class RestartedDescent(Learner[RestartedState]):
    """Lazy projection with restarts: a fixed rate D / sqrt(budget) until the sum of |g|² would exceed the budget.

    Then the budget is doubled until the new gradient fits, and u restarts at x_1 (the doubling trick). The regret is at
    most 2 / (sqrt 2 - 1) D sqrt(sum |g|²), without knowing the number of rounds. `scale` multiplies D.

    >>> from ftprl.sets import Box
    >>> learner = RestartedDescent(Box(-1, 1))
    >>> learner.update(learner.init(), [0.25]).x
    array([-1.])
    """

    feasible: ConvexSet
    scale: float = 1.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("scale", self.scale)
        check_rate(None, self.feasible, "RestartedDescent")

    def init(self, hint: ArrayLike | None = None) -> RestartedState:
        """Return the state before the first round."""
        refuse_hint(hint, "RestartedDescent")
        x = starting_point(self.feasible, self.start)
        return RestartedState(x, 0, x, 0.0, 0.0)

    def advance(self, state: RestartedState, g: Vector, hint: Vector | None) -> RestartedState:
        """Take one step of u, from x_1 if the budget is exceeded."""
        refuse_hint(hint, "RestartedDescent")
        square, u, G, budget = float(g @ g), state.u, state.G, state.budget
        if G + square > budget:
            u, G = starting_point(self.feasible, self.start), 0.0
            budget = max(2 * budget, square)
        if not budget:
            return RestartedState(state.x, state.t + 1, u, G, budget)
        u = u - self.scale * self.feasible.diameter() / math.sqrt(budget) * g
        return RestartedState(nearest(self.feasible, u, state.x), state.t + 1, u, G + square, budget)
