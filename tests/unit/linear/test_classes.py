"""Several classes: the compiled learner against plain NumPy, laws, labels, and files."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl._core import use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, Model, Spec
from ftprl.linear.classes import ClassTable, shown_label, table_of
from ftprl.linear.derived import compacted
from ftprl.linear.refusal import RowRefused
from ftprl.training.delay import Waiting
from laws.learner_arrays import arrays_of, assert_arrays
from oracles import dropping_twin
from oracles.classes_twin import ClassesTwin

SCALES = (0.02, 0.16, 0.45, 1.28)
OPTIONS = [
    {},
    {"loss": "ovr"},
    {"scale": 0.3},
    {"intercept": False},
    {"l1": 0.4, "l2": 0.3},
    {"lower": -0.1, "upper": 0.2},
    {"float64": False},
    {"dense": True},
    {"dense": True, "loss": "ovr", "float64": False},
]


def stream(rows: int, classes: int, seed: int = 0, *, weights: bool = False) -> tuple[list[dict[int, float]], Batch]:
    """Return rows with the first two and few others of twelve features, whose classes appear one after the other."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(12, classes))
    features, y = [], []
    first: dict[int, float] = {}
    for _ in range(rows):
        chosen = sorted({0, 1, *rng.choice(12, rng.integers(1, 6), replace=False).tolist()})
        row = {int(i): float(np.round(rng.normal() * 10.0 ** (i % 3), 3)) or 1.0 for i in chosen}
        score = sum(W[i] * v / 10.0 ** (i % 3) for i, v in row.items()) + rng.gumbel(size=classes)
        features.append(row)
        y.append(first.setdefault(int(np.argmax(score)), float(len(first))))
    weight = rng.choice([0.5, 1.0, 3.0], rows) if weights else np.ones(rows)
    return features, Batch.from_rows(features, y=y, weight=weight, float64=True)


def engine_of(**options: object) -> Engine:
    known, receipt = options.pop("known", 0), bool(options.pop("receipt", False))
    defaults = {"loss": "softmax", "dim": 12, "scale": SCALES, "classes": 5, "float64": True}
    return Engine(Spec(**{**defaults, **options}), classes=known, receipt=receipt)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("known", [0, 5])
def test_learns_what_plain_numpy_does(options: dict[str, object], known: int) -> None:
    rows, batch = stream(150, 5, weights=True)
    engine = engine_of(**options, known=known)
    losses, predicted = np.empty(150), np.empty(150)
    engine.learn(batch, losses=losses, scores=predicted)
    twin = ClassesTwin(engine.spec, known)
    own = [twin.learn(row, int(y), c) for row, y, c in zip(rows, batch.y, batch.weight, strict=True)]
    close = 1e-11 if engine.spec.float64 else 1e-4
    np.testing.assert_allclose(losses, own, rtol=0, atol=close)
    assert engine.classes == twin.seen == 5
    chances = np.exp(engine.score(batch))
    np.testing.assert_allclose(chances, [twin.predict(row)[:5] for row in rows], rtol=0, atol=close)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)  # all five classes are known
    if engine.spec.several:
        assert list(engine.mixture.names) == twin.mixture.names  # type: ignore[union-attr]
        assert_arrays(engine, twin, rtol=close * 100, atol=close * 10)
    if engine.spec.dense:
        arrays = arrays_of(engine)
        assert arrays["columns.W"].shape == (5, 1 + len(arrays["columns.facts"]))


def in_order_of_labels(batch: Batch, delays: list[int]) -> list[tuple[Batch, int]]:
    """Learn one row at a time: row t is predicted, with weight 0, then rows whose labels arrive with it are learned."""
    ordered, waiting = [], set(range(len(batch)))
    for t in range(len(batch)):
        one = batch[t : t + 1]
        ordered.append((one.replaced(weight=np.zeros(1)), t))
        for r in [r for r in sorted(waiting) if r <= t and r + delays[r] == t]:
            ordered.append((batch[r : r + 1], r))
            waiting.remove(r)
    left = sorted(waiting, key=lambda r: (r + delays[r], r))
    return ordered + [(batch[r : r + 1], r) for r in left]


