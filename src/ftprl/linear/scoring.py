"""Models and prediction files as systems that are compared or measured on the same rows with labels."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ftprl import data as readers
from ftprl.data import Batch, Source
from ftprl.data.files import shown
from ftprl.data.values import column_values
from ftprl.errors import InvalidInput
from ftprl.evaluation.blocks import Block, LabelledRows, joined
from ftprl.evaluation.predictions import PredictionFile, Predictor, check_meaning
from ftprl.linear.model import Model, Vector
from ftprl.losses import ScalarLoss, check_loss, check_tau, scalar_loss
from ftprl.runlog.rows import Caution

_LONGEST_HEADER = 1 << 30
_FROM_MODEL = ("label", "positive", "weight")  # a model knows them


def is_model_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does: the length of its header, and the header in JSON."""
    try:
        with open(path, "rb") as file:
            start = file.read(9)
    except OSError:
        return False
    return start[8:] == b"{" and int.from_bytes(start[:8], "little") <= _LONGEST_HEADER


def _scored(model: Model, batch: Batch, matrix: bool) -> tuple[Vector, Vector]:
    """Labels and scores of some rows.

    With several classes a label is the number of a column, NaN for a class that the model does not know; scores are
    those of all columns, or those of the labels alone.
    """
    scores = model.score(batch)
    if model.class_table is None:
        return batch.y, scores
    y = model.class_table.known(batch.y, batch.label_texts)
    y[y >= model.engine.classes] = np.nan
    if matrix:
        return y, scores
    rows = np.flatnonzero(y == y)
    own = np.full(len(y), np.nan)
    own[rows] = scores[rows, y[rows].astype(int)]
    return y, own


def _with_gaps(source: Source, model: Model | None, matrix: bool = False) -> Iterator[tuple[LabelledRows, Vector]]:
    """The rows of a source with the scores of a model (NaN without one).

    Rows that the source leaves out have their place, without a label: prediction files have a line for them.
    """
    gaps: dict[int, int] = {}
    for batch, _ in source.read(digest=False):
        gaps |= source.take_left_out()
        y, scores = (batch.y, np.full(len(batch), np.nan)) if model is None else _scored(model, batch, matrix)
        counts = np.array([gaps.pop(batch.first_row + i, 0) for i in range(len(batch))]) if gaps else np.zeros(0, int)
        if counts.any():
            at = np.repeat(np.arange(len(batch)), counts)
            rows = LabelledRows(np.insert(y, at, np.nan), np.insert(batch.weight, at, 0.0))
            yield rows, np.insert(scores, at, np.nan, axis=0)
        else:
            yield LabelledRows(y, batch.weight), scores
    last = sum((gaps | source.take_left_out()).values())
    if last:
        columns = (last,) if not matrix or model is None else (last, model.engine.classes)
        yield LabelledRows(np.full(last, np.nan), np.zeros(last)), np.full(columns, np.nan)


@final
class ModelScores:
    """The scores of a model for the rows of a source."""

    def __init__(self, name: str, model: Model, source: Source) -> None:
        self._name, self._model, self._source = name, model, source

    @property
    def name(self) -> str:
        """What it is called in a table."""
        return shown(self._name)

    def scores(self) -> Iterator[Vector]:
        """Block after block."""
        return (scores for _, scores in _with_gaps(self._source, self._model))


@final
class SharedScores:
    """The scores of a model for the very rows that the labels come from, so that they are read once.

    With `matrix` those of all classes, one column each.
    """

    def __init__(self, name: str, model: Model, *, matrix: bool = False) -> None:
        self._name, self._model, self._matrix = name, model, matrix
        self._waiting: deque[Vector] = deque()
        self._positives = self._labels = False  # whether there were any

    @property
    def name(self) -> str:
        """What it is called in a table."""
        return shown(self._name)

    @property
    def cautions(self) -> list[Caution]:
        """The warnings of the runs that trained the model."""
        return self._model.cautions

    def scored(self, source: Source) -> Iterator[LabelledRows]:
        """The rows of a source, each block scored as it passes."""
        for rows, scores in _with_gaps(source, self._model, self._matrix):
            self._waiting.append(scores)
            self._labels = self._labels or bool((rows.y == rows.y).any())
            self._positives = self._positives or bool((rows.y > 0.0).any())
            yield rows

    @property
    def of_labels(self) -> list[Caution]:
        """The warning of labels none of which is the one that the model calls positive; once the rows have passed."""
        positive = self._model.reading.get("positive")
        if positive is None or self._positives or not self._labels:
            return []
        text = (
            f"no label is {positive!r}, the positive one of this model: every row counted as negative; check that the"
            " labels are written as in training"
        )
        return [Caution("no positive", text)]

    def scores(self) -> Iterator[Vector]:
        """Those of the blocks that have passed."""
        while self._waiting:
            yield self._waiting.popleft()


@final
@dataclass(frozen=True, slots=True)
class Systems:
    """Systems with the rows they are measured on; `blocks` goes through them once."""

    predictors: tuple[Predictor, ...]
    source: Source
    data: Any
    loss: ScalarLoss
    by: str | None
    classes: tuple[str, ...] | None = None  # of models of several classes

    @classmethod
    def of_model(cls, model: Model, source: Source, data: Any, by: str | None, name: str = "model") -> Systems:
        """A model alone, on a source with labels."""
        shared = SharedScores(name, model, matrix=model.classes is not None)
        return cls((shared,), source, data, model.spec.scalar_loss(), by)

    @property
    def cautions(self) -> list[Caution]:
        """The warnings of the runs that trained the model whose rows these are."""
        return [
            one for predictor in self.predictors if isinstance(predictor, SharedScores) for one in predictor.cautions
        ]

    @property
    def of_labels(self) -> list[Caution]:
        """What is wrong with the labels of the rows that have passed."""
        return [one for system in self.predictors if isinstance(system, SharedScores) for one in system.of_labels]

    def blocks(self) -> Iterator[Block]:
        """Labels, weights, scores and groups."""
        shared = [predictor for predictor in self.predictors if isinstance(predictor, SharedScores)]
        rows = shared[0].scored(self.source) if shared else (rows for rows, _ in _with_gaps(self.source, None))
        groups = None if self.by is None else column_values(self.source, self.data, self.by)
        return joined(rows, self.predictors, groups, self.by or "")


