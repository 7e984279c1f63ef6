"""One, three and ten passes: log loss on rows that took no part in the training, beside Vowpal Wabbit's.

A fifth of the rows is for testing. Splits: every fifth row (five ways), the last fifth of the file, and the last fifth
of shuffled rows (as often as --shuffles says). Columns: one pass over all training rows; `--passes 3` and
`--passes 10`; the same with `--holdout 0`; and Vowpal Wabbit with `--loss_function logistic` and its own held-out rows.
Both sides see the same features: rows are read once, and their cells and values are written as VW text.

    python benchmarks/passes.py --data DIR [--only sms,digits] [--shuffles 3] [--holdout N] [--markdown PATH]

Streams besides the four real ones are scikit-learn's small sets and generated rows. A stream whose file is not in the
folder is left out, and so are scikit-learn's without it. Needs vowpalwabbit.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tuning import SETS
from tuning_vw import BITS, OPTIONS, lines
from vowpalwabbit import pyvw

from ftprl import data
from ftprl.data import Batch
from ftprl.training import train
from ftprl.training.passes import rows_of

Vector = NDArray[np.float64]
REAL = ("sms", "rcv1", "a9a", "bank")
PASSES = (3, 10)


def together(batches: list[Batch]) -> Batch:
    """Several batches as one."""
    sizes = np.concatenate([np.diff(batch.indptr) for batch in batches])
    columns = [np.concatenate([getattr(batch, name) for batch in batches]) for name in ("indices", "values", "y")]
    indptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Batch(indptr, *columns, np.ones(len(sizes)))


def table(x: Vector, y: NDArray[np.bool_]) -> Batch:
    """Numbers as rows with a feature for each column."""
    rows, columns = x.shape
    indices = np.tile(np.arange(columns, dtype=np.uint32), rows)
    indptr = columns * np.arange(rows + 1, dtype=np.int64)
    return Batch(indptr, indices, x.astype(np.float32).ravel(), np.where(y, 1.0, -1.0), np.ones(rows))


def text(seed: int, rows: int, words: int, length: int, positive: float) -> Batch:
    """Rows of words, few of them frequent, of which a third say something about the label."""
    rng = np.random.default_rng(seed)
    weights = 1.8 * rng.standard_normal(words) * (rng.random(words) < 0.3)
    chances = 1.0 / np.arange(1, words + 1) ** 1.05
    weights[:30] *= 0.1
    rows_of_slots = [
        np.unique(rng.choice(words, rng.poisson(length) + 1, p=chances / chances.sum())).astype(np.uint32)
        for _ in range(rows)
    ]
    scores = np.array([weights[row].sum() for row in rows_of_slots])
    odds = 2.0 * (scores - np.quantile(scores, 1.0 - positive))
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows_of_slots]))).astype(np.int64)
    indices = np.concatenate(rows_of_slots)
    y = np.where(rng.random(rows) < 1.0 / (1.0 + np.exp(-odds)), 1.0, -1.0)
    return Batch(indptr, indices, np.ones(len(indices), np.float32), y, np.ones(rows))


def friedman(rows: int = 5000) -> Batch:
    """Ten numbers, of which five matter, and not linearly."""
    rng = np.random.default_rng(5)
    x = rng.random((rows, 10))
    f = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4] - 14
    return table(x, f + 2 * rng.standard_normal(rows) > 0)


def many_numbers(rows: int = 2000) -> Batch:
    """A hundred numbers, of which eight matter."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((rows, 100))
    return table(x, rng.random(rows) < 1.0 / (1.0 + np.exp(-x[:, :8] @ rng.standard_normal(8))))


