"""Minimise a quadratic over a set given as a `Conic`, with a proved gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.errors import InvalidInput
from ftprl.solver.certified import TIGHT, Pair, Solution, lower_bound, value
from ftprl.solver.conic import Conic
from ftprl.solver.engines import call_clarabel, call_piqp, linear_program
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


def _interior(conic: Conic, P: PSD, q: Vector, reach: Vector) -> tuple[Pair, Vector, Vector]:
    """An interior-point answer with multipliers and slacks: PIQP where there are only rows, Clarabel for cones."""
    G, h, cones = conic.stacked
    if not conic.soc and not conic.power and len(conic.d):
        found = call_piqp(P, q, conic)
        if found is not None:
            w, dual, slack = found
            pair = Pair(w, lower_bound(P, q, *conic.rows, w, dual, reach))
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
    return Pair(w, lower_bound(P, q, G, h, w, dual, reach)), dual, np.array(answer.s)


def _embed(H: PSD, z: Vector, size: int, l1: float) -> tuple[PSD, Vector]:
    n = len(z)
    P = np.zeros((size, size))
    P[:n, :n] = psd.dense(H, n)
    q = np.zeros(size)
    q[:n] = z
    if l1:
        q[size - n :] = l1
    return P, q


def minimise_conic(feasible: Describable, H: PSD, z: Vector, near: Vector, l1: float = 0.0) -> Solution:
    """Minimise ½ xᵀHx + z·x + l1·|x|₁ over F; directions without weight stay at `near` where they can."""
    n = feasible.dim
    conic, D = feasible.conic(), feasible.widths()
    reach = np.concatenate((np.where(np.isfinite(D), D, 2.0 * (1.0 + np.abs(near))), conic.reach))
    if conic.polyhedral and not l1 and not H.any():
        status, x = linear_program(z, conic.C, conic.d, conic.A, conic.b)
        if status != "optimal":
            raise InvalidInput("the best point needs a bounded set, got no bound along the gradient; add faces.")
        return Solution(keep_near(feasible, H, z, x, near), 0.0)
    plain = conic.polyhedral and not l1
    if plain:
        warm = active_set(conic, H, z, near, reach, rows_at(conic, near), _WARM_STEPS)
        if warm is not None:
            return Solution(warm.w, max(value(H, z, warm.w) - warm.lower, 0.0))
    if l1:
        low, high = feasible.bounds()
        magnitude = np.maximum(np.abs(low), np.abs(high))
        magnitude = np.where(np.isfinite(magnitude), magnitude, 2.0 * (1.0 + np.abs(near)))
        conic, reach = conic.with_l1(magnitude), np.concatenate((reach, magnitude))
    P, q = _embed(H, z, conic.size, l1)
    scale = max(float(np.abs(P).max(initial=0.0)), float(np.abs(q).max(initial=0.0))) or 1.0
    P, q = P / scale, q / scale  # the solver's tolerances are absolute
    pair, dual, slack = _interior(conic, P, q, reach)

    def total(x: Vector) -> float:
        return value(H, z, x) + l1 * float(np.abs(x).sum())

    if plain:
        e = len(conic.b)
        exact = active_set(conic, H, z, near, reach, dual[e:] > slack[e:], _POLISH_STEPS)
        if exact is not None:
            return Solution(exact.w, max(value(H, z, exact.w) - exact.lower, 0.0))
    pairs = [pair] if conic.power else [pair, *polish(conic, P, q, pair, dual, slack, reach)]
    pairs = [p for p in pairs if np.isfinite(p.w).all() and math.isfinite(p.lower)]
    lower = scale * max(p.lower for p in pairs)
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
