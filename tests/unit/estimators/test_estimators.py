"""The estimators: scikit-learn's own checks, and the numbers of `ftprl.train` for all forms of input."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from scipy.sparse import csc_matrix, csr_matrix, issparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import ftprl
from ftprl import FTPRLClassifier, FTPRLRegressor
from ftprl.data.order import WAITING
from ftprl.errors import FtprlWarning, InvalidInput
from oracles import order_twin

WEIGHTED = "rows are learned one by one, so a weight of 2 is not two rows"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTED,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTED,
}


@pytest.mark.parametrize(
    "estimator",
    [FTPRLClassifier(), FTPRLRegressor(), FTPRLClassifier(scale=0.1), FTPRLClassifier(loss="hinge")],
    ids=["classifier", "regressor", "one scale", "hinge"],
)
def test_scikit_learns_own_checks(estimator: FTPRLClassifier | FTPRLRegressor) -> None:
    results = check_estimator(estimator, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None)
    assert [result["check_name"] for result in results if result["status"] == "failed"] == []
    assert {result["check_name"] for result in results if result["status"] == "xfail"} == set(EXPECTED)


def fit_order(rows: int, seed: int = 0) -> list[int]:
    """Return the order in which `fit` learns a number of rows."""
    return order_twin.plan(rows, WAITING, seed).order


@pytest.fixture(scope="module")
def rows() -> tuple[csr_matrix, np.ndarray]:
    rng = np.random.default_rng(5)
    dense = np.where(rng.random((400, 30)) < 0.3, rng.normal(size=(400, 30)), 0.0).astype(np.float32)
    return csr_matrix(dense), (dense @ rng.normal(size=30) + rng.normal(size=400) > 0).astype(int)


def test_batch_is_loop(rows: tuple[csr_matrix, np.ndarray], tmp_path: object) -> None:
    X, y = rows
    fitted = FTPRLClassifier().fit(X, y)
    batches, loop, order = FTPRLClassifier(), FTPRLClassifier(), fit_order(400)
    for start in range(0, 400, 37):
        batches.partial_fit(X[order[start : start + 37]], y[order[start : start + 37]], classes=[0, 1])
    for row in order:
        loop.partial_fit(X[row], y[row : row + 1], classes=[0, 1])
    text = f"{tmp_path}/rows.libsvm"
    with open(text, "w") as file:
        for row in range(400):
            entries = " ".join(f"{j}:{v!r}" for j, v in zip(X[row].indices, X[row].data.tolist(), strict=True))
            file.write(f"{2 * y[row] - 1} {entries}\n")
    trained = ftprl.train(ftprl.data.open(text, dim=30)).model
    digests = {model.state_digest() for model in (fitted.model_, batches.model_, loop.model_, trained)}
    assert len(digests) == 1
    for other in (batches, loop):
        np.testing.assert_array_equal(fitted.decision_function(X), other.decision_function(X))


def test_kinds_of_matrices_give_the_same_bits(rows: tuple[csr_matrix, np.ndarray]) -> None:
    X, y = rows
    scores = [
        FTPRLClassifier().fit(data, y).decision_function(data)
        for data in (X, csc_matrix(X), X.toarray(), X.astype(float), polars.DataFrame(X.toarray()))
    ]
    for other in scores[1:]:  # dense rows are scored by a matrix product
        np.testing.assert_allclose(scores[0], other, rtol=1e-12, atol=1e-14)


def test_coefficients_are_near_the_mixture() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    classifier = FTPRLClassifier(l2=1e-6).fit(X, y)
    linear = X @ classifier.coef_.ravel() + classifier.intercept_[0]
    assert np.corrcoef(linear, classifier.decision_function(X))[0, 1] > 0.9
    assert ((linear > 0) == (classifier.decision_function(X) > 0)).mean() > 0.98
    assert issparse(classifier.sparsify().coef_)
    assert isinstance(classifier.densify().coef_, np.ndarray)


def test_coefficients_of_one_scale_are_the_model() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    classifier = FTPRLClassifier(scale=0.1, float64=True).fit(X, y)
    linear = X @ classifier.coef_.ravel() + classifier.intercept_[0]
    np.testing.assert_allclose(linear, classifier.decision_function(X), rtol=1e-9, atol=1e-9)


def test_regression_in_any_unit() -> None:
    X, y = load_diabetes(return_X_y=True)
    regressor = FTPRLRegressor(passes="auto").fit(X, y)
    larger = FTPRLRegressor(passes="auto").fit(X, 1024 * y)
    assert regressor.score(X, y) > 0.4
    np.testing.assert_array_equal(1024 * regressor.predict(X), larger.predict(X))
    assert 1 <= regressor.n_iter_ <= 20


def test_class_weights_are_row_weights(rows: tuple[csr_matrix, np.ndarray]) -> None:
    X, y = rows
    by_class = FTPRLClassifier(class_weight={0: 3.0, 1: 0.5}).fit(X, y)
    by_row = FTPRLClassifier().fit(X, y, sample_weight=np.where(y == 1, 0.5, 3.0))
    balanced = FTPRLClassifier(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    by_count = FTPRLClassifier().fit(X, y, sample_weight=(400 / (2 * counts))[y])
    np.testing.assert_array_equal(by_class.decision_function(X), by_row.decision_function(X))
    np.testing.assert_array_equal(balanced.decision_function(X), by_count.decision_function(X))
    with pytest.raises(ValueError, match="'balanced' needs all rows"):
        FTPRLClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])


def test_warm_start_goes_on(rows: tuple[csr_matrix, np.ndarray]) -> None:
    X, y = rows
    order, days = np.array(fit_order(200)), (slice(0, 200), slice(200, 400))
    for shuffle in (True, False):
        twice = FTPRLClassifier(warm_start=True, shuffle=shuffle)
        for day in days:
            twice.fit(X[day], y[day])
        learned = np.append(order, 200 + order) if shuffle else np.arange(400)  # the days stay in their order
        whole = FTPRLClassifier(shuffle=False).fit(X[learned], y[learned])
        assert twice.model_.state_digest() == whole.model_.state_digest()
        np.testing.assert_array_equal(twice.decision_function(X), whole.decision_function(X))
    once = FTPRLClassifier().fit(X[:200], y[:200]).fit(X[200:], y[200:])
    np.testing.assert_array_equal(
        once.decision_function(X), FTPRLClassifier().fit(X[200:], y[200:]).decision_function(X)
    )


@pytest.mark.parametrize("shuffle", [True, False])
def test_warm_start_with_bounds_and_bad_rows(shuffle: bool) -> None:
    """Names that first occur in the second fit have their bounds; a bad row is reported by its position in the data."""
    days = [polars.DataFrame({"city": [city, "Ulm"] * 100}) for city in ("Bonn", "Kiel")]
    classifier = FTPRLClassifier(warm_start=True, bits=10, bounds={"city=Kiel": (None, 0.01)}, shuffle=shuffle)
    for day in days:
        classifier.fit(day, [1, 0] * 100)
    (kiel,) = classifier.model_.explain({"city": "Kiel"}).to_dict()["contributions"]
    assert 0.0 < kiel["contribution"] <= 0.01
    X = np.random.default_rng(0).normal(size=(300, 3))
    numbers = FTPRLClassifier(warm_start=True, shuffle=shuffle).fit(X, X[:, 0] > 0)
    before, X[7, 1] = numbers.model_.state_digest(), 1e35
    with pytest.raises(InvalidInput, match="row 7: a value needs to be finite"):
        numbers.fit(X, X[:, 0] > 0)
    assert numbers.model_.state_digest() == before


def test_pickle_and_clone(rows: tuple[csr_matrix, np.ndarray]) -> None:
    X, y = rows
    classifier = FTPRLClassifier(scale=(0.1, 1.0)).fit(X, y)
    loaded = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert clone(classifier).get_params() == classifier.get_params()
    assert not hasattr(clone(classifier), "models_")


def test_several_classes() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X.iloc[order], y.iloc[order].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    classifier = FTPRLClassifier().fit(X, y)
    assert list(classifier.classes_) == ["setosa", "versicolor", "virginica"]
    assert list(classifier.feature_names_in_) == list(X.columns)
    probabilities = classifier.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert classifier.coef_.shape == (3, 4)
    assert classifier.score(X, y) > 0.8
    assert len(classifier.models_) == 1
    apart = FTPRLClassifier(multi_class="ovr").fit(X, y)
    assert len(apart.models_) == 3
    assert apart.score(X, y) > 0.9


def test_frames_with_categories() -> None:
    rng = np.random.default_rng(1)
    city = rng.choice(["Ulm", "Bonn", "Kiel"], 600)
    size = rng.normal(size=600)
    y = np.where((city == "Ulm") | (size > 1), "yes", "no")
    frame = polars.DataFrame({"city": city, "size": size})
    classifier = FTPRLClassifier().fit(frame, y)
    same = ftprl.train(frame, np.where(y == "yes", 1, -1)).model
    assert classifier.model_.state_digest() == same.state_digest()
    assert classifier.score(frame, y) > 0.9
    parts = FTPRLClassifier()
    order = fit_order(600)
    for start in range(0, 600, 100):
        some = order[start : start + 100]
        parts.partial_fit(frame[some], y[some], classes=["no", "yes"])
    np.testing.assert_array_equal(parts.decision_function(frame), classifier.decision_function(frame))
    with pytest.raises(AttributeError, match="hashed by name"):
        _ = classifier.coef_
    with pytest.raises(ValueError, match="feature names should match"):
        classifier.predict(frame.select("size", "city"))


def test_a_receipt(rows: tuple[csr_matrix, np.ndarray]) -> None:
    X, y = rows
    fitted = FTPRLClassifier(receipt=True).fit(X, y)
    parts = FTPRLClassifier(receipt=True)
    order = fit_order(400)
    for row in range(0, 400, 50):
        parts.partial_fit(X[order[row : row + 50]], y[order[row : row + 50]], classes=[0, 1])
    assert fitted.certificate_.regret <= fitted.certificate_.bound * (1 + 1e-12)
    whole, own = fitted.certificate_.to_dict(), parts.certificate_.to_dict()
    assert (whole.pop("order"), own.pop("order")) == ("random", None)
    assert whole.pop("confidence") is not None  # there is no record of rows to come without `fit`
    assert own.pop("confidence") is None
    assert own == whole


@pytest.mark.parametrize("passes", [1, 2])
def test_what_a_run_tells_of_rows_to_come_ends_with_it(passes: int, rows: tuple[csr_matrix, np.ndarray]) -> None:
    X, y = rows
    fitted = FTPRLClassifier(receipt=True, passes=passes).fit(X[:300], y[:300])
    model = fitted.model_
    loss = fitted.progressive_loss_ * 300
    before = model.engine.progress.loss
    fitted.partial_fit(X[300:], y[300:])
    assert fitted.progressive_loss_ * 400 == pytest.approx(loss + model.engine.progress.loss - before)
    assert (model.confidence, model.provenance, model.history["rows"]) == (None, None, 400)
    certificate = fitted.certificate_.to_dict()
    assert (certificate["order"], certificate["confidence"]) == (None, None)


def test_pipeline_and_grid_search() -> None:
    texts = ["win a free prize now", "see you at lunch", "free cash, call now", "are you at home"] * 20
    labels = ["spam", "ham", "spam", "ham"] * 20
    pipeline = make_pipeline(HashingVectorizer(n_features=256, alternate_sign=False), FTPRLClassifier())
    assert pipeline.fit(texts, labels).score(texts, labels) == 1.0
    search = GridSearchCV(pipeline, {"ftprlclassifier__scale": [0.1, "auto"]}, cv=2).fit(texts, labels)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_no_probabilities_without_log_loss(loss: str, rows: tuple[csr_matrix, np.ndarray]) -> None:
    classifier = FTPRLClassifier(loss=loss).fit(*rows)
    assert not hasattr(classifier, "predict_proba")
    assert classifier.score(*rows) > 0.7


# ---- calibration and uncertainty ----


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_calibrated_probabilities_are_those_of_the_model(kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    whole = FTPRLClassifier(scale=5.0, calibrate=kind).fit(X, y)
    parts = FTPRLClassifier(scale=5.0, calibrate=kind)
    order = fit_order(600)
    for at in range(0, 600, 70):
        parts.partial_fit(X[order[at : at + 70]], y[order[at : at + 70]], classes=[0, 1])
    np.testing.assert_array_equal(whole.predict_proba(X), parts.predict_proba(X))
    np.testing.assert_array_equal(whole.predict_proba(X)[:, 1], whole.model_.predict(X))
    plain = FTPRLClassifier(scale=5.0).fit(X, y)
    assert whole.progressive_loss_ < plain.progressive_loss_
    np.testing.assert_array_equal(whole.coef_, plain.coef_)  # of the scores before calibration
    np.testing.assert_array_equal(whole.predict_uncertainty(X), plain.predict_uncertainty(X))
    with pytest.raises(InvalidInput, match="calibrate= learns from predictions of rows that are new"):
        FTPRLClassifier(calibrate=kind, passes="auto").fit(X, y)
    several = FTPRLClassifier(calibrate=kind).fit(X, y + (X[:, 1] > 1))
    np.testing.assert_allclose(several.predict_proba(X).sum(axis=1), 1.0)
    with pytest.raises(InvalidInput, match="calibrate= needs loss=logistic"):
        FTPRLClassifier(calibrate=kind, multi_class="softmax").fit(X, y + (X[:, 1] > 1))


def test_uncertainty_is_that_of_the_models() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    regressor = FTPRLRegressor().fit(X, 5.0 + X[:, 0])
    np.testing.assert_array_equal(regressor.predict_uncertainty(X), regressor.model_.uncertainty(X))
    three = FTPRLClassifier().fit(X, (X[:, 0] > 0).astype(int) + (X[:, 1] > 0))
    own = np.max([model.uncertainty(X) for model in three.models_], axis=0)
    np.testing.assert_array_equal(three.predict_uncertainty(X), own)
    assert three.predict_uncertainty(100 * X[:5]).mean() > three.predict_uncertainty(X).mean()


def test_fit_learns_rows_in_a_random_order() -> None:
    """Rows sorted by class: learned in their order, the last class would be predicted for all rows."""
    X, y = load_iris(return_X_y=True)
    for kind in ("auto", "ovr"):
        with pytest.warns(FtprlWarning, match="the rows are sorted by class, .* fit with shuffle=True$") as caught:
            assert FTPRLClassifier(shuffle=False, multi_class=kind).fit(X, y).score(X, y) < 0.5
        assert [warning.filename for warning in caught] == [__file__]  # once, at the line that called `fit`
    own = FTPRLClassifier().fit(X, y)
    assert own.score(X, y) > 0.8
    digests = [own.model_.state_digest()]
    for seed in (0, 7):
        order = fit_order(150, seed)
        by_hand = FTPRLClassifier(shuffle=False).fit(X[order], y[order])
        seeded = FTPRLClassifier(random_state=seed).fit(X, y)
        assert by_hand.model_.state_digest() == seeded.model_.state_digest()
        digests.append(seeded.model_.state_digest())
    assert digests[0] == digests[1] != digests[2]
    fits = [FTPRLClassifier(random_state=np.random.RandomState(3)).fit(X, y) for _ in range(2)]
    assert fits[0].model_.state_digest() == fits[1].model_.state_digest()
    assert fits[0].model_.state_digest() != fits[0].fit(X, y).model_.state_digest()  # the next numbers of the generator
    order, weight = fit_order(150), np.linspace(0.5, 2.0, 150)
    weighted = FTPRLClassifier(class_weight="balanced").fit(X, y, sample_weight=weight)
    twin = FTPRLClassifier(class_weight="balanced", shuffle=False)
    twin.fit(X[order], y[order], sample_weight=weight[order])
    assert weighted.model_.state_digest() == twin.model_.state_digest()
    with pytest.raises(ValueError, match="shuffle needs True or False, got 'yes'"):
        FTPRLClassifier(shuffle="yes").fit(X, y)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match=f"random_state needs a whole number from 0 to 2.64 - 1, got {seed}"):
            FTPRLClassifier(random_state=seed).fit(X, y)


def test_folds_that_end_in_one_class_are_learned_in_a_random_order() -> None:
    """`cross_val_score` does not shuffle: the last rows of a fold may all be of one class."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 3))
    y = (rng.random(1000) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    y[-25:] = 1
    assert FTPRLClassifier(shuffle=False).fit(X, y).predict(X).mean() > 0.9
    own = FTPRLClassifier().fit(X, y)
    assert 0.4 < own.predict(X).mean() < 0.6
    order = fit_order(1000)
    assert own.model_.state_digest() == FTPRLClassifier(shuffle=False).fit(X[order], y[order]).model_.state_digest()


@pytest.mark.parametrize("kind", ["array", "csr", "pandas", "polars", "arrow"])
def test_every_kind_of_data_is_shuffled_alike(kind: str) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": np.round(rng.normal(size=80)), "c": 1.0})
    y = np.repeat(["no", "yes"], 40)
    if kind in ("polars", "arrow"):
        frame["city"] = rng.choice(["Oslo", "Rome"], 80)
    order = fit_order(80)
    made: dict[str, Callable[[pd.DataFrame], Any]] = {
        "array": lambda rows: rows.to_numpy(),
        "csr": lambda rows: csr_matrix(rows.to_numpy()),
        "pandas": lambda rows: rows,
        "polars": polars.from_pandas,
        "arrow": lambda rows: pa.Table.from_pandas(rows, preserve_index=False),
    }
    own = FTPRLClassifier().fit(made[kind](frame), y)
    twin = FTPRLClassifier(shuffle=False).fit(made[kind](frame.iloc[order].reset_index(drop=True)), y[order])
    assert own.model_.state_digest() == twin.model_.state_digest()
    line = FTPRLRegressor().fit(made[kind](frame), np.arange(80.0))
    other = FTPRLRegressor(shuffle=False)
    other.fit(made[kind](frame.iloc[order].reset_index(drop=True)), np.arange(80.0)[order])
    assert line.model_.state_digest() == other.model_.state_digest()


@pytest.mark.parametrize("estimator", [FTPRLClassifier, FTPRLRegressor])
def test_a_table_without_rows_is_refused(estimator: Any) -> None:
    import polars
    import pyarrow as pa

    for table in (
        polars.DataFrame({"c": polars.Series([], dtype=polars.String)}),
        pa.table({"c": pa.array([], pa.string())}),
    ):
        with pytest.raises(ValueError, match="0 sample"):
            estimator().fit(table, [])


def test_partial_fit_warns_as_fit_does_once_for_all_classes() -> None:
    """partial_fit warns about identifier columns in the first call, and about losses above the baseline."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(1500)], "x": rng.normal(size=1500)})
    y = rng.choice(3, 1500, p=[0.8, 0.1, 0.1])
    model = FTPRLClassifier(multi_class="ovr", scale=1e-9, bits=8)
    texts = []
    for some in (slice(0, 500), slice(500, 1000), slice(1000, 1250), slice(1250, 1500)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.partial_fit(frame[some], y[some], classes=[0, 1, 2])
        texts.append([str(one.message) for one in caught if one.category is FtprlWarning])
    assert [len(own) for own in texts] == [1, 1, 0, 0]
    assert "'id'" in texts[0][0]
    assert "is above the baseline's" in texts[1][0]
    assert texts[1][0].endswith("(so for 3 of 3 models)")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        FTPRLClassifier(multi_class="ovr", scale=1e-9, bits=8).fit(frame, y)
    fitted = [str(one.message) for one in caught if one.category is FtprlWarning]
    assert [sum(what in text for text in fitted) for what in ("'id'", "is above the baseline's")] == [1, 1]
