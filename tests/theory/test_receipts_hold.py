"""A receipt must never understate the regret; each case once failed, or could have."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ftprl import FTPRL, Composite, Game, InvalidInput, Preconditioned, Unsupported, john, play, psd
from ftprl.bounds import Certificate
from ftprl.losses import linear, squared
from ftprl.schemes import BlockConstant, CoordinateConstant, Diagonal, Full, Sketch
from ftprl.sets import (
    Box,
    CappedSimplex,
    ConvexSet,
    Ellipsoid,
    Intersection,
    L2Ball,
    LpBall,
    Polytope,
    Preimage,
    Product,
    Simplex,
)
from ftprl.solver import minimise_conic


def chain(c: Certificate, tol: float = 1e-6) -> None:
    """regret <= tight <= bound <= theorem <= worst_case <= closed_form, up to rounding."""
    numbers = [c.regret, c.tight, c.bound, c.theorem, c.worst_case, c.closed_form]
    values = [v for v in numbers if v is not None]
    for a, b in itertools.pairwise(values):
        assert a <= b + tol * (1 + abs(b)), numbers


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e8])
@pytest.mark.parametrize("scheme", [Diagonal(), CoordinateConstant()], ids=lambda s: type(s).__name__)
def test_a_set_far_from_the_origin_keeps_its_receipt(offset: float, scheme: Diagonal) -> None:
    """Translation: regret and bounds equal those of the game around 0, up to the digits of the points.

    The bounds are rounded outwards by the worst-case rounding of 300 rounds, which exceeds the actual one.
    """
    rows = np.random.default_rng(0).normal([0.2, 0.0, -0.1], size=(300, 3))
    here = play(FTPRL(Box(0, 1, dim=3), scheme), rows).certificate()
    there = play(FTPRL(Box(offset, offset + 1, dim=3), scheme), rows).certificate()
    chain(there)
    rel = 1e-9 + 1e-13 * offset
    assert there.regret == pytest.approx(here.regret, rel=rel, abs=rel)
    for name in ("tight", "bound", "theorem", "worst_case"):
        assert getattr(there, name) == pytest.approx(getattr(here, name), rel=rel, abs=1000 * rel)


@pytest.mark.parametrize("size", [1e-9, 1e-6, 1.0, 1e6, 1e9])
@pytest.mark.parametrize("scheme", [Diagonal(), Full()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("kind", ["polytope", "flat polytope", "simplex", "ball in box"])
def test_units_do_not_matter(size: float, scheme: Diagonal, kind: str) -> None:
    """F -> sF: points and bounds scale with s, whatever the solvers' tolerances are."""

    def build(s: float) -> ConvexSet:
        rng = np.random.default_rng(3)
        if kind == "polytope":
            C = np.vstack((rng.normal(size=(6, 3)), np.eye(3), -np.eye(3)))
            return Polytope(C, s * np.concatenate((rng.uniform(0.5, 1.0, 6), np.ones(6))))
        if kind == "flat polytope":
            return Polytope(np.vstack((-np.eye(3), np.eye(3))), [0, 0, 0, s, s, s], [[1, 1, 1]], [1.5 * s])
        return Simplex(3, s) if kind == "simplex" else Intersection(L2Ball(3, s), Box(-0.4 * s, 0.6 * s, dim=3))

    rows = np.random.default_rng(1).normal([0.5, 0.0, -0.2], size=(30, 3))
    unit = play(FTPRL(build(1.0), scheme), rows).certificate()
    made = play(FTPRL(build(size), scheme), rows).certificate()
    for name in ("regret", "bound", "worst_case", "closed_form"):
        assert getattr(made, name) / size == pytest.approx(getattr(unit, name), rel=1e-5, abs=1e-7)


