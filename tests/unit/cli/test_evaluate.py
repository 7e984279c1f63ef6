"""`ftprl evaluate` from the command line: tables, JSON, pages, and errors of one line."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest

import ftprl
from ftprl.cli.app import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> Path:
    monkeypatch.chdir(tmp_path)
    ftprl.data.clicks.generate(1500, seed=1, path="clicks.csv")
    ftprl.train("clicks.csv", label="click", bits=12, output="m.ftprl")
    assert run(["predict", "m.ftprl", "clicks.csv", "-o", "p.txt"]) == 0
    capsys.readouterr()
    return tmp_path


def test_a_model_and_its_predictions_have_the_same_metrics(files: Path, capsys: Capture) -> None:
    result = []
    for args in (["m.ftprl", "clicks.csv"], ["--predictions", "p.txt", "clicks.csv", "--label", "click"]):
        assert run(["evaluate", *args, "--json", "--threshold", "0.3"]) == 0
        result.append(json.loads(capsys.readouterr().out))
    assert result[0]["system"] == "m.ftprl"
    assert result[1]["system"] == "p.txt"
    for name, metric in result[0]["metrics"].items():
        assert result[1]["metrics"][name]["value"] == pytest.approx(metric["value"], rel=1e-9), name
    assert list(result[0]["thresholds"]) == ["0.3"]


def test_a_table(files: Path, capsys: Capture) -> None:
    assert run(["evaluate", "m.ftprl", "clicks.csv", "--by", "C1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1,500 rows"
    assert lines[2].split() == ["value", "95", "%", "interval", "baseline"]
    names = [line.split("  ")[0] for line in lines[3:13]]
    assert names == [
        *("log loss", "share of positives", "Brier score", "mean prediction minus mean label", "AUC"),
        *("average precision", "lift at top 1 %", "lift at top 5 %", "lift at top 10 %", "expected calibration error"),
    ]
    assert "at threshold 0.5:" in lines
    assert "by C1, each with its 95 % interval:" in lines
    slices = lines[lines.index("by C1, each with its 95 % interval:") + 1 :]
    assert slices[0].split()[:3] == ["rows", "log", "loss"]
    assert slices[0].endswith("  AUC")
    assert re.search(r" \d+ +0\.\d+ \(.*  0\.\d{4} \(0\.\d{4} to 0\.\d{4}\)$", slices[1]), slices[1]


def test_a_slice_with_one_class_has_no_auc(files: Path, capsys: Capture) -> None:
    rows = Path("clicks.csv").read_text().splitlines()
    at = rows[0].split(",").index("click")
    side = [f"{row},{'one' if i % 2 and row.split(',')[at] == '1' else 'both'}" for i, row in enumerate(rows[1:])]
    Path("sides.csv").write_text("\n".join([f"{rows[0]},side", *side]) + "\n")
    assert run(["evaluate", "m.ftprl", "sides.csv", "--by", "side", "-o", "e.html"]) == 0
    both, one = capsys.readouterr().out.splitlines()[-2:]
    assert len(both.split(" (")) == len(one.split(" (")) + 1  # the AUC
    text = Path("e.html").read_text()
    assert "AUC by side" in text
    assert "<td>–</td>" in text


@pytest.mark.parametrize("form", ["html", "png", "svg"])
def test_pages_and_pictures(files: Path, form: str, capsys: Capture) -> None:
    assert run(["evaluate", "m.ftprl", "clicks.csv", "--by", "C1", "-o", f"e.{form}"]) == 0
    body = Path(f"e.{form}").read_bytes()
    assert body.startswith({"html": b"<!DOCTYPE html>", "png": b"\x89PNG", "svg": b"<svg"}[form])
    if form == "html":
        text = body.decode()
        for word in ("ROC", "Precision and recall", "Calibration", "By C1", "average precision"):
            assert word in text
    capsys.readouterr()


def test_numbers_have_a_page_too(files: Path, capsys: Capture) -> None:
    ftprl.train("clicks.csv", label="click", bits=12, loss="squared", output="s.ftprl")
    assert run(["evaluate", "s.ftprl", "clicks.csv", "-o", "e.html"]) == 0
    out = capsys.readouterr().out
    assert "RMSE" in out
    assert "Predicted against actual" in Path("e.html").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["m.ftprl"], "evaluate needs a model and the data with the labels, got one argument; pass both."),
        (["p.txt", "clicks.csv"], "p.txt: expected a model, got another file; pass predictions with --predictions."),
        (["none.ftprl", "clicks.csv"], "none.ftprl: no such file; name a model or a file of predictions."),
        (["--predictions", "p.txt", "clicks.csv"], "--label needs the name of a column, got none;"),
        (["m.ftprl", "clicks.csv", "--by", "zz"], "clicks.csv: --by needs one of the columns"),
        (
            ["m.ftprl", "clicks.csv", "--threshold", "nan"],
            "--threshold needs numbers from 0 to 1, got nan; pass such numbers.",
        ),
        (["m.ftprl", "clicks.csv", "-o", "e.txt"], "--output needs a name ending in .html, .png or .svg, got 'e.txt';"),
        (["m.ftprl", "clicks.csv", "--positive", "1"], "--positive comes from the model,"),
        (["m.ftprl", "bad.csv"], "bad.csv:1: expected 40 more columns, 'click', 'I1', "),
    ],
)
def test_one_line_for_what_is_wrong(files: Path, args: list[str], message: str, capsys: Capture) -> None:
    Path("bad.csv").write_text("a,b\n1,2\n")
    assert run(["evaluate", *args]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ftprl: {message}")
    assert len(err.splitlines()) == 1


def test_the_positive_label_is_shown_and_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """A model with the positive label "no", on data with labels 1 and 0."""
    monkeypatch.chdir(tmp_path)
    Path("words.csv").write_text("y,x\n" + "no,1\nyes,2\n" * 50)
    Path("numbers.csv").write_text("y,x\n" + "1,1\n0,2\n" * 50)
    assert run(["train", "words.csv", "--label", "y", "--positive", "no", "--bits", "8", "-o", "m", "-q"]) == 0
    assert run(["train", "words.csv", "--label", "y", "--bits", "8", "-o", "n", "-q"]) == 0
    capsys.readouterr()
    said = "no label is 'no', the positive one of this model: every row counted as negative; check that the labels"
    for data, is_warned in (("numbers.csv", True), ("words.csv", False)):
        assert run(["evaluate", "m", data]) == 0
        assert (f"ftprl: {said}" in capsys.readouterr().err) == is_warned
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ftprl.load("m").evaluate(data)
        assert any(str(one.message).startswith(said) for one in caught) == is_warned
    for name, positive in (("m", "no"), ("n", "1, yes or true")):
        assert ftprl.load(name).positive == positive
        assert run(["inspect", name]) == 0
        assert f"positive       {positive}: predictions are its probability" in capsys.readouterr().out
    assert ftprl.train(Path("numbers.csv"), label="y", loss="squared", bits=8).model.positive is None
