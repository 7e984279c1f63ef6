"""Ctrl-C and SIGTERM save what was learned; a checkpoint that cannot be written does not end the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ftprl import data, errors, report
from ftprl.runlog.events import Writer, read_events
from ftprl.training import event_log, train
from ftprl.training.signals import REPEATED, SignalHold

ROWS = 40_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.vw"
    data.clicks.generate(ROWS, seed=1, path=path)
    return path


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "ftprl", *map(str, args)]


def interrupt_at(rows: int, number: int = signal.SIGINT) -> Callable[[dict[str, Any]], None]:
    """Return a listener that sends a signal to this process after a number of rows."""
    sent: list[int] = []

    def hear(event: dict[str, Any]) -> None:
        if event["rows"] >= rows and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)

    return hear


def wait_for_rows(events: Path, rows: int, process: subprocess.Popen[str]) -> None:
    while process.poll() is None:
        if events.exists() and any(event["rows"] >= rows for event in read_events(events)):
            return
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_command_saves_what_it_learned(log: Path, tmp_path: Path, number: signal.Signals, code: int) -> None:
    whole, out, saved, events = (tmp_path / name for name in ("whole", "m", "c", "e"))
    train(log, bits=16, passes=3, output=whole)
    args = ["train", log, "-o", out, "--bits", 16, "--passes", 3, "--checkpoint", saved, "--every", "1h"]
    with subprocess.Popen(command(*args, "--events", events, "-q"), stderr=subprocess.PIPE, text=True) as process:
        wait_for_rows(events, 1000, process)
        process.send_signal(number)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == code
    assert printed.count("\n") == 1
    last = read_events(events)[-1]
    assert last["event"] == "interrupted"
    assert (last["signal"], last["path"], last["lost"]) == (number.name, str(saved), 0)
    assert (
        printed == f"ftprl: interrupted after {last['rows']} rows, all of them saved; continue with --resume {saved}\n"
    )
    assert not out.exists()
    done = subprocess.run(command(*args, "--resume", saved, "--events", events, "-q"), check=True)
    assert done.returncode == 0
    assert out.read_bytes() == whole.read_bytes()
    assert [event["event"] for event in read_events(events)][-1] == "end"


def test_the_command_without_a_checkpoint_reports_what_is_lost(log: Path, tmp_path: Path) -> None:
    out, events = tmp_path / "m", tmp_path / "e"
    args = ["train", log, "-o", out, "--bits", 16, "--passes", 50, "--events", events, "-q"]
    with subprocess.Popen(command(*args), stderr=subprocess.PIPE, text=True) as process:
        wait_for_rows(events, 1000, process)
        process.terminate()
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 143
    rows = read_events(events)[-1]["rows"]
    lost = f"of which {rows} are lost; pass --checkpoint to save them the next time"
    assert printed == f"ftprl: interrupted after {rows} rows, {lost}\n"
    assert read_events(events)[-1]["lost"] == rows > 0
    assert "Interrupted after" in report.page(read_events(events), "e")


def test_data_that_does_not_come_can_be_interrupted(tmp_path: Path) -> None:
    args = command("train", "-", "--format", "vw", "-o", tmp_path / "m", "-q", "--events", tmp_path / "e")
    with subprocess.Popen(args, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "e").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr is not None
        assert process.stderr.read() == "ftprl: interrupted after 0 rows; nothing was learned or written\n"


def test_an_interrupt_when_the_log_has_just_been_made_is_that_of_a_run(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(path: Path, *, append: bool) -> Writer:
        writer = Writer(path, append=append)
        os.kill(os.getpid(), signal.SIGINT)
        return writer

    monkeypatch.setattr(event_log, "Writer", make)
    with pytest.raises(errors.Interrupted, match=r"^interrupted after 0 rows; nothing was learned or written$"):
        train(iter([{"x": 1.0, "y": 1}]), label="y", events=tmp_path / "e")
    with pytest.raises(errors.Interrupted, match=r"^interrupted after \d+ rows, of which"):
        train(log, bits=16, events=tmp_path / "e", order="given")
    assert [event["event"] for event in read_events(tmp_path / "e")][-1] == "interrupted"


def test_an_interrupt_at_any_time_prints_one_line(log: Path, tmp_path: Path) -> None:
    """An interrupt at any time from the first import on is handled.

    Before that Python has no handler of ours.
    """
    code = "import sys; from ftprl.cli import command, signals; signals.listen(); print(flush=True); command()"
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        args = [sys.executable, "-c", code, "train", str(log), "-o", str(tmp_path / "m"), "-q", "--passes", "9"]
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            _, printed = process.communicate(timeout=60)
        assert process.returncode == 130
        assert printed.startswith("ftprl: interrupted")
        assert printed.count("\n") == 1


def test_a_signal_that_is_ignored_stays_ignored(log: Path, tmp_path: Path) -> None:
    """A signal that is ignored at the start, as under nohup or in a shell script with &, stays ignored."""
    code = "import signal; signal.signal(2, signal.SIG_IGN); from ftprl.cli import command; command()"
    args = [sys.executable, "-c", code, "train", str(log), "-o", str(tmp_path / "m"), "-q", "--events"]
    with subprocess.Popen([*args, str(tmp_path / "e")]) as process:
        wait_for_rows(tmp_path / "e", 100, process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0


def test_python_raises_after_the_checkpoint_is_written(log: Path, tmp_path: Path) -> None:
    whole, saved = tmp_path / "whole", tmp_path / "c"
    train(log, bits=16, receipt=True, output=whole)
    with pytest.raises(KeyboardInterrupt) as caught:
        train(log, bits=16, receipt=True, checkpoint=saved, every="1h", listener=interrupt_at(5000))
    error = caught.value
    assert isinstance(error, errors.Interrupted)
    assert (error.signal, error.checkpoint, error.lost) == (2, str(saved), 0)
    assert 5000 <= error.rows < ROWS
    run = train(log, resume=saved, output=tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == whole.read_bytes()
    assert run.rows == ROWS
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_python_without_a_checkpoint(log: Path) -> None:
    with pytest.raises(errors.Interrupted, match=r"are lost; pass checkpoint= to save them") as caught:
        train(log, bits=16, listener=interrupt_at(5000))
    assert caught.value.lost == caught.value.rows


def test_a_second_pass_can_be_interrupted(log: Path, tmp_path: Path) -> None:
    whole, saved = tmp_path / "whole", tmp_path / "c"
    train(log, bits=16, passes=2, holdout=7, output=whole)
    for rows in (ROWS, ROWS + 3000):
        with pytest.raises(errors.Interrupted):
            train(log, bits=16, passes=2, holdout=7, checkpoint=saved, every="1h", listener=interrupt_at(rows))
        train(log, resume=saved, output=tmp_path / "m")
        assert (tmp_path / "m").read_bytes() == whole.read_bytes()


def test_a_signal_after_the_last_row_waits_until_the_model_is_written(log: Path, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "m"
    train(log, bits=16, output=whole)

    def hear(event: dict[str, Any]) -> None:
        if event["event"] == "pass":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(errors.Interrupted, match=f"the model is complete: {out}"):
        train(log, bits=16, output=out, listener=hear, events=tmp_path / "e")
    assert out.read_bytes() == whole.read_bytes()
    assert read_events(tmp_path / "e")[-1]["event"] == "end"


def test_a_thread_that_is_not_the_main_one_trains_as_before(log: Path) -> None:
    rows: list[int] = []
    thread = threading.Thread(target=lambda: rows.append(train(log, bits=16).rows))
    thread.start()
    thread.join()
    assert rows == [ROWS]


def test_the_handler_of_the_program_is_used_and_put_back() -> None:
    received: list[int] = []
    old = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with SignalHold() as hold:
            hold.hold()
            os.kill(os.getpid(), signal.SIGTERM)
            assert received == []
            hold.deliver()
            assert received == [signal.SIGTERM]
            os.kill(os.getpid(), signal.SIGTERM)  # the same once more, as some programs send it
            hold.release()
            assert received == [signal.SIGTERM]
            hold.hold()
            time.sleep(1.5 * REPEATED)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1.5 * REPEATED)
            os.kill(os.getpid(), signal.SIGTERM)  # the second does not wait
            assert len(received) == 2
        os.kill(os.getpid(), signal.SIGTERM)
        assert len(received) == 3
    finally:
        signal.signal(signal.SIGTERM, old)


# ---- checkpoints that cannot be written ----


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """Make a folder too small for a checkpoint by a limit on the size of files, in a separate process."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def test_a_full_disk_does_not_end_the_run(log: Path, locked: Path) -> None:
    """With a limit below the size of the later checkpoints only, the first checkpoint stays."""
    whole, out, saved, events = locked.parent / "whole", locked / "m", locked / "c", locked / "e"
    train(log, bits=16, output=whole)
    script = (
        "import resource, sys\nfrom ftprl.cli.app import run\n"
        "limit = int(sys.argv[1])\n"
        "import ftprl.training.checkpoint as c\n"
        "write = c.Checkpoints.write\n"
        "def limited(self, model, state, *rest):\n"
        "    if state.rows > 2000: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1))\n"
        "    try: return write(self, model, state, *rest)\n"
        "    finally: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))\n"
        "c.Checkpoints.write = limited\n"
        "sys.exit(run(sys.argv[2:]))"
    )
    args = ["train", log, "-o", out, "--bits", 16, "--checkpoint", saved, "--every", 2000, "--events", events, "-q"]
    done = subprocess.run([sys.executable, "-c", script, "10000", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 4
    assert out.read_bytes() == whole.read_bytes()
    failed = [event for event in read_events(events) if event["event"] == "checkpoint_failed"]
    assert len(failed) == ROWS // 2000 - 1
    expected = f"{saved}: the checkpoint after 4000 rows could not be written: File too large"
    assert failed[0]["message"] == f"{expected}; the last one, after 2000 rows, is kept"
    assert done.stderr.splitlines()[0] == f"ftprl: {failed[0]['message']}"
    assert len(done.stderr.splitlines()) == len(failed)
    assert sorted(os.listdir(locked)) == ["c", "e", "m"]
    train(log, resume=saved, output=out)
    assert out.read_bytes() == whole.read_bytes()


def fail_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    import errno

    from ftprl.training.checkpoint import Checkpoints

    def write(self: Checkpoints, *_: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "c")

    monkeypatch.setattr(Checkpoints, "write", write)


def test_python_warns_of_a_checkpoint_that_failed(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_write(monkeypatch)
    with pytest.warns(errors.FtprlWarning, match="could not be written: No space left on device"):
        run = train(log, bits=16, checkpoint=tmp_path / "c", every=30_000)
    assert run.failed_checkpoints == 1
    assert run.to_dict()["failed_checkpoints"] == 1
    assert run.checkpoint_error is not None


def test_an_interrupt_whose_checkpoint_fails(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_to_write(monkeypatch)
    with pytest.raises(errors.Interrupted, match=r"are lost: .*No space left on device") as caught:
        train(log, bits=16, checkpoint=tmp_path / "c", every="1h", listener=interrupt_at(5000))
    assert caught.value.checkpoint is None
    assert caught.value.lost == caught.value.rows > 0


# ---- exit codes ----


def test_help_and_docs_list_the_exit_codes() -> None:
    from ftprl.cli.app import EXIT_CODES

    page = (Path(__file__).parents[3] / "docs" / "exit-codes.md").read_text()
    main, own = (
        " ".join(subprocess.run(command(*args, "--help"), capture_output=True, text=True).stdout.split())
        for args in ([], ["train"])
    )
    for code, meaning in EXIT_CODES.items():
        assert f"{code}: {meaning}" in main
        assert f"| {code} |" in page
    assert "Exit code 0: done; 2: bad input; 4:" in own
    assert json.dumps(sorted(EXIT_CODES)) == "[0, 1, 2, 3, 4, 130, 143]"
