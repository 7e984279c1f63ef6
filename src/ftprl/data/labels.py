"""What the labels of a file become: numbers as they are, or +1 and -1 for a loss with two classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.losses import CLASS_LOSSES, LOSSES, check_loss

_SHOWN = 100  # distinct labels that are looked at
_PAIRS = (("1", "0"), ("1", "-1"), ("yes", "no"), ("true", "false"), ("y", "n"), ("t", "f"))


@final
class LabelRule(NamedTuple):
    """How labels are read: `kind` is number, sign (1 against -1 or 0), positive (one label against the rest), words (a
    known pair) or classes, where a number stands as it is and any other text has a code above every number.
    """

    kind: str
    positive: str = ""
    words: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        if self.kind == "number":
            return "numbers, as they are"
        if self.kind == "classes":
            return "classes, numbers or text"
        if self.kind == "sign":
            return "1 is positive (+1), 0 or -1 is negative (-1)"
        if self.kind == "positive":
            return f"{self.positive!r} is positive (+1), any other label is negative (-1)"
        return ", ".join(f"{word!r} is {'positive' if y > 0.0 else 'negative'} ({y:+.0f})" for word, y in self.words)


def check_positive(positive: str | None) -> None:
    """Refuse what no text file can hold."""
    try:
        (positive or "").encode()
    except UnicodeEncodeError:
        raise InvalidInput("positive= needs text in UTF-8, got other bytes; pass a label of the file.") from None


def of_numbers(loss: str, positive: str | None) -> LabelRule:
    """The rule of a format whose labels are numbers."""
    check_positive(positive)
    binary = is_binary(loss, positive)
    if positive is not None and _number(positive) is None:
        raise InvalidInput(
            f"positive= needs a number for this format, got {positive!r}; pass one of the file's labels."
        )
    if loss in CLASS_LOSSES:
        return LabelRule("classes")
    return LabelRule("positive", positive) if positive is not None else LabelRule("sign" if binary else "number")


def needs_values(loss: str, positive: str | None) -> bool:
    """Whether the rule of a column depends on the values that its first rows hold."""
    return is_binary(loss, positive) and positive is None


def of_values(loss: str, positive: str | None, column: str, values: Sequence[str]) -> LabelRule:
    """The rule of a column, given the values that its first rows hold."""
    check_positive(positive)
    if not is_binary(loss, positive):
        return LabelRule("classes" if loss in CLASS_LOSSES else "number")
    some = ", ".join(repr(value[:40]) for value in values[:6]) + (", ..." if len(values) > 6 else "")
    if positive is not None:
        near = [value for value in values if value.strip().lower() == positive.lower()]
        if near and positive not in {value.strip() for value in near}:
            raise InvalidInput(
                f"positive= needs a label of the data, got {positive!r}, and the first rows have {some}; did you mean"
                f" {near[0][:40]!r}?",
                option="positive",
            )
        return LabelRule("positive", positive)
    seen = {_plain(value) for value in values}
    for pair in _PAIRS:
        if seen <= set(pair):
            if pair[0] == "1":
                return LabelRule("sign")
            return LabelRule("words", words=((pair[0], 1.0), (pair[1], -1.0)))
    raise InvalidInput(
        f"{loss} loss needs a label with two classes, got column {column[:40]!r} with the labels {some}; pass"
        f" {_for_numbers(values)}positive= with the label that counts as 1, or loss=softmax for several classes.",
        option=("positive", "loss"),
    )


def _for_numbers(values: Sequence[str]) -> str:
    """What a label of numbers most likely needs."""
    return "loss=squared for numbers, " if all(_number(value) is not None for value in values) else ""


def of_array(loss: str, positive: str | None, labels: Sequence[NDArray[np.float64]]) -> LabelRule:
    """The rule of labels in memory, all of which are checked: 1 against -1 or 0 for a loss with two classes."""
    rule = of_numbers(loss, positive)
    if rule.kind != "sign":
        return rule
    if all((np.abs(part) == 1.0).all() for part in labels):  # as nearly always, and quicker than to find all labels
        return rule
    values: set[float] = set()
    for part in labels:
        values |= set(np.unique(part[part == part])[:_SHOWN].tolist())
    if not (values <= {-1.0, 1.0} or values <= {0.0, 1.0}):
        some = ", ".join(f"{value:g}" for value in sorted(values)[:6]) + (", ..." if len(values) > 6 else "")
        raise InvalidInput(
            f"{loss} needs the labels 1 and -1, or 1 and 0, got {some};"
            " pass positive= with the one that counts as 1, or loss=softmax for several classes or loss=squared"
            " for numbers.",
            option=("positive", "loss"),
        )
    return rule


def sign_of(loss: str, positive: str | None, label: str) -> float:
    """+1 or -1 for one label of a loss with two classes, by the rules of a column.

    >>> sign_of("logistic", None, "yes"), sign_of("logistic", "spam", "ham"), sign_of("logistic", None, "0")
    (1.0, -1.0, -1.0)
    """
    if positive is not None:
        return 1.0 if _plain(label) == _plain(positive) else -1.0
    of_values(loss, None, "y", [label])
    return 1.0 if any(_plain(label) == pair[0] for pair in _PAIRS) else -1.0


def signed(rule: LabelRule, y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Labels in memory as a rule has them: +1 and -1 for two classes; a missing label stays missing."""
    if rule.kind in ("number", "classes") or (rule.kind == "sign" and not (y == 0.0).any()):
        return y
    positive = 1.0 if rule.kind == "sign" else float(rule.positive)
    return np.where(y == y, np.where(y == positive, 1.0, -1.0), y)


