"""Separable quadratics under one coupling constraint: the solution is a function of one Lagrange multiplier mu.

Each routine minimises ½ sum l_i x_i² + z·x with lam >= 0. A coordinate with l_i = 0 and z_i = 0 does not change the
objective: it stays at `near` as far as the constraint allows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.sets.lp import shrink

Vector = NDArray[np.float64]
_EPS = float(np.finfo(np.float64).eps)


def box(lam: Vector, z: Vector, lo: Vector, hi: Vector, near: Vector) -> Vector:
    """Minimise within lo <= x <= hi alone: clip the unconstrained minimiser.

    A coordinate with a linear objective goes to an end of its range, one without any objective stays at `near`.

    >>> box(np.array([2.0, 0.0]), np.array([-1.0, 3.0]), np.zeros(2), np.ones(2), np.zeros(2))
    array([0.5, 0. ])
    """
    if psd.positive(lam):
        x = z / lam
        np.negative(x, out=x)
        np.maximum(x, lo, out=x)
        return np.minimum(x, hi, out=x)
    flat = np.where(z > 0, lo, np.where(z < 0, hi, near))
    free = np.divide(-z, lam, out=flat.copy(), where=lam > 0)
    return np.minimum(np.maximum(free, lo), hi)


def simplex(lam: Vector, z: Vector, total: float, near: Vector) -> Vector:
    """Minimise subject to x >= 0 and sum x = total, all weights positive: x_i = max((nu - z_i)/l_i, 0).

    The nu of any set of coordinates is at least the true one, and falls when the coordinates with z_i >= nu are left
    out: a few steps from the coordinates that `near` uses. All z are measured from the z of the coordinate k in use
    with the smallest weight: then |z_i - z_k| <= 2 l_i total for every i in use, and no digit is lost whatever the
    weights. `with_sum` solves the problem with bounds.

    >>> simplex(np.ones(3), np.array([0.0, 0.5, 9.0]), 1.0, np.full(3, 1 / 3))
    array([0.75, 0.25, 0.  ])
    """
    on = near.nonzero()[0]
    on = on if on.size else np.arange(z.size)
    nu, light, x = _level(lam, z, total, on)
    for _ in range(10):
        wanted = (z - light < nu).nonzero()[0]
        if wanted.size == on.size and x.item(x.argmin()) > 0:
            break
        while wanted.size:
            on = wanted
            nu, light, x = _level(lam, z, total, on)
            wanted = on[x > 0]
            if wanted.size == on.size:
                break
    if not np.isfinite(x).all():  # numbers at the end of the range of a float
        return _fix_in_turn(lam, z, np.zeros(z.shape), np.full(z.shape, math.inf), total)
    out = np.zeros(z.shape)
    x = np.maximum(x, 0.0)
    size = float(x.sum())
    out[on] = x * (total / size) if size > 0 else total / on.size
    return out


def _level(lam: Vector, z: Vector, total: float, on: NDArray[np.intp] | slice) -> tuple[float, float, Vector]:
    """Return (nu, z_k, x) for the coordinates `on` alone, which sum to the total.

    nu is measured from z_k, with k the coordinate of smallest weight.
    """
    weight, r = lam[on], z[on]
    k = weight.argmin()
    low, light = weight.item(k), r.item(k)
    r = r - light
    slope = low / weight  # at most 1: nothing overflows
    nu = (low * total + float(slope.dot(r))) / float(slope.sum())
    return nu, light, (nu - r) / weight


def with_sum(lam: Vector, z: Vector, lo: Vector, hi: Vector, total: float, near: Vector) -> Vector:
    """Minimise subject to lo <= x <= hi and sum x = total: the continuous quadratic knapsack.

    >>> with_sum(np.ones(2), np.zeros(2), np.zeros(2), np.array([0.25, 1.0]), 1.0, np.zeros(2))
    array([0.25, 0.75])
    """
    if psd.positive(lam) and math.isfinite(lo.item(lo.argmin())):
        if total <= float(lo.sum()):
            return lo.copy()
        open_above = hi.item(hi.argmin()) == math.inf
        if open_above and not lo.any():
            return simplex(lam, z, total, near)
        return _fix_in_turn(lam, z, lo, hi, total)
    return _by_knots(lam, z, lo, hi, total, near)


def _fix_in_turn(lam: Vector, z: Vector, lo: Vector, hi: Vector, total: float) -> Vector:
    """Solve the knapsack with positive weights: ignore the bounds, fix the side violated by more, and repeat.

    Each step measures z from the z of the free coordinate with the smallest weight, as `simplex` does.
    """
    x, on, rest = lo.copy(), np.arange(lo.size), total
    low, high = lo, hi
    while on.size:
        y = _level(lam, z, rest, slice(None))[2]
        under, over = y < low, y > high
        short = float((low[under] - y[under]).sum())
        excess = float((y[over] - high[over]).sum())
        x[on] = np.minimum(np.maximum(y, low), high)
        if short == excess:
            break
        gone = over if excess > short else under
        rest -= float((high if excess > short else low)[gone].sum())
        keep = ~gone
        on, lam, z, low, high = on[keep], lam[keep], z[keep], low[keep], high[keep]
    return _onto_sum(x, lo, hi, total)


def _onto_sum(x: Vector, lo: Vector, hi: Vector, total: float) -> Vector:
    """Add the rounding error of the sum to coordinates that have room for it."""
    for _ in range(2):
        rest = total - float(x.sum())
        slack = hi - x if rest > 0 else x - lo
        if abs(rest) <= 2 * _EPS * float(np.abs(x).sum()):
            break
        k = int(slack.argmax())
        x[k] = min(max(x[k] + rest, lo[k]), hi[k])
    return x


def _by_knots(lam: Vector, z: Vector, lo: Vector, hi: Vector, total: float, near: Vector) -> Vector:
    """Solve the knapsack with some weights 0: search the multiplier among its breakpoints, O(n log n)."""
    weighted = lam > 0
    safe = np.where(weighted, lam, 1.0)
    want, capped = -z, bool(np.isfinite(hi).any())

    def plays(mu: float) -> Vector:
        """Return the minimiser for the multiplier mu, without the constraint on the sum."""
        rest = want - mu
        free = np.where(weighted, rest / safe, np.where(rest > 0, hi, lo))
        free = np.maximum(free, lo)
        return np.minimum(free, hi) if capped else free

    with np.errstate(invalid="ignore"):
        knots = np.concatenate((want - lam * lo, np.where(weighted, want - lam * hi, want)))
    knots = np.sort(knots[np.isfinite(knots)])
    low, high = 0, len(knots)
    while low < high:  # find the first knot at which the sum is at most the total
        mid = (low + high) // 2
        if plays(knots[mid]).sum() > total:
            low = mid + 1
        else:
            high = mid
    at = float(knots[low]) if low < len(knots) else math.inf
    before = float(knots[low - 1]) if low else -math.inf
    loose = ~weighted & (want == at)
    if loose.any():  # at this multiplier they may take any share that the others leave
        x = plays(at)
        rest = total - float(x[~loose].sum())
        if rest <= float(hi[loose].sum()):
            x[loose] = _spread(near[loose], lo[loose], hi[loose], rest)
            return _onto_sum(x, lo, hi, total)
    x = plays(_between(before, at))
    free = weighted & (x > lo) & (x < hi)
    if free.any():
        on = free.nonzero()[0]
        y = _level(lam, z, total - float(x[~free].sum()), on)[2]
        x[on] = np.minimum(np.maximum(y, lo[on]), hi[on])
    return _onto_sum(x, lo, hi, total)


def _between(a: float, b: float) -> float:
    """Return a number between a and b, either of which may be infinite."""
    if math.isinf(a) and math.isinf(b):
        return 0.0
    if math.isinf(a):
        return b - max(1.0, abs(b))
    if math.isinf(b):
        return a + max(1.0, abs(a))
    return a + (b - a) / 2


def _spread(near: Vector, lo: Vector, hi: Vector, total: float) -> Vector:
    """Return the point nearest to `near` with these bounds and this sum, after clipping the sum to what is possible."""
    total = min(max(total, float(lo.sum())), float(hi.sum()))
    return with_sum(np.ones_like(near), -near, lo, hi, total, near)


def knapsack(
    lam: Vector, z: Vector, a: Vector, lo: Vector, hi: Vector, b: float, near: Vector, *, equality: bool
) -> Vector:
    """Minimise subject to lo <= x <= hi and a·x = b (or a·x <= b), by substituting y = a x where a is not 0.

    >>> one = np.ones(2)
    >>> knapsack(one, -one, np.array([1.0, 2.0]), 0 * one, one, 2.0, 0 * one, equality=False)
    array([0.8, 0.6])
    """
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
    """Minimise subject to |x|₂ <= radius: x(mu) = -z/(lam + mu) for one mu >= 0.

    >>> l2_ball(np.ones(2), np.array([-3.0, -4.0]), 1.0, np.zeros(2))
    array([0.6, 0.8])
    """
    if psd.positive(lam):
        return _in_ball(lam, z, radius)[0]
    flat = (lam == 0) & (z == 0)
    live, x = ~flat, np.zeros_like(z)
    x[live], rest = _in_ball(lam[live], z[live], radius)
    x[flat] = shrink(near[flat], math.sqrt(rest), 2.0)
    return x


def _in_ball(lam: Vector, z: Vector, radius: float) -> tuple[Vector, float]:
    """Return the minimiser if every coordinate has weight or slope, and the square of the radius left over.

    Newton's method on 1/|u(mu)| = 1, monotone from the left, for u = x/radius, with weights and slopes in units of the
    largest slope, so that all squares are of numbers near 1.
    """
    if not z.size:
        return z, radius**2
    top = float(np.abs(z).max())
    if top == 0.0:
        return np.zeros_like(z), radius**2
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        lam, z = lam * (radius / top), z / top
        mu = max(float((np.abs(z) - lam).max()), math.sqrt(z.dot(z)) - float(lam[lam.argmax()]))
        if mu <= 0.0:  # then no weight is 0
            u = z / lam
            size = math.sqrt(u.dot(u))
            if size <= 1.0:
                return u * -radius, radius**2 * max(1.0 - size**2, 0.0)
            mu = 0.0
        for _ in range(100):
            den = lam + mu
            u = z / den
            square = float(u.dot(u))
            size = math.sqrt(square)
            excess = size - 1.0
            if excess <= 4 * _EPS:
                break
            np.divide(u, den, out=den)
            step = excess * square / float(u.dot(den))
            if mu + step == mu:
                break
            mu += step
    return u * (-radius / size), 0.0
