"""`FTPRLRegressor`: linear regression for labels in any unit, in one pass, without a learning rate to tune."""

from __future__ import annotations

from typing import Any, Self, Unpack

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from ftprl.estimators.base import KEYWORDS, EstimatorOptions, LinearEstimator, Vector
from ftprl.options.keywords import has_keywords, of_class

_KEYWORDS = of_class(KEYWORDS, without="calibrate", loss="squared")


class FTPRLRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """A linear regressor that learns row by row, in one pass and without a learning rate to tune.

    Options are those of `ftprl.train`; an option that is None has its default there. `passes="auto"` makes up to 20
    passes, of which the one with the smallest held-out loss is kept. `fit` learns the rows in a random order, which
    `random_state` chooses, or with `shuffle=False` in their own; `partial_fit` always in their own.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = FTPRLRegressor(passes="auto").fit(X, y)
    >>> bool(regressor.score(X, y) > 0.4)
    True
    """

    @has_keywords(_KEYWORDS)
    def __init__(self, **parameters: Unpack[EstimatorOptions]) -> None:
        self._set(_KEYWORDS, parameters)

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows, in a random order unless `shuffle` is False."""
        data, labels = self._checked(X, y, reset=not (self.warm_start and hasattr(self, "models_")), numeric=True)
        return self._fit(data, [labels.astype(float)], self._weight(sample_weight, data))

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows, in one pass."""
        data, labels = self._checked(X, y, reset=not hasattr(self, "models_"), numeric=True)
        return self._learn_more(data, [labels.astype(float)], self._weight(sample_weight, data))

    def predict(self, X: Any) -> Vector:
        """The prediction of each row, in the unit of the labels."""
        scores = self._scores(X)[:, 0]
        return self.models_[0].mean(scores)
