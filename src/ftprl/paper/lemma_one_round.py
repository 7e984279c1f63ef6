"""Lemma 4: one gradient moves the play by little, g·(x1 - x2) <= g'Q^-1 g."""

from __future__ import annotations

import numpy as np

from ftprl import psd
from ftprl.paper.base import Check, Outcome, Statement, Step
from ftprl.paper.instances import ROUNDING, ratio, sets_with_metrics, sides


def run(full: bool, step: Step) -> Outcome:
    """Measure g·(x1 - x2) over g'Q^-1 g for steps that differ by the gradient g."""
    rng = np.random.default_rng(4)
    left: list[float] = []
    right: list[float] = []
    firm: list[float] = []
    for F, Q in sets_with_metrics(2000 if full else 60, rng, step):
        v = rng.normal(size=F.dim) * np.sqrt(psd.largest(Q))
        g = rng.normal(size=F.dim) * 10.0 ** rng.uniform(-2, 1)
        d = F.argmin(Q, v, F.start()) - F.argmin(Q, v + g, F.start())
        left.append(float(g @ d))
        right.append(float(g @ psd.solve(Q, g)))
        scale = max(right[-1], psd.largest(Q) * ROUNDING)
        firm.append((psd.quad(Q, d) - left[-1]) / scale)
    shares = [ratio(a, b) for a, b in zip(left, right, strict=True)]
    return Outcome(
        [
            Check("largest g·(x1 - x2) / g'Q^-1 g", max(shares), "<=", 1 + 10 * ROUNDING),
            Check("the same, where nothing is cut off: it is reached", max(shares), ">=", 0.999),
            Check("firm form: (|x1 - x2|² - g·(x1 - x2)) / g'Q^-1 g", max(firm), "<=", 10 * ROUNDING),
        ],
        panels=[
            sides(
                "Both sides on random sets, matrices and gradients",
                [max(v, 1e-6) for v in left],
                right,
                "g·(x1 - x2) (at least 1e-6)",
                "g'Q^-1 g",
                log=True,
            )
        ],
        numbers=[f"{len(shares)} instances; the median share is {np.median(shares):.2f}."],
    )


STATEMENT = Statement(
    name="lemma-one-round",
    title="One gradient moves the play by little",
    place="Lemma 4",
    claim="If x1 and x2 minimise ½ x'Qx + v·x and ½ x'Qx + (v + g)·x over a convex set, then g·(x1 - x2) is at"
    " most g' Q^-1 g. Beyond the paper, |x1 - x2|² in the norm of Q is at most g·(x1 - x2).",
    instance="Nine sets; random Q, v and g, with minimisers inside the set and on its boundary.",
    measured="The left side over the right: at most 1, up to 1e-8 for the rounding of small steps; at least 0.999"
    " once, since both are equal where the boundary is not met.",
    code="ftprl.sets",
    run=run,
    tests="tests/theory/test_lemmas.py",
)
