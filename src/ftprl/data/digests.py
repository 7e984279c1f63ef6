"""A digest of rows."""

from __future__ import annotations

import hashlib
from typing import Any, final

import numpy as np

from ftprl.data.batch import Batch


@final
class BatchDigest:
    """The SHA-256 of rows, the same however they are cut into batches: of the five columns, each by itself.

    Lengths as int64, indices as uint32, values as they are, labels and weights as float64, all little-endian.
    """

    def __init__(self) -> None:
        self._columns = [hashlib.sha256() for _ in range(5)]
        self.rows = 0

    def update(self, batch: Batch) -> None:
        """Add some rows."""
        lengths = np.diff(batch.indptr)
        for digest, column in zip(
            self._columns, (lengths, batch.indices, batch.values, batch.y, batch.weight), strict=True
        ):
            little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
            digest.update(little.data if little.size else b"")
        self.rows += len(batch)

    def result(self) -> dict[str, Any]:
        """One digest of the five, and the number of rows."""
        whole = hashlib.sha256("".join(digest.hexdigest() for digest in self._columns).encode())
        return {"rows": self.rows, "sha256": whole.hexdigest()}
