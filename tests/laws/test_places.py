"""The location of a cell in memory does not change any result of a sparse table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.spec import AUTO
from ftprl.linear.state import restore, tensors_of
from laws.strategies import SEEDS, law


def rows(seed: int, dim: int, count: int = 40) -> Batch:
    """Return rows with a few coordinates each, from anywhere in the table."""
    rng = np.random.default_rng(seed)
    made = [
        {int(i): float(v) for i, v in zip(rng.choice(dim, 5, replace=False), rng.normal(size=5), strict=True)}
        for _ in range(count)
    ]
    return Batch.from_rows(made, rng.choice([-1.0, 1.0], count))


def assert_same(one: Engine, other: Engine) -> None:
    assert one.spec == other.spec
    assert one.progress == other.progress
    np.testing.assert_array_equal(one.touched(), other.touched())
    np.testing.assert_array_equal(one.cells, other.cells)
    np.testing.assert_array_equal(one.intercept, other.intercept)
    for name, array in one.state.items():
        np.testing.assert_array_equal(array, other.state[name], err_msg=name)
    if one.receipt:
        np.testing.assert_array_equal(one.own_sums(), other.own_sums())
        last = len(one.spec.scales) - 1
        np.testing.assert_array_equal(one.own_groups(last), other.own_groups(last))


@law(15)
@given(seed=SEEDS, receipt=st.booleans(), float64=st.booleans())
def test_other_names_of_the_coordinates_change_nothing(seed: int, receipt: bool, float64: bool) -> None:
    dim = 64
    batch, order = rows(seed, dim), np.random.default_rng(seed + 1).permutation(dim).astype(np.uint32)
    other = Batch(batch.indptr, order[batch.indices], batch.values, batch.y, batch.weight)
    one, two = (Engine(Spec(dim=dim, scale="auto", float64=float64), receipt=receipt) for _ in range(2))
    assert one.learn(batch) == two.learn(other)
    np.testing.assert_array_equal(two.cells[order], one.cells)
    np.testing.assert_array_equal(np.sort(order[one.touched()]), two.touched())
    np.testing.assert_array_equal(two.weights()[order], one.weights())
    np.testing.assert_array_equal(two.score(other), one.score(batch))


@law(15)
@given(seed=SEEDS, receipt=st.booleans(), float64=st.booleans(), scale=st.sampled_from([0.1, AUTO, AUTO[:3]]))
def test_cells_move_to_another_engine(seed: int, receipt: bool, float64: bool, scale: float) -> None:
    """Moving cells (by hand, by a copy, through a file) leaves later learning and results unchanged to the bit."""
    for dim in (32, 4096):
        one = Engine(Spec(dim=dim, scale=scale, float64=float64), receipt=receipt)
        one.learn(rows(seed, dim))
        moved = Engine(one.spec, receipt=receipt)
        restore(moved, {name: np.array(a[:]) for name, a in tensors_of(one).items()})
        by_hand = one.copy()
        slots = np.random.default_rng(seed).permutation(one.touched())
        by_hand.put(slots, np.full_like(one.take(slots), 3.0))
        by_hand.put(slots, one.take(slots))
        for other in (one.copy(), moved, by_hand):
            twin = one.copy()
            assert_same(twin, other)
            assert twin.learn(rows(seed + 1, dim)) == other.learn(rows(seed + 1, dim))
            assert_same(twin, other)


@pytest.mark.parametrize("receipt", [False, True])
@pytest.mark.parametrize("dim", [50, 2**17])
def test_a_retirement_in_place_leaves_nothing_behind(dim: int, receipt: bool) -> None:
    """Memory of dropped lanes is cleared before new cells use it, in small tables and in those that return pages."""
    engine = Engine(Spec(dim=dim, scale="auto"), receipt=receipt)
    engine.learn(rows(1, dim, 9000 if dim > 50 else 4))
    before, parts, intercept = len(engine.touched()), engine.parts, engine.intercept.copy()
    engine.keep_scales(2)
    apart = Engine(engine.spec, receipt=receipt)
    restore(apart, {name: np.array(a[:]) for name, a in tensors_of(engine).items()})
    for name in ("z", "R", *(("S",) if receipt else ())):
        np.testing.assert_array_equal(engine.parts[name], parts[name][:, 2:6])
    np.testing.assert_array_equal(engine.intercept, intercept[:, 2:6])
    in_place = engine
    assert_same(apart, in_place)
    apart.learn(rows(2, dim, 9000))
    in_place.learn(rows(2, dim, 9000))
    assert len(in_place.touched()) > before
    assert_same(apart, in_place)


@pytest.mark.parametrize("scale", [0.1, AUTO])
def test_rows_that_are_only_scored_are_not_met(scale: float) -> None:
    engine = Engine(Spec(dim=100, scale=scale))
    engine.score(rows(1, 100))
    batch = rows(2, 100)
    engine.learn(Batch(batch.indptr, batch.indices, batch.values, np.full(len(batch), np.nan), batch.weight))
    assert len(engine.touched()) == Model(engine).occupied == 0
    assert not engine.cells.any()
    assert not engine.weights().any()


BAD_SLOTS = ([-1], [64], [2**32], [2**40], [0.0], [1.5], [np.nan], ["1"], [True, False], [[1]], 3)


@pytest.mark.parametrize("slots", BAD_SLOTS, ids=str)
@pytest.mark.parametrize("scale", [0.1, AUTO])
def test_slots_that_are_none(scale: float, slots: list[int]) -> None:
    engine = Engine(Spec(dim=64, scale=scale), receipt=True)
    engine.learn(rows(1, 64))
    before = engine.cells.copy()
    width = before.shape[1]
    for ask in (engine.take, engine.parts_at, engine.own_sums):
        with pytest.raises(InvalidInput, match=r"^slots need a list of whole numbers from 0 to 63, got .*; "):
            ask(np.array(slots))
    with pytest.raises(InvalidInput, match="slots need"):
        engine.put(np.array(slots), np.zeros((np.size(slots), width)))
    np.testing.assert_array_equal(engine.cells, before)


@pytest.mark.parametrize("scale", [0.1, AUTO])
def test_rows_that_do_not_fit(scale: float) -> None:
    engine = Engine(Spec(dim=64, scale=scale))
    engine.learn(rows(1, 64))
    before = engine.cells.copy()
    slots, width = np.array([3, 5]), before.shape[1]
    for shape in ((1, width), (2, width - 1), (2,), (2, 1), (3, width), (2, width, 1)):
        with pytest.raises(InvalidInput, match=r"^cells need the shape \(2, \d+\), got .*; "):
            engine.put(slots, np.zeros(shape))
    np.testing.assert_array_equal(engine.cells, before)
    new = np.asfortranarray(np.arange(2.0 * width).reshape(2, width))  # of another type and order
    engine.put(slots[::-1][::-1], new)
    np.testing.assert_array_equal(engine.take(slots[::-1]), new[::-1])
    engine.put(np.array([]), new[:0])
    assert engine.take(np.array([])).shape == (0, width)
