"""Data frames, dicts, arrays and iterators are trained on, predicted, resumed and verified as files are."""

from __future__ import annotations

import datetime
import decimal
import functools
import io
import json
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from pyarrow import csv

import ftprl
from ftprl import data
from ftprl.errors import BadFormat, FtprlError, FtprlWarning, InvalidInput
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from oracles.batches import keys, rows_of

ROWS = 500
OPTIONS: dict[str, Any] = {"label": "click", "text": "words", "bits": 12}


def table(rows: int = ROWS, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Rome", "Oslo", "São Paulo", "", "a,b"], rows)
    price = rng.normal(size=rows).round(3)
    score = price + (city == "Rome") + rng.normal(size=rows)
    return pa.table(
        {
            "city": pa.array(city.tolist()).dictionary_encode(),
            "price": pa.array([None if i % 17 == 0 else p for i, p in enumerate(price.tolist())]),
            "count": pa.array(rng.integers(0, 5, rows)),
            "member": pa.array((rng.random(rows) < 0.5).tolist()),
            "words": pa.array([f"Big {c} house big" for c in city]),
            "click": pa.array((score > 0).astype(int)),
        }
    )


def as_csv(path: Path, frame: pa.Table) -> Path:
    from pyarrow import csv

    cells = [c.cast(pa.string()) if pa.types.is_dictionary(c.type) else c for c in frame.columns]
    csv.write_csv(pa.table(cells, names=frame.column_names), path)
    return path


def row_keys(source: data.Source) -> list[Any]:
    return [keys(row) for row in rows_of(source.batches())]


# ---- equal models ----


def test_every_kind_of_data_gives_the_model_of_the_csv_file(tmp_path: Path) -> None:
    pl, pd = pytest.importorskip("polars"), pytest.importorskip("pandas")
    frame = table()
    expected = ftprl.train(as_csv(tmp_path / "a.csv", frame), **OPTIONS, output=tmp_path / "m")
    labels = frame["click"].to_numpy()
    without = frame.drop_columns(["click"])
    named = {name: value for name, value in OPTIONS.items() if name != "label"}
    runs = [
        ftprl.train(frame, **OPTIONS),
        ftprl.train(frame.to_batches()[0], **OPTIONS),
        ftprl.train(frame.to_pandas(), **OPTIONS),
        ftprl.train(frame.to_pandas().set_index(pd.Index(range(7, 7 + ROWS))), **OPTIONS),
        ftprl.train(pl.from_arrow(frame), **OPTIONS),
        ftprl.train(frame.to_pylist(), **OPTIONS),
        ftprl.train((row for row in frame.to_pylist()), **OPTIONS),
        ftprl.train(frame.to_batches(max_chunksize=70), **OPTIONS),
        ftprl.train(iter(frame.to_batches(max_chunksize=70)), **OPTIONS),
        ftprl.train(pa.RecordBatchReader.from_batches(frame.schema, frame.to_batches(max_chunksize=70)), **OPTIONS),
        ftprl.train(without, labels, **named),
        ftprl.train(without, y=pl.Series(labels), **named),
        ftprl.train(without.to_pandas(), pd.Series(labels, index=range(1, ROWS + 1)), **named),
        ftprl.train(without.to_pylist(), labels.tolist(), **named),
        ftprl.train([(without[:100], labels[:100]), (without[100:], labels[100:])], **named),
        ftprl.train(frame, **OPTIONS, threads=0),
    ]
    for run in runs:
        assert run.model.state_digest() == expected.model.state_digest()
        assert run.progressive == expected.progressive
        assert (run.rows, run.bad_rows) == (ROWS, 0)


def test_models_predict_frames_files_and_dicts_alike(tmp_path: Path) -> None:
    frame = table()
    path = as_csv(tmp_path / "a.csv", frame)
    expected = ftprl.train(path, **OPTIONS, output=tmp_path / "file").model.predict(path)
    ftprl.train(frame, **OPTIONS, output=tmp_path / "frame")
    ftprl.train(frame.to_pylist(), **OPTIONS, output=tmp_path / "dicts")
    features = frame.drop_columns(["click"])
    for name in ("file", "frame", "dicts"):
        model = ftprl.load(tmp_path / name)
        for other in (path, frame, features, features.to_pylist(), iter(features.to_pylist()), features.to_pandas()):
            np.testing.assert_array_equal(model.predict(other), expected)
    more = ftprl.load(tmp_path / "frame").predict(features.append_column("other", pa.array([[1]] * ROWS)))
    np.testing.assert_array_equal(more, expected)  # a column that is not known is left out, whatever its type


def test_dicts_are_vw_text_where_names_agree(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a:2 city=Rome\n-1 | b:.5 city=Oslo\n" * 20)
    rows = [{"y": 1, "a": 2, "city": "Rome"}, {"y": -1, "b": 0.5, "city": "Oslo"}] * 20
    from_file = ftprl.train(tmp_path / "a.vw", bits=10).model
    from_dicts = ftprl.train(rows, label="y", bits=10, missing="ignore").model
    assert from_dicts.state_digest() == from_file.state_digest()
    np.testing.assert_array_equal(
        from_file.predict([{"a": 2, "city": "Rome"}]), from_file.predict(tmp_path / "a.vw")[:1]
    )


def test_arrays_and_matrices_give_the_model_of_the_libsvm_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 5)).astype(np.float32) * (rng.random((300, 5)) < 0.5)
    y = np.where(X.sum(axis=1) > 0, 1, 0)
    rows = [" ".join(f"{j}:{v!r}" for j, v in enumerate(row) if v) for row in X.tolist()]
    lines = [f"{label} {row}" for label, row in zip(y, rows, strict=True)]
    (tmp_path / "a.libsvm").write_text("\n".join(lines) + "\n")
    expected = ftprl.train(data.open(tmp_path / "a.libsvm", dim=5)).model
    parts = [(X[:100], y[:100]), (X[100:], y[100:])]
    for run in (
        ftprl.train(X, y),
        ftprl.train(sp.csr_matrix(X), y),
        ftprl.train(sp.csc_array(X), y),
        ftprl.train(parts),
        ftprl.train(iter(parts)),
        ftprl.train(iter([X[:7], X[7:]]), y),
    ):
        assert run.model.state_digest() == expected.state_digest()
        np.testing.assert_allclose(run.model.predict(X), expected.predict(tmp_path / "a.libsvm"), rtol=1e-12)
    np.testing.assert_allclose(expected.predict(iter([X[:9], X[9:]])), expected.predict(X), rtol=1e-12)
    several = ftprl.train(X, y, passes=2)  # compared, and then all rows in the better number of passes
    assert several.best_pass in (1, 2)
    assert several.rows == (2 + several.best_pass) * 300


