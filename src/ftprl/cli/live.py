"""The progress of `train`: a table with a line at each power of two and, on a terminal, a live line."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Mapping
from typing import Any, TextIO

from ftprl import terminal
from ftprl.cli.column_table import column_lines, kind_lines
from ftprl.cli.output import StatusLine
from ftprl.cli.spelling import as_typed
from ftprl.confidence import RunConfidence
from ftprl.data.files import shown
from ftprl.losses import LOSSES
from ftprl.runlog.events import Event, Listener
from ftprl.runlog.yardstick import compared, deviances, digits, root_mean_square
from ftprl.training.cautions import of_columns
from ftprl.training.holdout import FIRST_EVERY, FIRST_ROWS

_WIDTHS = {
    "rows": 10,
    "weight sum": 10,
    "mean loss": 10,
    "RMSE": 10,
    "deviance": 10,
    "baseline": 10,
    "better": 8,
    "since last": 10,
    "label": 8,
    "predicted": 10,
    "features": 8,
    "held out": 10,
}
_BETWEEN = "  "  # between two columns, because names of columns contain blanks
# The columns to leave out on a narrow terminal, in this order.
_LEAST = (
    "weight sum",
    "features",
    "label",
    "predicted",
    "deviance",
    "held out baseline",
    "since last",
    "RMSE",
    "held out better",
)
_MISSING = {"indicator": "a feature 'COLUMN is missing' (--missing ignore: nothing)", "ignore": "nothing"}


def show(out: TextIO, *, quiet: bool = False) -> Listener:
    """Return a listener that writes to a terminal or to a file; with `quiet`, warnings only."""
    if quiet:
        return _Warnings(out).hear
    return _Live(out).hear if out.isatty() else _Table(out).hear


class _Warnings:
    """A listener that prints warnings: columns that look like identifiers, checkpoints that could not be written."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def hear(self, event: Event) -> None:
        """Print the event if it is a warning."""
        if event["event"] == "checkpoint_failed":
            self._line(f"ftprl: {shown(event['message'])}")
        elif event["event"] == "start":
            for caution in of_columns(event["data"]):
                self._line(f"ftprl: {as_typed(caution.text, caution.options)}")

    def _line(self, text: str) -> None:
        """Print a line; a closed log does not stop the learning."""
        with contextlib.suppress(OSError):  # a closed log does not stop the learning
            print(text, file=self._out, flush=True)


