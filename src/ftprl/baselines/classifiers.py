"""Classifiers that learn from a row and its label: confidence-weighted learning, AROW, and any learner with a loss."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ftprl import check
from ftprl.errors import InvalidInput
from ftprl.extras import extra_imports
from ftprl.learner import Learner, LearnerState
from ftprl.losses import SCALAR_LOSSES, ScalarLoss

Vector = NDArray[np.float64]
S = TypeVar("S")


class Classifier(ABC, Generic[S]):
    """Base class of classifiers that learn from one row at a time.

    `init()` returns a state, `score(state, v)` is positive for the class +1, and `learn(state, v, y)` with y = ±1
    returns the next state.
    """

    dim: int

    @abstractmethod
    def init(self) -> S:
        """Return the state before the first row."""

    @abstractmethod
    def weights(self, state: S) -> Vector:
        """Return the weights of the linear score."""

    @abstractmethod
    def take(self, state: S, v: Vector, y: float) -> S:
        """Run `learn` without its checks."""

    def score(self, state: S, v: ArrayLike) -> float:
        """Return the score weights·v."""
        return float(self.weights(state) @ check.vector("v", v, self.dim))

    def learn(self, state: S, v: ArrayLike, y: float) -> S:
        """Return the state after the row `v` with the label y = +1 or -1; `state` itself is unchanged."""
        return self.take(state, check.vector("v", v, self.dim), _label(y))


def _label(y: float) -> float:
    """Return the label as a float; raise InvalidInput unless it is +1 or -1."""
    if y not in (1, -1):
        raise InvalidInput(f"y needs a label of +1 or -1, got {y!r}; code the classes as ±1.")
    return float(y)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """A normal distribution over weights: its mean, and its variances (or covariance matrix)."""

    mean: Vector
    variance: Vector


Update = Callable[[float, float, float], tuple[float, float]]


def _by_variance(margin: float, v: float, phi: float) -> tuple[float, float]:
    """Return (alpha, gain of the precision per v²) of the constraint M >= phi V (Dredze, Crammer and Pereira 2008)."""
    b = 1.0 + 2.0 * phi * margin
    missing = phi * v - margin
    root = math.sqrt(max(b * b + 8.0 * phi * missing, 0.0))
    # (root - b) / (4 phi V), rewritten without cancellation for b > 0
    alpha = max(2.0 * missing / (v * (root + b)) if b > 0 else (root - b) / (4.0 * phi * v), 0.0)
    return alpha, 2.0 * alpha * phi


def _by_deviation(margin: float, v: float, phi: float) -> tuple[float, float]:
    """Return (alpha, gain of the precision per v²) of the constraint M >= phi sqrt V (Crammer, Dredze and Pereira
    2008).
    """
    psi, zeta, square = 1.0 + phi * phi / 2.0, 1.0 + phi * phi, phi * phi
    root = math.sqrt(margin * margin * square * square / 4.0 + v * square * zeta)
    alpha = max((root - margin * psi) / (v * zeta), 0.0)
    moved = alpha * v * phi
    # sqrt u = ½ (sqrt(moved² + 4V) - moved), inverted so that nothing cancels
    return alpha, alpha * phi * (math.sqrt(moved * moved + 4.0 * v) + moved) / (2.0 * v)


_LEAST = 1e-100  # a variance below this is not updated: numbers would leave their range
_RULES: dict[str, Update] = {"variance": _by_variance, "deviation": _by_deviation}


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConfidenceWeighted(Classifier[Belief]):
    """Diagonal confidence-weighted learning: the nearest belief that gives the row its label with probability
    `confidence`.

    Nearest is meant in relative entropy. mean += alpha y Sigma v and 1/Sigma_i += (...) v_i², with alpha from the row's
    margin M = y mean·v and its variance V = vᵀSigma v. `rule` is the form of the constraint: "variance" (2008, ICML) or
    "deviation" (2008, NIPS).

    >>> classifier = ConfidenceWeighted(2)
    >>> classifier.score(classifier.learn(classifier.init(), [1.0, 0.0], +1), [1.0, 0.0]) > 0
    True
    """

    dim: int
    confidence: float = 0.9
    variance: float = 1.0
    rule: Literal["variance", "deviation"] = "variance"

    def __post_init__(self) -> None:
        check.dimension("dim", self.dim)
        check.positive("variance", self.variance)
        if not 0.5 < check.number("confidence", self.confidence) < 1.0:
            raise InvalidInput(f"confidence needs a number between 0.5 and 1, got {self.confidence!r}; pass 0.9.")
        if self.rule not in _RULES:
            raise InvalidInput(f"rule needs 'variance' or 'deviation', got {self.rule!r}; pass one of these.")

    def init(self) -> Belief:
        """Return the belief with mean 0 and equal variances."""
        return Belief(np.zeros(self.dim), np.full(self.dim, float(self.variance)))

    def weights(self, state: Belief) -> Vector:
        """Return the mean."""
        return state.mean

    def take(self, state: Belief, v: Vector, y: float) -> Belief:
        """Change the belief as little as the constraint allows."""
        with extra_imports:
            from scipy.special import ndtri

        spread = state.variance * v
        V = float(spread @ v)
        if V < _LEAST:
            return state
        alpha, gain = _RULES[self.rule](y * float(state.mean @ v), V, float(ndtri(self.confidence)))
        if not alpha:
            return state
        variance = state.variance / (1.0 + gain * spread * v)  # 1/Sigma + gain v²
        return Belief(state.mean + alpha * y * spread, variance)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Arow(Classifier[Belief]):
    """Adaptive regularisation of weights (AROW; Crammer, Kulesza and Dredze 2009).

    `r` is the variance of the noise in a label. If y mean·v < 1: beta = 1/(vᵀSigma v + r), mean += (1 - y mean·v) beta
    y Sigma v, Sigma -= beta Sigma v vᵀ Sigma. Without `full` only the diagonal of Sigma is kept.

    >>> classifier = Arow(2)
    >>> classifier.weights(classifier.learn(classifier.init(), [1.0, 0.0], -1))
    array([-0.5,  0. ])
    """

    dim: int
    r: float = 1.0
    full: bool = False

    def __post_init__(self) -> None:
        check.dimension("dim", self.dim)
        check.positive("r", self.r)
        check.instance("full", self.full, bool)

    def init(self) -> Belief:
        """Return the belief with mean 0 and unit variances."""
        return Belief(np.zeros(self.dim), np.eye(self.dim) if self.full else np.ones(self.dim))

    def weights(self, state: Belief) -> Vector:
        """Return the mean."""
        return state.mean

    def take(self, state: Belief, v: Vector, y: float) -> Belief:
        """Take a step of recursive least squares if the margin is below 1."""
        margin = y * float(state.mean @ v)
        if margin >= 1.0:
            return state
        spread = state.variance @ v if self.full else state.variance * v
        beta = 1.0 / (float(spread @ v) + self.r)
        less = np.outer(spread, spread) if self.full else spread * spread
        return Belief(state.mean + (1.0 - margin) * beta * y * spread, state.variance - beta * less)


@final
@dataclass(frozen=True, slots=True, eq=False)
class LearnerClassifier(Classifier[LearnerState]):
    """Any learner as a classifier: it plays weights, and the loss of a row is the loss of its score.

    >>> from ftprl.baselines import Pegasos
    >>> svm = LearnerClassifier(Pegasos.svm(2, l2=0.1), "hinge")
    >>> svm.score(svm.learn(svm.init(), [1.0, 0.0], +1), [1.0, 0.0]) > 0
    True
    """

    learner: Learner[Any]
    loss: str = "logistic"

    def __post_init__(self) -> None:
        check.instance("learner", self.learner, Learner)
        known = [name for name, loss in SCALAR_LOSSES.items() if loss.binary]
        if self.loss not in known:
            raise InvalidInput(f"loss needs one for labels ±1, got {self.loss!r}; use one of {', '.join(known)}.")

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Return the number of features."""
        return self.learner.feasible.dim

    @property
    def scalar_loss(self) -> ScalarLoss:
        """Return the loss of a score."""
        return SCALAR_LOSSES[self.loss]

    def init(self) -> LearnerState:
        """Return the learner's state before the first row."""
        state: LearnerState = self.learner.init()
        return state

    def weights(self, state: LearnerState) -> Vector:
        """Return the point to play."""
        return state.x

    def take(self, state: LearnerState, v: Vector, y: float) -> LearnerState:
        """Update the learner with the gradient slope(score) v."""
        slope = self.scalar_loss.slope(float(state.x @ v), y)
        after: LearnerState = self.learner.update(state, slope * v)
        return after
