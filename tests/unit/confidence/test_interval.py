"""Confidence sequences: the core against its twin, coverage by simulation, width, and cuts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl._core import MeanSequence, largest_deviation, log_wealth
from ftprl.confidence import MeanInterval
from oracles import confidence_twin as twin

LEVEL = 0.95


def sequence(bound: float = 1.0, is_signed: bool = False, grows: bool = False) -> MeanSequence:
    return MeanSequence(bound, is_signed, grows, 1.0 - LEVEL)


def interval_of(x: np.ndarray, weight: np.ndarray | None = None, **kind: float) -> MeanInterval:
    made = sequence(**kind)  # type: ignore[arg-type]
    made.add(np.asarray(x, np.float64), np.ones(len(x)) if weight is None else weight)
    actual = MeanInterval.of(made, LEVEL)
    assert actual is not None
    return actual


@settings(max_examples=40, deadline=None)
@given(s=st.floats(-1e4, 1e4), v=st.floats(0, 1e6), doublings=st.integers(0, 8))
def test_the_mixture_is_that_of_the_twin(s: float, v: float, doublings: int) -> None:
    assert log_wealth(s, v, doublings) == pytest.approx(twin.log_wealth(s, v, doublings), rel=1e-9, abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(v=st.floats(0, 1e9), threshold=st.floats(0.1, 50), doublings=st.integers(0, 8))
def test_the_largest_deviation_solves_the_equation(v: float, threshold: float, doublings: int) -> None:
    actual = largest_deviation(v, threshold, doublings)
    assert actual == pytest.approx(twin.largest_deviation(v, threshold, doublings), rel=1e-8)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    is_signed=st.booleans(),
    grows=st.booleans(),
    weighted=st.booleans(),
    cuts=st.lists(st.integers(0, 700), max_size=5),
)
def test_the_core_equals_its_twin(seed: int, is_signed: bool, grows: bool, weighted: bool, cuts: list[int]) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_t(2, 700) * rng.choice([0.1, 0.5]) + 0.1
    weight = rng.lognormal(0, 1, 700) if weighted else np.ones(700)
    core, slow = sequence(1.0, is_signed, grows), twin.SequenceTwin(1.0, is_signed, grows, 1.0 - LEVEL)
    edges = [0, *sorted(cuts), 700]
    for a, b in itertools.pairwise(edges):
        core.add(x[a:b].copy(), weight[a:b].copy())
    for one, c in zip(x.tolist(), weight.tolist(), strict=True):
        slow.add(one, c)
    whole = sequence(1.0, is_signed, grows)
    whole.add(x, weight)
    assert core.numbers == whole.numbers  # to the bit, however the rows were cut
    actual = MeanInterval.of(core, LEVEL)
    assert actual is not None
    np.testing.assert_allclose((actual.mean, actual.lower, actual.upper), slow.interval(), rtol=1e-7, atol=1e-9)
    assert (actual.cut_rows, actual.bound) == (slow.cut_rows, slow.bound)


def test_saved_numbers_go_on_to_the_bit() -> None:
    x, ones = np.random.default_rng(0).random(3000), np.ones(3000)
    whole, first, second = sequence(), sequence(), sequence()
    whole.add(x, ones)
    first.add(x[:1111].copy(), ones[:1111])
    second.numbers = first.numbers
    second.add(x[1111:].copy(), ones[1111:])
    assert second.numbers == whole.numbers


@pytest.mark.parametrize("ratio", [2.0, 5.0, 10.0])
def test_the_width_is_at_most_twice_that_of_the_central_limit(ratio: float) -> None:
    """The width is at most twice the central limit's at 100,000 rows of losses clipped at 10 standard deviations."""
    rng, n = np.random.default_rng(1), 100_000
    p = 0.5 - 0.5 * math.sqrt(max(0.0, 1.0 - 4.0 / ratio**2))  # of 1 against 0: a standard deviation of 1 / ratio
    x = (rng.random(n) < p).astype(np.float64)
    assert 1.0 / x.std() <= 1.05 * ratio
    assert interval_of(x).radius <= 2.0 * 1.96 * x.std() / math.sqrt(n)
    signed = rng.normal(0.1, 1.0, n)
    assert interval_of(signed, bound=ratio, is_signed=True).radius <= 2.0 * 1.96 * signed.std() / math.sqrt(n)


@pytest.mark.parametrize("weights", [(0.5, 1.0, 2.0), (1.0, 2.0), (0.25, 1.0, 4.0)])
def test_weights_do_not_widen_the_interval(weights: tuple[float, ...]) -> None:
    """With weights, the width at 100,000 rows is at most twice the central limit's, even if the largest weight comes
    late.
    """
    rng, n = np.random.default_rng(2), 100_000
    x, weight = (rng.random(n) < 0.2).astype(np.float64), rng.choice(weights, n)
    weight[: len(weights)] = sorted(weights)
    actual = interval_of(x, weight)
    error = math.sqrt(((weight * (x - actual.mean)) ** 2).sum()) / weight.sum()
    assert actual.radius <= 2.0 * 1.96 * error


