"""How many rows a second the workers of a cluster and one learner take: stage costs, a model made of them, and runs.

    python benchmarks/cluster.py stages --rows 400000          # measure what each stage costs; writes stages.json
    python benchmarks/cluster.py nodes --rows 400000           # runs on clusters of 1 to 4 nodes on this machine
    python benchmarks/cluster.py link --mbit 100 400 --rows 400000   # runs over a slow link (root, network namespaces)
    python benchmarks/cluster.py ratio --rows 400000           # whole runs with and without Ray, its start not counted
    python benchmarks/cluster.py recovery --rows 400000        # a run whose learner is killed half way
    python benchmarks/cluster.py servers --rows 400000         # stages of rounds over servers, and runs with some
    python benchmarks/cluster.py chart                         # docs/figures/cluster.svg, from the stages
    python benchmarks/cluster.py servers-chart                 # docs/figures/servers.svg, from those of rounds

All commands write to and read from the folder `--folder` (the rows, and stages.json). The numbers and what follows from
them are in docs/cluster.md. A run on simulated nodes shares the cores of this machine: the model is asked for the same.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ftprl
from ftprl.data import Batch

FORMATS = ("csv", "csv.gz", "vw", "parquet")
STORE = 300_000_000  # bytes of the object store of each node
BITS = 22
FEW = 2_000  # rows of a run that is nothing but its start
NAMES = ("ftprl-a", "ftprl-b")  # network namespaces
ADDRESSES = ("10.77.0.1", "10.77.0.2")
PORT = 6390


class Stages(NamedTuple):
    """Seconds that a row needs in each stage, and its bytes."""

    read: float  # by a worker: read, parse, hash
    send: float  # by a worker: into the object store
    move: float  # by the object stores of two nodes: from one to the other
    take: float  # by the learner: out of the object store
    learn: float  # by the learner: learn, keep names, watch the losses
    size: float  # bytes of a parsed row

    def rows_per_second(
        self, workers: int, *, link: float | None = None, cores: int | None = None, far: float = 1.0
    ) -> dict[str, float]:
        """What each part of the cluster can do at most; the least of them is what it does.

        `link` is the speed of the learner's network in bytes per second, `cores` those of one machine if all share it,
        `far` the part of the rows that come from other nodes.
        """
        limits = {"workers": workers / (self.read + self.send), "learner": 1.0 / (self.take + self.learn)}
        limits["object stores"] = 1.0 / (far * self.move) if far else np.inf
        if link is not None:
            limits["link"] = link / (far * self.size)
        if cores is not None:
            limits["cores"] = cores / (self.read + self.send + 2.0 * far * self.move + self.take + self.learn)
        return limits


def with_start(rows: int, rate: float, start: float) -> float:
    """Rows per second of a run of so many rows, with the seconds of its start."""
    return rows / (start + rows / rate)


class RoundStages(NamedTuple):
    """Seconds that a row needs in each stage of a round over servers, and its bytes."""

    prepare: float  # by a reader: number the coordinates
    score: float  # by a reader
    add_up: float  # by a reader: sums of gradients
    play: float  # by a server
    step: float  # by a server
    chain: float  # by the mixer
    store: float  # seconds per byte into an object store and out of it
    hop: float  # seconds that one message takes, whatever its size
    to_mixer: float  # bytes of scores and slopes
    to_servers: float  # all other bytes

    def rows_per_second(
        self, read: float, workers: int, servers: int, *, rows: int = 65536, link: float | None = None
    ) -> dict[str, float]:
        """What each part of the cluster can do at most, each worker and server with a core and a link of its own.

        The stages of a round follow each other, except that the mixer works on a block while readers work on others,
        and that the next rows are parsed meanwhile. `rows` are those of a round.
        """
        blocks = max(1, rows // 4096)
        readers = min(workers, blocks)
        reading = (self.prepare + self.score + self.add_up + self.store * (self.to_mixer + self.to_servers)) / readers
        serving = (self.play + self.step + self.store * self.to_servers) / servers
        mixing = self.chain + self.store * self.to_mixer
        moving = 0.0 if link is None else max(self.to_mixer / link, self.to_servers / (link * min(readers, servers)))
        alone = self.prepare / readers + serving + max(mixing, reading - self.prepare / readers) + moving
        every = read + self.prepare + self.score + self.add_up + self.store * (self.to_mixer + self.to_servers)
        limits = {"workers": workers / every, "mixer": 1.0 / mixing, "servers": 1.0 / serving}
        limits["rounds"] = 1.0 / (alone + 6 * self.hop / rows)
        if link is not None:
            limits["link of the mixer"] = link / self.to_mixer
        return limits


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
    found: dict[str, Any] = {}
    learn = {str(scales): learned(folder, scales, rows) for scales in (1, 8)}
    with two_nodes() as ray:
        for format in FORMATS:
            path = rows_of(folder, format, rows)
            source = ftprl.data.open(path, dim=1 << BITS, names=True, **options_of(path))
            read, batches = min(parsed(source) for _ in range(2)), [batch for batch, _ in source.read(threads=0)]
            send, take, move = np.min([copied(ray, batches) for _ in range(3)], axis=0).tolist()
            found[format] = {"read": read, "send": send, "move": move, "take": take, "size": size_of(batches) / rows}
    result = {"rows": rows, "learn": learn, "formats": found}
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

    head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
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
    run = ftprl.train(path, bits=BITS, retire=False, **options_of(path), **options)
    seconds = time.perf_counter() - begin
    return run.rows / seconds, run.events[-1].get("reading", {})


def nodes(folder: Path, rows: int, format: str) -> None:
    """Runs on clusters of 1 to 4 nodes with one worker each, beside what the model says of the cores they share."""
    from ray.cluster_utils import Cluster

    path, costs = rows_of(folder, format, rows), known(folder, format)
    cores = len(os.sched_getaffinity(0))
    for count in (1, 2, 4):
        head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(count - 1):
                cluster.add_node(num_cpus=1, object_store_memory=STORE)
            options = {"engine": "ray", "address": cluster.address, "workers": count}
            with connected(cluster.address):
                trained(path, **options)  # workers start
                start = min(FEW / trained(rows_of(folder, format, FEW), **options)[0] for _ in range(2))
                rate, reading = max((trained(path, **options) for _ in range(2)), key=lambda one: one[0])
        finally:
            cluster.shutdown()
        limits = costs.rows_per_second(count, cores=cores, far=(count - 1) / count)
        report(f"{count} nodes", rate, reading, limits, rows, start)


@contextmanager
def connected(address: str) -> Iterator[None]:
    import ray

    ray.init(address=address, log_to_driver=False, configure_logging=False, logging_level=logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def report(name: str, rate: float, reading: dict[str, Any], limits: dict[str, float], rows: int, start: float) -> None:
    least = min(limits, key=lambda one: limits[one])
    computed = with_start(rows, limits[least], start)
    print(
        f"{name}: {rate:,.0f} rows/s, {reading['bytes'] / reading['rows']:.0f} bytes per row; computed {computed:,.0f}"
        f" (limit: {least} {limits[least]:,.0f}; start {start:.2f} s)",
        flush=True,
    )


def ratio(folder: Path, rows: int, repeats: int) -> None:
    """Whole runs with and without Ray, in turn."""
    with started(cpus=3):
        trained(rows_of(folder, "csv", rows), engine="ray", workers=2)  # workers start
        for format in FORMATS:
            path = rows_of(folder, format, rows)
            pairs = [(trained(path)[0], trained(path, engine="ray", workers=2)[0]) for _ in range(repeats)]
            here, there = (max(one[k] for one in pairs) for k in (0, 1))
            print(f"{format}: {here:,.0f} rows/s here, {there:,.0f} with Ray: {there / here:.2f}", flush=True)


# ---- servers ----


class TimedPlaces:
    """Servers and readers in this process, with the seconds that each kind of call took."""

    def __init__(self, servers: int) -> None:
        self.servers, self.node = servers, ""
        self.tables: list[Any] = []
        self.seconds: dict[str, float] = {}

    def open(self, spec: Any, *, receipt: bool) -> None:
        from ftprl.linear.shards import TableShards

        self.tables = [TableShards(spec, receipt=receipt) for _ in range(self.servers)]

    def on_server(self, number: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        return self._timed(method, getattr(self.tables[number], method), arguments)

    def reader_near(self, nodes: Any) -> int:
        return 0

    def node_of(self, reader: int) -> str:
        return ""

    def on_reader(self, number: int, work: Any, *arguments: Any, returns: int | None = None) -> Any:
        return self._timed(work.__name__, work, arguments)

    def _timed(self, name: str, work: Any, arguments: Any) -> Any:
        begin = time.perf_counter()
        result = work(*arguments)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin
        return result

    def put(self, value: Any) -> Any:
        return value

    def get(self, handles: list[Any]) -> list[Any]:
        return handles


def round_stages(folder: Path, scales: int, round_rows: int) -> RoundStages:
    """Measure each stage of rounds over two servers, in one thread, on rows of a click log."""
    from ftprl.linear import Engine, Spec
    from ftprl.linear.round_buffer import joined
    from ftprl.linear.sharded_engine import ShardedEngine

    source = ftprl.data.open(rows_of(folder, "vw", 8 * 65536), dim=1 << BITS)
    rows = joined([batch for batch, _ in source.read(threads=0)])
    spec = Spec(dim=1 << BITS, scale="auto" if scales == 8 else 0.1, round_rows=round_rows)
    best: dict[str, float] = {}
    for _ in range(2):
        places, engine = TimedPlaces(2), Engine(spec, retire=False)
        sharded = ShardedEngine(engine, places, alone=0)
        sharded.tallies[2] = 64.0 * round_rows  # as if so many rows had been learned
        sharded.learn(rows[: 4 * 65536])
        places.seconds.clear()
        begin = time.perf_counter()
        sharded.learn(rows[4 * 65536 :])
        spent = time.perf_counter() - begin
        seconds = {**places.seconds, "chain": spent - sum(places.seconds.values())}
        best = {name: min(value, best.get(name, value)) for name, value in seconds.items()}
    each = {name: value / (4 * 65536) for name, value in best.items()}
    exchange = sharded.exchange
    to_mixer = (exchange.scores + exchange.slopes) / exchange.rows
    to_servers = (exchange.announced + exchange.plays + exchange.sums + exchange.cells) / exchange.rows
    names = ("prepare", "score", "add_up", "play", "step", "chain")
    return RoundStages(*(each[name] for name in names), *exchanged(), to_mixer, to_servers)


def exchanged() -> tuple[float, float]:
    """Seconds per byte for an array into the object store and out of it in another process, and of a small message."""
    with started(cpus=2) as ray:

        class Other:
            def size(self, array: Any) -> int:
                return int(array.nbytes)

        other = ray.remote(num_cpus=0)(Other).remote()
        large, small = np.ones(1 << 20), np.ones(1)
        times = []
        for array in (small, large):
            spent = []
            for _ in range(20):
                begin = time.perf_counter()
                ray.get(other.size.remote(ray.put(array)))
                spent.append(time.perf_counter() - begin)
            times.append(min(spent))
    return (times[1] - times[0]) / large.nbytes, times[0]


def servers(folder: Path, rows: int, round_rows: int) -> None:
    """Stages of rounds, what follows for clusters, and runs on this machine."""
    found = {}
    for scales in (8, 1):
        stages = round_stages(folder, scales, round_rows)
        found[str(scales)] = stages._asdict()
        micro = {name: f"{1e6 * value:.2f}" for name, value in stages._asdict().items() if "to_" not in name}
        print(f"{scales} scales, microseconds: {micro}; bytes: {stages.to_mixer:.0f} + {stages.to_servers:.0f}")
        for workers, count in ((1, 1), (4, 2), (16, 4), (64, 16)):
            limits = stages.rows_per_second(0.54e-6, workers, count, rows=round_rows, link=1.25e9)
            least = min(limits, key=lambda one: limits[one])
            print(f"  {workers} workers, {count} servers, 10 Gbit/s: {limits[least]:,.0f} rows/s ({least})")
    (folder / "round-stages.json").write_text(json.dumps(found, indent=1) + "\n")
    path = rows_of(folder, "vw", rows)
    with started(cpus=3):
        for workers, count in ((1, 1), (2, 2)):
            options = {"engine": "ray", "workers": workers, "servers": count, "round_rows": 4096}
            rate, reading = trained(path, **options)
            exchange = reading["exchange"]
            print(
                f"{workers} workers, {count} servers here: {rate:,.0f} rows/s; {exchange['bytes_per_row']:.0f} bytes"
                f" per row, computed {exchange['expected_bytes_per_row']:.0f}",
                flush=True,
            )


# ---- recovery ----


def recovery(folder: Path, rows: int, format: str) -> None:
    """A run whose learner is killed half way: how long it takes until another one learns."""
    path, times = rows_of(folder, format, rows), dict[str, float]()

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= rows // 2 and "killed" not in times:
            os.kill(learner(), signal.SIGKILL)
            times["killed"] = time.perf_counter()
        elif event["event"] == "resume":
            times["resumed"], times["row"] = time.perf_counter(), event["rows"]
        elif event["event"] == "tick" and "resumed" in times:
            times.setdefault("learned", time.perf_counter())

    options: dict[str, Any] = {"engine": "ray", "workers": 2, "checkpoint": folder / "run.ck", "every": rows // 4}
    with started(cpus=3):
        trained(path, engine="ray", workers=2)  # workers start
        plain = rows / trained(path, **options)[0]
        disturbed = rows / trained(path, listener=listen, **options)[0]
    (folder / "run.ck").unlink()
    print(
        f"{format}: {plain:.2f} s without and {disturbed:.2f} s with a kill after row {times['row']:,.0f}: another"
        f" learner was ready after {times['resumed'] - times['killed']:.2f} s and learned the first rows"
        f" {times['learned'] - times['resumed']:.2f} s later"
    )


def learner() -> int:
    """The process that learns for this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return next(int(one) for one in children if b"learner_process" in Path(f"/proc/{one}/cmdline").read_bytes())


