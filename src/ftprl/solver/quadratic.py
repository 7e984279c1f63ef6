"""Minimise a quadratic over a set given as a `Conic`, with a proved gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.errors import InvalidInput
from ftprl.solver.certified import ROUNDING, TIGHT, Pair, Solution, Span, dual_gap, value
from ftprl.solver.conic import Conic
from ftprl.solver.engines import call_clarabel, call_piqp, solve_linear
from ftprl.solver.frank_wolfe import minimise_by_vertices
from ftprl.solver.polish import polish
from ftprl.solver.warm import active_set, rows_at

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_WARM_STEPS, _POLISH_STEPS = 15, 15
_VERTEX_STEPS = 1000
_ENOUGH = 1e-8  # a larger relative gap sends a quadratic program to the next solver


class Describable(Protocol):
    """The methods of a set that this module uses."""

    @property
    def dim(self) -> int: ...
    def conic(self) -> Conic: ...
    def bounds(self) -> tuple[Vector, Vector]: ...
    def start(self) -> Vector: ...
    def violation(self, x: Vector) -> float: ...
    def closed_form(self, H: PSD) -> bool: ...
    def gap(self, H: PSD, z: Vector, x: Vector) -> float: ...
    def vertex(self, g: Vector) -> Vector: ...


class _NoMinimum(InvalidInput):
    """Raised if a solver takes the program to have no minimum."""


def _interior(conic: Conic, P: PSD, q: Vector, span: Span) -> tuple[Pair, Vector]:
    """Return an interior-point answer with multipliers, and its slacks: by PIQP for rows alone, by Clarabel for
    cones.
    """
    G, h, cones = conic.stacked
    if not conic.soc and not conic.power and len(conic.d):
        answer = call_piqp(P, q, conic)
        if answer is not None:
            w, dual, slack = answer
            if dual_gap(P, q, *conic.rows, w, dual, span) <= _ENOUGH * (1.0 + abs(value(P, q, w))):
                return Pair(w, dual), slack
    answer = call_clarabel(P, q, G, h, cones)
    status = str(answer.status)
    if "Infeasible" in status:
        kind = "no point" if "Primal" in status else "no minimum: the set is unbounded along the objective"
        raise _NoMinimum(f"the program needs a bounded, non-empty set, got {kind}; add or drop constraints.")
    w, dual = np.array(answer.x), np.array(answer.z)
    if not (np.isfinite(w).all() and np.isfinite(dual).all()):
        raise InvalidInput(f"the solver found no finite point ({status}); rescale the set or the gradients.")
    return Pair(w, dual), np.array(answer.s)


def _embed(H: PSD, z: Vector, size: int, l1: Vector) -> tuple[PSD, Vector]:
    """Return the objective with zeros for auxiliary variables and `l1` for the absolute values."""
    n = len(z)
    P = np.zeros((size, size))
    P[:n, :n] = psd.dense(H, n)
    q = np.zeros(size)
    q[:n] = z
    q[size - len(l1) :] = l1
    return P, q


@final
@dataclass(frozen=True, eq=False)
class Scaled:
    """A set in coordinates y = (x - middle)/unit in which each side has length 1.

    The solvers' tolerances are absolute and made for sets of size 1: a side that is long or short beside the others, or
    a set far from 0, would lose its digits.
    """

    feasible: Describable
    middle: Vector
    unit: Vector
    span: Span

    @staticmethod
    def of(feasible: Describable, near: Vector) -> Scaled:
        """Return the scaling by the set's own bounds.

        An infinite side is replaced by a guess; no gap can be proved there.
        """
        conic = feasible.conic()
        known: Scaled | None = conic.__dict__.get("_scaled")
        if known is not None and known.feasible is feasible:
            return known
        low, high = feasible.bounds()
        wide = high - low
        finite = np.isfinite(wide)
        if not finite.all():
            most = float(wide[finite].max(initial=0.0)) or 1.0
            reach = 2.0 * np.maximum(np.abs(near), most)
            low, high = np.where(np.isfinite(low), low, near - reach), np.where(np.isfinite(high), high, near + reach)
            wide = np.where(finite, wide, most)
        middle = low + (high - low) / 2 if finite.all() else np.where(finite, low + wide / 2, near)
        unit = wide if wide[wide.argmin()] > 0 else np.where(wide > 0, wide, float(wide.max(initial=0.0)) or 1.0)
        made = Scaled(feasible, middle, unit, ((low - middle) / unit, (high - middle) / unit))
        if finite.all():  # it does not depend on `near`, so it is stored with the set's rows
            conic.__dict__["_scaled"] = made
        return made

    @cached_property
    def _conic(self) -> Conic:
        return self.feasible.conic().rescale(self.middle, self.unit)

    @cached_property
    def _start(self) -> Vector:
        return self.inward(self.feasible.start())

    def conic(self) -> Conic:
        """Return the set's rows and cones in y."""
        return self._conic

    def span_with(self, conic: Conic) -> Span:
        """Return the range of each variable, including auxiliary ones."""
        k = len(conic.reach)
        if not k:
            return self.span
        return np.concatenate((self.span[0], np.zeros(k))), np.concatenate((self.span[1], conic.reach))

    def inward(self, x: Vector) -> Vector:
        """Return the y of a point x."""
        return (x - self.middle) / self.unit

    def outward(self, y: Vector) -> Vector:
        """Return the point x of F for y, moved inside if rounding left it outside."""
        conic = self.conic()
        if conic.polyhedral:
            return self.middle + self.unit * self._inside_rows(conic, y)
        x = self.middle + self.unit * y
        return x if self.feasible.violation(x) <= ROUNDING else pull_inside(self.feasible, x)

    def _inside_rows(self, conic: Conic, y: Vector) -> Vector:
        """Return y moved onto the equalities, then towards the start until it satisfies every row."""
        y = np.where(self.span[0] == self.span[1], self.span[0], y)  # no share of a move mends one that cannot move
        if len(conic.b):
            y = y - conic.equality_inverse @ (conic.A @ y - conic.b)
        over = conic.C @ y - conic.d
        if not over.size or over[over.argmax()] <= ROUNDING:
            return y
        inside = self._start
        slack = np.maximum(conic.d - conic.C @ inside, 0.0)
        bad = (over > ROUNDING) & (slack > TIGHT)  # no move corrects a row that the start meets with equality
        share = float((over[bad] / (over[bad] + slack[bad])).max(initial=0.0)) * (1 + 4 * ROUNDING)
        return inside + (1.0 - min(share, 1.0)) * (y - inside)

    def curvature(self, H: PSD) -> PSD:
        """Return H in the coordinates y."""
        return H * self.unit * self.unit if H.ndim < 2 else H * np.multiply.outer(self.unit, self.unit)


