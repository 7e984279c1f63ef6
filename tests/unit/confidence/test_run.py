"""The confidence of a run: equal numbers for any batches, threads and resumption, and alarms as rare as stated."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl._core import MeanSequence, use_instruction_set
from ftprl.confidence import MeanInterval, RunConfidence, RunMonitor
from ftprl.data.order import WAITING
from ftprl.errors import BadModel, Interrupted
from ftprl.losses import SCALAR_LOSSES
from ftprl.runlog.answers import tomorrow
from oracles import order_twin
from oracles.confidence_twin import SequenceTwin

ONES = np.ones(20_000)


def clicks(path: Path, rows: int = 3000) -> Path:
    ftprl.data.clicks.generate(rows, seed=1, path=path)
    return path


def monitored(losses: np.ndarray, *, loss: str = "logistic") -> RunMonitor:
    monitor = RunMonitor(loss)
    baselines = np.full((len(losses), 2), 0.7)
    monitor.add(np.ascontiguousarray(losses), baselines, None, np.ones(len(losses)), np.ones(len(losses)))
    return monitor


# ---- the numbers ----


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
def test_the_sequences_are_those_of_the_twin(loss: str) -> None:
    rng, kind, n = np.random.default_rng(2), SCALAR_LOSSES[loss], 400
    y = rng.choice([-1.0, 1.0], n) if kind.binary else rng.gamma(2.0, 1.0, n) + 0.01
    scores = rng.normal(0.3, 1.0, n)
    losses = np.array([kind.value(s, t) for s, t in zip(scores, y, strict=True)])
    baselines = np.column_stack([rng.random(n), np.zeros(n)])
    weight = rng.choice([0.0, 0.5, 1.0], n)
    y[::50] = np.nan
    losses[::50] = np.nan
    monitor = RunMonitor(loss)
    monitor.add(losses, baselines, scores if monitor.needs_scores else None, y, weight)
    loss_interval, *others = monitor.intervals()
    assert loss_interval is not None
    final = RunConfidence(loss_interval, *others, None)  # type: ignore[arg-type]
    known = (weight > 0) & (y == y)
    rows = [part[known] for part in (losses, baselines[:, 0], scores, y, weight)]
    residual = kind.mean(rows[2]) - (rows[3] > 0 if kind.binary else rows[3])
    first = 0 if kind.binary else 32
    unit = 10.0 if kind.binary else float(np.abs(rows[0][16:32]).mean() * 16)
    spread = 1.0 if kind.binary else float(np.abs(residual[16:32]).mean() * 16)
    expected = {
        "loss": (rows[0], unit, kind.link == "log", True),
        "improvement": (rows[1] - rows[0], unit, True, True),
        "calibration": (residual, spread, True, not kind.binary),
        "error_rate": ((rows[2] * rows[3] < 0).astype(float), 1.0, False, False),
    }
    expected.pop("calibration" if kind.name.endswith("hinge") else "none", None)
    expected.pop("none" if kind.binary else "error_rate", None)
    assert final.intervals().keys() == expected.keys()
    for name, (numbers, *settings) in expected.items():
        twin = SequenceTwin(*settings, 0.05)  # type: ignore[arg-type]
        for x, c in zip(numbers[first:], rows[4][first:], strict=True):
            twin.add(float(x), float(c))
        interval = final.intervals()[name]
        got = (interval.mean, interval.lower, interval.upper)
        np.testing.assert_allclose(got, twin.interval(), rtol=1e-7, atol=1e-9, err_msg=name)
        assert interval.rows == known.sum() - first


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
def test_sequences_added_together_are_those_of_one_alone_to_the_bit(loss: str) -> None:
    """Adding rows in batches of any size gives equal numbers, with clipped, heavier or unlabelled rows."""
    rng, kind, n = np.random.default_rng(3), SCALAR_LOSSES[loss], 3000
    y = rng.choice([-1.0, 1.0], n) if kind.binary else rng.gamma(2.0, 1.0, n) + 0.01
    scores, weight = rng.normal(0.3, 1.0, n), rng.choice([0.0, 0.5, 1.0], n) * 2.0 ** (np.arange(n) // 900)
    losses = np.array([kind.value(s, t) for s, t in zip(scores, y, strict=True)])
    losses[::400], y[::170] = 50.0 * (1.0 + losses[::400]), np.nan
    baselines = np.column_stack([rng.random(n), np.zeros(n)])
    numbers = []
    try:
        for name in ("avx2", "sse2", "portable"):
            if not use_instruction_set(name):
                continue
            monitor, start = RunMonitor(loss), 0
            while start < n:
                part = slice(start, start := start + int(rng.integers(1, 700)))
                own = scores[part] if monitor.needs_scores else None
                monitor.add(losses[part], baselines[part], own, y[part], weight[part])
            numbers.append(monitor.numbers)
    finally:
        use_instruction_set("")
    assert all(one == numbers[0] for one in numbers)
    known = (weight > 0) & (y == y)
    alone = MeanSequence(10.0, False, True, 0.05)
    alone.add(losses[known], weight[known])
    if kind.binary:
        assert numbers[0][3 : 3 + len(alone.numbers)] == list(alone.numbers)


@pytest.mark.parametrize("kind", ["usual", "weights", "holdout", "tails", "heavier"])
@pytest.mark.parametrize("instructions", ["avx2", "sse2", "portable"])
def test_rows_added_in_blocks_are_those_added_one_by_one_to_the_bit(kind: str, instructions: str) -> None:
    """Blocks of rows without clipping, heavier weights or missing labels are added in one loop."""
    rng, n = np.random.default_rng(5), 2500
    losses, y = rng.exponential(0.5, n), rng.choice([-1.0, 1.0], n)
    baselines = np.column_stack([rng.exponential(0.6, n), np.zeros(n)])
    weight = np.ones(n)
    if kind == "weights":
        weight = rng.choice([0.3, 1.0, 2.0], n)
    elif kind == "holdout":
        weight[::10], y[5::77] = 0.0, np.nan
    elif kind == "tails":
        losses *= np.where(rng.random(n) < 0.01, 3000.0, 1.0)  # also above 700, where e^-loss is next to 0
    elif kind == "heavier":
        weight[1700:] = 4.5
    monitor, start = RunMonitor("logistic"), 0
    if not use_instruction_set(instructions):
        pytest.skip("the processor lacks it")
    try:
        while start < n:
            part = slice(start, start := start + int(rng.integers(1, 900)))
            monitor.add(losses[part], baselines[part], None, y[part], weight[part])
    finally:
        use_instruction_set("")
    known = (weight > 0) & (y == y)
    residual = y * (np.exp(-losses) - 1.0)
    for number, x in enumerate((losses, baselines[:, 0] - losses, residual, (losses > math.log(2)).astype(float))):
        alone = MeanSequence(*((10.0, bool(number), True) if number < 2 else (1.0, number == 2, False)), 0.05)
        alone.add(np.ascontiguousarray(x[known]), weight[known])
        size = len(alone.numbers)
        part = monitor.numbers[3 + number * size : 3 + (number + 1) * size]
        if number == 2:  # e^-loss has 13 digits
            np.testing.assert_allclose(part, alone.numbers, rtol=1e-9, atol=1e-11)
        else:
            assert part == list(alone.numbers)


def test_a_run_has_the_loss_of_its_rows(tmp_path: Path) -> None:
    run = ftprl.train(clicks(tmp_path / "c.csv"), label="click", bits=12, order="given", output=tmp_path / "m")
    known = run.confidence
    assert known is not None
    assert known.loss.mean == pytest.approx(run.progressive_loss, rel=1e-12)
    assert known.improvement is not None
    assert known.improvement.mean == pytest.approx(run.baseline - run.progressive_loss, rel=1e-9)
    assert known.loss.lower < run.progressive_loss < known.loss.upper
    assert known.loss.rows == 3000
    assert known.error_rate is not None
    assert 0.0 < known.error_rate.mean < 0.5
    assert run.to_dict()["confidence"] == known.to_dict() == run.events[-1]["confidence"]
    assert RunConfidence.from_dict(known.to_dict()) == known
    assert ftprl.load(tmp_path / "m").confidence == known
    assert str(known).splitlines()[0] == f"mean loss {known.loss.text()}"


def test_rows_held_out_and_later_passes_do_not_count(tmp_path: Path) -> None:
    run = ftprl.train(clicks(tmp_path / "c.csv"), label="click", bits=12, holdout=10, passes=2, order="given")
    assert run.confidence is not None
    assert run.confidence.loss.rows == 2700
    assert run.confidence.loss.mean == pytest.approx(run.progressive_loss, rel=1e-12)


def test_in_random_order_the_intervals_are_those_of_the_last_quarter(tmp_path: Path) -> None:
    """In random order the intervals are about a random draw of the rows, and there is no drift."""
    path, plan = clicks(tmp_path / "c.csv"), order_twin.plan(3000, WAITING)
    run = ftprl.train(path, label="click", bits=12, output=tmp_path / "m")
    header, *lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "s.csv").write_text(header + "".join(lines[row] for row in plan.order))
    probabilities = tmp_path / "p.txt"
    same = ftprl.train(tmp_path / "s.csv", label="click", bits=12, predictions=probabilities)
    assert same.progressive_loss == pytest.approx(run.progressive_loss, rel=1e-3)  # units follow the order of arrival
    p, y = np.loadtxt(probabilities), np.loadtxt(path, delimiter=",", skiprows=1, usecols=0)[plan.order]
    losses = -np.log(np.where(y > 0, p, 1.0 - p))[plan.quarter :]
    known = run.confidence
    assert known is not None
    assert (known.loss.rows, known.drift) == (len(losses), None)
    assert known.loss.mean == pytest.approx(losses.mean(), rel=1e-3)
    assert known.loss.lower < known.loss.mean < known.loss.upper
    assert ftprl.load(tmp_path / "m").confidence == known


@pytest.mark.parametrize("order", ["given", "random"])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_threads_batches_and_more_data_do_not_matter(loss: str, order: str, tmp_path: Path) -> None:
    path = clicks(tmp_path / "c.csv")
    header, *lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text(header + "".join(lines[:1000]))
    (tmp_path / "b.csv").write_text(header + "".join(lines[1000:]))
    options = {"label": "click", "bits": 12, "loss": loss, "order": order}
    whole = ftprl.train(path, threads=2, **options).confidence
    source = ftprl.data.open(path, label="click", dim=2**12, loss=loss, block_size=3000)
    assert ftprl.train(source, order=order).confidence == whole
    if order == "random":  # more data is shuffled by itself
        return
    ftprl.train(tmp_path / "a.csv", output=tmp_path / "m", threads=0, **options)
    assert ftprl.train(tmp_path / "b.csv", resume=tmp_path / "m").confidence == whole


def test_a_resumed_run_has_the_same_numbers(tmp_path: Path) -> None:
    path, checkpoint = clicks(tmp_path / "c.csv"), tmp_path / "k"
    options = {"label": "click", "bits": 12, "checkpoint": checkpoint, "every": 1000}
    whole = ftprl.train(path, output=tmp_path / "whole", **options).confidence

    def stop(event: dict[str, object]) -> None:
        if event["event"] == "checkpoint" and event["rows"] == 1000:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        ftprl.train(path, listener=stop, **options)
    run = ftprl.train(path, resume=checkpoint, checkpoint=checkpoint, every=1000, output=tmp_path / "again")
    assert run.confidence == whole
    assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()


# ---- the alarm ----


def test_a_loss_that_rises_raises_the_alarm() -> None:
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.exponential(0.4, 10_000), rng.exponential(0.6, 10_000)])
    drift = monitored(losses).drift
    assert drift.alarm
    assert drift.row is not None
    assert 10_000 < drift.row < 14_000
    assert drift.text() == f"the loss has risen: alarm at row {drift.row}"


def test_a_loss_that_falls_never_does() -> None:
    assert not monitored(2.0 / np.sqrt(1 + np.arange(20_000) / 100)).drift.alarm
    assert not monitored(np.full(20_000, 0.3)).drift.alarm
    rng = np.random.default_rng(4)
    for _ in range(20):
        assert not monitored(rng.exponential(1.0, 20_000) * np.linspace(1.0, 0.3, 20_000)).drift.alarm


def test_false_alarms_are_as_rare_as_stated() -> None:
    """300 streams with constant expected loss: 3 alarms are allowed on average, and 9 may occur by chance."""
    rng, alarms = np.random.default_rng(11), 0
    for k in range(300):
        n = 5000
        losses = rng.exponential(0.5, n) if k % 2 else np.where(rng.random(n) < 0.05, 3.0, 0.1)
        drift = monitored(losses).drift
        assert drift.false_alarm == 0.01
        alarms += drift.alarm
    assert alarms <= 9


def test_the_alarm_is_where_it_is_however_rows_are_cut() -> None:
    rng = np.random.default_rng(0)
    losses = np.concatenate([rng.exponential(0.4, 6000), rng.exponential(0.9, 6000)])
    whole, parts = monitored(losses), RunMonitor("logistic")
    for start in range(0, 12_000, 777):
        part = np.ascontiguousarray(losses[start : start + 777])
        parts.add(part, np.full((len(part), 2), 0.7), None, ONES[: len(part)], ONES[: len(part)])
        parts = RunMonitor("logistic", parts.numbers)
    assert parts.numbers == whole.numbers
    assert parts.drift == whole.drift
    assert whole.drift.alarm


# ---- edges ----


def test_a_monitor_without_rows_knows_nothing() -> None:
    assert RunMonitor("squared").confidence() is None


def test_scores_are_needed_but_for_the_log_loss() -> None:
    with pytest.raises(ValueError, match="scores are needed"):
        RunMonitor("squared").add(np.ones(2), np.ones((2, 2)), None, np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="loss is not known"):
        RunMonitor("cubic")


def test_labels_that_never_differ_from_the_prediction_have_no_unit() -> None:
    monitor = RunMonitor("squared")
    monitor.add(np.zeros(100), np.zeros((100, 2)), np.ones(100), np.ones(100), np.ones(100))
    assert monitor.confidence() is None


def test_a_model_without_a_baseline_has_no_improvement() -> None:
    monitor = RunMonitor("logistic")
    monitor.add(np.ones(9), np.full((9, 2), np.nan), None, np.ones(9), np.ones(9))
    known = monitor.confidence()
    assert known is not None
    assert known.improvement is None
    assert "baseline" not in str(known) + known.line()


def test_infinite_losses_are_cut() -> None:
    losses = np.full(200, 0.5)
    losses[7] = math.inf
    known = monitored(losses).confidence()
    assert known is not None
    assert isinstance(known.loss, MeanInterval)
    assert (known.loss.cut_rows, known.loss.bound) == (1, 10.0)


@pytest.mark.parametrize("size", [1e-300, 1e-155, 1e-140, 1e-120, 1e100])
def test_losses_of_any_size_have_an_interval(size: float) -> None:
    """Squares of very small losses underflow: their interval is wider, and finite."""
    losses = size * np.random.default_rng(4).uniform(0.5, 1.5, 3000)
    monitor, ones = RunMonitor("squared"), np.ones(3000)
    scores, zeros = np.full(3000, math.sqrt(size)), np.zeros(3000)
    monitor.add(losses, np.column_stack([2.0 * losses, losses]), scores, zeros, ones)
    known = monitor.confidence()
    assert known is not None
    assert 0.0 <= known.loss.lower <= losses.mean()
    interval = monitor.intervals()[0]
    assert interval is not None
    assert losses.mean() <= interval.upper < 1e3 * size
    assert np.isfinite(monitor.numbers).all()


LAWS = {  # of labels that no feature predicts, and their variance
    "Pareto": (lambda rng, n: 1.0 + rng.pareto(2.5, n), 2.5 / (1.5**2 * 0.5)),
    "lognormal": (lambda rng, n: rng.lognormal(size=n), math.e * (math.e - 1.0)),
    "rare large labels": (lambda rng, n: np.where(rng.random(n) < 1e-3, 100.0, 0.0) + rng.normal(size=n), 10.99),
    "normal": (lambda rng, n: rng.normal(size=n), 1.0),
}


@pytest.mark.parametrize("order", ["random", "given"])
@pytest.mark.parametrize("law", LAWS)
def test_an_upper_end_covers_the_risk_or_is_not_stated(law: str, order: str) -> None:
    """Upper ends cover squared losses, also heavy-tailed ones, of the run and of the saved model."""
    draw, variance = LAWS[law]
    runs, ends, stated = 12, [], 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(4000, 2)), draw(rng, 4000)
        run = ftprl.train(X, y=y, loss="squared", order=order, bits=8)
        assert run.confidence is not None
        assert run.check is not None
        stated += math.isfinite(run.confidence.loss.upper)
        ends.append([(own.lower, own.upper) for own in (run.confidence.loss, run.check)])
    for which in range(2):
        assert sum(end[which][1] < 0.5 * variance for end in ends) <= 1, which
        if order == "random":  # fixed weights that have learned the given rows fit them better than others
            assert sum(end[which][0] > 0.5 * variance for end in ends) <= 3, which
    assert stated == runs if law == "normal" else stated <= 1


@pytest.mark.parametrize("order", ["random", "given"])
def test_intervals_of_the_log_loss_cover_it(order: str) -> None:
    """The ends contain the saved model's log loss on many new rows; so do the ends of the check of new rows."""
    misses = np.zeros(2)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(20_000, 3))
        y = np.where(rng.random(20_000) < 1.0 / (1.0 + np.exp(1.0 - 1.5 * X[:, 0] + X[:, 1])), 1.0, -1.0)
        run = ftprl.train(X[:2000], y=y[:2000], order=order, bits=8)
        p = run.model.predict(X[2000:])
        risk = -np.log(np.where(y[2000:] > 0.0, p, 1.0 - p)).mean()
        assert run.confidence is not None
        assert run.check is not None
        misses += [not own.lower <= risk <= own.upper for own in (run.confidence.loss, run.check)]
    assert misses.max() <= 2


def test_cut_losses_and_a_missing_end_are_said_in_the_answer() -> None:
    rng = np.random.default_rng(0)
    for y, expected in (
        (1.0 + rng.pareto(2.5, 4000), ["at least", "No upper limit can be told", "losses were cut (at "]),
        (rng.normal(size=4000), [" from ", "for a row drawn at random from data like these"]),
    ):
        run = ftprl.train(rng.normal(size=(4000, 2)), y=y, loss="squared", bits=8, receipt=True)
        answer = tomorrow(run.confidence.to_dict(), "random", run.check.to_dict()).answer
        assert all(words in answer for words in expected), answer
        assert answer in " ".join(str(run.certificate).split())
        again = RunConfidence.from_dict(json.loads(json.dumps(run.confidence.to_dict())))
        assert again == run.confidence
        assert run.confidence.loss.ends() in run._repr_html_()


def test_numbers_of_another_monitor_are_refused() -> None:
    monitor = RunMonitor("squared")
    for restore, own in ((monitor.restore, monitor.numbers), (monitor.restore_residuals, monitor.residual_numbers)):
        restore(own)
        with pytest.raises(BadModel, match=r"of a run's intervals need to be those that it saved, got \d+ others"):
            restore([1.0, *own])
