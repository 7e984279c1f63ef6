"""`FTPRLRegressor`: linear regression for labels in any unit, in one pass, without a learning rate to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from ftprl.estimators.base import LinearEstimator, Vector


class FTPRLRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """A linear regressor that learns row by row, in one pass and without a learning rate to tune.

    Options are those of `ftprl.train`; an option that is None has its default there. `passes="auto"` makes up to 20
    passes, of which the one with the smallest held-out loss is kept.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = FTPRLRegressor(passes="auto").fit(X, y)
    >>> bool(regressor.score(X, y) > 0.4)
    True
    """

    def __init__(
        self,
        *,
        loss: str = "squared",
        tau: float | None = None,
        scale: float | Sequence[float] | str = "auto",
        beta: float | None = None,
        l1: float = 0.0,
        l2: float = 0.0,
        lower: float | None = None,
        upper: float | None = None,
        bounds: Mapping[str | int, tuple[float | None, float | None]] | None = None,
        fit_intercept: bool = True,
        passes: int | str = 1,
        shuffle: bool = False,
        holdout: int | None = None,
        receipt: bool = False,
        float64: bool = False,
        coin: bool | None = None,
        dense: bool | None = None,
        retire: bool | None = None,
        categorical: str | Sequence[str] | None = None,
        text: str | Sequence[str] | None = None,
        bits: int = 22,
        seed: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.tau = tau
        self.scale = scale
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.lower = lower
        self.upper = upper
        self.bounds = bounds
        self.fit_intercept = fit_intercept
        self.passes = passes
        self.shuffle = shuffle
        self.holdout = holdout
        self.receipt = receipt
        self.float64 = float64
        self.coin = coin
        self.dense = dense
        self.retire = retire
        self.categorical = categorical
        self.text = text
        self.bits = bits
        self.seed = seed
        self.warm_start = warm_start

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the rows in their order, or in a random one if `shuffle` is True."""
        data, labels = self._checked(X, y, reset=not (self.warm_start and hasattr(self, "models_")), numeric=True)
        data, labels, weight = self._shuffled(data, labels, self._weight(sample_weight, data))
        return self._fit(data, [labels.astype(float)], weight)

    def partial_fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn more rows, in one pass."""
        data, labels = self._checked(X, y, reset=not hasattr(self, "models_"), numeric=True)
        return self._learn_more(data, [labels.astype(float)], self._weight(sample_weight, data))

    def predict(self, X: Any) -> Vector:
        """The prediction of each row, in the unit of the labels."""
        scores = self._scores(X)[:, 0]
        return self.models_[0].mean(scores)
