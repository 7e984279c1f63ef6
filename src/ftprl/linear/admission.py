"""Admission of rare features: which have been seen often enough to get a cell (docs/admission.md).

After McMahan et al., Ad Click Prediction: a View from the Trenches (KDD 2013), section 4.1. Their Bloom filter counts
features that have no place in the model yet; here every feature has a cell, so a byte beside it counts without errors.
"""

from __future__ import annotations

import json
import zlib
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput
from ftprl.options.checks import check_value

_ADMITTED = 255
_LONGEST_HEADER = 1000


@final
class Admission:
    """Counts of features: each is learned behind the first `after` rows that have it.

    The count of a cell is 255 when its feature is admitted; less is how often it was met.

    >>> rule = Admission(1, dim=8)
    >>> batch = Batch.from_rows([{3: 1.0}, {3: 1.0, 4: 1.0}], y=[1, 1])
    >>> rule.admitted(batch).indices.tolist()  # cell 3, in the second row
    [3]
    """

    def __init__(self, after: int, dim: int, state: NDArray[np.uint8] | None = None) -> None:
        self.after = after
        self._state = np.zeros(dim, np.uint8) if state is None else state

    @property
    def nbytes(self) -> int:
        """The memory of the counts."""
        return self._state.nbytes

    def admitted(self, batch: Batch, *, is_fixed: bool = False) -> Batch:
        """The rows with the features that are admitted; of rows that are learned, others come nearer to that.

        A feature that comes with a value other than 1 is admitted at once: columns of numbers are few. `is_fixed`: no
        others are admitted.
        """
        kept = self._state[batch.indices] == _ADMITTED
        if not is_fixed:
            self._count(batch, kept)
        if kept.all():
            return batch
        before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
        return batch.replaced(
            indptr=before[batch.indptr], indices=batch.indices[kept], values=batch.values[kept], is_private=True
        )

    def _count(self, batch: Batch, kept: NDArray[np.bool_]) -> None:
        """Count the entries of features that are not admitted yet, and mark those from which on they are."""
        learned = np.repeat((batch.weight > 0.0) & (batch.y == batch.y), np.diff(batch.indptr))
        waiting = np.flatnonzero(~kept)
        at = waiting[np.argsort(batch.indices[waiting], kind="stable")]  # by cell, and then in the order of the rows
        if not len(at):
            return
        cells, counts = batch.indices[at], learned[at]
        first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))  # entry of each cell
        sizes = np.diff(np.append(first, len(at)))
        met = _before(counts, first, sizes) + self._state[cells]
        admits = counts & ((met >= self.after) | (batch.values[at] != 1.0))
        is_in = (_before(admits, first, sizes) + admits) > 0
        kept[at] = is_in
        last = first + sizes - 1
        self._state[cells[last]] = np.where(is_in[last], _ADMITTED, met[last] + counts[last])

    def to_bytes(self) -> bytes:
        """Return the counts for a model file."""
        head = json.dumps({"after": self.after, "dim": len(self._state)}).encode()
        return head + b"\n" + zlib.compress(self._state.tobytes(), 6)

    @classmethod
    def from_bytes(cls, body: bytes, dim: int) -> Admission:
        """What `to_bytes` made, for a table of `dim` cells; refuses anything else."""
        try:
            head, _, rest = body.partition(b"\n")
            fields = json.loads(head[:_LONGEST_HEADER])
            unpacking = zlib.decompressobj()
            state = np.frombuffer(bytearray(unpacking.decompress(rest, dim + 1)), np.uint8)
            if fields["dim"] != dim or len(state) != dim or not unpacking.eof or unpacking.unused_data:
                raise ValueError("counts of another size")
            check_value("admit", fields["after"])
            return cls(int(fields["after"]), dim, state)
        except (ValueError, KeyError, TypeError, zlib.error, InvalidInput) as wrong:
            raise BadModel(f"expected the admission of features, got {wrong}; train it again.") from None


def _before(flags: NDArray[np.bool_], first: NDArray[np.intp], sizes: NDArray[np.intp]) -> NDArray[np.int64]:
    """How many entries before each one, of its cell, are flagged."""
    before = np.cumsum(flags, dtype=np.int64) - flags
    return np.asarray(before - np.repeat(before[first], sizes))
