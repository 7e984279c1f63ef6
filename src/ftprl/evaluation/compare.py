"""Compare systems by paired differences of their losses, with intervals that hold at every row.

Because the interval of a difference holds at all rows at once, one may look at any time and stop when it is decided.
All statements about pairs hold together with the stated probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import Baseline, MeanSequence
from ftprl.confidence import MeanInterval
from ftprl.confidence.interval import LEVEL, digits_for, fixed
from ftprl.data.files import shown
from ftprl.errors import InvalidInput
from ftprl.evaluation.blocks import Block, Measurable, largest_first, left_out
from ftprl.evaluation.predictions import Vector
from ftprl.losses import ScalarLoss

MOST_SYSTEMS = 16
MOST_GROUPS = 200  # further values are combined into one group
OTHER_VALUES, NO_VALUE = "(other values)", "(empty)"
_FIRST_ROWS, _PASSED_OVER = 32, 16  # rows that determine the unit of a loss, and rows skipped before, as in training
_UNITS = {"loss": 16.0, "difference": 4.0}  # initial clipping bounds, in units
_NATS = {"loss": 10.0, "difference": 2.0}  # clipping bounds of the losses of two classes


@final
@dataclass(frozen=True, slots=True)
class Difference:
    """The loss of one system minus the loss of another, on the same rows.

    `decided` is the first row after which the interval excluded 0, or None.
    """

    first: str
    second: str
    interval: MeanInterval
    decided: int | None

    @property
    def better(self) -> str | None:
        """Return the system with the smaller loss if that is decided, else None."""
        if not self.interval.excludes_zero:
            return None
        return self.second if self.interval.lower > 0.0 else self.first

    def text(self) -> str:
        """Return the difference in words, with the better system first."""
        i = self.interval
        if self.better is None:
            text = f"{self.first} and {self.second}: not decided; the difference is {i.text()} per row"
            return text + self._cut_rows(1.0)
        better, worse = self.second, self.first
        if i.lower <= 0.0:
            i = MeanInterval(-i.mean, -i.upper, -i.lower, i.level, i.rows)
            better, worse = worse, better
        row = "" if self.decided is None else f", decided at row {self.decided:,}"
        text = f"{better} is better than {worse} by {i.text().replace(' (', ' per row (', 1)}{row}"
        return text + self._cut_rows(math.copysign(1.0, self.interval.mean))

    def _cut_rows(self, sign: float) -> str:
        """Return a note on the mean without clipping, if losses of some rows were clipped."""
        i = self.interval
        if not i.cut_rows:
            return ""
        mean = fixed(sign * (i.mean + i.cut_off), digits_for(i.radius))
        rows = "1 row was" if i.cut_rows == 1 else f"{i.cut_rows:,} rows were"
        return f"; the difference{'s'[: i.cut_rows != 1]} of {rows} clipped ({mean} without clipping)"

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as JSON values."""
        return {
            "first": self.first,
            "second": self.second,
            "difference": self.interval.to_dict(),
            "better": self.better,
            "decided": self.decided,
        }


