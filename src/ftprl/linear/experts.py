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

Vector = NDArray[np.float64]
Slots = NDArray[np.integer[Any]]
_WEALTH = 0.3  # of a coin before its first bet: src/core/learn/coin.hpp
_LETTERS = {"scores": "A", "columns": "B"}  # of Newton experts that predict, in the names of their arrays
_ROWS = 1 << 14  # whose uncertainty is computed at a time


@final
class NewtonExpert(NamedTuple):
    """A Newton expert of a mixture: its name, its weight there, and its coefficients.

    `scores` are the coefficients of the scores of the scales, and then of the coin's score where it sees that.
    `columns` are those of a constant and of the columns in deviations from their means: one row, or one per class;
    empty where it has none.
    """

    name: str
    weight: float
    scores: Vector
    columns: Vector


@final
class Columns(NamedTuple):
    """The columns of a mixture: the cell of each, and the mean and deviation its values are counted in."""

    cells: NDArray[np.int64]
    means: Vector
    deviations: Vector

    def in_units(self, own: Vector, slots: Slots) -> tuple[Vector, Vector]:
        """Return weights of cells and constants, one row and number per row of `own`, in the units of the data."""
        raw = own[:, 1:] / self.deviations
        weights = np.zeros((len(raw), len(slots)))
        for cell, of_column in zip(self.cells, raw.T, strict=True):
            weights[:, np.asarray(slots) == cell] += of_column[:, np.newaxis]
        return weights, own[:, 0] - raw @ self.means


def columns_of(engine: Engine) -> Columns:
    """Return the columns that a Newton expert sees; none where no expert does.

    A column that is empty, whose coefficients are 0, has the cell -1, the mean 0 and the deviation 1.
    """
    facts = np.asarray(engine.saved_arrays.get("columns.facts", np.zeros((0, 3))))
    return Columns(facts[:, 0].astype(np.int64) - 1, facts[:, 1], np.where(facts[:, 2] > 0.0, facts[:, 2], 1.0))


def predicting_weights(engine: Engine) -> list[tuple[str, float]]:
    """Return the experts of a prediction in their order, by name, and their weights, to the bit.

    The expert whose constant drifts is left out: its constant is right only for the row that is learned next.
    """
    mixture = engine.mixture
    if mixture is None:
        return [(f"{engine.spec.scales[0]:g}", 1.0)]
    experts = list(zip(mixture.names, mixture.weights, strict=True))
    rest = [(name, weight) for name, weight in experts if name != "drift"]
    whole = 0.0
    for _, weight in rest:  # in this order: `sum` corrects rounding in some versions of Python
        whole += weight
    return experts if len(rest) == len(experts) else [(name, weight / whole) for name, weight in rest]


def newton_experts(engine: Engine) -> list[NewtonExpert]:
    """Return the Newton experts that predict, in their order; none with one scale."""
    arrays, found = engine.saved_arrays, []
    for name, weight in predicting_weights(engine)[len(engine.spec.scales) :]:
        if name not in _LETTERS:
            continue
        u, own = np.asarray(arrays[f"newton_{_LETTERS[name]}.u"]), np.zeros((0, 0))
        if name == "columns" and engine.spec.classes:
            own = np.asarray(arrays["columns.W"])
        elif name == "columns":
            scores = len(u) - 1 - len(arrays.get("columns.facts", ()))
            u, own = u[:scores], u[np.newaxis, scores:]
        found.append(NewtonExpert(name, weight, u, own))
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
    return float(_bets(own[:1], own[1:2], own[2:3], own[4:5])[0]) + _base_odds(engine)


def labels_alone(engine: Engine) -> float:
    """Return the score that the labels alone predict: the offset, the majority class, or the odds of the base rate."""
    labels = engine.label_state
    if labels is None:
        return _base_odds(engine)
    return float(np.sign(labels["mean"])) if engine.loss.rule == "classes" else labels["offset"]


def _base_odds(engine: Engine) -> float:
    """Return the log-odds of the labels so far, with half a row of each class; 0 for all but the log loss."""
    odds = engine.saved_arrays.get("labels.odds")
    if odds is None or not engine.spec.intercept:
        return 0.0
    negative, positive, largest = odds.tolist()
    return math.log((positive + 0.5 * largest) / (negative + 0.5 * largest))


def score_unit(engine: Engine) -> float:
    """Return the unit of scores, which the weights of the columns and of the coin are multiplied by."""
    return engine.label_unit if engine.loss.predicts_labels else 1.0


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
    """What a mixture has of each score, of the scales and then of the coin, and of the columns."""

    scores: Vector
    columns: Vector


def mean_weights(engine: Engine, slots: Slots) -> MeanWeights:
    """Return the mean of the weights of all experts in some cells, by the weights of the mixture.

    With one scale these are the weights of the model. Where the labels have an offset it is part of the intercept.
    """
    with engine.unchanged():
        K, shares, unit = len(engine.spec.scales), _shares(engine), score_unit(engine)
        weights, intercept = np.zeros(len(slots)), 0.0
        for k, share in enumerate(shares.scores[:K]):
            weights, intercept = weights + share * engine.weights_at(slots, k), intercept + share * engine.bias(k)
        for share in shares.scores[K:]:
            part = unit * share
            weights, intercept = weights + part * coin_bets(engine, slots), intercept + part * coin_bias(engine)
        if shares.columns.size:
            more, constants = columns_of(engine).in_units(shares.columns, slots)
            weights, intercept = weights + unit * more[0], intercept + unit * constants[0]
        labels = engine.label_state
        offset = 0.0 if labels is None else labels["offset"]
        alone = sum(weight for name, weight in predicting_weights(engine) if name in ("offset", "majority"))
        return MeanWeights(weights, float(intercept + alone * (labels_alone(engine) - offset) + offset))


def mean_class_weights(engine: Engine, slots: Slots) -> tuple[Vector, Vector]:
    """Return the mean weights of several classes, one row per class, and the intercept of each.

    They are counted from their mean over the classes, since a constant added to all of them changes no prediction.
    """
    with engine.unchanged():
        shares, known = _shares(engine), engine.classes
        weights = sum(share * engine.weights_at(slots, k) for k, share in enumerate(shares.scores))
        intercepts = sum(share * engine.biases(k) for k, share in enumerate(shares.scores))
        if shares.columns.size:
            more, constants = columns_of(engine).in_units(shares.columns, slots)
            weights, intercepts = weights + more[:known], intercepts + constants[:known]
        return np.asarray(weights - np.mean(weights, axis=0)), np.asarray(intercepts - np.mean(intercepts))


def _shares(engine: Engine) -> _Shares:
    experts, K, gain = predicting_weights(engine), len(engine.spec.scales), engine.loss.stack_gain
    scores = np.array([weight for k, (name, weight) in enumerate(experts) if k < K or name == "coin"])
    columns = np.zeros((0, 0))
    for expert in newton_experts(engine):
        part = expert.weight * gain
        scores = scores + part * expert.scores
        columns = part * expert.columns if expert.columns.size else columns
    return _Shares(scores, columns)


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
    K, experts = len(engine.spec.scales), newton_experts(engine)
    own = np.array([weight for _, weight in predicting_weights(engine)[:K]])
    total = float(own.sum()) + sum(expert.weight for expert in experts)
    if not total > 0.0:
        return [1.0 / K] * K
    for expert in experts:
        own = own + expert.weight * np.abs(expert.scores[:K])
    return list((own / total).tolist())
