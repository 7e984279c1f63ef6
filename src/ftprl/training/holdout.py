"""Held-out rows: every N-th row of the data is scored but not learned, and its loss is added up apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.model import Vector
from ftprl.linear.totals import LossTotals

FIRST_ROWS = 2000  # where passes are compared, of so many rows at the start of the data
FIRST_EVERY = 10  # at least every so many-th is held out: small data has few rows to compare by


def held_out(
    numbers: NDArray[np.int64], every: int, rows_before: int = 0, *, compares: bool = False
) -> NDArray[np.intp]:
    """Return which rows are held out: numbers N, 2N, ... of all data, of which the model has read `rows_before`.

    `numbers` are those of the rows in the data of the run, counted from 0. Where passes are compared (`compares`), also
    numbers 10, 20, ... of the first 2,000 rows of the run.

    >>> held_out(np.arange(7), every=3).tolist()
    [2, 5]
    >>> held_out(np.arange(30), every=15, compares=True).tolist()
    [9, 14, 19, 29]
    """
    is_held = (numbers + (rows_before + 1)) % every == 0
    if compares and every > FIRST_EVERY:
        is_held |= (numbers < FIRST_ROWS) & ((numbers + 1) % FIRST_EVERY == 0)
    return np.flatnonzero(is_held)


def numbers_of(batch: Batch) -> NDArray[np.int64]:
    """Return the numbers of the rows of a batch in the data."""
    return batch.first_row + np.arange(len(batch))


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
