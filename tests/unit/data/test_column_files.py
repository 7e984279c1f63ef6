"""Parquet, Arrow IPC and ORC files are trained on, predicted, resumed and verified as text files are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, orc

import ftprl
from ftprl import data
from ftprl._core import feature_hash
from ftprl.data import column_files
from ftprl.data.sizes import column_chunks, page_sizes
from ftprl.errors import BadFormat, FtprlError, InvalidInput
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from oracles.batches import rows_of

ROWS = 400
OPTIONS: dict[str, Any] = {"label": "click", "text": "words", "bits": 12}


def table(rows: int = ROWS, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    city = rng.choice(["Rome", "Oslo", "São Paulo", "", "a,b"], rows)
    price = rng.normal(size=rows).round(3)
    score = price + (city == "Rome") + rng.normal(size=rows)
    return pa.table(
        {
            "city": pa.array(city.tolist()),
            "price": pa.array([None if i % 17 == 0 else p for i, p in enumerate(price.tolist())]),
            "count": pa.array(rng.integers(0, 5, rows)),
            "member": pa.array((rng.random(rows) < 0.5).tolist()),
            "words": pa.array([f"Big {c} house big" for c in city]),
            "click": pa.array((score > 0).astype(int)),
        }
    )


def write_parquet(frame: pa.Table, path: Path) -> Path:
    pq.write_table(frame, path.with_suffix(".parquet"), row_group_size=90)
    return path.with_suffix(".parquet")


def write_arrow(frame: pa.Table, path: Path) -> Path:
    with pa.ipc.new_file(str(path.with_suffix(".arrow")), frame.schema) as out:
        out.write_table(frame, max_chunksize=70)
    return path.with_suffix(".arrow")


def write_feather(frame: pa.Table, path: Path) -> Path:
    feather.write_feather(frame, str(path.with_suffix(".feather")), chunksize=110, compression="zstd")
    return path.with_suffix(".feather")


def write_orc(frame: pa.Table, path: Path) -> Path:
    orc.write_table(frame, str(path.with_suffix(".orc")))
    return path.with_suffix(".orc")


def write_jsonl(frame: pa.Table, path: Path) -> Path:
    path = path.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in frame.to_pylist()))
    return path


WRITERS: list[Callable[[pa.Table, Path], Path]] = [write_parquet, write_arrow, write_feather, write_orc, write_jsonl]
COLUMNS = WRITERS[:4]


def digest_of(frame: Any, **options: Any) -> str:
    return ftprl.train(frame, **(options or OPTIONS)).model.state_digest()


# ---- equal models ----


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("threads", [0, 2])
def test_a_file_gives_the_model_of_the_frame(tmp_path: Path, write: Any, threads: int) -> None:
    path = write(table(), tmp_path / "a")
    run = ftprl.train(path, **OPTIONS, threads=threads)
    assert run.model.state_digest() == digest_of(table())
    assert run.rows == ROWS


@pytest.mark.parametrize("write", WRITERS)
def test_models_predict_any_format_also_without_the_label(tmp_path: Path, write: Any) -> None:
    frame = table()
    expected = ftprl.train(frame, **OPTIONS, output=tmp_path / "frame").model.predict(frame)
    ftprl.train(write(frame, tmp_path / "a"), **OPTIONS, output=tmp_path / "file")
    bare = write(frame.drop_columns(["click"]), tmp_path / "bare")
    for name in ("frame", "file"):
        model = ftprl.load(tmp_path / name)
        np.testing.assert_array_equal(model.predict(bare), expected)
        np.testing.assert_array_equal(model.predict(frame), expected)
        np.testing.assert_array_equal(model.predict(frame.to_pylist()), expected)


def test_a_model_of_json_lines_reads_new_names_in_later_files_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"y": 1, "a": 2}\n{"y": 0, "b": "x"}\n' * 50)
    model = ftprl.train(tmp_path / "a.jsonl", label="y", bits=10).model
    (tmp_path / "b.jsonl").write_text('{"a": 2, "new": 3}\n')
    dicts = [{"a": 2, "new": 3}]
    np.testing.assert_array_equal(model.predict(tmp_path / "b.jsonl"), model.predict(dicts))
    closed = ftprl.train(pa.table({"y": [1, 0] * 50, "a": [2, None] * 50}), label="y", bits=10).model
    np.testing.assert_array_equal(closed.predict(tmp_path / "b.jsonl"), closed.predict(pa.table({"a": [2]})))


def test_several_files_and_partitions(tmp_path: Path) -> None:
    frame, parts = table(), dict[str, pa.Table]()
    for number, day in enumerate((3, 12, 3)):
        part = frame[number * 100 : number * 100 + 100]
        folder = tmp_path / "data" / f"day={day}" / f"land={'a%20b' if number else '__HIVE_DEFAULT_PARTITION__'}"
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, folder / f"{number}.parquet")
        (folder / "_SUCCESS").touch()
        lands = pa.array(["a b" if number else None] * 100, pa.string())
        parts[str(number)] = part.append_column("day", pa.array([day] * 100)).append_column("land", lands)
    source = data.open(tmp_path / "data", label="click")
    own = dict(data.open(frame, label="click").describe().columns or {})
    assert source.describe().columns == {**own, "day": "numeric", "land": "categorical"}
    names = [Path(file).stem for file in source.files]
    assert names == ["1", "0", "2"]  # day=12 comes before day=3
    expected = pa.concat_tables([parts[name] for name in names])
    assert digest_of(tmp_path / "data") == digest_of(expected)
    assert digest_of(str(tmp_path / "data" / "**" / "*.parquet")) == digest_of(expected)
    options = {**OPTIONS, "categorical": "day", "ignore": "land"}
    assert digest_of(list(source.files), **options) == digest_of(expected, **options)
    in_file = tmp_path / "day=1" / "a.parquet"  # a column of the file itself comes first
    in_file.parent.mkdir()
    pq.write_table(expected, in_file)
    assert digest_of(in_file) == digest_of(expected)


def test_columns_that_are_ignored_are_not_read(tmp_path: Path) -> None:
    frame = table().append_column("blob", pa.array([f"x{i}" * 20 for i in range(ROWS)]))
    path = tmp_path / "a.parquet"
    pq.write_table(frame, path, compression="none", use_dictionary=False)
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(frame.column_names.index("blob"))
    body = bytearray(path.read_bytes())
    begin = chunk.data_page_offset
    body[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(body)
    with pytest.raises(BadFormat, match=r"a.parquet: row group 0: expected a Parquet file, got other bytes"):
        ftprl.train(path, **OPTIONS)
    assert digest_of(path, **OPTIONS, ignore="blob") == digest_of(table())


# ---- checkpoints, passes, receipts ----


def interrupted(path: Any, checkpoint: Path, **options: Any) -> None:
    def stop(event: Any) -> None:
        if event["event"] == "checkpoint" and event["rows"] > 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ftprl.train(path, checkpoint=checkpoint, every=130, listener=stop, **options)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("bad", [(), (3, 180, 200)])
def test_a_run_is_resumed_to_the_bit(tmp_path: Path, write: Any, bad: tuple[int, ...]) -> None:
    frame = table()
    counts = [("x" if i in bad else str(c)) for i, c in enumerate(frame["count"].to_pylist())]
    frame = frame.set_column(2, "count", pa.array(counts))
    write(frame[:250], tmp_path / "a")
    paths = [write(frame[:250], tmp_path / "a"), write(frame[250:], tmp_path / "b")]
    options = {**OPTIONS, "numeric": "count", "on_bad_row": "skip", "passes": 2}
    whole = ftprl.train(paths, **options)
    assert whole.bad_rows == len(bad)
    interrupted(paths, tmp_path / "c", **options)
    resumed = ftprl.train(paths, resume=tmp_path / "c")
    assert resumed.model.state_digest() == whole.model.state_digest()
    assert (resumed.bad_rows, resumed.first_bad) == (whole.bad_rows, whole.first_bad)
    assert resumed.progressive == whole.progressive


@pytest.mark.parametrize("write", COLUMNS)
def test_changed_rows_are_noticed(tmp_path: Path, write: Any) -> None:
    path = write(table(), tmp_path / "a")
    interrupted(path, tmp_path / "c", **OPTIONS, passes=2)
    write(table(seed=2), tmp_path / "a")
    with pytest.raises(InvalidInput, match=r"resume= needs the data of the checkpoint, expected .*; pass the same"):
        ftprl.train(path, resume=tmp_path / "c")
    write(table(), tmp_path / "a")
    ftprl.train(path, resume=tmp_path / "c")


def test_a_value_that_changed_inside_a_file_is_noticed(tmp_path: Path) -> None:
    """A changed value in the middle leaves size, first and last bytes unchanged; the digest of the rows detects it."""
    rng = np.random.default_rng(1)
    frame = pa.table({"y": rng.integers(0, 2, 60_000), "x": rng.normal(size=60_000), "z": rng.normal(size=60_000)})
    path = tmp_path / "a.parquet"
    pq.write_table(frame, path, compression="none", use_dictionary=False, row_group_size=20_000)

    def stop(event: Any) -> None:
        if event["event"] == "checkpoint" and event["rows"] > 50_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ftprl.train(path, label="y", bits=6, checkpoint=tmp_path / "c", every=20_000, listener=stop)
    whole, value = path.read_bytes(), np.float64(frame["x"][25_000].as_py()).tobytes()
    at = whole.index(value)
    assert 65_536 < at < len(whole) - 65_536
    path.write_bytes(whole[:at] + np.float64(5.0).tobytes() + whole[at + 8 :])
    with pytest.raises(InvalidInput, match="as they were, got other rows; pass the same files"):
        ftprl.train(path, resume=tmp_path / "c")
    path.write_bytes(whole)
    ftprl.train(path, resume=tmp_path / "c")


def test_a_file_that_changes_between_passes_is_noticed(tmp_path: Path) -> None:
    path = write_parquet(table(), tmp_path / "a")

    def change(event: Any) -> None:
        if event["event"] == "pass":
            write_parquet(table(seed=2), tmp_path / "a")

    with pytest.raises(InvalidInput, match="passes= needs data that stays as it is, got other data in pass 2"):
        ftprl.train(path, **OPTIONS, passes=2, listener=change)


@pytest.mark.parametrize("write", WRITERS)
def test_receipts_are_verified(tmp_path: Path, write: Any) -> None:
    path = write(table(), tmp_path / "a")
    run = ftprl.train(path, **OPTIONS, receipt=True)
    write_receipt(tmp_path / "r", make_receipt(run.model, certify_model(run.model)))
    assert verify_receipt(tmp_path / "r", path).confirmed
    write(table(seed=2), tmp_path / "a")
    assert not verify_receipt(tmp_path / "r", path).confirmed


# ---- bad input ----


def test_what_is_wrong_with_files(tmp_path: Path) -> None:
    frame = table()
    good = write_parquet(frame, tmp_path / "good")
    body = good.read_bytes()
    cases: list[tuple[str, bytes, str]] = [
        ("cut.parquet", body[: len(body) // 2], "cut.parquet: expected a Parquet file, got other bytes (Parquet magic"),
        ("empty.parquet", b"", "empty.parquet: expected a Parquet file, got other bytes ("),
        ("text.parquet", b"a,b\n1,2\n" * 10, "text.parquet: expected a Parquet file, got other bytes ("),
        ("text.arrow", b"a,b\n1,2\n" * 10, "text.arrow: expected an Arrow IPC file, got other bytes ("),
        ("text.orc", b"a,b\n1,2\n" * 10, "text.orc: expected an ORC file, got other bytes ("),
    ]
    for name, content, message in cases:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(FtprlError) as raised:
            ftprl.train(tmp_path / name, **OPTIONS)
        assert message in str(raised.value)
        assert "\n" not in str(raised.value)


@pytest.mark.parametrize("write", COLUMNS)
def test_schemas_may_differ_in_what_does_not_matter(tmp_path: Path, write: Any) -> None:
    frame = table()
    first = write(frame[:200], tmp_path / "a")
    mixed = frame.select(frame.column_names[::-1])[200:]
    second = write(mixed.set_column(3, "count", mixed["count"].cast(pa.float64())), tmp_path / "b")
    expected = digest_of([frame[:200], frame[200:]])
    assert sorted(digest_of([first, second])) is not None
    names = {"label": "click", "text": "words", "bits": 12}
    same = frame[200:].set_column(2, "count", frame[200:]["count"].cast(pa.float64()))
    assert digest_of([first, write(same, tmp_path / "c")], **names) == expected


def test_schemas_that_do_not_fit(tmp_path: Path) -> None:
    frame = table()
    first = write_parquet(frame, tmp_path / "a")
    lacks = write_parquet(frame.drop_columns(["price"]), tmp_path / "lacks")
    with pytest.raises(BadFormat, match=r"lacks.parquet: expected a column 'price', got the others only; add it."):
        ftprl.train([first, lacks], **OPTIONS)
    times = pa.array([0] * ROWS, pa.duration("s"))
    other = write_parquet(frame.set_column(1, "price", times), tmp_path / "other")
    with pytest.raises(InvalidInput, match=r"other.parquet: row group 0: column 'price' needs numbers.*duration"):
        ftprl.train([first, other], **OPTIONS)
    texts = write_parquet(frame.set_column(1, "price", pa.array(["1.5"] * 95 + ["x"] * 305)), tmp_path / "texts")
    with pytest.raises(BadFormat, match=r"texts.parquet: row group 1: row 5: expected a number, got 'x' in column 'pr"):
        ftprl.train([first, texts], **OPTIONS)
    assert ftprl.train([first, texts], **OPTIONS, on_bad_row="skip").bad_rows == 305
    with pytest.raises(
        InvalidInput, match=r"a.parquet: label= needs one of the columns 'city', .*, got 'clock'; did you mean 'click'"
    ):
        ftprl.train(first, label="clock")
    with pytest.raises(
        InvalidInput, match=r"a.parquet: column 'x' needs numbers, .* got list<.*; pass it with ignore="
    ):
        ftprl.train(write_parquet(pa.table({"y": [1, 0], "x": [[[1]], [[2]]]}), tmp_path / "a"), label="y")
    with pytest.raises(InvalidInput, match="sep= is for CSV and TSV files, got the format parquet; drop it"):
        ftprl.train(first, **OPTIONS, sep=";")
    with pytest.raises(InvalidInput, match="data needs the path of a Parquet file, got standard input; save it to a"):
        ftprl.train("-", **OPTIONS, format="parquet")


NUMBER, LIST, MAP = [1.5, 2.5], [[1.0], [2.0, 3.0]], pa.array([[("a", 1.0)]] * 2, pa.map_(pa.string(), pa.float64()))
DATES = pa.array([10, 20], pa.date32())


@pytest.mark.parametrize(
    ("first", "then", "wanted"),
    [
        (NUMBER, LIST, "expected one value in each cell of column 'c' as in the first rows, got list<"),
        (NUMBER, MAP, "expected one value in each cell of column 'c' as in the first rows, got map<"),
        (
            NUMBER,
            [{"u": 1.0}] * 2,
            "expected one value in each cell of column 'c' as in the first rows, got large_list<",
        ),
        (LIST, NUMBER, "expected a list in each cell of column 'c' as in the first rows, got "),
        (MAP, NUMBER, "expected names and values in each cell of column 'c' as in the first rows, got "),
        (MAP, LIST, "expected names and values in each cell of column 'c' as in the first rows, got list<"),
        (["x", "y"], MAP, "expected one value in each cell of column 'c' as in the first rows, got map<"),
        (DATES, LIST, "column 'c' needs numbers, text, dates, booleans or categories, got list<"),
        ([True, False], LIST, "column 'c' needs numbers, text, dates, booleans or categories, got list<"),
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
def test_lists_and_single_values_are_not_mixed(
    first: Any, then: Any, wanted: str, in_memory: bool, tmp_path: Path
) -> None:
    parts = [pa.table({"c": cells, "y": [0, 1]}) for cells in (first, then)]
    if not in_memory:
        parts = [write_parquet(part, tmp_path / f"{number}") for number, part in enumerate(parts)]
    with pytest.raises(FtprlError) as caught:
        ftprl.train(parts, label="y", bits=10)
    assert wanted in str(caught.value)
    assert str(caught.value).startswith(str(parts[1]) if not in_memory else ("<memory>", "column"))
    assert ftprl.train(parts[:1], label="y", bits=10).rows == 2


def test_a_text_and_a_list_of_texts_are_the_same_features(tmp_path: Path) -> None:
    tables = [pa.table({"c": cells, "y": [0, 1]}) for cells in (["x", "z"], [["x"], ["z"]])]
    run = ftprl.train([write_parquet(t, tmp_path / f"{i}") for i, t in enumerate(tables)], label="y", bits=10)
    assert run.model.names is not None
    assert sorted(run.model.names.all()) == ["c=x", "c=z"]


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("write", [write_parquet, write_arrow])
def test_a_column_that_is_null_in_the_first_file_has_the_type_of_a_later_one(
    write: Any, in_memory: bool, tmp_path: Path
) -> None:
    """A writer of rows without a value does not know the type of the column."""
    late = {"price": [1.5, 2.5, None], "when": pa.array([0, 10**9, 10**9], pa.timestamp("s")), "word": ["a", "b", "a"]}
    none = {name: pa.nulls(3) for name in late}
    parts = [pa.table({**cells, "y": [0, 1, 0]}) for cells in (none, none, late)]
    whole = pa.concat_tables([parts[2].slice(0, 0), *parts], promote_options="permissive")
    data_in_parts = parts if in_memory else [write(part, tmp_path / f"{i}") for i, part in enumerate(parts)]
    run, wanted = (ftprl.train(one, label="y", bits=12) for one in (data_in_parts, whole))
    assert {column["name"]: column["kind"] for column in run.columns or ()} == {
        "price": "numeric",
        "when": "timestamp",
        "word": "categorical",
        "y": "label",
    }
    assert run.model.names is not None
    assert wanted.model.names is not None
    assert sorted(run.model.names.all()) == sorted(wanted.model.names.all())
    assert np.array_equal(run.model.predict(whole), wanted.model.predict(whole))


def test_keys_of_folders_are_shown_and_read_as_columns_of_text_are(tmp_path: Path) -> None:
    """All files are inspected for keys of folders, because the first files may all be in one folder."""
    days = [f"2024-0{1 + i // 28}-{1 + i % 28:02d}" for i in range(120)]
    for number, day in enumerate(days):
        folder = tmp_path / f"day={day}" / f"part={number}" / f"new={'true' if number % 2 else 'false'}"
        folder.mkdir(parents=True)
        write_parquet(pa.table({"x": [1.5, 2.5], "y": [0, 1]}), folder / "a")
    run = ftprl.train(tmp_path, label="y", bits=12)
    columns = {column["name"]: column for column in run.columns or ()}
    assert {name: column["kind"] for name, column in columns.items()} == {
        "x": "numeric",
        "y": "label",
        "day": "date",
        "part": "numeric",
        "new": "boolean",
    }
    assert columns["day"]["distinct"] == 120
    assert columns["day"]["example"] == "2024-01-01 .. 2024-05-08"
    assert columns["part"]["advice"] is None
    rows = [
        {"x": x, "y": y, "day": d, "part": i, "new": bool(i % 2)}
        for i, d in enumerate(days)
        for x, y in ((1.5, 0), (2.5, 1))
    ]
    wanted = ftprl.train(rows, label="y", bits=12)
    assert np.array_equal(run.model.predict(rows), wanted.model.predict(rows))


def test_rows_before_a_damaged_row_group_are_kept(tmp_path: Path) -> None:
    frame = table()
    path = tmp_path / "a.parquet"
    pq.write_table(frame, path, compression="none", use_dictionary=False, row_group_size=100)
    chunk = pq.ParquetFile(path).metadata.row_group(3).column(1)
    body = bytearray(path.read_bytes())
    body[chunk.data_page_offset : chunk.data_page_offset + 40] = b"\xff" * 40
    path.write_bytes(body)
    for order, rows in (("given", 300), ("random", 200)):  # of which 50 wait in random order
        with pytest.raises(BadFormat, match=r"a.parquet: row group 3: expected a Parquet file, got other bytes \("):
            ftprl.train(path, **OPTIONS, checkpoint=tmp_path / order, every=100, order=order, waiting=50)
        assert ftprl.load(tmp_path / order).checkpoint["state"]["rows"] == rows  # type: ignore[index]


@pytest.mark.parametrize("type", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2)], ids=str)
def test_binary_columns_are_read_by_their_bytes(tmp_path: Path, type: pa.DataType) -> None:
    """Binary columns that contain text are read as text, in frames and files; of fixed size, only if they are named."""
    table = pa.table({"x": pa.array([b"aa", b"b\xff", b"cc", None], type), "y": [1, 0, 1, 0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as out:
        out.write_table(table)
    names = (b"x=aa", b"x=b\xff", b"x=cc", b"x is missing")
    wanted = [{feature_hash(name) % 4096: 1.0} for name in names]
    for form in (table, tmp_path / "a.parquet", tmp_path / "a.arrow"):
        if pa.types.is_fixed_size_binary(type):
            with pytest.raises(
                InvalidInput, match="column 'x' needs numbers, text, dates, booleans or categories, got f"
            ):
                data.open(form, label="y")
        else:
            assert data.open(form, label="y").describe().columns == {"x": "categorical", "y": "label"}
        source = data.open(form, label="y", categorical="x", dim=4096)
        assert [row.features for row in rows_of(source.batches())] == wanted
    model = ftprl.train(table, label="y", categorical="x", bits=12).model
    assert "x=b\\xff" in model.weights_table()["name"].to_pylist()


def test_text_that_is_no_utf8(tmp_path: Path) -> None:
    bytes_ = pa.array([b"good", b"b\xffd", b"good"], pa.binary())
    for cells in (bytes_.view(pa.string()), bytes_.view(pa.string()).dictionary_encode()):
        frame = pa.table({"y": [1, 0, 1], "city": cells})
        for options in ({}, {"text": "city"}):
            path = write_arrow(frame, tmp_path / "a")
            with pytest.raises(
                BadFormat, match="record batch 0: row 1: expected text in UTF-8, got other bytes in col"
            ):
                ftprl.train(path, label="y", **options)
            assert ftprl.train(path, label="y", bits=8, on_bad_row="skip", **options).bad_rows == 1
    ftprl.train(pa.table({"y": [1, 0, 1], "city": bytes_}), label="y", bits=8)  # bytes are any bytes


def test_files_of_very_many_columns_in_linear_time(tmp_path: Path) -> None:
    """Once each name was searched in a list of all names: 10,000 columns took half a minute."""
    names = ["y", *(f"c{i}" for i in range(10_000))]
    frame = pa.table({name: [0, 1] for name in names})
    start = time.process_time()
    for write in (write_arrow, write_parquet):
        assert len(next(iter(data.open(write(frame, tmp_path / "a"), label="y").batches()))) == 2
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(["1"] * len(names)) + "\n")
    assert len(next(iter(data.open(tmp_path / "a.csv", label="y", positive="1").batches()))) == 1
    assert time.process_time() - start < 12.0


def test_a_repeated_long_text_is_in_memory_once(tmp_path: Path) -> None:
    rows, text = 10_000, "z" * 20_000
    pq.write_table(pa.table({"y": [0, 1] * (rows // 2), "x": [text] * rows}), tmp_path / "a.parquet")
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        ftprl.train(tmp_path / "a.parquet", label="y", bits=8, order="given")
    finally:
        pa.set_memory_pool(usual)
    assert 0 < pool.max_memory() < rows * len(text) // 2


ROW_OF = {write_parquet: "row group 0: row 2", write_arrow: "record batch 0: row 2", write_orc: "stripe 0: row 2"}


@pytest.mark.parametrize("write", ROW_OF, ids=lambda write: str(write.__name__))
def test_a_row_of_more_bytes_than_max_row_is_refused_as_in_files_of_text(tmp_path: Path, write: Any) -> None:
    texts = ["a b"] * 20
    texts[2] = "c" * 992
    path = write(pa.table({"y": [0, 1] * 10, "x": texts, "z": ["d" * 2000] * 20}), tmp_path / "a")
    for kind in ("text", "categorical"):
        options: dict[str, Any] = {"label": "y", kind: "x", "bits": 8, "ignore": "z", "order": "given"}
        assert ftprl.train(path, **options, max_row=1000).rows == 20  # 8 bytes are the label's
        what = rf"a\.\w+: {ROW_OF[write]}: expected a row of at most 999 bytes, got one of 1000; raise max_row="
        for bad in ("raise", "skip"):  # of text that is so, too: nobody knows where its next row begins
            with pytest.raises(BadFormat, match=what):
                ftprl.train(path, **options, max_row=999, on_bad_row=bad, checkpoint=tmp_path / "c", every=2)
            assert ftprl.load(tmp_path / "c").checkpoint["state"]["rows"] == 2  # type: ignore[index]
            (tmp_path / "c").unlink()


def peak_of(step: Any) -> int:
    """Return the peak number of bytes that pyarrow allocated during a step."""
    usual, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    pa.set_memory_pool(pool)
    try:
        step()
    finally:
        pa.set_memory_pool(usual)
    return int(pool.max_memory())


def test_long_rows_of_parquet_are_refused_before_they_are_decompressed(tmp_path: Path) -> None:
    frame = pa.table({"y": [0, 1], "x": ["x" * 30_000_000, "a"]})
    pq.write_table(frame, tmp_path / "a.parquet", compression="zstd")

    def refused() -> None:
        with pytest.raises(
            BadFormat, match=r"row group 0: expected a row of at most 99999 bytes, got \d+ bytes in 2 r"
        ):
            ftprl.train(tmp_path / "a.parquet", label="y", bits=8, max_row=99_999)

    assert peak_of(refused) < 1_000_000
    ftprl.train(tmp_path / "a.parquet", label="y", bits=8, ignore="x", max_row=99_999, order="given")


def test_large_pages_of_parquet_are_refused_before_they_are_decompressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few long rows among many short ones are refused, although the mean of the row group is small."""
    monkeypatch.setattr(column_files, "BATCH_BYTES", 1 << 20)
    frame = pa.table({"y": [0, 1] * 5000, "x": ["a"] * 9999 + ["x" * 30_000_000]})
    for dictionary in (False, True):
        pq.write_table(frame, tmp_path / "a.parquet", compression="zstd", use_dictionary=dictionary)

        def refused() -> None:
            what = r"row group 0: expected a row of at most 99999 bytes, got a page of 3\d{7} bytes; raise max_row="
            with pytest.raises(BadFormat, match=what):
                ftprl.train(tmp_path / "a.parquet", label="y", bits=8, max_row=99_999)

        assert peak_of(refused) < 3_000_000
    with pytest.raises(
        BadFormat, match="row group 0: row 9999: expected a row of at most 9999999 bytes, got one of 300000"
    ):
        ftprl.train(tmp_path / "a.parquet", label="y", bits=8, max_row=9_999_999)