# ---- a slow link ----


def link(folder: Path, rows: int, format: str, speeds: list[int]) -> None:
    """A worker in one network namespace, the learner in another, and a link of some Mbit/s between them."""
    path, costs = rows_of(folder, format, rows), known(folder, format)
    for mbit in speeds:
        head = node(0, "--head", f"--port={PORT}", "--num-cpus=0", "--include-dashboard=false")
        with linked(mbit), head, node(1, f"--address={ADDRESSES[0]}:{PORT}", "--num-cpus=2"):
            code = [sys.executable, __file__, "--folder", str(folder), "one", str(path), f"{ADDRESSES[0]}:{PORT}"]
            done = subprocess.run(within(0, *code), capture_output=True, text=True, env=environment(), check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        said = done.stdout.splitlines()[-1]
        rate, reading, start = json.loads(said)
        limits = costs.rows_per_second(2, link=mbit * 1e6 / 8, cores=2)
        report(f"{mbit} Mbit/s", rate, reading, limits, rows, start)


def one(folder: Path, path: Path, address: str) -> None:
    """A run on a cluster that is there, for `link`."""
    import ray

    options = {"engine": "ray", "address": address, "workers": 2}
    host, port = address.split(":")
    await_node(host, int(port))
    with connected(address):
        while ray.cluster_resources().get("CPU", 0) < 2:
            time.sleep(0.2)
        trained(path, **options)
        few = rows_of(folder, path.suffix[1:], FEW)
        start = min(FEW / trained(few, **options)[0] for _ in range(2))
        arrived = Path("/sys/class/net/va/statistics/rx_bytes")
        before = int(arrived.read_text())
        rate, reading = trained(path, **options)
        reading["bytes"] = int(arrived.read_text()) - before  # all that came, with the names of features and headers
        print(json.dumps([rate, reading, start]))


def await_node(host: str, port: int) -> None:
    """Wait until the head node answers."""
    for _ in range(300):
        with suppress(OSError):
            socket.create_connection((host, port), timeout=1).close()
            return
        time.sleep(0.2)
    raise SystemExit("no cluster answers")


def environment() -> dict[str, str]:
    """For commands in the namespaces, which no proxy and nobody else reaches."""
    direct = ",".join(ADDRESSES)
    return {**os.environ, "RAY_AUTH_MODE": "disabled", "no_proxy": direct, "NO_PROXY": direct}


def within(name: int, *command: str) -> list[str]:
    """A command that runs in a network namespace."""
    return ["ip", "netns", "exec", NAMES[name], *command]


@contextmanager
def node(name: int, *options: str) -> Iterator[None]:
    """A node of a cluster in a network namespace; only its own processes are ended."""
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", f"--object-store-memory={STORE}"]
    address = f"--node-ip-address={ADDRESSES[name]}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(
        within(name, *start, "--disable-usage-stats", address, *options), env=environment(), **quiet
    )  # type: ignore[call-overload]
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def linked(mbit: int) -> Iterator[None]:
    """Two network namespaces with a link whose speed tbf limits, in both directions."""

    def ip(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)

    try:
        for name in NAMES:
            ip("ip", "netns", "add", name)
        ip("ip", "link", "add", "va", "netns", NAMES[0], "type", "veth", "peer", "name", "vb", "netns", NAMES[1])
        for name, end, address in zip(NAMES, ("va", "vb"), ADDRESSES, strict=True):
            there = ("ip", "netns", "exec", name)
            ip(*there, "ip", "address", "add", f"{address}/24", "dev", end)
            ip(*there, "ip", "link", "set", end, "up")
            ip(*there, "ip", "link", "set", "lo", "up")
            limit = ("rate", f"{mbit}mbit", "burst", "256kb", "latency", "50ms")
            ip(*there, "tc", "qdisc", "add", "dev", end, "root", "tbf", *limit)
        yield
    finally:
        for name in NAMES:
            with suppress(subprocess.CalledProcessError):
                ip("ip", "netns", "del", name)


