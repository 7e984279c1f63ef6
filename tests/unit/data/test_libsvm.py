"""The libsvm format: ids unchanged, comments, queries, and every kind of bad row."""

import math
import time
from pathlib import Path

import numpy as np
import pytest

from ftprl import data
from ftprl.errors import BadFormat
from oracles.batches import real, rows_of, totals
from oracles.readers_twin import Row

REMEDY = "; fix the row, or pass on_bad_row=skip"


def read(tmp_path: Path, text: str, **options: object) -> list[Row]:
    path = tmp_path / "a.libsvm"
    path.write_text(text)
    return rows_of(data.open(path, **{"dim": 100, "intercept": False, **options}).batches())  # type: ignore[arg-type]


def test_rows(tmp_path: Path) -> None:
    rows = read(tmp_path, "# head\n+1 qid:3 0:0.5 99:2 # note\n\n-1 1:1 1:2\n1\n3:1\n")
    assert [row.features for row in rows] == [{0: 0.5, 99: 2.0}, {1: 3.0}, {}, {3: 1.0}]
    assert [row.y for row in rows[:3]] == [1, -1, 1]
    assert math.isnan(rows[3].y)


def test_intercept(tmp_path: Path) -> None:
    assert read(tmp_path, "1 98:1\n", intercept=True)[0].features == {98: 1.0, 99: 1.0}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 100:1", "expected an id below 100, the number of cells, got '100'; raise dim="),
        (
            "1 99999999999999999999:1",
            "expected an id below 100, the number of cells, got '99999999999999999999'; raise dim=",
        ),
        ("1 -1:1", "expected a whole number before ':', got '-1' in '-1:1'"),
        ("1 :1", "expected a whole number before ':', got '' in ':1'"),
        ("1 1.5:1", "expected a whole number before ':', got '1.5' in '1.5:1'"),
        ("1 3", "expected id:value, got '3'"),
        ("1 3:", "expected a number after ':', got '' in '3:'"),
        ("1 3:x", "expected a number after ':', got 'x' in '3:x'"),
        ("1 3:inf", "expected a finite number after ':', got 'inf' in '3:inf'"),
        ("1,2 3:1", "expected a number as the label, got '1,2'"),
        (
            "4 3:1",
            (
                "expected the label 1, -1 or 0, got '4'; pass loss=softmax for several classes, or name the"
                " label that counts as 1 with positive="
            ),
        ),
    ],
)
def test_bad_rows(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(BadFormat) as caught:
        read(tmp_path, f"1 1:1\n{line}\n")
    assert str(caught.value) == f"{tmp_path / 'a.libsvm'}:2: {message}{'' if '; ' in message else REMEDY}"


def test_the_intercept_takes_the_last_id(tmp_path: Path) -> None:
    with pytest.raises(
        BadFormat, match=r"expected an id below 99, the number of cells but for the intercept's, got '99'; raise dim="
    ):
        read(tmp_path, "1 99:1\n", intercept=True)


def test_positive(tmp_path: Path) -> None:
    assert [row.y for row in read(tmp_path, "1 1:1\n2.0 1:1\n", positive="2")] == [-1, 1]


@pytest.mark.parametrize(("name", "rows"), [("a9a.libsvm.gz", 32_561), ("a9a.t.libsvm.gz", 16_281)])
def test_a9a(name: str, rows: int) -> None:
    actual, share, features = totals(data.open(real(name), dim=125))
    assert actual == rows
    assert share == pytest.approx(0.24, abs=0.01)
    assert features == pytest.approx(13.9, abs=0.1)


def test_ids_that_collide_take_no_longer_than_others(tmp_path: Path) -> None:
    """Ids that collide in the table of repeated coordinates take bounded time; one of them repeats."""
    count, bits = 30_000, 16
    inverse = pow(0x9E3779B1, -1, 2 ** (bits + 8))  # the core's hash: the product without its lowest 8 bits
    ids = [(low * inverse) % 2 ** (bits + 8) + (high << (bits + 8)) for high in range(256) for low in range(256)]
    others = np.random.default_rng(1).permutation(2**20)[:count].tolist()

    def seconds(chosen: list[int]) -> float:
        pairs = [(slot, i + 0.5) for i, slot in enumerate([*chosen[:count], chosen[7], chosen[9], chosen[7]])]
        text = "1 " + " ".join(f"{slot}:{value}" for slot, value in pairs) + "\n"
        start = time.process_time()
        (row,) = read(tmp_path, text, dim=2**32, dtype="float64")
        spent = time.process_time() - start
        expected: dict[int, float] = {}
        for slot, value in pairs:
            expected[slot] = expected.get(slot, 0.0) + value
        assert list(row.features.items()) == list(expected.items())
        return spent

    assert min(seconds(ids) for _ in range(3)) < 10 * min(seconds(others) for _ in range(3)) + 0.05


@pytest.mark.parametrize("others", range(13, 20))
def test_a_repeat_is_found_among_ids_that_look_like_repeats(tmp_path: Path, others: int) -> None:
    """Ids that agree in their lowest bits may be repeats; the core checks a limited number one by one."""
    ids = [5, 4, 5, *(4 + 2**14 * k for k in range(1, others + 1)), 9000]
    (row,) = read(tmp_path, "1 " + " ".join(f"{slot}:1" for slot in ids) + "\n", dim=2**22)
    assert row.features == {slot: 2.0 if slot == 5 else 1.0 for slot in ids}
