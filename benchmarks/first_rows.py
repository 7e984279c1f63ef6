"""The first rows of fresh streams, and streams with few positives: log loss beside Vowpal Wabbit's best setting.

The constants of docs/adr/0021 were chosen on other streams; none of these took part. Ordinary streams: real sets with a
label made of a number (dear diamonds, busy hours, any visit), stock prices, scikit-learn's small sets, and generated
rows; the first 100, 300 and 1,000 rows of each of several shuffles. Rare streams: 0.2 % and 1 % positives, real sets
thinned and generated; 1,000, 5,000 and 20,000 rows (as many as there are).

    python benchmarks/first_rows.py --data DIR [--pieces 5] [--only "diamonds,rare"] [--starts] [--json PATH]

Columns: the mean log loss of the default; the same to that of equal weights at the start; and to Vowpal Wabbit's: the
best of 20 settings, chosen for each piece and length, and at the end the best single setting for all streams of a kind.
--starts compares other centres and widths of the weights
at the start instead, without Vowpal Wabbit. Needs vowpalwabbit and scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from passes import small_set, table, text, together
from tuning import SETS
from tuning_vw import CLASSES, OPTIONS, lines
from vowpalwabbit import pyvw

from ftprl import data
from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.training.passes import rows_of

Vector = NDArray[np.float64]
BITS = 20
SHORT, LONG = (100, 300, 1000), (1000, 5000, 20_000)


def real(folder: Path, name: str, above: float | None = None) -> Batch:
    """A real set; with `above`, the class is whether its label is above that."""
    file, _, options = SETS[name]
    loss = "logistic" if above is None else "squared"
    batch = together(list(data.open(folder / file, dim=2**BITS, loss=loss, **options).batches()))
    return batch if above is None else replace(batch, y=np.where(batch.y > above, 1.0, -1.0))


def prices(folder: Path) -> Batch:
    """Whether the first share rises tomorrow, from all shares of today: next to nothing to learn."""
    x = np.loadtxt(folder / "nyse-o.csv.gz", delimiter=",")
    return table(x[:-1], x[1:, 0] > 1.0)


def numbers(seed: int, rows: int, columns: int, mattering: int, positive: float, strength: float = 1.0) -> Batch:
    """Columns of numbers with means and spreads of their own; some matter."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    score = strength * (x[:, :mattering] @ rng.standard_normal(mattering))
    chance = 1.0 / (1.0 + np.exp(-(score - np.quantile(score, 1.0 - positive)) * 2.0))
    chance *= positive / chance.mean()
    x = x * 10.0 ** rng.uniform(-1.0, 1.0, columns) + rng.normal(0.0, 2.0, columns)
    return table(x, rng.random(rows) < chance)


def names(seed: int, rows: int, columns: int, levels: int, positive: float, strength: float) -> Batch:
    """One name of each of some columns, few of them frequent."""
    rng = np.random.default_rng(seed)
    chances = 1.0 / np.arange(1, levels + 1)
    level = rng.choice(levels, (rows, columns), p=chances / chances.sum())
    weights = strength * rng.standard_normal((columns, levels))
    score = weights[np.arange(columns), level].sum(axis=1)
    chance = np.minimum(np.exp(score), np.quantile(np.exp(score), 0.999))
    chance = np.minimum(chance * positive / chance.mean(), 1.0)
    cells = (level + levels * np.arange(columns)).astype(np.uint32).ravel()
    indptr = columns * np.arange(rows + 1, dtype=np.int64)
    y = np.where(rng.random(rows) < chance, 1.0, -1.0)
    return Batch(indptr, cells, np.ones(len(cells), np.float32), y, np.ones(rows))


def thinned(rows: Batch, positive: float, seed: int) -> Batch:
    """So many positives among all negatives, in random order."""
    rng = np.random.default_rng(seed)
    yes, no = np.flatnonzero(rows.y > 0), np.flatnonzero(rows.y < 0)
    kept = rng.choice(yes, max(1, round(len(no) * positive / (1.0 - positive))), replace=False)
    return rows_of(rows, np.sort(np.concatenate([kept, no])))


