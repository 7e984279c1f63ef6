"""Related work side by side: the problems, the market, and verdicts that follow from numbers."""

import importlib.util
import itertools
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import FTPRL
from ftprl.baselines import Best, GradientDescent, NewtonLeader
from ftprl.paper import clicks, portfolios, problems, real, related, rows
from ftprl.paper.base import Statement, Verdict
from ftprl.paper.expected import ExpectedLeader
from ftprl.paper.rebalanced import best_rebalanced
from ftprl.schemes import Diagonal
from ftprl.sets import Box, ConvexSet, Ellipsoid, L2Ball, Simplex


def silent(text: str) -> None:
    """Nobody listens."""


# The best constant-rebalanced portfolio.


def test_two_assets_that_take_turns() -> None:
    # One asset doubles while the other halves, in turn: half and half grows by 1.25 a day, either alone not at all.
    actual = best_rebalanced(np.array([[2.0, 0.5], [0.5, 2.0]] * 5))
    np.testing.assert_allclose(actual.x, [0.5, 0.5], atol=1e-9)
    assert actual.log_wealth == pytest.approx(10 * math.log(1.25))
    assert actual.gap <= 1e-8


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 5))
def test_no_fixed_shares_do_better_than_the_gap_allows(seed: int, days: int, assets: int) -> None:
    rng = np.random.default_rng(seed)
    R = np.exp(rng.normal(0, 0.3, size=(days, assets)))
    actual = best_rebalanced(R)
    assert Simplex(assets).contains(actual.x)
    assert actual.gap <= 1e-7 * days
    others = np.vstack((rng.dirichlet(np.ones(assets), size=50), np.eye(assets)))
    assert np.log(R @ others.T).sum(axis=0).max() <= actual.log_wealth + actual.gap + 1e-12


def test_markets_known_from_the_literature() -> None:
    """The best constant-rebalanced portfolio, and the Newton leader's published wealth at weight 1/4."""
    if not (real.available("NYSE") and real.available("DJIA")):
        pytest.skip("the data of NYSE and DJIA are not there")
    nyse, djia = real.read_market("NYSE", 10**6), real.read_market("DJIA", 10**6)
    assert nyse.shape == (5651, 36)
    assert djia.shape == (507, 30)
    best = best_rebalanced(nyse)
    assert math.exp(best.log_wealth) == pytest.approx(250.6, abs=0.1)
    assert best.gap < 1e-4
    assert nyse.prod(axis=0).max() == pytest.approx(54.14, abs=0.01)
    assert math.exp(portfolios.grow(NewtonLeader(Simplex(30)), djia).sum()) == pytest.approx(1.53, abs=0.01)


@pytest.mark.slow
def test_the_newton_leader_on_the_whole_of_nyse() -> None:
    if not real.available("NYSE"):
        pytest.skip("the data of NYSE are not there")
    grown = portfolios.grow(NewtonLeader(Simplex(36)), real.read_market("NYSE", 10**6))
    assert math.exp(grown.sum()) == pytest.approx(109.19, abs=0.05)


# Portfolios.


@pytest.fixture(scope="module")
def market() -> portfolios.Market:
    return portfolios.study(real.synthetic_market(40, assets=4), "synthetic market", silent)


def test_a_market_is_judged(market: portfolios.Market) -> None:
    outcome = portfolios.judged([market])
    assert outcome.verdict is Verdict.HOLDS, [str(c) for c in outcome.stated]
    assert set(market.played) == {*portfolios.SCHEMES, *portfolios.OTHERS}
    assert "synthetic market, 40 days, 4 assets" in outcome.numbers[0]
    assert "NYSE, DJIA" in outcome.numbers[1]
    for who, (at_two, _) in market.certificates.items():
        assert at_two.true_regret == pytest.approx(market.regret(who)[-1] + market.rebalanced.gap, abs=1e-9)


def test_a_receipt_that_does_not_hold_is_seen(market: portfolios.Market) -> None:
    pair = market.certificates["FTPRL-Diag"]
    broken = replace(pair[0], bound=0.5 * pair[0].regret)
    wrong = replace(market, certificates={**market.certificates, "FTPRL-Diag": (broken, pair[1])})
    assert portfolios.judged([wrong]).verdict is Verdict.FAILS
    unbounded = replace(pair[0], bound=None)
    missing = replace(market, certificates={**market.certificates, "FTPRL-Diag": (unbounded, pair[1])})
    assert portfolios.judged([missing]).verdict is Verdict.FAILS


def test_a_learner_that_goes_uphill_turns_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    rightly = FTPRL.advance
    monkeypatch.setattr(FTPRL, "advance", lambda self, state, g, hint: rightly(self, state, -g, hint))
    assert portfolios.steady() > 2.0
    small, large = (problems.bad_class(T) for T in (125, 343))
    learners = [FTPRL(p.feasible, Diagonal(), p.start) for p in (small, large)]
    slope = math.log(large.regret(learners[1]) / small.regret(learners[0])) / math.log(343 / 125)
    assert slope > 0.9


