"""The floor is a lower bound for fixed weights: random ones and SciPy's best of a length, for every loss and norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from scipy.sparse import bmat, diags, identity

from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.receipt.certificate import StreamCertificate, own_certificate, running_certificate
from laws.streams import LOSSES, OPTIONS, spec, stream
from oracles.labels_twin import Labels

Vector = np.ndarray[Any, np.dtype[np.float64]]
SCALES: dict[str, Any] = {"one": 0.3, "several": (0.05, 0.4, 2.0)}
ORDER = {"1": 1, "2": 2, "inf": np.inf}


class Hindsight:
    """Return the loss per row of fixed weights, times the units of their features, added to the running offset."""

    def __init__(self, engine: Engine, batch: Batch, spec: Spec) -> None:
        self.loss = spec.scalar_loss()
        learned = (batch.weight > 0) & (batch.y == batch.y)
        rows = np.zeros((len(batch), spec.dim + 1))
        for r in range(len(batch)):
            part = slice(batch.indptr[r], batch.indptr[r + 1])
            np.add.at(rows[r], batch.indices[part].astype(int), batch.values[part])
            rows[r, -1] = float(spec.intercept)
        units = np.ones(spec.dim + 1)
        slots = engine.touched()
        units[slots] = engine.parts_at(slots)["unit"]
        self.X, self.y, self.weight = (
            rows[learned] / np.where(units > 0, units, 1.0),
            batch.y[learned],
            batch.weight[learned],
        )
        self.offset = np.zeros(len(self.y))
        if self.loss.has_offset:
            facts = Labels(spec.loss, spec.tau)
            for i, (y, c) in enumerate(zip(self.y.tolist(), self.weight.tolist(), strict=True)):
                self.offset[i] = facts.m
                facts.learn(y, c)
                if self.loss.rule == "log_mean":  # every row is divided by the mean of the labels up to it
                    self.weight[i] *= 1.0 / facts.U if facts.U > 0 else 0.0

    def __call__(self, t: Vector) -> tuple[float, Vector]:
        values, slopes, _ = self.loss.arrays(self.X @ t + self.offset, self.y)
        total = self.weight.sum()
        return float(self.weight @ values) / total, self.X.T @ (self.weight * slopes) / total


def learned(loss: str, options: dict[str, Any], seed: int, scale: Any) -> tuple[StreamCertificate, Hindsight]:
    settings = {"float64": True, **options, "scale": scale}
    own = spec(loss, **settings)
    engine, batch = Engine(own, receipt=True), stream(seed, loss)
    engine.learn(batch)
    return own_certificate(engine), Hindsight(engine, batch, own)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("loss", LOSSES)
@given(seed=st.integers(0, 10**6), options=st.sampled_from(sorted(OPTIONS)), size=st.floats(-2, 2))
@settings(max_examples=12, deadline=None)
def test_random_weights_are_not_below_it(loss: str, scale: str, seed: int, options: str, size: float) -> None:
    certificate, hindsight = learned(loss, OPTIONS[options], seed, SCALES[scale])
    rng = np.random.default_rng(seed)
    for norm, order in ORDER.items():
        curve = certificate.with_norm(norm).curve  # type: ignore[arg-type]
        t = rng.normal(size=hindsight.X.shape[1]) * 10**size * (rng.random(hindsight.X.shape[1]) < 0.5)
        length = float(np.linalg.norm(t, order)) / certificate.floors.unit
        assert curve.at(length * (1 + 1e-12)) <= hindsight(t)[0] * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_best_weights_are_not_below_it(loss: str, scale: str) -> None:
    """Weights that minimise loss + penalty |t|² are the best of their length, up to SciPy's accuracy."""
    certificate, hindsight = learned(loss, {}, 5, SCALES[scale])
    t, met = np.zeros(hindsight.X.shape[1]), []
    for penalty in (1.0, 0.1, 0.01):

        def ridge(a: Vector, penalty: float = penalty) -> tuple[float, Vector]:
            value, slope = hindsight(a)
            return value + 0.5 * penalty * float(a @ a), slope + penalty * a

        t = minimize(ridge, t, jac=True, method="L-BFGS-B").x
        length = float(np.linalg.norm(t)) / certificate.floors.unit
        met.append(hindsight(t)[0] - certificate.floor(length))
    assert min(met) > 0.0