# ---- the chart ----


def chart(folder: Path, target: Path) -> None:
    """Rows a second against the number of workers, with what ends the growth."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ftprl"
    figure, axes = plt.subplots(figsize=(8.2, 4.2), layout="constrained")
    counts = np.arange(1, 17)
    colours = ("#1b6ca8", "#7a5195", "#c1532b", "#3b7d3f")
    for format, colour in zip(FORMATS, colours, strict=True):
        for scales, style in ((8, "-"), (1, "--")):
            costs = known(folder, format, scales)
            rates = [min(costs.rows_per_second(int(count)).values()) for count in counts]
            label = f"{format}, {'eight scales' if scales == 8 else 'one scale'}"
            axes.plot(counts, np.array(rates) / 1e6, style, color=colour, label=label)
    size = known(folder, "csv").size
    for gbit in (1, 10):
        rate = gbit * 1e9 / 8 / size / 1e6
        axes.axhline(rate, color="grey", linewidth=0.8, linestyle=":")
        axes.annotate(f"{gbit} Gbit/s to the learner", (16, rate), ha="right", va="bottom", color="grey", fontsize=8)
    axes.set(xlabel="workers, each with a core of its own", ylabel="million rows per second")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.minorticks_off()
    axes.set_yticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"])
    figure.legend(fontsize=8, frameon=False, loc="outside right center")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})
    for format in FORMATS:
        for scales in (8, 1):
            costs = known(folder, format, scales)
            limits = costs.rows_per_second(1, link=1.25e9)
            worker, learner, network = (limits[name] for name in ("workers", "learner", "link"))
            print(
                f"{format}, {scales} scales: a worker {worker:,.0f} rows/s, the learner {learner:,.0f}, 10 Gbit/s"
                f" {network:,.0f}; {learner / worker:.1f} workers keep the learner busy"
            )


def servers_chart(folder: Path, target: Path) -> None:
    """Rows a second against the number of workers, with a server for each four, by the stages of rounds."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.hashsalt"] = "ftprl"
    saved = json.loads((folder / "round-stages.json").read_text())
    figure, axes = plt.subplots(figsize=(8.2, 4.2), layout="constrained")
    counts = [1, 2, 4, 8, 16, 32, 64]
    for scales, name, colour in (("8", "eight scales", "#1b6ca8"), ("1", "one scale", "#c1532b")):
        stages = RoundStages(**saved[scales])
        for gbit, style in ((10, "-"), (1, "--")):
            options = {"rows": 65536, "link": gbit * 1e9 / 8}
            rates = [min(stages.rows_per_second(0.54e-6, n, max(1, n // 4), **options).values()) for n in counts]
            axes.plot(counts, np.array(rates) / 1e6, style, color=colour, label=f"{name}, {gbit} Gbit/s")
        alone = 1.0 / (stages.chain + stages.store * stages.to_mixer) / 1e6
        axes.axhline(alone, color=colour, linewidth=0.8, linestyle=":")
        axes.annotate(f"the mixer, {name}", (64, alone), ha="right", va="bottom", color=colour, fontsize=8)
    axes.set(xlabel="workers, with a server for each four", ylabel="million rows per second")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
    figure.legend(fontsize=8, frameon=False, loc="outside right center")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("cluster-benchmark"))
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("stages", "nodes", "link", "ratio", "recovery", "servers"):
        command = commands.add_parser(name)
        command.add_argument("--rows", type=int, default=400_000)
        command.add_argument("--repeats", type=int, default=3)
        command.add_argument("--format", choices=FORMATS, default="csv")
        command.add_argument("--round-rows", type=int, default=65536)
        command.add_argument("--mbit", type=int, nargs="+", default=[100, 400])
    inner = commands.add_parser("one")
    inner.add_argument("path", type=Path)
    inner.add_argument("address")
    drawn = commands.add_parser("servers-chart")
    drawn.add_argument("--target", type=Path, default=Path("docs/figures/servers.svg"))
    commands.add_parser("chart").add_argument("--target", type=Path, default=Path("docs/figures/cluster.svg"))
    args = parser.parse_args()
    folder = args.folder.resolve()
    if args.command == "stages":
        stages(folder, args.rows)
    elif args.command == "nodes":
        nodes(folder, args.rows, args.format)
    elif args.command == "ratio":
        ratio(folder, args.rows, args.repeats)
    elif args.command == "recovery":
        recovery(folder, args.rows, args.format)
    elif args.command == "servers":
        servers(folder, args.rows, args.round_rows)
    elif args.command == "servers-chart":
        servers_chart(folder, args.target)
    elif args.command == "link":
        link(folder, args.rows, args.format, args.mbit)
    elif args.command == "one":
        one(folder, args.path, args.address)
    else:
        chart(folder, args.target)


if __name__ == "__main__":
    main()
