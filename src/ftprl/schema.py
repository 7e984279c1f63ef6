"""Rules for the fields of a loaded file: type, range and length.

A `Shape` is a function that returns the fault of a value, or None. Anybody can write such a file: a value that passes
can be printed, compared and used safely.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from ftprl.errors import InvalidInput

MOST_ROWS = 2**53
_HEX = re.compile(r"[0-9a-f]{64}")
_VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,40}")


@final
class Mismatch(NamedTuple):
    """A value that was not expected, and the names that lead to it."""

    expected: str
    value: Any
    path: tuple[str, ...] = ()

    def under(self, name: str) -> Mismatch:
        """Return this fault as seen from the object that contains the value under `name`."""
        return self._replace(path=(name, *self.path))

    def __str__(self) -> str:
        where = "".join(f"{ascii(name)[1:-1][:40]}: " for name in self.path)
        return f"{where}{self.expected}, got {_brief(self.value)}"


Shape = Callable[[Any], Mismatch | None]


def check_shape(value: Any, shape: Shape) -> None:
    """Raise InvalidInput for a value that does not match the shape."""
    if (wrong := shape(value)) is not None:
        raise InvalidInput(f"expected {wrong}")


def _brief(value: Any) -> str:
    """Return a value in one short printable line; a long list or mapping by its length alone."""
    if isinstance(value, list | Mapping) and value:
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    if type(value) is int and value.bit_length() > 200:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str):
        text = ascii(value[:60])
        return text if len(text) <= 80 else f"{text[:76]}...{text[0]}"  # escapes are longer than what they stand for
    return ascii(value)


def _unless(sound: bool, expected: str, value: Any) -> Mismatch | None:
    """Return a Mismatch unless the value is sound."""
    return None if sound else Mismatch(expected, value)


# ---- single values ----


def whole(least: int = 0, most: int = MOST_ROWS) -> Shape:
    """Accept a whole number within limits.

    >>> print(whole(1, 9)(12))
    a whole number from 1 to 9, got 12
    """
    return lambda a: _unless(type(a) is int and least <= a <= most, f"a whole number from {least} to {most}", a)


def number(least: float = -math.inf) -> Shape:
    """Accept a finite number."""
    expected = "a finite number" + ("" if least == -math.inf else f" of at least {least:g}")
    return lambda a: _unless(type(a) in (int, float) and abs(a) <= 1e300 and a >= least, expected, a)


def flag(a: Any) -> Mismatch | None:
    """Accept true or false."""
    return _unless(type(a) is bool, "true or false", a)


def text(most: int = 400) -> Shape:
    """Accept a printable text."""
    return lambda a: _unless(
        isinstance(a, str) and len(a) <= most and a.isprintable(), f"a printable text of at most {most} characters", a
    )


def name(a: Any) -> Mismatch | None:
    """Accept a name from a data file, which may contain any character; code that prints it must escape it."""
    return _unless(isinstance(a, str) and len(a) <= 100_000 and _is_unicode(a), "a text", a)


def class_label(most: int) -> Shape:
    """Accept a class label that is a text from a data file; like `name` it may contain any character."""
    return lambda a: _unless(
        isinstance(a, str) and len(a) <= most and _is_unicode(a), f"a text of at most {most} characters", a
    )


def character(a: Any) -> Mismatch | None:
    """Accept a single character, such as a tab, or an empty text."""
    return _unless(isinstance(a, str) and len(a) <= 1 and _is_unicode(a), "a single character", a)


def _is_unicode(text: str) -> bool:
    """Return True if a text can be encoded; half of a surrogate pair cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def sha256(a: Any) -> Mismatch | None:
    """Accept a SHA-256 digest in hexadecimal."""
    return _unless(isinstance(a, str) and _HEX.fullmatch(a) is not None, "64 hexadecimal digits", a)


def version(a: Any) -> Mismatch | None:
    """Accept a version number."""
    return _unless(isinstance(a, str) and _VERSION.fullmatch(a) is not None, "the number of a version", a)


