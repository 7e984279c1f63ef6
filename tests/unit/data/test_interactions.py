"""Interactions as options: what is refused, what a model keeps."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import data
from ftprl.errors import BadFormat, BadModel, InvalidInput
from ftprl.linear import model_file
from ftprl.linear.names import Names
from oracles import names_twin


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("user,ad,price,y\n" + "ann,a,1,1\nbob,b,2,0\nann,b,3,0\nbob,a,4,1\n" * 50)
    return path


def test_a_product_that_decides_is_learned(table: Path) -> None:
    """Labels depend on the product of user and ad; neither predicts them alone."""
    path = table.with_name("xor.csv")
    path.write_text("user,ad,y\n" + "ann,a,1\nbob,b,1\nann,b,0\nbob,a,0\n" * 200)
    alone = ftprl.train(path, label="y", bits=12)
    crossed = ftprl.train(path, label="y", bits=12, interactions="user:ad")
    assert crossed.progressive_loss < 0.3 * alone.progressive_loss
    assert crossed.model.names is not None
    assert "user=ann*ad=b" in crossed.model.names.all()


def test_a_model_predicts_with_its_interactions(table: Path, tmp_path: Path) -> None:
    ftprl.train(table, label="y", bits=12, interactions=["user:ad", "price:user"], output=tmp_path / "m")
    model = ftprl.load(tmp_path / "m")
    assert model.reading["interactions"] == [["user", "ad"], ["price", "user"]]
    rows = [{"user": "ann", "ad": "a", "price": 1}]
    assert model.predict(rows)[0] == model.predict(table)[0]
    names = {entry.name for entry in model.explain(rows[0]).contributions}
    assert {"user=ann*ad=a", "price*user=ann"} <= names


def test_resume_keeps_interactions(table: Path, tmp_path: Path) -> None:
    ftprl.train(table, label="y", bits=12, interactions="user:ad", output=tmp_path / "m")
    ftprl.train(table, resume=tmp_path / "m", interactions="user:ad")
    with pytest.raises(InvalidInput, match="interactions= needs to be what the model was trained with"):
        ftprl.train(table, resume=tmp_path / "m", interactions="user:price")


@pytest.mark.parametrize("given", ["user", "user:", ":", "a:b:c:d:e", [["user"]]])
def test_what_is_no_interaction_is_refused(given: Any, table: Path) -> None:
    with pytest.raises(InvalidInput, match="interactions= needs 2 to 4 columns"):
        data.open(table, label="y", interactions=given)


def test_an_unknown_column_is_refused_with_the_nearest(table: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"interactions= needs columns with features, got 'usr'; did you mean 'user'\?"
    ):
        data.open(table, label="y", interactions="usr:ad")
    with pytest.raises(InvalidInput, match="got 'y'"):
        data.open(table, label="y", interactions="user:y")


def test_an_unknown_key_of_dicts_and_json_lines_is_refused(tmp_path: Path) -> None:
    rows = [{"user": "ann", "ad": "a", "y": 1}, {"user": "bob", "ad": "b", "y": 0}] * 20
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for given in (rows, path):
        with pytest.raises(
            InvalidInput, match=r"interactions= needs columns with features, got 'usr'; did you mean 'user"
        ):
            ftprl.train(given, label="y", interactions="usr:ad", bits=12)
        with pytest.raises(InvalidInput, match="interactions= needs columns with features, got 'y';"):
            ftprl.train(given, label="y", interactions="user:y", bits=12)
        assert ftprl.train(given, label="y", interactions="user:ad", bits=12).rows == 40


def test_keys_of_word_counts_may_come_later(tmp_path: Path) -> None:
    rows = [{f"w{i % 50}": 1, "y": i % 2} for i in range(100)] + [{"late": 1, "w0": 1, "y": 1}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for given in (rows[:100], path):
        assert ftprl.train(given, label="y", interactions="later:w0", bits=12).rows >= 100


def test_numbers_have_no_interactions(tmp_path: Path) -> None:
    (tmp_path / "a.libsvm").write_text("1 3:1\n")
    for source in (tmp_path / "a.libsvm", np.eye(3)):
        with pytest.raises(InvalidInput, match="interactions= is for features with names"):
            data.open(source, interactions="a:b")


def test_too_many_products_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 |a " + " ".join(f"f{i}" for i in range(2000)) + "\n")
    with pytest.raises(BadFormat, match="expected at most 1048576 interactions in a row, got more"):
        list(data.open(path, interactions="a:a").batches())


def test_pairs_of_a_row_with_more_features_than_16_bits_count(tmp_path: Path) -> None:
    path, count = tmp_path / "a.vw", 66_000
    path.write_text("1 |a x y |b " + " ".join(f"f{i}" for i in range(count)) + "\n")
    source = data.open(path, dim=2**26, names=True, interactions="a:b")
    (batch,) = source.batches()
    names = Names(2**26)
    names.add(batch, 0)
    assert len(batch.indices) == pytest.approx(2 + 3 * count, rel=0.01)
    kept = names.all()
    assert kept[:3] == ["a^x", "a^y", "b^f0"]
    assert kept[-1] == f"a^y*b^f{count - 1}"


def test_names_of_products_are_those_of_their_factors(tmp_path: Path) -> None:
    """Names of products come in the order of their rows, also after cutting and sending batches."""
    rows = [
        (["x", "a_name_of_more_than_sixteen_bytes"], ["p", "q", "eight_bs"]),
        (["x", "y", "nine_byte"], ["q"]),
        (["y"], ["p", "r", "x"]),
    ] * 5
    path = tmp_path / "a.vw"
    path.write_text("".join(f"1 |a {' '.join(one)} |b {' '.join(two)}\n" for one, two in rows))
    (batch,) = data.open(path, dim=2**20, names=True, interactions="a:b").batches()
    expected: dict[str, None] = {}
    for one, two in rows:
        first, second = [f"a^{name}" for name in one], [f"b^{name}" for name in two]
        expected.update(dict.fromkeys([*first, *second, *(f"{a}*{b}" for a in first for b in second)]))
    for parts in ([batch], [batch[:1], batch[1:]], [pickle.loads(pickle.dumps(batch))]):
        names = Names(2**20)
        for part in parts:
            names.add(part, 0)
        assert names.all() == list(expected)


def pair_rows(rows: int, seed: int) -> list[tuple[list[str], list[str]]]:
    """Return VW rows with two namespaces, words of every length, and more new products than new words."""
    rng = np.random.default_rng(seed)
    words = [["x" * (i % 23) + str(i) for i in draw] for draw in rng.zipf(1.3, (2 * rows, 4)).clip(0, 9999).tolist()]
    return list(zip(words[::2], words[1::2], strict=True))


def write_pairs(path: Path, rows: list[tuple[list[str], list[str]]]) -> Path:
    path.write_text("".join(f"{1 - 2 * (len(a[0]) % 2)} |a {' '.join(a)} |b {' '.join(b)}\n" for a, b in rows))
    return path


@pytest.mark.parametrize(
    ("budget", "ends"), [(2_000, "both"), (60_000, "both"), (400_000, "products"), (10**7, "none")]
)
@pytest.mark.parametrize("threads", [0, 2])
def test_names_of_products_take_at_most_a_quarter_of_the_budget(
    budget: int, ends: str, threads: int, tmp_path: Path
) -> None:
    """When products have no space left, features are still named; the oracle is a dict."""
    rows = pair_rows(3000, 1)
    path = write_pairs(tmp_path / "a.vw", rows)
    expected = names_twin.kept_names([names_twin.pairs_of(*row) for row in rows], budget, 2**20)
    is_full = (expected.full_row is not None, expected.products_full_row is not None)
    assert is_full == {"both": (True, True), "products": (False, True), "none": (False, False)}[ends]
    source = data.open(path, dim=2**20, names=True, interactions="a:b", block_size=1 << 12)
    for background in (False, True):
        names = Names(2**20, budget)
        for batch, position in source.read(threads=threads):
            for part in batch.cut(7):
                names.add(part, position.rows + part.first_row - batch.first_row, background=background)
        assert names.all() == expected.names
        assert (names.full_row, names.products_full_row) == (expected.full_row, expected.products_full_row)
        assert names.table.product_bytes == expected.product_bytes <= budget // 4
        assert names.has_all == (ends == "none")


def test_products_without_space_do_not_hide_features(tmp_path: Path) -> None:
    """A product and a feature may share a cell: it is the product's only if the name of the product is kept."""
    count = 60_000
    rows = [([f"p{i}" for i in range(start, start + 200)], ["q"]) for start in range(0, count, 200)]
    rows += [([f"s{i}" for i in range(start, start + 200)], []) for start in range(0, count, 200)]
    named = [names_twin.pairs_of(*row) for row in rows]
    budget = 3_300_000
    expected = names_twin.kept_names(named, budget, 2**20)
    assert expected.full_row is None
    assert expected.products_full_row is not None
    kept = set(expected.names)
    left_out = {key % 2**20 for row in named for name, key in row.products if name not in kept}
    assert [name for row in named for name, key in row.single if key % 2**20 in left_out and name in kept]
    names = Names(2**20, budget)
    for batch, position in data.open(
        write_pairs(tmp_path / "a.vw", rows), dim=2**20, names=True, interactions="a:b"
    ).read(threads=0):
        names.add(batch, position.rows)
    assert names.all() == expected.names


