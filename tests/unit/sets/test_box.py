"""Boxes: bounded, one-sided, infinite, with sides of width 0."""

import itertools
import math

import numpy as np
import pytest

from ftprl.sets import Box
from laws.reference import assert_geometry

INF = math.inf


def corners(F: Box) -> np.ndarray:
    return np.array(list(itertools.product(*zip(F.lower, F.upper, strict=True))))


@pytest.mark.parametrize(
    "F",
    [
        Box(-1, 1),
        Box(-1.0, [1.0, 2.0, 0.5]),
        Box([3.0, -2.0], [4.0, 5.0]),
        Box([0.0, 1.0, -1.0], [2.0, 1.0, 0.0]),
    ],
)
def test_geometry(F: Box, rng: np.random.Generator) -> None:
    assert_geometry(F, corners(F), rng)
    assert F.gamma() == F.beta() == 1.0
    assert F.inner_box() is F.outer_box() is F
    np.testing.assert_allclose(F.start(), (F.lower + F.upper) / 2)


@pytest.mark.parametrize("n", [12, 13])
def test_full_matrix_at_the_edge_of_enumeration(n: int, rng: np.random.Generator) -> None:
    F = Box(0.0, rng.uniform(0.5, 2.0, size=n))
    B = rng.normal(size=(n, 3))
    Q = B @ B.T
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n))) * F.widths()
    true = float(((signs @ Q) * signs).sum(axis=1).max())
    assert F.is_exact("full") == (n <= 12)
    assert F.sq_diameter(Q) >= true * (1 - 1e-12)
    if n <= 12:
        assert F.sq_diameter(Q) == pytest.approx(true)
    assert F.sq_diameter(Q) <= (F.widths() @ np.abs(Q) @ F.widths()) * (1 + 1e-12)


def test_broadcasting_and_dim() -> None:
    assert Box(-1, 1, dim=3).dim == 3
    assert Box(-1, [1, 2]).dim == 2
    assert Box([0, 0], [1, 2], dim=2).dim == 2
    assert Box(-1, 1).dim == 1
    assert Box(-1, 1, dim=np.int64(2)).dim == 2


def test_bounds_are_a_copy_and_frozen() -> None:
    low = np.zeros(2)
    F = Box(low, 1.0)
    low[0] = 9.0
    np.testing.assert_array_equal(F.lower, [0.0, 0.0])
    for a in (F.lower, F.upper, F.widths()):
        with pytest.raises(ValueError, match="read-only"):
            a[0] = 1.0
    F.start()[0] = 7.0
    assert F.start()[0] == 0.5


@pytest.mark.parametrize(
    ("F", "text"),
    [(Box(-1, 1, dim=3), "Box(-1, 1, dim=3)"), (Box(-1, [1, 2]), "Box(dim=2)"), (Box(-INF, 1), "Box(dim=1)")],
)
def test_repr(F: Box, text: str) -> None:
    assert repr(F) == text


def test_contains() -> None:
    F = Box(-1, 1000.0, dim=2)
    assert F.contains(np.array([-1.0, 1000.0]))
    assert F.contains(np.array([-1.0, 1000.0 + 0.9e-6]))
    assert not F.contains(np.array([-1.0, 1000.0 + 2e-6]))
    assert not F.contains(np.array([-1.1, 0.0]))
    assert not F.contains(np.array([np.nan, 0.0]))
    assert F.contains(np.array([-1.1, 0.0]), atol=1e-3)


def test_one_sided_and_infinite() -> None:
    F = Box([-INF, 0.0, -INF, 2.0], [INF, INF, -1.0, 3.0])
    np.testing.assert_array_equal(F.start(), [0.0, 0.0, -1.0, 2.0])
    np.testing.assert_array_equal(F.widths(), [INF, INF, INF, 1.0])
    assert F.diameter() == INF
    assert F.sq_diameter(np.array([0.0, 0.0, 0.0, 2.0])) == 2.0
    assert F.sq_diameter(np.array([1.0, 0.0, 0.0, 2.0])) == INF
    assert F.sq_diameter(np.zeros(4)) == F.sq_diameter(np.zeros(())) == 0.0
    Q = np.zeros((4, 4))
    Q[3, 3] = 5.0
    assert F.sq_diameter(Q) == 5.0
    assert F.contains(np.array([1e300, 1e300, -1e300, 2.5]))
    np.testing.assert_array_equal(F.bounds()[0], [-INF, 0.0, -INF, 2.0])
    x = F.argmin(np.array([1.0, 2.0, 0.0, 0.0]), np.array([3.0, 4.0, 0.0, -1.0]), np.array([0.0, 5.0, -6.0, 2.0]))
    np.testing.assert_array_equal(x, [-3.0, 0.0, -6.0, 3.0])
    assert np.isfinite(F.vertex(np.array([0.0, 1.0, -1.0, 0.0]))).all()


def test_tangent_drops_what_cannot_move() -> None:
    np.testing.assert_array_equal(Box([0, 1], [1, 1]).tangent(np.array([3.0, 4.0])), [3.0, 0.0])


def test_l1_on_boxes_without_the_origin() -> None:
    F = Box([1.0, -3.0, -1.0], [2.0, -2.0, 1.0])
    actual = F.minimise_l1(np.zeros(()), np.array([-0.5, 0.2, 0.1]), 1.0, F.start())
    np.testing.assert_array_equal(actual.x, [1.0, -2.0, 0.0])
    assert actual.gap == 0.0


def test_huge_and_tiny_widths() -> None:
    F = Box([-1e150, 0.0], [1e150, 1e-150])
    np.testing.assert_array_equal(F.widths(), [2e150, 1e-150])
    np.testing.assert_array_equal(F.start(), [0.0, 5e-151])
    np.testing.assert_array_equal(F.vertex(np.array([1.0, -1.0])), [-1e150, 1e-150])
