"""Files of every earlier version predict the same to the bit, or are refused in a line that names both versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from oracles.forged import forge_header

FILES = Path(__file__).parent / "earlier"
MODELS = sorted(FILES.glob("*/*.ftprl"))
CHECKPOINTS = {"histories": 1, "receipts": 1, "baselines": 2, "present": 2}  # by their format
RECEIPTS = {
    "receipts/one.receipt": 1,
    "baselines/receipt.receipt": 2,
    "present/receipt.receipt": 3,
    "floors/receipt.receipt": 4,
}
Capture = pytest.CaptureFixture[str]


def ids(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


@pytest.mark.parametrize("path", MODELS, ids=ids)
def test_a_model_predicts_what_it_did(path: Path, tmp_path: Path, capsys: Capture) -> None:
    expected = json.loads((path.parent / "predictions.json").read_text())[path.stem]
    model = ftprl.load(path)
    np.testing.assert_array_equal(model.predict(FILES / "log.vw"), expected)
    model.save(tmp_path / "again")
    np.testing.assert_array_equal(ftprl.load(tmp_path / "again").predict(FILES / "log.vw"), expected)
    assert run(["inspect", str(path)]) == 0
    assert run(["predict", str(path), str(FILES / "log.vw"), "-o", str(tmp_path / "p")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("path", [p for p in MODELS if p.stem != "checkpoint"], ids=ids)
def test_a_model_learns_on(path: Path, tmp_path: Path) -> None:
    model = ftprl.train(FILES / "log.vw", resume=path, output=tmp_path / "more").model
    assert model.history["rows"] >= 30
    assert ftprl.load(tmp_path / "more").occupied


@pytest.mark.parametrize("version", CHECKPOINTS)
def test_a_checkpoint_is_resumed_or_refused(version: str, tmp_path: Path, capsys: Capture) -> None:
    shutil.copy(FILES / "log.vw", tmp_path / "log.vw")
    path = FILES / version / "checkpoint.ftprl"
    resume = ["train", str(tmp_path / "log.vw"), "--resume", str(path), "-o", str(tmp_path / "m"), "-q"]
    if CHECKPOINTS[version] == 2:
        assert run(resume) == 0
        assert (tmp_path / "m").read_bytes() == (FILES / version / "one.ftprl").read_bytes()
        return
    assert run(resume) == 2
    error = capsys.readouterr().err
    assert "expected checkpoint format 2, got 1" in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize("name", RECEIPTS)
def test_a_receipt_cannot_be_checked(name: str, capsys: Capture) -> None:
    assert run(["verify", str(FILES / name), str(FILES / "log.vw")]) == 2
    error = capsys.readouterr().err
    assert "cannot be checked by ftprl" in error
    assert "receipt format 5" in error
    assert f"format_version {RECEIPTS[name]}" in error
    assert len(error.splitlines()) == 1


def test_the_present_receipt_is_confirmed(capsys: Capture) -> None:
    present = FILES / "steps"
    receipt, model = str(present / "receipt.receipt"), str(present / "receipt.ftprl")
    assert run(["verify", receipt, str(FILES / "log.vw"), "--model", model, "-q"]) == 0
    capsys.readouterr()


def test_a_later_version_is_named(tmp_path: Path, capsys: Capture) -> None:
    body = (FILES / "present" / "one.ftprl").read_bytes()
    (tmp_path / "later").write_bytes(forge_header(body, lambda header: header["__metadata__"].update(version="2")))
    assert run(["inspect", str(tmp_path / "later")]) == 2
    error = capsys.readouterr().err
    assert "expected ftprl-model version 1, got 'ftprl-model' '2'" in error
    assert len(error.splitlines()) == 1


def test_every_version_has_its_folder() -> None:
    named = {line.split("`")[1] for line in (FILES / "README.md").read_text().splitlines() if line.startswith("| `")}
    assert named == {path.name for path in FILES.iterdir() if path.is_dir()} == {p.parent.name for p in MODELS}
