"""Fast computations of a step against slow ones: dense formulas, another solver, or brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ftprl import FTPRL, Game, john, psd
from ftprl.psd import LowRank
from ftprl.schemes import Full, Scheme, Sketch
from ftprl.schemes.spectrum import add_row, extend_basis
from ftprl.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    Halfspace,
    Intersection,
    L2Ball,
    LpBall,
    Polytope,
    Simplex,
)
from ftprl.solver import linear, linear_program, minimise_conic

Vector = NDArray[np.float64]

SEEDS = st.integers(0, 2**32 - 1)
DECADES = st.floats(-8, 8)


def value(H: Vector, z: Vector, x: Vector) -> float:
    return 0.5 * float(x @ H @ x) + float(z @ x)


def low_rank(rng: np.random.Generator, n: int, rank: int, scale: float, shift: bool, dense_core: bool) -> LowRank:
    B = np.linalg.qr(rng.normal(size=(n, rank)))[0]
    M = scale * 10.0 ** rng.uniform(-3, 3, rank)
    if dense_core:
        turn = np.linalg.qr(rng.normal(size=(rank, rank)))[0]
        M = (turn * M) @ turn.T
        M = (M + M.T) / 2
    return LowRank(scale * rng.uniform(0.1, 2) if shift else 0.0, B, M)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(41, 90), st.sampled_from(["plain", "wide", "zeros", "equal", "sparse"]), DECADES)
def test_one_more_row(seed: int, n: int, kind: str, decades: float) -> None:
    """add_row: the singular values of the stacked matrix, an orthogonal W, and together diag(s²) + hhᵀ."""
    rng = np.random.default_rng(seed)
    s, h = np.abs(rng.normal(size=n)), rng.normal(size=n) * 10.0**decades
    if kind == "wide":
        s = 10.0 ** rng.uniform(-8, 8, n)
    elif kind == "zeros":
        s[: n // 3] = 0.0
    elif kind == "equal":
        s[5:20] = s[5]
        s[21:30] = s[21] * (1 + 1e-13 * np.arange(9))
    elif kind == "sparse":
        h *= rng.random(n) < 0.2
    sigma, W = add_row(s, h)
    np.testing.assert_allclose(W.T @ W, np.eye(n), atol=1e-13)
    want = np.linalg.svd(np.vstack((np.diag(s), h)), compute_uv=False)[::-1]
    np.testing.assert_allclose(sigma, want, atol=1e-13 * want[-1])
    M = np.diag(s * s) + np.outer(h, h)
    np.testing.assert_allclose((W * sigma**2) @ W.T, M, atol=3e-13 * np.abs(M).max())


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 30), st.integers(0, 40))
def test_a_basis_grows_by_what_is_new(seed: int, n: int, rank: int) -> None:
    """extend_basis: orthonormal columns that reproduce g, also when g lies almost in the span."""
    rng = np.random.default_rng(seed)
    B = np.linalg.qr(rng.normal(size=(n, min(rank, n))))[0]
    g = B @ rng.normal(size=B.shape[1]) + 10.0 ** rng.uniform(-18, 2) * rng.normal(size=n)
    basis, h = extend_basis(B, g)
    assert basis.shape[1] in (B.shape[1], B.shape[1] + 1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-13)
    np.testing.assert_allclose(basis @ h, g, atol=1e-14 * np.linalg.norm(g))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 60), st.integers(1, 60), DECADES, st.booleans(), st.booleans())
def test_low_rank_is_its_dense_self(
    seed: int, n: int, rank: int, decades: float, shift: bool, dense_core: bool
) -> None:
    """Products, the trace, the largest eigenvalue and sums with a number are those of the matrix written out."""
    rng = np.random.default_rng(seed)
    Q = low_rank(rng, n, min(rank, n), 10.0**decades, shift, dense_core)
    full, x = Q.dense(), rng.normal(size=n)
    size = np.abs(full).max()
    np.testing.assert_array_equal(full, full.T)
    np.testing.assert_allclose(psd.apply(Q, x), full @ x, atol=1e-12 * size * n)
    assert np.all(psd.sizes(Q, np.abs(x)) >= np.abs(full) @ np.abs(x) * (1 - 1e-12))
    assert Q.trace == pytest.approx(np.trace(full), rel=1e-11)
    assert psd.largest(Q) == pytest.approx(np.linalg.eigvalsh(full)[-1], rel=1e-11)
    np.testing.assert_allclose(psd.array(psd.add_scalar(Q, 2 * size)), full + 2 * size * np.eye(n), atol=1e-12 * size)
    np.testing.assert_allclose(np.asarray(3 * Q / 2), 1.5 * full, atol=1e-12 * size)


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(40, 90), DECADES, st.sampled_from(["falling", "flat", "low rank", "one"]))
def test_the_largest_eigenvalue_is_never_too_small(seed: int, n: int, decades: float, kind: str) -> None:
    """A few products with the matrix give an upper bound on the largest eigenvalue, within 1e-12."""
    rng = np.random.default_rng(seed)
    w = {
        "falling": 0.3 ** np.arange(n),
        "flat": rng.uniform(0.9, 1.0, n),
        "low rank": np.where(np.arange(n) < 5, rng.uniform(0.5, 1, n), 0.0),
        "one": np.where(np.arange(n) < 1, 1.0, 0.0),
    }[kind]
    V = np.linalg.qr(rng.normal(size=(n, n)))[0]
    half = V * np.sqrt(w * 10.0**decades)
    Q = half @ half.T
    true = float(np.linalg.eigvalsh(Q)[-1])
    assert true * (1 - 1e-14) <= psd.largest(Q) <= true * (1 + 1e-11)


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(1, 25), st.integers(1, 25), DECADES, DECADES, st.booleans(), st.booleans(), st.booleans())
def test_ball_step_of_low_rank(
    seed: int, n: int, rank: int, weight: float, pull: float, shift: bool, dense_core: bool, twin: bool
) -> None:
    """The step on a ball: as good as with the matrix written out, and its gap is at least what any point gains."""
    rng = np.random.default_rng(seed)
    H = low_rank(rng, n, min(rank, n), 10.0**weight, shift, dense_core)
    radius, center = 10.0 ** rng.uniform(-2, 2), rng.normal(size=n) * float(rng.choice([0.0, 1.0]))
    ball: ConvexSet = LpBall(n, 2, radius, center) if twin else L2Ball(n, radius, center)
    z = 10.0**pull * rng.normal(size=n)
    if rng.random() < 0.5:  # in the range, as FTPRL's own z is
        z = H.apply(z)
    near = ball.vertex(rng.normal(size=n))
    x, gap = (actual := ball.minimise_low_rank(H, z, near)).x, actual.gap
    full = H.dense()
    reach = np.abs(x) + np.abs(center) + radius
    scale = float(reach @ (np.abs(z) + np.abs(full) @ reach))
    other = ball.minimise(full, z, near)
    assert ball.contains(x, 1e-14)
    assert value(full, z, x) <= value(full, z, other.x) + 1e-10 * scale
    slope = full @ x + z
    assert gap >= float(slope @ (x - ball.vertex(slope))) - 1e-12 * scale
    assert gap <= 1e-9 * scale


def test_ball_step_stays_in_directions_without_weight() -> None:
    """Directions without weight in H and z stay where they were, as far as the ball allows."""
    H = LowRank(0.0, np.eye(4)[:, :1], np.array([2.0]))
    near = np.array([0.0, 0.3, -0.2, 0.1])
    x = L2Ball(4).minimise_low_rank(H, np.array([-1.0, 0.0, 0.0, 0.0]), near).x
    np.testing.assert_allclose(x, [0.5, 0.3, -0.2, 0.1], atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(2, 60), DECADES, st.sampled_from([0.0, 0.3]))
def test_full_is_the_root_of_the_sum(seed: int, n: int, decades: float, delta: float) -> None:
    """Full's total after each round is (c/D)(delta I + sum ggᵀ)^{1/2}, and its increments add up to it."""
    rng = np.random.default_rng(seed)
    F, scheme = L2Ball(n), Full(delta=delta * 100.0**decades)
    state, total = scheme.init(F), np.zeros((n, n))
    rows = 10.0**decades * rng.normal(size=(70, n)) * 10.0 ** rng.uniform(-2, 2, n)
    for t, g in enumerate(rows):
        Q, state = scheme.step(state, g)
        total += Q.dense()
        assert scheme.stability(state, g, g) <= scheme.c / 2 * np.linalg.norm(g) * F.diameter() * (1 + 1e-12)
        if t % 23 == 22 or t < 3:
            _, s, V = np.linalg.svd(np.vstack((np.sqrt(scheme.delta) * np.eye(n), rows[: t + 1])))
            want = (V.T[:, : len(s)] * s) @ V[: len(s)] * scheme.c / F.diameter()
            np.testing.assert_allclose(psd.array(state.total), want, atol=1e-12 * s[0])
            np.testing.assert_allclose(total, want, atol=1e-12 * s[0])


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(2, 15), st.integers(1, 8), DECADES)
def test_sketch_is_frequent_directions(seed: int, n: int, rank: int, decades: float) -> None:
    """Sketch against frequent directions with dense matrices, over many compressions."""
    rng = np.random.default_rng(seed)
    F, scheme = L2Ball(n), Sketch(rank)
    state, FD, escaped = scheme.init(F), np.zeros((n, n)), 0.0
    before = np.zeros((n, n))
    for g in 10.0**decades * rng.normal(size=(40, n)) * 10.0 ** rng.uniform(-1, 1, n):
        Q, state = scheme.step(state, g)
        w, V = np.linalg.eigh(FD + np.outer(g, g))
        cut = max(float(w[-rank]), 0.0) if rank <= n else 0.0
        FD, escaped = (V * np.maximum(w - cut, 0.0)) @ V.T, escaped + cut
        want = psd.root(FD + escaped * np.eye(n)) * scheme.c / F.diameter()
        size = np.abs(want).max()
        np.testing.assert_allclose(psd.array(state.total), want, atol=2e-7 * size)
        np.testing.assert_allclose(psd.array(state.total) - before, Q.dense(), atol=1e-12 * size)
        assert np.linalg.eigvalsh(Q.dense())[0] >= -1e-12 * size
        assert state.B.shape[1] <= 2 * rank + 1
        before = psd.array(state.total)


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 30), st.integers(1, 30), DECADES, DECADES)
def test_box_step_by_pivots(seed: int, n: int, rank: int, weight: float, pull: float) -> None:
    """A full matrix on a box by pivots: feasible, as good as the solver's point, and with a valid gap."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(n, min(rank, n))) * 10.0 ** (weight / 2)
    H = half @ half.T
    low = rng.normal(size=n)
    box = Box(low, low + 10.0 ** rng.uniform(-3, 3, n) * (rng.random(n) < 0.9))
    z = 10.0**pull * rng.normal(size=n)
    inside = rng.random() < 0.7  # FTPRL's own z is in the range of H; without that it is nearly a linear program
    if inside:
        z = H @ z
    near = box.vertex(rng.normal(size=n))
    actual = box.minimise(H, z, near)
    solved = minimise_conic(box, H, z, near)
    reach = np.abs(low) + box.widths()
    scale = float(reach @ (np.abs(z) + np.abs(H) @ reach))
    assert box.violation(actual.x) <= 1e-15
    assert value(H, z, actual.x) <= value(H, z, solved.x) + 1e-9 * scale
    slope = H @ actual.x + z
    assert actual.gap >= float(slope @ (actual.x - box.vertex(slope))) - 1e-13 * scale
    assert actual.gap <= (1e-11 if inside else 1e-6) * scale


@pytest.mark.parametrize("scheme", [Full(), Full(delta=0.5), Sketch(3), Sketch(40)], ids=repr)
@pytest.mark.parametrize("F", [L2Ball(30, 2.0, np.full(30, 0.1)), Box(-1, 2, dim=30)], ids=repr)
def test_games_with_low_rank_matrices(F: ConvexSet, scheme: Scheme) -> None:
    """A whole game, past the rank of the set: the chain of bounds holds, and plays lie in the set."""
    rng = np.random.default_rng(3)
    game = Game(FTPRL(F, scheme))
    for _ in range(45):
        assert F.contains(game.x, 1e-14)
        game.observe(rng.normal(size=30) * np.linspace(0.1, 3, 30) + 0.1)
    c = game.certificate()
    assert c.tight is not None
    assert c.bound is not None
    assert c.worst_case is not None
    assert c.closed_form_strong is not None
    assert 0 < c.regret <= c.tight <= c.bound <= c.worst_case
    assert c.bound <= c.closed_form_strong * (1 + 1e-9)
    assert c.tight - c.regret <= game.ledger.delta + game.ledger.regularisation(game.state.total, c.comparator)


@settings(max_examples=80, deadline=None)
@given(SEEDS, st.integers(2, 25), DECADES, DECADES, st.sampled_from([0.0, 2.0, 8.0]))
def test_ellipsoid_step_along_its_axes(seed: int, n: int, weight: float, pull: float, decades: float) -> None:
    """A multiple of I on an ellipsoid: as good as the ball's step with a full matrix, and with a valid gap."""
    rng = np.random.default_rng(seed)
    a, b = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    A = a @ np.diag(10.0 ** rng.uniform(-decades / 2, decades / 2, n)) @ b
    F = Ellipsoid(A, rng.normal(size=n) * float(rng.choice([0.0, 1.0])))
    q, z, near = 10.0**weight, 10.0**pull * rng.normal(size=n), F.start()
    actual = F.minimise(np.asarray(q), z, near)
    other = F.minimise(q * np.eye(n), z, near)
    reach = np.abs(F.center) + F.widths()
    scale = float(reach @ (np.abs(z) + q * reach))
    assert F.violation(actual.x) == 0.0
    assert value(q * np.eye(n), z, actual.x) <= value(q * np.eye(n), z, other.x) + 1e-10 * scale
    slope = q * actual.x + z
    assert actual.gap >= float(slope @ (actual.x - F.vertex(slope))) - 10.0 ** (decades - 16) * n * scale
    assert actual.gap <= 10.0 ** (decades - 14) * n * scale


