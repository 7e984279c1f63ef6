"""Proved bounds for labels in any unit: each scale against fixed weights, the mixture against its experts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ftprl.data import Batch
from ftprl.linear import Engine, Spec
from ftprl.linear.spec import AUTO
from ftprl.losses import ScalarLoss
from ftprl.receipt.certificate import (
    Comparison,
    box_certificate,
    certificate_against,
    own_certificate,
    running_certificate,
)
from ftprl.receipt.ledger import fixed_weights
from ftprl.receipt.soundness import broken_link
from laws.label_streams import LABELLED, NUMBERS, dense, learned, linear_stream, progressive
from laws.learner_arrays import arrays_of
from laws.strategies import SEEDS, law
from laws.streams import OPTIONS, spec, stream
from oracles.cells_twin import over
from oracles.experts_twin import expert_names
from oracles.labels_twin import Labels
from oracles.learner_twin import LearnerTwin
from oracles.losses_twin import value
from oracles.mixture_twin import Mixture, prior

DIM = 12
SPECS: dict[str, dict[str, Any]] = {
    "one": {"scale": 0.3},
    "eight": {"scale": AUTO},
    "float32": {"scale": AUTO, "float64": False},
    "two": {"scale": (0.1, 1.0)},
    "options": {"scale": (0.05, 0.4, 2.0), "l1": 0.05, "l2": 0.3, "lower": -20.0, "upper": 30.0},
    "no_intercept": {"scale": 0.5, "intercept": False, "beta": 0.1},
}


def offsets(loss: ScalarLoss, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Return the offset that fixed weights are added to in each row, and the row's divisor: 1 except for counts."""
    facts, counts = Labels(loss.name, loss.tau or 0.5), loss.rule == "log_mean"
    m, share = np.zeros(len(batch)), np.zeros(len(batch))
    for r in np.flatnonzero(learned(batch)).tolist():
        m[r] = facts.m
        facts.learn(facts.believed(float(batch.y[r])), float(batch.weight[r]))
        share[r] = (1.0 / facts.U if facts.U > 0 else 0.0) if counts else 1.0
    return m, share


def comparators(s: Spec, batch: Batch, m: np.ndarray, engine: Engine) -> list[tuple[np.ndarray, float]]:
    """Return comparators: zero, small and large weights, least squares in the scale of scores, and every scale's
    weights.
    """
    rng, rows = np.random.default_rng(1), learned(batch)
    X, y = dense(batch, DIM)[rows], batch.y[rows]
    aim = np.log(np.maximum(y, 0.5)) if s.scalar_loss().link == "log" else y
    fit = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), aim - m[rows], rcond=None)[0]
    size = np.abs(fit).max()
    actual = [(np.zeros(DIM), 0.0), (fit[:-1], float(fit[-1])), (0.5 * fit[:-1], 0.0)]
    actual += [(rng.normal(size=DIM) * c * size, float(rng.normal() * c * size)) for c in (1e-3, 0.1, 0.5, 1.0, 5.0)]
    actual += [(engine.weights(k), engine.bias(k)) for k in range(len(s.scales))]
    limited = [(np.clip(u, s.lower, s.upper), b if s.intercept else 0.0) for u, b in actual]
    return [
        (u, b) for u, b in limited if np.abs(dense(batch, DIM) @ u + b).max() < 50.0 or s.scalar_loss().link != "log"
    ]


@pytest.mark.parametrize("options", SPECS)
@pytest.mark.parametrize("loss", LABELLED)
@law(2)
@given(seed=SEEDS)
def test_no_fixed_weights_beat_a_run_by_more_than_its_receipt_states(loss: str, options: str, seed: int) -> None:
    """For m_t + u.v_t and every u: true regret <= regret of the receipt <= bound, by each scale's own numbers."""
    for batch in (linear_stream(seed, loss), *([with_outliers(seed, loss)] if loss in NUMBERS else [])):
        check_receipt(batch, loss, options)


def with_outliers(seed: int, loss: str) -> Batch:
    """Return labels of which four are clipped before they are learned, two of them in neighbouring rows."""
    batch, rng = linear_stream(seed, loss), np.random.default_rng(seed)
    factor = np.ones(len(batch))
    factor[[100, 101, 180, 250]] = rng.choice([1e3, -1e4, 1e6], size=4)
    return replace(batch, y=batch.y * factor, weight=np.where(factor != 1.0, 1.0, batch.weight))


