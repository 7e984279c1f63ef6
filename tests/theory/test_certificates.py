"""The chain of bounds on every set with every scheme, and the ledger against the whole history."""

import itertools

import numpy as np
import pytest

from ftprl import FTPRL, Certificate, Game, Preconditioned, john, play, psd
from ftprl.losses import absolute, logistic, squared
from ftprl.schemes import BlockConstant, CoordinateConstant, Diagonal, Full
from ftprl.sets import Box, L2Ball, Preimage, Product, Simplex
from oracles.zoo import KINDS, PAIRS, ROOT2, SETS, SOME_PAIRS, gradients, random_point, run, schemes

ROUNDS = 10


def assert_chain(made: Certificate, tol: float = 1e-9) -> None:
    """regret <= tight <= bound <= theorem <= worst_case <= closed_form, and bound <= closed_form_strong."""
    chain = [made.regret, made.tight, made.bound, made.theorem, made.worst_case]
    if made.closed_form is not None:
        chain.append(made.closed_form)
        assert made.bound <= made.closed_form_strong * (1 + tol) + 1e-12
    for smaller, larger in itertools.pairwise(chain):
        assert smaller <= larger + tol * (1 + abs(larger))
    assert made.theorem - made.bound >= -1e-12


def assert_ratios(made: Certificate, tol: float = 1e-9) -> None:
    """worst_case <= proven_ratio * post_hoc and regret <= proven_regret_ratio * post_hoc, where proven."""
    if made.proven_ratio is None:
        return
    best = made.post_hoc[made.family]
    assert made.worst_case <= made.proven_ratio * best * (1 + tol) + 1e-12
    assert made.regret <= made.proven_regret_ratio * best * (1 + tol) + 1e-12
    if made.ratio is not None:
        assert made.ratio <= made.proven_ratio * (1 + tol)


@pytest.mark.parametrize(("set_name", "scheme"), PAIRS)
def test_chain(set_name: str, scheme: str) -> None:
    """The chain of anytime certificates, and both competitive ratios, under five kinds of gradients and two c."""
    F, turn = SETS[set_name], PAIRS.index((set_name, scheme)) % 2
    for i, kind in enumerate(KINDS):
        c = (2.0, ROOT2)[(turn + i) % 2]
        game = run(FTPRL(F, schemes(c)[scheme]), gradients(kind, F, ROUNDS, 100 + i)).game
        made = game.certificate()
        assert_chain(made)
        assert_ratios(made)


@pytest.mark.parametrize(
    ("set_name", "scheme"), [p for p in PAIRS if p[0] in ("polytope", "ellipsoid", "polytope eq", "preimage box")]
)
def test_ratios_against_programs(set_name: str, scheme: str) -> None:
    """Competitive ratios where the post-hoc optimum is a program: Diagonal within sqrt(2 gamma), and so on."""
    F = SETS[set_name]
    for i, kind in enumerate(("gaussian", "adversarial")):
        game = run(FTPRL(F, schemes(2.0)[scheme]), gradients(kind, F, ROUNDS, i)).game
        made = game.certificate(program=True)
        assert_chain(made)
        assert_ratios(made, 1e-6)
        diagonal, const, full = (made.post_hoc[k] for k in ("diagonal", "const", "full"))
        assert diagonal <= const * (1 + 1e-6)
        if full is not None:
            assert full <= diagonal * (1 + 1e-6)
        # gamma holds for every F, even if N is only bounded from above.
        if scheme == "diagonal" and F.is_exact("widths"):
            S = float(F.widths() @ np.sqrt(game.ledger.G))
            assert np.sqrt(2 * F.gamma()) * diagonal * (1 + 1e-6) >= 2 * S


