"""A run prints its loss beside the baseline: of its first pass, of held-out rows, resumed or not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import data
from ftprl.cli.app import run as command
from ftprl.linear import Spec
from ftprl.linear.model import Model
from ftprl.runlog.yardstick import deviances
from ftprl.training import train
from ftprl.training.summary import summary
from oracles.baseline_twin import BaselineTwin

LOSSES = {"logistic": 1, "hinge": 1, "squared": 0, "absolute": 0, "quantile": 0, "huber": 0, "poisson": 2, "gamma": 3}


@pytest.fixture(params=LOSSES)
def loss(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def log(tmp_path: Path, loss: str) -> Path:
    rng = np.random.default_rng(8)
    lines = []
    for _ in range(700):
        x = rng.normal()
        numbers = (x + rng.normal(), 1 if rng.random() < 0.3 else -1, rng.poisson(math.exp(0.5 * x)), math.exp(x))
        y = numbers[LOSSES[loss]]
        lines.append(f"{y:.4g} {rng.choice([0, 1, 1, 2.5])} | x:{x:.3f}\n")
    path = tmp_path / "log.vw"
    path.write_text("".join(lines))
    return path


def trained(log: Path, loss: str, **more: Any) -> ftprl.Run:
    return train(log, loss=loss, tau=0.8 if loss == "quantile" else None, bits=6, **more)


def twins(log: Path, loss: str, holdout: int | None, passes: int | None = None) -> tuple[BaselineTwin, BaselineTwin]:
    """Return twins of the rows learned in the first pass and of held-out rows, each predicted from earlier rows.

    With a number of passes, held-out rows are predicted from all rows of these passes.
    """
    spec = Spec(loss=loss, tau=0.8)
    learned, held = BaselineTwin(spec.scalar_loss(), 0.8), BaselineTwin(spec.scalar_loss(), 0.8)
    first = learned
    for number in range(passes or 1):
        held = BaselineTwin(spec.scalar_loss(), 0.8)
        for batch in data.open(log, dim=64, loss=loss).batches():
            for i, (y, c) in enumerate(zip(batch.y.tolist(), batch.weight.tolist(), strict=True)):
                if c and holdout and (batch.first_row + i) % holdout == holdout - 1:
                    held.total += c * spec.scalar_loss().value(learned.score(), y)
                    held.least += c * held.least_of(y)
                    held.weight.append(c)
                elif c:
                    learned.learn(y, c)
        if number == 0:
            first = BaselineTwin(spec.scalar_loss(), 0.8, total=learned.total, least=learned.least)
            first.weight = list(learned.weight)
    if passes is not None:
        held = BaselineTwin(spec.scalar_loss(), 0.8)
        for batch in data.open(log, dim=64, loss=loss).batches():
            for i, (y, c) in enumerate(zip(batch.y.tolist(), batch.weight.tolist(), strict=True)):
                if c and holdout and (batch.first_row + i) % holdout == holdout - 1:
                    held.total += c * spec.scalar_loss().value(learned.score(), y)
                    held.least += c * held.least_of(y)
                    held.weight.append(c)
    return first, held


@pytest.mark.parametrize("passes", [1, 2])
def test_of_the_first_pass_and_of_held_out_rows(log: Path, loss: str, passes: int) -> None:
    run = trained(log, loss, holdout=7, passes=passes, order="given")
    first, held = twins(log, loss, 7, run.best_pass)
    assert run.baseline == pytest.approx(first.total / sum(first.weight), rel=1e-9)
    assert run.holdout is not None
    assert run.holdout.baseline_mean == pytest.approx(held.total / sum(held.weight), rel=1e-9)
    assert run.progressive.least == pytest.approx(first.least, rel=1e-9)
    assert run.holdout.least == pytest.approx(held.least, rel=1e-9)
    gain = 100.0 * (first.total - run.progressive.loss) / (first.total - first.least)
    assert run.improvement == pytest.approx(gain, rel=1e-9)
    end = run.events[-1]
    assert (end["loss"], end["baseline"], end["improvement"]) == (run.progressive_loss, run.baseline, run.improvement)
    assert end["holdout_baseline"] == run.holdout.baseline_mean
    last_pass = [e for e in run.events if e["event"] == "pass"][-1 if run.best_pass is None else run.best_pass - 1]
    assert last_pass["holdout_improvement"] == run.holdout.improvement
    assert (last_pass["baseline"] == run.baseline) == (last_pass["pass"] == 1)
    result = run.to_dict()
    assert (result["baseline"], result["improvement"]) == (run.baseline, run.improvement)
    assert result["holdout_baseline"] == run.holdout.baseline_mean
    assert (result["rmse"] is not None) == (loss == "squared")


def test_every_progress_event_has_it(log: Path, loss: str) -> None:
    run = trained(log, loss, holdout=7)
    points = [e for e in run.events if e["event"] == "progress"]
    for e in points[1:]:
        names = ("loss", "baseline", "improvement", "since", "since_baseline", "since_improvement")
        assert all(isinstance(e[name], float) for name in (*names, "holdout_baseline", "holdout_improvement"))
    totals = [e["baseline"] * e["pass_weight"] for e in points if e["pass_weight"]]
    gaps = np.diff([e["pass_weight"] for e in points if e["pass_weight"]])
    since = [e["since_baseline"] for e in points if e["pass_weight"]][1:]
    moved = gaps > 0
    np.testing.assert_allclose(np.diff(totals)[moved], (gaps * since)[moved], rtol=1e-6, atol=1e-6)


def test_a_resumed_run_shows_the_same(log: Path, loss: str, tmp_path: Path) -> None:
    whole = trained(log, loss, holdout=7, output=tmp_path / "whole")
    trained(log, loss, holdout=7, checkpoint=tmp_path / "part", every=300)
    resumed = train(log, resume=tmp_path / "part", output=tmp_path / "resumed")
    assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes()
    assert str(resumed) == str(whole)
    assert resumed.holdout is not None
    assert whole.holdout is not None
    assert resumed.holdout.baseline == whole.holdout.baseline


def test_more_data_counts_on(log: Path, loss: str, tmp_path: Path) -> None:
    trained(log, loss, output=tmp_path / "m")
    train(log, resume=tmp_path / "m", output=tmp_path / "m")
    actual = summary(tmp_path / "m")
    model = Model.load(tmp_path / "m")
    assert actual["progressive"]["baseline"] == pytest.approx(model.engine.baseline.mean, rel=1e-12)
    assert actual["progressive"]["improvement"] == pytest.approx(model.engine.progress.improvement, rel=1e-9)


@pytest.mark.parametrize("loss", ["squared"], indirect=True)
def test_squared_loss_has_its_rmse(log: Path, loss: str) -> None:
    run = trained(log, loss)
    rmse, other = math.sqrt(2.0 * run.progressive_loss), math.sqrt(2.0 * run.baseline)
    assert run.rmse == rmse
    gain = f"{run.improvement:.1f} % better than guessing ({run.baseline:.6f}, RMSE {other:.6g})"
    assert f"squared loss {run.progressive_loss:.6f} (RMSE {rmse:.6g}), {gain}" in str(run)


@pytest.mark.parametrize("loss", ["poisson", "gamma"], indirect=True)
def test_counts_and_amounts_have_their_deviance(log: Path, loss: str, tmp_path: Path, capfd: Any) -> None:
    """D² of counts and amounts equals scikit-learn's, from progressive predictions."""
    metrics = pytest.importorskip("sklearn.metrics")
    run = trained(log, loss, predictions=tmp_path / "p.txt", output=tmp_path / "m")
    predicted = np.loadtxt(tmp_path / "p.txt")
    batches = list(data.open(log, dim=64, loss=loss).batches())
    y, weight = (np.concatenate([getattr(batch, name) for batch in batches]) for name in ("y", "weight"))
    mean_deviance = metrics.mean_poisson_deviance if loss == "poisson" else metrics.mean_gamma_deviance
    deviance = mean_deviance(y, predicted, sample_weight=weight)
    assert run.deviance == pytest.approx(deviance, rel=1e-5)
    assert run.to_dict()["deviance"] == run.deviance
    own, baseline = deviances(run.progressive_loss, run.baseline, run.improvement) or (0.0, 0.0)
    assert own == pytest.approx(run.deviance, rel=1e-9)
    assert 1.0 - own / baseline == pytest.approx(run.improvement / 100.0, rel=1e-9)
    shown = f"deviance {run.deviance:.6g}, {run.improvement:.1f} % better than guessing ({baseline:.6g})"
    assert shown in str(run)
    assert command(["inspect", str(tmp_path / "m")]) == 0
    assert shown in " ".join(capfd.readouterr().out.split())
    assert (
        command(["train", str(log), "--loss", loss, "--bits", "6", "--order", "given", "-o", str(tmp_path / "n")]) == 0
    )
    printed = capfd.readouterr()
    assert "deviance" in printed.err.split("predicted")[0]
    assert f"{run.deviance:.6g}" in printed.out + printed.err
