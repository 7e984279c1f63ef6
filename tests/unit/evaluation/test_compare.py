"""Comparisons: identical systems are never decided, different ones are, and intervals hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.errors import InvalidInput
from ftprl.evaluation.blocks import Block
from ftprl.evaluation.compare import MOST_GROUPS, OTHER_VALUES, Comparison, compare_predictions
from ftprl.losses import SCALAR_LOSSES, scalar_loss

LOGISTIC = SCALAR_LOSSES["logistic"]
DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def blocks(y: np.ndarray, *scores: np.ndarray, size: int = 500, **more: np.ndarray) -> Iterator[Block]:
    weight, groups = more.get("weight", np.ones(len(y))), more.get("groups")
    for a in range(0, len(y), size):
        b = a + size
        some = None if groups is None else groups[a:b]
        yield Block(a + 1, y[a:b], weight[a:b], np.column_stack([s[a:b] for s in scores]), some)


def stream(n: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, the true log-odds, and worse ones."""
    rng = np.random.default_rng(seed)
    s = rng.normal(0, 2, n)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-s)), 1.0, -1.0)
    return y, s, 0.2 * s + rng.normal(0, 1, n)


def test_the_better_system_is_found() -> None:
    y, good, bad = stream()
    actual = compare_predictions(blocks(y, bad, good), ["bad", "good"], LOGISTIC)
    (difference,) = actual.differences
    expected = LOGISTIC.arrays(bad, y)[0] - LOGISTIC.arrays(good, y)[0]
    assert difference.interval.mean + difference.interval.cut_off == pytest.approx(expected.mean())
    assert difference.better == "good"
    assert difference.decided is not None
    assert 20 < difference.decided < 2000
    assert difference.text().startswith("good is better than bad by 0.")
    limited = f"; the differences of 3 rows were clipped ({expected.mean():.3f} without clipping)"
    end = f", decided at row {difference.decided:,}{limited}"
    assert difference.text().endswith(end)
    assert actual.losses[1].mean == pytest.approx(LOGISTIC.arrays(good, y)[0].mean())
    assert actual.baseline == pytest.approx(np.log(2), abs=0.02)


def test_order_of_systems_turns_the_sign_only() -> None:
    y, good, bad = stream()
    a = compare_predictions(blocks(y, bad, good), ["bad", "good"], LOGISTIC).differences[0]
    b = compare_predictions(blocks(y, good, bad), ["good", "bad"], LOGISTIC).differences[0]
    assert a.text() == b.text()
    assert (a.interval.lower, a.interval.upper) == (-b.interval.upper, -b.interval.lower)


def test_identical_systems_never_differ() -> None:
    y, good, _ = stream(50_000)
    (difference,) = compare_predictions(blocks(y, good, good), ["a", "b"], LOGISTIC).differences
    assert difference.better is None
    assert difference.decided is None
    assert difference.interval.mean == 0.0
    assert "not decided" in difference.text()


@pytest.mark.parametrize("size", [1, 7, 4000])
@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
def test_blocks_do_not_matter(size: int, loss: str) -> None:
    y, good, bad = stream(600)
    y = y if loss == "logistic" else np.abs(good) + 1.0
    groups = np.array([str(i % 3) for i in range(600)], dtype=object)
    kind = SCALAR_LOSSES[loss]
    one = compare_predictions(blocks(y, good, bad, size=600, groups=groups), ["a", "b"], kind, by="g")
    many = compare_predictions(blocks(y, good, bad, size=size, groups=groups), ["a", "b"], kind, by="g")
    assert one.to_dict() == many.to_dict()
    assert one.curves == many.curves


def test_rows_that_cannot_be_compared_are_counted() -> None:
    y, good, bad = stream(1000)
    bad[3] = np.nan
    y[5] = np.nan
    weight = np.ones(1000)
    weight[8] = 0.0
    actual = compare_predictions(blocks(y, good, bad, weight=weight), ["a", "b"], LOGISTIC)
    assert (actual.rows, actual.left_out, actual.unlabelled) == (997, 1, 2)
    left_out = "1 without a prediction of every system, 2 without a label or weight"
    assert str(actual).splitlines()[0] == f"997 rows, log loss (nats) per row; left out: {left_out}"


def test_slices_have_rows_and_intervals() -> None:
    y, good, bad = stream()
    groups = np.array(["even" if i % 2 == 0 else "odd" for i in range(4000)], dtype=object)
    scores = np.where(groups == "even", bad, good)
    actual = compare_predictions(blocks(y, scores, good, groups=groups), ["a", "b"], LOGISTIC, by="parity")
    (first, even, (one,)), (second, odd, (other,)) = actual.slices
    assert (first, even, second, odd) == ("even", 2000, "odd", 2000)
    assert one.better == "b"
    assert other.better is None
    assert "by parity, each with its own interval:" in str(actual)


