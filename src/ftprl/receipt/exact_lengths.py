"""The best fixed weights of some lengths for a stream: the points that the floor is to be compared with.

Weights t (times the units of their features) that minimise loss + lambda/2 |t|² are the best of their own length. For a
convex f and any t, every v up to the length of t has f(v) >= f(t) - ∇f(t)·t - |t| |∇f(t)|, so each point is proved from
both sides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ftprl.extras import extra_imports
from ftprl.linear import Model
from ftprl.linear.classes import ClassTable
from ftprl.receipt.exact import Problem, learned_data
from ftprl.receipt.learned_data import LearnedData
from ftprl.receipt.ledger import Certifiable
from ftprl.runlog.floor import FloorCurve

with extra_imports:
    from scipy.optimize import minimize

Vector = NDArray[np.float64]
POINTS = 6
APART = 3.0  # from one penalty to the next
STEPS = 300


def best_lengths(model: Model, data: Any, curve: FloorCurve) -> list[dict[str, float]]:
    """The length, the loss and the least possible loss of the best fixed weights, for some lengths that rise."""
    return points_of(model.engine, learned_data(model, data), curve, model.class_table)


def points_of(
    engine: Certifiable, data: LearnedData, curve: FloorCurve, classes: ClassTable | None = None
) -> list[dict[str, float]]:
    """The same for an engine or its twin; `classes` has the numbers of its labels, if it has several classes."""
    problem = Problem(engine, data, math.inf, classes)
    t = np.zeros_like(problem.start)
    first = max(curve.beaten_length or 0.0, 0.1) * curve.unit
    pull = float(np.linalg.norm(problem.value_and_slope(t)[1]))
    penalty = pull / first if pull > 0.0 else 0.0
    points: list[dict[str, float]] = []
    while penalty > 0.0 and len(points) < POINTS:
        t = _descend(problem, t, penalty)
        points.append(_point(problem, t, curve.unit))
        penalty /= APART
    return points


def _descend(problem: Problem, t: Vector, penalty: float) -> Vector:
    def step(a: Vector) -> tuple[float, Vector]:
        value, slope = problem.value_and_slope(a)
        return value + 0.5 * penalty * float(a @ a), slope + penalty * a

    options = {"maxiter": STEPS, "ftol": 1e-13, "gtol": 1e-7, "maxcor": 20}
    return np.asarray(minimize(step, t, jac=True, method="L-BFGS-B", options=options).x)


def _point(problem: Problem, t: Vector, unit: float) -> dict[str, float]:
    value, slope = problem.value_and_slope(t)
    length = float(np.linalg.norm(t))
    least = value - float(slope @ t) - length * float(np.linalg.norm(slope))
    return {"length": length / unit, "loss": value, "at_least": min(least, value)}  # up to rounding it never is above
