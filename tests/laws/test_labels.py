"""The laws of labels in any unit: the kernels against their oracle and their replay, every loss but the log loss."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl._core import use_instruction_set
from ftprl.linear import Engine, Model, mixture
from ftprl.linear.spec import AUTO
from ftprl.losses import SCALAR_LOSSES
from ftprl.receipt.replay import Replay
from laws.label_streams import GRIDS, KERNELS, LABELLED, assert_same, learned, linear_stream, progressive
from laws.learner_arrays import arrays_of, assert_arrays
from laws.strategies import SEEDS, law
from laws.streams import OPTIONS, spec, stream
from oracles.learner_twin import LearnerTwin

BOTH: dict[str, Any] = {"coin": True, "dense": True}


ADDED = {"one": {"scale": 0.4}, "eight": {"scale": AUTO}, "with coin and columns": {"scale": AUTO, **BOTH}}


@pytest.mark.parametrize("options", ADDED)
@pytest.mark.parametrize("loss", LABELLED)
@law(3)
@given(seed=SEEDS)
def test_kernels_equal_the_twin(loss: str, options: str, seed: int) -> None:
    """To 1e-9 of the spread of the labels: the logarithms, exponentials and powers of both may differ."""
    for batch, dim in ((stream(seed, loss), 23), (linear_stream(seed, loss), 12)):
        s = spec(loss, dim, float64=True, **ADDED[options])
        twin, expected = LearnerTwin(s), np.empty(len(batch))
        twin.learn(batch, scores=expected)
        rows = learned(batch)
        spread = float(np.ptp(batch.y[rows])) + 1.0
        for name in KERNELS:
            use_instruction_set(name)
            engine, scores, losses = progressive(s, batch)
            np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-8 * spread)
            own = [
                s.scalar_loss().value(a, b) for a, b in zip(scores[rows].tolist(), batch.y[rows].tolist(), strict=True)
            ]
            np.testing.assert_array_equal(losses[rows], own)
            assert_arrays(engine, twin, rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(engine.score(batch), twin.score(batch), rtol=0, atol=1e-9 * spread)
        use_instruction_set("")


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("loss", LABELLED)
@law(3)
@given(
    seed=SEEDS,
    cells64=st.booleans(),
    values64=st.booleans(),
    grid=st.sampled_from([0.3, *GRIDS]),
    added=st.booleans(),
)
def test_kernels_equal_the_replay_to_the_bit(
    loss: str, options: str, seed: int, cells64: bool, values64: bool, grid: Any, added: bool
) -> None:
    """The kernels equal the replay in all state and sums, for streams with weights of 0 and missing labels."""
    batch = stream(seed, loss, rows=60, float64=values64)
    may_add = grid != 0.3 and options in ("plain", "no_intercept")
    s = spec(loss, **{**OPTIONS[options], "scale": grid, "float64": cells64, **(BOTH if added and may_add else {})})
    replay = Replay(s, retire=True)
    replay.learn(batch)
    for name in KERNELS:
        use_instruction_set(name)
        engine, scores, losses = progressive(s, batch, receipt=True)
        bare, other_scores, other_losses = progressive(s, batch)
        use_instruction_set("")
        assert_same(engine, replay)
        np.testing.assert_array_equal(scores, other_scores)
        np.testing.assert_array_equal(losses, other_losses)
        np.testing.assert_array_equal(engine.cells, bare.cells)
        for k in range(len(s.scales)):
            slots = replay.touched()
            np.testing.assert_allclose(replay.weights(slots, k)[0], engine.weights(k)[slots], rtol=1e-12, atol=1e-300)
        assert not bare.row_sums(0).terms
        assert not bare.state["sums"].any()


@pytest.mark.parametrize("loss", LABELLED)
@pytest.mark.parametrize("scale", [0.3, AUTO])
@law(4)
@given(seed=SEEDS, cuts=st.lists(st.integers(0, 120), max_size=6), float64=st.booleans())
def test_the_cut_into_batches_changes_no_bit(loss: str, scale: Any, seed: int, cuts: list[int], float64: bool) -> None:
    batch = stream(seed, loss)
    s = spec(loss, scale=scale, l1=0.05, float64=float64)
    whole, scores, losses = progressive(s, batch, receipt=True)
    parts, part_scores, part_losses = Engine(s, receipt=True), np.empty(len(batch)), np.empty(len(batch))
    for start, stop in itertools.pairwise([0, *sorted(cuts), len(batch)]):
        rows = slice(start, stop)
        parts.learn(batch[rows], scores=part_scores[rows], losses=part_losses[rows])
    np.testing.assert_array_equal(scores, part_scores)
    np.testing.assert_array_equal(losses, part_losses)
    assert_same(whole, parts)


@pytest.mark.parametrize("loss", LABELLED)
@pytest.mark.parametrize("scale", [0.3, AUTO])
def test_rows_without_label_or_weight_change_nothing(loss: str, scale: Any) -> None:
    engine = Engine(spec(loss, scale=scale), receipt=True)
    engine.learn(stream(5, loss))
    known = engine.copy()
    rows = stream(6, loss, complete=True)
    scores, losses = np.empty((2, len(rows)))
    engine.learn(replace(rows, y=np.full(len(rows), np.nan)), scores=scores, losses=losses)
    assert np.isnan(losses).all()
    np.testing.assert_array_equal(scores, known.score(rows))
    engine.learn(replace(rows, weight=np.zeros(len(rows))), scores=scores, losses=losses)
    own = [engine.spec.scalar_loss().value(a, b) for a, b in zip(scores.tolist(), rows.y.tolist(), strict=True)]
    np.testing.assert_array_equal(losses, own)
    np.testing.assert_array_equal(scores, known.score(rows))
    assert_same(engine, known)


@pytest.mark.parametrize("loss", LABELLED)
@law(3)
@given(
    seed=SEEDS,
    float64=st.booleans(),
    grid=st.sampled_from(GRIDS),
    options=st.sampled_from(sorted(set(OPTIONS) - {"all"})),
)
def test_a_lane_is_a_single_scale_when_values_are_signs(
    loss: str, seed: int, float64: bool, grid: tuple[float, ...], options: str
) -> None:
    batch = stream(seed, loss)
    signs = np.where(np.random.default_rng(seed).random(len(batch.values)) < 0.5, 1.0, -1.0)
    batch = replace(batch, values=signs)
    many, _, _ = progressive(spec(loss, float64=float64, scale=grid, beta=0.3, **OPTIONS[options]), batch, receipt=True)
    for k, h in enumerate(grid):
        one, _, _ = progressive(spec(loss, float64=float64, scale=h, beta=0.3, **OPTIONS[options]), batch, receipt=True)
        for name in ("z", "R", "S"):
            np.testing.assert_array_equal(many.parts[name][:, k], one.parts[name][:, 0])
        taught = one.parts["unit"] > 0  # before labels differ a single scale keeps nothing of a row
        np.testing.assert_array_equal(many.parts["unit"][taught], one.parts["unit"][taught])
        np.testing.assert_array_equal(many.weights(k)[taught], one.weights()[taught])
        np.testing.assert_array_equal(many.intercept[:, k], one.intercept[:, 0])
        assert many.bias(k) == one.bias()
        assert many.sums_of(k) == one.sums
        assert many.row_sums(k).terms == one.row_sums(0).terms
        assert many.row_sums(k).scale_loss == one.row_sums(0).scale_loss
        assert arrays_of(many)["mixture.totals"][k] == one.tallies[0]
        assert many.label_state == one.label_state


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("receipt", [False, True])
@pytest.mark.parametrize("loss", LABELLED)
def test_a_saved_model_goes_on_to_the_bit(loss: str, receipt: bool, several: bool, tmp_path: Path) -> None:
    more: dict[str, Any] = {"scale": AUTO} if several else {"l2": 0.1}
    for float64 in (False, True):
        engine = Engine(spec(loss, float64=float64, **more), receipt=receipt)
        for seed in range(3):
            Model(engine).save(tmp_path / "model.ftprl")
            loaded = Model.load(tmp_path / "model.ftprl").engine
            scores, again = np.empty((2, 120))
            engine.learn(stream(seed, loss), scores=scores)
            loaded.learn(stream(seed, loss), scores=again)
            np.testing.assert_array_equal(scores, again)
            if receipt:
                assert_same(engine, loaded)
            assert engine.label_state == loaded.label_state
            np.testing.assert_array_equal(engine.cells, loaded.cells)


@pytest.mark.parametrize("loss", LABELLED)
@pytest.mark.parametrize("float64", [True, False])
def test_scales_that_stay_go_on_as_before(loss: str, float64: bool) -> None:
    """Retirement keeps the lanes, the labels, and what the other experts know of the scales that stay."""
    engine = Engine(spec(loss, scale=AUTO, float64=float64, **BOTH), receipt=True)
    engine.learn(stream(1, loss))
    small = engine.copy()
    small.keep_scales(2)
    assert small.spec.scales == AUTO[2:6]
    assert small.progress == engine.progress
    old, new = arrays_of(engine), arrays_of(small)
    for letter in "ABD":
        u, P = old[f"newton_{letter}.u"], old[f"newton_{letter}.P"]
        kept = [2, 3, 4, 5, *range(8, len(u))]
        np.testing.assert_array_equal(new[f"newton_{letter}.u"], u[kept])
        np.testing.assert_array_equal(new[f"newton_{letter}.P"], P[np.ix_(kept, kept)])
    assert new["mixture.w"].sum() == pytest.approx(1.0, abs=1e-12)
    assert list(small.mixture.names[4:]) == list(engine.mixture.names[8:])  # type: ignore[union-attr]
    for name in ("mixture.totals", "mixture.octave", "mixture.without"):
        np.testing.assert_array_equal(new[name][..., :4], old[name][..., 2:6])
        np.testing.assert_array_equal(new[name][..., 4:9], old[name][..., 8:13])
    np.testing.assert_array_equal(new["mixture.octave_loss"], old["mixture.octave_loss"])
    for _ in range(2):
        assert small.label_state == engine.label_state
        for k in range(4):
            for name in ("z", "R", "S"):
                np.testing.assert_array_equal(small.parts[name][:, k], engine.parts[name][:, k + 2])
            np.testing.assert_array_equal(small.intercept[:, k], engine.intercept[:, k + 2])
            assert small.sums_of(k) == engine.sums_of(k + 2)
            assert small.rounding_sums(k) == engine.rounding_sums(k + 2)
            assert small.row_sums(k).terms == engine.row_sums(k + 2).terms
            assert arrays_of(small)["mixture.totals"][k] == arrays_of(engine)["mixture.totals"][k + 2]
        for name in {"unit", "count", "kappa"} & small.parts.keys():
            np.testing.assert_array_equal(small.parts[name], engine.parts[name])
        small.learn(stream(2, loss))
        engine.learn(stream(2, loss))


@pytest.mark.parametrize("loss", LABELLED)
def test_a_replay_drops_the_same_scales(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixture, "FIRST_ROW", 2048)
    monkeypatch.setattr(mixture, "TOLERANCE", 2.0)
    batch = linear_stream(4, loss, rows=2600, weighted=False)
    s = spec(loss, 12, scale=AUTO[:6], **BOTH)
    engine, replay = Engine(s, receipt=True), Replay(s, retire=True)
    engine.learn(batch)
    replay.learn(batch)
    assert len(engine.spec.scales) == 4
    assert engine.spec == replay.spec
    assert_same(engine, replay)


def test_every_other_loss_has_units() -> None:
    assert [name for name in SCALAR_LOSSES if name not in LABELLED] == ["logistic"]
    assert Engine(spec("logistic")).label_state is None
