"""The compiled learner's Python interface: views, copies, progress, and input validation."""

import gc
import math
import threading
from typing import Any

import numpy as np
import pytest

from ftprl._core import Learner, RowError, use_instruction_set
from ftprl.data import Batch
from ftprl.errors import InvalidInput
from ftprl.linear import Engine, LossTotals, Spec
from ftprl.linear.refusal import RowRefused
from ftprl.linear.totals import RoundingSums

SMALL = Spec(dim=8, float64=True)


def batch(**more: Any) -> Batch:
    return Batch.from_rows([{0: 1.0, 3: -2.0}, {3: 1.0}, {}], y=[1, -1, 1], **more)


def test_first_prediction_is_zero_and_the_second_is_not() -> None:
    engine = Engine(SMALL)
    scores, losses = np.full((2, 3), 9.0)
    result = engine.learn(batch(), scores=scores, losses=losses)
    assert scores[0] == 0.0
    assert losses[0] == math.log(2)
    assert scores[1] != 0.0
    assert result.rows == 3
    assert result.weight == 3.0
    assert result.loss == pytest.approx(losses.sum())
    assert result.mean == result.loss / 3
    assert result.to_dict()["mean"] == result.mean
    assert engine.progress == result


def test_one_step_by_hand() -> None:
    """Log loss, value 2, y = 1: g = -1, R = 1, M = 2, sigma = M R / h = 20, z = g, x = -z h / (M (M + R))."""
    engine = Engine(Spec(dim=1, intercept=False, float64=True))
    engine.learn(Batch.from_rows([{0: 2.0}], [1.0]))
    assert engine.cells.tolist() == [[-1.0, 1.0, 2.0, -1.0]]
    assert engine.weights().tolist() == [pytest.approx(0.1 / 6)]
    assert engine.bias() == 0.0
    assert engine.score(Batch.from_rows([{0: 3.0}])).tolist() == [pytest.approx(0.05)]


def test_one_step_of_squared_loss_by_hand() -> None:
    """The first label is learned alone: mean 1, unit 0. With y = 3 the mean is 2 and the unit 1, and the score is 1.

    The value 2 reaches A = v² h / (M beta M) = 0.1, so that the slope is -2 / 1.1, g = -4 / 1.1 and R = |g| / unit.
    """
    engine = Engine(Spec(loss="squared", dim=1, intercept=False, float64=True))
    scores = np.empty(2)
    engine.learn(Batch.from_rows([{0: 2.0}, {0: 2.0}], [1.0, 3.0]), scores=scores)
    assert scores.tolist() == [0.0, 1.0]
    g = -4 / 1.1
    np.testing.assert_allclose(engine.cells, [[g, -g, 2.0, 1.0]])
    x = -g * 0.1 / (2 * (2 - g))
    np.testing.assert_allclose(engine.weights(), [x])
    far, near = engine.score(Batch.from_rows([{0: 100.0}, {0: 3.0}])).tolist()
    assert far == 3.0  # the range of the labels
    assert near == pytest.approx(2.0 + 3 * x)
    facts = engine.label_state
    assert facts is not None
    assert (facts["offset"], facts["unit"], facts["lowest"], facts["highest"]) == (2.0, 1.0, 1.0, 3.0)
    assert Engine(SMALL).label_state is None


def test_a_larger_value_shrinks_the_weight_before_it_is_predicted() -> None:
    engine = Engine(Spec(dim=1, intercept=False, float64=True))
    engine.learn(Batch.from_rows([{0: 1.0}], [1.0]))
    big, scores = Batch.from_rows([{0: 100.0}], [-1.0]), np.empty(1)
    frozen = engine.score(big)[0]
    engine.learn(big, scores=scores)
    assert 0 < scores[0] < frozen / 50


def test_scores_are_linear_in_the_weights() -> None:
    engine = Engine(SMALL)
    engine.learn(batch())
    x = engine.weights()
    np.testing.assert_allclose(engine.score(batch()), np.array([x[0] - 2 * x[3], x[3], 0]) + engine.bias())


@pytest.mark.parametrize("bad", ["label", "weight"])
def test_rows_that_are_not_learned_change_nothing(bad: str) -> None:
    engine = Engine(Spec(dim=8, float64=True), receipt=True)
    engine.learn(batch())
    before = engine.copy()
    rows = [{0: 50.0}, {5: 1.0}]
    y, weight = ([math.nan, math.nan], [1.0, 2.0]) if bad == "label" else ([1.0, -1.0], [0.0, 0.0])
    more = Batch.from_rows(rows, y, weight)
    scores, losses = np.empty((2, 2))
    assert engine.learn(more, scores=scores, losses=losses) == LossTotals(0.0, 0.0, 0)
    np.testing.assert_array_equal(scores, before.score(more))
    assert np.isnan(losses).all() == (bad == "label")
    for name in ("cells", "intercept", "tallies"):
        np.testing.assert_array_equal(getattr(engine, name), getattr(before, name))


