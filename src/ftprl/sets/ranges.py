"""The range of each coordinate of a simple set cut by a box, in closed form: O(n) for all of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Range = tuple[Vector, Vector]
_EPS = float(np.finfo(np.float64).eps)


def others(v: Vector) -> Vector:
    """Return for each i the sum of all entries except v_i, accumulated from both ends so that nothing cancels.

    >>> others(np.array([1.0, 2.0, 4.0]))
    array([6., 5., 3.])
    """
    zero = np.zeros(1)
    return np.concatenate((zero, np.cumsum(v)[:-1])) + np.concatenate((np.cumsum(v[::-1])[-2::-1], zero))


def with_sum(lo: Vector, hi: Vector, total: float) -> Range:
    """Return the range of each x_i subject to lo <= x <= hi and sum x = total.

    >>> with_sum(np.zeros(2), np.array([0.7, 1.0]), 1.0)
    (array([0. , 0.3]), array([0.7, 1. ]))
    """
    high = np.minimum(hi, total - others(lo))
    return np.maximum(lo, total - others(high)), np.maximum(high, lo)


def half_space(a: Vector, b: float, lo: Vector, hi: Vector) -> Range:
    """Return the range of each x_i subject to lo <= x <= hi and a·x <= b.

    >>> half_space(np.ones(2), 1.0, np.zeros(2), np.array([3.0, 0.5]))
    (array([0., 0.]), array([1. , 0.5]))
    """
    left = b - others(np.minimum(a * lo, a * hi))
    with np.errstate(divide="ignore", invalid="ignore"):
        end = left / a
    return np.where(a < 0, np.maximum(lo, np.minimum(end, hi)), lo), np.where(
        a > 0, np.minimum(hi, np.maximum(end, lo)), hi
    )


def ball(p: float, radius: float, lo: Vector, hi: Vector) -> Range:
    """Return the range of each x_i subject to lo <= x <= hi and |x|_p <= radius.

    A coordinate reaches furthest when all others are as near to 0 as the box lets them be.

    >>> ball(2.0, 1.0, np.array([0.6, -1.0]), np.ones(2))
    (array([ 0.6, -0.8]), array([1. , 0.8]))
    """
    least = np.maximum(np.maximum(lo, -hi), 0.0) / radius
    if math.isinf(p) or not least.any():
        rest = np.full(lo.shape, radius)
    else:
        used = others(least**p)
        rest = radius * np.maximum(1.0 - used * (1 - 4 * _EPS), 0.0) ** (1.0 / p)
    return np.maximum(lo, -rest), np.minimum(hi, rest)
