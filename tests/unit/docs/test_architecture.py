"""The worked examples of docs/architecture.md: they run as the modules in their titles, or are part of the file."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from pydoc import locate
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl import FTPRL, play
from ftprl._core import column_kinds
from ftprl.cli import app
from ftprl.data import formats, kinds
from ftprl.data.options import KIND_OPTIONS
from ftprl.schemes import Diagonal
from ftprl.sets import Box

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
BLOCK = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(PAGE)
GRADIENTS = np.random.default_rng(0).normal([0.3, -0.2], 1.0, size=(200, 2))


def load(path: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the example with this title as a module of the package."""
    (source,) = [text for title, text in BLOCKS if title == path]
    name = path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def test_a_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = load("src/ftprl/schemes/square_root.py", monkeypatch).SquareRoot(0.5)
    certificate = play(FTPRL(Box(-1, 1, dim=2), scheme), GRADIENTS).certificate()
    assert certificate.regret <= certificate.bound <= certificate.worst_case
    state = scheme.init(Box(-1, 1, dim=2))
    for g in GRADIENTS[:9]:
        _, state = scheme.step(state, g)
    assert float(state.total) == pytest.approx(3 / 0.5)
    assert play(FTPRL(Box(-1, 1, dim=2), Diagonal()), GRADIENTS).certificate().ratio is not None


@pytest.mark.parametrize(("path", "text"), [b for b in BLOCKS if (ROOT / b[0]).exists() and "npz" not in b[1]])
def test_a_loss_is_shown_as_it_is(path: str, text: str) -> None:
    lines = [line.strip().removesuffix(",") for line in (ROOT / path).read_text().splitlines()]
    shown = "\n".join(line.strip().removesuffix(",") for line in text.splitlines())
    for part in (part.splitlines() for part in shown.split("\n...\n")):  # `...` stands for lines that are left out
        assert any(lines[i : i + len(part)] == part for i in range(len(lines))), f"{path} has changed: show it as it is"


def test_a_loss_has_three_parts() -> None:
    """And no other file of the source knows it by its name."""
    parts = {"src/ftprl/losses/table.py", "src/core/learn/losses.cpp", "src/core/replay/losses.cpp"}
    assert {path for path, text in BLOCKS if "gamma" in text} == parts
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".cpp", ".hpp", ".inl")]
    named = {str(path.relative_to(ROOT)) for path in files if '"gamma"' in path.read_text()}
    parameters = {"src/ftprl/baselines/averaging.py", "src/ftprl/baselines/newton.py"}  # which have one of this name
    assert named - parameters == parts


def test_a_column_kind_has_four_parts() -> None:
    """No other file of the source knows it by its name, and the core has an entry for each kind of Python's table."""
    parts = {"src/ftprl/data/kinds.py", "src/core/readers/kinds.hpp"}
    assert {path for path, text in BLOCKS if "bucket" in text} == parts
    files = [path for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".cpp", ".hpp", ".inl")]
    named = re.compile(r"[\"'](bucket|timestamp)[\"']|\bbucket(=| *: Annotated)|Kind::(bucket|date|timestamp|boolean)")
    found = {str(path.relative_to(ROOT)) for path in files if named.search(path.read_text())}
    assert found == parts | {"src/ftprl/options/table.py", "src/ftprl/export/scorer.py"}
    assert tuple(column_kinds()) == kinds.KINDS
    assert set(KIND_OPTIONS) | set(kinds.BESIDE) == set(kinds.NAMED)


def test_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load("src/ftprl/data/npz.py", monkeypatch)
    (line,) = [text for path, text in BLOCKS if path == "src/ftprl/data/formats.py"]
    registered: Any = eval(line, {"FileFormat": formats.FileFormat})
    monkeypatch.setattr(formats, "BY_NAME", {**formats.BY_NAME, "npz": registered})
    monkeypatch.setattr(formats, "BY_SUFFIX", {**formats.BY_SUFFIX, ".npz": registered})

    from scipy.sparse import csr_matrix

    rng = np.random.default_rng(1)
    dense = rng.normal(size=(500, 5))
    y = np.where(dense @ [1.0, -1.0, 0.5, 0.0, 2.0] + 0.3 * rng.normal(size=500) > 0, 1.0, -1.0)
    X = csr_matrix(dense)
    path = tmp_path / "rows.npz"
    np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    run = ftprl.train(str(path))
    assert run.rows == 500
    assert run.progressive_loss < run.baseline / 2
    predicted = run.model.predict(str(path))
    assert np.mean((predicted > 0.5) == (y > 0)) > 0.9


def test_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    load("src/ftprl/cli/count.py", monkeypatch)
    monkeypatch.setattr(app.ftprl, "modules", (*app.COMMANDS, "count"))
    path = tmp_path / "rows.vw"
    path.write_text("1 | a b\n-1 | c\n")
    assert app.run(["count", str(path)]) == 0
    assert capsys.readouterr().out == "2 rows, 3 features\n"
    assert app.run(["count", str(tmp_path / "none.vw")]) == 2
    assert "no such file" in capsys.readouterr().err


WALKS = PAGE.split("## Four walks")[1].split("## To add something")[0].split("\n### ")[1:]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.splitlines()[0])
def test_a_walk_has_ten_steps_and_every_name_exists(walk: str) -> None:
    steps = re.findall(r"^\d+\. .*$", walk, re.MULTILINE)
    assert len(steps) == 10
    names = re.findall(r"`((?:\w+\.)+\w+|Ledger)`", "\n".join(steps))
    assert [name for name in names if locate(f"ftprl.{name}") is None] == []


def test_the_files_of_the_table_exist() -> None:
    named = set(re.findall(r"`((?:src|tests|docs)/[\w/.]+)`", PAGE))
    assert {path for path in named if "NAME" not in path and not (ROOT / path).exists()} == set()
    for package in re.findall(r"^\| ((?:`\w+`(?:, )?)+)[^|]*\| ", PAGE.split("## Four walks")[0], re.MULTILINE):
        for name in re.findall(r"`(\w+)`", package):
            import_module(f"ftprl.{name}")
