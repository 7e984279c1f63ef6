"""Streams with changing labels: an outlier, a change of the unit at some row, rare classes.

The mixture is soon as good as the running mean, median, quantile or majority, which is one of its experts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.linear import Engine, Model
from ftprl.linear.spec import AUTO
from ftprl.receipt.replay import Replay
from laws.label_streams import KERNELS, NUMBERS, assert_same, progressive, state_of
from laws.streams import spec
from oracles.any_label_twin import AnyLabel
from oracles.label_experts_twin import AnyLabelWith

DIM, ROWS = 6, 4000


# The rows (counted from 1) with multiplied labels when the change is near row n, and the factors.
CHANGES: dict[str, tuple[Callable[[np.ndarray, int], np.ndarray], float]] = {
    "row n times 1e6": (lambda row, n: row == n, 1e6),
    "rows n and n + 1 times 1e6": (lambda row, n: (row == n) | (row == n + 1), 1e6),
    "times 1000": (lambda row, n: row > 2 * n, 1000.0),
    "times 1e-3": (lambda row, n: row > 2 * n, 1e-3),
    "times 1e-3 after a rise": (lambda row, n: (row > n) & (row <= 2 * n), 1000.0),
    "every 100th times 1e4": (lambda row, n: row % 100 == 50, 1e4),
}


def changed(change: str, seed: int, *, rows: int = ROWS, n: int = 1000, offset: float = 0.0) -> Batch:
    """Return six numbers with weights and noise of about 1; the labels of some rows are multiplied."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, DIM))
    y = offset + X @ rng.normal(size=DIM) + rng.normal(size=rows)
    where, factor = CHANGES[change]
    y = np.where(where(np.arange(1, rows + 1), n), factor * y, y)
    indices = np.tile(np.arange(DIM, dtype=np.uint32), rows)
    return Batch(np.arange(rows + 1, dtype=np.int64) * DIM, indices, X.ravel(), y, np.ones(rows))


def to_the_baseline(engine: Engine, batch: Batch, windows: list[tuple[int, int]]) -> list[float]:
    """Return the loss of the rows of each window, without its first rows, divided by the baseline's."""
    totals = {0: engine.progress}
    done = 0
    for end in sorted({row for window in windows for row in window}):
        engine.learn(batch[done:end])
        totals[end], done = engine.progress, end
    return [(totals[b].loss - totals[a].loss) / (totals[b].baseline - totals[a].baseline) for a, b in windows]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("loss", NUMBERS)
def test_a_label_far_from_all_others_in_the_middle_is_left_behind_at_once(loss: str, seed: int) -> None:
    for offset in (0.0, 5.0):
        engine = Engine(spec(loss, DIM, scale=AUTO, coin=True, dense=True))
        one, two = to_the_baseline(
            engine, changed("row n times 1e6", seed, offset=offset), [(1000, 2000), (2000, 4000)]
        )
        assert one <= 0.7
        assert two <= 0.7
        engine = Engine(spec(loss, DIM, scale=AUTO, coin=True, dense=True))
        batch = changed("rows n and n + 1 times 1e6", seed, offset=offset)
        (one,) = to_the_baseline(engine, batch, [(1001, 2000)])
        assert one <= 0.7


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("loss", NUMBERS)
def test_another_unit_is_learned_within_fifty_rows(loss: str, seed: int) -> None:
    """The rows right after a fall are predicted in the old unit by any learner that uses only earlier rows."""
    for change in ("times 1000", "times 1e-3", "times 1e-3 after a rise"):
        for offset in (0.0, 5.0):
            engine = Engine(spec(loss, DIM, scale=AUTO, coin=True, dense=True))
            ratios = to_the_baseline(engine, changed(change, seed, offset=offset), [(2050, 3000), (3000, 4000)])
            assert max(ratios) <= 0.95, (change, offset)


@pytest.mark.parametrize("loss", NUMBERS)
def test_labels_that_are_rarely_large_stay_near_the_baseline(loss: str) -> None:
    for seed in (1, 2, 3):
        for offset in (0.0, 5.0):
            engine = Engine(spec(loss, DIM, scale=AUTO, coin=True, dense=True))
            (ratio,) = to_the_baseline(engine, changed("every 100th times 1e4", seed, offset=offset), [(1000, 4000)])
            assert ratio <= 1.05


# ---- the laws for the oracle and for the replay ----


@pytest.mark.parametrize("additions", [False, True])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loss", NUMBERS)
def test_kernels_follow_a_change_as_the_oracle_does(loss: str, change: str, additions: bool) -> None:
    batch = changed(change, 4, rows=400, n=150)
    s = spec(loss, DIM, scale=AUTO, float64=True, coin=additions, dense=additions)
    oracle = AnyLabelWith(loss, s.scales, s.beta, s.tau).with_additions(additions, additions)
    expected = np.empty(len(batch))
    begun: list[int] = []
    for r in range(len(batch)):
        row, weight = slice(batch.indptr[r], batch.indptr[r + 1]), oracle.labels.weight
        expected[r] = oracle.learn(batch.indices[row].tolist(), batch.values[row], float(batch.y[r]))
        begun += [r + 1] if oracle.labels.weight < weight else []
    assert begun or "1e-3" not in change or loss in ("absolute", "quantile")
    assert not begun or change not in ("row n times 1e6", "times 1000")
    for name in KERNELS:
        use_instruction_set(name)
        engine, scores, _ = progressive(s, batch)
        use_instruction_set("")
        size = np.abs(batch.y) + np.abs(expected) + 1.0
        assert (np.abs(scores - expected) <= 1e-5 * size).all()
        np.testing.assert_allclose(engine.state["hedge"][[1, 5, 6, 7]], _counted(oracle), rtol=1e-5, atol=1e-12)
        known = engine.label_state
        assert known is not None
        assert known["outliers"] == oracle.labels.outliers
        assert known["weight"] == oracle.labels.weight
        assert known["unit"] == pytest.approx(oracle.labels.U, rel=1e-9)


