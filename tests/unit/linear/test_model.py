"""The model file: whole, exact, readable by others, and refused if a bit is wrong."""

from __future__ import annotations

import hashlib
import os
import resource
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from ftprl.data import Batch
from ftprl.errors import BadModel
from ftprl.linear import model_file
from ftprl.linear.engine import Engine
from ftprl.linear.model import Model
from ftprl.linear.spec import Spec


def rows(count: int, dim: int, seed: int) -> Batch:
    rng = np.random.default_rng(seed)
    entries = [{int(i): float(rng.normal()) for i in rng.choice(dim, size=3, replace=False)} for _ in range(count)]
    return Batch.from_rows(entries, y=np.where(rng.random(count) < 0.5, 1.0, -1.0))


def trained(dim: int = 64, count: int = 10, **spec: object) -> Model:
    model = Model(Engine(Spec(dim=dim, **spec)), {"format": "csv", "columns": {"ä": "numeric"}})  # type: ignore[arg-type]
    model.engine.learn(rows(count, dim, 0))
    return model


@pytest.mark.parametrize("count", [0, 3, 200], ids=["empty", "sparse", "dense"])
@pytest.mark.parametrize("float64", [False, True])
def test_resuming_is_never_having_stopped(count: int, float64: bool, tmp_path: Path) -> None:
    whole = trained(count=count, float64=float64, l1=0.01, upper=0.5)
    whole.save(tmp_path / "m")
    back = Model.load(tmp_path / "m")
    assert back.engine.spec == whole.engine.spec
    assert back.reading == whole.reading
    more = rows(50, 64, 1)
    whole.engine.learn(more)
    back.engine.learn(more)
    whole.save(tmp_path / "a")
    back.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    np.testing.assert_array_equal(whole.predict(more), back.predict(more))


def test_the_bare_safetensors_package_reads_it(tmp_path: Path) -> None:
    model = trained()
    digest = model.save(tmp_path / "m")
    raw = (tmp_path / "m").read_bytes()
    assert digest == hashlib.sha256(raw.replace(digest.encode(), b"")).hexdigest()
    with safe_open(tmp_path / "m", framework="numpy") as other:
        assert set(other.keys()) == {"baseline", "cells", "intercept", "slots", "tallies"}
        slots, cells = other.get_tensor("slots"), other.get_tensor("cells")
        assert other.metadata()["format"] == "ftprl-model"
    np.testing.assert_array_equal(cells, model.engine.cells[slots])
    assert model.occupied == len(slots)


def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    trained(dim=8, count=2).save(path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for bit in range(8) if at % 7 == 0 or at < 16 else (at % 8,):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            with pytest.raises(BadModel, match=r"^[^\n]*; [^\n]*$"):
                Model.load(path)


def test_every_truncation_and_every_tail_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    trained(dim=8, count=2).save(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(BadModel):
            Model.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(BadModel, match="the file is cut or has grown"):
        Model.load(path)


def test_a_model_of_another_version_is_refused_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "VERSION", "3")
    trained().save(tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(BadModel, match="expected ftprl-model version 2, got 'ftprl-model' '3'; use its own ftprl"):
        Model.load(tmp_path / "m")


def test_a_header_that_promises_too_much_allocates_nothing(tmp_path: Path) -> None:
    body = b'{"__metadata__":{"content":"{}","format":"ftprl-model","sha256":"' + b"0" * 64
    body += b'","version":"2"},"cells":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,16]}}'
    (tmp_path / "m").write_bytes(len(body).to_bytes(8, "little") + body + bytes(16))
    with pytest.raises(BadModel, match="to fill its place"):
        Model.load(tmp_path / "m")


def test_a_failing_write_leaves_the_old_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    trained().save(path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        trained(count=20).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["m"]


def large_tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, 2**32, 900_000, dtype=np.uint32) for name in ("a", "b")}


def test_a_large_file_has_the_digest_of_its_bytes(tmp_path: Path) -> None:
    """From some size on a separate thread computes the digest; it is equal."""
    tensors = large_tensors()
    digest = model_file.write(tmp_path / "m", {}, tensors)
    _, actual = model_file.read(tmp_path / "m")  # compares the digest
    assert all(np.array_equal(actual[name], tensors[name]) for name in tensors)
    raw = (tmp_path / "m").read_bytes()
    at = raw.index(digest.encode())
    assert hashlib.sha256(raw[:at] + raw[at + 64 :]).hexdigest() == digest
    assert model_file.to_bytes({}, tensors) == raw


def test_a_disk_that_is_full_in_the_middle_of_a_large_file(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"before")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, limit[1]))
    before = threading.active_count()
    try:
        with pytest.raises(OSError, match="File too large"):
            model_file.write(tmp_path / "m", {}, large_tensors())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert threading.active_count() == before
    assert (tmp_path / "m").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["m"]


def test_the_same_model_gives_the_same_bytes(tmp_path: Path) -> None:
    assert trained().save(tmp_path / "a") == trained().save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    ("loss", "link"), [("logistic", lambda s: 1 / (1 + np.exp(-s))), ("poisson", np.exp), ("gamma", np.exp)]
)
def test_predictions_are_means(loss: str, link: object) -> None:
    model = Model(Engine(Spec(loss=loss, dim=16)))
    batch = Batch.from_rows([{0: 1.0}, {1: 2.0}], y=[1.0, 1.0])
    model.engine.learn(batch)
    np.testing.assert_allclose(model.predict(batch), link(model.predict(batch, raw=True)))  # type: ignore[operator]
