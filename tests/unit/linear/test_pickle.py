"""A model pickles, copies and comes through a pipe as the bytes of its file."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.errors import BadModel
from ftprl.linear import Model

ROWS = "".join(f"{1 if i % 3 else -1} | a{i % 7} b:{i / 10}\n" for i in range(60))


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("log.vw").write_text(ROWS)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("options", [{"scale": 0.1}, {}, {"receipt": True, "float64": True}])
def test_a_pickled_model_is_the_model(options: dict[str, Any], protocol: int) -> None:
    model = ftprl.train("log.vw", bits=6, output="m", **options).model
    for twin in (pickle.loads(pickle.dumps(model, protocol)), copy.deepcopy(model), copy.copy(model)):
        assert twin is not model
        twin.save("twin")
        assert Path("twin").read_bytes() == Path("m").read_bytes()
        batch = next(model.open("log.vw").batches())
        np.testing.assert_array_equal(twin.predict(batch), model.predict(batch))
        twin.engine.learn(next(ftprl.data.open("log.vw", dim=64).batches()))
        assert twin.to_bytes() != model.to_bytes() == Path("m").read_bytes()


def test_a_checkpoint_pickles_with_the_state_of_its_run() -> None:
    ftprl.train("log.vw", bits=6, receipt=True, checkpoint="c", every=40)
    model = Model.load("c")
    assert model.checkpoint is not None
    twin = pickle.loads(pickle.dumps(model))
    assert (twin.checkpoint, twin.provenance, twin.reading) == (model.checkpoint, model.provenance, model.reading)
    twin.save("twin")
    assert Path("twin").read_bytes() == Path("c").read_bytes()


def test_bytes_that_are_no_model() -> None:
    body = ftprl.train("log.vw", bits=6).model.to_bytes()
    for wrong in (b"", body[:-1], body + b"\0", body[:50] + b"!" + body[51:]):
        with pytest.raises(BadModel, match=r"^bytes: expected [ -~]+$"):
            Model.from_bytes(wrong)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell with <(...)")
@pytest.mark.parametrize("receipt", [False, True])
def test_a_model_read_from_a_pipe(receipt: bool) -> None:
    ftprl.train("log.vw", bits=6, receipt=receipt, output="m")
    program = f"{sys.executable} -m ftprl"
    commands = ["inspect --json {}", "predict {} log.vw"]
    commands += ["certify {} --json", "certify m --against {} --json"] if receipt else []
    for command in commands:
        outputs = []
        for name in ("m", "<(cat m)"):
            line = f"{program} {command.format(name)}"
            outputs.append(subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stdout)
        file, pipe = (text.replace('"m"', "FILE") for text in outputs)
        assert "/dev/fd" in pipe or pipe == file
        assert pipe.split(",")[1:] == file.split(",")[1:]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell with <(...)")
def test_a_pipe_without_end_is_refused() -> None:
    ftprl.train("log.vw", bits=6, output="m")
    for source, message in (("/dev/zero", "expected a model file, got"), ("<(cat m /dev/zero)", "is cut or has grown")):
        line = f"ulimit -v 8000000; {sys.executable} -m ftprl inspect {source}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr
