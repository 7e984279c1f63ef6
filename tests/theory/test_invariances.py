"""Invariances: units, scales, positions, orders, shards; and edge cases of the problem."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ftprl import FTPRL, Game, InvalidInput, Preconditioned
from ftprl.schemes import BestBound, CoordinateConstant, Diagonal, Full, Scheme
from ftprl.sets import Box, ConvexSet, Ellipsoid, L1Ball, L2Ball, LpBall, Product, Simplex
from oracles.zoo import SETS, SOME_PAIRS, gradients, random_point, run, schemes

SEEDS = st.integers(0, 2**32 - 1)
SOME = settings(max_examples=30, deadline=None)
FIELDS = ("regret", "tight", "bound", "theorem", "worst_case", "closed_form", "closed_form_strong")


def played(learner: FTPRL | Preconditioned, gs: np.ndarray) -> tuple[np.ndarray, Game]:
    """Return all points played, including the last, and the game."""
    game = Game(learner)
    plays = [game.x]
    for g in gs:
        game.observe(g)
        plays.append(game.x)
    return np.array(plays), game


def assert_same_certificate(a: Game, b: Game, scale: float = 1.0, rel: float = 1e-7) -> None:
    """Check that every number of the second certificate is `scale` times the first's."""
    one, two = a.certificate(), b.certificate()
    for name in FIELDS:
        if getattr(one, name) is not None:
            assert getattr(two, name) == pytest.approx(scale * getattr(one, name), rel=rel, abs=1e-9 * scale)


def sparse(rng: np.random.Generator, T: int, n: int) -> np.ndarray:
    """Return gradients with zeros in them."""
    return np.where(rng.random((T, n)) < 0.6, rng.normal(size=(T, n)), 0.0)


@SOME
@given(SEEDS)
def test_gradient_units_per_coordinate(seed: int) -> None:
    """Diag: g_i -> s_i g_i, s_i > 0, changes no play; with powers of two not one bit."""
    rng = np.random.default_rng(seed)
    F, gs = Box(-rng.random(4), rng.random(4)), sparse(rng, 20, 4)
    plain, _ = played(FTPRL(F, Diagonal()), gs)
    np.testing.assert_array_equal(plain, played(FTPRL(F, Diagonal()), gs * 2.0 ** rng.integers(-30, 30, size=4))[0])
    any_scale, _ = played(FTPRL(F, Diagonal()), gs * 10.0 ** rng.uniform(-6, 6, size=4))
    np.testing.assert_allclose(any_scale, plain, atol=1e-9)


@pytest.mark.parametrize(("set_name", "scheme"), [p for p in SOME_PAIRS if p[1] not in ("fixed", "full delta")])
def test_global_gradient_scale(set_name: str, scheme: str) -> None:
    """Every scheme without an offset: g -> s g changes no play and multiplies every bound by s."""
    F = SETS[set_name]
    gs = np.random.default_rng(1).normal(size=(8, F.dim))
    plain, one = played(FTPRL(F, schemes(2.0)[scheme]), gs)
    scaled, two = played(FTPRL(F, schemes(2.0)[scheme]), gs * 2.0**12)
    np.testing.assert_allclose(scaled, plain, atol=2e-5)
    assert_same_certificate(one, two, 2.0**12, 1e-5)


@SOME
@given(SEEDS)
def test_units_of_the_points(seed: int) -> None:
    """Diag: F -> F/s with g -> s g gives x/s and the same regret and bounds."""
    rng = np.random.default_rng(seed)
    lower, D, s = rng.normal(size=3), rng.exponential(size=3), 10.0 ** rng.uniform(-3, 3, size=3)
    gs = sparse(rng, 15, 3)
    one, a = played(FTPRL(Box(lower, lower + D), Diagonal()), gs)
    two, b = played(FTPRL(Box(lower / s, (lower + D) / s), Diagonal()), gs * s)
    np.testing.assert_allclose(two * s, one, atol=1e-7)
    assert_same_certificate(a, b)


@SOME
@given(SEEDS)
def test_rotation(seed: int) -> None:
    """Const on an L2 ball rotates with the gradients; Scale is unchanged under A -> R A."""
    rng = np.random.default_rng(seed)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    gs = sparse(rng, 15, 3)
    for scheme in (CoordinateConstant(), Full(delta=0.1)):
        one, a = played(FTPRL(L2Ball(3), scheme), gs)
        two, b = played(FTPRL(L2Ball(3), scheme), gs @ R.T)
        np.testing.assert_allclose(two, one @ R.T, atol=1e-6)
        assert_same_certificate(a, b)
    A = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    inner = FTPRL(L2Ball(3), CoordinateConstant())
    one, a = played(Preconditioned(A, inner), gs)
    two, b = played(Preconditioned(R @ A, inner), gs)
    np.testing.assert_allclose(two, one, atol=1e-6 * np.abs(one).max() + 1e-9)
    assert_same_certificate(a, b)