def open_systems(
    paths: Sequence[str],
    data: Any,
    *,
    loss: str | None = None,
    tau: float | None = None,
    predictions_are: str | None = None,
    by: str | None = None,
    **reading: Any,
) -> Systems:
    """Models and prediction files, and the data with the labels; `reading` as for `ftprl.data.open`.

    Labels and weights are read as the first model reads them, or as the options say where there is no model.
    """
    for path in paths:
        if not os.path.exists(path):
            raise InvalidInput(f"{shown(path)}: no such file; name a model or a file of predictions.")
    models = [(path, Model.load(path)) for path in paths if is_model_file(path)]
    chosen = _loss_of(models, loss, tau)
    _check_classes(models, chosen, paths)
    files = [path for path in paths if not is_model_file(path)]
    meaning = check_meaning(predictions_are, chosen)
    if predictions_are is not None and not files:
        raise InvalidInput(
            "predictions_are= is for prediction files, got models alone; drop it.", option="predictions_are"
        )
    if not models:
        source = _labels_alone(data, chosen, reading)
        return Systems(tuple(PredictionFile(path, chosen, meaning) for path in paths), source, data, chosen, by)
    for name in _FROM_MODEL:
        if name in reading and not (name == "label" and _takes_label(models)):
            raise InvalidInput(
                f"{name}= comes from the model, got {name}={reading[name]!r} as well; drop it.", option=name
            )
    source = models[0][1].open_labelled(data, **reading)
    if not source.can_be_read_again and len(models) > 1:
        raise InvalidInput("data needs to be read once per model, got standard input or a pipe; save it to a file.")
    opened = dict(models)
    predictors: list[Predictor] = []
    for path in paths:
        if path not in opened:
            predictors.append(PredictionFile(path, chosen, meaning))
        elif path == models[0][0] and not any(isinstance(p, SharedScores) for p in predictors):
            predictors.append(
                SharedScores(path, opened[path], matrix=len(paths) == 1 and opened[path].classes is not None)
            )
        else:
            open_data = opened[path].open if opened[path].classes is None else opened[path].open_labelled
            predictors.append(ModelScores(path, opened[path], open_data(data, **reading)))
    classes = None if models[0][1].classes is None else tuple(models[0][1].class_names)
    return Systems(tuple(predictors), source, data, chosen, by, classes)


def _takes_label(models: Sequence[tuple[str, Model]]) -> bool:
    """Whether the first model was trained with labels beside its columns, and so does not know theirs."""
    columns = models[0][1].reading.get("columns")
    return columns is not None and "label" not in columns.values()


def _check_classes(models: Sequence[tuple[str, Model]], loss: ScalarLoss, paths: Sequence[str]) -> None:
    """With several classes all systems need to be models of the same classes."""
    if not loss.has_classes:
        return
    if len(models) < len(paths):
        raise InvalidInput(
            "several classes are measured for models alone, got a file of predictions; pass the model.",
            option="predictions",
        )
    for path, model in models[1:]:
        if set(model.classes or ()) != set(models[0][1].classes or ()):
            raise InvalidInput(
                f"models need the same classes to be compared, got others in {shown(path)} than in"
                f" {shown(models[0][0])}; train both on the same labels."
            )


def _labels_alone(data: Any, loss: ScalarLoss, reading: dict[str, Any]) -> Source:
    """The data without a model: only labels and weights matter."""
    source = readers.open(data, loss=loss.name, dim=2**32, **reading)  # nothing is kept for a feature
    columns = source.describe().columns
    if columns is not None and "label" not in columns.values():
        from ftprl.data.columns import without_label

        raise without_label(list(columns), source.describe().format)
    return source


def _loss_of(models: Sequence[tuple[str, Model]], loss: str | None, tau: float | None) -> ScalarLoss:
    """The loss that was asked for, or that of the models, which must agree."""
    if loss is not None:
        check_loss(loss)
    if tau is not None:
        loss = loss or ("logistic" if not models else models[0][1].engine.spec.loss)
        check_tau(tau, loss)
    if not models:
        return scalar_loss(loss or "logistic", 0.5 if tau is None else tau)
    first = models[0][1].engine.spec.scalar_loss()
    if loss is not None:
        wanted = scalar_loss(loss, 0.5 if tau is None else tau)
        for path, model in models:
            own = model.spec.scalar_loss()
            if (own.link, own.labels) != (wanted.link, wanted.labels):
                raise InvalidInput(
                    f"loss= needs predictions of its kind, got {loss} for the {own.name} model {shown(path)}; drop it.",
                    option="loss",
                )
        return wanted
    for path, model in models[1:]:
        spec = model.spec
        if (spec.loss, spec.scalar_loss().tau) != (first.name, first.tau):
            raise InvalidInput(
                f"models need the same loss to be compared, got {first.name} of {shown(models[0][0])} and {spec.loss}"
                f" of {shown(path)}; name the one to measure with loss=.",
                option="loss",
            )
    return first
