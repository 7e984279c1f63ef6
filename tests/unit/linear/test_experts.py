"""The coin-betting expert and the stack that sees dense columns: docs/scales.md."""

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
from oracles.experts_twin import WEALTH, LogLoss
from oracles.label_experts_twin import AnyLabelWith

NUMBERS, NAMES = 5, 12
LOSSES = ("logistic", "squared", "absolute", "quantile", "huber", "poisson", "gamma", "hinge", "squared_hinge")
BOTH: dict[str, Any] = {"coin": True, "dense": True}


class Kept(Engine):
    """An engine that drops no scale."""

    def _may_drop_scales(self) -> bool:
        return False


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
    batch = rows_of(300, loss=loss)
    engine = Engine(spec_of(loss, coin=coin, dense=dense, float64=True))
    scores = scores_of(engine, batch)
    twin: Any = LogLoss(AUTO, coin, dense) if loss == "logistic" else AnyLabelWith(loss, AUTO)
    if loss != "logistic":
        twin.with_additions(coin, dense)
    expected = []
    for r in range(len(batch)):
        row = slice(int(batch.indptr[r]), int(batch.indptr[r + 1]))
        slots, values = batch.indices[row].tolist(), batch.values[row].astype(np.float64)
        expected.append(twin.learn(slots, values, float(batch.y[r]), float(batch.weight[r])))
    ours = 1 / (1 + np.exp(-scores)) if loss == "logistic" else scores
    np.testing.assert_allclose(ours, expected, rtol=1e-7, atol=1e-7)
    if dense:
        active = len(engine.saved_arrays["dense.u"]) - len(AUTO) - 1
        assert active == NUMBERS  # the names are there or not: no numbers


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
    scores = scores_of(Engine(spec_of(dim=64, coin=False, float64=True)), batch)
    twin: Any = LogLoss(AUTO, False, True)
    rows = batch.values.astype(np.float64).reshape(-1, numbers)
    with np.errstate(over="ignore"):  # the largest scale may be as sure as that of many numbers
        expected = [twin.learn(list(range(numbers)), x, float(y), 1.0) for x, y in zip(rows, batch.y, strict=True)]
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), expected, rtol=1e-7, atol=1e-7)
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
    assert len(engine.saved_arrays["dense.u"]) > len(AUTO) + 1


@pytest.mark.parametrize("rows", [5, 12, 40, 100])
@pytest.mark.parametrize("loss", ["logistic", "squared", "quantile"])
def test_a_model_that_is_saved_learns_on(loss: str, rows: int, tmp_path: Path) -> None:
    """Saved before columns are counted, while they are, and after the stack uses them."""
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
    """Other numbers from row 128 on: the first columns leave at row 256."""
    a, b = rows_of(128), rows_of(1000, seed=1)
    b = b.replaced(indices=np.where(b.indices < NUMBERS, b.indices + 32, b.indices).astype(np.uint32))
    engine = Engine(spec_of())
    engine.learn(a)
    assert set(engine.saved_arrays["dense.columns"][:, 0]) == set(range(NUMBERS))
    engine.learn(b[:200])
    assert "dense.columns" not in engine.saved_arrays
    engine.learn(b[200:])
    # At row 512 most rows had four of the new ones: these are counted until row 1024, and then are active.
    assert engine.saved_arrays["dense.columns"][:, 0].tolist() == [32.0 + j for j in range(NUMBERS - 1)]
    assert len(engine.saved_arrays["dense.u"]) == len(AUTO) + 1 + NUMBERS - 1


def test_scales_can_be_dropped() -> None:
    batch = rows_of(300)
    engine = Engine(spec_of())
    engine.learn(batch[:200])
    engine.keep_scales(2)
    assert engine.mixture is not None
    assert engine.mixture.names == ("0.16", "0.45", "1.28", "3.6", "stack", "coin")
    assert len(engine.saved_arrays["dense.u"]) == 4 + 1 + NUMBERS
    assert engine.learn(batch[200:]).mean < 0.7


def test_a_coin_that_has_lost_is_dropped() -> None:
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
    assert kept.spec.coin
    assert not whole.spec.coin
    assert whole.spec.coin_retired
    assert whole.mixture is not None
    assert whole.mixture.names[-1] == "stack"
    assert sum(whole.mixture.weights) == pytest.approx(1.0)
    np.testing.assert_array_equal(whole.score(batch), parts.score(batch))
    assert "coin" not in whole.parts


@pytest.mark.parametrize("name", ["coin", "dense"])
@pytest.mark.parametrize("more", [{"l1": 0.1}, {"l2": 0.1}, {"lower": -1.0}, {"upper": 1.0}, {"scale": 0.1}])
def test_what_does_not_go_together(name: str, more: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=f"{name}= needs several scales.*; drop it"):
        Spec(**{"scale": AUTO, name: True, **more})


@pytest.mark.parametrize("more", [{"l1": 0.1}, {"coin": True}, {"scale": 0.1}])
def test_a_coin_that_was_dropped_was_there(more: dict[str, Any]) -> None:
    assert Spec.from_dict(Spec(scale=AUTO, coin_retired=True).to_dict()).coin_retired
    with pytest.raises(InvalidInput, match="coin_retired= needs a model that may have a coin"):
        Spec(**{"scale": AUTO, "coin_retired": True, **more})


def test_dense_needs_a_stack() -> None:
    with pytest.raises(InvalidInput, match="with a stack"):
        Spec(scale=AUTO, bounds={"x": (0, None)}, dense=True)


def test_off_leaves_no_trace() -> None:
    assert not {"coin", "dense"} & Spec(scale=AUTO).to_dict().keys()
    assert Spec.from_dict(spec_of().to_dict()) == spec_of()
    engine = Engine(Spec(scale=AUTO, dim=64))
    engine.learn(rows_of(50))
    assert not [name for name in engine.saved_arrays if name.startswith(("coin", "dense"))]


def test_a_rare_class_costs_little_from_the_first_rows() -> None:
    """A rare class costs the base rate, 0.3 for each of two features and the intercept, and the coin's initial
    weight.
    """
    rng = np.random.default_rng(3)
    y = np.full(1000, -1.0)
    y[[300, 740]] = 1.0
    batch = Batch.from_rows([{0: float(a), 1: float(b)} for a, b in rng.normal(size=(1000, 2))], y.tolist())
    engine = Engine(spec_of(dense=False))
    start = float(engine.saved_arrays["mixture.w"][-1])
    engine.learn(batch)
    positive = np.cumsum(y > 0) - (y > 0)
    p = (positive + 0.5) / (np.arange(1000) + 1.0)
    base = -np.log(np.where(y > 0, p, 1.0 - p)).sum()
    shared = -sum(np.log1p(-min(2.0**-10, 1.0 / (t + 1.0))) for t in range(1, 1000))
    assert engine.progress.loss <= base + 3 * WEALTH - np.log(start) + shared


def test_weights_begin_near_the_usual_scales_and_sum_to_one() -> None:
    def first(**more: Any) -> NDArray[np.float64]:
        return np.array(Engine(spec_of(**more)).saved_arrays["mixture.w"])

    usual = first()
    assert usual.sum() == pytest.approx(1.0)
    assert usual[:8].argmax() == 2
    assert usual[8] == usual[9]
    assert usual[8] / usual[7] == pytest.approx((1.0 + (np.log(29.0 / 0.2) / 1.5) ** 2) / 2.0)
    for equal in (first(coin=False), first(loss="squared")):
        np.testing.assert_allclose(equal, 1.0 / len(equal))
