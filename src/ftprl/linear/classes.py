"""The classes of a model: which label has which number, in the order in which they were met or declared."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.data.files import shown
from ftprl.data.labels import plain_label
from ftprl.errors import InvalidInput
from ftprl.linear.refusal import RowRefused
from ftprl.linear.spec import MOST_CLASSES

Label = str | float
DEFAULT_CLASSES = 100  # that a run may meet when nothing was declared
_SHOWN = 6
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # also what ends a line


def shown_label(label: Label) -> str:
    """A label as it is printed: on one line, with escapes for control characters.

    >>> shown_label(3.0), shown_label(0.5), shown_label("cat"), shown_label("a\\nb")
    ('3', '0.5', 'cat', 'a\\\\nb')
    """
    if isinstance(label, str):
        return label if label.isprintable() else _CONTROL.sub(lambda one: shown(one[0]), label)
    return str(int(label)) if is_whole(label) else repr(label)


def is_whole(label: Label) -> bool:
    """Whether a label is a whole number that a float has exactly."""
    return not isinstance(label, str) and float(label).is_integer() and abs(label) < 2**53


def whole_as_ints(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Labels as users have them: whole numbers are ints, unless another number has a fraction.

    >>> whole_as_ints([0.0, 3.0, "cat"]), whole_as_ints([0.0, 0.5])
    ((0, 3, 'cat'), (0.0, 0.5))
    """
    if not all(isinstance(label, str) or is_whole(label) for label in labels):
        return tuple(labels)
    return tuple(label if isinstance(label, str) else int(label) for label in labels)


@final
class ClassTable:
    """Numbers for labels, which are numbers or text. A label that is met for the first time gets the next number.

    >>> table = ClassTable(3, ["cat"])
    >>> table.numbers(np.array([7.0, math.nan, 7.0])).tolist(), table.labels
    ([1.0, nan, 1.0], ('cat', 7.0))
    """

    def __init__(self, most: int, labels: Iterable[Label] = (), *, declared: bool = False) -> None:
        self.most, self.declared = most, declared  # whether all labels were known before the first row
        self._numbers: dict[Label, int] = {}
        for label in labels:
            self._numbers.setdefault(label, len(self._numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The labels in the order of their numbers."""
        return tuple(self._numbers)

    @property
    def names(self) -> tuple[str, ...]:
        """The labels as they are printed."""
        return tuple(shown_label(label) for label in self._numbers)

    def numbers(self, y: NDArray[np.float64], texts: Mapping[float, str] | None = None) -> NDArray[np.float64]:
        """The number of each label; a missing one stays NaN, and one too many is `most`.

        `texts` are the labels that are text, by the codes that stand for them in `y`.
        """
        codes, first, inverse = np.unique(y, return_index=True, return_inverse=True)
        own = np.full(len(codes), np.nan)
        for i in np.argsort(first, kind="stable").tolist():  # in the order of the rows
            code = float(codes[i])
            if code != code:
                continue
            label: Label = code if texts is None else texts.get(code, code)
            if label not in self._numbers and len(self._numbers) < self.most:
                self._numbers[label] = len(self._numbers)
            own[i] = self._numbers.get(label, self.most)
        return np.asarray(own[inverse.reshape(-1)])

    def number(self, label: Label) -> int | None:
        """The number of one label, which gets the next one if it has none; None for one too many."""
        if label not in self._numbers and len(self._numbers) < self.most:
            self._numbers[label] = len(self._numbers)
        return self._numbers.get(label)

    def known(self, y: NDArray[np.float64], texts: Mapping[float, str]) -> NDArray[np.float64]:
        """The number of each label that has one already; NaN for the others."""
        codes, inverse = np.unique(y, return_inverse=True)
        own = [self._numbers.get(texts.get(code, code), math.nan) for code in codes.tolist()]
        return np.array(own, dtype=np.float64)[inverse.reshape(-1)] if len(own) else np.empty(0)

    def numbered(self, batch: Batch, texts: Mapping[float, str]) -> Batch:
        """A batch with numbers for its labels; refuses the first row whose label is one too many."""
        y = self.numbers(batch.y, texts)
        beyond = np.flatnonzero(y >= self.most)
        if len(beyond):
            at = int(beyond[0])
            code = float(batch.y[at])
            some = ", ".join(name[:40] for name in self.names[:_SHOWN]) + (", ..." if len(self) > _SHOWN else "")
            raise RowRefused(
                f"row {batch.first_row + at}",
                f"expected one of at most {self.most} classes ({some}), got the label"
                f" {shown_label(texts.get(code, code))[:40]!r}; allow more with classes=, or fix the label",
                batch.first_row + at,
            )
        return batch.replaced(y=y)

    def label(self, number: float) -> str:
        """The label of a number, as it is printed; nothing for NaN."""
        return "" if math.isnan(number) else shown_label(self.labels[int(number)])


def known_chances(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities of the classes that are known, one row each that sums to 1, from their logarithms."""
    if not logs.size:
        return np.asarray(logs)
    chances = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def table_of(declared: Any, y: Any = None) -> ClassTable:
    """The table of a new model: `declared` is a number of classes, a list of labels, or None.

    Without a declaration the labels `y` of data in memory are the classes, in their order; else at most 100 may come.

    >>> table_of(None, [3, 1, 3]).labels
    (1.0, 3.0)
    """
    if declared is None and y is not None:
        in_data = {plain_label(label) for label in unique_values(y)} - {""}
        declared = sorted(in_data, key=lambda label: (isinstance(label, str), label))
        declared = declared if 2 <= len(declared) <= MOST_CLASSES else None
    if declared is None:
        return ClassTable(DEFAULT_CLASSES)
    if isinstance(declared, str):
        declared = int(declared) if declared.isdecimal() else [part.strip() for part in declared.split(",")]
    if isinstance(declared, int | np.integer) and not isinstance(declared, bool):
        return ClassTable(int(declared))
    if not isinstance(declared, Sequence | np.ndarray):
        raise InvalidInput(
            f"classes= needs how many there may be, or a list of labels, got {declared!r:.60}; pass one."
        )
    labels = [plain_label(label) for label in declared]
    if len(set(labels)) < len(labels) or not 2 <= len(labels) <= MOST_CLASSES or "" in labels:
        raise InvalidInput(
            f"classes= needs 2 to {MOST_CLASSES} different labels, got {list(declared)!r:.80}; list each once."
        )
    return ClassTable(len(labels), labels, declared=True)


def unique_values(y: Any) -> list[Any]:
    """The different labels of an array or a list, those that are missing left out."""
    values = y.unique() if hasattr(y, "unique") else np.unique(np.asarray(y)) if not _is_mixed(y) else set(y)
    return [value for value in (values.tolist() if hasattr(values, "tolist") else values) if not _is_missing(value)]


def _is_mixed(y: Any) -> bool:
    return np.asarray(y).dtype.kind == "O"


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
