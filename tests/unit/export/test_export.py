"""Exported models: the scorer in plain Python agrees to the bit, ONNX in ONNX Runtime to 1e-5."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import ftprl
from ftprl.cli.app import run
from ftprl.errors import BadFormat, InvalidInput, MissingExtra
from ftprl.export import python_source, write_onnx
from ftprl.linear import Engine, Model, Spec
from ftprl.losses import SCALAR_LOSSES
from laws.strategies import SEEDS, law

SETTINGS: list[dict[str, Any]] = [
    {"scale": 0.5},
    {"scale": "auto"},
    {"scale": (0.1, 1.0)},
    {"scale": "auto", "float64": True, "intercept": False},
    {"scale": "auto", "bounds": {"*": (0.01, None)}},
    {"scale": 0.3, "l1": 0.5, "l2": 0.1, "bounds": {"*": (None, 0.2)}},
    {"scale": "auto", "bounds": {"[01]": (0, None)}},
]
CALIBRATED: list[dict[str, Any]] = [
    {"scale": scale, "calibrate": kind} for scale in (3.0, "auto") for kind in ("platt", "isotonic")
]


def scorer(model: Model) -> dict[str, Any]:
    """Return the written scorer as a module."""
    own: dict[str, Any] = {"__name__": "scorer"}
    exec(compile(python_source(model), "scorer.py", "exec"), own)
    return own


def arrays(loss: str, seed: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 6)) * [1, 10, 0.1, 1, 1, 5] * (rng.random((rows, 6)) < 0.8)
    score = 0.3 * X @ rng.normal(size=6) + 0.5 * rng.normal(size=rows)
    kind = SCALAR_LOSSES[loss].labels
    labels = {
        "signs": np.where(score > 0, 1.0, -1.0),
        "nonnegative": rng.poisson(np.exp(np.clip(score, -2, 2))).astype(np.float64),
        "positive": np.exp(np.clip(score, -2, 2)) * rng.gamma(2.0, size=rows) + 0.01,
    }
    return X, labels.get(kind, 100.0 + 10.0 * score)


def session(model: Model, folder: Path) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
    write_onnx(model, folder / "m.onnx")
    opened = runtime.InferenceSession(str(folder / "m.onnx"), providers=["CPUExecutionProvider"])
    return lambda **inputs: tuple(opened.run(["score", "prediction"], inputs))


CASES = [
    (loss, settings) for loss in SCALAR_LOSSES for settings in SETTINGS[: 7 if loss in ("logistic", "absolute") else 2]
]


@pytest.mark.parametrize(("loss", "settings"), CASES, ids=str)
def test_every_loss_and_mixture(loss: str, settings: dict[str, Any], tmp_path: Path) -> None:
    X, y = arrays(loss, 4)
    model = ftprl.train(X, y, loss=loss, **settings).model
    check_exports(model, X[:60], tmp_path)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "quantile", "poisson"])
def test_columns_that_came_and_left(loss: str, tmp_path: Path) -> None:
    X, y = arrays(loss, 1, 700)
    X[: len(X) // 4, 4] = X[len(X) // 3 :, 1] = X[len(X) // 2 :, 2] = 0.0
    model = ftprl.train(X, y, loss=loss, order="given").model
    assert 0.0 in model.engine.saved_arrays["columns.facts"][:, 0]  # an empty place between others
    mixture, experts = model.engine.mixture, scorer(model)["SETTINGS"]["experts"]
    assert mixture is not None
    assert [expert["name"] for expert in experts] == [name for name in mixture.names if name != "drift"]
    assert sum(expert["weight"] for expert in experts) == pytest.approx(1.0)
    check_exports(model, X[-60:], tmp_path)


@pytest.mark.parametrize("settings", CALIBRATED, ids=str)
def test_calibrated_scores(settings: dict[str, Any], tmp_path: Path) -> None:
    X, y = arrays("logistic", 3)
    y[::3] *= -1  # so that the probabilities need it
    models = {order: ftprl.train(X, y, order=order, **settings).model for order in ("random", "given")}
    given = models["given"]
    (batch,) = given.open(X).batches()
    assert not np.allclose(given.engine.score(batch, calibrated=False), given.engine.score(batch), atol=0.05)
    wide = np.vstack([X[:40], 30 * X[:20]])  # scores beyond those that were seen
    for model in models.values():
        check_exports(model, wide, tmp_path)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss": "ovr"},
        {"scale": 0.5, "classes": 9},
        {"float64": True, "intercept": False},
        {"l1": 0.5, "l2": 0.1, "bounds": {"*": (0.01, 0.2)}},
    ],
    ids=str,
)
def test_several_classes(settings: dict[str, Any], tmp_path: Path) -> None:
    X, score = arrays("squared", 5)
    y = np.digitize(score, np.quantile(score, [0.2, 0.7]))
    model = ftprl.train(X, y, **{"loss": "softmax", **settings}).model
    own, probe = scorer(model), X[:60]
    expected, chances = model.predict(probe, raw=True), model.predict(probe)
    assert [own["score"](row) for row in probe.tolist()] == expected.tolist()
    labels = list(model.classes or ())
    for row, wanted in zip(probe.tolist(), chances, strict=True):
        assert own["predict"](row) == pytest.approx(dict(zip(labels, wanted, strict=True)), rel=1e-14)
    narrow = probe.astype(np.float32)
    for actual, raw in zip(session(model, tmp_path)(X=narrow), (True, False), strict=True):
        np.testing.assert_allclose(actual, model.predict(narrow.astype(np.float64), raw=raw), rtol=1e-9, atol=1e-9)


def test_several_classes_by_name(tmp_path: Path) -> None:
    rows = [{**row, "y": ("red", "green", "blue")[i % 3]} for i, row in enumerate(rows_of(3))]
    model = ftprl.train(rows, label="y", loss="softmax", bits=12, **KINDS).model
    plain = [{name: value for name, value in row.items() if name != "y"} for row in rows[:30]]
    own, (batch,) = scorer(model), list(model.open(plain).batches())
    assert [own["score"](row) for row in plain] == model.engine.score(batch).tolist()
    assert set(own["predict"](plain[0])) == {"red", "green", "blue"}
    (tmp_path / "scorer.py").write_text(python_source(model))
    done = subprocess.run(
        [sys.executable, tmp_path / "scorer.py"], input=json.dumps(plain[0]), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == own["predict"](plain[0])
    empty = Model(Engine(Spec(loss="softmax", classes=3, dim=4)))
    with pytest.raises(InvalidInput, match="export needs a model that has met a class"):
        python_source(empty)


def check_exports(model: Model, probe: np.ndarray, tmp_path: Path) -> None:
    own = scorer(model)
    expected = np.concatenate([model.score(batch) for batch, _ in model.open(probe).read()])
    np.testing.assert_allclose(model.predict(probe, raw=True), expected, rtol=1e-12, atol=1e-14)
    assert [own["score"](row) for row in probe.tolist()] == expected.tolist()
    assert [own["score"](dict(enumerate(row))) for row in probe.tolist()] == expected.tolist()
    np.testing.assert_allclose(
        [own["predict"](row) for row in probe.tolist()], model.predict(probe), rtol=1e-12, atol=1e-14
    )
    narrow = probe.astype(np.float32)
    scores, predictions = session(model, tmp_path)(X=narrow)
    for actual, raw in ((scores, True), (predictions, False)):
        wanted = model.predict(narrow.astype(np.float64), raw=raw)
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))
        assert np.abs(actual - wanted).max() <= 1e-12 * max(1.0, float(np.abs(wanted).max()))  # all in float64


def rows_of(seed: int, count: int = 150) -> list[dict[str, Any]]:
    """Return dicts with values of every kind, some missing."""
    rng = np.random.default_rng(seed)
    words = ["red", "Blue", "grün", "x_1", "a-b", "don't", "Émile"]
    rows: list[dict[str, Any]] = []
    for i in range(count):
        row = {
            "y": int(rng.integers(2)),
            "price": round(float(rng.normal(50, 20)), 2),
            "size": int(rng.integers(1, 9)),
            "city": str(rng.choice(["Oslo", "Rome", "a=b", "Zürich"])),
            "new": bool(rng.integers(2)),
            "age": float(rng.integers(18, 90)),
            "day": f"2024-0{rng.integers(1, 10)}-{rng.integers(10, 29)}",
            "at": f"2023-1{rng.integers(0, 3)}-{rng.integers(10, 29)}T{rng.integers(10, 24)}:3{i % 10}:00+02:00",
            "note": " ".join(rng.choice(words, rng.integers(0, 4))),
        }
        if i > 20:
            row = {name: None if name != "y" and rng.random() < 0.1 else value for name, value in row.items()}
        rows.append(row)
    return rows


KINDS = {"text": ("note",), "date": ("day", "at"), "bucket": ("age=4",), "boolean": ("new",), "categorical": ("city",)}


@pytest.mark.parametrize(
    "more", [{}, {"missing": "ignore"}, {"interactions": ["city:price", "*:size", "note:new:city"]}]
)
@law(3)
@given(seed=SEEDS)
def test_columns_of_every_kind(more: dict[str, Any], seed: int) -> None:
    rows = rows_of(seed)
    model = ftprl.train(rows, label="y", bits=14, **KINDS, **more).model
    own = scorer(model)
    probe = rows_of(seed + 1, 40)
    for row in probe:
        del row["y"]
    assert [own["score"](row) for row in probe] == model.predict(probe, raw=True).tolist()


def test_tables_dicts_and_unknown_keys(tmp_path: Path) -> None:
    import pandas as pd

    rows = rows_of(1)
    frame = pd.DataFrame(rows)[["y", "price", "size", "city"]]
    frame.to_csv(tmp_path / "t.csv", index=False)
    model = ftprl.train(tmp_path / "t.csv", label="y", bits=16).model
    probe = [{"price": 3.5, "city": "Rome", "size": 2}, {"size": 7, "price": None, "city": "new"}, {"price": 1e3}]
    text = "y,price,size,city\n,3.5,2,Rome\n,,7,new\n,1000,,\n"
    (tmp_path / "p.csv").write_text(text)
    assert [scorer(model)["score"](row) for row in probe] == model.predict(tmp_path / "p.csv", raw=True).tolist()
    model = ftprl.train([{k: v for k, v in row.items() if k != "at"} for row in rows], label="y").model
    probe = [{"price": 3.5, "other": 2.5, "tag": "x"}, {"flag": True, "city": "Oslo"}, {}]
    assert [scorer(model)["score"](row) for row in probe] == model.predict(probe, raw=True).tolist()


def nested_rows(seed: int, count: int = 120) -> list[dict[str, Any]]:
    """Return dicts with nested dicts, lists, names and values, and numbers where others have text."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for i in range(count):
        tags = [str(tag) for tag in rng.choice(["new", "red", "", "a=b"], rng.integers(0, 4))]
        words = [{"name": str(word), "value": float(rng.normal())} for word in rng.choice(["x", "y", "z"], 2)]
        row = {
            "y": int(rng.integers(2)),
            "user": {"age": int(rng.integers(9)), "home": {"city": str(rng.choice(["Oslo", "Rome"]))}},
            "tags": tags,
            "vector": [float(value) for value in rng.normal(size=rng.integers(0, 3))],
            "words": words if i % 5 else [{"key": 3, "value": 2.0}, {"name": "none", "value": None}],
            "mixed": [1.0, 2.5, 7, True, "text", None, 1e22][i % 7],
            "kinds": [["a", 1, None], [2.5], []][i % 3],
        }
        rows.append({name: value for name, value in row.items() if name == "y" or rng.random() < 0.9})
    return rows