def minimise_conic(feasible: Describable, H: PSD, z: Vector, near: Vector, l1: float = 0.0) -> Solution:
    """Minimise ½ xᵀHx + z·x + l1·|x|₁ over F; directions without weight stay at `near` where possible."""
    scaled = Scaled.of(feasible, near)
    # In y the objective is ½ yᵀUHUy + (U(z + H middle))·y, also scaled to size 1.
    P, q = scaled.curvature(H), scaled.unit * (z + psd.apply(H, scaled.middle))
    steep = max(float(np.abs(P).max(initial=0.0)), float(np.abs(q).max(initial=0.0)), l1 * float(scaled.unit.max()))
    steep = steep or 1.0
    try:
        return _minimise(scaled, H, z, P / steep, q / steep, near, l1, steep)
    except _NoMinimum:
        # A solver may reject weights that differ by a factor of 1e20. A bounded set has a minimum: find it by its
        # vertices.
        low, high = feasible.bounds()
        if l1 or not P.any() or not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise
        return minimise_by_vertices(feasible.vertex, H, z, pull_inside(feasible, near), steep, _VERTEX_STEPS)


def _minimise(scaled: Scaled, H: PSD, z: Vector, P: PSD, q: Vector, near: Vector, l1: float, steep: float) -> Solution:
    """Run `minimise_conic` for the objective (P, q) in the scaled coordinates, divided by `steep`."""
    conic = scaled.conic()
    span = scaled.span_with(conic)
    rows_only = conic.polyhedral and not l1
    if rows_only and not P.any():
        status, y, dual = solve_linear(q, conic.C, conic.d, conic.A, conic.b)
        if status != "optimal":
            raise InvalidInput("the best point needs a bounded set, got no bound along the gradient; add faces.")
        task = _Task(scaled, conic, span, H, z, P, q, near, steep)
        return task.finish([Pair(corner(conic, y, dual), dual), Pair(y, dual)])
    there = scaled.inward(near)
    if rows_only:
        warm = active_set(conic, P, q, there, span, rows_at(conic, there), _WARM_STEPS)
        if warm is not None:
            return _accept(scaled, conic, H, z, P, q, near, warm, steep)
    magnitude = np.zeros(0)
    if l1:
        ends = scaled.middle + scaled.unit * np.array([end[: conic.dim] for end in span])
        magnitude = np.abs(ends).max(axis=0)
        magnitude = np.where(magnitude > 0, magnitude, scaled.unit)
        conic = scaled.feasible.conic().with_l1(magnitude).rescale(scaled.middle, scaled.unit)
        span = scaled.span_with(conic)
    full_P, full_q = _embed(P, q, conic.size, l1 * magnitude / steep)
    pair, slack = _interior(conic, full_P, full_q, span)
    if rows_only:
        e = len(conic.b)
        exact = active_set(conic, P, q, there, span, pair.dual[e:] > slack[e:], _POLISH_STEPS)
        if exact is not None:
            return _accept(scaled, conic, H, z, P, q, near, exact, steep)
    pairs = [pair] if conic.power else [pair, *polish(conic, full_P, full_q, pair, slack)]
    return _Task(scaled, conic, span, H, z, full_P, full_q, near, steep, magnitude).finish(pairs)