def check_receipt(batch: Batch, loss: str, options: str) -> None:
    s = spec(loss, DIM, **{"float64": True, **SPECS[options]})
    engine, _, losses = progressive(s, batch, receipt=True)
    own, rows = s.scalar_loss(), learned(batch)
    m, share = offsets(own, batch)
    X, factor = dense(batch, DIM), np.where(rows, batch.weight * share, 0.0)
    for u, b in comparators(s, batch, m, engine):
        fixed = own.arrays(m + X @ u + b, np.where(rows, batch.y, 1.0))[0]
        regret = math.fsum((factor * (np.where(rows, losses, 0.0) - fixed)).tolist())
        c = certificate_against(engine, fixed_weights(u, b), Comparison("model"))
        assert broken_link(c.to_dict()) is None
        for row in c.scales:
            slack = c.rounding + 1e-9 * (abs(row["theorem"]) + abs(c.loss))
            assert regret <= row["regret"] + slack
            assert row["regret"] <= row["tight"] + slack
            assert row["tight"] <= row["bound"] + slack
            assert row["bound"] <= row["theorem"] + slack
    assert rows.sum() > 200


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("loss", LABELLED)
@law(3)
@given(seed=SEEDS, several=st.booleans(), float64=st.booleans())
def test_the_chain_holds_for_any_comparator(loss: str, options: str, seed: int, several: bool, float64: bool) -> None:
    s = spec(loss, **{**OPTIONS[options], "float64": float64, **({"scale": (0.05, 0.4, 2.0)} if several else {})})
    engine = Engine(s, receipt=True)
    engine.learn(stream(seed, loss))
    rng = np.random.default_rng(seed)
    u = np.clip(rng.normal(size=s.dim) * 10 ** rng.uniform(-2, 1), s.lower, s.upper)
    bias = float(rng.normal()) if s.intercept else 0.0
    actual = [certificate_against(engine, fixed_weights(u, bias), Comparison("model")), own_certificate(engine)]
    actual.append(running_certificate(engine))
    if s.lower <= 0 <= s.upper:
        actual.append(box_certificate(engine, float(10 ** rng.uniform(-2, 1))))
    for c in actual:
        assert broken_link(c.to_dict()) is None
        assert c.rounding <= 1e-4 * (abs(c.theorem) + abs(c.loss))
        assert c.post_hoc["diagonal"] is None  # R counts gradients in a unit that moves
    for name in ("weight", "loss", "scale", "excess", "regret", "tight", "bound", "theorem", "drift", "rounding"):
        number, again = getattr(actual[1], name), getattr(actual[2], name)
        assert again == pytest.approx(number, rel=1e-9, abs=1e-9 * abs(actual[1].theorem)), name