# Problems and related work.


def small(seed: int = 0) -> list[problems.Problem]:
    return [
        problems.bad_class(27),
        problems.heavy_features(60, 5),
        problems.unlike_scales(60, 3, seed),
        problems.poor_ellipsoid(60, 3, 10.0, seed),
        problems.random_market(60, 3, seed),
        problems.sparse_target(60, 4),
    ]


def test_no_fixed_point_beats_the_best() -> None:
    rng = np.random.default_rng(0)
    for problem in small():
        F = problem.feasible
        low, high = F.bounds()
        points = [F.argmin(np.array(1.0), -u, F.start()) for u in rng.uniform(low, high, size=(30, F.dim))]
        for x in [*points, F.start()]:
            penalty = len(problem.losses) * problem.l1 * float(np.abs(x).sum())
            assert sum(f(x)[0] for f in problem.losses) + penalty >= problem.best - 1e-6 * (1 + abs(problem.best))
        assert problem.size == f"n = {F.dim}, T = {len(problem.losses)}"


def test_regret_is_that_of_a_game() -> None:
    """The regret equals that of a written-out game over the losses."""
    for problem in (p for p in small() if not p.l1):
        learner = GradientDescent(problem.feasible, 0.1, problem.start)
        x, total = problem.start, 0.0
        for f in problem.losses:
            value, g = f(x)
            total += value
            x = problem.feasible.argmin(np.array(1.0), 0.1 * g - x, x)
        assert problem.regret(learner) == pytest.approx(total - problem.best, abs=1e-8)


@pytest.mark.parametrize("feasible", [Box(-1, 2, dim=3), Simplex(3), Ellipsoid(np.diag([1.0, 2.0, 5.0])), L2Ball(3)])
def test_the_expected_leader_is_the_mean_of_many_draws(feasible: ConvexSet) -> None:
    S = np.array([-0.3, 0.2, -0.6])
    noise = np.random.default_rng(0).random((20_000, 3)) / 0.8
    drawn = np.mean([feasible.vertex(S + p) for p in noise], axis=0)
    np.testing.assert_allclose(ExpectedLeader(feasible, 0.8).mean(S), drawn, atol=0.03)


def test_a_penalty_is_added_for_all_and_known_to_some() -> None:
    problem = problems.sparse_target(60, 4)
    x, total = problem.start, 0.0
    for f in problem.losses:
        value, g = f(x)
        total += value + problem.l1 * float(np.abs(x).sum())
        x = np.clip(x - 0.1 * (g + problem.l1 * np.sign(x)), -2, 2)
    learner = GradientDescent(problem.feasible, 0.1, problem.start)
    assert problem.regret(learner) == pytest.approx(total - problem.best, abs=1e-8)
    assert problem.regret(learner, knows=True) != pytest.approx(total - problem.best, abs=1e-3)
    assert set(related.PENALISED) < set(related.ALGORITHMS)
    best = related.tune(problem, "dual averaging", 1)
    own = related.PENALISED["dual averaging"](problem.feasible, problem.start, best.constant, problem.l1)
    assert best.cost == problem.regret(own, knows=True)


def test_synthetic_data_are_named_in_the_table(market: portfolios.Market) -> None:
    assert portfolios.judged([replace(market, name="synthetic market")]).remark == "synthetic data"
    assert portfolios.judged([replace(market, name="NYSE")]).remark == ""


def test_who_plays_where() -> None:
    ball, box, many, simplex = Ellipsoid(np.eye(2)), Box(-1, 1, dim=2), Box(-1, 1, dim=20), Simplex(2)
    for name in related.ALGORITHMS:
        assert related.applies(name, ball) == (name not in ("per-coordinate descent", "exponentiated gradient"))
        assert related.applies(name, box) == (name not in ("FTPRL-Scale", "exponentiated gradient"))
        assert related.applies(name, simplex) == (name not in ("FTPRL-Scale", "per-coordinate descent"))
    assert not related.applies("online Newton step", many)
    assert not related.applies("exponentiated gradient", L2Ball(2))


@pytest.mark.parametrize("name", related.ALGORITHMS)
def test_every_algorithm_plays_every_problem_that_is_for_it(name: str) -> None:
    for problem in small():
        if related.applies(name, problem.feasible):
            make = related.ALGORITHMS[name][0]
            regret = problem.regret(make(problem.feasible, problem.start, 1.0))
            assert math.isfinite(regret)
            assert regret >= -1e-6 * (1 + abs(problem.best)) - 0.5 * len(problem.losses)


