"""Separable quadratics under one coupling constraint: the solution is a function of one multiplier mu.

Each routine minimises ½ sum l_i x_i² + z·x with lam >= 0. A coordinate with l_i = 0 and z_i = 0 does not matter to
the objective: it stays at `near` as far as the constraint leaves room.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.solver import furthest

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def box(lam: Vector, z: Vector, lo: Vector, hi: Vector, near: Vector) -> Vector:
    """No coupling: clip the free minimiser; an endpoint where the objective is linear; `near` where it is flat."""
    if psd.positive(lam):
        x = z / lam
        np.negative(x, out=x)
        np.maximum(x, lo, out=x)
        return np.minimum(x, hi, out=x)
    flat = np.where(z > 0, lo, np.where(z < 0, hi, near))
    free = np.divide(-z, lam, out=flat.copy(), where=lam > 0)
    return np.minimum(np.maximum(free, lo), hi)


def simplex(lam: Vector, z: Vector, total: float, near: Vector) -> Vector:
    """x >= 0 and sum x = total, every weight above 0: x_i = (nu - r_i)/l_i where r = z - min z is below nu.

    The nu of any set of coordinates is at least the true one, and falls when those with r_i >= nu leave it: a few
    steps from the coordinates that `near` uses, and every sum is one of positive numbers. `with_sum` is its twin.
    """
    r = z - z.item(z.argmin())
    on = near.nonzero()[0]
    nu, gap, slope = _level(lam, r, total, on) if on.size else (math.inf, r, r)
    below = (r < nu).nonzero()[0]
    while below.size and (below.size != on.size or (below != on).any()):
        on = below
        nu, gap, slope = _level(lam, r, total, on)
        below = on[gap < nu]
    if not math.isfinite(nu):  # numbers at the end of the range of a float
        return with_sum(lam, z, np.zeros(z.shape), np.full(z.shape, math.inf), total, near)
    x = np.zeros(z.shape)
    x[on] = (nu - gap) * slope
    return x


def _level(lam: Vector, r: Vector, total: float, on: NDArray[np.intp]) -> tuple[float, Vector, Vector]:
    """The nu at which the coordinates `on` alone sum to the total, their r and their slopes 1/l."""
    gap, slope = r[on], 1.0 / lam[on]
    return (total + float(slope.dot(gap))) / float(slope.sum()), gap, slope


def with_sum(lam: Vector, z: Vector, lo: Vector, hi: Vector, total: float, near: Vector) -> Vector:
    """lo <= x <= hi and sum x = total: the continuous quadratic knapsack, O(n log n)."""
    every = np.count_nonzero(lam) == lam.size
    weighted = lam > 0
    safe = lam if every else np.where(weighted, lam, 1.0)
    want, capped = -z, bool(np.isfinite(hi).any())

    def plays(mu: float) -> Vector:
        rest = want - mu
        free = rest / safe
        if not every:
            free = np.where(weighted, free, np.where(rest > 0, hi, lo))
        free = np.maximum(free, lo)
        return np.minimum(free, hi) if capped else free

    with np.errstate(invalid="ignore"):
        knots = want - lam * lo
        if capped or not every:
            top = want - lam * hi
            knots = np.concatenate((knots, top if every else np.where(weighted, top, want)))
    knots = np.sort(knots[np.isfinite(knots)])
    low, high = 0, len(knots)
    while low < high:  # the first knot at which the sum has fallen to the total
        mid = (low + high) // 2
        if plays(knots[mid]).sum() > total:
            low = mid + 1
        else:
            high = mid
    at = float(knots[low]) if low < len(knots) else math.inf
    before = float(knots[low - 1]) if low else -math.inf
    inside = _between(before, at)
    x = plays(inside)
    free = weighted & (x > lo) & (x < hi)
    if free.any():
        slopes = 1.0 / lam[free]
        mu = (float(x[~free].sum()) - float((z[free] * slopes).sum()) - total) / float(slopes.sum())
        mu = min(max(mu, before), at)
        x[free] = np.minimum(np.maximum((-z[free] - mu) * slopes, lo[free]), hi[free])
    else:
        mu = at if math.isfinite(at) else before
    loose = ~weighted & (-z == mu)
    if loose.any():
        rest = total - float(x[~loose].sum())
        x[loose] = _spread(near[loose], lo[loose], hi[loose], rest)
    return x


def _between(a: float, b: float) -> float:
    if math.isinf(a) and math.isinf(b):
        return 0.0
    if math.isinf(a):
        return b - max(1.0, abs(b))
    if math.isinf(b):
        return a + max(1.0, abs(a))
    return a + (b - a) / 2


def _spread(near: Vector, lo: Vector, hi: Vector, total: float) -> Vector:
    """The point nearest to `near` with the given bounds and sum, the sum brought into reach first."""
    total = min(max(total, float(lo.sum())), float(hi.sum()))
    return with_sum(np.ones_like(near), -near, lo, hi, total, near)


def knapsack(
    lam: Vector, z: Vector, a: Vector, lo: Vector, hi: Vector, b: float, near: Vector, *, equality: bool
) -> Vector:
    """lo <= x <= hi and a·x = b (or <= b), by y = a x where a is not 0."""
    x = box(lam, z, lo, hi, near)
    if not equality and float(a @ x) <= b:
        return x
    on = a != 0
    c = a[on]
    flip = c < 0
    low, high = np.where(flip, hi[on], lo[on]) * c, np.where(flip, lo[on], hi[on]) * c
    y = with_sum(lam[on] / (c * c), z[on] / c, low, high, b, near[on] * c)
    x[on] = y / c
    return np.minimum(np.maximum(x, lo), hi)


def l2_ball(lam: Vector, z: Vector, radius: float, near: Vector) -> Vector:
    """|x|₂ <= radius: x(mu) = -z/(lam + mu) for one mu >= 0."""
    if psd.positive(lam):
        return _in_ball(lam, z, radius)[0]
    flat = (lam == 0) & (z == 0)
    live, x = ~flat, np.zeros_like(z)
    x[live], room = _in_ball(lam[live], z[live], radius)
    x[flat] = shrink(near[flat], math.sqrt(room), 2.0)
    return x


def _in_ball(lam: Vector, z: Vector, radius: float) -> tuple[Vector, float]:
    """The minimiser where no coordinate is flat, and the square of the radius that it leaves.

    Newton on 1/|x(mu)| = 1/radius, monotone from the left.
    """
    if not z.size:
        return z, radius**2
    far = np.abs(z)
    far /= radius
    far -= lam
    mu = max(float(far[far.argmax()]), math.sqrt(z.dot(z)) / radius - float(lam[lam.argmax()]))
    if mu <= 0.0:  # then no weight is 0
        x = z / lam
        size = math.sqrt(x.dot(x))
        if size <= radius:
            return np.negative(x, out=x), max(radius**2 - size**2, 0.0)
        mu = 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(100):
            den = lam + mu
            x = z / den
            square = float(x.dot(x))
            size = math.sqrt(square)
            excess = size / radius - 1.0
            if excess <= 4 * _EPS:
                break
            np.divide(x, den, out=den)
            step = excess * square / float(x.dot(den))
            if mu + step == mu:
                break
            mu += step
    x *= -radius / size
    return x, 0.0


def shrink(v: Vector, radius: float, p: float) -> Vector:
    """`v`, pulled towards 0 into the L_p ball."""
    size = float(np.linalg.norm(v, p)) if v.size else 0.0
    return v if size <= radius else v * (radius / size)


def decreasing_root(f: Callable[[float], float], guess: float) -> float:
    """The mu > 0 where a decreasing f crosses 0, f(0+) > 0, to the last bit that brentq gives."""
    from scipy.optimize import brentq

    high = guess
    for _ in range(2100):
        if f(high) <= 0 or not math.isfinite(high):
            break
        high *= 4.0
    low = min(guess, high) / 4.0
    for _ in range(2100):
        if f(low) > 0 or low == 0.0:
            break
        high, low = low, low / 4.0
    if low == 0.0 or not math.isfinite(high):
        return high
    return float(brentq(f, low, high, xtol=1e-300, rtol=4 * _EPS, maxiter=500))


def lp_scalar(p: float, lam: Vector, w: Vector, mu: float) -> Vector:
    """The root y >= 0 of lam y + mu y^{p-1} = w for w >= 0, by Newton from the right on a convex function."""
    if mu == 0.0:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(w > 0, w / lam, 0.0))
    if p == 2.0:
        return w / (lam + mu)
    if p == 3.0:
        return np.asarray(2.0 * w / (lam + np.sqrt(lam * lam + 4.0 * mu * w) + (w == 0)))
    if p == 1.5:
        s = 2.0 * w / (mu + np.sqrt(mu * mu + 4.0 * lam * w))
        return s * s
    # In s = y^{p-1} when p < 2, so that the function is convex either way.
    e = p - 1.0 if p > 2.0 else 1.0 / (p - 1.0)
    full = np.full_like(w, mu)
    linear, power = (lam, full) if p > 2.0 else (full, lam)
    some = w > 0
    target = np.where(some, w, 1.0)
    with np.errstate(divide="ignore", over="ignore"):
        s = np.minimum(target / linear, (target / power) ** (1.0 / e))
    for _ in range(200):
        high = power * s ** (e - 1.0)
        new = np.maximum(s - (linear * s + high * s - target) / (linear + e * high), 0.0)
        done = np.all(np.abs(new - s) <= 2 * _EPS * s)
        s = new
        if done:
            break
    return np.where(some, s if p > 2.0 else s**e, 0.0)


def lp_ball(
    p: float, lam: Vector, z: Vector, radius: float, lo: Vector | None, hi: Vector | None, near: Vector
) -> Vector:
    """|x|_p <= radius, 1 < p < inf, and lo <= x <= hi when a box is given: x(mu) is a clipped scalar root."""
    sign, w = -np.sign(z), np.abs(z)
    flat = (lam == 0) & (z == 0)

    def clip(x: Vector) -> Vector:
        return x if lo is None or hi is None else np.minimum(np.maximum(x, lo), hi)

    def plays(mu: float) -> Vector:
        return clip(sign * lp_scalar(p, lam, w, mu))

    def size(x: Vector) -> float:
        return float(np.linalg.norm(x, p))

    x = plays(0.0)
    if np.isfinite(x).all() and size(x) <= radius:
        if flat.any():
            x[flat] = _fill(p, radius, x, flat, clip(near)[flat])
        return x
    with np.errstate(over="ignore"):
        guess = float(np.linalg.norm(w, p / (p - 1.0))) / radius ** (p - 1.0)
    mu = decreasing_root(lambda m: size(plays(m)) - radius, guess)
    x = plays(mu) if math.isfinite(mu) else clip(np.zeros_like(z))
    return shrink(x, radius, p) if lo is None else x


def _fill(p: float, radius: float, x: Vector, flat: NDArray[np.bool_], want: Vector) -> Vector:
    """Move the flat coordinates from their smallest values towards `want`, as far as the ball allows."""
    least = x[flat]
    rest = np.where(flat, 0.0, x)

    def fits(share: float) -> bool:
        trial = rest.copy()
        trial[flat] = least + share * (want - least)
        return float(np.linalg.norm(trial, p)) <= radius

    return least + furthest(fits) * (want - least)
