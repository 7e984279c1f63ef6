"""The registry of formats: a new format is a module and a line."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl import data, receipt
from ftprl.data import Batch, formats


def test_a_format_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new format: rows of space-separated numbers, the first of them the label."""
    module = types.ModuleType("own_format")

    def open_files(files: tuple[str, ...], options: data.ReadingOptions) -> data.Source:
        rows = np.concatenate([np.loadtxt(file, ndmin=2) for file in files])
        batch = Batch.from_rows([dict(enumerate(row[1:])) for row in rows], rows[:, 0])
        return data.open(batch, dim=options.dim, loss=options.loss, dtype=options.dtype)

    module.open_files = open_files  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "own_format", module)
    known = formats.FileFormat("numbers", (".numbers",), "own_format")
    monkeypatch.setitem(formats.BY_SUFFIX, ".numbers", known)
    monkeypatch.setitem(formats.BY_NAME, "numbers", known)
    (tmp_path / "a.numbers").write_text("1 2.0 0.5\n-1 0.5 1.0\n" * 20)
    run = ftprl.train(tmp_path / "a.numbers", bits=4)
    assert run.rows == 40
    assert run.progressive_loss < 0.5


def test_every_format_has_its_module() -> None:
    for known in formats.FILE_FORMATS:
        assert callable(formats.import_module(known.module).open_files)
    for kind in formats.OBJECT_FORMATS:
        module = formats.import_module(kind.module)
        assert callable(getattr(module, f"are_{kind.kind}"))
        assert callable(getattr(module, f"open_{kind.kind}"))


def test_a_name_that_misleads_needs_the_format(tmp_path: Path) -> None:
    """VW text in a file named .csv is read with `format=`, and its receipt is verified without it."""
    file = tmp_path / "rows.csv"
    file.write_text("1 | a\n-1 | b\n" * 30)
    path = tmp_path / "model"
    model = ftprl.train(file, format="vw", bits=4, order="given", receipt=True, output=path).model
    for call in (model.predict, lambda data: ftprl.train(data, resume=path)):
        with pytest.raises(
            ftprl.InvalidInput, match=r"rows.csv: expected vw, the format of the model's data, got csv;"
        ):
            call(file)
    assert ftprl.train(file, format="vw", resume=path).rows == 60
    assert len(model.predict(model.open(file, format="vw"))) == 60
    receipt.write_receipt(tmp_path / "receipt", receipt.make_receipt(model, receipt.certify_model(model)))
    assert receipt.verify_receipt(tmp_path / "receipt", file).confirmed
