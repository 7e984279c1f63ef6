"""Classifiers side by side on rows with heavy-tailed features and noisy labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.baselines import (
    AdaGrad,
    Arow,
    Best,
    Classifier,
    ConfidenceWeighted,
    GradientDescent,
    LearnerClassifier,
    Pegasos,
    best_constant,
)
from ftprl.learner import FTPRL
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box

Vector = NDArray[np.float64]
Errors = Mapping[str, tuple[float, Best]]
DIM = 100


def heavy_rows(count: int, dim: int = DIM, seed: int = 0) -> tuple[Vector, Vector]:
    """Return 0/1 features, the i-th with probability i^{-1.2}, and labels of a linear model, one in twenty flipped.

    >>> V, y = heavy_rows(1000, 10)
    >>> V.shape, V.mean(axis=0).round(1)[:3]
    ((1000, 10), array([1. , 0.5, 0.3]))
    """
    rng = np.random.default_rng(seed)
    chance = np.arange(1, dim + 1) ** -1.2
    V = (rng.random((count, dim)) < chance).astype(np.float64)
    hidden = rng.normal(size=dim) * 2
    y = np.where(V @ hidden - (chance * hidden).sum() > 0, 1.0, -1.0)
    return V, np.where(rng.random(count) < 0.05, -y, y)


def mistakes(classifier: Classifier[Any], V: Vector, y: Vector) -> float:
    """Return the share of rows that the classifier predicted wrongly before learning them."""
    state, wrong = classifier.init(), 0
    for v, label in zip(V, y.tolist(), strict=True):
        wrong += label * float(classifier.weights(state) @ v) <= 0
        state = classifier.take(state, v, label)
    return wrong / len(y)


def makers(dim: int) -> dict[str, Callable[[float], Classifier[Any]]]:
    """Return each classifier as a function of its constant."""
    box = Box(-4, 4, dim=dim)
    return {
        "confidence-weighted, variance": lambda c: ConfidenceWeighted(dim, 0.5 + 0.5 * c / (1 + c)),
        "confidence-weighted, deviation": lambda c: ConfidenceWeighted(dim, 0.5 + 0.5 * c / (1 + c), rule="deviation"),
        "AROW, diagonal": lambda c: Arow(dim, c),
        "AROW, full": lambda c: Arow(dim, c, full=True),
        "Pegasos": lambda c: LearnerClassifier(Pegasos.svm(dim, c), "hinge"),
        "FTPRL-Diag, log loss": lambda c: LearnerClassifier(FTPRL(box, Diagonal(c))),
        "FTPRL, global rate, log loss": lambda c: LearnerClassifier(FTPRL(box, CoordinateConstant(c))),
        "gradient descent, log loss": lambda c: LearnerClassifier(GradientDescent(box, c)),
        "AdaGrad, log loss": lambda c: LearnerClassifier(AdaGrad(box, c)),
    }


def classify(count: int) -> Errors:
    """Return every classifier's share of errors at its best constant."""
    V, y = heavy_rows(count)
    tuned = {
        name: best_constant(make, (0.1, 0.4, 1.6, 6.4), lambda c: mistakes(c, V, y), widen=8)
        for name, make in makers(V.shape[1]).items()
    }
    return {name: (best.cost, best) for name, best in tuned.items()}
