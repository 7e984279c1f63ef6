"""What rounds of several rows cost: the progressive log loss for several `round_rows`, on real data and on bursts.

    python benchmarks/rounds.py [FOLDER]

FOLDER has criteo80k.vw.gz, a9a.libsvm.gz and sms.tsv.gz; what is not there is left out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.training import train

SIZES = (1, 16, 64, 256, 1024, 4096)
FILES: dict[str, dict[str, Any]] = {
    "criteo80k.vw.gz": {},
    "a9a.libsvm.gz": {},
    "sms.tsv.gz": {"label": "1", "header": False, "text": ["2"], "positive": "spam"},
}


def of_file(path: Path, options: dict[str, Any], scale: Any) -> list[float]:
    """The mean loss for each size, without what rounds do not support."""
    losses = []
    for size in SIZES:
        additions = {} if scale != "auto" else {"coin": False, "dense": False}
        losses.append(train(path, scale=scale, round_rows=size, **additions, **options).progressive_loss)
    return losses


def bursts(length: int, rows: int = 100_000) -> Batch:
    """Users that come once, with `length` rows in a row; each clicks with a rate of its own."""
    rng = np.random.default_rng(length)
    user = np.arange(rows) // length
    rate = rng.beta(0.5, 1.5, size=user[-1] + 1)
    y = np.where(rng.random(rows) < rate[user], 1.0, -1.0)
    site = rng.integers(0, 1000, rows)
    indices = np.stack([user + 1000, site], axis=1).astype(np.uint32).ravel()
    return Batch(np.arange(0, 2 * rows + 1, 2), indices, np.ones(2 * rows, np.float32), y, np.ones(rows))


def of_bursts(length: int) -> list[float]:
    """The mean loss for each size."""
    batch, losses = bursts(length), []
    for size in SIZES:
        engine = Engine(Spec(dim=2**17, scale="auto", round_rows=size))
        done = engine.learn(batch)
        losses.append(done.loss / done.weight)
    return losses


def main(folder: Path) -> None:
    """Print the tables."""
    print(f"{'':<28}" + "".join(f"{size:>9}" for size in SIZES))
    for name, options in FILES.items():
        if not (folder / name).is_file():
            continue
        for scale, label in (("auto", "eight scales"), (0.1, "one scale")):
            losses = of_file(folder / name, options, scale)
            print(f"{name.split('.')[0] + ', ' + label:<28}" + "".join(f"{loss:>9.4f}" for loss in losses))
    for length in (4, 16, 64):
        losses = of_bursts(length)
        print(f"{f'bursts of {length}':<28}" + "".join(f"{loss / losses[0]:>9.3f}" for loss in losses))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
