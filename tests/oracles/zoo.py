"""The sets, schemes and gradients for tests of theorems, and a game that also keeps its history."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ftprl import FTPRL, Game, Unsupported
from ftprl.schemes import (
    BestBound,
    BlockConstant,
    CoordinateConstant,
    Diagonal,
    Fixed,
    Full,
    Scheme,
    Sketch,
)
from ftprl.sets import (
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
    Permutahedron,
    Polytope,
    Preimage,
    Product,
    Simplex,
)
from oracles.naive import Naive

Vector = NDArray[np.float64]
ROOT2 = math.sqrt(2.0)

_A = np.array([[1.0, 0.4, -0.2], [0.1, 0.8, 0.3], [-0.3, 0.2, 1.5]])
_FACES = np.array([[1.0, 1.0, 0.5], [-1.0, 0.3, 0.2], [0.2, -1.0, -0.4], [0.1, 0.2, -1.0], [0.4, -0.1, 1.0]])

SETS: dict[str, ConvexSet] = {
    "box": Box([-1.0, 0.5, -0.1], [1.0, 2.5, 0.3]),
    "l2": L2Ball(3, 1.5, [0.2, -0.1, 0.0]),
    "l1": L1Ball(3, 0.8),
    "lp1.5": LpBall(3, 1.5),
    "lp3": LpBall(3, 3.0, 0.7),
    "lp4": LpBall(3, 4.0, 1.0, [0.5, 0.0, -1.0]),
    "lpinf": LpBall(3, math.inf, 2.0),
    "ellipsoid": Ellipsoid(_A, [0.1, 0.0, -0.2]),
    "axis ellipsoid": Ellipsoid(np.diag([1.0, 3.0, 0.5])),
    "preimage l1": Preimage(_A, L1Ball(3)),
    "preimage box": Preimage(_A, Box(-1, 1, dim=3)),
    "preimage l3": Preimage(np.diag([1.0, 2.0, 0.5]), LpBall(3, 3.0)),
    "simplex": Simplex(4, 2.0),
    "capped": CappedSimplex(4, 0.5),
    "capped odd": CappedSimplex(4, 0.4),
    "polytope": Polytope(_FACES, np.ones(5)),
    "polytope eq": Polytope(np.vstack((np.eye(3), -np.eye(3))), np.ones(6), [[1.0, 2.0, -1.0]], [0.3]),
    "product": Product(L2Ball(2), Box(-1, 2, dim=1), Simplex(2)),
    "l2 box": Intersection(L2Ball(3), Box(-0.3, 0.9, dim=3)),
    "simplex box": Intersection(Simplex(3), Box(0.1, 0.7, dim=3)),
    "halfspace box": Intersection(Halfspace([1.0, -2.0, 0.5], 0.4), Box(-1, 1, dim=3)),
    "permutahedron": Permutahedron([0.5, -1.0, 2.0]),
    "flow": FlowPolytope([(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)], 0, 3),
    "ellipsoid box": Intersection(Ellipsoid(_A), Box(-0.5, 0.8, dim=3)),
}


def _tilted(t: int, g: Vector) -> Vector:
    """Return a full positive definite increment that decreases with t."""
    n = len(g)
    v = np.cos(np.arange(n) + t)
    return (np.eye(n) * 0.5 + np.outer(v, v)) / math.sqrt(t) + np.outer(g, g) / (1.0 + float(g @ g))


def schemes(c: float) -> dict[str, Scheme]:
    """Return every scheme, with the constant c if it has one."""
    return {
        "constant": CoordinateConstant(c),
        "constant centred": CoordinateConstant(c, center=True),
        "diagonal": Diagonal(c),
        "diagonal centred": Diagonal(c, center=True),
        "full": Full(c),
        "full delta": Full(c, delta=0.5),
        "sketch": Sketch(2, c),
        "fixed": Fixed(_tilted),
        "best bound": BestBound() if c == 2.0 else BestBound(b=1.0),
        "best const": BestBound(family="const"),
        "block": BlockConstant(c),
    }


SCHEMES = tuple(schemes(2.0))


def admits(feasible: ConvexSet, scheme: Scheme) -> bool:
    """Return True if the scheme plays on the set."""
    try:
        scheme.init(feasible)
    except Unsupported:
        return False
    return True


PAIRS = [(s, k) for s in SETS for k, scheme in schemes(2.0).items() if admits(SETS[s], scheme)]
# Every set and every scheme occurs several times, for laws that hold for all sets.
SOME_PAIRS = PAIRS[::4]


def gradients(kind: str, feasible: ConvexSet, rounds: int, seed: int) -> Iterator[Callable[[Vector], Vector]]:
    """Return a stream of functions that answer a play with a gradient."""
    rng = np.random.default_rng(seed)
    n, middle = feasible.dim, feasible.start()
    scale = 10.0 ** rng.uniform(-3, 3, size=n)
    lean = rng.normal(size=n)
    for _ in range(rounds):
        if kind == "adversarial":
            yield lambda x: np.where(x >= middle, 1.0, -1.0)
            continue
        if kind == "gaussian":
            g = rng.normal(size=n) + 0.5 * lean
        elif kind == "sparse":
            g = np.where(rng.random(n) < 0.3, rng.choice((-1.0, 1.0), size=n), 0.0)
        elif kind == "heavy":
            g = np.clip(rng.standard_cauchy(size=n), -1e4, 1e4)
        else:
            assert kind == "scaled"
            g = rng.normal(size=n) * scale
        yield lambda x, g=g: g


KINDS = ("gaussian", "adversarial", "sparse", "heavy", "scaled")


@dataclass
class Run:
    """A game and its whole history, in the coordinates and gradients that the bounds count."""

    game: Game
    naive: Naive
    totals: list[Vector]


def run(learner: FTPRL, oracles: Iterator[Callable[[Vector], Vector]]) -> Run:
    """Play without hints and record every round."""
    game = Game(learner, full=True)
    naive = Naive(learner.feasible.dim)
    totals: list[Vector] = []
    for oracle in oracles:
        x = game.x
        game.observe(oracle(x))
        state = game.state
        naive.add(state.seen, state.Q, x, state.x)  # type: ignore[attr-defined]
        totals.append(state.total)  # type: ignore[attr-defined]
    return Run(game, naive, totals)


def random_point(feasible: ConvexSet, rng: np.random.Generator) -> Vector:
    """Return a random point of F: a mixture of extreme points and the start."""
    points = [feasible.start(), *(feasible.vertex(rng.normal(size=feasible.dim)) for _ in range(3))]
    return np.asarray(rng.dirichlet(np.full(4, 0.5)) @ np.array(points))


def random_psd(n: int, rng: np.random.Generator, floor: float = 0.0) -> Vector:
    """Return B'B plus a multiple of the identity."""
    B = rng.normal(size=(n, n))
    return B.T @ B + floor * np.eye(n)
