"""The floor curve as data and in words."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl.errors import InvalidInput
from ftprl.runlog.answers import fixed_weights, guessing, learning_rate
from ftprl.runlog.floor import FloorCurve, above, below, headline
from ftprl.runlog.plots import floor

CURVE = FloorCurve("2", 50.0, 100.0, 1.0, ((60.0, 4.0), (58.0, 3.0), (20.0, 0.5)))
numbers = st.floats(0.01, 1e4)
curves = st.builds(
    lambda loss, lines: FloorCurve("2", loss, 10.0, 1.0, tuple(lines)),
    numbers,
    st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8),
)


def test_the_curve_is_the_largest_line() -> None:
    assert [CURVE.at(a) for a in (0.0, 1.0, 4.0, 30.0, 41.0)] == [0.6, 0.56, 0.46, 0.05, 0.0]
    assert CURVE.beaten_length == pytest.approx(8 / 3)
    assert CURVE.informative_length == pytest.approx(40.0)
    assert replace(CURVE, least=None).at(41.0) == pytest.approx(-0.005)
    assert replace(CURVE, least=None).informative_length is None


@given(curves)
def test_what_is_beaten_is_beaten(curve: FloorCurve) -> None:
    """At the beaten length the floor equals the run's own loss, beyond it is lower; it decreases ever more slowly."""
    length = curve.beaten_length
    if length is None:
        assert curve.at(0.0) < curve.mean
    else:
        assert curve.at(length) == pytest.approx(curve.mean, rel=1e-9)
        assert curve.at(1.001 * length + 1e-9) <= curve.mean
    heights = [curve.at(a) for a in (0.0, 1.0, 2.0, 3.0)]
    assert heights == sorted(heights, reverse=True)
    falls = [a - b for a, b in itertools.pairwise(heights)]
    assert all(b <= a + 1e-9 * heights[0] for a, b in itertools.pairwise(falls))


@given(curves)
def test_the_words_are_true(curve: FloorCurve) -> None:
    """Every number in the headline is rounded towards the proved side."""
    text, length = headline(curve), curve.far_length()
    if curve.beaten_length:
        assert f"of length up to {below(curve.beaten_length)}" in text
        assert float(below(curve.beaten_length)) <= curve.beaten_length * (1 + 1e-8)
    if length is not None:
        assert length > (curve.beaten_length or 0.0)
        assert f"{length:g} could have been more than {above(100 * curve.better(length))} % better" in text
        assert float(above(100 * curve.better(length))) >= 100 * curve.better(length) * (1 - 1e-8)


def test_nothing_is_claimed_where_nothing_is_proved() -> None:
    nothing = FloorCurve("2", 50.0, 100.0, 1.0, ((-3.0, 4.0),))
    assert nothing.beaten_length is None
    assert nothing.at(1.0) == 0.0
    assert "Nothing is proved" in headline(nothing)
    some = FloorCurve("2", 50.0, 100.0, 1.0, ((40.0, 4.0),))
    assert headline(some).startswith("No fixed linear model of length up to 0.1 could")
    everything = FloorCurve("2", 50.0, 100.0, 1.0, ((51.0, 0.0),))
    assert headline(everything) == "This run provably beat every fixed linear model, of any length."
    assert FloorCurve("2", 0.0, 0.0, 1.0, ((0.0, 0.0),)).at(1.0) == 0.0


def test_losses_that_may_be_below_zero_have_no_shares() -> None:
    counts = FloorCurve("2", -520.0, 10.0, 1.0, ((-510.0, 30.0), (-521.0, 1.0)), None)
    assert "% " not in headline(counts)
    assert "could have had a mean loss more than 0.14 lower than the run" in headline(counts)
    answer = learning_rate({"mixture": -60.0, "loss": -55.0, "scale": 0.5}, 10.0).answer
    assert answer.endswith("had a loss of -5.5000 per row, 0.5000 more than the mixture of all.")


def test_events_of_any_kind_are_read() -> None:
    assert FloorCurve.from_dict(json.loads(json.dumps(CURVE.to_dict()))) == CURVE
    bad: list[Any] = [None, 3, {}, {**CURVE.to_dict(), "norm": "3"}, {**CURVE.to_dict(), "lines": [[1]]}]
    bad += [
        {**CURVE.to_dict(), "lines": []},
        {**CURVE.to_dict(), "loss": float("nan")},
        {**CURVE.to_dict(), "weight": 0},
    ]
    assert [FloorCurve.from_dict(one) for one in bad] == [None] * len(bad)


@pytest.mark.parametrize("length", [-1.0, math.inf, math.nan])
def test_a_length_is_a_number_from_0_on(length: float) -> None:
    with pytest.raises(InvalidInput, match="length needs"):
        CURVE.at(length)


def test_the_answers() -> None:
    assert guessing("logistic", 0.4, 0.5, 20.0).answer.startswith("Yes: a log loss of 0.4000 per row, 20.0 % better")
    assert guessing("logistic", 0.6, 0.5, -20.0).answer.startswith("No: a log loss of 0.6000")
    assert guessing("logistic", 0.69444, 0.69448, 0.006).answer.startswith(
        "Hardly: a log loss of 0.6944 per row; guessing"
    )
    assert "no baseline" in guessing("logistic", 0.6, None, None).answer
    assert "RMSE 2.0000" in guessing("squared", 2.0, 8.0, 75.0).answer
    rates = {"scale": 0.45, "loss": 101.0, "mixture": 100.0, "guaranteed": 9.0}
    assert "1.00 % more than the mixture of all" in learning_rate(rates, 200.0).answer
    assert "the mixture is at most 0.045 per row above the best scale" in learning_rate(rates, 200.0).answer
    assert learning_rate({**rates, "loss": 99.5}, 200.0).answer.startswith("Hardly")
    assert learning_rate({**rates, "loss": 90.0}, 200.0).answer.startswith("Yes")
    assert learning_rate({**rates, "loss": 100.001}, 200.0).answer.startswith("No")
    assert "Guaranteed" not in learning_rate({**rates, "guaranteed": None}, 200.0).answer
    assert "single" in learning_rate(None, 200.0).answer
    assert "--receipt" in fixed_weights(None).answer
    assert "on top of the mean" in fixed_weights(CURVE, "the mean of the labels").answer


def test_the_curve_is_drawn_under_the_run() -> None:
    panel = floor(CURVE, points=[{"length": 2.0, "loss": 55.0, "at_least": 54.0}], own=3.0, base=0.7)
    names = [series.name for series in panel.series]
    assert names == ["this run", "baseline: labels alone", "floor: no fixed weights are below", "best fixed weights"]
    assert panel.vlines == [(3.0, "the model's weights")]
    assert floor(FloorCurve("2", 0.0, 0.0, 1.0, ((0.0, 0.0),))).xlim == (0.0, 1.0)
