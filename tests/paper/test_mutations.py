"""Wrong learners are detected: a sign changed in one place turns verdicts red."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import ftprl.learner.ftprl as learner_module
import ftprl.paper.john_scaling as john_module
import ftprl.schemes.constant as constant_module
import ftprl.schemes.diagonal as diagonal_module
from ftprl import FTPRL, Ledger, psd
from ftprl.learner import accounting
from ftprl.paper.registry import chosen, find
from ftprl.paper.runner import Result, run_one
from ftprl.schemes import BlockConstant, CoordinateConstant, Diagonal, Full, Scheme, Sketch
from ftprl.sets import Box, L2Ball, Polytope, Simplex
from ftprl.sets.norm_ball import NormBall
from ftprl.sets.simplex import Shares

Patch = pytest.MonkeyPatch


def wrong_gradient(patch: Patch) -> None:
    """Make the learner climb: it adds -g instead of g."""
    advance = FTPRL.advance
    patch.setattr(FTPRL, "advance", lambda self, state, g, hint: advance(self, state, -g, hint))


def wrong_centre(patch: Patch) -> None:
    """z += Q x_t for z -= Q x_t: the proximal term is centred at -x_t."""
    patch.setattr(learner_module, "psd", _psd(lambda Q, x: -psd.apply(Q, x)))


def no_centre(patch: Patch) -> None:
    """Remove the proximal term's centre: everything is centred at the origin."""
    patch.setattr(learner_module, "psd", _psd(lambda Q, x: 0.0 * psd.apply(Q, x)))


def wrong_step(patch: Patch) -> None:
    """Make the step minimise against -z."""
    minimise = FTPRL.minimise
    patch.setattr(FTPRL, "minimise", lambda self, H, z, near, t: minimise(self, H, -z, near, t))


def light_weights(patch: Patch) -> None:
    """Make the diagonal scheme regularise a quarter as much as it should."""
    step = Diagonal.step

    def lighter(self: Diagonal, state: Any, g: Any) -> Any:
        Q, after = step(self, state, g)
        return Q / 4, replace(after, total=after.total / 4)

    patch.setattr(Diagonal, "step", lighter)


def _psd(apply: Callable[..., Any]) -> SimpleNamespace:
    return SimpleNamespace(apply=apply, zero=psd.zero, add=psd.add)


# Statements that turn red: about plays under a wrong play, about weights under wrong weights.
RED = {
    wrong_gradient: ("algorithm-1", "composite"),
    wrong_centre: ("lemma-leader", "half"),
    no_centre: ("lemma-regularised-leader", "algorithm-1"),
    wrong_step: ("lemma-ftrl", "algorithm-2"),
    light_weights: ("lemma-sum", "diagonal"),
}
# Statements that stay: they do not use the changed part.
GREEN = {wrong_gradient: "lemma-sum", wrong_centre: "lemma-one-round", light_weights: "lemma-contraction"}


def judged(name: str) -> Result:
    return run_one(find(name), False, lambda text: None)


