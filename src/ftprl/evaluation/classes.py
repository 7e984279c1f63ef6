"""Metrics of several classes: log loss, accuracy, precision and recall of each class, and the confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import Baseline
from ftprl.errors import InvalidInput
from ftprl.evaluation.blocks import Block, Measurable, largest_first, left_out
from ftprl.evaluation.compare import rows_by_value
from ftprl.evaluation.evaluate import Slices, json_of, json_of_slices, slice_lines, table_of, wilson
from ftprl.evaluation.moments import Metric, Moments
from ftprl.evaluation.predictions import Vector
from ftprl.terminal import cut, table

_WEIGHT, _LOSS, _HIT = range(3)
_MOST_WITH_INTERVALS = 60  # most classes with an interval of the F score: its variance takes their number squared
_MOST_SHOWN = 30  # in the text


@final
class ClassMetrics(NamedTuple):
    """The metrics of one class against all others; `rows` is the number of rows with its label."""

    name: str
    rows: int
    precision: Metric
    recall: Metric
    f_score: float

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as JSON values."""
        return {
            "class": self.name,
            "rows": self.rows,
            "precision": self.precision.to_dict(),
            "recall": self.recall.to_dict(),
            "F_score": self.f_score if math.isfinite(self.f_score) else None,
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClassEvaluation:
    """The metrics of one system for several classes.

    `metrics` are over all rows, `by_class` one entry per class. `confusion` has one row per label and one column per
    predicted class, with the weight of the rows. `unlabelled` counts rows without a label, without a weight, or with a
    class that the model does not know.
    """

    system: str
    rows: int
    left_out: int
    unlabelled: int
    metrics: dict[str, Metric]
    by_class: tuple[ClassMetrics, ...]
    confusion: NDArray[np.float64]
    by: str | None
    slices: Slices

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as JSON values."""
        return {
            "system": self.system,
            "rows": self.rows,
            "left_out": self.left_out,
            "unlabelled": self.unlabelled,
            "metrics": json_of(self.metrics),
            "classes": [one.to_dict() for one in self.by_class],
            "confusion": self.confusion.tolist(),
            "by": self.by,
            "slices": json_of_slices(self.slices),
        }

    def __str__(self) -> str:
        missing = {"without a prediction": self.left_out, "without a label that the model knows": self.unlabelled}
        lines = [f"{self.rows:,} rows{left_out(missing)}", "", *table_of(self.metrics)]
        slices = ["", *slice_lines(self.by, self.slices)] if self.slices else []
        return "\n".join([*lines, "", *self._classes(), *self._confusion(), *slices])

    def _classes(self) -> list[str]:
        """Return the table of classes as lines."""
        rows: list[tuple[str, ...]] = [("class", "     rows", "precision", "   recall", "  F score")]
        for one in self.by_class[:_MOST_SHOWN]:
            numbers = (one.precision.value, one.recall.value, one.f_score)
            rows.append((one.name, f"{one.rows:,}", *map(_short, numbers)))
        lines = table(rows, range(1, 5))
        rest = len(self.by_class) - _MOST_SHOWN
        return [*lines, *([f"... and {rest} more (--json has all)"] if rest > 0 else [])]

    def _confusion(self) -> list[str]:
        """Return the confusion matrix as lines, or no lines if there are too many classes."""
        if len(self.by_class) > _MOST_SHOWN:
            return []
        names = [one.name for one in self.by_class]
        short = [cut(name, 12) for name in names]
        rows = [("", *short)]
        for name, counts in zip(short, self.confusion.tolist(), strict=True):
            rows.append((name, *(f"{count:.6g}" for count in counts)))
        return ["", "labels down, predicted classes across:", *table(rows, range(1, len(rows[0])))]


def _short(value: float) -> str:
    """Return a number with four decimals, or a dash if it is not finite."""
    return f"{value:.4f}" if math.isfinite(value) else "–"


def evaluate_classes(
    blocks: Iterable[Block], system: str, classes: Sequence[str], *, by: str | None = None
) -> ClassEvaluation:
    """Measure predictions whose scores are the log probabilities of the classes, one column per class."""
    count = len(classes)
    baseline = Baseline("softmax", 0.5, max(count, 1))
    by_class = count <= _MOST_WITH_INTERVALS
    moments, slices = Moments(3 + 3 * count * by_class), dict[str, Moments]()
    confusion = np.zeros((count, count))
    rows_of_class, measurable = np.zeros(count, np.int64), Measurable()
    finite = (block._replace(scores=np.where(np.isfinite(block.scores), block.scores, np.nan)) for block in blocks)
    for block, _ in measurable.rows(finite):
        y, weight, logs = block.y.astype(int), block.weight, block.scores
        logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))  # over known classes only
        predicted = logs.argmax(axis=1)
        np.add.at(confusion, (y, predicted), weight)
        rows_of_class += np.bincount(y, minlength=count)
        numbers = _numbers(logs, y, predicted, weight, count if by_class else 0)
        moments.add(numbers)
        baseline.learn(y.astype(float), weight)
        if block.groups is not None:
            for value, some in rows_by_value(block.groups, slices):
                slices.setdefault(value, Moments(3)).add(numbers[some, :3])
    if not moments.rows:
        raise InvalidInput(
            "data needs rows with a label that the model knows and a weight above 0, got none; check the labels."
        )
    return ClassEvaluation(
        system=system,
        rows=moments.rows,
        left_out=measurable.left_out,
        unlabelled=measurable.unlabelled,
        metrics=_metrics(moments, confusion, baseline, by_class),
        by_class=tuple(_of_class(classes[c], confusion, c, int(rows_of_class[c])) for c in range(count)),
        confusion=confusion,
        by=by,
        slices=tuple((value, rows, _main(one)) for value, rows, one in largest_first(slices)),
    )


def _numbers(logs: Vector, y: NDArray[Any], predicted: NDArray[Any], weight: Vector, count: int) -> Vector:
    """Return the columns to sum: weight, loss, hit; then for each class its labels, its predictions and its hits."""
    rows = np.arange(len(y))
    numbers = np.zeros((len(y), 3 + 3 * count))
    numbers[:, _WEIGHT], numbers[:, _LOSS], numbers[:, _HIT] = 1.0, -logs[rows, y], predicted == y
    if count:
        numbers[rows, 3 + y] = 1.0
        numbers[rows, 3 + count + predicted] = 1.0
        hits = np.flatnonzero(predicted == y)
        numbers[hits, 3 + 2 * count + y[hits]] = 1.0
    return np.asarray(numbers * weight[:, None])


def _main(moments: Moments) -> dict[str, Metric]:
    """Return log loss and accuracy."""
    return {
        "log loss": moments.metric(lambda s: s[_LOSS] / s[_WEIGHT]),
        "accuracy": moments.metric(lambda s: s[_HIT] / s[_WEIGHT], low=0.0, high=1.0),
    }


def _metrics(moments: Moments, confusion: Vector, baseline: Baseline, by_class: bool) -> dict[str, Metric]:
    """Return the metrics over all rows, with baselines.

    With one label per row, micro precision, recall and F score equal the accuracy, so only the accuracy is listed.
    """
    total, labels = confusion.sum(), confusion.sum(axis=1)
    results = _main(moments)
    results["log loss"] = results["log loss"]._replace(baseline=baseline.total / float(baseline.numbers[4]))
    most = float(labels.max() / total)
    results["accuracy"] = results["accuracy"]._replace(baseline=most)
    present = labels > 0
    guess = 2.0 * most / (1.0 + most) / int(present.sum())  # F score of predicting the most frequent class in every row
    if by_class:
        count = len(confusion)

        def macro(s: Vector) -> float:
            """Return the mean F score of the classes that have rows."""
            own, called, hits = (s[3 + k * count : 3 + (k + 1) * count][present] for k in range(3))
            return float(np.mean(2.0 * hits / (own + called)))

        results["macro F score"] = moments.metric(macro, guess, low=0.0, high=1.0)
    else:
        scores = 2.0 * np.diag(confusion)[present] / (labels + confusion.sum(axis=0))[present]
        results["macro F score"] = Metric(float(scores.mean()), math.nan, math.nan, guess)
    return results


def _of_class(name: str, confusion: Vector, c: int, rows: int) -> ClassMetrics:
    """Return precision and recall of one class with Wilson intervals."""
    hits, own, called = float(confusion[c, c]), float(confusion[c].sum()), float(confusion[:, c].sum())
    share = own / float(confusion.sum())

    def part(of: float) -> Metric:
        """Return the share of hits with its interval, NaN if it has no rows."""
        return Metric(hits / of, *wilson(hits / of, of), share) if of > 0 else Metric(math.nan, math.nan, math.nan)

    f_score = 2.0 * hits / (own + called) if own + called > 0 else math.nan
    return ClassMetrics(name, rows, part(called), part(own), f_score)
