"""What to expect of rows to come once more, from a replay: which ends of its intervals a receipt may state.

As in `audit`, nothing here calls the modules that made the numbers; docs/evaluate.md has the rules.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.losses import ScalarLoss

Vector = NDArray[np.float64]


@final
class AuditedTail:
    """The 64 largest losses, or labels with a log link, of the last three octaves of rows."""

    def __init__(self, loss: ScalarLoss) -> None:
        self._is_needed, self._is_of_labels = not loss.is_classification, loss.has_deviance
        self._rows, self._largest = 0, dict[int, Vector]()

    def add(self, losses: Vector, y: Vector) -> None:
        """Add rows as they were predicted before they were learned."""
        if not self._is_needed:
            return
        sizes = np.minimum(np.abs(y if self._is_of_labels else losses)[losses == losses], 1e300)
        numbers = np.arange(self._rows, self._rows + len(sizes))
        self._rows += len(sizes)
        octaves = np.frexp(np.maximum(numbers, 1).astype(np.float64))[1] - 1
        for octave in np.unique(octaves[numbers >= 32]).tolist():
            own = np.append(self._largest.get(octave, np.zeros(0)), sizes[(octaves == octave) & (numbers >= 32)])
            self._largest[octave] = -np.sort(-own)[:64]

    @property
    def is_heavy(self) -> bool:
        """Whether they fall off too slowly, or are too few, for an upper end of the mean loss."""
        if not self._is_needed:
            return False
        last = max(self._largest, default=0)
        if self._rows - 2.0 ** max(last - 2, 0) < 3000:
            return True
        kept = [own for octave, own in self._largest.items() if octave > last - 3]
        top = -np.sort(-np.concatenate(kept))[:64]
        if top[0] == 0.0:
            return False
        if not top[-1] > 0.0 or not top[0] / top[-1] <= 16.0:
            return True
        return bool(63.0 / np.log(top / top[-1]).sum() < 2.5) if top[0] > top[-1] else False

    def stated(self, intervals: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the intervals with the ends that may be stated."""
        if intervals is None:
            return None
        out = {}
        for name, own in intervals.items():
            if name in ("drift", "error_rate"):
                out[name] = own
                continue
            is_cut = abs(own["cut_off"]) > 0.1 * (own["upper"] - own["lower"]) / 2.0
            if name == "loss":
                out[name] = {**own, "upper": None} if is_cut or self.is_heavy else own
            elif not is_cut:
                out[name] = own
        return out
