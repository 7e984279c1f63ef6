"""The weights of a model's features by name.

The score of a mixture is no sum over features, so a weight is defined by scores alone: what the feature adds to the
score of a row that has nothing else, with the feature at its unit. For a model that is linear it is the weight itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.data.files import shown
from ftprl.errors import InvalidInput
from ftprl.linear.classes import shown_label

if TYPE_CHECKING:
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model

Vector = NDArray[np.float64]
Cells = NDArray[np.uint32]
_ROWS = 1 << 16  # scored at a time


@final
class Weights(NamedTuple):
    """Cells with their weights: `unit_weight` with the feature at its unit, `weight` at the value 1.

    `seen` is how many rows had the cell, NaN where that is not counted. With several classes each cell is there once
    for each class, whose number is `column`; otherwise that is 0.
    """

    cells: Cells
    weight: Vector
    unit_weight: Vector
    unit: Vector
    seen: Vector
    column: NDArray[np.int64]


def weights_of(engine: Engine, cells: Cells) -> Weights:
    """The weights of some cells; those of the only scale as they are, those of a mixture as it weighs the scales."""
    parts = engine.parts_at(cells)
    unit = np.asarray(parts["unit"], np.float64).reshape(-1)
    unit = np.where(unit > 0.0, unit, 1.0)  # of a cell that no row had
    seen = np.asarray(parts["count"], np.float64).reshape(-1) if "count" in parts else np.full(len(cells), math.nan)
    if engine.spec.classes:
        return _weights_of_classes(engine, cells, unit, seen)
    column = np.zeros(len(cells), np.int64)
    if not engine.spec.several:
        weight = engine.weights_at(cells)
        return Weights(cells, weight, weight * unit, unit, seen, column)
    effect = np.concatenate([_effects(engine, cells[at], unit[at]) for at in _parts(len(cells))] or [np.empty(0)])
    return Weights(cells, effect / unit, effect, unit, seen, column)


def _weights_of_classes(engine: Engine, cells: Cells, unit: Vector, seen: Vector) -> Weights:
    count = engine.classes
    parts = [_effects(engine, cells[at], unit[at]) for at in _parts(len(cells))]
    effect = np.concatenate(parts or [np.empty((0, count))]).reshape(-1)
    column = np.tile(np.arange(count), len(cells))
    unit = np.repeat(unit, count)
    return Weights(np.repeat(cells, count), effect / unit, effect, unit, np.repeat(seen, count), column)


def class_scores(logs: Vector) -> Vector:
    """The score of each class: the logarithm of its probability, counted from the mean over the classes."""
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True)) if logs.size else logs


def scores_of(engine: Engine, batch: Batch, column: int | None = None) -> Vector:
    """The scores of some rows; with several classes those of all classes, or of one."""
    scores = engine.score(batch, calibrated=False)
    if not engine.spec.classes:
        return scores
    return class_scores(scores) if column is None else np.asarray(class_scores(scores)[:, column])


def _parts(count: int) -> list[slice]:
    return [slice(start, start + _ROWS) for start in range(0, count, _ROWS)]


def _effects(engine: Engine, cells: Cells, values: Vector) -> Vector:
    """What each feature alone adds to the score of an empty row."""
    indptr = np.minimum(np.arange(len(cells) + 2), len(cells)).astype(np.int64)
    scores = scores_of(engine, batch_of(indptr, cells, values))
    return np.asarray(scores[:-1] - scores[-1])


def batch_of(indptr: NDArray[np.int64], cells: Cells, values: Vector) -> Batch:
    """Rows of cells and values, without labels."""
    rows = len(indptr) - 1
    parts = (indptr, np.ascontiguousarray(cells, np.uint32), np.ascontiguousarray(values, np.float64))
    return Batch.trusted(*parts, np.full(rows, math.nan), np.ones(rows), 0, "", None, True)


# ---- with their names ----


@final
class WeightRow(NamedTuple):
    """A cell of a model as `inspect` lists it, with the name of the first feature that landed there.

    `label` is the class whose weight it is; None with a loss of one score.
    """

    name: str
    cell: int
    weight: float
    unit_weight: float
    unit: float
    seen: float | None
    label: str | None = None


def names_of(model: Model, cells: Cells) -> list[str]:
    """Return the name of each cell, or its number where no name is known."""
    numbers = cells.tolist()
    names = [None] * len(numbers) if model.names is None else model.names.of_cells(cells)
    return [str(cell) if name is None else name for name, cell in zip(names, numbers, strict=True)]


def weight_rows(model: Model, weights: Weights, order: Sequence[int] | NDArray[np.intp]) -> list[WeightRow]:
    """Some of the weights with their names."""
    at = np.asarray(order, np.intp)
    names = names_of(model, weights.cells[at])
    columns: list[NDArray[Any]] = [column[at] for column in weights]
    labels = None if model.classes is None else [shown_label(label) for label in model.classes]
    return [
        WeightRow(
            name,
            cell,
            weight,
            unit_weight,
            unit,
            None if math.isnan(seen) else seen,
            None if labels is None else labels[column],
        )
        for name, cell, weight, unit_weight, unit, seen, column in zip(
            names, *(column.tolist() for column in columns), strict=True
        )
    ]


def weights_table(model: Model) -> Any:
    """All cells that were touched as a pyarrow table, the largest weights first."""
    import pyarrow as pa

    weights = weights_of(model.engine, model.touched())
    order = np.argsort(-np.abs(weights.unit_weight), kind="stable")
    return pa.table(
        {
            "name": names_of(model, weights.cells[order]),
            "cell": weights.cells[order],
            "weight": weights.weight[order],
            "unit_weight": weights.unit_weight[order],
            "unit": weights.unit[order],
            "seen": pa.array(weights.seen[order], from_pandas=True),
            **_label_column(model, weights.column[order]),
        }
    )


def _label_column(model: Model, columns: NDArray[np.int64]) -> dict[str, list[str]]:
    """The class of each weight as one more column of a table; nothing with a loss of one score."""
    if model.classes is None:
        return {}
    labels = [shown_label(label) for label in model.classes]
    return {"class": [labels[column] for column in columns.tolist()]}


def export(model: Model, path: str | os.PathLike[str]) -> int:
    """Write `weights_table` to a CSV or Parquet file, by its suffix; returns how many cells it has."""
    from ftprl.atomic import replacing

    suffix = os.path.splitext(os.fspath(path))[1].lower()
    if suffix not in (".csv", ".parquet"):
        raise InvalidInput(
            f"--export needs a file that ends in .csv or .parquet, got {shown(os.fspath(path))}; name one."
        )
    table = weights_table(model)
    with replacing(path) as out:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, out)
        else:
            from pyarrow.csv import write_csv

            write_csv(table, out)
    return int(table.num_rows)