CUTS: dict[str, Callable[[np.random.Generator, int, float], Intersection]] = {
    "ball": lambda r, n, s: Intersection(
        LpBall(n, float(r.choice([1.0, 1.3, 2.0, 3.0, 20.0, np.inf])), s, s * r.normal(size=n) * 0.1),
        Box(s * r.uniform(-0.9, 0.3, n) / n**0.5, s * r.uniform(0.3, 2, n)),
    ),
    "simplex": lambda r, n, s: Intersection(
        Simplex(n, s), Box(s * r.uniform(-0.5, 0.9, n) / n, s * r.uniform(1, 3, n) / n)
    ),
    "capped": lambda r, n, s: Intersection(
        CappedSimplex(n, s * r.uniform(1.2, 3) / n, s), Box(s * r.uniform(-0.5, 0.9, n) / n, np.inf)
    ),
    "half-space": lambda r, n, s: Intersection(
        Halfspace(np.where(r.random(n) < 0.3, 0.0, r.normal(size=n)) + np.eye(n)[0], s * r.uniform(0, 0.3)),
        Box(-s * r.uniform(0.1, 1, n), s * r.uniform(0.1, 1, n)),
    ),
    "box": lambda r, n, s: Intersection(Box(-s, s * r.uniform(0.1, 1, n)), Box(-s * r.uniform(0.1, 2, n), s)),
}


