"""Log loss on sparse rows over the box [-R, R]^n, many constants side by side, O(nnz) per row.

These are sparse versions of the dense learners. Each array has one column per constant. Coordinates that are 0 in a row
stay where they are under each of these rules, so only the row's own are updated. For a global rate this is not obvious:
every round. But m = z + a x is constant while x does not move (a term centred at x cannot move it): m is stored.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """Sparse rows with features numbered 0 to dim - 1, all of which occur, and labels ±1."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    values: Vector
    y: Vector
    dim: int

    def __len__(self) -> int:
        return len(self.y)

    def __iter__(self) -> Iterator[tuple[NDArray[np.int64], Vector, float]]:
        ends = self.indptr.tolist()
        for start, stop, y in zip(ends[:-1], ends[1:], self.y.tolist(), strict=True):
            yield self.indices[start:stop], self.values[start:stop], y

    def counts(self) -> Vector:
        """Return the number of rows that contain each feature, the most frequent first."""
        return np.sort(np.bincount(self.indices, minlength=self.dim))[::-1].astype(np.float64)


@final
@dataclass(frozen=True, eq=False)
class Bounds:
    """Bounds on the regret, one number per constant; the last four exist for FTPRL alone."""

    bound: Vector  # FTPRL: r + ½ stability; descent: the bound of its own analysis for these rates
    theorem: Vector | None = None  # r + stability
    worst_case: Vector | None = None  # B_R
    post_hoc: Vector | None = None  # the best B_R of the rule's family in hindsight
    post_hoc_one: Vector | None = None  # the best B_R of a global rate, on equal gradients


@final
@dataclass(frozen=True, eq=False)
class Account:
    """The results of one rule for each constant: the total log loss, the linearised regret and its bounds."""

    constants: Vector
    loss: Vector
    curve: Vector  # total losses after the recorded rows, one row each
    regret: Vector
    mistakes: Vector
    bounds: Bounds


class Rule(ABC):
    """Base class of update rules: the points x of every constant, and how a row's gradient moves them."""

    def __init__(self, dim: int, constants: Vector, radius: float) -> None:
        self.R, self.c = radius, constants
        shape = (dim, len(constants))
        self.x, self.S = np.zeros(shape), np.zeros(shape)
        self.D = 2 * radius * math.sqrt(dim)
        self.stability = np.zeros(len(constants))  # sum of g² over the coordinate's curvature, or rate times g²

    @abstractmethod
    def step(self, at: NDArray[np.int64], x: Vector, g: Vector) -> Vector:
        """Return the new points of the coordinates `at`, which were `x` and had the gradient `g`."""

    @abstractmethod
    def bounds(self) -> Bounds:
        """Return the bounds on the regret."""


def run(rule: Rule, rows: Rows, recorded_rows: Vector) -> Account:
    """Predict, add the loss and learn each row; the total loss is recorded at each of `recorded_rows`."""
    K = len(rule.c)
    loss, linear, mistakes = np.zeros(K), np.zeros(K), np.zeros(K)
    curve, wanted = [], set(recorded_rows.astype(int).tolist())
    for t, (at, v, y) in enumerate(rows, start=1):
        x = rule.x[at]
        score = v @ x
        margin = y * score
        loss += np.logaddexp(0.0, -margin)
        mistakes += margin <= 0
        slope = -y / (1.0 + np.exp(np.minimum(margin, 700.0)))
        linear += slope * score
        g = v[:, None] * slope
        rule.S[at] += g
        rule.x[at] = rule.step(at, x, g)
        if t in wanted:
            curve.append(loss.copy())
    regret = linear + rule.R * np.abs(rule.S).sum(axis=0)
    return Account(rule.c, loss, np.array(curve), regret, mistakes, rule.bounds())


@final
class Global(Rule):
    """FTPRL with a global rate: Q_{1:t} = (c/D) sqrt(sum |g|²) I."""

    def __init__(self, dim: int, constants: Vector, radius: float) -> None:
        super().__init__(dim, constants, radius)
        self.m = np.zeros_like(self.x)
        self.G, self.k, self.length = (np.zeros(len(constants)) for _ in range(3))

    @property
    def hold(self) -> Vector:
        """Return a = Q_{1:t}."""
        return self.c * np.sqrt(self.G) / self.D

    def step(self, at: NDArray[np.int64], x: Vector, g: Vector) -> Vector:
        """Convert m to z = m - a x, play one round of FTPRL, and convert back."""
        before, square = self.hold, np.einsum("ik,ik->k", g, g)
        self.G += square
        after = self.hold
        more = after - before
        z = self.m[at] - before * x + g - more * x
        new = np.clip(np.divide(-z, after, out=x.copy(), where=after > 0), -self.R, self.R)
        self.m[at] = z + after * new
        self.k += more * self.length
        self.length += np.einsum("ik,ik->k", new - x, new + x)
        self.stability += np.divide(square, after, out=np.zeros_like(square), where=after > 0)
        return new

    def bounds(self) -> Bounds:
        """Return the bounds with r at the best corner, computed from S, z and k."""
        a, best = self.hold, -self.R * np.sign(self.S)
        q = self.S - (self.m - a * self.x)
        r = 0.5 * (a * (best * best).sum(axis=0) - 2 * (q * best).sum(axis=0) + self.k)
        worst = 0.5 * a * self.D**2 + self.stability
        best_one = self.D * np.sqrt(2 * self.G)
        return Bounds(r + 0.5 * self.stability, r + self.stability, worst, best_one, best_one)


