"""The problems on which related work is compared: losses, the set, and the loss of the best fixed point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import adversaries
from ftprl.game import best_in_hindsight
from ftprl.learner import Learner
from ftprl.losses import absolute, logistic
from ftprl.paper.rows import heavy_rows
from ftprl.sets import Box, ConvexSet, Ellipsoid, Simplex

Vector = NDArray[np.float64]
Loss = Callable[[Vector], tuple[float, Vector]]


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """Losses over a set, a first point, and the least total loss of a fixed point."""

    name: str
    feasible: ConvexSet
    start: Vector
    losses: Sequence[Loss]
    best: float
    l1: float = 0.0  # a penalty l1 |x|₁ in every round, which `losses` do not contain

    @property
    def size(self) -> str:
        """Return the numbers of coordinates and rounds."""
        return f"n = {self.feasible.dim}, T = {len(self.losses):,}"

    def regret(self, learner: Learner[Any], knows: bool = False) -> float:
        """Return the learner's regret; unless it `knows` the penalty, it receives the penalty's subgradient."""
        state, own_loss = learner.init(), 0.0
        for f in self.losses:
            value, g = f(state.x)
            if self.l1:
                value += self.l1 * float(np.abs(state.x).sum())
                g = g if knows else g + self.l1 * np.sign(state.x)
            own_loss += value
            state = learner.advance(state, g, None)
        return own_loss - self.best


def convex(name: str, F: ConvexSet, losses: Sequence[Loss]) -> Problem:
    """Return a problem whose best point comes from a bundle method, by its proved lower bound."""
    return Problem(name, F, F.start(), losses, best_in_hindsight(F, losses, tol=3e-4).lower)


def linear(name: str, made: adversaries.Instance) -> Problem:
    """Return a problem with linear losses, for which a vertex is the best point.

    >>> from ftprl.adversaries import gaussian
    >>> from ftprl.sets import Box
    >>> linear("example", gaussian(Box(-1, 1, dim=2), 10)).size
    'n = 2, T = 10'
    """
    losses = list(made.losses())
    S = np.sum([f(made.start)[1] for f in losses], axis=0)
    return Problem(name, made.feasible, made.start, losses, float(S @ made.feasible.vertex(S)))


def bad_class(rounds: int) -> Problem:
    """Return the problem on which every global rate fails; the best point has x_1 = 0 and -1/2 elsewhere."""
    made = adversaries.bad_class(rounds)
    best = -0.5 * (made.feasible.dim - 1) ** 2
    return Problem("bad class", made.feasible, made.start, list(made.losses()), best)


def heavy_features(rounds: int, dim: int) -> Problem:
    """Return log loss on rows with heavy-tailed features, a small version of click prediction."""
    V, y = heavy_rows(rounds, dim)
    return convex("heavy-tailed features", Box(-4, 4, dim=dim), [logistic(v, t) for v, t in zip(V, y, strict=True)])


def unlike_scales(rounds: int, dim: int = 8, seed: int = 1) -> Problem:
    """Return absolute loss on features with sizes that differ by three decades."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(rounds, dim)) * 10.0 ** rng.uniform(-1.5, 1.5, size=dim)
    target = V @ rng.uniform(-1, 1, size=dim) + rng.normal(size=rounds)
    return convex(
        "features of unlike scale", Box(-2, 2, dim=dim), [absolute(v, b) for v, b in zip(V, target, strict=True)]
    )


def poor_ellipsoid(rounds: int, dim: int = 4, condition: float = 100.0, seed: int = 2) -> Problem:
    """Return absolute loss over |Ax| <= 1 with features Aᵀu, of unit length in the ellipsoid's own coordinates."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(dim, dim)))[0]
    A = np.geomspace(1.0, condition, dim)[:, None] * turn
    U = rng.normal(size=(rounds, dim))
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    hat = rng.normal(size=dim)
    target = U @ (0.7 * hat / np.linalg.norm(hat)) + 0.1 * rng.normal(size=rounds)
    return convex("poor ellipsoid", Ellipsoid(A), [absolute(v, b) for v, b in zip(U @ A, target, strict=True)])


def random_market(rounds: int, dim: int = 6, seed: int = 3) -> Problem:
    """Return -log(x·r) on the simplex, with log-normal r and a different drift for each asset."""
    rng = np.random.default_rng(seed)
    R = np.exp(rng.normal(rng.normal(0, 0.05, size=dim), 0.3, size=(rounds, dim)))

    def loss(r: Vector) -> Loss:
        """Return the loss of one round."""

        def f(x: Vector) -> tuple[float, Vector]:
            """Return the loss and its gradient."""
            growth = float(r @ x)
            return -math.log(growth), -r / growth

        return f

    return convex("random market", Simplex(dim), [loss(r) for r in R])


def sparse_target(rounds: int, dim: int = 40, l1: float = 0.05, seed: int = 4) -> Problem:
    """Return absolute loss of a target with three weights under l1 |x|₁, the case for FOBOS and l1-RDA."""
    rng = np.random.default_rng(seed)
    hidden = np.zeros(dim)
    hidden[:3] = (1.0, -1.0, 0.5)
    V = rng.normal(size=(rounds, dim))
    losses = [absolute(v, b) for v, b in zip(V, V @ hidden + 0.1 * rng.normal(size=rounds), strict=True)]

    def penalised(f: Loss) -> Loss:
        """Return a loss with the penalty added."""

        def both(x: Vector) -> tuple[float, Vector]:
            """Return the penalised loss and its subgradient."""
            value, g = f(x)
            return value + l1 * float(np.abs(x).sum()), g + l1 * np.sign(x)

        return both

    F = Box(-2, 2, dim=dim)
    best = best_in_hindsight(F, [penalised(f) for f in losses], tol=3e-4).lower
    return Problem("sparse target", F, F.start(), losses, best, l1)


def problems(full: bool) -> list[Problem]:
    """Return all problems except the bad class, which comes in several sizes."""
    T = 800 if full else 400
    return [
        heavy_features(T, 100 if full else 60),
        unlike_scales(T),
        poor_ellipsoid(T // 2),
        random_market(T // 2),
        sparse_target(T, 40 if full else 20),
        linear("heavy tails, linear", adversaries.heavy_tail(60, T, alpha=1.5, drift=0.3)),
        linear("poor ellipsoid, linear", adversaries.poor_ellipsoid(4, T // 4, condition=100)),
    ]


def bound_gain(dim: int, rounds: int) -> float:
    """Return D sqrt G over sum D_i sqrt G_i, the two best bounds in hindsight, on the paper's heavy tails."""
    rows = adversaries.heavy_tail_rows(dim, rounds, alpha=1.5)
    G = np.sum([g * g for g in rows], axis=0)
    return float(math.sqrt(dim * G.sum()) / np.sqrt(G).sum())
