"""Random games over every set and scheme, at scales from 1e-12 to 1e12: the chain of bounds must hold in each.

    python fuzz/games.py --games 20000
    python fuzz/games.py --minutes 5 --seed 7

A game is drawn from its number alone, so that a failure is played again with `--only NUMBER`. Checked in every game:
plays lie in the set, and regret <= tight <= bound <= theorem, bound <= worst case, all of them finite. Games run in
`--jobs` processes; one that takes more than `--limit` seconds of processor time is given up, and listed as too slow. In
some games gradients come late.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: one process per core is enough

import numpy as np
from numpy.typing import NDArray

from ftprl import FTPRL, Certificate, Game, Preconditioned, SoloFTRL, StronglyAdaptive
from ftprl.errors import FtprlError
from ftprl.learner import Learner
from ftprl.schemes import (
    BestBound,
    BlockConstant,
    CentredBestBound,
    CoordinateConstant,
    Diagonal,
    Fixed,
    Full,
    Scheme,
    Sketch,
)
from ftprl.sets import (
    Birkhoff,
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    FlowPolytope,
    Halfspace,
    Intersection,
    L1Ball,
    L2Ball,
    LpBall,
    NuclearBall,
    OracleSet,
    Permutahedron,
    Polytope,
    Preimage,
    Product,
    Simplex,
    Spectrahedron,
)

Vector = NDArray[np.float64]
Rng = np.random.Generator

ROUNDING = 1e-13  # of the numbers compared: the bounds are rounded outwards, the regret is not
FEASIBLE = 1e-12  # of the size of the set
GAP = 1e-6  # of B_R, in all rounds together


def _turn(rng: Rng, n: int, decades: float) -> Vector:
    """A matrix with singular values over that many decades."""
    a, b = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return np.asarray(a @ np.diag(10.0 ** rng.uniform(-decades / 2, decades / 2, n)) @ b)


def _polytope(rng: Rng, n: int, size: float) -> Polytope:
    C = np.vstack((rng.normal(size=(int(rng.integers(1, 5)), n)), np.eye(n), -np.eye(n)))
    wide = 10.0 ** rng.uniform(-3, 3, n) if rng.random() < 0.3 else np.ones(n)
    slack = np.concatenate((rng.uniform(0.5, 1.5, len(C) - 2 * n), wide, wide))
    return Polytope(C, size * slack)


def _flat(rng: Rng, n: int, size: float) -> Polytope:
    row = rng.uniform(0.5, 1.5, size=(1, n))
    C = np.vstack((np.eye(n), -np.eye(n)))
    return Polytope(C, size * np.concatenate((np.full(n, 2.0), np.zeros(n))), row, size * (row @ np.full(n, 0.6)))


class _Corners(OracleSet):
    """The hull of some points, of which only `vertex` is known."""

    def __init__(self, points: Vector) -> None:
        self.points = points

    @property
    def dim(self) -> int:
        return int(self.points.shape[1])

    def vertex(self, g: Vector) -> Vector:
        return np.asarray(self.points[(self.points @ g).argmin()])


def _network(rng: Rng, n: int) -> FlowPolytope:
    pairs = [(a, b) for a in range(n + 1) for b in range(a + 1, n + 1)]
    more = [pairs[k] for k in rng.permutation(len(pairs))[:n]]
    return FlowPolytope([*((a, a + 1) for a in range(n)), *more], 0, n)


def _center(rng: Rng, n: int, size: float) -> Vector | None:
    return None if rng.random() < 0.5 else np.asarray(size * rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2))


SETS: dict[str, Callable[[Rng, int, float], ConvexSet]] = {
    "box": lambda r, n, s: Box(-s * 10.0 ** r.uniform(-6, 6, n), s * 10.0 ** r.uniform(-6, 6, n)),
    "box away from 0": lambda r, n, s: Box(s * r.uniform(0.5, 1, n), s * r.uniform(1, 3, n)),
    "L2": lambda r, n, s: L2Ball(n, s, _center(r, n, s)),
    "L1": lambda r, n, s: L1Ball(n, s, _center(r, n, s)),
    "Lp": lambda r, n, s: LpBall(
        n, float(r.choice([1.01, 1.1, 1.2, 1.5, 1.9, 2.1, 3, 4, 10, 50, 100])), s, _center(r, n, s)
    ),
    "Linf": lambda r, n, s: LpBall(n, math.inf, s),
    "ellipsoid": lambda r, n, s: Ellipsoid(_turn(r, n, float(r.choice([1, 4, 8]))) / s, _center(r, n, s)),
    "axis-aligned ellipsoid": lambda r, n, s: Ellipsoid(np.diag(10.0 ** r.uniform(-3, 3, n)) / s),
    "preimage of L1": lambda r, n, s: Preimage(_turn(r, n, 2), L1Ball(n, s)),
    "preimage of box": lambda r, n, s: Preimage(_turn(r, n, 2), Box(-s, s, dim=n)),
    "diagonal preimage of L3": lambda r, n, s: Preimage(np.diag(10.0 ** r.uniform(-3, 3, n)), LpBall(n, 3, s)),
    "simplex": lambda r, n, s: Simplex(n, s),
    "capped simplex": lambda r, n, s: CappedSimplex(n, s * r.uniform(1.01, 3) / n, s),
    "polytope": _polytope,
    "flat polytope": _flat,
    "product": lambda r, n, s: Product(L2Ball(2, s), Simplex(n, s * 10.0 ** r.uniform(-3, 3)), Box(-s, s)),
    "product of balls": lambda r, n, s: Product(L2Ball(2, s), L2Ball(n, s * 10.0 ** r.uniform(-3, 3))),
    "L2 in box": lambda r, n, s: Intersection(L2Ball(n, s), Box(-0.3 * s, 0.6 * s, dim=n)),
    "L1 in box": lambda r, n, s: Intersection(L1Ball(n, s), Box(-0.3 * s, 0.6 * s, dim=n)),
    "Lp in box": lambda r, n, s: Intersection(
        LpBall(n, float(r.choice([1.2, 3, 10])), s), Box(0.01 * s, 0.8 * s, dim=n)
    ),
    "simplex in box": lambda r, n, s: Intersection(Simplex(n, s), Box(0.2 * s / n, 2 * s / n, dim=n)),
    "half-space in box": lambda r, n, s: Intersection(Halfspace(r.normal(size=n), 0.1 * s), Box(-s, s, dim=n)),
    "ellipsoid in box": lambda r, n, s: Intersection(Ellipsoid(_turn(r, n, 1) / s), Box(-0.5 * s, 0.4 * s, dim=n)),
    "polytope in box": lambda r, n, s: Intersection(_polytope(r, n, s), Box(-0.4 * s, 0.5 * s, dim=n)),
    "nuclear ball": lambda r, n, s: NuclearBall(2, 1 + n // 2, s),
    "spectrahedron": lambda r, n, s: Spectrahedron(2 + n // 4, s),
    "birkhoff": lambda r, n, s: Birkhoff(2 + n // 4),
    "permutahedron": lambda r, n, s: Permutahedron(s * r.normal(size=n)),
    "flow": lambda r, n, s: _network(r, n),
    "hull of points": lambda r, n, s: _Corners(s * r.normal(size=(n + 3, n)) * 10.0 ** r.uniform(-2, 2, n)),
}
SLOW = ("ellipsoid in box",)  # a conic solver in every round

SCHEMES: dict[str, Callable[[Rng, int], Scheme]] = {
    "constant": lambda r, n: CoordinateConstant(float(r.choice([1.0, 2**0.5, 2.0]))),
    "constant, centred": lambda r, n: CoordinateConstant(center=True),
    "diagonal": lambda r, n: Diagonal(float(r.choice([1.0, 2**0.5, 2.0]))),
    "diagonal, centred": lambda r, n: Diagonal(center=True),
    "full": lambda r, n: Full(),
    "full, delta": lambda r, n: Full(delta=1e-3),
    "full, centred": lambda r, n: Full(center=True),
    "sketch": lambda r, n: Sketch(int(r.integers(1, n + 2))),
    "fixed": lambda r, n: Fixed([np.eye(n) * 10.0 ** r.uniform(-12, 12)]),
    "best bound": lambda r, n: BestBound(),
    "best bound, const": lambda r, n: BestBound("const"),
    "block constant": lambda r, n: BlockConstant(),
}


@dataclass(frozen=True)
class Played:
    """One game: what was drawn, its certificate, and the largest distance of a play from the set, over its size."""

    name: str
    certificate: Certificate
    outside: float
    size: float  # sum |g|·D: what the losses could have been, against which rounding is measured


def _gradients(rng: Rng, n: int, rounds: int) -> Vector:
    """Normal rows, scaled by coordinate, by round or not at all, over up to 24 decades."""
    rows = rng.normal(size=(rounds, n)) + rng.normal(size=n) * float(rng.choice([0.0, 0.5, 3.0]))
    wide = float(rng.choice([0, 1, 4, 12]))
    kind = rng.integers(4)
    if kind == 0:
        rows = rows * 10.0 ** rng.uniform(-wide, wide, n)
    elif kind == 1:
        rows = rows * 10.0 ** rng.uniform(-wide, wide, (rounds, 1))
    elif kind == 2:
        rows = np.where(rng.random((rounds, n)) < 0.3, rows * 10.0 ** rng.uniform(-wide, wide, n), 0.0)
    return np.asarray(rows * 10.0 ** rng.uniform(-12, 12))


def _limits(rng: Rng, rows: Vector) -> Vector:
    """Bounds on each |g_i|, tight or loose by up to three decades, one per coordinate or the same for all."""
    top = np.abs(rows).max(axis=0)
    top = np.where(top > 0, top, top.max() or 1.0)
    if rng.random() < 0.3:
        top = top.max()
    return np.asarray(top * float(rng.choice([1.0, 1.0, 10.0 ** rng.uniform(0, 3)])))


def draw(number: int, seed: int = 0) -> tuple[str, Learner[Any], Vector, Vector | None]:
    """The learner, the gradients and the hints of a game."""
    rng = np.random.default_rng((seed, number))
    while True:
        kind, how = str(rng.choice(list(SETS))), str(rng.choice(list(SCHEMES)))
        if kind in SLOW and rng.random() < 0.8:
            continue
        size, n = 10.0 ** rng.uniform(-12, 12), int(rng.integers(2, 6))
        feasible = SETS[kind](rng, n, size)
        try:
            learner: Learner[Any] = FTPRL(feasible, SCHEMES[how](rng, feasible.dim))
            learner.init()
        except FtprlError:
            continue
        if rng.random() < 0.05:
            learner = Preconditioned(_turn(rng, feasible.dim, 2), learner)
        rows = _gradients(rng, feasible.dim, int(rng.integers(1, 40)))
        hints = None
        if number % 20 in (10, 13):  # not among SCHEMES: it takes no hints, and its limits come from the gradients
            learner = FTPRL(feasible, CentredBestBound(_limits(rng, rows)))
            try:
                learner.init()
            except FtprlError:  # a set that is not symmetric: draw another
                continue
            return f"{kind} / centred best bound", learner, rows, None
        if number % 20 == 7:
            return f"{kind} / SOLO", SoloFTRL(feasible, size * 10.0 ** rng.uniform(-2, 2)), rows, None
        if number % 40 == 9:
            spread = max(float(g @ (learner.feasible.vertex(-g) - learner.feasible.vertex(g))) for g in rows)
            return f"copies of {kind} / {how}", StronglyAdaptive(learner, 2 * spread or 1.0), rows, None
        if rng.random() < 0.2:
            hints = rows * (1 + 10.0 ** rng.uniform(-12, 0) * rng.normal(size=rows.shape))
        return f"{kind} / {how}", learner, rows, hints


def _observe_late(game: Game, rows: Vector, rng: Rng) -> Vector:
    """Play the first half with gradients that come late, out of order, and sometimes never; gives back the rest."""
    half = len(rows) // 2
    waiting: list[tuple[int, Vector]] = []
    for g in rows[:half]:
        waiting.append((game.play()[0], g))
        while waiting and rng.random() < 0.5:
            ticket, late = waiting.pop(int(rng.integers(len(waiting))))
            if rng.random() < 0.1:
                game.drop(ticket)
            else:
                game.observe(late, ticket=ticket)
    return rows[half:]


def play(number: int, seed: int = 0) -> Played:
    """Play one game to its end."""
    name, learner, rows, hints = draw(number, seed)
    all_rows = rows
    game = Game(learner, hint=None if hints is None else hints[0])
    outside = 0.0
    core = learner.core().feasible
    if hints is None and number % 5 == 0:
        rows = _observe_late(game, rows, np.random.default_rng((seed, number, 1)))
    for t, g in enumerate(rows):
        outside = max(outside, core.violation(learner.core_state(game.state).x))
        game.observe(g, hint=None if hints is None else hints[(t + 1) % len(rows)])
    size = float(np.abs(all_rows).sum(axis=0) @ learner.feasible.widths())
    return Played(name, game.certificate(), outside, size)


def faults(played: Played) -> list[str]:
    """What is wrong with a game; nothing, if all is well."""
    c = played.certificate
    out = [f"a play lies outside by {played.outside:g} of the set's size"] if played.outside > FEASIBLE else []
    links = [("regret", c.regret), ("tight", c.tight), ("bound", c.bound), ("theorem", c.theorem)]
    links += [("worst case", c.worst_case)] if c.worst_case is not None else []
    for (low, a), (high, b) in itertools.pairwise(links):
        assert a is not None
        assert b is not None
        if not math.isfinite(b):
            out.append(f"{high} is {b}")
        elif not a <= b + ROUNDING * abs(b):
            out.append(f"{low} {a:.10g} > {high} {b:.10g}")
    strong = c.closed_form_strong
    if c.bound is not None and strong is not None and not c.bound <= strong * (1 + 1e-9):
        out.append(f"bound {c.bound:.10g} > strong closed form {strong:.10g}")
    return out


def loosely_solved(played: Played) -> bool:
    """Whether the steps' gaps, which the bounds include, are more than rounding beside B_R: sound, but not sharp."""
    c = played.certificate
    return c.worst_case is not None and not c.solver_gap * c.rounds <= GAP * c.worst_case + 1e-10 * played.size


