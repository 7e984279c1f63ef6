"""Sets, gradients, recorded games and figures that the experiments share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import psd
from ftprl.draw import Panel, Series
from ftprl.learner import FTPRL, State
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box, ConvexSet, Ellipsoid, L1Ball, L2Ball, LpBall, Polytope, Simplex

Vector = NDArray[np.float64]
Oracle = Callable[[Vector], Vector]
Kind = Literal["leaning", "turning", "pushing back", "sparse", "heavy-tailed", "scaled"]

ROOT2 = math.sqrt(2.0)
ROUNDING = 1e-9  # relative error of floating-point sums
KINDS: tuple[Kind, ...] = ("leaning", "turning", "pushing back", "sparse", "heavy-tailed", "scaled")

_A = np.array([[1.0, 0.4, -0.2], [0.1, 0.8, 0.3], [-0.3, 0.2, 1.5]])
_FACES = np.array([[1.0, 1.0, 0.5], [-1.0, 0.3, 0.2], [0.2, -1.0, -0.4], [0.1, 0.2, -1.0], [0.4, -0.1, 1.0]])


def sets() -> dict[str, ConvexSet]:
    """Return sets of three dimensions in which steps with full matrices are exact, too.

    One is far from 0: the paper plays 0 first, which is no loss of generality only if steps do not depend on it.
    """
    return {
        "box": Box([-1.0, -0.5, -0.1], [1.0, 1.5, 0.3]),
        "box far from 0": Box([2.0, -3.0, 0.9], [3.0, -1.0, 1.1]),
        "L2 ball": L2Ball(3, 1.5),
        "ellipsoid": Ellipsoid(_A),
        "polytope": Polytope(_FACES, np.ones(5)),
        "simplex": Simplex(3),
    }


def balls() -> dict[str, ConvexSet]:
    """Return curved sets in which steps with diagonal matrices are exact."""
    return {"L1 ball": L1Ball(3, 0.8), "L1.5 ball": LpBall(3, 1.5), "L3 ball": LpBall(3, 3.0, 0.7)}


def answers(rows: Iterable[ArrayLike]) -> list[Oracle]:
    """Return gradients that do not depend on the play."""
    return [_answer(np.asarray(g, dtype=np.float64)) for g in rows]


def _answer(g: Vector) -> Oracle:
    """Return a function that answers every play with g."""
    return lambda x: g


def stream(kind: Kind, feasible: ConvexSet, rounds: int, seed: int) -> Iterator[Oracle]:
    """Yield gradients of one kind, each as a function of the play."""
    rng = np.random.default_rng(seed)
    n, middle = feasible.dim, feasible.start()
    scale, lean = 10.0 ** rng.uniform(-3, 3, size=n), rng.normal(size=n)
    for t in range(rounds):
        if kind == "pushing back":
            yield lambda x: np.where(x >= middle, 1.0, -1.0)
            continue
        noise = rng.normal(size=n)
        if kind == "leaning":
            g = noise + lean
        elif kind == "turning":  # opposite sign after a third of the time
            g = (lean if 3 * t < rounds else -lean) + 0.2 * noise
        elif kind == "sparse":
            g = np.where(rng.random(n) < 0.3, np.sign(noise + lean), 0.0)
        elif kind == "heavy-tailed":
            g = np.clip(noise / np.abs(rng.normal(size=n)), -1e4, 1e4) + lean
        else:
            g = (noise + lean) * scale
        yield _answer(g)


def _quad(Q: Vector, y: Vector) -> float:
    """Return yᵀQy for a scalar, diagonal or full Q."""
    return float(y @ (Q @ y if Q.ndim == 2 else Q * y))


def _dual(Q: Vector, g: Vector) -> float:
    """Return gᵀQ⁺g for g in the range of Q."""
    if Q.ndim == 2:
        return float(g @ np.linalg.lstsq(Q, g, rcond=1e-12)[0])
    return float(g @ np.divide(g, Q, out=np.zeros_like(g), where=np.broadcast_to(Q, g.shape) > 0))


def _add(P: Vector, Q: Vector, n: int) -> Vector:
    """Return P + Q as the simplest array that can hold both."""
    if P.ndim < 2 and Q.ndim < 2:
        return np.asarray(P + Q)
    wide = [M if M.ndim == 2 else np.diag(np.broadcast_to(M, (n,))) for M in (P, Q)]
    return np.asarray(wide[0] + wide[1])


@final
@dataclass(eq=False)
class GameRecord:
    """A recorded game, from which each formula is evaluated as it is written, without the ledger."""

    feasible: ConvexSet
    x: list[Vector] = field(default_factory=list)  # x_1 .. x_T, x_{T+1}
    g: list[Vector] = field(default_factory=list)
    Q: list[Vector] = field(default_factory=list)

    @property
    def gradient(self) -> Vector:
        """Return g_{1:T}."""
        return np.asarray(np.sum(self.g, axis=0))

    def best(self) -> Vector:
        """Return x*, a best fixed point."""
        return self.feasible.vertex(self.gradient)

    def regret(self, x: Vector | None = None) -> float:
        """Return sum g_t·(x_t - x), by default against the best fixed point."""
        u = self.best() if x is None else x
        return math.fsum(float(g @ (xt - u)) for g, xt in zip(self.g, self.x, strict=False))

    def r(self, x: Vector) -> float:
        """Return r_{1:T}(x)."""
        return 0.5 * math.fsum(_quad(Q, x - xt) for Q, xt in zip(self.Q, self.x, strict=False))

    def lengths(self) -> list[float]:
        """Return g_tᵀ Q_{1:t}⁻¹ g_t for each t."""
        total, games = np.zeros(()), []
        for Q, g in zip(self.Q, self.g, strict=True):
            total = _add(total, Q, len(g))
            games.append(_dual(total, g))
        return games

    def penalty(self) -> float:
        """Return sum N(Q_t)."""
        return 0.5 * math.fsum(self.feasible.sq_diameter(Q) for Q in self.Q)

    def products(self) -> float:
        """Return S = sum D_i sqrt(G_i)."""
        return float(self.feasible.widths() @ np.linalg.norm(self.g, axis=0))

    def objective(self, x: Vector, t: int) -> float:
        """Return H_t(x) = g_{1:t}·x + r_{1:t}(x)."""
        linear = math.fsum(float(g @ x) for g in self.g[:t])
        return linear + 0.5 * math.fsum(_quad(Q, x - xt) for Q, xt in zip(self.Q[:t], self.x, strict=False))

    def until(self, t: int) -> GameRecord:
        """Return the first t rounds as a game."""
        return GameRecord(self.feasible, self.x[: t + 1], self.g[:t], self.Q[:t])


def play(learner: FTPRL, oracles: Iterable[Oracle]) -> GameRecord:
    """Play a game and record every round."""
    state = learner.init()
    kept = GameRecord(learner.feasible, [state.x])
    for oracle in oracles:
        g = oracle(state.x)
        state = learner.update(state, g)
        assert isinstance(state, State)
        kept.g.append(g)  # the original gradient, not the transformed one
        kept.Q.append(psd.array(state.Q))
        kept.x.append(state.x)
    return kept


def metric(n: int, rng: np.random.Generator) -> Vector:
    """Return a random positive definite matrix: a number, a diagonal or a full matrix."""
    kind = rng.integers(3)
    if kind < 2:
        return np.asarray(10.0 ** rng.uniform(-2, 2, size=n if kind else ()))
    B = rng.normal(size=(n, n))
    return np.asarray(B.T @ B + 0.1 * np.eye(n))


def sets_with_metrics(
    count: int, rng: np.random.Generator, step: Callable[[str], None]
) -> Iterator[tuple[ConvexSet, Vector]]:
    """Yield every set with `count` random metrics Q; `step` reports the name of each set."""
    exact = sets()
    for name, F in {**exact, **balls()}.items():
        step(name)
        for _ in range(count):
            Q = metric(F.dim, rng)
            if name not in exact and Q.ndim == 2:  # a closed form for diagonals only
                Q = np.diagonal(Q).copy()
            yield F, Q


def adaptive_histories(full: bool, step: Callable[[str], None]) -> list[GameRecord]:
    """Return games of the paper's two adaptive schemes on every set under every kind of gradients."""
    games = []
    for name, F in {**sets(), **balls()}.items():
        step(f"games on the {name}")
        for i, kind in enumerate(KINDS):
            for j, scheme in enumerate((Diagonal(), CoordinateConstant())):
                for seed in range(4 if full else 1):
                    oracles = stream(kind, F, 200 if full else 30, 100 * seed + 10 * j + i)
                    games.append(play(FTPRL(F, scheme), oracles))
    return games


