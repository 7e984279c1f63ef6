"""The best bound in hindsight, OPT = inf over Q in a family of N(Q) + sum_t g_tᵀ Q⁻¹ g_t, and its Q*.

Closed forms where there are any; convex programs on request; an upper bound that says so elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from ftprl import check, programs, psd
from ftprl.errors import InvalidInput, Unsupported
from ftprl.sets import Box, Ellipsoid, FeasibleSet, Polytope, Preimage, Product, Simplex
from ftprl.sets.balls import NormBall, dual_exponent

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Family = Literal["const", "diagonal", "full", "block"]

_ROOT2 = math.sqrt(2.0)
_MAX_PROGRAM_DIM = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class PostHoc:
    """OPT of a family: its value, an optimal Q where it is known, and whether the value is OPT or above it."""

    value: float
    Q: PSD | None
    exact: bool


def best_bound(
    feasible: FeasibleSet,
    family: Family,
    G: Vector,
    GG: Vector | None = None,
    *,
    program: bool = False,
) -> PostHoc | None:
    """The post-hoc optimum over a family from `G` (and, for "full", `GG`); None where it cannot be had.

    >>> from ftprl.sets import Box
    >>> round(best_bound(Box(0, 1, dim=2), "diagonal", np.array([1.0, 4.0])).value, 6)
    4.242641
    """
    G = check.vector("G", G, feasible.dim)
    if np.any(G < 0):
        raise InvalidInput(f"G needs sums of squares, all at least 0, got {G.min():g}; pass sum(g**2) a coordinate.")
    if GG is not None:
        GG = psd.dense(psd.as_psd(GG, feasible.dim, "GG"), feasible.dim)
    if not G.any():
        return PostHoc(0.0, np.zeros(()), True)
    if family == "const":
        return _const(feasible, float(G.sum()))
    if family == "block":
        return _block(feasible, G)
    if family == "diagonal":
        return _diagonal(feasible, G, program)
    if family == "full":
        return _full(feasible, G, GG, program)
    raise InvalidInput(f"family needs const, diagonal, full or block, got {family!r}; pass one of these.")


def _const(feasible: FeasibleSet, total: float) -> PostHoc:
    D = feasible.diameter()
    if D == 0.0:
        return PostHoc(0.0, None, True)
    return PostHoc(D * math.sqrt(2 * total), np.array(math.sqrt(2 * total) / D), feasible.is_exact("diameter"))


def _block(feasible: FeasibleSet, G: Vector) -> PostHoc | None:
    if not isinstance(feasible, Product):
        return None
    parts = [_const(s, float(G[b].sum())) for s, b in zip(feasible.sets, feasible.blocks, strict=True)]
    Q = np.concatenate(
        [np.full(s.dim, 0.0 if p.Q is None else float(p.Q)) for s, p in zip(feasible.sets, parts, strict=True)]
    )
    return PostHoc(sum(p.value for p in parts), Q, all(p.exact for p in parts))


def _diagonal(feasible: FeasibleSet, G: Vector, program: bool) -> PostHoc:
    closed = diagonal_closed_form(feasible, G)
    if closed is not None:
        return closed
    if program:
        found = _diagonal_program(feasible, G)
        if found is not None:
            return found
    D = feasible.widths()
    with np.errstate(divide="ignore", invalid="ignore"):
        Q = np.where(D > 0, np.sqrt(2 * G) / D, 0.0)
    separate, common = PostHoc(_ROOT2 * _products(D, G), Q, False), _const(feasible, float(G.sum()))
    return separate if separate.value <= common.value else PostHoc(common.value, common.Q, False)


def _products(D: Vector, G: Vector) -> float:
    """sum D_i sqrt(G_i) over the coordinates that saw a gradient; an infinite width without one costs nothing."""
    live = G > 0
    return float(D[live] @ np.sqrt(G[live]))


def diagonal_closed_form(feasible: FeasibleSet, G: Vector) -> PostHoc | None:
    """The diagonal family's optimum where theory has a formula: boxes, balls, simplices, and what is made of them."""
    if isinstance(feasible, Box):
        D = feasible.widths()
        Q = np.divide(np.sqrt(2 * G), D, out=np.zeros_like(G), where=(D > 0) & np.isfinite(D))
        return PostHoc(_ROOT2 * _products(D, G), Q, True)
    if isinstance(feasible, NormBall):
        return _ball(feasible.p, feasible.radius, G)
    if isinstance(feasible, Simplex):
        return _simplex(feasible, G)
    if isinstance(feasible, Ellipsoid) and feasible.axis_aligned:
        a2 = np.diagonal(feasible.A) ** 2
        total = float((G / a2).sum())
        return PostHoc(2 * _ROOT2 * math.sqrt(total), math.sqrt(total / 2) * a2, True)
    if isinstance(feasible, Preimage) and feasible.diagonal:
        a2 = np.diagonal(feasible.A) ** 2
        inner = diagonal_closed_form(feasible.inner, G / a2)
        return None if inner is None else PostHoc(inner.value, None if inner.Q is None else inner.Q * a2, inner.exact)
    if isinstance(feasible, Product):
        found = [diagonal_closed_form(s, G[b]) for s, b in zip(feasible.sets, feasible.blocks, strict=True)]
        parts = [p for p in found if p is not None]
        if len(parts) < len(found):
            return None
        Q = np.concatenate(
            [np.broadcast_to(0.0 if p.Q is None else p.Q, (s.dim,)) for s, p in zip(feasible.sets, parts, strict=True)]
        )
        return PostHoc(sum(p.value for p in parts), Q, all(p.exact for p in parts))
    return None


