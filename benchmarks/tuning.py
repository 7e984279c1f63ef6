"""Without tuning against with: one pass of the default against the best of Vowpal Wabbit's settings, for every loss.

For each stream and loss the progressive loss (every row is predicted before it is learned) of the default, of the best
of 29 settings of Vowpal Wabbit (20 where labels are two classes), its name, the ratio of the two, and the loss of the
running baseline: the base rate, mean, median, quantile or majority of the labels before each row. Two checks: a ratio
of at most 1.01, and a loss of the rows after the 1,000th that is never more than 1 % above the baseline's on the same
rows, from 1,000 such rows on.

Both sides see the same features: rows are read once, and their cells and values are written as VW text. Predictions of
both are judged by the same formulas: (p - y)^2, |p - y|, pinball loss at 0.9, Huber loss with delta 1, the Poisson
deviance, hinge and log loss. Streams that are not in the folder are left out, and the last line says so.

    python benchmarks/tuning.py --data DIR [--cache DIR] [--clicks 200000] [--only bikes,bank] [--losses squared,hinge]
                                [--json PATH] [--markdown PATH]

Needs vowpalwabbit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tuning_streams import STREAMS, written
from tuning_vw import BITS, best

from ftprl import data
from ftprl.data import Batch, clicks
from ftprl.linear import Engine, Spec
from ftprl.linear.totals import LossTotals

Vector = NDArray[np.float64]
UNITS = ("squared", "absolute", "quantile", "huber")
SETS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "diamonds": ("diamonds.csv.gz", UNITS, {"label": "price"}),
    "bikes": ("bikes.csv.gz", (*UNITS, "poisson"), {"label": "bikers", "categorical": ["season", "hr", "weekday"]}),
    "visits": ("visits.csv.gz", (*UNITS, "poisson"), {"label": "mdvis"}),
    "a9a": ("a9a.libsvm.gz", ("logistic", "hinge"), {}),
    "bank": ("bank.csv.gz", ("logistic", "hinge"), {"label": "y", "sep": ";"}),
    "sms": (
        "sms.tsv.gz",
        ("logistic", "hinge"),
        {"header": False, "label": "1", "positive": "spam", "text": ["2"]},
    ),
    "criteo": ("criteo80k.vw.gz", ("logistic",), {}),
    "elec": ("elec.csv.gz", ("logistic",), {"label": "class"}),
    "rcv1": ("rcv1_small.vw.gz", ("logistic",), {}),
}
TAU = 0.9
LIMIT = 1.01
WORST = 1.05
SETTLED = 1000  # rows after which no loss may be more than 1 % above the baseline's, and rows to judge it by
EVERY = 100  # rows between two comparisons with the baseline


def row_losses(loss: str, p: Vector, y: Vector) -> Vector:
    """The loss of predictions p of labels y; with log loss and hinge loss p is a score."""
    d = np.abs(p - y)
    if loss == "logistic":
        return np.logaddexp(0.0, -y * p)
    if loss == "hinge":
        return np.maximum(0.0, 1.0 - y * p)
    if loss == "squared":
        return d * d
    if loss == "absolute":
        return d
    if loss == "quantile":
        return np.where(y > p, TAU, 1.0 - TAU) * d
    if loss == "huber":
        return np.where(d <= 1.0, 0.5 * d * d, d - 0.5)
    mean = np.clip(p, 1e-300, 1e300)  # a setting may diverge
    return 2.0 * (np.where(y > 0.0, y * (np.log(np.maximum(y, 1e-300)) - np.log(mean)), 0.0) - (y - mean))


class Batches(Protocol):
    """What a comparison needs of a source: its rows, as often as it asks for them."""

    def batches(self) -> Iterator[Batch]: ...


def ours(source: Batches, loss: str) -> tuple[Vector, float, float]:
    """The loss of each row, the mean loss of the baseline, and the largest ratio to it from row 1,000 on."""
    more = {"tau": TAU} if loss == "quantile" else {}
    engine = Engine(Spec(scale="auto", dim=2**BITS, loss=loss, coin=True, dense=True, **more))
    losses, start, highest = [], None, 0.0
    for batch in source.batches():
        for rows in batch.cut(EVERY):
            scores = np.empty(len(rows))
            engine.learn(rows, scores=scores)
            predicted = np.exp(scores) if loss == "poisson" else scores
            losses.append(row_losses(loss, predicted, rows.y))
            now = engine.progress
            start = now if start is None and now.rows >= SETTLED else start
            if start is not None and now.rows >= start.rows + SETTLED:
                highest = max(highest, above_least(now, start))
    totals = engine.progress
    every = np.concatenate(losses)
    return every, float(np.mean(every)) / above_least(totals), highest


def above_least(now: LossTotals, start: LossTotals | None = None) -> float:
    """The loss of the rows since `start` to the baseline's, both above the least possible: 0 but for counts."""
    first = start or LossTotals(0.0, 0.0, 0, 0.0)
    least = now.least - first.least
    return (now.loss - first.loss - least) / (now.baseline - first.baseline - least)


