"""An option that would have no effect is refused in one line."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from ftprl.cli.app import run
from ftprl.training import train

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write data and models of two classes, of three classes, of numbers and of a quantile."""
    folder = tmp_path_factory.mktemp("options")
    draw = random.Random(1)
    labels = {"two": lambda: draw.randint(0, 1), "three": lambda: draw.choice("uvw"), "numbers": draw.random}
    for name, label in labels.items():
        rows = [f"{draw.choice('abc')},{draw.random():.3f},{label()}\n" for _ in range(200)]
        (folder / f"{name}.csv").write_text("c,n,y\n" + "".join(rows))
    losses = {"two": "logistic", "three": "softmax", "numbers": "squared"}
    for name, loss in losses.items():
        train(folder / f"{name}.csv", label="y", loss=loss, bits=10, output=folder / name)
    train(folder / "numbers.csv", label="y", loss="quantile", tau=0.9, bits=10, output=folder / "quantile")
    table = pacsv.read_csv(folder / "two.csv")
    pq.write_table(table, folder / "two.parquet")
    (folder / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return folder


CASES = {
    "evaluate numbers numbers.csv --threshold 0.3": "--threshold is for two classes, got squared loss; drop it",
    "evaluate three three.csv --threshold 0.3": "--threshold is for two classes, got several; drop it",
    "evaluate two two.csv --tau 0.3": "--tau needs --loss quantile, got --tau 0.3 and --loss logistic; drop it",
    "compare two two --data two.csv --tau 0.3": "--tau needs --loss quantile, got --tau 0.3 and --loss logistic",
    "evaluate two two.jsonl --no-header": "--no-header is for CSV and TSV files, got JSON lines; drop it",
    "evaluate two two.parquet --no-header": "--no-header is for CSV and TSV files, got the format parquet; drop it",
    "train two.jsonl --label y --no-header -o x": "--no-header is for CSV and TSV files, got JSON lines; drop it",
    "inspect two --row a,1 --top 3": "--top is for the largest weights, got --row as well; drop one",
    "inspect two --row a,1 --match c*": "--match is for the largest weights, got --row as well; drop one",
    "inspect two --export w.csv --match c*": "--match is for the largest weights, got --export as well; drop one",
    "inspect two --export w.csv --json": "--json is for what is printed, got --export alone; drop one",
}


@pytest.mark.parametrize("command", CASES)
def test_it_is_refused(folder: Path, command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert run(command.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ftprl: ")
    assert CASES[command] in captured.err
    assert captured.err.count("\n") == 1
    assert not list(folder.glob("x*")) + list(folder.glob("w.csv"))


def test_the_quantile_that_is_asked_for_is_measured(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    values = []
    for more in ([], ["--tau", "0.9"], ["--tau", "0.2"], ["--tau", "0.2", "--loss", "quantile"]):
        assert run(["evaluate", "quantile", "numbers.csv", "--json", *more]) == 0
        values.append(json.loads(capsys.readouterr().out)["metrics"])
    assert values[0] == values[1] != values[2] == values[3]


@pytest.mark.parametrize("command", ["predict two two.parquet", "train two.parquet --label y -o x"])
def test_max_row_is_not_ignored_in_files_of_columns(
    folder: Path, command: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert run([*command.split(), "--max-row", "8"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("ftprl: two.parquet: row group 0: ")
    assert "expected a row of at most 8 bytes, got " in last
    assert last.endswith("; raise --max-row.")
