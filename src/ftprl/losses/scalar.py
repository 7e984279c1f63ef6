"""What the rest of ftprl knows of a scalar loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
LARGEST_LABEL = 1e30  # no label, weight or value is larger: no product of them leaves the range of a float
CLAMP = 60.0  # scores with a log link are cut to ±60: e^60 is beyond any count, and nothing overflows

# -1 and 1; y >= 0; y > 0; any y; the number of a class, from 0 on
Labels = Literal["signs", "nonnegative", "positive", "numbers", "classes"]
Link = Literal["identity", "logit", "log", "classes"]  # what a score is to the mean of the label
# Which offset, unit and range of the scores follow from the labels so far: docs/labels.md.
LabelRule = Literal["none", "classes", "mean", "quantile", "median_of_unit", "log_mean", "log_ratio"]
Arrays = tuple[Vector, Vector, Vector | None]  # losses, slopes and curvatures of many scores; None with kinks


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarLoss:
    """A convex loss of a score `s` with label `y`, and all that the rest of ftprl needs to know of it.

    `value(s, y)` and a subgradient `slope(s, y)` (0 at kinks) are those of the compiled core, in the same order of
    operations; `arrays(s, y)` gives losses, slopes and curvatures of many rows at once. `labels` says which labels it
    takes, `link` what a score means, `rule` how scores follow the unit and the range of the labels, and `baseline`
    which prediction from earlier labels it is compared with. `unit` labels an axis, `explanation` follows a mean loss.

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
    rmse: bool = False  # whether sqrt(2 mean) is the root mean squared error
    tau: float | None = None  # of the quantile loss
    one_vs_rest: bool = False  # whether each class is learned against all others
    stack_gain: float = 1.0  # of the coefficients of a stack, as in src/core/learn/losses.cpp
    unit: str = ""
    explanation: str = ""

    @property
    def binary(self) -> bool:
        """Whether labels are -1 and 1."""
        return self.labels == "signs"

    @property
    def is_classification(self) -> bool:
        """Whether labels are classes, two or more; losses are then of the order of 1."""
        return self.binary or self.has_classes

    @property
    def has_classes(self) -> bool:
        """Whether labels are numbers of classes, each of which has a score of its own (docs/classes.md)."""
        return self.labels == "classes"

    @property
    def has_units(self) -> bool:
        """Whether scores follow the labels: every loss but the log losses, whose scores have no unit."""
        return self.rule != "none"

    @property
    def has_offset(self) -> bool:
        """Whether scores are counted from an offset that follows the labels."""
        return self.rule not in ("none", "classes")

    @property
    def predicts_labels(self) -> bool:
        """Whether scores are in the unit of the labels."""
        return self.has_offset and self.link != "log"

    @property
    def has_kink(self) -> bool:
        """Whether weights are in a unit of their own, kappa."""
        return self.rule in ("quantile", "median_of_unit")

    @property
    def divides_rows(self) -> bool:
        """Whether a receipt divides each row by the mean of the labels up to it: counts (docs/receipt.md)."""
        return self.rule == "log_mean"

    @property
    def is_probabilistic(self) -> bool:
        """Whether a prediction is the probability of the label 1."""
        return self.link == "logit"

    @property
    def has_deviance(self) -> bool:
        """Whether it is half a deviance, up to a constant of the labels: the losses with a log link."""
        return self.link == "log"

    def mean(self, scores: Vector) -> Vector:
        """What scores predict: a probability with a logit link, e^score with a log link, otherwise the score itself."""
        if self.link == "logit":
            return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)))
        return np.asarray(np.exp(np.clip(scores, -CLAMP, CLAMP))) if self.link == "log" else scores

    def mean_of(self, score: float) -> float:
        """The same of one score, to the bit."""
        if self.link == "logit":
            return 0.5 * (1.0 + float(np.tanh(0.5 * score)))
        return float(np.exp(clamp(score))) if self.link == "log" else score

    def accepts(self, y: Vector) -> NDArray[np.bool_]:
        """Which labels it takes; a missing one (NaN) is fine.

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
    """A score within ±60, as losses with a log link take it."""
    return min(max(s, -CLAMP), CLAMP)
