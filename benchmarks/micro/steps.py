"""FTPRL on larger sets: a round with its ledger, and what is built once; the times of two versions in turn.

    python benchmarks/micro/steps.py [--rounds 30] [--json PATH]
    python benchmarks/micro/steps.py --before OTHER/bin/python --repeats 3

With `--before`, the interpreter of an environment with another version, every case runs in a process of its own with
each version in turn, `--repeats` times; the table has the medians. Times are processor time of one thread, in
milliseconds: of a round the median after the first few, of a construction that of one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: one thread, so that processor time is the cost

import numpy as np

from ftprl import FTPRL, Game, john
from ftprl.schemes import CoordinateConstant, Diagonal, Full, Scheme, Sketch
from ftprl.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    Halfspace,
    Intersection,
    L1Ball,
    L2Ball,
    LpBall,
    Polytope,
    Simplex,
)


@dataclass(frozen=True)
class Rounds:
    """Rounds of FTPRL on a set; `first` rounds are played before the clock starts."""

    feasible: Callable[[], ConvexSet]
    scheme: Scheme
    first: int = 3
    limit: float | None = None  # milliseconds
    factor: float | None = None  # times faster than before
    before: bool = True  # whether the old version can play it at all

    def measure(self, rounds: int) -> float:
        feasible = self.feasible()
        rng = np.random.default_rng(0)
        lean = 0.2 * rng.normal(size=feasible.dim)
        game = Game(FTPRL(feasible, self.scheme))
        times: list[float] = []
        for _ in range(rounds + self.first):
            g = rng.normal(size=feasible.dim) + lean
            began = time.process_time()
            game.observe(g)
            times.append(time.process_time() - began)
        return 1e3 * statistics.median(times[self.first :])


@dataclass(frozen=True)
class Once:
    """Something that is built once."""

    prepare: Callable[[], ConvexSet]
    build: Callable[[ConvexSet], object]
    limit: float | None = None
    factor: float | None = None
    before: bool = True

    def measure(self, rounds: int) -> float:
        given = self.prepare()
        began = time.process_time()
        self.build(given)
        return 1e3 * (time.process_time() - began)


def ellipsoid(n: int) -> Ellipsoid:
    """Axes in directions of their own, their lengths over two decades."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(n, n)))[0]
    return Ellipsoid(np.geomspace(1.0, 100.0, n)[:, None] * turn)


def pairs_of_faces(dim: int, faces: int, seed: int = 1) -> Polytope:
    """Pairs of parallel faces in random directions around the origin."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(faces // 2, dim))
    half /= np.linalg.norm(half, axis=1)[:, None]
    return Polytope(np.vstack((half, -half)), rng.uniform(0.5, 1.5, size=2 * len(half)))


def cut(inner: ConvexSet, low: float, high: float) -> object:
    """The set inside a box, with its widths and start."""
    F = Intersection(inner, Box(low, high, dim=inner.dim))
    return F.widths(), F.start()


N = 10_000
CASES: dict[str, Rounds | Once] = {
    "L1Ball / Diagonal, n=1000": Rounds(lambda: L1Ball(1000), Diagonal()),
    "CappedSimplex / Diagonal, n=1000": Rounds(lambda: CappedSimplex(1000, 0.01), Diagonal()),
    "LpBall 1.2 / Diagonal, n=10000": Rounds(lambda: LpBall(N, 1.2), Diagonal(), limit=10),
    "LpBall 1.5 / Diagonal, n=10000": Rounds(lambda: LpBall(N, 1.5), Diagonal(), limit=10),
    "LpBall 4 / Diagonal, n=10000": Rounds(lambda: LpBall(N, 4.0), Diagonal(), limit=10),
    "Ellipsoid / CoordinateConstant, n=1000": Rounds(lambda: ellipsoid(1000), CoordinateConstant(), limit=2),
    "L2Ball / Full, n=200": Rounds(lambda: L2Ball(200), Full(), factor=4),
    "L2Ball / Full, n=200, after 200 rounds": Rounds(lambda: L2Ball(200), Full(), 200, factor=4),
    "Box / Full, n=200": Rounds(lambda: Box(-1, 1, dim=200), Full(), factor=4),
    "Box / Full, n=200, after 200 rounds": Rounds(lambda: Box(-1, 1, dim=200), Full(), 200, factor=4),
    "L2Ball / Sketch(10), n=1000": Rounds(lambda: L2Ball(1000), Sketch(10)),
    "L2Ball / Sketch(10), n=10000": Rounds(lambda: L2Ball(N), Sketch(10), 25, limit=3, before=False),
    "widths of a Polytope, 1000 faces, n=100": Once(
        lambda: pairs_of_faces(100, 1000), lambda F: F.widths(), limit=2000
    ),
    "Intersection(L2Ball, Box), n=10000": Once(lambda: L2Ball(N), lambda F: cut(F, -0.3, 0.6), limit=100, before=False),
    "Intersection(LpBall 3, Box), n=10000": Once(
        lambda: LpBall(N, 3), lambda F: cut(F, 1e-3, 0.6), limit=100, before=False
    ),
    "Intersection(Simplex, Box), n=10000": Once(
        lambda: Simplex(N), lambda F: cut(F, 0.2 / N, 2 / N), limit=100, before=False
    ),
    "Intersection(Halfspace, Box), n=10000": Once(
        lambda: Halfspace(np.arange(N) - N / 2.2, 0.1), lambda F: cut(F, -1, 1), limit=100, before=False
    ),
    "Intersection(L2Ball, Box), n=1000": Once(lambda: L2Ball(1000), lambda F: cut(F, -0.3, 0.6)),
    "john of a Polytope, 20 faces, n=6": Once(lambda: pairs_of_faces(6, 20), john, limit=5000),
}


def in_turn(name: str, pythons: list[str], rounds: int, repeats: int) -> list[float]:
    """The median time of a case for each interpreter, each run in a process of its own."""
    times: list[list[float]] = [[] for _ in pythons]
    for _ in range(repeats):
        for python, kept in zip(pythons, times, strict=True):
            command = [python, __file__, "--case", name, "--rounds", str(rounds)]
            kept.append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    return [statistics.median(t) for t in times]


def row(name: str, now: float, before: float | None) -> str:
    """One line of the table: times, how many times faster, and what was asked."""
    case = CASES[name]
    faster = "" if before is None else f"{before / now:.1f}x"
    asked, met = "", True
    if case.limit is not None:
        asked, met = f"<= {case.limit:g} ms", now <= case.limit
    elif case.factor is not None and before is not None:
        asked, met = f">= {case.factor:g}x", before >= case.factor * now
    verdict = "" if not asked else (": met" if met else ": MISSED")
    shown = "-" if before is None else f"{before:.2f}"
    return f"{name:<42}{shown:>12}{now:>10.2f}{faster:>9}  {asked}{verdict}".rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", help="interpreter of an environment with the other version")
    parser.add_argument("--case", help="measure one case and print its milliseconds")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.case:
        print(CASES[options.case].measure(options.rounds))
        return
    print(f"{'milliseconds':<42}{'before':>12}{'now':>10}{'faster':>9}")
    kept: dict[str, dict[str, float | None]] = {}
    for name, case in CASES.items():
        if options.only not in name:
            continue
        both = options.before is not None and case.before
        pythons = [sys.executable, *([options.before] if both else [])]
        times = in_turn(name, pythons, options.rounds, options.repeats)
        kept[name] = {"now": times[0], "before": times[1] if both else None}
        print(row(name, times[0], kept[name]["before"]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