@pytest.mark.parametrize("loss", ["softmax", "ovr"])
@pytest.mark.parametrize("options", [{}, {"scale": 0.3}, {"dense": True}, {"float64": True}], ids=str)
@pytest.mark.parametrize("delay", [3, 400])
def test_late_labels_are_learned_as_plain_numpy_does(loss: str, options: dict[str, Any], delay: int) -> None:
    """Late labels are learned as by the oracle, including classes that are new on arrival of the row or of the
    label.
    """
    features, batch = stream(250, 5, weights=True)
    engine = engine_of(loss=loss, **{"float64": False, "dense": False, **options})
    twin = ClassesTwin(engine.spec)
    predicted, kept = np.empty(250), {}
    arrivals, losses = np.zeros((250, engine.arrival_numbers)), np.empty(1)
    for one, number in in_order_of_labels(batch, [delay] * 250):
        y, at = int(batch.y[number]), np.array([number])
        engine.learn_late(one, arrivals, at, losses=losses)
        if one.weight[0] > 0.0:
            twin.learn(features[number], y, float(one.weight[0]), kept.pop(number))
            continue
        kept[number] = twin.losses(features[number], y)
        own = float(np.exp(-kept[number]) @ twin.mixture.awake())
        predicted[number] = losses[0]
        assert losses[0] == pytest.approx(-np.log(own), abs=1e-10 if engine.spec.float64 else 1e-3)
    whole = engine_of(loss=loss, **{"float64": False, "dense": False, **options})
    waiting = Waiting(delay, width=whole.arrival_numbers)
    actual = []
    for part in batch.cut(61):
        order = waiting.order(part)
        lost = np.empty(len(order.rows))
        whole.learn_late(order.rows, order.expert_scores, order.expert_row, losses=lost)
        waiting.keep(order, part.first_row)
        actual += lost[order.arrivals].tolist()
    for rest, expert_scores in waiting.rest():
        whole.learn_late(rest, expert_scores, np.arange(len(rest)))
    np.testing.assert_array_equal(actual, predicted)
    np.testing.assert_array_equal(whole.cells, engine.cells)
    for name, array in engine.saved_arrays.items():
        np.testing.assert_array_equal(array, whole.saved_arrays[name], err_msg=name)


