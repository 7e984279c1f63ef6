"""The online models: River's own checks, its pipelines, and the bits of training on equal rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

river = pytest.importorskip("river", reason="needs River; pip install 'ftprl[test]'")

from river import base, checks, compose, datasets, evaluate, metrics, preprocessing  # noqa: E402

from ftprl import OnlineClassifier, OnlineRegressor  # noqa: E402

MODELS = [
    OnlineClassifier(),
    OnlineClassifier(scale=0.1),
    OnlineClassifier(loss="hinge"),
    OnlineRegressor(),
    OnlineRegressor(loss="absolute"),
    OnlineRegressor(scale=0.1),
]


def _checks() -> Iterator[Any]:
    for model in MODELS:
        counts: dict[str, int] = {}
        for check in checks.yield_checks(model):
            counts[check.__name__] = counts.get(check.__name__, 0) + 1
            name = f"{model!r}-{check.__name__}-{counts[check.__name__]}"
            yield pytest.param(model, check, id=name)


@pytest.mark.parametrize(("model", "check"), list(_checks()))
def test_rivers_own_checks(model: OnlineClassifier | OnlineRegressor, check: Callable[[Any], None]) -> None:
    random.seed(0)  # of the checks that shuffle features
    check(model.clone())


def test_the_models_count_as_rivers_own() -> None:
    assert isinstance(OnlineClassifier(), base.Classifier)
    assert isinstance(OnlineRegressor(), base.Regressor)
    assert not isinstance(OnlineRegressor(), base.Classifier)


def test_a_pipeline_of_rivers() -> None:
    pipeline = preprocessing.StandardScaler() | OnlineClassifier()
    assert isinstance(pipeline, compose.Pipeline)
    accuracy = evaluate.progressive_val_score(datasets.Phishing(), pipeline, metrics.Accuracy())
    plain = evaluate.progressive_val_score(datasets.Phishing(), OnlineClassifier(), metrics.LogLoss())
    assert accuracy.get() > 0.85
    assert plain.get() < 0.35
