"""Conic descriptions, the program solver and its gap."""

import numpy as np
import pytest

from ftprl.errors import InvalidInput
from ftprl.sets import Box, L2Ball, LpBall, Simplex
from ftprl.solver import Conic, furthest, interior_point, linear_program, minimise_conic
from laws.reference import minimum
from laws.strategies import SETS, each_set, make_problem


def value(H: np.ndarray, z: np.ndarray, x: np.ndarray) -> float:
    return 0.5 * x @ (H @ x if H.ndim == 2 else H * x) + z @ x


def member(conic: Conic, x: np.ndarray) -> bool:
    """Check membership of x, without auxiliary variables, by the rows and cones."""
    linear = np.all(conic.C @ x <= conic.d + 1e-9) and np.all(np.abs(conic.A @ x - conic.b) <= 1e-9)
    heads = [h - G @ x for G, h in conic.soc]
    return bool(linear and all(s[0] >= np.linalg.norm(s[1:]) - 1e-9 for s in heads))


def test_polyhedron_and_size() -> None:
    conic = Conic.polyhedron(2, (np.eye(2), np.ones(2)))
    assert conic.polyhedral
    assert conic.size == conic.dim == 2
    assert conic.A.shape == (0, 2)
    assert not LpBall(2, 3).conic().polyhedral
    assert LpBall(2, 3).conic().size == 4


def test_substitute(rng: np.random.Generator) -> None:
    """x is in the substituted set exactly when Bx - shift is in the set."""
    B, shift = rng.normal(size=(2, 2)), rng.normal(size=2)
    for F in (Box(-1, 1, dim=2), L2Ball(2), Simplex(2)):
        turned = F.conic().substitute(B, shift)
        hits = 0
        for _ in range(200):
            y = rng.uniform(-1.5, 1.5, size=2)
            y = y / y.sum() if isinstance(F, Simplex) and rng.random() < 0.7 else y
            x = np.linalg.solve(B, y + shift)
            assert member(turned, x) == F.contains(y)
            hits += F.contains(y)
        assert hits > 10


def test_join_side_by_side_and_on_top(rng: np.random.Generator) -> None:
    box, ball = Box(0, 1, dim=2), L2Ball(2)
    product = Conic.join([box.conic(), ball.conic()], [0, 2], 4)
    both = Conic.join([box.conic(), ball.conic()], [0, 0], 2)
    for x in rng.uniform(-1.2, 1.2, size=(300, 4)):
        assert member(product, x) == (box.contains(x[:2]) and ball.contains(x[2:]))
        assert member(both, x[:2]) == (box.contains(x[:2]) and ball.contains(x[:2]))


def test_join_keeps_auxiliary_variables_apart() -> None:
    parts = [LpBall(2, 3).conic(), LpBall(1, 3).conic()]
    joined = Conic.join(parts, [0, 2], 3)
    assert joined.size == 6
    for G, _, _ in joined.power[2:]:
        assert not G[:, :2].any()
        assert not G[:, 3:5].any()


@pytest.mark.parametrize("name", SETS)
def test_gap_is_an_upper_bound(name: str) -> None:
    """Against CVXPY: value - gap <= minimum <= value, and the gap is small."""
    for shape in ("diagonal", "full"):
        p = make_problem(name, shape, 3, seed=5)
        actual = minimise_conic(p.F, p.H, p.z, p.near)
        best = minimum(p.F, p.H, p.z)
        tolerance = 1e-7 * p.unit()
        assert p.value(actual.x) - actual.gap <= best + tolerance
        assert p.value(actual.x) >= best - tolerance
        assert actual.gap <= 1e-6 * p.unit()


def test_gap_of_a_bad_pair_is_large() -> None:
    """The reported gap belongs to the returned point: with keep-near it stays a bound."""
    F, z = Box(-1, 1, dim=2), np.array([-1.0, 0.0])
    actual = minimise_conic(F, np.diag([1.0, 0.0]), z, np.array([0.0, 0.7]))
    np.testing.assert_allclose(actual.x, [1.0, 0.7], atol=1e-9)
    assert value(np.array([1.0, 0.0]), z, actual.x) - actual.gap <= -0.5 + 1e-12


