"""Norm balls and ellipsoids."""

import math

import numpy as np
import pytest

from ftprl.sets import Ellipsoid, L1Ball, L2Ball, LpBall
from ftprl.sets.lp import p_norm
from ftprl.sets.norm_ball import NormBall, dual_exponent, lp_vertex
from laws.reference import assert_geometry, gamma

CENTER = np.array([0.5, -2.0])
ANGLES = np.linspace(0, 2 * np.pi, 73)[:-1]
CIRCLE = np.column_stack((np.cos(ANGLES), np.sin(ANGLES)))
BALLS = [
    L1Ball(2, 1.5),
    L1Ball(2, 0.5, CENTER),
    L2Ball(2, 1.5, CENTER),
    *(LpBall(2, p, 2.0, CENTER) for p in (1, 1.3, 2, 2.5, 4, math.inf)),
]


@pytest.mark.parametrize("F", BALLS, ids=repr)
def test_geometry_in_the_plane(F: NormBall, rng: np.random.Generator) -> None:
    edge = F.center + F.radius * CIRCLE / np.linalg.norm(CIRCLE, F.p, axis=1)[:, None]
    assert_geometry(F, edge, rng, rtol=4e-3)
    Y = 2 * (edge - F.center)
    assert F.gamma() == pytest.approx(gamma(Y), rel=4e-3)


@pytest.mark.parametrize("p", [1, 1.3, 2, 3, math.inf])
@pytest.mark.parametrize("n", [1, 3, 5])
def test_formulas(p: float, n: int, rng: np.random.Generator) -> None:
    F = LpBall(n, p, radius=2.0)
    np.testing.assert_array_equal(F.widths(), np.full(n, 4.0))
    assert F.diameter() == pytest.approx(4 * n ** max(0, 0.5 - 1 / p))
    assert F.beta() == pytest.approx(n ** (1 / p))
    assert F.gamma() == pytest.approx(n ** min(1, 2 / p))
    g = rng.normal(size=n)
    assert g @ F.vertex(g) == pytest.approx(-2 * np.linalg.norm(g, dual_exponent(p)))
    assert np.linalg.norm(F.vertex(g), p) == pytest.approx(2.0)
    x = 2 * F.vertex(g)
    assert not F.contains(x)
    assert F.contains(x / 2)


def test_dual_exponent() -> None:
    assert dual_exponent(1.0) == math.inf
    assert dual_exponent(math.inf) == 1.0
    assert dual_exponent(4.0) == pytest.approx(4 / 3)


@pytest.mark.parametrize("p", [1.0, 1.01, 1.5, 2.0, 100.0, math.inf])
def test_vertex_of_extreme_gradients(p: float) -> None:
    for g in (np.array([1e300, -1e-300, 0.0]), np.array([1e-300, 0.0, -1e-300])):
        v = lp_vertex(p, g)
        assert np.isfinite(v).all()
        assert np.linalg.norm(v, p) <= 1 + 1e-12
        top = np.abs(g).max()
        assert (g / top) @ v == pytest.approx(-np.linalg.norm(g / top, dual_exponent(p)))
    np.testing.assert_array_equal(lp_vertex(p, np.zeros(2)), np.zeros(2))


def test_lp_ball_is_its_special_cases(rng: np.random.Generator) -> None:
    H, z, near = np.diag(rng.uniform(1, 2, size=3)) + 0.1, rng.normal(size=3) * 5, np.zeros(3)
    for p, twin in ((1, L1Ball(3, 0.7)), (2, L2Ball(3, 0.7))):
        F = LpBall(3, p, 0.7)
        np.testing.assert_array_equal(F.argmin(H, z, near), twin.argmin(H, z, near))
        np.testing.assert_array_equal(F.argmin(np.diagonal(H), z, near), twin.argmin(np.diagonal(H), z, near))
        assert F.sq_diameter(H) == twin.sq_diameter(H)
        assert F.is_exact("full")
    assert not LpBall(3, 3).is_exact("full")


