"""The floor curve, a lower bound on the loss of all fixed weights up to a length, as data and in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

from ftprl.errors import InvalidInput

Norm = Literal["1", "2", "inf"]
NORMS: tuple[Norm, ...] = ("1", "2", "inf")
MOST = 0.10  # largest possible improvement of weights of the longest length in the headline
_STEPS = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)  # leading digits of named lengths


@final
@dataclass(frozen=True, slots=True)
class FloorCurve:
    """A lower bound on the loss of all fixed weights u with length up to L: the maximum of several falling lines.

    The length is the norm (1, 2 or inf) of all weights times the units of their features, with the intercept, divided
    by `unit`, the unit of the labels if weights are measured in it. A line is (total loss at length 0, decrease per
    unit of length); rounding is already subtracted. `least` is the least loss that a row can have, if there is one.

    >>> FloorCurve("2", 50.0, 100.0, 1.0, ((60.0, 4.0), (58.0, 3.0))).at(5.0)
    0.43
    """

    norm: Norm
    loss: float  # the run's own total
    weight: float
    unit: float
    lines: tuple[tuple[float, float], ...]
    least: float | None = 0.0

    def at(self, length: float) -> float:
        """Return a lower bound on the loss per row (per unit of weight) of all fixed weights up to this length."""
        if not 0.0 <= length < math.inf:
            raise InvalidInput(f"length needs a number of at least 0, got {length!r}; pass one.")
        least = -math.inf if self.least is None else self.least
        if not self.weight > 0.0:
            return least
        return max(least, *((start - slope * length) / self.weight for start, slope in self.lines))

    @property
    def mean(self) -> float:
        """Return the run's own loss per row."""
        return self.loss / self.weight if self.weight else math.nan

    @property
    def beaten_length(self) -> float | None:
        """Return the length up to which no fixed weights are better than the run, provably; None if not even 0 is.

        >>> FloorCurve("2", 50.0, 100.0, 1.0, ((60.0, 4.0),)).beaten_length
        2.5
        """
        return self._crossing(self.loss)

    @property
    def informative_length(self) -> float | None:
        """Return the length beyond which the curve only states that losses are at least `least`; None if there is
        none.
        """
        return None if self.least is None else self._crossing(self.least * self.weight)

    def _crossing(self, level: float) -> float | None:
        """Return the largest length at which the curve is at least at this total."""
        lengths = [_until(start - level, slope) for start, slope in self.lines if start >= level]
        return max(lengths, default=None)

    def better(self, length: float) -> float:
        """Return the largest possible improvement over the run, as a share of its loss, of weights up to this
        length.
        """
        return max(self.mean - self.at(length), 0.0) / self.mean if self.mean > 0.0 else math.inf

    def named_lengths(self) -> Iterator[float]:
        """Yield round lengths on the informative part of the curve, beyond the beaten length, in rising order.

        >>> list(FloorCurve("2", 50.0, 100.0, 1.0, ((60.0, 4.0),)).named_lengths())[:3]
        [3.0, 4.0, 5.0]
        """
        low = self.beaten_length or 0.0
        high = self.informative_length if self.least is not None else 5.0 * (low or 1.0)
        if high is None or not low < high < math.inf:
            return
        power = math.floor(math.log10(low)) if low > 0.0 else math.floor(math.log10(high)) - 2
        while 10.0**power <= high:
            yield from (a for step in _STEPS if low < (a := step * 10.0**power) < high)
            power += 1

    def far_length(self) -> float | None:
        """Return the longest round length at which no weights improve by more than 10 %, or else the first round
        length.
        """
        lengths = list(self.named_lengths())
        near = [a for a in lengths if self.least is not None and self.better(a) <= MOST]
        return near[-1] if near else (lengths[0] if lengths else None)

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as JSON values."""
        own = {"norm": self.norm, "loss": self.loss, "weight": self.weight, "unit": self.unit, "least": self.least}
        named = {name: _finite(getattr(self, name)) for name in ("beaten_length", "informative_length")}
        return {**own, "lines": [list(line) for line in self.lines], **named}

    @classmethod
    def from_dict(cls, values: Any) -> FloorCurve | None:
        """Return the curve that `to_dict` wrote; None for anything else, because events may be of any version."""
        try:
            lines = tuple((float(a), float(b)) for a, b in values["lines"])
            norm = next(name for name in NORMS if name == values["norm"])
            least = None if values["least"] is None else float(values["least"])
            curve = cls(norm, float(values["loss"]), float(values["weight"]), float(values["unit"]), lines, least)
        except (TypeError, ValueError, KeyError, StopIteration):
            return None
        flat = [curve.loss, curve.weight, *(number for line in lines for number in line)]
        return curve if lines and all(abs(number) <= 1e100 for number in flat) and curve.weight > 0.0 else None


def _until(height: float, slope: float) -> float:
    """Return the length at which a line falls to 0."""
    return height / slope if slope > 0.0 else math.inf


def _finite(value: float | None) -> float | None:
    """Return the value, or None if it is not finite."""
    return value if value is not None and math.isfinite(value) else None


def headline(curve: FloorCurve) -> str:
    r"""Return one or two sentences on what the curve proves.

    >>> print(headline(FloorCurve("2", 50.0, 100.0, 1.0, ((60.0, 4.0), (58.0, 3.0)))).replace("; ", ";\n"))
    This run provably beat every fixed linear model of length up to 2.6;
    none of length up to 4 could have been more than 8 % better.
    """
    beaten, far = curve.beaten_length, curve.far_length()
    if beaten == math.inf:
        return "This run provably beat every fixed linear model, of any length."
    beaten_part = (
        "" if not beaten else f"This run provably beat every fixed linear model of length up to {below(beaten)}"
    )
    if far is None:
        return f"{beaten_part}." if beaten_part else nothing_proved(curve)
    could = f"of length up to {far:g} could have {_by_at_most(curve, far)}"
    return f"{beaten_part}; none {could}." if beaten_part else f"No fixed linear model {could}."


def nothing_proved(curve: FloorCurve) -> str:
    """Return a sentence for a curve that is nowhere above the least possible loss."""
    end = curve.informative_length
    if end:
        return f"Nothing is proved against fixed weights of length {below(end)} or more."
    return "Nothing is proved against fixed weights: the rows are too few, or the run was no better than guessing."


def _by_at_most(curve: FloorCurve, length: float) -> str:
    """Return a phrase with the largest possible improvement at a length."""
    if curve.least is None or not curve.mean > 0.0:  # such losses may be negative: shares of them have no meaning
        return f"had a mean loss more than {above(curve.mean - curve.at(length))} lower than the run"
    return f"been more than {above(100.0 * curve.better(length))} % better"


def below(value: float) -> str:
    """Return a number with two digits, rounded down.

    >>> below(2.49), below(0.0387), below(173.0)
    ('2.4', '0.038', '170')
    """
    return _to_two_digits(value, math.floor)


def above(value: float) -> str:
    """Return a number with two digits, rounded up.

    >>> above(7.01), above(0.0387), above(173.0)
    ('7.1', '0.039', '180')
    """
    return _to_two_digits(value, math.ceil)


def _to_two_digits(value: float, whole: Any) -> str:
    """Return a number rounded to two digits by `whole`."""
    if not 0.0 < value < math.inf:
        return f"{value:g}"
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    return f"{whole(round(value / step, 9)) * step:.6g}"


LENGTHS: Mapping[str, str] = {
    "1": "L1 norm (sum of absolute values) of the weights, each times the unit of its feature, with the intercept",
    "2": "L2 norm of the weights, each times the unit of its feature, with the intercept",
    "inf": "largest absolute value of the weights, each times the unit of its feature, and the intercept",
}
