"""The step of every set with every scheme on it, against CVXPY on the objective by definition."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl import psd
from ftprl.learner import FTPRL
from oracles.cvx import leader, literal
from oracles.instances import MAKERS, schemes_for

KINDS = ("gaussian", "sparse", "scaled")


def gradients(kind: str, rng: np.random.Generator, rounds: int, n: int) -> np.ndarray:
    g = rng.normal(size=(rounds, n))
    if kind == "sparse":
        return np.where(rng.random((rounds, n)) < 0.4, g, 0.0)
    return g * 10.0 ** rng.uniform(-2, 2, n) if kind == "scaled" else g


@pytest.mark.parametrize(("name", "kind"), [(name, KINDS[i % len(KINDS)]) for i, name in enumerate(MAKERS)])
def test_the_update_minimises_the_literal_objective(name: str, kind: str) -> None:
    seed = sum(map(ord, name + kind))
    rng = np.random.default_rng(seed)
    for n in (3, 6):
        feasible = MAKERS[name](rng, n)
        for title, scheme in schemes_for(name, n).items():
            learner = FTPRL(feasible, scheme)
            state = learner.init()
            gs, Qs, xs = [], [], []
            where = f"{name}, {title}, {kind}, n={n}"
            for t, g in enumerate(gradients(kind, rng, 5, n), 1):
                xs.append(state.x)
                state = learner.update(state, g)
                # Centred schemes drop the part of a gradient that is constant on F, which changes the objective by a
                # constant.
                gs.append(state.seen)
                Qs.append(state.Q)
                assert feasible.contains(state.x), where
                slope = psd.apply(state.total, state.x) + state.z
                value = literal(gs, Qs, xs, state.x)
                residual = float(slope @ (state.x - feasible.vertex(slope)))
                # A conic solver may stop earlier; the step's gap then includes that.
                assert residual <= max(1e-8 * (1 + abs(value)), min(1.01 * state.gap, 1e-7)), (where, t, residual)
                if t in (1, 5):
                    reference, accurate = leader(feasible, gs, Qs, xs)
                    best = literal(gs, Qs, xs, reference)
                    assert value <= best + 1e-8 * (1 + abs(best)), (where, t)
                    # CVXPY's point may lie outside F by its tolerance; then its value may be too low by that much.
                    slack = (1e-8 if accurate else 1e-6) * (1 + abs(best))
                    assert value >= best - slack - _outside(feasible, reference, slope), (where, t)
                    if _condition(state.total, n) <= 1e4:
                        assert np.abs(state.x - reference).max() <= 1e-4, (where, t)


def _outside(feasible, x, slope) -> float:  # type: ignore[no-untyped-def]
    """Return how much the objective could gain by leaving F as far as CVXPY did."""
    inside = feasible.argmin(np.array(1.0), -x, x)
    return float(np.linalg.norm(slope) * np.linalg.norm(x - inside))


def _condition(total: np.ndarray, n: int) -> float:
    w = np.linalg.eigvalsh(psd.dense(total, n))
    return float(w[-1] / w[0]) if w[0] > 0 else np.inf
