"""Benchmarks: every script can be imported, and the documentation names scripts that exist."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "benchmarks", ROOT / "benchmarks" / "micro")
SCRIPTS = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]
MAY_BE_ABSENT = ("cvxpy", "numba", "ray", "river", "vowpalwabbit")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.relative_to(ROOT / "benchmarks").as_posix())
def test_a_script_can_be_imported(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library names that a script imports exist; a script whose peer is not installed is skipped."""
    for folder in (ROOT, *FOLDERS):
        monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location(f"script_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if error.name not in MAY_BE_ABSENT:
            raise
        pytest.skip(f"{error.name} is not installed")


def test_the_documentation_names_scripts_that_exist() -> None:
    """The commands in tables of measurements exist."""
    named = set()
    for page in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        named |= set(re.findall(r"benchmarks/[a-z_0-9/]+\.py", page.read_text("utf-8")))
    assert len(named) > 15
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_bars_run_from_top_to_bottom_with_their_text_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.bars import Bar, bars

    fig = bars("title", "seconds", [Bar("first $a", 1.0, text="1 s"), Bar("second", 10.0, 1, "10 s")])
    ax = fig.axes[0]
    assert [bar.get_width() for bar in ax.patches] == [1.0, 10.0]
    assert ax.patches[0].get_y() > ax.patches[1].get_y()
    assert [text.get_text() for text in ax.texts] == ["1 s", "10 s"]
    assert ax.get_xscale() == "log"
    labels = dict(zip(ax.get_yticks(), ax.get_yticklabels(), strict=True))
    assert labels[1].get_text() == "first $a"
    assert not labels[1].get_parse_math()
