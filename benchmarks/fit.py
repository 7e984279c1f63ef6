"""Seconds of `fit` on a CSR matrix in memory against one epoch of scikit-learn's SGDClassifier, and progressive losses.

Both are timed as they are by default, shuffling the rows, and without that. SGDClassifier's progressive loss is that of
`partial_fit` on 100 rows at a time, each predicted before it is learned, with the best of five values of alpha.

    python benchmarks/fit.py [rows] [--dense]
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

from ftprl import FTPRLClassifier

COLUMNS, REPEATS, LOSS_ROWS, STEP = 39, 3, 100_000, 100


def made(rows: int, *, is_dense: bool) -> tuple[Any, Any]:
    """39 entries per row: normal numbers in 39 columns, or ones in 2^18 columns, a few of which are frequent."""
    rng = np.random.default_rng(0)
    if is_dense:
        matrix = csr_matrix(rng.standard_normal((rows, COLUMNS)))
        weights = rng.standard_normal(COLUMNS) / 6
    else:
        size = 1 << 18
        indices = (rng.zipf(1.3, size=(rows, COLUMNS)) * 2654435761 + np.arange(COLUMNS) * 7919) % size
        parts = (np.ones(indices.size), indices.ravel().astype(np.int32), np.arange(rows + 1) * COLUMNS)
        matrix = csr_matrix(parts, shape=(rows, size))
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        weights = rng.standard_normal(size) / 3
    return matrix, (matrix @ weights + rng.logistic(size=rows) > 0).astype(int)


def seconds(work: Callable[[], object]) -> float:
    """The least of some repeats."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def progressive(X: Any, y: Any, alpha: float) -> float:
    """The progressive log loss of SGDClassifier."""
    model, probabilities = SGDClassifier(loss="log_loss", alpha=alpha), []
    for start in range(0, X.shape[0], STEP):
        part = slice(start, start + STEP)
        probabilities.append(model.predict_proba(X[part])[:, 1] if start else np.full(STEP, 0.5))
        model.partial_fit(X[part], y[part], classes=[0, 1])
    return float(log_loss(y, np.clip(np.concatenate(probabilities)[: len(y)], 1e-9, 1 - 1e-9)))


def main() -> None:
    """Print times as multiples, and losses."""
    warnings.simplefilter("ignore")
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    X, y = made(numbers[0] if numbers else 1_000_000, is_dense="--dense" in sys.argv)
    epoch = {"loss": "log_loss", "max_iter": 1, "tol": None}
    sgd = seconds(lambda: SGDClassifier(**epoch).fit(X, y))
    in_order = seconds(lambda: SGDClassifier(**epoch, shuffle=False).fit(X, y))
    print(f"{X.shape[0]} rows: SGDClassifier {sgd:.3f} s, without shuffling {in_order:.3f} s")
    for name, scale in (("one scale", 0.1), ("eight scales", "auto")):
        own = seconds(lambda scale=scale: FTPRLClassifier(scale=scale).fit(X, y))
        own_in_order = seconds(lambda scale=scale: FTPRLClassifier(scale=scale, shuffle=False).fit(X, y))
        print(f"{name}: {own:.3f} s, {own / sgd:.2f} times", end="; ")
        print(f"without shuffling {own_in_order:.3f} s, {own_in_order / in_order:.2f} times")
    first = slice(0, LOSS_ROWS)
    for scale in (0.1, "auto"):
        own_loss = FTPRLClassifier(scale=scale, shuffle=False).fit(X[first], y[first]).progressive_loss_
        print(f"progressive loss, scale={scale}: {own_loss:.5f}")
    losses = {alpha: progressive(X[first], y[first], alpha) for alpha in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)}
    best = min(losses, key=lambda alpha: losses[alpha])
    print(f"progressive loss, SGDClassifier: {losses[best]:.5f} with alpha={best}, {losses[1e-4]:.5f} by default")


if __name__ == "__main__":
    main()
