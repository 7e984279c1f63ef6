"""Text from files is escaped wherever a command prints it: labels, reasons of bad rows, names of columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ftprl
from ftprl.cli.app import run
from oracles.forged import forge_model

Capture = pytest.CaptureFixture[str]
ESCAPE = "\x1b[2J\n\u202e"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("y,a\n" + "".join(f"{i % 2},{i}\n" for i in range(30)))


def forged(change: Any) -> None:
    ftprl.train("d.csv", label="y", bits=4, checkpoint="c", every=20, on_bad_row="skip")
    Path("c").write_bytes(forge_model(Path("c").read_bytes(), change))


def positive(content: dict[str, Any]) -> None:
    content["reading"]["positive"] = ESCAPE


def column(content: dict[str, Any]) -> None:
    content["reading"]["columns"][ESCAPE] = "ignore"


def refusal(content: dict[str, Any]) -> None:
    content["run"]["state"] |= {"refused": 3, "refusal": ESCAPE}


def first_bad(content: dict[str, Any]) -> None:
    content["run"]["state"]["position"] |= {"bad": 1, "first_bad": [0, 5, ESCAPE]}


@pytest.mark.parametrize("change", [positive, column, refusal, first_bad])
def test_text_of_a_checkpoint_is_escaped(change: Any, capsys: Capture) -> None:
    forged(change)
    for command in (
        ["inspect", "c"],
        ["inspect", "c", "--json"],
        ["predict", "c", "d.csv"],
        ["train", "d.csv", "--resume", "c", "-o", "m", "--json", "--events", "run.jsonl"],
        ["report", "run.jsonl", "-o", "r.html"],
    ):
        code = run(command)
        out, err = capsys.readouterr()
        assert code in (0, 2)
        assert all(c == "\n" or c.isprintable() for c in out + err), (command, out, err)


def test_text_of_events_is_escaped(capsys: Capture) -> None:
    Path(f"{ESCAPE}.csv").write_text(Path("d.csv").read_text())
    assert run(["train", f"{ESCAPE}.csv", "--label", "y", "-o", "m", "--events", "run.jsonl"]) == 0
    assert run(["predict", "m", f"{ESCAPE}.csv"]) == 0
    assert run(["report", "run.jsonl", "-o", f"{ESCAPE}.html"]) == 0
    out, err = capsys.readouterr()
    assert all(c == "\n" or c.isprintable() for c in out + err), (out, err)
