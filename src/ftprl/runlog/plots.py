"""Plots of a run: its loss beside the baseline, its regret below the bounds, and the floor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from ftprl.draw import Panel, Series
from ftprl.losses import LOSSES
from ftprl.runlog.floor import FloorCurve
from ftprl.runlog.reader import Point, RunLog

# The numbers of a receipt over the rows: the regret is at most each of the two bounds; the other lines are the best
# bounds of learning rates chosen in hindsight.
LINES = {
    "regret": "regret (linearised)",
    "bound": "proved bound",
    "theorem": "bound of the theorem",
    "post_hoc": "best in hindsight, per feature",
    "const": "best in hindsight, one rate",
}
_CHANGES = {"retire": "scales dropped", "resume": "resumed"}


def changes(log: RunLog) -> list[tuple[float, str]]:
    """Return (rows, label) of vertical lines where something changed: a new pass, scales dropped, the run resumed."""
    events = [(float(e["rows"]), _CHANGES[e["event"]]) for e in log.other_events if _is_change(e)]
    passes = [(float(p.rows), f"pass {p.pass_number + 1}") for p in log.passes[:-1]]
    return sorted(set(events + passes))


def _is_change(event: dict[str, object]) -> bool:
    """Return True for an event that is drawn as a vertical line."""
    rows = event.get("rows")
    is_count = isinstance(rows, int) and not isinstance(rows, bool) and 0 < rows < 2**62
    return is_count and event["event"] in _CHANGES


def span(rows: Sequence[int]) -> tuple[float, float] | None:
    """Return the ends of the x axis; a long run is plotted without its first rows.

    >>> span([1, 100]), span([1, 5000])
    (None, (10.0, 5000.0))
    """
    return (10.0, float(max(rows))) if rows and max(rows) >= 2000 else None


def loss(log: RunLog) -> Panel | None:
    """Return the mean progressive loss beside the baseline; None before the first row."""
    points = [p for p in log.points if p.loss is not None]
    ends = [p for p in log.passes if p.loss is not None]
    if not points and not ends:
        return None
    rows = [p.rows for p in points]
    recent, held = [_or_nan(p.since) for p in points], [_or_nan(p.holdout) for p in points]
    mean = "mean of the pass" if len(log.passes) > 1 else "mean so far"
    series = [Series("since the last point", rows, recent, colour=5, thin=True, points=True)]
    if any(p.baseline is not None for p in (*points, *ends)):
        series.append(_by_pass("baseline: labels alone", points, ends, "baseline", colour=6, dashed=True, thin=True))
    series.append(_by_pass(mean, points, ends, "loss", colour=0))
    if any(map(math.isfinite, held)):
        series.append(Series("held-out rows", rows, held, colour=1, dashed=True))
    settled = [v for p in points if p.rows >= 32 for v in (p.loss, p.baseline, p.since, p.holdout)]
    return Panel(
        "Progressive loss",
        "rows",
        f"{_unit(log.loss)} per row",
        series,
        log="x",
        vlines=changes(log),
        xlim=span([p.rows for p in (*points, *ends)]),
        ylim=limits(settled, shown=[v for p in (*points, *ends)[-1:] for v in (p.loss, p.baseline)]),
    )


def floor(
    curve: FloorCurve,
    *,
    points: Sequence[Mapping[str, float]] = (),
    own: float | None = None,
    base: float | None = None,
) -> Panel:
    """Return the lower bound on the loss of fixed weights by length, below the run's own loss (and the baseline's).

    `points` are the best fixed weights of some lengths, if they were computed; `own` is the length of the model's
    weights.
    """
    end = curve.informative_length or 0.0
    far = max([3.0 * (curve.beaten_length or 0.0), *(1.2 * point["length"] for point in points)])
    if 0.0 < end < math.inf:
        far = min(far, end) if far > 0.0 else end
    far = far if 0.0 < far < math.inf else 1.0
    x = [far * i / 60 for i in range(61)]
    level = [0.0, far]
    series = [Series("this run", level, [curve.mean] * 2, colour=0)]
    if base is not None:
        series.append(Series("baseline: labels alone", level, [base] * 2, colour=6, dashed=True, thin=True))
    series.append(Series("floor: no fixed weights are below", x, [curve.at(a) for a in x], colour=2, dashed=True))
    if points:
        losses = [point["loss"] / curve.weight for point in points]
        lengths = [point["length"] for point in points]
        series.append(Series("best fixed weights", lengths, losses, colour=1, points=True, line=False))
    vlines = [(own, "the model's weights")] if own is not None and 0.0 < own <= far else []
    return Panel("Any fixed weights", "length of the weights", "loss per row", series, vlines=vlines, xlim=(0.0, far))


def _or_nan(value: float | None) -> float:
    """Return NaN for None."""
    return math.nan if value is None else value


def _by_pass(
    name: str,
    points: Sequence[Point],
    ends: Sequence[Point],
    key: Literal["loss", "baseline"],
    *,
    colour: int,
    dashed: bool = False,
    thin: bool = False,
) -> Series:
    """Return a line that is interrupted where a new pass starts."""
    x: list[float] = []
    y: list[float] = []
    current = 0
    for p in sorted([*points, *ends], key=lambda p: (p.rows, p.pass_number)):
        if current not in (0, p.pass_number):
            x.append(float(p.rows))
            y.append(math.nan)
        current = p.pass_number
        x.append(float(p.rows))
        y.append(_or_nan(p.loss if key == "loss" else p.baseline))
    return Series(name, x, y, colour=colour, dashed=dashed, thin=thin, points=len(x) == 1)


def _unit(name: str) -> str:
    """Return the label of the loss axis."""
    return LOSSES[name].unit if name in LOSSES else "loss"


def limits(values: Sequence[float | None], shown: Sequence[float | None] = ()) -> tuple[float, float] | None:
    """Return the ends of the y axis, with a margin, without the few largest values unless they are among `shown`."""
    known = sorted(v for v in values if v is not None and math.isfinite(v))
    if len(known) < 8:
        return None
    needed = [v for v in shown if v is not None and math.isfinite(v)]
    low, high = min([known[0], *needed]), max([known[int(0.97 * (len(known) - 1))], *needed])
    margin = 0.12 * (high - low)
    return (max(low - margin, min(low, 0.0)), high + margin) if margin > 0.0 and math.isfinite(margin) else None


def receipts(log: RunLog) -> list[Point]:
    """Return the points that have a receipt, including the end."""
    points = [p for p in log.points if "regret" in p.receipt or "bound" in p.receipt]
    return points + [p for p in log.ends if p.receipt and p.rows > max((q.rows for q in points), default=0)]


def regret(log: RunLog) -> Panel | None:
    """Return the linearised regret below its bounds; None if no receipt was kept."""
    points = receipts(log)
    if not points:
        return None
    xlim = span([p.rows for p in points])
    points = [p for p in points if xlim is None or p.rows >= xlim[0]]
    rows = [p.rows for p in points]
    series = [
        Series(
            name,
            rows,
            [p.receipt.get(key, math.nan) for p in points],
            dashed=key != "regret",
            colour=i,
            points=len(points) == 1,
            wide=key == "regret",  # it may lie on its bound
        )
        for i, (key, name) in enumerate(LINES.items())
        if any(key in p.receipt for p in points)
    ]
    positive = [p.receipt["regret"] > 0.0 for p in points if "regret" in p.receipt and p.rows >= 32]
    both = bool(positive) and sum(positive) >= 0.9 * len(positive)
    log_axes: bool | Literal["x"] = True if both else "x"
    return Panel("Regret and its bounds", "rows", "total loss", series, log=log_axes, vlines=changes(log), xlim=xlim)
