"""All that the score of a row is computed of: the weights of the cells that count, and the experts that are mixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import data as readers
from ftprl.errors import InvalidInput
from ftprl.linear.derived import idle_weight, needed
from ftprl.linear.engine import Engine
from ftprl.linear.experts import (
    coin_bets,
    coin_bias,
    columns_of,
    labels_alone,
    newton_experts,
    predicting_weights,
    score_unit,
)
from ftprl.linear.model import Model

Vector = NDArray[np.float64]
_LARGEST = float(np.finfo(np.float64).max)
_SCORE_CUT = 8.0  # Newton experts see scores without a unit cut to this: src/core/learn/newton.inl


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreNumbers:
    """The cells, their weights (one column per scale, and one for the coin), and settings as JSON values."""

    cells: NDArray[np.uint32]
    weights: Vector
    settings: dict[str, Any]


def score_numbers(model: Model) -> ScoreNumbers:
    """Return the numbers of a model; cells that are not among them have the weights `idle`."""
    engine = model.engine
    if engine.spec.classes and not engine.classes:
        raise InvalidInput("export needs a model that has met a class, got one without any; train it first.")
    with engine.unchanged():
        cells = needed(engine)
        if engine.spec.classes:
            weights, scoring = engine.class_weights_at(cells).reshape(len(cells), -1), _scoring_of_classes(model)
        else:
            own = [engine.weights_at(cells, k) for k in range(len(engine.spec.scales))]
            weights = np.column_stack([*own, *([coin_bets(engine, cells)] if engine.spec.coin else [])])
            scoring = _scoring(engine)
        return ScoreNumbers(cells, weights, _shared(engine) | scoring | _reading(model))


def _intercepts(engine: Engine) -> list[float]:
    """Return the intercept of each scale and of the coin, by the same operations as in a prediction."""
    spec, (z, R, _, kappa) = engine.spec, engine.intercept
    h = np.array(spec.scales)
    strength = spec.beta + R
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        if spec.scalar_loss().has_units:
            rate = np.minimum(np.where(strength > 0, h / strength, 0.0), _LARGEST)
            own = -(z * rate) * kappa
        else:
            own = np.where(strength > 0, z * -h / strength, 0.0)
    if not spec.intercept:
        own = np.zeros(len(h))
    return [*own.tolist(), *([coin_bias(engine)] if spec.coin else [])]


def _shared(engine: Engine) -> dict[str, Any]:
    """Return the settings that models of one score and of several classes have in common.

    `columns` has the cell, the mean and the deviation of each column that a Newton expert sees.
    """
    columns = columns_of(engine)
    facts = (np.maximum(columns.cells, 0).tolist(), columns.means.tolist(), columns.deviations.tolist())
    return {
        "loss": engine.spec.loss,
        "scales": len(engine.spec.scales),
        "coin": engine.spec.coin,
        "float64": engine.spec.float64,
        "experts": _experts(engine),
        "dense": list(zip(*facts, strict=True)),
        "calibration": _calibration(engine),
    }


def _experts(engine: Engine) -> list[dict[str, Any]]:
    """Return the experts that predict, in their order: a name and a weight each, and what the expert says.

    That is the score of a scale or of the coin, `score` its number; what the labels alone predict, `says`; or the
    scores times `u` and the columns times `columns`, for a Newton expert.
    """
    newtons = {expert.name: expert for expert in newton_experts(engine)}
    found: list[dict[str, Any]] = []
    for k, (name, weight) in enumerate(predicting_weights(engine)):
        entry: dict[str, Any] = {"name": name, "weight": weight}
        if name in newtons:
            own = newtons[name].columns
            columns = own if engine.spec.classes else own.reshape(-1)
            entry |= {"u": newtons[name].scores.tolist(), "columns": columns.tolist()}
        elif name in ("offset", "majority"):
            entry["says"] = labels_alone(engine)
        else:
            entry["score"] = min(k, len(engine.spec.scales))
        found.append(entry)
    return found


def _scoring(engine: Engine) -> dict[str, Any]:
    """Return the settings of one score: its unit and range, and the range in which Newton experts see scores."""
    spec, loss, labels = engine.spec, engine.loss, engine.label_state
    low, high = (-_LARGEST, _LARGEST) if labels is None else (labels["lowest"], labels["highest"])
    offset = 0.0 if labels is None else labels["offset"]
    return {
        "link": loss.link,
        "idle": [idle_weight(engine)] * len(spec.scales) + [0.0] * spec.coin,
        "intercepts": _intercepts(engine),
        "mixes_odds": labels is None,
        "offset": offset,
        "unit": score_unit(engine),
        "gain": loss.stack_gain,
        "range": [low, high],
        "seen": [low, high, offset] if loss.has_offset else [-_SCORE_CUT, _SCORE_CUT, 0.0],
    }


def _scoring_of_classes(model: Model) -> dict[str, Any]:
    """Return the settings of the probabilities of several classes."""
    engine, spec = model.engine, model.spec
    z, R = (engine.intercept_columns[:, part] for part in range(2))
    h, held = np.array(spec.scales), spec.beta + R
    own = np.divide(z * -h, held, out=np.zeros_like(held), where=held > 0) * spec.intercept
    return {
        "link": "classes",
        "one_vs_rest": spec.scalar_loss().one_vs_rest,
        "idle": [idle_weight(engine)] * own.size,
        "intercepts": own.reshape(-1).tolist(),
        "class_labels": list(model.classes or ()),
        "copies": engine.copies.tolist(),
    }


def _calibration(engine: Engine) -> dict[str, Any] | None:
    """Return how log-odds are calibrated: a shift and two slopes, or the knots of a piecewise linear function."""
    if engine.spec.calibrate == "none":
        return None
    knots = engine.calibration_knots
    if knots is not None:
        before, after = knots.T.tolist()
        return {"before": before, "after": after}
    a, b, c = engine.saved_arrays["calibrator.u"].tolist()
    return {"shift": b, "above": max(a + c, 0.0), "below": max(a - c, 0.0)}


def _reading(model: Model) -> dict[str, Any]:
    """Return how a row becomes cells and values."""
    reading = model.reading
    columns = reading.get("columns")
    format = reading.get("format", "arrays")
    kind = "numbers" if format in readers.NUMBERED else "features" if columns is None else "columns"
    order = reading.get("order") or list(columns or ())
    return {
        "kind": kind,
        "dim": model.spec.dim,
        "seed": model.spec.seed,
        "columns": {name: (columns or {})[name] for name in order},
        "reads_others": format in ("records", "jsonl") and bool(reading.get("other_columns", True)),
        "missing": reading.get("missing", "ignore"),
        "sampled": reading.get("sampled") or {},
        "interactions": reading.get("interactions", []),
    }
