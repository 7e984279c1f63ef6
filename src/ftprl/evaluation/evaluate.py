"""Metrics of predictions on rows with labels, each with an interval and the value of the base rate."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

from ftprl._core import Baseline
from ftprl.errors import InvalidInput
from ftprl.evaluation.blocks import Block, Measurable, largest_first, left_out
from ftprl.evaluation.calibration import CalibrationBins, CalibrationTable
from ftprl.evaluation.compare import rows_by_value
from ftprl.evaluation.measures import measures_for
from ftprl.evaluation.moments import NORMAL_95, Metric, Moments
from ftprl.evaluation.ranking import Ranked, Ranking, SliceRankings
from ftprl.losses import ScalarLoss
from ftprl.terminal import table

FARTHEST_LOGIT = 300.0  # exp of it is a number
Slices = tuple[tuple[str, int, dict[str, Metric]], ...]  # value, rows, metrics
_THRESHOLD_BASELINES = (
    "baseline at a threshold: accuracy of the more frequent class, precision and recall of as many rows chosen at"
    " random, F score of calling every row positive"
)
INTERVAL = "95 % interval"  # column of a table; unlike intervals of `compare`, not valid at every row at once


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The metrics of one system.

    `metrics` are over all rows, `thresholds` those of decisions at each threshold. For two classes `ranked` has the
    metrics that depend only on the order of scores. `calibration` compares mean predictions and labels by size of the
    prediction, and `slices` has the main metrics for each value of a column, the most frequent first.
    """

    system: str
    loss: str
    unit: str
    rows: int
    left_out: int
    unlabelled: int
    metrics: dict[str, Metric]
    thresholds: dict[float, dict[str, Metric]]
    ranked: Ranked | None
    calibration: CalibrationTable | None
    by: str | None
    slices: Slices

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as JSON values."""
        return {
            "system": self.system,
            "loss": self.loss,
            "rows": self.rows,
            "left_out": self.left_out,
            "unlabelled": self.unlabelled,
            "metrics": json_of(self.metrics),
            "thresholds": {f"{at:g}": json_of(metrics) for at, metrics in self.thresholds.items()},
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "by": self.by,
            "slices": json_of_slices(self.slices),
        }

    def __str__(self) -> str:
        missing = {"without a prediction": self.left_out, "without a label or weight, or bad": self.unlabelled}
        lines = [f"{self.rows:,} rows{left_out(missing)}", "", *table_of(self.metrics)]
        for at, metrics in self.thresholds.items():
            lines += ["", f"at threshold {at:g}:", *table_of(metrics)]
        if self.thresholds:
            lines += ["", _THRESHOLD_BASELINES]
        if self.slices:
            lines += ["", *slice_lines(self.by, self.slices)]
        return "\n".join(lines)


def json_of(metrics: dict[str, Metric]) -> dict[str, Any]:
    """Return metrics as JSON values."""
    return {name.replace(" ", "_"): metric.to_dict() for name, metric in metrics.items()}


def json_of_slices(slices: Slices) -> list[dict[str, Any]]:
    """Return slices as JSON values."""
    return [{"value": value, "rows": rows, "metrics": json_of(metrics)} for value, rows, metrics in slices]


def table_of(metrics: dict[str, Metric]) -> list[str]:
    """Return metrics as the lines of a table."""
    lines = [("", "     value", INTERVAL, "  baseline")]
    for name, m in metrics.items():
        base = "" if m.baseline is None else _number(m.baseline)
        lines.append((name, _number(m.value), f"{_number(m.lower)} to {_number(m.upper)}", base))
    return table(lines, (1, 2, 3), drop=(2,), least=20)


def slice_lines(by: str | None, slices: Slices) -> list[str]:
    """Return slices as a table with the number of rows and each metric with its interval."""
    names = list(dict.fromkeys(name for *_, metrics in slices for name in metrics))
    rows = [("", "rows", *names)]
    for value, count, metrics in slices:
        rows.append((value, f"{count:,}", *(shown(metrics[name]) if name in metrics else "" for name in names)))
    numbers = range(1, len(rows[0]))
    lines = table(rows, numbers, drop=numbers[:1:-1])
    hidden = [name for name in names if name not in re.split(" {2,}", lines[0])]
    more = [f"not shown for want of room: {', '.join(hidden)} (--json has all)"] if hidden else []
    return [f"by {by}, each with its 95 % interval:", *lines, *more]


def shown(metric: Metric) -> str:
    """Return a metric with its interval, in few characters.

    >>> shown(Metric(0.75, 0.7, 0.8))
    '0.7500 (0.7000 to 0.8000)'
    """
    return f"{_number(metric.value)} ({_number(metric.lower)} to {_number(metric.upper)})"


def _number(value: float) -> str:
    """Return a number with four decimals or six digits, or a dash if it is not finite."""
    if not math.isfinite(value):
        return "–"
    value = 0.0 if abs(value) < 5e-5 else value
    return f"{value:.4f}" if abs(value) < 1000 else f"{value:.6g}"


def evaluate_predictions(
    blocks: Iterable[Block],
    system: str,
    loss: ScalarLoss,
    *,
    thresholds: Sequence[float] | float | None = None,
    by: str | None = None,
) -> Evaluation:
    """Measure the predictions in the first column of the scores.

    `thresholds` are the probabilities from which a row counts as positive, 0.5 by default; for hinge losses they are
    scores, 0 by default.
    """
    measures = measures_for(loss, _checked(thresholds, loss))
    baseline = Baseline(loss.name, 0.5 if loss.tau is None else loss.tau)
    median = Baseline("absolute", 0.5)
    moments, slices = Moments(measures.width), dict[str, Moments]()
    ranking, slice_rankings = (Ranking(), SliceRankings()) if loss.binary else (None, None)
    bins = CalibrationBins(loss) if measures.has_calibration else None
    measurable = Measurable()
    for block, _ in measurable.rows(blocks):
        y, weight, scores = block.y, block.weight, block.scores[:, 0]
        numbers = measures.of_rows(scores, y, weight)
        moments.add(numbers)
        baseline.learn(y, weight)
        median.learn(y, weight)
        if ranking is not None:
            ranking.add(scores, y > 0.0, weight)
        if bins is not None:
            bins.add(loss.mean(scores), y, weight)
        if block.groups is not None:
            for value, some in rows_by_value(block.groups, slices):
                slices.setdefault(value, Moments(measures.width)).add(numbers[some])
                if slice_rankings is not None:
                    slice_rankings.add(value, scores[some], y[some] > 0.0, weight[some])
    if not moments.rows:
        raise InvalidInput(
            "data needs rows with a label, a weight above 0 and a prediction, got none; check the labels and the"
            " predictions."
        )
    ranked = None if ranking is None else ranking.ranked()
    calibration = None if bins is None else bins.table()
    metrics = measures.metrics(moments, _mean_loss(baseline), _mean_loss(median))
    if ranked is not None:
        metrics |= ranking_metrics(ranked, float(measures.base_rate(moments.sums)))
    if calibration is not None and loss.is_probabilistic:
        metrics["expected calibration error"] = calibration.error()
    return Evaluation(
        system=system,
        loss=loss.name,
        unit=loss.unit,
        rows=moments.rows,
        left_out=measurable.left_out,
        unlabelled=measurable.unlabelled,
        metrics=metrics,
        thresholds=measures.at_thresholds(moments),
        ranked=ranked,
        calibration=calibration,
        by=by,
        slices=tuple(
            (value, rows, measures.main(one) | _auc_of_slice(slice_rankings, value))
            for value, rows, one in largest_first(slices)
        ),
    )


def _mean_loss(baseline: Baseline) -> float:
    """Return the mean loss of the baseline."""
    return baseline.total / float(baseline.numbers[4])


def _checked(thresholds: Sequence[float] | float | None, loss: ScalarLoss) -> tuple[float, ...]:
    """Return the thresholds without repetitions, checked: probabilities, or scores for hinge losses."""
    if thresholds is None:
        return (0.5,) if loss.is_probabilistic else (0.0,)
    if not loss.binary:
        raise InvalidInput(f"threshold= is for two classes, got {loss.name} loss; drop it.", option="threshold")
    if isinstance(thresholds, int | float):
        thresholds = (thresholds,)
    least, most, what = (0.0, 1.0, "from 0 to 1") if loss.is_probabilistic else (-math.inf, math.inf, "that are finite")
    for at in thresholds:
        is_number = isinstance(at, int | float) and not isinstance(at, bool) and math.isfinite(at)
        if not is_number or not least <= at <= most:
            raise InvalidInput(f"threshold= needs numbers {what}, got {at!r}; pass such numbers.", option="threshold")
    return tuple(dict.fromkeys(float(at) for at in thresholds))


def ranking_metrics(ranked: Ranked, base: float) -> dict[str, Metric]:
    """Return AUC, average precision and lift with intervals, beside the values of a random order.

    Intervals of AUC and average precision are on the logit scale, that of the lift is Wilson's.
    """
    results = {"AUC": auc_of(ranked)}
    ap = ranked.average_precision  # Boyd, Eng and Page 2013: the standard error of its logit is (n AP (1 - AP))^-1/2
    results["average precision"] = _on_logit_scale(ap, math.sqrt(ap * (1.0 - ap) / ranked.positive_rows), base)
    for part, (precision, rows) in ranked.precision_at.items():
        ends = wilson(precision, rows)
        results[f"lift at top {100 * part:g} %"] = Metric(precision / base, ends[0] / base, ends[1] / base, 1.0)
    return results


def auc_of(ranked: Ranked) -> Metric:
    """Return the AUC with DeLong's standard error, on the logit scale, which slices with few positives need.

    DeLong's variance is 0 if no pair is in the wrong order, and needs two rows of either class. Then the interval is
    Wilson's for as many rows as the smaller class has: the variance of an AUC is at most the variance of such a share
    (van Dantzig 1951).
    """
    if not 0.0 < ranked.auc_error < math.inf:
        return Metric(ranked.auc, *wilson(ranked.auc, min(ranked.positive_rows, ranked.negative_rows)), 0.5)
    return _on_logit_scale(ranked.auc, ranked.auc_error, 0.5)


def _auc_of_slice(rankings: SliceRankings | None, value: str) -> dict[str, Metric]:
    """Return the AUC of a slice, or nothing if the slice has only one class."""
    ranked = None if rankings is None else rankings.ranked(value)
    return {} if ranked is None else {"AUC": auc_of(ranked)}


def wilson(p: float, rows: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of few rows, which has a width even if all rows are alike.

    >>> lower, upper = wilson(1.0, 10.0)
    >>> round(lower, 3), round(upper, 3)
    (0.722, 1.0)
    """
    z = NORMAL_95**2 / max(rows, 1e-300)
    centre, half = (p + 0.5 * z) / (1.0 + z), math.sqrt(max(p * (1.0 - p) * z + 0.25 * z * z, 0.0)) / (1.0 + z)
    return max(0.0, centre - half), min(1.0, centre + half)


def _on_logit_scale(p: float, error: float, base: float) -> Metric:
    """Return a metric between 0 and 1 with this standard error, with an interval that stays between 0 and 1."""
    if not 0.0 < p < 1.0:
        return Metric(p, p, p, base)
    far = min(NORMAL_95 * error / (p * (1.0 - p)), FARTHEST_LOGIT)
    odds = p / (1.0 - p)
    ends = [1.0 / (1.0 + math.exp(-sign * far) / odds) for sign in (-1.0, 1.0)]
    return Metric(p, ends[0], ends[1], base)
