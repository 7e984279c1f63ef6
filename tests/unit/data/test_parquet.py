"""Parquet files of any writer settings give the rows of their table; damage is an error."""

from __future__ import annotations

import datetime as dt
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftprl
from ftprl import data
from ftprl.errors import BadFormat, FtprlError
from oracles.batches import keys, rows_of

TEXTS = ["", "a", "Rome", "São Paulo", "x" * 70, "a,b", "10", "true"]


def columns(rows: int, seed: int, missing: float) -> pa.Table:
    rng = np.random.default_rng(seed)

    def of(type: pa.DataType, values: Any) -> pa.Array:
        cells = [None if rng.random() < missing else value for value in values]
        return pa.array(cells, type)

    days = [dt.date(2020, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(-40000, 40000, rows)]
    times = [dt.datetime(2020, 1, 1) + dt.timedelta(seconds=int(s)) for s in rng.integers(-(10**9), 10**9, rows)]
    return pa.table(
        {
            "i64": of(pa.int64(), rng.integers(-(2**62), 2**62, rows).tolist()),
            "few": of(pa.int64(), rng.integers(0, 3, rows).tolist()),
            "i8": of(pa.int8(), rng.integers(-128, 127, rows).tolist()),
            "u8": of(pa.uint8(), rng.integers(0, 255, rows).tolist()),
            "u32": of(pa.uint32(), rng.integers(0, 2**32, rows).tolist()),
            "u64": of(pa.uint64(), [int(n) * 2**33 for n in rng.integers(0, 2**31, rows)]),
            "f32": of(pa.float32(), rng.normal(size=rows).tolist()),
            "f64": of(pa.float64(), rng.normal(size=rows).round(1).tolist()),
            "yes": of(pa.bool_(), (rng.random(rows) < 0.5).tolist()),
            "day": of(pa.date32(), days),
            "us": of(pa.timestamp("us"), times),
            "ms": of(pa.timestamp("ms", "UTC"), times),
            "words": of(pa.string(), rng.choice(TEXTS, rows).tolist()),
            "many": of(pa.string(), [f"name-{n}" for n in rng.integers(0, 10 * rows + 1, rows)]),
            "bytes": of(pa.binary(), [bytes([n % 256, 255]) for n in rng.integers(0, 300, rows)]),
            "view": of(pa.large_string(), rng.choice(TEXTS, rows).tolist()),
            "all": pa.array(rng.choice(TEXTS, rows).tolist(), pa.string()),
            "none": pa.array([None] * rows, pa.string()),
        }
    )


options = st.fixed_dictionaries(
    {
        "rows": st.sampled_from([1, 7, 8, 9, 100, 999]),
        "seed": st.integers(0, 2**31),
        "missing": st.sampled_from([0.0, 0.01, 0.5]),
        "use_dictionary": st.booleans(),
        "compression": st.sampled_from(["none", "snappy", "gzip", "zstd", "brotli", "lz4"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([1, 300, 2**20]),
        "write_batch_size": st.sampled_from([1, 10, 1024]),
        "dictionary_pagesize_limit": st.sampled_from([40, 400, 2**20]),  # beyond it, texts follow as they are
        "row_group_size": st.sampled_from([50, 2000]),
        "store_schema": st.booleans(),
    }
)


# ---- equal models for all readers ----


def same_model(table: pa.Table, path: Path, **options: Any) -> None:
    own = ftprl.train(path, label="y", bits=12, **options).model.state_digest()
    assert own == ftprl.train(table, label="y", bits=12, **options).model.state_digest()


def labelled(rows: int = 300, seed: int = 1, missing: float = 0.1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return columns(rows, seed, missing).append_column("y", pa.array(rng.integers(0, 2, rows)))


@given(options)
@settings(max_examples=25, deadline=None)
def test_rows_do_not_depend_on_the_writer(tmp_path_factory: pytest.TempPathFactory, given: Any) -> None:
    path = tmp_path_factory.mktemp("parquet") / "a.parquet"
    table = labelled(given.pop("rows"), given.pop("seed"), given.pop("missing"))
    pq.write_table(table, path, **given)
    expected = rows_of(data.open(table, label="y", dim=2**12, text="words").batches())
    actual = rows_of(data.open(path, label="y", dim=2**12, text="words").batches())
    assert [keys(row) for row in actual] == [keys(row) for row in expected]


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("names", ["64MB", "0"])
def test_a_file_gives_the_model_of_the_table(tmp_path: Path, threads: int, names: str) -> None:
    table = labelled().drop_columns(["none", "bytes"])
    pq.write_table(table, tmp_path / "a.parquet", dictionary_pagesize_limit=500, row_group_size=120)
    same_model(table, tmp_path / "a.parquet", threads=threads, names=names, text="words", bucket="f32", numeric="few")


def test_categories_of_a_frame_stay_categories(tmp_path: Path) -> None:
    colours = pa.array(["true", "false", None] * 40).dictionary_encode()
    table = pa.table({"c": colours, "y": [0, 1, 1] * 40})
    pq.write_table(table, tmp_path / "a.parquet")
    assert data.open(tmp_path / "a.parquet", label="y").describe().columns == {"c": "categorical", "y": "label"}
    same_model(table, tmp_path / "a.parquet")


OTHERS: dict[str, Any] = {
    "lists": pa.array([[1, 2], [], None] * 10),
    "structure": pa.array([{"a": 1}, None, {"a": 2}] * 10),
    "decimal": pa.array([1, 2, None] * 10, pa.decimal128(9, 2)),
    "numbers with a dictionary": pa.array([5, 6, None] * 10).dictionary_encode(),
    "nothing": pa.nulls(30),
    "half": pa.array(np.array([1, 2, 3] * 10, np.float16)),
}


@pytest.mark.parametrize("what", OTHERS)
def test_other_columns_give_the_model_of_the_table(tmp_path: Path, what: str) -> None:
    table = pa.table({"x": OTHERS[what], "y": [0, 1, 1] * 10})
    pq.write_table(table, tmp_path / "a.parquet")
    same_model(table, tmp_path / "a.parquet")


def test_other_encodings_and_dates_as_text(tmp_path: Path) -> None:
    table = pa.table({"n": list(range(30)), "d": [dt.date(2020, 1, 1 + i) for i in range(30)], "y": [0, 1, 1] * 10})
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, column_encoding={"n": "DELTA_BINARY_PACKED"})
    same_model(table, tmp_path / "a.parquet")
    pq.write_table(table, tmp_path / "b.parquet")
    same_model(table, tmp_path / "b.parquet", categorical="d")


def test_labels_are_looked_for_beyond_small_files(tmp_path: Path) -> None:
    for number, label in enumerate(("no", "yes")):
        pq.write_table(pa.table({"a": ["x", "y"], "y": [label, label]}), tmp_path / f"{number}.parquet")
    assert ftprl.train(tmp_path, label="y", bits=8).rows == 4


# ---- damage ----


def test_damage_is_an_error_or_is_not_noticed_but_never_more(tmp_path: Path) -> None:
    path, rng = tmp_path / "a.parquet", random.Random(1)
    for version, compression in (("1.0", "snappy"), ("2.0", "none"), ("1.0", "none")):
        pq.write_table(labelled(200), path, data_page_version=version, compression=compression, data_page_size=200)
        whole = path.read_bytes()
        for _ in range(150):
            body = bytearray(whole)
            for _ in range(rng.choice([1, 1, 3])):
                body[rng.randrange(4, len(body) - 8)] ^= 1 << rng.randrange(8)
            path.write_bytes(body)
            with suppress(FtprlError):
                for batch in data.open(path, label="y", dim=64).batches():
                    assert len(batch)


def test_damaged_pages_name_the_file_and_the_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(labelled(200), path, row_group_size=100, compression="none")
    start = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    body = bytearray(path.read_bytes())
    body[start : start + 12] = b"\xff" * 12
    path.write_bytes(body)
    message = r"a.parquet: row group 1: expected a Parquet file, got other bytes \(.+\); check the file."
    with pytest.raises(BadFormat, match=message):
        ftprl.train(path, label="y", bits=8)


def test_a_damaged_count_of_levels_is_an_error_where_pyarrow_would_end_the_process(tmp_path: Path) -> None:
    """Levels are counted in the metadata; a column that may have none has no counts of its own."""
    path = tmp_path / "a.parquet"
    price = pa.array([1, None, 3] * 10, pa.decimal128(9, 2))  # so that pyarrow reads the file
    pq.write_table(pa.table({"words": ["a", "b", None] * 10, "price": price, "y": [0, 1, 1] * 10}), path)
    body = path.read_bytes()
    assert body.count(b"\x25\x02\x18\x05words") == 1
    path.write_bytes(body.replace(b"\x25\x02\x18\x05words", b"\x25\x00\x18\x05words"))
    with pytest.raises(BadFormat, match=r"a.parquet: .*expected a Parquet file, got other bytes"):
        ftprl.train(path, label="y", bits=8)


@pytest.mark.parametrize("dim", [2**5, 2**9, 2**20])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_of_categories_alone_are_those_of_csv(tmp_path: Path, dim: int, intercept: bool) -> None:
    """Whole blocks are built at once: repeated slots of a row are summed, and bad labels are left out."""
    rng = np.random.default_rng(dim)
    rows = 5000
    labels = rng.integers(0, 2, rows).astype(object)
    labels[[3, 1030, 4999]] = "1e40"  # too large, and no label
    labels[[77, 2060]] = "maybe"
    labels[100:103] = ""
    table = {"y": labels.astype(str), **{f"c{j}": rng.integers(0, 3**j + 1, rows).astype(str) for j in range(9)}}
    csv, parquet = tmp_path / "a.csv", tmp_path / "a.parquet"
    csv.write_text("\n".join([",".join(table), *map(",".join, zip(*table.values(), strict=True))]) + "\n")
    pq.write_table(pa.table(table), parquet)
    features = [name for name in table if name != "y"]
    sources = [
        data.open(
            path,
            dim=dim,
            label="y",
            categorical=features,
            intercept=intercept,
            loss="squared",
            on_bad_row="skip",
        )
        for path in (csv, parquet)
    ]
    text, cells = ([batch for batch, _ in source.read(threads=0)] for source in sources)
    assert len(text) == len(cells)
    for one, other in zip(text, cells, strict=True):
        for name in ("indptr", "indices", "values", "y", "weight"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert sources[0].bad_rows == sources[1].bad_rows == 5
    has_repeats = any((batch.values != 1.0).any() for batch in cells)
    assert has_repeats == (dim < 2**20)


@given(
    st.integers(1, 120),
    st.sampled_from([2**5, 2**12, 2**14, 2**16, 3 * 2**14, 2**22]),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([(0, 1), (-1, 1), (0, 1, 7), (3, 12)]),
    st.booleans(),
    st.integers(0, 2**31),
)
@settings(max_examples=40, deadline=None)
def test_rows_of_many_categories_are_those_of_csv(
    tmp_path_factory: pytest.TempPathFactory,
    width: int,
    dim: int,
    dtype: str,
    labels: tuple[int, ...],
    has_gaps: bool,
    seed: int,
) -> None:
    """Rows of ones with whole-number labels, few or many repeated slots, and some gaps."""
    folder = tmp_path_factory.mktemp("categories")
    rng = np.random.default_rng(seed)
    rows = 2100  # more than two blocks
    cells = {f"c{j}": rng.zipf(1.3, rows).clip(0, 999).astype(str) for j in range(width)}
    if has_gaps:
        cells["c0"] = np.where(np.arange(rows) // 300 % 3 == 1, "", cells["c0"])
    table = {"y": rng.choice(labels, rows), **cells}
    pq.write_table(pa.table(table), folder / "a.parquet")
    lines = [",".join(table), *map(",".join, zip(*(column.astype(str) for column in table.values()), strict=True))]
    (folder / "a.csv").write_text("\n".join(lines) + "\n")
    options: dict[str, Any] = {"dim": dim, "label": "y", "categorical": list(cells), "loss": "squared", "dtype": dtype}
    text, found = (
        [batch for batch, _ in data.open(folder / name, **options).read(threads=0)] for name in ("a.csv", "a.parquet")
    )
    assert len(text) == len(found)
    for one, other in zip(text, found, strict=True):
        for name in ("indptr", "indices", "values", "y", "weight"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_damaged_pages_of_zstd_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    cells = {"y": [0, 1] * 5000, "a": [f"{(i * 7919) % 99991:x}" for i in range(10_000)]}
    pq.write_table(pa.table(cells), path, compression="zstd", use_dictionary=False)
    column = pq.ParquetFile(path).metadata.row_group(0).column(1)
    content = bytearray(path.read_bytes())
    middle = column.data_page_offset + column.total_compressed_size // 2
    content[middle : middle + 64] = bytes(64)
    path.write_bytes(content)
    with pytest.raises(BadFormat, match=r"a\.parquet: row group 0: expected a Parquet file"):
        list(data.open(str(path), label="y", dim=64).batches())
