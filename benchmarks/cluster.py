"""How many rows a second the workers of a cluster and one learner take: stage costs, a model made of them, and runs.

    python benchmarks/cluster.py stages --rows 400000               # what each stage costs; writes stages.json
    python benchmarks/cluster.py nodes --rows 600000 --format vw    # runs on 1 to 4 nodes, and the model
    python benchmarks/cluster.py ratio --rows 400000                # whole runs with and without Ray
    python benchmarks/cluster.py recovery --rows 400000             # a run whose learner is killed half way

All commands write to and read from the folder `--folder` (the rows, stages.json). The numbers and what follows from
them are in docs/measurements.md. A run on simulated nodes shares the cores of this machine: the model is asked for the
same.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ftprl
from ftprl.data import Batch

FORMATS = ("csv", "csv.gz", "vw", "parquet")
STORE = 1_000_000_000  # bytes of the object store of each node
BITS = 22
FEW = 2_000  # rows of a run that is nothing but its start


class Stages(NamedTuple):
    """Seconds that a row needs in each stage, and its bytes."""

    read: float  # by a worker: read, parse, hash
    send: float  # by a worker: into the object store
    move: float  # by the object stores of two nodes: from one to the other
    take: float  # by the learner: out of the object store
    learn: float  # by the learner: learn, keep names, watch the losses
    size: float  # bytes of a parsed row

    def rows_per_second(self, workers: int, *, cores: int, far: float) -> dict[str, float]:
        """What each part of the cluster can do at most; the least of them is what it does.

        `cores` are those of the machine that all share, `far` is the part of the rows that come from other nodes.
        """
        limits = {"workers": workers / (self.read + self.send), "learner": 1.0 / (self.take + self.learn)}
        limits["object stores"] = 1.0 / (far * self.move) if far else np.inf
        limits["cores"] = cores / (self.read + self.send + 2.0 * far * self.move + self.take + self.learn)
        return limits


def with_start(rows: int, rate: float, start: float) -> float:
    """Rows per second of a run of so many rows, with the seconds of its start."""
    return rows / (start + rows / rate)


# ---- rows ----


def rows_of(folder: Path, format: str, rows: int) -> Path:
    """A click log; it is made once."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"clicks-{rows}.{format}"
    if not path.exists() and format == "parquet":
        from pyarrow import csv, parquet

        parquet.write_table(csv.read_csv(rows_of(folder, "csv", rows)), path, row_group_size=25_000)
    elif not path.exists():
        ftprl.data.clicks.generate(rows, seed=1, path=path)
    return path


def options_of(path: Path) -> dict[str, Any]:
    return {} if path.name.endswith(".vw") else {"label": "click"}


# ---- stages ----