def test_sizes_of_pages_add_up_to_those_of_their_columns(tmp_path: Path) -> None:
    frame = pa.table(
        {"x": [f"{i % 700} {'z' * (i % 300)}" for i in range(20_000)], "y": [i / 7 for i in range(20_000)]}
    )
    for options in ({}, {"use_dictionary": False}, {"data_page_version": "2.0", "compression": "gzip"}):
        pq.write_table(frame, tmp_path / "a.parquet", data_page_size=5000, **options)
        about = pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0)
        with (tmp_path / "a.parquet").open("rb") as file:
            for chunk, wanted in zip(column_chunks(file)[0], map(about.column, range(2)), strict=True):
                assert ".".join(chunk.path) == wanted.path_in_schema
                assert chunk.stop - chunk.start == wanted.total_compressed_size
                sizes = list(page_sizes(file, chunk))
                headers = wanted.total_uncompressed_size - sum(sizes)
                assert len(sizes) > 3
                assert 10 * len(sizes) < headers < 1000 * len(sizes)  # a header has two texts


@pytest.mark.parametrize("write", [write_parquet, write_arrow], ids=["parquet", "arrow"])
def test_a_repeated_long_text_is_decoded_in_pieces(tmp_path: Path, write: Any) -> None:
    rows, text = 2000, "z" * 50_000  # 100 MB, which a column of texts needs as such
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([text]))
    path = write(pa.table({"y": [0, 1] * (rows // 2), "x": cells}), tmp_path / "a")
    assert peak_of(lambda: ftprl.train(path, label="y", text="x", bits=8, order="given")) < rows * len(text) * 0.8


def test_texts_of_many_bytes_are_read_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_files, "BATCH_BYTES", 1 << 20)
    monkeypatch.setattr(column_files, "PIECE_BYTES", 1 << 19)
    rows, text = 800, "z" * 50_000  # 40 MB in a row group, without a dictionary
    frame = pa.table({"y": [0, 1] * (rows // 2), "x": [f"{i} {text}" for i in range(rows)]})
    pq.write_table(frame, tmp_path / "a.parquet", compression="zstd", use_dictionary=False, write_batch_size=1)
    del frame
    wanted = digest_of(tmp_path / "a.parquet", label="y", text="x", order="given")
    assert peak_of(lambda: digest_of(tmp_path / "a.parquet", label="y", text="x", order="given")) < 15_000_000
    monkeypatch.undo()
    assert digest_of(tmp_path / "a.parquet", label="y", text="x", order="given") == wanted


def test_a_row_group_without_rows_has_no_long_one(tmp_path: Path) -> None:
    frame = pa.table({"y": [0, 1], "x": ["a", "bb"]})
    with pq.ParquetWriter(tmp_path / "a.parquet", frame.schema) as out:
        out.write_table(frame.slice(0, 0))
        out.write_table(frame)
    assert ftprl.train(tmp_path / "a.parquet", label="y", bits=8, max_row=100).rows == 2
