"""Files of other file systems: URIs that pyarrow or fsspec know, and those that cannot be reached."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ftprl
from ftprl.data.files import expand
from ftprl.errors import InvalidInput
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt

FRAME = pa.table({"y": [1, 0, 1, 0] * 100, "x": ["a", "b", "a", None] * 100, "z": [1.5, 2.5, None, 0.5] * 100})
OPTIONS: dict[str, Any] = {"label": "y", "bits": 10}


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system in memory; each open file has its own position, as elsewhere."""
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    open_one = type(system).open

    def open_own(self: Any, path: str, mode: str = "rb", **options: Any) -> Any:
        file = open_one(self, path, mode, **options)
        return io.BytesIO(file.getvalue()) if mode == "rb" else file

    monkeypatch.setattr(type(system), "open", open_own)
    return system


def put(system: Any, path: str, frame: pa.Table) -> None:
    sink = pa.BufferOutputStream()
    pq.write_table(frame, sink, row_group_size=70)
    system.pipe_file(path, sink.getvalue().to_pybytes())


def test_local_uris(tmp_path: Path) -> None:
    pq.write_table(FRAME, tmp_path / "a b.parquet")
    uri = (tmp_path / "a b.parquet").as_uri()
    assert expand(uri) == (str(tmp_path / "a b.parquet"),)
    assert ftprl.train(uri, **OPTIONS).model.state_digest() == ftprl.train(FRAME, **OPTIONS).model.state_digest()


def test_files_folders_and_patterns(memory: Any) -> None:
    put(memory, "/data/day=1/a.parquet", FRAME[:200])
    put(memory, "/data/day=2/b.parquet", FRAME[200:])
    memory.pipe_file("/data/_SUCCESS", b"")
    days = pa.array([1] * 200 + [2] * 200)
    expected = ftprl.train(FRAME.append_column("day", days), **OPTIONS).model.state_digest()
    assert expand("memory://data") == ("memory://data/day=1/a.parquet", "memory://data/day=2/b.parquet")
    for path in ("memory://data", "memory://data/day=*/*.parquet", list(expand("memory://data"))):
        assert ftprl.train(path, **OPTIONS).model.state_digest() == expected
    with pytest.raises(InvalidInput, match="memory://data/none: no such file; check the path"):
        ftprl.train("memory://data/none", **OPTIONS)


@pytest.mark.parametrize("packed", [False, True])
def test_text_of_another_file_system(memory: Any, tmp_path: Path, packed: bool) -> None:
    import gzip

    text = "".join(f'{{"y": {i % 2}, "x": "{i % 3}"}}\n' for i in range(300)).encode()
    name = "memory://text/a.jsonl.gz" if packed else "memory://text/a.jsonl"
    memory.pipe_file(name.removeprefix("memory:/"), gzip.compress(text) if packed else text)
    (tmp_path / "a.jsonl").write_bytes(text)
    expected = ftprl.train(tmp_path / "a.jsonl", **OPTIONS, passes=2).model.state_digest()
    assert ftprl.train(name, **OPTIONS, passes=2).model.state_digest() == expected


def test_runs_are_resumed_and_verified(memory: Any, tmp_path: Path) -> None:
    put(memory, "/data/a.parquet", FRAME)

    def stop(event: Any) -> None:
        if event["event"] == "checkpoint":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ftprl.train("memory://data/a.parquet", **OPTIONS, checkpoint=tmp_path / "c", every=150, listener=stop)
    resumed = ftprl.train("memory://data/a.parquet", resume=tmp_path / "c")
    assert resumed.model.state_digest() == ftprl.train(FRAME, **OPTIONS).model.state_digest()
    run = ftprl.train("memory://data/a.parquet", **OPTIONS, receipt=True)
    write_receipt(tmp_path / "r", make_receipt(run.model, certify_model(run.model)))
    assert verify_receipt(tmp_path / "r", "memory://data/a.parquet").confirmed
    put(memory, "/data/a.parquet", FRAME[:300])
    with pytest.raises(InvalidInput, match="resume= needs the data of the checkpoint"):
        ftprl.train("memory://data/a.parquet", resume=tmp_path / "c")


@pytest.mark.parametrize(
    "uri", ["nowhere://bucket/a.parquet", "hdfs://127.0.0.1:9/a.parquet", "memory:///none.parquet"]
)
def test_what_cannot_be_reached_is_one_line(uri: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        ftprl.train(uri, **OPTIONS)
    assert str(raised.value).startswith(f"{uri}: ")
    assert "check the" in str(raised.value)
    assert "\n" not in str(raised.value)
