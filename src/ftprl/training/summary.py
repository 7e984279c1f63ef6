"""A model in numbers: what `ftprl inspect` shows."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ftprl.linear import model_file
from ftprl.linear.model import Model
from ftprl.training.progress import loss_fields
from ftprl.training.run_state import TrainingHistory


def summary(path: str | os.PathLike[str], top: int = 10) -> dict[str, Any]:
    """The settings, the size and the `top` largest weights of a model file, as plain data."""
    model = Model.load(path)
    weights = model.weights()
    kept = np.flatnonzero(weights)
    size = np.abs(weights[kept])
    order = kept[np.argsort(-size, kind="stable")[:top]]  # among equals the lower cell first
    run, history = model.run, TrainingHistory.from_dict(model.history)
    return {
        "file": os.fspath(path),
        "bytes": os.stat(path).st_size,
        "sha256": model_file.digest_of(path),
        "spec": model.engine.spec.to_dict(),
        "reading": model.reading,
        "history": model.history,
        "progressive": loss_fields(history.progressive),
        "holdout": loss_fields(history.holdout) if history.holdout.rows else None,
        "unfinished": None if run is None else {"rows": run["standing"]["rows"], "passes": run["passes"]},
        "weight": model.engine.progress.weight,
        "baseline_loss": model.engine.baseline.loss,
        "occupied": model.occupied,
        "nonzero": len(kept),
        "intercept": model.engine.bias(),
        "mixture": None if model.engine.mixture is None else model.engine.mixture.to_dict(),
        "leader": None if model.engine.mixture is None else model.engine.leader,
        "largest": [{"cell": int(cell), "weight": float(weights[cell])} for cell in order],
    }
