"""The residuals (label - prediction) of a regression run, of rows predicted before they were learned.

The core keeps them in a fixed number of bins (src/core/measure/residuals.hpp), which follow the data; here they are
made into what a report shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.confidence.layout import PREDICTION_BINS, RESIDUAL_BINS, RESIDUAL_HEAD

Vector = NDArray[np.float64]
GROUPS = 20  # groups of predictions, with about as many rows each
_WIDEST = 0.1  # widest group, as a share of the predictions' range, unless it has few rows
_FEWEST_ROWS = 20.0
BARS = 30  # of the histogram
_TAIL = 0.005  # share of the rows beyond the bars on either side
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@final
class ResidualGroup(NamedTuple):
    """Rows with predictions of similar size: their weight, mean prediction and mean label."""

    weight: float
    prediction: float
    label: float
    deviation: float  # standard deviation of the residuals


@final
@dataclass(frozen=True, slots=True)
class ResidualSummary:
    """The distribution of residuals.

    `mean` is the mean residual, label - prediction, and `label_deviation` the root mean squared error of predicting
    every row by the mean of all labels. `quantiles` belong to the shares `QUANTILES`, exact to 6 %. `bars` are the
    weights between neighbouring `edges`, `beyond` the weights below the first edge and above the last one.
    """

    rows: int
    weight: float
    rmse: float
    mae: float
    mean: float
    label_deviation: float
    quantiles: tuple[float, ...]
    groups: tuple[ResidualGroup, ...]
    edges: tuple[float, ...]
    bars: tuple[float, ...]
    beyond: tuple[float, float]

    @property
    def r2(self) -> float | None:
        """Return the share of the variance of the labels that was predicted; None if all labels are equal."""
        return 1.0 - (self.rmse / self.label_deviation) ** 2 if self.label_deviation > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        return asdict(self) | {"groups": [list(group) for group in self.groups], "r2": self.r2}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ResidualSummary | None:
        """Return the summary that `to_dict` wrote; None for anything else, such as the events of another version."""
        try:
            names = ("weight", "rmse", "mae", "mean", "label_deviation")
            weight, rmse, mae, mean, deviation = scalars = [float(values[name]) for name in names]
            quantiles, edges, bars = (tuple(map(float, values[name])) for name in ("quantiles", "edges", "bars"))
            groups = tuple(ResidualGroup(*map(float, group)) for group in values["groups"])
            below, above = map(float, values["beyond"])
            rows = int(values["rows"])
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
        every = (*scalars, *quantiles, *edges, *bars, below, above, *(v for group in groups for v in group))
        is_whole = len(edges) == len(bars) + 1 > 1 and len(quantiles) == len(QUANTILES)
        if not (groups and is_whole and weight > 0.0 and all(map(math.isfinite, every))):
            return None
        return cls(rows, weight, rmse, mae, mean, deviation, quantiles, groups, edges, bars, (below, above))


def summary_of(numbers: Sequence[float]) -> ResidualSummary | None:
    """Return the summary of a monitor's numbers; None before the first row."""
    head = dict(zip(RESIDUAL_HEAD, numbers, strict=False))
    weight = head["weight"]
    if not weight > 0.0:
        return None
    rest = np.array(numbers[len(RESIDUAL_HEAD) :])
    bins = rest[: 4 * PREDICTION_BINS].reshape(-1, 4)[: int(head["last"] - head["first"]) + 1]
    below, above = rest[4 * PREDICTION_BINS :].reshape(2, -1)
    lows, highs, weights = _intervals(head["top"], below, above, head["near_zero"])
    least, most = (_quantile(lows, highs, weights, q) for q in (_TAIL, 1.0 - _TAIL))
    if not least < most:  # all residuals are equal, such as 0
        least, most = least - 0.5, most + 0.5
    edges = np.linspace(least, most, BARS + 1)
    shares = _spread(lows, highs, weights, edges)
    _, _, residual, squares = bins.sum(axis=0).tolist()
    return ResidualSummary(
        rows=int(head["rows"]),
        weight=weight,
        rmse=math.sqrt(squares / weight),
        mae=head["absolute"] / weight,
        mean=residual / weight,
        label_deviation=math.sqrt(max(head["label_squares"] / weight, 0.0)),
        quantiles=tuple(_quantile(lows, highs, weights, q) for q in QUANTILES),
        groups=tuple(_groups(bins)),
        edges=tuple(edges.tolist()),
        bars=tuple(shares[1:-1].tolist()),
        beyond=(float(shares[0]), float(shares[-1])),
    )


def _intervals(top: float, below: Vector, above: Vector, near_zero: float) -> tuple[Vector, Vector, Vector]:
    """Return ends and weights of the bins with rows, from the lowest residuals to the highest."""
    keys = (top - np.arange(RESIDUAL_BINS)).astype(np.int64)
    real = keys >= 0
    low, high = (np.ldexp(1.0 + k % 16 / 16.0, k // 16 - 1023) for k in (keys[real], keys[real] + 1))
    lows = np.concatenate([-high, [0.0], low[::-1]])
    highs = np.concatenate([-low, [0.0], high[::-1]])
    weights = np.concatenate([below[real], [near_zero], above[real][::-1]])
    met = weights > 0.0
    return lows[met], highs[met], weights[met]


def _quantile(lows: Vector, highs: Vector, weights: Vector, share: float) -> float:
    """Return the residual that this share of the rows is below, linear within its bin.

    >>> _quantile(np.array([-1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0]), 0.75)
    0.5
    """
    sums = np.cumsum(weights)
    k = min(int(np.searchsorted(sums, share * sums[-1])), len(sums) - 1)
    part = (share * sums[-1] - (sums[k] - weights[k])) / weights[k]
    return float(lows[k] + (highs[k] - lows[k]) * min(max(part, 0.0), 1.0))


def _spread(lows: Vector, highs: Vector, weights: Vector, edges: Vector) -> Vector:
    """Return the weights below the first edge, between neighbouring edges and above the last, evenly within each
    bin.
    """
    ends = np.concatenate([[-np.inf], edges, [np.inf]])
    point = highs == lows
    width = np.where(point, 1.0, highs - lows)
    shares = np.empty(len(ends) - 1)
    for i, (a, b) in enumerate(pairwise(ends.tolist())):
        part = np.clip((np.minimum(highs, b) - np.maximum(lows, a)) / width, 0.0, 1.0)
        shares[i] = (weights * np.where(point, (lows >= a) & (lows < b), part)).sum()
    return shares


def _groups(bins: Vector) -> list[ResidualGroup]:
    """Combine neighbouring bins of predictions into groups of similar weight."""
    total = float(bins[:, 0].sum())
    few, groups, begin = min(max(_FEWEST_ROWS, total / 2000.0), total / GROUPS), [], 0
    for end in range(1, len(bins) + 1):
        weight = float(bins[begin:end, 0].sum())
        is_wide = end - begin >= _WIDEST * len(bins) and weight >= few
        if weight > 0.0 and (weight >= total / GROUPS or is_wide or end == len(bins)):
            sums = bins[begin:end].sum(axis=0) / weight
            deviation = math.sqrt(max(float(sums[3] - sums[2] ** 2), 0.0))
            groups.append(ResidualGroup(weight, float(sums[1]), float(sums[1] + sums[2]), deviation))
            begin = end
    return groups
