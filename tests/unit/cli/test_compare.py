"""`ftprl compare` from the command line: tables, JSON, pages, and errors of one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write clicks, a model of all columns and one of a few, and their predictions."""
    monkeypatch.chdir(tmp_path)
    ftprl.data.clicks.generate(3000, seed=1, path="clicks.csv")
    columns = Path("clicks.csv").read_text().splitlines()[0].split(",")
    ftprl.train("clicks.csv", label="click", bits=14, output="all.ftprl")
    ftprl.train("clicks.csv", label="click", bits=14, ignore=columns[4:], output="few.ftprl")
    for name in ("all", "few"):
        assert run(["predict", f"{name}.ftprl", "clicks.csv", "-o", f"{name}.txt"]) == 0
    return tmp_path


def compared(capsys: Capture, *args: str) -> dict:
    capsys.readouterr()
    assert run(["compare", *args, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_models_and_their_predictions_are_the_same_systems(files: Path, capsys: Capture) -> None:
    models = compared(capsys, "all.ftprl", "few.ftprl", "--data", "clicks.csv")
    mixed = compared(capsys, "all.ftprl", "few.txt", "--data", "clicks.csv")
    texts = compared(capsys, "all.txt", "few.txt", "--data", "clicks.csv", "--label", "click")
    assert models["rows"] == 3000
    assert models["differences"][0]["decided"] is not None
    for other in (mixed, texts):
        assert other["baseline"] == models["baseline"]
        for a, b in zip(models["systems"], other["systems"], strict=True):
            assert a["mean"] == pytest.approx(b["mean"], rel=1e-9)
        assert other["differences"][0]["decided"] == models["differences"][0]["decided"]


def test_scores_of_vowpal_wabbit(files: Path, capsys: Capture) -> None:
    """`vw -p` writes the score, followed by a tag."""
    p = np.loadtxt("few.txt")
    Path("vw.txt").write_text("".join(f"{float(np.log(v / (1 - v)))!r} row{i}\n" for i, v in enumerate(p)))
    scores = np.log(np.loadtxt("all.txt") / (1 - np.loadtxt("all.txt")))
    np.savetxt("all-scores.txt", scores)
    options = ("--data", "clicks.csv", "--label", "click")
    actual = compared(capsys, "all-scores.txt", "vw.txt", *options, "--predictions-are", "score")
    expected = compared(capsys, "all.txt", "few.txt", *options)
    assert actual["differences"][0]["difference"]["mean"] == pytest.approx(
        expected["differences"][0]["difference"]["mean"], rel=1e-9
    )


def test_a_table_names_the_better_system(files: Path, capsys: Capture) -> None:
    assert run(["compare", "all.ftprl", "few.ftprl", "--data", "clicks.csv", "--by", "C1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3,000 rows, log loss (nats) per row"
    assert lines[2].startswith("all.ftprl  0.")
    assert lines[4].startswith("baseline   0.")
    assert lines[6].startswith("all.ftprl is better than few.ftprl by 0.")
    assert ", decided at row " in lines[6]
    assert lines[8] == "by C1, each with its own interval:"
    assert " rows  all.ftprl" in lines[9]


def test_rows_that_were_cut_are_reported(files: Path, capsys: Capture) -> None:
    """The difference is of losses clipped at 2 nats; the systems' means beside it are not clipped."""
    p = np.loadtxt("all.txt")
    y = np.array([line.split(",")[0] == "1" for line in Path("clicks.csv").read_text().splitlines()[1:]])
    p[0] = 0.001 if y[0] else 0.999
    np.savetxt("miss.txt", p)
    options = ("--data", "clicks.csv", "--label", "click")
    actual = compared(capsys, "miss.txt", "all.txt", *options)
    first, second = actual["systems"]
    assert run(["compare", "miss.txt", "all.txt", *options]) == 0
    text = capsys.readouterr().out.splitlines()[-1]
    assert text.startswith("miss.txt and all.txt: not decided; ")
    mean = first["mean"] - second["mean"]
    assert text.endswith(f"; the difference of 1 row was clipped ({mean:.4f} without clipping)")


def test_the_first_rows_of_numbers_are_counted(files: Path, capsys: Capture) -> None:
    options = ("--data", "clicks.csv", "--label", "click", "--loss", "squared")
    actual = compared(capsys, "all.txt", "few.txt", *options)
    assert (actual["rows"], actual["unit_rows"], actual["left_out"]) == (2968, 32, 0)
    assert run(["compare", "all.txt", "few.txt", *options, "--by", "C1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    left_out = "left out: 32 at the start, which settle where losses are cut"
    assert lines[0] == f"2,968 rows, squared loss per row; {left_out}"
    assert lines[-1].endswith("  too few rows: 32 settle where losses are cut")


def test_an_empty_line_is_left_out_and_counted(files: Path, capsys: Capture) -> None:
    lines = Path("all.txt").read_text().splitlines()
    lines[1] = lines[7] = ""
    Path("gaps.txt").write_text("\n".join(lines) + "\n")
    assert run(["compare", "gaps.txt", "few.txt", "all.ftprl", "--data", "clicks.csv"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "2,998 rows, log loss (nats) per row; left out: 2 without a prediction of every system"
    assert len([line for line in out if " better than " in line or "not decided" in line]) == 3


def test_an_identical_file_is_never_better(files: Path, capsys: Capture) -> None:
    actual = compared(capsys, "all.txt", "all.txt", "--data", "clicks.csv", "--label", "click")
    assert actual["differences"][0]["better"] is None
    assert actual["differences"][0]["decided"] is None


@pytest.mark.parametrize("form", ["html", "png", "svg"])
def test_pages_and_pictures(files: Path, form: str, capsys: Capture) -> None:
    assert run(["compare", "all.txt", "few.txt", "--data", "clicks.csv", "--label", "click", "-o", f"c.{form}"]) == 0
    body = Path(f"c.{form}").read_bytes()
    start = {"html": b"<!DOCTYPE html>", "png": b"\x89PNG", "svg": b"<svg"}[form]
    assert body.startswith(start)
    assert form == "png" or b"all.txt" in body
    capsys.readouterr()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["all.txt"], "compare needs from 2 to 16 models or prediction files, got 1; name those."),
        (["all.txt", "none.txt"], "none.txt: no such file; name a model or a file of predictions."),
        (["all.txt", "short.txt"], "short.txt: expected a value for each of the 3000 rows of the data, got 2;"),
        (["all.txt", "word.txt"], "word.txt:2: expected a number, got 'high';"),
        (["all.txt", "few.txt", "--predictions-are", "mean"], "--predictions-are needs probability or score with"),
        (["all.txt", "few.txt", "--loss", "cubic"], "--loss needs a known name, got 'cubic'; use one of logistic,"),
        (["all.txt", "few.txt", "--by", "C99"], "clicks.csv: --by needs one of the columns"),
        (["all.ftprl", "few.txt", "--label", "click"], "--label comes from the model, got --label 'click' as well;"),
        (["all.ftprl", "few.ftprl", "--predictions-are", "score"], "--predictions-are is for prediction files,"),
        (["all.txt", "few.txt", "-o", "c.pdf"], "--output needs a name ending in .html, .png or .svg, got 'c.pdf';"),
        (["all.ftprl", "few.ftprl", "--loss", "squared"], "--loss needs predictions of its kind, got squared for"),
    ],
)
def test_one_line_for_what_is_wrong(files: Path, args: list[str], message: str, capsys: Capture) -> None:
    Path("short.txt").write_text("0.5\n0.5\n")
    Path("word.txt").write_text("0.5\nhigh\n")
    label = [] if any(a.endswith(".ftprl") for a in args) else ["--label", "click"]
    capsys.readouterr()
    assert run(["compare", *args, "--data", "clicks.csv", *label]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ftprl: {message}")
    assert len(err.splitlines()) == 1


def test_a_label_is_needed_without_a_model(files: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert run(["compare", "all.txt", "few.txt", "--data", "clicks.csv"]) == 2
    assert capsys.readouterr().err.startswith("ftprl: --label needs the name of a column, got none; pass one of ")
