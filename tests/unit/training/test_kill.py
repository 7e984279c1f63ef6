"""`kill -9` and SIGTERM at random moments: every finished model and its predictions have equal bytes.

The long run, with its counts: `python -m pytest -n 0 -s -m slow tests/unit/training/test_kill.py`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ftprl import data
from ftprl.linear import Model
from ftprl.runlog.events import read_events
from ftprl.training import train

ROWS = 60_000
EVERY = 2500
KINDS: tuple[dict[str, Any], ...] = (
    {"bits": 16, "holdout": 10, "passes": 2},
    {"bits": 16, "receipt": True},
    {"bits": 14, "scale": 0.1, "passes": 3},
)


class Runs:
    """Runs of `ftprl train` in a folder that are stopped repeatedly, until each finishes."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.dice, self.counts = folder, random.Random(seed), Counter[str]()
        self.log = folder / "log.vw.gz"
        data.clicks.generate(ROWS, seed=1, path=self.log)
        self.model, self.checkpoint, self.events = (folder / name for name in ("m", "c", "e"))
        self.predictions = folder / "p.gz"
        self.whole: list[tuple[bytes, bytes]] = []
        for options in KINDS:
            train(self.log, output=folder / "whole", predictions=folder / "whole.gz", **options)
            self.whole.append(((folder / "whole").read_bytes(), (folder / "whole.gz").read_bytes()))
        (folder / "whole").unlink()
        (folder / "whole.gz").unlink()

    def complete(self, kind: int, signals: list[int]) -> None:
        """Run once with signals from a list, and resume until the model is complete."""
        for path in (self.model, self.checkpoint, self.events, self.predictions):
            path.unlink(missing_ok=True)
        while self.run(kind, signals) != 0:
            pass
        assert (self.model.read_bytes(), self.predictions.read_bytes()) == self.whole[kind]
        assert sorted(os.listdir(self.folder)) == ["c", "e", "log.vw.gz", "m", "p.gz"]  # what a kill has left is gone
        assert read_events(self.events)[-1]["event"] == "end"
        self.counts["finished, byte-identical"] += 1

    def run(self, kind: int, signals: list[int]) -> int:
        """Start or resume the run, and send it the next signal; return its exit code."""
        sessions = self.sessions()
        with subprocess.Popen(self.command(kind), stderr=subprocess.PIPE, text=True) as process:
            seen = -1
            if signals and self.waited(process, sessions):
                seen = self.last_rows()
                process.send_signal(signals[-1])
            _, errors = process.communicate(timeout=120)
        if seen >= 0 and process.returncode != 0:
            self.check(signals.pop(), process.returncode, seen, errors)
        else:
            assert process.returncode == 0
        return process.returncode

    def command(self, kind: int) -> list[str]:
        args = ["train", self.log, "-o", self.model, "-q", "--checkpoint", self.checkpoint, "--every", EVERY]
        args += ["--events", self.events, "--predictions", self.predictions]
        for name, value in KINDS[kind].items():
            args += [f"--{name}"] if value is True else [f"--{name}", value]
        resume = ["--resume", self.checkpoint] if self.checkpoint.exists() else []
        return [sys.executable, "-m", "ftprl", *map(str, [*args, *resume])]

    def waited(self, process: subprocess.Popen[str], sessions: int) -> bool:
        """Wait for a moment to send a signal, mostly during learning, sometimes at the start; False if the run
        ended.
        """
        if self.dice.random() < 0.1:
            time.sleep(self.dice.uniform(0.0, 0.5))
            return process.poll() is None
        while process.poll() is None and self.sessions() == sessions:
            time.sleep(0.002)
        time.sleep(self.dice.uniform(0.0, 0.6))
        return process.poll() is None

    def check(self, number: int, code: int, seen: int, errors: str) -> None:
        """Check that a signal loses at most the rows since it, or since the last logged checkpoint."""
        kept = 0
        if self.checkpoint.exists():
            run = Model.load(self.checkpoint).checkpoint
            assert run is not None
            kept = run["state"]["rows"]
        events = read_events(self.events) if self.events.exists() else []
        if number == signal.SIGKILL:
            assert code == -signal.SIGKILL
            self.counts["kills"] += 1
            self.counts["kills with a checkpoint to resume"] += kept > 0
            logged = [event["rows"] for event in events if event["event"] == "checkpoint"]
            assert kept >= max(logged, default=0)
            return
        self.counts["SIGTERMs"] += 1
        if code < 0:  # before the first line of ours
            self.counts["SIGTERMs before the command began"] += 1
            return
        assert code == 143
        assert errors.startswith("ftprl: interrupted")
        assert errors.count("\n") == 1
        if "before anything was done" in errors or not events or events[-1]["event"] != "interrupted":
            self.counts["SIGTERMs before the first row"] += 1
            return
        assert events[-1]["lost"] == 0
        assert kept == events[-1]["rows"] >= seen
        self.counts["SIGTERMs that saved every row"] += kept > 0

    def sessions(self) -> int:
        return self.text().count('"event": "start"') + self.text().count('"event": "resume"')

    def last_rows(self) -> int:
        lines = self.text().split("\n")[:-1]
        return int(json.loads(lines[-1])["rows"]) if lines else 0

    def text(self) -> str:
        return self.events.read_text() if self.events.exists() else ""


def stop_often(folder: Path, kills: int, terms: int, seed: int) -> Counter[str]:
    runs = Runs(folder, seed)
    signals = [signal.SIGKILL] * kills + [signal.SIGTERM] * terms
    runs.dice.shuffle(signals)
    kind = 0
    while signals or kind < len(KINDS):
        runs.complete(kind % len(KINDS), signals)
        kind += 1
    assert runs.counts["kills"] == kills
    assert runs.counts["SIGTERMs"] == terms
    # Otherwise the signals came too early to test anything.
    assert runs.counts["kills with a checkpoint to resume"] >= kills // 4
    assert runs.counts["SIGTERMs that saved every row"] >= terms // 2
    return runs.counts


def test_a_few_signals(tmp_path: Path) -> None:
    stop_often(tmp_path, kills=4, terms=2, seed=1)


@pytest.mark.slow
def test_two_hundred_kills_and_fifty_sigterms(tmp_path: Path) -> None:
    began = time.monotonic()
    counts = stop_often(tmp_path, kills=200, terms=50, seed=2)
    print(f"\n{', '.join(f'{count} {name}' for name, count in counts.items())}; {time.monotonic() - began:.0f} s")
