"""How long the compiled learner takes for a row, by instruction set, type of cells and number of scales.

Rows of 39 categorical features (`--features`: as many as there are, 377 with the interactions of 13 and 26), one a
field. Field j has 10 values for the first and 10 million for the last field, and its k-th most frequent value turns up
in proportion to 1/k: heavy tails, as in click logs. Everything is in memory. All kinds are timed in turn, and of each
batch the best of the rounds counts: what else the machine does must not.

    python benchmarks/micro/kernel.py [--rows 200000] [--features 39] [--bits 22] [--rounds 10] [--json PATH]
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.linear.spec import AUTO

SCALES = {1: 0.1, 4: AUTO[1:5], 8: AUTO}


@dataclass(frozen=True)
class Line:
    """One line of the table; nanoseconds a row."""

    kernels: str
    cells: str
    scales: int
    learn: float
    receipt: float
    score: float


def rows(count: int, bits: int, features: int = 39, seed: int = 0) -> Batch:
    """Heavy-tailed rows; labels that depend on the first fields. Private, as those of a parser: they are not copied."""
    rng = np.random.default_rng(seed)
    sizes = np.logspace(1, 7, features)
    ranks = (sizes ** rng.random((count, features))).astype(np.uint64)  # density 1/rank
    mixed = (ranks * np.uint64(features) + np.arange(features, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    slots = (mixed >> np.uint64(64 - bits)).astype(np.uint32)
    y = np.where(rng.random(count) < 1 / (1 + np.exp(2 - (ranks[:, :4] % 3).sum(axis=1) / 2)), 1.0, -1.0)
    indptr = np.arange(count + 1, dtype=np.int64) * features
    return Batch(indptr, slots.ravel(), np.ones(slots.size, np.float32), y, np.ones(count)).private()


def best(kinds: dict[str, Callable[[Batch], float]], batches: list[Batch], rounds: int) -> dict[str, float]:
    """Seconds for all batches, of each the best of the rounds, each kind in turn."""
    least = {name: np.full(len(batches), np.inf) for name in kinds}
    for _ in range(rounds):
        for name, run in kinds.items():
            least[name] = np.minimum(least[name], [run(batch) for batch in batches])
    return {name: float(seconds.sum()) for name, seconds in least.items()}


def timed(run: Callable[[Batch], object]) -> Callable[[Batch], float]:
    def seconds(batch: Batch) -> float:
        began = time.perf_counter()
        run(batch)
        return time.perf_counter() - began

    return seconds


def measure(kernels: str, float64: bool, scales: int, batches: list[Batch], bits: int, rounds: int) -> Line | None:
    if not use_instruction_set(kernels):
        return None
    spec = Spec(dim=2**bits, float64=float64, scale=SCALES[scales])
    engine = Engine(spec)
    kinds = {"learn": timed(engine.learn), "score": timed(engine.score)}
    least = best(kinds, batches, rounds)
    kept = Engine(spec, receipt=True)  # by itself: its larger cells would take the cache from the others
    least |= best({"receipt": timed(kept.learn)}, batches, rounds)
    count = sum(map(len, batches))
    times = {name: 1e9 * s / count for name, s in least.items()}
    return Line(kernels, "float64" if float64 else "float32", scales, **times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=39)
    parser.add_argument("--bits", type=int, default=22)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    batch = rows(options.rows, options.bits, options.features)
    touched = len(np.unique(batch.indices))
    batches = [part.private() for part in batch.cut(options.batch)]  # as parsers make them: nobody else writes to them
    size = f"{options.rows} rows of {options.features} features, 2^{options.bits} cells"
    print(f"{size}, {touched} of them touched; ns a row")
    print(f"{'kernels':<10}{'cells':<10}{'scales':>6}{'learn':>7}{'receipt':>9}{'score':>7}{'rows/s':>9}")
    lines = []
    for kernels, float64, scales in itertools.product(("portable", "avx2"), (False, True), SCALES):
        line = measure(kernels, float64, scales, batches, options.bits, options.rounds)
        if line is None:
            continue
        lines.append(line)
        print(
            f"{line.kernels:<10}{line.cells:<10}{line.scales:>6}{line.learn:>7.0f}{line.receipt:>9.0f}"
            f"{line.score:>7.0f}{1e3 / line.learn:>8.2f}M"
        )
    use_instruction_set("")
    if options.json:
        versions = {"python": platform.python_version(), "numpy": np.__version__}
        options.json.write_text(json.dumps({"versions": versions, "lines": [asdict(x) for x in lines]}, indent=1))


if __name__ == "__main__":
    main()
