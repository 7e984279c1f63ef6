"""What the fields of a loaded file may be: type, range and length.

A `Shape` is a function that returns what is wrong with a value, or None. Files are written by anybody: a value that
passes can be printed, compared and used without a surprise.
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
    """A value that is not what was expected, and the names that lead to it."""

    expected: str
    value: Any
    path: tuple[str, ...] = ()

    def under(self, name: str) -> Mismatch:
        """The same, seen from the object that has it under this name."""
        return self._replace(path=(name, *self.path))

    def __str__(self) -> str:
        where = "".join(f"{ascii(name)[1:-1][:40]}: " for name in self.path)
        return f"{where}{self.expected}, got {_brief(self.value)}"


Shape = Callable[[Any], Mismatch | None]


def check_shape(value: Any, shape: Shape) -> None:
    """Refuse a value of another shape."""
    if (wrong := shape(value)) is not None:
        raise InvalidInput(f"expected {wrong}")


def _brief(value: Any) -> str:
    """A value in one short printable line; a long list or mapping by its length alone."""
    if isinstance(value, list | Mapping) and value:
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    if type(value) is int and value.bit_length() > 200:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, str):
        text = ascii(value[:60])
        return text if len(text) <= 80 else f"{text[:76]}...{text[0]}"  # escapes are longer than what they stand for
    return ascii(value)


def _unless(sound: bool, expected: str, value: Any) -> Mismatch | None:
    return None if sound else Mismatch(expected, value)


# ---- single values ----


def whole(least: int = 0, most: int = MOST_ROWS) -> Shape:
    """A whole number within limits."""
    return lambda a: _unless(type(a) is int and least <= a <= most, f"a whole number from {least} to {most}", a)


def number(least: float = -math.inf) -> Shape:
    """A finite number."""
    expected = "a finite number" + ("" if least == -math.inf else f" of at least {least:g}")
    return lambda a: _unless(type(a) in (int, float) and abs(a) <= 1e300 and a >= least, expected, a)


def flag(a: Any) -> Mismatch | None:
    """True or False."""
    return _unless(type(a) is bool, "true or false", a)


def text(most: int = 400) -> Shape:
    """A printable text."""
    return lambda a: _unless(
        isinstance(a, str) and len(a) <= most and a.isprintable(), f"a printable text of at most {most} characters", a
    )


def name(a: Any) -> Mismatch | None:
    """A name out of a data file, which may have any character; whoever prints it escapes it."""
    return _unless(isinstance(a, str) and len(a) <= 100_000 and _is_unicode(a), "a text", a)


def class_label(most: int) -> Shape:
    """A class that is a text out of a data file, which may have any character, as `name`."""
    return lambda a: _unless(
        isinstance(a, str) and len(a) <= most and _is_unicode(a), f"a text of at most {most} characters", a
    )


def character(a: Any) -> Mismatch | None:
    """A character, or none at all; it may be a tab."""
    return _unless(isinstance(a, str) and len(a) <= 1 and _is_unicode(a), "a single character", a)


def _is_unicode(text: str) -> bool:
    """Whether a text can be encoded; half a surrogate pair cannot."""
    return not any("\ud800" <= c <= "\udfff" for c in text)


def sha256(a: Any) -> Mismatch | None:
    """A digest."""
    return _unless(isinstance(a, str) and _HEX.fullmatch(a) is not None, "64 hexadecimal digits", a)


def version(a: Any) -> Mismatch | None:
    """The number of a version."""
    return _unless(isinstance(a, str) and _VERSION.fullmatch(a) is not None, "the number of a version", a)


def one_of(*values: Any) -> Shape:
    """One of some values."""
    expected = f"{'one of ' if len(values) > 1 else ''}{', '.join('null' if v is None else str(v) for v in values)}"
    return lambda a: _unless(any(type(a) is type(b) and a == b for b in values), expected, a)


nothing = one_of(None)


# ---- values made of others ----


def either(*shapes: Shape) -> Shape:
    """Whatever fits one of several shapes."""

    def check(a: Any) -> Mismatch | None:
        wrong = [mismatch for shape in shapes if (mismatch := shape(a)) is not None]
        if len(wrong) < len(shapes):
            return None
        deepest = max(wrong, key=lambda mismatch: len(mismatch.path))
        return deepest if deepest.path else Mismatch(" or ".join(one.expected for one in wrong), a)

    return check


def listed(shape: Shape, most: int, least: int = 0) -> Shape:
    """A list of one kind of entry."""
    expected = f"a list of {least}" + (f" to {most}" if most > least else "")

    def check(a: Any) -> Mismatch | None:
        if not isinstance(a, list) or not least <= len(a) <= most:
            return Mismatch(expected, a)
        return next((wrong.under(str(i)) for i, one in enumerate(a) if (wrong := shape(one)) is not None), None)

    return check


def row(*shapes: Shape) -> Shape:
    """A list with a shape for each of its entries."""

    def check(a: Any) -> Mismatch | None:
        if not isinstance(a, list) or len(a) != len(shapes):
            return Mismatch(f"a list of {len(shapes)}", a)
        wrong = (shape(one) for shape, one in zip(shapes, a, strict=True))
        return next((one.under(str(i)) for i, one in enumerate(wrong) if one is not None), None)

    return check


def fields(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    """Names and values, no other names."""
    known = {**required, **(optional or {})}

    def check(a: Any) -> Mismatch | None:
        if not isinstance(a, Mapping):
            return Mismatch(f"the fields {', '.join(sorted(required) or sorted(known))}", a)
        if missing := sorted(set(required) - set(a)):
            return Mismatch("a value", None).under(missing[0])
        if unknown := sorted(set(a) - set(known)):
            return Mismatch(f"only the fields {', '.join(sorted(known))}", unknown[0])
        return next((wrong.under(key) for key, one in a.items() if (wrong := known[key](one)) is not None), None)

    return check


def mapping(shape: Shape, most: int, names: Shape = name) -> Shape:
    """Any names, with values of one kind."""

    def check(a: Any) -> Mismatch | None:
        if not isinstance(a, Mapping) or len(a) > most:
            return Mismatch(f"at most {most} names with values", a)
        entries = ((key, names(key) or shape(one)) for key, one in a.items())
        return next((wrong.under(key if isinstance(key, str) else "?") for key, wrong in entries if wrong), None)

    return check


def json_value(depth: int = 4, most: int = 1000) -> Shape:
    """Any JSON value that is neither deep nor long: for fields whose meaning a user's own class decides."""
    single = either(nothing, flag, whole(-(2**64), 2**64), number(), name)
    if depth == 0:
        return single
    inner = json_value(depth - 1, most)
    return either(single, listed(inner, most), mapping(inner, most))
