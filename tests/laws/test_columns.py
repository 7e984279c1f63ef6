"""Laws of columns: text, Arrow, dicts, pandas and Polars give the same features of every kind; their twin agrees."""

from __future__ import annotations

import datetime
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from oracles import columns_twin
from oracles.batches import keys, rows_of, same
from oracles.readers_twin import Twin, read_csv

SLOW = settings(deadline=None, max_examples=80)
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
NEAR = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 12, 31))
SEPARATORS = st.sampled_from(["T", " ", "t"])
ZONES = st.one_of(st.sampled_from(["", "Z", "z", "+00", "-0000", "+24:00", "+5"]), st.from_regex(r"[+-][01]\d:[0-6]\d"))


@st.composite
def spelled(draw: st.DrawFn) -> str:
    """A moment in one of its spellings, sometimes a broken one."""
    moment = draw(st.one_of(MOMENTS, NEAR))
    day = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    day = draw(st.sampled_from([day, day, day, day.replace("-", ""), "2023-02-29", "2024-00-10", day[:-1]]))
    time = moment.strftime(draw(st.sampled_from(["%H:%M:%S", "%H:%M", "%H", "%H%M%S", "%H%M", "%H:%M:%S.%f", "24:00"])))
    return draw(st.sampled_from([day, day + draw(SEPARATORS) + time + draw(ZONES)]))


@SLOW
@given(spelled(), st.booleans())
def test_text_is_the_moment_of_the_twin(text: str, is_date: bool) -> None:
    kind = "date" if is_date else "timestamp"
    options: dict[str, Any] = {"columns": {"t": kind}, "sampled": {"t": [86400]}, "dim": 2**30, "on_bad_row": "skip"}
    source = data.open(pa.table({"t": [text]}), **options)
    rows = rows_of(source.batches())
    moment = columns_twin.instant(text)
    if moment is None:
        assert rows == []
        assert source.bad_rows == 1
        return
    twin = Twin(dim=2**30, intercept=False)
    made = columns_twin.date_features("t", moment, 86400, not is_date)
    pairs = [(twin.slot(name.encode()), value) for name, value in made]
    same(rows, [twin.row(pairs, float("nan"), 1.0)])


@SLOW
@given(NEAR)
def test_python_writes_and_reads_the_same_moment(moment: datetime.datetime) -> None:
    for zone in (None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=-9, minutes=-30))):
        aware = moment.replace(tzinfo=zone)
        expected = moment if zone is None else aware.astimezone(datetime.UTC).replace(tzinfo=None)
        actual = columns_twin.instant(aware.isoformat())
        assert actual is not None
        assert actual.replace(tzinfo=None) == expected.replace(microsecond=0)


KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], str]] = {
    "day": (pa.date32(), st.dates(datetime.date(1, 1, 1)), ""),
    "seconds": (pa.timestamp("s"), NEAR.map(lambda t: t.replace(microsecond=0)), ""),
    "millis": (pa.timestamp("ms"), NEAR.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)), ""),
    "micros": (pa.timestamp("us"), NEAR, ""),
    "zoned": (pa.timestamp("us", "UTC"), NEAR.map(lambda t: t.replace(tzinfo=datetime.UTC)), ""),
    "midnight": (pa.timestamp("us"), st.dates().map(lambda d: datetime.datetime(d.year, d.month, d.day)), ""),
    "truth": (pa.bool_(), st.booleans(), ""),
    "flags": (pa.int8(), st.integers(0, 1), "boolean"),
    "words": (pa.string(), st.sampled_from(["true", "FALSE", "True"]), ""),
    "written": (pa.string(), NEAR.map(lambda t: t.isoformat(" ")), ""),
    "narrow": (pa.float32(), st.floats(-100, 100, width=32), "bucket"),
    "wide": (pa.float64(), st.floats(-1e9, 1e9), "bucket"),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1), "bucket"),
    "number": (pa.float64(), st.floats(-1e9, 1e9), ""),
    "category": (pa.string(), st.sampled_from(["a", "NA", "b c"]), "categorical"),
    "text": (pa.string(), st.sampled_from(["one two", "two", "!"]), "text"),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any]]:
    """A table of columns of all kinds, with missing values, and the options to read it."""
    rows = draw(st.integers(1, 12))
    columns: dict[str, pa.Array] = {"one": pa.array([1] * rows)}  # an empty line of a single column is no row
    options: dict[str, Any] = {"missing": draw(st.sampled_from(["indicator", "ignore"]))}
    for i, name in enumerate(draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6))):
        type, values, kind = KINDS[name]
        cells = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        cells[0] = draw(values)  # a column without any value is of no kind
        columns[f"{name} {i}"] = pa.array(cells, type)
        if kind:
            options.setdefault(kind, []).append(f"{name} {i}" + ("=3" if kind == "bucket" else ""))
    return pa.table(columns), options


