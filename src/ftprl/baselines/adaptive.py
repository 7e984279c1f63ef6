"""Gradient descent with learning rates that follow from the gradients, one for all coordinates or one for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.baselines.descent import nearest, refuse_hint
from ftprl.errors import InvalidInput, Unsupported
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import Box, ConvexSet

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveState(LearnerState):
    """The state of `AdaptiveDescent`: `weight` = lambda_{1:t} and the centre of the added curvature."""

    weight: float
    centre: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaptiveDescent(Learner[AdaptiveState]):
    """Adaptive descent: x_{t+1} is the point of F nearest to x_t - (g_t + lambda_t (x_t - x_1)) / (H_{1:t} +
    lambda_{1:t}).

    Bartlett, Hazan and Rakhlin (2008): each round's loss has curvature H_t = `curvature`, and lambda_t adds curvature
    where it is missing: the root of 3/2 D² lambda_t = |g_t|² / (H_{1:t} + lambda_{1:t}). Regret <= 3 D² lambda_{1:T},
    between log T and sqrt T. `scale` multiplies D.

    >>> from ftprl.sets import L2Ball
    >>> learner = AdaptiveDescent(L2Ball(2))
    >>> learner.update(learner.init(), [1.0, 0.0]).x.round(3)
    array([-1.,  0.])
    """

    feasible: ConvexSet
    scale: float = 1.0
    curvature: float = 0.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("scale", self.scale)
        check.positive("curvature", self.curvature, zero=True)
        if not math.isfinite(self.feasible.diameter()):
            raise InvalidInput(f"AdaptiveDescent needs a bounded set, got {self.feasible!r}; bound it, as by a Box.")

    def init(self, hint: ArrayLike | None = None) -> AdaptiveState:
        """Return the state before the first round; the start is also the centre."""
        refuse_hint(hint, "AdaptiveDescent")
        x = starting_point(self.feasible, self.start)
        return AdaptiveState(x, 0, 0.0, x)

    def advance(self, state: AdaptiveState, g: Vector, hint: Vector | None) -> AdaptiveState:
        """Add the smallest curvature that balances this round, then take a descent step."""
        refuse_hint(hint, "AdaptiveDescent")
        t, D = state.t + 1, self.scale * self.feasible.diameter()
        held = self.curvature * t + state.weight
        extra = balanced(held, 2 * float(g @ g) / (3 * D * D) if D else 0.0)
        if held + extra == 0.0:
            return AdaptiveState(state.x, t, 0.0, state.centre)
        step = (g + extra * (state.x - state.centre)) / (held + extra)
        x = nearest(self.feasible, state.x - step, state.x)
        return AdaptiveState(x, t, state.weight + extra, state.centre)


def balanced(held: float, product: float) -> float:
    """Return the positive root of x (held + x) = product, ½ (sqrt(held² + 4 product) - held), without cancellation.

    >>> balanced(0.0, 4.0)
    2.0
    """
    return 2 * product / (math.sqrt(held * held + 4 * product) + held) if product else 0.0


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProximalState(LearnerState):
    """The state of `ProximalDescent`: `weight` = tau_{1:t}."""

    weight: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class ProximalDescent(Learner[ProximalState]):
    """Proximal descent: x_{t+1} is the point of F nearest to x_t - g_t / (H_{1:t} + tau_{1:t}).

    Proximal regularisation after Do, Le and Foo (2009): to each round's loss, of curvature H_t = `curvature`, the term
    ½ tau_t |x - x_t|² is added. Centred at the play it changes no gradient there. tau_t balances its cost and its gain,
    D² tau_t = |g_t|² / (H_{1:t} + tau_{1:t}). The regret is at most D² tau_{1:T}, within a factor 2 of the best tau_1,
    ..., tau_T in hindsight, and without curvature at most sqrt 2 D sqrt(sum |g|²). `scale` multiplies D.

    >>> from ftprl.sets import L2Ball
    >>> learner = ProximalDescent(L2Ball(2, radius=0.5))
    >>> learner.update(learner.init(), [0.25, 0.0]).x
    array([-0.5,  0. ])
    """

    feasible: ConvexSet
    scale: float = 1.0
    curvature: float = 0.0
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("scale", self.scale)
        check.positive("curvature", self.curvature, zero=True)
        if not math.isfinite(self.feasible.diameter()):
            raise InvalidInput(f"ProximalDescent needs a bounded set, got {self.feasible!r}; bound it, as by a Box.")

    def init(self, hint: ArrayLike | None = None) -> ProximalState:
        """Return the state before the first round."""
        refuse_hint(hint, "ProximalDescent")
        return ProximalState(starting_point(self.feasible, self.start), 0, 0.0)

    def advance(self, state: ProximalState, g: Vector, hint: Vector | None) -> ProximalState:
        """Add the curvature that balances this round, then take a descent step."""
        refuse_hint(hint, "ProximalDescent")
        t, D = state.t + 1, self.scale * self.feasible.diameter()
        held = self.curvature * t + state.weight
        extra = balanced(held, float(g @ g) / (D * D) if D else 0.0)
        x = nearest(self.feasible, state.x - g / (held + extra), state.x) if held + extra else state.x
        return ProximalState(x, t, state.weight + extra)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PerCoordinateState(LearnerState):
    """The state of `PerCoordinateDescent`: `G` = the sum of g_i²."""

    G: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class PerCoordinateDescent(Learner[PerCoordinateState]):
    """Per-coordinate descent on a box: x_{t+1,i} = clip(x_{t,i} - scale·D_i g_{t,i} / sqrt(G_i)).

    Streeter and McMahan (2010). With the default scale 1/sqrt 2 the regret is at most sqrt 2 · sum D_i sqrt(G_i).

    >>> learner = PerCoordinateDescent(Box(-1, 1, dim=2), scale=0.25)
    >>> learner.update(learner.init(), [3.0, -0.1]).x
    array([-0.5,  0.5])
    """

    feasible: ConvexSet
    scale: float = math.sqrt(0.5)
    start: ArrayLike | None = None

    def __post_init__(self) -> None:
        check.positive("scale", self.scale)
        if not isinstance(self.feasible, Box):
            raise Unsupported(f"PerCoordinateDescent needs a Box, got {self.feasible!r}; use AdaGrad there.")
        if not np.isfinite(self.feasible.widths()).all():
            raise InvalidInput(
                f"PerCoordinateDescent needs a bounded box, got {self.feasible!r}; bound it, or use AdaGrad."
            )

    def init(self, hint: ArrayLike | None = None) -> PerCoordinateState:
        """Return the state before the first round."""
        refuse_hint(hint, "PerCoordinateDescent")
        return PerCoordinateState(starting_point(self.feasible, self.start), 0, np.zeros(self.feasible.dim))

    def advance(self, state: PerCoordinateState, g: Vector, hint: Vector | None) -> PerCoordinateState:
        """Take one step in each coordinate; coordinates without a gradient so far stay where they are."""
        refuse_hint(hint, "PerCoordinateDescent")
        G = state.G + g * g
        step = np.divide(self.feasible.widths() * g, np.sqrt(G), out=np.zeros_like(g), where=G > 0)
        lower, upper = self.feasible.bounds()
        return PerCoordinateState(np.clip(state.x - self.scale * step, lower, upper), state.t + 1, G)
