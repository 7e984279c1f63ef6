"""A golden run of train, predict and inspect: their output, to the letter."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ftprl.cli.app import run

EXPECTED = Path(__file__).parent / "train.txt"


def test_the_commands_print_the_golden_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    output = []
    for line in (
        "generate clicks --rows 300 --seed 2 -o clicks.csv",
        "train clicks.csv --label click --bits 12 --scale 0.1 --holdout 10 --passes 2 -o clicks.ftprl",
        "inspect clicks.ftprl --top 5",
        "predict clicks.ftprl clicks.csv --raw",
    ):
        assert run(line.split()) == 0
        out, err = capsys.readouterr()
        output += [
            f"$ ftprl {line}",
            *err.splitlines(),
            *(text[:9] if "raw" in line else text for text in out.splitlines()[:20]),
        ]
    # On different machines sums agree to fewer digits than a digest shows.
    result = [re.sub(r"\d+ bytes, sha256 \w+", "N bytes, sha256 X", text) for text in output]
    assert result == EXPECTED.read_text().splitlines()
