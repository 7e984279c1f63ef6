"""Equal rows in equal order give equal models and predictions, to the bit, through every interface.

`fit` and `train` may put the rows into a random order; `partial_fit` and `learn_one` then receive them in that order.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy.sparse import csc_matrix, csr_matrix

import ftprl
from ftprl import FTPRLClassifier, FTPRLRegressor, Model, OnlineClassifier, OnlineRegressor
from ftprl.cli.app import run
from ftprl.data.order import WAITING
from oracles import order_twin

ROWS = 300
ORDERS = {"random": order_twin.plan(ROWS, WAITING).order, "given": list(range(ROWS))}
BITS = 12
OPTIONS: list[dict[str, Any]] = [{}, {"scale": 0.1}, {"receipt": True}, {"scale": (0.1, 1.0), "l1": 0.01}]


def _saved(path: Path, arguments: list[str]) -> Model:
    """Return the model of `ftprl train`."""
    output = path.with_suffix(".ftprl")
    assert run(["train", str(path), "-q", "-o", str(output), *arguments]) == 0
    return ftprl.load(output)


def _flags(options: dict[str, Any]) -> list[str]:
    flags = {name: f"--{name}" for name in ("scale", "l1", "loss", "bits", "order")}
    text = [[flags[name], ",".join(map(str, np.atleast_1d(value)))] for name, value in options.items() if name in flags]
    return [word for pair in text for word in pair] + (["--receipt"] if options.get("receipt") else [])


def _agree(models: dict[str, Model], predictions: dict[str, np.ndarray]) -> None:
    digests = {name: model.state_digest() for name, model in models.items()}
    first = next(iter(digests.values()))
    assert [name for name, digest in digests.items() if digest != first] == []
    for values in predictions.values():
        np.testing.assert_array_equal(values, next(iter(predictions.values())))


# ---- features by number ----


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("is_classifier", [True, False], ids=["classifier", "regressor"])
def test_by_number(options: dict[str, Any], is_classifier: bool, order: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((ROWS, 30)) < 0.3, rng.normal(size=(ROWS, 30)), 0.0).astype(np.float32)
    X, score = csr_matrix(dense), dense @ rng.normal(size=30) + rng.normal(size=ROWS)
    y = (score > 0).astype(int) if is_classifier else np.round(10.0 * score + 500.0, 2)
    estimator, shuffle = FTPRLClassifier if is_classifier else FTPRLRegressor, order == "random"
    make: Callable[[], Any] = lambda: estimator(shuffle=shuffle, **options)  # noqa: E731
    first: dict[str, Any] = {"classes": [0, 1]} if is_classifier else {}

    fitted = {
        "fit": make().fit(X, y),
        "csc": make().fit(csc_matrix(X), y),
        "array": make().fit(dense, y),
        "float64": make().fit(X.astype(float), y),
    }
    X_learned, y_learned = X[ORDERS[order]], y[ORDERS[order]]
    for name, step in (("rows", 1), ("batches", 37)):
        parts = fitted[name] = make()
        for start in range(0, ROWS, step):
            parts.partial_fit(X_learned[start : start + step], y_learned[start : start + step], **first)
    text = tmp_path / "rows.libsvm"
    with text.open("w") as file:
        for row in range(ROWS):
            entries = " ".join(f"{j}:{v!r}" for j, v in zip(X[row].indices, X[row].data.tolist(), strict=True))
            file.write(f"{y[row].item()!r} {entries}\n")
    loss = {} if is_classifier else {"loss": "squared"}
    models = {name: estimator.model_ for name, estimator in fitted.items()}
    models["train"] = ftprl.train(X, y, order=order, **options, **loss).model
    models["libsvm"] = ftprl.train(ftprl.data.open(text, dim=30, **loss), order=order, **options, **loss).model
    scores = {name: model.predict(X, raw=True) for name, model in models.items()}
    _agree(models, scores)


# ---- features by name ----


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("is_classifier", [True, False], ids=["classifier", "regressor"])
def test_by_name(options: dict[str, Any], is_classifier: bool, order: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    columns: dict[str, list[Any]] = {
        "city": rng.choice(["Ulm", "Bonn", "Kiel", "Köln"], ROWS).tolist(),
        "size": np.round(rng.normal(size=ROWS), 3).tolist(),
        "rooms": rng.integers(0, 5, ROWS).tolist(),
        "street": rng.choice([f"street {i}" for i in range(40)], ROWS).tolist(),
    }
    score = np.array(columns["size"]) + (np.array(columns["city"]) == "Ulm") + rng.normal(size=ROWS)
    y = (score > 0).astype(int) if is_classifier else np.round(10.0 * score + 500.0, 2)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    frame, first = polars.DataFrame(columns), {"classes": [0, 1]} if is_classifier else {}
    estimator, shuffle = FTPRLClassifier if is_classifier else FTPRLRegressor, order == "random"
    make: Callable[[], Any] = lambda: estimator(bits=BITS, shuffle=shuffle, **options)  # noqa: E731

    pandas_frame = pandas.DataFrame(columns).astype({"city": "category"})
    fitted = {"fit": make().fit(frame, y), "pandas": make().fit(pandas_frame, y)}
    fitted["arrow"] = make().fit(pyarrow.table(columns), y)
    learned, y_learned = [rows[i] for i in ORDERS[order]], y[ORDERS[order]]
    frame_learned = frame[ORDERS[order]]
    for name, step in (("rows", 1), ("batches", 37)):
        parts = fitted[name] = make()
        for start in range(0, ROWS, step):
            parts.partial_fit(frame_learned[start : start + step], y_learned[start : start + step], **first)
    online_kind = OnlineClassifier if is_classifier else OnlineRegressor
    online = online_kind(bits=BITS, **options)
    for x, label in zip(learned, y_learned.tolist(), strict=True):
        online.learn_one(x, label)
    loss = {} if is_classifier else {"loss": "squared"}
    halfway = ftprl.train(learned[:100], y_learned[:100], bits=BITS, order="given", **options, **loss).model
    for x, label in zip(learned[100:], y_learned[100:].tolist(), strict=True):
        halfway.learn_one(x, label)
    text = tmp_path / "rows.csv"
    polars.DataFrame({**columns, "label": y}).write_csv(text)
    settings = {"bits": BITS, "order": order, **options, **loss}
    models = {name: estimator.model_ for name, estimator in fitted.items()} | {
        "learn_one": online.model,
        "train, then learn_one": halfway,
        "pickled": pickle.loads(pickle.dumps(online)).model,
        "frame": ftprl.train(frame, y, **settings).model,
        "dicts": ftprl.train(rows, y, **settings).model,
        "csv": ftprl.train(text, label="label", **settings).model,
        "ftprl train": _saved(text, ["--label", "label", *_flags(settings)]),
    }
    scores = {name: model.predict(rows, raw=True) for name, model in models.items()}
    scores["predict_one"] = np.array([online.model.predict_one(x, raw=True) for x in rows])
    _agree(models, scores)
    means = np.array([online.model.predict_one(x) for x in rows])
    np.testing.assert_array_equal(means, models["fit"].predict(frame))
    if options.get("receipt"):
        certificates = [model.engine.sums_of(0) for model in models.values()]
        assert all(certificate == certificates[0] for certificate in certificates)


def test_scales_and_the_coin_are_dropped_at_the_same_rows() -> None:
    """Up to 2^17 rows, at which scales may be dropped."""
    rng = np.random.default_rng(3)
    size = 2**17 + 5
    a, b = rng.integers(0, 6, size), rng.random(size).round(2)
    y = (a + 3.0 * b + rng.logistic(size=size) > 4.0).astype(int)
    names = [f"level {level}" for level in range(6)]
    online = OnlineClassifier(bits=8)
    for level, value, label in zip(a.tolist(), b.tolist(), y.tolist(), strict=True):
        online.learn_one({"a": names[level], "b": value}, label)
    frame = polars.DataFrame({"a": [names[level] for level in a.tolist()], "b": b})
    fitted = FTPRLClassifier(bits=8, shuffle=False).fit(frame, y)
    parts = FTPRLClassifier(bits=8)
    for start in range(0, size, 50_000):
        parts.partial_fit(frame[start : start + 50_000], y[start : start + 50_000], classes=[0, 1])
    assert fitted.model_.engine.spec == online.model.engine.spec
    assert len(online.model.engine.spec.scales) == 4  # of eight
    _agree({"fit": fitted.model_, "partial_fit": parts.model_, "learn_one": online.model}, {})
    shuffled = FTPRLClassifier(bits=8).fit(frame, y).model_
    _agree({"fit": shuffled, "train": ftprl.train(frame, y, bits=8).model}, {})
    assert len(shuffled.engine.spec.scales) < 8
