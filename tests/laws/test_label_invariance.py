"""Labels in any unit: predictions follow the unit and the origin of the labels, and odd streams do no harm."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl._core import use_instruction_set
from ftprl.cli.app import run
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from ftprl.linear.spec import AUTO
from ftprl.receipt.certificate import own_certificate
from ftprl.receipt.replay import Replay
from laws.label_streams import KERNELS, LABELLED, NUMBERS, assert_same, learned, linear_stream, progressive, state_of
from laws.learner_arrays import arrays_of
from laws.strategies import SEEDS, law
from laws.streams import fitted, spec, stream

UNIT_FREE = ("squared", "absolute", "quantile")  # Huber loss has a unit of its own
ONE, EIGHT = {"scale": 0.3}, {"scale": AUTO, "coin": True, "dense": True}
SCALES = [pytest.param(ONE, id="one"), pytest.param(EIGHT, id="eight")]
SCALES_AND_CELLS = [pytest.param(ONE, True, id="one, float64"), pytest.param(EIGHT, False, id="eight")]


# ---- units and origins ----


@pytest.mark.parametrize(("options", "float64"), SCALES_AND_CELLS)
@pytest.mark.parametrize("loss", UNIT_FREE)
@law(4)
@given(seed=SEEDS, power=st.sampled_from([-37, -1, 10, 60]))
def test_labels_times_a_power_of_two_multiply_scores_to_the_bit(
    loss: str, options: dict[str, Any], float64: bool, seed: int, power: int
) -> None:
    factor = 2.0**power
    for batch in (stream(seed, loss), linear_stream(seed, loss)):
        s = spec(loss, float64=float64, **options)
        one, scores, losses = progressive(s, batch, receipt=True)
        other, scaled, scaled_losses = progressive(s, replace(batch, y=batch.y * factor), receipt=True)
        np.testing.assert_array_equal(scores * factor, scaled)
        np.testing.assert_array_equal(losses * (factor * factor if loss == "squared" else factor), scaled_losses)
        np.testing.assert_array_equal(one.weights() * factor, other.weights())
        a, b = own_certificate(one), own_certificate(other)
        assert b.bound == pytest.approx(a.bound * (factor * factor if loss == "squared" else factor), rel=1e-12)


@pytest.mark.parametrize("options", SCALES)
@pytest.mark.parametrize("change", ["plus 1e6", "minus 1000 spreads", "times 3", "times -1", "a third, plus 5"])
@pytest.mark.parametrize("loss", UNIT_FREE)
@law(2)
@given(seed=SEEDS)
def test_scores_follow_the_origin_and_the_unit(loss: str, change: str, options: dict[str, Any], seed: int) -> None:
    """Scores follow the origin within 1e-6 of the labels' spread from the second row on; the first has no history."""
    batch = linear_stream(seed, loss, rows=400)
    rows = np.flatnonzero(learned(batch))
    spread = float(batch.y[rows].std())
    factor, shift = {
        "plus 1e6": (1.0, 1e6), "minus 1000 spreads": (1.0, -1000.0 * spread), "times 3": (3.0, 0.0),
        "times -1": (-1.0, 0.0), "a third, plus 5": (1.0 / 3.0, 5.0),
    }[change]  # fmt: skip
    s = spec(loss, 12, float64=True, **options)
    mirrored = replace(s, tau=1.0 - s.tau) if factor < 0 else s
    _, scores, _ = progressive(s, batch)
    _, moved, _ = progressive(mirrored, replace(batch, y=batch.y * factor + shift))
    np.testing.assert_allclose(
        moved[rows[1:]], scores[rows[1:]] * factor + shift, rtol=0, atol=1e-6 * abs(factor) * spread
    )


@pytest.mark.parametrize("options", SCALES)
@pytest.mark.parametrize("factor", [1024.0, 3.0, 1e-3, 1e6])
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_scores_of_counts_shift_by_the_logarithm_of_the_factor(
    loss: str, factor: float, options: dict[str, Any]
) -> None:
    for seed in range(3):
        batch = linear_stream(seed, loss, rows=400)
        rows = np.flatnonzero(learned(batch))
        y = batch.y.copy()
        y[rows[0]] = 2.0  # before the first count above 0 there is no unit
        batch = replace(batch, y=y)
        s = spec(loss, 12, float64=True, **options)
        _, scores, _ = progressive(s, batch)
        _, moved, _ = progressive(s, replace(batch, y=batch.y * factor))
        np.testing.assert_allclose(moved[rows[1:]], scores[rows[1:]] + math.log(factor), rtol=0, atol=1e-8)


