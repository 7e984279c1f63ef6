"""Minimise a quadratic over a set given as a `Conic`, with a proved gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.errors import InvalidInput
from ftprl.solver.certified import TIGHT, Pair, Solution, Span, lower_bound, value
from ftprl.solver.conic import Conic
from ftprl.solver.engines import call_clarabel, call_piqp, solve_linear
from ftprl.solver.polish import polish
from ftprl.solver.warm import active_set, rows_at

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_WARM_STEPS, _POLISH_STEPS = 15, 15
_ENOUGH = 1e-8  # a relative gap beyond this sends a quadratic program on to the next solver


class Describable(Protocol):
    """What this module needs of a set."""

    @property
    def dim(self) -> int: ...
    def conic(self) -> Conic: ...
    def widths(self) -> Vector: ...
    def bounds(self) -> tuple[Vector, Vector]: ...
    def start(self) -> Vector: ...
    def contains(self, x: Vector, atol: float = 1e-9) -> bool: ...


def _interior(conic: Conic, P: PSD, q: Vector, span: Span) -> tuple[Pair, Vector, Vector]:
    """An interior-point answer with multipliers and slacks: PIQP where there are only rows, Clarabel for cones."""
    G, h, cones = conic.stacked
    if not conic.soc and not conic.power and len(conic.d):
        found = call_piqp(P, q, conic)
        if found is not None:
            w, dual, slack = found
            pair = Pair(w, lower_bound(P, q, *conic.rows, w, dual, span))
            if value(P, q, w) - pair.lower <= _ENOUGH * (1.0 + abs(pair.lower)):
                return pair, dual, slack
    answer = call_clarabel(P, q, G, h, cones)
    status = str(answer.status)
    if "Infeasible" in status:
        kind = "no point" if "Primal" in status else "no minimum: the set is unbounded along the objective"
        raise InvalidInput(f"the program needs a bounded, non-empty set, got {kind}; add or drop constraints.")
    w, dual = np.array(answer.x), np.array(answer.z)
    if not (np.isfinite(w).all() and np.isfinite(dual).all()):
        raise InvalidInput(f"the solver found no finite point ({status}); rescale the set or the gradients.")
    return Pair(w, lower_bound(P, q, G, h, w, dual, span)), dual, np.array(answer.s)


def _embed(H: PSD, z: Vector, size: int, l1: float) -> tuple[PSD, Vector]:
    n = len(z)
    P = np.zeros((size, size))
    P[:n, :n] = psd.dense(H, n)
    q = np.zeros(size)
    q[:n] = z
    if l1:
        q[size - n :] = l1
    return P, q


@final
@dataclass(frozen=True, eq=False)
class _Unit:
    """A set in units of its own size: the solvers' tolerances are absolute, and made for sets of the size of 1."""

    feasible: Describable
    size: float

    @property
    def dim(self) -> int:
        return self.feasible.dim

    def conic(self) -> Conic:
        return self.feasible.conic().in_units_of(self.size)

    def widths(self) -> Vector:
        return self.feasible.widths() / self.size

    def bounds(self) -> tuple[Vector, Vector]:
        low, high = self.feasible.bounds()
        return low / self.size, high / self.size

    def start(self) -> Vector:
        return self.feasible.start() / self.size

    def contains(self, x: Vector, atol: float = 1e-9) -> bool:
        return self.feasible.contains(x * self.size, atol * self.size / (1.0 + self.size))


def _size(feasible: Describable) -> float:
    """The set's largest finite width, where that is far from 1; 1 elsewhere, so that most sets are left alone."""
    D = feasible.widths()
    size = float(D[D.argmax()])
    if not math.isfinite(size):
        size = float(np.where(np.isfinite(D), D, 0.0).max())
    return size if size > 0 and not 1e-3 <= size <= 1e4 else 1.0


def _span(feasible: Describable, conic: Conic, near: Vector) -> Span:
    """The range of each variable. An infinite side is replaced by a guess around `near`: no gap can be proved there."""
    low, high = feasible.bounds()
    if not len(conic.reach) and math.isfinite(low[low.argmin()]) and math.isfinite(high[high.argmax()]):
        return low, high
    guess = 2.0 * (1.0 + np.abs(near))
    low, high = np.where(np.isfinite(low), low, near - guess), np.where(np.isfinite(high), high, near + guess)
    return np.concatenate((low, np.zeros(len(conic.reach)))), np.concatenate((high, conic.reach))


