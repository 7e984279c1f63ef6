"""The description of a scalar loss, from which the rest of ftprl derives everything it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
LARGEST_LABEL = 1e30  # no label, weight or value is larger: no product of them leaves the range of a float
CLAMP = 60.0  # scores with a log link are clipped to ±60: e^60 is beyond any count, and nothing overflows

# signs: -1 and 1; classes: the number of a class, from 0 on
Labels = Literal["signs", "nonnegative", "positive", "numbers", "classes"]
Link = Literal["identity", "logit", "log", "classes"]  # how a score relates to the mean of the label
# The rule by which offset, unit and range of the scores follow from past labels: see docs/labels.md.
LabelRule = Literal["none", "classes", "mean", "quantile", "median_of_unit", "log_mean", "log_ratio"]
Arrays = tuple[Vector, Vector, Vector | None]  # losses, slopes and curvatures of many scores; None with kinks


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarLoss:
    """A convex loss of a score `s` with label `y`, and everything the rest of ftprl needs to know about it.

    `value(s, y)` and a subgradient `slope(s, y)` (0 at kinks) equal those of the compiled core, with the operations in
    the same order; `arrays(s, y)` returns losses, slopes and curvatures of many rows at once. `labels` is the kind of
    labels it takes, `link` the meaning of a score, `rule` how scores follow the unit and the range of the labels, and
    `baseline` the prediction from earlier labels that it is compared with. `unit` labels an axis; `explanation` is
    printed after a mean loss.

    >>> from ftprl.losses import SCALAR_LOSSES
    >>> SCALAR_LOSSES["poisson"].link, SCALAR_LOSSES["poisson"].labels
    ('log', 'nonnegative')
    """

    name: str
    value: Callable[[float, float], float]
    slope: Callable[[float, float], float]
    arrays: Callable[[Vector, Vector], Arrays]
    labels: Labels = "numbers"
    link: Link = "identity"
    rule: LabelRule = "none"
    baseline: str = "mean"  # base_rate, mean, log_mean, median, quantile, majority or class_rates
    rmse: bool = False  # True if sqrt(2 mean) is the root mean squared error
    tau: float | None = None  # of the quantile loss
    one_vs_rest: bool = False  # whether each class is learned against all others
    stack_gain: float = 1.0  # of the coefficients of a stack, as in src/core/learn/losses.cpp
    unit: str = ""
    explanation: str = ""

    @property
    def binary(self) -> bool:
        """Return True if labels are -1 and 1."""
        return self.labels == "signs"

    @property
    def is_classification(self) -> bool:
        """Return True if labels are classes, two or more; losses are then near 1."""
        return self.binary or self.has_classes

    @property
    def has_classes(self) -> bool:
        """Return True if labels are class numbers, each with its own score (docs/classes.md)."""
        return self.labels == "classes"

    @property
    def has_units(self) -> bool:
        """Return True if scores follow the labels' unit, as for every loss except the log losses."""
        return self.rule != "none"

    @property
    def has_offset(self) -> bool:
        """Return True if scores are measured from an offset that follows the labels."""
        return self.rule not in ("none", "classes")

    @property
    def predicts_labels(self) -> bool:
        """Return True if scores are in the unit of the labels."""
        return self.has_offset and self.link != "log"

    @property
    def has_kink(self) -> bool:
        """Return True if weights have a unit of their own, kappa, as for losses with a kink."""
        return self.rule in ("quantile", "median_of_unit")

    @property
    def divides_rows(self) -> bool:
        """Return True if a receipt divides each row by the mean of the labels so far, as for counts
        (docs/receipt.md).
        """
        return self.rule == "log_mean"

    @property
    def is_probabilistic(self) -> bool:
        """Return True if a prediction is the probability of the label 1."""
        return self.link == "logit"

    @property
    def has_deviance(self) -> bool:
        """Return True if the loss is half a deviance up to a constant of the labels, as losses with a log link are."""
        return self.link == "log"

    def mean(self, scores: Vector) -> Vector:
        """Return the predictions of scores: probabilities with a logit link, e^score with a log link, else the
        scores.
        """
        if self.link == "logit":
            return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))
        return np.asarray(np.exp(np.clip(scores, -CLAMP, CLAMP))) if self.link == "log" else scores

    def mean_of(self, score: float) -> float:
        """Return the prediction of one score, with the bits that `mean` returns."""
        if self.link == "logit":
            return 0.5 * (1.0 + float(np.tanh(0.5 * score)))
        return float(np.exp(clamp(score))) if self.link == "log" else score

    def accepts(self, y: Vector) -> NDArray[np.bool_]:
        """Return a mask of the labels that the loss takes; a missing label (NaN) is accepted.

        >>> from ftprl.losses import SCALAR_LOSSES
        >>> SCALAR_LOSSES["poisson"].accepts(np.array([2.0, -1.0, np.nan])).tolist()
        [True, False, True]
        """
        if self.labels == "signs":
            fits = np.abs(y) == 1.0
        elif self.labels == "classes":
            fits = (y >= 0.0) & (y == np.floor(y))
        else:
            fits = np.abs(y) <= LARGEST_LABEL
            if self.labels == "nonnegative":
                fits &= y >= 0.0
            elif self.labels == "positive":
                fits &= y > 0.0
        return np.asarray(fits | (y != y))


def clamp(s: float) -> float:
    """Return the score cut to ±60, as losses with a log link do."""
    return min(max(s, -CLAMP), CLAMP)
