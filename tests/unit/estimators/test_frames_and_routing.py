"""Frames with named columns, `set_output`, metadata routing, and the receipts of several classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import ftprl
from ftprl import FTPRLClassifier, FTPRLRegressor
from ftprl.data.order import WAITING
from ftprl.errors import InvalidInput
from oracles import order_twin

TEXTS = ["win cash now", "see you at home", "cash for you", "at home now", "win win win"]


def columns(n: int = 300) -> tuple[dict[str, list[Any]], np.ndarray]:
    """Return a numeric code, a text and a number; the label depends on the code and the text."""
    code, text = [i * 7 % 4 for i in range(n)], [TEXTS[i % 5] for i in range(n)]
    y = np.array([int((code[i] in (0, 3)) != (i % 5 in (0, 2))) for i in range(n)])
    return {"code": code, "text": text, "size": [0.1 * (i % 11) for i in range(n)]}, y


@pytest.mark.parametrize(
    "make", [pandas.DataFrame, polars.DataFrame, pyarrow.table], ids=["pandas", "polars", "pyarrow"]
)
def test_columns_are_read_as_they_are_named(make: Callable[..., Any]) -> None:
    data, y = columns()
    X = make(data)
    classifier = FTPRLClassifier(categorical="code", text=["text"], bits=14).fit(X, y)
    same = ftprl.train(X, y, categorical="code", text=["text"], bits=14).model
    assert classifier.model_.state_digest() == same.state_digest()
    np.testing.assert_array_equal(classifier.predict_proba(X)[:, 1], same.predict(X))
    names = set(classifier.model_.weights_table()["name"].to_pylist())
    assert {"code=0", "code=3", "text=win", "text=cash", "size"} <= names
    assert list(classifier.feature_names_in_) == ["code", "text", "size"]
    parts, order = FTPRLClassifier(categorical="code", text=["text"], bits=14), order_twin.plan(len(y), WAITING).order
    for some in (order[:100], order[100:]):
        part = make({name: [values[row] for row in some] for name, values in data.items()})
        parts.partial_fit(part, y[some], classes=[0, 1])
    assert parts.model_.state_digest() == same.state_digest()
    with pytest.raises(AttributeError, match="hashed by name"):
        _ = classifier.coef_


def test_codes_of_a_frame_of_numbers_can_be_categories() -> None:
    data, y = columns()
    X = pandas.DataFrame({"code": data["code"], "size": data["size"]})
    as_numbers, as_codes = FTPRLRegressor().fit(X, y), FTPRLRegressor(categorical=["code"]).fit(X, y)
    assert as_numbers.model_.engine.spec.dim == 2
    assert {"code=0", "code=1", "code=2", "code=3"} <= set(as_codes.model_.weights_table()["name"].to_pylist())
    weighted = FTPRLRegressor(categorical=["code"]).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_array_equal(weighted.predict(X), as_codes.predict(X))


@pytest.mark.parametrize(("options", "name"), [({"categorical": ["0"]}, "categorical"), ({"text": "a"}, "text")])
def test_arrays_have_no_columns_to_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidInput, match=f"{name}= names columns of a data frame, got ndarray; pass a frame"):
        FTPRLClassifier(**options).fit(np.eye(4), [0, 1, 0, 1])


def test_a_column_that_is_not_there() -> None:
    data, y = columns(20)
    with pytest.raises(InvalidInput, match=r"text= .*'body'"):
        FTPRLClassifier(text="body").fit(pandas.DataFrame(data), y)


# ---- set_output and metadata routing ----


def numbers(n: int = 200) -> tuple[pandas.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return pandas.DataFrame(X, columns=["a", "b", "c"]), (X[:, 0] + rng.normal(size=n) > 0).astype(int)


@pytest.mark.parametrize("kind", ["pandas", "polars", "default"])
def test_frames_of_a_transformer_before_it(kind: str) -> None:
    X, y = numbers()
    pipeline = make_pipeline(StandardScaler(), FTPRLClassifier()).set_output(transform=kind).fit(X, y)
    plain = FTPRLClassifier().fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(pipeline.predict_proba(X), plain.predict_proba(StandardScaler().fit_transform(X)))
    assert hasattr(pipeline[-1], "feature_names_in_") == (kind != "default")
    assert type(pipeline.predict(X)) is np.ndarray


def test_sample_weights_are_routed() -> None:
    X, y = numbers()
    weight = np.where(y == 1, 2.0, 0.5)
    with sklearn.config_context(enable_metadata_routing=True):
        own = FTPRLClassifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(MaxAbsScaler(), own).fit(X, y, sample_weight=weight)
        expected = FTPRLClassifier().fit(MaxAbsScaler().fit_transform(X), y, sample_weight=weight)
        np.testing.assert_array_equal(
            pipeline.decision_function(X), expected.decision_function(MaxAbsScaler().fit_transform(X))
        )
        plain = make_pipeline(MaxAbsScaler(), FTPRLClassifier().set_fit_request(sample_weight=False))
        plain.fit(X, y)
        assert not np.array_equal(plain.decision_function(X), pipeline.decision_function(X))
        search = GridSearchCV(own, {"l2": [0.0, 1.0]}, cv=2).fit(X, y, sample_weight=weight)
        assert set(search.cv_results_["params"][0]) == {"l2"}
        regressor = FTPRLRegressor().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scores = cross_validate(regressor, X, y, params={"sample_weight": weight}, cv=2)["test_score"]
        assert np.isfinite(scores).all()
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(MaxAbsScaler(), FTPRLClassifier()).fit(X, y, sample_weight=weight)
        stream = FTPRLClassifier().set_partial_fit_request(sample_weight=True, classes=True)
        assert stream.get_metadata_routing().partial_fit.requests == {"classes": True, "sample_weight": True}


# ---- receipts ----


def test_each_class_has_its_certificate() -> None:
    X, y = numbers()
    y = y + (X["b"].to_numpy() > 0.5)
    three = FTPRLClassifier(receipt=True, multi_class="ovr").fit(X, y)
    assert len(three.certificates_) == len(three.classes_) == 3
    for certificate, model in zip(three.certificates_, three.models_, strict=True):
        assert certificate.regret <= certificate.bound * (1 + 1e-12)
        assert certificate.to_dict()["loss"] == model.engine.progress.loss
    with pytest.raises(AttributeError, match="there are 3 certificates, one per class; take them from certificates_"):
        _ = three.certificate_
    two = FTPRLClassifier(receipt=True).fit(X, y > 0)
    assert two.certificate_.to_dict() == two.certificates_[0].to_dict()
    with pytest.raises(AttributeError, match="a certificate needs receipt=True"):
        _ = FTPRLClassifier().fit(X, y).certificates_


def test_a_notebook_shows_every_estimator() -> None:
    """scikit-learn reads all attributes to display an estimator; missing ones must raise AttributeError."""
    X, y = numbers()
    data, labels = columns(60)
    for estimator in (
        FTPRLClassifier(),
        FTPRLClassifier().fit(X, y),
        FTPRLClassifier(receipt=True).fit(X, y),
        FTPRLClassifier(receipt=True).fit(X, y + (X["b"] > 0)),
        FTPRLClassifier(multi_class="softmax").fit(X, y + (X["b"] > 0)),
        FTPRLClassifier(loss="hinge").fit(X, y),
        FTPRLClassifier(text="text").fit(pandas.DataFrame(data), labels),
        FTPRLRegressor().fit(X, y),
        FTPRLRegressor().partial_fit(X, y),
    ):
        assert type(estimator).__name__ in estimator._repr_html_()
        assert "fit" in dir(estimator)
        repr(estimator)


@pytest.mark.parametrize(
    "make", [pandas.DataFrame, polars.DataFrame, pyarrow.table], ids=["pandas", "polars", "pyarrow"]
)
def test_columns_that_differ_are_named(make: Callable[..., Any]) -> None:
    data, y = columns()
    classifier = FTPRLClassifier().fit(make(data), y)
    for names, said in (
        (["code", "size"], "missing 'text'"),
        (["text", "size", "code"], "they are in another order"),
        (["code", "text", "size", "y"], "unseen 'y'"),
        (["y", "text", "size"], "missing 'code'; unseen 'y'"),
    ):
        with pytest.raises(ValueError, match=f"passed during fit: {said}; pass"):
            classifier.predict(make({name: {**data, "y": y}[name] for name in names}))


@pytest.mark.parametrize(
    "make", [pandas.DataFrame, polars.DataFrame, pyarrow.table], ids=["pandas", "polars", "pyarrow"]
)
@pytest.mark.parametrize("estimator", [FTPRLClassifier, FTPRLRegressor])
def test_labels_in_the_frame_and_labels_that_are_missing_are_refused(make: Callable[..., Any], estimator: Any) -> None:
    data, y = columns()
    for left_out in ((), ("text",)):
        some = {name: values for name, values in data.items() if name not in left_out}
        with pytest.raises(ValueError, match="labels that are no column of the data, got those of column 'bought'"):
            estimator().fit(make({**some, "bought": y}), y)
    with pytest.raises(ValueError, match="y= needs a label for each row, got nan in row 7;"):
        estimator().fit(make(data), np.where(np.arange(len(y)) == 7, np.nan, y))
