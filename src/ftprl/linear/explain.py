"""What a model says of its features: the weight of each by name, and what each adds to the score of one row.

The score of a mixture is no sum over features, so both are defined by scores alone. The weight of a feature is what it
adds to the score of a row that has nothing else, with the feature at its unit. The contributions of a row are those of
Aumann and Shapley: all its features grow together from 0 to their values, and each is given what its own growth adds
on the way. For a model that is linear both are the weight, and the weight times the value.
"""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import NameTable
from ftprl.data import Batch
from ftprl.data.files import shown
from ftprl.data.formats import has_open_columns
from ftprl.data.labels import plain_label
from ftprl.data.nested import DEEPEST, has_inside
from ftprl.data.options import SEPARATORS, column_name
from ftprl.data.parts import ORIGIN
from ftprl.data.protocol import BESIDE
from ftprl.data.records import is_list
from ftprl.data.tables import nearest
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear.classes import shown_label

if TYPE_CHECKING:
    from ftprl.linear.engine import Engine
    from ftprl.linear.model import Model

Vector = NDArray[np.float64]
Cells = NDArray[np.uint32]
STEPS = 16  # of the way from 0 to the values of a row
_ROWS = 1 << 16  # scored at a time
_ENTRIES = 1 << 20  # likewise


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


def _scores(engine: Engine, batch: Batch, column: int | None = None) -> Vector:
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
    scores = _scores(engine, _batch(indptr, cells, values))
    return np.asarray(scores[:-1] - scores[-1])


def _batch(indptr: NDArray[np.int64], cells: Cells, values: Vector) -> Batch:
    rows = len(indptr) - 1
    parts = (indptr, np.ascontiguousarray(cells, np.uint32), np.ascontiguousarray(values, np.float64))
    return Batch.trusted(*parts, np.full(rows, math.nan), np.ones(rows), 0, "", None, True)


# ---- one row ----


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
    if isinstance(row, str | bytes):
        row = _of_text(model, row)
    left_out = _left_out(model, row) if isinstance(row, Mapping) else ()
    batch = row if isinstance(row, Batch) else _first(model, [row] if isinstance(row, Mapping) else row)
    if len(batch) != 1:
        raise InvalidInput(f"row needs to be one row, got {len(batch)}; pass one.")
    cells, values = batch.indices, batch.values.astype(np.float64)
    whole = _batch(np.array([0, len(cells), len(cells)], np.int64), cells, values)
    column = _column_of(model, whole, label)
    added = _contributions(model.engine, cells, values, column)
    score, intercept = _scores(model.engine, whole, column).tolist()
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
    chance = float(model.mean(model.engine.score(whole))[0, column])
    return replace(of_row, prediction=chance, label=model.classes[column])


def _column_of(model: Model, rows: Batch, label: Any) -> int | None:
    """The number of a class, by default of the most probable one of the first row; None with a loss of one score."""
    if model.classes is None:
        if label is not None:
            raise InvalidInput(f"label= needs a model of several classes, got {model.engine.spec.loss} loss; drop it.")
        return None
    if label is None:
        return int(model.engine.score(rows)[0].argmax())
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
        batch = _batch(np.arange(number + 1, dtype=np.int64) * count, np.tile(cells, number), rows.reshape(-1))
        scores = _scores(engine, batch, column).reshape(STEPS, len(which), 2)
        added[which] = (scores[:, :, 1] - scores[:, :, 0]).sum(axis=0)
    return added


def _names(batch: Batch, model: Model) -> list[str]:
    """The names of the row's features; those that share a cell together, and the number of the cell where none is."""
    by_cell: dict[int, list[str]] = {}
    if batch.names is not None:
        table = NameTable(1 << 40)
        batch.names.add_to(table)
        for number, cell in enumerate(table.slots(model.engine.spec.dim).tolist()):
            by_cell.setdefault(cell, []).append(table.name(number).decode("utf-8", "backslashreplace"))
    return [" + ".join(by_cell.get(cell, [str(cell)])) for cell in batch.indices.tolist()]


