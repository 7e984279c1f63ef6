"""`train --cache`: the rows of the cache are those of the data."""

from __future__ import annotations

import itertools
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl.data import Batch, Source
from ftprl.data.cache import cached
from ftprl.errors import BadFormat
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from ftprl.training import train

ROWS = 3000


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table with numbers, categories, text, weights and bad rows."""
    rng = np.random.default_rng(2)
    lines = ["y,w,city,x,note"]
    for i in range(ROWS):
        x = "NA" if i % 7 == 0 else f"{rng.normal():.4f}"
        note = f'"Word{rng.integers(9)}, word{rng.integers(9)}"'
        lines.append(f"{int(rng.random() < 0.3)},{rng.integers(0, 3)},c{rng.zipf(1.5) % 40},{x},{note}")
        if i % 101 == 5:
            lines.append("1,1,c1,none of a number,a")
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


READING: dict[str, Any] = {"label": "y", "weight": "w", "text": "note", "numeric": "x", "on_bad_row": "skip"}


def model_bytes(where: Any, **options: Any) -> bytes:
    return train(where, bits=12, **options).model.to_bytes()


def test_bad_rows_between_blocks_are_counted(tmp_path: Path) -> None:
    text = "".join(["y,x\n", *["1,1\n0,2\n"] * 3, *["1,bad\n"] * 40, "0,1\n", *["1,bad\n"] * 40])
    (tmp_path / "d.csv").write_text(text)
    columns = {"y": "label", "x": "numeric"}
    source = data.open(
        tmp_path / "d.csv", dim=64, columns=columns, on_bad_row="skip", block_size=50, max_row=40, labelled=True
    )
    actual = cached(source, str(tmp_path / "b.batches"))
    assert sum(len(batch) for batch in actual.batches()) == 7
    assert actual.take_left_out() == {6: 40, 7: 40}
    assert actual.bad_rows == 80


def test_cache_is_used_as_long_as_the_data_is_the_same(table: Path, tmp_path: Path) -> None:
    cache, options = tmp_path / "c.batches", {**READING, "passes": 2}
    wanted = model_bytes(table, **options)
    assert model_bytes(table, cache=cache, **options) == wanted
    made = cache.stat().st_mtime_ns
    assert model_bytes(table, cache=cache, **options) == wanted
    assert cache.stat().st_mtime_ns == made
    text = table.read_text()
    middle = text.index("\n", len(text) // 2) + 1
    table.write_text(text[:middle] + ("1" if text[middle] == "0" else "0") + text[middle + 1 :])
    changed = model_bytes(table, **options)
    assert changed != wanted
    assert model_bytes(table, cache=cache, **options) == changed  # the same size, one byte in the middle
    assert cache.stat().st_mtime_ns != made
    assert model_bytes(table, cache=cache, seed=3, **options) == model_bytes(table, seed=3, **options)
    cache.write_bytes(cache.read_bytes()[:-1])
    assert model_bytes(table, cache=cache, **options) == changed
    frame = [{"x": float(i), "y": i % 2} for i in range(50)]
    assert model_bytes(frame, label="y", cache=cache) == model_bytes(frame, label="y")


def test_receipts_and_checkpoints_of_a_cache(table: Path, tmp_path: Path) -> None:
    cache, good = tmp_path / "c.batches", {**READING, "receipt": True}
    assert model_bytes(table, cache=cache, **good) == model_bytes(table, **good)
    run = train(table, bits=12, cache=cache, output=tmp_path / "m", **good)
    receipt = make_receipt(run.model, certify_model(run.model))
    write_receipt(tmp_path / "r", receipt)
    assert verify_receipt(tmp_path / "r", table).confirmed
    train(table, bits=12, cache=cache, checkpoint=tmp_path / "k", every=500, output=tmp_path / "a", **READING)
    train(table, cache=cache, resume=tmp_path / "k", output=tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@settings(max_examples=30)
@given(st.data())
def test_batches_come_back_as_they_were(draw: st.DataObject) -> None:
    """Rows of any shape are read back, from any position on."""
    values = st.floats(-1e6, 1e6, width=32).filter(bool)
    row = st.dictionaries(st.integers(0, 99), st.one_of(st.just(1.0), values), max_size=5)
    parts = draw.draw(st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=4))
    batches, first = [], 0
    for rows in parts:
        y = draw.draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=len(rows), max_size=len(rows)))
        weight = draw.draw(st.sampled_from([None, [float(i) for i in range(len(rows))]]))
        batches.append(Batch.from_rows(rows, y=y, weight=weight, first_row=first))
        first += len(rows)
    with tempfile.TemporaryDirectory() as folder:
        source = cached(data.open(batches, dim=100), str(Path(folder, "b.batches")))
        assert sum(len(batch) for batch in source.batches()) == first
        start = draw.draw(st.integers(0, first))
        places = [place.after(i) for b, place in source.read() for i in range(len(b) + 1)]
        there = next(place for place in places if place.rows == start)
        actual = [b for b, _ in source.read(source.position(there.to_dict()))]
    for name in ("y", "weight"):
        wanted = np.concatenate([getattr(b, name) for b in batches])[start:]
        np.testing.assert_array_equal(np.concatenate([getattr(b, name) for b in actual] or [[]]), wanted)
    all_rows = [dict(zip(*one, strict=True)) for b in batches for one in entries(b)]
    assert [dict(zip(*one, strict=True)) for b in actual for one in entries(b)] == all_rows[start:]


def entries(batch: Batch) -> list[tuple[list[int], list[float]]]:
    cuts = batch.indptr.tolist()
    pairs = itertools.pairwise(cuts)
    return [(batch.indices[a:b].tolist(), batch.values[a:b].tolist()) for a, b in pairs]


def numbered_rows(folder: Path, blocks: int = 12, rows: int = 50) -> tuple[Source, str]:
    """Return some batches as a source, and the path of their cache."""
    made = []
    for block in range(blocks):
        indices = np.arange(3 * rows, dtype=np.uint32) + block
        y = np.where(np.arange(rows) % 3 == block % 3, 1.0, -1.0)
        made.append(Batch(np.arange(0, 3 * rows + 1, 3), indices, np.ones(3 * rows, np.float32), y, np.ones(rows)))
    return data.open(made, dim=512), str(folder / "d.batches")


@pytest.mark.parametrize("at", [0.2, 0.35, 0.5, 0.6])
def test_a_batch_that_changed_is_reported_where_it_is(tmp_path: Path, at: float) -> None:
    source = cached(*numbered_rows(tmp_path))
    path = tmp_path / "d.batches"
    content = bytearray(path.read_bytes())
    content[int(len(content) * at)] ^= 1
    path.write_bytes(content)
    batches = list[Batch]()
    with pytest.raises(BadFormat, match="expected them as they were written, got others") as raised:
        batches.extend(batch for batch, _ in source.read())
    numbers = re.search(r"rows (\d+) to (\d+)", str(raised.value))
    assert numbers is not None
    assert sum(map(len, batches)) == int(numbers[1]) < 12 * 50
    assert int(numbers[2]) == int(numbers[1]) + 49


def test_a_cache_that_became_shorter_is_reported(tmp_path: Path) -> None:
    source = cached(*numbered_rows(tmp_path))
    path = tmp_path / "d.batches"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(BadFormat, match="expected them as they were written"):
        list(source.read())


@settings(max_examples=60)
@given(st.data())
def test_a_damaged_cache_is_written_anew_or_refused(draw: st.DataObject) -> None:
    """If any byte of the cache changes, the rows are read from the data, or one line reports the difference."""
    with tempfile.TemporaryDirectory() as folder:
        source, name = numbered_rows(Path(folder), blocks=3, rows=4)
        wanted = [batch.indices.tolist() for batch in cached(source, name).batches()]
        path = Path(name)
        content = bytearray(path.read_bytes())
        for at in draw.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
            content[at] = draw.draw(st.integers(0, 255))
        path.write_bytes(content)
        try:
            actual = [batch.indices.tolist() for batch in cached(source, name).batches()]
        except BadFormat:
            return
        assert actual == wanted


def test_tags_and_names_come_back(tmp_path: Path) -> None:
    text = tmp_path / "d.vw"
    text.write_text("".join(f"{(-1) ** i} 'row{i}| a{i % 30} b{i % 7}\n" for i in range(200)))
    source = data.open(text, dim=1024, names=True, block_size=500, max_row=100)
    kept = list(cached(source, str(tmp_path / "d.batches"), names=True).batches())
    assert [tag for batch in kept for tag in batch.tags or ()] == [f"row{i}" for i in range(200)]
    assert sum(len(batch.names.new) for batch in kept if batch.names is not None) >= 37
    (tmp_path / "d.batches").unlink()
    for batch in kept:
        for array in (batch.indptr, batch.indices, batch.values, batch.y, batch.weight):
            assert not array.flags.writeable