MOVABLE = {
    "box": lambda c: Box(c - np.array([1.0, 0.2, 3.0]), c + np.array([0.5, 0.2, 1.0])),
    "l2": lambda c: L2Ball(3, 0.7, c),
    "l1": lambda c: L1Ball(3, 1.2, c),
    "lp4": lambda c: LpBall(3, 4.0, 1.0, c),
    "ellipsoid": lambda c: Ellipsoid([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0], [0.3, 0.0, 1.0]], c),
}


@pytest.mark.parametrize("scheme", [CoordinateConstant(), Diagonal(), Full(delta=0.1)])
@pytest.mark.parametrize("name", MOVABLE)
def test_translation(name: str, scheme: Scheme) -> None:
    """F -> F + c with x_1 -> x_1 + c moves the plays and nothing else."""
    rng = np.random.default_rng(4)
    c, gs = rng.normal(size=3), rng.normal(size=(10, 3))
    here, there = MOVABLE[name](np.zeros(3)), MOVABLE[name](c)
    start = random_point(here, rng)
    one, a = played(FTPRL(here, scheme, start), gs)
    two, b = played(FTPRL(there, scheme, start + c), gs)
    np.testing.assert_allclose(two - c, one, atol=2e-5)
    assert_same_certificate(a, b, rel=1e-4)


@pytest.mark.parametrize("scheme", [CoordinateConstant(), Diagonal(), BestBound()])
@pytest.mark.parametrize("F", [L2Ball(4), L1Ball(4), LpBall(4, 3.0), Simplex(4), Box(-1, 1, dim=4)], ids=repr)
def test_permutation(F: ConvexSet, scheme: Scheme) -> None:
    """The order of the coordinates does not matter."""
    rng = np.random.default_rng(5)
    order, gs = rng.permutation(4), sparse(rng, 15, 4)
    one, a = played(FTPRL(F, scheme), gs)
    two, b = played(FTPRL(F, scheme), gs[:, order])
    np.testing.assert_allclose(two, one[:, order], atol=1e-7)
    assert_same_certificate(a, b)


@SOME
@given(SEEDS)
def test_sharding(seed: int) -> None:
    """Diag on a product: each shard alone plays the same points, and every number adds up over the shards."""
    rng = np.random.default_rng(seed)
    parts = (Box(-1, 1, dim=2), L2Ball(3), Simplex(2))
    gs = sparse(rng, 12, 7)
    whole, game = played(FTPRL(Product(*parts), Diagonal()), gs)
    sums = dict.fromkeys(FIELDS, 0.0)
    for F, block in zip(parts, Product(*parts).blocks, strict=True):
        plays, shard = played(FTPRL(F, Diagonal()), gs[:, block])
        np.testing.assert_array_equal(plays, whole[:, block])
        for name in FIELDS:
            sums[name] += getattr(shard.certificate(), name)
    for name in FIELDS:
        assert getattr(game.certificate(), name) == pytest.approx(sums[name], rel=1e-9, abs=1e-12)


@SOME
@given(SEEDS)
def test_lazy_is_dense(seed: int) -> None:
    """Diag on a box: x_i is a function of (z_i, G_i), so coordinates without gradients need no update."""
    rng = np.random.default_rng(seed)
    F = Box(-rng.random(6), rng.random(6))
    game, D = Game(FTPRL(F, Diagonal())), F.widths()
    z, G, x = np.zeros(6), np.zeros(6), F.start()
    for _ in range(20):
        g = np.where(rng.random(6) < 0.3, rng.normal(size=6), 0.0)
        for i in np.flatnonzero(g):
            new = G[i] + g[i] ** 2
            z[i] += g[i] - 2 / D[i] * g[i] ** 2 / (math.sqrt(G[i]) + math.sqrt(new)) * x[i]
            G[i] = new
            x[i] = min(max(-z[i] * D[i] / (2 * math.sqrt(new)), F.lower[i]), F.upper[i])
        before = game.x
        game.observe(g)
        np.testing.assert_array_equal(game.x[g == 0], before[g == 0])
        np.testing.assert_allclose(game.x, x, atol=1e-12)


@pytest.mark.parametrize(("set_name", "scheme"), SOME_PAIRS)
def test_nothing_played(set_name: str, scheme: str) -> None:
    """T = 0: regret and every bound are 0."""
    made = Game(FTPRL(SETS[set_name], schemes(2.0)[scheme])).certificate()
    assert made.rounds == 0
    assert all(
        getattr(made, name) in (None, 0.0) for name in FIELDS if name not in ("closed_form", "closed_form_strong")
    )


