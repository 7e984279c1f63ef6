"""Training from a file of batches against the kernel, and against training, on the same batches in memory.

Short rows are generated clicks as CSV, long ones have some 300 words each. All kinds are timed in turn, and the fastest
round of each counts, in seconds and in processor time of all threads: a thread reads a file in advance. The table of
the model is touched once before, so that no kind pays for its memory.

    python benchmarks/micro/batches.py [--rows 1000000] [--bits 20] [--rounds 7]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from ftprl import data
from ftprl.data.batches import write_batches
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.spec import AUTO
from ftprl.training.run_settings import RunSettings
from ftprl.training.trainer import Trainer

SCALES = {"one scale": 0.1, "eight scales": AUTO}


def long_rows(path: Path, rows: int) -> None:
    """VW text with some 300 words per row."""
    rng = np.random.default_rng(1)
    with path.open("w") as out:
        for _ in range(rows):
            words = " ".join(f"w{k}" for k in np.unique(rng.zipf(1.3, 600) % 100_000))
            out.write(f"{1 if rng.random() < 0.3 else -1} | {words}\n")


def seconds(run: Callable[[], object]) -> tuple[float, float]:
    """Seconds, and the processor time of all threads."""
    began, used = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - used


def main() -> None:
    """Print rows per second and ratios."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bits", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder, "short.csv"), Path(folder, "long.vw")
        data.clicks.generate(options.rows, seed=1, path=short)
        long_rows(long, options.rows // 10)
        heads = "".join(f"{head:>12}" for head in ("kernel", "in memory", "from file", "from text"))
        print(f"{'rows':<8}{'scales':<14}{heads}  (rows/s)  file/kernel  file/memory  processor")
        for path, more in ((short, {"label": "click"}), (long, {})):
            compare(path, more, options.bits, options.rounds)


def compare(path: Path, more: dict[str, str], bits: int, rounds: int) -> None:
    """The lines of one file."""
    text = data.open(path, dim=2**bits, **more)
    file = path.with_suffix(".batches")
    count = write_batches(file, text)
    cached = data.open(file)
    batches = list(cached.batches())
    kept = data.open(batches)
    for name, scale in SCALES.items():
        engine = Engine(Spec(dim=2**bits, scale=scale))

        def kernel(engine: Engine = engine) -> None:
            for batch in batches:
                engine.learn(batch)

        def train(source: data.Source, engine: Engine = engine) -> None:
            Trainer(Model(engine, source.to_dict()), source, RunSettings(), lambda _: None).learn()

        sources: tuple[data.Source, ...] = (kept, cached, text)
        kinds = (kernel, *(partial(train, source) for source in sources))
        kernel()
        least = np.min([[seconds(kind) for kind in kinds] for _ in range(rounds)], axis=0)
        speed, processor = count / least[:, 0], count / least[:, 1]
        row = f"{path.stem:<8}{name:<14}" + "".join(f"{value:12,.0f}" for value in speed)
        print(f"{row}  {speed[2] / speed[0]:21.2f}{speed[2] / speed[1]:13.2f}{processor[2] / processor[0]:11.2f}")


if __name__ == "__main__":
    main()
