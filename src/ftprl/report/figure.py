"""A figure of a report, in words and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ftprl.draw import Panel

Cells = Sequence[Sequence[str]]


@final
@dataclass(frozen=True)
class Figure:
    """A figure with its caption and its numbers as a table; without a panel, `caption` is the reason."""

    name: str
    title: str
    caption: str
    panel: Panel | None = None
    head: Sequence[str] = ()
    rows: Cells = ()
