"""Models and receipts of the version before receipts were proved: they predict as before, and cannot be checked."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run

FILES = Path(__file__).parent / "earlier"


@pytest.mark.parametrize("name", ["one", "eight"])
def test_a_model_predicts_to_the_bit_what_it_did(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ftprl.load(FILES / f"{name}.ftprl")
    expected = json.loads((FILES / "predictions.json").read_text())[name]
    np.testing.assert_array_equal(model.predict(FILES / "log.vw"), expected)
    assert not model.engine.receipt
    model.save(tmp_path / "again")
    np.testing.assert_array_equal(ftprl.load(tmp_path / "again").predict(FILES / "log.vw"), expected)
    assert run(["certify", str(FILES / f"{name}.ftprl")]) == 2
    assert "--receipt" in capsys.readouterr().err


def test_a_receipt_cannot_be_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(FILES / "one.receipt"), str(FILES / "log.vw")]) == 2
    error = capsys.readouterr().err
    assert "cannot be checked" in error
    assert "format_version 1" in error
    assert len(error.splitlines()) == 1
