"""Draw named series as Matplotlib figures; all plots of the package come from here."""

from __future__ import annotations

from ftprl.draw.card import card
from ftprl.draw.paint import bars, figure
from ftprl.draw.shapes import COLOURS, MARKERS, RAMP, Bar, Columns, Panel, Series
from ftprl.draw.vector import SCHEMES, png, svg

__all__ = [
    "Bar",
    "COLOURS",
    "Columns",
    "MARKERS",
    "Panel",
    "RAMP",
    "SCHEMES",
    "Series",
    "bars",
    "card",
    "figure",
    "png",
    "svg",
]
