"""Columns on the command line: repeated, with commas between them, and with commas inside their names."""

from __future__ import annotations

from pathlib import Path

import pytest

import ftprl
from ftprl.cli.app import run


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text('"a,b",c,"d ""e""",y\n' + "1,2,x,1\n3,4,z,0\n" * 5)


@pytest.mark.parametrize(
    ("typed", "ignored"),
    [
        (['"a,b"'], {"a,b"}),
        (['"a,b",c'], {"a,b", "c"}),
        (["c", '"a,b"'], {"a,b", "c"}),
        (['"d ""e""",c'], {'d "e"', "c"}),
        (['d "e"'], {'d "e"'}),
    ],
)
def test_a_name_with_a_comma_is_in_double_quotes(typed: list[str], ignored: set[str]) -> None:
    options = [part for value in typed for part in ("--ignore", value)]
    assert run(["train", "d.csv", "--label", "y", "--bits", "4", "-o", "m", "-q", *options]) == 0
    columns = ftprl.load("m").reading["columns"]
    assert {name for name, kind in columns.items() if kind == "ignore"} == ignored


@pytest.mark.parametrize("typed", ['"a,b', '"a,b"x', "c\nd"])
@pytest.mark.parametrize("option", ["ignore", "text", "numeric", "categorical"])
def test_quotes_that_do_not_close(option: str, typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "d.csv", "--label", "y", "-o", "m", f"--{option}", typed]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"ftprl: --{option} needs columns with commas between them, got ")
    assert "double quotes" in error
    assert len(error.splitlines()) == 1


def test_the_help_has_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    run(["train", "--help"])
    assert "a name that has a comma" in " ".join(capsys.readouterr().out.split())


def test_a_table_without_features_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("y,a\n1,2\n0,3\n")
    options = ["--label", "y", "--bits", "8", "-o", str(tmp_path / "m")]
    message = "ftprl: no feature columns left: the model predicts from the labels alone; check --ignore"
    for more in (["--ignore", "a", "-q"], ["--ignore", "a"]):
        assert run(["train", str(tmp_path / "a.csv"), *options, *more]) == 0
        assert message in capsys.readouterr().err.splitlines()
    (tmp_path / "a.jsonl").write_text('{"y": 1}\n{"y": 0}\n')
    for file in ("a.csv", "a.jsonl"):
        assert run(["train", str(tmp_path / file), *options]) == 0
        assert message not in capsys.readouterr().err