def test_the_gap_is_a_bound_even_where_the_polish_runs_away() -> None:
    """Weak duality with multipliers from any point: the proved gap covers the distance to a careful solution."""
    rng = np.random.default_rng(0)
    for _ in range(150):
        A = rng.normal(size=(4, 4)) * 10.0 ** rng.uniform(-1, 1, size=4)
        F = Preimage(A, Product(L2Ball(2), Box(-1, 1, dim=2)))
        B = rng.normal(size=(4, int(rng.integers(1, 5)))) * 10.0 ** rng.uniform(-3, 3)
        H = B @ B.T
        z = H @ rng.normal(size=4) if rng.random() < 0.5 else rng.normal(size=4) * 10.0 ** rng.uniform(-2, 2)
        actual = minimise_conic(F, H, z, F.start())
        again = F.minimise(H, z, actual.x).x
        value = [0.5 * psd.quad(H, x) + float(z @ x) for x in (actual.x, again)]
        assert value[0] - value[1] <= actual.gap + 1e-9 * (1 + abs(value[0]))
        slope = H @ actual.x + z
        certain = float(slope @ (actual.x - F.vertex(slope)))
        assert actual.gap <= 10 * certain + 1e-6 * (1 + abs(value[0]))


class Lazy(ConvexSet):
    """A box with a very inexact argmin."""

    def __init__(self, answer: float) -> None:
        self.answer = answer

    @property
    def dim(self) -> int:
        return 1

    def argmin(self, H: np.ndarray, z: np.ndarray, near: np.ndarray) -> np.ndarray:
        return np.array([self.answer])

    def vertex(self, g: np.ndarray) -> np.ndarray:
        return np.where(g > 0, -1.0, 1.0)

    def widths(self) -> np.ndarray:
        return np.array([2.0])

    def contains(self, x: np.ndarray, atol: float = 1e-9) -> bool:
        return bool(abs(x[0]) <= 1 + atol)


def test_hints_with_steps_that_are_not_exact() -> None:
    game = Game(FTPRL(Lazy(0.5), Diagonal()), hint=[1.0])
    for _ in range(20):
        game.observe([1.0], hint=[1.0])
    c = game.certificate()
    assert c.regret == pytest.approx(30.0)
    assert c.bound is not None
    assert c.tight is not None
    assert c.regret <= c.tight
    assert c.regret <= c.bound


def test_the_best_point_does_not_trust_a_lazy_argmin() -> None:
    c = play(FTPRL(Lazy(0.5), Diagonal()), [[1.0], [1.0]]).certificate()
    assert c.regret == pytest.approx(0.0 + 0.5 + 2.0)


@pytest.mark.parametrize("answer", [9.0, math.nan])
def test_a_step_outside_the_set_is_refused(answer: float) -> None:
    game = Game(FTPRL(Lazy(answer), Diagonal()))
    with pytest.raises(InvalidInput, match="needs to be a point of the set"):
        game.observe([1.0])
    assert game.rounds == 0


def test_hindsight_is_of_the_rounds_that_were_played() -> None:
    game = play(FTPRL(Box(-1, 1), Diagonal()), [squared([1.0], 0.3)] * 10, hindsight=True)
    assert game.certificate().true_regret is not None
    game.observe([1.0], loss=5.0)
    assert game.certificate().true_regret is None


def test_true_regret_and_a_penalty_in_every_round_do_not_mix() -> None:
    learner = FTPRL(Box(-1, 1, dim=2), Diagonal(), composite=Composite(l2=1.0, per_round=True))
    c = play(learner, [linear([1.0, 0.0])] * 50, hindsight=True).certificate()
    assert c.true_regret is None
    assert any("true regret" in text for text in c.caveats)
    chain(c)


