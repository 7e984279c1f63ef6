"""AdaGrad in both forms, with a diagonal or a full matrix (Duchi, Hazan and Singer 2010)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.baselines.descent import refuse_hint
from ftprl.errors import InvalidInput
from ftprl.learner import Learner, LearnerState, starting_point
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaGradState(LearnerState):
    """The state of `AdaGrad`: `G` is the sum of g_i² or, with a full matrix, of the outer products g gᵀ."""

    G: PSD


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaGrad(Learner[AdaGradState]):
    """AdaGrad by mirror descent: x_{t+1} = argmin over F of |x - (x_t - rate g/sqrt G)| in the norm of diag(sqrt G).

    `rate` is a number, or a vector with one per coordinate; None takes max D_i / sqrt 2, the choice of its regret
    bound. `full` takes the root of the sum of g gᵀ instead of its diagonal, and a single rate.

    >>> from ftprl.sets import Box
    >>> learner = AdaGrad(Box(-1, 1), rate=0.5)
    >>> learner.update(learner.init(), [3.0]).x
    array([-0.5])
    """

    feasible: ConvexSet
    rate: ArrayLike | None = None
    start: ArrayLike | None = None
    full: bool = False

    def __post_init__(self) -> None:
        _check_rate(self.rate, self.feasible, self.full, "AdaGrad")

    def init(self, hint: ArrayLike | None = None) -> AdaGradState:
        """Return the state before the first round."""
        refuse_hint(hint, "AdaGrad")
        return AdaGradState(starting_point(self.feasible, self.start), 0, _nothing(self.feasible, self.full))

    def advance(self, state: AdaGradState, g: Vector, hint: Vector | None) -> AdaGradState:
        """Take one step; coordinates without a gradient so far stay where they are."""
        refuse_hint(hint, "AdaGrad")
        G = _collect(state.G, g)
        rate = _rate(self.rate, self.feasible, self.full)
        if not np.all(rate):  # a single point
            return AdaGradState(state.x, state.t + 1, G)
        # ½ sum (s_i/rate_i)(x_i - u_i)² with u = x - rate g / s: the gradient enters undivided.
        weights = _root(G) / rate
        x = self.feasible.argmin(weights, g - psd.apply(weights, state.x), state.x)
        return AdaGradState(x, state.t + 1, G)


@final
@dataclass(frozen=True, slots=True, eq=False)
class DualState(LearnerState):
    """The state of `AdaGradDual`: `S` = g_{1:t}, `G` as in AdaGrad, and the centre of the regularisation."""

    S: Vector
    G: PSD
    centre: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class AdaGradDual(Learner[DualState]):
    """AdaGrad by dual averaging, with all regularisation centred at x_1.

    x_{t+1} = argmin over F of g_{1:t}·x + (x - x_1)ᵀ(delta I + diag sqrt G)(x - x_1) / (2 rate). `rate`, `full` and the
    default are as in `AdaGrad`; the bound in its paper assumes that delta is at least the largest |g_i|.

    >>> from ftprl.sets import Box
    >>> learner = AdaGradDual(Box(-1, 1), rate=0.5)
    >>> learner.update(learner.init(), [3.0]).x
    array([-0.5])
    """

    feasible: ConvexSet
    rate: ArrayLike | None = None
    start: ArrayLike | None = None
    full: bool = False
    delta: float = 0.0

    def __post_init__(self) -> None:
        _check_rate(self.rate, self.feasible, self.full, "AdaGradDual")
        check.positive("delta", self.delta, zero=True)

    def init(self, hint: ArrayLike | None = None) -> DualState:
        """Return the state before the first round; the start is also the centre."""
        refuse_hint(hint, "AdaGradDual")
        x = starting_point(self.feasible, self.start)
        return DualState(x, 0, np.zeros(self.feasible.dim), _nothing(self.feasible, self.full), x)

    def advance(self, state: DualState, g: Vector, hint: Vector | None) -> DualState:
        """Play the leader of all gradients so far, regularised towards the centre."""
        refuse_hint(hint, "AdaGradDual")
        S, G, t = state.S + g, _collect(state.G, g), state.t + 1
        rate = _rate(self.rate, self.feasible, self.full)
        if not np.all(rate):
            return DualState(state.x, t, S, G, state.centre)
        weights = psd.add(_root(G), np.array(self.delta)) / rate
        x = self.feasible.argmin(weights, S - psd.apply(weights, state.centre), state.x)
        return DualState(x, t, S, G, state.centre)


def _check_rate(rate: ArrayLike | None, feasible: ConvexSet, full: bool, who: str) -> None:
    """Raise InvalidInput unless the rate is positive, or absent on a bounded set."""
    check.instance("full", full, bool)
    if rate is None:
        if not np.isfinite(feasible.widths()).all():
            raise InvalidInput(f"{who} needs a bounded set or a rate, got {feasible!r} and none; pass rate=0.1.")
        return
    rates = check.finite("rate", check.array("rate", rate))
    if rates.ndim and full:
        raise InvalidInput(f"rate needs one number with a full matrix, got shape {rates.shape}; pass a float.")
    if rates.ndim:
        check.vector("rate", rates, feasible.dim)
    if np.any(rates <= 0):
        raise InvalidInput(f"rate needs numbers above 0, got {rates.min():g}; pass positive rates.")


def _rate(rate: ArrayLike | None, feasible: ConvexSet, full: bool) -> Vector:
    """Return the given rate, or D / sqrt 2, where D is the largest width for a diagonal and the diameter for a full
    matrix.
    """
    if rate is not None:
        return np.asarray(rate, dtype=float)
    return np.asarray((feasible.diameter() if full else feasible.widths().max()) / np.sqrt(2.0))


def _nothing(feasible: ConvexSet, full: bool) -> PSD:
    """Return the sum over no gradients: a zero matrix if `full`, else a zero vector."""
    n = feasible.dim
    return np.zeros((n, n)) if full else np.zeros(n)


def _collect(G: PSD, g: Vector) -> PSD:
    """Return G with the squares or the outer product of g added."""
    return G + (np.outer(g, g) if G.ndim == 2 else g * g)


def _root(G: PSD) -> PSD:
    """Return the matrix root or, for a diagonal, the root of each entry."""
    return psd.root(G) if G.ndim == 2 else np.sqrt(G)
