"""The one place that calls a solver: Clarabel for quadratic and conic programs, HiGHS for linear ones.

A set describes itself as a `Conic`; `minimise_conic` then minimises ½ xᵀHx + z·x + l1·|x|₁ over it. Polyhedra are tried
first from the constraints that hold at the previous play (a warm start that depends on nothing but its arguments), and
a solver's answer is polished on the constraints it found active. Every answer carries a proved upper bound on its gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.errors import InvalidInput

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Rows = tuple[Vector, Vector]

_TIGHT = 1e-13  # relative feasibility that a play must have before it leaves this module
_GOOD = 1e-11  # a warm start whose relative gap is below this needs no solver
_WARM_STEPS = 25


@final
@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A point of F and an upper bound on how far its value is from the minimum."""

    x: Vector
    gap: float


class Describable(Protocol):
    """What this module needs of a set."""

    @property
    def dim(self) -> int: ...
    def conic(self) -> Conic: ...
    def widths(self) -> Vector: ...
    def bounds(self) -> tuple[Vector, Vector]: ...
    def start(self) -> Vector: ...
    def contains(self, x: Vector, atol: float = 1e-9) -> bool: ...


def _rows(size: int) -> Rows:
    return np.zeros((0, size)), np.zeros(0)


@final
@dataclass(frozen=True, eq=False)
class Conic:
    """{x : (x, y) for some y with C(x,y) <= d, A(x,y) = b, h - G(x,y) in a cone}; `reach` bounds the range of y."""

    dim: int
    C: Vector
    d: Vector
    A: Vector
    b: Vector
    soc: tuple[Rows, ...] = ()
    power: tuple[tuple[Vector, Vector, float], ...] = ()
    reach: Vector = field(default_factory=lambda: np.zeros(0))

    @property
    def size(self) -> int:
        """The number of variables, auxiliary ones included."""
        return self.dim + len(self.reach)

    @property
    def polyhedral(self) -> bool:
        """Whether there are only linear rows, on x itself."""
        return not self.soc and not self.power and not len(self.reach)

    @staticmethod
    def polyhedron(dim: int, inequalities: Rows | None = None, equalities: Rows | None = None) -> Conic:
        """{x : Cx <= d, Ax = b}."""
        C, d = inequalities or _rows(dim)
        A, b = equalities or _rows(dim)
        return Conic(dim, C, d, A, b)

    def substitute(self, B: Vector, shift: Vector) -> Conic:
        """{x : Bx - shift in this set}."""

        def turn(G: Vector, h: Vector) -> Rows:
            return np.hstack((G[:, : self.dim] @ B, G[:, self.dim :])), h + G[:, : self.dim] @ shift

        C, d = turn(self.C, self.d)
        A, b = turn(self.A, self.b)
        power = tuple((*turn(G, h), alpha) for G, h, alpha in self.power)
        return Conic(B.shape[1], C, d, A, b, tuple(turn(*r) for r in self.soc), power, self.reach)

    @staticmethod
    def join(parts: Sequence[Conic], offsets: Sequence[int], dim: int) -> Conic:
        """All parts at once, part k on the coordinates from offsets[k]: a product, or an intersection at offset 0."""
        size = dim + sum(len(p.reach) for p in parts)
        at = dim
        C: list[Vector] = []
        A: list[Vector] = []
        soc: list[Rows] = []
        power: list[tuple[Vector, Vector, float]] = []
        for part, offset in zip(parts, offsets, strict=True):
            columns = np.r_[offset : offset + part.dim, at : at + len(part.reach)]
            at += len(part.reach)

            def widen(G: Vector, columns: NDArray[np.int_] = columns) -> Vector:
                out = np.zeros((len(G), size))
                out[:, columns] = G
                return out

            C.append(widen(part.C))
            A.append(widen(part.A))
            soc.extend((widen(G), h) for G, h in part.soc)
            power.extend((widen(G), h, alpha) for G, h, alpha in part.power)
        return Conic(
            dim,
            np.vstack(C),
            np.concatenate([p.d for p in parts]),
            np.vstack(A),
            np.concatenate([p.b for p in parts]),
            tuple(soc),
            tuple(power),
            np.concatenate([p.reach for p in parts]),
        )

    def with_l1(self, magnitude: Vector) -> Conic:
        """This set with n further variables t >= |x| at the end; `magnitude` bounds |x|."""
        n, eye = self.dim, np.eye(self.dim)

        def widen(G: Vector) -> Vector:
            return np.hstack((G, np.zeros((len(G), n))))

        middle = np.zeros((n, len(self.reach)))
        absolute = np.vstack((np.hstack((eye, middle, -eye)), np.hstack((-eye, middle, -eye))))
        return replace(
            self,
            C=np.vstack((widen(self.C), absolute)),
            d=np.concatenate((self.d, np.zeros(2 * n))),
            A=widen(self.A),
            soc=tuple((widen(G), h) for G, h in self.soc),
            power=tuple((widen(G), h, alpha) for G, h, alpha in self.power),
            reach=np.concatenate((self.reach, magnitude)),
        )

    @cached_property
    def stacked(self) -> tuple[Any, Vector, list[Any]]:
        """(matrix, right side, cones) as Clarabel reads them: h - Gx in the cone."""
        import clarabel
        from scipy.sparse import csc_matrix

        G = np.vstack([self.A, self.C, *(g for g, _ in self.soc), *(g for g, _, _ in self.power)])
        h = np.concatenate([self.b, self.d, *(h for _, h in self.soc), *(h for _, h, _ in self.power)])
        cones: list[Any] = []
        if len(self.b):
            cones.append(clarabel.ZeroConeT(len(self.b)))
        if len(self.d):
            cones.append(clarabel.NonnegativeConeT(len(self.d)))
        cones.extend(clarabel.SecondOrderConeT(len(h)) for _, h in self.soc)
        cones.extend(clarabel.PowerConeT(alpha) for _, _, alpha in self.power)
        return csc_matrix(G), h, cones

    @cached_property
    def equality_inverse(self) -> Vector:
        """The pseudo-inverse of A, to bring a point back onto Ax = b."""
        return np.asarray(np.linalg.pinv(self.A))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """A primal point (feasible or not) with multipliers, and the lower bound on the minimum they prove."""

    w: Vector
    lower: float


