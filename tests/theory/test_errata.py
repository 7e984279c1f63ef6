"""The paper's misprints: its pseudo-code as printed breaks its own bounds, the library on equal input does not."""

import math

import numpy as np
import pytest

from ftprl import FTPRL, Game, Preconditioned, best_bound
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box, L1Ball, L2Ball, Preimage
from oracles.posthoc import N_brute, corners, differences
from oracles.zoo import ROOT2, SETS, gradients, run


def printed_diagonal(gs: np.ndarray, half: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Run Algorithm 1 as printed on the box |x_i| <= half_i: u = sign (g_{1:t} - q)/lambda, without care for 0/0."""
    n = gs.shape[1]
    x, q, S, G, lam = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    plays = [x]
    for g in gs:
        G, S = G + g * g, S + g
        new = 2 / (2 * half) * np.sqrt(G)
        q, lam = q + (new - lam) * x, new
        x = np.clip(sign * (S - q) / lam, -half, half)
        plays.append(x)
    return np.array(plays)


def printed_scale(A: np.ndarray, gs: np.ndarray, slip: str) -> np.ndarray:
    """Run Algorithm 2 on {|Ax|_2 <= 1}, c = 2, with one of its misprints: "gradient" or "center" ("" has none)."""
    inverse = np.linalg.inv(A)
    x_hat, q, S, G, a = np.zeros(len(A)), np.zeros(len(A)), np.zeros(len(A)), 0.0, 0.0
    plays = [inverse @ x_hat]
    for g in gs:
        g_hat = inverse.T @ g
        G += float(g_hat @ g_hat)
        new = math.sqrt(G)
        q, a = q + (new - a) * (plays[-1] if slip == "center" else x_hat), new
        S = S + (g if slip == "gradient" else g_hat)
        u = (q - S) / a
        x_hat = u / max(1.0, float(np.linalg.norm(u)))
        plays.append(inverse @ x_hat)
    return np.array(plays)


def scale_regret(A: np.ndarray, gs: np.ndarray, plays: np.ndarray) -> float:
    """Return the regret on {|Ax|_2 <= 1}."""
    return float((gs * plays[: len(gs)]).sum()) + float(np.linalg.norm(np.linalg.inv(A).T @ gs.sum(axis=0)))


def library_scale(A: np.ndarray, gs: np.ndarray) -> Game:
    """Return the plays of the library's FTPRL-Scale on equal input."""
    game = Game(Preconditioned(A, FTPRL(L2Ball(len(A)), CoordinateConstant())))
    for g in gs:
        game.observe(g)
    return game


def test_e1_the_sign_of_the_update() -> None:
    """E1: as printed Algorithm 1 climbs: regret 29998.5 after 10,000 equal gradients, against 1.5."""
    gs = np.ones((10_000, 1))
    plays = printed_diagonal(gs, np.array([1.5]))
    regret = float((gs * plays[:-1]).sum()) + 1.5 * len(gs)
    assert regret == pytest.approx(29998.5)
    game = Game(FTPRL(Box(-1.5, 1.5), Diagonal()))
    for g in gs:
        game.observe(g)
    made = game.certificate()
    assert made.regret == pytest.approx(1.5)
    assert regret > 20 * made.closed_form
    corrected = printed_diagonal(gs[:50], np.array([1.5]), sign=-1.0)
    assert float((gs[:50] * corrected[:-1]).sum()) + 1.5 * 50 == pytest.approx(1.5)


@pytest.mark.parametrize(("T", "value"), [(100, 8.7), (1000, 86.0), (10_000, 862.0)])
def test_e2_the_gradient_of_scale(T: int, value: float) -> None:
    """E2: with g_{1:t} for its hat Algorithm 2 pays 8.7, 86, 862 (linear in T), against 0.22."""
    A, gs = np.diag([1.0, 10.0]), np.tile([0.2, 1.0], (T, 1))
    regret = scale_regret(A, gs, printed_scale(A, gs, "gradient"))
    assert regret == pytest.approx(value, rel=0.02)
    assert scale_regret(A, gs, printed_scale(A, gs, "")) == pytest.approx(0.2236, abs=1e-3)
    if T <= 1000:
        made = library_scale(A, gs).certificate()
        assert made.regret == pytest.approx(0.2236, abs=1e-3)
        assert made.regret <= made.bound
    if T == 10_000:
        assert regret > 4 * math.sqrt(0.05 * T)


@pytest.mark.parametrize("T", [100, 1000])
def test_e2b_the_centre_of_scale(T: int) -> None:
    """E2b: with x_t for its hat the centre is 50 times too far out at A = 0.02, and the bound 4 sqrt T breaks."""
    A = np.array([[0.02]])
    gs = np.full((T, 1), -0.02)
    gs[0] = 0.02
    regret = scale_regret(A, gs, printed_scale(A, gs, "center"))
    assert regret >= 0.9 * T
    assert regret > 4 * math.sqrt(T)
    made = library_scale(A, gs).certificate()
    assert made.regret == pytest.approx(scale_regret(A, gs, printed_scale(A, gs, "")), abs=1e-9)
    assert made.closed_form == pytest.approx(4 * math.sqrt(T))
    assert made.regret <= made.bound <= made.closed_form


def test_e3_a_coordinate_never_touched() -> None:
    """E3: as printed 0/0 gives nan for a coordinate without gradients; the library leaves it where it is."""
    gs = np.array([[1.0, 0.0], [-1.0, 0.0]])
    with np.errstate(all="ignore"):
        assert np.isnan(printed_diagonal(gs, np.ones(2), -1.0)).any()
    game = Game(FTPRL(Box(-1, 1, dim=2), Diagonal(), start=[0.0, 0.3]))
    for g in gs:
        game.observe(g)
        assert game.x[1] == 0.3
    made = game.certificate()
    assert made.regret <= made.tight + 1e-12 <= made.bound + 1e-12


def test_e4_a_coordinate_without_width() -> None:
    """E4: as printed D_i = 0 gives inf * 0 = nan; the library freezes it, and it adds 0 to every bound."""
    gs = np.random.default_rng(0).normal(size=(10, 2))
    with np.errstate(all="ignore"):
        assert np.isnan(printed_diagonal(gs, np.array([1.0, 0.0]), -1.0)).any()
    wide, narrow = Game(FTPRL(Box([-1, 2], [1, 2]), Diagonal())), Game(FTPRL(Box(-1, 1), Diagonal()))
    for g in gs:
        wide.observe(g)
        narrow.observe(g[:1])
        assert wide.x[1] == 2.0
    for name in ("regret", "tight", "bound", "theorem", "worst_case", "closed_form", "closed_form_strong"):
        assert getattr(wide.certificate(), name) == pytest.approx(getattr(narrow.certificate(), name), abs=1e-12)


def test_e5_scale_on_a_part_of_the_ball() -> None:
    """E5: projecting on {|Ax| <= 1} leaves a smaller F; projecting on A F does not."""
    F, A = Box(-0.1, 0.1, dim=2), np.eye(2) * 5
    gs = np.array([[1.0, 1.0], [1.0, 0.5]])
    assert printed_scale(A, gs, "")[1, 0] == pytest.approx(-0.141, abs=1e-3)
    game = Game(Preconditioned(A, FTPRL(Preimage(np.linalg.inv(A), F), CoordinateConstant())))
    for g in gs:
        game.observe(g)
        assert F.contains(game.x, 1e-12)
    assert game.certificate().regret <= game.certificate().bound


def test_e6_zero_need_not_be_feasible() -> None:
    """E6: x_1 = 0 needs 0 in F; any x_1 in F gives the same bounds, on 200 random boxes."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        lower = rng.normal(size=2) * 5
        F = Box(lower, lower + rng.exponential(size=2))
        game = Game(FTPRL(F, Diagonal(ROOT2), start=lower + rng.random(2) * F.widths()))
        for g in rng.normal(size=(8, 2)):
            game.observe(g)
        made = game.certificate()
        assert made.regret <= made.bound * (1 + 1e-9) <= made.closed_form_strong * (1 + 2e-9)


@pytest.mark.parametrize(("n", "value"), [(2, 1.99), (4, 2.81), (9, 4.22)])
def test_e7_scale_does_not_compete_with_diagonals(n: int, value: float) -> None:
    """E7: on {|Ax|_1 <= 1} with a full A, B_R of Scale over the best diagonal exceeds sqrt2 and nears sqrt(2n)."""
    inverse = np.ones((n, n)) + np.diag([0.0] + [1.0] * (n - 1))
    A = np.linalg.inv(inverse)
    game = Game(Preconditioned(A, FTPRL(L1Ball(n), CoordinateConstant())))
    rng = np.random.default_rng(0)
    gs = np.eye(n)[0] + 1e-4 * rng.normal(size=(400, n))
    for g in gs:
        game.observe(g)
    F = Preimage(A, L1Ball(n))
    best = best_bound(F, "diagonal", (gs**2).sum(axis=0), program=True)
    ratio = game.certificate().worst_case / best.value
    assert ratio > ROOT2 + 0.3
    assert ratio == pytest.approx(value, rel=0.06)
    # Against diagonals in its own coordinates the ratio is at most sqrt 2.
    hats = ((gs @ inverse) ** 2).sum(axis=0)
    assert game.certificate().worst_case <= ROOT2 * best_bound(L1Ball(n), "diagonal", hats).value * (1 + 1e-9)


def test_e8_a_good_bound_is_no_lower_bound() -> None:
    """E8: Diag's sum S_i <= D sqrt G <= M D sqrt T by Cauchy-Schwarz, so O(MD sqrt T) does not imply T^{2/3}."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        D, gs = rng.exponential(size=4), rng.normal(size=(30, 4))
        S = float(D @ np.sqrt((gs**2).sum(axis=0)))
        M = float(np.linalg.norm(gs, axis=1).max())
        assert np.linalg.norm(D) * math.sqrt((gs**2).sum()) * (1 + 1e-12) >= S
        assert M * np.linalg.norm(D) * math.sqrt(30) * (1 + 1e-12) >= S


@pytest.mark.parametrize("name", ["polytope", "polytope eq", "capped odd", "simplex box", "preimage box", "l1"])
def test_e12_const_competes_on_every_set(name: str) -> None:
    """E12: with the true diameter Const is sqrt2-competitive with constants on any F, not on balls alone."""
    F = SETS[name]
    D = float(np.linalg.norm(differences(corners(F)), axis=1).max())
    for seed in range(3):
        history = run(FTPRL(F, CoordinateConstant(diameter=D)), gradients("gaussian", F, 10, seed)).naive
        B_R = history.penalty(lambda Q: 2 * N_brute(F, Q)) + history.stability()
        OPT = D * math.sqrt(2 * sum(float(g @ g) for g in history.g))
        assert B_R <= ROOT2 * OPT * (1 + 1e-9)


def test_e13_one_exponent_has_a_logarithm() -> None:
    """E13: at alpha = 1 the constant scheme's bound is sqrt(nT log n), not sqrt(nT)."""
    sizes = np.array([10, 100, 1000, 10_000])
    harmonic = np.array([(1.0 / np.arange(1, n + 1)).sum() for n in sizes])
    assert np.all(np.diff(np.sqrt(harmonic)) > 0.35)
    summable = np.array([(np.arange(1, n + 1) ** -1.5).sum() for n in sizes])
    assert np.sqrt(summable[-1] / summable[1]) < 1.05


def test_e14_leading_zero_rounds() -> None:
    """E14: the stability of rounds before any gradient is 0/0 := 0, in every scheme's ledger."""
    with np.errstate(invalid="ignore"):
        assert np.isnan(np.array([0.0]) / np.sqrt(np.array([0.0])))[0]
    for scheme in (Diagonal(), CoordinateConstant()):
        game = Game(FTPRL(Box(-1, 1, dim=2), scheme))
        for g in ([0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, -2.0]):
            game.observe(g)
        made = game.certificate()
        assert math.isfinite(made.theorem)
        assert made.regret <= made.bound


def test_e16_lambda_from_G() -> None:
    """E16: the total is a function of G, to the last digits, after many rounds of very different sizes."""
    rng = np.random.default_rng(0)
    gs = rng.normal(size=(2000, 2)) * 10.0 ** rng.uniform(-6, 6, size=(2000, 1))
    state = Diagonal().init(Box(0, 3, dim=2))
    for g in gs:
        _, state = Diagonal().step(state, g)
    want = 2 / 3 * np.sqrt([math.fsum(gs[:, i] ** 2) for i in range(2)])
    np.testing.assert_allclose(state.total, want, rtol=1e-12)
