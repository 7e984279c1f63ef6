"""What a learner adds up over the rows: losses, and the sums of a receipt."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, final

ENOUGH_ROWS = 1000  # after which a model should be better than its baseline
_TIE = 1e-9  # losses this near, as a part of the larger, differ by rounding


@final
@dataclass(frozen=True, slots=True)
class LossTotals:
    """The loss of some rows, each before it was learned: the weighted sum, the total weight, the number of rows.

    `baseline` is the loss of the same rows when each is predicted from the labels before it alone (NaN when it is not
    known), and `least` the least loss that any predictions could have: 0 but for the losses of counts.
    """

    loss: float
    weight: float
    rows: int
    baseline: float = field(default=float("nan"), compare=False)
    least: float = field(default=0.0, compare=False)

    @property
    def mean(self) -> float:
        """The loss per unit of weight; NaN before the first row."""
        return self.loss / self.weight if self.weight else float("nan")

    def __add__(self, other: LossTotals) -> LossTotals:
        """Of these rows and others."""
        return LossTotals(
            self.loss + other.loss,
            self.weight + other.weight,
            self.rows + other.rows,
            self.baseline + other.baseline,
            self.least + other.least,
        )

    def __sub__(self, other: LossTotals) -> LossTotals:
        """Of these rows without those of `other`."""
        return LossTotals(
            self.loss - other.loss,
            self.weight - other.weight,
            self.rows - other.rows,
            self.baseline - other.baseline,
            self.least - other.least,
        )

    @property
    def baseline_mean(self) -> float:
        """The loss of the baseline per unit of weight; NaN when it is not known."""
        return self.baseline / self.weight if self.weight else float("nan")

    @property
    def improvement(self) -> float:
        """How much better than the baseline, in percent: 100 (baseline - loss) / (baseline - least).

        0 is as good as the baseline, 100 as good as possible; NaN when there is no baseline.
        """
        return improvement(self.loss, self.baseline, self.least)

    @property
    def above_baseline(self) -> bool:
        """Whether the loss is above the baseline's, by more than rounding, although there were 1000 rows to learn from.

        >>> [LossTotals(loss, 1000.0, 1000, 5.0).above_baseline for loss in (5.1, 5.0 + 1e-12, 4.9)]
        [True, False, False]
        """
        tie = _TIE * max(abs(self.loss), abs(self.baseline))
        return self.rows >= ENOUGH_ROWS and self.loss - self.baseline > tie

    def to_dict(self) -> dict[str, float]:
        """The loss, weight and rows, and the mean."""
        return {"loss": self.loss, "weight": self.weight, "rows": self.rows, "mean": self.mean}

    def to_list(self) -> list[float]:
        """As a model file has them, the baseline where it is known."""
        yardstick = [self.baseline, self.least] if math.isfinite(self.baseline) else []
        return [self.loss, self.weight, self.rows, *yardstick]

    @classmethod
    def from_list(cls, values: Iterable[float]) -> LossTotals:
        """Return the totals that `to_list` wrote."""
        loss, weight, rows, *yardstick = values  # an older file has no baseline
        baseline, least = yardstick or (math.nan, 0.0)
        return cls(float(loss), float(weight), int(rows), float(baseline), float(least))


def improvement(loss: float, baseline: float, least: float = 0.0) -> float:
    """How much less a loss is than that of the baseline, in percent of what can be gained at all.

    >>> improvement(1.5, 2.0)
    25.0
    """
    possible = baseline - least
    return 100.0 * ((baseline - loss) / possible) if possible > 0.0 else float("nan")


@final
class RegretSums(NamedTuple):
    """What a receipt adds up over all rows: g·x, sigma x² and g² / (Q + l2), each over every coordinate."""

    linear: float
    proximal: float
    stability: float


@final
class RoundingSums(NamedTuple):
    """What bounds the rounding of a receipt, added up over all rows and coordinates (docs/receipt.md).

    `drift` is what rounding z to the type of a cell cost; `linear_size` the sum of |g x|, `step_size` of |z x| (with a
    penalty, bounds or another loss than the log loss, of all sizes of a step), and `slopes` of |slope| over the rows,
    which float64 roundings are relative to.
    """

    drift: float
    linear_size: float
    step_size: float
    slopes: float


@final
class RowSums(NamedTuple):
    """What a receipt adds up over rows for one scale, besides what their gradients do (docs/receipt.md).

    `terms` are the row terms, 0 with the log loss. `scale_loss` is the loss of the scale's own scores,
    `prediction_loss` that of the predictions, `weight` the weight of the rows, and `sizes` what roundings of these are
    relative to. With counts (Poisson loss) each row is divided by the unit of the labels.
    """

    terms: float
    scale_loss: float
    prediction_loss: float
    weight: float
    sizes: float
