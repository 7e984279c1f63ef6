"""`kill -9` at random moments of a run with checkpoints: the resumed run ends in the same bytes, every time."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ftprl import data
from ftprl.training import train

ROWS = 60_000


def command(log: Path, folder: Path) -> list[str]:
    args = ["train", str(log), "-o", str(folder / "m"), "--bits", "16", "--holdout", "10", "-q", "--passes", "2"]
    args += ["--checkpoint", str(folder / "c"), "--every", "2500"]
    if (folder / "c").exists():
        args += ["--resume", str(folder / "c")]
    return [sys.executable, "-m", "ftprl", *args]


def kill_often(folder: Path, kills: int, seed: int) -> None:
    log = folder / "log.vw.gz"
    data.clicks.generate(ROWS, seed=1, path=log)
    train(log, output=folder / "whole", bits=16, holdout=10, passes=2)
    began = time.monotonic()
    subprocess.run(command(log, folder), check=True)
    whole = time.monotonic() - began
    dice, done, resumed = random.Random(seed), 0, 0
    while done < kills:
        (folder / "c").unlink(missing_ok=True)
        (folder / "m").unlink(missing_ok=True)
        while True:  # several kills in one run, until it ends by itself
            with subprocess.Popen(command(log, folder)) as process:
                try:
                    process.wait(dice.uniform(0.1, whole))
                except subprocess.TimeoutExpired:
                    process.kill()
                    done += 1
                    resumed += (folder / "c").exists()
            if process.returncode != -signal.SIGKILL:
                break
        assert process.returncode == 0
        assert (folder / "m").read_bytes() == (folder / "whole").read_bytes()
    assert resumed > kills // 4  # otherwise the kills came too early to say anything


def test_a_few_kills(tmp_path: Path) -> None:
    kill_often(tmp_path, 3, seed=1)


@pytest.mark.slow
def test_fifty_kills(tmp_path: Path) -> None:
    kill_often(tmp_path, 50, seed=2)