# ---- kinds, labels, weights ----


def test_kinds_are_those_of_the_types() -> None:
    frame = pa.table(
        {
            "i": [1, 2],
            "f": pa.array([1.0, float("nan")], pa.float16()),
            "d": [decimal.Decimal("1.10"), None],
            "b": [True, None],
            "s": ["1", "2"],
            "day": [datetime.date(2024, 2, 29), None],
            "c": pa.array([1, 2]).dictionary_encode(),
            "n": pa.nulls(2),
            "t": [datetime.datetime(2024, 1, 1), None],
        }
    )
    source = data.open(frame, loss="squared", categorical="t")
    kinds = source.describe().columns or {}
    assert [name for name, kind in kinds.items() if kind == "numeric"] == ["i", "f", "d"]
    assert kinds["b"] == "boolean"
    assert kinds["day"] == "date"
    assert {kinds[name] for name in "scnt"} == {"categorical"}
    names = ["i", "f", "d", "b=true", "s=1", "day weekday sin", "day weekday cos", "day weekday=Thu", "c=1"]
    first, second = rows_of(source.batches())
    assert list(first.features) == [slot(name) for name in (*names, "n is missing", "t=2024-01-01 00:00:00.000000")]
    assert list(first.features.values())[:3] == [1.0, 1.0, float(np.float32(1.1))]
    gone = [f"{name} is missing" for name in ("f", "d", "b", "day", "n", "t")]
    order = ["i", gone[0], gone[1], gone[2], "s=2", gone[3], "c=2", gone[4], gone[5]]
    assert list(second.features) == [slot(name) for name in order]


def slot(name: str, bits: int = 22) -> int:
    from ftprl._core import feature_hash

    return feature_hash(name) & (2**bits - 1)


def test_values_of_dicts_decide_where_no_kind_is_known() -> None:
    rows = [
        {"a": 1, "b": "x", "c": True, "d": None, "e": float("nan"), 7: 2},
        {"a": np.float32(0.5), "b": np.str_("y"), "c": np.bool_(False), "e": np.int64(3), "f": decimal.Decimal("2.5")},
        {"a": 10**20, "b": b"z", "mixed": 1},
        {"mixed": "1"},
    ]
    source = data.open(rows, loss="squared")
    assert source.describe().missing == "ignore"  # since most dicts lack most keys
    first, second, third, fourth = rows_of(source.batches())
    assert first.features == {slot("a"): 1.0, slot("b=x"): 1.0, slot("c=true"): 1.0, slot("7"): 2.0}
    assert second.features == {slot("a"): 0.5, slot("b=y"): 1.0, slot("c=false"): 1.0, slot("e"): 3.0, slot("f"): 2.5}
    assert third.features == {slot("a"): float(np.float32(1e20)), slot("b=z"): 1.0, slot("mixed=1"): 1.0}
    assert fourth.features == {slot("mixed=1"): 1.0}


def test_dicts_with_many_names_are_read_by_value(tmp_path: Path) -> None:
    rows = [{f"w{i}": 1, f"w{i + 1}": 2, "y": i % 2} for i in range(6000)]
    run = ftprl.train(rows, label="y", output=tmp_path / "m")
    assert run.model.reading["columns"] == {"y": "label"}
    model = ftprl.load(tmp_path / "m")
    assert rows_of(model.open([{"new": 3.0}]).batches())[0].features == {slot("new"): 3.0}


