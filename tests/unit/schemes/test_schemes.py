"""The schemes: totals, increments, closed forms and proved ratios."""

import math

import numpy as np
import pytest

from ftprl import FTPRL, Game, Preconditioned, john, psd
from ftprl.errors import Unsupported
from ftprl.posthoc import best_bound
from ftprl.schemes import (
    BestBound,
    BlockConstant,
    CoordinateConstant,
    Diagonal,
    Fixed,
    Full,
    Scheme,
    SchemeState,
    Sketch,
)
from ftprl.sets import Box, ConvexSet, Ellipsoid, L1Ball, L2Ball, LpBall, Polytope, Preimage, Product, Simplex

F = Product(Box(-1, [1.0, 0.5]), L2Ball(2, 1.5))
ALL = [
    CoordinateConstant(),
    CoordinateConstant(c=math.sqrt(2)),
    BlockConstant(),
    Diagonal(),
    Diagonal(c=1.0),
    Full(),
    Full(delta=0.3),
    Sketch(2),
    Sketch(9),
    BestBound("const"),
]


def run(scheme: Scheme, F: ConvexSet, rows: np.ndarray) -> tuple[list[np.ndarray], SchemeState]:
    state, Qs = scheme.init(F), []
    for g in rows:
        Q, state = scheme.step(state, g)
        Qs.append(Q)
    return Qs, state


@pytest.fixture
def rows(rng: np.random.Generator) -> np.ndarray:
    out = rng.normal(size=(12, 4)) * 10.0 ** rng.integers(-2, 3, size=(12, 1))
    out[3] = 0.0
    out[:6, 2] = 0.0
    return out


@pytest.mark.parametrize("scheme", ALL, ids=repr)
def test_increments_are_psd_and_add_up(scheme: Scheme, rows: np.ndarray) -> None:
    Qs, state = run(scheme, F, rows)
    total = np.zeros((4, 4))
    for Q in Qs:
        M = psd.dense(Q, 4)
        np.testing.assert_allclose(M, M.T, atol=1e-12)
        # A root of a rank-deficient matrix is known only to the root of the machine's precision.
        assert np.linalg.eigvalsh(M)[0] >= -1e-8 * np.abs(total + M).max()
        total = total + M
    np.testing.assert_allclose(psd.dense(state.total, 4), total, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(Qs[3], 0.0, atol=1e-14 * np.abs(total).max())  # the gradient 0 adds nothing


@pytest.mark.parametrize("scheme", ALL, ids=repr)
def test_step_is_pure(scheme: Scheme, rows: np.ndarray) -> None:
    _, state = run(scheme, F, rows[:5])
    before, g = psd.array(state.total).copy(), rows[5].copy()
    first, second = scheme.step(state, g), scheme.step(state, g)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1].total, second[1].total)
    np.testing.assert_array_equal(state.total, before)
    np.testing.assert_array_equal(g, rows[5])


@pytest.mark.parametrize("scheme", [s for s in ALL if not getattr(s, "delta", 0)], ids=repr)
def test_gradients_twice_as_large_give_twice_the_total(scheme: Scheme, rows: np.ndarray) -> None:
    one, two = (run(scheme, F, s * rows)[1] for s in (1.0, 2.0))
    np.testing.assert_allclose(two.total, 2 * one.total, rtol=1e-12, atol=1e-12)
    a, b = scheme.closed_form(one), scheme.closed_form(two)
    assert a is not None
    assert b is not None
    assert b.paper == pytest.approx(2 * a.paper)


def test_totals_by_their_formulas(rows: np.ndarray) -> None:
    G, GG, D = (rows**2).sum(axis=0), rows.T @ rows, F.widths()
    np.testing.assert_allclose(run(Diagonal(c=1.5), F, rows)[1].total, 1.5 * np.sqrt(G) / D)
    np.testing.assert_allclose(run(CoordinateConstant(), F, rows)[1].total, 2 * math.sqrt(G.sum()) / F.diameter())
    w, V = np.linalg.eigh(GG)
    np.testing.assert_allclose(run(Full(), F, rows)[1].total, 2 / F.diameter() * (V * np.sqrt(w)) @ V.T, atol=1e-8)
    blocks = [2 * math.sqrt(G[b].sum()) / s.diameter() for s, b in zip(F.sets, F.blocks, strict=True)]
    np.testing.assert_allclose(run(BlockConstant(), F, rows)[1].total, np.repeat(blocks, 2))
    np.testing.assert_allclose(run(Sketch(9), F, rows)[1].total, run(Full(), F, rows)[1].total, atol=1e-6)


def test_sketch_is_above_full(rows: np.ndarray) -> None:
    full, sketch = (psd.array(run(scheme, F, rows)[1].total) for scheme in (Full(), Sketch(2)))
    D = F.diameter() / 2
    assert (
        np.linalg.eigvalsh((D * sketch) @ (D * sketch) - (D * full) @ (D * full))[0] >= -1e-8 * np.abs(rows).max() ** 2
    )


@pytest.mark.parametrize(
    "G", [Box(-1, 1, dim=4), LpBall(4, 3), Simplex(4), Ellipsoid(np.diag([1.0, 2, 3, 4]))], ids=repr
)
def test_best_bound_follows_the_post_hoc_optimum(G: ConvexSet, rows: np.ndarray) -> None:
    state = run(BestBound(b=1.0), G, rows)[1]
    best = best_bound(G, "diagonal", (rows**2).sum(axis=0))
    assert best is not None
    np.testing.assert_allclose(state.total, best.Q, rtol=1e-9)


