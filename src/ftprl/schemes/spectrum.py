"""Update the singular values of a factor when a row is added, in O(n²) and one matrix product."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_SMALL = 40  # up to this many singular values a dense decomposition is as fast
_STEPS = 60


def extend_basis(B: Vector, g: Vector) -> tuple[Vector, Vector]:
    """Return (basis, h) with g = basis·h, where basis is B with at most one new first column, orthonormal as B is.

    >>> basis, h = extend_basis(np.array([[1.0], [0.0]]), np.array([3.0, 4.0]))
    >>> basis @ h
    array([3., 4.])
    """
    h = B.T @ g
    rest = g - B @ h
    again = B.T @ rest  # twice, because a g that lies nearly in the span has lost digits
    rest -= B @ again
    h += again
    size = float(np.linalg.norm(rest))
    if B.shape[1] == len(g) or size <= 4 * _EPS * float(np.linalg.norm(g)):
        return B, h
    rest /= size
    rest -= B @ (B.T @ rest)
    return np.column_stack((rest / np.linalg.norm(rest), B)), np.concatenate(([size], h))


def add_row(s: Vector, h: Vector) -> tuple[Vector, Vector]:
    """Return (sigma, W), sorted by rising sigma: Wᵀ(diag(s²) + h hᵀ)W = diag(sigma²) with W orthogonal.

    s may contain zeros.

    >>> sigma, W = add_row(np.array([3.0]), np.array([4.0]))
    >>> sigma
    array([5.])
    """
    if len(s) <= _SMALL:
        _, sigma, Wt = np.linalg.svd(np.vstack((np.diag(s), h)))
        return sigma[::-1].copy(), np.asarray(Wt[::-1].T)
    order = np.argsort(s, kind="stable")
    if np.all(np.diff(order) == 1):
        return _ascending(s, h)
    sigma, W = _ascending(s[order], h[order])
    back = np.empty_like(W)
    back[order] = W
    return sigma, back


def _ascending(s: Vector, h: Vector) -> tuple[Vector, Vector]:
    """Update sorted singular values: values with h_i = 0 stay, and equal values are rotated until h reaches only
    one.
    """
    n = len(s)
    top = max(float(s[-1]), float(np.abs(h).max()))
    if top == 0.0:
        return s.copy(), np.eye(n)
    s, h = s / top, h / top
    turns: list[tuple[int, float, float]] = []
    for i in np.flatnonzero(
        np.diff(s) <= 8 * _EPS * s[1:]
    ).tolist():  # a rotation in the plane of both moves h to the second
        r = math.hypot(h[i], h[i + 1])
        if h[i]:
            turns.append((i, h[i + 1] / r, h[i] / r))
            h[i], h[i + 1] = 0.0, r
    live = np.flatnonzero((np.abs(h) > 1e-18 * s) & (np.abs(h) > 1e-140))
    if live.size == n and not turns:
        sigma, W = _secular(s, h)
        return sigma * top, W
    W, sigma = np.eye(n), s.copy()
    if live.size:
        sigma[live], W[np.ix_(live, live)] = _secular(s[live], h[live])
    for i, c, d in reversed(turns):
        W[[i, i + 1]] = c * W[i] + d * W[i + 1], c * W[i + 1] - d * W[i]
    order = np.argsort(sigma, kind="stable")
    return sigma[order] * top, W[:, order]


def _secular(s: Vector, h: Vector) -> tuple[Vector, Vector]:
    """Return the roots x of 1 + sum h_i²/(s_i² - x²) = 0 and their vectors, for strictly rising s and h without
    zeros.

    Each root lies between two values of s; x² is searched for as its distance tau from the square of the nearer one, so
    that every difference s_i² - x² keeps its digits. The vectors come from the row for which the computed roots are
    exact (Gu and Eisenstat), so they are orthogonal up to rounding however close the roots are.
    """
    at = np.arange(len(s))
    square = h * h
    reach = np.append(np.diff(s) * (s[1:] + s[:-1]), float(square.sum()) * (1 + 4 * _EPS))  # x² - s² is at most this
    between = (s - s[:, None]) * (s + s[:, None])  # row j: s_i² - s_j²
    left = 1.0 + (1.0 / (between - reach[:, None] / 2)) @ square >= 0  # the sign at the middle: which end is nearer
    left[-1] = True
    base, shifted = s[at + ~left], between[at + ~left]
    low, high = np.where(left, 0.0, -reach / 2), np.where(left, reach / 2, 0.0)
    high[-1] = reach[-1]
    tau = _roots(shifted, square, low, high)
    shifted -= tau[:, None]  # row j: s_i² - x_j²
    W = _exact_row(between, shifted, h)
    W /= np.sqrt(np.einsum("ij,ij->i", W, W))[:, None]
    return base + tau / (base + np.sqrt(np.maximum(base * base + tau, 0.0))), W.T


def _roots(shifted: Vector, square: Vector, low: Vector, high: Vector) -> Vector:
    """Return tau_j between low_j and high_j, by interpolating both neighbouring poles (Li's middle way) or by
    halving.
    """
    n = len(square)
    tau, j = (low + high) / 2, np.arange(n)
    lower = _lower(n)
    work, part = np.empty((2, n, n))  # new arrays of this size in every step would take longer than the arithmetic
    for _ in range(_STEPS):
        inverse, before = work[: len(j)], part[: len(j)]
        np.subtract(shifted if len(j) == n else shifted[j], tau[j, None], out=inverse)
        at = np.arange(len(j))
        d1, d2 = inverse[at, j], inverse[at, (j + 1) % n]
        np.divide(1.0, inverse, out=inverse)
        np.multiply(inverse, lower if len(j) == n else lower[j], out=before)
        f, sunk = 1.0 + inverse @ square, before @ square
        low[j], high[j] = np.where(f < 0, tau[j], low[j]), np.where(f > 0, tau[j], high[j])
        size = 1.0 + np.abs(f) - 2 * sunk  # the sum of the absolute values of all terms, or slightly more
        going = (np.abs(f) > n * _EPS * size) & (high[j] - low[j] > 2 * _EPS * np.abs(tau[j]))
        if not going.any():
            break
        np.multiply(inverse, inverse, out=inverse)
        np.multiply(before, before, out=before)
        rise = before @ square
        step = _middle_way(f, rise, inverse @ square - rise, d1, d2, j == n - 1)
        new = tau[j] + step
        inside = (new > low[j]) & (new < high[j])
        new = np.where(inside, new, (low[j] + high[j]) / 2)
        tau[j] = np.where(going, new, tau[j])
        j = j[going]
    return tau


def _middle_way(f: Vector, before: Vector, after: Vector, d1: Vector, d2: Vector, last: NDArray[np.bool_]) -> Vector:
    """Return the step to the root of the function with poles at d1 and d2 that matches value and slopes."""
    with np.errstate(all="ignore"):
        c = f - d1 * before - d2 * after
        a = (d1 + d2) * f - d1 * d2 * (before + after)
        b = d1 * d2 * f
        root = np.sqrt(np.maximum(a * a - 4 * b * c, 0.0))
        step = np.where(a <= 0, (a - root) / (2 * c), 2 * b / (a + root))
        single = d1 + before * d1 * d1 / (f - d1 * before)  # the last root has a pole only below it
        return np.where(last, single, step)


def _exact_row(between: Vector, gaps: Vector, h: Vector) -> Vector:
    """Return row j, h_i/(s_i² - x_j²), for the h that has exactly these roots.

    h_i² = prod_j (x_j² - s_i²) / prod_{j != i} (s_j² - s_i²); numerator j is paired with denominator j for j < i and
    with j + 1 otherwise, so that every quotient is near 1.
    """
    n = len(h)
    pairs = np.full((n, n), -1.0)
    pairs[:-1] = between[1:]
    np.copyto(pairs, between, where=_below(n))
    np.divide(gaps, pairs, out=pairs)
    exact = np.copysign(np.sqrt(np.maximum(pairs.prod(axis=0), 0.0)), h)
    return np.asarray(np.divide(exact, gaps, out=pairs))


@lru_cache(maxsize=2)
def _below(n: int) -> NDArray[np.bool_]:
    """Return the mask of the entries above the diagonal."""
    return np.arange(n)[:, None] < np.arange(n)


@lru_cache(maxsize=2)
def _lower(n: int) -> Vector:
    """Return the lower triangle of ones."""
    return np.tri(n)
