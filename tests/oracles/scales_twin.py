"""A simple twin of the kernel for several scales with the log loss: equal numbers, to the bit (docs/scales.md).

Scalars are Python floats, and functions are those of the C library; lanes are NumPy arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear import LossTotals
from ftprl.linear.spec import Spec
from oracles.linear_twin import CUT, play, step, total
from oracles.mixing_twin import Mixing

Vector = NDArray[np.float64]


def _of_cells(z: Vector, R: Vector, s: Vector, S: Vector) -> Vector:
    """Return one scale's cells in the form of the single-scale twin, in float64."""
    return np.stack([z, R, s, S], axis=1).astype(np.float64)


@final
class ReferenceScales:
    """An `Engine` of several scales to read, one row at a time."""

    def __init__(self, spec: Spec) -> None:
        self.spec, count = spec, len(spec.scales)
        # Each scale has its own spec: plays and steps are those of one scale, with s instead of M.
        self.each = [replace(spec, scale=h, retired=()) for h in spec.scales]
        self.free = [replace(one, l1=0.0, l2=0.0, lower=-math.inf, upper=math.inf) for one in self.each]
        self.loss = spec.scalar_loss()
        self.kind: type[np.floating[Any]] = np.float64 if spec.float64 else np.float32
        shapes = {
            "z": (spec.dim, count),
            "R": (spec.dim, count),
            "S": (spec.dim, count),
            "unit": (spec.dim,),
            "count": (spec.dim,),
        }
        self.parts: dict[str, Any] = {name: np.zeros(shape, self.kind) for name, shape in shapes.items()}
        self.parts["S"] = np.zeros(shapes["S"])
        self.intercept = np.zeros((4, count))  # z, R, S and kappa, which is 1 with the log loss
        self.intercept[3] = 1.0
        self.sums = np.zeros((3, count))
        self.tallies = np.zeros(6)
        self.mixing = Mixing(count, spec.stacked)
        self.late_scores: dict[int, list[float]] = {}  # by the scales of rows whose labels arrive late

    @property
    def state(self) -> dict[str, Vector]:
        """Return the state of the mixture, by name, and the sums of the receipt."""
        return {**self.mixing.state, "sums": self.sums}

    @property
    def progress(self) -> LossTotals:
        """Return the progress over all rows so far."""
        return LossTotals(float(self.tallies[0]), float(self.tallies[1]), int(self.tallies[2]))

    def _raise(self, indices: NDArray[np.uint32], v: Vector) -> None:
        """Raise the units of a row's features: s follows the root mean square, upwards only."""
        s, N = self.parts["unit"], self.parts["count"]
        for i, a in zip(indices.tolist(), np.abs(v).tolist(), strict=True):
            N[i] = self.kind(float(N[i]) + 1.0)
            m = float(s[i])
            if a > m:
                s[i] = self.kind(max(m, math.sqrt(m * m + (a * a - m * m) / float(N[i])), a / 16.0))

    def _row(self, batch: Batch, r: int) -> tuple[NDArray[np.uint32], Vector]:
        row = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
        return batch.indices[row], batch.values[row].astype(np.float64)

    def _cells(self, indices: Any) -> list[Vector]:
        z, R, S, s = (self.parts[name][indices] for name in ("z", "R", "S", "unit"))
        return [_of_cells(z[:, k], R[:, k], s, S[:, k]) for k in range(len(self.each))]

    def _bases(self) -> list[Vector]:
        one = np.ones(1)
        return [_of_cells(z[None], R[None], one, S[None]) for z, R, S, _ in self.intercept.T]

    def _plays(self, cells: list[Vector], bases: list[Vector]) -> tuple[list[Vector], list[Vector]]:
        x = [play(own, one) for own, one in zip(cells, self.each, strict=True)]
        zero = np.zeros(1)
        return x, [play(b, one) if one.intercept else zero for b, one in zip(bases, self.free, strict=True)]

    def _stack(self) -> tuple[Vector, Vector]:
        return self.mixing.state["P"].copy(), self.mixing.state["u"].copy()

    def _learn_stack(self, before: tuple[Vector, Vector], scores: list[float], y: float, weight: float) -> None:
        """Take the Newton step from the stack before the row, at scores that may differ from the judged ones."""
        state = self.mixing.state
        state["P"][...], state["u"][...] = before
        self.mixing.learn_stack(scores, self.mixing.experts(scores)[-1], y, weight)

    def learn(
        self,
        batch: Batch,
        *,
        scores: Vector | None = None,
        losses: Vector | None = None,
        late: Sequence[int] | None = None,
    ) -> LossTotals:
        """Predict and then learn each row that has a label and a positive weight.

        Rows with a number in `late` are predicted first and learned later: the mixture uses the scores of the
        prediction, the stack the current ones.
        """
        loss, heavy, rows = 0.0, 0.0, 0
        for r in range(len(batch)):
            indices, v = self._row(batch, r)
            y, weight = float(batch.y[r]), float(batch.weight[r])
            learns = y == y and weight > 0
            if learns:
                self._raise(indices, v)
            cells, bases = self._cells(indices), self._bases()
            x, x0 = self._plays(cells, bases)
            result = [total(a * v) + float(b[0]) for a, b in zip(x, x0, strict=True)]
            if late is not None and not learns:
                self.late_scores[late[r]] = result
            if learns:
                self.tallies[2] += 1.0
                judged, stack = result if late is None else self.late_scores.pop(late[r]), self._stack()
                score, value = self.mixing.learn(judged, y, weight, int(self.tallies[2]))
                if late is not None and self.spec.stacked:
                    self._learn_stack(stack, result, y, weight)
            else:
                score, value = self.mixing.predict(result, y)
            if scores is not None:
                scores[r] = score
            if losses is not None:
                losses[r] = value
            if not learns:
                continue
            loss, heavy, rows = loss + weight * value, heavy + weight, rows + 1
            self.tallies[:2] += [weight * value, weight]
            for k, one in enumerate(self.each):
                slope = weight * self.loss.slope(result[k], y)
                parts = step(cells[k], x[k], slope * v, one, self.kind)
                own = [np.zeros(1)] * 3
                if one.intercept:
                    own = step(bases[k], x0[k], np.array([slope]), self.free[k], np.float64)
                    self.intercept[:3, k] = bases[k][0, [0, 1, 3]]
                self.sums[:, k] += [total(a) + float(b[0]) for a, b in zip(parts, own, strict=True)]
                for name, column in (("z", 0), ("R", 1)):
                    self.parts[name][indices, k] = cells[k][:, column]
                self.parts["S"][indices, k] += np.clip(slope * v, -CUT[self.kind], CUT[self.kind])  # always float64
        return LossTotals(loss, heavy, rows)

    def score(self, batch: Batch) -> Vector:
        """Return the mixture's score of each row, without learning."""
        scores = np.empty(len(batch))
        for r in range(len(batch)):
            indices, v = self._row(batch, r)
            x, x0 = self._plays(self._cells(indices), self._bases())
            result = [total(a * v) + float(b[0]) for a, b in zip(x, x0, strict=True)]
            scores[r] = self.mixing.predict(result, math.nan)[0]
        return scores

    def weights(self, scale: int) -> Vector:
        """Return the point that one scale plays in each cell."""
        return play(self._cells(slice(None))[scale], self.each[scale])
