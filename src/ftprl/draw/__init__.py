"""Draw named series as Matplotlib figures; all plots of the package come from here."""

from __future__ import annotations

from ftprl.draw.card import card
from ftprl.draw.paint import figure
from ftprl.draw.shapes import COLOURS, MARKERS, RAMP, Columns, Panel, Series, error_bars
from ftprl.draw.vector import SCHEMES, png, svg

__all__ = [
    "COLOURS",
    "Columns",
    "MARKERS",
    "Panel",
    "RAMP",
    "SCHEMES",
    "Series",
    "card",
    "error_bars",
    "figure",
    "png",
    "svg",
]
