"""The schemes: their totals, their equivalents, and the naive twin that plays from the definition."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ftprl import FTPRL, Game, Preconditioned, best_bound, john, psd
from ftprl.schemes import BestBound, CoordinateConstant, Diagonal, Fixed, Full, Sketch
from ftprl.sets import Box, ConvexSet, Ellipsoid, L1Ball, L2Ball, LpBall, Polytope, Preimage, Simplex
from oracles.naive import best_bound_total, const_total, diagonal_total, full_total, outer_sum, play
from oracles.posthoc import minimum, opt_diagonal
from oracles.zoo import KINDS, ROOT2, SETS, SOME_PAIRS, gradients, run, schemes

SEEDS = st.integers(0, 2**32 - 1)
MANY = settings(max_examples=50, deadline=None)


@pytest.mark.parametrize(("set_name", "scheme"), SOME_PAIRS)
def test_totals_never_fall(set_name: str, scheme: str) -> None:
    """Q_t >= 0: every scheme's total is non-decreasing, and the increments add up to it."""
    F = SETS[set_name]
    for i, kind in enumerate(KINDS):
        played = run(FTPRL(F, schemes(2.0)[scheme]), gradients(kind, F, 10, i))
        for t, total in enumerate(played.totals):
            size = 1e-12 + psd.largest(total)
            assert np.linalg.eigvalsh(played.naive.Q[t])[0] >= -1e-7 * size
            np.testing.assert_allclose(played.naive.total(t + 1), psd.dense(total, F.dim), atol=1e-12 * size)


@MANY
@given(SEEDS, st.sampled_from([2.0, ROOT2]))
def test_totals_are_the_formulas(seed: int, c: float) -> None:
    """Const, Diag and Full: Q_{1:t} is the literal formula in g_1..g_t."""
    rng = np.random.default_rng(seed)
    F = Box(-rng.random(3), rng.random(3))
    gs = rng.normal(size=(12, 3)) * 10.0 ** rng.uniform(-3, 3, size=3)
    want = {
        CoordinateConstant(c): const_total(gs, F.diameter(), c),
        Diagonal(c): diagonal_total(gs, F.widths(), c),
        Full(c, delta=0.3): full_total(gs, F.diameter(), c, 0.3),
    }
    for scheme, total in want.items():
        state = scheme.init(F)
        for g in gs:
            _, state = scheme.step(state, g)
        np.testing.assert_allclose(psd.dense(state.total, 3), total, rtol=1e-9, atol=1e-9 * np.abs(total).max())


@pytest.mark.parametrize("name", ["box", "l2", "lp3", "lp1.5", "simplex", "axis ellipsoid"])
def test_best_bound_total_is_the_optimum(name: str) -> None:
    """Follow the best bound: Q_{1:t} = b Q*_t, with Q*_t as CVXPY finds it."""
    F = SETS[name]
    gs = np.random.default_rng(1).normal(size=(4, F.dim))
    state = BestBound(b=1.3).init(F)
    for t, g in enumerate(gs):
        _, state = BestBound(b=1.3).step(state, g)
        want = best_bound_total(gs[: t + 1], lambda G: opt_diagonal(F, G)[1], 1.3)
        G = (gs[: t + 1] ** 2).sum(axis=0)
        mine, theirs = state.total / 1.3, np.diagonal(want) / 1.3
        value = 0.5 * F.sq_diameter(mine) + (G / mine).sum()
        assert value <= 0.5 * F.sq_diameter(theirs) + (G / theirs).sum() + 1e-9
        if name in ("box", "lp3"):  # where the optimum is unique
            np.testing.assert_allclose(mine, theirs, rtol=1e-3)


TWINS = [(s, k) for s in ("box", "l2", "l1", "lp3", "simplex", "ellipsoid", "polytope") for k in ("c", "d", "f")]


