"""The best bound in hindsight: closed forms against convex programs, dual forms, and the geometry behind them."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from ftprl import best_bound, psd
from ftprl.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    L1Ball,
    L2Ball,
    LpBall,
    Product,
    Simplex,
)
from oracles.naive import outer_sum
from oracles.posthoc import N_diagonal, corners, differences, dual_diagonal, dual_full, opt_diagonal, opt_full
from oracles.zoo import ROOT2, SETS, random_psd

CLOSED: dict[str, ConvexSet] = {
    "box": Box([-1.0, 0.0, 2.0], [1.0, 0.5, 5.0]),
    "l1": L1Ball(3, 0.7),
    "lp1.5": LpBall(3, 1.5, 2.0),
    "l2": L2Ball(3, 1.5),
    "lp3": LpBall(3, 3.0, 0.8),
    "lp4": LpBall(3, 4.0),
    "lp7": LpBall(3, 7.0, 2.0),
    "lpinf": LpBall(3, math.inf, 1.2),
    "axis ellipsoid": Ellipsoid(np.diag([0.5, 2.0, 1.0])),
    "simplex": Simplex(3, 2.0),
    "product": Product(L2Ball(2, 0.5), Box(-1, 1), Simplex(2)),
}
GS = {
    "even": np.array([1.0, 1.0, 1.0]),
    "mixed": np.array([0.3, 2.0, 1.1]),
    "leader": np.array([9.0, 0.2, 0.4]),
}


def stretched(G: np.ndarray, n: int) -> np.ndarray:
    """Return G, continued to n coordinates."""
    return np.concatenate((G, 0.5 + np.arange(n - len(G)))) if n > len(G) else G[:n]


@pytest.mark.parametrize("kind", GS)
@pytest.mark.parametrize("name", CLOSED)
def test_diagonal_closed_forms(name: str, kind: str) -> None:
    """Closed forms of OPT_diag against CVXPY; the optimal Q attains it, and both terms are OPT/2 there."""
    F = CLOSED[name]
    G = stretched(GS[kind], F.dim)
    best = best_bound(F, "diagonal", G)
    value, _ = opt_diagonal(F, G)
    assert best.exact
    assert best.value == pytest.approx(value, rel=1e-6)
    N, rest = 0.5 * F.sq_diameter(best.Q), float((G / best.Q).sum())
    assert pytest.approx(best.value / 2, rel=1e-9) == N
    assert rest == pytest.approx(best.value / 2, rel=1e-9)


@pytest.mark.parametrize("name", CLOSED)
def test_optimum_by_search(name: str) -> None:
    """OPT_diag without any solver: no random or searched diagonal is better."""
    F = CLOSED[name]
    G = stretched(GS["mixed"], F.dim)
    best = best_bound(F, "diagonal", G)

    def value(logs: np.ndarray) -> float:
        lam = np.exp(logs)
        return 0.5 * F.sq_diameter(lam) + float((G / lam).sum())

    rng = np.random.default_rng(0)
    for _ in range(3):
        start = np.log(best.Q) + rng.normal(size=F.dim)
        end = minimize(value, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9, "maxiter": 4000})
        assert end.fun >= best.value * (1 - 1e-9)
        assert value(start) > best.value
    assert value(np.log(best.Q)) == pytest.approx(best.value)


@pytest.mark.parametrize("name", [*CLOSED, "polytope", "capped", "ellipsoid", "preimage l1"])
def test_const_closed_form(name: str) -> None:
    """OPT_const = D sqrt(2G) on any set, for N(aI) = a D²/2 by definition of D."""
    F = CLOSED.get(name, SETS.get(name))
    G = stretched(GS["mixed"], F.dim)
    best = best_bound(F, "const", G)
    a = np.geomspace(0.01, 100, 20001)
    tried = a * F.diameter() ** 2 / 2 + G.sum() / a
    assert best.value == pytest.approx(tried.min(), rel=1e-6)
    assert float(best.Q) == pytest.approx(a[tried.argmin()], rel=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_full_closed_forms(seed: int) -> None:
    """OPT_full on L2 balls and ellipsoids against CVXPY: constant, and sqrt(Ghat/2) A'A."""
    rng = np.random.default_rng(seed)
    gs = rng.normal(size=(6, 3))
    A = rng.normal(size=(3, 3)) + 2 * np.eye(3)
    for F in (L2Ball(3, 0.7), Ellipsoid(A)):
        GG = outer_sum(gs)
        best = best_bound(F, "full", np.diagonal(GG), GG)
        assert best.exact
        assert best.value == pytest.approx(opt_full(F, gs), rel=1e-6)
        Q = psd.dense(best.Q, 3)
        assert 0.5 * F.sq_diameter(Q) == pytest.approx(best.value / 2)
        assert np.trace(np.linalg.solve(Q, GG)) == pytest.approx(best.value / 2)


def test_block_closed_form() -> None:
    """Product of L2 balls: sqrt2 sum D_k sqrt G_k is the optimum over block-diagonal PSD matrices."""
    F = Product(L2Ball(2), L2Ball(2, 0.4))
    gs = np.random.default_rng(3).normal(size=(5, 4))
    G = (gs**2).sum(axis=0)
    best = best_bound(F, "block", G)
    assert best.value == pytest.approx(ROOT2 * (2 * math.sqrt(G[:2].sum()) + 0.8 * math.sqrt(G[2:].sum())))
    parts = opt_full(F.sets[0], gs[:, :2]) + opt_full(F.sets[1], gs[:, 2:])
    assert best.value == pytest.approx(parts, rel=1e-6)
    assert best.value == pytest.approx(0.5 * F.sq_diameter(best.Q) + float((G / best.Q).sum()))


