"""The command line, run in its own folder: demo, errors, exit codes."""

import errno
import importlib.metadata
import json
import os
from pathlib import Path

import pytest

from ftprl.cli.app import run

SMALL = ["demo", "--dim", "6", "--rounds", "30", "--clicks", "0"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(SMALL) == 0
    out, err = capsys.readouterr()
    assert Path("ftprl-demo.png").read_bytes().startswith(PNG)
    assert os.listdir() == ["ftprl-demo.png"]
    for word in ("FTPRL-Diag", "regret", "best in hindsight", "ratio", "picture: ftprl-demo.png"):
        assert word in out
    assert err.count("playing ") == 6  # three learners on two streams
    assert "\x1b" not in out + err


def test_json_is_the_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "--json", "--seed", "4"]) == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed["dim"] == 6
    assert printed["rounds"] == 30
    assert printed["seed"] == 4
    assert printed["picture"] == "ftprl-demo.png"
    assert len(printed["learners"]) == 3
    for learner in printed["learners"].values():
        assert learner["rounds"] == 30
        assert learner["regret"] <= (learner["bound"] or 1e9)


def test_quiet_json_is_the_only_line_and_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for seed in ("1", "1", "2"):
        assert run([*SMALL, "--quiet", "--json", "--seed", seed]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert len(out.splitlines()) == 1
        lines.append(json.loads(out))
    assert lines[0] == lines[1]
    assert lines[0]["learners"] != lines[2]["learners"]


def test_quiet_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL, "-q"]) == 0
    assert capsys.readouterr() == ("", "")
    assert Path("ftprl-demo.png").is_file()


@pytest.mark.parametrize(("name", "magic"), [("a.svg", b"<?xml"), ("b.PDF", b"%PDF"), ("c d.png", PNG)])
def test_picture_formats(name: str, magic: bytes) -> None:
    assert run([*SMALL, "-q", "-o", name]) == 0
    assert Path(name).read_bytes().startswith(magic)


BAD = [
    (["--dim", "0"], "0"),
    (["--rounds", "-3"], "-3"),
    (["--alpha", "0"], "0.0"),
    (["--alpha", "nan"], "nan"),
    (["--drift", "1.5"], "1.5"),
    (["--seed", "-1"], "-1"),
    (["--output", "picture.txt"], "picture.txt"),
    (["--output", "missing/p.png"], "missing"),
    (["--output", "."], "."),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda v: " ".join(v) if isinstance(v, list) else v)
def test_bad_options(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad options: exit code 2, one line on stderr with the value and a remedy, nothing on stdout, nothing written."""
    assert run([*SMALL, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ftprl: ")
    assert err.count("\n") == 1
    assert message in err
    assert ";" in err
    assert os.listdir() == []


@pytest.mark.parametrize("args", [["demo", "--dim", "many"], ["demo", "--nonsense"], ["dance"], ["demo", "--dim"]])
def test_what_does_not_parse(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert args[-1] in err
    assert err.startswith("ftprl: ")
    assert err.count("\n") == 1
    assert ";" in err


def test_the_old_picture_survives_a_failing_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from matplotlib.figure import Figure

    Path("ftprl-demo.png").write_bytes(b"old")

    def broken(self: Figure, name: str, **_: object) -> None:
        Path(name).write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)

    monkeypatch.setattr(Figure, "savefig", broken)
    assert run([*SMALL, "-q"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "No space left on device" in err
    assert Path("ftprl-demo.png").read_bytes() == b"old"
    assert os.listdir() == ["ftprl-demo.png"]


def test_the_old_picture_survives_bad_options() -> None:
    Path("ftprl-demo.png").write_bytes(b"old")
    assert run([*SMALL, "--drift", "7"]) == 2
    assert Path("ftprl-demo.png").read_bytes() == b"old"


def test_interrupted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ftprl.adversaries.heavy_tail", stop)
    assert run(SMALL) == 130
    assert os.listdir() == []
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("group", [[], ["generate"], ["paper"]])
def test_the_list_of_commands_has_whole_sentences(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*group, "--help"]) == 0
    lines = capsys.readouterr().out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert lines
    assert all(line.endswith(".") and not line.endswith("...") for line in lines), lines


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "demo" in capsys.readouterr().out
    assert run(["demo", "--help"]) == 0
    out = capsys.readouterr().out
    for option in ("--dim", "--rounds", "--alpha", "--drift", "--seed", "--output", "--json", "--quiet"):
        assert option in out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        version = importlib.metadata.version("ftprl")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"ftprl {version}\n"


def test_demo_ends_with_a_receipt_and_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*SMALL[:-1], "1500", "-o", "d.svg", "--json"]) == 0
    out = capsys.readouterr().out
    printed = json.loads(out.splitlines()[-1])["clicks"]
    assert printed["rows"] == 1500
    assert printed["receipt"]["regret"] <= printed["receipt"]["bound"] <= printed["receipt"]["theorem"]
    assert printed["report"] == "d.html"
    assert "</html>" in Path("d.html").read_text()
    questions = [line.strip() for line in out.splitlines() if line.startswith("  ") and line.endswith("?")]
    assert questions == [
        "Better than guessing?",
        "Would another learning rate have been better?",
        "Would other fixed weights have been better?",
        "What to expect tomorrow?",
    ]
    assert f"a log loss of {printed['progressive_loss']:.4f} per row" in out
    assert "provably" in out
    assert run(["demo", "--clicks", "-1"]) == 2
    assert "--clicks needs a number of at least 0, got -1" in capsys.readouterr().err
