"""Follow the best bound with regularisation centred at the first play: the penalty is then that of the last matrix
alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.posthoc import Family, best_bound
from ftprl.schemes.base import ClosedForm, Scheme, SchemeState, finite_diameter
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_FACTOR = 2.0**0.25  # makes both terms of the bound equal


@final
@dataclass(frozen=True, slots=True, eq=False)
class CentredState(SchemeState):
    """The state of `CentredBestBound`.

    `G` is sum g_i², `squares` the squared limits, and `before` P_{t-1}, which bounds the loss of round t. `previous`
    and `present` are N0 of the last two totals: N0(P) is the largest ½ y'Py over half of Fsym, the penalty of a sum
    with a single centre.
    """

    G: Vector
    squares: Vector
    before: PSD
    previous: float
    present: float
    value: float


@final
@dataclass(frozen=True, eq=False)
class CentredBestBound(Scheme):
    """P_t = 2^{1/4} Q0(G_t + limits²), centred at the first play: dual averaging with the weights of the best bound.

    `limits` are numbers with |g_i| <= limits_i in every round, known beforehand. On sets symmetric about their start
    whose best diagonal never falls (boxes, L_p balls, axis-aligned ellipsoids) the regret is at most 2^{1/4}/2 times
    the best diagonal bound in hindsight, with limits² added to G. This includes 2 < p < inf, where no scheme centred at
    the plays is competitive.

    >>> from ftprl import FTPRL, Game
    >>> from ftprl.sets import LpBall
    >>> game = Game(FTPRL(LpBall(2, 4), CentredBestBound(limits=1.0)))
    >>> game.observe([1.0, 0.0])
    >>> bool(game.certificate().regret <= game.certificate().closed_form_strong)
    True
    """

    limits: ArrayLike
    anchored: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        limits = check.frozen(check.finite("limits", check.array("limits", self.limits)))
        if limits.ndim > 1 or np.any(limits <= 0):
            raise InvalidInput(f"limits needs numbers above 0, got {self.limits!r}; pass a bound on each |g_i|.")
        if np.any((limits < 1e-150) | (limits > 1e150)):
            raise InvalidInput(f"limits needs numbers from 1e-150 to 1e150, got {self.limits!r}; rescale the losses.")
        object.__setattr__(self, "limits", limits)

    @property
    def family(self) -> Family:
        """Return "diagonal"."""
        return "diagonal"

    def init(self, feasible: ConvexSet) -> CentredState:
        """Return the first state, with P_0 from the limits alone.

        Raises Unsupported if the set is not symmetric about its start or its best diagonal may fall.
        """
        finite_diameter(feasible, "CentredBestBound")
        if feasible.penalty_growth() is None or not _symmetric(feasible):
            raise Unsupported(
                f"CentredBestBound needs a set symmetric about its start whose best diagonal never falls, got"
                f" {feasible!r}; use BestBound() or Diagonal()."
            )
        n, limits = feasible.dim, np.asarray(self.limits)
        squares = np.broadcast_to(limits if limits.ndim == 0 else check.vector("limits", limits, n), (n,)) ** 2
        first, _ = _weights(feasible, squares)
        return CentredState(feasible, np.zeros(n), np.zeros(n), squares, first, 0.0, 0.0, 0.0)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, CentredState]:
        """Return P_t - P_{t-1}; in the first round, all of P_1.

        Raises InvalidInput if a gradient exceeds its limit.
        """
        assert isinstance(state, CentredState)
        g = self.effective(state.feasible, g)
        if np.any(g * g > state.squares * (1 + 1e-12)):
            i = int((g * g / state.squares).argmax())
            raise InvalidInput(
                f"limits needs at least {abs(g[i]):g} for coordinate {i}, got {math.sqrt(state.squares[i]):g};"
                " the bound rests on it."
            )
        old = psd.array(state.total)
        G = state.G + g * g
        total, value = _weights(state.feasible, G + state.squares)
        total = np.maximum(total, old)
        before = old if old.any() else state.before
        present = state.feasible.sq_diameter(total) / 8  # N0: F lies within half of Fsym around its centre
        return total - old, CentredState(state.feasible, total, G, state.squares, before, state.present, present, value)

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """Return g with 0 at the coordinates that cannot move."""
        D = feasible.widths()
        return g if D.all() else np.where(D == 0, 0.0, g)

    def penalty(self, state: SchemeState, Q: psd.Matrix) -> float:
        """Return N0(P_t) - N0(P_{t-1}): penalties centred at one point add up to the penalty of the sum."""
        assert isinstance(state, CentredState)
        return state.present - state.previous

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """Return gᵀ P_{t-1}⁻¹ g, which uses the weights before the round."""
        assert isinstance(state, CentredState)
        return psd.dual_quad(state.before, g)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """Return the bounds (a/2 + sqrt 2/a) OPT0 and (a/2 + 1/(sqrt 2 a)) OPT0 = 2^{1/4} OPT0, with a = 2^{1/4}."""
        assert isinstance(state, CentredState)
        half = state.value / 2
        return ClosedForm((_FACTOR / 2 + math.sqrt(2) / _FACTOR) * half, _FACTOR * half)


def _weights(feasible: ConvexSet, G: Vector) -> tuple[Vector, float]:
    """Return 2^{1/4} Q0(G) and OPT(G); Q0 = 2 Q*, because N0 = N/4 on a symmetric set."""
    best = best_bound(feasible, "diagonal", G)
    if best is None or best.Q is None:  # a single point
        return np.zeros_like(G), 0.0
    return 2 * _FACTOR * np.broadcast_to(best.Q, G.shape), best.value


def _symmetric(feasible: ConvexSet) -> bool:
    """Return True if F reaches equally far in opposite directions, tested along the axes and a few other directions."""
    n, start = feasible.dim, feasible.start()
    rows = np.random.default_rng(0).normal(size=(4, n))
    for g in (*np.eye(n)[: min(n, 8)], np.ones(n), *rows):
        up, down = float(g @ (feasible.vertex(-g) - start)), float(g @ (start - feasible.vertex(g)))
        if abs(up - down) > 1e-9 * (up + down + float(np.abs(g) @ np.abs(start))):
            return False
    return True
