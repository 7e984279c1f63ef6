"""A footnote to Section 3: if a set is flat in a direction the best matrix is infinite there, at no cost."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import certificate
from ftprl.paper.instances import ROUNDING
from ftprl.posthoc import best_bound
from ftprl.schemes import CoordinateConstant, Diagonal, Scheme
from ftprl.sets import Box, ConvexSet, L2Ball, Product, Simplex

Vector = NDArray[np.float64]

WEIGHTS = tuple(10.0**k for k in range(7))


def flat_sets() -> dict[str, tuple[ConvexSet, Vector, Scheme]]:
    """Return sets with a direction of width 0, an orthonormal basis of such directions, and a scheme that drops
    them.
    """
    pinned, last = Box([-1.0, 0.5, 0.3], [1.0, 2.5, 0.3]), np.eye(3)[:, 2:]
    return {
        "box with a pinned coordinate": (pinned, last, Diagonal()),
        "simplex": (Simplex(3), np.full((3, 1), 3**-0.5), CoordinateConstant(center=True)),
        "disc times a point": (Product(L2Ball(2), Box(0.7, 0.7)), last, Diagonal()),
    }


def values(F: ConvexSet, flat: Vector, gs: Vector) -> tuple[float, Vector, float]:
    """Return the best bound of multiples of I along the set, B_R with weights k across it, and sum |g across|²."""
    along = gs - gs @ flat @ flat.T
    free = np.eye(F.dim) - flat @ flat.T
    best = F.diameter() * math.sqrt(2 * float((along**2).sum()))
    weight, lost = best / F.diameter() ** 2, float(((gs @ flat) ** 2).sum())
    out = []
    for k in WEIGHTS:
        Q = weight * free + k * flat @ flat.T
        inverse = free / weight + flat @ flat.T / k
        out.append(0.5 * F.sq_diameter(_diagonal(Q)) + float(np.einsum("ti,ij,tj->", gs, inverse, gs)))
    return best, np.array(out), lost


def _diagonal(Q: Vector) -> Vector:
    """Return Q as a diagonal if it is one, because N is then exact on every set here."""
    return np.diagonal(Q).copy() if not np.any(Q - np.diag(np.diagonal(Q))) else Q


def run(full: bool, step: Step) -> Outcome:
    """Measure the bound of matrices whose weight across the set grows, and the library's bound on such sets."""
    least, far, off, apart, share, curves = math.inf, 0.0, 0.0, 0.0, 0.0, {}
    for name, (F, flat, scheme) in flat_sets().items():
        step(name)
        for seed in range(20 if full else 4):
            gs = np.random.default_rng(seed).normal(size=(50, 3)) + 0.3
            best, found, lost = values(F, flat, gs)
            least = min(least, float((found / best).min()) if lost else math.inf)
            far = max(far, abs(float(found[-1]) / best - 1))
            off = max(off, float(np.abs((found - best) * np.array(WEIGHTS) / lost - 1).max()))
            along = gs - gs @ flat @ flat.T
            own = best_bound(F, "const", (along**2).sum(axis=0))
            c = certificate(FTPRL(F, scheme), gs)
            assert own is not None
            assert c.bound is not None
            apart, share = max(apart, abs(own.value / best - 1)), max(share, c.regret / c.bound)
            curves[name] = found / best - 1
    return Outcome(
        [
            Check("B_R of a finite Q over the infimum, least", least, ">=", 1.0),
            Check("weight 1e6 across the set: B_R over the infimum less 1, largest", far, "<=", 1e-4),
            Check("excess over (sum of |g across|²) / weight, largest distance from 1", off, "<=", 1e-3),
            Check("library: best bound in hindsight, distance from the infimum", apart, "<=", ROUNDING),
            Check("library: regret over its bound, largest", share, "<=", 1 + ROUNDING),
        ],
        panels=[
            Panel(
                "Nothing is paid across a flat set, in the limit",
                "weight of Q across the set",
                "B_R over its infimum, less 1",
                [Series(name, WEIGHTS, np.maximum(curve, 1e-16), points=True) for name, curve in curves.items()],
                log=True,
            )
        ],
        numbers=[
            (
                "The library takes the limit: a coordinate of width 0 has weight 0 and counts as 0, and center=True"
                " drops what gradients have across the simplex."
            )
        ],
    )


STATEMENT = Statement(
    name="zero-widths",
    title="Where the set has width 0 the best matrix is infinite, and gradients across it cost nothing",
    place="Section 3 (opening), footnote",
    claim="If F has width 0 in some direction, no finite Q attains the infimum of the bound. The bound tends to its"
    " infimum as the entries of Q in that direction go to infinity: gradients then have penalty 0 in that direction.",
    instance="A box with a pinned coordinate, the simplex, and a disc times a point; random gradients. Q is the best"
    " multiple of I along the set and k times I across it, k from 1 to 1e6.",
    measured="B_R over the infimum, sqrt 2 D sqrt(sum |g along|²): above 1 for each Q, at most 1e-4 above it for"
    " k = 1e6, and the excess is (sum |g across|²)/k to 0.1 %. The library's best bound is the infimum, and regrets are"
    " below bounds that count g along the set only.",
    code="ftprl.best_bound",
    run=run,
    tests="tests/theory/test_invariances.py, tests/paper/test_missing_statements.py",
)