def sources(folder: Path, cache: Path, rows: int, only: set[str], losses: set[str]) -> Iterator[tuple[str, str, Any]]:
    """Each stream and loss; a source, or None where its file is absent."""

    def wanted(name: str, some: tuple[str, ...]) -> list[str]:
        return [loss for loss in some if (not losses or loss in losses) and (not only or name in only)]

    for name, (file, some, options) in SETS.items():
        for loss in wanted(name, some):
            path = folder / file
            yield name, loss, data.open(path, loss=loss, **options) if path.exists() else None
    for loss in wanted("clicks", ("logistic",)):
        path = cache / f"clicks-{rows}.csv.gz"
        if not path.exists():
            clicks.generate(rows, seed=1, path=path)
        yield "clicks", loss, data.open(path, label="click")
    for name, (_, some) in STREAMS.items():
        for loss in wanted(name, some):
            yield name, loss, data.open(written(name, cache), loss=loss, label="y")


def measure(source: Batches, loss: str, cache: Path) -> dict[str, Any]:
    """One row of the table."""
    y = np.concatenate([batch.y for batch in source.batches()])
    means = best(source.batches(), loss, lambda p: row_losses(loss, p, y), cache)
    setting = min(means, key=means.__getitem__)
    losses, baseline, highest = ours(source, loss)
    mine = float(np.mean(losses))
    return {
        "rows": len(y),
        "ours": mine,
        "vw": means[setting],
        "setting": setting or "default",
        "ratio": mine / means[setting],
        "baseline": baseline,
        "above_baseline": highest,
    }


def verdict(row: dict[str, Any]) -> str:
    """What a row of the table amounts to."""
    text = "lower" if row["ratio"] < 1 else "within" if row["ratio"] <= LIMIT else "ABOVE"
    return text if row["above_baseline"] <= LIMIT else f"{text}, ABOVE THE BASELINE"


def markdown(table: dict[tuple[str, str], dict[str, Any]]) -> str:
    """The table as docs/measurements.md has it."""
    head = (
        "| stream | loss | rows | default | best of VW | setting of VW | ratio | baseline | to the baseline, at most |"
    )
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    for (name, loss), row in table.items():
        lines.append(
            f"| {name} | {loss}{' 0.9' if loss == 'quantile' else ''} | {row['rows']:,} | {row['ours']:.5g} |"
            f" {row['vw']:.5g} | `{row['setting']}` | **{row['ratio']:.4f}** | {row['baseline']:.5g} |"
            f" {format(row['above_baseline'], '.4f') if row['above_baseline'] else '-'} |"
        )
    return "\n".join(lines) + "\n"


def summary(table: dict[tuple[str, str], dict[str, Any]], absent: list[str]) -> str:
    """The last line: how many cells there are, and which miss a target."""
    above = [f"{name} {loss} {row['ratio']:.3f}" for (name, loss), row in table.items() if row["ratio"] > LIMIT]
    over = [f"{name} {loss}" for (name, loss), row in table.items() if row["above_baseline"] > LIMIT]
    lower = sum(row["ratio"] < 1 for row in table.values())
    worst = max((row["ratio"] for row in table.values()), default=float("nan"))
    text = f"{len(table)} cells, {lower} below 1, worst {worst:.3f} (limit {WORST})"
    text += f"; above {LIMIT}: {', '.join(above) or 'none'}; above the baseline: {', '.join(over) or 'none'}"
    return text + (f"; absent: {', '.join(absent)}" if absent else "")


def main() -> None:
    """Print the table; JSON and Markdown as well where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the real sets")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ftprl-tuning"))
    parser.add_argument("--clicks", type=int, default=200_000, help="rows of the synthetic click log")
    parser.add_argument("--only", default="", help="streams, with commas between")
    parser.add_argument("--losses", default="", help="losses, with commas between")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    only, losses = ({name for name in text.split(",") if name} for text in (args.only, args.losses))
    table: dict[tuple[str, str], dict[str, Any]] = {}
    absent: list[str] = []
    print(
        f"{'stream':10} {'loss':9} {'ours':>11} {'best VW':>11} {'ratio':>7} {'baseline':>11}  verdict, setting of VW"
    )
    for name, loss, source in sources(args.data, args.cache, args.clicks, only, losses):
        if source is None:
            absent.append(f"{name} {loss}")
            continue
        row = table[name, loss] = measure(source, loss, args.cache)
        numbers = f"{row['ours']:11.5g} {row['vw']:11.5g} {row['ratio']:7.4f} {row['baseline']:11.5g}"
        print(f"{name:10} {loss:9} {numbers}  {verdict(row)}, {row['setting']}", flush=True)
    print(summary(table, absent))
    if args.json:
        args.json.write_text(json.dumps({f"{name} {loss}": row for (name, loss), row in table.items()}, indent=2))
    if args.markdown:
        args.markdown.write_text(markdown(table))


if __name__ == "__main__":
    main()
