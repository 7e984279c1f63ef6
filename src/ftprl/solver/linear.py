"""Proved ranges of each coordinate of a polyhedron: linear programs, with their tolerances added to the ranges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.solver.certified import Span, dual_gap
from ftprl.solver.conic import Conic
from ftprl.solver.engines import solve_linear
from ftprl.solver.simplex import Corners, End

Vector = NDArray[np.float64]
Ends = list[End | None]  # one for each of the 2n ends; None for an unbounded one

WALK_DIM = 10  # below this dimension separate programs are as fast
_LOST = 1e-13  # share of a side below which rounding errors are ignored
_THIN = 1e-4  # a side below this share of its unit is solved again, in its own units


def axis_bounds(conic: Conic) -> Span:
    """Return the smallest and the largest value of each coordinate; infinite if there is none.

    A solver's tolerance is absolute: if the sides turn out to be of different sizes, the programs are solved again in
    units of the sides. In the end each bound is moved outwards by the gap that its multipliers leave.

    >>> low, high = axis_bounds(Conic.polyhedron(1, (np.array([[2.0], [-1.0]]), np.array([4.0, 0.0]))))
    >>> high.round(6)
    array([2.])
    """
    size = float(np.abs(conic.rows[1]).max(initial=0.0)) or 1.0
    middle, unit = np.zeros(conic.dim), np.full(conic.dim, size)
    for _ in range(4):
        scaled = conic.rescale(middle, unit)
        ends = _ends(scaled)
        low, high = _coordinates(ends, middle, unit)
        wide = high - low
        finite = np.isfinite(wide)
        if not np.any(finite & (wide < _THIN * unit)) or np.all(unit <= 1e-15 * (np.abs(middle) + unit)):
            break
        middle[finite] = low[finite] + wide[finite] / 2
        # Below 1e-7 of its unit a side is not resolved; below 1e-16 of its position it counts as 0.
        seen = np.maximum(np.where(finite, wide, 0.0), 1e-7 * unit)
        unit = np.where(finite, np.maximum(seen, 1e-16 * np.abs(middle)), unit)
    return _outwards(scaled, ends, middle, unit)


def _ends(conic: Conic) -> Ends:
    """Return the corners that minimise and maximise each coordinate: the first by HiGHS, the others by walks from
    corners.

    If the multipliers of a walk do not prove its corner, HiGHS solves that program; if HiGHS has no corner to walk
    from, it solves all further programs.
    """
    corners = Corners(conic) if conic.dim >= WALK_DIM else None
    ends: Ends = []
    for i in range(conic.dim):
        for sign in (1.0, -1.0):
            end = None if corners is None else corners.minimise((i, sign))
            if end is None or not _proved(conic, _slope(conic, i, sign), *end):
                end = _by_highs(conic, i, sign)
                if corners is not None and (end is None or not corners.add(end[0])):
                    corners = None
            ends.append(end)
    return ends


def _slope(conic: Conic, i: int, sign: float) -> Vector:
    """Return the slope of the program that minimises sign·x_i."""
    e = np.zeros(conic.dim)
    e[i] = sign
    return e


def _by_highs(conic: Conic, i: int, sign: float) -> End | None:
    """Solve one program by HiGHS; return the corner and its multipliers, or None if it has no minimum."""
    status, y, dual = solve_linear(_slope(conic, i, sign), conic.C, conic.d, conic.A, conic.b)
    return (y, dual) if status == "optimal" else None


def _proved(conic: Conic, slope: Vector, y: Vector, dual: Vector) -> bool:
    """Return True if y meets every row and the multipliers prove it optimal up to 1e-10."""
    G, h = conic.rows
    slack = h - G @ y
    e = len(conic.b)
    met = bool(np.all(slack >= -1e-10) and np.all(slack[:e] <= 1e-10))
    return met and float(np.abs(slope + dual @ G).max()) <= 1e-10 and float(np.abs(dual @ slack)) <= 1e-9


def _coordinates(ends: Ends, middle: Vector, unit: Vector) -> Span:
    """Return the corners' coordinates in the original units."""
    n = len(middle)
    low = np.array([-np.inf if (e := ends[2 * i]) is None else middle[i] + unit[i] * e[0][i] for i in range(n)])
    high = np.array([np.inf if (e := ends[2 * i + 1]) is None else middle[i] + unit[i] * e[0][i] for i in range(n)])
    return low, np.maximum(low, high)


def _outwards(conic: Conic, ends: Ends, middle: Vector, unit: Vector) -> Span:
    """Return the ranges moved outwards by their gaps; if a side is infinite nothing can be proved and they stay."""
    low, high = _coordinates(ends, middle, unit)
    if np.isfinite(low).all() and np.isfinite(high).all():
        near, far = (low - middle) / unit, (high - middle) / unit
        margin = 1e-3 * np.maximum(far - near, 1.0)
        span = near - margin, far + margin
        for k, end in enumerate(ends):
            assert end is not None
            i, sign = k // 2, 1.0 if k % 2 == 0 else -1.0
            gap = max(dual_gap(psd.zero(), _slope(conic, i, sign), *conic.rows, *end, span), 0.0)
            lost = _rounding(conic, *end, span)
            gap += lost if lost > _LOST * (far[i] - near[i]) else 0.0
            (low if sign > 0 else high)[i] -= sign * unit[i] * gap
    low.flags.writeable = high.flags.writeable = False
    return low, high


def _rounding(conic: Conic, y: Vector, dual: Vector, span: Span) -> float:
    """Return an upper bound on the rounding error of `dual_gap`, which large multipliers (sharp corners) magnify."""
    on = np.flatnonzero(dual)
    G, h, prices = np.abs(conic.rows[0][on]), np.abs(conic.rows[1][on]), np.abs(dual[on])
    products = float(prices @ (h + G @ np.abs(y))) + float(prices @ G @ (span[1] - span[0]))
    return (conic.dim + 8) * float(np.finfo(np.float64).eps) * products
