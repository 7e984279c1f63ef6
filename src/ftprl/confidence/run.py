"""The confidence of a run: intervals of its loss, improvement, calibration and error rate, and the drift alarm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl._core import Monitor
from ftprl.confidence.interval import LEVEL, MeanInterval
from ftprl.confidence.layout import MONITOR_NUMBERS, TAIL_NUMBERS
from ftprl.confidence.tail import LossTail
from ftprl.errors import BadModel
from ftprl.losses import LOSSES

if TYPE_CHECKING:
    from ftprl.confidence.residuals import ResidualSummary

Vector = NDArray[np.float64]
FALSE_ALARM = 0.01  # the probability of an alarm, at any row, in a stream whose expected loss never rises
_HUGE = 1e300  # larger losses are clipped to it
_ALARM_ROW = -1  # index of the alarm's row in the numbers of a monitor


@final
@dataclass(frozen=True, slots=True)
class Drift:
    """The alarm for a rising loss: whether and at which row it was raised.

    The null hypothesis is that the expected loss of no row is above the mean expected loss of the rows before it. Under
    it the alarm is raised, at any row at all, with probability at most `false_alarm`. A falling loss raises no alarm.
    """

    row: int | None
    false_alarm: float = FALSE_ALARM

    @property
    def alarm(self) -> bool:
        """Return True if the loss has risen."""
        return self.row is not None

    def text(self) -> str:
        """Return the alarm as a phrase.

        >>> Drift(None).text(), Drift(5120).text()
        ('no drift alarm', 'the loss has risen: alarm at row 5120')
        """
        return "no drift alarm" if self.row is None else f"the loss has risen: alarm at row {self.row}"


@final
@dataclass(frozen=True, slots=True)
class RunConfidence:
    """Intervals that hold at every row at once, each with its own probability `level`, and the drift alarm.

    All are about predictions made before the row was learned, in the first pass. `loss` is the mean progressive loss,
    `improvement` how much lower it is than the baseline's (None for a model saved without a baseline), `calibration`
    the mean prediction minus the mean label (None for the hinge losses, which predict no mean), and `error_rate` the
    share of wrongly predicted classes (two classes). `drift` is None for rows in random order. `loss` has no upper end
    if a relevant part of the losses was clipped and, for numeric labels, until 3,000 rows have shown no heavy tail. The
    other intervals are None if a relevant part of the differences was clipped.
    """

    loss: MeanInterval
    improvement: MeanInterval | None
    calibration: MeanInterval | None
    error_rate: MeanInterval | None
    drift: Drift | None

    def intervals(self) -> dict[str, MeanInterval]:
        """Return the intervals that the run has, by name."""
        names = ("loss", "improvement", "calibration", "error_rate")
        return {name: interval for name in names if (interval := getattr(self, name)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """Return the intervals and the alarm as JSON values."""
        drift = {} if self.drift is None else {"drift": {"row": self.drift.row, "false_alarm": self.drift.false_alarm}}
        return {**{name: interval.to_dict() for name, interval in self.intervals().items()}, **drift}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfidence:
        """Return the confidence that `to_dict` wrote."""
        read = {name: MeanInterval.from_dict(entry) for name, entry in values.items() if name != "drift"}
        known = values.get("drift")
        drift = None if known is None else Drift(known["row"], known["false_alarm"])
        return cls(read["loss"], read.get("improvement"), read.get("calibration"), read.get("error_rate"), drift)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def line(self) -> str:
        """Return the loss, the improvement and the alarm in one line.

        For numeric labels the first rows, from which the bound of the losses is chosen, are left out: their losses may
        be most of the mean.
        """
        gain = "" if self.improvement is None else ", " + self.improvement.below("the baseline's")
        start = " after the first 32 rows" if self.error_rate is None else ""
        alarm = "" if self.drift is None else f"; {self.drift.text()}"
        level = f"{100 * self.loss.level:g} % confidence, valid at every row"
        cut = f" ({self.loss.cut_rows:,} of {self.loss.rows:,} losses cut)" if self.loss.cut_rows else ""
        return f"{level}: mean loss {self.loss.ends()}{start}{cut}{gain}{alarm}"

    def lines(self) -> list[str]:
        """Return one line for each number."""
        lines = [f"mean loss {self.loss.text()}"]
        if self.improvement is not None:
            lines.append(f"below the baseline's loss by {self.improvement.text()}")
        if self.error_rate is not None:
            lines.append(f"error rate {self.error_rate.text(100.0, ' %')}")
        if self.calibration is not None:
            lines.append(f"mean prediction minus mean label {self.calibration.text()}")
        return lines if self.drift is None else [*lines, self.drift.text()]


@final
class RunMonitor:
    """The state of a run's intervals and alarm, updated row by row; batch sizes do not change it.

    >>> monitor = RunMonitor("logistic")
    >>> losses = np.full(1000, 0.1)
    >>> monitor.add(losses, np.full((1000, 2), 0.5), None, np.ones(1000), np.ones(1000))
    >>> print(monitor.confidence().improvement.text())
    0.400 (95 %: 0.304 to 0.496)
    """

    def __init__(self, loss: str, numbers: Sequence[float] = ()) -> None:
        self._core = Monitor(loss, 1.0 - LEVEL, FALSE_ALARM)
        self._nothing = list(self._core.numbers)
        kind = LOSSES[loss]
        self._tail = None if kind.is_classification else LossTail()
        self._is_tail_of_labels = kind.has_deviance  # the loss is nearly proportional to a large label
        self.restore(numbers)

    def restart(self) -> None:
        """Forget the rows so far, except the residuals and the largest losses."""
        self._core.numbers = self._nothing

    @property
    def needs_scores(self) -> bool:
        """Return True if `add` needs the predicted scores; for the log loss the losses are enough."""
        return self._core.needs_scores

    def add(self, losses: Vector, baselines: Vector, scores: Vector | None, y: Vector, weight: Vector) -> None:
        """Add rows as they were predicted before they were learned; rows without a label or weight are ignored."""
        self._core.add(losses, baselines, scores, y, weight)
        if self._tail is not None:
            met = (weight > 0.0) & (y == y) & (losses == losses)
            self._tail.add(np.minimum(np.abs(y if self._is_tail_of_labels else losses)[met], _HUGE))

    @property
    def numbers(self) -> list[float]:
        """Return the state as numbers, for a checkpoint."""
        return [*self._core.numbers, *([] if self._tail is None else self._tail.numbers)]

    def restore(self, numbers: Sequence[float]) -> None:
        """Restore saved numbers; an empty list changes nothing."""
        tail = numbers[MONITOR_NUMBERS:]
        if len(tail) not in (0, 0 if self._tail is None else TAIL_NUMBERS):
            raise _other_numbers("numbers", len(numbers))
        self._set("numbers", numbers[:MONITOR_NUMBERS])
        if self._tail is not None and tail:
            self._tail.restore([float(value) for value in tail])

    @property
    def is_heavy(self) -> bool:
        """Return True if the tail of the losses may be too heavy for an upper end; never for labels that are
        classes.
        """
        return self._tail is not None and self._tail.is_heavy

    @property
    def residual_numbers(self) -> list[float]:
        """Return the binned residuals of this run, for a checkpoint; none for two classes."""
        return self._core.residuals if self._core.has_residuals else []

    def restore_residuals(self, numbers: Sequence[float]) -> None:
        """Restore saved residuals; an empty list changes nothing."""
        self._set("residuals", numbers)

    def _set(self, name: str, numbers: Sequence[float]) -> None:
        """Set numbers of the core; raise BadModel if they do not fit."""
        if numbers:
            try:
                setattr(self._core, name, [float(value) for value in numbers])
            except (TypeError, ValueError):
                raise _other_numbers(name, len(numbers)) from None

    def residuals(self) -> ResidualSummary | None:
        """Return the distribution of residuals in this run; None for two classes, and before the first row."""
        if not self._core.has_residuals:
            return None
        from ftprl.confidence.residuals import summary_of

        return summary_of(self._core.residuals)

    @property
    def drift(self) -> Drift:
        """Return the drift alarm."""
        row = int(self._core.numbers[_ALARM_ROW])
        return Drift(row if row > 0 else None)

    def intervals(self) -> list[MeanInterval | None]:
        """Return the intervals of the mean loss, improvement, calibration and error rate, of clipped numbers."""
        return [MeanInterval.of(part, LEVEL) for part in self._core.sequences]

    def confidence(self, *, is_random: bool = False) -> RunConfidence | None:
        """Return the intervals so far, for rows in random order or not; None before the first row."""
        loss, improvement, calibration, errors = self.intervals()
        if loss is None:
            return None
        if self.is_heavy or loss.is_cut_short:
            loss = replace(loss, upper=math.inf)
        improvement, calibration = (
            None if one is None or one.is_cut_short else one for one in (improvement, calibration)
        )
        return RunConfidence(loss, improvement, calibration, errors, None if is_random else self.drift)


def _other_numbers(name: str, count: int) -> BadModel:
    """Return the error for saved numbers that do not fit."""
    return BadModel(f"the {name} of a run's intervals need to be those that it saved, got {count} others; start anew.")