@pytest.mark.parametrize("every", [37, 500])
def test_a_resumed_run_keeps_the_names_of_products(every: int, tmp_path: Path) -> None:
    rows = pair_rows(1200, 3)
    path = write_pairs(tmp_path / "a.vw", rows)
    options = {"bits": 16, "interactions": "a:b", "names": "100KB"}
    whole = ftprl.train(path, **options, output=tmp_path / "whole", checkpoint=tmp_path / "c", every=every).model
    expected = names_twin.kept_names([names_twin.pairs_of(*row) for row in rows], 100_000, 2**16)
    assert whole.names is not None
    assert whole.names.products_full_row == expected.products_full_row is not None
    assert whole.names.all() == expected.names
    resumed = ftprl.train(path, resume=tmp_path / "c", output=tmp_path / "resumed").model
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert resumed.names is not None
    assert resumed.names.content()["products"] == {
        "bytes": expected.product_bytes,
        "full_row": expected.products_full_row,
    }
    assert ftprl.load(tmp_path / "whole").to_bytes() == whole.to_bytes()


@pytest.mark.parametrize("wrong", [{"bytes": 10**7}, {"bytes": -1}, {"bytes": 16_000_001}, {"full_row": 0}, {"x": 1}])
def test_bytes_of_products_that_cannot_be_are_refused(wrong: dict[str, int], tmp_path: Path) -> None:
    path = write_pairs(tmp_path / "a.vw", pair_rows(300, 4))
    ftprl.train(path, bits=14, interactions="a:b", output=tmp_path / "m")
    content, tensors = model_file.read(tmp_path / "m")
    content["names"]["products"] |= wrong
    model_file.write(tmp_path / "bad", content, tensors)
    with pytest.raises(BadModel):
        ftprl.load(tmp_path / "bad")


