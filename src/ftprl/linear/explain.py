"""What each feature adds to the score of one row.

The score of a mixture is no sum over features, so the contributions of a row are defined by scores alone, as those of
Aumann and Shapley: all its features grow together from 0 to their values, and each is given what its own growth adds
on the way. For a model that is linear that is the weight times the value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from ftprl._core import NameTable
from ftprl.data import Batch
from ftprl.data.columns import nearest
from ftprl.data.files import shown
from ftprl.data.labels import plain_label
from ftprl.errors import InvalidInput
from ftprl.linear.classes import shown_label
from ftprl.linear.row_input import read_row
from ftprl.linear.weights import Cells, Vector, batch_of, scores_of, weights_of

if TYPE_CHECKING:
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model

STEPS = 16  # of the way from 0 to the values of a row
_ENTRIES = 1 << 20  # scored at a time


@final
class Contribution(NamedTuple):
    """What a feature adds to the score of a row: its name, its cell, its value, and what it adds.

    One that `is_new` was in no row of the training data: what it adds is the weight of others in its cell, if any.
    """

    name: str
    cell: int
    value: float
    contribution: float
    is_new: bool = False


@final
@dataclass(frozen=True, slots=True)
class Explanation:
    """The score of a row as a sum: `intercept`, the score of a row without features, the `contributions` of its
    features, the largest first, and the `remainder`, what the growth of single features does not account for.

    `left_out` are the keys of a dict that are no columns of the model, which reads nothing of them. `prediction` is the
    probability or the mean that the score stands for. With several classes all of it is about one
    of them, `label`: its score is the logarithm of its probability, counted from the mean over the classes.
    """

    score: float
    prediction: float
    intercept: float
    contributions: tuple[Contribution, ...]
    remainder: float
    label: str | float | None = None
    left_out: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()  # of the model, where keys were left out

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "score": self.score,
            "prediction": self.prediction,
            "intercept": self.intercept,
            "contributions": [entry._asdict() for entry in self.contributions],
            "remainder": self.remainder,
            "left_out": list(self.left_out),
            **({} if self.label is None else {"class": self.label}),
        }

    def __str__(self) -> str:
        lines = [f"{'contribution':>14} {'value':>12}  feature", f"{self.intercept:>14.6g} {'':>12}  (intercept)"]
        for one in self.contributions:
            new = "  (not in the training data)" if one.is_new else ""
            lines.append(f"{one.contribution:>14.6g} {one.value:>12.6g}  {shown(one.name)}{new}")
        lines.append(f"{self.remainder:>14.6g} {'':>12}  (together)")
        of_class = "" if self.label is None else f" of class {shown(shown_label(self.label))}"
        lines.append(f"{self.score:>14.6g} {'':>12}  score{of_class}: prediction {self.prediction:.6g}")
        lines += [
            f"note: {shown(name)[:40]!r} is not a column of the model and is ignored; {nearest(name, self.columns)}"
            for name in self.left_out
        ]
        return "\n".join(lines)


def explain(model: Model, row: Any, label: Any = None) -> Explanation:
    """The contributions of one row: a line of text, a dict, a frame or an array with one row, or a `Batch`.

    With several classes those to the score of `label`, by default of the most probable class.
    """
    batch, left_out = read_row(model, row)
    cells, values = batch.indices, batch.values.astype(np.float64)
    whole = batch_of(np.array([0, len(cells), len(cells)], np.int64), cells, values)
    column = _column_of(model, whole, label)
    added = _contributions(model.engine, cells, values, column)
    score, intercept = scores_of(model.engine, whole, column).tolist()
    names = _names(batch, model)
    entries = [
        Contribution(*entry)
        for entry in zip(names, cells.tolist(), values.tolist(), added.tolist(), _are_new(batch, model), strict=True)
    ]
    entries.sort(key=lambda entry: -abs(entry.contribution))
    remainder = score - math.fsum([intercept, *added.tolist()])
    of_row = Explanation(score, math.nan, intercept, tuple(entries), remainder, left_out=left_out)
    if left_out:
        of_row = replace(of_row, columns=tuple(model.reading["columns"]))
    if column is None or model.classes is None:
        prediction = float(
            model.predict(whole)[0]
        )  # a calibrator changes the prediction, not what adds up to the score
        return replace(of_row, prediction=prediction)
    chance = float(model.mean(model.score(whole))[0, column])
    return replace(of_row, prediction=chance, label=model.classes[column])


def _column_of(model: Model, rows: Batch, label: Any) -> int | None:
    """The number of a class, by default of the most probable one of the first row; None with a loss of one score."""
    if model.classes is None:
        if label is not None:
            raise InvalidInput(f"label= needs a model of several classes, got {model.spec.loss} loss; drop it.")
        return None
    if label is None:
        return int(model.score(rows)[0].argmax())
    if plain_label(label) not in model.classes:
        some = ", ".join(map(shown_label, model.classes[:6])) + (", ..." if len(model.classes) > 6 else "")
        raise InvalidInput(f"label= needs a class of the model ({some}), got {label!r:.40}; pass one of them.")
    return model.classes.index(plain_label(label))


def _contributions(engine: Engine, cells: Cells, values: Vector, column: int | None) -> Vector:
    """What each feature adds while all grow from 0 to their values in steps, by central differences."""
    count = len(cells)
    added = np.zeros(count)
    some = max(1, _ENTRIES // max(1, count * 2 * STEPS))
    for first in range(0, count, some):
        which = np.arange(first, min(count, first + some))
        rows = np.tile(values, (STEPS, len(which), 2, 1))
        middle = (np.arange(STEPS) + 0.5) / STEPS
        rows *= middle[:, None, None, None]
        for side, step in enumerate((-0.5 / STEPS, 0.5 / STEPS)):
            rows[:, np.arange(len(which)), side, which] += step * values[which]
        number = STEPS * len(which) * 2
        batch = batch_of(np.arange(number + 1, dtype=np.int64) * count, np.tile(cells, number), rows.reshape(-1))
        scores = scores_of(engine, batch, column).reshape(STEPS, len(which), 2)
        added[which] = (scores[:, :, 1] - scores[:, :, 0]).sum(axis=0)
    return added


def _names(batch: Batch, model: Model) -> list[str]:
    """The names of the row's features; those that share a cell together, and the number of the cell where none is."""
    by_cell: dict[int, list[str]] = {}
    if batch.names is not None:
        table = NameTable(1 << 40, 0)
        batch.names.add_to(table)
        for number, cell in enumerate(table.slots(model.spec.dim).tolist()):
            name = table.name(number).decode("utf-8", "backslashreplace")
            if name not in by_cell.setdefault(cell, []):
                by_cell[cell].append(name)
    return [" + ".join(by_cell.get(cell, [str(cell)])) for cell in batch.indices.tolist()]


def _are_new(batch: Batch, model: Model) -> list[bool]:
    """Which cells of a row have features that the training data did not have, as far as the model knows.

    A cell that no row had is new. Features that share a cell with one of the training data are not told apart.
    """
    cells = batch.indices
    if model.is_compact:  # cells without a weight were dropped
        return [False] * len(cells)
    step = max(1, model.engine.classes)
    weights = weights_of(model.engine, cells)
    is_new = weights.seen[::step] == 0.0
    if model.names is None or batch.names is None or not model.names.has_all:
        return [bool(one) for one in is_new]
    is_idle = np.isnan(weights.seen[::step]) & (weights.weight[::step] == 0.0)
    return [bool(one) for one in is_new | (is_idle & ~np.isin(cells, model.names.cells()))]
