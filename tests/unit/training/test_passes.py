"""Several passes: the mixture learns nothing from rows it has seen, and the pass best on held-out rows is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl import data, errors
from ftprl.cli.app import run as ftprl
from ftprl.linear import Engine, Spec
from ftprl.linear.model import Model
from ftprl.runlog.events import read_events
from ftprl.training import train
from ftprl.training.passes import PATIENCE

MIXTURE = ("P", "u", "w", "totals")


def text(path: Path, rows: int, seed: int, noise: float, unique: int = 3) -> Path:
    """Rows with one word that decides the label, up to noise, and words that no other row has, to memorise it by."""
    rng, lines = np.random.default_rng(seed), []
    for i in range(rows):
        word = rng.integers(0, 40)
        label = 1 if (word < 12) != (rng.random() < noise) else -1
        lines.append(f"{label} | w{word} {' '.join(f'u{seed}_{i}_{j}' for j in range(unique))}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return text(tmp_path_factory.mktemp("log") / "log.vw", 1200, 1, 0.2)


def batches(log: Path, loss: str = "logistic") -> list[data.Batch]:
    return list(data.open(log, dim=2**14, loss=loss).batches())


def log_loss(model: Model, path: Path) -> float:
    y = np.concatenate([batch.y for batch in data.open(path).batches()])
    return float(np.logaddexp(0.0, -y * model.predict(path, raw=True)).mean())


@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute", "hinge"])
def test_rows_seen_before_move_the_scales_but_not_their_mixture(log: Path, loss: str) -> None:
    frozen, free = (Engine(Spec(scale="auto", dim=2**14, loss=loss)) for _ in range(2))
    for number in range(2):
        before = {name: frozen.state[name].copy() for name in MIXTURE}
        for batch in batches(log, loss):
            frozen.learn(batch, seen=number > 0)
            free.learn(batch)
        for name in MIXTURE:
            assert np.array_equal(before[name], frozen.state[name]) == (number > 0), name
    np.testing.assert_array_equal(frozen.cells, free.cells)
    assert not np.array_equal(frozen.state["w"], free.state["w"])
    assert frozen.progress.rows == free.progress.rows


@pytest.mark.parametrize("share", ["capped", 0.0])
def test_held_out_rows_weigh_the_experts_by_bayes_rule(log: Path, share: float | str) -> None:
    engine = Engine(Spec(scale="auto", dim=2**14, share=share))
    *first, last = batches(log)[0].cut(400)
    for batch in first:
        engine.learn(batch)
    cells, u = engine.cells, engine.state["u"].copy()
    engine.start_weighing(0.01)
    expected = 0.01 * engine.state["totals"].copy()
    losses, held = np.empty(len(last)), np.empty((len(last), 2))
    for j in range(9):  # the losses of each expert, one at a time
        one = engine.copy()
        one.state["w"][...], one.state["seen"][...] = np.eye(9)[j], 1e6 * (1.0 - np.eye(9)[j])
        expected[j] += np.logaddexp(0.0, -last.y * one.score(last)).sum()
    engine.weigh(last, losses=losses, baselines=held)
    weights = np.exp(expected.min() - expected)
    np.testing.assert_allclose(engine.state["w"], weights / weights.sum(), rtol=1e-6, atol=1e-12)
    first_totals = 0.01 * engine.state["totals"]  # the mixture's total loss is that of the sum of its experts' chances
    chances = [np.exp(-(a - a.min())).sum() for a in (expected, first_totals)]
    mixed = -np.log(chances[0] / chances[1]) + expected.min() - first_totals.min()
    assert losses.sum() == pytest.approx(mixed, rel=1e-6)
    np.testing.assert_array_equal(engine.cells, cells)
    np.testing.assert_array_equal(engine.state["u"], u)


def test_ten_passes_do_not_memorise(log: Path, tmp_path: Path) -> None:
    new = text(tmp_path / "new.vw", 2000, 2, 0.2)
    options: list[dict[str, Any]] = [{}, {"passes": 10}, {"passes": 10, "holdout": 0}]
    one, many, all_rows = (train(log, bits=14, **more).model for more in options)
    assert log_loss(many, new) <= 1.05 * log_loss(one, new)
    engine = Engine(Spec(scale="auto", dim=2**14))
    for _ in range(10):
        for batch in batches(log):
            engine.learn(batch)
    assert log_loss(Model(engine, one.reading), new) > 1.5 * log_loss(many, new)
    assert log_loss(Model(engine, one.reading), new) > 1.2 * log_loss(all_rows, new)


@pytest.mark.parametrize("scale", ["auto", 0.5])
def test_the_best_pass_is_kept(log: Path, scale: float | str, tmp_path: Path) -> None:
    run = train(log, bits=14, passes=10, scale=scale, output=tmp_path / "m")
    means = [totals.mean for totals in run.reviews]
    assert run.best_pass == 1 + int(np.argmin(means))
    assert run.best_pass + PATIENCE == len(means) < 10
    assert run.holdout == run.reviews[run.best_pass - 1]
    ends = [event for event in run.events if event["event"] == "pass"]
    assert [event["holdout"] for event in ends] == means
    assert run.events[-1]["best_pass"] == run.best_pass
    assert run.events[-1]["pass"] == len(means)
    assert run.model.history["rows"] == 1200
    shorter = train(log, bits=14, passes=max(2, run.best_pass), scale=scale, output=tmp_path / "s")
    assert shorter.best_pass == run.best_pass
    assert (tmp_path / "m").read_bytes() == (tmp_path / "s").read_bytes()
    assert f"pass {run.best_pass}, the best, is kept" in str(run)


@pytest.mark.parametrize(
    ("more", "every"),
    [({}, None), ({"passes": 2}, 20), ({"passes": 2, "holdout": 0}, None), ({"passes": 2, "holdout": 7}, 7)],
    ids=str,
)
def test_what_is_held_out(log: Path, more: dict[str, Any], every: int | None) -> None:
    run = train(log, bits=14, **more)
    assert run.events[0]["holdout_every"] == every
    assert run.events[0]["keeps_best_pass"] == (every is not None)
    assert len(run.reviews) == (2 if every else 0)
    assert run.progressive.rows == 1200 - (1200 // every if every else 0)


def test_a_receipt_is_for_all_passes_as_one_stream(log: Path) -> None:
    run = train(log, bits=14, passes=2, receipt=True)
    assert (run.events[0]["holdout_every"], run.best_pass) == (None, None)
    engine = Engine(Spec(scale="auto", dim=2**14), receipt=True)
    for _ in range(2):
        for batch in batches(log):
            engine.learn(batch)
    np.testing.assert_array_equal(run.model.engine.state["w"], engine.state["w"])


def stop_at(count: int) -> Callable[[dict[str, Any]], None]:
    """A listener that stops a run at one of its checkpoints."""
    left = [count]

    def hear(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint":
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

    return hear


def test_a_run_that_is_resumed_ends_in_the_same_bytes(log: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"bits": 14, "passes": 6, "checkpoint": tmp_path / "c", "every": 500}
    whole = train(log, output=tmp_path / "whole", **options)
    count = sum(event["event"] == "checkpoint" for event in whole.events)
    assert whole.best_pass is not None
    assert whole.best_pass < len(whole.reviews)
    assert count >= 6
    for stop in range(1, count + 1):
        with pytest.raises(errors.Interrupted):
            train(log, output=tmp_path / "m", listener=stop_at(stop), **options)
        again = train(log, output=tmp_path / "m", resume=tmp_path / "c", **options)
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
        assert (again.reviews, again.best_pass, again.rows) == (whole.reviews, whole.best_pass, whole.rows)
        (tmp_path / "m").unlink()


def test_the_command_reports_it(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, events = str(tmp_path / "m"), tmp_path / "e"
    assert (
        ftprl(["train", str(log), "-o", out, "--bits", "14", "--passes", "9", "--json", "--events", str(events)]) == 0
    )
    shown, told = capsys.readouterr().err, read_events(events)[-1]
    assert "at most 9; every 20th row is held out, not learned" in shown
    assert "pass 1: held-out loss " in shown
    assert (
        f"stopped after pass {told['pass']}, as the held-out loss no longer falls; pass {told['best_pass']} has"
        in shown
    )
    assert ftprl(["train", str(log), "-o", out, "--bits", "14", "--passes", "2", "--json", "-q"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert len(values["holdout_by_pass"]) == 2
    assert values["best_pass"] in (1, 2)
