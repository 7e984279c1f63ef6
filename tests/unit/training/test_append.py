"""`ftprl predict`: every row keeps its position, and `--append` writes the input's columns with the prediction."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import json
import tempfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

from ftprl import data
from ftprl.cli.app import run
from ftprl.linear import Model
from ftprl.training import train

HEADER = ["y", "city", "x", "note"]
GOOD = [["1", "Oslo", "0.50", "hi, there"], ["0", "Rome", "", 'say ""hi""'], ["0", "Oslo", "2e1", "two\nlines"]]
BAD = [["0", "Rome", "zz", "no number"], ["1", "Oslo"], ["1", "a", "1", "b", "c"]]
_LINES_IN_QUOTES = pacsv.ParseOptions(newlines_in_values=True)


def as_csv(rows: list[list[str]], sep: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=sep, lineterminator="\n").writerows(rows)
    return out.getvalue()


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Write a table with good and bad rows, and its model `m`."""
    rows = [HEADER, *GOOD, BAD[0], BAD[1], *GOOD * 5, BAD[2], GOOD[1], BAD[0]]
    (tmp_path / "d.csv").write_text(as_csv(rows))
    train(tmp_path / "d.csv", label="y", numeric="x", bits=10, on_bad_row="skip", output=tmp_path / "m")
    return tmp_path / "d.csv"


def predicted(table: Path, out: str, *more: str) -> Path:
    folder = table.parent
    args = [str(folder / "m"), str(table), "--on-bad-row", "skip", "-o", str(folder / out), *more]
    assert run(["predict", *args]) == 0
    return folder / out


def is_bad(row: list[str]) -> bool:
    return row in BAD


def test_a_skipped_row_has_an_empty_line(table: Path) -> None:
    rows = list(csv.reader(io.StringIO(table.read_text())))[1:]
    lines = predicted(table, "p").read_text().split("\n")[:-1]
    assert [line == "" for line in lines] == [is_bad(row) for row in rows]
    model = Model.load(table.parent / "m")
    source = model.open(table, on_bad_row="skip")
    values = model.predict(source)
    assert [repr(v) if v == v else "" for v in values.tolist()] == lines
    assert gzip.decompress(predicted(table, "p.gz").read_bytes()).decode() == "".join(f"{line}\n" for line in lines)


def test_csv_rows_are_copied_as_they_are(table: Path) -> None:
    lines = predicted(table, "p").read_text().split("\n")[:-1]
    rows = list(csv.reader(io.StringIO(table.read_text())))
    wanted = [rows[0] + ["prediction"], *([*row, line] for row, line in zip(rows[1:], lines, strict=True))]
    text = predicted(table, "out.csv", "--append").read_text()
    assert list(csv.reader(io.StringIO(text))) == wanted
    assert 'Rome,,"say """"hi"""""' in text
    assert gzip.decompress(predicted(table, "out.csv.gz", "--append").read_bytes()).decode() == text
    table.write_text(as_csv([row for row in rows if row != GOOD[2]]))
    tabs = predicted(table, "out.tsv", "--append").read_text().split("\n")[:-1]
    assert [line.split("\t") for line in tabs] == [row for row in wanted if row[:-1] != GOOD[2]]


@pytest.mark.parametrize("source", ["d.csv", "d.jsonl", "d.parquet"])
@pytest.mark.parametrize("value", ["a\tb", "a\nb", "a\rb"])
def test_tabs_and_line_ends_survive_or_are_refused(
    tmp_path: Path, source: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"y": 1, "t": value}, {"y": 0, "t": 'say "b"'}] * 10
    (tmp_path / "d.csv").write_text(as_csv([["y", "t"], *([f"{row['y']}", f"{row['t']}"] for row in rows)]), newline="")
    if value == "a\rb":  # which csv leaves without quotes
        (tmp_path / "d.csv").write_text("y,t\n" + '1,"a\rb"\n0,"say ""b"""\n' * 10, newline="")
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    train(tmp_path / source, label="y", bits=10, output=tmp_path / "m")
    model = Model.load(tmp_path / "m")
    expected = model.predict(tmp_path / source)
    for suffix in ("csv", "jsonl", "parquet"):
        out = predicted(tmp_path / source, f"out.{suffix}", "--append")
        assert (model.predict(out) == expected).all()
    assert run(["predict", str(tmp_path / "m"), str(tmp_path / source), "--append", "-o", str(tmp_path / "o.tsv")]) == 2
    message = "--append needs values without tabs and line ends for .tsv, which has no quotes, got"
    assert message in (error := capsys.readouterr().err)
    assert "in column 't'; write .csv" in error
    assert not (tmp_path / "o.tsv").exists()


