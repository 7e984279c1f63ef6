"""Follow the best bound: play with the matrix that would have been best so far."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.posthoc import Family, best_bound
from ftprl.schemes.base import ClosedForm, Scheme, SchemeState, finite_diameter
from ftprl.sets import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class BestBoundState(SchemeState):
    """The state of `BestBound`: `G` = sum g_i², the best bound OPT_t, the factor b and the growth rho."""

    G: Vector
    value: float
    b: float
    rho: float


@final
@dataclass(frozen=True)
class BestBound(Scheme):
    """Q_{1:t} = b Q*_t, with Q*_t the matrix of the best bound in hindsight so far, on sets where it never falls.

    For the diagonal family these sets are boxes, L_p balls, axis-aligned ellipsoids and the simplex; for
    family="const", all bounded sets. By default b = sqrt(2/rho), where rho bounds the sum of penalties divided by the
    last penalty.

    >>> from ftprl.sets import Box
    >>> scheme = BestBound()
    >>> Q, state = scheme.step(scheme.init(Box(-1, 1, dim=2)), np.array([1.0, 0.0]))
    >>> Q
    array([1., 0.])
    """

    family: Family = "diagonal"
    b: float | None = None
    center: bool = False

    def __post_init__(self) -> None:
        if self.family not in ("const", "diagonal"):
            raise InvalidInput(f"BestBound needs family const or diagonal, got {self.family!r}; pass one of these.")
        if self.b is not None:
            check.positive("b", self.b)

    def _rho(self, feasible: ConvexSet) -> float:
        """Return the growth of the penalties; raise Unsupported if the best diagonal may fall on this set."""
        rho = 1.0 if self.family == "const" else feasible.penalty_growth()
        if rho is None:
            raise Unsupported(
                f"BestBound needs a set whose best diagonal never falls, got {feasible!r}, where that is not proved;"
                " use Diagonal() or BestBound(family='const')."
            )
        return rho

    def init(self, feasible: ConvexSet) -> BestBoundState:
        """Return the state with Q_{1:0} = 0."""
        finite_diameter(feasible, "BestBound")
        rho = self._rho(feasible)
        b = math.sqrt(2 / rho) if self.b is None else float(self.b)
        n = feasible.dim
        total = np.zeros(()) if self.family == "const" else np.zeros(n)
        return BestBoundState(feasible, total, np.zeros(n), 0.0, b, rho)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, BestBoundState]:
        """Return Q_t = b (Q*_t - Q*_{t-1}), with entries that rounding made negative set to 0."""
        assert isinstance(state, BestBoundState)
        g = self.effective(state.feasible, g)
        G = state.G + g * g
        best = best_bound(state.feasible, self.family, G)
        if best is None or best.Q is None:  # a single point: nothing to choose
            return np.zeros_like(state.total), BestBoundState(state.feasible, state.total, G, 0.0, state.b, state.rho)
        before = psd.array(state.total)
        total = np.maximum(state.b * np.broadcast_to(best.Q, before.shape), before)
        return total - before, BestBoundState(state.feasible, total, G, best.value, state.b, state.rho)

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """Return g with 0 at the coordinates that cannot move."""
        g = super().effective(feasible, g)
        D = feasible.widths()
        return g if D.all() else np.where(D == 0, 0.0, g)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """Return the bounds (b rho/2 + 1/b) OPT and, for the regret alone, (b rho/2 + 1/(2b)) OPT."""
        assert isinstance(state, BestBoundState)
        b, rho = state.b, state.rho
        return ClosedForm((b * rho / 2 + 1 / b) * state.value, (b * rho / 2 + 1 / (2 * b)) * state.value)

    def _factor(self, feasible: ConvexSet, stability: float) -> float | None:
        """Return b rho/2 + stability/b if the set's diameter is exact, None otherwise."""
        exact = feasible.is_exact("diameter" if self.family == "const" else "diagonal")
        if not exact:
            return None
        rho = self._rho(feasible)
        b = math.sqrt(2 / rho) if self.b is None else self.b
        return b * rho / 2 + stability / b

    def proven_ratio(self, feasible: ConvexSet) -> float | None:
        """Return b rho/2 + 1/b, or None if the set's diameter is not exact."""
        return self._factor(feasible, 1.0)

    def proven_regret_ratio(self, feasible: ConvexSet) -> float | None:
        """Return b rho/2 + 1/(2b), or None if the set's diameter is not exact."""
        return self._factor(feasible, 0.5)
