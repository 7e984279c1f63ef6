"""Names of features: in the order of their rows, within a budget, independent of format, threads and batches."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ftprl
from ftprl import data
from ftprl._core import NameTable
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear import model_file
from ftprl.linear.name_budget import parse_budget
from ftprl.linear.names import Names
from oracles.hash_twin import feature_hash
from oracles.names_twin import cell_of

ROWS = [
    {"city": "Rome", "age": 31, "note": "Very good", "new": True, "y": 1},
    {"city": "Oslo", "age": None, "note": "not GOOD", "new": False, "y": 0},
    {"city": "Rome", "age": 7, "note": "", "new": None, "y": 1},
]
NAMES = [
    *("city=Rome", "age", "note=very", "note=good", "new=true"),
    *("city=Oslo", "age is missing", "note=not", "new=false"),
    *("note is missing", "new is missing"),
]


def frame() -> pl.DataFrame:
    return pl.DataFrame(ROWS)


def forms(folder: Path) -> dict[str, object]:
    table = frame()
    table.write_csv(folder / "t.csv")
    table.write_csv(folder / "t.tsv", separator="\t", quote_style="never")  # quotes are text in TSV
    table.write_parquet(folder / "t.parquet")
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    files = {name: str(folder / f"t.{name}") for name in ("csv", "tsv", "parquet", "jsonl")}
    categories = table.with_columns(pl.col("city").cast(pl.Categorical))
    return {**files, "polars": table, "pandas": table.to_pandas(), "dicts": ROWS, "categories": categories}


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "jsonl", "polars", "pandas", "dicts", "categories"])
def test_every_format_keeps_the_same_names(form: str, tmp_path: Path) -> None:
    run = ftprl.train(forms(tmp_path)[form], label="y", text="note", bits=12)
    assert run.model.names is not None
    assert run.model.names.all() == NAMES


def test_names_of_vw_text_have_their_namespace(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 |user ann :3 |ad b:2 long_name_of_more_than_sixteen_bytes\n-1 | plain |user:0.5 ann bob\n")
    names = ftprl.train(path, bits=10).model.names
    assert names is not None
    assert names.all() == [
        *("user^ann", "user^0", "ad^b", "ad^long_name_of_more_than_sixteen_bytes", "plain", "user^bob"),
    ]


def test_numbers_are_their_own_names(tmp_path: Path) -> None:
    (tmp_path / "a.libsvm").write_text("1 3:1 7:2\n-1 7:1\n")
    run = ftprl.train(tmp_path / "a.libsvm", bits=4)
    assert run.model.names is None
    assert sorted(run.model.weights_table()["name"].to_pylist()) == ["3", "7"]


def many(path: Path, rows: int = 3000) -> Path:
    rng = np.random.default_rng(5)
    lines = (f"{1 if a % 3 else -1} |u {a} |v {b} c{b % 7}\n" for a, b in rng.integers(0, 5000, (rows, 2)).tolist())
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_the_file_is_the_same_for_any_number_of_threads(threads: int, tmp_path: Path) -> None:
    path = many(tmp_path / "a.vw")
    one = ftprl.train(path, bits=9, names="5KB", threads=0, output=tmp_path / "one").model
    source = data.open(path, dim=512, names=True, block_size=1 << 10)
    other = ftprl.train(source, names="5KB", threads=threads, output=tmp_path / "other").model
    assert one.names is not None
    assert other.names is not None
    assert one.names.full_row == other.names.full_row is not None
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_resumed_run_has_the_same_names(tmp_path: Path) -> None:
    path, whole = many(tmp_path / "a.vw"), tmp_path / "whole"
    ftprl.train(path, bits=9, output=whole, checkpoint=tmp_path / "c", every=1234)
    ftprl.train(path, resume=tmp_path / "c", output=tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == whole.read_bytes()


def test_names_are_those_of_a_naive_list(tmp_path: Path) -> None:
    """The first name of each cell, in the order of their rows."""
    path = many(tmp_path / "a.vw", 400)
    model = ftprl.train(path, bits=8).model
    expected: dict[int, str] = {}
    for line in path.read_text().splitlines():
        for part in line.split("|")[1:]:
            space, *words = part.split()
            start = feature_hash(space.encode())
            for word in words:
                expected.setdefault(feature_hash(word.encode(), start) & 255, f"{space}^{word}")
    assert model.names is not None
    assert model.names.all() == list(expected.values())
    table = model.weights_table()
    assert table.num_rows == model.occupied == len(expected)
    assert dict(zip(table["cell"].to_pylist(), table["name"].to_pylist(), strict=True)) == expected


def test_a_budget_that_is_full_ends_at_a_row(tmp_path: Path) -> None:
    model = ftprl.train(many(tmp_path / "a.vw"), bits=12, names=1000).model
    names = model.names
    assert names is not None
    assert names.full_row is not None
    assert 0 < names.bytes <= names.budget == 1000
    kept = names.all()
    assert names.full_row - 1 <= len(kept) <= 3 * names.full_row
    assert any(name.isdigit() for name in model.weights_table()["name"].to_pylist())  # cells without a name


def test_no_names(tmp_path: Path) -> None:
    path = many(tmp_path / "a.vw")
    with_names = ftprl.train(path, bits=9, output=tmp_path / "with").model
    without = ftprl.train(path, bits=9, names=0, output=tmp_path / "without").model
    assert without.names is None
    assert without.state_digest() == with_names.state_digest()
    assert (tmp_path / "without").stat().st_size < (tmp_path / "with").stat().st_size


def test_names_survive_a_file_and_a_copy(tmp_path: Path) -> None:
    model = ftprl.train(frame(), label="y", text="note", bits=12, output=tmp_path / "m").model
    loaded = ftprl.load(tmp_path / "m")
    assert loaded.names is not None
    assert loaded.names.all() == NAMES
    assert loaded.to_bytes() == model.to_bytes() == (tmp_path / "m").read_bytes()


def test_names_that_are_no_names_are_refused(tmp_path: Path) -> None:
    ftprl.train(frame(), label="y", text="note", bits=12, output=tmp_path / "m")
    content, tensors = model_file.read(tmp_path / "m")
    for key, wrong in {
        "names.sizes": tensors["names.sizes"] + np.uint32(1),
        "names.hashes": tensors["names.hashes"][:-1],
        "names.text": tensors["names.text"][:-1],
    }.items():
        model_file.write(tmp_path / "bad", content, {**tensors, key: wrong})
        with pytest.raises(BadModel):
            ftprl.load(tmp_path / "bad")
    model_file.write(tmp_path / "bad", content, {k: t for k, t in tensors.items() if k != "names.text"})
    with pytest.raises(BadModel):
        ftprl.load(tmp_path / "bad")


@pytest.mark.parametrize("value", ["many", "-1", "64 apples", True, "1e99GB"])
def test_a_budget_needs_to_be_a_size(value: object) -> None:
    with pytest.raises(InvalidInput, match="names= needs a size such as 64MB"):
        parse_budget(value)


def test_resume_keeps_the_budget(tmp_path: Path) -> None:
    path = many(tmp_path / "a.vw", 100)
    ftprl.train(path, bits=8, names="1MB", output=tmp_path / "m")
    ftprl.train(path, resume=tmp_path / "m", names="1MB")
    with pytest.raises(InvalidInput, match="names= needs to be what the model was trained with"):
        ftprl.train(path, resume=tmp_path / "m", names="2MB")


def test_repr_and_length() -> None:
    assert repr(Names(8, 100)) == "Names(0 names, 0 of 100 bytes)"
    assert len(Names(8, 100)) == 0


def test_many_names_that_come_again_are_recorded_once(tmp_path: Path) -> None:
    count = 200_000
    path = tmp_path / "many.vw"
    lines = (f"1 | {' '.join(f'n{i}' for i in range(start, start + 50))}\n" for start in range(0, count, 50))
    path.write_text("".join(lines) * 2)
    kept: list[list[str]] = []
    for threads in (0, 1, 2):
        source, names, recorded = data.open(path, dim=2**20, names=True), Names(2**20), 0
        for batch, position in source.read(threads=threads):
            assert batch.names is not None
            recorded += len(batch.names.new)
            names.add(batch, position.rows)
        assert recorded <= max(1, threads) * len(names)
        kept.append(names.all())
    assert kept[0] == kept[1] == kept[2]
    numbers = [int(name[1:]) for name in kept[0]]
    assert numbers == sorted(set(numbers))
    cells = 2**20 * (1 - np.exp(-count / 2**20))  # that so many names are expected to land in
    assert len(numbers) == pytest.approx(cells, rel=0.01)


@pytest.mark.parametrize("budget", [64_000_000, 100_000])
def test_names_added_in_the_background_are_those_added_at_once(budget: int, tmp_path: Path) -> None:
    path = many(tmp_path / "a.vw", 40_000)
    kept = []
    for background in (False, True):
        names, rows = Names(2**16, budget), 0
        for batch, position in data.open(path, dim=2**16, names=True, block_size=1 << 16).read(threads=2):
            for part in batch.cut(700):
                names.add(part, position.rows + part.first_row - batch.first_row, background=background)
            rows += len(batch)
        assert (rows, names.full_row is None) == (40_000, budget > 100_000)
        kept.append((names.full_row, names.all(), names.bytes))
    assert kept[0] == kept[1]


class _OutOfMemory:
    """A mapping of names for which the table has no room."""

    def __init__(self, new: object) -> None:
        self.new = new

    def add_to(self, table: object) -> tuple[int | None, int | None]:
        raise MemoryError


def test_an_error_of_the_background_reaches_who_looks_at_the_names(tmp_path: Path) -> None:
    names = Names(2**16)
    batch = next(iter(data.open(many(tmp_path / "a.vw", 4000), dim=2**16, names=True).batches()))
    assert batch.names is not None
    assert len(batch.names.new) >= 2048  # as many as wake the thread
    names.add(batch.replaced(names=_OutOfMemory(batch.names.new)), 0, background=True)
    for look in (lambda: len(names), lambda: names.full_row, lambda: names.add(batch, 0)):
        with pytest.raises(MemoryError):
            look()


def test_a_full_budget_ends_the_recording_of_every_parser(tmp_path: Path) -> None:
    path = tmp_path / "pairs.vw"
    path.write_text("".join(f"1 |a {i} {i + 1} |b {i} x{i % 7}\n" for i in range(60_000)))
    options = {"dim": 2**16, "names": True, "interactions": "a:b", "block_size": 1 << 14}
    source, names = data.open(path, **options), Names(2**16, 2000)
    recorded = []
    for batch, position in source.read(threads=2):
        names.add(batch, position.rows)
        recorded.append(0 if batch.names is None else len(batch.names.new))
    alone = Names(2**16, 2000)
    for batch, position in data.open(path, **options).read(threads=0):
        alone.add(batch, position.rows)
    assert names.full_row == alone.full_row is not None
    assert names.all() == alone.all()
    assert recorded[-1] == 0


@pytest.mark.parametrize("threads", [0, 2])
def test_dictionaries_that_grow_and_new_row_groups_keep_the_names_of_csv(threads: int, tmp_path: Path) -> None:
    rows = 40_000
    table = pl.DataFrame(
        {
            "city": [f"c{(i * i) % 30_011}" for i in range(rows)],
            "kind": [("é", "b", "", None)[i % 4] for i in range(rows)],
            "big": [i % 300 > 150 for i in range(rows)],
            "y": [i % 2 for i in range(rows)],
        }
    )
    table.write_csv(tmp_path / "t.csv")
    options = {"dictionary_pagesize_limit": 4096, "row_group_size": 15_000}
    table.write_parquet(tmp_path / "t.parquet", use_pyarrow=True, pyarrow_options=options)
    kept = []
    for name in ("t.csv", "t.parquet"):
        names = Names(2**18)
        for batch, position in data.open(tmp_path / name, label="y", dim=2**18, names=True).read(threads=threads):
            names.add(batch, position.rows)
        kept.append(names.all())
    assert kept[0] == kept[1]
    assert len(kept[0]) > 10_000


def names_of(path: Path, threads: int = 0, **options: Any) -> list[str]:
    names = Names(options["dim"])
    for batch, position in data.open(path, names=True, **options).read(threads=threads):
        names.add(batch, position.rows)
    return names.all()


def test_names_of_a_row_that_is_left_out_come_with_the_next_row_that_has_them(tmp_path: Path) -> None:
    """A row may turn out to be bad after its names were recorded: inside it, or at a value beyond float32."""
    path = tmp_path / "a.vw"
    path.write_text("1 | a b:1e31 c\n1 | d e:x\n1 | b f\n1 | a d e\n1e31 | g\n1 | c g\n")
    assert names_of(path, dim=2**20, on_bad_row="skip", dtype="float32") == ["b", "f", "a", "d", "e", "c", "g"]


@pytest.mark.parametrize("dim", [2**20, 2**12, 1_000_003])
def test_names_of_more_rows_than_are_counted_apart(dim: int, tmp_path: Path) -> None:
    path, rows = tmp_path / "a.vw", 70_000
    path.write_text("".join(f"1 | n{i % 65_535 // 16} k{i % 5} n{i % 65_535 // 16}\n" for i in range(rows)))
    expected: dict[int, str] = {}
    for i in range(rows):
        for name in (f"n{i % 65_535 // 16}", f"k{i % 5}"):
            expected.setdefault(cell_of(feature_hash(name.encode()), dim), name)
    assert names_of(path, dim=dim) == list(expected.values())
    values = np.concatenate([batch.values for batch in data.open(path, dim=dim, names=True).batches()])
    assert values.sum() == 3 * rows
    assert np.isin(values, (1, 2, 3)).all()


def test_many_names_are_all_found_again_and_views_of_them_stay(tmp_path: Path) -> None:
    """The lists and the table of names grow many times; the oracle is a dict."""
    rng = np.random.default_rng(7)
    rows, expected, views = 40_000, {}, []
    path = tmp_path / "a.vw"
    with path.open("w") as out:
        for _ in range(rows):
            words = [f"n{value}" for value in rng.integers(0, 200_000, 6).tolist()]
            expected |= dict.fromkeys(words)
            out.write(f"1 | {' '.join(words)}\n")
    names = Names(2**30, 64_000_000)
    for batch, _ in data.open(path, dim=2**30, names=True).read(threads=1):
        names.add(batch, batch.first_row)
        table = names.table
        views.append((table.hashes, table.sizes, table.text, [part.copy() for part in (table.hashes, table.sizes)]))
    stored = [names.table.name(i).decode() for i in range(len(names.table))]
    assert len(stored) > 100_000
    # Names that share one of 2^30 cells count as one: of 140,000 about nine.
    assert len(expected) - 40 < len(stored) <= len(expected)
    order = {name: i for i, name in enumerate(expected)}
    positions = [order[name] for name in stored]
    assert positions == sorted(positions)
    for hashes, sizes, text, (old_hashes, old_sizes) in views:
        assert np.array_equal(hashes, old_hashes)
        assert np.array_equal(sizes, old_sizes)
        assert bytes(text) == "".join(stored[: len(sizes)]).encode()


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 1001])
def test_a_text_is_joined_to_the_tensor_that_a_copy_of_it_makes(size: int) -> None:
    body = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)
    joined, packed = model_file.joined_bytes(body), model_file.pack_bytes(body)
    assert (joined.shape, joined.dtype) == (packed.shape, packed.dtype)
    for start in range(0, len(packed) + 1, max(1, len(packed) // 40)):
        for stop in (start, start + 1, start + 3, len(packed)):
            np.testing.assert_array_equal(joined[start:stop], packed[start:stop])


def test_a_table_grows_beyond_the_addresses_that_it_begins_with() -> None:
    size, count = 1_000_000, 70  # the lists have addresses for 64 MB
    table = NameTable(2**30, 0)
    hashes = np.arange(1, count + 1, dtype=np.uint64)
    text = b"".join(bytes([i]) * size for i in range(count))
    assert table.load(hashes[:40], np.full(40, size, np.uint32), text[: 40 * size], False)
    seen = table.text  # stays as it is while somebody looks at it
    assert [table.name(i)[:: size - 1] for i in range(40)] == [bytes([i, i]) for i in range(40)]
    whole = NameTable(2**30, 0)
    assert whole.load(hashes, np.full(count, size, np.uint32), text, False)
    assert bytes(whole.text) == text
    assert bytes(seen) == text[: 40 * size]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_name_that_a_row_has_twice_is_kept_once(rows: int, tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("".join(f"1 |a x y x n{i} |b z z n{i} n{i}\n" for i in range(rows)))
    names = names_of(path, dim=2**20, interactions="a:b")
    assert len(names) == len(set(names))
    expected = {
        f"{one}*{other}" for i in range(rows) for one in ("a^x", "a^y", f"a^n{i}") for other in ("b^z", f"b^n{i}")
    }
    singles = {"a^x", "a^y", "b^z"} | {f"{space}^n{i}" for space in "ab" for i in range(rows)}
    assert set(names) == expected | singles


def odd_cells(rows: int = 4000) -> list[tuple[str, str, str]]:
    """Return rows of two categories and a number, of which some are empty and some are too large."""
    rng = np.random.default_rng(8)
    cells = rng.integers(0, 3000, (rows, 4)).tolist()
    return [
        (
            f"a{a}" if d % 11 else "",
            f"{b} {b}" if d % 13 == 0 else f"b{b}" * (1 + d % 3),
            "1e31" if d % 17 == 0 else str(c),
        )
        for a, b, c, d in cells
    ]


def vw_row(a: str, b: str, c: str) -> str:
    return f"1 |u {a} x:{c} |v {b}\n"


def vw_names(a: str, b: str, c: str) -> list[str]:
    return [f"u^{word}" for word in [*a.split(), "x"]] + [f"v^{word}" for word in b.split()]


def csv_row(a: str, b: str, c: str) -> str:
    return f"1,{a},{c},{json.dumps(b)}\n" if len(b) > 12 else f"1,{a},{c},{b}\n"


def json_row(a: str, b: str, c: str) -> str:
    return f'{{"y": 1, "a": {json.dumps(a) if a else "null"}, "c": {c}, "b": {json.dumps(b)}}}\n'


def table_names(a: str, b: str, c: str) -> list[str]:
    return [f"a={a}" if a else "a is missing", "c", f"b={b}"]


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    ("suffix", "head", "row", "names", "options"),
    [
        ("vw", "", vw_row, vw_names, {}),
        ("csv", "y,a,c,b\n", csv_row, table_names, {"label": "y", "numeric": "c"}),
        ("jsonl", "", json_row, table_names, {"label": "y", "numeric": "c"}),
    ],
)
def test_names_of_rows_of_many_kinds_are_those_of_a_naive_list(
    suffix: str, head: str, row: Any, names: Any, options: dict[str, Any], threads: int, tmp_path: Path
) -> None:
    """Fast, careful and skipped rows follow each other; names come in the order of their rows."""
    path, cells = tmp_path / f"t.{suffix}", odd_cells()
    path.write_text(head + "".join(row(*one) for one in cells))
    expected = [name for one in cells if one[2] != "1e31" for name in names(*one)]
    kept = names_of(path, threads, dim=2**30, block_size=1 << 14, on_bad_row="skip", **options)
    assert kept == list(dict.fromkeys(expected))
