"""Models and checkpoints with a valid digest and a wrong field are refused in one printable line, without a
traceback.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

import ftprl
from ftprl.cli.app import run
from oracles.forged import forge_model, forge_tensor, leaves, replaced

Capture = pytest.CaptureFixture[str]

WRONG: list[Any] = [
    None, True, -1, 0, 7, 2**63, 10**40, 1.5, -1e308, "", "x", "\x1b[2J\n", "\u202e", [], [[]], [1, 2, 3], {}, {"a": 1},
    "a" * 5000,
]  # fmt: skip
CSV = "y,w,a,b,t\n" + "".join(f"{i % 2},1,{i % 3},{i},word{i % 5} x\n" for i in range(1, 60))


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text(CSV)


def checkpoint(**options: Any) -> bytes:
    """Return a checkpoint within the second run of a model."""
    ftprl.train("d.csv", label="y", weight="w", text="t", bits=6, output="once", **options)
    ftprl.train("d.csv", resume="once", holdout=7, passes=2, checkpoint="c", every=50)
    return Path("c").read_bytes()


def check(body: bytes, capsys: Capture, what: object) -> list[int]:
    """Run every command on a file: documented exit codes, one line on stderr for errors, no exception."""
    Path("forged").write_bytes(body)
    codes = []
    for command in (["inspect", "forged"], ["inspect", "forged", "--json"], ["predict", "forged", "d.csv"],
                    ["certify", "forged"], ["train", "d.csv", "--resume", "forged", "-o", "m", "-q"]):  # fmt: skip
        code = run(command)
        out, err = capsys.readouterr()
        assert code in (0, 1, 2), (what, command)
        assert "Traceback" not in err
        if code:
            lines = err.splitlines()
            assert len(lines) == 1, (what, command, err)
            assert len(lines[0]) < 1000, (what, command, err)
        assert all(c == "\n" or c.isprintable() for c in out + err), (what, command, out, err)
        codes.append(code)
    return codes


SECTIONS = ("history", "reading", "run", "spec", "receipt", "hash_version")


def forge_every_field(section: str, some: int, capsys: Capture, **options: Any) -> None:
    """Forge each field below a section with each wrong value, or every n-th pair of them."""
    body = checkpoint(**options)
    capsys.readouterr()
    kept: list[dict[str, Any]] = []
    forge_model(body, lambda content: kept.append({section: content[section]}))
    content = kept[0]
    for path, new in list(itertools.product(leaves(content), WRONG))[::some]:
        forged = forge_model(body, lambda c: c.update(replaced(content, path, new)))  # noqa: B023
        check(forged, capsys, (path, new))


@pytest.mark.parametrize("section", SECTIONS)
def test_a_wrong_field_of_the_content(section: str, capsys: Capture) -> None:
    forge_every_field(section, 61, capsys, receipt=True)


@pytest.mark.slow
@pytest.mark.parametrize("receipt", [False, True])
@pytest.mark.parametrize("section", SECTIONS)
def test_every_wrong_field_of_the_content(section: str, receipt: bool, capsys: Capture) -> None:
    forge_every_field(section, 1, capsys, receipt=receipt, scale=0.1 if receipt else "auto")


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("reading.format", "\x1b[2J", "reading: format: a printable text"),
        ("reading.columns.a", "\x1b[2J", "reading: columns: a: one of ignore, label"),
        ("history.rows", -1, "history: rows: a whole number from 0"),
        ("history.progressive", [1, 2], "history: progressive"),
        ("run.fingerprint", 5, "run: fingerprint"),
        ("run.state.position.offset", "0", "run: state: position: offset: a whole number"),
        ("run.state.pass_rows", -1, "run: state: pass_rows: a whole number"),
        ("spec.loss", "\x1b", "spec: loss: one of"),
        ("spec.dim", 2**40, "spec: dim: a whole number from 1 to 4294967296"),
    ],
)
def test_the_line_names_the_field(path: str, value: Any, expected: str, capsys: Capture) -> None:
    body = checkpoint()
    capsys.readouterr()

    def change(content: dict[str, Any]) -> None:
        content.update(replaced(content, tuple(path.split(".")), value))

    assert set(check(forge_model(body, change), capsys, path)) == {2}
    assert run(["inspect", "forged"]) == 2
    assert expected in capsys.readouterr().err


def forge_every_tensor(some: int, capsys: Capture, **options: Any) -> None:
    """Forge some numbers of each tensor with each wrong value, or every n-th of them; NaN is always refused."""
    body = checkpoint(**options)
    capsys.readouterr()
    for name, tensor in load(body).items():
        if name == "provenance":
            continue
        values = (np.nan, np.inf, -np.inf, -1.0, 1e300, 0.0) if tensor.dtype.kind == "f" else (0, 2**32 - 1)
        positions = sorted({0, tensor.size // 2, tensor.size - 1})
        for value, at in list(itertools.product(values, positions))[::some]:

            def change(a: np.ndarray, at: int = at, value: float = value) -> None:
                with np.errstate(over="ignore"):
                    a.reshape(-1)[at] = value

            codes = check(forge_tensor(body, name, change), capsys, (name, at, value))
            if np.isnan(value):
                assert set(codes) == {2}, (name, at)


@pytest.mark.parametrize("scale", [0.1, (0.1, 1.0)])
def test_a_wrong_tensor(scale: Any, capsys: Capture) -> None:
    forge_every_tensor(7, capsys, scale=scale, receipt=True)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.1, "auto"])
@pytest.mark.parametrize("receipt", [False, True])
def test_every_wrong_tensor(scale: Any, receipt: bool, capsys: Capture) -> None:
    forge_every_tensor(1, capsys, scale=scale, receipt=receipt)


def test_a_provenance_of_another_shape(capsys: Capture) -> None:
    body = checkpoint(receipt=True, scale=0.1)
    capsys.readouterr()

    def digits(a: np.ndarray) -> None:
        text = a.tobytes().replace(b'"passes":', b'"passss":')
        a[...] = np.frombuffer(text, a.dtype)

    forged = forge_tensor(body, "provenance", lambda a: digits(a) if b"passes" in a.tobytes() else a.fill(0x20202031))
    assert set(check(forged, capsys, "provenance")) == {2}
