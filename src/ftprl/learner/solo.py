"""Learners with bounds that depend on the comparator, so that they need neither a diameter nor a guessed range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.bounds import Bounds, Ledger
from ftprl.errors import InvalidInput, Unsupported
from ftprl.extras import extra_imports
from ftprl.learner.base import Learner, LearnerState, starting_point
from ftprl.sets import Box, ConvexSet

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)
_RICH = 1e200  # a larger wealth comes near the end of the range of a float


def refuse_hint(hint: ArrayLike | None, who: str) -> None:
    """Raise Unsupported if there is a hint; `who` names the learner in the message."""
    if hint is not None:
        raise Unsupported(f"{who} needs a game without hints, got one; leave it out, or use FTPRL.")


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoloState(LearnerState):
    """The state of `SoloFTRL`.

    `S` is g_{1:t}; `root` (of the sum of squares) and `largest` (gradient) are numbers, or vectors with
    `per_coordinate`.
    """

    S: Vector
    root: Vector
    largest: Vector
    reach: Vector  # the largest |x_s - x_1| so far, by coordinate
    gap: float
    slack: float  # the most that inexact steps can have added to the regret


@final
@dataclass(frozen=True, slots=True, eq=False)
class SoloFTRL(Learner[SoloState]):
    """FTRL for unknown or infinite ranges: x_{t+1} = argmin over F of g_{1:t}·x + sqrt(sum |g_s|²) |x - x_1|² / (2
    scale).

    SOLO FTRL (Orabona and Pal). For every u in F the regret is at most (|u - x_1|²/(2 scale) + 2.75 scale) sqrt(sum
    |g|²) + 3.5 min(scale sqrt(T-1), D) max |g|: `scale` is a guess of |u - x_1|, and the set may be unbounded. With
    `per_coordinate`, on a box, each coordinate has its own learning rate and bound.

    >>> from ftprl.sets import Box
    >>> learner = SoloFTRL(Box(-np.inf, np.inf, dim=2))
    >>> learner.update(learner.init(), [3.0, 4.0]).x
    array([-0.6, -0.8])
    """

    feasible: ConvexSet
    scale: float = 1.0
    per_coordinate: bool = False
    start: ArrayLike | None = None
    _first: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check.instance("feasible", self.feasible, ConvexSet)
        check.positive("scale", self.scale)
        check.instance("per_coordinate", self.per_coordinate, bool)
        if self.per_coordinate and not isinstance(self.feasible, Box):
            raise Unsupported(
                f"per_coordinate=True needs a Box, got {self.feasible!r}; use per_coordinate=False there."
            )
        object.__setattr__(self, "_first", check.frozen(starting_point(self.feasible, self.start)))

    def init(self, hint: ArrayLike | None = None) -> SoloState:
        """Return the state with the first play x_1."""
        refuse_hint(hint, "SoloFTRL")
        zero = np.zeros(self.feasible.dim)
        none = zero if self.per_coordinate else np.zeros(())
        return SoloState(self._first, 0, zero, none, none, zero, 0.0, 0.0)

    def advance(self, state: SoloState, g: Vector, hint: Vector | None) -> SoloState:
        """Play one round: the regularisation grows with the root of the sum of squares."""
        refuse_hint(hint, "SoloFTRL")
        size = np.abs(g) if self.per_coordinate else np.asarray(math.sqrt(float(g.dot(g))))
        S, root = state.S + g, np.hypot(state.root, size)
        H = root / self.scale
        step = self.feasible.minimise(H, S - H * self._first, state.x)
        reach = np.maximum(state.reach, np.abs(step.x - self._first))
        largest, slack = np.maximum(state.largest, size), state.slack + self._slack(state, size)
        return SoloState(step.x, state.t + 1, S, root, largest, reach, step.gap, slack)

    def _slack(self, state: SoloState, size: Vector) -> float:
        """Return a bound on |g·(x - y)|, where y is the exact step and x has the gap of this state.

        The bound is |g| sqrt(2 gap / H).
        """
        H = state.root / self.scale
        return float(np.sqrt(np.divide(2 * state.gap, H, out=np.zeros_like(H), where=H > 0)).ravel() @ size.ravel())

    def bounds(self, state: SoloState, ledger: Ledger, x: Vector | None, gap: float) -> Bounds:
        """Return `tight` from the objective (r(u) + loss - min), `bound` and `theorem` from the published formula."""
        if x is None:
            return Bounds(tight=math.inf, bound=math.inf, theorem=math.inf)
        u, y, H = x - self._first, state.x - self._first, state.root / self.scale
        reach = state.reach + np.abs(u)
        size = float(reach @ (np.sqrt(ledger.t * ledger.G) + H * reach))
        noise = _EPS * max(ledger.t, 1) * (len(u) + 8) * size + gap
        least = float(ledger.S @ y) + 0.5 * float((H * y) @ y) - state.gap
        tight = 0.5 * float((H * u) @ u) + ledger.gain - least + noise
        formula = self._formula(state, u) + noise + state.gap + state.slack
        return Bounds(
            tight=tight,
            bound=formula,
            theorem=formula,
            caveats=("the bound is SOLO FTRL's, for the comparator of this certificate",),
        )

    def _formula(self, state: SoloState, u: Vector) -> float:
        """Return the published regret bound against x_1 + u."""
        s, steps = self.scale, math.sqrt(max(state.t - 1, 0))
        square = u * u if self.per_coordinate else np.asarray(float(u @ u))
        wide = self.feasible.widths() if self.per_coordinate else np.asarray(self.feasible.diameter())
        first = (square / (2 * s) + 2.75 * s) * state.root
        return float(np.sum(first + 3.5 * np.minimum(s * steps, wide) * state.largest))


@final
@dataclass(frozen=True, slots=True, eq=False)
class BettingState(LearnerState):
    """The state of `CoinBetting`: `S` = g_{1:t} and the wealth, per coordinate or in one number."""

    S: Vector
    wealth: Vector


@final
@dataclass(frozen=True, slots=True, eq=False)
class CoinBetting(Learner[BettingState]):
    """Coin betting on all of R^n: x_t = x_1 - g_{1:t-1} W_{t-1} / (t limit²), W_t = W_{t-1} - g_t·(x_t - x_1).

    KT betting (Orabona and Pal) bets a share of a growing wealth, for gradients with |g_i| <= limit. With W_0 = wealth
    / n for each coordinate and v = limit |u - x_1| the regret is at most the sum of v sqrt(T ln(1 + 24 T² v² / W_0²)) +
    W_0: nearly the best rate for every comparator at once, and `wealth` against u = x_1. With `per_coordinate=False`
    there is one wealth for all coordinates, and |g|₂ <= limit.

    >>> learner = CoinBetting(1)
    >>> state = learner.update(learner.init(), [-1.0])
    >>> state.x
    array([0.5])
    """

    dim: int
    limit: float = 1.0
    wealth: float = 1.0
    per_coordinate: bool = True
    start: ArrayLike | None = None
    feasible: ConvexSet = field(init=False, repr=False)
    _first: Vector = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = check.dimension("dim", self.dim)
        check.positive("limit", self.limit)
        check.positive("wealth", self.wealth)
        check.instance("per_coordinate", self.per_coordinate, bool)
        everywhere = Box(-np.inf, np.inf, dim=n)
        object.__setattr__(self, "feasible", everywhere)
        object.__setattr__(self, "_first", check.frozen(starting_point(everywhere, self.start)))

    @property
    def _stake(self) -> float:
        """Return the initial wealth of one bet."""
        return self.wealth / self.dim if self.per_coordinate else self.wealth

    def init(self, hint: ArrayLike | None = None) -> BettingState:
        """Return the state with the first play x_1 and the initial wealth."""
        refuse_hint(hint, "CoinBetting")
        zero = np.zeros(self.dim)
        wealth = np.full(self.dim if self.per_coordinate else (), self._stake)
        return BettingState(self._first, 0, zero, wealth)

    def advance(self, state: BettingState, g: Vector, hint: Vector | None) -> BettingState:
        """Play one round: update the wealth by the bet and place the next bet."""
        refuse_hint(hint, "CoinBetting")
        size = float(np.abs(g).max()) if self.per_coordinate else math.sqrt(float(g.dot(g)))
        if size > self.limit * (1 + 4 * _EPS):
            what = "|g_i|" if self.per_coordinate else "|g|"
            raise InvalidInput(f"CoinBetting needs {what} <= limit={self.limit:g}, got {size:g}; raise the limit.")
        won = g * (state.x - self._first)
        wealth = state.wealth - (won if self.per_coordinate else float(won.sum()))
        if not float(wealth.max()) < _RICH:
            raise InvalidInput(f"CoinBetting needs a wealth below 1e200, got {wealth.max():g}; start again from here.")
        S, t = state.S + g, state.t + 1
        x = self._first - (S / (self.limit * (t + 1))) * (wealth / self.limit)
        return BettingState(x, t, S, np.asarray(wealth))

    def bounds(self, state: BettingState, ledger: Ledger, x: Vector | None, gap: float) -> Bounds:
        """Return `tight` from the least wealth of KT betting, `bound` and `theorem` from the published formula."""
        if x is None:
            return Bounds(tight=math.inf, bound=math.inf, theorem=math.inf)
        u, stake, T = x - self._first, self._stake, state.t
        # Rounding changes the wealth, and with it the bounds, by a share of itself and not by a fixed amount.
        share = _EPS * max(T, 1) * (self.dim + 8)
        coins = (np.abs(state.S) if self.per_coordinate else np.asarray([np.linalg.norm(state.S)])) / self.limit
        left = stake * np.exp(np.minimum(_log_potential(T, np.minimum(coins, T)), 700.0)) * (1 - share)
        noise = share * (float(np.abs(state.S) @ np.abs(u)) + self.wealth)
        regret = self.regret(ledger, x) + gap  # the plays' own regret, above `tight` only by rounding
        tight = max(float((stake - left).sum()) - float(state.S @ u) + noise, regret)
        far = self.limit * (np.abs(u) if self.per_coordinate else np.asarray([np.linalg.norm(u)]))
        formula = float((far * np.sqrt(T * np.log1p(24.0 * (T * far / stake) ** 2)) + stake).sum()) * (1 + 4 * share)
        return Bounds(
            tight=tight,
            bound=max(formula, tight),
            theorem=max(formula, tight),
            caveats=("the bound is that of KT betting, for the comparator of this certificate",),
        )


def _log_potential(T: int, coins: Vector) -> Vector:
    """Return ln of 2^T Gamma((T+1+c)/2) Gamma((T+1-c)/2) / (pi T!), below which a wealth of 1 never falls."""
    with extra_imports:
        from scipy.special import gammaln

    high, low, whole = gammaln((T + 1 + coins) / 2), gammaln((T + 1 - coins) / 2), math.lgamma(T + 1)
    rounding = 8 * _EPS * (T + np.abs(high) + np.abs(low) + abs(whole))
    return np.asarray(T * math.log(2.0) + high + low - math.log(math.pi) - whole - rounding)
