"""Accidents that are prevented: overwritten inputs, pipes read twice, partial outputs, silent mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ftprl import data, load
from ftprl.cli.app import run
from ftprl.errors import BadModel, InvalidInput
from ftprl.linear import Model
from ftprl.runlog import events
from ftprl.training import train

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data.clicks.generate(300, seed=1, path="c.csv")
    data.clicks.generate(300, seed=1, path="c.vw")
    train("c.csv", label="click", bits=10, output="m")


def ftprl(*args: str) -> int:
    return run(list(args))


@pytest.mark.parametrize(
    "args",
    [
        ["train", "c.csv", "--label", "click", "-o", "c.csv"],
        ["train", "c.csv", "--label", "click", "-o", "./c.csv"],
        ["train", "c.vw", "-o", "x", "--checkpoint", "c.vw"],
        ["train", "c.vw", "-o", "x", "--events", "c.vw"],
        ["train", "c.vw", "-o", "x", "--events", "x"],
        ["train", "c.vw", "-o", "x", "--events", "p", "--checkpoint", "p"],
        ["train", "c.csv", "-o", "x", "--resume", "m", "--events", "m"],
        ["predict", "m", "c.csv", "-o", "m"],
        ["predict", "m", "c.csv", "-o", "c.csv"],
    ],
)
def test_nothing_is_written_over_what_is_read(args: list[str], capsys: Capture) -> None:
    before = {name: Path(name).read_bytes() for name in os.listdir()}
    assert ftprl(*args) == 2
    assert "needs a file of its own" in capsys.readouterr().err
    assert {name: Path(name).read_bytes() for name in os.listdir()} == before


LINKED = [  # the option that names the other name of a file, and the file
    ["train", "c.vw", "-o", "c.vw"],
    ["train", "c.vw", "-o", "x", "--checkpoint", "c.vw"],
    ["train", "c.vw", "-o", "x", "--events", "c.vw"],
    ["train", "folder", "-o", "x", "--format", "vw", "--events", "c.vw"],
    ["train", "folder/*.vw", "-o", "x", "--checkpoint", "c.vw"],
    ["train", "c.csv", "-o", "x", "--resume", "m", "--events", "m"],
    ["predict", "m", "c.csv", "-o", "c.csv"],
    ["predict", "m", "c.csv", "-o", "m"],
    ["certify", "r", "-o", "r"],
    ["certify", "r", "--against", "m", "-o", "m"],
    ["certify", "r", "--radius", "1", "--exact", "c.csv", "-o", "c.csv"],
    ["certify", "r", "--radius", "1", "--exact", "folder", "-o", "c.vw"],
    ["report", "e.html", "-o", "e.html"],
]


@pytest.mark.parametrize("kind", ["hard link", "symbolic link", "other path"])
@pytest.mark.parametrize("args", LINKED, ids=lambda args: " ".join(args))
def test_another_name_of_what_is_read_is_not_written(args: list[str], kind: str, capsys: Capture) -> None:
    """An output that is another name of an input file is refused before anything is written."""
    train("c.csv", label="click", bits=10, output="r", receipt=True, events="e.html")
    os.makedirs("folder/sub")
    os.link("c.vw", "folder/c.vw")
    other = {"hard link": "x.html", "symbolic link": "y.html", "other path": f"folder/../{args[-1]}"}[kind]
    {"hard link": os.link, "symbolic link": os.symlink, "other path": lambda *_: None}[kind](args[-1], other)
    before = {name: Path(name).read_bytes() for name in os.listdir() if Path(name).is_file()}
    capsys.readouterr()
    assert ftprl(*args[:-1], other) == 2
    assert "needs a file of its own" in capsys.readouterr().err
    assert {name: Path(name).read_bytes() for name in os.listdir() if Path(name).is_file()} == before


def test_standard_input_is_not_written_either() -> None:
    before = Path("c.vw").read_bytes()
    os.link("c.vw", "linked")
    for args in (["--events", "linked", "-o", "x"], ["-o", "c.vw"], ["-o", "x", "--checkpoint", "linked"]):
        with open("c.vw", "rb") as stdin:
            done = subprocess.run(
                [sys.executable, "-m", "ftprl", "train", "-", "--format", "vw", *args],
                stdin=stdin,
                capture_output=True,
                text=True,
            )
        assert done.returncode == 2
        assert "which is standard input" in done.stderr
        assert Path("c.vw").read_bytes() == before


@pytest.mark.parametrize("option", ["--output", "--checkpoint", "--events"])
def test_two_runs_do_not_write_one_file(option: str, capsys: Capture) -> None:
    """A second run with an output of a running one is refused; after the first is killed, the next run is not."""
    first = ["train", "-", "--format", "vw", "-q", "-o", "a", "--checkpoint", "b", "--events", "e"]
    shared = {"--output": "a", "--checkpoint": "b", "--events": "e"}[option]
    second = ["train", "c.vw", "-q", "--bits", "10", *(["-o", "x"] if option != "--output" else []), option, shared]
    with subprocess.Popen([sys.executable, "-m", "ftprl", *first], stdin=subprocess.PIPE) as process:
        while not Path("e").exists() or not Path("e").read_bytes().count(b"\n"):
            time.sleep(0.01)
        log = Path("e").read_bytes()
        assert ftprl(*second) == 2
        expected = f"{option} needs a file that no other run writes, got '{shared}', which another run is writing; wait"
        assert capsys.readouterr().err == f"ftprl: {expected} until that ends, or name another.\n"
        assert Path("e").read_bytes() == log
        process.kill()
    assert ftprl(*second) == 0
    assert not [name for name in os.listdir() if name in (f".{shared}.lock", ".x.lock")]


def test_a_model_may_go_on_in_its_own_file() -> None:
    train("c.csv", resume="m", output="m", checkpoint="m", every=100)
    assert load("m").history["rows"] == 600


def test_links_devices_and_permissions_stay() -> None:
    os.makedirs("there")
    Path("there/real").write_bytes(b"old")
    Path("there/real").chmod(0o600)
    os.symlink("there/real", "link")
    train("c.csv", label="click", bits=10, output="link")
    assert Path("link").is_symlink()
    assert load("there/real").history["rows"] == 300
    assert Path("there/real").stat().st_mode & 0o777 == 0o600
    assert ftprl("predict", "m", "c.csv", "-o", os.devnull) == 0
    assert not Path(os.devnull).is_file()


def test_tables_from_pipes_are_read_whole(tmp_path: Path) -> None:
    os.mkfifo("pipe")
    feeder = threading.Thread(target=lambda: Path("pipe").write_bytes(Path("c.csv").read_bytes()))
    feeder.start()
    train("pipe", format="csv", label="click", bits=10, output="p")
    feeder.join()
    assert Path("p").read_bytes() == Path("m").read_bytes()
    with pytest.raises(InvalidInput, match="passes=2 needs data that can be read again"):
        train("pipe", format="vw", passes=2, bits=10)


def process(text: str) -> subprocess.CompletedProcess[bytes]:
    code = "from ftprl.cli import command\ncommand()"
    return subprocess.run(["bash", "-c", text.replace("ftprl", f"{sys.executable} -c '{code}'")], capture_output=True)


def test_a_bad_row_from_a_pipe_that_stays_open() -> None:
    done = process("(echo garbage; sleep 3) | ftprl train - --format vw -q -o x --bits 8")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"<stdin>:1: expected '|'" in done.stderr


def test_an_output_that_nobody_can_take() -> None:
    for text in ("ftprl inspect m > /dev/full", "ftprl predict m c.csv > /dev/full"):
        for env in ("", "export PYTHONUNBUFFERED=1; "):
            done = process(env + text)
            assert done.returncode == 2
            assert done.stderr == b"ftprl: standard output: No space left on device; free some space\n"
    done = process("set -o pipefail; ftprl predict m c.csv | true")
    assert done.stderr == b""


def test_closed_streams_are_no_reason_to_fall_over() -> None:
    assert process("ftprl train c.vw -o x --bits 8 2>&-").returncode == 0
    done = process("ftprl train - --format vw -o x --bits 8 -q <&-")
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1


def test_a_resumed_run_needs_its_columns() -> None:
    Path("a.csv").write_text("y,w,n\n" + "1,2,3\n0,1,4\n" * 10)
    Path("b.csv").write_text("y,n\n" + "1,3\n0,4\n" * 10)
    train("a.csv", label="y", weight="w", bits=8, output="w")
    with pytest.raises(ValueError, match="expected a column 'w'"):
        train("b.csv", resume="w")


def test_a_positive_label_that_no_row_has(capsys: Capture) -> None:
    Path("a.csv").write_text("y,n\n" + "yes,2\nno,3\n" * 10)
    assert ftprl("train", "a.csv", "--label", "y", "--positive", "Yes", "-o", "x", "-q", "--bits", "8") == 2
    wrong = "--positive needs a label of the data, got"
    assert f"{wrong} 'Yes', and the first rows have 'yes', 'no'; did you mean 'yes'?" in capsys.readouterr().err
    assert ftprl("train", "a.csv", "--label", "y", "--positive", "ja", "-o", "x", "-q", "--bits", "8") == 2
    assert f"{wrong} 'ja', which no row has; the first row has 'yes'." in capsys.readouterr().err
    Path("b.vw").write_text("1 | a\n" * 5)
    assert ftprl("train", "b.vw", "-o", "x", "-q", "--bits", "8") == 0
    assert capsys.readouterr().err == "ftprl: every label was 1; check the labels, and --positive\n"


def test_a_checkpoint_knows_its_data() -> None:
    class Killed(Exception):
        pass

    def stop(event: events.Event) -> None:
        if event["event"] == "checkpoint":
            raise Killed

    with pytest.raises(Killed):
        train("c.vw", bits=10, checkpoint="k", every=100, listener=stop)
    Path("c.vw").write_bytes(Path("c.vw").read_bytes().replace(b"=", b"#"))
    with pytest.raises(InvalidInput, match=r"expected c\.vw as it was, got other bytes"):
        train("c.vw", resume="k")


def test_a_model_trained_on_commas_reads_tabs() -> None:
    Path("c.tsv").write_text(Path("c.csv").read_text().replace(",", "\t"))
    model = load("m")
    assert model.predict("c.tsv").tolist() == model.predict("c.csv").tolist()
    assert ftprl("predict", "m", "c.tsv", "-o", "p") == 0
    assert train("c.tsv", resume="m").rows == 300


def test_predicting_leaves_out_what_cannot_be_scored(capsys: Capture) -> None:
    Path("d.vw").write_text("| a\n| a:1e31\n| a:x\n| a\n")
    train("c.vw", bits=10, output="v")
    assert ftprl("predict", "v", "d.vw", "--on-bad-row", "skip", "-o", "p") == 0
    assert [line == "" for line in Path("p").read_text().splitlines()] == [False, True, True, False]
    assert "left out 2 bad rows; the first: d.vw:2: expected values within 1e30" in capsys.readouterr().err


def test_events_go_on_behind_a_line_that_was_cut() -> None:
    Path("e").write_text('{"event": "start", "rows": 0}\n{"event": "prog')
    writer = events.Writer("e", append=True)
    writer.write({"event": "end", "rows": 1})
    writer.close()
    assert [event["event"] for event in events.read_events("e")] == ["start", "end"]


def test_many_columns_are_refused_before_the_work() -> None:
    names = [f"a-long-name-of-a-column-{i}" for i in range(40_000)]
    Path("wide.csv").write_text(
        ",".join(["y", *names]) + "\n" + "1" + ",2" * 40_000 + "\n" + "0" + ",2" * 40_000 + "\n"
    )
    with pytest.raises(BadModel, match="header needs at most 1000000 bytes"):
        train("wide.csv", label="y", bits=10, output="x")
    assert isinstance(load("m"), Model)


def test_generate_alone_shows_its_help(capsys: Capture) -> None:
    assert ftprl("generate") == 0
    assert "clicks" in capsys.readouterr().out
