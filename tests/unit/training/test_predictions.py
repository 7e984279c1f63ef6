"""`train --predictions`: the prediction of each row before it was learned, in the order of the rows."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl import data
from ftprl.cli.app import run as command
from ftprl.data.compression import packed
from ftprl.errors import FtprlError, InvalidInput
from ftprl.linear import Spec
from ftprl.receipt.replay import Replay
from ftprl.runlog.events import Event
from ftprl.training import train
from ftprl.training.predict import AlignedLines

ROWS = 2500


class Killed(Exception):
    """Stands for a killed process."""


def rows_of(path: Path, *, bad: bool = False, tags: bool = False, rows: int = ROWS, values: bool = True) -> Path:
    """Return VW text; with `bad` some rows cannot be read, and some have a label that cannot be learned."""
    rng = np.random.default_rng(3)
    lines = []
    for i in range(rows):
        tag = f"'row{i}" if tags and i % 3 == 0 else ""
        label = 7 if bad and i % 53 == 8 else 1 if rng.random() < 0.3 else -1
        value = f" x:{rng.normal():.3f}" if values else ""
        lines.append(f"{label} {tag}| a{rng.zipf(1.5) % 50} b{rng.integers(9)}{value}")
        if bad and i % 41 == 3:
            lines += ["1 | broken:value"] * (1 + i % 2)
    if bad:
        lines.append("1 | broken:value")
    path.write_text("\n".join(lines) + "\n")
    return path


def one_by_one(log: Path, **spec: Any) -> list[float]:
    """Predict each row, then learn it, by the replay of `verify`."""
    replay, actual = Replay(Spec(**spec), retire=True), []
    for batch in data.open(log, dim=spec["dim"]).batches():
        for one in batch.cut(1):
            chance = float(np.exp(-replay.learn(one)[0][0]))
            actual.append(chance if one.y[0] > 0 else 1.0 - chance)
    return actual


def numbers(path: Path) -> list[float | None]:
    text = path.read_text()
    assert text == "" or text.endswith("\n")
    return [float(line.split()[0]) if line else None for line in text.split("\n")[:-1]]


@pytest.mark.parametrize("scale", [0.1, (0.05, 0.2)])
def test_each_row_is_predicted_before_it_is_learned(tmp_path: Path, scale: Any) -> None:
    log = rows_of(tmp_path / "log.vw", values=False)  # another value changes the unit of its feature first
    run = train(log, bits=16, scale=scale, l2=0.01, predictions=tmp_path / "p", output=tmp_path / "m")
    np.testing.assert_allclose(numbers(tmp_path / "p"), one_by_one(log, dim=2**16, scale=scale, l2=0.01), rtol=1e-12)
    train(log, bits=16, scale=scale, l2=0.01, order="given", output=tmp_path / "without")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "without").read_bytes()
    y = np.concatenate([batch.y for batch in data.open(log, dim=2**16).batches()])
    p = np.array(numbers(tmp_path / "p"))
    assert run.progressive_loss == pytest.approx(float(-np.log(np.where(y > 0, p, 1 - p)).mean()), rel=1e-9)


def test_several_passes_and_held_out_rows(tmp_path: Path) -> None:
    log = rows_of(tmp_path / "log.vw")
    train(log, bits=10, holdout=5, predictions=tmp_path / "one")
    train(log, bits=10, holdout=5, passes=3, predictions=tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    assert len(numbers(tmp_path / "one")) == ROWS
    assert None not in numbers(tmp_path / "one")  # held-out rows are predicted, too


def test_neither_threads_nor_blocks_matter(tmp_path: Path) -> None:
    log = rows_of(tmp_path / "log.vw", bad=True, tags=True)
    actual = set()
    for threads in (0, 1, 3):
        for block_size in (300, 1 << 20):
            source = data.open(log, dim=1024, block_size=block_size, on_bad_row="skip")
            train(source, threads=threads, predictions=tmp_path / "p")
            actual.add((tmp_path / "p").read_bytes())
    assert len(actual) == 1


def test_left_out_rows_have_an_empty_line_and_tags_are_kept(tmp_path: Path) -> None:
    log = rows_of(tmp_path / "log.vw", bad=True, tags=True)
    train(log, bits=10, on_bad_row="skip", predictions=tmp_path / "p")
    lines = (tmp_path / "p").read_text().split("\n")[:-1]
    rows = log.read_text().split("\n")[:-1]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        is_bad = "broken" in row or row.startswith("7 ")
        assert (line == "") == is_bad
        tag = row.split("|")[0].partition("'")[2]
        assert is_bad or line.partition(" ")[2] == tag


@pytest.mark.parametrize("name", ["p.txt", "p.gz", "p.zst"])
@pytest.mark.parametrize("bad", [False, True])
def test_killed_and_resumed_runs_write_the_same_bytes(tmp_path: Path, name: str, bad: bool) -> None:
    log = rows_of(tmp_path / "log.vw", bad=bad, tags=True)
    options: dict[str, Any] = {"bits": 10, "scale": 0.1, "on_bad_row": "skip", "passes": 2, "holdout": 0}
    train(log, predictions=tmp_path / f"whole{name}", **options)
    saved: dict[str, Any] = {"checkpoint": tmp_path / "c", "every": 300, "predictions": tmp_path / name}
    for kills in range(1, 6):

        def listener(event: Event, left: list[int] = [kills]) -> None:  # noqa: B006
            left[0] -= event["event"] == "checkpoint"
            if left[0] == 0:
                raise Killed

        resume = {"resume": tmp_path / "c"} if (tmp_path / "c").exists() else {}
        with pytest.raises(Killed):
            train(log, listener=listener, **saved, **options, **resume)
        assert not (tmp_path / name).exists()
    with (tmp_path / f".{name}.unfinished").open("ab") as unfinished:
        unfinished.write(b"what came after the checkpoint")
    train(log, **saved, resume=tmp_path / "c")
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole{name}").read_bytes()
    assert not (tmp_path / f".{name}.unfinished").exists()
    train(log, **saved, resume=tmp_path / "c")  # a run that was complete is completed again
    assert (tmp_path / name).read_bytes() == (tmp_path / f"whole{name}").read_bytes()


def test_what_a_resumed_run_refuses(tmp_path: Path) -> None:
    log = rows_of(tmp_path / "log.vw")
    checkpoint = tmp_path / "c"
    train(log, bits=10, scale=0.1, checkpoint=checkpoint, every=1000, predictions=tmp_path / "p")
    with pytest.raises(InvalidInput, match=r"predictions= has every row of a run or none, got a checkpoint with it"):
        train(log, resume=checkpoint)
    with pytest.raises(InvalidInput, match=r"predictions= needs the first \d+ bytes of the run that is resumed"):
        train(log, resume=checkpoint, predictions=tmp_path / "other")
    changed = (tmp_path / "p").read_bytes()
    (tmp_path / "p").write_bytes(b"9" + changed[1:])
    with pytest.raises(InvalidInput, match=r"predictions= needs the first"):
        train(log, resume=checkpoint, predictions=tmp_path / "p")
    train(log, bits=10, scale=0.1, checkpoint=checkpoint, every=1000)
    with pytest.raises(InvalidInput, match=r"got a checkpoint without it; drop it"):
        train(log, resume=checkpoint, predictions=tmp_path / "p")


def test_a_run_that_fails_leaves_no_file(tmp_path: Path) -> None:
    log = rows_of(tmp_path / "log.vw", bad=True)
    (tmp_path / "p").write_text("as it was\n")
    for more in ({}, {"checkpoint": tmp_path / "c", "every": "1h"}):
        with pytest.raises(FtprlError):
            train(log, bits=10, predictions=tmp_path / "p", **more)
        assert (tmp_path / "p").read_text() == "as it was\n"
        assert sorted(path.name for path in tmp_path.iterdir()) == ["log.vw", "p"]


def test_bad_targets(tmp_path: Path) -> None:
    log = rows_of(tmp_path / "log.vw", rows=10)
    with pytest.raises(InvalidInput, match=r"predictions= needs a folder"):
        train(log, predictions=tmp_path / "none" / "p")
    with pytest.raises(InvalidInput, match=r"predictions= needs a file of its own, got .*, which is the data file"):
        train(log, predictions=log)
    with pytest.raises(InvalidInput, match=r"needs a file of its own, got .*, which is predictions="):
        train(log, predictions=tmp_path / "m", output=tmp_path / "m")
    with pytest.raises(InvalidInput, match=r"predictions= needs a name that ends in .gz or .zst or in neither"):
        train(log, predictions=tmp_path / "p.bz2")


def test_standard_output(tmp_path: Path, capfdbinary: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = rows_of(tmp_path / "log.vw", rows=20)
    train(log, bits=10, predictions=tmp_path / "p")
    written = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", written)
    args = ["train", str(log), "--bits", "10", "-q", "-o", str(tmp_path / "m"), "--predictions", "-"]
    assert command(args) == 0
    assert written.buffer.getvalue() == (tmp_path / "p").read_bytes()
    assert command([*args, "--json"]) == 2


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=40),
    st.lists(st.integers(1, 10), min_size=1, max_size=8),
    st.sets(st.integers(0, 39)),
    st.integers(0, 3),
)
def test_lines_keep_their_places(gaps: list[int], cuts: list[int], refused: set[int], start: int) -> None:
    """Lines keep their positions, compared with a list of all rows.

    `gaps[i]` rows are left out before row i, the last ones at the end.
    """
    rows = len(gaps) - 1
    start = min(start, rows)
    wanted = []
    for row in range(start, rows):
        wanted += [""] * gaps[row] + ["" if row in refused else f"{row}.5"]
    wanted += [""] * gaps[-1]
    lines, text, at = AlignedLines(start), b"", start
    lines.leave_out({row: count for row, count in enumerate(gaps) if count})
    for cut in cuts * rows:
        stop = min(rows, at + cut)
        part = [row for row in range(at, stop) if row not in refused]
        for row in part:
            text += lines.lines(row, np.array([row + 0.5]), None)
        at = stop
    text += lines.up_to(rows) + lines.end()
    assert text.decode() == "".join(f"{line}\n" for line in wanted)


@given(st.lists(st.binary(max_size=40_000), max_size=6), st.sampled_from(["p.gz", "p.zst", "p"]))
def test_compressed_bytes_do_not_depend_on_how_they_are_written(parts: list[bytes], name: str) -> None:
    actual = []
    for chunks in (parts, [b"".join(parts)]):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            with path.open("wb") as target, packed(target, name) as file:
                for chunk in chunks:
                    file.write(chunk)
            actual.append(path.read_bytes())
    assert actual[0] == actual[1]
    assert name != "p.gz" or gzip.decompress(actual[0]) == b"".join(parts)


@pytest.mark.parametrize("more", [[], ["--checkpoint", "c"]])
def test_a_full_disk_names_the_file_of_predictions(tmp_path: Path, more: list[str]) -> None:
    """A full disk leaves neither the predictions nor the model behind."""
    script = (
        "import resource, sys\n"
        "from ftprl.cli.app import run\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, -1))\n"
        "sys.exit(run(sys.argv[1:]))"
    )
    (tmp_path / "d.vw").write_text("1 | a b\n-1 | b c\n" * 10_000)
    args = ["train", "d.vw", "--bits", "8", "-q", "--names", "0", "-o", "m", "--predictions", "p.txt", *more]
    done = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "ftprl: --predictions p.txt: File too large; check the path and its permissions\n"
    assert sorted(os.listdir(tmp_path)) == ["d.vw"]
