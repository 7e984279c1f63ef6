"""Draw docs/figures/result.svg, the first figure of README: `python docs/figures/result.py`.

Left: the progressive loss of single learning-rate scales, and of the default, which needs none. Right: the loss over
the rows, with the limit that the receipt proves for the model's own weights. A synthetic click log of 200,000 rows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import ftprl
from ftprl.draw import Panel, Series, figure
from ftprl.draw.vector import svg

HERE = Path(__file__).parent
ROWS, SCALES = 200_000, np.geomspace(0.005, 2, 14)


def base_rate_loss(path: Path) -> np.ndarray:
    """Mean log loss so far of predicting each row by the click rate of the rows before it."""
    clicked = np.concatenate([batch.y for batch in ftprl.data.open(path, label="click").batches()]) > 0
    rows = np.arange(len(clicked))
    rate = (np.cumsum(clicked) - clicked + 0.5) / (rows + 1)
    return np.cumsum(-np.log(np.where(clicked, rate, 1 - rate))) / (rows + 1)


def tuning(path: Path, default: float, baseline: float) -> Panel:
    """Loss against the scale, and the two horizontal lines to compare with."""
    losses = [ftprl.train(path, label="click", scale=float(h)).progressive_loss for h in SCALES]
    ends = SCALES[[0, -1]]
    series = [
        Series("one scale, set by hand", SCALES, losses, points=True),
        Series("ftprl's default: nothing to set", ends, [default] * 2, wide=True),
        Series("baseline: the click rate alone", ends, [baseline] * 2, dashed=True, colour=6),
    ]
    return Panel(
        "No learning rate to tune", "learning-rate scale", "log loss per row", series, log="x", ylim=(0.47, 0.68)
    )


def receipt(run: ftprl.Run, baseline: np.ndarray) -> Panel:
    """Loss over the rows, and what the bound proves: loss minus bound is a lower limit for the weights held fixed."""
    progress = [event for event in run.events if event["event"] in ("progress", "end") and event["rows"] >= 256]
    rows = [event["rows"] for event in progress if "loss" in event]
    certified = [event for event in progress if "receipt" in event]
    at = [event["rows"] for event in certified]
    limit = [(event["receipt"]["loss"] - event["receipt"]["bound"]) / event["receipt"]["weight"] for event in certified]
    series = [
        Series("ftprl's predictions", rows, [e["loss"] for e in progress if "loss" in e], wide=True, colour=1),
        Series("proved limit for its own weights, held fixed", at, limit, points=True, colour=2),
        Series("baseline: the click rate alone", rows, baseline[np.array(rows) - 1], dashed=True, colour=6),
    ]
    return Panel("A receipt: how much better could it have been?", "rows", "log loss per row", series, log="x")


def main() -> None:
    """Train fifteen models (about half a minute) and draw."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clicks.csv.gz"
        ftprl.data.clicks.generate(ROWS, seed=1, path=path)
        run = ftprl.train(path, label="click", receipt=True)
        baseline = base_rate_loss(path)
        panels = [tuning(path, run.progressive_loss, float(baseline[-1])), receipt(run, baseline)]
    fig = figure(panels, width=5.6, height=3.9)
    (HERE / "result.svg").write_text(svg(fig, label="Loss against learning-rate scale, and loss against rows"))


if __name__ == "__main__":
    main()