class TooSlow(Exception):
    """A game that did not end within its limit."""


def _give_up(number: int, frame: FrameType | None) -> None:
    raise TooSlow


@dataclass(frozen=True)
class Report:
    """What became of one game."""

    number: int
    name: str
    wrong: list[str]
    loose: bool = False
    slow: bool = False


def judge(number: int, seed: int, limit: float) -> Report:
    """Play one game, for at most `limit` seconds, and look for faults."""
    signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, limit)  # of processor time: a busy machine is no fault
    try:
        played = play(number, seed)
        return Report(number, played.name, faults(played), loosely_solved(played))
    except TooSlow:
        return Report(number, "not played to the end", [], slow=True)
    except Exception as error:
        return Report(number, "not played to the end", [f"{type(error).__name__}: {error}"])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def _work(task: tuple[int, int, float]) -> Report:
    warnings.simplefilter("ignore")
    return judge(*task)


def reports(numbers: Iterable[int], seed: int, limit: float, jobs: int, end: float) -> Iterator[Report]:
    """The games' reports as they come, until all are played or the time is up.

    A signal cannot stop a solver written in C, so the parent does not wait for a process: at the end, or when nothing
    was reported for 30 limits, it ends them all.
    """
    tasks = ((number, seed, limit) for number in numbers)
    with multiprocessing.Pool(jobs) as pool:  # leaving it terminates the processes
        answers = pool.imap_unordered(_work, tasks)
        while True:
            patience = min(30 * limit, end - time.monotonic())
            try:
                yield answers.next(timeout=max(patience, 0.0))
            except (StopIteration, multiprocessing.TimeoutError):
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first game")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    parser.add_argument(
        "--limit", type=float, default=20.0, help="seconds of processor time after which one game is given up"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="play this game alone")
    parser.add_argument("--show", type=int, default=20, help="failures to print")
    options = parser.parse_args()
    end = math.inf if options.minutes is None else time.monotonic() + 60 * options.minutes
    numbers = range(options.first, options.first + options.games) if options.only is None else [options.only]
    bad = done = loose = slow = 0
    began = time.monotonic()
    for report in reports(numbers, options.seed, options.limit, options.jobs, end):
        done += 1
        loose += report.loose
        slow += report.slow
        bad += bool(report.wrong)
        if report.wrong and bad <= options.show:
            print(f"game {report.number}: {report.name}: {'; '.join(report.wrong)}", flush=True)
        if report.slow:
            print(f"game {report.number}: given up after {options.limit:g} s", flush=True)
    missing = 0 if options.minutes is not None else len(numbers) - done
    print(
        f"{done} games in {time.monotonic() - began:.0f} s, {bad} with a fault, {slow} given up as too slow;"
        f" in {loose} a step was solved to more than rounding (the bounds include it)"
    )
    if missing:
        print(f"{missing} games were never reported: a process hangs")
    return 1 if bad or slow or missing else 0


if __name__ == "__main__":
    sys.exit(main())
