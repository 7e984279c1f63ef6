"""The checks of options: each value by the rule of its table entry, and pairs that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ftprl.errors import InvalidInput
from ftprl.options import BY_NAME
from ftprl.options.option import SWITCH


def check_value(name: str, value: Any) -> None:
    """Raise InvalidInput for a value that the option cannot have.

    >>> check_value("bits", 40)
    Traceback (most recent call last):
    ftprl.errors.InvalidInput: bits= needs a whole number from 1 to 32, got 40; the table has 2**bits cells.
    """
    entry = BY_NAME[name]
    rule = SWITCH if entry.is_switch else entry.rule
    if rule is not None and not rule.fits(value):
        raise InvalidInput(f"{name}= needs {rule.wanted}, got {value!r:.60}; {rule.remedy}.", option=name)


def check_values(values: Mapping[str, Any]) -> None:
    """Check the value of every option that is used; None means that an option is not used."""
    for name, value in values.items():
        if value is not None:
            check_value(name, value)


def check_together(values: Mapping[str, Any]) -> None:
    """Raise InvalidInput for options that exclude each other, or that need another option which is missing.

    >>> check_together({"delay": 5, "bounds": {"x": (0, 1)}})
    Traceback (most recent call last):
    ftprl.errors.InvalidInput: delay= learns rows in another order than bounds= expects, got both; drop one.
    """
    used = {name for name, value in values.items() if name in BY_NAME and BY_NAME[name].is_used(value)}
    for name in (name for name in BY_NAME if name in used):
        entry = BY_NAME[name]
        pairs = [(other, sentence) for other, sentence in entry.excludes.items() if other in used]
        pairs += [(other, sentence) for other, sentence in entry.requires.items() if other not in used]
        for other, sentence in pairs:
            raise InvalidInput(sentence.format_map(values), option=(name, other))
