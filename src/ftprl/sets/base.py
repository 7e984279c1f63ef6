"""The interface of a feasible set F, with default methods that a user's own set inherits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.sets import hindsight
from ftprl.sets.hindsight import Family, PostHoc
from ftprl.solver import Conic, Solution, minimise_conic, pull_inside

if TYPE_CHECKING:
    from ftprl.sets.box import Box

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Quantity = Literal["widths", "diameter", "diagonal", "full"]


class ConvexSet(ABC):
    """The set F of allowed points: non-empty, closed and convex.

    `Fsym` is the set of differences {x - y : x, y in F}.

    Derive from this class and write `dim`, `argmin`, `vertex`, `widths` and `contains`; all other methods have
    defaults. The default bounds hold on any convex set: diameter sqrt(sum D²), sq_diameter sum |Q_ij| D_i D_j, gamma =
    dim. The gap of `argmin` is measured through `vertex` in every round, so a certificate stays valid if a step is not
    exact.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """Return the number of coordinates."""

    @abstractmethod
    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x.

        Coordinates on which the objective does not depend stay at `near` where the set allows it.
        """

    @abstractmethod
    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser over F of g·x."""

    @abstractmethod
    def widths(self) -> Vector:
        """Return the width D_i of F along each axis."""

    @abstractmethod
    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if x lies in F up to atol·(1 + the size of the numbers that describe F)."""

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Return the result of `argmin`, moved into F if rounding left it outside, with its measured gap.

        Raises InvalidInput if `argmin` returns a point of the wrong shape, a point that is not finite, or one outside
        F.
        """
        x = np.asarray(self.argmin(H, z, near), dtype=np.float64)
        if x.shape != z.shape or not np.isfinite(x).all() or not self.contains(x, 1e-7):
            shown = np.array2string(x, precision=4, threshold=6).replace("\n", "")
            raise InvalidInput(
                f"the argmin of {type(self).__name__} needs to be a point of the set, got {shown}; project it first."
            )
        if not self.contains(x, 1e-12):
            x = pull_inside(self, x, 1e-12)
        return Solution(x, self.gap(H, z, x))

    def minimise_low_rank(self, H: psd.LowRank, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x for H a multiple of I plus a low-rank matrix; by default H is written out."""
        return self.minimise(H.dense(), z, near)

    def closed_form(self, H: PSD) -> bool:
        """Return True if `minimise` needs no solver for such an H; a user's own `argmin` counts as a closed form."""
        return True

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """Return how much lower than at x the objective ½ xᵀHx + z·x can be anywhere in F.

        It is the maximum over u in F of (Hx + z)·(x - u), which `vertex` gives; by convexity it bounds the distance to
        the minimum, and it is 0 at an exact minimiser.
        """
        slope = psd.apply(H, x) + z
        return max(float(slope.dot(x - self.vertex(slope))), 0.0)

    def violation(self, x: Vector) -> float:
        """Return how far x lies outside F, relative to the size of F: 0 inside, about 1e-16 for rounding."""
        for tol in (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2):
            if self.contains(x, tol):
                return tol if tol > 1e-15 else 0.0
        return 1.0

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x + l1·|x|₁ over F through the conic form of F."""
        return minimise_conic(self, H, z, near, l1)

    def sq_diameter(self, Q: PSD) -> float:
        """Return an upper bound on max xᵀQx over Fsym: `sum |Q_ij| D_i D_j`, or `q D²` for Q = q I."""
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        D = self.widths()
        if Q.ndim == 1:
            return float(Q @ (D * D))
        return float(D @ np.abs(Q) @ D)

    def sq_diameter_low_rank(self, Q: psd.LowRank) -> float:
        """Return `sq_diameter` for a multiple of I plus a low-rank matrix; by default Q is written out."""
        return self.sq_diameter(Q.dense())

    def diameter(self) -> float:
        """Return `sqrt(sum D_i²)`, an upper bound on the Euclidean diameter of any set."""
        return float(np.linalg.norm(self.widths()))

    def is_exact(self, what: Quantity) -> bool:
        """Return True if the method named by `what` is exact and not only an upper bound; by default widths are."""
        return what == "widths"

    @cached_property
    def _bounds(self) -> tuple[Vector, Vector]:
        """Compute both ends of each coordinate's range with one call of `vertex` each."""
        eye = np.eye(self.dim)
        low = np.array([self.vertex(e)[i] for i, e in enumerate(eye)])
        high = np.array([self.vertex(-e)[i] for i, e in enumerate(eye)])
        return check.frozen(low), check.frozen(high)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the smallest and the largest value of each coordinate over F."""
        return self._bounds

    @cached_property
    def _start(self) -> Vector:
        """Average the extreme points along the axes."""
        eye = np.eye(self.dim)
        return np.asarray(np.mean([self.vertex(s * e) for e in eye for s in (1.0, -1.0)], axis=0))

    def start(self) -> Vector:
        """Return the first play: by default the mean of the 2n extreme points along the axes, which lies in F."""
        return self._start.copy()

    def tangent(self, g: Vector) -> Vector:
        """Return the part of g that distinguishes points of F; by default all of g, as for a set with interior."""
        return g

    def gamma(self) -> float:
        """Return an upper bound on gamma, for which Diagonal is sqrt(2 gamma)-competitive on F.

        The default, the dimension n, holds on every set.
        """
        return float(self.dim)

    def beta(self) -> float | None:
        """Return the largest ratio of outer-box width to inner-box width; None if no inner box is known."""
        return None

    def inner_box(self) -> Box | None:
        """Return a box inside F with widths proportional to those of F, or None if none is known."""
        return None

    def outer_box(self) -> Box:
        """Return the smallest box that contains F."""
        from ftprl.sets.box import Box

        low, high = self.bounds()
        return Box(low, np.maximum(low, high))

    def post_hoc(self, family: Family, G: Vector, GG: Vector | None = None, *, program: bool = False) -> PostHoc | None:
        """Return the smallest bound that a fixed matrix of the family could have had; None where it cannot be computed.

        `G` holds sum g_i² for each coordinate, `GG` is sum g gᵀ; see `ftprl.best_bound`, which checks its arguments.
        """
        if not G.any():
            return PostHoc(0.0, np.zeros(()), True)
        if family == "const":
            return hindsight.const_optimum(self, float(G.sum()))
        if family == "block":
            return self.block_optimum(G)
        if family == "diagonal" or self.dim == 1:
            return self._diagonal_or_bound(G, program)
        return self.full_optimum(G, GG, program)

    def _diagonal_or_bound(self, G: Vector, program: bool) -> PostHoc:
        """Return the best diagonal by formula or program, or an upper bound on it where neither exists."""
        closed = self.diagonal_optimum(G)
        if closed is None and program:
            closed = self.diagonal_program(G)
        return hindsight.separate_optimum(self, G) if closed is None else closed

    def block_optimum(self, G: Vector) -> PostHoc | None:
        """Return the best multiple of the identity on each factor of a product; None for other sets."""
        return None

    def diagonal_optimum(self, G: Vector) -> PostHoc | None:
        """Return the best diagonal matrix by a formula, or None if this set has no formula."""
        return None

    def diagonal_program(self, G: Vector) -> PostHoc | None:
        """Return the best diagonal matrix by a convex program, or None if F is not a small polytope."""
        V = self.extreme_differences()
        return None if V is None else hindsight.diagonal_by_program(V, G)

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """Return the best full matrix by a convex program over the vertices of Fsym; None without `GG` or `program`."""
        if GG is None or not program or self.dim > hindsight.MAX_PROGRAM_DIM:
            return None
        V = self.extreme_differences()
        return None if V is None else hindsight.full_by_program(V, GG)

    def extreme_differences(self) -> Vector | None:
        """Return points that include, up to sign, all vertices of Fsym; None if F is not a small polytope."""
        return self._extreme_differences

    @cached_property
    def _extreme_differences(self) -> Vector | None:
        if self.dim > hindsight.MAX_PROGRAM_DIM:
            return None
        from ftprl.sets.polytope import Polytope

        try:
            conic = self.conic()
            return Polytope(conic.C, conic.d, conic.A, conic.b).difference_vertices() if conic.polyhedral else None
        except Unsupported:
            return None

    def quadratically_convex(self) -> bool:
        """Return True if a full matrix is known to improve the bound over a diagonal one by at most sqrt(pi/2)."""
        return False

    def penalty_growth(self) -> float | None:
        """Return rho with sum N(increments of Q*) <= rho N(Q*) if the best diagonal Q* never falls; None if it may
        fall.
        """
        return None

    def conic(self) -> Conic:
        """Return F as linear rows and cones for a solver.

        Raises Unsupported for a user's own set that does not define it.
        """
        raise Unsupported(
            f"{type(self).__name__} has no conic form, which this needs; give it conic() or use a set of ftprl."
        )


class Frozen:
    """Base class of sets that cannot change: an attribute is set once, so cached geometry stays valid."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{type(self).__name__} is frozen: build a new set instead of changing {name}")
        object.__setattr__(self, name, value)


