"""Compact models: fewer cells, equal predictions to the bit, and no training or certificates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ftprl
from ftprl.cli.app import run
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.derived import needed

DIM = 64
LOSSES = ("logistic", "squared", "absolute", "poisson", "hinge")


def rows(seed: int, count: int, loss: str) -> Batch:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, count)
    features = [{int(i): float(rng.normal()) for i in rng.choice(DIM, n, replace=False)} for n in sizes]
    binary = loss in ("logistic", "hinge")
    y = np.where(rng.random(count) < 0.4, 1.0, -1.0) if binary else rng.poisson(3.0, count).astype(float)
    return Batch.from_rows(features, y=y.tolist())


@given(
    st.integers(0, 10**6),
    st.sampled_from(LOSSES),
    st.sampled_from(
        [{}, {"l1": 0.5}, {"l1": 5.0, "l2": 0.1}, {"l1": 3.0, "lower": 0.01}, {"coin": True, "dense": True}]
    ),
    st.sampled_from(["auto", 0.3]),
    st.booleans(),
    st.booleans(),
)
def test_it_predicts_the_same_to_the_bit(
    seed: int, loss: str, more: dict[str, Any], scale: float | str, wide: bool, receipt: bool
) -> None:
    additions = "coin" in more
    if additions and (scale != "auto" or receipt):
        return
    engine = Engine(Spec(loss=loss, dim=DIM, scale=scale, float64=wide, **more), receipt=receipt)
    engine.learn(rows(seed, 60, loss))
    model = Model(engine)
    small = Model.from_bytes(model.compact().to_bytes())
    assert small.is_compact
    assert not small.engine.receipt
    new = rows(seed + 1, 200, loss)
    np.testing.assert_array_equal(small.predict(new, raw=True), model.predict(new, raw=True))
    assert small.engine.progress == engine.progress
    if not additions and "lower" not in more:
        used = np.zeros(DIM, bool)
        for k in range(len(engine.spec.scales)):
            used |= engine.weights(k) != 0.0
        np.testing.assert_array_equal(small.engine.touched(), np.flatnonzero(used))


def test_the_file_shrinks_with_l1_and_cannot_be_used_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["generate", "clicks", "--rows", "1000", "-o", "d.vw"]) == 0
    capsys.readouterr()
    sizes = []
    for l1 in ("0", "0.5", "2"):
        assert run(["train", "d.vw", "-o", "m", "--bits", "16", "--l1", l1, "--receipt", "-q"]) == 0
        assert run(["compact", "m", "-o", f"s{l1}"]) == 0
        assert "it predicts the same and cannot be trained further" in capsys.readouterr().out
        sizes.append(Path(f"s{l1}").stat().st_size)
        for name in ("m", f"s{l1}"):
            assert run(["predict", name, "d.vw", "-o", f"{name}.txt"]) == 0
        assert Path("m.txt").read_bytes() == Path(f"s{l1}.txt").read_bytes()
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < 0.5 * sizes[0]
    assert run(["inspect", "s2", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["compact"] is True
    assert facts["occupied"] == facts["nonzero"]
    assert run(["inspect", "s2"]) == 0
    assert "it cannot be trained further or certified" in capsys.readouterr().out
    for command, words in (
        (["train", "d.vw", "--resume", "s2", "-o", "x"], "--resume needs a model with all it has learned"),
        (["certify", "s2"], "certify needs a model with its receipt, got a compact one"),
        (["compact", "m", "-o", "m"], "--output"),
        (["compact", "absent", "-o", "x"], "absent"),
        (["compact", "d.vw", "-o", "x"], "d.vw: expected"),
    ):
        assert run(command) == 2
        result = capsys.readouterr().err
        assert words in result
        assert result.count("\n") == 1
        assert not Path("x").exists()


@pytest.mark.parametrize(
    "more",
    [
        ("--l1", "1"),
        ("--l1", "1", "--scale", "0.3"),
        ("--l1", "1", "--passes", "2"),
        ("--l1", "0.5", "--classes", "2", "--loss", "softmax"),
        ("--calibrate", "platt"),
        ("--delay", "7"),
        (),
    ],
)
def test_train_saves_it_in_the_first_place(
    more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["generate", "clicks", "--rows", "600", "-o", "d.vw"]) == 0
    common = ["train", "d.vw", "--bits", "14", *more]
    capsys.readouterr()
    assert run([*common, "-o", "whole"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert run(["compact", "whole", "-o", "small", "-q"]) == 0
    assert run([*common, "-o", "direct", "--compact", "--checkpoint", "c", "--every", "100"]) == 0
    own = capsys.readouterr().err.splitlines()[-1]
    assert Path("direct").read_bytes() == Path("small").read_bytes()
    assert not Model.load("c").is_compact
    weights, whole, small = Model.load("small").occupied, *(Path(p).stat().st_size for p in ("whole", "small"))
    if "--l1" in more:
        occupied = Model.load("whole").occupied
        assert last == f"{weights} of {occupied} weights are not 0; {whole} bytes, or {small} with --compact"
        assert own == f"{weights} weights are not 0; the compact model has {small} bytes"
    else:
        assert "wrote whole" in last
        assert "wrote direct" in own
    for name in ("whole", "direct"):
        assert run(["predict", name, "d.vw", "-o", f"{name}.txt"]) == 0
        assert run(["evaluate", name, "d.vw", "--json"]) == 0
        assert run(["inspect", name]) == 0
        assert run(["export", name, "--python", f"{name}.py"]) == 0
    assert Path("whole.txt").read_bytes() == Path("direct.txt").read_bytes()
    capsys.readouterr()
    for command in (["certify", "direct"], ["train", "d.vw", "--resume", "direct", "-o", "x"]):
        assert run(command) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_what_it_cannot_be_saved_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.vw").write_text("1 | a\n-1 | b\n")
    for more, words in (
        (["--receipt"], "--compact leaves out what certify needs, got a receipt as well"),
        (["--checkpoint", "m"], "got the same file for --output and --checkpoint; name two files."),
    ):
        assert run(["train", "d.vw", "-o", "m", "--compact", *more]) == 2
        result = capsys.readouterr().err
        assert words in result
        assert result.count("\n") == 1
        assert not Path("m").exists()
    with pytest.raises(InvalidInput, match=r"compact= needs True or False, got 3"):
        ftprl.train("d.vw", compact=3)  # type: ignore[arg-type]


def test_python_gets_the_compact_model() -> None:
    data = [{"a": 1.0}, {"b": 2.0}, {"a": 1.0, "c": 1.0}], [1, -1, 1]
    whole, small = ftprl.train(*data, l1=0.4).model, ftprl.train(*data, l1=0.4, compact=True).model
    assert small.is_compact
    assert small.to_bytes() == whole.compact().to_bytes()
    assert small.size_in_bytes() == len(small.to_bytes())
    assert whole.size_in_bytes() == len(whole.to_bytes())


def test_python_refuses_it_too(tmp_path: Path) -> None:
    data = [{"a": 1.0}, {"b": 2.0}], [1, -1]
    small = ftprl.train(*data, l1=1.0).model.compact()
    small.save(tmp_path / "small")
    with pytest.raises(InvalidInput, match="resume= needs a model with all it has learned, got one that was made comp"):
        ftprl.train(*data, resume=tmp_path / "small")


@pytest.mark.parametrize("more", [{}, {"lower": 0.01, "l1": 1.0}, {"bounds": {"3": (0.2, 1.0)}}, {"loss": "squared"}])
def test_few_cells_of_a_large_table(more: dict[str, Any], tmp_path: Path) -> None:
    """The core has these cells alone; cells that were left out still have their weight and their bounds."""
    spec = Spec(dim=2**20, scale=0.3, **more)
    engine = Engine(spec)
    batch = Batch.from_rows([{7: 1.0, 2**20 - 1: 2.0}, {7: -1.0, 500: 1.0}] * 20, y=[1.0, -1.0] * 20)
    engine.learn(batch)
    whole = Model(engine, {"format": "libsvm"})
    whole.compact().save(tmp_path / "model")
    loaded, kept = Model.load(tmp_path / "model"), needed(engine).tolist()
    others = Batch.from_rows([{7: 1.0}, {3: 1.0}, {8: 1.0, 500: 0.5}, {2**20 - 1: 1.0, 2**19: 3.0}, {}], y=[1.0] * 5)
    for small in (whole.compact(), loaded, Model.from_bytes(loaded.to_bytes()), Model(loaded.engine.copy())):
        assert small.score(others).tolist() == whole.score(others).tolist()
        assert small.touched().tolist() == kept
        np.testing.assert_array_equal(small.weights(), whole.weights())
        cells = np.array([3, *kept])
        np.testing.assert_array_equal(small.engine.take(cells), engine.take(cells))
        np.testing.assert_array_equal(small.engine.weights_at(cells), engine.weights_at(cells))
        np.testing.assert_array_equal(small.engine.limits_at(cells), engine.limits_at(cells))
        with pytest.raises(InvalidInput, match="compact model"):
            small.learn(batch)
