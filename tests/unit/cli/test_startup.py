"""What makes short commands quick: it may fail to foresee a table, but never gets in the way, nor stays in `watch`."""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ftprl.cli import startup
from ftprl.cli.app import run
from ftprl.linear import Model


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, dict[str, Any]]]]:
    """What was foreseen."""
    heard: list[tuple[int, dict[str, Any]]] = []
    monkeypatch.setattr("ftprl._core.prefault", lambda dim, **more: heard.append((dim, more)))
    monkeypatch.setattr(startup, "LARGE_FILE", 100)
    return heard


@pytest.fixture
def data(tmp_path: Path) -> str:
    (tmp_path / "a.vw").write_text("1 | a b\n-1 | c a\n" * 20)
    return str(tmp_path / "a.vw")


OPTIONS = {
    "": (2**22, 8, False, False),
    "--bits 10": (2**10, 8, False, False),
    "--dim 77 --receipt": (77, 8, False, True),
    "--scale 0.3 --bits 8": (2**8, 1, False, False),
    "--scale auto --bits 8 --float64": (2**8, 8, True, False),
    "--scale 0.1,0.2,0.4 --bits 8 --receipt": (2**8, 3, False, True),
}


@pytest.mark.parametrize("options", OPTIONS)
def test_what_is_expected_is_what_is_made(options: str, asked: list[Any], data: str, tmp_path: Path) -> None:
    model = tmp_path / "m"
    assert run(["train", data, "-o", str(model), "-q", *options.split()]) == 0
    dim, scales, float64, receipt = OPTIONS[options]
    expected = (dim, {"scales": scales, "float64": float64, "receipt": receipt})
    made = Model.load(model).engine
    assert (made.spec.dim, len(made.spec.scales), made.spec.float64, made.receipt) == OPTIONS[options]
    assert run(["predict", str(model), data, "-o", str(tmp_path / "p")]) == 0
    assert run(["train", data, "-o", str(model), "-q", "--resume", str(model)]) == 0
    assert asked == [expected] * 3


def test_little_data_and_what_is_not_a_file_expect_nothing(asked: list[Any], data: str, tmp_path: Path) -> None:
    (tmp_path / "few.vw").write_text("1 | a\n-1 | b\n")
    few = str(tmp_path / "few.vw")
    assert run(["train", few, "-o", str(tmp_path / "m"), "-q", "--bits", "4"]) == 0
    assert run(["predict", str(tmp_path / "m"), few, "-o", str(tmp_path / "p")]) == 0
    assert run(["train", str(tmp_path / "nothing.vw"), "-o", str(tmp_path / "n"), "-q"]) == 2
    assert asked == []


HEADERS = (b"", b"\xff" * 9, b"\x10\0\0\0\0\0\0\0" + b"[" * 16, b"\x02\0\0\0\0\0\0\0{}", b"\x02\0\0\0\0\0\0\0[]")


@pytest.mark.parametrize("raw", HEADERS)
def test_a_broken_header_is_left_to_the_loader(
    raw: bytes, asked: list[Any], data: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m").write_bytes(raw)
    assert run(["predict", str(tmp_path / "m"), data]) == 2
    assert str(tmp_path / "m") in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize("spec", [{"dim": "x"}, {"dim": -1}, {"dim": 2**80}, {"dim": 4, "float64": 3}])
def test_a_header_that_lies_does_no_harm(spec: dict[str, Any], data: str, tmp_path: Path) -> None:
    """The real `prefault`, with numbers that nobody wrote."""
    content = {"spec": {"scale": 0.1, "float64": False, **spec}, "receipt": True}
    text = json.dumps({"__metadata__": {"content": json.dumps(content)}}).encode()
    (tmp_path / "m").write_bytes(len(text).to_bytes(8, "little") + text)
    startup.expect_saved([data], tmp_path / "m")
    assert run(["predict", str(tmp_path / "m"), data]) == 2


@pytest.mark.parametrize(
    "options", ["--bits -3", "--bits 99", "--dim 0", "--dim -5", f"--dim {10**23}", "--scale ,,,,,,,,,,,,,,,,,,,,,"]
)
def test_options_out_of_range_are_left_to_the_learner(
    options: str, data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "LARGE_FILE", 0)
    assert run(["train", data, "-o", str(tmp_path / "m"), "-q", *options.split()]) == 2
    assert not (tmp_path / "m").exists()


def test_the_rows_are_learned_the_same(data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["train", data, "-o", str(tmp_path / "plain"), "-q"]) == 0
    monkeypatch.setattr(startup, "LARGE_FILE", 0)
    assert run(["train", data, "-o", str(tmp_path / "early"), "-q"]) == 0
    one, other = (Model.load(tmp_path / name).engine for name in ("plain", "early"))
    np.testing.assert_array_equal(one.touched(), other.touched())
    np.testing.assert_array_equal(one.take(one.touched()), other.take(other.touched()))


@pytest.fixture
def _collected() -> Iterator[None]:
    """Leave garbage collection as it was."""
    yield
    gc.enable()
    gc.unfreeze()


@pytest.mark.usefixtures("_collected")
def test_a_short_command_collects_garbage_again_once_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    startup.begin(["train", "a.vw"])
    assert not gc.isenabled()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "2"
    startup.loaded()
    assert gc.isenabled()


@pytest.mark.parametrize("args", [["watch", "run.jsonl"], ["report", "run.jsonl", "--serve"]])
def test_nothing_of_it_where_a_command_stays(args: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    startup.begin(args)
    assert gc.isenabled()
    assert "OPENBLAS_NUM_THREADS" not in os.environ
    with pytest.raises(SystemExit, match="3"):
        startup.end(args, 3)