def _accept(
    scaled: Scaled, conic: Conic, H: PSD, z: Vector, P: PSD, q: Vector, near: Vector, pair: Pair, steep: float
) -> Solution:
    """Return an answer of the active-set method in x, with its gap there."""
    x = scaled.outward(pair.w)
    if not is_definite(H):
        x = keep_near(scaled.feasible, H, z, x, near)
    gap = dual_gap(P, q, *conic.rows, scaled.inward(x), pair.dual, scaled.span)
    return Solution(x, max(gap, 0.0) * steep)


def is_definite(H: PSD) -> bool:
    """Return True if H is positive definite, tested by a Cholesky factor, which is faster than eigenvalues.

    >>> is_definite(np.array([1.0, 2.0])), is_definite(np.ones((2, 2)))
    (True, False)
    """
    if H.ndim < 2:
        return psd.positive(H)
    try:
        pivots = np.diagonal(np.linalg.cholesky(H))
    except np.linalg.LinAlgError:
        return False
    return bool(pivots.min() > 1e-6 * pivots.max())


@final
@dataclass(frozen=True, eq=False)
class _Task:
    """A scaled program with the objective it came from.

    `magnitude` is the unit of each t >= |x|; it is empty without an L1 term.
    """

    scaled: Scaled
    conic: Conic
    span: Span
    H: PSD
    z: Vector
    P: PSD
    q: Vector
    near: Vector
    steep: float
    magnitude: Vector = field(default_factory=lambda: np.zeros(0))

    def _at(self, x: Vector, w: Vector) -> Vector:
        """Return the program's variables at x: x itself and its absolute values, with auxiliary variables from w."""
        n, w = self.conic.dim, w.copy()
        w[:n] = self.scaled.inward(x)
        if self.magnitude.size:
            w[len(w) - n :] = np.abs(x) / self.magnitude
        return w

    def finish(self, pairs: list[Pair]) -> Solution:
        """Return the best of the points, moved into F, with the smallest gap that any of the multipliers proves for
        it.
        """
        pairs = [p for p in pairs if np.isfinite(p.w).all() and np.isfinite(p.dual).all()]
        points = [_onto_rows(self.scaled, self.conic, p.w) for p in pairs]
        values = [value(self.P, self.q, self._at(x, p.w)) for x, p in zip(points, pairs, strict=True)]
        best = int(np.argmin(values))
        x = points[best]
        if not self.magnitude.size:
            x = keep_near(self.scaled.feasible, self.H, self.z, x, self.near)
            if self.scaled.feasible.closed_form(psd.zero()):  # `vertex` is exact
                return Solution(x, self.scaled.feasible.gap(self.H, self.z, x))
        G, h, _ = self.conic.stacked
        w = self._at(x, pairs[best].w)
        duals = [into_dual_cones(self.conic, p.dual) for p in pairs]
        gap = min(dual_gap(self.P, self.q, G, h, w, dual, self.span) for dual in duals)
        return Solution(x, max(gap, 0.0) * self.steep)


