"""What a run told becomes the figures of its page, each with its numbers, or with the reason why it is not there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ftprl.draw import RAMP, Columns, Panel, Series
from ftprl.draw.numbers import short
from ftprl.losses import SCALAR_LOSSES
from ftprl.report.numbers import amount, count, duration, percent
from ftprl.runlog import plots
from ftprl.runlog.reader import Point, Receipt, Told

_NOTHING = "no progress has been told yet."
_FEW = 20  # rows: of fewer, the share of positives says little
Cells = Sequence[Sequence[str]]


@final
@dataclass(frozen=True)
class Figure:
    """A figure: how to read it, and its numbers as a table. Without a panel, `caption` says why there is none."""

    name: str
    title: str
    caption: str
    panel: Panel | None = None
    head: Sequence[str] = ()
    rows: Cells = ()


def figures(told: Told) -> list[Figure]:
    """All figures in the order of the page."""
    return [_loss(told), _regret(told), _scales(told), _calibration(told), _speed(told), _coordinates(told)]


def _loss(told: Told) -> Figure:
    name, title = "loss", "Progressive loss"
    panel = plots.loss(told)
    if panel is None:
        return Figure(name, title, _NOTHING)
    held = any(p.holdout is not None for p in told.points)
    return Figure(
        name,
        title,
        "Every row is predicted before it is learned, so these losses are an honest estimate without a test set. Lower "
        "is better." + (" The dashed line is of rows that were never learned." if held else ""),
        panel,
        ("rows", "pass", "mean so far", "since the last", *(("held out",) if held else ())),
        [
            (count(p.rows), str(p.turn), amount(p.loss), amount(p.since), *((amount(p.holdout),) if held else ()))
            for p in told.points
        ],
    )


def no_receipt(told: Told) -> str:
    """Why there is no receipt."""
    if told.keeps_receipt:
        return "the receipt comes with the first progress."
    return "this run kept no receipt." if told.keeps_receipt is False else "the events of this run have no receipt."


def _regret(told: Told) -> Figure:
    name, title = "regret", "Regret and its bounds"
    panel = plots.regret(told)
    if panel is None:
        return Figure(name, title, no_receipt(told))
    points = plots.receipts(told)
    keys = [key for key in plots.LINES if any(key in p.receipt for p in points)]
    return Figure(
        name,
        title,
        "Solid: the most that the predictions can have lost so far to the model’s own weights of that moment, had "
        "those been there from the first row. Dashed: two proved bounds that it cannot cross, and the best promises "
        "that could have been made with all rows known in advance.",
        panel,
        ("rows", *(plots.LINES[key] for key in keys)),
        [(count(p.rows), *(amount(p.receipt.get(key)) for key in keys)) for p in points],
    )


def _scales(told: Told) -> Figure:
    name, title = "scales", "Which scale is believed"
    points = [p for p in told.points if p.weights]
    names = _in_order(points)
    if not names:
        why = "one scale was learned, so there is nothing to mix." if told.points else _NOTHING
        return Figure(name, title, why)
    plain = [n for n in names if n != "stack"]
    shades = {n: round(i * (len(RAMP) - 1) / max(1, len(plain) - 1)) for i, n in enumerate(plain)}
    ends = points if len(points) > 1 else points * 2  # an area needs two
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
        marks=plots.marks(told),
    )
    return Figure(
        name,
        title,
        "Several learning scales run side by side, and the prediction mixes them by how well each has done so far. "
        "Nobody has to choose one."
        + (" The stack is a further expert that combines their scores." if "stack" in names else ""),
        panel,
        ("rows", *names),
        [(count(p.rows), *(_weight(p.weights.get(n)) for n in names)) for p in points],
    )


def _in_order(points: Sequence[Point]) -> list[str]:
    """Every name that had a weight: scales by size, all else behind them."""

    def place(name: str) -> tuple[float, str]:
        try:
            size = float(name)
        except ValueError:
            return math.inf, name
        return (size if math.isfinite(size) else math.inf), name

    return sorted({name for p in points for name in p.weights}, key=place)


def _weight(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _calibration(told: Told) -> Figure:
    name, title = "calibration", "Calibration"
    bins = told.calibration
    if not bins:
        loss = SCALAR_LOSSES.get(told.loss)
        if loss is not None and not loss.predicts_probability:
            return Figure(name, title, f"it is about probabilities, and this run has the {loss.words}.")
        return Figure(name, title, no_receipt(told))
    said = [p / n for n, p, _ in bins]
    came = [y / n for n, _, y in bins]
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
                said,
                [0.3 * n / most for n, _, _ in bins],
                0.035,
                faint=True,
            ),
            Series("perfect", [0.0, 1.0], [0.0, 1.0], dashed=True, colour=6, thin=True),
            Series("this run", [said[i] for i in known], [came[i] for i in known], colour=0, points=True),
        ],
        xlim=(-0.02, 1.02),
        ylim=(0.0, 1.02),
    )
    off = sum(abs(p - y) for _, p, y in bins) / total
    return Figure(
        name,
        title,
        "Of the rows that were predicted at 30 %, 30 % should come true: then the marks lie on the dashed line. Grey "
        f"bars show how many rows had such a prediction. On average a prediction is off by {percent(off)}."
        + (f" Places with fewer than {_FEW} rows are in the table only." if len(known) < len(bins) else ""),
        panel,
        ("predicted", "came true", "rows"),
        [(f"{a:.4f}", f"{b:.4f}", count(n)) for a, b, (n, _, _) in zip(said, came, bins, strict=True)],
    )


def _speed(told: Told) -> Figure:
    name, title = "speed", "Speed"
    steps = _steps(told)
    if len(steps) < 2:
        return Figure(name, title, "there is too little time between two points to tell.")
    x = [seconds for seconds, _, _ in steps]
    y = [speed for _, _, speed in steps]
    top = 1.15 * max(y)
    return Figure(
        name,
        title,
        "Rows that were read, predicted and learned in a second, since the point before. The first rows are slow "
        "because they touch new memory; a dip may be a checkpoint, retired scales, or other work of the machine.",
        Panel(
            title,
            "seconds since the start",
            "rows a second",
            [Series("", x, y, colour=2, points=True)],
            xlim=(0.0, 1.03 * x[-1]),
            ylim=(0.0, top),
        ),
        ("time", "rows", "rows a second"),
        [(duration(seconds), count(rows), count(round(speed))) for seconds, rows, speed in steps],
    )


def _steps(told: Told) -> list[tuple[float, int, float]]:
    """Seconds, rows and speed at points at least a hundredth of the whole time apart."""
    found: list[tuple[float, int, float]] = []
    before: Point | None = None
    least = max(told.seconds / 100.0, 1e-3)
    for p in told.points:
        if before is None or p.stretch != before.stretch:
            before = p
        elif p.seconds - before.seconds >= least:
            found.append((p.seconds, p.rows, (p.rows - before.rows) / (p.seconds - before.seconds)))
            before = p
    return found


def _coordinates(told: Told) -> Figure:
    name, title = "coordinates", "Where the price of learning lies"
    groups = [g for g in told.coordinates if "post_hoc" in g or "regret" in g]
    if not groups:
        missing = "it is told when the run ends." if told.receipt and told.status == "running" else no_receipt(told)
        return Figure(name, title, missing)
    key = "post_hoc" if any("post_hoc" in g for g in groups) else "regret"
    values = [g.get(key, 0.0) for g in groups]
    total = sum(values) or 1.0
    shares = [100.0 * value / total for value in values]
    words = [_group(g.get("seen_from"), g.get("seen_to")) for g in groups]
    places = [float(i) for i in range(len(groups))]
    every = math.ceil(len(groups) / 10)
    by_rows = told.coordinates_by != "gradients"
    head = "seen in rows" if by_rows else "sum of squared slopes"
    most = max(range(len(groups)), key=lambda i: shares[i])
    seen = f"seen in {words[most]} row{'s'[: words[most] != '1']}"
    where = f"features {seen if by_rows else f'whose squared slopes sum to {words[most]}'}"
    where = where if "seen_from" in groups[most] else "the intercept"
    return Figure(
        name,
        title,
        "Features by how often they were seen, the rarest on the left: the share of each group in the best bound in "
        f"hindsight, which is what learning it has to cost. The largest share, {percent(shares[most] / 100.0)}, lies "
        f"with {where}.",
        Panel(
            title,
            "seen in … rows" if by_rows else f"{head} (grows with the rows)",
            "% of the best bound" if key == "post_hoc" else "% of the regret",
            [Columns("", places, shares, colour=0)],
            ticks=[(place, _tick(g)) for i, (place, g) in enumerate(zip(places, groups, strict=True)) if not i % every],
        ),
        (head, "features", "best bound", "regret", "bound"),
        [
            (word, count(g.get("count")), *(amount(g.get(k)) for k in ("post_hoc", "regret", "bound")))
            for word, g in zip(words, groups, strict=True)
        ],
    )


def _group(begin: float | None, end: float | None) -> str:
    if begin is None or end is None:
        return "intercept"
    whole = begin >= 1 and end == int(end)
    return count(begin) if whole and end == begin + 1 else f"{count(begin)} to {count(end - 1 if whole else end)}"


def _tick(group: Receipt) -> str:
    """The begin of a group: powers of two, so that 64k is 65,536."""
    begin = group.get("seen_from")
    if begin is None:
        return "all"
    if 0.0 < begin < 1.0:
        return f"1/{_tick({'seen_from': 1.0 / begin})}"
    power = min(3, max(0, int(math.log2(begin)) // 10)) if begin >= 1 else 0
    return f"{short(begin / 1024**power)}{('', 'k', 'M', 'G')[power]}"
