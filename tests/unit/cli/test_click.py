"""Commands as Click reads them: help, completion, suggestions, and lazy imports."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ftprl.cli.app import COMMANDS, run
from ftprl.cli.vw_options import INSTEAD
from ftprl.version import __version__

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["generate", "clicks"], ["paper", "run"]])
def test_every_command_has_a_short_and_a_long_help(command: list[str], capsys: Capture) -> None:
    texts = []
    for option in ("-h", "--help"):
        assert run([*command, option]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert texts[0].startswith(" ".join(["Usage: ftprl", *command]))


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ("trian a.vw", "No such command 'trian'. Did you mean train?; see ftprl --help"),
        ("generate click", "No such command 'click'. Did you mean clicks?; see ftprl generate --help"),
        ("train a.vw --labl y", "No such option: --labl. Did you mean --label?"),
        ("paper run --job 3", "No such option: --job. Did you mean --jobs"),
        ("--versoin", "No such option: --versoin. Did you mean --version?; see ftprl --help"),
        ("train a.vw -o", "Option '-o' requires an argument; see ftprl train --help"),
        ("train a.vw --bits ten", "--bits needs a whole number from 1 to 32, got 'ten'; the table has"),
    ],
)
def test_what_was_typed_wrong_is_one_line_with_a_suggestion(args: str, line: str, capsys: Capture) -> None:
    assert run(args.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"ftprl: {line}")
    assert err.count("\n") == 1


def complete(words: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> list[str]:
    """Return bash's completions of the last word."""
    monkeypatch.setenv("_FTPRL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    assert run([]) == 0
    return capsys.readouterr().out.split()


def test_completion(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert complete("ftprl ce", monkeypatch, capsys) == ["plain,certify"]
    assert "plain,--label" in complete("ftprl train --la", monkeypatch, capsys)
    assert complete("ftprl train a", monkeypatch, capsys) == ["file,a"]
    assert complete("ftprl train a.vw -o m", monkeypatch, capsys) == ["file,m"]
    monkeypatch.setenv("_FTPRL_COMPLETE", "zsh_source")
    assert run([]) == 0
    assert "_FTPRL_COMPLETE" in capsys.readouterr().out


def seconds(*command: str) -> float:
    clock = time.monotonic()
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    return time.monotonic() - clock


def test_the_version_is_printed_at_once() -> None:
    code = "import sys; sys.argv = ['ftprl', '--version']; from ftprl.cli import command; command()"
    best = min(seconds("-c", code) - seconds("-c", "pass") for _ in range(5))
    assert best <= 0.15
    done = subprocess.run([sys.executable, "-m", "ftprl", "--version"], check=True, capture_output=True, text=True)
    assert done.stdout == f"ftprl {__version__}\n"


def test_a_command_imports_no_other_and_no_readers_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "a.vw").write_text("1 | a b\n-1 | c a\n" * 20)
    code = (
        "import sys; from ftprl.cli.app import run\n"
        f"assert run(['train', {str(tmp_path / 'a.vw')!r}, '-o', {str(tmp_path / 'm')!r}, '-q', '--bits', '8']) == 0\n"
        "unused = {'rich', 'pyarrow', 'ftprl.cli.predict', 'ftprl.data.table_source', 'ftprl.data.memory_tables'}\n"
        "assert not unused & set(sys.modules), unused & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


VW = [
    ("train a.vw -q uc", "-q uc: -q is --quiet here; in place of -q uc of vw type --interactions u:c"),
    (
        "train a.vw -quc",
        "No such option: -u; -q uc: -q is --quiet here; in place of -q uc of vw type --interactions u:c",
    ),
    ("train a.vw -q ::", "-q ::: -q is --quiet here; in place of -q :: of vw type --interactions *:*"),
    ("train a.vw --learning-rate 1", "No such option: --learning-rate (an option of vw), which is not needed: eight"),
    ("train a.vw -l0.5", "No such option: -l (an option of vw), which is not needed: eight"),
    ("train a.vw -p x", "No such option: -p (an option of vw); type ftprl predict MODEL FILE -o PREDICTIONS"),
    ("predict -t -i m a.vw", "No such option: -t (an option of vw); type ftprl predict MODEL FILE"),
    ("-d a.vw", "No such option: -d (an option of vw); type ftprl train FILE... -o MODEL"),
    ("a.vw", "No such command 'a.vw'. To learn the file type ftprl train a.vw; see ftprl --help"),
    ("demo -p 3", "No such option: -p; see ftprl demo --help"),
    ("train a.vw --cache -o m", "Option '--cache' requires an argument, got '-o'; see ftprl train --help"),
]


@pytest.mark.parametrize(("args", "line"), VW)
def test_users_of_vowpal_wabbit_read_what_to_type(
    args: str, line: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.vw").write_text("1 | a b\n-1 | c a\n")
    assert run([*args.split(), *(["-o", "m"] if " -" in args and "-o" not in args else [])]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"ftprl: {line}")
    assert err.count("\n") == 1


def test_what_is_typed_instead_exists() -> None:
    """Options after a command's name belong to this command, and options before it to train."""
    from ftprl.cli import evaluate, inspect, predict, train

    commands = (train.train, predict.predict, inspect.inspect, evaluate.evaluate)
    options = {str(command.name): {word for p in command.params for word in p.opts} for command in commands}
    for option, text in INSTEAD.items():
        assert option not in options["train"], option  # else nobody reads the line
        command = "train"
        for word in re.findall(r"(?<![\w-])(?:train|predict|inspect|evaluate|--?[a-z][a-z0-9-]*)(?![\w.(])", text):
            if word in options:
                command = word
            else:
                assert word in options[command], (option, word)
