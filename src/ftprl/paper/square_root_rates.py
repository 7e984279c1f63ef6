"""A footnote: rates of 1/sqrt t need a bound on |g| known beforehand, and on heavy tails that costs sqrt n."""

from __future__ import annotations

import math

import numpy as np

from ftprl.adversaries import heavy_tail
from ftprl.baselines import GradientDescent
from ftprl.draw import Panel, Series
from ftprl.game import play
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.fits import ROOT2, ROUNDING, slope
from ftprl.paper.heavy_tail import TOLERANCE
from ftprl.schemes import CoordinateConstant

ALPHA = 1.5


def run(full: bool, step: Step) -> Outcome:
    """Measure both bounds and both learners on the heavy-tailed example, as n grows and as T grows."""
    sizes, rounds = (25, 50, 100, 200, *((400, 800) if full else ())), 800 if full else 300
    known: list[float] = []
    adaptive: list[float] = []
    regrets: list[tuple[float, float]] = []
    for n in sizes:
        step(f"n = {n}")
        instance = heavy_tail(n, rounds, ALPHA, drift=0.2, seed=n)
        D, M = instance.feasible.diameter(), float(np.linalg.norm(np.ones(n)))  # every feature may occur at once
        descent = GradientDescent(instance.feasible, lambda t, c=D / (M * ROOT2): c / math.sqrt(t), instance.start)  # type: ignore[misc]
        ours = play(
            FTPRL(instance.feasible, CoordinateConstant(ROOT2), instance.start), instance.losses()
        ).certificate()
        theirs = play(descent, instance.losses()).certificate()
        assert ours.closed_form_strong is not None
        known.append(ROOT2 * D * M * math.sqrt(rounds))
        adaptive.append(ours.closed_form_strong)
        regrets.append((theirs.regret, ours.regret))
    over = max(max(r / b, s / c) for (r, s), b, c in zip(regrets, known, adaptive, strict=True))
    return Outcome(
        [
            Check("rates 1/sqrt t: exponent of n in sqrt 2 D M sqrt T", slope(sizes, known), ">=", 1 - ROUNDING),
            Check("rates from |g|²: exponent of n in sqrt 2 D sqrt G", slope(sizes, adaptive), "<=", 0.5 + TOLERANCE),
            Check("regret of either over its bound, largest", over, "<=", 1 + ROUNDING),
        ],
        panels=[
            Panel(
                f"Heavy-tailed features, T = {rounds}",
                "coordinates n",
                "bound, regret",
                [
                    Series("rates 1/sqrt t: bound, order n sqrt T", sizes, known, dashed=True, colour=1),
                    Series("rates from |g|²: bound, order sqrt(nT)", sizes, adaptive, dashed=True, colour=0),
                    Series("rates 1/sqrt t: regret", sizes, [r for r, _ in regrets], points=True, colour=1),
                    Series("rates from |g|²: regret", sizes, [s for _, s in regrets], points=True, colour=0),
                ],
                log=True,
                ticks=[(n, str(n)) for n in sizes],
                legend="below",
            )
        ],
        numbers=[
            (
                "M must hold for every round: all features may occur at once, so M = sqrt n. Rounds in which they do"
                f" are rare: over {rounds} rounds and n = {sizes[-1]}, M sqrt T is {known[-1] / adaptive[-1]:.1f} times"
                " sqrt G."
            )
        ],
    )


STATEMENT = Statement(
    name="square-root-rates",
    title="Rates of 1/sqrt t give O(n sqrt T) on heavy tails; O(sqrt(nT)) needs a rate based on |g|²",
    place="Section 1.2, footnote",
    claim="On the heavy-tailed example the bound O(D M sqrt T) of a rate 1/sqrt t is O(n sqrt T), since D and M are"
    " both sqrt n; a global rate based on the squared gradients has O(sqrt(nT)).",
    instance="The heavy-tailed example with alpha = 1.5 and random signs that lean, n from 25 to 200 (full: 800):"
    " gradient descent with rate D / (M sqrt(2t)), and FTPRL with one rate.",
    measured="Fitted exponents of n: of sqrt 2 D M sqrt T at least 1, of sqrt 2 D sqrt G at most 1/2 + 0.06; both"
    " regrets at most their bounds.",
    code="ftprl.adversaries.heavy_tail",
    run=run,
    tests="tests/paper/test_missing_statements.py",
)