def test_classes_to_come_are_as_if_each_had_a_column() -> None:
    """One column for all unseen classes is exact: a model that knows them all has equal predictions."""
    _, batch = stream(200, 4)
    few, many = engine_of(classes=9, dense=True), engine_of(classes=9, known=9, dense=True)
    losses = [np.empty(200), np.empty(200)]
    for engine, own in zip((few, many), losses, strict=True):
        engine.learn(batch, losses=own)
    np.testing.assert_allclose(*losses, rtol=1e-12)
    assert (few.classes, many.classes) == (4, 9)
    np.testing.assert_allclose(few.score(batch), many.score(batch)[:, :4], rtol=1e-9)
    left = 1.0 - np.exp(few.score(batch)).sum(axis=1)
    np.testing.assert_allclose(left, np.exp(many.score(batch)[:, 4:]).sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize("cuts", [(1,) * 120, (7,) * 18, (60, 60)], ids=["rows", "sevens", "halves"])
def test_same_bits_for_any_cut(cuts: tuple[int, ...]) -> None:
    _, batch = stream(120, 5, weights=True)
    whole, parts = (engine_of(dense=True, receipt=True) for _ in range(2))
    whole.learn(batch)
    at = 0
    for size in cuts:
        parts.learn(batch[at : at + size])
        at += size
    for name, array in whole.saved_arrays.items():
        np.testing.assert_array_equal(array, parts.saved_arrays[name], err_msg=name)
    np.testing.assert_array_equal(whole.cells, parts.cells)
    np.testing.assert_array_equal(whole.parts["S"], parts.parts["S"])
    np.testing.assert_array_equal(whole.baseline_arrays["baseline.classes"], parts.baseline_arrays["baseline.classes"])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_same_bits_for_every_instruction_set(options: dict[str, object]) -> None:
    _, batch = stream(120, 5, weights=True)
    actual = []
    try:
        for name in ("portable", "sse2", "avx2"):
            if use_instruction_set(name):
                engine = engine_of(**options)
                engine.learn(batch)
                actual.append(engine)
    finally:
        use_instruction_set("")
    for other in actual[1:]:
        np.testing.assert_array_equal(actual[0].cells, other.cells)
        np.testing.assert_array_equal(actual[0].score(batch), other.score(batch))
        for name, array in actual[0].saved_arrays.items():
            np.testing.assert_array_equal(array, other.saved_arrays[name], err_msg=name)


def test_two_classes_are_logistic_with_twice_the_scale() -> None:
    """Weights of two classes are opposite, so their difference moves twice as far: softmax at h is logistic at 2h."""
    _, batch = stream(300, 2)
    softmax = engine_of(classes=2, known=2)
    logistic = Engine(Spec(dim=12, scale=tuple(2 * h for h in SCALES), beta=softmax.spec.beta, float64=True))
    for engine, y in ((softmax, batch.y), (logistic, np.where(batch.y == 1.0, 1.0, -1.0))):
        engine.learn(batch.replaced(y=y))
    own, other = softmax.mixture, logistic.mixture
    assert own is not None
    assert other is not None
    np.testing.assert_allclose(own.losses[: len(SCALES)], other.losses[: len(SCALES)], rtol=1e-9)
    for k in range(len(SCALES)):
        first, second = softmax.weights(k)
        np.testing.assert_allclose(first, -second, rtol=1e-12)
        np.testing.assert_allclose(second - first, logistic.weights(k), rtol=1e-9)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.floats(-1e6, 1e6, allow_nan=False), st.sampled_from([0.0, 1.0, 1e-3, 1e4])),
        min_size=1,
        max_size=30,
    )
)
@settings(max_examples=60, deadline=None)
def test_numbers_stay_finite(rows: list[tuple[int, float, float]]) -> None:
    batch = Batch.from_rows(
        [{0: value, y: 1.0} for y, value, _ in rows], y=[y for y, *_ in rows], weight=[c for *_, c in rows]
    )
    for loss in ("softmax", "ovr"):
        engine = engine_of(loss=loss, classes=4, scale="auto", float64=False)
        losses = np.empty(len(rows))
        engine.learn(batch, losses=losses)
        assert np.isfinite(losses).all()
        assert (losses >= -1e-12).all()
        logs = engine.score(batch)
        assert np.isfinite(logs).all()
        assert (np.exp(logs).sum(axis=1) <= 1.0 + 1e-9).all()


def test_a_score_is_the_class_that_was_predicted_before_its_row() -> None:
    """The first row of a class could not be predicted, and the first row of all has no prediction."""
    batch = Batch.from_rows([{0: 1.0}] * 4, y=[0, 0, 1, 1])
    engine = engine_of(classes=3)
    predicted = np.empty(4)
    engine.learn(batch, scores=predicted)
    assert math.isnan(predicted[0])
    assert predicted[1:3].tolist() == [0.0, 0.0]


def test_held_out_and_unlabelled_rows_leave_the_weights_alone() -> None:
    rows, batch = stream(60, 4)
    weight, y = batch.weight.copy(), batch.y.copy()
    weight[::3], y[1::3] = 0.0, np.nan
    engine, alone = engine_of(classes=4), engine_of(classes=4)
    losses = np.empty(60)
    engine.learn(batch.replaced(weight=weight, y=y), losses=losses)
    alone.learn(Batch.from_rows(rows[2::3], y=batch.y[2::3], float64=True))
    assert np.isnan(losses[1::3]).all()
    assert np.isfinite(losses[::3]).all()
    np.testing.assert_array_equal(engine.score(batch), alone.score(batch))


def test_a_class_that_was_never_seen_has_the_share_of_those_to_come() -> None:
    batch = Batch.from_rows([{0: 1.0}] * 2, y=[0, 3], weight=[1.0, 0.0])
    engine = engine_of(classes=5)
    losses = np.empty(2)
    engine.learn(batch, losses=losses)
    assert engine.classes == 1
    left = 1.0 - math.exp(engine.score(batch)[1, 0])
    assert losses[1] == pytest.approx(-math.log(left / 4), rel=1e-12)


