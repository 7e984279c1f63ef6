"""The feature hash: its twin, fixed values, and how evenly it spreads similar names."""

import itertools
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ftprl import _core
from oracles import hash_twin

Hashes = NDArray[np.uint64]
SEEDS = st.integers(0, 2**64 - 1)
LETTERS = "abcdefghijklmnopqrstuvwxyz012345"

# Fixed for ever, because model files rely on these values.
GOLDEN = [
    (b"", 0, 0x83CD62B96D17D778),
    (b"", 1, 0x8359FFF62713A185),
    (b"a", 0, 0x3FD06679E6FEFC84),
    (b"a\0", 0, 0x2CBD923998308452),
    (b"abcd", 0, 0xD84F451484A1C8CA),
    (b"1234567", 0, 0x7567B73346285C8B),
    (b"12345678", 0, 0x54772D239A6A1C76),
    (b"123456789", 0, 0xD43531F87B9225BB),
    (b"colour=blue", 0, 0x4B01B854909E2C7A),
    (b"colour=blue", 42, 0x39395493F6307C74),
    (b"\xff" * 16, 2**64 - 1, 0xCBADF19B4F950984),
    (bytes(range(256)), 2**63, 0xEA3D5FFE9FD40071),
]


def test_version() -> None:
    assert _core.HASH_VERSION == 1


@pytest.mark.parametrize(("data", "seed", "expected"), GOLDEN)
def test_golden(data: bytes, seed: int, expected: int) -> None:
    assert _core.feature_hash(data, seed) == expected
    assert hash_twin.feature_hash(data, seed) == expected


@settings(deadline=None, max_examples=500)
@given(data=st.binary(max_size=80), seed=SEEDS)
@example(data=b"", seed=0)
@example(data=b"\xff" * 7, seed=2**64 - 1)
def test_equals_twin(data: bytes, seed: int) -> None:
    assert _core.feature_hash(data, seed) == hash_twin.feature_hash(data, seed)


