"""How well a model that no longer learns predicts: the loss of some rows, beside that of a model that goes on learning.

The progressive loss is that of a model that learns each row once it has predicted it. Where neighbouring rows are alike
it can be far below the loss of the saved model, which stays as it is (docs/order.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.totals import improvement

Vector = NDArray[np.float64]
Kind = Literal["last", "again"]
_SURE = 4.0  # standard errors between two losses
_WORSE = 3.0  # standard errors above the baseline
_MORE = 1.02  # times the loss of random rows
_LOST = 0.1  # of what was gained over the baseline
_NORMAL_95 = 1.959963984540054
_FEWEST = 50  # rows that an interval needs
_TIE = 1e-9  # losses this near, as a part of them, differ by rounding
_NO_WEIGHT = -1100.0  # the exponent before the first row
_POWERS = (1, 1, 2, 2, 2)  # of the weight in each sum


@final
class LossMoments:
    """Weighted sums of the losses of some rows, added one by one: their mean and its standard error.

    Weights count in units of the power of two above the largest, whose exponent is the last of the `sums`.
    """

    def __init__(self, sums: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0, _NO_WEIGHT)) -> None:
        self.sums = tuple(sums)

    def add(self, losses: Vector, weight: Vector) -> None:
        """Add rows; how they are cut into batches changes no bit."""
        unit = max(self.sums[-1], float(_exponent(weight)))
        down = int(self.sums[-1] - unit)
        before = [math.ldexp(total, down * power) for total, power in zip(self.sums, _POWERS, strict=False)]
        w = np.ldexp(weight, -int(unit))
        with np.errstate(over="ignore", invalid="ignore"):
            terms = (w, w * losses, w * w, w * w * losses, (w * losses) ** 2)
            sums = [
                float(np.add.accumulate(np.concatenate(([total], part)))[-1])
                for total, part in zip(before, terms, strict=True)
            ]
        self.sums = (*sums, unit)

    @property
    def mean(self) -> float:
        """The weighted mean; NaN without rows."""
        return self.sums[1] / self.sums[0] if self.sums[0] > 0.0 else math.nan

    @property
    def variance(self) -> float:
        """The variance of the mean."""
        total, _, squares, crossed, both, _ = self.sums
        if not total * total > 0.0:
            return math.nan
        mean = self.mean
        return max(both - 2.0 * mean * crossed + mean * mean * squares, 0.0) / (total * total)


def _exponent(weight: Vector) -> int:
    """The exponent of the power of two above the largest weight."""
    largest = float(weight.max()) if len(weight) else 0.0
    return math.frexp(largest)[1] if largest > 0.0 else int(_NO_WEIGHT)


def _moments(losses: Vector, weight: Vector) -> LossMoments:
    moments = LossMoments()
    moments.add(losses, weight)
    return moments


def _ends(losses: Vector, weight: Vector) -> tuple[float, float]:
    """Return a 95 % interval of the mean of losses above the least possible.

    The end on the side of the longer tail is moved (Johnson 1978).
    """
    moments, w = _moments(losses, weight), np.ldexp(weight, -_exponent(weight))
    total = float(w.sum())
    error = math.sqrt(moments.variance) if len(losses) >= _FEWEST else math.nan
    if not error > 0.0:
        return math.nan, math.inf
    third = float(((w * (losses - moments.mean)) ** 3).sum()) / (total * total * total)
    shift = third / error**2 * (2.0 * _NORMAL_95**2 + 1.0) / 6.0
    low = moments.mean + min(shift, 0.0) - _NORMAL_95 * error
    return max(low, 0.0), moments.mean + max(shift, 0.0) + _NORMAL_95 * error


def _sigmas(difference: float, variance: float, size: float) -> float:
    """How many standard errors a difference of losses of this size is; 0 where nothing is known."""
    if not abs(difference) > _TIE * abs(size) or not math.isfinite(variance):
        return 0.0
    return difference / math.sqrt(variance) if variance > 0.0 else math.copysign(1e9, difference)


@final
@dataclass(frozen=True, slots=True)
class FrozenCheck:
    """The mean loss of some rows, predicted by a model that did not change meanwhile, beside two yardsticks.

    The rows of kind "last" are the last ones of the data, predicted when half of all rows were learned and none of
    them; `progressive` is the loss of the rows that were learned just before, which are a random draw. Those of kind
    "again" are a random draw of rows that were learned, predicted again by the saved model; `progressive` is their loss
    when they came. `baseline` is the loss of predicting them from the labels alone, `least` the least loss possible.
    `above_progressive` and `above_baseline` are differences in standard errors. `lower` and `upper` are a 95 % interval
    of the loss of this model for rows like these; `lower` is NaN with too few rows, `upper` infinite where large losses
    may be rare and yet most of the mean.
    """

    kind: Kind
    rows: int
    loss: float
    baseline: float
    progressive: float
    least: float
    above_progressive: float
    above_baseline: float
    lower: float = math.nan
    upper: float = math.inf

    @classmethod
    def of_last_rows(cls, losses: Vector, baselines: Vector, weight: Vector, before: LossMoments) -> FrozenCheck:
        """Compare the losses of the last rows with those of the rows learned just before, above the least possible."""
        least = baselines[:, 1]
        frozen, floor = _moments(losses - least, weight), _moments(least, weight).mean
        paired = _moments(losses - baselines[:, 0], weight)
        low, high = _ends(losses - least, weight)
        return cls(
            "last",
            len(losses),
            loss=frozen.mean + floor,
            baseline=_moments(baselines[:, 0], weight).mean,
            progressive=before.mean + floor,
            least=floor,
            above_progressive=_sigmas(frozen.mean - before.mean, frozen.variance + before.variance, frozen.mean),
            above_baseline=_sigmas(paired.mean, paired.variance, frozen.mean + floor),
            lower=low + floor,
            upper=high + floor,
        )

    @classmethod
    def of_learned_rows(cls, losses: Vector, came: Vector, baselines: Vector, weight: Vector) -> FrozenCheck:
        """Compare the losses of rows that were learned with those when they came (`came`), row by row."""
        more, paired = _moments(losses - came, weight), _moments(losses - baselines[:, 0], weight)
        least = _moments(baselines[:, 1], weight).mean
        low, high = _ends(losses - baselines[:, 1], weight)
        loss = _moments(losses, weight).mean
        return cls(
            "again",
            len(losses),
            loss=loss,
            baseline=_moments(baselines[:, 0], weight).mean,
            progressive=_moments(came, weight).mean,
            least=least,
            above_progressive=_sigmas(more.mean, more.variance, loss),
            above_baseline=_sigmas(paired.mean, paired.variance, loss),
            lower=low + least,
            upper=high + least,
        )

    @property
    def improvement(self) -> float:
        """How much less the loss is than the baseline's, in percent of what can be gained at all."""
        return improvement(self.loss, self.baseline, self.least)

    @property
    def has_changed(self) -> bool:
        """True if the last rows are predicted worse than random ones, by more than chance."""
        is_more = self.loss - self.least > _MORE * (self.progressive - self.least)
        return self.kind == "last" and self.above_progressive > _SURE and is_more

    @property
    def is_worse_than_guessing(self) -> bool:
        """True if the baseline predicts these rows better, by more than chance."""
        return self.above_baseline > _WORSE

    @property
    def has_forgotten(self) -> bool:
        """True if the saved model is worse at rows that were learned than when they came."""
        lost = self.loss - self.progressive > _LOST * abs(self.baseline - self.progressive)
        return self.kind == "again" and self.above_progressive > _SURE and lost

    @property
    def alarms(self) -> list[str]:
        """What is wrong with the saved model: "changed", "worse", "forgotten"."""
        found = {"changed": self.has_changed, "worse": self.is_worse_than_guessing, "forgotten": self.has_forgotten}
        return [name for name, is_found in found.items() if is_found]

    def to_dict(self) -> dict[str, Any]:
        """Return the check as JSON values."""
        known = {name: getattr(self, name) for name in self.__slots__}
        known |= {name: known[name] if math.isfinite(known[name]) else None for name in ("lower", "upper")}
        gain = self.improvement if self.kind == "last" else math.nan  # of rows that were learned it says nothing
        return {**known, "improvement": gain if math.isfinite(gain) else None, "alarms": self.alarms}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FrozenCheck:
        """Return the check that `to_dict` wrote."""
        ends = {name: values.get(name) for name in ("lower", "upper")}  # an older file has none
        return cls(
            **{name: values[name] for name in cls.__slots__ if name not in ends},
            **{name: value for name, value in ends.items() if value is not None},
        )

    def without_upper_end(self) -> FrozenCheck:
        """Return the check for losses without an upper limit that can be told."""
        return replace(self, upper=math.inf)
