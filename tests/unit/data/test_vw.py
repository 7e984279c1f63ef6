"""VW text: labels, importance, tags, namespaces, and every kind of bad row."""

import math
from pathlib import Path

import numpy as np
import pytest

from ftprl import data
from ftprl.errors import BadFormat
from oracles.batches import real, rows_of, totals
from oracles.readers_twin import Row, Twin

REMEDY = "; fix the row, or pass on_bad_row=skip"


def read(tmp_path: Path, text: str, **options: object) -> list[Row]:
    path = tmp_path / "a.vw"
    path.write_text(text, encoding="utf-8", newline="")
    return rows_of(data.open(path, intercept=False, **options).batches())  # type: ignore[arg-type]


def slot(name: str, namespace: str = "") -> int:
    return Twin(intercept=False).slot(name.encode(), namespace.encode())


def test_a_row(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "1 2.5 'zebra|size:2 height:1.5 |says black stripes | plain\n")
    assert row.features == {
        slot("height", "size"): 3.0,
        slot("black", "says"): 1.0,
        slot("stripes", "says"): 1.0,
        slot("plain"): 1.0,
    }
    assert (row.y, row.weight, row.tag) == (1.0, 2.5, "zebra")


@pytest.mark.parametrize(
    ("head", "y", "weight", "tag"),
    [
        ("", math.nan, 1, ""),
        (" ", math.nan, 1, ""),
        ("1 ", 1, 1, ""),
        ("-1 ", -1, 1, ""),
        ("0 ", -1, 1, ""),
        ("+1.0 0 ", 1, 0, ""),
        ("1 'a ", 1, 1, "a"),
        ("1 'a", 1, 1, "a"),
        ("1 a", 1, 1, "a"),
        ("'a ", math.nan, 1, "a"),
        ("1", math.nan, 1, "1"),  # it touches the bar: a tag, as in Vowpal Wabbit
        ("1\t", 1, 1, ""),
    ],
)
def test_before_the_bar(tmp_path: Path, head: str, y: float, weight: float, tag: str) -> None:
    (row,) = read(tmp_path, f"{head}| a\n")
    np.testing.assert_equal((row.y, row.weight, row.tag), (y, weight, tag))
    assert row.features == {slot("a"): 1.0}


def test_repeated_names_are_summed_in_float64(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "1 | a:16777216 b a:1 a:1 b:-1\n")
    assert row.features == {slot("a"): 16777218.0}  # 16777216 + 1 is lost in float32; the sum of b is 0, and left out


def test_the_same_name_in_two_namespaces_differs(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "1 |a x |b x | x\n")
    assert len(row.features) == 3


def test_features_without_a_name_are_counted(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "1 |v :0.5 :2 x\n")
    assert row.features == {slot("0", "v"): 0.5, slot("1", "v"): 2.0, slot("x", "v"): 1.0}


def test_empty_lines_and_ends_of_lines(tmp_path: Path) -> None:
    rows = read(tmp_path, "\n1 | a\r\n   \n\r\n-1 | b  ")
    assert [row.y for row in rows] == [1, -1]
    assert rows[1].features == {slot("b"): 1.0}


def test_a_row_without_features(tmp_path: Path) -> None:
    assert read(tmp_path, "1 |\n")[0].features == {}


def test_the_intercept_has_the_last_cell_to_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 | " + " ".join(f"f{i}" for i in range(500)) + "\n")
    source = data.open(path, dim=8, intercept=True)
    (batch,) = source.batches()
    assert source.intercept_slot == 7
    assert batch.indices[-1] == 7
    assert batch.values[-1] == 1.0
    assert batch.values[:-1].sum() == 500


def test_positive_names_the_label_that_is_one(tmp_path: Path) -> None:
    assert [row.y for row in read(tmp_path, "1 | a\n2 | a\n3 | a\n", positive=2)] == [-1, 1, -1]