def _linear(feasible: Describable, conic: Conic, H: PSD, z: Vector, near: Vector, span: Span) -> Solution:
    """H = 0 over linear rows: a corner, by a linear program."""
    status, x, dual = solve_linear(z, conic.C, conic.d, conic.A, conic.b)
    if status != "optimal":
        raise InvalidInput("the best point needs a bounded set, got no bound along the gradient; add faces.")
    lower = lower_bound(H, z, *conic.rows, x, dual, span)
    x = keep_near(feasible, H, z, x, near)
    return Solution(x, max(float(z @ x) - lower, 0.0))


def minimise_conic(feasible: Describable, H: PSD, z: Vector, near: Vector, l1: float = 0.0) -> Solution:
    """Minimise ½ xᵀHx + z·x + l1·|x|₁ over F; directions without weight stay at `near` where they can."""
    size = _size(feasible)
    if size == 1.0:
        return _level(feasible, H, z, near, l1)
    found = _level(_Unit(feasible, size), H * size**2, z * size, near / size, l1 * size)
    return Solution(found.x * size, found.gap)


def _level(feasible: Describable, H: PSD, z: Vector, near: Vector, l1: float) -> Solution:
    """The same for a set of the size of 1: the objective is brought to that size too."""
    steep = max(float(np.abs(H).max(initial=0.0)), float(np.abs(z).max(initial=0.0)), l1) or 1.0
    found = _minimise(feasible, H / steep, z / steep, near, l1 / steep)
    return Solution(found.x, found.gap * steep)


def _minimise(feasible: Describable, H: PSD, z: Vector, near: Vector, l1: float) -> Solution:
    """`minimise_conic` for a set and an objective of the size of 1."""
    n = feasible.dim
    conic = feasible.conic()
    span = _span(feasible, conic, near)
    if conic.polyhedral and not l1 and not H.any():
        return _linear(feasible, conic, H, z, near, span)
    plain = conic.polyhedral and not l1
    if plain:
        warm = active_set(conic, H, z, near, span, rows_at(conic, near), _WARM_STEPS)
        if warm is not None:
            return warm
    if l1:
        magnitude = np.maximum(np.abs(span[0][:n]), np.abs(span[1][:n]))
        conic = conic.with_l1(magnitude)
        span = (np.concatenate((span[0], np.zeros(n))), np.concatenate((span[1], magnitude)))
    P, q = _embed(H, z, conic.size, l1)
    pair, dual, slack = _interior(conic, P, q, span)

    def total(x: Vector) -> float:
        return value(H, z, x) + l1 * float(np.abs(x).sum())

    if plain:
        e = len(conic.b)
        exact = active_set(conic, H, z, near, span, dual[e:] > slack[e:], _POLISH_STEPS)
        if exact is not None:
            return exact
    pairs = [pair] if conic.power else [pair, *polish(conic, P, q, pair, dual, slack, span)]
    pairs = [p for p in pairs if np.isfinite(p.w).all() and math.isfinite(p.lower)]
    lower = max(p.lower for p in pairs)
    points = [_pull_back(feasible, conic, p.w[:n]) for p in pairs]
    x = min((x for x in points if feasible.contains(x, 10 * TIGHT)), key=total, default=points[0])
    if not l1:
        x = keep_near(feasible, H, z, x, near)
    return Solution(x, max(total(x) - lower, 0.0))


def _pull_back(feasible: Describable, conic: Conic, x: Vector) -> Vector:
    """Move a point that misses F by a hair towards the inside until it is in F."""
    if len(conic.b) and conic.size == conic.dim:
        x = x - conic.equality_inverse @ (conic.A @ x - conic.b)
    if feasible.contains(x, TIGHT):
        return x
    inside = feasible.start()
    share = furthest(lambda s: feasible.contains(inside + s * (x - inside), TIGHT))
    return inside + share * (x - inside)


def keep_near(feasible: Describable, H: PSD, z: Vector, x: Vector, near: Vector) -> Vector:
    """Where H does not see a direction, and z neither, go back to `near` along it as far as F allows."""
    if H.ndim == 2:
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
    share = furthest(lambda s: feasible.contains(x + s * move, TIGHT))
    # Along a curved edge the tolerance alone lets a point slide by its root: that is no room.
    return x + share * move if share > 1e-4 else x


def furthest(fits: Callable[[float], bool]) -> float:
    """The largest share in [0, 1] that fits, given that 0 does and that the set is convex."""
    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if fits(mid) else (low, mid)
    return low
