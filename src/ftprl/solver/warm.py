"""A quadratic program from a guess of its active rows: those of the previous play, or of an interior point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.solver.certified import TIGHT, Pair, Span, lower_bound, value
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Active = NDArray[np.bool_]

_GOOD = 1e-10  # an answer whose relative gap is below this needs no further work


def rows_at(conic: Conic, x: Vector) -> Active:
    """The rows that hold with equality at x."""
    return np.asarray(conic.C @ x >= conic.d - 1e-10 * conic.row_scale(x)[len(conic.b) :])


def _inverse(H: PSD, z: Vector, near: Vector) -> tuple[Vector, Vector] | None:
    """(H^{-1}, z), made definite by tying the directions that H does not see to `near`; None for H = 0."""
    top = psd.largest(H)
    if top <= 0.0:
        return None
    if H.ndim < 2:
        lam = np.broadcast_to(H, z.shape)
        return 1.0 / np.where(lam > 0, lam, top), np.where(lam > 0, z, z - top * near)
    w, V = psd.eigh(H)
    N = V[:, w == 0]
    tied = z - top * (N @ (N.T @ near)) if N.shape[1] else z
    return np.asarray((V / np.where(w > 0, w, top)) @ V.T), tied


def active_set(conic: Conic, H: PSD, z: Vector, near: Vector, span: Span, guess: Active, steps: int) -> Pair | None:
    """Solve with the guessed rows as equalities and mend the guess; None when that does not settle in `steps`."""
    made = _inverse(H, z, near)
    if made is None:
        return None
    inverse, tied = made
    free = -(inverse * tied) if inverse.ndim == 1 else -(inverse @ tied)
    e = len(conic.b)
    active = guess.copy()
    seen: set[bytes] = set()
    for _ in range(steps):
        key = active.tobytes()
        if key in seen or e + int(active.sum()) > conic.dim:
            return None
        seen.add(key)
        rows, right = np.vstack((conic.A, conic.C[active])), np.concatenate((conic.b, conic.d[active]))
        tilted = rows * inverse if inverse.ndim == 1 else rows @ inverse
        try:
            y = _prices(tilted @ rows.T, rows @ free - right)
        except np.linalg.LinAlgError:
            return None
        w = free - tilted.T @ y
        scale = conic.row_scale(w)[e:]
        prices = np.zeros(len(active))
        prices[active] = y[e:]
        excess = np.where(active, 0.0, (conic.C @ w - conic.d) / scale)
        changed = _mend(active, prices, excess)
        if changed is None:
            return _accept(conic, H, z, w, np.concatenate((y[:e], prices)), span)
        active = changed
    return None


def _prices(S: Vector, right: Vector) -> Vector:
    """S y = right, with one step of refinement: rows at sharp corners are nearly dependent."""
    if not len(right):
        return right
    inverse = np.linalg.inv(S)
    y = inverse @ right
    return np.asarray(y + inverse @ (right - S @ y))


def _mend(active: Active, prices: Vector, excess: Vector) -> Active | None:
    """The next guess: rows with a negative price leave, else the most broken row enters; None when all is well."""
    wrong, worst = prices < 0, int(excess.argmax()) if len(excess) else 0
    if wrong.any():
        return active & ~wrong
    if not len(excess) or excess[worst] <= TIGHT:
        return None
    out = active.copy()
    out[worst] = True
    return out


def _accept(conic: Conic, H: PSD, z: Vector, w: Vector, dual: Vector, span: Span) -> Pair | None:
    """The answer, if it is feasible and its proved gap is down to rounding."""
    e = len(conic.b)
    G, h = conic.rows
    miss, scale = h - G @ w, conic.row_scale(w)
    if np.any(miss[e:] < -TIGHT * scale[e:]) or np.any(np.abs(miss[:e]) > TIGHT * scale[:e]):
        return None
    lower = lower_bound(H, z, G, h, w, dual, span)
    reached = value(H, z, w)
    return Pair(w, lower) if reached - lower <= _GOOD * (1.0 + abs(reached)) else None
