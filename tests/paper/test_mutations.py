"""A wrong learner is found out: a sign changed in one place turns verdicts red."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import ftprl.learner.ftprl
from ftprl import FTPRL, psd
from ftprl.paper.registry import chosen, find
from ftprl.paper.runner import Result, run_one
from ftprl.schemes import Diagonal

Patch = pytest.MonkeyPatch


def wrong_gradient(patch: Patch) -> None:
    """The learner climbs: it adds -g where it should add g."""
    advance = FTPRL.advance
    patch.setattr(FTPRL, "advance", lambda self, state, g, hint: advance(self, state, -g, hint))


def wrong_centre(patch: Patch) -> None:
    """z += Q x_t for z -= Q x_t: the proximal term is centred at -x_t."""
    patch.setattr(ftprl.learner.ftprl, "psd", _psd(lambda Q, x: -psd.apply(Q, x)))


def no_centre(patch: Patch) -> None:
    """No proximal term at all: everything is centred at the origin."""
    patch.setattr(ftprl.learner.ftprl, "psd", _psd(lambda Q, x: 0.0 * psd.apply(Q, x)))


def wrong_step(patch: Patch) -> None:
    """The step minimises against -z."""
    minimise = FTPRL.minimise
    patch.setattr(FTPRL, "minimise", lambda self, H, z, near, t: minimise(self, H, -z, near, t))


def light_weights(patch: Patch) -> None:
    """The diagonal scheme regularises a quarter as much as it should."""
    step = Diagonal.step

    def lighter(self: Diagonal, state: Any, g: Any) -> Any:
        Q, after = step(self, state, g)
        return Q / 4, replace(after, total=after.total / 4)

    patch.setattr(Diagonal, "step", lighter)


def _psd(apply: Callable[..., Any]) -> SimpleNamespace:
    return SimpleNamespace(apply=apply, zero=psd.zero, add=psd.add)


# What turns red: statements about plays under a wrong play, statements about weights under wrong weights.
RED = {
    wrong_gradient: ("regret-theorem", "diagonal", "algorithm-1", "composite"),
    wrong_centre: ("lemma-leader", "half", "algorithm-1", "centring"),
    no_centre: ("lemma-regularised-leader", "algorithm-1", "centring"),
    wrong_step: ("lemma-ftrl", "diagonal", "algorithm-2"),
    light_weights: ("lemma-sum", "diagonal"),
}
# What does not: statements that do not ask the changed part.
GREEN = {wrong_gradient: "lemma-sum", wrong_centre: "lemma-one-round", light_weights: "lemma-contraction"}


def judged(name: str) -> Result:
    return run_one(find(name), False, lambda text: None)


@pytest.mark.parametrize("mutation", RED, ids=lambda m: m.__name__)
def test_a_wrong_learner_turns_verdicts_red(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    results = {name: judged(name) for name in RED[mutation]}
    assert [name for name, result in results.items() if not result.red] == []
    # Red by their numbers, not because something broke on the way.
    assert [result.error for result in results.values() if result.error] == []
    if mutation in GREEN:
        assert not judged(GREEN[mutation]).red


def test_a_broken_experiment_is_red(monkeypatch: Patch) -> None:
    """Whatever an experiment trips over, its verdict is red and says why, even where failing is expected."""
    monkeypatch.setattr(FTPRL, "advance", lambda self, state, g, hint: 1 / 0)
    result = judged("algorithm-1")
    assert result.red
    assert result.error == "ZeroDivisionError: division by zero"


@pytest.mark.slow
def test_a_climbing_learner_keeps_no_theorem(monkeypatch: Patch) -> None:
    """Of all statements about the learner's plays, none survives the wrong sign of the gradient."""
    wrong_gradient(monkeypatch)
    about_plays = [s for s in chosen([]) if s.code == "ftprl.FTPRL"]
    assert len(about_plays) >= 5
    assert [s.name for s in about_plays if not judged(s.name).red] == []


@pytest.mark.parametrize("mutation", [wrong_centre, no_centre], ids=lambda m: m.__name__)
def test_a_lost_centre_costs_regret_itself(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """Not only the plays differ from the formula: far from 0 the bound itself is broken."""
    mutation(monkeypatch)
    unmet = {check.what for check in judged("centring").outcome.stated if not check.ok}
    assert unmet >= {
        "FTPRL: plays against the literal argmin, largest distance",
        "FTPRL: regret / (2 D sqrt G), largest",
    }