@pytest.mark.parametrize(("options", "float64"), SCALES_AND_CELLS)
@pytest.mark.parametrize("loss", LABELLED)
@law(2)
@given(seed=SEEDS, powers=st.lists(st.integers(-40, 40), min_size=23, max_size=23))
def test_the_unit_of_a_feature_changes_no_prediction(
    loss: str, options: dict[str, Any], float64: bool, seed: int, powers: list[int]
) -> None:
    batch, unit = stream(seed, loss), 2.0 ** np.array(powers)
    s = spec(loss, float64=float64, **options)
    one, first, _ = progressive(s, batch)
    other, second, _ = progressive(s, replace(batch, values=batch.values * unit[batch.indices]))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(one.weights(0), other.weights(0) * unit)


@pytest.mark.parametrize("options", SCALES)
@pytest.mark.parametrize("loss", LABELLED)
def test_predictions_stay_within_the_labels(loss: str, options: dict[str, Any]) -> None:
    """Predictions stay within the range of all earlier rows; counts may be 8 below the logarithm of their mean."""
    batch = linear_stream(2, loss, rows=400, weighted=False)
    _, scores, _ = progressive(spec(loss, 12, **options), batch)
    if loss in ("hinge", "squared_hinge"):
        low, high = -np.ones(len(batch)), np.ones(len(batch))
    elif loss == "poisson":
        mean = np.cumsum(batch.y) / np.arange(1, len(batch) + 1)
        with np.errstate(divide="ignore"):
            low, high = np.log(mean) - 8.0, np.log(np.maximum.accumulate(batch.y))
    else:
        low, high = np.minimum.accumulate(batch.y), np.maximum.accumulate(batch.y)
        low, high = (np.log(low), np.log(high)) if loss == "gamma" else (low, high)
    slack = 1e-12 * (1.0 + np.abs(high[:-1]))
    known = np.isfinite(high[:-1])
    assert known.sum() > 390
    assert ((scores[1:] >= low[:-1] - slack) & (scores[1:] <= high[:-1] + slack))[known].all()
    assert np.ptp(scores[100:]) > 0.05 * np.ptp(batch.y) or loss in ("poisson", "gamma", "hinge", "squared_hinge")


# ---- odd streams ----

