"""The laws of a table that servers share: the bits of one table, for any number of servers, readers and blocks."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import _core
from ftprl.data import Batch
from ftprl.data.remote_rows import PackedRows, RemoteRows, entries_in, entries_of
from ftprl.linear import Engine, rounds
from ftprl.linear.rounds import Coordinates
from ftprl.linear.shard_messages import Announced
from ftprl.linear.sharded_engine import ShardedEngine, faults_of
from ftprl.linear.shards import owner_of, shards_of
from ftprl.linear.spec import AUTO
from laws.strategies import SEEDS, law
from laws.streams import OPTIONS, spec, stream
from oracles.actors import LocalActors

GRIDS: tuple[Any, ...] = (0.1, (0.05, 0.4), AUTO[1:6], AUTO)
LONG = 700  # rows, for rounds of one, two, four and eight
ALONE = 128  # rows, after which rounds have two


def state_of(engine: Engine) -> dict[str, np.ndarray]:
    """All that an engine has learned."""
    arrays = {**engine.parts, **engine.saved_arrays, **engine.baseline_arrays, "hot": engine.hot_slots}
    return {name: np.array(array) for name, array in arrays.items()}


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("options", OPTIONS)
@law(4)
@given(
    seed=SEEDS,
    cells64=st.booleans(),
    values64=st.booleans(),
    grid=st.sampled_from(GRIDS),
    servers=st.integers(1, 5),
    receipt=st.booleans(),
    seen=st.booleans(),
)
def test_servers_and_readers_give_the_bits_of_one_table(
    options: str, seed: int, cells64: bool, values64: bool, grid: Any, servers: int, receipt: bool, seen: bool
) -> None:
    batch = stream(seed, rows=LONG, dim=60, float64=values64)
    s = spec("logistic", 60, float64=cells64, round_rows=64, **{**OPTIONS[options], "scale": grid})
    one = Engine(s, receipt=receipt)
    apart = ShardedEngine(Engine(s, receipt=receipt), LocalActors(servers, 2), alone=ALONE)
    outputs = [[np.empty(LONG), np.empty(LONG), np.empty((LONG, 2))] for _ in range(2)]
    # Cut where a round ends, so that both end it there.
    middle = [end for end in rounds.round_ends(rounds.learns(batch), 0, 64) if end < 400][-1]
    for engine, (scores, losses, baselines) in zip((one, apart), outputs, strict=True):
        for some in (slice(0, middle), slice(middle, LONG)):
            numbers = {"scores": scores[some], "losses": losses[some], "baselines": baselines[some]}
            engine.learn(batch[some], seen=seen and some.start > 0, **numbers)
    assert not apart.learns_here
    for here, there in zip(*outputs, strict=True):
        np.testing.assert_array_equal(here, there)
    np.testing.assert_array_equal(one.touched(), apart.touched())
    slots = one.touched()
    np.testing.assert_array_equal(one.take(slots)[:, _saved(one)], apart.take(slots)[:, _saved(one)])
    apart.gather()
    assert_same(state_of(one), state_of(apart))


def _saved(engine: Engine) -> list[int]:
    """The columns of cells that a model file has."""
    every = np.arange(engine.take(np.empty(0, np.uint32)).shape[1])
    saved = [np.atleast_1d(every[columns]) for columns in engine.saved_columns.values()]
    return sorted(set(np.concatenate(saved).tolist()))


@law(6)
@given(
    seed=SEEDS,
    grid=st.sampled_from(GRIDS),
    servers=st.integers(1, 4),
    block=st.integers(1, 5),
    receipt=st.booleans(),
    cuts=st.lists(st.integers(1, 60), max_size=6),
)
def test_rounds_of_several_blocks(
    seed: int, grid: Any, servers: int, block: int, receipt: bool, cuts: list[int]
) -> None:
    """The entries of rows may be in any number of slices, and a round in any number of blocks."""
    batch = stream(seed, rows=LONG, dim=40)
    s = spec("logistic", 40, scale=grid, round_rows=64)
    one, actors = Engine(s, receipt=receipt), LocalActors(servers, 3)
    apart = ShardedEngine(Engine(s, receipt=receipt), actors, alone=ALONE, block=block)
    learned, start = rounds.learns(batch), 0
    for end in rounds.round_ends(learned, 0, 64):
        rows = batch[start:end]
        if int(learned[start:end].sum()) > 1:
            losses = np.empty(len(rows))
            arrays = rows.indptr, rows.indices, rows.values, rows.y, rows.weight
            _core.learn_round(one._core, *arrays, None, losses, block=block)
            _core.count_round(one._core, rows.y, rows.weight, losses)
            _core_baseline(one, rows)
        else:
            one.learn(rows)
        start = end
    some = in_slices(batch[:start], actors, cuts)
    apart.learn(some)
    assert some.remote is not None
    every = sum(array.nbytes for array in entries_of(batch[:start])) + 8 * start  # each row is moved once, if at all
    assert 0 < apart.exchange.entries <= every
    apart.gather()
    assert_same(state_of(one), state_of(apart))


def _core_baseline(engine: Engine, rows: Batch) -> None:
    """Have the baseline learn rows that the steps of a round have learned."""
    baseline = _core.Baseline(engine.spec.loss, engine.spec.tau)
    baseline.numbers[...] = engine.baseline_state
    baseline.learn(rows.y, rows.weight)
    engine.baseline_state[...] = baseline.numbers


def in_slices(batch: Batch, actors: LocalActors, cuts: list[int]) -> Batch:
    """The batch with its entries in object stores, in slices of these lengths and the rest."""
    ends = [end for end in np.cumsum(cuts).tolist() if end < len(batch)]
    slices = []
    for first, last in zip([0, *ends], [*ends, len(batch)], strict=True):
        rows = batch[first:last]
        some = PackedRows.of(rows, ()).batch(actors.put([entries_of(rows)]), 0, f"node {first}")
        assert some.remote is not None
        np.testing.assert_array_equal(some.y, rows.y)
        np.testing.assert_array_equal(some.weight, rows.weight)
        slices += some.remote.slices
    return batch.replaced(
        remote=RemoteRows(slices), indices=batch.indices[:0], values=batch.values[:0], is_private=True
    )


@law(20)
@given(seed=SEEDS, cuts=st.lists(st.integers(1, 30), max_size=5), first=st.integers(0, 60), count=st.integers(0, 60))
def test_slices_of_rows_are_these_rows(seed: int, cuts: list[int], first: int, count: int) -> None:
    batch, actors = stream(seed, rows=100), LocalActors(1)
    some = in_slices(batch, actors, cuts)[first : first + count]
    assert some.remote is not None
    assert len(some) == len(some.remote) == min(count, 100 - first)
    entries = entries_in(some.remote.slices, actors.get([one.handle for one in some.remote.slices]))
    for mine, own in zip(entries, entries_of(batch[first : first + count]), strict=True):
        np.testing.assert_array_equal(mine, own)


@law(40)
@given(
    seed=SEEDS,
    kind=st.sampled_from(("ones", "numbers", "wide", "mixed", "extreme")),
    learned=st.integers(0, 30),
    more=st.integers(0, 5),
)
def test_what_is_announced_is_what_arrives(seed: int, kind: str, learned: int, more: int) -> None:
    """To the bit, whatever is left out because it follows from the rest."""
    rng, count = np.random.default_rng(seed), learned + more
    rows = np.concatenate((rng.integers(1, 4, learned), np.zeros(more))).astype(float)
    values = np.ones((3, count))
    if kind != "ones":
        values = rng.normal(size=(3, count)) * (10.0 ** rng.integers(-300, 300, count) if kind == "extreme" else 1.0)
        values = values if kind in ("wide", "extreme") else values.astype(np.float32).astype(float)
        values[:, rng.random(count) < (0.5 if kind == "mixed" else 0.0)] = 1.0
    values[np.arange(3)[:, np.newaxis] >= rows] = 0.0
    with np.errstate(over="ignore", under="ignore"):
        own = Coordinates(
            rng.permutation(count).astype(np.uint32), rows, abs(values).max(axis=0), (values**2).sum(axis=0)
        )
    announced = pickle.loads(pickle.dumps(Announced.of(own)))
    assert announced.learned == learned
    for sent, arrived in zip(own, announced.coordinates(), strict=True):
        np.testing.assert_array_equal(sent, arrived)
    if kind == "ones":
        assert announced.nbytes == 4 * count + 2 * learned


def test_numbers_that_are_met_once_cost_four_bytes_more() -> None:
    values = np.random.default_rng(0).normal(size=100).astype(np.float32).astype(float)
    own = Coordinates(np.arange(100, dtype=np.uint32), np.ones(100), abs(values), values**2)
    assert Announced.of(own).nbytes == 100 * (4 + 2 + 4)


@law(20)
@given(seed=SEEDS, servers=st.integers(1, 64))
def test_every_slot_has_one_server(seed: int, servers: int) -> None:
    slots = np.random.default_rng(seed).integers(0, 2**32, size=500, dtype=np.uint32)
    for server in range(servers):
        own = np.isin(rounds.shard_of(slots), shards_of(server, servers))
        np.testing.assert_array_equal(own, owner_of(slots, servers) == server)


@law(3)
@given(seed=SEEDS, servers=st.integers(1, 3))
def test_dropped_scales_are_dropped_everywhere(seed: int, servers: int) -> None:
    batch = stream(seed, rows=LONG, dim=60)
    ends = rounds.round_ends(rounds.learns(batch), 0, 64)
    s = spec("logistic", 60, scale=AUTO, round_rows=64)
    one = Engine(s, receipt=True)
    apart = ShardedEngine(Engine(s, receipt=True), LocalActors(servers), alone=ALONE)
    for engine in (one, apart):
        engine.learn(batch[: ends[-5]])
        engine.keep_scales(2)
        engine.learn(batch[ends[-5] :])
    np.testing.assert_array_equal(one.own_sums(), apart.own_sums())
    apart.gather()
    assert_same(state_of(one), state_of(apart))


def test_rows_that_no_learner_takes() -> None:
    batch = Batch.from_rows([{0: 1.0}, {1: 1.0}, {2: np.inf}, {3: 1.0}], y=[1, 7, 1, -1])
    engine = Engine(spec("logistic", 8))
    faults = dict(faults_of(engine._core, batch))
    assert list(faults) == [1, 2]
    assert "label" in faults[1]
    remote = PackedRows.of(batch, tuple(faults.items())).batch(None, 0, "").remote
    assert remote is not None
    assert dict(remote[1:].faults()) == {0: faults[1], 1: faults[2]}
    assert dict(remote[3:].faults()) == {}