class _Table(_Warnings):
    """A listener that prints a line at each power of two of the rows: mean loss, baseline and improvement."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._has_holdout = False
        self._names: list[str] = []  # of the columns
        self._has_rmse = self._has_deviance = False
        self._has_alarm = False
        self._keeps_best_pass, self._passes = False, 1
        self._last = (0, 0.0, 0.0)  # the pass, the loss and the weight of the last line

    def hear(self, event: Event) -> None:
        """Print what belongs into the table."""
        super().hear(event)
        kind = event["event"]
        if kind in ("start", "resume"):
            self._has_holdout = event["holdout_every"] is not None
            loss = LOSSES[event["spec"]["loss"]]
            self._has_rmse, self._has_deviance = loss.rmse, loss.has_deviance
            self._keeps_best_pass, self._passes = event["keeps_best_pass"], event["passes"]
            width = terminal.columns(self._out)
            self._line("\n".join(_settings(event, self._out)))
            self._line("")
            self._names = self._columns(width)
            self._line(_BETWEEN.join(f"{_head(name):>{_WIDTHS[_head(name)]}}" for name in self._names))
        elif kind == "progress" and event["rows"] & (event["rows"] - 1) == 0:
            self._line(self._progress(event))
        elif kind == "retire":
            self._line(f"scales that no longer contribute are dropped; kept: {setting(event['kept'])}")
        elif kind == "pass" and self._keeps_best_pass:
            held = (event["holdout"], event["holdout_baseline"], event["holdout_improvement"])
            self._line(f"pass {event['pass']}: held-out loss {self._compared(*held)}")
        elif kind == "pass" and event["pass"] > 1:
            means = self._compared(event["loss"], None, None)
            self._line(f"pass {event['pass']}: mean loss of rows learned before {means}")
        elif kind == "relearn":
            stopped = event["compared"] < self._passes
            reason = (
                f"stopped after pass {event['compared']}, as the held-out loss no longer falls; " if stopped else ""
            )
            how = "one pass" if event["passes"] == 1 else f"{event['passes']} passes"
            self._line(
                f"{reason}pass {event['passes']} has the smallest held-out loss: now all rows are learned in {how}"
            )
        if kind == "end" and event.get("reading") is not None:
            self._line(_workers(event["reading"], event["seconds"]))
        if kind in ("progress", "end") and event.get("confidence") is not None:
            self._expect(RunConfidence.from_dict(event["confidence"]), event.get("rows_of_runs"), is_end=kind == "end")

    def _compared(self, loss: float, baseline: float | None, improvement: float | None) -> str:
        """Return a mean loss beside the baseline."""
        return compared(loss, baseline, improvement, rmse=self._has_rmse, deviance=self._has_deviance)

    def _expect(self, confidence: RunConfidence, runs: int | None, *, is_end: bool) -> None:
        """Print an expectation for future rows at the end, and a line as soon as the loss has risen.

        In the order of the data the intervals continue from run to run: `runs` is the number of rows of all runs.
        """
        drift = confidence.drift
        if drift is not None and drift.alarm and not self._has_alarm:
            self._has_alarm = True
            self._line(f"drift: {drift.text()}")
        if is_end:
            self._line(confidence.line() + ("" if runs is None else f" (over the {runs:,} rows of all runs)"))

    def _columns(self, width: int) -> list[str]:
        """Return the names of the columns that fit."""
        beside = [name for name, has in (("RMSE", self._has_rmse), ("deviance", self._has_deviance)) if has]
        names = ["rows", "weight sum", "mean loss", *beside, "baseline", "better"]
        names += ["since last", "label", "predicted", "features"]
        names += ["held out", "held out baseline", "held out better"] if self._has_holdout else []
        for least in _LEAST if self._out.isatty() else ():
            if sum(_WIDTHS[_head(name)] + len(_BETWEEN) for name in names) > width + len(_BETWEEN) and least in names:
                names.remove(least)
        return names

    def _progress(self, event: Event) -> str:
        """Return the line of a progress event."""
        weight = event["pass_weight"]
        loss = event["loss"] * weight if weight else 0.0
        before = self._last[1:] if self._last[0] == event["pass"] else (0.0, 0.0)
        self._last = (event["pass"], loss, weight)
        since = (loss - before[0]) / (weight - before[1]) if weight > before[1] else None
        cells = {"rows": f"{event['rows']:>10}", "weight sum": f"{event['weight']:>10.6g}"}
        cells["mean loss"] = _loss(event["loss"])
        if self._has_rmse:
            cells["RMSE"] = f"{root_mean_square(event['loss']):>10.6g}"
        if self._has_deviance:
            both = deviances(event["loss"], event["baseline"], event["improvement"])
            cells["deviance"] = f"{'' if both is None else format(both[0], '.6g'):>10}"
        # In later passes the rows have been learned before, so a comparison with guessing means nothing.
        gain = event["improvement"] if event["pass"] == 1 else math.nan
        cells |= {"baseline": _loss(event["baseline"]), "better": _percent(gain), "since last": _loss(since)}
        if "label" in event:
            cells["label"] = _example(event["label"], ".6g", 8)
            cells["predicted"] = _example(event["prediction"], ".4f", 10)
            cells["features"] = f"{event['features']:>8}"
        if self._has_holdout:
            cells["held out"] = _loss(event["holdout"])
            cells["held out baseline"] = _loss(event["holdout_baseline"])
            cells["held out better"] = _percent(event["holdout_improvement"])
        return _BETWEEN.join(cells[name] for name in self._names if name in cells)


def _head(name: str) -> str:
    """Return the heading of a column, without its `held out`."""
    return name.removeprefix("held out ")


class _Live(_Table):
    """A listener that prints the table and, below it, a live line with the current speed and loss."""

    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._status, self._began = StatusLine(out), (0.0, 0)

    def hear(self, event: Event) -> None:
        """Update the live line, or print above it."""
        if event["event"] in ("start", "resume"):
            self._began = (time.monotonic(), event["rows"])
        if event["event"] == "tick":
            seconds, rows = time.monotonic() - self._began[0], event["rows"] - self._began[1]
            speed = f"{rows / seconds:,.0f} rows/s" if seconds > 0 else ""
            is_first = event["pass"] == 1
            means = compared(event["loss"], *((event["baseline"], event["improvement"]) if is_first else (None, None)))
            self._status.show(f"{event['rows']:>10} rows  {speed:>18}  mean loss {means}")
            return
        self._status.clear()
        super().hear(event)


def _example(value: float | str, digits: str, width: int) -> str:
    """Return a label or a prediction in a column of the table; with several classes it is a name."""
    if isinstance(value, str):
        return f"{shown(value)[:width] or 'unknown':>{width}}"
    return f"{'unknown' if math.isnan(value) else format(value, digits):>{width}}"


def _loss(value: float | None) -> str:
    """Return a loss in a column of the table."""
    return f"{'-' if value is None or math.isnan(value) else digits(value):>10}"


def _percent(value: float) -> str:
    """Return a percentage in a column of the table."""
    value = 0.0 if abs(value) < 0.05 else value  # avoids -0.0
    return f"{'-':>8}" if math.isnan(value) else f"{value:>6.1f} %" if abs(value) < 10_000.0 else f"{value:>6.0e} %"


def _settings(event: Event, out: TextIO) -> list[str]:
    """Return the settings that determine the run, as a few lines."""
    data: dict[str, Any] = event["data"]
    spec: dict[str, Any] = event["spec"]
    files, width = data["files"], terminal.columns(out)
    some = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    lines = [f"{'data':<12} {data['format']}: {some}", f"{'labels':<12} {data['labels']}"]
    if data["profile"]:
        lines += ["", *column_lines(data["profile"], terminal.columns(out, terminal.UNLIMITED)), ""]
    else:
        lines += kind_lines(data["columns"] or {}, 12, 30)
    if data["missing"] is not None:
        lines += named("missing", _MISSING[data["missing"]], 12, width)
    options = " ".join(f"{name}={setting(value)}" for name, value in model_settings(spec).items())
    lines += named("model", f"{spec['loss']} loss, {spec['dim']} cells, {options}", 12, width)
    if event["keeps_best_pass"]:
        every = event["holdout_every"]
        more = f" (every {FIRST_EVERY}th of the first {FIRST_ROWS})" if every > FIRST_EVERY else ""
        text = (
            f"at most {event['passes']}: every {every}th row{more} is held out to choose the number of passes; then all"
            " rows are learned (--holdout 0: hold out no row and make all passes)"
        )
        lines += named("passes", text, 12, terminal.columns(out, terminal.UNLIMITED))
    if event["event"] == "resume":
        lines.append(f"{'resumed':<12} after {event['rows']} rows")
    return lines


def model_settings(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a model that matter for its loss, except the loss and the size of the table."""
    loss = LOSSES[spec["loss"]]
    unused = {"loss", "dim", *([] if loss.tau is not None else ["tau"])}
    settings = {name: value for name, value in spec.items() if name not in unused}
    for name in settings.pop("dropped_experts", ()):
        settings[{"columns": "dense"}.get(name, name)] = "dropped"
    dropped, _ = settings.pop("retired", None), settings.pop("retired_row", None)
    return {**settings, "dropped": dropped} if dropped else settings


