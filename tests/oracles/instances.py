"""Every kind of set in small dimensions, and the schemes each admits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ftprl.schemes import BestBound, BlockConstant, CoordinateConstant, Diagonal, Fixed, Full, Scheme, Sketch
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
    Preimage,
    Product,
    Simplex,
)

Maker = Callable[[np.random.Generator, int], ConvexSet]


def _matrix(rng: np.random.Generator, n: int) -> np.ndarray:
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return np.geomspace(1.0, 4.0, n)[:, None] * turn


def _polytope(rng: np.random.Generator, n: int) -> Polytope:
    C = np.vstack((rng.normal(size=(2 * n, n)), np.eye(n), -np.eye(n)))
    return Polytope(C, np.concatenate((rng.uniform(0.5, 1.5, 2 * n), np.ones(2 * n))))


def _flat_polytope(rng: np.random.Generator, n: int) -> Polytope:
    row = rng.uniform(0.5, 1.5, size=(1, n))
    C = np.vstack((np.eye(n), -np.eye(n)))
    return Polytope(C, np.concatenate((np.full(n, 2.0), np.zeros(n))), row, row @ np.full(n, 0.6))


MAKERS: dict[str, Maker] = {
    "box": lambda rng, n: Box(-rng.uniform(0.2, 2, n), rng.uniform(0.2, 2, n)),
    "box away from 0": lambda rng, n: Box(rng.uniform(0.5, 1, n), rng.uniform(1, 3, n)),
    "L2": lambda rng, n: L2Ball(n, 1.5),
    "L2 off centre": lambda rng, n: L2Ball(n, 0.7, rng.normal(size=n)),
    "L1": lambda rng, n: L1Ball(n, 1.2),
    "L1 off centre": lambda rng, n: L1Ball(n, 1.2, rng.normal(size=n)),
    "Lp 1.5": lambda rng, n: LpBall(n, 1.5),
    "Lp 3": lambda rng, n: LpBall(n, 3, 2.0, rng.normal(size=n)),
    "Lp 4": lambda rng, n: LpBall(n, 4),
    "Lp inf": lambda rng, n: LpBall(n, math.inf),
    "ellipsoid": lambda rng, n: Ellipsoid(_matrix(rng, n), rng.normal(size=n)),
    "axis-aligned ellipsoid": lambda rng, n: Ellipsoid(np.diag(rng.uniform(0.5, 2, n))),
    "preimage of L1": lambda rng, n: Preimage(_matrix(rng, n), L1Ball(n)),
    "preimage of box": lambda rng, n: Preimage(_matrix(rng, n), Box(-1, 1, dim=n)),
    "simplex": lambda rng, n: Simplex(n, 2.0),
    "capped simplex": lambda rng, n: CappedSimplex(n, 1.7 / n),
    "polytope": _polytope,
    "flat polytope": _flat_polytope,
    "product": lambda rng, n: Product(L2Ball(2, 1.5), Simplex(n - 2)),
    "product of balls": lambda rng, n: Product(L2Ball(2, 1.5), L2Ball(n - 2, 0.5)),
    "L2 in box": lambda rng, n: Intersection(L2Ball(n), Box(-0.3, 0.6, dim=n)),
    "L1 in box": lambda rng, n: Intersection(L1Ball(n), Box(-0.3, 0.6, dim=n)),
    "Lp in box": lambda rng, n: Intersection(LpBall(n, 3), Box(0.1, 0.8, dim=n)),
    "simplex in box": lambda rng, n: Intersection(Simplex(n), Box(0.2 / n, 2 / n, dim=n)),
    "half-space in box": lambda rng, n: Intersection(Halfspace(rng.normal(size=n), 0.1), Box(-1, 1, dim=n)),
    "ellipsoid in box": lambda rng, n: Intersection(Ellipsoid(_matrix(rng, n)), Box(-0.3, 0.4, dim=n)),
    "polytope in box": lambda rng, n: Intersection(_polytope(rng, n), Box(-0.4, 0.5, dim=n)),
}


def _random_rule(n: int) -> Fixed:
    rng = np.random.default_rng(n)

    def rule(t: int, g: np.ndarray) -> np.ndarray:
        B = rng.normal(size=(n, 1 if t > 1 else n + 2))
        return B @ B.T

    return Fixed(rule)


def schemes_for(name: str, n: int, c: float = 2.0) -> dict[str, Scheme]:
    """Return the schemes that play on the set of this name."""
    out: dict[str, Scheme] = {
        "constant": CoordinateConstant(c),
        "diagonal": Diagonal(c),
        "full": Full(c),
        "full with delta": Full(c, delta=0.1),
        "sketch": Sketch(max(n // 2, 1), c),
        "fixed": _random_rule(n),
        "best bound, const": BestBound("const"),
    }
    plain = ("box", "box away from 0", "simplex", "axis-aligned ellipsoid")
    if name in plain or (name[:2] in ("L1", "L2", "Lp") and " in box" not in name):
        out["best bound"] = BestBound()
    if name.startswith("product"):
        out["block constant"] = BlockConstant(c)
    if name in ("simplex", "capped simplex", "flat polytope"):
        out["constant, centred"] = CoordinateConstant(c, center=True)
        out["diagonal, centred"] = Diagonal(c, center=True)
        out["full, centred"] = Full(c, center=True)
    return out