def one_of(*values: Any) -> Shape:
    """Accept one of some values."""
    expected = f"{'one of ' if len(values) > 1 else ''}{', '.join('null' if v is None else str(v) for v in values)}"
    return lambda a: _unless(any(type(a) is type(b) and a == b for b in values), expected, a)


nothing = one_of(None)


# ---- values made of others ----


def either(*shapes: Shape) -> Shape:
    """Accept any value that matches one of several shapes.

    >>> shape = either(nothing, whole(0, 9))
    >>> shape(None), shape(3)
    (None, None)
    """

    def check(a: Any) -> Mismatch | None:
        """Return the fault that lies deepest, if no shape matches."""
        wrong = [mismatch for shape in shapes if (mismatch := shape(a)) is not None]
        if len(wrong) < len(shapes):
            return None
        deepest = max(wrong, key=lambda mismatch: len(mismatch.path))
        return deepest if deepest.path else Mismatch(" or ".join(one.expected for one in wrong), a)

    return check


def listed(shape: Shape, most: int, least: int = 0) -> Shape:
    """Accept a list with entries of one shape.

    >>> print(listed(whole(0, 9), 3)([1, 20]))
    1: a whole number from 0 to 9, got 20
    """
    expected = f"a list of {least}" + (f" to {most}" if most > least else "")

    def check(a: Any) -> Mismatch | None:
        """Return the fault of the list or of its first bad entry."""
        if not isinstance(a, list) or not least <= len(a) <= most:
            return Mismatch(expected, a)
        return next((wrong.under(str(i)) for i, one in enumerate(a) if (wrong := shape(one)) is not None), None)

    return check


def row(*shapes: Shape) -> Shape:
    """Accept a list with one shape for each of its entries."""

    def check(a: Any) -> Mismatch | None:
        """Return the fault of the list or of its first bad entry."""
        if not isinstance(a, list) or len(a) != len(shapes):
            return Mismatch(f"a list of {len(shapes)}", a)
        wrong = (shape(one) for shape, one in zip(shapes, a, strict=True))
        return next((one.under(str(i)) for i, one in enumerate(wrong) if one is not None), None)

    return check


def fields(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Accept a mapping with these names, each with its shape, and no other names.

    >>> print(fields({"seed": whole()})({"sed": 1}))
    seed: a value, got None
    """
    known = {**required, **(optional or {})}

    def check(a: Any) -> Mismatch | None:
        """Return the fault of the names or of the first bad value."""
        if not isinstance(a, Mapping):
            return Mismatch(f"the fields {', '.join(sorted(required) or sorted(known))}", a)
        if missing := sorted(set(required) - set(a)):
            return Mismatch("a value", None).under(missing[0])
        if unknown := sorted(set(a) - set(known)):
            return Mismatch(f"only the fields {', '.join(sorted(known))}", unknown[0])
        return next((wrong.under(key) for key, one in a.items() if (wrong := known[key](one)) is not None), None)

    return check


def mapping(shape: Shape, most: int, names: Shape = name) -> Shape:
    """Accept a mapping of any names to values of one shape."""

    def check(a: Any) -> Mismatch | None:
        """Return the fault of the mapping or of its first bad entry."""
        if not isinstance(a, Mapping) or len(a) > most:
            return Mismatch(f"at most {most} names with values", a)
        entries = ((key, names(key) or shape(one)) for key, one in a.items())
        return next((wrong.under(key if isinstance(key, str) else "?") for key, wrong in entries if wrong), None)

    return check


def json_value(depth: int = 4, most: int = 1000) -> Shape:
    """Accept any JSON value that is neither deep nor long, for fields that a user's own class interprets."""
    single = either(nothing, flag, whole(-(2**64), 2**64), number(), name)
    if depth == 0:
        return single
    inner = json_value(depth - 1, most)
    return either(single, listed(inner, most), mapping(inner, most))
