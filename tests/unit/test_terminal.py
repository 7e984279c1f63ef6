"""The commands' output fits the terminal: tables, and the live line, which must leave no remains."""

from __future__ import annotations

import fcntl
import os
import pty
import random
import re
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from ftprl.cli.app import run
from ftprl.terminal import cut, fitted, table, width_of

LONG = "a very long name of a column, with more words than anybody needs"
COMMANDS = [
    "train wide.csv --label y --loss softmax -o x --holdout 5",
    "train numbers.csv --label y --loss squared -o x --holdout 5",
    "train clicks.vw -o x --passes 2",
    "inspect classes",
    "inspect numbers",
    "inspect clicks",
    "evaluate classes wide.csv --by city",
    "evaluate numbers numbers.csv --by b",
    "evaluate clicks clicks.vw",
    "compare clicks numbers.txt --data clicks.vw",
    "certify receipt",
    "verify receipt.json clicks.vw",
    "paper list",
    "paper run lemma-sum algorithm-1",
]
# Output that stays one line for programs that read it; a terminal wraps it.
SENTENCES = (
    *(" rows in random order, ", "the last ", "95 % confidence", "ftprl: "),
    *("pass 1: ", "pass 2: ", "now all rows are learned"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("terminal"), random.Random(0)
    names = ["the first class, with a name of some length", "the second one, which has a longer name", "北京市东城区"]
    lines = [f'{rng.choice(names)!r},value {i % 7} of many,{i % 3},"{LONG} {i % 5}"' for i in range(400)]
    header = f'y,"{LONG}",city,text'
    (path / "wide.csv").write_text("\n".join([header, *(line.replace("'", '"') for line in lines)]) + "\n")
    numbers = [f"{rng.random() * 1e6:.3f},{rng.random()},{rng.choice('abc')}" for _ in range(400)]
    (path / "numbers.csv").write_text("\n".join(["y,a,b", *numbers]) + "\n")
    before = os.getcwd()
    os.chdir(path)
    try:
        for command in (
            "generate clicks --rows 400 --seed 1 -o clicks.vw",
            "train wide.csv --label y --loss softmax -o classes -q --bits 10 --text text",
            "train numbers.csv --label y --loss squared -o numbers -q --bits 10",
            "train clicks.vw -o clicks -q --bits 10",
            "predict clicks clicks.vw -o numbers.txt",
            "train clicks.vw -o receipt -q --bits 10 --receipt --order given",
            "certify receipt -o receipt.json --json",
        ):
            assert run(shlex.split(command)) == 0
    finally:
        os.chdir(before)
    return path


def shown(arguments: list[str], width: int, folder: Path) -> str:
    """Return a command's output to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    command = [sys.executable, "-m", "ftprl", *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, close_fds=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(ours)
    assert process.wait() == 0, text.decode()
    return text.decode()


@pytest.mark.parametrize("width", [80, 60])
@pytest.mark.parametrize("command", COMMANDS)
def test_tables_and_the_line_that_moves_fit(command: str, width: int, folder: Path) -> None:
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown(shlex.split(command), width, folder))
    lines = [part for line in text.replace("\r\n", "\n").split("\n") for part in line.split("\r")]
    assert len(lines) > 3
    assert [line for line in lines if width_of(line) > width and not any(word in line for word in SENTENCES)] == []


def test_the_line_that_moves_is_cut_to_the_terminal(folder: Path) -> None:
    code = (
        "import sys; from ftprl.cli.output import StatusLine\n"
        "status = StatusLine(sys.stdout); status.show('x' * 200); status.clear(); print('done')"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 50, 0, 0))
    subprocess.run([sys.executable, "-c", code], stdout=theirs, check=True)
    assert os.read(ours, 1 << 16).decode().startswith("\r" + "x" * 46 + "...\x1b[K\r\x1b[Kdone")
    os.close(ours)
    os.close(theirs)


def test_a_table_that_has_room_is_as_it_was_and_numbers_are_never_cut() -> None:
    rows = [("name", "value"), ("a name that is rather long", "1234567.89")]
    assert table(rows, [1], width=200) == [f"{'name':<26}       value", "a name that is rather long  1234567.89"]
    for width in range(22, 40):
        lines = table(rows, [1], width=width)
        assert lines[1].endswith("1234567.89")
        assert max(map(len, lines)) <= max(width, 22)
    assert table([("a" * 30, "x", "9")], [2], drop=(1,), width=14) == ["aaaaaaaa...  9"]


@pytest.mark.parametrize("text", ["clicks", "北京市东城区", "Zürich", "e\u0301" * 9])
def test_cut_texts_fit(text: str) -> None:
    for width in range(4, 20):
        assert width_of(cut(text, width)) <= width
        assert cut(text, width) == text or cut(text, width).endswith("...")


def test_long_lines_stay_under_their_last_column() -> None:
    text = "bound   420  proved from sums of this run\na line of prose that is longer than it should be"
    assert fitted(text, 30).split("\n") == [
        *("bound   420  proved from sums", "             of this run"),
        *("a line of prose that is longer", "    than it should be"),
    ]
    assert fitted(text, 200) == text
