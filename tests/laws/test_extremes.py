"""Laws of the kernel at the ends of its range, each found by fuzzing (docs/fuzzing.md)."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from oracles.linear_twin import Reference
from oracles.scales_twin import ReferenceScales

KERNELS = [name for name in ("portable", "sse2", "avx2") if use_instruction_set(name)]
use_instruction_set("")


@pytest.mark.parametrize("side", [{"lower": 0.5}, {"upper": -0.5}])
@pytest.mark.parametrize("name", KERNELS)
def test_a_play_held_by_a_bound_keeps_the_cells_finite(name: str, side: dict[str, float]) -> None:
    # sigma x with x at its bound is not tied to z: it may be far beyond float32. An infinite z would play an infinite
    # x, and the row before in the same batch, whose last block reads on into this one, would score inf * 0.
    spec = Spec(loss="huber", dim=4, intercept=False, **side)
    batch = Batch.from_rows([{0: 1e30}, {1: 1.0}, {0: 1.0}], y=[0.0, np.nan, np.nan])
    twin = Reference(spec)
    use_instruction_set(name)
    engine, alone = Engine(spec), Engine(spec)
    use_instruction_set("")
    scores, one_by_one = np.empty((2, 3))
    engine.learn(batch, scores=scores)
    for r in range(3):
        alone.learn(batch[r : r + 1], scores=one_by_one[r : r + 1])
    twin.learn(batch)
    assert np.isfinite(engine.cells).all()
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, one_by_one)
    np.testing.assert_array_equal(engine.cells, twin.cells)


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
@pytest.mark.parametrize("label", [1e-150, 1e-154, 1e-160, 1.5e-162, 5e-324])
def test_labels_whose_square_is_next_to_zero(name: str, label: float) -> None:
    # The rate of the mixture is 1 / (4 B²), infinite for the largest label B = 1e-160: its weights became exp(inf * 0).
    spec = Spec(loss="squared", dim=2, scale=(0.1, 1.0, 10.0))
    batch = Batch.from_rows([{0: 1.0}] * 4, y=[label, -label, 1.0, -1.0])
    use_instruction_set(name)
    engine = Engine(spec)
    use_instruction_set("")
    twin = ReferenceScales(spec)
    for r in range(4):
        engine.learn(batch[r : r + 1])
        twin.learn(batch[r : r + 1])
        assert engine.state["w"][:3].sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(engine.state["w"], twin.state["w"])


def test_a_share_next_to_zero_is_refused() -> None:
    # A third of 5e-324 is 0: a scale could lose all of its weight, and the sum of the weights be 0 when it was right.
    with pytest.raises(InvalidInput, match="share= needs at least 1e-30, got 5e-324"):
        Spec(scale="auto", share=5e-324)
    assert Spec(scale="auto", share=1e-30).share == 1e-30
    assert Spec(scale="auto", share=0.0).share == 0.0


@pytest.mark.parametrize("name", KERNELS)
def test_a_loss_that_is_no_number_stays_out_of_the_calibration(name: str) -> None:
    # A coordinate twice in a row breaks the promise of a batch, and its loss may become NaN; the bin of e^-NaN is none,
    # and what was added to it was written somewhere in memory.
    indices, values = np.array([0, 1, 1, 1, 0, 1], np.uint32), np.array([3.0, 1e-45, 1e-7, 1e20, -5e-324, 0.0])
    batch = Batch(np.array([0, 2, 4, 6]), indices, values, np.array([1.0, 1.0, -1.0]), np.array([3.0, 1e29, 5e-324]))
    use_instruction_set(name)
    engine = Engine(Spec(dim=2, scale=(0.02, 0.022), beta=0.0, intercept=False), receipt=True)
    use_instruction_set("")
    losses = np.empty(3)
    engine.learn(batch, losses=losses)
    assert np.isnan(losses).tolist() == [False, False, True]
    assert engine.calibration is not None
    assert engine.calibration[:, 0].sum() == 3.0 + 1e29
    assert np.isfinite(engine.calibration).all()
