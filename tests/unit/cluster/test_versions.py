"""Versions on a shared path: only a complete one is read, whatever a writer that was killed has left."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

import ftprl
from ftprl.cluster.versions import VersionedFolder
from ftprl.errors import BadModel, InvalidInput


def text(content: bytes) -> Any:
    return lambda out: out.write(content)


@pytest.fixture(params=["file", "memory"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return f"file://{tmp_path}/run"
    pytest.importorskip("fsspec")
    return f"memory://{uuid.uuid4().hex}/run"


def test_the_last_complete_version_is_read(uri: str) -> None:
    folder = VersionedFolder(uri, "checkpoint")
    folder.check()
    assert folder.latest() is None
    for number in range(4):
        assert folder.write(text(b"a%d" % number)) == number + 1
    assert VersionedFolder(uri, "resume").latest() == b"a3"


def test_a_writer_that_dies_changes_nothing(uri: str) -> None:
    folder = VersionedFolder(uri, "checkpoint")
    folder.check()
    folder.write(text(b"good"))

    def die(out: Any) -> None:
        out.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.write(die)
    assert folder.latest() == b"good"
    assert folder.write(text(b"third")) == 3  # nothing is ever written twice


def test_damage_is_seen(tmp_path: Path) -> None:
    folder = VersionedFolder(f"file://{tmp_path}/run", "checkpoint")
    folder.check()
    for number in range(4):
        folder.write(text(b"a%d" % number))
    kept = sorted((tmp_path / "run").iterdir())
    assert len(kept) == 4  # two versions, each with a manifest
    third, last = ({path.suffix: path for path in kept[at : at + 2]} for at in (0, 2))
    last[".manifest"].write_bytes(last[".manifest"].read_bytes()[:-5])
    assert folder.latest() == b"a2"
    third[".run"].write_bytes(b"A2")
    with pytest.raises(BadModel, match="expected version 3 as it was written, got other bytes; start anew"):
        folder.latest()
    third[".run"].write_bytes(b"")
    assert folder.latest() is None


def test_a_shared_path_that_is_missing(tmp_path: Path) -> None:
    clicks = tmp_path / "clicks.csv"
    ftprl.data.clicks.generate(100, seed=1, path=clicks)
    with pytest.raises(
        InvalidInput, match=r"checkpoint= needs a shared path that exists, got 'file:.*/no/run'; create"
    ):
        ftprl.train(clicks, label="click", checkpoint=f"file://{tmp_path}/no/run")
    with pytest.raises(InvalidInput, match=r"resume= needs a path with a checkpoint, got 'file:.*/no/run' without one"):
        ftprl.train(clicks, resume=f"file://{tmp_path}/no/run")
    with pytest.raises(InvalidInput, match="nowhere://a/b: cannot be reached"):
        ftprl.train(clicks, label="click", checkpoint="nowhere://a/b")


def test_a_run_goes_on_from_a_shared_path(uri: str, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= 2_000:
            raise Enough

    clicks = tmp_path / "clicks.csv"
    ftprl.data.clicks.generate(3_000, seed=1, path=clicks)
    whole = ftprl.train(clicks, label="click", bits=12, receipt=True)
    with pytest.raises(Enough):
        ftprl.train(clicks, label="click", bits=12, receipt=True, checkpoint=uri, every=500, listener=stop)
    rest = ftprl.train(clicks, resume=uri, checkpoint=uri)
    assert rest.events[0]["rows"] == 2_000
    assert rest.model.to_bytes() == whole.model.to_bytes()
