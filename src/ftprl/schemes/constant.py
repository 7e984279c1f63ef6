"""Schemes with one adaptive number for all coordinates, or one for each block of a product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.posthoc import Family
from ftprl.schemes.base import ClosedForm, Scheme, SchemeState, checked_c, constants, finite_diameter, growth
from ftprl.sets import ConvexSet, Product

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
_ROOT2 = math.sqrt(2.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConstantState(SchemeState):
    """The state of `CoordinateConstant`: `root` is the root of the sum of |g|², `D` the diameter in use."""

    root: float
    D: float


@final
@dataclass(frozen=True)
class CoordinateConstant(Scheme):
    """Q_{1:t} = (c/D) sqrt(sum |g_s|²) I: one adaptive learning rate for all coordinates (Corollary "global").

    `diameter` replaces the set's own D if a smaller bound is known; `center` ignores the part of a gradient that does
    not distinguish points of a flat set such as the simplex.

    >>> from ftprl.sets import Box
    >>> scheme = CoordinateConstant()
    >>> Q, state = scheme.step(scheme.init(Box(-0.5, 0.5)), np.array([3.0]))
    >>> float(Q)
    6.0
    """

    c: float = 2.0
    diameter: float | None = None
    center: bool = False

    @property
    def family(self) -> Family:
        """Return "const"."""
        return "const"

    def __post_init__(self) -> None:
        checked_c(self.c)
        if self.diameter is not None:
            check.positive("diameter", self.diameter)

    def init(self, feasible: ConvexSet) -> ConstantState:
        """Return the state with Q_{1:0} = 0."""
        D = finite_diameter(feasible, "CoordinateConstant") if self.diameter is None else self._own_diameter(feasible)
        return ConstantState(feasible, np.zeros(()), 0.0, D)

    def _own_diameter(self, feasible: ConvexSet) -> float:
        """Return the user's diameter; raise InvalidInput if it is below the largest width.

        If it is only a hair smaller, the largest width is returned: a preimage by the inverse of an ill-conditioned
        matrix is a little larger than computed.
        """
        assert self.diameter is not None
        widths = feasible.widths()
        widest = float(widths.max()) if np.isfinite(widths).all() and feasible.is_exact("widths") else 0.0
        if self.diameter < widest * (1 - 1e-3):
            raise InvalidInput(
                f"diameter needs at least the largest width, {widest:g}, got {self.diameter:g}; leave it out if unsure."
            )
        return max(float(self.diameter), widest)

    def penalty_is_exact(self, feasible: ConvexSet) -> bool:
        """Return True if the diameter is the set's own and exact."""
        return self.diameter is None and feasible.is_exact("diameter")

    def caveats(self) -> tuple[str, ...]:
        """Return a note that the bounds rely on a diameter given by the user, if there is one."""
        return () if self.diameter is None else (f"the bounds take the diameter to be {self.diameter:g}, as given",)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, ConstantState]:
        """Return Q_t = (c/D) (sqrt(G_t) - sqrt(G_{t-1})) and the next state."""
        assert isinstance(state, ConstantState)
        g = self.effective(state.feasible, g)
        square = float(g @ g)
        root = math.hypot(state.root, math.sqrt(square))
        rate = self.c / state.D if state.D else 0.0
        Q = np.asarray(rate * growth(square, state.root, root))
        return Q, ConstantState(state.feasible, np.asarray(rate * root), root, state.D)

    def penalty(self, state: SchemeState, Q: psd.Matrix) -> float:
        """Return ½ q D², with the diameter in use."""
        assert isinstance(state, ConstantState)
        if not np.isfinite(state.feasible.widths()).all():
            return math.inf if np.any(psd.array(Q)) else 0.0
        return 0.5 * float(psd.array(Q)) * state.D * state.D

    def closed_form(self, state: SchemeState) -> ClosedForm | None:
        """Return (c/2 + 2/c) D sqrt(G) and, for the regret alone, (c/2 + 1/c) D sqrt(G)."""
        assert isinstance(state, ConstantState)
        if not np.isfinite(state.feasible.widths()).all():
            return None
        paper, strong = constants(self.c)
        return ClosedForm(paper * state.D * state.root, strong * state.D * state.root)

    def proven_ratio(self, feasible: ConvexSet) -> float | None:
        """Return (c/2 + 2/c)/sqrt 2, proved against the constant family on any set whose diameter is exact."""
        exact = feasible.is_exact("diameter") and self.diameter is None
        return constants(self.c)[0] / _ROOT2 if exact else None

    def proven_regret_ratio(self, feasible: ConvexSet) -> float | None:
        """Return (c/2 + 1/c)/sqrt 2, proved for the regret on any set whose diameter is exact."""
        exact = feasible.is_exact("diameter") and self.diameter is None
        return constants(self.c)[1] / _ROOT2 if exact else None


