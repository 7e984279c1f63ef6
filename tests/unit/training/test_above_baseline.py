"""A run worse than its baseline reports it: in its last line, in --json, in its events and in its report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, rows in (("long", 1500), ("short", 400)):
        labels = (-1 if rng.random() < 0.9 else 1 for _ in range(rows))
        Path(f"{name}.vw").write_text("".join(f"{y} | a:{rng.normal():.3f}\n" for y in labels))
    Path("good.vw").write_text("".join(f"{i % 2 * 2 - 1} | a{i % 2}\n" for i in range(1500)))
    Path("constant.vw").write_text("".join(f"1e-150 | a:{rng.normal():.3f}\n" for _ in range(1500)))


TRAIN = ["train", "-o", "m", "--events", "run.jsonl", "--bits", "6", "--json"]
BAD = ["--scale", "1e-9"]  # learns next to nothing


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_the_last_line_warns(quiet: list[str], capsys: Capture) -> None:
    assert run([*TRAIN, "long.vw", *BAD, *quiet]) == 0
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert last.startswith("ftprl: the mean loss, ")
    assert "is above the baseline's" in last
    assert "--scale" in last
    assert json.loads(out)["above_baseline"] is True
    end = json.loads(Path("run.jsonl").read_text().splitlines()[-1])
    assert (end["event"], end["above_baseline"]) == ("end", True)
    assert run(["report", "run.jsonl", "-o", "r.html"]) == 0
    assert "is above the baseline" in Path("r.html").read_text()


@pytest.mark.parametrize(
    ("data", "options"), [("short.vw", BAD), ("good.vw", []), ("constant.vw", ["--loss", "gamma"])]
)
def test_a_short_or_a_good_run_does_not(data: str, options: list[str], capsys: Capture) -> None:
    """A loss above the baseline's by rounding alone (constant labels) is not reported."""
    assert run([*TRAIN, data, *options]) == 0
    out, err = capsys.readouterr()
    assert "is above the baseline" not in err
    assert json.loads(out)["above_baseline"] is False
    assert json.loads(Path("run.jsonl").read_text().splitlines()[-1])["above_baseline"] is False
    assert run(["report", "run.jsonl", "-o", "r.html"]) == 0
    assert "is above the baseline" not in Path("r.html").read_text()


def test_from_python_and_over_passes() -> None:
    first = ftprl.train("short.vw", bits=6, scale=1e-9, passes=3)
    assert not first.progressive.above_baseline  # 1200 rows read, of which 400 were new
    assert ftprl.train("long.vw", bits=6, scale=1e-9).progressive.above_baseline
