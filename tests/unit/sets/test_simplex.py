"""The simplex and the capped simplex."""

import numpy as np
import pytest

from ftprl.sets import CappedSimplex, Simplex
from laws.reference import assert_geometry, corners, gamma


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_simplex_geometry(n: int, scale: float, rng: np.random.Generator) -> None:
    F = Simplex(n, scale)
    V = scale * np.eye(n)
    if n == 1:
        np.testing.assert_array_equal(F.widths(), [0.0])
        assert F.diameter() == F.sq_diameter(np.ones(1)) == F.sq_diameter(np.ones((1, 1))) == 0.0
        return
    assert_geometry(F, V, rng)
    Y = (V[:, None] - V).reshape(-1, n)
    assert F.gamma() == pytest.approx(gamma(Y[Y.any(axis=1)])) == max(n / 2, 1)
    assert all(F.is_exact(what) for what in ("widths", "diameter", "diagonal", "full"))
    assert F.beta() is None


@pytest.mark.parametrize(
    ("n", "cap", "scale"), [(2, 0.6, 1.0), (3, 0.5, 1.0), (4, 0.5, 1.0), (4, 0.7, 2.0), (3, 9.0, 2.0)]
)
def test_capped_geometry(n: int, cap: float, scale: float, rng: np.random.Generator) -> None:
    F = CappedSimplex(n, cap, scale)
    C, d = np.vstack((np.eye(n), -np.eye(n))), np.concatenate((np.full(n, cap), np.zeros(n)))
    assert_geometry(F, corners(C, d, np.ones((1, n)), np.array([scale])), rng)
    ratio = scale / min(cap, scale)
    assert F.is_exact("diagonal") == F.is_exact("diameter") == (abs(ratio - round(ratio)) < 1e-9)


def test_capped_at_one_is_the_simplex(rng: np.random.Generator) -> None:
    F, G = CappedSimplex(4, 5.0), Simplex(4)
    lam, z = rng.uniform(0.1, 2, size=4), rng.normal(size=4)
    np.testing.assert_allclose(F.argmin(lam, z, F.start()), G.argmin(lam, z, G.start()), atol=1e-15)
    np.testing.assert_array_equal(F.widths(), G.widths())
    assert F.sq_diameter(lam) == pytest.approx(G.sq_diameter(lam))


def test_a_single_point(rng: np.random.Generator) -> None:
    F = CappedSimplex(4, 0.25)
    np.testing.assert_allclose(F.widths(), 0.0, atol=1e-15)
    np.testing.assert_allclose(F.argmin(np.ones(4), rng.normal(size=4), F.start()), 0.25)
    assert F.diameter() == pytest.approx(0.0, abs=1e-7)


def test_vertex_fills_the_smallest_first() -> None:
    np.testing.assert_allclose(CappedSimplex(4, 0.4).vertex(np.array([3.0, 1.0, 2.0, 9.0])), [0.2, 0.4, 0.4, 0.0])
    np.testing.assert_array_equal(Simplex(3, 2.0).vertex(np.array([0.0, -1.0, 5.0])), [0.0, 2.0, 0.0])


def test_argmin_by_hand() -> None:
    F = Simplex(3)
    x = F.argmin(np.array(1.0), -np.array([0.6, 0.5, -1.0]), F.start())
    np.testing.assert_allclose(x, [0.55, 0.45, 0.0], atol=1e-15)
    # A coordinate without weight takes the remaining total.
    x = F.argmin(np.array([1.0, 1.0, 0.0]), np.array([-0.3, -0.1, 0.0]), F.start())
    np.testing.assert_allclose(x, [0.3, 0.1, 0.6], atol=1e-15)


def test_an_l1_term_changes_nothing(rng: np.random.Generator) -> None:
    F, z = Simplex(4), rng.normal(size=4)
    for H in (np.array(1.0), np.eye(4)):
        np.testing.assert_array_equal(F.minimise_l1(H, z, 3.0, F.start()).x, F.minimise(H, z, F.start()).x)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_sums_hold_over_twelve_decades_of_weights(scale: float, rng: np.random.Generator) -> None:
    F = Simplex(50, scale)
    for lam in (np.array(1.0), 10.0 ** rng.uniform(-6, 6, size=50)):
        x = F.argmin(lam, rng.normal(size=50) * scale * np.max(lam), F.start())
        assert x.sum() == pytest.approx(scale, rel=1e-10)
        assert x.min() >= 0.0


def test_contains() -> None:
    F = CappedSimplex(3, 0.5)
    assert F.contains(np.array([0.5, 0.5, 0.0]))
    assert not F.contains(np.array([0.6, 0.4, 0.0]))
    assert not F.contains(np.array([0.5, 0.6, -0.1]))
    assert not F.contains(np.array([0.5, 0.4, 0.0]))
    assert F.contains(np.array([0.5, 0.5, 1.9e-9]))
    assert not F.contains(np.array([0.5, 0.5, 3e-9]))
    assert not F.contains(np.full(3, np.nan))


def test_tangent_is_centred() -> None:
    np.testing.assert_array_equal(Simplex(3).tangent(np.array([1.0, 2.0, 6.0])), [-2.0, -1.0, 3.0])


def test_repr() -> None:
    assert repr(Simplex(3)) == "Simplex(dim=3, total=1)"
    assert repr(CappedSimplex(3, 0.5, 1.25)) == "CappedSimplex(dim=3, cap=0.5, total=1.25)"


@pytest.mark.parametrize("share", [1.0, 1.0000001, 1.3, 2.0, 5.0])
def test_capped_gap_is_that_of_the_best_shares(share: float, rng: np.random.Generator) -> None:
    """slope·(x - u) with u filled up from the smallest slope on, at any scale and also if no coordinate can move."""
    for _ in range(100):
        n, scale = int(rng.integers(1, 9)), 10.0 ** rng.uniform(-6, 6)
        F = CappedSimplex(n, share * scale / n, scale)
        H, z = 10.0 ** rng.uniform(-3, 3, n), rng.normal(size=n) * 10.0 ** rng.uniform(-6, 6, n)
        x = F.argmin(H, rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3), F.start())
        slope, u, left = H * x + z, np.zeros(n), scale
        for i in slope.argsort():
            u[i] = min(F.cap, left)
            left -= u[i]
        size = float(np.abs(slope) @ (x + u))
        assert F.gap(H, z, x) == pytest.approx(float(slope @ (x - u)), abs=1e-14 * size)
