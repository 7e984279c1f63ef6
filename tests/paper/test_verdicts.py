"""Every statement of the paper is run, quickly, and its verdict is what a correct library finds."""

from __future__ import annotations

import pytest

from ftprl.paper.base import Outcome, Verdict
from ftprl.paper.registry import find, names
from ftprl.paper.runner import run_one

SLOW = ("bad-class", "related")  # more than a few seconds each
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
        assert panel.xlabel
        assert panel.ylabel
    assert_can_fail(result.outcome)


def assert_can_fail(outcome: Outcome) -> None:
    """No verdict comes from nothing, and a correction is tried only where something printed is broken."""
    assert outcome.stated
    assert outcome.verdict is Verdict.HOLDS or not all(check.ok for check in outcome.stated)


@pytest.mark.parametrize("name", ["lemma-sum", "lemma-one-round", "composite"])
def test_the_same_numbers_each_time(name: str) -> None:
    first, second = (run_one(find(name), False, lambda text: None) for _ in range(2))
    assert first.outcome.stated == second.outcome.stated
    assert first.outcome.numbers == second.outcome.numbers


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_full_verdict(name: str) -> None:
    result = run_one(find(name), True, lambda text: None)
    assert not result.red, (result.error, [str(c) for c in (*result.outcome.stated, *result.outcome.corrected)])
