"""Admission of rare features: which have been seen often enough to get a cell (docs/admission.md).

After McMahan et al., Ad Click Prediction: a View from the Trenches (KDD 2013), section 4.1. Their Bloom filter counts
features that have no place in the model yet; here every feature has a cell, so a byte beside it counts without errors.
For large tables there is a counting Bloom filter of few bytes as well, whose counts may be too large.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import admit
from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear.name_budget import parse_size

FILTER = 1_000_000  # bytes of a filter, unless another size is asked for
_LARGEST = 2**32
_MOST = 254
_LONGEST_HEADER = 1000


@final
class Admission:
    """A rule, and for each cell how far its feature has come: 255 is admitted, less is how often it was met.

    With `bloom` the counts are those of a filter, each shared by several cells.

    >>> rule = Admission("count:1", dim=8, seed=0)
    >>> batch = Batch.from_rows([{3: 1.0}, {3: 1.0, 4: 1.0}], y=[1, 1])
    >>> rule.admitted(batch, 0).indices.tolist()  # cell 3, in the second row
    [3]
    """

    def __init__(self, rule: str, dim: int, seed: int, state: NDArray[np.uint8] | None = None) -> None:
        self.rule, self.seed = rule, seed
        self._rule = parse(rule)
        self._chance = min(int(math.ldexp(self._rule.chance, 64)), 2**64 - 1)
        self._state = np.zeros(self._rule.bytes or dim, np.uint8) if state is None else state

    @property
    def nbytes(self) -> int:
        """The memory of the counts."""
        return self._state.nbytes

    def admitted(self, batch: Batch, first_row: int, *, is_fixed: bool = False) -> Batch:
        """The rows with the features that are admitted; of rows that are learned, others come nearer to that.

        A feature that comes with a value other than 1 is admitted at once: columns of numbers are few.

        `first_row` is the number of the first row among all that the model has read. `is_fixed`: no others are
        admitted.
        """
        learned = ((batch.weight > 0.0) & (batch.y == batch.y) & (not is_fixed)).astype(np.uint8)
        kept = np.empty(len(batch.indices), np.uint8)
        rule = {"after": self._rule.after, "chance": self._chance, "seed": self.seed, "first_row": first_row}
        numbers = (batch.values != 1.0).astype(np.uint8)
        is_sketch = self._rule.bytes > 0
        admit(batch.indptr, batch.indices, numbers, learned, self._state, kept, **rule, is_sketch=is_sketch)
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
            unpacking, size = zlib.decompressobj(), parse(str(fields["rule"])).bytes or dim
            state = np.frombuffer(bytearray(unpacking.decompress(rest, size + 1)), np.uint8)
            if fields["dim"] != size or len(state) != size or not unpacking.eof or unpacking.unused_data:
                raise ValueError("counts of another size")
            if type(fields["seed"]) is not int or not 0 <= fields["seed"] < 2**64:
                raise ValueError("another seed")
            return cls(str(fields["rule"]), dim, fields["seed"], state)
        except (ValueError, KeyError, TypeError, zlib.error, InvalidInput) as wrong:
            raise BadModel(f"expected the admission of features, got {wrong}; train it again.") from None


class Rule(NamedTuple):
    """After how many rows, or with which chance, a feature is admitted; and the bytes of a filter, 0 without one."""

    after: int
    chance: float = 0.0
    bytes: int = 0


def parse(rule: str) -> Rule:
    """The rule that a text such as `count:2` describes.

    >>> parse("count:3"), parse("poisson:0.25")
    (Rule(after=3, chance=0.0, bytes=0), Rule(after=0, chance=0.25, bytes=0))
    >>> parse("bloom:2"), parse("bloom:2:64KB")
    (Rule(after=2, chance=0.0, bytes=1000000), Rule(after=2, chance=0.0, bytes=64000))
    """
    kind, _, text = str(rule).partition(":")
    number, _, size = text.partition(":")
    try:
        if kind == "count" and 1 <= int(text) <= _MOST:
            return Rule(int(text))
        if kind == "poisson" and 0.0 < float(text) < 1.0:
            return Rule(0, float(text))
        wanted = parse_size(size or FILTER)
        if kind == "bloom" and 1 <= int(number) <= _MOST and wanted is not None and 1 <= wanted <= _LARGEST:
            return Rule(int(number), bytes=wanted)
    except ValueError:
        pass
    raise InvalidInput(
        f"admit= needs count:N or bloom:N[:SIZE] with N from 1 to {_MOST}, or poisson:P with P between 0 and 1, got"
        f" {rule!r}; pass one.",
        option="admit",
    )
