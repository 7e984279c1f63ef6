"""How many rows a second the workers of a cluster and one learner take: stage costs, a model made of them, and runs.

    python benchmarks/cluster.py stages --rows 400000          # measure what each stage costs; writes stages.json
    python benchmarks/cluster.py servers                       # the same for rounds over servers; writes rounds.json
    python benchmarks/cluster.py nodes --plan servers --rows 600000 --format vw   # runs on 1 to 4 nodes, and the model
    python benchmarks/cluster.py link --plan rounds --mbit 200   # runs over a slow link (root, network namespaces)
    python benchmarks/cluster.py table                         # all of these runs beside the model, with errors
    python benchmarks/cluster.py ratio --rows 400000           # whole runs with and without Ray, its start not counted
    python benchmarks/cluster.py recovery --rows 400000        # a run whose learner (or a server) is killed half way
    python benchmarks/cluster.py chart                         # docs/figures/cluster.svg, from the stages

`--plan` is workers (whole runs), servers (whole runs) or rounds (only the rounds over servers, whose rows are there).
All commands write to and read from the folder `--folder` (the rows, stages.json, rounds.json, checked.json). The
numbers and what follows from them are in docs/guide-measurements.md. A run on simulated nodes shares the cores of
this machine: the model is asked for the same.
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
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cluster_rounds import Costs, Layout, Simulated, bytes_per_row, simulate

import ftprl
from ftprl.data import Batch

FORMATS = ("csv", "csv.gz", "vw", "parquet")
PLANS = ("workers", "rounds", "servers")
STORE = 1_000_000_000  # bytes of the object store of each node
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
    run = ftprl.train(path, bits=BITS, retire=False, **options_of(path), **options)
    seconds = time.perf_counter() - begin
    return run.rows / seconds, run.events[-1].get("reading", {})


class Checked(NamedTuple):
    """A run, and what the model says of it."""

    plan: str  # workers, rounds (those of servers alone) or servers (whole runs)
    nodes: int
    round_rows: int
    mbit: int  # speed of the links between nodes; 0: as fast as the machine is
    measured: float  # rows per second
    computed: float
    limit: str
    bytes_measured: float  # per row
    bytes_computed: float


def save(folder: Path, one: Checked) -> None:
    """Keep a run for `table`, instead of an earlier one of the same kind."""
    path = folder / "checked.json"
    saved = [Checked(*values) for values in json.loads(path.read_text())] if path.exists() else []
    saved = [other for other in saved if other[:4] != one[:4]] + [one]
    path.write_text(json.dumps(sorted(saved)) + "\n")
    print(line_of(one), flush=True)


def line_of(one: Checked) -> str:
    """A line of the table."""
    plan = one.plan if one.round_rows == 1 else f"{one.plan}, B = {one.round_rows}"
    speed = f"{one.mbit} Mbit/s" if one.mbit else "none"
    error = 100.0 * (one.computed / one.measured - 1.0)
    return (
        f"| {plan} | {one.nodes} | {speed} | {one.measured:,.0f} | {one.computed:,.0f} | {error:+.0f} % | {one.limit} |"
        f" {one.bytes_measured:.0f} | {one.bytes_computed:.0f} |"
    )


def table(folder: Path) -> None:
    """All runs so far, beside the model."""
    print("| plan | nodes | link | measured, rows/s | computed | error | limit | bytes per row | computed |")
    print("|---|---|---|---|---|---|---|---|---|")
    for values in json.loads((folder / "checked.json").read_text()):
        print(line_of(Checked(*values)))


def nodes(folder: Path, rows: int, format: str, plan: str, counts: list[int], round_rows: int) -> None:
    """Runs on clusters of 1 to 4 nodes with one worker and one server each, beside the model, for shared cores."""
    from ray.cluster_utils import Cluster

    for count in counts:
        head = {"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            for _ in range(count - 1):
                cluster.add_node(num_cpus=1, object_store_memory=STORE)
            with connected(cluster.address):
                check(folder, rows, format, plan, count, round_rows, {"address": cluster.address})
        finally:
            cluster.shutdown()


def check(
    folder: Path,
    rows: int,
    format: str,
    plan: str,
    count: int,
    round_rows: int,
    options: dict[str, Any],
    *,
    mbit: int = 0,
    wire: Callable[[], int] | None = None,
) -> None:
    """A run on the cluster that is connected, with one worker and server for each of `count` nodes; and the model."""
    cores, link = len(os.sched_getaffinity(0)), mbit * 1e6 / 8 if mbit else None
    layout = Layout.spread(count, count, count)
    if plan == "rounds":
        before = 0 if wire is None else wire()
        rate, exchange = rounds_on_ray(folder, count, count, 8, round_rows)
        costs = round_costs(folder, 8, round_rows)
        simulated = simulate(costs, layout, round_rows=round_rows, link=link, cores=cores, parsing=False)
        moved, computed = exchange.bytes / exchange.rows, bytes_per_row(costs)
        if wire is not None:  # which also has the rows that are put where they are read, and the first rounds
            print(f"{wire() - before:,} bytes in all on the wire to the learner")
        save(folder, Checked(plan, count, round_rows, mbit, rate, simulated.rate, simulated.limit, moved, computed))
        return
    path = rows_of(folder, format, rows)
    options = {"engine": "ray", "workers": count, **options}
    if plan == "servers":
        options |= {"servers": count, "round_rows": round_rows}
    trained(path, **options)  # workers start
    # A run that is nothing but its start; with servers that is one in which they get the table.
    few = FEW if plan == "workers" else 64 * min(4096, round_rows) + 2 * round_rows
    start = min(few / trained(rows_of(folder, format, few), **options)[0] for _ in range(2))
    before = 0 if wire is None else wire()
    rate, reading = max((trained(path, **options) for _ in range(2)), key=lambda one: one[0])
    arrived = 0 if wire is None else (wire() - before) / 2
    stages = known(folder, format)
    far = 1.0 if mbit else (count - 1) / count  # with a link all rows are read on the other node
    limits = stages.rows_per_second(count, cores=cores, far=far, link=link)
    limit = min(limits, key=lambda one: limits[one])
    if plan == "workers":
        moved = (arrived or reading["bytes"]) / reading["rows"]
        computed = with_start(rows, limits[limit], start)
        save(folder, Checked(plan, count, 1, mbit, rate, computed, limit, moved, stages.size))
        return
    costs = round_costs(folder, 8, round_rows, format)
    simulated = simulate(costs, layout, round_rows=round_rows, link=link, cores=cores)
    seconds = start + (rows - few) / simulated.rate
    moved = reading["exchange"]["bytes_per_row"]
    save(
        folder,
        Checked(plan, count, round_rows, mbit, rate, rows / seconds, simulated.limit, moved, bytes_per_row(costs)),
    )


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
        trained(rows_of(folder, "csv", rows), engine="ray", workers=2)  # workers start
        for format in FORMATS:
            path = rows_of(folder, format, rows)
            pairs = [(trained(path)[0], trained(path, engine="ray", workers=2)[0]) for _ in range(repeats)]
            here, there = (max(one[k] for one in pairs) for k in (0, 1))
            print(f"{format}: {here:,.0f} rows/s here, {there:,.0f} with Ray: {there / here:.2f}", flush=True)


# ---- servers ----


class TimedActor:
    """A server, or a reader, in a process of its own; it keeps the seconds that each kind of call took."""

    def __init__(self, spec: Any, receipt: bool) -> None:
        from ftprl.linear.shard_table import ShardTable

        self.table, self.spent = ShardTable(spec, receipt=receipt), dict[str, float]()

    def call(self, returns: int | None, work: Any, *arguments: Any) -> Any:
        """Call a method of the table, or a function."""
        name, work = (work, getattr(self.table, work)) if isinstance(work, str) else (work.__name__, work)
        begin = time.thread_time()  # others may run on the same cores
        value = work(*arguments)
        self.spent[name] = self.spent.get(name, 0.0) + time.thread_time() - begin
        return value[0] if returns == 1 else value

    def seconds(self) -> dict[str, float]:
        """The seconds since the last time, and from now on those until the next one."""
        spent, self.spent = self.spent, {}
        return spent


class TimedActors:
    """A server and a reader in processes of their own, as a run has them, with the seconds of each stage."""

    def __init__(self, ray: Any) -> None:
        self.ray, self.servers, self.node = ray, 1, str(ray.get_runtime_context().get_node_id())
        self.own = 0.0  # seconds of this process that messages took

    def open(self, spec: Any, *, receipt: bool) -> None:
        place = self.ray.remote(num_cpus=0)(TimedActor)
        self.server, self.reader = (place.remote(spec, receipt) for _ in range(2))

    def on_server(self, number: int, method: str, *arguments: Any, returns: int | None = None) -> Any:
        return self._called(self.server, returns, method, *arguments)

    def on_reader(self, number: int, work: Any, *arguments: Any, returns: int | None = None) -> Any:
        return self._called(self.reader, returns, work, *arguments)

    def reader_near(self, nodes: Any) -> int:
        return 0

    def node_of(self, reader: int) -> str:
        return self.node

    def _called(self, place: Any, returns: int | None, *arguments: Any) -> Any:
        with self._own_time():
            handles = place.call.options(num_returns=returns or 1).remote(returns, *arguments)
        return [handles] if returns == 1 else handles

    def put(self, value: Any) -> Any:
        with self._own_time():
            return self.ray.put(value)

    def get(self, handles: list[Any]) -> list[Any]:
        with self._own_time():
            return list(self.ray.get(handles))

    def seconds(self) -> dict[str, float]:
        """The seconds since the last time."""
        spent, self.own = {"own": self.own}, 0.0
        return {**spent, **self.ray.get(self.server.seconds.remote()), **self.ray.get(self.reader.seconds.remote())}

    @contextmanager
    def _own_time(self) -> Iterator[None]:
        begin = time.thread_time()
        yield
        self.own += time.thread_time() - begin


def round_stages(folder: Path, rows: Batch, scales: int, round_rows: int) -> dict[str, float]:
    """Measure each stage of rounds with one reader and one server, which work in turn, on rows of a click log."""
    from ftprl.linear.sharded_engine import ShardedEngine

    with started(cpus=3) as ray:
        actors = TimedActors(ray)
        sharded = ShardedEngine(engine_of(scales, round_rows), actors, alone=0)
        sharded.tallies[2] = 64.0 * round_rows  # as if so many rows had been learned
        far, part, best = placed(rows), 2 * 65536, dict[str, float]()
        for start in range(0, len(far), part):
            begin = time.thread_time()
            sharded.learn(far[start : start + part])
            spent = time.thread_time() - begin
            seconds = actors.seconds()
            seconds["chain"] = spent - seconds.pop("own")
            if start >= 2 * part:  # the first parts are for pages and caches
                best = {name: min(value, best.get(name, value)) for name, value in seconds.items()}
    times = []
    for _ in range(2):
        begin = time.process_time()
        engine_of(scales, 1).learn(rows)
        times.append(time.process_time() - begin)
    alone = min(times) / len(rows)
    each = {name: best[name] / part for name in ("prepare", "score", "add_up", "play", "step", "chain")}
    moved = {name: getattr(sharded.exchange, name) / sharded.exchange.rows for name in KINDS}
    moved["announced"] += sharded.exchange.cells / sharded.exchange.rows
    moved["rows_kept"] = 8 + 12 * len(rows.indices) / len(rows)
    saved = json.loads((folder / "stages.json").read_text())
    return {**each, **moved, "keep": max(0.0, saved["learn"][str(scales)] - alone)}


KINDS = ("announced", "plays", "scores", "slopes", "sums")


def click_rows(folder: Path) -> Batch:
    """Eight rounds of 65536 rows."""
    from ftprl.linear.round_buffer import joined

    source = ftprl.data.open(rows_of(folder, "vw", 8 * 65536), dim=1 << BITS)
    return joined([batch for batch, _ in source.read(threads=0)])


def engine_of(scales: int, round_rows: int) -> Any:
    """An engine that has learned nothing."""
    from ftprl.linear import Engine, Spec

    spec = Spec(dim=1 << BITS, scale="auto" if scales == 8 else 0.1, round_rows=round_rows)
    return Engine(spec, retire=False)


class Echo:
    """Returns what it gets, from another process."""

    def same(self, *values: Any) -> Any:
        return values[0] if len(values) == 1 else values

    def several(self, count: int) -> list[int]:
        return [0] * count

    def process(self) -> int:
        return os.getpid()


SIZES = (1 << 15, 1 << 18)  # float64 numbers of an array: as a block of rounds has, and more
PARTS = 3  # in which the scores of a block go, each with the message itself


def chained(ray: Any, others: list[Any], *values: Any) -> tuple[float, float]:
    """Seconds for values to go from one to the other and to be there, and of processors for that."""
    before = seconds_of(None)
    time.sleep(1.0)
    idle = seconds_of(None) - before  # what Ray does in a second in any case
    count, times = 60, []
    for _ in range(5):
        handles, used, begin = [ray.put(value) for value in values], seconds_of(None), time.perf_counter()
        for number in range(count):
            ask = others[number % 2].same.options(num_returns=len(values))
            answer = ask.remote(*handles)
            handles = answer if len(values) > 1 else [answer]
        ray.wait(handles, num_returns=len(handles), fetch_local=False)
        spent = (time.perf_counter() - begin) / count
        times.append((spent, (seconds_of(None) - used) / count - idle * spent))
    return tuple(np.median(times, axis=0).tolist())


def stored(ray: Any) -> float:
    """Seconds per byte into the object store, with as many arrays alive as a round has."""
    alive, array, spent = deque[Any](maxlen=40), np.ones(SIZES[1]), []
    for _ in range(120):
        begin = time.perf_counter()
        alive.append(ray.put(array))
        spent.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    for _ in range(40):
        ray.put(array[:1])
    return (float(np.median(spent[40:])) - (time.perf_counter() - begin) / 40) / array.nbytes


def messages() -> dict[str, float]:
    """What calls and bytes cost in Ray on one node, and between two, whatever is done with them."""
    count, array = 1000, np.ones(SIZES[0])
    with started(cpus=3) as ray:
        others = [ray.remote(num_cpus=0)(Echo).remote() for _ in range(2)]
        process = ray.get([other.process.remote() for other in others])[0]
        time.sleep(3.0)  # whatever Ray starts is started
        near = chained(ray, others, array)
        small = chained(ray, others, *([bytes(87_000)] * PARTS))
        store = stored(ray)
        everyone, own, begin = seconds_of(None), seconds_of(process), time.perf_counter()
        handles = [others[0].same.remote(number) for number in range(count)]
        submit = (time.perf_counter() - begin) / count
        ray.get(handles)
        serve, every = ((seconds_of(one) - before) / count for one, before in ((process, own), (None, everyone)))
        spent = []
        for several in (1, 16):
            ask = others[0].several.options(num_returns=several)
            begin = time.perf_counter()
            handles = [ask.remote(several) if several > 1 else others[0].same.remote(0) for _ in range(200)]
            ray.get(handles[-1])
            spent.append((time.perf_counter() - begin) / 200)
    with two_nodes() as ray:
        make = ray.remote(num_cpus=0)(Echo)
        others = [make.options(resources={name: 0.001}).remote() for name in ("near", "far")]
        ray.get([other.process.remote() for other in others])
        time.sleep(3.0)
        far, large = (chained(ray, others, np.ones(size)) for size in SIZES)
    move = (large[1] - far[1]) / (8 * (SIZES[1] - SIZES[0])) - store
    return {
        "submit": submit,
        "serve": serve,
        "result": max(0.0, spent[1] - spent[0]) / 15,
        "hop": near[0] - store * array.nbytes - serve,
        "small_hop": small[0] - serve,
        "background": max(0.0, every - submit - serve),
        "far_hop": max(0.0, far[0] - near[0] - move * array.nbytes),
        "far_background": max(0.0, far[1] - near[1] - move * array.nbytes),
        "store": store,
        "move": move,
    }


def seconds_of(process: int | None) -> float:
    """Processor time of a process, or of this one and all that it has started."""
    tick = os.sysconf("SC_CLK_TCK")
    if process is not None:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / tick
    total = 0.0
    for one in members():
        with suppress(OSError):
            total += seconds_of(one)
    return total


def members() -> list[int]:
    """This process and all that it has started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit():
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    processes = [os.getpid()]
    for one in processes:
        processes += [child for child, parent in parents.items() if parent == one]
    return processes


