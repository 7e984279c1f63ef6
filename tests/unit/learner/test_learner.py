"""FTPRL: the literal leader, purity, hints, composite terms, the change of coordinates."""

import copy
import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from ftprl import FTPRL, Composite, Preconditioned
from ftprl.errors import Unsupported
from ftprl.learner import State
from ftprl.schemes import CoordinateConstant, Diagonal, Fixed, Full
from ftprl.sets import Box, Ellipsoid, L2Ball, Simplex


def run(learner: FTPRL, rows: np.ndarray) -> list[State]:
    states = [learner.init()]
    for g in rows:
        states.append(learner.update(states[-1], g))
    return states


def arrays(state: object) -> dict[str, object]:
    """Return every number in a state, recursively."""
    out: dict[str, object] = {}
    for f in dataclasses.fields(state):  # type: ignore[arg-type]
        v = getattr(state, f.name)
        if dataclasses.is_dataclass(v):
            out.update({f"{f.name}.{k}": w for k, w in arrays(v).items()})
        elif isinstance(v, np.ndarray | float | int):
            out[f.name] = copy.deepcopy(v)
    return out


@pytest.mark.parametrize("scheme", [Diagonal(), CoordinateConstant(), Full(), Fixed(lambda t, g: 1.0 / t)])
@pytest.mark.parametrize("F", [Box(-1, [1.0, 2.0, 3.0]), L2Ball(3), Simplex(3)], ids=repr)
def test_plays_the_literal_leader(F: Box, scheme: Diagonal, rng: np.random.Generator) -> None:
    """x_{t+1} minimises g_{1:t}·x + sum ½ (x-x_s)ᵀQ_s(x-x_s): no point of F does better."""
    rows = rng.normal(size=(6, 3))
    states = run(FTPRL(F, scheme), rows)

    def objective(x: np.ndarray, t: int) -> float:
        out = float(rows[:t].sum(axis=0) @ x)
        for before, after in itertools.pairwise(states[: t + 1]):
            d = x - before.x
            out += 0.5 * float(d @ (after.Q @ d if after.Q.ndim == 2 else after.Q * d))
        return out

    corners = [F.vertex(g) for g in rng.normal(size=(30, 3))]
    for t in range(1, 7):
        x = states[t].x
        assert F.contains(x)
        best = objective(x, t)
        for y in (*corners, F.start(), *(0.9 * x + 0.1 * v for v in corners)):
            assert best <= objective(y, t) + 1e-8
        assert states[t].t == t


def test_update_is_pure(rng: np.random.Generator) -> None:
    learner = FTPRL(Box(-1, 1, dim=3), Diagonal())
    state = run(learner, rng.normal(size=(3, 3)))[-1]
    before, g = arrays(state), rng.normal(size=3)
    kept = g.copy()
    one, two = learner.update(state, g, hint=g), learner.update(state, g, hint=g)
    for name, value in arrays(state).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    np.testing.assert_array_equal(g, kept)
    for name, value in arrays(one).items():
        np.testing.assert_array_equal(value, arrays(two)[name], err_msg=name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        state.x = g  # type: ignore[misc]


def test_the_state_does_not_hold_on_to_the_callers_arrays(rng: np.random.Generator) -> None:
    learner = FTPRL(Box(-1, 1, dim=2), Diagonal())
    g, hint = rng.normal(size=(2, 2))
    state = learner.update(learner.init(), g, hint=hint)
    before = arrays(state)
    g[:] = 7.0
    hint[:] = 7.0
    for name, value in arrays(state).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_untouched_coordinates_stay() -> None:
    learner = FTPRL(Box(-1, 1, dim=3), Diagonal(), start=[0.3, -0.2, 1.0])
    state = run(learner, np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))[-1]
    np.testing.assert_array_equal(state.x[1:], [-0.2, 1.0])


def test_start() -> None:
    F = Box([1.0, -3.0], [2.0, 5.0])
    np.testing.assert_array_equal(FTPRL(F, Diagonal()).init().x, [1.5, 1.0])
    np.testing.assert_array_equal(FTPRL(F, Diagonal(), start=[2, -3]).init().x, [2.0, -3.0])
    start = np.array([1.0, 0.0])
    learner = FTPRL(F, Diagonal(), start=start)
    state = learner.init()
    start[:] = 9.0
    np.testing.assert_array_equal(state.x, [1.0, 0.0])


def test_tiny_gradients_are_zero_and_large_ones_play() -> None:
    learner = FTPRL(Box(-1, 1, dim=2), Diagonal())
    state = learner.update(learner.init(), [1e-200, 9e149])
    assert state.x[0] == 0.0
    assert state.x[1] == -1.0
    assert np.isfinite(state.total).all()


def test_plays_do_not_depend_on_the_scale_of_the_gradients(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(8, 2))
    for scheme in (Diagonal(), CoordinateConstant()):
        learner = FTPRL(Box(-1, 1, dim=2), scheme)
        for s in (2.0**-300, 2.0**300):
            np.testing.assert_array_equal(run(learner, s * rows)[-1].x, run(learner, rows)[-1].x)


def test_first_hint_goes_to_the_endpoint() -> None:
    learner = FTPRL(Box(-1, [1.0, 2.0, 3.0]), Diagonal())
    np.testing.assert_array_equal(learner.init(hint=[0.5, -0.1, 0.0]).x, [-1.0, 2.0, 1.0])