@pytest.mark.parametrize("mutation", RED, ids=lambda m: m.__name__)
def test_a_wrong_learner_turns_verdicts_red(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    results = {name: judged(name) for name in RED[mutation]}
    assert [name for name, result in results.items() if not result.red] == []
    # Red because of their numbers, not because of an error.
    assert [result.error for result in results.values() if result.error] == []
    if mutation in GREEN:
        assert not judged(GREEN[mutation]).red


def test_a_broken_experiment_is_red(monkeypatch: Patch) -> None:
    """An experiment that raises any error is red and reports it, even if it is expected to fail."""
    monkeypatch.setattr(FTPRL, "advance", lambda self, state, g, hint: 1 / 0)
    result = judged("algorithm-1")
    assert result.red
    assert result.error == "ZeroDivisionError: division by zero"


@pytest.mark.slow
def test_a_climbing_learner_keeps_no_theorem(monkeypatch: Patch) -> None:
    """Every statement about the learner's plays fails under the wrong sign of the gradient."""
    wrong_gradient(monkeypatch)
    about_plays = [s for s in chosen([]) if s.code == "ftprl.FTPRL"]
    assert len(about_plays) >= 5
    assert [s.name for s in about_plays if not judged(s.name).red] == []


@pytest.mark.parametrize("mutation", [wrong_centre, no_centre], ids=lambda m: m.__name__)
def test_a_lost_centre_costs_regret_itself(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """Without the centre, not only the plays but also the bound is wrong for a set far from 0."""
    mutation(monkeypatch)
    unmet = {check.what for check in judged("centring").outcome.stated if not check.ok}
    assert unmet >= {
        "FTPRL: plays against the literal argmin, largest distance",
        "FTPRL: regret / (2 D sqrt G), largest",
    }


def _scaled(patch: Patch, owner: Any, name: str, factor: float) -> None:
    """Make a method return a multiple of the correct value."""
    right = getattr(owner, name)
    patch.setattr(owner, name, lambda *args, **more: factor * right(*args, **more))


def _each(patch: Patch, owners: Sequence[Any], name: str, factor: float) -> None:
    for owner in owners:
        _scaled(patch, owner, name, factor)


def small_stability(patch: Patch) -> None:
    """Make the certificate count 0.4 of the stability."""
    _each(patch, (Scheme, Full, Sketch), "stability", 0.4)


def small_penalty(patch: Patch) -> None:
    """Make the certificate count 0.4 of the penalty."""
    _each(patch, (Scheme, CoordinateConstant, BlockConstant), "penalty", 0.4)


def no_regularisation(patch: Patch) -> None:
    """Make the certificate omit r(x*)."""
    patch.setattr(Ledger, "regularisation", lambda self, total, x: 0.0)


def small_deltas(patch: Patch) -> None:
    """Make the certificate count only the linear part of the deltas."""
    patch.setattr(accounting, "psd", SimpleNamespace(**{**vars(psd), "between": lambda Q, x, y: 0.0}))


def small_box(patch: Patch) -> None:
    """Halve N(Q) of a box."""
    _scaled(patch, Box, "sq_diameter", 0.5)


def small_simplex(patch: Patch) -> None:
    """Halve N(Q) of the simplex."""
    _scaled(patch, Simplex, "sq_diameter", 0.5)


def small_ball(patch: Patch) -> None:
    """Halve N(Q) of the L2 ball."""
    _scaled(patch, L2Ball, "sq_diameter", 0.5)


def small_constants(patch: Patch) -> None:
    """Print the closed forms with c/2 + 1/c instead of c/2 + 2/c."""
    for module in (constant_module, diagonal_module):
        patch.setattr(module, "constants", lambda c: (c / 2 + 1 / c, c / 2 + 1 / c))


def wrong_centring(patch: Patch) -> None:
    """Add the mean to centred gradients instead of subtracting it."""
    patch.setattr(Shares, "tangent", lambda self, g: g + float(g.mean()))


def wrong_hint(patch: Patch) -> None:
    """Use the hint with the wrong sign."""
    advance = FTPRL.advance

    def turned(self: FTPRL, state: Any, g: Any, hint: Any) -> Any:
        return advance(self, state, g, None if hint is None else -hint)

    patch.setattr(FTPRL, "advance", turned)


def large_ball_optimum(patch: Patch) -> None:
    """Report the best diagonal on a ball 1 % too large."""
    _optimum(patch, NormBall, 1.01)


def small_simplex_optimum(patch: Patch) -> None:
    """Report the best diagonal on the simplex 30 % too small."""
    _optimum(patch, Simplex, 0.7)


def _optimum(patch: Patch, kind: Any, factor: float) -> None:
    right = kind.diagonal_optimum

    def wrong(self: Any, G: Any) -> Any:
        best = right(self, G)
        return replace(best, value=factor * best.value)

    patch.setattr(kind, "diagonal_optimum", wrong)


def small_gamma(patch: Patch) -> None:
    """Halve gamma of a polytope."""
    _scaled(patch, Polytope, "gamma", 0.5)


def heavy_weights(patch: Patch) -> None:
    """Use a global rate with six times the weight."""
    step = CoordinateConstant.step

    def heavier(self: CoordinateConstant, state: Any, g: Any) -> Any:
        Q, after = step(self, state, g)
        return 6 * Q, replace(after, total=6 * after.total)

    patch.setattr(CoordinateConstant, "step", heavier)


def loose_ellipsoid(patch: Patch) -> None:
    """Make john return an ellipsoid of twice the size."""
    right = john_module.john
    patch.setattr(john_module, "john", lambda feasible: right(feasible) / 2)


NUMBERS = {
    small_stability: "certificate",
    small_penalty: "certificate",
    no_regularisation: "certificate",
    small_deltas: "certificate",
    small_box: "certificate",
    small_simplex: "certificate",
    small_ball: "certificate",
    small_constants: "certificate",
    wrong_centring: "certificate",
    wrong_hint: "hints",
    large_ball_optimum: "lp-post-hoc",
    small_simplex_optimum: "best-bound",
    small_gamma: "arbitrary-sets-gamma",
    heavy_weights: "sphere",
    loose_ellipsoid: "john-scaling",
}


@pytest.mark.parametrize("mutation", NUMBERS, ids=lambda m: m.__name__)
def test_a_wrong_number_turns_a_verdict_red(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    result = judged(NUMBERS[mutation])
    assert result.red
    assert not result.error
