"""Horizontal bars with their numbers, on a logarithmic scale: the figures of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from ftprl.draw import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@final
@dataclass(frozen=True)
class Bar:
    """One bar: its name, length, colour, the text at its end, and a hatch that distinguishes it without colour."""

    name: str
    value: float
    colour: int = 0
    text: str = ""
    hatch: str = ""


def bars(title: str, xlabel: str, items: Sequence[Bar], width: float = 9.0) -> Figure:
    """Draw bars from top to bottom, their lengths on a logarithmic scale."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, 1.3 + 0.42 * len(items)), layout="constrained")
    ax = fig.subplots()
    positions = np.arange(len(items))[::-1]
    lengths = [bar.value for bar in items]
    colours, hatches = [COLOURS[bar.colour % len(COLOURS)] for bar in items], [bar.hatch for bar in items]
    ax.barh(positions, lengths, height=0.66, color=colours, hatch=hatches, edgecolor="#FFFFFF", linewidth=0)
    for position, bar in zip(positions, items, strict=True):
        end = {"xy": (bar.value, position), "xytext": (5, 0), "textcoords": "offset points"}
        ax.annotate(bar.text, **end, va="center", fontsize=9, parse_math=False)
    ax.set_xscale("log")
    ax.set_xlim(min(lengths) / 3.0, max(lengths) * 6.0)  # room for the text of the longest
    ax.set_yticks(positions, [bar.name for bar in items], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(xlabel)
    ax.set_title(title, fontsize=11, parse_math=False, pad=6.0)
    ax.grid(visible=True, axis="x", alpha=0.55, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return fig
