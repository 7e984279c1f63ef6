"""A model in numbers: what `ftprl inspect` shows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.model import Model
from ftprl.training.progress import loss_fields
from ftprl.training.run_state import TrainingHistory


def summary(path: str | os.PathLike[str], top: int = 10) -> dict[str, Any]:
    """The settings, the size and the `top` largest weights of a model file, as plain data."""
    model = Model.load(path)
    spec, occupied = model.engine.spec, model.engine.touched()
    idle = max(spec.lower, 0.0) if spec.upper > 0.0 else spec.upper  # the weight of a cell that nothing was learned in
    cells = np.union1d(occupied, _free_cells(occupied, spec.dim, top)) if idle else occupied
    weights = model.engine.weights_at(cells)  # of these alone: the table may be much larger
    order = np.argsort(-np.abs(weights), kind="stable")[:top]  # among equals the lower cell first
    order = order[weights[order] != 0.0]
    # A weight that is 0 in one scale counts in the prediction if it is not 0 in another.
    used = np.zeros(len(cells), np.bool_)
    for k in range(len(spec.scales)):
        used |= model.engine.weights_at(cells, k) != 0.0
    nonzero = np.count_nonzero(used) + (spec.dim - len(cells) if idle else 0)
    saved, history = model.checkpoint, TrainingHistory.from_dict(model.history)
    return {
        "file": os.fspath(path),
        "bytes": model.file_size,
        "sha256": model.file_digest,
        "spec": spec.to_dict(),
        "reading": model.reading,
        "history": model.history,
        "progressive": loss_fields(history.progressive),
        "holdout": loss_fields(history.holdout) if history.holdout.rows else None,
        "unfinished": None if saved is None else {"rows": saved["standing"]["rows"], "passes": saved["passes"]},
        "weight": model.engine.progress.weight,
        "mixture_weight": _mixture_weight(model, history),
        "baseline_loss": model.engine.baseline.loss,
        "occupied": len(occupied),
        "nonzero": int(nonzero),
        "intercept": model.engine.bias(),
        "mixture": None if model.engine.mixture is None else model.engine.mixture.to_dict(),
        "leader": None if model.engine.mixture is None else model.engine.leader,
        "largest": [{"cell": int(cells[i]), "weight": float(weights[i])} for i in order],
    }


def _mixture_weight(model: Model, history: TrainingHistory) -> float:
    """The weight of the rows that the losses of the experts are of: without a receipt those of first passes alone."""
    if model.engine.receipt or not (history.progressive.rows or model.checkpoint):
        return model.engine.progress.weight
    first = None if model.checkpoint is None else model.checkpoint["standing"]["progressive"]
    if model.checkpoint is None:
        return history.progressive.weight
    return model.engine.progress.weight if first is None else float(first[1])


def _free_cells(occupied: NDArray[np.uint32], dim: int, count: int) -> NDArray[np.uint32]:
    """The first cells that are not occupied."""
    first = np.arange(min(dim, len(occupied) + count), dtype=np.uint32)
    return np.setdiff1d(first, occupied, assume_unique=True)[:count]