class MixedSet(Frozen, ConvexSet):
    """Base class of sets with a closed form for scalar and diagonal H, and a conic solver for a full H."""

    @abstractmethod
    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return the minimiser in closed form; H is a scalar (ndim 0) or a diagonal (ndim 1)."""

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x."""
        return self.minimise(H, z, near).x

    def closed_form(self, H: PSD) -> bool:
        """Return True for scalar and diagonal H."""
        return H.ndim < 2

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x in closed form for scalar and diagonal H, by a solver for a full H."""
        if H.ndim < 2:
            x = self._separable(H, z, near)
            return Solution(x, self.gap(H, z, x))
        return minimise_conic(self, H, z, near)

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser over F of g·x: the closed form with H = 0."""
        return self._separable(psd.zero(), g, self.start())


def checked_center(center: ArrayLike | None, dim: int) -> Vector:
    """Return the user's centre after checking it, or the origin if there is none."""
    return check.frozen(np.zeros(dim) if center is None else check.vector("center", center, dim))


def scaled_tolerance(atol: float, scale: float) -> float:
    """Return atol·(1 + scale), the tolerance of a membership test."""
    return atol * (1.0 + scale)


def worst_excess(excess: Vector, size: Vector) -> float:
    """Return the largest positive excess relative to its size, or 0 if none is positive.

    >>> worst_excess(np.array([-1.0, 0.5]), np.array([1.0, 2.0]))
    0.25
    """
    over = np.maximum(excess, 0.0)
    return float(np.divide(over, size, out=np.where(over > 0, 1.0, 0.0), where=size > 0).max(initial=0.0))


def require_sets(what: str, *parts: object) -> None:
    """Raise InvalidInput unless every part is a ConvexSet; `what` names the caller in the message."""
    for part in parts:
        if not isinstance(part, ConvexSet):
            shown = " ".join(repr(part).split())[:60]
            raise InvalidInput(f"{what} needs sets of ftprl.sets or derived from ConvexSet, got {shown}; wrap it.")


def require_same_dim(what: str, a: int, b: int) -> None:
    """Raise InvalidInput unless the two dimensions are equal."""
    if a != b:
        raise InvalidInput(f"{what} needs equal dimensions, got {a} and {b}; make them agree.")
