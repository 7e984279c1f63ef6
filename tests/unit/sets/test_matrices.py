"""Nuclear ball, spectrahedron and Birkhoff polytope, by hand and by independent methods."""

import math

import numpy as np
import pytest

from ftprl import FTPRL, best_bound, best_in_hindsight, losses, play
from ftprl.errors import Unsupported
from ftprl.schemes import CoordinateConstant
from ftprl.sets import Birkhoff, NuclearBall, Spectrahedron


def test_a_matrix_is_the_vector_of_its_rows() -> None:
    F = NuclearBall(2, 3)
    M = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(F.vector(M), np.arange(6.0))
    np.testing.assert_array_equal(F.matrix(F.vector(M)), M)
    assert F.dim == 6
    assert F.shape == (2, 3)


def test_nuclear_ball_by_hand() -> None:
    F = NuclearBall(2, 2, 3.0)
    x = F.argmin(np.array(2.0), -2.0 * np.array([5.0, 0.0, 0.0, 1.0]), F.start())  # diag(5, 1) projected
    np.testing.assert_allclose(F.matrix(x), [[3.0, 0.0], [0.0, 0.0]], atol=1e-15)
    inside = F.argmin(np.array(1.0), -np.array([0.3, 0.1, 0.0, 0.2]), F.start())
    np.testing.assert_allclose(inside, [0.3, 0.1, 0.0, 0.2], atol=1e-15)
    np.testing.assert_array_equal(F.vertex(np.zeros(4)), np.zeros(4))
    assert F.diameter() == 6.0
    assert not F.contains(np.array([2.0, 0.0, 0.0, 1.1]))


def test_nuclear_ball_in_hindsight(rng: np.random.Generator) -> None:
    """No diagonal beats a multiple of I: N depends on the largest weight alone."""
    F, G = NuclearBall(2, 3, 1.5), rng.exponential(size=6)
    const, diagonal = (best_bound(F, family, G) for family in ("const", "diagonal"))
    assert diagonal.value == const.value == pytest.approx(3.0 * math.sqrt(2 * G.sum()))
    for _ in range(50):
        lam = rng.exponential(size=6)
        assert 0.5 * F.sq_diameter(lam) + float((G / lam).sum()) >= diagonal.value


def test_spectrahedron_by_hand() -> None:
    F = Spectrahedron(2, 2.0)
    np.testing.assert_array_equal(F.start(), [1.0, 0.0, 0.0, 1.0])
    x = F.argmin(np.array(1.0), -np.array([3.0, 0.0, 0.0, 0.0]), F.start())
    np.testing.assert_allclose(x, [2.0, 0.0, 0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(F.tangent(np.array([1.0, 4.0, 0.0, 3.0])), [-1.0, 2.0, 2.0, 1.0])
    assert not F.contains(np.array([1.0, 0.5, 0.0, 1.0])), "not symmetric"
    assert not F.contains(np.array([2.5, 0.0, 0.0, -0.5])), "an eigenvalue below 0"
    alone = Spectrahedron(1, 3.0)
    assert alone.diameter() == alone.sq_diameter(np.ones(1)) == alone.widths()[0] == 0.0


def test_birkhoff_by_hand(rng: np.random.Generator) -> None:
    F = Birkhoff(3)
    cost = np.array([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    np.testing.assert_array_equal(F.matrix(F.vertex(cost.ravel())), [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    x = F.argmin(np.array(1.0), rng.normal(size=9), F.start())
    np.testing.assert_allclose(F.matrix(x).sum(axis=0), 1.0, atol=1e-14)
    np.testing.assert_allclose(F.matrix(x).sum(axis=1), 1.0, atol=1e-14)
    assert F.diameter() == pytest.approx(math.sqrt(6))
    same = F.minimise_l1(np.array(1.0), cost.ravel(), 7.0, F.start())
    np.testing.assert_array_equal(same.x, F.argmin(np.array(1.0), cost.ravel(), F.start()))


def test_the_best_matrix_in_hindsight(rng: np.random.Generator) -> None:
    """Linear losses on every set; other losses if the set has a conic form."""
    F = NuclearBall(2, 2)
    rows = rng.normal(size=(5, 4))
    best = best_in_hindsight(F, rows)
    assert best.value == pytest.approx(-np.linalg.norm(rows.sum(axis=0).reshape(2, 2), 2))
    curved = [losses.squared(v, 0.3) for v in rows]
    with pytest.raises(Unsupported, match="NuclearBall"):
        best_in_hindsight(F, curved)
    assert best_in_hindsight(Birkhoff(2), curved).lower >= 0.0


def test_scaling_is_exact() -> None:
    """FTPRL does not depend on the unit of the losses."""
    rows = np.random.default_rng(0).normal(size=(20, 4))
    plays = [play(FTPRL(Spectrahedron(2), CoordinateConstant()), 2.0**k * rows).x for k in (-30, 0, 30)]
    np.testing.assert_array_equal(plays[0], plays[1])
    np.testing.assert_array_equal(plays[1], plays[2])
