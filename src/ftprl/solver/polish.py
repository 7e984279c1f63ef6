"""Newton steps that reduce the error of an interior-point answer to rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.solver.certified import TIGHT, Pair
from ftprl.solver.conic import Conic

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]

_NEWTON_STEPS = 4
_MENDS = 4


def polish(conic: Conic, P: PSD, q: Vector, pair: Pair, slack: Vector) -> list[Pair]:
    """Solve the optimality conditions of the active rows and cones by Newton's method, correcting the set of active
    rows.
    """
    e, m, dual = len(conic.b), len(conic.d), pair.dual
    active = dual[e : e + m] > slack[e : e + m]
    cones, at = [], e + m
    for G, h in conic.soc:
        s0, margin = slack[at], slack[at] - np.linalg.norm(slack[at + 1 : at + len(h)])
        if s0 > 0 and dual[at] > margin:
            cones.append((at, G, h, dual[at] / s0))
        at += len(h)
    made, w, prices = [], pair.w, dual[: e + m]
    for _ in range(_MENDS):
        w, prices, polished = _newton(conic, P, q, w, prices, active, cones)
        made.append(polished)
        wrong = active & (prices[e:] < 0)
        broken = ~active & (conic.C @ w - conic.d > TIGHT * conic.row_scale(w)[e:])
        if not (wrong.any() or broken.any()):
            break
        active = (active & ~wrong) | broken
    return made


def _newton(
    conic: Conic,
    P: PSD,
    q: Vector,
    w: Vector,
    prices: Vector,
    active: NDArray[np.bool_],
    cones: list[tuple[int, Vector, Vector, float]],
) -> tuple[Vector, Vector, Pair]:
    """Return the point and row prices that solve the optimality conditions, and both as a `Pair`.

    A cone h - Gw = (s_0, s_1) counts through ½(|s_1|² - s_0²) <= 0; its multiplier nu gives the dual nu (s_0, -s_1).
    """
    e, m = len(conic.b), len(conic.d)
    rows, right = np.vstack((conic.A, conic.C[active])), np.concatenate((conic.b, conic.d[active]))
    k = len(right)
    y = np.concatenate((prices[:e], prices[e:][active], [nu for *_, nu in cones]))
    for _ in range(_NEWTON_STEPS if cones else 1):
        slacks = [h - G @ w for _, G, h, _ in cones]
        bent = [G[0] * s[0] - G[1:].T @ s[1:] for (_, G, _, _), s in zip(cones, slacks, strict=True)]
        J = np.vstack([rows, *(v[None, :] for v in bent)])
        curved = (nu * (G[1:].T @ G[1:] - np.outer(G[0], G[0])) for nu, (_, G, _, _) in zip(y[k:], cones, strict=True))
        H = P + sum(curved, start=np.zeros_like(P))
        miss = np.concatenate((rows @ w - right, [0.5 * (s[1:] @ s[1:] - s[0] ** 2) for s in slacks]))
        K = np.block([[H, J.T], [J, np.zeros((len(J), len(J)))]])
        step = _solve(K, -np.concatenate((P @ w + q + J.T @ y, miss)))
        w, y = w + step[: conic.size], y + step[conic.size :]
    prices = np.zeros(e + m)
    prices[:e], prices[e:][active] = y[:e], y[e:k]
    full = np.zeros(len(conic.stacked[1]))
    full[:e], full[e : e + m] = prices[:e], np.maximum(prices[e:], 0.0)
    for nu, (at, block, right, _) in zip(np.maximum(y[k:], 0.0), cones, strict=True):
        s = right - block @ w
        full[at], full[at + 1 : at + len(right)] = nu * np.linalg.norm(s[1:]), -nu * s[1:]
    return w, prices, Pair(w, full)


def _solve(K: Vector, right: Vector) -> Vector:
    """Solve K x = right, by least squares if K is singular (flat directions, dependent rows)."""
    try:
        x = np.linalg.solve(K, right)
        if np.abs(K @ x - right).max() <= 1e-9 * (1.0 + np.abs(right).max()) and np.abs(x).max() < 1e6:
            return np.asarray(x)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(K, right, rcond=None)[0])
