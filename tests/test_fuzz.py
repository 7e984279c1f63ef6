"""The fuzz targets: the corpus, a short run with a fixed seed, and a test that a planted fault is found."""

from __future__ import annotations

import importlib.util
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ftprl.errors import BadModel
from ftprl.linear.model import Model

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "fuzz" / "corpus"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", ROOT / "fuzz" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # a dataclass looks its module up there
    spec.loader.exec_module(loaded)
    return loaded


run = module("run")
targets = module("python_targets")


def test_the_corpus_is_small_and_covers_every_target() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) < 2048
    assert {path.parent.name for path in files} == {*run.NATIVE_TARGETS, "model"}


@pytest.mark.parametrize("path", sorted((CORPUS / "model").iterdir()), ids=lambda p: p.stem)
def test_every_model_of_the_corpus_is_refused(path: Path) -> None:
    with pytest.raises(BadModel, match=r"^[ -~]{1,400}$"):
        Model.load(path)


def test_every_file_of_the_corpus_is_read_or_refused(tmp_path: Path) -> None:
    files = targets.Files(tmp_path)
    for kind, suffixes in targets.SUFFIXES.items():
        for body in files.corpus[kind]:
            for seed in range(4):
                path = tmp_path / f"a{suffixes[0]}"
                path.write_bytes(body)
                files.run(path, random.Random(seed))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("model", 150),
        ("files", 80),
        ("columns", 300),
        ("streams", 60),
        ("checkpoint", 40),
        ("receipt", 60),
        ("threads", 3),
    ],
)
def test_a_short_run_of_the_python_targets(name: str, count: int, tmp_path: Path) -> None:
    target = targets.TARGETS[name](tmp_path)
    for number in range(count):
        targets.execute(target, tmp_path, number, 20100, None)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_short_run_of_the_driver(tmp_path: Path) -> None:
    # One test for all, so that one worker compiles the driver.
    driver = run.build_driver("quick")
    for name in run.NATIVE_TARGETS:
        count = 400 if name == "learning" else 800
        command = [driver, "--target", name, "--executions", str(count), "--seconds", "60", "--seed", "20100"]
        command += ["--corpus", CORPUS, "--crashes", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["executions"] == count
    assert list(tmp_path.iterdir()) == []
    for finding in ("law", "throw"):
        (tmp_path / "body").write_text(finding)
        command = [driver, "--target", "canary", "--replay", tmp_path / "body", "--choice", "2a", "--crashes", tmp_path]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 1
        assert (tmp_path / "canary-000000000000002a").read_text() == finding


@pytest.mark.slow
def test_the_sanitizers_stop_the_driver(tmp_path: Path) -> None:
    driver = run.build_driver("sanitized")
    reports = {"read": "heap-buffer-overflow", "overflow": "signed integer overflow", "leak": "detected memory leaks"}
    for finding, reason in reports.items():
        (tmp_path / "body").write_text(finding)
        command = [driver, "--target", "canary", "--replay", tmp_path / "body", "--choice", "0", "--crashes", tmp_path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert reason in done.stderr
        if finding != "leak":  # found when the process ends, and so not the fault of its last input
            assert (tmp_path / "canary-0000000000000000").read_text() == finding


@pytest.mark.slow
def test_the_whole_command() -> None:
    command = [sys.executable, ROOT / "fuzz" / "run.py", "--seconds", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(name in done.stdout for name in (*run.NATIVE_TARGETS, *run.PYTHON_TARGETS))
