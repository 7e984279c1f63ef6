"""Lines that fit the terminal: its width, cut or wrapped text, and tables that become narrower."""

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
    """Return how many characters a line may have: the width of the terminal, from 40 to `widest`.

    For a file, or without a terminal, that is `widest`.
    """
    try:
        own = os.get_terminal_size((sys.stdout if out is None else out).fileno()).columns
    except (OSError, ValueError, AttributeError):  # there is no terminal, or it was closed
        own = 0
    return max(_NARROWEST, min(widest, own or widest))


def width_of(text: str) -> int:
    """Return how many columns a text takes; a wide character, such as a Chinese one, takes two.

    >>> width_of("clicks"), width_of("北京")
    (6, 4)
    """
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def cut(text: str, width: int) -> str:
    """Return a text cut to a width, ending in an ellipsis if it was longer.

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
    """Return a text in lines that fit the terminal, or `width`; lines after the first are indented by `rest`."""
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
    """Return a text with lines that fit the terminal; text of a table's last column continues below that column.

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
    r"""Return the lines of a table; if it is too wide, long cells are cut, then the columns `drop` are left out.

    Columns `right` are numbers: they are aligned right and never cut. In a file a table has its full width.

    >>> print(*table([("name", "n"), ("impressions per day", "3")], [1], width=14), sep="\n")
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
    """Return the cells of a row, cut or padded to their widths."""
    cells = []
    for i, width in wide.items():
        text = cut(row[i], width)
        blanks = " " * (width - width_of(text))
        cells.append(blanks + text if i in right else text + blanks)
    return gap.join(cells).rstrip()
