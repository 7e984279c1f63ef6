"""Worst-case optimality: random signs make every algorithm lose, and FTPRL's guarantee is within a factor 4 of that."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from ftprl.baselines import GradientDescent
from ftprl.draw import Panel, Series
from ftprl.game import play
from ftprl.learner import FTPRL, Learner
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROOT2, ROUNDING
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box

Vector = NDArray[np.float64]


def mean_size(T: int) -> float:
    """Return E |e_1 + .. + e_T| for random signs, by binomial coefficients.

    >>> mean_size(2)
    1.0
    """
    return float(sum(math.comb(T, k) * abs(T - 2 * k) for k in range(T + 1)) / 2**T)


def learners(box: Box) -> dict[str, Learner]:  # type: ignore[type-arg]
    """Return three algorithms that have nothing in common except that they do not know the next sign."""
    return {
        "FTPRL-Diag, c = sqrt 2": FTPRL(box, Diagonal(ROOT2)),
        "FTPRL, global rate": FTPRL(box, CoordinateConstant(ROOT2)),
        "gradient descent, rate 0.3": GradientDescent(box, 0.3),
    }


def all_games(learner: Learner, T: int, sizes: Vector) -> Vector:  # type: ignore[type-arg]
    """Return the regrets of all 2^T games in which the gradient of round t is plus or minus `sizes`."""
    signs = itertools.product((1.0, -1.0), repeat=T)
    return np.array([play(learner, np.outer(s, sizes)).certificate().regret for s in signs])


def run(full: bool, step: Step) -> Outcome:
    """Play every sequence of signs: the mean and the largest regret of each algorithm, and the guarantee."""
    lengths = (1, 2, 4, 6, 8, *((10, 12) if full else ()))
    boxes = {"interval": (Box(-1, 1), np.array([1.0])), "box": (Box([0.0, -2.0], [1.0, 2.0]), np.array([3.0, 0.5]))}
    off = worst = 0.0
    least, curves = math.inf, {}
    for place, (box, sizes) in boxes.items():
        reach = float(box.widths() @ sizes)  # S = reach sqrt T
        for name, learner in learners(box).items():
            step(f"{place}: {name}")
            means, tops = [], []
            for T in lengths:
                regrets = all_games(learner, T, sizes)
                # All coordinates have the sign of the round, so |S_i| is one multiple of each size.
                want = reach / 2 * mean_size(T)
                off = max(off, abs(float(regrets.mean()) / want - 1))
                least = min(least, float(regrets.mean()) / (reach * math.sqrt(T)))
                means.append(float(regrets.mean()))
                tops.append(float(regrets.max()))
                if "Diag" in name:
                    worst = max(worst, tops[-1] / (ROOT2 * reach * math.sqrt(T)))
            if place == "interval":
                curves[name] = (means, tops)
    floor = 1 / (2 * ROOT2)
    return Outcome(
        [
            Check("mean regret of every algorithm against (D/2) E|signs|, relative", off, "<=", ROUNDING),
            Check("mean regret / sum D_i sqrt G_i, least", least, ">=", floor * (1 - ROUNDING)),
            Check("FTPRL-Diag: largest regret / its guarantee, sqrt 2 sum D_i sqrt G_i", worst, "<=", 1 + ROUNDING),
            Check("the guarantee over what no algorithm can be below", ROOT2 / least, "<=", 4 + ROUNDING),
        ],
        panels=[_panel(lengths, curves)],
        numbers=[
            (
                f"Averaged over all signs every algorithm has the same regret, at least {least:.4f} sum D_i sqrt G_i;"
                f" FTPRL-Diag's guarantee is {ROOT2:.4f} sum D_i sqrt G_i."
            )
        ],
    )


def _panel(lengths: tuple[int, ...], curves: dict[str, tuple[list[float], list[float]]]) -> Panel:
    """Return mean and largest regrets over the number of rounds."""
    lines = [Series(f"largest, {name}", lengths, tops, points=True) for name, (_, tops) in curves.items()]
    means = next(iter(curves.values()))[0]
    roots = 2 * np.sqrt(np.array(lengths, dtype=float))
    return Panel(
        "The interval [-1, 1], every sequence of signs",
        "rounds T",
        "regret (units of loss)",
        [
            *lines,
            Series("mean, of every algorithm", lengths, means, points=True, colour=3),
            Series("guarantee, sqrt 2 D sqrt G", lengths, ROOT2 * roots, dashed=True, colour=6),
            Series("no algorithm below, D sqrt G / (2 sqrt 2)", lengths, roots / (2 * ROOT2), dashed=True, colour=1),
        ],
        log=True,
    )


STATEMENT = Statement(
    name="minimax",
    title="Worst-case optimality: no algorithm can promise a quarter of what FTPRL-Diag does",
    place="Section 1 (introduction)",
    claim="In the worst case no algorithm has a regret below a constant times sum D_i sqrt G_i on a box: what is gained"
    " is gained on sequences that are not the worst.",
    instance="Gradients whose signs are drawn by a fair coin, every sequence of signs played: an interval and a box, up"
    " to 8 rounds (full: 12), FTPRL with two schemes and gradient descent.",
    measured="The mean regret over all signs, equal to (D/2) E|e_1 + .. + e_T| for each algorithm up to 1e-7 and at"
    " least sum D_i sqrt G_i/(2 sqrt 2) (Khintchine); FTPRL-Diag's largest regret over its guarantee, at most 1; the"
    " guarantee is then at most 4 times what no algorithm can be below.",
    code="ftprl.schemes.Diagonal",
    run=run,
    tests="tests/paper/test_missing_statements.py",
)