def round_costs(folder: Path, scales: int, round_rows: int, format: str = "vw") -> Costs:
    """The costs that `servers` has measured."""
    saved = json.loads((folder / "rounds.json").read_text())
    reading = known(folder, format)
    stages = saved[f"{scales} scales, {round_rows} rows"]
    return Costs(read=reading.read + reading.send, **stages, **saved["messages"])


def servers(folder: Path) -> None:
    """Measure the stages of rounds, and what messages cost."""
    measured: dict[str, Any] = {"messages": messages()}
    print({name: f"{1e6 * value:.4f}" for name, value in measured["messages"].items()}, flush=True)
    rows = click_rows(folder)
    for scales in (8, 1):
        for round_rows in (4096, 65536):
            name = f"{scales} scales, {round_rows} rows"
            measured[name] = round_stages(folder, rows, scales, round_rows)
            print(name, {key: f"{value:.3g}" for key, value in measured[name].items()}, flush=True)
    (folder / "rounds.json").write_text(json.dumps(measured, indent=1) + "\n")


def rounds_on_ray(folder: Path, workers: int, count: int, scales: int, round_rows: int) -> tuple[float, Any]:
    """Rows per second of rounds on the cluster that is connected, whose rows are there; and what was exchanged."""
    import ray

    from ftprl.cluster.connection import Cluster as Connection
    from ftprl.linear.sharded_engine import ExchangeTotals, ShardedEngine
    from ftprl.training.servers import RayActors

    actors = RayActors(Connection(ray, workers), count)
    try:
        sharded = ShardedEngine(engine_of(scales, round_rows), actors, alone=0)
        sharded.tallies[2] = 64.0 * round_rows  # as if so many rows had been learned
        rows = placed(click_rows(folder))
        first = max(2 * round_rows, 65536)
        sharded.learn(rows[:first])
        sharded.exchange, best = ExchangeTotals(), 0.0
        step = (len(rows) - first) // 3 // round_rows * round_rows
        for start in range(first, first + 3 * step, step):
            begin = time.perf_counter()
            sharded.learn(rows[start : start + step])
            best = max(best, step / (time.perf_counter() - begin))
    finally:
        actors.close()
    return best, sharded.exchange


