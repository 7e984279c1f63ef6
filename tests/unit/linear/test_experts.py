"""The coin, the Newton experts and their columns: docs/scales.md."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Spec
from ftprl.linear.model import Model
from ftprl.linear.spec import AUTO
from laws.learner_arrays import arrays_of, assert_arrays, engine_without_coin_input
from oracles.coin_twin import WEALTH
from oracles.learner_twin import LearnerTwin, row_of

NUMBERS, NAMES = 5, 12
LOSSES = ("logistic", "squared", "absolute", "quantile", "huber", "poisson", "gamma", "hinge", "squared_hinge")
BOTH: dict[str, Any] = {"coin": True, "dense": True}


class Kept(Engine):
    """An engine that drops no scale and no other expert."""

    def _review_experts(self) -> None:
        pass


def rows_of(n: int, seed: int = 0, loss: str = "logistic") -> Batch:
    """Return numbers with large means, some often missing, a few names per row, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, NUMBERS)) * [1, 10, 0.1, 1, 1] + [0, 100, 3, 0, 0]
    X[:, 4] *= rng.random(n) < 0.7
    score = X[:, 0] + (X[:, 1] - 100) / 10 + X[:, 3] * X[:, 0]
    rows = []
    for x in X:
        names = rng.choice(NAMES, size=3, replace=False) + NUMBERS
        rows.append({**{j: float(np.float32(v)) for j, v in enumerate(x) if v}, **{int(i): 1.0 for i in names}})
    y = {
        "logistic": np.sign(score + rng.normal(size=n)),
        "poisson": rng.poisson(np.exp(np.clip(score / 2, -3, 3))).astype(float),
        "gamma": np.exp(score / 3) * rng.uniform(0.5, 2, n),
    }.get(loss, 50 + 7 * score + rng.normal(size=n))
    y = np.sign(y - 50) if "hinge" in loss else y
    y[y == 0] = 1.0 if "hinge" in loss or loss == "logistic" else 0.0
    return Batch.from_rows(rows, y.tolist(), weight=rng.choice([0.5, 1.0, 3.0], n).tolist())


def scores_of(engine: Engine, batch: Batch, cuts: tuple[int, ...] = ()) -> NDArray[np.float64]:
    scores = np.empty(len(batch))
    edges = (0, *cuts, len(batch))
    for a, b in itertools.pairwise(edges):
        engine.learn(batch[a:b], scores=scores[a:b])
    return scores


def spec_of(loss: str = "logistic", **more: Any) -> Spec:
    return Spec(**{"loss": loss, "dim": 64, "scale": AUTO, **BOTH, **more})


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("coin", "dense"), [(True, False), (False, True), (True, True)])
def test_the_kernels_agree_with_the_twin(loss: str, coin: bool, dense: bool) -> None:
    """With the log loss to the bit."""
    batch = rows_of(300, loss=loss)
    s = spec_of(loss, coin=coin, dense=dense, float64=True)
    engine, twin, expected = Engine(s), LearnerTwin(s), np.empty(300)
    scores = scores_of(engine, batch)
    twin.learn(batch, scores=expected)
    if loss == "logistic":
        np.testing.assert_array_equal(scores, expected)
        assert_arrays(engine, twin)
    else:
        np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-7)
        assert_arrays(engine, twin, rtol=1e-5, atol=1e-7)
    if dense:
        assert columns_of(engine) == set(range(NUMBERS + NAMES))


