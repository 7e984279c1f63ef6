"""What a feasible set F must offer, and the defaults a user's own set inherits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.solver import Conic, Solution, minimise_conic

if TYPE_CHECKING:
    from ftprl.sets.box import Box

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Quantity = Literal["widths", "diameter", "diagonal", "full"]


class FeasibleSet(Protocol):
    """F, what may be played: non-empty, closed, convex. `Fsym` is {x - y : x, y in F}."""

    @property
    def dim(self) -> int: ...

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """A minimiser over F of ½ xᵀHx + z·x that keeps directions without weight at `near` where it can."""

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """`argmin`, with an upper bound on how far its value may be from the minimum."""

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """The same with `l1·|x|₁` added."""

    def vertex(self, g: Vector) -> Vector:
        """A minimiser over F of g·x."""

    def sq_diameter(self, Q: PSD) -> float:
        """The maximum of yᵀQy over Fsym, or an upper bound where `is_exact` says no."""

    def widths(self) -> Vector:
        """D_i, the width of F along each axis."""

    def diameter(self) -> float:
        """D, the L2 diameter of F, or an upper bound where `is_exact` says no."""

    def is_exact(self, what: Quantity) -> bool:
        """Whether `widths`, `diameter`, or `sq_diameter` of diagonal or full matrices is exact."""

    def bounds(self) -> tuple[Vector, Vector]:
        """The smallest and the largest value of each coordinate: the outer box."""

    def start(self) -> Vector:
        """A point to play first: the centre where there is one."""

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Membership, up to atol·(1 + scale)."""

    def tangent(self, g: Vector) -> Vector:
        """The part of g that matters on F: its component in the span of Fsym."""

    def gamma(self) -> float:
        """An upper bound on the gamma of theory: Diagonal is sqrt(2 gamma)-competitive on F."""

    def beta(self) -> float | None:
        """Outer box over inner box, the largest ratio of widths; None where no inner box is known."""

    def inner_box(self) -> Box | None:
        """A box inside F whose widths are those of the outer box over `beta`."""

    def outer_box(self) -> Box:
        """The smallest box around F."""

    def conic(self) -> Conic:
        """F for a conic solver."""


class ConvexSet(ABC):
    """The base of every set: give it `dim`, `argmin`, `vertex`, `widths` and `contains`; it does the rest.

    A set of your own inherits bounds that hold on any convex set: diameter sqrt(sum D²), sq_diameter
    sum |Q_ij| D_i D_j, gamma = dim. The gap of its `argmin` is measured through `vertex`, so a step that is not
    exact is accounted for in every certificate.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """The number of coordinates."""

    @abstractmethod
    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """A minimiser over F of ½ xᵀHx + z·x."""

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
        """`argmin` and its gap, by convexity at most grad·(x - vertex(grad))."""
        x = np.asarray(self.argmin(H, z, near), dtype=np.float64)
        if x.shape != z.shape or not np.isfinite(x).all() or not self.contains(x, 1e-7):
            shown = np.array2string(x, precision=4, threshold=6).replace("\n", "")
            raise InvalidInput(
                f"the argmin of {type(self).__name__} needs to be a point of the set, got {shown}; project it first."
            )
        slope = psd.apply(H, x) + z
        return Solution(x, max(float(slope @ (x - self.vertex(slope))), 0.0))

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
        """n, which holds on every set."""
        return float(self.dim)

    def beta(self) -> float | None:
        """None: no inner box is known."""
        return None

    def inner_box(self) -> Box | None:
        """None: no inner box is known."""
        return None

    def outer_box(self) -> Box:
        """The smallest box around F."""
        from ftprl.sets.box import Box

        low, high = self.bounds()
        return Box(low, np.maximum(low, high))

    def conic(self) -> Conic:
        """A set of one's own has no conic form unless it says so."""
        raise Unsupported(
            f"{type(self).__name__} has no conic form, which this needs; give it conic() or use a set of ftprl."
        )


class Frozen:
    """Attributes are set once: the sets of this library are values, and caches rest on that."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{type(self).__name__} is frozen: build a new set instead of changing {name}")
        object.__setattr__(self, name, value)


class ExactSet(Frozen, ConvexSet):
    """A set whose `argmin` is a closed form: its gap is rounding, reported as 0."""

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """`argmin` with gap 0."""
        return Solution(self.argmin(H, z, near), 0.0)


class MixedSet(Frozen, ConvexSet):
    """A set with a closed form for scalar and diagonal H, and a conic solver for a full H."""

    @abstractmethod
    def _separable(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """The closed form: H has ndim 0 or 1."""

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """A minimiser over F of ½ xᵀHx + z·x."""
        return self.minimise(H, z, near).x

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """The closed form where H is diagonal, the solver and its gap where it is not."""
        if H.ndim < 2:
            return Solution(self._separable(H, z, near), 0.0)
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