def text(value: Any) -> str:
    """Return a cell as a CSV file spells it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    return repr(value) if isinstance(value, float) else str(value)


def csv_of(table: pa.Table) -> str:
    cells = [[text(value) for value in as_written(column)] for column in table.columns]
    rows = [table.column_names, *zip(*cells, strict=True)]
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def as_written(column: pa.ChunkedArray) -> list[Any]:
    """Return float32 numbers with as many digits as they need."""
    values = column.to_pylist()
    if column.type != pa.float32():
        return values
    return [None if v is None else np.format_float_positional(np.float32(v), trim="0") for v in values]


def with_types(table: pa.Table) -> list[tuple[list[Any], pa.DataType]]:
    return [(column.to_pylist(), column.type) for column in table.columns]


def as_floats(column: list[Any]) -> list[Any]:
    return [None if v is None else float(np.format_float_positional(np.float32(v), trim="0")) for v in column]


def turned(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in reversed(row.items()) if value is not None}


def row_keys(source: data.Source) -> list[Any]:
    return [keys(row) for row in rows_of(source.batches())]


@SLOW
@given(tables(), st.booleans())
def test_every_format_gives_the_same_kinds_and_features(case: tuple[pa.Table, dict[str, Any]], wide: bool) -> None:
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    table, options = case
    options = {**options, "dim": 100_003, "dtype": "float64" if wide else "float32", "loss": "squared"}
    source = data.open(table, **options)
    settled, expected = source.to_dict(), row_keys(source)
    del settled["format"]
    others = [pl.from_arrow(table), table.to_pandas(types_mapper=pd.ArrowDtype)]
    if not any(type in (pa.float32(),) for type in table.schema.types):  # Python has no such number
        others.append(table.to_pylist())
    for other in others:
        actual = data.open(other, **options)
        assert {name: value for name, value in actual.to_dict().items() if name != "format"} == settled
        assert row_keys(actual) == expected
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(csv_of(table), newline="")
        actual = data.open(path, **options)
        assert {name: actual.to_dict()[name] for name in settled} == settled
        assert row_keys(actual) == expected
        twin = Twin(100_003, intercept=False, dtype=options["dtype"], missing=options["missing"])
        twin.sampled = settled["sampled"]
        body = csv_of(table).partition("\n")[2]
        rows, bad = read_csv(body, ",", lambda fields: twin.fields(fields, list(settled["columns"].items())))
        assert (bad, [keys(row) for row in rows]) == (0, expected)
        pq.write_table(table, Path(folder) / "a.parquet")
        assert row_keys(data.open(Path(folder) / "a.parquet", **options)) == expected
        lines = Path(folder) / "a.jsonl"
        cells = [column if type != pa.float32() else as_floats(column) for column, type in with_types(table)]
        rows_as_text = [dict(zip(table.column_names, row, strict=True)) for row in zip(*cells, strict=True)]
        lines.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows_as_text))
        actual = data.open(lines, **options)
        assert {name: actual.to_dict()[name] for name in settled} == settled
        assert row_keys(actual) == expected
        lines.write_text("".join(json.dumps(turned(row), default=str) + "\n" for row in rows_as_text))
        known = {name: value for name, value in settled.items() if name != "label"}
        if options["missing"] == "indicator":  # keys in another order, and not there where they are null
            assert row_keys(data.open(lines, **known)) == expected


@SLOW
@given(tables())
def test_a_key_that_a_dict_lacks_is_missing_in_its_place(case: tuple[pa.Table, dict[str, Any]]) -> None:
    table, options = case
    source = data.open(table, **options)
    fewer = [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]
    turned = [dict(reversed(row.items())) for row in fewer]
    known = {name: source.to_dict()[name] for name in ("columns", "order", "sampled", "missing")}
    expected = row_keys(source)
    if not any(type == pa.float32() for type in table.schema.types):
        assert row_keys(data.open(fewer, **known)) == expected
        if options["missing"] == "indicator":
            assert row_keys(data.open(turned, **known)) == expected


CELLS = st.sampled_from(
    ["", "NA", "true", "FALSE", "0", "1", "1.0", "yes", "2024-05-31", "2024-05-31T17:04+02:00", "20240531", "x", "-3.5",
     "1e400", " 2 ", " none ", "2024-02-30", "5"]
)  # fmt: skip
ALL = [(kind, kind) for kind in ("categorical", "numeric", "text", "boolean", "date", "timestamp", "bucket")]


@SLOW
@given(
    st.lists(st.lists(CELLS, min_size=7, max_size=7), min_size=1, max_size=8),
    st.sampled_from(["indicator", "ignore"]),
    st.booleans(),
)
def test_cells_of_any_text_equal_their_twin(cells: list[list[str]], missing: str, quoted: bool) -> None:
    sampled = {"date": [0], "timestamp": [1_700_000_000], "bucket": [4, -1.0, 0.5, 2.0]}
    twin = Twin(missing=missing, intercept=False, sampled=sampled)
    quote = '"' if quoted else ""
    body = "".join(",".join(f"{quote}{cell}{quote}" for cell in row) + "\n" for row in cells)
    rows, bad = read_csv(body, ",", lambda fields: twin.fields(fields, ALL))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.csv"
        path.write_text(",".join(name for name, _ in ALL) + "\n" + body, newline="")
        options: dict[str, Any] = {"columns": dict(ALL), "sampled": sampled, "missing": missing, "on_bad_row": "skip"}
        source = data.open(path, **options)
        same(rows_of(source.batches()), rows)
        assert source.bad_rows == bad
        for block in (1, 7):  # however the bytes are cut
            same(rows_of(data.open(path, block_size=block, **options).batches()), rows)
    frame = pa.table({name: [row[i] for row in cells] for i, (name, _) in enumerate(ALL)})
    for other in (frame, frame.to_pylist()):
        source = data.open(other, **options)
        same(rows_of(source.batches()), rows)
        assert source.bad_rows == bad
