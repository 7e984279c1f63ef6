"""What to expect of rows to come, once more: the intervals and the drift alarm of a run from its losses, row by row.

Written from docs/evaluate.md, some rows at a time with NumPy; nothing of `ftprl.confidence` or the core is called. For
numbers x within a range of width c, weights w <= W and guesses made before x, the mixture over bets of

    exp(bet s / (c W) - psi(bet) v / (c W)²),   s = sum w (x - mean),   v = sum (w (x - guess))²

is a supermartingale; the interval has the means for which it stays below 2 / error, on either side. Where W is doubled
for a larger weight, each bet of the grid takes the place and the prior of the next smaller one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from ftprl.losses import ScalarLoss

Vector = NDArray[np.float64]
LEVEL, FALSE_ALARM = 0.95, 0.01
BETS = 0.8 * 0.5 ** np.arange(24)
COSTS = -np.log1p(-BETS) - BETS
_PRIOR = 1.0 / (1.0 + np.maximum(np.arange(24) - 8, 0)) ** 2
LOG_PRIOR = np.log(_PRIOR / _PRIOR.sum())
EVERY = 256  # rows after which a guess is brought up to date, and the alarm is looked at
LEAST_UNIT = 2.0**-440
FIRST_SEGMENT = 1024
MOST_DOUBLINGS = 8  # of the largest weight, before a new epoch
FIRST_ROWS, PASSED_OVER, UNITS = 32, 16, 16.0  # settle the unit of losses that have one
LARGEST_NATS = 10.0


def wealth(s: float, v: float, doublings: int = 0) -> float:
    """The logarithm of the mixture over bets."""
    if not math.isfinite(v):
        return -math.inf
    left = len(BETS) - doublings
    terms = LOG_PRIOR[doublings:] + BETS[:left] * s - COSTS[:left] * v
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum()))


def farthest(v: float, threshold: float, doublings: int = 0) -> float:
    """The largest sum of deviations at which the mixture is not above e^threshold, by bisection."""
    if not math.isfinite(v):
        return math.inf
    left = len(BETS) - doublings
    alone = (threshold - LOG_PRIOR[doublings:] + COSTS[:left] * v) / BETS[:left]  # where one bet alone has won enough
    low, high = 0.0, float(alone.min())
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if wealth(middle, v, doublings) <= threshold else (low, middle)
    return high


@final
@dataclass(slots=True, eq=False)
class _Epoch:
    """Rows with the same cut, and weights up to `heaviest`, which was doubled so many times."""

    number: int = 0
    heaviest: float = 0.0
    doublings: int = 0
    rows: int = 0
    cuts: int = 0
    weight: float = 0.0
    sum: float = 0.0
    squares: float = 0.0


@final
class MeanReplay:
    """The confidence sequence of one mean."""

    def __init__(self, bound: float, *, signed: bool, grows: bool) -> None:
        self.bound, self.signed, self.grows = bound, signed, grows
        self.now, self.guess = _Epoch(), 0.0
        self.rows = self.cut_rows = 0
        self.cut_off = 0.0
        self.before = np.zeros(4)  # weight, sum, lower and upper end of the epochs that are over

    @property
    def low(self) -> float:
        return -self.bound if self.signed else 0.0

    @property
    def unit(self) -> float:
        return (1.25 if self.signed else 1.0) * self.bound * self.now.heaviest

    def threshold(self, error: float) -> float:
        """ln(1 / error) for one side, of the part of the error that this epoch has."""
        part = 0.75 if self.now.number == 0 else 0.25 * 0.5**self.now.number
        return -math.log(error * part)

    def add(self, x: Vector, weight: Vector) -> int:
        """Rows up to the next at which anything changes; returns how many."""
        now, n = self.now, self.now.rows
        stop = EVERY - n % EVERY if n >= EVERY else (1 << n.bit_length()) - n
        x, weight = x[:stop], weight[:stop]
        usual = (weight <= now.heaviest) & (x >= self.low) & (x <= self.bound)
        count = len(x) if usual.all() else int(np.argmin(usual))
        self._take(x[:count], weight[:count])
        if count < len(x):
            self._unusual(float(x[count]), float(weight[count]))
            count += 1
        now = self.now
        if now.rows and (now.rows % EVERY == 0 or (now.rows < EVERY and now.rows & (now.rows - 1) == 0)):
            reach = (0.25 if self.signed else 1.0) * self.bound
            self.guess = min(max(now.sum / now.weight, -reach if self.signed else 0.0), reach)
        if self.grows and now.cuts > 2 + 1e-3 * now.rows:
            self._start(4.0 * self.bound, now.heaviest)
        return count

    def _take(self, x: Vector, weight: Vector) -> None:
        now, deviations = self.now, weight * (x - self.guess)
        now.sum, now.squares = _added(now.sum, weight * x), _added(now.squares, deviations * deviations)
        now.weight, now.rows, self.rows = _added(now.weight, weight), now.rows + len(x), self.rows + len(x)

    def _unusual(self, x: float, weight: float) -> None:
        """A row that is cut, or heavier than all before."""
        if x != x:
            return
        if weight > self.now.heaviest:
            self._allow(weight)
        kept = min(max(x, self.low), self.bound)
        if kept != x:
            self.cut_rows, self.now.cuts = self.cut_rows + 1, self.now.cuts + 1
            self.cut_off += weight * (x - kept)
        self._take(np.array([kept]), np.array([weight]))

    def _allow(self, weight: float) -> None:
        """Doubles the largest weight, up to eight times in an epoch."""
        heaviest, doublings = self.now.heaviest, self.now.doublings
        while heaviest < weight and doublings < MOST_DOUBLINGS:
            heaviest, doublings = 2.0 * heaviest, doublings + 1
        if self.now.rows and heaviest >= weight:
            self.now.heaviest, self.now.doublings = heaviest, doublings
        else:
            self._start(self.bound, weight)

    def _start(self, bound: float, heaviest: float) -> None:
        if self.now.rows:
            self.before += [self.now.weight, self.now.sum, *self._ends()]
            self.now = _Epoch(self.now.number + 1)
        self.bound, self.now.heaviest, self.now.doublings = bound, heaviest, 0

    def _ends(self) -> tuple[float, float]:
        now, c = self.now, self.unit
        if not c > 0.0:
            return now.sum, now.sum
        far = c * farthest(_over(now.squares, c, now.rows), self.threshold(0.5 * (1.0 - LEVEL)), now.doublings)
        return max(now.sum - far, self.low * now.weight), min(now.sum + far, self.bound * now.weight)

    def to_dict(self) -> dict[str, Any] | None:
        """As a receipt states it; None before the first row."""
        weight = self.before[0] + self.now.weight
        if not weight > 0.0:
            return None
        lower, upper = self._ends()
        return {
            "mean": float((self.before[1] + self.now.sum) / weight),
            "lower": float((self.before[2] + lower) / weight),
            "upper": float((self.before[3] + upper) / weight),
            "level": LEVEL,
            "rows": self.rows,
            "bound": self.bound,
            "cut_rows": self.cut_rows,
            "cut_off": float(self.cut_off / weight),
        }


@final
class DriftReplay:
    """The alarm: rows since the last power of two against an upper bound of the mean before them."""

    def __init__(self) -> None:
        self.row: int | None = None
        self._segments, self._epoch = 0, 0
        self._start: tuple[float, float, float, float] | None = None  # reference, weight, sum, squares

    def look(self, losses: MeanReplay) -> None:
        """Test for a risen loss, after some more rows."""
        now = losses.now
        if self.row is not None or now.rows % EVERY:
            return
        if now.number != self._epoch:
            self._epoch, self._start = now.number, None
        if self._start is not None:
            self._test(losses, *self._start)
        if now.rows >= FIRST_SEGMENT and now.rows & (now.rows - 1) == 0 and self.row is None:
            c = losses.unit
            enough = losses.threshold(0.5 * FALSE_ALARM)
            far = c * farthest(_over(now.squares, c, now.rows), enough, now.doublings) if c > 0.0 else 0.0
            self._start = ((now.sum + far) / now.weight, now.weight, now.sum, now.squares)
            self._segments += 1

    def _test(self, losses: MeanReplay, reference: float, weight: float, total: float, squares: float) -> None:
        now, c = losses.now, losses.unit
        if not c > 0.0:
            return
        excess = (now.sum - total - reference * (now.weight - weight)) / c
        needed = math.log(self._segments) + math.log(self._segments + 1.0) - math.log(0.5 * FALSE_ALARM)
        if excess > 0.0 and wealth(excess, _over(now.squares - squares, c, now.rows), now.doublings) >= needed:
            self.row = losses.rows


@final
class ConfidenceReplay:
    """All that a run reports about rows to come."""

    def __init__(self, loss: ScalarLoss) -> None:
        self._loss = loss
        self.loss = MeanReplay(LARGEST_NATS, signed=loss.link == "log", grows=True)
        self.improvement = MeanReplay(LARGEST_NATS, signed=True, grows=True)
        self.calibration = MeanReplay(1.0, signed=True, grows=not loss.binary)
        self.errors = MeanReplay(1.0, signed=False, grows=False)
        self.drift = DriftReplay()
        self._first: list[tuple[float, float]] | None = None if loss.binary or loss.has_classes else []

    def add(self, losses: Vector, baselines: Vector, predictions: Vector, y: Vector, weight: Vector) -> None:
        """Rows that were learned: their losses, the baseline's, and what was predicted (for the log loss nothing)."""
        if self._loss.has_classes:  # a prediction is the number of a class
            residuals, margins = np.zeros_like(losses), np.where(predictions == y, 1.0, -1.0)
        elif self._loss.is_probabilistic:
            residuals, margins = y * (np.exp(-losses) - 1.0), math.log(2.0) - losses
            margins[np.abs(margins) <= 1e-9] = 0.0  # a tie, whatever rounding says
        else:
            means = self._loss.mean(predictions)
            residuals, margins = means - y, predictions * y
        first = self._settle(losses, residuals)
        numbers = {"loss": losses, "improvement": baselines - losses}
        if self._loss.rule != "classes" and not self._loss.has_classes:
            numbers["calibration"] = residuals
        if self._loss.binary or self._loss.has_classes:
            numbers["errors"] = 0.5 * (1.0 - np.sign(margins))
        for name, x in numbers.items():
            at, sequence = first, getattr(self, name)
            while at < len(x):
                at += sequence.add(x[at:], weight[at:])
                if name == "loss":
                    self.drift.look(sequence)

    def _settle(self, losses: Vector, residuals: Vector) -> int:
        """How many of some rows are among the first, which settle the unit of losses that have one."""
        for r in range(len(losses) if self._first is not None else 0):
            assert self._first is not None
            self._first.append((abs(float(losses[r])), abs(float(residuals[r]))))
            later = self._first[PASSED_OVER:]
            loss, residual = _added(0.0, np.array([a for a, _ in later])), _added(0.0, np.array([b for _, b in later]))
            if len(self._first) >= FIRST_ROWS and loss > 0.0 and residual > 0.0:
                self.loss.bound = self.improvement.bound = UNITS / len(later) * loss
                self.calibration.bound = UNITS / len(later) * residual
                self._first = None
                return r + 1
        return len(losses) if self._first is not None else 0

    def to_dict(self) -> dict[str, Any] | None:
        """As a receipt states it; None before the first row."""
        if self.loss.to_dict() is None:
            return None
        named = {"loss": self.loss, "improvement": self.improvement, "calibration": self.calibration}
        known = {name: entry.to_dict() for name, entry in {**named, "error_rate": self.errors}.items()}
        drift = {"row": self.drift.row, "false_alarm": FALSE_ALARM}
        return {**{name: entry for name, entry in known.items() if entry is not None}, "drift": drift}


def _over(squares: float, c: float, rows: int) -> float:
    """A sum of squared deviations in units of c; where squares are lost, the most that so many rows can make."""
    return squares / (c * c) if c >= LEAST_UNIT else float(rows)


def _added(start: float, terms: Vector) -> float:
    """A sum in the order of the rows."""
    return float(np.add.accumulate(np.concatenate([[start], terms]))[-1])
