"""Preimages, products, intersections, and a set of the user's own."""

import itertools
import math

import numpy as np
import pytest

from ftprl import FTPRL, Game
from ftprl.errors import InvalidInput, Unsupported
from ftprl.schemes import CoordinateConstant, Diagonal, Full
from ftprl.sets import Box, Ellipsoid, Halfspace, Intersection, L1Ball, L2Ball, Preimage, Product, Simplex
from laws.reference import assert_geometry, corners
from laws.strategies import random_polytope

A = np.array([[1.0, 0.5], [-0.4, 2.0]])
SQUARE = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))


@pytest.mark.parametrize("matrix", [A, np.diag([2.0, -0.5])])
def test_preimage_of_a_box(matrix: np.ndarray, rng: np.random.Generator) -> None:
    F = Preimage(matrix, Box(-1, 1, dim=2))
    assert_geometry(F, SQUARE @ np.linalg.inv(matrix).T, rng)
    assert (F.beta() is None) == bool(matrix[0, 1])


def test_preimage_of_a_ball_is_an_ellipsoid(rng: np.random.Generator) -> None:
    F, E = Preimage(A, L2Ball(2)), Ellipsoid(A)
    H, z = np.array([[2.0, 0.3], [0.3, 1.0]]), rng.normal(size=2) * 4
    np.testing.assert_allclose(F.argmin(H, z, np.zeros(2)), E.argmin(H, z, np.zeros(2)))
    np.testing.assert_allclose(F.widths(), E.widths())
    assert F.diameter() == pytest.approx(E.diameter())
    assert F.sq_diameter(H) == pytest.approx(E.sq_diameter(H))
    assert F.is_exact("diameter")


def test_preimage_uses_the_closed_form_of_its_own_metric(rng: np.random.Generator) -> None:
    """Q = a A'A is a number in the inner coordinates: no solver, so no gap."""
    F = Preimage(A, Simplex(2))
    assert F.hat(3 * A.T @ A).ndim == 0
    assert F.minimise(3 * A.T @ A, rng.normal(size=2), F.start()).gap == 0.0
    np.testing.assert_allclose(F.hat_full(A.T @ A), np.eye(2), atol=1e-14)


def test_preimage_of_an_open_box() -> None:
    F = Preimage(A, Box(-math.inf, 1.0, dim=2))
    assert np.isinf(F.widths()).all()
    assert F.contains(F.start())


def test_product_geometry(rng: np.random.Generator) -> None:
    F = Product(Simplex(2, 2.0), Box([-1.0], [3.0]), L1Ball(2, 0.5))
    blocks = ([[2, 0], [0, 2]], [[-1], [3]], 0.5 * np.vstack((np.eye(2), -np.eye(2))))
    V = np.array([np.concatenate(parts) for parts in itertools.product(*blocks)])
    assert_geometry(F, V, rng)
    assert F.dim == 5
    assert F.blocks == (slice(0, 2), slice(2, 3), slice(3, 5))
    assert F.gamma() == 2.0
    assert F.beta() is None
    assert Product(Box(0, 1), L2Ball(4)).beta() == 2.0


def test_product_with_a_block_diagonal_matrix_is_solved_block_by_block(rng: np.random.Generator) -> None:
    F = Product(L2Ball(2), Box(-1, 1))
    H = np.diag([1.0, 2.0, 3.0])
    H[0, 1] = H[1, 0] = 0.4
    assert F.minimise(H, rng.normal(size=3), F.start()).gap < 1e-14
    assert F.sq_diameter(H) == pytest.approx(4 * np.linalg.eigvalsh(H[:2, :2])[-1] + 12.0)
    H[0, 2] = H[2, 0] = 0.5
    actual = F.minimise(H, np.array([9.0, 0.1, -9.0]), F.start())
    assert F.contains(actual.x)
    assert actual.gap < 1e-6


CUTS = [
    (Simplex(3), Box([0.1, 0.0, 0.0], [0.5, 0.6, 1.0])),
    (Halfspace([1.0, 2.0, -1.0], 0.5), Box(-1, 1, dim=3)),
    (L1Ball(3, 1.0), Box(-0.2, 0.7, dim=3)),
    (Box(0, 1, dim=3), Box(-0.5, 0.7, dim=3)),
]


@pytest.mark.parametrize(("inner", "box"), CUTS, ids=lambda s: type(s).__name__)
def test_intersection_geometry(inner: Simplex, box: Box, rng: np.random.Generator) -> None:
    F = Intersection(inner, box)
    rows = [np.vstack((np.eye(3), -np.eye(3)))]
    right = [np.concatenate((box.upper, -box.lower))]
    equal = (np.ones((1, 3)), np.array([1.0])) if isinstance(inner, Simplex) else (None, None)
    if isinstance(inner, L1Ball):
        rows.append(np.array(list(itertools.product((-1.0, 1.0), repeat=3))))
        right.append(np.ones(8))
    else:
        conic = inner.conic()
        rows.append(conic.C)
        right.append(conic.d)
    assert_geometry(F, corners(np.vstack(rows), np.concatenate(right), *equal), rng)
    assert F.beta() is None
    assert F.is_exact("widths")


