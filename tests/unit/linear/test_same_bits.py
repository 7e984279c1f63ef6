"""One thread or two, vectors or plain loops: a learner has the same bytes after a stream whose columns change."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.linear.model import Model
from ftprl.linear.spec import AUTO
from laws.learner_arrays import arrays_of

LOSSES = ("logistic", "squared", "absolute", "quantile", "huber", "poisson", "gamma", "hinge", "squared_hinge")
CLASSES = ("softmax", "ovr")
ROWS, NUMBERS, NAMES = 2100, 4, 12  # more rows than threads ask for, and more than one octave of columns
MANY = 60  # classes: the scores of a block are many, so that it has fewer rows


def rows_of(loss: str, seed: int = 0, n: int = ROWS) -> Batch:
    """Return numbers and names, other ones from the middle on; some rows have no label or no weight."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, NUMBERS)) * [1, 10, 0.1, 1] + [0, 100, 3, 0]).astype(np.float32)
    score, rows = X[:, 0] + (X[:, 1] - 100) / 10, []
    for r, x in enumerate(X):
        names, to = NUMBERS + rng.choice(NAMES, size=2, replace=False), 16 * (2 * r >= n)
        rows.append({**{j + to: float(v) for j, v in enumerate(x)}, **{int(i) + to: 1.0 for i in names}})
    noisy = score + rng.normal(size=n)
    y = {
        "poisson": np.floor(np.exp(np.clip(noisy, -3.0, 3.0))),
        "gamma": np.exp(noisy / 3.0),
        **dict.fromkeys(CLASSES, np.clip(np.floor(4.0 * noisy) + 20.0, 0.0, MANY - 1.0)),
        **dict.fromkeys(("logistic", "hinge", "squared_hinge"), np.where(noisy > 0.0, 1.0, -1.0)),
    }.get(loss, 50.0 + 7.0 * noisy)
    y[rng.random(n) < 0.05] = np.nan
    return Batch.from_rows(
        rows, y.tolist(), weight=rng.choice([0.0, 0.5, 1.0, 3.0], n, p=[0.1, 0.2, 0.5, 0.2]).tolist()
    )


def spec_of(loss: str, **more: Any) -> Spec:
    own = {"classes": MANY} if loss in CLASSES else {"coin": True}
    return Spec(**{"loss": loss, "dim": 64, "scale": AUTO, "dense": True, **own, **more})


def made(spec: Spec, batch: Batch, threads: int, cuts: tuple[int, ...] = (), **more: Any) -> list[Any]:
    """Return the scores and losses of all rows, and the bytes of the model after them."""
    engine = Engine(spec, **more)
    engine.threads = threads
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    for a, b in itertools.pairwise((0, *cuts, len(batch))):
        engine.learn(batch[a:b], scores=scores[a:b], losses=losses[a:b])
    assert len(arrays_of(engine)["columns.facts"]) >= NUMBERS + NAMES
    return [scores.tobytes(), losses.tobytes(), Model(engine).to_bytes()]


@pytest.mark.parametrize(
    ("loss", "receipt"), [(a, b) for a in (*LOSSES, *CLASSES) for b in (False, True) if a != "ovr" or not b]
)
def test_threads_change_no_bit(loss: str, receipt: bool) -> None:
    """Neither do batches: blocks end where they do, and at the rows where columns change."""
    spec, batch = spec_of(loss), rows_of(loss)
    plain = made(spec, batch, 1, receipt=receipt)
    assert made(spec, batch, 2, receipt=receipt) == plain
    assert made(spec, batch, 8, (1030,), receipt=receipt) == plain


@pytest.mark.parametrize("scale", [0.1, (0.1, 1.0), (0.1, 0.2, 0.4, 0.8, 1.6)])
@pytest.mark.parametrize("float64", [False, True])
def test_threads_and_numbers_of_scales(scale: Any, float64: bool) -> None:
    batch, results = rows_of("squared"), []
    for threads in (1, 2):
        engine = Engine(Spec("squared", dim=2**14, scale=scale, float64=float64))
        engine.threads = threads
        engine.learn(batch)
        results.append(Model(engine).to_bytes())
    assert results[0] == results[1]


@pytest.mark.parametrize("loss", [*LOSSES, *CLASSES])
def test_threads_with_labels_that_arrive_late(loss: str) -> None:
    """Every row is predicted 37 rows before it is learned."""
    batch, late = rows_of(loss, n=1300), 37
    order = np.array([at for r in range(1300) for at in ([r] if r < late else [r, r - late])])
    learns = np.array([k for r in range(1300) for k in ([False] if r < late else [False, True])])
    slots = [slice(int(a), int(b)) for a, b in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)]
    both = Batch(
        indptr=np.concatenate([[0], np.cumsum([slots[r].stop - slots[r].start for r in order])]).astype(np.int64),
        indices=np.concatenate([batch.indices[slots[r]] for r in order]),
        values=np.concatenate([batch.values[slots[r]] for r in order]),
        y=np.where(learns, batch.y[order], np.nan),
        weight=batch.weight[order],
    )
    results = []
    for threads in (1, 2):
        engine, scores = Engine(spec_of(loss)), np.empty(len(both))
        engine.threads = threads
        arrivals = np.full((1300, engine.arrival_numbers), np.nan)
        engine.learn_late(both, arrivals, order.astype(np.int64), scores=scores)
        results.append([scores.tobytes(), arrivals.tobytes(), Model(engine).to_bytes()])
    assert results[0] == results[1]


@pytest.mark.parametrize("loss", [*LOSSES, *CLASSES])
def test_instruction_sets_change_no_bit(loss: str) -> None:
    spec, batch, receipt = spec_of(loss), rows_of(loss, seed=1), loss != "ovr"
    plain = made(spec, batch, 1, receipt=receipt)
    try:
        if use_instruction_set("portable"):
            assert made(spec, batch, 2, receipt=receipt) == plain
    finally:
        use_instruction_set("")