def named(name: str, text: str, indent: int, width: int | None = None) -> list[str]:
    """Return a named setting in as many lines as it needs.

    >>> named("model", "a=1 b=2", 8)
    ['model    a=1 b=2']
    """
    return terminal.wrapped(f"{name:<{indent}} {text}", 0, indent + 1, width or terminal.columns())


def setting(value: Any) -> str:
    """Return a setting as it is typed on the command line.

    >>> setting((0.1, 1.0)), setting(None), setting(True)
    ('0.1,1', 'none', 'yes')
    >>> setting([["price*", 0.0, None]])
    'price*=0:'
    """
    if isinstance(value, list | tuple):
        return ",".join(_bound(*entry) if isinstance(entry, list) else f"{entry:g}" for entry in value) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bound(name: str, lower: float | None, upper: float | None) -> str:
    """Return a bound as it is typed on the command line."""
    from ftprl.data.files import shown

    return f"{shown(name)}={'' if lower is None else f'{lower:g}'}:{'' if upper is None else f'{upper:g}'}"


def _workers(reading: Mapping[str, Any], seconds: float) -> str:
    """Return a sentence on the speed of a cluster's workers, and on who waited for whom."""
    waited = min(1.0, reading["waiting_seconds"] / seconds) if seconds else 0.0
    return (
        f"{reading['workers']} workers read {reading['rows_per_second_of_a_worker']:,.0f} rows/s each"
        f" and sent {reading['bytes'] / max(1, reading['rows']):,.0f} bytes per row; the learner takes"
        f" {reading['rows_per_second_of_the_learner']:,.0f} rows/s and waited {waited:.0%} of the time for them"
    )
