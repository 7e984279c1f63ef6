"""Polars frames are read as the equal table of pyarrow is."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

import ftprl
from ftprl import data
from ftprl.errors import BadFormat, InvalidInput
from oracles.batches import keys, rows_of

ROWS = 3000
RNG = np.random.default_rng(3)
COLUMNS: dict[str, pl.Series] = {
    "short": pl.Series([f"v{i % 17}" for i in range(ROWS)]),
    "long": pl.Series([f"a text of more than twelve bytes, é {i % 700}" for i in range(ROWS)]),
    "gaps": pl.Series([None if i % 3 else f"g{i % 7}" for i in range(ROWS)]),
    "category": pl.Series([None if i % 5 else f"c{i % 11}" for i in range(ROWS)], dtype=pl.Categorical),
    "enum": pl.Series([f"e{i % 3}" for i in range(ROWS)], dtype=pl.Enum(["e0", "e1", "e2"])),
    "number": pl.Series(RNG.normal(size=ROWS)),
    "narrow": pl.Series(RNG.normal(size=ROWS), dtype=pl.Float32),
    "whole": pl.Series([None if i % 4 else i for i in range(ROWS)], dtype=pl.Int16),
    "large": pl.Series(range(ROWS), dtype=pl.UInt64),
    "truth": pl.Series([None if i % 9 == 0 else i % 2 == 0 for i in range(ROWS)]),
    "day": pl.Series([date(2024, 1, 1 + i % 28) for i in range(ROWS)]),
    "moment": pl.Series([datetime(2024, 1, 1 + i % 28, i % 24) for i in range(ROWS)]),
    "nothing": pl.Series([None] * ROWS, dtype=pl.Null),
    "bytes": pl.Series([f"b{i % 5}".encode() for i in range(ROWS)]),
}


def frame(*names: str, label: Any = None) -> pl.DataFrame:
    labels = pl.Series(np.arange(ROWS) % 2) if label is None else label
    return pl.DataFrame({**{name: COLUMNS[name] for name in names or COLUMNS}, "y": labels})


def read(source: data.Source) -> Any:
    """Return the results of a source: its rows, its names and how it reads other data."""
    batches = list(source.batches())
    names = [batch.names.new.pack(0, len(batch)) for batch in batches if batch.names is not None]
    return [keys(row) for row in rows_of(batches)], names, source.to_dict(), source.describe()


@pytest.mark.parametrize("name", sorted(COLUMNS))
@pytest.mark.parametrize("cut", ["whole", "parts", "slice"])
def test_a_polars_frame_is_read_as_the_table(name: str, cut: str) -> None:
    rows = frame(name, "short")
    if cut == "parts":
        rows = pl.concat([rows[:100], rows[100:1777], rows[1777:]], rechunk=False)
    if cut == "slice":
        rows = rows[5:2100]
    options = {"label": "y", "dim": 2**20, "names": True}
    assert read(data.open(rows, **options)) == read(data.open(rows.to_arrow(), **options))


def test_all_columns_together_and_kinds_that_are_named() -> None:
    options = {"label": "y", "dim": 2**20, "names": True, "ignore": ["moment", "large"], "text": "long"}
    options |= {"bucket": "number", "weight": "whole"}
    rows = frame().with_columns(pl.col("whole").fill_null(1))
    assert read(data.open(rows, **options)) == read(data.open(rows.to_arrow(), **options))


@pytest.mark.parametrize("labels", [["no", "yes"], [0.0, 1.0], [False, True], [-1, 1]])
def test_labels_of_every_type(labels: list[Any]) -> None:
    rows = frame("short", "number", label=pl.Series([labels[i % 2] for i in range(ROWS)]))
    options: dict[str, Any] = {"label": "y", "dim": 2**20}
    if labels[0] == "no":
        options["positive"] = "yes"
    assert read(data.open(rows, **options)) == read(data.open(rows.to_arrow(), **options))


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (pl.Series([[1.0, 2.0]] * ROWS), {}),
        (pl.Series([{"a": 1}] * ROWS), {}),
        (pl.Series(["1.5"] * ROWS).cast(pl.Decimal(10, 2)), {}),
        (COLUMNS["day"], {"categorical": "x"}),
        (COLUMNS["category"], {"text": "x"}),
    ],
)
def test_other_types_are_read_as_the_table_too(column: pl.Series, options: dict[str, Any]) -> None:
    rows = frame("short").with_columns(column.alias("x"))
    options = {"label": "y", "dim": 2**20, **options}
    assert read(data.open(rows, **options)) == read(data.open(rows.to_arrow(), **options))


def test_errors_are_those_of_a_table() -> None:
    rows = frame("short", "number")
    known = {"columns": {"short": "categorical", "number": "numeric", "other": "numeric", "y": "label"}}
    for options, error in (
        ({"label": "z"}, InvalidInput),
        (known, BadFormat),
        ({"label": "y", "sep": ";"}, InvalidInput),
    ):
        messages = []
        for form in (rows, rows.to_arrow()):
            with pytest.raises(error) as raised:
                list(data.open(form, **options).batches())
            messages.append(str(raised.value))
        assert messages[0] == messages[1]


def test_a_model_predicts_without_labels_from_a_frame() -> None:
    rows = frame("short", "number", "category")
    model = ftprl.train(rows, label="y", bits=16).model
    without = rows.drop("y")
    assert np.array_equal(model.predict(without), model.predict(without.to_arrow()))


def test_a_frame_can_be_read_again_and_in_threads() -> None:
    source = data.open(pl.concat([frame(), frame()], rechunk=False), label="y", dim=2**20)
    first = [keys(row) for row in rows_of([batch for batch, _ in source.read(threads=0)])]
    assert [keys(row) for row in rows_of([batch for batch, _ in source.read(threads=2)])] == first
