"""Rows as dicts: a list of them, an iterator, or lists in parts. A key that a dict lacks is a missing value."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from ftprl.data.frames import text_of
from ftprl.data.options import ReadingOptions, column_name
from ftprl.data.parts import Parts, are_records
from ftprl.data.protocol import Source
from ftprl.data.tables import NamedColumns

MOST_NAMES = 5000  # whose kinds are kept in the model


def accepts(data: Any) -> bool:
    """Whether data is a list or an iterator of dicts, or has parts of which the first is a list of dicts."""
    return isinstance(data, Parts) and (isinstance(data.first, Mapping) or are_records(data.sample))


def open_object(data: Any, options: ReadingOptions) -> Source:
    """Dicts as a source."""
    from ftprl.data.frame_opening import open_records

    return open_records(data, options)


def decide(sample: Sequence[Any], named: NamedColumns) -> dict[str, str]:
    """The kinds of the keys in the first rows: as named, else numeric when all values are numbers, else categorical.

    Rows with more names than a model keeps, such as counts of words, are read by the type of each value alone.
    """
    kinds = named.kinds()
    numeric: dict[str, bool] = {}
    for row in sample:
        for key, value in row.items() if isinstance(row, Mapping) else ():
            if value is not None and value == value:
                name = key if isinstance(key, str) else column_name(key)
                numeric[name] = numeric.get(name, True) and _is_number(value)
    if len(numeric) > MOST_NAMES:
        return kinds
    return {**{name: "numeric" if is_number else "categorical" for name, is_number in numeric.items()}, **kinds}


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool) and type(value).__name__ != "bool"


def label_texts(sample: Sequence[Any], label: str) -> list[str]:
    """The distinct labels of the first rows."""
    values = (row.get(label) for row in sample if isinstance(row, Mapping))
    return list(dict.fromkeys(text_of(value) for value in values if value is not None and value == value))[:32]