ODD: dict[str, Any] = {
    "constant": lambda y: np.full_like(y, 7.3),
    "constant at first": lambda y: np.where(np.arange(len(y)) < 500, 7.3, y),
    "row 2 is 1e6 times the others": lambda y: np.where(np.arange(len(y)) == 1, 1e6 * y, y),
    "row 1000 is 1e6 times the others": lambda y: np.where(np.arange(len(y)) == 999, 1e6 * y, y),
    "times 1000 at half": lambda y: np.where(np.arange(len(y)) < len(y) // 2, y, 1000.0 * y),
    "a thousandth at half": lambda y: np.where(np.arange(len(y)) < len(y) // 2, y, y / 1000.0),
    "all zeros": lambda y: np.zeros_like(y),
    "of 1e-150": lambda y: 1e-150 * y,
    "of 1e-40": lambda y: 1e-40 * y,
    "of 1e28": lambda y: 1e26 * y / np.abs(y).max() * 1e4,
    "from 1e-150 to 1e30": lambda y: np.sign(y) * 10.0 ** np.linspace(-150, 30, len(y)),
    "from 1e30 to 1e-150": lambda y: np.sign(y) * 10.0 ** np.linspace(30, -150, len(y)),
    "alternating": lambda y: np.where(np.arange(len(y)) % 2, y.max(), y.min()),
    "trend": lambda y: y + 10.0 * np.arange(len(y)),
}


def odd_stream(kind: str, loss: str, rows: int = 3000) -> Batch:
    batch = linear_stream(6, loss, rows=rows, weighted=False)
    y = np.asarray(ODD[kind](batch.y.copy()), np.float64)
    if loss == "gamma":
        y = np.maximum(y, 1e-300) if kind != "all zeros" else np.ones_like(y)
    return replace(batch, y=fitted(loss, y))


@pytest.mark.parametrize(("scale", "float64"), [(0.3, True), (AUTO, False)])
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("loss", [*NUMBERS, "poisson", "gamma"])
def test_odd_labels_do_no_harm(loss: str, kind: str, scale: Any, float64: bool) -> None:
    """All numbers stay finite, and the loss is close to that of the running mean, median or quantile."""
    batch = odd_stream(kind, loss)
    engine, scores, losses = progressive(spec(loss, 12, scale=scale, float64=float64), batch, receipt=True)
    assert np.isfinite(scores).all()
    assert np.isfinite(losses).all()
    assert np.isfinite(engine.score(batch)).all()
    for name, array in {**state_of(engine), **arrays_of(engine)}.items():
        assert np.isfinite(array).all(), name
    c = own_certificate(engine)
    for name in ("loss", "excess", "regret", "tight", "bound", "theorem", "drift", "rounding"):
        assert math.isfinite(getattr(c, name)), name
    if kind == "from 1e-150 to 1e30" and loss in ("poisson", "gamma") and scale == 0.3:
        return  # counts that grow by a tenth from row to row: one scale without a mixture cannot follow
    assert _excess(engine) <= (0.5 if loss == "gamma" and kind == "row 1000 is 1e6 times the others" else 0.2)


@pytest.mark.parametrize("loss", [*NUMBERS, "poisson", "gamma"])
@law(3)
@given(seed=SEEDS, power=st.integers(3, 8))
def test_one_label_far_from_all_others_is_left_behind(loss: str, seed: int, power: int) -> None:
    """At row 20, 10^3 to 10^8 spreads away: from row 1,000 on the loss is below that of the running baseline.

    Before row 17 no label is cut, and the mixture may lose once more what such a label has cost.
    """
    batch = linear_stream(seed, loss, rows=3000, weighted=False)
    y = batch.y.copy()
    y[19] = 10.0**power * (y.max() - y.min()) + y.mean()
    s = spec(loss, 12, scale=AUTO, coin=True, dense=True)
    engine = Engine(s)
    first = engine.learn(replace(batch, y=y)[:1000]) and engine.progress
    engine.learn(replace(batch, y=y)[1000:])
    now = engine.progress
    least = now.least - first.least
    assert now.loss - first.loss - least <= 1.01 * (now.baseline - first.baseline - least)


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("loss", [*NUMBERS, "poisson", "gamma"])
def test_odd_labels_leave_the_coin_and_the_columns_finite(loss: str, kind: str) -> None:
    engine, scores, losses = progressive(spec(loss, 12, scale=AUTO, coin=True, dense=True), odd_stream(kind, loss))
    assert np.isfinite(scores).all()
    assert np.isfinite(losses).all()
    for name, array in arrays_of(engine).items():
        assert np.isfinite(array).all(), name


def _excess(engine: Engine) -> float:
    """Return the excess of the loss over the baseline's, relative to the baseline's loss above the least loss."""
    now = engine.progress
    above, possible = now.loss - now.baseline, now.baseline - now.least
    return above / possible if possible > 0.0 else float(above > 0.0)


@pytest.mark.parametrize("scale", [0.3, AUTO])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("label", [1.0, -1.0])
def test_a_single_class_is_learned(loss: str, scale: Any, label: float) -> None:
    batch = replace(linear_stream(6, loss, rows=2000, weighted=False), y=np.full(2000, label))
    engine, scores, _ = progressive(spec(loss, 12, scale=scale), batch)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 1.0 + 1e-12  # the weights of a mixture sum to 1 within rounding
    assert (scores[1000:] * label > 0.98).all()
    assert engine.progress.loss < 20.0


@pytest.mark.parametrize("scale", [0.3, AUTO])
@pytest.mark.parametrize("loss", LABELLED)
def test_weights_of_zero_teach_nothing(loss: str, scale: Any) -> None:
    batch = replace(linear_stream(6, loss), weight=np.zeros(300))
    engine, scores, losses = progressive(spec(loss, 12, scale=scale), batch, receipt=True)
    assert np.isfinite(losses).all()
    assert not scores.any()
    assert not engine.cells.any()
    assert engine.progress.rows == 0


@pytest.mark.parametrize("scale", [0.3, "auto"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "huber", "poisson", "gamma"])
def test_a_run_on_the_smallest_labels_is_saved_and_confirmed(
    loss: str, scale: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels of 1e-150 after labels of 0, where the loss accepts them."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1100, 2)).round(3)
    y = 1e-150 * np.exp(0.3 * x.sum(axis=1)) * (np.ones(1100) if loss == "gamma" else np.arange(1100) >= 20)
    lines = [f"{label:.9g} | a:{a} b:{b}\n" for label, (a, b) in zip(y.tolist(), x.tolist(), strict=True)]
    data, model, receipt = (str(tmp_path / name) for name in ("d.vw", "m", "r"))
    Path(data).write_text("".join(lines))
    options = ["--loss", loss, "--bits", "6", "--receipt", "-q", "--scale", str(scale)]
    assert run(["train", data, "-o", model, *options]) == 0
    if loss == "poisson":  # whose gradients are beyond the range of a float32
        assert run(["certify", model, "-o", receipt]) == 1
        assert "no certificate: gradients up to" in capsys.readouterr().err
        assert run(["train", data, "-o", model, *options, "--float64"]) == 0
    assert run(["certify", model, "-o", receipt]) == 0
    assert run(["verify", receipt, data, "--model", model, "-q"]) == 0
    assert run(["predict", model, data, "-o", str(tmp_path / "p")]) == 0
    assert np.isfinite(np.loadtxt(tmp_path / "p")).all()
    capsys.readouterr()


def test_labels_beyond_the_limit_are_refused_in_one_line() -> None:
    engine = Engine(Spec("squared", dim=4, scale=AUTO))
    with pytest.raises(InvalidInput, match=r"^row 1: a label needs to be .*1e30.*, got 1e\+31"):
        engine.learn(Batch.from_rows([{0: 1.0}, {0: 1.0}], [1.0, 1e31]))


# ---- the ends of the range ----


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("loss", LABELLED)
def test_extremes_stay_finite(loss: str, name: str, float64: bool) -> None:
    """For all valid input no number becomes infinite or NaN, and the replay agrees."""
    huge, small = 1e30, 1e-40
    y = fitted(loss, [huge, -huge, 0.0, huge, 1.0, -huge, 1e-150, -1e-150]).tolist()
    rows: list[dict[int, float]] = [
        {0: huge, 1: small}, {0: -huge, 1: 1.0}, {1: huge}, {0: small}, {}, {0: 1, 1: small}, {0: 1.0}, {1: 1.0},
    ]  # fmt: skip
    weights = np.tile([huge, 1.0, 1e-30, 1e-300], 2)
    orders = [np.arange(8), np.arange(8)[::-1], np.array([6, 7, 4, 2, 0, 5, 1, 3])]
    for order in orders:
        largest = np.array([max(map(abs, rows[i].values()), default=1.0) for i in order])
        own = np.minimum(weights[order[::-1]], huge / np.maximum(largest, 1.0))  # rows beyond the range are refused
        some = [rows[i] for i in order], [y[i] for i in order], own
        batch = Batch.from_rows(some[0] * 6, some[1] * 6, np.tile(some[2], 6), float64=True)
        for scale in (1e30, 1e-30, 0.1, (1e-30, 1.0, 1e30), AUTO):
            for more in ({}, {"l1": 0.1, "l2": 1e-30, "lower": -1e30, "upper": 1e30}, {"beta": 0.0}):
                s = Spec(loss=loss, dim=2, float64=float64, scale=scale, **more)
                use_instruction_set(name)
                engine, scores, losses = progressive(s, batch, receipt=True)
                use_instruction_set("")
                assert np.isfinite(scores).all()
                assert np.isfinite(losses).all()
                for part in ("z", "R", "unit", "S"):
                    assert np.isfinite(engine.parts[part]).all(), part
                assert np.isfinite(engine.intercept).all()
                assert np.isfinite(engine.score(batch)).all()
                replay = Replay(s, retire=True)
                with np.errstate(all="ignore"):
                    replay.learn(batch)
                assert_same(engine, replay)


@pytest.mark.parametrize(("scale", "float64"), [(0.1, True), (AUTO, False)])
@pytest.mark.parametrize("loss", NUMBERS)
@pytest.mark.parametrize("label", [1e-150, 1e-154, 1e-160, 1.5e-162, 1e-310, 5e-324])
def test_labels_whose_square_is_next_to_zero(loss: str, label: float, scale: Any, float64: bool) -> None:
    batch = Batch.from_rows([{0: 1.0}, {0: -1.0}] * 4, y=[label, -label, label, 0.0, 1.0, -1.0, label, -label])
    engine, scores, _ = progressive(spec(loss, 2, scale=scale, float64=float64), batch, receipt=True)
    assert np.isfinite(scores).all()
    for name, array in {**state_of(engine), **arrays_of(engine)}.items():
        assert np.isfinite(array).all(), name
    assert arrays_of(engine).get("mixture.w", np.ones(1)).sum() == pytest.approx(1.0)
