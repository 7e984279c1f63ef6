"""Each loss has one entry in C++ and one in Python, and both agree."""

import math

import numpy as np
import pytest

from ftprl._core import loss_at
from ftprl._core import losses as core_losses
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from ftprl.losses import SCALAR_LOSSES, ScalarLoss, quantile
from laws.streams import labels

EVERY = [*SCALAR_LOSSES.values(), quantile(0.9)]
CANDIDATES = np.array([-1e31, -1e30, -2.0, -1.0, -5e-324, -0.0, 0.0, 5e-324, 0.5, 1.0, 2.0, 1e30, 1.1e30, math.inf])


def tau_of(loss: ScalarLoss) -> float:
    return 0.9 if loss.value(0.0, 1.0) == 0.9 else 0.5


def test_the_same_losses_in_the_same_order() -> None:
    assert list(core_losses()) == list(SCALAR_LOSSES)


@pytest.mark.parametrize("name", SCALAR_LOSSES)
def test_the_entries_agree(name: str) -> None:
    loss = SCALAR_LOSSES[name]
    assert core_losses()[name] == (loss.labels, loss.rule, loss.baseline)


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_value_and_slope_agree_to_the_bit(loss: ScalarLoss) -> None:
    rng = np.random.default_rng(1)
    scores = np.concatenate([rng.normal(size=300) * 10 ** rng.uniform(-8, 8, size=300), [0.0, 1.0, -1.0, 60.0, -61.0]])
    y = labels(rng, loss.name, len(scores))
    for s, label in zip(scores.tolist(), y.tolist(), strict=True):
        assert loss_at(loss.name, s, label, tau_of(loss)) == (loss.value(s, label), loss.slope(s, label))


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: loss.name)
def test_arrays_of_scores_have_the_same_value_slope_and_curvature(loss: ScalarLoss) -> None:
    rng = np.random.default_rng(2)
    s, y = rng.normal(size=200) * 3, labels(rng, loss.name, 200)
    value, slope, curve = loss.arrays(s, y)
    np.testing.assert_allclose(value, [loss.value(a, b) for a, b in zip(s, y, strict=True)], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(slope, [loss.slope(a, b) for a, b in zip(s, y, strict=True)], rtol=1e-12, atol=1e-15)
    if curve is not None:
        step = 1e-5
        smooth = np.abs(np.abs(s - y) - 1) > 1e-3 if loss.name == "huber" else np.abs(y * s - 1) > 1e-3
        rise = (loss.arrays(s + step, y)[1] - loss.arrays(s - step, y)[1]) / (2 * step)
        np.testing.assert_allclose(curve[smooth], rise[smooth], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SCALAR_LOSSES)
def test_the_learner_takes_the_labels_that_fit(name: str) -> None:
    for y, fits in zip(CANDIDATES.tolist(), SCALAR_LOSSES[name].accepts(CANDIDATES).tolist(), strict=True):
        engine = Engine(Spec(name, dim=2))
        rows = Batch.from_rows([{0: 1.0}], [1.0])
        batch = Batch(rows.indptr, rows.indices, rows.values, np.array([y]), rows.weight)
        if fits:
            assert engine.learn(batch).rows == 1
        else:
            with pytest.raises(InvalidInput, match="row 0: a label needs to be"):
                engine.learn(batch)


def test_an_unknown_loss() -> None:
    with pytest.raises(ValueError, match="loss is not known: log"):
        loss_at("log", 0.0, 1.0)