def test_best_bound_refuses_sets_without_a_proof() -> None:
    with pytest.raises(Unsupported, match="; use Diagonal"):
        BestBound().init(Polytope(np.vstack((np.eye(2), -np.eye(2))), np.ones(4)))


def test_fixed() -> None:
    Qs, state = run(Fixed([1.0, [1.0, 2.0], np.eye(2)]), Box(-1, 1, dim=2), np.ones((5, 2)))
    assert [Q.ndim for Q in Qs] == [0, 1, 2, 0, 0]
    np.testing.assert_allclose(state.total, np.diag([3.0, 4.0]))
    seen: list[tuple[int, float]] = []

    def rule(t: int, g: np.ndarray) -> float:
        seen.append((t, float(g[0])))
        g[:] = 9.0
        return 1.0 / t

    rows = np.arange(6.0).reshape(3, 2)
    _, state = run(Fixed(rule), Box(-1, 1, dim=2), rows)
    assert seen == [(1, 0.0), (2, 2.0), (3, 4.0)]
    assert float(state.total) == pytest.approx(11 / 6)
    assert rows[0, 0] == 0.0


def test_widths_and_diameter_of_ones_own(rows: np.ndarray) -> None:
    open_box = Box(-math.inf, math.inf, dim=4)
    state = run(Diagonal(widths=0.5), open_box, rows)[1]
    np.testing.assert_allclose(state.total, 4 * np.sqrt((rows**2).sum(axis=0)))
    assert Diagonal(widths=0.5).closed_form(state) is None
    assert Diagonal(widths=0.5).proven_ratio(open_box) is None
    state = run(CoordinateConstant(diameter=0.5), open_box, rows)[1]
    assert float(state.total) == pytest.approx(4 * np.linalg.norm(rows))
    assert CoordinateConstant(diameter=0.5).proven_ratio(Box(0, 1)) is None


def test_centring(rows: np.ndarray) -> None:
    S = Simplex(4)
    centred = rows - rows.mean(axis=1, keepdims=True)
    for plain, option in (
        (Diagonal(), Diagonal(center=True)),
        (CoordinateConstant(), CoordinateConstant(center=True)),
        (Full(), Full(center=True)),
        (Sketch(2), Sketch(2, center=True)),
        (BestBound(), BestBound(center=True)),
    ):
        np.testing.assert_allclose(run(option, S, rows)[1].total, run(plain, S, centred)[1].total, atol=1e-9)
        np.testing.assert_allclose(option.effective(S, rows[0]), centred[0])


@pytest.mark.parametrize("scheme", ALL, ids=repr)
def test_a_set_of_one_point_costs_nothing(scheme: Scheme) -> None:
    point = Product(Box([1, 2], [1, 2]), Simplex(1))
    game = Game(FTPRL(point, scheme))
    for _ in range(3):
        game.observe([1.0, -2.0, 3.0])
    c = game.certificate()
    assert c.regret == pytest.approx(0.0)
    assert c.worst_case == pytest.approx(0.0)
    np.testing.assert_array_equal(game.x, [1.0, 2.0, 1.0])


def test_proven_ratios() -> None:
    root = math.sqrt(2)
    assert Diagonal().proven_ratio(Box(0, 1)) == pytest.approx(root)
    assert Diagonal(c=root).proven_regret_ratio(Box(0, 1)) == pytest.approx(1.0)
    assert Diagonal().proven_ratio(LpBall(4, 4)) == pytest.approx(math.sqrt(2 * 2))
    assert Diagonal().proven_ratio(Polytope(np.vstack((np.eye(2), -np.eye(2))), np.ones(4))) is None
    assert CoordinateConstant().proven_ratio(L1Ball(3)) == pytest.approx(root)
    assert BlockConstant().proven_ratio(F) == pytest.approx(root)
    assert BestBound().proven_ratio(Simplex(3)) == pytest.approx(math.sqrt(3))
    assert Full().proven_ratio(L2Ball(2)) is None
    assert Fixed([1.0]).proven_ratio(L2Ball(2)) is None


@pytest.mark.parametrize(
    "G", [Box([-1, 0], [2, 1]), L2Ball(2), LpBall(2, 4), L1Ball(2), Ellipsoid([[1.0, 0.4], [0, 2]])], ids=repr
)
def test_john_is_around_all_differences(G: ConvexSet, rng: np.random.Generator) -> None:
    A = john(G)
    ends = np.array([G.vertex(g) for g in rng.normal(size=(60, 2))])
    lengths = np.linalg.norm((ends[:, None] - ends).reshape(-1, 2) @ A.T, axis=1)
    assert lengths.max() <= 1 + 1e-9
    assert lengths.max() >= 0.7
    game = Game(Preconditioned(A, FTPRL(Preimage(np.linalg.inv(A), G), CoordinateConstant(diameter=1.0))))
    for g in rng.normal(size=(10, 2)):
        assert G.contains(game.x)
        game.observe(g)
    assert game.certificate().regret <= game.certificate().bound


def test_john_refuses_flat_sets() -> None:
    with pytest.raises(Unsupported, match="; drop its flat"):
        john(Simplex(3))
