"""The class of problems on which one rate for all coordinates pays T^{2/3}, and a rate a coordinate sqrt T."""

from __future__ import annotations

from typing import Any

import numpy as np

from ftprl import adversaries
from ftprl.baselines import GradientDescent
from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL, Learner
from ftprl.losses import Linear
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import slope, total_loss
from ftprl.schemes import CoordinateConstant, Diagonal, Fixed

QUICK, FULL = (1000, 2197, 4913, 9261), (1000, 3375, 8000, 27_000, 64_000)
RATES = (0.5, 1.0, 2.0)  # times T^{-1/3}, where the best constant rate lies
MORE = (0.5, 0.75, 1.0, 1.5)


def learners(T: int, rates: tuple[float, ...]) -> dict[str, list[Learner[Any]]]:
    """What is played, by name; of several the best in hindsight counts."""
    instance = adversaries.bad_class(T)
    F, start = instance.feasible, instance.start
    m = F.dim - 1
    return {
        "FTPRL, one rate": [FTPRL(F, CoordinateConstant(), start)],
        "gradient descent, best constant rate": [GradientDescent(F, r / m, start) for r in rates],
        "FTPRL, best constant rate": [FTPRL(F, Fixed([m / r]), start) for r in rates],
        "FTPRL-Diag": [FTPRL(F, Diagonal(), start)],
    }


def regret(learner: Learner[Any], T: int) -> float:
    """Against x_1 = 0 and -1/2 elsewhere, the best fixed point of the class."""
    m = learner.feasible.dim - 1
    return total_loss(learner, adversaries.bad_class(T).losses()) + m * m / 2


def measure(sizes: tuple[int, ...], rates: tuple[float, ...], step: Step) -> dict[str, list[float]]:
    """The regret of each kind of learner for each T."""
    found: dict[str, list[float]] = {}
    for T in sizes:
        for name, kind in learners(T, rates).items():
            step(f"T = {T}: {name}")
            found.setdefault(name, []).append(min(regret(learner, T) for learner in kind))
    return found


def escape(T: int) -> float:
    """The regret of a growing multiple of I when the first phase is ±x_1 in turn: it waits in a corner of the box."""
    F = adversaries.bad_class(T).feasible
    m, eye = F.dim - 1, np.eye(F.dim)
    first = [Linear(eye[0] * (1 - 2 * (t % 2))) for t in range(T)]
    rest = [Linear(eye[1 + j]) for j in range(m) for _ in range(m)]
    return total_loss(FTPRL(F, Fixed([1e-6, 1.0]), np.zeros(F.dim)), first + rest) + m * m / 2 + 0.5 * (T % 2)


def run(full: bool, step: Step) -> Outcome:
    """Regrets over T, their fitted exponents, and the two proved bounds."""
    sizes = FULL if full else QUICK
    found = measure(sizes, MORE if full else RATES, step)
    T = np.array(sizes, dtype=float)
    m = np.round(np.cbrt(T))
    single = [name for name in found if name != "FTPRL-Diag"]
    diagonal = np.array(found["FTPRL-Diag"])
    same = np.allclose(found[single[1]], found[single[2]], rtol=1e-3)
    least = min(float((np.array(found[name]) / (T ** (2 / 3) / 4)).min()) for name in single)
    return Outcome(
        stated=[
            *(Check(f"{name}: fitted exponent of T", slope(T, found[name]), ">=", 0.65) for name in single),
            Check("FTPRL-Diag: fitted exponent of T", slope(T, diagonal), "<=", 0.52),
            Check("one rate: regret over T^(2/3)/4, least", least, ">=", 1.0),
            Check(
                "FTPRL-Diag: regret over 1.5 (sqrt T + m sqrt m), largest",
                float((diagonal / (1.5 * (np.sqrt(T) + m * np.sqrt(m)))).max()),
                "<=",
                1.0,
            ),
        ],
        panels=[
            Panel(
                "The class on which one rate must fail",
                "T",
                "regret",
                [
                    *(
                        Series(f"{name}: slope {slope(T, y):.3f}", T, y, points=True)
                        for name, y in found.items()
                        if name != single[2] or not same  # one line would hide the other
                    ),
                    Series("T^(2/3) / 4", T, T ** (2 / 3) / 4, dashed=True, colour=6),
                ],
                log=True,
                note=f"fitted: {slope(T, found[single[0]]):.3f} against {slope(T, diagonal):.3f}",
            )
        ],
        numbers=[
            *(["FTPRL with the best constant multiple of I pays what gradient descent pays."] if same else []),
            (
                f"At T = {sizes[-1]} one adaptive rate has a regret of {found[single[0]][-1]:.1f}, the best constant"
                f" rate {found[single[1]][-1]:.1f}, a rate a coordinate {diagonal[-1]:.1f}."
            ),
            (
                "The first phase must not be the linear losses x_1 and -x_1 in turn: a growing multiple of I can then"
                f" wait in a corner of the box, with a regret of {escape(sizes[0]):.2f} at T = {sizes[0]}, where the"
                f" class as it is costs the best constant rate {found[single[1]][0]:.2f}."
            ),
        ],
    )


STATEMENT = Statement(
    name="bad-class",
    title="A class on which one rate pays T^(2/3), and a rate a coordinate sqrt T",
    place="Theorem 1, Section 1.2",
    claim="There are problems on which gradient descent with any non-increasing global rate, and FTPRL with any"
    " non-decreasing multiple of I, have regret of order T^(2/3), while diagonal FTPRL has O(sqrt T).",
    instance="Our construction, since the paper only cites one: with m = T^(1/3), on [-1/2, 1/2]^(1+m), T rounds of"
    " |x_1|, then m rounds of x_j for each of m further coordinates.",
    measured="Exponents fitted over T: at least 0.65 for one rate (adaptive, and the best of constant ones), at most"
    " 0.52 for a rate a coordinate; every regret on its side of the proved bounds. Constant rates are multiples of"
    " T^(-1/3).",
    code="ftprl.adversaries.bad_class",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