@final
class Diagonal(Rule):
    """FTPRL-Diag: Q_{1:t} = diag(c sqrt(G_i) / D_i)."""

    def __init__(self, dim: int, constants: Vector, radius: float) -> None:
        super().__init__(dim, constants, radius)
        self.z, self.root = np.zeros_like(self.x), np.zeros_like(self.x)
        self.rate, self.k = constants / (2 * radius), np.zeros(len(constants))

    def step(self, at: NDArray[np.int64], x: Vector, g: Vector) -> Vector:
        """Take a step of Algorithm 1, corrected."""
        old = self.root[at]
        new = np.sqrt(old * old + g * g)
        both = old + new
        seen = both > 0
        sigma = self.rate * np.divide(g * g, both, out=np.zeros_like(g), where=seen)
        z = self.z[at] + g - sigma * x
        hold = self.rate * new
        self.z[at], self.root[at] = z, new
        self.k += np.einsum("ik,ik,ik->k", sigma, x, x)
        self.stability += np.divide(g * g, hold, out=np.zeros_like(g), where=seen).sum(axis=0)
        return np.asarray(np.clip(np.divide(-z, hold, out=x.copy(), where=seen), -self.R, self.R))

    def bounds(self) -> Bounds:
        """Return the bounds with r at the best corner, computed from S, z and k."""
        hold, best = self.rate * self.root, -self.R * np.sign(self.S)
        q = self.S - self.z
        r = 0.5 * ((hold * best * best).sum(axis=0) - 2 * (q * best).sum(axis=0) + self.k)
        S = 2 * self.R * self.root.sum(axis=0)
        worst = 0.5 * (2 * self.R) ** 2 * hold.sum(axis=0) + self.stability
        best_one = self.D * np.sqrt(2 * (self.root**2).sum(axis=0))
        return Bounds(r + 0.5 * self.stability, r + self.stability, worst, math.sqrt(2) * S, best_one)


@final
class GlobalDescent(Rule):
    """Gradient descent with the rate c / sqrt(sum |g|²) for all coordinates."""

    def __init__(self, dim: int, constants: Vector, radius: float) -> None:
        super().__init__(dim, constants, radius)
        self.G = np.zeros(len(constants))

    def step(self, at: NDArray[np.int64], x: Vector, g: Vector) -> Vector:
        """Step against the gradient and clip to the box."""
        square = np.einsum("ik,ik->k", g, g)
        self.G += square
        rate = np.divide(self.c, np.sqrt(self.G), out=np.zeros_like(self.c), where=self.G > 0)
        self.stability += rate * square
        return np.clip(x - rate * g, -self.R, self.R)

    def bounds(self) -> Bounds:
        """Return D²/(2 last rate) + ½ sum rate |g|²."""
        return Bounds(self.D**2 * np.sqrt(self.G) / (2 * self.c) + 0.5 * self.stability)


@final
class FixedDescent(Rule):
    """Gradient descent with a fixed rate."""

    def step(self, at: NDArray[np.int64], x: Vector, g: Vector) -> Vector:
        """Step against the gradient and clip to the box."""
        self.stability += self.c * np.einsum("ik,ik->k", g, g)
        return np.clip(x - self.c * g, -self.R, self.R)

    def bounds(self) -> Bounds:
        """Return |x* - x_1|²/(2 rate) + ½ rate sum |g|²."""
        far = self.R**2 * (self.S != 0).sum(axis=0)
        return Bounds(far / (2 * self.c) + 0.5 * self.stability)


@final
class PerCoordinateDescent(Rule):
    """Gradient descent with the rate c / sqrt(G_i) for coordinate i."""

    def __init__(self, dim: int, constants: Vector, radius: float) -> None:
        super().__init__(dim, constants, radius)
        self.G = np.zeros_like(self.x)

    def step(self, at: NDArray[np.int64], x: Vector, g: Vector) -> Vector:
        """Step against the gradient, each coordinate with its own rate."""
        G = self.G[at] + g * g
        self.G[at] = G
        rate = np.divide(self.c, np.sqrt(G), out=np.zeros_like(G), where=G > 0)
        self.stability += np.einsum("ik,ik,ik->k", rate, g, g)
        return np.clip(x - rate * g, -self.R, self.R)

    def bounds(self) -> Bounds:
        """Return sum D_i² sqrt(G_i)/(2c) + ½ sum rate g²."""
        penalty = (2 * self.R) ** 2 * np.sqrt(self.G).sum(axis=0) / (2 * self.c)
        return Bounds(penalty + 0.5 * self.stability)
