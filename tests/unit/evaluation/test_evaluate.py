"""Metrics against scikit-learn, with weights; intervals against simulation; and unmeasurable input."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ftprl
from ftprl.errors import InvalidInput
from ftprl.evaluation import Evaluation, evaluate_predictions
from ftprl.evaluation.blocks import Block
from ftprl.evaluation.evaluate import shown
from ftprl.evaluation.ranking import MOST_ROWS, SliceRankings
from ftprl.losses import SCALAR_LOSSES, scalar_loss

LOGISTIC = SCALAR_LOSSES["logistic"]


def blocks(y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None, **more: np.ndarray) -> Iterator[Block]:
    weight = np.ones(len(y)) if weight is None else weight
    for a in range(0, len(y), 333):
        groups = more["groups"][a : a + 333] if "groups" in more else None
        yield Block(a + 1, y[a : a + 333], weight[a : a + 333], scores[a : a + 333, None], groups)


def classes(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, scores with ties, and weights."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(-1, 2, n), 1)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-0.8 * scores)), 1.0, -1.0)
    return y, scores, rng.choice([0.5, 1.0, 4.0], n)


def values(result: Evaluation) -> dict[str, float]:
    return {name: metric.value for name, metric in result.metrics.items()}


def test_two_classes_as_in_scikit_learn() -> None:
    sk = pytest.importorskip("sklearn.metrics")
    y, scores, weight = classes()
    p = 1 / (1 + np.exp(-scores))
    result = evaluate_predictions(blocks(y, scores, weight), "m", LOGISTIC, thresholds=(0.3, 0.5))
    got, sw = values(result), {"sample_weight": weight}
    assert got["log loss"] == pytest.approx(sk.log_loss(y, p, **sw))
    assert got["AUC"] == pytest.approx(sk.roc_auc_score(y, p, **sw), rel=1e-12)
    assert got["average precision"] == pytest.approx(sk.average_precision_score(y, p, **sw), rel=1e-12)
    assert got["Brier score"] == pytest.approx(sk.brier_score_loss(y, p, **sw))
    assert got["share of positives"] == pytest.approx(np.average(y > 0, weights=weight))
    for at, metrics in result.thresholds.items():
        chosen = np.where(p >= at, 1.0, -1.0)
        assert metrics["accuracy"].value == pytest.approx(sk.accuracy_score(y, chosen, **sw))
        assert metrics["precision"].value == pytest.approx(sk.precision_score(y, chosen, **sw))
        assert metrics["recall"].value == pytest.approx(sk.recall_score(y, chosen, **sw))
        assert metrics["F score"].value == pytest.approx(sk.f1_score(y, chosen, **sw))
    assert result.calibration is not None
    true, predicted = sk_calibration(y, p)
    plain = evaluate_predictions(blocks(y, scores), "m", LOGISTIC).calibration
    assert plain is not None
    np.testing.assert_allclose([b.label for b in plain.bins], true)
    np.testing.assert_allclose([b.prediction for b in plain.bins], predicted)


def test_the_calibration_error_follows_from_scikit_learns_curve() -> None:
    pytest.importorskip("sklearn")
    y, scores, weight = classes()
    p = 1 / (1 + np.exp(-scores))
    error = evaluate_predictions(blocks(y, scores), "m", LOGISTIC).metrics["expected calibration error"].value
    true, predicted = sk_calibration(y, p)
    rows = np.bincount(np.searchsorted(np.linspace(0, 1, 21)[1:-1], p), minlength=20)
    assert error == pytest.approx(np.average(np.abs(true - predicted), weights=rows[rows > 0]))
    # A row of weight k equals k rows, because scikit-learn's curve has no weights.
    whole = (2 * weight).astype(int)
    weighted = evaluate_predictions(blocks(y, scores, weight), "m", LOGISTIC).metrics["expected calibration error"]
    repeated = evaluate_predictions(blocks(np.repeat(y, whole), np.repeat(scores, whole)), "m", LOGISTIC).metrics
    assert weighted.value == pytest.approx(repeated["expected calibration error"].value)


def sk_calibration(y: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.calibration import calibration_curve

    return calibration_curve(y > 0, p, n_bins=20)


@pytest.mark.parametrize("loss", ["squared", "poisson", "gamma", "absolute", "quantile", "huber"])
def test_numbers_as_in_scikit_learn(loss: str) -> None:
    sk = pytest.importorskip("sklearn.metrics")
    rng, n = np.random.default_rng(1), 2000
    scores = rng.normal(1, 0.5, n)
    kind = scalar_loss(loss, 0.8)
    mean = kind.mean(scores)
    y = rng.poisson(np.exp(scores)).astype(float) if loss == "poisson" else rng.gamma(2.0, np.abs(mean) / 2) + 1e-3
    weight = rng.choice([0.5, 2.0], n)
    result = evaluate_predictions(blocks(y + 0.0, scores, weight), "m", kind)
    got, sw = values(result), {"sample_weight": weight}
    assert got["RMSE"] == pytest.approx(math.sqrt(sk.mean_squared_error(y, mean, **sw)))
    assert got["MAE"] == pytest.approx(sk.mean_absolute_error(y, mean, **sw))
    assert got["R²"] == pytest.approx(sk.r2_score(y, mean, **sw))
    assert got["mean prediction minus mean label"] == pytest.approx(np.average(mean - y, weights=weight))
    if loss == "poisson":
        assert got["mean Poisson deviance"] == pytest.approx(sk.mean_poisson_deviance(y, mean, **sw))
    if loss == "gamma":
        assert got["mean gamma deviance"] == pytest.approx(sk.mean_gamma_deviance(y, mean, **sw))
    if loss == "quantile":
        assert got["mean quantile loss"] == pytest.approx(sk.mean_pinball_loss(y, mean, alpha=0.8, **sw))
    assert result.ranked is None
    assert result.thresholds == {}


def test_hinge_scores_have_no_calibration() -> None:
    y, scores, _ = classes()
    result = evaluate_predictions(blocks(y, scores), "m", SCALAR_LOSSES["hinge"])
    assert result.calibration is None
    assert "Brier score" not in result.metrics
    assert list(result.thresholds) == [0.0]
    named = evaluate_predictions(blocks(y, scores), "m", SCALAR_LOSSES["hinge"], thresholds=(0.5,))
    assert named.thresholds[0.5]["accuracy"].value == pytest.approx((np.where(scores >= 0.5, 1, -1) == y).mean())
    assert result.thresholds[0.0]["accuracy"].value == pytest.approx((np.where(scores >= 0, 1, -1) == y).mean())


def test_lift_is_the_share_of_positives_at_the_top() -> None:
    rng = np.random.default_rng(3)
    scores = rng.permutation(2000).astype(float)
    y = np.where(rng.random(2000) < 0.1 + 0.4 * (scores > 1800), 1.0, -1.0)
    result = evaluate_predictions(blocks(y, scores / 1000), "m", LOGISTIC)
    order = np.argsort(-scores)
    for part in (1, 5, 10):
        top = y[order][: 20 * part] > 0
        lift = result.metrics[f"lift at top {part} %"].value
        assert lift == pytest.approx(top.mean() / (y > 0).mean())
        at = scores[order][20 * part - 1]
        precision = pytest.importorskip("sklearn.metrics").precision_score(y > 0, scores >= at)
        assert lift == pytest.approx(precision / (y > 0).mean())


def test_the_base_rate_is_beside_every_metric() -> None:
    y, scores, _ = classes()
    result = evaluate_predictions(blocks(y, scores), "m", LOGISTIC)
    p = (y > 0).mean()
    constant = evaluate_predictions(blocks(y, np.full(len(y), math.log(p / (1 - p)))), "constant", LOGISTIC)
    for name in ("Brier score", "AUC", "average precision", "lift at top 5 %"):
        assert result.metrics[name].baseline == pytest.approx(constant.metrics[name].value), name
    assert result.metrics["log loss"].baseline == pytest.approx(constant.metrics["log loss"].value, abs=5e-3)
    at = result.thresholds[0.5]
    assert at["accuracy"].baseline == pytest.approx(max(p, 1 - p))
    assert at["precision"].baseline == pytest.approx(p)


def test_intervals_hold_as_often_as_they_should() -> None:
    """Of 100 samples of 5000 rows about 95 intervals of each metric contain the value over all rows."""
    y, scores, weight = classes(40_000)
    whole = evaluate_predictions(blocks(y, scores, weight), "all", LOGISTIC)
    rng, inside = np.random.default_rng(5), dict.fromkeys(whole.metrics, 0)
    at = dict.fromkeys(whole.thresholds[0.5], 0)
    for _ in range(100):
        some = rng.integers(0, len(y), 5000)
        result = evaluate_predictions(blocks(y[some], scores[some], weight[some]), "some", LOGISTIC)
        for name, metric in result.metrics.items():
            inside[name] += metric.lower <= whole.metrics[name].value <= metric.upper
        for name, metric in result.thresholds[0.5].items():
            at[name] += metric.lower <= whole.thresholds[0.5][name].value <= metric.upper
    inside.pop("expected calibration error")  # it is too large in small samples: its yardstick says by how much
    assert min((*inside.values(), *at.values())) >= 85, (inside, at)


def test_a_perfect_forecast_has_the_calibration_error_of_chance() -> None:
    rng = np.random.default_rng(9)
    scores = rng.normal(0, 1.5, 20_000)
    y = np.where(rng.random(20_000) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
    error = evaluate_predictions(blocks(y, scores), "m", LOGISTIC).metrics["expected calibration error"]
    assert error.baseline is not None
    assert error.value == pytest.approx(error.baseline, rel=0.5)
    assert (
        evaluate_predictions(blocks(y, 3 * scores), "m", LOGISTIC).metrics["expected calibration error"].value
        > 5 * error.value
    )


def test_slices() -> None:
    y, scores, _ = classes()
    groups = np.array(["a" if s > 0 else "b" for s in scores], dtype=object)
    result = evaluate_predictions(blocks(y, scores, groups=groups), "m", LOGISTIC, by="side")
    (first, rows, metrics), _ = result.slices
    chosen = groups == first
    assert rows == chosen.sum()
    assert metrics["share of positives"].value == pytest.approx((y[chosen] > 0).mean())
    assert metrics["log loss"].value == pytest.approx(LOGISTIC.arrays(scores[chosen], y[chosen])[0].mean())
    assert "by side, each with its 95 % interval:" in str(result)
    assert shown(metrics["AUC"]) in str(result)


def test_the_auc_of_a_slice_is_that_of_its_rows_alone() -> None:
    """The AUC of a slice equals the AUC of its rows, with weights, in memory and from disk."""
    sk = pytest.importorskip("sklearn.metrics")
    y, scores, weight = classes()
    groups = np.random.default_rng(4).choice(np.array(["a", "b", "b", "c"], dtype=object), len(y))
    y[groups == "c"] = 1.0
    for most in (MOST_ROWS, 100):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SliceRankings.__init__, "__defaults__", (most,))
            result = evaluate_predictions(blocks(y, scores, weight, groups=groups), "m", LOGISTIC, by="side")
        for value, _, metrics in result.slices:
            some = groups == value
            if value == "c":
                assert "AUC" not in metrics
                continue
            alone = evaluate_predictions(blocks(y[some], scores[some], weight[some]), "m", LOGISTIC).metrics["AUC"]
            assert metrics["AUC"] == pytest.approx(alone, rel=1e-9)
            assert alone.value == pytest.approx(
                sk.roc_auc_score(y[some], scores[some], sample_weight=weight[some]), rel=1e-12
            )


def test_intervals_of_the_auc_of_small_slices_hold() -> None:
    """Slices of 40 rows, some without a wrongly ordered pair: at least 93 % of 1000 intervals contain the true AUC."""
    rng, slices, size = np.random.default_rng(6), 1000, 40
    y = np.where(rng.random(slices * size) < 0.2, 1.0, -1.0)
    scores = rng.normal(size=len(y)) + np.where(y > 0, 2.0, 0.0)
    truth, inside, with_both = 0.5 * math.erfc(-1.0), 0, 0
    for a in range(0, len(y), size):
        metric = evaluate_predictions(blocks(y[a : a + size], scores[a : a + size]), "m", LOGISTIC).metrics.get("AUC")
        if metric is not None:
            with_both += 1
            inside += metric.lower <= truth <= metric.upper
    assert with_both > 990
    assert inside >= 0.93 * with_both, inside


def test_rows_left_out_are_counted_and_json_is_json() -> None:
    y, scores, weight = classes(500)
    y[0], scores[1], weight[2] = np.nan, np.nan, 0.0
    result = evaluate_predictions(blocks(y, scores, weight), "m", LOGISTIC)
    assert (result.rows, result.left_out, result.unlabelled) == (497, 1, 2)
    assert str(result).startswith("497 rows; left out: 1 without a prediction, 2 without a label or weight")
    assert json.loads(json.dumps(result.to_dict()))["metrics"]["AUC"]["value"] == result.metrics["AUC"].value


def test_one_class_has_no_order() -> None:
    result = evaluate_predictions(blocks(np.ones(50), np.linspace(-1, 1, 50)), "m", LOGISTIC)
    assert result.ranked is None
    assert "AUC" not in result.metrics


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(InvalidInput, match="data needs rows with a label, a weight above 0 and a prediction, got none"):
        evaluate_predictions(blocks(np.full(3, np.nan), np.ones(3)), "m", LOGISTIC)
    with pytest.raises(InvalidInput, match="threshold= needs numbers from 0 to 1, got nan"):
        evaluate_predictions(blocks(np.ones(3), np.ones(3)), "m", LOGISTIC, thresholds=(math.nan,))


def test_a_model_measures_itself(tmp_path: Path) -> None:
    ftprl.data.clicks.generate(2000, seed=1, path=tmp_path / "c.csv")
    model = ftprl.train(tmp_path / "c.csv", label="click", bits=12).model
    result = model.evaluate(tmp_path / "c.csv", by="C1", thresholds=(0.2,))
    y = np.concatenate([b.y for b in model.open_labelled(tmp_path / "c.csv").batches()])
    assert result.metrics["log loss"].value == pytest.approx(
        LOGISTIC.arrays(model.predict(tmp_path / "c.csv", raw=True), y)[0].mean()
    )
    assert result.slices
    assert list(result.thresholds) == [0.2]
    x = np.random.default_rng(0).normal(size=(300, 3))
    model = ftprl.train(x, x @ [1.0, 2.0, 3.0], loss="squared").model
    assert model.evaluate(x, y=x @ [1.0, 2.0, 3.0]).metrics["R²"].value > 0.9


def test_a_single_threshold_may_be_a_number() -> None:
    y, scores = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, -1.0, -0.5, 0.5])
    one, listed = (evaluate_predictions(blocks(y, scores), "m", LOGISTIC, thresholds=t) for t in (0.3, (0.3,)))
    assert one.to_dict() == listed.to_dict()