def placed(rows: Batch) -> Batch:
    """The rows with their entries on the nodes of a cluster, some on each."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On

    from ftprl.data.remote_rows import PackedRows, RemoteRows, entries_of

    nodes = sorted(node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) > 0)
    keep = ray.remote(num_cpus=0)(lambda entries: [entries])
    slices, handles = [], []
    for number, start in enumerate(range(0, len(rows), 16384)):
        some, node = rows[start : start + 16384].private(), nodes[number % len(nodes)]
        handles.append(keep.options(scheduling_strategy=On(node, soft=False)).remote(entries_of(some)))
        remote = PackedRows.of(some, ()).batch(handles[-1], 0, node).remote
        slices += [] if remote is None else remote.slices
    ray.wait(handles, num_returns=len(handles), fetch_local=False)
    return rows.replaced(remote=RemoteRows(slices), indices=rows.indices[:0], values=rows.values[:0], is_private=True)


# ---- recovery ----


def recovery(folder: Path, rows: int, format: str, plan: str) -> None:
    """A run whose learner, or one of whose servers, is killed half way: how long it takes until all goes on.

    The model: the run loses the rows since the last checkpoint (here none) and what it takes to start a learner, which
    is what a run of a few rows takes.
    """
    path, times = rows_of(folder, format, rows), dict[str, float]()

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= rows // 2 and "killed" not in times:
            os.kill(learner() if plan == "workers" else server(), signal.SIGKILL)
            times["killed"] = time.perf_counter()
        elif event["event"] == "resume":
            times["resumed"], times["row"] = time.perf_counter(), event["rows"]
        elif event["event"] == "tick" and "resumed" in times:
            times.setdefault("learned", time.perf_counter())

    options: dict[str, Any] = {"engine": "ray", "workers": 2, "checkpoint": f"file://{folder}/run", "every": rows // 4}
    if plan == "servers":
        options |= {"servers": 2, "round_rows": 4096}
    with started(cpus=3):
        few = rows_of(folder, format, FEW)
        trained(few, engine="ray", workers=2)  # workers start
        start = min(FEW / trained(few, **options)[0] for _ in range(2))
        alone = rows / trained(path, **options)[0]
        disturbed = rows / trained(path, listener=listen, **options)[0]
    print(
        f"{plan}, {format}: {alone:.2f} s without and {disturbed:.2f} s with a kill after row {times['row']:,.0f}"
        f" (computed: {alone + start:.2f} s): another learner was ready after"
        f" {times['resumed'] - times['killed']:.2f} s and learned the first rows"
        f" {times['learned'] - times['resumed']:.2f} s later"
    )


def learner() -> int:
    """The process that learns for this one."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return next(int(one) for one in children if b"learner_process" in Path(f"/proc/{one}/cmdline").read_bytes())


