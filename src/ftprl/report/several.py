"""Several runs in one report: one table of numbers, one picture of losses, then each run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ftprl import draw
from ftprl.draw import Panel, Series
from ftprl.report.figure import Figure
from ftprl.report.html import esc, table, tag
from ftprl.report.numbers import amount, count, duration
from ftprl.report.page import figure_card, frame, parts
from ftprl.runlog import plots
from ftprl.runlog.events import Event
from ftprl.runlog.floor import below
from ftprl.runlog.reader import RunLog

_HEAD = ("run", "rows", "loss per row", "baseline", "better", "beaten length", "time")


def page_of_several(runs: Sequence[tuple[str, Iterable[Event]]]) -> str:
    """Return the report of several runs as one HTML page; `runs` are their names and events."""
    names = distinct_names([name for name, _ in runs])
    logs = dict(zip(names, (RunLog.from_events(events) for _, events in runs), strict=True))
    title = " and ".join(names)
    inside = tag("section", _head(logs), id="head") + tag("section", _losses(logs), id="figures")
    for number, (name, log) in enumerate(logs.items(), 1):
        sections = "".join(tag("section", part) for part in parts(log, name, prefix=f"run{number}-").values())
        inside += tag("section", sections, id=f"run{number}", class_="run")
    return frame(inside, title)


def distinct_names(paths: Sequence[str]) -> list[str]:
    """Return short names of files that are all different.

    >>> distinct_names(["a/run.jsonl", "b/run.jsonl"]), distinct_names(["x", "x"])
    (['a/run.jsonl', 'b/run.jsonl'], ['x (1)', 'x (2)'])
    """
    short = [os.path.basename(path) or path for path in paths]
    if len(set(short)) == len(short):
        return short
    if len(set(paths)) == len(paths):
        return list(paths)
    return [f"{path} ({i})" for i, path in enumerate(paths, 1)]


def _head(logs: dict[str, RunLog]) -> str:
    """Return the table of all runs."""
    rows = [_row(name, log) for name, log in logs.items()]
    title = tag("h1", esc(f"{len(logs)} runs"))
    return title + tag("div", table("The runs", _HEAD, rows), class_="card")


def _row(name: str, log: RunLog) -> Sequence[str]:
    """Return a run's row of the table."""
    first = log.first_pass
    gain = None if first is None else first.improvement
    beaten = None if log.floor is None else log.floor.beaten_length
    return (
        name,
        count(log.rows),
        amount(log.progressive),
        amount(None if first is None else first.baseline),
        "–" if gain is None else f"{gain:.1f} %",
        "–" if beaten is None else below(beaten),
        duration(log.seconds),
    )


def _losses(logs: dict[str, RunLog]) -> str:
    """Return the losses of all runs in one picture."""
    lines: list[Series] = []
    for number, (name, log) in enumerate(logs.items()):
        panel = plots.loss(log)
        for series in () if panel is None else panel.series:
            if isinstance(series, Series) and series.name.startswith(("mean", "baseline")):
                own = f"{name}: {series.name}"
                lines.append(replace(series, name=own, colour=number % len(draw.COLOURS), points=False))
    if not lines:
        return tag("p", "No run has logged progress yet.")
    rows = [p.rows for log in logs.values() for p in log.points]
    panel = Panel("Progressive loss", "rows", "loss per row", lines, log="x", xlim=plots.span(rows), ylim=_limits(logs))
    caption = (
        "The mean loss so far of each run, every row predicted before it was learned, beside the baseline of its "
        "labels alone (dashed). Lower is better. Losses can be compared where runs have the same rows and loss."
    )
    figure = Figure(
        "losses", "Progressive loss of the runs", caption, panel, _HEAD, [_row(*run) for run in logs.items()]
    )
    return tag("div", figure_card(figure, panel), class_="cards")


def _limits(logs: dict[str, RunLog]) -> tuple[float, float] | None:
    """Return limits of the loss that suit all runs."""
    return plots.limits([v for log in logs.values() for p in log.points if p.rows >= 32 for v in (p.loss, p.baseline)])
