"""Batches as plain rows, so that they can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl.data import Batch, Source
from oracles.readers_twin import Row

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def real(name: str) -> Path:
    """Return the path of a file of real data, which is not part of the project."""
    if not (DATA / name).is_file():
        pytest.skip(f"the data file {name} is not there")
    return DATA / name


def rows_of(batches: Iterable[Batch]) -> list[Row]:
    rows: list[Row] = []
    for batch in batches:
        check(batch, len(rows))
        for i in range(len(batch.y)):
            own = slice(batch.indptr[i], batch.indptr[i + 1])
            features = dict(zip(batch.indices[own].tolist(), batch.values[own].tolist(), strict=True))
            assert len(features) == batch.indptr[i + 1] - batch.indptr[i], "an index stands twice in a row"
            tag = batch.tags[i] if batch.tags else ""
            rows.append(Row(features, float(batch.y[i]), float(batch.weight[i]), tag))
    return rows


def check(batch: Batch, first_row: int) -> None:
    """Check the promises of every batch."""
    assert batch.indptr.dtype == np.int64
    assert batch.indices.dtype == np.uint32
    assert batch.values.dtype in (np.float32, np.float64)
    assert batch.y.dtype == batch.weight.dtype == np.float64
    assert len(batch.indptr) == len(batch.y) + 1 == len(batch.weight) + 1
    assert batch.indptr[0] == 0
    assert batch.indptr[-1] == len(batch.indices) == len(batch.values)
    assert np.isfinite(batch.values).all()
    assert batch.first_row == first_row


def same(actual: list[Row], expected: list[Row]) -> None:
    """Check that two batches have equal features in equal order, bit by bit."""
    assert [keys(row) for row in actual] == [keys(row) for row in expected]


def keys(row: Row) -> tuple[Any, ...]:
    return list(row.features.items()), "nan" if row.y != row.y else row.y, row.weight, row.tag


def totals(source: Source) -> tuple[int, float, float]:
    """Return the number of rows, the share of positive labels, and the features per row without the intercept."""
    n, positive, features = 0, 0, 0
    for batch in source.batches():
        n += len(batch.y)
        positive += int((batch.y > 0).sum())
        features += len(batch.indices)
    return n, positive / n, features / n - (source.intercept_slot is not None)
