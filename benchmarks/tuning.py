"""Without tuning against with: one pass of the default against the best of twenty settings of Vowpal Wabbit.

For each set the progressive log loss (every row is predicted before it is learned) of the default, of the best of the
twenty, its name, and the ratio of the two. The target: a ratio of at most 1.01 on every set, below 1 on half of them.
Both sides see the same features: the rows are read once, and their cells and values are written as VW text. Sets that
are not in the folder are left out, and the last line says so. Vowpal Wabbit's side is kept in the cache.

    python benchmarks/tuning.py --data DIR [--cache DIR] [--clicks 200000] [--only bank,elec] [--json PATH]

Needs vowpalwabbit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from vowpalwabbit import __version__ as vw_version
from vowpalwabbit import pyvw

from ftprl import data
from ftprl.data import Batch, clicks
from ftprl.linear import Engine, Spec

SETS: dict[str, tuple[str, dict[str, Any]]] = {
    "criteo": ("criteo80k.vw.gz", {}),
    "a9a": ("a9a.libsvm.gz", {}),
    "elec": ("elec.csv.gz", {"label": "class"}),
    "bank": ("bank.csv.gz", {"label": "y", "sep": ";"}),
    "rcv1": ("rcv1_small.vw.gz", {}),
    "sms": ("sms.tsv.gz", {"header": False, "label": "1", "positive": "spam", "text": ["2"]}),
}
RATES = (0.02, 0.05, 0.1, 0.2, 1, 2)
ALPHAS = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
SETTINGS = (
    "",
    *(f"-l {rate}" for rate in RATES),
    "--coin",
    *(f"--ftrl --ftrl_alpha {alpha} --ftrl_beta {beta}" for alpha in ALPHAS for beta in (0.1, 1)),
)
BITS = 22
LIMIT = 1.01


def ours(batches: Iterable[Batch]) -> float:
    """The progressive log loss of the default, `ftprl train` without any option."""
    engine = Engine(Spec(scale="auto", dim=2**BITS, coin=True, dense=True))
    for batch in batches:
        engine.learn(batch)
    return engine.progress.mean


def lines(batches: Iterable[Batch]) -> Iterator[str]:
    """VW text with the cell of a feature as its name: whole numbers are taken as they are, not hashed."""
    for batch in batches:
        bounds, cells, values = batch.indptr.tolist(), batch.indices.tolist(), batch.values.tolist()
        for r, y in enumerate(batch.y.tolist()):
            row = range(bounds[r], bounds[r + 1])
            features = (str(cells[p]) if values[p] == 1 else f"{cells[p]}:{values[p]:.9g}" for p in row)
            yield f"{'1' if y > 0 else '-1'} | {' '.join(features)}\n"


def vw_loss(path: Path, setting: str) -> float:
    """The average loss that Vowpal Wabbit reports after one pass."""
    vw = pyvw.Workspace(f"-d {path} --loss_function logistic -b {BITS} --quiet {setting}")
    loss = float(vw.get_sum_loss() / vw.get_weighted_examples())
    vw.finish()
    return loss


def vw_losses(source: data.Source, cache: Path) -> dict[str, float]:
    """The loss of every setting, from the cache when the same rows were there before."""
    with tempfile.TemporaryDirectory() as folder:
        path, digest = Path(folder, "rows.vw"), hashlib.sha256(vw_version.encode())
        with path.open("w") as out:
            for line in lines(source.batches()):
                digest.update(line.encode())
                out.write(line)
        known = cache / f"vw-{digest.hexdigest()[:16]}.json"
        if not known.exists():
            known.write_text(json.dumps({setting: vw_loss(path, setting) for setting in SETTINGS}, indent=1))
        losses: dict[str, float] = json.loads(known.read_text())
    return losses


def sources(folder: Path, cache: Path, rows: int, only: set[str]) -> Iterator[tuple[str, data.Source | None]]:
    """Each set by name; None where its file is absent."""
    for name, (file, options) in SETS.items():
        if not only or name in only:
            yield name, data.open(folder / file, **options) if (folder / file).exists() else None
    if not only or "clicks" in only:
        path = cache / f"clicks-{rows}.csv.gz"
        if not path.exists():
            clicks.generate(rows, seed=1, path=path)
        yield "clicks", data.open(path, label="click")


def measure(source: data.Source, cache: Path) -> dict[str, Any]:
    """One row of the table."""
    losses = vw_losses(source, cache)
    best = min(losses, key=losses.__getitem__)
    mine = ours(source.batches())
    return {"ours": mine, "vw": losses[best], "setting": best or "default", "ratio": mine / losses[best]}


def main() -> None:
    """Print the table; JSON as well where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the real sets")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ftprl-tuning"))
    parser.add_argument("--clicks", type=int, default=200_000, help="rows of the synthetic click log")
    parser.add_argument("--only", default="", help="sets, with commas between")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    table, absent = {}, []
    print(f"{'set':8} {'ours':>8} {'best VW':>8} {'ratio':>7}  verdict  setting of VW")
    for name, source in sources(args.data, args.cache, args.clicks, {n for n in args.only.split(",") if n}):
        if source is None:
            absent.append(name)
            continue
        row = table[name] = measure(source, args.cache)
        verdict = "lower" if row["ratio"] < 1 else "within" if row["ratio"] <= LIMIT else "MISSED"
        print(
            f"{name:8} {row['ours']:8.4f} {row['vw']:8.4f} {row['ratio']:7.4f}  {verdict:7}  {row['setting']}",
            flush=True,
        )
    ratios = [row["ratio"] for row in table.values()]
    met = all(r <= LIMIT for r in ratios) and 2 * sum(r < 1 for r in ratios) >= len(ratios)
    missing = f"; absent: {', '.join(absent)}" if absent else ""
    print(f"target {'met' if met else 'MISSED'} on {len(ratios)} sets, lower on {sum(r < 1 for r in ratios)}{missing}")
    if args.json:
        args.json.write_text(json.dumps(table, indent=2))


if __name__ == "__main__":
    main()
