"""What the coin-betting expert and dense columns bring on generated streams (docs/scales.md).

Progressive loss of the default without both, and the factors by which each of them and both change it; with
vowpalwabbit installed also the best of its settings, divided by the default without both.

    python benchmarks/experts.py [--only noise,names] [--rows 5000]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear import Engine, Spec

Vector = NDArray[np.float64]
RATES = (0.02, 0.1, 0.2, 1, 2)
ALPHAS = (0.005, 0.02, 0.1, 0.5)
SETTINGS = ("", *(f"-l {r}" for r in RATES), "--coin", *(f"--ftrl --ftrl_alpha {a} --ftrl_beta 1" for a in ALPHAS))


def classes(rng: np.random.Generator, log_odds: Vector) -> Vector:
    """Labels -1 and 1."""
    return np.where(rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds)), 1.0, -1.0)


def numbers(X: Vector, y: Vector) -> Batch:
    """Every column in every row."""
    return Batch.from_rows([dict(enumerate(x.tolist())) for x in X], y.tolist())


def noise(rng: np.random.Generator, n: int) -> Batch:
    """1,000 normal numbers of which ten matter."""
    X = rng.normal(size=(n, 1000))
    return numbers(X, classes(rng, X[:, :10] @ rng.normal(size=10)))


def names(rng: np.random.Generator, n: int) -> Batch:
    """Five names of 50 that matter, and 20 of 1,000 that do not."""
    weights, rows, odds = rng.normal(size=50), [], []
    for _ in range(n):
        own, other = np.unique(rng.integers(0, 50, 5)), np.unique(rng.integers(50, 1050, 20))
        rows.append(dict.fromkeys([*own.tolist(), *other.tolist()], 1.0))
        odds.append(weights[own].sum())
    return Batch.from_rows(rows, classes(rng, np.array(odds)).tolist())


def mean(rng: np.random.Generator, n: int) -> Batch:
    """Ten numbers with means of 5 to 100."""
    X = rng.normal(size=(n, 10))
    return numbers(X + rng.uniform(5, 100, size=10), classes(rng, X @ rng.normal(size=10)))


def collinear(rng: np.random.Generator, n: int) -> Batch:
    """Twenty numbers that move with three."""
    own = rng.normal(size=(n, 20))
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 20)) + 0.1 * own
    return numbers(X, classes(rng, 0.8 * own @ rng.normal(size=20)))


def powers(rng: np.random.Generator, n: int) -> Batch:
    """Four numbers, their squares and cubes."""
    x = rng.uniform(1, 3, size=(n, 4))
    odds = 3 * np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 0] - 2 * x[:, 2]
    return numbers(np.hstack([x, x**2, x**3]), classes(rng, odds - odds.mean()))


STREAMS: dict[str, Callable[[np.random.Generator, int], Batch]] = {
    "noise": noise,
    "names": names,
    "mean": mean,
    "collinear": collinear,
    "powers": powers,
}


def loss(batch: Batch, *, coin: bool, dense: bool) -> float:
    """The progressive log loss."""
    return Engine(Spec(scale="auto", dim=2**12, coin=coin, dense=dense)).learn(batch).mean


def lines(batch: Batch) -> Iterator[str]:
    """VW text."""
    bounds, cells, values = batch.indptr.tolist(), batch.indices.tolist(), batch.values.tolist()
    for r, y in enumerate(batch.y.tolist()):
        features = " ".join(f"{cells[p]}:{values[p]:.9g}" for p in range(bounds[r], bounds[r + 1]))
        yield f"{'1' if y > 0 else '-1'} | {features}\n"


def vw(batch: Batch) -> float | None:
    """The loss of the best setting of Vowpal Wabbit; None where it is not installed."""
    try:
        from vowpalwabbit import pyvw
    except ImportError:
        return None
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.vw")
        path.write_text("".join(lines(batch)))
        for setting in SETTINGS:
            workspace = pyvw.Workspace(f"-d {path} --loss_function logistic --quiet {setting}")
            losses.append(float(workspace.get_sum_loss() / workspace.get_weighted_examples()))
            workspace.finish()
    return min(losses)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="streams, with commas between")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"{'stream':10} {'without':>8} {'coin':>7} {'dense':>7} {'both':>7} {'best VW':>8}")
    for name in [n for n in args.only.split(",") if n] or STREAMS:
        batch = STREAMS[name](np.random.default_rng(args.seed), args.rows)
        base = loss(batch, coin=False, dense=False)
        ratios = [loss(batch, coin=c, dense=d) / base for c, d in ((True, False), (False, True), (True, True))]
        best = vw(batch)
        other = "-" if best is None else f"{best / base:.4f}"
        print(f"{name:10} {base:8.4f} {ratios[0]:7.4f} {ratios[1]:7.4f} {ratios[2]:7.4f} {other:>8}", flush=True)


if __name__ == "__main__":
    main()