def streams(folder: Path) -> dict[str, tuple[tuple[int, ...], Callable[[], Batch]]]:
    """Every stream: the lengths it is judged at, and what makes it."""
    short: dict[str, Callable[[], Batch]] = {
        "diamonds above 2,401": lambda: real(folder, "diamonds", 2401.0),
        "bikes above 100": lambda: real(folder, "bikes", 100.0),
        "any visit": lambda: real(folder, "visits", 0.0),
        "a9a, other rows": lambda: together(list(data.open(folder / "a9a.t.libsvm.gz", dim=2**BITS).batches())),
        "prices of shares": lambda: prices(folder),
        "cancer": small_set("breast_cancer", lambda y: y == 1),
        "digit 8": small_set("digits", lambda y: y == 8),
        "odd digits": small_set("digits", lambda y: y % 2 == 1),
        "text": lambda: text(11, 6000, 20_000, 15, 0.3),
        "short text": lambda: text(12, 6000, 3000, 6, 0.5),
        "5 numbers": lambda: numbers(13, 6000, 5, 5, 0.5),
        "60 numbers, 3 matter": lambda: numbers(14, 6000, 60, 3, 0.4, 2.0),
        "8 names of 200": lambda: names(15, 6000, 8, 200, 0.3, 0.7),
        "20 names of 50": lambda: names(16, 6000, 20, 50, 0.2, 0.3),
        "noise, 30 names, 10 %": lambda: names(17, 6000, 30, 500, 0.1, 0.0),
        "noise, 10 numbers": lambda: numbers(18, 6000, 10, 0, 0.5),
    }
    rare: dict[str, Callable[[], Batch]] = {
        "rare: diamonds, 0.2 %": lambda: real(folder, "diamonds", 18_300.0),
        "rare: bank, 0.2 %": lambda: thinned(real(folder, "bank"), 0.002, 21),
        "rare: a9a, 0.2 %": lambda: thinned(real(folder, "a9a"), 0.002, 22),
        "rare: sms, 0.2 %": lambda: thinned(real(folder, "sms"), 0.002, 23),
        "rare: criteo, 0.2 %": lambda: thinned(real(folder, "criteo"), 0.002, 24),
        "rare: numbers, 0.2 %": lambda: numbers(25, 25_000, 20, 5, 0.002),
        "rare: names, 0.2 %": lambda: names(26, 25_000, 12, 300, 0.002, 1.0),
        "rare: noise, 0.2 %": lambda: names(27, 25_000, 12, 300, 0.002, 0.0),
        "rare: numbers, noise, 0.2 %": lambda: numbers(28, 25_000, 20, 0, 0.002),
        "rare: names, 1 %": lambda: names(29, 25_000, 12, 300, 0.01, 1.0),
        "rare: numbers, 1 %": lambda: numbers(30, 25_000, 20, 5, 0.01),
        "rare: elec, 1 %": lambda: thinned(real(folder, "elec"), 0.01, 31),
    }
    every = {name: (SHORT, make) for name, make in short.items()}
    return every | {name: (LONG, make) for name, make in rare.items()}


def start(centre: float, width: float, scales: float = 2.0, stack: float = 1.0, coin: float = 1.0) -> list[float]:
    """Weights at the start, by the rule of docs/scales.md with other constants."""
    own = [scales / (1.0 + (math.log(h / centre) / width) ** 2) for h in Spec(scale="auto").scales]
    return [weight / (sum(own) + stack + coin) for weight in (*own, stack, coin)]


STARTS: dict[str, list[float] | None] = {
    "default": None,
    "equal": [0.1] * 10,
    **{f"centre {c:g}": start(c, 1.5) for c in (0.1, 0.3, 0.5)},
    **{f"width {w:g}": start(0.2, w) for w in (1.0, 2.0, 3.0)},
    "scales x 1": start(0.2, 1.5, 1.0),
    "scales x 4": start(0.2, 1.5, 4.0),
    "stack x 2": start(0.2, 1.5, 2.0, 2.0),
    "stack / 2": start(0.2, 1.5, 2.0, 0.5),
    "coin x 2": start(0.2, 1.5, 2.0, 1.0, 2.0),
    "coin x 4": start(0.2, 1.5, 2.0, 1.0, 4.0),
}


def ours(rows: Batch, weights: list[float] | None) -> Vector:
    """The loss of each row before it is learned."""
    engine = Engine(Spec(scale="auto", dim=2**BITS, coin=True, dense=True))
    if weights is not None:
        engine.expert_weights = weights, engine.expert_weights[1]
    losses = np.empty(len(rows))
    engine.learn(rows, losses=losses)
    return losses


