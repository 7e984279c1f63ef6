"""Descriptions of figures as data: lines, columns, and the axes that contain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from numpy.typing import ArrayLike

# Okabe and Ito's colours, which most colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# From light to dark, for ordered series; also readable in greyscale.
RAMP = ("#D6E6F4", "#B5D3E9", "#8EBCDB", "#649FCA", "#4082B6", "#24669F", "#134C82", "#0A3362")
MARKERS = "osD^vPX"


@final
@dataclass(frozen=True, eq=False)
class Series:
    """One line of a plot; bounds are `dashed`, to distinguish them from measurements.

    `points` draws markers, `line=False` markers only. Markers differ from line to line, so that lines can be told apart
    without colours. `shade` takes a colour of the sequential ramp, for lines that have an order; `thin` is for lines in
    the background, `wide` for lines that another line may cover.
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    dashed: bool = False
    colour: int | None = None
    points: bool = False
    line: bool = True
    shade: int | None = None
    thin: bool = False
    wide: bool = False


def error_bars(name: str, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> list[Series]:
    """Return a thin upright line from `low` to `high` at each x; the first one has the name for the legend."""
    ends = zip(x, low, high, strict=True)
    return [Series(name if i == 0 else "", [a, a], [b, c], colour=0, thin=True) for i, (a, b, c) in enumerate(ends)]


@final
@dataclass(frozen=True, eq=False)
class Columns:
    """Upright bars around `x`, all of one `width`; `faint` ones are in the background."""

    name: str
    x: ArrayLike
    y: ArrayLike
    width: float = 0.8
    colour: int | None = None
    faint: bool = False


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes with its lines; `log` makes both scales logarithmic, "x" or "y" one of them.

    `note` is written into a corner: a fitted slope, a constant. `stacked` draws a stacked area plot. `vlines` are
    vertical lines with a label each, `ticks` labels of the x axis; `xlim` and `ylim` are fixed limits of the axes.
    `legend` is where the names of the lines stand: inside the axes where there is most room, beside or below them.
    """

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series | Columns]
    log: bool | Literal["x", "y"] = False
    note: str = ""
    stacked: bool = False
    vlines: Sequence[tuple[float, str]] = ()
    ticks: Sequence[tuple[float, str]] = ()
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    legend: Literal["inside", "beside", "below"] = "inside"