@settings(max_examples=100, deadline=None)
@given(SEEDS, st.integers(1, 12), DECADES, st.sampled_from(sorted(CUTS)))
def test_ranges_of_a_cut_set(seed: int, n: int, decades: float, kind: str) -> None:
    """Closed-form ranges equal 2n linear programs, and the start has room on every side that has any."""
    rng = np.random.default_rng(seed)
    F = CUTS[kind](rng, n, 10.0**decades)
    low, high = F.bounds()
    for i, e in enumerate(np.eye(n)):
        assert low[i] == pytest.approx(F.vertex(e)[i], rel=1e-9, abs=1e-11 * 10.0**decades)
        assert high[i] == pytest.approx(F.vertex(-e)[i], rel=1e-9, abs=1e-11 * 10.0**decades)
    start = F.start()
    assert F.violation(start) <= 1e-15
    wide = high - low > 1e-6 * 10.0**decades
    assert np.all((start - low)[wide] >= 1e-3 / n * (high - low)[wide])
    assert np.all((high - start)[wide] >= 1e-3 / n * (high - low)[wide])


def test_a_large_cut_set_is_built_without_programs() -> None:
    """n = 10,000 with widths and start; the limit on time is the benchmark's."""
    F = Intersection(L2Ball(10_000), Box(-0.001, 0.6, dim=10_000))
    assert F.contains(F.start(), 0.0)
    np.testing.assert_allclose(F.widths(), 0.601)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(10, 16), st.integers(4, 30), st.floats(-6, 6), st.booleans())
