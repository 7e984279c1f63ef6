"""A table that servers of a Ray cluster share: the models of `round_rows` on one machine, whatever is killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.cluster.connection import Cluster as Connection
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear import Model, Spec
from ftprl.training.servers import RayActors

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ftprl[ray]'")
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
]
PROC = pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes in /proc")
ROWS, ROUND = 1_260, 16  # the first 1,024 rows are learned by one process


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clicks")
    ftprl.data.clicks.generate(ROWS, seed=3, path=folder / "all.csv")
    head, *lines = (folder / "all.csv").read_text().splitlines(keepends=True)
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, ROWS, 500)):
        (folder / "parts" / f"{number}.csv").write_text(head + "".join(lines[start : start + 500]))
    return folder


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VW text with weights, 0 among them, missing labels and a label that cannot be learned."""
    path, rng = tmp_path_factory.mktemp("vw") / "log.vw", np.random.default_rng(5)
    lines = []
    for i in range(ROWS):
        words = rng.choice(400, size=rng.integers(0, 9), replace=False)
        score = (words < 150).mean() if len(words) else 0.5
        label = "" if i % 41 == 5 else 1 if score + 0.3 * rng.normal() > 0.4 else -1
        weight = "" if i % 7 else f" {rng.integers(0, 4)}"
        features = " ".join(f"w{word}:{rng.normal():.3f}" if word % 3 else f"w{word}" for word in words)
        lines.append(f"{label}{weight if label != '' else ''} |all {features}\n")
    path.write_text("".join(lines))
    return path


def trained(data: Any, path: Path, **options: Any) -> bytes:
    ftprl.train(data, **{"bits": 16, "round_rows": ROUND, "output": path, **options})
    return path.read_bytes()


def apart(data: Any, path: Path, *, servers: int = 2, workers: int = 1, **options: Any) -> bytes:
    """Each server and each worker is a process that has to start: some seconds for a test with many of them."""
    return trained(data, path, engine="ray", servers=servers, workers=workers, **options)


@pytest.mark.parametrize(("workers", "servers"), [(2, 2), pytest.param(1, 1, marks=pytest.mark.slow)])
def test_models_are_those_of_rounds_on_one_machine(
    workers: int, servers: int, clicks: Path, tmp_path: Path, cluster: None
) -> None:
    options = {"label": "click", "receipt": True}
    local = trained(clicks / "parts", tmp_path / "local", **options)
    far = apart(clicks / "parts", tmp_path / "far", workers=workers, servers=servers, **options)
    assert far == local
    assert Model.load(tmp_path / "far").names is not None


@pytest.mark.parametrize(
    "options",
    [
        {"passes": 2, "holdout": 30},
        {"scale": 0.1, "l1": 0.3, "l2": 0.2, "lower": -0.05, "upper": 0.3, "receipt": True, "float64": True},
    ],
)
def test_weights_missing_labels_and_other_options(
    options: dict[str, Any], log: Path, tmp_path: Path, cluster: None
) -> None:
    lines = [tmp_path / name for name in ("local.txt", "far.txt")]
    local = trained(log, tmp_path / "local", predictions=lines[0], **options)
    assert apart(log, tmp_path / "far", predictions=lines[1], **options) == local
    assert lines[0].read_bytes() == lines[1].read_bytes()


def test_bad_rows_are_left_out(log: Path, tmp_path: Path, cluster: None) -> None:
    bad, lines = tmp_path / "bad.vw", log.read_text().splitlines(keepends=True)
    bad.write_text("".join([*lines[:1_100], "7 |all w1\n", *lines[1_100:1_200], "1 |all w:x\n", *lines[1_200:]]))
    local = trained(bad, tmp_path / "local", on_bad_row="skip")
    assert apart(bad, tmp_path / "far", on_bad_row="skip") == local


