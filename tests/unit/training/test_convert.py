"""`ftprl convert` and `train --cache`: other files of the same rows give the same model."""

from __future__ import annotations

import itertools
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl.cli.app import run as command
from ftprl.data import Batch
from ftprl.data.batches import write_batches
from ftprl.errors import FtprlError, InvalidInput
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from ftprl.training import train
from ftprl.training.convert import convert

ROWS = 3000


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with numbers, categories, text, weights and bad rows."""
    rng = np.random.default_rng(2)
    lines = ["y,w,city,x,note"]
    for i in range(ROWS):
        x = "NA" if i % 7 == 0 else f"{rng.normal():.4f}"
        note = f'"Word{rng.integers(9)}, word{rng.integers(9)}"'
        lines.append(f"{int(rng.random() < 0.3)},{rng.integers(0, 3)},c{rng.zipf(1.5) % 40},{x},{note}")
        if i % 101 == 5:
            lines.append("1,1,c1,none of a number,a")
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


READING: dict[str, Any] = {"label": "y", "weight": "w", "text": "note", "numeric": "x", "on_bad_row": "skip"}


def model_bytes(where: Any, **options: Any) -> bytes:
    return train(where, bits=12, **options).model.to_bytes()


def test_a_model_of_batches_is_that_of_the_data(table: Path) -> None:
    out = table.with_suffix(".batches")
    convert(table, out, dim=2**12, **READING)
    for more in ({}, {"scale": 0.1, "holdout": 7, "passes": 2}):
        assert model_bytes(out, on_bad_row="skip", **more) == model_bytes(table, **READING, **more)
    repeated = model_bytes(out, **READING)
    assert repeated == model_bytes(table, **READING)
    model = train(table, bits=12, **READING).model
    np.testing.assert_array_equal(
        model.predict(model.open(out, on_bad_row="skip")), model.predict(model.open(table, on_bad_row="skip"))
    )
    (a, b) = (table.with_name("a"), table.with_name("b"))
    train(table, bits=12, predictions=a, **READING)
    train(out, bits=12, predictions=b, on_bad_row="skip")
    assert a.read_bytes() == b.read_bytes()


@pytest.mark.parametrize("features", [1, 35, 300])
def test_blocks_are_neither_small_nor_large(tmp_path: Path, features: int) -> None:
    """Each is learned by a call of its own, and should stay in the cache until then."""
    rows = min(16384, 2**21 // features)
    indptr = np.arange(rows + 1, dtype=np.int64) * features
    indices = np.tile(np.arange(features, dtype=np.uint32), rows)
    batch = Batch(indptr, indices, np.ones(rows * features, np.float32), np.ones(rows), np.ones(rows))
    write_batches(tmp_path / "a.batches", data.open([batch], dim=512))
    sizes = [len(block.indices) for block in data.open(tmp_path / "a.batches").batches()]
    assert sum(sizes) == rows * features
    assert max(sizes) <= 1.25 * 2**19
    assert len(sizes) == 1 or min(sizes) >= 0.6 * 2**19


def test_bad_rows_between_blocks_are_counted(tmp_path: Path) -> None:
    text = "".join(["y,x\n", *["1,1\n0,2\n"] * 3, *["1,bad\n"] * 40, "0,1\n", *["1,bad\n"] * 40])
    (tmp_path / "d.csv").write_text(text)
    columns = {"y": "label", "x": "numeric"}
    source = data.open(
        tmp_path / "d.csv", dim=64, columns=columns, on_bad_row="skip", block_size=50, max_row=40, labelled=True
    )
    write_batches(tmp_path / "b.batches", source)
    actual = data.open(tmp_path / "b.batches", on_bad_row="skip")
    assert sum(len(batch) for batch in actual.batches()) == 7
    assert actual.take_left_out() == {6: 40, 7: 40}
    assert actual.bad_rows == 80


def test_vw_text_and_libsvm_have_the_same_weights(table: Path) -> None:
    model = train(table, bits=12, missing="ignore", **READING).model
    vw, libsvm = table.with_suffix(".vw.gz"), table.with_name("u.libsvm")
    convert(table, vw, missing="ignore", **READING)
    assert train(vw, bits=12).model.state_digest() == model.state_digest()
    with pytest.raises(InvalidInput, match="needs a format with weights, got libsvm"):
        convert(table, libsvm, dim=2**12, **READING)
    unweighted = {**READING, "weight": None, "ignore": "w"}
    convert(table, libsvm, dim=2**12, **unweighted)
    assert train(libsvm, bits=12).model.state_digest() == train(table, bits=12, **unweighted).model.state_digest()
    again = table.with_name("again.vw")
    convert(vw, again)
    assert train(again, bits=12).model.state_digest() == model.state_digest()
    named = table.with_name("named.vw")
    convert(libsvm, named, dim=2**12)
    assert named.read_text().count("\n") == ROWS


def test_parquet_has_the_columns(table: Path) -> None:
    out = table.with_suffix(".parquet")
    convert(table, out, **READING)
    actual = pq.read_table(out)
    assert actual.column_names == ["y", "w", "city", "x", "note"]
    assert actual.num_rows == ROWS
    assert actual["x"].null_count == len(range(0, ROWS, 7))
    convert(table, table.with_suffix(".batches"), **READING)
    with pytest.raises(InvalidInput, match="output= needs the rows of files as they are"):
        convert(table.with_suffix(".batches"), out, on_bad_row="skip")


JSON_ROWS: list[dict[str, Any]] = [
    {
        "y": i % 2,
        "city": f"c{i % 5}",
        "x": None if i % 7 == 0 else i / 8,
        "note": f"Word{i % 3} word{i % 4}",
        "ok": i % 3 == 0,
    }
    | {"list": [1.5, i], "names": ["a", f"b{i % 3}"], "pairs": [{"name": "p", "value": i}], "deep": {"n": i % 6}}
    for i in range(400)
]
OF_JSON: dict[str, Any] = {"label": "y", "text": "note", "missing": "ignore"}


def columns_of(folder: Path) -> dict[str, Path]:
    """Rows with numbers, categories, text, lists and structures in every format that has these."""
    import pyarrow as pa
    from pyarrow import feather, orc

    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in JSON_ROWS))
    arrow = pa.Table.from_pylist(JSON_ROWS)
    pq.write_table(arrow, folder / "d.parquet", row_group_size=77)
    feather.write_feather(arrow, str(folder / "d.feather"))
    orc.write_table(arrow, str(folder / "d.orc"))
    return {suffix: folder / f"d.{suffix}" for suffix in ("jsonl", "parquet", "feather", "orc")}


@pytest.mark.parametrize("suffix", ["jsonl", "parquet", "feather", "orc"])
def test_every_format_becomes_vw_text_libsvm_parquet_and_batches(tmp_path: Path, suffix: str) -> None:
    path = columns_of(tmp_path)[suffix]
    model = train(path, bits=12, **OF_JSON).model
    for out in ("o.vw", "o.vw.gz", "o.libsvm", "o.batches"):
        convert(path, tmp_path / out, dim=2**12, **OF_JSON)
        assert train(tmp_path / out, bits=12).model.state_digest() == model.state_digest(), out
    convert(path, tmp_path / "o.parquet", **OF_JSON)
    assert train(tmp_path / "o.parquet", bits=12, **OF_JSON).model.state_digest() == model.state_digest()


def test_batches_have_no_names_for_vw_text(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("y,x\n1,2\n0,3\n")
    convert(tmp_path / "d.csv", tmp_path / "d.batches", label="y", dim=2**6)
    refusal = "output= needs .libsvm or .batches for data that is hashed and has no feature names, got .vw; "
    with pytest.raises(InvalidInput, match=re.escape(refusal)):
        convert(tmp_path / "d.batches", tmp_path / "d.vw")


def test_keys_that_the_first_lines_lack_are_not_lost_in_parquet(tmp_path: Path) -> None:
    path, out = tmp_path / "d.jsonl", tmp_path / "o.parquet"
    late = '{"y": 1, "x": 2, "none": null, "deep": {"late": 3}}\n'
    path.write_text('{"y": 1, "x": 1}\n{"y": 0, "x": 2}\n' * 6000 + late)
    refusal = "output= needs the keys of the first 10000 rows for .parquet, got another, 'deep.late'; write .batches"
    with pytest.raises(InvalidInput, match=re.escape(refusal)):
        convert(path, out, label="y")
    assert not out.exists()
    convert(path, tmp_path / "o.batches", label="y")
    path.write_text('{"y": 1, "deep": {"x": 1}}\n{"y": 0, "z": 2}\n' * 6000 + late.replace(', "x": 2', ""))
    convert(path, out, label="y", ignore="deep")
    assert pq.read_table(out).num_rows == 12_001


def test_a_map_of_categories_becomes_vw_text(tmp_path: Path) -> None:
    import pyarrow as pa

    maps = pa.array([[("k", 1), ("j", 2)], [("k", 3)]] * 20, pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"m": maps, "y": [1, 0] * 20}), tmp_path / "t.parquet")
    path = tmp_path / "d.jsonl"
    first = ['{"y": 1, "a": [1, "x"]}\n', '{"y": 0, "a": ["y"]}\n'] * 5000
    path.write_text("".join(first) + '{"y": 0, "new": [1, "x", true, {"name": "n", "value": 3}], "b": [true]}\n')
    for file, more in ((tmp_path / "t.parquet", {"categorical": "m"}), (path, {"missing": "ignore"})):
        options: dict[str, Any] = {"label": "y", **more}
        convert(file, tmp_path / "o.vw", dim=2**12, **options)
        assert (
            train(tmp_path / "o.vw", bits=12).model.state_digest()
            == train(file, bits=12, **options).model.state_digest()
        )


ODD_ROWS: list[dict[str, Any]] = [  # lists that are empty, missing or one value, and numbers among texts
    {"y": 1, "tags": ["a", 1, 2.5, 3.0, None, ""], "v": [1, None, 0.5], "c": 1.0, "p": [{"key": 3, "value": 1.5}]},
    {"y": 0, "tags": "a", "v": None, "c": "x", "p": []},
    {"y": 1, "tags": [], "v": [], "c": True, "p": [{"name": "n", "value": None}, {"name": None, "value": 1}]},
    {"y": 0, "tags": "", "c": 7, "p": [{"value": 2.0, "name": "k"}]},
]


@pytest.mark.parametrize("missing", ["indicator", "ignore"])
def test_json_lines_with_lists_are_the_same_rows_in_parquet(tmp_path: Path, missing: str) -> None:
    path, out = tmp_path / "d.jsonl", tmp_path / "o.parquet"
    path.write_text("".join(json.dumps(row) + "\n" for row in ODD_ROWS * 5))
    options: dict[str, Any] = {"label": "y", "missing": missing, "dim": 2**16}
    convert(path, out, **options)
    wanted = [entries(batch) for batch in data.open(path, **options).batches()]
    assert [entries(batch) for batch in data.open(out, **options).batches()] == wanted
    assert len(wanted) == 1
    assert len(wanted[0]) == 20
    assert sum(len(indices) for indices, _ in wanted[0]) > 60


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
    rows = [{"y": 1, "v": first}, {"y": 0, "v": first}] * 40_000 + [{"y": 1, "v": later}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InvalidInput, match=re.escape(message)):
        convert(path, out, label="y")
    train(path, bits=12, label="y", output=tmp_path / "m")
    args = [str(tmp_path / "m"), str(path), "--append", "-o"]
    assert command(["predict", *args, str(out)]) == 2
    assert message in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.jsonl", "m"]
    assert command(["predict", *args, str(tmp_path / "o.jsonl")]) == 0


def test_an_object_of_a_map_column_is_appended_as_names_and_values(tmp_path: Path) -> None:
    import pyarrow as pa

    maps = pa.array([[("k", 1.0), ("j", 2.0)], [], None] * 20, pa.map_(pa.string(), pa.float64()))
    pq.write_table(pa.table({"m": maps, "y": [1, 0, 0] * 20}), tmp_path / "t.parquet")
    model = train(tmp_path / "t.parquet", label="y", bits=12, output=tmp_path / "m").model
    (tmp_path / "d.jsonl").write_text('{"m": {"k": 1.0, "j": 2.0}}\n{"m": null}\n')
    args = [str(tmp_path / "m"), str(tmp_path / "d.jsonl"), "--append", "-o", str(tmp_path / "o.parquet")]
    assert command(["predict", *args]) == 0
    table = pq.read_table(tmp_path / "o.parquet")
    assert table["m"].to_pylist() == [[{"name": "k", "value": 1.0}, {"name": "j", "value": 2.0}], None]
    assert table["prediction"].to_pylist() == model.predict(tmp_path / "d.jsonl").tolist()
    assert model.predict(tmp_path / "o.parquet").tolist() == table["prediction"].to_pylist()


def test_vw_text_and_libsvm_become_parquet(tmp_path: Path) -> None:
    (tmp_path / "d.vw").write_text("1 2 'tag|a:2 x y:3 | z\n-1 | z\n" * 20)
    convert(tmp_path / "d.vw", tmp_path / "o.parquet")
    rows = pq.read_table(tmp_path / "o.parquet").to_pylist()
    features = [{"name": name, "value": value} for name, value in (("a^x", 2.0), ("a^y", 6.0), ("z", 1.0))]
    assert rows[0] == {"label": 1.0, "weight": 2.0, "tag": "tag", "features": features}
    assert rows[1] == {"label": -1.0, "weight": 1.0, "tag": None, "features": features[2:]}
    run = train(tmp_path / "o.parquet", label="label", weight="weight", ignore="tag", bits=12)
    assert run.progressive_loss == pytest.approx(train(tmp_path / "d.vw", bits=12).progressive_loss, rel=1e-6)
    (tmp_path / "d.libsvm").write_text("1 3:0.5 7:1\n-1 2:1\n")
    convert(tmp_path / "d.libsvm", tmp_path / "o.parquet")
    names = [[f["name"] for f in row] for row in pq.read_table(tmp_path / "o.parquet")["features"].to_pylist()]
    assert names == [["3", "7"], ["2"]]


def test_bad_rows_of_files_of_columns_are_left_out(tmp_path: Path) -> None:
    import pyarrow as pa

    columns = {"y": ["1", "0", "what", "1"], "x": [1.0, 2.0, 3.0, 4.0]}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    convert(tmp_path / "d.parquet", tmp_path / "o.vw", label="y", positive="1", on_bad_row="skip")
    assert (tmp_path / "o.vw").read_text() == "1 | x:1.0\n-1 | x:2.0\n-1 | x:3.0\n1 | x:4.0\n"
    convert(tmp_path / "d.parquet", tmp_path / "o.vw", label="y", loss="squared", on_bad_row="skip")
    assert (tmp_path / "o.vw").read_text() == "1 | x:1.0\n0 | x:2.0\n1 | x:4.0\n"


def test_dates_need_another_format_than_vw_text(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"y": 1, "t": "2024-01-01"}\n{"y": 0, "t": "2024-01-02"}\n')
    with pytest.raises(InvalidInput, match="output= needs columns of numbers, categories or text"):
        convert(tmp_path / "d.jsonl", tmp_path / "o.vw", label="y")


def test_other_options_are_refused(table: Path) -> None:
    out = table.with_suffix(".batches")
    convert(table, out, dim=2**12, **READING)
    same: dict[str, Any] = {"bits": 12, "on_bad_row": "skip"}
    for name, value in {
        "bits": 13,
        "seed": 5,
        "loss": "squared",
        "float64": True,
        "label": "w",
        "numeric": "city",
        "positive": "0",
        "format": "tsv",
        "sep": ";",
    }.items():
        with pytest.raises(InvalidInput, match=r"d.batches: expected batches made with \w+=.*, got .*; pass that"):
            train(out, **{**same, name: value})
    with pytest.raises(InvalidInput, match=r"got 30 bad rows left out when it was made, the first .*d.csv:8.*skip"):
        train(out, bits=12)
    with pytest.raises(InvalidInput, match=r"needs one .batches file, got 2"):
        train([out, out], **same)


def test_a_broken_file_is_refused(table: Path, tmp_path: Path) -> None:
    out = table.with_suffix(".batches")
    convert(table, out, dim=2**12, **READING)
    whole = out.read_bytes()
    rng = np.random.default_rng(1)
    positions = [0, 9, len(whole) - 1, len(whole) - 10, len(whole) - 40, *rng.integers(0, len(whole), 30).tolist()]
    for position in positions:
        out.write_bytes(whole[:position] + bytes([whole[position] ^ 64]) + whole[position + 1 :])
        with pytest.raises(FtprlError, match=r"d.batches: .*; convert the data again"):
            train(out, bits=12, on_bad_row="skip")
    for size in (0, 5, 40, len(whole) // 2, len(whole) - 1):
        out.write_bytes(whole[:size])
        with pytest.raises(FtprlError, match=r"d.batches: .*; convert the data again"):
            train(out, bits=12, on_bad_row="skip")


def test_cache_is_used_as_long_as_the_data_is_the_same(table: Path, tmp_path: Path) -> None:
    cache, options = tmp_path / "c.batches", {**READING, "passes": 2}
    wanted = model_bytes(table, **options)
    assert model_bytes(table, cache=cache, **options) == wanted
    made = cache.stat().st_mtime_ns
    assert model_bytes(table, cache=cache, **options) == wanted
    assert cache.stat().st_mtime_ns == made
    text = table.read_text()
    middle = text.index("\n", len(text) // 2) + 1
    table.write_text(text[:middle] + ("1" if text[middle] == "0" else "0") + text[middle + 1 :])
    changed = model_bytes(table, **options)
    assert changed != wanted
    assert model_bytes(table, cache=cache, **options) == changed  # the same size, one byte in the middle
    assert cache.stat().st_mtime_ns != made
    assert model_bytes(table, cache=cache, seed=3, **options) == model_bytes(table, seed=3, **options)
    cache.write_bytes(cache.read_bytes()[:-1])
    assert model_bytes(table, cache=cache, **options) == changed
    frame = [{"x": float(i), "y": i % 2} for i in range(50)]
    assert model_bytes(frame, label="y", cache=cache) == model_bytes(frame, label="y")


def test_receipts_and_checkpoints_of_a_cache(table: Path, tmp_path: Path) -> None:
    cache, good = tmp_path / "c.batches", {**READING, "receipt": True}
    assert model_bytes(table, cache=cache, **good) == model_bytes(table, **good)
    run = train(cache, bits=12, receipt=True, on_bad_row="skip", output=tmp_path / "m")
    receipt = make_receipt(run.model, certify_model(run.model))
    write_receipt(tmp_path / "r", receipt)
    assert verify_receipt(tmp_path / "r", cache).confirmed
    train(table, bits=12, cache=cache, checkpoint=tmp_path / "k", every=500, output=tmp_path / "a", **READING)
    train(table, cache=cache, resume=tmp_path / "k", output=tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_the_command(table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    args = ["convert", "d.csv", "--label", "y", "--weight", "w", "--numeric", "x", "--on-bad-row", "skip"]
    assert command([*args, "--bits", "10", "-o", "o.batches"]) == 0
    assert "left out 30 bad rows" in capsys.readouterr().err
    assert command([*args, "-o", "o.txt"]) == 2
    assert "--output needs a name that ends in .vw, .libsvm, .parquet or .batches" in capsys.readouterr().err
    assert command([*args, "-o", "d.csv"]) == 2
    assert command(["convert", "none.csv", "-o", "o.vw"]) == 2
    assert not Path("o.vw").exists()


@settings(max_examples=30)
@given(st.data())
def test_batches_come_back_as_they_were(draw: st.DataObject) -> None:
    """Rows of any shape, from any position on."""
    values = st.floats(-1e6, 1e6, width=32).filter(bool)
    row = st.dictionaries(st.integers(0, 99), st.one_of(st.just(1.0), values), max_size=5)
    parts = draw.draw(st.lists(st.lists(row, min_size=1, max_size=6), min_size=1, max_size=4))
    batches, first = [], 0
    for rows in parts:
        y = draw.draw(st.lists(st.sampled_from([1.0, -1.0]), min_size=len(rows), max_size=len(rows)))
        weight = draw.draw(st.sampled_from([None, [float(i) for i in range(len(rows))]]))
        batches.append(Batch.from_rows(rows, y=y, weight=weight, first_row=first))
        first += len(rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "b.batches")
        assert write_batches(path, data.open(batches, dim=100)) == first
        source = data.open(path)
        start = draw.draw(st.integers(0, first))
        actual = [b for b, _ in source.read(source.position({"rows": start}))]
    for name in ("y", "weight"):
        wanted = np.concatenate([getattr(b, name) for b in batches])[start:]
        np.testing.assert_array_equal(np.concatenate([getattr(b, name) for b in actual] or [[]]), wanted)
    all_rows = [dict(zip(*one, strict=True)) for b in batches for one in entries(b)]
    assert [dict(zip(*one, strict=True)) for b in actual for one in entries(b)] == all_rows[start:]


def entries(batch: Batch) -> list[tuple[list[int], list[float]]]:
    cuts = batch.indptr.tolist()
    pairs = itertools.pairwise(cuts)
    return [(batch.indices[a:b].tolist(), batch.values[a:b].tolist()) for a, b in pairs]
