"""The commands of docs/names.md, on the SMS Spam Collection if it is available."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ftprl.cli.app import run

ROOT = Path(__file__).parents[3]
SMS = ROOT.parent / "shared" / "data" / "sms.tsv.gz"
PAGE = (ROOT / "docs" / "names.md").read_text()

pytestmark = pytest.mark.skipif(not SMS.exists(), reason="needs the SMS Spam Collection")


def test_three_commands_to_the_strongest_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sms.tsv.gz").symlink_to(SMS)
    block = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    lines = block[1].splitlines()
    assert len(lines) == 3
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0
    out = capsys.readouterr().out
    assert {"2=txt", "2=free", "2=call"} <= set(out.split())
    assert out.count("2=") >= 20


def test_six_lines_from_a_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sms.tsv.gz").symlink_to(SMS)
    block = re.search(r"```py\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    assert len([line for line in block[1].splitlines() if line]) == 6
    names: dict[str, Any] = {}
    exec(block[1], names)
    words = names["words"]
    assert isinstance(words, pl.DataFrame)
    assert "text=txt" in capsys.readouterr().out
    assert {"text=txt", "text=free", "text=call"} <= set(words["name"].to_list())