def small_set(name: str, positive: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> Callable[[], Batch]:
    """One of scikit-learn's sets, with two classes."""

    def load() -> Batch:
        from sklearn import datasets

        x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        return table(x, positive(y))

    return load


OTHERS: dict[str, Callable[[], Batch]] = {
    "cancer": small_set("breast_cancer", lambda y: y == 1),
    "digit 8": small_set("digits", lambda y: y == 8),
    "odd digits": small_set("digits", lambda y: y % 2 == 1),
    "text 1": lambda: text(1, 3000, 20_000, 12, 0.15),
    "text 2": lambda: text(2, 8000, 20_000, 12, 0.5),
    "text 3": lambda: text(3, 1500, 5000, 30, 0.3),
    "friedman": friedman,
    "100 numbers": many_numbers,
}


def streams(folder: Path, only: set[str]) -> Iterator[tuple[str, Batch]]:
    """Each stream as one batch."""
    for name in REAL:
        file, _, options = SETS[name]
        if (not only or name in only) and (folder / file).exists():
            yield name, together(list(data.open(folder / file, dim=2**BITS, **options).batches()))
    for name, make in OTHERS.items():
        if not only or name in only:
            try:
                yield name, make()
            except ImportError:
                print(f"{name}: needs scikit-learn")


def splits(rows: int, shuffles: int) -> Iterator[tuple[str, NDArray[np.intp], NDArray[np.intp]]]:
    """The name of a kind of split, and the rows for training and for testing."""
    every, last = np.arange(rows), rows - rows // 5
    for k in range(5):
        yield "every fifth", np.flatnonzero(every % 5 != k), np.flatnonzero(every % 5 == k)
    yield "the last fifth", every[:last], every[last:]
    for seed in range(shuffles):
        order = np.random.default_rng(100 + seed).permutation(rows)
        yield "shuffled", order[:last], order[last:]


def ours(rows: Batch, test: Batch, **options: int) -> Vector:
    """The losses of a model on test rows."""
    return np.logaddexp(0.0, -test.y * train(rows, dim=2**BITS, **options).model.engine.score(test))


def vw(rows: Batch, test: Batch, passes: int) -> Vector:
    """Those of Vowpal Wabbit."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, batch in (("rows", rows), ("test", test)):
            (folder / file).write_text("".join(lines([batch])))
        more = f"--passes {passes} -c -k --cache_file {folder}/cache" if passes > 1 else ""
        pyvw.Workspace(f"-d {folder}/rows {OPTIONS['logistic']} -b {BITS} --quiet {more} -f {folder}/model").finish()
        pyvw.Workspace(f"-d {folder}/test -t -i {folder}/model --quiet -r {folder}/scores").finish()
        scores = np.array([float(line.split()[0]) for line in (folder / "scores").read_text().splitlines()])
    return np.logaddexp(0.0, -test.y * scores)


def measure(rows: Batch, test: Batch, holdout: int | None) -> dict[str, Vector]:
    """One line of the table: the losses of the test rows."""
    held = {} if holdout is None else {"holdout": holdout}
    line = {"one pass": ours(rows, test), "VW, one": vw(rows, test, 1)}
    for passes in PASSES:
        line[f"{passes} passes"] = ours(rows, test, passes=passes, **held)
        line[f"no holdout, {passes}"] = ours(rows, test, passes=passes, holdout=0)
        line[f"VW, {passes}"] = vw(rows, test, passes)
    return line


def shown(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def above(one: Vector, others: list[Vector]) -> tuple[float, float]:
    """The loss of a model to the smallest of some others, and how many standard errors of the test rows are between."""
    best = min(others, key=lambda losses: float(losses.mean()))
    gaps = one - best
    error = float(gaps.std()) / np.sqrt(len(gaps))
    return float(one.mean() / best.mean()), float(gaps.mean()) / error if error > 0.0 else 0.0


def counted(pairs: list[tuple[float, float]]) -> str:
    """How many of some comparisons are above 1.01, and of how many of these the test rows leave no doubt."""
    missed = [errors for ratio, errors in pairs if ratio > 1.01]
    return f"{len(missed)} (at most {max(ratio for ratio, _ in pairs):.3f}; {sum(e > 2.0 for e in missed)} by > 2 s.e.)"


def comparisons(results: list[tuple[str, dict[str, Vector]]]) -> str:
    """How often the two targets are met, over all splits: the best number of passes, and VW with as many passes."""
    text = []
    for passes in PASSES:
        fewer = [above(r[f"{passes} passes"], [r["one pass"], *(r[f"{p} passes"] for p in PASSES if p <= passes)])
                 for _, r in results]  # fmt: skip
        peers = [above(r[f"{passes} passes"], [r[f"VW, {passes}"]]) for _, r in results]
        text.append(
            f"{passes} passes, {len(results)} splits: more than 1 % above fewer passes on {counted(fewer)};"
            f" more than 1 % above VW on {counted(peers)}"
        )
    return "\n".join(text)


def main() -> None:
    """Print the table; Markdown as well where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the real sets")
    parser.add_argument("--only", default="", help="streams, with commas between")
    parser.add_argument("--shuffles", type=int, default=3)
    parser.add_argument("--holdout", type=int, help="every N-th row is held out; as without it, the default")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    out: list[str] = []
    all_results: list[tuple[str, dict[str, Vector]]] = []
    for name, batch in streams(args.data, {part for part in args.only.split(",") if part}):
        results = [
            (kind, measure(rows_of(batch, rows), rows_of(batch, test), args.holdout))
            for kind, rows, test in splits(len(batch), args.shuffles)
        ]
        if not out:
            names = list(results[0][1])
            out += [shown(["set", "test rows", *names]), shown(["---"] * (2 + len(names)))]
            print("\n".join(out))
        for kind in dict.fromkeys(kind for kind, _ in results):
            means = [np.mean([r[key].mean() for k, r in results if k == kind]) for key in results[0][1]]
            out.append(shown([name, kind, *(f"{mean:.4f}" for mean in means)]))
            print(out[-1], flush=True)
        all_results += results
        print(comparisons(results), flush=True)
    print("all:\n" + comparisons(all_results))
    if args.markdown:
        args.markdown.write_text("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
