"""Test whether the losses of a run are heavy-tailed, in which case no upper end of their mean is stated.

The mean of unbounded losses can be far above all losses seen: a label a thousand times as large as the others, once in
a thousand rows, is most of the risk. No interval is valid for all such losses, so the upper end is left out unless the
largest losses of the run fall off quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from ftprl.confidence.layout import LARGEST, OCTAVES_OF_TAIL

Vector = NDArray[np.float64]
_FEWEST_ROWS = 3000  # an event once in a thousand rows has then occurred with probability 95 %
_FIRST = 32  # skipped rows: an untrained model has losses of another size
_LIGHT = 2.5  # tail index from which on the mean of some hundred rows is close to the expectation
_FAR = 16.0  # factor above the smallest of the largest numbers that a light tail does not reach


@final
class LossTail:
    """The largest numbers among the latest rows: since the last power of two, and in the two octaves before it.

    >>> rng = np.random.default_rng(0)
    >>> light, heavy = LossTail(), LossTail()
    >>> light.add(rng.normal(size=5000) ** 2), heavy.add(rng.pareto(2.5, 5000) ** 2)
    (None, None)
    >>> light.is_heavy, heavy.is_heavy
    (False, True)
    """

    def __init__(self) -> None:
        self._rows = 0
        self._octaves = [np.zeros(0)] * OCTAVES_OF_TAIL

    def add(self, values: Vector) -> None:
        """Add rows; batch sizes change nothing."""
        at = 0
        while at < len(values):
            if self._rows >= _FIRST and self._rows & (self._rows - 1) == 0:
                self._octaves = [*self._octaves[1:], np.zeros(0)]
            end = min(len(values), at + (1 << max(self._rows, 1).bit_length()) - self._rows)
            if self._rows >= _FIRST:
                known, some = self._octaves[-1], values[at:end]
                some = some if len(known) < LARGEST else some[some > known[0]]
                self._octaves[-1] = np.sort(np.concatenate((known, some)))[-LARGEST:] if len(some) else known
            self._rows += end - at
            at = end

    @property
    def is_heavy(self) -> bool:
        """Return True unless the largest numbers fall off quickly, by Hill's estimate of the index of their tail."""
        first = 1 << max((self._rows - 1).bit_length() - OCTAVES_OF_TAIL, 0)
        if self._rows - first < _FEWEST_ROWS:
            return True
        top = np.sort(np.concatenate(self._octaves))[-LARGEST:]
        least, largest = float(top[0]), float(top[-1])
        if not least > 0.0 or not largest <= _FAR * least:
            return largest != 0.0
        return _LIGHT * float(np.log(top / least).sum()) > LARGEST - 1

    @property
    def numbers(self) -> list[float]:
        """Return the state as numbers, for a checkpoint; -1 means no number."""
        filled = ([-1.0] * (LARGEST - len(one)) + one.tolist() for one in self._octaves)
        return [float(self._rows), *(number for part in filled for number in part)]

    def restore(self, numbers: Sequence[float]) -> None:
        """Restore saved numbers."""
        self._rows = int(numbers[0])
        self._octaves = [part[part >= 0.0] for part in np.reshape(numbers[1:], (OCTAVES_OF_TAIL, LARGEST))]
