"""One row at a time: dicts that a model learns and predicts by name, without arrays in between."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard, final

import numpy as np

from ftprl.data.formats import has_open_columns
from ftprl.data.frames import text_of
from ftprl.data.jobs import PlannedSource
from ftprl.data.labels import plain_label, sign_of
from ftprl.data.records import check_keys
from ftprl.data.tables import TableParser
from ftprl.errors import BadFormat, InvalidInput
from ftprl.linear.bounds import too_many_ranges
from ftprl.linear.classes import known_chances
from ftprl.linear.row_input import read_lines

if TYPE_CHECKING:
    from ftprl.linear.model import Model

Row = Mapping[Any, Any] | str | bytes
# As in src/core/bindings/one_row.cpp.
_REVIEW_DUE, _NAMES_FULL, _BOUNDS_EMPTY, _BOUNDS_MANY, _PRODUCT_NAMES_FULL = 1, 2, 4, 8, 16
_MOST_LABELS = 1000  # that are remembered


@final
class RowLearner:
    """Learns and scores dicts with the engine of a model, which reads them as the data that it was trained on."""

    def __init__(self, model: Model) -> None:
        self.engine = model.engine
        self._reading, self._has_lines = model.reading, model.reading.get("format") == "vw"
        self._lines = 0  # of VW text that were learned here
        self._obstacle = _obstacle(model)
        self._taken = 0  # rows that were learned here and are in the history of the model
        self._names = model.names
        source = model.open([dict.fromkeys(model.reading.get("columns") or {})])
        assert isinstance(source, PlannedSource)
        scoring = source.settings._replace(skip_bad_rows=False, batch_rows=2, names=False)
        keeps_names = model.names is not None and model.names.full_row is None
        self._names_of_lines = "all" if self.engine.bounds is not None else keeps_names
        learning = scoring._replace(names=self._names_of_lines)
        table = None if model.names is None else model.names.table
        parsers = TableParser(learning).core, TableParser(scoring).core
        self._is_open = has_open_columns(model.reading)
        # Whose keys the first row is compared with: not if rows have few of many keys, such as words.
        is_sparse = self._is_open and model.reading.get("missing", "ignore") == "ignore"
        self._unchecked = None if is_sparse else source.settings.kinds or None
        for parser in parsers:
            parser.needs_all_names = not self._is_open
        self.core = self.engine.one_row(*parsers, table)
        self._before = int(model.history.get("rows", 0))
        loss = self.engine.spec.scalar_loss()
        self.mean_of = loss.mean_of
        self._loss, self._positive = loss.name, model.reading.get("positive")
        self._signs: dict[Hashable, float] | None = {} if loss.binary else None
        self._classes = model.class_table

    def learn(self, x: Row, y: Any, weight: float = 1.0) -> None:
        """Predict and learn one row."""
        if self._obstacle is not None:
            raise InvalidInput(f"learn_one needs a model that learns every row alike, got one that {self._obstacle}.")
        if self._is_line(x):
            self._learn_line(x, y, weight)
            return
        if self._unchecked is not None:
            self._check_keys(x)
        try:
            due = self.core.learn(x, self._label(y), weight)
        except (TypeError, ValueError) as wrong:
            raise refusal(wrong, weight) from None
        if due:
            self.settle(due)

    def _check_keys(self, x: Row) -> None:
        """Compare the keys of the first row with the columns of the model."""
        if self._unchecked is not None and isinstance(x, Mapping):
            check_keys([x], self._unchecked, is_open=self._is_open)
            self._unchecked = None

    def take_rows(self) -> int:
        """How many rows were learned since the last call."""
        total = self.core.rows + self._lines
        rows, self._taken = total - self._taken, total
        return rows

    def _is_line(self, x: Row) -> TypeGuard[str | bytes]:
        """Whether a row is a line of VW text, for a model of it."""
        return self._has_lines and isinstance(x, str | bytes)

    def _learn_line(self, line: str | bytes, y: Any, weight: float) -> None:
        row = read_lines(self._reading, self.engine.spec, [line], names=self._names_of_lines)
        row = row.replaced(y=np.array([self._label(y)]), weight=row.weight * float(weight))
        if self._names is not None and self._names.full_row is None:
            self._names.add(row, self._before + self.core.rows + self._lines)
        self.engine.learn(row)
        self.core.review_row = self.engine.next_review
        self._lines += 1

    def score(self, x: Row) -> float:
        """The score of one row, with the weights as they are."""
        if self._is_line(x):
            return float(self.engine.score(read_lines(self._reading, self.engine.spec, [x]))[0])
        if self._unchecked is not None:
            self._check_keys(x)
        try:
            return self.core.score(x)
        except (TypeError, ValueError) as wrong:
            raise refusal(wrong) from None

    def log_chances(self, x: Row) -> list[float]:
        """With several classes the logarithms of the probabilities of those that are known."""
        if self._is_line(x):
            return list(map(float, self.engine.score(read_lines(self._reading, self.engine.spec, [x]))[0]))
        if self._unchecked is not None:
            self._check_keys(x)
        try:
            return self.core.score_classes(x)
        except (TypeError, ValueError) as wrong:
            raise refusal(wrong) from None

    def chances(self, x: Row) -> list[float]:
        """The probabilities of the classes that are known, which sum to 1."""
        logs = self.log_chances(x)
        return known_chances(np.array([logs]))[0].tolist() if logs else []

    def mean(self, x: Row) -> float:
        """What that score predicts."""
        return self.mean_of(self.score(x))

    def settle(self, due: int) -> None:
        """What the core leaves to do after a row: to drop scales, and to note that no name fits any more.

        Or to refuse the row, and all that follow, because of the bounds of a name in it.
        """
        if due & _BOUNDS_EMPTY and self.engine.bounds is not None:
            raise self.engine.bounds.refusal()
        if due & _BOUNDS_MANY:
            raise too_many_ranges()
        if due & _REVIEW_DUE:
            self.engine.review_one_row(self.core)
        if due & _NAMES_FULL and self._names is not None:
            self._names.full_row = self._before + self.core.rows + self._lines
        if due & _PRODUCT_NAMES_FULL and self._names is not None:
            self._names.products_full_row = self._before + self.core.rows + self._lines

    def _label(self, y: Any) -> float:
        """The label as the loss takes it."""
        signs = self._signs
        if self._classes is not None:
            return self._number_of_class(y)
        if signs is None:
            return _number(y)
        try:
            return signs[y]
        except KeyError:
            pass
        except TypeError:
            raise InvalidInput(f"y needs a label, got {type(y).__name__}; pass the label of the row.") from None
        if y is None:
            raise InvalidInput("y needs a label, got None; leave the row out, or call predict_one.")
        sign = sign_of(self._loss, self._positive, text_of(y))
        if len(signs) < _MOST_LABELS:
            signs[y] = sign
        return sign

    def _number_of_class(self, y: Any) -> float:
        assert self._classes is not None
        label = plain_label(y) if y is not None and y == y else ""
        if label == "":
            raise InvalidInput(f"y needs the label of a class, got {y!r:.40}; leave the row out, or call predict_one.")
        number = self._classes.number(label)
        if number is None:
            raise InvalidInput(
                f"y needs one of at most {self._classes.most} classes ({', '.join(self._classes.names[:6])}, ...), got"
                f" {y!r:.40}; allow more with classes=."
            )
        return float(number)


def _obstacle(model: Model) -> str | None:
    """Why a model cannot learn row by row; it can still predict."""
    if model.is_compact:
        return "was made compact"
    if model.checkpoint is not None:
        return "is a checkpoint of an unfinished run"
    if model.admission is not None:
        return "leaves rare features out (admit=)"
    return None


def _number(y: Any) -> float:
    try:
        number = float(y)
    except (TypeError, ValueError):
        number = math.inf
    if not math.isfinite(number) or isinstance(y, str):
        raise InvalidInput(f"y needs a finite number, got {y!r:.60}; pass the label of the row.")
    return number


def refusal(wrong: Exception, weight: Any = 1.0) -> Exception:
    """What was wrong with the arguments of a call of the core."""
    if isinstance(wrong, ValueError):
        return wrong if isinstance(wrong, InvalidInput) else BadFormat(f"the row: {wrong}.")
    if not isinstance(weight, int | float):
        return InvalidInput(f"weight needs a number, got {type(weight).__name__}; pass how much the row counts.")
    return wrong
