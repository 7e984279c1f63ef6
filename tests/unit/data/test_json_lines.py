"""JSON lines: kinds of columns, nested objects and arrays, and errors in lines."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ftprl
from ftprl import data
from ftprl._core import feature_hash
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear.names import Names
from oracles.batches import keys, rows_of

DIM = 1 << 20


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def features(path: Path, **options: Any) -> list[dict[int, float]]:
    options = {"missing": "ignore", **options}
    return [row.features for row in rows_of(data.open(path, dim=DIM, **options).batches())]


def slots(**named: float) -> dict[int, float]:
    return {feature_hash(name.replace("__", ".").replace("_EQ_", "=")) % DIM: value for name, value in named.items()}


def test_objects_are_flattened_and_arrays_have_several_values(tmp_path: Path) -> None:
    row = {"y": 1, "user": {"age": 3, "city": "Rome"}, "tags": ["a", "b", "a"], "vector": [0.5, 0, None, 2]}
    named = {"words": [{"name": "big", "value": 2}, {"key": "red", "value": 1}, {"name": "x", "value": None}]}
    path = write(tmp_path / "a.jsonl", {**row, **named}, {"y": 0})
    expected = {
        **slots(user__age=3, user__city_EQ_Rome=1, tags_EQ_a=2, tags_EQ_b=1, vector__0=0.5, vector__3=2),
        **slots(words__big=2, words__red=1),
    }
    assert features(path, label="y") == [expected, {}]
    kinds = data.open(path, label="y").describe().columns
    assert kinds == {
        "y": "label",
        "user.age": "numeric",
        "user.city": "categorical",
        "tags": "categorical",
        "vector": "numeric",
        "words": "numeric",
    }
    assert features(path, label="y", ignore=["user", "words"], categorical="vector", text="tags") == [
        {**slots(tags_EQ_a=2, tags_EQ_b=1, vector_EQ_0=1, vector_EQ_2=1), **{feature_hash("vector=0.5") % DIM: 1.0}},
        {},
    ]
    assert features(path, label="y", categorical="user", ignore=["tags", "words", "vector"])[0] == slots(
        user__age_EQ_3=1, user__city_EQ_Rome=1
    )


def test_numbers_as_categories_are_spelled_as_python_does(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"y": 1, "a": 1.50}', '{"y": 0, "a": 1e2}', '{"y": 1, "a": -0}', '{"a": 7}')
    frames = [{"a": value} for value in (1.5, 100.0, 0, 7)]
    expected = [row.features for row in rows_of(data.open(frames, categorical="a", dim=DIM).batches())]
    assert features(path, label="y", categorical="a") == expected


def test_kinds_are_those_of_dicts(tmp_path: Path) -> None:
    rows = [{"y": 1, "a": 1, "b": "x", "c": 1, "d": True}, {"y": 0, "a": 2.5, "c": "x", "e": None}]
    path = write(tmp_path / "a.jsonl", *rows)
    ours, theirs = data.open(path, label="y"), data.open(rows, label="y")
    assert ours.describe().columns == theirs.describe().columns
    assert [keys(row) for row in rows_of(ours.batches())] == [keys(row) for row in rows_of(theirs.batches())]
    many = [{"y": i % 2, **{f"w{i}_{k}": 1 for k in range(20)}} for i in range(400)]
    wide = write(tmp_path / "wide.jsonl", *many)
    assert data.open(wide, label="y").describe().columns == {"y": "label"}
    assert [row.features for row in rows_of(data.open(wide, label="y", dim=DIM).batches())] == [
        row.features for row in rows_of(data.open(many, label="y", dim=DIM).batches())
    ]


def test_weights_labels_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"y": "yes", "w": 2, "a": 1}, {"y": "no", "w": None, "a": "x"}, {"y": None, "a": 1}] * 30
    path = write(tmp_path / "a.jsonl", *rows)
    expected = ftprl.train(rows, label="y", weight="w", bits=8).model.state_digest()
    assert ftprl.train(path, label="y", weight="w", bits=8).model.state_digest() == expected
    for name, packed in (("b.jsonl.gz", gzip.compress), ("c.jsonl.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(packed(path.read_bytes()))
        assert ftprl.train(tmp_path / name, label="y", weight="w", bits=8).model.state_digest() == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    run = ftprl.train("-", format="jsonl", label="y", weight="w", bits=8)
    assert run.model.state_digest() == expected


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "expected a JSON object, got '[1]'"),
        ("{", "expected a name in quotes, got the end of the line"),
        ('{"a" 1}', "expected ':' after a name, got '1}'"),
        ('{"a": }', "expected a value, got '}' in column 'a'"),
        ('{"a": 1,}', "expected a name in quotes, got '}' in column 'a'"),
        ('{"a": 1 "b": 2}', "expected ',' or '}', got '\"b\": 2}' in column 'a'"),
        ('{"a": [1}', "expected ',' or ']', got '}' in column 'a'"),
        ('{"a": "x}', "expected '\"' at the end of a text, got the end of the line in column 'a'"),
        ('{"a": "\\x"}', "expected an escape that JSON has, got 'x\"}' in column 'a'"),
        ('{"a": nul}', "expected a value, got 'nul}' in column 'a'"),
        ('{"a": 1e}', "expected a number, got '1e' in column 'a'"),
        ('{"a": 1e999}', "expected a finite number, got '1e999' in column 'a'"),
        ('{"a": 1} {"a": 2}', "expected one JSON object a line, got '{\"a\": 2}' in column 'a'"),
        ('{"a": [[1]]}', "expected numbers, text, or objects with a name and a value in an array, got an array within"),
        (
            '{"a": [{"b": 1}]}',
            "expected numbers, text, or objects with a name and a value in an array, got an object w",
        ),
        ('{"y": [1]}', "expected one value, got an array in column 'y'"),
        ('{"y": {"a": 1}}', "expected one value, got an object in column 'y'"),
        ('{"a": "\\ud800"}', "expected text in UTF-8, got '"),
        ('{"a": ' + '{"a": ' * 70 + "1" + "}" * 71, "expected objects and arrays at most 64 deep, got '{"),
        ('{"skip": ' + "[" * 70 + "]" * 70 + "}", "expected objects and arrays at most 64 deep, got '["),
    ],
)
def test_what_is_wrong_with_a_line(tmp_path: Path, line: str, message: str) -> None:
    good = {"y": 1, "a": 2, "skip": 1}
    path = write(tmp_path / "a.jsonl", good, {**good, "y": 0}, line, good)
    with pytest.raises(BadFormat) as raised:
        list(data.open(path, label="y", ignore="skip").batches())
    assert str(raised.value).startswith(f"{path}:3: {message}"[:200])
    assert "\n" not in str(raised.value)
    source = data.open(path, label="y", ignore="skip", on_bad_row="skip")
    assert [len(batch) for batch in source.batches()] == [3]
    assert source.bad_rows == 1


def test_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"y": 1, "a": "x"}\n{"y": 0, "a": "\xff"}\n')
    with pytest.raises(
        BadFormat, match=r"a.jsonl:2: expected text in UTF-8, got '\\xff\"}' in column 'a'; fix the row"
    ):
        ftprl.train(tmp_path / "a.jsonl", label="y")


def test_names_that_are_not_there(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"y": 1, "a": {"b": 2}})
    with pytest.raises(InvalidInput, match=r"a.jsonl: label= needs one of the columns 'y', 'a.b', got 'z'; check the"):
        ftprl.train(path, label="z")
    with pytest.raises(InvalidInput, match=r"label= needs one of the columns 'y', 'a.b', got 'a'; check the name"):
        ftprl.train(path, label="a")
    with pytest.raises(InvalidInput, match="label= needs the name of a column, got none; pass one of"):
        ftprl.train(path)
    with pytest.raises(InvalidInput, match="sep= is for CSV and TSV files, got JSON lines; drop it"):
        ftprl.train(path, label="y", sep=";")


def test_a_model_of_vw_text_reads_json_lines_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a:2 city=Rome\n-1 | b:.5 city=Oslo\n" * 20)
    model = ftprl.train(tmp_path / "a.vw", bits=10).model
    rows = [{"a": 2, "city": "Rome"}, {"b": 0.5, "city": "Oslo"}]
    expected = model.predict(tmp_path / "a.vw")[:2].tolist()
    assert model.predict(write(tmp_path / "a.jsonl", *rows)).tolist() == expected
    pq.write_table(pa.table({"a": [2, None], "b": [None, 0.5], "city": ["Rome", "Oslo"]}), tmp_path / "a.parquet")
    assert model.predict(tmp_path / "a.parquet").tolist() == model.predict(rows).tolist()


SIZES = {
    "same": lambda rng: f"{rng.randrange(16**8):08x}",  # texts as long as those of the row before
    "mixed": lambda rng: "é" * rng.randrange(3) + "v" * rng.randrange(22),  # also none, and more than 16 bytes
    "runs": lambda rng: "w" * (rng.random() < 0.03) + rng.choice("abc") * 5,  # mostly as long
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("beside", ["categories", "all"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_size": 300},
        {"dim": 1_000_003},
        {"intercept": True},
        {"interactions": "a:b"},
        {"ngrams": "t=2"},
        {"missing": "ignore"},
    ],
)
def test_rows_of_one_shape_are_those_of_any_other(
    sizes: str, beside: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """Rows of one shape equal the rows of lines with varying blanks, which have no common shape."""
    rng = random.Random(len(sizes))
    text, has_others = SIZES[sizes], beside == "all" or "ngrams" in options
    rows = []
    for i in range(300):
        rest = {"n": rng.choice([1, 0.5, None, -3]), "t": rng.choice(["two words", "x", '"'])} if has_others else {}
        rows.append({"a": text(rng), "y": i % 2, "b": f"b{text(rng)}", **rest, "c": "c", "d": text(rng) + "d"})
    kinds = {"a": "categorical", "b": "categorical", "c": "categorical", "d": "categorical", "y": "label"}
    if has_others:
        kinds |= {"n": "numeric", "t": "text"}
    one = write(tmp_path / "one.jsonl", *(json.dumps(row, ensure_ascii=False) for row in rows))
    spaces = [" " * (1 + i % 7) for i in range(len(rows))]
    lines = (
        json.dumps(row, ensure_ascii=False, separators=(",", f":{rest}"))
        for row, rest in zip(rows, spaces, strict=True)
    )
    other = write(tmp_path / "other.jsonl", *lines)
    read, names = [], []
    for path in (one, other):
        source = data.open(path, columns=kinds, names=True, **{"dim": DIM, "intercept": False, **options})
        names.append(Names(source.settings.dim))
        for batch, position in source.read(threads=0):
            names[-1].add(batch, position.rows)
        read.append([keys(row) for row in rows_of(source.batches())])
    assert read[0] == read[1]
    assert len(read[0]) == 300
    assert names[0].all() == names[1].all()
    without = rows_of(data.open(one, columns=kinds, **{"dim": DIM, "intercept": False, **options}).batches())
    assert [keys(row) for row in without] == read[0]


@pytest.mark.parametrize("missing", ["ignore", "indicator"])
def test_a_name_that_stands_for_two_values_counts_with_both(tmp_path: Path, missing: str) -> None:
    rows = [{"a": {"b": 1}, "a.b": 2, "c": "u", "y": 1}, {"a": {"b": 3}, "y": 0}, {"a.b": 4, "y": 1}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"label": "y", "dim": 1 << 16, "missing": missing}
    wanted = [row.features for row in rows_of(data.open(tmp_path / "a.jsonl", **options).batches())]
    assert [row.features for row in rows_of(data.open(rows, **options).batches())] == wanted
    assert wanted[0][feature_hash("a.b") % (1 << 16)] == 3.0
    pairs = [{1: 2.0, "1": 3.0, "y": 1}, {1: 1.0, "y": 0}]
    got = [row.features for row in rows_of(data.open(pairs, **options).batches())]
    assert [row[feature_hash("1") % (1 << 16)] for row in got] == [5.0, 1.0]
