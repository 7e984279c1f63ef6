"""Sizes of rows in bytes, and batches that are cut by them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ftprl.data.sizes import pieces, row_bytes

TEXTS = ["ab", "", None, "abcde" * 9, "ä", "ab"]
LISTS = [["ab", "c"], None, [], [None, "abc"], ["x" * 40], ["y"]]
NUMBERS = [[1, 2], None, [], [3], [4, 5, 6], [7]]


def length(value: Any, fixed: int) -> int:
    """Return the bytes of a value in plain Python; `fixed` is the size of a number."""
    if value is None:
        return 0
    if isinstance(value, dict):
        return sum(length(one, fixed) for one in value.values())
    if isinstance(value, list | tuple):
        return sum(length(one, fixed) for one in value)
    return len(value if isinstance(value, bytes) else value.encode()) if isinstance(value, str | bytes) else fixed


def cells_of(name: str) -> pa.Array:
    texts, values = pa.array(TEXTS), pa.array(LISTS)
    return {
        "string": lambda: texts,
        "large": lambda: texts.cast(pa.large_string()),
        "binary": lambda: texts.cast(pa.binary()),
        "views": lambda: pa.array(TEXTS, pa.string_view()),
        "dictionary": lambda: texts.dictionary_encode(),
        "lists": lambda: values,
        "large lists": lambda: values.cast(pa.large_list(pa.string())),
        "views of lists": lambda: pa.array(NUMBERS, pa.list_view(pa.int16())),
        "lists of numbers": lambda: pa.array(NUMBERS, pa.list_(pa.int16())),
        "maps": lambda: pa.array(
            [[("k", "v" * 30)], None, [], [("a", None)], [("", "b")], []], pa.map_("string", "string")
        ),
        "structures": lambda: pa.array([{"a": "b", "c": ["d" * 9]}, *[{"a": None, "c": []}] * 5]),
        "runs": lambda: pa.RunEndEncodedArray.from_arrays([1, 4, 6], ["a", "b" * 30, None]),
        "null": lambda: pa.nulls(6),
    }[name]()


@pytest.mark.parametrize(
    "name",
    [
        *("string", "large", "binary", "views", "dictionary", "lists", "large lists", "views of lists"),
        *("lists of numbers", "maps", "structures", "runs", "null"),
    ],
)
@pytest.mark.parametrize("most", [1, 50, 10**6])
def test_pieces_have_all_rows_and_no_more_bytes_than_allowed(name: str, most: int) -> None:
    cells = cells_of(name)
    for batch in (pa.record_batch({"x": cells}), pa.record_batch({"x": cells}).slice(1, 4)):
        rows = batch.column(0).to_pylist()
        assert row_bytes(batch).tolist() == [length(row, 2) for row in rows]
        if most == 10**6:  # the rows are short, and nobody asks for one of them
            [(piece, sizes)] = pieces(batch, most)
            assert sizes is None
            assert piece.column(0).to_pylist() == rows
        cut = [(piece, sizes) for piece, sizes in pieces(batch, most, -1) if sizes is not None]
        assert [row for piece, _ in cut for row in piece.column(0).to_pylist()] == rows
        assert [int(size) for _, sizes in cut for size in sizes] == row_bytes(batch).tolist()
        assert all(len(piece) == 1 or sum(sizes) <= most for piece, sizes in cut)


def test_a_piece_of_lists_has_its_own_elements_alone() -> None:
    batch = pa.record_batch({"x": pa.array([["a" * 100]] * 50)})
    assert [len(piece.column(0).values) for piece, _ in pieces(batch, 1000)] == [10] * 5


def test_short_rows_are_cut_by_the_longest_of_them() -> None:
    cells = pa.array(["x" * (i % 10) for i in range(100_000)])
    for column in (cells, cells.dictionary_encode()):
        batch = pa.record_batch({"x": column})
        cut = list(pieces(batch, 100_000, 9))
        assert {sizes for _, sizes in cut} == {None}
        assert pa.Table.from_batches([piece for piece, _ in cut]) == pa.Table.from_batches([batch])
        assert max(row_bytes(piece).sum() for piece, _ in cut) <= 100_000
        assert len(cut) < 20
        assert all(sizes is not None for _, sizes in pieces(batch, 100_000, 8))


def test_what_pyarrow_reserves_for_a_decoded_cell_counts() -> None:
    """pyarrow reserves the mean size of the entries, including entries that no cell has."""
    cells = pa.DictionaryArray.from_arrays(pa.array([0] * 100, pa.int8()), pa.array(["", "x" * 1000]))
    assert [len(piece) for piece, _ in pieces(pa.record_batch({"x": cells}), 5000)] == [10] * 10
