"""What a receipt costs: `ftprl train` with and without one, in turn, whole commands with their digests and files.

python benchmarks/micro/receipt.py [--rows 1000000] [--rounds 5] [--data clicks.vw]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ftprl.data import clicks


def once(data: Path, model: Path, *options: str) -> tuple[float, float]:
    """Seconds on the clock, and of processor time."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "ftprl", "train", str(data), "-o", str(model), "-q", *options]
    # Python may keep compiled modules, as it does for a user.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, env=environment)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--rows", type=int, default=1_000_000)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--data", type=Path)
    options = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, model = options.data or Path(folder) / "clicks.vw", Path(folder) / "model"
        if options.data is None:
            clicks.generate(options.rows, seed=1, path=data)
        print(f"{os.path.getsize(data) / 1e6:.0f} MB; seconds on the clock and of processor time, medians")
        for name, more in (("one scale", ("--scale", "0.1")), ("eight scales", ())):
            rounds = [
                (once(data, model, "--no-receipt", *more), once(data, model, "--receipt", *more))
                for _ in range(options.rounds)
            ]
            for i, kind in enumerate(("clock", "processor")):
                without, with_one = ([pair[j][i] for pair in rounds] for j in (0, 1))
                ratio = statistics.median(b / a for a, b in zip(without, with_one, strict=True))
                best = min(with_one) / min(without)
                print(
                    f"{name:<14} {kind:<10} without {statistics.median(without):6.2f}  with"
                    f" {statistics.median(with_one):6.2f}  ratio {ratio:.2f}, of the fastest {best:.2f}"
                )


if __name__ == "__main__":
    main()
