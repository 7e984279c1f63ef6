"""What a run knows of rows to come: intervals of its loss, improvement, calibration and error rate, and the alarm."""

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
_HUGE = 1e300  # larger losses count as that
_ALARM_ROW = -1  # its place in the numbers of a monitor


@final
@dataclass(frozen=True, slots=True)
class Drift:
    """The alarm for a loss that rises: whether and at which row it was raised.

    The null hypothesis is that the expected loss of no row is above the mean expected loss of the rows before. Then the
    alarm is raised, at any row at all, with probability at most `false_alarm`. A loss that falls raises none.
    """

    row: int | None
    false_alarm: float = FALSE_ALARM

    @property
    def alarm(self) -> bool:
        """Whether the loss has risen."""
        return self.row is not None

    def text(self) -> str:
        """The alarm as a phrase.

        >>> Drift(None).text(), Drift(5120).text()
        ('no drift alarm', 'the loss has risen: alarm at row 5120')
        """
        return "no drift alarm" if self.row is None else f"the loss has risen: alarm at row {self.row}"


@final
@dataclass(frozen=True, slots=True)
class RunConfidence:
    """Intervals that hold at every row at once, each with its own probability `level`, and the drift alarm.

    All are about predictions made before the row was learned, in the first pass. `loss` is the mean progressive loss,
    `improvement` how much the baseline's is above it (None for a model saved without a baseline), `calibration` the
    mean prediction minus the mean label (None for the hinge losses, which predict no mean), and `error_rate` how often
    the wrong class was predicted (two classes). `drift` is None for rows in random order. `loss` has no upper end where
    losses that matter were cut off, and with labels that are numbers not until 3,000 rows have shown no heavy tail. The
    others are None where differences that matter were cut off.
    """

    loss: MeanInterval
    improvement: MeanInterval | None
    calibration: MeanInterval | None
    error_rate: MeanInterval | None
    drift: Drift | None

    def intervals(self) -> dict[str, MeanInterval]:
        """The intervals that the run has, by name."""
        names = ("loss", "improvement", "calibration", "error_rate")
        return {name: interval for name in names if (interval := getattr(self, name)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        drift = {} if self.drift is None else {"drift": {"row": self.drift.row, "false_alarm": self.drift.false_alarm}}
        return {**{name: interval.to_dict() for name, interval in self.intervals().items()}, **drift}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunConfidence:
        """What `to_dict` wrote."""
        read = {name: MeanInterval.from_dict(entry) for name, entry in values.items() if name != "drift"}
        known = values.get("drift")
        drift = None if known is None else Drift(known["row"], known["false_alarm"])
        return cls(read["loss"], read.get("improvement"), read.get("calibration"), read.get("error_rate"), drift)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def line(self) -> str:
        """The loss, the improvement and the alarm in one line.

        With labels that are numbers the first rows, which settle the bound of the losses, are left out: their losses
        may be most of the mean.
        """
        gain = "" if self.improvement is None else ", " + self.improvement.below("the baseline's")
        start = " after the first 32 rows" if self.error_rate is None else ""
        alarm = "" if self.drift is None else f"; {self.drift.text()}"
        level = f"{100 * self.loss.level:g} % confidence, valid at every row"
        cut = f" ({self.loss.cut_rows:,} of {self.loss.rows:,} losses cut)" if self.loss.cut_rows else ""
        return f"{level}: mean loss {self.loss.ends()}{start}{cut}{gain}{alarm}"

    def lines(self) -> list[str]:
        """One line for each number."""
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
    """Watches a run row by row; its state is a list of numbers, which do not depend on how rows are cut into batches.

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
        self._is_tail_of_labels = kind.has_deviance  # such a loss is near a multiple of a large label
        self.restore(numbers)

    def restart(self) -> None:
        """Forget the rows so far, but for the residuals and the largest losses."""
        self._core.numbers = self._nothing

    @property
    def needs_scores(self) -> bool:
        """Whether `add` needs the predicted scores; with the log loss the losses are enough."""
        return self._core.needs_scores

    def add(self, losses: Vector, baselines: Vector, scores: Vector | None, y: Vector, weight: Vector) -> None:
        """Rows as they were predicted before they were learned; those without a label or weight are passed over."""
        self._core.add(losses, baselines, scores, y, weight)
        if self._tail is not None:
            met = (weight > 0.0) & (y == y) & (losses == losses)
            self._tail.add(np.minimum(np.abs(y if self._is_tail_of_labels else losses)[met], _HUGE))

    @property
    def numbers(self) -> list[float]:
        """All that it remembers, for a checkpoint."""
        return [*self._core.numbers, *([] if self._tail is None else self._tail.numbers)]

    def restore(self, numbers: Sequence[float]) -> None:
        """Go on from saved numbers; none of them changes nothing."""
        tail = numbers[MONITOR_NUMBERS:]
        if len(tail) not in (0, 0 if self._tail is None else TAIL_NUMBERS):
            raise _other_numbers("numbers", len(numbers))
        self._set("numbers", numbers[:MONITOR_NUMBERS])
        if self._tail is not None and tail:
            self._tail.restore([float(value) for value in tail])

    @property
    def is_heavy(self) -> bool:
        """Whether the losses may have a tail too heavy for an upper end; never with labels that are classes."""
        return self._tail is not None and self._tail.is_heavy

    @property
    def residual_numbers(self) -> list[float]:
        """The residuals of this run in bins, for a checkpoint; none for two classes."""
        return self._core.residuals if self._core.has_residuals else []

    def restore_residuals(self, numbers: Sequence[float]) -> None:
        """Go on from saved residuals; none of them changes nothing."""
        self._set("residuals", numbers)

    def _set(self, name: str, numbers: Sequence[float]) -> None:
        if numbers:
            try:
                setattr(self._core, name, [float(value) for value in numbers])
            except (TypeError, ValueError):
                raise _other_numbers(name, len(numbers)) from None

    def residuals(self) -> ResidualSummary | None:
        """How far labels were from predictions in this run; None for two classes, and before the first row."""
        if not self._core.has_residuals:
            return None
        from ftprl.confidence.residuals import summary_of

        return summary_of(self._core.residuals)

    @property
    def drift(self) -> Drift:
        """The drift alarm."""
        row = int(self._core.numbers[_ALARM_ROW])
        return Drift(row if row > 0 else None)

    def intervals(self) -> list[MeanInterval | None]:
        """Return the intervals of the mean loss, improvement, calibration and error rate, of numbers that are cut."""
        return [MeanInterval.of(part, LEVEL) for part in self._core.sequences]

    def confidence(self, *, is_random: bool = False) -> RunConfidence | None:
        """What is known so far, of rows in random order or not; None before the first row."""
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
    return BadModel(f"the {name} of a run's intervals need to be those that it saved, got {count} others; start anew.")
