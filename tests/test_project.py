"""Rules of the project: style, types, import order, public names, dependencies, cost of importing."""

import ast
import importlib.metadata
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

import ftprl

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "ftprl"
SCRIPTS = Path(sysconfig.get_path("scripts"))
FOLDERS = [name for name in ("src", "tests", "benchmarks", "examples", "fuzz", "scripts") if (ROOT / name).is_dir()]


def assert_succeeds(*command: str | Path) -> None:
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


def python(code: str) -> str:
    """Return the output of a fresh interpreter, which may write bytecode as a user's would."""
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


def test_every_dependency_is_imported() -> None:
    """A required dependency that no module of src imports would only make installation longer."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[A-Za-z0-9_-]+", line)[0] for line in project["dependencies"]}  # type: ignore[index]
    sources = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py"))
    imported = set(re.findall(r"^\s*(?:import|from) (\w+)", sources, re.MULTILINE))
    assert needed - imported == set()
    extras = {"games", "onnx", "plot", "ray", "sklearn"}
    assert set(project["optional-dependencies"]) == {*extras, "all", "benchmarks", "dev", "docs", "test"}
    assert project["optional-dependencies"]["all"] == [f"ftprl[{','.join(sorted(extras))}]"]


PUBLIC = r"_core|_repr_\w+_"  # the compiled core, and what notebooks ask an object for


def private_names(tree: ast.AST) -> set[str]:
    """Return names with a leading underscore that a test takes from ftprl, except from the compiled core."""
    imported: set[str] = set()
    taken: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ftprl":
            names = {alias.name for alias in node.names} - {"_core"}
            imported |= {alias.asname or alias.name for alias in node.names}
            taken |= {name for name in names if name.startswith("_") and not name.startswith("__")}
        elif isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names if alias.name.split(".")[0] == "ftprl"}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and re.match(r"_[A-Za-z]", node.attr)
            and not re.fullmatch(PUBLIC, node.attr)
        ):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os", "sys")):
                taken.add(node.attr)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            target = [a.value for a in node.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            taken |= {name for name in target if re.search(r"(^|\.)_[A-Za-z]", name.replace("ftprl._core", ""))}
    return taken if imported else set()


TESTS = sorted((ROOT / "tests").rglob("*.py"))


@pytest.mark.parametrize("path", TESTS, ids=lambda p: str(p.relative_to(ROOT / "tests")))
def test_tests_use_public_names_only(path: Path) -> None:
    assert private_names(ast.parse(path.read_text())) == set()


# The test modules of modules without a test module of their own name: single modules, or whole packages that are tested
# together through their exports.
TESTED_TOGETHER = {
    "baselines": "unit/baselines, laws/test_related_bounds.py",
    "bounds": "unit/bounds, theory/test_certificates.py, theory/test_strong_theorem.py",
    "check": "unit/test_bad_input.py",
    "cli": "unit/cli, golden/test_train_golden.py, golden/test_demo_golden.py",
    "cluster": "unit/cluster, unit/data/test_remote.py",
    "confidence/layout": "unit/confidence/test_run.py, unit/confidence/test_residuals.py",
    "data": "unit/data, laws/test_readers.py",
    "draw": "unit/draw",
    "errors": "unit/test_bad_input.py",
    "estimators": "unit/estimators",
    "export": "unit/export",
    "hindsight": "unit/test_game.py, theory/test_exactness.py",
    "learner": "unit/learner, theory/test_composite.py, theory/test_schemes.py",
    "linear": "unit/linear, laws/test_kernel.py, laws/test_scales.py, laws/test_model_file.py",
    "losses": "unit/losses",
    "online": "unit/online, unit/linear/test_one_row.py",
    "options": "unit/options, unit/cli",
    "paper": "unit/paper, paper/test_verdicts.py, paper/test_page.py, paper/test_mutations.py",
    "posthoc": "theory/test_posthoc.py",
    "programs": "theory/test_posthoc.py, oracles/test_against_cvxpy.py",
    "receipt": "unit/receipt, laws/test_receipts.py, theory/test_receipts_hold.py",
    "report": "unit/report",
    "runlog": "unit/runlog",
    "schemes": "unit/schemes, theory/test_schemes.py, theory/test_best_bound.py",
    "sets": "unit/sets, laws/test_argmin.py, laws/test_geometry.py, laws/test_multiplier.py",
    "solver": "unit/solver, laws/test_l1.py, laws/test_multiplier.py",
    "training": "unit/training, laws/test_changing_streams.py",
    "version": "test_project.py",
}
NOT_PACKAGES = {"benchmarks", "core", "docs", "examples"}  # tests of src/core, of the pages and of the examples


def is_tested(module: str) -> bool:
    unit = ROOT / "tests" / "unit" / module
    return unit.with_name(f"test_{unit.name}.py").exists() or bool(
        {module, module.split("/")[0]} & set(TESTED_TOGETHER)
    )


def test_unit_tests_mirror_the_package() -> None:
    """src/ftprl/a/b.py is tested in tests/unit/a/test_b.py, or in the place that the table above names."""
    modules = {p.relative_to(PACKAGE).with_suffix("").as_posix() for p in PACKAGE.rglob("*.py") if p.name[0] != "_"}
    packages = {module.split("/")[0] for module in modules}
    assert {module for module in modules if not is_tested(module)} == set()
    assert TESTED_TOGETHER.keys() - modules - packages == set(), "listed, but does not exist"
    listed_tests = {path for listed in TESTED_TOGETHER.values() for path in listed.split(", ")}
    assert {path for path in listed_tests if not (ROOT / "tests" / path).exists()} == set()
    folders = {p.name for p in (ROOT / "tests" / "unit").iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders - packages - NOT_PACKAGES == set(), "a folder of tests without its package"


def test_readme_has_the_command_that_ci_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv ")]
    assert len(commands) == 1
    assert commands[0] == lines[-1]
    assert commands[0] in (ROOT / "README.md").read_text().splitlines()


def test_ci_run_is_executable() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_table_of_sizes_is_printed() -> None:
    table = run_lines().stdout
    assert re.search(r"^ftprl/training +\d+ +\d+ +\d+\.\d%$", table, re.MULTILINE)
    assert re.search(r"^options of train: \d+ \(at most 52\)$", table, re.MULTILINE)


def test_sizes_are_within_their_limits() -> None:
    run = run_lines("--check")
    assert run.returncode == 0, run.stderr


def run_lines(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts" / "lines.py", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
    # A name that dir() hides may be a helper from elsewhere or a loaded submodule, but not defined by ftprl.
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
    loaded = {name.partition(".")[0] for name in python("import sys, ftprl; print(*sys.modules)").split()}
    assert loaded & {"pyarrow", "rich", "click"} == set()


def test_import_costs_at_most_twice_numpy() -> None:
    def cost(module: str) -> float:
        # Processor time, the best of several runs in turns, so that other programs do not matter.
        return float(python(f"import time; t = time.process_time(); import {module}; print(time.process_time() - t)"))

    rounds = [(cost("ftprl"), cost("numpy")) for _ in range(7)]
    ours, numpy = (min(column) for column in zip(*rounds, strict=True))
    assert ours <= 2 * numpy, f"import ftprl: {ours:.3f} s, import numpy: {numpy:.3f} s"


def test_wheels_and_the_conda_recipe_follow_the_project() -> None:
    """cibuildwheel builds for the declared versions of Python, and conda's packages equal the dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["project"]["classifiers"]))
    assert project["tool"]["cibuildwheel"]["build"] == [f"cp3{minor}-*" for minor in declared]
    assert project["project"]["requires-python"] == f">=3.{declared[0]}"
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    extras = project["project"]["optional-dependencies"]

    def packages(start: str, end: str) -> set[str]:
        lines = recipe.partition(f"  {start}:\n")[2].partition(end)[0].splitlines()
        names = {"matplotlib-base": "matplotlib", "ray-core": "ray"}
        return {"".join(names.get(word, word) for word in line.strip(" -").split()) for line in lines}

    assert packages("host", "  run:\n") == {"python", "pip", *project["build-system"]["requires"]}
    python_version = f"python{project['project']['requires-python']}"
    assert packages("run", "  run_constraints:\n") == {*project["project"]["dependencies"], python_version}
    optional = {line for extra in ("games", "onnx", "plot", "ray", "sklearn") for line in extras[extra]}
    assert packages("run_constraints", "\n\n") == optional
