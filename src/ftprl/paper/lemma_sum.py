"""Lemma 5: sum a_i / sqrt(a_{1:i}) <= 2 sqrt(a_{1:n})."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl import psd
from ftprl.draw import Panel, Series
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import ROUNDING, sides
from ftprl.schemes import Diagonal
from ftprl.sets import Box

Vector = NDArray[np.float64]


def left_side(a: Vector) -> float:
    """Return sum a_i / sqrt(a_{1:i}), with 0/0 = 0.

    >>> left_side(np.array([0.0, 1.0, 3.0]))
    2.5
    """
    sums = np.cumsum(a)
    return float(np.divide(a, np.sqrt(sums), out=np.zeros_like(a), where=sums > 0).sum())


def _random(rng: np.random.Generator) -> Vector:
    """Return numbers of very different sizes, many of them 0, some at the beginning."""
    n, spread = int(rng.integers(1, 200)), rng.choice((0.0, 1.0, 6.0))
    return np.where(rng.random(n) < 0.6, 10.0 ** rng.uniform(-spread, spread, size=n), 0.0)


def _scheme(a: Vector) -> float:
    """Return the sum as the stability of the diagonal scheme with c = D, whose weights are the roots."""
    scheme, total = Diagonal(c=2.0), 0.0
    state = scheme.init(Box(0, 2))
    for g in np.sqrt(a)[:, None]:
        _, state = scheme.step(state, g)
        weight = float(psd.array(state.total)[0])
        total += float(g[0] ** 2 / weight) if weight else 0.0
    return total


def run(full: bool, step: Step) -> Outcome:
    """Measure the ratio of both sides on random numbers, and on equal ones, for which it comes close to 1."""
    rng = np.random.default_rng(5)
    step("random sequences")
    rows = [a for _ in range(20_000 if full else 2000) if (a := _random(rng)).any()]
    left, right = [left_side(a) for a in rows], [2 * float(np.sqrt(a.sum())) for a in rows]
    step("equal numbers")
    sizes = np.unique(np.geomspace(1, 10**7 if full else 10**6, 30).astype(int))
    equal = np.cumsum(1 / np.sqrt(np.arange(1, sizes[-1] + 1)))[sizes - 1] / (2 * np.sqrt(sizes))
    off = max(abs(_scheme(a) - left_side(a)) / left_side(a) for a in rows[:60])
    worst = max(x / y for x, y in zip(left, right, strict=True))
    return Outcome(
        [
            Check("largest left side / right side", worst, "<=", 1 + ROUNDING),
            Check(f"ratio for {sizes[-1]} equal numbers: the factor 2 is needed", equal[-1], ">=", 0.999),
            Check("the library's diagonal weights against the sum", off, "<=", ROUNDING),
        ],
        panels=[
            sides("Both sides on random numbers", left, right, "left side", "right side: 2 sqrt(sum a)", True),
            Panel(
                "Equal numbers: how tight it is",
                "how many numbers",
                "left side / right side",
                [Series("a_i = 1", sizes, equal, points=True), Series("1", sizes[[0, -1]], [1, 1], True, 6)],
                log="x",
                note=f"{equal[-1]:.5f} at {sizes[-1]:.0e}",
            ),
        ],
    )


STATEMENT = Statement(
    name="lemma-sum",
    title="The sum of a_i over the roots of its partial sums",
    place="Lemma 5",
    claim="For numbers a_i >= 0 the sum of a_i / sqrt(a_1 + ... + a_i) is at most 2 sqrt(a_1 + ... + a_n), where"
    " 0/0 counts as 0. It is what makes the stability of the adaptive schemes small.",
    instance="Sequences of up to 200 numbers over twelve decades, many of them 0; then up to millions of equal ones.",
    measured="The left side over the right: at most 1, up to 1e-9; at least 0.999 for equal numbers, so that no"
    " smaller constant would do. The weights of the diagonal scheme give the same sum, to 1e-9.",
    code="ftprl.schemes.Diagonal",
    run=run,
    tests="tests/theory/test_lemmas.py",
)