def into_dual_cones(conic: Conic, dual: Vector) -> Vector:
    """Return multipliers moved into the dual cones if rounding left them outside; only then do they prove a bound."""
    out = dual.copy()
    at = len(conic.b)
    out[at : at + len(conic.d)] = np.maximum(out[at : at + len(conic.d)], 0.0)
    at += len(conic.d)
    for _, h in conic.soc:
        out[at] = max(out[at], float(np.linalg.norm(out[at + 1 : at + len(h)])) * (1 + 1e-15))
        at += len(h)
    for _, _, alpha in conic.power:
        u, v, w = np.maximum(out[at], 0.0), np.maximum(out[at + 1], 0.0), out[at + 2]
        reach = float((u / alpha) ** alpha * (v / (1 - alpha)) ** (1 - alpha)) * (1 - 1e-14)
        out[at : at + 3] = u, v, math.copysign(min(abs(w), reach), w)
        at += 3
    return out


def corner(conic: Conic, y: Vector, dual: Vector) -> Vector:
    """Return the corner near y where the rows with a price meet: a linear program's answer without its tolerance."""
    G, h = conic.rows
    on = (np.abs(dual) > 1e-9 * float(np.abs(dual).max(initial=0.0))) | (h - G @ y <= 1e-9)
    on[: len(conic.b)] = True
    step = np.linalg.lstsq(G[on], h[on] - G[on] @ y, rcond=1e-12)[0]
    return np.asarray(y + step) if float(np.abs(step).max(initial=0.0)) < 1e-5 else y


def _onto_rows(scaled: Scaled, conic: Conic, w: Vector) -> Vector:
    """Return the x of w, moved onto the equality rows and into F."""
    y = w[: conic.dim]
    if len(conic.b) and conic.size == conic.dim and not scaled.conic().polyhedral:
        y = y - conic.equality_inverse @ (conic.A @ y - conic.b)
    return scaled.outward(y)


def pull_inside(feasible: Describable, x: Vector, tol: float = ROUNDING) -> Vector:
    """Move a point that misses F slightly towards the inside until it misses F by at most `tol`."""
    inside = feasible.start()
    tol = max(tol, 4 * feasible.violation(inside))
    share = furthest(lambda s: feasible.violation(inside + s * (x - inside)) <= tol)
    return inside + share * (x - inside)


def keep_near(feasible: Describable, H: psd.Matrix, z: Vector, x: Vector, near: Vector) -> Vector:
    """Move x back to `near` along directions in which neither H nor z has weight, as far as F allows."""
    if isinstance(H, psd.LowRank):
        if H.shift > 0 or H.B.shape[1] == H.dim:
            return x
        move, tilt = H.outside(near - x), H.outside(z)
    elif H.ndim == 2:
        w, V = psd.eigh(H)
        N = V[:, w == 0]
        move = N @ (N.T @ (near - x))
        tilt = N @ (N.T @ z)
    else:
        free = np.broadcast_to(H == 0, x.shape)
        move, tilt = np.where(free, near - x, 0.0), np.where(free, z, 0.0)
    size = float(tilt @ tilt)
    if size > 1e-24 * float(z @ z):
        move = move - tilt * (float(tilt @ move) / size)
    if not np.any(move):
        return x
    limit = max(ROUNDING, feasible.violation(x))
    share = furthest(lambda s: feasible.violation(x + s * move) <= limit)
    # Along a curved edge the tolerance alone lets a point slide by its root, which does not count as room.
    return x + share * move if share > 1e-4 else x


def furthest(fits: Callable[[float], bool]) -> float:
    """Return the largest share in [0, 1] that fits, given that 0 fits and that the set is convex.

    >>> round(furthest(lambda share: share <= 0.25), 6)
    0.25
    """
    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if fits(mid) else (low, mid)
    return low
