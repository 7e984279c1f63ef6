"""An evaluation as an HTML page or a picture: ROC, precision and recall, calibration, and slices."""

from __future__ import annotations

import posixpath
from typing import Literal

from ftprl import draw
from ftprl.draw import Panel, Series, error_bars
from ftprl.evaluation.calibration import CalibrationTable
from ftprl.evaluation.classes import ClassEvaluation
from ftprl.evaluation.evaluate import INTERVAL, Evaluation, shown
from ftprl.evaluation.moments import Metric
from ftprl.evaluation.ranking import Ranked
from ftprl.report.html import esc, table, tag
from ftprl.report.page import cards, drawn, frame

MOST_SLICES = 30  # in the picture
_SIZE = (4.6, 3.4)  # inches


def written(evaluation: Evaluation | ClassEvaluation, form: Literal["html", "png", "svg"], data: str) -> bytes:
    """Return the page or the picture as bytes."""
    if form == "html":
        return page(evaluation, data).encode("utf-8")
    return drawn(draw.figure(panels(evaluation), *_SIZE, columns=2), form, f"{evaluation.system} on {data}")


def panels(evaluation: Evaluation | ClassEvaluation) -> list[Panel]:
    """Return all figures for which there are numbers."""
    if isinstance(evaluation, ClassEvaluation):
        return [_of_classes(evaluation), *_slices(evaluation)]
    figures = []
    if evaluation.ranked is not None:
        figures += _curves(evaluation.ranked, evaluation.metrics)
    if evaluation.calibration is not None:
        figures.append(_calibration(evaluation.calibration, is_probability=evaluation.ranked is not None))
    return [*figures, *_slices(evaluation)]


def _of_classes(evaluation: ClassEvaluation) -> Panel:
    """Return precision and recall of each class, the most frequent classes first."""
    some = sorted(evaluation.by_class, key=lambda one: -one.rows)[:MOST_SLICES]
    positions = [i + 1.0 for i in range(len(some))]
    accuracy = evaluation.metrics["accuracy"].value
    return Panel(
        "Precision and recall by class",
        "class, the most frequent first",
        "",
        [
            Series("accuracy", [0.5, len(some) + 0.5], [accuracy, accuracy], colour=6, dashed=True, thin=True),
            Series("precision", positions, [one.precision.value for one in some], colour=0, points=True, line=False),
            Series("recall", positions, [one.recall.value for one in some], colour=1, points=True, line=False),
        ],
        ylim=(0.0, 1.02),
        ticks=[(x, one.name[:14]) for x, one in zip(positions, some, strict=True)],
    )


def _curves(ranked: Ranked, metrics: dict[str, Metric]) -> list[Panel]:
    """Return the ROC curve and the curve of precision against recall."""
    recall, fall_out, precision = (list(values) for values in zip(*ranked.curve, strict=True))
    base = metrics["share of positives"].value
    auc, average = metrics["AUC"], metrics["average precision"]
    return [
        Panel(
            "ROC",
            "false positive rate",
            "true positive rate",
            [
                Series(f"AUC {shown(auc)}", fall_out, recall, colour=0),
                Series("random order", [0.0, 1.0], [0.0, 1.0], colour=6, dashed=True, thin=True),
            ],
            xlim=(0.0, 1.0),
            ylim=(0.0, 1.02),
        ),
        Panel(
            "Precision and recall",
            "recall",
            "precision",
            [
                Series(f"average {shown(average)}", recall[1:], precision[1:], colour=0),
                Series(f"share of positives {base:.4g}", [0.0, 1.0], [base, base], colour=6, dashed=True, thin=True),
            ],
            xlim=(0.0, 1.0),
            ylim=(0.0, 1.02),
        ),
    ]


def _calibration(table_: CalibrationTable, *, is_probability: bool) -> Panel:
    """Return mean label against mean prediction, with intervals."""
    predicted = [one.prediction for one in table_.bins]
    ends = [min(predicted), max(predicted)] if not is_probability else [0.0, 1.0]
    lower, upper = [one.lower for one in table_.bins], [one.upper for one in table_.bins]
    return Panel(
        "Calibration" if is_probability else "Predicted against actual",
        "mean prediction",
        "share of positives" if is_probability else "mean label",
        [
            Series("perfect", ends, ends, colour=6, dashed=True, thin=True),
            Series(
                "rows by size of their prediction", predicted, [one.label for one in table_.bins], colour=0, points=True
            ),
            *error_bars(INTERVAL, predicted, lower, upper),
        ],
    )


def _slices(evaluation: Evaluation | ClassEvaluation) -> list[Panel]:
    """Return the loss of each slice, and the AUC of slices that have both classes."""
    names = (next(iter(evaluation.metrics)), "AUC")
    return [_by_slice(evaluation, name) for name in names if any(name in slice_[2] for slice_ in evaluation.slices)]