def test_parquet_and_json_lines_have_the_same_values(table: Path) -> None:
    lines = predicted(table, "p").read_text().split("\n")[:-1]
    rows = list(csv.reader(io.StringIO(table.read_text())))[1:]
    wanted: list[dict[str, Any]] = []
    for row, line in zip(rows, lines, strict=True):
        if is_bad(row):
            wanted.append(dict.fromkeys([*HEADER, "prediction"]))
        else:
            x = float(row[2]) if row[2] else None
            wanted.append({"y": row[0], "city": row[1], "x": x, "note": row[3], "prediction": float(line)})
    assert pq.read_table(predicted(table, "out.parquet", "--append")).to_pylist() == wanted
    text = predicted(table, "out.jsonl", "--append").read_text()
    assert [json.loads(line) for line in text.splitlines()] == wanted


def test_without_a_header_and_with_other_separators(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(as_csv([row[:3] for row in GOOD], sep=";"))
    options = {"label": "1", "sep": ";", "header": False, "numeric": "3"}
    train(tmp_path / "d.csv", bits=10, output=tmp_path / "m", **options)
    out = predicted(tmp_path / "d.csv", "out.csv", "--append").read_text().splitlines()
    assert [line.rpartition(";")[0] for line in out] == ["1;Oslo;0.50", "0;Rome;", "0;Oslo;2e1"]
    out = predicted(tmp_path / "d.csv", "out.tsv", "--append").read_text().splitlines()
    assert [line.rpartition("\t")[0] for line in out] == ["1\tOslo\t0.50", "0\tRome\t", "0\tOslo\t2e1"]


def test_a_table_without_rows(table: Path) -> None:
    (table.parent / "e.csv").write_text(as_csv([HEADER]))
    assert predicted(table.parent / "e.csv", "o.csv", "--append").read_text() == as_csv([[*HEADER, "prediction"]])
    assert pq.read_table(predicted(table.parent / "e.csv", "o.parquet", "--append")).num_rows == 0


@pytest.mark.parametrize("source", ["e.jsonl", "e.jsonl.gz", "e.vw", "e.libsvm"])
def test_text_without_rows_has_its_columns(tmp_path: Path, source: str) -> None:
    kind = source.split(".")[1]
    train_on = {"jsonl": '{"y": 1, "t": "a", "n": 2}\n{"y": 0, "t": "b", "n": 1}\n' * 10}
    train_on |= {"vw": "1 | a b:2\n-1 | c\n" * 10, "libsvm": "1 3:1\n-1 2:1\n" * 10}
    (tmp_path / f"d.{kind}").write_text(train_on[kind])
    train(tmp_path / f"d.{kind}", label="y" if kind == "jsonl" else None, bits=10, output=tmp_path / "m")
    (tmp_path / source).write_bytes(gzip.compress(b"") if source.endswith(".gz") else b"")
    columns = ["y", "t", "n"] if kind == "jsonl" else ["label", "weight", "tag", "features"]
    columns.append("prediction")
    written = pq.read_table(predicted(tmp_path / source, "o.parquet", "--append"))
    assert (written.num_rows, written.column_names) == (0, columns)
    assert predicted(tmp_path / source, "o.csv", "--append").read_text() == ",".join(columns) + "\n"
    assert predicted(tmp_path / source, "o.tsv", "--append").read_text() == "\t".join(columns) + "\n"
    assert predicted(tmp_path / source, "o.jsonl", "--append").read_text() == ""
    assert predicted(tmp_path / source, "o.txt").read_text() == ""


@pytest.mark.parametrize("text", ["a\0b", "a\x1fb", "a\tb"])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_control_characters_in_json_lines_are_kept(tmp_path: Path, text: str, suffix: str) -> None:
    (tmp_path / "d.jsonl").write_text(f'{{"y": 1, "t": "{text}"}}\n{{"y": 0, "t": "b"}}\n' * 10)  # without escapes
    model = train(tmp_path / "d.jsonl", label="y", bits=10, output=tmp_path / "m").model
    out = predicted(tmp_path / "d.jsonl", f"o.{suffix}", "--append")
    assert model.predict(out).tolist() == model.predict(tmp_path / "d.jsonl").tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_numbers_that_python_does_not_read_are_refused(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.jsonl").write_text('{"y": 1, "n": 2}\n{"y": 0, "n": 1}\n' * 10)
    train(tmp_path / "d.jsonl", label="y", bits=10, output=tmp_path / "m")
    (tmp_path / "d.jsonl").write_text('{"y": 1, "n": 01}\n')
    args = [str(tmp_path / "m"), str(tmp_path / "d.jsonl"), "--append", "-o", str(tmp_path / f"o.{suffix}")]
    assert run(["predict", *args]) == 2
    assert "--append needs JSON that Python reads, got a row with a number such as 01" in capsys.readouterr().err


def test_half_a_character_in_a_row_that_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"y": 1, "t": "a"}\n{"y": 0, "t": "b"}\n' * 10)
    train(tmp_path / "d.jsonl", label="y", bits=10, output=tmp_path / "m")
    (tmp_path / "d.jsonl").write_text('{"y": 1, "t": "\\ud800"}\n{"y": 0, "t": "b"}\n')
    rows = list(csv.DictReader(predicted(tmp_path / "d.jsonl", "o.csv", "--append").read_text().splitlines()))
    assert [(row["t"], row["prediction"] == "") for row in rows] == [("\\ud800", True), ("b", False)]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--append"], "--append needs a file to write to that ends in .csv, .tsv, .parquet or .jsonl, got none"),
        (["--append", "-o", "x.txt"], "got 'x.txt'; pass it with --output"),
        (["--append", "-o", "x.parquet.gz"], "--output needs a Parquet file that ends in .parquet"),
        (["-o", "x.bz2"], "--output needs a name that ends in .gz or .zst or in neither, got 'x.bz2'"),
    ],
)
def test_bad_targets(
    table: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    before = sorted(path.name for path in table.parent.iterdir())
    assert run(["predict", "m", "d.csv", "--on-bad-row", "skip", *more]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1
    assert sorted(path.name for path in table.parent.iterdir()) == before


def test_what_cannot_be_appended_to(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(table.parent)
    Path("p.csv").write_text(as_csv([[*HEADER, "prediction"], [*GOOD[0], "1"]]))
    assert run(["predict", "m", "p.csv", "--append", "-o", "x.csv"]) == 2
    assert "--append needs data without a column 'prediction'" in capsys.readouterr().err
    Path("q.csv").write_text(as_csv([HEADER[::-1], GOOD[0][::-1]]))
    assert run(["predict", "m", "d.csv", "q.csv", "--on-bad-row", "skip", "--append", "-o", "x.csv"]) == 2
    assert "expected the columns of the first file in their order" in capsys.readouterr().err
    assert not Path("x.csv").exists()


FIELDS = st.sampled_from(["a", "b c", 'q"q', "s,s", "n\nn", "", "é"])


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(["0", "1"]), FIELDS, st.sampled_from(["1", "2.5", "bad", ""])), max_size=40),
    st.integers(60, 400),
    st.integers(0, 2),
)
def test_left_out_rows_are_where_they_are(rows: list[tuple[str, str, str]], block: int, threads: int) -> None:
    """Positions of skipped rows equal those of a list of all rows, for any blocks and threads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "d.csv")
        path.write_text(as_csv([["y", "c", "x"], *map(list, rows)]))
        columns = {"y": "label", "c": "categorical", "x": "numeric"}
        source = data.open(path, dim=64, columns=columns, on_bad_row="skip", block_size=block, labelled=True)
        source.keep_records()
        good, left_out, records = 0, Counter[int](), list[bytes]()
        for batch, _ in source.read(threads=threads):
            good += len(batch)
            left_out.update(source.take_left_out())
            records += source.take_records()
        left_out.update(source.take_left_out())
        records += source.take_records()
    wanted, seen = dict[int, int](), 0
    for row in rows:
        if row[2] == "bad":
            wanted[seen] = wanted.get(seen, 0) + 1
        seen += row[2] != "bad"
    assert (good, left_out) == (seen, wanted)
    assert [record.decode() + "\n" for record in records] == [as_csv([list(row)]) for row in rows]


def test_left_out_rows_of_a_frame() -> None:
    rows: list[dict[str, Any]] = [{"y": i % 2, "x": np.inf if i % 5 == 3 else i} for i in range(23)]
    source = data.open(rows, label="y", dim=64, on_bad_row="skip")
    for _ in source.read():
        pass
    assert source.take_left_out() == {3: 1, 7: 1, 11: 1, 15: 1}
    assert source.take_left_out() == {}


# ---- other formats than CSV and TSV ----

ROWS = [
    {"y": 1, "city": "Oslo", "x": 0.5, "tags": ["a", "b"], "deep": {"n": 3}},
    {"y": 0, "city": "Rome", "x": None, "tags": [], "deep": {"n": 4}},
    {"y": 0, "city": 'say, "hi"', "x": -2.0, "tags": ["b"], "deep": {"n": 3}},
] * 30


def appended(folder: Path, name: str, out: str, *more: str) -> Path:
    assert run(["predict", str(folder / "m"), str(folder / name), "--append", "-o", str(folder / out), *more]) == 0
    return folder / out


def test_json_lines_keep_their_text(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in ROWS]
    lines[4] = lines[4].replace('"city"', '  "city"') + "  "
    (tmp_path / "d.jsonl").write_text("\n".join(lines) + "\n{}\n")
    model = train(tmp_path / "d.jsonl", label="y", bits=10, output=tmp_path / "m").model
    actual = appended(tmp_path, "d.jsonl", "o.jsonl").read_text().split("\n")[:-1]
    predictions = model.predict(tmp_path / "d.jsonl")
    assert [json.loads(line) for line in actual] == [
        {**row, "prediction": p} for row, p in zip([*ROWS, {}], predictions.tolist(), strict=True)
    ]
    assert actual[4].startswith(lines[4].rstrip()[:-1])
    table = pq.read_table(appended(tmp_path, "d.jsonl", "o.parquet"))
    assert table.column_names == ["y", "city", "x", "tags", "deep.n", "prediction"]
    assert table["x"].to_pylist()[:3] == [0.5, None, -2.0]
    assert table["tags"].to_pylist()[:2] == [["a", "b"], []]
    assert model.predict(tmp_path / "o.parquet").tolist() == predictions.tolist()
    assert table["prediction"].to_pylist() == predictions.tolist()
    rows = list(csv.reader(io.StringIO(appended(tmp_path, "d.jsonl", "o.csv").read_text())))
    assert rows[0] == table.column_names
    assert rows[3][:3] == ["0", 'say, "hi"', "-2"]
    assert [float(row[-1]) for row in rows[1:]] == predictions.tolist()


def test_a_left_out_line_of_json_keeps_its_place(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"y": 1, "x": 1}\n{"y": 0, "x": \n{"y": 0, "x": 2}\n')
    train(tmp_path / "d.jsonl", label="y", bits=10, on_bad_row="skip", output=tmp_path / "m")
    out = appended(tmp_path, "d.jsonl", "o.jsonl", "--on-bad-row", "skip").read_text().split("\n")[:-1]
    assert [json.loads(line).get("x") for line in out] == [1, None, 2]
    assert json.loads(out[1]) == {"prediction": None}
    rows = list(csv.reader(io.StringIO(appended(tmp_path, "d.jsonl", "o.csv", "--on-bad-row", "skip").read_text())))
    assert [row[1:] == ["", ""] for row in rows] == [False, False, True, False]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "orc"])
def test_files_of_columns_keep_their_types(tmp_path: Path, suffix: str) -> None:
    import pyarrow as pa
    from pyarrow import feather, orc

    columns = {name: [row[name] for row in ROWS] for name in ("y", "city", "x", "tags")}
    types = {"y": pa.int8(), "city": pa.string(), "x": pa.float32(), "tags": pa.list_(pa.string())}
    table = pa.table(columns, pa.schema(list(types.items())))
    for number in (0, 1):
        path = tmp_path / f"{number}.{suffix}"
        if suffix == "parquet":
            pq.write_table(table, path, row_group_size=17)
        elif suffix == "feather":
            feather.write_feather(table, str(path))
        else:
            orc.write_table(table, str(path))
    files = [tmp_path / f"{number}.{suffix}" for number in (0, 1)]
    model = train(files, label="y", bits=10, output=tmp_path / "m").model
    predictions = model.predict(files).tolist()
    actual = pq.read_table(appended(tmp_path, f"[01].{suffix}", "o.all.parquet"))
    assert actual.drop_columns("prediction").cast(table.schema).to_pylist() == table.to_pylist() * 2
    assert actual["prediction"].to_pylist() == predictions
    lines = appended(tmp_path, f"[01].{suffix}", "o.jsonl").read_text().splitlines()
    assert [json.loads(line)["prediction"] for line in lines] == predictions
    assert [json.loads(line)["tags"] for line in lines] == columns["tags"] * 2


def test_objects_of_maps_decimals_and_nan_are_read_back(tmp_path: Path) -> None:
    rows = range(60)
    columns = {
        "y": pa.array([i % 2 for i in rows]),
        "m": pa.array([[(f"k{i % 3}", i % 4 + 0.5)] for i in rows], pa.map_(pa.string(), pa.float64())),
        "price": pa.array([Decimal(i % 7) / 4 for i in rows], pa.decimal128(8, 2)),
        "x": pa.array([float("nan") if i % 5 == 0 else i / 2 for i in rows]),
    }
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    model = train(tmp_path / "d.parquet", label="y", bits=10, output=tmp_path / "m").model
    out = appended(tmp_path, "d.parquet", "o.jsonl")
    first = json.loads(out.read_text().splitlines()[0], parse_constant=pytest.fail)
    assert first["m"] == [{"key": "k0", "value": 0.5}]
    assert (first["price"], first["x"]) == (0.0, None)
    assert model.predict(out).tolist() == model.predict(tmp_path / "d.parquet").tolist()


def test_lists_do_not_fit_into_csv_and_flat_columns_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow as pa

    columns = {name: [row[name] for row in ROWS] for name in ("y", "city", "x", "tags")}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    train(tmp_path / "d.parquet", label="y", bits=10, output=tmp_path / "m")
    out = str(tmp_path / "o.csv")
    assert run(["predict", str(tmp_path / "m"), str(tmp_path / "d.parquet"), "--append", "-o", out]) == 2
    assert "--append needs .parquet or .jsonl for lists and structures, got column 'tags'" in capsys.readouterr().err
    del columns["tags"]
    frame = pa.table(columns).set_column(1, "city", pa.array(columns["city"]).dictionary_encode())
    pq.write_table(frame, tmp_path / "d.parquet")
    model = train(tmp_path / "d.parquet", label="y", bits=10, output=tmp_path / "m").model
    rows = list(csv.reader(io.StringIO(appended(tmp_path, "d.parquet", "o.csv").read_text())))
    assert rows[0] == ["y", "city", "x", "prediction"]
    assert [row[1] for row in rows[1:]] == columns["city"]
    assert [float(row[-1]) for row in rows[1:]] == model.predict(tmp_path / "d.parquet").tolist()


def test_vw_text_has_its_tags(tmp_path: Path) -> None:
    text = "1 2.5 'one|a x y:2 | z\n-1 two| z\n | x\n0 'three |b w\n"
    (tmp_path / "d.vw").write_text(text)
    model = train(tmp_path / "d.vw", bits=10, loss="squared", output=tmp_path / "m").model
    table = pq.read_table(appended(tmp_path, "d.vw", "o.parquet")).to_pydict()
    assert table["label"] == [1.0, -1.0, None, 0.0]
    assert table["weight"] == [2.5, None, None, None]
    assert table["tag"] == ["one", "two", None, "three"]
    assert table["features"] == ["|a x y:2 | z", "| z", "| x", "|b w"]
    assert table["prediction"] == model.predict(tmp_path / "d.vw").tolist()
    rows = list(csv.reader(io.StringIO(appended(tmp_path, "d.vw", "o.csv").read_text())))
    assert rows[1][:4] == ["1", "2.5", "one", "|a x y:2 | z"]
    lines = appended(tmp_path, "d.vw", "o.jsonl").read_text().splitlines()
    assert [json.loads(line)["tag"] for line in lines] == table["tag"]


def test_libsvm(tmp_path: Path) -> None:
    (tmp_path / "d.libsvm").write_text("1 1:2 3:1\n-1 2:1\n")
    train(tmp_path / "d.libsvm", bits=10, output=tmp_path / "m")
    rows = list(csv.reader(io.StringIO(appended(tmp_path, "d.libsvm", "o.csv").read_text())))
    assert [row[:4] for row in rows[1:]] == [["1", "", "", "1:2 3:1"], ["-1", "", "", "2:1"]]


@pytest.mark.parametrize("name", ["p.txt", "p.csv", "p.tsv", "p.jsonl"])
@pytest.mark.parametrize("source", ["d.csv", "d.parquet"])
@pytest.mark.parametrize("packing", [".gz", ".zst"])
def test_compressed_predictions_are_the_plain_ones(tmp_path: Path, name: str, source: str, packing: str) -> None:
    (tmp_path / "d.csv").write_text(as_csv([HEADER, *(GOOD[:2] if name == "p.tsv" else GOOD) * 5]))
    train(tmp_path / "d.csv", label="y", bits=10, output=tmp_path / "m")
    pq.write_table(pacsv.read_csv(tmp_path / "d.csv", parse_options=_LINES_IN_QUOTES), tmp_path / "d.parquet")
    append = [] if name == "p.txt" else ["--append"]
    for out in (name, name + packing):
        assert run(["predict", str(tmp_path / "m"), str(tmp_path / source), *append, "-o", str(tmp_path / out)]) == 0
    compression = {".gz": "gzip", ".zst": "zstd"}[packing]
    with pa.input_stream(str(tmp_path / (name + packing)), compression=compression) as file:
        assert file.read() == (tmp_path / name).read_bytes()


@pytest.mark.parametrize("suffix", ["parquet", "feather", "orc"])
def test_files_of_columns_become_tables_that_are_read_back(tmp_path: Path, suffix: str) -> None:
    """Files of columns are also written as TSV, which has no quotes: pyarrow's writer of CSV quotes every name."""
    import pyarrow as pa
    from pyarrow import feather, orc

    writers = {"parquet": pq.write_table, "feather": feather.write_feather, "orc": orc.write_table}
    columns: dict[str, Any] = {"a b": ["u", 'say "hi"', None] * 20, "x": [0.5, None, -2.0] * 20}
    columns |= {"größe": [1, 2, 3] * 20, "ok": [True, False, None] * 20, "y": [1, 0, 1] * 20}
    columns["day"] = pa.array([datetime.date(2020, 1, 1), datetime.date(1950, 2, 3), None] * 20)
    writers[suffix](pa.table(columns), str(tmp_path / f"d.{suffix}"))
    model = train(tmp_path / f"d.{suffix}", label="y", bits=12, output=tmp_path / "m").model
    wanted = model.predict(tmp_path / f"d.{suffix}").tolist()
    for out in ("o.tsv", "o.tsv.gz", "o.csv", "o.jsonl", "o.parquet"):
        assert model.predict(appended(tmp_path, f"d.{suffix}", out)).tolist() == wanted
    lines = (tmp_path / "o.tsv").read_text().splitlines()
    assert lines[0].split("\t") == [*columns, "prediction"]
    assert lines[2].split("\t")[:5] == ['say "hi"', "", "2", "false", "0"]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_file_of_columns_without_rows_keeps_its_columns(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"x": [0.5, 1.5], "c": ["u", "v"], "l": [["a"], []], "y": [1, 0]})
    train(table, label="y", bits=8, output=tmp_path / "m")
    flat = table.drop_columns("l")
    train(flat, label="y", bits=8, output=tmp_path / "flat")
    for name, some in (("m", table), ("flat", flat)):
        write = {"parquet": pq.write_table, "feather": feather.write_feather}[suffix]
        write(some[:0], str(tmp_path / f"d.{suffix}"))
        for out in ("o.parquet", "o.jsonl", *(("o.csv", "o.tsv") if name == "flat" else ())):
            args = [str(tmp_path / name), str(tmp_path / f"d.{suffix}"), "--append", "-o", str(tmp_path / out)]
            assert run(["predict", *args]) == 0
        names = [*some.column_names, "prediction"]
        assert pq.read_table(tmp_path / "o.parquet").column_names == names
        assert pq.read_table(tmp_path / "o.parquet").num_rows == 0
        assert (tmp_path / "o.jsonl").read_bytes() == b""
    assert (tmp_path / "o.tsv").read_text() == "x\tc\ty\tprediction\n"
    assert next(csv.reader(io.StringIO((tmp_path / "o.csv").read_text()))) == ["x", "c", "y", "prediction"]


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_bytes_that_are_no_text_are_refused_for_tables_of_text(
    tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"b": pa.array([b"x\xff", b"y"] * 10, pa.binary()), "a": [1.0, 0.0] * 10, "y": [1, 0] * 10})
    pq.write_table(rows, tmp_path / "rows.parquet")
    train(rows, label="y", ignore="b", output=tmp_path / "m")
    out = tmp_path / f"out.{suffix}"
    assert run(["predict", str(tmp_path / "m"), str(tmp_path / "rows.parquet"), "--append", "-o", str(out)]) == 2
    assert "--append needs .parquet for bytes that are not UTF-8, got some in column 'b'" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_pairs_of_a_name_and_a_value_are_the_columns_of_the_model(tmp_path: Path, suffix: str) -> None:
    rows = [{"m": {"k": 1.0, "j": 0.5}, "y": 1}, {"m": {"k": 0.0, "j": 1.0}, "y": 0}] * 20
    train(pa.Table.from_pylist(rows), label="y", bits=10, output=tmp_path / "m")
    lines = ['{"m": [{"name": "k", "value": 2}, {"key": "j", "value": 0.5}]}', '{"m": {"k": 2, "j": 0.5}}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n")
    output = predicted(tmp_path / "a.jsonl", f"p.{suffix}", "--append")
    table = pacsv.read_csv(output) if suffix == "csv" else pq.read_table(output)
    assert table["m.k"].to_pylist() == [2, 2]
    assert table["m.j"].to_pylist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        (1.5, [1.5, 2.0], "no list as in the first rows in column 'v' for .parquet, got [1.5, 2.0]"),
        ([1.5], 2.5, "lists as in the first rows in column 'v' for .parquet, got 2.5"),
        (["a"], [{"name": "a", "value": "b"}], "no names and values as in the first rows in column 'v'"),
        ([{"name": "a", "value": 1}], [2], "only names and values as in the first rows in column 'v'"),
    ],
)
def test_lists_that_parquet_cannot_hold_are_refused(
    tmp_path: Path, first: Any, later: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "d.jsonl", tmp_path / "o.parquet"
    rows = [{"y": 1, "v": first}, {"y": 0, "v": first}] * 15_000 + [{"y": 1, "v": later}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    train(path, bits=12, label="y", output=tmp_path / "m")
    args = [str(tmp_path / "m"), str(path), "--append", "-o"]
    assert run(["predict", *args, str(out)]) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.jsonl", "m"]
    assert run(["predict", *args, str(tmp_path / "o.jsonl")]) == 0


def test_an_object_of_a_map_column_is_appended_as_names_and_values(tmp_path: Path) -> None:
    maps = pa.array([[("k", 1.0), ("j", 2.0)], [], None] * 20, pa.map_(pa.string(), pa.float64()))
    pq.write_table(pa.table({"m": maps, "y": [1, 0, 0] * 20}), tmp_path / "t.parquet")
    model = train(tmp_path / "t.parquet", label="y", bits=12, output=tmp_path / "m").model
    (tmp_path / "d.jsonl").write_text('{"m": {"k": 1.0, "j": 2.0}}\n{"m": null}\n')
    args = [str(tmp_path / "m"), str(tmp_path / "d.jsonl"), "--append", "-o", str(tmp_path / "o.parquet")]
    assert run(["predict", *args]) == 0
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["m"].to_pylist() == [[{"name": "k", "value": 1.0}, {"name": "j", "value": 2.0}], None]
    assert table["prediction"].to_pylist() == model.predict(tmp_path / "d.jsonl").tolist()
    assert model.predict(tmp_path / "o.parquet").tolist() == table["prediction"].to_pylist()