@pytest.mark.parametrize(("name", "kind"), TWINS)
def test_naive_twin(name: str, kind: str) -> None:
    """The update: FTPRL from its definition, with CVXPY for every argmin, plays the same points."""
    F = SETS[name]
    gs = np.random.default_rng(3).normal(size=(4, F.dim))
    scheme, total = {
        "c": (CoordinateConstant(), lambda h: const_total(h, F.diameter(), 2.0)),
        "d": (Diagonal(), lambda h: diagonal_total(h, F.widths(), 2.0)),
        "f": (Full(delta=1.0), lambda h: full_total(h, F.diameter(), 2.0, 1.0)),
    }[kind]
    twin = play(gs, F.start(), total, lambda Q, h: minimum(F, Q, h)[1])
    game = Game(FTPRL(F, scheme))
    for t, g in enumerate(gs):
        np.testing.assert_allclose(game.x, twin.x[t], atol=2e-4)
        game.observe(g)
    made = game.certificate()
    x = made.comparator
    assert made.regret == pytest.approx(twin.regret(x), abs=1e-3)
    assert made.bound == pytest.approx(twin.r(x, 4) + 0.5 * twin.stability(), rel=1e-3)


@MANY
@given(SEEDS, st.sampled_from([2.0, ROOT2]))
def test_diagonal_is_ftrl_proximal(seed: int, c: float) -> None:
    """Diag(c) = FTRL-Proximal with alpha = D/c, beta = 0, and a clip, as its usual code is written."""
    rng = np.random.default_rng(seed)
    n, lower = 4, rng.normal(size=4)
    F = Box(lower, lower + rng.exponential(size=4) + 0.01)
    game = Game(FTPRL(F, Diagonal(c)))
    alpha, z, N, w = F.widths() / c, np.zeros(n), np.zeros(n), F.start()
    for _ in range(25):
        g = np.where(rng.random(n) < 0.5, rng.normal(size=n), 0.0)
        game.observe(g)
        sigma = (np.sqrt(N + g * g) - np.sqrt(N)) / alpha
        z += g - sigma * w
        N += g * g
        free = np.divide(-alpha * z, np.sqrt(N), out=w.copy(), where=N > 0)
        w = np.clip(free, F.lower, F.upper)
        np.testing.assert_allclose(game.x, w, atol=1e-9 * (1 + np.abs(lower).max()))


@MANY
@given(SEEDS)
def test_diagonal_inside_is_adagrad(seed: int) -> None:
    """Diag that never meets a bound is AdaGrad: x -= g D/(c sqrt G)."""
    rng = np.random.default_rng(seed)
    game, G, x = Game(FTPRL(Box(-50, 50, dim=3), Diagonal(200.0))), np.zeros(3), np.zeros(3)
    for _ in range(20):
        g = rng.normal(size=3)
        game.observe(g)
        G += g * g
        x = x - g * 100 / (200 * np.sqrt(G))
        np.testing.assert_allclose(game.x, x, atol=1e-9)