def bernoulli(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (rng.random(n) < 0.02).astype(float), np.full(n, 0.02), np.ones(n)


def heavy(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log-normal numbers, and their mean after clipping at 1."""
    mu, sigma = -4.0, 1.5
    phi = lambda t: 0.5 * math.erfc(-t / math.sqrt(2.0))  # noqa: E731
    cut = math.exp(mu + sigma**2 / 2) * phi((0.0 - mu - sigma**2) / sigma) + 1.0 - phi(-mu / sigma)
    return rng.lognormal(mu, sigma, n), np.full(n, cut), np.ones(n)


def adversary(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows whose expectation depends on earlier rows: high after low numbers and low after high ones."""
    x, means, excess = np.empty(n), np.empty(n), 0.0
    draws = rng.random(n)
    for t in range(n):
        means[t] = 0.9 if excess > 0.0 else 0.1
        x[t] = float(draws[t] < means[t])
        excess += x[t] - means[t]
    return x, means, np.ones(n)


def weighted(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return importance weights that depend on the previous row."""
    x = rng.beta(0.2, 0.6, n)
    weight = np.where(np.concatenate(([0.0], x[:-1])) > 0.5, 10.0, 1.0) * rng.choice([0.5, 1.0], n)
    return x, np.full(n, 0.25), weight


def doubling(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights that grow whenever the mean is ahead, which breaks intervals that bet without a limit."""
    x, weight, excess, now = (rng.random(n) < 0.1).astype(float), np.empty(n), 0.0, 0.01
    for t in range(n):
        if excess > 3.0 * now * math.sqrt(1.0 + 0.1 * t) / 4.0 and now < 1.0:
            now *= 1.7
        weight[t] = now
        excess += now * (x[t] - 0.1)
    return x, np.full(n, 0.1), weight


@pytest.mark.parametrize("stream", [bernoulli, heavy, adversary, weighted, doubling])
def test_the_interval_holds_at_every_row(stream: object) -> None:
    """Checked 40 times per stream: at most 5 % of streams may miss, and 200 streams of a valid interval never miss
    20.
    """
    rng, misses, n = np.random.default_rng(7), 0, 2000
    for _ in range(100):
        x, means, weight = stream(rng, n)  # type: ignore[operator]
        made, missed = sequence(), False
        for a in range(0, n, 50):
            made.add(x[a : a + 50].copy(), weight[a : a + 50].copy())
            b = a + 50
            truth = float((weight[:b] * means[:b]).sum() / weight[:b].sum())
            lower, upper = made.interval
            missed |= not lower <= truth <= upper
        misses += missed
    assert misses <= 5


def test_the_simulation_can_fail() -> None:
    """Intervals of the central limit theorem miss far more often when they are checked repeatedly."""
    rng, misses, n = np.random.default_rng(7), 0, 2000
    for _ in range(100):
        x = rng.random(n)
        means, at = np.cumsum(x) / np.arange(1, n + 1), np.arange(49, n, 50)
        misses += bool((np.abs(means - 0.5) > 1.96 * math.sqrt(1 / 12) / np.sqrt(np.arange(1, n + 1)))[at].any())
    assert misses > 15


def test_the_bound_grows_where_too_many_rows_are_cut() -> None:
    rng = np.random.default_rng(3)
    x = np.abs(rng.standard_normal(5000)) * 10.0
    actual = interval_of(x, bound=1.0, grows=True)
    assert actual.bound >= 16.0
    assert actual.lower <= 10 * math.sqrt(2 / math.pi) - actual.cut_off <= actual.upper
    fixed = interval_of(x, bound=1.0)
    assert fixed.bound == 1.0
    assert fixed.cut_rows == int((x > 1.0).sum())
    assert fixed.cut_off == pytest.approx(np.maximum(x - 1.0, 0.0).mean())
    assert fixed.mean == pytest.approx(np.minimum(x, 1.0).mean())


def test_it_is_decided_at_the_first_row_whose_interval_leaves_out_zero() -> None:
    x, one = np.random.default_rng(5).normal(0.1, 0.3, 2000), np.ones(1)
    slow, fast = sequence(1.0, True), sequence(1.0, True)
    rows = []
    for value in x:
        slow.add(np.array([value]), one)
        lower, upper = slow.interval
        rows.append(lower > 0.0 or upper < 0.0)
    assert fast.add(x, np.ones(2000)) == rows.index(True)
    assert slow.numbers == fast.numbers


def test_nothing_is_decided_without_a_difference() -> None:
    made = sequence(1.0, True)
    assert made.add(np.zeros(5000), np.ones(5000)) == -1
    assert made.interval[0] < 0.0 < made.interval[1]


def test_a_number_that_is_missing_is_passed_over() -> None:
    actual = interval_of(np.array([0.5, np.nan, 0.5]))
    assert (actual.rows, actual.mean) == (2, 0.5)


def test_before_the_first_row_there_is_no_interval() -> None:
    assert MeanInterval.of(sequence(), LEVEL) is None


def test_lengths_are_checked() -> None:
    with pytest.raises(ValueError, match="weight needs a number for each of the 3 rows, got 2"):
        sequence().add(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="numbers"):
        sequence().numbers = [1.0]


def test_an_interval_goes_through_json() -> None:
    actual = interval_of(np.random.default_rng(0).random(500))
    assert MeanInterval.from_dict(actual.to_dict()) == actual
    assert actual.text() == f"{actual.mean:.3f} (95 %: {actual.lower:.3f} to {actual.upper:.3f})"
