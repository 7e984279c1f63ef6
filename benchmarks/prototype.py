"""Many scales, one prediction: the learner of docs/scales.md in a few lines of Numba, to measure ideas with.

Needs numba, which the package itself does not. All sums run in the order of the indices; cells are float32 or float64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ftprl.data import Batch

GRID = (0.02, 0.057, 0.16, 0.45, 1.28, 3.6, 10.0, 29.0)
BETA = 0.3
FLOOR = 1.0 / 16.0  # s is never less than this part of the largest |value|
SHARE = 2.0**-10  # the largest share handed round a row
CLIP = 8.0  # the stack sees scores between -8 and 8
RIDGE = 4.0  # its Hessian starts at RIDGE times the identity
CURVE = 2.0**-13  # and no row is flatter than this

Array = NDArray[np.float64]


@final
@dataclass(slots=True)
class Scales:
    """K learners side by side, a stack of their scores, and the mixture of all K + 1."""

    dim: int
    grid: tuple[float, ...] = GRID
    beta: float = BETA
    share: float = SHARE
    stack: bool = True
    float64: bool = False
    z: NDArray[np.floating] = field(init=False)
    R: NDArray[np.floating] = field(init=False)
    s: NDArray[np.floating] = field(init=False)
    N: NDArray[np.floating] = field(init=False)
    intercept: Array = field(init=False)
    u: Array = field(init=False)
    P: Array = field(init=False)
    w: Array = field(init=False)
    tallies: Array = field(init=False)
    totals: Array = field(init=False)

    def __post_init__(self) -> None:
        kind, K = (np.float64 if self.float64 else np.float32), len(self.grid)
        self.z, self.R = np.zeros((self.dim, K), kind), np.zeros((self.dim, K), kind)
        self.s, self.N = np.zeros(self.dim, kind), np.zeros(self.dim, kind)
        self.intercept = np.zeros((2, K))
        self.u, self.P = np.full(K, 1.0 / K), np.eye(K) / RIDGE
        self.w = np.full(K + 1, 1.0 / (K + 1)) if self.stack else np.append(np.full(K, 1.0 / K), 0.0)
        self.tallies = np.array([0.0, 0.0, 0.0, 1.0])  # loss, weight, rows, the largest weight (at least 1)
        self.totals = np.zeros(K + 1)  # the loss of each scale and of the stack

    @property
    def mean(self) -> float:
        """The progressive log loss of the mixture."""
        return float(self.tallies[0] / self.tallies[1])

    def learn(self, batch: Batch, losses: Array | None = None) -> None:
        """Predict, pay and learn each row."""
        table = (self.z, self.R, self.s, self.N, self.intercept, self.u, self.P, self.w, self.tallies, self.totals)
        rows = (batch.indptr, batch.indices, batch.values.astype(np.float64), batch.y, batch.weight)
        if losses is None:
            losses = np.empty(len(batch.y))
        _learn(*rows, *table, np.array(self.grid), self.beta, self.share, self.stack, losses)


def ours(batches: Iterable[Batch], dim: int = 2**22) -> float:
    """The progressive log loss of one pass with the default settings."""
    learner = Scales(dim)
    for batch in batches:
        learner.learn(batch)
    return learner.mean


@njit(cache=True)
def _softplus(a: float) -> float:
    return max(a, 0.0) + math.log1p(math.exp(-abs(a)))


@njit(cache=True)
def _sigmoid(a: float) -> float:
    e = math.exp(-abs(a))
    return 1.0 / (1.0 + e) if a >= 0 else e / (1.0 + e)


@njit(cache=True)
def _over(a: float, b: float) -> float:
    return a / b if b > 0.0 else 0.0


@njit(cache=True)
def _learn(
    indptr, indices, values, ys, weights, z, R, s, N, base, u, P, w, tallies, totals, h, beta, share, stack, out
):
    K, widest = len(h), 1
    for r in range(len(ys)):
        widest = max(widest, indptr[r + 1] - indptr[r])
    x, score, v, Pv, loss, q = (
        np.empty((widest, K)),
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty(K + 1),
        np.empty(K),
    )
    for r in range(len(ys)):
        y, weight, first, last = ys[r], weights[r], indptr[r], indptr[r + 1]
        if not (y == y and weight > 0.0):
            out[r] = np.nan
            continue
        # The features: s follows the root of the mean square, upwards only.
        score[:] = 0.0
        for p in range(first, last):
            i, a = indices[p], abs(values[p])
            N[i] += 1.0
            m = float(s[i])
            if a > m:
                s[i] = max(m, math.sqrt(m * m + (a * a - m * m) / float(N[i])), a * FLOOR)
            m = float(s[i])
            for k in range(K):
                x[p - first, k] = _over(-float(z[i, k]) * h[k], m * (beta * m + float(R[i, k])))
                score[k] += x[p - first, k] * values[p]
        for k in range(K):
            q[k] = _over(-base[0, k] * h[k], beta + base[1, k])
            score[k] += q[k]
        # The stack: one more expert, linear in the scores.
        f = 0.0
        for k in range(K):
            v[k] = min(max(score[k], -CLIP), CLIP)
            f += u[k] * v[k]
            loss[k] = _softplus(-y * score[k])
        loss[K] = _softplus(-y * f)
        # The mixture. A new largest weight cools it first, so that no row counts more than 1.
        experts = K + 1 if stack else K
        if weight > tallies[3]:
            total = 0.0
            for j in range(experts):
                w[j] = w[j] ** (tallies[3] / weight)
                total += w[j]
            for j in range(experts):
                w[j] /= total
            tallies[3] = weight
        least = loss[0]
        for j in range(1, experts):
            least = min(least, loss[j])
        mixed, total = 0.0, 0.0
        eta = weight / tallies[3]
        for j in range(experts):
            mixed += w[j] * math.exp(least - loss[j])
        for j in range(experts):
            w[j] *= math.exp(eta * (least - loss[j]))
            total += w[j]
        out[r] = least - math.log(mixed)
        tallies[0] += weight * out[r]
        tallies[1] += weight
        tallies[2] += 1.0
        a = min(share, 1.0 / (tallies[2] + 1.0))
        for j in range(experts):
            w[j] = (1.0 - a) * (w[j] / total) + a / experts
            totals[j] += weight * loss[j]
        # The stack's Newton step.
        if stack:
            pf = _sigmoid(f)
            curve = weight * max(pf * (1.0 - pf), CURVE)
            vPv = 0.0
            for i in range(K):
                Pv[i] = 0.0
                for j in range(K):
                    Pv[i] += P[i, j] * v[j]
                vPv += v[i] * Pv[i]
            den = 1.0 + curve * max(vPv, 0.0)
            step, shrink = weight * (-y * _sigmoid(-y * f)) / den, curve / den
            for i in range(K):
                u[i] -= step * Pv[i]
                for j in range(K):
                    P[i, j] -= shrink * (Pv[i] * Pv[j])
        # Each scale's own step.
        for k in range(K):
            score[k] = weight * (-y * _sigmoid(-y * score[k]))
            new = math.sqrt(base[1, k] * base[1, k] + score[k] * score[k])
            base[0, k] += score[k] - (new - base[1, k]) / h[k] * q[k]
            base[1, k] = new
        for p in range(first, last):
            i = indices[p]
            m = float(s[i])
            for k in range(K):
                g, old = score[k] * values[p], float(R[i, k])
                R[i, k] = max(math.sqrt(old * old + g * g), old)
                z[i, k] = float(z[i, k]) + (g - m * (float(R[i, k]) - old) / h[k] * x[p - first, k])
