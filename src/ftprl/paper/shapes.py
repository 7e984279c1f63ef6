"""Sets other than boxes, their inner and outer boxes, and the worst gradients for a diagonal scheme."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.extras import extra_imports
from ftprl.posthoc import best_bound
from ftprl.sets import ConvexSet, L1Ball, L2Ball, LpBall, Polytope

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Shape:
    """A set with its beta, its gamma, and squares G for which the diagonal scheme is worst against the best
    diagonal.
    """

    name: str
    feasible: ConvexSet
    beta: float
    gamma: float
    worst: Vector

    def ratio(self, G: Vector) -> float:
        """Return 2 sum D_i sqrt(G_i), the bound of FTPRL-Diag, over the best diagonal in hindsight."""
        best = best_bound(self.feasible, "diagonal", G, program=True)
        assert best is not None
        assert best.exact
        return 2 * float(self.feasible.widths() @ np.sqrt(G)) / best.value


def _program(F: ConvexSet) -> tuple[float, Vector]:
    """Return gamma, the maximum of sum D_i² y_i with sum v_i² y_i <= 1 at every vertex v of Fsym, and the worst G.

    The worst G is (D_i y_i)².
    """
    with extra_imports:
        from scipy.optimize import linprog

    V = F.extreme_differences()
    assert V is not None
    D = F.widths()
    solution = linprog(-(D**2), A_ub=V**2, b_ub=np.ones(len(V)))
    return -float(solution.fun), np.asarray((D * solution.x) ** 2)


def _polytope(n: int, faces: int, seed: int) -> Polytope:
    """Return a random polytope around the origin."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(faces, n))
    return Polytope(
        np.vstack((C, np.eye(n), -np.eye(n))), np.concatenate((rng.uniform(0.3, 1, faces), np.full(2 * n, 2.0)))
    )


def _ball(n: int, p: float) -> Shape:
    """Return an L_p ball with its beta and gamma."""
    F = L1Ball(n) if p == 1 else L2Ball(n) if p == 2 else LpBall(n, p)
    return Shape(f"L{p:g} ball, n={n}", F, n ** (1 / p), n ** min(1.0, 2 / p), np.ones(n))


def shapes(full: bool) -> list[Shape]:
    """Return balls and random polytopes, from the smallest beta to the largest."""
    solution = [_ball(n, p) for n, p in ((3, 1), (3, 2), (8, 2), (3, 4), (8, 4))]
    for seed in range(12 if full else 5):
        n = 2 + seed % (4 if full else 2)
        F = _polytope(n, n + 2 + seed % 2, seed)
        beta = F.beta()
        assert beta is not None
        solution.append(Shape(f"polytope {seed + 1}, n={n}", F, beta, *_program(F)))
    return sorted(solution, key=lambda s: s.beta)


def names_of(every: Sequence[Shape]) -> list[tuple[float, str]]:
    """Return the sets' names with their numbers, for the axis of a figure."""
    return [(float(i), s.name) for i, s in enumerate(every, 1)]
