"""Admission of rare features: which have been seen often enough to get a cell (docs/admission.md).

After McMahan et al., Ad Click Prediction: a View from the Trenches (KDD 2013), section 4.1. Their Bloom filter counts
features that have no place in the model yet; here every feature has a cell, so a byte beside it counts without errors.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import admit
from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput

_MOST = 254
_LONGEST_HEADER = 1000


@final
class Admission:
    """A rule, and for each cell how far its feature has come: 255 is admitted, less is how often it was met.

    >>> rule = Admission("count:1", dim=8, seed=0)
    >>> batch = Batch.from_rows([{3: 1.0}, {3: 1.0, 4: 1.0}], y=[1, 1])
    >>> rule.admitted(batch, 0).indices.tolist()  # cell 3, in the second row
    [3]
    """

    def __init__(self, rule: str, dim: int, seed: int, state: NDArray[np.uint8] | None = None) -> None:
        self.rule, self.seed = rule, seed
        self._after, chance = parse(rule)
        self._chance = min(int(math.ldexp(chance, 64)), 2**64 - 1)
        self._state = np.zeros(dim, np.uint8) if state is None else state

    def admitted(self, batch: Batch, first_row: int, *, is_fixed: bool = False) -> Batch:
        """The rows with the features that are admitted; of rows that are learned, others come nearer to that.

        A feature that comes with a value other than 1 is admitted at once: columns of numbers are few.

        `first_row` is the number of the first row among all that the model has read. `is_fixed`: no others are
        admitted.
        """
        learned = ((batch.weight > 0.0) & (batch.y == batch.y) & (not is_fixed)).astype(np.uint8)
        kept = np.empty(len(batch.indices), np.uint8)
        rule = {"after": self._after, "chance": self._chance, "seed": self.seed, "first_row": first_row}
        numbers = (batch.values != 1.0).astype(np.uint8)
        admit(batch.indptr, batch.indices, numbers, learned, self._state, kept, **rule)
        chosen = kept.astype(np.bool_)
        if chosen.all():
            return batch
        before = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
        return batch.replaced(
            indptr=before[batch.indptr], indices=batch.indices[chosen], values=batch.values[chosen], is_private=True
        )

    def to_bytes(self) -> bytes:
        """The rule and its state, for a model file."""
        head = json.dumps({"rule": self.rule, "seed": self.seed, "dim": len(self._state)}).encode()
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
            if type(fields["seed"]) is not int or not 0 <= fields["seed"] < 2**64:
                raise ValueError("another seed")
            return cls(str(fields["rule"]), dim, fields["seed"], state)
        except (ValueError, KeyError, TypeError, zlib.error, InvalidInput) as wrong:
            raise BadModel(f"expected the admission of features, got {wrong}; train it again.") from None


def parse(rule: str) -> tuple[int, float]:
    """After how many rows, or with which chance, a feature is admitted; the other is 0.

    >>> parse("count:3"), parse("poisson:0.25")
    ((3, 0.0), (0, 0.25))
    """
    kind, _, text = str(rule).partition(":")
    try:
        if kind == "count" and 1 <= int(text) <= _MOST:
            return int(text), 0.0
        if kind == "poisson" and 0.0 < float(text) < 1.0:
            return 0, float(text)
    except ValueError:
        pass
    raise InvalidInput(
        f"admit= needs count:N with N from 1 to {_MOST}, or poisson:P with P between 0 and 1, got {rule!r}; pass one.",
        option="admit",
    )
