"""Rows of arrays and matrices as batches: the compiled copy equals NumPy, for every type and layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csc_array, csr_array, csr_matrix

import ftprl.data
import ftprl.errors
from ftprl._core import csr_rows, dense_rows
from oracles.batches import rows_of

VALUES = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e-50, 3e-39, 1e30, 0.1])
TABLES = st.tuples(st.integers(1, 12), st.integers(2, 6)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=VALUES)
)


@settings(deadline=None, max_examples=60)
@given(TABLES, st.sampled_from(["float32", "float64"]))
def test_every_kind_has_the_entries_that_are_not_zero(table: Any, dtype: Any) -> None:
    expected = [{j: float(v) for j, v in enumerate(row.astype(dtype)) if v != 0} for row in table]
    kinds: list[Any] = [table, np.asfortranarray(table), csr_matrix(table), csc_array(table), csr_array(table)]
    wide = csr_matrix(table)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    explicit = csr_matrix(
        (table.ravel(), np.tile(np.arange(table.shape[1]), len(table)), np.arange(len(table) + 1) * table.shape[1])
    )
    for data in (*kinds, wide, explicit):
        source = ftprl.data.open(data, y=np.ones(len(table)), dtype=dtype)
        assert [row.features for row in rows_of(batch for batch, _ in source.read())] == expected
    if dtype == "float32":
        source = ftprl.data.open(table.astype(np.float32), y=np.ones(len(table)))
        assert [row.features for row in rows_of(batch for batch, _ in source.read())] == expected


def test_rows_from_any_row_on() -> None:
    table = np.arange(12.0).reshape(4, 3)
    for first, last in ((0, 4), (1, 3), (2, 2)):
        for indptr, indices, values in (
            dense_rows(table, first, last, True),
            csr_rows(*(getattr(csr_matrix(table), name) for name in ("indptr", "indices", "data")), first, last, True),
        ):
            made = csr_matrix((values, indices, indptr), shape=(last - first, 3)).toarray()
            np.testing.assert_array_equal(made, table[first:last])


def test_broken_matrices_are_refused() -> None:
    good = csr_matrix(np.eye(3))
    falling = np.array([0, 2, 1, 3], np.int32)
    for indptr, message in (
        (falling, "must not fall"),
        (good.indptr + np.int32(5), "beyond its entries"),
        (good.indptr - np.int32(1), "must not fall"),
    ):
        with pytest.raises(ValueError, match=message):
            csr_rows(indptr, good.indices, good.data, 0, 3, False)
    with pytest.raises(ValueError, match="beyond the end"):
        csr_rows(good.indptr, good.indices, good.data, 0, 4, False)
    with pytest.raises(ValueError, match="beyond the end"):
        dense_rows(np.eye(3), 0, 4, False)


def test_labels_of_text_are_refused_with_a_remedy() -> None:
    for y in (["yes", "no"], np.array(["yes", "no"])):
        with pytest.raises(ftprl.errors.InvalidInput, match=r"y= needs numbers, .* got 'yes'; pass y == 'yes'"):
            ftprl.data.open(np.eye(2), y=y)
