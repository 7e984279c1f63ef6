"""Batches: their content, how they are cut, and which input is rejected."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix

from ftprl.data import Batch
from ftprl.data.batch import combine
from ftprl.errors import InvalidInput

ROWS = [[(3, 1.0), (1, 2.0), (3, 0.5)], [], [(2, -1.0)], [(0, 0.25), (5, 4.0)]]


def small(**more: Any) -> Batch:
    return Batch.from_rows(ROWS, y=[1, -1, np.nan, 1], weight=[1, 2, 3, 4], **more)


def test_from_rows_adds_up_repeats_where_the_first_stood() -> None:
    batch = small()
    assert len(batch) == 4
    assert batch.indptr.tolist() == [0, 2, 2, 3, 5]
    assert batch.indices.tolist() == [3, 1, 2, 0, 5]
    assert batch.values.tolist() == [1.5, 2.0, -1.0, 0.25, 4.0]
    assert batch.weight.tolist() == [1, 2, 3, 4]
    assert batch.values.dtype == np.float32
    assert small(float64=True).values.dtype == np.float64


def test_repeats_are_added_in_float64() -> None:
    batch = Batch.from_rows([[(0, 2.0**25), (0, 1.0), (0, -(2.0**25))]])
    assert batch.values.tolist() == [1.0]


def test_defaults_of_labels_and_weights() -> None:
    batch = Batch.from_rows([{1: 2.0}, {}])
    assert np.isnan(batch.y).all()
    assert batch.weight.tolist() == [1.0, 1.0]


def test_no_rows() -> None:
    batch = Batch.from_rows([])
    assert len(batch) == 0
    assert len(batch[:]) == 0
    assert list(batch.cut(3)) == []


def test_combine_leaves_distinct_rows_alone() -> None:
    indptr, indices, values = np.array([0, 2, 3]), np.array([5, 1, 5], np.uint32), np.array([1.0, 2.0, 3.0])
    assert all(a is b for a, b in zip(combine(indptr, indices, values), (indptr, indices, values), strict=True))


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_from_csr(kind: Any) -> None:
    dense = np.array([[0, 1.5, 0], [0, 0, 0], [2, 0, -1]])
    batch = Batch.from_csr(kind(dense), y=[1, 2, 3], first_row=7, origin="a")
    assert batch.indptr.tolist() == [0, 1, 1, 3]
    assert batch.indices.tolist() == [1, 0, 2]
    assert batch.values.tolist() == [1.5, 2.0, -1.0]
    assert (batch.first_row, batch.origin) == (7, "a")
    double = kind((np.ones(3), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 3))
    assert Batch.from_csr(double).values.tolist() == [2.0, 1.0]


def test_slices_are_rows() -> None:
    batch = small(first_row=10, origin="x", tags=("a", "b", "c", "d"))
    part = batch[1:3]
    assert part.indptr.tolist() == [0, 0, 1]
    assert part.indices.tolist() == [2]
    assert (part.first_row, part.origin, part.tags) == (11, "x", ("b", "c"))
    assert np.isnan(part.y[1])
    assert np.shares_memory(part.indices, batch.indices)
    assert len(batch[3:1]) == 0
    assert batch[-1:].values.tolist() == [0.25, 4.0]
    parts = list(batch.cut(3))
    assert [len(p) for p in parts] == [3, 1]
    assert [p.first_row for p in parts] == [10, 13]
    assert np.concatenate([p.values for p in parts]).tolist() == batch.values.tolist()


def test_arrays_are_read_only_views() -> None:
    y = np.ones(4)
    batch = replace(small(), y=y)
    with pytest.raises(ValueError, match="read-only"):
        batch.y[0] = 2.0
    y[0] = 5.0  # the caller's own array stays his
    assert batch.y[0] == 5.0


def test_repr() -> None:
    assert repr(small(origin="a")) == "Batch(4 rows, 5 entries, first_row=0, origin='a')"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indptr": np.array([0, 2, 2, 3, 6])}, "indptr needs to run from 0 to the 5 entries, got 0 to 6; "),
        ({"indptr": np.array([1, 2, 2, 3, 5])}, "got 1 to 5; "),
        ({"indptr": np.array([0, 3, 2, 3, 5])}, "nondecreasing, got 3 before 2; "),
        ({"indptr": np.array([], np.int64)}, "got nothing; "),
        ({"indptr": np.array([0, 2, 2, 3, 5], np.int32)}, "indptr needs a vector of int64, got 1-d int32; "),
        ({"indices": np.zeros(5, np.int64)}, "indices needs a vector of uint32, got 1-d int64; "),
        ({"values": np.zeros(4)}, "need one length, got 5 and 4; "),
        ({"values": np.zeros((5, 1))}, "values needs a vector of float32 or float64, got 2-d float64; "),
        ({"values": [1.0]}, "got list; "),
        ({"y": np.zeros(3)}, "y needs an entry for each of the 4 rows, got 3; "),
        ({"weight": np.zeros(5)}, "weight needs an entry for each of the 4 rows, got 5; "),
        ({"first_row": -1}, "first_row needs a whole number of at least 0, got -1; "),
        ({"tags": ("a",)}, "tags needs an entry for each of the 4 rows, got 1; "),
    ],
)
def test_bad_batches(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(small(), **change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Batch.from_rows([{-1: 1.0}]), "from 0 to 2**32 - 1, got -1; "),
        (lambda: Batch.from_rows([{2**32: 1.0}]), "got 4294967296; "),
        (lambda: Batch.from_rows([{1.5: 1.0}]), "got 1.5 at entry 0; "),  # type: ignore[dict-item]
        (lambda: Batch.from_rows([{"a": 1.0}]), "got 'a' at entry 0; "),  # type: ignore[dict-item]
        (lambda: Batch.from_rows([{0: "x"}]), "values needs numbers, got ['x']; "),  # type: ignore[dict-item]
        (lambda: Batch.from_rows([{0: 1.0}], y=[1, 2]), "y needs an entry for each of the 1 rows, got 2; "),
        (lambda: Batch.from_csr(np.eye(2)), "needs a CSR matrix, got ndarray; "),
        (lambda: Batch.from_csr(csc_array(np.eye(2))), "needs a CSR matrix, got csc_array; "),
        (lambda: small()[::2], "slice of step 1, got step 2; "),
        (lambda: small()[0], "rows needs a slice, got 0; "),  # type: ignore[index]
        (lambda: list(small().cut(0)), "rows needs a whole number of at least 1, got 0; "),
    ],
)
def test_bad_rows(make: Any, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert message in str(caught.value)


def test_parts_cannot_be_written_to() -> None:
    batch = Batch.from_rows([{0: 1.0}, {1: 2.0, 2: 1.0}, {}, {5: 1.0}], y=[1, -1, 1, 1])
    for part in (batch, batch[:2], batch[1:3], batch[2:], batch.replaced(weight=np.ones(4)), batch.numbered(7, 1)):
        for name in ("indptr", "indices", "values", "y", "weight"):
            array = getattr(part, name)
            with pytest.raises(ValueError, match="read-only"):
                array[...] = 0
        assert part.indptr[0] == 0
