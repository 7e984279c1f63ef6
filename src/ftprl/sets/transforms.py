"""Sets built from other sets: linear preimages and products."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check, psd
from ftprl.errors import InvalidInput
from ftprl.sets.base import ConvexSet, Frozen, Quantity, require_same_dim, require_sets
from ftprl.sets.box import Box
from ftprl.sets.hindsight import PostHoc, const_optimum, stack_blocks
from ftprl.solver import Conic, Solution, keep_near, minimise_conic, pull_inside

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]


@final
class Preimage(Frozen, ConvexSet):
    """The linear preimage {x : Ax in inner} of a set, with A square and invertible.

    >>> Preimage([[2.0]], Box(-1, 1)).widths()
    array([1.])
    """

    def __init__(self, A: ArrayLike, inner: ConvexSet) -> None:
        self.A, self._inverse = check.invertible("A", A)
        require_sets("Preimage", inner)
        require_same_dim("Preimage", len(self.A), inner.dim)
        self.inner = inner
        self.diagonal = bool(np.count_nonzero(self.A - np.diag(np.diagonal(self.A))) == 0)

    def __repr__(self) -> str:
        return f"Preimage(A, {self.inner!r})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return self.inner.dim

    def hat(self, Q: PSD) -> PSD:
        """Return A^{-T} Q A^{-1}, as a diagonal or a number where it is one, so that closed forms of `inner` apply."""
        if self.diagonal:
            return psd.congruence(Q, np.diagonal(self._inverse))
        full = psd.congruence(Q, self._inverse)
        d = np.diagonal(full)
        size = np.sqrt(np.maximum(d, 0.0))
        if np.any(np.abs(full - np.diag(d)) > 1e-14 * np.outer(size, size)):
            return full
        return np.asarray(d.mean()) if np.ptp(d) <= 1e-14 * np.abs(d).max(initial=0.0) else d.copy()

    def hat_full(self, GG: Vector) -> Vector:
        """Return A^{-T} GG A^{-1}, the sum of outer products of the transformed gradients."""
        return self._inverse.T @ GG @ self._inverse

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x, computed on the inner set in the coordinates Ax."""
        return self.minimise(H, z, near).x

    def closed_form(self, H: PSD) -> bool:
        """Return True if the inner set has a closed form for the transformed H."""
        return self.inner.closed_form(self.hat(H))

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x by the inner closed form in the coordinates Ax, or else by a solver in scaled
        coordinates.
        """
        hat = self.hat(H)
        if not self.inner.closed_form(hat):
            return minimise_conic(self, H, z, near)
        x = self._inverse @ self.inner.minimise(hat, self._inverse.T @ z, self.A @ near).x
        x = x if psd.definite(H) else keep_near(self, H, z, x, near)
        if self.violation(x) > 1e-15:
            x = pull_inside(self, x)
        return Solution(x, self.gap(H, z, x))

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser of g·x: A^{-1} times the inner set's vertex for A^{-T} g."""
        return self._inverse @ self.inner.vertex(self._inverse.T @ g)

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the range of each coordinate by the inner set's vertices; infinite if the inner set is unbounded."""
        if np.isfinite(self.inner.widths()).all():
            return super().bounds()
        return np.full(self.dim, -np.inf), np.full(self.dim, np.inf)

    def widths(self) -> Vector:
        """Return the range of each coordinate."""
        low, high = self.bounds()
        return np.maximum(high - low, 0.0)

    def diameter(self) -> float:
        """Return the smallest of three upper bounds; it is exact if the inner set's squared diameter is."""
        one = np.array(1.0)
        inside = math.sqrt(self.inner.sq_diameter(self.hat(one)))
        stretched = float(np.linalg.norm(self._inverse, 2)) * self.inner.diameter()
        return min(inside, stretched, super().diameter())

    def sq_diameter(self, Q: PSD) -> float:
        """Return the inner set's `sq_diameter` of A^{-T} Q A^{-1}."""
        if Q.ndim == 0:
            return float(Q) * self.diameter() ** 2
        return min(self.inner.sq_diameter(self.hat(Q)), super().sq_diameter(Q))

    def is_exact(self, what: Quantity) -> bool:
        """Return True if widths are exact; for other quantities, if the inner set is exact for the transformed Q."""
        if what == "widths":
            return self.inner.is_exact("widths")
        return self.inner.is_exact("diagonal" if self.diagonal and what != "full" else "full")

    def start(self) -> Vector:
        """Return A^{-1} times the inner set's start."""
        return self._inverse @ self.inner.start()

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if Ax lies in the inner set."""
        return self.inner.contains(self.A @ x, atol)

    def violation(self, x: Vector) -> float:
        """Return the inner set's violation at Ax, relative to the numbers it is computed from."""
        hat = self.A @ x
        size = float(np.abs(hat).max(initial=0.0))
        entered = float((np.abs(self.A) @ np.abs(x)).max(initial=0.0))
        return self.inner.violation(hat) * (size / entered if size else 1.0)

    def tangent(self, g: Vector) -> Vector:
        """Return Aᵀ times the inner set's tangent part of A^{-T} g."""
        return self.A.T @ self.inner.tangent(self._inverse.T @ g)

    def gamma(self) -> float:
        """Return the inner set's gamma for a diagonal A, n otherwise."""
        return self.inner.gamma() if self.diagonal else float(self.dim)

    def beta(self) -> float | None:
        """Return the inner set's beta for a diagonal A, None otherwise."""
        return self.inner.beta() if self.diagonal else None

    def inner_box(self) -> Box | None:
        """Return the inner set's inner box, mapped back, for a diagonal A; None otherwise."""
        box = self.inner.inner_box() if self.diagonal else None
        if box is None:
            return None
        scale = np.diagonal(self._inverse)
        ends = np.sort((box.lower * scale, box.upper * scale), axis=0)
        return Box(ends[0], ends[1])

    def diagonal_optimum(self, G: Vector) -> PostHoc | None:
        """Return the best diagonal through the inner set's for a diagonal A; None otherwise."""
        if not self.diagonal:
            return None
        a = np.abs(np.diagonal(self.A))
        hat = np.sqrt(G) / a
        unit = float(hat.max(initial=0.0)) or 1.0
        inner = self.inner.diagonal_optimum((hat / unit) ** 2)
        if inner is None:
            return None
        return PostHoc(inner.value * unit, None if inner.Q is None else inner.Q * unit * a * a, inner.exact)

    def full_optimum(self, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
        """Return the best full matrix through the inner set's for A^{-T} GG A^{-1}."""
        if GG is None:
            return None
        top = float(np.abs(GG).max())
        hat = self.hat_full(GG / top)
        inner = self.inner.post_hoc("full", np.diagonal(hat), hat, program=program)
        if inner is None:
            return None
        Q = None if inner.Q is None else self.A.T @ (math.sqrt(top) * psd.dense(inner.Q, self.dim)) @ self.A
        return PostHoc(math.sqrt(top) * inner.value, Q, inner.exact)

    def extreme_differences(self) -> Vector | None:
        """Return A^{-1} times the inner set's extreme differences."""
        inner = self.inner.extreme_differences()
        return None if inner is None else np.asarray(np.linalg.solve(self.A, inner.T).T, dtype=np.float64)

    def penalty_growth(self) -> float | None:
        """Return the inner set's growth for a diagonal A, None otherwise."""
        return self.inner.penalty_growth() if self.diagonal else None

    def conic(self) -> Conic:
        """Return the inner set's conic form in the variable Ax."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return self.inner.conic().substitute(self.A, np.zeros(self.dim))


@final
class Product(Frozen, ConvexSet):
    """The product F_1 x F_2 x ... of sets, one for each block of coordinates.

    >>> Product(Box(-1, 1), Box(0, 1, dim=2)).widths()
    array([2., 1., 1.])
    """

    def __init__(self, *sets: ConvexSet) -> None:
        if not sets:
            raise InvalidInput("Product needs at least one set, got none; pass the factors.")
        require_sets("Product", *sets)
        self.sets = sets
        ends = np.cumsum([s.dim for s in sets])
        self.blocks = tuple(slice(int(e) - s.dim, int(e)) for e, s in zip(ends, sets, strict=True))

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.sets))})"

    @property
    def dim(self) -> int:
        """Return the number of coordinates."""
        return self.blocks[-1].stop

    def _block(self, Q: PSD, block: slice) -> PSD:
        """Return the part of a scalar, diagonal or full matrix that belongs to one block."""
        return Q if Q.ndim == 0 else (Q[block] if Q.ndim == 1 else Q[block, block])

    def _decouples(self, Q: PSD) -> bool:
        """Return True if Q has no entries between different blocks."""
        if Q.ndim < 2:
            return True
        rest = Q.copy()
        for block in self.blocks:
            rest[block, block] = 0.0
        return not rest.any()

    def _each(self, solve: Callable[[ConvexSet, slice], Solution]) -> Solution:
        """Solve each factor separately and concatenate the solutions; gaps add up."""
        parts = [solve(s, b) for s, b in zip(self.sets, self.blocks, strict=True)]
        return Solution(np.concatenate([p.x for p in parts]), sum(p.gap for p in parts))

    def argmin(self, H: PSD, z: Vector, near: Vector) -> Vector:
        """Return a minimiser over F of ½ xᵀHx + z·x."""
        return self.minimise(H, z, near).x

    def closed_form(self, H: PSD) -> bool:
        """Return True if H is block diagonal and every factor has a closed form for its block."""
        parts = zip(self.sets, self.blocks, strict=True)
        return self._decouples(H) and all(s.closed_form(self._block(H, b)) for s, b in parts)

    def minimise(self, H: PSD, z: Vector, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x factor by factor if H is block diagonal, by one joint program otherwise."""
        if not self._decouples(H):
            return minimise_conic(self, H, z, near)
        return self._each(lambda s, b: s.minimise(self._block(H, b), z[b], near[b]))

    def minimise_l1(self, H: PSD, z: Vector, l1: float, near: Vector) -> Solution:
        """Minimise ½ xᵀHx + z·x + l1·|x|₁, factor by factor if H is block diagonal."""
        if not self._decouples(H):
            return minimise_conic(self, H, z, near, l1)
        return self._each(lambda s, b: s.minimise_l1(self._block(H, b), z[b], l1, near[b]))

    def _gather(self, part: Callable[[ConvexSet, slice], Vector]) -> Vector:
        return np.concatenate([part(s, b) for s, b in zip(self.sets, self.blocks, strict=True)])

    def vertex(self, g: Vector) -> Vector:
        """Return a minimiser of g·x, factor by factor.

        >>> Product(Box(-1, 1), Box(0, 1, dim=2)).vertex(np.array([1.0, -1.0, 2.0]))
        array([-1.,  1.,  0.])
        """
        return self._gather(lambda s, b: s.vertex(g[b]))

    def widths(self) -> Vector:
        """Return the factors' widths, concatenated."""
        return self._widths

    @cached_property
    def _widths(self) -> Vector:
        return check.frozen(self._gather(lambda s, _: s.widths()))

    def bounds(self) -> tuple[Vector, Vector]:
        """Return the factors' bounds, concatenated."""
        return self._gather(lambda s, _: s.bounds()[0]), self._gather(lambda s, _: s.bounds()[1])

    def diameter(self) -> float:
        """Return the square root of the sum of the factors' squared diameters."""
        return math.hypot(*(s.diameter() for s in self.sets))

    def sq_diameter(self, Q: PSD) -> float:
        """Return the sum of the factors' values for a block-diagonal Q; otherwise (sum of roots)², an upper bound."""
        parts = [s.sq_diameter(self._block(Q, b)) for s, b in zip(self.sets, self.blocks, strict=True)]
        return sum(parts) if self._decouples(Q) else sum(math.sqrt(max(p, 0.0)) for p in parts) ** 2

    def is_exact(self, what: Quantity) -> bool:
        """Return True if every factor is exact; a full matrix that couples factors is only bounded."""
        return all(s.is_exact(what) for s in self.sets) and (what != "full" or len(self.sets) == 1)

    def start(self) -> Vector:
        """Return the factors' starts, concatenated."""
        return self._gather(lambda s, _: s.start())

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        """Return True if each block of x lies in its factor."""
        return all(s.contains(x[b], atol) for s, b in zip(self.sets, self.blocks, strict=True))

    def violation(self, x: Vector) -> float:
        """Return the largest violation of a factor."""
        return max(s.violation(x[b]) for s, b in zip(self.sets, self.blocks, strict=True))

    def tangent(self, g: Vector) -> Vector:
        """Return the factors' tangent parts of g, concatenated."""
        return self._gather(lambda s, b: s.tangent(g[b]))

    def gamma(self) -> float:
        """Return the largest gamma of a factor."""
        return max(s.gamma() for s in self.sets)

    def beta(self) -> float | None:
        """Return the largest beta of a factor, or None if some factor has none."""
        betas = [s.beta() for s in self.sets]
        return None if None in betas else max(b for b in betas if b is not None)

    def inner_box(self) -> Box | None:
        """Return the product of the factors' inner boxes, or None if some factor has none."""
        boxes = [b for b in (s.inner_box() for s in self.sets) if b is not None]
        if len(boxes) < len(self.sets):
            return None
        return Box(np.concatenate([b.lower for b in boxes]), np.concatenate([b.upper for b in boxes]))

    def block_optimum(self, G: Vector) -> PostHoc:
        """Return the best multiple of the identity on each factor, with the bound sqrt 2 sum D_k sqrt(G_k)."""
        parts = [const_optimum(s, float(G[b].sum())) for s, b in zip(self.sets, self.blocks, strict=True)]
        return stack_blocks(self.sets, parts)

    def diagonal_optimum(self, G: Vector) -> PostHoc | None:
        """Return the best diagonals of all factors combined, or None if some factor has no formula."""
        optima = [s.diagonal_optimum(G[b]) for s, b in zip(self.sets, self.blocks, strict=True)]
        parts = [p for p in optima if p is not None]
        return stack_blocks(self.sets, parts) if len(parts) == len(optima) else None

    def quadratically_convex(self) -> bool:
        """Return True if every factor is quadratically convex."""
        return all(s.quadratically_convex() for s in self.sets)

    def conic(self) -> Conic:
        """Return the rows and cones of all factors, side by side."""
        return self._conic

    @cached_property
    def _conic(self) -> Conic:
        return Conic.join([s.conic() for s in self.sets], [b.start for b in self.blocks], self.dim)