def _are_new(batch: Batch, model: Model) -> list[bool]:
    """Which cells of a row have features that the training data did not have, as far as the model knows.

    A cell that no row had is new. One that is in use is new if its names are known and this one is not among them.
    """
    cells, dim = batch.indices, model.engine.spec.dim
    if model.is_compact:  # cells without a weight were dropped
        return [False] * len(cells)
    step = max(1, model.engine.classes)
    weights = weights_of(model.engine, cells)
    is_new = weights.seen[::step] == 0.0
    if model.names is None or batch.names is None or not model.names.has_all:
        return [bool(one) for one in is_new]
    table = NameTable(1 << 40)
    batch.names.add_to(table)
    own, named = table.slots(dim), model.names.cells(dim)
    is_known = np.isin(table.hashes, model.names.table.hashes)
    # A name in some thousands is not kept: its cell has no other, as a rule, and a weight.
    is_other = np.isin(cells, named) & np.isin(cells, own[~is_known]) & ~np.isin(cells, own[is_known])
    is_idle = np.isnan(weights.seen[::step]) & (weights.weight[::step] == 0.0) & ~np.isin(cells, named)
    return [bool(one) for one in is_new | is_other | is_idle]


def _left_out(model: Model, row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The keys of a dict that are no columns of a model, unless it reads whatever comes."""
    columns = model.reading.get("columns")
    if columns is None or has_open_columns(model.reading):
        return ()
    return tuple(_unknown_names(row, columns, "", 1))


def _unknown_names(row: Mapping[Any, Any], columns: Mapping[str, str], before: str, depth: int) -> Iterator[str]:
    """The keys that are neither columns nor within one: a map, or a dict that is left out."""
    for key, value in row.items() if depth <= DEEPEST else ():
        name = before + (key if isinstance(key, str) else column_name(key))
        is_column, has_columns = name in columns, has_inside(columns, name)
        if isinstance(value, dict):
            if has_columns or not is_column:
                yield from _unknown_names(value, columns, f"{name}.", depth + 1)
        elif not is_column and not (has_columns and is_list(value)):
            yield name
        elif not is_column:
            pairs = [element for element in value if isinstance(element, dict)]
            named = {f"{name}.{pair.get('name', pair.get('key'))}": pair for pair in pairs}
            yield from (one for one in named if one not in columns)
            if len(pairs) < len(value):
                yield name


def _of_text(model: Model, row: str | bytes) -> Any:
    """The row of a line: of its format, or a dict of its fields."""
    text = row.decode("utf-8", "surrogateescape") if isinstance(row, bytes) else row
    if model.reading.get("format") in ("vw", "libsvm"):
        return _of_line(model, text, str(model.reading["format"]))
    return _of_fields(model, text)


def _first(model: Model, data: Any, **more: Any) -> Batch:
    try:
        batches = [batch for batch, _ in model.open(data, names=True, **more).read(threads=0, digest=False)]
    except BadFormat as wrong:
        what = str(wrong).replace(f"{ORIGIN}: row 0: ", "row: ")
        raise BadFormat(what.replace(", or pass on_bad_row=skip", ""), option=wrong.options) from None
    rows = sum(len(batch) for batch in batches)
    if rows != 1:
        raise InvalidInput(f"row needs to be one row, got {rows}; pass one.")
    return batches[0]


def _of_line(model: Model, text: str, format: str) -> Batch:
    """A line of a format without columns, through a file, which its reader needs."""
    with tempfile.TemporaryDirectory(prefix="ftprl-") as folder:
        path = os.path.join(folder, f"row.{format}")
        with open(path, "wb") as out:
            out.write(text.encode("utf-8", "surrogateescape").rstrip(b"\n") + b"\n")
        try:
            return _first(model, path)
        except BadFormat as wrong:
            raise BadFormat(str(wrong).replace(f"{path}:1", "row"), option=wrong.options) from None


def _of_fields(model: Model, text: str) -> dict[str, Any]:
    """A JSON object, or the fields of a line with the names of the model's columns."""
    if text.lstrip().startswith("{"):
        try:
            return dict(json.loads(text))
        except ValueError as wrong:
            raise InvalidInput(f"row needs a JSON object, got {shown(text)[:80]!r} ({wrong}); fix it.") from None
    format = model.reading.get("format")
    known = model.reading.get("columns") or {}
    # In the order of the data, which `columns` of a model file does not keep.
    columns = {name: known[name] for name in model.reading.get("order") or ()}
    if known and not columns:
        raise InvalidInput(
            f"row needs a JSON object, since the model is of an earlier version, got {shown(text)[:80]!r}."
        )
    sep = model.reading.get("sep") or ("\t" if format == "tsv" else ",")
    quote = model.reading.get("quote") or ("" if format == "tsv" else '"')
    quoting = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    used = [name for name, kind in columns.items() if kind not in (*BESIDE, "ignore")]
    unlabelled = [name for name, kind in columns.items() if kind not in BESIDE]
    for other in dict.fromkeys((sep, *SEPARATORS)):  # that of the training data, or one that fits
        fields = [] if other == quote else next(csv.reader([text], delimiter=other, **quoting), [])
        for names in (used, unlabelled, list(columns)):
            if len(names) == len(fields) and names and (other == sep or len(fields) > 1):
                return {name: field for name, field in zip(names, fields, strict=True) if name in used}
    fields = next(csv.reader([text], delimiter=sep, **quoting), [])
    some = ", ".join(shown(name) for name in used[:8]) + (", ..." if len(used) > 8 else "")
    raise InvalidInput(
        f"row needs {len(used)} fields ({some}) or all {len(columns)} columns, got {len(fields)} fields;"
        " write a JSON object to name them."
    )


# ---- all weights ----


@final
class WeightRow(NamedTuple):
    """A cell of a model as `inspect` lists it; `others` is how many names besides the first share the cell.

    `label` is the class whose weight it is; None with a loss of one score.
    """

    name: str
    cell: int
    weight: float
    unit_weight: float
    unit: float
    seen: float | None
    others: int
    label: str | None = None

    @property
    def collision(self) -> float:
        """The share of the cell's names that are not the one shown."""
        return self.others / (1 + self.others)


def names_of(model: Model, cells: Cells) -> tuple[list[str], NDArray[np.int64]]:
    """The name of each cell, its number where none is known, and how many other names it has."""
    if model.names is None:
        return [str(cell) for cell in cells.tolist()], np.zeros(len(cells), np.int64)
    first, others = model.names.of_cells(cells, model.engine.spec.dim)
    numbers = cells.tolist()
    return [str(cell) if name is None else name for name, cell in zip(first, numbers, strict=True)], others


def weight_rows(model: Model, weights: Weights, order: Sequence[int] | NDArray[np.intp]) -> list[WeightRow]:
    """Some of the weights with their names."""
    at = np.asarray(order, np.intp)
    names, others = names_of(model, weights.cells[at])
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
            other,
            None if labels is None else labels[column],
        )
        for name, cell, weight, unit_weight, unit, seen, column, other in zip(
            names, *(column.tolist() for column in columns), others.tolist(), strict=True
        )
    ]


def weights_table(model: Model) -> Any:
    """All cells that were touched as a pyarrow table, the largest weights first."""
    import pyarrow as pa

    weights = weights_of(model.engine, model.engine.touched())
    order = np.argsort(-np.abs(weights.unit_weight), kind="stable")
    names, others = names_of(model, weights.cells[order])
    return pa.table(
        {
            "name": names,
            "cell": weights.cells[order],
            "weight": weights.weight[order],
            "unit_weight": weights.unit_weight[order],
            "unit": weights.unit[order],
            "seen": pa.array(weights.seen[order], from_pandas=True),
            "others": others,
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