def test_labels_of_two_classes_in_every_spelling() -> None:
    x = list(range(4))
    for labels, options in (
        ([1, 0, None, 1], {}),
        ([1.0, -1.0, float("nan"), 1.0], {}),
        ([True, False, None, True], {}),
        (["yes", "no", None, "YES"], {}),
        (["spam", "ham", None, "spam"], {"positive": "spam"}),
        ([3, 4, None, 3], {"positive": 3}),
        ([True, False, None, True], {"positive": True}),
    ):
        for source in (
            data.open(pa.table({"x": x, "y": labels}), label="y", **options),
            data.open(pa.table({"x": x, "y": pa.array(labels).dictionary_encode()}), label="y", **options),
            data.open(pa.table({"x": x}), y=labels, **options),
            data.open([{"x": i, "y": label} for i, label in enumerate(labels)], label="y", **options),
        ):
            (batch,) = source.batches()
            np.testing.assert_array_equal(batch.y, [1, -1, np.nan, 1])


def test_weights_are_a_column_or_an_array() -> None:
    frame = pa.table({"x": [1, 2], "w": [0.5, 2.0], "y": [1, 0]})
    for source in (
        data.open(frame, label="y", weight="w"),
        data.open(frame.drop_columns(["w"]), label="y", weight=[0.5, 2.0]),
        data.open(frame.to_pylist(), label="y", weight="w"),
        data.open([(frame.select(["x"]), [1, 0], np.array([0.5, 2.0]))]),
    ):
        (batch,) = source.batches()
        np.testing.assert_array_equal(batch.weight, [0.5, 2.0])
        assert len(batch.indices) == 2


# ---- runs ----


def stopped(make: Callable[[], Any], path: Path, **options: Any) -> None:
    seen = 0

    def listener(event: dict[str, Any]) -> None:
        nonlocal seen
        seen += event["event"] == "checkpoint"
        if seen == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ftprl.train(make(), checkpoint=path, every=170, listener=listener, **options)