def _value(H: PSD, z: Vector, x: Vector) -> float:
    return 0.5 * psd.quad(H, x) + float(z @ x)


def _lower(H: PSD, z: Vector, G: Vector, h: Vector, w: Vector, dual: Vector, reach: Vector) -> float:
    """f(w) - dual·(h - Gw) - |residual|·reach: below f everywhere on the set, by convexity and weak duality."""
    n = len(z)
    slope = np.zeros(n) if H.ndim == 0 and not H else psd.apply(H, w)
    residual = slope + z + G.T @ dual
    return _value(H, z, w) - float(dual @ (h - G @ w)) - float(np.abs(residual) @ reach)


def call_clarabel(P: PSD, q: Vector, G: Any, h: Vector, cones: list[Any], tol: float = 1e-12) -> Any:
    """Clarabel's raw answer for min ½ w'Pw + q·w with h - Gw in the cones."""
    import clarabel
    from scipy.sparse import csc_matrix

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    settings.max_iter = 200
    return clarabel.DefaultSolver(csc_matrix(np.triu(P)), q, G, h, cones, settings).solve()


def _conic_pair(conic: Conic, H: PSD, z: Vector, reach: Vector) -> tuple[_Pair, Vector, Vector]:
    G, h, cones = conic.stacked
    scale = max(float(np.abs(H).max(initial=0.0)), float(np.abs(z).max(initial=0.0))) or 1.0
    answer = call_clarabel(H / scale, z / scale, G, h, cones)
    status = str(answer.status)
    if "Infeasible" in status:
        kind = "no point" if "Primal" in status else "no minimum: the set is unbounded along the objective"
        raise InvalidInput(f"the program needs a bounded, non-empty set, got {kind}; add or drop constraints.")
    w, dual = np.array(answer.x), np.array(answer.z) * scale
    if not (np.isfinite(w).all() and np.isfinite(dual).all()):
        raise InvalidInput(f"the solver found no finite point ({status}); rescale the set or the gradients.")
    return _Pair(w, _lower(H, z, G, h, w, dual, reach)), dual, np.array(answer.s)


def _embed(H: PSD, z: Vector, size: int, l1: float) -> tuple[PSD, Vector]:
    n = len(z)
    P = np.zeros((size, size))
    P[:n, :n] = psd.dense(H, n)
    q = np.zeros(size)
    q[:n] = z
    if l1:
        q[size - n :] = l1
    return P, q


