"""The linear model next to a mixture."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.linear.experts import mean_weights


def _learned(**options: object) -> tuple[Engine, Batch, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(2.0, 1.0, size=(600, 6))
    labels = X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) + 0.3 * rng.normal(size=600)
    y = np.where(labels > np.median(labels), 1.0, -1.0) if options.get("loss") == "logistic" else 100.0 + labels
    batch = Batch.from_rows([dict(enumerate(row)) for row in X.tolist()], y=y, float64=True)
    engine = Engine(Spec(dim=6, float64=True, **options))  # type: ignore[arg-type]
    engine.learn(batch)
    return engine, batch, X


@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute"])
def test_one_scale_is_the_model(loss: str) -> None:
    engine, batch, X = _learned(loss=loss, scale=0.3)
    linear = mean_weights(engine, np.arange(6))
    scores = X @ linear.weights + linear.intercept
    labels = engine.label_state
    if labels is not None:
        scores = np.clip(scores, labels["lowest"], labels["highest"])
    np.testing.assert_allclose(scores, engine.score(batch), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("additions", [{}, {"coin": True}, {"dense": True}, {"coin": True, "dense": True}])
def test_the_mean_of_identity_links_is_the_mixture(additions: dict[str, bool]) -> None:
    engine, batch, X = _learned(loss="squared", scale=(0.05, 0.2), **additions)
    labels = engine.label_state
    assert labels is not None
    linear = mean_weights(engine, np.arange(6))
    scores = X @ linear.weights + linear.intercept
    inside = (scores > labels["lowest"] + 0.5) & (
        scores < labels["highest"] - 0.5
    )  # of the others an expert may be cut
    assert inside.mean() > 0.8
    np.testing.assert_allclose(scores[inside], engine.score(batch)[inside], atol=0.02)


def test_some_cells() -> None:
    engine, _, _ = _learned(loss="logistic", scale=(0.05, 0.2), coin=True, dense=True)
    whole = mean_weights(engine, np.arange(6))
    some = mean_weights(engine, np.array([4, 1]))
    np.testing.assert_array_equal(some.weights, whole.weights[[4, 1]])
    assert some.intercept == whole.intercept


def test_nothing_learned() -> None:
    linear = mean_weights(Engine(Spec(dim=3, scale="auto", coin=True, dense=True)), np.arange(3))
    assert linear.weights.tolist() == [0.0, 0.0, 0.0]
    assert linear.intercept == 0.0
