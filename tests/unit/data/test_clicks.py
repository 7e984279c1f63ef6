"""The click log: equal rows in every format, equal bytes for equal seeds, and learnable labels."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from ftprl import data
from ftprl.data import clicks
from ftprl.errors import InvalidInput
from oracles.batches import rows_of, same


def make(tmp_path: Path, name: str, rows: int = 3000, seed: int = 1) -> Path:
    clicks.generate(rows, seed, tmp_path / name)
    return tmp_path / name


def test_formats_hold_the_same_rows(tmp_path: Path) -> None:
    expected = rows_of(data.open(make(tmp_path, "a.vw")).batches())
    assert len(expected) == 3000
    for name in ("a.csv", "a.tsv", "a.csv.gz", "a.tsv.zst"):
        same(rows_of(data.open(make(tmp_path, name), label="click", missing="ignore").batches()), expected)
    same(rows_of(data.open(make(tmp_path, "b.vw.zst")).batches()), expected)
    actual = rows_of(data.open(make(tmp_path, "a.libsvm")).batches())
    assert [(row.y, sorted(row.features.values())) for row in actual] == [
        (row.y, sorted(row.features.values())) for row in expected
    ]


def test_kinds(tmp_path: Path) -> None:
    kinds = data.open(make(tmp_path, "a.csv"), label="click").describe().columns or {}
    assert [kinds[f"I{i}"] for i in range(1, 14)] == ["numeric"] * 13
    assert [kinds[f"C{j}"] for j in range(1, 27)] == ["categorical"] * 26


@pytest.mark.parametrize("name", ["a.vw", "a.csv.gz", "a.libsvm.zst"])
def test_same_seed_same_bytes(tmp_path: Path, name: str) -> None:
    first = make(tmp_path, name).read_bytes()
    assert make(tmp_path, name).read_bytes() == first
    assert make(tmp_path, name, seed=2).read_bytes() != first


def test_a_short_log_begins_a_long_one(tmp_path: Path) -> None:
    long = make(tmp_path, "long.vw", rows=10_000).read_bytes()
    assert long.startswith(make(tmp_path, "short.vw", rows=9000).read_bytes())


@pytest.mark.parametrize("seed", range(5))
def test_share_and_tails(seed: int) -> None:
    blocks = list(clicks.blocks(50_000, seed))
    assert 0.15 < np.concatenate([block.click for block in blocks]).mean() < 0.35
    ranks = np.concatenate([block.ranks for block in blocks])
    for j, size in enumerate(clicks.SIZES):
        assert ranks[:, j].max() < size
    largest = ranks[:, 0]
    _, counts = np.unique(largest[largest >= 0], return_counts=True)
    assert counts.max() > 1000  # the head is heavy
    assert (counts == 1).sum() > 5000  # and the tail is long


def test_labels_follow_the_hidden_model() -> None:
    block = next(clicks.blocks(8192, 3))
    score = clicks.hidden_score(block.counts, block.ranks, 3)
    assert score[block.click].mean() > score[~block.click].mean() + 1.0


@pytest.mark.parametrize("name", ["a.txt", "a.vw.xz", "a", "a.vw.bz2"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"path needs a name that ends in .*, got '{name}'"):
        make(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_bad_arguments(tmp_path: Path) -> None:
    for rows, seed in ((-1, 0), (1, -1), (1, 2**63)):
        with pytest.raises(InvalidInput, match=r"(rows|seed) needs a whole number"):
            make(tmp_path, "a.vw", rows, seed)
    with pytest.raises(InvalidInput, match="No such file or directory"):
        make(tmp_path, "none/a.vw")


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.vw.gz", rows=10)
    before = gzip.decompress((tmp_path / "a.vw.gz").read_bytes())

    def broken(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(clicks, "draw_block", broken)
    with pytest.raises(OSError, match="no room"):
        make(tmp_path, "a.vw.gz", seed=99)
    assert [path.name for path in tmp_path.iterdir()] == ["a.vw.gz"]
    assert gzip.decompress((tmp_path / "a.vw.gz").read_bytes()) == before
