"""Problems on which any global learning rate has regret T^{2/3}, and per-coordinate rates sqrt T."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl import adversaries
from ftprl.baselines import GradientDescent
from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL, Learner
from ftprl.losses import Linear
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import slope, total_loss
from ftprl.schemes import CoordinateConstant, Diagonal, Fixed

Vector = NDArray[np.float64]

QUICK, FULL = (1000, 2197, 4913, 9261), (1000, 3375, 8000, 27_000, 64_000)
# Factors of T^{-1/3}. Never moving, the limit of small rates, is added: its regret m²/2 is the smallest of all.
RATES = (0.02, 0.1, 0.5, 2.0)
MORE = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0)


def learners(T: int, rates: tuple[float, ...]) -> dict[str, list[Learner[Any]]]:
    """Return the learners by name; of several under one name, the best in hindsight counts."""
    instance = adversaries.bad_class(T)
    F, start = instance.feasible, instance.start
    m = F.dim - 1
    return {
        "FTPRL, global rate": [FTPRL(F, CoordinateConstant(), start)],
        "gradient descent, best constant rate": [GradientDescent(F, r / m, start) for r in rates],
        "FTPRL, best constant rate": [FTPRL(F, Fixed([m / r]), start) for r in rates],
        "FTPRL-Diag": [FTPRL(F, Diagonal(), start)],
    }


def regret(learner: Learner[Any], T: int) -> float:
    """Return the regret against the best fixed point of the class: x_1 = 0, and -1/2 in all other coordinates."""
    m = learner.feasible.dim - 1
    return total_loss(learner, adversaries.bad_class(T).losses()) + m * m / 2


def still(T: int) -> float:
    """Return the regret of never leaving the origin: a learning rate of 0, or an infinite multiple of I.

    >>> still(1000)
    50.0
    """
    return float(round(T ** (1 / 3)) ** 2 / 2)


def schedules(T: int, count: int, seed: int = 0) -> Vector:
    """Return random non-increasing rates, one schedule per row: powers of t, or drops at random times by random
    factors.

    >>> rates = schedules(27, 4)
    >>> rates.shape, bool((np.diff(rates) <= 0).all())
    ((4, 36), True)
    """
    m, schedules = round(T ** (1 / 3)), []
    rounds = np.arange(1, T + m * m + 1)
    for k in range(count):
        rng = np.random.default_rng((seed, k))  # equal shapes for each T
        scale, power = 10.0 ** rng.uniform(-2, 1), rng.uniform(0, 1)
        falls = np.searchsorted(np.sort(rng.uniform(0, rounds[-1], size=6)), rounds)
        shape = rounds**-power if k % 2 else np.cumprod(np.append(1.0, rng.uniform(0.1, 1, size=6)))[falls]
        # A power ends, and drops begin, near the rates that matter, 1/m.
        schedules.append(scale / m * shape * (T**power if k % 2 else 1.0))
    return np.array(schedules)


def scheduled(T: int, rates: Vector, proximal: bool) -> Vector:
    """Return the regrets of gradient descent, one per row of rates, or of FTPRL with their inverses as multiples of
    I.
    """
    m = round(T ** (1 / 3))
    x, own_loss = np.zeros((len(rates), 1 + m)), np.zeros(len(rates))
    z, before = np.zeros_like(x), np.zeros(len(rates))
    for t, rate in enumerate(rates.T):
        j = 0 if t < T else 1 + (t - T) // m
        value = x[:, j].copy()
        g = np.where(value >= 0, 1.0, -1.0) if t < T else np.ones(len(rates))
        own_loss += np.abs(value) if t < T else value
        if proximal:
            z[:, j] += g
            z -= (1 / rate - before)[:, None] * x
            before = 1 / rate
            x = np.clip(-z * rate[:, None], -0.5, 0.5)
        else:
            x[:, j] = np.clip(value - rate * g, -0.5, 0.5)
    return np.asarray(own_loss + m * m / 2)


def measure(sizes: tuple[int, ...], rates: tuple[float, ...], step: Step) -> dict[str, list[float]]:
    """Return the regret of each kind of learner for each T."""
    regrets: dict[str, list[float]] = {}
    for T in sizes:
        for name, kind in learners(T, rates).items():
            step(f"T = {T}: {name}")
            tried = [regret(learner, T) for learner in kind]
            regrets.setdefault(name, []).append(min([*tried, still(T)] if len(kind) > 1 else tried))
    return regrets


def escape(T: int) -> float:
    """Return the regret of a growing multiple of I if the first phase alternates ±x_1: it waits in a corner of the
    box.
    """
    F = adversaries.bad_class(T).feasible
    m, eye = F.dim - 1, np.eye(F.dim)
    first = [Linear(eye[0] * (1 - 2 * (t % 2))) for t in range(T)]
    rest = [Linear(eye[1 + j]) for j in range(m) for _ in range(m)]
    return total_loss(FTPRL(F, Fixed([1e-6, 1.0]), np.zeros(F.dim)), first + rest) + m * m / 2 + 0.5 * (T % 2)


def run(full: bool, step: Step) -> Outcome:
    """Measure regrets over T, their fitted exponents, and the two proved bounds."""
    sizes = FULL if full else QUICK
    regrets = measure(sizes, MORE if full else RATES, step)
    step("random non-increasing rates")
    count = 60 if full else 12
    some = np.array([[scheduled(t, schedules(t, count), way) for way in (False, True)] for t in sizes])
    T = np.array(sizes, dtype=float)
    m = np.round(np.cbrt(T))
    single = [name for name in regrets if name != "FTPRL-Diag"]
    diagonal = np.array(regrets["FTPRL-Diag"])
    same = np.allclose(regrets[single[1]], regrets[single[2]], rtol=1e-3)
    least = min(float((np.array(regrets[name]) / (T ** (2 / 3) / 4)).min()) for name in single)
    return Outcome(
        stated=[
            *(Check(f"{name}: fitted exponent of T", slope(T, regrets[name]), ">=", 0.65) for name in single),
            Check("FTPRL-Diag: fitted exponent of T", slope(T, diagonal), "<=", 0.52),
            Check("global rates: regret over T^(2/3)/4, smallest", least, ">=", 1.0),
            Check(
                f"{2 * count} random non-increasing rates: exponent of the least regret",
                slope(T, some.min(axis=(1, 2))),
                ">=",
                0.65,
            ),
            Check(
                f"{2 * count} random non-increasing rates: regret over T^(2/3)/4, least",
                float((some.min(axis=(1, 2)) / (T ** (2 / 3) / 4)).min()),
                ">=",
                1.0,
            ),
            Check(
                "FTPRL-Diag: regret over 1.5 (sqrt T + m sqrt m), largest",
                float((diagonal / (1.5 * (np.sqrt(T) + m * np.sqrt(m)))).max()),
                "<=",
                1.0,
            ),
        ],
        panels=[
            Panel(
                "Problems on which every global rate fails",
                "T",
                "regret",
                [
                    *(
                        Series(f"{name}: slope {slope(T, y):.3f}", T, y, points=True)
                        for name, y in regrets.items()
                        if name != single[2] or not same  # one line would hide the other
                    ),
                    Series("T^(2/3) / 4", T, T ** (2 / 3) / 4, dashed=True, colour=6),
                ],
                log=True,
                note=f"fitted: {slope(T, regrets[single[0]]):.3f} against {slope(T, diagonal):.3f}",
            )
        ],
        numbers=[
            *(["FTPRL with the best constant multiple of I has the same regret as gradient descent."] if same else []),
            (
                f"At T = {sizes[-1]} one adaptive global rate has a regret of {regrets[single[0]][-1]:.1f}, the best"
                f" constant rate {regrets[single[1]][-1]:.1f} (never moving has {still(sizes[-1]):.1f}), the best of"
                f" {2 * count} random schedules {some[-1].min():.1f}, per-coordinate rates {diagonal[-1]:.1f}."
            ),
            (
                "The first phase must not be the linear losses x_1 and -x_1 in turn: a growing multiple of I can then"
                f" wait in a corner of the box, with a regret of {escape(sizes[0]):.2f} at T = {sizes[0]}, where the"
                f" class as it is gives the best constant rate a regret of {regrets[single[1]][0]:.2f}."
            ),
        ],
    )


STATEMENT = Statement(
    name="bad-class",
    title="Problems on which global rates have regret T^(2/3), per-coordinate rates sqrt T",
    place="Theorem 1, Section 1.2",
    claim="There are problems on which gradient descent with any non-increasing global rate, and FTPRL with any"
    " non-decreasing multiple of I, have regret of order T^(2/3), while diagonal FTPRL has O(sqrt T).",
    instance="Our construction, since the paper only cites one: with m = T^(1/3), on [-1/2, 1/2]^(1+m), T rounds of"
    " |x_1|, then m rounds of x_j for each of m further coordinates.",
    measured="Exponents fitted over T: at least 0.65 for global rates (adaptive, the best constant one, 0 included, and"
    " the best of random non-increasing schedules), at most 0.52 for per-coordinate rates; every regret on"
    " its side of the proved bounds.",
    code="ftprl.adversaries.bad_class",
    run=run,
    tests="tests/paper/test_sets_and_beyond.py",
)