@pytest.mark.parametrize("line", ["7 |all w1", "1 |all w:x"])  # found when it is learned, and when it is parsed
def test_bad_rows_are_named_as_at_home(
    line: str, log: Path, tmp_path: Path, cluster: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the second of two files, which another worker may have read."""
    lines = log.read_text().splitlines(keepends=True)
    (tmp_path / "a.vw").write_text("".join(lines[:700]))
    (tmp_path / "b.vw").write_text("".join([*lines[700:1_100], line + "\n", *lines[1_100:]]))
    files = [str(tmp_path / name) for name in ("a.vw", "b.vw")]
    printed = []
    for options in ("", "--engine ray --workers 2", "--engine ray --workers 2 --servers 1"):
        words = ["train", *files, "-q", "--bits", "16", "--round-rows", str(ROUND), "-o", str(tmp_path / "no")]
        assert run([*words, *options.split()]) == 2
        printed.append(capsys.readouterr().err)
        assert not (tmp_path / "no").exists()
    assert printed[0] == printed[1] == printed[2]
    assert printed[0].count("\n") == 1
    assert printed[0].startswith(f"ftprl: {files[1]}:401: ")


def test_events_count_the_bytes_that_were_moved(clicks: Path, tmp_path: Path, cluster: None) -> None:
    run = ftprl.train(
        clicks / "all.csv", label="click", bits=14, round_rows=ROUND, engine="ray", servers=2, workers=1, retire=False
    )
    reading = run.events[-1]["reading"]
    assert reading["servers"] == 2
    exchange = reading["exchange"]
    assert exchange["rows"] == ROWS - 64 * ROUND
    assert exchange["rounds"] == -(-exchange["rows"] // ROUND)
    parts = ("announced", "plays", "scores", "slopes", "sums", "cells", "entries")
    assert exchange["bytes"] == sum(exchange[name] for name in parts)
    assert exchange["slopes"] == 8 * 8 * exchange["rows"]
    assert 0.9 < (exchange["bytes"] - exchange["cells"]) / exchange["expected"] < 1.1
    local = ftprl.train(clicks / "all.csv", label="click", bits=14, round_rows=ROUND, retire=False)
    for one, other in zip(local.events, run.events, strict=True):
        for name in ("event", "rows", "loss", "since", "label", "prediction", "features", "mixture"):
            assert one.get(name) == other.get(name), (name, one["rows"])


@pytest.mark.slow
def test_parsed_rows_of_a_cache(clicks: Path, tmp_path: Path, cluster: None) -> None:
    local = trained(clicks / "parts", tmp_path / "local", label="click")
    assert apart(clicks / "parts", tmp_path / "far", label="click", cache=tmp_path / "rows.batches") == local
    assert apart(tmp_path / "rows.batches", tmp_path / "again") == trained(tmp_path / "rows.batches", tmp_path / "own")


class Enough(Exception):
    """Ends a run from its listener."""


def stop_after(rows: int) -> Any:
    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= rows:
            raise Enough

    return stop


@pytest.mark.parametrize("folder", ["file://{}/run", pytest.param("{}/run.ck", marks=pytest.mark.slow)])
def test_a_run_goes_on_anywhere(folder: str, clicks: Path, tmp_path: Path, cluster: None) -> None:
    """Begun by one process, gone on by servers, then by other ones, and ended by one process."""
    data, checkpoint = clicks / "parts", folder.format(tmp_path)
    whole = trained(data, tmp_path / "whole", label="click", receipt=True)
    saved: dict[str, Any] = {"checkpoint": checkpoint, "every": 25}
    first = {"label": "click", "receipt": True, "round_rows": ROUND, "bits": 16}
    steps: list[tuple[int, dict[str, Any]]] = [
        (1_080, {**first}),
        (1_130, {"engine": "ray", "servers": 2, "workers": 1, "resume": checkpoint}),
        (1_180, {"engine": "ray", "servers": 1, "workers": 2, "resume": checkpoint}),
    ]
    for rows, options in steps:
        with pytest.raises(Enough):
            ftprl.train(data, listener=stop_after(rows), **saved, **options)
    ftprl.train(data, resume=checkpoint, output=tmp_path / "rest")
    assert (tmp_path / "rest").read_bytes() == whole


def processes(*names: bytes) -> list[int]:
    """The processes whose command has one of these names."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if any(name in line for name in names):
                pids.append(int(entry.name))
    return pids


def own(*names: bytes) -> list[int]:
    """Those of the cluster, or of the runs, that this process has started."""
    return [one for one in processes(*names) if os.getpid() in ancestors(one)]


def ancestors(process: int) -> Iterator[int]:
    """The parents of a process, and theirs."""
    while process > 1:
        try:
            process = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return
        yield process


KINDS = {
    "server": b"ray::_Server",
    "reader": b"ray::_Reader",
    "worker": b"ray::_do_apart",
    "learner": b"learner_process",
}


@PROC
def test_killed_servers_readers_and_learners_change_nothing(clicks: Path, tmp_path: Path, cluster: None) -> None:
    local = trained(clicks / "parts", tmp_path / "local", label="click", receipt=True)
    wanted, killed = [["reader", "server"], ["learner"]], list[list[str]]()

    def kill(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] > 1_050 and len(killed) < len(wanted):
            pids = [own(KINDS[kind]) for kind in wanted[len(killed)]]
            if all(pids):
                for one in pids:
                    os.kill(one[0], signal.SIGKILL)
                killed.append(wanted[len(killed)])

    options: dict[str, Any] = {"checkpoint": f"file://{tmp_path}/run", "every": 40, "listener": kill}
    far = apart(clicks / "parts", tmp_path / "far", label="click", receipt=True, **options)
    assert killed == wanted
    assert far == local


@PROC
def test_a_server_that_dies_without_a_checkpoint_ends_the_run(clicks: Path, tmp_path: Path, cluster: None) -> None:
    def kill(event: dict[str, Any]) -> None:
        if event["event"] == "tick" and event["rows"] > 1_050:
            for process in own(KINDS["server"]):
                os.kill(process, signal.SIGKILL)

    with pytest.raises(
        FtprlError, match="servers= needs servers and machines that stay, got one that was lost"
    ) as raised:
        apart(clicks / "parts", tmp_path / "far", label="click", servers=1, listener=kill)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "far").exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"round_rows": None}, "servers= needs rounds of several rows, got round_rows=1; pass round_rows=65536"),
        ({"servers": 0}, "servers= needs a whole number from 1 to 64, got 0; pass one"),
        ({"servers": 65}, "servers= needs a whole number from 1 to 64, got 65; pass one"),
        ({"engine": None}, "servers= needs engine=ray, got servers=2 without it"),
        ({"admit": "count:1"}, "servers= does not support admit= yet"),
        ({"loss": "squared"}, "round_rows= above 1 needs loss=logistic"),
        ({"checkpoint": "file:///no/such/path/run"}, "checkpoint= needs a shared path that exists"),
    ],
)
def test_what_is_refused_in_one_line(options: dict[str, Any], named: str, log: Path, tmp_path: Path) -> None:
    every: dict[str, Any] = {"round_rows": ROUND, "engine": "ray", "servers": 2, "output": tmp_path / "no"}
    with pytest.raises(InvalidInput, match=named) as raised:
        ftprl.train(log, **{**every, **options})
    assert "\n" not in str(raised.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("", "--engine ray needs ftprl 9.9 on every node, got version {version} on {host}; install it there."),
        ("--address 127.0.0.1:9", "--address needs a Ray cluster, got none at '127.0.0.1:9' ("),
        ("--checkpoint file:///no/such/path/run", "--checkpoint needs a shared path that exists, got 'file:///no/such"),
    ],
)
def test_what_the_command_line_refuses(
    options: str,
    line: str,
    log: Path,
    tmp_path: Path,
    cluster: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another version on the workers, an address at which nobody answers, a shared path that is not there."""
    monkeypatch.setattr("ftprl.cluster.connection.__version__", "9.9")
    if "--address" in options:
        monkeypatch.setattr(ray, "is_initialized", lambda: False)  # the cluster of other tests is not asked
    words = ["train", str(log), "-q", "-o", str(tmp_path / "no"), "--round-rows", str(ROUND), "--engine", "ray"]
    assert run([*words, "--servers", "2", *options.split()]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(
        "ftprl: " + line.format(version=ftprl.__version__, host=ray.nodes()[0]["NodeManagerHostname"])
    )
    assert printed.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@PROC
def test_every_machine_has_a_server_and_a_reader(tmp_path: Path) -> None:
    """A table that does not fit into the memory of one machine is on several, and rows are read where they are."""
    from ray.cluster_utils import Cluster

    if ray.is_initialized():
        ray.shutdown()
    store = {"num_cpus": 1, "object_store_memory": 100_000_000}
    nodes = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **store})
    try:
        for _ in range(2):
            nodes.add_node(**store)
        ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
        actors = RayActors(Connection(ray, 3), 3)
        actors.open(Spec(dim=64, round_rows=16), receipt=False)
        actors.get([actors.on_server(number, "touched") for number in range(3)])  # they have started
        for kind in ("server", "reader"):
            assert len({next(ancestors(process)) for process in own(KINDS[kind])}) == 3  # processes of three nodes
        assert len({actors.node_of(number) for number in range(3)}) == 3
        actors.close()
    finally:
        ray.shutdown()
        nodes.shutdown()


@pytest.mark.slow
def test_real_data_formats_servers_and_workers(tmp_path: Path, cluster: None) -> None:
    """W, S in {1, 2, 4}, with receipts: rounds of several sizes, so that most rows are learned by servers."""
    from pyarrow import csv, parquet

    ftprl.data.clicks.generate(12_000, seed=1, path=tmp_path / "clicks.csv")
    ftprl.data.clicks.generate(12_000, seed=1, path=tmp_path / "clicks.vw")
    parquet.write_table(csv.read_csv(tmp_path / "clicks.csv"), tmp_path / "clicks.parquet", row_group_size=3_000)
    label = {"label": "click"}
    cases: list[tuple[Path, int, dict[str, Any]]] = [
        (tmp_path / "clicks.csv", 64, label | {"receipt": True}),
        (tmp_path / "clicks.vw", 64, {"receipt": True, "passes": 2}),
        (tmp_path / "clicks.parquet", 64, label | {"holdout": 10}),
    ]
    shared = {
        "criteo80k.vw.gz": (512, {"receipt": True}),
        "a9a.libsvm.gz": (128, {"receipt": True}),
        "sms.tsv.gz": (32, {"label": "1", "text": "2", "header": False, "positive": "spam", "receipt": True}),
    }
    cases += [(SHARED / name, *rest) for name, rest in shared.items() if (SHARED / name).exists()]
    for data, rows, options in cases:
        local = trained(data, tmp_path / "local", bits=18, round_rows=rows, **options)
        for workers in (1, 2, 4):
            for servers in (1, 2, 4):
                more = {"bits": 18, "round_rows": rows, "workers": workers, "servers": servers, **options}
                assert apart(data, tmp_path / "far", **more) == local, (data.name, workers, servers)


@pytest.mark.slow
@PROC
@pytest.mark.parametrize("number", range(10))
def test_four_kills_of_servers_readers_learner_and_node(number: int, clicks: Path, tmp_path: Path) -> None:
    """On two nodes, at random rows and in random order: a server, a reader, the process that learns, a whole node."""
    from ray.cluster_utils import Cluster

    if ray.is_initialized():
        ray.shutdown()
    local = trained(clicks / "parts", tmp_path / "local", label="click")
    rng = np.random.default_rng(number)
    wanted = [str(one) for one in rng.permutation(["server", "reader", "learner", "node"])]
    killed: list[str] = []
    store = {"object_store_memory": 200_000_000}
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 3, "include_dashboard": False, **store})
    other = nodes.add_node(num_cpus=3, **store)

    def kill(event: dict[str, Any]) -> None:
        if event["event"] != "checkpoint" or event["rows"] < 1_050 or len(killed) == len(wanted):
            return
        if rng.random() < 0.5 and event["rows"] < 1_120:  # so that rows are left for all kills
            return
        if wanted[len(killed)] == "node":
            nodes.remove_node(other, allow_graceful=False)
        else:
            kind, deadline = KINDS[wanted[len(killed)]], time.monotonic() + 20.0
            while not (pids := own(kind)) and time.monotonic() < deadline:  # one that was lost may not be there yet
                time.sleep(0.1)
            if not pids:
                return
            os.kill(pids[int(rng.integers(len(pids)))], signal.SIGKILL)
        killed.append(wanted[len(killed)])

    try:
        options: dict[str, Any] = {"checkpoint": f"file://{tmp_path}/run", "every": 16, "listener": kill}
        far = apart(clicks / "parts", tmp_path / "far", label="click", address=nodes.address, **options)
    finally:
        nodes.shutdown()
    assert killed == wanted
    assert far == local
