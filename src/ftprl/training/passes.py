"""Several passes over the same data: how well each does on rows that are held out, and how many are best.

A row that was learned in an earlier pass is predicted too well, and best by the scales that memorise most. So after
the first pass the mixture learns from held-out rows alone, at the end of each pass: half of its weight starts with the
mixture of the first pass, and half with each expert by the losses of the first pass, counted as few rows; then both
follow Bayes' rule over the held-out rows, with the scales as they are then. The loss of the held-out rows on the way
decides how many passes are best. In the end the scales learn all rows, the held-out ones too, in as many passes, and
are mixed as was best (docs/passes.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from ftprl.data import Batch, Source
from ftprl.errors import BadModel
from ftprl.linear.engine import Engine
from ftprl.linear.model import Model
from ftprl.linear.totals import LossTotals
from ftprl.training.holdout import add_losses, held_out, numbers_of
from ftprl.training.refused import around_refused
from ftprl.training.run_state import NO_LOSS, ExpertWeights
from ftprl.training.signals import SignalHold

HOLDOUT = 20  # every so many rows one is held out when there are several passes
PATIENCE = 3  # passes without a smaller held-out loss after which a run stops
_FIRST_PASS = 0.125  # the losses of the first pass count as this many times the held-out rows


def best_pass(reviews: Sequence[LossTotals]) -> int | None:
    """The number of the pass with the smallest held-out loss, the first of equals; None where no row was held out.

    >>> best_pass([LossTotals(3.0, 1.0, 1), LossTotals(1.0, 1.0, 1), LossTotals(2.0, 1.0, 1)])
    2
    """
    known = [(totals.mean, number) for number, totals in enumerate(reviews, 1) if totals.weight > 0.0]
    return min(known)[1] if known else None


def is_over(reviews: Sequence[LossTotals]) -> bool:
    """Whether the held-out loss has not fallen for so many passes that another one is not worth its time."""
    best = best_pass(reviews)
    return best is not None and len(reviews) - best >= PATIENCE


def check_chosen(chosen: ExpertWeights | None, engine: Engine) -> None:
    """Refuse, in a checkpoint, weights of experts that no review could have made."""
    if chosen is None:
        return
    experts = len(engine.expert_weights)
    if len(chosen) != experts or min(chosen) < 0.0 or abs(math.fsum(chosen) - 1.0) > 1e-6:
        raise BadModel(f"a checkpoint needs weights of {experts} experts, got {chosen!r:.80}; start anew.")


def review(
    model: Model, source: Source, every: int, rows_before: int, *, threads: int | None, signals: SignalHold
) -> tuple[LossTotals, ExpertWeights]:
    """Read the held-out rows once more at the end of a pass: their loss, and the weights of the experts after them.

    The weights of the engine are in the end what they were, so a review that is interrupted can be repeated.
    """
    engine, totals = model.engine, NO_LOSS
    before = engine.expert_weights
    try:
        engine.start_weighing(_FIRST_PASS / (every - 1))
        with closing(source.read(source.start, threads=threads)) as reading:
            for batch, _ in reading:
                held = held_out(numbers_of(batch), every, rows_before, compares=True)
                rows = rows_of(batch, held)
                for losses, baselines, weights in around_refused(rows, lambda some: _weighed(model, some), _pass_over):
                    totals = add_losses(totals, losses, baselines, weights)
                signals.deliver()
        return totals, engine.expert_weights
    finally:
        engine.expert_weights = before


def _weighed(model: Model, rows: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The losses of held-out rows, the two numbers of the baseline for each, and their weights."""
    rows = model.numbered(rows)
    losses, baselines = np.empty(len(rows)), np.empty((len(rows), 2))
    model.engine.weigh(rows, losses=losses, baselines=baselines)
    return losses, baselines, rows.weight


def _pass_over(_: Exception) -> None:
    """A row that cannot be learned: the pass itself has counted it, or raised its error."""


def rows_of(batch: Batch, rows: np.ndarray) -> Batch:
    """Some rows of a batch, numbered from 0, in arrays of their own.

    >>> some = rows_of(Batch.from_rows([{0: 1.0}, {1: 2.0, 2: 3.0}, {3: 4.0}], y=[1, 2, 3]), np.array([1, 2]))
    >>> some.indices.tolist(), some.y.tolist(), some.indptr.tolist()
    ([1, 2, 3], [2.0, 3.0], [0, 2, 3])
    """
    starts, sizes = batch.indptr[rows], np.diff(batch.indptr)[rows]
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    entries = np.repeat(starts - indptr[:-1], sizes) + np.arange(indptr[-1])
    return Batch.trusted(
        indptr,
        batch.indices[entries],
        batch.values[entries],
        batch.y[rows],
        batch.weight[rows],
        0,
        batch.origin,
        None,
        True,
        None,
        batch.label_texts,
    )