def test_widths_by_walks(seed: int, n: int, faces: int, decades: float, equality: bool) -> None:
    """The ranges of a polytope's coordinates against one linear program from the start for each."""
    rng = np.random.default_rng(seed)
    C = np.vstack((rng.normal(size=(faces, n)), np.eye(n), -np.eye(n)))
    d = 10.0**decades * np.concatenate((rng.uniform(0.3, 1.5, faces), rng.choice([1.0, 2.0], 2 * n)))
    A = rng.normal(size=(1, n)) if equality else None
    P = Polytope(C, d, A, None if A is None else np.zeros(1))
    low, high = P.bounds()
    for i, e in enumerate(np.eye(n)):
        for sign, actual in ((1.0, low[i]), (-1.0, high[i])):
            status, x = linear_program(sign * e, P.C, P.d, P.A_eq, P.b_eq)
            assert status == "optimal"
            assert actual == pytest.approx(x[i], abs=1e-8 * 10.0**decades)
            assert sign * actual <= sign * x[i] + 1e-12 * 10.0**decades  # outwards, if anything


def test_walks_find_the_corners_of_a_cube() -> None:
    """On a cube, every corner is nondegenerate and optimal for many objectives: each end is exact."""
    n = 12
    P = Polytope(np.vstack((np.eye(n), -np.eye(n), np.ones((1, n)))), np.concatenate((np.ones(2 * n), [n])))
    np.testing.assert_allclose(P.widths(), 2.0, atol=1e-14)