class Literal(LearnerTwin):
    """The twin with the score, slope, reach and stability of each row kept: the numbers of the theorem as written."""

    def __init__(self, s: Spec) -> None:
        super().__init__(s)
        self.history: list[tuple[list[float], list[float], np.ndarray, np.ndarray, float, float, float]] = []

    def strength(self, slots: np.ndarray) -> np.ndarray:
        """Q of the features of a row and of the intercept, as stored."""
        c, beta = self.cells, self.spec.beta
        s, kappa = c.unit[slots][:, None], c.kappa[slots][:, None]
        return np.vstack([over(s * (beta * s + c.R[slots]), c.h * kappa), (beta + c.own_R) / (c.h * c.own_kappa)])

    def step_scales(
        self,
        slots: np.ndarray,
        v: np.ndarray,
        plays: Any,
        at: list[float],
        slopes: list[float],
        A: np.ndarray,
        y: float,
        c: float,
    ) -> None:
        super().step_scales(slots, v, plays, at, slopes, A, y, c)
        g = np.append(v, 1.0)[:, None] * np.array(slopes)
        stability = 0.5 * over(g * g, self.strength(slots)).sum(axis=0)
        self.history.append((at, slopes, A, stability, y, c, self.labels.U))

    def phi(self, row: int, k: int) -> tuple[float, float, float]:
        """Return phi of a row for scale k, its loss above the least one, and the cost of an explicit step."""
        scores, slopes, A, stability, y, c, U = self.history[row]
        s, unit = float(scores[k]), U if self.loss == "poisson" else 1.0
        a = float(slopes[k]) / c * unit
        at = self._point(s, y, a)
        loss = value(self.loss, s, y, self.spec.tau)
        term = loss + (0.0 if at is None else a * at - value(self.loss, at, y, self.spec.tau)) - a * s
        explicit = 0.5 * c * self._slope_at(s, y) ** 2 * float(A[k])
        return c * term / unit + float(stability[k]), c * (loss - self._least(y)) / unit, explicit

    def _point(self, s: float, y: float, a: float) -> float | None:
        """Return the score at which the loss has slope a; None if the infimum is not attained."""
        match self.loss:
            case "squared":
                return y + a
            case "huber":
                return y + a if abs(a) < 1.0 else s
            case "squared_hinge":
                return y * (1.0 - abs(a)) if a else s if y * s >= 1 else y
            case "absolute":
                return y if abs(a) < 1.0 else s
            case "quantile":
                return y if -self.spec.tau < a < 1.0 - self.spec.tau else s
            case "hinge":
                return y if abs(a) < 1.0 and y * s < 1 else s
            case "poisson":
                return math.log(y + a) if y + a > 0 else None
            case _:
                return math.log(y / (1.0 - a)) if a < 1.0 else None

    def _least(self, y: float) -> float:
        if self.loss == "poisson":
            return y - y * math.log(y) if y > 0 else 0.0
        return 1.0 + math.log(y) if self.loss == "gamma" else 0.0

    def _slope_at(self, s: float, y: float) -> float:
        return self.spec.scalar_loss().slope(s, y)


@pytest.mark.parametrize("loss", LABELLED)
@law(3)
@given(seed=SEEDS)
def test_no_row_costs_more_than_its_own_loss(loss: str, seed: int) -> None:
    """phi_t <= c (loss - least loss), without a log link including the cost of an explicit step; sums as in the
    kernel.
    """
    batch = linear_stream(seed, loss)
    s = spec(loss, DIM, scale=AUTO, float64=True)
    literal, rows = Literal(s), np.flatnonzero(learned(batch))
    literal.learn(batch)
    engine, _, _ = progressive(s, batch, receipt=True)
    assert len(literal.history) >= len(rows) - 40
    for k in range(len(AUTO)):
        phis = [literal.phi(r, k) for r in range(len(literal.history))]
        for phi, most, explicit in phis:
            slack = 1e-9 * (1.0 + abs(most))
            assert -slack <= phi <= most + slack
            assert loss in ("poisson", "gamma") or phi <= explicit + slack
        stability = math.fsum(float(row[3][k]) for row in literal.history)
        assert engine.sums_of(k).stability == pytest.approx(2.0 * stability, rel=1e-6)
        terms = engine.row_sums(k).terms + 0.5 * engine.sums_of(k).stability
        if loss != "poisson":  # whose receipt adds what scores below the range owe
            assert terms == pytest.approx(math.fsum(phi for phi, _, _ in phis), rel=1e-6)


@pytest.mark.parametrize("float64", [True, False])
@pytest.mark.parametrize("options", list(OPTIONS))
@pytest.mark.parametrize("loss", [name for name in LABELLED if name != "poisson"])
def test_a_receipt_bounds_the_rows_by_their_losses(loss: str, options: str, float64: bool) -> None:
    """With every option, row terms and stability are at most the scale's own loss above the least loss."""
    for batch in (stream(8, loss), stream(9, loss, complete=True)):
        s = spec(loss, **{**OPTIONS[options], "float64": float64})
        engine = Engine(s, receipt=True)
        engine.learn(batch)
        rows = learned(batch)
        least = float(batch.weight[rows] @ (1.0 + np.log(batch.y[rows]))) if loss == "gamma" else 0.0
        own = engine.row_sums(0)
        possible = own.scale_loss - least
        price = own.terms + 0.5 * engine.sums.stability
        assert price <= possible * (1.0 + 1e-6)
        # Weights restricted to positive values may give scores far beyond the labels, which clipping reduces more.
        assert price >= 0.0 or (options == "above_zero" and s.scalar_loss().predicts_labels)


