"""Interactions of two namespaces through ftprl and `vw -q`: whole processes, in turn.

    python benchmarks/interactions.py [--rows 50000] [--repeats 5] [--work DIR]

The rows are those of benchmarks/peers: 13 categories in one namespace and 26 in another, 338 products a row.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.peers import forms
from benchmarks.peers.run import BITS, command


def seconds(args: list[str]) -> float:
    """The time a command takes, start included."""
    began = time.perf_counter()
    subprocess.run(args, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Print the shortest time of each and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--work", type=Path, default=None)
    options = parser.parse_args()
    work = options.work or Path(tempfile.mkdtemp())
    path = work / f"{options.rows}.two.vw"
    forms.write(path, options.rows, seed=1)
    own = [*command(), "train", str(path), "-o", str(work / "m"), "--bits", str(BITS), "-q", "--interactions", "a:b"]
    own += ["--order", "given"]  # as the other systems learn
    vw = [sys.executable, "-m", "vowpalwabbit", "--ftrl", "--loss_function", "logistic", "-b", str(BITS), "-q", "ab"]
    jobs = {
        "vw --ftrl -q ab": [*vw, "-d", str(path), "-f", str(work / "v")],
        "ftprl, one scale": [*own, "--scale", "0.1"],
        "one scale, no names": [*own, "--scale", "0.1", "--names", "0"],
        "ftprl": own,
    }
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(options.repeats):
        for name, args in jobs.items():
            times[name].append(seconds(args))
    reference = min(times["vw --ftrl -q ab"])
    for name, taken in times.items():
        print(f"{name:<20} {min(taken):6.2f} s   vw takes {reference / min(taken):.1f} times as long")


if __name__ == "__main__":
    main()
