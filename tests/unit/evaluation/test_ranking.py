"""What depends on the order of scores: the same in memory and merged from disk."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl.evaluation.ranking import Ranked, Ranking


def ranked(scores: np.ndarray, y: np.ndarray, weight: np.ndarray, most_rows: int = 1 << 21, size: int = 37) -> Ranked:
    ranking = Ranking(most_rows)
    for a in range(0, len(y), size):
        ranking.add(scores[a : a + size], y[a : a + size], weight[a : a + size])
    found = ranking.ranked()
    assert found is not None
    return found


def slow_auc(scores: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Every pair of a positive and a negative."""
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
    found = ranked(scores, y, np.ones(20_000), most_rows=3000, size=1000)
    assert found.runs >= 5
    assert found.auc == pytest.approx(ranked(scores, y, np.ones(20_000)).auc, rel=1e-12)
    recall, fall_out, precision = np.array(found.curve).T
    assert (np.diff(recall) >= 0).all()
    assert (np.diff(fall_out) >= 0).all()
    assert (recall[-1], fall_out[-1]) == (pytest.approx(1.0), pytest.approx(1.0))
    assert ((precision >= 0) & (precision <= 1)).all()


def test_rows_of_one_class_have_no_order() -> None:
    ranking = Ranking()
    assert ranking.ranked() is None
    ranking.add(np.ones(3), np.ones(3, bool), np.ones(3))
    assert ranking.ranked() is None
