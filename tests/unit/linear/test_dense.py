"""Arrays are scored by a matrix product where the score is linear: the same numbers up to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ftprl import train
from ftprl.errors import FtprlError
from ftprl.estimators import FTPRLClassifier
from ftprl.linear import Model
from ftprl.linear.experts import score_array

Vector = NDArray[np.float64]
LABELS = {"logistic": "signs", "hinge": "signs", "squared": "any", "quantile": "any", "poisson": "counts"}


MORE = ({}, {"float64": True}, {"l1": 0.5}, {"bounds": {"0": (0.2, 1)}}, {"intercept": False})


@pytest.fixture(scope="module")
def rows() -> tuple[Vector, dict[str, Vector]]:
    """An array with zeros and columns of different sizes, and labels of three kinds."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(5000, 12)) * np.logspace(-2, 3, 12)
    X[rng.random(X.shape) < 0.2] = 0.0
    s = X @ (rng.normal(size=12) / np.logspace(-2, 3, 12)) + rng.normal(size=5000)
    return X, {"signs": (s > 0.5) * 1.0, "any": 3.0 * s + 100.0, "counts": rng.poisson(np.exp(np.clip(s, -2, 2)))}


def row_by_row(model: Model, X: NDArray[Any]) -> Vector:
    """The scores as the core computes them from batches."""
    return np.concatenate([model.score(batch) for batch, _ in model.open(X).read()])


@pytest.mark.parametrize("loss", LABELS)
@pytest.mark.parametrize(
    "more", [{}, {"float64": True}, {"l1": 0.5}, {"bounds": {"0": (0.2, 1)}}, {"intercept": False}]
)
def test_one_scale(rows: tuple[Vector, dict[str, Vector]], loss: str, more: dict[str, Any]) -> None:
    X, y = rows
    model = train(X, y[LABELS[loss]], loss=loss, scale=0.1, **more).model
    for form in (X, X.astype(np.float32), np.asfortranarray(X), X[::2], np.round(X).astype(int)):
        scores, wanted = model.predict(form, raw=True), row_by_row(model, form)
        np.testing.assert_allclose(scores, wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())
        np.testing.assert_allclose(model.predict(form), model.mean(wanted), rtol=1e-11)
        assert len(np.unique(scores)) > 100


def test_learning_changes_the_weights(rows: tuple[Vector, dict[str, Vector]]) -> None:
    X, y = rows
    model = train(X, y["signs"], scale=0.1).model
    before = model.predict(X, raw=True)
    for batch, _ in model.open_labelled(X[:9], y=y["signs"][:9]).read():
        model.learn(batch)
    after = model.predict(X, raw=True)
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(after, row_by_row(model, X), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("loss", LABELS)
def test_scores_of_several_scales_are_mixed_as_row_by_row(rows: tuple[Vector, dict[str, Vector]], loss: str) -> None:
    X, y = rows
    model = train(X, y[LABELS[loss]], loss=loss).model
    assert score_array(model.engine, X, narrow=True) is not None
    np.testing.assert_allclose(model.predict(X, raw=True), row_by_row(model, X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("options", [{"scale": 0.1, "calibrate": "platt"}, {"scale": 0.1, "loss": "softmax"}])
def test_scores_that_are_not_linear_come_from_the_core(
    rows: tuple[Vector, dict[str, Vector]], options: dict[str, Any]
) -> None:
    X, y = rows
    model = train(X, y["signs"], **{"scale": 0.1, **options}).model
    assert score_array(model.engine, X, narrow=True) is None
    np.testing.assert_array_equal(model.predict(X, raw=True), row_by_row(model, X))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e31])
def test_values_that_are_refused(rows: tuple[Vector, dict[str, Vector]], value: float) -> None:
    X, y = rows
    model = train(X, y["signs"], scale=0.1).model
    wrong = X.copy()
    wrong[4321, 5] = value
    with pytest.raises(FtprlError, match="row 4321"):
        model.predict(wrong)
    with pytest.raises(FtprlError, match="12 columns"):
        model.predict(X[:, :11])


def test_the_estimator(rows: tuple[Vector, dict[str, Vector]]) -> None:
    X, y = rows
    fitted = FTPRLClassifier(scale=0.1).fit(X, y["signs"])
    p = fitted.model_.mean(row_by_row(fitted.model_, X))
    np.testing.assert_allclose(fitted.predict_proba(X), np.column_stack((1 - p, p)), rtol=1e-10)
