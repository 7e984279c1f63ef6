"""`FTPRLClassifier`: logistic regression (or a hinge loss) in one pass, without a learning rate to tune."""

from __future__ import annotations

from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from ftprl.estimators.base import KEYWORDS, EstimatorOptions, LinearEstimator, Vector
from ftprl.losses import predicts_probabilities
from ftprl.options.keywords import has_keywords, of_class

_KEYWORDS = of_class(KEYWORDS, without="tau", loss="logistic", class_weight=None, multi_class="auto")
_MOST_COUNTED = 100_000  # whole numbers between the least and the largest label


def _has_probabilities(estimator: FTPRLClassifier) -> bool:
    if not predicts_probabilities(estimator.loss):
        raise AttributeError(f"probabilities need loss='logistic', got loss={estimator.loss!r}")
    return True


class FTPRLClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """A linear classifier that learns row by row, in one pass and without a learning rate to tune.

    Three or more classes are learned together, in one model with the softmax loss; with the hinge losses, bounds, a
    coin, calibration or `multi_class="ovr"` one against the rest, in one model per class. Options are those of
    `ftprl.train`; one that is None has its default there. `passes="auto"` makes up to 20 passes, of which the one with
    the smallest held-out loss is kept. `fit` learns the rows in a random order, which `random_state` chooses, or with
    `shuffle=False` in their own; `partial_fit` always in their own.

    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> classifier = FTPRLClassifier().fit(X, y)
    >>> bool(classifier.score(X, y) > 0.95)
    True
    """

    @has_keywords(_KEYWORDS)
    def __init__(self, **parameters: Unpack[EstimatorOptions]) -> None:
        self._set(_KEYWORDS, parameters)

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows, in a random order unless `shuffle` is False."""
        data, labels = self._checked(X, y, reset=not (self.warm_start and hasattr(self, "models_")))
        classes = _classes_of(labels)
        if len(classes) < 2:
            raise ValueError(f"fit needs at least two classes, got one class, {classes[0]!s:.40}; add rows of others.")
        self.classes_ = classes
        return self._fit(data, self._outputs(labels), self._row_weights(data, labels, sample_weight))

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more rows, one pass; `classes` are all labels there will be, at least in the first call."""
        first = not hasattr(self, "models_")
        if first and classes is None:
            raise ValueError("partial_fit needs classes= in its first call; pass all labels there will be.")
        if self.class_weight == "balanced":
            raise ValueError("partial_fit needs class weights as a dict, since 'balanced' needs all rows; use fit.")
        data, labels = self._checked(X, y, reset=first)
        check_classification_targets(labels)
        if classes is not None:
            known = unique_labels(classes)
            if not first and not np.array_equal(known, self.classes_):
                raise ValueError(f"classes={known!r} is not the same as in the first call, {self.classes_!r}.")
            self.classes_ = known
        strange = np.setdiff1d(labels, self.classes_)
        if len(strange):
            raise ValueError(f"y has the label {strange[0]!s:.40}, which classes= did not name; add it in a new model.")
        return self._learn_more(data, self._outputs(labels), self._row_weights(data, labels, sample_weight))

    @property
    def _is_softmax(self) -> bool:
        """Whether one model has all classes."""
        if self.multi_class not in ("auto", "softmax", "ovr"):
            raise ValueError(f"multi_class needs 'auto', 'softmax' or 'ovr', got {self.multi_class!r}; pass one.")
        several = len(self.classes_) > 2 and predicts_probabilities(self.loss)
        fits = not self.bounds and self.calibrate in (None, "none")  # what softmax does not have
        return several and (self.multi_class == "softmax" or (self.multi_class == "auto" and fits))

    def _class_options(self) -> dict[str, Any]:
        """Classes are numbered in the order of `classes_`."""
        if not self._is_softmax:
            return {}
        return {"loss": "softmax", "classes": [float(number) for number in range(len(self.classes_))]}

    def _outputs(self, labels: NDArray[Any]) -> list[Vector]:
        """1 and -1 for each model: one for two classes, otherwise one per class; with softmax numbers of classes."""
        if self._is_softmax:
            return [np.searchsorted(self.classes_, labels).astype(np.float64)]
        positives = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        return [np.where(labels == positive, 1.0, -1.0) for positive in positives]

    def _row_weights(self, X: Any, labels: NDArray[Any], sample_weight: ArrayLike | None) -> Vector | None:
        weight = self._weight(sample_weight, X)
        if self.class_weight is None:
            return weight
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        factors: Vector = by_class[np.searchsorted(self.classes_, labels)]
        return factors if weight is None else weight * factors

    def decision_function(self, X: Any) -> Vector:
        """The score of each row, the log odds with log loss; with more than two classes one column per class.

        With softmax that is the logarithm of the probability of the class, counted from the mean over the classes.
        """
        scores = self._scores(X)
        if self._is_softmax:
            return np.asarray(scores - scores.mean(axis=1, keepdims=True))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row."""
        scores = self._scores(X)
        best = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Vector:
        """The probability of each class, one column per class; several are scaled to sum 1."""
        scores = self._scores(X)
        if self._is_softmax:
            return self.models_[0].mean(scores)
        positive = np.column_stack([self.models_[0].mean(column) for column in scores.T])
        if positive.shape[1] == 1:
            return np.column_stack([1.0 - positive[:, 0], positive[:, 0]])
        total = positive.sum(axis=1, keepdims=True)
        shares: Vector = np.full_like(positive, 1.0 / positive.shape[1])
        np.divide(positive, total, out=shares, where=total > 0)
        return shares

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Vector:
        """The logarithm of the probability of each class."""
        logarithms: Vector = np.log(self.predict_proba(X))
        return logarithms


def _classes_of(labels: NDArray[Any]) -> NDArray[Any]:
    """The distinct labels, sorted; those that are whole numbers without sorting all of them."""
    if labels.dtype.kind in "iu" and labels.ndim == 1 and labels.size:
        low, high = int(labels.min()), int(labels.max())
        if high - low < _MOST_COUNTED:
            return (np.flatnonzero(np.bincount(labels.astype(np.int64) - low)) + low).astype(labels.dtype)
    check_classification_targets(labels)
    return np.asarray(unique_labels(labels))
