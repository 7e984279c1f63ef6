"""The laws of several scales with the log loss: their twin, their lanes, and what their mixture guarantees.

The laws of the other losses, whose labels may be in any unit, are in test_labels.py.
"""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from ftprl.linear.mixture import experts_of, window_of
from ftprl.linear.spec import AUTO
from laws.learner_arrays import arrays_of, assert_arrays
from laws.strategies import SEEDS, law
from laws.streams import OPTIONS, fitted, labels, spec, stream
from oracles.learner_twin import LearnerTwin

KERNELS = [name for name in ("portable", "sse2", "avx2") if use_instruction_set(name)]
use_instruction_set("")
GRIDS = ((0.05, 0.4), (0.02, 0.1, 0.5, 2.5), AUTO[1:6], AUTO, tuple(0.01 * 1.7**k for k in range(16)))


class Kept(Engine):
    """An engine that drops no scale and no other expert."""

    def _review_experts(self) -> None:
        pass


def results_of(learner: Engine | LearnerTwin, batch: Batch) -> dict[str, np.ndarray]:
    """Everything that a batch changes in a learner, without the arrays of its experts."""
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    progress = learner.learn(batch, scores=scores, losses=losses)
    some = {"scores": scores, "losses": losses, "totals": np.array([progress.loss, progress.weight, progress.rows])}
    some |= {"after": learner.score(batch), "tallies": learner.tallies[:3].copy()}
    if isinstance(learner, LearnerTwin):
        c = learner.cells
        some |= {"z": c.z, "R": c.R, "unit": c.unit, "count": c.count, "S": c.S, "sums": c.sums}
        some["intercept"] = np.array([c.own_z, c.own_R, c.own_S, np.ones_like(c.own_z)])
        return some | {f"weights {k}": c.weights(k) for k in range(len(c.h))}
    some |= {name: a.copy() for name, a in learner.parts.items() if name != "coin"}
    some |= {"intercept": learner.intercept.copy(), "sums": learner.state["sums"].copy()}
    return some | {f"weights {k}": learner.weights(k) for k in range(len(learner.spec.scales))}


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray], receipt: bool = True) -> None:
    assert one.keys() == other.keys() - ({"S"} if not receipt else set())
    for name in one:
        if receipt or name not in ("S", "sums", "intercept"):
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("options", OPTIONS)
@law(8)
@given(
    seed=SEEDS,
    cells64=st.booleans(),
    values64=st.booleans(),
    grid=st.sampled_from(GRIDS),
)
def test_kernel_equals_twin_to_the_bit(
    options: str, seed: int, cells64: bool, values64: bool, grid: tuple[float, ...]
) -> None:
    batch = stream(seed, rows=60, float64=values64)
    more = {**OPTIONS[options], "scale": grid}
    s = spec("logistic", float64=cells64, **more)
    twin = LearnerTwin(s)
    expected = results_of(twin, batch)
    for name in KERNELS:
        use_instruction_set(name)
        for receipt in (True, False):
            engine = Engine(s, receipt=receipt)
            assert_same(results_of(engine, batch), expected, receipt)
            assert_arrays(engine, twin)
            assert receipt or not (engine.intercept[2].any() or engine.state["sums"].any())
            lanes = -(-len(grid) // 4) * 4
            assert not engine.cells[:, 2 * lanes + 2 :].any()  # what fills a cell up
    use_instruction_set("")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("added", [{"coin": True}, {"dense": True}, {"coin": True, "dense": True}], ids=str)
@law(3)
@given(seed=SEEDS, float64=st.booleans(), grid=st.sampled_from(GRIDS))
def test_coin_and_columns_equal_the_twin_to_the_bit(
    added: dict[str, bool], intercept: bool, seed: int, float64: bool, grid: tuple[float, ...]
) -> None:
    batch = with_numbers(stream(seed, rows=140, float64=float64), seed)
    s = spec("logistic", scale=grid, float64=float64, intercept=intercept, **added)
    twin = LearnerTwin(s)
    expected = results_of(twin, batch)
    if "dense" in added:
        assert twin.experts.columns.feature  # type: ignore[union-attr]
    for name in KERNELS:
        use_instruction_set(name)
        engine = Engine(s, receipt=True)
        assert_same(results_of(engine, batch), expected)
        assert_arrays(engine, twin)
        if twin.experts.coin is not None:
            np.testing.assert_array_equal(engine.parts["coin"], twin.experts.coin.cells)
    use_instruction_set("")


def with_numbers(batch: Batch, seed: int) -> Batch:
    """Rows with three more numbers each, the last one from the middle on: their columns come and leave."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(len(batch)):
        own = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
        kept = [(i, v) for i, v in zip(batch.indices[own].tolist(), batch.values[own].tolist(), strict=True) if i > 3]
        new = [(i, float(v)) for i, v in enumerate(rng.normal(size=4) * [1, 10, 1e-3, 1] + [0, 50, 1, 0]) if i != 3]
        new = new if r < 70 else [*new[1:], (3, float(rng.normal()))]
        rows.append([*kept, *new])
    return Batch.from_rows(rows, batch.y, batch.weight, float64=batch.values.dtype == np.float64)


def test_long_blocks_equal_the_twin() -> None:
    """Sums that decide on dropping scales, over several octaves of rows with growing weights."""
    n = 4 * 1024 + 5
    rng = np.random.default_rng(3)
    rows = Batch(
        np.arange(n + 1), rng.integers(0, 5, n).astype(np.uint32), rng.normal(size=n), labels(rng, "logistic", n),
        np.where(np.arange(n) % 900 == 7, np.arange(n) / 100.0 + 0.5, 1.0),
    )  # fmt: skip
    s = spec("logistic", 5, scale=AUTO[:6], float64=True)
    twin, engine = LearnerTwin(s), Engine(s, receipt=True)
    assert_same(results_of(engine, rows), results_of(twin, rows))
    assert_arrays(engine, twin)
    windows = arrays_of(engine)["mixture.windows"]
    assert (windows[2] == windows[0] + windows[1]).all()  # as it was at row 4096
    assert (windows[:, :-1] >= windows[:, -1:]).all()
    assert windows.shape == (3, 4)


@law(8)
@given(
    seed=SEEDS,
    float64=st.booleans(),
    grid=st.sampled_from(GRIDS),
    options=st.sampled_from(sorted(set(OPTIONS) - {"all"})),
)
def test_a_lane_is_a_single_scale_when_values_are_signs(
    seed: int, float64: bool, grid: tuple[float, ...], options: str
) -> None:
    batch = stream(seed)
    values = np.where(np.random.default_rng(seed).random(len(batch.values)) < 0.5, 1.0, -1.0)
    batch = replace(batch, values=values)
    many = Engine(spec("logistic", float64=float64, scale=grid, beta=0.3, **OPTIONS[options]), receipt=True)
    many.learn(batch)
    for k, h in enumerate(grid):
        one = Engine(spec("logistic", float64=float64, scale=h, beta=0.3, **OPTIONS[options]), receipt=True)
        one.learn(batch)
        for name in ("z", "R", "S"):
            np.testing.assert_array_equal(many.parts[name][:, k], one.parts[name][:, 0])
        np.testing.assert_array_equal(many.parts["unit"], one.parts["unit"])
        np.testing.assert_array_equal(many.intercept[:, k], one.intercept[:, 0])
        np.testing.assert_array_equal(many.weights(k), one.weights())
        assert many.bias(k) == one.bias()
        assert many.sums_of(k) == one.sums
        # The logarithm of many is taken otherwise than that of one.
        assert arrays_of(many)["mixture.totals"][k] == pytest.approx(one.tallies[0], rel=1e-12)


@law(16)
@given(seed=SEEDS, cuts=st.lists(st.integers(0, 120), max_size=6), grid=st.sampled_from(GRIDS))
def test_the_cut_into_batches_changes_no_bit(seed: int, cuts: list[int], grid: tuple[float, ...]) -> None:
    batch = stream(seed)
    s = spec("logistic", scale=grid, l1=0.05)
    whole, in_parts = Engine(s, receipt=True), Engine(s, receipt=True)
    scores, parts = np.empty(len(batch)), []
    whole.learn(batch, scores=scores)
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(batch)]):
        part = np.empty(stop - start)
        in_parts.learn(batch[start:stop], scores=part)
        parts.append(part)
    np.testing.assert_array_equal(np.concatenate(parts), scores)
    for name in ("cells", "intercept", "tallies"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(in_parts, name))
    for name, array in whole.saved_arrays.items():
        np.testing.assert_array_equal(array, in_parts.saved_arrays[name], err_msg=name)


@pytest.mark.parametrize("float64", [True, False])
@law(6)
@given(seed=SEEDS, powers=st.lists(st.integers(-40, 40), min_size=23, max_size=23))
def test_the_unit_of_a_feature_changes_no_prediction(float64: bool, seed: int, powers: list[int]) -> None:
    batch = stream(seed, complete=True)
    unit = 2.0 ** np.array(powers)
    s = spec("logistic", float64=float64, scale=AUTO)
    one, other = Engine(s), Engine(s)
    first, second = np.empty((2, len(batch)))
    one.learn(batch, scores=first)
    other.learn(replace(batch, values=batch.values * unit[batch.indices]), scores=second)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(one.weights(3), other.weights(3) * unit)


def streams_of(kind: str, seed: int, loss: str, rows: int = 400) -> Batch:
    """Return streams on which guarantees are tested."""
    rng = np.random.default_rng(seed)
    if kind == "sparse":
        return stream(seed, loss, rows=rows, complete=True)
    y = labels(rng, loss, rows)
    X = rng.normal(size=(rows, 4)) * 10 ** rng.uniform(-2, 2, size=4)
    weight = np.ones(rows)
    if kind == "adversarial":  # the same features, and a label that turns in ever longer stretches
        X = np.ones((rows, 4))
        y = np.abs(y) * np.where(np.floor(np.log2(1 + np.arange(rows) / (1 + seed % 7))) % 2 == 0, 1.0, -1.0)
        y = fitted(loss, y)
    if kind == "weighted":
        weight = np.where(rng.random(rows) < 0.02, 10 ** rng.uniform(0, 3, size=rows), rng.uniform(0.01, 1, size=rows))
    return Batch.from_rows([list(enumerate(x)) for x in X.tolist()], y, weight, float64=True)


KINDS = ("gaussian", "adversarial", "sparse", "weighted")


def slack(value: float) -> float:
    return 1e-9 * (1.0 + abs(value))


@pytest.mark.parametrize("kind", KINDS)
@law(4)
@given(seed=SEEDS)
def test_shares_cost_what_they_say(kind: str, seed: int) -> None:
    """ln(1/w_j) + (W - 1) ln n - W sum of ln(1 - a_t) over the rows, on top of every expert j."""
    batch = streams_of(kind, seed, "logistic")
    engine = Engine(spec("logistic", scale=AUTO, float64=True, coin=True, dense=True))
    first = engine.mixture
    engine.learn(batch)
    mixture = engine.mixture
    assert first is not None
    assert mixture is not None
    assert math.fsum(first.weights) == pytest.approx(1.0, abs=1e-12)
    t = np.arange(1, len(batch) + 1)
    a, W = np.minimum(2.0**-10, 1 / (t + 1)), max(1.0, float(batch.weight.max()))
    shared = (W - 1.0) * math.log(len(first.weights)) - W * float(np.log1p(-a[:-1]).sum())
    for weight, loss in zip(first.weights, mixture.losses, strict=True):
        assert engine.progress.loss <= loss - math.log(weight) + shared + slack(loss)


@pytest.mark.parametrize("float64", [True, False])
def test_extremes_stay_finite(float64: bool) -> None:
    """For all valid input no number becomes infinite or NaN, and the twin agrees."""
    huge, small = 1e30, 1e-40
    y = [1.0, -1.0, -1.0, 1.0, 1.0, -1.0]
    rows: list[dict[int, float]] = [
        {0: huge, 1: small},
        {0: -huge, 1: 1.0},
        {1: huge},
        {0: small},
        {},
        {0: 1, 1: small},
    ]
    largest = [max(map(abs, row.values()), default=1.0) for row in rows]
    weights = np.minimum(np.tile([huge, 1.0, 1e-30], 20), huge / np.tile(np.maximum(largest, 1.0), 10))
    batch = Batch.from_rows(rows * 10, y * 10, weights, float64=True)
    for grid in ((1e-30, 1.0, 1e30), AUTO):
        s = Spec(dim=2, float64=float64, scale=grid)
        engine = Engine(s, receipt=True)
        with np.errstate(all="ignore"):
            twin = LearnerTwin(s)
            expected = results_of(twin, batch)
        actual = results_of(engine, batch)
        assert_same(actual, expected)
        assert_arrays(engine, twin)
        for name, array in actual.items():
            assert np.isfinite(array).all(), name


def test_rows_without_label_or_weight_change_nothing() -> None:
    engine = Engine(spec("logistic", scale=AUTO), receipt=True)
    engine.learn(stream(5))
    before = engine.copy()
    rows = stream(6, complete=True)
    scores, losses = np.empty((2, len(rows)))
    engine.learn(replace(rows, y=np.full(len(rows), np.nan)), scores=scores, losses=losses)
    assert np.isnan(losses).all()
    np.testing.assert_array_equal(scores, before.score(rows))
    engine.learn(replace(rows, weight=np.zeros(len(rows))), scores=scores, losses=losses)
    assert np.isfinite(losses).all()
    np.testing.assert_array_equal(scores, before.score(rows))
    for name in ("cells", "intercept", "tallies"):
        np.testing.assert_array_equal(getattr(engine, name), getattr(before, name))
    for name, array in engine.saved_arrays.items():
        np.testing.assert_array_equal(array, before.saved_arrays[name], err_msg=name)


@pytest.mark.parametrize("float64", [True, False])
def test_a_retirement_keeps_what_it_keeps(float64: bool) -> None:
    """The remaining lanes continue, to the bit, as before other scales were dropped."""
    engine = Engine(spec("logistic", scale=AUTO, float64=float64), receipt=True)
    engine.learn(stream(1))
    small = engine.copy()
    small.keep_scales(2)
    assert small.spec.scales == AUTO[2:6]
    assert small.spec.retired == AUTO[:2] + AUTO[6:]
    assert small.progress == engine.progress
    assert arrays_of(small)["mixture.w"].sum() == pytest.approx(1.0, abs=1e-12)
    assert small.bias(0) == engine.bias(2)
    for _ in range(2):
        for k in range(4):
            for name in ("z", "R", "S"):
                np.testing.assert_array_equal(small.parts[name][:, k], engine.parts[name][:, k + 2])
            np.testing.assert_array_equal(small.intercept[:, k], engine.intercept[:, k + 2])
            assert small.sums_of(k) == engine.sums_of(k + 2)
            assert arrays_of(small)["mixture.totals"][k] == arrays_of(engine)["mixture.totals"][k + 2]
        for name in ("unit", "count"):
            np.testing.assert_array_equal(small.parts[name], engine.parts[name])
        small.learn(stream(2))
        engine.learn(stream(2))
    with pytest.raises(InvalidInput, match="first needs a number from 0 to 0, got 1; 4 scales are kept"):
        small.keep_scales(1)


def test_when_four_scales_are_as_good_as_all() -> None:
    """The rule for dropping scales, with sums set by hand."""
    state = {"windows": np.zeros((3, 6))}
    state["windows"][2] = [1002.0, 1000.9, 1000.9, 1003.0, 1010.0, 1000.0]
    assert window_of(state, 8, 2**17) == 1
    assert window_of(state, 4, 2**17) is None
    state["windows"][2, :3] = 1001.5
    assert window_of(state, 8, 2**17) is None
    state["windows"][2, 0] = 1000.0
    assert window_of(state, 8, 2**17 - 1) is None


def rows_of_one_feature(count: int, first_row: int = 0) -> Batch:
    rng = np.random.default_rng(first_row)
    return Batch(
        np.arange(count + 1), np.zeros(count, np.uint32), np.ones(count, np.float32),
        np.where(rng.random(count) < 0.9, 1.0, -1.0), np.ones(count), first_row,
    )  # fmt: skip


@pytest.mark.parametrize("unlearned", ["label", "weight"])
def test_scales_are_dropped_at_the_same_row_however_rows_are_cut(unlearned: str) -> None:
    """Row 2^17 of the learned rows is inside a batch; rows without a label or a weight do not count."""
    batch = rows_of_one_feature(2**17 + 1000)
    y, weight = batch.y.copy(), batch.weight.copy()
    y[:200], weight[:200] = (np.nan, 1.0) if unlearned == "label" else (1.0, 0.0)
    batch = replace(batch, y=y, weight=weight)
    s = Spec(dim=2, scale=AUTO)
    whole, in_parts, kept = Engine(s, receipt=True), Engine(s, receipt=True), Kept(s, receipt=True)
    scores, losses, parts = np.empty(len(batch)), np.empty(len(batch)), np.empty(len(batch))
    totals = whole.learn(batch, scores=scores, losses=losses)
    kept.learn(batch)
    for at in range(0, len(batch), 10_007):
        in_parts.learn(batch[at : at + 10_007], scores=parts[at : at + 10_007])
        stops = at + 10_007 >= 2**17 + 200
        assert bool(in_parts.spec.retired) == stops
    assert len(whole.spec.scales) == 4
    assert whole.spec == in_parts.spec
    assert kept.spec == s
    np.testing.assert_array_equal(scores, parts)
    assert totals.rows == whole.progress.rows == 2**17 + 800
    assert totals.loss == pytest.approx(whole.progress.loss)
    assert np.isnan(losses).any() == (unlearned == "label")
    for name in ("cells", "intercept", "tallies"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(in_parts, name))
    for name, array in whole.saved_arrays.items():
        np.testing.assert_array_equal(array, in_parts.saved_arrays[name], err_msg=name)


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_losses_that_may_be_below_0_drop_scales_by_their_deviance(loss: str) -> None:
    """Losses that may be negative are handled, and later losses are not larger."""
    rng, rows = np.random.default_rng(8), 2**17 + 2**16
    x = rng.normal(size=(rows, 2)).astype(np.float32)
    mean = 40.0 * np.exp(0.3 * x[:, 0] - 0.2 * x[:, 1])
    y = rng.poisson(mean).astype(np.float64) if loss == "poisson" else mean * rng.gamma(2.0, 1e-3, size=rows)
    batch = Batch(np.arange(0, 2 * rows + 1, 2), np.tile(np.arange(2, dtype=np.uint32), rows), x.ravel(), y,
                  np.ones(rows), 0)  # fmt: skip
    s = Spec(loss, dim=2, scale=AUTO)
    own, kept = Engine(s), Kept(s)
    losses = {engine: np.empty(rows) for engine in (own, kept)}
    for engine in (own, kept):
        engine.learn(batch, losses=losses[engine])
    least = float((y * (1.0 - np.log(np.maximum(y, 1e-9))) if loss == "poisson" else 1.0 + np.log(y))[-(2**16) :].sum())
    assert losses[kept].sum() < 0.0
    assert (arrays_of(kept)["mixture.windows"][2] > 0.0).all()
    assert len(own.spec.scales) == 4
    after, without = (float(losses[engine][-(2**16) :].sum()) - least for engine in (own, kept))
    assert after <= 1.001 * without


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_scales_that_stay_without_any_weight_begin_with_equal_weights(loss: str) -> None:
    """The weight of a scale may become exactly 0, and 0 / 0 is no weight; found by fuzzing."""
    engine = Engine(Spec(loss, dim=2, scale=AUTO))
    w = arrays_of(engine)["mixture.w"]
    w[...] = 0.0
    w[7] = 1.0
    left = len(experts_of(engine.spec)) - 4
    engine.keep_scales(0)
    w = arrays_of(engine)["mixture.w"]
    assert w[:left].tolist() == [1 / left] * left
    assert not w[left:].any()