def test_no_progress_has_no_mean() -> None:
    assert math.isnan(Engine(SMALL).progress.mean)


def test_cells_never_seen_play_clip_zero() -> None:
    assert Engine(Spec(dim=3)).weights().tolist() == [0.0] * 3
    assert Engine(Spec(dim=3, lower=0.5)).weights().tolist() == [0.5] * 3
    assert Engine(Spec(dim=3, upper=-2.0, l2=1.0)).weights().tolist() == [-2.0] * 3


def test_cells_are_copied_out_and_put_back() -> None:
    engine = Engine(Spec(dim=4))
    engine.learn(Batch.from_rows([{2: 1.0}], [1]))
    assert engine.cells.dtype == np.float32
    assert engine.cells.shape == (4, 4)
    assert (engine.cells[2] != 0).all()
    assert not engine.cells[[0, 1, 3]].any()
    engine.cells[2] = 0.0
    assert engine.weights()[2] != 0.0
    engine.put(np.array([2]), np.zeros((1, 4)))
    assert engine.weights()[2] == 0.0
    engine.put(np.array([1, 3]), np.array([[7.0] * 4, [5.0] * 4], np.float32))
    np.testing.assert_array_equal(engine.take(np.array([3, 1])), [[5.0] * 4, [7.0] * 4])


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_views_keep_the_learner_alive(scale: Any) -> None:
    engine = Engine(Spec(dim=4, scale=scale))
    engine.learn(batch())
    tallies, weights = engine.tallies, engine.state["w"]
    expected = engine.progress.loss, weights.tolist()
    del engine
    gc.collect()
    assert (tallies[0], weights.tolist()) == expected


@pytest.mark.parametrize("scale", [0.1, "auto"])
def test_a_state_moves_to_another_engine_through_its_arrays(scale: Any) -> None:
    spec = Spec(dim=8, float64=True, scale=scale)
    one, other = Engine(spec, receipt=True), Engine(spec, receipt=True)
    one.learn(batch())
    for name, array in other.saved_arrays.items():
        array[...] = one.saved_arrays[name]
    other.put(one.touched(), one.take(one.touched()))
    assert one.learn(batch()) == other.learn(batch())
    np.testing.assert_array_equal(one.cells, other.cells)
    assert one.sums == other.sums


@pytest.mark.parametrize("scale", [0.1, (0.1, 1.0)])
def test_every_array_has_a_dimension_for_outputs(scale: Any) -> None:
    scales = np.atleast_1d(scale).tolist()
    core, b = Learner(4, **options(scales=scales, receipt=True)), batch()
    scores, weights, intercept = np.empty((3, 1)), np.empty((1, 4)), np.empty((1, 4, len(scales)))
    core.learn(b.indptr, b.indices, b.values, b.y, b.weight, scores)
    core.weights(weights, 0)
    core.intercept(intercept)
    core.ledger(np.empty((1, 10, len(scales))), 0)
    core.groups(np.empty((1, 128, 4)), 0, 0)
    assert weights.any()
    assert intercept.any()
    assert all(len(array) == 1 for array in core.mixture.values())
    with pytest.raises(ValueError, match="a column for each output"):
        core.score(b.indptr, b.indices, b.values, np.empty((3, 2)))


def test_a_copy_is_apart() -> None:
    engine = Engine(SMALL, receipt=True)
    engine.learn(batch())
    other = engine.copy()
    assert (other.spec, other.receipt, other.progress, other.sums) == (SMALL, True, engine.progress, engine.sums)
    np.testing.assert_array_equal(other.cells, engine.cells)
    other.learn(batch())
    assert engine.progress.rows == 3
    assert not np.array_equal(other.cells, engine.cells)
    assert not np.array_equal(other.parts["S"], engine.parts["S"])
    assert other.rounding_sums(0).slopes > engine.rounding_sums(0).slopes > 0


def test_a_large_table_costs_nothing_until_it_is_touched() -> None:
    engine = Engine(Spec(dim=2**28))
    engine.learn(Batch.from_rows([{2**28 - 1: 1.0, 0: 1.0}], [1]))
    assert engine.take(np.array([2**28 - 1, 0]))[:, 1].tolist() == [0.5, 0.5]
    with pytest.raises(InvalidInput, match="below 268435456, got 268435456; "):
        engine.learn(Batch.from_rows([{2**28: 1.0}], [1]))