def is_binary(loss: str, positive: str | None) -> bool:
    """Whether a loss has two classes; only then may a positive label be named."""
    check_loss(loss)
    binary = LOSSES[loss].binary
    if positive is not None and not binary:
        raise InvalidInput(
            f"positive= needs a loss with two classes, got loss={loss!r}; drop it, or pass loss=logistic.",
            option=("positive", "loss"),
        )
    return binary


def plain_label(label: Any) -> str | float:
    """A label of a class in one spelling: 1, 1.0 and "1" are the number 1; True is "true"; other text stays text.

    >>> plain_label("2"), plain_label(True), plain_label("cat")
    (2.0, 'true', 'cat')
    """
    if isinstance(label, bool | np.bool_):
        return "true" if label else "false"
    if isinstance(label, bytes):
        label = label.decode("utf-8", "backslashreplace")
    if isinstance(label, str):
        value = _number(label.strip())
        return label.strip() if value is None else value + 0.0
    return float(label) + 0.0


def check_no_missing(y: Any) -> None:
    """Refuse labels beside the data of which one is missing: NaN or None."""
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind not in "fO":
        return
    missing = array != array if array.dtype.kind == "f" else np.array([_is_missing(one) for one in array], dtype=bool)
    if missing.any():
        at = int(np.argmax(missing))
        count = int(missing.sum())
        raise InvalidInput(
            f"y= needs a label for each row, got {array[at]!s:.20} in row {at}"
            + (f" and {count - 1} more" if count > 1 else "")
            + "; leave these rows out."
        )


def _is_missing(value: Any) -> bool:
    """Whether a label is none: None, NaN, NaT, or NA of pandas, which does not compare."""
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


_FIRST_CODE = 2.0**1000  # no number of a label is as large


def coded(labels: Any) -> tuple[NDArray[np.float64], dict[float, str]]:
    """Labels of classes in memory as numbers: those that are text as codes, which the dict explains; NaN if missing.

    >>> coded(["cat", 3, "cat"])[0].tolist() == [_FIRST_CODE, 3.0, _FIRST_CODE]
    True
    """
    array = np.asarray(labels)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64), {}
    values, inverse = _distinct(array)
    texts: dict[float, str] = {}
    codes = np.empty(len(values))
    for i, value in enumerate(values):
        is_missing = value is None or value != value or value == ""
        label = math.nan if is_missing else plain_label(value)
        if isinstance(label, str):
            code = _FIRST_CODE * (1.0 + len(texts) * 2.0**-52)
            texts[code], label = label, code
        codes[i] = label
    return codes[inverse], texts


def _distinct(array: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    numbers: dict[Any, int] = {}
    inverse = np.array([numbers.setdefault(value, len(numbers)) for value in array.tolist()], dtype=np.intp)
    return list(numbers), inverse


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _plain(text: str) -> str:
    """A label in one spelling: 1.0 and +1 are 1, YES is yes."""
    value = _number(text)
    return text.lower() if value is None else f"{value + 0.0:g}"
