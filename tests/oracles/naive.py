"""FTPRL, simple and slow: it keeps every round and evaluates each formula by definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Argmin = Callable[[Vector, Vector], Vector]  # (Q, h) -> a minimiser over F of ½ x'Qx + h·x


def dense(Q: Vector, n: int) -> Vector:
    """Return a number, a diagonal or a matrix, written out."""
    return np.array(Q) if np.ndim(Q) == 2 else np.diag(np.broadcast_to(Q, (n,)).astype(float))


def outer_sum(gs: Sequence[Vector]) -> Vector:
    """sum g g'."""
    return np.sum([np.outer(g, g) for g in gs], axis=0)


def psd_root(M: Vector) -> Vector:
    """Return the PSD square root."""
    w, V = np.linalg.eigh(M)
    return np.asarray((V * np.sqrt(np.maximum(w, 0.0))) @ V.T)


def const_total(gs: Sequence[Vector], D: float, c: float) -> Vector:
    """Return c sqrt(sum |g_s|²) / D on every axis."""
    n = len(gs[0])
    return np.eye(n) * (c * math.sqrt(sum(float(g @ g) for g in gs)) / D if D else 0.0)


def diagonal_total(gs: Sequence[Vector], widths: Vector, c: float) -> Vector:
    """Return c sqrt(sum g_i²) / D_i, and 0 where D_i = 0."""
    G = np.sum([g * g for g in gs], axis=0)
    return np.diag([c * math.sqrt(Gi) / Di if Di else 0.0 for Gi, Di in zip(G, widths, strict=True)])


def full_total(gs: Sequence[Vector], D: float, c: float, delta: float = 0.0) -> Vector:
    """Return c (delta I + sum g g')^{1/2} / D."""
    return c / D * psd_root(delta * np.eye(len(gs[0])) + outer_sum(gs))


def best_bound_total(gs: Sequence[Vector], best: Callable[[Vector], Vector], b: float) -> Vector:
    """Return b times the diagonal that minimises N(Q) + sum g'Q⁻¹g, as `best` computes it from G."""
    return b * np.diag(best(np.sum([g * g for g in gs], axis=0)))


@dataclass
class Naive:
    """The whole history: g_s, Q_s, x_s, and the next point."""

    dim: int
    g: list[Vector] = field(default_factory=list)
    Q: list[Vector] = field(default_factory=list)
    x: list[Vector] = field(default_factory=list)
    next: Vector | None = None

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.g)

    def add(self, g: Vector, Q: Vector, x: Vector, following: Vector) -> None:
        """Add a round: gradient g at x, increment Q, and `following`, the next leader."""
        self.g.append(np.array(g))
        self.Q.append(dense(Q, self.dim))
        self.x.append(np.array(x))
        self.next = np.array(following)

    def total(self, t: int) -> Vector:
        """Q_{1:t}."""
        return np.sum(self.Q[:t], axis=0) if t else np.zeros((self.dim, self.dim))

    def gradient(self, t: int) -> Vector:
        """g_{1:t}."""
        return np.sum(self.g[:t], axis=0) if t else np.zeros(self.dim)

    def r(self, x: Vector, t: int) -> float:
        """r_{1:t}(x) = sum ½ (x-x_s)'Q_s(x-x_s)."""
        return sum(0.5 * float((x - xs) @ Qs @ (x - xs)) for Qs, xs in zip(self.Q[:t], self.x[:t], strict=True))

    def H(self, x: Vector, t: int) -> float:
        """H_t(x) = sum g_s·x + r_{1:t}(x)."""
        return sum(float(gs @ x) for gs in self.g[:t]) + self.r(x, t)

    def linear_part(self, t: int) -> Vector:
        """h with H_t(x) = ½ x'Q_{1:t}x + h·x + a constant."""
        return self.gradient(t) - np.sum([Q @ x for Q, x in zip(self.Q[:t], self.x[:t], strict=True)], axis=0)

    def regret(self, x: Vector) -> float:
        """sum g_s·(x_s - x)."""
        return sum(float(gs @ (xs - x)) for gs, xs in zip(self.g, self.x, strict=True))

    def deltas(self) -> list[float]:
        """H_t(x_t) - H_t(x_{t+1}) for each t (plays without hints, so that leaders are plays)."""
        assert self.next is not None
        after = [*self.x[1:], self.next]
        return [self.H(self.x[t], t + 1) - self.H(after[t], t + 1) for t in range(self.rounds)]

    def dual_norms(self) -> list[float]:
        """g_t' Q_{1:t}⁺ g_t for each t."""
        return [float(g @ np.linalg.pinv(self.total(t + 1), rcond=1e-10) @ g) for t, g in enumerate(self.g)]

    def stability(self) -> float:
        """sum g_t' Q_{1:t}⁺ g_t."""
        return sum(self.dual_norms())

    def penalty(self, sq_diameter: Callable[[Vector], float]) -> float:
        """sum N(Q_t)."""
        return sum(0.5 * sq_diameter(Q) for Q in self.Q)

    def identity_gap(self, x: Vector) -> tuple[float, float]:
        """Return both sides of the strong theorem's identity: LinRegret(x), r(x) + sum delta - [H_T(x) -
        H_T(x_{T+1})].
        """
        assert self.next is not None
        T = self.rounds
        right = self.r(x, T) + sum(self.deltas()) - (self.H(x, T) - self.H(self.next, T))
        return self.regret(x), right


def play(gs: Sequence[Vector], start: Vector, total: Callable[[Sequence[Vector]], Vector], argmin: Argmin) -> Naive:
    """FTPRL from its definition: Q_{1:t} from all gradients so far, x_{t+1} from the whole history."""
    run = Naive(len(start))
    x = start
    for t, g in enumerate(gs):
        Q = total(gs[: t + 1]) - (total(gs[:t]) if t else 0.0)
        run.add(g, Q, x, x)
        x = argmin(run.total(t + 1), run.linear_part(t + 1))
        run.next = x
    return run
