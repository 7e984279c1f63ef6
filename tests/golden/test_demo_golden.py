"""A golden run of the command line: the table of a small demo, to the letter."""

from __future__ import annotations

from pathlib import Path

import pytest

from ftprl.cli import main

EXPECTED = Path(__file__).parent / "demo.txt"


def test_the_demo_prints_the_golden_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["demo", "--dim", "30", "--rounds", "400", "--seed", "1", "--clicks", "2000"])
    assert stop.value.code == 0
    out, err = capsys.readouterr()
    assert [line.rstrip() for line in out.splitlines()] == EXPECTED.read_text().splitlines()
    assert [line.split()[0] for line in err.splitlines()] == ["playing"] * 6 + ["learning"]
    assert b"<svg" in (tmp_path / "ftprl-demo.html").read_bytes()
    assert (tmp_path / "ftprl-demo.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