@MANY
@given(SEEDS, st.sampled_from([2.0, ROOT2]))
def test_scale_is_ftprl_with_multiples_of_AtA(seed: int, c: float) -> None:
    """FTPRL-Scale = FTPRL on {|Ax| <= 1} with Q_t = alpha_t A'A, for a non-symmetric A too."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    assume(np.linalg.cond(A) < 1e3)  # A'A has the square of it, and the play against it loses as many digits
    inverse = np.linalg.inv(A)
    roots = [0.0]

    def rule(t: int, g: np.ndarray) -> np.ndarray:
        roots.append(math.hypot(roots[-1], float(np.linalg.norm(inverse.T @ g))))
        return c * (roots[-1] - roots[-2]) / 2 * (A.T @ A)

    scale = Game(Preconditioned(A, FTPRL(L2Ball(3), CoordinateConstant(c))))
    direct = Game(FTPRL(Ellipsoid(A), Fixed(rule)))
    for g in rng.normal(size=(15, 3)):
        scale.observe(g)
        direct.observe(g)
        np.testing.assert_allclose(scale.x, direct.x, atol=1e-8 * np.abs(inverse).max())
    mine, theirs = scale.certificate(), direct.certificate()
    for name in ("regret", "tight", "bound", "theorem", "worst_case"):
        assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-6, abs=1e-8)
    assert mine.closed_form <= (c + 4 / c) * roots[-1] * (1 + 1e-12)


@MANY
@given(SEEDS)
def test_const_on_a_ball(seed: int) -> None:
    """Const on a centred L2 ball: x = v/max(a, |v|/R) with v = q - S, the sparse recursion; regret <= 2 D sqrt G."""
    rng = np.random.default_rng(seed)
    R = float(rng.exponential() + 0.1)
    game, v, G, x = Game(FTPRL(L2Ball(3, R), CoordinateConstant())), np.zeros(3), 0.0, np.zeros(3)
    for _ in range(20):
        g = rng.normal(size=3) * (rng.random(3) < 0.5)
        a, G = math.sqrt(G) / R, G + float(g @ g)
        v = v + (math.sqrt(G) / R - a) * x - g
        if G:
            x = v / max(math.sqrt(G) / R, float(np.linalg.norm(v)) / R)
        game.observe(g)
        np.testing.assert_allclose(game.x, x, atol=1e-9 * R)
    assert game.certificate().closed_form == pytest.approx(4 * R * math.sqrt(G))


@pytest.mark.parametrize("name", ["box", "l2", "simplex", "polytope"])
def test_a_wide_sketch_is_full(name: str) -> None:
    """Sketch with rank > n is Full: nothing escapes."""
    F = SETS[name]
    full, sketch = Game(FTPRL(F, Full())), Game(FTPRL(F, Sketch(F.dim + 1)))
    for g in np.random.default_rng(2).normal(size=(12, F.dim)):
        full.observe(g)
        sketch.observe(g)
        np.testing.assert_allclose(full.state.total, sketch.state.total, atol=1e-7)
        if name != "box":  # there the first rounds have many minimisers, and any will do
            np.testing.assert_allclose(full.x, sketch.x, atol=1e-5)


@MANY
@given(SEEDS, st.integers(1, 5))
def test_sketch_dominates(seed: int, rank: int) -> None:
    """Sketch: Gbar_t >= Gbar_{t-1} + g g' and Gbar_t >= GG_t; its bound is sqrt2 D tr Gbar^{1/2} at c = sqrt 2."""
    rng = np.random.default_rng(seed)
    F, scheme = L2Ball(5), Sketch(rank, ROOT2)
    state = scheme.init(F)
    gs = rng.normal(size=(15, 5)) @ np.diag(10.0 ** rng.uniform(-1, 1, size=5))
    before = np.zeros((5, 5))
    for t, g in enumerate(gs):
        _, state = scheme.step(state, g)
        root = psd.array(state.total) * 2 / ROOT2
        Gbar = root @ root
        size = psd.largest(Gbar)
        assert np.linalg.eigvalsh(Gbar - before - np.outer(g, g))[0] >= -1e-9 * size
        assert np.linalg.eigvalsh(Gbar - outer_sum(gs[: t + 1]))[0] >= -1e-9 * size
        before = Gbar
        bound = ROOT2 * 2 * float(np.trace(root))
        assert scheme.closed_form(state).strong == pytest.approx(bound)
        full = float(np.trace(psd.root(outer_sum(gs[: t + 1]))))
        assert bound <= ROOT2 * 2 * (full + 5 * math.sqrt(state.escaped)) * (1 + 1e-9)


