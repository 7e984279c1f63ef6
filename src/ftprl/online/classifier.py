"""The online classifier, for two or more classes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Unpack, final

from ftprl.errors import InvalidInput
from ftprl.linear.one_row import RowLearner, refusal
from ftprl.losses import predicts_probabilities
from ftprl.online.base import KEYWORDS, OnlineModel, OnlineOptions, Row
from ftprl.options.keywords import has_keywords, of_class

_KEYWORDS = of_class(KEYWORDS, without="tau", loss="logistic", classes=(False, True))


@final
class OnlineClassifier(OnlineModel):
    """A linear classifier that learns one dict at a time, with the methods of River's classifiers.

    `classes` are the two labels, the positive one last, or all labels if there are more, which are learned with
    softmax. The value of a key is a number, or a category if it is text, and words if `text` names it. Other parameters
    are options of `ftprl.train`; None means the default there.

    >>> model = OnlineClassifier()
    >>> for city, size, bought in [("Ulm", 2.0, True), ("Bonn", 1.0, False)] * 5:
    ...     model.learn_one({"city": city, "size": size}, bought)
    >>> model.predict_one({"city": "Ulm", "size": 2.5})
    True
    """

    _river_kind = "Classifier"

    classes: tuple[Any, ...]

    @has_keywords(_KEYWORDS)
    def __init__(self, **parameters: Unpack[OnlineOptions]) -> None:
        super().__init__(_KEYWORDS, parameters)
        classes, loss = self.classes, self.loss
        if len(classes) < 2 or len(set(classes)) < len(classes):
            raise InvalidInput(
                f"classes= needs two labels, the positive one last, or more, got {classes!r:.60}; list each once."
            )
        if len(classes) > 2 and not predicts_probabilities(loss):
            raise InvalidInput(f"loss= needs two classes, got loss={loss!r} with {len(classes)}; drop it.")

    @property
    def _several_classes(self) -> list[Any] | None:
        """Return the labels if there are more than two, else None."""
        return list(self.classes) if len(self.classes) > 2 else None

    def _start(self) -> RowLearner:
        """Create the row learner and the table of labels."""
        self._numbers = {label: self._signed(label) for label in self.classes}
        return super()._start()

    def _signed(self, y: Hashable) -> float:
        """Return the label as the model needs it: a sign for two classes, a class number for more."""
        if len(self.classes) == 2:
            return 1.0 if y == self.classes[1] else self._negative(y)
        if y not in self.classes:
            raise InvalidInput(f"y needs one of the classes {self.classes!r:.60}, got {y!r:.40}; name all in classes=.")
        return float(self.classes.index(y))

    def learn_one(self, x: Row, y: Hashable, w: float = 1.0) -> None:
        """Learn one row; `w` is its weight."""
        learner = self._learner or self._start()
        try:
            number = self._numbers.get(y)
        except TypeError:  # the label is not hashable
            number = None
        try:
            due = learner.core.learn(x, self._signed(y) if number is None else number, w)
        except (TypeError, ValueError) as wrong:
            raise refusal(wrong, w) from None
        if due:
            learner.settle(due)

    def _negative(self, y: Hashable) -> float:
        """Return -1 for the negative label; raise InvalidInput for an unknown one."""
        if y == self.classes[0]:
            return -1.0
        raise InvalidInput(f"y needs one of the classes {self.classes!r:.60}, got {y!r:.40}; name both in classes=.")

    def predict_proba_one(self, x: Row) -> dict[Any, float]:
        """Return the probability of each class.

        Raises NotImplementedError for a loss without probabilities.
        """
        if not predicts_probabilities(self.loss):
            raise NotImplementedError(f"probabilities need loss='logistic', got loss={self.loss!r}")
        learner = self._learner or self._start()
        if len(self.classes) > 2:
            return dict(zip(self.classes, learner.chances(x), strict=True))
        positive = learner.mean_of(learner.score(x))
        return {self.classes[0]: 1.0 - positive, self.classes[1]: positive}

    def predict_one(self, x: Row) -> Any:
        """Return the most probable class."""
        if len(self.classes) > 2:
            logs = (self._learner or self._start()).log_chances(x)
            return self.classes[logs.index(max(logs))]
        return self.classes[1] if (self._learner or self._start()).score(x) > 0.0 else self.classes[0]
