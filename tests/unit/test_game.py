"""Games: observe, play, hindsight."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from ftprl import FTPRL, Game, Preconditioned, best_in_hindsight, losses, play
from ftprl.baselines import GradientDescent
from ftprl.errors import InvalidInput, Unsupported
from ftprl.schemes import CoordinateConstant, Diagonal
from ftprl.sets import Box, L2Ball, LpBall, Simplex

CUBE = Box(-1, 1, dim=2)


def learner() -> FTPRL:
    return FTPRL(CUBE, Diagonal())


def test_observe_by_hand() -> None:
    game = Game(learner())
    assert game.rounds == 0
    np.testing.assert_array_equal(game.x, [0.0, 0.0])
    game.observe([1.0, -0.5])
    np.testing.assert_array_equal(game.x, [-1.0, 1.0])
    game.observe([1.0, 1.0])
    assert game.rounds == 2
    assert game.ledger.loss == 0.0  # 0 + (-1 + 1)
    assert game.certificate().regret == pytest.approx(2.5)
    np.testing.assert_array_equal(game.ledger.S, [2.0, 0.5])


def test_x_is_a_copy() -> None:
    game = Game(learner())
    game.x[:] = 5.0
    np.testing.assert_array_equal(game.x, [0.0, 0.0])


def test_the_ledger_keeps_no_reference_to_what_was_observed() -> None:
    game, g = Game(learner()), np.array([1.0, 2.0])
    game.observe(g)
    g[:] = 9.0
    np.testing.assert_array_equal(game.ledger.S, [1.0, 2.0])


def test_play_takes_rows_objects_and_functions(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(6, 2))
    by_rows = play(learner(), rows).certificate()
    by_lists = play(learner(), [list(g) for g in rows]).certificate()
    by_objects = play(learner(), [losses.linear(g) for g in rows]).certificate()
    by_functions = play(learner(), [lambda x, g=g: (float(g @ x), g) for g in rows]).certificate()
    game = Game(learner())
    for g in rows:
        game.observe(g, loss=float(g @ game.x))
    for other in (by_lists, by_objects, by_functions, game.certificate()):
        assert other.regret == by_rows.regret
        assert other.tight == by_rows.tight


def test_play_takes_a_generator_once() -> None:
    game = play(learner(), (np.ones(2) for _ in range(3)))
    assert game.rounds == 3


def test_nothing_played() -> None:
    c = play(learner(), [], hindsight=True).certificate()
    assert c.rounds == 0
    assert c.regret == c.tight == c.bound == c.worst_case == 0.0
    assert c.true_regret == 0.0
    assert c.ratio is None


@pytest.mark.parametrize("F", [CUBE, L2Ball(2, 0.8), Simplex(2), LpBall(2, 3.0)], ids=repr)
@pytest.mark.parametrize("make", [losses.squared, losses.absolute, losses.logistic, losses.hinge])
def test_hindsight_against_scipy(F: Box, make, rng: np.random.Generator) -> None:  # type: ignore[no-untyped-def]
    fs = [make(v, float(np.sign(v[0]) or 1.0)) for v in rng.normal(size=(7, 2))]

    def total(x: np.ndarray) -> float:
        return sum(f(x)[0] for f in fs)

    actual = best_in_hindsight(F, fs)
    assert F.contains(actual.x, 1e-7)
    assert actual.lower <= actual.value == pytest.approx(total(actual.x))
    assert actual.value - actual.lower <= 1e-6 * (1 + abs(actual.value))
    angles = np.linspace(0, 2 * np.pi, 400)
    spokes = [F.vertex(np.array([np.cos(a), np.sin(a)])) for a in angles]
    grid = [F.start() + s * (v - F.start()) for v in spokes for s in np.linspace(0, 1, 12)]
    rough = min(grid, key=total)
    assert actual.lower <= total(rough) + 1e-9
    polished = minimize(total, rough, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    if F.contains(polished.x):
        assert actual.value == pytest.approx(polished.fun, abs=1e-5)
    assert actual.value <= total(rough) + 1e-6


def test_hindsight_of_linear_losses_is_exact(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(5, 2))
    actual = best_in_hindsight(CUBE, list(rows))
    assert actual.value == actual.lower == pytest.approx(-np.abs(rows.sum(axis=0)).sum())
    assert best_in_hindsight(CUBE, []).value == 0.0


def test_hindsight_on_an_open_box_is_refused() -> None:
    with pytest.raises(InvalidInput, match="needs a bounded set, got width inf"):
        best_in_hindsight(Box(-math.inf, math.inf), [losses.squared([1.0], 1.0)])


def test_true_regret(rng: np.random.Generator) -> None:
    fs = [losses.squared(v, 1.0) for v in rng.normal(size=(10, 2))]
    c = play(learner(), fs, hindsight=True).certificate()
    assert c.true_regret is not None
    assert c.true_regret <= c.regret + 1e-6
    linear = play(learner(), rng.normal(size=(10, 2)), hindsight=True).certificate()
    assert linear.true_regret == pytest.approx(linear.regret)


def test_true_regret_needs_every_loss() -> None:
    game = Game(learner())
    game.observe([1.0, 0.0], loss=0.3)
    assert game.certificate().true_regret is None
    assert game.certificate(best_loss=0.1).true_regret == pytest.approx(0.2)
    game.observe([1.0, 0.0])
    assert game.certificate(best_loss=0.1).true_regret is None
    game.observe([1.0, 0.0], loss=0.3)
    assert game.certificate(best_loss=0.1).true_regret is None


@pytest.mark.parametrize(("history", "rounds"), [(True, (1, 2, 3, 4, 5, 6, 7)), (3, (3, 6)), (False, None)])
def test_history(history: bool | int, rounds: tuple[int, ...] | None, rng: np.random.Generator) -> None:
    rows = rng.normal(size=(7, 2))
    c = play(learner(), rows, history=history).certificate()
    assert (None if c.history is None else c.history.rounds) == rounds
    if c.history is not None:
        assert set(c.history.series) == {"regret", "bound", "worst case B_R", "best in hindsight"}
        at = play(learner(), rows[: rounds[-1]]).certificate() if rounds else c
        assert c.history.series["regret"][-1] == at.regret
        assert c.history.series["bound"][-1] == at.bound


def test_comparator(rng: np.random.Generator) -> None:
    game = play(learner(), rng.normal(size=(9, 2)))
    best = game.certificate()
    u = np.array([0.3, -0.2])
    other = game.certificate(comparator=u)
    assert other.regret == pytest.approx(game.ledger.loss - float(game.ledger.S @ u))
    assert other.regret <= best.regret
    assert other.regret <= other.tight + 1e-12 <= other.bound + 1e-12
    np.testing.assert_array_equal(other.comparator, u)


def test_full(rng: np.random.Generator) -> None:
    rows = rng.normal(size=(9, 2))
    game = play(FTPRL(L2Ball(2), CoordinateConstant()), rows, full=True)
    np.testing.assert_allclose(game.ledger.GG, rows.T @ rows)
    assert play(learner(), rows).ledger.GG is None
    asked = play(learner(), rows, full=True).certificate(program=True)
    assert asked.post_hoc["full"] is not None
    assert asked.post_hoc["full"] <= asked.post_hoc["diagonal"] * (1 + 1e-6)
    assert asked.post_hoc["diagonal"] <= math.sqrt(math.pi / 2) * asked.post_hoc["full"] * (1 + 1e-6)


def test_hints_at_the_door(rng: np.random.Generator) -> None:
    game = Game(learner(), hint=[1.0, -1.0])
    np.testing.assert_array_equal(game.x, [-1.0, 1.0])
    game.observe([1.0, -1.0], hint=[0.5, 2.0])  # no error, so no weight: the endpoints of z + hint
    np.testing.assert_array_equal(game.x, [-1.0, -1.0])
    c = game.certificate()
    assert c.regret <= 0.0
    assert any("hint" in text for text in c.caveats)
    with pytest.raises(Unsupported, match="takes no hint; use FTPRL"):
        Game(GradientDescent(CUBE), hint=[1.0, 1.0])


def test_a_hint_in_a_buffer_that_is_used_again() -> None:
    """The caller may reuse its arrays: the game copies them."""
    reused, fresh, buffer = Game(learner()), Game(learner()), np.empty(2)
    for g in ([1.0, -1.0], [0.5, 0.2], [0.3, 0.3]):
        buffer[:] = g
        reused.observe(buffer, hint=buffer)
        fresh.observe(list(g), hint=list(g))
    assert reused.certificate().to_dict() == fresh.certificate().to_dict()


def test_preconditioned_game_has_the_inner_certificate(rng: np.random.Generator) -> None:
    A = np.array([[2.0, 0.3], [0.0, 0.5]])
    inner = FTPRL(L2Ball(2), CoordinateConstant())
    rows = rng.normal(size=(8, 2))
    outer = play(Preconditioned(A, inner), rows).certificate()
    direct = play(inner, rows @ np.linalg.inv(A)).certificate()
    assert outer.regret == pytest.approx(direct.regret)
    assert outer.bound == pytest.approx(direct.bound)
    assert any("preconditioned" in text for text in outer.caveats)


def test_preconditioned_comparator_is_in_the_outer_coordinates(rng: np.random.Generator) -> None:
    A = np.array([[2.0, 0.3], [0.0, 0.5]])
    game = play(Preconditioned(A, FTPRL(L2Ball(2), CoordinateConstant())), rng.normal(size=(8, 2)))
    u = np.linalg.solve(A, [0.6, 0.0])
    np.testing.assert_allclose(game.certificate(comparator=u).comparator, u)
    best = game.certificate().comparator
    assert game.certificate(comparator=best).regret == pytest.approx(game.certificate().regret)


def test_the_total_loss_stands_beside_the_regret() -> None:
    game = Game(FTPRL(Box(-1, 1, dim=1), Diagonal()))
    assert game.certificate().loss is None
    for g in (1.0, -2.0, 1.0):
        game.observe([g], loss=abs(g))
    assert game.certificate().loss == 4.0
    assert "total loss  " in str(game.certificate())
    assert game.certificate().to_dict()["loss"] == 4.0
    game.observe([1.0])
    assert game.certificate().loss is None
    assert "total loss  " not in str(game.certificate())
