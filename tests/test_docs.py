"""Documentation runs: Python blocks and commands of README and docs, examples, and the build of the site."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.receipt import certify_model, make_receipt, verify_receipt, write_receipt
from oracles.batches import real

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
RECEIPT = re.compile(r"^<!-- receipt of (\S+) -->\n+```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(([^)#:]+)\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text())


@pytest.mark.parametrize("page", [p for p in PAGES if any(k == "python" for k, _ in blocks(p))], ids=lambda p: p.name)
def test_python_blocks_run_and_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {"__name__": "page"}
    printed = None
    for kind, text in blocks(page):
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(text, str(page), "exec"), space)
            printed = out.getvalue()
        elif kind == "text":
            assert printed == text, f"{page.name} shows something else than it prints"


def commands(page: Path) -> list[tuple[list[str], list[str]]]:
    """The commands of a page's console blocks, each with the lines that are shown below it."""
    shown: list[tuple[list[str], list[str]]] = []
    for kind, text in blocks(page):
        for line in text.splitlines() if kind == "console" else ():
            if line.startswith("$ "):
                shown.append((shlex.split(line[2:]), []))
            else:
                shown[-1][1].append(line)
    return shown


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=lambda p: p.name)
def test_commands_run_and_print_what_is_shown(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown lines occur in the output, in order; `...` matches any text."""
    monkeypatch.chdir(tmp_path)
    for (program, *args), shown in commands(page):
        assert program == "ftprl"
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
            assert run(args) == 0, out.getvalue()
        rest = out.getvalue().splitlines()
        for line in shown:
            pattern = ".*".join(map(re.escape, line.split("...")))
            at = 0 if line == "..." else next((i for i, text in enumerate(rest) if re.fullmatch(pattern, text)), None)
            assert at is not None, f"{page.name}: {args} does not print {line!r} but {out.getvalue()}"
            rest = rest[at if line == "..." else at + 1 :]


def receipts(page: Path) -> list[tuple[str, str]]:
    """Return the receipts shown on a page besides those of its commands: the name of a data file, and the text.

    A comment before the block names the file: <!-- receipt of criteo80k.vw.gz -->.
    """
    return RECEIPT.findall(page.read_text())


@pytest.mark.parametrize("page", [p for p in PAGES if receipts(p)], ids=lambda p: p.name)
def test_receipts_are_those_of_the_data(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Receipts shown on a page equal receipts of one pass with default settings, made here."""
    monkeypatch.chdir(tmp_path)
    for name, shown in receipts(page):
        model = ftprl.train(real(name), receipt=True, output="m").model
        text = str(certify_model(model)).split("\nfloor: ")[0].split("\n", 1)[1]
        made = textwrap.dedent(text)
        assert shown.split() == made.split(), f"{page.name} shows another receipt of {name} than this one:\n{made}"
        write_receipt("r.json", make_receipt(model, certify_model(model)))
        assert verify_receipt("r.json", real(name), model="m").confirmed


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_every_receipt_is_made_by_a_test(page: Path) -> None:
    text = "\n".join(text for kind, text in blocks(page) if kind in ("console", "python"))
    made = text + "".join(text for _, text in receipts(page))
    fenced = "".join(re.findall(r"^```\w*\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE))
    assert fenced.count("Better than guessing?") == made.count("Better than guessing?"), "name its data in a comment"


def test_there_is_something_to_run() -> None:
    assert sum(kind == "python" for page in PAGES for kind, _ in blocks(page)) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def modules() -> list[str]:
    return [m.name for m in pkgutil.walk_packages(ftprl.__path__, "ftprl.") if "._core" not in m.name]


@pytest.mark.parametrize("name", modules())
def test_docstring_examples(name: str) -> None:
    import numpy as np

    result = doctest.testmod(importlib.import_module(name), extraglobs={"np": np})
    assert result.failed == 0


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """`mkdocs build --strict` knows every link and every name of the API pages; skipped without the extra docs."""
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # an advertisement of its successor
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = (tmp_path / "site" / "api" / "training.html").read_text()
    assert 'id="ftprl.training.api.train"' in shown, "the API pages have what the docstrings describe"


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_run_and_are_short(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path)])  # an example may read its arguments; pytest's are not for it
    assert len(path.read_text().splitlines()) < 60
    began = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(str(path), run_name="__main__")
    assert time.process_time() - began < 10, "an example is something to try, not to wait for"
    assert out.getvalue().strip()
    assert (tmp_path / f"{path.stem}.svg").read_text().startswith("<?xml")


def test_the_gallery_shows_every_example() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text()
    shown = re.findall(r"!\[[^\]]+\]\((figures/gallery/\w+\.svg)\)", page)
    assert sorted(shown) == [f"figures/gallery/{path.stem}.svg" for path in EXAMPLES]
    for path in EXAMPLES:
        assert f"(../examples/{path.name})" in page
        assert (ROOT / "docs" / "figures" / "gallery" / f"{path.stem}.svg").exists()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_examples_use_public_names_only(path: Path) -> None:
    """Examples import only public names: `from ftprl import X`, or a public name of a public module."""
    import ast

    modules = {"adversaries", "baselines", "data", "losses", "schemes", "sets"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ftprl":
            home = importlib.import_module(node.module or "")
            assert node.module == "ftprl" or (node.module or "").split(".")[1] in modules
            assert all(a.name[0] != "_" and a.name in dir(home) for a in node.names)
        if isinstance(node, ast.Import):
            assert all(a.name.split(".")[0] != "ftprl" or a.name == "ftprl" for a in node.names)
