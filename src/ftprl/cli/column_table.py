"""The table of columns that is printed before training and by `inspect`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ftprl.data.columns import order
from ftprl.data.files import shown
from ftprl.terminal import cut, table, wrapped

_MOST = 40  # columns shown at most
_HEAD = ("column", "kind", "example", "distinct", "missing", "features")
_WIDEST = {"column": 24, "kind": 12, "example": 36, "distinct": 8, "missing": 8, "features": 40}


def column_lines(profile: Sequence[Mapping[str, Any]], width: int) -> list[str]:
    """Return one line per column: its kind, an example or the range of its values, and counts of the sample."""
    rows = [tuple(_short(str(column[_KEYS.get(name, name)]), _WIDEST[name]) for name in _HEAD) for column in profile]
    lines = table([_HEAD, *rows[:_MOST]], (3, 4), drop=(3, 5, 4), width=width)
    return lines + ([f"and {len(rows) - _MOST} more columns"] if len(rows) > _MOST else [])


def kind_lines(columns: Mapping[str, str], width: int, most: int) -> list[str]:
    """Return one line per kind with the names of its columns."""
    lines = []
    for kind in order(columns):
        names = [shown(name) for name, own in columns.items() if own == kind]
        more = f" and {len(names) - most} more" if len(names) > most else ""
        lines += wrapped(f"{kind:<{width}} {', '.join(names[:most])}{more}", 0, width + 1)
    return lines


_KEYS = {"column": "name"}


def _short(text: str, width: int) -> str:
    """Return printable text cut to a width."""
    return cut(shown(text), width)
