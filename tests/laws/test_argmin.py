"""Properties of argmin for every set and every kind of matrix."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ftprl import psd
from ftprl.errors import InvalidInput
from ftprl.sets import Box, Halfspace
from ftprl.solver import minimise_conic
from laws.strategies import SEEDS, SETS, SYMMETRIC, Problem, law, make_problem, points, problems, random_psd

STRICT = ("scalar", "diagonal", "full")
SINGULAR = ("singular diagonal", "singular full", "zero")


@law(250)
@given(problems(), SEEDS)
def test_variational_inequality(p: Problem, seed: int) -> None:
    """x minimises a convex f over F if and only if f'(x)·(x - y) <= 0 for every y in F."""
    x = p.F.argmin(p.H, p.z, p.near)
    assert p.F.contains(x)
    slope = p.slope(x)
    others = points(np.random.default_rng(seed), p.F, 4)
    for y in (p.F.vertex(slope), p.near, *others):
        assert slope @ (x - y) <= p.tolerance()


@law(80)
@given(problems())
def test_arguments_are_not_touched(p: Problem) -> None:
    before = [a.copy() for a in (p.H, p.z, p.near)]
    x = p.F.argmin(p.H, p.z, p.near)
    np.testing.assert_array_equal(x, p.F.argmin(p.H, p.z, p.near))
    for a, b in zip(before, (p.H, p.z, p.near), strict=True):
        np.testing.assert_array_equal(a, b)
    x += 1.0  # what is given back belongs to the caller
    np.testing.assert_array_equal(x - 1.0, (p.F.argmin(p.H, p.z, p.near) + 1.0) - 1.0)


@law(130)
@given(problems())
def test_idempotent(p: Problem) -> None:
    """argmin started from its own result returns that result."""
    x = p.F.argmin(p.H, p.z, p.near)
    again = p.F.argmin(p.H, p.z, x)
    assert p.value(again) <= p.value(x) + p.tolerance()
    np.testing.assert_allclose(again, x, atol=1e-6 * (1 + np.abs(x).max()))


@law(130)
@given(problems(shapes=STRICT), st.integers(-40, 40))
def test_scale_of_the_objective_changes_nothing(p: Problem, power: int) -> None:
    s = 2.0**power
    x = p.F.argmin(p.H, p.z, p.near)
    other = p.F.argmin(s * p.H, s * p.z, p.near)
    np.testing.assert_allclose(other, x, atol=1e-5 * (1 + np.abs(x).max()))
    assert abs(p.value(other) - p.value(x)) <= p.tolerance()


@law(180)
@given(problems(tuple(SETS), SINGULAR, in_range=True))
def test_directions_without_weight_stay(p: Problem) -> None:
    """If x with its unweighted part taken from `near` is in F, then argmin is that point."""
    assume(not p.name.startswith(("ellipsoid", "preimage", "stretched")))
    _assert_stays(p)


@pytest.mark.parametrize("name", ["ellipsoid", "preimage of a box", "stretched ball", "preimage of an l4 ball"])
@law(60)
@given(st.sampled_from(SINGULAR), st.integers(2, 5), SEEDS)
def test_directions_without_weight_stay_in_other_coordinates(name: str, shape: str, n: int, seed: int) -> None:
    """Directions without weight also stay at `near` on sets that are solved in other coordinates."""
    _assert_stays(make_problem(name, shape, n, seed, in_range=True))


def _assert_stays(p: Problem) -> None:
    w, V = np.linalg.eigh(psd.dense(p.H, p.F.dim))
    N = V[:, w <= 1e-12 * w[-1]]
    for x in (p.F.argmin(p.H, p.z, p.near), minimise_conic(p.F, p.H, p.z, p.near).x):
        kept = x + N @ (N.T @ (p.near - x))
        if p.F.contains(kept, 1e-13):
            np.testing.assert_allclose(x, kept, atol=1e-6 * (1 + np.abs(x).max()))


@law(130)
@given(problems(tuple(SYMMETRIC), STRICT), SEEDS)
def test_permutation_equivariance(p: Problem, seed: int) -> None:
    """On a set symmetric in its coordinates, permuting the inputs of argmin permutes its result."""
    order = np.random.default_rng(seed).permutation(p.F.dim)
    H = p.H if p.H.ndim == 0 else (p.H[order] if p.H.ndim == 1 else p.H[np.ix_(order, order)])
    x = p.F.argmin(p.H, p.z, p.near)
    turned = p.F.argmin(H, p.z[order], p.near[order])
    np.testing.assert_allclose(turned, x[order], atol=1e-5 * (1 + np.abs(x).max()))