@pytest.mark.parametrize("y", [5.0, -1.0, 0.5, 1e300])
def test_a_label_that_is_no_number_of_a_class_is_refused(y: float) -> None:
    engine = engine_of(classes=5)
    with pytest.raises(RowRefused, match=r"row 1: a label needs to be the number of a class, from 0 to 4"):
        engine.learn(Batch.from_rows([{0: 1.0}, {1: 1.0}], y=[0, y]))
    assert engine.progress.rows == 0


def test_dropped_scales_leave_the_others_as_they_are() -> None:
    _, batch = stream(200, 5)
    engine = engine_of(scale=(0.02, 0.057, 0.16, 0.45, 1.28, 3.6))
    engine.learn(batch)
    before = {h: engine.weights(k).copy() for k, h in enumerate(engine.spec.scales)}
    biases = {h: engine.biases(k).copy() for k, h in enumerate(engine.spec.scales)}
    engine.keep_scales(1)
    assert engine.spec.scales == (0.057, 0.16, 0.45, 1.28)
    for k, h in enumerate(engine.spec.scales):
        np.testing.assert_array_equal(engine.weights(k), before[h])
        np.testing.assert_array_equal(engine.biases(k), biases[h])
    mixture = engine.mixture
    assert mixture is not None
    assert sum(mixture.weights) == pytest.approx(1.0)
    engine.learn(batch)
    assert np.isfinite(engine.score(batch)).all()


