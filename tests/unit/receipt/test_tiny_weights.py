"""Rows with weights near the smallest float64 numbers are learned, certified and confirmed like others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt


@pytest.mark.parametrize("radius", [None, 1.0])
@pytest.mark.parametrize("scale", [0.1, "auto"])
@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge", "poisson"])
@pytest.mark.parametrize("weight", ["1e-300", "1e-310", "5e-324"])
def test_a_receipt_of_tiny_weights(
    weight: str, loss: str, scale: Any, radius: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    low = -1 if loss in ("logistic", "hinge") else 2
    rows = [f"{1 if i % 3 else low} {weight} | a{i % 5} b:{i / 10}\n" for i in range(40)]
    Path("w.vw").write_text("".join(rows))
    run = ftprl.train("w.vw", loss=loss, bits=5, scale=scale, receipt=True, holdout=5, output="m")
    assert np.isfinite(run.progressive_loss)
    assert np.isfinite(ftprl.load("m").predict("w.vw")).all()
    write_receipt("r", make_receipt(run.model, certify_model(run.model, radius=radius)))
    assert verify_receipt("r", "w.vw", model="m").confirmed