def test_rows_learned_one_by_one_keep_names_within_the_same_quarter() -> None:
    rng = np.random.default_rng(6)
    rows = [{"u": f"u{a}", "v": f"v{b}"} for a, b in rng.integers(0, 200, (3000, 2)).tolist()]
    labelled = [{**row, "y": i % 2} for i, row in enumerate(rows)]
    options = {"label": "y", "bits": 22, "interactions": "u:v", "names": "40KB"}
    batched = ftprl.train(labelled, **options).model.names
    online = ftprl.train(labelled[:10], **options).model
    for i, row in enumerate(rows[10:]):
        online.learn_one(row, i % 2)
    names = online.names
    assert names is not None
    assert batched is not None
    assert names.products_full_row == batched.products_full_row is not None
    assert names.all() == batched.all()
    assert sum("*" not in name for name in names.all()) == 400


@pytest.mark.parametrize("sizes", [(1, 1), (3, 3), (10, 10), (13, 26), (40, 40)])
def test_a_long_row_has_all_products_once_and_repeats_are_summed(sizes: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    first, second = ([f"{letter}{i}" for i in range(size)] for letter, size in zip("pq", sizes, strict=True))
    path.write_text(f"1 |a {' '.join(first)} |b {' '.join(second)}\n1 |a p0 {' '.join(first)} |b {' '.join(second)}\n")
    (batch,) = data.open(path, dim=2**30, interactions="a:b", intercept=False).batches()
    once, twice = batch[:1], batch[1:]
    assert len(once.indices) == len(set(once.indices.tolist())) == sizes[0] + sizes[1] + sizes[0] * sizes[1]
    assert (once.values == 1).all()
    assert sorted(twice.indices.tolist()) == sorted(once.indices.tolist())
    assert (twice.values == 2).sum() == 1 + sizes[1]