def test_experts_leave_in_a_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the rows of the twin, and the others go on with weights that sum to 1."""
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_DROP_ROW", 64)
    monkeypatch.setattr(dropping_twin, "FIRST_DROP", 64)
    rows, batch = stream(300, 4)
    engine = engine_of(dense=True)
    twin = ClassesTwin(engine.spec)
    for at in range(0, 300, 50):
        engine.learn(batch[at : at + 50])
        for row, y in zip(rows[at : at + 50], batch.y[at : at + 50].tolist(), strict=True):
            twin.learn(row, int(y))
        assert engine.mixture is not None
        assert list(engine.mixture.names) == twin.mixture.names
        np.testing.assert_allclose(engine.mixture.weights, twin.mixture.w, rtol=1e-6, atol=1e-9)
    assert not {"columns", "drift"} <= set(twin.mixture.names)


def test_scales_are_dropped_in_a_long_run() -> None:
    rng = np.random.default_rng(0)
    rows, size = 2**17, 3
    y = rng.integers(0, 3, rows).astype(float)
    indices = (y[:, None] * 3 + rng.integers(0, 6, (rows, size))).astype(np.uint32) + np.arange(size) * 16
    batch = Batch(
        np.arange(0, rows * size + 1, size),
        indices.reshape(-1).astype(np.uint32),
        np.ones(rows * size, np.float32),
        y,
        np.ones(rows),
    )
    engine = Engine(Spec(loss="softmax", dim=64, scale="auto", classes=3))
    engine.learn(batch)
    assert len(engine.spec.scales) == 4
    assert len(engine.spec.retired) == 4


@pytest.mark.parametrize(
    "options", [{}, {"float64": False}, {"scale": 0.3}, {"l1": 5.0}, {"dense": True, "receipt": True}], ids=str
)
def test_a_file_brings_back_every_bit(options: dict[str, object]) -> None:
    _, batch = stream(100, 5)
    model = Model(engine_of(classes=8, **options), classes=ClassTable(8, ["a", 2.0, "c", "d", "e"]))
    model.engine.learn(batch[:60])
    again = Model.from_bytes(model.to_bytes())
    assert again.classes == model.classes
    assert again.to_bytes() == model.to_bytes()
    for one in (model, again):
        one.engine.learn(batch[60:])
    assert again.to_bytes() == model.to_bytes()
    small = model.compact()
    np.testing.assert_array_equal(small.predict(batch), model.predict(batch))
    assert Model.from_bytes(small.to_bytes()).predict_classes(batch).tolist() == model.predict_classes(batch).tolist()
    assert compacted(model.engine).classes == 5
    twin = model.engine.copy()
    np.testing.assert_array_equal(twin.score(batch), model.engine.score(batch))


def test_weights_are_by_class() -> None:
    _, batch = stream(100, 5)
    engine = engine_of(scale=0.3, classes=5)
    engine.learn(batch)
    weights, slots = engine.weights(), np.array([3, 7])
    assert weights.shape == (5, 12)
    np.testing.assert_array_equal(engine.weights_at(slots), weights[:, slots])
    X = np.zeros((len(batch), 12))
    X[np.repeat(np.arange(len(batch)), np.diff(batch.indptr)), batch.indices] = batch.values
    scores = X @ weights.T + engine.biases()
    logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(engine.score(batch), logs, rtol=1e-9, atol=1e-12)


def test_a_receipt_of_one_against_the_rest_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"receipt= needs a loss that is convex in the weights, got loss=ovr"):
        Engine(Spec(loss="ovr", dim=4, classes=3), receipt=True)


@pytest.mark.parametrize("cut", [1, 7, 40])
def test_the_baseline_counts_classes_that_were_met(cut: int) -> None:
    """(n_c + 1/2) / (n + (k + 1)/2) for k seen classes, and the remainder split equally among unseen ones."""
    _, batch = stream(40, 4, weights=True)
    engine, losses, own, n = engine_of(classes=4), np.empty((40, 2)), [], np.zeros(4)
    for at in range(0, 40, cut):
        engine.learn(batch[at : at + cut], baselines=losses[at : at + cut])
    for y, c in zip(batch.y.astype(int), batch.weight, strict=True):
        k = np.count_nonzero(n)
        shares = np.where(n > 0, n + 0.5, 0.5 / max(4 - k, 1)) / (n.sum() + 0.5 * (k + (k < 4)))
        assert shares.sum() == pytest.approx(1.0)
        own.append(-math.log(shares[y]))
        n[y] += c
    np.testing.assert_allclose(losses[:, 0], own, rtol=1e-12)
    assert engine.baseline.loss == pytest.approx(float(batch.weight @ own))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "softmax"}, "classes= needs a whole number from 2 to 10000, got 0"),
        ({"loss": "softmax", "classes": 1}, "classes= needs a whole number"),
        ({"loss": "softmax", "classes": 10_001}, "classes= needs a whole number"),
        ({"loss": "logistic", "classes": 3}, "classes= needs a loss of several classes, got loss=logistic"),
        ({"loss": "softmax", "classes": 3, "scale": "auto", "coin": True}, "coin= needs several scales"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        Spec(**options)  # type: ignore[arg-type]


def test_numbers_of_labels_are_in_the_order_of_the_rows() -> None:
    table = ClassTable(3)
    texts = {2.0**1000: "cat"}
    y = np.array([7.0, math.nan, 2.0**1000, 7.0, -1.5, 99.0])
    assert table.numbers(y, texts).tolist()[2:] == [1.0, 0.0, 2.0, 3.0]  # one too many is 3
    assert table.labels == (7.0, "cat", -1.5)
    assert table.names == ("7", "cat", "-1.5")
    assert [shown_label(label) for label in (3.0, 0.5, 1e300, "x y")] == ["3", "0.5", "1e+300", "x y"]


@pytest.mark.parametrize(
    ("declared", "y", "labels", "most"),
    [
        (None, None, (), 100),
        (None, [3, 1, 3], (1.0, 3.0), 2),
        (None, ["b", "a", "10"], (10.0, "a", "b"), 3),
        (12, [3, 1], (), 12),
        ("12", None, (), 12),
        ("b,a, c", None, ("b", "a", "c"), 3),
        (["x", 2], None, ("x", 2.0), 2),
        (np.array([5, 6]), None, (5.0, 6.0), 2),
        (None, [1, 1], (), 100),
    ],
)
def test_declared_classes(declared: object, y: object, labels: tuple[object, ...], most: int) -> None:
    table = table_of(declared, y)
    assert table.labels == labels
    assert table.most == most


@pytest.mark.parametrize("declared", [["a"], ["a", "a"], ["1", 1.0], 1.5, {"a": 1}, ["a", ""]])
def test_declarations_that_mean_nothing_are_refused(declared: object) -> None:
    with pytest.raises(InvalidInput, match=r"classes= needs"):
        table_of(declared)
