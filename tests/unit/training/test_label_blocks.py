"""Rows sorted by class are detected for any batches, and reported by `train`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ftprl
from ftprl.cli.app import run
from ftprl.training.label_blocks import LabelBlocks


def _are_sorted(labels: np.ndarray) -> bool:
    """Return True if the labels of one batch are sorted."""
    blocks = LabelBlocks()
    blocks.see(labels)
    return blocks.are_sorted


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 25)), min_size=1, max_size=6), st.integers(1, 40))
def test_batches_do_not_matter(stretches: list[tuple[int, int]], size: int) -> None:
    labels = np.concatenate([np.full(count, float(label)) for label, count in stretches])
    blocks = LabelBlocks()
    for start in range(0, len(labels), size):
        blocks.see(np.append(labels[start : start + size], np.nan))
    assert blocks.are_sorted == _are_sorted(labels)


def test_chance_is_not_taken_for_order() -> None:
    assert not _are_sorted(np.array([0.0] * 40 + [1.0]))  # a rare class comes last in one of twenty orders
    assert not _are_sorted(np.ones(100))
    assert _are_sorted(np.repeat([0.0, 1.0], 20))


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_the_command_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], loss: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"{x:.3f},{y}" for y in (0, 1) for x in rng.normal(size=60) + y]
    Path("sorted.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    Path("mixed.csv").write_text("\n".join(["x,y", *rng.permutation(rows)]) + "\n")
    for name in ("sorted", "mixed"):
        for passes in ("1", "2"):
            for order in ("given", "random"):  # rows in random order are sorted no more
                options = ["--label", "y", "--loss", loss, "--bits", "8", "--passes", passes, "-q", "-o", "m"]
                assert run(["train", f"{name}.csv", *options, "--order", order]) == 0
                is_reported = "the rows are sorted by class" in capfd.readouterr().err
                assert is_reported == (name == "sorted" and order == "given")
    settings = {"label": "y", "order": "given"}
    assert "sorted" in [one.kind for one in ftprl.train("sorted.csv", loss=loss, **settings).cautions]
    assert "sorted" not in [one.kind for one in ftprl.train("sorted.csv", loss="squared", **settings).cautions]
