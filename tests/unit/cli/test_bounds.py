"""`train --bound` from the command line to a receipt that `verify` confirms, in every kind of file."""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.data import clicks
from ftprl.estimators import FTPRLClassifier, FTPRLRegressor
from ftprl.online import OnlineClassifier

CSV = "price,size,city,y\n" + "1,3,Oslo,1\n2,1,Rome,0\n3,2,Oslo,1\n4,1,Rome,1\n2,2,Bonn,0\n" * 30


@pytest.fixture
def sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "sales.csv"
    path.write_text(CSV)
    return path


def weights_of(path: str) -> dict[str, float]:
    return {row["name"]: row["weight"] for row in ftprl.load(path).weights_table().to_pylist()}


@pytest.mark.parametrize("scale", ["0.5", "auto"])
def test_train_inspect_certify_and_verify(sales: Path, scale: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = "--label y --receipt --scale " + scale
    bounds = ["--bound", "price=:0", "--bound", "city=-0.01:0.02", "--bound", "prize=0:"]
    assert run(["train", "sales.csv", *options.split(), *bounds, "-o", "m", "--interactions", "price:size"]) == 0
    assert "--bound 'prize' fits no feature of the data" in capsys.readouterr().err
    weights = weights_of("m")
    assert weights["price"] <= 0.0
    assert all(-0.01 <= w <= 0.02 for name, w in weights.items() if name.startswith("city="))
    assert weights["size"] > 0.02
    assert weights["price*size"] > 0.02  # a bound of a column is not one of its interactions
    assert run(["inspect", "m"]) == 0
    shown = capsys.readouterr().out
    assert "4 weights have bounds by name" in shown
    assert "bounds=price=:0,city=-0.01:0.02,prize=0:" in shown
    assert run(["certify", "m", "-o", "r"]) == 0
    assert run(["verify", "r", "sales.csv", "--model", "m"]) == 0
    receipt = json.loads(Path("r").read_text())
    assert receipt["spec"]["bounds"] == [["price", None, 0.0], ["city", -0.01, 0.02], ["prize", 0.0, None]]
    assert run(["certify", "m", "--radius", "1", "--exact", "sales.csv", "-o", "r"]) == 0
    assert run(["verify", "r", "sales.csv"]) == 0
    capsys.readouterr()
    Path("r").write_text(Path("r").read_text().replace("-0.01", "-0.02"))
    assert run(["verify", "r", "sales.csv"]) != 0


def test_several_classes_from_training_to_verify(sales: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The range holds in every class, for certify, verify and learning one row at a time."""
    bounds = {"price": (0.0, None), "city": (-0.01, 0.02)}
    texts = ["--bound", "price=0:", "--bound", "city=-0.01:0.02"]
    options = ["--label", "city_of", "--loss", "softmax", "--classes", "Oslo,Rome,Bonn"]
    lines = CSV.splitlines()
    sales.write_text("\n".join([f"{lines[0]},city_of", *(f"{line},{line.split(',')[2]}" for line in lines[1:])]) + "\n")
    assert run(["train", "sales.csv", *options, *texts, "--receipt", "-q", "-o", "m", "--order", "given"]) == 0
    model = ftprl.load("m")
    slots = model.engine.touched()
    lower, upper = model.engine.limits_at(slots)
    assert (upper < 1.0).sum() == 3
    for k in range(8):
        weights = model.engine.weights(k)[:, slots]
        assert weights.shape[0] == 3
        assert ((lower <= weights) & (weights <= upper)).all()
    assert run(["certify", "m", "-o", "r"]) == 0
    assert run(["verify", "r", "sales.csv", "--model", "m"]) == 0
    assert run(["predict", "m", "sales.csv", "--probabilities", "-o", "p.csv"]) == 0
    row = {"price": 2.0, "size": 1.0, "city": "Rome", "y": 0.0}
    online = OnlineClassifier(classes=("Oslo", "Rome", "Bonn"), bounds=bounds, receipt=True)
    with sales.open() as file:
        for read in csv.DictReader(file):
            label = read.pop("city_of")
            online.learn_one({name: text if name == "city" else float(text) for name, text in read.items()}, label)
    assert online.model.state_digest() == model.state_digest()
    assert list(online.predict_proba_one(row).values()) == model.predict([row])[0].tolist()
    assert [float(p) for p in Path("p.csv").read_text().splitlines()[1].split(",")] == model.predict([row])[0].tolist()
    capsys.readouterr()


def test_names_that_share_cells_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    clicks.generate(300, 3, tmp_path / "c.csv.gz")
    call = [*["train", "c.csv.gz", "--label", "click", "--bits", "8", "-q", "-o", "m", "--bound"], "C*=-1:0.1"]
    assert run(call) == 0
    err = capsys.readouterr().err
    model = ftprl.load("m")
    cells, shared = model.shared_bounds
    assert shared is None  # known while it is trained
    assert re.search(rf"\b[1-9]\d* of {cells} weights with bounds are shared by several names", err)
    assert model.engine.weights().max() <= 0.1 or cells < 256
    assert run([*call, "--names", "0"]) == 0
    assert ftprl.load("m").shared_bounds == (cells, None)


def test_every_format_has_the_same_bounds(sales: Path) -> None:
    """CSV, JSON lines, Parquet, a frame and dicts have equal columns; VW text and libsvm have their own names."""
    import pandas as pd

    frame = pd.read_csv(sales)
    frame.to_parquet("sales.parquet")
    frame.to_json("sales.jsonl", orient="records", lines=True)
    with gzip.open("sales.csv.gz", "wt") as out:
        out.write(CSV)
    bounds = {"price": (None, 0), "city=O*": (0.005, 0.01)}
    sources = ["sales.csv", "sales.csv.gz", "sales.parquet", "sales.jsonl", frame, frame.to_dict("records")]
    digests = {ftprl.train(data, label="y", bounds=bounds).model.state_digest() for data in sources}
    assert len(digests) == 1
    Path("s.vw").write_text("".join(f"{1 if y else -1} |n price:{p} |c {c}\n" for p, _, c, y in frame.to_numpy()))
    model = ftprl.train("s.vw", bounds={"n^price": (None, 0), "c": (0.005, 0.01)}, scale=0.5).model
    ftprl.Model.save(model, "v")
    weights = weights_of("v")
    assert weights["n^price"] <= 0
    assert all(0.005 <= weights[f"c^{city}"] <= 0.01 for city in ("Oslo", "Rome", "Bonn"))
    Path("s.libsvm").write_text("".join(f"{1 if y else -1} 1:{p} 7:{s}\n" for p, s, _, y in frame.to_numpy()))
    weights = ftprl.train("s.libsvm", bounds={"[17]": (-0.001, 0.002)}, scale=0.5).model.weights()
    assert set(np.flatnonzero(weights)) <= {1, 7}
    assert (np.abs(weights) <= 0.002).all()
    assert weights.any()


def test_estimators_know_columns_by_number_and_name(sales: Path) -> None:
    import pandas as pd

    frame = pd.read_csv(sales)
    X, y = frame[["price", "size"]], frame["y"]
    by_name = FTPRLClassifier(bounds={"pr*": (None, 0)}).fit(X, y)
    by_number = FTPRLClassifier(bounds={0: (None, 0)}).fit(X.to_numpy(), y)
    assert by_name.coef_[0, 0] <= 0 < by_name.coef_[0, 1]
    np.testing.assert_array_equal(by_name.decision_function(X), by_number.decision_function(X.to_numpy()))
    more = (
        FTPRLClassifier(bounds={"pr*": (None, 0)})
        .partial_fit(X[:70], y[:70], classes=[0, 1])
        .partial_fit(X[70:], y[70:])
    )
    once = FTPRLClassifier(bounds={0: (None, 0)}).partial_fit(X.to_numpy(), y, classes=[0, 1])  # in the given order
    assert more.coef_[0, 0] <= 0 < more.coef_[0, 1]
    np.testing.assert_array_equal(more.decision_function(X), once.decision_function(X.to_numpy()))
    table = FTPRLClassifier(bounds={"price": (None, 0), "city": (0, 0)}).fit(frame.drop(columns="y"), y)
    probe = frame.drop(columns="y")[:3].assign(price=[1.0, 50.0, 900.0], city="Oslo", size=2.0)
    assert (np.diff(table.predict_proba(probe)[:, 1]) <= 0).all()
    other = probe.assign(city="Rome")
    np.testing.assert_array_equal(table.decision_function(other), table.decision_function(probe))
    line = FTPRLRegressor(bounds={"size": (0, None)}).fit(X, -3.0 * X["size"])
    assert line.coef_[1] == 0.0 if line.coef_.ndim == 1 else line.coef_[0, 1] == 0.0
