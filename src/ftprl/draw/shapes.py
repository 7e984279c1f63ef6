"""What can be drawn, as plain data: lines, columns, bars, and the axes they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from numpy.typing import ArrayLike

# Okabe and Ito's colours, which most colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# From light to dark, for things that have an order: it survives grey.
RAMP = ("#D6E6F4", "#B5D3E9", "#8EBCDB", "#649FCA", "#4082B6", "#24669F", "#134C82", "#0A3362")
MARKS = "osD^vPX"


@final
@dataclass(frozen=True, eq=False)
class Series:
    """One line: `dashed` for bounds, so that what happened and what was promised look different.

    `points` shows a mark at each point, `line=False` the marks alone. Marks differ from line to line, so that colours
    are not needed to tell them apart. `shade` takes a colour of the ramp instead, for lines that have an order; `thin`
    draws less of what only stands behind, `wide` what another line may run over.
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


@final
@dataclass(frozen=True, eq=False)
class Columns:
    """Upright bars around `x`, all of one `width`; `faint` ones stand behind the lines, `hollow` ones are outlines."""

    name: str
    x: ArrayLike
    y: ArrayLike
    width: float = 0.8
    colour: int | None = None
    faint: bool = False
    hollow: bool = False


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of axes with its lines; `log` makes both scales logarithmic, "x" or "y" one of them.

    `note` is written into a corner: a fitted slope, a constant. `stacked` puts the lines on top of one another, as
    areas. `marks` are upright lines with a word each, `ticks` the names of places on the x axis; `xlim` and `ylim` are
    the ends of the axes where the data should not decide.
    """

    title: str
    xlabel: str
    ylabel: str
    series: Sequence[Series | Columns]
    log: bool | Literal["x", "y"] = False
    note: str = ""
    stacked: bool = False
    marks: Sequence[tuple[float, str]] = ()
    ticks: Sequence[tuple[float, str]] = ()
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None


@final
@dataclass(frozen=True)
class Bar:
    """One bar: its name, its length, its colour, what is written at its end, and a hatch that tells it without hue."""

    name: str
    value: float
    colour: int = 0
    text: str = ""
    hatch: str = ""
