"""The scalar losses of a linear model in one table, and losses of a point x for games."""

from ftprl.losses.points import Linear, Loss, OfScore, absolute, hinge, linear, logistic, squared
from ftprl.losses.scalar import LARGEST_LABEL, ScalarLoss
from ftprl.losses.table import (
    CLASS_LOSSES,
    LOSSES,
    SCALAR_LOSSES,
    check_loss,
    check_tau,
    predicts_probabilities,
    quantile,
    scalar_loss,
)

__all__ = [
    "CLASS_LOSSES",
    "LARGEST_LABEL",
    "LOSSES",
    "SCALAR_LOSSES",
    "Linear",
    "Loss",
    "OfScore",
    "ScalarLoss",
    "absolute",
    "hinge",
    "linear",
    "logistic",
    "predicts_probabilities",
    "quantile",
    "check_loss",
    "check_tau",
    "scalar_loss",
    "squared",
]
