"""The twin of labels in any unit: what is known of them, the slopes of a row, and the terms that a receipt adds up.

For every loss but the log loss; docs/labels.md has the formulas in the same order.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import final

from ftprl.losses import ReplayFormulas, ScalarLoss

LOG_RANGE = 8.0  # scores of counts reach this far below the offset
LARGEST_LOG_SCORE = 60.0  # of losses with a log link
LEAST_UNIT = sys.float_info.min  # nothing can be learned in smaller units
SURE_ROWS = 16  # labels before one is cut
FAR_UNITS = 4.0  # a label this many units beyond the range is learned as it is
MOST_OUTLIERS = 9


def cut(v: float, low: float, high: float) -> float:
    """The number from low to high that is nearest to v."""
    return low if v < low else min(v, high)


def usable_unit(unit: float) -> float:
    """A unit that can be divided by, or 0."""
    return unit if unit >= LEAST_UNIT else 0.0


def log_of_label(y: float) -> float:
    """The logarithm of a label within the scores that losses with a log link take."""
    return min(max(math.log(y), -LARGEST_LOG_SCORE), LARGEST_LOG_SCORE)


@final
class LabelFacts:
    """Offset, unit and range of the labels so far."""

    def __init__(self, loss: ScalarLoss) -> None:
        self.loss = loss
        self.tau = loss.tau or 0.5
        self.rows = self.weight = self.mean = self.squares = self.least = self.most = 0.0
        self.quantile = self.since = self.pinball = self.deviation = 0.0
        self.offset = self.unit = self.low = self.high = 0.0
        self.psi = self.kappa = 1.0
        self.outliers = 0.0
        if loss.rule == "classes":
            self.unit, self.low, self.high = 1.0, -1.0, 1.0

    def cut(self, score: float) -> float:
        """A score within the range of the labels."""
        return cut(score, self.low, self.high)

    def learn(self, y: float, c: float) -> None:
        """One more label, of weight c."""
        self._moments(y, c)
        match self.loss.rule:
            case "mean":
                self.offset = self.mean
                self.unit = self.psi = math.sqrt(max(self.squares / self.weight, 0.0))
            case "quantile":
                self._follow_quantile(y, c)
                self.unit = self.kappa = usable_unit(self.deviation)
            case "median_of_unit":
                self._follow_quantile(y, c)
                self.unit = usable_unit(self.deviation)
                self.psi, self.kappa = min(1.0, self.unit), max(1.0, self.unit)
            case "log_mean":
                return self._counts()
            case "log_ratio":
                self.offset, self.unit = log_of_label(self.mean), 1.0
                self.low, self.high = log_of_label(self.least), log_of_label(self.most)
                return None
            case _:
                return None
        self.low, self.high = self.least, self.most
        return None

    def believed(self, y: float) -> float:
        """The label that is learned: one far from all before it is cut, the next in a row less and less."""
        if not self.loss.predicts_labels or self.rows < SURE_ROWS or self.unit == 0.0:
            return y
        power = 2 ** int(min(self.outliers, MOST_OUTLIERS)) - 1
        far = math.ldexp(max(self.most - self.least, FAR_UNITS * self.unit), power)
        learned = min(max(y, self.least - far), self.most + far)
        self.outliers = 0.0 if learned == y else self.outliers + 1.0
        return learned

    def begin_anew(self, y: float, c: float) -> None:
        """Forget where the labels were; y is the latest, of weight c. The unit stays."""
        self.squares *= c / self.weight
        self.weight, self.since = c, min(self.since, c)
        self.mean = self.least = self.most = self.quantile = self.offset = self.low = self.high = y

    def _moments(self, y: float, c: float) -> None:
        first = self.rows == 0.0
        self.rows += 1.0
        self.weight += c
        d = y - self.mean
        self.mean += (c / self.weight) * d
        self.squares += c * d * (y - self.mean)
        self.least, self.most = (y, y) if first else (min(self.least, y), max(self.most, y))
        self.mean = min(max(self.mean, self.least), self.most)  # rounding may leave it outside

    def _follow_quantile(self, y: float, c: float) -> None:
        if self.rows == 1.0:
            self.quantile = self.offset = y
            return
        tau = self.tau
        self.since += c
        d, part = y - self.quantile, c / self.since
        self.pinball += part * ((tau if d > 0 else tau - 1.0) * d - self.pinball)
        self.deviation += part * (abs(d) - self.deviation)
        side = tau if d > 0 else (tau - 1.0 if d < 0 else 0.0)
        step = (2.0 * self.pinball / (tau * (1.0 - tau))) * (c / self.weight) * side
        self.quantile = self.offset = min(max(self.quantile + step, self.least), self.most)

    def _counts(self) -> None:
        self.offset = log_of_label(self.mean) if self.mean > 0 else -math.log(self.rows + 1.0)
        self.unit = usable_unit(self.mean)
        self.low = max(self.offset - LOG_RANGE, -LARGEST_LOG_SCORE)
        self.high = max(self.offset, log_of_label(self.most)) if self.most > 0 else self.offset


@final
@dataclass(frozen=True, slots=True)
class LabelledRow:
    """A row with the range that it is learned with, the hull of those before and after its label."""

    y: float
    weight: float
    learned: float  # the label as it is learned
    offset: float  # before the row
    unit: float  # before and
    new_unit: float  # after it
    low: float
    high: float
    teaches: bool  # whether there is anything to learn but the label

    def cut(self, score: float) -> float:
        return cut(score, self.low, self.high)

    def start(self, loss: ScalarLoss, score: float) -> float:
        """The score at which the slope is taken: what is more than the width of the range beyond it counts."""
        s = self.cut(score)
        beyond = abs(score - s) - (self.high - self.low)
        if not loss.predicts_labels or not beyond > 0:
            return s
        return s - beyond if score < s else s + beyond


def learn_row_label(facts: LabelFacts, y: float, weight: float, least_kappa: float) -> LabelledRow:
    """Learn the label of a row; `least_kappa` is the smallest unit of weights that cells can hold."""
    rows, offset, unit, low, high = facts.rows, facts.offset, facts.unit, facts.low, facts.high
    learned = facts.believed(y)
    facts.learn(learned, weight)
    first = rows == 0.0 and facts.loss.has_offset
    if first:
        low, high = facts.low, facts.high
    low, high = min(low, facts.low), max(high, facts.high)
    teaches = not first and facts.unit != 0.0 and facts.kappa >= least_kappa
    return LabelledRow(y, weight, learned, offset, unit, facts.unit, low, high, teaches)


def formulas_of(loss: ScalarLoss) -> ReplayFormulas:
    """The formulas of a loss whose scores follow the labels."""
    assert loss.replay is not None
    return loss.replay


def row_sums(
    facts: LabelFacts, row: LabelledRow, score: float, slope: float, prediction: float, prediction_loss: float
) -> tuple[float, ...]:
    """What a receipt adds up over the rows: terms, loss of the scale, loss of the prediction, weight, sizes."""
    loss, formulas, counts = facts.loss, formulas_of(facts.loss), facts.loss.divides_rows
    if counts and facts.unit == 0.0:
        return (0.0,) * 5
    s, over_unit = row.cut(score), 1.0 / facts.unit if counts else 1.0
    term, size = formulas.row_term(s, row.y, slope, facts)
    beyond, value = slope * (s - score), loss.value(s, row.y)
    label = 0.0 if loss.link == "log" else abs(row.y)
    losses = (abs(value) + 2.0 * abs(formulas.linear_part(s, row.y))) + (
        abs(prediction_loss) + 2.0 * abs(formulas.linear_part(prediction, row.y))
    )
    spread = abs(slope) * (abs(s) + abs(score) + abs(row.offset) + label)
    return (
        row.weight * (term + (beyond if row.start(loss, score) != s else max(beyond, 0.0))),
        row.weight * (value * over_unit),
        row.weight * (prediction_loss * over_unit),
        row.weight * over_unit,
        row.weight * (size + spread + losses * over_unit),
    )
