"""Models and prediction files as systems on equal rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.errors import InvalidInput
from ftprl.linear.scoring import is_model_file, open_systems


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("good.vw").write_text("".join(f"{1 - 2 * (i % 2)} | a:{i} b\n" for i in range(40)))
    ftprl.train("good.vw", bits=8, output="m.ftprl")
    return tmp_path


def test_a_model_file_is_recognised(files: Path) -> None:
    Path("p.txt").write_text("0.5\n" * 40)
    assert is_model_file("m.ftprl")
    assert not is_model_file("p.txt")
    assert not is_model_file("good.vw")
    assert not is_model_file("none")


@pytest.mark.parametrize("bad", [[0], [3, 4, 5], [40], [0, 20, 40]])
def test_rows_that_cannot_be_read_have_a_place(files: Path, bad: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """`predict --on-bad-row skip` writes an empty line for such a row, which has no label either."""
    lines = Path("good.vw").read_text().splitlines(keepends=True)
    for at in reversed(bad):
        lines.insert(at, "1 | a:x:y\n")
    Path("bad.vw").write_text("".join(lines))
    assert run(["predict", "m.ftprl", "bad.vw", "-o", "p.txt", "--on-bad-row", "skip"]) == 0
    assert len(Path("p.txt").read_text().splitlines()) == 40 + len(bad)
    capsys.readouterr()
    for paths in (["p.txt"], ["m.ftprl"], ["m.ftprl", "p.txt"], ["p.txt", "m.ftprl", "m.ftprl"]):
        blocks = list(open_systems(paths, "bad.vw", on_bad_row="skip").blocks())
        scores = np.concatenate([block.scores for block in blocks])
        y = np.concatenate([block.y for block in blocks])
        assert len(scores) == 40 + len(bad)
        usable = np.concatenate([block.usable() for block in blocks])
        assert usable.sum() == 40
        np.testing.assert_array_equal(y[usable], [1 - 2 * (i % 2) for i in range(40)])
        for column in scores[usable].T:
            np.testing.assert_allclose(column, ftprl.load("m.ftprl").predict("good.vw", raw=True), rtol=1e-9)


def test_models_of_different_losses_are_refused(files: Path) -> None:
    ftprl.train("good.vw", bits=8, loss="hinge", output="h.ftprl")
    with pytest.raises(
        InvalidInput, match=r"models need the same loss to be compared, got logistic of m\.ftprl and hinge"
    ):
        open_systems(["m.ftprl", "h.ftprl"], "good.vw")
