"""Sources read by workers in other processes: rows, positions, errors and counts equal those of a local read."""

from __future__ import annotations

import gzip
import pickle
import re
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ftprl
from ftprl import data
from ftprl.data.jobs import Work
from ftprl.errors import BadFormat, FtprlError

ARRAYS = ("indices", "values", "y", "weight")


class Elsewhere:
    """Workers that receive only pickles."""

    def __init__(self) -> None:
        self.jobs = self.rows = self.bytes = 0
        self.names: set[str] = set()

    def results(self, jobs: Iterator[Any], work: Work[Any, Any]) -> Generator[Any]:
        far = pickle.loads(pickle.dumps(work))
        for job in jobs:
            self.jobs += 1
            self.names.add(work.describe(job))
            for result in far(pickle.loads(pickle.dumps(job))):
                back = pickle.loads(pickle.dumps(result, protocol=5))
                rows, size = work.size(back)
                self.rows, self.bytes = self.rows + rows, self.bytes + size
                yield back


def vw(rows: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    labels, values = rng.random(rows) < 0.4, rng.random(rows)
    users, ads = rng.integers(0, 30, rows), rng.integers(0, 9, rows)
    columns = enumerate(zip(labels, users, ads, values, strict=True))
    return "".join(f"{1 if y else -1} 'tag{i} |user u{u} |ad a{a}:{v:.2f} é\n" for i, (y, u, a, v) in columns)


def csv(rows: int, seed: int = 0) -> str:
    rng = np.random.default_rng(seed)
    lines = [f'"a ""quoted"" {rng.integers(5)}\nline",{rng.random():.3f},{rng.integers(2)}' for _ in range(rows)]
    return "text,number,click\n" + "\n".join(lines) + "\n"


def vw_files(folder: Path) -> list[Path]:
    (folder / "a.vw").write_text(vw(900))
    with gzip.open(folder / "b.vw.gz", "wt") as out:
        out.write(vw(700, 1))
    (folder / "c.vw").write_text(vw(5, 2))
    return [folder / "a.vw", folder / "b.vw.gz", folder / "c.vw"]


def csv_files(folder: Path) -> list[Path]:
    (folder / "a.csv").write_text(csv(400))
    (folder / "b.csv").write_text(csv(300, 1))
    return [folder / "a.csv", folder / "b.csv"]


def parquet_files(folder: Path) -> list[Path]:
    for number in range(2):
        rng = np.random.default_rng(number)
        columns = {"city": rng.choice(["x", "y", "z"], 500), "price": rng.random(500), "click": rng.integers(0, 2, 500)}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", row_group_size=120)
    return [folder / "0.parquet", folder / "1.parquet"]


KINDS: dict[str, tuple[Callable[[Path], list[Path]], dict[str, Any]]] = {
    "vw": (vw_files, {}),
    "csv": (csv_files, {"label": "click"}),
    "parquet": (parquet_files, {"label": "click"}),
}


def opened(kind: str, folder: Path, **more: Any) -> tuple[data.Source, data.Source, Elsewhere]:
    make, options = KINDS[kind]
    files = make(folder)
    here, there = (data.open(files, **{**options, "block_size": 4096, **more}) for _ in range(2))
    workers = Elsewhere()
    there.use_workers(workers)  # type: ignore[attr-defined]
    return here, there, workers


def joined(rows: list[tuple[data.Batch, Any]], name: str) -> np.ndarray:
    return np.concatenate([getattr(batch, name) for batch, _ in rows])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_positions_are_those_of_a_reading_at_home(kind: str, tmp_path: Path) -> None:
    here, there, workers = opened(kind, tmp_path, names=True)
    own, far = list(here.read()), list(there.read())
    for name in ARRAYS:
        np.testing.assert_array_equal(joined(own, name), joined(far, name))
    assert [position.to_dict() for _, position in own] == [position.to_dict() for _, position in far]
    assert [batch.tags for batch, _ in own] == [batch.tags for batch, _ in far]
    assert here.digest() == there.digest()
    assert workers.jobs > 2
    assert workers.rows == sum(len(batch) for batch, _ in own)
    assert workers.bytes > 8 * workers.rows
    assert all(str(tmp_path) in name for name in workers.names)


@pytest.mark.parametrize("kind", KINDS)
def test_a_reading_goes_on_from_every_position(kind: str, tmp_path: Path) -> None:
    here, there, _ = opened(kind, tmp_path)
    rows = list(here.read())
    for batch, position in rows[:: max(1, len(rows) // 5)]:
        middle = position.after(len(batch) // 2)
        for name in ARRAYS:
            np.testing.assert_array_equal(
                joined(list(here.read(middle)), name), joined(list(there.read(there.position(middle.to_dict()))), name)
            )


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_the_same_to_the_byte(kind: str, tmp_path: Path) -> None:
    here, there, _ = opened(kind, tmp_path, names=True)
    models = [ftprl.train(source, output=tmp_path / f"{i}.ftprl", passes=2) for i, source in enumerate((here, there))]
    assert models[0].progressive_loss == models[1].progressive_loss
    assert (tmp_path / "0.ftprl").read_bytes() == (tmp_path / "1.ftprl").read_bytes()


@pytest.mark.parametrize("kind", ["vw", "csv"])
def test_labels_that_are_settled_late(kind: str, tmp_path: Path) -> None:
    """Jobs that disagree on whether -1 or 0 is the negative label are parsed again locally."""
    if kind == "vw":
        (tmp_path / "a.vw").write_text("1 |f a\n" * 500 + "0 |f b\n" * 500)
        (tmp_path / "b.vw").write_text("-1 |f a\n" * 3)
        files, options = [tmp_path / "a.vw", tmp_path / "b.vw"], {}
    else:
        (tmp_path / "a.csv").write_text("x,y\n" + "1,1\n" * 500 + "2,0\n" * 500)
        (tmp_path / "b.csv").write_text("x,y\n" + "1,-1\n" * 3)
        files, options = [tmp_path / "a.csv", tmp_path / "b.csv"], {"label": "y"}
    messages = []
    for workers in (None, Elsewhere()):
        source = data.open(files, block_size=1024, **options)
        source.use_workers(workers)  # type: ignore[attr-defined]
        with pytest.raises(BadFormat) as raised:
            list(source.read())
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert f"{files[1]}:" in messages[1]


@pytest.mark.parametrize("skip", ["skip", "raise"])
def test_bad_rows_have_their_file_and_line(skip: str, tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text(vw(300) + "1 |f x:y\n" + vw(300, 1))
    with gzip.open(tmp_path / "b.vw.gz", "wt") as out:
        out.write(vw(100, 2) + "what |f a\n" + vw(10, 3))
    outcomes = []
    for workers in (None, Elsewhere()):
        source = data.open([tmp_path / "a.vw", tmp_path / "b.vw.gz"], on_bad_row=skip, block_size=2048)
        source.use_workers(workers)  # type: ignore[attr-defined]
        rows, left_out, error = 0, dict[int, int](), ""
        try:
            for batch, _ in source.read():
                rows += len(batch)
                left_out |= source.take_left_out()
        except FtprlError as wrong:
            error = str(wrong)
        outcomes.append((rows, source.bad_rows, source.first_bad, error, left_out))
    assert outcomes[0] == outcomes[1]
    if skip == "skip":
        assert outcomes[1][:2] == (710, 2)
    else:
        assert f"{tmp_path / 'a.vw'}:301:" in outcomes[1][3]


def test_a_truncated_file_is_reported_as_at_home(tmp_path: Path) -> None:
    whole = gzip.compress(vw(500).encode())
    (tmp_path / "a.vw.gz").write_bytes(whole[: len(whole) // 2])
    messages = []
    for workers in (None, Elsewhere()):
        source = data.open(tmp_path / "a.vw.gz")
        source.use_workers(workers)  # type: ignore[attr-defined]
        with pytest.raises(BadFormat) as raised:
            list(source.read())
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", ["a.vw", "a.vw.gz", "a.parquet"])
def test_a_file_that_a_worker_does_not_have(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table({"x": [1.0, 2.0], "click": [0, 1]}), file)
    else:
        file.write_bytes(gzip.compress(vw(900).encode()) if name.endswith("gz") else vw(900).encode())
    source = data.open(file, block_size=2048, label="click" if name.endswith("parquet") else None)

    class Gone(Elsewhere):
        def results(self, jobs: Iterator[Any], work: Work[Any, Any]) -> Generator[Any]:
            todo = list(jobs)
            file.unlink()
            yield from super().results(iter(todo), work)

    source.use_workers(Gone())  # type: ignore[attr-defined]
    what = rf"{re.escape(name)}: not there on a worker of the cluster, on \S+; put the data on a path that all nodes"
    with pytest.raises(FtprlError, match=what):
        list(source.read())


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.sampled_from(["1 |f a b\n", "-1 |g é:2\n", "\n", "1 2.5 't |f c\n", "| x\n"]), max_size=60))
def test_any_text_in_small_jobs(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    file = tmp_path_factory.mktemp("text") / "a.vw"
    file.write_text("".join(lines))
    here, there = (data.open(file, block_size=32) for _ in range(2))
    there.use_workers(Elsewhere())  # type: ignore[attr-defined]
    own, far = list(here.read()), list(there.read())
    assert [position.to_dict() for _, position in own] == [position.to_dict() for _, position in far]
    for (a, _), (b, _) in zip(own, far, strict=True):
        np.testing.assert_array_equal(a.indices, b.indices)
        np.testing.assert_array_equal(a.y, b.y)
        assert a.tags == b.tags
