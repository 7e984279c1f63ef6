"""Follow the best bound so far, on L_p balls and the simplex."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROUNDING, certificate, kinds, slope
from ftprl.posthoc import best_bound as optimum
from ftprl.schemes import BestBound, CoordinateConstant, Diagonal
from ftprl.sets import ConvexSet, LpBall, Simplex

Vector = NDArray[np.float64]


def follow(feasible: ConvexSet, squares: Vector) -> tuple[float, float, float]:
    """Return (stability / OPT, rho, largest decrease of Q*) over a sequence of squared gradients."""
    G, before = np.zeros(feasible.dim), np.zeros(feasible.dim)
    stability = penalty = fall = value = 0.0
    for square in squares:
        G = G + square
        optimal = optimum(feasible, "diagonal", G)
        assert optimal is not None
        assert optimal.Q is not None
        star, value = np.broadcast_to(optimal.Q, G.shape), optimal.value
        live = square > 0
        stability += float((square[live] / star[live]).sum())
        if not G.any():
            continue
        fall = max(fall, float(((before - star) / star.max()).max()))
        penalty += 0.5 * feasible.sq_diameter(np.maximum(star - before, 0.0))
        before = star
    return stability / value, penalty / (0.5 * feasible.sq_diameter(before)), fall


def one_by_one(n: int) -> Vector:
    """Return one unit gradient in each coordinate, in order, which makes rho large on L_p balls."""
    return np.eye(n)


def leaders(n: int, T: int, rng: np.random.Generator) -> Vector:
    """Return gradients in one random coordinate per round, of very different sizes, so that the largest sum changes."""
    return np.eye(n)[rng.integers(n, size=T)] * 10.0 ** rng.uniform(-2, 2, size=(T, 1))


def run(full: bool, step: Step) -> Outcome:
    """Measure stability and growth on many streams, certificates against the proved ratios, and three schemes over
    p.
    """
    seeds = 40 if full else 2
    sets: list[ConvexSet] = [LpBall(6, 2.5), LpBall(6, 4.0), LpBall(6, 8.0), Simplex(6)]
    stability = growth = fall = over = regret = 0.0
    for F in sets:
        step(f"{F!r}")
        rho = F.penalty_growth()
        ratio, regret_ratio = BestBound().proven_ratio(F), BestBound().proven_regret_ratio(F)
        assert rho is not None
        assert ratio is not None
        assert regret_ratio is not None
        for seed in range(seeds):
            streams = [gs for _, gs in kinds(6, 25, seed)]
            for squares in (*(gs**2 for gs in streams), leaders(6, 25, np.random.default_rng(seed)), one_by_one(6)):
                a, b, c = follow(F, squares)
                stability, growth, fall = max(stability, a), max(growth, b / rho), max(fall, c)
            for gs in streams:
                made = certificate(FTPRL(F, BestBound()), gs)
                assert made.ratio is not None
                best = made.post_hoc["diagonal"]
                assert best is not None
                over, regret = max(over, made.ratio / ratio), max(regret, made.regret / (regret_ratio * best))
    step("how large rho gets")
    sizes = (4, 8, 16, 32, 64, 128) if full else (4, 8, 16, 32, 64)
    rhos = {p: [follow(LpBall(n, p), one_by_one(n))[1] for n in sizes] for p in (2.5, 4.0, 8.0)}
    tries = (follow(Simplex(3), leaders(3, 4, np.random.default_rng(s)))[1] for s in range(2000 if full else 300))
    simplex = max(tries)
    off = max(abs(slope(sizes[2:], y[2:]) - 2 / p) for p, y in rhos.items())
    limit = 1 + ROUNDING
    return Outcome(
        stated=[
            Check("stability over OPT, largest", stability, "<=", limit),
            Check("fall of a weight of the best diagonal, relative, largest", fall, "<=", 1e-9),
            Check("rho over its bound (n^(2/p), 3/2 on the simplex), largest", growth, "<=", limit),
            Check("B_R over sqrt(2 rho) OPT, largest", over, "<=", limit),
            Check("regret over its proved multiple of OPT, largest", regret, "<=", limit),
            Check("L_p, one coordinate after another: distance of rho's exponent from 2/p", off, "<=", 0.1),
            Check("simplex: largest rho found", simplex, ">=", 1.35),
        ],
        panels=_panels(sizes, rhos, *((24, 200) if full else (12, 40))),
        numbers=[f"On the simplex rho comes as near to 3/2 as {simplex:.3f}."],
    )


def _panels(sizes: tuple[int, ...], rhos: dict[float, list[float]], n: int, T: int) -> list[Panel]:
    """Return the growth of rho with n, and the ratio of three schemes over p."""
    growth = [
        Series(f"p = {p:g}: slope {slope(sizes[2:], y[2:]):.2f}, 2/p = {2 / p:.2f}", sizes, y, points=True)
        for p, y in rhos.items()
    ]
    ps = (2.0, 2.5, 3.0, 4.0, 6.0, 10.0)
    gs = np.random.default_rng(5).normal(size=(T, n)) * np.arange(1, n + 1) ** -1.5
    lines = []
    for name, scheme in (("global rate", CoordinateConstant()), ("diagonal", Diagonal()), ("best bound", BestBound())):
        certificates = [certificate(FTPRL(LpBall(n, p), scheme), gs) for p in ps]
        y = [(c.worst_case or math.nan) / (c.post_hoc["diagonal"] or math.nan) for c in certificates]
        lines.append(Series(name, ps, y, points=True))
    title = f"Three schemes on L_p balls, n = {n}, g_i of size i^-1.5"
    return [
        Panel("Penalties add up: coordinates one after another", "n", "rho", growth, log=True),
        Panel(title, "p", "B_R / best diagonal in hindsight", lines, log="x"),
    ]


STATEMENT = Statement(
    name="best-bound",
    title="Follow the best bound: within sqrt(2 rho) on L_p balls and the simplex",
    place="beyond the paper",
    claim="With b times the best diagonal so far the stability is at most the best bound itself; where that"
    " diagonal never falls, B_R is at most sqrt(2 rho) times the best bound, with rho <= n^(2/p) on L_p balls, p > 2,"
    " and rho <= 3/2 on the simplex.",
    instance="L_p balls with p = 2.5, 4 and 8, and the simplex; gradients of four kinds, one coordinate after"
    " another, and changing leaders.",
    measured="Stability, falls, rho, B_R and regret against what is proved, up to 1e-7; the exponent of rho in n when"
    " coordinates come one after another, within 0.1 of 2/p; the largest rho found on the simplex, at least 1.35.",
    code="ftprl.schemes.BestBound",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