PROGRAMS: dict[str, ConvexSet] = {
    "polytope": SETS["polytope"],
    "polytope eq": SETS["polytope eq"],
    "capped": CappedSimplex(4, 0.5),
    "preimage l1": SETS["preimage l1"],
    "preimage box": SETS["preimage box"],
    "ellipsoid": SETS["ellipsoid"],
    "simplex box": SETS["simplex box"],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_diagonal_programs(name: str) -> None:
    """OPT_diag by program (vertices, ellipsoid) against CVXPY on vertices found by brute force."""
    F = PROGRAMS[name]
    G = stretched(GS["mixed"], F.dim)
    best = best_bound(F, "diagonal", G, program=True)
    assert best.exact
    assert best.value == pytest.approx(opt_diagonal(F, G)[0], rel=1e-6)
    N = float(N_diagonal(F, best.Q).value)
    assert pytest.approx(best.value / 2, rel=1e-4) == N
    above = best_bound(F, "diagonal", G)
    assert not above.exact
    assert above.value >= best.value * (1 - 1e-7)


@pytest.mark.parametrize("name", [*[n for n in PROGRAMS if n != "ellipsoid"], "simplex", "l1", "box"])
def test_full_programs(name: str) -> None:
    """OPT_full by program against CVXPY, and never above OPT_diag, on flat sets too."""
    F = PROGRAMS.get(name, CLOSED.get(name))
    gs = np.random.default_rng(2).normal(size=(6, F.dim))
    GG = outer_sum(gs)
    best = best_bound(F, "full", np.diagonal(GG), GG, program=True)
    assert best.value == pytest.approx(opt_full(F, gs), rel=1e-6)
    diagonal = best_bound(F, "diagonal", np.diagonal(GG), program=True)
    assert best.value <= diagonal.value * (1 + 1e-7)


def test_a_simplex_gains_from_full_matrices() -> None:
    """Full against diagonal: outside the quadratically convex sets a full matrix wins clearly (L1: sqrt n)."""
    n = 4
    GG = np.ones((n, n)) * 10
    full = best_bound(L1Ball(n), "full", np.diagonal(GG), GG + 1e-9 * np.eye(n), program=True).value
    diagonal = best_bound(L1Ball(n), "diagonal", np.diagonal(GG)).value
    assert diagonal / full == pytest.approx(math.sqrt(n), rel=1e-3)


@pytest.mark.parametrize("name", ["box", "l1", "simplex", "polytope", "capped"])
def test_dual_diagonal(name: str) -> None:
    """Dual form: OPT_diag = sqrt2 max over Z of sum sqrt(z_i G_i), Z spanned by squares of differences."""
    F = {**SETS, **CLOSED}[name]
    for G in GS.values():
        weights = stretched(G, F.dim)
        OPT = best_bound(F, "diagonal", weights, program=True).value
        assert pytest.approx(ROOT2 * dual_diagonal(differences(corners(F)), weights), rel=1e-6) == OPT


@pytest.mark.parametrize("name", ["box", "l1", "polytope"])
def test_dual_full(name: str) -> None:
    """Dual form: OPT_full = sqrt2 max over conv{yy'} of tr(Y^{1/2} GG Y^{1/2})^{1/2}."""
    F = {**SETS, **CLOSED}[name]
    GG = outer_sum(np.random.default_rng(5).normal(size=(5, F.dim)))
    OPT = best_bound(F, "full", np.diagonal(GG), GG, program=True).value
    assert pytest.approx(ROOT2 * dual_full(differences(corners(F)), GG), rel=1e-6) == OPT


@pytest.mark.parametrize("seed", range(6))
def test_full_against_diagonal_on_boxes(seed: int) -> None:
    """OPT_full <= OPT_diag <= sqrt(pi/2) OPT_full on a box, equal when GG is diagonal."""
    rng = np.random.default_rng(seed)
    n = 2 + seed % 3
    F = Box(-rng.random(n), rng.random(n))
    gs = rng.normal(size=(n + seed, n)) @ random_psd(n, rng)
    GG = outer_sum(gs)
    diagonal = best_bound(F, "diagonal", np.diagonal(GG)).value
    full = best_bound(F, "full", np.diagonal(GG), GG, program=True).value
    assert full <= diagonal * (1 + 1e-7)
    assert diagonal <= math.sqrt(math.pi / 2) * full * (1 + 1e-7)
    even = np.diag(np.diagonal(GG))
    assert best_bound(F, "full", np.diagonal(GG), even).value == pytest.approx(diagonal)
    assert opt_full(F, np.sqrt(even)) == pytest.approx(diagonal, rel=1e-6)


def test_scaling_of_the_optimum() -> None:
    """OPT scales with N as sqrt s; the functional with ½ has OPT/sqrt2."""
    G = GS["mixed"]
    base, wide = (best_bound(Box(0, w, dim=3), "diagonal", G).value for w in (1.0, 3.0))
    assert wide == pytest.approx(3 * base)  # N grows ninefold
    lam = best_bound(Box(0, 1, dim=3), "diagonal", G).Q / ROOT2
    assert 0.5 * lam.sum() + 0.5 * (G / lam).sum() == pytest.approx(base / ROOT2)


def test_coordinates_that_cost_nothing() -> None:
    """A coordinate without gradients and one without width add 0 to OPT_diag."""
    F = Box([0.0, 0.0, 1.0], [1.0, 2.0, 1.0])
    best = best_bound(F, "diagonal", np.array([4.0, 0.0, 7.0]))
    assert best.value == pytest.approx(ROOT2 * 2.0)
    assert best.Q[1] == 0.0
