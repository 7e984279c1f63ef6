"""A small HTML table of names and values under a title, as notebooks show objects, for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_STYLE = "border-collapse:collapse;font-size:13px;line-height:1.45;margin:4px 0"
_TITLE = "text-align:left;font-weight:600;padding:2px 12px 4px 0;border-bottom:1px solid currentColor"
_NAME = "text-align:left;opacity:.7;padding:2px 16px 2px 0;vertical-align:top"
_VALUE = "text-align:left;padding:2px 0;font-variant-numeric:tabular-nums"


def card(title: str, rows: Sequence[tuple[str, str]], note: str = "") -> str:
    """Return the table as HTML, in the colours of the page.

    >>> "a &lt; b" in card("Model", [("rule", "a < b")])
    True
    """
    lines = [f'<tr><th colspan="2" style="{_TITLE}">{escape(title)}</th></tr>']
    lines += [
        f'<tr><td style="{_NAME}">{escape(name)}</td><td style="{_VALUE}">{escape(value)}</td></tr>'
        for name, value in rows
    ]
    below = f'<div style="font-size:12px;opacity:.7">{escape(note)}</div>' if note else ""
    return f'<table style="{_STYLE}">{"".join(lines)}</table>{below}'
