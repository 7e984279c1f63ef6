"""Intervals in receipts: a second computation of them, and receipts that claim other numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftprl
from ftprl._core import ReplayedBaseline, ReplayedIntervals
from ftprl.cli.app import run
from ftprl.confidence import RunMonitor
from ftprl.losses import SCALAR_LOSSES
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from ftprl.receipt.audit_tail import AuditedTail
from ftprl.receipt.document import digest
from laws.streams import LOSSES, labels
from oracles.baseline_twin import BaselineTwin


def both(loss: str, columns: Any, parts: int) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the intervals of the core and of the replay, which receive the rows in different batches."""
    monitor, replay = RunMonitor(loss), ReplayedIntervals(loss)
    losses, baselines, scores, y, weight = columns
    pairs = np.stack([baselines, np.zeros_like(baselines)], axis=1)
    monitor.add(losses, pairs, scores if monitor.needs_scores else None, y, weight)
    tail = AuditedTail(SCALAR_LOSSES[loss])
    for some in zip(*(np.array_split(a, parts) for a in columns), strict=True):
        replay.add(*some)
        tail.add(some[0], some[3])
    known = monitor.confidence()
    return None if known is None else known.to_dict(), tail.stated(replay.to_dict())


def assert_same(a: Any, b: Any) -> None:
    assert (a is None) == (b is None)
    if a is None:
        return
    assert a.keys() == b.keys()
    assert a["drift"] == b["drift"]
    for name in a.keys() - {"drift"}:
        assert a[name].keys() == b[name].keys()
        for key, value in a[name].items():
            near = None if value is None else pytest.approx(value, rel=1e-9, abs=1e-11 * a[name]["bound"])
            assert b[name][key] == near, (name, key)


