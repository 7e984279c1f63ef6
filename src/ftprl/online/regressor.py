"""`OnlineRegressor`: labels in any unit, one dict at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

from ftprl.data.ngrams import GramsOption
from ftprl.online.base import OnlineModel, Row


@final
class OnlineRegressor(OnlineModel):
    """A linear regressor that learns one dict at a time, with the methods of River's regressors.

    The value of a key is a number, or a category if it is text, and words if `text` names it. Other parameters are
    options of `ftprl.train`; one that is None has its default there.

    >>> model = OnlineRegressor()
    >>> for size in (1.0, 2.0, 3.0) * 50:
    ...     model.learn_one({"size": size}, 10.0 * size)
    >>> abs(model.predict_one({"size": 2.0}) - 20.0) < 1.0
    True
    """

    _river_kind = "Regressor"

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
        bounds: Mapping[str, tuple[float | None, float | None]] | None = None,
        intercept: bool = True,
        categorical: tuple[str, ...] | None = None,
        numeric: tuple[str, ...] | None = None,
        text: tuple[str, ...] | None = None,
        boolean: tuple[str, ...] | None = None,
        date: tuple[str, ...] | None = None,
        interactions: tuple[str, ...] | None = None,
        ngrams: GramsOption = None,
        skips: GramsOption = None,
        char_ngrams: GramsOption = None,
        missing: str | None = None,
        bits: int = 22,
        seed: int = 0,
        float64: bool = False,
        coin: bool | None = None,
        dense: bool | None = None,
        retire: bool = True,
        receipt: bool = False,
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
        self.intercept = intercept
        self.categorical = categorical
        self.numeric = numeric
        self.text = text
        self.boolean = boolean
        self.date = date
        self.interactions = interactions
        self.ngrams = ngrams
        self.skips = skips
        self.char_ngrams = char_ngrams
        self.missing = missing
        self.bits = bits
        self.seed = seed
        self.float64 = float64
        self.coin = coin
        self.dense = dense
        self.retire = retire
        self.receipt = receipt
        super().__init__()

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn one row; `w` is its weight."""
        (self._learner or self._start()).learn(x, y, w)

    def predict_one(self, x: Row) -> float:
        """The prediction of one row, in the unit of the labels."""
        return (self._learner or self._start()).mean(x)
