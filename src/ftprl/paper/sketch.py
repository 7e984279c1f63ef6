"""The sketch: a full matrix from a few directions, monotone, with a bound that counts the mass that escaped."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROOT2, ROUNDING, certificate, kinds
from ftprl.schemes import CoordinateConstant, Full, Sketch
from ftprl.schemes.full import SketchState
from ftprl.sets import ConvexSet, L2Ball

Vector = NDArray[np.float64]


def low_rank(n: int, rank: int, T: int, seed: int) -> Vector:
    """Return gradients in a few directions of falling weight plus a little noise, the case for a sketch."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(n, rank)))[0]
    weights = np.geomspace(3.0, 0.3, rank)
    return np.asarray((rng.normal(size=(T, rank)) * weights + 0.3) @ basis.T + 0.01 * rng.normal(size=(T, n)))


def root_trace(GG: Vector) -> float:
    """Return tr GG^{1/2}."""
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(GG), 0.0)).sum())


def follow(feasible: ConvexSet, rank: int, gs: Vector) -> tuple[float, float, float]:
    """Return the most negative eigenvalue of two matrix orders, relative, and the two sides of the bound.

    The orders are Gbar_t - Gbar_{t-1} - gg' >= 0 and Gbar_t - GG_t >= 0; the sides are tr Gbar^{1/2} and tr GG^{1/2} +
    n sqrt(rho).
    """
    scheme, n = Sketch(rank), feasible.dim
    state = scheme.init(feasible)
    GG, before, least = np.zeros((n, n)), np.zeros((n, n)), 0.0
    for g in gs:
        _, new = scheme.step(state, g)
        state, GG = new, GG + np.outer(g, g)
        after = np.linalg.matrix_power(np.asarray(new.total) * (new.D / scheme.c), 2)
        for gap in (after - before - np.outer(g, g), after - GG):
            least = min(least, float(np.linalg.eigvalsh(gap)[0]) / float(np.trace(after)))
        before = after
    assert isinstance(state, SketchState)
    return -least, root_trace(before), root_trace(GG) + n * math.sqrt(state.escaped)


def run(full: bool, step: Step) -> Outcome:
    """Check both orders in every round, the regret against its bound, and ranks from 1 to n + 1."""
    n, T = (20, 250) if full else (10, 80)
    ball = L2Ball(n)
    order = excess = over = 0.0
    for name, gs in (*kinds(n, T, 0), ("low rank", low_rank(n, 3, T, 0))):
        for rank in (1, 2, 4, n):
            step(f"{name} gradients, rank {rank}")
            least, have, allowed = follow(ball, rank, gs)
            order, excess = max(order, least), max(excess, have / allowed)
            made = certificate(FTPRL(ball, Sketch(rank, ROOT2)), gs)
            over = max(over, made.regret / (made.closed_form_strong or math.nan))
    step("all ranks")
    gs = low_rank(n, 3, T, 1)
    whole = certificate(FTPRL(ball, Full(ROOT2)), gs)
    one = certificate(FTPRL(ball, CoordinateConstant(ROOT2)), gs)
    ranks = sorted({1, 2, 3, 4, 5, 6, 8, n // 2, n, n + 1})
    sketched = [certificate(FTPRL(ball, Sketch(r, ROOT2)), gs) for r in ranks]
    assert whole.closed_form_strong is not None
    assert one.closed_form_strong is not None
    return Outcome(
        stated=[
            Check("largest negative part of Gbar's two orders, relative", order, "<=", 1e-9),
            Check("tr Gbar^1/2 over tr GG^1/2 + n sqrt(rho), largest", excess, "<=", 1 + ROUNDING),
            Check("regret over sqrt(2) D tr Gbar^1/2, largest", over, "<=", 1.0),
            Check(
                "rank n + 1: regret against Full, relative difference",
                abs(sketched[-1].regret / whole.regret - 1),
                "<=",
                1e-6,
            ),
            Check(
                "Full's bound over a global rate's, which it can never beat",
                whole.closed_form_strong / one.closed_form_strong,
                ">=",
                1 - ROUNDING,
            ),
        ],
        panels=[
            Panel(
                f"Gradients in 3 directions and a little noise, n = {n}",
                "rank of the sketch",
                "loss units",
                [
                    Series(
                        "sketch: bound",
                        ranks,
                        [c.closed_form_strong or math.nan for c in sketched],
                        dashed=True,
                        points=True,
                    ),
                    Series("full: bound", ranks, [whole.closed_form_strong] * len(ranks), dashed=True, points=True),
                    Series("global rate: bound", [1, n + 1], [one.closed_form_strong] * 2, dashed=True, colour=6),
                    Series("sketch: certificate's bound", ranks, [c.bound or math.nan for c in sketched], points=True),
                    Series("sketch: regret", ranks, [c.regret for c in sketched], points=True),
                ],
                log=True,
            )
        ],
        numbers=[
            (
                f"With rank 4 the a-priori bound is"
                f" {(sketched[3].closed_form_strong or math.nan) / whole.closed_form_strong:.3f} times Full's; regret"
                f" {sketched[3].regret:.3g} against {whole.regret:.3g} for Full and {one.regret:.3g} for a global rate."
            )
        ],
    )


STATEMENT = Statement(
    name="sketch",
    title="A sketch in place of a full matrix, with the mass that escapes it",
    place="beyond the paper",
    claim="Frequent directions, with the mass that escapes them given back as a multiple of I, dominate the outer"
    " products and only grow; so FTPRL with the root of the sketch has regret at most sqrt(2) D tr Gbar^(1/2), itself"
    " at most sqrt(2) D (tr GG^(1/2) + n sqrt(rho)).",
    instance="The unit L2 ball; normal, sparse, badly scaled, one-dimensional and nearly low-rank gradients; ranks"
    " from 1 to n + 1.",
    measured="Both matrix orders in every round, to 1e-9 of the trace; the two bounds; with rank n + 1 the same"
    " regret as the full matrix, to 1e-6. A full matrix's a-priori bound must not be below that of a global rate.",
    code="ftprl.schemes.Sketch",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