def rows(loss: str, seed: int, count: int, tail: float, weighted: bool, rise: float) -> Any:
    rng = np.random.default_rng(seed)
    y = labels(rng, loss, count)
    size = 0.3 * rng.pareto(tail, size=count) * np.where(np.arange(count) > count // 2, rise, 1.0)
    scores = np.clip(rng.normal(size=count), -3.0, 3.0)
    weight = rng.pareto(2.0, size=count) + 0.1 if weighted else np.ones(count)
    return size, 0.3 * rng.pareto(tail, size=count), scores, y, weight


@given(
    loss=st.sampled_from(LOSSES),
    seed=st.integers(0, 999),
    count=st.sampled_from([1, 31, 33, 256, 1500, 4096, 4097]),
    tail=st.sampled_from([1.1, 3.0, 30.0]),
    weighted=st.booleans(),
    parts=st.integers(1, 7),
)
def test_it_is_that_of_the_core(loss: str, seed: int, count: int, tail: float, weighted: bool, parts: int) -> None:
    a, b = both(loss, rows(loss, seed, count, tail, weighted, 1.0), parts)
    assert_same(a, b)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_baseline_is_that_of_its_twin(loss: str) -> None:
    own = SCALAR_LOSSES[loss]
    _, _, _, y, weight = rows(loss, 5, 400, 3.0, True, 1.0)
    twin, replay = BaselineTwin(own, own.tau or 0.5), ReplayedBaseline(own.baseline, loss, own.tau or 0.5)
    losses = np.empty(400)
    replay.learn(y, weight, losses)
    for label, c in zip(y.tolist(), weight.tolist(), strict=True):
        twin.learn(label, c)
    assert replay.total == pytest.approx(float(weight @ losses), rel=1e-11)
    assert replay.total == pytest.approx(twin.total, rel=1e-11)
    assert replay.least == pytest.approx(twin.least, rel=1e-11)


def test_the_baseline_of_classes_counts_them_with_half_a_row_each() -> None:
    replay, losses = ReplayedBaseline("class_rates", "softmax", classes=7), np.empty(4)
    replay.learn(np.array([2.0, 2.0, 5.0, 2.0]), np.array([1.0, 3.0, 2.0, 1.0]), losses)
    shares = [0.5 / 0.5 / 7, 1.5 / (1.0 + 1.0), 0.5 / (4.0 + 1.0) / 6, 4.5 / (6.0 + 1.5)]
    np.testing.assert_allclose(losses, -np.log(shares), rtol=1e-12)
    assert replay.total == pytest.approx(float(losses @ [1.0, 3.0, 2.0, 1.0]))
    with pytest.raises(ValueError, match="number of a class"):
        replay.learn(np.full(1, 7.0), np.ones(1), np.empty(1))


@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute"])
def test_an_alarm_is_raised_at_the_same_row(loss: str) -> None:
    a, b = both(loss, rows(loss, 3, 20_000, 6.0, False, 4.0), 13)
    assert a is not None
    assert a["drift"]["row"] is not None
    assert_same(a, b)


def data(path: Path, loss: str, count: int = 300) -> None:
    rng = np.random.default_rng(3)
    y = labels(rng, loss, count)
    weight = rng.choice([1.0, 2.5, 9.0], count)
    lines = [f"{a:.4g} {w} | a{rng.integers(9)} b:{rng.normal():.3f}\n" for a, w in zip(y, weight, strict=True)]
    path.write_text("".join(lines))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", [{}, {"scale": 0.1, "passes": 2, "holdout": 7}], ids=["eight", "passes"])
@pytest.mark.parametrize("order", ["random", "given"])
def test_a_receipt_has_the_fourth_answer(loss: str, options: dict[str, Any], order: str, tmp_path: Path) -> None:
    data(tmp_path / "d.vw", loss)
    model = ftprl.train(tmp_path / "d.vw", loss=loss, bits=8, receipt=True, order=order, **options).model
    certificate = certify_model(model)
    receipt = make_receipt(model, certificate)
    rows = receipt["certificate"]["confidence"]["loss"]["rows"]
    assert rows > 200 if order == "given" else 15 < rows < 100  # the last quarter, without its first 32
    write_receipt(tmp_path / "r", receipt)
    verdict = verify_receipt(tmp_path / "r", tmp_path / "d.vw")
    assert verdict.confirmed, str(verdict)
    assert [question for question, _ in verdict.answers][-1] == "What to expect tomorrow?"
    printed = " ".join(str(certificate).split())
    assert all(" ".join(answer.split()) in printed for _, answer in verdict.answers)


def test_a_model_of_two_runs(tmp_path: Path) -> None:
    data(tmp_path / "a.vw", "squared")
    data(tmp_path / "b.vw", "squared", 500)
    ftprl.train(tmp_path / "a.vw", loss="squared", bits=8, receipt=True, order="given", output=tmp_path / "m")
    model = ftprl.train(tmp_path / "b.vw", resume=tmp_path / "m", output=tmp_path / "n").model
    receipt = make_receipt(model, certify_model(model))
    assert receipt["certificate"]["confidence"]["loss"]["rows"] == 800 - 32
    write_receipt(tmp_path / "r", receipt)
    assert verify_receipt(tmp_path / "r", [str(tmp_path / "a.vw"), str(tmp_path / "b.vw")]).confirmed


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("loss", "upper", 0.5),
        ("improvement", "mean", 0.9),
        ("calibration", "upper", 0.2),
        ("error_rate", "rows", 7),
        ("loss", "level", 0.99),
        ("loss", "cut_rows", 1),
        ("drift", "row", 9),
        ("drift", "false_alarm", 1e-6),
    ],
)
def test_a_receipt_that_promises_too_much_is_refused(name: str, key: str, value: Any, tmp_path: Path) -> None:
    data(tmp_path / "d.vw", "logistic")
    model = ftprl.train(tmp_path / "d.vw", bits=8, receipt=True, order="given").model
    receipt = make_receipt(model, certify_model(model))
    receipt["certificate"]["confidence"][name][key] = value
    receipt["sha256"] = digest(receipt)
    write_receipt(tmp_path / "r", receipt)
    verdict = verify_receipt(tmp_path / "r", tmp_path / "d.vw")
    assert [one.name for one in verdict.refused] == [f"certificate.confidence.{name}.{key}"]
    assert verdict.to_dict()["answers"] == []


def test_a_receipt_without_it_is_confirmed_and_says_three_things(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    data(Path("d.vw"), "logistic")
    model = ftprl.train("d.vw", bits=8, receipt=True).model
    receipt = make_receipt(model, certify_model(model))
    del receipt["certificate"]["confidence"]
    receipt["sha256"] = digest(receipt)
    write_receipt("r", receipt)
    assert run(["verify", "r", "d.vw", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["answers"]) == 3
