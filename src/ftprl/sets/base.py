"""What a feasible set F must offer, and the defaults a user's own set inherits."""

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
    """F, the points that may be played: non-empty, closed and convex; `Fsym` is {x - y : x, y in F}.

    Derive from it and write `dim`, `argmin`, `vertex`, `widths` and `contains`; the rest has defaults.

    A set of your own inherits bounds that hold on any convex set: diameter sqrt(sum D²), sq_diameter
    sum |Q_ij| D_i D_j, gamma = dim. The gap of its `argmin` is measured through `vertex` in every round, so a step
    that is not exact is accounted for in every certificate.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of coordinates."""

    @abstractmethod
    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """A minimiser over F of ½ xᵀHx + z·x that keeps directions without weight at `near` where it can."""

    @abstractmethod
    def vertex(self, g: Vector) -> Vector:
        """A minimiser over F of g·x."""

    @abstractmethod
    def widths(self) -> Vector:
        """D_i, the width of F along each axis."""

    @abstractmethod
    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Membership, up to atol·(1 + scale)."""

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """`argmin`, brought into F where rounding left it outside, and its measured gap."""
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
        """`minimise` for a multiple of I plus low rank: as for any full matrix, unless the set knows better."""
        return self.minimise(H.dense(), z, near)

    def closed_form(self, H: PSD) -> bool:
        """Whether `minimise` finds its point without a solver for such an H; `argmin` of a set of your own counts."""
        return True

    def gap(self, H: PSD, z: Vector, x: Vector) -> float:
        """How much the slope at x promises within F: the maximum over u in F of (Hx + z)·(x - u), through `vertex`.

        By convexity it bounds how far ½ xᵀHx + z·x is from its minimum; 0 at an exact minimiser.
        """
        slope = psd.apply(H, x) + z
        return max(float(slope.dot(x - self.vertex(slope))), 0.0)

    def violation(self, x: Vector) -> float:
        """How far x lies outside F, relative to the numbers that describe F: 0 inside, about 1e-16 for rounding."""
        for tol in (1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-4, 1e-2):
            if self.contains(x, tol):
                return tol if tol > 1e-15 else 0.0
        return 1.0

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """The same with `l1·|x|₁` added, through the conic form of F."""
        return minimise_conic(self, H, z, near, l1)

    def sq_diameter(self, Q: PSD) -> float:
        """`sum |Q_ij| D_i D_j`, an upper bound on any set; `q D²` for a multiple of the identity."""
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        D = self.widths()
        if Q.ndim == 1:
            return float(Q @ (D * D))
        return float(D @ np.abs(Q) @ D)

    def sq_diameter_low_rank(self, Q: psd.LowRank) -> float:
        """`sq_diameter` for a multiple of I plus low rank: as for any full matrix, unless the set knows better."""
        return self.sq_diameter(Q.dense())

    def diameter(self) -> float:
        """`sqrt(sum D_i²)`, an upper bound on any set."""
        return float(np.linalg.norm(self.widths()))

    def is_exact(self, what: Quantity) -> bool:
        """Widths are taken to be exact; the other defaults are upper bounds."""
        return what == "widths"

    @cached_property
    def _bounds(self) -> tuple[Vector, Vector]:
        eye = np.eye(self.dim)
        low = np.array([self.vertex(e)[i] for i, e in enumerate(eye)])
        high = np.array([self.vertex(-e)[i] for i, e in enumerate(eye)])
        return check.frozen(low), check.frozen(high)

    def bounds(self) -> tuple[Vector, Vector]:
        """The range of each coordinate, by 2n calls of `vertex`."""
        return self._bounds

    @cached_property
    def _start(self) -> Vector:
        eye = np.eye(self.dim)
        return np.asarray(np.mean([self.vertex(s * e) for e in eye for s in (1.0, -1.0)], axis=0))

    def start(self) -> Vector:
        """The mean of the 2n extreme points along the axes, which lies in F."""
        return self._start.copy()

    def tangent(self, g: Vector) -> Vector:
        """All of g, for a set with interior."""
        return g

    def gamma(self) -> float:
        """An upper bound on gamma: Diagonal is sqrt(2 gamma)-competitive on F. n holds on every set."""
        return float(self.dim)

    def beta(self) -> float | None:
        """The widths of the outer box over those of an inner one, the largest ratio; None where none is known."""
        return None

    def inner_box(self) -> Box | None:
        """None: no inner box is known."""
        return None

    def outer_box(self) -> Box:
        """The smallest box around F."""
        from ftprl.sets.box import Box

        low, high = self.bounds()
        return Box(low, np.maximum(low, high))

    def post_hoc(self, family: Family, G: Vector, GG: Vector | None = None, *, program: bool = False) -> PostHoc | None:
        """The smallest bound that a fixed matrix of the family could have had; None where that cannot be computed.

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
        closed = self.diagonal_optimum(G)
        if closed is None and program:
            closed = self.diagonal_program(G)
        return hindsight.separate_optimum(self, G) if closed is None else closed

    def block_optimum(self, G: Vector) -> PostHoc | None:
        """The best multiple of the identity on each factor of a product; None on other sets."""
        return None

    def diagonal_optimum(self, G: Vector) -> PostHoc | None:
        """The best diagonal by a formula; None where there is none."""
        return None

    def diagonal_program(self, G: Vector) -> PostHoc | None:
        """The best diagonal by a convex program; None where F is no small polytope."""
        V = self.extreme_differences()
        return None if V is None else hindsight.diagonal_by_program(V, G)

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """The best full matrix, by a convex program over the vertices of Fsym; None without GG or `program`."""
        if GG is None or not program or self.dim > hindsight.MAX_PROGRAM_DIM:
            return None
        V = self.extreme_differences()
        return None if V is None else hindsight.full_by_program(V, GG)

    def extreme_differences(self) -> Vector | None:
        """Points among which, up to sign, all vertices of Fsym are; None where F is not a small polytope."""
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
        """Whether it is known that a full matrix can beat a diagonal one by at most sqrt(pi/2) in the bound."""
        return False

    def penalty_growth(self) -> float | None:
        """rho >= sum N(increments of Q*) / N(Q*), where the best diagonal never falls; None where it may."""
        return None

    def conic(self) -> Conic:
        """F as linear rows and cones for a solver; a set of your own has none unless you write it."""
        raise Unsupported(
            f"{type(self).__name__} has no conic form, which this needs; give it conic() or use a set of ftprl."
        )


