"""The figures of a report, each with its numbers in a table, or with the reason why it is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ftprl.draw import RAMP, Columns, Panel, Series
from ftprl.draw.numbers import short
from ftprl.losses import LOSSES
from ftprl.report import sentences
from ftprl.report.figure import Figure
from ftprl.report.numbers import amount, count, duration, percent
from ftprl.report.regression import regression
from ftprl.report.sentences import no_receipt
from ftprl.runlog import plots
from ftprl.runlog.reader import Point, Receipt, RunLog
from ftprl.runlog.yardstick import better

_NOTHING = "no progress has been logged yet."
_FEW = 20  # rows: with fewer, the share of positives is unreliable


def figures(log: RunLog) -> list[Figure]:
    """Return all figures in the order of the page."""
    return [
        _loss(log),
        _floor(log),
        *(regression(log) if _has_numbers(log) else [_calibration(log)]),
        _scales(log),
        _regret(log),
        _coordinates(log),
        _speed(log),
    ]


def _has_numbers(log: RunLog) -> bool:
    """Return True if labels are numbers rather than classes."""
    return log.loss in LOSSES and not LOSSES[log.loss].is_classification


def _meaning(log: RunLog) -> str:
    """Return a sentence on what the progressive losses of this run estimate."""
    if log.end.get("sample") is not None:
        return (
            ". More rows came than wait in memory, so most were learned in the order of the data; the rows learned"
            " last, a random draw, estimate the loss of the saved model."
        )
    if log.settings.get("order") == "random":
        return ", in random order, so these losses estimate the loss of the saved model on rows like these."
    return ". These are the losses of a model that goes on learning; the saved model may be worse."


def _loss(log: RunLog) -> Figure:
    """Return the progressive loss and its baseline."""
    name, title = "loss", "Progressive loss"
    panel = plots.loss(log)
    if panel is None:
        return Figure(name, title, _NOTHING)
    held = any(p.holdout is not None for p in log.points)
    base = any(p.baseline is not None for p in log.points)
    head = ["rows", "pass", "mean so far", *(("baseline", "better") if base else ()), "since the last"]
    return Figure(
        name,
        title,
        f"Each row is predicted before it is learned{_meaning(log)}{_again(log)} Lower is better."
        + (f" {_baseline(log)}" if base else "")
        + (" The dashed orange line is the loss of held-out rows, which are never learned." if held else ""),
        panel,
        [*head, *(("held out",) if held else ())],
        [
            (
                count(p.rows),
                str(p.pass_number),
                amount(p.loss),
                *((amount(p.baseline), _percent(p.improvement if p.pass_number == 1 else None)) if base else ()),
                amount(p.since),
                *((amount(p.holdout),) if held else ()),
            )
            for p in log.points
        ],
    )


def _baseline(log: RunLog) -> str:
    """Return a sentence that explains the baseline and by how much the model is better."""
    what = sentences.baseline(log) or "each row predicted from the labels before it"
    text = f"The dashed line is the baseline: {what}, without any feature."
    gain = None if log.first_pass is None else log.first_pass.improvement
    where = " in the first pass" if log.has_later_passes else ""
    return text if gain is None else f"{text} The model is {better(gain)}{where}."


def _again(log: RunLog) -> str:
    """Return a note on later passes, if there are any."""
    return " From the second pass on the rows had been learned before." if log.has_later_passes else ""


def _percent(value: float | None) -> str:
    """Return a percentage, or a dash if it is unknown.

    >>> _percent(12.34), _percent(None)
    ('12.3 %', '–')
    """
    return "–" if value is None else f"{value:.1f} %"


def _floor(log: RunLog) -> Figure:
    """Return the loss of the run beside the floor of all fixed weights."""
    name, title = "floor", "The run against all fixed weights"
    curve = log.floor
    if curve is None:
        return Figure(name, title, no_receipt(log))
    is_other_unit = log.loss in LOSSES and LOSSES[log.loss].divides_rows
    base = None if log.first_pass is None or is_other_unit else log.first_pass.baseline
    lengths = [0.0, *([curve.beaten_length] if curve.beaten_length else []), *curve.named_lengths()]
    return Figure(
        name,
        title,
        "Dashed green: the floor, a loss that no fixed linear model up to that length can be below, proved from sums "
        f"of this run. Where it is above the blue line, the run was better than all of them.{_again(log)} The length "
        f"of a model is the root of the sum of squares of weight times size of its feature{_over_classes(log)}.",
        replace(plots.floor(curve, base=base), title=title),
        ("length", "no fixed weights are below", "at most better than the run"),
        [
            (f"{length:.4g}", amount(curve.at(length)), percent(curve.better(length)) if curve.least == 0.0 else "–")
            for length in lengths
            if math.isfinite(length)
        ],
    )


def _regret(log: RunLog) -> Figure:
    """Return the regret and its bounds."""
    name, title = "regret", "Regret and its bounds"
    panel = plots.regret(log)
    if panel is None:
        return Figure(name, title, no_receipt(log))
    points = plots.receipts(log)
    keys = [key for key in plots.LINES if any(key in p.receipt for p in points)]
    return Figure(
        name,
        title,
        "Solid: the regret, at most how much less total loss the model’s weights of that moment would have had if they "
        "had been used from the first row on. Dashed: two proved bounds that it cannot exceed, and the smallest bounds "
        "possible with learning rates chosen in hindsight, with all rows known.",
        panel,
        ("rows", "total loss", *(plots.LINES[key] for key in keys)),
        [(count(p.rows), *(amount(p.receipt.get(key)) for key in ("loss", *keys))) for p in points],
    )


def _scales(log: RunLog) -> Figure:
    """Return the weights of the scales in the mixture."""
    name, title = "scales", "Weights of the scales"
    points = [p for p in log.points if p.weights]
    names = _in_order(points)
    if not names:
        reason = "a single scale was learned, so there is no mixture." if log.points else _NOTHING
        return Figure(name, title, reason)
    scales = [n for n in names if n[:1].isdigit()]
    others = " Other experts combine the scores of all scales, or learn without a scale."
    shades = {n: round(i * (len(RAMP) - 1) / max(1, len(scales) - 1)) for i, n in enumerate(scales)}
    ends = points if len(points) > 1 else points * 2  # an area needs two points
    rows = [p.rows for p in points] if len(points) > 1 else [points[0].rows, 2 * points[0].rows]
    panel = Panel(
        title,
        "rows",
        "weight in the prediction",
        [Series(n, rows, [p.weights.get(n, 0.0) for p in ends], shade=shades.get(n), colour=4) for n in names],
        log="x",
        xlim=plots.span(rows),
        stacked=True,
        ylim=(0.0, 1.0),
        vlines=plots.changes(log),
    )
    return Figure(
        name,
        title,
        "The model learns with several learning-rate scales at once and weights their predictions by how well each has "
        "done so far, so that none has to be chosen. The weights add up to 1."
        + (others if len(scales) < len(names) else ""),
        panel,
        ("rows", *names),
        [(count(p.rows), *(_weight(p.weights.get(n)) for n in names)) for p in points],
    )


def _in_order(points: Sequence[Point]) -> list[str]:
    """Return every name that had a weight: scales by size, then the other experts."""

    def rank(name: str) -> tuple[float, str]:
        """Return the sort key of a name."""
        try:
            size = float(name)
        except ValueError:
            return math.inf, name
        return (size if math.isfinite(size) else math.inf), name

    return sorted({name for p in points for name in p.weights}, key=rank)


def _weight(value: float | None) -> str:
    """Return a weight with four decimals, or a dash if it is unknown."""
    return "–" if value is None else f"{value:.4f}"


def _over_classes(log: RunLog) -> str:
    """Return a note for losses of several classes."""
    return ", over all classes" if log.loss in LOSSES and LOSSES[log.loss].has_classes else ""


def _calibration(log: RunLog) -> Figure:
    """Return the calibration of predicted probabilities."""
    name, title = "calibration", "Calibration"
    bins = log.calibration
    if not bins:
        if log.loss in LOSSES and LOSSES[log.loss].has_classes:
            return Figure(
                name, title, "it is drawn for two classes; ftprl evaluate has precision and recall of each class."
            )
        if log.loss in LOSSES and not LOSSES[log.loss].is_probabilistic:
            return Figure(name, title, f"it needs predicted probabilities, and this run has {log.loss} loss.")
        return Figure(name, title, no_receipt(log))
    predicted = [p / n for n, p, _ in bins]
    observed = [y / n for n, _, y in bins]
    known = [i for i, (n, _, _) in enumerate(bins) if n >= _FEW]
    most = max(n for n, _, _ in bins)
    total = sum(n for n, _, _ in bins)
    panel = Panel(
        title,
        "predicted probability",
        "share of positives",
        [
            Columns(
                f"rows (highest bar: {short(float(f'{most:.2g}'))})",
                predicted,
                [0.3 * n / most for n, _, _ in bins],
                0.035,
                faint=True,
            ),
            Series("perfect", [0.0, 1.0], [0.0, 1.0], dashed=True, colour=6, thin=True),
            Series("this run", [predicted[i] for i in known], [observed[i] for i in known], colour=0, points=True),
        ],
        xlim=(-0.02, 1.02),
        ylim=(0.0, 1.02),
    )
    error = sum(abs(p - y) for _, p, y in bins) / total
    return Figure(
        name,
        title,
        "Of the rows with a predicted probability of 30 %, 30 % should be positive: then the points lie on the dashed "
        "line. Grey bars show how many rows had such a prediction. The expected calibration error, the mean distance "
        f"from the line, is {percent(error)}; 0 % is perfect."
        + (f" Bins with fewer than {_FEW} rows are in the table only." if len(known) < len(bins) else ""),
        panel,
        ("predicted", "observed", "rows"),
        [(f"{a:.4f}", f"{b:.4f}", count(n)) for a, b, (n, _, _) in zip(predicted, observed, bins, strict=True)],
    )


def _speed(log: RunLog) -> Figure:
    """Return rows per second over time."""
    name, title = "speed", "Speed"
    steps = _steps(log)
    if len(steps) < 2:
        return Figure(name, title, "the points are too close in time to measure it.")
    x = [seconds for seconds, _, _ in steps]
    y = [speed for _, _, speed in steps]
    mean = log.speed or 0.0
    top = 1.15 * max(*y, mean)
    return Figure(
        name,
        title,
        "Rows read, predicted and learned per second since the last point, beside the mean of the run. The first rows "
        "are slower because they use new memory; a dip may be a checkpoint, scales that are dropped, or other work on "
        "the machine.",
        Panel(
            title,
            "seconds since the start",
            "rows per second",
            [
                Series("since the last point", x, y, colour=2, points=True),
                Series("mean of the run", [0.0, x[-1]], [mean, mean], colour=6, dashed=True, thin=True),
            ],
            xlim=(0.0, 1.03 * x[-1]),
            ylim=(0.0, top),
        ),
        ("time", "rows", "rows per second"),
        [(duration(seconds), count(rows), count(round(speed))) for seconds, rows, speed in steps],
    )


def _steps(log: RunLog) -> list[tuple[float, int, float]]:
    """Return (seconds, rows, rows per second) at points at least a hundredth of the whole time apart."""
    steps: list[tuple[float, int, float]] = []
    before: Point | None = None
    least = max(log.seconds / 100.0, 1e-3)
    for p in log.points:
        if before is None or p.session != before.session:
            before = p
        elif p.seconds - before.seconds >= least:
            steps.append((p.seconds, p.rows, (p.rows - before.rows) / (p.seconds - before.seconds)))
            before = p
    return steps


def _coordinates(log: RunLog) -> Figure:
    """Return the share of each group of features in the regret or its best bound."""
    groups = [g for g in log.coordinates if "post_hoc" in g or "regret" in g]
    # Only the log loss has a best bound in hindsight: other losses count gradients in the unit of the labels.
    key = "regret" if groups and not any("post_hoc" in g for g in groups) else "post_hoc"
    name, title = "coordinates", f"{'Best bound' if key == 'post_hoc' else 'Regret'} by feature frequency"
    if not groups:
        missing = "it is logged when the run ends." if log.receipt and log.status == "running" else no_receipt(log)
        return Figure(name, title, missing)
    values = [g.get(key, 0.0) for g in groups]
    total = sum(values) or 1.0
    heights = [100.0 * value / total for value in values] if key == "post_hoc" else values
    words = [_group(g.get("seen_from"), g.get("seen_to")) for g in groups]
    positions = [float(i) for i in range(len(groups))]
    every = math.ceil(len(groups) / 10)
    by_rows = log.coordinates_by != "gradients"
    head = "rows with the feature" if by_rows else "sum of squared slopes"
    most = max(range(len(groups)), key=lambda i: heights[i])
    seen = f"that occur in {words[most]} row{'s'[: words[most] != '1']}"
    where = f"features {seen if by_rows else f'whose squared slopes sum to {words[most]}'}"
    where = where if "seen_from" in groups[most] else "the intercept"
    return Figure(
        name,
        title,
        "Features grouped by the number of rows they occur in, the rarest on the left: the share of each group in the "
        f"{_of_groups(key, heights[most], where)} The shares of regret and bound in the table add up to them together "
        "with a part that all features have in common; only the sums can be compared.",
        Panel(
            title,
            "rows with the feature" if by_rows else f"{head} (grows with the rows)",
            "% of the best bound" if key == "post_hoc" else "share of the regret",
            [Columns("", positions, heights, colour=0)],
            ticks=[(x, _tick(g)) for i, (x, g) in enumerate(zip(positions, groups, strict=True)) if not i % every],
        ),
        (head, "features", *(["best bound"] if key == "post_hoc" else []), "share of the regret", "share of the bound"),
        [
            (word, count(g.get("count")), *(amount(g.get(k)) for k in dict.fromkeys((key, "regret", "bound"))))
            for word, g in zip(words, groups, strict=True)
        ],
    )


def _of_groups(key: str, largest: float, where: str) -> str:
    """Return a caption for the shares of groups, with the largest one."""
    if key == "post_hoc":
        return (
            "best bound in hindsight, that is, which features make learning expensive. The largest share, "
            f"{percent(largest / 100.0)}, belongs to {where}."
        )
    return (
        f"regret, that is, which features were expensive to learn. The largest share, {amount(largest)}, belongs to "
        f"{where}; a share is below 0 where a group was predicted better than by its last weights."
    )


def _group(begin: float | None, end: float | None) -> str:
    """Return the name of a group: the range of rows that its features occur in.

    >>> _group(1, 2), _group(4, 8), _group(None, None)
    ('1', '4 to 7', 'intercept')
    """
    if begin is None or end is None:
        return "intercept"
    whole = begin >= 1 and end == int(end)
    return count(begin) if whole and end == begin + 1 else f"{count(begin)} to {count(end - 1 if whole else end)}"


def _tick(group: Receipt) -> str:
    """Return the start of a group as a tick label, in powers of two, so that 64k is 65,536."""
    begin = group.get("seen_from")
    if begin is None:
        return "all"
    if 0.0 < begin < 1.0:
        return f"1/{_tick({'seen_from': 1.0 / begin})}"
    power = min(3, max(0, int(math.log2(begin)) // 10)) if begin >= 1 else 0
    return f"{short(begin / 1024**power)}{('', 'k', 'M', 'G')[power]}"
