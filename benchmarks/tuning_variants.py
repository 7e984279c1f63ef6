"""The comparison of benchmarks/tuning.py on data that no constant was chosen on: other orders, units and seeds.

Each variant changes one thing of every stream it applies to, and both sides see the same rows:

- `order 1`, `order 2`: the rows shuffled;
- `features`: every feature times a power of ten of its own, from 0.01 to 100;
- `labels x 1000`, `labels / 1000`, `labels + 10 sd`: labels in another unit, or from another origin;
- `seed 1`, `seed 2`: generated streams and click logs with other seeds, and streams of other kinds.

    python benchmarks/tuning_variants.py --data DIR [--cache DIR] [--variants "order 1,features"] [--only bikes,bank]
                                         [--losses squared,hinge] [--clicks 200000] [--json PATH] [--markdown PATH]

The table has the ratio to the best of Vowpal Wabbit's settings, chosen for each variant, and in brackets the largest
ratio to the running baseline where that is above 1. With --json results are added to those of earlier calls.
Needs vowpalwabbit.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from passes import together
from tuning import SETS, measure
from tuning_streams import FRESH, STREAMS, written

from ftprl import data
from ftprl.data import Batch, clicks
from ftprl.training.passes import rows_of

GENERATED = STREAMS | FRESH
UNITS = ("squared", "absolute", "quantile", "huber")


@dataclass(frozen=True)
class Rows:
    """A stream in memory: what the comparison needs of a source."""

    rows: Batch

    def batches(self) -> Iterator[Batch]:
        """All rows."""
        yield self.rows


def shuffled(seed: int) -> Callable[[Batch], Batch]:
    """The rows in another order."""
    return lambda rows: rows_of(rows, np.random.default_rng(seed).permutation(len(rows)))


def other_features(rows: Batch) -> Batch:
    """Each feature times a power of ten of its own."""
    cells, at = np.unique(rows.indices, return_inverse=True)
    unit = 10.0 ** np.random.default_rng(1).uniform(-2.0, 2.0, len(cells))
    return replace(rows, values=(rows.values * unit[at]).astype(rows.values.dtype))


def other_labels(factor: float, spreads: float = 0.0) -> Callable[[Batch], Batch]:
    """Labels times a factor, plus so many standard deviations."""
    return lambda rows: replace(rows, y=factor * rows.y + spreads * float(np.std(rows.y)))


ORDERS: dict[str, Callable[[Batch], Batch]] = {"order 1": shuffled(1), "order 2": shuffled(2)}
LABELS: dict[str, Callable[[Batch], Batch]] = {
    "labels x 1000": other_labels(1000.0),
    "labels / 1000": other_labels(0.001),
    "labels + 10 sd": other_labels(1.0, 10.0),
}
SEEDS = {"seed 1": 1, "seed 2": 2}
VARIANTS = (*ORDERS, "features", *LABELS, *SEEDS)


def real(name: str, loss: str, folder: Path) -> Batch | None:
    """A real set as one batch; None where its file is absent."""
    file, _, options = SETS[name]
    path = folder / file
    return together(list(data.open(path, loss=loss, **options).batches())) if path.exists() else None


def generated(name: str, loss: str, seed: int, cache: Path, rows: int) -> Batch:
    """A generated stream, or a click log, with a seed."""
    path = cache / f"clicks-{rows}-{seed}.csv.gz"
    if name != "clicks":
        path = written(name, cache, 7 + seed)
    elif not path.exists():
        clicks.generate(rows, seed=1 + seed, path=path)
    source = data.open(path, label="click") if name == "clicks" else data.open(path, loss=loss, label="y")
    return together(list(source.batches()))


def changes(name: str, loss: str) -> Iterable[str]:
    """The variants of a stream with a loss."""
    if name not in SETS:
        return SEEDS
    labels = LABELS if loss in UNITS else list(LABELS)[:2] if loss == "poisson" else ()
    return (*ORDERS, "features", *labels)


def changed(variant: str, rows: Batch) -> Batch:
    """A real set, changed."""
    change = {**ORDERS, **LABELS, "features": other_features}[variant]
    return change(rows)


def streams(args: argparse.Namespace, known: Iterable[str]) -> Iterator[tuple[str, str, str, Batch]]:
    """Each variant, stream and loss that is wanted and not known yet, with its rows."""
    wanted, only, losses = (
        {part for part in text.split(",") if part} for text in (args.variants, args.only, args.losses)
    )
    cells = [(name, loss) for name, (_, some, _) in SETS.items() for loss in some]
    cells += [("clicks", "logistic"), *((name, loss) for name, (_, some) in GENERATED.items() for loss in some)]
    for name, loss in cells:
        if (only and name not in only) or (losses and loss not in losses):
            continue
        rows: Batch | None = None
        for variant in changes(name, loss):
            if f"{variant}: {name} {loss}" in known or (wanted and variant not in wanted):
                continue
            if name in SETS:
                rows = rows or real(name, loss, args.data)
                if rows is not None:
                    yield variant, name, loss, changed(variant, rows)
            else:
                yield variant, name, loss, generated(name, loss, SEEDS[variant], args.cache, args.clicks)


def shown(row: dict[str, Any] | None) -> str:
    """A cell of the table."""
    if row is None:
        return ""
    above = f" ({row['above_baseline']:.4f})" if row["above_baseline"] > 1.0 else ""
    return f"{row['ratio']:.4f}{above}"


def markdown(results: dict[str, dict[str, Any]]) -> str:
    """Two tables, real sets and generated streams, as docs/measurements.md has them."""
    lines = []
    for names, columns in ((list(SETS), VARIANTS[:-2]), (["clicks", *GENERATED], tuple(SEEDS))):
        lines += [f"| stream | loss | {' | '.join(columns)} |", "|---" * (2 + len(columns)) + "|"]
        for name in names:
            losses = SETS[name][1] if name in SETS else GENERATED[name][1] if name in GENERATED else ("logistic",)
            for loss in losses:
                cells = [shown(results.get(f"{variant}: {name} {loss}")) for variant in columns]
                lines.append(f"| {name} | {loss}{' 0.9' if loss == 'quantile' else ''} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Print each result; JSON and Markdown as well where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the real sets")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ftprl-tuning"))
    parser.add_argument("--clicks", type=int, default=200_000, help="rows of the synthetic click logs")
    parser.add_argument("--variants", default="", help="variants, with commas between")
    parser.add_argument("--only", default="", help="streams, with commas between")
    parser.add_argument("--losses", default="", help="losses, with commas between")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    results = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    for variant, name, loss, rows in streams(args, results):
        row = results[f"{variant}: {name} {loss}"] = measure(Rows(rows), loss, args.cache)
        print(
            f"{variant:15} {name:10} {loss:9} {row['ratio']:7.4f} {row['above_baseline']:7.4f}  {row['setting']}",
            flush=True,
        )
        if args.json:
            args.json.write_text(json.dumps(results, indent=1))
    ratios = [row["ratio"] for row in results.values()]
    above = sorted(((row["ratio"], key) for key, row in results.items() if row["ratio"] > 1.01), reverse=True)
    over = sorted(
        ((row["above_baseline"], key) for key, row in results.items() if row["above_baseline"] > 1.01), reverse=True
    )
    print(f"{len(ratios)} cells, {sum(ratio < 1 for ratio in ratios)} below 1, worst {max(ratios, default=0.0):.4f}")
    print("above 1.01:", *(f"{key} {ratio:.4f};" for ratio, key in above))
    print("above the baseline:", *(f"{key} {ratio:.4f};" for ratio, key in over))
    if args.markdown:
        args.markdown.write_text(markdown(results))


if __name__ == "__main__":
    main()
