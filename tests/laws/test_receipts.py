"""The receipt of a sparse run against the theorem by definition, and against the raw predictions.

With the log loss, unless a test uses another; test_label_bounds.py has the other losses.
"""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import data
from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.receipt.certificate import (
    Comparison,
    StreamCertificate,
    box_certificate,
    certificate_against,
    own_certificate,
    running_certificate,
)
from ftprl.receipt.ledger import fixed_weights
from ftprl.receipt.replay import Replay
from ftprl.receipt.soundness import broken_link
from laws.streams import OPTIONS, SIGNS, spec, stream
from oracles.batches import real


class Literal:
    """The theory by definition, one coordinate and one row at a time, with every play, gradient and increment
    stored.
    """

    def __init__(self, given: Spec) -> None:
        self.spec, self.loss = given, given.scalar_loss()
        self.z: dict[Any, float] = defaultdict(float)
        self.G: dict[Any, float] = defaultdict(float)
        self.M: dict[Any, float] = defaultdict(float)
        self.origin: dict[Any, float] = defaultdict(float)  # increments centred at 0
        self.steps: list[tuple[Any, float, float, float, float]] = []  # i, g, x, sigma, Q + l2

    def _Q(self, i: Any) -> float:
        return self.M[i] * (self.spec.beta * self.M[i] + math.sqrt(self.G[i])) / self.spec.scales[0]

    def _penalties(self, i: Any) -> tuple[float, float]:
        """Penalties on the weight itself; the learner penalises weights times the units of their features."""
        return (0.0, 0.0) if i == "intercept" else (self.spec.l1 * self.M[i], self.spec.l2 * self.M[i] ** 2)

    def _play(self, i: Any) -> float:
        free = i == "intercept"
        l1, l2 = self._penalties(i)
        low, high = (-math.inf, math.inf) if free else (self.spec.lower, self.spec.upper)
        Q = self._Q(i) + l2
        x = -math.copysign(max(abs(self.z[i]) - l1, 0.0), self.z[i]) / Q if Q > 0 else 0.0
        return min(max(x, low), high)

    def learn(self, batch: Batch) -> None:
        for r in range(len(batch)):
            row = slice(batch.indptr[r], batch.indptr[r + 1])
            y, weight = float(batch.y[r]), float(batch.weight[r])
            if y != y or weight <= 0:
                continue
            v: dict[Any, float] = dict(zip(batch.indices[row].tolist(), batch.values[row].tolist(), strict=True))
            if self.spec.intercept:
                v["intercept"] = 1.0
            for i, value in v.items():
                before, self.M[i] = self._Q(i), max(self.M[i], abs(value))
                self.origin[i] += self._Q(i) - before
            x = {i: self._play(i) for i in v}
            slope = weight * self.loss.slope(sum(x[i] * v[i] for i in v), y)
            for i, value in v.items():
                g, before = slope * value, self._Q(i)
                self.G[i] += g * g
                sigma = self._Q(i) - before
                self.z[i] += g - sigma * x[i]
                self.steps.append((i, g, x[i], sigma, self._Q(i) + self._penalties(i)[1]))

    def certificate(self, u: dict[Any, float]) -> dict[str, float]:
        """Return regret, bound and theorem by definition: sum ½ sigma (u - x)², without any expansion."""
        regret = math.fsum(g * (x - u[i]) for i, g, x, _, _ in self.steps)
        r = math.fsum(0.5 * sigma * (u[i] - x) ** 2 for i, _, x, sigma, _ in self.steps)
        r += math.fsum(0.5 * rho * u[i] ** 2 for i, rho in self.origin.items())
        own = [i for i in self.M if i != "intercept" and self.M[i] > 0]
        r += math.fsum(0.5 * self._penalties(i)[1] * u[i] ** 2 + self._penalties(i)[0] * abs(u[i]) for i in own)
        stab = math.fsum(g * g / Q for _, g, _, _, Q in self.steps if Q > 0)
        return {"regret": regret, "bound": r + 0.5 * stab, "theorem": r + stab}