@pytest.mark.parametrize("size", range(41))
def test_equals_twin_at_every_length(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert _core.feature_hash(data, size) == hash_twin.feature_hash(data, size)


@settings(deadline=None)
@given(text=st.text(), seed=SEEDS)
def test_text_is_hashed_as_utf8(text: str, seed: int) -> None:
    assert _core.feature_hash(text, seed) == _core.feature_hash(text.encode(), seed)


@settings(deadline=None)
@given(names=st.lists(st.text() | st.binary()), seed=SEEDS)
def test_many_equals_one_by_one(names: list[str | bytes], seed: int) -> None:
    hashes = _core.feature_hashes(names, seed)
    assert hashes.dtype == np.uint64
    assert hashes.shape == (len(names),)
    assert hashes.tolist() == [_core.feature_hash(name, seed) for name in names]


def test_many_takes_any_sequence() -> None:
    names = ["a", "bb", "ccc"]
    expected = _core.feature_hashes(names).tolist()
    assert _core.feature_hashes(tuple(names)).tolist() == expected
    assert _core.feature_hashes(np.array(names)).tolist() == expected
    assert _core.feature_hashes(np.array(names, dtype=object)).tolist() == expected


def test_result_outlives_its_names() -> None:
    hashes = _core.feature_hashes([str(i) for i in range(1000)])
    assert hashes.flags.writeable
    assert hashes.tolist() == [_core.feature_hash(str(i)) for i in range(1000)]


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_same_in_every_process(hash_seed: str) -> None:
    code = "from ftprl import _core; print(*_core.feature_hashes(['a', 'colour=blue', 'naïve'], 7))"
    run = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    here = _core.feature_hashes(["a", "colour=blue", "naïve"], 7)
    assert [int(word) for word in run.stdout.split()] == here.tolist()


# Similar names. Each family has between 2^20 and 2^21 distinct names.
COUNT = 1 << 20


def columns() -> list[bytes]:
    return [b"C%d=%d" % (i % 32, i // 32) for i in range(COUNT)]


def decimal_numbers() -> list[bytes]:
    return [b"%d" % i for i in range(COUNT)]


def binary_numbers() -> list[bytes]:
    return [i.to_bytes(8, "little") for i in range(COUNT)]


def high_binary_numbers() -> list[bytes]:
    return [(i << 44).to_bytes(8, "little") for i in range(COUNT)]


def one_letter_apart() -> list[str]:
    return [f"user_agent={a}-{b}-padding-{c}-{d}-tail" for a, b, c, d in itertools.product(LETTERS, repeat=4)]


def few_bits_set() -> list[bytes]:
    bits = [1 << k for k in range(192)]
    triples = itertools.combinations(bits, 3)
    return [(a | b | c).to_bytes(24, "little") for a, b, c in triples]


FAMILIES = [columns, decimal_numbers, binary_numbers, high_binary_numbers, one_letter_apart, few_bits_set]


def distinct(hashes: Hashes) -> int:
    return 1 + np.count_nonzero(np.diff(np.sort(hashes)))


def assert_spread_like_chance(hashes: Hashes, bits: int) -> None:
    """Check that the pairs that share a cell, and the cells in use, are as by chance, within 5 sigma."""
    m, cells = len(hashes), 1 << bits
    low = hashes & np.uint64(cells - 1)
    high = hashes >> np.uint64(64 - bits)
    for slots in (low, high):
        counts = np.bincount(slots.astype(np.int64), minlength=cells)
        pairs = int((counts * (counts - 1)).sum()) // 2
        expected_pairs = m * (m - 1) / 2 ** (bits + 1)
        assert abs(pairs - expected_pairs) < 5 * math.sqrt(expected_pairs)

        load = m / cells
        expected_used = -cells * math.expm1(m * math.log1p(-1 / cells))
        sigma = math.sqrt(cells * math.exp(-load) * (1 - (1 + load) * math.exp(-load)))
        assert abs(np.count_nonzero(counts) - expected_used) < 5 * sigma


@pytest.mark.parametrize("family", FAMILIES)
def test_collisions_of_names_that_look_alike(family: Callable[[], list[str] | list[bytes]]) -> None:
    names = family()
    assert COUNT <= len(names) <= 2 * COUNT
    hashes = _core.feature_hashes(names, 1)
    assert distinct(hashes) == len(names)
    assert_spread_like_chance(hashes, 22)


def test_seeds_next_to_each_other_are_unrelated() -> None:
    names = [b"%d" % i for i in range(COUNT // 8)]
    hashes = np.concatenate([_core.feature_hashes(names, seed) for seed in range(8)])
    assert distinct(hashes) == COUNT
    assert_spread_like_chance(hashes, 22)


def test_a_seed_is_not_a_change_of_the_name() -> None:
    for bit in range(64):
        name = (1 << bit).to_bytes(8, "little")
        assert _core.feature_hash(name, 0) != _core.feature_hash(bytes(8), 1 << bit)


def test_runs_of_zero_bytes_differ() -> None:
    assert distinct(_core.feature_hashes([bytes(n) for n in range(2000)])) == 2000


def flip_frequencies(before: Hashes, after: Hashes) -> NDArray[np.float64]:
    """Return how often each output bit changed: `after` has one row per input bit."""
    changed = np.bitwise_xor(before, after)
    return np.stack([((changed >> np.uint64(j)) & np.uint64(1)).mean(axis=1) for j in range(64)], axis=1)


def assert_near_half(frequencies: NDArray[np.float64], samples: int) -> None:
    sigma = 0.5 / math.sqrt(samples)
    assert np.abs(frequencies - 0.5).max() < 6 * sigma
    assert abs(frequencies.mean() - 0.5) < 6 * sigma / math.sqrt(frequencies.size)


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 17])
def test_every_input_bit_moves_every_output_bit(size: int) -> None:
    samples = 2000 if size > 1 else 256
    rng = random.Random(size)
    inputs = range(256) if size == 1 else [rng.getrandbits(8 * size) for _ in range(samples)]
    rows = [[(x ^ flip).to_bytes(size, "little") for x in inputs] for flip in (1 << k for k in range(8 * size))]
    before = _core.feature_hashes([x.to_bytes(size, "little") for x in inputs], 3)
    after = np.stack([_core.feature_hashes(row, 3) for row in rows])
    # With one byte, x and x ^ flip are one pair seen twice: half as many independent samples.
    assert_near_half(flip_frequencies(before, after), samples if size > 1 else samples // 2)


def test_every_seed_bit_moves_every_output_bit() -> None:
    samples = 1000
    seeds = [random.Random(5).getrandbits(64) ^ i for i in range(samples)]
    before = np.array([_core.feature_hash("price", seed) for seed in seeds], dtype=np.uint64)
    after = np.array([[_core.feature_hash("price", s ^ 1 << k) for s in seeds] for k in range(64)], dtype=np.uint64)
    assert_near_half(flip_frequencies(before, after), samples)


@pytest.mark.parametrize("data", [None, 3, 1.5, ["a"], bytearray(b"a"), memoryview(b"a")])
def test_data_must_be_text(data: Any) -> None:
    with pytest.raises(TypeError, match=f"data must be str or bytes, got {type(data).__name__}"):
        _core.feature_hash(data)


@pytest.mark.parametrize("seed", [-1, 2**64, -(2**80), 2**80])
def test_seed_must_fit(seed: int) -> None:
    for call in (lambda: _core.feature_hash("a", seed), lambda: _core.feature_hashes(["a"], seed)):
        with pytest.raises(ValueError, match=rf"seed must be at least 0 and below 2\*\*64, got {seed}"):
            call()


@pytest.mark.parametrize("seed", [1.0, "1", None])
def test_seed_must_be_an_integer(seed: Any) -> None:
    with pytest.raises(TypeError, match=f"seed must be an integer, got {type(seed).__name__}"):
        _core.feature_hash("a", seed)


def test_seed_may_come_from_numpy() -> None:
    assert _core.feature_hash("a", np.uint64(2**64 - 1)) == _core.feature_hash("a", 2**64 - 1)


def test_a_lone_surrogate_has_no_utf8() -> None:
    with pytest.raises(UnicodeEncodeError):
        _core.feature_hash("\ud800")


@pytest.mark.parametrize("names", ["abc", b"abc", 3, None, {"a"}, {"a": 1}, iter(["a"])])
def test_names_must_be_a_sequence(names: Any) -> None:
    with pytest.raises(TypeError, match="names must be a sequence of str or bytes, got "):
        _core.feature_hashes(names)


def test_the_bad_name_is_pointed_at() -> None:
    with pytest.raises(TypeError, match=r"names\[2\] must be str or bytes, got int"):
        _core.feature_hashes(["a", b"b", 3])