def test_l2_argmin_with_an_ill_conditioned_matrix(rng: np.random.Generator) -> None:
    """Weights over 24 decades: the answer is on the ball and satisfies x = -z/(lam + mu)."""
    F = L2Ball(4)
    lam, z = np.array([1e-12, 1.0, 1e6, 1e12]), np.array([1.0, -2.0, 3e6, 1e12])
    x = F.argmin(lam, z, np.zeros(4))
    assert np.linalg.norm(x) == pytest.approx(1.0)
    mu = -(z / x + lam)
    assert mu[0] == pytest.approx(mu[1], rel=1e-9)
    assert mu[0] > 0


@pytest.mark.parametrize(
    ("F", "text"),
    [
        (L2Ball(3), "L2Ball(dim=3, radius=1)"),
        (L1Ball(2, 0.5, [1, 2]), "L1Ball(dim=2, radius=0.5)"),
        (LpBall(2, 4, 3), "LpBall(dim=2, p=4, radius=3)"),
        (Ellipsoid(np.eye(2)), "Ellipsoid(dim=2)"),
    ],
)
def test_repr(F: NormBall, text: str) -> None:
    assert repr(F) == text


def test_contains_tolerance() -> None:
    F = L2Ball(2, 1000.0)
    assert F.contains(np.array([1000.0 + 5e-7, 0.0]))
    assert not F.contains(np.array([1000.0 + 2e-6, 0.0]))
    assert not F.contains(np.array([np.nan, 0.0]))


@pytest.mark.parametrize("A", [np.diag([1.0, 3.0]), np.array([[1.0, 0.4], [-0.3, 2.0]])])
def test_ellipsoid(A: np.ndarray, rng: np.random.Generator) -> None:
    F = Ellipsoid(A, CENTER)
    edge = CENTER + CIRCLE @ np.linalg.inv(A).T
    assert_geometry(F, edge, rng, rtol=4e-3)
    assert F.axis_aligned == (A[0, 1] == 0)
    assert (F.beta() is None) != F.axis_aligned
    assert not F.contains(CENTER + 1.01 * (edge[0] - CENTER))


def test_ellipsoid_is_the_ball_in_other_coordinates(rng: np.random.Generator) -> None:
    A, z = rng.normal(size=(3, 3)) + 2 * np.eye(3), rng.normal(size=3) * 9
    F = Ellipsoid(A)
    u = rng.normal(size=3) * 3
    # In the metric of the ellipsoid itself the projection only shortens the vector.
    np.testing.assert_allclose(F.argmin(A.T @ A, -A.T @ A @ u, np.zeros(3)), u / max(1, np.linalg.norm(A @ u)))
    S = np.linalg.inv(A.T @ A)
    np.testing.assert_allclose(F.vertex(z), -S @ z / math.sqrt(z @ S @ z))
    assert F.diameter() == pytest.approx(2 / np.linalg.svd(A)[1][-1])


def test_untouched_coordinates_of_an_ellipsoid_stay() -> None:
    """A coordinate without weight and gradient keeps its value if that is feasible."""
    F = Ellipsoid([[1.0, 0.5], [0.0, 1.0]])
    near = np.array([0.0, 0.3])
    x = F.argmin(np.array([1.0, 0.0]), np.array([-0.2, 0.0]), near)
    np.testing.assert_allclose(x, [0.2, 0.3], atol=1e-12)


@pytest.mark.parametrize("beyond", [0.0, 1e-16, 3e-16, 1e-15, 1e-12])
@pytest.mark.parametrize("p", [1.1, 1.5, 3.0])
def test_free_minimiser_on_the_sphere(p: float, beyond: float) -> None:
    """The multiplier is 0 up to rounding: the step is finite, inside and optimal up to rounding, at any scale."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        radius, weight = 10.0 ** rng.uniform(-12, 12), 10.0 ** rng.uniform(-20, 25)
        z = rng.normal(size=3) * 10.0 ** rng.uniform(-15, 0, 3)
        z *= weight * radius / p_norm(z, p) * (1.0 + beyond)
        F = LpBall(3, p, radius)
        step = F.minimise(np.array(weight), z, np.zeros(3))
        assert F.violation(step.x) <= 1e-15
        assert step.gap <= 1e-13 * radius * float(np.abs(z).sum())
