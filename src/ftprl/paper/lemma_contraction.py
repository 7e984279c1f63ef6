"""Lemma 3: projections in the norm of Q are contractions in that norm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.draw import Panel, Series
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import ROUNDING, in_order, sets_with_metrics
from ftprl.sets import Box, ConvexSet

Vector = NDArray[np.float64]


def project(F: ConvexSet, Q: Vector, u: Vector) -> Vector:
    """Return the point of F nearest to u in the norm of Q."""
    return F.argmin(Q, -psd.apply(Q, u), F.start())


def shrink(Q: Vector, before: Vector, after: Vector) -> float:
    """Return |after| / |before| in the norm of Q."""
    return float(np.sqrt(psd.quad(Q, after) / psd.quad(Q, before)))


def run(full: bool, step: Step) -> Outcome:
    """Measure distances after projecting over distances before, in the norm of the projection and in another one."""
    rng = np.random.default_rng(3)
    ratios: list[float] = []
    wrong: list[float] = []
    for F, Q in sets_with_metrics(2000 if full else 60, rng, step):
        u = rng.normal(size=F.dim) * 3
        v = u + rng.normal(size=F.dim) * 10.0 ** rng.uniform(-2, 1)
        ratios.append(shrink(Q, u - v, project(F, Q, u) - project(F, Q, v)))
        if isinstance(F, Box) and Q.ndim == 2:
            wrong.append(shrink(Q, u - v, np.clip(u, F.lower, F.upper) - np.clip(v, F.lower, F.upper)))
    return Outcome(
        [
            Check("largest |P(u) - P(v)| / |u - v| in the norm of Q", max(ratios), "<=", 1 + 10 * ROUNDING),
            Check("the same with Euclidean projections, which need not contract", max(wrong), ">=", 1.01),
        ],
        panels=[
            Panel(
                "Distances after projecting / before, in the norm of Q",
                "pair of points, in order",
                "ratio",
                [
                    Series("projection in the norm of Q", *in_order(ratios[:: len(ratios) // 120])),
                    Series(
                        "Euclidean projection, box, full Q",
                        np.linspace(1, 120, len(wrong)),
                        sorted(wrong),
                        points=True,
                        line=False,
                    ),
                    Series("1: the claim", [1, 120], [1, 1], dashed=True, colour=6),
                ],
            )
        ],
        numbers=[f"{len(ratios)} pairs; {sum(v > 1 for v in wrong)} of {len(wrong)} Euclidean ones grow."],
    )


STATEMENT = Statement(
    name="lemma-contraction",
    title="Projections in the norm of Q do not move points apart in that norm",
    place="Lemma 3",
    claim="If x and y are the points of a convex set nearest to u and v in the norm of a positive definite Q,"
    " then x and y are no farther apart than u and v, in the same norm.",
    instance="Nine sets; random Q; pairs of points near to each other and far apart, inside and outside. As a"
    " control Euclidean projections on a box, measured in the norm of a full Q.",
    measured="Distance after over distance before: at most 1, up to 1e-8 for the rounding of near pairs. The control"
    " has to exceed 1.01 somewhere: the norm of the projection matters.",
    code="ftprl.sets",
    run=run,
    tests="tests/theory/test_lemmas.py",
)
