"""Rows of a sparse stream: the one currency between readers and learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray


@final
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Row i has the coordinates `indices[indptr[i]:indptr[i+1]]`, distinct, with `values`; a missing label is NaN."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.uint32]
    values: NDArray[np.float32] | NDArray[np.float64]
    y: NDArray[np.float64]
    weight: NDArray[np.float64]
    first_row: int = 0
    origin: str = ""
    tags: list[str] | None = None
