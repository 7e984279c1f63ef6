"""The lemmas behind the theorems, each as a property."""

import math

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ftprl import psd
from oracles.posthoc import minimum
from oracles.zoo import SETS, random_point, random_psd

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=40, deadline=None)
SOME = settings(max_examples=12, deadline=None)
SIZES = st.integers(1, 6)
TABLES = st.tuples(SIZES, SIZES).flatmap(lambda s: arrays(float, s, elements=st.floats(-1e3, 1e3)))
# For curved sets with a full metric an interior-point solver finds the argument to about 1e-6.
EXACT = ("box", "l2", "ellipsoid", "axis ellipsoid", "simplex", "capped", "polytope", "polytope eq", "preimage box")


def project(name: str, Q: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Return the point of F nearest to u in the norm of Q."""
    F = SETS[name]
    return F.argmin(Q, -psd.apply(Q, u), F.start())


def metric(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a positive definite matrix: a number, a diagonal or a full matrix."""
    kind = rng.integers(3)
    if kind == 0:
        return np.array(10.0 ** rng.uniform(-2, 2))
    return 10.0 ** rng.uniform(-2, 2, size=n) if kind == 1 else random_psd(n, rng, 0.1)


@FEW
@given(TABLES)
def test_be_the_leader(f: np.ndarray) -> None:
    """L1: playing the leader of f_{1:t} in round t costs no more than the last leader."""
    leaders = f.cumsum(axis=0).argmin(axis=1)
    rounds = np.arange(len(f))
    assert f[rounds, leaders].sum() <= f[:, leaders[-1]].sum() + 1e-9


@FEW
@given(TABLES, SEEDS)
def test_be_the_regularised_leader(f: np.ndarray, seed: int) -> None:
    """L2: playing x_{t+1} in round t has regret at most r_{1:T}(x*), for any r_t >= 0."""
    r = np.random.default_rng(seed).exponential(size=f.shape) * 10
    after = (f + r).cumsum(axis=0).argmin(axis=1)
    best = f.sum(axis=0).argmin()
    assert f[np.arange(len(f)), after].sum() - f[:, best].sum() <= r[:, best].sum() + 1e-9


@FEW
@given(TABLES, SEEDS)
def test_follow_the_regularised_leader(f: np.ndarray, seed: int) -> None:
    """L3: regret is at most r_{1:T}(x*) plus the sum of f_t(x_t) - f_t(x_{t+1})."""
    r = np.random.default_rng(seed).exponential(size=f.shape) * 10
    after = (f + r).cumsum(axis=0).argmin(axis=1)
    plays = np.concatenate(([0], after[:-1]))
    best, rounds = f.sum(axis=0).argmin(), np.arange(len(f))
    moved = (f[rounds, plays] - f[rounds, after]).sum()
    assert f[rounds, plays].sum() - f[:, best].sum() <= r[:, best].sum() + moved + 1e-9


def test_regularisers_below_zero_break_the_leader() -> None:
    """L2 needs r_t >= 0: a negative one makes its bound fail."""
    f, r = np.array([[0.0, 1.0]]), np.array([[0.0, -2.0]])
    after = (f + r).cumsum(axis=0).argmin(axis=1)
    assert f[0, after[0]] - f.sum(axis=0).min() > r[:, 0].sum()


@pytest.mark.parametrize("name", SETS)
@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(SEEDS)
def test_lazy_projection(name: str, seed: int) -> None:
    """L4: the quadratic program over F and the projection of its free minimiser are one (against CVXPY)."""
    rng = np.random.default_rng(seed)
    F = SETS[name]
    Q = metric(F.dim, rng)
    h = rng.normal(size=F.dim) * 3
    dense = psd.dense(Q, F.dim)
    u = -np.linalg.solve(dense, h)
    value, _ = minimum(F, dense, h)
    scale = 1 + abs(value) + float(np.abs(h) @ F.widths())
    for x in (F.argmin(Q, h, F.start()), project(name, Q, u)):
        assert F.contains(x)
        assert 0.5 * psd.quad(Q, x) + h @ x == pytest.approx(value, abs=2e-7 * scale)


@pytest.mark.parametrize("name", SETS)
@SOME
@given(SEEDS)
def test_projection_contracts(name: str, seed: int) -> None:
    """L5: |P(u1) - P(u2)| <= |u1 - u2| in the norm of Q, and the firm form with the inner product."""
    rng = np.random.default_rng(seed)
    n = SETS[name].dim
    Q = metric(n, rng)
    u, v = rng.normal(size=(2, n)) * 3
    d = project(name, Q, u) - project(name, Q, v)
    slack = (1e-9 if Q.ndim < 2 or name in EXACT else 1e-5) * (1 + psd.quad(Q, u - v))
    assert psd.quad(Q, d) <= psd.quad(Q, u - v) + slack
    assert psd.quad(Q, d) <= float(d @ psd.apply(Q, u - v)) + slack


@pytest.mark.parametrize("name", SETS)
@SOME
@given(SEEDS)
def test_one_round_moves_little(name: str, seed: int) -> None:
    """L6: |x1 - x2|²_Q <= g·(x1 - x2) <= g'Q⁻¹g when the linear part changes by g."""
    rng = np.random.default_rng(seed)
    F = SETS[name]
    Q = metric(F.dim, rng)
    v, g = rng.normal(size=(2, F.dim)) * 2
    d = F.argmin(Q, v, F.start()) - F.argmin(Q, v + g, F.start())
    length = psd.dual_quad(Q, g)
    slack = (1e-9 if Q.ndim < 2 or name in EXACT else 1e-5) * (1 + length)
    assert psd.quad(Q, d) <= float(g @ d) + slack
    assert float(g @ d) <= length + slack


def auer(a: np.ndarray, offset: float = 0.0) -> float:
    """Return sum a_i / sqrt(offset + a_{1:i}), with 0/0 = 0."""
    sums = offset + np.cumsum(a)
    return float(np.divide(a, np.sqrt(sums), out=np.zeros_like(a), where=sums > 0).sum())


SQUARES = arrays(float, st.integers(1, 40), elements=st.one_of(st.just(0.0), st.floats(0, 1e6)))


@FEW
@given(SQUARES)
def test_auer(a: np.ndarray) -> None:
    """L7: sum a_i / sqrt(a_{1:i}) <= 2 sqrt(sum a), leading zeros included."""
    assert auer(a) <= 2 * math.sqrt(a.sum()) * (1 + 1e-12)


@FEW
@given(SQUARES, st.floats(0, 1e6))
def test_auer_with_an_offset(a: np.ndarray, offset: float) -> None:
    """L7b: with an offset d the sum is at most 2 (sqrt(d + a_{1:n}) - sqrt d)."""
    high = math.sqrt(offset + a.sum())
    assert auer(a, offset) <= 2 * (high - math.sqrt(offset)) + 1e-9 * (1 + high)


def test_auer_is_tight() -> None:
    """L7: with small steps the sum comes within a thousandth of 2 sqrt n, so the factor 2 cannot fall."""
    assert auer(np.ones(10**6)) >= 1.997 * 1e3


@FEW
@given(SEEDS, st.integers(1, 5), st.integers(1, 20))
def test_matrix_auer(seed: int, n: int, T: int) -> None:
    """L8: sum g_t'(S_t)⁺g_t <= 2 tr S_T with S_t the root of the sum of outer products."""
    rng = np.random.default_rng(seed)
    gs = rng.normal(size=(T, n)) * 10.0 ** rng.uniform(-1, 1, size=(T, 1))
    GG, left = np.zeros((n, n)), 0.0
    for g in gs:
        GG = GG + np.outer(g, g)
        left += psd.dual_quad(psd.root(GG), g)
    assert left <= 2 * np.trace(psd.root(GG)) * (1 + 1e-7)


@FEW
@given(SEEDS, st.integers(1, 6))
def test_root_is_operator_monotone(seed: int, n: int) -> None:
    """L9: 0 <= A <= B implies A^{1/2} <= B^{1/2}."""
    rng = np.random.default_rng(seed)
    A = random_psd(n, rng)
    B = A + np.outer(g := rng.normal(size=n), g)
    assert np.linalg.eigvalsh(psd.root(B) - psd.root(A))[0] >= -1e-7 * psd.largest(B) ** 0.5


def test_square_is_not_operator_monotone() -> None:
    """L9 is about the root alone: A <= B does not order the squares, so the test can fail."""
    A, B = np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([[2.0, 1.0], [1.0, 1.0]])
    assert np.linalg.eigvalsh(B - A)[0] >= 0
    assert np.linalg.eigvalsh(B @ B - A @ A)[0] < -0.1


@FEW
@given(SEEDS, st.integers(1, 5))
def test_fidelity(seed: int, n: int) -> None:
    """L10: <A,Q> + <Q⁻¹,B> is at least 2 tr(A^{1/2}BA^{1/2})^{1/2}, and the stated Q attains it."""
    rng = np.random.default_rng(seed)
    A, B = random_psd(n, rng, 0.2), random_psd(n, rng, 0.2)
    R = psd.root(A)
    middle = psd.root(R @ B @ R)
    least = 2 * float(np.trace(middle))
    best = np.linalg.inv(R) @ middle @ np.linalg.inv(R)

    def value(Q: np.ndarray) -> float:
        return float(np.trace(A @ Q) + np.trace(np.linalg.solve(Q, B)))

    assert value(best) == pytest.approx(least, rel=1e-9)
    for _ in range(5):
        shift = 0.1 * psd.largest(best) * random_psd(n, rng, 0.01)
        assert value(best + shift) >= least * (1 - 1e-9)
        assert value(np.linalg.inv(np.linalg.inv(best) + shift)) >= least * (1 - 1e-9)


@pytest.mark.parametrize("name", SETS)
def test_random_points_lie_in_their_set(name: str) -> None:
    """The random points of the tests are points of F, as every theorem on comparators assumes."""
    rng = np.random.default_rng(3)
    assert all(SETS[name].contains(random_point(SETS[name], rng), 1e-7) for _ in range(10))
