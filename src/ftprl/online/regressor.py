"""The online regressor, for labels in any unit."""

from __future__ import annotations

from typing import Unpack, final

from ftprl.online.base import KEYWORDS, OnlineModel, OnlineOptions, Row
from ftprl.options.keywords import has_keywords, of_class

_KEYWORDS = of_class(KEYWORDS, without="calibrate", loss="squared")


@final
class OnlineRegressor(OnlineModel):
    """A linear regressor that learns one dict at a time, with the methods of River's regressors.

    The value of a key is a number, or a category if it is text, and words if `text` names it. Other parameters are
    options of `ftprl.train`; None means the default there.

    >>> model = OnlineRegressor()
    >>> for size in (1.0, 2.0, 3.0) * 50:
    ...     model.learn_one({"size": size}, 10.0 * size)
    >>> abs(model.predict_one({"size": 2.0}) - 20.0) < 1.0
    True
    """

    _river_kind = "Regressor"

    @has_keywords(_KEYWORDS)
    def __init__(self, **parameters: Unpack[OnlineOptions]) -> None:
        super().__init__(_KEYWORDS, parameters)

    def learn_one(self, x: Row, y: float, w: float = 1.0) -> None:
        """Learn one row; `w` is its weight."""
        (self._learner or self._start()).learn(x, y, w)

    def predict_one(self, x: Row) -> float:
        """Return the prediction of one row, in the unit of the labels."""
        return (self._learner or self._start()).mean(x)