@pytest.mark.parametrize(
    "more", [{}, {"missing": "ignore"}, {"missing": "indicator", "interactions": ["tags:user.age"]}]
)
def test_dicts_within_dicts_and_lists(more: dict[str, Any]) -> None:
    model = ftprl.train(nested_rows(1), label="y", bits=14, **more).model
    own = scorer(model)
    probe = [
        *nested_rows(2, 40),
        {"user": {"new": 3, "home": {"street": "a"}}, "later": {"k": [1, 2], "t": ["u", True]}},
        {"user": {}, "words": {"x": 2.0}, "tags": ("red",)},
        {"user": {"age": 3}, "y": {"k": 1}},  # a label is not read
        {"user": {"age": 3}, "user.age": 2, "tags": ["red"]},  # both count
        {"user.home.city": "Oslo", "user": {"home": {"city": "Rome"}}, "mixed": 1.0},
        {"user": [{"name": "age", "value": 4}, {"name": "new", "value": 2}, "odd", {"key": "age", "value": 5}]},
        {"user": {"home": [{"name": "city", "value": "Rome"}]}, "tags": None},
        {"user": [{"name": "age", "value": 4}, {"name": "age", "value": None}]},
    ]
    assert [own["score"](row) for row in probe] == model.predict(probe, raw=True).tolist()
    for bad in (
        {"tags": [["a"]]},
        {"words": [{"other": 1}]},
        {"words": [{"name": "x", "value": [1]}]},
        {"user": {"age": [1, [2]]}},
    ):
        with pytest.raises(ValueError, match="expected"):
            own["score"](bad)
        with pytest.raises(BadFormat, match="expected"):
            model.predict([bad])