def test_one_program_from_the_start_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first corner walks find every end: HiGHS solves one program for 40 ends."""
    asked = []
    right = linear.solve_linear
    monkeypatch.setattr(linear, "solve_linear", lambda *a: asked.append(1) or right(*a))
    half = np.random.default_rng(0).normal(size=(40, 20))
    assert np.all(Polytope(np.vstack((half, -half)), np.ones(80)).widths() > 0)
    assert len(asked) == 1


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.integers(2, 4), st.integers(1, 6), st.floats(-6, 6))
def test_john_against_a_semidefinite_program(seed: int, n: int, faces: int, decades: float) -> None:
    """The smallest ellipsoid around the differences: contains them, and no larger than CVXPY's."""
    import cvxpy as cp

    rng = np.random.default_rng(seed)
    C = np.vstack((rng.normal(size=(faces, n)), np.eye(n), -np.eye(n)))
    P = Polytope(C, 10.0**decades * rng.uniform(0.5, 1.5, len(C)))
    V = P.difference_vertices()
    A = john(P)
    assert np.linalg.norm(V @ A.T, axis=1).max() <= 1 + 1e-12
    B = cp.Variable((n, n), PSD=True)
    cp.Problem(cp.Maximize(cp.log_det(B)), [cp.norm(B @ v) <= 1 for v in V / 10.0**decades]).solve(solver=cp.CLARABEL)
    want = float(np.linalg.slogdet(B.value)[1]) - n * decades * np.log(10.0)
    assert float(np.linalg.slogdet(A)[1]) >= want - 1e-5 * n
