"""Runs in rounds of several rows: the same model however the data is cut, stopped and resumed, and its receipt."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl import data
from ftprl.cli.app import run as ftprl
from ftprl.data import Batch
from ftprl.errors import Interrupted, InvalidInput
from ftprl.linear import Model
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from ftprl.training import train

ROWS = 1400
OPTIONS: dict[str, Any] = {"bits": 12, "round_rows": 16}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rounds") / "log.vw"
    rng = np.random.default_rng(7)
    lines = []
    for i in range(ROWS):
        words = rng.choice(60, size=rng.integers(1, 9), replace=False)
        label = "" if i % 41 == 5 else (1 if (words < 20).mean() + 0.3 * rng.normal() > 0.4 else -1)
        weight = "" if i % 7 else f" {rng.integers(0, 4)}"
        features = " ".join(f"w{word}:{rng.normal():.3f}" if word % 3 else f"w{word}" for word in words)
        lines.append(f"{label}{weight if label != '' else ''} | all {features}\n")
    path.write_text("".join(lines))
    return path


def digest(log: Path, **options: Any) -> str:
    return train(log, **{**OPTIONS, **options}).model.state_digest()


def cut_into(sizes: list[int], monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
    """Have sources of text read batches of these lengths, again and again."""
    kind = type(data.open(log))
    whole = kind.read

    def read(self: Any, start: Any = None, **options: Any) -> Iterator[tuple[Batch, Any]]:
        number = 0
        for batch, position in whole(self, start, **options):
            at = 0
            while at < len(batch):
                size = sizes[number % len(sizes)]
                yield batch[at : at + size], position.after(at)
                number, at = number + 1, at + size

    monkeypatch.setattr(kind, "read", read)


@pytest.mark.parametrize("options", [{}, {"holdout": 9}, {"passes": 2}, {"scale": 0.1}, {"receipt": True}])
def test_threads_and_batches_change_no_bit(log: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = digest(log, **options)
    assert digest(log, threads=3, **options) == expected
    for sizes in ([1], [5, 33, 2], [1000]):
        with monkeypatch.context() as patch:
            cut_into(sizes, patch, log)
            assert digest(log, **options) == expected


def test_rows_that_are_not_learned_may_pass_several_stops_at_once(tmp_path: Path) -> None:
    """Row 4, a doubling, and row 5, where progress is logged, belong to one round of a single learned row."""
    path = tmp_path / "few.vw"
    path.write_text("1 | a\n-1 | b\n1 | a b\n | a\n | b\n | a\n1 | a\n")
    run = train(path, **OPTIONS)
    assert [event["rows"] for event in run.events if event["event"] == "progress"] == [1, 2, 3, 7]


def test_rounds_learn_another_model_than_rows_and_predict_nearly_as_well(log: Path) -> None:
    rows = train(log, **{**OPTIONS, "round_rows": 1}, coin=False, dense=False)
    rounds = train(log, **OPTIONS)
    assert rows.model.state_digest() != rounds.model.state_digest()
    assert rounds.progressive_loss == pytest.approx(rows.progressive_loss, rel=0.03)


@pytest.mark.parametrize("options", [{}, {"holdout": 9}, {"receipt": True, "scale": 0.1}, {"passes": 2}])
def test_a_stopped_run_goes_on_to_the_same_model(log: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    lines, expected = tmp_path / "lines", train(log, predictions=tmp_path / "whole", **OPTIONS, **options)
    for stop in (2, 500, 900):
        count = 0

        def interrupt(event: dict[str, Any], stop: int = stop) -> None:
            nonlocal count
            count += event["event"] == "checkpoint"
            if event["event"] == "checkpoint" and event["rows"] > stop:
                signal.raise_signal(signal.SIGINT)

        saved = tmp_path / "checkpoint"
        more = {"checkpoint": saved, "every": 200, "predictions": lines}
        with pytest.raises(Interrupted):
            train(log, listener=interrupt, **more, **OPTIONS, **options)
        assert count
        assert Model.load(saved).checkpoint is not None
        resumed = train(log, resume=saved, **more)
        assert resumed.model.state_digest() == expected.model.state_digest()
        assert lines.read_bytes() == (tmp_path / "whole").read_bytes()
        lines.unlink()


def test_a_row_that_is_left_out_ends_its_round(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.vw"
    lines = log.read_text().splitlines(keepends=True)
    bad.write_text("".join([*lines[:700], "7 | w1\n", *lines[700:]]))
    expected = digest(bad, on_bad_row="skip")
    for sizes in ([700], [3, 50]):
        with monkeypatch.context() as patch:
            cut_into(sizes, patch, bad)
            assert digest(bad, on_bad_row="skip") == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"round_rows": 3}, "round_rows= needs a power of two"),
        ({"round_rows": 0}, "round_rows= needs a power of two"),
        ({"loss": "squared"}, "round_rows= above 1 needs loss=logistic"),
        ({"coin": True}, "round_rows= above 1 does not support coin="),
        ({"dense": True}, "round_rows= above 1 does not support dense="),
        ({"bounds": {"w1": (0, None)}}, "round_rows= above 1 does not support bounds="),
        ({"delay": 5}, "delay= does not support rounds of several rows"),
    ],
)
def test_what_rounds_do_not_support_is_refused_in_one_line(log: Path, options: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput, match=named) as caught:
        train(log, **{**OPTIONS, **options})
    assert "\n" not in str(caught.value)


def test_the_command_line_names_the_option(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m"
    assert ftprl(["train", str(log), "-o", str(model), "--round-rows", "3"]) == 2
    assert "--round-rows needs a power of two" in capsys.readouterr().err
    assert ftprl(["train", str(log), "-o", str(model), "-q", "--round-rows", "16", "--bits", "12"]) == 0
    assert Model.load(model).state_digest() == digest(log)
    assert ftprl(["inspect", str(model)]) == 0
    assert "round_rows=16" in capsys.readouterr().out
    assert ftprl(["inspect", str(model), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["spec"]["round_rows"] == 16


@pytest.mark.parametrize(
    "options", [{"holdout": 9}, {"scale": 0.1, "passes": 2}, {"l1": 0.5, "lower": -0.2, "float64": True}]
)
def test_a_receipt_is_confirmed_by_a_replay(log: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    model, receipt = tmp_path / "m", tmp_path / "r.json"
    learned = train(log, output=model, receipt=True, **OPTIONS, **options).model
    write_receipt(receipt, make_receipt(learned, certify_model(learned)))
    verdict = verify_receipt(receipt, log, model=model)
    assert verdict.confirmed, str(verdict)
    stated = json.loads(receipt.read_text())
    assert stated["spec"]["round_rows"] == 16
    assert stated["certificate"]["regret"] <= stated["certificate"]["bound"]
    part = verify_receipt(receipt, log, rows=700)
    assert part.status == "partial"
    assert any(check.name.startswith("milestones.") for check in part.checks)
