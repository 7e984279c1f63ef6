"""How uncertain a prediction is: how far its score could move if one more such row were learned (docs/calibration.md).

The curvature that a model has accumulated in a feature decides how far its weight moves at the next row: far where the
feature is new, hardly at all where it was seen often. The sum over the features of a row is the uncertainty score of
McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.engine import Engine

Vector = NDArray[np.float64]
_ROWS = 1 << 14  # at a time


def uncertainty(engine: Engine, batch: Batch) -> Vector:
    """The uncertainty of each row, in the unit of the score: log-odds, the log of the mean, or the label's unit.

    It is the largest step that the score of each scale could take at this row, summed over the scales by what the
    mixture's score has of each; with several classes that of the class whose score could move most. Calibration does
    not change it.
    """
    parts = [_of_rows(engine, batch[start : start + _ROWS]) for start in range(0, len(batch), _ROWS)]
    return np.concatenate([np.empty(0), *parts])


def _of_rows(engine: Engine, batch: Batch) -> Vector:
    with engine.unchanged():
        moves, shares = engine.moves(batch), _shares(engine)
    total = np.zeros((len(batch), moves.shape[1] // len(shares)))
    for k, share in enumerate(shares):  # in this order, whatever NumPy's version
        total += share * moves[:, k :: len(shares)]
    return total.max(axis=1) if total.shape[1] else np.full(len(batch), np.nan)


def _shares(engine: Engine) -> list[float]:
    """What the mixture's score has of each scale: its own weight, and the stack's times the size of its coefficient.

    Experts that are no function of the scales, the coin and the offset, are left out.
    """
    mixture, count = engine.mixture, len(engine.spec.scales)
    if mixture is None:
        return [1.0]
    own, stack = list(mixture.weights[:count]), mixture.weights[count] if engine.spec.stacked else 0.0
    total = sum(own) + stack
    if not total > 0.0:
        return [1.0 / count] * count
    u = engine.saved_arrays.get("dense.u", engine.state["u"]).tolist() if engine.spec.stacked else [0.0] * count
    return [(weight + stack * abs(part)) / total for weight, part in zip(own, u, strict=False)]
