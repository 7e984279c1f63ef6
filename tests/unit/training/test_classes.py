"""Several classes from data to predictions: every format has equal classes, and the command line names them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftprl
from ftprl.cli.app import run
from ftprl.errors import FtprlError, InvalidInput

pa = pytest.importorskip("pyarrow")
KINDS = ("red", "green", "blue", "7")  # the last is a number
ROWS = 400


def table(seed: int = 0) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(ROWS, 3)), 2)
    scores = X @ np.array([[3, 0, -3, 0], [0, 3, 0, -3], [1, 1, 0, 0.5]]) + rng.gumbel(size=(ROWS, 4))
    return [KINDS[k] for k in scores.argmax(axis=1)], X


def write(folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Write the rows in every format; return the data and the options."""
    import pandas as pd
    import pyarrow.parquet as pq

    labels, X = table()
    frame = pd.DataFrame({"kind": labels, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    frame.to_csv(folder / "d.csv", index=False)
    frame.to_csv(folder / "d.tsv", index=False, sep="\t")
    pq.write_table(pa.Table.from_pandas(frame), folder / "d.parquet")
    rows = frame.to_dict("records")
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "d.vw").write_text("".join(f"{row['kind']} | a:{row['a']} b:{row['b']} c:{row['c']}\n" for row in rows))
    column = {"label": "kind"}
    return {
        "csv": (folder / "d.csv", column),
        "tsv": (folder / "d.tsv", column),
        "parquet": (folder / "d.parquet", column),
        "jsonl": (folder / "d.jsonl", column),
        "vw": (folder / "d.vw", {}),
        "frame": (frame, column),
        "dicts": (rows, column),
        "frame with y": (frame.drop(columns="kind"), {"y": labels}),
    }


def test_every_format_has_the_same_classes_and_predictions(tmp_path: Path) -> None:
    losses = {}
    for name, (data, options) in write(tmp_path).items():
        trained = ftprl.train(data, loss="softmax", classes=4, float64=True, **options)
        assert trained.model.classes is not None
        assert set(trained.model.classes) == {"red", "green", "blue", 7.0}, name
        losses[name] = trained.progressive_loss
    assert len(set(losses.values())) == 1, losses
    assert next(iter(losses.values())) < 0.8 * math.log(4)


def test_matrices_and_libsvm_agree(tmp_path: Path) -> None:
    labels, X = table()
    lines = [
        f"{label} " + " ".join(f"{j}:{v}" for j, v in enumerate(row, 1) if v) + "\n"
        for label, row in zip(labels, X.tolist(), strict=True)
    ]
    (tmp_path / "d.libsvm").write_text("".join(lines))
    shifted = np.hstack([np.zeros((ROWS, 1)), X])
    arrays = ftprl.train(shifted, labels, loss="softmax", classes=4)
    source = ftprl.data.open(tmp_path / "d.libsvm", loss="softmax", dim=4)
    text = ftprl.train(source, loss="softmax", classes=4)
    assert arrays.model.classes == text.model.classes
    assert arrays.progressive_loss == text.progressive_loss
    np.testing.assert_array_equal(arrays.model.predict(shifted), text.model.predict(tmp_path / "d.libsvm"))
    assert set(arrays.model.predict_classes(shifted)) <= {"red", "green", "blue", 7.0}
    declared = ftprl.train(shifted, labels, loss="softmax")
    assert declared.model.classes == (7.0, "blue", "green", "red")  # the labels of y, in order


def test_batches_keep_the_labels(tmp_path: Path) -> None:
    data, options = write(tmp_path)["csv"]
    straight = ftprl.train(data, loss="softmax", **options)
    cached = ftprl.train(data, loss="softmax", cache=tmp_path / "c.batches", **options)
    again = ftprl.train(data, loss="softmax", cache=tmp_path / "c.batches", **options)
    for other in (cached, again):
        assert other.model.classes == straight.model.classes
        assert other.model.state_digest() == straight.model.state_digest()


def test_threads_and_resuming_change_no_bit(tmp_path: Path) -> None:
    data, options = write(tmp_path)["csv"]
    whole = ftprl.train(data, loss="softmax", threads=0, **options)
    other = ftprl.train(data, loss="softmax", threads=2, **options)
    assert whole.model.state_digest() == other.model.state_digest()

    class Stop(Exception):
        pass

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "checkpoint" and event["rows"] >= 200:
            raise Stop

    saved = tmp_path / "saved.ftprl"
    with pytest.raises(Stop):
        ftprl.train(data, loss="softmax", checkpoint=saved, every=100, listener=stop, **options)
    resumed = ftprl.train(data, resume=saved)
    assert resumed.model.state_digest() == whole.model.state_digest()
    assert resumed.model.classes == whole.model.classes
    assert resumed.progressive_loss == whole.progressive_loss


def test_more_data_may_have_more_classes_up_to_the_most(tmp_path: Path) -> None:
    first = ftprl.train(np.eye(3), ["a", "b", "a"], loss="softmax", classes=3, output=tmp_path / "m.ftprl")
    assert first.model.classes == ("a", "b")
    more = ftprl.train(np.eye(3), ["c", "b", "a"], resume=tmp_path / "m.ftprl")
    assert more.model.classes == ("a", "b", "c")
    with pytest.raises(
        FtprlError,
        match=r"row 1: expected one of at most 3 classes \(a, b, c\), got the label 'x'; allow more with classes=",
    ):
        ftprl.train(np.eye(3), ["a", "x", "a"], resume=_saved(more, tmp_path))
    with pytest.raises(InvalidInput, match=r"classes= needs to be what the model was trained with, got 9"):
        ftprl.train(np.eye(3), ["a", "b", "a"], resume=tmp_path / "m.ftprl", classes=9)


def _saved(trained: Any, folder: Path) -> Path:
    trained.model.save(folder / "again.ftprl")
    return folder / "again.ftprl"


def test_a_class_too_many_can_be_left_out(tmp_path: Path) -> None:
    data, options = write(tmp_path)["csv"]
    trained = ftprl.train(data, loss="softmax", classes=3, on_bad_row="skip", **options)
    labels, _ = table()
    known = {str(label) if isinstance(label, str) else "7" for label in trained.model.classes or ()}
    assert len(known) == 3
    assert trained.bad_rows == sum(label not in known for label in labels)
    assert "expected one of at most 3 classes" in str(trained.first_bad)


def test_held_out_rows_and_passes(tmp_path: Path) -> None:
    labels, X = table()
    trained = ftprl.train(X, labels, loss="softmax", passes=3, holdout=5)
    assert trained.holdout is not None
    assert trained.holdout.mean < 1.0
    assert len(trained.reviews) >= 1
    assert trained.model.predict(X).shape == (ROWS, 4)
    again = ftprl.train(X, labels, loss="softmax", passes=3, holdout=5)
    assert again.model.state_digest() == trained.model.state_digest()


def test_weights_of_rows_count_as_copies() -> None:
    labels, X = table()
    twice = ftprl.train(np.repeat(X, 2, axis=0), np.repeat(labels, 2), loss="softmax", scale=0.1)
    weighted = ftprl.train(X, labels, loss="softmax", scale=0.1, weight=np.full(ROWS, 2.0))
    assert weighted.progressive.weight == twice.progressive.weight == 2 * ROWS
    assert weighted.progressive.baseline == pytest.approx(twice.progressive.baseline, rel=0.02)
    assert weighted.progressive_loss == pytest.approx(twice.progressive_loss, rel=0.1)


def test_sorted_rare_and_late_classes_stay_near_the_baseline() -> None:
    """On streams without any tuning the loss stays below that of the class frequencies so far."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5))
    y = (X @ rng.normal(size=(5, 4)) + rng.gumbel(size=(3000, 4))).argmax(axis=1)
    rare = np.where((y == 3) & (rng.random(3000) < 0.97), 0, y)
    late = np.where(np.arange(3000) < 2000, y % 3, y)
    for labels in (y, rare, late):
        assert ftprl.train(X, labels, loss="softmax").improvement > 10.0
    order = np.argsort(y, kind="stable")  # all rows of a class together: the frequencies know nothing better
    in_order = ftprl.train(X[order], y[order], loss="softmax")
    assert in_order.progressive_loss < 1.0
    assert in_order.improvement > 30.0


def test_one_against_the_rest() -> None:
    labels, X = table()
    trained = ftprl.train(X, labels, loss="ovr")
    assert trained.improvement > 30.0
    np.testing.assert_allclose(trained.model.predict(X).sum(axis=1), 1.0)


def test_events_and_confidence_name_classes(tmp_path: Path) -> None:
    data, options = write(tmp_path)["csv"]
    trained = ftprl.train(data, loss="softmax", events=tmp_path / "events.jsonl", **options)
    start, *_, end = trained.events
    assert start["spec"]["classes"] == 100
    progress = [event for event in trained.events if event["event"] == "progress"]
    assert progress[0]["prediction"] == ""  # no class was known
    assert all(event["label"] in KINDS for event in progress)
    assert all(event["prediction"] in KINDS for event in progress[1:])
    assert trained.confidence is not None
    assert trained.confidence.error_rate is not None
    assert trained.confidence.error_rate.lower < 0.5
    assert trained.confidence.calibration is None
    assert end["loss"] == trained.progressive_loss
    assert run(["report", str(tmp_path / "events.jsonl"), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "better than guessing the share of each class so far" in page
    assert "--receipt" not in page  # there is none


def test_the_command_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write(tmp_path)
    data, model = str(tmp_path / "d.csv"), str(tmp_path / "m.ftprl")
    predictions = str(tmp_path / "p.txt")
    options = ["--label", "kind", "--loss", "softmax", "--classes", "red,green,blue,7"]
    assert run(["train", data, *options, "-o", model, "--predictions", predictions]) == 0
    lines = Path(predictions).read_text().splitlines()
    assert len(lines) == ROWS
    assert set(lines) == set(KINDS)  # all were declared, so there is a prediction from the first row on
    capfd.readouterr()
    assert run(["predict", model, data]) == 0
    predicted = capfd.readouterr().out.splitlines()
    labels, _ = table()
    assert np.mean([a == b for a, b in zip(labels, predicted, strict=True)]) > 0.6
    assert run(["predict", model, data, "--probabilities"]) == 0
    rows = [[float(value) for value in line.split(",")] for line in capfd.readouterr().out.splitlines()]
    np.testing.assert_allclose(np.sum(rows, axis=1), 1.0, rtol=1e-9)
    assert [KINDS[int(np.argmax(row))] for row in rows] == predicted
    assert run(["inspect", model]) == 0
    shown = capfd.readouterr().out
    assert "4: red, green, blue, 7" in shown
    assert "class" in shown
    assert run(["inspect", model, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["classes"] == ["red", "green", "blue", 7.0]
    assert run(["inspect", model, "--row", "1,0.5,0.1"]) == 0
    assert "of class " in capfd.readouterr().out
    assert run(["predict", model, data, "--append", "-o", str(tmp_path / "out.csv")]) == 2
    assert "--append writes numbers, got a model of several classes" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--label", "kind"], "--loss softmax for several classes."),
        (["--label", "kind", "--classes", "3"], "--classes needs a loss of several classes, got --loss logistic"),
        (
            ["--label", "kind", "--loss", "ovr", "--receipt"],
            "--receipt needs a loss that is convex in the weights, got --loss ovr",
        ),
        (["--label", "kind", "--loss", "softmax", "--classes", "2"], ":"),
        (["--label", "kind", "--loss", "softmax", "--positive", "red"], "--positive needs a loss with two classes"),
    ],
)
def test_bad_input_has_one_line(
    args: list[str], message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert run(["train", str(tmp_path / "d.csv"), *args, "-q", "-o", str(tmp_path / "m.ftprl")]) == 2
    error = capfd.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert "classes=" not in error
    assert not (tmp_path / "m.ftprl").exists()


def test_a_third_label_of_a_logistic_run_names_the_loss(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "d.vw").write_text("1 | a\n0 | b\n2 | c\n")
    assert run(["train", str(tmp_path / "d.vw"), "-q", "-o", str(tmp_path / "m.ftprl")]) == 2
    error = capfd.readouterr().err
    assert "d.vw:3: expected the label 1 or 0, as in the rows before, got '2'; pass --loss softmax" in error


def test_a_name_of_a_class_has_a_longest(tmp_path: Path) -> None:
    (tmp_path / "d.vw").write_text(f"{'x' * 1001} | a\n")
    with pytest.raises(FtprlError, match=r"d.vw:1: expected a class with a name of at most 1000 bytes"):
        ftprl.train(tmp_path / "d.vw", loss="softmax")


def test_a_class_may_have_any_character(tmp_path: Path) -> None:
    classes = ("two\nlines", "New\u00a0York", "tab\there")
    rows = [{"x": i % 3, "c": "abc"[i % 3], "kind": classes[i % 3]} for i in range(60)]
    model = ftprl.train(rows, label="kind", loss="softmax", receipt=True, output=tmp_path / "m").model
    again = ftprl.load(tmp_path / "m")
    assert again.classes == model.classes == classes
    assert list(again.predict_classes(rows[-3:])) == [row["kind"] for row in rows[-3:]]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(["predict", str(tmp_path / "m"), str(tmp_path / "d.jsonl"), "-o", str(tmp_path / "p")]) == 0
    lines = (tmp_path / "p").read_text().split("\n")
    assert len(lines) == 61
    assert lines[57:60] == ["two\\nlines", "New\u00a0York", "tab\\there"]
    assert run(["certify", str(tmp_path / "m"), "-o", str(tmp_path / "r")]) == 0
    assert run(["inspect", str(tmp_path / "m")]) == 0
    assert run(["evaluate", str(tmp_path / "m"), str(tmp_path / "d.jsonl")]) == 0


def test_explain_and_weights_are_of_one_class() -> None:
    rows = [{"kind": "sun", "sky": 1.0}, {"kind": "rain", "cloud": 1.0}, {"kind": "snow", "cold": 1.0}] * 60
    model = ftprl.train(rows, label="kind", loss="softmax", missing="ignore").model
    explained = model.explain({"cloud": 1.0})
    assert explained.label == "rain"
    assert explained.contributions[0].name == "cloud"
    assert explained.contributions[0].contribution > 0
    total = explained.intercept + sum(one.contribution for one in explained.contributions) + explained.remainder
    assert total == pytest.approx(explained.score)
    assert explained.prediction == pytest.approx(float(model.predict([{"cloud": 1.0}])[0, 1]))
    other = model.explain({"cloud": 1.0}, label="sun")
    assert other.label == "sun"
    assert other.contributions[0].contribution < 0
    with pytest.raises(InvalidInput, match=r"label= needs a class of the model \(sun, rain, snow\), got 'fog'"):
        model.explain({"cloud": 1.0}, label="fog")
    table = model.weights_table().to_pylist()
    assert len(table) == 9
    own = {(row["name"], row["class"]): row["unit_weight"] for row in table}
    assert own["cloud", "rain"] > 0 > own["cloud", "sun"]
    assert sum(own["cloud", kind] for kind in ("sun", "rain", "snow")) == pytest.approx(0.0, abs=1e-9)


def test_whole_numbers_stay_ints_and_others_floats(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"a": ["x", "y", "z"] * 20, "y": [5, 7, 9] * 20})
    run = ftprl.train(frame, label="y", loss="softmax", bits=8, output=tmp_path / "model")
    for model in (run.model, ftprl.load(tmp_path / "model")):
        assert model.classes == (5, 7, 9)
        assert [type(label) for label in model.classes or ()] == [int, int, int]
        assert {type(label) for label in model.predict_classes(frame)} == {int}
    halves = ftprl.train(frame.assign(y=frame["y"] / 2), label="y", loss="softmax", bits=8).model
    assert [type(label) for label in halves.classes or ()] == [float, float, float]


def test_classes_that_were_expected_and_never_came_are_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    options = ["train", str(tmp_path / "d.csv"), "--label", "kind", "--loss", "softmax", "-o", str(tmp_path / "m")]
    for more, is_warned in (([], True), (["--classes", "9"], False), (["-q"], False)):
        assert run([*options, *more]) == 0
        assert ("4 classes were met, and up to 100 were expected" in capfd.readouterr().err) == is_warned
