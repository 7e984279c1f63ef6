"""The smallest bound that one fixed matrix could have had in hindsight: its type and the formulas that sets share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from numpy.typing import NDArray

from ftprl import programs

if TYPE_CHECKING:
    from ftprl.sets.base import ConvexSet

Vector = NDArray[np.float64]
PSD = NDArray[np.float64]
Family = Literal["const", "diagonal", "full", "block"]

ROOT2 = math.sqrt(2.0)
MAX_PROGRAM_DIM = 8


@final
@dataclass(frozen=True, slots=True, eq=False)
class PostHoc:
    """The best bound in hindsight of a family of matrices.

    `value` is the bound, `Q` a matrix that attains it (None if unknown), and `exact` is False if `value` is only an
    upper bound on the best one.
    """

    value: float
    Q: PSD | None
    exact: bool


def const_optimum(feasible: ConvexSet, total: float) -> PostHoc:
    """Return the best multiple of the identity, with the bound D sqrt(2 G)."""
    D = feasible.diameter()
    if D == 0.0:
        return PostHoc(0.0, None, True)
    return PostHoc(D * math.sqrt(2 * total), np.array(math.sqrt(2 * total) / D), feasible.is_exact("diameter"))


def axis_sum(D: Vector, G: Vector) -> float:
    """Return sum D_i sqrt(G_i) over coordinates with a gradient; others count as 0 even if their width is infinite.

    >>> axis_sum(np.array([1.0, np.inf]), np.array([4.0, 0.0]))
    2.0
    """
    live = G > 0
    return float(D[live] @ np.sqrt(G[live]))


def separate_optimum(feasible: ConvexSet, G: Vector) -> PostHoc:
    """Return an upper bound on the best diagonal of any set: sqrt 2 sum D_i sqrt(G_i).

    If the best multiple of the identity has a smaller bound, it is returned instead.
    """
    D = feasible.widths()
    with np.errstate(divide="ignore", invalid="ignore"):
        Q = np.where(D > 0, np.sqrt(2 * G) / D, 0.0)
    separate, common = PostHoc(ROOT2 * axis_sum(D, G), Q, False), const_optimum(feasible, float(G.sum()))
    return separate if separate.value <= common.value else PostHoc(common.value, common.Q, False)


def stack_blocks(sets: Iterable[ConvexSet], parts: list[PostHoc]) -> PostHoc:
    """Combine the optima of a product's factors: values add up, diagonals are concatenated."""
    Q = np.concatenate(
        [np.broadcast_to(0.0 if p.Q is None else p.Q, (s.dim,)) for s, p in zip(sets, parts, strict=True)]
    )
    return PostHoc(sum(p.value for p in parts), Q, all(p.exact for p in parts))


def on_live_coordinates(G: Vector, solution: tuple[float, Vector]) -> PostHoc:
    """Extend a program's solution on the coordinates with G > 0 to all coordinates, with 0 elsewhere."""
    Q = np.zeros_like(G)
    Q[G > 0] = solution[1]
    return PostHoc(solution[0], Q, True)


def in_units(size: Vector, G: Vector, solve: Callable[[Vector], tuple[float, Vector]]) -> tuple[float, Vector]:
    """Solve a program for lengths in units of `size`, so that its inputs are near 1 whatever the set's units are."""
    root = np.sqrt(G) * size
    top = float(root.max(initial=0.0))
    if top == 0.0:
        return 0.0, np.zeros_like(root)
    value, Q = solve((root / top) ** 2)
    return value * top, Q * top / size / size


def diagonal_by_program(V: Vector, G: Vector) -> PostHoc:
    """Return the best diagonal of a set with known vertices of Fsym: up to sign, the rows of V."""
    unit = np.abs(V).max(axis=0)
    live = (G > 0) & (unit > 0)
    size = unit[live]
    found = in_units(size, G[live], lambda H: programs.diagonal_on_vertices(V[:, live] / size, H))
    return on_live_coordinates(np.where(live, G, 0.0), found)


def full_by_program(V: Vector, GG: Vector) -> PostHoc:
    """Return the best full matrix of a set with known vertices of Fsym: up to sign, the rows of V."""
    # The program is solved within the span of Fsym: outside it Q is free of charge and would go to infinity.
    unit, top = float(np.abs(V).max(initial=0.0)) or 1.0, float(np.abs(GG).max())
    V, GG = V / unit, GG / top
    _, s, W = np.linalg.svd(V, full_matrices=False)
    B = W[s > 1e-9 * s.max(initial=0.0)].T
    if not B.size or not (B.T @ GG @ B).any():
        return PostHoc(0.0, None, True)
    value, Q = programs.full_on_vertices(V @ B, B.T @ GG @ B)
    root = math.sqrt(top)
    return PostHoc(value * root * unit, B @ (Q * (root / unit)) @ B.T, True)
