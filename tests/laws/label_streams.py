"""Streams and comparisons for the laws of labels in any unit: every loss but the log loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.linear.spec import AUTO
from ftprl.losses import SCALAR_LOSSES
from ftprl.receipt.replay import Replay
from laws.learner_arrays import arrays_of, assert_arrays

KERNELS = [name for name in ("portable", "sse2", "avx2") if use_instruction_set(name)]
use_instruction_set("")
LABELLED = tuple(name for name, loss in SCALAR_LOSSES.items() if loss.has_units)
NUMBERS = ("squared", "absolute", "quantile", "huber")
GRIDS = ((0.05, 0.4), (0.02, 0.1, 0.5, 2.5), AUTO, tuple(0.01 * 1.7**k for k in range(16)))


def linear_stream(seed: int, loss: str, *, rows: int = 300, dim: int = 12, weighted: bool = True) -> Batch:
    """Return rows with labels that follow fixed weights plus noise, far from 0 if the loss takes any number."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, dim)) * (rng.random((rows, dim)) < 0.4) * 10.0 ** rng.integers(-1, 2, size=dim)
    score = X @ (rng.normal(size=dim) / np.abs(X).max(axis=0)) + 0.3 * rng.normal(size=rows)
    kind = SCALAR_LOSSES[loss].labels
    y = {
        "signs": np.where(score > 0, 1.0, -1.0),
        "nonnegative": rng.poisson(3.0 * np.exp(np.clip(score, -3.0, 3.0))).astype(np.float64),
        "positive": np.exp(np.clip(score, -3.0, 3.0)) * rng.gamma(2.0, size=rows),
        "numbers": 1000.0 + 100.0 * score,
    }[kind]
    weight = rng.choice([0.0, 0.5, 1.0, 1.0, 3.0], size=rows) if weighted else np.ones(rows)
    entries = [[(i, v) for i, v in enumerate(x) if v] for x in X.tolist()]
    return Batch.from_rows(entries, y, weight, float64=True)


def dense(batch: Batch, dim: int) -> np.ndarray:
    """Return the values of a batch as a dense matrix."""
    X = np.zeros((len(batch), dim))
    X[np.repeat(np.arange(len(batch)), np.diff(batch.indptr)), batch.indices] = batch.values
    return X


def state_of(learner: Engine | Replay) -> dict[str, np.ndarray]:
    """All numbers that a learner and its replay have in common, by name, without the arrays of the experts."""
    slots = learner.touched().astype(np.intp)
    own = {
        name: np.asarray(a).reshape(len(slots), np.size(a) // max(len(slots), 1))
        for name, a in learner.parts_at(slots).items()
    }
    own |= {"slots": slots, "intercept": learner.intercept_columns[0].copy(), "tallies": learner.tallies[:3].copy()}
    for k in range(len(learner.spec.scales)):
        sums = (learner.sums_of(k), learner.rounding_sums(k), learner.row_sums(k))
        own[f"sums {k}"] = np.array([getattr(s, name) for s in sums for name in type(s).__slots__])
    return own | {"labels": label_numbers(learner)}


def label_numbers(learner: Engine | Replay) -> np.ndarray:
    if isinstance(learner, Engine):
        known = learner.label_state
        assert known is not None
        return np.array(list(known.values()))
    return learner.arrays["labels"].copy()


def assert_same(one: Engine, other: Engine | Replay) -> None:
    """Compare all numbers of two learners, to the bit."""
    a, b = state_of(one), state_of(other)
    assert a.keys() == b.keys()
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name], err_msg=name)
    if isinstance(other, Replay):
        assert_arrays(one, other)
        return
    ours, theirs = arrays_of(one), arrays_of(other)
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def learned(batch: Batch) -> np.ndarray:
    """Return a mask of the rows that are learned."""
    return (batch.weight > 0) & (batch.y == batch.y)


def progressive(s: Spec, batch: Batch, **options: Any) -> tuple[Engine, np.ndarray, np.ndarray]:
    """Return the engine after a batch, with scores and losses from before each row was learned."""
    engine = Engine(s, **options)
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    engine.learn(batch, scores=scores, losses=losses)
    return engine, scores, losses
