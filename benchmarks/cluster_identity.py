"""Are models of a Ray cluster those of one machine, to the byte? Runs the command line for each case and compares.

    python benchmarks/cluster_identity.py [--data FOLDER] [--rows 20000] [--workers 1 2 4]

A cluster of two nodes is started on this machine. Each run is compared with the same command without `--engine ray`.
FOLDER has criteo80k.vw.gz, a9a.libsvm.gz and sms.tsv.gz (what is not there is left out); click logs as VW text, CSV and
Parquet and a table of numbers for the other losses are generated. Prints a table; exit code 1 if any model differs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import ftprl
from ftprl.losses import LOSSES

OF_CLASSES = ("softmax", "ovr")


class Case(NamedTuple):
    """Data, and the options to train on it."""

    name: str
    data: list[Path]
    options: list[str]


class Outcome(NamedTuple):
    """A model file, or an error."""

    model: bytes
    error: str = ""


def command(case: Case, output: Path, *more: str) -> Outcome:
    """Train with the command line."""
    output.unlink(missing_ok=True)
    words = [sys.executable, "-m", "ftprl", "train", *map(str, case.data), *case.options, "-q", "-o", str(output)]
    done = subprocess.run([*words, *more], capture_output=True, text=True, check=False)
    if done.returncode:
        return Outcome(b"", f"exit code {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    return Outcome(output.read_bytes())


def cases(folder: Path, data: Path, rows: int) -> list[Case]:
    """All of them, with the data that they need."""
    from pyarrow import csv, parquet

    for format in ("csv", "vw"):
        ftprl.data.clicks.generate(rows, seed=1, path=folder / f"clicks.{format}")
    table = csv.read_csv(folder / "clicks.csv")
    parquet.write_table(table, folder / "clicks.parquet", row_group_size=3_000)
    text = ["--label", "1", "--text", "2", "--no-header", "--positive", "spam"]
    click = ["--label", "click"]
    known = [
        Case("criteo80k", [data / "criteo80k.vw.gz"], []),
        Case("a9a", [data / "a9a.libsvm.gz"], []),
        Case("sms", [data / "sms.tsv.gz"], text),
        Case("clicks, VW text", [folder / "clicks.vw"], []),
        Case("clicks, CSV", [folder / "clicks.csv"], click),
        Case("clicks, Parquet", [folder / "clicks.parquet"], click),
    ]
    known = [case for case in known if case.data[0].exists()]
    chosen = [case._replace(options=["--bits", "18", "--receipt", *case.options]) for case in known]
    rng = np.random.default_rng(0)
    numbers = zip(1 + rng.poisson(3.0, 6_000), rng.random(6_000), "abcde" * 1_200, strict=True)
    (folder / "numbers.csv").write_text("y,x,c\n" + "".join(f"{y},{x:.3f},{c}\n" for y, x, c in numbers))
    for name, loss in LOSSES.items():
        options = ["--bits", "18", "--loss", name, *([] if name in OF_CLASSES else ["--receipt"])]
        if loss.binary and name not in OF_CLASSES:
            chosen.append(Case(f"clicks, {name}", [folder / "clicks.csv"], [*click, *options]))
        else:
            chosen.append(Case(f"numbers, {name}", [folder / "numbers.csv"], ["--label", "y", *options]))
    return [case for case in chosen if case.name != "clicks, logistic"]  # which is there with all formats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--only", default="", help="only cases whose name has this in it")
    args = parser.parse_args()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    store = {"num_cpus": 5, "object_store_memory": 300_000_000}
    nodes = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **store})
    differ = total = 0
    try:
        nodes.add_node(**store)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            print("| data | workers | same bytes | seconds |")
            print("|---|---|---|---|", flush=True)
            for case in cases(folder, args.data, args.rows):
                if args.only in case.name:
                    same = compared(case, folder, nodes.address, args.workers)
                    total, differ = total + len(same), differ + same.count(False)
    finally:
        nodes.shutdown()
    print(f"{total - differ} of {total} models are those of one machine, to the byte")
    raise SystemExit(1 if differ else 0)


def compared(case: Case, folder: Path, address: str, workers: list[int]) -> list[bool]:
    """Whether each model of a case is that of one machine."""
    same, local = [], command(case, folder / "local.ftprl")
    for count in workers:
        begin = time.perf_counter()
        os.environ["RAY_ADDRESS"] = address
        far = command(case, folder / "far.ftprl", "--engine", "ray", "--threads", str(count))
        seconds = time.perf_counter() - begin
        same.append(bool(far.model) and far.model == local.model)
        verdict = "yes" if same[-1] else f"NO {local.error} {far.error}"
        print(f"| {case.name} | {count} | {verdict} | {seconds:.1f} |", flush=True)
    return same


if __name__ == "__main__":
    main()