class Charged(Mixture):
    """The twin of a mixture, with the range of the losses that its experts are charged in each row."""

    ranges: list[float]

    def hedge(
        self, w: list[float], experts: list[float], p: float, y: float, known: float, c: float, t: int
    ) -> list[float]:
        losses = [c * value(self.loss, s, known, self.tau) for s in experts]
        self.ranges.append(max(losses) - min(losses))
        return super().hedge(w, experts, p, y, known, c, t)


def beyond(loss: ScalarLoss, batch: Batch) -> float:
    """Return an upper bound on the uncharged cost of labels beyond the known range."""
    facts, cost = Labels(loss.name, loss.tau or 0.5), 0.0
    for r in np.flatnonzero(learned(batch)).tolist():
        y, c = float(batch.y[r]), float(batch.weight[r])
        if facts.rows:
            low, high = facts.lo, facts.hi
            if loss.rule == "log_mean":
                cost += c * max(y - math.exp(high), 0.0) * (high - low)
            elif loss.rule == "log_ratio":
                cost += c * abs(y - min(max(y, math.exp(low)), math.exp(high))) * (math.exp(-low) - math.exp(-high))
            elif loss.name in ("squared", "huber"):
                cost += c * abs(y - min(max(y, low), high)) * (high - low)
        facts.learn(facts.believed(y), c)
    return cost


@pytest.mark.parametrize("loss", LABELLED)
def test_the_mixture_is_near_each_expert(loss: str) -> None:
    """L_j + D (1 + max(1, ln(1/w_j)/ln n) + sum -ln(1 - a_t)/ln n) + what lies beyond the range; D^2 is bounded."""
    for seed, kind in enumerate(("linear", "random", "turning")):
        batch = stream(seed, loss, rows=400) if kind == "random" else linear_stream(seed, loss, rows=500)
        if kind == "turning":  # what was learned becomes wrong
            batch = batch.replaced(values=batch.values * np.where(np.arange(len(batch.values)) % 900 < 450, 1.0, -1.0))
        s = spec(loss, 23, scale=AUTO, float64=True, coin=True, dense=True)
        names = expert_names(s)
        engine, twin = Engine(s), LearnerTwin(s)
        twin.mixture = charged = Charged(loss, twin.labels.tau, names, AUTO)
        charged.ranges = []
        engine.learn(batch)
        twin.learn(batch)
        mixture = engine.mixture
        assert mixture is not None
        assert list(mixture.names) == names
        ln, T = math.log(len(names)), int(learned(batch).sum())
        _, D, paid, _, _, gap = arrays_of(engine)["mixture.facts"].tolist()
        total, t = engine.progress.loss, np.arange(2, T + 1)
        shares = -float(np.log1p(-np.minimum(2.0**-10, 1 / (t + 1))).sum()) / ln
        size = sum(map(abs, mixture.losses)) + abs(total)
        more = beyond(s.scalar_loss(), batch) + 2.0**-30 * paid
        if not s.scalar_loss().has_offset:  # what the majority's part above the mixture may cost
            more += gap + math.log(25.0) * max(1.0, gap / 4.0)
        for weight, lost in zip(prior(names, AUTO), mixture.losses, strict=True):
            assert total <= lost + D * (1.0 + max(1.0, -math.log(weight) / ln) + shares) + more + 1e-9 * size
        assert (1.0 + ln / 4.0) * math.fsum(r * r for r in charged.ranges) * (1.0 + 1e-6) >= D**2
        if loss == "squared":
            r, w = float(np.ptp(batch.y[learned(batch)])), float(batch.weight.max())
            assert w * r * r * (ln + 0.5) >= D
            assert beyond(s.scalar_loss(), batch) <= w * r * r / 2.0 * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile"])
def test_the_offset_expert_is_the_baseline(loss: str) -> None:
    engine = Engine(spec(loss, DIM, scale=AUTO, coin=True))
    engine.learn(linear_stream(3, loss, rows=500))
    mixture = engine.mixture
    assert mixture is not None
    assert mixture.losses[mixture.names.index("offset")] == pytest.approx(engine.baseline.loss, rel=1e-12)
