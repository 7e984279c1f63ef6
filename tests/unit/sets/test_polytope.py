"""Half-spaces and polytopes."""

import math

import numpy as np
import pytest

from ftprl.errors import InvalidInput, Unsupported
from ftprl.sets import Box, Halfspace, Polytope
from laws.reference import assert_geometry, corners, gamma
from laws.strategies import random_polytope

TRIANGLE = Polytope([[1, 1], [-1, 0], [0, -1]], [1, 0, 0])
CUBE = np.vstack((np.eye(3), -np.eye(3)))


@pytest.mark.parametrize("equalities", [0, 1])
@pytest.mark.parametrize("n", [2, 3])
def test_geometry(n: int, equalities: int, rng: np.random.Generator) -> None:
    F = random_polytope(rng, n + equalities, equalities)
    V = corners(F.C, F.d, F.A_eq, F.b_eq)
    assert_geometry(F, V, rng, rtol=1e-7)
    Y = (V[:, None] - V).reshape(-1, F.dim)
    assert F.gamma() == pytest.approx(gamma(Y[Y.any(axis=1)]), rel=1e-6)
    actual = F.vertices()
    assert len(actual) == len(V)
    for v in V:
        assert np.abs(actual - v).max(axis=1).min() < 1e-8


def test_triangle() -> None:
    np.testing.assert_allclose(TRIANGLE.widths(), [1.0, 1.0])
    assert TRIANGLE.beta() == pytest.approx(2.0)
    inner = TRIANGLE.inner_box()
    assert inner is not None
    np.testing.assert_allclose(inner.upper, [0.5, 0.5], atol=1e-12)
    radius = 1 / (2 + math.sqrt(2))
    np.testing.assert_allclose(TRIANGLE.start(), [radius, radius])
    assert TRIANGLE.inner_radius == pytest.approx(radius)
    assert len(TRIANGLE.difference_vertices()) == 3


def test_a_box_written_as_rows_is_a_box(rng: np.random.Generator) -> None:
    F, box = Polytope(CUBE, [1, 2, 3, 0, 1, 0]), Box([0, -1, 0], [1, 2, 3])
    assert F.gamma() == pytest.approx(1.0)
    assert F.beta() == pytest.approx(1.0)
    for H in (np.array(2.0), rng.uniform(1, 2, size=3), np.eye(3) + 0.3):
        z = rng.normal(size=3) * 4
        near = box.start()
        np.testing.assert_allclose(F.argmin(H, z, near), box.argmin(H, z, near), atol=1e-9)


def test_flat_coordinates_have_width_zero() -> None:
    F = Polytope(CUBE, [1, 1, 1, 1, 1, 1], [[0.0, 1.0, 0.0]], [0.5])
    assert F.widths()[1] == 0.0
    np.testing.assert_allclose(F.tangent(np.array([1.0, 2.0, 3.0])), [1.0, 0.0, 3.0], atol=1e-15)
    implied = Polytope(CUBE, [1, 0.5, 1, 1, -0.5, 1])
    assert implied.widths()[1] == 0.0
    with pytest.raises(Unsupported, match=r"interior.*; write"):
        implied.vertices()
    assert implied.gamma() <= 3.0


def test_a_point() -> None:
    F = Polytope(CUBE, np.ones(6), np.eye(3), [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(F.widths(), np.zeros(3))
    np.testing.assert_allclose(F.vertices(), [[0.1, 0.2, 0.3]], atol=1e-12)
    np.testing.assert_allclose(F.argmin(np.ones(3), np.ones(3), F.start()), [0.1, 0.2, 0.3], atol=1e-9)


def test_unbounded() -> None:
    F = Polytope([[-1.0, 0.0], [0.0, -1.0]], [0, 0])
    np.testing.assert_array_equal(F.widths(), [math.inf, math.inf])
    np.testing.assert_array_equal(F.bounds()[0], [0.0, 0.0])
    assert F.contains(F.start())
    assert F.beta() is None
    with pytest.raises(InvalidInput, match="; add faces"):
        F.vertex(np.array([-1.0, 0.0]))
    np.testing.assert_allclose(F.vertex(np.array([1.0, 1.0])), [0.0, 0.0])
    np.testing.assert_allclose(F.argmin(np.array(1.0), np.array([1.0, -5.0]), F.start()), [0.0, 5.0], atol=1e-8)
    with pytest.raises(Unsupported, match=r"bounded.*; "):
        F.vertices()


def test_many_dimensions_fall_back() -> None:
    n = 11
    F = Polytope(np.vstack((np.eye(n), -np.eye(n))), np.ones(2 * n))
    with pytest.raises(Unsupported, match=r"got 11; "):
        F.vertices()
    assert F.gamma() == pytest.approx(1.0)  # through beta


def test_repr() -> None:
    assert repr(TRIANGLE) == "Polytope(dim=2, faces=3, equalities=0)"
    assert repr(Halfspace([1.0, 2.0], 3.0)) == "Halfspace(dim=2)"


def test_contains_is_relative_to_each_row() -> None:
    F = Polytope([[1.0], [-1.0]], [1e6, 1.0])
    assert F.contains(np.array([1e6 + 5e-4]))
    assert not F.contains(np.array([1e6 + 1e-2]))
    assert not F.contains(np.array([-1.0 - 1e-8]))
    assert not F.contains(np.array([np.nan]))


def test_halfspace_geometry() -> None:
    F = Halfspace([3.0, 4.0], 10.0)
    np.testing.assert_array_equal(F.start(), [0.0, 0.0])
    np.testing.assert_allclose(Halfspace([3.0, 4.0], -10.0).start(), [-1.2, -1.6])
    assert np.isinf(F.widths()).all()
    assert F.diameter() == F.sq_diameter(np.ones(2)) == math.inf
    assert F.sq_diameter(np.zeros(2)) == 0.0
    assert np.isinf(F.bounds()[1]).all()
    np.testing.assert_array_equal(Halfspace([0.0, -2.0], 3.0).bounds()[0], [-math.inf, -1.5])
    np.testing.assert_array_equal(Halfspace([0.0, 2.0], 3.0).bounds()[1], [math.inf, 1.5])
    assert F.contains(np.array([2.0, 1.0]))
    assert not F.contains(np.array([2.0, 1.01]))


def test_halfspace_vertex() -> None:
    F = Halfspace([3.0, 4.0], 10.0)
    np.testing.assert_allclose(F.vertex(np.array([-6.0, -8.0])), [1.2, 1.6])
    assert F.contains(F.vertex(np.zeros(2)))
    for g in ([3.0, 4.0], [1.0, 0.0]):
        with pytest.raises(InvalidInput, match=r"unbounded.*; use Intersection"):
            F.vertex(np.array(g))


def test_halfspace_argmin() -> None:
    F = Halfspace([1.0, 1.0], 1.0)
    np.testing.assert_allclose(F.argmin(np.array(1.0), np.array([-2.0, -1.0]), F.start()), [1.0, 0.0])
    # Moving along a direction without weight is free.
    x = F.argmin(np.array([1.0, 0.0]), np.array([-2.0, 0.0]), np.array([0.0, 5.0]))
    np.testing.assert_allclose(x, [2.0, -1.0])
    with pytest.raises(InvalidInput, match=r"range of H.*; bound"):
        F.argmin(np.array([1.0, 0.0]), np.array([0.0, 1.0]), F.start())
