"""Sparse rules, many constants at once, against the dense learners one constant at a time."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from ftprl import FTPRL, baselines, play
from ftprl.learner import Learner
from ftprl.losses import logistic
from ftprl.paper import clicks, real, sparse_beliefs, sparse_box
from ftprl.paper.rows import mistakes
from ftprl.paper.sparse_box import Rows, Rule, run
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box

CONSTANTS = np.array([0.3, 2.0, 30.0])
RULES = [sparse_box.Global, sparse_box.Diagonal]
DESCENT = [sparse_box.FixedDescent, sparse_box.GlobalDescent, sparse_box.PerCoordinateDescent]


def dense(kind: type[Rule], F: Box, c: float) -> Learner[Any]:
    D = F.diameter()
    made: dict[type[Rule], Any] = {
        sparse_box.Global: lambda: FTPRL(F, CoordinateConstant(c)),
        sparse_box.Diagonal: lambda: FTPRL(F, Diagonal(c)),
        sparse_box.FixedDescent: lambda: baselines.GradientDescent(F, c),
        sparse_box.PerCoordinateDescent: lambda: baselines.PerCoordinateDescent(F, c / F.widths()[0]),
        # the untuned rate is D / sqrt(2 sum |g|²)
        sparse_box.GlobalDescent: lambda: baselines.GradientDescent(F) if c == D / math.sqrt(2) else None,
    }
    return made[kind]()


def stream(rng: np.random.Generator, count: int = 60, dim: int = 7) -> Rows:
    """Return rows with a frequent feature, rare ones, and values of both signs."""
    pairs = []
    for t in range(count):
        chance = 1.0 / (1.0 + np.arange(dim))
        on = np.flatnonzero(rng.random(dim) < chance)
        on = on if len(on) else np.array([t % dim])
        pairs.append((on, rng.choice([1.0, -1.0, 0.5], size=len(on))))
    pairs += [(np.arange(dim), np.ones(dim))]
    indptr = np.concatenate(([0], np.cumsum([len(a) for a, _ in pairs]))).astype(np.int64)
    y = np.where(rng.random(len(pairs)) < 0.35, 1.0, -1.0)
    return Rows(indptr, np.concatenate([a for a, _ in pairs]), np.concatenate([v for _, v in pairs]), y, dim)


def as_losses(rows: Rows) -> list[Any]:
    out = []
    for at, v, y in rows:
        wide = np.zeros(rows.dim)
        wide[at] = v
        out.append(logistic(wide, y))
    return out


@pytest.mark.parametrize("radius", [0.2, 3.0])
@pytest.mark.parametrize("kind", RULES)
def test_ftprl_on_sparse_rows_is_the_dense_learner(kind: type[Rule], radius: float, rng: np.random.Generator) -> None:
    rows = stream(rng)
    rule = kind(rows.dim, CONSTANTS, radius)
    account = run(rule, rows, np.array([len(rows)]))
    F = Box(-radius, radius, dim=rows.dim)
    for i, c in enumerate(CONSTANTS):
        game = play(dense(kind, F, float(c)), as_losses(rows))
        receipt = game.certificate()
        np.testing.assert_allclose(rule.x[:, i], game.x, atol=1e-9)
        near = {"rel": 1e-8, "abs": 1e-9}
        assert account.regret[i] == pytest.approx(receipt.regret, **near)
        b = account.bounds
        assert b.bound[i] == pytest.approx(receipt.bound, **near)
        assert b.theorem is not None
        assert b.theorem[i] == pytest.approx(receipt.theorem, **near)
        assert b.worst_case is not None
        assert b.worst_case[i] == pytest.approx(receipt.worst_case, **near)
        assert b.post_hoc is not None
        assert b.post_hoc[i] == pytest.approx(receipt.post_hoc[receipt.family or ""], **near)
        assert b.post_hoc_one is not None
        assert b.post_hoc_one[i] == pytest.approx(receipt.post_hoc["const"], **near)


@pytest.mark.parametrize("radius", [0.2, 3.0])
@pytest.mark.parametrize("kind", DESCENT)
def test_descent_on_sparse_rows_is_the_dense_learner(kind: type[Rule], radius: float, rng: np.random.Generator) -> None:
    rows = stream(rng)
    F = Box(-radius, radius, dim=rows.dim)
    constants = np.array([F.diameter() / math.sqrt(2)]) if kind is sparse_box.GlobalDescent else CONSTANTS
    rule = kind(rows.dim, constants, radius)
    account = run(rule, rows, np.array([len(rows)]))
    losses = as_losses(rows)
    for i, c in enumerate(constants):
        learner = dense(kind, F, float(c))
        state, total = learner.init(), 0.0
        for f in losses:
            value, g = f(state.x)
            total += value
            state = learner.update(state, g)
        np.testing.assert_allclose(rule.x[:, i], state.x, atol=1e-9)
        assert account.loss[i] == pytest.approx(total, rel=1e-9)
        assert account.curve[-1, i] == account.loss[i]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([*RULES, *DESCENT]), st.floats(0.1, 5))
def test_regret_stays_below_every_bound(seed: int, kind: type[Rule], radius: float) -> None:
    rows = stream(np.random.default_rng(seed), 40, 5)
    account = run(kind(rows.dim, CONSTANTS, radius), rows, np.array([len(rows)]))
    links = [account.regret, account.bounds.bound]
    if account.bounds.theorem is not None and account.bounds.worst_case is not None:
        links += [account.bounds.theorem, account.bounds.worst_case]
    for small, large in itertools.pairwise(links):
        assert np.all(small <= large * (1 + 1e-9) + 1e-9)


def test_sparse_classifiers_are_the_dense_ones(rng: np.random.Generator) -> None:
    rows = stream(rng, 150)
    wide = np.zeros((len(rows), rows.dim))
    for t, (at, v, _) in enumerate(rows):
        wide[t, at] = v
    r, phi = np.array([0.3, 1.0, 20.0]), ndtri(np.array([0.6, 0.9, 0.99]))
    arow = sparse_beliefs.mistakes(rows, r, sparse_beliefs.arow, False)
    confident = sparse_beliefs.mistakes(rows, phi, sparse_beliefs.confidence, True)
    for i in range(3):
        made = baselines.Arow(rows.dim, float(r[i])), baselines.ConfidenceWeighted(rows.dim, (0.6, 0.9, 0.99)[i])
        for classifier, actual in zip(made, (arow, confident), strict=True):
            assert round(mistakes(classifier, wide, rows.y) * len(rows)) == actual[i]


def test_the_grid_is_widened_and_sorted(rng: np.random.Generator) -> None:
    rows = stream(rng, 300)
    actual = clicks.tune(sparse_box.FixedDescent, rows, 2.0**-12, 2.0**-11, 3.0, np.array([10.0, 301.0]))
    c = actual.account.constants
    assert not actual.at_edge
    assert np.all(np.diff(c) > 0)
    assert c[0] == 2.0**-12
    assert actual.loss * len(rows) == actual.account.loss.min()
    alone = run(sparse_box.FixedDescent(rows.dim, np.array([actual.constant]), 3.0), rows, np.array([301.0]))
    assert alone.loss[0] == pytest.approx(actual.account.loss[actual.best], rel=1e-12)
    assert actual.account.curve.shape == (2, len(c))


def test_synthetic_clicks_are_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = real.synthetic_clicks(500, seed=3)
    assert len(rows) == 500
    assert set(rows.y) == {-1.0, 1.0}
    assert rows.counts()[0] == 500  # the intercept
    assert rows.counts()[-1] >= 1
    assert rows.values.min() >= 1.0
    assert rows.values.max() < 15.0


def test_real_streams_are_cut_and_numbered() -> None:
    for name, dim in (("rcv1", None), ("a9a", 122)):
        if not real.available(name):
            pytest.skip(f"the data of {name} are not there")
        rows = real.read_stream(name, 400)
        assert len(rows) == 400
        assert len(rows.indptr) == 401
        assert rows.indices.max() == rows.dim - 1
        assert len(np.unique(rows.indices)) == rows.dim
        assert dim is None or rows.dim <= dim


def test_the_folder_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("FTPRL_DATA", str(tmp_path))
    assert real.folder() == tmp_path
    assert not any(real.available(name) for name in (*real.STREAMS, *real.MARKETS))
    assert real.missing("abc", iter("cb"))[0].endswith("(FTPRL_DATA): a.")
    assert real.missing("abc", iter("cab")) == []


def test_without_real_data_the_synthetic_log_is_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("FTPRL_DATA", str(tmp_path))
    result: list[str] = []
    actual = [clicks.study(real.synthetic_clicks(1500), "synthetic clicks", result.append)]
    outcome = clicks.judged(actual)
    assert len(result) == len(clicks.RULES) + 1
    assert all(check.ok for check in outcome.stated), [str(c) for c in outcome.stated]
    assert "Not run" in outcome.numbers[-1]
    assert "criteo, a9a, rcv1, sms" in outcome.numbers[-1]


def test_a_rule_that_goes_uphill_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """With the sign of the gradient changed in FTPRL-Diag the verdict changes."""
    monkeypatch.setenv("FTPRL_DATA", str(tmp_path))
    rightly = sparse_box.Diagonal.step
    monkeypatch.setattr(sparse_box.Diagonal, "step", lambda self, at, x, g: rightly(self, at, x, -g))
    outcome = clicks.judged([clicks.study(real.synthetic_clicks(400), "synthetic clicks", lambda text: None)])
    assert not all(check.ok for check in outcome.stated)
