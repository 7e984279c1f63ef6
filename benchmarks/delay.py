"""Late labels: the gradient at the prediction or at the current weights, measured with one prototype in NumPy.

    python benchmarks/delay.py [--data DIR]

Eight scales of FTPRL, mixed by Bayes' rule (log loss) or by exponential weights (squared loss), learn each row when its
label arrives. Four variants differ in where the gradient of a row is taken and by which predictions the scales are
mixed: those of its arrival or those at the time when it is learned. Then the same with `ftprl.train(delay=...)`.
"""

from __future__ import annotations

import argparse
import math
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

import ftprl

SETS = {
    "criteo80k.vw.gz": {},
    "a9a.libsvm.gz": {},
    "elec.csv.gz": {"label": "class"},
    "bikes.csv.gz": {"label": "bikers", "loss": "squared"},
    "diamonds.csv.gz": {"label": "price", "loss": "squared"},
}
DELAYS = (0, 10, 1000, 10000)
VARIANTS = ("current", "prediction", "mixed at prediction", "gradient at prediction")
SCALES = np.array([0.0125 * 2.0**k for k in range(8)])
BETA = 0.3


class Prototype:
    """Eight scales and their mixture; features are divided by the largest value seen, as the units of a model do."""

    def __init__(self, dim: int, loss: str, largest: float) -> None:
        self.z, self.G = np.zeros((dim + 1, len(SCALES))), np.zeros((dim + 1, len(SCALES)))
        self.unit = np.zeros(dim + 1)
        self.log_w, self.rows, self.is_log = np.zeros(len(SCALES)), 0, loss == "logistic"
        self.rate = 1.0 if self.is_log else 1.0 / (2.0 * largest**2)

    def weights(self, slots: np.ndarray) -> np.ndarray:
        """The weights of some features, a column per scale."""
        return -self.z[slots] * SCALES / (BETA + np.sqrt(self.G[slots]))

    def scores(self, slots: np.ndarray, values: np.ndarray) -> np.ndarray:
        """x·v of each scale."""
        unit = np.where(self.unit[slots] > 0.0, self.unit[slots], np.abs(values))
        return (values / unit) @ self.weights(slots)

    def losses(self, scores: np.ndarray, y: float) -> np.ndarray:
        """The loss of each scale."""
        return np.logaddexp(0.0, -y * scores) if self.is_log else 0.5 * (scores - y) ** 2

    def mixed_loss(self, scores: np.ndarray, y: float) -> float:
        """The loss of the mixture."""
        w = np.exp(self.log_w - self.log_w.max())
        w /= w.sum()
        if self.is_log:
            return -math.log(max(1e-300, float(w @ np.exp(-np.logaddexp(0.0, -y * scores)))))
        return 0.5 * (float(w @ scores) - y) ** 2

    def learn(self, slots: np.ndarray, values: np.ndarray, y: float, at: np.ndarray, judged: np.ndarray) -> None:
        """One row: the gradient at the scores `at`, the mixture by the scores `judged`."""
        self.unit[slots] = np.maximum(self.unit[slots], np.abs(values))
        v = (values / self.unit[slots])[:, None]
        slope = -y / (1.0 + np.exp(np.minimum(y * at, 500.0))) if self.is_log else at - y
        g, G = v * slope, self.G[slots]
        sigma = (np.sqrt(G + g * g) - np.sqrt(G)) / SCALES
        self.z[slots] += g - sigma * self.weights(slots)
        self.G[slots] = G + g * g
        self.rows += 1
        self.log_w -= self.rate * self.losses(judged, y)
        w = np.exp(self.log_w - self.log_w.max())
        share = min(2.0**-10, 1.0 / (self.rows + 1))
        self.log_w = np.log((1.0 - share) * w / w.sum() + share / len(SCALES))


def rows_of(path: Path, options: dict[str, Any], most: int) -> tuple[list[tuple[Any, ...]], int]:
    """The rows with their labels, in cells that are numbered in the order of their first rows."""
    source = ftprl.data.open(path, **options)
    numbers: dict[int, int] = {}
    rows: list[tuple[Any, ...]] = []
    for batch in source.batches():
        for r in range(len(batch)):
            some = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
            slots = [numbers.setdefault(slot, len(numbers) + 1) for slot in batch.indices[some].tolist()]
            rows.append((np.array([0, *slots]), np.array([1.0, *batch.values[some].tolist()]), float(batch.y[r])))
            if len(rows) == most:
                return rows, len(numbers)
    return rows, len(numbers)


def prototype_loss(rows: list[tuple[Any, ...]], dim: int, loss: str, delay: int, variant: str) -> float:
    """The mean loss of the predictions at arrival."""
    model = Prototype(dim, loss, max(abs(y) for *_, y in rows))
    waiting: deque[tuple[Any, ...]] = deque()
    total = 0.0
    for slots, values, y in rows:
        at_arrival = model.scores(slots, values)
        total += model.mixed_loss(at_arrival, y)
        waiting.append((slots, values, y, at_arrival))
        if len(waiting) > delay:
            slots, values, y, then = waiting.popleft()
            now = model.scores(slots, values)
            at = then if variant in ("prediction", "gradient at prediction") else now
            judged = then if variant in ("prediction", "mixed at prediction") else now
            model.learn(slots, values, y, at, judged)
    return total / len(rows)


def prototype_table(data: Path, most: int) -> None:
    """The loss of each variant of the prototype."""
    print(f"prototype, first {most} rows\n\n| set | delay | " + " | ".join(VARIANTS) + " |")
    print("|---" * (2 + len(VARIANTS)) + "|")
    for name, options in SETS.items():
        loss = options.get("loss", "logistic")
        rows, dim = rows_of(data / name, options, most)
        if loss == "squared":
            middle, spread = float(np.mean([y for *_, y in rows])), float(np.std([y for *_, y in rows]))
            rows = [(slots, values, (y - middle) / spread) for slots, values, y in rows]
        for delay in DELAYS:
            if delay < len(rows):
                losses = [prototype_loss(rows, dim, loss, delay, variant) for variant in VARIANTS]
                print(f"| {name} | {delay} | " + " | ".join(f"{value:.4f}" for value in losses) + " |", flush=True)


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=Path(__file__).parent.parent.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=30000, help="rows of each set for the prototype; 0 for none")
    arguments = parser.parse_args()
    if arguments.rows:
        prototype_table(arguments.data, arguments.rows)
    print("\nftprl.train\n\n| set | " + " | ".join(f"delay {delay}" for delay in DELAYS) + " |")
    print("|---" * (1 + len(DELAYS)) + "|")
    for name, options in SETS.items():
        runs = [ftprl.train(arguments.data / name, delay=delay, order="given", **options) for delay in DELAYS]
        shown = [f"{run.progressive_loss:.4g} ({run.improvement:.1f} %)" for run in runs]
        print(f"| {name} | " + " | ".join(shown) + " |", flush=True)


if __name__ == "__main__":
    main()
