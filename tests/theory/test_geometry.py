"""Widths, diameters, N, gamma and beta of every set, against brute force over vertices and by climbing."""

import math

import numpy as np
import pytest

from ftprl import psd
from ftprl.sets import Box, CappedSimplex, ConvexSet, Ellipsoid, L1Ball, LpBall, Polytope, Simplex
from oracles.posthoc import N_brute, N_climb, corners, differences, gamma_lp
from oracles.zoo import SETS, random_point, random_psd

POLYHEDRA = [name for name, F in SETS.items() if corners(F) is not None]


def matrices(n: int, seed: int) -> list[np.ndarray]:
    """Return one matrix of each kind: a number, diagonals, full matrices."""
    rng = np.random.default_rng(seed)
    return [
        np.array(1.3),
        rng.exponential(size=n),
        np.eye(n)[0],
        random_psd(n, rng),
        np.outer(v := rng.normal(size=n), v),
    ]


@pytest.mark.parametrize("name", POLYHEDRA)
def test_N_of_polyhedra(name: str) -> None:
    """N(Q) = max of ½ y'Qy over differences of vertices: equal where exact, never below."""
    F = SETS[name]
    for Q in matrices(F.dim, 1):
        N, brute = 0.5 * F.sq_diameter(Q), N_brute(F, psd.dense(Q, F.dim))
        assert brute * (1 - 1e-9) <= N
        if F.is_exact(("diameter", "diagonal", "full")[Q.ndim]):
            assert pytest.approx(brute, rel=1e-9) == N


@pytest.mark.parametrize("name", SETS)
def test_N_by_climbing(name: str) -> None:
    """N(Q) on every set: no difference of two points exceeds it, and where it is exact one attains it."""
    F = SETS[name]
    rng = np.random.default_rng(4)
    for Q in matrices(F.dim, 2):
        N, low = 0.5 * F.sq_diameter(Q), N_climb(F, psd.dense(Q, F.dim), rng, 6 if name == "ellipsoid box" else 12)
        assert low <= N * (1 + 1e-7)
        if F.is_exact(("diameter", "diagonal", "full")[Q.ndim]):
            assert low == pytest.approx(N, rel=1e-5)


@pytest.mark.parametrize("name", SETS)
def test_widths_and_diameter(name: str) -> None:
    """D_i and D from the linear minimisation oracle: D_i = max - min, D = sqrt of 2 N(I)."""
    F = SETS[name]
    eye = np.eye(F.dim)
    D = np.array([F.vertex(-e)[i] - F.vertex(e)[i] for i, e in enumerate(eye)])
    if F.is_exact("widths"):
        np.testing.assert_allclose(F.widths(), D, atol=1e-8)
    assert np.all(F.widths() >= D - 1e-7)
    reach = math.sqrt(2 * N_climb(F, eye, np.random.default_rng(0), 6))
    assert F.diameter() >= reach * (1 - 1e-7)
    if F.is_exact("diameter"):
        assert F.diameter() == pytest.approx(reach, rel=1e-4)


@pytest.mark.parametrize("name", SETS)
def test_N_is_a_monotone_gauge(name: str) -> None:
    """N is monotone and positively homogeneous, and sub-additive where it is exact."""
    F = SETS[name]
    rng = np.random.default_rng(8)
    for _ in range(5):
        P, Q = rng.exponential(size=(2, F.dim))
        assert F.sq_diameter(3.0 * P) == pytest.approx(3 * F.sq_diameter(P))
        if F.is_exact("diagonal"):
            assert F.sq_diameter(P) <= F.sq_diameter(P + Q) * (1 + 1e-9)
            assert F.sq_diameter(P + Q) <= (F.sq_diameter(P) + F.sq_diameter(Q)) * (1 + 1e-9)


GAMMA: dict[str, tuple[ConvexSet, float]] = {
    "box": (Box([-1.0, 2.0, 0.0], [1.0, 5.0, 0.5]), 1.0),
    "l1": (L1Ball(4, 0.7), 4.0),
    "lpinf": (LpBall(3, math.inf), 1.0),
    "simplex": (Simplex(5, 2.0), 2.5),
    "simplex of 2": (Simplex(2), 1.0),
}


@pytest.mark.parametrize("name", GAMMA)
def test_gamma_values(name: str) -> None:
    """Values of gamma by the linear program over vertices: box 1, L1 n, L_inf 1, simplex n/2."""
    F, value = GAMMA[name]
    assert F.gamma() == pytest.approx(value)
    assert gamma_lp(corners(F), F.widths()) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.0, 8.0])
