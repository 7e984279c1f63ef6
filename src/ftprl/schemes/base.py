"""What a scheme must offer: it turns gradients into the increments Q_t of the regularisation."""

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
    """What a scheme remembers: the set it plays on and `total` = Q_{1:t}."""

    feasible: ConvexSet
    total: Matrix


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A-priori bounds on the regret: the paper's (it bounds B_R too) and the strong one with half the stability."""

    paper: float
    strong: float


class Scheme(ABC):
    """How the regularisation adapts. A scheme of your own needs `init` and `step`; the rest has safe defaults."""

    center: bool = False
    anchored: bool = False  # whether increments are centred at the first play (dual averaging), not at the present one

    @property
    def family(self) -> Family | None:
        """The family of matrices whose best bound in hindsight this scheme competes with."""
        return None

    @abstractmethod
    def init(self, feasible: ConvexSet) -> SchemeState:
        """The state before the first round."""

    @abstractmethod
    def step(self, state: SchemeState, g: Vector) -> tuple[Matrix, SchemeState]:
        """Q_t, which may depend on g_1..g_t, and the next state."""

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """The part of g that the bounds count: with `center` its component in the span of Fsym, else all of g."""
        if not feasible.widths().any():
            return np.zeros_like(g)  # a single point: nothing to lose
        return feasible.tangent(g) if self.center else g

    def penalty(self, state: SchemeState, Q: Matrix) -> float:
        """N(Q), the round's share of the first term of B_R."""
        F = state.feasible
        return 0.5 * (F.sq_diameter_low_rank(Q) if isinstance(Q, psd.LowRank) else F.sq_diameter(Q))

    def penalty_is_exact(self, feasible: ConvexSet) -> bool:
        """Whether `penalty` is N(Q) itself on this set, not an upper bound on it."""
        what: dict[Family | None, Quantity] = {"const": "diameter", "block": "diameter", "diagonal": "diagonal"}
        return feasible.is_exact(what.get(self.family, "full"))

    def stability(self, state: SchemeState, g: Vector, move: Vector, l2: float = 0.0) -> float:
        """gᵀ(Q_{1:t} + l2 I)⁺g, a round's share of the second term; `move` is x_t - x_{t+1} (see `psd.dual_quad`)."""
        total = state.total
        return psd.dual_quad(psd.add_scalar(total, l2) if l2 else total, g, move)

    def caveats(self) -> tuple[str, ...]:
        """What a reader of the bounds must know of this scheme's options."""
        return ()

    def closed_form(self, state: SchemeState) -> ClosedForm | None:
        """The bound as a formula in the gradients, where theory has one."""
        return None

    def proven_ratio(self, feasible: ConvexSet) -> float | None:
        """kappa with B_R <= kappa times the post-hoc optimum of `family`, where that is proved."""
        return None

    def proven_regret_ratio(self, feasible: ConvexSet) -> float | None:
        """The same for the regret alone."""
        return None


def constants(c: float) -> tuple[float, float]:
    """(c/2 + 2/c, c/2 + 1/c): the factors of the paper's lemma and of the strong one."""
    return c / 2 + 2 / c, c / 2 + 1 / c


def checked_c(c: float) -> float:
    """The constant c: 2 in the paper, sqrt 2 for the sharper regret bound."""
    return check.positive("c", c)


def finite_diameter(feasible: ConvexSet, who: str) -> float:
    """D, refused where it is infinite."""
    D = feasible.diameter()
    if not math.isfinite(D):
        raise InvalidInput(
            f"{who} needs a bounded set, got diameter {D} for {feasible!r}; bound the set, for example by a Box."
        )
    return D


def growth(square: float, old: float, new: float) -> float:
    """sqrt(G + square) - sqrt(G) from the two roots, without cancellation."""
    return square / (old + new) if square else 0.0