def ratio(value: float, bound: float) -> float:
    """Return value / bound, with 0/0 = 0.

    >>> ratio(1.0, 2.0), ratio(0.0, 0.0)
    (0.5, 0.0)
    """
    if bound > 0:
        return value / bound
    return 0.0 if value <= 0 else math.inf


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """Return the exponent of y ~ x^slope by least squares in the logarithms; nonpositive numbers count as tiny."""
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.maximum(np.asarray(y, float), 1e-300)), 1)[0])


def spread_rounds(rounds: int, count: int = 40) -> list[int]:
    """Return round numbers from 1 to the last, evenly spread on a logarithmic axis.

    >>> spread_rounds(100, 3)
    [1, 10, 100]
    """
    return sorted({int(t) for t in np.unique(np.geomspace(1, rounds, count).round())})


def sides(title: str, left: Sequence[float], right: Sequence[float], name: str, bound: str, log: bool = False) -> Panel:
    """Return a plot of left sides of an inequality against right sides; all points lie below the diagonal if it
    holds.
    """
    every = -(-len(left) // 150)  # a figure needs no more points
    left, right = left[::every], right[::every]
    ends = np.array([min(right), max(right)])
    return Panel(
        title,
        bound,
        name,
        [Series("random instances", right, left, line=False), Series("equal", ends, ends, dashed=True, colour=6)],
        log=log,
    )


def in_order(values: Sequence[float]) -> tuple[list[int], list[float]]:
    """Return ranks and values in rising order, for a plot.

    >>> in_order([3.0, 1.0])
    ([1, 2], [1.0, 3.0])
    """
    return list(range(1, len(values) + 1)), sorted(values)