def test_maps_of_tables() -> None:
    import pyarrow as pa

    maps = [[("k", 1.0), ("j", 2.0)], [("k", 3.0)], None, []] * 25
    texts = [[("k", "a")], None, [("k", "b"), ("j", "c")], []] * 25
    columns = {"m": pa.array(maps, pa.map_(pa.string(), pa.float64()))}
    columns |= {"t": pa.array(texts, pa.map_(pa.string(), pa.string())), "y": [i % 3 % 2 for i in range(100)]}
    model = ftprl.train(pa.table(columns), label="y", bits=14).model
    probe = [{"m": {"k": 2.0, "in": {"side": 1}}, "t": {"k": "a", "j": 3}}, {"m": {}, "t": None}, {"t": {"j": "c"}}]
    assert [scorer(model)["score"](row) for row in probe] == model.predict(probe, raw=True).tolist()
    with pytest.raises(ValueError, match="expected numbers or text in a dict, got a list in column 'm'"):
        scorer(model)["score"]({"m": {"k": [1]}})


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert run(["generate", "clicks", "--rows", "400", "--seed", "5", "-o", "c.vw"]) == 0
    return tmp_path / "c.vw"


def vw_rows(path: Path, count: int) -> list[dict[str, float]]:
    """Return the lines of VW text as dicts of features."""
    rows = []
    for line in path.read_text().splitlines()[:count]:
        row: dict[str, float] = {}
        for part in line.split("|")[1:]:
            namespace = part.partition(" ")[0]
            for token in part.split()[1 if namespace else 0 :]:
                name, _, value = token.partition(":")
                row[f"{namespace}^{name}" if namespace else name] = float(value or 1.0)
        rows.append(row)
    return rows