def test_intersection_with_a_polytope(rng: np.random.Generator) -> None:
    P = random_polytope(rng, 2)
    box = Box(P.start() - 0.3, P.start() + 0.4)
    F = Intersection(P, box)
    rows = np.vstack((P.C, np.eye(2), -np.eye(2)))
    assert_geometry(F, corners(rows, np.concatenate((P.d, box.upper, -box.lower))), rng, rtol=1e-7)


def test_intersection_with_a_disc_by_sampling(rng: np.random.Generator) -> None:
    for inner in (L2Ball(2), Ellipsoid(np.eye(2))):
        F = Intersection(inner, Box([-0.5, -2.0], [2.0, 0.3]))
        X = rng.uniform(-1, 1, size=(4000, 2))
        inside = np.array([F.contains(x) for x in X])
        true = (np.linalg.norm(X, axis=1) <= 1) & (X[:, 0] >= -0.5) & (X[:, 1] <= 0.3)
        np.testing.assert_array_equal(inside, true)
        assert F.contains(F.start())
        Y = X[inside]
        for g in rng.normal(size=(5, 2)):
            assert (Y @ g).min() >= g @ F.vertex(g) - 1e-6
            assert (Y @ g).min() <= g @ F.vertex(g) + 0.15
        low, high = F.bounds()
        np.testing.assert_allclose(low, [-0.5, -1.0], atol=1e-6)
        np.testing.assert_allclose(high, [1.0, 0.3], atol=1e-6)


def test_intersection_with_an_open_box() -> None:
    F = Intersection(L2Ball(2), Box(0.0, math.inf, dim=2))
    np.testing.assert_allclose(F.widths(), [1.0, 1.0])
    np.testing.assert_allclose(F.vertex(np.array([1.0, 2.0])), [0.0, 0.0], atol=1e-12)


def test_reprs() -> None:
    assert repr(Preimage(A, Simplex(2))) == "Preimage(A, Simplex(dim=2, total=1))"
    assert repr(Product(Box(0, 1), L2Ball(1))) == "Product(Box(0, 1, dim=1), L2Ball(dim=1, radius=1))"
    assert repr(Intersection(L2Ball(2), Box(0, 1, dim=2))) == "Intersection(L2Ball(dim=2, radius=1), Box(0, 1, dim=2))"


@pytest.mark.parametrize("scheme", [Diagonal(), CoordinateConstant(), Full()], ids=lambda s: type(s).__name__)
def test_a_set_of_ones_own(scheme: Diagonal, disc: type, rng: np.random.Generator) -> None:
    """Five methods suffice to play, and the certificate's chain holds."""
    game = Game(FTPRL(disc(), scheme))
    twin = Game(FTPRL(L2Ball(2), scheme))
    for g in rng.normal(size=(20, 2)):
        assert disc().contains(game.x)
        if isinstance(scheme, Full):  # a default diameter is sqrt(sum D²), not 2
            game.observe(g)
            continue
        game.observe(g)
        twin.observe(g)
    c = game.certificate()
    assert None not in (c.tight, c.bound, c.theorem, c.worst_case, c.closed_form)
    assert c.regret <= c.tight + 1e-9 <= c.bound + 1e-6 <= c.theorem + 1e-6 <= c.worst_case + 1e-6
    assert c.proven_ratio is None
    if isinstance(scheme, Diagonal):
        np.testing.assert_allclose(game.x, twin.x, atol=1e-6)


def test_the_gap_of_ones_own_set_is_measured(disc: type) -> None:
    F = disc(error=0.01)
    H, z = np.array(1.0), np.array([-3.0, 4.0])
    actual = F.minimise(H, z, np.zeros(2))
    value = 0.5 * actual.x @ actual.x + z @ actual.x
    best = 0.5 - 5.0
    assert actual.gap >= value - best > 1e-3
    game = Game(FTPRL(F, Diagonal()))
    for _ in range(5):
        game.observe([1.0, -0.5])
    c = game.certificate()
    assert c.solver_gap > 0
    assert any("gap" in text for text in c.caveats)
    assert c.regret <= c.bound
    exact = Game(FTPRL(disc(), Diagonal()))
    exact.observe([1.0, -0.5])
    assert exact.certificate().solver_gap < 1e-9


def test_defaults_of_ones_own_set(disc: type, rng: np.random.Generator) -> None:
    F = disc()
    assert F.diameter() == pytest.approx(math.sqrt(8))
    B = rng.normal(size=(2, 2))
    assert F.sq_diameter(B @ B.T) >= 4 * np.linalg.eigvalsh(B @ B.T)[-1]
    np.testing.assert_allclose(F.bounds(), [[-1, -1], [1, 1]])
    np.testing.assert_allclose(F.start(), [0, 0], atol=1e-15)
    assert F.gamma() == 2.0
    assert F.beta() is F.inner_box() is None
    np.testing.assert_allclose(F.outer_box().upper, [1, 1])
    assert [F.is_exact(w) for w in ("widths", "diameter", "diagonal", "full")] == [True, False, False, False]
    with pytest.raises(Unsupported, match=r"Disc has no conic form.*; give it"):
        F.minimise_l1(np.array(1.0), np.ones(2), 0.1, np.zeros(2))
    with pytest.raises(TypeError):
        type("Half", (type(F).__base__,), {})()


def test_empty_intersection() -> None:
    with pytest.raises(InvalidInput, match="got none in"):
        Intersection(Simplex(2), Box(2.0, 3.0, dim=2))