def columns_of(engine: Engine) -> set[int]:
    """The features that are columns now."""
    facts = arrays_of(engine).get("columns.facts", np.empty((0, 3)))  # a learner without columns has no such array
    return {int(slot) - 1 for slot in facts[:, 0] if slot}


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_later_passes_teach_scales_and_coin_alone(loss: str) -> None:
    """They are predicted without drift, and leave the mixture, the Newton experts and their columns as they are."""
    batch, s = rows_of(120, loss=loss), spec_of(loss, float64=True)
    engine, twin, scores = Engine(s), LearnerTwin(s), np.empty(120)
    engine.learn(batch)
    twin.learn(batch)
    before = {name: a.copy() for name, a in arrays_of(engine).items() if name.startswith(("mixture", "newton", "col"))}
    engine.learn(batch, scores=scores, seen=True)
    expected = [
        twin.learn_row(*row_of(batch, r), float(batch.y[r]), float(batch.weight[r]), again=True)[0] for r in range(120)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-7)
    for name, array in before.items():
        np.testing.assert_array_equal(array, arrays_of(engine)[name], err_msg=name)
    np.testing.assert_allclose(engine.parts["z"], twin.cells.z, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(engine.parts["coin"], twin.experts.coin.cells, rtol=1e-7, atol=1e-9)  # type: ignore[union-attr]


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
def test_the_score_of_the_coin_can_be_hidden_from_the_newton_experts(loss: str) -> None:
    """As in the vectors of the prototype, which have no such input."""
    batch, s = rows_of(150, loss=loss), spec_of(loss, float64=True)
    engine, twin, expected = engine_without_coin_input(s), LearnerTwin(s, coin_input=False), np.empty(150)
    twin.learn(batch, scores=expected)
    np.testing.assert_allclose(scores_of(engine, batch), expected, rtol=1e-7, atol=1e-7)
    assert len(arrays_of(engine)["newton_A.u"]) == len(AUTO) == len(arrays_of(Engine(s))["newton_A.u"]) - 1


def scaled(batch: Batch, factors: NDArray[np.float64]) -> Batch:
    return batch.replaced(values=(batch.values * factors[batch.indices]).astype(batch.values.dtype))


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute", "poisson"])
def test_features_have_no_unit(loss: str, float64: bool) -> None:
    batch, rng = rows_of(200, loss=loss), np.random.default_rng(1)
    plain = scores_of(Engine(spec_of(loss, float64=float64)), batch)
    powers = 2.0 ** rng.integers(-20, 20, NUMBERS + NAMES)
    np.testing.assert_array_equal(scores_of(Engine(spec_of(loss, float64=float64)), scaled(batch, powers)), plain)
    odd = scores_of(Engine(spec_of(loss, float64=float64)), scaled(batch, 3.0 * powers))
    np.testing.assert_allclose(odd, plain, rtol=1e-3, atol=1e-3 * float(np.std(plain)))


@pytest.mark.parametrize("loss", ["logistic", "squared", "huber", "hinge"])
def test_batches_and_instruction_sets_change_no_bit(loss: str) -> None:
    batch = rows_of(150, loss=loss)
    plain = scores_of(Engine(spec_of(loss)), batch)
    np.testing.assert_array_equal(scores_of(Engine(spec_of(loss)), batch, (1, 7, 8, 31, 64, 100)), plain)
    for name in ("portable", "sse2"):
        if use_instruction_set(name):
            np.testing.assert_array_equal(scores_of(Engine(spec_of(loss)), batch), plain)
    use_instruction_set("")


def many_numbers(n: int, numbers: int, seed: int = 0) -> Batch:
    """Return rows of numbers alone, and labels that depend on some of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, numbers)).astype(np.float32) + 2
    y = np.where(X[:, ::3].sum(axis=1) + rng.normal(size=n) > 2 * len(X[0, ::3]), 1.0, -1.0)
    return Batch.from_rows([dict(enumerate(map(float, x))) for x in X], y.tolist())


@pytest.mark.parametrize("numbers", [1, 3, 7, 11, 15, 19, 23, 40, 64])
def test_any_number_of_columns(numbers: int) -> None:
    """Vectors of inputs of every length equal the twin's numbers, with equal bits for all instruction sets."""
    batch = many_numbers(150, numbers)
    engine = Engine(spec_of(dim=64, coin=False, float64=True))
    scores = scores_of(engine, batch)
    twin, expected = LearnerTwin(spec_of(dim=64, coin=False, float64=True)), np.empty(150)
    twin.learn(batch, scores=expected)
    np.testing.assert_array_equal(scores, expected)
    assert len(columns_of(engine)) == numbers
    for name in ("portable", "sse2"):
        if use_instruction_set(name):
            other = scores_of(Engine(spec_of(dim=64, coin=False, float64=True)), batch)
            np.testing.assert_array_equal(other, scores)
    use_instruction_set("")


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_where_the_cells_of_columns_lie_changes_no_bit(loss: str) -> None:
    """Columns among the first cells of a table are found by cell number, others by a hash of it."""
    batch, dim = rows_of(200, loss=loss), 8192
    plain = scores_of(Engine(spec_of(loss, dim=dim)), batch)
    engine = Engine(spec_of(loss, dim=dim))
    engine.learn(Batch.from_rows([dict.fromkeys(range(100, 3100), 1.0)], [np.nan]))  # takes cells and teaches nothing
    np.testing.assert_array_equal(scores_of(engine, batch), plain)
    assert len(columns_of(engine)) == NUMBERS + NAMES


@pytest.mark.parametrize("rows", [5, 12, 40, 100])
@pytest.mark.parametrize("loss", ["logistic", "squared", "quantile"])
def test_a_model_that_is_saved_learns_on(loss: str, rows: int, tmp_path: Path) -> None:
    """Before there are columns, while they are counted, and once there are some."""
    batch = rows_of(200, loss=loss)
    engine = Engine(spec_of(loss, dim=4096))
    engine.learn(batch[:rows])
    Model(engine).save(tmp_path / "a.ftprl")
    loaded = Model.load(tmp_path / "a.ftprl").engine
    assert loaded.spec == engine.spec
    np.testing.assert_array_equal(loaded.score(batch), engine.score(batch))
    for other in (loaded.copy(), engine.copy()):
        np.testing.assert_array_equal(scores_of(other, batch[rows:]), scores_of(engine.copy(), batch[rows:]))
    engine.learn(batch[rows:])
    loaded.learn(batch[rows:])
    Model(engine).save(tmp_path / "b.ftprl")
    Model(loaded).save(tmp_path / "c.ftprl")
    assert (tmp_path / "b.ftprl").read_bytes() == (tmp_path / "c.ftprl").read_bytes()


def test_no_coordinate_loses_more_than_it_was_lent() -> None:
    engine = Engine(spec_of("squared"))
    engine.learn(rows_of(500, loss="squared"))
    theta, sizes, won, largest = engine.parts["coin"][engine.touched()].T
    assert (won >= -WEALTH).all()
    assert (np.abs(theta) <= sizes * (1 + 1e-6)).all()
    assert (largest > 0).all()


def noise(rows: int, features: int) -> Batch:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, features))
    y = np.where(rng.random(rows) < 1 / (1 + np.exp(-X[:, :5] @ [1.0, -1.0, 1.0, -1.0, 1.0])), 1.0, -1.0)
    return Batch.from_rows([dict(enumerate(x.tolist())) for x in X], y.tolist())


