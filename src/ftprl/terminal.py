"""Lines that fit the terminal: its width, text that is cut or wrapped, and tables that become narrower."""

from __future__ import annotations

import os
import sys
import textwrap
import unicodedata
from collections.abc import Collection, Sequence
from typing import TextIO

WIDEST, _NARROWEST = 118, 40
UNLIMITED = 1 << 30


def columns(out: TextIO | None = None, widest: int = WIDEST) -> int:
    """Return how many characters a line may have: as many as the terminal has, from 40 to `widest`.

    In a file, and where there is no terminal, that is `widest`.
    """
    try:
        own = os.get_terminal_size((sys.stdout if out is None else out).fileno()).columns
    except (OSError, ValueError, AttributeError):  # no terminal, or none any more
        own = 0
    return max(_NARROWEST, min(widest, own or widest))


def width_of(text: str) -> int:
    """Return how many columns a text takes: two for each wide character, such as those of Chinese."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def cut(text: str, width: int) -> str:
    """Return the beginning of a text that is too wide, with an ellipsis.

    >>> cut("impressions", 8), cut("clicks", 8), cut("北京市东城区", 8)
    ('impre...', 'clicks', '北京...')
    """
    if width_of(text) <= width:
        return text
    kept = text[:width]
    while width_of(kept) > width - 3:
        kept = kept[:-1]
    return f"{kept}..."


def wrapped(text: str, indent: int = 0, rest: int | None = None, width: int | None = None) -> list[str]:
    """Return a text in lines that fit the terminal, or `width`; those behind the first are indented by `rest`."""
    blanks = " " * (indent if rest is None else rest)
    return textwrap.wrap(
        text,
        width or columns(widest=UNLIMITED),
        initial_indent=" " * indent,
        subsequent_indent=blanks,
        break_long_words=False,
        break_on_hyphens=False,
    )


def fitted(text: str, width: int | None = None) -> str:
    """Return a text whose lines fit the terminal: what is behind the last column of a table stays below itself.

    >>> print(fitted("loss  3  of all the rows", 18))
    loss  3  of all
             the rows
    """
    width = columns(widest=UNLIMITED) if width is None else width
    lines = []
    for line in text.split("\n"):
        at = line.rfind("  ") + 2
        last = at if 1 < at <= width * 2 // 3 else len(line) - len(line.lstrip()) + 4
        lines += [line] if width_of(line) <= width else wrapped(line, 0, last, width)
    return "\n".join(lines)


def table(
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    *,
    drop: Sequence[int] = (),
    width: int | None = None,
    least: int = 10,
    gap: str = "  ",
) -> list[str]:
    """Return the lines of a table: where it is too wide, long cells are cut, then the columns `drop` are left out.

    Columns `right` are numbers: they stand at the right and are never cut. In a file a table is as wide as it is.

    >>> print(*table([("name", "n"), ("impressions per day", "3")], [1], width=14), sep="\\n")
    name         n
    impressi...  3
    """
    width = columns(widest=UNLIMITED) if width is None else width
    kept, left_out = list(range(len(rows[0]))), list(drop)
    while True:
        wide = {i: max(width_of(row[i]) for row in rows) for i in kept}
        while (over := sum(wide.values()) + len(gap) * (len(kept) - 1) - width) > 0:
            widest = max((i for i in kept if i not in right), key=wide.__getitem__, default=None)
            if widest is None or wide[widest] <= least:
                break
            others = sorted((wide[i] for i in kept if i not in right), reverse=True)
            level = others[1] if len(others) > 1 and others[1] < wide[widest] else wide[widest] - 1
            wide[widest] = max(least, level, wide[widest] - over)
        if over <= 0 or not left_out:
            return [_line(row, wide, right, gap) for row in rows]
        kept.remove(left_out.pop(0))


def _line(row: Sequence[str], wide: dict[int, int], right: Collection[int], gap: str) -> str:
    cells = []
    for i, width in wide.items():
        text = cut(row[i], width)
        blanks = " " * (width - width_of(text))
        cells.append(blanks + text if i in right else text + blanks)
    return gap.join(cells).rstrip()
