"""A model takes memory in proportion to its cells, not to its table."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.linear import Engine, Model, Spec
from ftprl.training.summary import summary

_MEASURED = """
import resource, sys
from ftprl.cli.app import run
code = run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB there")


def peak(*args: str) -> float:
    """Return the largest resident memory of a command, in MiB."""
    done = subprocess.run([sys.executable, "-c", _MEASURED, *args], capture_output=True, text=True, check=True)
    return int(done.stderr.splitlines()[-1]) / 1024


def save(path: Path, dim: int, cells: int, **options: Any) -> Path:
    engine = Engine(Spec(dim=dim, **options))
    slots = np.linspace(0, dim - 1, cells).astype(int).tolist()
    engine.learn(Batch.from_rows([{slot: 1.0} for slot in slots], y=np.resize([1.0, -1.0], cells)))
    Model(engine, {"format": "vw"}).save(path)
    return path


@pytest.mark.parametrize("options", [{"scale": 0.1}, {"scale": (0.1, 1.0)}], ids=["one scale", "two scales"])
def test_few_cells_of_a_huge_table(options: dict[str, Any], tmp_path: Path) -> None:
    """inspect of a file of 1 to 3 KB once took 2 GB."""
    small, huge = save(tmp_path / "small", 2**10, 3, **options), save(tmp_path / "huge", 2**28, 3, **options)
    assert huge.stat().st_size < 3000
    (tmp_path / "d.vw").write_text("1 | a b c\n" * 100)
    assert peak("inspect", str(huge)) < peak("inspect", str(small)) + 40
    predict = [str(tmp_path / "d.vw"), "-o", str(tmp_path / "p")]
    assert peak("predict", str(huge), *predict) < peak("predict", str(small), *predict) + 40


def test_cells_far_apart_take_small_pages(tmp_path: Path) -> None:
    """400 scattered cells of a table of 1 GB would take 800 MB on huge pages."""
    huge = save(tmp_path / "huge", 2**26, 3, scale=0.1)
    engine, slots = Engine(Spec(dim=2**26, scale=0.1)), np.linspace(0, 2**26 - 1, 400).astype(np.uint32)
    engine.expect_cells(len(slots))
    engine.put(slots, np.ones((len(slots), 4), np.float32))
    engine.copy()  # as sparse as it is
    Model(engine).save(tmp_path / "many")
    assert peak("inspect", str(tmp_path / "many")) < peak("inspect", str(huge)) + 40


@pytest.mark.parametrize("bounds", [{}, {"lower": 0.25}, {"upper": -0.5}, {"lower": -1.0, "upper": 1.0}])
def test_the_largest_weights_are_those_of_the_whole_table(bounds: dict[str, float], tmp_path: Path) -> None:
    model = Model.load(save(tmp_path / "m", 40, 7, scale=0.1, **bounds))
    weights = model.weights()
    order = np.argsort(-np.abs(weights), kind="stable")[:10].tolist()
    facts = summary(tmp_path / "m", 10)
    expected = [(i, weights[i]) for i in order if weights[i]]
    assert [(entry["cell"], entry["weight"]) for entry in facts["largest"]] == expected
    assert facts["nonzero"] == np.count_nonzero(weights)


@pytest.mark.parametrize("bounds", [{}, {"lower": 0.25}, {"l1": 0.5}])
@pytest.mark.parametrize("scale", [0.1, (0.1, 1.0)])
@pytest.mark.parametrize("float64", [False, True])
def test_weights_of_some_cells_are_those_of_all(scale: Any, bounds: dict[str, float], float64: bool) -> None:
    engine = Engine(Spec(dim=64, scale=scale, float64=float64, **bounds))
    rng = np.random.default_rng(1)
    rows = [dict.fromkeys(rng.choice(40, 5, replace=False).tolist(), float(rng.normal())) for _ in range(50)]
    engine.learn(Batch.from_rows(rows, y=rng.choice([-1.0, 1.0], 50), float64=float64))
    slots = np.array([3, 1, 39, 60, 7], np.uint32)
    for k in range(len(engine.spec.scales)):
        np.testing.assert_array_equal(engine.weights_at(slots, k), engine.weights(k)[slots])
    np.testing.assert_array_equal(engine.weights_at(slots), engine.weights()[slots])
    assert len(engine.weights_at(slots[:0])) == 0


_LOADED = """
import sys
from ftprl.linear import Model
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
first = Model.load(sys.argv[1] + "0")
before = resident()
model = Model.load(sys.argv[1] + "1")
print(resident() - before)
"""


def test_a_compact_model_takes_memory_for_its_cells(tmp_path: Path) -> None:
    """20,000 cells of 16 bytes, scattered over a table, took up 64 MB of its pages."""
    for number, cells in enumerate((10, 20_000)):
        model = Model.load(save(tmp_path / "whole", 2**22, cells, scale=0.1))
        model.compact().save(tmp_path / f"small{number}")
    loaded = [sys.executable, "-c", _LOADED, str(tmp_path / "small")]
    assert float(subprocess.run(loaded, capture_output=True, text=True, check=True).stdout) < 8.0
