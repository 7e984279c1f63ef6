"""The rules of the house, as tests: style, types, order of imports, public names, cost of importing."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import ftprl

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ftprl"
SCRIPTS = Path(sysconfig.get_path("scripts"))
FOLDERS = [name for name in ("src", "tests", "benchmarks", "examples", "fuzz") if (ROOT / name).is_dir()]
LAZY = {"clarabel", "matplotlib", "onnx", "piqp", "pyarrow", "rich", "scipy", "sklearn", "typer"}


def assert_succeeds(*command: str | Path) -> None:
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


def python(code: str) -> str:
    """What a fresh interpreter prints; it may write bytecode, since a user's interpreter would have it."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout


def test_ruff_check() -> None:
    assert_succeeds(sys.executable, "-m", "ruff", "check", *FOLDERS)


def test_ruff_format() -> None:
    assert_succeeds(sys.executable, "-m", "ruff", "format", "--check", *FOLDERS)


def test_mypy() -> None:
    assert_succeeds(sys.executable, "-m", "mypy")


def test_order_of_imports() -> None:
    assert_succeeds(SCRIPTS / "lint-imports", "--no-cache")


def test_readme_has_the_command_that_ci_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv ")]
    assert len(commands) == 1
    assert commands[0] == lines[-1]
    assert commands[0] in (ROOT / "README.md").read_text().splitlines()


def test_ci_run_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_changelog_has_an_unreleased_section() -> None:
    assert re.search(r"^## \[Unreleased\]$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_one_version() -> None:
    assert importlib.metadata.version("ftprl") == ftprl.__version__
    assert f"\nversion: {ftprl.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_public_names_are_sorted_and_unique() -> None:
    assert list(ftprl.__all__) == sorted(set(ftprl.__all__))


@pytest.mark.parametrize("name", ftprl.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(ftprl, name) is not None


def test_no_other_public_name() -> None:
    assert {name for name in dir(ftprl) if name[0] != "_"} == set(ftprl.__all__)
    # What dir() hides may be a helper from elsewhere or a loaded submodule, but nothing that ftprl defines.
    own = {n for n, v in vars(ftprl).items() if n[0] != "_" and getattr(v, "__module__", "").startswith("ftprl")}
    assert own <= set(ftprl.__all__)


def is_public(file: Path) -> bool:
    names = file.relative_to(PACKAGE).with_suffix("").parts
    return not any(name.startswith("_") for name in names if name != "__init__")


def test_public_modules_have_docstrings() -> None:
    files = [file for file in sorted(PACKAGE.rglob("*.py")) if is_public(file)]
    assert files
    assert [file for file in files if not ast.get_docstring(ast.parse(file.read_text("utf-8")))] == []


def test_import_loads_nothing_heavy() -> None:
    loaded = python("import sys, ftprl; print(*sys.modules)").split()
    assert not LAZY & set(loaded)


def test_import_costs_at_most_twice_numpy() -> None:
    def cost(module: str) -> float:
        # Processor time, the best of several, taken in turns: what other programs do must not count.
        return float(python(f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"))

    rounds = [(cost("ftprl"), cost("numpy")) for _ in range(7)]
    ours, numpy = (min(column) for column in zip(*rounds, strict=True))
    assert ours <= 2 * numpy, f"import ftprl: {ours:.3f} s, import numpy: {numpy:.3f} s"
