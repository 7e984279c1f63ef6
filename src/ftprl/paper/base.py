"""The parts of an experiment: a statement, the checks that decide it, the figures, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal, final

from ftprl.draw import Panel

Step = Callable[[str], None]  # called with the name of the current step, for the progress line


@final
class Verdict(Enum):
    """The verdict of an experiment on a statement."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    FAILS = "does not hold as stated"


@final
@dataclass(frozen=True, slots=True)
class Check:
    """One number against the limit that was set before it was measured.

    >>> print(Check("regret over the bound", 0.5, "<=", 1.0))
    regret over the bound: 0.5 <= 1
    """

    what: str
    value: float
    relation: Literal["<=", ">="]
    limit: float

    @property
    def ok(self) -> bool:
        """Return True if the number meets its limit; NaN never does."""
        if math.isnan(self.value) or math.isnan(self.limit):
            return False
        return bool(self.value <= self.limit if self.relation == "<=" else self.value >= self.limit)

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.6g} {self.relation} {self.limit:.6g}{'' if self.ok else ' is not met'}"

    def to_dict(self) -> dict[str, Any]:
        """Return the check as plain data."""
        return {
            "what": self.what,
            "value": float(self.value),
            "relation": self.relation,
            "limit": float(self.limit),
            "ok": self.ok,
        }


@final
@dataclass(frozen=True)
class Outcome:
    """The result of an experiment: checks of the statement as printed, and of its correction if there is one.

    A statement that is false as printed fails one of `stated`. It holds with a correction if all of `corrected` are
    met, checks of the same statement with the error removed. `instead` checks a different statement that does hold: it
    cannot change the verdict on the printed one, but it must be met.
    """

    stated: Sequence[Check]
    corrected: Sequence[Check] = ()
    panels: Sequence[Panel] = ()
    numbers: Sequence[str] = field(default=())  # sentences with further numbers, for the page
    instead: Sequence[Check] = ()
    remark: str = ""  # a short note for the table on the origin of the numbers

    @property
    def verdict(self) -> Verdict:
        """Return the verdict that follows from the checks."""
        if self.stated and all(check.ok for check in self.stated):
            return Verdict.HOLDS if all(check.ok for check in self.corrected) else Verdict.FAILS
        if self.corrected and all(check.ok for check in self.corrected):
            return Verdict.CORRECTED
        return Verdict.FAILS


@final
@dataclass(frozen=True)
class Statement:
    """One statement of the paper, or beyond it, and the experiment that judges it.

    `expected` is the verdict that a correct library finds; any other verdict is an error. `run(full, step)` does the
    work with fixed seeds, so that two runs give equal numbers.
    """

    name: str  # as typed: lower case, words joined by -
    title: str
    place: str  # its place: "Theorem 2", "Section 4.2", "beyond the paper"
    claim: str  # in our words
    instance: str  # the sets and streams of the experiment
    measured: str  # the measured numbers, and the tolerance chosen beforehand
    code: str  # the function or class concerned: "ftprl.schemes.Diagonal", several joined by ", "
    run: Callable[[bool, Step], Outcome]
    expected: Verdict = Verdict.HOLDS
    correction: str = ""  # the necessary change, if the statement holds with a correction or fails
    tests: str = ""  # further tests: "tests/theory/test_lemmas.py", several joined by ", "