@pytest.mark.parametrize("kind", ["frame", "dicts", "parts"])
@pytest.mark.parametrize("bad", [(), (3, 180, 200)])
def test_a_run_is_resumed_with_the_same_rows(tmp_path: Path, kind: str, bad: tuple[int, ...]) -> None:
    frame = table()
    counts = [float("inf") if i in bad else float(c) for i, c in enumerate(frame["count"].to_pylist())]
    frame = frame.set_column(2, "count", pa.array(counts))

    def make() -> Any:
        return {"frame": frame, "dicts": frame.to_pylist(), "parts": frame.to_batches(max_chunksize=90)}[kind]

    options = {**OPTIONS, "on_bad_row": "skip", "passes": 2}
    whole = ftprl.train(make(), **options, output=tmp_path / "whole")
    assert whole.best_pass in (1, 2)  # passes are compared, and then all rows learned in the better number of them
    assert (whole.rows, whole.bad_rows) == ((2 + whole.best_pass) * (ROWS - len(bad)), len(bad))
    stopped(make, tmp_path / "part", **options)
    resumed = ftprl.train(make(), resume=tmp_path / "part", output=tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert resumed.bad_rows == len(bad)
    if bad:
        message = "<memory>: row 3: expected a finite number, got 'inf' in column 'count'"
        assert whole.first_bad == resumed.first_bad == message
    with pytest.raises(InvalidInput, match="resume= needs the data of the checkpoint, expected the same"):
        ftprl.train(frame.set_column(1, "price", frame["count"]), resume=tmp_path / "part")


def test_more_rows_are_learned_later(tmp_path: Path) -> None:
    frame = table()
    features, labels = frame.drop_columns(["click"]), frame["click"].to_pylist()
    ftprl.train(frame[:200], **OPTIONS, output=tmp_path / "a")
    ftprl.train(features[:200], labels[:200], text="words", bits=12, output=tmp_path / "b")
    one = ftprl.train(frame[200:], resume=tmp_path / "a").model
    two = ftprl.train(features[200:], labels[200:], resume=tmp_path / "b").model
    three = ftprl.train(features[200:], labels[200:], resume=tmp_path / "a").model
    assert one.state_digest() == two.state_digest() == three.state_digest()
    with pytest.raises(BadFormat, match="expected a column 'click', got the others only"):
        ftprl.train(features, resume=tmp_path / "a")
    with pytest.raises(InvalidInput, match=r"y= belongs to ftprl\.data\.open when the data is a Source, got both"):
        ftprl.train(data.open(frame, label="click"), labels, resume=tmp_path / "a")


@pytest.mark.parametrize("kind", ["frame", "iterator"])
def test_a_receipt_of_a_frame_is_verified(tmp_path: Path, kind: str) -> None:
    frame = table(200)
    run = ftprl.train(frame if kind == "frame" else iter([frame]), **OPTIONS, receipt=True, output=tmp_path / "m")
    write_receipt(tmp_path / "r", make_receipt(run.model, certify_model(run.model)))
    assert verify_receipt(tmp_path / "r", frame).confirmed
    other = frame.set_column(2, "count", pa.array(range(200)))
    assert not verify_receipt(tmp_path / "r", other).confirmed


def test_an_iterator_is_read_once() -> None:
    frame = table()
    for one_shot in (iter([frame]), (row for row in frame.to_pylist()), frame.to_reader()):
        with pytest.raises(InvalidInput, match="passes=2 needs data that can be read again, got an iterator; put its"):
            ftprl.train(one_shot, **OPTIONS, passes=2)
    X, y = np.eye(4), np.array([1.0, 0.0, 1.0, 0.0])
    with pytest.raises(InvalidInput, match="passes=2 needs data that can be read again, got an iterator"):
        ftprl.train(iter([(X, y)]), passes=2)
    source = data.open(iter([frame]), label="click")
    assert not source.can_be_read_again
    assert source.fingerprint() is None
    assert sum(len(batch) for batch in source.batches()) == ROWS
    with pytest.raises(InvalidInput, match="an iterator can be read once"):
        list(source.batches())


# ---- refused input ----


def frame_of(**columns: Any) -> pa.Table:
    return pa.table({"x": [1.0, 2.0, 3.0], "y": [1, 0, 1], **columns})


def raising(parts: list[Any]) -> Iterator[Any]:
    yield from parts
    raise RuntimeError("the database\nis gone")


TIME = datetime.timedelta(days=1)
LISTS = [[[1]], [[2]], [[3]]]


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda: frame_of(), {}, "label= needs the name of a column, got none; pass one of 'x', 'y'."),
        (lambda: frame_of(), {"label": "z"}, "label= needs one of the columns 'x', 'y', got 'z'; check the name."),
        (lambda: frame_of(), {"label": "y", "y": [1, 0, 1]}, "y= and label= are two ways to pass the labels"),
        (lambda: frame_of(), {"label": "y", "ignore": "y"}, "column 'y' needs one kind, got ignore= and label=; keep"),
        (lambda: frame_of(), {"y": [1, 0]}, "y= needs one entry per row, got 2 for 3 rows; match the lengths."),
        (lambda: iter([frame_of()]), {"y": [1, 0]}, "y= needs one entry per row, got 2 for at least 3 rows; match"),
        (lambda: frame_of().to_pylist(), {"y": [1] * 4}, "y= needs one entry per row, got 4 for 3 rows; match the"),
        (lambda: frame_of(), {"y": [1, 0, 1, 0]}, "y= needs one entry per row, got 4 for 3 rows; match the lengths."),
        (lambda: frame_of(), {"y": [[1], [0], [1]]}, "y= needs one number or text per row, got list of shape (3, 1)"),
        (lambda: frame_of(), {"y": [1, "a", 0]}, "y= needs one number or text per row, got "),
        (
            lambda: frame_of(),
            {"y": [1, 2, 3]},
            "logistic loss needs a label with two classes, got column 'y' with the labels",
        ),
        (
            lambda: frame_of(),
            {"label": "y", "weight": [1, 2]},
            "weight= needs one entry per row, got 2 for 3 rows",
        ),
        (lambda: frame_of(), {"label": "y", "sep": ";"}, "sep= is for files, got data in memory; drop it."),
        (lambda: frame_of(), {"label": "y", "header": False}, "header= is for files, got data in memory; drop it."),
        (lambda: frame_of(), {"label": "y", "format": "csv"}, "format= is for files, got 'csv' for a data frame"),
        (
            lambda: frame_of(w=[1, -1, 1]),
            {"label": "y", "weight": "w"},
            "<memory>: row 1: expected a weight of at least 0, got '-1' in column 'w'; fix the row, or pass",
        ),
        (
            lambda: frame_of(z=[1.0, 2.0, float("inf")]),
            {"label": "y"},
            "<memory>: row 2: expected a finite number, got 'inf' in column 'z'",
        ),
        (
            lambda: frame_of(z=["1", "2", "x"]),
            {"label": "y", "numeric": "z"},
            "<memory>: row 2: expected a number, got 'x' in column 'z'",
        ),
        (
            lambda: frame_of(z=[TIME] * 3),
            {"label": "y"},
            (
                "column 'z' needs numbers, text, dates, booleans or categories, got duration[us]; pass it "
                "with ignore=, or with categorical= to use its text."
            ),
        ),
        (
            lambda: frame_of(z=LISTS),
            {"label": "y"},
            "column 'z' needs numbers, text, dates, booleans or categories, got list<",
        ),
        (
            lambda: frame_of(z=LISTS),
            {"label": "y", "text": "z"},
            "column 'z' needs numbers, text, dates, booleans or categories",
        ),
        (lambda: frame_of(z=LISTS), {"label": "z"}, "column 'z' needs numbers, text, dates, booleans or categories"),
        (
            lambda: pa.table([[1], [2]], names=["a", "a"]),
            {"y": [1]},
            "data needs each column once, got 'a' twice; rename",
        ),
        (lambda: pa.array([1, 2]), {"y": [1, 0]}, "data needs a frame with columns, got Int64Array"),
        (
            lambda: [frame_of(), frame_of().select(["y"])],
            {"label": "y"},
            "<memory>: element 1: expected a column 'x', got the others only",
        ),
        (lambda: [frame_of(), 3], {"label": "y"}, "<memory>: element 1: expected a frame or dicts as before, got int"),
        (
            lambda: [frame_of(), (1, 2, 3, 4)],
            {"label": "y"},
            "a part of data needs to be data, (data, y) or (data, y, ",
        ),
        (
            lambda: raising([frame_of()]),
            {"label": "y"},
            (
                "<memory>: element 1: expected more data, got an iterator that raised "
                "RuntimeError: the database is gone; fix the iterator."
            ),
        ),
        (lambda: raising([]), {"label": "y"}, "<memory>: element 0: expected more data, got an iterator that raised"),
        (
            lambda: raising([{"x": 1, "y": 1}] * 3),
            {"label": "y"},
            "<memory>: element 3: expected more data, got an iter",
        ),
        (lambda: iter([]), {"label": "y"}, "data needs at least one row, got an empty iterator; pass some."),
        (
            lambda: frame_of()[:0],
            {"label": "y"},
            "data needs rows with a label and a weight above 0, got none in 0 rows; pass some.",
        ),
        (list, {"y": []}, "data needs at least one row or path, got an empty list; pass rows, a frame or paths."),
        (lambda: iter([[], [{"x": 1}]]), {"y": [1]}, "data needs rows in its first part, got an empty list; leave out"),
        (lambda: [([], [])], {}, "data needs rows in its first part, got an empty list; leave out parts without rows."),
        (lambda: pa.table({}), {"label": "y"}, "label= needs one of the columns (none), got 'y'; check the name."),
        (
            lambda: [{"x": 1, "y": 1}, 5],
            {"label": "y"},
            "<memory>: row 1: expected a dict, got int; fix the row, or pass",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": {1}, "y": 0}],
            {"label": "y"},
            "<memory>: row 1: expected a number, text, a date, True, False, None, a dict or a list, got set",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": [[1]], "y": 0}],
            {"label": "y"},
            "<memory>: row 1: expected numbers, text, or dicts with a name and a value in a list, got a list within",
        ),
        (
            lambda: [{"x": [{"name": "a", "other": 1}], "y": 1}],
            {"label": "y"},
            "<memory>: row 0: expected numbers, text, or dicts with a name and a value in a list, got a dict with",
        ),
        (
            lambda: [{"x": [{"name": (), "value": 1}], "y": 1}],
            {"label": "y"},
            "<memory>: row 0: expected numbers, text, or dicts with a name and a value in a list, got a dict whose",
        ),
        (
            lambda: [{"x": [{"name": "a", "value": [1]}], "y": 1}],
            {"label": "y"},
            "<memory>: row 0: expected numbers, text, or dicts with a name and a value in a list, got a dict or a list",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": 1, "y": {"z": 0}}],
            {"label": "y"},
            "<memory>: row 1: expected one value, got a dict in column 'y'",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": 1, "y": [0]}],
            {"label": "y", "missing": "ignore"},
            "<memory>: row 1: expected one value, got a list in column 'y'",
        ),
        (
            lambda: [{"x": "2024-01-02", "y": 1}, {"x": ["2024-01-02"], "y": 0}],
            {"label": "y", "date": "x"},
            "<memory>: row 1: expected one value, got a list in column 'x'",
        ),
        (
            lambda: [{"x": functools.reduce(lambda inner, _: {"x": inner}, range(70), 1), "y": 1}],
            {"label": "y"},
            "<memory>: row 0: expected at most 64 dicts within each other, got more",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": -np.inf, "y": 0}],
            {"label": "y"},
            "<memory>: row 1: expected a finite number, got '-inf' in column 'x'",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": "\ud800", "y": 0}],
            {"label": "y"},
            "<memory>: row 1: expected text in UTF-8, ",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": 10**400, "y": 0}],
            {"label": "y"},
            "<memory>: row 1: expected a finite number",
        ),
        (
            lambda: [{"x": 1, "y": 1}, {"x": 2, "y": 3}],
            {"label": "y"},
            "logistic loss needs a label with two classes, got col",
        ),
        (lambda: [{"x": 1, "y": 1}] * 3, {}, "label= needs the name of a column, got none; pass one of 'x', 'y'."),
        (
            lambda: {"x": [1, 2]},
            {"y": [1, 0]},
            "data needs paths, Batch objects, a data frame (pandas, Polars, pyarrow",
        ),
        (lambda: io.StringIO("1 | a"), {}, "data needs a path, got an open file (StringIO); pass its name."),
        (lambda: np.array([1.0, 2.0]), {"y": [1, 0]}, "data needs an array of numbers with two dimensions, got 1-d"),
        (lambda: np.array([["a"]]), {"y": [1]}, "data needs an array of numbers with two dimensions, got 2-d <U1"),
        (lambda: np.eye(3), {"y": [1, 0]}, "y= needs one entry for each of the 3 rows, got shape (2,); match them."),
        (lambda: np.eye(3), {"label": "y"}, "label= needs a table with named columns, got data in memory; drop it."),
        (
            lambda: [np.eye(3), np.eye(2)],
            {"y": [1] * 5},
            "<memory>: element 1: expected 3 columns as before, got 2; match",
        ),
        (
            lambda: [np.eye(3), [[1]]],
            {"y": [1] * 5},
            "<memory>: element 1: expected an array or a matrix as before, got",
        ),
        (lambda: iter([np.eye(3)] * 2), {"y": [1] * 5}, "y= needs one entry for each of the 6 rows, got shape (5,)"),
        (lambda: iter([np.eye(3)] * 2), {"y": [1] * 7}, "y= needs one entry for each of the 6 rows, got shape (7,)"),
        (
            lambda: iter([(np.eye(2), [1, 0]), (np.eye(2), [1, -1])]),
            {},
            "logistic needs the labels 1 and -1, or 1 and 0",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(FtprlError) as caught:
        ftprl.train(make(), **options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_other_data_is_refused_with_what_to_do() -> None:
    columns = {"x": [1, 2], "y": [1, 0]}
    with pytest.raises(InvalidInput, match=r"got dict; pass a list of dicts, .* such as pandas\.DataFrame\(data\)\.$"):
        ftprl.train(columns, label="y")
    with pytest.raises(InvalidInput, match=r"got some list; pass a NumPy array\.$"):
        ftprl.train([[1, 2], [3, 4]], [0, 1])
    with pytest.raises(InvalidInput, match=r"got set; convert it to one of these\.$"):
        ftprl.train({1, 2}, [0, 1])
    pl = pytest.importorskip("polars")
    with pytest.raises(InvalidInput, match=r"got LazyFrame; call \.collect\(\) on it\.$"):
        ftprl.train(pl.LazyFrame(columns), label="y")


def test_nan_in_an_array_is_refused_with_its_row() -> None:
    X = np.eye(3)
    X[2, 1] = np.nan
    with pytest.raises(FtprlError, match="<memory>: row 2: "):
        ftprl.train(X, [1, 0, 1])
    for order, rows in (("random", 2), ("given", 3)):  # in their own order, rows that are refused count as read
        run = ftprl.train(X, [1, 0, 1], on_bad_row="skip", order=order)
        assert (run.bad_rows, run.rows) == (1, rows)


@pytest.mark.parametrize("option", ["label", "weight", "ignore", "text", "categorical", "bucket"])
def test_a_key_that_no_dict_has_is_refused(option: str) -> None:
    rows = [{"price": 1.5, "y": 1}, {"price": 2, "y": 0}] * 10
    options = {"label": "y", "bits": 10, option: "prise"}
    with pytest.raises(
        InvalidInput, match=f"^{option}= needs one of the columns 'price', 'y', got 'prise'; did you mean"
    ):
        ftprl.train(rows, **options)


def test_arrays_that_hide_values_are_refused() -> None:
    hidden = np.ma.array(np.eye(3), mask=np.eye(3))
    with pytest.raises(InvalidInput, match=r"without missing values, got a masked array; fill the masked entries"):
        ftprl.train(hidden, [1, 0, 1])
    model = ftprl.train(np.ma.array(np.eye(3)), [1, 0, 1]).model
    with pytest.raises(InvalidInput, match="got a masked array"):
        model.predict(hidden)
    with pytest.raises(InvalidInput, match=r"got a memoryview; pass numpy\.asarray\(data\)\.$"):
        ftprl.train(memoryview(np.eye(3)), [1, 0, 1])


def test_a_column_that_is_missing_at_prediction_is_named(tmp_path: Path) -> None:
    model = ftprl.train(table(), **OPTIONS).model
    with pytest.raises(BadFormat, match="<memory>: expected a column 'city', got the others only"):
        model.predict(table().drop_columns(["city"]))
    with pytest.raises(BadFormat, match=r"<memory>: expected a key 'city', got the keys 'price'; add it, with None"):
        model.predict([{"price": 1.0}])
    whole = table(1).drop_columns(["click"]).to_pylist()
    assert model.predict([{"price": 1.0}, *whole]).shape == (2,)  # what only some dicts lack is a missing value
    numbers = ftprl.train(np.eye(4), [1, 0, 1, 0]).model
    with pytest.raises(InvalidInput, match="the model, which has numbers for them and no names, got a data frame"):
        numbers.predict(table())
    (tmp_path / "a.vw").write_text("1 | a\n")
    with pytest.raises(InvalidInput, match="the columns of the model, which was trained on a frame, got vw files"):
        model.predict(tmp_path / "a.vw")
    with pytest.raises(InvalidInput, match="whose names are hashed by format 'frame', got a NumPy array"):
        model.predict(np.eye(4))


def test_labels_settle_what_is_negative_in_the_order_of_rows() -> None:
    rows = 40_000
    labels = np.ones(rows)
    labels[20_000], labels[39_000] = 0.0, -1.0
    for threads in (0, 2):
        with pytest.raises(
            BadFormat, match="<memory>: row 39000: expected the label 1 or 0, as in the rows before, got"
        ):
            for _ in data.open(pa.table({"x": np.arange(rows), "y": labels}), label="y").read(threads=threads):
                pass


def test_positions_and_settings() -> None:
    frame = table()
    source = data.open(frame, label="click")
    assert isinstance(source, data.Source)
    position = source.position(source.start.after(7).to_dict())
    batch, where = next(source.read(position))
    assert (batch.first_row, where.rows, len(batch)) == (7, 7, ROWS - 7)
    assert source.locate(position) == "<memory>: row 7"
    assert data.open(frame, **source.to_dict()).to_dict() == source.to_dict()
    with pytest.raises(InvalidInput, match="a position needs counts of at least 0"):
        source.position({"rows": -1})
    with pytest.raises(InvalidInput, match="start needs a row of this data, got 7"):
        source.read(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["", None, float("nan")])
def test_a_key_of_no_known_column_has_no_feature_where_it_is_missing(tmp_path: Path, value: object) -> None:
    rows = [{"a": 1.5, "new": value, "y": 1}, {"a": value, "new": "x", "y": 1}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options: dict[str, Any] = {"columns": {"a": "numeric", "y": "label"}, "dim": 2**20}
    for source in (rows, str(tmp_path / "a.jsonl")):
        amounts = [sorted(row.features.values()) for row in rows_of(data.open(source, **options).batches())]
        assert amounts == [[1.5], [1.0, 1.0]]  # a; "a is missing" and new=x


def test_a_frame_is_opened_without_pandas(tmp_path: Path) -> None:
    """Opening a frame does not import pandas, which takes longer than reading a small frame."""
    pytest.importorskip("polars")
    program = (
        "import sys, polars, ftprl; frame = polars.DataFrame({'y': [0, 1], 'a': ['x', 'z'], 'b': [1.5, None]});"
        "rows = [len(batch) for batch in ftprl.data.open(frame, label='y').batches()];"
        "print(rows, 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["[2]", "False"]


@pytest.mark.parametrize("text_type", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_of_any_length_are_those_of_csv(tmp_path: Path, text_type: pa.DataType) -> None:
    """Texts of any length (long, empty, accented) give equal rows, although short ones are hashed in blocks."""
    rng = np.random.default_rng(7)
    rows = 3000
    columns = [[f"v{n:0{j + 1}d}" for n in rng.integers(0, 9, rows)] for j in range(14)]
    columns[2][1500] = ""
    columns[3][700] = "x" * 40
    columns[5][2900] = "São Paulo"
    cells = {
        "y": rng.integers(0, 2, rows).astype(str).tolist(),
        **{f"c{j}": column for j, column in enumerate(columns)},
    }
    csv = tmp_path / "a.csv"
    csv.write_text("\n".join([",".join(cells), *map(",".join, zip(*cells.values(), strict=True))]) + "\n")
    table = pa.table(
        {name: pa.array(column, pa.string() if name == "y" else text_type) for name, column in cells.items()}
    )
    features = [name for name in cells if name != "y"]
    for names in (False, True):
        options = {"dim": 2**12, "label": "y", "categorical": features, "names": names}
        text = [batch for batch, _ in data.open(csv, **options).read(threads=0)]
        frame = [batch for batch, _ in data.open(table, **options).read(threads=0)]
        for name in ("indptr", "indices", "values", "y"):
            parts = [
                np.concatenate([np.diff(b.indptr) if name == "indptr" else getattr(b, name) for b in batches])
                for batches in (text, frame)
            ]
            np.testing.assert_array_equal(*parts)


def warned(call: Callable[[], Any]) -> list[str]:
    """Return the texts of our warnings in a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if one.category is FtprlWarning]


def test_other_columns_and_keys_are_listed_once() -> None:
    model = ftprl.train(table(), **OPTIONS).model
    row = {**table(1).drop_columns(["click"]).to_pylist()[0], "x": {"y": 2}, "z": 1}
    said = "keys that the model does not know are left out: 'x.y', 'z'; check their names."
    assert warned(lambda: model.predict([row] * 3)) == [said]
    assert warned(lambda: [model.predict_one(row) for _ in range(3)]) == [said]
    more = table().append_column("z", [[1] * len(table())])
    said = "columns that the model does not know are left out: 'z'; check their names."
    assert warned(lambda: [model.predict(more) for _ in range(3)]) == [said]
    assert warned(lambda: model.predict(table())) == []
    rows = [{"price": 1.0, "city": "Rome"}, {"price": 2.0, "city": "Oslo"}] * 10
    dicts = ftprl.train(rows, [1, 0] * 10).model
    assert warned(lambda: dicts.predict([{"price": 1.0}])) == []  # rows of dicts may have any keys
    assert warned(lambda: dicts.predict([{"price": 1.0, "town": "Rome"}])) == [
        "keys that the model does not know are read by their values, as new features: 'town'; check their names."
    ]
    with pytest.raises(BadFormat, match="expected a key 'price', got the keys 'cost'; add it"):
        dicts.predict([{"cost": 1.0}])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_files_have_the_same_rule_for_other_columns(suffix: str, tmp_path: Path) -> None:
    """Unknown columns are listed once, and a file that lacks a column of the model is refused."""
    model = ftprl.train(table(), **OPTIONS).model
    frame = pd.DataFrame(table().drop_columns(["click"]).to_pylist())

    def written(frame: pd.DataFrame, name: str) -> str:
        path = str(tmp_path / f"{name}.{suffix}")
        if suffix == "parquet":
            frame.to_parquet(path)
        elif suffix == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_csv(path, index=False, sep="," if suffix == "csv" else "\t")
        return path

    more, less = written(frame.assign(z=1), "more"), written(frame.drop(columns=["city"]), "less")
    what = "keys" if suffix == "jsonl" else "columns"
    said = f"{what} that the model does not know are left out: 'z'; check their names."
    assert warned(lambda: model.predict(more)) == [said]
    assert warned(lambda: model.predict([more, more])) == [said]
    assert warned(lambda: model.predict(written(frame, "same"))) == []
    with pytest.raises(BadFormat, match=rf"less\.{suffix}.*: expected a {what[:-1]} 'city', got "):
        model.predict(less)


def test_json_lines_of_a_model_of_json_lines_may_have_any_keys(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"y": 1, "a": 1, "o": {"b": "x"}}\n{"y": 0, "a": 2, "o": {"b": "z"}}\n' * 10)
    (tmp_path / "few.jsonl").write_text('{"a": 1}\n')
    (tmp_path / "other.jsonl").write_text('{"a": 1, "o": {"c": 2}}\n')
    (tmp_path / "none.jsonl").write_text('\n{"A": 1}\n')
    model = ftprl.train(tmp_path / "a.jsonl", label="y").model
    assert warned(lambda: model.predict(tmp_path / "few.jsonl")) == []
    assert warned(lambda: model.predict(tmp_path / "other.jsonl")) == [
        "keys that the model does not know are read by their values, as new features: 'o.c'; check their names."
    ]
    with pytest.raises(BadFormat, match=r"none.jsonl:1: expected a key 'a', got the keys 'A'; add it, with null"):
        model.predict(tmp_path / "none.jsonl")


def test_lines_of_text_are_no_paths() -> None:
    for lines in ("1 | a:1", ["1 | a:1", "-1 | b"], "y,x\n1,2\n"):
        with pytest.raises(InvalidInput, match=r"data needs the paths of files, got the text '.*'; write the rows"):
            ftprl.train(lines)


def test_a_key_that_is_missing_in_a_row_alone_is_named() -> None:
    model = ftprl.train(table(), **OPTIONS).model
    whole = table(1).drop_columns(["click"]).to_pylist()[0]
    less = {name: value for name, value in whole.items() if name != "city"}
    before, expected = model.state_digest(), model.predict_one({**whole, "city": None})
    for _ in range(2):
        assert model.predict_one(whole) != expected
        for call in (lambda row: model.predict_one(row), lambda row: model.learn_one(row, 1)):
            with pytest.raises(BadFormat, match=r"expected a key 'city'.* add it, with None where it is missing"):
                call(less)
    assert model.state_digest() == before
    assert model.explain(less).score == model.explain({**whole, "city": None}).score


def test_labels_that_are_a_column_too_are_refused() -> None:
    whole = pa.table({"x": list(range(40)), "bought": [0, 1, 1, 0] * 10})
    labels = np.array([0.0, 1.0, 1.0, 0.0] * 10)
    said = r"^y= needs labels that are no column of the data, got those of column 'bought'; drop it, or name its kind"
    for given in (whole, whole.to_pandas(), whole.to_pylist()):
        with pytest.raises(InvalidInput, match=said):
            ftprl.train(given, labels)
        ftprl.train(given, labels, numeric="bought")
        ftprl.train(given, labels, ignore="bought")
        ftprl.train(given, np.append(labels[:-1], 1.0))
    ftprl.train(whole[:8], labels[:8])  # it may be chance


@pytest.mark.parametrize("missing", [math.nan, None])
def test_a_missing_label_beside_the_data_is_refused(missing: Any) -> None:
    labels: list[Any] = [1, 0, missing, 1, missing]
    for given in (np.eye(5), pa.table({"x": [1, 2, 3, 4, 5]}), [{"x": i} for i in range(5)]):
        with pytest.raises(InvalidInput, match=r"^y= needs a label for each row, got (nan|None) in row 2 and 1 more; "):
            ftprl.train(given, labels)


def test_arrays_have_the_columns_of_training(tmp_path: Path) -> None:
    X, y = np.eye(6), [1, 0, 1, 0, 1, 0]
    for model in (ftprl.train(X, y).model, ftprl.train(X, y, bits=8).model):
        model.save(tmp_path / "m")
        for one in (model, ftprl.load(tmp_path / "m")):
            for other in (X[:, :5], np.hstack([X, X]), sp.csr_matrix(X[:, :5])):
                said = rf"^data needs 6 columns as in training, got {other.shape[1]}; pass the same columns\.$"
                with pytest.raises(InvalidInput, match=said):
                    one.predict(other)
                with pytest.raises(InvalidInput, match=said):
                    ftprl.train(other, y, resume=tmp_path / "m")
            assert one.predict(X).shape == (6,)


def test_a_model_of_labels_beside_the_data_is_evaluated(tmp_path: Path) -> None:
    whole = pa.table({"x": list(range(40)), "city": ["Rome", "Oslo"] * 20, "bought": [0, 1, 1, 0] * 10})
    model = ftprl.train(whole.select(["x", "city"]), whole["bought"].to_numpy()).model
    expected = model.evaluate(whole.select(["x", "city"]), y=whole["bought"].to_numpy())
    csv.write_csv(whole, tmp_path / "a.csv")
    for given in (whole, whole.to_pylist(), tmp_path / "a.csv"):
        assert model.evaluate(given, label="bought").to_dict() == expected.to_dict()
        with pytest.raises(InvalidInput, match=r"^label= needs the column with the labels, which a model .* got none;"):
            model.evaluate(given)
    with pytest.raises(InvalidInput, match="a column that is no feature of the model, got 'x'"):
        model.evaluate(whole, label="x")
    named = ftprl.train(whole, label="bought").model
    assert named.evaluate(whole, label="bought").rows == 40
    with pytest.raises(InvalidInput, match="label= comes from the model, 'bought', got 'x'; drop it"):
        named.evaluate(whole, label="x")
