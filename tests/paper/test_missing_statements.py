"""Statements of the introduction and of Section 3: each turns red if a part of it is broken on purpose."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ftprl.baselines import RestartedDescent
from ftprl.bounds import Ledger
from ftprl.learner import Preconditioned
from ftprl.paper import hypersphere
from ftprl.paper.hypersphere import BallState
from ftprl.paper.registry import find
from ftprl.paper.runner import Result, run_one
from ftprl.schemes import CentredBestBound, CoordinateConstant, Diagonal, Fixed, Scheme
from ftprl.sets import hindsight
from ftprl.sets.box import Box
from ftprl.sets.norm_ball import NormBall

Patch = pytest.MonkeyPatch


def judged(name: str) -> Result:
    return run_one(find(name), False, lambda text: None)


def six_times(patch: Patch, scheme: type[Scheme]) -> None:
    """Return a scheme with six times its proper weight."""
    right: Any = scheme.step

    def wrong(self: Any, state: Any, g: np.ndarray) -> Any:
        Q, new = right(self, state, g)
        return 6 * Q, replace(new, total=6 * new.total)

    patch.setattr(scheme, "step", wrong)


def heavy_constant(patch: Patch) -> None:
    """Make the global rate six times too slow, so that it is no longer within sqrt 2 of the best bound."""
    six_times(patch, CoordinateConstant)


def cheap_late_matrices(patch: Patch) -> None:
    """Make increments after the first cost nothing, so that spreading a matrix is free."""
    right = Fixed.penalty
    patch.setattr(Fixed, "penalty", lambda self, state, Q: right(self, state, Q) if state.t == 1 else 0.0)


def small_regret(patch: Patch) -> None:
    """Report half of the regret."""
    right = Ledger.linear_regret
    patch.setattr(Ledger, "linear_regret", lambda self, x: right(self, x) / 2)


def gradient_not_transposed(patch: Patch) -> None:
    """Use A^{-1} g instead of A^{-T} g, which is right for symmetric A only."""

    def advance(self: Any, state: Any, g: np.ndarray, hint: Any) -> Any:
        return self._wrap(self.learner.advance(state.inner, self._inverse @ g, None))

    patch.setattr(Preconditioned, "advance", advance)


def narrow_box(patch: Patch) -> None:
    """Make the widths of a box a tenth too large."""
    right = Box.widths
    patch.setattr(Box, "widths", lambda self: 1.1 * right(self))


def wide_ball(patch: Patch) -> None:
    """Report the best full matrix on a ball as a third better than it is."""
    right: Any = NormBall.full_optimum

    def better(self: Any, *args: Any) -> Any:
        best = right(self, *args)
        return None if best is None else replace(best, value=best.value / 1.5)

    patch.setattr(NormBall, "full_optimum", better)


FAULTS = {
    heavy_constant: "introduction-norms",
    cheap_late_matrices: "one-matrix",
    small_regret: "minimax",
    narrow_box: "diagonal-against-constant",
    wide_ball: "kappa-transfer",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_a_planted_fault_turns_it_red(fault: Any, monkeypatch: Patch) -> None:
    name = FAULTS[fault]
    fault(monkeypatch)
    result = judged(name)
    assert result.red or not all(check.ok for check in result.outcome.instead)


def test_only_matrices_that_are_not_symmetric_see_the_transpose(monkeypatch: Patch) -> None:
    """For symmetric A a missing transpose changes nothing: the experiment also needs other matrices."""
    gradient_not_transposed(monkeypatch)
    result = judged("scale-direct")
    checks = {check.what: check.ok for check in result.outcome.stated}
    assert result.red
    assert checks["A symmetric: distance of the plays, over the widths"]
    assert not checks["A not symmetric: distance of the plays, over the widths"]


def test_slow_diagonal_loses_its_guarantee(monkeypatch: Patch) -> None:
    """FTPRL-Diag with six times the weight exceeds its guarantee."""
    before = judged("minimax").outcome.stated[2].value
    six_times(monkeypatch, Diagonal)
    assert judged("minimax").outcome.stated[2].value != before


def centred_at_the_plays(patch: Patch) -> None:
    """Centre the scheme's matrices at the plays."""
    right = CentredBestBound.__post_init__

    def moved(self: Any) -> None:
        right(self)
        object.__setattr__(self, "anchored", False)

    patch.setattr(CentredBestBound, "__post_init__", moved)


def limits_forgotten(patch: Patch) -> None:
    """Use the weights after the round instead of those before, which makes the bound too small."""
    patch.setattr(CentredBestBound, "penalty", lambda self, state, Q: 0.0)
    patch.setattr(CentredBestBound, "stability", lambda self, state, g, move, l2=0.0: 2.0 * float(g @ g))


@pytest.mark.parametrize("fault", [centred_at_the_plays, limits_forgotten], ids=lambda f: f.__name__)
def test_the_centred_best_bound_can_fail(fault: Any, monkeypatch: Patch) -> None:
    fault(monkeypatch)
    assert judged("centred-best-bound").red


def rounds_left_forgotten(patch: Patch) -> None:
    """Play minimax as if every round were the last, which follows the leader."""
    patch.setattr(hypersphere.MinimaxPlay, "init", lambda self, hint=None: BallState(np.zeros(4), 10**9, np.zeros(4)))


def diameter_squared(patch: Patch) -> None:
    """Make the closed form grow with D² instead of D."""
    right: Any = CoordinateConstant.closed_form

    def wrong(self: Any, state: Any) -> Any:
        form = right(self, state)
        return replace(form, strong=form.strong * state.D)

    patch.setattr(CoordinateConstant, "closed_form", wrong)


def flat_directions_counted(patch: Patch) -> None:
    """Make the best bound in hindsight half too large."""
    right = hindsight.const_optimum
    patch.setattr(hindsight, "const_optimum", lambda F, G: replace(right(F, G), value=1.5 * right(F, G).value))


def never_restarted(patch: Patch) -> None:
    """Never exhaust the budget, so that the first gradient's rate is kept for ever."""
    right: Any = RestartedDescent.advance

    def wrong(self: Any, state: Any, g: np.ndarray, hint: Any) -> Any:
        return right(self, replace(state, G=0.0), g, hint)

    patch.setattr(RestartedDescent, "advance", wrong)


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        (small_regret, "hypersphere"),
        (rounds_left_forgotten, "hypersphere"),
        (diameter_squared, "square-root-rates"),
        (small_regret, "hallucinated-loss"),
        (flat_directions_counted, "zero-widths"),
        (never_restarted, "lazy-restarts"),
    ],
    ids=lambda f: f if isinstance(f, str) else f.__name__,
)
def test_footnotes_and_remarks_can_fail(fault: Any, name: str, monkeypatch: Patch) -> None:
    fault(monkeypatch)
    result = judged(name)
    assert result.red
    assert not result.error
