"""The laws of rounds of several rows: their twin, their cuts, and the same bits over several tables."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import _core
from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.linear import Engine, Spec, rounds
from ftprl.linear.spec import AUTO
from laws.strategies import SEEDS, law
from laws.streams import OPTIONS, spec, stream
from oracles.rounds_twin import ReferenceRounds

KERNELS = [name for name in ("portable", "sse2", "avx2") if use_instruction_set(name)]
use_instruction_set("")
GRIDS: tuple[Any, ...] = (0.1, (0.05, 0.4), AUTO[1:6], AUTO, tuple(0.01 * 1.7**k for k in range(16)))
LONG = 700  # rows, for rounds of one, two, four and eight


def state_of(engine: Engine) -> dict[str, np.ndarray]:
    """All that an engine has learned."""
    arrays = {**engine.parts, **engine.saved_arrays, "hot": engine.hot_slots}
    return {name: np.array(array) for name, array in arrays.items()}


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def assert_equals_twin(engine: Engine, twin: ReferenceRounds, *, receipt: bool) -> None:
    parts, K = engine.parts, twin.K
    for slot in range(engine.spec.dim):
        own = twin.cell(slot)
        for name in ("z", "R", "S") if receipt else ("z", "R"):
            expected = [twin.kind(value) if name != "S" else value for value in getattr(own, name)]
            np.testing.assert_array_equal(parts[name][slot], expected, err_msg=f"{name} of {slot}")
        assert parts["unit"][slot] == own.unit
        assert K == 1 or parts["count"][slot] == own.count
    done = engine.progress
    assert (done.loss, done.weight, done.rows) == (twin.total_loss, twin.weight, twin.t)
    np.testing.assert_array_equal(engine.intercept[:2], [twin.base.z, twin.base.R])
    if twin.mixing is not None:
        for name in ("w", "u"):
            ours = twin.mixing.state[name]
            np.testing.assert_array_equal(engine.state[name][: len(ours)], ours, err_msg=name)
    if receipt:
        for k in range(K):
            assert tuple(engine.sums_of(k)) == tuple(sums[k] for sums in twin.sums)


@pytest.mark.parametrize("options", OPTIONS)
@law(6)
@given(seed=SEEDS, cells64=st.booleans(), values64=st.booleans(), grid=st.sampled_from(GRIDS), block=st.integers(1, 9))
def test_a_round_equals_its_twin_to_the_bit(
    options: str, seed: int, cells64: bool, values64: bool, grid: Any, block: int
) -> None:
    batch = stream(seed, rows=80, float64=values64)
    s = spec("logistic", float64=cells64, **{**OPTIONS[options], "scale": grid})
    twin = ReferenceRounds(s, round_rows=8, growth=0, block=block)
    twin.learn(batch)
    cuts = rounds_of(batch, 8)
    for name in KERNELS:
        use_instruction_set(name)
        for receipt in (True, False):
            engine = Engine(s, receipt=receipt)
            scores, losses = np.empty(len(batch)), np.empty(len(batch))
            for first, last in cuts:
                rows = batch[first:last]
                learned = int(rounds.learns(rows).sum())
                arrays = rows.indptr, rows.indices, rows.values, rows.y, rows.weight
                if learned > 1:
                    out = scores[first:last], losses[first:last]
                    _core.learn_round(engine._core, *arrays, *out, block=block)
                else:
                    engine._core.learn(*arrays, scores[first:last, np.newaxis], losses[first:last])
                    if learned:
                        met = rows[int(np.flatnonzero(rounds.learns(rows))[0]) :][:1]
                        _core.set_hot_slots(engine._core, np.unique(met.indices))
            np.testing.assert_array_equal(scores, twin.scores)
            np.testing.assert_array_equal(losses, twin.losses)
            np.testing.assert_array_equal(engine.hot_slots, sorted(twin.hot))
            assert_equals_twin(engine, twin, receipt=receipt)
    use_instruction_set("")


def rounds_of(batch: Batch, size: int) -> list[tuple[int, int]]:
    """Rows of each round of `size`, and of what is left behind the last that is learned."""
    learned = np.flatnonzero(rounds.learns(batch))
    ends = [int(learned[at]) + 1 for at in range(size - 1, len(learned), size)]
    if len(learned) % size:
        ends.append(int(learned[-1]) + 1)
    ends = sorted({*ends, len(batch)})
    return list(zip([0, *ends[:-1]], ends, strict=True))


@law(5)
@given(seed=SEEDS, cells64=st.booleans(), grid=st.sampled_from(GRIDS[:4]), round_rows=st.sampled_from([2, 4, 64]))
def test_growing_rounds_equal_their_twin(seed: int, cells64: bool, grid: Any, round_rows: int) -> None:
    batch = stream(seed, rows=LONG)
    s = spec("logistic", float64=cells64, scale=grid, round_rows=round_rows)
    twin, engine = ReferenceRounds(s, round_rows=round_rows), Engine(s, receipt=True)
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    engine.learn(batch, scores=scores, losses=losses)
    twin.learn(batch)
    assert twin.size() == min(round_rows, 8)
    np.testing.assert_array_equal(scores, twin.scores)
    np.testing.assert_array_equal(losses, twin.losses)
    np.testing.assert_array_equal(engine.hot_slots, sorted(twin.hot))
    assert_equals_twin(engine, twin, receipt=True)


@law(8)
@given(seed=SEEDS, float64=st.booleans(), grid=st.sampled_from(GRIDS[:4]), data=st.data())
def test_cuts_at_the_ends_of_rounds_change_no_bit(seed: int, float64: bool, grid: Any, data: Any) -> None:
    batch = stream(seed, rows=LONG)
    s = spec("logistic", float64=float64, scale=grid, round_rows=16)
    whole, parts = Engine(s, receipt=True), Engine(s, receipt=True)
    whole.learn(batch)
    ends = rounds.round_ends(rounds.learns(batch), 0, 16)
    chosen = sorted(data.draw(st.sets(st.sampled_from(ends), max_size=5)) | {len(batch)})
    start = 0
    for end in chosen:
        parts.learn(batch[start:end])
        parts, start = parts.copy(), end
    assert_same(state_of(whole), state_of(parts))


@law(6)
@given(seed=SEEDS, cells64=st.booleans(), grid=st.sampled_from(GRIDS), tables=st.integers(1, 5))
def test_several_tables_give_the_same_bits(seed: int, cells64: bool, grid: Any, tables: int) -> None:
    """A round of blocks that several readers read, over shards of several tables, is the round of one table."""
    batch = stream(seed, rows=300, dim=200)
    s = spec("logistic", 200, float64=cells64, scale=grid)
    one, mixer = Engine(s, receipt=True), Engine(s, receipt=True)
    servers = [Engine(s, receipt=True) for _ in range(tables)]
    for first, last in ((0, 90), (90, 91), (91, 300)):
        rows = batch[first:last]
        _core.learn_round(one._core, rows.indptr, rows.indices, rows.values, rows.y, rows.weight, block=20)
        learn_apart(rows, mixer, servers, block=20)
    assert_same(state_of(one), gathered(mixer, servers, s))


def learn_apart(rows: Batch, mixer: Engine, servers: list[Engine], block: int) -> None:
    numbering, hot = _core.RoundNumbering(mixer.spec.dim), mixer.hot_slots
    learned = np.flatnonzero(rounds.learns(rows))
    ends = [int(learned[at]) + 1 for at in range(block - 1, len(learned), block)]
    ends = sorted({*ends, len(rows)})
    blocks = [
        rounds.Block.of(rows[a:b].private(), numbering) for a, b in zip([0, *ends[:-1]], ends, strict=True) if a < b
    ]
    every, where = rounds.merged([one.coordinates for one in blocks])
    is_hot = np.isin(every.slots, hot)
    x = np.zeros((len(every.slots), _core.round_stride(mixer._core)))
    own = [(every.shards % len(servers) == number) & ~is_hot for number in range(len(servers))]
    for server, which in zip(servers, own, strict=True):
        x[which] = rounds.play(server._core, every.some(which))
    move(hot, servers, mixer)
    g = np.zeros_like(x)
    for one, numbers in zip(blocks, where, strict=True):
        chained = rounds.chain(mixer._core, one, hot, one.scores(mixer._core, x[numbers]))
        g[numbers] += one.sums(mixer._core, chained.slopes)
    sums, heaviest = rounds.no_sums(), float(rows.weight[learned].max(initial=0.0))
    for server, which in zip(servers, own, strict=True):
        rounds.step(server._core, every.some(which), heaviest, x[which], g[which], sums)
    rounds.add_sums(mixer._core, sums)
    move_back(hot, mixer, servers)
    mixer.hot_slots = np.sort(every.slots[rounds.is_hot_next(every, len(learned))])


def move(hot: np.ndarray, servers: list[Engine], mixer: Engine) -> None:
    for slot in hot:
        server = servers[int(rounds.shard_of(np.array([slot], np.uint32))[0]) % len(servers)]
        mixer.put(np.array([slot]), server.take(np.array([slot])))
        mixer.put_gradients(np.array([slot]), server.take_gradients(np.array([slot])))


def move_back(hot: np.ndarray, mixer: Engine, servers: list[Engine]) -> None:
    for slot in hot:
        server = servers[int(rounds.shard_of(np.array([slot], np.uint32))[0]) % len(servers)]
        server.put(np.array([slot]), mixer.take(np.array([slot])))
        server.put_gradients(np.array([slot]), mixer.take_gradients(np.array([slot])))


def gathered(mixer: Engine, servers: list[Engine], s: Spec) -> dict[str, np.ndarray]:
    """The state of one engine with the cells of all servers."""
    slots = np.arange(s.dim, dtype=np.uint32)
    owner = rounds.shard_of(slots) % len(servers)
    for number, server in enumerate(servers):
        own = slots[owner == number]
        own = own[np.isin(own, server.touched())]
        mixer.put(own, server.take(own))
        mixer.put_gradients(own, server.take_gradients(own))
    return state_of(mixer)


@law(6)
@given(seed=SEEDS, float64=st.booleans(), grid=st.sampled_from(GRIDS))
def test_rounds_of_one_row_are_no_rounds(seed: int, float64: bool, grid: Any) -> None:
    """Up to row 128 every round has one row, and with round_rows=1 all have."""
    batch = stream(seed, rows=140)
    batch = batch[: int(np.flatnonzero(rounds.learns(batch))[:128][-1]) + 1]
    s = spec("logistic", float64=float64, scale=grid)
    plain, grown = (
        Engine(s, receipt=True),
        Engine(spec("logistic", float64=float64, scale=grid, round_rows=64), receipt=True),
    )
    plain.learn(batch)
    grown.learn(batch)
    one, other = state_of(plain), state_of(grown)
    del one["hot"], other["hot"]
    assert_same(one, other)