def findings() -> related.Findings:
    """Return the findings of a correct library, with few numbers."""
    best = {name: Best(1.0, 2.0, {0.5: 3.0, 1.0: 2.0, 2.0: 3.0}) for name in related.ALGORITHMS}
    one = (100.0, 100.0 * 8 ** (2 / 3))
    each = (30.0, 30.0 * math.sqrt(8))
    growth = {name: each if related.ALGORITHMS[name][1] else one for name in related.ALGORITHMS}
    ellipsoid = {**best, "FTPRL-Scale": Best(1.0, 0.5, {0.5: 1.0, 1.0: 0.5, 2.0: 1.0})}
    names = ("bad class", "heavy-tailed features", "features of unlike scale", "random market")
    actual = {**dict.fromkeys(names, best), "poor ellipsoid": ellipsoid}
    return related.Findings(
        actual, dict.fromkeys(actual, "n = 1"), (1000, 8000), growth, 3.0, {"AROW": (0.1, best["FTPRL-Diag"])}
    )


def test_the_verdict_follows_from_the_numbers() -> None:
    good = findings()
    assert related.judged(good).verdict is Verdict.HOLDS
    assert good.slope("FTPRL, global rate") == pytest.approx(2 / 3)
    slow = {**good.growth, "FTPRL-Diag": good.growth["FTPRL, global rate"]}
    assert related.judged(replace(good, growth=slow)).verdict is Verdict.FAILS
    quick = {**good.growth, "adaptive descent": good.growth["FTPRL-Diag"]}
    assert related.judged(replace(good, growth=quick)).verdict is Verdict.FAILS
    assert related.judged(replace(good, gain=1.5)).verdict is Verdict.FAILS
    worse = {"FTPRL-Diag": Best(1.0, 9.0, {0.5: 9.5, 1.0: 9.0, 2.0: 9.5})}
    heavy = {**good.problems["heavy-tailed features"], **worse}
    lost = replace(good, problems={**good.problems, "heavy-tailed features": heavy})
    assert related.judged(lost).verdict is Verdict.FAILS
    assert any("number 19 of 19 with 9" in line for line in related.sentences(lost))


def test_edges_are_reported() -> None:
    good = findings()
    assert not any("edge" in line for line in related.sentences(good))
    row = {**good.problems["bad class"], "perturbed leader": Best(1.0, 2.0, {0.5: 3.0, 1.0: 2.0})}
    result = related.sentences(replace(good, problems={**good.problems, "bad class": row}))
    assert any("perturbed leader (bad class)" in line for line in result)


def test_the_paper_gains_on_heavy_tails_grow_with_the_dimension() -> None:
    gains = [problems.bound_gain(n, 200) for n in (10, 100, 1000)]
    assert all(a < b for a, b in itertools.pairwise(gains))
    assert gains[0] >= 1


def test_rows_are_learnable_and_heavy_tailed() -> None:
    V, y = rows.heavy_rows(400, 30)
    counts = V.sum(axis=0)
    assert counts[0] == 400
    assert counts[1] > counts[10] > 0
    assert set(y) == {-1.0, 1.0}
    for name, make in rows.makers(30).items():
        assert rows.mistakes(make(0.1 if name == "Pegasos" else 1.0), V, y) < 0.45, name


@pytest.mark.parametrize("statement", [related.STATEMENT, clicks.STATEMENT, portfolios.STATEMENT], ids=lambda s: s.name)
def test_statements_are_complete(statement: Statement) -> None:
    assert statement.expected is Verdict.HOLDS
    for text in (statement.title, statement.place, statement.claim, statement.instance, statement.measured):
        assert text


@pytest.mark.slow
@pytest.mark.parametrize("statement", [related.STATEMENT, clicks.STATEMENT, portfolios.STATEMENT], ids=lambda s: s.name)
def test_statements_hold(statement: Statement) -> None:
    outcome = statement.run(False, silent)
    assert outcome.verdict is statement.expected, [str(c) for c in outcome.stated]


def test_classify_with_any_learner() -> None:
    V, y = rows.heavy_rows(200, 10, seed=2)
    learner = FTPRL(Box(-4, 4, dim=10), Diagonal())
    x, wrong = learner.init(), 0
    for v, label in zip(V, y, strict=True):
        score = float(x.x @ v)
        wrong += label * score <= 0
        slope = -label / (1 + math.exp(label * score))
        x = learner.update(x, slope * v)
    assert rows.mistakes(rows.makers(10)["FTPRL-Diag, log loss"](2.0), V, y) == wrong / 200


def test_pages_are_written_from_what_was_found(
    market: portfolios.Market, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(__file__).parents[3] / "benchmarks" / "pages.py"
    monkeypatch.syspath_prepend(str(path.parents[1]))
    spec = importlib.util.spec_from_file_location("pages", path)
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    text = pages.related_page(findings(), tmp_path)
    assert "| FTPRL-Diag | **2** | **2** |" in text
    assert "**Holds.**" in text
    monkeypatch.setenv("FTPRL_DATA", str(tmp_path))
    stream = clicks.study(real.synthetic_clicks(600), "synthetic <clicks>", silent)
    text += pages.real_page([stream], [market], tmp_path)
    figures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert len(figures) == 6
    for name in figures:
        assert (tmp_path / name).read_text("utf-8").startswith("<?xml")