def test_bounds_are_ordered_on_a_box() -> None:
    """On a box bound(Diag) <= bound(Const) <= bound(Full): full matrices never help the a-priori bound."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        F = Box(-rng.random(4), rng.random(4))
        forms = []
        gs = rng.normal(size=(20, 4)) @ rng.normal(size=(4, 4))
        for scheme in (Diagonal(), CoordinateConstant(), Full()):
            state = scheme.init(F)
            for g in gs:
                _, state = scheme.step(state, g)
            forms.append(scheme.closed_form(state).strong)
        assert forms == sorted(forms)


JOHN: dict[str, ConvexSet] = {
    "box": Box([-1.0, 0.0, 0.0], [1.0, 0.2, 5.0]),
    "l1": L1Ball(3, 0.5),
    "l2": L2Ball(3, 2.0),
    "lp3": LpBall(3, 3.0),
    "ellipsoid": SETS["ellipsoid"],
    "polytope": SETS["polytope"],
    "preimage l1": SETS["preimage l1"],
}


@pytest.mark.parametrize("name", JOHN)
def test_john_sandwich(name: str) -> None:
    """John scaling: |A y| <= 1 on Fsym, and the ellipsoid shrunk by sqrt n lies inside Fsym."""
    F = JOHN[name]
    A = john(F)
    inverse = np.linalg.inv(A)
    rng = np.random.default_rng(0)
    for u in rng.normal(size=(100, 3)):
        y = F.vertex(-u) - F.vertex(u)
        assert np.linalg.norm(A @ y) <= 1 + 1e-6
        assert float(u @ y) >= np.linalg.norm(inverse.T @ u) / math.sqrt(3) * (1 - 1e-5)


@pytest.mark.parametrize("name", ["box", "l1", "polytope", "preimage l1", "l2", "ellipsoid"])
def test_john_competes_with_full_matrices(name: str) -> None:
    """John scaling: Regret <= 2 sqrt(tr W GG), and B_R <= sqrt(2n) OPT_full."""
    F = JOHN[name]
    A = john(F)
    learner = Preconditioned(A, FTPRL(Preimage(np.linalg.inv(A), F), CoordinateConstant(diameter=1.0)))
    for seed in range(3):
        gs = np.random.default_rng(seed).normal(size=(10, 3)) * [1.0, 0.1, 3.0]
        game = Game(learner)
        for g in gs:
            game.observe(g)
        made, GG = game.certificate(), outer_sum(gs)
        W = np.linalg.inv(A.T @ A)
        assert made.closed_form == pytest.approx(2 * math.sqrt(float(np.trace(W @ GG))))
        OPT = best_bound(F, "full", np.diagonal(GG), GG, program=True).value
        assert made.worst_case <= math.sqrt(6) * OPT * (1 + 1e-5)


def test_black_box_transform() -> None:
    """Black-box transform: same losses and regret; OPT_full is the same in both coordinates, OPT_diag is not."""
    A = np.array([[1.0, 0.9], [0.0, 0.4]])
    inner = FTPRL(L1Ball(2), Diagonal())
    outer, hat = Game(Preconditioned(A, inner), full=True), Game(inner, full=True)
    inverse = np.linalg.inv(A)
    gs = np.random.default_rng(1).normal(size=(12, 2))
    for g in gs:
        np.testing.assert_allclose(A @ outer.x, hat.x, atol=1e-12)
        assert float(g @ outer.x) == pytest.approx(float((inverse.T @ g) @ hat.x), abs=1e-12)
        outer.observe(g)
        hat.observe(inverse.T @ g)
    assert outer.certificate().regret == pytest.approx(hat.certificate().regret)
    GG, hats = outer_sum(gs), outer_sum(gs @ inverse)
    F = Preimage(A, L1Ball(2))
    values = [
        [best_bound(s, family, np.diagonal(M), M, program=True).value for s, M in ((F, GG), (L1Ball(2), hats))]
        for family in ("full", "diagonal")
    ]
    assert values[0][0] == pytest.approx(values[0][1], rel=1e-6)
    assert abs(values[1][0] / values[1][1] - 1) > 0.05


def test_scale_beats_const_on_a_flat_ellipsoid() -> None:
    """Comparison example: on A = diag(1/a), max a = 1, Scale's bound 4 sqrt(sum a²G) is never above Const's."""
    a = np.array([1.0, 0.1, 0.01])
    gs = np.random.default_rng(0).normal(size=(20, 3))
    scale = Game(Preconditioned(np.diag(1 / a), FTPRL(L2Ball(3), CoordinateConstant())))
    const = Game(FTPRL(Ellipsoid(np.diag(1 / a)), CoordinateConstant()))
    for g in gs:
        scale.observe(g)
        const.observe(g)
    G = (gs**2).sum(axis=0)
    assert scale.certificate().closed_form == pytest.approx(4 * math.sqrt(float(a**2 @ G)))
    assert const.certificate().closed_form == pytest.approx(4 * math.sqrt(float(G.sum())))


def test_simplex_and_polytope_agree() -> None:
    """One set in two descriptions: the simplex and the polytope of its rows have equal plays."""
    twin = Polytope(-np.eye(3), np.zeros(3), np.ones((1, 3)), [1.0])
    start = np.full(3, 1 / 3)
    games = [Game(FTPRL(F, CoordinateConstant(diameter=ROOT2), start)) for F in (Simplex(3), twin)]
    for g in np.random.default_rng(3).normal(size=(15, 3)):
        for game in games:
            game.observe(g)
        np.testing.assert_allclose(games[0].x, games[1].x, atol=1e-7)
