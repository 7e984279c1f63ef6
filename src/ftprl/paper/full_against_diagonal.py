"""The gain of a full matrix over a diagonal one in the bound: at most sqrt(pi/2) on boxes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl import programs
from ftprl.draw import Panel, Series
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROUNDING, slope
from ftprl.posthoc import best_bound
from ftprl.sets import Box, ConvexSet, L1Ball

Vector = NDArray[np.float64]

LIMIT = math.sqrt(math.pi / 2)


def ratio(feasible: ConvexSet, GG: Vector) -> float:
    """Return OPT_diag / OPT_full, the second from a semidefinite program over the corners of Fsym."""
    G = np.ascontiguousarray(np.diagonal(GG))
    diagonal = best_bound(feasible, "diagonal", G, program=True)
    full = best_bound(feasible, "full", G, GG, program=True)
    assert diagonal is not None
    assert full is not None
    return diagonal.value / full.value


def centred(n: int, share: float) -> Vector:
    """Return outer products of evenly spread gradients that sum to 0, plus a share of the direction (1, .., 1)."""
    ones = np.ones((n, n)) / n
    return np.eye(n) - ones + share * ones


def climb(n: int, tries: int, rng: np.random.Generator) -> tuple[float, int]:
    """Return the largest ratio found by random uphill steps on the unit box, and the number of matrices tried."""
    R = np.asarray(np.linalg.cholesky(centred(n, 0.01)))
    best, size = ratio(Box(-1, 1, dim=n), R @ R.T), 0.5
    for _ in range(tries):
        new = R + size * rng.normal(size=(n, n))
        candidate = ratio(Box(-1, 1, dim=n), new @ new.T)
        size *= 1.1 if candidate > best else 0.93
        if candidate > best:
            best, R = candidate, new
    return best, tries


def uncorrelated(n: int, rng: np.random.Generator) -> float:
    """Return how far the program's best full matrix is from the best diagonal's formula for a diagonal GG."""
    box, G = Box(0.0, rng.exponential(size=n) + 0.1), rng.exponential(size=n) + 0.1
    corners, closed = box.extreme_differences(), best_bound(box, "diagonal", G)
    assert corners is not None
    assert closed is not None
    return abs(closed.value / programs.full_on_vertices(corners, np.diag(G))[0] - 1)


def run(full: bool, step: Step) -> Outcome:
    """Measure ratios for random and nearly centred gradients and in a search for the worst case, and on the L1 ball."""
    rng = np.random.default_rng(0)
    step("random gradients on random boxes")
    seen = []
    for n in (2, 3, 4, 5) if full else (2, 3):
        for _ in range(60 if full else 8):
            gs = rng.normal(size=(n + 1, n)) @ rng.normal(size=(n, n))
            seen.append(ratio(Box(0.0, 10.0 ** rng.uniform(-1, 1, size=n)), gs.T @ gs))
    curves = {}
    shares = np.geomspace(1e-4, 10.0, 26 if full else 11)
    for n in (2, 3, 4, 5) if full else (2, 3, 4):
        step(f"gradients that nearly sum to 0, n = {n}")
        curves[n] = np.array([ratio(Box(-1, 1, dim=n), centred(n, share)) for share in shares])
    step("search for the largest ratio")
    top = max(climb(n, 150 if full else 15, rng)[0] for n in (2, 3))
    sizes = (2, 3, 4, 5, 6, 8)
    step("L1 balls")
    ones = [ratio(L1Ball(n), 1e-6 * np.eye(n) + np.ones((n, n))) for n in sizes]
    every = [*seen, top, *(float(v) for y in curves.values() for v in y)]
    straight = max(uncorrelated(n, rng) for n in (2, 3, 4))
    return Outcome(
        stated=[
            Check("boxes: best diagonal over best full matrix, largest", max(every), "<=", LIMIT * (1 + ROUNDING)),
            Check("boxes: best diagonal over best full matrix, least", min(every), ">=", 1 - 10 * ROUNDING),
            Check("boxes, uncorrelated gradients: distance of the ratio from 1", straight, "<=", 10 * ROUNDING),
            Check("L1 balls, gradients in one direction: exponent of n, at least", slope(sizes, ones), ">=", 0.45),
        ],
        panels=[
            Panel(
                "Unit box, gradients that nearly sum to 0",
                "share of the common direction",
                "best diagonal / best full",
                [
                    Series("sqrt(pi/2), proved", shares, [LIMIT] * len(shares), dashed=True, colour=6),
                    *(Series(f"n = {n}", shares, y, points=True) for n, y in curves.items()),
                ],
                log="x",
            ),
            Panel(
                "Outside the class: the L1 ball, one direction",
                "n",
                "best diagonal / best full",
                [
                    Series(f"measured, slope {slope(sizes, ones):.2f}", sizes, ones, points=True),
                    Series("sqrt(pi/2)", sizes, [LIMIT] * len(sizes), dashed=True, colour=6),
                ],
                log=True,
            ),
        ],
        numbers=[
            (
                f"The largest ratio found on a box is {max(every):.4f}, far below sqrt(pi/2) = {LIMIT:.4f}; whether"
                " that is attained is not known."
            ),
        ],
    )


STATEMENT = Statement(
    name="full-against-diagonal",
    title="On boxes a full matrix gains at most sqrt(pi/2) over a diagonal one",
    place="beyond the paper",
    claim="On the boxes tried the best diagonal bound in hindsight is at most sqrt(pi/2) = 1.2533 times the best"
    " full one, and equal to it when gradients are uncorrelated."
    " On the L1 ball, with all gradients in one direction, the ratio grows like sqrt(n).",
    instance="Boxes with n up to 3 (full run: 5) and random outer products, gradients that nearly sum to 0, a random"
    " search for the worst case; L1 balls with all gradients in one direction.",
    measured="OPT_diag / OPT_full from a semidefinite program, at most 1.2533 and at least 1, up to the solver's"
    " 1e-6; the exponent of n on L1 balls, at least 0.45.",
    code="ftprl.best_bound",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
