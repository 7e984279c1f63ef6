"""The interface of a scheme, which turns gradients into the increments Q_t of the regularisation."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.posthoc import Family
from ftprl.sets import ConvexSet, Quantity

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Matrix = psd.Matrix


@dataclass(frozen=True, slots=True, eq=False)
class SchemeState:
    """The state of a scheme: the set it plays on and `total` = Q_{1:t}."""

    feasible: ConvexSet
    total: Matrix


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A-priori bounds on the regret.

    `paper` is the paper's bound, which also bounds B_R; `strong` counts half of the stability term.
    """

    paper: float
    strong: float


class Scheme(ABC):
    """Base class of rules by which the regularisation adapts.

    A user's own scheme needs `init` and `step`; all other methods have safe defaults.
    """

    center: bool = False
    anchored: bool = False  # True if increments are centred at the first play (dual averaging)

    @property
    def family(self) -> Family | None:
        """Return the family of matrices whose best bound in hindsight this scheme competes with, or None."""
        return None

    @abstractmethod
    def init(self, feasible: ConvexSet) -> SchemeState:
        """Return the state before the first round."""

    @abstractmethod
    def step(self, state: SchemeState, g: Vector) -> tuple[Matrix, SchemeState]:
        """Return Q_t, which may depend on g_1..g_t, and the next state."""

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """Return the part of g that the bounds count: with `center` its component in the span of Fsym, else all of
        g.
        """
        if not feasible.widths().any():
            return np.zeros_like(g)  # a single point: nothing to lose
        return feasible.tangent(g) if self.center else g

    def penalty(self, state: SchemeState, Q: Matrix) -> float:
        """Return N(Q) = ½ max xᵀQx over Fsym, this round's share of the first term of B_R."""
        F = state.feasible
        return 0.5 * (F.sq_diameter_low_rank(Q) if isinstance(Q, psd.LowRank) else F.sq_diameter(Q))

    def penalty_is_exact(self, feasible: ConvexSet) -> bool:
        """Return True if `penalty` is N(Q) itself on this set, and not only an upper bound on it."""
        what: dict[Family | None, Quantity] = {"const": "diameter", "block": "diameter", "diagonal": "diagonal"}
        return feasible.is_exact(what.get(self.family, "full"))

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """Return gᵀ(Q_{1:t} + l2 I)⁺g, this round's share of the second term of B_R.

        `move` is x_t - x_{t+1}; see `psd.dual_quad`.
        """
        total = state.total
        return psd.dual_quad(psd.add_scalar(total, l2) if l2 else total, g, move)

    def caveats(self) -> tuple[str, ...]:
        """Return warnings about the scheme's options that readers of its bounds need."""
        return ()

    def closed_form(self, state: SchemeState) -> ClosedForm | None:
        """Return the bound as a formula in the gradients, or None if theory has no formula."""
        return None

    def proven_ratio(self, feasible: ConvexSet) -> float | None:
        """Return a proved kappa with B_R <= kappa times the best bound in hindsight of `family`, or None."""
        return None

    def proven_regret_ratio(self, feasible: ConvexSet) -> float | None:
        """Return a proved kappa with regret <= kappa times the best bound in hindsight of `family`, or None."""
        return None


def constants(c: float) -> tuple[float, float]:
    """Return (c/2 + 2/c, c/2 + 1/c), the factors of the paper's lemma and of the strong lemma.

    >>> constants(2.0)
    (2.0, 1.5)
    """
    return c / 2 + 2 / c, c / 2 + 1 / c


def checked_c(c: float) -> float:
    """Return c after checking that it is positive: 2 in the paper, sqrt 2 for the sharper regret bound."""
    return check.positive("c", c)


def finite_diameter(feasible: ConvexSet, who: str) -> float:
    """Return the diameter of the set; raise InvalidInput if it is infinite."""
    D = feasible.diameter()
    if not math.isfinite(D):
        raise InvalidInput(
            f"{who} needs a bounded set, got diameter {D} for {feasible!r}; bound the set, for example by a Box."
        )
    return D


def growth(square: float, old: float, new: float) -> float:
    """Return sqrt(G + square) - sqrt(G) from the old and the new root, without cancellation.

    >>> growth(9.0, 4.0, 5.0)
    1.0
    """
    return square / (old + new) if square else 0.0
