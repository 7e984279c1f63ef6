"""The fast steps of the simplex, the ball and the polytope, each beside a slow twin."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from ftprl import psd
from ftprl.sets import Simplex, multiplier
from ftprl.sets.lp import shrink
from ftprl.sets.simplex import two_largest
from ftprl.solver import Conic
from ftprl.solver.warm import active_set, solve_prices
from laws.strategies import SEEDS, law

Vector = np.ndarray
Rng = np.random.Generator
SPREAD = st.sampled_from([0.0, 1.0, 4.0, 8.0])


def weights(rng: Rng, n: int, spread: float) -> tuple[Vector, Vector]:
    """Weights over 2·spread powers of ten, and slopes with ties and zeros."""
    lam = 10.0 ** rng.uniform(-spread, spread, size=n)
    z = rng.normal(size=n) * 10.0 ** rng.uniform(-spread, spread, size=n)
    z = np.where(rng.random(n) < 0.2, 0.0, z)
    return lam, np.where(rng.random(n) < 0.2, z[0], z)


def somewhere(rng: Rng, n: int, total: float) -> Vector:
    """A point of the simplex that uses some of its coordinates or, invalidly, none."""
    share = np.where(rng.random(n) < rng.random(), rng.random(n), 0.0)
    return share * (total / share.sum()) if share.any() else share


def exact_simplex(lam: Vector, z: Vector, total: float) -> Vector:
    """Return the minimiser in rational arithmetic: add coordinates in the order of z until the next would be 0."""
    order = np.argsort(z, kind="stable")
    L, Z = [Fraction(float(v)) for v in lam], [Fraction(float(v)) for v in z]
    top, bottom, nu = Fraction(total), Fraction(0), None
    for i in order:
        if nu is not None and Z[i] >= nu:
            break
        top, bottom = top + Z[i] / L[i], bottom + 1 / L[i]
        nu = top / bottom
    assert nu is not None
    return np.array([float(max(nu - zi, Fraction(0)) / li) for zi, li in zip(Z, L, strict=True)])


@law(300)
@given(st.integers(1, 40), SPREAD, SEEDS)
def test_simplex_to_rounding(n: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lam, z = weights(rng, n, spread)
    total = float(10.0 ** rng.uniform(-3, 3))
    x = multiplier.simplex(lam, z, total, somewhere(rng, n, total))
    want = exact_simplex(lam, z, total)
    assert x.min() >= 0.0
    # Rounding z - min z moves a share by that much over its weight; all other digits are kept.
    assert np.all(np.abs(x - want) <= 1e-13 * total + 4 * np.finfo(float).eps * np.ptp(z) / lam)


@law(300)
@given(st.integers(1, 40), st.sampled_from([0.0, 1.0, 2.0]), SEEDS)
def test_simplex_is_the_knapsack(n: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lam, z = weights(rng, n, spread)
    near = somewhere(rng, n, 1.0)
    x = multiplier.simplex(lam, z, 1.0, near)
    twin = multiplier.with_sum(lam, z, np.zeros(n), np.full(n, np.inf), 1.0, near)
    np.testing.assert_allclose(x, twin, atol=1e-9)
    assert abs(float(x.sum()) - 1.0) <= 1e-12 * (1 + np.ptp(z) / lam.min())


@law(100)
@given(st.integers(1, 40), SEEDS)
def test_the_start_of_the_simplex_step_does_not_matter(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lam, z = weights(rng, n, 1.0)
    first, other = (multiplier.simplex(lam, z, 2.0, somewhere(rng, n, 2.0)) for _ in range(2))
    np.testing.assert_allclose(first, other, atol=1e-12)


def test_simplex_far_from_the_origin_of_z() -> None:
    """Only differences of z matter: a large common part costs no digits of them."""
    lam, z = np.array([1.0, 2.0, 4.0]), np.array([0.25, 0.5, 0.0])
    x = Simplex(3).argmin(lam, z, np.zeros(3))
    np.testing.assert_array_equal(Simplex(3).argmin(lam, z + 2.0**40, np.zeros(3)), x)


def test_simplex_at_the_end_of_the_range() -> None:
    """A weight whose inverse overflows makes the step use the general method, not raise an error."""
    lam, z = np.array([1e-310, 1.0]), np.array([0.0, 1.0])
    with np.errstate(over="ignore", invalid="ignore"):
        x = multiplier.simplex(lam, z, 1.0, np.array([0.5, 0.5]))
        twin = multiplier.with_sum(lam, z, np.zeros(2), np.full(2, np.inf), 1.0, np.array([0.5, 0.5]))
    np.testing.assert_array_equal(x, twin)


@law(100)
@given(st.integers(2, 40), SEEDS)
def test_two_largest(n: int, seed: int) -> None:
    q = np.random.default_rng(seed).integers(0, 6, size=n).astype(float)
    assert two_largest(q) == np.sort(q)[-2:].sum()


def slow_ball(lam: Vector, z: Vector, radius: float) -> Vector:
    """Return x(mu) = -z/(lam + mu) at the root of |x(mu)| = radius, by bisection and interpolation."""

    def size(mu: float) -> float:
        return float(np.linalg.norm(z / (lam + mu)))

    if size(0.0) <= radius:
        return -z / lam
    high = 1.0
    while size(high) > radius:
        high *= 8.0
    mu = brentq(lambda m: size(m) - radius, 0.0, high, xtol=1e-300, rtol=1e-15, maxiter=2000)
    return -z / (lam + mu)


@law(300)
@given(st.integers(1, 40), SPREAD, SEEDS)
def test_ball_is_the_root(n: int, spread: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lam, z = weights(rng, n, spread)
    radius = float(10.0 ** rng.uniform(-3, 3))
    x = multiplier.l2_ball(lam, z, radius, rng.normal(size=n))
    np.testing.assert_allclose(x, slow_ball(lam, z, radius), rtol=1e-9, atol=1e-12 * radius)
    assert np.linalg.norm(x) <= radius * (1 + 1e-15 * n)


@law(150)
@given(st.integers(1, 8), st.integers(1, 8), SEEDS)
def test_ball_with_flat_coordinates(n: int, flat: int, seed: int) -> None:
    """Coordinates without weight and slope take the remaining radius, towards `near`: none on the sphere."""
    rng = np.random.default_rng(seed)
    lam, z = weights(rng, n, 1.0)
    order = rng.permutation(n + flat)
    near = rng.normal(size=n + flat) * 0.3
    wide = [np.concatenate((part, np.zeros(flat)))[order] for part in (lam, z)]
    x = multiplier.l2_ball(wide[0], wide[1], 1.0, near)
    live = order < n
    inner = slow_ball(lam, z, 1.0)[order[live]]
    np.testing.assert_allclose(x[live], inner, atol=1e-12)
    rest = math.sqrt(max(1.0 - float(inner @ inner), 0.0)) if np.linalg.norm(inner) < 1 - 1e-12 else 0.0
    want = shrink(near[~live], rest, 2.0)
    np.testing.assert_allclose(x[~live], want, atol=1e-12)


def test_ball_where_all_is_flat() -> None:
    zero = np.zeros(2)
    np.testing.assert_allclose(multiplier.l2_ball(zero, zero, 1.0, np.array([3.0, 4.0])), [0.6, 0.8])


@pytest.mark.parametrize("exponent", [-140.0, 0.0, 140.0])
def test_ball_over_the_range_of_a_float(exponent: float) -> None:
    lam, z = np.array([1e-150, 1.0, 3.0]), 10.0**exponent * np.array([1.0, -2.0, 0.5])
    x = multiplier.l2_ball(lam, z, 1.0, np.zeros(3))
    slope = lam * x + z
    mu = -float(slope @ x)
    assert np.linalg.norm(x) == pytest.approx(1.0, rel=1e-15)
    np.testing.assert_allclose(slope, -mu * x, atol=1e-14 * max(10.0**exponent, 1e-12))


@law(100)
@given(st.integers(1, 30), SEEDS)
def test_prices_solve_the_system(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    B = rng.normal(size=(k, k + 2))
    S, right = B @ B.T, rng.normal(size=k)
    want = np.linalg.solve(S, right)
    kept = S.copy()
    np.testing.assert_allclose(solve_prices(S, right), want, rtol=1e-9, atol=1e-9 * np.abs(want).max())
    np.testing.assert_array_equal(S, kept)


def test_prices_where_rounding_hides_that_rows_differ() -> None:
    """A matrix that rounding makes indefinite is solved, or reported as singular."""
    S = np.array([[1.0, 1.0], [1.0, 1.0 - 2.0**-52]])
    np.testing.assert_allclose(S @ solve_prices(S, np.array([1.0, 1.0])), 1.0, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        solve_prices(np.zeros((2, 2)), np.ones(2))


@law(150)
@given(st.integers(1, 6), st.integers(0, 2), st.sampled_from(("scalar", "diagonal", "full")), SEEDS)
def test_active_set_meets_the_conditions_of_optimality(n: int, equal: int, shape: str, seed: int) -> None:
    """From any active set: slope + prices·rows = 0 with prices >= 0, as a small least-squares problem finds."""
    rng = np.random.default_rng(seed)
    inside = rng.normal(size=n)
    C, A = rng.normal(size=(3 * n, n)), rng.normal(size=(min(equal, n - 1), n))
    d = C @ inside + rng.uniform(0.1, 1.0, size=3 * n)
    conic = Conic.polyhedron(n, (C, d), (A, A @ inside))
    B = rng.normal(size=(n, n))
    H = {"scalar": np.array(0.7), "diagonal": rng.uniform(0.1, 2.0, size=n), "full": B @ B.T + np.eye(n)}[shape]
    z = rng.normal(size=n) * 5
    guess = rng.random(3 * n) < 0.2
    kept = guess.copy()
    far = np.full(n, 1e3)
    solution = active_set(conic, H, z, inside, (-far, far), guess, 15)
    np.testing.assert_array_equal(guess, kept)
    if solution is None:  # it may give up, but it may not be wrong
        return
    slack = d - C @ solution.w
    assert slack.min() >= -1e-10
    np.testing.assert_allclose(A @ solution.w, A @ inside, atol=1e-10)
    rows = np.vstack((A, C[slack < 1e-9]))
    slope = psd.apply(H, solution.w) + z
    prices = np.linalg.lstsq(rows.T, -slope, rcond=None)[0] if len(rows) else np.zeros(0)
    np.testing.assert_allclose(rows.T @ prices, -slope, atol=1e-8 * (1 + np.abs(slope).max()))
    assert np.all(prices[len(A) :] >= -1e-7 * (1 + np.abs(prices).max(initial=0.0)))
