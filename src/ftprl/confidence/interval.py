"""The interval of a running mean that holds at every row at once (a confidence sequence)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from ftprl._core import MeanSequence

LEVEL = 0.95  # the probability that an interval holds at every row
CUT_SHARE = 0.1  # largest clipped part that counts as small, as a share of half the width


@final
@dataclass(frozen=True, slots=True)
class MeanInterval:
    """The mean of a number over the rows so far, and an interval for the mean of its expectations.

    With probability `level` the interval holds at every row of the stream at once, whatever process made the rows: each
    row's number may depend on all rows before it. If rows do not change, it predicts the mean of future rows. Numbers
    beyond `bound` are clipped to it: `cut_rows` is their count, and without clipping the mean would be `cut_off`
    further from 0. `upper` is infinite if the numbers have no known upper limit.

    >>> MeanInterval(0.453, 0.449, 0.457, 0.95, 80_000).text()
    '0.4530 (95 %: 0.4490 to 0.4570)'
    """

    mean: float
    lower: float
    upper: float
    level: float
    rows: int
    bound: float = math.nan
    cut_rows: int = 0
    cut_off: float = 0.0

    @property
    def radius(self) -> float:
        """Return half the width; without an upper end, the distance from the lower end to the mean."""
        return 0.5 * (self.upper - self.lower) if self.upper < math.inf else self.mean - self.lower

    @property
    def excludes_zero(self) -> bool:
        """Return True if the interval does not contain 0."""
        return self.lower > 0.0 or self.upper < 0.0

    def ends(self, scale: float = 1.0, unit: str = "") -> str:
        """Return both ends, times `scale`, with as many digits as the width justifies."""
        digits = digits_for(scale * self.radius)
        if self.upper == math.inf:
            return f"at least {fixed(scale * self.lower, digits)}{unit}"
        return f"{fixed(scale * self.lower, digits)} to {fixed(scale * self.upper, digits)}{unit}"

    def below(self, what: str) -> str:
        """Return how far one quantity lies below another, if this is the interval of their difference.

        >>> ends = ((0.1, 0.3), (-0.3, -0.1), (-0.1, 0.3))
        >>> [MeanInterval(0.0, *both, 0.95, 10, 1.0).below("it") for both in ends]
        ['0.10 to 0.30 below it', '0.10 to 0.30 above it', 'between 0.10 above and 0.30 below it']
        """
        digits = digits_for(self.radius)
        lower, upper = fixed(abs(self.lower), digits), fixed(abs(self.upper), digits)
        if self.lower >= 0.0:
            return f"{lower} to {upper} below {what}"
        if self.upper <= 0.0:
            return f"{upper} to {lower} above {what}"
        return f"between {lower} above and {upper} below {what}"

    def text(self, scale: float = 1.0, unit: str = "") -> str:
        """Return the mean and the interval."""
        mean = fixed(scale * self.mean, digits_for(scale * self.radius))
        return f"{mean}{unit} ({100 * self.level:g} %: {self.ends(scale, unit)})"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; a number that is not finite is None."""
        return {name: value if math.isfinite(value := getattr(self, name)) else None for name in _FIELDS}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MeanInterval:
        """Return the interval that `to_dict` wrote."""
        none = {"upper": math.inf}
        known: dict[str, Any] = {
            name: none.get(name, math.nan) if values[name] is None else values[name] for name in _FIELDS
        }
        return cls(**known)

    @property
    def is_cut_short(self) -> bool:
        """Return True if the clipped part of the numbers is large beside the width."""
        return abs(self.cut_off) > CUT_SHARE * self.radius

    @classmethod
    def of(cls, sequence: MeanSequence, level: float) -> MeanInterval | None:
        """Return the interval of a sequence; None before its first row."""
        if (summary := sequence.summary) is None:
            return None
        mean, lower, upper, rows, bound, cut_rows, cut_off = summary
        return cls(mean, lower, upper, level, int(rows), bound, int(cut_rows), cut_off)


_FIELDS = tuple(MeanInterval.__dataclass_fields__)


def fixed(value: float, digits: int) -> str:
    """Return a number with this many decimals, and never "-0".

    >>> fixed(-0.0001, 2), fixed(2564956206.3, 0)
    ('0.00', '2,564,956,206')
    """
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def digits_for(radius: float) -> int:
    """Return how many decimals show an interval of this half width with two significant digits.

    >>> digits_for(0.0042), digits_for(12.0)
    (4, 0)
    """
    if not (math.isfinite(radius) and radius > 0.0):
        return 4
    return min(max(1 - math.floor(math.log10(radius)), 0), 12)
