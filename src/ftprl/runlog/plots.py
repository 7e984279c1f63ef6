"""The two curves that every run has: what its rows cost, and how far that is from the best fixed weights."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from ftprl.draw import Panel, Series
from ftprl.losses import SCALAR_LOSSES
from ftprl.runlog.reader import Point, Told

# The lines of a receipt: from the regret on each is at most the next; the others are what could have been promised.
LINES = {
    "regret": "regret (linearised)",
    "bound": "bound: r + half the stability",
    "theorem": "theorem: r + stability",
    "post_hoc": "best rates in hindsight",
    "const": "best single rate in hindsight",
}


def marks(told: Told) -> list[tuple[float, str]]:
    """What changed on the way: a new pass, scales retired, a run taken up again."""
    words = {"retire": "scales retired", "resume": "resumed"}
    found = [(float(e["rows"]), words[e["event"]]) for e in told.others if e["event"] in words and _is_row(e)]
    turns = [(float(p.rows), f"pass {p.turn + 1}") for p in told.passes[:-1]]
    return sorted(set(found + turns))


def span(rows: Sequence[int]) -> tuple[float, float] | None:
    """The ends of the x axis: a long run is not about its first rows."""
    return (10.0, float(max(rows))) if rows and max(rows) >= 2000 else None


def _is_row(event: dict[str, object]) -> bool:
    rows = event.get("rows")
    return isinstance(rows, int) and not isinstance(rows, bool) and 0 < rows < 2**62


def loss(told: Told) -> Panel | None:
    """The mean loss of each row before it was learned, so far and since the last point; None without rows."""
    points = [p for p in told.points if p.loss is not None]
    ends = [p for p in told.passes if p.loss is not None]
    if not points and not ends:
        return None
    rows = [p.rows for p in points]
    lately = [math.nan if p.since is None else p.since for p in points]
    held = [math.nan if p.holdout is None else p.holdout for p in points]
    series = [
        Series("since the last point", rows, lately, colour=5, thin=True, points=True),
        _broken("mean of the pass so far" if len(told.passes) > 1 else "mean so far", points, ends),
    ]
    if any(map(math.isfinite, held)):
        series.append(Series("held-out rows", rows, held, colour=1, dashed=True))
    calm = [v for p, *vs in zip(points, lately, held, strict=True) if p.rows >= 32 for v in (p.loss, *vs)]
    unit = f"{_unit(told.loss)} a row"
    along = span([p.rows for p in (*points, *ends)])
    return Panel("Progressive loss", "rows", unit, series, log="x", marks=marks(told), xlim=along, ylim=_ends(calm))


def _broken(name: str, points: Sequence[Point], ends: Sequence[Point]) -> Series:
    """A line that is interrupted where a pass begins anew."""
    x: list[float] = []
    y: list[float] = []
    turn = 0
    for p in sorted([*points, *ends], key=lambda p: (p.rows, p.turn)):
        if turn not in (0, p.turn):
            x.append(float(p.rows))
            y.append(math.nan)
        turn = p.turn
        x.append(float(p.rows))
        y.append(math.nan if p.loss is None else p.loss)
    return Series(name, x, y, colour=0, points=len(x) == 1)


def _unit(name: str) -> str:
    loss = SCALAR_LOSSES.get(name)
    return "loss" if loss is None else loss.axis


def _ends(values: Sequence[float | None]) -> tuple[float, float] | None:
    """The ends of the y axis, with room, without the few wildest values."""
    known = sorted(v for v in values if v is not None and math.isfinite(v))
    if len(known) < 8:
        return None
    low, high = known[0], known[int(0.97 * (len(known) - 1))]
    room = 0.12 * (high - low)
    return (max(low - room, min(low, 0.0)), high + room) if room > 0.0 and math.isfinite(room) else None


def receipts(told: Told) -> list[Point]:
    """The points at which a receipt was told, the end among them."""
    found = [p for p in told.points if "regret" in p.receipt or "bound" in p.receipt]
    return found + [p for p in told.ends if p.receipt and p.rows > max((q.rows for q in found), default=0)]


def regret(told: Told) -> Panel | None:
    """The linearised regret under its bounds; None when no receipt was kept."""
    points = receipts(told)
    if not points:
        return None
    along = span([p.rows for p in points])
    points = [p for p in points if along is None or p.rows >= along[0]]
    rows = [p.rows for p in points]
    one = len(points) == 1
    series = [
        Series(
            name,
            rows,
            [p.receipt.get(key, math.nan) for p in points],
            dashed=key != "regret",
            colour=i,
            points=one,
            wide=key == "regret",  # it may lie on its bound
        )
        for i, (key, name) in enumerate(LINES.items())
        if any(key in p.receipt for p in points)
    ]
    above = [p.receipt["regret"] > 0.0 for p in points if "regret" in p.receipt and p.rows >= 32]
    both = bool(above) and sum(above) >= 0.9 * len(above)
    log: bool | Literal["x"] = True if both else "x"
    return Panel("Regret and its bounds", "rows", "total loss", series, log=log, marks=marks(told), xlim=along)
