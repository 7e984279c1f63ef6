"""Named series become a Matplotlib figure: the one place that draws."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = "osD^vPX"


@final
@dataclass(frozen=True, eq=False)
class Series:
    """One line: `dashed` for bounds, so that what happened and what was promised look different.

    `points` shows a mark at each point, `line=False` the marks alone. Marks differ from line to line, so that colours
    are not needed to tell them apart.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    dashed: bool = False
    colour: int | None = None
    points: bool = False
    line: bool = True


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes with its lines; `log` makes both scales logarithmic, "x" or "y" one of them.

    `note` is written into a corner: a fitted slope, a constant.
    """

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series]
    log: bool | Literal["x", "y"] = False
    note: str = ""


@final
@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length, its colour, and what is written at its end."""

    name: str
    value: float
    colour: int = 0
    text: str = ""


def bars(title: str, xlabel: str, items: Sequence[Bar], width: float = 9.0) -> Figure:
    """Horizontal bars from top to bottom, their lengths on a logarithmic scale."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, 1.3 + 0.42 * len(items)), layout="constrained")
    ax = fig.subplots()
    places = np.arange(len(items))[::-1]
    lengths = [bar.value for bar in items]
    ax.barh(places, lengths, height=0.66, color=[COLOURS[bar.colour % len(COLOURS)] for bar in items])
    for place, bar in zip(places, items, strict=True):
        ax.annotate(
            bar.text, (bar.value, place), (5, 0), textcoords="offset points", va="center", fontsize=9, parse_math=False
        )
    ax.set_xscale("log")
    ax.set_xlim(min(lengths) / 3.0, max(lengths) * 6.0)  # room for the text of the longest
    ax.set_yticks(places, [bar.name for bar in items], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(xlabel)
    _finish(ax, title)
    ax.grid(visible=False, axis="y")
    return fig


def figure(panels: Sequence[Panel], width: float = 7.0, height: float = 4.2) -> Figure:
    """Panels side by side; save with `figure.savefig(path)`."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width * len(panels), height), layout="constrained")
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw(ax, panel)
    return fig


def svg(fig: Figure, name: str) -> str:
    """The figure as an SVG element for a page: the same bytes each time, text as text, ids that begin with `name`.

    Ids must differ from figure to figure, since a page may hold many.
    """
    import matplotlib

    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        fig.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    return text[text.index("<svg") :]


def _draw(ax: Axes, panel: Panel) -> None:
    for i, s in enumerate(panel.series):
        colour = COLOURS[(i if s.colour is None else s.colour) % len(COLOURS)]
        y = np.asarray(s.y, dtype=float)
        shown = np.where(y > 0, y, np.nan) if panel.log in (True, "y") else y
        ax.plot(
            s.x,
            shown,
            label=f"line {i}",
            color=colour,
            linestyle=("--" if s.dashed else "-") if s.line else "",
            linewidth=1.4 if s.dashed else 2.0,
            marker=MARKS[i % len(MARKS)] if s.points or not s.line else "",
            markersize=5,
        )
    if panel.log in (True, "x"):
        ax.set_xscale("log")
    else:
        ax.margins(x=0.01)
    if panel.log in (True, "y"):
        ax.set_yscale("log")
    if panel.note:
        ax.annotate(
            panel.note, (0.98, 0.03), xycoords="axes fraction", ha="right", va="bottom", fontsize=9, parse_math=False
        )
    ax.set_xlabel(panel.xlabel)
    ax.set_ylabel(panel.ylabel)
    _finish(ax, panel.title)
    legend = ax.legend(frameon=False, fontsize=9)
    for text, s in zip(
        legend.get_texts(), panel.series, strict=True
    ):  # names may come from data: show them as they are
        text.set_text(s.name)
        text.set_parse_math(False)


def _finish(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=11)
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