def loss_of(batch: Batch, loss: str = "logistic", **options: Any) -> float:
    engine = Engine(Spec(loss=loss, dim=1024, scale=AUTO, **options))
    return engine.learn(batch).mean


ODD: dict[str, tuple[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = {
    "one class": ("logistic", lambda y: np.ones_like(y)),
    "constant": ("squared", lambda y: np.full_like(y, 7.0)),
    "zeros": ("poisson", lambda y: np.zeros_like(y)),
    "a label of 1e6 at row 2": ("absolute", lambda y: np.where(np.arange(len(y)) == 1, 1e6, y)),
    "another unit at half": ("squared", lambda y: np.where(np.arange(len(y)) < len(y) // 2, y, 1000 * y)),
    "tiny": ("squared", lambda y: y * 1e-150),
    "huge": ("huber", lambda y: y * 1e27),
}


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
@pytest.mark.parametrize("name", ODD)
def test_odd_streams_stay_finite(name: str, size: float, tmp_path: Path) -> None:
    loss, labels = ODD[name]
    batch = rows_of(200, loss=loss)
    values = np.clip(batch.values.astype(np.float64) * size, -1e29, 1e29).astype(np.float32)
    batch = batch.replaced(
        y=labels(batch.y.copy()), values=values, weight=np.where(np.arange(200) % 7, batch.weight, 0.0)
    )
    engine = Engine(spec_of(loss))
    assert np.isfinite(scores_of(engine, batch)).all()
    Model(engine).save(tmp_path / "a.ftprl")  # what was learned is taken for learned
    np.testing.assert_array_equal(Model.load(tmp_path / "a.ftprl").engine.score(batch), engine.score(batch))


def test_features_that_do_not_matter() -> None:
    batch = noise(1500, 400)
    assert loss_of(batch, coin=True) < 0.85 * loss_of(batch)


def test_numbers_with_a_large_mean() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1000, 6)) + 50
    y = (X - 50) @ rng.normal(size=6) + 0.1 * rng.normal(size=1000)
    batch = Batch.from_rows([dict(enumerate(x.tolist())) for x in X], y.tolist())
    assert loss_of(batch, "squared", dense=True) < 0.2 * loss_of(batch, "squared")


def test_columns_come_and_go() -> None:
    """Other numbers from row 128 on: the first leave at row 256, where the others take their places."""
    a, b = rows_of(128), rows_of(1000, seed=1)
    b = b.replaced(indices=np.where(b.indices < NUMBERS, b.indices + 32, b.indices).astype(np.uint32))
    names, first, later = ({*range(at, at + n)} for at, n in ((NUMBERS, NAMES), (0, NUMBERS), (32, NUMBERS)))
    engine = Engine(spec_of())
    engine.learn(a[:8])
    assert not columns_of(engine)
    engine.learn(a[8:16])
    assert columns_of(engine) >= first
    engine.learn(a[16:])
    assert columns_of(engine) == names | first
    engine.learn(b[:127])
    assert columns_of(engine) == names | first
    engine.learn(b[127:128])
    assert columns_of(engine) == names | later
    facts = arrays_of(engine)["columns.facts"]
    assert len(facts) == NAMES + NUMBERS
    assert len(arrays_of(engine)["newton_B.u"]) == len(AUTO) + 1 + 1 + len(facts)
    assert not arrays_of(engine)["columns.rows"][0]


def test_a_column_with_an_outlier_at_first_is_standardised_again() -> None:
    batch = rows_of(200)
    values = batch.values.copy()
    values[np.flatnonzero(batch.indices == 1)[10]] = 1e6
    engine, twin = Engine(spec_of(float64=True)), LearnerTwin(spec_of(float64=True))
    deviations = []
    for part in batch.replaced(values=values).cut(20):
        engine.learn(part)
        twin.learn(part)
        facts = arrays_of(engine)["columns.facts"]
        np.testing.assert_array_equal(facts, twin.experts.columns.facts)  # type: ignore[union-attr]
        deviations += facts[facts[:, 0] == 2.0, 2].tolist()
    assert max(deviations) > 1e5
    assert deviations[-1] == pytest.approx(10.0, rel=0.5)


def test_features_that_are_0_in_the_row_that_chooses_columns_join() -> None:
    """Every second row has the feature, but not row 32."""
    rng = np.random.default_rng(1)
    rows = [{0: float(rng.normal()), **({1: float(rng.normal())} if t % 2 == 0 else {})} for t in range(32)]
    engine = Engine(spec_of())
    engine.learn(Batch.from_rows(rows, rng.choice([-1.0, 1.0], 32).tolist()))
    assert columns_of(engine) == {0, 1}


def test_scales_can_be_dropped() -> None:
    batch = rows_of(300)
    engine = Engine(spec_of())
    engine.learn(batch[:200])
    engine.keep_scales(2)
    assert engine.mixture is not None
    assert engine.mixture.names == ("0.16", "0.45", "1.28", "3.6", "scores", "columns", "drift", "offset", "coin")
    sizes = [len(arrays_of(engine)[f"newton_{letter}.u"]) for letter in "ABD"]
    assert sizes == [4 + 1, 4 + 1 + 1 + NUMBERS + NAMES, 4 + 1]
    whole = Engine(spec_of())
    whole.learn(batch[:200])
    assert engine.learn(batch[200:]).mean == pytest.approx(whole.learn(batch[200:]).mean, rel=0.05)


def test_experts_that_have_lost_are_dropped() -> None:
    """In a log of clicks the coin is far behind; drift too; the columns of frequent names are not."""
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(4, 50)) * 1.5
    names = rng.integers(0, 50, size=(2**14 + 100, 4))
    score = weights[np.arange(4), names].sum(1)
    y = np.where(rng.random(len(score)) < 1 / (1 + np.exp(-score)), 1.0, -1.0)
    n = len(y)
    batch = Batch(
        indptr=np.arange(n + 1) * 4,
        indices=(names + 50 * np.arange(4)).ravel().astype(np.uint32),
        values=np.ones(4 * n, np.float32),
        y=y,
        weight=np.ones(n),
    )
    kept, whole, parts = Kept(spec_of(dim=256)), Engine(spec_of(dim=256)), Engine(spec_of(dim=256))
    for engine, cuts in ((kept, ()), (whole, ()), (parts, (1000, 16000))):
        scores_of(engine, batch, cuts)
    assert kept.mixture is not None
    assert kept.mixture.names[8:] == ("scores", "columns", "drift", "offset", "coin")
    assert whole.mixture is not None
    assert whole.mixture.names[8:] == ("scores", "columns", "offset")
    assert sum(whole.mixture.weights) == pytest.approx(1.0)
    np.testing.assert_array_equal(whole.score(batch), parts.score(batch))
    assert "coin" not in whole.parts
    sizes = [len(arrays_of(whole)[f"newton_{letter}.u"]) for letter in "AB"]
    assert sizes == [8, 8 + 1 + len(arrays_of(whole).get("columns.facts", ()))]
    assert not [name for name in whole.saved_arrays if name.startswith(("newton_D", "coin"))]
    assert Spec.from_dict(whole.spec.to_dict()) == whole.spec
    assert Model.from_bytes(Model(whole).to_bytes()).engine.mixture == whole.mixture


@pytest.mark.parametrize("name", ["coin", "dense"])
@pytest.mark.parametrize("more", [{"l1": 0.1}, {"l2": 0.1}, {"lower": -1.0}, {"upper": 1.0}, {"scale": 0.1}])
def test_what_does_not_go_together(name: str, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"{name}= needs several scales.*; drop it"):
        Spec(**{"scale": AUTO, name: True, **more})


def test_dense_needs_a_stack() -> None:
    with pytest.raises(InvalidInput, match="no bound"):
        Spec(scale=AUTO, bounds={"x": (0, None)}, dense=True)


def test_off_leaves_no_trace() -> None:
    assert not {"coin", "dense"} & Spec(scale=AUTO).to_dict().keys()
    assert Spec.from_dict(spec_of().to_dict()) == spec_of()
    engine = Engine(Spec(scale=AUTO, dim=64))
    engine.learn(rows_of(50))
    assert not [name for name in engine.saved_arrays if name.startswith(("coin", "columns", "newton_B"))]


def test_a_rare_class_costs_little_from_the_first_rows() -> None:
    """The base rate is an expert; its weight at the start and the shares are what it costs that there are others."""
    rng = np.random.default_rng(3)
    y = np.full(1000, -1.0)
    y[[300, 740]] = 1.0
    batch = Batch.from_rows([{0: float(a), 1: float(b)} for a, b in rng.normal(size=(1000, 2))], y.tolist())
    engine = Engine(spec_of())
    assert engine.mixture is not None
    at = engine.mixture.names.index("offset")
    start = engine.mixture.weights[at]
    engine.learn(batch)
    positive = np.cumsum(y > 0) - (y > 0)
    p = (positive + 0.5) / (np.arange(1000) + 1.0)
    base = -np.log(np.where(y > 0, p, 1.0 - p)).sum()
    shared = -sum(np.log1p(-min(2.0**-10, 1.0 / (t + 1.0))) for t in range(1, 1000))
    assert engine.mixture.losses[at] == pytest.approx(base, rel=1e-9)
    assert engine.progress.loss <= base - np.log(start) + shared
    coin = engine.mixture.losses[engine.mixture.names.index("coin")]
    assert coin <= base + 3 * WEALTH  # of two features and the intercept


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_weights_begin_near_the_usual_scales(loss: str) -> None:
    mixture = Engine(spec_of(loss)).mixture
    assert mixture is not None
    w = dict(zip(mixture.names, mixture.weights, strict=True))
    assert sum(w.values()) == pytest.approx(1.0)
    assert max(list(w)[:8], key=w.__getitem__) == "0.16"
    assert w["scores"] == w["columns"] == w["coin"] == pytest.approx(4.0 * w["drift"])
    assert w["scores"] / w["29"] == pytest.approx((1.0 + (np.log(29.0 / 0.2) / 1.5) ** 2) / 2.0)
    if loss == "hinge":
        assert w["majority"] > 0.96
    else:
        assert w["offset"] == w["drift"]
