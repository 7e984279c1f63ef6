"""A round of FTPRL on larger sets, ledger on: microseconds, the median of the rounds after the first few.

    python benchmarks/micro/steps.py [--rounds 30] [--json PATH]

To compare two versions, run this file with each of them in turn, several times.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ftprl import FTPRL, Game
from ftprl.schemes import CoordinateConstant, Diagonal, Full, Scheme
from ftprl.sets import Box, CappedSimplex, ConvexSet, Ellipsoid, L1Ball, L2Ball, LpBall

Case = tuple[Callable[[], ConvexSet], Scheme]


def ellipsoid(n: int) -> Ellipsoid:
    """Axes in directions of their own, their lengths over two decades."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    return Ellipsoid(np.geomspace(1.0, 100.0, n)[:, None] * turn)


CASES: dict[str, Case] = {
    "L1Ball / Diagonal, n=1000": (lambda: L1Ball(1000), Diagonal()),
    "CappedSimplex / Diagonal, n=1000": (lambda: CappedSimplex(1000, 0.01), Diagonal()),
    "LpBall 1.2 / Diagonal, n=10000": (lambda: LpBall(10_000, 1.2), Diagonal()),
    "LpBall 1.5 / Diagonal, n=10000": (lambda: LpBall(10_000, 1.5), Diagonal()),
    "LpBall 4 / Diagonal, n=10000": (lambda: LpBall(10_000, 4.0), Diagonal()),
    "Ellipsoid / CoordinateConstant, n=1000": (lambda: ellipsoid(1000), CoordinateConstant()),
    "L2Ball / Full, n=200": (lambda: L2Ball(200), Full()),
    "Box / Full, n=50": (lambda: Box(-1, 1, dim=50), Full()),
}


def measure(case: Case, rounds: int) -> float:
    """The median time of a round, in microseconds."""
    feasible, scheme = case[0](), case[1]
    rng = np.random.default_rng(0)
    lean = 0.2 * rng.normal(size=feasible.dim)
    game = Game(FTPRL(feasible, scheme))
    times: list[float] = []
    for _ in range(rounds + 3):
        g = rng.normal(size=feasible.dim) + lean
        began = time.perf_counter()
        game.observe(g)
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times[3:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    medians = {name: measure(case, options.rounds) for name, case in CASES.items()}
    for name, us in medians.items():
        print(f"{name:<42}{us:>12.0f} us")
    if options.json:
        options.json.write_text(json.dumps(medians, indent=1))


if __name__ == "__main__":
    main()
