"""What the labels of a file become: numbers as they are, or +1 and -1 for a loss with two classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.losses import SCALAR_LOSSES

_SHOWN = 100  # distinct labels that are looked at
_PAIRS = (("1", "0"), ("1", "-1"), ("yes", "no"), ("true", "false"), ("y", "n"), ("t", "f"))


@final
class LabelRule(NamedTuple):
    """`kind` is number, sign (1 against -1 or 0), positive (one label against the rest) or words (a known pair)."""

    kind: str
    positive: str = ""
    words: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        if self.kind == "number":
            return "numbers, as they are"
        if self.kind == "sign":
            return "1 is +1, -1 or 0 is -1"
        if self.kind == "positive":
            return f"{self.positive!r} is +1, any other label is -1"
        return ", ".join(f"{word!r} is {y:+.0f}" for word, y in self.words)


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
    return LabelRule("positive", positive) if positive is not None else LabelRule("sign" if binary else "number")


def of_values(loss: str, positive: str | None, column: str, values: Sequence[str]) -> LabelRule:
    """The rule of a column, given the values that its first rows hold."""
    check_positive(positive)
    if not is_binary(loss, positive):
        return LabelRule("number")
    if positive is not None:
        return LabelRule("positive", positive)
    seen = {_plain(value) for value in values}
    for pair in _PAIRS:
        if seen <= set(pair):
            if pair[0] == "1":
                return LabelRule("sign")
            return LabelRule("words", words=((pair[0], 1.0), (pair[1], -1.0)))
    some = ", ".join(repr(value[:40]) for value in values[:6]) + (", ..." if len(values) > 6 else "")
    raise InvalidInput(
        f"{loss} needs a label with two classes, got column {column[:40]!r} with the labels {some};"
        " name the one that counts as 1 with positive=, or pass loss=squared for numbers.",
        option=("positive", "loss"),
    )


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
            " name the one that counts as 1 with positive=, or pass loss=squared for numbers.",
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
    if rule.kind == "number" or (rule.kind == "sign" and not (y == 0.0).any()):
        return y
    positive = 1.0 if rule.kind == "sign" else float(rule.positive)
    return np.where(y == y, np.where(y == positive, 1.0, -1.0), y)


def is_binary(loss: str, positive: str | None) -> bool:
    """Whether a loss has two classes; only then may a positive label be named."""
    if loss not in SCALAR_LOSSES:
        raise InvalidInput(f"loss= needs one of {', '.join(SCALAR_LOSSES)}, got {loss!r}; pass one of them.")
    binary = SCALAR_LOSSES[loss].binary
    if positive is not None and not binary:
        raise InvalidInput(
            f"positive= needs a loss with two classes, got loss={loss!r}; drop it, or pass loss=logistic.",
            option=("positive", "loss"),
        )
    return binary


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
