"""A model in numbers: what `ftprl inspect` shows."""

from __future__ import annotations

import math
import os
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.derived import count_nonzero, idle_weight
from ftprl.linear.model import Model
from ftprl.linear.totals import LossTotals
from ftprl.linear.weights import WeightRow, Weights, names_of, weight_rows, weights_of
from ftprl.training.progress import loss_fields
from ftprl.training.run_state import TrainingHistory

_LOOKED_AT = 4096  # names that are matched at a time


def summary(path: str | os.PathLike[str], top: int = 10, match: str | None = None) -> dict[str, Any]:
    """The settings, the size and the `top` largest weights of a model file, as plain data.

    With `match` only features whose names match the pattern are listed; letters match as they are, * anything.
    """
    return summary_of(Model.load(path), os.fspath(path), top, match)


def summary_of(model: Model, path: str, top: int, match: str | None) -> dict[str, Any]:
    """The same of a model that was loaded."""
    spec, occupied = model.spec, model.touched()
    cells = np.union1d(occupied, _free_cells(occupied, spec.dim, top)) if idle_weight(model.engine) else occupied
    weights = weights_of(model.engine, cells)  # of these alone: the table may be much larger
    largest = _largest(model, weights, top, match)
    saved, history = model.checkpoint, TrainingHistory.from_dict(model.history)
    mixed = _mixture_totals(model, history)
    return {
        "file": path,
        "bytes": model.file_size,
        "sha256": model.file_digest,
        "spec": spec.to_dict(),
        "reading": model.reading,
        "history": model.history,
        "progressive": loss_fields(history.progressive),
        "sample": None if history.sample is None else {"rows": history.sample.rows, **loss_fields(history.sample)},
        "check": None if history.check is None else history.check.to_dict(),
        "warnings": [caution.text for caution in model.cautions],
        "holdout": loss_fields(history.holdout) if history.holdout.rows else None,
        "unfinished": None if saved is None else {"rows": saved["state"]["rows"], "passes": saved["passes"]},
        "weight": model.progress.weight,
        "mixture_weight": mixed.weight,
        "baseline_loss": mixed.baseline,
        "compact": model.is_compact,
        "occupied": len(occupied),
        "nonzero": count_nonzero(model.engine, cells),
        "intercept": _intercept(model),
        "classes": None if model.classes is None else list(model.classes),
        "positive": model.positive,
        "mixture": None if model.mixture is None else model.mixture.to_dict(),
        "leader": None if model.mixture is None else model.leader,
        "names": None if model.names is None else _names(model, occupied),
        "bounds": None
        if model.engine.bounds is None
        else dict(zip(("cells", "shared"), model.shared_bounds, strict=True)),
        "largest": [entry._asdict() for entry in largest],
    }


def _intercept(model: Model) -> Any:
    """The weight of the intercept; with several classes that of each."""
    return model.bias() if model.classes is None else model.engine.biases().tolist()


def _largest(model: Model, weights: Weights, top: int, match: str | None) -> list[WeightRow]:
    """The largest weights of features at their units; among equals the lower cell first."""
    order = np.argsort(-np.abs(weights.unit_weight), kind="stable")
    order = order[weights.unit_weight[order] != 0.0]
    if match is None:
        return weight_rows(model, weights, order[:top])
    wanted: list[int] = []
    for start in range(0, len(order), _LOOKED_AT):
        some = order[start : start + _LOOKED_AT]
        names = names_of(model, weights.cells[some])
        wanted += [int(i) for i, name in zip(some, names, strict=True) if fnmatchcase(name, match)]
        if len(wanted) >= top:
            break
    return weight_rows(model, weights, wanted[:top])


def _names(model: Model, occupied: NDArray[np.uint32]) -> dict[str, Any]:
    """Return how many names there are, how many features share a cell (an estimate), and how many cells lack a name."""
    names, dim = model.names, model.spec.dim
    assert names is not None
    unnamed = 0 if names.has_all else sum(name is None for name in names.of_cells(occupied))
    return {
        "count": len(names),
        "bytes": names.bytes,
        "budget": names.budget,
        "collisions": _collisions(len(occupied), dim),
        "full_row": names.full_row,
        "products_full_row": names.products_full_row,
        "unnamed": unnamed,
    }


def _collisions(occupied: int, dim: int) -> int:
    """Return about how many features landed in a cell that another one had: those that hashing spreads over so many.

    n features leave each of the cells free with probability exp(-n / dim).
    """
    free = max(dim - occupied, 0.5)
    return round(dim * math.log(dim / free)) - occupied


def _mixture_totals(model: Model, history: TrainingHistory) -> LossTotals:
    """The totals of the rows that the losses of the experts are of: without a receipt those of first passes alone."""
    if model.receipt or not (history.progressive.rows or model.checkpoint):
        return model.progress
    if model.checkpoint is None:
        return history.progressive
    state = model.checkpoint["state"]
    known = state["progressive"] or state.get("arrived")
    return model.progress if known is None else LossTotals.from_list(known)


def _free_cells(occupied: NDArray[np.uint32], dim: int, count: int) -> NDArray[np.uint32]:
    """The first cells that are not occupied."""
    first = np.arange(min(dim, len(occupied) + count), dtype=np.uint32)
    return np.setdiff1d(first, occupied, assume_unique=True)[:count]
