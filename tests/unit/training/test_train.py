"""A run: equal bytes for any batches, kills and continuations; its output; its errors."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import data
from ftprl.cli.app import run as command
from ftprl.errors import BadFormat, FtprlError, InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from ftprl.runlog import events
from ftprl.training import train
from ftprl.training.run_settings import CheckpointInterval

ROWS = 3000


class Killed(Exception):
    """Stands for a killed process."""


def clicks(rows: int = ROWS, seed: int = 5, *, bad: bool = False) -> bytes:
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(rows):
        names = " ".join(f"{'abc'[j]}{int(v)}" for j, v in enumerate(rng.zipf(1.5, size=3) % 50))
        label = 1 if rng.random() < 0.3 else -1
        lines.append(f"{label} {rng.integers(0, 3)} | {names} x:{rng.normal():.3f}")
        if bad and i % 97 == 3:
            lines.append("1 | broken:value")
    return ("\n".join(lines) + "\n").encode()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.vw"
    path.write_bytes(clicks())
    return path


def small(**more: Any) -> dict[str, Any]:
    return {"bits": 10, "scale": 0.1, **more}


def killed_after(events_seen: int, kind: str) -> Callable[[events.Event], None]:
    left = [events_seen]

    def listener(event: events.Event) -> None:
        if event["event"] == kind:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

    return listener


def test_a_run_is_the_engine_row_by_row(log: Path, tmp_path: Path) -> None:
    run = train(log, output=tmp_path / "m", order="given", **small())
    engine = Engine(Spec(dim=1024))
    for batch in data.open(log, dim=1024).batches():
        engine.learn(batch)
    np.testing.assert_array_equal(run.model.engine.cells, engine.cells)
    assert run.progressive == engine.progress
    assert run.rows == ROWS
    assert run.progressive.rows < ROWS  # rows of weight 0 are not learned
    means = (
        f"log loss {engine.progress.mean:.6f}, {-engine.progress.improvement:.1f} % worse than guessing"
        f" ({engine.baseline.mean:.6f}). This is the loss of a model that goes on learning"
    )
    some, how = (
        f"{run.progressive.rows:,} of 3,000 rows",
        "in the order of the data, each predicted before it was learned",
    )
    assert run.summary == f"{some} {how}: {means}"
    assert ftprl.load(tmp_path / "m").history["rows"] == ROWS
    assert run.to_dict()["model"] == str(tmp_path / "m")


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_neither_threads_nor_blocks_matter(log: Path, tmp_path: Path, scale: float | str) -> None:
    wanted = None
    for threads in (0, 1, 3):
        for block_size in (700, 1 << 20):
            source = data.open(log, dim=1024, block_size=block_size)
            train(source, output=tmp_path / "m", threads=threads, holdout=7, passes=2, scale=scale)
            got = (tmp_path / "m").read_bytes()
            wanted = wanted or got
            assert got == wanted


def test_held_out_rows_are_scored_and_not_learned(log: Path) -> None:
    run = train(log, holdout=5, order="given", **small())
    engine = Engine(Spec(dim=1024))
    cost, weight, rows = 0.0, 0.0, 0
    for batch in data.open(log, dim=1024).batches():
        for i in range(len(batch)):
            one = batch[i : i + 1]
            if (batch.first_row + i) % 5 != 4:
                engine.learn(one)
            elif one.weight[0]:
                cost += one.weight[0] * np.logaddexp(0.0, -one.y[0] * engine.score(one)[0])
                weight, rows = weight + one.weight[0], rows + 1
    np.testing.assert_array_equal(run.model.engine.cells, engine.cells)
    assert run.holdout is not None
    assert (run.holdout.weight, run.holdout.rows) == (weight, rows)
    assert run.holdout.loss == pytest.approx(cost, rel=1e-12)
    assert run.progressive == engine.progress
    assert f"; held-out log loss {run.holdout.mean:.6f}, " in str(run)


def test_passes(log: Path) -> None:
    run = train(log, passes=3, holdout=0, order="given", **small())
    engine = Engine(Spec(dim=1024))
    first = None
    for _ in range(3):
        for batch in data.open(log, dim=1024).batches():
            engine.learn(batch)
        first = first or engine.progress
    np.testing.assert_array_equal(run.model.engine.cells, engine.cells)
    assert run.progressive == first
    assert run.rows == 3 * ROWS
    assert [event["pass"] for event in run.events if event["event"] == "pass"] == [1, 2, 3]
    assert run.model.history["rows"] == ROWS


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("every", [37, 250, 1024])
def test_a_killed_run_ends_in_the_same_bytes(tmp_path: Path, every: int, packed: bool) -> None:
    text = clicks(600, bad=True)
    files = []
    for name, part in (("a", text), ("b", clicks(200, 6))):
        files.append(tmp_path / f"{name}.vw{'.gz' if packed else ''}")
        files[-1].write_bytes(gzip.compress(part) if packed else part)
    options = small(passes=2, holdout=9, on_bad_row="skip", every=every, checkpoint=tmp_path / "c")
    whole = train(files, output=tmp_path / "whole", **options)
    assert whole.bad_rows == 7
    count = sum(event["event"] == "checkpoint" for event in whole.events)
    assert whole.best_pass is not None
    assert count == 800 * (2 + whole.best_pass) // every
    for stop in sorted({1, 2, count // 3, count // 2, count - 1, count} - {0}):
        if stop > count:
            continue
        (tmp_path / "c").unlink(missing_ok=True)
        with pytest.raises(Killed):
            train(files, output=tmp_path / "m", listener=killed_after(stop, "checkpoint"), **options)
        assert not (tmp_path / "m").exists()
        again = train(files, output=tmp_path / "m", resume=tmp_path / "c", **options)
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        assert again.progressive == whole.progressive
        assert again.holdout == whole.holdout
        assert (again.bad_rows, again.first_bad, again.rows) == (whole.bad_rows, whole.first_bad, whole.rows)
        (tmp_path / "m").unlink()


def test_a_checkpoint_by_the_clock(log: Path, tmp_path: Path) -> None:
    """A checkpoint by the clock is written between two batches and does not change the model."""
    source = data.open(log, dim=1024, block_size=2000)
    options: dict[str, Any] = {"checkpoint": tmp_path / "c", "every": "0.0001s"}
    whole = train(source, output=tmp_path / "whole", **options)
    count = sum(event["event"] == "checkpoint" for event in whole.events)
    assert count > 10
    with pytest.raises(Killed):
        train(source, listener=killed_after(count // 2, "checkpoint"), **options)
    train(source, resume=tmp_path / "c", output=tmp_path / "m")
    train(source, output=tmp_path / "plain")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes() == (tmp_path / "plain").read_bytes()


def test_a_model_goes_on_with_more_data(tmp_path: Path) -> None:
    """In the order of the data, two runs give the bytes of one run over all rows."""
    for name, seed in (("a.vw", 1), ("b.vw", 2)):
        (tmp_path / name).write_bytes(clicks(501, seed))
    both = [tmp_path / "a.vw", tmp_path / "b.vw"]
    train(both, output=tmp_path / "whole", holdout=10, order="given", **small())
    train(both[0], output=tmp_path / "half", holdout=10, order="given", **small())
    run = train(both[1], resume=tmp_path / "half", output=tmp_path / "m", holdout=10)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    assert run.rows == 501


def test_a_table_goes_on_as_it_was_read(tmp_path: Path) -> None:
    """Kinds of columns and the rule of the labels come from the model, and may be repeated as options."""
    rows = [f"{'yes' if i % 3 else 'no'};{i};{'red' if i % 2 else 'blue'};{i % 5}" for i in range(400)]
    (tmp_path / "a.csv").write_text("y;n;colour;k\n" + "\n".join(rows[:200]) + "\n")
    (tmp_path / "b.csv").write_text("y;n;colour;k\n" + "\n".join(rows[200:]) + "\n")
    options: dict[str, Any] = {"label": "y", "sep": ";", "categorical": ["k"], "ignore": "n", "order": "given"}
    both = [tmp_path / "a.csv", tmp_path / "b.csv"]
    train(both, output=tmp_path / "whole", **small(**options))
    train(both[0], output=tmp_path / "half", **small(**options))
    train(both[1], output=tmp_path / "m", resume=tmp_path / "half", **small(**options))
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    for name, value in (("label", "colour"), ("sep", ","), ("numeric", ["k"]), ("scale", 0.3), ("bits", 11)):
        with pytest.raises(InvalidInput, match="needs to be what the model was trained with"):
            train(both[1], resume=tmp_path / "half", **{name: value})


def test_predictions_of_files(tmp_path: Path) -> None:
    """A model reads other files as its own were read; labels may be missing or arbitrary."""
    (tmp_path / "a.csv").write_text("y,n,c\n" + "\n".join(f"{i % 2},{i},v{i % 7}" for i in range(100)) + "\n")
    model = train(tmp_path / "a.csv", label="y", **small()).model
    (tmp_path / "b.csv").write_text("c,n\n" + "\n".join(f"v{i % 7},{i}" for i in range(100)) + "\n")
    (tmp_path / "c.csv").write_text("y,n,c\n" + "\n".join(f"?,{i},v{i % 7}" for i in range(100)) + "\n")
    wanted = model.predict(tmp_path / "a.csv")
    assert len(wanted) == 100
    np.testing.assert_array_equal(model.predict(tmp_path / "b.csv"), wanted)
    np.testing.assert_array_equal(model.predict(tmp_path / "c.csv"), wanted)
    scores = model.predict(tmp_path / "a.csv", raw=True)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), wanted)
    (tmp_path / "empty.csv").write_text("c,n\n")
    assert model.predict(tmp_path / "empty.csv").shape == (0,)


def test_events_are_logged_at_row_numbers(log: Path, tmp_path: Path) -> None:
    run = train(log, events=tmp_path / "e", checkpoint=tmp_path / "c", every=1000, holdout=4, **small())
    result = events.read_events(tmp_path / "e")
    assert [event["event"] for event in result][:1] + [event["event"] for event in result][-2:] == [
        "start",
        "pass",
        "end",
    ]
    assert result[0]["spec"]["dim"] == 1024
    assert result[0]["data"]["labels"] == "1 is positive (+1), 0 or -1 is negative (-1)"
    progress = [event for event in result if event["event"] == "progress"]
    assert [event["rows"] for event in progress][:9] == [1, 2, 3, 4, 5, 6, 8, 9, 11]
    assert progress[-1]["rows"] == 2896
    assert [event["rows"] for event in result if event["event"] == "checkpoint"] == [1000, 2000, 3000]
    assert progress[-1]["holdout"] is not None
    assert len(result) == len(run.events)
    for event in result:
        assert event["seconds"] >= 0
    # A resumed run appends to the file.
    with pytest.raises(Killed):
        train(log, events=tmp_path / "f", listener=killed_after(2, "checkpoint"), checkpoint=tmp_path / "c", every=1000)
    train(log, events=tmp_path / "f", resume=tmp_path / "c")
    both = events.read_events(tmp_path / "f")
    assert [event["event"] for event in both].count("resume") == 1
    assert both[-1]["event"] == "end"


def test_a_cut_line_of_events_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "e").write_text('{"event": "start", "rows": 0}\n{"event": "pro')
    assert events.read_events(tmp_path / "e") == [{"event": "start", "rows": 0}]
    for text in ('{"event": "pro\n', "[1]\n", '{"rows": 1}\n'):
        (tmp_path / "e").write_text(text)
        with pytest.raises(BadFormat, match="e:1: expected an event"):
            events.read_events(tmp_path / "e")
    assert json.loads(events.line({"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": None}})) == {
        "a": None,
        "b": [None, 1.5],
        "c": {"d": None},
    }


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("100000", CheckpointInterval(rows=100_000)),
        (7, CheckpointInterval(rows=7)),
        ("30s", CheckpointInterval(seconds=30)),
        ("1.5m", CheckpointInterval(seconds=90)),
    ],
)
def test_every(text: str | int, wanted: CheckpointInterval) -> None:
    assert CheckpointInterval.parse(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "-3", "3.5", "s", "0s", "-1m", "infs", "nans", "10x"])
def test_every_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="every= needs a number of rows or a time such as 30s"):
        CheckpointInterval.parse(text)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"passes": 0}, "passes"),
    ({"holdout": 1}, "holdout= needs a whole number from 2"),
    ({"every": 5}, "pass checkpoint= as well"),
    ({"bits": 0}, "bits= needs a whole number from 1 to 32"),
    ({"loss": "none"}, "loss= needs a known name"),
    ({"scale": -1.0}, "scale"),
    ({"output": "missing/m"}, "output= needs a folder that can be written"),
    ({"checkpoint": "."}, "checkpoint= needs a file"),
    ({"events": "missing/e"}, "events= needs a folder"),
    ({"label": "y"}, "label= needs a table"),
    ({"on_bad_row": "ignore"}, "on_bad_row= needs raise or skip"),
]


@pytest.mark.parametrize(("options", "why"), REFUSED, ids=lambda v: str(v)[:30])
def test_refused(log: Path, options: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(log.parent)
    with pytest.raises(InvalidInput, match=why):
        train(log, **{**({} if "bits" in options or "dim" in options else {"bits": 8}), **options})


def test_other_data_than_the_checkpoints_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(log, checkpoint=tmp_path / "c", every=500, listener=killed_after(1, "checkpoint"), **small())
    with pytest.raises(InvalidInput, match="passes= needs to be what the checkpoint was made with, got 2 instead of 1"):
        train(log, resume=tmp_path / "c", passes=2)
    with pytest.raises(InvalidInput, match="expected 1 files, got 2"):
        train([log, log], resume=tmp_path / "c")
    log.write_bytes(clicks() + b"1 | a\n")
    with pytest.raises(InvalidInput, match=r"expected \d+ bytes in .*log\.vw, got"):
        train(log, resume=tmp_path / "c")


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, log: Path) -> None:
    def feed() -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(clicks())))

    feed()
    run = train("-", format="vw", output=tmp_path / "m", **small())
    train(log, output=tmp_path / "file", **small())
    assert (tmp_path / "m").read_bytes() == (tmp_path / "file").read_bytes()
    assert run.rows == ROWS
    feed()
    with pytest.raises(InvalidInput, match="passes=2 needs data that can be read again, got standard input"):
        train("-", format="vw", passes=2, **small())
    with pytest.raises(Killed):
        train(log, checkpoint=tmp_path / "c", every=500, listener=killed_after(1, "checkpoint"), **small())
    with pytest.raises(InvalidInput, match="resume= needs data that can be read again, got standard input"):
        train("-", resume=tmp_path / "c")
    feed()
    with pytest.raises(Killed):
        train("-", format="vw", checkpoint=tmp_path / "d", every=500, listener=killed_after(1, "checkpoint"), **small())
    with pytest.raises(InvalidInput, match="resume= needs data that can be read again"):
        train(log, resume=tmp_path / "d")
    feed()  # more data for a finished model is no second reading
    assert train("-", resume=tmp_path / "m").rows == ROWS


def test_a_bad_row_leaves_the_old_model(tmp_path: Path) -> None:
    path = tmp_path / "log.vw"
    path.write_bytes(clicks(50, bad=True))
    (tmp_path / "m").write_bytes(b"old")
    with pytest.raises(BadFormat, match=r"log\.vw:5: expected a number after ':', got 'value' in 'broken:value'"):
        train(path, output=tmp_path / "m", events=tmp_path / "e", **small())
    assert (tmp_path / "m").read_bytes() == b"old"
    assert events.read_events(tmp_path / "e")[-1]["event"] == "error"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["e", "log.vw", "m"]


@pytest.mark.parametrize("order", ["given", "random"])
def test_rows_that_cannot_be_learned_can_be_left_out(tmp_path: Path, order: str) -> None:
    """A label outside the loss's domain is refused by the learner, not by the reader."""
    path = tmp_path / "log.vw"
    path.write_text("".join(f"{-1 if i % 10 == 4 else i % 3} | a{i % 7}\n" for i in range(100)))
    with pytest.raises(InvalidInput, match=r"log\.vw:5: a label needs to be from 0 to 1e30 for this loss, got -1"):
        train(path, loss="poisson", **small())
    run = train(path, loss="poisson", on_bad_row="skip", order=order, **small())
    assert (run.rows, run.bad_rows, run.progressive.rows) == (100 if order == "given" else 90, 10, 90)
    assert run.first_bad is not None
    assert "log.vw:5: " in run.first_bad
    path.write_text("".join(f"{i % 3} | a{i % 7}\n" for i in range(100) if i % 10 != 4))
    good = train(path, loss="poisson", order=order, **small())
    np.testing.assert_array_equal(run.model.engine.cells[:, :3], good.model.engine.cells[:, :3])


