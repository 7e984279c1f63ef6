"""Solve a quadratic program from a guess of its active rows, from the previous play or an interior point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.extras import extra_imports
from ftprl.solver.certified import TIGHT, Pair, Span, dual_gap, value
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Active = NDArray[np.bool_]

_GOOD = 1e-10  # an answer whose relative gap is below this needs no further work


def rows_at(conic: Conic, x: Vector) -> Active:
    """Return a mask of the rows that hold with equality at x."""
    return np.asarray(conic.C @ x >= conic.d - 1e-10 * conic.row_scale(x)[len(conic.b) :])


def _inverse(H: PSD, z: Vector, near: Vector) -> tuple[Vector, Vector] | None:
    """Return (H^{-1}, z), made definite by a tie to `near` in directions without weight; None for H = 0."""
    top = psd.largest(H)
    if top <= 0.0:
        return None
    if H.ndim < 2:
        if psd.positive(H):
            return 1.0 / (H if H.ndim else np.broadcast_to(H, z.shape)), z
        lam = np.broadcast_to(H, z.shape)
        return 1.0 / np.where(lam > 0, lam, top), np.where(lam > 0, z, z - top * near)
    w, V = psd.eigh(H)
    N = V[:, w == 0]
    tied = z - top * (N @ (N.T @ near)) if N.shape[1] else z
    return np.asarray((V / np.where(w > 0, w, top)) @ V.T), tied


def active_set(conic: Conic, H: PSD, z: Vector, near: Vector, span: Span, guess: Active, steps: int) -> Pair | None:
    """Solve with the guessed rows as equalities and correct the guess; None if that does not converge in `steps`."""
    made = _inverse(H, z, near)
    if made is None:
        return None
    inverse, tied = made
    free = -(inverse * tied) if inverse.ndim == 1 else -(inverse @ tied)
    G, h = conic.rows
    e = len(conic.b)
    active = np.concatenate((np.ones(e, dtype=np.bool_), guess)) if e else guess
    seen: set[bytes] = set()
    for _ in range(steps):
        key, on = active.tobytes(), active.nonzero()[0]
        if key in seen or on.size > conic.dim:
            return None
        seen.add(key)
        rows = G.take(on, axis=0)
        tilted = rows * inverse if inverse.ndim == 1 else rows @ inverse
        try:
            y = solve_prices(tilted @ rows.T, rows.dot(free) - h.take(on))
        except np.linalg.LinAlgError:
            return None
        w = free - y.dot(tilted)
        slack = h - G.dot(w)
        slack /= conic.row_scale(w)
        held = slack[on]
        slack[on] = 0.0
        changed = _mend(active, on[e:], y[e:], slack)
        if changed is None:
            met = held.min(initial=0.0) >= -TIGHT and held[:e].max(initial=0.0) <= TIGHT
            return _accept(conic, H, z, w, on, y, span) if met else None
        active = changed
    return None


def solve_prices(S: Vector, right: Vector) -> Vector:
    """Solve S y = right with one step of refinement; rows at sharp corners are nearly dependent."""
    if not right.size:
        return right
    with extra_imports:
        from scipy.linalg.lapack import dpotrf, dpotrs

    factor, failed = dpotrf(S, clean=0)
    if failed:  # dependent rows, to rounding
        inverse = np.linalg.inv(S)
        y = inverse @ right
        return np.asarray(y + inverse @ (right - S @ y))
    y = dpotrs(factor, right)[0]
    y += dpotrs(factor, right - S.dot(y))[0]
    return np.asarray(y)


def _mend(active: Active, on: NDArray[np.intp], prices: Vector, slack: Vector) -> Active | None:
    """Return the next guess: rows with a negative price leave, else the most violated row enters; None if all hold."""
    if prices.size and prices[prices.argmin()] < 0:
        out = active.copy()
        out[on[prices < 0]] = False
        return out
    if not slack.size or slack[worst := slack.argmin()] >= -TIGHT:
        return None
    out = active.copy()
    out[worst] = True
    return out


def _accept(
    conic: Conic, H: PSD, z: Vector, w: Vector, on: NDArray[np.intp], prices: Vector, span: Span
) -> Pair | None:
    """Return the answer as a Pair if its proved gap is only rounding, None otherwise."""
    G, h = conic.rows
    dual = np.zeros(h.size)
    dual[on] = prices
    gap = dual_gap(H, z, G, h, w, dual, span)
    return Pair(w, dual) if gap <= _GOOD * (1.0 + abs(value(H, z, w))) else None
