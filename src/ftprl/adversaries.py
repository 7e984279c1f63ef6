"""Problem instances of the paper and similar ones: streams on which learners differ."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl import check
from ftprl.errors import InvalidInput
from ftprl.losses import Linear
from ftprl.sets import Box, ConvexSet, Ellipsoid

Vector = NDArray[np.float64]
LossFunction = Callable[[Vector], tuple[float, Vector]]


@final
@dataclass(frozen=True, eq=False)
class Instance:
    """A set, a first point and a stream of losses; each call of `losses()` restarts the stream."""

    feasible: ConvexSet
    start: Vector
    rounds: int
    losses: Callable[[], Iterator[LossFunction]]


def _linear(rows: Callable[[], Iterator[Vector]]) -> Callable[[], Iterator[LossFunction]]:
    """Return a function that yields one linear loss per row."""
    return lambda: (Linear(g) for g in rows())


def _seed(seed: int) -> int:
    """Return the seed; raise InvalidInput unless it is a whole number of at least 0."""
    if not isinstance(seed, int) or seed < 0:
        raise InvalidInput(f"seed needs a whole number of at least 0, got {seed!r}; pass one.")
    return seed


def heavy_tail_rows(dim: int, rounds: int, alpha: float = 1.5, drift: float = 0.5, seed: int = 0) -> Iterator[Vector]:
    """Yield gradients with g_i = ±1 with probability i^{-alpha}, else 0; signs are biased by `drift`, to a random
    side.

    Without the bias regrets would not differ: with g in {0, 1} every learner has an equal constant regret per
    coordinate.

    >>> [int(np.abs(g).sum()) for g in heavy_tail_rows(1000, 3)]
    [2, 4, 4]
    """
    n, T = check.dimension("dim", dim), check.dimension("rounds", rounds)
    if not 0 < alpha < math.inf:
        raise InvalidInput(f"alpha needs a number above 0, got {alpha!r}; the paper has 1 <= alpha < 2.")
    if not 0 <= drift <= 1:
        raise InvalidInput(f"drift needs a number in [0, 1], got {drift!r}; 0 is a fair coin.")
    rng = np.random.default_rng(_seed(seed))
    chance = np.arange(1, n + 1) ** -float(alpha)
    up = 0.5 * (1 + drift * rng.choice((-1.0, 1.0), size=n))
    for _ in range(T):
        on = rng.random(n) < chance
        sign = np.where(rng.random(n) < up, 1.0, -1.0)
        yield np.where(on, sign, 0.0)


def heavy_tail(dim: int, rounds: int, alpha: float = 1.5, drift: float = 0.5, seed: int = 0) -> Instance:
    """Return the motivating problem of the paper on [-1/2, 1/2]^n: a few frequent features and many rare ones."""
    box = Box(-0.5, 0.5, dim=dim)
    rows = heavy_tail_rows
    next(rows(dim, rounds, alpha, drift, seed))  # so that bad arguments raise here, not in the first round
    return Instance(box, np.zeros(box.dim), rounds, _linear(lambda: rows(dim, rounds, alpha, drift, seed)))


def bad_class(rounds: int) -> Instance:
    """Return a problem on which every global learning rate has regret T^{2/3} and the diagonal scheme sqrt T.

    It is reconstructed from the paper. With m the cube root of `rounds`: T rounds of |x_1| with slope +1 at x_1 >= 0
    and -1 below, then for each of m further coordinates m rounds of the loss x_j, on [-1/2, 1/2]^{1+m} from the origin.

    >>> bad_class(1000).feasible.dim
    11
    """
    T = check.dimension("rounds", rounds)
    m = round(T ** (1 / 3))
    box = Box(-0.5, 0.5, dim=1 + m)
    eye = np.eye(1 + m)

    def absolute(x: Vector) -> tuple[float, Vector]:
        """Return the loss |x_1| and its slope."""
        return abs(float(x[0])), eye[0] if x[0] >= 0 else -eye[0]

    def losses() -> Iterator[LossFunction]:
        """Yield the losses of all rounds."""
        for _ in range(T):
            yield absolute
        for j in range(m):
            for _ in range(m):
                yield Linear(eye[1 + j])

    return Instance(box, np.zeros(1 + m), T + m * m, losses)


def poor_ellipsoid(dim: int, rounds: int, condition: float = 100.0, seed: int = 0) -> Instance:
    """Return a rotated ellipsoid with axes that differ by a factor `condition`.

    Gradients have equal length in the coordinates in which the ellipsoid is a ball.
    """
    n, T = check.dimension("dim", dim), check.dimension("rounds", rounds)
    if not condition >= 1 or not math.isfinite(condition):
        raise InvalidInput(f"condition needs a number of at least 1, got {condition!r}; 1 is a ball.")
    rng = np.random.default_rng(_seed(seed))
    R = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = np.geomspace(1.0, condition, n)[:, None] * R
    lean = rng.normal(size=n) / math.sqrt(n)

    def rows() -> Iterator[Vector]:
        """Yield the gradients."""
        draw = np.random.default_rng((seed, 1))
        for _ in range(T):
            hat = draw.normal(size=n) + lean
            yield A.T @ (hat / np.linalg.norm(hat))

    ellipsoid = Ellipsoid(A)
    return Instance(ellipsoid, ellipsoid.start(), T, _linear(rows))


def gaussian(feasible: ConvexSet, rounds: int, seed: int = 0, decades: float = 0.0, density: float = 1.0) -> Instance:
    """Return a problem with normal gradients.

    Each coordinate is scaled by 10^U(-decades, decades), and an entry is not 0 with probability `density`.
    """
    T, start = check.dimension("rounds", rounds), _seed(seed)
    if not 0 <= density <= 1:
        raise InvalidInput(f"density needs a number in [0, 1], got {density!r}; 1 keeps every entry.")
    n = feasible.dim

    def rows() -> Iterator[Vector]:
        """Yield the gradients."""
        rng = np.random.default_rng(start)
        scale = 10.0 ** rng.uniform(-decades, decades, size=n)
        for _ in range(T):
            yield np.where(rng.random(n) < density, rng.normal(size=n) * scale, 0.0)

    return Instance(feasible, feasible.start(), T, _linear(rows))


def sign_adversary(feasible: ConvexSet, rounds: int) -> Instance:
    """Return an adversary whose gradients are the signs of the play's distance from the start.

    It always pushes back to the middle.

    >>> from ftprl.sets import Box
    >>> value, g = next(sign_adversary(Box(-1, 1), 5).losses())(np.array([0.5]))
    >>> value, g
    (0.5, array([1.]))
    """
    T = check.dimension("rounds", rounds)
    middle = feasible.start()

    def away(x: Vector) -> tuple[float, Vector]:
        """Return the distance from the middle and its signs."""
        g = np.where(x >= middle, 1.0, -1.0)
        return float(np.abs(x - middle).sum()), g

    return Instance(feasible, middle, T, lambda: (away for _ in range(T)))