def test_hints(rng: np.random.Generator) -> None:
    """Optimism on a box: clip(-(z + m)/lambda); an endpoint if lambda is 0, x_1 if z + m is 0 too."""
    F = Box(-1, 1, dim=4)
    learner = FTPRL(F, Diagonal(), start=[0.1, 0.2, 0.3, 0.4])
    m = np.array([0.4, 0.0, -0.7, 0.0])
    state = learner.update(learner.init(), [0.3, -0.2, 0.0, 0.0], hint=m)
    lam = 2 * np.array([0.3, 0.2]) / 2
    z = np.array([0.3, -0.2]) - lam * np.array([0.1, 0.2])
    np.testing.assert_allclose(state.x[:2], np.clip(-(z + m[:2]) / lam, -1, 1))
    np.testing.assert_array_equal(state.x[2:], [1.0, 0.4])
    np.testing.assert_allclose(state.leader[:2], np.clip(-z / lam, -1, 1))
    after = learner.update(state, m)  # the hint was right: nothing to count
    np.testing.assert_array_equal(after.seen, np.zeros(4))
    np.testing.assert_array_equal(after.total, state.total)


def test_a_hint_of_zero_changes_no_play(rng: np.random.Generator) -> None:
    learner = FTPRL(L2Ball(3), CoordinateConstant())
    plain = hinted = learner.init()
    for g in rng.normal(size=(5, 3)):
        plain, hinted = learner.update(plain, g), learner.update(hinted, g, hint=np.zeros(3))
        np.testing.assert_array_equal(plain.x, hinted.x)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.5, 2.0), (-3.0, -1.0), (0.0, 1.0), (-1.0, math.inf)])
@pytest.mark.parametrize("per_round", [False, True])
def test_composite_closed_form(ends: tuple[float, float], per_round: bool, rng: np.random.Generator) -> None:
    """Box with L1 and L2 terms against a one-dimensional minimiser, also where 0 is not in the box."""
    low, high = ends
    composite = Composite(l1=0.3, l2=0.2, per_round=per_round)
    learner = FTPRL(Box(low, high), Diagonal(widths=2.0), composite=composite)
    state = learner.init()
    for t in range(1, 9):
        state = learner.update(state, rng.normal(size=1))
        k = t if per_round else 1
        z, lam = float(state.z[0]), float(state.total[0])

        def objective(x: float, z: float = z, lam: float = lam, k: int = k) -> float:
            return z * x + 0.5 * (lam + 0.2 * k) * x * x + 0.3 * k * abs(x)

        actual = minimize_scalar(objective, bounds=(low, min(high, 50.0)), options={"xatol": 1e-12}, method="bounded")
        assert objective(float(state.x[0])) <= actual.fun + 1e-12
        soft = -math.copysign(max(abs(z) - 0.3 * k, 0.0), z) / (lam + 0.2 * k)
        assert state.x[0] == pytest.approx(min(max(soft, low), high), abs=1e-15)


def test_composite_values() -> None:
    psi = Composite(l1=2.0, l2=3.0)
    assert psi.value(np.array([1.0, -2.0])) == 2 * 3 + 1.5 * 5
    assert psi.times(7) == 1.0
    assert Composite(per_round=True).times(7) == 7.0
    learner = FTPRL(Box(-1, 1, dim=2), Diagonal(), composite=Composite())
    plain = FTPRL(Box(-1, 1, dim=2), Diagonal())
    np.testing.assert_array_equal(
        learner.update(learner.init(), [1.0, 2.0]).x, plain.update(plain.init(), [1.0, 2.0]).x
    )


@pytest.mark.parametrize("A", [np.diag([1.0, 3.0]), np.array([[1.0, 0.4], [-0.3, 2.0]])])
def test_preconditioned_is_the_direct_learner(A: np.ndarray, rng: np.random.Generator) -> None:
    """FTPRL-Scale equals FTPRL on the ellipsoid with Q_t = alpha_t A'A."""
    inner = FTPRL(L2Ball(2), CoordinateConstant())
    outer = Preconditioned(A, inner)
    state, plain = outer.init(), inner.init()
    increments: list[np.ndarray] = []
    direct = FTPRL(Ellipsoid(A), Fixed(lambda t, g: increments[t - 1]))
    other = direct.init()
    for g in rng.normal(size=(10, 2)):
        state = outer.update(state, g)
        plain = inner.update(plain, np.linalg.inv(A).T @ g)
        increments.append(float(plain.Q) * A.T @ A)
        other = direct.update(other, g)
        np.testing.assert_allclose(state.x, np.linalg.solve(A, plain.x), atol=1e-12)
        np.testing.assert_allclose(state.x, other.x, atol=1e-9)
        assert outer.feasible.contains(state.x)
    assert outer.core() is inner
    np.testing.assert_allclose(outer.to_core(state.x), plain.x, atol=1e-12)


def test_preconditioned_refuses_a_per_round_composite() -> None:
    inner = FTPRL(L2Ball(2), CoordinateConstant(), composite=Composite(l1=1.0, per_round=True))
    with pytest.raises(Unsupported, match="; use per_round=False"):
        Preconditioned(np.eye(2), inner)


def test_preconditioned_twice(rng: np.random.Generator) -> None:
    A, B = rng.normal(size=(2, 2, 2)) + 2 * np.eye(2)
    inner = FTPRL(L2Ball(2), CoordinateConstant())
    twice, once = Preconditioned(A, Preconditioned(B, inner)), Preconditioned(B @ A, inner)
    a, b = twice.init(), once.init()
    for g in rng.normal(size=(5, 2)):
        a, b = twice.update(a, g), once.update(b, g)
        np.testing.assert_allclose(a.x, b.x, atol=1e-10)
    assert twice.core() is inner
    np.testing.assert_allclose(twice.gradient_to_core(g), once.gradient_to_core(g))