def stages(folder: Path, rows: int) -> None:
    """Measure each stage by itself, in one thread."""
    by_format: dict[str, Any] = {}
    learn = {str(scales): learned(folder, scales, rows) for scales in (1, 8)}
    with two_nodes() as ray:
        for format in FORMATS:
            path = rows_of(folder, format, rows)
            source = ftprl.data.open(path, dim=1 << BITS, names=True, **options_of(path))
            read, batches = min(parsed(source) for _ in range(2)), [batch for batch, _ in source.read(threads=0)]
            send, take, move = np.min([copied(ray, batches) for _ in range(3)], axis=0).tolist()
            by_format[format] = {
                "read": read,
                "send": send,
                "move": move,
                "take": take,
                "size": size_of(batches) / rows,
            }
    result = {"rows": rows, "learn": learn, "formats": by_format}
    (folder / "stages.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def parsed(source: ftprl.data.Source) -> float:
    """Seconds a row to read, parse and hash, in one thread."""
    begin = time.process_time()
    rows = sum(len(batch) for batch, _ in source.read(threads=0))
    return (time.process_time() - begin) / rows


def learned(folder: Path, scales: int, rows: int) -> float:
    """Seconds a row in training from parsed rows, without the start of a run."""
    options: dict[str, Any] = {"retire": False} if scales == 8 else {"scale": 0.1}
    seconds = {}
    for count in (FEW, rows):
        batches = folder / f"clicks-{count}.batches"
        if not batches.exists():
            ftprl.train(rows_of(folder, "vw", count), bits=BITS, cache=batches)
        spent = []
        for _ in range(3):
            begin = time.process_time()
            ftprl.train(batches, threads=0, **options)
            spent.append(time.process_time() - begin)
        seconds[count] = min(spent)
    return (seconds[rows] - seconds[FEW]) / (rows - FEW)


def copied(ray: Any, batches: list[Batch]) -> tuple[float, float, float]:
    """Seconds a row to put batches into the object store, to take them out, and to move them from another node."""
    rows, sent, taken, moved = 0, 0.0, 0.0, 0.0
    make = ray.remote(num_cpus=0, resources={"far": 0.001})(lambda batch: batch)
    for batch in batches[:20]:
        begin = time.perf_counter()
        reference = ray.put(batch)
        middle = time.perf_counter()
        ray.get(reference)
        end = time.perf_counter()
        there = make.remote(reference)
        ray.wait([there], fetch_local=False)
        far = time.perf_counter()
        ray.get(there)
        moved += max(0.0, time.perf_counter() - far - (end - middle))
        sent, taken, rows = sent + middle - begin, taken + end - middle, rows + len(batch)
    return sent / rows, taken / rows, moved / rows


@contextmanager
def two_nodes() -> Iterator[Any]:
    """A cluster of two nodes on this machine, the second with the resource `far`."""
    import ray
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "resources": {"near": 1}, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(num_cpus=1, resources={"far": 1}, object_store_memory=STORE)
        with connected(cluster.address):
            yield ray
    finally:
        cluster.shutdown()


def size_of(batches: list[Batch]) -> int:
    """Bytes of batches as they are sent, with the names of features that are new in each."""
    return sum(len(pickle.dumps(batch, protocol=5)) for batch in batches)


def known(folder: Path, format: str, scales: int = 8) -> Stages:
    """The stages that were measured."""
    saved = json.loads((folder / "stages.json").read_text())
    return Stages(learn=saved["learn"][str(scales)], **saved["formats"][format])


# ---- runs ----


@contextmanager
def started(cpus: int) -> Iterator[Any]:
    """A cluster on this machine."""
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "logging_level": logging.ERROR}
    ray.init("local", num_cpus=cpus, object_store_memory=STORE, include_dashboard=False, **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


def trained(path: Path, **options: Any) -> tuple[float, dict[str, Any]]:
    """Rows a second of a run, and what its workers did."""
    begin = time.perf_counter()
    run = ftprl.train(path, bits=BITS, **options_of(path), **options)
    seconds = time.perf_counter() - begin
    return run.rows / seconds, run.events[-1].get("reading", {})


def nodes(folder: Path, rows: int, format: str, counts: list[int]) -> None:
    """Runs on clusters of 1 to 4 nodes with one worker each, beside the model, for shared cores."""
    from ray.cluster_utils import Cluster

    print("| nodes | measured, rows/s | computed | limit | bytes per row | computed |")
    print("|---|---|---|---|---|---|")
    for count in counts:
        head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(count - 1):
                cluster.add_node(num_cpus=1, object_store_memory=STORE)
            with connected(cluster.address):
                check(folder, rows, format, count)
        finally:
            cluster.shutdown()


def check(folder: Path, rows: int, format: str, count: int) -> None:
    """A run on the cluster that is connected, with one worker for each of `count` nodes; and the model."""
    path = rows_of(folder, format, rows)
    options = {"engine": "ray", "threads": count}
    trained(path, **options)  # workers start
    start = min(FEW / trained(rows_of(folder, format, FEW), **options)[0] for _ in range(2))
    rate, reading = max((trained(path, **options) for _ in range(2)), key=lambda one: one[0])
    stages = known(folder, format)
    limits = stages.rows_per_second(count, cores=len(os.sched_getaffinity(0)), far=(count - 1) / count)
    limit = min(limits, key=lambda one: limits[one])
    computed, size = with_start(rows, limits[limit], start), reading["bytes"] / reading["rows"]
    print(f"| {count} | {rate:,.0f} | {computed:,.0f} | {limit} | {size:.0f} | {stages.size:.0f} |", flush=True)


@contextmanager
def connected(address: str) -> Iterator[None]:
    import ray

    ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def ratio(folder: Path, rows: int, repeats: int) -> None:
    """Whole runs with and without Ray, in turn."""
    with started(cpus=3):
        trained(rows_of(folder, "csv", rows), engine="ray", threads=2)  # workers start
        for format in FORMATS:
            path = rows_of(folder, format, rows)
            pairs = [(trained(path)[0], trained(path, engine="ray", threads=2)[0]) for _ in range(repeats)]
            here, there = (max(one[k] for one in pairs) for k in (0, 1))
            print(f"{format}: {here:,.0f} rows/s here, {there:,.0f} with Ray: {there / here:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("stages", "nodes", "ratio"))
    parser.add_argument("--folder", type=Path, default=Path("cluster-benchmark"))
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--format", choices=FORMATS, default="csv")
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 2, 3, 4])
    args = parser.parse_args()
    folder = args.folder.resolve()
    if args.command == "stages":
        stages(folder, args.rows)
    elif args.command == "nodes":
        nodes(folder, args.rows, args.format, args.counts)
    else:
        ratio(folder, args.rows, args.repeats)


if __name__ == "__main__":
    main()
