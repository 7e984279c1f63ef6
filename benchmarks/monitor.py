"""What the confidence sequences, the drift alarm and the bins of residuals of a run cost, beside learning its rows.

Rows are in memory. One engine learns every batch as training does it, with the call of the monitor for every second
batch and without it for the others (and, with several scales, without the scores that the monitor needs with some
losses; with one scale training always has them). In the next repeat it is the other way round. Of each batch the
shortest time with and the shortest time without the monitor count: both are of the same table in the same memory. The
time of the call alone is printed as well. The numbers are in docs/measurements.md.

    python benchmarks/monitor.py [--rows 65536] [--features 39] [--repeats 20]
"""

from __future__ import annotations

import argparse
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ftprl.confidence import RunMonitor
from ftprl.data import Batch
from ftprl.linear import Engine, Spec

Vector = NDArray[np.float64]
BITS, BATCH = 18, 4096
EIGHT = tuple(0.01 * 4.0**k for k in range(8))


def batches(loss: str, rows: int, features: int) -> list[Batch]:
    """Rows of hashed categories, as in a click log: a few are frequent."""
    rng = np.random.default_rng(0)
    weights, stream = rng.normal(size=1 << BITS), []
    for _ in range(0, rows, BATCH):
        cells = np.minimum(rng.pareto(0.5, size=(BATCH, features)) * 10, (1 << BITS) - 1).astype(np.uint32)
        cells = (cells * np.uint32(2654435761) + np.arange(features, dtype=np.uint32)) & np.uint32((1 << BITS) - 1)
        score = weights[cells].sum(axis=1) / np.sqrt(features)
        y = np.where(rng.random(BATCH) < 1 / (1 + np.exp(-score)), 1.0, -1.0) if loss == "logistic" else score
        stream.append(
            Batch(np.arange(BATCH + 1) * features, cells.ravel(), np.ones(cells.size), y.copy(), np.ones(BATCH))
        )
    return stream


def learn(engine: Engine, monitor: RunMonitor | None, batch: Batch) -> tuple[float, float]:
    """Seconds for one batch, and for the call of the monitor alone."""
    losses, baselines = np.empty(len(batch)), np.empty((len(batch), 2))
    needs_scores = monitor is not None and monitor.needs_scores
    has_scores = needs_scores or not engine.spec.several
    scores = np.empty(len(batch) if has_scores else 1)
    start = perf_counter()
    engine.learn(
        batch,
        scores=scores if has_scores else None,
        last_score=None if has_scores else scores,
        losses=losses,
        baselines=baselines,
    )
    learned = perf_counter()
    if monitor is not None:
        monitor.add(losses, baselines, scores if needs_scores else None, batch.y, batch.weight)
    end = perf_counter()
    return end - start, end - learned


def main() -> None:
    """Print one line for each loss and number of scales."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=65_536)
    parser.add_argument("--features", type=int, default=39)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    for loss in ("logistic", "squared"):
        rows = batches(loss, options.rows, options.features)
        for scales in ((0.1,), EIGHT):
            least, alone = np.full((2, len(rows)), np.inf), np.full(len(rows), np.inf)
            for repeat in range(options.repeats):
                spec = Spec(dim=1 << BITS, loss=loss, scale=scales if len(scales) > 1 else scales[0])
                engine, monitor = Engine(spec), RunMonitor(loss)
                for k, batch in enumerate(rows):
                    with_monitor = (repeat + k) % 2
                    seconds, own = learn(engine, monitor if with_monitor else None, batch)
                    least[with_monitor, k] = min(least[with_monitor, k], seconds)
                    alone[k] = min(alone[k], own) if with_monitor else alone[k]
            without, whole, call = np.array([*least.sum(axis=1), alone.sum()]) * 1e9 / (len(rows) * BATCH)
            print(
                f"{loss:<8}  {len(scales)} scale(s)  without {without:7.1f} ns per row, with {whole:7.1f}:"
                f" {whole - without:5.1f} ns, {100 * (whole / without - 1):.2f} %;"
                f" the call alone {call:.1f} ns, {100 * call / without:.2f} %",
                flush=True,
            )


if __name__ == "__main__":
    main()
