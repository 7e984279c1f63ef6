"""The online models: parameters, labels, pipelines of River, and saving."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import polars
import pytest

import ftprl
from ftprl import OnlineClassifier, OnlineRegressor
from ftprl.errors import InvalidInput

ROWS = [({"city": city, "size": size}, size > 1.5) for city in ("Ulm", "Bonn") for size in (1.0, 2.0, 3.0)] * 20


def test_classes_of_any_kind() -> None:
    booleans, words = OnlineClassifier(), OnlineClassifier(classes=("ham", "spam"))
    for x, y in ROWS:
        assert booleans.learn_one(x, y) is None
        words.learn_one(x, "spam" if y else "ham")
    x = ROWS[0][0]
    assert list(booleans.predict_proba_one(x)) == [False, True]
    assert list(words.predict_proba_one(x).values()) == list(booleans.predict_proba_one(x).values())
    assert (words.predict_one(x), booleans.predict_one(x)) == ("ham", False)
    with pytest.raises(InvalidInput, match="classes= needs two labels"):
        OnlineClassifier(classes=(1, 1))


def test_no_probabilities_without_log_loss() -> None:
    model = OnlineClassifier(loss="hinge")
    for x, y in ROWS:
        model.learn_one(x, y)
    assert model.predict_one(ROWS[0][0]) is False
    with pytest.raises(NotImplementedError, match="probabilities need loss='logistic'"):
        model.predict_proba_one(ROWS[0][0])


def test_before_the_first_row() -> None:
    assert OnlineClassifier().predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert OnlineRegressor().predict_one({"a": 1.0}) == 0.0


def test_copies_and_clones() -> None:
    model = OnlineClassifier(scale=(0.1, 1.0), bits=10)
    for x, y in ROWS:
        model.learn_one(x, y)
    x = ROWS[0][0]
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)):
        assert twin.predict_proba_one(x) == model.predict_proba_one(x)
        twin.learn_one(x, False)
        assert twin.predict_proba_one(x) != model.predict_proba_one(x)
    fresh = model.clone({"bits": 12})
    assert (fresh.bits, fresh.scale, fresh.predict_proba_one(x)[True]) == (12, (0.1, 1.0), 0.5)
    assert repr(model) == "OnlineClassifier(scale=(0.1, 1.0), bits=10)"
    with pytest.raises(ValueError, match="'bits' is not a mutable attribute"):
        model.mutate({"bits": 3})


def test_a_receipt() -> None:
    from ftprl.receipt import certify_model

    model = OnlineClassifier(receipt=True, bits=10)
    for x, y in ROWS:
        model.learn_one(x, y)
    certificate: Any = certify_model(model.model)
    assert certificate.regret <= certificate.bound * (1 + 1e-12)


def test_a_saved_model_predicts_files(tmp_path: Any) -> None:
    model = OnlineClassifier(bits=10)
    for x, y in ROWS:
        model.learn_one(x, y)
    model.model.save(tmp_path / "model.ftprl")
    loaded = ftprl.load(tmp_path / "model.ftprl")
    (tmp_path / "rows.jsonl").write_text('{"city": "Ulm", "size": 3}\n{"city": "Bonn", "size": 1}\n')
    high, low = loaded.predict(str(tmp_path / "rows.jsonl"))
    assert high == model.predict_proba_one({"city": "Ulm", "size": 3})[True]
    assert low == model.predict_proba_one({"city": "Bonn", "size": 1})[True]
    frame = polars.DataFrame({"city": ["Ulm", "Bonn"], "size": [3, 1]})
    assert loaded.predict(frame).tolist() == [high, low]
    (tmp_path / "rows.csv").write_text("city,size\nUlm,3\n")
    with pytest.raises(InvalidInput, match="got csv files; pass jsonl or parquet files"):
        loaded.predict(str(tmp_path / "rows.csv"))
