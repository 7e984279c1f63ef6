"""The experts of a mixture, read out of the arrays of an engine, and what they are as one model.

A mixture is not a linear model: it mixes probabilities, and scores are cut before other experts see them.
The mean of its experts' weights, each times the weight of the expert, is the linear model next to it. It is for people
and systems that want one number per feature.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.data import Batch
from ftprl.linear.engine import Engine
from ftprl.linear.spec import LIMIT

Vector = NDArray[np.float64]
Slots = NDArray[np.integer[Any]]
_WEALTH = 0.3  # of a coin before its first bet: src/core/learn/coin.hpp
_ROWS = 1 << 14  # whose uncertainty is computed at a time
_ARRAY_ROWS = 1 << 12  # scored at a time


@final
class NewtonExpert(NamedTuple):
    """A Newton expert of a mixture: its weight there, and its coefficients.

    `scales` are those of the scores of the scales, `coin` that of the coin's score, `dense` those of a constant and of
    the columns in deviations from their means: one row, or one row per column of classes; empty where it has none.
    """

    weight: float
    scales: Vector
    coin: float
    dense: Vector


@final
class Columns(NamedTuple):
    """The columns of a mixture: the cell of each, and the mean and deviation its values are counted in."""

    cells: NDArray[np.int64]
    means: Vector
    deviations: Vector

    def in_units(self, dense: Vector, slots: Slots) -> tuple[Vector, Vector]:
        """Return weights of cells and constants, one row and number per row of `dense`, in the units of the data."""
        raw = dense[:, 1:][:, self.deviations > 0] / self.deviations[self.deviations > 0]
        cells, means = self.cells[self.deviations > 0], self.means[self.deviations > 0]
        weights = np.zeros((len(raw), len(slots)))
        for cell, own in zip(cells, raw.T, strict=True):
            weights[:, np.asarray(slots) == cell] += own[:, np.newaxis]
        return weights, dense[:, 0] - raw @ means


def columns_of(engine: Engine) -> Columns:
    """Return the columns that a Newton expert sees; none where no expert does."""
    facts = np.asarray(engine.saved_arrays.get("columns.facts", np.zeros((0, 3))))
    return Columns(facts[:, 0].astype(np.int64) - 1, facts[:, 1], facts[:, 2])


def predicting_weights(engine: Engine) -> dict[str, float]:
    """Return the weights of the experts in a prediction, by name: without the expert whose constant drifts."""
    mixture = engine.mixture
    if mixture is None:
        return {f"{engine.spec.scales[0]:g}": 1.0}
    weights = dict(zip(mixture.names, mixture.weights, strict=True))
    weights.pop("drift", None)
    whole = sum(weights.values())
    return {name: weight / whole for name, weight in weights.items()}


def newton_experts(engine: Engine) -> list[NewtonExpert]:
    """Return the Newton experts that predict, in their order; none with one scale."""
    arrays, weights, K = engine.saved_arrays, predicting_weights(engine), len(engine.spec.scales)
    found = []
    for name, letter in (("scores", "A"), ("columns", "B")):
        if name not in weights or f"newton_{letter}.u" not in arrays:
            continue
        u = np.asarray(arrays[f"newton_{letter}.u"])
        sees_coin = engine.spec.coin and len(u) > K
        rest = u[np.newaxis, K + sees_coin :]
        dense = np.asarray(arrays["columns.W"]) if engine.spec.classes and name == "columns" else rest
        found.append(NewtonExpert(weights[name], u[:K], float(u[K]) if sees_coin else 0.0, dense))
    return found


def coin_bets(engine: Engine, slots: Slots) -> Vector:
    """Return the weights of some cells in the coin."""
    theta, sizes, won, largest = engine.parts_at(slots)["coin"].astype(np.float64).T
    return _bets(theta, sizes, won, largest * float(engine.saved_arrays["coin.intercept"][4]))


def coin_bias(engine: Engine) -> float:
    """Return the weight of the intercept in the coin, and with the log loss the base rate its score is counted from."""
    if not engine.spec.intercept:
        return 0.0
    own = engine.saved_arrays["coin.intercept"]
    return float(_bets(own[:1], own[1:2], own[2:3], own[4:5])[0]) + base_odds(engine)


def base_odds(engine: Engine) -> float:
    """Return the log-odds of the labels so far, with half a row of each class; 0 with other losses than the log loss."""
    odds = engine.saved_arrays.get("labels.odds")
    if odds is None or not engine.spec.intercept:
        return 0.0
    negative, positive, largest = odds.tolist()
    return math.log((positive + 0.5 * largest) / (negative + 0.5 * largest))


def _bets(theta: Vector, sizes: Vector, won: Vector, most_lost: Vector) -> Vector:
    """Return the weights of coordinates of the coin; 0 where nothing could have been lost yet."""
    held = most_lost * (most_lost + sizes)
    bets = np.zeros(len(theta))
    np.divide((_WEALTH + won) * theta, held, out=bets, where=held > 0)
    return bets


# ---- as one linear model ----


@final
class MeanWeights(NamedTuple):
    """One weight per cell that was asked for, and the intercept, both in the units of the data."""

    weights: Vector
    intercept: float


@final
class _Shares(NamedTuple):
    """What a mixture has of each scale, of the coin, and of the columns, by itself and by its Newton experts."""

    scales: Vector
    coin: float
    dense: Vector


def mean_weights(engine: Engine, slots: Slots) -> MeanWeights:
    """Return the mean of the weights of all experts in some cells, by the weights of the mixture.

    With one scale these are the weights of the model. Where the labels have an offset it is part of the intercept.
    """
    with engine.unchanged():
        labels, loss = engine.label_state, engine.loss
        offset = 0.0 if labels is None else labels["offset"]
        shares = _shares(engine)
        unit = labels["unit"] if labels is not None and loss.predicts_labels else 1.0
        own = [share * engine.weights_at(slots, k) for k, share in enumerate(shares.scales)]
        weights = sum(own, np.zeros(len(slots)))
        intercept = float(sum(share * engine.bias(k) for k, share in enumerate(shares.scales)))
        if shares.dense.size:
            more, constants = columns_of(engine).in_units(shares.dense, slots)
            weights, intercept = weights + unit * more[0], intercept + float(unit * constants[0])
        if engine.spec.coin and engine.mixture is not None:
            part = shares.coin * unit
            weights, intercept = weights + part * coin_bets(engine, slots), intercept + part * coin_bias(engine)
        intercept += predicting_weights(engine).get("offset", 0.0) * base_odds(engine)
        return MeanWeights(weights, intercept + offset)


def mean_class_weights(engine: Engine, slots: Slots) -> tuple[Vector, Vector]:
    """Return the mean weights of several classes, one row per class, and the intercept of each.

    They are counted from their mean over the classes, since a constant added to all of them changes no prediction.
    """
    with engine.unchanged():
        shares, known = _shares(engine), engine.classes
        weights = sum(share * engine.weights_at(slots, k) for k, share in enumerate(shares.scales))
        intercepts = sum(share * engine.biases(k) for k, share in enumerate(shares.scales))
        if shares.dense.size:
            more, constants = columns_of(engine).in_units(shares.dense, slots)
            weights, intercepts = weights + more[:known], intercepts + constants[:known]
        return np.asarray(weights - np.mean(weights, axis=0)), np.asarray(intercepts - np.mean(intercepts))


def _shares(engine: Engine) -> _Shares:
    weights, gain = predicting_weights(engine), engine.loss.stack_gain
    scales = np.array([*weights.values()][: len(engine.spec.scales)])
    coin, dense = weights.get("coin", 0.0), np.zeros((0, 0))
    for expert in newton_experts(engine):
        part = expert.weight * gain
        scales, coin = scales + part * expert.scales, coin + part * expert.coin
        dense = part * expert.dense if expert.dense.size else dense
    return _Shares(scales, coin, dense)


# ---- dense rows ----


def score_array(engine: Engine, rows: NDArray[Any], *, narrow: bool) -> Vector | None:
    """Score the rows of an array, whose columns are cells, by a matrix product; None where `Engine.score` has to do it.

    That is with several classes, with calibration, and where a value is not finite or too large. `narrow`: values are
    rounded to float32 first, as those of a batch.
    """
    spec = engine.spec
    if spec.classes or spec.calibrate != "none" or not 0 < rows.shape[1] <= spec.dim:
        return None
    scores = np.empty(len(rows))
    with engine.unchanged():
        linear = _LinearScores(engine, rows.shape[1])
        for start in range(0, len(rows), _ARRAY_ROWS):  # few enough to stay in the cache
            part = rows[start : start + _ARRAY_ROWS].astype(np.float32 if narrow else np.float64, copy=False)
            if not (part.max() <= LIMIT and part.min() >= -LIMIT):
                return None
            dense = np.ascontiguousarray(part, np.float64)
            engine.score_said(*linear.of(dense), dense, scores[start : start + _ARRAY_ROWS])
    return scores


@final
class _LinearScores:
    """The scores of the scales and of the coin of an engine, as linear functions of dense rows."""

    def __init__(self, engine: Engine, cells: int) -> None:
        slots, spec = np.arange(cells), engine.spec
        labels = engine.label_state
        self._offset = 0.0 if labels is None else labels["offset"]
        weights = [engine.weights_at(slots, k) for k in range(len(spec.scales))]
        biases = [engine.bias(k) for k in range(len(spec.scales))]
        self._coin = spec.coin and engine.mixture is not None
        if self._coin:
            unit = labels["unit"] if labels is not None and engine.loss.predicts_labels else 1.0
            weights.append(unit * coin_bets(engine, slots))
            biases.append(unit * coin_bias(engine))
        self._weights, self._biases = np.column_stack(weights), np.array(biases)

    def of(self, rows: Vector) -> tuple[Vector, Vector | None]:
        """Return the scores of the scales and the coin's of each row."""
        scores = (rows @ self._weights + self._offset) + self._biases
        if not self._coin:
            return scores, None
        return np.ascontiguousarray(scores[:, :-1]), np.ascontiguousarray(scores[:, -1])