@final
@dataclass(frozen=True, slots=True)
class Curve:
    """The running mean of a difference and its interval, at some rows."""

    rows: list[int] = field(default_factory=list)
    mean: list[float] = field(default_factory=list)
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The losses of several systems on the same rows, and the difference of every pair.

    `rows` were compared; `left_out` had no prediction of some system, `unlabelled` no label or no weight, and
    `unit_rows` came first and were used to choose where losses are clipped. `baseline` is the loss of predicting each
    row from the labels before it alone. `slices` has (value, rows, differences) for each value of a column, the most
    frequent first.
    """

    loss: str
    unit: str
    systems: tuple[str, ...]
    losses: tuple[MeanInterval, ...]
    baseline: float
    differences: tuple[Difference, ...]
    curves: tuple[Curve, ...]
    rows: int
    left_out: int
    unlabelled: int
    unit_rows: int
    by: str | None
    slices: tuple[tuple[str, int, tuple[Difference, ...]], ...]

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.systems, "baseline"))
        lines = [f"{self.rows:,} rows, {self.unit} per row{self._not_compared()}", ""]
        for name, interval in zip(self.systems, self.losses, strict=True):
            lines.append(f"{name:<{width}}  {interval.text()}{_cut(interval)}")
        lines += [f"{'baseline':<{width}}  {self.baseline:.4f}  from the labels before each row", ""]
        lines += [difference.text() for difference in self.differences]
        if self.slices:
            lines += ["", f"by {self.by}, each with its own interval:"]
            widest = max(len(value) for value, *_ in self.slices)
            for value, rows, differences in self.slices:
                if not differences:
                    lines.append(f"{value:<{widest}}  too few rows: {_FIRST_ROWS} settle where losses are cut")
                lines += [f"{value:<{widest}}  {rows:>9,} rows  {d.text()}" for d in differences]
        return "\n".join(lines)

    def _not_compared(self) -> str:
        """Return a note on the rows that were not compared."""
        parts = {"without a prediction of every system": self.left_out, "without a label or weight": self.unlabelled}
        parts["at the start, which settle where losses are cut"] = self.unit_rows
        return left_out(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {
            "loss": self.loss,
            "rows": self.rows,
            "left_out": self.left_out,
            "unlabelled": self.unlabelled,
            "unit_rows": self.unit_rows,
            "baseline": self.baseline,
            "systems": [
                {"name": name, **interval.to_dict()} for name, interval in zip(self.systems, self.losses, strict=True)
            ],
            "differences": [difference.to_dict() for difference in self.differences],
            "by": self.by,
            "slices": [
                {"value": value, "rows": rows, "differences": [difference.to_dict() for difference in differences]}
                for value, rows, differences in self.slices
            ],
        }


def _cut(interval: MeanInterval) -> str:
    """Return a note on how many losses were clipped, empty if none were."""
    if not interval.cut_rows:
        return ""
    return (
        f"  {interval.cut_rows:,} losses limited to {interval.bound:g}, which lowers the mean by {interval.cut_off:.2g}"
    )


@final
class _Paired:
    """Confidence sequences of the losses of each system, and of the difference of every pair."""

    def __init__(self, loss: ScalarLoss, systems: int) -> None:
        self._loss = loss
        self.pairs = tuple(combinations(range(systems), 2))
        self._error = (1.0 - LEVEL) / max(1, len(self.pairs))
        self._unit: float | None = 1.0 if loss.is_classification else None
        self._first: list[NDArray[np.float64]] = []
        self.rows = 0
        self.decided: list[int | None] = [None] * len(self.pairs)
        self._losses = [self._sequence("loss", 1.0 - LEVEL) for _ in range(systems)]
        self._differences = [self._sequence("difference", self._error) for _ in self.pairs]

    def _sequence(self, kind: str, error: float) -> MeanSequence:
        """Return a confidence sequence with the clipping bound of the loss."""
        bound = _NATS[kind] if self._loss.is_classification else _UNITS[kind] * (self._unit or 1.0)
        is_signed = kind == "difference" or self._loss.link == "log"
        return MeanSequence(bound, is_signed, True, error)

    def add(self, losses: Vector, weight: Vector, rows: NDArray[np.int64]) -> None:
        """Add the losses of some rows, one column per system, with the numbers of the rows in the data."""
        if self._unit is None:
            losses, weight, rows = self._settle_unit(losses, weight, rows)
        if not len(losses):
            return
        self.rows += len(losses)
        for k, sequence in enumerate(self._losses):
            sequence.add(np.ascontiguousarray(losses[:, k]), weight)
        for k, (a, b) in enumerate(self.pairs):
            at = self._differences[k].add(losses[:, a] - losses[:, b], weight)
            if at >= 0 and self.decided[k] is None:
                self.decided[k] = int(rows[at])

    def _settle_unit(
        self, losses: Vector, weight: Vector, rows: NDArray[np.int64]
    ) -> tuple[Vector, Vector, NDArray[np.int64]]:
        """Choose the unit of the loss from the first rows and return the remaining ones.

        Clipping bounds must be known before the rows that are compared.
        """
        for i, row in enumerate(losses):
            self._first.append(np.abs(row).mean())
            latest = self._first[_PASSED_OVER:]
            if len(self._first) >= _FIRST_ROWS and sum(latest) > 0.0:
                self._unit = float(sum(latest) / len(latest))
                self._losses = [self._sequence("loss", 1.0 - LEVEL) for _ in self._losses]
                self._differences = [self._sequence("difference", self._error) for _ in self.pairs]
                return losses[i + 1 :], weight[i + 1 :].copy(), rows[i + 1 :]
        return losses[:0], weight[:0], rows[:0]

    @property
    def unit_rows(self) -> int:
        """Return the number of rows from which the unit was chosen."""
        return len(self._first)

    def losses(self) -> list[MeanInterval | None]:
        """Return the mean loss of each system with its interval."""
        return [MeanInterval.of(sequence, LEVEL) for sequence in self._losses]

    def differences(self, names: Sequence[str]) -> list[Difference]:
        """Return the difference of every pair for which there are rows."""
        differences = []
        for (a, b), sequence, decided in zip(self.pairs, self._differences, self.decided, strict=True):
            interval = MeanInterval.of(sequence, LEVEL)
            if interval is not None:
                differences.append(Difference(names[a], names[b], interval, decided))
        return differences


def compare_predictions(
    blocks: Iterable[Block], names: Sequence[str], loss: ScalarLoss, *, by: str | None = None, classes: int = 0
) -> Comparison:
    """Compare systems on rows with labels; `names` has one name for each column of scores.

    With several `classes` a score is the log probability of the label.
    """
    _check_names(names)
    baseline = Baseline(loss.name, 0.5 if loss.tau is None else loss.tau, classes)
    paired = _Paired(loss, len(names))
    slices: dict[str, _Paired] = {}
    curves, measurable, next_point = [Curve() for _ in paired.pairs], Measurable(), 1.0
    for block, numbers in measurable.rows(blocks):
        y, weight = block.y, block.weight
        losses = np.column_stack([loss.arrays(block.scores[:, k], y)[0] for k in range(len(names))])
        baseline.learn(y, weight)
        start = 0
        while start < len(y):  # up to the next point of the curves
            stop = min(len(y), start + max(1, int(next_point) - paired.rows))
            paired.add(losses[start:stop], weight[start:stop].copy(), numbers[start:stop])
            if paired.rows >= int(next_point):
                next_point = max(1.0, next_point) * 2**0.125
                _mark(curves, paired.differences(names), int(numbers[stop - 1]))
            start = stop
        if block.groups is not None:
            for value, some in rows_by_value(block.groups, slices):
                one = slices.setdefault(value, _Paired(loss, len(names)))
                one.add(losses[some], weight[some], numbers[some])
    known = [interval for interval in paired.losses() if interval is not None]
    if len(known) < len(names):
        raise InvalidInput(
            f"data needs rows with a label, a weight above 0 and a prediction of every system, got {paired.rows} beyond"
            f" the first {_FIRST_ROWS if not loss.is_classification else 0}; check the labels and the prediction files."
        )
    differences = paired.differences(names)
    return Comparison(
        loss=loss.name,
        unit=loss.unit,
        systems=tuple(names),
        losses=tuple(known),
        baseline=baseline.total / float(baseline.numbers[4]),
        differences=tuple(differences),
        curves=tuple(curves),
        rows=paired.rows,
        left_out=measurable.left_out,
        unlabelled=measurable.unlabelled,
        unit_rows=paired.unit_rows,
        by=by,
        slices=tuple((value, rows, tuple(one.differences(names))) for value, rows, one in largest_first(slices)),
    )


def _check_names(names: Sequence[str]) -> None:
    """Raise InvalidInput for too few or too many systems."""
    if not 2 <= len(names) <= MOST_SYSTEMS:
        raise InvalidInput(
            f"compare needs from 2 to {MOST_SYSTEMS} models or prediction files, got {len(names)}; name those."
        )


def _mark(curves: list[Curve], differences: list[Difference], row: int) -> None:
    """Add the current differences to the curves."""
    for curve, difference in zip(curves, differences, strict=False):
        i = difference.interval
        for values, value in ((curve.mean, i.mean), (curve.lower, i.lower), (curve.upper, i.upper)):
            values.append(value)
        curve.rows.append(row)


def rows_by_value(groups: NDArray[Any], known: Any) -> list[tuple[str, NDArray[np.intp]]]:
    """Return the rows of each value; values beyond the first `MOST_GROUPS` are combined into one."""
    rows_of: dict[str, list[int]] = {}
    fresh = 0
    for row, value in enumerate(groups):
        name = shown(str(value)) or NO_VALUE
        if name not in known and name not in rows_of:
            if len(known) + fresh >= MOST_GROUPS:
                name = OTHER_VALUES
            fresh += name not in rows_of
        rows_of.setdefault(name, []).append(row)
    return [(value, np.array(rows, dtype=np.intp)) for value, rows in rows_of.items()]
