"""Training with the workers of a Ray cluster gives the bytes of a local run, also if workers are killed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.cluster.connection import connect
from ftprl.errors import BadFormat, FtprlError, InvalidInput, MissingExtra
from ftprl.losses import CLASS_LOSSES, LOSSES
from ftprl.training.predict_files import predict_files

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'ftprl[ray]'")
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clicks")
    for number, name in enumerate(("a.csv", "b.csv.gz", "c.csv")):
        ftprl.data.clicks.generate(6_000, seed=number, path=folder / name)
    return folder


def trained(data: Any, path: Path, **options: Any) -> bytes:
    ftprl.train(data, label="click", bits=16, output=path, **options)
    return path.read_bytes()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_models_are_those_of_a_local_run(workers: int, clicks: Path, tmp_path: Path, cluster: None) -> None:
    local = trained(clicks, tmp_path / "local.ftprl", receipt=True)
    assert trained(clicks, tmp_path / "ray.ftprl", receipt=True, engine="ray", threads=workers) == local


def test_passes_checkpoints_and_predictions(clicks: Path, tmp_path: Path, cluster: None) -> None:
    options: dict[str, Any] = {"passes": 2, "checkpoint": tmp_path / "run.ck", "every": 5_000}
    files = [tmp_path / name for name in ("local.txt", "ray.txt")]
    local = trained(clicks, tmp_path / "a.ftprl", predictions=files[0], **options)
    assert trained(clicks, tmp_path / "b.ftprl", predictions=files[1], engine="ray", threads=2, **options) == local
    assert files[0].read_bytes() == files[1].read_bytes()


def test_a_run_begun_here_ends_on_the_cluster(clicks: Path, tmp_path: Path, cluster: None) -> None:
    class Enough(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= 8_000:
            raise Enough

    whole = trained(clicks, tmp_path / "whole.ftprl")
    with pytest.raises(Enough):
        trained(clicks, tmp_path / "no.ftprl", checkpoint=tmp_path / "run.ck", every=4_000, listener=stop)
    ftprl.train(clicks, resume=tmp_path / "run.ck", engine="ray", threads=2, output=tmp_path / "rest.ftprl")
    assert (tmp_path / "rest.ftprl").read_bytes() == whole


def test_events_tell_what_was_read(clicks: Path, tmp_path: Path, cluster: None) -> None:
    run = ftprl.train(clicks, label="click", bits=12, engine="ray", threads=2)
    reading = run.events[-1]["reading"]
    assert reading["engine"] == "ray"
    assert reading["rows"] == run.rows == 18_000
    assert reading["bytes"] > 100 * run.rows
    assert reading["deaths"] == 0
    assert reading["rows_per_second_of_a_worker"] > 0.0
    assert reading["rows_per_second_of_the_learner"] > 0.0


def processes(name: bytes) -> list[int]:
    """Return the processes with this name."""
    actual = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if name in command:
                actual.append(int(entry.name))
    return actual


def workers_at_work() -> list[int]:
    """Return the processes that parse rows at the moment."""
    return processes(b"ray::_do")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes in /proc")
def test_killed_workers_change_nothing(clicks: Path, tmp_path: Path, cluster: None) -> None:
    local = trained(clicks, tmp_path / "local.ftprl")
    killed: list[int] = []

    def kill(event: dict[str, Any]) -> None:
        if event["event"] in ("progress", "tick") and len(killed) < 4:
            for pid in workers_at_work()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
                time.sleep(0.2)

    source = ftprl.data.open(clicks, label="click", dim=2**16, block_size=1 << 16, names=True)
    ftprl.train(source, output=tmp_path / "ray.ftprl", engine="ray", threads=2, listener=kill)
    assert killed
    assert (tmp_path / "ray.ftprl").read_bytes() == local


def test_a_dataset_of_ray(clicks: Path, tmp_path: Path, cluster: None) -> None:
    from pyarrow import csv, parquet

    tables = [csv.read_csv(clicks / name) for name in ("a.csv", "c.csv")]
    for number, table in enumerate(tables):
        parquet.write_table(table, tmp_path / f"{number}.parquet")
    data = ray.data.read_parquet(str(tmp_path), override_num_blocks=2)
    local = ftprl.train(tables, label="click", bits=14)
    for engine in ("local", "ray"):
        run = ftprl.train(data, label="click", bits=14, engine=engine)
        assert run.model.to_bytes() == local.model.to_bytes()
    with pytest.raises(InvalidInput, match="y= is for data in memory, got a Ray dataset; name the column with label="):
        ftprl.train(data, [1.0])


def test_other_versions_are_refused(clicks: Path, cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    here = ftprl.__version__
    monkeypatch.setattr("ftprl.cluster.connection.__version__", "9.9")
    with pytest.raises(InvalidInput, match=rf"engine=ray needs ftprl 9\.9 on every node, got version {here} on \S+;"):
        ftprl.train(clicks, label="click", engine="ray")


@pytest.mark.slow
def test_real_data_formats_and_losses(tmp_path: Path, cluster: None) -> None:
    """1, 2 and 4 workers give equal models, with receipts if there are any."""
    from pyarrow import csv, parquet

    ftprl.data.clicks.generate(20_000, seed=1, path=tmp_path / "clicks.csv")
    ftprl.data.clicks.generate(20_000, seed=1, path=tmp_path / "clicks.vw")
    table = csv.read_csv(tmp_path / "clicks.csv")
    parquet.write_table(table, tmp_path / "clicks.parquet", row_group_size=3_000)
    label = {"label": "click"}
    cases: list[tuple[Path, dict[str, Any]]] = [
        (tmp_path / "clicks.csv", label | {"receipt": True}),
        (tmp_path / "clicks.vw", {"receipt": True}),
        (tmp_path / "clicks.parquet", label | {"receipt": True}),
    ]
    cases += [(tmp_path / "clicks.parquet", label | {"loss": "hinge"})]
    numbers = sorted(name for name, loss in LOSSES.items() if not loss.binary and name not in CLASS_LOSSES)
    rng = np.random.default_rng(0)
    lines = [
        f"{1 + y},{x:.3f},{c}"
        for y, x, c in zip(rng.poisson(3.0, 5_000), rng.random(5_000), "abcde" * 1_000, strict=True)
    ]
    (tmp_path / "numbers.csv").write_text("\n".join(["y,x,c", *lines]) + "\n")
    cases += [(tmp_path / "numbers.csv", {"label": "y", "loss": loss}) for loss in (*numbers, *CLASS_LOSSES)]
    shared = {
        "criteo80k.vw.gz": {},
        "a9a.libsvm.gz": {},
        "sms.tsv.gz": {"label": "1", "text": "2", "header": False, "positive": "spam"},
    }
    cases += [(SHARED / name, options) for name, options in shared.items() if (SHARED / name).exists()]
    for data, options in cases:
        local = ftprl.train(data, bits=18, **options).model.to_bytes()
        for workers in (1, 2, 4):
            far = ftprl.train(data, bits=18, engine="ray", threads=workers, **options)
            assert far.model.to_bytes() == local, (data.name, options, workers)


def test_predictions_of_many_files(clicks: Path, tmp_path: Path, cluster: None) -> None:
    run = ftprl.train(clicks, label="click", bits=16)
    files = run.model.open(clicks).files
    with connect(2, run.model.open(clicks)) as workers:
        results = list(predict_files(run.model, files, tmp_path / "out", workers))
    assert [(Path(result.output).name, result.rows, result.bad_rows) for result in results] == [
        (f"{Path(file).name}.txt", 6_000, 0) for file in files
    ]
    far = np.concatenate([np.loadtxt(result.output) for result in results])
    np.testing.assert_array_equal(far, run.model.predict(clicks))


def test_two_files_of_one_name(clicks: Path, tmp_path: Path) -> None:
    run = ftprl.train(clicks / "a.csv", label="click", bits=10)

    class NoWorkers:
        def results(self, jobs: Iterator[Any], work: Any) -> Generator[Any]:
            yield from ()

    with pytest.raises(InvalidInput, match=r"needs files of different names for a folder, got x/a\.csv and y/a\.csv"):
        list(predict_files(run.model, ["x/a.csv", "y/a.csv"], tmp_path / "out", NoWorkers()))


def test_bad_rows_are_reported_as_at_home(clicks: Path, tmp_path: Path, cluster: None) -> None:
    text = (clicks / "a.csv").read_text().splitlines()
    text[4_000] = "what" + text[4_000][1:]
    (tmp_path / "bad.csv").write_text("\n".join(text) + "\n")
    messages = []
    for engine in ("local", "ray"):
        with pytest.raises(BadFormat) as raised:
            ftprl.train([clicks / "c.csv", tmp_path / "bad.csv"], label="click", engine=engine)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert "bad.csv:4001:" in messages[0]


def test_what_cannot_be_read_by_workers(cluster: None) -> None:
    with pytest.raises(InvalidInput, match="engine=ray needs files that every worker can open, got data in memory"):
        ftprl.train([{"a": 1.0}], [1], engine="ray")


def test_an_address_at_which_nobody_answers(clicks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)  # the cluster of other tests is not asked
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(InvalidInput, match=r"engine=ray needs a cluster, got none at '127\.0\.0\.1:9'"):
        ftprl.train(clicks, label="click", engine="ray")


def test_a_cluster_of_other_versions(clicks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**options: Any) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 2.0\n    Python: 3.9")

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(InvalidInput, match=r"Version mismatch: The cluster was started with: Ray: 2.0 Python: 3.9\);"):
        ftprl.train(clicks, label="click", engine="ray")


def test_options_that_do_not_fit_together(clicks: Path) -> None:
    with pytest.raises(InvalidInput, match="engine= needs one of local, ray, got 'spark'"):
        ftprl.train(clicks, label="click", engine="spark")
    with pytest.raises(InvalidInput, match="threads= needs at least 1 with engine=ray, got 0"):
        ftprl.train(clicks, label="click", engine="ray", threads=0)


def test_without_ray(clicks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"engine=ray needs ray; pip install 'ftprl\[ray\]'"):
        ftprl.train(clicks, label="click", engine="ray")


def test_a_job_whose_workers_always_die(tmp_path: Path, cluster: None) -> None:
    from ftprl.cluster.jobs import ReadingTotals, ordered_results

    class Deadly:
        def __call__(self, job: int, /) -> Iterator[int]:
            yield job
            if job:
                os.kill(os.getpid(), signal.SIGKILL)

        def size(self, result: int, /) -> tuple[int, int]:
            return 1, 8

        def describe(self, job: int, /) -> str:
            return f"job {job}"

    totals = ReadingTotals()
    results = ordered_results(ray, Deadly(), 2, totals, iter([0, 1, 2]))
    assert next(results) == 0
    with pytest.raises(FtprlError, match="job 1: 5 workers of the cluster died at the same rows"):
        list(results)
    assert totals.deaths >= 5  # what a worker yielded just before it died may be lost as well


class EndsEarly:
    """A Ray whose workers stop without an error after one result, a given number of times."""

    exceptions = ray.exceptions

    def __init__(self, times: int) -> None:
        self.times = times

    def put(self, value: Any) -> Any:
        return value

    def get(self, value: Any) -> Any:
        return value

    def remote(self, **options: Any) -> Any:
        return lambda do: type("Remote", (), {"remote": lambda _, *arguments: self.started(do, *arguments)})()

    def started(self, do: Any, *arguments: Any) -> Iterator[Any]:
        for outcome in do(*arguments):
            yield outcome
            self.times -= 1
            if self.times >= 0:
                return


class Counting:
    """Work whose results are as many numbers as the job says."""

    def __call__(self, job: int, /) -> Iterator[int]:
        yield from range(job)

    def size(self, result: int, /) -> tuple[int, int]:
        return 1, 8

    def describe(self, job: int, /) -> str:
        return f"job {job}"


def test_results_that_end_early_are_not_the_end_of_a_job() -> None:
    from ftprl.cluster.jobs import ReadingTotals, ordered_results

    totals = ReadingTotals()
    assert list(ordered_results(EndsEarly(2), Counting(), 2, totals, iter([3, 0, 2]))) == [0, 1, 2, 0, 1]
    assert totals.deaths == 2

    class Silent(EndsEarly):
        def started(self, do: Any, *arguments: Any) -> Iterator[Any]:
            yield from ()

    with pytest.raises(FtprlError, match=r"job 3: 5 workers of the cluster died at the same rows \(its results ended"):
        list(ordered_results(Silent(0), Counting(), 2, ReadingTotals(), iter([3])))


def test_a_damaged_page_is_reported_as_at_home(tmp_path: Path, cluster: None) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    path, rows = tmp_path / "a.parquet", 6_000
    table = pa.table({"click": [0, 1] * (rows // 2), "a": np.random.default_rng(0).random(rows)})
    parquet.write_table(table, path, compression="none", use_dictionary=False, row_group_size=rows // 3)
    at = parquet.ParquetFile(path).metadata.row_group(1).column(1).data_page_offset
    body = bytearray(path.read_bytes())
    body[at : at + 40] = b"\xff" * 40
    path.write_bytes(body)
    messages = []
    for engine in ("local", "ray"):
        with pytest.raises(BadFormat, match="row group 1: expected a Parquet file, got other bytes") as raised:
            ftprl.train(path, label="click", bits=8, engine=engine)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
