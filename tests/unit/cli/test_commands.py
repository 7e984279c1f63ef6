"""train, predict, inspect and generate from the command line: their output, their files, and their errors."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from ftprl import load
from ftprl.cli.app import run
from ftprl.runlog import events

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    names = [f"a{v}" for v in rng.zipf(1.6, size=400) % 20]
    labels = np.where(rng.random(400) < 0.4, 1, -1)
    rows = list(enumerate(zip(labels, names, strict=True)))
    Path("log.vw").write_text("".join(f"{y} | {a} x:{i % 7}\n" for i, (y, a) in rows))
    table = [f'{"yes" if y > 0 else "No"};"{a}";{i}\n' for i, (y, a) in rows]
    Path("log.csv").write_text("y;a;n\n" + "".join(table))


def ftprl(*args: str | Path) -> int:
    return run([str(arg) for arg in args])


TRAIN = ("train", "log.vw", "-o", "m.ftprl", "--bits", "10")


def test_settings_without_a_meaning_for_the_loss_are_not_shown(capsys: Capture) -> None:
    shown = {}
    for loss in ("logistic", "squared", "quantile"):
        assert ftprl(*TRAIN, "--loss", loss) == 0
        shown[loss] = " ".join(capsys.readouterr().err.splitlines()[2:4])
        assert ftprl("inspect", "m.ftprl") == 0
        assert ("tau=" in capsys.readouterr().out) == (loss == "quantile")
    assert ["tau=0.5" in shown[loss] for loss in shown] == [False, False, True]


def test_tau_is_for_the_quantile_loss_alone(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "--tau", "0.3") == 2
    expected = (
        "ftprl: --tau needs --loss quantile, got --tau 0.3 and --loss logistic; drop it, or pass --loss quantile.\n"
    )
    assert capsys.readouterr().err == expected
    assert not Path("m.ftprl").exists()


def test_columns_are_listed_in_the_order_of_their_numbers(capsys: Capture) -> None:
    names = [f"C{i}" for i in range(1, 13)]
    Path("wide.csv").write_text(
        ",".join(["y", *names]) + "\n" + "1,a,a,a,a,a,a,a,a,a,a,a,a\n0,b,b,b,b,b,b,b,b,b,b,b,b\n"
    )
    assert ftprl("train", "wide.csv", "--label", "y", "-o", "m.ftprl", "-q") == 0
    assert ftprl("inspect", "m.ftprl") == 0
    assert f"categorical    {', '.join(names)}\n" in capsys.readouterr().out


def test_several_passes_are_named_beside_the_loss_of_the_first(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "--passes", "2") == 0
    last = capsys.readouterr().err.splitlines()[-1]
    each = "each predicted before it was learned: log loss 0"
    assert re.match(rf"[34] passes; in the first, 3[68]0 of 400 rows in random order, {each}\.", last)
    assert re.search(r"; all rows learned in [12] pass(es)?, the best of 2 for held-out rows: log loss 0\.", last)


def test_train_prints_a_table_and_json(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "--json") == 0
    out, err = capsys.readouterr()
    printed = json.loads(out)
    assert printed["rows"] == 400
    assert printed["model"] == "m.ftprl"
    assert printed["seconds"] > 0
    assert printed["progressive_loss"] == pytest.approx(load("m.ftprl").engine.progress.mean)
    lines = err.splitlines()
    assert lines[0] == "data         vw: log.vw"
    assert lines[1] == "labels       1 is positive (+1), 0 or -1 is negative (-1)"
    assert "logistic loss, 1024 cells, scale=0.02,0.057,0.16,0.45,1.28,3.6,10,29 beta=0.3" in lines[2]
    rows = [int(line.split()[0]) for line in lines[6:-2]]
    assert rows == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    better = printed["improvement"]
    means = (
        f"log loss {printed['progressive_loss']:.6f}, {abs(better):.1f} % {'better' if better > 0 else 'worse'} than"
        " guessing"
        f" ({printed['baseline']:.6f})"
    )
    each = "each predicted before it was learned"
    assert lines[-1] == f"400 rows in random order, {each}: {means}; wrote m.ftprl"
    assert "\x1b" not in err


def test_the_table_has_the_loss_since_its_last_line(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "--holdout", "5", "--order", "given") == 0
    lines = [line.split() for line in capsys.readouterr().err.splitlines()[5:-2]]
    assert lines[0][-4:] == ["held", "out", "baseline", "better"]
    loss = weight = 0.0
    for cells in lines[1:]:
        now, mean, baseline, better, since = (float(cells[i]) for i in (1, 2, 3, 4, 6))
        assert better == pytest.approx(100.0 * (1.0 - mean / baseline), abs=0.06)
        assert since == pytest.approx((mean * now - loss) / (now - weight), abs=1e-4)
        loss, weight = mean * now, now


def test_quiet(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "-q") == 0
    assert capsys.readouterr() == ("", "")
    assert ftprl(*TRAIN, "-q", "--json") == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_table_shows_how_it_was_read(capsys: Capture) -> None:
    assert ftprl("train", "log.csv", "--label", "y", "--sep", ";", "-o", "m") == 0
    err = capsys.readouterr().err
    assert "labels       'yes' is positive (+1), 'no' is negative (-1)" in err
    table = [line.split() for line in err.splitlines()]
    assert ["y", "label", "yes", "2", "0", "-"] in table
    assert ["a", "categorical"] in [row[:2] for row in table]
    assert ["n", "numeric", "0", "..", "399", "400", "0", "n"] in table
    assert "column 'n' looks like an identifier" in err


def test_every_option_arrives() -> None:
    options = "--loss squared --bits 9 --scale 0.3 --l1 0.01 --l2 0.02 --bound *=-1:2 --seed 7 --float64"
    assert ftprl("train", "log.vw", "-o", "m", "-q", "--no-intercept", *options.split()) == 0
    spec = load("m").engine.spec
    assert (spec.loss, spec.dim, spec.scale, spec.l1, spec.l2) == ("squared", 512, 0.3, 0.01, 0.02)
    assert (spec.lower, spec.upper, spec.seed, spec.float64, spec.intercept) == (-1.0, 2.0, 7, True, False)
    assert ftprl("train", "log.vw", "-o", "m", "-q", "--loss", "quantile", "--tau", "0.9", "--bits", "6") == 0
    assert load("m").engine.spec.tau == 0.9
    reading = "--label y --sep ; --ignore n --categorical a --positive No"
    assert ftprl("train", "log.csv", "-o", "m", "-q", *reading.split()) == 0
    assert load("m").reading["columns"] == {"y": "label", "a": "categorical", "n": "ignore"}
    assert load("m").reading["positive"] == "No"
    more = "--label 1 --sep \\t --no-header --text 2 --numeric 3 --weight 4 --format csv --quote '"
    Path("t.txt").write_text("1\tsome words\t5\t2\n0\t'a\tb'\t6\t1\n")
    assert ftprl("train", "t.txt", "-o", "m", "-q", *more.split()) == 0
    assert load("m").reading["columns"] == {"1": "label", "2": "text", "3": "numeric", "4": "weight"}
    assert load("m").reading["quote"] == "'"


def test_predict(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "-q") == 0
    assert ftprl("predict", "m.ftprl", "log.vw") == 0
    out = capsys.readouterr().out
    model = load("m.ftprl")
    np.testing.assert_array_equal([float(line) for line in out.splitlines()], model.predict("log.vw"))
    assert ftprl("predict", "m.ftprl", "log.vw", "--raw", "-o", "scores") == 0
    scores = [float(line) for line in Path("scores").read_text().splitlines()]
    np.testing.assert_array_equal(scores, model.predict("log.vw", raw=True))
    assert capsys.readouterr() == ("", "")


def test_printed_probabilities_are_never_0_or_1(capsys: Capture) -> None:
    Path("sure.vw").write_text("1 | a:1000\n" * 50 + "-1 | b:1000\n" * 50)
    assert ftprl("train", "sure.vw", "-o", "m", "-q", "--bits", "8", "--scale", "100") == 0
    Path("far.vw").write_text("| a:1000000\n| b:1000000\n")
    assert ftprl("predict", "m", "far.vw") == 0
    high, low = (float(line) for line in capsys.readouterr().out.split())
    assert 0.0 < low < 1e-14
    assert 1.0 - 1e-14 < high < 1.0


def test_inspect_reports_where_names_are_full(capsys: Capture) -> None:
    Path("pairs.vw").write_text("".join(f"1 |a u{i} |b v{i}\n" for i in range(20)))
    options = ("--interactions", "a:b", "--bits", "12", "-o", "m.ftprl", "-q")
    for budget, expected in {
        "400": "of at most 400 bytes, full at row 10, the quarter for interactions full at row 5: ",
        "1200": "of at most 1200 bytes, the quarter for interactions full at row 14: ",
        "1KB": "of at most 1000 bytes, the quarter for interactions full at row 12: ",
        "1MB": "bytes\n",
    }.items():
        assert ftprl("train", "pairs.vw", *options, "--names", budget) == 0
        capsys.readouterr()
        assert ftprl("inspect", "m.ftprl") == 0
        line = next(line for line in capsys.readouterr().out.splitlines(True) if line.startswith("names "))
        assert expected in line
        assert ("cells have no name (--names)" in line) == (budget != "1MB")


def test_inspect(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "-q", "--l1", "0.5") == 0
    assert ftprl("inspect", "m.ftprl", "--top", "3", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    model = load("m.ftprl")
    weights = model.weights()
    every = np.array([model.weights(k) for k in range(8)])
    assert printed["occupied"] == model.occupied >= printed["nonzero"] == np.count_nonzero(every.any(axis=0))
    assert printed["nonzero"] > np.count_nonzero(weights)
    table = model.weights_table()  # largest weights of the mixture first
    assert [entry["cell"] for entry in printed["largest"]] == table["cell"].to_pylist()[:3]
    assert [entry["unit_weight"] for entry in printed["largest"]] == table["unit_weight"].to_pylist()[:3]
    assert printed["sha256"] in Path("m.ftprl").read_bytes().decode("latin-1")
    assert printed["history"]["rows"] == 400
    assert ftprl("inspect", "m.ftprl") == 0
    out = capsys.readouterr().out
    for word in ("logistic", "1024 cells", "in use", "progressive", "intercept", "cell", "weight"):
        assert word in out


def test_inspect_reports_a_pattern_that_matches_nothing(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "-q") == 0
    assert ftprl("inspect", "m.ftprl", "--match", "nothing*") == 0
    assert capsys.readouterr().out.endswith("\n\nno feature with a weight has a name that matches 'nothing*'\n")
    assert ftprl("inspect", "m.ftprl", "--match", "*") == 0
    assert "no feature" not in capsys.readouterr().out
    assert ftprl("inspect", "m.ftprl", "--export", "w.txt") == 2
    assert "ftprl: --export needs a file that ends in .csv or .parquet, got w.txt" in capsys.readouterr().err


def test_inspect_shows_a_checkpoint_and_a_table(capsys: Capture) -> None:
    options = ["--label", "y", "--sep", ";", "--checkpoint", "c", "--every", "150"]
    assert ftprl("train", "log.csv", "-o", "m", "-q", *options) == 0
    assert ftprl("inspect", "c") == 0
    out = capsys.readouterr().out
    assert "of a run after 300 rows; continue it with --resume" in out
    assert "categorical    a" in out
    assert ftprl("train", "log.csv", "-o", "n", "--resume", "c", "-q") == 0
    assert Path("m").read_bytes() == Path("n").read_bytes()


def test_generate_is_the_same_for_the_same_seed() -> None:
    assert ftprl("generate", "clicks", "--rows", "100", "--seed", "4", "-o", "a.csv.gz") == 0
    assert ftprl("generate", "clicks", "--rows", "100", "--seed", "4", "-o", "b.csv.gz") == 0
    assert Path("a.csv.gz").read_bytes() == Path("b.csv.gz").read_bytes()
    lines = gzip.decompress(Path("a.csv.gz").read_bytes()).decode().splitlines()
    assert len(lines) == 101
    assert len(lines[0].split(",")) == 40


def test_bad_rows_can_be_left_out(capsys: Capture) -> None:
    with Path("log.vw").open("a") as out:
        out.write("1 | a:b\nnonsense\n")
    assert ftprl(*TRAIN, "-q", "--on-bad-row", "skip") == 0
    err = capsys.readouterr().err
    assert err == "ftprl: left out 2 bad rows; the first: log.vw:401: expected a number after ':', got 'b' in 'a:b'\n"
    assert ftprl("predict", "m.ftprl", "log.vw", "--on-bad-row", "skip", "-o", "p") == 0
    assert [line == "" for line in Path("p").read_text().splitlines()] == [False] * 400 + [True] * 2


def write(name: str, content: bytes | str) -> None:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())


def prepare() -> None:
    write("bad.vw", "1 | a\n1 | a:b\n")
    write("nan.vw", "1 | a:nan\n")
    write("inf.vw", "1 | a:inf\n")
    write("huge.vw", "1 | a:1e39\n")
    write("label.vw", "1 | a\n2 | a\n")
    write("cut.vw.gz", gzip.compress(b"1 | a\n-1 | b\n" * 1000)[:-10])
    write("notgz.vw.gz", "1 | a\n")
    write("long.vw", "1 | " + "a " * 100 + "\n")
    write("cols.csv", "y,n\n1,2\n1,2,3\n")
    write("late.csv", "y,n\n" + "1,2\n0,3\n" * 6000 + "1,x\n")
    write("three.csv", "y,n\nred,1\nblue,2\ngreen,3\n")
    write("ids.libsvm", "1 5000000:1\n")
    write("not.ftprl", b"nothing of the kind")
    assert ftprl("train", "log.vw", "-o", "good.ftprl", "--bits", "10", "-q") == 0
    raw = Path("good.ftprl").read_bytes()
    write("cut.ftprl", raw[:-1])
    write("flip.ftprl", raw[:400] + bytes([raw[400] ^ 1]) + raw[401:])
    write("other.ftprl", raw.replace(b'\\"hash_version\\":1', b'\\"hash_version\\":2'))
    write("version.ftprl", raw.replace(b'"version":"2"', b'"version":"9"'))


BAD = [
    (["train", "bad.vw"], ["bad.vw:2:", "'b' in 'a:b'", "expected a number"]),
    (["train", "nan.vw"], ["nan.vw:1:", "finite"]),
    (["train", "inf.vw"], ["inf.vw:1:", "finite"]),
    (["train", "huge.vw"], ["huge.vw:1:", "1e30"]),
    (["train", "label.vw"], ["label.vw:2:", "'2'", "1, -1 or 0", "positive"]),
    (["train", "cut.vw.gz"], ["cut.vw.gz:", "broken"]),
    (["train", "notgz.vw.gz"], ["notgz.vw.gz:1:", "gzip"]),
    (["train", "long.vw", "--max-row", "99"], ["long.vw:1:", "99 bytes", "raise --max-row"]),
    (["train", "cols.csv", "--label", "y"], ["cols.csv:3:", "2 columns", "got 3"]),
    (["train", "late.csv", "--label", "y"], ["late.csv:12002:", "'x'", "column 'n'"]),
    (["train", "late.csv", "--label", "z"], ["late.csv", "'z'", "'y', 'n'"]),
    (["train", "late.csv"], ["--label", "'y', 'n'"]),
    (["train", "three.csv", "--label", "y"], ["'red', 'blue', 'green'", "positive"]),
    (["train", "three.csv", "--label", "y", "--loss", "squared"], ["three.csv:2:", "'red'", "a number"]),
    (["train", "ids.libsvm"], ["ids.libsvm:1:", "5000000"]),
    (["train", "log.vw", "bad.vw"], ["bad.vw:2:"]),
    (["train", "log.vw", "missing.vw"], ["missing.vw", "no such file"]),
    (["train", "log.unknown"], ["log.unknown", "no such file"]),
    (["train", "log.vw", "--loss", "best"], ["--loss", "'best'", "logistic"]),
    (["train", "log.vw", "--scale", "0"], ["--scale", "0.0"]),
    (["train", "log.vw", "--bound", "*=2:", "--bound", "*=:1"], ["--bound", "*=2:1"]),
    (["train", "log.vw", "--bits", "40"], ["--bits", "40"]),
    (["train", "log.vw", "--every", "5"], ["--every", "--checkpoint"]),
    (["train", "log.vw", "--every", "soon", "--checkpoint", "c"], ["--every", "'soon'", "30s"]),
    (["train", "log.vw", "--resume", "not.ftprl"], ["not.ftprl"]),
    (["train", "log.vw", "--resume", "good.ftprl", "--scale", "0.7"], ["--scale", "0.7", "0.1"]),
    (["train", "log.vw", "--on-bad-row", "maybe"], ["--on-bad-row", "'maybe'"]),
    (["train", "-", "--format", "vw", "--passes", "2"], ["--passes 2", "standard input"]),
    (["predict", "missing.ftprl", "log.vw"], ["missing.ftprl", "No such file"]),
    (["predict", "not.ftprl", "log.vw"], ["not.ftprl"]),
    (["predict", "cut.ftprl", "log.vw"], ["cut.ftprl", "expected"]),
    (["predict", "flip.ftprl", "log.vw"], ["flip.ftprl"]),
    (["predict", "other.ftprl", "log.vw"], ["other.ftprl"]),
    (["predict", "version.ftprl", "log.vw"], ["version.ftprl", "'9'", "its own ftprl"]),
    (["predict", "good.ftprl", "bad.vw"], ["bad.vw:2:"]),
    (["inspect", "flip.ftprl"], ["flip.ftprl"]),
    (["inspect", "good.ftprl", "--top", "-1"], ["--top", "-1"]),
]


@pytest.mark.parametrize(("args", "parts"), BAD, ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_bad_input_is_one_line_and_loses_nothing(args: list[str], parts: list[str], capsys: Capture) -> None:
    prepare()
    capsys.readouterr()
    Path("old").write_bytes(b"old")
    before = sorted(os.listdir())
    more = {"train": ["-o", "old", "-q"], "predict": ["-o", "old"]}.get(args[0], [])
    assert ftprl(*args, *more) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ftprl: ")
    assert err.count("\n") == 1
    for word in parts:
        assert word in err
    assert Path("old").read_bytes() == b"old"
    assert sorted(os.listdir()) == before


class FullDisk(io.BufferedWriter):
    def write(self, _: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert ftprl(*TRAIN, "-q", "--checkpoint", "c", "--every", "100") == 0
    model, checkpoint = Path("m.ftprl").read_bytes(), Path("c").read_bytes()

    def full(handle: int, mode: str) -> BinaryIO:
        return FullDisk(io.FileIO(handle, mode))

    monkeypatch.setattr("ftprl.atomic.os.fdopen", full)
    for args, failed in (((*TRAIN, "-q"), 0), ((*TRAIN, "-q", "--checkpoint", "c", "--every", "100"), 4)):
        assert ftprl(*args) == 2
        *warnings, last = capsys.readouterr().err.splitlines()
        assert last == "ftprl: -o m.ftprl: No space left on device; free some space"
        assert len(warnings) == failed  # a checkpoint that cannot be written does not end the run
        assert all("could not be written: No space left on device" in warning for warning in warnings)
    assert Path("m.ftprl").read_bytes() == model
    assert Path("c").read_bytes() == checkpoint
    assert not [name for name in os.listdir() if name.endswith(".part")]


def test_an_unreadable_file_in_the_middle(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def refuse(name: str, *args: Any, **more: Any) -> Any:
        if name == "b.vw":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
        return open(name, *args, **more)

    monkeypatch.setattr("ftprl.data.files.open", refuse, raising=False)
    Path("b.vw").write_text("1 | a\n")
    assert ftprl("train", "log.vw", "b.vw", "log.vw", "-o", "m", "-q") == 2
    assert "b.vw: Permission denied" in capsys.readouterr().err
    assert not Path("m").exists()


def test_from_standard_input() -> None:
    command = [sys.executable, "-m", "ftprl", "train", "-", "--format", "vw", "-o", "p", "-q", "--bits", "10"]
    subprocess.run(command, input=Path("log.vw").read_bytes(), check=True)
    assert ftprl("train", "log.vw", "-o", "f", "-q", "--bits", "10") == 0
    assert Path("p").read_bytes() == Path("f").read_bytes()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_line_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("ftprl.cli.output.REFRESH_SECONDS", 0.0)
    assert ftprl(*TRAIN) == 0
    text = screen.getvalue()
    assert "rows/s" in text
    assert "mean loss" in text
    assert "\r\x1b[K" in text
    assert text.endswith("wrote m.ftprl\n")


def test_names_from_the_data_are_escaped(capsys: Capture) -> None:
    write("evil.csv", "y,\x1b[31mred\x07\n1,a\n0,b\n")
    assert ftprl("train", "evil.csv", "--label", "y", "-o", "m", "--bits", "6") == 0
    assert "\x1b" not in capsys.readouterr().err
    assert ftprl("inspect", "m") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_events(capsys: Capture) -> None:
    assert ftprl(*TRAIN, "-q", "--events", "e.jsonl") == 0
    logged = events.read_events("e.jsonl")
    assert logged[0]["event"] == "start"
    assert logged[-1]["event"] == "end"


def test_help_reads_well(capsys: Capture) -> None:
    for command in (["train"], ["predict"], ["inspect"], ["generate", "clicks"]):
        assert ftprl(*command, "--help") == 0
        out = capsys.readouterr().out
        assert "Options:" in out
        assert max(len(line) for line in out.splitlines()) <= 80
