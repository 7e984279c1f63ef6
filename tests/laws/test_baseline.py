"""The baseline of every loss: its twin, batch cuts, files, and the numbers it has to give."""

import itertools
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl._core import Baseline
from ftprl.data import Batch
from ftprl.errors import BadModel
from ftprl.linear import Engine, Model, model_file
from ftprl.losses import SCALAR_LOSSES
from laws.strategies import SEEDS, law
from laws.streams import labels, spec, stream
from oracles.baseline_twin import BaselineTwin

LOSSES = tuple(SCALAR_LOSSES)


def learned(batch: Batch) -> np.ndarray:
    return (batch.weight > 0.0) & ~np.isnan(batch.y)


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
def test_every_loss_names_the_baseline_that_the_core_computes(loss: str) -> None:
    assert Baseline(loss, 0.5).kind == SCALAR_LOSSES[loss].baseline


@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
@law(6)
@given(seed=SEEDS)
def test_core_equals_twin(loss: str, unit: bool, seed: int) -> None:
    batch = stream(seed, loss, complete=unit)
    s = spec(loss)
    engine, twin = Engine(s), BaselineTwin(s.scalar_loss(), s.tau)
    baselines = np.full((len(batch), 2), 7.0)
    engine.learn(batch, baselines=baselines)
    for y, c, (loss_of_row, least) in zip(batch.y.tolist(), batch.weight.tolist(), baselines.tolist(), strict=True):
        if y != y:
            assert math.isnan(loss_of_row)
            assert math.isnan(least)
            continue
        expected = s.scalar_loss().value(twin.score(), y), twin.least_of(y)
        np.testing.assert_allclose((loss_of_row, least), expected, rtol=1e-9, atol=1e-9)
        if c > 0:  # a row of weight 0 is predicted and not learned
            twin.learn(y, c)
    actual = engine.progress
    np.testing.assert_allclose((actual.baseline, actual.least), (twin.total, twin.least), rtol=1e-9, atol=1e-9)
    assert engine.baseline.loss == actual.baseline
    assert (engine.baseline.weight, engine.baseline.rows) == (actual.weight, actual.rows)
    assert engine.baseline.rows == len(twin.y)


