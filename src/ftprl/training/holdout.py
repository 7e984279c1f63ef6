"""Held-out rows: every N-th row of the data is scored but not learned, and its loss is added up apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.model import Vector
from ftprl.linear.totals import LossTotals

FIRST_ROWS = 2000  # where passes are compared, of so many rows at the start of the data
FIRST_EVERY = 10  # at least every so many-th is held out: small data has few rows to compare by


def held_out(batch: Batch, every: int, rows_before: int = 0, *, compares: bool = False) -> NDArray[np.intp]:
    """Which rows of a batch are held out: numbers N, 2N, ... of all data, of which the model has read `rows_before`.

    Where passes are compared (`compares`), also numbers 10, 20, ... of the first 2,000 rows of the run.

    >>> held_out(Batch.from_rows([()] * 7), every=3).tolist()
    [2, 5]
    >>> held_out(Batch.from_rows([()] * 30), every=15, compares=True).tolist()
    [9, 14, 19, 29]
    """
    first = rows_before + batch.first_row
    rows = np.arange(-(first + 1) % every, len(batch), every)
    end = min(len(batch), FIRST_ROWS - batch.first_row)
    if not compares or every <= FIRST_EVERY or end <= 0:
        return rows
    return np.union1d(rows, np.arange(-(batch.first_row + 1) % FIRST_EVERY, end, FIRST_EVERY))


def only_scored(batch: Batch, rows: NDArray[np.intp]) -> Batch:
    """The batch with weight 0 for some rows, which are then scored but not learned."""
    weight = batch.weight.copy()
    weight[rows] = 0.0
    return batch.replaced(weight=weight)


def add_losses(totals: LossTotals, losses: Vector, baselines: Vector, weights: Vector) -> LossTotals:
    """The totals with the losses of some more rows, added one by one so that no cut into batches changes a bit.

    `baselines` has two numbers a row: the loss of the baseline, and the least loss possible.
    """
    loss, weight, rows, baseline, least = totals.loss, totals.weight, totals.rows, totals.baseline, totals.least
    for value, (other, lowest), importance in zip(losses.tolist(), baselines.tolist(), weights.tolist(), strict=True):
        if importance > 0.0 and value == value:  # a row without a label has no loss
            loss, weight, rows = loss + importance * value, weight + importance, rows + 1
            baseline, least = baseline + importance * other, least + importance * lowest
    return LossTotals(loss, weight, rows, baseline, least)
