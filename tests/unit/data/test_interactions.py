"""Interactions as options: what is refused, what a model keeps."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import data
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear.names import Names


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("user,ad,price,y\n" + "ann,a,1,1\nbob,b,2,0\nann,b,3,0\nbob,a,4,1\n" * 50)
    return path


def test_a_product_that_decides_is_learned(table: Path) -> None:
    """Labels are those of user and ad together; neither tells them alone."""
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
    names = Names()
    names.add(batch, 0)
    assert len(batch.indices) == pytest.approx(2 + 3 * count, rel=0.01)
    kept = names.all()
    assert kept[:3] == ["a^x", "a^y", "b^f0"]
    assert kept[-1] == f"a^y*b^f{count - 1}"


def test_names_of_products_are_those_of_their_factors(tmp_path: Path) -> None:
    """In the order of their rows, also those of a part of a batch and of a batch that went to another process."""
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
        names = Names()
        for part in parts:
            names.add(part, 0)
        assert names.all() == list(expected)
    full = Names(names.bytes - 1)
    full.add(batch, 100)
    assert (full.all(), full.full_row) == (list(expected)[:-1], 103)


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
