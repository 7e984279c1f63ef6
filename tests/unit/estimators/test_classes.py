"""Three or more classes in the estimators: one model with softmax, or one model per class."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import ftprl
from ftprl import FTPRLClassifier
from ftprl.data.order import WAITING
from oracles import order_twin

X, NUMBERS = load_digits(return_X_y=True)
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
Y = NAMES[NUMBERS]


def test_softmax_is_one_model_and_that_of_train() -> None:
    classifier = FTPRLClassifier(multi_class="softmax").fit(X, Y)
    assert classifier.classes_.tolist() == sorted(NAMES)
    assert len(classifier.models_) == 1
    trained = ftprl.train(X, np.searchsorted(classifier.classes_, Y), loss="softmax")
    assert classifier.model_.state_digest() == trained.model.state_digest()
    assert classifier.progressive_loss_ == trained.progressive_loss
    assert classifier.score(X, Y) > 0.93


def test_rows_one_by_one_are_fit() -> None:
    whole = FTPRLClassifier(multi_class="softmax").fit(X[:300], Y[:300])
    parts = FTPRLClassifier(multi_class="softmax")
    order = order_twin.plan(300, WAITING).order
    for start in range(0, 300, 37):
        some = order[start : start + 37]
        parts.partial_fit(csr_matrix(X[some]), Y[some], classes=NAMES)
    assert parts.model_.state_digest() == whole.model_.state_digest()
    np.testing.assert_array_equal(parts.predict_proba(X), whole.predict_proba(X))


def test_probabilities_scores_and_weights_agree() -> None:
    classifier = FTPRLClassifier(multi_class="softmax", scale=0.3).fit(X, Y)
    chances = classifier.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(chances), classifier.predict_log_proba(X))
    scores = classifier.decision_function(X)
    np.testing.assert_allclose(scores.sum(axis=1), 0.0, atol=1e-9)
    assert (classifier.classes_[scores.argmax(axis=1)] == classifier.predict(X)).all()
    assert classifier.coef_.shape == (10, 64)
    assert classifier.intercept_.shape == (10,)
    np.testing.assert_allclose(X @ classifier.coef_.T + classifier.intercept_, scores, rtol=1e-6, atol=1e-6)


def test_coefficients_of_a_mixture_are_near_its_scores() -> None:
    for shuffle, least in ((False, 0.94), (True, 0.91)):
        classifier = FTPRLClassifier(multi_class="softmax", shuffle=shuffle).fit(X, Y)
        linear, scores = X @ classifier.coef_.T + classifier.intercept_, classifier.decision_function(X)
        assert np.corrcoef(linear.ravel(), scores.ravel())[0, 1] > least
        assert (linear.argmax(axis=1) == scores.argmax(axis=1)).mean() > 0.97
    assert classifier.sparsify().coef_.shape == (10, 64)


def test_one_against_the_rest_is_one_model_per_class() -> None:
    classifier = FTPRLClassifier(multi_class="ovr", receipt=True).fit(X[:500], Y[:500])
    assert len(classifier.models_) == 10
    np.testing.assert_allclose(classifier.predict_proba(X).sum(axis=1), 1.0)
    assert len(FTPRLClassifier(loss="hinge").fit(X[:100], Y[:100]).models_) == 10
    certificate = FTPRLClassifier(multi_class="softmax", receipt=True).fit(X[:500], Y[:500]).certificate_
    assert certificate.regret <= certificate.bound
    assert (certificate.beaten_length or 0.0) > 0.0
    with pytest.raises(ValueError, match=r"multi_class needs 'auto', 'softmax' or 'ovr', got 'x'"):
        FTPRLClassifier(multi_class="x").fit(X, Y)


def test_softmax_has_the_smaller_loss_here() -> None:
    half = len(X) // 2
    losses = [
        log_loss(Y[half:], FTPRLClassifier(multi_class=kind).fit(X[:half], Y[:half]).predict_proba(X[half:]))
        for kind in ("softmax", "ovr")
    ]
    assert losses[0] < losses[1]


def test_passes_weights_and_pickles() -> None:
    classifier = FTPRLClassifier(passes="auto", class_weight={"zero": 2.0}).fit(X, Y)
    assert classifier.n_iter_ >= 1
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    again.partial_fit(X, Y)
    assert again.score(X, Y) > 0.95


def test_frames_are_read_by_name() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"sky": ["blue", "grey", "white"] * 50, "degrees": [20.0, 10.0, -5.0] * 50})
    classifier = FTPRLClassifier().fit(frame, ["sun", "rain", "snow"] * 50)
    assert classifier.predict(frame[:3]).tolist() == ["sun", "rain", "snow"]
