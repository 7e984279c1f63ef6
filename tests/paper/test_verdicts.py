"""Every statement of the paper is run in its quick form and has the expected verdict."""

from __future__ import annotations

import numpy as np
import pytest

from ftprl.paper.base import Outcome, Statement, Verdict
from ftprl.paper.registry import find, names
from ftprl.paper.runner import run_one

SLOW = ("related",)  # more than a few seconds
SETS_AND_BEYOND = (
    "axes-example",
    "bad-class",
    "bad-class-bound",
    "best-bound",
    "best-bound-limits",
    "black-box",
    "full-against-diagonal",
    "heavy-tail",
    "john-scaling",
    "lp-post-hoc",
    "scale-lp",
    "sketch",
    "sphere",
)
NAMES = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in names()]


@pytest.mark.parametrize("name", NAMES)
def test_verdict(name: str) -> None:
    summary: list[str] = []
    result = run_one(find(name), False, summary.append)
    assert not result.error
    assert not result.red, [str(check) for check in (*result.outcome.stated, *result.outcome.corrected)]
    assert summary, "it says what it does"
    assert result.outcome.panels, "it is drawn"
    for panel in result.outcome.panels:
        assert panel.title
        assert panel.xlabel
        assert panel.ylabel
        if name in SETS_AND_BEYOND:
            for s in panel.series:
                assert len(np.asarray(s.x)) == len(np.asarray(s.y)) >= 2
                assert np.isfinite(np.asarray(s.y, dtype=float)).all()
    assert_words(result.statement)
    assert_can_fail(result.outcome)


def assert_words(statement: Statement) -> None:
    """Check that a statement has a claim and a test description, and a correction if one is needed."""
    texts = (statement.title, statement.place, statement.claim, statement.instance, statement.measured, statement.code)
    assert all(texts)
    assert bool(statement.correction) == (statement.expected is not Verdict.HOLDS)


def assert_can_fail(outcome: Outcome) -> None:
    """Check that a verdict has checks, and corrections only if a printed claim fails."""
    assert outcome.stated
    assert outcome.verdict is Verdict.HOLDS or not all(check.ok for check in outcome.stated)


@pytest.mark.parametrize("name", ["lemma-one-round", "composite", "heavy-tail", "best-bound-limits"])
def test_the_same_numbers_each_time(name: str) -> None:
    first, second = (run_one(find(name), False, lambda text: None) for _ in range(2))
    for part in ("stated", "corrected", "instead"):
        assert getattr(first.outcome, part) == getattr(second.outcome, part)
    assert first.outcome.numbers == second.outcome.numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_full_verdict(name: str) -> None:
    result = run_one(find(name), True, lambda text: None)
    assert not result.red, (result.error, [str(c) for c in (*result.outcome.stated, *result.outcome.corrected)])
