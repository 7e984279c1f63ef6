"""Separable quadratics over L_p balls, 1 < p < inf: one Lagrange multiplier, found in logarithms.

In units of the radius the optimum has lam y + mu y^{p-1} = w for y = |x|. Logarithms keep the digits for p near 1,
where y^{p-1} hardly changes, and for large p, where it leaves the range of a float.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl.solver import furthest

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def p_norm(x: Vector, p: float) -> float:
    """Return |x|_p, also if the p-th powers of the entries leave the range of a float.

    >>> p_norm(np.array([3.0, 4.0]), 2.0)
    5.0
    """
    size = np.abs(x)
    top = float(size.max(initial=0.0))
    if top == 0.0 or math.isinf(p) or not math.isfinite(top):
        return top
    if p == 2.0:
        return top * float(np.linalg.norm(size / top))
    return float(top * float(((size / top) ** p).sum()) ** (1.0 / p))


def shrink(v: Vector, radius: float, p: float) -> Vector:
    """Return `v`, scaled towards 0 into the L_p ball.

    >>> shrink(np.array([3.0, 4.0]), 1.0, 2.0)
    array([0.6, 0.8])
    """
    size = p_norm(v, p)
    return v if size <= radius else v * (radius / size)


def lp_ball(
    p: float, lam: Vector, z: Vector, radius: float, lo: Vector | None, hi: Vector | None, near: Vector
) -> Vector:
    """Minimise ½ sum l_i x_i² + z·x subject to |x|_p <= radius, and to lo <= x <= hi if a box is passed."""
    sign, w, low, high = _by_sign(z, radius, lo, hi)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y = np.clip(np.where(w > 0, w / lam, 0.0) / radius, low, high)
    if np.isfinite(y).all() and p_norm(y, p) <= 1.0:
        x = sign * y * radius
        flat = (lam == 0) & (z == 0)
        if flat.any():
            want = near if lo is None or hi is None else np.minimum(np.maximum(near, lo), hi)
            x[flat] = _fill(p, radius, x, flat, want[flat])
        return x
    y = _on_the_sphere(p, lam, w, radius, low, high) if p_norm(low, p) < 1.0 else low
    x = sign * (y * radius)
    return shrink(x, radius, p) if lo is None else x


def _by_sign(z: Vector, radius: float, lo: Vector | None, hi: Vector | None) -> tuple[Vector, Vector, Vector, Vector]:
    """Return (sign, w, low, high) such that x = sign·radius·y with low <= y <= high and y >= 0.

    w = -sign·z is the pull of each coordinate away from 0.
    """
    sign = np.where(z > 0, -1.0, 1.0)
    if lo is None or hi is None:
        return sign, np.abs(z), np.zeros_like(z), np.full_like(z, np.inf)
    sign = np.where(lo > 0, 1.0, np.where(hi < 0, -1.0, sign))
    low = np.maximum(np.where(sign > 0, lo, -hi), 0.0)
    return sign, -sign * z, low / radius, np.where(sign > 0, hi, -lo) / radius


def _on_the_sphere(p: float, lam: Vector, w: Vector, radius: float, low: Vector, high: Vector) -> Vector:
    """Return the y with |y|_p = 1, by Newton's method in log mu between two ends that close in on the root."""
    live = w > 0
    out = low.copy()
    with np.errstate(divide="ignore"):
        log_lam, log_w = np.log(lam[live]) + math.log(radius), np.log(w[live])
        ends = np.log(low[live]), np.log(high[live])
    fixed = float((low[~live] ** p).sum())
    scale = float(log_w.max())
    log_w, log_lam = log_w - scale, log_lam - scale  # in units of the largest pull
    dual = p / (p - 1.0)
    top = float(np.log(np.exp(dual * log_w).sum())) / dual  # mu for lam = 0: never below the true one
    with np.errstate(divide="ignore"):  # mu >= w - lam at every coordinate, since y <= 1
        least = float((log_w + np.log1p(-np.exp(np.minimum(log_lam - log_w, 0.0)))).max())
    m, before, after, u = top, -math.inf, math.inf, np.full(log_w.shape, np.inf)
    slope = np.zeros(log_w.shape)
    for _ in range(200):
        u, slope = _roots(p, log_lam, log_w, m, u)
        inside = (u > ends[0]) & (u < ends[1])
        powers = np.exp(p * np.clip(u, *ends))
        total = float(powers.sum()) + fixed
        excess = math.log(total)
        if abs(excess) <= 8 * _EPS * p or after - before <= 2 * _EPS * abs(m):
            break
        if excess < 0 and slope.min() >= -_EPS:  # mu no longer matters: the rest is rounding of the logarithms
            break
        before, after = (m, after) if excess > 0 else (before, m)
        steep = p * float((powers * slope)[inside].sum()) / total
        new = m - excess / steep if steep < 0 else math.nan
        if not before < new < after:
            if math.isinf(after):
                new = m + 1.0
            elif math.isinf(before):
                new = max(least, -1e300) if math.isfinite(least) and least < m else m - 4.0 * (1.0 + abs(m - top))
            else:
                new = (before + after) / 2
        u = u + slope * (new - m)
        m = new
    inside = (u > ends[0]) & (u < ends[1])
    y = np.exp(np.clip(u, *ends))
    rest = 1.0 - fixed - float((y[~inside] ** p).sum())
    now = float((y[inside] ** p).sum())
    if now > 0 and rest > 0:
        y[inside] *= (rest / now) ** (1.0 / p)
    out[live] = np.clip(y, low[live], high[live])
    return out


def _roots(p: float, log_lam: Vector, log_w: Vector, m: float, guess: Vector) -> tuple[Vector, Vector]:
    """Return u = log y with lam e^u + e^m e^{(p-1)u} = w, and du/dm.

    Newton's method starts at the right of the root of a convex function, so it is monotone.
    """
    q = p - 1.0
    a0, b0 = log_lam - log_w, m - log_w
    reach = np.minimum(-a0, -b0 / q)  # here one term alone is w: at most log 2 too far
    u = np.minimum(guess, reach)
    a = b = both = np.ones(u.shape)
    for _ in range(60):
        a, b = np.exp(a0 + u), np.exp(b0 + q * u)
        both = a + b
        step = np.log(both) * both / (a + q * b)
        u = np.minimum(u - step, reach)
        if not (np.abs(step) > 1e-8 * (1.0 + np.abs(u))).any():  # the next step would be its square
            break
    return u, -b / (a + q * b)


def _fill(p: float, radius: float, x: Vector, flat: NDArray[np.bool_], want: Vector) -> Vector:
    """Move the coordinates without weight from their smallest values towards `want`, as far as the ball allows."""
    least = x[flat]
    rest = np.where(flat, 0.0, x)

    def fits(share: float) -> bool:
        """Return True if this share of the way to `want` stays in the ball."""
        trial = rest.copy()
        trial[flat] = least + share * (want - least)
        return p_norm(trial, p) <= radius

    return least + furthest(fits) * (want - least)
