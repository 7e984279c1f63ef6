"""The figures of a regression run: predicted against actual values, and residuals by prediction and by size."""

from __future__ import annotations

from itertools import pairwise

from ftprl.confidence import ResidualSummary
from ftprl.draw import Columns, Panel, Series, error_bars
from ftprl.report.figure import Cells, Figure
from ftprl.report.numbers import amount, count, percent
from ftprl.runlog.reader import RunLog

_FEW = 20.0  # rows: with fewer, a mean is unreliable
PREDICTED, RESIDUALS, DISTRIBUTION = "Predicted against actual", "Residuals by prediction", "Distribution of residuals"
_HEAD = ("mean prediction", "mean label", "mean residual", "standard deviation", "rows")


def regression(log: RunLog) -> list[Figure]:
    """Return the figures that replace the calibration for numeric labels."""
    summary = log.residuals
    if summary is None:
        reason = "the events have no residuals."
        return [Figure("predicted", PREDICTED, reason), Figure("residuals", DISTRIBUTION, reason)]
    return [_predicted(summary), _residuals(summary), _distribution(summary)]


def errors(summary: ResidualSummary) -> str:
    """Return the root mean squared error beside the error of predicting the mean label."""
    text = f"RMSE {amount(summary.rmse)}; always predicting the mean label, {amount(summary.label_deviation)}"
    return text if summary.r2 is None else f"{text}, so R² is {summary.r2:.3f}"


def _rows(summary: ResidualSummary) -> Cells:
    """Return the rows of the table of residuals."""
    return [
        (amount(g.prediction), amount(g.label), amount(g.label - g.prediction), amount(g.deviation), count(g.weight))
        for g in summary.groups
    ]


def _predicted(summary: ResidualSummary) -> Figure:
    """Return mean labels against mean predictions."""
    groups = [g for g in summary.groups if g.weight >= _FEW] or list(summary.groups)
    x, y = [g.prediction for g in groups], [g.label for g in groups]
    low, high = ([g.label + side * g.deviation for g in groups] for side in (-1.0, 1.0))
    return Figure(
        "predicted",
        PREDICTED,
        "Rows grouped by the size of their prediction, each made before the row was learned: points on the dashed line "
        f"are right on average, and bars are one standard deviation of the rows. {errors(summary)}.",
        Panel(
            PREDICTED,
            "mean prediction",
            "mean label",
            [
                Series("perfect", [min(x), max(x)], [min(x), max(x)], dashed=True, colour=6, thin=True),
                Series("rows by size of their prediction", x, y, colour=0, points=True),
                *error_bars("one standard deviation", x, low, high),
            ],
        ),
        _HEAD,
        _rows(summary),
    )


def _residuals(summary: ResidualSummary) -> Figure:
    """Return mean residuals by prediction."""
    groups = [g for g in summary.groups if g.weight >= _FEW] or list(summary.groups)
    x, y = [g.prediction for g in groups], [g.label - g.prediction for g in groups]
    low, high = ([r + side * g.deviation for r, g in zip(y, groups, strict=True)] for side in (-1.0, 1.0))
    return Figure(
        "residuals",
        RESIDUALS,
        "Label minus prediction. A mean that is not near 0 at some size is an error that the features could explain; "
        "bars of different length mean that some predictions are more uncertain than others. The mean residual of all "
        f"rows is {amount(summary.mean)}.",
        Panel(
            RESIDUALS,
            "mean prediction",
            "label minus prediction",
            [
                Series("no error", [min(x), max(x)], [0.0, 0.0], dashed=True, colour=6, thin=True),
                Series("mean", x, y, colour=0, points=True),
                *error_bars("one standard deviation", x, low, high),
            ],
        ),
        _HEAD,
        _rows(summary),
    )


def _distribution(summary: ResidualSummary) -> Figure:
    """Return the distribution of residuals."""
    edges = summary.edges
    width = edges[1] - edges[0]
    middles = [0.5 * (a + b) for a, b in pairwise(edges)]
    shares = [100.0 * w / summary.weight for w in summary.bars]
    low, quarter, median, three_quarters, high = summary.quantiles
    beyond = sum(summary.beyond) / summary.weight
    ends = zip(pairwise(edges), summary.bars, shares, strict=True)
    return Figure(
        "residual-distribution",
        DISTRIBUTION,
        f"Label minus prediction: half of the rows lie between {amount(quarter)} and {amount(three_quarters)}, 90 % "
        f"between {amount(low)} and {amount(high)}, and the median is {amount(median)}. The mean absolute error is "
        f"{amount(summary.mae)}." + (f" {percent(beyond)} of the rows lie beyond the bars." if beyond > 0.0 else ""),
        Panel(
            DISTRIBUTION,
            "label minus prediction",
            "% of the rows",
            [Columns("", middles, shares, 0.92 * width, colour=0)],
            xlim=(edges[0] - width, edges[-1] + width),
        ),
        ("from", "to", "rows", "share"),
        [(amount(a), amount(b), count(round(w)), percent(s / 100.0)) for (a, b), w, s in ends],
    )
