"""Metrics of several classes against scikit-learn's."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.errors import InvalidInput
from ftprl.evaluation import ClassEvaluation, evaluate_classes
from ftprl.evaluation.blocks import Block
from ftprl.report import evaluation as report

metrics = pytest.importorskip("sklearn.metrics")


def rows(count: int = 500, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, count, p=np.arange(1, classes + 1) / sum(range(1, classes + 1)))
    scores = rng.normal(size=(count, classes))
    scores[np.arange(count), y] += 1.5
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return y, logs, rng.choice([0.5, 1.0, 2.0], count)


def test_numbers_are_those_of_scikit_learn() -> None:
    y, logs, weight = rows()
    names = ["a", "b", "c", "d"]
    blocks = [Block(1, y[:200].astype(float), weight[:200], logs[:200], None)]
    blocks.append(Block(201, y[200:].astype(float), weight[200:], logs[200:], None))
    actual = evaluate_classes(blocks, "model", names)
    predicted = logs.argmax(axis=1)
    own = {name: actual.metrics[name].value for name in actual.metrics}
    assert own["log loss"] == pytest.approx(metrics.log_loss(y, np.exp(logs), sample_weight=weight))
    assert own["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted, sample_weight=weight))
    assert own["macro F score"] == pytest.approx(metrics.f1_score(y, predicted, average="macro", sample_weight=weight))
    np.testing.assert_allclose(actual.confusion, metrics.confusion_matrix(y, predicted, sample_weight=weight))
    precision, recall, f_score, _ = metrics.precision_recall_fscore_support(y, predicted, sample_weight=weight)
    np.testing.assert_allclose([one.precision.value for one in actual.by_class], precision)
    np.testing.assert_allclose([one.recall.value for one in actual.by_class], recall)
    np.testing.assert_allclose([one.f_score for one in actual.by_class], f_score)
    assert [one.rows for one in actual.by_class] == np.bincount(y).tolist()
    for metric in actual.metrics.values():
        assert metric.lower < metric.value < metric.upper
        assert metric.baseline is not None


def test_intervals_hold_for_about_95_percent_of_samples() -> None:
    y, logs, _ = rows(40_000, seed=1)
    truth = {"log loss": metrics.log_loss(y, np.exp(logs)), "accuracy": metrics.accuracy_score(y, logs.argmax(axis=1))}
    truth["macro F score"] = metrics.f1_score(y, logs.argmax(axis=1), average="macro")
    inside = dict.fromkeys(truth, 0)
    for part in range(100):
        some = slice(400 * part, 400 * (part + 1))
        actual = evaluate_classes([Block(1, y[some].astype(float), np.ones(400), logs[some], None)], "m", list("abcd"))
        for name, value in truth.items():
            inside[name] += actual.metrics[name].lower <= value <= actual.metrics[name].upper
    assert all(88 <= count <= 100 for count in inside.values()), inside


def test_many_classes_have_no_interval_of_the_f_score() -> None:
    y, logs, _ = rows(600, classes=80)
    actual = evaluate_classes([Block(1, y.astype(float), np.ones(600), logs, None)], "m", [str(k) for k in range(80)])
    expected = metrics.f1_score(y, logs.argmax(axis=1), average="macro", labels=np.unique(y))
    assert actual.metrics["macro F score"].value == pytest.approx(expected)
    assert math.isnan(actual.metrics["macro F score"].lower)
    assert "and 50 more" in str(actual)
    assert "labels down" not in str(actual)


def test_a_model_is_measured_on_its_classes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    kinds = np.array(["x", "y", "z"])[(X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(600, 3))).argmax(axis=1)]
    model = ftprl.train(X[:400], kinds[:400], loss="softmax").model
    actual = model.evaluate(X[400:], y=kinds[400:])
    assert isinstance(actual, ClassEvaluation)
    chances = model.predict(X[400:])
    assert actual.metrics["log loss"].value == pytest.approx(
        metrics.log_loss(kinds[400:], chances, labels=["x", "y", "z"])
    )
    strange = np.where(np.arange(200) < 7, "other", kinds[400:])
    assert model.evaluate(X[400:], y=strange).unlabelled == 7
    assert model.classes == ("x", "y", "z")  # measuring teaches nothing
    with pytest.raises(InvalidInput, match=r"data needs rows with a label that the model knows"):
        model.evaluate(X[400:], y=["other"] * 200)
    lines = ["kind,a,b\n", *(f"{kind},{a},{b}\n" for kind, (a, b, _) in zip(kinds, X.tolist(), strict=True))]
    (tmp_path / "d.csv").write_text("".join(lines))
    paths = [str(tmp_path / name) for name in ("one.ftprl", "two.ftprl")]
    for path, loss in zip(paths, ("softmax", "ovr"), strict=True):
        ftprl.train(tmp_path / "d.csv", label="kind", loss=loss, output=path)
    data, page = str(tmp_path / "d.csv"), str(tmp_path / "page.html")
    assert run(["evaluate", paths[0], data, "-o", page]) == 0
    shown = capfd.readouterr().out
    assert "macro F score" in shown
    assert "labels down, predicted classes across:" in shown
    assert "Labels down, predicted classes across" in Path(page).read_text()
    assert run(["evaluate", paths[0], data, "--json"]) == 0
    assert len(json.loads(capfd.readouterr().out)["confusion"]) == 3
    assert run(["compare", *paths, "--data", data, "--loss", "softmax"]) == 0
    assert "rows" in capfd.readouterr().out
    assert run(["evaluate", "--predictions", data, data, "--label", "kind", "--loss", "softmax"]) == 2
    assert "several classes are measured for models alone" in capfd.readouterr().err


def test_a_picture_and_slices() -> None:
    y, logs, weight = rows()
    groups = np.where(np.arange(500) % 2, "odd", "even")
    actual = evaluate_classes([Block(1, y.astype(float), weight, logs, groups)], "m", list("abcd"), by="parity")
    assert [value for value, *_ in actual.slices] == ["even", "odd"]
    assert "by parity, each with its 95 % interval:" in str(actual)
    assert report.written(actual, "svg", "data").startswith(b"<svg")
    assert b"parity" in report.written(actual, "html", "data")
