"""Metrics of the order of scores: equal in memory and merged from disk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.evaluation.ranking import Ranked, Ranking, SliceRankings


def ranked(scores: np.ndarray, y: np.ndarray, weight: np.ndarray, most_rows: int = 1 << 21, size: int = 37) -> Ranked:
    ranking = Ranking(most_rows)
    for a in range(0, len(y), size):
        ranking.add(scores[a : a + size], y[a : a + size], weight[a : a + size])
    actual = ranking.ranked()
    assert actual is not None
    return actual


def slow_auc(scores: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Return the AUC by enumerating all pairs of a positive and a negative."""
    p, n = scores[y][:, None], scores[~y][None, :]
    pairs = weight[y][:, None] * weight[~y][None, :]
    return float((pairs * ((p > n) + 0.5 * (p == n))).sum() / pairs.sum())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), digits=st.integers(0, 3), most=st.integers(8, 300))
def test_merged_runs_are_exact(seed: int, digits: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    scores, y = np.round(rng.normal(size=300), digits), rng.random(300) < 0.3
    y[:2] = [True, False]
    weight = rng.choice([0.5, 1.0, 3.0], 300)
    whole, merged = ranked(scores, y, weight), ranked(scores, y, weight, most)
    assert whole.auc == pytest.approx(slow_auc(scores, y, weight), rel=1e-12)
    assert merged.auc == pytest.approx(whole.auc, rel=1e-12)
    assert merged.auc_error == pytest.approx(whole.auc_error, rel=1e-9)
    assert merged.average_precision == pytest.approx(whole.average_precision, rel=1e-12)
    for part, (precision, rows) in whole.precision_at.items():
        assert merged.precision_at[part] == pytest.approx((precision, rows), rel=1e-9)
    assert whole.runs == 1


def test_many_scores_go_to_disk() -> None:
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=20_000), rng.random(20_000) < 0.5
    actual = ranked(scores, y, np.ones(20_000), most_rows=3000, size=1000)
    assert actual.runs >= 5
    assert actual.auc == pytest.approx(ranked(scores, y, np.ones(20_000)).auc, rel=1e-12)
    recall, fall_out, precision = np.array(actual.curve).T
    assert (np.diff(recall) >= 0).all()
    assert (np.diff(fall_out) >= 0).all()
    assert (recall[-1], fall_out[-1]) == (pytest.approx(1.0), pytest.approx(1.0))
    assert ((precision >= 0) & (precision <= 1)).all()


def delong(scores: np.ndarray, y: np.ndarray) -> float:
    """Return the standard error by the formula of DeLong, DeLong and Clarke-Pearson 1988, with n - 1 in variances."""
    pairs = scores[y][:, None] - scores[~y][None, :]
    placed = (pairs > 0) + 0.5 * (pairs == 0)
    return float(np.sqrt(placed.mean(axis=1).var(ddof=1) / y.sum() + placed.mean(axis=0).var(ddof=1) / (~y).sum()))


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), digits=st.integers(0, 3), rows=st.integers(4, 60))
def test_the_standard_error_is_delongs(seed: int, digits: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    scores, y = np.round(rng.normal(size=rows), digits), rng.random(rows) < 0.4
    y[:4] = [True, False, True, False]
    assert ranked(scores, y, np.full(rows, 0.5)).auc_error == pytest.approx(delong(scores, y), rel=1e-9, abs=1e-12)


def test_one_row_of_a_class_has_no_standard_error() -> None:
    assert ranked(np.arange(5.0), np.array([0, 1, 0, 0, 0], bool), np.full(5, 0.3)).auc_error == np.inf


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), digits=st.integers(0, 3), most=st.integers(1, 300), slices=st.integers(1, 9))
def test_slices_share_the_memory_of_one_ranking(seed: int, digits: int, most: int, slices: int) -> None:
    rng = np.random.default_rng(seed)
    scores, y = np.round(rng.normal(size=400), digits), rng.random(400) < 0.3
    weight, value = rng.choice([0.5, 1.0, 3.0], 400), rng.integers(0, slices, 400)
    rankings = SliceRankings(most)
    for a in range(0, 400, 37):
        for v in range(slices):
            some = np.flatnonzero(value[a : a + 37] == v) + a
            if len(some):
                rankings.add(str(v), scores[some], y[some], weight[some])
                assert rankings.held <= most
    for v in range(slices):
        some, actual = value == v, rankings.ranked(str(v))
        if not 0 < y[some].sum() < some.sum():
            assert actual is None
            continue
        assert actual is not None
        alone = ranked(scores[some], y[some], weight[some])
        assert actual.auc == pytest.approx(alone.auc, rel=1e-12)
        assert actual.auc_error == pytest.approx(alone.auc_error, rel=1e-9)
    assert rankings.ranked("another") is None


def test_rows_of_one_class_have_no_order() -> None:
    ranking = Ranking()
    assert ranking.ranked() is None
    ranking.add(np.ones(3), np.ones(3, bool), np.ones(3))
    assert ranking.ranked() is None
