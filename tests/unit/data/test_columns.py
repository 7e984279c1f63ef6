"""Kinds of columns: dates, booleans, buckets, missing values, identifiers, and the separators of a CSV file."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ftprl
from ftprl import data
from ftprl.cli.app import run as command
from ftprl.data.kinds import edges, option_entry
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear import Model
from ftprl.runlog.events import read_events
from oracles.batches import real, rows_of, same
from oracles.readers_twin import Row, Twin


def opened(folder: Path, content: str, name: str = "a.csv", **options: Any) -> data.Source:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return data.open(path, **{"label": "y", "loss": "squared", **options})


def names(row: Row, *wanted: str) -> dict[str, float]:
    """Return the features of a row by name; all names must be among the expected ones."""
    by_slot = {Twin(intercept=False).slot(name.encode()): name for name in wanted}
    return {by_slot[slot]: value for slot, value in row.features.items()}


def kinds(source: data.Source) -> dict[str, str]:
    return dict(source.describe().columns or {})


# ---- dates ----


def test_a_time_has_a_trend_and_the_place_in_the_day_and_the_week(tmp_path: Path) -> None:
    source = opened(tmp_path, "y,t\n1,2024-05-30T00:00\n2,2024-05-31T18:00:00.25+02:00\n3,2024-06-01 06:30Z\n")
    assert kinds(source)["t"] == "timestamp"
    first, second, third = rows_of(source.batches())
    wanted = ["t weekday sin", "t weekday cos", "t weekday=Thu", "t hour cos", "t hour=0", "t hour of week=Thu 0"]
    angle = 2 * np.pi * 3 / 7
    assert list(names(first, *wanted)) == wanted  # the trend is 0, as is the sine of the hour
    assert list(names(first, *wanted).values()) == pytest.approx([np.sin(angle), np.cos(angle), 1, 1, 1, 1])
    wanted = ["t trend", "t weekday sin", "t weekday cos", "t weekday=Fri", "t hour sin", "t hour cos", "t hour=16"]
    actual = names(second, *wanted, "t hour of week=Fri 16")
    assert actual["t trend"] == pytest.approx(40 / 24 / 365.25)
    assert actual["t hour sin"] == pytest.approx(np.sin(2 * np.pi * 16 / 24))
    assert list(actual) == [*wanted, "t hour of week=Fri 16"]
    wanted = [name.replace("Fri", "Sat").replace("16", "6") for name in wanted]
    assert names(third, *wanted, "t hour of week=Sat 6")["t hour cos"] == pytest.approx(np.cos(np.pi * 13 / 24))


def test_a_date_without_times_has_no_hour(tmp_path: Path) -> None:
    source = opened(tmp_path, "y,t\n1,2024-05-31\n2,2024-05-30T00:00:00\n")
    assert kinds(source)["t"] == "date"
    assert source.to_dict()["sampled"] == {"t": [1717027200]}  # the earliest date
    assert [len(row.features) for row in rows_of(source.batches())] == [4, 3]  # a trend of 0 is left out


@pytest.mark.parametrize(
    "text",
    ["2024-13-01", "2023-02-29", "2024-05-31T24:00", "2024-05-31T12:60", "2024-05-31T12:00+24:00", "0000-01-01",
     "0001-01-01T00:00+01:00", "9999-12-31T23:59-01:00"],
)  # fmt: skip
def test_days_and_times_that_do_not_exist(tmp_path: Path, text: str) -> None:
    rows = "y,t\n1,2024-05-31T12:00\n" + f"2,{text}\n"
    with pytest.raises(BadFormat, match=r"a\.csv:3: expected a day and a time of the years 1 to 9999, got '.*' in col"):
        list(opened(tmp_path, rows, date="t").batches())
    skipping = opened(tmp_path, rows, date="t", on_bad_row="skip")
    assert len(rows_of(skipping.batches())) == 1
    assert skipping.bad_rows == 1


@pytest.mark.parametrize("text", ["31.5.2024", "2024-5-31", "2024-05-31T", "2024-05-31T12:00 UTC", "1717027200", "x"])
def test_what_is_no_date(tmp_path: Path, text: str) -> None:
    expected = r"expected a date such as 2024-05-31 or 2024-05-31T17:04:00Z, got '"
    with pytest.raises(BadFormat, match=rf"a\.csv:3: {expected}"):
        list(opened(tmp_path, f"y,t\n1,2024-05-31\n2,{text}\n", date="t").batches())
    with pytest.raises(BadFormat, match=rf"<memory>: row 1: {expected}"):
        list(data.open(pa.table({"t": ["2024-05-31", text]}), date="t").batches())
    with pytest.raises(BadFormat, match=rf"<memory>: row 1: {expected}"):
        list(data.open([{"t": "2024-05-31"}, {"t": text}], date="t").batches())


def test_arrow_times_of_every_unit_are_the_same(tmp_path: Path) -> None:
    moments = [datetime.datetime(1969, 12, 31, 23, 59, 59), None, datetime.datetime(2024, 5, 31, 17, 4, 9)]
    expected = rows_of(data.open(pa.table({"t": pa.array(moments, pa.timestamp("us"))})).batches())
    text = [None if moment is None else moment.isoformat() for moment in moments]
    zoned = [None if moment is None else moment.replace(tzinfo=datetime.UTC) for moment in moments]
    for other in (
        *(pa.table({"t": pa.array(moments, pa.timestamp(unit))}) for unit in ("s", "ms", "ns")),
        pa.table({"t": pa.array(zoned, pa.timestamp("us", "America/New_York"))}),
        pa.table({"t": text}),
        [{"t": moment} for moment in moments],
        [{"t": moment} for moment in zoned],
        [{"t": np.datetime64("NaT" if moment is None else moment)} for moment in moments],
    ):
        same(rows_of(data.open(other).batches()), expected)
    days = [datetime.date(2024, 5, 31), None]
    expected = rows_of(data.open(pa.table({"t": pa.array(days, pa.date32())})).batches())
    same(rows_of(data.open(pa.table({"t": pa.array(days, pa.date64())})).batches()), expected)
    same(rows_of(data.open([{"t": day} for day in days]).batches()), expected)


def test_a_time_beyond_all_years_is_a_bad_row() -> None:
    frame = pa.table({"t": pa.array([0, 2**60], pa.timestamp("s"))})
    with pytest.raises(BadFormat, match=r"row 1: expected a date of the years 1 to 9999, got one beyond it in column"):
        list(data.open(frame).batches())


# ---- booleans ----


def test_true_and_false_in_any_spelling(tmp_path: Path) -> None:
    source = opened(tmp_path, "y,b\n1,True\n2,FALSE\n3,1\n4,\n5,0\n")
    assert kinds(source)["b"] == "boolean"
    actual = [list(names(row, "b=true", "b=false", "b is missing")) for row in rows_of(source.batches())]
    assert actual == [["b=true"], ["b=false"], ["b=true"], ["b is missing"], ["b=false"]]
    expected = rows_of(source.batches())
    for rows in ([True, False, True, None, False], ["true", "false", "TRUE", "", "0"], ["True", "f", "yes", None, "n"]):
        assert [
            row.features for row in rows_of(data.open([{"b": value} for value in rows], boolean="b").batches())
        ] == [row.features for row in expected]
    named = opened(tmp_path, "y,b\n1,1\n2,0\n", boolean="b")
    assert [row.features for row in rows_of(named.batches())] == [expected[0].features, expected[1].features]
    with pytest.raises(
        BadFormat, match=r"a\.csv:3: expected true or false, got '2' in column 'b'; fix the row, pass c"
    ):
        list(opened(tmp_path, "y,b\n1,1\n2,2\n", boolean="b").batches())
    assert kinds(opened(tmp_path, "y,b\n1,1\n2,0\n"))["b"] == "numeric"
    assert kinds(opened(tmp_path, "y,b\n1,yes\n2,no\n"))["b"] == "categorical"


# ---- missing values ----


def test_missing_values_of_every_kind(tmp_path: Path) -> None:
    text = "y,c,n,x,b,d,k\n1,red,1,some words,true,2024-01-01,5\n2,,NA,,null,NaN,n/a\n3,NA,2,none,false,2024-01-02,7\n"
    source = opened(tmp_path, text, text="x", bucket="k")
    gone = [f"{column} is missing" for column in "cnxbdk"]
    _, second, third = rows_of(source.batches())
    assert names(second, *gone) == dict.fromkeys(gone, 1.0)
    assert not {Twin(intercept=False).slot(name.encode()) for name in gone} & set(third.features)  # NA is a category
    without = opened(tmp_path, text, text="x", bucket="k", missing="ignore")
    assert [row.features for row in rows_of(without.batches())][1] == {}
    assert [p.missing for p in source.describe().profile] == [0, 1, 1, 1, 1, 1, 1]


def test_the_model_keeps_what_missing_values_become(tmp_path: Path) -> None:
    rows = [{"a": 1.0 if i % 3 else None, "y": i % 2} for i in range(60)]
    for missing in ("indicator", "ignore"):
        ftprl.train(rows, label="y", missing=missing, bits=8, output=tmp_path / missing)
        model = ftprl.load(tmp_path / missing)
        assert model.reading["missing"] == missing
        (actual,) = rows_of(model.open([{}]).batches())
        assert len(actual.features) == (missing == "indicator")
        with pytest.raises(InvalidInput, match="missing= needs to be what the model was trained with"):
            ftprl.train(rows, resume=tmp_path / missing, missing="ignore" if missing == "indicator" else "indicator")
        assert ftprl.train(rows, resume=tmp_path / missing, missing=missing).rows == 60


def test_a_model_of_an_earlier_version_marks_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    reading = {"format": "csv", "columns": {"a": "numeric"}}
    assert data.settings_for(reading, pa.table({"a": [1]}))["missing"] == "ignore"
    assert data.settings_for(reading, tmp_path / "a.csv")["missing"] == "ignore"


def test_dicts_that_lack_most_keys_have_no_indicators() -> None:
    rows = [{f"w{i % 10}": 1, "y": i % 2} for i in range(100)]
    assert data.open(rows, label="y").describe().missing == "ignore"
    assert data.open(rows, label="y", missing="indicator").describe().missing == "indicator"


# ---- buckets ----


def test_buckets_are_quantiles_of_the_sample(tmp_path: Path) -> None:
    text = "y,a\n" + "".join(f"1,{value}\n" for value in range(1, 101))
    source = opened(tmp_path, text, bucket="a=4")
    assert source.to_dict()["sampled"] == {"a": [4, 26.0, 51.0, 76.0]}
    actual = [next(iter(names(row, "a<26", "a 26..51", "a 51..76", "a>=76"))) for row in rows_of(source.batches())]
    assert actual == ["a<26"] * 25 + ["a 26..51"] * 25 + ["a 51..76"] * 25 + ["a>=76"] * 25
    assert data.open(pa.table({"a": pa.array(range(1, 101), pa.float32())}), bucket="a=4").to_dict()["sampled"] == {
        "a": [4, 26.0, 51.0, 76.0]
    }


def test_edges_and_entries() -> None:
    assert edges([], 4) == []
    assert edges([3.0, 3.0], 4) == []
    assert edges([0.0] * 99 + [1.0], 4) == [1.0]
    assert option_entry("bucket", "a=b=3") == ("a=b", 3)
    assert option_entry("bucket", "a=b") == ("a=b", 32)
    for wrong in ("a=1", "a=0", "a=1001"):
        with pytest.raises(InvalidInput, match="bucket= needs 2 to 1000 buckets"):
            option_entry("bucket", wrong)


def test_a_resumed_run_keeps_its_buckets(tmp_path: Path) -> None:
    frame = pa.table({"a": np.arange(200.0), "y": np.arange(200) % 2})
    ftprl.train(frame, label="y", bucket="a=8", output=tmp_path / "m")
    other = pa.table({"a": np.arange(1000.0, 1200.0), "y": np.arange(200) % 2})
    run = ftprl.train(other, resume=tmp_path / "m", bucket="a=8")
    assert run.model.reading["sampled"] == ftprl.load(tmp_path / "m").reading["sampled"]
    with pytest.raises(InvalidInput, match="bucket= needs to be what the model was trained with"):
        ftprl.train(other, resume=tmp_path / "m", bucket="a=4")


def test_a_column_without_numbers_has_no_buckets(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"bucket= needs a column of numbers, got 'a' without one in the first rows"):
        opened(tmp_path, "y,a\n1,x\n2,\n", bucket="a")


def test_what_was_sampled_is_needed(tmp_path: Path) -> None:
    for kind, sampled in (("bucket", {}), ("bucket", {"a": [3, 2.0, 1.0]}), ("date", {}), ("date", {"a": [0, 1]})):
        with pytest.raises(InvalidInput, match=f"sampled= needs the numbers of the {kind} column 'a'"):
            opened(tmp_path, "y,a\n1,1\n", label=None, columns={"a": kind}, sampled=sampled)
    with pytest.raises(InvalidInput, match="order= needs the names of columns="):
        opened(tmp_path, "y,a\n1,1\n", label=None, columns={"a": "numeric"}, order=["b"])


# ---- printed tables ----


def test_the_kinds_are_a_table_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, events = tmp_path / "a.csv", tmp_path / "e"
    lines = [
        f"{i % 2},id{i},{i},{i / 7},{'' if i % 5 else 'x'},2024-01-01T{i % 24:02}:00,a text {i}" for i in range(150)
    ]
    path.write_text("\n".join(["y,id,n,f,c,t,x", *lines]) + "\n")
    typed = ["train", str(path), "--label", "y", "--bucket", "f=4", "-o", str(tmp_path / "m"), "--events", str(events)]
    assert command([*typed, "--bits", "10"]) == 0
    result = capsys.readouterr().err.splitlines()
    advice = "looks like an identifier: all 150 values in the sample differ; pass --ignore"
    assert f"ftprl: column 'id' {advice} id to leave it out" in result
    assert f"ftprl: column 'n' {advice} n to leave it out" in result
    assert f"ftprl: column 'x' {advice} x to leave it out, or pass --text x if it is text" in result
    assert sum(line.startswith("ftprl: column") for line in result) == 3
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in result if line.split()[:1]}
    assert shown["column"] == "kind example distinct missing features"
    assert shown["f"] == "bucket 0 .. 21.2857 150 0 4 buckets"
    assert shown["c"] == "categorical x 1 120 c=VALUE"
    assert shown["t"] == "timestamp 2024-01-01T00:00 .. 2024-01-01T23:00 24 0 trend, weekday, hour"
    profile = {column["name"]: column for column in read_events(events)[0]["data"]["profile"]}
    assert profile["id"]["advice"].endswith("pass ignore=id to leave it out")
    assert profile["c"]["advice"] is None
    assert command(["inspect", str(tmp_path / "m")]) == 0
    seen = capsys.readouterr().out
    assert "timestamp      t" in seen
    assert "buckets of     f: 4, from 5.28571, 10.7143, 16 on" in seen
    assert "trend of       t: years since 2024-01-01T00:00" in seen
    assert "missing        indicator" in seen
    assert command([*typed, "-q"]) == 0
    assert "ftprl: column 'id' looks like an identifier" in capsys.readouterr().err
    assert command(["report", str(events), "-o", str(tmp_path / "r.html")]) == 0
    assert "column id" in (tmp_path / "r.html").read_text()
    run = ftprl.train(path, label="y", bits=10)
    assert [column["name"] for column in run.columns if column["advice"]] == ["id", "n", "x"]
    json.dumps(run.columns)


def test_text_that_was_read_as_categories_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Text read as categories is pointed out, also if some texts repeat; not for a few categories of several words."""
    path = tmp_path / "a.csv"
    lines = [
        f"{i % 2},{'call me later' if i % 7 == 0 else f'win prize {i}'},{'New York' if i % 3 else 'San Jose'}"
        for i in range(300)
    ]
    path.write_text("\n".join(["y,message,city", *lines]) + "\n")
    assert command(["train", str(path), "--label", "y", "--bits", "10", "-q", "-o", str(tmp_path / "m")]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("ftprl: column 'message' looks like text: 258 different values in the sample")
    assert line.endswith("pass --text message to split it into words")
    assert command(["train", str(path), "--label", "y", "--text", "message", "-q", "-o", str(tmp_path / "m")]) == 0
    assert capsys.readouterr().err == ""


def test_continuous_numbers_and_few_rows_are_no_identifier(tmp_path: Path) -> None:
    few = opened(tmp_path, "y,id\n" + "".join(f"1,{i}\n" for i in range(99)))
    assert not any(column.advice for column in few.describe().profile)
    same = opened(tmp_path, "y,id\n" + "".join(f"1,{i // 2}\n" for i in range(500)))
    assert not any(column.advice for column in same.describe().profile)


# ---- later values that do not fit the kind ----


def test_the_message_has_the_column_and_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    path.write_text("y,a\n" + "1,2\n0,3\n" * 5000 + "1,many\n")
    assert command(["train", str(path), "--label", "y", "-q", "-o", str(tmp_path / "m")]) == 2
    assert capsys.readouterr().err == (
        f"ftprl: {path}:10002: expected a number, got 'many' in column 'a'; fix the row, pass --categorical with the"
        " column, or pass --on-bad-row skip\n"
    )
    assert command(["train", str(path), "--label", "y", "-q", "-o", str(tmp_path / "m"), "--on-bad-row", "skip"]) == 0
    assert "left out 1 bad row" in capsys.readouterr().err
    assert command(["predict", str(tmp_path / "m"), str(path)]) == 2  # a model's kinds cannot be changed
    assert "fix the row, or pass --on-bad-row skip" in capsys.readouterr().err


# ---- separators ----


@pytest.mark.parametrize("sep", [";", "\t", "|"])
def test_the_separator_is_recognised(tmp_path: Path, sep: str) -> None:
    text = '"y";"a";b\n1;"x;y";"1,5"\n\n0;z;"2"\n'.replace(";", sep)
    source = opened(tmp_path, text, categorical="b")
    assert source.to_dict()["sep"] == sep
    assert kinds(source) == {"y": "label", "a": "categorical", "b": "categorical"}
    assert len(rows_of(source.batches())) == 2
    twice = opened(tmp_path, text.replace("\n", "\r\n"), categorical="b")
    assert rows_of(twice.batches()) == rows_of(source.batches())


@pytest.mark.parametrize(
    "text",
    ["y,a;b\n1,2\n", "y,a\n1;2\n", '"y;a",b\n1,2\n', "y|a;b\n1|2;3\n", "y;a\n1;2\n3\n", "y\n1\n", '"y;z"\n1\n'],
)
def test_what_may_be_commas_stays_so(tmp_path: Path, text: str) -> None:
    assert opened(tmp_path, text, label=None).to_dict()["sep"] == ","


@pytest.mark.parametrize("trained", [",", ";", "|"])
def test_a_model_reads_files_with_another_separator(tmp_path: Path, trained: str) -> None:
    rows = [["y", "a", "b, c"], *([str(i % 2), "uvw"[i % 3], str(i % 5)] for i in range(60))]

    def written(sep: str) -> Path:
        path = tmp_path / "other.csv"
        quoted = [[f'"{field}"' if sep in field else field for field in row] for row in rows]
        path.write_text("".join(sep.join(row) + "\n" for row in quoted))
        return path

    model = ftprl.train(written(trained), label="y", sep=trained, bits=10).model
    wanted = model.predict(written(trained)).tolist()
    for sep in (",", ";", "\t", "|"):
        assert model.predict(written(sep)).tolist() == wanted
        assert len(rows_of(model.open_labelled(written(sep)).batches())) == 60
    assert ftprl.load(_saved(model, tmp_path)).predict(written("\t")).tolist() == wanted
    with pytest.raises(
        BadFormat, match="csv:1: expected 2 more columns, 'a', 'b, c', got the columns 'y:a:b', 'c'; add"
    ):
        model.predict(written(":"))
    with pytest.raises(BadFormat, match="expected 2 more columns, 'a', 'b, c', got the column"):
        model.predict(model.open(written("|"), sep=":"))
    assert model.predict(model.open(written(":"), sep=":")).tolist() == wanted


def _saved(model: Model, folder: Path) -> Path:
    model.save(folder / "m")
    return folder / "m"


def files_with_other_separators(folder: Path) -> tuple[list[Path], list[Path]]:
    """Write rows separated by commas and by another separator, each file with its own order of columns and quotes."""
    rows = [(i, f"a,b{i % 3};", i % 2) for i in range(4_000)]
    same, other = [], []
    for number, (sep, order) in enumerate(((",", (0, 1, 2)), (";", (2, 0, 1)), ("\t", (0, 1, 2)), ("|", (1, 0, 2)))):
        for files, own, name in ((same, ",", "same"), (other, sep, "other")):
            columns = ("n", "t", "y")
            lines = [own.join(columns[i] for i in order)]
            quoted = [(f"{n}", f'"{t}"', f"{y}") for n, t, y in rows[1000 * number : 1000 * number + 1000]]
            lines += [own.join(row[i] for i in order) for row in quoted]
            files.append(folder / f"{name}{number}.csv")
            files[-1].write_text("\n".join(lines) + "\n")
    return same, other


@pytest.mark.parametrize("threads", [0, 2])
def test_each_file_may_have_another_separator(tmp_path: Path, threads: int) -> None:
    same, other = files_with_other_separators(tmp_path)
    options: dict[str, Any] = {"label": "y", "block_size": 5_000}
    source, mixed = data.open(same, **options), data.open(other, **options)
    expected = rows_of(batch for batch, _ in source.read(threads=threads))
    assert rows_of(batch for batch, _ in mixed.read(threads=threads)) == expected
    parts = list(mixed.read(threads=threads))
    for batch, position in parts[:: len(parts) // 5]:
        rest, _ = next(mixed.read(position, threads=threads))
        assert (rest.indices == batch.indices).all()
        assert mixed.locate(position).startswith(f"{other[position.rows // 1000]}:{position.rows % 1000 + 2}")
    with pytest.raises(
        BadFormat, match=r"other1\.csv:1: expected 3 more columns, 'n', 't', 'y', got the column 'y;n;t'; add them, or"
    ):
        rows_of(data.open(other, label="y", sep=",").batches())


def test_a_model_predicts_files_with_several_separators(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same, other = files_with_other_separators(tmp_path)
    path, receipt = str(tmp_path / "m"), str(tmp_path / "r")
    model = ftprl.train(other, label="y", bits=14, receipt=True, output=path).model
    assert (model.predict(other) == model.predict(same)).all()
    assert (model.predict(other) == ftprl.train(same, label="y", bits=14).model.predict(other)).all()
    assert command(["certify", path, "-o", receipt]) == 0
    assert command(["verify", receipt, *map(str, other), "--model", path]) == 0
    capsys.readouterr()
    for files in (same, other):
        assert command(["evaluate", path, *map(str, files), "--by", "t", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["slices"] == second["slices"]
    for files, message in (
        (other, "other1.csv:1: expected the columns of the first file in their order, got others; predict"),
        ([other[0], other[2]], "other2.csv:1: expected the separator of the first file, got '\\t'; predict the files"),
    ):
        assert command(["predict", path, *map(str, files), "--append", "-o", str(tmp_path / "p.csv")]) == 2
        assert message in capsys.readouterr().err


def test_an_odd_separator_of_training_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y:a\n" + "1:x\n0:z\n" * 21)
    model = ftprl.train(tmp_path / "a.csv", label="y", sep=":", bits=10).model
    assert len(model.predict(tmp_path / "a.csv")) == 42
    (tmp_path / "b.csv").write_text("1;x\n0;z\n" * 20)
    model = ftprl.train(tmp_path / "b.csv", label="1", header=False, sep=";", bits=10).model
    assert len(model.predict(tmp_path / "b.csv")) == 40  # without a header that of training is expected


def test_the_error_names_the_separator(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"got 'y'; there is one column only: pass sep=';'"):
        opened(tmp_path, "y;a\n1;2\n3\n")


def test_the_error_of_a_label_knows_about_headers(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="got 'y'; pass header=False and a number if the first row is data, or"):
        opened(tmp_path, "1,red\n0,blue\n", label="y")
    with pytest.raises(InvalidInput, match="got 'y'; drop header=False if the first row has the names, or pass a n"):
        opened(tmp_path, "y,colour\n0,blue\n", label="y", header=False)


def test_a_decimal_comma_is_refused(tmp_path: Path) -> None:
    text = "y;price\n1;3,14\n2;7\n"
    with pytest.raises(
        BadFormat, match=r"a\.csv: column 'price': expected numbers with a decimal point, got a comma in"
    ):
        opened(tmp_path, text)
    assert kinds(opened(tmp_path, text, categorical="price"))["price"] == "categorical"


def test_numbers_with_commas_are_pointed_out(tmp_path: Path) -> None:
    source = opened(tmp_path, 'y,a,b,c\n1,"1,000",2,"x,1"\n0,"2,500",3,"1,5"\n1,12,,z\n')
    assert kinds(source)["a"] == "categorical"
    advice = {column.name: column.advice for column in source.describe().profile}
    wanted = (
        "column 'a' looks like numbers with commas, such as '1,000', which are read as categories; remove the commas,"
    )
    assert advice["a"].startswith(wanted)
    assert (advice["b"], advice["c"]) == (None, None)


@pytest.mark.parametrize(
    ("cells", "hint"),
    [
        (["$5", "$1,200.50", "3"], "looks like numbers with signs, such as '$5', which are read as categories; remove"),
        (["5 %", "-2.5%", ""], "looks like numbers with signs, such as '5 %', which are read as categories; remove"),
        (["€7", "8 €", "NA"], "looks like numbers with signs, such as '€7', which are read as categories; remove"),
        (["31/12/2024", "1/2/24"], "looks like dates, such as '31/12/2024', which are read as categories; write year-"),
        (["31.12.2024", "01.02.2025"], "looks like dates, such as '31.12.2024', which are read as categories; write"),
        (["31/12/2024", "2024-12-31"], "looks like dates, such as '31/12/2024', which are read as categories; write"),
        (["1", "1.0", "x"], "has whole numbers in two spellings, such as 1 and 1.0, which are two categories; write"),
        (["1", "2.5", "x"], None),
        (["1.0", "2.0", "x"], None),
        (["$", "%"], None),
        (["5 USD", "7 USD"], None),
        (["1/2", "3/4"], None),
        (["1.2.3", "4.5.6"], None),
        (["192.168.1.1", "10.0.0.1"], None),
        (["31/12.2024", "1.2/2024"], None),
        (["100/12/2024", "1/2/2024"], None),
    ],
)
def test_what_categories_look_like_is_pointed_out(cells: list[str], hint: str | None, tmp_path: Path) -> None:
    rows = [(cell, i % 2) for i, cell in enumerate(cells * 3)]
    table = pa.table({"a": [cell for cell, _ in rows], "y": [y for _, y in rows]})
    file = opened(tmp_path, "y,a\n" + "".join(f'{y},"{cell}"\n' for cell, y in rows))
    for source in (file, data.open(table, label="y"), data.open(table.to_pylist(), label="y")):
        assert kinds(source)["a"] == "categorical"
        (profile,) = (column for column in source.describe().profile if column.name == "a")
        assert (profile.advice or "").startswith("" if hint is None else f"column 'a' {hint}")
        assert (profile.advice is None) == (hint is None)


def test_a_question_mark_among_numbers_is_a_missing_value(tmp_path: Path) -> None:
    marked, empty = (opened(tmp_path, f"y,a\n1,2\n0,{cell}\n1,7\n") for cell in ("?", ""))
    assert kinds(marked) == kinds(empty) == {"y": "label", "a": "numeric"}
    marked, empty = (rows_of(opened(tmp_path, f"y,a\n1,2\n0,{cell}\n1,7\n").batches()) for cell in ("?", ""))
    assert [row.features for row in marked] == [row.features for row in empty]
    assert kinds(opened(tmp_path, "y,a\n1,x\n0,?\n1,7\n"))["a"] == "categorical"


def test_the_bank_file_is_recognised() -> None:
    source = data.open(real("bank.csv.gz"), label="y")
    assert source.to_dict() == data.open(real("bank.csv.gz"), label="y", sep=";").to_dict()
