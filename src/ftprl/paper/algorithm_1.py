"""Algorithm 1 (FTPRL-Diag), as printed and as corrected."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL
from ftprl.paper.base import Check, Outcome, Statement, Step, Verdict
from ftprl.paper.instances import ROUNDING, GameRecord, answers, play, ratio, slope
from ftprl.schemes import Diagonal
from ftprl.sets import Box

Vector = NDArray[np.float64]


def algorithm(gs: Vector, half: Vector, *, sign: float, careful: bool) -> GameRecord:
    """Run the pseudo-code line by line on the box |x_i| <= half_i and record every round.

    As printed u = (g_{1:t} - q)/lambda: sign = +1. As corrected u = (q - g_{1:t})/lambda: sign = -1. With `careful`,
    coordinates without a gradient so far stay where they are.
    """
    n = gs.shape[1]
    x, q, S, G, total = (np.zeros(n) for _ in range(5))
    kept = GameRecord(Box(-half, half), [x])
    with np.errstate(divide="ignore", invalid="ignore"):
        for g in gs:
            G = G + g * g
            weight = 2 / (2 * half) * np.sqrt(G) - total
            total, q, S = total + weight, q + x * weight, S + g
            u = sign * (S - q) / total
            still = (G == 0) | (half == 0)
            x = np.where(still & careful, x, np.clip(u, -half, half))
            kept.g.append(g)
            kept.Q.append(weight)
            kept.x.append(x)
    return kept


def rows(kind: str, T: int) -> Vector:
    """Return gradients in two dimensions, shape (T, 2): "equal", "leaning", or with a coordinate without any
    gradient.
    """
    rng = np.random.default_rng(1)
    if kind == "equal":
        return np.ones((T, 2))
    noise = rng.normal(size=(T, 2))
    return noise + 0.5 if kind == "leaning" else noise * [1.0, 0.0]


def share(history: GameRecord) -> float:
    """Return the regret over the corollary's bound; infinite for plays that are not numbers."""
    share = ratio(history.regret(), 2 * history.products())
    return share if np.isfinite(share) else np.inf


def run(full: bool, step: Step) -> Outcome:
    """Measure the regret of both readings over the corollary's bound, and the corrected plays against the library's."""
    half = np.array([1.5, 0.5])
    lengths = [int(T) for T in np.geomspace(10, 30_000 if full else 3000, 6).round()]
    printed, corrected, library, bounds = [], [], [], []
    for T in lengths:
        step(f"{T} equal gradients")
        gs = rows("equal", T)
        wrong = algorithm(gs, half, sign=1.0, careful=False)
        printed.append(wrong.regret())
        corrected.append(algorithm(gs, half, sign=-1.0, careful=True).regret())
        library.append(play(FTPRL(Box(-half, half), Diagonal(), start=[0, 0]), answers(gs)).regret())
        bounds.append(2 * wrong.products())
    shares, apart, lost = [], [], 0
    for kind, widths in (("leaning", half), ("sparse", half), ("leaning", half * [1, 0])):
        gs = rows(kind, 500)
        right = algorithm(gs, widths, sign=-1.0, careful=True)
        mine = play(FTPRL(Box(-widths, widths), Diagonal(), start=[0, 0]), answers(gs))
        apart.append(float(np.abs(np.array(right.x) - np.array(mine.x)).max()))
        shares.append(share(mine))
        lost += not np.isfinite(algorithm(gs, widths, sign=-1.0, careful=False).x).all()
    slopes = slope(lengths[2:], printed[2:]), slope(lengths[2:], bounds[2:])
    return Outcome(
        [
            Check("as printed: regret / bound, equal gradients", max(map(ratio, printed, bounds)), "<=", 1 + ROUNDING),
            Check("as printed but for the sign: streams with NaN plays", lost, "<=", 0),
        ],
        [
            Check("corrected: regret / bound, equal gradients", max(map(ratio, corrected, bounds)), "<=", 1 + ROUNDING),
            Check("the library: regret / bound, all streams", max(*shares, *map(ratio, library, bounds)), "<=", 1),
            Check("corrected against the library: largest distance of plays", max(apart), "<=", ROUNDING),
        ],
        panels=[
            Panel(
                "Equal gradients, g_t = (1, 1)",
                "rounds T",
                "regret (units of loss)",
                [
                    Series(f"as printed, slope {slopes[0]:.2f}", lengths, printed, points=True),
                    Series("as corrected", lengths, corrected, points=True),
                    Series(f"the corollary's bound, slope {slopes[1]:.2f}", lengths, bounds, dashed=True, colour=6),
                ],
                log=True,
            )
        ],
        numbers=[f"After {lengths[-1]} rounds: {printed[-1]:.6g} as printed, {corrected[-1]:.3g} as corrected."],
    )


STATEMENT = Statement(
    name="algorithm-1",
    title="Algorithm 1, FTPRL-Diag as printed and as corrected",
    place="Algorithm 1",
    claim="The pseudo-code of FTPRL-Diag plays the points for which Corollary 2 bounds the regret.",
    instance="A box in two dimensions: equal gradients; leaning ones; a coordinate that no gradient touches; a"
    " coordinate of width 0.",
    measured="Regret over the corollary's bound, at most 1, for the pseudo-code as printed and as corrected; NaN"
    " plays; the corrected plays against the library's, equal to 1e-9.",
    code="ftprl.schemes.Diagonal",
    run=run,
    expected=Verdict.CORRECTED,
    correction="The unconstrained step is u = (q - g_{1:t}) / lambda, not (g_{1:t} - q) / lambda, which goes uphill. A"
    " coordinate that was never touched (0/0) or that has no width stays where it is; that is exact, and no"
    " small"
    " number needs to be added.",
    tests="tests/theory/test_errata.py",
)
