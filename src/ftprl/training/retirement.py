"""Scales that no longer contribute are dropped at powers of two of the rows learned."""

from __future__ import annotations

import numpy as np

from ftprl.data import Batch
from ftprl.linear.mixture import FIRST_ROW, WINDOW
from ftprl.linear.model import Model, Vector


def learn(model: Model, batch: Batch, scores: Vector, losses: Vector | None, held: Vector | None, retire: bool) -> None:
    """Learn a batch; ask at each power of two of the rows learned whether some scales can be dropped."""
    at = 0
    while at < len(batch):
        may_retire = retire and len(model.engine.spec.scales) > WINDOW
        stop = at + (_until_question(model, batch[at:]) if may_retire else len(batch) - at)
        part = None if losses is None else losses[at:stop]
        others = None if held is None else held[at:stop]
        model.engine.learn(batch[at:stop], scores=scores[at:stop], losses=part, held=others)
        rows, at = model.engine.progress.rows, stop
        if may_retire and rows >= FIRST_ROW and rows & (rows - 1) == 0:
            model.engine = model.engine.retire(in_place=True) or model.engine


def _until_question(model: Model, batch: Batch) -> int:
    """How many rows may be learned before the next question; all of them when it is further off."""
    learned = model.engine.progress.rows
    missing = max(FIRST_ROW, 1 << learned.bit_length()) - learned
    if len(batch) < missing:
        return len(batch)
    counted = np.flatnonzero((batch.weight > 0.0) & (batch.y == batch.y))
    return len(batch) if len(counted) < missing else int(counted[missing - 1]) + 1