def _ball(p: float, r: float, G: Vector) -> PostHoc:
    total = float(G.sum())
    if p <= 2:
        return PostHoc(2 * _ROOT2 * r * math.sqrt(total), np.full_like(G, math.sqrt(total / 2) / r), True)
    q = p / (p - 2) if math.isfinite(p) else 1.0
    S = float((G ** (q / (q + 1))).sum())
    Q = G ** (1 / (q + 1)) * (S ** ((q - 1) / (2 * q)) / (_ROOT2 * r)) if S else np.zeros_like(G)
    return PostHoc(2 * _ROOT2 * r * float(np.linalg.norm(np.sqrt(G), dual_exponent(p))), Q, True)


def _simplex(feasible: Simplex, G: Vector) -> PostHoc:
    s = feasible.scale
    if feasible.dim == 1:
        return PostHoc(0.0, np.zeros(1), True)
    total, top = float(G.sum()), float(G.max())
    rest = max(total - top, 0.0)
    value = s * 2 * math.sqrt(total) if 2 * top <= total else s * _ROOT2 * (math.sqrt(top) + math.sqrt(rest))
    return PostHoc(value, np.sqrt(np.maximum(2 * G, min(total, 2 * rest))) / s, True)


def _diagonal_program(feasible: FeasibleSet, G: Vector) -> PostHoc | None:
    live = G > 0
    if isinstance(feasible, Ellipsoid):
        shape = np.linalg.inv(feasible.A.T @ feasible.A)[np.ix_(live, live)]
        value, lam = programs.diagonal_on_ellipsoid(np.linalg.inv(shape), G[live])
    else:
        V = extreme_differences(feasible)
        if V is None:
            return None
        value, lam = programs.diagonal_on_vertices(V[:, live], G[live])
    Q = np.zeros_like(G)
    Q[live] = lam
    return PostHoc(value, Q, True)


def _full(feasible: FeasibleSet, G: Vector, GG: Vector | None, program: bool) -> PostHoc | None:
    if feasible.dim == 1:
        return _diagonal(feasible, G, program)
    if isinstance(feasible, NormBall) and feasible.p == 2.0:
        return _ball(2.0, feasible.radius, G)
    if isinstance(feasible, Ellipsoid):
        if feasible.axis_aligned:
            return diagonal_closed_form(feasible, G)
        if GG is None:
            return None
        total = float(np.trace(feasible.hat(GG)))
        return PostHoc(2 * _ROOT2 * math.sqrt(total), math.sqrt(total / 2) * (feasible.A.T @ feasible.A), True)
    if GG is None:
        return None
    if isinstance(feasible, Preimage):
        inner = _full(feasible.inner, np.diagonal(feasible.hat_full(GG)), feasible.hat_full(GG), program)
        if inner is None or inner.Q is None:
            return inner
        middle = inner.Q if inner.Q.ndim == 2 else np.diag(np.broadcast_to(inner.Q, (feasible.dim,)))
        return PostHoc(inner.value, feasible.A.T @ middle @ feasible.A, inner.exact)
    if isinstance(feasible, Box) and not np.any(GG - np.diag(np.diagonal(GG))):
        return diagonal_closed_form(feasible, G)
    if program and feasible.dim <= _MAX_PROGRAM_DIM:
        V = extreme_differences(feasible)
        if V is not None:
            # Within the span of Fsym: outside it Q costs nothing, and the program would send it to infinity.
            _, s, W = np.linalg.svd(V, full_matrices=False)
            B = W[s > 1e-9 * s.max(initial=0.0)].T
            if not B.size or not (B.T @ GG @ B).any():
                return PostHoc(0.0, None, True)
            value, Q = programs.full_on_vertices(V @ B, B.T @ GG @ B)
            return PostHoc(value, B @ Q @ B.T, True)
    return None


def extreme_differences(feasible: FeasibleSet) -> Vector | None:
    """Points among which, up to sign, all vertices of Fsym are; None where F is not a small polytope."""
    if isinstance(feasible, NormBall) and feasible.p == 1.0:
        return 2 * feasible.radius * np.eye(feasible.dim)
    if isinstance(feasible, Simplex):
        i, j = np.triu_indices(feasible.dim, 1)
        eye = feasible.scale * np.eye(feasible.dim)
        return eye[i] - eye[j]
    if isinstance(feasible, Preimage):
        inner = extreme_differences(feasible.inner)
        return None if inner is None else np.asarray(np.linalg.solve(feasible.A, inner.T).T, dtype=np.float64)
    if feasible.dim > _MAX_PROGRAM_DIM:
        return None
    try:
        conic = feasible.conic()
        if not conic.polyhedral:
            return None
        return Polytope(conic.C, conic.d, conic.A, conic.b).difference_vertices()
    except Unsupported:
        return None


def quadratically_convex(feasible: FeasibleSet) -> bool:
    """Whether a full matrix can beat a diagonal one by at most sqrt(pi/2) in the bound."""
    if isinstance(feasible, Product):
        return all(quadratically_convex(s) for s in feasible.sets)
    if isinstance(feasible, NormBall):
        return feasible.p >= 2
    return isinstance(feasible, Box) or (isinstance(feasible, Ellipsoid) and feasible.axis_aligned)


def penalty_growth(feasible: FeasibleSet) -> float | None:
    """rho: a bound on sum N(increments of Q*) / N(Q*) where the diagonal optimum only grows; None where it may fall."""
    if isinstance(feasible, Box):
        return 1.0
    if isinstance(feasible, NormBall):
        return 1.0 if feasible.p <= 2 else float(feasible.dim) ** (2 / feasible.p)
    if isinstance(feasible, Simplex):
        return 1.5
    if isinstance(feasible, Preimage) and feasible.diagonal:
        return penalty_growth(feasible.inner)
    if isinstance(feasible, Ellipsoid) and feasible.axis_aligned:
        return 1.0
    return None
