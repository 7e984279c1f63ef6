"""The figure of an experiment as bytes, drawn in the process of the experiment because drawing is slow."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from ftprl import draw
from ftprl.draw import Panel


@final
@dataclass(frozen=True)
class Picture:
    """A figure as an SVG element and as a PNG file."""

    svg: str
    png: bytes

    @property
    def svg_file(self) -> bytes:
        """Return the SVG element as a file of its own."""
        return ('<?xml version="1.0" encoding="utf-8"?>\n' + self.svg).encode()


def picture(name: str, panels: Sequence[Panel]) -> Picture | None:
    """Return the panels side by side, in print size; None if there are none."""
    if not panels:
        return None
    wide = len(panels) == 1
    figure = draw.figure(panels, width=7.2 if wide else 5.4, height=4.0, columns=2)  # for print
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150)
    return Picture(draw.svg(figure, name), out.getvalue())
