"""The weights of a mixture as those of one linear model, for people and systems that want one number per feature.

A mixture is not a linear model: it mixes probabilities, and scores are cut before the stack and the mixture see them.
The mean of its experts' weights, each times the weight of the expert, is the linear model next to it.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from ftprl.linear.engine import Engine

Vector = NDArray[np.float64]
_WEALTH = 0.3  # of a coin before its first bet: src/core/learners/experts.hpp
_SLOT, _CENTRE, _DEVIATION = 0, 1, 2  # of a dense column


@final
class MeanWeights(NamedTuple):
    """One weight per cell that was asked for, and the intercept, both in the units of the data."""

    weights: Vector
    intercept: float


def mean_weights(engine: Engine, slots: NDArray[np.integer[Any]]) -> MeanWeights:
    """The mean of the weights of all experts in some cells, by the weights of the mixture.

    With one scale these are the weights of the model. Where the labels have an offset it is part of the intercept.
    """
    with engine.unchanged():
        labels = engine.label_state
        offset = 0.0 if labels is None else labels["offset"]
        mixture = engine.mixture
        if mixture is None:
            return MeanWeights(engine.weights_at(slots, 0), engine.bias(0) + offset)
        experts = dict(zip(mixture.names, mixture.weights, strict=True))
        loss = engine.spec.scalar_loss()
        unit = labels["unit"] if labels is not None and loss.predicts_labels else 1.0
        stack = experts.get("stack", 0.0) * loss.stack_gain
        weights, intercept = _of_scales(engine, slots, mixture.weights, stack)
        for more in (
            _of_columns(engine, slots, stack * unit),
            _of_coin(engine, slots, experts.get("coin", 0.0) * unit),
        ):
            weights, intercept = weights + more.weights, intercept + more.intercept
        return MeanWeights(weights, intercept + offset)


def mean_class_weights(engine: Engine, slots: NDArray[np.integer[Any]]) -> tuple[Vector, Vector]:
    """The mean weights of several classes, one row per class, and the intercept of each.

    They are counted from their mean over the classes, since a constant added to all of them changes no prediction.
    """
    with engine.unchanged():
        mixture = engine.mixture
        shares = np.ones(1)
        if mixture is not None:
            count = len(engine.spec.scales)
            stack = mixture.weights[count] if engine.spec.stacked else 0.0
            shares = np.array(mixture.weights[:count]) + stack * engine.state["u"][:count]
        weights = sum(part * engine.weights_at(slots, k) for k, part in enumerate(shares))
        intercepts = sum(part * engine.biases(k) for k, part in enumerate(shares))
        if mixture is not None and "dense.class_u" in engine.saved_arrays:
            more, constants = _of_class_columns(engine, slots)
            weights, intercepts = weights + stack * more, intercepts + stack * constants
        return np.asarray(weights - np.mean(weights, axis=0)), np.asarray(intercepts - np.mean(intercepts))


def _of_scales(engine: Engine, slots: NDArray[Any], own: tuple[float, ...], stack: float) -> MeanWeights:
    """The scales: each by its own weight, and by what the stack has of it."""
    count = len(engine.spec.scales)
    u = engine.saved_arrays.get("dense.u", engine.state["u"])
    shares = np.array(own[:count]) + stack * u[:count]
    weights = sum((part * engine.weights_at(slots, k) for k, part in enumerate(shares)), start=np.zeros(len(slots)))
    return MeanWeights(weights, float(sum(part * engine.bias(k) for k, part in enumerate(shares))))


def _of_columns(engine: Engine, slots: NDArray[Any], part: float) -> MeanWeights:
    """The dense columns of the stack, which sees them in deviations from their mean."""
    arrays = engine.saved_arrays
    weights = np.zeros(len(slots))
    if "dense.u" not in arrays:
        return MeanWeights(weights, 0.0)
    inputs = len(engine.spec.scales)
    constant, slopes = arrays["dense.u"][inputs], arrays["dense.u"][inputs + 1 :]
    columns = arrays["dense.columns"][: len(slopes)] if len(slopes) else np.empty((0, 3))
    raw = slopes / columns[:, _DEVIATION]
    for slot, weight in zip(columns[:, _SLOT], raw, strict=True):
        weights[np.asarray(slots) == slot] += part * weight
    return MeanWeights(weights, float(part * (constant - raw @ columns[:, _CENTRE])))


def _of_class_columns(engine: Engine, slots: NDArray[Any]) -> tuple[Vector, Vector]:
    """The same for several classes: one row each."""
    arrays = engine.saved_arrays
    constants, slopes = np.split(arrays["dense.class_u"][: engine.classes], [1], axis=1)
    columns = arrays["dense.columns"][: slopes.shape[1]] if slopes.shape[1] else np.empty((0, 3))
    raw = slopes / columns[:, _DEVIATION]
    weights = np.zeros((engine.classes, len(slots)))
    for slot, own in zip(columns[:, _SLOT], raw.T, strict=True):
        weights[:, np.asarray(slots) == slot] += own[:, np.newaxis]
    return weights, constants[:, 0] - raw @ columns[:, _CENTRE]


def _of_coin(engine: Engine, slots: NDArray[Any], part: float) -> MeanWeights:
    """The coin: its bets."""
    if not engine.spec.coin:
        return MeanWeights(np.zeros(len(slots)), 0.0)
    theta, sizes, won, largest = engine.parts_at(slots)["coin"].astype(float).T
    own = engine.saved_arrays["coin.intercept"]
    bound, labels = own[4], own[5:]  # the largest weighted slope; the weights of both classes with the log loss
    bets = bets_of(theta, sizes, won, largest * bound)
    bias = 0.0
    if engine.spec.intercept:
        bias = float(bets_of(own[:1], own[1:2], own[2:3], own[4:5])[0])
        if labels.size:  # counted from the base rate, with half a row of each class
            bias += float(np.log((labels[1] + 0.5 * bound) / (labels[0] + 0.5 * bound)))
    return MeanWeights(part * bets, part * bias)


def bets_of(theta: Vector, sizes: Vector, won: Vector, most_lost: Vector) -> Vector:
    """Return the weights of coordinates of the coin; 0 where nothing could have been lost yet."""
    held = most_lost * (most_lost + sizes)
    bets = np.zeros(len(theta))
    np.divide((_WEALTH + won) * theta, held, out=bets, where=held > 0)
    return bets
