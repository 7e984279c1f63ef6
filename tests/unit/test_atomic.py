"""Replacing a file: whole or not at all, with the user's permissions, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
