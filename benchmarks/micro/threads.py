"""One thread that learns against two: eight scales, none dropped, on the same rows.

    python benchmarks/micro/threads.py [--rows 4000000] [--repeats 3] [--scales 8] [--kinds kernel memory file] [FILE]

`kernel` learns batches in memory with an engine that knows their features, `memory` and `file` are whole calls of
`ftprl.train` on batches in memory and on a file of batches. FILE is such a file; without one, clicks are generated. All
kinds take turns. Best and median nanoseconds per row, and the ratios of both.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import ftprl
from ftprl import data
from ftprl.data import Batch
from ftprl.data.batches import write_batches
from ftprl.linear import Engine, Spec
from ftprl.linear.spec import AUTO

SCALES = {1: 0.1, 4: AUTO[1:5], 8: AUTO, 16: tuple(2.0**k / 64 for k in range(16))}
THREADS = (1, 2)


def seconds(kind: str, batches: list[Batch], path: Path, dim: int, scales: int, threads: int) -> float:
    """One run."""
    if kind == "kernel":
        engine = Engine(Spec(dim=dim, scale=SCALES[scales]), retire=False)
        engine.threads = threads
        for batch in batches:
            engine.learn(batch)
        began = time.perf_counter()
        for batch in batches:
            engine.learn(batch)
        return time.perf_counter() - began
    began = time.perf_counter()
    options = {"scale": SCALES[scales], "threads": threads, **({"retire": False} if scales > 1 else {})}
    if kind == "memory":
        ftprl.train(batches, dim=dim, **options)
    else:
        ftprl.train(path, **options)
    return time.perf_counter() - began


def main() -> None:
    """Print one line per kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--scales", type=int, default=8, choices=sorted(SCALES))
    parser.add_argument("--kinds", nargs="+", default=["kernel", "memory", "file"])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options.file or Path(folder, "clicks.batches"))
        if options.file is None:
            text = Path(folder, "clicks.csv")
            data.clicks.generate(options.rows, seed=2, path=text)
            write_batches(path, data.open(text, label="click"))
        source = data.open(path)
        dim = source.to_dict()["dim"]
        batches = [] if options.kinds == ["file"] else list(source.batches())
        rows = sum(len(batch) for batch in source.batches())
        for kind in options.kinds:
            timings = [
                [seconds(kind, batches, path, dim, options.scales, threads) for threads in THREADS]
                for _ in range(options.repeats)
            ]
            best, median = (1e9 / rows * f(timings, axis=0) for f in (np.min, np.median))
            print(
                f"{kind:<8} {rows} rows, {options.scales} scales: one thread {best[0]:.0f} (median {median[0]:.0f}),"
                f" two {best[1]:.0f} ({median[1]:.0f}) ns per row; ratio {best[0] / best[1]:.2f}"
                f" ({median[0] / median[1]:.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
