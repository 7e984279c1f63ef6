"""John scaling: on every set with interior, within sqrt(2n) of the best full matrix in hindsight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL, Preconditioned
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROUNDING, certificate, kinds
from ftprl.programs import full_on_vertices
from ftprl.schemes import CoordinateConstant, Diagonal, john
from ftprl.sets import Polytope, Preimage

Vector = NDArray[np.float64]


def polytope(n: int, stretch: float, rng: np.random.Generator) -> Polytope:
    """Return a random bounded polytope around the origin, stretched along a random direction."""
    C = np.vstack((rng.normal(size=(n + 2, n)), np.eye(n), -np.eye(n)))
    v = rng.normal(size=n)
    v /= np.linalg.norm(v)
    shrink = np.eye(n) + (1 / stretch - 1) * np.outer(v, v)
    return Polytope(C @ shrink, np.ones(len(C)) + rng.random(len(C)))


@final
@dataclass(frozen=True, eq=False)
class Body:
    """A polytope with the corners of Fsym, up to sign, and the matrix A of its ellipsoid."""

    F: Polytope
    V: Vector
    A: Vector


def body(n: int, stretch: float, seed: int) -> Body:
    """Return a random polytope, with expensive quantities computed once."""
    F = polytope(n, stretch, np.random.default_rng((n, seed)))
    V = F.extreme_differences()
    assert V is not None
    return Body(F, V, john(F))


def sandwich(b: Body) -> tuple[float, float]:
    """Return how far Fsym exceeds the ellipsoid, and how far the ellipsoid divided by sqrt n exceeds Fsym."""
    outer = float(np.linalg.norm(b.V @ b.A.T, axis=1).max())
    # The width of Fsym in direction u is max v·u, and |A^{-T}u|/sqrt n for the smaller ellipsoid.
    U = np.random.default_rng(0).normal(size=(2000, b.F.dim))
    inside = np.linalg.norm(np.linalg.solve(b.A.T, U.T).T, axis=1) / math.sqrt(b.F.dim)
    return outer, float((inside / np.abs(U @ b.V.T).max(axis=1)).max())


def scaled(b: Body, gs: Vector) -> tuple[float, float]:
    """Return B_R and regret of John scaling over the best full matrix."""
    inner = Preimage(np.linalg.inv(b.A), b.F)
    learner = FTPRL(inner, CoordinateConstant(diameter=1.0), start=b.A @ b.F.start())
    made = certificate(Preconditioned(b.A, learner), gs)
    best = full_on_vertices(b.V, gs.T @ gs)[0]
    return (made.worst_case or math.nan) / best, made.regret / best


def straight(b: Body, gs: Vector) -> float:
    """Return B_R of FTPRL-Diag over the best full matrix."""
    return (certificate(FTPRL(b.F, Diagonal()), gs).worst_case or math.nan) / full_on_vertices(b.V, gs.T @ gs)[0]


def run(full: bool, step: Step) -> Outcome:
    """Measure random polytopes, round and stretched, under gradients of four kinds."""
    T, seeds = (60, 4) if full else (8, 1)
    sizes = (2, 3, 4) if full else (2, 3)
    out = inside = over = 0.0
    shown: dict[int, float] = {}
    for n in sizes:
        step(f"random polytopes, n = {n}")
        for seed in range(seeds):
            for stretch in (1.0, 30.0):
                b = body(n, stretch, seed)
                outer, inner = sandwich(b)
                out, inside = max(out, outer), max(inside, inner)
                for _, gs in kinds(n, T, seed):
                    value = scaled(b, gs)[0]
                    shown[n] = max(shown.get(n, 0.0), value)
                    over = max(over, value / math.sqrt(2 * n))
    stretches = np.array([1.0, 3.0, 10.0, 30.0, 100.0])
    step("ever longer polytopes")
    curve = np.array([_at(float(s), T, seeds) for s in stretches])
    return Outcome(
        stated=[
            Check("length of the longest y of Fsym in the ellipsoid's norm", out, "<=", 1 + ROUNDING),
            Check("the ellipsoid over sqrt(n) against Fsym, largest ratio of widths", inside, "<=", 1 + 1e-5),
            Check("B_R over sqrt(2n) times the best full matrix, largest", over, "<=", 1 + 1e-5),
        ],
        panels=[
            Panel(
                "Polytopes stretched off the axes, n = 3",
                "stretch",
                "ratio to the best full matrix",
                [
                    Series("FTPRL-Diag: B_R", stretches, curve[:, 2], points=True),
                    Series("John scaling: B_R", stretches, curve[:, 0], points=True),
                    Series("John scaling: regret", stretches, curve[:, 1], points=True),
                    Series("sqrt(2n), proved", stretches, [math.sqrt(6)] * len(stretches), dashed=True, colour=6),
                ],
                log=True,
            )
        ],
        numbers=[
            "Largest B_R over the best full matrix: "
            + ", ".join(f"{y:.3f} for n = {n} (proved {math.sqrt(2 * n):.3f})" for n, y in shown.items())
            + "."
        ],
    )


def _at(stretch: float, T: int, seeds: int) -> Vector:
    """Return mean ratios on polytopes of one stretch, under gradients of equal weight along the ellipsoid's axes."""
    rows = []
    for seed in range(seeds):
        b = body(3, stretch, seed)
        gs = np.random.default_rng((7, seed)).normal(size=(T, 3)) @ b.A
        rows.append((*scaled(b, gs), straight(b, gs)))
    return np.asarray(np.array(rows).mean(axis=0))


STATEMENT = Statement(
    name="john-scaling",
    title="John scaling: within sqrt(2n) of the best full matrix, on any set",
    place="beyond the paper",
    claim="Scaled by John's ellipsoid of Fsym, the coordinate-constant scheme has a B_R of at most sqrt(2n) times the"
    " best full matrix in hindsight, on every set with interior.",
    instance="Random polytopes in 2 and 3 dimensions (full run: up to 4), round and stretched by 30, four kinds of"
    " gradients; then ever longer ones.",
    measured="B_R over sqrt(2n) times the best full matrix (a semidefinite program over the corners of Fsym), at most"
    " 1; Fsym must lie between the ellipsoid and the ellipsoid over sqrt(n), to 1e-5.",
    code="ftprl.john",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
