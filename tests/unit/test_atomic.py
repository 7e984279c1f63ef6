"""Replacing a file: completely or not at all, with the user's permissions, and without remains."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ftprl import atomic
from ftprl.errors import InvalidInput


@pytest.fixture(params=["nameless", "named"])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "named":
        monkeypatch.setattr(atomic, "unnamed_file", lambda folder: None)
    return tmp_path / "file"


def test_it_takes_its_place(target: Path) -> None:
    for content in (b"first", b"second"):
        with atomic.replacing(target) as out:
            out.write(content)
        assert target.read_bytes() == content
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask
    assert os.listdir(target.parent) == ["file"]


def test_the_old_file_stays_when_writing_fails(target: Path) -> None:
    target.write_bytes(b"old")

    def fail() -> None:
        with atomic.replacing(target) as out:
            out.write(b"half")
            raise KeyError("no more")

    with pytest.raises(KeyError):
        fail()
    assert target.read_bytes() == b"old"
    assert os.listdir(target.parent) == ["file"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    nowhere = atomic.replacing(tmp_path / "a" / "b")
    with pytest.raises(InvalidInput, match="No such file or directory; check the folder"), nowhere:
        pass


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="the system has no files without a name")
def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    if atomic.unnamed_file(tmp_path) is None:
        pytest.skip("this disk has no files without a name")
    code = (
        "import os, sys\nfrom ftprl.atomic import replacing\n"
        "with replacing(sys.argv[1]) as out:\n    out.write(b'x')\n    os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "file")], check=False)
    assert os.listdir(tmp_path) == []


# ---- remains of killed processes ----


def killed_while_writing(path: Path, *, after_linking: bool) -> None:
    """Run a process that is killed with its temporary file beside the target."""
    code = f"""
import os, sys
from ftprl import atomic
if {after_linking}: atomic.os.replace = lambda *_: os.kill(os.getpid(), 9)
else: atomic.unnamed_file = lambda folder: None
with atomic.replacing(sys.argv[1]) as out:
    out.write(b'x')
    if not {after_linking}: os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("after_linking", [True, False])
def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path, after_linking: bool) -> None:
    target = tmp_path / "a"
    killed_while_writing(target, after_linking=after_linking)
    killed_while_writing(target, after_linking=after_linking)
    killed_while_writing(tmp_path / "a.b", after_linking=after_linking)
    left = os.listdir(tmp_path)
    assert 2 <= len(left) <= 3  # those of the first target, of which the second process may have removed one
    (tmp_path / ".a.0000.part").write_bytes(b"of somebody else")
    (tmp_path / ".a.notes.part").write_bytes(b"of somebody else")
    with atomic.replacing(target) as out:
        out.write(b"new")
    names = set(os.listdir(tmp_path))
    assert {"a", ".a.0000.part", ".a.notes.part"} <= names
    assert len(names) == 4  # with that of the other target, which is not touched
    assert len([name for name in names if name.startswith(".a.b.")]) == 1
    with atomic.replacing(tmp_path / "a.b") as out:
        out.write(b"new")
    assert set(os.listdir(tmp_path)) == {"a", "a.b", ".a.0000.part", ".a.notes.part"}


def test_a_part_that_is_being_written_is_left_alone(target: Path) -> None:
    with atomic.replacing(target) as first:
        first.write(b"first")
        with atomic.replacing(target) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first"
    assert os.listdir(target.parent) == ["file"]


def test_a_long_name(target: Path) -> None:
    long = target.parent / ("n" * 255)
    for content in (b"first", b"second"):
        with atomic.reserved({"output=": long}), atomic.replacing(long) as out:
            out.write(content)
        assert long.read_bytes() == content
    assert os.listdir(target.parent) == [long.name]


def test_a_file_that_cannot_be_linked_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    target, content = tmp_path / "file", os.urandom(3_000_001)
    for _ in range(2):
        with atomic.replacing(target) as out:
            out.write(content)
        assert target.read_bytes() == content
    target.chmod(0o600)
    with atomic.replacing(target) as out:
        out.write(b"new")
    assert target.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize(("number", "named"), [(errno.EIO, True), (errno.EINVAL, False), (errno.ENOTSUP, False)])
def test_a_folder_that_cannot_be_synced(
    target: Path, monkeypatch: pytest.MonkeyPatch, number: int, named: bool
) -> None:
    """Syncing a folder is skipped if the file system does not support it; otherwise the error names the folder."""
    sync = os.fsync

    def fail(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(number, os.strerror(number))
        sync(handle)

    def write() -> None:
        with atomic.replacing(target) as out:
            out.write(b"new")

    monkeypatch.setattr(os, "fsync", fail)
    if named:
        with pytest.raises(OSError, match="while the folder was synced; the file is complete") as caught:
            write()
        assert caught.value.filename == str(target.parent)
    else:
        write()
    assert target.read_bytes() == b"new"


# ---- one run at a time ----


def test_a_reserved_file_is_refused_to_others_until_it_is_free(tmp_path: Path) -> None:
    target = tmp_path / "m"
    link = tmp_path / "link"
    link.symlink_to(target)
    with atomic.reserved({"output=": target, "checkpoint=": target}):
        for other in (target, link, tmp_path / "." / "m"):
            with (
                pytest.raises(InvalidInput, match=r"checkpoint= needs a file that no other run writes, got .*wait"),
                atomic.reserved({"checkpoint=": other}),
            ):
                pass
        with atomic.reserved({"output=": tmp_path / "n"}):
            pass
    with atomic.reserved({"output=": link}):
        pass
    assert sorted(os.listdir(tmp_path)) == ["link"]


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom ftprl.atomic import reserved\n"
        "with reserved({'output=': sys.argv[1]}):\n    os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "m")], check=False)
    assert os.listdir(tmp_path) == [".m.lock"]
    with atomic.reserved({"output=": tmp_path / "m"}):
        pass
    assert os.listdir(tmp_path) == []


def test_many_threads_take_turns(tmp_path: Path) -> None:
    """Two threads never hold the lock together, however its file is made and removed."""
    inside, most, had = [0], [0], [0]
    guard = threading.Lock()

    def work() -> None:
        for _ in range(200):
            try:
                with atomic.reserved({"output=": tmp_path / "m"}):
                    with guard:
                        inside[0] += 1
                        had[0] += 1
                        most[0] = max(most[0], inside[0])
                    with guard:
                        inside[0] -= 1
            except InvalidInput:
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert had[0] >= 4


def test_pipes_and_devices_are_not_reserved() -> None:
    with atomic.reserved({"output=": os.devnull}), atomic.reserved({"output=": os.devnull}):
        pass