class Frozen:
    """Attributes are set once: the sets of this library are values, and caches rest on that."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{type(self).__name__} is frozen: build a new set instead of changing {name}")
        object.__setattr__(self, name, value)


class MixedSet(Frozen, ConvexSet):
    """A set with a closed form for scalar and diagonal H, and a conic solver for a full H."""

    @abstractmethod
    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """The closed form: H has ndim 0 or 1."""

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """A minimiser over F of ½ xᵀHx + z·x."""
        return self.minimise(H, z, near).x

    def closed_form(self, H: PSD) -> bool:
        """For scalar and diagonal H."""
        return H.ndim < 2

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """The closed form and its measured gap where H is diagonal, the solver and its gap where it is not."""
        if H.ndim < 2:
            x = self._separable(H, z, near)
            return Solution(x, self.gap(H, z, x))
        return minimise_conic(self, H, z, near)

    def vertex(self, g: Vector) -> Vector:
        """The closed form with H = 0."""
        return self._separable(psd.zero(), g, self.start())


def checked_center(center: ArrayLike | None, dim: int) -> Vector:
    """A centre given by the user, or the origin."""
    return check.frozen(np.zeros(dim) if center is None else check.vector("center", center, dim))


def scaled_tolerance(atol: float, scale: float) -> float:
    """atol·(1 + scale)."""
    return atol * (1.0 + scale)


def worst_excess(excess: Vector, size: Vector) -> float:
    """The largest excess above 0, each over its size."""
    over = np.maximum(excess, 0.0)
    return float(np.divide(over, size, out=np.where(over > 0, 1.0, 0.0), where=size > 0).max(initial=0.0))


def require_sets(what: str, *parts: object) -> None:
    """Refuse what is not a set."""
    for part in parts:
        if not isinstance(part, ConvexSet):
            shown = " ".join(repr(part).split())[:60]
            raise InvalidInput(f"{what} needs sets of ftprl.sets or derived from ConvexSet, got {shown}; wrap it.")


def require_same_dim(what: str, a: int, b: int) -> None:
    """Refuse two parts of different dimension."""
    if a != b:
        raise InvalidInput(f"{what} needs equal dimensions, got {a} and {b}; make them agree.")