def test_gamma_has_everything_that_other_losses_have(tmp_path: Path) -> None:
    """Gamma loss supports training, predictions and receipts; a label that is not positive is refused by its row."""
    rng = np.random.default_rng(5)
    means = np.exp(rng.normal(size=5))
    rows = [(int(i), float(rng.gamma(3.0, means[i] / 3.0))) for i in rng.integers(0, 5, size=3000)]
    path = tmp_path / "claims.vw"
    path.write_text("".join(f"{y:.6g} | a{i}\n" for i, y in rows))
    run = train(path, loss="gamma", receipt=True, output=tmp_path / "m", **small())
    assert run.progressive.improvement > 10.0  # better than the mean of the labels before each row
    predicted = {i: float(p) for (i, _), p in zip(rows, run.model.predict(path), strict=True)}
    np.testing.assert_allclose([predicted[i] for i in range(5)], means, rtol=0.15)
    write_receipt(tmp_path / "r.json", make_receipt(run.model, certify_model(run.model, radius=1.0)))
    verdict = verify_receipt(tmp_path / "r.json", path)
    assert verdict.confirmed, str(verdict)
    path.write_text("0.5 | a1\n0 | a2\n")
    with pytest.raises(InvalidInput, match=r"claims\.vw:2: a label needs to be above 0 and at most 1e30"):
        train(path, loss="gamma", **small())
    assert train(path, loss="gamma", on_bad_row="skip", **small()).bad_rows == 1


