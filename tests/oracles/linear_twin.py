"""A simple twin of the compiled kernel with the log loss: equal numbers, to the bit, from a few lines of NumPy.

All arithmetic is in float64, whatever a cell stores; a stored number is rounded once, when it is stored.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.spec import Spec
from ftprl.linear.totals import LossTotals, RegretSums

Vector = NDArray[np.float64]
CUT = {np.float32: 2.0**96, np.float64: 2.0**400}  # no gradient is larger, so that no cell overflows


def total(terms: Vector) -> float:
    """Return the sum in the order of the kernel: four partial sums of every fourth term, then their sum."""
    lanes = [0.0, 0.0, 0.0, 0.0]
    for k, term in enumerate(terms.tolist()):
        lanes[k % 4] += term
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


def play(cells: Vector, spec: Spec) -> Vector:
    """Return clip(-sgn(z)(|z| - l1 M)_+ / (Q + l2 M²)), and clip(0) if Q + l2 M² = 0."""
    z, R, M, _ = cells.T
    pull = np.copysign(np.maximum(np.abs(z) - spec.l1 * M, 0.0), -z) * spec.scales[0]
    x: Vector = np.clip(_over(pull, _strength(R, M, spec)), spec.lower, spec.upper)
    return x


def step(cells: Vector, x: Vector, g: Vector, spec: Spec, kind: type[np.floating[Any]]) -> list[Vector]:
    """Move z, R and S by the gradient g at x; return the terms of the receipt's three sums."""
    z, R, M, S = cells.T
    g = np.clip(g, -CUT[kind], CUT[kind])
    new = np.maximum(np.sqrt(R * R + g * g).astype(kind), R)
    sigma = M * (new - R) * (1.0 / spec.scales[0])  # from what is stored: Q is then what z assumes
    most = np.finfo(kind).max  # a bound may hold x far from what z asks for, and sigma x is then not tied to z
    cells[:, 0] = np.clip(z + (g - sigma * x), -most, most).astype(kind)
    cells[:, 1] = new
    cells[:, 3] = (S + g).astype(kind)
    return [g * x, sigma * x * x, g * _over(g * spec.scales[0], _strength(new, M, spec))]


@final
class Reference:
    """An `Engine` to read: the scale-free diagonal scheme with the log loss, one row at a time."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        # The intercept is a coordinate of value 1 without penalty or bounds.
        self.free = replace(spec, l1=0.0, l2=0.0, lower=-math.inf, upper=math.inf)
        self.loss = spec.scalar_loss()
        self.cells: NDArray[np.float32] | NDArray[np.float64]
        self.cells = np.zeros((spec.dim, 4)) if spec.float64 else np.zeros((spec.dim, 4), np.float32)
        self.base = np.array([0.0, 0.0, 1.0, 0.0])  # the intercept's cell, always float64
        self.tallies = np.zeros(6)

    @property
    def intercept(self) -> Vector:
        """Return z, R, S and kappa of the intercept, one row each; kappa is 1 with the log loss."""
        return np.append(self.base[[0, 1, 3]], 1.0)[:, None]

    @property
    def progress(self) -> LossTotals:
        """Return the progress over all rows so far."""
        return LossTotals(float(self.tallies[0]), float(self.tallies[1]), int(self.tallies[2]))

    @property
    def sums(self) -> RegretSums:
        """Return the sums that a receipt needs besides the cells."""
        return RegretSums(*self.tallies[3:].tolist())

    def learn(self, batch: Batch, *, scores: Vector | None = None, losses: Vector | None = None) -> LossTotals:
        """Predict and then learn each row that has a label and a positive weight."""
        loss, heavy, rows = 0.0, 0.0, 0
        kind = self.cells.dtype.type
        for r in range(len(batch)):
            indices, v = _entries(batch, r)
            y, weight = float(batch.y[r]), float(batch.weight[r])
            learns = y == y and weight > 0
            cells, base = self.cells[indices].astype(np.float64), self.base[None, :].copy()
            if learns:
                cells[:, 2] = np.maximum(cells[:, 2], np.abs(v).astype(kind))
            x = play(cells, self.spec)
            x0 = play(base, self.free) if self.spec.intercept else np.zeros(1)
            score = total(x * v) + float(x0[0])
            value = self.loss.value(score, y) if y == y else y
            if scores is not None:
                scores[r] = score
            if losses is not None:
                losses[r] = value
            if not learns:
                continue
            slope = weight * self.loss.slope(score, y)
            parts = step(cells, x, slope * v, self.spec, kind)
            self.cells[indices] = cells
            own = [np.zeros(1)] * 3
            if self.spec.intercept:
                own = step(base, x0, np.array([slope]), self.free, np.float64)
                self.base[:] = base[0]
            loss, heavy, rows = loss + weight * value, heavy + weight, rows + 1
            self.tallies += [
                weight * value,
                weight,
                1.0,
                *(total(a) + float(b[0]) for a, b in zip(parts, own, strict=True)),
            ]
        return LossTotals(loss, heavy, rows)

    def score(self, batch: Batch) -> Vector:
        """Return x·v for each row, with the current weights."""
        x0 = float(play(self.base[None, :], self.free)[0]) if self.spec.intercept else 0.0
        scores = np.empty(len(batch))
        for r in range(len(batch)):
            indices, v = _entries(batch, r)
            scores[r] = total(play(self.cells[indices].astype(np.float64), self.spec) * v) + x0
        return scores

    def weights(self) -> Vector:
        """Return the point x played in each cell."""
        return play(self.cells.astype(np.float64), self.spec)


def _entries(batch: Batch, r: int) -> tuple[NDArray[np.uint32], Vector]:
    row = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
    return batch.indices[row], batch.values[row].astype(np.float64)


def _strength(R: Vector, M: Vector, spec: Spec) -> Vector:
    """Return h (Q + l2 M²), with Q = M (beta M + R) / h and R = sqrt G."""
    return M * (spec.beta * M + R) + spec.scales[0] * spec.l2 * (M * M)


def _over(a: Vector, b: Vector) -> Vector:
    """Return a / b, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