@pytest.mark.parametrize("loss", LOSSES)
@law(6)
@given(seed=SEEDS, cuts=st.lists(st.integers(0, 120), max_size=6), complete=st.booleans())
def test_the_same_bits_however_rows_are_cut(loss: str, seed: int, cuts: list[int], complete: bool) -> None:
    batch = stream(seed, loss, complete=complete)
    whole, parts = Engine(spec(loss)), Engine(spec(loss))
    expected, actual = np.empty((len(batch), 2)), np.empty((len(batch), 2))
    whole.learn(batch, baselines=expected)
    edges = [0, *sorted(cuts), len(batch)]
    for a, b in itertools.pairwise(edges):
        parts.learn(batch[a:b], baselines=actual[a:b])
        parts = parts.copy()
    assert parts.baseline_state.tobytes() == whole.baseline_state.tobytes()
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("scale", [0.1, "auto"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_file_keeps_it_to_the_bit(loss: str, scale: float | str, tmp_path: Path) -> None:
    batch = stream(3, loss)
    whole, engine = Engine(spec(loss, scale=scale)), Engine(spec(loss, scale=scale))
    whole.learn(batch)
    engine.learn(batch[:50])
    Model(engine).save(tmp_path / "half")
    again = Model.load(tmp_path / "half").engine
    assert again.baseline_state.tobytes() == engine.baseline_state.tobytes()
    again.learn(batch[50:])
    assert again.baseline_state.tobytes() == whole.baseline_state.tobytes()
    assert again.progress.baseline == whole.progress.baseline


@pytest.mark.parametrize(
    ("place", "value"), [(1, 0.0), (1, 2.0), (3, -1.0), (4, math.nan), (9, -1.0), (8, 1e9), (0, math.inf)]
)
def test_a_file_with_one_that_no_learning_makes_is_refused(place: int, value: float, tmp_path: Path) -> None:
    engine = Engine(spec("absolute"))
    engine.learn(stream(3, "absolute"))
    path = tmp_path / "model"
    Model(engine).save(path)
    content, tensors = model_file.read(path)
    tensors["baseline"][place] = value
    model_file.write(path, content, tensors)
    with pytest.raises(BadModel, match="baseline that no learning makes"):
        Model.load(path)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_weight_or_label_change_nothing(loss: str) -> None:
    batch = stream(5, loss)
    some = np.flatnonzero(learned(batch))
    engine, fewer = Engine(spec(loss)), Engine(spec(loss))
    engine.learn(batch)
    fewer.learn(Batch.from_rows([()] * len(some), batch.y[some], batch.weight[some]))
    assert engine.baseline_state.tobytes() == fewer.baseline_state.tobytes()


@pytest.mark.parametrize("loss", LOSSES)
@law(4)
@given(seed=SEEDS)
def test_a_weight_of_two_is_close_to_two_rows_in_the_long_run(loss: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = labels(rng, loss, 3000)
    heavy, twice = Baseline(loss, 0.7), Baseline(loss, 0.7)
    heavy.learn(y, np.full(len(y), 2.0))
    twice.learn(np.repeat(y, 2), np.ones(2 * len(y)))
    assert heavy.total == pytest.approx(twice.total, rel=0.03)


def test_the_first_labels_have_a_finite_loss() -> None:
    def of(loss: str, *y: float) -> float:
        baseline = Baseline(loss, 0.5)
        baseline.learn(np.array(y), np.ones(len(y)))
        return baseline.total

    assert of("logistic", 1.0) == pytest.approx(math.log(2.0))
    assert of("logistic", 1.0, -1.0) == pytest.approx(math.log(2.0) - math.log(0.25))
    assert of("hinge", 1.0) == 1.0
    assert of("hinge", 1.0, 1.0, -1.0, -1.0, 1.0) == 1.0 + 0.0 + 2.0 + 2.0 + 1.0
    assert of("squared_hinge", -1.0, 1.0) == 0.5 + 2.0
    assert of("squared", 4.0, 2.0) == 8.0 + 2.0
    assert of("absolute", 4.0, 4.0, 2.0) == 4.0 + 0.0 + 2.0
    assert of("poisson", 0.0, 0.0, 3.0) == pytest.approx(1.0 + 0.5 + (1.0 / 3.0 + 3.0 * math.log(3.0)))
    assert of("gamma", 3.0, 2.0) == pytest.approx(3.0 + (2.0 / 3.0 + math.log(3.0)))
    assert of("poisson", 2.0, 2.0) == pytest.approx(1.0 + (2.0 - 2.0 * math.log(2.0)))


@pytest.mark.parametrize(("tau", "loss"), [(0.5, "absolute"), (0.1, "quantile"), (0.9, "quantile")])
def test_the_running_quantile_is_nearly_as_good_as_the_quantile(tau: float, loss: str) -> None:
    y = np.random.default_rng(1).lognormal(size=5_000)
    baseline = Baseline(loss, tau)
    baseline.learn(y, np.ones(len(y)))
    value = replace(spec(loss), tau=tau).scalar_loss().value
    best = sum(value(float(np.quantile(y, tau)), v) for v in y.tolist())
    assert best < baseline.total < 1.01 * best


@pytest.mark.parametrize("weight", [1e-30, 1e-5, 1e30])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tau", [1e-310, 0.5, 1.0 - 2.0**-53])
def test_extremes_stay_finite(loss: str, weight: float, tau: float) -> None:
    rng = np.random.default_rng(2)
    y = labels(rng, loss, 500)
    if loss not in ("logistic", "hinge", "squared_hinge"):
        y = np.where(rng.random(500) < 0.1, 1e30, y)
    baseline = Baseline(loss, tau)
    baseline.learn(y, np.where(rng.random(500) < 0.5, weight, 1.0))
    assert np.isfinite(baseline.numbers).all()
    assert math.isfinite(baseline.total)


def test_long_streams_of_one_class_do_not_underflow() -> None:
    n = 100_000
    y = np.where(np.arange(n) % 1000 == 0, 1.0, -1.0)
    baseline = Baseline("logistic", 0.5)
    baseline.learn(y, np.ones(n))
    n1, n0 = np.cumsum(y > 0) - (y > 0), np.cumsum(y < 0) - (y < 0)
    p = (np.where(y > 0, n1, n0) + 0.5) / (n1 + n0 + 1.0)
    assert baseline.total == pytest.approx(-np.log(p).sum(), rel=1e-12)


@pytest.mark.parametrize("unlike", [0.0, 0.05, 0.6])
def test_the_base_rate_is_the_same_to_the_bit_however_rows_are_cut(unlike: float) -> None:
    """Four rows of weight 1 are learned at once; some ways to cut batches never leave four together."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(3000) < 0.02, 1.0, -1.0)
    y[rng.random(3000) < unlike / 2] = np.nan
    weight = np.where(rng.random(3000) < unlike, rng.choice([0.0, 0.3, 2.0], 3000), 1.0)
    states = set()
    for length in (1, 3, 5, 64, 3000):
        baseline = Baseline("logistic", 0.5)
        for at in range(0, 3000, length):
            baseline.learn(y[at : at + length], weight[at : at + length], None)
        states.add((baseline.numbers.tobytes(), baseline.total))
    assert len(states) == 1


_TOO_LONG = """
import resource
import numpy as np
from ftprl.data import Batch
from ftprl.linear import Engine, Spec

engine = Engine(Spec(dim=4, scale=0.1))
engine.learn(Batch.from_rows([{0: 1.0}, {1: 1.0}], [1, -1]))
count = 3_000_000  # entries of one row, for which a learner needs much more memory than the row takes up
parts = np.zeros(count, np.uint32), np.ones(count, np.float32), np.array([1.0]), np.array([1.0])
row = Batch(np.array([0, count]), *parts).private()
before = engine.tallies.tobytes() + engine.baseline_state.tobytes()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + 2**26
resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
try:
    engine.learn(row)
except MemoryError:
    print("refused", before == engine.tallies.tobytes() + engine.baseline_state.tobytes())
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print("learned", engine.learn(row).rows, engine.progress.rows, engine.baseline.rows)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS")
def test_without_memory_for_a_row_neither_the_learner_nor_the_baseline_learns() -> None:
    done = subprocess.run([sys.executable, "-c", _TOO_LONG], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["refused True", "learned 1 3 3"]