def linear_parts(loss: str, y: Vector, tau: float) -> list[tuple[Vector, Vector]]:
    """Return losses with kinks as the maximum of linear functions of the score."""
    if loss == "hinge":
        return [(-y, np.ones_like(y)), (np.zeros_like(y), np.zeros_like(y))]
    tau, times = (0.5, 2.0) if loss == "absolute" else (tau, 1.0)
    return [(np.full_like(y, times * slope), -times * slope * y) for slope in (-tau, 1.0 - tau)]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("loss", ["hinge", "absolute", "quantile"])
def test_the_best_weights_in_a_box_by_linear_programming_are_not_below_it(loss: str, scale: str) -> None:
    """The floor is below the best weights in a box, which a linear program finds for losses with kinks."""
    certificate, hindsight = learned(loss, {}, 6, SCALES[scale])
    assert np.ptp(hindsight.weight) > 0.0, "rows of different weights"
    curve, (n, d) = certificate.with_norm("inf").curve, hindsight.X.shape
    lines = linear_parts(loss, hindsight.y, spec(loss).tau)
    A = bmat([[diags(slope) @ hindsight.X, -identity(n)] for slope, _ in lines])
    b = np.concatenate([-constant - slope * hindsight.offset for slope, constant in lines])
    cost = np.concatenate([np.zeros(d), hindsight.weight / hindsight.weight.sum()])
    for length in (0.1, 1.0, 5.0):
        side = length * certificate.floors.unit
        best = linprog(cost, A, b, bounds=[(-side, side)] * d + [(None, None)] * n)
        assert best.success
        assert best.fun == pytest.approx(hindsight(best.x[:d])[0], rel=1e-7)
        assert curve.at(length) <= best.fun * (1 + 1e-7)


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_it_is_tight_at_its_own_direction(loss: str) -> None:
    """With one scale the floor's line is the linearised loss of the weights that it is made for, so it is tight."""
    own = spec(loss, scale=0.3, float64=True, intercept=True)
    engine, batch = Engine(own, receipt=True), stream(3, loss, complete=True)
    engine.learn(batch)
    certificate = own_certificate(engine)
    slots = engine.touched()
    parts = engine.parts_at(slots)
    pull = np.append(
        (parts["S"].reshape(len(slots)) / np.where(parts["unit"] > 0, parts["unit"], 1.0)), engine.intercept[2, 0]
    )
    direction = -pull / np.linalg.norm(pull)
    rows, totals = engine.row_sums(0), engine.sums_of(0)
    linearised = rows.scale_loss - rows.terms - totals.linear + float(pull @ direction) * certificate.floors.unit
    curve = certificate.curve
    assert curve.lines[0][0] - curve.lines[0][1] == pytest.approx(linearised, rel=1e-9)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("loss", ["logistic", "squared", "absolute", "poisson"])
def test_the_compiled_sums_are_those_of_numpy(loss: str, scale: str) -> None:
    engine = Engine(spec(loss, scale=SCALES[scale]), receipt=True)
    engine.learn(stream(9, loss, float64=False))
    slow, fast = own_certificate(engine).curve, running_certificate(engine).curve
    np.testing.assert_allclose(fast.lines, slow.lines, rtol=1e-12)
    assert fast.unit == slow.unit


def test_units_of_features_do_not_matter() -> None:
    """A feature measured in another unit, by a power of two, gives an equal curve, to the bit."""
    curves = []
    for factor in (1.0, 2.0**20):
        batch = stream(4, complete=True)
        batch = Batch(batch.indptr, batch.indices, batch.values * factor, batch.y, batch.weight)
        engine = Engine(spec("logistic", scale=(0.05, 0.4), float64=True), receipt=True)
        engine.learn(batch)
        curves.append(own_certificate(engine).curve)
    assert curves[0] == curves[1]


def test_the_unit_of_the_labels_does_not_matter() -> None:
    """Lengths are over the unit of the labels: prices in cents have the same beaten length as prices in euros."""
    lengths = []
    for factor in (1.0, 64.0):
        batch = stream(4, "squared", complete=True)
        batch = Batch(batch.indptr, batch.indices, batch.values, batch.y * factor, batch.weight)
        engine = Engine(spec("squared", scale=(0.05, 0.4), float64=True), receipt=True)
        engine.learn(batch)
        lengths.append(own_certificate(engine).curve.informative_length)
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-9)