@pytest.mark.parametrize("near", [[0.2, 0.3, 0.1], [-0.5, 0.0, 0.4]])
def test_near_is_kept_where_a_singular_matrix_does_not_look(near: list[float]) -> None:
    v = np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
    H, z = np.outer(v, v), -0.3 * v
    for F in (Box(-1, 1, dim=3), L2Ball(3), LpBall(3, 3)):
        x = minimise_conic(F, H, z, np.array(near)).x
        rest = np.eye(3) - np.outer(v, v)
        np.testing.assert_allclose(rest @ x, rest @ near, atol=1e-7)
        assert v @ x == pytest.approx(0.3, abs=1e-6)


def test_near_is_left_as_little_as_needed() -> None:
    """If staying at `near` is not feasible, the answer still minimises and is in F."""
    F = L2Ball(2)
    x = minimise_conic(F, np.diag([1.0, 0.0]), np.array([-0.9, 0.0]), np.array([0.0, 1.0])).x
    assert F.contains(x)
    assert x[0] == pytest.approx(0.9, abs=1e-5)


def test_zero_objective_stays_near() -> None:
    for name, F in each_set(3):
        near = F.start()
        np.testing.assert_allclose(
            minimise_conic(F, np.zeros(()), np.zeros(F.dim), near).x, near, atol=1e-9, err_msg=name
        )


@pytest.mark.parametrize("size", [1e-140, 1e-9, 1e9, 1e140])
def test_scale_of_the_objective(size: float, rng: np.random.Generator) -> None:
    B, z = rng.normal(size=(3, 3)), rng.normal(size=3)
    for F in (L2Ball(3), Simplex(3), LpBall(3, 3)):
        x = minimise_conic(F, B @ B.T, z, F.start()).x
        scaled = minimise_conic(F, size * (B @ B.T), size * z, F.start())
        np.testing.assert_allclose(scaled.x, x, atol=1e-5)
        assert np.isfinite(scaled.gap)


def test_l1_against_a_grid() -> None:
    F, H, z = Box(-1, 1, dim=2), np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -0.3])
    actual = minimise_conic(F, H, z, F.start(), l1=0.4)
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 401), np.linspace(-1, 1, 401)), -1).reshape(-1, 2)
    values = 0.5 * ((grid @ H) * grid).sum(axis=1) + grid @ z + 0.4 * np.abs(grid).sum(axis=1)
    result = value(H, z, actual.x) + 0.4 * np.abs(actual.x).sum()
    assert values.min() - 2e-4 <= result <= values.min() + 1e-9


def test_linear_program() -> None:
    none = np.zeros((0, 2)), np.zeros(0)
    status, x = linear_program(np.array([-1.0, -1.0]), np.eye(2), np.array([1.0, 2.0]), *none)
    assert status == "optimal"
    np.testing.assert_allclose(x, [1.0, 2.0])
    assert linear_program(np.array([1.0, 0.0]), np.eye(2), np.ones(2), *none)[0] == "unbounded"
    empty = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -1.0])
    assert linear_program(np.zeros(2), *empty, *none)[0] == "infeasible"


def test_unbounded_and_empty_programs() -> None:
    F = Box(-np.inf, 1.0, dim=2)
    with pytest.raises(InvalidInput, match="; "):
        minimise_conic(F, np.zeros(()), np.ones(2), F.start())
    with pytest.raises(InvalidInput, match="; "):
        minimise_conic(F, np.diag([1.0, 0.0]), np.ones(2), F.start())
    rows = np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0])
    with pytest.raises(InvalidInput, match="got none; relax"):
        interior_point(Conic.polyhedron(1, rows))


def test_interior_point() -> None:
    for name, F in each_set(3):
        assert F.contains(interior_point(F.conic()), 1e-6), name


def test_furthest() -> None:
    assert furthest(lambda s: True) == 1.0
    assert furthest(lambda s: s <= 0.3) == pytest.approx(0.3, abs=1e-15)
    assert furthest(lambda s: s <= 0.3) <= 0.3
    assert furthest(lambda s: s == 0.0) == 0.0