def test_gamma_of_balls(p: float) -> None:
    """gamma of L_p balls: n^{2/p} for p >= 2 (the even point), n below (the average of the axes)."""
    n = 5
    gamma = n ** (2 / p) if p >= 2 else float(n)
    assert LpBall(n, p).gamma() == pytest.approx(gamma)
    rng = np.random.default_rng(0)
    y = rng.normal(size=(4000, n)) ** 3
    y = 2 * y / np.linalg.norm(y, p, axis=1)[:, None]
    # By symmetry the best z is even: (1/gamma) D² = max over F of the mean of y².
    top = max((y**2).mean(axis=1).max(), 4 / n, 4 * n ** (-2 / p))
    assert top == pytest.approx(4 / gamma, rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_gamma_and_beta_of_polytopes(seed: int) -> None:
    """1 <= gamma <= min(n, beta²); gamma is the linear program's value, and the inner box lies inside."""
    rng = np.random.default_rng(seed)
    n = 3
    C = np.vstack((rng.normal(size=(5, n)), np.eye(n), -np.eye(n)))
    F = Polytope(C, rng.uniform(0.5, 1.5, size=len(C)))
    gamma, beta, inner = F.gamma(), F.beta(), F.inner_box()
    assert gamma == pytest.approx(gamma_lp(corners(F), F.widths()), rel=1e-6)
    assert 1 - 1e-9 <= gamma <= min(n, beta**2) + 1e-9
    assert all(F.contains(v, 1e-7) for v in corners(inner))
    np.testing.assert_allclose(F.widths() / inner.widths(), beta, rtol=1e-6)
    # No larger copy of the outer box fits nearby: its corners leave F.
    bigger = Box(inner.lower - 0.01 * inner.widths(), inner.upper + 0.01 * inner.widths())
    assert not all(F.contains(v) for v in corners(bigger))


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, math.inf])
def test_beta_of_balls(p: float) -> None:
    """beta = n^{1/p}: the corners of the inner box touch the ball."""
    F = LpBall(3, p, 0.7, [1.0, 0.0, -2.0])
    assert F.beta() == pytest.approx(1.0 if math.isinf(p) else 3 ** (1 / p))
    sizes = [float(np.linalg.norm(v - F.center, p)) for v in corners(F.inner_box())]
    np.testing.assert_allclose(sizes, 0.7)
    np.testing.assert_allclose(F.widths() / F.inner_box().widths(), F.beta())


def test_beta_of_an_axis_aligned_ellipsoid() -> None:
    """Axis-aligned ellipsoid: beta = sqrt n and gamma = n, as on the ball it comes from."""
    F = Ellipsoid(np.diag([1.0, 4.0, 0.3]))
    assert F.beta() == pytest.approx(math.sqrt(3))
    assert F.gamma() == pytest.approx(3.0)
    assert all(F.contains(v) for v in corners(F.inner_box()))


@pytest.mark.parametrize(("cap", "scale"), [(0.5, 1.0), (0.25, 0.75), (0.4, 1.0), (0.3, 1.0), (2.0, 1.0)])
def test_capped_simplex(cap: float, scale: float) -> None:
    """Capped simplex: the greedy N is exact when scale/cap is whole and above the maximum otherwise."""
    F = CappedSimplex(4, cap, scale)
    rng = np.random.default_rng(0)
    exact = abs(scale / min(cap, scale) - round(scale / min(cap, scale))) < 1e-12
    assert F.is_exact("diagonal") == exact
    for _ in range(20):
        lam = rng.exponential(size=4)
        N, brute = 0.5 * F.sq_diameter(lam), N_brute(F, np.diag(lam))
        assert pytest.approx(brute) == N if exact else brute - 1e-12 <= N


@pytest.mark.parametrize("name", SETS)
def test_tangent_keeps_regret(name: str) -> None:
    """The part that `tangent` drops is constant on F, so comparisons between points of F do not change."""
    F = SETS[name]
    rng = np.random.default_rng(6)
    for _ in range(10):
        g = rng.normal(size=F.dim)
        x, y = random_point(F, rng), random_point(F, rng)
        assert F.tangent(g) @ (x - y) == pytest.approx(g @ (x - y), abs=1e-9)
        assert np.linalg.norm(F.tangent(g)) <= np.linalg.norm(g) * (1 + 1e-12)


@pytest.mark.parametrize("n", [2, 5, 13])
def test_bounds_on_a_hard_N(n: int) -> None:
    """Box with a full Q: exact up to 12 dimensions, beyond it at most pi/2-ish and never below."""
    rng = np.random.default_rng(n)
    F = Box(-rng.random(n), rng.random(n))
    Q = random_psd(n, rng)
    low = max(float(y @ Q @ y) for y in rng.choice((-1.0, 1.0), size=(2000, n)) * F.widths())
    assert F.sq_diameter(Q) >= low * (1 - 1e-12)
    assert F.sq_diameter(Q) <= float(F.widths() @ np.abs(Q) @ F.widths()) * (1 + 1e-12)
    if n <= 5:
        assert F.sq_diameter(Q) == pytest.approx(low)


def test_product_of_differences() -> None:
    """Fsym of a box is the box of its widths: the brute force itself is right on a known case."""
    F = Box([0.0, 1.0], [1.0, 4.0])
    assert {tuple(np.abs(y)) for y in differences(corners(F))} == {(1.0, 0.0), (0.0, 3.0), (1.0, 3.0)}