@pytest.mark.parametrize("interactions", [(), ["*:*"]])
def test_vw_text_and_cells(clicks: Path, tmp_path: Path, interactions: Any) -> None:
    """Names that share cells are added up; ONNX takes the cells of a row."""
    model = ftprl.train(clicks, bits=12, interactions=interactions).model
    own, rows = scorer(model), vw_rows(clicks, 100)
    expected = model.predict(clicks, raw=True)[:100]
    assert [own["score"](row) for row in rows] == expected.tolist()
    batch = next(iter(model.open(clicks).batches()))[:100]
    longest = int(np.diff(batch.indptr).max())
    cells, values = np.full((100, longest), -1), np.zeros((100, longest), np.float32)
    for r in range(100):
        entries = slice(batch.indptr[r], batch.indptr[r + 1])
        count = entries.stop - entries.start
        cells[r, :count], values[r, :count] = batch.indices[entries], batch.values[entries]
        pairs = zip(batch.indices[entries].tolist(), batch.values[entries].tolist(), strict=True)
        assert own["score_cells"](pairs) == expected[r]
    scores, _ = session(model, tmp_path)(cells=cells, values=values)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


def test_the_command(clicks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file runs by itself, without ftprl or any package."""
    pytest.importorskip("onnx", reason="the package onnx is not installed")
    assert run(["train", "c.vw", "-q", "--bits", "12", "-o", "m"]) == 0
    assert run(["export", "m", "--python", "scorer.py", "--onnx", "m.onnx"]) == 0
    assert "wrote scorer.py and m.onnx" in capsys.readouterr().err
    rows = vw_rows(clicks, 20)
    command = [sys.executable, "-I", "-S", "scorer.py"]
    done = subprocess.run(
        command, input="".join(json.dumps(row) + "\n" for row in rows), capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(
        [float(x) for x in done.stdout.split()], ftprl.load("m").predict(clicks)[:20], rtol=1e-15
    )
    for line in ("{", "3", '{"a": [}', ""):  # one line for what cannot be read, behind the predictions before it
        failed = subprocess.run(command, input=f"{json.dumps(rows[0])}\n{line}\n", capture_output=True, text=True)
        assert failed.returncode == 1
        assert failed.stdout == done.stdout[: len(failed.stdout)] != ""
        assert failed.stderr.startswith("line 2: expected a row as a JSON object, got ")
        assert failed.stderr.count("\n") == 1
    for wrong in ("export m", "export m --python m", "export m --python a --onnx a", "export c.vw --python s.py"):
        assert run(wrong.split()) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_bad_rows_have_one_line(clicks: Path) -> None:
    model = ftprl.train(clicks, bits=8).model
    own = scorer(model)
    for pairs in ([(0, 1e31)], [(0, float("nan"))], [(256, 1.0)], [(-1, 1.0)]):
        with pytest.raises(ValueError, match=r"^expected .*, got"):
            own["score_cells"](pairs)


def test_n_grams_are_refused() -> None:
    model = ftprl.train(rows_of(1), label="y", bits=12, text=("note",), ngrams=["note=2"]).model
    with pytest.raises(InvalidInput, match="a scorer in Python makes no n-grams"):
        python_source(model)


def test_onnx_is_an_extra(clicks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ftprl\[onnx\]'"):
        write_onnx(ftprl.train(clicks, bits=8).model, "m.onnx")
    assert not Path("m.onnx").exists()
