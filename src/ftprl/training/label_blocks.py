"""Whether the rows of a run are sorted by class: then any online learner predicts the class that came last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

_LEAST_LOG_CHANCE = math.log(1e-9)  # of an order that is taken for random
_MOST = 10_000  # classes


def _is_unlikely(sizes: Sequence[int]) -> bool:
    """Of all orders of the rows of some classes, k! times the product of their factorials are sorted by class."""
    log_chance = math.lgamma(len(sizes) + 1) + sum(math.lgamma(n + 1) for n in sizes) - math.lgamma(sum(sizes) + 1)
    return len(sizes) > 1 and log_chance < _LEAST_LOG_CHANCE


@final
class LabelBlocks:
    """Whether the rows of every class follow each other; once a class has come back, nothing is counted any more.

    >>> blocks = LabelBlocks()
    >>> for _ in range(3):
    ...     blocks.see(np.repeat([1.0, 2.0], 20))
    >>> blocks.are_sorted
    False
    """

    def __init__(self, sizes: Sequence[Sequence[float]] | None = ()) -> None:
        self._sizes = None if sizes is None else {float(label): int(size) for label, size in sizes}
        self._last = list(self._sizes)[-1] if self._sizes else math.nan

    def to_list(self) -> list[list[float]] | None:
        """Return the classes and their rows, in order; None once a class has come back."""
        return None if self._sizes is None else [[label, size] for label, size in self._sizes.items()]

    def see(self, y: NDArray[np.float64]) -> None:
        """Count the rows of a batch, those without a label left out."""
        if self._sizes is None:
            return
        labels = y[y == y]
        if not len(labels):
            return
        starts = np.concatenate(([0], np.flatnonzero(labels[1:] != labels[:-1]) + 1))
        if len(self._sizes) + len(starts) > _MOST:
            self._sizes = None
            return
        for label, size in zip(labels[starts].tolist(), np.diff(np.append(starts, len(labels))).tolist(), strict=True):
            if label != self._last and label in self._sizes:
                self._sizes = None
                return
            self._sizes[label] = self._sizes.get(label, 0) + size
            self._last = label

    @property
    def are_sorted(self) -> bool:
        """Whether every class came once, in one piece."""
        return self._sizes is not None and _is_unlikely(list(self._sizes.values()))
