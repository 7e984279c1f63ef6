"""Laws of data in memory: a frame, its dicts and its CSV file give the same rows, bit by bit, however they are made."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl._core import parser
from oracles.batches import keys, rows_of

SLOW = settings(deadline=None, max_examples=80)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
FLOATS = st.one_of(
    st.floats(-1e30, 1e30), st.floats(-(2.0**99), 2.0**99, width=32), st.sampled_from([0.0, -0.0, 1e-320, 1e16])
)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint16": (pa.uint16(), st.integers(0, 2**16 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "double": (pa.float64(), FLOATS),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), WORDS),
    "large": (pa.large_string(), WORDS),
    "view": (pa.string_view(), WORDS),
    "binary": (pa.binary(), WORDS.map(str.encode)),
    "category": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["", "a", "bb", "é è", "a,b\n"])),
    "codes": (pa.dictionary(pa.uint32(), pa.int64()), st.integers(-3, 3)),
    "null": (pa.null(), st.none()),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[pa.Table, dict[str, Any]]:
    """A table with a label and a weight, and the options to read it."""
    rows = draw(st.integers(1, 12))
    types = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6))
    columns: dict[str, pa.Array] = {}
    options: dict[str, Any] = {"label": "y", "weight": "w", "categorical": [], "text": []}
    for i, name in enumerate(types):
        kind, values = KINDS[name]
        column = f"{'spalte é'[: 1 + i]}{i}"
        columns[column] = pa.array(draw(st.lists(st.none() | values, min_size=rows, max_size=rows)), kind)
        as_kind = draw(st.sampled_from(["", "", "categorical", "text" if "in" in name or name == "view" else ""]))
        if as_kind:
            options[as_kind].append(column)
    columns["y"] = pa.array(draw(st.lists(st.sampled_from([0, 1, None]), min_size=rows, max_size=rows)), pa.int8())
    columns["w"] = pa.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), pa.float32())
    return pa.table(columns), options


def text(value: Any) -> str:
    """Return a cell as a CSV file spells it."""
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value.decode() if isinstance(value, bytes) else repr(value) if isinstance(value, float) else str(value)


def write_csv(path: Path, table: pa.Table) -> Path:
    quoted = [[text(value).replace('"', '""') for value in column.to_pylist()] for column in table.columns]
    rows = [table.column_names, *zip(*quoted, strict=True)]
    path.write_bytes("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows).encode())
    return path


def row_keys(source: data.Source) -> list[Any]:
    return [keys(row) for row in rows_of(source.batches())]


@SLOW
@given(tables(), st.booleans())
def test_a_table_is_read_as_its_csv_file(case: tuple[pa.Table, dict[str, Any]], wide: bool) -> None:
    table, options = case
    source = data.open(table, dim=1000, dtype="float64" if wide else "float32", seed=5, **options)
    with tempfile.TemporaryDirectory() as folder:
        path = write_csv(Path(folder) / "a.csv", table)
        from_file = data.open(path, **{**source.to_dict(), "format": "csv"})
        assert row_keys(source) == row_keys(from_file)


@SLOW
@given(tables(), st.integers(1, 12))
def test_how_a_table_is_cut_does_not_matter(case: tuple[pa.Table, dict[str, Any]], size: int) -> None:
    table, options = case
    expected = row_keys(data.open(table, dim=1000, **options))
    parts = [table.slice(at, size) for at in range(0, len(table), size)]
    shifted = pa.concat_tables([table, table]).combine_chunks().slice(len(table))
    for other in (pa.concat_tables(parts), parts, iter(parts), shifted, pa.RecordBatchReader.from_stream(table)):
        source = data.open(other, dim=1000, columns=data.open(table, **options).to_dict()["columns"], labelled=True)
        assert row_keys(source) == expected


@SLOW
@given(tables())
def test_dicts_are_read_as_the_table(case: tuple[pa.Table, dict[str, Any]]) -> None:
    table, options = case
    source = data.open(table, dim=1000, **options)
    columns = source.to_dict()["columns"]
    rows = table.to_pylist()
    expected = row_keys(source)
    assert row_keys(data.open(rows, dim=1000, columns=columns)) == expected
    assert row_keys(data.open(iter(rows), dim=1000, columns=columns)) == expected
    fewer = [{name: value for name, value in row.items() if value is not None} for row in rows]
    fewer[:1] = rows[:1]  # a key that no dict has is refused
    assert row_keys(data.open(fewer, dim=1000, columns=columns)) == expected


@SLOW
@given(tables())
def test_polars_and_pandas_are_read_as_the_table(case: tuple[pa.Table, dict[str, Any]]) -> None:
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    table, options = case
    table = table.select([c for c in table.column_names if not str(table[c].type).startswith("dictionary<values=int")])
    options = {k: [c for c in v if c in table.column_names] if isinstance(v, list) else v for k, v in options.items()}
    columns = data.open(table, **options).to_dict()["columns"]
    expected = row_keys(data.open(table, dim=1000, columns=columns))
    typed = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert row_keys(data.open(typed, dim=1000, columns=columns)) == expected
    assert row_keys(data.open(pl.from_arrow(table), dim=1000, columns=columns)) == expected


@SLOW
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e7, 1e7, width=32))
def test_floats_are_spelled_as_in_python(value: float, narrow: float) -> None:
    for column, written in (
        (pa.array([value]), repr(value)),
        (pa.array([narrow], pa.float32()), spelled(np.float32(narrow))),
    ):
        source = data.open(pa.table({"a": column}), categorical="a", dim=2**32 - 5)
        other = data.open(pa.table({"a": [written]}), dim=2**32 - 5)
        assert row_keys(source) == row_keys(other)
    dicts = data.open([{"a": np.float32(narrow)}], categorical="a", dim=2**32 - 5)
    assert row_keys(dicts) == row_keys(data.open([{"a": spelled(np.float32(narrow))}], dim=2**32 - 5))


def spelled(value: np.float32) -> str:
    """Return the shortest digits that read back as an equal number."""
    if value and abs(float(value)) < 1e-4:  # not as float32, where 0.0001 is 1e-4
        return np.format_float_scientific(value, trim="-", exp_digits=2)
    return np.format_float_positional(value, trim="0")


@SLOW
@given(st.integers(1, 20), st.integers(1, 6), st.randoms(use_true_random=False))
def test_arrays_and_matrices_agree(rows: int, columns: int, random: Any) -> None:
    dense = np.array([[random.choice([0.0, 1.0, 2.5, -1e-3]) for _ in range(columns)] for _ in range(rows)])
    y = np.array([random.choice([1.0, -1.0]) for _ in range(rows)])
    expected = row_keys(data.open(sp.csr_matrix(dense), y=y))
    assert row_keys(data.open(dense, y=y)) == expected
    assert row_keys(data.open(np.asfortranarray(dense), y=y)) == expected
    assert row_keys(data.open(sp.csc_matrix(dense), y=y)) == expected
    cut = random.randint(0, rows)
    assert row_keys(data.open([dense[:cut], dense[cut:]], y=y)) == expected
    assert row_keys(data.open(iter([(dense[:cut], y[:cut]), (sp.csr_array(dense[cut:]), y[cut:])]))) == expected


def test_a_parser_refuses_what_is_not_a_batch() -> None:
    common = {"dim": 8, "seed": 0, "intercept": False, "wide": False, "skip": False, "max_row": 1, "batch_rows": 9}
    made: Any = parser(
        "records", **common, batch_values=9, labels="number", positive=b"", words=[], separator=0, quote=-1
    )
    batch = pa.record_batch({"a": [1, 2]})
    with pytest.raises(ValueError, match="one kind for each of its columns"):
        made.set_batch([], *batch.__arrow_c_array__())
    with pytest.raises(ValueError, match="an Arrow type that is not read"):
        made.set_batch([(4, b"a")], *pa.record_batch({"a": [{"b": 1}, {"b": 2}]}).__arrow_c_array__())
    made.set_batch([(4, b"a")], *batch.__arrow_c_array__())
    with pytest.raises(ValueError, match="rows beyond the end"):
        made.read(0, 3)
    with pytest.raises(ValueError, match="rows beyond the end"):
        made.read_records([{}], 0, 2)
