"""Statements on sets, shapes and families: they run, have the expected verdict, and turn red when broken on purpose."""

import importlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ftprl import draw, posthoc, programs
from ftprl.baselines import GradientDescent
from ftprl.learner import FTPRL, State
from ftprl.paper.base import Outcome, Statement, Verdict
from ftprl.paper.fits import slope
from ftprl.paper.runner import run_one
from ftprl.schemes import CoordinateConstant, Diagonal, Fixed, Sketch
from ftprl.schemes.best_bound import BestBound
from ftprl.sets import Simplex
from ftprl.sets.norm_ball import NormBall


def silent(what: str) -> None:
    assert what


def module(name: str) -> Any:
    return importlib.import_module(f"ftprl.paper.{name.replace('-', '_')}")


def statement(name: str) -> Statement:
    chosen = module(name).STATEMENT
    assert isinstance(chosen, Statement)
    return chosen


def run(name: str) -> Outcome:
    return statement(name).run(False, silent)


def test_a_figure_is_drawn() -> None:
    """The panels of an experiment have the types that figures are drawn from."""
    assert draw.figure(run("axes-example").panels).axes


@pytest.mark.parametrize("name", ["axes-example", "bad-class-bound"])
def test_a_sign_in_the_learner_turns_it_red(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a learner that climbs, statements about the regret fail."""
    right = FTPRL.advance

    def wrong(self: FTPRL, state: State, g: np.ndarray, hint: np.ndarray | None) -> State:
        return right(self, state, -g, hint)

    monkeypatch.setattr(FTPRL, "advance", wrong)
    assert run_one(statement(name), False, silent).red


def spoil_weights(monkeypatch: pytest.MonkeyPatch, scheme: type, factor: float) -> None:
    """Return a scheme that gives every round too much weight."""
    right = scheme.step  # type: ignore[attr-defined]

    def wrong(self: Any, state: Any, g: np.ndarray) -> tuple[np.ndarray, Any]:
        Q, new = right(self, state, g)
        return factor * Q, replace(new, total=factor * new.total)

    monkeypatch.setattr(scheme, "step", wrong)


@pytest.mark.parametrize("name", ["scale-lp", "john-scaling", "sphere"])
def test_wrong_weights_turn_it_red(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six times the weight exceeds the proved ratio."""
    spoil_weights(monkeypatch, CoordinateConstant, 6.0)
    assert run_one(statement(name), False, silent).red


def spoiled(right: Callable[..., Any], factor: float) -> Callable[..., Any]:
    """Make a best bound in hindsight too small or too large."""

    def wrong(*args: Any, **more: Any) -> Any:
        bound = right(*args, **more)
        return replace(bound, value=factor * bound.value) if isinstance(bound, posthoc.PostHoc) else bound

    return wrong


@pytest.mark.parametrize(("name", "factor"), [("lp-post-hoc", 1.01), ("sphere", 1.01), ("best-bound", 0.7)])
def test_a_wrong_closed_form_turns_it_red(name: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The independent solver, the dual bound and the stability detect a wrong constant."""
    for kind in (NormBall, Simplex):
        monkeypatch.setattr(kind, "diagonal_optimum", spoiled(kind.diagonal_optimum, factor))
    if name == "sphere":
        target = module("sphere")
        monkeypatch.setattr(target, "best_bound", spoiled(target.best_bound, factor))
    assert run(name).verdict is Verdict.FAILS


def test_black_box_needs_the_transpose(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an asymmetric A, A^-1 g instead of A^-T g on one side changes the losses."""
    target = module("black-box")
    rng = np.random.default_rng(0)
    A, gs = rng.normal(size=(3, 3)) + 2 * np.eye(3), rng.normal(size=(30, 3)) + 0.5
    learner = target.learners(2.0, 3)["FTPRL, global rate"]
    here, there, _ = target.twice(learner, 2.0, A, gs)
    np.testing.assert_allclose(here, there, rtol=1e-9)
    right = np.linalg.inv

    def transposed(M: np.ndarray) -> np.ndarray:
        return right(M).T

    monkeypatch.setattr(target.np.linalg, "inv", transposed)
    here, there, _ = target.twice(learner, 2.0, A, gs)
    assert np.abs(here - there).max() > 0.1
    monkeypatch.undo()
    monkeypatch.setattr(target, "shape", lambda n, rng: np.asarray(rng.normal(size=(n, n)) + 2 * np.eye(n)))
    monkeypatch.setattr(target.np.linalg, "inv", transposed)
    assert run("black-box").verdict is Verdict.FAILS


def test_full_against_diagonal_sees_a_wrong_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """A semidefinite program with a result 30% too small exceeds sqrt(pi/2)."""
    right = programs.full_on_vertices
    monkeypatch.setattr(programs, "full_on_vertices", lambda V, GG: (0.7 * right(V, GG)[0], right(V, GG)[1]))
    assert run("full-against-diagonal").verdict is Verdict.FAILS


def test_heavy_tail_without_the_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    """With probabilities of a finite sum instead of 1/i the printed statement holds, and the correction does not."""
    target = module("heavy-tail")
    right = target.squares

    def lighter(n: int, T: int, alpha: float, rng: np.random.Generator) -> np.ndarray:
        return right(n, T, max(alpha, 1.3), rng)

    monkeypatch.setattr(target, "squares", lighter)
    outcome = run("heavy-tail")
    assert all(c.ok for c in outcome.stated)
    assert outcome.verdict is Verdict.FAILS


def test_best_bound_limits_need_the_hard_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """With p = 64 instead of 4 the schemes compete: the ratio hardly grows with n."""
    target = module("best-bound-limits")
    monkeypatch.setattr(target, "P", 64.0)
    assert run("best-bound-limits").verdict is Verdict.FAILS


def test_best_bound_sees_a_factor_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """With b six times too large B_R exceeds the proved bound."""
    right = BestBound.init
    monkeypatch.setattr(BestBound, "init", lambda self, F: replace(right(self, F), b=6 * right(self, F).b))
    assert run("best-bound").verdict is Verdict.FAILS


def test_sketch_that_forgets_what_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frequent directions without the escaped mass are below the outer products."""
    right = Sketch.step

    def forgetful(self: Sketch, state: Any, g: np.ndarray) -> tuple[np.ndarray, Any]:
        _, new = right(self, replace(state, escaped=0.0), g)
        rate = self.c / new.D
        total = rate * (new.U * np.sqrt(new.w)) @ new.U.T + 1e-9 * np.eye(len(g))
        return np.maximum(total - state.total, 0.0), replace(new, escaped=0.0, total=total)

    monkeypatch.setattr(Sketch, "step", forgetful)
    target = module("sketch")
    order, _, _ = target.follow(target.L2Ball(6), 2, target.low_rank(6, 4, 20, 0))
    assert order > 1e-3


def test_bad_class_spoiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sizes give the verdict of four; a learner that climbs, or a class without its first phase, does not."""
    target = module("bad-class")
    monkeypatch.setattr(target, "QUICK", (1000, 2197))
    assert run("bad-class").verdict is Verdict.HOLDS
    right, climb = target.adversaries.bad_class, FTPRL.advance
    with monkeypatch.context() as changed:
        changed.setattr(FTPRL, "advance", lambda self, state, g, hint: climb(self, state, -g, hint))
        assert run("bad-class").verdict is Verdict.FAILS

    def easy(T: int) -> Any:
        instance = right(T)
        return replace(instance, losses=lambda: list(instance.losses())[T:])

    monkeypatch.setattr(target.adversaries, "bad_class", easy)
    assert run("bad-class").verdict is Verdict.FAILS


def test_schedules_fall_and_are_played_as_the_library_plays_them() -> None:
    target, T = module("bad-class"), 125
    instance, rates = target.adversaries.bad_class(T), target.schedules(T, 6)
    assert (rates > 0).all()
    assert (np.diff(rates, axis=1) <= 0).all()
    for proximal in (False, True):
        values = target.scheduled(T, rates, proximal)
        for row, value in zip(rates, values, strict=True):
            if proximal:
                learner = FTPRL(instance.feasible, Fixed([1 / row[0], *np.diff(1 / row)]), instance.start)
            else:
                learner = GradientDescent(instance.feasible, lambda t, row=row: row[t - 1], instance.start)
            assert target.regret(learner, T) == pytest.approx(value, abs=1e-9)


def test_both_slips_of_algorithm_2_are_shown_alone() -> None:
    """As printed the algorithm fails with either misprint, with both, and on a part of the ball."""
    assert [c.what for c in run("algorithm-2").stated if c.ok] == []


def test_slope_of_a_power() -> None:
    assert slope([1, 2, 4, 8], [3, 3 * 2**0.4, 3 * 4**0.4, 3 * 8**0.4]) == pytest.approx(0.4)
    assert math.isclose(slope([1, 10], [5, 5]), 0.0, abs_tol=1e-12)


def test_diagonal_scheme_is_what_the_class_separates(monkeypatch: pytest.MonkeyPatch) -> None:
    """A diagonal scheme with one common weight fails on the class like a global rate."""
    right = Diagonal.step

    def common(self: Diagonal, state: Any, g: np.ndarray) -> tuple[np.ndarray, Any]:
        _, new = right(self, state, g)
        total = np.full_like(new.total, float(np.sqrt(new.G.sum())) * 2)
        return total - state.total, replace(new, total=total)

    monkeypatch.setattr(Diagonal, "step", common)
    assert run_one(statement("bad-class-bound"), False, silent).red
