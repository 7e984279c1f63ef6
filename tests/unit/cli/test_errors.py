"""Every error of the command line: exit code 2 and one line that names the option (or the file) and has a remedy."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from ftprl import data
from ftprl.cli.app import run
from ftprl.options import COMMAND

# The beginning of the error line, and calls that must be refused with it; T, C and L are calls that would work.
T, C, L = "train c.vw -q --bits 10 -o x", "train c.csv -q --bits 10 -o x", "train c.csv -q --bits 10 -o x --label click"
TABLE = {
    "--format": [f"{T} --format xml", "predict m c.vw -o x --format xml", "report e --format pdf",
                 "report e -o x.png --format svg", "report e -o x.pdf --format html"],
    "--label": [C, f"{T} --label click", "train c.csv -o x --resume mc --label I1"],
    "c.csv: --label": [f"{C} --label nope", f"{C} --label 99", f"{L} --sep ';'", f"{L} --no-header"],
    "--positive": [f"{L} --positive maybe", f"{T} --positive 2", f"{L} --positive 1 --loss squared",
                   "train c.csv -o x --resume mc --positive 3"],
    "--weight": [f"{T} --weight w"],
    "c.csv: --weight": [f"{L} --weight nope"],
    "column 'click' needs one kind, got --label and --weight": [f"{L} --weight click"],
    "--ignore": [f"{T} --ignore a"],
    "c.csv: --ignore": [f"{L} --ignore nope"],
    "--categorical": [f"{T} --categorical a"],
    "c.csv: --categorical": [f"{L} --categorical nope"],
    "column 'I1' needs one kind, got --categorical and --numeric": [f"{L} --categorical I1 --numeric I1"],
    "--numeric": [f"{T} --numeric a"],
    "c.csv: --numeric": [f"{L} --numeric nope"],
    "--text": [f"{T} --text a"],
    "c.csv: --text": [f"{L} --text nope"],
    "--ngrams": [f"{T} --ngrams {value}" for value in ("0", "text=0", "x=y")],
    "--skips": [f"{T} --skips 1", f"{T} --skips x"],
    "--char-ngrams": [f"{T} --char-ngrams {value}" for value in ("0", "z")],
    "--boolean": [f"{T} --boolean a"],
    "c.csv: --boolean": [f"{L} --boolean nope"],
    "--date": [f"{T} --date a"],
    "c.csv: --date": [f"{L} --date nope"],
    "c.csv:2: expected a date": [f"{L} --date C1 -q"],
    "--bucket": [f"{T} --bucket a", f"{L} --bucket I1=1"],
    "c.csv:2: expected a number": [f"{L} --bucket C1 -q"],
    "c.csv: --bucket": [f"{L} --bucket nope=3"],
    "--interactions": [f"{T} --interactions a", f"{T} --interactions a:", f"{T} --interactions a:b:c:d:e",
                       f"{L} --interactions C1:nope", f"{L} --interactions C1:click"],
    "--missing": [f"{T} --missing ignore", f"{L} --missing x"],
    "--sep": [f"{L} --sep ''", f"{L} --sep ';;'", f"{T} --sep ';'", "predict m c.vw -o x --sep ';'",
              f"{L} --quote ,"],
    "--quote": [f"{L} --quote ab", "predict mc c.csv -o x --quote ab"],
    "--no-header": [f"{T} --no-header"],
    "--on-bad-row": [f"{L} --on-bad-row x", "predict m c.vw -o x --on-bad-row x"],
    "--max-row": [f"{L} --max-row 0", f"{L} --max-row -5", "predict m c.vw -o x --max-row 0",
                  f"{L} --max-row x", f"{L} --max-row 99999999999999999999",
                  "predict m c.vw -o x --max-row 99999999999999999999"],
    "c.csv:1: expected a row of at most 10 bytes, got a longer one; raise --max-row": [f"{L} --max-row 10"],
    "--loss": [f"{T} --loss best", "train c.vw -o x --resume m --loss squared"],
    "--delay": [f"{T} --delay -1"],
    "--order": [f"{T} --order sorted", f"{T} --order random --delay 3", f"{T} --order random --predictions p",
                "train c.vw -o x --resume k --order given"],
    "--waiting": [f"{T} --waiting 9", f"{T} --waiting many", "train c.vw -o x --resume k --waiting 200"],
    "--order-seed": [f"{T} --order-seed x", f"{T} --order-seed -1", f"{T} --order-seed 99999999999999999999",
                     "train c.vw -o x --resume k --order-seed 1"],
    "--classes": [f"{T} --classes 3", f"{T} --loss softmax --classes 1", f"{T} --loss softmax --classes a,a",
                  f"{T} --loss ovr --classes 99999"],
    "--tau": [f"{T} --tau 0.3", f"{T} --loss quantile --tau 0", f"{T} --loss quantile --tau nan"],
    "--bits": [f"train c.vw -o x --bits {value}" for value in ("0", "99", "x", "2.5")],
    "--dim": ["demo --dim 0"],
    "--seed": [f"{T} --seed -1", f"{T} --seed 99999999999999999999999", "train c.vw -o x --resume m --seed 3",
               "generate clicks -o x.vw --seed -1", "demo --seed -1"],
    "--bound": [f"{T} --bound {value}" for value in ("x", "x=1", "x=1:0", "x=a:", "=0:", "x=:nan")]
    + [f"{T} --bound '*={value}'" for value in ("nan:", "1:0", "inf:", ":-inf", ":nan", ":x")]
    + [f"{T} --bound '*=1:' --bound '*=:0'", "train c.vw -o x --resume m --bound *=0:"]
    + ["train c.vw -o x --resume m --bound x=0:"],
    "--scale": [f"{T} --scale {value}" for value in ("0", "x", "-1", "0.1,0.1", "0.2,0.1", "1,x", ",", "nan", "''")]
    + ["train c.vw -o x --resume m --scale 3"],
    "--l1": [f"{T} --l1 {value}" for value in ("-1", "inf", "1e-40")],
    "--l2": [f"{T} --l2 {value}" for value in ("-1", "nan", "1e-40")],
    "--calibrate": [f"{T} --calibrate {value}" for value in ("often", "platt --loss squared", "isotonic --delay 3")]
    + [f"{T} --calibrate isotonic --passes 2", "train c.vw -o x --resume m --calibrate platt"],
    "--passes": [f"{T} --passes 0", f"{T} --passes -1", "train c.vw -o x --resume k --passes 3",
                 "train - --format vw -o x --passes 2"],
    "--holdout": [f"{T} --holdout 1", f"{T} --holdout 0.1", f"{T} --holdout -3", f"{T} --holdout 99999999999999999999",
                  "train c.vw -o x --resume k --holdout 5"],
    "--receipt": [f"{T} --receipt --calibrate platt", f"{T} --receipt r.json",
                  f"{T} --receipt array.json", "train c.vw -o x --resume plain --receipt",
                  "train c.vw -o x --resume m --no-receipt"],
    "--checkpoint": [f"{T} --checkpoint d", f"{T} --checkpoint no/c", f"{T} --checkpoint c.vw"],
    "--every": [f"{T} --every 5", *(f"{T} --checkpoint c --every {value}" for value in ("0", "-5s", "5x", "''"))],
    "--resume": ["train c.vw c.vw -o x --resume k"]
    + [f"train c.vw -o x --resume {file}" for file in ("nope", "junk", "empty", "d", "r")],
    "--threads": [f"{T} --threads -1", f"{T} --threads x", f"{T} --threads 99999999999999999999",
                  f"{T} --engine ray --threads 0",
                  "predict m c.vw --threads -1"],
    "--engine": [f"{T} --engine spark", "train - --format vw -o x --engine ray", "predict m - --engine ray",
                 "evaluate m c.vw --engine spark"],
    "--output": ["train c.vw -o d", "train c.vw -o no/x", "train c.vw -o ''", "train c.vw -o c.vw", f"{T} --events x",
                 "predict m c.vw -o d", "predict m c.vw -o no/x", "certify m -o d", "certify m -o no/r",
                 "report e -o x.txt", "report e -o no/x.html", "generate clicks -o x.foo",
                 "generate clicks -o no/x.vw", "generate clicks -o d", "paper run -o c.vw", "demo -o x.txt",
                 "demo -o no/x.png", "demo -o d"],
    "Missing option '--output' / '-o'": ["train c.vw", "generate clicks"],
    "--compact": [f"{T} --compact --receipt", f"{T} --compact --checkpoint x"],
    "--names": [f"{T} --names x", f"{T} --names -1"],
    "--admit": [f"{T} --admit 0", f"{T} --admit 255", f"{T} --admit often", f"{T} --admit 1 --receipt",
                "train c.vw -o x --resume m --admit 1"],
    "--cache": [f"{T} --cache d", f"{T} --cache no/c.batches", f"{T} --cache c.vw", f"{T} --cache x.cache"],
    "--predictions": [f"{T} --predictions d", f"{T} --predictions no/p", f"{T} --predictions c.vw",
                      f"{T} --predictions p.bz2", f"{T} --predictions - --json"],
    "--events": [f"{T} --events d", f"{T} --events no/e", f"{T} --events c.vw"],
    "--top": ["inspect m --top -1"],
    "--threshold": [f"evaluate m c.vw --threshold {value}" for value in ("2", "-0.1", "nan")],
    "--radius": ["certify m --radius 0", "certify m --radius -1", "certify m --radius nan",
                 "certify m --radius 1e300"],
    "--against": ["certify m --against nope", "certify m --against junk", "certify m --against plain"],
    "certify compares with a box (--radius) or with another model (--against)": ["certify m --against m --radius 1"],
    "--norm": ["certify m --norm 3", "certify m --norm two"],
    "--picture": ["certify m --picture f.txt"],
    "--exact": [
        "certify m --exact c.csv",
        "certify m --norm 1 --exact c.vw",
        "certify m --radius 1 --exact nope",
        "certify m --radius 1 --exact c.csv",
    ],
    "certify needs a model that was trained with --receipt": ["certify plain"],
    "--rows": ["verify r c.vw --rows 0", "verify r c.vw --rows -1", "generate clicks -o x.vw --rows -1"],
    "--model": ["verify r c.vw --model nope", "verify r c.vw --model junk"],
    "the receipt compares with no other model, got one; drop --against": ["verify r c.vw --against m"],
    "--port": ["watch e --port 99999", "watch e --port -1"],
    "--jobs": ["paper run --jobs 0"],
    "--docs": ["paper run sphere --docs d"],
    "--rounds": ["demo --rounds 0"],
    "--alpha": ["demo --alpha -1"],
    "--drift": ["demo --drift 2"],
    "--clicks": ["demo --clicks -1"],
    "No such option: --nope": [f"{T} --nope", "--nope"],
    "No such command 'nope'": ["nope", "generate nope", "paper nope"],
    "Missing argument": ["train -o x", "predict m", "inspect", "verify r"],
    "no statement is called 'nope'": ["paper run nope", "paper show nope"],
    # Files: the name of the file takes the place of an option.
    "nope": ["train nope.vw -o x", "predict nope c.vw", "predict m nope.vw", "inspect nope", "certify nope",
             "verify nope c.vw", "verify r nope.vw", "report nope"],
    "junk": ["train junk -o x", "train junk.vw -q -o x", "predict junk c.vw", "predict m junk.vw -o x", "inspect junk",
             "certify junk", "verify junk c.vw", "report junk"],
    "x.foo": ["train x.foo -o x"],
    "empty": ["report empty", "verify empty c.vw", "train empty.csv --label y -o x"],
    "d": ["train d -o x", "predict d c.vw", "inspect d", "verify d c.vw"],
    "data needs": ["train c.vw c.csv -o x", "train - c.vw -o x", "train nolabel.vw -q -o x"],
    "array.json:1: expected one JSON object per line, got an array": [
        "train array.json --label y -o x", "predict mc array.json", "evaluate mc array.json",
    ],
    "object.json:2: expected one JSON object per line, got an object of": ["train object.json --label y -o x"],
    "r.json:1: expected one JSON object per line, got a receipt": ["predict mc r.json", "train r.json --label y -o x"],
    "m: expected rows of data, got a model": ["predict m m", "predict mc m", "train m -o x", "evaluate mc m"],
    "--resume m: expected rows of data, got a model": ["train m --resume m -o x"],
    "c.vw: expected csv, the format": ["predict mc c.vw", "evaluate mc c.vw", "train c.vw --resume mc -o x"],
    "c.csv: expected vw, the format": ["predict m c.csv", "train c.csv -o x --resume k"],
    "empty.vw: expected rows with a label, got none": ["train empty.vw -q -o x"],
    "--loss needs a known name, got 'mse'; did you mean squared?": [f"{T} --loss mse", f"{L} --loss mse",
        "evaluate --predictions c.csv c.csv --loss mse --label click"],
    "c.vw: expected a receipt, got another kind of file": ["verify c.vw r"],
    "m: expected a receipt, got a model": ["verify m c.vw"],
    "array.json: expected a receipt, got other JSON": ["verify array.json c.vw"],
    "r: expected a model file, got a receipt": ["predict r c.vw", "certify r", "inspect r", "compact r -o x"],
    "blank.csv:1: expected a row of columns, got an empty line": ["train blank.csv --label y -o x",
                                                                  "predict mc blank.csv"],
    "head.csv: expected rows with a label, got none": ["train head.csv --label y -q -o x"],
    "bad.jsonl: expected rows with a label, got 2 that cannot be read": [
        "train bad.jsonl --label y -q -o x --on-bad-row skip"],
    "--output needs a new file or a receipt": ["certify m -o c.csv"],
    "--onnx needs": ["export m --onnx x.py"],
    "--python needs": ["export m --python x.onnx"],
    "count.vw:1": ["train count.vw -q -o x", "train count.vw -q -o x --loss poisson"],
    "twice.csv:1": ["train twice.csv --label y -o x"],
    "other.csv:1": ["predict mc other.csv -o x"],
    "c.csv:1": ["predict m c.csv --format vw -o x", "predict mc c.csv --sep ';' -o x"],
    "report needs a file of events": ["report d"],
    "watch needs a file of events": ["watch d"],
    "c.vw:1": ["report c.vw"],
}  # fmt: skip
CALLS = [(call, start) for start, calls in TABLE.items() for call in calls]
NEVER_WRONG = {"intercept", "float64", "stack", "coin", "dense", "as_json", "quiet"}  # nothing contradicts these


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("errors")
    before = os.getcwd()
    os.chdir(path)
    try:
        for name in ("c.vw", "c.csv"):
            data.clicks.generate(300, seed=1, path=name)
        small = ["-q", "--bits", "10", "-o"]
        kept = ["--receipt", "--events", "e", "--checkpoint", "k", "--every", "100"]
        assert run(["train", "c.vw", *small, "m", *kept]) == 0
        assert run(["train", "c.vw", "-q", "--bits", "12", "-o", "plain"]) == 0
        assert run(["train", "c.csv", "--label", "click", *small, "mc"]) == 0
        assert run(["certify", "m", "-o", "r", "--json"]) == 0
        files = {"empty": b"", "empty.vw": b"", "empty.csv": b"", "junk": b"\0\1junk" * 50, "junk.vw": b"1 | a:b\n"}
        files |= {"nolabel.vw": b"| a b\n" * 3, "count.vw": b"-3 | a\n", "x.foo": b"1 | a\n"}
        files |= {"twice.csv": b"y,y\n1,2\n", "other.csv": b"y,a\n1,2\n0,3\n"}
        files |= {
            "array.json": b'[{"y": 1, "x": 2}]\n',
            "object.json": b'\n{\n"y": 1\n}\n',
            "r.json": Path("r").read_bytes(),
        }
        files |= {"blank.csv": b"\n\n", "head.csv": b"y,x\n", "bad.jsonl": b"3\n4\n"}
        for name, content in files.items():
            Path(name).write_bytes(content)
        os.mkdir("d")
    finally:
        os.chdir(before)
    return path


@pytest.mark.parametrize(("call", "start"), CALLS, ids=[call for call, _ in CALLS])
def test_the_option_is_named_with_a_remedy(
    call: str, start: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    before = {name: os.stat(name).st_mtime_ns for name in os.listdir()}
    capsys.readouterr()
    assert run(shlex.split(call)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    *table, last = err.splitlines()  # a run that has begun has printed its settings
    assert not any(line.startswith("ftprl:") for line in table)
    assert last.startswith(f"ftprl: {start}")
    problem, remedy = last.rsplit("; ", 1)
    assert len(problem) > 15
    assert len(remedy) > 5
    assert {name: os.stat(name).st_mtime_ns for name in os.listdir()} == before


def test_every_option_of_train_is_in_the_table() -> None:
    for option in COMMAND:
        if option.name not in NEVER_WRONG:
            assert any(start.endswith(option.typed) or option.typed in start.split() for start in TABLE), option.typed


def test_an_error_that_is_not_about_standard_output_is_not_blamed_on_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that cannot be synced is named in the error."""
    sync = os.fsync

    def fail(handle: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{handle}"):
            raise OSError(5, os.strerror(5))
        sync(handle)

    monkeypatch.chdir(folder)
    monkeypatch.setattr(os, "fsync", fail)
    assert run(["predict", "m", "c.vw", "-o", "p"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"ftprl: {folder}: Input/output error while the folder was synced; the file is complete")
    assert "standard output" not in err
    os.unlink("p")
