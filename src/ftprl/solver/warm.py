"""A quadratic program from the constraints active at the previous play."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.solver.certified import TIGHT, Pair, lower_bound, value
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_GOOD = 1e-11  # a warm start whose relative gap is below this needs no solver
_STEPS = 25


def warm_start(conic: Conic, H: PSD, z: Vector, near: Vector, reach: Vector) -> Pair | None:
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
    for _ in range(_STEPS):
        key = active.tobytes()
        if key in seen or e + int(active.sum()) > n:
            return None
        seen.add(key)
        rows = np.vstack((A, C[active])) if e else C[active]
        right = np.concatenate((b, d[active])) if e else d[active]
        tilted = rows * inverse if inverse.ndim == 1 else rows @ inverse
        free = -(inverse * pull) if inverse.ndim == 1 else -(inverse @ pull)
        try:
            y = np.asarray(np.linalg.solve(tilted @ rows.T, rows @ free - right)) if len(right) else right
        except np.linalg.LinAlgError:
            return None
        w = free - tilted.T @ y
        excess = (C @ w - d) / scale
        worst = int(np.argmax(excess)) if len(d) else 0
        back = np.flatnonzero(active)[y[e:] < 0]
        if len(back):
            active[back] = False
        elif len(d) and excess[worst] > TIGHT and not active[worst]:
            active[worst] = True
        else:
            return _accept(conic, H, z, w, active, y, reach)
    return None


def _accept(
    conic: Conic, H: PSD, z: Vector, w: Vector, active: NDArray[np.bool_], y: Vector, reach: Vector
) -> Pair | None:
    """The active set's answer, if it is feasible and its proved gap is down to rounding."""
    e = len(conic.b)
    G, h = np.vstack((conic.A, conic.C)), np.concatenate((conic.b, conic.d))
    miss = h - G @ w
    scale = 1.0 + np.abs(h)
    if np.any(miss[e:] < -TIGHT * scale[e:]) or np.any(np.abs(miss[:e]) > TIGHT * scale[:e]):
        return None
    dual = np.zeros(len(h))
    dual[:e] = y[:e]
    dual[e:][active] = y[e:]
    lower = lower_bound(H, z, G, h, w, dual, reach)
    reached = value(H, z, w)
    return Pair(w, lower) if reached - lower <= _GOOD * (1.0 + abs(reached)) else None
