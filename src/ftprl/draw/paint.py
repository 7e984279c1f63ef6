"""Draw panels as a Matplotlib figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ftprl.draw.numbers import short
from ftprl.draw.shapes import COLOURS, MARKERS, RAMP, Columns, Panel, Series
from ftprl.extras import extra_imports

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, PAPER = "#1B1F24", "#BFC5CD", "#FFFFFF"
_STYLE: dict[Any, Any] = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.8,
    "axes.labelsize": 10.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "grid.color": GRID,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
}
_CROWDED = 36  # total letters of the x axis' labels above which they are rotated
_MANY = 6  # with more names than this the legend is beside the axes


def figure(panels: Sequence[Panel], width: float = 7.0, height: float = 4.2, columns: int | None = None) -> Figure:
    """Return panels side by side, or in rows of `columns`; save with `figure.savefig(path)`."""
    with extra_imports:
        from matplotlib import rc_context

    from ftprl.draw.shown import ShownFigure

    across = min(columns or len(panels), len(panels))
    down = math.ceil(len(panels) / across)
    with rc_context(_STYLE):
        fig = ShownFigure(figsize=(width * across, height * down), layout="constrained")
        if down > 1:
            fig.set_layout_engine("constrained", w_pad=0.15, h_pad=0.15)
        axes = fig.subplots(down, across, squeeze=False).ravel()
        for ax, panel in zip(axes, panels, strict=False):
            _draw(ax, panel)
        for ax in axes[len(panels) :]:
            ax.set_axis_off()
    return fig


def printable(text: str) -> str:
    r"""Return text from data as one line that every format can hold.

    >>> printable("a\tb")
    'a\\tb'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _draw(ax: Axes, panel: Panel) -> None:
    """Draw one panel."""
    handles = _stack(ax, panel) if panel.stacked else [_shape(ax, i, s, panel) for i, s in enumerate(panel.series)]
    _axes(ax, panel)
    _mark(ax, panel)
    if panel.note:
        ax.annotate(
            printable(panel.note),
            (0.98, 0.03),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            fontsize=9,
            parse_math=False,
        )
    ax.set_xlabel(printable(panel.xlabel), parse_math=False)
    ax.set_ylabel(printable(panel.ylabel), parse_math=False)
    _finish(ax, panel.title, pad=18.0 if panel.vlines else 6.0)
    _legend(ax, handles, panel)


def _mark(ax: Axes, panel: Panel) -> None:
    """Draw vertical lines with labels above the axes; a label that would overlap the previous one is left out."""
    before = -1.0
    for position, word in panel.vlines:
        across = float((ax.transData + ax.transAxes.inverted()).transform((position, ax.get_ylim()[0]))[0])
        if not 0.0 <= across <= 1.0:
            continue
        ax.axvline(position, color=INK, linewidth=0.8, linestyle=":", alpha=0.8)
        if across - before > 0.02 * len(word):
            before = across
            ax.annotate(
                printable(word),
                (across, 1.0),
                (0, 3),
                xycoords="axes fraction",
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
                parse_math=False,
            )


def _shape(ax: Axes, i: int, s: Series | Columns, panel: Panel) -> Any:
    """Draw one line or one set of bars, and return it for the legend."""
    colour = COLOURS[(i if s.colour is None else s.colour) % len(COLOURS)]
    if isinstance(s, Columns):
        return ax.bar(s.x, s.y, s.width, color=GRID if s.faint else colour, alpha=0.6 if s.faint else 0.9)
    y = np.asarray(s.y, dtype=float)
    (drawn,) = ax.plot(
        s.x,
        np.where(y > 0, y, np.nan) if panel.log in (True, "y") else y,
        color=colour if s.shade is None else RAMP[s.shade % len(RAMP)],
        linestyle=("--" if s.dashed else "-") if s.line else "",
        linewidth=1.4 if s.dashed or s.thin else 4.0 if s.wide else 2.0,
        alpha=0.75 if s.thin else None,
        marker=MARKERS[i % len(MARKERS)] if s.points or not s.line else "",
        markersize=3.5 if s.thin else 5,
    )
    return drawn


def _stack(ax: Axes, panel: Panel) -> list[Any]:
    """Draw a stacked area plot and return its areas for the legend."""
    lines = [s for s in panel.series if isinstance(s, Series)]
    colours = [
        RAMP[s.shade % len(RAMP)] if s.shade is not None else COLOURS[(i if s.colour is None else s.colour) % 7]
        for i, s in enumerate(lines)
    ]
    heights = [np.nan_to_num(np.asarray(s.y, dtype=float)) for s in lines]
    return list(ax.stackplot(lines[0].x, *heights, colors=colours, linewidth=0)) if lines else []


def _axes(ax: Axes, panel: Panel) -> None:
    """Set scales, limits and ticks of both axes."""
    from matplotlib.ticker import FuncFormatter

    if panel.log in (True, "x"):
        ax.set_xscale("log")
    else:
        ax.margins(x=0.01)
    if panel.log in (True, "y"):
        ax.set_yscale("log")
    if panel.stacked:
        ax.margins(x=0.0)
    if panel.xlim is not None:
        ax.set_xlim(*panel.xlim)
    if panel.ylim is not None:
        ax.set_ylim(*panel.ylim)
    for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        if axis.get_scale() == "log":
            _log_ticks(axis, ends)
    if panel.ticks:
        names = [printable(name) for _, name in panel.ticks]
        upright: dict[str, Any] = {"rotation": 90, "fontsize": 8.5}  # if labels have no room side by side
        is_crowded = sum(map(len, names)) > _CROWDED
        ax.set_xticks([x for x, _ in panel.ticks], names, parse_math=False, **(upright if is_crowded else {}))
        ax.tick_params(axis="x", length=0)


def _log_ticks(axis: Any, ends: tuple[float, float]) -> None:
    """Set ticks at powers of ten; a short axis also has numbers between them."""
    from matplotlib.ticker import LogLocator, NullLocator

    few = ends[0] > 0 and ends[1] / ends[0] < 50
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=9))
    axis.set_minor_locator(NullLocator())


def _legend(ax: Axes, handles: list[Any], panel: Panel) -> None:
    """Draw the legend where the panel wants it."""
    pairs = [(handle, s.name) for handle, s in zip(handles, panel.series, strict=bool(handles)) if s.name]
    if not pairs:
        return
    if panel.stacked:  # from top to bottom as the areas are
        pairs = pairs[::-1]
    place: dict[str, Any] = {}
    if panel.legend == "below":
        place = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "ncols": 2, "handlelength": 1.6}
    elif panel.legend == "beside" or panel.stacked or len(pairs) > _MANY:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "handlelength": 1.0}
    legend = ax.legend(
        [handle for handle, _ in pairs],
        [f"line {i}" for i in range(len(pairs))],
        frameon=False,
        fontsize=9,
        **place,
    )
    for text, (_, name) in zip(legend.get_texts(), pairs, strict=True):
        text.set_text(printable(name))  # names may come from data: no formatting in them
        text.set_parse_math(False)


def _finish(ax: Axes, title: str, pad: float = 6.0) -> None:
    """Set the title and the grid."""
    ax.set_title(printable(title), fontsize=11, parse_math=False, pad=pad)
    ax.grid(alpha=0.55, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