@pytest.mark.parametrize(("set_name", "scheme"), [p for p in SOME_PAIRS if p[1] not in ("fixed", "full delta")])
def test_zero_rounds_change_nothing(set_name: str, scheme: str) -> None:
    """Zero gradients, before and between: no play moves and no number changes."""
    F = SETS[set_name]
    rng = np.random.default_rng(3)
    gs = rng.normal(size=(4, F.dim))
    quiet = np.zeros(F.dim)
    _, plain = played(FTPRL(F, schemes(2.0)[scheme]), gs)
    plays, padded = played(
        FTPRL(F, schemes(2.0)[scheme]), np.array([quiet, quiet, gs[0], quiet, gs[1], gs[2], quiet, gs[3]])
    )
    np.testing.assert_allclose(plays[0], plays[2], atol=1e-12)
    np.testing.assert_allclose(plays[3], plays[4], atol=1e-6)
    assert_same_certificate(plain, padded, rel=1e-5)


@pytest.mark.parametrize(
    "F", [Box(-1, 2), L2Ball(1), L1Ball(1, 2.0), LpBall(1, 3.0), Simplex(1), Ellipsoid([[2.0]])], ids=repr
)
def test_one_dimension(F: ConvexSet) -> None:
    """n = 1: all schemes are one, and a single point has no regret."""
    gs = np.random.default_rng(0).normal(size=(10, 1))
    runs = [played(FTPRL(F, scheme), gs) for scheme in (CoordinateConstant(), Diagonal(), Full())]
    for plays, game in runs:
        np.testing.assert_allclose(plays, runs[0][0], atol=1e-5)
        made = game.certificate()
        assert made.regret <= made.bound + 1e-12
        if isinstance(F, Simplex):
            assert made.regret == pytest.approx(0.0, abs=1e-12)
            assert made.closed_form == 0.0


@SOME
@given(SEEDS)
def test_zero_widths(seed: int) -> None:
    """A coordinate that cannot move adds nothing to regret, bounds or the post-hoc optimum of Diag."""
    rng = np.random.default_rng(seed)
    gs = rng.normal(size=(10, 3))
    flat = Box([-1.0, 0.5, 0.0], [1.0, 0.5, 2.0])
    thin = Box([-1.0, 0.0], [1.0, 2.0])
    one, a = played(FTPRL(flat, Diagonal()), gs)
    two, b = played(FTPRL(thin, Diagonal()), gs[:, [0, 2]])
    np.testing.assert_array_equal(one[:, [0, 2]], two)
    assert np.all(one[:, 1] == 0.5)
    assert_same_certificate(a, b)
    assert a.certificate().post_hoc["diagonal"] == pytest.approx(b.certificate().post_hoc["diagonal"])
    for scheme in (CoordinateConstant(), Full(), BestBound()):
        made = played(FTPRL(flat, scheme), gs)[1].certificate()
        assert made.regret <= made.tight + 1e-9 <= made.bound + 1e-7


@pytest.mark.parametrize(("set_name", "scheme"), SOME_PAIRS)
def test_starting_on_the_boundary(set_name: str, scheme: str) -> None:
    """x_1 on the boundary: the chain of bounds holds as it stands."""
    F = SETS[set_name]
    rng = np.random.default_rng(2)
    for _ in range(2):
        start = F.vertex(rng.normal(size=F.dim))
        _, game = played(FTPRL(F, schemes(math.sqrt(2))[scheme], start), rng.normal(size=(8, F.dim)))
        made = game.certificate()
        chain = [made.regret, made.tight, made.bound, made.theorem, made.worst_case]
        assert all(a <= b + 1e-8 * (1 + b) for a, b in itertools.pairwise(chain))


def test_one_round_from_an_endpoint() -> None:
    """Constants: regret/S = 1 at T = 1 from an endpoint, so no constant below 1 can be proved."""
    game = Game(FTPRL(Box(0, 1), Diagonal(), start=[1.0]))
    game.observe([3.0])
    made = game.certificate()
    assert made.regret == pytest.approx(3.0)
    assert made.regret == pytest.approx(made.closed_form / 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_bad_gradients_are_refused(bad: float) -> None:
    """NaN and infinite gradients are refused and change nothing."""
    game = Game(FTPRL(Box(-1, 1, dim=2), Diagonal()))
    game.observe([1.0, 2.0])
    before = game.certificate().to_dict()
    with pytest.raises(InvalidInput):
        game.observe([0.0, bad])
    assert game.certificate().to_dict() == before


def test_sketch_on_a_product_for_long() -> None:
    """Rounding in an increment that is 0 on one factor leaves N of a product defined."""
    F = SETS["product"]
    made = run(FTPRL(F, schemes(2.0)["sketch"]), gradients("sparse", F, 60, 2)).game.certificate()
    assert made.regret <= made.bound <= made.worst_case