def test_many_values_are_put_together() -> None:
    y, good, bad = stream(2000)
    groups = np.array([f"v{i % 500}" for i in range(2000)], dtype=object)
    actual = compare_predictions(blocks(y, good, bad, groups=groups, size=300), ["a", "b"], LOGISTIC, by="v")
    assert len(actual.slices) == MOST_GROUPS + 1
    assert actual.slices[0][:2] == (OTHER_VALUES, 2000 - 4 * MOST_GROUPS)


def test_three_systems_share_the_error_probability() -> None:
    y, good, bad = stream(2000)
    two = compare_predictions(blocks(y, good, bad), ["a", "b"], LOGISTIC)
    three = compare_predictions(blocks(y, good, bad, 0.5 * good), ["a", "b", "c"], LOGISTIC)
    assert [(d.first, d.second) for d in three.differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert three.differences[0].interval.radius > two.differences[0].interval.radius
    assert three.losses[0] == two.losses[0]


def test_weights_count() -> None:
    y, good, bad = stream(3000)
    weight = np.random.default_rng(1).choice([0.5, 1.0, 3.0], 3000)
    actual = compare_predictions(blocks(y, good, bad, weight=weight), ["a", "b"], LOGISTIC)
    d = LOGISTIC.arrays(good, y)[0] - LOGISTIC.arrays(bad, y)[0]
    interval = actual.differences[0].interval
    assert interval.mean + interval.cut_off == pytest.approx((weight * d).sum() / weight.sum())


def test_the_loss_may_have_a_parameter() -> None:
    _, good, bad = stream(2000)
    actual = compare_predictions(blocks(good + 3.0, good, bad), ["a", "b"], scalar_loss("quantile", 0.9))
    assert actual.losses[0].mean == pytest.approx(2.7)
    assert actual.rows == 2000 - 32  # the first ones settle the unit


@pytest.mark.parametrize("count", [1, 17])
def test_the_number_of_systems_is_checked(count: int) -> None:
    y, good, _ = stream(10)
    with pytest.raises(InvalidInput, match=f"compare needs from 2 to 16 models or prediction files, got {count}"):
        compare_predictions(blocks(y, *[good] * count), ["a"] * count, LOGISTIC)


def test_data_without_a_usable_row_is_refused() -> None:
    _, good, _ = stream(10)
    with pytest.raises(InvalidInput, match="data needs rows with a label, a weight above 0 and a prediction"):
        compare_predictions(blocks(np.full(10, np.nan), good, good), ["a", "b"], LOGISTIC)


def misses(full: np.ndarray, half: np.ndarray, y: np.ndarray, streams: int, rows: int) -> tuple[int, int, list[int]]:
    """Return how many intervals of bootstrapped streams miss the true difference, how many are decided, and at which
    row.
    """
    truth = float((LOGISTIC.arrays(full, y)[0] - LOGISTIC.arrays(half, y)[0]).mean())
    rng, missed, decided = np.random.default_rng(0), 0, []
    for _ in range(streams):
        some = rng.integers(0, len(y), rows)
        actual: Comparison = compare_predictions(
            blocks(y[some], full[some], half[some], size=rows), ["f", "h"], LOGISTIC
        )
        (difference,) = actual.differences
        at_every_point = [
            low <= truth <= high for low, high in zip(actual.curves[0].lower, actual.curves[0].upper, strict=True)
        ]
        missed += not all(at_every_point)
        if difference.decided is not None:
            decided.append(difference.decided)
    return missed, len(decided), decided


def test_the_true_difference_lies_inside_in_bootstrapped_streams() -> None:
    y, good, bad = stream(5000)
    missed, decided, _ = misses(good, 0.8 * bad, y, streams=40, rows=2000)
    assert missed <= 2
    assert decided >= 38


@pytest.mark.slow
def test_half_of_the_features_of_a9a(tmp_path: Path) -> None:
    """200 streams with models of all features of a9a and of every second one."""
    if not DATA.is_dir():
        pytest.skip("needs the data sets in ../shared/data")
    scores, labels = [], np.empty(0)
    for step in (1, 2):
        parts = []
        for name in ("a9a", "a9a.t"):
            batches = list(ftprl.data.open(DATA / f"{name}.libsvm.gz", dim=200).batches())
            rows = [
                [(int(i), float(v)) for i, v in zip(b.indices[p:q], b.values[p:q], strict=True) if i % step == 0]
                for b in batches
                for p, q in zip(b.indptr[:-1], b.indptr[1:], strict=True)
            ]
            parts.append(ftprl.data.Batch.from_rows(rows, y=np.concatenate([b.y for b in batches])))
        model = ftprl.train([parts[0]]).model
        scores.append(model.engine.score(parts[1]))
        labels = parts[1].y
    missed, decided, rows_needed = misses(*scores, labels, streams=200, rows=len(labels))
    print(f"missed at some row {missed} of 200, decided {decided}, median row {np.median(rows_needed):.0f}")
    assert missed <= 10
    assert decided == 200