@pytest.mark.parametrize("length", range(14))
def test_rows_of_every_length(length: int) -> None:
    """A row at the very end of the arrays is learned without reading beyond them."""
    engine = Engine(Spec(loss="squared", dim=16, intercept=False, float64=True))
    row = Batch.from_rows([dict.fromkeys(range(length), 1.0)], [1.0])
    engine.learn(row)
    x = -engine.cells[0, 0] * 0.1 / 2 if length else 0.0
    assert engine.weights().tolist() == pytest.approx([x] * length + [0.0] * (16 - length))


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("receipt", [False, True])
def test_long_and_short_rows_are_learned_as_one_by_one(loss: str, receipt: bool) -> None:
    """The prefetch distance depends on the rows of a batch, and does not influence learning."""
    rng = np.random.default_rng(8)
    for lengths in ([0, 1, 2, 700, 3, 0, 90, 377, 5, 1, 400], [2000, 1, 3000, 0, 1500], [4, 0, 3, 5] * 9, [800] * 4):
        rows = [dict.fromkeys(rng.choice(5000, size, replace=False).tolist(), 1.0) for size in lengths]
        batch = Batch.from_rows(rows, y=np.where(rng.random(len(rows)) < 0.5, 1.0, -1.0))
        spec = Spec(loss=loss, dim=5000)
        whole, single = Engine(spec, receipt=receipt), Engine(spec, receipt=receipt)
        scores, own = np.empty(len(rows)), np.empty(len(rows))
        whole.learn(batch, scores=scores)
        for r in range(len(rows)):
            single.learn(batch[r : r + 1], scores=own[r : r + 1])
        np.testing.assert_array_equal(scores, own)
        np.testing.assert_array_equal(whole.cells, single.cells)
        np.testing.assert_array_equal(
            whole.score(batch), [float(single.score(batch[r : r + 1])[0]) for r in range(len(rows))]
        )


def test_other_threads_run_meanwhile() -> None:
    engine, n = Engine(Spec(dim=64)), 200_000
    rows = Batch(np.arange(n + 1), np.zeros(n, np.uint32), np.ones(n, np.float32), np.ones(n), np.ones(n))
    done = threading.Event()
    thread = threading.Thread(target=lambda: (engine.learn(rows), done.set()))
    thread.start()
    beats = 0
    while not done.wait(1e-4):
        beats += 1
    thread.join()
    assert engine.progress.rows == n
    assert beats > 0


def test_kernels_by_name() -> None:
    assert use_instruction_set("portable")
    assert not use_instruction_set("abacus")
    assert use_instruction_set("")


def options(**more: Any) -> dict[str, Any]:
    plain = {"float64": True, "receipt": False, "loss": "squared", "scales": [0.1], "beta": 1.0, "l1": 0.0, "l2": 0.0}
    return {**plain, "lower": -math.inf, "upper": math.inf, "intercept": True, "tau": 0.5, **more}


def test_the_core_checks_lengths_and_types_itself() -> None:
    core = Learner(4, **options())
    b = batch()
    y, w = np.zeros(3), np.ones(3)
    with pytest.raises(ValueError, match="y needs a number for each of the 3 rows, got 2"):
        core.learn(b.indptr, b.indices, b.values, y[:2], w)
    with pytest.raises(ValueError, match="scores needs a number for each of the 3 rows, got 1"):
        core.learn(b.indptr, b.indices, b.values, y, w, np.empty((1, 1)))
    with pytest.raises(ValueError, match="losses needs a number for each of the 3 rows, got 1"):
        core.learn(b.indptr, b.indices, b.values, y, w, None, np.empty(1))
    with pytest.raises(RowError, match=r"^a label needs to be within 1e30, got inf; ") as caught:
        core.check(b.indptr, b.indices, b.values, np.array([0.0, math.inf, 0.0]), w, 40)
    assert caught.value.row == 41
    with pytest.raises(ValueError, match="from 0 to the number of entries"):
        core.learn(b.indptr + 1, b.indices, b.values, y, w)
    with pytest.raises(ValueError, match="nondecreasing"):
        core.learn(np.array([0, 3, 1, 3]), b.indices, b.values, y, w)
    with pytest.raises(ValueError, match="one length, got 2 and 3"):
        core.score(b.indptr, b.indices[:2], b.values, y[:, None])
    with pytest.raises(ValueError, match="got none"):
        core.score(b.indptr[:0], b.indices, b.values, y[:, None])
    with pytest.raises(TypeError):
        core.learn(b.indptr, b.indices.astype(np.int32), b.values, y, w)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        core.score(b.indptr, b.indices, b.values.astype(np.float16), y[:, None])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a number for each output and cell"):
        core.weights(np.empty((1, 3)), 0)
    with pytest.raises(ValueError, match="loss is not known: log"):
        Learner(4, **options(loss="log"))
    with pytest.raises(ValueError, match="dim needs to be from 1"):
        Learner(0, **options())
    assert core.touched(np.empty(4, np.uint32)) == 0