@law(130)
@given(problems(shapes=STRICT), SEEDS)
def test_projections_are_firmly_nonexpansive(p: Problem, seed: int) -> None:
    """(x - y)ᵀH(x - y) <= (x - y)ᵀH(u - v) for the H-projections x of u and y of v."""
    u, v = np.random.default_rng(seed).normal(size=(2, p.F.dim)) * 3
    x, y = (p.F.argmin(p.H, -psd.apply(p.H, w), p.near) for w in (u, v))
    d, e = x - y, u - v
    slack = p.tolerance() * (1 + np.abs(u).max() + np.abs(v).max())
    assert psd.quad(p.H, d) <= float(d @ psd.apply(p.H, e)) + slack
    assert psd.quad(p.H, d) <= psd.quad(p.H, e) + 2 * slack


@law(160)
@given(problems(tuple(SETS), ("scalar", "diagonal", "singular diagonal", "zero")))
def test_closed_form_is_the_solver(p: Problem) -> None:
    """The fast path and the conic program give the same value, and the program's gap is a true bound."""
    x = p.F.argmin(p.H, p.z, p.near)
    actual = minimise_conic(p.F, p.H, p.z, p.near)
    assert p.F.contains(actual.x)
    assert p.value(x) <= p.value(actual.x) + 1e-9 * (p.unit() + 1e-3)
    assert p.value(actual.x) - actual.gap <= p.value(x) + 1e-11 * p.unit()
    assert 0 <= actual.gap <= 1e-6 * (p.unit() + 1e-3)


@law(150)
@given(st.sampled_from(("scalar", "diagonal", "full", "singular diagonal", "singular full")), st.integers(1, 6), SEEDS)
def test_halfspace(shape: str, n: int, seed: int) -> None:
    """Optimality on a·x <= b: the slope is -mu a with mu >= 0, and 0 inside."""
    rng = np.random.default_rng(seed)
    F = Halfspace(rng.normal(size=n), float(rng.normal()))
    H = random_psd(rng, n, shape)
    z = -psd.apply(H, rng.normal(size=n) * 3)
    x = F.argmin(H, z, F.start())
    assert F.contains(x)
    slope = psd.apply(H, x) + z
    unit = (np.abs(H).max() + np.abs(z).max()) * (1 + np.abs(x).max())
    mu = -float(slope @ F.a) / float(F.a @ F.a)
    assert mu >= -1e-7 * unit
    np.testing.assert_allclose(slope, -mu * F.a, atol=1e-6 * unit)
    assert abs(mu * (F.b - float(F.a @ x))) <= 1e-6 * unit * (1 + abs(F.b))


@law(100)
@given(st.integers(1, 6), SEEDS)
def test_box_with_infinite_sides(n: int, seed: int) -> None:
    """With weight everywhere, an open box behaves as a box; without weight, argmin raises an error."""
    rng = np.random.default_rng(seed)
    low, high = np.where(rng.random(n) < 0.5, -np.inf, -1.0), np.where(rng.random(n) < 0.5, np.inf, 0.5)
    F = Box(low, high)
    lam, z = rng.uniform(0.1, 3, size=n), rng.normal(size=n) * 3
    x = F.argmin(lam, z, F.start())
    np.testing.assert_allclose(x, np.clip(-z / lam, low, high))
    B = rng.normal(size=(n, n))
    H = B @ B.T + np.eye(n)
    actual = F.minimise(H, z, F.start())
    slope = H @ actual.x + z
    blocked = ((actual.x <= low + 1e-7) & (slope > 0)) | ((actual.x >= high - 1e-7) & (slope < 0))
    np.testing.assert_allclose(np.where(blocked, 0.0, slope), 0.0, atol=1e-5)
    lam[0], z[0] = 0.0, 1.0
    if np.isinf(low[0]):
        with pytest.raises(InvalidInput, match="coordinate 0"):
            F.argmin(lam, z, F.start())
    else:
        assert F.argmin(lam, z, F.start())[0] == -1.0
