"""A round of FTPRL, ledger on, against the same step through a CVXPY problem built once with parameters.

Both are timed in one run, round by round in turn, on the same stream; what counts is the ratio.

    python benchmarks/micro/rounds.py [--rounds 200] [--json PATH]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from ftprl.game import Game
from ftprl.learner import FTPRL, State
from ftprl.schemes import Diagonal
from ftprl.sets import Box, ConvexSet, L2Ball, Polytope, Simplex

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A set, how CVXPY writes it, and what is asked of a round: microseconds at most, times faster at least."""

    name: str
    feasible: ConvexSet
    write: Callable[[cp.Variable], list[cp.Constraint]]
    limit: float | None
    factor: float


@dataclass(frozen=True)
class Row:
    """One line of the table; times in microseconds."""

    case: str
    ftprl: float
    ftprl_p90: float
    cvxpy: float
    ratio: float
    worst_difference: float
    limit: float | None
    factor: float

    @property
    def met(self) -> bool:
        return (self.limit is None or self.ftprl <= self.limit) and self.ratio >= self.factor


def polytope(dim: int, faces: int, seed: int = 1) -> Polytope:
    """`faces` random faces around the origin: a cross-polytope-like pair of normals makes it bounded."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(faces // 2, dim))
    half /= np.linalg.norm(half, axis=1)[:, None]
    return Polytope(np.vstack((half, -half)), rng.uniform(0.5, 1.5, size=2 * len(half)))


def cases() -> list[Case]:
    n = 1000
    P = polytope(50, 100)
    return [
        Case("Box / Diagonal, n=1000", Box(-1, 1, dim=n), lambda x: [x >= -1, x <= 1], 100, 20),
        Case("L2Ball / Diagonal, n=1000", L2Ball(n), lambda x: [cp.norm(x, 2) <= 1], 400, 20),
        Case("Simplex / Diagonal, n=1000", Simplex(n), lambda x: [x >= 0, cp.sum(x) == 1], 400, 20),
        Case("Polytope / Diagonal, n=50, 100 faces", P, lambda x: [P.C @ x <= P.d], None, 8),
    ]


def measure(case: Case, rounds: int) -> Row:
    n = case.feasible.dim
    x, root, z = cp.Variable(n), cp.Parameter(n, nonneg=True), cp.Parameter(n)
    objective = 0.5 * cp.sum_squares(cp.multiply(root, x)) + z @ x
    problem = cp.Problem(cp.Minimize(objective), case.write(x))
    rng = np.random.default_rng(0)
    lean = 0.2 * rng.normal(size=n)
    game = Game(FTPRL(case.feasible, Diagonal()))
    ours: list[float] = []
    theirs: list[float] = []
    worst = 0.0
    for t in range(rounds + 5):
        g = rng.normal(size=n) + lean
        began = time.perf_counter()
        game.observe(g)
        ours.append(time.perf_counter() - began)
        if t % max(rounds // 25, 1):
            continue
        state = game.state
        assert isinstance(state, State)
        began = time.perf_counter()
        root.value, z.value = np.sqrt(state.total), state.z
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem.solve()
        theirs.append(time.perf_counter() - began)
        if x.value is not None:
            worst = max(worst, float(np.abs(x.value - state.x).max()))
    us = [1e6 * s for s in ours[5:]]
    other = 1e6 * statistics.median(theirs[1:])
    median = statistics.median(us)
    p90 = statistics.quantiles(us, n=10)[-1]
    return Row(case.name, median, p90, other, other / median, worst, case.limit, case.factor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [measure(case, options.rounds) for case in cases()]
    print(f"{'step':<38}{'ftprl us':>10}{'p90':>9}{'CVXPY us':>11}{'ratio':>8}{'|dx|':>9}  asked")
    for r in rows:
        asked = f">= {r.factor:g}x" + ("" if r.limit is None else f", <= {r.limit:g} us")
        verdict = "met" if r.met else "MISSED"
        print(
            f"{r.case:<38}{r.ftprl:>10.1f}{r.ftprl_p90:>9.1f}{r.cvxpy:>11.0f}{r.ratio:>8.1f}"
            f"{r.worst_difference:>9.1e}  {asked}: {verdict}"
        )
    if options.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__, "cvxpy": cp.__version__}
        options.json.write_text(json.dumps({"versions": versions, "rows": [asdict(r) for r in rows]}, indent=1))


if __name__ == "__main__":
    main()