def _counted(oracle: AnyLabel) -> list[float]:
    return [oracle.D, oracle.stretch_loss, oracle.stretch, oracle.longest]


@pytest.mark.parametrize("scale", [0.3, AUTO])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("loss", NUMBERS)
def test_a_change_is_replayed_to_the_bit(loss: str, change: str, scale: Any) -> None:
    several = {"coin": True, "dense": True} if scale == AUTO else {}
    s = spec(loss, DIM, scale=scale, **several)
    batch = changed(change, 5, rows=400, n=150)
    replay = Replay(s, retire=True)
    replay.learn(batch)
    for name in KERNELS:
        use_instruction_set(name)
        engine, _, _ = progressive(s, batch, receipt=True)
        use_instruction_set("")
        assert_same(state_of(engine), state_of(replay))


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_follows_the_unit_to_the_bit(loss: str, change: str) -> None:
    batch = changed(change, 6, rows=500, n=200)
    s = spec(loss, DIM, scale=AUTO, coin=True, dense=True)
    _, scores, _ = progressive(s, batch)
    for factor in (2.0**-37, 2.0**40):
        _, scaled, _ = progressive(s, replace(batch, y=factor * batch.y))
        np.testing.assert_array_equal(scores * factor, scaled)


@pytest.mark.parametrize("change", ["row n times 1e6", "times 1e-3"])
def test_a_run_that_is_resumed_at_any_row_of_a_change_is_the_same(change: str, tmp_path: Path) -> None:
    batch = changed(change, 7, rows=500, n=200)
    s = spec("absolute", DIM, scale=AUTO, coin=True, dense=True)
    whole, _, _ = progressive(s, batch)
    for row in (199, 200, 201, 401, 410, 419):
        engine = Engine(s)
        engine.learn(batch[:row])
        Model(engine).save(tmp_path / "m.ftprl")
        resumed = Model.load(tmp_path / "m.ftprl").engine
        resumed.learn(batch[row:])
        for name, array in whole.state.items():
            np.testing.assert_array_equal(array, resumed.state[name], err_msg=name)
        assert whole.label_state == resumed.label_state


# ---- two classes ----


def rare(seed: int, positives: float, strength: float, rows: int = 6000) -> Batch:
    """Return rows with ten of 300 names; few rows are positive, and names predict the class with `strength`."""
    rng = np.random.default_rng(seed)
    names = np.sort(np.argsort(rng.random((rows, 300)), axis=1)[:, :10], axis=1)
    score = strength * rng.normal(size=300)[names].sum(axis=1) + np.log(positives)
    y = np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-score)), 1.0, -1.0)
    indptr = np.arange(rows + 1, dtype=np.int64) * 10
    return Batch(indptr, names.ravel().astype(np.uint32), np.ones(names.size), y, np.ones(rows))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("positives", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rare_classes_cost_no_more_than_the_majority(loss: str, positives: float, seed: int) -> None:
    """After row 1,000 rare classes cost no more than the majority, and informative names are still learned."""
    engine = Engine(spec(loss, 300, scale=AUTO, coin=True, dense=True))
    batch = rare(seed, positives, 0.0)
    ratios = to_the_baseline(engine, batch, [(1000, end) for end in range(2000, 6001, 500)])
    assert max(ratios) <= 1.01
    engine = Engine(spec(loss, 300, scale=AUTO, coin=True, dense=True))
    (ratio,) = to_the_baseline(engine, rare(seed, positives, 3.0), [(3000, 6000)])
    assert ratio <= 0.9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_what_caution_costs_is_bounded(loss: str) -> None:
    """The caution costs at most ln 25 max(1, G/4) + G against the mixture, and G + excess/24 against the majority."""
    for seed, strength in ((1, 0.0), (2, 0.3), (3, 2.0)):
        batch = rare(seed, 0.2, strength, rows=1500)
        oracle = AnyLabel(loss, AUTO, 0.3)
        total = mixture = majority = cut = 0.0
        for r in range(len(batch)):
            row, y = slice(batch.indptr[r], batch.indptr[r + 1]), float(batch.y[r])
            within, lead = oracle.w.copy(), oracle.lead
            p = oracle.learn(batch.indices[row].tolist(), batch.values[row], y)
            own, label = (
                _loss(loss, float(within @ oracle.expert_scores), y),
                _loss(loss, float(oracle.expert_scores[-1]), y),
            )
            total, mixture, majority = total + _loss(loss, p, y), mixture + own, majority + label
            cut += max(-(lead + label - own), 0.0) if r else 0.0
        gap = oracle.lead_gap
        assert total <= mixture + np.log(25.0) * max(1.0, gap / 4.0) + gap + 1e-9
        assert total <= majority + gap + cut / 24.0 + 1e-9


def _loss(loss: str, score: float, y: float) -> float:
    gap = max(1.0 - y * score, 0.0)
    return gap if loss == "hinge" else 0.5 * gap * gap
