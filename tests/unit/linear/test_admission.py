"""Admission of rare features: against a dictionary of counts, and through runs, checkpoints and model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import data
from ftprl.data import Batch
from ftprl.errors import BadModel, FtprlError, InvalidInput
from ftprl.linear import Model
from ftprl.linear.admission import Admission
from ftprl.runlog.events import Event
from ftprl.training import train

DIM = 12
ROWS = st.lists(
    st.tuples(
        st.dictionaries(st.integers(0, DIM - 1), st.sampled_from([1.0, 1.0, 1.0, 2.5]), max_size=4),
        st.sampled_from([1.0, -1.0, np.nan]),
        st.sampled_from([0.0, 1.0]),
    ),
    min_size=1,
    max_size=30,
)


def batch_of(rows: list[tuple[dict[int, float], float, float]]) -> Batch:
    return Batch.from_rows([row for row, _, _ in rows], y=[y for _, y, _ in rows], weight=[w for _, _, w in rows])


def kept_of(batch: Batch) -> list[list[int]]:
    return [batch.indices[a:b].tolist() for a, b in zip(batch.indptr[:-1], batch.indptr[1:], strict=True)]


@given(ROWS, st.integers(1, 4), st.integers(1, 30))
def test_counts_are_those_of_a_dictionary(rows: list[Any], after: int, cut: int) -> None:
    seen, admitted, wanted = dict[int, int](), set[int](), []
    for row, y, weight in rows:
        kept = []
        for slot, value in row.items():
            if weight > 0 and y == y and slot not in admitted:
                if value != 1.0 or seen.get(slot, 0) >= after:
                    admitted.add(slot)
                seen[slot] = seen.get(slot, 0) + 1
            if slot in admitted:
                kept.append(slot)
        wanted.append(kept)
    rule, actual = Admission(f"count:{after}", DIM, 0), []
    for part in batch_of(rows).cut(cut):
        actual += kept_of(rule.admitted(part, part.first_row))
    assert actual == wanted
    again = Admission.from_bytes(rule.to_bytes(), DIM)
    assert kept_of(again.admitted(batch_of(rows), 0, is_fixed=True)) == kept_of(
        rule.admitted(batch_of(rows), 0, is_fixed=True)
    )


@given(ROWS, st.integers(1, 30), st.integers(0, 2**64 - 1))
def test_coins_do_not_depend_on_the_cut(rows: list[Any], cut: int, seed: int) -> None:
    whole, parts, actual = Admission("poisson:0.3", DIM, seed), Admission("poisson:0.3", DIM, seed), []
    for part in batch_of(rows).cut(cut):
        actual += kept_of(parts.admitted(part, part.first_row))
    assert actual == kept_of(whole.admitted(batch_of(rows), 0))
    assert parts.to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_coins_come_up_as_often_as_they_should(chance: float) -> None:
    count = 20_000
    batch = Batch.from_rows([{i: 1.0} for i in range(count)], y=np.ones(count))
    shares = []
    for seed in (0, 1):
        rule = Admission(f"poisson:{chance}", count, seed)
        shares.append(len(rule.admitted(batch, 0).indices) / count)
        waiting = count - len(rule.admitted(batch, count).indices)  # after a second row
        assert abs(waiting / count - (1 - chance) ** 2) < 0.015
    assert max(abs(share - chance) for share in shares) < 0.015
    assert shares[0] != shares[1]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    data.clicks.generate(3000, seed=4, path=tmp_path / "log.vw")
    return tmp_path / "log.vw"


def slow_filter(size: int, seed: int, slot: int) -> list[int]:
    """The counters of a cell, as src/core/learners/admission.hpp has them."""
    mask = 2**64 - 1

    def coin(row: int) -> int:
        x = (seed * 0x9E3779B97F4A7C15 + slot * 0xBF58476D1CE4E5B9 + row * 0x94D049BB133111EB) & mask
        for _ in range(2):
            x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & mask
            x = (x ^ x >> 27) * 0x94D049BB133111EB & mask
            x ^= x >> 31
        return x

    bits, step = coin(0), coin(1) | 1
    return [(bits + k * step & mask) % size for k in range(4)]


@given(ROWS, st.integers(1, 4), st.integers(1, 30), st.sampled_from([1, 7, 40, 5000]), st.integers(0, 2**64 - 1))
def test_a_filter_counts_as_the_slow_one(rows: list[Any], after: int, cut: int, size: int, seed: int) -> None:
    counters, wanted = [0] * size, list[list[int]]()
    for row, y, weight in rows:
        kept = []
        for slot, value in row.items():
            counters_of = slow_filter(size, seed, slot)
            least = min(counters[number] for number in counters_of)
            is_in = least >= after
            if not is_in and weight > 0 and y == y:
                for number in counters_of:
                    if value != 1.0:
                        counters[number] = max(counters[number], after)
                    elif counters[number] == least:
                        counters[number] = least + 1
                is_in = value != 1.0
            kept += [slot] if is_in else []
        wanted.append(kept)
    rule, actual = Admission(f"bloom:{after}:{size}", DIM, seed), []
    for part in batch_of(rows).cut(cut):
        actual += kept_of(rule.admitted(part, part.first_row))
    assert actual == wanted
    assert Admission.from_bytes(rule.to_bytes(), DIM).to_bytes() == rule.to_bytes()


@given(ROWS, st.integers(1, 4), st.sampled_from([1, 7, 5000]))
def test_a_filter_admits_whatever_exact_counts_admit(rows: list[Any], after: int, size: int) -> None:
    exact = kept_of(Admission(f"count:{after}", DIM, 0).admitted(batch_of(rows), 0))
    by_filter = kept_of(Admission(f"bloom:{after}:{size}", DIM, 0).admitted(batch_of(rows), 0))
    assert all(set(a) <= set(b) for a, b in zip(exact, by_filter, strict=True))


def test_neither_threads_nor_blocks_nor_kills_matter(log: Path, tmp_path: Path) -> None:
    actual, whole = set(), train(log, bits=16)
    for threads, block_size in ((0, 5000), (2, 1 << 20)):
        source = data.open(log, dim=2**16, block_size=block_size)
        run = train(source, admit=2, threads=threads, passes=2, names=0)
        actual.add(run.model.to_bytes())
    assert len(actual) == 1
    assert run.model.occupied < 0.6 * whole.model.occupied

    def listener(event: Event) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= 1400:
            raise KeyboardInterrupt

    saved = {"checkpoint": tmp_path / "c", "every": 700}
    with pytest.raises(KeyboardInterrupt):
        train(log, bits=16, admit=2, passes=2, names=0, listener=listener, **saved)
    assert train(log, resume=tmp_path / "c", **saved).model.to_bytes() in actual


def test_a_rare_feature_takes_no_cell(tmp_path: Path) -> None:
    lines = [f"{1 if i % 3 else -1} | often rare{i}" for i in range(100)]
    (tmp_path / "a.vw").write_text("\n".join(lines) + "\n")
    run = train(tmp_path / "a.vw", bits=16, admit=1, output=tmp_path / "m")
    assert run.model.occupied == 1
    model = Model.load(tmp_path / "m")
    assert model.admission is not None
    assert model.admission.rule == "count:1"
    (tmp_path / "b.vw").write_text("1 | rare7 new\n1 | new\n")
    more = train(tmp_path / "b.vw", resume=tmp_path / "m")  # counts go on
    assert more.model.occupied == 3


def test_what_is_refused(log: Path, tmp_path: Path) -> None:
    for rows in (0, 255, "often", True):
        with pytest.raises(InvalidInput, match=r"admit= needs a whole number from 1 to 254"):
            train(log, bits=10, admit=rows)
    with pytest.raises(InvalidInput, match=r"admit= leaves features out that a receipt counts"):
        train(log, bits=10, admit=1, receipt=True)
    train(log, bits=10, output=tmp_path / "m")
    with pytest.raises(InvalidInput, match=r"admit= needs to be what the model was trained with"):
        train(log, resume=tmp_path / "m", admit=1)


def test_a_forged_state_is_refused() -> None:
    good = Admission("count:3", DIM, 0).to_bytes()
    head, _, rest = good.partition(b"\n")
    for body in (b"", good[:-3], head, b"[]\n" + rest, good.replace(b"count:3", b"count:x"), b"\n" + rest):
        with pytest.raises(BadModel, match="expected the admission of features"):
            Admission.from_bytes(body, DIM)
    with pytest.raises(FtprlError):
        Admission.from_bytes(good, DIM + 1)
