"""The values of a column, read beside the rows of a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import ftprl
from ftprl.data.values import column_values
from ftprl.errors import FtprlError

ROWS = [("a,b", 1, 0.5), ('say "x"', 0, 1.5), ("", 1, 2.5), ("é\nnew line", 0, 3.5)]
FRAME = pd.DataFrame(ROWS, columns=["name", "y", "x"])


def values(data: Any, column: str, **options: Any) -> list[str]:
    source = ftprl.data.open(data, label="y", **options)
    actual = np.concatenate(list(column_values(source, data, column))).tolist()
    assert sum(len(batch) for batch in source.batches()) == len(actual)
    return actual


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_column_of_a_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"t{suffix}"
    FRAME.to_csv(path, index=False)
    assert values(path, "name") == [name for name, *_ in ROWS]
    assert values([path, path], "y") == ["1", "0", "1", "0"] * 2


@pytest.mark.parametrize("form", ["parquet", "arrow", "orc", "jsonl"])
def test_a_column_of_other_files(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"t.{form}"
    if form == "jsonl":
        FRAME.to_json(path, orient="records", lines=True)
    else:
        {"parquet": FRAME.to_parquet, "arrow": FRAME.to_feather, "orc": FRAME.to_orc}[form](path)
    assert values(path, "name") == [name for name, *_ in ROWS]
    assert values(path, "y") == ["1", "0", "1", "0"]


def test_a_file_without_header_and_with_tabs(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text('1\tu"v\n0\tw\n')
    source = ftprl.data.open(tmp_path / "t.tsv", label="1", header=False)
    assert np.concatenate(list(column_values(source, tmp_path / "t.tsv", "2"))).tolist() == ['u"v', "w"]


def test_long_files_come_in_parts(tmp_path: Path) -> None:
    pd.DataFrame({"y": np.arange(40_000) % 2, "g": np.arange(40_000)}).to_csv(tmp_path / "t.csv", index=False)
    source = ftprl.data.open(tmp_path / "t.csv", label="y")
    parts = list(column_values(source, tmp_path / "t.csv", "g"))
    assert len(parts) == 3
    assert np.concatenate(parts).tolist() == [str(i) for i in range(40_000)]


def test_a_column_of_a_frame_or_of_dicts() -> None:
    assert values(FRAME, "name") == [name for name, *_ in ROWS]
    assert values(pl.from_pandas(FRAME), "y") == ["1", "0", "1", "0"]
    records = [{"name": name, "y": y, "x": x} for name, y, x in ROWS]
    del records[1]["name"]
    assert values(records, "name") == ["a,b", "", "", "é\nnew line"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda f: (f / "t.csv", {}),
            r"t\.csv: by= needs one of the columns 'name', 'y', 'x', got 'z'; check the name",
        ),
        (lambda f: (FRAME, {}), r"data: by= needs one of the columns 'name', 'y', 'x', got 'z'"),
        (lambda f: (f / "t.vw", {}), r"by= needs files with named columns, got vw files; pass csv, tsv, parquet"),
        (lambda f: (f / "t.csv", {"on_bad_row": "skip"}), r"by= needs every row, got on_bad_row=skip as well"),
        (lambda f: (iter([FRAME]), {}), r"by= needs data that can be read twice, got standard input or an iterator"),
        (lambda f: (np.ones((2, 2)), {"y": [0, 1]}), r"by= needs data with named columns, got ndarray"),
    ],
)
def test_data_without_the_column_is_refused(make: Any, message: str, tmp_path: Path) -> None:
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "t.vw").write_text("1 | a\n")
    data, options = make(tmp_path)
    label = {} if "y" in options or str(data).endswith(".vw") else {"label": "y"}
    source = ftprl.data.open(data, **label, **options)
    with pytest.raises(FtprlError, match=message):
        list(column_values(source, data, "z"))


def test_a_short_row_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y,g\n1,a\n0\n")
    (tmp_path / "whole.csv").write_text("y,g\n1,a\n0,b\n")
    source = ftprl.data.open(tmp_path / "whole.csv", label="y")
    (tmp_path / "t.csv").rename(tmp_path / "whole.csv")
    with pytest.raises(FtprlError, match=r"whole\.csv: expected 2 columns, got a row of 1; fix it"):
        list(column_values(source, tmp_path / "whole.csv", "g"))