def _polish(conic: Conic, P: PSD, q: Vector, pair: _Pair, dual: Vector, slack: Vector, reach: Vector) -> _Pair:
    """Solve the optimality conditions exactly on the rows the solver found active."""
    e, m = len(conic.b), len(conic.d)
    active = dual[e : e + m] > slack[e : e + m]
    rows = np.vstack((conic.A, conic.C[active]))
    right = np.concatenate((conic.b, conic.d[active]))
    k = len(right)
    K = np.block([[P, rows.T], [rows, np.zeros((k, k))]])
    known = np.concatenate((pair.w, dual[:e], dual[e : e + m][active]))
    known = known + np.linalg.lstsq(K, np.concatenate((-q, right)) - K @ known, rcond=None)[0]
    w, y = known[: conic.size], known[conic.size :]
    full = np.zeros(e + m)
    full[:e] = y[:e]
    full[e:][active] = np.maximum(y[e:], 0.0)
    return _Pair(w, _lower(P, q, np.vstack((conic.A, conic.C)), np.concatenate((conic.b, conic.d)), w, full, reach))


def minimise_conic(feasible: Describable, H: PSD, z: Vector, near: Vector, l1: float = 0.0) -> Solution:
    """Minimise ½ xᵀHx + z·x + l1·|x|₁ over F; directions without weight stay at `near` where they can."""
    n = feasible.dim
    conic, D = feasible.conic(), feasible.widths()
    reach = np.concatenate((np.where(np.isfinite(D), D, 2.0 * (1.0 + np.abs(near))), conic.reach))
    if conic.polyhedral and not l1:
        warm = _warm_start(conic, H, z, near, reach)
        if warm is not None:
            return Solution(warm.w, max(_value(H, z, warm.w) - warm.lower, 0.0))
    if l1:
        low, high = feasible.bounds()
        magnitude = np.maximum(np.abs(low), np.abs(high))
        magnitude = np.where(np.isfinite(magnitude), magnitude, 2.0 * (1.0 + np.abs(near)))
        conic, reach = conic.with_l1(magnitude), np.concatenate((reach, magnitude))
    P, q = _embed(H, z, conic.size, l1)
    pair, dual, slack = _conic_pair(conic, P, q, reach)

    def total(x: Vector) -> float:
        return _value(H, z, x) + l1 * float(np.abs(x).sum())

    pairs = [pair]
    if not conic.soc and not conic.power:
        pairs.append(_polish(conic, P, q, pair, dual, slack, reach))
    lower = max(p.lower for p in pairs)
    points = [_pull_back(feasible, conic, p.w[:n]) for p in pairs]
    x = min(points, key=total)
    if not l1:
        x = _keep_near(feasible, H, z, x, near)
    return Solution(x, max(total(x) - lower, 0.0))


def _pull_back(feasible: Describable, conic: Conic, x: Vector) -> Vector:
    """Move a point that misses F by a hair towards the inside until it is in F."""
    if len(conic.b) and conic.size == conic.dim:
        x = x - conic.equality_inverse @ (conic.A @ x - conic.b)
    if feasible.contains(x, _TIGHT):
        return x
    inside = feasible.start()
    share = furthest(lambda s: feasible.contains(inside + s * (x - inside), _TIGHT))
    return inside + share * (x - inside) if share > 0.999 else x


def _keep_near(feasible: Describable, H: PSD, z: Vector, x: Vector, near: Vector) -> Vector:
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
    share = furthest(lambda s: feasible.contains(x + s * move, _TIGHT))
    return x + share * move