def test_a_refused_row_leaves_the_rows_before_it_unlearned_also_where_scales_are_reviewed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch is cut at the row at which scales may be dropped; the bad row is after the cut."""
    monkeypatch.setattr("ftprl.linear.mixture.FIRST_ROW", 4)
    engine = Engine(Spec(dim=4, scale="auto"))
    with pytest.raises(RowRefused, match="row 6: a label needs to be -1 or 1") as caught:
        engine.learn(Batch.from_rows([{0: 1.0}] * 8, [1, 1, 1, 1, 1, 1, 7, 1]))
    assert caught.value.row == 6
    assert engine.progress.rows == 0


def test_arguments_of_the_wrong_kind() -> None:
    with pytest.raises(InvalidInput, match="spec needs a Spec, got 'x'; "):
        Engine("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="batch needs a Batch, got None; "):
        Engine(SMALL).learn(None)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="batch needs a Batch, got None; "):
        Engine(SMALL).score(None)  # type: ignore[arg-type]


def test_what_bounds_the_rounding_does_not_depend_on_batches() -> None:
    """Surplus lanes at the end of a row once counted entries of the next row of the batch."""
    rows = [{0: 1.0, 1: 2.0, 2: -1.0}, {3: 1e6, 0: 5.0}] * 3
    batch = Batch.from_rows(rows, y=[1, -1] * 3)

    def sums(rows_at_a_time: int) -> RoundingSums:
        engine = Engine(Spec(dim=8, float64=True, scale=0.1), receipt=True)
        for some in batch.cut(rows_at_a_time):
            engine.learn(some)
        return engine.rounding_sums(0)

    assert sums(1) == sums(6)


@pytest.mark.parametrize("scale", [0.1, (0.05, 0.5)])
@pytest.mark.parametrize("own", [True, False])
def test_the_last_score_alone_is_that_of_all_scores(scale: Any, own: bool) -> None:
    made = Batch.from_rows([{r % 5: 1.0, 5: 0.5} for r in range(30)], y=[1 - 2 * (r % 3 == 0) for r in range(30)])
    rows = made if own else Batch(made.indptr, made.indices, made.values, made.y, made.weight)
    first, second = (Engine(Spec(dim=8, scale=scale), receipt=True) for _ in range(2))
    scores, last, losses = np.empty(30), np.empty(1), np.empty((2, 30))
    for at in (slice(0, 1), slice(1, 30)):
        totals = first.learn(rows[at], scores=scores[at], losses=losses[0, at])
        same = second.learn(rows[at], last_score=last, losses=losses[1, at])
        assert (same.weight, same.rows) == (totals.weight, totals.rows)
        assert same.loss == pytest.approx(totals.loss)
        assert last[0] == scores[at][-1]
    assert losses[0].tobytes() == losses[1].tobytes()
    assert first.cells.tobytes() == second.cells.tobytes()
    assert first.progress == second.progress
    assert second.learn(rows[:0], last_score=last).rows == 0


def test_with_a_last_score_no_row_is_learned_if_one_is_refused() -> None:
    engine, last = Engine(SMALL), np.empty(1)
    for labels, row in (([1, -1, 5], 2), ([1, 5, 5], 1), ([5, -1, 1], 0)):
        with pytest.raises(RowRefused) as refused:
            engine.learn(batch().replaced(y=np.array(labels, float)), last_score=last)
        assert refused.value.row == row
        assert engine.progress.rows == 0


@pytest.mark.parametrize("values", [np.float32, np.float64])
def test_the_first_bad_row_is_named_whatever_is_wrong_with_it(values: Any) -> None:
    """The first bad row is reported: a bad label before a bad value, and a bad value before a bad label."""
    for bad_label, bad_value in ((2, 5), (5, 2), (3, 3)):
        y, numbers = np.ones(8), np.ones(8, values)
        y[bad_label], numbers[bad_value] = -1.0, 3e31
        rows = Batch.from_rows([{0: 1.0}] * 8, y=y).replaced(values=numbers, first_row=10)
        with pytest.raises(RowRefused) as caught:
            Engine(Spec(dim=8, loss="gamma")).check_rows(rows)
        assert caught.value.row == 10 + min(bad_label, bad_value)
