"""Laws of the kernel at the ends of its range, each found by fuzzing (CONTRIBUTING.md#fuzzing)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from ftprl.linear.refusal import RowRefused
from ftprl.receipt.replay import Replay

KERNELS = [name for name in ("portable", "sse2", "avx2") if use_instruction_set(name)]
use_instruction_set("")


@pytest.mark.parametrize("side", [{"lower": 0.5}, {"upper": -0.5}])
@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_play_held_by_a_bound_keeps_the_cells_finite(name: str, loss: str, side: dict[str, float]) -> None:
    # sigma x with x at its bound does not depend on z and may be far beyond float32. An infinite z would give an
    # infinite play, and the previous row in the batch, whose last block reads into this row, would score inf * 0.
    spec = Spec(loss=loss, dim=4, intercept=False, **side)
    batch = Batch.from_rows([{0: 1e30}, {0: 1e30}, {1: 1.0}, {0: 1.0}], y=[1.0, -1.0, np.nan, np.nan])
    replay = Replay(spec, retire=False)
    use_instruction_set(name)
    engine, alone = Engine(spec, receipt=True), Engine(spec)
    use_instruction_set("")
    scores, one_by_one = np.empty((2, 4))
    engine.learn(batch, scores=scores)
    for r in range(4):
        alone.learn(batch[r : r + 1], scores=one_by_one[r : r + 1])
    replay.learn(batch)
    assert np.isfinite(engine.cells).all()
    assert np.isfinite(scores).all()
    assert np.abs(engine.parts["z"]).max() == np.finfo(np.float32).max
    np.testing.assert_array_equal(scores, one_by_one)
    for part in ("z", "R", "S"):
        np.testing.assert_array_equal(engine.parts[part][:1].ravel(), replay.parts_at(np.arange(1))[part].ravel())


@pytest.mark.parametrize("option", ["scale", "beta", "l1", "l2"])
def test_an_option_next_to_zero_is_refused(option: str) -> None:
    # With beta = 5e-324 and a weight of 1.5e-162 the intercept became NaN: g² is 0, so x = z h / beta = 3e191.
    with pytest.raises(InvalidInput, match=f"{option}= needs at least 1e-30, got 9e-31"):
        Spec(**{option: 9e-31})
    assert getattr(Spec(**{option: 1e-30}), option) == 1e-30


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("float64", [False, True])
def test_gradients_whose_square_is_zero(name: str, float64: bool) -> None:
    weight = np.array([1.5e-162, 1.0, 1e29, 1.0, 1.0])
    batch = Batch.from_rows([{0: 1.0}] * 5, y=[1.0, 1.0, 1.0, -1.0, 1.0], weight=weight)
    for small in ({"beta": 1e-30}, {"beta": 0.0, "l2": 1e-30}):
        use_instruction_set(name)
        engine = Engine(Spec(loss="squared_hinge", dim=2, scale=1e30, float64=float64, **small))
        use_instruction_set("")
        scores = np.empty(5)
        engine.learn(batch, scores=scores)
        assert np.isfinite(scores).all()
        assert np.isfinite(engine.cells).all()
        assert np.isfinite(engine.intercept).all()


@pytest.mark.parametrize("name", KERNELS)
def test_rows_that_would_make_a_loss_no_number_are_refused(name: str) -> None:
    # A coordinate twice in a row breaks the promise of a batch, and its loss could become NaN; the bin of e^-NaN is
    # none, and what was added to it was written somewhere in memory.
    indices, values = np.array([0, 1, 1, 1, 0, 1], np.uint32), np.array([3.0, 1e-45, 1e-7, 1e20, -5e-324, 0.0])
    batch = Batch(np.array([0, 2, 4, 6]), indices, values, np.array([1.0, 1.0, -1.0]), np.array([3.0, 1e29, 5e-324]))
    use_instruction_set(name)
    engine = Engine(Spec(dim=2, scale=(0.02, 0.022), beta=0.0, intercept=False), receipt=True)
    use_instruction_set("")
    with pytest.raises(RowRefused, match=r"row 1: weight times value needs to be within 1e30, got 1e\+49"):
        engine.learn(batch)
    weight, losses = np.array([3.0, 1e10, 5e-324]), np.empty(3)
    engine.learn(batch.replaced(weight=weight), losses=losses)
    assert np.isfinite(losses).all()
    assert engine.calibration is not None
    assert engine.calibration[:, 0].sum() == 3.0 + 1e10
    assert np.isfinite(engine.calibration).all()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "poisson", "hinge"])
def test_rows_with_and_without_gradients_that_are_cut(name: str, float64: bool, loss: str) -> None:
    """Batches with small gradients alone take a shorter loop, and batches with a receipt never do: the bits agree."""
    rng = np.random.default_rng(3)
    sizes = 10.0 ** rng.choice([-29, -3, 0, 0, 0, 5, 20, 29], size=(120, 6))
    values = sizes * rng.normal(size=sizes.shape)
    y = np.where(rng.random(120) < 0.5, 1.0, -1.0) if loss == "hinge" else 10.0 ** rng.choice([0, 0, 1, 9, 28], 120)
    weight = np.minimum(10.0 ** rng.choice([-9, 0, 0, 9, 29], 120), 0.9e30 / np.abs(values).max(axis=1))
    batch = Batch.from_rows([dict(enumerate(map(float, row))) for row in values], y=y, weight=weight)
    spec = Spec(loss=loss, dim=8, scale="auto", float64=float64)
    use_instruction_set(name)
    engines = [Engine(spec, receipt=receipt) for receipt in (False, True)]
    use_instruction_set("")
    scores = np.empty((2, 120))
    for engine, own in zip(engines, scores, strict=True):
        engine.learn(batch, scores=own)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[0], scores[1])
    for part in ("z", "R"):
        np.testing.assert_array_equal(engines[0].parts[part], engines[1].parts[part])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("scale", [0.1, "auto"])
@pytest.mark.parametrize("side", [{}, {"lower": -3.0, "upper": 3.0}])
def test_the_log_loss_with_and_without_gradients_that_are_cut(
    name: str, float64: bool, scale: Any, side: dict[str, float]
) -> None:
    """One large value makes all rows of a batch take the loop with clipping: the bits agree with the loop without."""
    rng = np.random.default_rng(5)
    sizes = 10.0 ** rng.choice([-29, -3, 0, 0, 0, 5, 14, 15, 29], size=(120, 7))
    values = sizes * rng.normal(size=sizes.shape)
    values[3::4] = np.where(np.abs(values[3::4]) > 1e14, 2.0**48, values[3::4])  # the largest that counts as small
    y = np.where(rng.random(120) < 0.5, 1.0, -1.0)
    weight = np.minimum(10.0 ** rng.choice([-9, 0, 0, 14, 29], 120), 0.9e30 / np.abs(values).max(axis=1))
    rows = [dict(enumerate(map(float, row))) for row in values]
    batch = Batch.from_rows(rows, y=y, weight=weight)
    spec = Spec(loss="logistic", dim=8, scale=scale, float64=float64, **side)
    use_instruction_set(name)
    engines = [Engine(spec, receipt=receipt) for receipt in (False, False, True, True)]
    use_instruction_set("")
    scores = np.empty((4, 120))
    for number, (engine, own) in enumerate(zip(engines, scores, strict=True)):
        if number % 2 == 0:
            engine.learn(batch, scores=own)
            continue
        for r in range(120):
            engine.learn(batch[r : r + 1], scores=own[r : r + 1])
    for own, engine in zip(scores[1:], engines[1:], strict=True):
        np.testing.assert_array_equal(scores[0], own)
        for part in ("z", "R"):
            np.testing.assert_array_equal(engines[0].parts[part], engine.parts[part])
            assert np.isfinite(engine.parts[part]).all()
    for k in range(len(spec.scales)):
        assert engines[2].sums_of(k) == engines[3].sums_of(k)
        assert engines[2].rounding_sums(k) == engines[3].rounding_sums(k)