def furthest(fits: Callable[[float], bool]) -> float:
    """The largest share in [0, 1] that fits, given that 0 does and that the set is convex."""
    if fits(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        mid = (low + high) / 2
        low, high = (mid, high) if fits(mid) else (low, mid)
    return low


def _warm_start(conic: Conic, H: PSD, z: Vector, near: Vector, reach: Vector) -> _Pair | None:
    """An active-set search from the rows that hold with equality at `near`; None when it does not settle."""
    n = conic.dim
    if H.ndim == 2:
        w, V = psd.eigh(H)
        N = V[:, w == 0]
        top = float(w[-1])
        if top <= 0.0:
            return None
        inverse = (V / np.where(w > 0, w, top)) @ V.T
        pull = z - top * (N @ (N.T @ near)) if N.shape[1] else z
    else:
        lam = np.broadcast_to(H, (n,))
        top = float(lam.max())
        if top <= 0.0:
            return None
        inverse = 1.0 / np.where(lam > 0, lam, top)
        pull = np.where(lam > 0, z, z - top * near)
    C, d, A, b = conic.C, conic.d, conic.A, conic.b
    e = len(b)
    scale = 1.0 + np.abs(d)
    active = C @ near >= d - 1e-10 * scale
    seen: set[bytes] = set()
    for _ in range(_WARM_STEPS):
        key = active.tobytes()
        if key in seen or e + int(active.sum()) > n:
            return None
        seen.add(key)
        rows = np.vstack((A, C[active])) if e else C[active]
        right = np.concatenate((b, d[active])) if e else d[active]
        tilted = rows * inverse if inverse.ndim == 1 else rows @ inverse
        free = -(inverse * pull) if inverse.ndim == 1 else -(inverse @ pull)
        try:
            y = np.linalg.solve(tilted @ rows.T, rows @ free - right) if len(right) else right
        except np.linalg.LinAlgError:
            return None
        w = free - tilted.T @ y
        excess = (C @ w - d) / scale
        worst = int(np.argmax(excess)) if len(d) else 0
        back = np.flatnonzero(active)[y[e:] < 0]
        if len(back):
            active[back] = False
        elif len(d) and excess[worst] > _TIGHT and not active[worst]:
            active[worst] = True
        else:
            return _accept(conic, H, z, w, active, y, reach)
    return None


def _accept(
    conic: Conic, H: PSD, z: Vector, w: Vector, active: NDArray[np.bool_], y: Vector, reach: Vector
) -> _Pair | None:
    """The active set's answer, if it is feasible and its proved gap is down to rounding."""
    e = len(conic.b)
    G, h = np.vstack((conic.A, conic.C)), np.concatenate((conic.b, conic.d))
    miss = h - G @ w
    scale = 1.0 + np.abs(h)
    if np.any(miss[e:] < -_TIGHT * scale[e:]) or np.any(np.abs(miss[:e]) > _TIGHT * scale[:e]):
        return None
    dual = np.zeros(len(h))
    dual[:e] = y[:e]
    dual[e:][active] = y[e:]
    lower = _lower(H, z, G, h, w, dual, reach)
    value = _value(H, z, w)
    return _Pair(w, lower) if value - lower <= _GOOD * (1.0 + abs(value)) else None


def linear_program(
    g: Vector, C: Vector, d: Vector, A: Vector, b: Vector, bounds: Any = (None, None)
) -> tuple[str, Vector]:
    """min g·x with Cx <= d, Ax = b by HiGHS: ("optimal" | "infeasible" | "unbounded", x)."""
    from scipy.optimize import linprog

    answer = linprog(
        g,
        A_ub=C if len(d) else None,
        b_ub=d if len(d) else None,
        A_eq=A if len(b) else None,
        b_eq=b if len(b) else None,
        bounds=bounds,
        method="highs",
    )
    if answer.status == 0:
        return "optimal", np.asarray(answer.x, dtype=np.float64)
    if answer.status in (2, 3):
        return {2: "infeasible", 3: "unbounded"}[answer.status], np.full(len(g), math.nan)
    raise InvalidInput(f"the linear program could not be solved ({answer.message}); rescale the set.")


def interior_point(conic: Conic) -> Vector:
    """The x of a point that keeps the largest distance (at most 1) from every row and cone of the set."""
    from scipy.sparse import csc_matrix

    G, h, cones = conic.stacked
    G = G.toarray()
    room = np.zeros(len(h))
    e, m = len(conic.b), len(conic.d)
    room[e : e + m] = np.linalg.norm(conic.C, axis=1)
    at = e + m
    for _, right in conic.soc:
        room[at] = 1.0
        at += len(right)
    for _ in conic.power:
        room[at : at + 2] = 1.0
        at += 3
    import clarabel

    wide = np.vstack((np.hstack((G, room[:, None])), np.eye(conic.size + 1)[-1:]))
    q = np.zeros(conic.size + 1)
    q[-1] = -1.0
    P = np.zeros((conic.size + 1, conic.size + 1))
    answer = call_clarabel(P, q, csc_matrix(wide), np.append(h, 1.0), [*cones, clarabel.NonnegativeConeT(1)], 1e-9)
    w = np.array(answer.x)
    if "Solved" not in str(answer.status) or w[-1] < -1e-7:
        raise InvalidInput("the set needs at least one point that meets every constraint, got none; relax one.")
    return w[: conic.dim]
