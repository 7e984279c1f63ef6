"""Theorem 3: FTPRL-Diag on any set, through a box inside it and a box around it."""

from __future__ import annotations

import numpy as np

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import KINDS, ROOT2, play, stream
from ftprl.paper.shapes import names_of, shapes
from ftprl.schemes import Diagonal

SOLVER = 1e-6  # relative accuracy of the convex programs behind the best diagonal


def run(full: bool, step: Step) -> Outcome:
    """Measure bound and regret of FTPRL-Diag over the best diagonal in hindsight, against sqrt 2 beta, for each set."""
    every = shapes(full)
    bounds: list[float] = []
    regrets: list[float] = []
    fits: list[float] = []
    for shape in every:
        step(shape.name)
        F, inner = shape.feasible, shape.feasible.inner_box()
        assert inner is not None
        corners = [np.where(np.random.default_rng(i).random(F.dim) < 0.5, inner.lower, inner.upper) for i in range(8)]
        fits.append(max(float(not F.contains(x, 1e-7)) for x in corners))
        fits.append(float((F.widths() / inner.widths()).max() / shape.beta - 1))
        rows = []
        for i, kind in enumerate(KINDS if full else KINDS[:3]):
            history = play(FTPRL(F, Diagonal()), stream(kind, F, 400 if full else 40, i))
            bound = shape.ratio(np.square(history.g).sum(axis=0))
            rows.append((bound, bound * history.regret() / (2 * history.products())))
        bounds.append(max(bound for bound, _ in rows))
        regrets.append(max(regret for _, regret in rows))
    limits = [ROOT2 * shape.beta for shape in every]
    numbers = np.arange(1, len(every) + 1)
    over = max(b / limit for b, limit in zip(bounds, limits, strict=True))
    return Outcome(
        [
            Check("largest (bound / best diagonal) / (sqrt 2 beta)", over, "<=", 1 + SOLVER),
            Check("largest (regret / best diagonal) / (sqrt 2 beta)", _over(regrets, limits), "<=", 1 + SOLVER),
            Check("inner boxes: outside by, or wider than beta says by", max(fits), "<=", SOLVER),
        ],
        panels=[
            Panel(
                "FTPRL-Diag on sets that are no boxes",
                "set, from the smallest beta to the largest",
                "over the best diagonal in hindsight",
                [
                    Series("sqrt 2 beta: the claim", numbers - 0.15, limits, line=False, colour=6),
                    Series("bound, worst of the games", numbers, bounds, line=False, colour=0),
                    Series("regret, worst of the games", numbers + 0.15, regrets, line=False, colour=1),
                ],
                ticks=names_of(every),
                xlim=(0.5, len(every) + 0.5),
                legend="beside",
            )
        ],
        numbers=["Sets: " + ", ".join(f"{i} {s.name} (beta {s.beta:.2f})" for i, s in enumerate(every, 1)) + "."],
    )


def _over(values: list[float], limits: list[float]) -> float:
    """Return the largest value relative to its limit."""
    return max(value / limit for value, limit in zip(values, limits, strict=True))


STATEMENT = Statement(
    name="arbitrary-sets",
    title="FTPRL-Diag on any set: within sqrt 2 beta of the best diagonal",
    place="Theorem 3, Section 3.2",
    claim="If a box inside F and a box around F differ in width by a factor of at most beta in every coordinate,"
    " the bound of FTPRL-Diag on F is within sqrt 2 beta of the best bound that diagonal matrices could have had in"
    " hindsight.",
    instance="L1, L2 and L4 balls, for which beta is n^(1/p), and random polytopes, for which it is found by a"
    " linear program; three kinds of gradients (six in a full run).",
    measured="The bound 2 sum D_i sqrt(G_i), and the regret, over the best diagonal in hindsight (closed forms on"
    " balls, a convex program over the vertices elsewhere): at most sqrt 2 beta, to the solver's 1e-6.",
    code="ftprl.schemes.Diagonal",
    run=run,
    tests="tests/theory/test_certificates.py, tests/theory/test_geometry.py",
)
