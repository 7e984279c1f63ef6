"""The twins of the learner against vectors of an independent prototype, and against the prototype itself.

Both stand beside the repository and are no part of it; the prototype has no score of the coin among the inputs of the
Newton experts, so the twins leave it out here.
"""

from __future__ import annotations

import importlib.util
import json
import math
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from laws.learner_arrays import engine_without_coin_input
from oracles.classes_twin import ClassesTwin
from oracles.learner_twin import LearnerTwin
from oracles.losses_twin import chance

SHARED = Path(__file__).resolve().parents[3] / "shared"
LOSSES = ("logistic", "squared", "absolute", "quantile", "poisson", "softmax")
Row = tuple[list[tuple[str, float]], float]


@cache
def vectors() -> dict[str, Any]:
    path = SHARED / "v2_golden.json"
    if not path.is_file():
        pytest.skip(f"the vectors {path.name} are not beside the repository")
    return dict(json.loads(path.read_text()))


@cache
def prototype() -> ModuleType:
    path = SHARED / "reference_v2.py"
    if not path.is_file():
        pytest.skip(f"the prototype {path.name} is not beside the repository")
    made = importlib.util.spec_from_file_location("reference_v2", path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    made.loader.exec_module(module)
    return module


class UncutCoin(LearnerTwin):
    """The coin of the prototype, which takes slopes at its score as it is, not cut to the range of the labels."""

    def coin_at(self, score: float, lo: float, hi: float) -> float:
        return super().coin_at(score, lo, hi) if self.loss == "poisson" else score


class Learner:
    """A twin that takes rows of names, and numbers these as they come."""

    def __init__(self, loss: str, tau: float) -> None:
        self.spec = Spec(
            loss=loss, dim=256, scale="auto", float64=True, dense=True, coin=loss != "softmax", tau=tau,
            classes=3 if loss == "softmax" else 0,
        )  # fmt: skip
        self.classes = ClassesTwin(self.spec, 3) if loss == "softmax" else None
        self.twin: Any = self.classes or UncutCoin(self.spec, coin_input=False)
        self.slots: dict[str, int] = {}

    def learn(self, row: list[tuple[str, float]], y: float) -> tuple[float | None, float]:
        """Return the prediction, of a loss of classes None, and the loss of a row."""
        entries = {self.slots.setdefault(name, len(self.slots)): v for name, v in row}
        if self.classes is not None:
            return None, self.classes.learn(entries, int(y))
        score, loss = self.twin.learn_row(list(entries), list(entries.values()), y)
        return chance(score) if self.spec.loss == "logistic" else score, loss

    @property
    def weights(self) -> list[float]:
        return list(self.twin.mixture.w)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_twins_agree_with_the_vectors(loss: str) -> None:
    given = vectors()[loss]
    learner = Learner(loss, given["tau"])
    for one in given["rows"]:
        prediction, lost = learner.learn([(name, v) for name, v in one["row"]], float(one["label"]))
        assert lost == pytest.approx(one["loss"], rel=1e-9, abs=1e-9)
        assert prediction is None or prediction == pytest.approx(one["prediction"], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(learner.weights, given["weights"], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_compiled_learner_agrees_with_the_vectors(loss: str) -> None:
    given = vectors()[loss]
    learner, rows = Learner(loss, given["tau"]), given["rows"]
    slots = learner.slots
    entries = [{slots.setdefault(name, len(slots)): float(v) for name, v in one["row"]} for one in rows]
    batch = Batch.from_rows(entries, [float(one["label"]) for one in rows], float64=True)
    engine = Engine(learner.spec, classes=3) if loss == "softmax" else engine_without_coin_input(learner.spec)
    scores, losses = np.empty((2, len(rows)))
    engine.learn(batch, scores=scores, losses=losses)
    np.testing.assert_allclose(losses, [one["loss"] for one in rows], rtol=1e-9, atol=1e-9)
    if loss != "softmax":
        shown = [chance(s) for s in scores.tolist()] if loss == "logistic" else scores
        np.testing.assert_allclose(shown, [one["prediction"] for one in rows], rtol=1e-9, atol=1e-9)
    assert engine.mixture is not None
    np.testing.assert_allclose(engine.mixture.weights, given["weights"], rtol=1e-8, atol=1e-12)


def stream(loss: str, seed: int, rows: int) -> list[Row]:
    """Rows of numbers of which some come, leave, or had an outlier at first, of a name in each and of rare names."""
    rng, made = np.random.default_rng(seed), []
    for t in range(rows):
        a, b, e = rng.normal(size=3)
        row = [("a", 40.0 + 10.0 * a), ("b", b), (f"kind {rng.integers(3)}", 1.0), (f"rare {rng.integers(60)}", 1.0)]
        row += [("early", 3.0 + e)] if t < rows // 4 else []
        row += [("late", 1e-3 * e)] if t > rows // 3 and rng.random() < 0.5 else []
        row += [("often", b * b)] if rng.random() < 0.2 else []
        if t in (5, 9, 70):
            row[0] = ("a", 10.0**t if t == 5 else 1e4)
        row = [(name, round(float(v), 4)) for name, v in row]
        f = a + 0.5 * b + (row[2][0] == "kind 0") + 0.5 * rng.normal() + (e if t < rows // 4 else 0.0)
        y = {
            "logistic": 1.0 if f > 0.3 else -1.0,
            "poisson": float(rng.poisson(math.exp(min(f, 3.0)))),
            "softmax": float(int(f > 0.0) + int(f > 1.0)),
        }.get(loss, round(100.0 + 20.0 * f * (1e4 if t in (20, 300) else 1.0), 3))
        made.append((row, y))
    return made


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_twins_agree_with_the_prototype(loss: str, seed: int) -> None:
    """To 1e-9, classes to 1e-6, of the size of a number: columns come, leave and are standardised again.

    With classes other orders of sums differ by that after 300 rows, where columns are nearly collinear.
    """
    module, learner = prototype(), Learner(loss, 0.9)
    model = module.ClassModel(3) if loss == "softmax" else module.Model(loss, 0.9 if loss == "quantile" else 0.5)
    columns = learner.twin.table if learner.classes else learner.twin.experts.columns
    met: set[int | None] = set()
    moves, close = 0, 1e-6 if learner.classes else 1e-9
    for row, y in stream(loss, seed, 560):
        scaling = dict(zip(columns.feature, columns.dev, strict=True))
        prediction, lost = learner.learn(row, y)
        moves += sum(scaling.get(i, d) != d for i, d in zip(columns.feature, columns.dev, strict=True) if i is not None)
        met |= set(columns.feature)
        expected, loss_there = model.row(row, int(y) if loss in ("logistic", "softmax") else y)
        assert lost == pytest.approx(loss_there, rel=10.0 * close, abs=close)
        assert prediction is None or prediction == pytest.approx(expected, rel=close, abs=close)
    np.testing.assert_allclose(learner.weights, model.mix.w, rtol=1e-6, atol=1e-9)
    assert {learner.slots["early"], learner.slots["late"]} <= met
    assert learner.slots["early"] not in columns.feature
    assert moves