def vw(rows: Batch, ends: tuple[int, ...]) -> Vector:
    """The mean losses of Vowpal Wabbit's settings, one row for each, at each length."""
    means = []
    with tempfile.TemporaryDirectory() as name:
        path, scores = Path(name, "rows.vw"), Path(name, "scores")
        path.write_text("".join(lines([rows])))
        for setting in CLASSES:
            pyvw.Workspace(f"-d {path} {OPTIONS['logistic']} {setting} -b {BITS} --quiet -r {scores}").finish()
            said = np.array([float(line.split()[0]) for line in scores.read_text().splitlines()])
            losses = np.logaddexp(0.0, -rows.y * said)
            means.append([losses[:end].mean() for end in ends])
    return np.array(means)


def pieces(rows: Batch, ends: tuple[int, ...], count: int) -> Iterator[Batch]:
    """The first rows of some shuffles."""
    for seed in range(count):
        yield rows_of(rows, np.random.default_rng(500 + seed).permutation(len(rows))[: ends[-1]])


def summary(name: str, ratios: Vector) -> None:
    """Print the geometric mean, the number above 1 and the largest of the ratios at each length."""
    means, above, most = np.exp(np.log(ratios).mean(axis=0)), (ratios > 1.0).sum(axis=0), ratios.max(axis=0)
    shown = ", ".join(
        f"{a:.4f} ({b} of {len(ratios)} above 1, at most {c:.4f})" for a, b, c in zip(means, above, most, strict=True)
    )
    print(f"{name}: {shown}")


def main() -> None:
    """Print a line for each stream."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the real sets")
    parser.add_argument("--pieces", type=int, default=5)
    parser.add_argument("--only", default="", help="parts of names of streams, with commas between")
    parser.add_argument("--starts", action="store_true", help="other weights at the start instead of Vowpal Wabbit")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    parts = [part for part in args.only.split(",") if part]
    results: dict[str, dict[str, Any]] = {}
    compared = STARTS if args.starts else {name: STARTS[name] for name in ("default", "equal")}
    for name, (lengths, make) in streams(args.data).items():
        if parts and not any(part in name for part in parts):
            continue
        rows = make()
        ends = tuple(sorted({min(end, len(rows)) for end in lengths}))
        totals: dict[str, list[Vector]] = {key: [] for key in compared}
        peers: list[Vector] = []
        for piece in pieces(rows, ends, args.pieces):
            for key, weights in compared.items():
                losses = ours(piece, weights)
                totals[key].append(np.array([losses[:end].mean() for end in ends]))
            if not args.starts:
                peers.append(vw(piece, ends))
        means = {key: np.mean(values, axis=0) for key, values in totals.items()}
        line = {"ends": list(ends), "default": means["default"].tolist()}
        line |= {f"to {key}": (means["default"] / mean).tolist() for key, mean in means.items() if key != "default"}
        if peers:
            line["to VW"] = (means["default"] / np.mean([every.min(axis=0) for every in peers], axis=0)).tolist()
            line["settings"] = np.mean(peers, axis=0).tolist()
        results[name] = line
        shown = (
            f"{key} {' '.join(f'{v:.4f}' for v in values)}"
            for key, values in line.items()
            if key not in ("ends", "settings")
        )
        print(f"{name:28} {ends}", " | ".join(shown), flush=True)
    for kind, lengths in (("ordinary", SHORT), ("rare", LONG)):
        some = [line for key, line in results.items() if key.startswith("rare") == (kind == "rare")]
        whole = [line for line in some if len(line["ends"]) == len(lengths)]  # the others have too few rows
        for key in [key for key in (whole[0] if whole else {}) if key.startswith("to ")]:
            summary(f"{kind}, {key}", np.array([line[key] for line in whole]))
        if whole and "settings" in whole[0]:
            settings = np.array([line["settings"] for line in whole])
            number = int(np.argmin(np.log(settings).mean(axis=(0, 2))))
            to_one = np.array([line["default"] for line in whole]) / settings[:, number]
            summary(f"{kind}, to VW with {CLASSES[number] or 'its defaults'}", to_one)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
