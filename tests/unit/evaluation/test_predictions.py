"""Prediction files: the meaning of each line, and the errors."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.errors import BadFormat, InvalidInput
from ftprl.evaluation.predictions import PredictionFile, check_meaning, usual_meaning
from ftprl.losses import SCALAR_LOSSES


def read(text: str | bytes, folder: Path, loss: str = "squared", meaning: str | None = None) -> list[float]:
    path = folder / "p.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    kind = SCALAR_LOSSES[loss]
    parts = list(PredictionFile(str(path), kind, check_meaning(meaning, kind)).scores())
    return np.concatenate(parts).tolist() if parts else []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1\n2.5\n-3e2\n", [1.0, 2.5, -300.0]),
        ("1\n2", [1.0, 2.0]),
        ("1 tag\n2.5 another tag\n", [1.0, 2.5]),
        ("1\r\n2\r\n", [1.0, 2.0]),
        ("1\n\n2\n   \n", [1.0, np.nan, 2.0, np.nan]),
        ("", []),
        ("\n\n", [np.nan, np.nan]),
    ],
)
def test_one_number_per_line(text: str, expected: list[float], tmp_path: Path) -> None:
    np.testing.assert_array_equal(read(text, tmp_path), expected)


@settings(max_examples=20, deadline=None)
@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_numbers_come_back_to_the_bit(values: list[float], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert read("\n".join(map(repr, values)), tmp_path_factory.mktemp("p")) == values


def test_long_files_come_in_blocks(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(200_000)
    path = tmp_path / "p.txt.gz"
    path.write_bytes(gzip.compress("\n".join(map(repr, values.tolist())).encode()))
    parts = list(PredictionFile(str(path), SCALAR_LOSSES["squared"], "mean").scores())
    assert len(parts) > 2
    np.testing.assert_array_equal(np.concatenate(parts), values)


def test_predictions_become_scores(tmp_path: Path) -> None:
    np.testing.assert_allclose(read("0.5\n0.9\n", tmp_path, "logistic"), [0.0, np.log(9.0)], rtol=1e-12)
    assert read("0.5\n-2\n", tmp_path, "logistic", "score") == [0.5, -2.0]
    np.testing.assert_allclose(read("1\n20\n", tmp_path, "poisson"), [0.0, np.log(20.0)])
    assert abs(read("0\n", tmp_path, "logistic")[0]) == pytest.approx(-np.log(1e-15))  # no nearer to 0 than 1e-15


@pytest.mark.parametrize(
    ("text", "loss", "message"),
    [
        ("1\n2\nabc\n", "squared", r"p\.txt:3: expected a number, got 'abc'; write one prediction per line"),
        ("0.5\nnan\n", "logistic", r"p\.txt:2: expected a number, got 'nan'"),
        ("1\ninf\n", "squared", r"p\.txt:2: expected a finite number, got inf"),
        ("0.5\n1.5\n", "logistic", r"p\.txt:2: expected a probability from 0 to 1, got 1\.5"),
        ("1\n\n-1\n", "poisson", r"p\.txt:3: expected a mean above 0, got -1"),
        ("prediction\n0.5\n", "logistic", r"p\.txt:1: expected a number, got 'prediction'"),
    ],
)
def test_what_is_no_prediction_is_refused(text: str, loss: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadFormat, match=message):
        read(text, tmp_path, loss)


@pytest.mark.parametrize("loss", SCALAR_LOSSES)
def test_what_predictions_can_be_depends_on_the_loss(loss: str) -> None:
    kind = SCALAR_LOSSES[loss]
    assert check_meaning(None, kind) == usual_meaning(kind)
    assert check_meaning("score", kind) == "score"
    with pytest.raises(InvalidInput, match=r"predictions_are= needs .* got 'odds'"):
        check_meaning("odds", kind)
    for other in {"probability", "mean"} - {usual_meaning(kind)}:
        with pytest.raises(InvalidInput, match="predictions_are= needs"):
            check_meaning(other, kind)
