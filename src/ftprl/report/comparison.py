"""A comparison of systems as an HTML page or a picture: running differences of losses, and tables."""

from __future__ import annotations

import posixpath
from typing import Literal

from ftprl import draw
from ftprl.draw import Panel, Series
from ftprl.evaluation.compare import Comparison, Curve, Difference
from ftprl.report.html import esc, table, tag
from ftprl.report.page import cards, drawn, frame

MOST_PANELS = 6
_SIZE = (4.8, 3.3)  # inches


def written(comparison: Comparison, form: Literal["html", "png", "svg"], data: str) -> bytes:
    """Return the page or the picture as bytes."""
    if form == "html":
        return page(comparison, data).encode("utf-8")
    return drawn(draw.figure(panels(comparison), *_SIZE), form, headline(comparison))


def headline(comparison: Comparison) -> str:
    """Return the first statement of the comparison."""
    return comparison.differences[0].text()


def panels(comparison: Comparison) -> list[Panel]:
    """Return the running difference of the first few pairs."""
    pairs = list(zip(comparison.differences, comparison.curves, strict=True))[:MOST_PANELS]
    return [_panel(difference, curve) for difference, curve in pairs]


def _panel(difference: Difference, curve: Curve) -> Panel:
    """Return the running difference of one pair."""
    keep = [i for i, row in enumerate(curve.rows) if row >= 100] or list(range(len(curve.rows)))
    rows = [float(curve.rows[i]) for i in keep]
    ends = [[values[i] for i in keep] for values in (curve.upper, curve.mean, curve.lower)]
    first, second = _short(difference.first), _short(difference.second)
    decided = [] if difference.decided is None else [(float(difference.decided), "decided")]
    return Panel(
        f"{first} against {second}",
        "rows",
        f"loss of {first} minus {second}, per row",
        [
            Series("95 % interval, at every row", rows, ends[0], colour=0, dashed=True, thin=True),
            Series("mean difference", rows, ends[1], colour=0),
            Series("", rows, ends[2], colour=0, dashed=True, thin=True),
            Series("no difference", rows, [0.0] * len(rows), colour=6, thin=True),
        ],
        log="x",
        vlines=decided,
        ylim=_limits(ends),
    )


def _limits(ends: list[list[float]]) -> tuple[float, float] | None:
    """Return limits for the second half of the curve, because the first intervals are very wide."""
    half = len(ends[0]) // 2
    low, high = min([0.0, *ends[2][half:]]), max([0.0, *ends[0][half:]])
    margin = 0.25 * (high - low)
    return (low - margin, high + margin) if margin > 0.0 else None


def _short(name: str) -> str:
    """Return the end of a long name.

    >>> _short("a" * 30)[:5], _short("model.ftprl")
    ('…aaaa', 'model.ftprl')
    """
    return name if len(name) <= 24 else f"…{name[-23:]}"


def page(comparison: Comparison, data: str) -> str:
    """Return the comparison as one self-contained HTML page."""
    statements = tag("ul", *(tag("li", esc(difference.text())) for difference in comparison.differences))
    inside = (
        tag("h1", esc(f"Comparison on {posixpath.basename(data) or data}"))
        + tag("p", esc(f"{comparison.rows:,} rows of {data}; {comparison.unit} per row."), class_="status")
        + tag(
            "p",
            esc(headline(comparison)),
            class_="verdict good" if comparison.differences[0].better else "verdict none",
        )
        + (statements if len(comparison.differences) > 1 else "")
        + cards(panels(comparison), "pair", _SIZE)
        + tag(
            "p",
            "Above 0 the second system is better, below 0 the first. The interval is valid at every row at once, so you"
            " may stop at any row. All statements of this page hold together with probability 95 %.",
        )
        + table("Mean loss of each system", ("system", "mean loss", "95 % interval", "rows cut"), _systems(comparison))
    )
    if comparison.slices:
        inside += table(
            f"By {comparison.by}",
            ("value", "rows", "loss of", "difference", "95 % interval", "better"),
            _slices(comparison),
        )
    return frame(tag("section", inside), "comparison", made_from="labels and predictions")


def _systems(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of systems."""
    rows = [
        [name, f"{interval.mean:.6g}", interval.ends(), f"{interval.cut_rows:,}"]
        for name, interval in zip(comparison.systems, comparison.losses, strict=True)
    ]
    return [*rows, ["baseline: labels alone", f"{comparison.baseline:.6g}", "–", "–"]]


def _slices(comparison: Comparison) -> list[list[str]]:
    """Return the rows of the table of slices."""
    return [
        [
            value,
            f"{rows:,}",
            f"{d.first} minus {d.second}",
            f"{d.interval.mean:.4g}",
            d.interval.ends(),
            d.better or "–",
        ]
        for value, rows, differences in comparison.slices
        for d in differences
    ]