@pytest.mark.parametrize("content", [b"", b"| a\n| b\n", b"1 0 | a\n"], ids=["empty", "unlabelled", "weightless"])
def test_nothing_to_learn_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log.vw").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"rows with a label( and a weight above 0)?, got none"):
        train(tmp_path / "log.vw", output=tmp_path / "m", **small())
    assert not (tmp_path / "m").exists()


def test_a_table_needs_a_label(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("y,n\n1,2\n0,3\n")
    with pytest.raises(InvalidInput, match="label= needs the name of a column, got none; pass one of 'y', 'n'"):
        train(tmp_path / "a.csv", **small())


def test_a_table_that_may_lack_a_header_is_pointed_to_the_option(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("ham\tsee you at lunch\nspam\twin a prize\n")
    remedy = r"pass one of 'ham', 'see you at lunch', or header=False if the first row is data\.$"
    with pytest.raises(InvalidInput, match=remedy) as caught:
        train(tmp_path / "a.tsv", **small())
    assert set(caught.value.options) == {"label", "header"}


def test_a_list_of_columns_ends_with_the_last_one(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(12)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join("1" * 12) + "\n")
    for options in ({}, {"label": "count"}):
        with pytest.raises(InvalidInput, match=r"'c0', 'c1', .*, \.\.\., 'c11'"):
            train(tmp_path / "a.csv", **options, **small())


def test_a_source_says_how_it_is_read(log: Path, tmp_path: Path) -> None:
    source = data.open(log, dim=512, seed=3)
    run = train(source, scale=0.5, output=tmp_path / "m")
    assert run.model.engine.spec == Spec(dim=512, seed=3, scale=0.5)
    with pytest.raises(InvalidInput, match="dim= needs to be what the Source was opened with, 512, got 1024"):
        train(source, bits=10)
    with pytest.raises(InvalidInput, match=r"sep= belongs to ftprl\.data\.open when the data is a Source"):
        train(source, sep=",")
    with pytest.raises(InvalidInput, match="a Source needs to read as the model's data was read"):
        train(data.open(log, dim=512), resume=tmp_path / "m")
    assert isinstance(Model.load(tmp_path / "m"), Model)
    assert issubclass(InvalidInput, FtprlError)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_retirement_is_the_same_killed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    """Scales are dropped at a power of two of the rows learned; checkpoints before and after give equal bytes."""
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    monkeypatch.setattr("ftprl.linear.mixture.TOLERANCE", 1.5)
    path = tmp_path / "log.vw"
    path.write_bytes(clicks(6000))
    options: dict[str, Any] = {"bits": 10, "checkpoint": tmp_path / "c", "every": 1500, "holdout": 11}
    whole = train(path, output=tmp_path / "whole", **options)
    (retired,) = [event for event in whole.events if event["event"] == "retire"]
    assert len(retired["kept"]) == len(retired["retired"]) == 4
    assert whole.model.engine.spec.scales == tuple(retired["kept"])
    assert 3000 < retired["rows"] < 4500  # two checkpoints before, one after
    progress = [event for event in whole.events if event["event"] == "progress"]
    assert len(progress[-1]["mixture"]["weights"]) == 9  # the experts that are no scales, too
    with pytest.raises(Killed):
        train(path, listener=killed_after(stop, "checkpoint"), **options)
    train(path, output=tmp_path / "m", resume=tmp_path / "c", scale="auto")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_label_outside_the_domain_of_a_loss_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "counts.vw"
    path.write_text("".join(f"{i % 4} | a{i}\n\n" for i in range(500)) + "-3 | b\n" + "1 | a\n" * 9)
    with pytest.raises(InvalidInput, match=r"^\S*counts\.vw:1001: a label needs"):
        train(path, loss="poisson", bits=8)
    run = train(path, loss="poisson", bits=8, on_bad_row="skip")
    assert run.bad_rows == 1
    assert run.first_bad is not None
    assert run.first_bad.startswith(f"{path}:1001: a label needs")


def test_data_that_a_model_has_learned_is_pointed_out(tmp_path: Path) -> None:
    """Learned data is recognised by the digests that a receipt keeps, whatever the file's name."""
    for name, seed in (("a.vw", 1), ("b.vw", 2)):
        (tmp_path / name).write_bytes(clicks(300, seed))
    (tmp_path / "again.vw").write_bytes((tmp_path / "a.vw").read_bytes())
    said = "an earlier run learned the same data, whose rows now count twice; pass new rows with resume="

    def texts(*files: str, **options: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train([tmp_path / file for file in files], output=tmp_path / "m", **options)
        return [str(one.message) for one in caught if said in str(one.message)]

    assert texts("a.vw", receipt=True, **small()) == []
    assert texts("b.vw", resume=tmp_path / "m") == []
    assert texts("again.vw", resume=tmp_path / "m") == [f"{tmp_path / 'again.vw'}: {said}"]
    assert [one.text for one in ftprl.load(tmp_path / "m").cautions if said in one.text] != []
    (tmp_path / "c.vw").write_bytes(clicks(300, 3))
    assert texts("c.vw", resume=tmp_path / "m") == []


def test_intervals_of_several_runs_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, seed in (("a.vw", 1), ("b.vw", 2)):
        (tmp_path / name).write_bytes(clicks(300, seed))
    for order, said in (("given", True), ("random", False)):
        train(tmp_path / "a.vw", output=tmp_path / "m", order=order, **small())
        resumed = ["--resume", str(tmp_path / "m"), "-o", str(tmp_path / "n")]
        assert command(["train", str(tmp_path / "b.vw"), *resumed]) == 0
        shown = capsys.readouterr().err
        assert ("(over the 600 rows of all runs)" in shown) == said


def test_a_first_row_that_is_data_is_pointed_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{i % 2},{i / 7:.3f},{'abc'[i % 3]}\n" for i in range(1, 200)]
    (tmp_path / "rows.csv").write_text("".join(rows))
    (tmp_path / "named.csv").write_text("".join(["y,0,1\n", *rows]))
    said = "the columns have names such as '0.143': if the first row is data, pass --no-header"
    for file, label, expected in (("rows.csv", "1", True), ("named.csv", "y", False)):
        assert command(["train", str(tmp_path / file), "--label", label, "-o", str(tmp_path / "m")]) == 0
        assert (said in capsys.readouterr().err) == expected
