"""A scheme competitive on a set is competitive on its linear images, also if A is not symmetric."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.game import play
from ftprl.learner import FTPRL, Preconditioned
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROOT2, ROUNDING, kinds
from ftprl.paper.instances import in_order
from ftprl.posthoc import best_bound
from ftprl.schemes import CoordinateConstant, Diagonal, Scheme
from ftprl.sets import Box, ConvexSet, L2Ball, Preimage

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Competitor:
    """A set, a scheme on it, and kappa with B_R <= kappa times the best full matrix's bound."""

    inner: ConvexSet
    scheme: Scheme
    kappa: float


def competitors(n: int) -> dict[str, Competitor]:
    """Return the sets and schemes with a proved kappa against full matrices."""
    return {
        "ball, global rate": Competitor(L2Ball(n), CoordinateConstant(), ROOT2),
        "box, FTPRL-Diag": Competitor(Box(-1, 1, dim=n), Diagonal(), math.sqrt(math.pi)),
    }


def skew(n: int, rng: np.random.Generator) -> Vector:
    """Return a matrix of condition 100 that is far from symmetric."""
    a, b = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return np.asarray((a * np.geomspace(0.1, 10.0, n)) @ b)


def ratios(who: Competitor, A: Vector, gs: Vector) -> tuple[float, float]:
    """Return B_R over the best full matrix on {x : Ax in inner} with gradients g, and on inner with A^{-T} g."""
    outside = play(Preconditioned(A, FTPRL(who.inner, who.scheme)), gs).certificate()
    hat = gs @ np.linalg.inv(A)
    inside = play(FTPRL(who.inner, who.scheme), hat).certificate()
    out = []
    for F, rows, made in ((Preimage(A, who.inner), gs, outside), (who.inner, hat, inside)):
        best = best_bound(F, "full", np.square(rows).sum(axis=0), rows.T @ rows, program=True)
        assert best is not None
        assert made.worst_case is not None
        out.append(made.worst_case / best.value)
    return out[0], out[1]


def run(full: bool, step: Step) -> Outcome:
    """Compare ratios on both sides of random changes of coordinates."""
    n, T = 3, 60 if full else 20
    ratios_of: dict[str, list[tuple[float, float]]] = {}
    for name, who in competitors(n).items():
        step(name)
        for seed in range(12 if full else 3):
            A = skew(n, np.random.default_rng(seed))
            ratios_of.setdefault(name, []).extend(ratios(who, A, gs @ A) for _, gs in kinds(n, T, seed))
    apart = max(abs(a / b - 1) for pairs in ratios_of.values() for a, b in pairs)
    shares = {name: max(a for a, _ in pairs) / competitors(n)[name].kappa for name, pairs in ratios_of.items()}
    return Outcome(
        [
            Check("the ratio on the set against that on its image, relative", apart, "<=", 100 * ROUNDING),
            *(
                Check(f"{name}: B_R / (kappa best), largest", share, "<=", 1 + ROUNDING)
                for name, share in shares.items()
            ),
        ],
        panels=[
            Panel(
                "A not symmetric: B_R over the best full matrix",
                "game, from the smallest ratio to the largest",
                "ratio",
                [
                    *(Series(name, *in_order([a for a, _ in pairs]), points=True) for name, pairs in ratios_of.items()),
                    Series(
                        "sqrt 2, the ball's kappa",
                        [1, len(ratios_of["ball, global rate"])],
                        [ROOT2] * 2,
                        dashed=True,
                        colour=6,
                    ),
                ],
            )
        ],
        numbers=[
            (
                "The paper takes A to be symmetric; needed is that gradients are transformed by A^-T and matrices"
                " by A^-T Q A^-1."
            )
        ],
    )


STATEMENT = Statement(
    name="kappa-transfer",
    title="A competitive ratio against full matrices carries over to linear images, A symmetric or not",
    place="Theorem 5, Section 3.4",
    claim="If an algorithm's B_R is within kappa of the best full matrix on a set, the same algorithm behind the change"
    " of coordinates x -> Ax is within kappa on {x : Ax in the set}; A need not be symmetric.",
    instance="The ball with a global rate (kappa = sqrt 2) and the cube with FTPRL-Diag (kappa = sqrt pi), n = 3, seen"
    " through matrices of condition 100 that are far from symmetric; four kinds of gradients.",
    measured="B_R over the best full matrix (a program over vertices for the cube) on both sides, equal to 1e-5, and at"
    " most kappa.",
    code="ftprl.Preconditioned, ftprl.best_bound",
    run=run,
    tests="tests/paper/test_missing_statements.py",
)