def test_full_matrices_keep_small_gradients_in_new_directions() -> None:
    """A factor instead of the sum of outer products keeps a direction that is 1e-6 as large."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = np.vstack((rng.normal(size=(1, 3)), 1e-6 * rng.normal(size=(4, 3))))
        c = play(FTPRL(L2Ball(3), Full()), rows).certificate()
        assert c.bound is not None
        assert math.isfinite(c.bound)
        chain(c)


def test_a_given_diameter_is_checked_and_named() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(InvalidInput, match=r"at least the largest width, 2, got 0\.1"):
        play(FTPRL(Box(-1, 1, dim=4), CoordinateConstant(diameter=0.1)), rows)
    c = play(FTPRL(Box(-np.inf, np.inf, dim=4), CoordinateConstant(diameter=2.0)), rows).certificate(
        comparator=[-1000.0] * 4
    )
    assert c.closed_form is None
    assert c.worst_case == math.inf
    assert c.ratio is None
    assert c.bound is not None
    assert c.regret <= c.bound
    assert any("as given" in text for text in c.caveats)


def test_the_family_of_a_scheme_is_not_an_option() -> None:
    with pytest.raises(TypeError):
        CoordinateConstant(family="full")  # type: ignore[call-arg]


def test_closed_forms_are_above_the_worst_case_on_narrow_shares() -> None:
    rows = np.random.default_rng(2).normal(size=(60, 2))
    chain(play(FTPRL(CappedSimplex(2, 0.8), Diagonal()), rows).certificate())
    A = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.2, 0.0, 1.0]])
    rows = np.random.default_rng(3).normal(size=(60, 3))
    chain(play(FTPRL(Preimage(A, CappedSimplex(3, 0.7)), Diagonal()), rows).certificate())
    chain(play(FTPRL(Product(CappedSimplex(2, 0.8), Box(-1, 1)), BlockConstant()), rows).certificate())


def test_gamma_of_a_polytope_has_no_unit() -> None:
    C = np.vstack((np.random.default_rng(5).normal(size=(5, 3)), np.eye(3), -np.eye(3)))
    d = np.concatenate((np.full(5, 0.7), np.ones(6)))
    whole = Polytope(C, d).gamma()
    assert whole >= 1
    for s in (1e-7, 1e-5, 1e5):
        assert Polytope(C, s * d).gamma() == pytest.approx(whole, rel=1e-6)


def test_rows_may_have_any_length() -> None:
    P = Polytope(1e-10 * np.array([[1, 1], [-1, 0], [0, -1]]), 1e-10 * np.array([1, 0, 0]))
    np.testing.assert_allclose(P.widths(), [1, 1])
    assert not P.contains(np.array([5.0, 5.0]))


def test_off_diagonal_entries_are_judged_by_their_own_size() -> None:
    turn = np.array([[1, 0, 0], [0, 1, -1], [0, 1, 1]]) / np.array([[1], [2**0.5], [2**0.5]])
    F = Preimage(turn, Box(-1, 1, dim=3))
    H, z = np.array([1e16, 1.0, 2.0]), np.array([0.0, -1.0, -1.0])
    actual = F.minimise(H, z, F.start())
    value = 0.5 * psd.quad(H, actual.x) + float(z @ actual.x)
    assert value <= -0.7475 + actual.gap + 1e-6


def test_john_refuses_sets_that_are_flat_without_saying_so() -> None:
    flat = Polytope([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, -1]], [1, 1, 1, 1, 0, 0])
    with pytest.raises(Unsupported, match="with interior"):
        john(flat)


def test_hints_pass_through_other_coordinates() -> None:
    A = np.array([[2.0, 0.0], [0.5, 1.0]])
    game = Game(Preconditioned(A, FTPRL(L2Ball(2), CoordinateConstant())), hint=[1.0, 0.0])
    assert game.x @ [1.0, 0.0] == pytest.approx(float(Ellipsoid(A).vertex(np.array([1.0, 0.0])) @ [1.0, 0.0]))


@pytest.mark.parametrize("scheme", [Full(), Sketch(2), Diagonal()], ids=lambda s: type(s).__name__)
def test_curved_sets_with_wild_weights(scheme: Full) -> None:
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(25, 3)) * 10.0 ** rng.uniform(-3, 3, size=(25, 1))
    for F in (LpBall(3, 3), Ellipsoid(np.diag([1.0, 10.0, 100.0])), Intersection(L2Ball(3), Box(-0.2, 0.9, dim=3))):
        chain(play(FTPRL(F, scheme), rows).certificate(), tol=1e-5)
