"""Beyond the paper: losses with an L1 and an L2 term, as in FTRL-Proximal."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL, Composite
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import KINDS, ROUNDING, Oracle, answers, play, ratio, spread_rounds, stream
from ftprl.schemes import CoordinateConstant, Diagonal, Scheme
from ftprl.sets import Box, ConvexSet, L1Ball, L2Ball

Vector = NDArray[np.float64]


def sides(F: ConvexSet, scheme: Scheme, psi: Composite, oracles: list[Oracle]) -> tuple[float, float]:
    """Return the regret of f_t + Psi and r(x*) + ½ stability, from the plays; Psi(x_1) = 0."""
    history = play(FTPRL(F, scheme, start=np.zeros(F.dim), composite=psi), oracles)
    T = len(history.g)
    best = psi.minimise(F, np.zeros(()), history.gradient, F.start(), T).x
    own_loss = math.fsum(psi.value(x) for x in history.x[:-1])
    return history.regret(best) + own_loss - T * psi.value(best), history.r(best) + 0.5 * sum(history.lengths())


def counts(T: int, n: int, at: list[int]) -> tuple[dict[str, list[int]], int, float]:
    """Return counts of nonzero weights over the rounds, with l1 in the step and with its subgradient.

    Five coordinates are useful. The subgradient of l1 |x| can be added to the gradient like any loss, but then plays
    are hardly ever exactly 0. Also returned are the final number of useless nonzero weights and the smallest useful
    weight.
    """
    rng = np.random.default_rng(21)
    lean = np.where(np.arange(n) < 5, 0.5, 0.0)
    gs, F = rng.normal(size=(T, n)) - lean, Box(-1, 1, dim=n)
    zero, l1 = np.zeros(n), 0.15
    penalised: list[Oracle] = [lambda x, g=g: g + l1 * np.sign(x) for g in gs]  # type: ignore[misc]
    runs = {
        "l1 as a subgradient": play(FTPRL(F, Diagonal(), start=zero), penalised),
        "l1 in the step": play(FTPRL(F, Diagonal(), start=zero, composite=Composite(l1, per_round=True)), answers(gs)),
    }
    shown = {name: [int(np.count_nonzero(history.x[t])) for t in at] for name, history in runs.items()}
    last = runs["l1 in the step"].x[-1]
    return shown, int(np.count_nonzero(last[5:])), float(np.abs(last[:5]).min())


def run(full: bool, step: Step) -> Outcome:
    """Measure the regret of composite losses over its bound, and count exact zeros."""
    shares: list[float] = []
    for name, F in {"box": Box(-1, 1.5, dim=3), "L2 ball": L2Ball(3), "L1 ball": L1Ball(3, 2.0)}.items():
        for i, kind in enumerate(KINDS):
            step(f"{name}, {kind} gradients")
            for l1, l2 in ((0.3, 0.0), (0.0, 0.7), (0.2, 1.5)):
                for scheme in (Diagonal(), CoordinateConstant()):
                    oracles = list(stream(kind, F, 200 if full else 25, i))
                    shares.append(ratio(*sides(F, scheme, Composite(l1, l2, per_round=True), oracles)))
    step("zeros")
    T, n = (3000, 200) if full else (800, 60)
    at = spread_rounds(T, 30)
    shown, useless, weakest = counts(T, n, at)
    return Outcome(
        [
            Check("largest regret of f + Psi / (r(x*) + ½ stability)", max(shares), "<=", 1 + ROUNDING),
            Check("useless coordinates with a weight at the end, of all", useless / (n - 5), "<=", 0.05),
            Check("smallest useful weight at the end", weakest, ">=", 0.5),
        ],
        panels=[
            Panel(
                f"Weights that are not 0: five of {n} coordinates are useful",
                "round t",
                "how many",
                [
                    *(Series(name, at, values, points=True) for name, values in shown.items()),
                    Series("useful coordinates", [1, T], [5, 5], dashed=True, colour=6),
                ],
                log="x",
            )
        ],
        numbers=[f"{len(shares)} games with l1, l2 and both."],
    )


STATEMENT = Statement(
    name="composite",
    title="L1 and L2 terms in every loss: the same bound, and exact zeros",
    place="beyond the paper (FTRL-Proximal)",
    claim="For losses g_t·x + Psi(x) with Psi >= 0 = Psi(x_1), the step that keeps t Psi as it is, without a"
    " subgradient of it, has a regret of at most r(x*) + ½ stability, in which Psi does not occur. With an L1 term it"
    " plays exact zeros.",
    instance="A box, an L2 and an L1 ball, six kinds of gradients, L1, L2 and both, two schemes; then normal"
    " gradients of which five coordinates lean to a side.",
    measured="Regret of the whole losses over the bound, at most 1 up to 1e-9. At the end at most 5 % of the useless"
    " coordinates have a weight, and every useful one has at least 0.5.",
    code="ftprl.Composite",
    run=run,
    tests="tests/theory/test_composite.py",
)
