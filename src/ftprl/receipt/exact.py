"""The true best fixed weights of a box for a stream: a convex problem, solved in several passes, with a proved gap.

For a convex f and any u, every v of the box has f(v) >= f(u) + ∇f(u)·(v - u), hence f(u) minus
sum ∇_i u_i + B_i |∇_i| is a lower bound on the least loss: the true regret is proved from both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.extras import extra_imports
from ftprl.linear import Model
from ftprl.linear.classes import ClassTable
from ftprl.receipt.document import first_spec
from ftprl.receipt.learned_data import LearnedData
from ftprl.receipt.ledger import Certifiable, coordinate_blocks
from ftprl.receipt.provenance import provenance_of
from ftprl.receipt.replay import Replay

with extra_imports:
    from scipy.optimize import minimize
    from scipy.sparse import csr_array, vstack

Vector = NDArray[np.float64]
Part = tuple[Any, Vector, Vector, Vector]

FITS = 200_000_000  # entries that are kept in memory; beyond, every step reads the data again
STEPS = 2000
SMALL = 5000  # coordinates
GAP = 1e-7  # of the loss: where the search may stop


def best_fixed(model: Model, data: Any, radius: float) -> dict[str, float]:
    """The least loss of the box |u_i| <= radius / unit_i on the data a model learned, and the true regret."""
    return best_of(model.engine, learned_data(model, data), radius, model.class_table)


def learned_data(model: Model, data: Any) -> LearnedData:
    """The rows that a model learned, from data that has to be the same."""
    record = provenance_of(model)
    if record is None or not record.runs:
        raise InvalidInput("exact needs a model of a finished ftprl train, got one made by hand; train it.")
    learned = LearnedData(data, record.runs, model.reading, model.spec)
    learned.check_digests()
    return learned


def best_of(
    engine: Certifiable, data: LearnedData, radius: float, classes: ClassTable | None = None
) -> dict[str, float]:
    """The same for an engine or its twin; `classes` has the numbers of its labels, if it has several classes."""
    problem = Problem(engine, data, radius, classes)
    small = problem.smooth and len(problem.start) <= SMALL
    near = descend(problem, 100 if small else STEPS)
    if small:  # with many coordinates at their bounds Newton's steps get short, and cost more than they bring
        newton(problem, near)
    return regrets(engine.row_sums(0).prediction_loss, problem.best, problem.least)


def regrets(loss: float, best: float, least: float) -> dict[str, float]:
    """What follows from the least loss that was reached and the one that is proved."""
    return {
        "best_loss": best,
        "best_loss_at_least": least,
        "true_regret": loss - least,
        "true_regret_at_least": loss - best,
    }


def descend(problem: Problem, steps: int) -> Vector:
    """L-BFGS-B in coordinates of equal curvature, where there is one. The gap says how far off it stops."""
    best = problem.start
    stretch = np.ones_like(best)
    if problem.smooth:
        curve = np.sqrt(problem.curvature(best)[1])
        stretch = np.maximum(curve, 1e-9 * curve.max(initial=1e-300))

    def step(t: Vector) -> tuple[float, Vector]:
        nonlocal best
        best = np.clip(t / stretch, problem.low, problem.high)
        value, slope = problem(best)
        if problem.is_solved:
            raise StopIteration
        return value, slope / stretch

    limits = np.stack([problem.low * stretch, problem.high * stretch], axis=1)
    options = {"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "gtol": 0.0, "maxcor": 20}
    with suppress(StopIteration):
        result = minimize(step, best * stretch, jac=True, method="L-BFGS-B", bounds=limits, options=options)
        best = np.clip(result.x / stretch, problem.low, problem.high)
    return best


def newton(problem: Problem, t: Vector) -> None:
    """Newton steps in the coordinates that are free to move, by conjugate gradients, projected onto the box."""
    value, slope = problem(t)
    for _ in range(60):
        if problem.is_solved:
            return
        # What is about to be stopped by a bound counts as stopped, or it would stop the whole step.
        near = 1e-3 * min(problem.gap, 1.0) * (problem.high - problem.low)
        stuck = ((t <= problem.low + near) & (slope > 0)) | ((t >= problem.high - near) & (slope < 0))
        direction = _conjugate(problem, t, np.where(stuck, 0.0, -slope), ~stuck, min(0.1, problem.gap) ** 2)
        direction[stuck] = np.where(slope[stuck] > 0, problem.low[stuck] - t[stuck], problem.high[stuck] - t[stuck])
        length = 1.0
        for _ in range(40):
            there = np.clip(t + length * direction, problem.low, problem.high)
            new, new_slope = problem(there)
            if new <= value + 1e-4 * float((slope * (there - t)).sum()):
                break
            length *= 0.5
        else:
            return
        t, value, slope = there, new, new_slope


def _conjugate(problem: Problem, t: Vector, goal: Vector, free: NDArray[np.bool_], rough: float) -> Vector:
    """H d = goal in the free coordinates, roughly, with the diagonal of H as a preconditioner."""
    times, diagonal = problem.curvature(t)
    ridge = 1e-9 * float(diagonal.max(initial=0.0)) + 1e-300
    scale = np.where(free, 1.0 / (diagonal + ridge), 0.0)
    d, r = np.zeros_like(goal), goal.copy()
    z = scale * r
    p, rz = z.copy(), float((r * z).sum())
    enough = max(1e-12, rough) * rz
    for _ in range(250):
        if rz <= enough:
            break
        Hp = np.where(free, times(p) + ridge * p, 0.0)
        alpha = rz / float((p * Hp).sum())
        d += alpha * p
        r -= alpha * Hp
        z = scale * r
        rz, old = float((r * z).sum()), rz
        p = z + (rz / old) * p
    return d


class RowLoss(Protocol):
    """The losses of rows as functions of their scores: one of each row, or one of each row and column of classes."""

    is_smooth: bool

    def value_and_slope(self, scores: Vector, y: Vector) -> tuple[Vector, Vector]: ...
    def curvature(self, scores: Vector, y: Vector) -> tuple[Callable[[Vector], Vector], Vector]:
        """The products of the Hessians of all rows with directions of their scores, and their diagonals."""


@final
class _OneScore:
    def __init__(self, arrays: Callable[[Vector, Vector], tuple[Vector, Vector, Vector | None]]) -> None:
        self._arrays, self.is_smooth = arrays, arrays(np.ones(1), np.ones(1))[2] is not None

    def value_and_slope(self, scores: Vector, y: Vector) -> tuple[Vector, Vector]:
        return self._arrays(scores, y)[:2]

    def curvature(self, scores: Vector, y: Vector) -> tuple[Callable[[Vector], Vector], Vector]:
        curve = self._arrays(scores, y)[2]
        assert curve is not None
        return lambda direction: curve * direction, curve


@final
class _Softmax:
    """Each column counts as often as there are classes that it stands for."""

    is_smooth = True

    def __init__(self, copies: Vector) -> None:
        self._copies = copies

    def _chances(self, scores: Vector) -> tuple[Vector, Vector]:
        """Of all classes of each column together, and the logarithm of what they are divided by."""
        high = scores.max(axis=1, keepdims=True)
        powers = self._copies * np.exp(scores - high)
        total = powers.sum(axis=1, keepdims=True)
        return powers / total, (high + np.log(total))[:, 0]

    def value_and_slope(self, scores: Vector, y: Vector) -> tuple[Vector, Vector]:
        slope, logs = self._chances(scores)
        at = np.arange(len(y)), y.astype(np.intp)
        slope[at] -= 1.0
        return logs - scores[at], slope

    def curvature(self, scores: Vector, y: Vector) -> tuple[Callable[[Vector], Vector], Vector]:
        p = self._chances(scores)[0]
        return lambda d: p * d - p * (p * d).sum(axis=1, keepdims=True), p * (1.0 - p)


def _from(scores: Vector, offset: Vector) -> Vector:
    return scores + offset if scores.ndim == 1 else scores


def _times(weight: Vector, terms: Vector) -> Vector:
    return weight * terms if terms.ndim == 1 else weight[:, None] * terms


@final
class Problem:
    """f(t) = the total loss of the fixed weights t_i / unit_i, with its gradient, over a box.

    With several classes t has a number for each coordinate and column of classes, in this order. A column that stands
    for m classes, which are all alike and so have the same best weights, has sqrt(m) times its weight in t: the length
    of t is then that of all weights. Without a box the classes that never came have no probability: the floor is
    about models without them.
    """

    def __init__(
        self, engine: Certifiable, data: LearnedData, radius: float, classes: ClassTable | None = None
    ) -> None:
        spec, counted = engine.spec, engine.copies
        if engine.classes_to_come and radius == math.inf:
            counted[-1] = 0.0
        self._loss = spec.scalar_loss()
        self._of_row: RowLoss = _OneScore(self._loss.arrays) if classes is None else _Softmax(counted)
        self._classes, self._roots = classes, np.sqrt(engine.copies)
        self._intercept = spec.intercept
        C = len(self._roots)
        own = [b for b in coordinate_blocks(engine) if not b.free]
        slots = np.concatenate([b.slots[::C] for b in own if b.slots is not None] or [np.empty(0, np.intp)])
        unit = np.concatenate([b.unit[::C, 0] for b in own] or [np.empty(0)])
        self._column_of = np.full(spec.dim, -1, np.int64)
        self._column_of[slots] = np.arange(len(slots))
        self._unit = unit
        size = len(slots) + spec.intercept
        low, high = np.full(size, -radius), np.full(size, radius)
        lower, upper = engine.limits_at(slots)
        low[: len(slots)] = np.maximum(-radius, lower * unit)
        high[: len(slots)] = np.minimum(radius, upper * unit)
        self.low, self.high = (np.outer(ends, self._roots).reshape(-1) for ends in (low, high))
        plays = [b.play()[:, engine.leader] * b.unit[:, 0] for b in coordinate_blocks(engine)]
        start = np.concatenate(plays) if plays else np.empty(0)
        self.start: Vector = np.asarray(np.clip(start * np.tile(self._roots, size), self.low, self.high))
        self.best, self.least = math.inf, -math.inf
        self._data, self._kept = data, list[Any]()
        self._spec, self._offsets = spec, list[tuple[Vector, Vector]]()
        self._fits = False
        self._load(engine)

    @property
    def smooth(self) -> bool:
        """Whether the loss has a curvature."""
        return self._of_row.is_smooth

    @property
    def gap(self) -> float:
        """How far the best loss is, at most, above the least, as a part of it."""
        return (self.best - self.least) / max(abs(self.best), 1.0)

    @property
    def is_solved(self) -> bool:
        """Whether the best loss is proved to be near the least."""
        return self.gap <= GAP

    def _load(self, engine: Certifiable) -> None:
        weight, entries = 0.0, 0
        for part in self._read():
            weight += float(part[2].sum())
            entries += part[0].nnz
            if entries <= FITS:
                self._kept.append(part)
        self._fits = entries <= FITS
        if self._fits and self._kept:
            X = vstack([part[0] for part in self._kept], format="csr")
            self._kept = [(X, *(np.concatenate([part[i] for part in self._kept]) for i in (1, 2, 3)))]
        else:
            self._kept = []
        learned = engine.row_sums(0).weight
        if abs(weight - learned) > 1e-9 * learned:
            raise InvalidInput(
                f"exact needs the data that was learned, of weight {learned:.12g}, got {weight:.12g};"
                " pass the same files."
            )

    def _read(self) -> Iterator[Part]:
        """Rows that were learned: a matrix in normalised units, labels, weights, and what scores are counted from."""
        before, offsets = 0, self._row_offsets()
        for number, run in enumerate(self._data.runs):
            # With an offset, which follows the labels, every pass has rows of its own.
            passes, times = (run["passes"], 1) if self._loss.has_offset else (1, run["passes"])
            for _ in range(passes):
                for batch, _, _ in self._data.in_order(number, before, self._labelled):
                    labels = batch.y
                    learned = (batch.weight > 0) & (labels == labels)
                    offset, shares = next(offsets, (np.zeros(int(learned.sum())), 1.0))
                    yield self._matrix(batch)[learned], labels[learned], batch.weight[learned] * times * shares, offset
            before += run["rows"] // run["passes"]

    def _row_offsets(self) -> Iterator[tuple[Vector, Vector]]:
        """What scores are counted from and weights are multiplied by, batch by batch; nothing without an offset.

        Which labels are cut, and where the learner begins anew, follows from what it has lost: it is replayed, once.
        """
        if not self._loss.has_offset:
            return
        if not self._offsets:
            replay, before = Replay(first_spec(self._spec), retire=True), 0

            def arrive(batch: Batch, unfit: NDArray[np.bool_]) -> tuple[Batch, NDArray[np.bool_]]:
                replay.meet_names(batch)
                return batch, unfit

            for number, run in enumerate(self._data.runs):
                meets = arrive if run["order"]["order"] == "random" else None
                for _ in range(run["passes"]):
                    parts = self._data.in_order(number, before, meets)
                    self._offsets += [replay.learn_offsets(part.batch) for part in parts]
                before += run["rows"] // run["passes"]
        yield from self._offsets

    def _matrix(self, batch: Batch) -> Any:
        column = self._column_of[batch.indices]
        known = column >= 0  # others stand in no row that was learned
        shape = (len(batch), len(self._unit))
        if not known.any():
            return csr_array(shape)
        column = np.maximum(column, 0)
        return csr_array((np.where(known, batch.values / self._unit[column], 0.0), column, batch.indptr), shape=shape)

    def _parts(self) -> Iterator[Part]:
        return iter(self._kept) if self._fits else self._read()

    def _labelled(self, batch: Batch, unfit: NDArray[np.bool_]) -> tuple[Batch, NDArray[np.bool_]]:
        """With several classes their numbers as labels; NaN for a row of none that was learned."""
        y = batch.y if self._classes is None else self._classes.known(batch.y, batch.label_texts)
        return batch.replaced(y=y), unfit

    def _scores(self, X: Any, t: Vector) -> Vector:
        """Of each row, or of each row and column of classes."""
        n, weights = len(self._unit), t
        if self._classes is not None:
            weights = t.reshape(-1, len(self._roots)) / self._roots
        return np.asarray(X @ weights[:n] + (weights[n] if self._intercept else 0.0))

    def _back(self, X: Any, pull: Vector, roots: Vector | None = None) -> Vector:
        """X'pull, an entry per entry of t."""
        own = np.asarray(X.T @ pull)
        if self._classes is None:
            return np.append(own, pull.sum()) if self._intercept else own
        own = np.vstack([own, pull.sum(axis=0)]) if self._intercept else own
        return np.asarray((own / (self._roots if roots is None else roots)).reshape(-1))

    def __call__(self, t: Vector) -> tuple[float, Vector]:
        """f and ∇f; the best loss and its lower bound are kept."""
        value, slope = self.value_and_slope(t)
        aim = np.where(slope > 0, self.low, self.high)
        self.best = min(self.best, value)
        self.least = max(self.least, value + float((slope * (aim - t)).sum()))
        return value, slope

    def value_and_slope(self, t: Vector) -> tuple[float, Vector]:
        """f and ∇f alone, without regard to the box."""
        value, slope = 0.0, np.zeros_like(t)
        for X, y, weight, offset in self._parts():
            losses, pull = self._of_row.value_and_slope(_from(self._scores(X, t), offset), y)
            value += float((weight * losses).sum())
            slope += self._back(X, _times(weight, pull))
        return value, slope

    def curvature(self, t: Vector) -> tuple[Callable[[Vector], Vector], Vector]:
        """The product with the Hessian at t, and its diagonal."""
        rows, diagonal = [], np.zeros_like(t)
        for X, y, weight, offset in self._parts():
            product, own = self._of_row.curvature(_from(self._scores(X, t), offset), y)
            rows.append((product, weight))
            diagonal += self._back(X.power(2), _times(weight, own), self._roots**2)

        def times(p: Vector) -> Vector:
            out = np.zeros_like(p)
            for (X, _, _, _), (product, weight) in zip(self._parts(), rows, strict=True):
                out += self._back(X, _times(weight, product(self._scores(X, p))))
            return out

        return times, diagonal