@pytest.mark.parametrize(("set_name", "scheme"), SOME_PAIRS)
def test_ledger_is_the_history(set_name: str, scheme: str) -> None:
    """Incremental certificate = recomputed from every (g, Q, x), formula by formula."""
    F = SETS[set_name]
    for i, kind in enumerate(("gaussian", "sparse")):
        played = run(FTPRL(F, schemes(2.0)[scheme]), gradients(kind, F, 10, 50 + i))
        made, history, ledger = played.game.certificate(), played.naive, played.game.ledger
        x, T = made.comparator, history.rounds
        r, delta, stability = history.r(x, T), sum(history.deltas()), history.stability()
        scale = 1 + history.penalty(F.sq_diameter) + stability
        assert ledger.delta == pytest.approx(delta, abs=1e-9 * scale)
        assert ledger.stability == pytest.approx(stability, rel=1e-6, abs=1e-9)
        assert ledger.regularisation(played.totals[-1], x) == pytest.approx(r, abs=1e-9 * scale)
        assert made.tight == pytest.approx(r + delta + ledger.leader_slack, abs=1e-9 * scale)
        assert made.bound == pytest.approx(r + 0.5 * stability + ledger.solver_slack, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(psd.dense(played.totals[-1], F.dim), history.total(T), atol=1e-9 * scale)
        # `x` is a best fixed point: no nearby vertex beats it.
        S = history.gradient(T)
        assert S @ x <= S @ F.vertex(S) + 1e-7 * (1 + float(np.abs(S) @ F.widths()))
        if "constant" not in scheme and scheme != "best const":
            N = history.penalty(lambda Q: F.sq_diameter(np.diagonal(Q) if "diag" in scheme else Q))
            if scheme in ("full", "full delta", "sketch", "fixed", "diagonal", "diagonal centred"):
                assert ledger.penalty == pytest.approx(N, rel=1e-9, abs=1e-12)


def test_const_penalty_is_half_q_diameter_squared() -> None:
    """B_R's first term: N(aI) = a D²/2, summed over the rounds."""
    F = Simplex(3)
    played = run(FTPRL(F, CoordinateConstant()), gradients("gaussian", F, 10, 1))
    want = sum(0.5 * float(Q[0, 0]) * 2.0 for Q in played.naive.Q)
    assert played.game.ledger.penalty == pytest.approx(want)


@pytest.mark.parametrize(
    "name",
    ["box", "l2", "l1", "lp1.5", "lp3", "lp4", "lpinf", "ellipsoid", "preimage box", "polytope", "halfspace box"],
)
def test_john_scale(name: str) -> None:
    """John scaling is FTPRL-Scale: the chain holds in its coordinates, with the regret of the outer ones."""
    F = SETS[name]
    A = john(F)
    learner = Preconditioned(A, FTPRL(Preimage(np.linalg.inv(A), F), CoordinateConstant(diameter=1.0)))
    for i, kind in enumerate(KINDS):
        game = Game(learner)
        loss, S = 0.0, np.zeros(F.dim)
        for oracle in gradients(kind, F, ROUNDS, i):
            g = oracle(game.x)
            loss, S = loss + float(g @ game.x), S + g
            game.observe(g)
        made = game.certificate()
        assert F.contains(game.x)
        assert_chain(made)
        # Losses and regret belong to the outer coordinates.
        assert made.regret == pytest.approx(loss - float(S @ F.vertex(S)), abs=1e-8 * (1 + made.closed_form))


@pytest.mark.parametrize("kind", KINDS)
def test_preconditioned_chain(kind: str) -> None:
    """The chain and the ratios of the inner learner hold for the points played outside."""
    A = np.array([[2.0, 1.0], [0.0, 0.5]])
    for inner in (FTPRL(L2Ball(2), CoordinateConstant(ROOT2)), FTPRL(Box(-1, 1, dim=2), Diagonal())):
        learner = Preconditioned(A, inner)
        game = Game(learner)
        for oracle in gradients(kind, learner.feasible, 20, 8):
            game.observe(oracle(game.x))
        made = game.certificate()
        assert_chain(made)
        assert made.proven_ratio is not None
        assert_ratios(made)


@pytest.mark.parametrize("set_name", ["box", "l2", "lp3", "simplex", "ellipsoid", "polytope", "product", "l2 box"])
@pytest.mark.parametrize("good", [True, False], ids=["good", "bad"])
def test_hints(set_name: str, good: bool) -> None:
    """Hints: LinRegret(x) <= r(x) + ½ sum |g_t - m_t|², with S and the post-hoc optimum of the errors."""
    F = SETS[set_name]
    for seed, scheme in enumerate((Diagonal(ROOT2), CoordinateConstant(), Full(delta=0.1))):
        rng = np.random.default_rng(seed)
        gs = rng.normal(size=(15, F.dim)) + rng.normal(size=F.dim)
        hints = gs + 0.1 * rng.normal(size=gs.shape) if good else rng.normal(size=gs.shape) * 3
        game = Game(FTPRL(F, scheme, start=random_point(F, rng)), hint=hints[0])
        for t, g in enumerate(gs):
            game.observe(g, hint=hints[t + 1] if t + 1 < len(gs) else None)
        made = game.certificate()
        assert_chain(made, 1e-8)
        assert made.closed_form is not None
        if isinstance(scheme, Diagonal):
            S = float(F.widths() @ np.sqrt(((gs - hints) ** 2).sum(axis=0)))
            assert made.closed_form_strong == pytest.approx(ROOT2 * S)
            assert made.regret <= ROOT2 * S


def test_perfect_hints_leave_no_regret() -> None:
    """Hints: m_t = g_t makes every bound 0, so nothing is lost at all."""
    gs = np.random.default_rng(4).normal(size=(20, 3))
    game = Game(FTPRL(L2Ball(3), Diagonal()), hint=gs[0])
    for g, after in zip(gs, [*gs[1:], None], strict=True):
        game.observe(g, hint=after)
    made = game.certificate()
    assert made.regret <= 1e-12
    assert made.bound == pytest.approx(0.0, abs=1e-10)  # rounded outwards


def test_zero_hints_change_nothing() -> None:
    """Hints: m = 0 recovers FTPRL."""
    F = SETS["lp4"]
    plain, hinted = Game(FTPRL(F, Diagonal())), Game(FTPRL(F, Diagonal()))
    for g in np.random.default_rng(6).normal(size=(15, 3)):
        plain.observe(g)
        hinted.observe(g, hint=np.zeros(3))
        np.testing.assert_array_equal(plain.x, hinted.x)
    assert plain.certificate().bound == pytest.approx(hinted.certificate().bound, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_linear_losses_have_equal_regrets(kind: str) -> None:
    """Linearisation: for linear losses the linearised regret is the regret, whatever the set."""
    for name in ("box", "simplex", "polytope"):
        F = SETS[name]
        rows = [oracle(F.start()) for oracle in gradients(kind, F, 10, 3)]
        made = play(FTPRL(F, Diagonal()), rows, hindsight=True).certificate()
        assert made.true_regret == pytest.approx(made.regret, abs=1e-8 * (1 + made.closed_form))


@pytest.mark.parametrize("seed", range(4))
def test_convex_losses_have_less_regret(seed: int) -> None:
    """Linearisation: Regret <= LinRegret for absolute, squared and logistic losses."""
    rng = np.random.default_rng(seed)
    F = (Box(-1, 1, dim=2), L2Ball(2, 2.0))[seed % 2]
    losses = []
    for _ in range(12):
        v = rng.normal(size=2)
        losses += [absolute(v, rng.normal()), squared(v, rng.normal()), logistic(v, float(rng.choice((-1, 1))))]
    made = play(FTPRL(F, Diagonal()), losses, hindsight=True).certificate()
    assert made.true_regret <= made.regret + 1e-6 * (1 + made.closed_form)
    assert made.true_regret < made.regret - 1e-3


def test_bounds_add_over_blocks() -> None:
    """Block-diagonal schemes on a product: regret and every bound are sums over the blocks."""
    parts = (L2Ball(2), L2Ball(3, 0.5))
    rows = np.random.default_rng(9).normal(size=(25, 5))
    whole = play(FTPRL(Product(*parts), BlockConstant()), rows).certificate()
    split = [
        play(FTPRL(parts[0], CoordinateConstant()), rows[:, :2]).certificate(),
        play(FTPRL(parts[1], CoordinateConstant()), rows[:, 2:]).certificate(),
    ]
    for name in ("regret", "tight", "bound", "theorem", "worst_case", "closed_form", "closed_form_strong"):
        assert getattr(whole, name) == pytest.approx(sum(getattr(s, name) for s in split), rel=1e-9)
    assert whole.post_hoc["block"] == pytest.approx(sum(s.post_hoc["const"] for s in split))
