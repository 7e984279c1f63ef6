"""Commands under a memory limit: a table that does not fit is refused in one line with its size."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ftprl.cli.app import run
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.engine import table_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS")
_LIMITED = """
import resource, sys
limit = int(sys.argv.pop(1)) * 2**20
import ftprl.cli.app, ftprl, numpy
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.exit(ftprl.cli.app.run(sys.argv[1:]))
"""


def limited(megabytes: int, *args: str) -> tuple[int, str]:
    command = [sys.executable, "-c", _LIMITED, str(megabytes), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.vw").write_text("".join(f"{1 if i % 3 else -1} | a{i % 70} b:{i / 10}\n" for i in range(3000)))


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        (["--bits", "31", "--scale", "0.1"], "34.4 GB for 2147483648 cells"),
        (["--bits", "28"], "24.7 GB for 268435456 cells"),
        (["--bits", "28", "--scale", "0.1", "--receipt"], "8.59 GB for 268435456 cells"),
    ],
)
def test_a_table_that_does_not_fit(options: list[str], needed: str) -> None:
    code, error = limited(3000, "train", "d.vw", "-o", "m", "-q", *options)
    assert code == 2
    assert len(error.splitlines()) == 1
    assert error.startswith("ftprl: --bits needs memory for the whole table, " + needed)
    assert "fewer --bits" in error
    assert not Path("m").exists()


def test_a_saved_model_that_does_not_fit() -> None:
    Model(Engine(Spec(dim=2**28, scale=0.1)), {"format": "vw"}).save("m")
    for command in (["inspect", "m"], ["predict", "m", "d.vw"]):
        code, error = limited(3000, *command)
        assert code == 2
        assert len(error.splitlines()) == 1
        assert error.startswith("ftprl: m: --bits needs memory for the whole table, 4.29 GB")


def test_memory_that_ends_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """An allocation that fails elsewhere is not reported as the table's."""

    def summary_of(*_: object) -> None:
        np.empty(2**58)

    Model(Engine(Spec(dim=100)), {"format": "vw"}).save("m")
    monkeypatch.setattr("ftprl.training.summary.summary_of", summary_of)
    assert run(["inspect", "m"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ftprl: out of memory: Unable to allocate 2.00 EiB")
    assert len(error.splitlines()) == 1


def test_a_run_under_a_limit_ends_in_the_same_bytes() -> None:
    assert limited(100_000, "train", "d.vw", "-o", "free", "-q", "--bits", "18")[0] == 0
    code, error = limited(1500, "train", "d.vw", "-o", "limited", "-q", "--bits", "18")
    assert (code, error) == (0, "")
    assert Path("free").read_bytes() == Path("limited").read_bytes()


@pytest.mark.parametrize("scale", [0.1, (0.1, 1.0), (0.1, 0.2, 0.3, 0.4, 0.5), "auto"])
@pytest.mark.parametrize("float64", [False, True])
def test_the_memory_of_a_table(scale: object, float64: bool) -> None:
    spec = Spec(dim=1000, scale=scale, float64=float64)  # type: ignore[arg-type]
    cells = Engine(spec).cells
    assert table_bytes(spec, False) == cells.nbytes + (4000 if spec.several else 0)


def test_without_a_size_the_memory_in_use_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ftprl.cli import app

    def fail(*_: object) -> None:
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(app.ftprl, "make_context", fail)
    assert app.run(["train"]) == 2
    message = capsys.readouterr().err
    assert re.fullmatch(r"ftprl: out of memory: more was needed than the \d+\.\d\d GB in use; raise .*\n", message)