def test_labels_of_a_regression(tmp_path: Path) -> None:
    assert [row.y for row in read(tmp_path, "1.5 | a\n-2e3 | a\n", loss="squared")] == [1.5, -2000]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 | price:abc", "expected a number after ':', got 'abc' in 'price:abc'"),
        ("1 | price:", "expected a number after ':', got '' in 'price:'"),
        ("1 | price:1:2", "expected a number after ':', got '1:2' in 'price:1:2'"),
        ("1 | price:nan", "expected a finite number after ':', got 'nan' in 'price:nan'"),
        ("1 | price:-inf", "expected a finite number after ':', got '-inf' in 'price:-inf'"),
        ("1 | price:1e999", "expected a finite number after ':', got '1e999' in 'price:1e999'"),
        ("1 |ns:x a", "expected a number after ':', got 'x' in 'ns:x'"),
        ("1 |:2 a", "expected a namespace or a blank after '|', got ':2 a'"),
        ("x | a", "expected a number as the label, got 'x'"),
        ("nan | a", "expected a finite number as the label, got 'nan'"),
        (
            "2 | a",
            (
                "expected the label 1, -1 or 0, got '2'; pass loss=softmax for several classes, or name the"
                " label that counts as 1 with positive="
            ),
        ),
        ("1 -3 | a", "expected an importance of at least 0 after the label, got '-3'"),
        ("1 x | a", "expected an importance of at least 0 after the label, got 'x'"),
        ("1 1 0.5 | a", "expected at most a label, an importance and a tag before '|', got '1 1 0.5 '"),
        ("1 'a 2 | a", "expected the tag last before '|', got ''a'"),
        ("1,2,3", "expected '|' after the label, got '1,2,3'"),
        ("1 | a:1.1e30", "expected values within 1e30, got one beyond it; rescale the feature"),
        ("1 2e30 | a", "expected a weight within 1e30, got one beyond it; rescale the weights"),
        ("1 | a:\x1b[31m", "expected a number after ':', got '\\x1b[31m' in 'a:\\x1b[31m'"),
        ("1 | a:" + "x" * 99, f"expected a number after ':', got '{'x' * 37}...' in 'a:{'x' * 35}...'"),
    ],
)
def test_bad_rows(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(BadFormat) as caught:
        read(tmp_path, f"1 | a\n\n{line}\n")
    assert str(caught.value) == f"{tmp_path / 'a.vw'}:3: {message}{'' if '; ' in message else REMEDY}"
    source = data.open(tmp_path / "a.vw", on_bad_row="skip")
    assert len(rows_of(source.batches())) == 1
    without_remedy = str(caught.value).partition("; pass loss=softmax")[0].removesuffix(REMEDY)
    assert (source.bad_rows, source.first_bad) == (1, without_remedy)


def test_both_zero_and_minus_one_are_not_two_classes(tmp_path: Path) -> None:
    with pytest.raises(BadFormat, match=r"a\.vw:3: expected the label 1 or 0, as in the rows before, got '-1'"):
        read(tmp_path, "1 | a\n0 | a\n-1 | a\n")


def test_rows_before_a_bad_one_are_given(tmp_path: Path) -> None:
    path = tmp_path / "a.vw"
    path.write_text("1 | a\n1 | b\nbad\n")
    batches = data.open(path).batches()
    assert len(next(batches).y) == 2
    with pytest.raises(BadFormat, match=r"a\.vw:3: "):
        next(batches)


def test_wide_values(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "1 | a:0.1 b:1e-300\n", dtype="float64")
    assert list(row.features.values()) == [0.1, 1e-300]


def test_criteo() -> None:
    rows, share, features = totals(data.open(real("criteo80k.vw.gz")))
    assert rows == 80_000
    assert share == pytest.approx(0.224, abs=1e-3)
    assert features == pytest.approx(33.5, abs=0.1)


def test_rcv1() -> None:
    rows, _, features = totals(data.open(real("rcv1_small.vw.gz")))
    assert rows == 1000
    assert features == pytest.approx(78, abs=1)
