"""Examples run outside the repository, with generated data and with a user's file."""

import contextlib
import io
import re
import runpy
import shutil
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(path: Path) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder without access to other data."""
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    return inside


def test_text_makes_messages_up(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(shutil.copy(EXAMPLES / "text.py", alone))
    monkeypatch.setattr(sys, "argv", ["text.py"])
    output = run(path)
    assert output.startswith("5,000 rows in random order, each predicted before it was learned: log loss 0.0")
    ham, spam = (float(v) for v in re.findall(r"([\d.]+)% spam", output))
    assert ham < 10 < 90 < spam


def test_text_takes_a_file(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["spam\tfree cash prize", "ham\tsee you tonight"] * 100
    (alone / "mine.tsv").write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(sys, "argv", ["text.py", "mine.tsv"])
    assert run(EXAMPLES / "text.py").startswith("200 rows")
