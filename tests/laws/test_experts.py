"""Laws of the list of experts: of the twins, which are read, and of the compiled learner, which is fast."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.linear.spec import AUTO
from laws.label_streams import linear_stream
from laws.learner_arrays import arrays_of, arrays_of_twin
from laws.strategies import SEEDS, law
from laws.streams import LOSSES, SIGNS, spec
from oracles import dropping_twin
from oracles.experts_twin import expert_names
from oracles.learner_twin import LearnerTwin, row_of
from oracles.mixture_twin import Mixture, mean, prior
from oracles.newton_twin import KEPT, TABLE, Columns

BOTH: dict[str, Any] = {"coin": True, "dense": True}
DIM = 12
GRIDS = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=16, unique=True).map(lambda a: tuple(sorted(a)))
ADDED = st.fixed_dictionaries({"coin": st.booleans(), "dense": st.booleans()})


def whole(loss: str, **more: Any) -> Spec:
    return spec(loss, DIM, **{"scale": AUTO, "float64": True, **BOTH, **more})


# ---- weights at the start ----


@pytest.mark.parametrize("loss", LOSSES)
@law(12)
@given(grid=GRIDS, added=ADDED)
def test_the_weights_at_the_start_sum_to_one(loss: str, grid: tuple[float, ...], added: dict[str, bool]) -> None:
    names = expert_names(whole(loss, scale=grid, **added))
    w = Mixture(loss, 0.7, names, grid).w
    assert math.fsum(w) == pytest.approx(1.0, abs=1e-14)
    assert min(w) > 0.0
    near = prior(names, grid)
    by_distance = sorted(range(len(grid)), key=lambda k: abs(math.log(grid[k] / 0.2)))
    assert [near[k] for k in by_distance] == sorted(near[: len(grid)], reverse=True)
    assert near[names.index("drift")] == pytest.approx(near[names.index("scores")] / 4.0, rel=1e-15)


@pytest.mark.parametrize("loss", LOSSES)
@law(6)
@given(grid=GRIDS, added=ADDED)
def test_a_learner_starts_with_the_weights_of_its_twin(
    loss: str, grid: tuple[float, ...], added: dict[str, bool]
) -> None:
    s = whole(loss, scale=grid, **added)
    mixture = Engine(s).mixture
    assert mixture is not None
    assert list(mixture.names) == expert_names(s)
    np.testing.assert_array_equal(mixture.weights, LearnerTwin(s).mixture.w)  # type: ignore[union-attr]


# ---- the mixture against each expert, whatever they say ----

NAMES = [*(f"{h:g}" for h in AUTO), "scores", "columns", "drift", "offset", "coin"]


def shares(rows: int, first: int) -> float:
    """Return what the shares of the weights cost at rate 1: sum of -ln(1 - a_t) up to the row before the last."""
    t = np.arange(first, first + rows - 1)
    return -float(np.log1p(-np.minimum(2.0**-10, 1.0 / (t + 1.0))).sum())


@law(40)
@given(seed=SEEDS, rows=st.integers(1, 200), sharp=st.floats(0.1, 60.0), spread=st.sampled_from([0.0, 1.0, 4.0]))
def test_the_log_loss_is_near_that_of_each_expert(seed: int, rows: int, sharp: float, spread: float) -> None:
    """ln(1/w_j) + (W - 1) ln n + W times the shares, on top of every expert j."""
    rng = np.random.default_rng(seed)
    mixture = Mixture("logistic", 0.5, NAMES, AUTO)
    first, total, W = list(mixture.w), 0.0, 1.0
    for t in range(1, rows + 1):
        losses = (sharp * rng.random(len(NAMES)) ** 4 * (rng.random(len(NAMES)) < 0.7)).tolist()
        c = float(10.0 ** rng.uniform(-spread, spread))
        total, W = total + c * mixture.learn_chances(losses, [math.exp(-a) for a in losses], c, t), max(W, c)
    for weight, lost in zip(first, mixture.totals, strict=True):
        bound = lost - math.log(weight) + (W - 1.0) * math.log(len(NAMES)) + W * shares(rows, 1)
        assert total <= bound + 1e-9 * (1.0 + abs(bound))
    assert math.fsum(mixture.w) == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile", "huber", "hinge", "squared_hinge"])
@law(15)
@given(seed=SEEDS, rows=st.integers(1, 200), size=st.sampled_from([1e-6, 1.0, 1e6]), lazy=st.floats(0.0, 1.0))
def test_other_losses_are_near_that_of_each_expert(loss: str, seed: int, rows: int, size: float, lazy: float) -> None:
    """D (1 + max(1, ln(1/w_j)/ln n) + the shares/ln n) on top of every expert j; hinge losses: also for caution."""
    rng, is_sign = np.random.default_rng(seed), loss in SIGNS
    names = [*NAMES[:11], "majority" if is_sign else "offset", "coin"]
    mixture, first, ln = Mixture(loss, 0.7, names, AUTO), prior(names, AUTO), math.log(len(names))
    total, size = 0.0, 1.0 if is_sign else size
    bias = rng.uniform(-1.0, 1.0, len(names))
    for t in range(2, rows + 2):
        y = size * (float(rng.choice([-1.0, 1.0])) if is_sign else float(rng.uniform(-1.0, 1.0)))
        spoken = np.where(rng.random(len(names)) < lazy, bias, rng.uniform(-1.0, 1.0, len(names)))
        experts, c = (size * spoken).tolist(), float(rng.choice([0.5, 1.0, 3.0]))
        total += c * mixture.learn_scores(experts, mean(mixture.w, experts), y, y, c, t)
    more = 1e-9 * (1.0 + abs(total)) + 2.0**-30 * total
    if is_sign:
        more += mixture.lead_gap + math.log(25.0) * max(1.0, mixture.lead_gap / 4.0)
    for weight, lost in zip(first, mixture.totals, strict=True):
        bound = lost + mixture.D * (1.0 + max(1.0, -math.log(weight) / ln) + shares(rows, 2) / ln)
        assert total <= bound + more
    assert math.fsum(mixture.w) == pytest.approx(1.0, abs=1e-9)


# ---- drift ----


@pytest.mark.parametrize("loss", LOSSES)
def test_drift_is_left_out_of_all_predictions_but_progressive_ones(loss: str) -> None:
    batch, new = linear_stream(3, loss, rows=150), linear_stream(4, loss, rows=20, weighted=False)
    twin = LearnerTwin(whole(loss))
    twin.learn(batch)
    assert twin.mixture is not None
    at, others = twin.mixture.names.index("drift"), list(twin.mixture.w)
    others[at] = 0.0
    without = [a / math.fsum(others) for a in others]
    for r in range(len(new)):
        said = twin.say(*row_of(new, r))
        score = twin.predict(said)
        assert score == pytest.approx(twin.predicted(said, w=without)[0], rel=1e-12, abs=1e-12)
        with_drift, _ = copy.deepcopy(twin).learn_row(*row_of(new, r), float(new.y[r]))
        known = [i for i in row_of(new, r)[0] if abs(dict(zip(*row_of(new, r), strict=True))[i]) <= twin.cells.unit[i]]
        if len(known) == len(row_of(new, r)[0]):  # no unit is raised
            everyone = copy.deepcopy(twin).predicted(said, w=twin.mixture.w)[0]
            assert with_drift == pytest.approx(everyone, rel=1e-6, abs=1e-6 * float(np.ptp(batch.y)))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_learner_leaves_drift_out_as_well(loss: str) -> None:
    """Its weight, spread over the others, is what all rows are predicted with that are not learned at once."""
    engine = Engine(whole(loss))
    engine.learn(linear_stream(3, loss, rows=150))
    new = linear_stream(4, loss, rows=50, weighted=False)
    other, progressive, unlearned = engine.copy(), np.empty(50), np.empty(50)
    w, n = arrays_of(other)["mixture.w"], len(expert_names(engine.spec))
    w[expert_names(engine.spec).index("drift")] = 0.0
    w[:n] /= w[:n].sum()
    scores = engine.score(new)
    np.testing.assert_allclose(other.score(new), scores, rtol=1e-10, atol=1e-10)
    engine.copy().learn(replace(new, y=np.full(50, np.nan)), scores=unlearned)
    np.testing.assert_array_equal(unlearned, scores)
    engine.copy().learn(replace(new, weight=np.zeros(50)), scores=unlearned)
    np.testing.assert_array_equal(unlearned, scores)
    engine.learn(new[:1], scores=progressive[:1])
    assert progressive[0] != scores[0]


# ---- experts that leave ----


@pytest.mark.parametrize("name", ["columns", "drift", "coin"])
@pytest.mark.parametrize("loss", LOSSES)
def test_an_expert_that_leaves_changes_no_score_of_the_others(loss: str, name: str) -> None:
    """But of those that see the score of the coin."""
    batch, new = linear_stream(5, loss, rows=200), linear_stream(6, loss, rows=60)
    twin = LearnerTwin(whole(loss))
    twin.learn(batch)
    other = copy.deepcopy(twin)
    other.drop(name)
    assert other.mixture is not None
    assert name not in other.mixture.names
    assert math.fsum(other.mixture.w) == pytest.approx(1.0, abs=1e-12)
    moved = ("scores", "columns") if name == "coin" else ()
    for r in range(len(new)):
        learners = (twin, other)
        a, b = (dict(zip(o.mixture.names, o.say(*row_of(new, r)).experts, strict=True)) for o in learners)  # type: ignore[union-attr]
        assert {key: score for key, score in b.items() if key not in moved} == {key: a[key] for key in b.keys() - moved}
        if new.weight[r] > 0.0:
            for o in learners:
                o.learn_row(*row_of(new, r), float(new.y[r]), float(new.weight[r]))


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_a_learner_drops_the_experts_that_its_twin_drops(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_DROP_ROW", 64)
    monkeypatch.setattr(dropping_twin, "FIRST_DROP", 64)
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 2048)
    monkeypatch.setattr(dropping_twin, "FIRST_WINDOW", 2048)
    gone: set[str] = set()
    for seed in (1, 2):
        batch = linear_stream(seed, loss, rows=2600)
        engine, twin = Engine(whole(loss)), LearnerTwin(whole(loss))
        for part in batch.cut(317):
            engine.learn(part)
            twin.learn(part)
            assert engine.mixture is not None
            assert twin.mixture is not None
            assert list(engine.mixture.names) == twin.mixture.names
            assert engine.spec.scales == twin.spec.scales
            np.testing.assert_allclose(engine.mixture.weights, twin.mixture.w, rtol=1e-6, atol=1e-9)
        gone |= set(expert_names(whole(loss))) - set(twin.mixture.names)  # type: ignore[union-attr]
    assert gone >= {"columns", "29"}


def test_the_rules_by_which_experts_leave() -> None:
    """With sums put in by hand."""
    octaves = dropping_twin.Octaves(["0.1", "1", "columns", "drift", "coin"], 2)

    def leaving(losses: list[float], without: list[float], own: float, t: int = 2**14) -> list[str]:
        octaves.octave[1], octaves.without[1], octaves.octave_loss[1] = losses, [0.0, 0.0, *without], own
        return octaves.leaving(t)

    needed = [200.0, 200.0, 200.0]
    assert leaving([100.0, 110.0, 102.0, 101.0, 100.9], needed, 90.0) == ["columns"]
    assert leaving([100.0, 110.0, 102.0, 101.1, 101.2], needed, 90.0) == ["columns", "coin", "drift"]
    assert leaving([-100.0, -90.0, -98.0, -99.0, -99.5], needed, -100.0) == ["columns"]
    even = [100.0, 100.0, 99.9, 99.9, 99.9]
    assert leaving(even, [90.08, 90.08, 90.08], 90.0) == ["columns"]
    assert leaving(even, [90.1, 90.08, 90.08], 90.0) == ["coin"]
    assert leaving(even, [90.1, 90.08, 90.1], 90.0) == ["drift"]
    assert leaving(even, [90.1, 90.1, 90.1], 90.0) == []
    assert leaving([-100.0] * 5, [-89.95, -89.0, -89.0], -90.0) == ["columns"]
    assert leaving([-100.0] * 5, [-89.9, -89.9, -89.9], -90.0) == []
    assert leaving(even, [90.0] * 3, 90.0, 2**14 + 1) == []
    assert leaving(even, [90.0] * 3, 90.0, 2**13) == []


# ---- the unit of labels ----


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile"])
@law(2)
@given(seed=SEEDS, power=st.sampled_from([-37, -1, 10, 60]))
def test_labels_times_a_power_of_two_multiply_the_scores_of_a_twin(loss: str, seed: int, power: int) -> None:
    """As written, the formulas follow the unit to the bit."""
    batch, factor = linear_stream(seed, loss, rows=200), 2.0**power
    results = []
    for y in (batch.y, factor * batch.y):
        twin, scores = LearnerTwin(whole(loss)), np.empty(len(batch))
        twin.learn(replace(batch, y=y), scores=scores)
        results.append(scores)
    np.testing.assert_array_equal(factor * results[0], results[1])


# ---- the table of columns ----


def names_and_numbers(seed: int, rows: int, names: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of two frequent numbers and of names that are mostly new."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(rows):
        new = 2 + rng.choice(20_000, names, replace=False)
        made.append((np.append([0, 1], new), np.append(rng.normal(size=2), np.ones(names))))
    return made


@law(10)
@given(seed=SEEDS, names=st.integers(1, 400))
def test_the_table_of_columns_never_holds_more_than_1024_features(seed: int, names: int) -> None:
    columns = Columns()
    for t, (slots, v) in enumerate(names_and_numbers(seed, 40, names), 1):
        before = [i for i in columns.table if i not in slots]
        columns.learn(slots, v, t, [])
        assert len(columns.table) <= TABLE
        met = set(before)
        assert [i for i in columns.table if i in met] == [i for i in before if i in columns.table]  # in the same order
        if t >= 16:
            assert {0, 1} <= set(columns.feature)
        if t & (t - 1) and t > 8:
            assert {0, 1} <= set(columns.table)  # frequent features are not forgotten
    assert KEPT < TABLE


@pytest.mark.parametrize("names", [3, 60, 400])
def test_a_learner_has_the_table_of_its_twin(names: int) -> None:
    rows = names_and_numbers(1, 45, names)
    rng = np.random.default_rng(2)
    batch = Batch.from_rows(
        [list(zip(slots.tolist(), v.tolist(), strict=True)) for slots, v in rows],
        np.where(rng.random(45) < 0.5, 1.0, -1.0),
        float64=True,
    )
    s = Spec(dim=2**15, scale=(0.1, 1.0), dense=True, float64=True)
    engine, twin = Engine(s), LearnerTwin(s)
    for part in batch.cut(9):
        engine.learn(part)
        twin.learn(part)
        own, expected = arrays_of(engine), arrays_of_twin(twin)
        for name in ("columns.facts", "columns.table", "columns.rows"):
            array = own.get(name, expected[name][:0])  # empty ones are left out
            np.testing.assert_array_equal(array, expected[name], err_msg=name)
        assert len(expected["columns.table"]) <= TABLE
