"""The experts of a mixture, read out of the arrays of an engine: the stack, the coin, and what they are as one model.

A mixture is not a linear model: it mixes probabilities, and scores are cut before the stack and the mixture see them.
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
_WEALTH = 0.3  # of a coin before its first bet: src/core/learners/experts.hpp
_ROWS = 1 << 14  # whose uncertainty is computed at a time


@final
class Stack(NamedTuple):
    """The coefficients of the stack: of the score of each scale, and of the dense columns that it sees.

    A column has a row (cell, mean, deviation) in `columns`; `dense` has a constant and a coefficient of each column's
    deviations from its mean: one row, or one for each column of classes.
    """

    scales: Vector
    columns: Vector
    dense: Vector

    def of_columns(self, slots: Slots) -> tuple[Vector, Vector]:
        """Return the weights of cells by their dense columns and the constants, in the units of the data."""
        raw = self.dense[:, 1:] / self.columns[:, 2]
        weights = np.zeros((len(raw), len(slots)))
        for slot, own in zip(self.columns[:, 0], raw.T, strict=True):
            weights[:, np.asarray(slots) == slot] += own[:, np.newaxis]
        return weights, self.dense[:, 0] - raw @ self.columns[:, 1]


def stack_of(engine: Engine) -> Stack:
    """Return the coefficients of the stack; zeros where a mixture has none."""
    arrays, spec = engine.saved_arrays, engine.spec
    K = len(spec.scales)
    u: Vector = np.asarray(arrays.get("dense.u", engine.state["u"] if spec.stacked else np.zeros(K)))
    if spec.classes:
        dense = np.asarray(arrays.get("dense.class_u", np.zeros((engine.columns, 1))))
    else:
        dense = u[np.newaxis, K:] if len(arrays.get("dense.u", ())) else np.zeros((1, 1))
    columns = np.asarray(arrays.get("dense.columns", np.zeros((0, 3))))[: dense.shape[1] - 1, :3]
    return Stack(u[:K], columns, dense)


def coin_bets(engine: Engine, slots: Slots) -> Vector:
    """Return the weights of some cells in the coin."""
    theta, sizes, won, largest = engine.parts_at(slots)["coin"].astype(np.float64).T
    return _bets(theta, sizes, won, largest * float(engine.saved_arrays["coin.intercept"][4]))


def coin_bias(engine: Engine) -> float:
    """Return the weight of the intercept in the coin."""
    if not engine.spec.intercept:
        return 0.0
    own = engine.saved_arrays["coin.intercept"]
    bound, *labels = own[4:].tolist()  # the largest weighted slope; the weights of both classes with the log loss
    bet = float(_bets(own[:1], own[1:2], own[2:3], own[4:5])[0])
    if labels:  # the log-odds of the base rate, with half a row of each class
        negative, positive = labels
        bet += math.log((positive + 0.5 * bound) / (negative + 0.5 * bound))
    return bet


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


def mean_weights(engine: Engine, slots: Slots) -> MeanWeights:
    """Return the mean of the weights of all experts in some cells, by the weights of the mixture.

    With one scale these are the weights of the model. Where the labels have an offset it is part of the intercept.
    """
    with engine.unchanged():
        labels, loss = engine.label_state, engine.loss
        offset = 0.0 if labels is None else labels["offset"]
        shares, part = _shares(engine)
        unit = labels["unit"] if labels is not None and loss.predicts_labels else 1.0
        weights = sum((share * engine.weights_at(slots, k) for k, share in enumerate(shares)), np.zeros(len(slots)))
        intercept = float(sum(share * engine.bias(k) for k, share in enumerate(shares)))
        if part:
            more, constants = stack_of(engine).of_columns(slots)
            weights, intercept = weights + part * unit * more[0], intercept + float(part * unit * constants[0])
        if engine.spec.coin and engine.mixture is not None:
            own = engine.mixture.weights[-1] * unit
            weights, intercept = weights + own * coin_bets(engine, slots), intercept + own * coin_bias(engine)
        return MeanWeights(weights, intercept + offset)


def mean_class_weights(engine: Engine, slots: Slots) -> tuple[Vector, Vector]:
    """Return the mean weights of several classes, one row per class, and the intercept of each.

    They are counted from their mean over the classes, since a constant added to all of them changes no prediction.
    """
    with engine.unchanged():
        shares, part = _shares(engine)
        weights = sum(share * engine.weights_at(slots, k) for k, share in enumerate(shares))
        intercepts = sum(share * engine.biases(k) for k, share in enumerate(shares))
        if part:
            more, constants = stack_of(engine).of_columns(slots)
            known = engine.classes
            weights, intercepts = weights + part * more[:known], intercepts + part * constants[:known]
        return np.asarray(weights - np.mean(weights, axis=0)), np.asarray(intercepts - np.mean(intercepts))


def _shares(engine: Engine) -> tuple[Vector, float]:
    """Return what the mixture has of each scale, by itself and by the stack; and what it has of the stack."""
    mixture, count = engine.mixture, len(engine.spec.scales)
    if mixture is None:
        return np.ones(1), 0.0
    part = mixture.weights[count] * engine.loss.stack_gain if engine.spec.stacked else 0.0
    return np.array(mixture.weights[:count]) + part * stack_of(engine).scales, part


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
    """Return what the mixture's score has of each scale: its own weight, and the stack's times its coefficient's size.

    Experts that are no function of the scales, the coin and the offset, are left out.
    """
    mixture, count = engine.mixture, len(engine.spec.scales)
    if mixture is None:
        return [1.0]
    own, stack = list(mixture.weights[:count]), mixture.weights[count] if engine.spec.stacked else 0.0
    total = sum(own) + stack
    if not total > 0.0:
        return [1.0 / count] * count
    u = stack_of(engine).scales.tolist()
    return [(weight + stack * abs(part)) / total for weight, part in zip(own, u, strict=True)]
