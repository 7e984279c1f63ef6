"""Microseconds per row of `learn_one` and `predict_proba_one` on dicts of 30 numbers, against River's FTRL.

python benchmarks/one_row.py [rows]
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

from river import linear_model, optim

from ftprl import OnlineClassifier

FEATURES, REPEATS = 30, 5


def made(rows: int) -> list[tuple[dict[str, float], bool]]:
    """Rows of normal numbers whose sum decides the label, with noise."""
    rng = random.Random(1)
    names = [f"feature_{i}" for i in range(FEATURES)]
    values = [{name: rng.gauss(0.0, 1.0) for name in names} for _ in range(rows)]
    return [(x, sum(x.values()) + rng.gauss(0.0, 5.0) > 0.0) for x in values]


def seconds(model: Any, rows: list[tuple[dict[str, float], bool]]) -> tuple[float, float]:
    """Per row: to learn, and to predict."""
    start = time.perf_counter()
    for x, y in rows:
        model.learn_one(x, y)
    middle = time.perf_counter()
    for x, _ in rows:
        model.predict_proba_one(x)
    return (middle - start) / len(rows), (time.perf_counter() - middle) / len(rows)


def main() -> None:
    """Print the least of some repeats of each."""
    rows = made(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    models = {
        "River, FTRLProximal": lambda: linear_model.LogisticRegression(optimizer=optim.FTRLProximal()),
        "ftprl, one scale": lambda: OnlineClassifier(scale=0.1),
        "ftprl, eight scales": OnlineClassifier,
    }
    times = {name: [seconds(make(), rows) for _ in range(REPEATS)] for name, make in models.items()}
    river = min(learn for learn, _ in next(iter(times.values())))
    for name, measured in times.items():
        learn, predict = min(a for a, _ in measured), min(b for _, b in measured)
        print(f"{name:20} learn {1e6 * learn:6.2f}, predict {1e6 * predict:5.2f}; {river / learn:5.1f} times")


if __name__ == "__main__":
    main()
