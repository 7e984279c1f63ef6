"""Convert text to HTML; all text from data is escaped here."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ftprl.data.files import shown

MOST_ROWS = 400  # of a longer table the first and last rows are shown
MOST_LETTERS = 2000  # of a name


def esc(text: object) -> str:
    r"""Return any text escaped for HTML, in one line.

    >>> esc("<b> & \n")
    '&lt;b&gt; &amp; \\n'
    """
    whole = str(text)
    return html.escape(shown(whole if len(whole) <= MOST_LETTERS else whole[:MOST_LETTERS] + "…"))


def tag(name: str, *inside: str, **attributes: str) -> str:
    """Return an element; `inside` is HTML already, attributes are text (`class_` is class, `a_b` is a-b).

    >>> tag("a", "here", href="x.html", class_="link")
    '<a href="x.html" class="link">here</a>'
    """
    written = "".join(f' {key.strip("_").replace("_", "-")}="{esc(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(inside)}</{name}>"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of text; all columns but the first are aligned to the right, as numbers are."""
    return _scroll(caption, tag("thead", tag("tr", *(tag("th", esc(h), scope="col") for h in head))), rows, "numbers")


def facts(caption: str, rows: Sequence[Sequence[str]]) -> str:
    """Return a table of names and values, without a head."""
    return _scroll(caption, "", rows, "facts")


def _scroll(caption: str, head: str, rows: Sequence[Sequence[str]], kind: str) -> str:
    """Return a table in a box that scrolls."""
    body = tag("tbody", *(_row(row) for row in _ends(rows)))
    inside = tag("table", tag("caption", esc(caption)), head, body, class_=kind)
    return tag("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _row(row: Sequence[str]) -> str:
    """Return a row of a table."""
    return tag("tr", tag("th", esc(row[0]), scope="row"), *(tag("td", esc(cell)) for cell in row[1:]))


def _ends(rows: Sequence[Sequence[str]]) -> Iterable[Sequence[str]]:
    """Return the rows, or the first and the last ones of a long table."""
    if len(rows) <= MOST_ROWS:
        return rows
    half = MOST_ROWS // 2
    left_out = [f"… {len(rows) - 2 * half:,} rows left out"]
    return [*rows[:half], left_out, *rows[-half:]]


def details(name: str, summary: str, inside: str) -> str:
    """Return a section that the reader can open.

    >>> details("more", "Numbers", tag("p", "1"))
    '<details id="more"><summary>Numbers</summary><p>1</p></details>'
    """
    return tag("details", tag("summary", esc(summary)), inside, id=name)
