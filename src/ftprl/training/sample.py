"""A sample of the rows that were learned, which the saved model predicts again (docs/order.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import order_keys
from ftprl.data import Batch
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear.frozen import FrozenCheck, Vector
from ftprl.linear.model import WAITING
from ftprl.training.delay import joined
from ftprl.training.passes import rows_of

SAMPLE = 2000
MOST_ENTRIES = 1 << 22  # features of these rows
LEAST_ROWS = 1000  # fewer learned rows say too little
PREFIX = f"{WAITING}sample."  # of the tensors of a checkpoint
_PARTS = ("entries", "indices", "values", "y", "weight", "kept", "rows")


@final
class LearnedSample:
    """A uniform sample of the learned rows, each with its loss when it came, to predict them again at the end.

    Row t of the learned rows is in it if its 64 random bits are among the smallest.
    """

    def __init__(self, seed: int) -> None:
        self._seed, self._rows = seed, 0
        self._limit = np.uint64(2**64 - 1)
        self._batches: list[Batch] = []
        self._kept: list[NDArray[np.float64]] = []  # number, loss, baseline's loss and least loss of each row

    def see(self, batch: Batch, losses: Vector, baselines: Vector) -> None:
        """Keep some of the rows that were learned."""
        learned = np.flatnonzero((batch.weight > 0.0) & (batch.y == batch.y))
        keys = order_keys(self._seed, self._rows, len(learned))
        numbers = self._rows + np.arange(len(learned), dtype=np.float64)
        self._rows += len(learned)
        chosen = np.flatnonzero(keys < self._limit)
        if not len(chosen):
            return
        rows = learned[chosen]
        self._batches.append(rows_of(batch, rows))
        self._kept.append(np.column_stack([numbers[chosen], losses[rows], baselines[rows]]))
        entries = sum(len(one.indices) for one in self._batches)
        if sum(map(len, self._kept)) >= 2 * SAMPLE or entries >= 2 * MOST_ENTRIES:
            self._cut()

    def _cut(self) -> None:
        """Keep the rows with the smallest keys, as many as there is room for, in the order in which they came."""
        batch, kept = joined(self._batches), np.concatenate(self._kept)
        keys = np.concatenate([order_keys(self._seed, int(number), 1) for number in kept[:, 0]])
        by_key = np.argsort(keys, kind="stable")
        room = np.searchsorted(np.cumsum(np.diff(batch.indptr)[by_key]), MOST_ENTRIES, side="right")
        count = min(SAMPLE, max(int(room), 1))
        order = np.sort(by_key[:count])
        self._batches, self._kept = [rows_of(batch, order)], [kept[order]]
        self._limit = keys[by_key[count]] if count < len(by_key) else self._limit

    def check(self, predicted: Callable[[Batch], Vector]) -> FrozenCheck | None:
        """Compare the losses of the sampled rows as they are predicted now with those when they came."""
        if self._rows < LEAST_ROWS:
            return None
        self._cut()
        (batch,), (kept,) = self._batches, self._kept
        return FrozenCheck.of_learned_rows(predicted(batch), kept[:, 1], kept[:, 2:], batch.weight)

    # ---- checkpoints ----

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the rows as tensors of a model file."""
        if not self._batches:
            return {}
        batch, kept = joined(self._batches), np.concatenate(self._kept)
        entries = np.diff(batch.indptr).astype(np.uint32)
        arrays = (entries, batch.indices, batch.values, batch.y, batch.weight, kept, np.array([float(self._rows)]))
        return dict(zip((PREFIX + part for part in _PARTS), arrays, strict=True))

    def restore(self, tensors: Mapping[str, NDArray[Any]], dim: int, rows_read: int) -> None:
        """Take back what `tensors` returned, after so many rows of the run; refuse anything else."""
        own = {name.removeprefix(PREFIX): array for name, array in tensors.items() if name.startswith(PREFIX)}
        if not own:
            return
        try:
            entries, indices, values, y, weight, kept, rows = (own[part] for part in _PARTS)
            indptr = np.concatenate(([0], np.cumsum(entries, dtype=np.int64)))
            batch = Batch(indptr, indices, values, y, weight).replaced(is_private=True)
            fits = kept.shape == (len(batch), 4) and rows.shape == (1,) and len(batch) < 2 * SAMPLE
            numbers = kept[:, 0]
            fits = fits and bool((numbers >= 0.0).all() and (numbers == np.floor(numbers)).all())
            fits = fits and bool((np.diff(numbers) > 0).all() and numbers[-1] < rows[0] <= rows_read)
            fits = fits and all(bool(np.isfinite(one).all()) for one in (values, y, weight, kept))
            fits = fits and bool((weight > 0.0).all())
            if not fits or (len(indices) and int(indices.max()) >= dim):
                raise ValueError("rows that no run has learned")
        except (KeyError, ValueError, IndexError, InvalidInput) as wrong:
            raise BadModel(f"a checkpoint needs the sample of learned rows, got {wrong}; start anew.") from None
        self._batches, self._kept, self._rows = [batch], [kept], int(rows[0])