@final
@dataclass(frozen=True, slots=True, eq=False)
class BlockState(SchemeState):
    """The state of `BlockConstant`: the roots of the sums of |g|² and the diameters, one for each block."""

    roots: Vector
    D: Vector


@final
@dataclass(frozen=True)
class BlockConstant(Scheme):
    """CoordinateConstant on each factor of a `Product`: bounds add up over the blocks.

    >>> from ftprl.sets import Box, Product
    >>> scheme = BlockConstant()
    >>> Q, state = scheme.step(scheme.init(Product(Box(0, 1), Box(0, 2))), np.array([1.0, 1.0]))
    >>> Q
    array([2., 1.])
    """

    c: float = 2.0
    center: bool = False

    @property
    def family(self) -> Family:
        """Return "block"."""
        return "block"

    def __post_init__(self) -> None:
        checked_c(self.c)

    def init(self, feasible: ConvexSet) -> BlockState:
        """Return the state with Q_{1:0} = 0."""
        product = _as_product(feasible)
        D = np.array([finite_diameter(s, "BlockConstant") for s in product.sets])
        return BlockState(product, np.zeros(product.dim), np.zeros(len(D)), D)

    def step(self, state: SchemeState, g: Vector) -> tuple[PSD, BlockState]:
        """Return Q_t, which is (c/D_k)(sqrt(G_k,t) - sqrt(G_k,t-1)) on block k, and the next state."""
        assert isinstance(state, BlockState)
        product = _as_product(state.feasible)
        g = self.effective(product, g)
        squares = np.array([float(g[b] @ g[b]) for b in product.blocks])
        roots = np.hypot(state.roots, np.sqrt(squares))
        rate = np.divide(self.c, state.D, out=np.zeros_like(state.D), where=state.D > 0)
        steps = np.divide(squares, state.roots + roots, out=np.zeros_like(roots), where=squares > 0)
        sizes = [s.dim for s in product.sets]
        return np.repeat(rate * steps, sizes), BlockState(product, np.repeat(rate * roots, sizes), roots, state.D)

    def penalty(self, state: SchemeState, Q: psd.Matrix) -> float:
        """Return ½ sum q_k D_k²."""
        assert isinstance(state, BlockState)
        firsts = [b.start for b in _as_product(state.feasible).blocks]
        return 0.5 * float((psd.array(Q)[firsts] * state.D) @ state.D)

    def effective(self, feasible: ConvexSet, g: Vector) -> Vector:
        """Return g with 0 on the blocks that are single points."""
        g = super().effective(feasible, g)
        parts = [np.zeros(s.dim) if s.diameter() == 0 else np.ones(s.dim) for s in _as_product(feasible).sets]
        return g * np.concatenate(parts)

    def closed_form(self, state: SchemeState) -> ClosedForm:
        """Return (c/2 + 2/c) sum D_k sqrt(G_k) and, for the regret alone, (c/2 + 1/c) sum D_k sqrt(G_k)."""
        assert isinstance(state, BlockState)
        paper, strong = constants(self.c)
        S = float(state.D @ state.roots)
        return ClosedForm(paper * S, strong * S)

    def proven_ratio(self, feasible: ConvexSet) -> float | None:
        """Return (c/2 + 2/c)/sqrt 2, proved against one constant per block if the diameters are exact."""
        return constants(self.c)[0] / _ROOT2 if _as_product(feasible).is_exact("diameter") else None

    def proven_regret_ratio(self, feasible: ConvexSet) -> float | None:
        """Return (c/2 + 1/c)/sqrt 2, proved for the regret if the diameters are exact."""
        return constants(self.c)[1] / _ROOT2 if _as_product(feasible).is_exact("diameter") else None


def _as_product(feasible: ConvexSet) -> Product:
    """Return the set as a Product; raise Unsupported if it is none."""
    if isinstance(feasible, Product):
        return feasible
    raise Unsupported(f"BlockConstant needs a Product of sets, got {feasible!r}; use CoordinateConstant there.")
