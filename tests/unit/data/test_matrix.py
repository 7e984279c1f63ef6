"""Rows of arrays and matrices as batches, for every type and layout."""

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


def test_broken_matrices_are_refused() -> None:
    for indptr in ([0, 2, 1, 3], [5, 6, 7, 8], [-1, 0, 1, 2]):
        broken = csr_matrix(np.eye(3))
        broken.indptr = np.array(indptr, np.int32)
        with pytest.raises(ftprl.errors.InvalidInput, match=r"indptr|entr|length"):
            list(ftprl.data.open(broken, y=np.ones(3)).read())


def test_labels_of_text_are_refused_with_a_remedy() -> None:
    for y in (["yes", "no"], np.array(["yes", "no"])):
        with pytest.raises(ftprl.errors.InvalidInput, match=r"y= needs numbers, .* got 'yes'; pass y == 'yes'"):
            ftprl.data.open(np.eye(2), y=y)