def chain(c: StreamCertificate) -> None:
    """Check regret <= tight <= bound <= theorem, up to possible rounding."""
    slack = c.rounding
    assert broken_link(c.to_dict()) is None
    assert c.regret <= c.tight + slack
    assert c.tight <= c.bound + slack
    assert c.bound <= c.theorem + slack


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_one_scale_is_the_theorem_taken_literally(seed: int, options: str) -> None:
    own_spec = spec("logistic", float64=True, **OPTIONS[options])
    batch = stream(seed)
    engine, literal = Engine(own_spec, receipt=True), Literal(own_spec)
    engine.learn(batch)
    literal.learn(batch)
    c = own_certificate(engine)
    u = defaultdict(float, {i: float(w) for i, w in enumerate(engine.weights())}) | {"intercept": engine.bias()}
    expected = literal.certificate(u)
    scale = abs(expected["theorem"]) + math.fsum(abs(g * x) for _, g, x, _, _ in literal.steps)
    for name, value in expected.items():
        assert getattr(c, name) == pytest.approx(value, rel=1e-6, abs=1e-9 * scale), name
    chain(c)


@given(st.integers(0, 10**6), st.sampled_from(sorted(OPTIONS)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_the_chain_holds_for_any_comparator(seed: int, options: str, several: bool) -> None:
    more = {**OPTIONS[options]} | ({"scale": (0.05, 0.4, 2.0)} if several else {})
    own_spec = spec("logistic", float64=True, **more)
    engine = Engine(own_spec, receipt=True)
    engine.learn(stream(seed))
    rng = np.random.default_rng(seed)
    u = np.clip(rng.normal(size=own_spec.dim) * 10 ** rng.uniform(-2, 1), own_spec.lower, own_spec.upper)
    bias = float(rng.normal()) if own_spec.intercept else 0.0
    at = certificate_against(engine, fixed_weights(u, bias), Comparison("model"))
    chain(at)
    chain(own_certificate(engine))
    if own_spec.lower <= 0 <= own_spec.upper:
        chain(box_certificate(engine, float(10 ** rng.uniform(-2, 1))))


def raw(engine: Engine, batches: list[Batch], weights: Any = None) -> tuple[float, float]:
    """Learn, and return sum slope (score - u·v) from raw float64 predictions, with the size of its terms."""
    own = engine.spec.scalar_loss().arrays
    slopes, scores = [], []
    for batch in batches:
        result = np.empty(len(batch))
        engine.learn(batch, scores=result)
        learned = (batch.weight > 0) & (batch.y == batch.y)
        slopes.append(np.where(learned, batch.weight * own(result, np.where(learned, batch.y, 1.0))[1], 0.0))
        scores.append(result)
    u, bias = engine.weights().astype(np.float64), engine.bias()
    regret = size = 0.0
    for batch, slope, result in zip(batches, slopes, scores, strict=True):
        rows = np.repeat(np.arange(len(batch)), np.diff(batch.indptr))
        fixed = np.bincount(rows, batch.values * u[batch.indices], minlength=len(batch)) + bias
        regret += math.fsum((slope * (result - fixed)).tolist())
        size += float(np.abs(slope * result).sum() + np.abs(slope * fixed).sum())
    return regret, size


SETS = {
    "a9a.libsvm.gz": {},
    "criteo80k.vw.gz": {},
    "rcv1_small.vw.gz": {},
    "elec.csv.gz": {"label": "class"},
    "bank.csv.gz": {"label": "y", "sep": ";", "positive": "yes"},
    "sms.tsv.gz": {"label": "1", "header": False, "text": "2", "positive": "spam"},
}


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("name", SETS)
def test_on_real_data_the_regret_is_that_of_the_raw_predictions(name: str, float64: bool) -> None:
    dtype = "float64" if float64 else "float32"
    source = data.open(real(name), dim=2**18, dtype=dtype, **SETS[name])
    engine = Engine(Spec(dim=2**18, float64=float64), receipt=True)
    regret, size = raw(engine, list(source.batches()))
    c = own_certificate(engine)
    assert c.regret == pytest.approx(regret, abs=1e-6 * size if float64 else c.rounding)
    chain(c)
    chain(box_certificate(engine, 1.0))
    assert sum(g["regret"] for g in c.coordinates) + c.shared["regret"] == pytest.approx(c.regret, rel=1e-9)
    assert sum(g["bound"] for g in c.coordinates) + c.shared["bound"] == pytest.approx(c.bound, rel=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_on_real_data_with_all_scales(name: str) -> None:
    source = data.open(real(name), dim=2**18, **SETS[name])
    engine = Engine(Spec(dim=2**18, scale="auto"), receipt=True)
    for batch in source.batches():
        engine.learn(batch)
    for c in (own_certificate(engine), box_certificate(engine, 1.0), running_certificate(engine)):
        chain(c)
        assert c.bound == min(row["bound"] for row in c.scales)
    fixed = 0.0  # against the leader's weights: the true regret of the mixture lies below
    u, bias = engine.weights(), engine.bias()
    for batch in source.batches():
        rows = np.repeat(np.arange(len(batch)), np.diff(batch.indptr))
        score = np.bincount(rows, batch.values * u[batch.indices], minlength=len(batch)) + bias
        fixed += float(np.logaddexp(0.0, -batch.y * score).sum())
    own = own_certificate(engine)
    assert engine.progress.loss - fixed <= own.regret + own.rounding


def adversarial(kind: str, rng: np.random.Generator, rows: int = 300) -> list[dict[int, float]]:
    if kind == "huge":
        return [{int(i): float(10 ** rng.uniform(-12, 12)) for i in rng.integers(0, 20, 4)} for _ in range(rows)]
    if kind == "rescaled":
        return [{int(i): float(10.0 ** (int(i) - 10)) for i in rng.integers(0, 20, 4)} for _ in range(rows)]
    if kind == "bursts":
        return [{(t // 25) % 20: 1.0, 19 - (t // 60) % 20: float(1 + t % 7)} for t in range(rows)]
    return [{int(i): 1.0 for i in rng.integers(0, 20, 5)} for _ in range(rows)]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("loss", SIGNS)
@pytest.mark.parametrize("kind", ["huge", "rescaled", "bursts", "plain"])
def test_labels_against_the_prediction(kind: str, loss: str, several: bool) -> None:
    """The adversary sees the score first and chooses the opposite label."""
    more: dict[str, Any] = {"scale": (0.03, 0.3, 3.0)} if several else {}
    engine = Engine(Spec(loss=loss, dim=20, float64=True, **more), receipt=True)
    scores, labels, rows = [], [], adversarial(kind, np.random.default_rng(5))
    for row in rows:
        y = -1.0 if engine.score(Batch.from_rows([row], float64=True))[0] > 0 else 1.0
        result = np.empty(1)
        engine.learn(Batch.from_rows([row], y=[y], float64=True), scores=result)
        scores.append(float(result[0]))
        labels.append(y)
    own = own_certificate(engine)
    for c in (own, box_certificate(engine, 1.0), box_certificate(engine, 100.0)):
        chain(c)
    u, bias, of = engine.weights(), engine.bias(), engine.spec.scalar_loss()
    fixed = [sum(u[i] * v for i, v in row.items()) + bias for row in rows]
    regrets = [of.value(a, y) - of.value(b, y) for a, b, y in zip(scores, fixed, labels, strict=True)]
    assert math.fsum(regrets) <= own.regret + own.rounding + 1e-9 * engine.progress.loss
    if loss == "logistic" and not several:
        slopes = [of.slope(a, y) for a, y in zip(scores, labels, strict=True)]
        terms = [s * (a - b) for s, a, b in zip(slopes, scores, fixed, strict=True)]
        size = sum(abs(s) * (abs(a) + abs(b)) for s, a, b in zip(slopes, scores, fixed, strict=True))
        assert own.regret == pytest.approx(math.fsum(terms), abs=1e-6 * size)


def test_the_gain_of_a_rate_a_coordinate_does_not_depend_on_units() -> None:
    rows = [{0: 1.0, 1 + t % 7: 1.0} for t in range(200)]
    y = np.where(np.arange(200) % 3 == 0, 1.0, -1.0)
    plain, scaled = (Engine(Spec(dim=8, float64=True), receipt=True) for _ in range(2))
    plain.learn(Batch.from_rows(rows, y=y, float64=True))
    stretched = [{i: v * 2.0 ** (3 * i) for i, v in row.items()} for row in rows]
    scaled.learn(Batch.from_rows(stretched, y=y, float64=True))
    a, b = box_certificate(plain, 1.0), box_certificate(scaled, 1.0)
    for name in ("regret", "bound", "theorem", "gain", "ratio"):
        assert getattr(a, name) == pytest.approx(getattr(b, name), rel=1e-12)


@pytest.mark.parametrize("scale", [0.1, (0.05, 0.2, 1.0), "auto"])
@pytest.mark.parametrize("float64", [True, False])
def test_the_fast_sums_are_those_of_numpy(scale: Any, float64: bool) -> None:
    engine = Engine(Spec(dim=23, scale=scale, float64=float64, l1=0.05, l2=0.1), receipt=True)
    engine.learn(stream(3, float64=float64))
    slow = own_certificate(engine)
    for fast in (running_certificate(engine, grouped=True), running_certificate(engine, np.arange(23), grouped=True)):
        for name, value in slow.brief().items():
            assert fast.brief()[name] == pytest.approx(value, rel=1e-10), name
        for a, b in zip(fast.coordinates, slow.coordinates, strict=True):
            assert (a["seen_from"], a["seen_to"], a["count"]) == (b["seen_from"], b["seen_to"], b["count"])
            for name in ("regret", "bound", "post_hoc"):
                assert a[name] == pytest.approx(b[name], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("bounds", [{}, {"lower": -0.5, "upper": 0.5}])
@pytest.mark.parametrize("scale", [0.1, (0.05, 0.2, 1.0)])
@pytest.mark.parametrize("nothing", [0.0, 1e-46])
def test_a_feature_that_was_always_zero_adds_nothing(scale: Any, nothing: float, bounds: dict[str, float]) -> None:
    # The stream has no unit; found by fuzzing (CONTRIBUTING.md#fuzzing). 1e-46 is 0 as a float32.
    rows = [{t % 3: 1.0 + t % 2} for t in range(20)]
    y = np.where(np.arange(20) % 3 == 0, 1.0, -1.0)
    result = []
    for more in ({}, {5: nothing}):
        engine = Engine(Spec(dim=8, scale=scale, **bounds), receipt=True)
        engine.learn(Batch.from_rows([row | more for row in rows], y=y, float64=True))
        result.append([running_certificate(engine), own_certificate(engine), box_certificate(engine, 1.0)])
    for without, with_it in zip(*result, strict=True):
        assert with_it.gain is not None
        expected = without.brief()
        for name, value in with_it.brief().items():
            assert value == pytest.approx(expected[name], rel=1e-12), name


def one_feature(y: Any, weight: Any = None, value: float = 1.0) -> Batch:
    """Return a row for each label, all with one feature."""
    n = len(y)
    weights = np.ones(n) if weight is None else np.asarray(weight, np.float64)
    values = np.full(n, value, np.float32)
    return Batch(np.arange(n + 1), np.zeros(n, np.uint32), values, np.asarray(y, np.float64), weights)


def absorbed(name: str) -> tuple[str, Batch]:
    """Return streams whose small gradients vanish in a float32 beside the first large one."""
    if name == "one label of 1e7":
        return "squared", one_feature(np.append(1e7, np.ones(100_000)))
    if name == "one weight of 1e6":
        return "absolute", one_feature(np.append(1.0, -np.ones(400_000)), np.append(1e6, np.full(400_000, 0.03)))
    if name == "alternating":
        return "squared", one_feature(np.append(1e7, np.where(np.arange(50_000) % 3, 2.0, -1.0)))
    return "logistic", one_feature(np.append(1.0, -np.ones(60_000)), np.append(1e6, np.full(60_000, 0.05)))


ABSORBED = ("one label of 1e7", "one weight of 1e6", "alternating", "log loss")


@pytest.mark.parametrize("float64", [False, True])
@pytest.mark.parametrize("scale", [0.02, 0.1, 1.28])
@pytest.mark.parametrize("name", ABSORBED)
def test_gradients_that_a_float32_absorbs_are_counted(name: str, scale: float, float64: bool) -> None:
    """No stated regret is below that of raw predictions, and no bound below the regret, within `rounding`."""
    loss, batch = absorbed(name)
    engine = Engine(Spec(loss=loss, dim=1, scale=scale, intercept=False, float64=float64), receipt=True)
    scores, losses = np.empty(len(batch)), np.empty(len(batch))
    engine.learn(batch, scores=scores, losses=losses)
    own, slopes = engine.spec.scalar_loss(), batch.weight * engine.spec.scalar_loss().arrays(scores, batch.y)[1]
    offsets, _ = Replay(engine.spec, retire=False).learn_offsets(batch)
    for c, u in ((own_certificate(engine), float(engine.weights()[0])), (box_certificate(engine, 0.5), None)):
        if u is None:
            u = -math.copysign(0.5, math.fsum(slopes.tolist()))
        regrets = batch.weight * (losses - own.arrays(offsets + u * batch.values, batch.y)[0])
        assert math.fsum(regrets.tolist()) <= c.regret + c.rounding
        if loss == "logistic":  # where the stated regret is the linear one
            exact = math.fsum((slopes * scores).tolist()) - u * math.fsum(slopes.tolist())
            assert abs(c.regret - exact) <= c.rounding + 1e-9 * float(np.abs(slopes * scores).sum()) * 2.0**-20
        assert c.rounding <= 1e-6 * (abs(c.theorem) + c.loss)
        chain(c)
        assert c.regret <= c.bound + c.rounding


@pytest.mark.parametrize("name", ABSORBED)
def test_absorbed_gradients_with_all_scales(name: str) -> None:
    loss, batch = absorbed(name)
    engine = Engine(Spec(loss=loss, dim=1, scale="auto", intercept=False), receipt=True)
    engine.learn(batch)
    for c in (own_certificate(engine), box_certificate(engine, 0.5), running_certificate(engine)):
        chain(c)
        for row in c.scales:
            assert row["regret"] <= row["bound"] + 1e-9 * abs(row["bound"]) + c.rounding


def exact_step(
    h: float, beta: float, unit: float, before: dict[str, float], after: dict[str, float]
) -> tuple[Fraction, Fraction]:
    """Return the exact cost of rounding z in one step of a cell, and the sizes W of the step."""
    z, R, S = (Fraction(before[name]) for name in ("z", "R", "S"))
    new_z, new_R, g = Fraction(after["z"]), Fraction(after["R"]), Fraction(after["S"]) - S
    M = Fraction(unit)
    Q, new_Q = (M * (Fraction(beta) * M + root) / Fraction(h) for root in (R, new_R))
    x = -z / Q
    lost = new_z - (z + g - (new_Q - Q) * x)
    cost = lost * (g + lost / 2) / new_Q - lost * x
    return cost, (abs(g) + abs(new_z) + abs(lost)) * (abs(x) + (abs(g) + abs(lost)) / new_Q)


@pytest.mark.parametrize("scale", [0.02, 1.28])
@pytest.mark.parametrize("size", [1.0, 1e-6, 2.0**-128, 2.0**-140, 2.0**-147])
def test_the_drift_and_the_sizes_of_steps_are_those_of_exact_arithmetic(size: float, scale: float) -> None:
    """Below the normal float32 numbers, from 2^-126 on, the rounding error of z is as large as z."""
    rng = np.random.default_rng(5)
    batch = one_feature(np.where(rng.random(300) < 0.4, 1.0, -1.0), rng.choice([0.01, 1.0, 30.0], 300))
    values = (rng.choice([1.0, 3.0, -2.0], 300) * size).astype(np.float32)
    batch = Batch(batch.indptr, batch.indices, values, batch.y, batch.weight)
    engine = Engine(Spec(dim=1, scale=scale, intercept=False), receipt=True)
    cell = {"z": 0.0, "R": 0.0, "S": 0.0}
    drift = sizes = Fraction(0)
    for r in range(len(batch)):
        engine.learn(batch[r : r + 1])
        parts = {name: float(np.ravel(array)[0]) for name, array in engine.parts_at(np.array([0])).items()}
        cost, size_of_step = exact_step(scale, engine.spec.beta, parts["unit"], cell, parts)
        drift, sizes, cell = drift + cost, sizes + size_of_step, parts
    sums, error = engine.sums_of(0), engine.rounding_sums(0)
    bound = error.step_size + 3 * error.linear_size + 2 * (sums.proximal + sums.stability)
    assert sizes <= 1.01 * bound
    assert sizes > 1e-3 * bound  # and not far below it
    assert abs(Fraction(error.drift) - drift) <= 1.01 * 2.0**-53 * (64 + 16) * bound
    if size == 2.0**-147:
        assert abs(drift) > 1e-3 * sums.stability  # here it counts
    chain(own_certificate(engine))
    chain(box_certificate(engine, 0.5 / size))


def test_the_rounding_of_a_long_run_is_negligible_beside_its_bound() -> None:
    source = data.open(real("criteo80k.vw.gz"), dim=2**18)
    for scale in (0.1, "auto"):
        engine = Engine(Spec(dim=2**18, scale=scale), receipt=True)
        for batch in source.batches():
            engine.learn(batch)
        for c in (own_certificate(engine), box_certificate(engine, 1.0)):
            assert 0 < c.rounding <= 1e-6 * c.bound
            assert abs(c.drift) <= 1e-3 * c.bound