# ---- uncertainty ----


def uncertainty(engine: Engine, batch: Batch) -> Vector:
    """Return how uncertain the prediction of each row is: how far its score could move with one more such row.

    The curvature that a model has accumulated in a feature decides how far its weight moves at the next row: far where
    the feature is new, hardly at all where it was seen often. The sum over the features of a row is the uncertainty
    score of McMahan et al. 2013, "Ad Click Prediction: a View from the Trenches" (docs/calibration.md).

    It is in the unit of the score (log-odds, the log of the mean, or the label's unit): the largest step that the score
    of each scale could take at this row, summed over the scales by what the mixture's score has of each; with several
    classes that of the class whose score could move most. Calibration does not change it.
    """
    parts = [_moves(engine, batch[start : start + _ROWS]) for start in range(0, len(batch), _ROWS)]
    return np.concatenate([np.empty(0), *parts])


def _moves(engine: Engine, batch: Batch) -> Vector:
    with engine.unchanged():
        moves, shares = engine.moves(batch), _move_shares(engine)
    total = np.zeros((len(batch), moves.shape[1] // len(shares)))
    for k, share in enumerate(shares):  # in this order, whatever NumPy's version
        total += share * moves[:, k :: len(shares)]
    return total.max(axis=1) if total.shape[1] else np.full(len(batch), np.nan)


def _move_shares(engine: Engine) -> list[float]:
    """Return what the mixture's score has of each scale: its own weight, and the sizes of its coefficients in others.

    Experts that are no function of the scales, the coin and the offset, are left out.
    """
    if engine.mixture is None:
        return [1.0]
    weights, K = predicting_weights(engine), len(engine.spec.scales)
    experts = newton_experts(engine)
    own = np.array([*weights.values()][:K])
    total = float(own.sum()) + sum(expert.weight for expert in experts)
    if not total > 0.0:
        return [1.0 / K] * K
    for expert in experts:
        own = own + expert.weight * np.abs(expert.scales)
    return list((own / total).tolist())
