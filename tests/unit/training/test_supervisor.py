"""A run whose learner is a process of its own: the same bytes when that is killed, the same errors when it fails."""

from __future__ import annotations

import inspect
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from ftprl import data
from ftprl.errors import BadFormat, FtprlError, Interrupted
from ftprl.training import supervisor, train
from ftprl.training.api import may_restart

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="finds processes in /proc")


def arguments(path: Any, **options: Any) -> dict[str, Any]:
    """All arguments of `train`."""
    return {name: p.default for name, p in inspect.signature(train).parameters.items()} | {"data": path} | options


def learners() -> list[int]:
    """The processes that learn for this one."""
    actual = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_one = b"learner_process" in (entry / "cmdline").read_bytes()
                is_ours = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == os.getpid()
            except OSError:
                continue
            if is_one and is_ours:
                actual.append(int(entry.name))
    return actual


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clicks") / "clicks.csv"
    data.clicks.generate(4_000, seed=1, path=path)
    return path


def test_a_killed_learner_is_replaced(clicks: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"label": "click", "bits": 12, "receipt": True}
    train(clicks, output=tmp_path / "here", predictions=tmp_path / "here.gz", **options)
    events: list[dict[str, Any]] = []

    def kill(event: dict[str, Any]) -> None:
        events.append(event)
        if event["event"] == "checkpoint" and event["rows"] in (1_000, 3_000):
            os.kill(learners()[0], signal.SIGKILL)

    files = {"output": tmp_path / "there", "predictions": tmp_path / "there.gz", "events": tmp_path / "log"}
    files |= {"checkpoint": tmp_path / "run.ck"}
    run = supervisor.supervised(arguments(clicks, every=1_000, listener=kill, **files, **options))
    assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes() == run.model.to_bytes()
    assert (tmp_path / "there.gz").read_bytes() == (tmp_path / "here.gz").read_bytes()
    begun = [(event["event"], event["rows"]) for event in events if event["event"] in ("start", "resume")]
    assert begun == [("start", 0), ("resume", 1_000), ("resume", 3_000)]
    died = next(event for event in run.events if event["event"] == "learner_died")
    assert died["message"] == "the process that learns died (SIGKILL); another one goes on from row 1000"
    assert run.rows == 4_000
    assert not learners()


def test_learners_that_always_die(clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "MOST_DEATHS", 2)

    def kill(event: dict[str, Any]) -> None:
        for learner in learners() if event["event"] == "start" else ():
            os.kill(learner, signal.SIGKILL)

    with pytest.raises(FtprlError, match=r"the process that learns died 2 times after row 0 \(SIGKILL\); give it more"):
        supervisor.supervised(arguments(clicks, label="click", checkpoint=tmp_path / "run.ck", listener=kill))


def test_errors_are_those_of_the_learner(clicks: Path, tmp_path: Path) -> None:
    lines = clicks.read_text().splitlines()[:300]
    lines[200] = "1,2"
    (tmp_path / "bad.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(BadFormat, match=r"bad\.csv:201: ") as raised:
        supervisor.supervised(arguments(tmp_path / "bad.csv", label="click", checkpoint=tmp_path / "run.ck"))
    with pytest.raises(BadFormat) as here:
        train(tmp_path / "bad.csv", label="click")
    assert (str(raised.value), raised.value.options) == (str(here.value), here.value.options)


def test_errors_that_nobody_expects_end_the_run_too(clicks: Path, tmp_path: Path) -> None:
    options = arguments(clicks, label="click", checkpoint=tmp_path / "run.ck")
    del options["resume"]
    with pytest.raises(KeyError, match="resume") as raised:
        supervisor.supervised(options)
    assert "In the process that learns:" in raised.value.__notes__[0]


def test_an_error_of_the_listener_ends_the_run(clicks: Path, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint":
            raise Enough

    whole = {"checkpoint": tmp_path / "run.ck", "every": 1_000, "listener": stop}
    with pytest.raises(Enough):
        supervisor.supervised(arguments(clicks, label="click", bits=12, **whole))
    assert not learners()


def test_a_signal_reaches_the_learner(clicks: Path, tmp_path: Path) -> None:
    def interrupt(event: dict[str, Any]) -> None:
        if event["event"] == "progress" and event["rows"] == 1024:
            os.kill(os.getpid(), signal.SIGINT)

    options: dict[str, Any] = {"label": "click", "bits": 12}
    kept = {"checkpoint": tmp_path / "run.ck", "listener": interrupt}
    with pytest.raises(Interrupted, match=r"all of them saved; continue with resume=") as raised:
        supervisor.supervised(arguments(clicks, **kept, **options))
    assert raised.value.lost == 0
    train(clicks, resume=tmp_path / "run.ck", output=tmp_path / "rest")
    train(clicks, output=tmp_path / "whole", **options)
    assert (tmp_path / "rest").read_bytes() == (tmp_path / "whole").read_bytes()


def test_which_runs_have_a_learner_of_their_own(tmp_path: Path) -> None:
    far = {"engine": "ray", "checkpoint": "run.ck"}
    assert may_restart(arguments("a.csv", **far))
    assert may_restart(arguments(["a.csv", Path("b.csv")], output="m", **far))
    assert not may_restart(arguments("a.csv", checkpoint="run.ck"))
    assert not may_restart(arguments("a.csv", engine="ray"))
    assert not may_restart(arguments("a.csv", output="run.ck", **far))  # it would take the model for the checkpoint
    assert not may_restart(arguments("a.csv", predictions="-", **far))  # which cannot be taken back
    assert not may_restart(arguments([{"a": 1.0}], y=[1.0], **far))