def server() -> int:
    """A process that has a part of the table of a run of this one."""
    for one in members():
        with suppress(OSError):
            if b"ray::_Server" in Path(f"/proc/{one}/cmdline").read_bytes():
                return one
    raise SystemExit("no server runs")


# ---- a slow link ----


def link(folder: Path, rows: int, format: str, plan: str, round_rows: int, speeds: list[int]) -> None:
    """Two nodes in network namespaces, with a link of some Mbit/s between them; the learner is on the first."""
    rows_of(folder, format, rows)
    for mbit in speeds:
        cpus = 0 if plan == "workers" else 1  # all rows come from the other node, or half of them
        head = node(0, "--head", f"--port={PORT}", f"--num-cpus={cpus}", "--include-dashboard=false")
        with linked(mbit), head, node(1, f"--address={ADDRESSES[0]}:{PORT}", "--num-cpus=2"):
            options = ["--rows", str(rows), "--format", format, "--plan", plan, "--round-rows", str(round_rows)]
            code = [sys.executable, __file__, "--folder", str(folder), "one", *options, "--mbit", str(mbit)]
            done = subprocess.run(within(0, *code), capture_output=True, text=True, env=environment(), check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        print(done.stdout, end="", flush=True)


def one(folder: Path, rows: int, format: str, plan: str, round_rows: int, mbit: int) -> None:
    """A run on a cluster that is there, for `link`."""
    import ray

    address = f"{ADDRESSES[0]}:{PORT}"
    await_node(ADDRESSES[0], PORT)
    arrived = Path("/sys/class/net/va/statistics/rx_bytes")
    with connected(address):
        while sum(node["Alive"] for node in ray.nodes()) < 2:
            time.sleep(0.2)
        check(
            folder,
            rows,
            format,
            plan,
            2,
            round_rows,
            {"address": address},
            mbit=mbit,
            wire=lambda: int(arrived.read_text()),
        )


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
    """Rows a second against the number of workers for both plans, with what ends the growth."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "ftprl", "font.size": 12})
    figure, (upper, lower) = plt.subplots(2, 1, figsize=(6.4, 9.2), layout="constrained")
    counts, colours = [1, 2, 4, 8, 16, 32, 64], {8: "#1b6ca8", 1: "#c1532b"}
    named = {8: "eight scales", 1: "one scale"}
    alone = {}
    for scales, colour in colours.items():
        for format, style in (("vw", "-"), ("csv.gz", "--")):
            costs = known(folder, format, scales)
            rates = np.array([min(costs.rows_per_second(count).values()) for count in counts]) / 1e6
            what = "VW text" if format == "vw" else "CSV, gzip"
            upper.plot(counts, rates, style, color=colour, label=f"{named[scales]}, {what}")
        alone[scales] = min(known(folder, "vw", scales).rows_per_second(64).values()) / 1e6
    rate = 1e9 / 8 / known(folder, "vw").size / 1e6
    upper.axhline(rate, color="grey", linewidth=1, linestyle=":")
    upper.annotate("1 Gbit/s to the learner", (64, rate), ha="right", va="bottom", color="#555555", fontsize=11)
    for scales, colour in colours.items():
        costs = round_costs(folder, scales, 65536)
        for gbit, style in ((10, "-"), (1, "--")):
            rates = np.array([cluster_rate(costs, count, gbit * 1e9 / 8).rate for count in counts]) / 1e6
            lower.plot(counts, rates, style, color=colour, label=f"{named[scales]}, {gbit} Gbit/s")
        lower.axhline(alone[scales], color=colour, linewidth=1, linestyle=":")
        place = (1, alone[scales])
        lower.annotate(f"workers only, {named[scales]}", place, va="bottom", color=colour, fontsize=11)
    upper.set_title("Workers read, one process learns", fontsize=13, loc="left")
    lower.set_title("Servers share the table, rounds of 65536 rows", fontsize=13, loc="left")
    upper.set_xlabel("workers, each with a core")
    lower.set_xlabel("workers, with a server for every four")
    for axes in (upper, lower):
        axes.set(ylabel="million rows per second", xscale="log", yscale="log")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.minorticks_off()
        ticks = [0.1, 0.2, 0.5, 1, 2]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_ylim(0.09, 2.6)
        axes.legend(fontsize=11, frameon=False, loc="upper left", bbox_to_anchor=(0.0, -0.16), ncols=2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, metadata={"Date": None})
    figure.savefig(folder / "cluster.png", dpi=80)
    for scales in (8, 1):
        for format in FORMATS:
            costs = known(folder, format, scales)
            limits = costs.rows_per_second(1, link=1.25e9)
            worker, learner, stores = (limits[name] for name in ("workers", "learner", "object stores"))
            print(
                f"{format}, {named[scales]}: a worker {worker:,.0f} rows/s, the learner {learner:,.0f}, object stores"
                f" {stores:,.0f}; {learner / worker:.1f} workers keep the learner busy"
            )
        for gbit in (10, 1):
            for count in (4, 16, 64):
                simulated = cluster_rate(round_costs(folder, scales, 65536), count, gbit * 1e9 / 8)
                busy = {name: round(part, 2) for name, part in simulated.busy.items() if part > 0.2}
                print(
                    f"{named[scales]}, {count} workers, {gbit} Gbit/s: {simulated.rate:,.0f} rows/s"
                    f" ({simulated.limit}; {busy})"
                )


def cluster_rate(costs: Costs, workers: int, link: float) -> Simulated:
    """Rounds of 65536 rows with a server for every four workers, each on a machine of its own."""
    return simulate(costs, Layout.spread(workers, max(1, workers // 4)), round_rows=65536, link=link)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("cluster-benchmark"))
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("stages", "nodes", "link", "one", "ratio", "recovery"):
        command = commands.add_parser(name)
        command.add_argument("--rows", type=int, default=400_000)
        command.add_argument("--repeats", type=int, default=3)
        command.add_argument("--format", choices=FORMATS, default="csv")
        command.add_argument("--plan", choices=PLANS, default="workers")
        command.add_argument("--counts", type=int, nargs="+", default=[1, 2, 3, 4])
        command.add_argument("--round-rows", type=int, default=4096, help="4096 or 65536, which have been measured")
        command.add_argument("--mbit", type=int, nargs="+", default=[100, 400])
    commands.add_parser("servers")
    commands.add_parser("table")
    commands.add_parser("chart").add_argument("--target", type=Path, default=Path("docs/figures/cluster.svg"))
    args = parser.parse_args()
    folder = args.folder.resolve()
    if args.command == "stages":
        stages(folder, args.rows)
    elif args.command == "nodes":
        nodes(folder, args.rows, args.format, args.plan, args.counts, args.round_rows)
    elif args.command == "ratio":
        ratio(folder, args.rows, args.repeats)
    elif args.command == "recovery":
        recovery(folder, args.rows, args.format, args.plan)
    elif args.command == "servers":
        servers(folder)
    elif args.command == "table":
        table(folder)
    elif args.command == "link":
        link(folder, args.rows, args.format, args.plan, args.round_rows, args.mbit)
    elif args.command == "one":
        one(folder, args.rows, args.format, args.plan, args.round_rows, *args.mbit)
    else:
        chart(folder, args.target)


if __name__ == "__main__":
    main()
