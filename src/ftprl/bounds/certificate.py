"""The certificate of a game: proved numbers that print, become JSON, and can be plotted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.errors import InvalidInput
from ftprl.terminal import columns, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ftprl.bounds.delays import Delays

Vector = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class History:
    """A certificate's numbers at the end of chosen rounds."""

    rounds: tuple[int, ...] = ()
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)


@final
@dataclass(frozen=True, eq=False)
class Certificate:
    """The proved regret of a game against the best fixed point in hindsight, and its upper bounds.

    regret <= tight <= bound <= theorem <= worst_case <= closed_form, and bound <= closed_form_strong. A number is None
    where the learner has no such bound.
    """

    rounds: int
    regret: float  # linearised: sum g_t·x_t - min over F of g_{1:t}·x
    true_regret: float | None
    tight: float | None  # r + sum delta
    bound: float | None  # r + ½ stability
    theorem: float | None  # r + stability
    worst_case: float | None  # B_R = sum N(Q_t) + stability
    closed_form: float | None
    closed_form_strong: float | None
    post_hoc: Mapping[str, float | None]
    family: str | None
    ratio: float | None
    proven_ratio: float | None
    proven_regret_ratio: float | None
    comparator: Vector | None
    solver_gap: float  # the largest measured gap of a step
    caveats: tuple[str, ...] = ()
    history: History | None = None
    delays: Delays | None = None  # only if gradients came with tickets
    in_expectation: bool = False  # True if the bounds hold for the expected regret only
    loss: float | None = None  # the total loss of the points played, if every loss was observed
    loose: tuple[str, ...] = ()  # names of numbers that are upper bounds: worst_case, families of post_hoc

    def __repr__(self) -> str:
        return f"Certificate(rounds={self.rounds}, regret={self.regret:.6g}, bound={_short(self.bound)})"

    @property
    def ratio_is(self) -> str | None:
        """Return "exact", or whether the true ratio of B_R is "at most" or "at least" `ratio`; None without a ratio."""
        if self.ratio is None:
            return None
        return "at most" if "worst_case" in self.loose else "at least" if self.family in self.loose else "exact"

    def to_dict(self) -> dict[str, Any]:
        """Return numbers, strings and lists, ready for JSON; infinite and unknown values are None."""
        names = [
            "rounds",
            "loss",
            "regret",
            "true_regret",
            "tight",
            "bound",
            "theorem",
            "worst_case",
            "closed_form",
            "closed_form_strong",
            "family",
            "ratio",
            "proven_ratio",
            "proven_regret_ratio",
            "solver_gap",
            "ratio_is",
        ]
        out: dict[str, Any] = {name: _plain(getattr(self, name)) for name in names}
        out["post_hoc"] = {k: _plain(v) for k, v in self.post_hoc.items()}
        out["comparator"] = None if self.comparator is None else [float(v) for v in self.comparator]
        out["caveats"] = list(self.caveats)
        out["loose"] = list(self.loose)
        if self.in_expectation:
            out["in_expectation"] = True
        if self.delays is not None:
            out["delays"] = {name: _plain(value) for name, value in self.delays.to_dict().items()}
        return out

    def _shown(self) -> list[tuple[str, str, str]]:
        """Return (name, value, explanation) for each number that is known."""
        smallest = "smallest B_R of a fixed Q"
        rows = [
            ("total loss", self.loss, "of the points played"),
            ("regret at most", self.regret, "above the best fixed point, linearised"),
            ("true regret", self.true_regret, "at most: with the losses themselves"),
            ("tight bound", self.tight, "r + sum of deltas"),
            ("bound", self.bound, "r + half the stability"),
            *(() if self.delays is None else (("bound with delays", self.delays.bound, "whatever they cost"),)),
            ("theorem's bound", self.theorem, "r + stability"),
            ("worst case B_R", self.worst_case, self._note("worst_case", "whatever the plays were")),
            ("closed form", self.closed_form, "the paper's constants"),
            ("closed form, strong", self.closed_form_strong, "half the stability"),
            *((f"best in hindsight, {k}", v, self._note(k, smallest)) for k, v in self.post_hoc.items()),
            (f"ratio to {self.family}" if self.family else "ratio", self.ratio, self._ratio_note()),
        ]
        if self.in_expectation:
            rows = [(name, value, f"{note}; in expectation" if name in _BOUNDS else note) for name, value, note in rows]
        return [
            (name, _short(value), note)
            for name, value, note in rows
            if value is not None or name[:4] not in ("true", "tota")
        ]

    def sentences(self) -> list[str]:
        """Return in words how large the regret is, what is proved of it, how good that is, and how exact the steps
        are.
        """
        regret = self.regret if self.true_regret is None else min(self.regret, self.true_regret)
        loss = "The total loss" if self.loss is None else f"The total loss, {_short(self.loss)},"
        if math.isfinite(regret):
            above = f"at most {_short(regret)} above" if regret >= 0.0 else f"at least {_short(-regret)} below"
            said = [f"{loss} is {above} that of the best fixed point in hindsight."]
        else:
            said = [f"{loss} has no limit above that of the best fixed point: the set is unbounded."]
        if self.bound is None or self.worst_case is None:
            said.append("No bound is proved for this learner.")
        elif math.isfinite(self.bound):
            every = (
                f", and at most {_short(self.worst_case)} above that of any other point"
                if math.isfinite(self.worst_case)
                else ""
            )
            expected = "In expectation it" if self.in_expectation else "It"
            said.append(f"{expected} is proved to be at most {_short(self.bound)} above that{every}.")
        best = self.post_hoc.get(self.family or "")
        if best is not None and self.ratio is not None:
            about = {"exact": "", "at most": "at most ", "at least": "at least "}[self.ratio_is or "exact"]
            proved = "" if self.proven_ratio is None else f" (proved in advance: at most {self.proven_ratio:.4g} times)"
            said.append(
                f"The best {self.family} regularisation in hindsight would have had {_short(best)} in place of"
                f" {_short(self.worst_case)}, which is {about}{self.ratio:.4g} times as large{proved}."
            )
        exactly = "exactly" if not self.solver_gap else f"up to {self.solver_gap:.2g}, which the bounds include"
        return [*said, f"Each step minimised its objective {exactly}."]

    def __str__(self) -> str:
        shown = self._shown()
        width = max(len(name) for name, _, _ in shown)
        digits = max(len(value) for _, value, _ in shown)
        wide = min(80, columns())
        lines = [f"after {self.rounds} round{'s' if self.rounds != 1 else ''}"]
        lines += [line for sentence in self.sentences() for line in wrapped(sentence, 2, width=wide)]
        lines += ["in numbers (docs/notation.md has the symbols):"]
        for name, value, note in shown:
            lines += wrapped(f"{name:<{width}}  {value:>{digits}}  {note}", 2, width + digits + 6, wide)
        lines += [line for caveat in self.caveats for line in wrapped(f"note: {caveat}", 2, width=wide)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the certificate as HTML for a notebook."""
        from ftprl.draw.card import card

        rows = [(name, f"{value} \N{EM DASH} {note}" if note else value) for name, value, note in self._shown()]
        return card(f"Certificate after {self.rounds} rounds", rows, " ".join([*self.sentences(), *self.caveats]))

    def _note(self, name: str, note: str) -> str:
        """Return the explanation, marked if the number is only an upper bound."""
        return f"{note}: at most this" if name in self.loose else note

    def _ratio_note(self) -> str:
        """Return notes on whether the ratio is exact and which ratio is proved."""
        known = "" if self.ratio_is in (None, "exact") else f"the true one is {self.ratio_is} this"
        proved = "" if self.proven_ratio is None else f"proved: at most {self.proven_ratio:.4g}"
        return "; ".join(note for note in (known, proved) if note)

    def plot(self) -> Figure:
        """Plot the regret and its bounds over the rounds.

        Raises InvalidInput if the game keeps no history (`Game(learner, history=True)` keeps it).
        """
        if self.history is None or not self.history.rounds:
            raise InvalidInput("plot needs a history, got none; play with Game(learner, history=True).")
        from ftprl import draw

        lines = [
            draw.Series(name, self.history.rounds, values, dashed=name != "regret")
            for name, values in self.history.series.items()
            if any(math.isfinite(v) for v in values)
        ]
        if not lines:
            raise InvalidInput("plot needs finite numbers, got none: the set is unbounded; bound it.")
        return draw.figure([draw.Panel("Regret and its bounds", "round", "loss units", lines)])


_BOUNDS = ("tight bound", "bound", "theorem's bound", "worst case B_R", "closed form", "closed form, strong")


def _plain(value: Any) -> Any:
    """Return the value, or None if it is infinite or not a number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: float | None) -> str:
    """Return six significant digits, or "-" for an unknown value."""
    return "-" if value is None else f"{value:.6g}"
