"""All that the score of a row is computed of: the weights of the cells that count, and what mixes the scales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl import data as readers
from ftprl.errors import InvalidInput
from ftprl.linear.derived import needed
from ftprl.linear.engine import Engine
from ftprl.linear.experts import coin_bets, coin_bias, stack_of
from ftprl.linear.model import Model

Vector = NDArray[np.float64]
_LARGEST = float(np.finfo(np.float64).max)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoreNumbers:
    """The cells, their weights (one column per scale, and one for the coin), and settings as JSON values."""

    cells: NDArray[np.uint32]
    weights: Vector
    settings: dict[str, Any]


def score_numbers(model: Model) -> ScoreNumbers:
    """The numbers of a model; all that is not among the cells has the weight `idle`."""
    engine = model.engine
    if engine.spec.classes and not engine.classes:
        raise InvalidInput("export needs a model that has met a class, got one without any; train it first.")
    with engine.unchanged():
        cells = needed(engine)
        if engine.spec.classes:
            weights = engine.class_weights_at(cells).reshape(len(cells), -1)
            return ScoreNumbers(cells, weights, _mixing_of_classes(model) | _reading(model))
        columns = [engine.weights_at(cells, k) for k in range(len(engine.spec.scales))]
        if engine.spec.coin:
            columns.append(coin_bets(engine, cells))
        return ScoreNumbers(cells, np.column_stack(columns), _mixing(engine) | _reading(model))


def _intercepts(engine: Engine) -> list[float]:
    """The weight of the intercept in each scale and in the coin, by the same operations as in a prediction."""
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
    if not spec.coin:
        return [float(x) for x in own]
    return [*(float(x) for x in own), coin_bias(engine)]


def _mixing(engine: Engine) -> dict[str, Any]:
    """What makes one prediction of the scores of the scales."""
    spec, loss = engine.spec, engine.loss
    idle = max(spec.lower, 0.0) if spec.upper > 0.0 else spec.upper
    facts = engine.label_state
    has_classes = loss.rule == "classes"
    unit = 1.0 if facts is None or has_classes or loss.link == "log" else facts["unit"]
    settings: dict[str, Any] = {
        "loss": spec.loss,
        "link": loss.link,
        "scales": len(spec.scales),
        "coin": spec.coin,
        "idle": [idle] * len(spec.scales) + [0.0] * spec.coin,
        "intercepts": _intercepts(engine),
        "labels": None,
        "float64": spec.float64,
        "stack": spec.stacked,
        "stack_unit": unit,
        "stack_gain": loss.stack_gain,
        "classes": has_classes,
        "w": [1.0] if engine.mixture is None else list(engine.mixture.weights),
        "calibration": _calibration(engine),
        **_stack(engine),
    }
    if facts is not None:
        settings["labels"] = {name: facts[name] for name in ("offset", "lowest", "highest")}
        sign = float((facts["mean"] > 0) - (facts["mean"] < 0))
        settings["labels_predict"] = sign if has_classes else facts["offset"]
    return settings


def _mixing_of_classes(model: Model) -> dict[str, Any]:
    """What makes the probabilities of the classes of the scores of every class and scale."""
    engine, spec = model.engine, model.spec
    K = len(spec.scales)
    z, R = (engine.intercept_columns[:, part] for part in range(2))
    h, held = np.array(spec.scales), spec.beta + R
    own = np.divide(z * -h, held, out=np.zeros_like(held), where=held > 0) * spec.intercept
    idle = max(spec.lower, 0.0) if spec.upper > 0.0 else spec.upper
    return {
        "loss": spec.loss,
        "one_vs_rest": spec.scalar_loss().one_vs_rest,
        "link": "classes",
        "scales": K,
        "idle": [idle] * (engine.columns * K),
        "intercepts": own.reshape(-1).tolist(),
        "labels": None,
        "coin": False,
        "float64": spec.float64,
        "class_labels": list(model.classes or ()),
        "copies": engine.copies.tolist(),
        "stack": spec.stacked,
        "w": [1.0] if engine.mixture is None else list(engine.mixture.weights),
        "calibration": None,
        **_stack(engine),
    }


def _calibration(engine: Engine) -> dict[str, Any] | None:
    """How log-odds are calibrated: a shift and two slopes, or log-odds before and after between which it is linear."""
    if engine.spec.calibrate == "none":
        return None
    knots = engine.calibration_knots
    if knots is not None:
        before, after = knots.T.tolist()
        return {"before": before, "after": after}
    a, b, c = engine.saved_arrays["calibrator.u"].tolist()
    return {"shift": b, "above": max(a + c, 0.0), "below": max(a - c, 0.0)}


def _stack(engine: Engine) -> dict[str, Any]:
    """The coefficients of the stack: those of the scales, of a constant and of the dense columns that it sees."""
    stack, sees_columns = stack_of(engine), engine.columns_of(engine.saved_arrays)[1] > 0
    dense = stack.dense.tolist() if sees_columns else []
    return {
        "u": stack.scales.tolist() if engine.spec.stacked else [],
        "dense": [[int(cell), mean, deviation] for cell, mean, deviation in stack.columns.tolist()],
        "dense_u": dense if engine.spec.classes or not dense else dense[0],
    }


def _reading(model: Model) -> dict[str, Any]:
    """How a row becomes cells and values."""
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
