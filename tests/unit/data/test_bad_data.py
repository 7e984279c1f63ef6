"""Data that cannot be read: errors of one line with file, column and row (or row group), in both spellings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import ftprl
from ftprl.cli.app import run as command
from ftprl.errors import BadFormat, FtprlError, InvalidInput

N = 50


def table(**columns: Any) -> pa.Table:
    return pa.table({"y": [0, 1] * N, **columns})


def broken_text() -> pa.Array:
    """Return two texts, of which the second is not UTF-8."""
    offsets = np.array([0, 1, 3], np.int32).tobytes()
    return pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"a\xff\xfe")])


def write_all(folder: Path) -> None:
    pq.write_table(table(x=[1.0, 2.0] * N), folder / "numbers.parquet", row_group_size=30)
    pq.write_table(table(x=["u", "v"] * N), folder / "words.parquet")
    pq.write_table(table(z=[1.0, 2.0] * N), folder / "others.parquet")
    pq.write_table(table(x=pa.array([1, 2] * N, pa.duration("s"))), folder / "duration.parquet")
    pq.write_table(table(x=[[[1]], [[2]]] * N), folder / "lists.parquet")
    pq.write_table(pa.table({"y": [0, 1], "x": broken_text()}), folder / "bytes.parquet")
    feather.write_feather(
        pa.table({"y": [0, 1], "x": broken_text()}), str(folder / "bytes.feather"), compression="uncompressed"
    )
    whole = (folder / "numbers.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    for name in ("magic.parquet", "magic.feather", "magic.orc"):
        (folder / name).write_bytes(b"HELLO" * 100)
    (folder / "numbers.csv").write_text("y,x\n" + "0,1\n1,2\n" * N)
    (folder / "others.csv").write_text("y,z\n" + "0,1\n1,2\n" * N)
    (folder / "numbers.jsonl").write_text('{"y":0,"x":1}\n{"y":1,"x":2}\n' * N)
    (folder / "words.jsonl").write_text('{"y":0,"x":1}\n{"y":0,"x":"u"}\n')
    (folder / "bytes.jsonl").write_bytes(b'{"y":0,"x":"a"}\n{"y":1,"x":"\xff\xfe"}\n')
    (folder / "deep.jsonl").write_text('{"y":1,"x":' + '{"a":' * 500 + "1" + "}" * 500 + "}\n")
    (folder / "cut.jsonl").write_text('{"y":1,"x":1}\n{"y":1,"x":')


FILES: list[tuple[list[str], str, str | None]] = [
    (
        ["numbers.parquet", "words.parquet"],
        "words.parquet: row group 0: row 0: expected a number, got 'u' in column 'x'",
        None,
    ),
    (["numbers.parquet", "others.parquet"], "others.parquet: expected a column 'x', got the column 'z'", None),
    (["numbers.csv", "others.csv"], "others.csv:1: expected a column 'x', got the column 'z'", None),
    (["numbers.jsonl", "words.jsonl"], "words.jsonl:2: expected a number, got 'u' in column 'x'", None),
    (
        ["duration.parquet"],
        "duration.parquet: column 'x' needs numbers, text, dates",
        "pass it with --ignore, or with --categorical",
    ),
    (["lists.parquet"], "lists.parquet: column 'x' needs numbers, text, dates", "pass it with --ignore."),
    (
        ["bytes.parquet"],
        "bytes.parquet: row group 0: row 1: expected text in UTF-8, got other bytes in column 'x'",
        None,
    ),
    (["bytes.feather"], "bytes.feather: record batch 0: row 1: expected text in UTF-8", None),
    (["bytes.jsonl"], "bytes.jsonl:2: expected text in UTF-8, got '\\xff\\xfe\"}' in column 'x'", None),
    (["cut.parquet"], "cut.parquet: expected a Parquet file, got other bytes", None),
    (["magic.parquet"], "magic.parquet: expected a Parquet file, got other bytes", None),
    (["magic.feather"], "magic.feather: expected an Arrow IPC file, got other bytes", None),
    (["magic.orc"], "magic.orc: expected an ORC file, got other bytes", None),
    (["deep.jsonl"], "deep.jsonl:1: expected objects and arrays at most 64 deep", None),
    (["cut.jsonl"], "cut.jsonl:2: expected a value, got the end of the line in column 'x'", None),
]


@pytest.mark.parametrize(("files", "message", "remedy"), FILES, ids=[case[0][-1] for case in FILES])
def test_files(
    tmp_path: Path,
    files: list[str],
    message: str,
    remedy: str | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("m").write_text("an older model")
    with pytest.raises(FtprlError) as raised:
        ftprl.train(files, output="m", label="y")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert command(["train", *files, "--label", "y", "-q", "-o", "m"]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert remedy is None or remedy in printed
    assert "=" not in printed.split(";")[-1]  # options as they are typed
    assert Path("m").read_text() == "an older model"


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"y": [0, 1] * 5, **columns})


def raising(error: Exception) -> Iterator[Any]:
    yield from (frame(x=[1.0] * 10) for _ in range(3))
    raise error


MEMORY: list[tuple[str, Callable[[], Any], str]] = [
    (
        "pandas",
        lambda: ftprl.train(pd.DataFrame({"x": [1, 2, 3]}), [0, 1]),
        "y= needs one entry per row, got 2 for 3 rows",
    ),
    (
        "polars",
        lambda: ftprl.train(pl.DataFrame({"x": [1, 2, 3]}), [0, 1, 1, 0]),
        "y= needs one entry per row, got 4 for 3 rows",
    ),
    ("dicts", lambda: ftprl.train([{"x": 1}] * 3, [0, 1]), "y= needs one entry per row, got 2 for at least 3 rows"),
    (
        "array",
        lambda: ftprl.train(np.ones((3, 2)), [0, 1]),
        "y= needs one entry for each of the 3 rows, got shape (2,)",
    ),
    (
        "raises",
        lambda: ftprl.train(raising(OSError("gone")), label="y"),
        "element 3: expected more data, got an iterator that raised OSError: gone",
    ),
    (
        "two lines",
        lambda: ftprl.train(raising(ValueError("a\nb")), label="y"),
        "an iterator that raised ValueError: a b",
    ),
    (
        "columns change",
        lambda: ftprl.train(iter([frame(x=[1.0] * 10), frame(z=[1.0] * 10)]), label="y"),
        "element 1: expected a column 'x', got the column 'z'",
    ),
    (
        "kind changes",
        lambda: ftprl.train(iter([frame(x=[1.0] * 10), "what"]), label="y"),
        "element 1: expected a frame or dicts as before, got str",
    ),
    (
        "timedelta",
        lambda: ftprl.train(frame(x=pd.to_timedelta(range(10))), label="y"),
        "column 'x' needs numbers, text, dates, booleans or categories",
    ),
    (
        "object",
        lambda: ftprl.train([{"x": object(), "y": 1}], label="y"),
        "row 0: expected a number, text, a date, True, False, None, a dict or a list, got object in column 'x'",
    ),
]


@pytest.mark.parametrize(("_", "train", "message"), MEMORY, ids=[case[0] for case in MEMORY])
def test_data_in_memory(_: str, train: Callable[[], Any], message: str) -> None:
    with pytest.raises(FtprlError) as raised:
        train()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "kept"), [({"order": "given"}, (10, 20, 30)), ({"waiting": 10}, (10, 20))], ids=str
)
def test_what_was_learned_before_an_iterator_raised_is_not_lost(
    options: dict[str, Any], kept: tuple[int, ...], tmp_path: Path
) -> None:
    """Rows that wait to be learned in random order are learned before the error ends the run."""
    with pytest.raises(FtprlError, match="raised OSError"):
        ftprl.train(raising(OSError("gone")), label="y", checkpoint=tmp_path / "c", every=10, bits=10, **options)
    assert ftprl.load(tmp_path / "c").engine.progress.rows in kept


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view(), pa.list_(pa.string())], ids=str)
def test_offsets_beyond_the_text_are_refused_before_a_cell_is_read(tmp_path: Path, type: pa.DataType) -> None:
    """Each changed byte of the offsets gives an error line or other words, never a crash."""
    cells = pa.array([[word] if pa.types.is_list(type) else word for word in ("one", "a word of many bytes") * N], type)
    frame, path, messages = table(x=cells), tmp_path / "a.arrow", list[str]()
    with pa.ipc.new_file(str(path), frame.schema) as out:
        out.write_table(frame)
    body = path.read_bytes()
    first = cells.buffers()[1]
    at = body.find(bytes(first)[:400])
    for byte in range(at + 3, at + 400, 25):
        path.write_bytes(body[:byte] + b"\x7f" + body[byte + 1 :])
        try:
            list(ftprl.data.open(path, label="y").batches())
        except FtprlError as error:
            messages.append(str(error))
    assert len(messages) > 5
    assert all("a.arrow: record batch 0: expected an Arrow IPC file, got other bytes" in one for one in messages)


def test_names_that_are_no_unicode() -> None:
    half = "a" + chr(0xD800)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({0: [0, 1], 1: [1, 2]})
    frame.columns = pandas.Index(["y", half], dtype=object)
    with pytest.raises(InvalidInput, match=r"data needs column names in Unicode, got 'a\\ud800'; rename the column"):
        ftprl.train(frame, label="y")
    with pytest.raises(BadFormat, match=r"rows 0 to 1: expected names and values in Unicode, got 'a\\ud800'; replace"):
        ftprl.train([{"y": 0, half: 1}, {"y": 1, half: 2}], label="y")


def test_text_of_cells_that_python_cannot_hold(tmp_path: Path) -> None:
    from ftprl.data.values import column_values

    pq.write_table(pa.table({"y": [0, 1], "x": broken_text()}), tmp_path / "a.parquet")
    source = ftprl.data.open(tmp_path / "a.parquet", label="y")
    with pytest.raises(BadFormat, match=r"a.parquet: row group 0: expected values with a text in column 'x', got one"):
        list(column_values(source, tmp_path / "a.parquet", "x"))
