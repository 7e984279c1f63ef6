"""Laws of names: CSV, Parquet and frames of the same rows keep the same names in the same order, up to the same row."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl.linear.names import Names
from oracles.hash_twin import feature_hash
from oracles.names_twin import RowOfNames, kept_names

SLOW = settings(deadline=None, max_examples=40)
ALL = 10**9  # bytes: every name fits
COLUMNS = ("few", "many", "long", "accents", "number", "whole", "truth", "numbers as categories")
CATEGORICAL = ("few", "many", "long", "accents", "numbers as categories")


def cells(name: str, rng: np.random.Generator, rows: int) -> list[Any]:
    """The cells of a column; an empty text is a missing value."""
    ranks = (rng.zipf(1.3, rows) % 5000).tolist()
    if name == "few":
        return [("", "a", "bb", "ccc")[rank % 4] for rank in ranks]
    if name == "many":
        return [f"v{rank}" for rank in ranks]
    if name == "long":
        return [f"a text that is longer than a view holds, {rank}" for rank in ranks]
    if name == "accents":
        return [f"é{rank % 50}" for rank in ranks]
    if name == "number":
        return rng.normal(size=rows).round(2).tolist()
    if name == "truth":
        return (rng.random(rows) < 0.1).tolist()
    return [rank % 30 for rank in ranks]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows with a label, some of them bad; some columns have missing cells."""
    rows = draw(st.sampled_from([1, 7, 256, 1024, 1025, 3000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    bad = rng.random(rows) < draw(st.sampled_from([0.0, 0.002, 0.2]))
    labels = np.arange(rows) % 2
    columns: dict[str, pa.Array] = {"y": pa.array(np.where(bad, "x", labels.astype(str)).tolist())}
    if draw(st.booleans()):  # whole numbers have a way of their own; one beyond 1e30 is found out late
        columns["y"] = pa.array(np.where(bad, 1e31, labels) if bad.any() else labels)
    for name in draw(st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True)):
        holes = rng.random(rows) < draw(st.sampled_from([0.0, 0.0, 0.01, 0.5]))
        columns[name] = pa.array(cells(name, rng, rows), mask=holes)
    return pa.table(columns)


def names_of_row(row: dict[str, Any], marks_missing: bool) -> list[str]:
    """The names of a row's features, in the order of the columns."""
    names = []
    for column, value in row.items():
        if column == "y":
            continue
        if value is None or value == "":
            names += [f"{column} is missing"] if marks_missing else []
        elif column in CATEGORICAL:
            names.append(f"{column}={value}")
        else:
            names.append(f"{column}={str(value).lower()}" if isinstance(value, bool) else column)
    return names


def expected_names(rows: list[list[str]], budget: int, dim: int) -> tuple[list[str], int | None]:
    """The names of a plain list, and the row of the first that does not fit."""
    named = (RowOfNames([(name, feature_hash(name.encode())) for name in row], []) for row in rows)
    kept = kept_names(named, budget, dim)
    return kept.names, kept.full_row


def kept(source: data.Source, budget: int, threads: int, dim: int) -> tuple[list[str], int | None]:
    """The names that a reading keeps, and the row of the first that does not fit."""
    names = Names(dim, budget)
    for batch, position in source.read(threads=threads):
        names.add(batch, position.rows)
    return names.all(), names.full_row


def forms(table: pa.Table, folder: Path, writing: dict[str, Any]) -> dict[str, Any]:
    """Return the rows as files and as frames."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    texts = [name for name in table.column_names if table[name].type == pa.string() and name != "y"]
    coded = table
    for name in texts:
        place = coded.column_names.index(name)
        coded = coded.set_column(place, name, coded[name].combine_chunks().dictionary_encode())
    frame.write_csv(folder / "t.csv")
    pq.write_table(table, folder / "t.parquet", **writing)
    return {
        "csv": folder / "t.csv",
        "parquet": folder / "t.parquet",
        "pyarrow": table,
        "dictionaries": coded,
        "polars": frame,
        "categories": frame.with_columns(pl.col(texts).cast(pl.Categorical)),
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
    }


WRITING = st.fixed_dictionaries(
    {
        "row_group_size": st.sampled_from([100, 700, 5000]),
        "use_dictionary": st.booleans(),
        "dictionary_pagesize_limit": st.sampled_from([64, 1000, 1 << 20]),  # beyond it pages are plain
        "data_page_size": st.sampled_from([100, 1 << 20]),
        "compression": st.sampled_from(["snappy", "none"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
    }
)


@SLOW
@given(
    tables(),
    WRITING,
    st.sampled_from(["indicator", "ignore"]),
    st.sampled_from([ALL, ALL, 0, 300, 5000]),
    st.integers(0, 2),
    st.sampled_from([2**22, 1000, 2**31, 2**32]),
    st.booleans(),
)
def test_every_form_of_the_rows_keeps_the_names_of_a_plain_list(
    table: pa.Table, writing: dict[str, Any], missing: str, budget: int, threads: int, dim: int, complete: bool
) -> None:
    columns = dict.fromkeys(CATEGORICAL, "categorical") | {"number": "numeric", "whole": "numeric"}
    columns |= {"truth": "boolean", "y": "label"}
    columns = {name: columns[name] for name in table.column_names}
    good = [row for row in table.to_pylist() if row["y"] not in ("x", 1e31)]
    expected = expected_names([names_of_row(row, missing == "indicator") for row in good], budget, dim)
    options = {"columns": columns, "missing": missing, "labelled": True, "on_bad_row": "skip", "dim": dim}
    with tempfile.TemporaryDirectory() as folder:
        for form, rows in forms(table, Path(folder), writing).items():
            source = data.open(rows, names="all" if complete else True, loss="squared", **options)
            assert kept(source, budget, threads, dim) == expected, form


@pytest.mark.parametrize("at", [0, 1023, 1024, 2000])
def test_a_row_that_is_left_out_keeps_no_name_and_the_next_that_has_it_does(at: int) -> None:
    """A bad row may be the first with an entry of a dictionary, anywhere in a block of rows."""
    rows = 3000
    labels = ["x" if i == at else str(i % 2) for i in range(rows)]
    column = [f"v{i // 3 if i % 3 else i % 5}" for i in range(rows)]
    column[at] = column[min(at + 700, rows - 1)] = "late"
    table = pa.table({"y": labels, "a": pa.array(column).dictionary_encode(), "b": column})
    good = [row for row in table.to_pylist() if row["y"] != "x"]
    expected = expected_names([[f"a={row['a']}", f"b={row['b']}"] for row in good], ALL, 2**20)
    source = data.open(table, label="y", on_bad_row="skip", dim=2**20, names=True, loss="squared")
    assert kept(source, ALL, 0, 2**20) == expected