def _by_slice(evaluation: Evaluation | ClassEvaluation, name: str) -> Panel:
    """Return one metric for each slice."""
    some = [slice_ for slice_ in evaluation.slices if name in slice_[2]][:MOST_SLICES]
    metrics = [slice_[2][name] for slice_ in some]
    whole = evaluation.metrics[name].value
    positions = [i + 1.0 for i in range(len(some))]
    return Panel(
        f"{name} by {evaluation.by}",
        f"{evaluation.by}, the most frequent first",
        name,
        [
            Series("all rows", [0.5, len(some) + 0.5], [whole, whole], colour=6, dashed=True, thin=True),
            Series("slice", positions, [m.value for m in metrics], colour=0, points=True, line=False),
            *error_bars(INTERVAL, positions, [m.lower for m in metrics], [m.upper for m in metrics]),
        ],
        ticks=[(x, value[:14]) for x, (value, *_) in zip(positions, some, strict=True)],
    )


def page(evaluation: Evaluation | ClassEvaluation, data: str) -> str:
    """Return the evaluation as one self-contained HTML page."""
    first = next(iter(evaluation.metrics))
    inside = (
        tag("h1", esc(f"{evaluation.system} on {posixpath.basename(data) or data}"))
        + tag(
            "p",
            esc(f"{evaluation.rows:,} rows of {data}; {first} {shown(evaluation.metrics[first])}."),
            class_="status",
        )
        + cards(panels(evaluation), "figure", _SIZE)
        + _metrics("Metrics", evaluation.metrics)
        + (_class_tables(evaluation) if isinstance(evaluation, ClassEvaluation) else _decisions(evaluation))
        + _slice_table(evaluation)
        + tag(
            "p",
            "The intervals are 95 % confidence intervals (central limit theorem, independent rows). The baseline"
            " predicts every row alike; its loss is that of predicting each row from the labels before it, and its"
            " calibration error is what perfect predictions would have by chance.",
        )
    )
    return frame(tag("section", inside), "evaluation", made_from="labels and predictions")


def _decisions(evaluation: Evaluation) -> str:
    """Return the tables of decisions at each threshold and of the calibration."""
    at = (_metrics(f"At threshold {at:g}", metrics) for at, metrics in evaluation.thresholds.items())
    return "".join(at) + _bins(evaluation)


def _class_tables(evaluation: ClassEvaluation) -> str:
    """Return the tables of the classes and, unless there are too many, of the confusion matrix."""
    rows = [
        [one.name, f"{one.rows:,}", shown(one.precision), shown(one.recall), f"{one.f_score:.4f}"]
        for one in evaluation.by_class
    ]
    text = table("Classes", ("class", "rows", "precision", "recall", "F score"), rows)
    if len(evaluation.by_class) > MOST_SLICES:
        return text
    names = [one.name for one in evaluation.by_class]
    counts = [
        [name, *(f"{count:,.6g}" for count in row)]
        for name, row in zip(names, evaluation.confusion.tolist(), strict=True)
    ]
    return text + table("Labels down, predicted classes across", ("label", *names), counts)


def _metrics(caption: str, metrics: dict[str, Metric]) -> str:
    """Return a table of metrics."""
    rows = [[name, *_cells(metric)] for name, metric in metrics.items()]
    return table(caption, ("metric", "value", INTERVAL, "baseline"), rows)


def _cells(metric: Metric) -> list[str]:
    """Return value, interval and baseline as cells."""
    value, _, ends = shown(metric).partition(" (")
    return [value, ends.removesuffix(")"), "–" if metric.baseline is None else f"{metric.baseline:.4g}"]


def _bins(evaluation: Evaluation) -> str:
    """Return the table of calibration bins, empty without calibration."""
    if evaluation.calibration is None:
        return ""
    rows = [
        [
            f"{b.low:.4g} to {b.high:.4g}",
            f"{b.weight:,.6g}",
            f"{b.prediction:.4g}",
            f"{b.label:.4g}",
            f"{b.lower:.4g} to {b.upper:.4g}",
        ]
        for b in evaluation.calibration.bins
    ]
    return table("Calibration", ("prediction", "weight", "mean prediction", "mean label", INTERVAL), rows)


def _slice_table(evaluation: Evaluation | ClassEvaluation) -> str:
    """Return the table of slices, empty without slices."""
    if not evaluation.slices:
        return ""
    names = list(dict.fromkeys(name for *_, metrics in evaluation.slices for name in metrics))
    rows = [
        [value, f"{count:,}", *(shown(m[name]) if name in m else "–" for name in names)]
        for value, count, m in evaluation.slices
    ]
    return table(f"By {evaluation.by}", (str(evaluation.by), "rows", *names), rows)
