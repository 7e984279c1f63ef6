"""Files whose parts are read by their parsers, and values that are all 1, which are not stored."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import data
from ftprl.data import Batch
from ftprl.data.jobs import Prefetch
from ftprl.errors import BadFormat

LINES = st.sampled_from(
    [
        b"1 | a b c",
        b"-1 |n a:2 b",
        b"",
        b"  ",
        b"1 2.5 tag| long-name-of-many-letters-to-cross-a-block x",
        b"-1 | a a a",
    ]
)


def rows_of(source: data.Source, threads: int = 0) -> list[tuple[object, ...]]:
    """Return every row as plain numbers."""
    rows = []
    for batch, _ in source.read(threads=threads):
        for i in range(len(batch)):
            row = batch[i : i + 1]
            rows.append((row.indices.tolist(), row.values.tolist(), float(row.y[0]), float(row.weight[0])))
    return rows


@given(
    lines=st.lists(LINES, max_size=40),
    end=st.sampled_from([b"\n", b"\r\n"]),
    last=st.booleans(),
    mark=st.booleans(),
    size=st.integers(1, 200),
    threads=st.integers(0, 2),
)
def test_in_parts_and_packed_are_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[bytes],
    end: bytes,
    last: bool,
    mark: bool,
    size: int,
    threads: int,
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    text = (b"\xef\xbb\xbf" if mark else b"") + end.join(lines) + (end if last else b"")
    (folder / "a.vw").write_bytes(text)
    (folder / "b.vw.gz").write_bytes(gzip.compress(text))
    plain = data.open(folder / "a.vw", dim=64, block_size=size)
    packed = data.open(folder / "b.vw.gz", dim=64)
    assert rows_of(plain, threads) == rows_of(packed)


def test_every_place_can_be_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(b"%d | a%d b\n" % (1 - 2 * (i % 2), i) for i in range(300)))
    source = data.open(path, dim=1024, block_size=500)
    whole = [(b.indices.tolist(), p) for b, p in source.read(threads=0)]
    assert len(whole) > 5
    for i, (_, place) in enumerate(whole):
        rest = [index for b, _ in source.read(place, threads=1) for index in b.indices.tolist()]
        assert rest == [index for indices, _ in whole[i:] for index in indices]


def test_a_file_that_becomes_shorter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 | a b c\n" * 1000)
    reading = data.open(path, dim=64, block_size=1000).read(threads=0)
    next(reading)
    path.write_bytes(b"1 | a b c\n" * 150)
    with pytest.raises(BadFormat, match=r"a\.vw:\d+: expected the file as it was"):
        list(reading)
    # Rows that were whole before the cut are returned.
    path.write_bytes(b"1 | a b c\n" * 1000)
    reading = data.open(path, dim=64, block_size=1000).read(threads=0)
    rows = len(next(reading)[0])
    path.write_bytes(b"1 | a b c\n" * 150)
    with pytest.raises(BadFormat):
        rows += sum(len(batch) for batch, _ in reading)
    assert rows <= 150


@pytest.mark.parametrize("threads", [0, 1])
def test_a_last_row_that_is_still_being_written(tmp_path: Path, threads: int) -> None:
    """A file that grows while it is read: no row is cut at the old end."""
    path = tmp_path / "a.vw"
    rows = b"".join(b"1 | a b number%d\n" % i for i in range(3000))
    cut = len(rows) - 9
    path.write_bytes(rows[:cut])
    reading = data.open(path, dim=2**16, block_size=4096).read(threads=threads)
    actual = [next(reading)[0]]
    with path.open("ab") as more:
        more.write(rows[cut:] + rows)
    actual += [batch for batch, _ in reading]
    assert sum(map(len, actual)) == 6000
    assert all((np.diff(batch.indptr) == 3).all() for batch in actual)


def test_a_row_longer_than_a_block(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    long = b"1 | " + b" ".join(b"w%d" % i for i in range(200))
    path.write_bytes(b"1 | a\n" * 50 + long + b"\n" + b"-1 | b\n" * 50)
    rows = rows_of(data.open(path, dim=2**16, block_size=100), threads=1)
    assert len(rows) == 101
    assert len(rows[50][0]) == 200  # type: ignore[arg-type]


def batches_of(tmp_path: Path, name: str, text: bytes, dtype: str = "float32", **options: object) -> list[Batch]:
    path = tmp_path / name
    path.write_bytes(text)
    return list(data.open(path, dim=64, dtype=dtype, **options).batches())  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("intercept", [False, True])
def test_ones_are_shared_and_cannot_be_changed(tmp_path: Path, dtype: str, intercept: bool) -> None:
    (plain,) = batches_of(tmp_path, "a.vw", b"1 | a b\n-1 | c\n", dtype, intercept=intercept)
    (other,) = batches_of(tmp_path, "b.libsvm", b"1 3:1 5:1\n-1 7:1\n", dtype, intercept=intercept)
    assert plain.values.dtype == dtype
    assert (plain.values == 1).all()
    assert len(plain.values) == len(plain.indices) == 3 + 2 * intercept
    assert np.shares_memory(plain.values, other.values)
    assert not plain.values.flags.writeable


@pytest.mark.parametrize("odd", [b"1 | a b:2", b"1 |n:3 a b", b"1 | a a", b"1 | a:0.5 b"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_first_value_that_is_not_one(tmp_path: Path, odd: bytes, place: int) -> None:
    lines = [b"1 | c", b"-1 | d e"]
    lines.insert(place, odd)
    (batch,) = batches_of(tmp_path, "a.vw", b"\n".join(lines) + b"\n")
    (alone,) = batches_of(tmp_path, "b.vw", odd + b"\n")
    row = batch[place : place + 1]
    assert row.values.tolist() == alone.values.tolist()
    assert not (row.values == 1).all()
    others = [batch[i : i + 1].values for i in range(3) if i != place]
    assert all((values == 1).all() for values in others)


# ---- threads ----


def prefetched(jobs: Iterable[Any], work: Callable[[Any], Any], threads: int) -> Generator[Any]:
    """Return the results of all jobs; the threads end with the generator."""
    with closing(Prefetch(jobs, work, threads)) as prefetch:
        yield from prefetch.results()


def test_results_come_in_order_whoever_did_them() -> None:
    who = set()

    def work(job: int) -> int:
        who.add(threading.current_thread().name)
        time.sleep(0.002 * (job % 3))
        return job * job

    assert list(prefetched(range(40), work, 2)) == [i * i for i in range(40)]
    assert len(who) > 1


def test_the_caller_does_not_wait_for_a_slow_thread() -> None:
    """If one thread is blocked in the first job, the caller does all other jobs."""
    release = threading.Event()
    main = threading.current_thread()
    held = threading.Event()

    def work(job: int) -> int:
        if threading.current_thread() is not main and not held.is_set():
            held.set()
            release.wait(10)
        elif held.is_set() and job >= 3:
            release.set()
        return job

    assert list(prefetched(range(8), work, 1)) == list(range(8))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_goes_wrong_comes_in_its_turn(threads: int) -> None:
    def work(job: int) -> int:
        if job == 5:
            raise KeyError(job)
        return job

    results = prefetched(range(10), work, threads)
    assert [next(results) for _ in range(5)] == list(range(5))
    with pytest.raises(KeyError):
        next(results)

    def jobs():  # type: ignore[no-untyped-def]
        yield from range(3)
        raise OSError("no more")

    results = prefetched(jobs(), lambda job: job, threads)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="no more"):
        next(results)


def test_nobody_stays_behind() -> None:
    before = threading.active_count()
    results = prefetched(range(1000), lambda job: job, 2)
    assert next(results) == 0
    results.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("started", [0, 1, 2])
def test_threads_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: int) -> None:
    """If the system refuses to start a thread, the caller's own thread reads everything."""
    path = tmp_path / "a.vw"
    path.write_bytes(b"1 | a\n-1 | b\n" * 3000)
    start, count = threading.Thread.start, 0

    def refusing(thread: threading.Thread) -> None:
        nonlocal count
        count += 1
        if count > started:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refusing)
    source = data.open(path, dim=64, block_size=1000)
    assert sum(len(batch) for batch, _ in source.read(threads=3)) == 6000
    count = 0
    reading = source.read(threads=3)
    next(reading)
    reading.close()
