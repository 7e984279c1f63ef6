"""How a run goes over its data, where it stands, and what its model has read: all that is kept between two rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from ftprl import check
from ftprl.data import Position
from ftprl.errors import InvalidInput
from ftprl.linear.engine import LossTotals

Sums = tuple[float, float, int]  # loss, weight, rows

NOTHING: Sums = (0.0, 0.0, 0)
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@final
@dataclass(frozen=True, slots=True)
class Every:
    """How often a checkpoint is written: after so many rows, or seconds.

    >>> Every.parse("100000"), Every.parse("30s")
    (Every(rows=100000, seconds=None), Every(rows=None, seconds=30.0))
    """

    rows: int | None = None
    seconds: float | None = None

    @classmethod
    def parse(cls, text: str | int) -> Every:
        """`100000` rows, or a time such as `30s`, `5m`, `1h`."""
        said = str(text).strip()
        number, unit = (said[:-1], said[-1]) if said[-1:] in _UNITS else (said, "")
        try:
            if unit:
                seconds = float(number) * _UNITS[unit]
                if 0 < seconds < float("inf"):
                    return cls(seconds=seconds)
            elif int(number) > 0:
                return cls(rows=int(number))
        except ValueError:
            pass
        raise InvalidInput(f"every needs a number of rows or a time such as 30s, 5m or 1h, got {text!r}; pass one.")


@final
@dataclass(frozen=True, slots=True)
class Course:
    """How a run goes over its data: how often, with which rows held out, and where it is kept meanwhile."""

    passes: int = 1
    holdout: int | None = None
    checkpoint: str | None = None
    every: Every = field(default_factory=lambda: Every(seconds=30.0))
    threads: int | None = None
    retire: bool = True

    def __post_init__(self) -> None:
        check.dimension("passes", self.passes)
        if self.holdout is not None and (not isinstance(self.holdout, int) or self.holdout < 2):
            raise InvalidInput(f"holdout needs at least 2, got {self.holdout}; hold out every N-th row.")
        if self.threads is not None and (not isinstance(self.threads, int) or self.threads < 0):
            raise InvalidInput(f"threads needs a number of at least 0, got {self.threads!r}; pass 1.")


@final
@dataclass(frozen=True, slots=True)
class History:
    """What a model has read, over all its runs: rows met for the first time, and what they cost."""

    rows: int = 0
    bad_rows: int = 0
    progressive: Sums = NOTHING
    holdout: Sums = NOTHING

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rows": self.rows,
            "bad_rows": self.bad_rows,
            "progressive": list(self.progressive),
            "holdout": list(self.holdout),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> History:
        """The history that `to_dict` wrote; nothing for a model that was made by hand."""
        if not plain:
            return cls()
        return cls(int(plain["rows"]), int(plain["bad_rows"]), _sums(plain["progressive"]), _sums(plain["holdout"]))


@final
@dataclass(frozen=True, slots=True)
class Standing:
    """Where a run stands between two rows: all that a checkpoint keeps besides the model.

    `began` are the engine's tallies at the begin of the run and `pass_began` at that of the pass; `progressive` are
    those at the end of the first pass, once it is over. `held` is what held-out rows cost. `refused` rows were read
    but could not be learned, the first for the reason `refusal`. `classes` has bit 0 once a label was negative and
    bit 1 once one was positive.
    """

    began: Sums
    pass_began: Sums
    held: Sums
    passed: int = 0
    rows: int = 0
    refused: int = 0
    refusal: str | None = None
    classes: int = 0
    place: Position = field(default_factory=Position)
    progressive: Sums | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "began": list(self.began),
            "pass_began": list(self.pass_began),
            "held": list(self.held),
            "passed": self.passed,
            "rows": self.rows,
            "refused": self.refused,
            "refusal": self.refusal,
            "classes": self.classes,
            "place": self.place.to_dict(),
            "progressive": None if self.progressive is None else list(self.progressive),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Standing:
        """What `to_dict` wrote."""
        first = plain["progressive"]
        return cls(
            _sums(plain["began"]),
            _sums(plain["pass_began"]),
            _sums(plain["held"]),
            int(plain["passed"]),
            int(plain["rows"]),
            int(plain["refused"]),
            None if plain["refusal"] is None else str(plain["refusal"]),
            int(plain["classes"]),
            Position.from_dict(plain["place"]),
            None if first is None else _sums(first),
        )


def _sums(plain: Any) -> Sums:
    loss, weight, rows = plain
    return float(loss), float(weight), int(rows)


def between(a: Sums, b: Sums) -> LossTotals:
    """What came between b and a; a itself, to the bit, when b is nothing."""
    return LossTotals(a[0] - b[0], a[1] - b[1], a[2] - b[2])


def added(a: Sums, b: LossTotals) -> Sums:
    """Sums and what came behind them."""
    return a[0] + b.loss, a[1] + b.weight, a[2] + b.rows
